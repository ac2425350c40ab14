use std::time::Duration;

use super::{slot_layout::MIN_PAUSES, *};
use crate::{
    clock::{ManualClock, SystemClock, TimeScale, Timestamp},
    entropy::SeededEntropy,
};

/// Of dense version 7.
const LAYOUT: &SlotLayout = &SlotLayout {
    scale: TimeScale::UNIX_MILLIS,
    tick_bits: 48,
    index_bits: 20,
    fraction_bits: 0,
};

const START: u64 = 1_645_557_742_000;

const ADVANCE: Overflow = Overflow::Advance {
    max: Duration::from_secs(10),
};

fn policy(rollback: Rollback, overflow: Overflow) -> Policy {
    Policy { rollback, overflow }
}

fn hold_then_error(overflow: Overflow) -> Policy {
    policy(
        Rollback::HoldThenError {
            max: Duration::from_secs(10),
        },
        overflow,
    )
}

struct Script {
    engine: Engine,
    clock: ManualClock,
    entropy: SeededEntropy,
    policy: Policy,
}

impl Script {
    fn new(policy: Policy) -> Self {
        Self {
            engine: Engine::new(),
            clock: ManualClock::at_unix_millis(START),
            entropy: SeededEntropy::new(1),
            policy,
        }
    }

    fn try_take(&self, count: u64) -> Result<Slots, Error> {
        self.engine.reserve(
            LAYOUT,
            count,
            self.entropy.epoch(),
            &self.clock,
            &self.entropy,
            &self.policy,
        )
    }

    /// Milliseconds after the start, and index, of the first slot.
    fn take(&self, count: u64) -> (i64, u64) {
        let (millis, index) = LAYOUT.split(self.try_take(count).unwrap().first);
        (
            i64::try_from(millis).unwrap() - i64::try_from(START).unwrap(),
            index,
        )
    }

    fn set(&self, after_start: i64) {
        self.clock
            .set_unix_millis(START.checked_add_signed(after_start).unwrap());
    }
}

#[test]
fn slots_count_up_inside_a_millisecond_and_start_again_in_the_next() {
    let script = Script::new(Policy::DEFAULT);
    assert_eq!(
        [
            script.take(1),
            script.take(1),
            script.take(5),
            script.take(1)
        ],
        [(0, 0), (0, 1), (0, 2), (0, 7)]
    );
    script.set(1);
    assert_eq!(script.take(1), (1, 0));
}

#[test]
fn rollback_within_the_bound_holds_the_time() {
    for back in [1, 1_000, 10_000] {
        let script = Script::new(hold_then_error(ADVANCE));
        assert_eq!(script.take(1), (0, 0));
        script.set(-back);
        assert_eq!(
            [script.take(1), script.take(1)],
            [(0, 1), (0, 2)],
            "{back} ms back"
        );
        assert_eq!(script.engine.events().clock_followed, 0);
    }
}

#[test]
fn rollback_beyond_the_bound_is_an_error_that_names_both() {
    for back in [10_001, 8 * 3_600_000, 365 * 86_400_000] {
        let script = Script::new(hold_then_error(ADVANCE));
        script.take(1);
        script.set(-back);
        let error = script.try_take(1).unwrap_err();
        assert!(error.is_clock());
        assert!(
            error
                .to_string()
                .starts_with(&format!("the clock is {back} ms behind"))
        );
        // Nothing is lost: when the clock is back, order goes on.
        script.set(0);
        assert_eq!(script.take(1), (0, 1));
    }
}

#[test]
fn rollback_beyond_the_bound_is_followed_under_a_new_secret() {
    for back in [10_001, 8 * 3_600_000, 365 * 86_400_000] {
        let script = Script::new(Policy::DEFAULT);
        let before = script.try_take(3).unwrap();
        script.set(-back);
        assert_eq!(script.take(1), (-back, 0));
        let after = script.try_take(1).unwrap();
        assert_ne!(before.secret, after.secret);
        assert_eq!(script.engine.events().clock_followed, 1);
        // The time that comes a second time has another start than before.
        script.set(0);
        assert_eq!(script.take(1), (0, 0));
    }
}

#[test]
fn a_full_millisecond_carries_into_the_next_one() {
    let script = Script::new(Policy::DEFAULT);
    script.clock.freeze();
    assert_eq!(script.take(LAYOUT.slots() - 1), (0, 0));
    assert_eq!(
        [script.take(1), script.take(1)],
        [(0, LAYOUT.slots() - 1), (1, 0)]
    );
    assert_eq!(
        script.engine.events(),
        Events {
            renewals: 1,
            ..Events::default()
        }
    );
}

