//! The library through which units of work are flushed: an adapter for the simulated database, whose network loses what
//! chance says.

use std::{convert::Infallible, io, time::Duration};

use ordid_core::{
    OrderedKey, Sink,
    entity::RawKeyOf,
    storage::{Stores, column},
    uuid::Uuid,
};
use ordid_sql::{
    ColumnMask, Columns, DriverError, EngineProfile, Failure, FlushError, Registration, RowEnd,
    RowSink, Take, Violation,
    spi::{
        Begin, Changed, Connected, ConnectionSource, FlushConnection, FlushTransaction, ReadRow,
        RowBinder, Statement, StatementFailure, StatementKind, TransactionScope,
    },
};

use crate::{
    Lie,
    database::{Database, Key, Place, Refusal},
    world::World,
};

/// PostgreSQL's profile, with few rows in a statement.
const ENGINE: EngineProfile = {
    let mut engine = EngineProfile::PGBOUNCER;
    engine.max_rows = 3;
    engine.temporary_tables = false;
    engine
};

type Result<T, E = DriverError<io::Error>> = std::result::Result<T, E>;

/// Returns what registers an entity whose keys are `i64` in a `BIGINT`.
pub fn registration<E>() -> Registration<Binder, RawKeyOf<E>>
where
    E: OrderedKey,
    column::BigInt: Stores<RawKeyOf<E>>,
{
    Registration {
        compare: <column::BigInt as Stores<RawKeyOf<E>>>::compare,
        entity: Described {
            table: E::TABLE,
            columns: E::COLUMNS.len(),
            version: E::VERSION,
        },
    }
}

/// What the database needs to know of an entity.
#[derive(Debug, Clone, Copy)]
pub struct Described {
    table: &'static str,
    columns: usize,
    version: Option<usize>,
}

/// Binds the fields of entities.
#[derive(Debug)]
pub struct Binder {
    entity: Described,
    values: Vec<i64>,
    marker: Option<Uuid>,
    mask: ColumnMask,
}

impl Binder {
    fn take(&mut self, value: i64) {
        match self.mask.take() {
            Take::Value => self.values.push(value),
            Take::Null => unreachable!("no column is nullable"),
            Take::Skip => {}
        }
    }
}

/// A value that the database takes.
pub trait Value {
    fn number(&self) -> i64;
}

impl Value for i64 {
    fn number(&self) -> i64 {
        *self
    }
}

impl<T: Value> Sink<T> for Binder {
    fn put(&mut self, value: &T) {
        self.take(value.number());
    }
}

impl RowSink for Binder {
    type Entity = Described;

    fn begin_row(&mut self, columns: Columns<'_>) {
        self.mask.begin(columns);
    }

    fn end_row(&mut self) -> RowEnd {
        RowEnd::Taken
    }
}

impl RowBinder for Binder {
    fn with_room(entity: Described, rows: usize, values: usize) -> Self {
        Self {
            entity,
            values: Vec::with_capacity(rows * values),
            marker: None,
            mask: ColumnMask::default(),
        }
    }

    fn of_marker(id: Uuid) -> Self {
        let entity = Described {
            table: "ordid_flushes",
            columns: 1,
            version: None,
        };
        Self {
            marker: Some(id),
            ..Self::with_room(entity, 1, 1)
        }
    }
}

fn driver(failure: Failure) -> DriverError<io::Error> {
    DriverError::new(io::Error::other(format!("{failure:?}")), failure)
}

/// A connection of a process.
pub struct Connection {
    world: World,
    database: Database,
    lie: Option<Lie>,
    is_lost: bool,
}

impl Connection {
    /// A message to the server and its answer. It fails if one of the two is lost.
    async fn call(&mut self) -> Result<()> {
        self.world.message().await;
        if self.is_lost || self.world.once_in(80) {
            self.is_lost = true;
            return Err(driver(Failure::Lost));
        }
        Ok(())
    }
}

impl FlushConnection for Connection {
    type Error = io::Error;
    type Binder = Binder;
    type Bulk = Infallible;
    type Transaction<'c> = Transaction<'c>;

