//! Keys in each column of SQLite, written and read by rusqlite, and compared by the database.

use std::fmt::Debug;

use ordid::{
    KeyType,
    key::{Key192, ObjectId, PushId},
    uuid::Uuid,
};
use ordid_rusqlite::{Stored, column};
use rusqlite::{Connection, ToSql, params, types::FromSql};

macro_rules! key_types {
    ($($name:ident($raw:ty): $scheme:ident, $word:ident $(= $path:ident)? $(($($column:tt)+))?;)+) => {$(
        #[derive(KeyType)]
        #[ordid(scheme = $scheme, $word $(= $path)? $(($($column)+))?)]
        struct $name($raw);
    )+};
}

key_types! {
    Native(Uuid): uuid_v7, rusqlite;
    InBlob(Uuid): uuid_v7, rusqlite(sqlite = blob);
    InText(Uuid): uuid_v6, rusqlite(sqlite = text);
    InChar22(Uuid): ordered_text_22, rusqlite(sqlite = char22);
    InChar26(Uuid): ulid, rusqlite(sqlite = char26);
    Unordered(Uuid): comb_nhibernate, rusqlite(sqlite = unordered(blob));
    Flake(i64): snowflake, rusqlite;
    Integer(i64): snowflake, rusqlite(sqlite = integer);
    Object(ObjectId): object_id, rusqlite;
    ObjectText(ObjectId): object_id, adapter = ordid_rusqlite(sqlite = text);
    Push(PushId): push_id, adapter = ordid_rusqlite;
    PushBlob(PushId): push_id, rusqlite(sqlite = blob);
    PushText(PushId): push_id, rusqlite(sqlite = text);
    Wide(Key192): ordered_text_32, rusqlite;
    WideChar(Key192): ordered_text_32, rusqlite(sqlite = char32);
    WideText(Key192): ordered_text_32, rusqlite(sqlite = text);
}

fn database() -> Connection {
    let connection = Connection::open_in_memory().expect("it needs no file");
    let create = "CREATE TABLE keys (id NOT NULL, position INTEGER NOT NULL)";
    connection.execute_batch(create).expect("it is a table");
    connection
}

/// Writes keys that rise in a scattered order, and reads them by the database's order.
fn keep_their_order<K>(keys: &[K], class: &str)
where
    K: ToSql + FromSql + PartialEq + Debug + Copy,
{
    let connection = database();
    for step in 0..keys.len() {
        let position = step * 7 % keys.len();
        let insert = "INSERT INTO keys VALUES (?, ?)";
        let number = i64::try_from(position).expect("it is small");
        let inserted = connection.execute(insert, params![keys[position], number]);
        inserted.expect("it is a row");
    }
    let mut query = connection
        .prepare("SELECT id, typeof(id), position FROM keys ORDER BY id")
        .expect("it is a query");
    let rows = query
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .expect("it is a query");
    let mut read = 0;
    for (expected, row) in rows.enumerate() {
        let (key, found, position): (K, String, i64) = row.expect("it is read");
        assert_eq!((key, &*found), (keys[expected], class));
        assert_eq!(usize::try_from(position), Ok(expected));
        read += 1;
    }
    assert_eq!(read, keys.len());
    let found: i64 = connection
        .query_row("SELECT count(*) FROM keys WHERE id > ?", [keys[9]], |row| {
            row.get(0)
        })
        .expect("keys are parameters");
    assert_eq!(usize::try_from(found), Ok(keys.len() - 10));
}

fn made<K>(make: impl Fn() -> K) -> Vec<K> {
    (0..200).map(|_| make()).collect()
}

fn from_integers<K: KeyType<Raw = i64>>() -> Vec<K> {
    let key = |number: i64| K::from_raw(number << 22).expect("it is of the scheme");
    (1..=200).map(key).collect()
}

