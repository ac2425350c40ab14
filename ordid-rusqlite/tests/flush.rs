//! Flushes into SQLite: transactions and savepoints, what becomes of errors and panics, and where connections come from.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    time::Duration,
};

use ordid::{Assigned, KeyType, OrderedKey, uuid::Uuid};
use ordid_rusqlite::{Error, Retry, UnitOfWork, create_flushes_table};
use rusqlite::{
    Connection, ErrorCode, ToSql, ffi,
    types::{FromSql, FromSqlResult, ToSqlOutput, Value, ValueRef},
};

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, rusqlite)]
struct CustomerId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, prefix = "ord", rusqlite(sqlite = text))]
struct OrderId(Uuid);

#[derive(OrderedKey, Clone)]
#[ordid(table = "customers", columns)]
struct Customer {
    #[ordid(key)]
    id: CustomerId,
    mail: Option<String>,
    name: String,
}

#[derive(OrderedKey, Clone)]
#[ordid(table = "orders", columns)]
struct Order {
    #[ordid(key)]
    id: OrderId,
    #[ordid(parent)]
    customer: CustomerId,
    total: i64,
    weight: Option<f64>,
    note: Vec<u8>,
}

const TABLES: &str = "\
    PRAGMA foreign_keys = ON;
    CREATE TABLE customers (id BLOB NOT NULL PRIMARY KEY, mail TEXT UNIQUE, name TEXT NOT NULL CHECK (name <> ''))
        WITHOUT ROWID;
    CREATE TABLE orders (id TEXT NOT NULL PRIMARY KEY, customer BLOB NOT NULL REFERENCES customers (id),
        total INTEGER NOT NULL, weight REAL, note BLOB) WITHOUT ROWID";

fn tables(connection: Connection) -> Connection {
    connection.execute_batch(TABLES).expect("they are tables");
    create_flushes_table(&connection).expect("it is a table");
    connection
}

fn in_memory() -> Connection {
    tables(Connection::open_in_memory().expect("it needs no file"))
}

/// Opens a file, and gives up at once where another connection has a lock.
fn impatient(path: &Path) -> Connection {
    let connection = Connection::open(path).expect("it is a file");
    let set = connection.busy_timeout(Duration::ZERO);
    set.expect("it is a setting");
    connection
}

fn customer(name: &str) -> Customer {
    Customer {
        id: CustomerId::generate(),
        mail: None,
        name: name.to_owned(),
    }
}

fn order(customer: CustomerId, total: i64) -> Order {
    Order {
        id: OrderId::generate(),
        customer,
        total,
        weight: (total % 2 == 0).then_some(0.5),
        note: vec![0, 255],
    }
}

fn count(connection: &Connection, table: &str) -> i64 {
    let sql = format!("SELECT count(*) FROM {table}");
    let counted = connection.query_row(&sql, [], |row| row.get(0));
    counted.expect("it is a table")
}

fn counts(connection: &Connection) -> [i64; 2] {
    ["customers", "orders"].map(|table| count(connection, table))
}

fn once() -> UnitOfWork {
    UnitOfWork::new().with_retry(Retry::NONE)
}

#[track_caller]
fn failed<T: std::fmt::Debug>(outcome: Result<T, Error>) -> Error {
    outcome.expect_err("the flush fails")
}