#[test]
fn overflow_error_refuses_until_the_clock_moves() {
    let script = Script::new(hold_then_error(Overflow::Error));
    script.take(LAYOUT.slots());
    let error = script.try_take(1).unwrap_err();
    assert!(error.is_overflow());
    assert_eq!(
        error.to_string(),
        format!(
            "the counter of millisecond {START} is used up and the overflow policy does not go on"
        )
    );
    script.set(1);
    assert_eq!(script.take(1), (1, 0));
}

#[test]
fn overflow_wait_waits_for_the_clock() {
    let script = Script::new(hold_then_error(Overflow::Wait));
    script.take(LAYOUT.slots());
    // The manual clock moves on by what it is waited for.
    assert_eq!(script.take(1), (1, 0));
    assert_eq!(script.engine.events().counter_waits, 1);
}

/// All have read the last slots of a millisecond. Those that come later claim some of the next, and give them up: the clock has
/// not stepped back.
#[test]
fn threads_that_meet_at_the_end_of_a_millisecond_run_over_it() {
    let rollbacks = [
        Rollback::ERROR,
        hold_then_error(ADVANCE).rollback,
        Rollback::WaitThenError {
            max: Duration::from_millis(1),
        },
    ];
    for rollback in rollbacks {
        for overflow in [Overflow::Error, Overflow::Wait] {
            for (left, count) in [(1, 1), (3, 2), (3, 3)] {
                let script = Script::new(policy(rollback, overflow));
                script.take(LAYOUT.slots() - left);
                let epoch = script.entropy.epoch();
                let seen = [(); 3].map(|()| script.engine.snapshot(LAYOUT, &script.clock).unwrap());
                let claimed = seen.map(|snapshot| match count {
                    1 => script.engine.take(LAYOUT, snapshot, epoch, Needs::Secret),
                    _ => script
                        .engine
                        .reserve_from(LAYOUT, snapshot, count, epoch, &script.policy),
                });
                assert_eq!(claimed.map(|it| it.is_some()), [true, false, false]);
                for _ in count..left {
                    script.take(1);
                }
                if overflow == Overflow::Error {
                    let error = script.try_take(1).unwrap_err();
                    assert!(error.is_overflow(), "{rollback:?}: {error}");
                    script.set(1);
                }
                // Single slots are given up, and several are claimed together or not at all.
                let given_up = if count == 1 { 2 } else { 0 };
                assert_eq!(script.take(1), (1, given_up), "{rollback:?}");
                // From here on a step back is one.
                script.set(0);
                match script.try_take(1) {
                    Ok(_) => assert_ne!(rollback, Rollback::ERROR),
                    Err(error) => assert!(error.is_clock(), "{error}"),
                }
            }
        }
    }
}

#[test]
fn threads_that_use_a_millisecond_up_wait_and_do_not_fail() {
    let layout = &SlotLayout {
        index_bits: 4,
        ..*LAYOUT
    };
    let engine = Engine::new();
    let policy = policy(Rollback::ERROR, Overflow::Wait);
    let entropy = SeededEntropy::new(1);
    std::thread::scope(|scope| {
        for count in [1, 1, 3, 5, 9, 9, 9, 16] {
            let (engine, policy, entropy) = (&engine, &policy, &entropy);
            scope.spawn(move || {
                for _ in 0..60 {
                    let clock = &SystemClock;
                    let claimed =
                        engine.reserve(layout, count, entropy.epoch(), clock, entropy, policy);
                    claimed.unwrap();
                }
            });
        }
    });
}

/// A step of milliseconds may lead into the unit before.
#[test]
fn short_steps_are_held_by_layouts_with_long_units() {
    let layout = &SlotLayout {
        scale: TimeScale::ticks_per_millis(1, 60_000, 0),
        ..*LAYOUT
    };
    let minute = START / 60_000 * 60_000;
    let clock = ManualClock::at_unix_millis(minute + 2);
    let (engine, entropy, policy) = (
        Engine::new(),
        SeededEntropy::new(1),
        hold_then_error(ADVANCE),
    );
    let take = || engine.reserve(layout, 1, entropy.epoch(), &clock, &entropy, &policy);
    let first = take().unwrap().first;
    clock.set_unix_millis(minute - 3);
    assert_eq!(take().unwrap().first, first + 1);
    clock.set_unix_millis(minute - 60_001);
    assert!(take().unwrap_err().is_clock());
}

