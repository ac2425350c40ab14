//! The engine under a model checker: short scripts, run once for every interleaving and for every
//! stale value that the memory orderings allow a load to return.
//!
//! `cargo xtask test` runs them; alone they are
//! `RUSTFLAGS="--cfg loom" cargo test -p ordid-core --lib --release model --target-dir target/loom`.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64 as Unmodelled, Ordering::SeqCst},
    },
};

use loom::{
    sync::{Arc, atomic::AtomicU32},
    thread,
};

use super::*;
use crate::clock::{TimeScale, Timestamp};

const LAYOUT: &SlotLayout = &SlotLayout {
    scale: TimeScale::UNIX_MILLIS,
    tick_bits: 48,
    index_bits: 20,
    fraction_bits: 0,
};

/// Enough for every mistake that was tried; the next takes minutes.
const SWITCHES: usize = 3;

/// Where the clocks of the scripts begin.
const START: u64 = 1_000;

/// A clock that a thread of the script sets. Relaxed, so that the other may read it late: clocks
/// of two processors do not move at once.
struct ModelClock(AtomicU64);

impl ModelClock {
    fn set(&self, millis: u64) {
        self.0.store(millis, Ordering::Relaxed);
    }
}

impl Clock for ModelClock {
    fn now(&self) -> Timestamp {
        Timestamp::saturating_from_unix_millis(self.0.load(Ordering::Relaxed))
    }

    fn pause(&self, _: Duration) {
        thread::yield_now();
    }
}

/// The entropy of one thread: each two draws are a word and its complement, so that a secret of
/// two renewals' halves shows.
struct ModelEntropy {
    epoch: Arc<AtomicU32>,
    /// Not modelled, as only its thread uses it.
    drawn: Unmodelled,
    thread: u64,
}

impl Entropy for ModelEntropy {
    fn epoch(&self) -> u32 {
        // As `ThreadEntropy`.
        self.epoch.load(Ordering::Relaxed)
    }

    fn next_u32(&self) -> Result<u32, Error> {
        Err(Error::entropy("the engine draws 64 bits".to_owned()))
    }

    fn next_u64(&self) -> Result<u64, Error> {
        let drawn = self.drawn.fetch_add(1, SeqCst);
        let word = self.thread << 32 | (drawn / 2 + 1);
        Ok(if drawn.is_multiple_of(2) { word } else { !word })
    }

    fn fill(&self, _: &mut [u32]) -> Result<(), Error> {
        Err(Error::entropy("the engine draws 64 bits".to_owned()))
    }
}

/// One call that returned slots.
#[derive(Debug, Clone, Copy)]
struct Call {
    thread: u64,
    slots: Slots,
    count: u64,
    /// The highest end of any call that had returned when this one began.
    floor: u64,
}

impl Call {
    fn end(&self) -> u64 {
        self.slots.first + self.count
    }
}

/// What the threads of a script share.
struct Shared {
    engine: Engine,
    clock: ModelClock,
    epoch: Arc<AtomicU32>,
    policy: Policy,
    /// Not modelled: the scripts' own knowledge must not put an order between the threads that the
    /// engine does not.
    calls: Mutex<Vec<Call>>,
}

impl Shared {
    fn new(policy: Policy) -> Arc<Self> {
        Arc::new(Self {
            engine: Engine::new(),
            clock: ModelClock(AtomicU64::new(START)),
            epoch: Arc::new(AtomicU32::new(1)),
            policy,
            calls: Mutex::new(Vec::new()),
        })
    }

    fn calls(&self) -> std::sync::MutexGuard<'_, Vec<Call>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One thread's view.
struct Worker {
    shared: Arc<Shared>,
    entropy: ModelEntropy,
}

impl Worker {
    fn new(shared: &Arc<Shared>, thread: u64) -> Self {
        Self {
            shared: Arc::clone(shared),
            entropy: ModelEntropy {
                epoch: Arc::clone(&shared.epoch),
                drawn: Unmodelled::new(0),
                thread,
            },
        }
    }

