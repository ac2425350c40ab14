//! Derived code is free of warnings.

#![deny(
    warnings,
    future_incompatible,
    nonstandard_style,
    rust_2018_idioms,
    absolute_paths_not_starting_with_crate,
    elided_lifetimes_in_paths,
    explicit_outlives_requirements,
    let_underscore_drop,
    macro_use_extern_crate,
    meta_variable_misuse,
    missing_abi,
    missing_debug_implementations,
    missing_docs,
    redundant_imports,
    redundant_lifetimes,
    single_use_lifetimes,
    trivial_casts,
    trivial_numeric_casts,
    unit_bindings,
    unnameable_types,
    unreachable_pub,
    unused_extern_crates,
    unused_import_braces,
    unused_lifetimes,
    unused_macro_rules,
    unused_results,
    variant_size_differences
)]
#![forbid(unsafe_code, non_local_definitions, unused_qualifications)]
#![deny(clippy::all, clippy::pedantic, clippy::nursery)]

use ordid::{KeyType, OrderedKey, uuid::Uuid};

/// A key type.
#[derive(KeyType)]
#[ordid(scheme = uuid_v7, prefix = "ord", sqlx)]
pub struct OrderId(Uuid);

/// Another.
#[derive(KeyType)]
#[ordid(sqlx(postgres = text, mysql = char36, sqlite = text))]
pub struct CustomerId(Uuid);

/// With a node, and a bucket in front.
#[derive(KeyType)]
#[ordid(scheme = uuid_v6(node = Fixed<0x0100_0000_0007>), scatter(buckets = 16, lowest_bit = 80))]
pub struct NodeId(Uuid);

/// With a period.
#[derive(KeyType)]
#[ordid(scheme = uuid_v4_clustered(period = Minute))]
pub struct PeriodId(Uuid);

/// With bits.
#[derive(KeyType)]
#[ordid(scheme = snowflake(epoch = 1_767_225_600_000, time = 41, node = 10, sequence = 12))]
pub struct BitsId(i64);

/// With a need.
#[derive(KeyType)]
#[ordid(scheme = snowflake(epoch = "2026-01-01", years = 20, ids_per_second = 1_000))]
pub struct NeedId(i64);

/// An entity.
#[derive(OrderedKey, Debug)]
#[ordid(table = "orders", schema = "shop")]
pub struct Order<'name, T> {
    #[ordid(key)]
    id: Option<OrderId>,
    #[ordid(parent)]
    customer: CustomerId,
    #[ordid(parent = Customer)]
    agent: Option<CustomerId>,
    /// Derived code may read it still.
    #[deprecated]
    pub old: i32,
    name: &'name str,
    r#type: T,
}

/// A key of several columns.
#[derive(OrderedKey, Debug)]
pub struct Line {
    #[ordid(key, parent)]
    order: OrderId,
    #[ordid(key)]
    number: i16,
}

/// A crate may deprecate what it still has.
#[deprecated]
#[derive(KeyType)]
#[ordid(sqlx)]
pub struct OldId(Uuid);

/// An entity that is deprecated, too.
#[deprecated]
#[derive(OrderedKey, Debug)]
#[ordid(columns)]
pub struct Old {
    /// Its key.
    #[deprecated]
    pub id: CustomerId,
    #[deprecated]
    #[ordid(version)]
    version: i32,
}

/// Its parent.
#[derive(OrderedKey, Debug)]
pub struct Customer {
    id: CustomerId,
    #[ordid(parent = Self)]
    up: Option<CustomerId>,
}

#[test]
fn it_compiles_and_runs() {
    #[derive(KeyType)]
    struct LocalId(Uuid);

    #[derive(OrderedKey)]
    struct Local {
        id: LocalId,
    }

    let customer = Customer {
        id: CustomerId::generate(),
        up: None,
    };
    #[expect(deprecated)]
    let order = Order {
        id: None,
        customer: customer.id,
        agent: None,
        old: 1,
        name: "a",
        r#type: 1,
    };
    assert_eq!(order.key(), None);
    assert_eq!(customer.key(), Some(customer.id));
    let local = Local {
        id: LocalId::generate(),
    };
    assert_eq!(local.key(), Some(local.id));
}
