//! Flickr's ticket servers: several servers count, each its own share of the numbers.
//!
//! ```text
//! increment 2    server 1 (offset 1): 1 3 5 7 ..    server 2 (offset 2): 2 4 6 8 ..
//! ```
//!
//! References: Flickr, "Ticket Servers: Distributed Unique Primary Keys on the Cheap" (2010); MySQL 8.4
//! manual, 19.1.6.2 (`auto_increment_increment`), 14.15 (`LAST_INSERT_ID(expr)`), 17.6.1.6 (simple
//! inserts get numbers one after the other).

use std::{
    fmt,
    num::NonZeroU32,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use ordid_core::{
    Error,
    coordination::{AsyncSegmentSource, CoordinationFailure, Segment, Unordered},
    entropy::{Entropy as _, ThreadEntropy},
    storage::{Dialect as _, dialect::MySql},
};

use super::{Seen, went_back};
use crate::leases::{
    StoreDriver,
    numbers::{Statement, Value::Number, checked_name},
    store::Store,
};
use crate::words::mysql_by_steps;

/// For how long a server that did not answer is asked last.
const PAUSE: Duration = Duration::from_secs(1);

/// How a ticket server counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TicketForm {
    /// `UPDATE .. SET id = LAST_INSERT_ID(id + n)` on a row of ours, which also says the server's increment
    /// and offset: `n` numbers cost what one does.
    LastInsertId,
    /// `REPLACE INTO .. (stub) VALUES ('a')` on an `AUTO_INCREMENT` table, as Flickr did, beside programs that do
    /// the same. Its numbers are the server's `auto_increment_increment` apart. Slow, a row for each number,
    /// and servers undo some of those statements as deadlocks; they are sent again. A server whose numbers have gone
    /// back is not asked again by this value: raise its `AUTO_INCREMENT` and start the program again.
    Replace,
}

/// Which of the servers is asked first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TicketChoice {
    /// The one that answered last: numbers rise until it fails.
    Sticky,
    /// Any of them, each time: they share the load.
    Random,
}

/// Numbers from several MySQL or MariaDB servers that do not know of each other: any of them can fail.
///
/// Server `i`, from 1 on, gives the numbers `i`, `i + increment`, and so on. Each has to be configured so,
/// with `auto_increment_increment` and `auto_increment_offset`: this is compared whenever a connection is
/// made, and a difference is an error ([`Mismatch`](CoordinationFailure::Mismatch)), not a reason to ask another. The
/// form [`LastInsertId`](TicketForm::LastInsertId) compares what the row says at each reservation, too.
///
/// A server that does not answer is passed over, and asked last for a second. What it may have reserved is
/// a gap.
///
/// # Adding a server
///
/// Choose an increment above the number of servers from the beginning, such as 16: then one more is
/// configured with the next offset, [`create`](Self::create) makes its table, and programs that know of it
/// use it; the others need not stop.
///
/// Where the increment has to grow, the shares of all servers change: stop the programs, or let them fail;
/// restart all servers with the new increment and their offsets (so that no session has the old ones); and
/// call [`restripe`](Self::restripe) once, with all of them. It stops what still counts the old way, and has
/// each server go on above the highest number of any.
#[doc(alias("autoincrement", "flickr"))]
#[derive(Debug)]
pub struct Tickets64<S: StoreDriver> {
    servers: Vec<Server<S>>,
    form: TicketForm,
    choice: TicketChoice,
    increment: u32,
    table: String,
    current: AtomicUsize,
}

struct Server<S: StoreDriver> {
    store: Store<S>,
    offset: u32,
    seen: Seen,
    went_back: AtomicBool,
    failed: Mutex<Option<Instant>>,
}

/// The largest `auto_increment_increment`.
const MAX_INCREMENT: u32 = 65_535;

impl<S: StoreDriver<Dialect = MySql>> Tickets64<S> {
    /// Takes the servers in the order of their offsets, the form, and the increment that all of them have.
    /// It connects when it is first asked for something.
    ///
    /// # Errors
    ///
    /// If there is no server, there are more than the increment has offsets, or the increment is above 65,535. The error is
    /// a [`Mismatch`](CoordinationFailure::Mismatch).
    pub fn new(
        servers: impl IntoIterator<Item = S::Options>,
        form: TicketForm,
        increment: u32,
    ) -> Result<Self, Error> {
        let stores = servers.into_iter().map(Store::new);
        let servers: Vec<Server<S>> = (1..).zip(stores).map(Server::new).collect();
        if servers.is_empty() || u32::try_from(servers.len()).is_ok_and(|len| len > increment) {
            return Err(Error::coordination(
                CoordinationFailure::Mismatch,
                format!(
                    "{} ticket servers with an increment of {increment}: there must be one at least, and at \
                     most as many as the increment",
                    servers.len()
                ),
            ));
        }
        if increment > MAX_INCREMENT {
            return Err(Error::coordination(
                CoordinationFailure::Mismatch,
                format!("an increment of {increment}: MySQL has none above {MAX_INCREMENT}"),
            ));
        }
        let table = match form {
            TicketForm::LastInsertId => "ordid_tickets",
            TicketForm::Replace => "Tickets64",
        };
        let mut tickets = Self {
            servers,
            form,
            choice: TicketChoice::Sticky,
            increment,
            table: table.to_owned(),
            current: AtomicUsize::new(0),
        };
        tickets.set_checks();
        Ok(tickets)
    }

