//! PostgreSQL: keys are `uuid`.

use diesel_migrations::{EmbeddedMigrations, embed_migrations};

use self::queries::Pooled;
use crate::error::Error;

#[path = "queries.rs"]
#[allow(clippy::duplicate_mod, reason = "for each database")]
mod queries;

type Connection = diesel::PgConnection;
type Key = diesel::sql_types::Uuid;

const MIGRATIONS: EmbeddedMigrations = embed_migrations!("migrations/postgres");
#[cfg(test)]
const UP: &str = include_str!("../../migrations/postgres/2026-11-01-000000_shop/up.sql");
#[cfg(test)]
const UP_FLUSHES: &str =
    include_str!("../../migrations/postgres/2026-11-01-000001_ordid_flushes/up.sql");

/// What each connection is told: nobody waits for a lock for ever.
const SETTINGS: &str = "SET lock_timeout = '5s'";

/// Connects to a server.
pub(super) fn open(url: &str) -> Result<Pooled, Error> {
    Pooled::open(url, 8, SETTINGS, MIGRATIONS)
}