#[test]
fn a_graph_is_inserted_changed_and_deleted() {
    let mut connection = in_memory();
    let mut work = UnitOfWork::new();
    let ada = customer("Ada");
    let orders: Vec<Order> = (0..2_500).map(|total| order(ada.id, total)).collect();
    for order in orders.iter().rev() {
        work.add(order.clone());
    }
    work.add(ada.clone());
    let flushed = work.flush(&mut connection).expect("it is written");
    assert_eq!((flushed.rows(), work.len()), (2_501, 0));
    assert_eq!(counts(&connection), [1, 2_500]);
    let read = connection.query_row(
        "SELECT id, customer, total, weight, note FROM orders ORDER BY id LIMIT 1 OFFSET 2",
        [],
        |row| {
            Ok((
                row.get(0)?,
                row.get(1)?,
                row.get(2)?,
                row.get(3)?,
                row.get(4)?,
            ))
        },
    );
    let third = &orders[2];
    let expected = (third.id, ada.id, 2_i64, Some(0.5), third.note.clone());
    assert_eq!(read.expect("it is read"), expected);

    // The first is as it was, and counts as found.
    work.update(orders[0].clone());
    for order in &orders[1..1_200] {
        work.update(Order {
            total: -1,
            ..order.clone()
        });
    }
    for order in &orders[1_200..] {
        work.delete(order);
    }
    let flushed = work.flush(&mut connection).expect("it is written");
    assert_eq!((flushed.updated(), flushed.deleted()), (1_200, 1_300));
    assert_eq!(count(&connection, "orders WHERE total = -1"), 1_199);
    assert_eq!(
        (counts(&connection), count(&connection, "ordid_flushes")),
        ([1, 1_200], 1)
    );
}

#[test]
fn errors_name_the_row_and_what_is_wrong_with_it() {
    let mut connection = in_memory();
    let known = Customer {
        mail: Some("ada@example.org".to_owned()),
        ..customer("Ada")
    };
    let mut work = once();
    work.add(known.clone());
    work.flush(&mut connection).expect("it is written");

    let mut refused = |fill: &mut dyn FnMut(&mut UnitOfWork) -> String| {
        let mut work = once();
        for _ in 0..20 {
            work.add(customer("new"));
        }
        let key = fill(&mut work);
        let error = failed(work.flush(&mut connection));
        assert_eq!(error.key(), Some(&*key), "{error}");
        assert!(connection.is_autocommit());
        assert_eq!((counts(&connection), work.len()), ([1, 0], 21));
        error
    };
    let error = refused(&mut |work| work.add(known.clone()).to_string());
    assert!(error.is_unique_violation());
    let error = refused(&mut |work| {
        let twin = Customer {
            mail: known.mail.clone(),
            ..customer("Twin")
        };
        work.add(twin).to_string()
    });
    assert!(error.is_unique_violation() && error.column() == Some("mail"));
    let error = refused(&mut |work| work.add(order(CustomerId::generate(), 1)).to_string());
    assert!(error.is_foreign_key_violation());
    let error = refused(&mut |work| work.add(customer("")).to_string());
    assert_eq!(error.constraint(), Some("name <> ''"));
    let driver = error.driver().and_then(rusqlite::Error::sqlite_error_code);
    assert_eq!(driver, Some(ErrorCode::ConstraintViolation));

    let mut work = once();
    work.delete(&customer("Nobody"));
    let error = failed(work.flush(&mut connection));
    assert!(error.is_missing_row(), "{error}");
    assert_eq!(counts(&connection), [1, 0]);
}

#[test]
fn an_open_transaction_is_refused_and_stays_open() {
    let mut connection = in_memory();
    connection.execute_batch("BEGIN").expect("it begins");
    let mut work = once();
    work.add(customer("Ada"));
    let error = failed(work.flush(&mut connection));
    assert!(error.is_connection_state(), "{error}");
    let error = failed(ordid_rusqlite::remove_old_markers(&mut connection));
    assert!(error.is_connection_state(), "{error}");
    assert!(!connection.is_autocommit());

    // Inside it, the same rows go in.
    work.flush_in(&connection).expect("it is written");
    connection.execute_batch("COMMIT").expect("it is open");
    assert_eq!(counts(&connection), [1, 0]);
}

/// SQLite would take the savepoint for a transaction, and its release for a COMMIT.
#[test]
fn flush_in_needs_a_transaction() {
    let connection = in_memory();
    let mut work = once();
    work.add(customer("Ada"));
    let error = failed(work.flush_in(&connection));
    assert!(error.is_connection_state(), "{error}");
    assert_eq!((counts(&connection), work.len()), ([0, 0], 1));
}

