//! Node leases, each a node of the tree with its owner below it.

use std::collections::HashSet;

use ordid_core::{
    Error,
    clock::Timestamp,
    coordination::{
        AsyncNodeAllocator, CoordinationFailure, Grant, LeaseTerms, NodeRecord, choose_node,
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
/// Times are milliseconds since 1970. The ceiling moves only from the version that was read. The owner
/// goes with its session: then the node is free, and its former holder is refused at the next renewal.
/// So nodes come back after the time of a session, and the [time to live](LeaseTerms::ttl) of the terms
/// says nothing here.
///
/// The store's clock is that of its leader, which stamps what is written.
#[derive(Debug, Clone)]
pub struct ZooKeeperLease {
    session: Session,
    path: String,
    terms: LeaseTerms,
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
        })
    }

    /// Says that the leases are new: until then there are none, and each call is a
    /// [`StateLost`](CoordinationFailure::StateLost). This is part of a deployment, not of a
    /// program's start, which would take servers that have lost their data for new ones.
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

    fn node_path(&self, node: u64) -> String {
        format!("{}/{node}", self.path)
    }

    fn owner_path(&self, node: u64) -> String {
        format!("{}/{node}/{OWNER}", self.path)
    }

    fn failed(&self, error: &Cause) -> Error {
        failed_or_lost(&self.path, "ZooKeeperLease::create", error)
    }

    async fn floor(&self, client: &Client) -> Result<Timestamp, Error> {
        let (data, _) = client
            .get_data(&self.path)
            .await
            .map_err(|error| self.failed(&error))?;
        let floor = tree::parse(&data).and_then(|it| Timestamp::from_unix_millis(it).ok());
        floor.ok_or_else(|| damaged(&self.path, &data))
    }

    /// The nodes that have no owner, the one with the lowest ceiling first. Nodes that were never
    /// granted have the lowest; of them only as many as were, for no more are taken at once.
    async fn free(&self, client: &Client) -> Result<Vec<u64>, Error> {
        let children = client.list_children(&self.path).await;
        let children = children.map_err(|error| self.failed(&error))?;
        let nodes = self.terms.nodes();
        // Other terms may name other nodes.
        let granted = children.iter().filter_map(|name| name.parse().ok());
        let granted: Vec<u64> = granted.filter(|node| nodes.contains(node)).collect();
        let mut free = Vec::new();
        for page in granted.chunks(PAGE) {
            let mut reader = client.new_multi_reader();
            for &node in page {
                let path = self.node_path(node);
                reader
                    .add_get_data(&path)
                    .map_err(|error| failed(&path, &error))?;
            }
            let found = reader.commit().await.map_err(|error| self.failed(&error))?;
            for (&node, found) in page.iter().zip(found) {
                match found {
                    MultiReadResult::Data { data, stat } if stat.num_children == 0 => {
                        free.push((self.record(node, &data)?.ceiling, node));
                    }
                    // It has an owner, or was never granted after all.
                    _ => {}
                }
            }
        }
        free.sort_unstable();
        let known: HashSet<&u64> = granted.iter().collect();
        let never = nodes.filter(|node| !known.contains(node));
        Ok(never
            .take(granted.len() + 1)
            .chain(free.into_iter().map(|(_, node)| node))
            .collect())
    }

    fn record(&self, node: u64, data: &[u8]) -> Result<NodeRecord, Error> {
        NodeRecord::parse(data).ok_or_else(|| damaged(&self.node_path(node), data))
    }

    async fn read(&self, client: &Client, node: u64) -> Result<(NodeRecord, Stat), Error> {
        let (data, stat) = client
            .get_data(&self.node_path(node))
            .await
            .map_err(|error| self.failed(&error))?;
        Ok((self.record(node, &data)?, stat))
    }

    /// Takes a node that had no owner. `None`: somebody else was first.
    async fn take(
        &self,
        client: &Client,
        node: u64,
        now: Timestamp,
        last: Option<Timestamp>,
    ) -> Result<Option<Grant>, Error> {
        let (path, owner) = (self.node_path(node), self.owner_path(node));
        let ephemeral = self.session.create_options(CreateMode::Ephemeral);
        let mut created = client.create(&owner, b"", &ephemeral).await;
        if created == Err(Cause::NoNode) {
            // The node itself is missing.
            let new = NodeRecord {
                epoch: 0,
                ceiling: self.floor(client).await?,
            };
            let persistent = self.session.create_options(CreateMode::Persistent);
            match client
                .create(&path, new.to_string().as_bytes(), &persistent)
                .await
            {
                Ok(_) | Err(Cause::NodeExists) => {}
                Err(error) => return Err(self.failed(&error)),
            }
            created = client.create(&owner, b"", &ephemeral).await;
        }
        let stat = match created {
            Ok((stat, _)) => stat,
            Err(Cause::NodeExists) => return Ok(None),
            Err(error) => {
                // It may have been made after all.
                self.disown(client, node).await;
                return Err(failed(&owner, &error));
            }
        };
        let granted = self
            .grant(client, node, store_time(stat.ctime), now, last)
            .await;
        if !matches!(granted, Ok(Some(_))) {
            self.disown(client, node).await;
        }
        granted
    }

    /// Moves the ceiling of a node of which this session is the owner.
    async fn grant(
        &self,
        client: &Client,
        node: u64,
        store_now: Timestamp,
        now: Timestamp,
        last: Option<Timestamp>,
    ) -> Result<Option<Grant>, Error> {
        let (stored, stat) = self.read(client, node).await?;
        let (floor, ceiling) =
            self.terms
                .range(Some(stored.ceiling), now, last, Some(store_now))?;
        let grant = Grant::new(node, stored.epoch + 1, floor, ceiling)?;
        let swapped = self.swap(client, &grant, ceiling, &stat).await?;
        Ok(swapped.then_some(grant))
    }

    /// Returns whether the node was still of the version that was read.
    async fn swap(
        &self,
        client: &Client,
        grant: &Grant,
        ceiling: Timestamp,
        read: &Stat,
    ) -> Result<bool, Error> {
        let path = self.node_path(grant.node());
        let record = NodeRecord {
            epoch: grant.epoch(),
            ceiling,
        };
        let version = tree::version(&path, read)?;
        match client
            .set_data(&path, record.to_string().as_bytes(), version)
            .await
        {
            Ok(_) => Ok(true),
            Err(Cause::BadVersion) => Ok(false),
            Err(error) => Err(self.failed(&error)),
        }
    }

    /// Removes the owner of a node, if it is this session. If that fails, it goes with the session.
    async fn disown(&self, client: &Client, node: u64) {
        let owner = self.owner_path(node);
        if let Ok(Some(stat)) = client.check_stat(&owner).await
            && stat.ephemeral_owner == client.session_id().0
        {
            let _ = client.delete(&owner, Some(stat.version)).await;
        }
    }

    /// The owner of a grant's node, which has to be this session.
    async fn owner(&self, client: &Client, grant: &Grant) -> Result<Stat, Error> {
        let owner = self.owner_path(grant.node());
        let stat = client.check_stat(&owner).await;
        let stat = stat.map_err(|error| failed(&owner, &error))?;
        let ours = stat.filter(|stat| stat.ephemeral_owner == client.session_id().0);
        ours.ok_or_else(|| self.fenced(grant, "its session has expired"))
    }

    fn fenced(&self, grant: &Grant, why: &str) -> Error {
        Error::coordination(
            CoordinationFailure::Fenced,
            format!("ZooKeeper, {}: {grant} is no longer held: {why}", self.path),
        )
    }
}

