//! Keys in each column: written, read, ordered, in arrays, and refused by columns of another type.

use ::tokio_postgres::types::{FromSqlOwned, ToSql};
use libtest_mimic::Trial;
use ordid::{
    KeyType, OrderedKey,
    key::{Key192, ObjectId, PushId},
    storage::{ColumnOn, dialect::Postgres},
    uuid::Uuid,
};
use ordid_tests::{
    keys::{Keys, snowflakes},
    servers::Servers,
    trials::{Outcome, on_address},
};
use ordid_tokio_postgres::{Entity, Stored, StoredAs, UnitOfWork, column};

use crate::{is_so, tokio::connect};

ordid_tests::process_wide!(
    Native, Long, Short, Base32, InBytes, Object, Push, Wide, WideText
);

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, tokio_postgres)]
pub struct Native(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, tokio_postgres(postgres = text))]
pub struct Long(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, tokio_postgres(postgres = char22))]
pub struct Short(Uuid);

#[derive(KeyType)]
#[ordid(scheme = ulid, tokio_postgres(postgres = char26))]
pub struct Base32(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v6, tokio_postgres(postgres = bytea))]
pub struct InBytes(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v4, tokio_postgres(postgres = unordered(uuid)))]
pub struct NoOrder(Uuid);

impl Keys for NoOrder {
    fn rising(count: usize) -> Vec<Self> {
        let mut keys: Vec<Self> = (0..count).map(|_| Self::generate()).collect();
        keys.sort_unstable();
        keys
    }
}

#[derive(KeyType)]
#[ordid(scheme = snowflake, tokio_postgres)]
pub struct Number(i64);

impl Keys for Number {
    fn rising(count: usize) -> Vec<Self> {
        snowflakes(count)
    }
}

#[derive(KeyType)]
#[ordid(scheme = object_id, adapter = ordid_tokio_postgres)]
pub struct Object(ObjectId);

#[derive(KeyType)]
#[ordid(scheme = push_id, tokio_postgres)]
pub struct Push(PushId);

#[derive(KeyType)]
#[ordid(scheme = ordered_text_32, tokio_postgres)]
pub struct Wide(Key192);

#[derive(KeyType)]
#[ordid(scheme = ordered_text_32, tokio_postgres(postgres = char32))]
pub struct WideText(Key192);

/// How many keys of a column are ordered: a part goes by statements, and the rest by `COPY`.
const KEYS: usize = 3_000;

/// A row of a test.
trait Row: Entity + Clone {
    type Key: Keys + StoredAs + ToSql + FromSqlOwned + Send + Sync;

    fn new(id: Self::Key, other: Option<Self::Key>) -> Self;
}

macro_rules! rows {
    ($($row:ident: $key:ident),+) => {
        $(#[derive(OrderedKey, Clone)]
        #[ordid(table = "keys")]
        struct $row {
            id: $key,
            other: Option<$key>,
            list: Vec<$key>,
        }

        impl Row for $row {
            type Key = $key;

            fn new(id: $key, other: Option<$key>) -> Self {
                Self { id, other, list: other.into_iter().chain([id]).collect() }
            }
        })+

        pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
            $(
                let name = concat!("keys::", stringify!($key), "_is_written_read_and_ordered");
                on_address::<sqlx::Postgres, _, _>(trials, servers, "postgres", name, written::<$row>);
                let name = concat!("keys::", stringify!($key), "_is_refused_by_another_column");
                on_address::<sqlx::Postgres, _, _>(trials, servers, "postgres", name, refused::<$row>);
            )+
            ordid_tests::address_tests!(trials, servers, sqlx::Postgres: "postgres", "keys::"; a_key_without_a_newtype);
        }
    };
}

rows! {
    NativeRow: Native, LongRow: Long, ShortRow: Short, Base32Row: Base32, InBytesRow: InBytes, NoOrderRow: NoOrder,
    NumberRow: Number, ObjectRow: Object, PushRow: Push, WideRow: Wide, WideTextRow: WideText
}

/// The type of a key's column in DDL, and without its collation.
fn types<K: StoredAs<Column: ColumnOn<Postgres>>>() -> [&'static str; 2] {
    let ty = <K::Column as ColumnOn<Postgres>>::TYPE;
    [ty, ty.split(' ').next().unwrap_or_default()]
}

