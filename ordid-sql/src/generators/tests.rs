use std::{
    cell::RefCell,
    panic::{self, AssertUnwindSafe},
    sync::Arc,
};

use ordid_core::uuid::Uuid;

use super::*;
use ordid_core::{
    __private,
    clock::{ManualClock, Timestamp},
    entity::{EnsuredKey, Parent},
    entropy::SeededEntropy,
    generator::Policy,
    key::{Generated, KeyBytes, KeyField, KeyFields},
    scheme::{
        Snowflake, UuidV7,
        snowflake::{SnowflakeGenerator, SnowflakeNode, Twitter},
        uuid_v7::UuidV7Generator,
    },
};

/// What `#[derive(KeyType)]` makes of `struct ...(i64)` with `scheme = snowflake`.
macro_rules! flake_id {
    ($key:ident) => {
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        struct $key(i64);

        impl KeyType for $key {
            type Raw = i64;
            type Scheme = Snowflake<Twitter>;

            const NAME: &'static str = stringify!($key);
            const PREFIX: Option<&'static str> = None;

            fn from_generated(generated: Generated<Self::Scheme>) -> Self {
                Self(generated.into_raw())
            }

            fn to_raw(self) -> i64 {
                self.0
            }

            fn from_raw(raw: i64) -> Result<Self, Error> {
                __private::from_raw(raw)
            }
        }

        impl fmt::Display for $key {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                __private::fmt_display(*self, f)
            }
        }

        impl fmt::Debug for $key {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                __private::fmt_debug(*self, f)
            }
        }
    };
}

flake_id!(FlakeId);
flake_id!(OtherId);

struct Row<F>(F);

impl<F: KeyField> OrderedKey for Row<F> {
    type Field = F;
    const SCHEMA: Option<&'static str> = None;
    const TABLE: &'static str = "rows";
    const KEY_COLUMN: &'static str = "id";
    const COLUMNS: &'static [&'static str] = &["id"];
    const PARENTS: &'static [Parent] = &[];

    fn key(&self) -> Option<F::Key> {
        self.0.get()
    }

    fn assign_key(&mut self, key: F::Key) {
        self.0.set(key);
    }

    fn parents(&self, _: &mut dyn FnMut(usize, KeyBytes)) {}
}

fn flakes(
    node: u64,
) -> SnowflakeGenerator<Twitter, impl ordid_core::clock::Clock, impl ordid_core::entropy::Entropy> {
    SnowflakeGenerator::with_node(
        SnowflakeNode::new(node).unwrap(),
        ManualClock::at_unix_millis(1_469_918_176_385),
        SeededEntropy::new(1),
        Policy::DEFAULT,
    )
}

fn node_of(key: i64) -> i64 {
    (key >> 12) & 0x3ff
}

#[test]
fn each_key_type_has_a_generator_of_its_own() {
    let mut given = Generators::new();
    given.insert::<FlakeId>(flakes(5));
    given.insert::<OtherId>(flakes(6));
    let mut rows = [Row::<Option<FlakeId>>(None), Row(None)];
    let keys = rows
        .each_mut()
        .map(|row| given.ensure_key(row).unwrap().to_raw());
    assert!(keys[0] < keys[1]);
    assert_eq!(keys.map(node_of), [5, 5]);
    let mut other = Row::<Option<OtherId>>(None);
    assert_eq!(node_of(given.ensure_key(&mut other).unwrap().to_raw()), 6);
    // Once assigned, it stays: also by another generator.
    assert_eq!(given.ensure_key(&mut rows[0]).unwrap().to_raw(), keys[0]);
    let again = rows[0].ensure_key_with(&flakes(7)).unwrap();
    assert_eq!(again.to_raw(), keys[0]);
    given.insert::<FlakeId>(flakes(8));
    assert_eq!(given.ensure_key(&mut rows[0]).unwrap().to_raw(), keys[0]);
    let mut later = Row::<Option<FlakeId>>(None);
    assert_eq!(node_of(given.ensure_key(&mut later).unwrap().to_raw()), 8);
}

#[test]
fn a_generator_can_be_shared() {
    let shared = Arc::new(flakes(5));
    let first = shared.try_generate().unwrap().into_raw();
    let keys: Vec<i64> = (0..2)
        .map(|_| {
            let mut given = Generators::new();
            given.insert::<FlakeId>(Arc::clone(&shared));
            let mut row = Row::<Option<FlakeId>>(None);
            given.ensure_key(&mut row).unwrap().to_raw()
        })
        .collect();
    assert_eq!(keys, [first + 1, first + 2]);
    let mut row = Row::<Option<FlakeId>>(None);
    assert_eq!(
        row.ensure_key_with(&&*shared).unwrap().to_raw(),
        first + 3,
        "by reference"
    );
}

