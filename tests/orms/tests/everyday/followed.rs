//! Followers and partitions: see [`ordid_tests::followed`].

use std::time::Duration;

use ::mysql_async::{Conn, TxOpts, prelude::FromRow};
use ::sqlx::{MySql, Pool, Postgres, Sqlite};
use ordid::{KeyType, OrderedKey, uuid::Uuid};
use ordid_tests::{
    followed::{Delivered, Follows, FollowsPostgres},
    servers::Client,
    trials::Outcome,
};

use crate::{
    connect::Connect,
    establish::{self, Known},
    lite, mysql, tokio,
};

#[derive(KeyType)]
#[ordid(diesel, mysql_async, rusqlite, sea_orm, tokio_postgres)]
pub struct EventId(Uuid);

/// Makes of a batch of any library what was delivered.
macro_rules! delivered {
    ($batch:expr) => {{
        let batch = $batch;
        Ok(Delivered {
            numbers: batch.rows.iter().map(|row| row.number).collect(),
            position: batch.position.to_string(),
            is_complete: batch.is_complete,
        })
    }};
}

fn names(partitions: Vec<ordid_diesel::partitions::Partition>) -> Vec<String> {
    partitions.into_iter().map(|it| it.name).collect()
}

/// `SeaORM`, on a database.
pub struct SeaOrm<DB>(std::marker::PhantomData<fn() -> DB>);

