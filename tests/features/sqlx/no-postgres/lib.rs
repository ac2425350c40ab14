//! Takes a pool of PostgreSQL, but `ordid-sqlx` has only the feature of SQLite.

type Pool = sqlx::PgPool;

include!("../sell.rs");
