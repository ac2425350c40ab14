//! What a flush did, told to `tracing` and `metrics` where their features are on. Keys and values are
//! never among it. For adapters.

use std::time::Duration;

use crate::{EngineProfile, Failure, FlushError, Flushed};

/// The span of a flush.
#[derive(Debug, Clone)]
pub struct Span {
    #[cfg(feature = "tracing")]
    span: tracing::Span,
}

impl Span {
    /// Makes the span of a flush of so many rows, of so many tables.
    pub fn new(tables: usize, rows: usize) -> Self {
        let _ = (tables, rows);
        Self {
            #[cfg(feature = "tracing")]
            span: tracing::info_span!(
                target: "ordid",
                "ordid.flush",
                tables,
                rows,
                retries = tracing::field::Empty,
                outcome = tracing::field::Empty
            ),
        }
    }

    /// Runs a flush in it, and tells how it ended.
    pub async fn over<D>(
        self,
        flush: impl Future<Output = Result<Flushed, FlushError<D>>>,
    ) -> Result<Flushed, FlushError<D>> {
        let flushed = self.around(flush).await;
        self.ended(&flushed);
        flushed
    }

    fn around<F: Future>(&self, flush: F) -> impl Future<Output = F::Output> + use<F> {
        #[cfg(feature = "tracing")]
        let flush = InSpan {
            span: self.span.clone(),
            flush: Some(Box::pin(flush)),
        };
        flush
    }

    fn ended<D>(&self, outcome: &Result<Flushed, FlushError<D>>) {
        #[cfg(feature = "tracing")]
        {
            let (retries, outcome) = match outcome {
                Ok(flushed) => (flushed.retries, "ok"),
                Err(error) => (
                    error.retries(),
                    match error {
                        _ if error.is_commit_unknown() => "unknown",
                        _ if error.committed_chunks() > 0 => "some_chunks",
                        _ => "nothing",
                    },
                ),
            };
            tracing::record_all!(self.span, retries, outcome);
        }
        let _ = outcome;
    }
}

/// A future in a span. It ends within the poll that completes it, so that a flush whose calls block enters its span
/// once; what is dropped before that ends in the span, too.
#[cfg(feature = "tracing")]
struct InSpan<F> {
    span: tracing::Span,
    /// `None` once it has ended.
    flush: Option<std::pin::Pin<Box<F>>>,
}

#[cfg(feature = "tracing")]
impl<F: Future> Future for InSpan<F> {
    type Output = F::Output;

    fn poll(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<F::Output> {
        let this = &mut *self;
        let Some(flush) = &mut this.flush else {
            return std::task::Poll::Pending;
        };
        let _entered = this.span.enter();
        let outcome = flush.as_mut().poll(context);
        if outcome.is_ready() {
            this.flush = None;
        }
        outcome
    }
}

#[cfg(feature = "tracing")]
impl<F> Drop for InSpan<F> {
    fn drop(&mut self) {
        if self.flush.is_some() {
            let _entered = self.span.enter();
            self.flush = None;
        }
    }
}

/// Warns once for each engine and table that all of its inserts go to one range of the engine's.
pub fn hot_spot(table: &'static str, engine: &EngineProfile) {
    #[cfg(feature = "tracing")]
    {
        use std::{
            collections::BTreeSet,
            sync::{Mutex, PoisonError},
        };

        static TOLD: Mutex<BTreeSet<[&str; 2]>> = Mutex::new(BTreeSet::new());
        let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
        if told.insert([engine.name, table]) {
            tracing::warn!(
                target: "ordid",
                table,
                engine = engine.name,
                guide = engine.guide,
                "keys that rise put all inserts on one range: take a spread key"
            );
        }
    }
    let _ = (table, engine);
}

/// Tells that an attempt failed, and that there will be another.
pub fn retried(cause: Option<Failure>, delay: Duration) {
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

/// Tells that all rows are in the database.
pub fn committed(flushed: &Flushed) {
    #[cfg(feature = "metrics")]
    {
        let rows = flushed.rows() + flushed.updated() + flushed.deleted();
        // As a float, which is exact far beyond what memory holds.
        let rows = u32::try_from(rows).unwrap_or(u32::MAX);
        metrics::histogram!("ordid_flush_rows").record(rows);
        metrics::histogram!("ordid_flush_seconds").record(flushed.elapsed);
    }
    let _ = flushed;
}

/// Tells that it is not known what became of the rows.
pub fn unknown() {
    #[cfg(feature = "tracing")]
    tracing::warn!(target: "ordid", "the answer to COMMIT was lost, and the database could not be asked");
    failed("unknown");
}

/// Tells that a flush has failed, and that nothing was written.
pub fn nothing() {
    failed("nothing");
}

/// Tells that a flush in chunks has failed, and that those before are written.
pub fn some_chunks() {
    failed("some_chunks");
}

fn failed(wrote: &'static str) {
    #[cfg(feature = "metrics")]
    metrics::counter!("ordid_flush_failures_total", "wrote" => wrote).increment(1);
    let _ = wrote;
}
