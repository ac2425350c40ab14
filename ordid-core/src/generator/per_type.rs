//! One value a type for the process, where the type is generic: a `static` cannot be.

use alloc::boxed::Box;
use core::any::Any;
use std::sync::OnceLock;

/// A list that only grows, so that readers take no lock.
struct Link {
    value: Box<dyn Any + Send + Sync>,
    next: OnceLock<Box<Self>>,
}

static FIRST: OnceLock<Box<Link>> = OnceLock::new();

/// Returns the process's value of a type, and makes it where there is none.
///
/// If several threads arrive at the same time, each may call `make`. One value is kept, and the others are dropped.
pub(crate) fn per_type<T: Any + Send + Sync>(make: impl Fn() -> T) -> &'static T {
    let mut at = &FIRST;
    loop {
        let link = match at.get() {
            Some(link) => link,
            None => {
                // Before the lock is taken: it may ask for a value of another type.
                let made = Box::new(Link {
                    value: Box::new(make()),
                    next: OnceLock::new(),
                });
                at.get_or_init(|| made)
            }
        };
        match link.value.downcast_ref() {
            Some(value) => return value,
            None => at = &link.next,
        }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::{
        collections::HashSet,
        sync::{
            Barrier,
            atomic::{AtomicU64, Ordering},
        },
        thread,
    };

    use super::*;

    #[derive(Default)]
    struct Count<const N: usize>(AtomicU64);

    fn next<const N: usize>() -> u64 {
        let count = per_type(Count::<N>::default);
        count.0.fetch_add(1, Ordering::Relaxed)
    }

    #[test]
    fn all_threads_share_the_value_of_a_type() {
        const THREADS: usize = 8;
        let start = Barrier::new(THREADS);
        let found: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|_| {
                    scope.spawn(|| {
                        start.wait();
                        [next::<1>(), next::<2>(), next::<3>()]
                    })
                })
                .collect();
            let join = |thread: thread::ScopedJoinHandle<'_, _>| thread.join().unwrap();
            threads.into_iter().map(join).collect()
        });
        for of_type in 0..3 {
            let counts: HashSet<u64> = found.iter().map(|counts| counts[of_type]).collect();
            assert_eq!(counts, (0..8).collect());
        }
    }

    #[test]
    fn making_a_value_may_ask_for_another() {
        struct Outer(&'static Count<4>);
        let outer = per_type(|| Outer(per_type(Count::<4>::default)));
        outer.0.0.fetch_add(7, Ordering::Relaxed);
        assert_eq!(next::<4>(), 7);
    }
}
