//! A library of this crate's tests: it keeps what it is asked, and answers from a script or, where that says
//! nothing, as a database with one table of unique keys would.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, io,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use ordid_core::{
    entity::{AnyValue, Fields, OrderedKey, Parent, Reads, Sink},
    key::KeyBytes,
    uuid::Uuid,
};

use super::prepared::Way;
use crate::{
    ColumnMask, Columns, DriverError, EngineProfile, Failure, FlushError, NotBulk, PendingRows,
    RowEnd, RowSink, Take,
    spi::{
        Begin, BoxedError, BulkFailure, BulkRows, Changed, ConnectionSource, Fed, FlushConnection,
        FlushTransaction, ReadRow, RowBinder, RunOfRows, Statement, StatementFailure,
        StatementKind, TransactionScope,
    },
};

/// The server says this where it is asked for `@@max_allowed_packet`.
pub(super) const MAX_PACKET: usize = 20;

/// A row whose key comes first.
pub(super) struct Item {
    id: Uuid,
    name: &'static str,
}

/// A row whose key comes last, with a foreign key.
pub(super) struct Part {
    item: Uuid,
    id: Uuid,
}

pub(super) fn item(id: u128, name: &'static str) -> Item {
    Item {
        id: Uuid::from_u128(id),
        name,
    }
}

pub(super) fn part(id: u128, item: u128) -> Part {
    Part {
        item: Uuid::from_u128(item),
        id: Uuid::from_u128(id),
    }
}

/// A row that the database may leave out.
#[derive(Default)]
pub(super) struct View {
    id: Uuid,
}

impl OrderedKey for View {
    type Field = Uuid;
    const SCHEMA: Option<&'static str> = None;
    const TABLE: &'static str = "views";
    const KEY_COLUMN: &'static str = "id";
    const COLUMNS: &'static [&'static str] = &["id"];
    const PARENTS: &'static [Parent] = &[];
    const COUNTS_INSERTS: bool = false;

    fn key(&self) -> Option<Uuid> {
        Some(self.id)
    }

    fn assign_key(&mut self, key: Uuid) {
        self.id = key;
    }

    fn parents(&self, _: &mut dyn FnMut(usize, KeyBytes)) {}
}

impl<S: Sink<Uuid>> Fields<S> for View {
    fn write(&self, sink: &mut S) {
        sink.put(&self.id);
    }

    fn write_key(key: Uuid, sink: &mut S) {
        sink.put(&key);
    }
}

/// A row that an item has at most once. Its key is the key of the item.
pub(super) struct Detail {
    id: Uuid,
}

pub(super) fn detail(item: u128) -> Detail {
    Detail {
        id: Uuid::from_u128(item),
    }
}

/// An item that may refer to a tie, which refers to an item: their tables are a circle.
pub(super) struct Tied {
    id: Uuid,
    tie: Option<Uuid>,
}

pub(super) struct Tie {
    item: Uuid,
    id: Uuid,
}

pub(super) fn tied(id: u128, tie: Option<u128>) -> Tied {
    Tied {
        id: Uuid::from_u128(id),
        tie: tie.map(Uuid::from_u128),
    }
}

pub(super) fn tie(id: u128, item: u128) -> Tie {
    Tie {
        item: Uuid::from_u128(item),
        id: Uuid::from_u128(id),
    }
}

macro_rules! entity {
    ($entity:ident, $table:literal, $columns:expr, $parents:expr, |$row:ident, $visit:ident| $body:expr) => {
        impl OrderedKey for $entity {
            type Field = Uuid;
            const SCHEMA: Option<&'static str> = None;
            const TABLE: &'static str = $table;
            const KEY_COLUMN: &'static str = "id";
            const COLUMNS: &'static [&'static str] = $columns;
            const PARENTS: &'static [Parent] = $parents;

            fn key(&self) -> Option<Uuid> {
                Some(self.id)
            }

            fn assign_key(&mut self, key: Uuid) {
                self.id = key;
            }

            fn parents(&self, $visit: &mut dyn FnMut(usize, KeyBytes)) {
                let $row = self;
                $body
            }
        }
    };
}

entity!(Item, "items", &["id", "name"], &[], |_row, _visit| ());
entity!(
    Part,
    "parts",
    &["item", "id"],
    &[Parent::by_entity::<Uuid, Item>("item")],
    |row, visit| visit(0, KeyBytes::of(row.item))
);

