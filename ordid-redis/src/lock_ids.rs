//! A lock for each id: the slow way.

use core::{num::NonZeroU32, time::Duration};
use std::time::Instant;

use ordid_core::{
    Error,
    coordination::{AsyncSegmentSource, CoordinationFailure, Ordered, Segment, SegmentSource},
    entropy::{Entropy, ThreadEntropy},
};
use redis::{Script, aio::ConnectionLike};

use crate::{
    connection::{Blocking, Connection, Store, block_on},
    counter::{RESERVE, RedisCounter, Reserved},
};

/// Takes the lock unless somebody has it. `OK`, or nothing.
const LOCK: &str = "return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])";

/// Gives the lock back, unless it is another's by now.
const UNLOCK: &str = "\
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])";

/// The longest time between two tries for the lock.
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// A count in Redis, moved under a lock for each id.
///
/// ```text
/// {key}         the next number, as RedisCounter keeps it
/// {key}:lock    the token of whoever holds the lock; expires
/// ```
///
/// It is here for programs that have to share such a lock, and to be measured. It takes three round
/// trips for an id where [`RedisCounter`] takes one for a thousand, and waits for others in between:
/// measured by `coordination-tour` on two cores, with a server that syncs each write, ids came 2,900 times
/// as slowly as from segments of 1,000 with one client, and 12,000 times with eight.
///
/// As it is mostly written (`SET .. NX EX`, `GET` and `SET` of the count, `DEL`) it repeats: a holder
/// that was paused until its lock expired writes all the same, and its `DEL` frees another's lock.
/// Here the lock has a token, and the count moves in a script that looks for it, so that a lock that
/// was lost is an error.
///
/// On a cluster both keys must be in one slot: give the key a hash tag, such as `{orders}`.
#[derive(Debug, Clone)]
pub struct RedisLockIds<C> {
    /// Of the lock's key.
    store: Store<C>,
    counter: RedisCounter<C>,
    expiry: Duration,
    patience: Duration,
    scripts: Scripts,
}

#[derive(Debug, Clone)]
struct Scripts {
    lock: Script,
    unlock: Script,
    reserve: Script,
}

impl<C: Connection + Clone> RedisLockIds<C> {
    /// After which time a lock is free that was not given back, unless said otherwise.
    pub const EXPIRY: Duration = Duration::from_secs(10);
    /// How long a lock is waited for, unless said otherwise.
    pub const PATIENCE: Duration = Duration::from_secs(10);

    /// The count of this key, and the lock beside it.
    pub fn new(connection: C, key: impl Into<String>) -> Self {
        let key = key.into();
        // The count's script, behind a look at the lock's token. -1: it is another's.
        let fenced =
            format!("if redis.call('GET', KEYS[2]) ~= ARGV[2] then return -1 end\n{RESERVE}");
        Self {
            store: Store::new(connection.clone(), format!("{key}:lock")),
            counter: RedisCounter::new(connection, key),
            expiry: Self::EXPIRY,
            patience: Self::PATIENCE,
            scripts: Scripts {
                lock: Script::new(LOCK),
                unlock: Script::new(UNLOCK),
                reserve: Script::new(&fenced),
            },
        }
    }
}

impl<C: Connection> RedisLockIds<C> {
    /// After which time, by the server's clock, a lock is free that was not given back. No duplicate
    /// depends on it. Rounded down to milliseconds, of which there is at least one.
    #[must_use]
    pub fn with_expiry(self, expiry: Duration) -> Self {
        Self { expiry, ..self }
    }

    /// How long a lock is waited for.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// The count, which has to be [created](RedisCounter::create) once.
    pub fn counter(&self) -> &RedisCounter<C> {
        &self.counter
    }

