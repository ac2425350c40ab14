use super::*;
use crate::{
    clock::ManualClock,
    entropy::SeededEntropy,
    generator::{Policy, Rollback},
    scheme::uuid_v7::UuidV7Generator,
};

const START: u64 = 1_645_557_742_000;
const LEAD: Duration = Duration::from_secs(2);

/// A mark in memory that counts its raises and can refuse them.
#[derive(Debug, Default)]
struct Memory {
    millis: AtomicU64,
    raises: AtomicU64,
    broken: std::sync::atomic::AtomicBool,
}

impl HighWaterMark for Memory {
    fn load(&self) -> Result<Option<Timestamp>, Error> {
        let millis = self.millis.load(Ordering::SeqCst);
        Ok((millis > 0).then(|| Timestamp::saturating_from_unix_millis(millis)))
    }

    fn raise(&self, mark: Timestamp) -> Result<(), Error> {
        if self.broken.load(Ordering::SeqCst) {
            return Err(Error::high_water("the disk is full"));
        }
        self.raises.fetch_add(1, Ordering::SeqCst);
        let before = self.millis.swap(mark.as_unix_millis(), Ordering::SeqCst);
        assert!(before < mark.as_unix_millis());
        Ok(())
    }
}

type Scripted = UuidV7Generator<ManualClock, SeededEntropy>;

fn scripted(millis: u64, policy: Policy) -> Scripted {
    UuidV7Generator::new(
        ManualClock::at_unix_millis(millis),
        SeededEntropy::new(9),
        policy,
    )
}

fn millis(key: uuid::Uuid) -> u64 {
    key.as_u64_pair().0 >> 16
}

#[test]
fn a_restart_with_an_older_clock_stays_above() {
    let mark = Memory::default();
    let mut newest = uuid::Uuid::nil();
    // Each run's clock starts a second before where the last one's ended.
    for run in 0..20 {
        let start = START + run * 3_000;
        let keys = WithHighWaterMark::new(scripted(start, Policy::DEFAULT), &mark, LEAD).unwrap();
        for step in 0..4_000 {
            keys.generator.clock().set_unix_millis(start + step);
            let key = keys.try_generate().unwrap().into_raw();
            assert!(key > newest, "run {run}, step {step}");
            assert!(millis(key) <= mark.millis.load(Ordering::SeqCst));
            newest = key;
        }
    }
}

#[test]
fn the_mark_is_raised_in_large_steps() {
    let mark = Memory::default();
    let keys = WithHighWaterMark::new(scripted(START, Policy::DEFAULT), &mark, LEAD).unwrap();
    for millis in 0..10_000 {
        keys.generator.clock().set_unix_millis(START + millis);
        keys.try_generate().unwrap();
    }
    assert_eq!(mark.raises.load(Ordering::SeqCst), 5);
}

/// A process that crashes as soon as it has made a key, again and again.
#[test]
fn runs_that_end_at_once_do_not_move_the_mark_away_from_the_clock() {
    let mark = Memory::default();
    let lead = u64::try_from(LEAD.as_millis()).unwrap();
    for now in (START..START + 10_000).step_by(10) {
        let keys = WithHighWaterMark::new(scripted(now, Policy::DEFAULT), &mark, LEAD).unwrap();
        keys.try_generate().unwrap();
        let mark = mark.millis.load(Ordering::SeqCst);
        assert_eq!(mark - now, lead);
    }
}

/// The clock catches up in the meantime.
#[test]
fn keys_further_ahead_of_the_clock_than_the_lead_raise_the_mark_to_themselves() {
    let mark = Memory::default();
    mark.raise(Timestamp::saturating_from_unix_millis(START + 5_000))
        .unwrap();
    let keys = WithHighWaterMark::new(scripted(START, Policy::DEFAULT), &mark, LEAD).unwrap();
    let key = keys.try_generate().unwrap().into_raw();
    assert_eq!(millis(key), START + 5_001);
    assert_eq!(mark.millis.load(Ordering::SeqCst), START + 5_001);
    // From here on the lead is ahead of the keys again.
    keys.generator.clock().set_unix_millis(START + 3_500);
    keys.try_generate().unwrap();
    assert_eq!(mark.millis.load(Ordering::SeqCst), START + 5_001);
    keys.generator.clock().set_unix_millis(START + 5_003);
    keys.try_generate().unwrap();
    assert_eq!(mark.millis.load(Ordering::SeqCst), START + 7_003);
}

