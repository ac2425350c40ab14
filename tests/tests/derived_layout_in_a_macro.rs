//! Parameters that come in through a macro's fragments, as names, paths, types and literals.

use ordid::{
    KeyType, Scheme,
    scheme::snowflake::{SnowflakeLayout, Twitter as Bird},
};

struct Own;

impl SnowflakeLayout for Own {
    const NAME: &'static str = "own";
    const EPOCH_UNIX_MILLIS: i64 = 0;
    const TIME_BITS: u32 = 42;
    const NODE_BITS: u32 = 10;
    const SEQUENCE_BITS: u32 = 11;
}

macro_rules! key {
    ($key:ident, ty $layout:ty) => {
        #[derive(KeyType)]
        #[ordid(scheme = snowflake(layout = $layout))]
        struct $key(i64);
    };
    ($key:ident, path $layout:path) => {
        #[derive(KeyType)]
        #[ordid(scheme = snowflake(layout = $layout))]
        struct $key(i64);
    };
    ($key:ident, ident $layout:ident) => {
        #[derive(KeyType)]
        #[ordid(scheme = snowflake(layout = $layout), prefix = "key")]
        struct $key(i64);
    };
    ($key:ident, bits $epoch:literal $time:literal) => {
        #[derive(KeyType)]
        #[ordid(scheme = snowflake(epoch = $epoch, time = $time, node = 10, sequence = 12))]
        struct $key(i64);
    };
    ($key:ident, node $node:ty) => {
        #[derive(KeyType)]
        #[ordid(scheme = uuid_v6(node = $node), scatter(buckets = 16))]
        struct $key(ordid::uuid::Uuid);
    };
    ($key:ident, $raw:ty) => {
        #[derive(KeyType)]
        #[ordid(scheme = snowflake(layout = Own))]
        struct $key($raw);
    };
}

key!(A, ty Own);
key!(B, ty Sonyflake);
key!(C, path ordid::scheme::snowflake::Discord);
key!(D, ident Yitter);
key!(E, ident Bird);
key!(F, i64);
key!(G, bits "2026-01-01" 41);
key!(H, bits 1_767_225_600_000 41);
key!(I, node Fixed<0x0100_0000_0007>);

fn name<K: KeyType>() -> &'static str {
    <K::Scheme as Scheme>::NAME
}

#[test]
fn it_compiles_and_runs() -> Result<(), ordid::Error> {
    assert_eq!(name::<A>(), "own");
    assert_eq!(name::<B>(), "sonyflake");
    assert_eq!(name::<C>(), "discord");
    assert_eq!(name::<D>(), "yitter");
    assert_eq!(name::<E>(), "snowflake");
    assert_eq!(name::<F>(), "own");
    assert_eq!(name::<G>(), "snowflake_bits");
    assert_eq!(name::<H>(), "snowflake_bits");
    assert_eq!(name::<I>(), "uuid_v6");
    assert_eq!("key_7".parse::<D>()?.to_raw(), 7);
    assert!(A::from_raw(1)? < A::from_raw(2)?);
    Ok(())
}
