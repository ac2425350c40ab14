use std::{
    collections::HashSet,
    sync::atomic::{AtomicU32, Ordering},
};

use super::*;
use crate::coordination::{MemoryCounter, Ordered, Unordered};

const WAIT: WhenEmpty = WhenEmpty::Wait {
    max: Duration::from_secs(60),
};

fn count(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).unwrap()
}

/// A counter that notes what it was asked for, and fails when told to, or when asked for more than it gives.
struct Noted {
    counter: MemoryCounter,
    most: Option<NonZeroU32>,
    asked: Mutex<Vec<u32>>,
    failing: AtomicU32,
}

impl Noted {
    fn new() -> Arc<Self> {
        Self::of_at_most(None)
    }

    fn of_at_most(most: Option<NonZeroU32>) -> Arc<Self> {
        Arc::new(Self {
            counter: MemoryCounter::starting_at(1),
            most,
            asked: Mutex::default(),
            failing: AtomicU32::new(0),
        })
    }

    fn asked(&self) -> Vec<u32> {
        self.asked.lock().unwrap().clone()
    }
}

impl SegmentSource for Noted {
    type Order = Ordered;

    fn reserve(&self, count: NonZeroU32) -> Result<Segment, Error> {
        self.asked.lock().unwrap().push(count.get());
        let fails = self
            .failing
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
                left.checked_sub(1)
            })
            .is_ok();
        if fails {
            return Err(Error::coordination(
                CoordinationFailure::Unavailable,
                "the store is away",
            ));
        }
        if self.most.is_some_and(|most| count > most) {
            return Err(Error::coordination(
                CoordinationFailure::Mismatch,
                "more than it gives at once",
            ));
        }
        self.counter.reserve(count)
    }

    fn most(&self) -> Option<NonZeroU32> {
        self.most
    }
}

#[test]
fn a_source_is_asked_for_no_more_than_it_gives_at_once() {
    let counter = Noted::of_at_most(Some(count(1_000)));
    let (keys, feeder) = SegmentGenerator::<Ordered>::fed(Steps::DEFAULT, WAIT);
    feeder.start(Arc::clone(&counter)).unwrap();
    for number in 1..=5_000 {
        assert_eq!(keys.try_generate().unwrap().into_raw(), number);
    }
    let batch = keys.reserve(3_500).unwrap();
    assert!(batch.numbers().eq(5_001..=8_500));
    let asked = counter.asked();
    assert!(asked.iter().all(|asked| *asked == 1_000), "{asked:?}");
}

/// A batch that is not waited for is there once the feeder has asked as often as it takes.
#[test]
fn a_feeder_asks_again_for_the_rest_of_a_batch() {
    let counter = Noted::of_at_most(Some(count(10)));
    let (keys, feeder) =
        SegmentGenerator::<Ordered>::fed(Steps::fixed(count(10)), WhenEmpty::Error);
    assert!(keys.reserve(35).is_err());
    feeder.start(Arc::clone(&counter)).unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while keys.left() < 40 {
        assert!(Instant::now() < until, "{:?}", counter.asked());
        thread::yield_now();
    }
    assert!(keys.reserve(35).unwrap().numbers().eq(1..=35));
}

#[test]
fn threads_get_consecutive_numbers_without_repeats() {
    let (keys, feeder) = SegmentGenerator::<Ordered>::fed(Steps::fixed(count(100)), WAIT);
    feeder.start(MemoryCounter::starting_at(1)).unwrap();
    let made: Vec<Vec<i64>> = thread::scope(|scope| {
        let makers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let key = |_| keys.try_generate().unwrap().into_raw();
                    (0..5_000).map(key).collect::<Vec<_>>()
                })
            })
            .collect();
        makers
            .into_iter()
            .map(|maker| maker.join().unwrap())
            .collect()
    });
    for made in &made {
        assert!(made.is_sorted_by(|left, right| left < right));
    }
    let all: HashSet<i64> = made.into_iter().flatten().collect();
    assert_eq!(all, (1..=20_000).collect());
}

