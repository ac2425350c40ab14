//! A wire recorder for TDS, the protocol of SQL Server: an in-process peer that takes logins,
//! batches, RPC calls, transactions and bulk loads from a real client, writes down what it was
//! sent, and answers what it was told to.
//!
//! It is no SQL engine. It understands no statement (but counts the rows of an `INSERT`), keeps no row, checks no constraint and sorts
//! nothing: what it proves are the bytes and the text that a client sends, and what a client makes
//! of an answer. That SQL Server accepts the one and gives the other is for the live tests. As Babelfish,
//! it refuses what Babelfish 4.3 was seen to refuse.
//!
//! The first flush into a table asks the catalog, in a transaction of its own, whether the table is protected. The recorder
//! says yes unless a test says otherwise. It leaves the question out of the log, and the transaction if that has nothing but
//! the question, as tests run in any order; [`Recorder::shows_catalog`] has all of it.
//!
//! ```text
//! client ──TCP──> Recorder ──> log: Login, Batch, Rpc, Begin, Bulk, Commit ..
//!        <──────  answers: what `Recorder::answer` queued, else the least that is right
//! ```
//!
//! # References
//!
//! [MS-TDS], sections 2.2.3 (packets), 2.2.5 (types), 2.2.6 (requests) and 2.2.7 (tokens).

mod answer;
pub mod babelfish;
mod request;
mod types;
mod wire;

use std::{
    collections::{BTreeSet, VecDeque},
    io,
    net::{SocketAddr, TcpListener},
    sync::{Arc, Mutex, MutexGuard},
    thread,
};

pub use answer::{Answer, Column, Failure};
pub use request::{Bulk, BulkColumn, Parameter, Received, Request};
pub use types::Type;

/// What `@@VERSION` of SQL Server 2022 begins with.
pub const SQL_SERVER: &str = "Microsoft SQL Server 2022 (RTM) - 16.0.1000.6 (X64)";

/// What `@@VERSION` of Babelfish begins with.
pub const BABELFISH: &str = "Babelfish for PostgreSQL with SQL Server Compatibility - 12.0.2000.8";

/// A peer on a free port of 127.0.0.1. Its threads end with their connections.
#[derive(Debug)]
pub struct Recorder {
    address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
}

/// What the connections share.
#[derive(Debug)]
struct Shared {
    version: String,
    log: Vec<Received>,
    once: VecDeque<(String, Answer)>,
    always: Vec<(String, Answer)>,
    /// Whether questions to the catalog stand in the log.
    shows_catalog: bool,
    /// The connections whose open transaction has a question to the catalog and nothing else.
    asking: BTreeSet<usize>,
}

impl Recorder {
    /// Starts to listen, as SQL Server.
    ///
    /// # Errors
    ///
    /// If the system refuses a socket or a thread.
    pub fn start() -> io::Result<Self> {
        Self::start_as(SQL_SERVER)
    }

