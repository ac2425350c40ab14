//! Bounds how long the statements of a transaction wait for locks.
//!
//! While a COMMIT is unresolved, the older transaction may hold the keys for hours, behind a network that drops packets.
//! So every attempt in doubt sets a bound where the server has one, and the flush ends as unknown. A library whose calls
//! block cannot give a statement up: there the bound also keeps the flush's deadline. It is a bound on each wait, so a flush
//! that begins a wait just before its deadline ends after it, by one wait at most.

use std::time::Duration;

use crate::{
    DriverError, EngineProfile,
    spi::{FlushTransaction, Statement},
};

/// How long an attempt waits for a lock while a COMMIT is unresolved.
pub(crate) const IN_DOUBT: Duration = Duration::from_secs(10);

/// How the time is bounded that the statements of a transaction wait for locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LockWaits {
    /// Nothing is set: the server, the library or the session has a bound, or the engine has no such setting.
    AsSet,
    /// By `lock_timeout`, as PostgreSQL. It lasts for the transaction.
    LockTimeout,
    /// By `innodb_lock_wait_timeout` and, for tables that somebody has locked or alters, `lock_wait_timeout`, as MySQL and
    /// MariaDB. They have no value for a transaction alone (MySQL ignores both in the hint `SET_VAR`; only MariaDB has
    /// `SET STATEMENT .. FOR`), so the session gets its own values back before the transaction ends.
    InnodbLockWaitTimeout,
    /// By `SET LOCK_TIMEOUT`, as SQL Server, where a session waits without end unless it is told otherwise. It gets its own
    /// value back before the transaction ends.
    LockTimeoutOfSession,
}

/// Returns how long the statements of a transaction may wait for locks; `None` if they wait as the session is set.
pub(crate) fn limit(is_in_doubt: bool, left: Option<Duration>, blocks: bool) -> Option<Duration> {
    let in_doubt = is_in_doubt.then_some(IN_DOUBT);
    // A call that does not block is given up at the deadline.
    let left = left.filter(|_| blocks);
    in_doubt.into_iter().chain(left).min()
}

/// Bounds the waits of a transaction that was just begun. A shorter bound of the session stays. Returns the statement
/// that gives the session its own values back, which [`give_back`] sends, if there is one.
pub(crate) async fn bound<T: FlushTransaction>(
    open: &mut T,
    engine: &EngineProfile,
    within: Duration,
    values: impl Fn() -> T::Binder,
) -> Result<Option<Statement>, DriverError<T::Error>> {
    match engine.bounds_waits {
        LockWaits::AsSet => Ok(None),
        LockWaits::LockTimeout => {
            let bound = Statement::query(lock_timeout(within));
            open.set(&bound, values()).await?;
            Ok(None)
        }
        LockWaits::InnodbLockWaitTimeout => {
            let rows = open.read(&Statement::query(INNODB_WAITS), values()).await?;
            let found = rows.first().and_then(|row| innodb_waits(&row.text));
            let Some(found) = found else {
                return Ok(None);
            };
            let bound = found.map(|it| it.min(seconds(within)));
            if bound == found {
                return Ok(None);
            }
            let bound = Statement::query(set_innodb_waits(bound));
            open.set(&bound, values()).await?;
            Ok(Some(Statement::query(set_innodb_waits(found))))
        }
        LockWaits::LockTimeoutOfSession => {
            let rows = open
                .read(&Statement::query(OWN_LOCK_TIMEOUT), values())
                .await?;
            let found: Option<i64> = rows.first().and_then(|row| row.text.parse().ok());
            let bound = milliseconds(within);
            // -1: without end.
            let Some(found) = found.filter(|found| *found < 0 || *found > bound) else {
                return Ok(None);
            };
            let set = |milliseconds| Statement::query(format!("SET LOCK_TIMEOUT {milliseconds}"));
            open.set(&set(bound), values()).await?;
            Ok(Some(set(found)))
        }
    }
}

