//! The program of README.md without a feature of `ordid-sqlx`.

type Pool = sqlx::SqlitePool;

include!("../sell.rs");
