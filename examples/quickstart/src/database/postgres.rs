//! PostgreSQL.

use sqlx::{PgConnection, Postgres};

use super::{Database, Options, Server, Size, Types, key_type, through_sqlx};
use crate::error::Error;

/// What an entry of a leaf page takes: a line pointer, a tuple header, a `uuid`.
const ENTRY: u64 = 4 + 8 + 16;

impl Database for Postgres {
    const TYPES: Types = Types {
        key: key_type::<Postgres>(),
        code: "text",
        text: "text",
        degrees: "double precision",
        options: "",
    };
    const ROLLS_BACK_TABLES: bool = true;

    async fn describe(connection: &mut PgConnection) -> Result<String, sqlx::Error> {
        let version: String = sqlx::query_scalar("SHOW server_version")
            .fetch_one(connection)
            .await?;
        Ok(format!(
            "PostgreSQL {}",
            version.split(' ').next().unwrap_or_default()
        ))
    }

    async fn taken(connection: &mut PgConnection) -> Result<Vec<String>, sqlx::Error> {
        // Tables, views, indexes and sequences share their names; new ones go to this schema.
        sqlx::query_scalar(
            "SELECT relname::text FROM pg_catalog.pg_class AS class
             JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = class.relnamespace
             WHERE nspname = current_schema()",
        )
        .fetch_all(connection)
        .await
    }

    async fn size(
        connection: &mut PgConnection,
        table: &str,
        rows: u64,
    ) -> Result<Size, sqlx::Error> {
        let (bytes, tree): (i64, i64) = sqlx::query_as(
            "SELECT pg_total_relation_size(indrelid), pg_relation_size(indexrelid)
             FROM pg_catalog.pg_index WHERE indrelid = $1::text::regclass AND indisprimary",
        )
        .bind(table)
        .fetch_one(connection)
        .await?;
        Ok(Size {
            bytes: bytes.unsigned_abs(),
            tree_bytes: tree.unsigned_abs(),
            tree_filled: rows * ENTRY,
            tree: "the primary key's index, 28 bytes an entry; to the heap all keys are alike",
        })
    }

    through_sqlx!();
}

impl Server for Postgres {
    fn name(options: &Options<Self>) -> Result<String, Error> {
        let database = options.get_database().unwrap_or(options.get_username());
        Ok(match options.get_socket() {
            Some(socket) => format!("PostgreSQL at {}, database {database}", socket.display()),
            None => {
                format!(
                    "postgres://{}:{}/{database}",
                    options.get_host(),
                    options.get_port()
                )
            }
        })
    }
}
