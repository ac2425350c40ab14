//! An adapter that ordid does not know, in a module of this crate, and one by the path of its crate.

use ordid::{
    KeyType, Scheme,
    storage::{Column, ColumnOn, assert_keeps_order, column::names::NamedColumn},
    uuid::Uuid,
};

/// Keeps what it was called with.
trait StoredIn {
    const SCHEME: &'static str;
    const COLUMNS: &'static [&'static str];
}

mod memory {
    macro_rules! memory_engine {
        (key: $key:ty, $scheme:ty) => {
            impl $crate::StoredIn for $key {
                const SCHEME: &'static str = <$scheme as ordid::Scheme>::NAME;
                const COLUMNS: &'static [&'static str] = <$key>::STORED;
            }
        };
        (all: $key:ty, $scheme:ty, $raw:ident) => {
            impl $key {
                const STORED: &'static [&'static str] = &[stringify!($raw)];
            }
        };
        (vec: $key:ty, $scheme:ty, $column:ty) => {
            impl $key {
                const STORED: &'static [&'static str] = &[$crate::name_of::<$scheme, $column>()];
            }
        };
        (_: $key:ty, $scheme:ty, $column:ty) => {
            impl $key {
                const STORED: &'static [&'static str] =
                    &["any", $crate::name_of::<$scheme, $column>()];
            }
        };
    }
    pub(crate) use memory_engine as engine;

    pub mod engine {
        pub use ordid::storage::column::names::{any, sqlite as vec};
    }
}

const fn name_of<S: Scheme, N: NamedColumn>() -> &'static str
where
    N::Column: ColumnOn<N::Dialect>,
{
    assert_keeps_order::<S, N::Column, N::Dialect>();
    <N::Column as Column>::NAME
}

#[derive(KeyType)]
#[ordid(adapter = memory)]
struct Bare(Uuid);

#[derive(KeyType)]
#[ordid(scheme = snowflake, adapter = crate::memory(vec = integer), adapter = ordid_sqlx(sqlite = integer))]
struct Number(i64);

#[derive(KeyType)]
#[ordid(scheme = uuid_v4, adapter = self::memory(unordered(char22)), sqlx(sqlite = unordered(blob)))]
#[ordid(adapter = ::ordid_oracle(oracle = unordered(raw16)))]
struct Random(Uuid);

fn sqlx<K: ordid_sqlx::StoredAs<sqlx::Sqlite>>() {}
fn oracle<K: ordid_oracle::StoredAs>() {}

#[test]
fn it_compiles_and_runs() {
    assert_eq!((Bare::SCHEME, Bare::COLUMNS), ("uuid_v7", &["Uuid"][..]));
    assert_eq!(
        (Number::SCHEME, Number::COLUMNS),
        ("snowflake", &["integer"][..])
    );
    assert_eq!(
        (Random::SCHEME, Random::COLUMNS),
        ("uuid_v4", &["any", "char22"][..])
    );
    sqlx::<Number>();
    oracle::<Random>();
}
