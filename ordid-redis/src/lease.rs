//! Node leases, in one hash.

use core::{num::NonZeroU32, time::Duration};
use std::collections::{BTreeMap, HashMap};

use ordid_core::{
    Error,
    clock::Timestamp,
    coordination::{
        AsyncNodeAllocator, CoordinationFailure, Grant, LeaseTerms, NodeAllocator, NodeRecord,
        swap::{self, Change, StoredNode, StoredNodes, SwapStore},
    },
};
use redis::{Script, aio::ConnectionLike};

use crate::{
    connection::{Blocking, Connection, Store, block_on},
    error::{damaged, lost},
};

mod failover;
mod record;

use failover::{Replication, SERVER};
use record::Record;

/// The field of what nodes begin at that were never granted. It also says that the state is there.
const FLOOR: &str = "floor";

/// These fields, or all, the server's clock, and what the server says of itself as a master, if it may be asked.
const READ: &str = "\
local time = redis.call('TIME')
local info = redis.pcall('INFO', 'replication')
if type(info) ~= 'string' then info = '' end
if #ARGV == 0 then return {time[1], time[2], redis.call('HGETALL', KEYS[1]), info} end
local fields = {}
for at, value in ipairs(redis.call('HMGET', KEYS[1], unpack(ARGV))) do
    if value then
        table.insert(fields, ARGV[at])
        table.insert(fields, value)
    end
end
return {time[1], time[2], fields, info}";

/// Puts a node's new record in the place of the one that was read. 0: the state is gone. 1: it has
/// changed, or another server has taken over. 2: done.
const SWAP: &str = "\
if ARGV[5] ~= '' then
    local info = redis.pcall('INFO', 'replication')
    if type(info) ~= 'string' or not string.find(info, 'master_replid:' .. ARGV[5], 1, true) then return 1 end
end
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end
if (redis.call('HGET', KEYS[1], ARGV[2]) or '') ~= ARGV[3] then return 1 end
redis.call('HSET', KEYS[1], ARGV[2], ARGV[4])
return 2";

/// Says that the state is there, unless it is, and on which server. 1: it was not.
const CREATE: &str = "\
local made = redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[2])
local info = redis.pcall('INFO', 'replication')
local id = type(info) == 'string' and string.match(info, 'master_replid:(%x+)')
if made == 1 and id then redis.call('HSET', KEYS[1], ARGV[3], id .. ' 0 ' .. ARGV[4]) end
return made";

/// Leases of nodes, in one hash of Redis.
///
/// ```text
/// {key}   floor   "1800000000000"                                nodes that are new begin there
///         7       "4 1800000003000 1800000010000"                epoch, ceiling, free from
///         server  "9f3c.. 0 10000"                               its replication id, no grant begins before,
///                                                                the largest max_ahead of all terms
/// ```
///
/// Times are milliseconds since 1970. A node is free when the server's clock has reached the last
/// number; neither the hash nor a field ever expires. Each step compares the record that was read and
/// replaces it in one script, so it needs no clock but for when nodes come back.
///
/// A lease is one key, so a cluster keeps it in one slot. A replica that takes over may lack the last grants. From then
/// on a free node is granted only for times that none of them can have reached:
/// [`max_ahead`](LeaseTerms::max_ahead) after the new master is first asked. Until a window is over, `acquire` is
/// [`Unavailable`](CoordinationFailure::Unavailable). A holder goes on, also if the new master lacks its last renewal,
/// unless its node was already free there when the new master was first asked: another may have got it, so the holder is
/// [`Fenced`](CoordinationFailure::Fenced).
///
/// `C` is a connection of the library, or [`Blocking`]; then it is a [`NodeAllocator`] instead of an
/// [`AsyncNodeAllocator`].
#[derive(Debug, Clone)]
pub struct RedisLease<C> {
    hash: Hash<C>,
}

/// The hash, as core's loop reads and writes it.
#[derive(Debug, Clone)]
struct Hash<C> {
    store: Store<C>,
    terms: LeaseTerms,
    scripts: Scripts,
}

#[derive(Debug, Clone)]
struct Scripts {
    read: Script,
    swap: Script,
    adopt: Script,
}

/// What a swap compares, and whether a holder may swap.
#[derive(Debug, Clone)]
struct Version {
    /// The field's text; empty if there is none.
    text: String,
    /// The replication id of the server that it was read from; empty if that is not known.
    server: String,
    /// Whether the server may lack a later grant of the node.
    may_lack_grant: bool,
    /// The latest ceiling of what a server may have granted that was replaced by a replica.
    lost_until: Timestamp,
}

impl<C: Connection> RedisLease<C> {
    /// Leases of the nodes of these terms, in the hash of this key.
    pub fn new(connection: C, key: impl Into<String>, terms: LeaseTerms) -> Self {
        let hash = Hash {
            store: Store::new(connection, key.into()),
            terms,
            scripts: Scripts {
                read: Script::new(READ),
                swap: Script::new(SWAP),
                adopt: Script::new(failover::ADOPT),
            },
        };
        Self { hash }
    }