mod event {
    use ordid::OrderedKey;
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel, OrderedKey)]
    #[sea_orm(table_name = "events")]
    pub struct Model {
        pub number: i64,
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: super::EventId,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

macro_rules! sea_orm {
    ($($database:ident: $dialect:ident),+) => {$(
        impl Follows for SeaOrm<$database> {
            type Database = $database;

            const PREFIX: &'static str = "seaorm::";

            async fn settled(
                pool: &Pool<$database>,
                longest: Duration,
                position: &str,
                most: u32,
            ) -> Outcome<Delivered> {
                type Follower =
                    ordid_seaorm::Follower<ordid_seaorm::dialect::$dialect, event::ActiveModel>;

                let db = <$database>::connect(pool.clone());
                let follower = Follower::settled_after(longest);
                delivered!(follower.next(&db, &position.parse()?, most).await?)
            }
        }
    )+};
}

sea_orm!(Postgres: Postgres, MySql: MySql, Sqlite: Sqlite);

type SeaOrmFollower = ordid_seaorm::Follower<ordid_seaorm::dialect::Postgres, event::ActiveModel>;

impl FollowsPostgres for SeaOrm<Postgres> {
    fn create_sql() -> Vec<String> {
        SeaOrmFollower::by_transaction().create_sql()
    }

    async fn committed(pool: &Pool<Postgres>, position: &str, most: u32) -> Outcome<Delivered> {
        let db = Postgres::connect(pool.clone());
        let follower = SeaOrmFollower::by_transaction();
        delivered!(follower.next(&db, &position.parse()?, most).await?)
    }

    async fn now(pool: &Pool<Postgres>) -> Outcome<String> {
        let db = Postgres::connect(pool.clone());
        let follower = SeaOrmFollower::by_transaction();
        // On the database that it is for alone.
        let sqlite = sea_orm::Database::connect("sqlite::memory:").await?;
        let error = follower.now(&sqlite).await.expect_err("SQLite").to_string();
        assert!(error.contains("SeaORM is connected to Sqlite"), "{error}");
        Ok(follower.now(&db).await?.to_string())
    }

    fn partition_by_sql() -> String {
        use ordid_seaorm::partitions::{Partitions, Period};

        Partitions::<event::ActiveModel>::new(Period::Day).partition_by_sql()
    }

    async fn partitions(pool: &Pool<Postgres>, count: u32) -> Outcome<[Vec<String>; 2]> {
        use ordid_seaorm::partitions::{Partitions, Period};

        let db = Postgres::connect(pool.clone());
        let partitions = Partitions::<event::ActiveModel>::new(Period::Day);
        let created = partitions.create_next(&db, count).await?;
        let all = partitions.list(&db).await?;
        Ok([names(created), names(all)])
    }
}

/// Defines the entity for a backend of Diesel, whose key column has this type in `table!`.
macro_rules! diesel_events {
    ($($module:ident: $key:ident),+) => {$(
        mod $module {
            use diesel::prelude::*;
            use ordid::OrderedKey;

            use super::EventId;

            type Key = diesel::sql_types::$key;

            diesel::table! {
                use diesel::sql_types::BigInt;
                use super::Key;

                events (id) {
                    id -> Key,
                    number -> BigInt,
                }
            }

            #[derive(OrderedKey, QueryableByName)]
            #[diesel(table_name = events)]
            #[ordid(diesel)]
            pub struct Event {
                pub number: i64,
                id: EventId,
            }
        }
    )+};
}

diesel_events!(uuids: Uuid, bytes: Binary);

/// Diesel, with a type of connections.
pub struct Diesel<C>(std::marker::PhantomData<fn() -> C>);

/// diesel-async, with a type of connections.
pub struct DieselAsync<C>(std::marker::PhantomData<fn() -> C>);

pub type AsyncSqlite =
    diesel_async::sync_connection_wrapper::SyncConnectionWrapper<diesel::SqliteConnection>;

/// Implements [`Follows`] for a type of connections and its backend. `$wait` is `.await` for those of diesel-async.
macro_rules! diesel_follows {
    (
        $kind:ident<$connection:ty>, $backend:ty, $module:ident;
        $prefix:literal, $connect:ident, $follower:ident, [$($wait:tt)*]
    ) => {
        impl Follows for $kind<$connection> {
            type Database = <$backend as Known>::Database;

            const PREFIX: &'static str = $prefix;

            async fn settled(
                pool: &Pool<Self::Database>,
                longest: Duration,
                position: &str,
                most: u32,
            ) -> Outcome<Delivered> {
                let url = Self::Database::client_url(&pool.connect_options());
                let mut connection = establish::$connect::<$connection>(&url, "")$($wait)*?;
                let follower =
                    ordid_diesel::$follower::<$backend, $module::Event>::settled_after(longest);
                let position = position.parse()?;
                delivered!(follower.next(&mut connection, &position, most)$($wait)*?)
            }
        }
    };
}

macro_rules! diesel_blocks {
    ($($connection:ident: $backend:ty, $module:ident;)+) => {$(
        diesel_follows! {
            Diesel<diesel::$connection>, $backend, $module; "diesel::", connect, Follower, []
        }
    )+};
}

diesel_blocks! {
    PgConnection: diesel::pg::Pg, uuids;
    MysqlConnection: diesel::mysql::Mysql, bytes;
    SqliteConnection: diesel::sqlite::Sqlite, bytes;
}

macro_rules! diesel_awaits {
    ($($connection:ty: $backend:ty, $module:ident;)+) => {$(
        diesel_follows! {
            DieselAsync<$connection>, $backend, $module;
            "diesel_async::", connect_async, AsyncFollower, [.await]
        }
    )+};
}

diesel_awaits! {
    diesel_async::AsyncPgConnection: diesel::pg::Pg, uuids;
    diesel_async::AsyncMysqlConnection: diesel::mysql::Mysql, bytes;
    AsyncSqlite: diesel::sqlite::Sqlite, bytes;
}

/// Implements [`FollowsPostgres`], likewise.
macro_rules! diesel_follows_postgres {
    ($kind:ident<$connection:ty>, $connect:ident, $follower:ident, $partitions:ident, [$($wait:tt)*]) => {
        impl FollowsPostgres for $kind<$connection> {
            fn create_sql() -> Vec<String> {
                ordid_diesel::$follower::<diesel::pg::Pg, uuids::Event>::by_transaction().create_sql()
            }

            async fn committed(
                pool: &Pool<Postgres>,
                position: &str,
                most: u32,
            ) -> Outcome<Delivered> {
                let mut connection = establish::$connect::<$connection>(&Postgres::client_url(&pool.connect_options()), "")$($wait)*?;
                let follower = ordid_diesel::$follower::<diesel::pg::Pg, uuids::Event>::by_transaction();
                let position = position.parse()?;
                delivered!(follower.next(&mut connection, &position, most)$($wait)*?)
            }

            async fn now(pool: &Pool<Postgres>) -> Outcome<String> {
                let mut connection = establish::$connect::<$connection>(&Postgres::client_url(&pool.connect_options()), "")$($wait)*?;
                let follower = ordid_diesel::$follower::<diesel::pg::Pg, uuids::Event>::by_transaction();
                Ok(follower.now(&mut connection)$($wait)*?.to_string())
            }

            fn partition_by_sql() -> String {
                use ordid_diesel::partitions::{$partitions, Period};

                $partitions::<uuids::Event>::new(Period::Day).partition_by_sql()
            }

            async fn partitions(pool: &Pool<Postgres>, count: u32) -> Outcome<[Vec<String>; 2]> {
                use ordid_diesel::partitions::{$partitions, Period};

                let mut connection = establish::$connect::<$connection>(&Postgres::client_url(&pool.connect_options()), "")$($wait)*?;
                let partitions = $partitions::<uuids::Event>::new(Period::Day);
                let created = partitions.create_next(&mut connection, count)$($wait)*?;
                let all = partitions.list(&mut connection)$($wait)*?;
                Ok([names(created), names(all)])
            }
        }
    };
}

diesel_follows_postgres!(
    Diesel<diesel::PgConnection>,
    connect,
    Follower,
    Partitions,
    []
);
diesel_follows_postgres!(
    DieselAsync<diesel_async::AsyncPgConnection>,
    connect_async,
    AsyncFollower,
    AsyncPartitions,
    [.await]
);

/// The entity of the libraries that have none of their own.
#[derive(OrderedKey, FromRow)]
#[ordid(table = "events")]
struct PlainEvent {
    number: i64,
    #[ordid(key)]
    id: EventId,
}

impl TryFrom<&::rusqlite::Row<'_>> for PlainEvent {
    type Error = ::rusqlite::Error;

    fn try_from(row: &::rusqlite::Row<'_>) -> ::rusqlite::Result<Self> {
        Ok(Self {
            number: row.get("number")?,
            id: row.get("id")?,
        })
    }
}

