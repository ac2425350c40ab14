//! A unit of work in a journal comes back whole, with its keys, or not at all.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard},
};

use ordid::{KeyType, OrderedKey, Sink, testing::with_keys, uuid::Uuid};
use ordid_core::Error;
use ordid_file::FlushJournal;
use ordid_sql::{
    Action, Attempt, Columns, EngineProfile, Journal, Journaled, Marks, Outcome, PendingRows,
    Registration, RowEnd, RowSink,
};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

/// A sink of an adapter that takes everything.
struct Anything;

impl<T: ?Sized> Sink<T> for Anything {
    fn put(&mut self, _: &T) {}
}

impl RowSink for Anything {
    type Entity = ();

    fn begin_row(&mut self, _: Columns<'_>) {}

    fn end_row(&mut self) -> RowEnd {
        RowEnd::Taken
    }
}

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, prefix = "cus")]
struct CustomerId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = snowflake)]
struct ReadingId(i64);

#[derive(OrderedKey, Serialize, Deserialize, Debug, Clone, PartialEq)]
#[ordid(table = "customers")]
struct Customer {
    #[ordid(key)]
    id: CustomerId,
    name: String,
}

/// What serde and databases have.
#[derive(OrderedKey, Serialize, Deserialize, Debug, Clone, PartialEq)]
#[ordid(schema = "lab", table = "readings")]
struct Reading {
    #[ordid(key)]
    id: Option<ReadingId>,
    #[ordid(parent)]
    customer: Option<CustomerId>,
    raw: Uuid,
    wide: i128,
    widest: u128,
    value: f64,
    small: f32,
    bytes: Vec<u8>,
    nested: Nested,
    document: serde_json::Value,
    unordered: HashMap<String, Option<i8>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    absent: Option<char>,
    #[ordid(skip)]
    #[serde(skip)]
    note: String,
}

#[derive(Serialize, Deserialize, Debug, Clone, PartialEq)]
enum Nested {
    Unit,
    Tuple(u8, Box<Nested>),
    Struct { at: (i64, u64), more: Vec<Nested> },
}

fn reading(number: u8) -> Reading {
    let nested = Nested::Struct {
        at: (i64::MIN, u64::MAX),
        more: vec![Nested::Unit, Nested::Tuple(number, Box::new(Nested::Unit))],
    };
    Reading {
        id: ReadingId::try_from(1_000 + i64::from(number)).ok(),
        customer: number.is_multiple_of(2).then(CustomerId::generate),
        raw: Uuid::from_u128(u128::MAX - u128::from(number)),
        wide: [i128::MIN, -1, 0, i128::from(u64::MAX) + 1, i128::MAX][usize::from(number % 5)],
        widest: [u128::MAX, 0, 1 << 127][usize::from(number % 3)],
        value: f64::from_bits(
            [0x7ff8_dead_beef_0001, 0xfff0_0000_0000_0001, 1 << 63, 1][usize::from(number % 4)],
        ),
        small: f32::from_bits([0x7f80_0001, 0x7fc0_1234, 1][usize::from(number % 3)]),
        bytes: (0..number).collect(),
        nested,
        document: serde_json::json!({"a": null, "b": [null, {}, [], -1.5, u64::MAX]}),
        unordered: (0..number)
            .map(|i| (i.to_string(), (i > 3).then_some(-1)))
            .collect(),
        absent: (number % 2 == 1).then_some('\u{10ffff}'),
        note: String::new(),
    }
}

/// Equal in each bit.
fn assert_same(left: &[Reading], right: &[Reading]) {
    let bits = |reading: &Reading| (reading.value.to_bits(), reading.small.to_bits());
    assert!(left.iter().map(bits).eq(right.iter().map(bits)));
    let others = |reading: &Reading| Reading {
        value: 0.0,
        small: 0.0,
        ..reading.clone()
    };
    assert!(left.iter().map(others).eq(right.iter().map(others)));
}

fn customer(name: &str) -> Customer {
    Customer {
        id: CustomerId::generate(),
        name: name.to_owned(),
    }
}

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("orders.journal");
    (folder, path)
}

fn journaled(journal: impl Journal + 'static) -> Journaled<Anything> {
    Journaled::new(journal)
        .row_as::<Customer>(Registration::in_key_order::<Customer>)
        .row_as::<Reading>(Registration::in_key_order::<Reading>)
}