async fn written<R: Row<Key: StoredAs<Column: ColumnOn<Postgres>>>>(url: String) -> Outcome {
    let mut client = connect(&url).await?;
    let [ty, plain] = types::<R::Key>();
    let sql =
        format!("CREATE TABLE keys (id {ty} PRIMARY KEY, other {ty}, list {plain}[] NOT NULL)");
    client.batch_execute(&sql).await?;
    let keys = R::Key::rising(KEYS);
    let rows = keys.iter().enumerate();
    let rows: Vec<R> = rows
        .map(|(number, id)| R::new(*id, (number % 3 != 0).then(|| keys[number / 2])))
        .collect();
    for part in [&rows[..500], &rows[500..]] {
        let mut work = UnitOfWork::new();
        for row in part.iter().rev().cloned() {
            work.try_add(row)?;
        }
        work.flush(&mut client).await?;
    }
    let found = client
        .query("SELECT id, other, list FROM keys ORDER BY id", &[])
        .await?;
    assert_eq!(found.len(), KEYS);
    for (number, (row, key)) in found.iter().zip(&keys).enumerate() {
        let other = (number % 3 != 0).then(|| keys[number / 2]);
        assert_eq!(row.try_get::<_, R::Key>(0)?, *key);
        assert_eq!(row.try_get::<_, Option<R::Key>>(1)?, other);
        assert_eq!(row.try_get::<_, Vec<R::Key>>(2)?.last(), Some(key));
    }
    let some = &keys[10..20];
    let sql = "SELECT count(*) FROM keys WHERE id = ANY ($1) AND id >= $2";
    let row = client.query_one(sql, &[&some, &keys[15]]).await?;
    assert_eq!(row.try_get::<_, i64>(0)?, 5);
    // Rows that are updated and deleted are found by their keys.
    let mut work = UnitOfWork::new();
    for row in &rows[..20] {
        work.delete(row);
    }
    for key in &keys[20..30] {
        work.update(R::new(*key, None));
    }
    client
        .batch_execute(ordid_tokio_postgres::flushes_table())
        .await?;
    work.flush(&mut client).await?;
    let left = "(SELECT count(*) FROM keys) = 2980 AND (SELECT count(*) FROM keys WHERE other IS NULL) = 1000";
    assert!(
        is_so(&client, left).await? || is_so(&client, "(SELECT count(*) FROM keys) = 2980").await?
    );
    Ok(())
}

/// PostgreSQL would cast each of them to text, where the keys have another order.
async fn refused<R: Row<Key: StoredAs<Column: ColumnOn<Postgres>>>>(url: String) -> Outcome {
    let mut client = connect(&url).await?;
    let [_, plain] = types::<R::Key>();
    let other = if plain == "text" {
        "citext_like"
    } else {
        "text"
    };
    let setup = "CREATE DOMAIN citext_like AS varchar(100)[]";
    client.batch_execute(setup).await?;
    let sql = format!("CREATE TABLE keys (id {other} PRIMARY KEY, other {other}, list {other})");
    client.batch_execute(&sql).await?;
    for rows in [10, 1_200] {
        let mut work = UnitOfWork::new();
        for key in R::Key::rising(rows) {
            work.try_add(R::new(key, None))?;
        }
        let error = work
            .flush(&mut client)
            .await
            .expect_err("it is another type");
        assert!(error.to_string().contains("nothing was"), "{error}");
        assert!(
            !error.is_transient() && !error.is_connection_lost(),
            "{error}"
        );
        assert!(is_so(&client, "(SELECT count(*) FROM keys) = 0").await?);
    }
    let row = client
        .query_one(&format!("SELECT NULL::{other}"), &[])
        .await?;
    assert!(row.try_get::<_, Option<R::Key>>(0).is_err());
    Ok(())
}

async fn a_key_without_a_newtype(url: String) -> Outcome {
    type Id = Stored<Uuid, column::Char22>;

    let client = connect(&url).await?;
    client
        .batch_execute("CREATE TABLE keys (id text COLLATE \"C\" PRIMARY KEY)")
        .await?;
    let key: Id = Uuid::generate().into();
    client
        .execute("INSERT INTO keys VALUES ($1)", &[&key])
        .await?;
    let row = client
        .query_one("SELECT id FROM keys WHERE id = $1", &[&key])
        .await?;
    assert_eq!(row.try_get::<_, Id>(0)?, key);
    Ok(())
}
