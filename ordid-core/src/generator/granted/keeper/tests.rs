use core::{
    future::ready,
    pin::pin,
    task::{Context, Poll, Waker},
};
use std::{
    collections::VecDeque,
    sync::{Mutex, OnceLock},
};

use super::*;
use crate::{clock::ManualClock, entropy::SeededEntropy, scheme::Snowflake};

const START: u64 = 1_800_000_000_000;
/// Further than any policy holds.
const HOUR: u64 = 3_600_000;

type Clocked = Arc<ManualClock>;
type Keeper = LeaseKeeper<Snowflake, Clocked, SeededEntropy>;
type Keys = GrantedGenerator<Snowflake, Clocked, SeededEntropy>;

/// A store that grants what it is given, knows what is held, and renews nothing. When it grants the last, it closes
/// the generator.
struct Store {
    terms: LeaseTerms,
    /// Nodes, and where their time begins.
    grants: Mutex<VecDeque<(u64, u64)>>,
    held: Mutex<Vec<Grant>>,
    generator: OnceLock<Arc<Keys>>,
    /// How many releases get no answer.
    silent: Mutex<u32>,
}

impl Store {
    fn new(grants: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let terms = LeaseTerms::new(0..10_000).unwrap();
        Self {
            terms: terms.with_window(Duration::from_millis(30)).unwrap(),
            grants: Mutex::new(grants.into_iter().collect()),
            held: Mutex::default(),
            generator: OnceLock::new(),
            silent: Mutex::new(0),
        }
    }

    fn held(&self) -> Vec<u64> {
        self.held.lock().unwrap().iter().map(Grant::node).collect()
    }

    /// A keeper of the first grant.
    fn keeper(&self) -> Result<Keeper, Error> {
        let clock = Arc::new(ManualClock::at_unix_millis(START));
        let (policy, at_ceiling) = (Policy::DEFAULT, AtCeiling::Error);
        let keeper = Keeper::acquire_sync(self, clock, SeededEntropy::new(1), policy, at_ceiling)?;
        assert!(self.generator.set(keeper.generator()).is_ok());
        Ok(keeper)
    }
}

fn unavailable() -> Error {
    Error::coordination(CoordinationFailure::Unavailable, "no answer")
}

fn fenced(grant: &Grant) -> Error {
    Error::coordination(CoordinationFailure::Fenced, format!("{grant} is another's"))
}

impl NodeAllocator for Store {
    fn acquire(&self, _: Timestamp, _: Option<Timestamp>) -> Result<Grant, Error> {
        let mut grants = self.grants.lock().unwrap();
        let (node, floor) = grants.pop_front().expect("one grant more");
        let at = |millis| Timestamp::saturating_from_unix_millis(START + millis);
        let grant = Grant::new(node, 1, at(floor), at(floor + 30))?;
        self.held.lock().unwrap().push(grant);
        if grants.is_empty()
            && let Some(generator) = self.generator.get()
        {
            generator.close();
        }
        Ok(grant)
    }

    fn renew(&self, grant: &Grant, _: Timestamp) -> Result<Grant, Error> {
        // It is another's by now.
        self.held.lock().unwrap().retain(|it| it != grant);
        Err(fenced(grant))
    }

    fn release(&self, grant: &Grant, _: Option<Timestamp>) -> Result<(), Error> {
        let mut silent = self.silent.lock().unwrap();
        if let Some(left) = silent.checked_sub(1) {
            *silent = left;
            return Err(unavailable());
        }
        let mut held = self.held.lock().unwrap();
        let place = held.iter().position(|it| it == grant);
        held.remove(place.ok_or_else(|| fenced(grant))?);
        Ok(())
    }

    fn terms(&self) -> &LeaseTerms {
        &self.terms
    }
}

/// The same store, asked asynchronously.
struct Async(Store);

impl AsyncNodeAllocator for Async {
    async fn acquire(&self, now: Timestamp, last: Option<Timestamp>) -> Result<Grant, Error> {
        self.0.acquire(now, last)
    }

    async fn renew(&self, grant: &Grant, now: Timestamp) -> Result<Grant, Error> {
        self.0.renew(grant, now)
    }

    async fn release(&self, grant: &Grant, last: Option<Timestamp>) -> Result<(), Error> {
        self.0.release(grant, last)
    }

    fn terms(&self) -> &LeaseTerms {
        self.0.terms()
    }
}