#[test]
fn what_was_before_a_failed_flush_in_stays() {
    let mut connection = in_memory();
    let mut transaction = connection.transaction().expect("it begins");
    let (before, ada) = (customer("Before"), customer("Ada"));
    let mut work = once();
    work.add(before.clone());
    work.flush_in(&transaction).expect("it is written");
    work.clear();

    work.add(ada.clone());
    work.add(order(CustomerId::generate(), 1));
    let error = failed(work.flush_in(&transaction));
    assert!(error.is_foreign_key_violation() && !error.is_transaction_over());
    assert_eq!(counts(&transaction), [1, 0]);
    work.clear();

    // In a savepoint of rusqlite's, which is given up.
    let savepoint = transaction.savepoint().expect("it begins");
    work.add(ada.clone());
    work.flush_in(&savepoint).expect("it is written");
    assert_eq!(counts(&savepoint), [2, 0]);
    drop(savepoint);
    assert_eq!(counts(&transaction), [1, 0]);

    // The same rows again.
    work.flush_in(&transaction).expect("it is written");
    transaction.commit().expect("it is open");
    assert_eq!(counts(&connection), [2, 0]);
}

/// Says `ON CONFLICT ROLLBACK`, which ends the user's transaction.
#[test]
fn a_transaction_that_sqlite_ends_is_over() {
    let mut connection = Connection::open_in_memory().expect("it needs no file");
    let create = "CREATE TABLE customers (id BLOB NOT NULL PRIMARY KEY ON CONFLICT ROLLBACK, mail TEXT, name TEXT)";
    connection.execute_batch(create).expect("it is a table");
    let ada = customer("Ada");
    let mut work = once();
    work.add(ada.clone());
    work.flush(&mut connection).expect("it is written");
    for is_own in [true, false] {
        work.add(ada.clone());
        let error = if is_own {
            failed(work.flush(&mut connection))
        } else {
            connection.execute_batch("BEGIN").expect("it begins");
            failed(work.flush_in(&connection))
        };
        assert_eq!(error.is_transaction_over(), !is_own, "{error}");
        assert!(error.is_unique_violation() && connection.is_autocommit());
        work.clear();
    }
    assert_eq!(count(&connection, "customers"), 1);
}

/// Its code panics when it is bound in a flush.
#[derive(Clone, Debug)]
struct Panics(bool);

impl ToSql for Panics {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        assert!(!self.0, "as the test asks");
        Ok(0_i64.into())
    }
}

#[derive(OrderedKey)]
#[ordid(table = "bombs")]
struct Bomb {
    #[ordid(key)]
    id: CustomerId,
    value: Panics,
}

#[test]
fn a_value_that_panics_leaves_nothing_open() {
    let mut connection = in_memory();
    let create = "CREATE TABLE bombs (id BLOB NOT NULL PRIMARY KEY, value INTEGER) WITHOUT ROWID";
    connection.execute_batch(create).expect("it is a table");
    let mut work = once();
    work.add(customer("Ada"));
    // In a later statement than the first.
    for number in 0..3_000 {
        work.add(Bomb {
            id: CustomerId::generate(),
            value: Panics(number == 2_999),
        });
    }
    let outcome = catch_unwind(AssertUnwindSafe(|| work.flush(&mut connection)));
    assert!(outcome.is_err() && connection.is_autocommit());
    assert_eq!(count(&connection, "bombs"), 0);

    let transaction = connection.transaction().expect("it begins");
    let mut before = once();
    before.add(customer("Before"));
    before.flush_in(&transaction).expect("it is written");
    let outcome = catch_unwind(AssertUnwindSafe(|| work.flush_in(&transaction)));
    assert!(outcome.is_err());
    transaction.commit().expect("it is still open");
    assert_eq!(
        (counts(&connection), count(&connection, "bombs")),
        ([1, 0], 0)
    );
}

/// Bound as what is no value, or not at all.
#[derive(Debug)]
enum Odd {
    Zeros,
    Fails,
}

impl ToSql for Odd {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match self {
            Self::Zeros => Ok(ToSqlOutput::ZeroBlob(16)),
            Self::Fails => Err(rusqlite::Error::ToSqlConversionFailure("it is odd".into())),
        }
    }
}

