//! A journal refuses rows that the next run would send otherwise, before there is a connection.

use bytes::BytesMut;
use ordid::{KeyType, OrderedKey, uuid::Uuid};
use ordid_file::FlushJournal;
use ordid_tokio_postgres::{Error, Journaled, Retry, UnitOfWork};
use serde::{Deserialize, Serialize, Serializer};
use tokio_postgres::{
    Client, NoTls,
    types::{IsNull, ToSql, Type, to_sql_checked},
};

#[derive(KeyType)]
#[ordid(tokio_postgres)]
struct UserId(Uuid);

/// Shows itself to the database alone.
#[derive(Clone, Deserialize)]
struct Secret(String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[redacted]")
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str("[redacted]")
    }
}

impl ToSql for Secret {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Send + Sync>> {
        self.0.to_sql(ty, out)
    }

    fn accepts(ty: &Type) -> bool {
        <String as ToSql>::accepts(ty)
    }

    to_sql_checked!();
}

#[derive(OrderedKey, Serialize, Deserialize)]
#[ordid(table = "users")]
struct User {
    #[ordid(key)]
    id: UserId,
    name: String,
    password: Secret,
}

/// Flushes a user over connections that nobody can make.
async fn flush(id: UserId, password: &str) -> Error {
    let folder = tempfile::tempdir().expect("a folder");
    let journal = FlushJournal::open(folder.path().join("journal")).expect("a journal");
    let mut work = UnitOfWork::new().with_journal(Journaled::new(journal).row::<User>());
    work.add(User {
        id,
        name: "Ada".to_owned(),
        password: Secret(password.to_owned()),
    });
    let nobody = async || -> Result<Client, tokio_postgres::Error> {
        let (client, _) =
            tokio_postgres::connect("host=127.0.0.1 port=1 user=nobody", NoTls).await?;
        Ok(client)
    };
    work.with_retry(Retry::NONE)
        .flush_with(nobody)
        .await
        .expect_err("there is no connection")
}

#[tokio::test]
async fn a_column_whose_serialize_hides_something_is_refused_before_anything_is_sent() {
    let id = UserId::generate();
    let error = flush(id, "correct horse").await;
    assert!(error.is_journal(), "{error}");
    let text = error.to_string();
    assert!(
        text.contains("another value of its column password"),
        "{text}"
    );
    let error = flush(id, "[redacted]").await;
    assert!(!error.is_journal() && error.is_connection_lost(), "{error}");
}