entity!(
    Tied,
    "items",
    &["id", "tie"],
    &[Parent::by_entity::<Option<Uuid>, Tie>("tie")],
    |row, visit| if let Some(tie) = row.tie {
        visit(0, KeyBytes::of(tie));
    }
);
entity!(
    Tie,
    "parts",
    &["item", "id"],
    &[Parent::by_entity::<Uuid, Tied>("item")],
    |row, visit| visit(0, KeyBytes::of(row.item))
);

entity!(
    Detail,
    "details",
    &["id"],
    &[Parent::by_entity::<Uuid, Item>("id")],
    |row, visit| visit(0, KeyBytes::of(row.id))
);

/// A row with a version.
pub(super) struct Draft {
    id: Uuid,
    version: i64,
}

pub(super) fn draft(id: u128, version: i64) -> Draft {
    Draft {
        id: Uuid::from_u128(id),
        version,
    }
}

impl OrderedKey for Draft {
    type Field = Uuid;
    const SCHEMA: Option<&'static str> = None;
    const TABLE: &'static str = "drafts";
    const KEY_COLUMN: &'static str = "id";
    const COLUMNS: &'static [&'static str] = &["id", "version"];
    const PARENTS: &'static [Parent] = &[];
    const VERSION: Option<usize> = Some(1);

    fn key(&self) -> Option<Uuid> {
        Some(self.id)
    }

    fn assign_key(&mut self, key: Uuid) {
        self.id = key;
    }

    fn parents(&self, _: &mut dyn FnMut(usize, KeyBytes)) {}

    fn version(&self) -> Option<i128> {
        Some(self.version.into())
    }
}

impl<S: Sink<Uuid> + Sink<i64>> Fields<S> for Draft {
    fn write(&self, sink: &mut S) {
        sink.put(&self.id);
        sink.put(&self.version);
    }

    fn write_key(key: Uuid, sink: &mut S) {
        sink.put(&key);
    }

    fn write_update(&self, sink: &mut S) {
        sink.put(&self.id);
        sink.put(&(self.version + 1));
        sink.put(&self.version);
    }

    fn write_version(number: i128, sink: &mut S) {
        sink.put(&i64::try_from(number).unwrap());
    }
}

impl<S: Sink<Uuid>> Fields<S> for Detail {
    fn write(&self, sink: &mut S) {
        sink.put(&self.id);
    }

    fn write_key(key: Uuid, sink: &mut S) {
        sink.put(&key);
    }
}

impl<S: Sink<Uuid>> Fields<S> for Tied {
    fn write(&self, sink: &mut S) {
        sink.put(&self.id);
        sink.put(&self.tie.unwrap_or_default());
    }

    fn write_key(key: Uuid, sink: &mut S) {
        sink.put(&key);
    }
}

impl<S: Sink<Uuid>> Fields<S> for Tie {
    fn write(&self, sink: &mut S) {
        sink.put(&self.item);
        sink.put(&self.id);
    }

    fn write_key(key: Uuid, sink: &mut S) {
        sink.put(&key);
    }
}

impl<S: Sink<Uuid> + Sink<&'static str>> Fields<S> for Item {
    fn write(&self, sink: &mut S) {
        sink.put(&self.id);
        sink.put(&self.name);
    }

    fn write_key(key: Uuid, sink: &mut S) {
        sink.put(&key);
    }
}

impl<S: Sink<Uuid>> Fields<S> for Part {
    fn write(&self, sink: &mut S) {
        sink.put(&self.item);
        sink.put(&self.id);
    }

    fn write_key(key: Uuid, sink: &mut S) {
        sink.put(&key);
    }
}

/// Values as text, `:` between those of a row. One that is "unbindable" cannot be bound, and one that is
/// "no bulk" is not for the bulk command. With `RUNS`, a row whose name is "default" has no value for it.
#[derive(Default)]
pub(super) struct Binder<const RUNS: bool> {
    pub(super) rows: Vec<String>,
    row: Vec<String>,
    mask: ColumnMask,
    /// How many rows fit into a piece of a bulk command.
    room: Option<usize>,
    /// From how many bytes on it takes no more rows.
    limit: Option<usize>,
    is_refused: bool,
    error: Option<&'static str>,
    /// The number of columns that are read from a row.
    reads: usize,
}

impl<const RUNS: bool> Binder<RUNS> {
    fn take(&mut self, value: &str) {
        match self.mask.take() {
            Take::Value => self.row.push(value.to_owned()),
            Take::Null => self.row.push("NULL".to_owned()),
            Take::Skip => {}
        }
    }
}

impl<const RUNS: bool> Sink<Uuid> for Binder<RUNS> {
    fn put(&mut self, value: &Uuid) {
        self.take(&value.as_u128().to_string());
    }
}

