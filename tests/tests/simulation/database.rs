//! A database: tables of unique keys, transactions with locks, and a log of what was committed.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use ordid::uuid::Uuid;

use crate::world::World;

/// The key of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    Number(i64),
    Marker(Uuid),
}

/// A table's name, and a key in it.
pub type Place = (&'static str, Key);

/// How long a transaction waits for the locks of another, in milliseconds.
const PATIENCE: u64 = 2_000;

/// A database. Clones are the same one.
#[derive(Clone)]
pub struct Database {
    world: World,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    rows: BTreeMap<Place, Vec<i64>>,
    locks: BTreeMap<Place, u64>,
    open: BTreeMap<u64, BTreeMap<Place, Vec<i64>>>,
    sessions: u64,
    /// The numbers of the flushes in each commit.
    log: Vec<BTreeSet<i64>>,
}

/// Why a statement failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    Duplicate,
    /// The lock of another transaction did not go.
    Locked,
}

impl Database {
    pub fn new(world: &World) -> Self {
        Self {
            world: world.clone(),
            state: Arc::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a row outside of the simulation.
    pub fn put(&self, place: Place, row: Vec<i64>) {
        self.state().rows.insert(place, row);
    }

    /// Returns the committed row.
    pub fn row(&self, place: Place) -> Option<Vec<i64>> {
        self.state().rows.get(&place).cloned()
    }

    /// Returns the numbers of the flushes in each commit.
    pub fn log(&self) -> Vec<BTreeSet<i64>> {
        self.state().log.clone()
    }

    /// Returns how many transactions are open.
    pub fn open(&self) -> usize {
        self.state().open.len()
    }

    pub fn begin(&self) -> u64 {
        let mut state = self.state();
        state.sessions += 1;
        let session = state.sessions;
        state.open.insert(session, BTreeMap::new());
        session
    }

    /// Takes the lock of a row, as soon as nobody else has it.
    async fn lock(&self, session: u64, place: Place) -> Result<(), Refusal> {
        let end = self.world.now() + PATIENCE;
        loop {
            {
                let mut state = self.state();
                let holder = *state.locks.entry(place).or_insert(session);
                if holder == session {
                    return Ok(());
                }
            }
            if self.world.now() >= end {
                return Err(Refusal::Locked);
            }
            self.world.sleep(10).await;
        }
    }

    pub async fn insert(&self, session: u64, place: Place, row: Vec<i64>) -> Result<(), Refusal> {
        self.lock(session, place).await?;
        let mut state = self.state();
        let is_taken = state.rows.contains_key(&place) || state.open[&session].contains_key(&place);
        if is_taken {
            return Err(Refusal::Duplicate);
        }
        state.stage(session, place, row);
        Ok(())
    }

    /// Replaces a row by what this makes of it, and returns whether there is such a row.
    pub async fn update(
        &self,
        session: u64,
        place: Place,
        change: impl FnOnce(&[i64]) -> Option<Vec<i64>>,
    ) -> Result<bool, Refusal> {
        self.lock(session, place).await?;
        let mut state = self.state();
        let present = state.open[&session].get(&place);
        let changed = present
            .or_else(|| state.rows.get(&place))
            .and_then(|row| change(row));
        let is_changed = changed.is_some();
        if let Some(row) = changed {
            state.stage(session, place, row);
        }
        Ok(is_changed)
    }

    /// Commits a transaction. The column behind the key has the number of the flush.
    pub fn commit(&self, session: u64) {
        let mut state = self.state();
        let Some(written) = state.end(session) else {
            return;
        };
        let tables = written
            .iter()
            .filter(|(place, _)| matches!(place.1, Key::Number(_)));
        let flushes: BTreeSet<i64> = tables.map(|(_, row)| row[1]).collect();
        state.rows.extend(written);
        if !flushes.is_empty() {
            state.log.push(flushes);
        }
    }

    /// Rolls a transaction back, if it is still open.
    pub fn roll_back(&self, session: u64) {
        self.state().end(session);
    }
}

impl State {
    fn stage(&mut self, session: u64, place: Place, row: Vec<i64>) {
        let open = self.open.get_mut(&session).expect("an open transaction");
        open.insert(place, row);
    }

    fn end(&mut self, session: u64) -> Option<BTreeMap<Place, Vec<i64>>> {
        self.locks.retain(|_, holder| *holder != session);
        self.open.remove(&session)
    }
}