#[derive(OrderedKey)]
#[ordid(table = "odds")]
struct OddRow {
    #[ordid(key)]
    id: CustomerId,
    value: Odd,
}

#[test]
fn what_cannot_be_bound_is_an_error_with_its_row() {
    let mut connection = in_memory();
    let create = "CREATE TABLE odds (id BLOB NOT NULL PRIMARY KEY, value) WITHOUT ROWID";
    connection.execute_batch(create).expect("it is a table");
    for (value, text) in [
        (Odd::Zeros, "ordid-rusqlite does not bind ZeroBlob(16)"),
        (Odd::Fails, "it is odd"),
    ] {
        let mut work = once();
        work.add(customer("Ada"));
        let id = CustomerId::generate();
        work.add(OddRow { id, value });
        let error = failed(work.flush(&mut connection));
        assert!(error.to_string().contains(text), "{error}");
        assert_eq!(error.key(), Some(&*id.to_string()), "{error}");
        assert_eq!(
            (counts(&connection), count(&connection, "odds")),
            ([0, 0], 0)
        );
    }
}

#[test]
fn a_text_that_is_too_long_for_sqlite_is_an_error_with_its_row() {
    let mut connection = in_memory();
    let limit = rusqlite::limits::Limit::SQLITE_LIMIT_LENGTH;
    connection.set_limit(limit, 1_000).expect("it is a limit");
    let mut work = once();
    work.add(customer("Ada"));
    let long = work.add(customer(&"long".repeat(1_000)));
    let error = failed(work.flush(&mut connection));
    assert_eq!(error.key(), Some(&*long.to_string()), "{error}");
    assert_eq!(counts(&connection), [0, 0]);
}

/// COMMIT is refused: by a constraint that is checked then, by a hook, by a reader.
#[test]
fn a_commit_that_is_refused_is_rolled_back() {
    let mut connection = Connection::open_in_memory().expect("it needs no file");
    let create = "\
        PRAGMA foreign_keys = ON;
        CREATE TABLE customers (id BLOB NOT NULL PRIMARY KEY, mail TEXT, name TEXT);
        CREATE TABLE orders (id TEXT NOT NULL PRIMARY KEY, customer BLOB REFERENCES customers (id)
            DEFERRABLE INITIALLY DEFERRED, total INTEGER, weight REAL, note BLOB)";
    connection.execute_batch(create).expect("they are tables");
    let mut work = once();
    work.add(order(CustomerId::generate(), 1));
    let error = failed(work.flush(&mut connection));
    assert!(
        error.is_foreign_key_violation() && !error.is_commit_unknown(),
        "{error}"
    );
    assert!(connection.is_autocommit());
    assert_eq!((counts(&connection), work.len()), ([0, 0], 1));
    work.clear();

    work.add(customer("Ada"));
    connection.commit_hook(Some(|| true)).expect("it is a hook");
    let error = failed(work.flush(&mut connection));
    assert!(
        !error.is_commit_unknown() && connection.is_autocommit(),
        "{error}"
    );
    connection
        .commit_hook(None::<fn() -> bool>)
        .expect("it is a hook");
    assert_eq!((counts(&connection), work.len()), ([0, 0], 1));
    work.flush(&mut connection).expect("it is written");
    assert_eq!(counts(&connection), [1, 0]);
}

/// SQLite calls the hook when the rows are committed, and says its error as that of COMMIT.
#[test]
fn a_hook_that_fails_behind_a_commit_leaves_it_unknown() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut connection =
        tables(Connection::open(folder.path().join("hook.db")).expect("it is a file"));
    connection
        .pragma_update(None, "journal_mode", "wal")
        .expect("it is a file");
    connection.wal_hook(Some(|_, _| {
        let busy = ffi::Error::new(ffi::SQLITE_BUSY);
        Err(rusqlite::Error::SqliteFailure(busy, None))
    }));
    let mut work = once();
    work.add(customer("Ada"));
    let error = failed(work.flush(&mut connection));
    assert!(error.is_commit_unknown(), "{error}");
    assert_eq!((counts(&connection), work.len()), ([1, 0], 1));
    connection.wal_hook(None);
    work.flush(&mut connection).expect("the rows are found");
    assert_eq!((counts(&connection), work.len()), ([1, 0], 0));
}

