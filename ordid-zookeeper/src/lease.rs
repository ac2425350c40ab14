//! Node leases, each a node of the tree with its owner below it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use ordid_core::{
    Error,
    clock::Timestamp,
    coordination::{
        AsyncNodeAllocator, CoordinationFailure, Grant, LeaseTerms, NodeRecord,
        swap::{self, Change, StoredNode, StoredNodes, SwapStore},
    },
};
use zookeeper_client::{Client, CreateMode, Error as Cause, MultiReadResult, Stat};

use crate::{
    Session,
    error::{damaged, failed, failed_or_lost},
    tree,
};

/// The node below a leased one that lives as long as its holder's session.
const OWNER: &str = "owner";
/// How many nodes are read in one question: their paths have to fit a packet.
const PAGE: usize = 1_000;

/// Leases of nodes, in a tree of ZooKeeper.
///
/// ```text
/// /app/orders            "1800000000000"       nodes that are new begin there
/// /app/orders/7          "4 1800000003000"     epoch, ceiling
/// /app/orders/7/owner    ephemeral             it has a holder
/// ```
///
/// Times are milliseconds since 1970. The ceiling moves only from the version that was read. The owner node
/// disappears with its session. Then the leased node is free, and its former holder is refused at the next renewal.
/// So the nodes of a process that has died come back after the time of a session, not after the [time to
/// live](LeaseTerms::ttl) of the terms.
///
/// A session may go on after a holder has stopped. If a release failed, the next [`acquire`](AsyncNodeAllocator::acquire) of
/// this value or of a clone gives the node back. If a renewal was not answered, and its holder has not renewed since,
/// `acquire` does the same after the time to live.
///
/// The store's clock is the clock of the leader, which stamps each write.
#[derive(Debug, Clone)]
pub struct ZooKeeperLease {
    session: Session,
    path: String,
    terms: LeaseTerms,
    /// The nodes whose owner may stay as long as the session, although its holder has stopped.
    unheard: Arc<Mutex<BTreeMap<u64, Unheard>>>,
}

/// A grant whose renewal or release may have been carried out unheard.
#[derive(Debug, Clone, Copy)]
struct Unheard {
    epoch: u64,
    /// When it was to be renewed. Its holder may go on. `None`: the holder has stopped.
    renewed: Option<Instant>,
}

/// Notes a grant unless an answer comes: also where the future that waits for it is dropped.
struct Unanswered<'l> {
    lease: &'l ZooKeeperLease,
    node: u64,
    unheard: Option<Unheard>,
}

impl<'l> Unanswered<'l> {
    fn new(lease: &'l ZooKeeperLease, node: u64, unheard: Unheard) -> Self {
        Self {
            lease,
            node,
            unheard: Some(unheard),
        }
    }

    fn answered(&mut self) {
        self.unheard = None;
    }
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if let Some(unheard) = self.unheard {
            self.lease.unheard().insert(self.node, unheard);
        }
    }
}

impl ZooKeeperLease {
    /// Leases of the nodes of these terms, below a node of the tree.
    ///
    /// # Errors
    ///
    /// [`Mismatch`](CoordinationFailure::Mismatch) if it is no path.
    pub fn new(
        session: Session,
        path: impl Into<String>,
        terms: LeaseTerms,
    ) -> Result<Self, Error> {
        Ok(Self {
            session,
            path: tree::checked(path.into())?,
            terms,
            unheard: Arc::default(),
        })
    }

