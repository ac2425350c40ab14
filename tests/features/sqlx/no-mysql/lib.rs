//! A pool of MySQL, and `ordid-sqlx` has the feature of SQLite.

type Pool = sqlx::MySqlPool;

include!("../sell.rs");
