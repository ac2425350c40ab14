//! A lock for each id on Redis.

use std::{
    num::NonZeroU32,
    time::{Duration, Instant},
};

use ordid_core::{
    Error,
    clock::Delay,
    coordination::{AsyncSegmentSource, CoordinationFailure, Ordered, Segment},
    entropy::{Entropy as _, ThreadEntropy},
};
use ordid_redis::RedisCounter;
use redis::{RedisError, Script, ScriptInvocation, Value, aio::ConnectionLike, from_redis_value};

use crate::{damaged, exhausted, lost};

/// Takes the lock unless somebody has it. `OK`, or nothing.
const LOCK: &str = "return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])";

/// Gives the lock back, unless it is another's by now.
const UNLOCK: &str = "\
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])";

/// Moves the count on if the lock is still held, and returns what it was, as the text that it is: a
/// number of Lua has 53 bits. -1: the lock is another's. Nothing: there is no count. 0: it cannot go
/// on so far.
const RESERVE: &str = "\
if redis.call('GET', KEYS[2]) ~= ARGV[2] then return -1 end
local first = redis.call('GET', KEYS[1])
if not first then return false end
local next = redis.pcall('INCRBY', KEYS[1], ARGV[1])
if type(next) == 'table' and next.err then
    if string.find(next.err, 'overflow', 1, true) then return 0 end
    return next
end
return first";

/// The longest time between two tries for the lock.
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// A count in Redis, moved under a lock for each id.
///
/// ```text
/// {key}         the next number, as RedisCounter keeps it
/// {key}:lock    the token of whoever holds the lock; expires
/// ```
///
/// It takes three round trips for an id where [`RedisCounter`] takes one for a thousand, and waits for
/// others in between: measured on two cores, with a server that syncs each write, ids came 2,900 times
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
    connection: C,
    key: String,
    expiry: Duration,
    patience: Duration,
}

impl<C: ConnectionLike + Clone + Send + Sync> RedisLockIds<C> {
    /// After which time a lock is free that was not given back, unless said otherwise.
    pub const EXPIRY: Duration = Duration::from_secs(10);
    /// How long a lock is waited for, unless said otherwise.
    pub const PATIENCE: Duration = Duration::from_secs(10);

    /// The count of this key, and the lock beside it.
    pub fn new(connection: C, key: impl Into<String>) -> Self {
        Self {
            connection,
            key: key.into(),
            expiry: Self::EXPIRY,
            patience: Self::PATIENCE,
        }
    }

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
    pub fn counter(&self) -> RedisCounter<C> {
        RedisCounter::new(self.connection.clone(), &*self.key)
    }

    /// Takes the lock, for several reservations.
    ///
    /// # Errors
    ///
    /// [`Unavailable`](CoordinationFailure::Unavailable), also if others hold the lock for too long.
    pub async fn lock(&self) -> Result<Locked<'_, C>, Error> {
        let token = format!("{:032x}", ThreadEntropy.next_u128()?);
        let expiry = u64::try_from(self.expiry.as_millis()).unwrap_or(u64::MAX);
        let start = Instant::now();
        let mut pause = Duration::from_millis(1);
        loop {
            let script = Script::new(LOCK);
            let mut call = script.key(self.lock_key());
            call.arg(&token)
                .arg(expiry.clamp(1, i64::MAX.unsigned_abs()));
            if self.run::<Option<String>>(&call).await?.is_some() {
                return Ok(Locked { ids: self, token });
            }
            if start.elapsed() >= self.patience {
                return Err(Error::coordination(
                    CoordinationFailure::Unavailable,
                    format!(
                        "{}: another has held the lock for {:?}",
                        self.place(),
                        self.patience
                    ),
                ));
            }
            // At random up to the pause, so that those who wait do not keep step.
            let micros = u64::try_from(pause.as_micros()).unwrap_or(u64::MAX);
            let random = ThreadEntropy.next_u64()? % micros.max(1);
            Delay::new(Duration::from_micros(random + 1)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn lock_key(&self) -> String {
        format!("{}:lock", self.key)
    }

    fn place(&self) -> String {
        format!("Redis, key {}", self.key)
    }

    async fn run<T: redis::FromRedisValue>(
        &self,
        script: &ScriptInvocation<'_>,
    ) -> Result<T, Error> {
        let answer = script.invoke_async(&mut self.connection.clone()).await;
        answer.map_err(|error: RedisError| {
            Error::coordination(
                CoordinationFailure::Unavailable,
                format!("{}: {error}", self.place()),
            )
        })
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

impl<C: ConnectionLike + Clone + Send + Sync> Locked<'_, C> {
    /// Reserves numbers, if the lock is still held.
    ///
    /// # Errors
    ///
    /// [`Fenced`](CoordinationFailure::Fenced) if it has expired;
    /// [`StateLost`](CoordinationFailure::StateLost) and
    /// [`CounterExhausted`](CoordinationFailure::CounterExhausted).
    pub async fn reserve(&self, count: NonZeroU32) -> Result<Segment, Error> {
        let ids = self.ids;
        let script = Script::new(RESERVE);
        let mut call = script.key(&ids.key);
        call.key(ids.lock_key()).arg(count.get()).arg(&self.token);
        let place = ids.place();
        let first = match ids.run(&call).await? {
            Value::Nil => return Err(lost(&place)),
            Value::Int(-1) => {
                return Err(Error::coordination(
                    CoordinationFailure::Fenced,
                    format!("{place}: the lock expired before it was used"),
                ));
            }
            Value::Int(_) => return Err(exhausted(&place, count)),
            text => from_redis_value::<String>(text)
                .map_err(|error| damaged(&place, &error.to_string()))?,
        };
        let first = first.parse().map_err(|_| damaged(&place, &first))?;
        Segment::new(first, count.get(), 1)
    }

    /// Gives the lock back; returns whether it was still held.
    ///
    /// # Errors
    ///
    /// [`Unavailable`](CoordinationFailure::Unavailable).
    pub async fn unlock(self) -> Result<bool, Error> {
        let script = Script::new(UNLOCK);
        let mut call = script.key(self.ids.lock_key());
        call.arg(&self.token);
        self.ids.run(&call).await
    }
}

impl<C: ConnectionLike + Clone + Send + Sync> AsyncSegmentSource for RedisLockIds<C> {
    type Order = Ordered;

    async fn reserve(&self, count: NonZeroU32) -> Result<Segment, Error> {
        let locked = self.lock().await?;
        let segment = locked.reserve(count).await;
        // Whatever comes of it, the segment is reserved; a lock that stays behind expires.
        let _ = locked.unlock().await;
        segment
    }
}