    /// Declares that the leases are new. Before this there are none, and each call fails with
    /// [`StateLost`](CoordinationFailure::StateLost). Call it in a deployment, not at a program's start, which
    /// would take servers that have lost their data for new ones.
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
        let data = floor.as_unix_millis().to_string();
        tree::create(&self.session, &self.path, &data).await
    }

    fn unheard(&self) -> MutexGuard<'_, BTreeMap<u64, Unheard>> {
        self.unheard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The grants whose holders have stopped, or have been silent for the time to live.
    fn abandoned(&self) -> Vec<(u64, u64)> {
        let is_over = |unheard: &Unheard| {
            let renewed = unheard.renewed;
            renewed.is_none_or(|renewed| renewed.elapsed() >= self.terms.ttl())
        };
        let unheard = self.unheard();
        let abandoned = unheard.iter().filter(|(_, unheard)| is_over(unheard));
        abandoned
            .map(|(&node, unheard)| (node, unheard.epoch))
            .collect()
    }

    fn node_path(&self, node: u64) -> String {
        format!("{}/{node}", self.path)
    }

    fn owner_path(&self, node: u64) -> String {
        format!("{}/{node}/{OWNER}", self.path)
    }

    fn failed(&self, error: &Cause) -> Error {
        failed_or_lost(&self.path, "ZooKeeperLease::create", error)
    }

    fn fenced(&self, grant: &Grant, why: &str) -> Error {
        Error::coordination(
            CoordinationFailure::Fenced,
            format!("ZooKeeper, {}: {grant} is no longer held: {why}", self.path),
        )
    }

    /// Begins a call: its steps are in one session.
    async fn tree(&self) -> Result<Tree<'_>, Error> {
        Ok(Tree {
            lease: self,
            client: self.session.client().await?,
        })
    }
}

/// The tree in the session of one call, as core's loop reads and writes it.
struct Tree<'l> {
    lease: &'l ZooKeeperLease,
    client: Client,
}

