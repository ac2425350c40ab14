//! Makes keys with no standard library: the proof that `ordid-core` needs only `core`, `alloc` and
//! 64-bit atomics, and that a clock and an entropy source of one's own are enough.
//!
//! It ends with status 0 if every check held, otherwise with the number of the check. With an
//! argument it takes the keys for falling, and so must fail: the check itself can.

#![no_std]
#![no_main]

extern crate alloc;

use alloc::vec::Vec;
use core::{
    ffi::{c_char, c_int},
    sync::atomic::{AtomicU64, Ordering},
};

use ordid_core::{
    Error, Scheme,
    clock::{Clock, Timestamp},
    entropy::Entropy,
    generator::{Generator, Policy},
    scheme::{UuidV7, uuid_v7::UuidV7Generator},
};
use uuid::Uuid;

#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

const KEYS: usize = 10_000;
const START: u64 = 1_645_557_742_000;
/// Readings of the clock in a millisecond: enough keys in one that they count.
const READINGS: u64 = 16;

/// A clock that counts how often it was read.
struct CountingClock(AtomicU64);

impl Clock for CountingClock {
    fn now(&self) -> Timestamp {
        let readings = self.0.fetch_add(1, Ordering::Relaxed);
        Timestamp::saturating_from_unix_millis(START + readings / READINGS)
    }
}

/// Marsaglia's xorshift64: every test run makes the same keys. Not for keys that anybody keeps.
struct Xorshift(AtomicU64);

impl Entropy for Xorshift {
    fn epoch(&self) -> u32 {
        1
    }

    fn next_u32(&self) -> Result<u32, Error> {
        let mut word = self.0.load(Ordering::Relaxed);
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        self.0.store(word, Ordering::Relaxed);
        let [a, b, c, d, ..] = word.to_be_bytes();
        Ok(u32::from_be_bytes([a, b, c, d]))
    }

    fn fill(&self, words: &mut [u32]) -> Result<(), Error> {
        for word in words {
            *word = self.next_u32()?;
        }
        Ok(())
    }
}

/// The number of the check that failed.
struct Failed(u8);

fn make(generator: &impl Generator<Scheme = UuidV7>, check: u8) -> Result<Vec<Uuid>, Failed> {
    let mut keys = Vec::new();
    for _ in 0..KEYS {
        let key = generator.try_generate().map_err(|_| Failed(check))?;
        keys.push(key.into_raw());
    }
    Ok(keys)
}

fn run(rises: fn(&Uuid, &Uuid) -> bool) -> Result<(), Failed> {
    let in_order = |keys: &[Uuid], check: u8| {
        let valid = keys.iter().all(UuidV7::check);
        if valid && keys.windows(2).all(|pair| rises(&pair[0], &pair[1])) {
            Ok(())
        } else {
            Err(Failed(check))
        }
    };
    let clock = CountingClock(AtomicU64::new(0));
    let entropy = Xorshift(AtomicU64::new(0x9e37_79b9_7f4a_7c15));
    let generator = UuidV7Generator::new(clock, entropy, Policy::DEFAULT);

    let mut keys = make(&generator, 1)?;
    in_order(&keys, 2)?;

    let mut batch = Vec::new();
    generator
        .try_fill_with(KEYS, |key| batch.push(key.into_raw()))
        .map_err(|_| Failed(3))?;
    keys.append(&mut batch);
    in_order(&keys, 4)?;

    let of_block = make(&generator.local_block(), 5)?;
    in_order(&of_block, 6)?;
    keys.extend(of_block);

    let local = make(&generator.into_local(), 7)?;
    in_order(&local, 8)?;
    keys.extend(local);

    // One generator made them all, so they are unique together.
    keys.sort_unstable();
    keys.dedup();
    if keys.len() == 4 * KEYS {
        Ok(())
    } else {
        Err(Failed(9))
    }
}

/// What the C runtime calls.
// SAFETY: the one symbol of this name in the program, with the type that C gives it. The arguments
// are counted, not read.
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
extern "C" fn main(arguments: c_int, _: *const *const c_char) -> c_int {
    let rises: fn(&Uuid, &Uuid) -> bool = if arguments > 1 {
        |earlier, later| earlier > later
    } else {
        |earlier, later| earlier < later
    };
    match run(rises) {
        Ok(()) => 0,
        Err(Failed(check)) => check.into(),
    }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // Died by a signal is neither a success nor the number of a check.
    let _ =
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::ABORT);
    loop {
        core::hint::spin_loop();
    }
}