impl<const RUNS: bool> Sink<&'static str> for Binder<RUNS> {
    fn put(&mut self, value: &&'static str) {
        if *value == "unbindable" {
            self.error = Some("it has no form");
        }
        self.is_refused |= *value == "unbindable" || *value == "no bulk" && self.room.is_some();
        if RUNS && *value == "default" {
            return;
        }
        self.take(value);
    }
}

impl<const RUNS: bool> Sink<i64> for Binder<RUNS> {
    fn put(&mut self, value: &i64) {
        self.take(&value.to_string());
    }
}

impl<const RUNS: bool> Reads<i64> for Binder<RUNS> {
    fn expect(&mut self) {
        self.reads += 1;
    }
}

impl<const RUNS: bool> RowSink for Binder<RUNS> {
    type Entity = ();

    fn begin_row(&mut self, columns: Columns<'_>) {
        self.mask.begin(columns);
        self.row.clear();
        self.is_refused = false;
    }

    fn end_row(&mut self) -> RowEnd {
        if self.is_refused {
            return RowEnd::Refused;
        }
        self.rows.push(self.row.join(":"));
        let bytes = self.bytes();
        match (self.room, self.limit) {
            (Some(room), _) if self.rows.len() >= room => RowEnd::TakenLast,
            (None, Some(limit)) if bytes >= limit => RowEnd::TakenLast,
            _ => RowEnd::Taken,
        }
    }
}

impl<const RUNS: bool> RowBinder for Binder<RUNS> {
    const BY_COLUMN: bool = RUNS;
    const HAS_RUNS: bool = RUNS;
    const BEGINS_XA: bool = !RUNS;

    fn offers_bulk(rows: usize, _: usize) -> Result<(), NotBulk> {
        match rows {
            0 => Err(NotBulk::FewRows),
            _ => Ok(()),
        }
    }

    fn with_room((): (), _: usize, _: usize) -> Self {
        Self::default()
    }

    fn limit(&mut self, bytes: usize) {
        self.limit = Some(bytes);
    }

    fn bytes(&self) -> usize {
        self.rows.iter().map(String::len).sum()
    }

    fn of_marker(id: Uuid) -> Self {
        Self {
            rows: vec![id.to_string()],
            ..Self::default()
        }
    }

    fn take_error(&mut self) -> Option<BoxedError> {
        self.error.take().map(Into::into)
    }

    fn into_runs(self, rows: usize) -> Vec<RunOfRows<Self>> {
        if !RUNS {
            return vec![RunOfRows {
                rows,
                columns: None,
                values: self,
            }];
        }
        let has_name = |row: &String| row.contains(':');
        let runs = self
            .rows
            .chunk_by(|left, right| has_name(left) == has_name(right));
        let runs = runs.map(|run| RunOfRows {
            rows: run.len(),
            columns: (!has_name(&run[0])).then(|| vec![0]),
            values: Self {
                rows: run.to_vec(),
                ..Self::default()
            },
        });
        runs.collect()
    }
}

/// What is answered to a call.
#[derive(Debug, Clone)]
pub(super) enum Answer {
    /// It succeeds. A COMMIT is carried out before anyone can hear of it.
    Succeeds,
    /// It succeeds, and another transaction has committed this.
    Meanwhile(&'static str),
    /// It fails in this way.
    Fails(Failure),
    /// It is not carried out, and there is no answer.
    Silence,
    /// It fails in this way, but was carried out.
    FailsAfter(Failure),
    /// Somebody has locked what is asked for.
    Locked,
    /// The connection of a COMMIT is lost, and it is carried out later.
    Held,
    /// It succeeds, and then the COMMIT that was held is carried out.
    Lands,
    /// After so long the key is taken.
    TakenAfter(Duration),
    /// The table is not there.
    MissingTable,
    /// A row of the statement is refused.
    RefusesARow,
    /// This row of the statement is refused, and so many others.
    RefusesRow(usize, usize),
    /// The library could not bind a value.
    CannotBind,
    /// So many rows were changed.
    Changed(Changed),
    /// The connection is in a state in which nothing can be sent.
    WrongState,
    /// The server answers a question in this way. If the question is which tables are protected, the answer is about
    /// all of them.
    Says(bool),
    /// Only this one of the tables that are asked for is protected.
    IsProtected(usize),
    /// A savepoint is what there can be.
    Savepoint,
    /// The bulk command ends before it has asked for all rows.
    EndsEarly,
    /// The server does not have the statement.
    Lacks(Failure),
    /// The row that was fed last is refused.
    RefusesTheLastRow,
}

#[derive(Debug, Default)]
pub(super) struct State {
    log: Vec<String>,
    /// What a call's line contains, its answer, and how often.
    script: Vec<(String, Answer, usize)>,
    pub(super) committed: BTreeSet<String>,
    /// The rows of each prepared transaction.
    pub(super) prepared: BTreeMap<String, Vec<String>>,
    /// How it prepares them.
    pub(super) way: Way,
    /// How often other connections still fail to end a prepared transaction.
    bound: BTreeMap<String, usize>,
    /// What a COMMIT that is held will write.
    held: Vec<String>,
    connections: usize,
    open: bool,
    /// The number of times that rows were read.
    reads: i64,
    /// Each answer is there at once, as where calls block.
    blocks: bool,
}

/// The server and its script, and what was asked of it.
#[derive(Debug, Clone, Default)]
pub(super) struct Server(Arc<Mutex<State>>);

impl State {
    /// Keeps a prepared transaction for its connection.
    pub(super) fn bind(&mut self, gid: &str) {
        self.bound.insert(gid.to_owned(), usize::MAX);
    }

