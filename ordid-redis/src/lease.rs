//! Node leases, in one hash.

use std::collections::HashMap;

use ordid_core::{
    Error,
    clock::Timestamp,
    coordination::{AsyncNodeAllocator, CoordinationFailure, Grant, LeaseTerms, NodeAllocator},
    entropy::{Entropy, ThreadEntropy},
};
use redis::{Script, aio::ConnectionLike};

use crate::{
    connection::{Blocking, Connection, Store, block_on},
    error::{damaged, lost},
};

mod record;

use record::Record;

/// The field of what nodes begin at that were never granted. It also says that the state is there.
const FLOOR: &str = "floor";

/// All that is kept, and the server's clock.
const READ_ALL: &str = "\
local time = redis.call('TIME')
return {time[1], time[2], redis.call('HGETALL', KEYS[1])}";

/// One node, and the server's clock.
const READ_ONE: &str = "\
local time = redis.call('TIME')
return {time[1], time[2], redis.call('HMGET', KEYS[1], ARGV[1], ARGV[2])}";

/// Puts a node's new record in the place of the one that was read. 0: the state is gone. 1: it has
/// changed. 2: done.
const SWAP: &str = "\
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end
if (redis.call('HGET', KEYS[1], ARGV[2]) or '') ~= ARGV[3] then return 1 end
redis.call('HSET', KEYS[1], ARGV[2], ARGV[4])
return 2";

/// Says that the state is there, unless it is. 1: it was not.
const CREATE: &str = "return redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[2])";

/// Leases of nodes, in one hash of Redis.
///
/// ```text
/// {key}   floor   "1800000000000"                                nodes that are new begin there
///         7       "4 1800000003000 1800000010000"                epoch, ceiling, free from
/// ```
///
/// Times are milliseconds since 1970. A node is free when the server's clock has reached the last
/// number; neither the hash nor a field ever expires. Each step compares the record that was read and
/// replaces it in one script, so it needs no clock but for when nodes come back.
///
/// `C` is a connection of the library, or [`Blocking`]; then it is a [`NodeAllocator`] instead of an
/// [`AsyncNodeAllocator`].
#[derive(Debug, Clone)]
pub struct RedisLease<C> {
    store: Store<C>,
    terms: LeaseTerms,
    scripts: Scripts,
}

#[derive(Debug, Clone)]
struct Scripts {
    read_all: Script,
    read_one: Script,
    swap: Script,
}

impl<C: Connection> RedisLease<C> {
    /// Leases of the nodes of these terms, in the hash of this key.
    pub fn new(connection: C, key: impl Into<String>, terms: LeaseTerms) -> Self {
        Self {
            store: Store::new(connection, key.into()),
            terms,
            scripts: Scripts {
                read_all: Script::new(READ_ALL),
                read_one: Script::new(READ_ONE),
                swap: Script::new(SWAP),
            },
        }
    }

    async fn create_at(&self, floor: Timestamp) -> Result<bool, Error> {
        let script = Script::new(CREATE);
        let mut call = script.key(&self.store.key);
        call.arg(FLOOR).arg(floor.as_unix_millis());
        self.store.ask(&call).await
    }

    fn lost(&self) -> Error {
        lost(&self.store.key, "RedisLease::create")
    }

    fn floor(&self, text: &str) -> Result<Timestamp, Error> {
        record::timestamp(text).ok_or_else(|| damaged(&self.store.key, FLOOR, text))
    }

    fn record(&self, node: u64, text: &str) -> Result<Record, Error> {
        Record::parse(text).ok_or_else(|| damaged(&self.store.key, &format!("field {node}"), text))
    }

    async fn acquire_at(&self, now: Timestamp, last: Option<Timestamp>) -> Result<Grant, Error> {
        let mut lost_races = 0;
        loop {
            let call = self.scripts.read_all.key(&self.store.key);
            let (seconds, micros, fields): (u64, u64, HashMap<String, String>) =
                self.store.ask(&call).await?;
            let store_now = record::server_time(seconds, micros)?;
            let floor = fields.get(FLOOR).ok_or_else(|| self.lost())?;
            let free = self.free(&fields, self.floor(floor)?, store_now)?;
            let Some(candidate) = choose(&free, lost_races)? else {
                return Err(Error::coordination(
                    CoordinationFailure::NoFreeNode,
                    format!(
                        "Redis, key {}: all nodes {:?} are held",
                        self.store.key,
                        self.terms.nodes()
                    ),
                ));
            };
            let stored = candidate.record;
            let (floor, ceiling) =
                self.terms
                    .range(Some(stored.ceiling), now, last, Some(store_now))?;
            let grant = Grant::new(candidate.node, stored.epoch + 1, floor, ceiling)?;
            let held = Record::held(&grant, store_now, self.terms.ttl());
            if self.swap(grant.node(), candidate.text, held).await? {
                return Ok(grant);
            }
            // Somebody else was first.
            lost_races += 1;
        }
    }

