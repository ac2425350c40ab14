//! Randomness that a test chooses.

use std::sync::{
    Mutex,
    atomic::{AtomicU32, Ordering},
};

use chacha20::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};

use super::Entropy;
use crate::error::Error;

/// A source that a test seeds: the same seed gives the same keys on every machine.
#[derive(Debug)]
pub struct SeededEntropy {
    rng: Mutex<ChaCha8Rng>,
    epoch: AtomicU32,
}

impl SeededEntropy {
    /// Makes a source whose words depend on the seed alone.
    pub fn new(seed: u64) -> Self {
        Self {
            rng: Mutex::new(ChaCha8Rng::seed_from_u64(seed)),
            epoch: AtomicU32::new(1),
        }
    }

    /// Raises the epoch, as a fork does: the generators on this source renew their counters.
    pub fn fork(&self) {
        self.epoch.fetch_add(1, Ordering::Relaxed);
    }

    fn rng(&self) -> std::sync::MutexGuard<'_, ChaCha8Rng> {
        self.rng
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Entropy for SeededEntropy {
    fn epoch(&self) -> u32 {
        self.epoch.load(Ordering::Relaxed)
    }

    fn next_u32(&self) -> Result<u32, Error> {
        Ok(self.rng().next_u32())
    }

    fn fill(&self, words: &mut [u32]) -> Result<(), Error> {
        let mut rng = self.rng();
        words.iter_mut().for_each(|word| *word = rng.next_u32());
        Ok(())
    }
}