    /// The connection of a prepared transaction is closed. The server notices it soon.
    pub(super) fn unbind(&mut self, gid: &str) {
        self.bound.insert(gid.to_owned(), 1);
    }

    /// Returns whether another connection may end a prepared transaction.
    pub(super) fn may_end(&mut self, gid: &str) -> bool {
        match self.bound.get_mut(gid) {
            None | Some(0) => true,
            Some(waits) => {
                *waits -= 1;
                false
            }
        }
    }

    /// Forgets the script.
    pub(super) fn forget(&mut self) {
        self.script.clear();
    }

    /// Commits what was prepared.
    pub(super) fn commit(&mut self, rows: Vec<String>) {
        self.committed.extend(rows);
    }
}

impl Server {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Answers the next call whose line contains this.
    pub(super) fn once(&self, call: &str, answer: Answer) -> &Self {
        self.times(1, call, answer)
    }

    pub(super) fn times(&self, times: usize, call: &str, answer: Answer) -> &Self {
        self.state().script.push((call.to_owned(), answer, times));
        self
    }

    /// Makes each answer be there at once, as where calls block.
    pub(super) fn block(&self) {
        self.state().blocks = true;
    }

    /// Forgets the transaction that is open.
    pub(super) fn lose_connection(&self) {
        self.state().open = false;
    }

    /// Returns what was asked since the last time.
    pub(super) fn log(&self) -> Vec<String> {
        std::mem::take(&mut self.state().log)
    }

    /// Has this row from the beginning.
    pub(super) fn with(row: &str) -> Self {
        let server = Self::default();
        server.state().committed.insert(row.to_owned());
        server
    }

    /// Returns the items that are committed.
    pub(super) fn items(&self) -> Vec<String> {
        let state = self.state();
        let items = state
            .committed
            .iter()
            .filter_map(|it| it.strip_prefix("items "));
        items.map(str::to_owned).collect()
    }

    /// Keeps a call, and returns what the script says to it.
    pub(super) fn take(&self, line: String) -> Option<Answer> {
        let mut state = self.state();
        let found = state.script.iter_mut();
        let found = found
            .into_iter()
            .find(|it| it.2 > 0 && line.contains(&it.0));
        let answer = found.map(|it| {
            it.2 -= 1;
            it.1.clone()
        });
        state.log.push(line);
        if let Some(Answer::Meanwhile(row)) = answer {
            state.committed.insert(row.to_owned());
        }
        answer
    }

    async fn call(&self, line: String) -> Option<Answer> {
        let answer = self.take(line);
        self.answered(&answer).await;
        answer
    }

    pub(super) fn answered(&self, answer: &Option<Answer>) -> Answered {
        Answered {
            polls: match answer {
                Some(Answer::Silence) => u32::MAX,
                _ if self.state().blocks => 0,
                _ => 2,
            },
        }
    }

    fn committed(&self, staged: &[String]) {
        self.state().committed.extend(staged.iter().cloned());
    }
}

/// The answer is not there for so many polls.
pub(super) struct Answered {
    polls: u32,
}

impl Future for Answered {
    type Output = ();

