//! Node leases, each a key with its owner below it.

use core::time::Duration;
use std::collections::BTreeMap;

use etcd_client::{Client, Error as Cause, GetOptions, KeyValue, PutOptions, TxnOp};
use ordid_core::{
    Error,
    clock::{Clock as _, Delay, SystemClock, Timestamp},
    coordination::{
        AsyncNodeAllocator, CoordinationFailure, Grant, LeaseTerms, NodeRecord, choose_node,
    },
};

use crate::{
    error::{damaged, lost},
    store::{Store, is_absent, is_of_revision, parse, put},
};

const CREATE: &str = "EtcdLease::create";

/// The key below a node's that lives as long as its holder's lease.
const OWNER: &str = "owner";
/// How many keys are read in one question: an answer has to fit a message.
const PAGE: i64 = 10_000;

/// Leases of nodes, in keys of etcd.
///
/// ```text
/// app/orders            "1800000000000"       nodes that are new begin there
/// app/orders/7          "4 1800000003000"     epoch, ceiling
/// app/orders/7/owner    of a lease of etcd    it has a holder
/// ```
///
/// Times are milliseconds since 1970. Both keys of a node move in one transaction, from the revisions that
/// were read. The ceiling's stays for ever; the owner's goes with its lease, after the terms'
/// [time to live](LeaseTerms::ttl) (in whole seconds, and not below what the cluster allows, which is one and a
/// half of its election's time-out). Then the node is free, and its former holder is refused at the next renewal.
///
/// etcd tells no time. So this machine's clock says what is [too far ahead](LeaseTerms::max_ahead): it finds a
/// generator's clock that is wrong, and a ceiling that another machine has moved too far, but not that it is
/// wrong itself. Then it uses up time of one node, and no duplicate follows from that.
///
/// # Example
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use etcd_client::Client;
/// use ordid_core::{
///     clock::{Clock, SystemClock, Timestamp}, coordination::{AsyncNodeAllocator, LeaseTerms},
/// };
/// use ordid_etcd::EtcdLease;
///
/// let client = Client::connect(["one:2379", "two:2379", "three:2379"], None).await?;
/// let leases = EtcdLease::new(client, "app/orders", LeaseTerms::new(0..1_024)?)?;
/// leases.create(Timestamp::MIN).await?; // once, when the application is installed
///
/// let grant = leases.acquire(SystemClock.now(), None).await?;
/// let grant = leases.renew(&grant, SystemClock.now()).await?;
/// leases.release(&grant, None).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct EtcdLease {
    store: Store,
    terms: LeaseTerms,
}

/// What is kept of a node.
#[derive(Debug)]
struct Kept {
    record: NodeRecord,
    /// When the record was written; 0 if it never was.
    revision: i64,
    owner: Option<Owner>,
}

/// Who holds a node.
#[derive(Debug, Clone, Copy)]
struct Owner {
    /// When its key was written.
    revision: i64,
    /// The lease that it goes with.
    lease: i64,
}

impl From<&KeyValue> for Owner {
    fn from(owner: &KeyValue) -> Self {
        Self {
            revision: owner.mod_revision(),
            lease: owner.lease(),
        }
    }
}

impl EtcdLease {
    /// Leases of the nodes of these terms, below a key.
    ///
    /// # Errors
    ///
    /// [`Mismatch`](CoordinationFailure::Mismatch) if the key is empty, ends with `/` or has control
    /// characters.
    pub fn new(client: Client, key: impl Into<String>, terms: LeaseTerms) -> Result<Self, Error> {
        Ok(Self {
            store: Store::new(client, key.into())?,
            terms,
        })
    }

