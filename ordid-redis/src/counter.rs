//! Segments of a counter: `INCRBY`.

use core::{num::NonZeroU32, time::Duration};
use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use ordid_core::{
    Error,
    coordination::{AsyncSegmentSource, CoordinationFailure, Ordered, Segment, SegmentSource},
};
use redis::{FromRedisValue, Script, Value, aio::ConnectionLike, from_redis_value};

use crate::{
    connection::{Blocking, Connection, Store, block_on},
    error::{damaged, lost},
};

/// Moves the count on and returns what it was, as the text that it is: a number of Lua has 53 bits.
/// Nothing: there is no count. 0: it cannot go on so far. A count below what the caller has seen stays where it is:
/// moved on, it would come to numbers that others have.
const RESERVE: &str = "\
local first = redis.call('GET', KEYS[1])
if not first then return false end
if (tonumber(first) or math.huge) < tonumber(ARGV[2]) then return first end
local next = redis.pcall('INCRBY', KEYS[1], ARGV[1])
if type(next) == 'table' and next.err then
    if string.find(next.err, 'overflow', 1, true) then return 0 end
    return next
end
return first";

/// Says where the count begins, unless there is one. 1: there was none.
const CREATE: &str = "return redis.call('SETNX', KEYS[1], ARGV[1])";

/// A count in Redis, reserved in blocks by `INCRBY`: `{key}` holds the next number.
///
/// `C` is a connection of the library, or [`Blocking`]; then it is a [`SegmentSource`] instead of an
/// [`AsyncSegmentSource`].
#[derive(Debug, Clone)]
pub struct RedisCounter<C> {
    store: Store<C>,
    reserve: Script,
    /// The first number that this source has not seen reserved.
    seen: Arc<AtomicI64>,
}

impl<C: Connection> RedisCounter<C> {
    /// The count of this key.
    pub fn new(connection: C, key: impl Into<String>) -> Self {
        Self {
            store: Store::new(connection, key.into()),
            reserve: Script::new(RESERVE),
            seen: Arc::new(AtomicI64::new(0)),
        }
    }

    /// Makes numbers count only when so many replicas have confirmed within this time (`WAIT`) that they are
    /// reserved. Else the call is [`Unavailable`](CoordinationFailure::Unavailable), and the numbers are a gap. See
    /// [`RedisLease::with_replicas`](crate::RedisLease::with_replicas) for what that does and does not promise.
    #[must_use]
    pub fn with_replicas(self, count: NonZeroU32, within: Duration) -> Self {
        Self {
            store: self.store.with_replicas(count, within),
            ..self
        }
    }

    async fn create_at(&self, first: i64) -> Result<bool, Error> {
        // A count below zero would be of no use to anybody.
        Segment::<Ordered>::new(first, 1, 1)?;
        let script = Script::new(CREATE);
        let mut call = script.key(&self.store.key);
        call.arg(first);
        self.store.ask(&call).await
    }

    async fn reserve_some(&self, count: NonZeroU32) -> Result<Segment, Error> {
        let key = &self.store.key;
        // Before the question: what others reserve meanwhile is above it, too.
        let seen = self.seen.load(Ordering::Acquire);
        let mut call = self.reserve.key(key);
        call.arg(count.get()).arg(seen);
        let first = match self.store.ask(&call).await? {
            Answer::First(first) => first,
            Answer::Nothing => return Err(lost(key, "RedisCounter::create")),
            Answer::Exhausted => {
                return Err(Error::coordination(
                    CoordinationFailure::CounterExhausted,
                    format!("Redis, key {key}: the count has not {count} numbers left"),
                ));
            }
        };
        let first: i64 = first.parse().map_err(|_| damaged(key, "it", &first))?;
        if first < seen {
            return Err(Error::coordination(
                CoordinationFailure::CeilingRegressed,
                format!(
                    "Redis, key {key}: the count is at {first}, and was at {seen}: the server was \
                     restored from a copy, or fell over to one that lagged behind"
                ),
            ));
        }
        let segment = Segment::new(first, count.get(), 1)?;
        let next = first.saturating_add(i64::from(count.get()));
        self.seen.fetch_max(next, Ordering::AcqRel);
        Ok(segment)
    }
}

/// What the script says.
enum Answer {
    First(String),
    Exhausted,
    Nothing,
}

impl FromRedisValue for Answer {
    fn from_redis_value(value: Value) -> Result<Self, redis::ParsingError> {
        match value {
            Value::Nil => Ok(Self::Nothing),
            Value::Int(_) => Ok(Self::Exhausted),
            text => from_redis_value(text).map(Self::First),
        }
    }
}

impl<C: ConnectionLike + Clone + Send + Sync> RedisCounter<C> {
    /// Says where the count begins: until then there is none, and each call is a
    /// [`StateLost`](CoordinationFailure::StateLost). This is part of a deployment, not of a
    /// program's start, which would take a server that has lost its data for a new one.
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
        self.create_at(first).await
    }
}

impl<C: ConnectionLike + Clone + Send + Sync> AsyncSegmentSource for RedisCounter<C> {
    type Order = Ordered;

    async fn reserve(&self, count: NonZeroU32) -> Result<Segment, Error> {
        self.reserve_some(count).await
    }
}

impl RedisCounter<Blocking> {
    /// Says where the count begins, as it does over an asynchronous connection.
    ///
    /// # Errors
    ///
    /// It returns the errors of `create` over an asynchronous connection.
    pub fn create(&self, first: i64) -> Result<bool, Error> {
        block_on(self.create_at(first))
    }
}

impl SegmentSource for RedisCounter<Blocking> {
    type Order = Ordered;

    fn reserve(&self, count: NonZeroU32) -> Result<Segment, Error> {
        block_on(self.reserve_some(count))
    }
}
