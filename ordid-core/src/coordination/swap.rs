//! Node leases over compare-and-swap: acquire, renew and release, written once for every store that
//! can replace a record only if it is unchanged (Redis by a script, ZooKeeper by a version, etcd by a
//! transaction).
//!
//! ```text
//! acquire   read_all -> choose a free node -> hold -> swap      another was faster: start again
//! renew     read -> keep_alive -> swap                          the record changed: start again
//! release   read -> check_holder -> swap
//! ```
//!
//! A store implements [`SwapStore`], which does the I/O; its adapter then forwards
//! [`AsyncNodeAllocator`](super::AsyncNodeAllocator) or [`NodeAllocator`](super::NodeAllocator) to
//! [`acquire`], [`renew`] and [`release`]. [`LeaseTerms`] does the arithmetic.

use std::{collections::BTreeMap, future::Future};

use super::{CoordinationFailure, Grant, LeaseTerms, NodeRecord, choose_node};
use crate::{clock::Timestamp, error::Error};

/// A store that keeps a [`NodeRecord`] for each node, and replaces it only if it is unchanged.
///
/// `Version` is what the store compares: a version number, a revision, or the record's text. Each
/// method is one step of the loops in this module; none of them may decide whether a node may be
/// granted.
pub trait SwapStore: Sync {
    /// What [`swap`](Self::swap) compares.
    type Version: Send + Sync;

    /// Returns where the leases are kept, for messages: `Redis, key orders`.
    fn place(&self) -> String;

    /// Returns the terms of the leases.
    fn terms(&self) -> &LeaseTerms;

    /// Reads all nodes that were granted at least once.
    ///
    /// # Errors
    ///
    /// [`StateLost`](CoordinationFailure::StateLost) if nobody said that the leases are new,
    /// [`Mismatch`](CoordinationFailure::Mismatch) if a record of the terms' nodes is damaged, and
    /// [`Unavailable`](CoordinationFailure::Unavailable).
    fn read_all(&self) -> impl Future<Output = Result<StoredNodes<Self::Version>, Error>> + Send;

    /// Reads the node of a grant.
    ///
    /// # Errors
    ///
    /// As [`read_all`](Self::read_all).
    fn read(
        &self,
        node: u64,
    ) -> impl Future<Output = Result<StoredNode<Self::Version>, Error>> + Send;

    /// Occupies a free node before its record is replaced, in a store whose holder is marked by
    /// something apart from the record, such as a node of a session. Returns the node as it is stored
    /// now, or `None` if another holder was faster. By default there is nothing to do.
    ///
    /// # Errors
    ///
    /// As [`read_all`](Self::read_all).
    fn hold(
        &self,
        _node: u64,
        found: StoredNode<Self::Version>,
    ) -> impl Future<Output = Result<Option<StoredNode<Self::Version>>, Error>> + Send {
        std::future::ready(Ok(Some(found)))
    }

    /// Undoes [`hold`](Self::hold) after the grant failed. A failure here is not reported: the node
    /// becomes free as if its holder had died.
    fn abandon(&self, _node: u64) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// Checks that the node still has its holder, in a store whose holder is marked apart from the
    /// record. By default the record says it all.
    ///
    /// # Errors
    ///
    /// [`Fenced`](CoordinationFailure::Fenced) if it has none, or another.
    fn check_holder(
        &self,
        _grant: &Grant,
        _stored: &StoredNode<Self::Version>,
    ) -> impl Future<Output = Result<(), Error>> + Send {
        std::future::ready(Ok(()))
    }

    /// Returns the record that a holder's grant is compared with. A store may know that it lost the holder's last
    /// renewal and that nobody else got the node; it can return another record then. By default it is the record
    /// that was read.
    fn record_of(&self, _grant: &Grant, stored: &StoredNode<Self::Version>) -> NodeRecord {
        stored.record
    }

    /// Tells the store that the holder is alive, and returns the store's clock, if it has one. By
    /// default [`swap`](Self::swap) does that, and the clock is the one that was read.
    ///
    /// # Errors
    ///
    /// As [`check_holder`](Self::check_holder).
    fn keep_alive(
        &self,
        _grant: &Grant,
        stored: &StoredNode<Self::Version>,
    ) -> impl Future<Output = Result<Option<Timestamp>, Error>> + Send {
        std::future::ready(Ok(stored.store_now))
    }

    /// Replaces the record of a node if the store still has the version that was read. Returns whether
    /// it did. When it returns `true`, the record is durable.
    ///
    /// # Errors
    ///
    /// As [`read_all`](Self::read_all).
    fn swap(
        &self,
        node: u64,
        read: &StoredNode<Self::Version>,
        record: NodeRecord,
        change: Change,
    ) -> impl Future<Output = Result<bool, Error>> + Send;
}

/// Why a record is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// A free node gets a holder.
    Acquire,
    /// The holder gets more time.
    Renew,
    /// The node becomes free.
    Release,
}

/// A node as a store keeps it.
#[derive(Debug, Clone)]
pub struct StoredNode<V> {
    /// How often it was granted, and up to when.
    pub record: NodeRecord,
    /// Whether somebody holds it.
    pub is_held: bool,
    /// The store's clock when it was read, if it tells one.
    pub store_now: Option<Timestamp>,
    /// What [`SwapStore::swap`] compares.
    pub version: V,
}

/// What [`SwapStore::read_all`] found.
#[derive(Debug, Clone)]
pub struct StoredNodes<V> {
    /// A node that was never granted: its ceiling is where new nodes begin.
    pub never_granted: StoredNode<V>,
    /// The nodes that were granted. Those of other terms are left alone.
    pub granted: BTreeMap<u64, StoredNode<V>>,
}