    /// How long etcd may take for each answer: 5 s unless said otherwise.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self {
            store: self.store.with_timeout(timeout),
            ..self
        }
    }

    /// Says that the leases are new: until then there are none, and each call is a
    /// [`StateLost`](CoordinationFailure::StateLost). This is part of a deployment, not of a
    /// program's start, which would take a cluster that has lost its data for a new one.
    ///
    /// No key with a node of these leases carries a time before `floor`. That is [`Timestamp::MIN`]
    /// for the first time. After a loss it is a time that no holder can have reached: the newest in
    /// your keys, or now, and [`max_ahead`](LeaseTerms::max_ahead) on top.
    ///
    /// Returns whether there were none; if there are some, they stay as they are.
    ///
    /// # Errors
    ///
    /// [`Unavailable`](CoordinationFailure::Unavailable).
    pub async fn create(&self, floor: Timestamp) -> Result<bool, Error> {
        self.store.create(floor.as_unix_millis().to_string()).await
    }

    fn node_key(&self, node: u64) -> String {
        format!("{}/{node}", self.store.key)
    }

    fn owner_key(&self, node: u64) -> String {
        format!("{}/{node}/{OWNER}", self.store.key)
    }

    fn record(&self, node: u64, value: &[u8]) -> Result<NodeRecord, Error> {
        NodeRecord::parse(value).ok_or_else(|| damaged(&self.node_key(node), value))
    }

    /// Where nodes that are new begin.
    async fn floor(&self) -> Result<Timestamp, Error> {
        let key = self.store.key.as_str();
        let [found] = self.store.read([key]).await?;
        let found = found.ok_or_else(|| lost(key, CREATE))?;
        let floor = parse(found.value()).and_then(|it| Timestamp::from_unix_millis(it).ok());
        floor.ok_or_else(|| damaged(key, found.value()))
    }

    /// What is kept of all nodes that were granted, as of one moment but for their pages.
    async fn kept(&self) -> Result<BTreeMap<u64, Kept>, Error> {
        let below = format!("{}/", self.store.key);
        // The byte behind the slash.
        let end = format!("{}0", self.store.key);
        let mut from = below.clone();
        let (mut kept, mut owners) = (BTreeMap::new(), BTreeMap::new());
        loop {
            let options = GetOptions::new().with_range(end.clone()).with_limit(PAGE);
            let page = self
                .store
                .ask(|client| {
                    let from = from.clone();
                    async move { client.kv_client().get(from, Some(options)).await }
                })
                .await?;
            for found in page.kvs() {
                let name = found.key().strip_prefix(below.as_bytes());
                let Some(name) = name.and_then(|name| core::str::from_utf8(name).ok()) else {
                    continue;
                };
                // Others may keep something below, too.
                match name.split_once('/') {
                    None => {
                        if let Ok(node) = name.parse() {
                            let record = self.record(node, found.value())?;
                            let revision = found.mod_revision();
                            let owner = None;
                            let node_kept = Kept {
                                record,
                                revision,
                                owner,
                            };
                            kept.insert(node, node_kept);
                        }
                    }
                    Some((node, OWNER)) => {
                        if let Ok(node) = node.parse::<u64>() {
                            owners.insert(node, Owner::from(found));
                        }
                    }
                    Some(_) => {}
                }
            }
            match page.kvs().last().filter(|_| page.more()) {
                // The next key there can be.
                Some(last) => {
                    from = String::from_utf8_lossy(last.key()).into_owned() + "\0";
                }
                None => break,
            }
        }
        for (node, owner) in owners {
            if let Some(kept) = kept.get_mut(&node) {
                kept.owner = Some(owner);
            }
        }
        Ok(kept)
    }

    /// The nodes that nobody holds, the one with the lowest ceiling first. Nodes that were never
    /// granted have the lowest; of them only as many as were, for no more are taken at once.
    fn free(&self, kept: &BTreeMap<u64, Kept>) -> Vec<u64> {
        let nodes = self.terms.nodes();
        // Other terms may name other nodes.
        let granted = kept.range(nodes.clone());
        let is_free = |(_, kept): &(&u64, &Kept)| kept.owner.is_none();
        let mut free: Vec<(Timestamp, u64)> = granted
            .filter(is_free)
            .map(|(&node, kept)| (kept.record.ceiling, node))
            .collect();
        free.sort_unstable();
        let never = nodes.filter(|node| !kept.contains_key(node));
        never
            .take(kept.len() + 1)
            .chain(free.into_iter().map(|(_, node)| node))
            .collect()
    }

    /// Takes the best free node, and again another where others were faster. The lease of etcd is made once
    /// there is something to take.
    async fn take(
        &self,
        now: Timestamp,
        last: Option<Timestamp>,
        lease: &mut Option<i64>,
    ) -> Result<Grant, Error> {
        let mut lost_races = 0;
        loop {
            // Also tells that the leases are there.
            let begin = self.floor().await?;
            let kept = self.kept().await?;
            let Some(node) = choose_node(&self.free(&kept), lost_races)? else {
                return Err(Error::coordination(
                    CoordinationFailure::NoFreeNode,
                    format!(
                        "etcd, {}: all nodes {:?} are held",
                        self.store.key,
                        self.terms.nodes()
                    ),
                ));
            };
            let (stored, revision) = match kept.get(&node) {
                Some(kept) => (kept.record, kept.revision),
                None => (
                    NodeRecord {
                        epoch: 0,
                        ceiling: begin,
                    },
                    0,
                ),
            };
            let (floor, ceiling) =
                self.terms
                    .range(Some(stored.ceiling), now, last, Some(SystemClock.now()))?;
            let grant = Grant::new(node, stored.epoch + 1, floor, ceiling)?;
            let id = match *lease {
                Some(id) => id,
                None => *lease.insert(self.etcd_lease().await?),
            };
            let (key, owner) = (self.node_key(node), self.owner_key(node));
            let of_lease = PutOptions::new().with_lease(id);
            let (_, refused) = self
                .store
                .swap(
                    [is_of_revision(&key, revision), is_absent(&owner)],
                    [
                        put(&key, record_of(&grant, ceiling)),
                        TxnOp::put(owner, "", Some(of_lease)),
                    ],
                    [],
                )
                .await?;
            if refused.is_none() {
                return Ok(grant);
            }
            lost_races += 1;
        }
    }

    async fn etcd_lease(&self) -> Result<i64, Error> {
        // Rounded up: no holder may lose its node before its time.
        let seconds = self.terms.ttl().as_millis().div_ceil(1_000);
        let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
        let granted = self
            .store
            .ask(|client| async move { client.lease_client().grant(seconds, None).await })
            .await?;
        Ok(granted.id())
    }

    /// Ends a lease of etcd, and with it the owner's key. If that fails, both go in time.
    async fn revoke(&self, lease: i64) {
        // Over a connection that was lost, the first question or two are refused before there is another.
        const ATTEMPTS: u32 = 3;

        let ask = || {
            self.store
                .ask(|client| async move { client.lease_client().revoke(lease).await })
        };
        let asked = async {
            for _ in 0..ATTEMPTS {
                if ask().await.is_ok() {
                    break;
                }
            }
        };
        // Nobody waits longer than for one answer.
        let _ = Delay::within(self.store.timeout, asked).await;
    }

    /// What is kept of a grant's node, in one moment.
    async fn read(&self, grant: &Grant) -> Result<Kept, Error> {
        let (key, owner) = (self.node_key(grant.node()), self.owner_key(grant.node()));
        let [found, owner] = self.store.read([&key, &owner]).await?;
        let found = found.ok_or_else(|| lost(&key, CREATE))?;
        Ok(Kept {
            record: self.record(grant.node(), found.value())?,
            revision: found.mod_revision(),
            owner: owner.as_ref().map(Owner::from),
        })
    }

    /// The owner of a grant's node, whose the grant is by its epoch.
    fn owner(&self, grant: &Grant, kept: &Kept) -> Result<Owner, Error> {
        let why = "its lease has expired, or was revoked";
        kept.owner.ok_or_else(|| self.fenced(grant, why))
    }

    fn fenced(&self, grant: &Grant, why: &str) -> Error {
        Error::coordination(
            CoordinationFailure::Fenced,
            format!("etcd, {}: {grant} is no longer held: {why}", self.store.key),
        )
    }
}

