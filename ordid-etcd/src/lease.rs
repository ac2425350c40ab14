//! Node leases, each a key with its owner below it.

use core::time::Duration;
use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use etcd_client::{Client, Error as Cause, GetOptions, KeyValue, PutOptions, TxnOp};
use ordid_core::{
    Error,
    clock::{Clock as _, Delay, SystemClock, Timestamp},
    coordination::{
        AsyncNodeAllocator, CoordinationFailure, Grant, LeaseTerms, NodeRecord,
        swap::{self, Change, StoredNode, StoredNodes, SwapStore},
    },
};

use crate::{
    error::{damaged, lost},
    store::{Store, is_of_revision, parse, put},
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

/// What a swap compares: the revisions of a node's two keys.
#[derive(Debug, Clone, Copy, Default)]
struct Version {
    /// When the record was written; 0 if it never was.
    record: i64,
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

    fn stored(
        &self,
        node: u64,
        found: &KeyValue,
        owner: Option<Owner>,
    ) -> Result<StoredNode<Version>, Error> {
        let record = NodeRecord::parse(found.value());
        Ok(StoredNode {
            record: record.ok_or_else(|| damaged(&self.node_key(node), found.value()))?,
            is_held: owner.is_some(),
            store_now: Some(SystemClock.now()),
            version: Version {
                record: found.mod_revision(),
                owner,
            },
        })
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
    async fn kept(&self) -> Result<BTreeMap<u64, StoredNode<Version>>, Error> {
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
                        if let Some(node) = swap::node_of(name, &self.terms) {
                            kept.insert(node, self.stored(node, found, None)?);
                        }
                    }
                    Some((node, OWNER)) => {
                        if let Some(node) = swap::node_of(node, &self.terms) {
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
            if let Some(stored) = kept.get_mut(&node) {
                stored.is_held = true;
                stored.version.owner = Some(owner);
            }
        }
        Ok(kept)
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

    fn fenced(&self, grant: &Grant, why: &str) -> Error {
        Error::coordination(
            CoordinationFailure::Fenced,
            format!("etcd, {}: {grant} is no longer held: {why}", self.store.key),
        )
    }

    fn call(&self) -> Call<'_> {
        Call {
            lease: self,
            etcd_lease: Mutex::new(None),
        }
    }
}

/// One call, as core's loop asks for its steps.
struct Call<'l> {
    lease: &'l EtcdLease,
    /// The lease of etcd that a new owner goes with. It is made once there is something to take.
    etcd_lease: Mutex<Option<i64>>,
}

impl Call<'_> {
    fn made(&self) -> Option<i64> {
        let made = self.etcd_lease.lock();
        *made.unwrap_or_else(PoisonError::into_inner)
    }

    async fn etcd_lease(&self) -> Result<i64, Error> {
        if let Some(id) = self.made() {
            return Ok(id);
        }
        let id = self.lease.etcd_lease().await?;
        let made = self.etcd_lease.lock();
        *made.unwrap_or_else(PoisonError::into_inner) = Some(id);
        Ok(id)
    }

    /// The owner of a grant's node, whose the grant is by its epoch.
    fn owner(&self, grant: &Grant, stored: &StoredNode<Version>) -> Result<Owner, Error> {
        let owner = stored.version.owner;
        owner.ok_or_else(|| self.lease.fenced(grant, GONE))
    }
}

/// Why a node has no owner.
const GONE: &str = "its lease has expired, or was revoked";

impl SwapStore for Call<'_> {
    type Version = Version;

    fn place(&self) -> String {
        format!("etcd, {}", self.lease.store.key)
    }

    fn terms(&self) -> &LeaseTerms {
        &self.lease.terms
    }

    async fn read_all(&self) -> Result<StoredNodes<Version>, Error> {
        // Also tells that the leases are there.
        let ceiling = self.lease.floor().await?;
        let granted = self.lease.kept().await?;
        Ok(StoredNodes {
            never_granted: StoredNode {
                record: NodeRecord { epoch: 0, ceiling },
                is_held: false,
                store_now: Some(SystemClock.now()),
                version: Version::default(),
            },
            granted,
        })
    }

    /// What is kept of a node, in one moment.
    async fn read(&self, node: u64) -> Result<StoredNode<Version>, Error> {
        let (key, owner) = (self.lease.node_key(node), self.lease.owner_key(node));
        let [found, owner] = self.lease.store.read([&key, &owner]).await?;
        let found = found.ok_or_else(|| lost(&key, CREATE))?;
        self.lease
            .stored(node, &found, owner.as_ref().map(Owner::from))
    }

    async fn check_holder(&self, grant: &Grant, stored: &StoredNode<Version>) -> Result<(), Error> {
        self.owner(grant, stored).map(drop)
    }

    async fn keep_alive(
        &self,
        grant: &Grant,
        stored: &StoredNode<Version>,
    ) -> Result<Option<Timestamp>, Error> {
        let (store, owner) = (&self.lease.store, self.owner(grant, stored)?);
        let alive = store
            .try_ask(|client| async move { client.lease_client().keep_alive(owner.lease).await })
            .await?;
        match alive {
            Ok(_) => Ok(stored.store_now),
            Err(Cause::LeaseKeepAliveError(_)) => Err(self.lease.fenced(grant, GONE)),
            Err(error) => Err(crate::error::failed(&store.key, &error)),
        }
    }

    async fn swap(
        &self,
        node: u64,
        read: &StoredNode<Version>,
        record: NodeRecord,
        change: Change,
    ) -> Result<bool, Error> {
        let (key, owner) = (self.lease.node_key(node), self.lease.owner_key(node));
        let of_owner = read.version.owner.map_or(0, |owner| owner.revision);
        let unchanged = [
            is_of_revision(&key, read.version.record),
            is_of_revision(&owner, of_owner),
        ];
        let mut write = vec![put(&key, record.to_string())];
        match change {
            Change::Acquire => {
                let of_lease = PutOptions::new().with_lease(self.etcd_lease().await?);
                write.push(TxnOp::put(owner, "", Some(of_lease)));
            }
            Change::Renew => {}
            Change::Release => write.push(TxnOp::delete(owner, None)),
        }
        let (_, refused) = self.lease.store.swap(unchanged, write, []).await?;
        if let (None, Change::Release, Some(owner)) = (&refused, change, read.version.owner) {
            self.lease.revoke(owner.lease).await;
        }
        Ok(refused.is_none())
    }
}

impl AsyncNodeAllocator for EtcdLease {
    async fn acquire(&self, now: Timestamp, last: Option<Timestamp>) -> Result<Grant, Error> {
        let call = self.call();
        let taken = swap::acquire(&call, now, last).await;
        if let (Err(_), Some(lease)) = (&taken, call.made()) {
            // A node that was taken all the same is free again, above the ceiling that nobody heard of.
            self.revoke(lease).await;
        }
        taken
    }

    async fn renew(&self, grant: &Grant, now: Timestamp) -> Result<Grant, Error> {
        swap::renew(&self.call(), grant, now).await
    }

    async fn release(&self, grant: &Grant, last: Option<Timestamp>) -> Result<(), Error> {
        swap::release(&self.call(), grant, last).await
    }

    fn terms(&self) -> &LeaseTerms {
        &self.terms
    }
}