#[test]
fn the_next_segment_is_fetched_when_half_of_one_is_left() {
    let source = Noted::new();
    let (keys, feeder) = SegmentGenerator::fed(Steps::fixed(count(10)), WAIT);
    feeder.start(Arc::clone(&source)).unwrap();
    for number in 1..=4 {
        assert_eq!(keys.try_generate().unwrap().into_raw(), number);
    }
    assert_eq!(source.asked(), [10]);
    keys.try_generate().unwrap();
    while keys.left() < 15 {
        thread::yield_now();
    }
    assert_eq!(source.asked(), [10, 10]);
}

#[test]
fn the_step_doubles_while_segments_run_out_early_and_a_batch_is_one_round_trip() {
    let source = Noted::new();
    let steps = Steps {
        min: count(10),
        max: count(40),
        ..Steps::DEFAULT
    };
    let (keys, feeder) = SegmentGenerator::fed(steps, WAIT);
    feeder.start(Arc::clone(&source)).unwrap();
    for number in 1..=200 {
        assert_eq!(keys.try_generate().unwrap().into_raw(), number);
    }
    assert!(
        source.asked().starts_with(&[10, 10, 20, 40, 40]),
        "{:?}",
        source.asked()
    );

    let before = source.asked().len();
    let batch: Vec<i64> = keys
        .reserve(100_000)
        .unwrap()
        .map(|key| key.unwrap().into_raw())
        .collect();
    assert_eq!(batch, (201..=100_200).collect::<Vec<_>>());
    let asked = source.asked();
    let large = asked[before..].iter().filter(|asked| **asked > 40);
    assert_eq!(large.count(), 1, "{asked:?}");
    assert_eq!(keys.try_generate().unwrap().into_raw(), 100_201);

    assert_eq!(steps.after(40, Duration::from_secs(31 * 60)), 20);
    assert_eq!(steps.after(40, Duration::from_secs(20 * 60)), 40);
    assert_eq!(steps.after(10, Duration::from_secs(31 * 60)), 10);
}

/// The numbers of two servers are in no order: a batch does not reach over two segments.
#[test]
fn a_batch_of_tickets_comes_from_one_segment() {
    struct TwoServers(AtomicU32);

    impl SegmentSource for TwoServers {
        type Order = Unordered;

        fn reserve(&self, count: NonZeroU32) -> Result<Segment<Unordered>, Error> {
            // The first server is far ahead of the second.
            let first = match self.0.fetch_add(1, Ordering::SeqCst) {
                0 => 1_000_001,
                turn => i64::from(turn) * 1_000,
            };
            Segment::new(first, count.get(), 2)
        }
    }

    let (keys, feeder) = SegmentGenerator::fed(Steps::fixed(count(10)), WAIT);
    feeder.start(TwoServers(AtomicU32::new(0))).unwrap();
    assert_eq!(keys.try_generate().unwrap().into_raw(), 1_000_001);
    let batch: Vec<i64> = keys
        .reserve(10)
        .unwrap()
        .map(|key| key.unwrap().into_raw())
        .collect();
    assert_eq!(
        batch,
        (0..10).map(|step| 1_000 + 2 * step).collect::<Vec<_>>()
    );
    // What was begun goes on.
    assert_eq!(keys.try_generate().unwrap().into_raw(), 1_000_003);
}

#[test]
fn a_generator_waits_for_a_source_that_recovers_and_fails_if_it_does_not() {
    let source = Noted::new();
    source.failing.store(3, Ordering::SeqCst);
    let (keys, feeder) = SegmentGenerator::fed(Steps::fixed(count(10)), WAIT);
    feeder.start(Arc::clone(&source)).unwrap();
    assert_eq!(keys.try_generate().unwrap().into_raw(), 1);
    assert_eq!(source.asked().len(), 4);

    let brief = WhenEmpty::Wait {
        max: Duration::from_millis(5),
    };
    let source = Noted::new();
    source.failing.store(u32::MAX, Ordering::SeqCst);
    let (keys, feeder) = SegmentGenerator::fed(Steps::fixed(count(10)), brief);
    feeder.start(Arc::clone(&source)).unwrap();
    while source.asked().is_empty() {
        thread::yield_now();
    }
    let error = keys.try_generate().unwrap_err();
    assert_eq!(
        error.to_string(),
        "the store is unavailable: the store is away"
    );
}

