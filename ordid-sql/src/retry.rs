//! How often a flush is tried, and how long it waits in between.

use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBuilder};

/// How often a flush is tried, and how long it waits before it is tried again: each time twice as long
/// as the time before, up to a longest delay. With [jitter](Self::with_jitter), each delay may be twice as long.
///
/// A flush is tried again if it may succeed another time: see [`Failure`](crate::Failure).
///
/// # Example
///
/// ```
/// use std::time::Duration;
///
/// use ordid_sql::Retry;
///
/// // A lock timeout of the database's own may pass each time.
/// let patient = Retry::DEFAULT
///     .with_attempts(10)
///     .with_delays(Duration::from_millis(200), Duration::from_secs(5));
/// assert_ne!(patient, Retry::DEFAULT);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    attempts: u32,
    first: Duration,
    longest: Duration,
    jitter: bool,
}

impl Retry {
    /// Five attempts with jitter. Without the jitter, they wait 50, 100, 200 and 400 ms; no delay would be longer than 2 s if
    /// there were more attempts.
    pub const DEFAULT: Self = Self {
        attempts: 5,
        first: Duration::from_millis(50),
        longest: Duration::from_secs(2),
        jitter: true,
    };

    /// One attempt: what fails has failed. Where the answer to COMMIT was lost, the database is still
    /// asked once.
    pub const NONE: Self = Self {
        attempts: 1,
        first: Duration::ZERO,
        longest: Duration::ZERO,
        jitter: false,
    };

    /// Returns these settings with another number of attempts, the first included; 0 counts as 1.
    #[must_use]
    pub const fn with_attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts;
        self
    }

    /// Returns these settings with other delays, without the jitter: before the second attempt, and at most before each of
    /// the others.
    #[must_use]
    pub const fn with_delays(mut self, first: Duration, longest: Duration) -> Self {
        self.first = first;
        self.longest = longest;
        self
    }

    /// Returns these settings with or without jitter: a random part of each delay, up to all of it,
    /// is added to it, so that those who were in each other's way do not meet again.
    #[must_use]
    pub const fn with_jitter(mut self, jitter: bool) -> Self {
        self.jitter = jitter;
        self
    }

    /// Returns how long to wait after this many failures; `None` where there is no attempt left. For
    /// adapters.
    #[doc(hidden)]
    pub fn delay(&self, failures: u32) -> Option<Duration> {
        let last = usize::try_from(self.attempts.saturating_sub(1)).unwrap_or(usize::MAX);
        let delays = ExponentialBuilder::new()
            .with_min_delay(self.first.min(self.longest))
            .with_max_delay(self.longest)
            .with_max_times(last);
        let delays = if self.jitter {
            delays.with_jitter()
        } else {
            delays
        };
        let failed = usize::try_from(failures).unwrap_or(usize::MAX);
        delays.build().nth(failed.checked_sub(1)?)
    }
}

impl Default for Retry {
    fn default() -> Self {
        Self::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delays(retry: Retry) -> Vec<u128> {
        (1..)
            .map_while(|failures| retry.delay(failures))
            .map(|delay| delay.as_millis())
            .collect()
    }

    #[test]
    fn delays_double_up_to_the_longest() {
        let retry = Retry::DEFAULT.with_jitter(false);
        assert_eq!(delays(retry), [50, 100, 200, 400]);
        let retry = retry
            .with_attempts(6)
            .with_delays(Duration::from_millis(300), Duration::from_secs(1));
        assert_eq!(delays(retry), [300, 600, 1_000, 1_000, 1_000]);
        // A first delay above the longest is none.
        let retry = retry.with_delays(Duration::from_secs(9), Duration::from_millis(10));
        assert_eq!(delays(retry), [10; 5]);
    }

    #[test]
    fn one_attempt_waits_for_nothing() {
        assert_eq!(delays(Retry::NONE), [0; 0]);
        assert_eq!(delays(Retry::DEFAULT.with_attempts(0)), [0; 0]);
    }

    #[test]
    fn jitter_adds_up_to_the_delay_itself() {
        for _ in 0..100 {
            for (delay, least) in delays(Retry::DEFAULT).into_iter().zip([50, 100, 200, 400]) {
                assert!((least..=2 * least).contains(&delay), "{delay}");
            }
        }
    }
}
