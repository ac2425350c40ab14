//! Stores in this process's memory, for tests.

use std::{
    num::NonZeroU32,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::{
    CoordinationFailure, Grant, LeaseTerms, NodeAllocator, Ordered, Segment, SegmentSource,
};
use crate::{
    clock::{Clock, Timestamp},
    error::Error,
};

/// A [`NodeAllocator`] in memory, for tests, and for threads of one process that need different nodes. The given
/// clock is the store's clock. Its data is lost when it is dropped.
#[derive(Debug)]
pub struct MemoryNodes<C> {
    terms: LeaseTerms,
    clock: C,
    rows: Mutex<Vec<Row>>,
}

#[derive(Debug, Clone, Copy)]
struct Row {
    node: u64,
    epoch: u64,
    ceiling: Option<Timestamp>,
    /// When it is free, by the store's clock.
    free_at: Timestamp,
}

impl<C: Clock> MemoryNodes<C> {
    /// Makes a store in which no node has ever been granted.
    pub fn new(terms: LeaseTerms, clock: C) -> Self {
        let row = |node| Row {
            node,
            epoch: 0,
            ceiling: None,
            free_at: Timestamp::MIN,
        };
        let rows = terms.nodes().map(row).collect();
        Self {
            terms,
            clock,
            rows: Mutex::new(rows),
        }
    }

    /// Returns the store's clock.
    pub fn clock(&self) -> &C {
        &self.clock
    }

    fn rows(&self) -> MutexGuard<'_, Vec<Row>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The store's row of a grant's node.
    fn row<'r>(rows: &'r mut [Row], grant: &Grant) -> Result<(&'r mut Row, Timestamp), Error> {
        let row = rows.iter_mut().find(|row| row.node == grant.node());
        row.and_then(|row| row.ceiling.map(|ceiling| (row, ceiling)))
            .ok_or_else(|| {
                Error::coordination(
                    CoordinationFailure::StateLost,
                    format!("{grant} was never granted here"),
                )
            })
    }

    fn silent_from(&self, now: Timestamp) -> Timestamp {
        let ttl = u64::try_from(self.terms.ttl().as_millis()).unwrap_or(u64::MAX);
        Timestamp::saturating_from_unix_millis(now.as_unix_millis().saturating_add(ttl))
    }
}

impl<C: Clock> NodeAllocator for MemoryNodes<C> {
    fn acquire(&self, now: Timestamp, last: Option<Timestamp>) -> Result<Grant, Error> {
        let store_now = self.clock.now();
        let mut rows = self.rows();
        let free = rows
            .iter_mut()
            .filter(|row| row.free_at <= store_now)
            .min_by_key(|row| row.ceiling);
        let Some(row) = free else {
            return Err(Error::coordination(
                CoordinationFailure::NoFreeNode,
                format!("all of {:?} are held", self.terms.nodes()),
            ));
        };
        let (floor, ceiling) = self.terms.range(row.ceiling, now, last, Some(store_now))?;
        row.epoch += 1;
        row.ceiling = Some(ceiling);
        row.free_at = self.silent_from(store_now);
        Grant::new(row.node, row.epoch, floor, ceiling)
    }

    fn renew(&self, grant: &Grant, now: Timestamp) -> Result<Grant, Error> {
        let store_now = self.clock.now();
        let mut rows = self.rows();
        let (row, stored) = Self::row(&mut rows, grant)?;
        let ceiling = self
            .terms
            .renewed(grant, row.epoch, stored, now, Some(store_now))?;
        row.ceiling = Some(ceiling);
        row.free_at = self.silent_from(store_now);
        Grant::new(row.node, row.epoch, grant.floor(), ceiling)
    }

    fn release(&self, grant: &Grant, last: Option<Timestamp>) -> Result<(), Error> {
        let mut rows = self.rows();
        let (row, stored) = Self::row(&mut rows, grant)?;
        row.ceiling = Some(self.terms.released(grant, row.epoch, stored, last)?);
        row.free_at = Timestamp::MIN;
        Ok(())
    }

    fn terms(&self) -> &LeaseTerms {
        &self.terms
    }
}

/// A [`SegmentSource`] in memory. Its count is lost when it is dropped.
#[derive(Debug)]
pub struct MemoryCounter(Mutex<i64>);

impl MemoryCounter {
    /// Makes a counter that begins at this number.
    pub fn starting_at(first: i64) -> Self {
        Self(Mutex::new(first))
    }
}

impl SegmentSource for MemoryCounter {
    type Order = Ordered;

    fn reserve(&self, count: NonZeroU32) -> Result<Segment, Error> {
        let mut next = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let segment = Segment::new(*next, count.get(), 1)?;
        // The last number that can be is not reserved, so that there always is a next one.
        *next = next.checked_add(i64::from(count.get())).ok_or_else(|| {
            Error::coordination(
                CoordinationFailure::CounterExhausted,
                format!("{count} numbers from {next} do not end below {}", i64::MAX),
            )
        })?;
        Ok(segment)
    }
}
