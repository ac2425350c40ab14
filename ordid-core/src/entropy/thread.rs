//! A CSPRNG per thread, fed by the operating system, that notices forks.

use std::{
    cell::{Cell, RefCell},
    mem::ManuallyDrop,
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
        THREAD.with(Thread::epoch)
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
        THREAD.with(|thread| {
            let epoch = thread.epoch();
            match thread.take() {
                Some(word) => Ok((epoch, word)),
                None => Ok((epoch, thread.refill_and_take()?)),
            }
        })
    }

    #[inline]
    fn epoch_and_u64(&self) -> Result<(u32, u64), Error> {
        let (epoch, high) = self.epoch_and_u32()?;
        // Nothing can fork this thread in between.
        let low = THREAD.with(|thread| match thread.take() {
            Some(word) => Ok(word),
            None => thread.refill_and_take(),
        })?;
        Ok((epoch, u64::from(high) << 32 | u64::from(low)))
    }

    fn fill(&self, words: &mut [u32]) -> Result<(), Error> {
        THREAD.with(|thread| {
            thread.epoch();
            let mut rest = words;
            while !rest.is_empty() {
                if thread.next.get() >= BLOCK_WORDS {
                    thread.refill()?;
                }
                let start = thread.next.get();
                let count = rest.len().min(BLOCK_WORDS - start);
                let (now, later) = rest.split_at_mut(count);
                for (word, drawn) in now.iter_mut().zip(&thread.words[start..]) {
                    *word = drawn.get();
                }
                thread.next.set(start + count);
                rest = later;
            }
            Ok(())
        })
    }
}

thread_local! {
    static THREAD: Thread = const { Thread::new() };
}

/// Cells, because every key looks at them; what a block of keys looks at is behind a `RefCell`.
struct Thread {
    guard: Cell<Option<forkguard::Guard>>,
    words: [Cell<u32>; BLOCK_WORDS],
    next: Cell<usize>,
    source: RefCell<Source>,
}

struct Source {
    /// Not dropped with the thread, for there is nothing to free; so keys can be made even by the
    /// destructors of other thread-locals.
    rng: ManuallyDrop<Option<ChaCha8Rng>>,
    /// Words that may still be made before the next reseed.
    until_reseed: usize,
}

impl Thread {
    const fn new() -> Self {
        Self {
            guard: Cell::new(None),
            words: [const { Cell::new(0) }; BLOCK_WORDS],
            next: Cell::new(BLOCK_WORDS),
            source: RefCell::new(Source {
                rng: ManuallyDrop::new(None),
                until_reseed: 0,
            }),
        }
    }

    #[inline]
    fn epoch(&self) -> u32 {
        let mut guard = self.guard.take();
        if let Some(unforked) = &mut guard
            && !unforked.detected_fork()
        {
            self.guard.set(guard);
            return EPOCH.load(Ordering::Relaxed);
        }
        self.enter_process(guard)
    }

    /// The first call of a thread, or the first after a fork.
    #[cold]
    #[inline(never)]
    fn enter_process(&self, guard: Option<forkguard::Guard>) -> u32 {
        match guard {
            // This very thread was forked: its random state is the parent's.
            Some(_) => {
                EPOCH.fetch_add(1, Ordering::Relaxed);
                *self.source.borrow_mut().rng = None;
                self.next.set(BLOCK_WORDS);
                self.guard.set(guard);
            }
            // A new thread, perhaps the first to make keys in a forked child.
            None => {
                self.guard.set(Some(forkguard::new()));
                if process_was_forked() {
                    EPOCH.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        EPOCH.load(Ordering::Relaxed)
    }

    #[inline]
    fn take(&self) -> Option<u32> {
        let next = self.next.get();
        let word = self.words.get(next)?.get();
        self.next.set(next + 1);
        Some(word)
    }

    #[cold]
    #[inline(never)]
    fn refill_and_take(&self) -> Result<u32, Error> {
        self.refill()?;
        self.next.set(1);
        Ok(self.words[0].get())
    }

    fn refill(&self) -> Result<(), Error> {
        let mut source = self.source.borrow_mut();
        let Source { rng, until_reseed } = &mut *source;
        let rng = match &mut **rng {
            Some(rng) if *until_reseed > 0 => rng,
            rng => {
                let mut seed = [0; 32];
                match getrandom::fill(&mut seed) {
                    Ok(()) => {
                        *until_reseed = RESEED_WORDS;
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
        let mut block = [[0; 4]; BLOCK_WORDS];
        rng.fill_bytes(block.as_flattened_mut());
        for (word, bytes) in self.words.iter().zip(block) {
            word.set(u32::from_le_bytes(bytes));
        }
        *until_reseed = until_reseed.saturating_sub(BLOCK_WORDS);
        self.next.set(0);
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