    fn poll(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<()> {
        let Some(polls) = self.polls.checked_sub(1) else {
            return std::task::Poll::Ready(());
        };
        self.polls = polls;
        context.waker().wake_by_ref();
        std::task::Poll::Pending
    }
}

pub(super) fn driver(failure: Failure) -> DriverError<io::Error> {
    DriverError::new(io::Error::other("it failed"), failure)
}

fn refuses_a_row() -> DriverError<io::Error> {
    DriverError {
        refuses_a_row: true,
        ..driver(Failure::Refused)
    }
}

/// A connection; its number is in the log.
#[derive(Debug)]
pub(super) struct Connection<const RUNS: bool> {
    pub(super) server: Server,
    pub(super) number: usize,
    /// How many rows a piece of the bulk command takes; `None` where there is no such command.
    piece: Option<usize>,
    /// The transaction of XA that it has begun and not ended, and whether it is prepared.
    pub(super) xa: Option<(String, bool)>,
}

impl<const RUNS: bool> Connection<RUNS> {
    pub(super) async fn call(&self, line: impl fmt::Display) -> Option<Answer> {
        self.server.call(format!("{} {line}", self.number)).await
    }
}

fn table_of(sql: &str) -> &'static str {
    let tables = [
        "items",
        "parts",
        "views",
        "details",
        "drafts",
        "stamps",
        "ordid_flushes",
    ];
    tables
        .into_iter()
        .find(|table| sql.contains(table))
        .unwrap()
}

impl<const RUNS: bool> FlushConnection for Connection<RUNS> {
    type Error = io::Error;
    type Binder = Binder<RUNS>;
    type Bulk = usize;
    type Transaction<'c> = Open<'c, RUNS>;

    const ADAPTER: &'static str = "ordid_test";
    const MIN_BULK_ROWS_AGAIN: usize = 2;

    async fn check(
        &mut self,
        wanted: TransactionScope,
    ) -> Result<TransactionScope, FlushError<io::Error>> {
        match self.call("check").await {
            Some(Answer::WrongState) => Err(FlushError::open_transaction("client")),
            Some(Answer::Savepoint) => Ok(TransactionScope::Savepoint),
            _ => Ok(wanted),
        }
    }

    async fn bulk(
        &mut self,
        rows: &PendingRows<Binder<RUNS>>,
        table: usize,
    ) -> Result<usize, NotBulk> {
        match rows.table(table).name() {
            "items" => self.piece.ok_or(NotBulk::NoCommand),
            _ => Err(NotBulk::Trigger),
        }
    }

    async fn begin(&mut self, begin: Begin<'_>) -> Result<Open<'_, RUNS>, FlushError<io::Error>> {
        let scope = match begin.scope {
            TransactionScope::Transaction => "begin",
            TransactionScope::Savepoint => "savepoint",
        };
        self.is_free();
        match self.call(scope).await {
            Some(Answer::Fails(failure)) => Err(FlushError::begin(driver(failure))),
            _ => {
                self.begin_xa(begin.statement)?;
                assert!(!std::mem::replace(&mut self.server.state().open, true));
                Ok(Open {
                    connection: self,
                    staged: Vec::new(),
                    is_over: false,
                })
            }
        }
    }
}

/// An open transaction or savepoint.
pub(super) struct Open<'c, const RUNS: bool> {
    pub(super) connection: &'c mut Connection<RUNS>,
    pub(super) staged: Vec<String>,
    is_over: bool,
}

impl<const RUNS: bool> Open<'_, RUNS> {
    fn end(&mut self) {
        self.is_over = true;
        self.connection.server.state().open = false;
    }

    /// Takes rows, unless one of the keys is taken.
    fn take(&mut self, table: &str, rows: &[String]) -> Result<(), DriverError<io::Error>> {
        let rows: Vec<_> = rows.iter().map(|row| format!("{table} {row}")).collect();
        let key = |row: &str| row.split(':').next().unwrap_or_default().to_owned();
        let state = self.connection.server.state();
        let taken = state.committed.iter().chain(&self.staged);
        let taken: BTreeSet<_> = taken.map(|row| key(row)).collect();
        let mut held = state.prepared.values().flatten();
        if held.any(|held| rows.iter().any(|row| key(row) == key(held))) {
            // A database would wait until the lock does not come in time.
            return Err(driver(Failure::Transient));
        }
        if table != "parts" && rows.iter().any(|row| taken.contains(&key(row))) {
            return Err(DriverError {
                failure: Failure::Duplicate,
                ..refuses_a_row()
            });
        }
        drop(state);
        self.staged.extend(rows);
        Ok(())
    }
}

