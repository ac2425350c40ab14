//! Takes a pool of SQLite, but `ordid-sqlx` has only the features of PostgreSQL and MySQL.

type Pool = sqlx::SqlitePool;

include!("../sell.rs");
