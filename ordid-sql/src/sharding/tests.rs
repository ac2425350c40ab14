use ordid_core::uuid::Uuid;
use proptest::prelude::*;
use serde_json::Value;

use super::*;
use ordid_core::{
    entity::{KeyOf, Parent},
    key::KeyBytes,
};

macro_rules! entity {
    ($entity:ident, $table:literal, $parents:expr) => {
        impl OrderedKey for $entity {
            type Field = Uuid;
            const SCHEMA: Option<&'static str> = None;
            const TABLE: &'static str = $table;
            const KEY_COLUMN: &'static str = "id";
            const COLUMNS: &'static [&'static str] = &["id"];
            const PARENTS: &'static [Parent] = $parents;

            fn key(&self) -> Option<KeyOf<Self>> {
                Some(self.id)
            }

            fn assign_key(&mut self, key: KeyOf<Self>) {
                self.id = key;
            }

            fn parents(&self, _: &mut dyn FnMut(usize, KeyBytes)) {}
        }
    };
}

#[derive(Clone, Debug, PartialEq)]
struct Customer {
    id: Uuid,
}

struct Order {
    id: Uuid,
    customer: Option<Uuid>,
}

entity!(Customer, "customers", &[]);
entity!(
    Order,
    "orders",
    &[Parent::by_entity::<Option<Uuid>, Customer>("customer_id")]
);