#[test]
fn a_key_above_a_mark_that_cannot_be_raised_is_not_given_out() {
    let mark = Memory::default();
    mark.broken.store(true, Ordering::SeqCst);
    let keys = WithHighWaterMark::new(scripted(START, Policy::DEFAULT), &mark, LEAD).unwrap();
    assert!(keys.try_generate().unwrap_err().is_high_water());
    assert!(keys.reserve(2).unwrap().all(|key| key.is_err()));
    assert!(keys.try_fill_with(2, |_| panic!("a key")).is_err());
    mark.broken.store(false, Ordering::SeqCst);
    assert!(keys.try_generate().is_ok());
}

#[test]
fn a_mark_further_ahead_than_the_policy_holds_is_an_error() {
    let mark = Memory::default();
    mark.raise(Timestamp::saturating_from_unix_millis(START + 10_001))
        .unwrap();
    let error = WithHighWaterMark::new(scripted(START, Policy::DEFAULT), &mark, LEAD).unwrap_err();
    assert!(error.is_clock(), "{error}");
    let patient = Policy {
        rollback: Rollback::HoldThenError {
            max: Duration::from_secs(60),
        },
        ..Policy::DEFAULT
    };
    let keys = WithHighWaterMark::new(scripted(START, patient), &mark, LEAD).unwrap();
    let key = keys.try_generate().unwrap().into_raw();
    assert!(millis(key) > START + 10_001);
}

#[test]
fn an_epoch_that_rises_without_a_fork_refuses_nothing() {
    let mark = Memory::default();
    let keys = WithHighWaterMark::new(scripted(START, Policy::DEFAULT), &mark, LEAD).unwrap();
    keys.try_generate().unwrap();
    keys.generator.entropy().fork();
    // Above the mark. That a child of a fork is refused there, is seen where processes fork.
    keys.generator.clock().set_unix_millis(START + 3_000);
    keys.try_generate().unwrap();
    assert!(mark.millis.load(Ordering::SeqCst) >= START + 3_000);
}

#[test]
fn batches_raise_the_mark_too() {
    let mark = Memory::default();
    let keys = WithHighWaterMark::new(scripted(START, Policy::DEFAULT), &mark, LEAD).unwrap();
    keys.generator.clock().freeze();
    let mut newest = 0;
    keys.try_fill_with(3_000_000, |key| {
        newest = millis(key.into_raw());
        assert!(newest <= mark.millis.load(Ordering::SeqCst));
    })
    .unwrap();
    assert_eq!(newest, START + 2);
}

/// Three runs, of which the last one's clock steps back: below the keys of the runs before there is no key.
#[test]
fn a_clock_that_is_followed_back_leads_to_no_key_below_earlier_runs() {
    let mark = Memory::default();
    let first = WithHighWaterMark::new(scripted(START, Policy::DEFAULT), &mark, LEAD).unwrap();
    let earlier = first.try_generate().unwrap().into_raw();

    let keys = WithHighWaterMark::new(scripted(START + 3_000, Policy::DEFAULT), &mark, LEAD);
    let keys = keys.unwrap();
    let clock = keys.generator.clock();
    keys.try_generate().unwrap();
    clock.set_unix_millis(START - 57_000);
    for _ in 0..2 {
        let error = keys.try_generate().unwrap_err();
        assert_eq!(
            error.to_string(),
            "the clock is 59000 ms behind the newest key, more than the 10000 ms that the rollback \
             policy holds"
        );
        assert!(keys.reserve(2).unwrap_err().is_clock());
        assert!(keys.try_fill_with(2, |_| panic!("a key")).is_err());
    }

    // The policy holds keys above the mark, as at the start.
    clock.set_unix_millis(START - 1_000);
    let held = keys.try_generate().unwrap().into_raw();
    assert!(held > earlier && millis(held) == START + 2_001);
    clock.set_unix_millis(START + 20_000);
    assert!(keys.try_generate().unwrap().into_raw() > held);
    // Keys of this run are followed below, as the policy says.
    clock.set_unix_millis(START + 5_000);
    assert_eq!(
        millis(keys.try_generate().unwrap().into_raw()),
        START + 5_000
    );
    assert_eq!(keys.events().clock_followed, 2);
}

#[test]
fn reserved_keys_are_above_earlier_runs_after_a_clock_was_followed_back() {
    let mark = Memory::default();
    mark.raise(Timestamp::saturating_from_unix_millis(START))
        .unwrap();
    let keys = WithHighWaterMark::new(scripted(START + 8_000, Policy::DEFAULT), &mark, LEAD);
    let keys = keys.unwrap();
    keys.try_generate().unwrap();
    keys.generator.clock().set_unix_millis(START - 5_000);
    let reserved = keys.reserve(3).unwrap();
    assert!(
        reserved
            .map(|key| millis(key.unwrap().into_raw()))
            .all(|it| it > START)
    );
}
