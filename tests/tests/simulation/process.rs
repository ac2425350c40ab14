//! Processes: each holds a node under a lease, makes keys, flushes units of work, and is killed at times.

use std::{
    collections::BTreeSet,
    pin::{Pin, pin},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use ordid::{KeyType, OrderedKey};
use ordid_core::{
    Error,
    clock::{Clock, Timestamp},
    coordination::{Grant, LeaseTerms, MemoryNodes, NodeAllocator},
    entropy::SeededEntropy,
    generator::{AtCeiling, Generator as _, GrantedGenerator, Policy},
    scheme::{Snowflake, snowflake::BaiduUid},
};
use ordid_sql::{FlushError, Markers, Retry, Work};

use crate::{
    Lie,
    database::{Database, Key},
    library::{Binder, Pool, SCOPE, Value, registration},
    world::{MachineClock, World},
};

/// The key of an item. Its time has whole seconds, so that two holders of one node in one second make the same keys.
#[derive(KeyType)]
#[ordid(scheme = snowflake(layout = Seconds))]
pub struct ItemId(i64);

/// 28 bits of seconds since 2026, 22 of node, 13 of sequence.
type Seconds = BaiduUid<1_767_225_600>;

#[derive(KeyType)]
#[ordid(scheme = snowflake)]
pub struct AccountId(i64);

#[derive(OrderedKey)]
#[ordid(table = "items")]
pub struct Item {
    #[ordid(key)]
    id: ItemId,
    flush: i64,
}

/// Many flushes update it. The column behind the key has the number of the last one.
#[derive(OrderedKey)]
#[ordid(table = "accounts")]
pub struct Account {
    #[ordid(key)]
    id: AccountId,
    flush: i64,
    total: i64,
    #[ordid(version)]
    version: i64,
}

impl Value for ItemId {
    fn number(&self) -> i64 {
        self.0
    }
}

impl Value for AccountId {
    fn number(&self) -> i64 {
        self.0
    }
}

pub const ACCOUNTS: [i64; 2] = [1 << 40, 2 << 40];

/// What a flush said of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    /// It has not ended, or its process was killed.
    Nothing,
    Done,
    NothingWritten,
    Unknown,
}

/// A flush, and what it was to write.
#[derive(Debug)]
pub struct Flush {
    pub keys: Vec<i64>,
    pub account: Option<(i64, i64)>,
    pub said: Said,
}

/// What all processes have done.
#[derive(Default)]
pub struct History {
    /// By their numbers.
    pub flushes: Vec<Flush>,
    pub keys: BTreeSet<i64>,
    pub repeated: Vec<i64>,
    pub kills: usize,
}

/// A store of leases, over a network that loses questions and answers.
struct Nodes {
    world: World,
    store: Arc<MemoryNodes<MachineClock>>,
    lie: Option<Lie>,
}

impl Nodes {
    /// Asks the store, unless the question is lost. The answer may be lost, too.
    async fn ask(
        &self,
        ask: impl FnOnce(&MemoryNodes<MachineClock>) -> Result<Grant, Error>,
    ) -> Option<Grant> {
        self.world.message().await;
        if self.world.once_in(40) {
            return None;
        }
        let answer = ask(&self.store);
        self.world.message().await;
        answer.ok().filter(|_| !self.world.once_in(40))
    }

    async fn acquire(&self, clock: &MachineClock, last: Option<Timestamp>) -> Option<Grant> {
        let now = clock.now();
        let grant = self.ask(|store| store.acquire(now, last)).await?;
        if self.lie == Some(Lie::NodesAreGivenByTheClockAlone) {
            let millis = now.as_unix_millis();
            let at = |millis| Timestamp::from_unix_millis(millis).expect("a time of this century");
            return Grant::new(grant.node(), grant.epoch(), at(millis), at(millis + 3_000)).ok();
        }
        Some(grant)
    }
}

/// A unit of work that was given up, with the number of its flush.
type Unresolved = (usize, Work<Binder>);

type Keys = GrantedGenerator<Snowflake<Seconds>, MachineClock, SeededEntropy>;

