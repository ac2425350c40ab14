use alloc::{string::ToString as _, vec::Vec};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Barrier,
    task::{Context, Poll, Waker},
    thread,
};

use uuid::Uuid;

use super::*;
use crate::{
    KeyType,
    generator::{Generator as _, ProcessWide},
    key::{Generated, RawKey, Scheme as _, StaticScheme},
    scheme::{node::WithNode, uuid_v4_clustered::ByPeriod, *},
};

/// Keys in every way to make them.
fn made<S: StaticScheme>() -> Vec<S::Raw> {
    let mut keys = Vec::from([S::generate().into_raw()]);
    S::fill_with(300, |key| keys.push(key.into_raw()));
    keys.extend(S::reserve(5).unwrap().map(Generated::into_raw));
    keys.push(S::generate().into_raw());
    if let Ok(key) = S::generate_at(Keys::START) {
        keys.push(key.into_raw());
    }
    keys
}

fn follow_from_the_seed<S: StaticScheme>() {
    let keys = with_keys(7, made::<S>);
    assert!(keys.len() >= 307);
    assert_eq!(with_keys(7, made::<S>), keys, "{}", S::NAME);
    // Some schemes have little that is random, but none has nothing.
    assert_ne!(with_keys(8, made::<S>), keys, "{}", S::NAME);
    assert_ne!(made::<S>(), keys, "{}", S::NAME);
    let distinct: std::collections::HashSet<_> = keys.iter().collect();
    assert_eq!(distinct.len(), keys.len(), "{} repeats", S::NAME);
}

macro_rules! every_static_scheme {
    ($($name:ident: [$($kind:tt)+] $raw:ident, $scheme:ty, $($text:literal),+;)+) => {
        $(every_static_scheme!(@one [$($kind)+] $scheme);)+
    };
    (@one [counted] $scheme:ty) => { follow_from_the_seed::<$scheme>(); };
    (@one [spread] $scheme:ty) => { follow_from_the_seed::<$scheme>(); };
    (@one [random_node] $scheme:ty) => { follow_from_the_seed::<$scheme>(); };
    (@one [random_node_first] $scheme:ty) => { follow_from_the_seed::<$scheme>(); };
    (@one [drawn($bits:literal)] $scheme:ty) => { follow_from_the_seed::<$scheme>(); };
    (@one [by_period($bits:literal)] $scheme:ty) => { follow_from_the_seed::<$scheme>(); };
    (@one [$($kind:tt)+] $scheme:ty) => {};
}

#[test]
fn keys_of_every_scheme_follow_from_the_seed() {
    crate::__for_each_scheme! { every_static_scheme }
    follow_from_the_seed::<WithNode<UuidV6, node::DangerExact<7>>>();
    follow_from_the_seed::<ByPeriod<UuidV4Clustered, uuid_v4_clustered::Minute>>();
}

#[test]
fn keys_rise_from_a_fixed_time() {
    let keys = with_keys(7, || {
        let mut keys = Vec::from([Uuid::generate()]);
        UuidV7::fill_with(70_000, |key| keys.push(key.into_raw()));
        keys.extend(UuidV7::reserve(70_000).unwrap().map(Generated::into_raw));
        keys.push(Uuid::generate());
        keys
    });
    assert!(keys.is_sorted_by(|left, right| left < right));
    assert_eq!(UuidV7::timestamp(&keys[0]), Some(Keys::START));
    // Another key here breaks the recorded answers of other programs' tests: say so in the changelog.
    assert_eq!(
        with_keys(7, Uuid::generate).to_string(),
        "018cc251-f400-722c-b49c-a757c8fc7785"
    );
}

#[test]
fn the_generator_of_the_process_is_asked_for_nothing() {
    let of_process = || UuidV7::process_wide();
    let keys = with_keys(7, || {
        let mut keys = Vec::from([of_process().try_generate().unwrap().into_raw()]);
        of_process()
            .try_fill_with(300, |key| keys.push(key.into_raw()))
            .unwrap();
        let mut reserved = of_process().reserve(5).unwrap();
        assert_eq!(reserved.len(), 5);
        keys.extend(reserved.by_ref().map(|key| key.unwrap().into_raw()));
        assert_eq!((reserved.len(), reserved.next().is_none()), (0, true));
        keys.push(of_process().try_generate().unwrap().into_raw());
        let at = of_process().generate_at(Keys::START).unwrap();
        keys.push(at.into_raw());
        keys
    });
    assert_eq!(keys, with_keys(7, made::<UuidV7>));
    // Far behind the process's own clock, and above the scope's.
    let millis = Keys::START.as_unix_millis() + 5_000;
    let newest = UuidV7::bounds_at(Timestamp::from_unix_millis(millis).unwrap())
        .unwrap()
        .1;
    with_keys(7, || {
        of_process().start_above(&newest).unwrap();
        assert!(Uuid::generate() > newest);
    });
}

/// Two schemes that differ by a parameter alone have one name.
#[test]
fn schemes_of_one_name_share_no_key() {
    with_keys(7, || {
        let few = UuidV7Spread::<2>::process_wide().try_generate().unwrap();
        let many = UuidV7Spread::<256>::process_wide().try_generate().unwrap();
        let random = |raw: Uuid| raw.as_u128() & u128::from(u64::MAX >> 2);
        assert_ne!(random(few.into_raw()), random(many.into_raw()));
    });
}

