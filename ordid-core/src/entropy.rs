//! Randomness: the [`Entropy`] trait, a random generator per thread that is seeded by the operating system, and a
//! seeded source for tests.
//!
//! # Forks
//!
//! A forked child has a copy of its parent's random state and would repeat its keys. So every source has an
//! [`epoch`](Entropy::epoch) that changes in the child: [`ThreadEntropy`] then takes a new seed from the operating
//! system, and generators renew their counters. The check is a load of a counter that `pthread_atfork` raises in the
//! child, not a system call. A child made by a raw `clone` system call, which skips the handlers, is not detected.
//!
//! # Snapshots of virtual machines
//!
//! If a machine is restored twice from one snapshot, the two are copies, and no process can notice that in time. Each
//! thread takes a new seed from the operating system after at most 4,096 words. (A clone's kernel has been reseeded
//! by then if its hypervisor provides a `vmgenid`.) Until then both copies make the same random words: enough for at
//! most 4,096 keys of a thread with 32 random bits each, or for half as many keys with 54 or 56 bits. Two of these
//! keys are equal only if they also carry the same millisecond and count, so only if the clones run in the same
//! millisecond of the wall clock. A clone that is resumed a millisecond later makes other keys, but whoever has seen
//! the random bits of one clone's keys can predict the other's. The secret behind the counters' starts is not drawn
//! anew; it only adds unpredictability.

#[cfg(feature = "std")]
use std::sync::OnceLock;

use crate::error::Error;

#[cfg(any(test, feature = "test-util"))]
mod seeded;
#[cfg(feature = "std")]
mod thread;

// This is exported twice, so that the compiler names the feature if it is missing.
#[cfg(feature = "test-util")]
pub use seeded::SeededEntropy;
#[cfg(all(test, not(feature = "test-util")))]
pub use seeded::SeededEntropy;
#[cfg(feature = "std")]
pub use thread::{RESEED_WORDS, ThreadEntropy};

/// Identifies a process. The child of a fork is not equal to its parent. `Display` writes the process id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Process {
    pub(crate) id: u32,
    /// How many generations of processes before this one have called [`process`]. The system's number is not enough: a child
    /// in a PID namespace of its own may have that of its parent.
    forks: u32,
}

impl Process {
    /// Returns a number that no other process of its family has, such as for an atomic.
    pub const fn to_bits(self) -> u64 {
        (self.id as u64) << 32 | self.forks as u64
    }
}

impl core::fmt::Display for Process {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.id.fmt(f)
    }
}

/// Returns this process.
#[cfg(feature = "std")]
pub fn process() -> Process {
    /// A process that has called this, and the next of its descendants that has.
    struct Image {
        guard: forkguard::Guard,
        child: OnceLock<Box<Image>>,
    }

    impl Image {
        fn new() -> Self {
            Self {
                guard: forkguard::new(),
                child: OnceLock::new(),
            }
        }
    }

    /// Makes the value before the lock is taken: a child that is forked while a thread holds the lock waits for ever.
    fn made<T>(lock: &OnceLock<T>, make: impl FnOnce() -> T) -> &T {
        match lock.get() {
            Some(made) => made,
            None => {
                let made = make();
                lock.get_or_init(|| made)
            }
        }
    }

    static FIRST: OnceLock<Image> = OnceLock::new();
    let (mut image, mut forks) = (made(&FIRST, Image::new), 0);
    // To ask takes `&mut`, and changes the guard.
    while image.guard.clone().detected_fork() {
        image = made::<Box<Image>>(&image.child, || Box::new(Image::new()));
        forks += 1;
    }
    Process {
        // WebAssembly has no numbers of processes, and no forks; the standard library panics there.
        id: if cfg!(target_family = "wasm") {
            0
        } else {
            std::process::id()
        },
        forks,
    }
}

/// Returns this process. Without `std`, forks cannot be detected.
#[cfg(not(feature = "std"))]
pub const fn process() -> Process {
    Process { id: 0, forks: 0 }
}

/// A source of unpredictable bits.
pub trait Entropy: Send + Sync {
    /// Returns a number that changes in the child of a fork, and is never zero. Keys made under different epochs do
    /// not share random state.
    ///
    /// Count up from a small number: no epoch of a process may be the bitwise complement of another (`!epoch`), which
    /// generators use themselves.
    fn epoch(&self) -> u32;

