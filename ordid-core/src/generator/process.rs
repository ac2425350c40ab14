//! The process-wide generators, which [`KeyType::generate`](crate::KeyType::generate) uses.

use super::{DefaultNode, Generator, OrderedGenerator, Reserved, Slotted, ordered};
use crate::{
    clock::{Clock, SystemClock, Timestamp},
    entropy::{Entropy, ThreadEntropy},
    error::Error,
    key::{Generated, StaticScheme},
};

/// A scheme that has one generator for the whole process, with the system's clock and the default policy. All threads
/// share one strict order.
// Near to `StaticScheme`, which all of these are: the compiler reports either.
#[diagnostic::on_unimplemented(
    message = "scheme `{Self}` has no generator for the process: a node of your own tells its keys \
               apart",
    label = "needs a generator with a node",
    note = "make one, `let generator = OrderedGenerator::with_node(...)`, and ask it: \
            `generator.try_generate_key::<OrderId>()?` for a key, `order.ensure_key_with(&generator)?` \
            for an entity's",
    note = "keys of `uuid_v5` and `uuid_v8_sha256` are made of names: `OrderId::named(namespace, [name])`, with \
            the feature `named` of `ordid`",
    note = "where nodes come from: https://github.com/ordid/ordid/blob/main/docs/src/coordinated-ids.md"
)]
pub trait ProcessWide: Slotted<Node: DefaultNode> {
    /// Returns the process's generator.
    fn process_wide() -> &'static OrderedGenerator<Self, SystemClock, ThreadEntropy>;
}

/// As [`Reserved`], for a process-wide generator. It follows the clock where its policy would fail.
#[derive(Debug)]
pub struct ProcessReserved<S: Slotted>(Reserved<'static, S, SystemClock, ThreadEntropy>);

impl<S: Slotted> Iterator for ProcessReserved<S> {
    type Item = Generated<S>;

    /// # Panics
    ///
    /// After a fork, as [`StaticScheme::generate`].
    fn next(&mut self) -> Option<Generated<S>> {
        loop {
            match self.0.next()? {
                Ok(key) => return Some(key),
                Err(error) if error.is_entropy() => ordered::no_key(&error),
                // Only a fork claims anew; what the policy then refuses, following the clock gives, where that is allowed.
                Err(_) => self.0.claim_or_follow(),
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<S: Slotted> ExactSizeIterator for ProcessReserved<S> {}

impl<S: ProcessWide> StaticScheme for S {
    type Reserved = ProcessReserved<S>;

    #[inline]
    fn generate() -> Generated<S> {
        let generator = S::process_wide();
        match generator.try_generate() {
            Ok(key) => key,
            Err(_) => {
                #[cfg(any(test, feature = "testing"))]
                if let Some(keys) = generator.in_test() {
                    return generate_or_follow(&keys);
                }
                generate_or_follow(generator)
            }
        }
    }

    fn generate_at(timestamp: Timestamp) -> Result<Generated<S>, Error> {
        S::process_wide().generate_at(timestamp)
    }

    fn fill_with(count: usize, mut put: impl FnMut(Generated<S>)) {
        let generator = S::process_wide();
        #[cfg(any(test, feature = "testing"))]
        if let Some(keys) = generator.in_test() {
            if let Err(error) = keys.try_fill_with(count, put) {
                ordered::no_key(&error);
            }
            return;
        }
        let mut left = count;
        while left > 0 {
            let piece = generator.piece(left);
            let slots = generator.claim_or_follow(piece as u64);
            if let Err(error) = generator.keys(generator.node(), slots, piece, &mut put) {
                ordered::no_key(&error);
            }
            left -= piece;
        }
    }

    fn reserve(count: usize) -> Result<ProcessReserved<S>, Error> {
        S::process_wide().reserve(count).map(ProcessReserved)
    }
}

#[cold]
fn generate_or_follow<S: ProcessWide>(
    generator: &OrderedGenerator<S, impl Clock, impl Entropy>,
) -> Generated<S> {
    match generator.key_of(generator.claim_or_follow(1)) {
        Ok(key) => key,
        Err(error) => ordered::no_key(&error),
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use crate::{
        clock::ManualClock,
        entropy::SeededEntropy,
        generator::{Generator as _, Policy},
        scheme::snowflake::{SnowflakeGenerator, SnowflakeNode, Twitter},
    };

    /// Its keys are told apart by node and time alone: behind the clock it would make them again.
    #[test]
    #[should_panic(expected = "cannot make a key")]
    fn a_generator_with_a_node_of_its_own_follows_no_clock_back() {
        let clock = ManualClock::at_unix_millis(1_800_000_000_000);
        let node = SnowflakeNode::<Twitter>::new(7).expect("it is small");
        let entropy = SeededEntropy::new(1);
        let generator = SnowflakeGenerator::with_node(node, &clock, entropy, Policy::DEFAULT);
        generator.try_generate().expect("the clock stands still");
        clock.set_unix_millis(1_800_000_000_000 - 60_000);
        let _ = generator.claim_or_follow(1);
    }
}
