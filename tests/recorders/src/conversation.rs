//! Peers that speak the protocols of PostgreSQL and MySQL, in the places of engines that cannot be had here: they take
//! the name and the errors of one of these from a script.
//!
//! ```text
//! client ──TCP──> postgres.rs, mysql.rs ──> Conversation: log of statements, keys of committed rows
//!        <──────  what `once` and `always` were told, else the least that is right
//! ```
//!
//! A peer is no SQL engine. Of each `INSERT` and `COPY` it keeps the first column of each row, which is its key, until
//! the COMMIT; it refuses a key that is committed, and tells by its key whether a row is. So a flush that wrote a row
//! twice, or none, is seen. That the engines behave so is taken from their documentation.

pub mod codes;
mod mysql;
mod postgres;
mod session;

use std::{
    collections::VecDeque,
    io,
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
};

/// An error that a peer answers with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// The SQLSTATE.
    pub sqlstate: &'static str,
    /// MySQL's number; 0 for PostgreSQL.
    pub number: u16,
    /// The text.
    pub message: &'static str,
}

impl Refusal {
    /// Whether it says that the engine does not have the statement.
    fn is_unsupported(&self) -> bool {
        matches!(self.sqlstate, "0A000" | "42601")
    }
}

/// What a peer does with a statement.
#[derive(Debug, Clone, Copy)]
pub enum Answer {
    /// It answers with one row of this text.
    Row(&'static str),
    /// It does not carry the statement out, and says this.
    Fails(Refusal),
    /// It carries the statement out, and says this.
    DoesAndFails(Refusal),
    /// It does not carry the statement out, and ends the connection.
    Ends,
    /// It carries the statement out, and ends the connection.
    DoesAndEnds,
}

impl Answer {
    /// Whether it says this.
    pub fn says(&self, refusal: Refusal) -> bool {
        matches!(self, Self::Fails(it) | Self::DoesAndFails(it) if *it == refusal)
    }
}

/// A column, and the number of its type on PostgreSQL.
pub type Column = (&'static str, u32);

/// PostgreSQL's `uuid`.
pub const UUID: u32 = 2950;
/// PostgreSQL's `text`.
pub const TEXT: u32 = 25;
/// PostgreSQL's `bigint`.
pub const BIGINT: u32 = 20;

/// The table that a peer says it has.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// Its columns, those of the key first.
    pub columns: &'static [Column],
    /// How many columns the key has.
    pub keys: usize,
}

/// A peer on a free port of 127.0.0.1. Its threads end with their connections.
#[derive(Debug)]
pub struct Peer {
    address: SocketAddr,
    shared: Arc<Mutex<Conversation>>,
}

/// What the connections share.
#[derive(Debug)]
struct Conversation {
    version: &'static str,
    tables: &'static [Table],
    log: Vec<String>,
    once: VecDeque<(&'static str, Answer)>,
    always: Vec<(&'static str, Answer)>,
    committed: Vec<(String, Vec<u8>)>,
}

type Serve = fn(TcpStream, &Mutex<Conversation>) -> io::Result<()>;

impl Peer {
    /// Listens as an engine that speaks PostgreSQL's protocol and answers `version()` with this text.
    ///
    /// # Errors
    ///
    /// If the system refuses a socket or a thread.
    pub fn postgres(version: &'static str, tables: &'static [Table]) -> io::Result<Self> {
        Self::start(version, tables, postgres::serve)
    }

    /// The same for MySQL's protocol.
    ///
    /// # Errors
    ///
    /// If the system refuses a socket or a thread.
    pub fn mysql(version: &'static str, tables: &'static [Table]) -> io::Result<Self> {
        Self::start(version, tables, mysql::serve)
    }

    fn start(version: &'static str, tables: &'static [Table], serve: Serve) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Mutex::new(Conversation {
            version,
            tables,
            log: Vec::new(),
            once: VecDeque::new(),
            always: Vec::new(),
            committed: Vec::new(),
        }));
        let for_connections = Arc::clone(&shared);
        thread::Builder::new().spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&for_connections);
                thread::spawn(move || {
                    // A client that goes, or sends what is not understood, ends its connection.
                    let _ = stream.set_nodelay(true);
                    let _ = serve(stream, &shared);
                });
            }
        })?;
        Ok(Self { address, shared })
    }

    /// Returns the port to connect to.
    pub const fn port(&self) -> u16 {
        self.address.port()
    }

    /// Gives this answer to the next statement that begins with `start`, once.
    pub fn once(&self, start: &'static str, answer: Answer) {
        lock(&self.shared).once.push_back((start, answer));
    }

    /// Gives this answer to every statement that contains `part`, unless [`once`](Self::once) has another.
    pub fn always(&self, part: &'static str, answer: Answer) {
        lock(&self.shared).always.push((part, answer));
    }

    /// Returns whether all that [`once`](Self::once) was told has been answered.
    pub fn is_through(&self) -> bool {
        lock(&self.shared).once.is_empty()
    }

    /// Returns the statements received since the last call.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.shared).log)
    }

    /// Returns the keys of the rows that are committed in a table, as they were sent.
    pub fn committed(&self, table: &str) -> Vec<Vec<u8>> {
        let shared = lock(&self.shared);
        let of_table = shared.committed.iter().filter(|(of, _)| of == table);
        of_table.map(|(_, key)| key.clone()).collect()
    }
}

/// A thread that panicked has at worst half a line in the log, which the test will not find.
fn lock(shared: &Mutex<Conversation>) -> MutexGuard<'_, Conversation> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Conversation {
    /// Writes a statement down, and takes what the test has told about it.
    fn told(&mut self, sql: &str) -> Option<Answer> {
        self.log.push(sql.to_owned());
        match self.next_of(sql) {
            Some(next) => self.once.remove(next).map(|(_, answer)| answer),
            None => self.peek(sql).copied(),
        }
    }

    /// Finds what the test has told about a statement.
    fn peek(&self, sql: &str) -> Option<&Answer> {
        let once = self.next_of(sql).and_then(|next| self.once.get(next));
        let mut always = self.always.iter();
        let told = once.or_else(|| always.find(|(part, _)| sql.contains(part)));
        told.map(|(_, answer)| answer)
    }

    fn next_of(&self, sql: &str) -> Option<usize> {
        let mut once = self.once.iter();
        once.position(|(start, _)| sql.starts_with(start))
    }
}
