use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use super::*;
use crate::{
    clock::ManualClock,
    coordination::{LeaseTerms, MemoryNodes, NodeAllocator},
    entropy::{SeededEntropy, ThreadEntropy},
    scheme::{
        Layout as _, Snowflake,
        snowflake::{BaiduUid, Sonyflake},
    },
};

const START: u64 = 1_800_000_000_000;

fn at(millis: u64) -> Timestamp {
    Timestamp::saturating_from_unix_millis(START + millis)
}

fn grant(node: u64, epoch: u64, floor: u64, ceiling: u64) -> Grant {
    Grant::new(node, epoch, at(floor), at(ceiling)).unwrap()
}

type Scripted<S = Snowflake> = GrantedGenerator<S, ManualClock, SeededEntropy>;

fn scripted(grant: Grant, millis: u64) -> Scripted {
    Scripted::new(
        grant,
        ManualClock::at_unix_millis(START + millis),
        SeededEntropy::new(1),
        Policy::DEFAULT,
        AtCeiling::Error,
    )
    .unwrap()
}

/// Node and milliseconds since `START`.
fn parts(key: i64) -> (u64, u64) {
    let parts = <Snowflake>::unpack(&key).unwrap();
    let millis = <Snowflake as crate::key::Scheme>::timestamp(&key).unwrap();
    (parts.node, millis.as_unix_millis() - START)
}

fn key(keys: &Scripted) -> Result<i64, Error> {
    keys.try_generate().map(Generated::into_raw)
}

#[track_caller]
fn assert_expired<T: fmt::Debug>(result: Result<T, Error>) {
    let failure = result.unwrap_err().coordination_failure();
    assert_eq!(failure, Some(CoordinationFailure::Expired));
}

#[test]
fn keys_stop_at_the_ceiling_and_continue_after_the_renewal() {
    let keys = scripted(grant(7, 1, 0, 100), 0);
    let mut last = -1;
    for millis in 0..100 {
        keys.clock().set_unix_millis(START + millis);
        let key = key(&keys).unwrap();
        assert_eq!(parts(key), (7, millis));
        assert!(key > last);
        last = key;
    }
    for late in [100, 101, 3_600_000] {
        keys.clock().set_unix_millis(START + late);
        assert_expired(key(&keys));
        assert_expired(keys.reserve(1).map(|_| ()));
        assert_expired(keys.try_fill_with(3, |_| panic!("a key of no grant")));
    }
    // An hour ahead took nothing with it.
    keys.clock().set_unix_millis(START + 100);
    keys.renew(grant(7, 1, 0, 200)).unwrap();
    assert_eq!(parts(key(&keys).unwrap()), (7, 100));
}

/// One reservation of them is refused: it takes up to a unit of time more than it fills.
#[test]
fn a_fill_may_take_nearly_all_of_a_grant() {
    let keys = scripted(grant(7, 1, 0, 3), 0);
    keys.clock().freeze();
    assert!(keys.reserve(12_000).is_err());
    let mut made = Vec::new();
    let filled = keys.try_fill_with(12_000, |key| made.push(key.into_raw()));
    filled.unwrap();
    assert_eq!(made.len(), 12_000);
    assert!(made.is_sorted_by(|one, next| one < next));
    assert_expired(keys.try_fill_with(1_000, |_| ()));
}

#[test]
fn keys_begin_at_a_floor_that_is_ahead_of_the_clock() {
    let keys = scripted(grant(7, 1, 2_500, 5_500), 0);
    assert_eq!(parts(key(&keys).unwrap()), (7, 2_500));
    let too_far = <Scripted>::new(
        grant(7, 1, 10_001, 20_000),
        ManualClock::at_unix_millis(START),
        SeededEntropy::new(1),
        Policy::DEFAULT,
        AtCeiling::Error,
    );
    assert!(too_far.unwrap_err().is_clock());
}

#[test]
fn keys_of_another_node_are_above_the_earlier_ones() {
    let keys = scripted(grant(900, 1, 0, 100), 50);
    let before = key(&keys).unwrap();
    let newest = keys.newest().unwrap();
    assert_eq!(newest, at(50));
    // What an allocator makes of it: above the newest, however old the node's own ceiling is.
    let terms = LeaseTerms::new(0..4).unwrap();
    let (floor, ceiling) = terms
        .range(Some(at(3)), at(50), Some(newest), None)
        .unwrap();
    keys.renew(Grant::new(3, 8, floor, ceiling).unwrap())
        .unwrap();
    let after = key(&keys).unwrap();
    assert_eq!(parts(after), (3, 51));
    assert!(after > before);
}