impl AsyncNodeAllocator for EtcdLease {
    async fn acquire(&self, now: Timestamp, last: Option<Timestamp>) -> Result<Grant, Error> {
        let mut lease = None;
        let taken = self.take(now, last, &mut lease).await;
        if let (Err(_), Some(lease)) = (&taken, lease) {
            // A node that was taken all the same is free again, above the ceiling that nobody heard of.
            self.revoke(lease).await;
        }
        taken
    }

    async fn renew(&self, grant: &Grant, now: Timestamp) -> Result<Grant, Error> {
        let kept = self.read(grant).await?;
        let stored = kept.record;
        // Whose the node is comes first: it says more than that the lease is over.
        let ceiling = self.terms.renewed(
            grant,
            stored.epoch,
            stored.ceiling,
            now,
            Some(SystemClock.now()),
        )?;
        let owner = self.owner(grant, &kept)?;
        let renewed = Grant::new(grant.node(), grant.epoch(), grant.floor(), ceiling)?;
        let alive = self
            .store
            .try_ask(|client| async move { client.lease_client().keep_alive(owner.lease).await })
            .await?;
        match alive {
            Ok(_) => {}
            Err(Cause::LeaseKeepAliveError(_)) => {
                return Err(self.fenced(grant, "its lease has expired, or was revoked"));
            }
            Err(error) => return Err(crate::error::failed(&self.store.key, &error)),
        }
        let key = self.node_key(grant.node());
        let (_, refused) = self
            .store
            .swap(
                [
                    is_of_revision(&key, kept.revision),
                    is_of_revision(&self.owner_key(grant.node()), owner.revision),
                ],
                [put(&key, record_of(grant, ceiling))],
                [],
            )
            .await?;
        match refused {
            None => Ok(renewed),
            Some(_) => Err(self.fenced(grant, "somebody else has moved its ceiling")),
        }
    }

    async fn release(&self, grant: &Grant, last: Option<Timestamp>) -> Result<(), Error> {
        let kept = self.read(grant).await?;
        let stored = kept.record;
        let ceiling = self
            .terms
            .released(grant, stored.epoch, stored.ceiling, last)?;
        let owner = self.owner(grant, &kept)?;
        let (key, owner_key) = (self.node_key(grant.node()), self.owner_key(grant.node()));
        let (_, refused) = self
            .store
            .swap(
                [
                    is_of_revision(&key, kept.revision),
                    is_of_revision(&owner_key, owner.revision),
                ],
                [
                    put(&key, record_of(grant, ceiling)),
                    TxnOp::delete(owner_key, None),
                ],
                [],
            )
            .await?;
        if refused.is_some() {
            return Err(self.fenced(grant, "somebody else has moved its ceiling"));
        }
        self.revoke(owner.lease).await;
        Ok(())
    }

    fn terms(&self) -> &LeaseTerms {
        &self.terms
    }
}

fn record_of(grant: &Grant, ceiling: Timestamp) -> String {
    NodeRecord {
        epoch: grant.epoch(),
        ceiling,
    }
    .to_string()
}
