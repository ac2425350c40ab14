//! The time by which a flush has to end.

use std::time::{Duration, Instant};

use ordid_core::clock::Delay;

use crate::FlushRun;

/// The time by which a flush has to end, if there is one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline(Option<(Instant, Duration)>);

impl Deadline {
    /// Begins to count. A time that no clock reaches is none.
    pub(super) fn new(within: Option<Duration>) -> Self {
        Self(within.and_then(|within| Some((Instant::now().checked_add(within)?, within))))
    }

    /// Returns how much time is left, if there is an end.
    pub(super) fn left(self) -> Option<Duration> {
        self.0
            .map(|(end, _)| end.saturating_duration_since(Instant::now()))
    }

    /// Returns whether the time is over.
    pub(super) fn is_over(self) -> bool {
        self.0.is_some_and(|(end, _)| Instant::now() >= end)
    }

    /// Ends the run if the time is over, and returns whether it is.
    pub(super) fn check<D>(self, run: &mut FlushRun<D>) -> bool {
        let is_over = self.is_over();
        if is_over {
            self.end(run);
        }
        is_over
    }

    /// Ends the run, as the time is over.
    pub(super) fn end<D>(self, run: &mut FlushRun<D>) {
        if let Some((_, within)) = self.0 {
            run.time_is_over(within);
        }
    }

    /// Returns a delay that ends no later.
    pub(super) fn shorten(self, delay: Duration) -> Duration {
        self.left().map_or(delay, |left| delay.min(left))
    }

    /// Awaits a future until then; `None` if it has not ended by then. A future that is ready when it is first polled
    /// always ends.
    pub(super) async fn bound<T>(self, future: impl Future<Output = T> + Send) -> Option<T> {
        match self.left() {
            Some(left) => Delay::within(left, future).await,
            None => Some(future.await),
        }
    }
}
