//! Keys that were claimed together.

use core::fmt;

#[cfg(feature = "std")]
use super::slot_layout_of;
use super::{OrderedGenerator, Slotted};
use crate::{
    clock::Clock, entropy::Entropy, error::Error, generator::engine::Slots, key::Generated,
};
#[cfg(feature = "std")]
use crate::{
    clock::{SystemClock, Timestamp},
    entropy::ThreadEntropy,
};

/// Keys that were claimed together; the iterator yields them one by one. Keys that are not taken are never used.
pub struct Reserved<'g, S: Slotted, C, E> {
    pub(super) generator: &'g OrderedGenerator<S, C, E>,
    pub(super) slots: Option<Slots>,
    pub(super) left: usize,
    /// The keys themselves, where a test's generator made them.
    #[cfg(any(test, feature = "testing"))]
    pub(super) in_test: alloc::vec::IntoIter<Generated<S>>,
}

#[cfg(feature = "std")]
impl<S: Slotted, C, E> Reserved<'_, S, C, E> {
    /// Returns the time of the first key, if there is one.
    pub(in crate::generator) fn time(&self) -> Option<Timestamp> {
        let layout = slot_layout_of::<S>();
        self.slots
            .map(|slots| layout.timestamp(layout.split(slots.first).0))
    }
}

#[cfg(feature = "std")]
impl<S: Slotted> Reserved<'static, S, SystemClock, ThreadEntropy> {
    /// Claims the rest anew although the policy's patience is at an end.
    pub(crate) fn claim_or_follow(&mut self) {
        self.slots = Some(self.generator.claim_or_follow(self.left as u64));
    }
}

impl<S: Slotted, C: Clock, E: Entropy> Iterator for Reserved<'_, S, C, E> {
    type Item = Result<Generated<S>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        #[cfg(any(test, feature = "testing"))]
        if let Some(key) = self.in_test.next() {
            self.left -= 1;
            return Some(Ok(key));
        }
        let mut slots = self.slots?;
        if self.left == 0 {
            return None;
        }
        if slots.epoch != self.generator.entropy.epoch() {
            // A fork: these slots are the parent's. The child claims the rest anew.
            match self.generator.claim(self.left as u64) {
                Ok(claimed) => slots = claimed,
                Err(error) => return Some(Err(error)),
            }
        }
        let key = self.generator.key_of(slots);
        if key.is_ok() {
            slots.first += 1;
            self.left -= 1;
        }
        self.slots = Some(slots);
        Some(key)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<S: Slotted, C: Clock, E: Entropy> ExactSizeIterator for Reserved<'_, S, C, E> {}

/// The text leaves out the secret behind the count.
impl<S: Slotted, C, E> fmt::Debug for Reserved<'_, S, C, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reserved")
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}