fn open(path: &Path) -> Journaled<Anything> {
    journaled(FlushJournal::open(path).expect("a journal"))
}

/// Opens the file as the next run does.
fn resumed(path: &Path) -> Result<(Journaled<Anything>, PendingRows<Anything>), Error> {
    let mut journaled = journaled(FlushJournal::open(path)?);
    let mut pending_rows = PendingRows::new();
    let rows = journaled.resume(&mut pending_rows)?;
    assert_eq!(rows, pending_rows.len());
    Ok((journaled, pending_rows))
}

#[test]
fn every_value_comes_back_in_each_bit() {
    let (_folder, path) = folder();
    let readings: Vec<Reading> = (0..60).map(reading).collect();
    let mut pending_rows = PendingRows::new();
    pending_rows.rows_mut().extend(readings.clone());
    pending_rows.rows_mut().push(customer("Ada"));
    let attempt = open(&path).begin(&pending_rows).unwrap();
    assert!(!attempt.in_doubt);

    let (mut journaled, back) = resumed(&path).unwrap();
    assert_same(back.get(), &readings);
    assert_eq!(back.get::<Customer>(), pending_rows.get::<Customer>());
    let again = journaled.begin(&back).unwrap();
    assert_eq!((again.id, again.in_doubt), (attempt.id, true));
    journaled.ended(Outcome::Committed);
    assert_eq!(fs::metadata(&path).unwrap().len(), 0);
}

#[derive(KeyType)]
#[ordid(scheme = uuid_v7)]
struct EmployeeId(Uuid);

#[derive(OrderedKey, Serialize, Deserialize, Clone)]
#[ordid(table = "employees")]
struct Employee {
    #[ordid(key)]
    id: EmployeeId,
    #[ordid(parent)]
    boss: Option<EmployeeId>,
    #[ordid(parent)]
    payer: Option<CustomerId>,
}

/// What would be sent: each row's action and key.
fn sent(pending_rows: &mut PendingRows<Anything>) -> Vec<(Action, String)> {
    let plan = pending_rows.plan(&EngineProfile::SQLITE).expect("a plan");
    let chunks = plan.chunks().flat_map(|chunk| {
        let rows = chunk.rows.clone();
        let keys = rows.map(move |row| (chunk.action, chunk.clone(), row));
        keys.collect::<Vec<_>>()
    });
    chunks
        .map(|(action, chunk, row)| (action, pending_rows.key_text(&chunk, row)))
        .collect()
}

/// Deletes keep their foreign keys, as without them a parent would be deleted before its children.
#[test]
fn updates_and_deletes_come_back_and_are_sent_in_the_same_order() {
    let (_folder, path) = folder();
    let mut pending_rows = PendingRows::new();
    let mut boss = None;
    let payer = Some(CustomerId::generate());
    for number in 0..30 {
        let id = EmployeeId::generate();
        let employee = Employee { id, boss, payer };
        match number % 3 {
            0 => pending_rows.update(employee, Registration::in_key_order::<Employee>),
            1 => pending_rows.rows_mut().push(employee),
            _ => pending_rows.delete(&employee, Registration::in_key_order::<Employee>),
        }
        if number % 3 == 2 {
            boss = Some(id);
        }
    }
    pending_rows.rows_mut().push(customer("Ada"));
    let expected = sent(&mut pending_rows);
    let deleted = expected
        .iter()
        .filter(|(action, _)| *action == Action::Delete);
    let deleted: Vec<_> = deleted.map(|(_, key)| key).collect();
    assert_eq!(deleted.len(), 10);
    assert!(
        deleted.is_sorted_by(|left, right| left > right),
        "children first"
    );

    let opened = || open(&path).row_as::<Employee>(Registration::in_key_order::<Employee>);
    opened().begin(&pending_rows).unwrap();
    let mut back = PendingRows::new();
    assert_eq!(opened().resume(&mut back).unwrap(), 31);
    assert_eq!(sent(&mut back), expected);
    // The same once more, from what came back.
    assert!(opened().begin(&back).is_err(), "of an earlier run");
    let mut journaled = opened();
    journaled.discard().unwrap();
    journaled.begin(&back).unwrap();
    drop(journaled);
    let mut again = PendingRows::new();
    opened().resume(&mut again).unwrap();
    assert_eq!(sent(&mut again), expected);
}

