//! What is sent to Oracle's client library, seen by a recorder in its place (`oci.c`): statements,
//! the bytes of the arrays, the ends of transactions. No database takes part: it shows what ordid
//! and the `oracle` crate send, and what they make of errors, not what Oracle does.

mod changes;
mod follower;
mod leases;
mod observed;
mod reconnects;

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::LazyLock,
};

use oracle::Connection;
use ordid::{
    KeyType, OrderedKey,
    clock::{SystemClock, Timestamp},
    entropy::ThreadEntropy,
    generator::{OrderedGenerator, Policy},
    key::{Key192, ObjectId, RawKey},
    scheme::snowflake::SnowflakeNode,
    uuid::Uuid,
};
use ordid_oracle::{Error, OnConflict, Retry, Stored, UnitOfWork, Upserted, column};
use tempfile::TempDir;

/// The recorder, compiled and loaded once.
static LIBRARY: LazyLock<TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorders/oracle/oci.c");
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-w", "-o"])
        .arg(folder.path().join("libclntsh.so"))
        .arg(source)
        .status()
        .expect("a C compiler");
    assert!(compiled.success());
    oracle::InitParams::new()
        .oracle_client_lib_dir(folder.path())
        .expect("a path")
        .init()
        .expect("the recorder is loaded");
    folder
});

/// Where a recorder writes, and has its script from.
struct Log {
    path: PathBuf,
    folder: TempDir,
}

impl Log {
    fn new() -> Self {
        LazyLock::force(&LIBRARY);
        ordid_tests::told::listen_to_entries();
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        std::fs::write(&path, "").expect("written");
        Self { path, folder }
    }

    /// Says what fails from now on.
    fn script(&self, script: &str) {
        std::fs::write(self.folder.path().join("log.script"), script).expect("written");
    }

    fn connect(&self, script: &str) -> Result<Connection, Error> {
        self.script(script);
        let text = self.path.to_str().expect("UTF-8");
        ordid_oracle::connect("scott", "tiger", text)
    }

    fn lines(&self) -> Vec<String> {
        let text = std::fs::read_to_string(&self.path).expect("readable");
        text.lines().map(str::to_owned).collect()
    }

    /// The lines that are no rows.
    fn statements(&self) -> Vec<String> {
        let lines = self.lines().into_iter();
        lines.filter(|line| !line.starts_with(' ')).collect()
    }

    /// The values of the rows.
    fn rows(&self) -> Vec<Vec<String>> {
        let lines = self.lines().into_iter();
        let rows = lines.filter(|line| line.starts_with(' '));
        rows.map(|row| row.split_whitespace().map(str::to_owned).collect())
            .collect()
    }
}

/// A log and a connection that is recorded there.
struct Recorder {
    connection: Connection,
    log: Log,
}

impl Recorder {
    fn new(script: &str) -> Self {
        let log = Log::new();
        let connection = log.connect(script).expect("connected");
        Self { connection, log }
    }
}

impl std::ops::Deref for Recorder {
    type Target = Log;

    fn deref(&self) -> &Log {
        &self.log
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A value of `RAW`: type 23 of the client library.
fn raw(bytes: impl AsRef<[u8]>) -> String {
    format!("23:{}", hex(bytes.as_ref()))
}

/// The integer of a value of `NUMBER` with its length before it: type 6 of the client library.
/// Source: Oracle Call Interface Programmer's Guide, "NUMBER".
fn number(value: &str) -> i128 {
    let bytes: Vec<u8> = value
        .strip_prefix("6:")
        .expect("a number")
        .as_bytes()
        .chunks(2)
        .map(|pair| {
            let digits = std::str::from_utf8(pair).expect("ASCII");
            u8::from_str_radix(digits, 16).expect("hex")
        })
        .collect();
    let (length, number) = bytes.split_first().expect("a length");
    let number = &number[..usize::from(*length)];
    let (exponent, mantissa) = number.split_first().expect("an exponent");
    if *exponent == 0x80 {
        return 0;
    }
    let positive = exponent & 0x80 != 0;
    let exponent = if positive { *exponent } else { !*exponent };
    let places = usize::from(exponent - 192);
    let digit = |place: usize| match mantissa.get(place) {
        Some(102) | None => 0,
        Some(byte) if positive => i128::from(byte - 1),
        Some(byte) => i128::from(101 - byte),
    };
    let value = (0..places).fold(0, |value, place| value * 100 + digit(place));
    if positive { value } else { -value }
}

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, oracle)]
struct CustomerId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = sequential_guid_as_binary, oracle(oracle = raw16_dotnet))]
struct OrderId(Uuid);

