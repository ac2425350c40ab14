//! A CSPRNG per thread, fed by the operating system, that notices forks.

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

use super::Entropy;
use crate::error::Error;

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
        self.epoch_and_u32().map(|(_, word)| word)
    }

    #[inline]
    fn next_u64(&self) -> Result<u64, Error> {
        self.epoch_and_u64().map(|(_, words)| words)
    }

    #[inline]
    fn epoch_and_u32(&self) -> Result<(u32, u32), Error> {
        THREAD.with_borrow_mut(|thread| Ok((thread.epoch(), thread.next_u32()?)))
    }

    #[inline]
    fn epoch_and_u64(&self) -> Result<(u32, u64), Error> {
        THREAD.with_borrow_mut(|thread| {
            let epoch = thread.epoch();
            let (high, low) = (thread.next_u32()?, thread.next_u32()?);
            Ok((epoch, u64::from(high) << 32 | u64::from(low)))
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
                        None => {
                            return Err(Error::entropy(format!("the operating system: {error}")));
                        }
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