    /// Returns 32 random bits.
    ///
    /// # Errors
    ///
    /// If the operating system gives none; the error [`is_entropy`](Error::is_entropy).
    fn next_u32(&self) -> Result<u32, Error>;

    /// Returns 64 random bits.
    ///
    /// # Errors
    ///
    /// As [`next_u32`](Self::next_u32).
    fn next_u64(&self) -> Result<u64, Error> {
        Ok(u64::from(self.next_u32()?) << 32 | u64::from(self.next_u32()?))
    }

    /// Returns 128 random bits.
    ///
    /// # Errors
    ///
    /// As [`next_u32`](Self::next_u32).
    fn next_u128(&self) -> Result<u128, Error> {
        Ok(u128::from(self.next_u64()?) << 64 | u128::from(self.next_u64()?))
    }

    /// Fills the slice with random words.
    ///
    /// # Errors
    ///
    /// As [`next_u32`](Self::next_u32).
    fn fill(&self, words: &mut [u32]) -> Result<(), Error>;

    /// Returns the epoch and 32 random bits that were drawn in it. Generators call it for most keys.
    ///
    /// # Errors
    ///
    /// As [`next_u32`](Self::next_u32).
    fn epoch_and_u32(&self) -> Result<(u32, u32), Error> {
        Ok((self.epoch(), self.next_u32()?))
    }

    /// Returns the epoch and 64 random bits that were drawn in it.
    ///
    /// # Errors
    ///
    /// As [`next_u32`](Self::next_u32).
    fn epoch_and_u64(&self) -> Result<(u32, u64), Error> {
        Ok((self.epoch(), self.next_u64()?))
    }
}

impl<E: Entropy + ?Sized> Entropy for &E {
    fn epoch(&self) -> u32 {
        (**self).epoch()
    }

    fn next_u32(&self) -> Result<u32, Error> {
        (**self).next_u32()
    }

    fn next_u64(&self) -> Result<u64, Error> {
        (**self).next_u64()
    }

    fn next_u128(&self) -> Result<u128, Error> {
        (**self).next_u128()
    }

    fn fill(&self, words: &mut [u32]) -> Result<(), Error> {
        (**self).fill(words)
    }

    fn epoch_and_u32(&self) -> Result<(u32, u32), Error> {
        (**self).epoch_and_u32()
    }

    fn epoch_and_u64(&self) -> Result<(u32, u64), Error> {
        (**self).epoch_and_u64()
    }
}

#[cfg(all(test, feature = "std"))]
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

    /// In a process of its own, for in this one other tests run at the same time: threads that enter
    /// at once may raise the epoch where nobody forked.
    #[test]
    fn a_process_that_does_not_fork_keeps_its_epoch() {
        const NAME: &str = "entropy::tests::a_process_that_does_not_fork_keeps_its_epoch";
        const IN_CHILD: &str = "ORDID_TEST_EPOCH_CHILD";

        if std::env::var_os(IN_CHILD).is_none() {
            let program = std::env::current_exe().unwrap();
            // On a machine that is emulated, the system cannot run the program by itself.
            let emulator = std::env::var_os("ORDID_TEST_EMULATOR").map(std::path::PathBuf::from);
            let words: Vec<_> = emulator.into_iter().chain([program]).collect();
            let mut child = std::process::Command::new(&words[0]);
            child
                .args(&words[1..])
                .args(["--exact", NAME])
                .env(IN_CHILD, "1");
            let output = child.output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "{text}");
            assert!(text.contains("1 passed"), "it is not called {NAME}: {text}");
            return;
        }
        let draws_over_a_reseed = || {
            let mut epochs = vec![ThreadEntropy.epoch()];
            for _ in 0..=RESEED_WORDS / 4 {
                ThreadEntropy.next_u128().unwrap();
                epochs.push(ThreadEntropy.epoch_and_u32().unwrap().0);
            }
            epochs.dedup();
            epochs
        };
        // The first epoch, and no other; one thread after the other, so that none waits.
        assert_eq!(draws_over_a_reseed(), [1]);
        for _ in 0..8 {
            let there = std::thread::spawn(draws_over_a_reseed).join().unwrap();
            assert_eq!(there, [1]);
        }
    }
}