    /// Takes a table of another name than `ordid_tickets`, or `Tickets64` of the form
    /// [`Replace`](TicketForm::Replace).
    ///
    /// # Errors
    ///
    /// If it has other characters than letters, digits and underscores, or more than 63. The error is a
    /// [`Mismatch`](CoordinationFailure::Mismatch).
    pub fn with_table(mut self, table: &str) -> Result<Self, Error> {
        checked_name(table)?.clone_into(&mut self.table);
        self.set_checks();
        Ok(self)
    }

    /// Says which server is asked first: [`Sticky`](TicketChoice::Sticky) otherwise.
    #[must_use]
    pub fn with_choice(mut self, choice: TicketChoice) -> Self {
        self.choice = choice;
        self
    }

    /// Says how long a server may take for an answer, connecting included, before another is asked: 5 s
    /// otherwise.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        for server in &mut self.servers {
            server.store.set_timeout(timeout);
        }
        self
    }

    /// Returns the statements that make the table of a server, from 0 on.
    ///
    /// Run them once, as a migration. A table that was lost must not be made anew in silence: it has to
    /// begin above all numbers that were used.
    ///
    /// # Panics
    ///
    /// If there is no such server.
    pub fn create_sql(&self, server: usize) -> String {
        let table = MySql::quote(&self.table);
        let (increment, offset) = (self.increment, self.servers[server].offset);
        match self.form {
            TicketForm::LastInsertId => format!(
                "CREATE TABLE IF NOT EXISTS {table} (stub CHAR(1) NOT NULL PRIMARY KEY, id BIGINT NOT NULL, \
                 increment_by BIGINT NOT NULL, offset_by BIGINT NOT NULL) ENGINE=InnoDB;\n\
                 INSERT INTO {table} (stub, id, increment_by, offset_by) \
                 VALUES ('a', {}, {increment}, {offset}) ON DUPLICATE KEY UPDATE id = id;",
                i64::from(offset) - i64::from(increment),
            ),
            TicketForm::Replace => format!(
                "CREATE TABLE IF NOT EXISTS {table} (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, \
                 stub CHAR(1) NOT NULL DEFAULT '', UNIQUE KEY stub (stub)) ENGINE=InnoDB;"
            ),
        }
    }

    /// Makes the table on each server that has none: as [`create_sql`](Self::create_sql).
    ///
    /// # Errors
    ///
    /// What the first server says that fails.
    pub async fn create(&self) -> Result<(), Error> {
        for (number, server) in self.servers.iter().enumerate() {
            server.store.run(self.create_sql(number)).await?;
        }
        Ok(())
    }

    /// Has all servers count with this increment and their offsets, above the highest number that any of
    /// them has given: after servers were added, or the increment was changed. Needs all of them, and the
    /// tables that [`create`](Self::create) makes.
    ///
    /// With the form [`LastInsertId`](TicketForm::LastInsertId), first no program can reserve anything; when it
    /// fails in between, that stays so, and it can be called again. With the form [`Replace`](TicketForm::Replace)
    /// the servers must have been restarted with the new increment: sessions keep the old one.
    ///
    /// # Errors
    ///
    /// What the first server says that fails.
    pub async fn restripe(&self) -> Result<(), Error> {
        if self.form == TicketForm::LastInsertId {
            let stop = self.sql("UPDATE {t} SET increment_by = 0");
            for server in &self.servers {
                server.store.ask(&stop, &[]).await?;
            }
        }
        let mut highest = 0;
        let read = self.sql("SELECT CAST(COALESCE(MAX(id), 0) AS SIGNED) FROM {t}");
        for server in &self.servers {
            let id = match self.form {
                TicketForm::LastInsertId => {
                    let answer = server.store.ask(&read, &[]).await?;
                    let [id] = answer.row().unwrap_or_default();
                    id
                }
                // Two programs may take numbers at the same time, and the one with the lower number may write the row
                // last. So the row does not have the highest number. A new number is above all that were given.
                TicketForm::Replace => self.replace(server, 1).await?,
            };
            highest = highest.max(id);
        }
        for server in &self.servers {
            let (increment, offset) = (i64::from(self.increment), i64::from(server.offset));
            match self.form {
                TicketForm::LastInsertId => {
                    // What counts as given last: the first number of this server's from there on.
                    let past = highest.checked_add((offset - highest).rem_euclid(increment));
                    let past = past.ok_or_else(|| {
                        let problem = format!("cannot go on above {highest}");
                        self.error(server, CoordinationFailure::CounterExhausted, &problem)
                    })?;
                    let go_on = self.sql("UPDATE {t} SET id = ?, increment_by = ?, offset_by = ?");
                    let values = [past, increment, offset].map(Number);
                    server.store.ask(&go_on, &values).await?;
                }
                TicketForm::Replace => {
                    let table = MySql::quote(&self.table);
                    let next = highest.saturating_add(1);
                    let go_on = format!("ALTER TABLE {table} AUTO_INCREMENT = {next}");
                    server.store.run(go_on).await?;
                    server.went_back.store(false, Ordering::Relaxed);
                }
            }
        }
        Ok(())
    }

    /// Has each new connection asked how its server counts.
    fn set_checks(&mut self) {
        let how = Statement::reads::<MySql>(
            &self.table,
            &format!(
                "SELECT CAST(@@auto_increment_increment AS SIGNED), CAST(@@auto_increment_offset AS SIGNED), \
                 (SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE() AND \
                 table_name = '{}' AND column_name = 'id' AND extra LIKE '%auto_increment%')",
                self.table
            ),
        );
        for server in &mut self.servers {
            let (form, increment, offset) = (self.form, self.increment, server.offset);
            let table = self.table.clone();
            server.store.set_check(how.clone(), move |answer| {
                let found = answer.row().unwrap_or_default();
                check_server(found, form, increment, offset, &table)
            });
        }
    }

    async fn reserve_at(
        &self,
        server: &Server<S>,
        count: NonZeroU32,
    ) -> Result<Segment<Unordered>, Error> {
        let (increment, offset) = (i64::from(self.increment), i64::from(server.offset));
        let number = i64::from(count.get());
        // Both are below 2^32.
        let steps = (number - 1) * increment;
        let before = server.seen.before();
        let first = match self.form {
            TicketForm::LastInsertId => {
                let sql = "UPDATE {t} SET id = LAST_INSERT_ID(id + ?) WHERE stub = 'a' AND increment_by = ? \
                           AND offset_by = ? AND id BETWEEN ? AND ?";
                let by = number * increment;
                // A server that has given nothing yet may be below zero.
                let least = if before > 0 { before } else { i64::MIN };
                let values = [by, increment, offset, least, i64::MAX - by].map(Number);
                let answer = server.store.ask(&self.sql(sql), &values).await?;
                match answer.returned() {
                    Some(last) => last - steps,
                    None => return Err(self.refused(server, least, number).await),
                }
            }
            // No statement gives an AUTO_INCREMENT number on a condition. So this process asks no more.
            TicketForm::Replace if server.went_back.load(Ordering::Relaxed) => {
                return Err(went_back(&self.name_of(server), before));
            }
            TicketForm::Replace => self.replace(server, number).await?,
        };
        if first < 1 || (first - offset).rem_euclid(increment) != 0 {
            return Err(self.error(
                server,
                CoordinationFailure::Mismatch,
                &format!("gave {first}, which is not of offset {offset} and increment {increment}"),
            ));
        }
        let segment = Segment::new(first, count.get(), self.increment)?;
        let checked = server
            .seen
            .check(before, first, first + steps, &self.name_of(server));
        server
            .went_back
            .fetch_or(checked.is_err(), Ordering::Relaxed);
        checked.map(|()| segment)
    }

    /// Takes so many numbers of the form [`Replace`](TicketForm::Replace), and returns the first.
    async fn replace(&self, server: &Server<S>, number: i64) -> Result<i64, Error> {
        let stubs = vec!["('a')"; usize::try_from(number).unwrap_or(usize::MAX)].join(", ");
        // The session's steps may be others since they were compared: Galera's follow the number of nodes.
        let replace = mysql_by_steps("REPLACE", self.increment, server.offset);
        let sql = format!("{replace} INTO {{t}} (stub) VALUES {stubs}");
        let answer = server.store.ask(&self.sql(&sql), &[]).await?;
        answer.returned().ok_or_else(|| {
            self.error(
                server,
                CoordinationFailure::CounterExhausted,
                "is above the last number",
            )
        })
    }

    /// A statement that may be carried out twice: the numbers that are taken first are then nobody's.
    fn sql(&self, text: &str) -> Statement {
        Statement::changes::<MySql>(&self.table, text).repeatable()
    }

    /// Why the row was not changed.
    async fn refused(&self, server: &Server<S>, least: i64, number: i64) -> Error {
        let sql = self.sql("SELECT id, increment_by, offset_by FROM {t} WHERE stub = 'a'");
        let read = server.store.ask(&sql, &[]).await;
        let (increment, offset) = (i64::from(self.increment), i64::from(server.offset));
        match read.map(|answer| answer.row()) {
            Err(error) => error,
            Ok(None) => self.error(
                server,
                CoordinationFailure::StateLost,
                "has lost its row: make it once with `create`, above all numbers that were used",
            ),
            Ok(Some([_, found, of])) if (found, of) != (increment, offset) => self.error(
                server,
                CoordinationFailure::Mismatch,
                &format!("counts by {found} from {of}, expected by {increment} from {offset}"),
            ),
            Ok(Some([id, ..])) if id < least => went_back(&self.name_of(server), least),
            Ok(Some([id, ..])) => self.error(
                server,
                CoordinationFailure::CounterExhausted,
                &format!(
                    "is at {id}: {number} more by {increment} are above {}",
                    i64::MAX
                ),
            ),
        }
    }

    fn error(&self, server: &Server<S>, failure: CoordinationFailure, problem: &str) -> Error {
        Error::coordination(failure, format!("{} {problem}", self.name_of(server)))
    }

    fn name_of(&self, server: &Server<S>) -> String {
        format!("table {} of ticket server {}", self.table, server.offset)
    }

    /// The servers in the order in which they are asked.
    fn order(&self) -> Result<Vec<usize>, Error> {
        let first = match self.choice {
            TicketChoice::Sticky => self.current.load(Ordering::Relaxed),
            TicketChoice::Random => {
                usize::try_from(ThreadEntropy.next_u32()?).unwrap_or(0) % self.servers.len()
            }
        };
        let mut order: Vec<usize> = (0..self.servers.len()).collect();
        order.rotate_left(first);
        // Stable: those that failed are asked last.
        order.sort_by_key(|&server| self.servers[server].has_failed());
        Ok(order)
    }
}

