//! The traps of each engine, as `PLATFORM.md` numbers them: what goes wrong with plain SQL, and
//! that it does not with ordid's keys and declarations.
//!
//! What loses order at compile time is in `tests/ui`; what a wrong collation does is beside the
//! columns that it happens to.

mod mariadb;
mod postgres;
mod sqlite;

use libtest_mimic::Trial;
use ordid_tests::servers::Servers;

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    mariadb::trials(servers, trials);
    postgres::trials(servers, trials);
    sqlite::trials(trials);
}

/// Defines `one`, which reads one value, and `refused`, which returns an error's code and text.
macro_rules! ask {
    ($database:ident) => {
        async fn one<T>(pool: &sqlx::Pool<sqlx::$database>, sql: &str) -> Result<T, sqlx::Error>
        where
            T: for<'r> sqlx::Decode<'r, sqlx::$database>
                + sqlx::Type<sqlx::$database>
                + Send
                + Unpin,
        {
            sqlx::query_scalar(sqlx::AssertSqlSafe(sql))
                .fetch_one(pool)
                .await
        }

        async fn run(pool: &sqlx::Pool<sqlx::$database>, sql: &str) -> Result<(), sqlx::Error> {
            sqlx::raw_sql(sqlx::AssertSqlSafe(sql))
                .execute(pool)
                .await
                .map(drop)
        }

        /// Returns the error of a statement that must not succeed.
        async fn refused(
            pool: &sqlx::Pool<sqlx::$database>,
            sql: &str,
        ) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
            match run(pool, sql).await {
                Ok(()) => Err(format!("not refused: {sql}").into()),
                Err(error) => Ok(error.to_string()),
            }
        }
    };
}

use ask;