impl<const RUNS: bool> Open<'_, RUNS> {
    /// Answers a query whose only column is text.
    async fn texts(
        &mut self,
        query: &Statement,
        values: Binder<RUNS>,
    ) -> Result<Vec<String>, DriverError<io::Error>> {
        if query.kind == StatementKind::Find {
            let table = table_of(&query.sql);
            let line = format!("find {table} {}", values.rows.join(" "));
            if let Some(Answer::Fails(failure)) = self.connection.call(line).await {
                return Err(driver(failure));
            }
            let state = self.connection.server.state();
            let is_there = |row: &String| {
                let key = row.split(':').next().unwrap_or_default();
                let [alone, before] = [format!("{table} {key}"), format!("{table} {key}:")];
                let mut rows = state.committed.iter().chain(&self.staged);
                rows.any(|it| *it == alone || it.starts_with(&before))
            };
            let rows = values.rows.iter().enumerate();
            let rows = rows.filter(|(_, row)| is_there(row));
            return Ok(rows.map(|(number, _)| number.to_string()).collect());
        }
        let is_about = ["prepared", "XA RECOVER", "/*M!100502"];
        if is_about.iter().any(|it| query.sql.contains(it)) {
            return self.about_prepared(&query.sql).await;
        }
        let tables = query.sql.matches("FROM pg_catalog.pg_index").count();
        if tables > 0 {
            let line = match tables {
                1 => "is the key unique".to_owned(),
                _ => format!("are {tables} keys unique"),
            };
            let protected = match self.connection.call(line).await {
                Some(Answer::Fails(failure)) => return Err(driver(failure)),
                Some(Answer::Says(false)) => 0..0,
                Some(Answer::IsProtected(table)) => table..table + 1,
                _ => 0..tables,
            };
            return Ok(protected.map(|number| number.to_string()).collect());
        }
        if query.sql.contains("@@SESSION.innodb_lock_wait_timeout") {
            return match self.connection.call("how long are waits").await {
                Some(Answer::Fails(failure)) => Err(driver(failure)),
                Some(Answer::Says(false)) => Ok(vec!["1 5".to_owned()]),
                _ => Ok(vec!["50 86400".to_owned()]),
            };
        }
        if query.sql.starts_with("SELECT CAST(\"version\"") {
            self.connection.call("which version").await;
            return Ok(vec!["9".to_owned()]);
        }
        assert!(query.sql.contains("@@max_allowed_packet"), "{}", query.sql);
        self.connection.call("how large a message").await;
        Ok(vec![MAX_PACKET.to_string()])
    }
}