    fn take(&self, count: u64) {
        self.take_of(count, Needs::Secret);
    }

    /// Takes a slot whose key has nothing else: it has to be told from all others by itself, so all
    /// are recorded under one secret.
    fn take_alone(&self) {
        self.take_of(1, Needs::Nothing);
    }

    fn take_of(&self, count: u64, needs: Needs) {
        let shared = &self.shared;
        let floor = shared.calls().iter().map(Call::end).max().unwrap_or(0);
        // One slot as a key's generator claims it: by `take`, if that can.
        let single = (count == 1)
            .then(|| shared.engine.glance(LAYOUT, &shared.clock, needs))
            .flatten();
        let mut slots = single
            .and_then(|snapshot| {
                let epoch = self.entropy.epoch();
                shared.engine.take(LAYOUT, snapshot, epoch, needs)
            })
            .unwrap_or_else(|| {
                let epoch = self.entropy.epoch();
                let policy = &shared.policy;
                shared
                    .engine
                    .reserve(LAYOUT, count, epoch, &shared.clock, &self.entropy, policy)
                    .expect("the policies of the scripts do not fail")
            });
        if needs == Needs::Nothing {
            slots.secret = [0, !0];
        }
        shared.calls().push(Call {
            thread: self.entropy.thread,
            slots,
            count,
            floor,
        });
    }
}

/// Runs the scripts side by side, after `before`, in every way that switches threads unasked at
/// most so often, and hands the calls to `check`.
fn explore<const N: usize>(
    switches: usize,
    policy: Policy,
    before: fn(&Worker),
    scripts: [fn(&Worker); N],
    check: fn(&[Call]),
) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(switches);
    model.check(move || {
        let shared = Shared::new(policy);
        before(&Worker::new(&shared, 0));
        let workers = (1..).zip(scripts).map(|(thread, script)| {
            let worker = Worker::new(&shared, thread);
            thread::spawn(move || script(&worker))
        });
        for worker in workers.collect::<Vec<_>>() {
            worker.join().expect("a script does not panic");
        }
        let calls = shared.calls();
        never_twice(&calls);
        check(&calls);
    });
}

/// What holds whatever happens: whole secrets, and no slot twice under one.
fn never_twice(calls: &[Call]) {
    let mut seen = HashSet::new();
    for call in calls {
        let [word, complement] = call.slots.secret;
        assert_eq!(complement, !word, "a secret of two renewals: {calls:?}");
        for slot in call.slots.first..call.end() {
            assert!(seen.insert((word, slot)), "a slot twice: {calls:?}");
        }
    }
}

/// What holds while no clock is followed: calls rise as they follow each other, over all threads;
/// and a new secret starts a new millisecond, above all of the old one.
fn strictly_rising(calls: &[Call]) {
    for call in calls {
        assert!(call.slots.first >= call.floor, "not in order: {calls:?}");
    }
    let mut ranges: HashMap<u64, (u64, u64)> = HashMap::new();
    for call in calls {
        let (first, _) = LAYOUT.split(call.slots.first);
        let (last, _) = LAYOUT.split(call.end() - 1);
        let range = ranges.entry(call.slots.secret[0]).or_insert((first, last));
        *range = (range.0.min(first), range.1.max(last));
    }
    let mut ranges: Vec<_> = ranges.into_values().collect();
    ranges.sort_unstable();
    for pair in ranges.windows(2) {
        assert!(
            pair[0].1 < pair[1].0,
            "a millisecond of two secrets: {calls:?}"
        );
    }
}

#[test]
fn claims_of_two_threads_rise_and_never_meet() {
    explore(
        SWITCHES,
        Policy::DEFAULT,
        |worker| worker.take(1),
        [
            |worker| {
                worker.take(1);
                worker.take(2);
            },
            |worker| {
                worker.take(2);
                worker.take(1);
            },
        ],
        |calls| {
            strictly_rising(calls);
            let secrets: HashSet<_> = calls.iter().map(|call| call.slots.secret).collect();
            assert_eq!(secrets.len(), 1);
        },
    );
}

