//! SQLite: keys are `BLOB`.

use diesel_migrations::{EmbeddedMigrations, embed_migrations};

use self::queries::Pooled;
use crate::error::Error;

#[path = "queries.rs"]
#[allow(clippy::duplicate_mod, reason = "for each database")]
mod queries;

type Connection = diesel::SqliteConnection;
type Key = diesel::sql_types::Binary;

const MIGRATIONS: EmbeddedMigrations = embed_migrations!("migrations/sqlite");
#[cfg(test)]
const UP: &str = include_str!("../../migrations/sqlite/2026-11-01-000000_shop/up.sql");
#[cfg(test)]
const UP_FLUSHES: &str =
    include_str!("../../migrations/sqlite/2026-11-01-000001_ordid_flushes/up.sql");

/// What each connection has to be told: foreign keys are not looked at otherwise, and who finds the
/// file locked is to wait.
const SETTINGS: &str = "PRAGMA busy_timeout = 5000;
                        PRAGMA journal_mode = WAL;
                        PRAGMA synchronous = NORMAL;
                        PRAGMA foreign_keys = ON";

/// Opens a file, or makes it.
pub(super) fn open(file: &str) -> Result<Pooled, Error> {
    Pooled::open(file, 4, SETTINGS, MIGRATIONS)
}