#[test]
fn keys_of_a_lower_node_are_above_those_made_during_the_acquire() {
    let keys = scripted(grant(900, 1, 0, 100), 50);
    key(&keys).unwrap();
    let newest = keys.newest().unwrap();
    let (floor, ceiling) = LeaseTerms::new(0..4)
        .unwrap()
        .range(None, at(50), Some(newest), None)
        .unwrap();
    assert_eq!(floor, at(51));
    // The store takes its time to answer, and keys go on.
    keys.clock().set_unix_millis(START + 60);
    let before = key(&keys).unwrap();
    keys.renew(Grant::new(3, 8, floor, ceiling).unwrap())
        .unwrap();
    let after = key(&keys).unwrap();
    assert_eq!(parts(after), (3, 61));
    assert!(after > before);
    // So long that nothing is left of a short grant: it is no time, and the next one is.
    keys.clock().set_unix_millis(START + 70);
    let before = key(&keys).unwrap();
    keys.renew(grant(2, 1, 62, 71)).unwrap();
    assert_expired(key(&keys));
    keys.renew(grant(2, 1, 62, 100)).unwrap();
    let after = key(&keys).unwrap();
    assert_eq!(parts(after), (2, 71));
    assert!(after > before);
}

#[test]
fn a_full_last_millisecond_does_not_pass_the_ceiling() {
    let keys = scripted(grant(7, 1, 0, 2), 1);
    keys.clock().freeze();
    let made = (0..10_000).map_while(|_| key(&keys).ok()).count();
    assert_eq!(made, 4_096);
    // What failed used nothing up: the clock is where the next millisecond begins.
    assert_eq!(keys.newest().unwrap(), at(2));
    keys.renew(grant(7, 1, 0, 10)).unwrap();
    keys.clock().set_unix_millis(START + 2);
    assert_eq!(parts(key(&keys).unwrap()), (7, 2));
}

#[test]
fn a_batch_that_does_not_fit_the_range_claims_nothing() {
    let keys = scripted(grant(7, 1, 0, 10), 0);
    let error = keys.reserve(40_961).unwrap_err();
    assert!(error.is_overflow(), "{error}");
    assert_expired({
        keys.clock().set_unix_millis(START + 8);
        keys.reserve(4_097).map(|_| ())
    });
    let reserved = keys.reserve(4_000).unwrap();
    let keys_of: Vec<i64> = reserved.map(|key| key.unwrap().into_raw()).collect();
    assert_eq!(keys_of.len(), 4_000);
    assert!(keys_of.is_sorted_by(|left, right| left < right));
    assert!(keys_of.iter().all(|key| parts(*key).1 < 10));
}

/// A renewal keeps the floor, so the range grows by what is over.
#[test]
fn a_batch_that_no_renewal_has_time_for_is_too_large() {
    let keys = scripted(grant(7, 1, 0, 10), 0);
    for renewal in 1..=20 {
        keys.clock().set_unix_millis(START + 5 * renewal);
        keys.renew(grant(7, 1, 0, 5 * renewal + 10)).unwrap();
    }
    // Ten milliseconds at hand, in which a batch begins one that it does not fill.
    let most = 9 * 4_096 - 1;
    let error = keys.reserve(most + 1).unwrap_err();
    assert!(error.is_overflow(), "{error}");
    assert!(error.to_string().contains(&format!("{most}")), "{error}");
    assert_eq!(keys.reserve(most).unwrap().count(), most);
}

#[test]
fn reserved_keys_stay_good_when_the_grant_is_over() {
    let keys = scripted(grant(7, 1, 0, 10), 5);
    let mut reserved = keys.reserve(2).unwrap();
    keys.clock().set_unix_millis(START + 3_000);
    assert_eq!(parts(reserved.next().unwrap().unwrap().into_raw()), (7, 5));
    // And whoever gives the node back counts them.
    let (closed, newest) = keys.close();
    assert_eq!((closed, newest), (grant(7, 1, 0, 10), Some(at(5))));
    assert_eq!(keys.close(), keys.closed().unwrap());
    assert_expired(key(&keys));
    assert!(reserved.next().unwrap().is_ok());
}