#[test]
fn every_column_keeps_the_order_of_its_keys() {
    keep_their_order(&made(Native::generate), "blob");
    keep_their_order(&made(InBlob::generate), "blob");
    keep_their_order(&made(InText::generate), "text");
    keep_their_order(&made(InChar22::generate), "text");
    keep_their_order(&made(InChar26::generate), "text");
    keep_their_order(&made(Object::generate), "blob");
    keep_their_order(&made(ObjectText::generate), "text");
    keep_their_order(&made(Push::generate), "text");
    keep_their_order(&made(PushBlob::generate), "blob");
    keep_their_order(&from_integers::<Flake>(), "integer");
    keep_their_order(&from_integers::<Integer>(), "integer");
    keep_their_order(&made(PushText::generate), "text");
    keep_their_order(&made(Wide::generate), "blob");
    keep_their_order(&made(WideChar::generate), "text");
    keep_their_order(&made(WideText::generate), "text");
    let plain = made(|| Stored::<Uuid, column::Char26>::from(Uuid::generate()));
    keep_their_order(&plain, "text");
}

#[test]
fn unordered_keys_come_back() {
    let connection = database();
    let key = Unordered::generate();
    let found: Unordered = connection
        .query_row("SELECT ?", [key], |row| row.get(0))
        .expect("it is read");
    assert_eq!(found, key);
    let none: Option<Unordered> = connection
        .query_row("SELECT ?", [None::<Unordered>], |row| row.get(0))
        .expect("NULL is read");
    assert_eq!(none, None);
}

/// Reads the result of an expression as a key, and returns the error.
fn refused<K: FromSql + Debug>(expression: &str) -> String {
    let sql = format!("SELECT {expression}");
    let connection = database();
    let read = connection.query_row(&sql, [], |row| row.get::<_, K>(0));
    let error = read.expect_err(expression);
    // The error names the column as rusqlite does, and has the key's own error about the value.
    let source = std::error::Error::source(&error).map(ToString::to_string);
    source.unwrap_or_else(|| error.to_string())
}

#[test]
fn other_forms_and_classes_are_errors() {
    for expression in ["NULL", "1.5"] {
        let text = refused::<InBlob>(expression);
        assert!(text.contains("Invalid column type"), "{expression}: {text}");
        refused::<InText>(expression);
        refused::<Flake>(expression);
    }
    for (length, found) in [(15, "15 bytes"), (17, "17 bytes"), (0, "0 bytes")] {
        let text = refused::<InBlob>(&format!("zeroblob({length})"));
        assert!(text.contains(found) || text.contains("empty"), "{text}");
    }
    let key = InText::generate();
    for text in [
        // A key's own text in a column of bytes, and the other way round.
        refused::<InBlob>(&format!("'{key}'")),
        refused::<InText>("x'01900000000070008000000000000000'"),
        refused::<InBlob>("1"),
        refused::<Flake>("'one'"),
        refused::<Flake>("x'00'"),
        // Not UTF-8, and not of the alphabet.
        refused::<InText>("CAST(x'ff' AS TEXT)"),
        refused::<InChar22>("'not such a text at all'"),
        // The UUID is of another version.
        refused::<InBlob>("x'01900000000040008000000000000000'"),
        refused::<Flake>("-1"),
    ] {
        assert!(!text.is_empty());
    }
}

/// SQLite orders a text before every blob, so what is right but for its class would be out of order.
#[test]
fn the_right_bytes_of_another_class_are_an_error() {
    let text = refused::<InText>(&format!("CAST('{}' AS BLOB)", InText::generate()));
    assert_eq!(
        text,
        "expected a value of the storage class Text, found one of Blob, which SQLite orders apart"
    );
    let key = "01900101010171018101010101010101";
    let text = refused::<InBlob>(&format!("CAST(x'{key}' AS TEXT)"));
    assert_eq!(
        text,
        "expected a value of the storage class Blob, found one of Text, which SQLite orders apart"
    );
    let read = database().query_row(&format!("SELECT x'{key}'"), [], |row| {
        row.get::<_, InBlob>(0)
    });
    read.expect("it is a key");
}

/// A column and a raw key of the list of columns; without an implementation, the test does not compile.
fn is_stored<C: ordid_rusqlite::RusqliteColumn<R>, R: ordid::key::RawKey>() {}

macro_rules! implemented {
    ($($name:ident $column:ident: $raws:tt $($dialect:ident)+;)+) => {
        $($(implemented!(@ $dialect $column $raws);)+)+
    };
    (@ Sqlite $column:ident [$($raw:ident)+]) => {
        $(is_stored::<column::$column, $raw>();)+
    };
    (@ $other:ident $column:ident $raws:tt) => {};
}

#[test]
fn it_has_every_column_of_sqlite() {
    ordid_core::__for_each_column! { implemented }
}