#[test]
fn overflow_wait_gives_up_on_a_clock_that_stands_still() {
    let script = Script::new(hold_then_error(Overflow::Wait));
    script.clock.freeze();
    script.take(LAYOUT.slots());
    assert!(script.try_take(1).unwrap_err().is_overflow());
    assert_eq!(script.engine.events().counter_waits, MIN_PAUSES);
}

#[test]
fn overflow_advance_ends_at_the_bound() {
    let script = Script::new(hold_then_error(ADVANCE));
    script.clock.freeze();
    for _ in 0..=10_000 {
        script.take(LAYOUT.slots());
    }
    assert!(script.try_take(1).unwrap_err().is_overflow());
    script.set(1);
    assert_eq!(script.take(1), (10_001, 0));
}

#[test]
fn a_held_rollback_works_with_the_wait_policy() {
    let script = Script::new(hold_then_error(Overflow::Wait));
    script.take(1);
    script.set(-5);
    assert_eq!([script.take(1), script.take(10)], [(0, 1), (0, 2)]);
}

/// No key may carry a later time than the clock's.
fn wait_then_error(max: Duration) -> Policy {
    policy(Rollback::WaitThenError { max }, Overflow::Wait)
}

#[test]
fn a_rollback_is_waited_for_up_to_the_bound() {
    for back in [1, 1_000, 10_000] {
        let script = Script::new(wait_then_error(Duration::from_secs(10)));
        assert_eq!(script.take(1), (0, 0));
        script.set(-back);
        // The pauses move the clock on; the key comes when it is back at the newest one's time.
        assert_eq!(script.take(1), (0, 1), "{back} ms back");
        assert_eq!(script.engine.events().clock_waits, back.unsigned_abs());
        assert_eq!(script.clock.now().as_unix_millis(), START);
    }
}

#[test]
fn a_rollback_beyond_the_bound_fails_without_a_wait() {
    for back in [10_001, 8 * 3_600_000, 365 * 86_400_000] {
        let script = Script::new(wait_then_error(Duration::from_secs(10)));
        script.take(1);
        script.set(-back);
        let error = script.try_take(1).unwrap_err();
        assert!(error.is_clock(), "{error}");
        assert_eq!(script.engine.events().clock_waits, 0);
        script.set(0);
        assert_eq!(script.take(1), (0, 1));
    }
}

#[test]
fn waiting_for_a_stopped_clock_ends_with_an_error() {
    let script = Script::new(wait_then_error(Duration::from_millis(50)));
    script.take(1);
    script.set(-20);
    script.clock.freeze();
    assert!(script.try_take(1).unwrap_err().is_clock());
    // After 31 pauses the 20 ms that are left no longer fit the 50.
    assert_eq!(script.engine.events().clock_waits, 31);
}

#[test]
fn with_rollback_error_every_step_back_is_an_error() {
    let script = Script::new(policy(Rollback::ERROR, Overflow::Wait));
    assert_eq!([script.take(1), script.take(1)], [(0, 0), (0, 1)]);
    script.set(-1);
    let error = script.try_take(1).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the clock is 1 ms behind the newest key, more than the 0 ms that the rollback policy holds"
    );
    script.set(0);
    assert_eq!(script.take(1), (0, 2));
}

#[test]
fn the_counter_advances_up_to_its_own_bound() {
    let advance = |millis| Overflow::Advance {
        max: Duration::from_millis(millis),
    };
    // What the counter borrowed is held although the rollback policy holds nothing.
    let script = Script::new(policy(Rollback::ERROR, advance(2)));
    script.clock.freeze();
    for _ in 0..3 {
        script.take(LAYOUT.slots());
    }
    assert!(script.try_take(1).unwrap_err().is_overflow());
    script.set(1);
    assert_eq!([script.take(1), script.take(1)], [(3, 0), (3, 1)]);
    assert!(
        script
            .try_take(4 * LAYOUT.slots())
            .unwrap_err()
            .is_overflow()
    );
}

#[test]
fn after_a_clock_that_read_2100_keys_follow_the_corrected_clock() {
    const TO_2100: i64 = 4_102_444_800_000 - 1_645_557_742_000;
    let script = Script::new(Policy::DEFAULT);
    script.take(1);
    script.set(TO_2100);
    assert_eq!(script.take(1), (TO_2100, 0));
    script.set(1);
    assert_eq!([script.take(1), script.take(1)], [(1, 0), (1, 1)]);
    assert_eq!(script.engine.events().clock_followed, 1);

    // The policies that do not follow say so until somebody starts a new generator.
    for policy in [
        hold_then_error(ADVANCE),
        wait_then_error(Duration::from_secs(10)),
        policy(Rollback::ERROR, Overflow::Wait),
    ] {
        let script = Script::new(policy);
        script.take(1);
        script.set(TO_2100);
        script.take(1);
        script.set(1);
        assert!(script.try_take(1).unwrap_err().is_clock(), "{policy:?}");
    }
}

