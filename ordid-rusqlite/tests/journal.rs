//! A journal refuses rows that the next run would send otherwise, and goes on with those of a run that ended.

use ordid::{KeyType, OrderedKey, uuid::Uuid};
use ordid_file::FlushJournal;
use ordid_rusqlite::{Journaled, UnitOfWork, create_flushes_table};
use rusqlite::{
    Connection, ToSql,
    types::{ToSqlOutput, ValueRef},
};
use serde::{Deserialize, Serialize, Serializer};

#[derive(KeyType)]
#[ordid(rusqlite)]
struct UserId(Uuid);

/// Shows itself to the database alone.
#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Secret(String);

impl ToSql for Secret {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Text(self.0.as_bytes())))
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str("[redacted]")
    }
}

#[derive(OrderedKey, Serialize, Deserialize)]
#[ordid(table = "users")]
struct User {
    #[ordid(key)]
    id: UserId,
    name: String,
    password: Secret,
}

#[derive(OrderedKey, Serialize, Deserialize, Clone)]
#[ordid(table = "notes")]
struct Note {
    #[ordid(key)]
    id: UserId,
    text: String,
    stars: Option<f64>,
}

fn database() -> Connection {
    let connection = Connection::open_in_memory().expect("it needs no file");
    let create = "CREATE TABLE users (id BLOB PRIMARY KEY, name TEXT, password TEXT) WITHOUT ROWID;
        CREATE TABLE notes (id BLOB PRIMARY KEY, text TEXT, stars REAL) WITHOUT ROWID";
    connection.execute_batch(create).expect("they are tables");
    create_flushes_table(&connection).expect("it is a table");
    connection
}

fn journaled(path: &std::path::Path) -> UnitOfWork {
    let journal = FlushJournal::open(path).expect("a journal");
    UnitOfWork::new().with_journal(Journaled::new(journal).row::<User>().row::<Note>())
}

#[test]
fn a_column_whose_serialize_hides_something_is_refused_before_anything_is_sent() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut connection = database();
    let mut work = journaled(&folder.path().join("journal"));
    work.add(User {
        id: UserId::generate(),
        name: "Ada".to_owned(),
        password: Secret("correct horse".to_owned()),
    });
    let error = work.flush(&mut connection);
    let error = error.expect_err("the next run would write `[redacted]`");
    assert!(error.is_journal(), "{error}");
    assert!(error.to_string().contains("password"), "{error}");
    let users: i64 = connection
        .query_row("SELECT count(*) FROM users", [], |row| row.get(0))
        .expect("it is a table");
    assert_eq!(users, 0);
}

#[test]
fn rows_of_a_run_that_ended_are_written_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("journal");
    let mut connection = database();
    let note = Note {
        id: UserId::generate(),
        text: "it's 1 o'clock".to_owned(),
        stars: Some(0.1),
    };
    let mut work = journaled(&path);
    work.add(note.clone());
    connection
        .execute_batch("ALTER TABLE notes RENAME TO away")
        .expect("it is renamed");
    work.flush(&mut connection).expect_err("there is no table");
    drop(work);
    connection
        .execute_batch("ALTER TABLE away RENAME TO notes")
        .expect("it is renamed");

    let mut work = journaled(&path);
    assert_eq!(work.resume().expect("the journal is whole"), 1);
    work.flush(&mut connection).expect("it is written");
    let found = connection.query_row("SELECT id, text, stars FROM notes", [], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?))
    });
    assert_eq!(found.expect("one row"), (note.id, note.text, note.stars));
    drop(work);
    let mut work = journaled(&path);
    assert_eq!(work.resume().expect("the journal is empty"), 0);
}
