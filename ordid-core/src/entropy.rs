//! Randomness: a trait, the operating system behind a per-thread CSPRNG, and a seeded source for
//! tests.
//!
//! # Forks
//!
//! A forked child has a copy of its parent's random state and would repeat its keys. So every
//! source has an [`epoch`](Entropy::epoch) that changes in the child: [`ThreadEntropy`] then draws
//! afresh from the operating system, and generators renew their counters. The check is a load of a
//! counter that `pthread_atfork` raises in the child, not a system call. A child made by a raw
//! `clone` system call, which skips the handlers, is not seen; nor is a cloned virtual machine,
//! where the next [`RESEED_WORDS`] draws of a thread may repeat.

use std::{
    cell::RefCell,
    sync::{
        Mutex, OnceLock,
        atomic::{AtomicU32, Ordering},
    },
};

use chacha20::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};

use crate::error::{Error, ErrorKind};

/// A source of unpredictable bits.
pub trait Entropy: Send + Sync {
    /// Returns the number of this process image: it changes in the child of a fork, and is never
    /// zero. Keys made under different epochs do not share random state.
    fn epoch(&self) -> u32;

    /// Returns 32 random bits.
    ///
    /// # Errors
    ///
    /// If the operating system gives none; the error [`is_entropy`](Error::is_entropy).
    fn next_u32(&self) -> Result<u32, Error>;

    /// Fills the slice with random words.
    ///
    /// # Errors
    ///
    /// If the operating system gives none; the error [`is_entropy`](Error::is_entropy).
    fn fill(&self, words: &mut [u32]) -> Result<(), Error>;
}

impl<E: Entropy + ?Sized> Entropy for &E {
    fn epoch(&self) -> u32 {
        (**self).epoch()
    }

    fn next_u32(&self) -> Result<u32, Error> {
        (**self).next_u32()
    }

    fn fill(&self, words: &mut [u32]) -> Result<(), Error> {
        (**self).fill(words)
    }
}

/// Draws eight bytes as one number.
pub(crate) fn next_u64(entropy: &impl Entropy) -> Result<u64, Error> {
    Ok(u64::from(entropy.next_u32()?) << 32 | u64::from(entropy.next_u32()?))
}

/// After so many words a thread takes new entropy from the operating system.
pub const RESEED_WORDS: usize = 4096;

/// Words that a thread makes at a time.
const BLOCK_WORDS: usize = 256;

/// The default source: each thread runs ChaCha8, seeded with 256 bits of the operating system's
/// entropy at its start, after every [`RESEED_WORDS`] words, and after a fork.
///
/// Eight rounds are the fewest with a wide margin against every published attack (Aumasson, "Too
/// Much Crypto", 2020), and what a batch of keys can afford.
#[derive(Debug, Clone, Copy, Default)]
pub struct ThreadEntropy;

impl Entropy for ThreadEntropy {
    #[inline]
    fn epoch(&self) -> u32 {
        THREAD.with_borrow_mut(ThreadState::epoch)
    }

    #[inline]
    fn next_u32(&self) -> Result<u32, Error> {
        THREAD.with_borrow_mut(|thread| {
            thread.epoch();
            thread.next_u32()
        })
    }

    fn fill(&self, words: &mut [u32]) -> Result<(), Error> {
        THREAD.with_borrow_mut(|thread| {
            thread.epoch();
            let mut rest = words;
            while !rest.is_empty() {
                if thread.next == BLOCK_WORDS {
                    thread.refill()?;
                }
                let count = rest.len().min(BLOCK_WORDS - thread.next);
                let (now, later) = rest.split_at_mut(count);
                for (word, bytes) in now.iter_mut().zip(&thread.block[thread.next..]) {
                    *word = u32::from_le_bytes(*bytes);
                }
                thread.next += count;
                rest = later;
            }
            Ok(())
        })
    }
}

thread_local! {
    static THREAD: RefCell<ThreadState> = const { RefCell::new(ThreadState::NEW) };
}

struct ThreadState {
    guard: Option<forkguard::Guard>,
    rng: Option<ChaCha8Rng>,
    /// Words that may still be made before the next reseed.
    until_reseed: usize,
    block: [[u8; 4]; BLOCK_WORDS],
    next: usize,
}

impl ThreadState {
    const NEW: Self = Self {
        guard: None,
        rng: None,
        until_reseed: 0,
        block: [[0; 4]; BLOCK_WORDS],
        next: BLOCK_WORDS,
    };

    #[inline]
    fn epoch(&mut self) -> u32 {
        let unchanged = self
            .guard
            .as_mut()
            .is_some_and(|guard| !guard.detected_fork());
        if unchanged {
            EPOCH.load(Ordering::Relaxed)
        } else {
            self.enter_process()
        }
    }