impl<V> StoredNodes<V> {
    /// Returns the free nodes, the one with the lowest ceiling first. Of those that were never granted
    /// there are only one more than those that were: no more are taken at once, and a layout may have
    /// room for millions.
    fn free(&self, terms: &LeaseTerms) -> Vec<u64> {
        let granted = self.granted.range(terms.nodes());
        let mut free: Vec<(Timestamp, u64)> = granted
            .filter(|(_, stored)| !stored.is_held)
            .map(|(&node, stored)| (stored.record.ceiling, node))
            .collect();
        let never = terms
            .nodes()
            .filter(|node| !self.granted.contains_key(node));
        let ceiling = self.never_granted.record.ceiling;
        free.extend(
            never
                .take(self.granted.len() + 1)
                .map(|node| (ceiling, node)),
        );
        free.sort_unstable();
        free.into_iter().map(|(_, node)| node).collect()
    }

    fn into_node(mut self, node: u64) -> StoredNode<V> {
        self.granted.remove(&node).unwrap_or(self.never_granted)
    }
}

/// Returns the node of these terms that a store keeps by this name: its number in decimal digits. What has another name, such as
/// `007` or the number of a node of other terms, is none.
pub fn node_of(name: &str, terms: &LeaseTerms) -> Option<u64> {
    let node: u64 = name.parse().ok()?;
    (terms.nodes().contains(&node) && node.to_string() == name).then_some(node)
}

/// Takes a free node: the work of [`NodeAllocator::acquire`](super::NodeAllocator::acquire).
///
/// # Errors
///
/// It returns the errors of [`NodeAllocator::acquire`](super::NodeAllocator::acquire).
pub async fn acquire<S: SwapStore>(
    store: &S,
    now: Timestamp,
    last: Option<Timestamp>,
) -> Result<Grant, Error> {
    let mut lost_races = 0;
    loop {
        let nodes = store.read_all().await?;
        let Some(node) = choose_node(&nodes.free(store.terms()), lost_races)? else {
            return Err(Error::coordination(
                CoordinationFailure::NoFreeNode,
                format!(
                    "{}: all nodes {:?} are held",
                    store.place(),
                    store.terms().nodes()
                ),
            ));
        };
        if let Some(held) = store.hold(node, nodes.into_node(node)).await? {
            let granted = grant(store, node, &held, now, last).await;
            if !matches!(granted, Ok(Some(_))) {
                store.abandon(node).await;
            }
            if let Some(grant) = granted? {
                return Ok(grant);
            }
        }
        lost_races += 1;
    }
}

/// Moves the record of a node that is free, or is held for this grant. `None`: it has changed.
async fn grant<S: SwapStore>(
    store: &S,
    node: u64,
    stored: &StoredNode<S::Version>,
    now: Timestamp,
    last: Option<Timestamp>,
) -> Result<Option<Grant>, Error> {
    let NodeRecord { epoch, ceiling } = stored.record;
    let (floor, ceiling) = store
        .terms()
        .range(Some(ceiling), now, last, stored.store_now)?;
    let epoch = epoch.checked_add(1).ok_or_else(|| {
        Error::coordination(
            CoordinationFailure::Mismatch,
            format!("{}: node {node} was granted 2^64 - 1 times", store.place()),
        )
    })?;
    let grant = Grant::new(node, epoch, floor, ceiling)?;
    let record = NodeRecord {
        epoch: grant.epoch(),
        ceiling,
    };
    let swapped = store.swap(node, stored, record, Change::Acquire).await?;
    Ok(swapped.then_some(grant))
}

/// Moves the ceiling of a grant on: the work of [`NodeAllocator::renew`](super::NodeAllocator::renew).
///
/// # Errors
///
/// It returns the errors of [`NodeAllocator::renew`](super::NodeAllocator::renew).
pub async fn renew<S: SwapStore>(store: &S, grant: &Grant, now: Timestamp) -> Result<Grant, Error> {
    loop {
        let stored = store.read(grant.node()).await?;
        let NodeRecord { epoch, ceiling } = store.record_of(grant, &stored);
        let terms = store.terms();
        // First of all, whose node it is: that says more than the end of a session.
        terms.renewed(grant, epoch, ceiling, now, stored.store_now)?;
        let store_now = store.keep_alive(grant, &stored).await?;
        let ceiling = terms.renewed(grant, epoch, ceiling, now, store_now)?;
        let renewed = Grant::new(grant.node(), grant.epoch(), grant.floor(), ceiling)?;
        let record = NodeRecord { epoch, ceiling };
        if store
            .swap(grant.node(), &stored, record, Change::Renew)
            .await?
        {
            return Ok(renewed);
        }
        // Read again, to say who was faster.
    }
}

/// Gives a node back: the work of [`NodeAllocator::release`](super::NodeAllocator::release).
///
/// # Errors
///
/// It returns the errors of [`NodeAllocator::release`](super::NodeAllocator::release).
pub async fn release<S: SwapStore>(
    store: &S,
    grant: &Grant,
    last: Option<Timestamp>,
) -> Result<(), Error> {
    loop {
        let stored = store.read(grant.node()).await?;
        let NodeRecord { epoch, ceiling } = store.record_of(grant, &stored);
        let ceiling = store.terms().released(grant, epoch, ceiling, last)?;
        let released = NodeRecord { epoch, ceiling };
        // The answer to a release was lost, and it is asked for again.
        if !stored.is_held && stored.record == released && ceiling != grant.ceiling() {
            return Ok(());
        }
        store.check_holder(grant, &stored).await?;
        if store
            .swap(grant.node(), &stored, released, Change::Release)
            .await?
        {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests;