    const ADAPTER: &'static str = "simulation";

    async fn begin(&mut self, _: Begin<'_>) -> Result<Transaction<'_>, FlushError<io::Error>> {
        self.call().await.map_err(FlushError::begin)?;
        let session = Some(self.database.begin());
        Ok(Transaction {
            connection: self,
            session,
            has_failed: false,
        })
    }

    fn is_usable(&self) -> bool {
        !self.is_lost
    }
}

/// An open transaction. The server learns late that the client is gone.
pub struct Transaction<'c> {
    connection: &'c mut Connection,
    session: Option<u64>,
    has_failed: bool,
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        let Some(session) = self.session.take() else {
            return;
        };
        let (world, database) = (&self.connection.world, self.connection.database.clone());
        match self.connection.is_lost {
            false => database.roll_back(session),
            true => {
                let late = world.sleep(world.below(5_000));
                world.spawn(async move {
                    late.await;
                    database.roll_back(session);
                });
            }
        }
    }
}

impl Transaction<'_> {
    fn session(&self) -> u64 {
        self.session.expect("an open transaction")
    }

    /// Calls the server, which takes nothing more after a statement that failed.
    async fn call(&mut self) -> Result<()> {
        let called = self.connection.call().await;
        if self.has_failed && called.is_ok() {
            return Err(driver(Failure::Refused));
        }
        self.has_failed |= called.is_err();
        called
    }

    async fn change(&mut self, statement: &Statement, bound: Binder) -> Result<u64, Refusal> {
        let (database, session) = (self.connection.database.clone(), self.session());
        if let Some(marker) = bound.marker {
            let place = (bound.entity.table, Key::Marker(marker));
            database.insert(session, place, Vec::new()).await?;
            return Ok(1);
        }
        let columns = &statement.columns;
        let mut changed = 0;
        for row in bound.values.chunks(columns.len()) {
            let value = |column: usize| {
                let position = columns.iter().position(|it| *it == column);
                position.map(|position| row[position])
            };
            let place = (bound.entity.table, Key::Number(value(0).expect("a key")));
            if statement.kind == StatementKind::Insert {
                let row = (0..bound.entity.columns).map(|column| value(column).expect("a value"));
                database.insert(session, place, row.collect()).await?;
                changed += 1;
                continue;
            }
            assert_eq!(statement.kind, StatementKind::Update);
            let version = bound.entity.version.expect("only accounts are updated");
            let read = value(bound.entity.columns);
            let update = database.update(session, place, |present| {
                let is_read = read == Some(present[version]);
                let columns = present.iter().enumerate();
                let new = columns.map(|(column, present)| value(column).unwrap_or(*present));
                is_read.then(|| new.collect())
            });
            changed += u64::from(update.await?);
        }
        Ok(changed)
    }
}