#[test]
fn a_clock_that_ticks_under_one_thread_keeps_the_order() {
    explore(
        SWITCHES,
        Policy::DEFAULT,
        |worker| worker.take(1),
        [
            |worker| {
                worker.shared.clock.set(START + 1);
                worker.take(1);
                worker.take(1);
            },
            |worker| {
                worker.take(1);
                worker.take(1);
            },
        ],
        strictly_rising,
    );
}

#[test]
fn two_first_uses_agree_on_one_secret() {
    explore(
        SWITCHES,
        Policy::DEFAULT,
        |_| {},
        [
            |worker| {
                worker.take(1);
                worker.take(1);
            },
            |worker| {
                worker.take(1);
                worker.take(1);
            },
        ],
        |calls| {
            strictly_rising(calls);
            let secrets: HashSet<_> = calls.iter().map(|call| call.slots.secret).collect();
            assert_eq!(secrets.len(), 1, "{calls:?}");
        },
    );
}

#[test]
fn a_renewal_beside_claims_starts_a_new_millisecond() {
    let is_soak = std::env::var_os("ORDID_TEST_SOAK").is_some_and(|value| value == "1");
    explore(
        // Three switches take two minutes.
        if is_soak { SWITCHES } else { 2 },
        Policy::DEFAULT,
        |worker| worker.take(1),
        [
            |worker| {
                worker.take(1);
                worker.shared.clock.set(START + 1);
                worker.take(1);
            },
            |worker| {
                worker.shared.epoch.store(2, Ordering::Relaxed);
                worker.take(1);
                worker.take(1);
            },
        ],
        strictly_rising,
    );
}

/// `ThreadEntropy` may raise the epoch in a process that did not fork, where threads start at once.
/// So a renewal that looks as if a fork had cut it off may be alive.
#[test]
fn a_renewal_taken_over_alive_does_no_harm() {
    explore(
        // Two renewals at once have many more ways: three switches take minutes.
        2,
        Policy::DEFAULT,
        |_| {},
        [
            |worker| worker.take(1),
            |worker| {
                worker.shared.epoch.store(2, Ordering::Relaxed);
                worker.take(1);
                worker.take(1);
            },
        ],
        strictly_rising,
    );
}

#[test]
fn slots_that_need_nothing_rise_over_renewals() {
    explore(
        // Three switches take minutes.
        2,
        Policy::DEFAULT,
        |worker| worker.take_alone(),
        [
            |worker| {
                worker.take_alone();
                worker.shared.clock.set(START + 1);
                worker.take_alone();
            },
            |worker| {
                worker.shared.epoch.store(2, Ordering::Relaxed);
                worker.take_alone();
                worker.take_alone();
            },
        ],
        strictly_rising,
    );
}

#[test]
fn slots_that_need_nothing_rise_over_a_renewal_taken_over_alive() {
    explore(
        // As above.
        2,
        Policy::DEFAULT,
        |_| {},
        [
            |worker| worker.take_alone(),
            |worker| {
                worker.shared.epoch.store(2, Ordering::Relaxed);
                worker.take_alone();
                worker.take_alone();
            },
        ],
        strictly_rising,
    );
}

const FOLLOW: Policy = Policy {
    rollback: Rollback::HoldThenFollow {
        max: Duration::from_millis(10),
    },
    overflow: Overflow::Advance {
        max: Duration::from_millis(10),
    },
};

#[test]
fn a_clock_followed_beside_claims_repeats_nothing() {
    explore(
        SWITCHES,
        FOLLOW,
        |worker| worker.take(1),
        [
            |worker| {
                worker.shared.clock.set(START - 100);
                worker.take(1);
                // Over the same milliseconds again.
                worker.shared.clock.set(START);
                worker.take(1);
            },
            |worker| {
                worker.take(1);
                worker.take(1);
            },
        ],
        |calls| {
            for thread in 1..=2 {
                let of_thread = calls.iter().filter(|call| call.thread == thread);
                assert_eq!(of_thread.count(), 2);
            }
        },
    );
}