    /// The first call of a thread, or the first after a fork.
    #[cold]
    fn enter_process(&mut self) -> u32 {
        match &self.guard {
            // This very thread was forked: its random state is the parent's.
            Some(_) => {
                EPOCH.fetch_add(1, Ordering::Relaxed);
                self.rng = None;
                self.next = BLOCK_WORDS;
            }
            // A new thread, perhaps the first to make keys in a forked child.
            None => {
                self.guard = Some(forkguard::new());
                if process_was_forked() {
                    EPOCH.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        EPOCH.load(Ordering::Relaxed)
    }

    #[inline]
    fn next_u32(&mut self) -> Result<u32, Error> {
        if self.next == BLOCK_WORDS {
            self.refill()?;
        }
        let word = u32::from_le_bytes(self.block[self.next]);
        self.next += 1;
        Ok(word)
    }

    #[inline(never)]
    fn refill(&mut self) -> Result<(), Error> {
        let rng = match &mut self.rng {
            Some(rng) if self.until_reseed > 0 => rng,
            rng => {
                let mut seed = [0; 32];
                match getrandom::fill(&mut seed) {
                    Ok(()) => {
                        self.until_reseed = RESEED_WORDS;
                        rng.insert(ChaCha8Rng::from_seed(seed))
                    }
                    // A stream that was seeded well goes on being unpredictable; only the first
                    // seed, and the one after a fork, cannot do without.
                    Err(error) => match rng {
                        Some(rng) => rng,
                        None => return Err(Error::new(ErrorKind::Entropy(error.to_string()))),
                    },
                }
            }
        };
        rng.fill_bytes(self.block.as_flattened_mut());
        self.until_reseed = self.until_reseed.saturating_sub(BLOCK_WORDS);
        self.next = 0;
        Ok(())
    }
}

/// Number of this process image; raised in a child by whichever thread notices the fork first.
static EPOCH: AtomicU32 = AtomicU32::new(1);

/// Returns whether the process was forked since this was asked last, for threads that have no
/// guard of their own yet.
fn process_was_forked() -> bool {
    static PROCESS: OnceLock<Mutex<forkguard::Guard>> = OnceLock::new();
    match PROCESS
        .get_or_init(|| Mutex::new(forkguard::new()))
        .try_lock()
    {
        Ok(mut guard) => guard.detected_fork(),
        // Held by another new thread, or by one that the fork left behind for good. A renewal that
        // was not needed costs a millisecond of the counter; one that was missed costs uniqueness.
        Err(_) => true,
    }
}

/// A source that a test seeds: the same keys on every machine.
#[cfg(any(test, feature = "test-util"))]
#[derive(Debug)]
pub struct SeededEntropy {
    rng: Mutex<ChaCha8Rng>,
    epoch: AtomicU32,
}

#[cfg(any(test, feature = "test-util"))]
impl SeededEntropy {
    /// Makes a source whose words follow from the seed alone.
    pub fn new(seed: u64) -> Self {
        Self {
            rng: Mutex::new(ChaCha8Rng::seed_from_u64(seed)),
            epoch: AtomicU32::new(1),
        }
    }

    /// Acts as a fork does: the generators on this source renew their counters.
    pub fn fork(&self) {
        self.epoch.fetch_add(1, Ordering::Relaxed);
    }

    fn rng(&self) -> std::sync::MutexGuard<'_, ChaCha8Rng> {
        self.rng
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(any(test, feature = "test-util"))]
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

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn threads_draw_different_words() {
        let draw = || {
            let mut words = [0; 64];
            ThreadEntropy.fill(&mut words).unwrap();
            words
        };
        let mut seen: HashSet<[u32; 64]> = HashSet::from([draw(), draw()]);
        for thread in (0..4).map(|_| std::thread::spawn(draw)).collect::<Vec<_>>() {
            seen.insert(thread.join().unwrap());
        }
        assert_eq!(seen.len(), 6);
    }

    #[test]
    fn words_are_not_repeated_across_blocks_and_reseeds() {
        let mut words = vec![0; RESEED_WORDS * 3 + 7];
        ThreadEntropy.fill(&mut words).unwrap();
        let pairs: HashSet<&[u32]> = words.chunks_exact(2).collect();
        assert_eq!(pairs.len(), words.len() / 2);
    }

    #[test]
    fn single_draws_and_fills_come_from_one_stream() {
        let (a, b) = (SeededEntropy::new(7), SeededEntropy::new(7));
        let mut words = [0; 3];
        a.fill(&mut words).unwrap();
        assert_eq!(words, [(); 3].map(|()| b.next_u32().unwrap()));
        assert_ne!(SeededEntropy::new(8).next_u32().unwrap(), words[0]);
    }

    #[test]
    fn the_epoch_of_a_process_that_does_not_fork_stays() {
        let first = ThreadEntropy.epoch();
        assert_ne!(first, 0);
        let there = std::thread::spawn(|| ThreadEntropy.epoch()).join().unwrap();
        // Two new threads at once may cost a renewal, never less than one epoch each way.
        assert!(there >= first);
    }
}
