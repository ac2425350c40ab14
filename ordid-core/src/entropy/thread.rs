//! A CSPRNG per thread, fed by the operating system, that notices forks.

use std::{
    cell::{Cell, RefCell},
    mem::ManuallyDrop,
    sync::{
        Mutex, TryLockError,
        atomic::{AtomicU32, Ordering},
    },
};

use chacha20::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};

use super::Entropy;
use crate::error::Error;

/// The number of 32-bit words after which a thread takes new entropy from the operating system.
pub const RESEED_WORDS: usize = 4096;

/// Words that a thread makes at a time.
const BLOCK_WORDS: usize = 256;

/// The default source. Each thread runs ChaCha8. It takes a seed of 256 bits from the operating system at its start,
/// after every [`RESEED_WORDS`] words, and after a fork. If the system has no entropy for a reseed after
/// `RESEED_WORDS` words, the thread goes on with the old seed, and asks again later.
///
/// Eight rounds are the fewest with a wide margin against every published attack (Aumasson, "Too Much Crypto", 2020),
/// and cost little enough for a batch of keys.
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
        let (epoch, [word]) = draw()?;
        Ok((epoch, word))
    }

    #[inline]
    fn epoch_and_u64(&self) -> Result<(u32, u64), Error> {
        let (epoch, [high, low]) = draw()?;
        Ok((epoch, u64::from(high) << 32 | u64::from(low)))
    }

    #[inline]
    fn next_u128(&self) -> Result<u128, Error> {
        let (_, words) = draw::<4>()?;
        Ok(words
            .into_iter()
            .fold(0, |above, word| above << 32 | u128::from(word)))
    }

    fn fill(&self, words: &mut [u32]) -> Result<(), Error> {
        THREAD.with(|thread| thread.fill(words))
    }
}

/// Draws the epoch and so many words of this thread.
// A loop, not a second way to draw: two would meet in memory, and what was written there in one piece
// be read in another, which processors wait for.
#[inline]
fn draw<const WORDS: usize>() -> Result<(u32, [u32; WORDS]), Error> {
    THREAD.with(|thread| {
        loop {
            if let Some(drawn) = thread.draw() {
                return Ok(drawn);
            }
            thread.make_ready(WORDS)?;
        }
    })
}

thread_local! {
    static THREAD: Thread = const { Thread::new() };
}

/// Cells, because every key looks at them; what a block of keys looks at is behind a `RefCell`.
struct Thread {
    /// The guard of the process image that this thread knows of.
    guard: Cell<Option<&'static forkguard::Guard>>,
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
        if !self.is_known_and_unforked() {
            self.enter_process();
        }
        EPOCH.load(Ordering::Relaxed)
    }

    #[inline]
    fn is_known_and_unforked(&self) -> bool {
        // To ask takes `&mut`, so a copy is asked: every key reads and none writes, which matters to
        // the atomic addition that waits for what was written before it.
        self.guard
            .get()
            .is_some_and(|guard| !guard.clone().detected_fork())
    }

    /// The first call of a thread, or the first after a fork.
    #[cold]
    #[inline(never)]
    fn enter_process(&self) {
        if self.guard.replace(Some(enter_image())).is_some() {
            // This very thread was forked: its random state is the parent's.
            *self.source.borrow_mut().rng = None;
            self.next.set(BLOCK_WORDS);
        }
    }

    /// The epoch and some words, if there is nothing to do first: what nearly all keys need.
    #[inline]
    fn draw<const WORDS: usize>(&self) -> Option<(u32, [u32; WORDS])> {
        if !self.is_known_and_unforked() {
            return None;
        }
        let next = self.next.get();
        let words: &[_; WORDS] = self.words.get(next..)?.first_chunk()?;
        self.next.set(next + WORDS);
        Some((
            EPOCH.load(Ordering::Relaxed),
            words.each_ref().map(Cell::get),
        ))
    }

    /// Does what there is to do before so many words are drawn. Those that are left and too few are
    /// given up.
    #[cold]
    #[inline(never)]
    fn make_ready(&self, words: usize) -> Result<(), Error> {
        self.epoch();
        if BLOCK_WORDS - self.next.get() < words {
            self.refill()?;
        }
        Ok(())
    }

    fn fill(&self, words: &mut [u32]) -> Result<(), Error> {
        self.epoch();
        let mut rest = words;
        while !rest.is_empty() {
            if self.next.get() >= BLOCK_WORDS {
                self.refill()?;
            }
            let start = self.next.get();
            let count = rest.len().min(BLOCK_WORDS - start);
            let (now, later) = rest.split_at_mut(count);
            for (word, drawn) in now.iter_mut().zip(&self.words[start..]) {
                *word = drawn.get();
            }
            self.next.set(start + count);
            rest = later;
        }
        Ok(())
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

/// Returns the guard that all threads of this process image share, and raises the epoch if nobody
/// has been here since a fork. A guard is kept for good: a few bytes a fork.
fn enter_image() -> &'static forkguard::Guard {
    static IMAGE: Mutex<Option<&'static forkguard::Guard>> = Mutex::new(None);
    const TRIES: u32 = 100;

    for _ in 0..TRIES {
        let mut image = match IMAGE.try_lock() {
            Ok(image) => image,
            Err(TryLockError::Poisoned(image)) => image.into_inner(),
            Err(TryLockError::WouldBlock) => {
                // Another thread is here, for the time of an allocation.
                std::thread::yield_now();
                continue;
            }
        };
        let known = *image;
        return match known {
            Some(guard) if !guard.clone().detected_fork() => guard,
            _ => {
                let guard = Box::leak(Box::new(forkguard::new()));
                *image = Some(guard);
                if known.is_some() {
                    EPOCH.fetch_add(1, Ordering::Relaxed);
                }
                guard
            }
        };
    }
    // Held by a thread that a fork left behind, so for good; or by one that the system does not let
    // run. A renewal that was not needed costs a millisecond of the counter; one that was missed
    // costs uniqueness.
    EPOCH.fetch_add(1, Ordering::Relaxed);
    Box::leak(Box::new(forkguard::new()))
}