#[derive(OrderedKey)]
#[ordid(
    schema = "SHOP",
    table = "CUSTOMERS",
    rename_all = "SCREAMING_SNAKE_CASE",
    columns
)]
struct Customer {
    #[ordid(key)]
    id: CustomerId,
    full_name: Option<String>,
    credit: i64,
}

#[derive(OrderedKey)]
#[ordid(table = "order")]
struct Order {
    #[ordid(key)]
    id: OrderId,
    #[ordid(parent)]
    customer: CustomerId,
}

const INTO_CUSTOMERS: &str =
    r#"INSERT INTO "SHOP"."CUSTOMERS" ("ID", "FULL_NAME", "CREDIT") VALUES (:1, :2, :3)"#;
const INTO_ORDER: &str = r#"INSERT INTO "order" ("id", "customer") VALUES (:1, :2)"#;

fn customer(name: Option<&str>, credit: i64) -> Customer {
    Customer {
        id: CustomerId::generate(),
        full_name: name.map(str::to_owned),
        credit,
    }
}

#[test]
fn a_flush_sends_arrays_in_one_transaction() {
    let recorder = Recorder::new("");
    let mut work = UnitOfWork::new();
    let parent = customer(Some("Ä"), -1_250);
    let first = work.add(Order {
        id: OrderId::generate(),
        customer: parent.id,
    });
    let none = customer(None, i64::MAX);
    let last = work.add(none);
    let parent = work.add(parent);
    let flushed = work.flush(&recorder.connection).expect("flushed");
    assert!(work.is_empty());
    assert_eq!(
        ordid_tests::flushed::tables(&flushed),
        [("CUSTOMERS", 2, 1), ("order", 1, 1)]
    );
    assert_eq!(
        recorder.statements(),
        [INTO_CUSTOMERS, INTO_ORDER, "COMMIT"],
        "parents first, no ROLLBACK"
    );

    let rows = recorder.rows();
    assert!(parent < last, "rows go in the order of their keys");
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[0][0], raw(parent.to_raw().as_bytes()));
    assert_eq!(rows[0][1], format!("1:{}", hex("Ä".as_bytes())));
    assert_eq!(number(&rows[0][2]), -1_250);
    assert_eq!(rows[1][0], raw(last.to_raw().as_bytes()));
    assert_eq!(rows[1][1], "1:NULL");
    assert_eq!(number(&rows[1][2]), i128::from(i64::MAX));
    assert_eq!(
        rows[2],
        [
            raw(first.to_raw().to_bytes_le()),
            raw(parent.to_raw().as_bytes())
        ],
        "the bytes of .NET in the one column, network order in the other"
    );
}

#[test]
fn many_rows_go_in_chunks_of_a_thousand() {
    let recorder = Recorder::new("");
    let mut work = UnitOfWork::new();
    let mut keys: Vec<_> = (0..2_500).map(|_| CustomerId::generate()).collect();
    for id in keys.iter().rev() {
        work.add(Customer {
            id: *id,
            ..customer(None, 0)
        });
    }
    let flushed = work.flush(&recorder.connection).expect("flushed");
    assert_eq!((flushed.rows(), flushed.tables[0].statements), (2_500, 3));
    assert_eq!(
        recorder.statements(),
        [INTO_CUSTOMERS, INTO_CUSTOMERS, INTO_CUSTOMERS, "COMMIT"]
    );
    let sent = recorder.rows().into_iter().map(|row| row[0].clone());
    keys.sort();
    assert!(sent.eq(keys.iter().map(|key| raw(key.to_raw().as_bytes()))));
}

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, oracle(oracle = unordered(raw16_dotnet)))]
struct SharedId(Uuid);

#[derive(OrderedKey)]
#[ordid(table = "SHARED")]
struct Shared {
    #[ordid(key)]
    id: SharedId,
}