/// An epoch may rise where no process was forked: a thread was not let run while others came first.
#[test]
fn reserved_keys_are_refused_only_after_a_real_fork() {
    let keys = scripted(grant(7, 1, 0, 10), 5);
    let mut reserved = keys.reserve(2).unwrap();
    keys.keys.entropy().fork();
    assert_eq!(parts(reserved.next().unwrap().unwrap().into_raw()), (7, 5));
    // Its secret is renewed, at the price of a millisecond.
    assert_eq!(parts(key(&keys).unwrap()), (7, 6));
}

#[test]
fn a_closed_generator_refuses_a_new_grant_but_releases_it() {
    let keys = scripted(grant(7, 1, 0, 10), 5);
    keys.close();
    let error = keys.renew(grant(7, 1, 0, 20)).unwrap_err();
    assert_eq!(
        error.coordination_failure(),
        Some(CoordinationFailure::Fenced)
    );
    assert_eq!(keys.closed().unwrap().0, grant(7, 1, 0, 20));
    assert_expired(key(&keys));
}

#[test]
fn renew_refuses_a_lower_ceiling_and_an_unknown_node() {
    let keys = scripted(grant(7, 1, 0, 100), 50);
    let error = keys.renew(grant(7, 1, 0, 99)).unwrap_err();
    assert_eq!(
        error.coordination_failure(),
        Some(CoordinationFailure::Fenced)
    );
    let error = keys.renew(grant(1_024, 2, 0, 200)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "not what was asked for: scheme snowflake has no node 1024: narrow the nodes of the terms"
    );
    assert_eq!(parts(key(&keys).unwrap()), (7, 50));
}

#[test]
fn waiting_at_the_ceiling_ends_with_the_renewal_or_an_error() {
    let keys = <Scripted>::new(
        grant(7, 1, 0, 100),
        ManualClock::at_unix_millis(START + 100),
        SeededEntropy::new(1),
        Policy::DEFAULT,
        AtCeiling::Wait {
            max: Duration::from_millis(20),
        },
    );
    // It begins where a slow acquisition has left it: past its ceiling.
    let keys = keys.unwrap();
    assert_expired(key(&keys));
    assert_eq!(keys.clock().now(), at(120));
    // A clock that comes back is time again; the last millisecond was asked for already.
    keys.clock().set_unix_millis(START + 90);
    assert_eq!(parts(key(&keys).unwrap()), (7, 99));
}

#[test]
fn the_error_of_an_expired_grant_says_why_it_was_not_renewed() {
    let keys = scripted(grant(7, 3, 0, 100), 100);
    let error = key(&keys).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the lease has expired: node 7 (grant 3), 1800000000000 to below 1800000000100 ms: it was \
         not renewed in time"
    );
    keys.not_renewed(Error::coordination(
        CoordinationFailure::Unavailable,
        "port 6379 is closed",
    ));
    assert!(
        key(&keys)
            .unwrap_err()
            .to_string()
            .ends_with("it was not renewed: the store is unavailable: port 6379 is closed")
    );
}

#[test]
fn the_error_of_keys_that_ran_ahead_says_how_many_a_node_has() {
    let keys = scripted(grant(7, 3, 0, 100), 98);
    keys.clock().freeze();
    let error = loop {
        if let Err(error) = key(&keys) {
            break error;
        }
    };
    assert_eq!(
        error.coordination_failure(),
        Some(CoordinationFailure::Expired)
    );
    let text = error.to_string();
    assert!(
        text.contains("its keys have come to the end of this time before the clock")
            && text.contains("4096 keys a node in 1 ms"),
        "{text}"
    );
}

#[test]
fn a_task_waits_for_the_renewal_and_lets_others_run() {
    use std::{
        pin::pin,
        task::{Context, Poll, Waker},
    };

    let keys = scripted(grant(7, 1, 0, 100), 100);
    let mut context = Context::from_waker(Waker::noop());
    let mut waiting = pin!(keys.generate_within(Duration::from_secs(60)));
    assert!(waiting.as_mut().poll(&mut context).is_pending());
    keys.renew(grant(7, 1, 0, 200)).unwrap();
    std::thread::sleep(Duration::from_millis(20));
    let Poll::Ready(made) = waiting.as_mut().poll(&mut context) else {
        panic!("there is time again");
    };
    assert_eq!(parts(made.unwrap().into_raw()), (7, 100));

    // No longer than it may, and not at all for a generator that was closed.
    keys.clock().set_unix_millis(START + 200);
    let began = std::time::Instant::now();
    let mut waiting = pin!(keys.generate_within(Duration::from_millis(5)));
    // A slow machine may take longer than that for the first poll.
    let over = loop {
        if let Poll::Ready(over) = waiting.as_mut().poll(&mut context) {
            break over;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "it never ends");
        std::thread::sleep(Duration::from_millis(1));
    };
    assert!(over.is_err() && began.elapsed() >= Duration::from_millis(5));
    keys.close();
    let mut closed = pin!(keys.generate_within(Duration::from_secs(60)));
    assert!(closed.as_mut().poll(&mut context).is_ready());
}