impl Tree<'_> {
    async fn floor(&self) -> Result<Timestamp, Error> {
        let path = &self.lease.path;
        let (data, _) = self
            .client
            .get_data(path)
            .await
            .map_err(|error| self.lease.failed(&error))?;
        let floor = tree::parse(&data).and_then(|it| Timestamp::from_unix_millis(it).ok());
        floor.ok_or_else(|| damaged(path, &data))
    }

    fn stored(&self, node: u64, data: &[u8], stat: &Stat) -> Result<StoredNode<i32>, Error> {
        let record = NodeRecord::parse(data);
        Ok(StoredNode {
            record: record.ok_or_else(|| damaged(&self.lease.node_path(node), data))?,
            is_held: stat.num_children != 0,
            store_now: None,
            version: stat.version,
        })
    }

    /// Makes the owner of a node, and the node itself if it was never granted. Returns the leader's
    /// time, or `None` if the node has an owner.
    async fn own(&self, node: u64, never_granted: &NodeRecord) -> Result<Option<Timestamp>, Error> {
        let Self { lease, client } = self;
        let owner = lease.owner_path(node);
        let ephemeral = lease.session.create_options(CreateMode::Ephemeral);
        let mut created = client.create(&owner, b"", &ephemeral).await;
        if created == Err(Cause::NoNode) {
            // The node itself is missing.
            let path = lease.node_path(node);
            let data = never_granted.to_string();
            let persistent = lease.session.create_options(CreateMode::Persistent);
            match client.create(&path, data.as_bytes(), &persistent).await {
                Ok(_) | Err(Cause::NodeExists) => {}
                Err(error) => return Err(lease.failed(&error)),
            }
            created = client.create(&owner, b"", &ephemeral).await;
        }
        match created {
            Ok((stat, _)) => Ok(Some(store_time(stat.ctime))),
            Err(Cause::NodeExists) => Ok(None),
            Err(error) => {
                // It may have been made after all.
                self.disown(node).await;
                Err(failed(&owner, &error))
            }
        }
    }

    /// Removes the owner of a node, if it is this session. If that fails, it goes with the session.
    async fn disown(&self, node: u64) {
        let _ = self.try_disown(node).await;
    }

    /// As [`disown`](Self::disown), but says whether it failed.
    async fn try_disown(&self, node: u64) -> Result<(), Cause> {
        let Self { lease, client } = self;
        let owner = lease.owner_path(node);
        let Some(stat) = client.check_stat(&owner).await? else {
            return Ok(());
        };
        if stat.ephemeral_owner != client.session_id().0 {
            return Ok(());
        }
        match client.delete(&owner, Some(stat.version)).await {
            // Its holder goes on, or somebody else removed it.
            Ok(()) | Err(Cause::BadVersion | Cause::NoNode) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Writes a node and removes its owner, in one transaction.
    async fn write_and_disown(
        &self,
        node: u64,
        data: &str,
        version: Option<i32>,
    ) -> Result<(), Cause> {
        let mut writer = self.client.new_multi_writer();
        writer.add_set_data(&self.lease.node_path(node), data.as_bytes(), version)?;
        writer.add_delete(&self.lease.owner_path(node), None)?;
        writer.commit().await?;
        Ok(())
    }

    /// Gives back the node of a grant that was renewed unheard: its holder is refused from now on, and its owner would stay as
    /// long as the session.
    async fn give_back_unheard(&self, grant: &Grant) {
        let (node, epoch) = (grant.node(), grant.epoch());
        if let Some(unheard) = self.lease.unheard().get_mut(&node)
            && unheard.epoch == epoch
        {
            unheard.renewed = None;
        } else {
            return;
        }
        self.give_back(node, epoch).await;
    }

    /// Gives back a node whose holder has stopped. If that fails, the next [`acquire`](AsyncNodeAllocator::acquire) tries
    /// again.
    async fn give_back(&self, node: u64, epoch: u64) {
        let given_back = match self.read(node).await {
            Ok(stored) if stored.record.epoch == epoch => self.try_disown(node).await.is_ok(),
            // It was granted anew.
            Ok(_) => true,
            Err(error) => error.coordination_failure() != Some(CoordinationFailure::Unavailable),
        };
        let mut unheard = self.lease.unheard();
        if given_back && unheard.get(&node).is_some_and(|it| it.epoch == epoch) {
            unheard.remove(&node);
        }
    }

    /// The owner of a grant's node, which has to be this session.
    async fn owner(&self, grant: &Grant) -> Result<Stat, Error> {
        let Self { lease, client } = self;
        let owner = lease.owner_path(grant.node());
        let stat = client.check_stat(&owner).await;
        let stat = stat.map_err(|error| failed(&owner, &error))?;
        let ours = stat.filter(|stat| stat.ephemeral_owner == client.session_id().0);
        ours.ok_or_else(|| lease.fenced(grant, "its session has expired"))
    }
}

impl SwapStore for Tree<'_> {
    type Version = i32;

    fn place(&self) -> String {
        format!("ZooKeeper, {}", self.lease.path)
    }

    fn terms(&self) -> &LeaseTerms {
        &self.lease.terms
    }

    async fn read_all(&self) -> Result<StoredNodes<i32>, Error> {
        let Self { lease, client } = self;
        // Also tells that the leases are there.
        let ceiling = self.floor().await?;
        let children = client.list_children(&lease.path).await;
        let children = children.map_err(|error| lease.failed(&error))?;
        // Other terms may name other nodes.
        let granted = children.iter();
        let granted: Vec<u64> = granted
            .filter_map(|name| swap::node_of(name, &lease.terms))
            .collect();
        let never_granted = StoredNode {
            record: NodeRecord { epoch: 0, ceiling },
            is_held: false,
            store_now: None,
            // No version: the node is made, and read again, before it is written.
            version: 0,
        };
        let mut stored = BTreeMap::new();
        for page in granted.chunks(PAGE) {
            let mut reader = client.new_multi_reader();
            for &node in page {
                let path = lease.node_path(node);
                reader
                    .add_get_data(&path)
                    .map_err(|error| failed(&path, &error))?;
            }
            let found = reader
                .commit()
                .await
                .map_err(|error| lease.failed(&error))?;
            for (&node, found) in page.iter().zip(found) {
                let found = match found {
                    // The data of a node that is held says nothing here.
                    MultiReadResult::Data { data, stat } if stat.num_children == 0 => {
                        self.stored(node, &data, &stat)?
                    }
                    // It has an owner, or was deleted meanwhile.
                    _ => StoredNode {
                        is_held: true,
                        ..never_granted.clone()
                    },
                };
                stored.insert(node, found);
            }
        }
        Ok(StoredNodes {
            never_granted,
            granted: stored,
        })
    }

    async fn read(&self, node: u64) -> Result<StoredNode<i32>, Error> {
        let path = self.lease.node_path(node);
        let (data, stat) = self
            .client
            .get_data(&path)
            .await
            .map_err(|error| self.lease.failed(&error))?;
        self.stored(node, &data, &stat)
    }

    async fn hold(
        &self,
        node: u64,
        found: StoredNode<i32>,
    ) -> Result<Option<StoredNode<i32>>, Error> {
        let Some(store_now) = self.own(node, &found.record).await? else {
            return Ok(None);
        };
        // Read again, for only the owner moves the ceiling from now on.
        match self.read(node).await {
            Ok(stored) => Ok(Some(StoredNode {
                store_now: Some(store_now),
                ..stored
            })),
            Err(error) => {
                self.disown(node).await;
                Err(error)
            }
        }
    }

    async fn abandon(&self, node: u64) {
        self.disown(node).await;
    }

    async fn check_holder(&self, grant: &Grant, _: &StoredNode<i32>) -> Result<(), Error> {
        self.owner(grant).await.map(drop)
    }

    async fn keep_alive(
        &self,
        grant: &Grant,
        _: &StoredNode<i32>,
    ) -> Result<Option<Timestamp>, Error> {
        let owner = self.owner(grant).await?;
        // Written for its time, which is the store's; and refused to a session that has expired.
        let path = self.lease.owner_path(grant.node());
        match self.client.set_data(&path, b"", Some(owner.version)).await {
            Ok(stat) => Ok(Some(store_time(stat.mtime))),
            Err(Cause::NoNode | Cause::BadVersion) => {
                Err(self.lease.fenced(grant, "its owner's node was replaced"))
            }
            Err(error) => Err(failed(&path, &error)),
        }
    }

    async fn swap(
        &self,
        node: u64,
        read: &StoredNode<i32>,
        record: NodeRecord,
        change: Change,
    ) -> Result<bool, Error> {
        let path = self.lease.node_path(node);
        let version = tree::version(&path, read.version)?;
        let data = record.to_string();
        // A release is noted by its caller, whose first question may already fail.
        let mut unanswered = (change == Change::Renew).then(|| {
            let unheard = Unheard {
                epoch: record.epoch,
                renewed: Some(Instant::now()),
            };
            Unanswered::new(self.lease, node, unheard)
        });
        let written = match change {
            // Both or none, so that a node that is given back is free.
            Change::Release => self.write_and_disown(node, &data, version).await,
            _ => {
                let written = self.client.set_data(&path, data.as_bytes(), version).await;
                written.map(drop)
            }
        };
        let written = match written {
            Ok(()) => true,
            // Read again: without its owner it is held no longer.
            Err(Cause::BadVersion | Cause::NoNode) => false,
            Err(error) => return Err(self.lease.failed(&error)),
        };
        if let Some(unanswered) = &mut unanswered {
            unanswered.answered();
        }
        Ok(written)
    }
}

