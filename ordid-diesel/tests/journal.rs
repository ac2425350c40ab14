//! A journal refuses rows that the next run would send otherwise, before there is a connection.

// For Diesel's SQLite, where that feature is on.
use libsqlite3_sys as _;

use diesel::{
    ConnectionError, PgConnection,
    expression::AsExpression,
    pg::Pg,
    serialize::{self, Output, ToSql},
    sql_types::Text,
};
use ordid::{KeyType, OrderedKey, uuid::Uuid};
use ordid_diesel::{Error, Journaled, UnitOfWork};
use ordid_file::FlushJournal;
use serde::{Deserialize, Serialize, Serializer};

use schema::users;

#[derive(KeyType)]
#[ordid(diesel)]
struct UserId(Uuid);

/// Shows itself to the database alone.
#[derive(Debug, Clone, PartialEq, Deserialize, AsExpression)]
#[diesel(sql_type = Text)]
struct Secret(String);

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str("[redacted]")
    }
}

impl ToSql<Text, Pg> for Secret {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
        ToSql::<Text, Pg>::to_sql(&self.0, out)
    }
}

mod schema {
    diesel::table! {
        users (id) {
            id -> Uuid,
            name -> Text,
            password -> Text,
        }
    }
}

#[derive(OrderedKey, Serialize, Deserialize)]
#[diesel(table_name = users)]
#[ordid(diesel)]
struct User {
    #[ordid(key)]
    id: UserId,
    name: String,
    password: Secret,
}

/// Flushes a user over connections that nobody can make.
fn flush(id: UserId, password: &str) -> Error {
    let folder = tempfile::tempdir().expect("a folder");
    let journal = FlushJournal::open(folder.path().join("journal")).expect("a journal");
    let mut work = UnitOfWork::<Pg>::new().with_journal(Journaled::new(journal).row::<User>());
    work.add(User {
        id,
        name: "Ada".to_owned(),
        password: Secret(password.to_owned()),
    });
    let nobody = || Err::<PgConnection, _>(ConnectionError::BadConnection("nobody".to_owned()));
    work.with_retry(ordid_diesel::Retry::NONE)
        .flush_with(nobody)
        .expect_err("there is no connection")
}

#[test]
fn a_column_whose_serialize_hides_something_is_refused_before_anything_is_sent() {
    let id = UserId::generate();
    let error = flush(id, "correct horse");
    assert!(error.is_journal(), "{error}");
    assert!(
        error
            .to_string()
            .contains("another value of its column password"),
        "{error}"
    );
    let error = flush(id, "[redacted]");
    assert!(!error.is_journal(), "{error}");
}