#[test]
fn a_start_above_is_above_the_whole_millisecond() {
    for overflow in [ADVANCE, Overflow::Wait] {
        let script = Script::new(hold_then_error(overflow));
        script.engine.start_above(LAYOUT, START + 5, true);
        assert_eq!(script.engine.events().counter_waits, 0);
        // One more, because the first key of a process draws its secret in a new millisecond.
        assert!(script.take(1) > (5, LAYOUT.slots() - 1));
        // It never goes back.
        script.engine.start_above(LAYOUT, START, true);
        assert!(script.take(1) > (5, LAYOUT.slots() - 1));
    }
}

#[test]
fn what_the_policy_holds_is_held_from_the_first_key_on_and_in_a_child() {
    for overflow in [Overflow::Error, Overflow::Wait] {
        let script = Script::new(hold_then_error(overflow));
        script.clock.freeze();
        script.engine.start_above(LAYOUT, START + 5_000, true);
        assert_eq!([script.take(1), script.take(1)], [(5_002, 1), (5_002, 2)]);
        script.entropy.fork();
        assert_eq!(script.take(1), (5_003, 1));
    }
}

/// The last bits of a slot with a fraction: the clock's nanoseconds decide.
#[test]
fn fractions_are_part_of_now() {
    let layout = SlotLayout {
        scale: TimeScale::ticks_per_millis(4_096, 1, 0),
        tick_bits: 60,
        index_bits: 20,
        fraction_bits: 12,
    };
    let clock = ManualClock::at_unix_millis(START);
    clock.set_nanos(999_999);
    assert_eq!(
        layout.split(layout.now(&clock).unwrap()),
        (START, 4_095 << 8)
    );
    // A clock that says more nanoseconds than a millisecond has stays in the millisecond.
    clock.set_nanos(u32::MAX);
    assert_eq!(
        layout.split(layout.now(&clock).unwrap()),
        (START, 4_095 << 8)
    );
}

#[test]
fn reservations_cross_milliseconds_and_are_bounded() {
    let script = Script::new(Policy::DEFAULT);
    script.clock.freeze();
    assert_eq!(script.take(3 * LAYOUT.slots() + 7), (0, 0));
    assert_eq!(script.take(1), (3, 7));
    let error = script.try_take(10_001 * LAYOUT.slots()).unwrap_err();
    assert!(error.is_overflow());
    assert_eq!(
        error.to_string(),
        "cannot reserve 10486808576 keys at once: at most 10485760000 may be ahead of the clock; \
         reserve in several calls"
    );
    assert!(script.try_take(u64::MAX).unwrap_err().is_overflow());
    assert_eq!(script.take(1), (3, 8));
}

#[test]
fn a_fork_renews_the_secret_and_keeps_the_order() {
    let script = Script::new(Policy::DEFAULT);
    let parent = script.try_take(5).unwrap();
    script.entropy.fork();
    let child = script.try_take(1).unwrap();
    assert!(child.first > parent.first + 4);
    assert_ne!(child.secret, parent.secret);
    assert_ne!(child.epoch, parent.epoch);
    assert_eq!(script.engine.events().renewals, 2);
}

#[test]
fn a_child_finishes_a_renewal_that_the_fork_interrupted() {
    let script = Script::new(Policy::DEFAULT);
    script.take(1);
    // The parent's thread is inside `renew` when another thread forks: the child finds it busy.
    let stuck = script.engine.renewed.0.version.load(Ordering::SeqCst) | 1;
    script
        .engine
        .renewed
        .0
        .version
        .store(stuck, Ordering::SeqCst);
    script.entropy.fork();
    // A time that is held: it waits for no clock.
    assert_eq!(script.take(1), (1, 1));
}

#[test]
fn at_the_end_of_time_the_policy_decides_between_an_error_and_a_restart() {
    let end = (LAYOUT.max_time() + 1) << LAYOUT.index_bits;
    let script = Script::new(hold_then_error(ADVANCE));
    script
        .clock
        .set_unix_millis(Timestamp::MAX.as_unix_millis());
    assert_eq!(
        script.try_take(1).unwrap().first,
        LAYOUT.max_time() << LAYOUT.index_bits
    );
    script.engine.state.0.store(end, Ordering::SeqCst);
    assert!(script.try_take(1).unwrap_err().is_clock());

    let script = Script::new(Policy::DEFAULT);
    script
        .clock
        .set_unix_millis(Timestamp::MAX.as_unix_millis());
    script.take(1);
    script.engine.state.0.store(end, Ordering::SeqCst);
    assert_eq!(
        script.try_take(1).unwrap().first,
        LAYOUT.max_time() << LAYOUT.index_bits
    );
    assert_eq!(script.engine.events().clock_followed, 1);
}