    /// Starts to listen, with this answer to `@@VERSION`.
    ///
    /// # Errors
    ///
    /// If the system refuses a socket or a thread.
    pub fn start_as(version: &str) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Mutex::new(Shared {
            version: version.to_owned(),
            log: Vec::new(),
            once: VecDeque::new(),
            always: Vec::new(),
            shows_catalog: false,
            asking: BTreeSet::new(),
        }));
        let for_connections = Arc::clone(&shared);
        thread::Builder::new().spawn(move || {
            for (number, stream) in listener.incoming().flatten().enumerate() {
                let shared = Arc::clone(&for_connections);
                thread::spawn(move || {
                    // A client that goes, or sends what is not understood, ends its connection.
                    let _ = wire::serve(stream, number, &shared);
                });
            }
        })?;
        Ok(Self { address, shared })
    }

    /// Returns where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers the next request whose [`Request::text`] contains `part`, once.
    pub fn once(&self, part: &str, answer: Answer) {
        self.lock().once.push_back((part.to_owned(), answer));
    }

    /// Answers every request whose [`Request::text`] contains `part`; what [`once`](Self::once) was
    /// told goes before, and among these the first.
    pub fn always(&self, part: &str, answer: Answer) {
        self.lock().always.push((part.to_owned(), answer));
    }

    /// Writes questions to the catalog down from now on.
    pub fn shows_catalog(&self) {
        self.lock().shows_catalog = true;
    }

    /// Says what columns a table has, to the question that a bulk load begins with.
    pub fn table(&self, quoted: &str, columns: Vec<Column>) {
        // Anchored at the end, where the table's name stands.
        self.always(&format!(" FROM {quoted}$"), Answer::rows(columns, []));
    }

    /// Returns what was received since the last call, logins left out.
    pub fn take(&self) -> Vec<Received> {
        let mut log = std::mem::take(&mut self.lock().log);
        log.retain(|received| !matches!(received.request, Request::Login { .. }));
        log
    }

    /// Returns all that was received and not taken.
    pub fn log(&self) -> Vec<Received> {
        self.lock().log.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        lock(&self.shared)
    }
}

/// A thread that panicked has at worst half a line in the log, which the test will not find.
fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Shared {
    /// Writes a request down and finds its answer.
    fn receive(&mut self, received: Received) -> Option<Answer> {
        let text = format!("{}$", received.request.text());
        if text.contains(CATALOG) {
            if self.shows_catalog {
                self.log.push(received);
            } else {
                self.hide(received.connection);
            }
            return Some(self.of_catalog(&text));
        }
        if self.asking.remove(&received.connection) {
            if received.request == Request::Rollback {
                return None;
            }
            self.log.push(received);
            let message = "the transaction of a question to the catalog was not rolled back";
            return Some(Answer::failure(50_000, message));
        }
        let refused = match self.version.contains("Babelfish") {
            true => babelfish::refuses(&received.request),
            false => None,
        };
        self.log.push(received);
        if let Some(failure) = refused {
            return Some(Answer::Failure(failure));
        }
        let told = self.told(&text);
        if !text.contains(COUNTED) {
            return told;
        }
        match told {
            Some(Answer::Done(rows)) => Some(Answer::changed(rows)),
            None if text.starts_with("INSERT ") => Some(Answer::changed(rows_of(&text))),
            told => told,
        }
    }

    /// Leaves a transaction out of the log that has just begun, to ask the catalog.
    fn hide(&mut self, connection: usize) {
        let last = self.log.iter().rposition(|it| it.connection == connection);
        if let Some(last) = last.filter(|last| self.log[*last].request == Request::Begin) {
            self.log.remove(last);
            self.asking.insert(connection);
        }
    }

    /// Answers a question to the catalog: all tables are protected, unless the test has said which.
    fn of_catalog(&mut self, text: &str) -> Answer {
        self.told(text).unwrap_or_else(|| {
            let tables = text.matches(CATALOG).count();
            Answer::texts((0..tables).map(|number| number.to_string()))
        })
    }

    /// Finds what the test has told it to answer.
    fn told(&mut self, text: &str) -> Option<Answer> {
        if let Some(found) = self.once.iter().position(|(part, _)| text.contains(part)) {
            return self.once.remove(found).map(|(_, answer)| answer);
        }
        let mut always = self.always.iter();
        always
            .find(|(part, _)| text.contains(part))
            .map(|(_, answer)| answer.clone())
    }
}

/// Stands once for each table in a question to the catalog.
const CATALOG: &str = " FROM sys.indexes AS i ";

/// Asks how many rows the statement before it changed.
const COUNTED: &str = "SELECT @@ROWCOUNT";

/// Returns how many rows stand in the `VALUES` of an `INSERT` without casts.
fn rows_of(insert: &str) -> u64 {
    let rows = insert.split_once(" VALUES ").map(|(_, rows)| rows);
    rows.map_or(0, |rows| rows.matches('(').count() as u64)
}