impl<S: StoreDriver<Dialect = MySql>> AsyncSegmentSource for Tickets64<S> {
    type Order = Unordered;

    async fn reserve(&self, count: NonZeroU32) -> Result<Segment<Unordered>, Error> {
        let mut last = None;
        for number in self.order()? {
            let server = &self.servers[number];
            match self.reserve_at(server, count).await {
                Ok(segment) => {
                    server.set_failed(None);
                    self.current.store(number, Ordering::Relaxed);
                    return Ok(segment);
                }
                Err(error)
                    if error.coordination_failure() == Some(CoordinationFailure::Unavailable) =>
                {
                    server.set_failed(Some(Instant::now()));
                    last = Some(error);
                }
                Err(error) => return Err(error),
            }
        }
        let why = last.map_or_else(String::new, |error| error.to_string());
        Err(Error::coordination(
            CoordinationFailure::Unavailable,
            format!(
                "none of {} ticket servers; the last one: {why}",
                self.servers.len()
            ),
        ))
    }
}

impl<S: StoreDriver> Server<S> {
    fn new((offset, store): (u32, Store<S>)) -> Self {
        Self {
            store,
            offset,
            seen: Seen::default(),
            went_back: AtomicBool::default(),
            failed: Mutex::default(),
        }
    }

    fn has_failed(&self) -> bool {
        let failed = *self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.is_some_and(|at| at.elapsed() < PAUSE)
    }

