//! Finds out whether a pooler gives each transaction another session of PostgreSQL.
//!
//! The commands need a session of their own: a session holds the lock that keeps two runs apart, and its settings. Behind
//! PgBouncer in `pool_mode = transaction` or `statement` both would go to whoever gets the session next. No pooler says
//! what it does, but its clients see it: two of them get one session in turn, or one of them gets several.

use std::time::Duration;

use sqlx::{Executor as _, PgConnection, Row as _};

use crate::failure::Failure;

/// How often it looks: a busy pooler may give a client the same session for some time.
const LOOKS: usize = 5;

/// How long the two connections may wait for sessions: a pooler makes clients wait for minutes.
const PATIENCE: Duration = Duration::from_secs(5);

/// The session in which a statement runs: its process, and the start of its server, as processes of two servers may have
/// the same number.
const SESSION: &str = "SELECT pg_backend_pid()::text || ' ' || pg_postmaster_start_time()::text";

/// Refuses two connections that do not have a session each. Nothing is set in them.
///
/// # Errors
///
/// They share sessions, do not get two, or are lost.
pub(crate) async fn refuse(
    one: &mut PgConnection,
    other: &mut PgConnection,
) -> Result<(), Failure> {
    let cannot = |error: sqlx::Error| {
        Failure::could_not(format_args!(
            "the database does not name its session: {error}"
        ))
    };
    let shares = tokio::time::timeout(PATIENCE, shares_sessions(one, other)).await;
    let shares = shares.map_err(|_| {
        Failure::could_not(format_args!(
            "two connections do not get a session each within {} s: a pooler at this address has too few (default_pool_size of \
             PgBouncer), or others have them; name the address of the server itself",
            PATIENCE.as_secs()
        ))
    })?;
    if shares.map_err(cannot)? {
        return Err(Failure::wrong(
            "the address is of a pooler that gives each transaction another session of PostgreSQL, such as PgBouncer with \
             pool_mode = transaction: locks and settings of a session would go to other programs; name the address of the \
             server itself, or of a pool with pool_mode = session",
        ));
    }
    Ok(())
}

async fn shares_sessions(one: &mut PgConnection, other: &mut PgConnection) -> sqlx::Result<bool> {
    let mine = session(one).await?;
    for _ in 0..LOOKS {
        // It takes the session that the first one has just let go, if that is shared.
        if let Err(error) = other.execute("BEGIN").await {
            return match error.as_database_error() {
                // PgBouncer with pool_mode = statement.
                Some(refusal) if refusal.message().contains("statement pooling") => Ok(true),
                _ => Err(error),
            };
        }
        let theirs = session(other).await?;
        // While the second one holds it, the first one gets another. If there is no other, it would wait for it.
        let is_shared = theirs == mine || session(one).await? != mine;
        other.execute("ROLLBACK").await?;
        if is_shared {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn session(connection: &mut PgConnection) -> sqlx::Result<String> {
    let row = connection.fetch_one(sqlx::raw_sql(SESSION)).await?;
    row.try_get_unchecked(0)
}
