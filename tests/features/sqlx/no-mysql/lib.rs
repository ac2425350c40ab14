//! Takes a pool of MySQL, but `ordid-sqlx` has only the feature of SQLite.

type Pool = sqlx::MySqlPool;

include!("../sell.rs");
