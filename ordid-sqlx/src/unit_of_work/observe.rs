//! What a flush did, told to `tracing` and `metrics` where their features are on. Keys and values are
//! never among it.

use std::time::Duration;

use ordid_core::unit_of_work::{Failure, Flushed};

use crate::backend::BoxFuture;

/// Runs a flush in a span of its own.
pub(super) fn in_span<'a, T: Send + 'a>(
    flush: BoxFuture<'a, T>,
    tables: usize,
    rows: usize,
) -> BoxFuture<'a, T> {
    #[cfg(feature = "tracing")]
    {
        use tracing::{Instrument as _, field::Empty, info_span};

        let span = info_span!(target: "ordid", "ordid.flush", tables, rows, retries = Empty);
        Box::pin(flush.instrument(span))
    }
    #[cfg(not(feature = "tracing"))]
    {
        let _ = (tables, rows);
        flush
    }
}

/// An attempt failed, and there will be another.
pub(super) fn retried(cause: Option<Failure>, delay: Duration) {
    let cause = cause.map_or("unknown", Failure::name);
    #[cfg(feature = "tracing")]
    tracing::warn!(
        target: "ordid",
        cause,
        delay_millis = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
        "the flush failed and is tried again"
    );
    #[cfg(feature = "metrics")]
    metrics::counter!("ordid_flush_retries_total", "cause" => cause).increment(1);
    let _ = (cause, delay);
}

/// The flush is over, after so many retries.
pub(super) fn over(retries: u32) {
    #[cfg(feature = "tracing")]
    tracing::Span::current().record("retries", retries);
    let _ = retries;
}

/// All rows are in the database.
pub(super) fn committed(flushed: &Flushed) {
    #[cfg(feature = "metrics")]
    {
        let rows = flushed.rows() + flushed.updated() + flushed.deleted();
        // As a float, which is exact far beyond what memory holds.
        let rows = u32::try_from(rows).unwrap_or(u32::MAX);
        metrics::histogram!("ordid_flush_rows").record(rows);
    }
    let _ = flushed;
}

/// What became of the rows is not known.
pub(super) fn unknown() {
    #[cfg(feature = "tracing")]
    tracing::warn!(target: "ordid", "the answer to COMMIT was lost, and the database could not be asked");
}