impl TryFrom<&::tokio_postgres::Row> for PlainEvent {
    type Error = ::tokio_postgres::Error;

    fn try_from(row: &::tokio_postgres::Row) -> Result<Self, ::tokio_postgres::Error> {
        Ok(Self {
            number: row.try_get("number")?,
            id: row.try_get("id")?,
        })
    }
}

/// rusqlite.
pub struct Rusqlite;

impl Follows for Rusqlite {
    type Database = Sqlite;

    const PREFIX: &'static str = "rusqlite::";

    async fn settled(
        pool: &Pool<Sqlite>,
        longest: Duration,
        position: &str,
        most: u32,
    ) -> Outcome<Delivered> {
        let mut connection = lite::open(&Sqlite::client_url(&pool.connect_options()))?;
        let transaction = connection.transaction()?;
        let follower = ordid_rusqlite::Follower::<PlainEvent>::settled_after(longest);
        delivered!(follower.next(&transaction, &position.parse()?, most)?)
    }
}

/// mysql_async.
pub struct MysqlAsync;

impl Follows for MysqlAsync {
    type Database = MySql;

    const PREFIX: &'static str = mysql::PREFIX;

    async fn settled(
        pool: &Pool<MySql>,
        longest: Duration,
        position: &str,
        most: u32,
    ) -> Outcome<Delivered> {
        let url = MySql::client_url(&pool.connect_options());
        let mut conn = Conn::new(mysql::options(&url)?).await?;
        let mut transaction = conn.start_transaction(TxOpts::default()).await?;
        let follower = ordid_mysql_async::Follower::<PlainEvent>::settled_after(longest);
        let position = position.parse()?;
        delivered!(follower.next(&mut transaction, &position, most).await?)
    }
}

/// tokio-postgres.
pub struct TokioPostgres;

type TokioFollower = ordid_tokio_postgres::Follower<PlainEvent>;

impl Follows for TokioPostgres {
    type Database = Postgres;

    const PREFIX: &'static str = tokio::PREFIX;

    async fn settled(
        pool: &Pool<Postgres>,
        longest: Duration,
        position: &str,
        most: u32,
    ) -> Outcome<Delivered> {
        let mut client = tokio::connect(&Postgres::client_url(&pool.connect_options())).await?;
        let transaction = client.transaction().await?;
        let follower = TokioFollower::settled_after(longest);
        delivered!(
            follower
                .next(&transaction, &position.parse()?, most)
                .await?
        )
    }
}