/// Gives the session its own values back, before the transaction ends. If this fails, the connection must not be used
/// again, and the transaction must not be committed: the server may have ended it, and says so only once. The COMMIT would
/// succeed then, and commit nothing.
pub(crate) async fn give_back<T: FlushTransaction>(
    open: &mut T,
    own: Option<&Statement>,
    values: impl Fn() -> T::Binder,
) -> Result<(), DriverError<T::Error>> {
    match own {
        Some(own) => open.set(own, values()).await,
        None => Ok(()),
    }
}

/// `setting` is in milliseconds. `current_setting` has the unit in its text on PostgreSQL, and none on CockroachDB.
fn lock_timeout(within: Duration) -> String {
    let milliseconds = milliseconds(within);
    format!(
        "SELECT pg_catalog.set_config('lock_timeout', '{milliseconds}ms', true) FROM pg_catalog.pg_settings \
         WHERE name = 'lock_timeout' AND (setting::bigint = 0 OR setting::bigint > {milliseconds})"
    )
}

/// The value is an `int`.
const OWN_LOCK_TIMEOUT: &str = "SELECT CAST(@@LOCK_TIMEOUT AS nvarchar(20))";

/// Never 0, which is no bound on PostgreSQL, and no wait on SQL Server.
fn milliseconds(within: Duration) -> i64 {
    within.as_millis().clamp(1, 1 << 30).try_into().unwrap_or(1)
}

/// Two numbers as one text.
const INNODB_WAITS: &str =
    "SELECT CONCAT(@@SESSION.innodb_lock_wait_timeout, ' ', @@SESSION.lock_wait_timeout)";

fn innodb_waits(text: &str) -> Option<[u64; 2]> {
    let (rows, tables) = text.split_once(' ')?;
    Some([rows.parse().ok()?, tables.parse().ok()?])
}

fn set_innodb_waits([rows, tables]: [u64; 2]) -> String {
    format!("SET SESSION innodb_lock_wait_timeout = {rows}, SESSION lock_wait_timeout = {tables}")
}

/// The servers count in seconds. MySQL takes none below 1, and for MariaDB 0 means not to wait.
fn seconds(within: Duration) -> u64 {
    within
        .as_millis()
        .div_ceil(1_000)
        .clamp(1, 1 << 20)
        .try_into()
        .unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn waits_are_bounded_in_doubt_and_by_the_deadline_of_calls_that_block() {
        assert_eq!(limit(false, None, true), None);
        assert_eq!(limit(false, Some(SECOND), false), None);
        assert_eq!(limit(false, Some(SECOND), true), Some(SECOND));
        assert_eq!(limit(true, None, false), Some(10 * SECOND));
        assert_eq!(limit(true, Some(SECOND), true), Some(SECOND));
        assert_eq!(limit(true, Some(60 * SECOND), true), Some(10 * SECOND));
        // 10 s and not 1 s, since a session whose flush is dropped may keep the bound.
        assert_eq!(limit(true, Some(SECOND), false), Some(10 * SECOND));
    }

    #[test]
    fn a_bound_is_never_zero_which_would_be_none() {
        assert_eq!(seconds(Duration::ZERO), 1);
        assert_eq!(seconds(SECOND), 1);
        assert_eq!(seconds(SECOND + Duration::from_millis(1)), 2);
        assert_eq!(seconds(Duration::MAX), 1 << 20);
        assert_eq!(milliseconds(Duration::ZERO), 1);
        assert_eq!(milliseconds(Duration::MAX), 1 << 30);
        assert!(lock_timeout(Duration::ZERO).contains("'1ms'"));
    }

    #[test]
    fn the_values_of_a_session_are_set_back() {
        let found = innodb_waits("50 86400");
        assert_eq!(
            found.map(set_innodb_waits).as_deref(),
            Some("SET SESSION innodb_lock_wait_timeout = 50, SESSION lock_wait_timeout = 86400")
        );
        assert_eq!(innodb_waits("50"), None);
    }
}