    /// The nodes that nobody holds, the one with the lowest ceiling first. Of those that were never
    /// granted only as many as were: no more are taken at once.
    fn free<'f>(
        &self,
        fields: &'f HashMap<String, String>,
        floor: Timestamp,
        store_now: Timestamp,
    ) -> Result<Vec<Candidate<'f>>, Error> {
        let nodes = self.terms.nodes();
        let mut free = Vec::new();
        for (field, text) in fields {
            // Other terms may name other nodes.
            let Some(node) = field.parse().ok().filter(|node| nodes.contains(node)) else {
                continue;
            };
            let record = self.record(node, text)?;
            if record.free_from <= store_now {
                free.push(Candidate { node, record, text });
            }
        }
        let record = Record::never_granted(floor);
        let never = nodes.filter(|node| !fields.contains_key(&node.to_string()));
        free.extend(never.take(fields.len()).map(|node| Candidate {
            node,
            record,
            text: "",
        }));
        free.sort_unstable_by_key(|it| (it.record.ceiling, it.node));
        Ok(free)
    }

    /// Reads the node of a grant: as it stands there, what it says, and the server's clock.
    async fn read(&self, grant: &Grant) -> Result<(String, Record, Timestamp), Error> {
        let mut call = self.scripts.read_one.key(&self.store.key);
        call.arg(FLOOR).arg(grant.node());
        let (seconds, micros, [floor, text]): (u64, u64, [Option<String>; 2]) =
            self.store.ask(&call).await?;
        let floor = self.floor(&floor.ok_or_else(|| self.lost())?)?;
        let text = text.unwrap_or_default();
        let record = if text.is_empty() {
            Record::never_granted(floor)
        } else {
            self.record(grant.node(), &text)?
        };
        Ok((text, record, record::server_time(seconds, micros)?))
    }

    /// Returns whether the node's record was still the expected one.
    async fn swap(&self, node: u64, expected: &str, record: Record) -> Result<bool, Error> {
        let mut call = self.scripts.swap.key(&self.store.key);
        call.arg(FLOOR)
            .arg(node)
            .arg(expected)
            .arg(record.to_string());
        match self.store.ask(&call).await? {
            0 => Err(self.lost()),
            1 => Ok(false),
            _ => Ok(true),
        }
    }

    async fn renew_at(&self, grant: &Grant, now: Timestamp) -> Result<Grant, Error> {
        loop {
            let (text, stored, store_now) = self.read(grant).await?;
            let ceiling =
                self.terms
                    .renewed(grant, stored.epoch, stored.ceiling, now, Some(store_now))?;
            let renewed = Grant::new(grant.node(), grant.epoch(), grant.floor(), ceiling)?;
            let held = Record::held(&renewed, store_now, self.terms.ttl());
            if self.swap(grant.node(), &text, held).await? {
                return Ok(renewed);
            }
        }
    }

    async fn release_at(&self, grant: &Grant, last: Option<Timestamp>) -> Result<(), Error> {
        loop {
            let (text, stored, _) = self.read(grant).await?;
            let ceiling = self
                .terms
                .released(grant, stored.epoch, stored.ceiling, last)?;
            let free = Record {
                epoch: grant.epoch(),
                ceiling,
                free_from: Timestamp::MIN,
            };
            if self.swap(grant.node(), &text, free).await? {
                return Ok(());
            }
        }
    }
}

/// A node that can be taken.
#[derive(Debug, Clone, Copy)]
struct Candidate<'f> {
    node: u64,
    record: Record,
    /// As it stands in the hash.
    text: &'f str,
}

/// The first, unless others took it: each lost race doubles those to choose from, so that many that
/// start at once do not all run for one.
fn choose<'c, 'f>(
    free: &'c [Candidate<'f>],
    lost_races: u32,
) -> Result<Option<&'c Candidate<'f>>, Error> {
    let among = free.len().min(1 << lost_races.min(16));
    if among < 2 {
        return Ok(free.first());
    }
    let random = ThreadEntropy.next_u64()?;
    let index = random % u64::try_from(among).unwrap_or(1);
    Ok(usize::try_from(index)
        .ok()
        .and_then(|index| free.get(index)))
}

impl<C: ConnectionLike + Clone + Send + Sync> RedisLease<C> {
    /// Says that the leases are new: until then there are none, and each call is a
    /// [`StateLost`](CoordinationFailure::StateLost). This is part of a deployment, not of a
    /// program's start, which would take a server that has lost its data for a new one.
    ///
    /// No key with a node of these leases carries a time before `floor`. That is [`Timestamp::MIN`]
    /// for the first time. After a loss it is a time that no holder can have reached: the newest in
    /// your keys, or now, and [`max_ahead`](LeaseTerms::max_ahead) on top.
    ///
    /// Returns whether there were none; if there are some, they stay as they are.
    ///
    /// # Errors
    ///
    /// [`Unavailable`](CoordinationFailure::Unavailable), and
    /// [`Mismatch`](CoordinationFailure::Mismatch) if the key is no hash.
    pub async fn create(&self, floor: Timestamp) -> Result<bool, Error> {
        self.create_at(floor).await
    }
}

impl<C: ConnectionLike + Clone + Send + Sync> AsyncNodeAllocator for RedisLease<C> {
    async fn acquire(&self, now: Timestamp, last: Option<Timestamp>) -> Result<Grant, Error> {
        self.acquire_at(now, last).await
    }

    async fn renew(&self, grant: &Grant, now: Timestamp) -> Result<Grant, Error> {
        self.renew_at(grant, now).await
    }

    async fn release(&self, grant: &Grant, last: Option<Timestamp>) -> Result<(), Error> {
        self.release_at(grant, last).await
    }

    fn terms(&self) -> &LeaseTerms {
        &self.terms
    }
}

impl RedisLease<Blocking> {
    /// Says that the leases are new, as it does over an asynchronous connection.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn create(&self, floor: Timestamp) -> Result<bool, Error> {
        block_on(self.create_at(floor))
    }
}

impl NodeAllocator for RedisLease<Blocking> {
    fn acquire(&self, now: Timestamp, last: Option<Timestamp>) -> Result<Grant, Error> {
        block_on(self.acquire_at(now, last))
    }

    fn renew(&self, grant: &Grant, now: Timestamp) -> Result<Grant, Error> {
        block_on(self.renew_at(grant, now))
    }

    fn release(&self, grant: &Grant, last: Option<Timestamp>) -> Result<(), Error> {
        block_on(self.release_at(grant, last))
    }

    fn terms(&self) -> &LeaseTerms {
        &self.terms
    }
}