impl<const RUNS: bool> FlushTransaction for Open<'_, RUNS> {
    type Error = io::Error;
    type Binder = Binder<RUNS>;
    type Bulk = usize;

    async fn execute(
        &mut self,
        statement: &Statement,
        values: Binder<RUNS>,
    ) -> Result<Changed, StatementFailure<io::Error>> {
        if statement.columns.is_empty()
            && let Some(answer) = self.prepared(&statement.sql).await
        {
            return answer;
        }
        if let Some(waits) = statement.sql.strip_prefix("SET SESSION ") {
            let numbers: Vec<_> = waits.split(|it: char| !it.is_ascii_digit()).collect();
            let line = format!("waits of{}", numbers.join(" ").trim_end());
            let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
            return match self.connection.call(line).await {
                Some(Answer::Fails(failure)) => {
                    if failure == Failure::Transient {
                        // A Galera node answers like this when another node has ended the transaction.
                        self.staged.clear();
                    }
                    Err(driver(failure).into())
                }
                _ => Ok(Changed::Rows(0)),
            };
        }
        if statement.sql.contains("lock_timeout") {
            return match self.connection.call("bound waits").await {
                Some(Answer::Fails(failure)) => Err(driver(failure).into()),
                _ => Ok(Changed::Rows(1)),
            };
        }
        if statement.sql.contains("synchronous_commit") {
            return match self.connection.call("durable").await {
                Some(Answer::Fails(failure)) => Err(driver(failure).into()),
                _ => Ok(Changed::Rows(1)),
            };
        }
        let table = table_of(&statement.sql);
        let what = match statement.kind {
            StatementKind::Insert => "insert",
            StatementKind::Update => "update",
            StatementKind::SetNull => "unlink",
            StatementKind::Delete => "delete",
            StatementKind::Exists | StatementKind::Find | StatementKind::Read => {
                panic!("not a change")
            }
        };
        let line = match table {
            "ordid_flushes" => "marker".to_owned(),
            _ => format!("{what} {table} {}", values.rows.join(" ")),
        };
        let answer = self.connection.call(line).await;
        let fails = matches!(
            answer,
            Some(Answer::Fails(_) | Answer::MissingTable | Answer::TakenAfter(_))
        );
        if statement.kind == StatementKind::Insert && !fails {
            self.take(table, &values.rows)?;
        }
        let rows = u64::try_from(statement.rows).unwrap();
        match answer {
            None | Some(Answer::Succeeds) => Ok(Changed::Rows(rows)),
            Some(Answer::Changed(changed)) => Ok(changed),
            Some(Answer::Fails(failure)) => Err(driver(failure).into()),
            Some(Answer::TakenAfter(time)) => {
                std::thread::sleep(time);
                Err(driver(Failure::Duplicate).into())
            }
            Some(Answer::MissingTable) => Err(DriverError {
                is_missing_table: true,
                ..driver(Failure::Refused)
            }
            .into()),
            Some(Answer::RefusesARow) => Err(refuses_a_row().into()),
            Some(Answer::RefusesRow(row, more)) => Err(StatementFailure {
                row: Some((row, more)),
                ..refuses_a_row().into()
            }),
            Some(Answer::CannotBind) => Err(StatementFailure {
                is_binding: true,
                ..driver(Failure::Refused).into()
            }),
            Some(other) => panic!("{other:?}"),
        }
    }

    /// Answers with the last row first. A value is made of the numbers of the query, of the row and of the column.
    async fn read(
        &mut self,
        query: &Statement,
        values: Binder<RUNS>,
    ) -> Result<Vec<ReadRow>, DriverError<io::Error>> {
        if query.kind != StatementKind::Read {
            let texts = self.texts(query, values).await?;
            return Ok(texts.into_iter().map(ReadRow::from).collect());
        }
        assert_eq!(query.rows, values.rows.len());
        let line = format!("read {} {}", table_of(&query.sql), values.rows.join(" "));
        let answer = self.connection.call(line).await;
        let mut state = self.connection.server.state();
        state.reads += 1;
        let first = state.reads * 100;
        let numbers = match answer {
            Some(Answer::Fails(failure)) => return Err(driver(failure)),
            Some(Answer::RefusesRow(row, _)) => vec![row],
            Some(Answer::Changed(Changed::OfEach(ref rows))) => rows
                .iter()
                .map(|it| usize::try_from(*it).unwrap())
                .collect(),
            _ => (0..values.rows.len()).collect(),
        };
        let is_other_type = matches!(answer, Some(Answer::CannotBind));
        let rows = numbers.into_iter().rev().map(|number| ReadRow {
            text: number.to_string(),
            values: (0..values.reads)
                .map(|column| -> AnyValue {
                    match is_other_type {
                        true => Box::new("text"),
                        false => Box::new(first + i64::try_from(number * 10 + column).unwrap()),
                    }
                })
                .collect(),
        });
        Ok(rows.collect())
    }

    async fn exists(
        &mut self,
        query: &Statement,
        values: Binder<RUNS>,
    ) -> Result<bool, DriverError<io::Error>> {
        assert_eq!(query.kind, StatementKind::Exists);
        let [key] = &values.rows[..] else {
            assert!(query.sql.contains("wsrep_on"), "{}", query.sql);
            return match self.connection.call("are locks local").await {
                Some(Answer::Says(fact)) => Ok(fact),
                Some(Answer::Fails(failure)) => Err(driver(failure)),
                _ => Ok(false),
            };
        };
        let table = table_of(&query.sql);
        let answer = match table {
            "ordid_flushes" => self.connection.call("probe marker").await,
            _ => self.connection.call(format!("probe {table} {key}")).await,
        };
        match answer {
            Some(Answer::Fails(failure)) => Err(driver(failure)),
            // A standby that is behind.
            Some(Answer::Says(fact)) => Ok(fact),
            _ => {
                let mut state = self.connection.server.state();
                let found = [format!("{table} {key}"), format!("{table} {key}:")];
                let mut committed = state.committed.iter();
                let mut is_there = committed.any(|it| *it == found[0] || it.starts_with(&found[1]));
                if let Some(Answer::Locked) = answer {
                    is_there &= !query.sql.contains("SKIP LOCKED");
                }
                if let Some(Answer::Lands) = answer {
                    let held = std::mem::take(&mut state.held);
                    state.commit(held);
                }
                Ok(is_there)
            }
        }
    }

    async fn send_bulk(
        &mut self,
        piece: &mut usize,
        rows: &mut BulkRows<'_, Binder<RUNS>, io::Error>,
    ) -> Result<Option<u64>, BulkFailure<io::Error>> {
        let mut sent = Vec::new();
        let room = *piece;
        self.connection.call("bulk").await;
        loop {
            let mut values = Binder {
                room: Some(room),
                ..Binder::default()
            };
            let fed = rows.feed(&mut values)?;
            sent.extend(values.rows.iter().cloned());
            if !values.rows.is_empty() {
                let line = format!("piece {}", values.rows.join(" "));
                match self.connection.call(line).await {
                    Some(Answer::RefusesTheLastRow) => {
                        return Err(BulkFailure::LastRow(refuses_a_row()));
                    }
                    Some(Answer::RefusesARow) => return Err(refuses_a_row().into()),
                    Some(Answer::Fails(failure)) => return Err(driver(failure).into()),
                    Some(Answer::Lacks(failure)) => {
                        let error = DriverError {
                            is_unsupported: true,
                            ..driver(failure)
                        };
                        return Err(error.into());
                    }
                    Some(Answer::EndsEarly) => break,
                    _ => {}
                }
            }
            if fed == Fed::Last {
                break;
            }
        }
        self.take("items", &sent)?;
        Ok(None)
    }

    async fn commit(mut self) -> Result<(), DriverError<io::Error>> {
        let server = self.connection.server.clone();
        if self.connection.xa.is_some() {
            self.end();
            return Err(driver(Failure::Refused));
        }
        let staged = std::mem::take(&mut self.staged);
        let answer = server.take(format!("{} commit", self.connection.number));
        if matches!(answer, Some(Answer::Succeeds | Answer::FailsAfter(_))) {
            server.committed(&staged);
        }
        server.answered(&answer).await;
        self.end();
        match answer {
            Some(Answer::Held) => {
                server.state().held = staged;
                Err(driver(Failure::Lost))
            }
            Some(Answer::Fails(failure) | Answer::FailsAfter(failure)) => Err(driver(failure)),
            _ => {
                server.committed(&staged);
                Ok(())
            }
        }
    }

    async fn rollback(mut self, is_lost: bool) -> Result<(), DriverError<io::Error>> {
        let line = if is_lost { "drop" } else { "rollback" };
        let answer = self.connection.call(line).await;
        self.end();
        if self.connection.xa.is_some() && !is_lost {
            return Err(driver(Failure::Refused));
        }
        match answer {
            Some(Answer::Fails(failure)) => Err(driver(failure)),
            _ => Ok(()),
        }
    }
}