    /// Makes a grant, a renewal or a release count only when so many replicas have confirmed within this time
    /// (`WAIT`) that they have it. Else the call is
    /// [`Unavailable`](CoordinationFailure::Unavailable), and what it took is a gap of time.
    ///
    /// A fail-over to one of the replicas that confirmed loses nothing. This is no consensus:
    ///
    /// - Of several replicas, another may take over. Name all of them: Sentinel and the cluster choose by what they
    ///   heard last, and that may be a second old.
    /// - A replica confirms what it has in memory, not on its disk: all of them may lose it at once.
    /// - While fewer are connected, nothing is granted.
    ///
    /// `WAIT` blocks the connection, also for other tasks that share it. The connection's own time-out for an answer
    /// should be longer than `within`: it is 500 ms unless set for tasks, and what you give to [`Blocking`] for
    /// threads. Replicas have at least a millisecond, even if `within` is shorter.
    #[must_use]
    pub fn with_replicas(self, count: NonZeroU32, within: Duration) -> Self {
        let store = self.hash.store.with_replicas(count, within);
        Self {
            hash: Hash { store, ..self.hash },
        }
    }
}

impl<C: Connection> Hash<C> {
    async fn create_at(&self, floor: Timestamp) -> Result<bool, Error> {
        let script = Script::new(CREATE);
        let mut call = script.key(&self.store.key);
        call.arg(FLOOR).arg(floor.as_unix_millis()).arg(SERVER);
        call.arg(record::millis(self.terms.max_ahead()));
        self.store.ask(&call).await
    }

    fn lost(&self) -> Error {
        lost(&self.store.key, "RedisLease::create")
    }

    fn floor(&self, text: &str) -> Result<Timestamp, Error> {
        record::timestamp(text).ok_or_else(|| damaged(&self.store.key, FLOOR, text))
    }

    fn stored(
        &self,
        node: u64,
        text: String,
        replication: &Replication,
        store_now: Timestamp,
    ) -> Result<StoredNode<Version>, Error> {
        let Record { record, free_from } = Record::parse(&text)
            .ok_or_else(|| damaged(&self.store.key, &format!("field {node}"), &text))?;
        Ok(StoredNode {
            record,
            is_held: free_from > store_now,
            store_now: Some(store_now),
            version: Version {
                text,
                server: replication.id.clone(),
                may_lack_grant: replication.may_lack_grant(free_from),
                lost_until: replication.from,
            },
        })
    }

    /// Reads these fields, or all if none are named. If another server has taken over since, that is written down
    /// first, so that all who ask agree on when it was seen.
    async fn read_fields(
        &self,
        names: &[&str],
    ) -> Result<(HashMap<String, String>, Timestamp, Replication), Error> {
        loop {
            let mut call = self.scripts.read.key(&self.store.key);
            for name in names {
                call.arg(name);
            }
            let (seconds, micros, fields, info): (u64, u64, HashMap<String, String>, String) =
                self.store.ask(&call).await?;
            let store_now = record::server_time(seconds, micros)?;
            if !fields.contains_key(FLOOR) {
                return Err(self.lost());
            }
            let known = fields.get(SERVER).map_or("", String::as_str);
            let replication = Replication::read(&info, known, store_now, self.terms.max_ahead());
            let now_known = replication.to_string();
            if replication.id.is_empty() || now_known == known {
                return Ok((fields, store_now, replication));
            }
            let mut call = self.scripts.adopt.key(&self.store.key);
            call.arg(SERVER).arg(known).arg(now_known);
            self.store.ask::<()>(&call).await?;
        }
    }
}

impl<C: Connection> SwapStore for Hash<C> {
    type Version = Version;

    fn place(&self) -> String {
        format!("Redis, key {}", self.store.key)
    }

    fn terms(&self) -> &LeaseTerms {
        &self.terms
    }

    async fn read_all(&self) -> Result<StoredNodes<Version>, Error> {
        let (fields, store_now, replication) = self.read_fields(&[]).await?;
        replication.check(&self.store.key, &self.terms, store_now)?;
        let floor = fields.get(FLOOR).ok_or_else(|| self.lost())?;
        let begin = |stored: &mut StoredNode<Version>| {
            stored.record.ceiling = stored.record.ceiling.max(replication.from);
        };
        let mut never_granted = never_granted(self.floor(floor)?, &replication.id, store_now);
        begin(&mut never_granted);
        let mut granted = BTreeMap::new();
        for (field, text) in fields {
            // Other terms may name other nodes.
            if let Some(node) = swap::node_of(&field, &self.terms) {
                let mut stored = self.stored(node, text, &replication, store_now)?;
                begin(&mut stored);
                granted.insert(node, stored);
            }
        }
        Ok(StoredNodes {
            never_granted,
            granted,
        })
    }

