//! Generators of keys that are random and in no order.

use core::{fmt, marker::PhantomData};

use crate::{
    clock::Timestamp,
    entropy::Entropy,
    error::Error,
    generator::{Events, Generator},
    key::{Generated, Scheme},
};

/// Keys of one batch: their random words are drawn together.
const BATCH: usize = 64;
const WORDS: usize = 4;

/// A scheme whose keys consist of random bits. [`RandomGenerator`] makes them.
pub trait Random: Scheme {
    /// Makes a key from as many of 128 random bits as it has room for.
    fn from_random(bits: u128) -> Self::Raw;
}

/// Makes random keys, which are in no order.
///
/// In the child of a fork, [`Entropy`] takes care that keys differ. No policy ever acts, so
/// [`events`](Generator::events) are all zero.
pub struct RandomGenerator<S, E> {
    pub(super) entropy: E,
    scheme: PhantomData<fn() -> S>,
}

impl<S: Random, E: Entropy> RandomGenerator<S, E> {
    /// Makes a generator.
    pub const fn new(entropy: E) -> Self {
        Self {
            entropy,
            scheme: PhantomData,
        }
    }
}

impl<S, E: fmt::Debug> fmt::Debug for RandomGenerator<S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RandomGenerator")
            .field("entropy", &self.entropy)
            .finish_non_exhaustive()
    }
}

impl<S: Random, E: Entropy> Generator for RandomGenerator<S, E> {
    type Scheme = S;
    type Reserved<'g>
        = Drawn<'g, Self>
    where
        Self: 'g;

    #[inline]
    fn try_generate(&self) -> Result<Generated<S>, Error> {
        let bits = self.entropy.next_u128()?;
        Ok(Generated::new(S::from_random(bits)))
    }

    /// # Errors
    ///
    /// Always returns an error that [`is_unsupported`](Error::is_unsupported), because the keys have no time.
    fn generate_at(&self, _: Timestamp) -> Result<Generated<S>, Error> {
        Err(Error::unsupported(alloc::format!(
            "scheme {} makes no key for a given time: its keys have none; generate one without",
            S::NAME
        )))
    }

    fn try_fill_with(&self, count: usize, mut put: impl FnMut(Generated<S>)) -> Result<(), Error> {
        draw_all(&self.entropy, count, |bits| {
            put(Generated::new(S::from_random(bits)));
        })
    }

    /// Claims nothing. Each key is drawn when the iterator is asked for it.
    ///
    /// # Errors
    ///
    /// None. The iterator yields an error if the operating system has no entropy.
    fn reserve(&self, count: usize) -> Result<Drawn<'_, Self>, Error> {
        Ok(Drawn::new(self, count))
    }

    fn events(&self) -> Events {
        Events::default()
    }
}

/// A given number of keys of a generator that has nothing to reserve. Each key is drawn when it is asked for.
#[derive(Debug)]
pub struct Drawn<'g, G> {
    generator: &'g G,
    left: usize,
}

impl<'g, G: Generator> Drawn<'g, G> {
    pub(super) const fn new(generator: &'g G, left: usize) -> Self {
        Self { generator, left }
    }
}

impl<G: Generator> Iterator for Drawn<'_, G> {
    type Item = Result<Generated<G::Scheme>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        let key = self.generator.try_generate();
        // What was not drawn may be asked for again.
        self.left -= usize::from(key.is_ok());
        Some(key)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<G: Generator> ExactSizeIterator for Drawn<'_, G> {}

/// Draws 128 random bits so many times.
pub(super) fn draw_all(
    entropy: &impl Entropy,
    count: usize,
    mut put: impl FnMut(u128),
) -> Result<(), Error> {
    let mut words = [0; BATCH * WORDS];
    let mut left = count;
    while left > 0 {
        let batch = left.min(BATCH);
        let words = &mut words[..batch * WORDS];
        entropy.fill(words)?;
        for words in words.chunks_exact(WORDS) {
            let join = |above, word: &u32| above << 32 | u128::from(*word);
            put(words.iter().fold(0, join));
        }
        left -= batch;
    }
    Ok(())
}

#[cfg(any(test, feature = "testing"))]
pub(crate) use crate::testing::{ProcessClock, ProcessEntropy};
#[cfg(all(feature = "std", not(any(test, feature = "testing"))))]
pub(crate) use crate::{
    clock::SystemClock as ProcessClock, entropy::ThreadEntropy as ProcessEntropy,
};

/// The static scheme of a generator that fails only for want of entropy.
#[cfg(feature = "std")]
macro_rules! process_wide_without_order {
    ($scheme:ty, $generator:ty = $value:expr) => {
        const _: () = {
            use core::iter::{RepeatWith, Take, repeat_with};

            use $crate::{
                clock::Timestamp,
                error::Error,
                generator::Generator,
                key::{Generated, StaticScheme},
            };

            static GENERATOR: $generator = $value;

            #[cold]
            fn no_key(error: &Error) -> ! {
                panic!("cannot make a key: {error}")
            }

            impl StaticScheme for $scheme {
                type Reserved = Take<RepeatWith<fn() -> Generated<Self>>>;

                #[inline]
                fn generate() -> Generated<Self> {
                    match GENERATOR.try_generate() {
                        Ok(key) => key,
                        Err(error) => no_key(&error),
                    }
                }

                fn generate_at(timestamp: Timestamp) -> Result<Generated<Self>, Error> {
                    GENERATOR.generate_at(timestamp)
                }

                fn fill_with(count: usize, put: impl FnMut(Generated<Self>)) {
                    if let Err(error) = GENERATOR.try_fill_with(count, put) {
                        no_key(&error);
                    }
                }

                fn reserve(count: usize) -> Result<Self::Reserved, Error> {
                    Ok(repeat_with(Self::generate as fn() -> _).take(count))
                }
            }
        };
    };
}
#[cfg(feature = "std")]
pub(crate) use process_wide_without_order;
