//! What a flush did, told to `tracing` and `metrics` where their features are on. Keys and values are
//! never among it.

use std::time::Duration;

use ordid_core::unit_of_work::{Failure, Flushed};

use crate::backend::BoxFuture;

/// The span of a flush.
#[derive(Debug, Clone)]
pub(super) struct Span {
    #[cfg(feature = "tracing")]
    span: tracing::Span,
}

impl Span {
    pub(super) fn new(tables: usize, rows: usize) -> Self {
        let _ = (tables, rows);
        Self {
            #[cfg(feature = "tracing")]
            span: tracing::info_span!(
                target: "ordid",
                "ordid.flush",
                tables,
                rows,
                retries = tracing::field::Empty
            ),
        }
    }

    /// Runs a flush in it.
    pub(super) fn around<'a, T: Send + 'a>(&self, flush: BoxFuture<'a, T>) -> BoxFuture<'a, T> {
        #[cfg(feature = "tracing")]
        let flush = Box::pin(tracing::Instrument::instrument(flush, self.span.clone()));
        flush
    }

    /// The flush is over, after so many retries.
    pub(super) fn over(&self, retries: u32) {
        let _ = retries;
        #[cfg(feature = "tracing")]
        self.span.record("retries", retries);
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
