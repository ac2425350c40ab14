//! Segments of a count: a node whose number moves from the version that was read.

use core::num::NonZeroU32;
use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use ordid_core::{
    Error,
    coordination::{AsyncSegmentSource, CoordinationFailure, Ordered, Segment},
};
use zookeeper_client::{Client, Error as Cause, Stat};

use crate::{
    Session,
    error::failed_or_lost,
    tree::{self, Number},
};

/// A count in ZooKeeper, reserved in blocks: the node holds the next number.
///
/// A reservation reads the node and writes it with the version that it has read; whoever was slower
/// reads again. What was written last is not remembered for the next one: a node that was deleted and
/// made anew may have the same version.
#[derive(Debug, Clone)]
pub struct ZooKeeperCounter {
    session: Session,
    path: String,
    /// The first number that this source has not seen reserved.
    seen: Arc<AtomicI64>,
}

impl ZooKeeperCounter {
    /// The count of this node of the tree.
    ///
    /// # Errors
    ///
    /// [`Mismatch`](CoordinationFailure::Mismatch) if it is no path.
    pub fn new(session: Session, path: impl Into<String>) -> Result<Self, Error> {
        Ok(Self {
            session,
            path: tree::checked(path.into())?,
            seen: Arc::default(),
        })
    }

    /// Says where the count begins: until then there is none, and each call is a
    /// [`StateLost`](CoordinationFailure::StateLost). This is part of a deployment, not of a
    /// program's start, which would take servers that have lost their data for new ones.
    ///
    /// `first` is the first number. After a loss it is one that no segment can have reached: the
    /// highest in your tables, and all that the processes may still have in stock on top.
    ///
    /// Returns whether there was none; if there is one, it stays as it is.
    ///
    /// # Errors
    ///
    /// [`Unavailable`](CoordinationFailure::Unavailable), and
    /// [`Mismatch`](CoordinationFailure::Mismatch) if the number is negative.
    pub async fn create(&self, first: i64) -> Result<bool, Error> {
        // A count below zero would be of no use to anybody.
        Segment::<Ordered>::new(first, 1, 1)?;
        tree::create(&self.session, &self.path, &first.to_string()).await
    }

    fn failed(&self, error: &Cause) -> Error {
        failed_or_lost(&self.path, "ZooKeeperCounter::create", error)
    }

    /// Reads the next number, which is never below one that was seen.
    async fn next(&self, client: &Client) -> Result<(i64, Stat), Error> {
        // Before the question: what others reserve meanwhile is above it, too.
        let seen = self.seen.load(Ordering::Acquire);
        let read = tree::number(client, &self.path).await;
        let (next, stat) = read.map_err(|it: Number| it.or(|cause| self.failed(cause)))?;
        if next < seen {
            return Err(Error::coordination(
                CoordinationFailure::CeilingRegressed,
                format!(
                    "ZooKeeper, {}: the count is at {next}, and was at {seen}: the servers were \
                     restored from a copy",
                    self.path
                ),
            ));
        }
        Ok((next, stat))
    }

    /// The numbers from here on, and what the node has to hold behind them.
    fn segment(&self, first: i64, count: NonZeroU32) -> Result<(Segment, i64), Error> {
        let next = first.checked_add(i64::from(count.get())).ok_or_else(|| {
            Error::coordination(
                CoordinationFailure::CounterExhausted,
                format!(
                    "ZooKeeper, {}: the count has not {count} numbers left",
                    self.path
                ),
            )
        })?;
        Ok((Segment::new(first, count.get(), 1)?, next))
    }
}

impl AsyncSegmentSource for ZooKeeperCounter {
    type Order = Ordered;

    async fn reserve(&self, count: NonZeroU32) -> Result<Segment, Error> {
        let client = self.session.client().await?;
        loop {
            let (first, stat) = self.next(&client).await?;
            let (segment, next) = self.segment(first, count)?;
            let version = tree::version(&self.path, stat.version)?;
            match client
                .set_data(&self.path, next.to_string().as_bytes(), version)
                .await
            {
                Ok(_) => {
                    self.seen.fetch_max(next, Ordering::AcqRel);
                    return Ok(segment);
                }
                Err(Cause::BadVersion) => {}
                Err(error) => return Err(self.failed(&error)),
            }
        }
    }
}