#[test]
fn a_missing_generator_is_an_error_that_says_how_to_give_it() {
    let mut given = Generators::new();
    given.insert::<OtherId>(flakes(5));
    let error = given
        .ensure_key(&mut Row::<Option<FlakeId>>(None))
        .unwrap_err();
    assert!(error.is_plan());
    assert_eq!(
        error.to_string(),
        "a row of rows has no key, and no generator was given for `FlakeId` (scheme snowflake); \
         give one with `with_generator::<FlakeId>(generator)`"
    );
    // Nothing is needed where the key is there.
    let mut row = Row(Some(FlakeId(1 << 22)));
    assert_eq!(given.ensure_key(&mut row).unwrap(), FlakeId(1 << 22));
}

#[test]
fn a_generator_that_refuses_leaves_the_row_without_a_key() {
    static CLOCK: ManualClock = ManualClock::at_unix_millis(1_469_918_176_385);
    let node = SnowflakeNode::new(5).unwrap();
    let generator: SnowflakeGenerator<Twitter, _, _> =
        SnowflakeGenerator::with_node(node, &CLOCK, SeededEntropy::new(1), Policy::DEFAULT);
    let mut given = Generators::new();
    given.insert::<FlakeId>(generator);
    given.ensure_key(&mut Row::<Option<FlakeId>>(None)).unwrap();
    CLOCK.set_unix_millis(1_469_889_376_385);
    let mut row = Row::<Option<FlakeId>>(None);
    assert!(given.ensure_key(&mut row).unwrap_err().is_clock());
    assert_eq!(row.key(), None);
}

#[test]
fn a_generator_goes_before_the_one_of_the_process() {
    let clock = ManualClock::at_unix_millis(1_000);
    let mut given = Generators::new();
    given.insert::<Uuid>(UuidV7Generator::new(
        clock,
        SeededEntropy::new(1),
        Policy::DEFAULT,
    ));
    let key = given.ensure_key(&mut Row::<Option<Uuid>>(None)).unwrap();
    assert_eq!(UuidV7::timestamp(&key).unwrap().as_unix_millis(), 1_000);
    // Also where one of the process could make the key.
    let ensure = |given: &Generators, mut row: Row<Option<Uuid>>| {
        let key = given.ensure_key_or_generate(&mut row).unwrap();
        assert_eq!(row.key(), Some(key));
        UuidV7::timestamp(&key).unwrap().as_unix_millis()
    };
    assert_eq!(ensure(&given, Row(None)), 1_000);
    assert!(ensure(&Generators::new(), Row(None)) > 1_000);
    let there = Uuid::generate_at(Timestamp::saturating_from_unix_millis(7)).unwrap();
    assert_eq!(ensure(&given, Row(Some(there))), 7);
}

#[test]
fn a_key_that_is_there_needs_no_generator_of_its_scheme() {
    fn ensure<E: OrderedKey<Field: EnsuredKey>>(mut entity: E) -> KeyOf<E> {
        let key = entity.ensure_key();
        assert_eq!(entity.ensure_key(), key);
        assert_eq!(entity.key(), Some(key));
        key
    }

    assert_eq!(ensure(Row(FlakeId(1 << 22))), FlakeId(1 << 22));
    assert!(ensure(Row::<Option<Uuid>>(None)) < ensure(Row::<Option<Uuid>>(None)));
}

thread_local! {
    /// Where this thread has panicked, and with which text.
    static PANICKED: RefCell<(String, u32)> = const { RefCell::new((String::new(), 0)) };
}

/// Each function between the caller and the panic has to say `track_caller`.
#[test]
fn a_part_of_a_key_that_nothing_makes_panics_where_the_row_is_added() {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let line = info.location().map_or(0, panic::Location::line);
        // Also of a thread that ends.
        let _ = PANICKED.try_with(|seen| seen.replace((info.to_string(), line)));
        before(info);
    }));
    let given = Generators::new();
    let mut row = Row(KeyFields((Some(Uuid::generate()), None::<i32>)));
    let line = line!() + 1;
    let add = AssertUnwindSafe(|| given.ensure_key_or_generate(&mut row));
    panic::catch_unwind(add).unwrap_err();
    let (text, at) = PANICKED.take();
    assert_eq!(at, line, "{text}");
    assert!(
        text.contains("a row of rows has no value in the column id of its key"),
        "{text}"
    );
}