fn done<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(it) => it,
        Poll::Pending => panic!("nothing here waits"),
    }
}

/// A service whose clock is behind may restart many times.
#[test]
fn an_acquired_grant_that_the_generator_refuses_is_released() {
    for refused in [(1, HOUR), (5_000, 0)] {
        let store = Store::new([refused]);
        let error = store.keeper().unwrap_err();
        assert_eq!(error.is_clock(), refused.1 == HOUR, "{error}");
        assert!(store.held().is_empty());

        let store = Async(Store::new([refused]));
        let clock = Arc::new(ManualClock::at_unix_millis(START));
        let (policy, at_ceiling) = (Policy::DEFAULT, AtCeiling::Error);
        let kept = Keeper::acquire(&store, clock, SeededEntropy::new(1), policy, at_ceiling);
        assert_eq!(done(kept).unwrap_err(), error);
        assert!(store.0.held().is_empty());
    }
}

/// The first node is lost. The next two begin too far ahead of the clock, and the last comes when the generator is
/// closed.
#[test]
fn a_grant_that_is_refused_after_fencing_is_released() {
    let grants = [(1, 0), (2, HOUR), (3, HOUR), (4, 0)];
    let store = Store::new(grants);
    store.keeper().unwrap().run_sync(&store).unwrap();
    assert!(store.held().is_empty());

    let store = Async(Store::new(grants));
    let keeper = store.0.keeper().unwrap();
    done(keeper.run(&store, |_| ready(()))).unwrap();
    assert!(store.0.held().is_empty());
}

#[test]
fn a_grant_of_a_node_that_the_scheme_does_not_have_is_released_as_the_keeper_ends() {
    let grants = [(1, 0), (5_000, 0), (3, 0)];
    let store = Store::new(grants);
    let error = store.keeper().unwrap().run_sync(&store).unwrap_err();
    assert_eq!(
        error.coordination_failure(),
        Some(CoordinationFailure::Mismatch)
    );
    assert!(store.held().is_empty());

    let store = Async(Store::new(grants));
    let keeper = store.0.keeper().unwrap();
    assert_eq!(done(keeper.run(&store, |_| ready(()))), Err(error));
    assert!(store.0.held().is_empty());
}

#[test]
fn a_refused_grant_is_returned_once_to_whoever_runs_the_keeper() {
    let store = Store::new([(1, 0), (2, HOUR), (3, 0)]);
    let mut keeper = store.keeper().unwrap();
    assert_eq!(keeper.refused(), None);
    keeper
        .answer(Err(fenced(&keeper.generator.grant())))
        .unwrap();
    let LeaseRequest::Acquire { now, last } = keeper.request() else {
        panic!("fenced");
    };
    let grant = store.acquire(now, last).unwrap();
    keeper.answer(Ok(grant)).unwrap();
    assert_eq!(keeper.refused(), Some(grant));
    assert_eq!(keeper.refused(), None);
}

/// The store may be away only for a moment, and a holder that stops asks for nothing afterwards.
#[test]
fn a_release_without_an_answer_is_repeated_a_few_times() {
    for silent in [2, 10] {
        let expected = if silent == 2 {
            Ok(())
        } else {
            Err(unavailable())
        };
        let is_held = expected.is_err();
        let store = || {
            let store = Store::new([(1, 0)]);
            *store.silent.lock().unwrap() = silent;
            store
        };
        let sync = store();
        let keeper = sync.keeper().unwrap();
        keeper.generator().close();
        assert_eq!(keeper.run_sync(&sync), expected);
        assert_eq!(!sync.held().is_empty(), is_held);

        let store = Async(store());
        let keeper = store.0.keeper().unwrap();
        keeper.generator().close();
        let slept = Mutex::new(0);
        let sleep = |pause| {
            assert!(pause > Duration::ZERO);
            *slept.lock().unwrap() += 1;
            ready(())
        };
        assert_eq!(done(keeper.run(&store, sleep)), expected);
        assert_eq!(!store.0.held().is_empty(), is_held);
        assert_eq!(slept.into_inner().unwrap(), 2);
    }
    // Any other error stays.
    let store = Store::new([(1, 0)]);
    let keeper = store.keeper().unwrap();
    keeper.generator().close();
    store.held.lock().unwrap().clear();
    let error = keeper.run_sync(&store).unwrap_err();
    assert_eq!(
        error.coordination_failure(),
        Some(CoordinationFailure::Fenced)
    );
}