fn id(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

/// What others compute: see the file's `source`.
#[test]
fn a_hash_is_the_same_everywhere() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/sharding.json");
    let vectors: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let counts = vectors["counts"].as_array().unwrap();
    let keys = vectors["keys"].as_array().unwrap();
    assert_eq!((counts.len(), keys.len()), (7, 24));
    for key in keys {
        let hex = key["bytes"].as_str().unwrap();
        let bytes: Vec<u8> = (0..hex.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
            .collect();
        let shards = key["shards"].as_array().unwrap();
        for (count, shard) in counts.iter().zip(shards) {
            let count = u32::try_from(count.as_u64().unwrap()).unwrap();
            assert_eq!(
                by_hash(&bytes, count) as u64,
                shard.as_u64().unwrap(),
                "{hex}"
            );
            if let Ok(uuid) = Uuid::from_slice(&bytes) {
                let sharding = Sharding::by_hash(count as usize).unwrap();
                assert_eq!(
                    sharding.shard(uuid).unwrap() as u64,
                    shard.as_u64().unwrap()
                );
            }
        }
    }
}

#[test]
fn a_hash_spreads_rising_keys_evenly() {
    for shards in [2, 3, 7, 16] {
        let sharding = Sharding::by_hash(shards).unwrap();
        let mut counts = vec![0_u32; shards];
        for number in 0..16_000 {
            counts[sharding.shard(id(number)).unwrap()] += 1;
        }
        let expected = 16_000.0 / shards as f64;
        for count in counts {
            // Five standard deviations; the keys are fixed.
            assert!(
                (f64::from(count) - expected).abs() < 5.0 * expected.sqrt(),
                "{count}"
            );
        }
    }
}

#[test]
fn one_shard_more_takes_its_share_and_moves_nothing_else() {
    for shards in 1..20 {
        let before = Sharding::by_hash(shards).unwrap();
        let after = Sharding::by_hash(shards + 1).unwrap();
        let mut moved = 0_u32;
        for number in 0..4_000 {
            let (old, new) = (
                before.shard(id(number)).unwrap(),
                after.shard(id(number)).unwrap(),
            );
            assert!(new == old || new == shards);
            moved += u32::from(new != old);
        }
        let share = 4_000.0 / (shards + 1) as f64;
        assert!(
            (f64::from(moved) - share).abs() < 5.0 * share.sqrt(),
            "{moved} of {share}"
        );
    }
}

proptest! {
    /// Each shard has the keys from one boundary on, and below the next.
    #[test]
    fn ranges_begin_at_their_boundaries(
        boundaries in proptest::collection::btree_set(0_u128..50, 0..10),
        key in 0_u128..50,
    ) {
        let boundaries: Vec<Uuid> = boundaries.into_iter().map(id).collect();
        let sharding = Sharding::by_ranges(boundaries.clone()).unwrap();
        prop_assert_eq!(sharding.shards(), boundaries.len() + 1);
        let shard = sharding.shard(id(key)).unwrap();
        prop_assert!(shard == 0 || boundaries[shard - 1] <= id(key));
        prop_assert!(shard == boundaries.len() || id(key) < boundaries[shard]);
    }
}

#[test]
fn boundaries_rise() {
    for boundaries in [[id(7), id(7)], [id(7), id(3)]] {
        let error = Sharding::by_ranges(boundaries).unwrap_err();
        assert!(error.is_plan());
        assert_eq!(
            error.to_string(),
            format!(
                "the boundaries of ranges of keys have to rise: {} comes before {}",
                boundaries[0], boundaries[1]
            )
        );
    }
}

#[test]
fn a_row_is_where_its_route_leads() {
    let sharding = Sharding::by_ranges([id(10)])
        .unwrap()
        .route(|order: &Order| order.customer);
    for sharding in [&sharding, &sharding.clone()] {
        let of = |id, customer| sharding.shard_of(&Order { id, customer });
        assert_eq!(of(id(1), Some(id(20))).unwrap(), 1);
        assert_eq!(of(id(20), Some(id(1))).unwrap(), 0);
        let error = of(id(1), None).unwrap_err();
        assert!(error.is_plan());
        assert_eq!(
            error.to_string(),
            "a row of orders has no key to be spread by: its route found none"
        );
        // By its own key, since it refers to nobody.
        assert_eq!(sharding.shard_of(&Customer { id: id(10) }).unwrap(), 1);
    }
    // The last route of a type holds.
    let by_own_key = sharding.route(|order: &Order| order.id);
    let order = Order {
        id: id(1),
        customer: Some(id(20)),
    };
    assert_eq!(by_own_key.shard_of(&order).unwrap(), 0);
}

#[test]
fn children_need_a_route() {
    let sharding = Sharding::by_hash(2).unwrap();
    let order = Order {
        id: id(1),
        customer: None,
    };
    let error = sharding.shard_of(&order).unwrap_err();
    assert!(error.is_plan());
    assert_eq!(
        error.to_string(),
        "rows of orders refer to others by customer_id, and no foreign key crosses databases: say \
         by which key they are spread, as in `sharding.route(|row: &Row| row.customer_id)`, if that \
         is where their parents are"
    );
}

#[test]
fn what_is_everywhere_has_no_shard_but_copies() {
    let sharding = Sharding::by_hash(3).unwrap();
    assert!(sharding.copy_of::<Customer>().is_none());
    let customer = Customer { id: id(1) };
    assert!(sharding.shard_of(&customer).is_ok());
    // Whatever its route says.
    let sharding = sharding.everywhere::<Customer>();
    let sharding = sharding.route(|customer: &Customer| customer.id).clone();
    let error = sharding.shard_of(&customer).unwrap_err();
    assert!(error.is_plan());
    assert_eq!(
        error.to_string(),
        "rows of customers are on each of the 3 shards: read them on any, write them on all"
    );
    let copy = sharding.copy_of::<Customer>().unwrap();
    assert_eq!(copy(&customer), customer);
    assert!(sharding.copy_of::<Order>().is_none());
}

#[test]
fn there_is_a_database_for_each_shard() {
    let sharding = Sharding::by_hash(2).unwrap();
    assert!(sharding.check_databases(2).is_ok());
    let error = sharding.check_databases(3).unwrap_err();
    assert!(error.is_plan());
    assert_eq!(
        error.to_string(),
        "rows are spread over 2 databases, and 3 were given"
    );
    let error = Sharding::by_hash(0).unwrap_err();
    assert_eq!(
        error.to_string(),
        "keys can be spread over 1 to 4294967295 databases, not over 0"
    );
    assert_eq!(
        format!("{sharding:?}"),
        r#"Sharding { by: "hash", shards: 2, routes: 0, everywhere: 0 }"#
    );
}