impl FollowsPostgres for TokioPostgres {
    fn create_sql() -> Vec<String> {
        TokioFollower::by_transaction().create_sql()
    }

    async fn committed(pool: &Pool<Postgres>, position: &str, most: u32) -> Outcome<Delivered> {
        let client = tokio::connect(&Postgres::client_url(&pool.connect_options())).await?;
        let follower = TokioFollower::by_transaction();
        delivered!(follower.next(&client, &position.parse()?, most).await?)
    }

    async fn now(pool: &Pool<Postgres>) -> Outcome<String> {
        let client = tokio::connect(&Postgres::client_url(&pool.connect_options())).await?;
        let follower = TokioFollower::by_transaction();
        Ok(follower.now(&client).await?.to_string())
    }

    fn partition_by_sql() -> String {
        use ordid_tokio_postgres::partitions::{Partitions, Period};

        Partitions::<PlainEvent>::new(Period::Day).partition_by_sql()
    }

    async fn partitions(pool: &Pool<Postgres>, count: u32) -> Outcome<[Vec<String>; 2]> {
        use ordid_tokio_postgres::partitions::{Partitions, Period};

        let client = tokio::connect(&Postgres::client_url(&pool.connect_options())).await?;
        let partitions = Partitions::<PlainEvent>::new(Period::Day);
        let created = partitions.create_next(&client, count).await?;
        let all = partitions.list(&client).await?;
        Ok([names(created), names(all)])
    }
}

/// The crate `postgres`.
pub struct PostgresCrate;

type BlockingFollower = ordid_tokio_postgres::BlockingFollower<PlainEvent>;

/// Calls this with a client, on a thread that may block.
async fn ask<T: Send + 'static>(
    pool: &Pool<Postgres>,
    call: impl FnOnce(&mut ::postgres::Client) -> Outcome<T> + Send + 'static,
) -> Outcome<T> {
    let url = Postgres::client_url(&pool.connect_options());
    let call = move |(): &mut ()| {
        let mut client = ::postgres::Client::connect(&url, ::postgres::NoTls)
            .map_err(|error| error.to_string())?;
        // An error of a test is no `Send`.
        call(&mut client).map_err(|error| error.to_string())
    };
    tokio::on_thread(&mut (), call).await.map_err(Into::into)
}

impl Follows for PostgresCrate {
    type Database = Postgres;

    const PREFIX: &'static str = tokio::BLOCKING;

    async fn settled(
        pool: &Pool<Postgres>,
        longest: Duration,
        position: &str,
        most: u32,
    ) -> Outcome<Delivered> {
        let position = position.parse()?;
        ask(pool, move |client| {
            let mut transaction = client.transaction()?;
            let follower = BlockingFollower::settled_after(longest);
            delivered!(follower.next(&mut transaction, &position, most)?)
        })
        .await
    }
}

impl FollowsPostgres for PostgresCrate {
    fn create_sql() -> Vec<String> {
        BlockingFollower::by_transaction().create_sql()
    }

    async fn committed(pool: &Pool<Postgres>, position: &str, most: u32) -> Outcome<Delivered> {
        let position = position.parse()?;
        ask(pool, move |client| {
            let follower = BlockingFollower::by_transaction();
            delivered!(follower.next(client, &position, most)?)
        })
        .await
    }

    async fn now(pool: &Pool<Postgres>) -> Outcome<String> {
        ask(pool, |client| {
            let follower = BlockingFollower::by_transaction();
            Ok(follower.now(client)?.to_string())
        })
        .await
    }

    fn partition_by_sql() -> String {
        use ordid_tokio_postgres::partitions::{BlockingPartitions, Period};

        BlockingPartitions::<PlainEvent>::new(Period::Day).partition_by_sql()
    }

    async fn partitions(pool: &Pool<Postgres>, count: u32) -> Outcome<[Vec<String>; 2]> {
        use ordid_tokio_postgres::partitions::{BlockingPartitions, Period};

        ask(pool, move |client| {
            let partitions = BlockingPartitions::<PlainEvent>::new(Period::Day);
            let created = partitions.create_next(&mut *client, count)?;
            let all = partitions.list(client)?;
            Ok([names(created), names(all)])
        })
        .await
    }
}