#[test]
fn a_reader_in_the_way_of_commit_is_waited_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("readers.db");
    drop(tables(Connection::open(&path).expect("it is a file")));
    let (reader, mut writer) = (impatient(&path), impatient(&path));
    reader.execute_batch("BEGIN").expect("it begins");
    assert_eq!(counts(&reader), [0, 0]);
    let mut work = once();
    work.add(customer("Ada"));
    let error = failed(work.flush(&mut writer));
    assert!(
        error.is_transient() && !error.is_commit_unknown(),
        "{error}"
    );
    assert!(writer.is_autocommit());
    assert_eq!(counts(&reader), [0, 0]);

    // Another attempt finds it gone.
    let at_once = Retry::DEFAULT.with_delays(Duration::ZERO, Duration::ZERO);
    let mut work = work.with_retry(at_once);
    let (mut reader, mut attempts) = (Some(reader), 0);
    work.observe(move |_| {
        attempts += 1;
        if attempts == 2 {
            drop(reader.take());
        }
    });
    let flushed = work.flush(&mut writer).expect("it is written");
    assert_eq!((flushed.rows(), flushed.retries), (1, 1));
    assert_eq!(counts(&writer), [1, 0]);
}

/// A transaction that only reads at first would find out too late that another one writes.
#[test]
fn a_flush_waits_for_another_writer_before_it_sends_a_row() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("writers.db");
    drop(tables(Connection::open(&path).expect("it is a file")));
    let (first, mut second) = (impatient(&path), impatient(&path));
    first.execute_batch("BEGIN IMMEDIATE").expect("it begins");
    let mut work = once();
    work.add(customer("Ada"));
    work.observe(|progress| panic!("{progress:?} was sent"));
    let error = failed(work.flush(&mut second));
    assert!(error.is_transient(), "{error}");
    assert!(
        error.to_string().starts_with("cannot begin the flush"),
        "{error}"
    );
    let driver = error.driver().and_then(rusqlite::Error::sqlite_error_code);
    assert_eq!(driver, Some(ErrorCode::DatabaseBusy));
    first.execute_batch("COMMIT").expect("it is open");

    let mut work = once();
    work.add(customer("Ada"));
    work.flush(&mut second).expect("it is written");
    assert_eq!(counts(&first), [1, 0]);
}

#[test]
fn a_pool_and_a_function_give_connections() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pool.db");
    drop(tables(Connection::open(&path).expect("it is a file")));
    let manager = r2d2_sqlite::SqliteConnectionManager::file(&path);
    let pool = r2d2::Pool::builder().max_size(1).build(manager);
    let pool = pool.expect("it is a pool");
    let mut work = once();
    for name in ["Ada", "Grace"] {
        work.add(customer(name));
        work.flush_with(|| pool.get()).expect("it is written");
    }
    work.add(customer("Joan"));
    let flushed = work.flush_with(|| Connection::open(&path).map(Box::new));
    assert_eq!(flushed.expect("it is written").rows(), 1);
    work.add(customer("Katherine"));
    let mut lent = pool.get().expect("it is there");
    work.flush(&mut lent).expect("it is written");
    assert_eq!(counts(&lent), [4, 0]);

    // A flush that panics is rolled back before the pool has its connection again.
    lent.execute_batch("CREATE TABLE bombs (id BLOB NOT NULL PRIMARY KEY, value INTEGER)")
        .expect("it is a table");
    drop(lent);
    work.add(Bomb {
        id: CustomerId::generate(),
        value: Panics(true),
    });
    let outcome = catch_unwind(AssertUnwindSafe(|| work.flush_with(|| pool.get())));
    assert!(outcome.is_err());
    let lent = pool.get().expect("it came back");
    assert!(lent.is_autocommit());
    drop(lent);

    let missing = folder.path().join("no").join("such.db");
    let mut calls = 0;
    let attempts = Retry::DEFAULT
        .with_attempts(3)
        .with_delays(Duration::ZERO, Duration::ZERO);
    let mut work = UnitOfWork::new().with_retry(attempts);
    work.add(customer("Nobody"));
    let error = failed(work.flush_with(|| {
        calls += 1;
        Connection::open(&missing).map(Box::new)
    }));
    assert!(error.to_string().contains("unable to open"), "{error}");
    assert_eq!((calls, work.len()), (3, 1));
}