/// A tick that two grants share is neither's.
#[test]
fn ticks_of_ten_milliseconds_lie_wholly_in_the_range() {
    let keys = Scripted::<Snowflake<Sonyflake>>::new(
        grant(7, 1, 15, 45),
        ManualClock::at_unix_millis(START),
        SeededEntropy::new(1),
        Policy::DEFAULT,
        AtCeiling::Error,
    )
    .unwrap();
    keys.clock().freeze();
    let mut ticks = HashSet::new();
    while let Ok(key) = keys.try_generate() {
        let raw = key.into_raw();
        let millis = <Snowflake<Sonyflake> as crate::key::Scheme>::timestamp(&raw).unwrap();
        ticks.insert(millis.as_unix_millis() - START);
        keys.clock().set_unix_millis(START + 39);
    }
    assert_eq!(ticks, HashSet::from([20, 30]));

    let seconds = GrantedGenerator::<Snowflake<BaiduUid<1_700_000_000>>, _, _>::new(
        grant(7, 1, 100, 1_900),
        ManualClock::at_unix_millis(START),
        SeededEntropy::new(1),
        Policy::DEFAULT,
        AtCeiling::Error,
    );
    assert_eq!(
        seconds.unwrap_err().coordination_failure(),
        Some(CoordinationFailure::Mismatch)
    );
}

/// A clock that is read while something else happens: where a process is stopped in the midst of a key.
struct Interrupted {
    clock: ManualClock,
    meanwhile: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Clock for Interrupted {
    fn now(&self) -> Timestamp {
        let meanwhile = self.meanwhile.lock().unwrap().take();
        if let Some(meanwhile) = meanwhile {
            meanwhile();
        }
        self.clock.now()
    }
}

/// The time in the key decides, not what was checked before.
#[test]
fn a_grant_that_changes_while_a_key_is_made_is_noticed() {
    type Keys = GrantedGenerator<Snowflake, Interrupted, SeededEntropy>;
    let new = || {
        let clock = Interrupted {
            clock: ManualClock::at_unix_millis(START + 10),
            meanwhile: Mutex::new(None),
        };
        let entropy = SeededEntropy::new(1);
        let (policy, at_ceiling) = (Policy::DEFAULT, AtCeiling::Error);
        Arc::new(Keys::new(grant(7, 1, 0, 100), clock, entropy, policy, at_ceiling).unwrap())
    };
    let during = |keys: &Arc<Keys>, meanwhile: fn(&Keys)| {
        let interrupted = Arc::clone(keys);
        let meanwhile = Box::new(move || meanwhile(&interrupted));
        *keys.clock().meanwhile.lock().unwrap() = Some(meanwhile);
        let key = keys.try_generate().map(Generated::into_raw);
        assert!(keys.clock().meanwhile.lock().unwrap().is_none(), "unread");
        key
    };
    // Stopped for longer than the grant.
    let keys = new();
    let key = during(&keys, |keys| {
        keys.clock().clock.set_unix_millis(START + 5_000)
    });
    assert_expired(key);
    // The node was lost, and another is there.
    let keys = new();
    let key = during(&keys, |keys| keys.renew(grant(9, 2, 200, 300)).unwrap());
    assert_eq!(parts(key.unwrap()), (9, 200));
    // It was given back.
    let keys = new();
    let key = during(&keys, |keys| {
        keys.close();
    });
    assert_expired(key);
}

/// Threads make keys while the node changes hands, thousands of times: none twice, each of a range
/// that was granted, and each thread's rising.
#[test]
fn threads_and_changing_grants_make_no_key_twice() {
    const KEYS: usize = 30_000;
    let clock = Arc::new(ManualClock::at_unix_millis(START));
    let keys = GrantedGenerator::<Snowflake, _, _>::new(
        grant(0, 1, 0, 5),
        Arc::clone(&clock),
        ThreadEntropy,
        Policy::DEFAULT,
        AtCeiling::Error,
    )
    .unwrap();
    let done = std::sync::atomic::AtomicUsize::new(0);
    let mut granted = vec![grant(0, 1, 0, 5)];
    let made: Vec<Vec<i64>> = std::thread::scope(|scope| {
        let makers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let mut made = Vec::new();
                    while made.len() < KEYS {
                        match keys.try_generate() {
                            Ok(key) => made.push(key.into_raw()),
                            Err(_) => std::thread::yield_now(),
                        }
                    }
                    done.fetch_add(1, Ordering::Relaxed);
                    made
                })
            })
            .collect();
        let mut millis = 0;
        while done.load(Ordering::Relaxed) < 3 {
            millis += 1;
            clock.set_unix_millis(START + millis);
            if millis % 4 == 0 {
                let floor = keys.newest().unwrap().as_unix_millis() - START + 1;
                // Each below the one before, so that keys rise by their time alone.
                let node = 1_023 - millis / 4 % 1_024;
                let next = grant(node, 1, floor, floor.max(millis) + 5);
                keys.renew(next).unwrap();
                granted.push(next);
            }
            std::thread::yield_now();
        }
        makers
            .into_iter()
            .map(|maker| maker.join().unwrap())
            .collect()
    });
    let mut of_node: HashMap<u64, Vec<Grant>> = HashMap::new();
    for grant in granted {
        of_node.entry(grant.node()).or_default().push(grant);
    }
    let mut all = HashSet::new();
    for keys in &made {
        assert!(keys.is_sorted_by(|left, right| left < right));
        for key in keys {
            let (node, millis) = parts(*key);
            assert!(all.insert(*key), "twice: {key}");
            let holds = |grant: &Grant| (grant.floor()..grant.ceiling()).contains(&at(millis));
            assert!(of_node[&node].iter().any(holds));
        }
    }
}