#[test]
fn an_exhausted_counter_gives_its_last_numbers_and_then_an_error() {
    let (keys, feeder) = SegmentGenerator::fed(Steps::fixed(count(10)), WAIT);
    let source = MemoryCounter::starting_at(i64::MAX - 15);
    feeder.start(source).unwrap();
    let made: Vec<i64> = (0..10)
        .map(|_| keys.try_generate().unwrap().into_raw())
        .collect();
    assert_eq!(made[0], i64::MAX - 15);
    for _ in 0..2 {
        let error = keys.try_generate().unwrap_err();
        assert_eq!(
            error.coordination_failure(),
            Some(CoordinationFailure::CounterExhausted)
        );
    }
}

#[test]
fn a_feeder_ends_with_its_generator() {
    let source = Noted::new();
    let (keys, feeder) = SegmentGenerator::fed(Steps::fixed(count(10)), WAIT);
    feeder.start(Arc::clone(&source)).unwrap();
    keys.try_generate().unwrap();
    drop(keys);
    while Arc::strong_count(&source) > 1 {
        thread::yield_now();
    }
}

#[test]
fn one_segment_gives_all_its_numbers_and_no_more() {
    let keys = SegmentGenerator::of(Segment::<Ordered>::new(5, 3, 1).unwrap());
    assert!(keys.reserve(4).is_err());
    assert!(
        keys.generate_at(Timestamp::MIN)
            .unwrap_err()
            .is_unsupported()
    );
    let mut made = Vec::new();
    keys.try_fill_with(3, |key| made.push(key.into_raw()))
        .unwrap();
    assert_eq!(made, [5, 6, 7]);
    assert_eq!(
        keys.try_generate().unwrap_err().to_string(),
        "the store is unavailable: all reserved numbers are used; reserve more"
    );
}

/// An epoch may rise where no process was forked: a thread was not let run while others came first.
#[test]
fn numbers_are_refused_only_after_a_real_fork() {
    let mut keys = SegmentGenerator::of(Segment::<Ordered>::new(5, 4, 1).unwrap());
    keys.owner.epoch += 1;
    assert_eq!(keys.try_generate().unwrap().into_raw(), 5);
    let mut batch = keys.reserve(2).unwrap();
    assert_eq!(batch.next().unwrap().unwrap().into_raw(), 6);

    keys.owner.process.id += 1;
    assert!(keys.try_generate().unwrap_err().is_forked());
    assert!(keys.reserve(1).unwrap_err().is_forked());
    batch.owner.process.id += 1;
    assert!(batch.next().unwrap().unwrap_err().is_forked());
}

/// On a runtime of one thread that runs both: nothing blocks.
#[test]
fn a_future_feeds_when_it_is_woken() {
    use std::{
        pin::pin,
        task::{Context, Wake},
    };

    struct Woken(AtomicU32);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    struct Ready(MemoryCounter);

    impl AsyncSegmentSource for Ready {
        type Order = Ordered;

        async fn reserve(&self, count: NonZeroU32) -> Result<Segment, Error> {
            self.0.reserve(count)
        }
    }

    let (keys, feeder) = SegmentGenerator::fed(Steps::fixed(count(10)), WhenEmpty::Error);
    assert!(keys.try_generate().is_err());
    let source = Ready(MemoryCounter::starting_at(1));
    let mut running = pin!(feeder.run(&source, |_| std::future::ready(())));
    let woken = Arc::new(Woken(AtomicU32::new(0)));
    let waker = Waker::from(Arc::clone(&woken));
    let mut context = Context::from_waker(&waker);
    assert!(running.as_mut().poll(&mut context).is_pending());
    for number in 1..=4 {
        assert_eq!(keys.try_generate().unwrap().into_raw(), number);
    }
    assert_eq!(woken.0.load(Ordering::SeqCst), 0);
    keys.try_generate().unwrap();
    assert_eq!(woken.0.load(Ordering::SeqCst), 1);
    assert!(running.as_mut().poll(&mut context).is_pending());
    assert_eq!(keys.left(), 15);
    drop(keys);
    assert_eq!(woken.0.load(Ordering::SeqCst), 2);
    assert!(running.as_mut().poll(&mut context).is_ready());
}