/// So that the insert appends to the index, where the column does not sort as the keys do.
#[test]
fn unordered_keys_go_in_the_order_of_their_bytes() {
    let recorder = Recorder::new("");
    let mut work = UnitOfWork::new();
    let unix = |seconds: u64| Timestamp::from_unix_millis(seconds * 1_000).expect("a time");
    let keys: Vec<SharedId> = (1..300)
        .map(|second| SharedId::generate_at(unix(second * 1_000)).expect("a key"))
        .collect();
    for id in &keys {
        work.add(Shared { id: *id });
    }
    work.flush(&recorder.connection).expect("flushed");
    let mut bytes: Vec<_> = keys.iter().map(|key| key.to_raw().to_bytes_le()).collect();
    assert!(!bytes.is_sorted(), "the order of the keys is another");
    bytes.sort_unstable();
    let sent = recorder.rows().into_iter().map(|row| row[0].clone());
    assert!(sent.eq(bytes.iter().map(raw)));
}

/// One table with a column of every other kind.
mod kinds {
    use super::*;

    #[derive(KeyType)]
    #[ordid(scheme = snowflake, oracle)]
    pub(super) struct SignedId(i64);

    #[derive(KeyType)]
    #[ordid(scheme = uuid_short, oracle)]
    pub(super) struct UnsignedId(u64);

    #[derive(KeyType)]
    #[ordid(scheme = object_id, oracle)]
    pub(super) struct DocumentId(ObjectId);

    #[derive(KeyType)]
    #[ordid(scheme = ordered_text_32, oracle(oracle = raw24))]
    pub(super) struct LongId(Key192);

    #[derive(KeyType)]
    #[ordid(scheme = uuid_v4, oracle(oracle = unordered(raw16)))]
    pub(super) struct RandomId(Uuid);

    #[derive(OrderedKey)]
    #[ordid(table = "KINDS")]
    pub(super) struct Kinds {
        #[ordid(key)]
        pub(super) signed: Option<SignedId>,
        pub(super) unsigned: UnsignedId,
        pub(super) document: DocumentId,
        pub(super) long: LongId,
        pub(super) random: RandomId,
        pub(super) wrapped: Option<Stored<Uuid, column::Raw16>>,
    }
}

#[test]
fn every_column_has_its_bytes() {
    use kinds::*;
    let recorder = Recorder::new("");
    let node = SnowflakeNode::new(7).expect("a node");
    let generator = OrderedGenerator::with_node(node, SystemClock, ThreadEntropy, Policy::DEFAULT);
    let mut work = UnitOfWork::new().with_generator::<SignedId>(generator);
    let unsigned = UnsignedId::from_raw(u64::MAX).expect("64 bits");
    let (document, long) = (DocumentId::generate(), LongId::generate());
    let (random, wrapped) = (RandomId::generate(), Uuid::generate());
    let mut keys = Vec::new();
    for wrapped in [Some(wrapped), None] {
        let key = work.try_add(Kinds {
            signed: None,
            unsigned,
            document,
            long,
            random,
            wrapped: wrapped.map(Into::into),
        });
        keys.push(key.expect("a key of the generator"));
    }
    work.flush(&recorder.connection).expect("flushed");
    let rows = recorder.rows();
    for (row, key) in rows.iter().zip(&keys) {
        assert_eq!(number(&row[0]), i128::from(key.to_raw()));
        assert_eq!(number(&row[1]), i128::from(u64::MAX));
        assert_eq!(row[2], raw(document.to_raw().to_bytes()));
        assert_eq!(row[3], raw(long.to_raw().to_bytes()));
        assert_eq!(row[4], raw(random.to_raw().as_bytes()));
    }
    assert_eq!(rows[0][5], raw(wrapped.as_bytes()));
    assert_eq!(rows[1][5], "23:NULL");
}

#[test]
fn a_refused_row_is_named_and_nothing_is_lost() {
    let mut keys: Vec<_> = (0..1_500).map(|_| CustomerId::generate()).collect();
    keys.sort();
    let (taken, too) = (keys[1_234], keys[1_400]);
    let script = format!(
        "refuse {} 1\nrefuse {} 2291\n",
        hex(taken.to_raw().as_bytes()),
        hex(too.to_raw().as_bytes())
    );
    let recorder = Recorder::new(&script);
    let mut work = UnitOfWork::new();
    for id in &keys {
        work.add(Customer {
            id: *id,
            ..customer(None, 0)
        });
    }
    let error = work.flush(&recorder.connection).unwrap_err();
    assert!(error.is_unique_violation() && !error.is_foreign_key_violation());
    assert_eq!((error.table(), error.chunk()), (Some("CUSTOMERS"), Some(1)));
    assert_eq!(error.rows(), Some(1_000..1_500));
    assert_eq!(error.key(), Some(&*taken.to_string()));
    assert_eq!(
        error.to_string(),
        format!(
            "cannot insert into CUSTOMERS (rows 1000 to 1499), key {taken}, nothing was \
             written: ORA-00001: as the test asked for (and 1 more of these rows)"
        )
    );
    let sent = [INTO_CUSTOMERS, INTO_CUSTOMERS, "ROLLBACK"];
    assert_eq!(recorder.statements(), sent);

    // Once more, with the same keys.
    assert_eq!(work.len(), 1_500);
    let again = work.flush(&recorder.connection).unwrap_err();
    assert_eq!(again.key(), error.key());
    assert_eq!(recorder.statements(), [sent, sent].concat());
}