impl AsyncNodeAllocator for ZooKeeperLease {
    async fn acquire(&self, now: Timestamp, last: Option<Timestamp>) -> Result<Grant, Error> {
        let client = self.session.client().await?;
        let mut lost_races = 0;
        loop {
            // Also tells that the leases are there.
            self.floor(&client).await?;
            let free = self.free(&client).await?;
            let Some(node) = choose_node(&free, lost_races)? else {
                return Err(Error::coordination(
                    CoordinationFailure::NoFreeNode,
                    format!(
                        "ZooKeeper, {}: all nodes {:?} are held",
                        self.path,
                        self.terms.nodes()
                    ),
                ));
            };
            if let Some(grant) = self.take(&client, node, now, last).await? {
                return Ok(grant);
            }
            lost_races += 1;
        }
    }

    async fn renew(&self, grant: &Grant, now: Timestamp) -> Result<Grant, Error> {
        let client = self.session.client().await?;
        let (stored, stat) = self.read(&client, grant.node()).await?;
        let renew = |store_now| {
            self.terms
                .renewed(grant, stored.epoch, stored.ceiling, now, store_now)
        };
        // Whose the node is comes first: it says more than that the session is over.
        renew(None)?;
        let owner = self.owner(&client, grant).await?;
        // Written for its time, which is the store's; and refused to a session that has expired.
        let path = self.owner_path(grant.node());
        let written = client.set_data(&path, b"", Some(owner.version)).await;
        let written = match written {
            Ok(stat) => stat,
            Err(Cause::NoNode | Cause::BadVersion) => {
                return Err(self.fenced(grant, "its owner's node was replaced"));
            }
            Err(error) => return Err(failed(&path, &error)),
        };
        let ceiling = renew(Some(store_time(written.mtime)))?;
        let renewed = Grant::new(grant.node(), grant.epoch(), grant.floor(), ceiling)?;
        if self.swap(&client, grant, ceiling, &stat).await? {
            Ok(renewed)
        } else {
            Err(self.fenced(grant, "somebody else has moved its ceiling"))
        }
    }

    async fn release(&self, grant: &Grant, last: Option<Timestamp>) -> Result<(), Error> {
        let client = self.session.client().await?;
        let (stored, stat) = self.read(&client, grant.node()).await?;
        let ceiling = self
            .terms
            .released(grant, stored.epoch, stored.ceiling, last)?;
        self.owner(&client, grant).await?;
        if !self.swap(&client, grant, ceiling, &stat).await? {
            return Err(self.fenced(grant, "somebody else has moved its ceiling"));
        }
        self.disown(&client, grant.node()).await;
        Ok(())
    }

    fn terms(&self) -> &LeaseTerms {
        &self.terms
    }
}

/// What the leader stamped.
fn store_time(millis: i64) -> Timestamp {
    Timestamp::saturating_from_unix_millis(u64::try_from(millis).unwrap_or(0))
}
