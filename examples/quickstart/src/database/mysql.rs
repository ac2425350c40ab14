//! MySQL and MariaDB.

use sqlx::{AssertSqlSafe, MySql, MySqlConnection};

use super::{Database, Options, Server, Size, Types, key_type, through_sqlx};
use crate::error::Error;

impl Database for MySql {
    const TYPES: Types = Types {
        key: key_type::<MySql>(),
        code: "VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin",
        text: "TEXT",
        degrees: "DOUBLE",
        options: "ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4",
    };
    const ROLLS_BACK_TABLES: bool = false;

    async fn describe(connection: &mut MySqlConnection) -> Result<String, sqlx::Error> {
        let version: String = sqlx::query_scalar("SELECT VERSION()")
            .fetch_one(connection)
            .await?;
        let product = if version.contains("MariaDB") {
            "MariaDB"
        } else {
            "MySQL"
        };
        Ok(format!(
            "{product} {}",
            version.split('-').next().unwrap_or_default()
        ))
    }

    async fn taken(connection: &mut MySqlConnection) -> Result<Vec<String>, sqlx::Error> {
        // Names are told apart by case on some systems only; ours are lower case.
        sqlx::query_scalar(
            "SELECT CONVERT(LOWER(table_name) USING utf8mb4) FROM information_schema.tables
             WHERE table_schema = DATABASE()",
        )
        .fetch_all(connection)
        .await
    }

    async fn size(
        connection: &mut MySqlConnection,
        table: &str,
        _rows: u64,
    ) -> Result<Size, sqlx::Error> {
        sqlx::raw_sql(AssertSqlSafe(format!("ANALYZE TABLE {table}")))
            .execute(&mut *connection)
            .await?;
        let (tree, others): (u64, u64) = sqlx::query_as(
            "SELECT CAST(data_length AS UNSIGNED), CAST(index_length AS UNSIGNED)
             FROM information_schema.tables
             WHERE table_schema = DATABASE() AND table_name = ?",
        )
        .bind(table)
        .fetch_one(&mut *connection)
        .await?;
        // A row as the format DYNAMIC lays it out: header 5, NULL flags of 9 columns 2, transaction
        // 6 and undo pointer 7, the keys, the whole numbers, and a length before each text.
        let filled: u64 = sqlx::query_scalar(AssertSqlSafe(format!(
            "SELECT CAST(COALESCE(SUM(
                5 + 2 + 6 + 7 + 16 * (2 + (plane_id IS NOT NULL) + (origin_id IS NOT NULL)
                    + (dest_id IS NOT NULL))
                + 2 * (9 + (dep_time IS NOT NULL) + (dep_delay IS NOT NULL)
                    + (arr_time IS NOT NULL) + (arr_delay IS NOT NULL) + (air_time IS NOT NULL))
                + 1 + LENGTH(carrier) + COALESCE(1 + LENGTH(tailnum), 0) + 1 + LENGTH(origin)
                + 1 + LENGTH(dest) + 1 + LENGTH(time_hour)
             ), 0) AS UNSIGNED) FROM {table}"
        )))
        .fetch_one(&mut *connection)
        .await?;
        let bytes = tree + others;
        // The tree's own pages, without those that are set aside for it. Not everybody may ask.
        let leaves: Result<u64, _> = sqlx::query_scalar(
            "SELECT CAST(stat_value * @@innodb_page_size AS UNSIGNED) FROM mysql.innodb_index_stats
             WHERE database_name = DATABASE() AND table_name = ? AND index_name = 'PRIMARY'
                 AND stat_name = 'n_leaf_pages'",
        )
        .bind(table)
        .fetch_one(connection)
        .await;
        Ok(match leaves {
            Ok(leaves) => Size {
                bytes,
                tree_bytes: leaves,
                tree_filled: filled,
                tree: "the leaf pages of the table, as ANALYZE TABLE counts them",
            },
            Err(_) => Size {
                bytes,
                tree_bytes: tree,
                tree_filled: filled,
                tree: "the table, with the empty pages that are set aside for it",
            },
        })
    }

    through_sqlx!();
}

impl Server for MySql {
    fn name(options: &Options<Self>) -> Result<String, Error> {
        let Some(database) = options.get_database() else {
            return Err(Error::new(
                "the URL of --database names no database: mysql://host/database",
            ));
        };
        Ok(match options.get_socket() {
            Some(socket) => format!("MySQL at {}, database {database}", socket.display()),
            None => format!(
                "mysql://{}:{}/{database}",
                options.get_host(),
                options.get_port()
            ),
        })
    }
}
