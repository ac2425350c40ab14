//! The same keys in every run of a test, even in code that calls [`generate`](crate::KeyType::generate): within a
//! scope, generators of the test replace the generators of the process.
//!
//! A scope belongs to one thread, or to one future while it is polled. So tests that run at the same time do not
//! affect each other. Other threads and tasks, including those that the scope starts, make ordinary keys unless they
//! enter the scope by [`Keys::run`] or [`Keys::run_async`].
//!
//! In a scope the time stands still at [`Keys::START`], and random bits depend on the seed alone. The keys of a
//! scheme rise and differ as always. They are the same on every machine, but another version of ordid may make
//! others.
//!
//! # What is in the scope
//!
//! Everything that takes a key from the process's generator: `generate`, `generate_at`, `fill` and `reserve` of key
//! types and schemes; `ensure_key`, and `add` of a unit of work; and
//! [`process_wide()`](crate::generator::ProcessWide::process_wide) with `try_generate`, `try_fill_with`, `reserve`,
//! `generate_at` and `start_above`. Your own generators are not in the scope, and neither is a `local_block` of the
//! process's generator.
//!
//! # Example: a function that makes keys
//!
//! ```
//! use ordid_core::{KeyType, testing::with_keys, uuid::Uuid};
//!
//! fn handler() -> Uuid {
//!     Uuid::generate()
//! }
//!
//! let key = with_keys(7, handler);
//! assert_eq!(with_keys(7, handler), key);
//! assert_ne!(with_keys(8, handler), key);
//! assert_eq!(key.timestamp().unwrap().to_string(), "2024-01-01T00:00:00.000Z");
//! assert_ne!(handler(), key);
//! ```

use alloc::sync::Arc;
use core::{
    any::{Any, TypeId},
    cell::{Cell, RefCell},
    fmt,
    future::{Future, poll_fn},
    hash::Hasher as _,
    pin::pin,
};
use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use siphasher::sip::SipHasher13;

use crate::{
    clock::{Clock, ManualClock, SystemClock, Timestamp},
    entropy::{Entropy, SeededEntropy, ThreadEntropy},
    error::Error,
    generator::{OrderedGenerator, Policy, Slotted},
};

/// Runs a function in a scope whose keys depend on the seed alone.
///
/// # Example: rows of a unit of work, and a scope in a scope
///
/// ```
/// use ordid_core::{KeyType, testing::with_keys, uuid::Uuid};
///
/// let outer = with_keys(1, || {
///     let first = Uuid::generate();
///     assert_ne!(with_keys(2, Uuid::generate), first);
///     [first, Uuid::generate()]
/// });
/// assert!(outer.is_sorted());
/// assert_eq!(with_keys(1, || [Uuid::generate(), Uuid::generate()]), outer);
/// ```
pub fn with_keys<R>(seed: u64, run: impl FnOnce() -> R) -> R {
    Keys::new(seed).run(run)
}

/// As [`with_keys`], for a future. Its keys depend on the seed alone, on whatever threads it is polled.
pub async fn with_keys_async<F: Future>(seed: u64, future: F) -> F::Output {
    Keys::new(seed).run_async(future).await
}

/// The generators of a test. A clone shares them.
#[derive(Clone)]
pub struct Keys(Arc<Shared>);

struct Shared {
    seed: u64,
    clock: Arc<ManualClock>,
    /// It serves the schemes that draw and do not count.
    entropy: SeededEntropy,
    /// The name of each scheme `S` that counts, and its `Arc<Scripted<S>>`.
    ordered: Mutex<HashMap<TypeId, Named>>,
}

