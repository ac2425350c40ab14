//! A generator whose keys keep rising over restarts.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use super::{Events, Generator, OrderedGenerator, Reserved, Slotted};
use crate::{
    clock::{Clock, Timestamp},
    entropy::{Entropy, Process, process},
    error::Error,
    high_water::HighWaterMark,
    key::Generated,
};

/// An [`OrderedGenerator`] whose keys stay above all keys of the earlier runs of this program, even if the clock
/// reads an earlier time now. It keeps a [`HighWaterMark`] ahead of its keys.
///
/// The generator raises the mark to `lead` ahead of the clock, before it returns the first key that needs this;
/// nearly all keys are only compared with the mark. The next run starts above the mark. Its first keys may be up to
/// `lead` ahead of the clock, so the policy must hold that gap. The gap does not add up, however often the process
/// crashes. Keys that are further ahead of the clock than `lead` cost a write for each of their milliseconds, until
/// the clock catches up. In the child of a fork, calls that have to raise the mark fail with
/// [`is_high_water`](Error::is_high_water), because the mark belongs to the parent.
///
/// If the policy follows a clock back ([`Rollback::HoldThenFollow`](super::Rollback)), the generator follows it
/// only down to the mark of the earlier runs. If the clock is below that mark, keys go on above the mark, as at the
/// start. If the clock is further below the mark than the policy holds, calls fail with an error that
/// [`is_clock`](Error::is_clock) until the gap is small enough. The generator may still follow the clock below keys
/// of the same run, as it does without a mark.
///
/// # Example
///
/// ```no_run
/// # fn mark() -> impl ordid_core::high_water::HighWaterMark + std::fmt::Debug {
/// #     #[derive(Debug)] struct M; use ordid_core::{Error, clock::Timestamp};
/// #     impl ordid_core::high_water::HighWaterMark for M {
/// #         fn load(&self) -> Result<Option<Timestamp>, Error> { Ok(None) }
/// #         fn raise(&self, _: Timestamp) -> Result<(), Error> { Ok(()) }
/// #     }
/// #     M
/// # }
/// use std::time::Duration;
/// use ordid_core::{
///     clock::SystemClock, entropy::ThreadEntropy,
///     generator::{Generator, Policy, WithHighWaterMark}, scheme::uuid_v7::UuidV7Generator,
/// };
///
/// let keys = UuidV7Generator::new(SystemClock, ThreadEntropy, Policy::DEFAULT);
/// // `mark()` may be `ordid_file::MarkFile::open("/var/lib/shop/keys.mark")?`.
/// let keys = WithHighWaterMark::new(keys, mark(), Duration::from_secs(2))?;
/// let key = keys.try_generate()?;
/// # Ok::<(), ordid_core::Error>(())
/// ```
#[derive(Debug)]
pub struct WithHighWaterMark<S: Slotted, C, E, M> {
    generator: OrderedGenerator<S, C, E>,
    mark: M,
    lead_millis: u64,
    /// The mark that the earlier runs left, if there were any.
    earlier: Option<Timestamp>,
    /// The durable mark, as far as this run has raised it; zero before that.
    raised: AtomicU64,
    raising: Mutex<()>,
    /// The process that may raise it.
    process: Process,
}

impl<S: Slotted, C: Clock, E: Entropy, M: HighWaterMark> WithHighWaterMark<S, C, E, M> {
    /// Starts above the mark that an earlier run left.
    ///
    /// `lead` is rounded down to milliseconds, and is at least one millisecond.
    ///
    /// # Errors
    ///
    /// If the mark cannot be read ([`is_high_water`](Error::is_high_water)), or is further ahead of the clock than
    /// the policy holds ([`is_clock`](Error::is_clock)): the clock is wrong now, or was wrong before. Otherwise as
    /// [`OrderedGenerator::start_after`].
    pub fn new(
        generator: OrderedGenerator<S, C, E>,
        mark: M,
        lead: Duration,
    ) -> Result<Self, Error> {
        let earlier = mark.load()?;
        if let Some(newest) = earlier {
            generator.start_after(newest)?;
        }
        Ok(Self {
            earlier,
            lead_millis: u64::try_from(lead.as_millis()).unwrap_or(u64::MAX).max(1),
            raised: AtomicU64::new(0),
            raising: Mutex::new(()),
            process: process(),
            generator,
            mark,
        })
    }