    async fn read(&self, node: u64) -> Result<StoredNode<Version>, Error> {
        let name = node.to_string();
        let (mut fields, store_now, replication) =
            self.read_fields(&[FLOOR, SERVER, &name]).await?;
        match fields.remove(&name).filter(|text| !text.is_empty()) {
            Some(text) => self.stored(node, text, &replication, store_now),
            None => {
                let floor = fields.get(FLOOR).ok_or_else(|| self.lost())?;
                Ok(never_granted(
                    self.floor(floor)?,
                    &replication.id,
                    store_now,
                ))
            }
        }
    }

    fn record_of(&self, grant: &Grant, stored: &StoredNode<Version>) -> NodeRecord {
        let (record, version) = (stored.record, &stored.version);
        // The last renewal was lost in a fail-over, and nobody else got the node.
        let is_lost = record.epoch == grant.epoch()
            && record.ceiling < grant.ceiling()
            && grant.ceiling() <= version.lost_until
            && !version.may_lack_grant;
        NodeRecord {
            ceiling: if is_lost {
                grant.ceiling()
            } else {
                record.ceiling
            },
            ..record
        }
    }

    async fn check_holder(&self, grant: &Grant, stored: &StoredNode<Version>) -> Result<(), Error> {
        if !stored.version.may_lack_grant {
            return Ok(());
        }
        Err(Error::coordination(
            CoordinationFailure::Fenced,
            format!(
                "{}: {grant} ended: another server took over while the node was free, and may lack a grant to another",
                self.place()
            ),
        ))
    }

    async fn keep_alive(
        &self,
        grant: &Grant,
        stored: &StoredNode<Version>,
    ) -> Result<Option<Timestamp>, Error> {
        self.check_holder(grant, stored).await?;
        Ok(stored.store_now)
    }

    async fn swap(
        &self,
        node: u64,
        read: &StoredNode<Version>,
        record: NodeRecord,
        change: Change,
    ) -> Result<bool, Error> {
        let free_from = match change {
            Change::Release => Timestamp::MIN,
            Change::Acquire | Change::Renew => {
                record::after(read.store_now.unwrap_or(Timestamp::MIN), self.terms.ttl())
            }
        };
        let mut call = self.scripts.swap.key(&self.store.key);
        call.arg(FLOOR)
            .arg(node)
            .arg(&read.version.text)
            .arg(Record { record, free_from }.to_string())
            .arg(&read.version.server);
        match self.store.ask(&call).await? {
            0 => Err(self.lost()),
            1 => Ok(false),
            _ => Ok(true),
        }
    }
}

fn never_granted(floor: Timestamp, server: &str, store_now: Timestamp) -> StoredNode<Version> {
    StoredNode {
        record: NodeRecord {
            epoch: 0,
            ceiling: floor,
        },
        is_held: false,
        store_now: Some(store_now),
        version: Version {
            text: String::new(),
            server: server.to_owned(),
            may_lack_grant: false,
            lost_until: Timestamp::MIN,
        },
    }
}

impl<C: ConnectionLike + Clone + Send + Sync> RedisLease<C> {
    /// Declares that the leases are new. Before this there are none, and each call fails with
    /// [`StateLost`](CoordinationFailure::StateLost). Call it in a deployment, not at a program's start, which
    /// would take a server that has lost its data for a new one.
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
        self.hash.create_at(floor).await
    }
}

impl<C: ConnectionLike + Clone + Send + Sync> AsyncNodeAllocator for RedisLease<C> {
    async fn acquire(&self, now: Timestamp, last: Option<Timestamp>) -> Result<Grant, Error> {
        swap::acquire(&self.hash, now, last).await
    }

    async fn renew(&self, grant: &Grant, now: Timestamp) -> Result<Grant, Error> {
        swap::renew(&self.hash, grant, now).await
    }

    async fn release(&self, grant: &Grant, last: Option<Timestamp>) -> Result<(), Error> {
        swap::release(&self.hash, grant, last).await
    }

    fn terms(&self) -> &LeaseTerms {
        &self.hash.terms
    }
}

impl RedisLease<Blocking> {
    /// Says that the leases are new, as it does over an asynchronous connection.
    ///
    /// # Errors
    ///
    /// It returns the errors of `create` over an asynchronous connection.
    pub fn create(&self, floor: Timestamp) -> Result<bool, Error> {
        block_on(self.hash.create_at(floor))
    }
}

impl NodeAllocator for RedisLease<Blocking> {
    fn acquire(&self, now: Timestamp, last: Option<Timestamp>) -> Result<Grant, Error> {
        block_on(swap::acquire(&self.hash, now, last))
    }

    fn renew(&self, grant: &Grant, now: Timestamp) -> Result<Grant, Error> {
        block_on(swap::renew(&self.hash, grant, now))
    }

    fn release(&self, grant: &Grant, last: Option<Timestamp>) -> Result<(), Error> {
        block_on(swap::release(&self.hash, grant, last))
    }

    fn terms(&self) -> &LeaseTerms {
        &self.hash.terms
    }
}