/// Records are cut at 64 KiB: rows on both sides of a cut, and one that is larger.
#[test]
fn many_rows_come_back_in_their_order() {
    let (_folder, path) = folder();
    let mut pending_rows = PendingRows::new();
    for number in 0..5_000 {
        pending_rows.rows_mut().push(customer(&number.to_string()));
        if number == 2_500 {
            pending_rows.rows_mut().push(customer(&"x".repeat(200_000)));
        }
    }
    open(&path).begin(&pending_rows).unwrap();
    let (_, back) = resumed(&path).unwrap();
    assert!(back.get::<Customer>() == pending_rows.get::<Customer>());
    assert_eq!(back.len(), 5_001);
}

/// The rows of the first attempt, then more of them, as after a flush that was refused.
#[test]
fn any_part_of_a_file_has_all_rows_of_an_attempt_or_none() {
    let (_folder, path) = folder();
    let mut lengths = Vec::new();
    let length = || usize::try_from(fs::metadata(&path).unwrap().len()).unwrap();
    let mut journaled = open(&path);
    let mut pending_rows = PendingRows::new();
    pending_rows
        .rows_mut()
        .extend(["a", "b", "c"].map(customer));
    journaled.begin(&pending_rows).unwrap();
    lengths.push((length(), 3, true));
    journaled.ended(Outcome::Nothing);
    lengths.push((length(), 3, false));
    pending_rows.rows_mut().push(customer("d"));
    journaled.begin(&pending_rows).unwrap();
    lengths.push((length(), 4, true));
    journaled.begin(&pending_rows).unwrap();
    lengths.push((length(), 4, true));
    drop(journaled);

    let bytes = fs::read(&path).unwrap();
    for cut in 0..=bytes.len() {
        fs::write(&path, &bytes[..cut]).unwrap();
        let (mut journaled, back) = resumed(&path).unwrap();
        let last = lengths.iter().rfind(|(length, ..)| *length <= cut);
        match last {
            None => assert!(back.is_empty(), "{cut} bytes"),
            Some((_, rows, in_doubt)) => {
                assert_eq!(back.len(), *rows, "{cut} bytes");
                let expected = &pending_rows.get::<Customer>()[..*rows];
                assert_eq!(back.get::<Customer>(), expected);
                // To begin takes the disk its time; it matters around the ends.
                if lengths
                    .iter()
                    .any(|(length, ..)| cut.abs_diff(*length) <= 1)
                {
                    let attempt = journaled.begin(&back).unwrap();
                    assert_eq!(attempt.in_doubt, *in_doubt, "{cut} bytes");
                }
            }
        }
    }
    // A spoilt one is no part; where the bit is does not matter, `ordid-file`'s own tests try each.
    let mut spoilt = bytes;
    spoilt[100] ^= 1;
    fs::write(&path, &spoilt).unwrap();
    assert!(resumed(&path).unwrap_err().is_journal());
}

#[test]
fn what_an_earlier_run_left_is_not_written_over() {
    let (_folder, path) = folder();
    let mut pending_rows = PendingRows::new();
    pending_rows.rows_mut().push(customer("first"));
    open(&path).begin(&pending_rows).unwrap();

    let mut journaled = open(&path);
    // Nothing to flush, nothing happens; least of all to the journal.
    let attempt = journaled.begin(&PendingRows::new()).unwrap();
    assert!(!attempt.in_doubt);
    journaled.ended(Outcome::Committed);
    let mut other = PendingRows::new();
    other.rows_mut().push(customer("second"));
    let error = journaled.begin(&other).unwrap_err();
    assert!(error.is_journal());
    assert_eq!(
        error.to_string(),
        "the journal has 1 row of an earlier run: `resume` first, or `discard`"
    );
    let error = journaled.resume(&mut other).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the unit of work has 1 row; what an earlier run left can only be resumed before rows are added"
    );
    assert_eq!(other.len(), 1);
    drop(journaled);
    assert_eq!(
        resumed(&path).unwrap().1.get::<Customer>(),
        pending_rows.get()
    );

    let mut journaled = open(&path);
    journaled.discard().unwrap();
    assert!(!journaled.begin(&other).unwrap().in_doubt);
}