    /// Claims again, above the earlier runs, what was claimed at a time of theirs: the generator has followed the clock
    /// back below the mark.
    #[inline]
    fn above_earlier_runs<T>(
        &self,
        claim: impl Fn() -> Result<T, Error>,
        time_of: impl Fn(&T) -> Option<Timestamp>,
    ) -> Result<T, Error> {
        loop {
            let claimed = claim()?;
            match self.earlier {
                Some(earlier) if time_of(&claimed).is_some_and(|time| time <= earlier) => {
                    self.generator.start_after(earlier)?;
                }
                _ => return Ok(claimed),
            }
        }
    }

    /// Makes sure that the mark is at or above a key, before anybody sees the key.
    #[inline]
    fn cover(&self, raw: S::Raw) -> Result<Generated<S>, Error> {
        let millis = S::timestamp(&raw).map_or(0, Timestamp::as_unix_millis);
        if millis > self.raised.load(Ordering::Acquire) {
            self.raise(millis)?;
        }
        Ok(Generated::new(raw))
    }

    #[cold]
    fn raise(&self, millis: u64) -> Result<(), Error> {
        // Not the epoch, which may also rise without a fork.
        if process() != self.process {
            return Err(Error::high_water(
                "the process was forked: the high-water mark is the parent's; open one of your own",
            ));
        }
        let _raising = self.raising.lock().unwrap_or_else(PoisonError::into_inner);
        if millis > self.raised.load(Ordering::Acquire) {
            // The lead is ahead of the clock, and not of the key: a run after a crash begins ahead of the clock, and
            // would leave its mark another lead further ahead.
            let now = self.generator.clock().now().as_unix_millis();
            let mark = millis.max(now.saturating_add(self.lead_millis));
            let mark = Timestamp::saturating_from_unix_millis(mark);
            self.mark.raise(mark)?;
            self.raised.store(mark.as_unix_millis(), Ordering::Release);
        }
        Ok(())
    }
}

impl<S: Slotted, C: Clock, E: Entropy, M: HighWaterMark> Generator
    for WithHighWaterMark<S, C, E, M>
{
    type Scheme = S;
    type Reserved<'g>
        = ReservedBelowMark<'g, S, C, E, M>
    where
        Self: 'g;

    #[inline]
    fn try_generate(&self) -> Result<Generated<S>, Error> {
        let claim = || Ok(self.generator.try_generate()?.into_raw());
        self.cover(self.above_earlier_runs(claim, S::timestamp)?)
    }

    /// Makes a key for a given time. The mark does not apply, because the caller chooses the time.
    fn generate_at(&self, timestamp: Timestamp) -> Result<Generated<S>, Error> {
        self.generator.generate_at(timestamp)
    }

    fn try_fill_with(&self, count: usize, mut put: impl FnMut(Generated<S>)) -> Result<(), Error> {
        let mut left = count;
        while left > 0 {
            let piece = self.generator.piece(left);
            for key in self.reserve(piece)? {
                put(key?);
            }
            left -= piece;
        }
        Ok(())
    }

    fn reserve(&self, count: usize) -> Result<ReservedBelowMark<'_, S, C, E, M>, Error> {
        Ok(ReservedBelowMark {
            generator: self,
            keys: self.above_earlier_runs(|| self.generator.reserve(count), Reserved::time)?,
        })
    }

    fn events(&self) -> Events {
        self.generator.events()
    }
}

/// Keys that were claimed together. The iterator yields each one after the mark has been raised to its time or above.
#[derive(Debug)]
pub struct ReservedBelowMark<'g, S: Slotted, C, E, M> {
    generator: &'g WithHighWaterMark<S, C, E, M>,
    keys: Reserved<'g, S, C, E>,
}

impl<S: Slotted, C: Clock, E: Entropy, M: HighWaterMark> Iterator
    for ReservedBelowMark<'_, S, C, E, M>
{
    type Item = Result<Generated<S>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let key = self.keys.next()?;
        Some(key.and_then(|key| self.generator.cover(key.into_raw())))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.keys.size_hint()
    }
}

impl<S: Slotted, C: Clock, E: Entropy, M: HighWaterMark> ExactSizeIterator
    for ReservedBelowMark<'_, S, C, E, M>
{
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