impl<const RUNS: bool> Drop for Open<'_, RUNS> {
    fn drop(&mut self) {
        if !self.is_over {
            let line = format!("{} dropped", self.connection.number);
            let mut state = self.connection.server.state();
            state.log.push(line);
            state.open = false;
        }
    }
}

/// Opens connections to a server.
#[derive(Debug)]
pub(super) struct Source<const RUNS: bool = false> {
    pub(super) server: Server,
    pub(super) engine: EngineProfile,
    pub(super) may_reconnect: bool,
    pub(super) piece: Option<usize>,
    pub(super) connection: Option<Connection<RUNS>>,
}

impl<const RUNS: bool> Source<RUNS> {
    /// A pool of connections to an engine whose statements take two rows.
    pub(super) fn new(server: &Server) -> Self {
        let mut engine = server.state().way.engine();
        engine.max_rows = 2;
        Self {
            server: server.clone(),
            engine,
            may_reconnect: true,
            piece: None,
            connection: None,
        }
    }

    /// As [`new`](Self::new), with a bulk command whose pieces take so many rows.
    pub(super) fn bulk(server: &Server, piece: usize) -> Self {
        Self {
            piece: Some(piece),
            ..Self::new(server)
        }
    }

    /// As [`new`](Self::new), of one connection.
    pub(super) fn only(server: &Server) -> Self {
        Self {
            may_reconnect: false,
            ..Self::new(server)
        }
    }
}

impl<const RUNS: bool> ConnectionSource for Source<RUNS> {
    type Connection = Connection<RUNS>;

    fn engine(&self) -> EngineProfile {
        self.engine
    }

    async fn get(
        &mut self,
        after_loss: bool,
    ) -> Result<(&mut Connection<RUNS>, bool), FlushError<io::Error>> {
        let is_new = self.connection.is_none();
        if is_new {
            let line = if after_loss {
                "connect after a loss"
            } else {
                "connect"
            };
            if let Some(Answer::Fails(failure)) = self.server.call(line.to_owned()).await {
                return Err(FlushError::begin(driver(failure)));
            }
            let number = {
                let mut state = self.server.state();
                state.connections += 1;
                state.connections
            };
            self.connection = Some(Connection {
                server: self.server.clone(),
                number,
                piece: self.piece,
                xa: None,
            });
        }
        let connection = self.connection.as_mut().unwrap();
        Ok((connection, is_new))
    }

    fn release(&mut self) {
        self.server.state().log.push("release".to_owned());
    }

    fn discard(&mut self) {
        self.server.state().log.push("discard".to_owned());
        if self.may_reconnect {
            self.connection = None;
        }
    }

    fn may_reconnect(&self) -> bool {
        self.may_reconnect
    }

    async fn pause(&self, _: Duration) {
        self.server.call("pause".to_owned()).await;
    }
}