/// As often as it takes: closed while threads make keys, none of them is above what is given back.
#[test]
fn no_key_is_above_the_last_time_that_a_release_reports() {
    for _ in 0..100 {
        let keys = GrantedGenerator::<Snowflake, _, _>::new(
            grant(1, 1, 0, 1_000),
            ManualClock::at_unix_millis(START),
            ThreadEntropy,
            Policy::DEFAULT,
            AtCeiling::Error,
        )
        .unwrap();
        let (newest, made) = std::thread::scope(|scope| {
            let makers: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(|| {
                        std::iter::from_fn(|| keys.try_generate().ok())
                            .map(Generated::into_raw)
                            .last()
                    })
                })
                .collect();
            for millis in 0..20 {
                keys.clock().set_unix_millis(START + millis);
                std::thread::yield_now();
            }
            let (_, newest) = keys.close();
            let made: Vec<_> = makers
                .into_iter()
                .map(|maker| maker.join().unwrap())
                .collect();
            (newest, made)
        });
        for last in made.into_iter().flatten() {
            assert!(at(parts(last).1) <= newest.unwrap());
        }
    }
}

type Keeper<'c> = LeaseKeeper<Snowflake, &'c ManualClock, SeededEntropy>;

fn keeper<'c>(nodes: &MemoryNodes<&'c ManualClock>, clock: &'c ManualClock) -> Keeper<'c> {
    LeaseKeeper::acquire_sync(
        nodes,
        clock,
        SeededEntropy::new(3),
        Policy::DEFAULT,
        AtCeiling::Error,
    )
    .unwrap()
}

/// Does what the keeper asks for.
fn step(keeper: &mut Keeper<'_>, nodes: &MemoryNodes<&ManualClock>) -> Result<(), Error> {
    match keeper.request() {
        LeaseRequest::Renew { grant, now } => keeper.answer(nodes.renew(&grant, now)),
        LeaseRequest::Acquire { now, last } => keeper.answer(nodes.acquire(now, last)),
        LeaseRequest::Release { grant, last } => nodes.release(&grant, last),
    }
}

#[test]
fn a_keeper_renews_before_a_third_and_a_tenth_of_the_window() {
    let clock = ManualClock::at_unix_millis(START);
    let nodes = MemoryNodes::new(LeaseTerms::new(0..2).unwrap(), &clock);
    let mut keeper = keeper(&nodes, &clock);
    let keys = keeper.generator();
    let mut pauses = HashSet::new();
    for _ in 0..1_000 {
        let pause = keeper.pause().unwrap();
        assert!((900..=1_100).contains(&pause.as_millis()));
        pauses.insert(pause);
        Clock::pause(&clock, pause);
        assert!(keys.try_generate().is_ok());
        step(&mut keeper, &nodes).unwrap();
    }
    assert!(pauses.len() > 900);
    assert_eq!(keys.grant().epoch(), 1);
}