#[test]
fn a_failed_statement_is_rolled_back() {
    let recorder = Recorder::new("execute 60\n");
    let mut work = UnitOfWork::new().with_retry(Retry::NONE);
    work.add(customer(None, 0));
    let error = work.flush(&recorder.connection).unwrap_err();
    assert!(error.is_deadlock() && !error.is_commit_unknown(), "{error}");
    assert_eq!((error.table(), error.key()), (Some("CUSTOMERS"), None));
    assert_eq!(recorder.statements(), [INTO_CUSTOMERS, "ROLLBACK"]);
    assert_eq!(work.len(), 1);
}

/// Once more, on the same connection and with the same keys, to the byte.
#[test]
fn a_deadlock_is_tried_again() {
    let recorder = Recorder::new("execute 60 1\n");
    let mut work = UnitOfWork::new();
    let keys: Vec<_> = (0..3).map(|row| work.add(customer(None, row))).collect();
    let (report, told) = std::sync::mpsc::channel();
    work.observe(move |progress| report.send((progress.done, progress.total)).expect("open"));
    let flushed = work.flush(&recorder.connection).expect("flushed");
    assert_eq!((flushed.rows(), flushed.retries), (3, 1));
    assert_eq!(
        flushed.tables[0].statements, 1,
        "of the attempt that succeeded"
    );
    let sent = [INTO_CUSTOMERS, "ROLLBACK", INTO_CUSTOMERS, "COMMIT"];
    assert_eq!(recorder.statements(), sent);
    let ids: Vec<_> = recorder.rows().iter().map(|row| row[0].clone()).collect();
    let keys: Vec<_> = keys
        .iter()
        .map(|key| raw(key.to_raw().as_bytes()))
        .collect();
    assert_eq!(ids, [&keys[..], &keys[..]].concat());
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [(3, 3)]);
    assert!(work.is_empty());
}

#[test]
fn what_stays_in_the_way_is_given_up() {
    let recorder = Recorder::new("execute 8177\n");
    let retry = Retry::DEFAULT.with_attempts(3).with_delays(
        std::time::Duration::from_millis(1),
        std::time::Duration::from_millis(1),
    );
    let mut work = UnitOfWork::new().with_retry(retry);
    work.add(customer(None, 0));
    let error = work.flush(&recorder.connection).unwrap_err();
    assert!(error.is_transient() && !error.is_connection_lost());
    assert_eq!(error.retries(), 2);
    assert_eq!(
        recorder.statements(),
        [INTO_CUSTOMERS, "ROLLBACK"].repeat(3)
    );
    // In the user's transaction it is not tried again.
    let error = work.flush_in(&recorder.connection).unwrap_err();
    assert!(error.is_transient());
    assert_eq!(error.retries(), 0);
}

/// There is no other connection to go on with.
#[test]
fn a_lost_connection_is_not_tried_again() {
    let recorder = Recorder::new("execute 3113\n");
    let mut work = UnitOfWork::new();
    work.add(customer(None, 0));
    let error = work.flush(&recorder.connection).unwrap_err();
    assert!(error.is_connection_lost() && !error.is_commit_unknown());
    assert_eq!((error.retries(), work.len()), (0, 1));
}

/// What could not be rolled back would be committed by the next attempt, so there is none on that connection.
#[test]
fn a_failed_rollback_ends_a_flush_over_one_connection() {
    let recorder = Recorder::new("execute 60 1\nrollback 1013\n");
    let mut work = UnitOfWork::new().with_retry(reconnects::quick());
    work.add(customer(None, 0));
    let error = work.flush(&recorder.connection).unwrap_err();
    assert!(error.is_transient(), "{error}");
    assert!(
        error.to_string().contains("could not be rolled back"),
        "{error}"
    );
    assert_eq!(recorder.statements(), [INTO_CUSTOMERS, "ROLLBACK"]);
    assert_eq!(work.len(), 1, "nothing is lost");

    // The caller rolls back, and flushes again.
    recorder.script("");
    recorder.connection.rollback().expect("rolled back");
    work.flush(&recorder.connection).expect("flushed");
    let sent = [
        INTO_CUSTOMERS,
        "ROLLBACK",
        "ROLLBACK",
        INTO_CUSTOMERS,
        "COMMIT",
    ];
    assert_eq!(recorder.statements(), sent);
}