/// SQLite asks what a statement may do as it is prepared.
#[test]
fn a_statement_that_is_sent_again_is_prepared_once() {
    use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    let mut connection = in_memory();
    let prepared = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&prepared);
    let authorizer = move |context: AuthContext<'_>| {
        if let AuthAction::Insert { table_name } = context.action
            && table_name == "customers"
        {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        Authorization::Allow
    };
    connection
        .authorizer(Some(authorizer))
        .expect("it is a hook");
    let mut work = once();
    for _ in 0..5_560 {
        work.add(customer("Ada"));
    }
    // Chunks of fifty rows, and the rest.
    work.flush(&mut connection).expect("it is written");
    assert_eq!(prepared.load(Ordering::Relaxed), 2);
    assert_eq!(counts(&connection), [5_560, 0]);
}

/// Reads texts alone.
struct Word;

impl FromSql for Word {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        String::column_result(value).map(|_| Self)
    }
}

#[derive(OrderedKey)]
#[ordid(table = "receipts")]
struct Receipt {
    #[ordid(key)]
    id: OrderId,
    total: i64,
    #[ordid(returning)]
    doubled: Assigned<i64>,
    #[ordid(returning)]
    remark: Assigned<Option<String>>,
    #[ordid(returning)]
    any: Assigned<Value>,
}

#[derive(OrderedKey)]
#[ordid(table = "receipts")]
struct Misread {
    #[ordid(key)]
    id: OrderId,
    total: i64,
    #[ordid(returning)]
    doubled: Assigned<Word>,
}

#[test]
fn columns_that_the_database_fills_are_read_back() {
    let mut connection = in_memory();
    let create = "CREATE TABLE receipts (id TEXT NOT NULL PRIMARY KEY, total INTEGER NOT NULL,
        doubled INTEGER AS (2 * total) STORED, remark TEXT, any BLOB DEFAULT x'00ff') WITHOUT ROWID";
    connection.execute_batch(create).expect("it is a table");
    let mut work = once();
    let receipts: Vec<_> = (0..1_500)
        .map(|total| {
            let (doubled, remark, any) = (Assigned::new(), Assigned::new(), Assigned::new());
            let cells = (doubled.clone(), remark.clone(), any.clone());
            work.add(Receipt {
                id: OrderId::generate(),
                total,
                doubled,
                remark,
                any,
            });
            cells
        })
        .collect();
    work.flush(&mut connection).expect("it is written");
    for (total, (doubled, remark, any)) in (0..).zip(&receipts) {
        assert_eq!(doubled.get(), Some(2 * total));
        assert_eq!(remark.get(), Some(None));
        assert_eq!(any.get(), Some(Value::Blob(vec![0, 255])));
    }

    work.add(Misread {
        id: OrderId::generate(),
        total: 1,
        doubled: Assigned::new(),
    });
    let error = failed(work.flush(&mut connection));
    assert!(matches!(
        error.driver(),
        Some(rusqlite::Error::InvalidColumnType(1, column, _)) if column == "doubled"
    ));
    assert!(connection.is_autocommit());
    assert_eq!((count(&connection, "receipts"), work.len()), (1_500, 1));
}

/// Compiles: a unit of work goes to a thread that may block.
#[test]
fn a_unit_of_work_can_be_sent() {
    fn is_send<T: Send>() {}
    is_send::<UnitOfWork>();
    is_send::<ordid_rusqlite::ShardedUnitOfWork>();
    is_send::<Error>();
}