/// What was added to rows that may be there would be taken for there as well.
#[test]
fn rows_added_in_doubt_are_refused_and_others_are_written_anew() {
    let (_folder, path) = folder();
    let mut pending_rows = PendingRows::new();
    pending_rows.rows_mut().push(customer("first"));
    let mut journaled = open(&path);
    let first = journaled.begin(&pending_rows).unwrap();
    journaled.ended(Outcome::Nothing);
    pending_rows.rows_mut().push(customer("second"));
    let second = journaled.begin(&pending_rows).unwrap();
    assert!(!second.in_doubt);
    assert_ne!(first.id, second.id, "another flush");
    journaled.ended(Outcome::Unknown);
    let again = Attempt {
        in_doubt: true,
        ..second
    };
    assert_eq!(journaled.begin(&pending_rows).unwrap(), again);

    pending_rows.rows_mut().push(customer("third"));
    let error = journaled.begin(&pending_rows).unwrap_err();
    assert!(error.is_journal());
    assert!(
        error.to_string().contains("cannot be told apart"),
        "{error}"
    );
    // As it says: clear it, resume it.
    pending_rows.clear();
    journaled.released();
    assert_eq!(journaled.resume(&mut pending_rows).unwrap(), 2);
    assert_eq!(journaled.begin(&pending_rows).unwrap(), again);
    journaled.ended(Outcome::Committed);
    assert_eq!(fs::metadata(&path).unwrap().len(), 0);
}

/// Checks what the next run reads from each record of an attempt.
#[test]
fn the_next_run_knows_whether_a_marker_row_was_written() {
    for (marks, decided, expected) in [
        (Marks::No, None, [true, false]),
        (Marks::Yes, None, [true, true]),
        // Nothing was sent, so nothing is in doubt.
        (Marks::NotKnownYet, None, [false, false]),
        (Marks::NotKnownYet, Some(false), [true, false]),
        (Marks::NotKnownYet, Some(true), [true, true]),
    ] {
        let (_folder, path) = folder();
        let mut pending_rows = PendingRows::new();
        pending_rows.rows_mut().push(customer("Ada"));
        let mut journaled = open(&path);
        let first = journaled.begin_with(&pending_rows, marks).unwrap();
        assert!(!first.in_doubt && !first.is_marked);
        if let Some(decided) = decided {
            journaled.decided(decided).unwrap();
        }
        drop(journaled);
        let (mut journaled, back) = resumed(&path).unwrap();
        assert_eq!(back.get::<Customer>(), pending_rows.get::<Customer>());
        // If an attempt is in doubt, the next one writes a marker row if that one did, whatever it would do itself.
        let marks = if expected[0] {
            Marks::Yes
        } else {
            Marks::NotKnownYet
        };
        let again = journaled.begin_with(&back, marks).unwrap();
        assert_eq!(
            [again.in_doubt, again.is_marked],
            expected,
            "{marks:?} {decided:?}"
        );
        drop(journaled);
        let (mut journaled, back) = resumed(&path).unwrap();
        let again = journaled.begin(&back).unwrap();
        assert_eq!([again.in_doubt, again.is_marked], expected);
        // When the outcome is known, the journal forgets the attempt.
        journaled.ended(Outcome::Nothing);
        let next = journaled.begin_with(&back, Marks::Yes).unwrap();
        assert!(!next.in_doubt && !next.is_marked);
        journaled.ended(Outcome::Unknown);
        let next = journaled.begin(&back).unwrap();
        assert!(next.in_doubt && next.is_marked);
    }
}

/// The disk is full for a moment: the record that nothing was written is missing, and the next attempt writes no marker row.
#[test]
fn an_attempt_that_could_not_be_settled_is_settled_before_the_next_one() {
    /// The fourth record is refused: before it are the unit, its rows and the attempt.
    struct FullOnce<J>(J, usize);

    impl<J: Journal> Journal for FullOnce<J> {
        fn append(&mut self, record: &[u8]) -> Result<(), Error> {
            self.1 += 1;
            match self.1 {
                4 => Err(Error::journal("no space left on device")),
                _ => self.0.append(record),
            }
        }

        fn sync(&mut self) -> Result<(), Error> {
            self.0.sync()
        }

        fn read(&mut self, visit: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
            self.0.read(visit)
        }

        fn clear(&mut self) -> Result<(), Error> {
            self.0.clear()
        }
    }

    let (_folder, path) = folder();
    let mut pending_rows = PendingRows::new();
    pending_rows.rows_mut().push(customer("Ada"));
    let journal = FullOnce(FlushJournal::open(&path).unwrap(), 0);
    let mut journaled = self::journaled(journal);
    journaled.begin_with(&pending_rows, Marks::Yes).unwrap();
    journaled.ended(Outcome::Nothing);
    journaled.begin_with(&pending_rows, Marks::No).unwrap();
    drop(journaled);
    let (mut journaled, back) = resumed(&path).unwrap();
    let again = journaled.begin(&back).unwrap();
    assert_eq!([again.in_doubt, again.is_marked], [true, false]);
}