/// What all processes share.
#[derive(Clone)]
pub struct Shared {
    pub world: World,
    pub database: Database,
    store: Arc<MemoryNodes<MachineClock>>,
    history: Arc<Mutex<History>>,
    unresolved: Arc<Mutex<Vec<Unresolved>>>,
    lie: Option<Lie>,
}

impl Shared {
    pub fn new(world: &World, lie: Option<Lie>) -> Result<Self, Error> {
        let terms = LeaseTerms::new(0..4)?;
        let database = Database::new(world);
        for account in ACCOUNTS {
            let place = (Account::TABLE, Key::Number(account));
            database.put(place, vec![account, -1, 0, 1]);
        }
        Ok(Self {
            world: world.clone(),
            database,
            store: Arc::new(MemoryNodes::new(terms, MachineClock::new(world, 0))),
            history: Arc::default(),
            unresolved: Arc::default(),
            lie,
        })
    }

    pub fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn nodes(&self) -> Nodes {
        Nodes {
            world: self.world.clone(),
            store: Arc::clone(&self.store),
            lie: self.lie,
        }
    }

    /// A machine, on which a process is started again whenever it was killed, until it has flushed so often.
    pub async fn machine(self, flushes: usize) {
        let world = &self.world;
        let ahead = i64::try_from(world.below(8_000)).expect("a small number") - 4_000;
        let clock = MachineClock::new(world, ahead);
        let left = Mutex::new(flushes);
        for _ in 0..40 {
            let life = match world.once_in(3) {
                true => world.below(30_000),
                false => 600_000,
            };
            if until(world, life, self.process(&clock, &left))
                .await
                .is_none()
            {
                self.history().kills += 1;
            }
            if *left.lock().unwrap_or_else(PoisonError::into_inner) == 0 {
                return;
            }
            world.sleep(world.below(4_000)).await;
        }
    }

    async fn process(&self, clock: &MachineClock, left: &Mutex<usize>) {
        let (world, nodes) = (&self.world, self.nodes());
        let Some(keys) = self.generator(clock, &nodes).await else {
            return;
        };
        let mut last = None;
        loop {
            {
                let mut left = left.lock().unwrap_or_else(PoisonError::into_inner);
                let Some(rest) = left.checked_sub(1) else {
                    break;
                };
                *left = rest;
            }
            world.sleep(world.below(3_000)).await;
            if world.once_in(8) {
                let step = i64::try_from(world.below(20_000)).expect("a small number") - 10_000;
                clock.step(step);
            }
            let mut made = Vec::new();
            for _ in 0..world.below(8) {
                let Some(key) = self.key(&keys, &nodes).await else {
                    return;
                };
                assert!(last < Some(key.0), "keys of one process rise");
                last = Some(key.0);
                let mut history = self.history();
                if !history.keys.insert(key.0) {
                    history.repeated.push(key.0);
                }
                made.push(key.0);
            }
            self.flush(made).await;
        }
        let (grant, newest) = keys.close();
        // The answer does not matter: a node that is not given back is free after some time.
        let released = nodes.ask(|store| store.release(&grant, newest).map(|()| grant));
        released.await;
    }

    async fn generator(&self, clock: &MachineClock, nodes: &Nodes) -> Option<Keys> {
        for _ in 0..60 {
            if let Some(grant) = nodes.acquire(clock, None).await {
                let entropy = SeededEntropy::new(self.world.below(u64::MAX));
                let keys = Keys::new(
                    grant,
                    clock.clone(),
                    entropy,
                    Policy::DEFAULT,
                    AtCeiling::Error,
                );
                if let Ok(keys) = keys {
                    return Some(keys);
                }
                nodes
                    .ask(|store| store.release(&grant, None).map(|()| grant))
                    .await;
            }
            self.world.sleep(500).await;
        }
        None
    }

    /// Makes a key. If the grant has no time left, it is renewed, or another one is taken.
    async fn key(&self, keys: &Keys, nodes: &Nodes) -> Option<ItemId> {
        for attempt in 0..40 {
            if let Ok(key) = keys.try_generate_key() {
                return Some(key);
            }
            let (grant, now) = (keys.grant(), keys.clock().now());
            let granted = match attempt % 4 {
                3 => nodes.acquire(keys.clock(), keys.newest()).await,
                _ => nodes.ask(|store| store.renew(&grant, now)).await,
            };
            if let Some(granted) = granted {
                // One that it refuses is free after some time.
                let _ = keys.renew(granted);
            }
            self.world.sleep(300).await;
        }
        None
    }

