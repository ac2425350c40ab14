//! Adds up what the kills of a program's tests came to.

use std::{
    fmt,
    sync::{Mutex, PoisonError},
};

use super::{Engine, Failed, Flushed, Found, Site};
use crate::trials::Outcome;

static TOTAL: Mutex<Tally> = Mutex::new(Tally::NONE);

/// How often something was killed (`kill -9`), and what became of the flushes and their rows.
#[derive(Debug, Clone, Copy)]
pub struct Tally {
    clients: u32,
    servers: u32,
    /// The flush that was to be cut off said `Ok`: it was over before the kill, or asked after it.
    said_ok: u32,
    /// It said that nothing was written.
    said_nothing: u32,
    /// It said nothing at all, or that it does not know, and all rows were there.
    unsaid_all: u32,
    /// The same, and no row was there.
    unsaid_none: u32,
    /// Those that were to be cut off, and those that went on where they were.
    flushes: u32,
    rows: u64,
    doubles: u64,
    losses: u64,
}

impl Tally {
    /// Nothing yet.
    pub const NONE: Self = Self {
        clients: 0,
        servers: 0,
        said_ok: 0,
        said_nothing: 0,
        unsaid_all: 0,
        unsaid_none: 0,
        flushes: 0,
        rows: 0,
        doubles: 0,
        losses: 0,
    };

    /// Counts flushes that nobody cut off.
    pub fn flushed(&mut self, flushes: u32) {
        self.flushes += flushes;
    }

    /// Counts a flush whose program was killed, by what it said before and what was found then.
    pub fn client(&mut self, said: &str, found: Found) {
        self.clients += 1;
        self.flushes += 1;
        match (said, found) {
            ("", Found::All) => self.unsaid_all += 1,
            ("", Found::None) => self.unsaid_none += 1,
            _ => self.said_ok += 1,
        }
    }

    /// Counts a flush whose server was killed, by its outcome and what was found then.
    pub fn server(&mut self, outcome: &Result<Flushed, Failed>, found: Found) {
        self.servers += 1;
        self.flushes += 1;
        match (outcome, found) {
            (Ok(_), _) => self.said_ok += 1,
            (Err(error), _) if !error.is_commit_unknown => self.said_nothing += 1,
            (_, Found::All) => self.unsaid_all += 1,
            (_, Found::None) => self.unsaid_none += 1,
        }
    }

    /// Counts all rows of the database, adds it to what the other tests of this program have counted, and prints that.
    ///
    /// # Errors
    ///
    /// The database's, and other rows than these many, each once: the law is broken.
    pub async fn close<DB: Engine>(mut self, site: &Site<DB>, expected: usize) -> Outcome {
        let (mut rows, mut distinct) = (0, 0);
        for table in ["customers", "orders", "items"] {
            let each = format!("(SELECT DISTINCT unit, position FROM {table}) AS each_once");
            for (from, sum) in [(table, &mut rows), (&each, &mut distinct)] {
                let count = site
                    .numbers(&format!("SELECT COUNT(*) FROM {from}"))
                    .await?;
                *sum += u64::try_from(count[0])?;
            }
        }
        self.rows = rows;
        self.doubles = rows - distinct;
        self.losses = u64::try_from(expected)?.saturating_sub(distinct);
        let total = {
            let mut total = TOTAL.lock().unwrap_or_else(PoisonError::into_inner);
            total.add(&self);
            *total
        };
        eprintln!("{total}");
        match u64::try_from(expected)? == rows && rows == distinct {
            true => Ok(()),
            false => Err(format!("{expected} rows are expected: {self}").into()),
        }
    }

    fn add(&mut self, other: &Self) {
        self.clients += other.clients;
        self.servers += other.servers;
        self.said_ok += other.said_ok;
        self.said_nothing += other.said_nothing;
        self.unsaid_all += other.unsaid_all;
        self.unsaid_none += other.unsaid_none;
        self.flushes += other.flushes;
        self.rows += other.rows;
        self.doubles += other.doubles;
        self.losses += other.losses;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "kill -9 so far: {} ({} clients, {} servers); of these flushes {} said Ok, {} that nothing was \
             written, {} left all rows and {} none without a word; {} flushes in all, {} rows, {} doubles, {} \
             losses",
            self.clients + self.servers,
            self.clients,
            self.servers,
            self.said_ok,
            self.said_nothing,
            self.unsaid_all,
            self.unsaid_none,
            self.flushes,
            self.rows,
            self.doubles,
            self.losses
        )
    }
}