#[test]
fn types_that_are_not_registered_are_named() {
    let (_folder, path) = folder();
    let mut pending_rows = PendingRows::new();
    pending_rows.rows_mut().push(reading(1));
    let only_customers = || {
        let journal = FlushJournal::open(&path).unwrap();
        Journaled::<Anything>::new(journal)
            .row_as::<Customer>(Registration::in_key_order::<Customer>)
    };
    let expected = "the type of table readings (1 row) is not registered with the journal: \
                    `Journaled::new(journal).row::<..>()`";
    let mut journaled = only_customers();
    assert_eq!(
        journaled.begin(&pending_rows).unwrap_err().to_string(),
        expected
    );
    drop(journaled);
    assert!(resumed(&path).unwrap().1.is_empty(), "it was not sent");

    open(&path).begin(&pending_rows).unwrap();
    let mut empty = PendingRows::new();
    let error = only_customers().resume(&mut empty).unwrap_err();
    assert_eq!(error.to_string(), expected);
    assert!(empty.is_empty());
}

mod other {
    use super::{CustomerId, Deserialize, OrderedKey, Serialize};

    /// The same table after a change of the program.
    #[derive(OrderedKey, Serialize, Deserialize)]
    #[ordid(table = "customers")]
    pub(super) struct Customer {
        #[ordid(key)]
        pub(super) id: CustomerId,
        pub(super) full_name: String,
    }

    /// The same columns in another order and another type.
    #[derive(OrderedKey, Serialize, Deserialize)]
    #[ordid(table = "customers")]
    pub(super) struct Twin {
        pub(super) name: String,
        #[ordid(key)]
        pub(super) id: CustomerId,
    }
}

#[test]
fn other_columns_are_told_and_another_order_is_none() {
    let (_folder, path) = folder();
    let mut pending_rows = PendingRows::new();
    pending_rows.rows_mut().push(customer("Ada"));
    open(&path).begin(&pending_rows).unwrap();

    let journal = || FlushJournal::open(&path).unwrap();
    let mut empty = PendingRows::new();
    let mut changed = Journaled::<Anything>::new(journal())
        .row_as::<other::Customer>(Registration::in_key_order::<other::Customer>);
    assert_eq!(
        changed.resume(&mut empty).unwrap_err().to_string(),
        "the journal has rows of table customers with the columns id, name, and the type has id, \
         full_name: they cannot be resumed by this version of the program"
    );
    drop(changed);
    let mut reordered = Journaled::<Anything>::new(journal())
        .row_as::<other::Twin>(Registration::in_key_order::<other::Twin>);
    assert_eq!(reordered.resume(&mut empty).unwrap(), 1);
    assert_eq!(empty.get::<other::Twin>()[0].name, "Ada");
    assert_eq!(
        empty.get::<other::Twin>()[0].id,
        pending_rows.get::<Customer>()[0].id
    );
    drop(reordered);

    // Both at once could not be told apart.
    let mut both = open(&path).row_as::<other::Twin>(Registration::in_key_order::<other::Twin>);
    both.discard().unwrap();
    assert_eq!(
        both.begin(&pending_rows).unwrap_err().to_string(),
        "two types with the columns of table customers are registered with the journal; it cannot \
         tell their rows apart"
    );
}

/// What serde would change is found before anything is sent.
#[derive(OrderedKey, Serialize, Deserialize)]
#[ordid(table = "accounts")]
struct Account {
    #[ordid(key)]
    id: CustomerId,
    #[serde(skip)]
    password: String,
    #[serde(with = "whole")]
    at: f64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    roles: Vec<String>,
}

mod whole {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(at: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        at.trunc().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        f64::deserialize(deserializer)
    }
}