type Named = (&'static str, Arc<dyn Any + Send + Sync>);

/// A generator that stands in the place of the process's.
pub(crate) type Scripted<S> = OrderedGenerator<S, Arc<ManualClock>, SeededEntropy>;

impl Keys {
    /// The time of a scope's keys, unless its [`clock`](Self::clock) is set: 2024-01-01T00:00:00Z.
    pub const START: Timestamp = Timestamp::saturating_from_unix_millis(1_704_067_200_000);

    /// Makes generators whose keys depend on the seed alone.
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Shared {
            seed,
            clock: Arc::new(ManualClock::at_unix_millis(Self::START.as_unix_millis())),
            entropy: SeededEntropy::new(of_name(seed, "")),
            ordered: Mutex::default(),
        }))
    }

    /// Returns the clock that all these generators read.
    ///
    /// # Example: a key of the next day
    ///
    /// ```
    /// use ordid_core::{KeyType, testing::Keys, uuid::Uuid};
    ///
    /// let keys = Keys::new(7);
    /// keys.clock().set_unix_millis(Keys::START.as_unix_millis() + 86_400_000);
    /// let key = keys.run(Uuid::generate);
    /// assert_eq!(key.timestamp().unwrap().to_string(), "2024-01-02T00:00:00.000Z");
    /// ```
    pub fn clock(&self) -> &ManualClock {
        &self.0.clock
    }

    /// Runs a function on this thread. Within it, these generators replace those of the process.
    pub fn run<R>(&self, run: impl FnOnce() -> R) -> R {
        let _entered = self.enter();
        run()
    }

    /// As [`run`](Self::run), each time the future is polled.
    ///
    /// # Example: a task that a scope starts
    ///
    /// Give a clone to `tokio::spawn` or `spawn_blocking`:
    /// `tokio::spawn(async move { keys.run_async(task()).await })`.
    pub async fn run_async<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        poll_fn(|context| self.run(|| future.as_mut().poll(context))).await
    }

    fn enter(&self) -> Entered {
        IS_ENTERED.set(true);
        Entered(CURRENT.replace(Some(self.clone())))
    }

    /// Returns the generator of a scheme; the first call makes it.
    fn ordered<S: Slotted>(&self, node: S::Node) -> Arc<Scripted<S>> {
        let mut ordered = self
            .0
            .ordered
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // Schemes that differ by a parameter have one name.
        let namesakes = ordered.values().filter(|it| it.0 == S::NAME).count() as u64;
        let (_, made) = ordered.entry(TypeId::of::<S>()).or_insert_with(|| {
            // Generators with one secret would remember each other's seeds.
            let seed = of_name(self.0.seed, S::NAME).wrapping_add(namesakes);
            let (clock, entropy) = (self.0.clock.clone(), SeededEntropy::new(seed));
            let made = Scripted::<S>::with_node(node, clock, entropy, Policy::DEFAULT);
            (S::NAME, Arc::new(made))
        });
        match Arc::clone(made).downcast() {
            Ok(generator) => generator,
            Err(_) => unreachable!("the generator of a scheme is found by the scheme"),
        }
    }
}

/// The text leaves out the generators.
impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys")
            .field("seed", &self.0.seed)
            .finish_non_exhaustive()
    }
}

/// Returns another number for each name.
fn of_name(seed: u64, name: &str) -> u64 {
    let mut hasher = SipHasher13::new_with_keys(seed, 0);
    hasher.write(name.as_bytes());
    hasher.finish()
}

std::thread_local! {
    /// Whether there is a scope. It has no destructor, so that a key outside of one costs a load.
    static IS_ENTERED: Cell<bool> = const { Cell::new(false) };
    static CURRENT: RefCell<Option<Keys>> = const { RefCell::new(None) };
}

/// The scope, with the one around it, which is back when this is dropped.
struct Entered(Option<Keys>);

impl Drop for Entered {
    fn drop(&mut self) {
        IS_ENTERED.set(self.0.is_some());
        // The scope's own generators are dropped after the borrow.
        drop(CURRENT.replace(self.0.take()));
    }
}

/// Asks the generators of the scope, if there is one.
#[inline]
fn in_scope<R>(ask: impl FnOnce(&Keys) -> R) -> Option<R> {
    if !IS_ENTERED.get() {
        return None;
    }
    let keys = CURRENT.with_borrow(Clone::clone)?;
    Some(ask(&keys))
}

/// Returns what stands in the place of a scheme's generator, in a scope.
#[inline]
pub(crate) fn ordered<S: Slotted>(node: S::Node) -> Option<Arc<Scripted<S>>> {
    in_scope(|keys| keys.ordered(node))
}

/// The clock of the process's generators that keep no count.
#[derive(Debug)]
pub(crate) struct ProcessClock;

impl Clock for ProcessClock {
    fn now(&self) -> Timestamp {
        in_scope(|keys| keys.0.clock.now()).unwrap_or_else(|| SystemClock.now())
    }
}

/// The entropy of the process's generators that keep no count.
#[derive(Debug)]
pub(crate) struct ProcessEntropy;

impl Entropy for ProcessEntropy {
    fn epoch(&self) -> u32 {
        in_scope(|keys| keys.0.entropy.epoch()).unwrap_or_else(|| ThreadEntropy.epoch())
    }

    fn next_u32(&self) -> Result<u32, Error> {
        in_scope(|keys| keys.0.entropy.next_u32()).unwrap_or_else(|| ThreadEntropy.next_u32())
    }

    fn next_u128(&self) -> Result<u128, Error> {
        in_scope(|keys| keys.0.entropy.next_u128()).unwrap_or_else(|| ThreadEntropy.next_u128())
    }

    fn fill(&self, words: &mut [u32]) -> Result<(), Error> {
        match in_scope(|keys| keys.0.entropy.fill(words)) {
            Some(filled) => filled,
            None => ThreadEntropy.fill(words),
        }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
