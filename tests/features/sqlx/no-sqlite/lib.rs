//! A pool of SQLite, and `ordid-sqlx` has the features of PostgreSQL and MySQL.

type Pool = sqlx::SqlitePool;

include!("../sell.rs");