#[test]
fn a_column_that_would_not_come_back_is_told_before_anything_is_sent() {
    let (_folder, path) = folder();
    let id = CustomerId::generate();
    let account = |password: &str, at: f64, roles: &[&str]| Account {
        id,
        password: password.to_owned(),
        at,
        roles: roles.iter().map(|&role| role.to_owned()).collect(),
    };
    let begin = |account| {
        let mut pending_rows = PendingRows::new();
        pending_rows.rows_mut().push(account);
        let journal = FlushJournal::open(&path).unwrap();
        let mut journaled = Journaled::<Anything>::new(journal)
            .row_as::<Account>(Registration::in_key_order::<Account>);
        let begun = journaled.begin(&pending_rows).map(drop);
        journaled.discard().unwrap();
        begun.map_err(|error| {
            assert!(error.is_journal());
            error.to_string()
        })
    };
    let cannot = |problem: &str| {
        Err(format!(
            "the journal cannot keep the row of accounts with the key {id}: {problem}"
        ))
    };
    let column = |name: &str| {
        cannot(&format!(
            "serde does not bring back its column {name} as it was; is it skipped, or written with \
             less precision?"
        ))
    };
    assert_eq!(begin(account("", 1.0, &["admin"])), Ok(()));
    assert_eq!(
        begin(account("secret", 1.0, &["admin"])),
        column("password")
    );
    assert_eq!(begin(account("", 1.5, &["admin"])), column("at"));
    assert_eq!(
        begin(account("", 1.0, &[])),
        cannot("it cannot be read back: missing field `roles`")
    );
}

/// A keeper that fails where it is told to, and forgets what was not synced when it is killed.
#[derive(Default, Clone)]
struct Failing(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    records: Vec<Vec<u8>>,
    /// So many calls that write succeed.
    good: Option<usize>,
}

impl Failing {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().expect("no test panicked")
    }

    fn fail_after(&self, calls: Option<usize>) {
        self.kept().good = calls;
    }

    fn call<T>(&self, write: impl FnOnce(&mut Kept) -> T) -> Result<T, Error> {
        let mut kept = self.kept();
        if let Some(good) = &mut kept.good {
            *good = good.checked_sub(1).ok_or_else(|| Error::journal("full"))?;
        }
        Ok(write(&mut kept))
    }
}

impl Journal for Failing {
    fn append(&mut self, record: &[u8]) -> Result<(), Error> {
        self.call(|kept| kept.records.push(record.to_vec()))
    }

    fn sync(&mut self) -> Result<(), Error> {
        self.call(|_| ())
    }

    fn read(&mut self, visit: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        let records = self.kept().records.clone();
        records.iter().try_for_each(|record| visit(record))
    }

    fn clear(&mut self) -> Result<(), Error> {
        self.call(|kept| kept.records.clear())
    }
}

/// Wherever the journal fails, the flush does not begin; with room again it does, and a next run
/// finds all rows of the last attempt.
#[test]
fn a_journal_that_fails_stops_the_flush_and_loses_nothing() {
    for calls in 0.. {
        let journal = Failing::default();
        let mut journaled = journaled(journal.clone());
        let mut pending_rows = PendingRows::new();
        pending_rows.rows_mut().push(customer("first"));
        pending_rows.rows_mut().push(reading(3));
        journal.fail_after(Some(calls));
        let begun = journaled.begin(&pending_rows);
        journal.fail_after(None);
        let enough = begun.is_ok();
        if !enough {
            let begun = journaled.begin(&pending_rows).unwrap();
            assert!(!begun.in_doubt, "nothing was sent: {calls}");
        }
        // One more row, which the journal may fail to take: then the two stay.
        journaled.ended(Outcome::Nothing);
        pending_rows.rows_mut().push(customer("second"));
        journal.fail_after(Some(calls));
        let more = journaled.begin(&pending_rows).is_ok();
        journal.fail_after(None);
        drop(journaled);
        let mut back = PendingRows::new();
        let mut next = self::journaled(journal.clone());
        let rows = next.resume(&mut back).unwrap();
        assert!(rows == 3 || (rows == 2 && !more), "{calls}: {rows}");

        // The one that is resumed is under way from now on, not the one that was added behind it.
        next.begin(&back).unwrap();
        let mut again = PendingRows::new();
        let mut third = self::journaled(journal.clone());
        assert_eq!(third.resume(&mut again).unwrap(), rows, "{calls}");
        // A flush can find out what became of it while the journal takes nothing.
        journal.fail_after(Some(0));
        for _ in 0..2 {
            assert!(third.begin(&again).unwrap().in_doubt);
        }
        journal.fail_after(None);

        // What is committed and cannot be forgotten is no failure, and no second unit of work.
        journal.fail_after(Some(0));
        next.ended(Outcome::Committed);
        back.clear();
        back.rows_mut().push(customer("third"));
        assert_eq!(next.begin(&back).unwrap_err().to_string(), "full");
        journal.fail_after(None);
        assert!(!next.begin(&back).unwrap().in_doubt);
        let mut last = PendingRows::new();
        let mut next = self::journaled(journal);
        assert_eq!(next.resume(&mut last).unwrap(), 1);
        assert_eq!(last.get::<Customer>(), back.get::<Customer>());
        if enough {
            // To make room, a unit, two tables, an attempt, and that it is durable.
            assert_eq!(calls, 6);
            return;
        }
    }
}