#[test]
fn a_reservation_that_passes_the_end_of_time_is_an_error() {
    for policy in [Policy::DEFAULT, hold_then_error(ADVANCE)] {
        let script = Script::new(policy);
        script
            .clock
            .set_unix_millis(Timestamp::MAX.as_unix_millis());
        let (answer, ended) = std::sync::mpsc::channel();
        // On a thread, so that an endless loop fails the test.
        std::thread::spawn(move || {
            let too_many = script.try_take(LAYOUT.slots() + 1);
            answer.send((too_many, script.try_take(LAYOUT.slots())))
        });
        let (too_many, all) = ended.recv_timeout(Duration::from_secs(60)).unwrap();
        assert!(too_many.unwrap_err().is_clock());
        assert_eq!(all.unwrap().first, LAYOUT.max_time() << LAYOUT.index_bits);
    }
}

/// Threads that jump between clocks: one reads a second ahead, one a second behind.
#[test]
fn threads_with_different_clocks_share_one_order() {
    let engine = Engine::new();
    let entropy = SeededEntropy::new(3);
    let clocks = [0, 1_000, 2_000, 500].map(|ahead| ManualClock::at_unix_millis(START + ahead));
    let slots = of_threads(&clocks, |clock| {
        let next = |_| take(&engine, clock, &entropy).first;
        let slots: Vec<u64> = (0..20_000).map(next).collect();
        assert!(slots.is_sorted_by(|a, b| a < b));
        slots
    });
    assert_eq!(slots.len(), 80_000);
}

/// What each worker's thread gets, sorted, and each slot once.
fn of_threads<W: Sync, S: Ord + Send>(workers: &[W], work: impl Fn(&W) -> Vec<S> + Sync) -> Vec<S> {
    let work = &work;
    let mut slots: Vec<S> = std::thread::scope(|scope| {
        let start = |worker| scope.spawn(move || work(worker));
        let threads: Vec<_> = workers.iter().map(start).collect();
        let slots = threads.into_iter().map(|thread| thread.join().unwrap());
        slots.flatten().collect()
    });
    slots.sort_unstable();
    slots.dedup();
    slots
}

fn take(engine: &Engine, clock: &impl Clock, entropy: &SeededEntropy) -> Slots {
    let epoch = entropy.epoch();
    engine
        .reserve(LAYOUT, 1, epoch, clock, entropy, &Policy::DEFAULT)
        .unwrap()
}

/// A clock that jumps by a minute, forth and back, at every thousandth reading.
struct Jumping(AtomicU64);

impl Clock for Jumping {
    fn now(&self) -> Timestamp {
        let readings = self.0.fetch_add(1, Ordering::Relaxed);
        let ahead = readings / 1_000 % 2 * 60_000;
        Timestamp::saturating_from_unix_millis(START + ahead)
    }
}

/// While the clock jumps back by more than the bound, again and again under three threads, no slot
/// is given out twice under one secret.
#[test]
fn no_slot_repeats_while_the_clock_is_followed() {
    let engine = Engine::new();
    let entropy = SeededEntropy::new(4);
    let clock = Jumping(AtomicU64::new(0));
    let take = |_| {
        let slots = take(&engine, &clock, &entropy);
        (slots.secret, slots.first)
    };
    let slots = of_threads(&[(); 3], |()| (0..50_000).map(take).collect());
    assert_eq!(slots.len(), 150_000);
    assert!(engine.events().clock_followed >= 50);
}

#[test]
fn a_slot_counts_as_ahead_only_after_the_clocks_unit_of_time() {
    let fine = &SlotLayout {
        index_bits: 20,
        fraction_bits: 12,
        ..*LAYOUT
    };
    // The first and the last slot of a unit of time, and the one after.
    for (layout, unit, tick) in [
        (LAYOUT, 5, 5),
        (fine, 5, 5 << 12),
        (fine, 5, (5 << 12) + 77),
    ] {
        let first = unit << layout.index_bits;
        let next = (unit + 1) << layout.index_bits;
        let found = [first - 1, first, next - 1, next].map(|slot| layout.is_ahead(slot, tick));
        assert_eq!(found, [false, false, false, true], "{layout:?}");
    }
}