/// A paused process: its node was given to another, whose keys begin above all of its own.
#[test]
fn a_holder_that_renews_too_late_gets_another_node() {
    let clock = ManualClock::at_unix_millis(START);
    let nodes = MemoryNodes::new(LeaseTerms::new(0..2).unwrap(), &clock);
    let mut first = keeper(&nodes, &clock);
    let mut other = keeper(&nodes, &clock);
    let keys = first.generator();
    keys.try_generate().unwrap();
    clock.set_unix_millis(START + 11_000);
    step(&mut other, &nodes).unwrap();
    // The first one's node, by now free.
    let third = keeper(&nodes, &clock);
    assert_eq!(third.generator().grant().node(), keys.grant().node());
    assert!(third.generator().grant().floor() >= keys.grant().ceiling());
    assert_expired(keys.try_generate());

    step(&mut first, &nodes).unwrap();
    let error = keys.try_generate().unwrap_err();
    assert!(
        error.to_string().contains("was granted to another"),
        "{error}"
    );
    // All nodes are held: it goes on asking.
    step(&mut first, &nodes).unwrap();
    assert!(first.pause().unwrap() < Duration::from_millis(400));
    assert_eq!(
        keys.try_generate().unwrap_err().coordination_failure(),
        Some(CoordinationFailure::Expired)
    );
    let (released, last) = other.generator().close();
    step(&mut other, &nodes).unwrap();
    assert_eq!(
        other.request(),
        LeaseRequest::Release {
            grant: released,
            last
        }
    );
    step(&mut first, &nodes).unwrap();
    assert_eq!(keys.grant().node(), released.node());
    assert!(keys.try_generate().is_ok());
}

#[test]
fn a_generator_stops_at_once_when_the_ceiling_of_its_store_went_back() {
    let clock = ManualClock::at_unix_millis(START);
    let terms = LeaseTerms::new(0..1).unwrap();
    let nodes = MemoryNodes::new(terms.clone(), &clock);
    let mut holder = keeper(&nodes, &clock);
    let keys = holder.generator();
    let restored = MemoryNodes::new(terms, &clock);
    restored.acquire(at(0), None).unwrap();
    clock.set_unix_millis(START + 1_000);
    step(&mut holder, &nodes).unwrap();
    let error = step(&mut holder, &restored).unwrap_err();
    assert_eq!(
        error.coordination_failure(),
        Some(CoordinationFailure::CeilingRegressed)
    );
    // Its window has not ended, but the store may have granted the same times to another holder.
    assert!(keys.clock().now() < keys.grant().ceiling());
    for made in [keys.try_generate().map(|_| ()), keys.reserve(3).map(|_| ())] {
        let error = made.unwrap_err();
        assert_eq!(
            error.coordination_failure(),
            Some(CoordinationFailure::Expired)
        );
        let text = error.to_string();
        assert!(text.contains("the store's ceiling went back"), "{text}");
    }
    assert!(keys.closed().is_some());
}

#[test]
fn a_lease_thread_renews_the_node_and_releases_it() {
    let terms = LeaseTerms::new(0..1)
        .unwrap()
        .with_window(Duration::from_millis(30))
        .unwrap();
    let nodes = Arc::new(MemoryNodes::new(terms, crate::clock::SystemClock));
    let keeper = LeaseKeeper::<Snowflake, _, _>::acquire_sync(
        &nodes,
        crate::clock::SystemClock,
        ThreadEntropy,
        Policy::DEFAULT,
        AtCeiling::Wait {
            max: Duration::from_secs(60),
        },
    )
    .unwrap();
    let thread = keeper.start(Arc::clone(&nodes)).unwrap();
    let keys = thread.generator();
    let first = keys.grant();
    let (mut last, mut newest) = (-1, first.floor());
    // Several windows long.
    while keys.grant().ceiling().as_unix_millis() < first.ceiling().as_unix_millis() + 100 {
        let key = keys.try_generate().unwrap().into_raw();
        assert!(key > last);
        last = key;
        newest = <Snowflake as crate::key::Scheme>::timestamp(&key).unwrap();
    }
    assert_eq!(keys.grant().epoch(), 1);
    thread.stop().unwrap();
    assert_expired(keys.try_generate());
    // Free at once, from above its newest key, and not from its ceiling.
    let next = nodes.acquire(Timestamp::MIN, None).unwrap();
    assert_eq!((next.node(), next.epoch()), (0, 2));
    assert!(next.floor() > newest);
}