#[test]
fn a_lost_answer_to_commit_is_unknown() {
    for (code, unknown) in [(3113, true), (2091, false)] {
        let recorder = Recorder::new(&format!("commit {code}\n"));
        let mut work = UnitOfWork::new();
        work.add(customer(None, 0));
        let error = work.flush(&recorder.connection).unwrap_err();
        assert_eq!(error.is_commit_unknown(), unknown, "{error}");
        assert_eq!(work.len(), 1);
    }
}

/// The next flush, over another connection, begins with the question what became of it.
#[test]
fn what_is_unknown_is_asked_for_by_the_next_flush() {
    const IS_THERE: &str = r#"SELECT 1 FROM "SHOP"."CUSTOMERS" WHERE "ID" = :1"#;
    for found in [true, false] {
        let recorder = Recorder::new("commit 3113\n");
        let mut work = UnitOfWork::new();
        let key = work.add(customer(None, 0));
        let error = work.flush(&recorder.connection).unwrap_err();
        assert!(error.is_commit_unknown());
        let before = recorder.statements();
        assert_eq!(before, [INTO_CUSTOMERS, "COMMIT"]);
        let found_now = format!("found {} 1\n", hex(key.to_raw().as_bytes()));
        let script = if found { &*found_now } else { "" };
        let other = recorder.connect(script).expect("connected");
        let flushed = work.flush(&other).expect("flushed");
        assert!(work.is_empty());
        assert_eq!(flushed.rows(), 1);
        let after = match found {
            true => vec![IS_THERE, "ROLLBACK"],
            false => vec![IS_THERE, "ROLLBACK", INTO_CUSTOMERS, "COMMIT"],
        };
        assert_eq!(recorder.statements()[before.len()..], after);
    }
}

#[test]
fn an_open_transaction_is_neither_committed_nor_lost() {
    const SAVEPOINT: &str = "SAVEPOINT ordid_flush";
    let bad = CustomerId::generate();
    let recorder = Recorder::new(&format!("refuse {} 1\n", hex(bad.to_raw().as_bytes())));
    let mut work = UnitOfWork::new();
    work.add(customer(None, 0));
    work.flush_in(&recorder.connection).expect("flushed");
    assert_eq!(recorder.statements(), [SAVEPOINT, INTO_CUSTOMERS]);
    assert_eq!(work.len(), 1, "rows stay until `clear`");

    // What is open is not this flush's own.
    let error = work.flush(&recorder.connection).unwrap_err();
    assert!(error.is_connection_state());
    assert_eq!(
        error.to_string(),
        "a transaction is open on this connection, nothing was sent: flush inside it with \
         `flush_in`, or end it first"
    );
    let mut failing = UnitOfWork::new();
    failing.add(Customer {
        id: bad,
        ..customer(None, 0)
    });
    let error = failing.flush_in(&recorder.connection).unwrap_err();
    assert_eq!(error.key(), Some(&*bad.to_string()));
    assert_eq!(
        recorder.statements(),
        [
            SAVEPOINT,
            INTO_CUSTOMERS,
            SAVEPOINT,
            INTO_CUSTOMERS,
            "ROLLBACK TO SAVEPOINT ordid_flush"
        ]
    );
    recorder.connection.commit().expect("committed");
    work.flush(&recorder.connection).expect("nothing is open");
}

#[test]
fn a_connection_that_commits_by_itself_is_refused() {
    let mut recorder = Recorder::new("");
    recorder.connection.set_autocommit(true);
    let mut work = UnitOfWork::new();
    work.add(customer(None, 0));
    for error in [
        work.flush(&recorder.connection).unwrap_err(),
        work.flush_in(&recorder.connection).unwrap_err(),
    ] {
        assert!(error.is_connection_state());
        assert!(error.to_string().ends_with("call `set_autocommit(false)`"));
    }
    assert!(recorder.lines().is_empty());
}
