//! A journal refuses rows that the next run would send otherwise.

use std::collections::HashMap;

use ordid::{KeyType, OrderedKey, uuid::Uuid};
use ordid_file::FlushJournal;
use ordid_sqlx::{Journaled, UnitOfWork};
use serde::{Deserialize, Serialize, Serializer};
use sqlx::{Sqlite, SqlitePool, types::Json};

#[derive(KeyType)]
#[ordid(sqlx(sqlite = blob))]
struct UserId(Uuid);

/// Shows itself to the database alone.
#[derive(Debug, Clone, PartialEq, Deserialize, sqlx::Type)]
#[sqlx(transparent)]
struct Secret(String);

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

/// Two maps of the same values have them in different orders.
#[derive(OrderedKey, Serialize, Deserialize)]
#[ordid(table = "notes")]
struct Note {
    #[ordid(key)]
    id: UserId,
    words: Json<HashMap<String, f64>>,
}

const TABLES: &str = "CREATE TABLE users (id BLOB PRIMARY KEY, name TEXT, password TEXT); \
                      CREATE TABLE notes (id BLOB PRIMARY KEY, words TEXT)";

async fn flushed(fill: impl FnOnce(&mut UnitOfWork<Sqlite>)) -> Result<usize, ordid_sqlx::Error> {
    flushed_as(|work| work, fill).await
}

async fn flushed_as(
    set: impl FnOnce(UnitOfWork<Sqlite>) -> UnitOfWork<Sqlite>,
    fill: impl FnOnce(&mut UnitOfWork<Sqlite>),
) -> Result<usize, ordid_sqlx::Error> {
    let folder = tempfile::tempdir().expect("a folder");
    let journal = FlushJournal::open(folder.path().join("journal")).expect("a journal");
    let pool = SqlitePool::connect("sqlite::memory:")
        .await
        .expect("a database");
    sqlx::raw_sql(TABLES).execute(&pool).await.expect("tables");
    let journaled = Journaled::new(journal).row::<User>().row::<Note>();
    let mut work = set(UnitOfWork::new().with_journal(journaled));
    fill(&mut work);
    let flushed = work.flush(&pool).await;
    flushed.map(|flushed| flushed.rows())
}

#[tokio::test]
async fn a_column_whose_serialize_hides_something_is_refused_before_anything_is_sent() {
    let id = UserId::generate();
    let error = flushed(|work| {
        work.add(User {
            id,
            name: "Ada".to_owned(),
            password: Secret("correct horse".to_owned()),
        });
    })
    .await
    .expect_err("the next run would write `[redacted]`");
    assert!(error.is_journal());
    assert_eq!(
        error.to_string(),
        format!(
            "cannot use the journal, nothing was sent: the journal cannot keep the row of users with the key \
             {id}: the database would get another value of its column password; does `Serialize` of its type \
             leave something out?"
        )
    );
}

#[tokio::test]
async fn a_secret_that_is_what_serialize_writes_comes_back_and_so_does_a_map_in_any_order() {
    let rows = flushed(|work| {
        work.add(User {
            id: UserId::generate(),
            name: "Ada".to_owned(),
            password: Secret("[redacted]".to_owned()),
        });
        for number in 0..20 {
            let words = (0..number).map(|word| (format!("word {word}"), f64::from(word) / 3.0));
            work.add(Note {
                id: UserId::generate(),
                words: Json(words.collect()),
            });
        }
    });
    assert_eq!(rows.await.expect("all come back"), 21);
}

/// After a kill at COMMIT, the next run could not tell whether an update was carried out.
#[tokio::test]
async fn changes_without_a_marker_row_are_refused_before_anything_is_sent() {
    let user = || User {
        id: UserId::generate(),
        name: "Ada".to_owned(),
        password: Secret("[redacted]".to_owned()),
    };
    let error = flushed_as(UnitOfWork::without_record, |work| work.update(user())).await;
    let error = error.expect_err("it has an update");
    assert!(error.is_journal(), "{error}");
    assert!(
        error.to_string().contains("leave `without_record` out"),
        "{error}"
    );
    let rows = flushed_as(UnitOfWork::without_record, |work| {
        work.add(user());
    });
    assert_eq!(rows.await.expect("rows are found by their keys"), 1);
}