#[test]
fn a_generator_of_ones_own_is_not_in_the_scope() {
    let own = uuid_v7::UuidV7Generator::new(SystemClock, ThreadEntropy, Policy::DEFAULT);
    let key = with_keys(7, || own.try_generate().unwrap().into_raw());
    let year = UuidV7::timestamp(&key).unwrap().as_unix_millis();
    assert!(year > Keys::START.as_unix_millis() + 86_400_000);
}

#[test]
fn scopes_of_threads_do_not_meet() {
    const THREADS: usize = 4;
    let seeds = 0..4;
    let alone: Vec<_> = seeds
        .clone()
        .map(|seed| with_keys(seed, made::<UuidV7>))
        .collect();
    let start = Barrier::new(THREADS);
    let together: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = seeds
            .map(|seed| {
                let start = &start;
                scope.spawn(move || {
                    with_keys(seed, || {
                        start.wait();
                        made::<UuidV7>()
                    })
                })
            })
            .collect();
        threads.into_iter().map(|it| it.join().unwrap()).collect()
    });
    assert_eq!(together, alone);
    // A thread that a scope starts is outside of it, unless it enters.
    let keys = Keys::new(7);
    let (outside, inside) = keys.run(|| {
        thread::scope(|scope| {
            let outside = scope.spawn(Uuid::generate).join().unwrap();
            let inside = scope.spawn(|| keys.run(Uuid::generate)).join().unwrap();
            (outside, inside)
        })
    });
    assert_ne!(UuidV7::timestamp(&outside), Some(Keys::START));
    assert_eq!(inside, with_keys(7, Uuid::generate));
}

#[test]
fn the_scope_around_is_back_after_a_scope_and_after_a_panic() {
    let [first, second] = with_keys(1, || [(); 2].map(|()| Uuid::generate()));
    with_keys(1, || {
        assert_eq!(Uuid::generate(), first);
        let inner = AssertUnwindSafe(|| with_keys(2, || panic!("in the inner scope")));
        assert!(catch_unwind(inner).is_err());
        assert_eq!(Uuid::generate(), second);
    });
    assert!(!IS_ENTERED.get() && CURRENT.with_borrow(Option::is_none));
    let panics = AssertUnwindSafe(|| with_keys(1, || panic!("in the scope")));
    assert!(catch_unwind(panics).is_err());
    assert!(!IS_ENTERED.get() && CURRENT.with_borrow(Option::is_none));
}

/// Makes a key, lets others be polled, makes the next.
async fn two() -> [Uuid; 2] {
    let first = Uuid::generate();
    let mut is_first = true;
    poll_fn(|_| match core::mem::take(&mut is_first) {
        true => Poll::Pending,
        false => Poll::Ready(()),
    })
    .await;
    [first, Uuid::generate()]
}

#[test]
fn a_future_is_in_its_scope_while_it_is_polled() {
    let expected = [1, 2].map(|seed| with_keys(seed, || [(); 2].map(|()| Uuid::generate())));
    let mut context = Context::from_waker(Waker::noop());
    let mut one = pin!(with_keys_async(1, two()));
    let mut other = pin!(with_keys_async(2, two()));
    assert!(one.as_mut().poll(&mut context).is_pending());
    assert!(!IS_ENTERED.get(), "nothing is left while the future waits");
    assert!(other.as_mut().poll(&mut context).is_pending());
    // On another thread, too: the scope goes with the future.
    let first = thread::scope(|scope| {
        let poll = || one.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        scope.spawn(poll).join().unwrap()
    });
    assert_eq!(first, Poll::Ready(expected[0]));
    assert_eq!(other.as_mut().poll(&mut context), Poll::Ready(expected[1]));

    fn is_send(_: &impl Send) {}
    is_send(&with_keys_async(1, async { Uuid::generate() }));
}

#[test]
fn the_clock_of_a_scope_can_be_set() {
    let keys = Keys::new(7);
    let first = keys.run(Uuid::generate);
    keys.clock()
        .set_unix_millis(Keys::START.as_unix_millis() + 1_000);
    let second = keys.run(Uuid::generate);
    let millis = |key: &Uuid| UuidV7::timestamp(key).unwrap().as_unix_millis();
    assert_eq!(millis(&second) - millis(&first), 1_000);
    assert_eq!(alloc::format!("{keys:?}"), "Keys { seed: 7, .. }");
}

/// The secret names what a thread remembers of a unit of time.
#[test]
fn schemes_of_one_seed_do_not_share_their_secret() {
    let raw = with_keys(7, || {
        let first = made::<UuidV7>();
        let between = made::<Ulid>();
        (first, between, made::<UuidV7>())
    });
    with_keys(7, || {
        assert_eq!(made::<UuidV7>(), raw.0);
        assert_eq!(made::<UuidV7>(), raw.2);
        assert_eq!(made::<Ulid>(), raw.1);
    });
    assert!(raw.0[0].to_bytes() < raw.2[0].to_bytes());
}

/// `generate` panics, as it does outside where the layout's time is over, and makes no key that the seed did not decide.
#[test]
fn a_clock_that_a_layout_has_no_time_for_makes_no_key_in_a_scope() {
    let keys = Keys::new(7);
    keys.clock().set_unix_millis(4_102_444_800_000); // 2100-01-01
    let made = catch_unwind(AssertUnwindSafe(|| keys.run(CombNHibernate::generate)));
    let panic = made.map(Generated::into_raw).unwrap_err();
    let text = panic.downcast::<alloc::string::String>().unwrap();
    assert!(text.starts_with("cannot make a key: "), "{text}");
    assert!(text.contains("4102444800000 ms does not fit"), "{text}");
}
