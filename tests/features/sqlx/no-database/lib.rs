//! The program of README.md, and `ordid-sqlx` without a feature.

type Pool = sqlx::SqlitePool;

include!("../sell.rs");