impl AsyncNodeAllocator for ZooKeeperLease {
    async fn acquire(&self, now: Timestamp, last: Option<Timestamp>) -> Result<Grant, Error> {
        let tree = self.tree().await?;
        for (node, epoch) in self.abandoned() {
            tree.give_back(node, epoch).await;
        }
        swap::acquire(&tree, now, last).await
    }

    async fn renew(&self, grant: &Grant, now: Timestamp) -> Result<Grant, Error> {
        let tree = self.tree().await?;
        let renewed = swap::renew(&tree, grant, now).await;
        match &renewed {
            Ok(_) => drop(self.unheard().remove(&grant.node())),
            Err(error) => {
                if error.coordination_failure() == Some(CoordinationFailure::Fenced) {
                    tree.give_back_unheard(grant).await;
                }
            }
        }
        renewed
    }

    async fn release(&self, grant: &Grant, last: Option<Timestamp>) -> Result<(), Error> {
        let tree = self.tree().await?;
        let unheard = Unheard {
            epoch: grant.epoch(),
            renewed: None,
        };
        let mut unanswered = Unanswered::new(self, grant.node(), unheard);
        let released = swap::release(&tree, grant, last).await;
        let failure = match &released {
            Ok(()) => None,
            Err(error) => error.coordination_failure(),
        };
        if failure == Some(CoordinationFailure::Unavailable) {
            return released;
        }
        unanswered.answered();
        match failure {
            Some(CoordinationFailure::Fenced) => tree.give_back_unheard(grant).await,
            _ => drop(self.unheard().remove(&grant.node())),
        }
        released
    }

    fn terms(&self) -> &LeaseTerms {
        &self.terms
    }
}

/// What the leader stamped.
fn store_time(millis: i64) -> Timestamp {
    Timestamp::saturating_from_unix_millis(u64::try_from(millis).unwrap_or(0))
}