impl FlushTransaction for Transaction<'_> {
    type Error = io::Error;
    type Binder = Binder;
    type Bulk = Infallible;

    async fn execute(
        &mut self,
        statement: &Statement,
        values: Binder,
    ) -> Result<Changed, StatementFailure<io::Error>> {
        self.call().await?;
        if statement.columns.is_empty() {
            // It sets something for the session.
            return Ok(Changed::Rows(1));
        }
        if self.connection.world.once_in(200) {
            self.has_failed = true;
            return Err(driver(Failure::Transient).into());
        }
        let changed = self.change(statement, values).await.map_err(|refusal| {
            self.has_failed = true;
            let mut error = driver(match refusal {
                Refusal::Duplicate => Failure::Duplicate,
                Refusal::Locked => Failure::Transient,
            });
            if refusal == Refusal::Duplicate {
                error.refuses_a_row = true;
                error.violation = Some(Violation::Unique);
            }
            error
        })?;
        self.connection.world.message().await;
        Ok(Changed::Rows(changed))
    }

    async fn exists(&mut self, query: &Statement, values: Binder) -> Result<bool> {
        self.call().await?;
        if query.columns.is_empty() {
            // Whether its locks are local.
            return Ok(false);
        }
        let (key, read) = match (values.marker, &values.values[..]) {
            (Some(marker), _) => (Key::Marker(marker), None),
            (None, [key, read @ ..]) => (Key::Number(*key), read.first()),
            (None, []) => panic!("nobody asks {}", query.sql),
        };
        let place: Place = (values.entity.table, key);
        let Some(row) = self.connection.database.row(place) else {
            return Ok(false);
        };
        // Behind the key stands the version that the row was read with, where it has one.
        let version = values.entity.version.map(|version| row[version]);
        Ok(read.is_none_or(|read| version == Some(*read)))
    }

    async fn read(&mut self, query: &Statement, values: Binder) -> Result<Vec<ReadRow>> {
        self.call().await?;
        let tables = query.sql.matches("FROM pg_catalog.pg_index").count();
        if tables > 0 {
            let all = (0..tables).map(|number| number.to_string().into());
            return Ok(all.collect());
        }
        let Some(version) = values.entity.version else {
            panic!("nobody asks {}", query.sql);
        };
        let place: Place = (values.entity.table, Key::Number(values.values[0]));
        let row = self.connection.database.row(place);
        Ok(row
            .map(|row| row[version].to_string().into())
            .into_iter()
            .collect())
    }

    /// The answer may be lost, before or after the COMMIT was carried out, which may also be much later.
    async fn commit(mut self) -> Result<()> {
        assert!(!self.has_failed, "a transaction that failed is committed");
        let session = self.session();
        let world = self.connection.world.clone();
        let database = self.connection.database.clone();
        if let Err(error) = self.connection.call().await {
            return Err(self.lost(error));
        }
        match world.below(12) {
            0 if world.once_in(2) => {
                self.session = None;
                self.connection.is_lost = true;
                let late = world.sleep(world.below(8_000));
                world.spawn(async move {
                    late.await;
                    database.commit(session);
                });
                world.message().await;
                Err(self.lost(driver(Failure::Lost)))
            }
            1 if world.once_in(2) => {
                self.session = None;
                self.connection.is_lost = true;
                database.commit(session);
                world.message().await;
                Err(self.lost(driver(Failure::Lost)))
            }
            2 if world.once_in(2) => {
                self.session = None;
                database.roll_back(session);
                Err(driver(Failure::Transient))
            }
            _ => {
                self.session = None;
                database.commit(session);
                world.message().await;
                Ok(())
            }
        }
    }

    async fn rollback(mut self, is_lost: bool) -> Result<()> {
        if is_lost {
            self.connection.is_lost = true;
            return Ok(());
        }
        self.connection.call().await?;
        if let Some(session) = self.session.take() {
            self.connection.database.roll_back(session);
        }
        Ok(())
    }
}

impl Transaction<'_> {
    /// Returns the error of a COMMIT without an answer.
    fn lost(&self, error: DriverError<io::Error>) -> DriverError<io::Error> {
        match self.connection.lie {
            Some(Lie::LostCommitsAreRefused) => driver(Failure::Refused),
            _ => error,
        }
    }
}

/// A pool of connections.
pub struct Pool {
    pub world: World,
    pub database: Database,
    pub lie: Option<Lie>,
    pub connection: Option<Connection>,
}

impl ConnectionSource for Pool {
    type Connection = Connection;

    fn engine(&self) -> EngineProfile {
        ENGINE
    }

    async fn get(&mut self, _: bool) -> Connected<'_, Connection> {
        let is_new = self.connection.is_none();
        if is_new {
            self.world.message().await;
            if self.world.once_in(50) {
                return Err(FlushError::connect("nobody answers"));
            }
        }
        let connection = self.connection.get_or_insert_with(|| Connection {
            world: self.world.clone(),
            database: self.database.clone(),
            lie: self.lie,
            is_lost: false,
        });
        Ok((connection, is_new))
    }

    fn discard(&mut self) {
        self.connection = None;
    }

    fn may_reconnect(&self) -> bool {
        true
    }

    async fn pause(&self, delay: Duration) {
        let millis = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        self.world.sleep(millis).await;
    }
}

/// What ends a flush in the scope that the simulation has.
pub const SCOPE: TransactionScope = TransactionScope::Transaction;
