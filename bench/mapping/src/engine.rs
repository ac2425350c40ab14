//! The same cases on each engine, whose executors SQLx knows as concrete types only.

use ordid::uuid::Uuid;
use ordid_sqlx::{Backend, MappingTable};
use sqlx::{Connection, MySql, Postgres, query_scalar, raw_sql};

use crate::Result;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Case {
    Batch,
    BatchThatTells,
    Insert,
    InsertOrGet,
    Function,
    FunctionWithLock,
    GetAgain,
    FunctionAgain,
}

impl Case {
    pub(crate) const ALL: [Self; 8] = [
        Self::Batch,
        Self::BatchThatTells,
        Self::Insert,
        Self::InsertOrGet,
        Self::Function,
        Self::FunctionWithLock,
        Self::GetAgain,
        Self::FunctionAgain,
    ];

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Batch => "insert_or_get_many",
            Self::BatchThatTells => "insert_many",
            Self::Insert => "insert, one by one",
            Self::InsertOrGet => "insert_or_get, one by one",
            Self::Function => "function, one by one",
            Self::FunctionWithLock => "function with its lock, one by one",
            Self::GetAgain => "insert_or_get of what is there, one by one",
            Self::FunctionAgain => "function of what is there, one by one",
        }
    }

    pub(crate) const fn is_batch(self) -> bool {
        matches!(self, Self::Batch | Self::BatchThatTells)
    }

    /// Whether the UUIDs are there before they are mapped.
    pub(crate) const fn is_again(self) -> bool {
        matches!(self, Self::GetAgain | Self::FunctionAgain)
    }

    /// What maps them before.
    pub(crate) const fn first(self) -> Self {
        match self {
            Self::FunctionAgain => Self::Function,
            _ => Self::Batch,
        }
    }

    const fn is_function(self) -> bool {
        matches!(
            self,
            Self::Function | Self::FunctionWithLock | Self::FunctionAgain
        )
    }
}

/// The table of the functions.
const THEIRS: &str = "uuid_to_id";
const OURS: &str = "ordid_ids";

pub(crate) trait Engine: Backend<Connection: Connection<Database = Self>> {
    /// Makes the tables and functions anew.
    async fn create(connection: &mut Self::Connection) -> Result<()>;

    async fn remove(connection: &mut Self::Connection) -> Result<()>;

    async fn map(connection: &mut Self::Connection, case: Case, uuids: &[Uuid]) -> Result<()>;

    /// Counts the rows of the table that a case fills.
    async fn count(connection: &mut Self::Connection, case: Case) -> Result<i64>;

    async fn version(connection: &mut Self::Connection) -> Result<String>;
}

/// Each engine's own SQL: its version, the calls of the functions, what removes and what makes everything.
macro_rules! engine {
    ($database:ident, $version:literal, $call:literal, $locked:literal, $drop:literal, [$($create:expr),+]) => {
        impl Engine for $database {
            async fn create(connection: &mut Self::Connection) -> Result<()> {
                Self::remove(connection).await?;
                $(raw_sql($create).execute(&mut *connection).await?;)+
                let table = MappingTable::<Self>::new(OURS)?;
                Ok(table.create(connection).await?)
            }

            async fn remove(connection: &mut Self::Connection) -> Result<()> {
                for sql in $drop.split(';') {
                    raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut *connection).await?;
                }
                Ok(())
            }

            async fn map(
                connection: &mut Self::Connection,
                case: Case,
                uuids: &[Uuid],
            ) -> Result<()> {
                let table = MappingTable::<Self>::new(OURS)?;
                match case {
                    Case::Batch => {
                        table.insert_or_get_many(connection, uuids).await?;
                    }
                    Case::BatchThatTells => {
                        table.insert_many(connection, uuids).await?;
                    }
                    Case::Insert => {
                        for uuid in uuids {
                            table.insert(&mut *connection, *uuid).await?;
                        }
                    }
                    Case::InsertOrGet | Case::GetAgain => {
                        for uuid in uuids {
                            table.insert_or_get(&mut *connection, *uuid).await?;
                        }
                    }
                    Case::Function | Case::FunctionAgain | Case::FunctionWithLock => {
                        let call = if case == Case::FunctionWithLock { $locked } else { $call };
                        for uuid in uuids {
                            let id: i64 = query_scalar(call)
                                .bind(uuid.to_string())
                                .fetch_one(&mut *connection)
                                .await?;
                            std::hint::black_box(id);
                        }
                    }
                }
                Ok(())
            }

            async fn count(connection: &mut Self::Connection, case: Case) -> Result<i64> {
                let table = if case.is_function() { THEIRS } else { OURS };
                let sql = format!("SELECT COUNT(*) FROM {table}");
                Ok(query_scalar(sqlx::AssertSqlSafe(sql)).fetch_one(connection).await?)
            }

            async fn version(connection: &mut Self::Connection) -> Result<String> {
                Ok(query_scalar($version).fetch_one(connection).await?)
            }
        }
    };
}

