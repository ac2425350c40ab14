//! Finds out whether a pooler gives each transaction another session of PostgreSQL.
//!
//! The commands need a session of their own: a session holds the lock that keeps two runs apart, and its settings. Behind
//! PgBouncer in `pool_mode = transaction` or `statement` both would go to whoever gets the session next. No pooler says
//! what it does, but its clients see it: two of them get one session in turn, or one of them gets several.

use std::time::Duration;

use sqlx::{Executor as _, PgConnection, Row as _};

use crate::failure::{Failure, shown};

/// How often it looks: a busy pooler may give a client the same session for some time.
const LOOKS: usize = 5;

/// How long a statement may wait for a session: a pooler makes clients wait for minutes. It is a bound of each of them, as
/// the server may be far away.
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
            "the database does not name its session: {}",
            shown(&error)
        ))
    };
    let shares = shares_sessions(one, other).await.map_err(cannot)?;
    let Some(shares) = shares else {
        return Err(Failure::could_not(format_args!(
            "two connections do not get a session each within {} s: a pooler at this address has too few (default_pool_size of \
             PgBouncer), or others have them; name the address of the server itself",
            PATIENCE.as_secs()
        )));
    };
    if shares {
        return Err(Failure::wrong(
            "the address is of a pooler that gives each transaction another session of PostgreSQL, such as PgBouncer with \
             pool_mode = transaction: locks and settings of a session would go to other programs; name the address of the \
             server itself, or of a pool with pool_mode = session",
        ));
    }
    Ok(())
}

/// Returns whether they share sessions; `None` if one of them does not get any.
async fn shares_sessions(
    one: &mut PgConnection,
    other: &mut PgConnection,
) -> sqlx::Result<Option<bool>> {
    let Some(mine) = in_time(session(one)).await? else {
        return Ok(None);
    };
    for _ in 0..LOOKS {
        // It takes the session that the first one has just let go, if that is shared.
        match in_time(other.execute("BEGIN")).await {
            Ok(Some(_)) => (),
            Ok(None) => return Ok(None),
            Err(error) => {
                return match error.as_database_error() {
                    // PgBouncer with pool_mode = statement.
                    Some(refusal) if refusal.message().contains("statement pooling") => {
                        Ok(Some(true))
                    }
                    _ => Err(error),
                };
            }
        }
        let Some(theirs) = in_time(session(other)).await? else {
            return Ok(None);
        };
        // While the second one holds it, the first one gets another. If there is no other, it would wait for it.
        let is_shared = theirs == mine
            || match in_time(session(one)).await? {
                Some(now) => now != mine,
                None => return Ok(None),
            };
        if in_time(other.execute("ROLLBACK")).await?.is_none() {
            return Ok(None);
        }
        if is_shared {
            return Ok(Some(true));
        }
    }
    Ok(Some(false))
}

/// Returns `None` if a statement waits for too long.
async fn in_time<T>(statement: impl Future<Output = sqlx::Result<T>>) -> sqlx::Result<Option<T>> {
    match tokio::time::timeout(PATIENCE, statement).await {
        Ok(answer) => answer.map(Some),
        Err(_) => Ok(None),
    }
}

async fn session(connection: &mut PgConnection) -> sqlx::Result<String> {
    let row = connection.fetch_one(sqlx::raw_sql(SESSION)).await?;
    row.try_get_unchecked(0)
}
