//! The row that a flush is known by after the answer to its COMMIT was lost.
//!
//! A flush that does not only insert first writes a marker row into `ordid_flushes`, under one key for all its
//! attempts. If that row is there, the flush was committed. A flush that only inserts needs no marker row, since the
//! key of one of its rows shows the same. It writes one only if it is asked to, if the database would take the same rows
//! twice, or if others may write the same keys (`executor/protected.rs`).

use std::time::Duration;

use ordid_core::{
    clock::{Clock, SystemClock, Timestamp},
    scheme::{TimeOrdered as _, UuidV7},
    uuid::Uuid,
};

use crate::{
    DriverError, FlushError,
    spi::{
        Begin, ConnectionSource, ErrorOf, FlushConnection, FlushTransaction, RowBinder,
        StatementKind, TransactionScope,
    },
    text::Writer,
};

/// The table of marker rows.
pub const MARKER_TABLE: &str = "ordid_flushes";

/// The flushes that write a marker row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Markers {
    /// No flush: the database has no table for them.
    None,
    /// Flushes with updates, upserts or deletes write one, and so do flushes whose rows the database would take twice.
    #[default]
    Changes,
    /// All.
    All,
}

/// Writes a marker row. Returns whether the database has kept it: a trigger, a rule or a view of the table may leave it out.
pub(crate) async fn insert<T: FlushTransaction>(
    open: &mut T,
    writer: Writer<'_>,
    id: Uuid,
) -> Result<bool, DriverError<T::Error>> {
    let marker = writer.marker(StatementKind::Insert);
    let inserted = open.execute(&marker, T::Binder::of_marker(id)).await;
    let changed = inserted.map_err(|failed| failed.error)?;
    Ok(changed.total() == 1 || !writer.engine.counts_inserts)
}

/// How old a marker row has to be before it is deleted.
pub const MARKERS_KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// Until which age of a flush its marker rows tell what became of it. The rest of the day is a margin: for clocks that
/// differ, and for what takes its time between the look at its age and the COMMIT. Without it, `remove_old_markers` could
/// remove the marker row of a flush just before it is looked for, the fence of a recovery just before the flush commits, or
/// the decision of a two-phase commit just before a recovery looks for it.
const TELLS: Duration = Duration::from_secs(12 * 60 * 60);

/// How many marker rows one transaction deletes. Aurora DSQL takes 3,000 rows, and other clusters have limits of bytes.
const AT_ONCE: u64 = 1_000;

/// Deletes the marker rows that are more than a day old, and returns how many there were. For adapters.
///
/// # Errors
///
/// The library's, in the place where it occurred.
#[expect(
    clippy::manual_async_fn,
    reason = "it is found to be `Send` here, for any source, as a flush is"
)]
pub fn remove_old_markers<S: ConnectionSource>(
    mut source: S,
) -> impl Future<Output = Result<u64, FlushError<ErrorOf<S::Connection>>>> + Send + use<S> {
    async move {
        let engine = source.engine();
        let writer = Writer::of::<Binder<S>>(&engine);
        let statement = writer.old_markers(AT_ONCE);
        let first_kept = first_marker_since(MARKERS_KEPT, SystemClock.now());
        let (connection, _) = source.get(false).await?;
        let scope = connection.check(TransactionScope::Transaction).await?;
        let mut removed = 0;
        loop {
            let mut open = connection.begin(Begin::of(scope, &engine)).await?;
            let values = Binder::<S>::of_marker(first_kept);
            let changed = open.execute(&statement, values).await.map_err(|failed| {
                FlushError::removal(S::Connection::ADAPTER, &engine, failed.error)
            })?;
            open.commit().await.map_err(FlushError::commit)?;
            let rows = changed.total();
            removed += rows;
            if rows < AT_ONCE {
                return Ok(removed);
            }
        }
    }
}

type Binder<S> = <<S as ConnectionSource>::Connection as FlushConnection>::Binder;

/// Returns whether a marker row with this key is committed.
pub(crate) async fn exists<T: FlushTransaction>(
    open: &mut T,
    writer: Writer<'_>,
    id: Uuid,
) -> Result<bool, DriverError<T::Error>> {
    let marker = writer.marker(StatementKind::Exists);
    open.exists(&marker, T::Binder::of_marker(id)).await
}

/// Returns the lowest key of a marker row that is no older than this. The program that made the key read its own clock.
pub fn first_marker_since(age: Duration, now: Timestamp) -> Uuid {
    let age = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
    let millis = now.as_unix_millis().saturating_sub(age);
    let since = Timestamp::saturating_from_unix_millis(millis);
    UuidV7::bounds_at(since).map_or(Uuid::nil(), |(first, _)| first)
}

/// Returns whether the marker rows of a flush are so old that somebody may have deleted them. Then a missing one says
/// nothing, and they do not decide a two-phase commit any more.
pub(crate) fn may_be_removed(id: Uuid) -> bool {
    id < first_marker_since(TELLS, SystemClock.now())
}

#[cfg(test)]
mod tests {
    use ordid_core::KeyType as _;

    use super::*;

    #[test]
    fn a_marker_row_of_today_is_not_removed() {
        assert!(!may_be_removed(Uuid::generate()));
        // Before a program whose clock is some hours ahead removes it.
        let hours =
            |age: u64| first_marker_since(Duration::from_secs(age * 60 * 60), SystemClock.now());
        assert!(may_be_removed(hours(13)) && !may_be_removed(hours(11)));
        assert!(may_be_removed(Uuid::nil()));
    }

    /// Each age in milliseconds, and whether the row is kept.
    #[test]
    fn marker_rows_are_kept_for_a_day() {
        const DAY: u64 = 24 * 60 * 60 * 1_000;
        const NOW: u64 = 1_763_000_000_000;
        let first = first_marker_since(MARKERS_KEPT, Timestamp::saturating_from_unix_millis(NOW));
        for (age, is_kept) in [(0, true), (DAY, true), (DAY + 1, false), (30 * DAY, false)] {
            let made = Timestamp::saturating_from_unix_millis(NOW - age);
            let (lowest, highest) = UuidV7::bounds_at(made).unwrap();
            assert_eq!(
                [lowest >= first, highest >= first],
                [is_kept; 2],
                "{age} ms"
            );
        }
        let of_1970 = Timestamp::saturating_from_unix_millis(0);
        assert_eq!(
            first_marker_since(MARKERS_KEPT, of_1970),
            UuidV7::bounds_at(of_1970).unwrap().0
        );
    }
}