engine!(
    MySql,
    "SELECT CAST(CONCAT(VERSION(), ', flush log at commit ', @@innodb_flush_log_at_trx_commit) AS CHAR)",
    "SELECT CAST(ordid_bench.f_uuid_to_id(?) AS SIGNED)",
    "SELECT CAST(ordid_bench.f_uuid_to_id_locked(?) AS SIGNED)",
    "CREATE DATABASE IF NOT EXISTS ordid_bench;USE ordid_bench;DROP FUNCTION IF EXISTS f_uuid_to_id;\
     DROP FUNCTION IF EXISTS f_uuid_to_id_locked;DROP TABLE IF EXISTS uuid_to_id;\
     DROP TABLE IF EXISTS ordid_ids",
    [
        "CREATE TABLE uuid_to_id (
            id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
            uuid VARCHAR(36) CHARACTER SET latin1 NOT NULL,
            uuid_hash INT UNSIGNED GENERATED ALWAYS AS (CRC32(uuid)) STORED,
            KEY (uuid_hash)
        )",
        "CREATE FUNCTION f_uuid_to_id(wanted VARCHAR(36) CHARACTER SET latin1)
        RETURNS INT UNSIGNED MODIFIES SQL DATA
        BEGIN
            DECLARE found INT UNSIGNED;
            SELECT id INTO found FROM uuid_to_id WHERE uuid_hash = CRC32(wanted) AND uuid = wanted;
            IF found IS NULL THEN
                INSERT INTO uuid_to_id (uuid) VALUES (wanted);
                SET found = LAST_INSERT_ID();
            END IF;
            RETURN found;
        END",
        "CREATE FUNCTION f_uuid_to_id_locked(wanted VARCHAR(36) CHARACTER SET latin1)
        RETURNS INT UNSIGNED MODIFIES SQL DATA
        BEGIN
            DECLARE found, locked INT UNSIGNED;
            SELECT GET_LOCK('uuid_to_id', 10) INTO locked;
            SELECT id INTO found FROM uuid_to_id WHERE uuid_hash = CRC32(wanted) AND uuid = wanted;
            IF found IS NULL THEN
                INSERT INTO uuid_to_id (uuid) VALUES (wanted);
                SET found = LAST_INSERT_ID();
            END IF;
            SELECT RELEASE_LOCK('uuid_to_id') INTO locked;
            RETURN found;
        END"
    ]
);

engine!(
    Postgres,
    "SELECT split_part(version(), ' on ', 1) || ', fsync ' || current_setting('fsync')",
    "SELECT f_uuid_to_id($1)",
    "SELECT f_uuid_to_id_locked($1)",
    "DROP FUNCTION IF EXISTS f_uuid_to_id;DROP FUNCTION IF EXISTS f_uuid_to_id_locked;\
     DROP TABLE IF EXISTS uuid_to_id;DROP TABLE IF EXISTS ordid_ids",
    [
        "CREATE TABLE uuid_to_id (
            id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            uuid text COLLATE \"C\" NOT NULL,
            uuid_hash int GENERATED ALWAYS AS (hashtext(uuid)) STORED
        );
        CREATE INDEX ON uuid_to_id (uuid_hash)",
        "CREATE FUNCTION f_uuid_to_id(wanted text) RETURNS bigint LANGUAGE plpgsql AS $$
        DECLARE
            found_id bigint;
        BEGIN
            SELECT id INTO found_id FROM uuid_to_id
                WHERE uuid_hash = hashtext(wanted) AND uuid = wanted;
            IF found_id IS NULL THEN
                INSERT INTO uuid_to_id (uuid) VALUES (wanted) RETURNING id INTO found_id;
            END IF;
            RETURN found_id;
        END $$",
        "CREATE FUNCTION f_uuid_to_id_locked(wanted text) RETURNS bigint LANGUAGE plpgsql AS $$
        BEGIN
            PERFORM pg_advisory_xact_lock(1);
            RETURN f_uuid_to_id(wanted);
        END $$"
    ]
);