/// The marker row of the first run would look as if it might have been removed, and a lost COMMIT could not be resolved.
#[test]
fn rows_that_wait_for_long_get_another_marker_row_unless_they_may_be_committed() {
    for outcome in [Some(Outcome::Nothing), None] {
        let journal = Failing::default();
        let old = with_keys(3, || {
            let mut pending_rows = PendingRows::new();
            pending_rows.rows_mut().push(customer("Ada"));
            let mut journaled = journaled(journal.clone());
            let attempt = journaled.begin(&pending_rows).unwrap();
            outcome.into_iter().for_each(|it| journaled.ended(it));
            attempt.id
        });
        let resumed = || {
            let mut rows = PendingRows::new();
            let mut journaled = journaled(journal.clone());
            assert_eq!(journaled.resume(&mut rows).unwrap(), 1);
            let attempt = journaled.begin(&rows).unwrap();
            (attempt.id == old, attempt.id, attempt.in_doubt)
        };
        let (is_old, id, in_doubt) = resumed();
        assert_eq!((is_old, in_doubt), (outcome.is_none(), outcome.is_none()));
        assert_eq!(resumed(), (is_old, id, true));
    }
}

/// Then nobody knows whether the rows are in the journal. What is known of a COMMIT is kept.
#[test]
fn rows_that_could_not_be_discarded_are_not_flushed() {
    for (is_removed, in_doubt) in [(true, true), (true, false), (false, true), (false, false)] {
        let journal = Failing::default();
        let mut journaled = journaled(journal.clone());
        let mut pending_rows = PendingRows::new();
        pending_rows.rows_mut().push(customer("Ada"));
        journaled.begin(&pending_rows).unwrap();
        if !in_doubt {
            journaled.ended(Outcome::Nothing);
        }
        journal.fail_after(Some(0));
        journaled.discard().unwrap_err();
        journal.fail_after(None);
        if is_removed {
            journal.kept().records.clear();
        }
        let error = journaled.begin(&pending_rows).unwrap_err();
        assert!(
            error.is_journal() && error.to_string().contains("again"),
            "{error}"
        );
        journaled.discard().unwrap();
        assert!(!journaled.begin(&pending_rows).unwrap().in_doubt);
        drop(journaled);
        let mut back = PendingRows::new();
        assert_eq!(self::journaled(journal).resume(&mut back).unwrap(), 1);
    }
}

#[test]
fn records_of_another_version_are_refused() {
    let journal = Failing::default();
    let mut pending_rows = PendingRows::new();
    pending_rows.rows_mut().push(customer("Ada"));
    journaled(journal.clone()).begin(&pending_rows).unwrap();
    let good = journal.kept().records.clone();
    // The kind of a record, the version of a unit, the length of a row.
    for (record, byte) in [(0, 0), (0, 1), (1, 0), (1, 5), (1, 6), (2, 0)] {
        let mut spoilt = good.clone();
        spoilt[record][byte] ^= 0x40;
        journal.kept().records = spoilt;
        let mut empty = PendingRows::new();
        let error = journaled(journal.clone()).resume(&mut empty).unwrap_err();
        assert!(error.is_journal(), "{record} {byte}");
        assert!(error.to_string().contains("unknown form"), "{error}");
        assert!(empty.is_empty());
    }
    // Rows that are missing.
    journal.kept().records = vec![good[0].clone(), good[2].clone()];
    let error = journaled(journal)
        .resume(&mut PendingRows::new())
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the journal has 0 rows of a unit of work of 1"
    );
}
