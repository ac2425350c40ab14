//! A pool of PostgreSQL, and `ordid-sqlx` has the feature of SQLite.

type Pool = sqlx::PgPool;

include!("../sell.rs");