    async fn locked(&self) -> Result<Locked<'_, C>, Error> {
        let token = format!("{:032x}", ThreadEntropy.next_u128()?);
        let expiry = u64::try_from(self.expiry.as_millis()).unwrap_or(u64::MAX);
        let start = Instant::now();
        let mut pause = Duration::from_millis(1);
        loop {
            let mut call = self.scripts.lock.key(&self.store.key);
            call.arg(&token)
                .arg(expiry.clamp(1, i64::MAX.unsigned_abs()));
            if self.store.ask::<Option<String>>(&call).await?.is_some() {
                return Ok(Locked { ids: self, token });
            }
            if start.elapsed() >= self.patience {
                return Err(Error::coordination(
                    CoordinationFailure::Unavailable,
                    format!(
                        "Redis, key {}: another has held the lock for {:?}",
                        self.store.key, self.patience
                    ),
                ));
            }
            // At random up to the pause, so that those who wait do not keep step.
            let micros = u64::try_from(pause.as_micros()).unwrap_or(u64::MAX);
            let random = ThreadEntropy.next_u64()? % micros.max(1);
            self.store.sleep(Duration::from_micros(random + 1)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn reserve_some(&self, count: NonZeroU32) -> Result<Segment, Error> {
        let locked = self.locked().await?;
        let segment = locked.reserve_some(count).await;
        // Whatever comes of it, the segment is reserved; a lock that stays behind expires.
        let _ = locked.give_back().await;
        segment
    }
}

/// A lock that is held: [`RedisLockIds::lock`].
///
/// Dropped, it is not given back, and expires.
#[derive(Debug)]
#[must_use = "a lock that is not given back is held until it expires"]
pub struct Locked<'i, C> {
    ids: &'i RedisLockIds<C>,
    token: String,
}

impl<C: Connection> Locked<'_, C> {
    async fn reserve_some(&self, count: NonZeroU32) -> Result<Segment, Error> {
        let ids = self.ids;
        let call = |call: &mut redis::ScriptInvocation<'_>| {
            call.key(&ids.store.key).arg(count.get()).arg(&self.token);
        };
        let reserved = ids
            .counter
            .reserve_by(&ids.scripts.reserve, count, call)
            .await?;
        match reserved {
            Reserved::At(segment) => Ok(segment),
            Reserved::Fenced => Err(Error::coordination(
                CoordinationFailure::Fenced,
                format!(
                    "Redis, key {}: the lock expired before it was used",
                    ids.store.key
                ),
            )),
        }
    }

    async fn give_back(&self) -> Result<bool, Error> {
        let mut call = self.ids.scripts.unlock.key(&self.ids.store.key);
        call.arg(&self.token);
        self.ids.store.ask(&call).await
    }
}

impl<C: ConnectionLike + Clone + Send + Sync> RedisLockIds<C> {
    /// Takes the lock, for several reservations.
    ///
    /// # Errors
    ///
    /// [`Unavailable`](CoordinationFailure::Unavailable), also if others hold the lock for too long.
    pub async fn lock(&self) -> Result<Locked<'_, C>, Error> {
        self.locked().await
    }
}

impl<C: ConnectionLike + Clone + Send + Sync> Locked<'_, C> {
    /// Reserves numbers, if the lock is still held.
    ///
    /// # Errors
    ///
    /// [`Fenced`](CoordinationFailure::Fenced) if it has expired, and as
    /// [`RedisCounter`]'s.
    pub async fn reserve(&self, count: NonZeroU32) -> Result<Segment, Error> {
        self.reserve_some(count).await
    }

    /// Gives the lock back; returns whether it was still held.
    ///
    /// # Errors
    ///
    /// [`Unavailable`](CoordinationFailure::Unavailable).
    pub async fn unlock(self) -> Result<bool, Error> {
        self.give_back().await
    }
}

impl<C: ConnectionLike + Clone + Send + Sync> AsyncSegmentSource for RedisLockIds<C> {
    type Order = Ordered;

    async fn reserve(&self, count: NonZeroU32) -> Result<Segment, Error> {
        self.reserve_some(count).await
    }
}

impl SegmentSource for RedisLockIds<Blocking> {
    type Order = Ordered;

    fn reserve(&self, count: NonZeroU32) -> Result<Segment, Error> {
        block_on(self.reserve_some(count))
    }
}