    fn set_failed(&self, at: Option<Instant>) {
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = at;
    }
}

impl<S: StoreDriver> fmt::Debug for Server<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("store", &self.store)
            .field("offset", &self.offset)
            .finish_non_exhaustive()
    }
}

/// Compares how a server counts with how it should.
fn check_server(
    [increment, offset, counts]: [i64; 3],
    form: TicketForm,
    expected: u32,
    expected_offset: u32,
    table: &str,
) -> Result<(), Error> {
    let mismatch = |problem: String| {
        Err(Error::coordination(
            CoordinationFailure::Mismatch,
            format!("ticket server {expected_offset} {problem}"),
        ))
    };
    if (increment, offset) != (i64::from(expected), i64::from(expected_offset)) {
        return mismatch(format!(
            "has auto_increment_increment {increment} and auto_increment_offset {offset}, expected \
             {expected} and {expected_offset}"
        ));
    }
    match form {
        TicketForm::LastInsertId if counts > 0 => mismatch(format!(
            "has a table {table} that counts by AUTO_INCREMENT, of which UPDATE takes no notice: choose \
             the form Replace, or another table"
        )),
        TicketForm::Replace if counts == 0 => mismatch(format!(
            "has no table {table} with `id` AUTO_INCREMENT: make it once with `create`"
        )),
        _ => Ok(()),
    }
}