    async fn flush(&self, keys: Vec<i64>) {
        let world = &self.world;
        let mut work = Work::<Binder>::default();
        work.set_retry(Retry::DEFAULT.with_attempts(4).with_jitter(false));
        if world.below(4) == 0 {
            work.set_markers(Markers::All);
        }
        let number = {
            let mut history = self.history();
            history.flushes.push(Flush {
                keys: keys.clone(),
                account: None,
                said: Said::Nothing,
            });
            history.flushes.len() - 1
        };
        let flush = i64::try_from(number).expect("few flushes");
        for key in &keys {
            let id = ItemId(*key);
            work.add(Item { id, flush }, registration::<Item>);
        }
        if keys.is_empty() || world.below(3) == 0 {
            let amount = 1 + flush;
            let account = self.account(flush, amount).await;
            self.history().flushes[number].account = Some((account.id.0, amount));
            work.update(account, registration::<Account>);
        }
        for _ in 0..1 + world.below(6) {
            if self.is_resolved(number, &mut work).await {
                return;
            }
            world.sleep(world.below(3_000)).await;
        }
        self.unresolved().push((number, work));
    }

    /// Flushes, and returns whether there is nothing left to be done: the rows are written, or somebody else has changed
    /// the account.
    async fn is_resolved(&self, number: usize, work: &mut Work<Binder>) -> bool {
        let source = Pool {
            world: self.world.clone(),
            database: self.database.clone(),
            lie: self.lie,
            connection: None,
        };
        // What it said before is over, also if the process is killed now.
        self.history().flushes[number].said = Said::Nothing;
        let flushed = work.flush(source, SCOPE).await;
        let said = said(&flushed);
        self.history().flushes[number].said = said;
        let what = u64::try_from(number).expect("few flushes") << 2;
        self.world.note(what | said as u64);
        match flushed {
            Ok(_) => true,
            Err(error) => said == Said::NothingWritten && error.is_stale(),
        }
    }

    fn unresolved(&self) -> MutexGuard<'_, Vec<Unresolved>> {
        let unresolved = self.unresolved.lock();
        unresolved.unwrap_or_else(PoisonError::into_inner)
    }

    /// Flushes again what was not resolved, each once, and returns the numbers of those that are still not.
    pub async fn flush_again(self, stay: Arc<Mutex<Vec<usize>>>) {
        let unresolved = std::mem::take(&mut *self.unresolved());
        for (number, mut work) in unresolved {
            if !self.is_resolved(number, &mut work).await {
                let mut stay = stay.lock().unwrap_or_else(PoisonError::into_inner);
                stay.push(number);
            }
        }
    }

    /// Reads an account, as it is to be written.
    async fn account(&self, flush: i64, amount: i64) -> Account {
        let chosen = usize::from(self.world.once_in(2));
        let place = (Account::TABLE, Key::Number(ACCOUNTS[chosen]));
        self.world.message().await;
        let row = self.database.row(place).expect("an account");
        Account {
            id: AccountId(row[0]),
            flush,
            total: row[2] + amount,
            version: row[3],
        }
    }
}

fn said<T>(flushed: &Result<T, FlushError<std::io::Error>>) -> Said {
    match flushed {
        Ok(_) => Said::Done,
        Err(error) if error.is_commit_unknown() => Said::Unknown,
        Err(_) => Said::NothingWritten,
    }
}

/// Runs a future for at most so many milliseconds, and then drops it.
async fn until<T>(world: &World, millis: u64, future: impl Future<Output = T>) -> Option<T> {
    let (mut end, mut future) = (world.sleep(millis), pin!(future));
    std::future::poll_fn(|context: &mut Context<'_>| {
        if Pin::new(&mut end).poll(context).is_ready() {
            return Poll::Ready(None);
        }
        future.as_mut().poll(context).map(Some)
    })
    .await
}
