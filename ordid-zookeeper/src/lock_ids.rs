//! A lock for each id: the slow way.

use core::{num::NonZeroU32, time::Duration};

use ordid_core::{
    Error,
    clock::Delay,
    coordination::{AsyncSegmentSource, CoordinationFailure, Ordered, Segment},
};
use zookeeper_client::{CreateMode, LockOptions, LockPrefix, OwnedLockClient};

use crate::{Session, ZooKeeperCounter, error::failed, session::check_process, tree};

/// A count in ZooKeeper, moved under a lock for each id.
///
/// ```text
/// /app/orders                                    the next number, as ZooKeeperCounter keeps it
/// /app/orders/lock/_c_<uuid>-lock-0000000007     ephemeral; the lowest one has the lock
/// ```
///
/// It is here for programs that have to share such a lock (Curator's `InterProcessMutex` takes the
/// same), and to be measured. It takes five round trips for an id where [`ZooKeeperCounter`] takes two
/// for a thousand, and waits for others in between: measured by `coordination-tour` on two cores, ids
/// came 3,600 times as slowly as from segments of 1,000 with one client, and 2,700 times with eight.
///
/// As it is mostly written it repeats: a holder that was paused until its session expired writes all
/// the same. Here the count moves in one step with a look at the lock's node, so that a lock that was
/// lost is an error.
#[derive(Debug, Clone)]
pub struct ZooKeeperLockIds {
    counter: ZooKeeperCounter,
    patience: Duration,
}

impl ZooKeeperLockIds {
    /// How long a lock is waited for, unless said otherwise.
    pub const PATIENCE: Duration = Duration::from_secs(10);

    /// The count of this node of the tree, and the lock below it.
    ///
    /// # Errors
    ///
    /// [`Mismatch`](CoordinationFailure::Mismatch) if it is no path.
    pub fn new(session: Session, path: impl Into<String>) -> Result<Self, Error> {
        Ok(Self {
            counter: ZooKeeperCounter::new(session, path)?,
            patience: Self::PATIENCE,
        })
    }

    /// How long a lock is waited for.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// The count, which has to be [created](ZooKeeperCounter::create) once.
    pub fn counter(&self) -> &ZooKeeperCounter {
        &self.counter
    }

    /// Takes the lock, for several reservations.
    ///
    /// # Errors
    ///
    /// [`Unavailable`](CoordinationFailure::Unavailable), also if others hold the lock for too long.
    pub async fn lock(&self) -> Result<Locked<'_>, Error> {
        let session = self.counter.session();
        let client = session.client().await?;
        let directory = format!("{}/lock", self.counter.path());
        let failed = |error| failed(&directory, &error);
        let prefix = LockPrefix::new_curator(&directory, "lock-").map_err(failed)?;
        let persistent = session.create_options(CreateMode::Persistent);
        let options = LockOptions::new(session.acls())
            .with_ancestor_options(persistent)
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
    /// [`Fenced`](CoordinationFailure::Fenced) if it is not, and as [`ZooKeeperCounter`]'s.
    pub async fn reserve(&self, count: NonZeroU32) -> Result<Segment, Error> {
        check_process()?;
        let counter = &self.ids.counter;
        let (first, stat) = counter.next(self.lock.client()).await?;
        let (segment, next) = counter.segment(first, count)?;
        let version = tree::version(counter.path(), &stat)?;
        let data = next.to_string();
        let written = self.lock.set_data(counter.path(), data.as_bytes(), version);
        written.await.map_err(|error| counter.failed(&error))?;
        counter.saw(next);
        Ok(segment)
    }
}

impl AsyncSegmentSource for ZooKeeperLockIds {
    type Order = Ordered;

    async fn reserve(&self, count: NonZeroU32) -> Result<Segment, Error> {
        self.lock().await?.reserve(count).await
    }
}
