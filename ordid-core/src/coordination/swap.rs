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
/// Each method is one step of the loops in this module. A method must not decide on its own whether a node may be
/// granted.
pub trait SwapStore: Sync {
    /// The value that [`swap`](Self::swap) compares: a version number, a revision, or the record's text.
    type Version: Send + Sync;

    /// Returns the place of the leases for error messages, such as `Redis, key orders`.
    fn place(&self) -> String;

    /// Returns the terms of the leases.
    fn terms(&self) -> &LeaseTerms;

    /// Reads all nodes that were granted at least once.
    ///
    /// # Errors
    ///
    /// [`StateLost`](CoordinationFailure::StateLost) if nobody declared that the leases are new,
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

    /// Marks a free node as held before its record is replaced, in a store whose holder is marked by something apart
    /// from the record, such as a session's ephemeral node. Returns the node as it is stored now, or `None` if
    /// another holder was faster. By default it does nothing.
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

    /// Undoes [`hold`](Self::hold) after the grant failed. The method reports no failure: without success, the node
    /// becomes free as if its holder had died.
    fn abandon(&self, _node: u64) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// Checks that the node still has its holder, in a store whose holder is marked apart from the record. By default
    /// it does nothing, because the record says who the holder is.
    ///
    /// # Errors
    ///
    /// [`Fenced`](CoordinationFailure::Fenced) if the node has no holder, or another one.
    fn check_holder(
        &self,
        _grant: &Grant,
        _stored: &StoredNode<Self::Version>,
    ) -> impl Future<Output = Result<(), Error>> + Send {
        std::future::ready(Ok(()))
    }

    /// Returns the record that is compared with a holder's grant: by default the record that was read. A store that
    /// knows that it lost the holder's last renewal, and that nobody else got the node, can return another record.
    fn record_of(&self, _grant: &Grant, stored: &StoredNode<Self::Version>) -> NodeRecord {
        stored.record
    }

    /// Tells the store that the holder is alive, and returns the store's clock, if it has one. By default
    /// [`swap`](Self::swap) has to do that, and the returned clock is the one that was read.
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

    /// Replaces the record of a node if the store still has the version that was read, and returns whether it did so.
    /// When it returns `true`, the record is durable.
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

/// The reason for replacing a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// A free node gets a holder.
    Acquire,
    /// The holder gets more time.
    Renew,
    /// The node becomes free.
    Release,
}

/// A node as the store keeps it.
#[derive(Debug, Clone)]
pub struct StoredNode<V> {
    /// How often the node was granted, and up to which time.
    pub record: NodeRecord,
    /// Whether somebody holds the node.
    pub is_held: bool,
    /// The store's clock when the node was read, if the store has one.
    pub store_now: Option<Timestamp>,
    /// The value that [`SwapStore::swap`] compares.
    pub version: V,
}

/// The result of [`SwapStore::read_all`].
#[derive(Debug, Clone)]
pub struct StoredNodes<V> {
    /// The state of a node that was never granted. Its ceiling is where new nodes begin.
    pub never_granted: StoredNode<V>,
    /// The nodes that were granted. Nodes outside the terms are ignored.
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

/// Returns the node that a store keeps under this name, if it is one of the terms' nodes. The name is the node's
/// number in decimal digits, without leading zeros.
pub fn node_of(name: &str, terms: &LeaseTerms) -> Option<u64> {
    let node: u64 = name.parse().ok()?;
    (terms.nodes().contains(&node) && node.to_string() == name).then_some(node)
}

/// Grants a free node, as [`NodeAllocator::acquire`](super::NodeAllocator::acquire) does.
///
/// # Errors
///
/// The errors of [`NodeAllocator::acquire`](super::NodeAllocator::acquire).
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
            match granted {
                Ok(Some(grant)) => return Ok(grant),
                Ok(None) => {}
                // Chance chose this node. The one with the lowest ceiling decides.
                Err(error) if lost_races > 0 && is_too_far_ahead(&error) => {
                    lost_races = 0;
                    continue;
                }
                Err(error) => return Err(error),
            }
        }
        lost_races += 1;
    }
}

fn is_too_far_ahead(error: &Error) -> bool {
    error.coordination_failure() == Some(CoordinationFailure::TooFarAhead)
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

/// Moves the ceiling of a grant forward, as [`NodeAllocator::renew`](super::NodeAllocator::renew) does.
///
/// # Errors
///
/// The errors of [`NodeAllocator::renew`](super::NodeAllocator::renew).
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

/// Gives a node back, as [`NodeAllocator::release`](super::NodeAllocator::release) does.
///
/// # Errors
///
/// The errors of [`NodeAllocator::release`](super::NodeAllocator::release).
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
