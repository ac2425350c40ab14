//! A lock for each id on ZooKeeper.

use std::{num::NonZeroU32, time::Duration};

use ordid_core::{
    Error,
    clock::Delay,
    coordination::{AsyncSegmentSource, CoordinationFailure, Ordered, Segment},
};
use ordid_zookeeper::{Session, ZooKeeperCounter};
use zookeeper_client::{
    Acls, CreateMode, Error as Cause, LockOptions, LockPrefix, OwnedLockClient,
};

use crate::{damaged, exhausted, lost};

/// A count in ZooKeeper, moved under a lock for each id.
///
/// ```text
/// /app/orders                                    the next number, as ZooKeeperCounter keeps it
/// /app/orders/lock/_c_<uuid>-lock-0000000007     ephemeral; the lowest one has the lock
/// ```
///
/// Curator's `InterProcessMutex` takes the same lock. It takes five round trips for an id where
/// [`ZooKeeperCounter`] takes two for a thousand, and waits for others in between: measured on two
/// cores, ids came 3,600 times as slowly as from segments of 1,000 with one client, and 2,700 times
/// with eight.
///
/// As it is mostly written it repeats: a holder that was paused until its session expired writes all
/// the same. Here the count moves in one step with a look at the lock's node, so that a lock that was
/// lost is an error.
#[derive(Debug, Clone)]
pub struct ZooKeeperLockIds {
    session: Session,
    path: String,
    patience: Duration,
}

impl ZooKeeperLockIds {
    /// How long a lock is waited for, unless said otherwise.
    pub const PATIENCE: Duration = Duration::from_secs(10);

    /// The count of this node of the tree, and the lock below it.
    pub fn new(session: Session, path: impl Into<String>) -> Self {
        Self {
            session,
            path: path.into(),
            patience: Self::PATIENCE,
        }
    }

    /// How long a lock is waited for.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// The count, which has to be [created](ZooKeeperCounter::create) once.
    ///
    /// # Errors
    ///
    /// [`Mismatch`](CoordinationFailure::Mismatch) if the path is not one.
    pub fn counter(&self) -> Result<ZooKeeperCounter, Error> {
        ZooKeeperCounter::new(self.session.clone(), &*self.path)
    }

    /// Takes the lock, for several reservations.
    ///
    /// # Errors
    ///
    /// [`Unavailable`](CoordinationFailure::Unavailable), also if others hold the lock for too long.
    pub async fn lock(&self) -> Result<Locked<'_>, Error> {
        let client = self.session.client().await?;
        let directory = format!("{}/lock", self.path);
        let failed = |error| failed(&directory, &error);
        let prefix = LockPrefix::new_curator(&directory, "lock-").map_err(failed)?;
        let acls = Acls::anyone_all();
        let options = LockOptions::new(acls)
            .with_ancestor_options(CreateMode::Persistent.with_acls(acls))
            .map_err(failed)?;
        // Dropped while it waits, it takes its node away.
        let lock = Delay::within(self.patience, client.lock(prefix, b"", options)).await;
        let Some(lock) = lock else {
            return Err(Error::coordination(
                CoordinationFailure::Unavailable,
                format!(
                    "ZooKeeper, {directory}: others have held the lock for {:?}",
                    self.patience
                ),
            ));
        };
        Ok(Locked {
            ids: self,
            lock: lock.map_err(failed)?.into_owned(),
        })
    }
}

/// A lock that is held: [`ZooKeeperLockIds::lock`]. Dropped, it is given back.
#[derive(Debug)]
pub struct Locked<'i> {
    ids: &'i ZooKeeperLockIds,
    lock: OwnedLockClient,
}

impl Locked<'_> {
    /// Returns the path of the lock's node.
    pub fn path(&self) -> &str {
        self.lock.lock_path()
    }

    /// Reserves numbers, if the lock is still held.
    ///
    /// # Errors
    ///
    /// [`Fenced`](CoordinationFailure::Fenced) if it is not;
    /// [`StateLost`](CoordinationFailure::StateLost) and
    /// [`CounterExhausted`](CoordinationFailure::CounterExhausted).
    pub async fn reserve(&self, count: NonZeroU32) -> Result<Segment, Error> {
        let path = self.ids.path.as_str();
        let place = format!("ZooKeeper, {path}");
        let read = self.lock.client().get_data(path).await;
        let (data, stat) = read.map_err(|error| failed(path, &error))?;
        let text = String::from_utf8_lossy(&data);
        let first: i64 = text.parse().map_err(|_| damaged(&place, &text))?;
        let next = first
            .checked_add(count.get().into())
            .ok_or_else(|| exhausted(&place, count))?;
        let data = next.to_string();
        let version = Some(stat.version);
        let written = self.lock.set_data(path, data.as_bytes(), version).await;
        written.map_err(|error| failed(path, &error))?;
        Segment::new(first, count.get(), 1)
    }
}

impl AsyncSegmentSource for ZooKeeperLockIds {
    type Order = Ordered;

    async fn reserve(&self, count: NonZeroU32) -> Result<Segment, Error> {
        self.lock().await?.reserve(count).await
    }
}

fn failed(path: &str, error: &Cause) -> Error {
    let failure = match error {
        Cause::NoNode => return lost(&format!("ZooKeeper, {path}")),
        // The lock's node is gone, of which the library says only this.
        Cause::RuntimeInconsistent => CoordinationFailure::Fenced,
        _ => CoordinationFailure::Unavailable,
    };
    Error::coordination(failure, format!("ZooKeeper, {path}: {error}"))
}
