//! The user's names stand for the user's things, whatever the derives emit.

#![allow(
    dead_code,
    unused_imports,
    non_camel_case_types,
    non_upper_case_globals
)]

mod names {
    pub struct Ok;
    pub struct Err;
    pub struct Some;
    pub struct None;
    pub struct Option;
    pub struct Result;
    pub struct String;
    pub struct Error;
    pub struct KeyType;
    pub struct Fields;
    pub struct Sink;
    pub struct Sized;
    pub struct bool;
    pub struct str;
    pub trait Clone {}
    pub trait Copy {}
    pub trait Ord {}
    pub trait PartialOrd {}
    pub trait Eq {}
    pub trait PartialEq {}
    pub trait Hash {}
    pub trait Debug {}
    pub trait Display {}
    pub trait From {}
    pub trait TryFrom {}
    pub trait FromStr {}
    pub trait FnMut {}
    pub mod ordid {}
    pub mod ordid_oracle {}
    pub mod ordid_sqlx {}
    pub mod ordid_tiberius {}
    pub mod std {}
    pub mod core {}
    pub const visit: u8 = 0;
    pub const key: u8 = 0;
    pub const sink: u8 = 0;
    pub const f: u8 = 0;

    // Parameters in the adapters' macros. `value` and `registry` are parameters in the macro of async-graphql, too, which
    // would fail here.
    pub struct buffer;
    pub struct data;
    pub struct deserializer;
    pub struct index;
    pub struct info;
    pub struct number;
    pub struct out;
    pub struct row;
    pub struct scalar;
    pub struct serializer;
    pub struct source;
    pub struct token;
    pub struct ty;

    /// Not the one of the crate `uuid`.
    pub struct Uuid;
}

mod keys {
    use super::names::*;

    type Raw = ::uuid::Uuid;

    #[derive(::ordid::KeyType)]
    #[ordid(scheme = uuid_v7, prefix = "ord", sqlx, oracle, tiberius(sql_server = binary16))]
    pub struct OrderId(Raw);

    #[derive(::ordid::OrderedKey)]
    #[ordid(table = "orders", schema = "shop")]
    pub struct Order {
        #[ordid(key)]
        pub id: ::core::option::Option<OrderId>,
        #[ordid(parent)]
        pub up: OrderId,
        #[ordid(parent = Order)]
        pub down: OrderId,
        pub number: i64,
    }

    #[derive(::ordid::OrderedKey)]
    pub struct Line {
        #[ordid(key)]
        pub order: OrderId,
        #[ordid(key)]
        pub number: i16,
    }
}

/// Nothing is in scope, not even the prelude.
#[no_implicit_prelude]
mod nothing {
    #[derive(::ordid::KeyType)]
    #[ordid(prefix = "ord", sqlx, oracle, tiberius(sql_server = binary16))]
    pub struct OrderId(::uuid::Uuid);

    #[derive(::ordid::OrderedKey)]
    pub struct Order<T: 'static> {
        pub id: OrderId,
        #[ordid(parent = Self)]
        pub up: ::std::option::Option<OrderId>,
        pub value: T,
    }

    #[derive(::ordid::OrderedKey)]
    pub struct Line {
        #[ordid(key)]
        pub order: OrderId,
        #[ordid(key)]
        pub number: i16,
    }
}

#[test]
fn it_compiles_and_runs() {
    use ordid::{KeyType, OrderedKey};

    let up = keys::OrderId::generate();
    let mut order = keys::Order {
        id: None,
        up,
        down: up,
        number: 1,
    };
    assert_eq!(order.ensure_key(), order.id.expect("it was assigned"));
    let order = nothing::Order {
        id: nothing::OrderId::generate(),
        up: None,
        value: 1,
    };
    assert_eq!(order.key(), Some(order.id));
    let line = keys::Line {
        order: up,
        number: 7,
    };
    assert_eq!(line.key().map(|key| key.0), Some((up, 7)));
    let line = nothing::Line {
        order: order.id,
        number: 7,
    };
    assert_eq!(line.key().map(|key| key.0), Some((order.id, 7)));
}
