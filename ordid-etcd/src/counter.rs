//! Segments of a count: a key whose number moves from the revision that was read.

use core::{num::NonZeroU32, time::Duration};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use etcd_client::{Client, Compare, CompareOp, KeyValue, TxnOp};
use ordid_core::{
    Error,
    coordination::{AsyncSegmentSource, CoordinationFailure, Ordered, Segment},
};

use crate::{
    error::{damaged, lost},
    store::{Store, found, is_of_revision, parse, put},
};

const CREATE: &str = "EtcdCounter::create";

/// A count in etcd, reserved in blocks: the key holds the next number.
///
/// A reservation is one transaction, which writes where the key is still of the revision and the value that
/// this source saw last, and reads it otherwise; whoever was slower tries again with what it has read.
#[derive(Debug, Clone)]
pub struct EtcdCounter {
    store: Store,
    /// What was seen last. Clones share it.
    seen: Arc<Mutex<Option<Seen>>>,
}

/// What the key holds, and since when.
#[derive(Debug, Clone, Copy)]
struct Seen {
    next: i64,
    revision: i64,
}

impl EtcdCounter {
    /// The count of this key.
    ///
    /// # Errors
    ///
    /// [`Mismatch`](CoordinationFailure::Mismatch) if the key is empty, ends with `/` or has control
    /// characters.
    pub fn new(client: Client, key: impl Into<String>) -> Result<Self, Error> {
        Ok(Self {
            store: Store::new(client, key.into())?,
            seen: Arc::default(),
        })
    }

    /// How long etcd may take for an answer: 5 s unless said otherwise.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self {
            store: self.store.with_timeout(timeout),
            ..self
        }
    }

    /// Says where the count begins: until then there is none, and each call is a
    /// [`StateLost`](CoordinationFailure::StateLost). This is part of a deployment, not of a
    /// program's start, which would take a cluster that has lost its data for a new one.
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
        self.store.create(first.to_string()).await
    }

    fn seen(&self) -> MutexGuard<'_, Option<Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of what the key holds, unless it is below what was seen before the question. What others
    /// reserve meanwhile is above it, too.
    fn saw(&self, before: Option<Seen>, found: Option<&KeyValue>) -> Result<Seen, Error> {
        let key = &self.store.key;
        let found = found.ok_or_else(|| lost(key, CREATE))?;
        let next = parse(found.value()).ok_or_else(|| damaged(key, found.value()))?;
        if let Some(before) = before.filter(|before| next < before.next) {
            return Err(Error::coordination(
                CoordinationFailure::CeilingRegressed,
                format!(
                    "etcd, {key}: the count is at {next}, and was at {}: the cluster was restored from a copy",
                    before.next
                ),
            ));
        }
        let revision = found.mod_revision();
        Ok(self.note(Seen { next, revision }))
    }

    fn note(&self, found: Seen) -> Seen {
        let mut seen = self.seen();
        if seen.is_none_or(|seen| found.next >= seen.next) {
            *seen = Some(found);
        }
        found
    }

    /// The numbers from here on, and what the key has to hold behind them.
    fn segment(&self, first: i64, count: NonZeroU32) -> Result<(Segment, i64), Error> {
        let next = first.checked_add(i64::from(count.get())).ok_or_else(|| {
            Error::coordination(
                CoordinationFailure::CounterExhausted,
                format!(
                    "etcd, {}: the count has not {count} numbers left",
                    self.store.key
                ),
            )
        })?;
        Ok((Segment::new(first, count.get(), 1)?, next))
    }
}

impl AsyncSegmentSource for EtcdCounter {
    type Order = Ordered;

    async fn reserve(&self, count: NonZeroU32) -> Result<Segment, Error> {
        let key = self.store.key.as_str();
        let known = *self.seen();
        let mut seen = match known {
            Some(seen) => seen,
            None => {
                let [found] = self.store.read([key]).await?;
                self.saw(None, found.as_ref())?
            }
        };
        loop {
            let before = *self.seen();
            let (segment, next) = self.segment(seen.next, count)?;
            // Revisions come again where a cluster goes on from a copy: the value must be the same, too.
            let unchanged = [
                is_of_revision(key, seen.revision),
                Compare::value(key, CompareOp::Equal, seen.next.to_string()),
            ];
            let swapped = self
                .store
                .swap(
                    unchanged,
                    [put(key, next.to_string())],
                    [TxnOp::get(key, None)],
                )
                .await?;
            match swapped {
                (revision, None) => {
                    self.note(Seen { next, revision });
                    return Ok(segment);
                }
                (_, Some(answers)) => seen = self.saw(before, found(&answers, 0))?,
            }
        }
    }
}
