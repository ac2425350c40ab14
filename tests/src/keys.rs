//! Keys of the columns' tests, and how those are made that a process does not make by itself.

use ordid::{
    KeyType, RawKey, Scheme,
    clock::SystemClock,
    entropy::ThreadEntropy,
    generator::{Generator, Policy},
    scheme::{
        Snowflake, UuidShort,
        snowflake::{SnowflakeGenerator, SnowflakeNode},
        uuid_short::UuidShortGenerator,
    },
    uuid::Uuid,
};

/// Keys for a test: many that were generated one after the other, and some that never were.
pub trait Keys: KeyType {
    /// Makes keys that rise.
    fn rising(count: usize) -> Vec<Self>;

    /// Makes keys of any bits, unless the scheme fixes them: the least, the greatest, and random
    /// ones.
    #[must_use]
    fn wild(count: usize) -> Vec<Self> {
        let mut keys = Vec::new();
        for index in 0..count {
            let mut bytes = <Self::Raw as RawKey>::Bytes::default();
            let mut random = std::iter::repeat_with(|| Uuid::new_v4().into_bytes())
                // Where version and variant are, v4 is not random.
                .flat_map(|bytes| [&bytes[..6], &bytes[9..]].concat());
            for byte in bytes.as_mut() {
                *byte = match index {
                    0 => 0,
                    1 => 0xff,
                    _ => random.next().expect("it does not end"),
                };
            }
            let raw = Self::Scheme::coerce(<Self::Raw as RawKey>::from_bytes(bytes));
            keys.extend(Self::from_raw(raw).ok());
        }
        keys
    }
}

/// Implements `keys::Keys` for key types that the process makes by itself.
#[macro_export]
macro_rules! process_wide {
    ($($key:ident),+ $(,)?) => {
        $(impl $crate::keys::Keys for $key {
            fn rising(count: usize) -> Vec<Self> {
                (0..count).map(|_| Self::generate()).collect()
            }
        })+
    };
}

/// Makes snowflakes that rise.
#[must_use]
pub fn snowflakes<K: KeyType<Raw = i64, Scheme = Snowflake>>(count: usize) -> Vec<K> {
    let node = SnowflakeNode::new(7).expect("ten bits hold it");
    let keys = SnowflakeGenerator::with_node(node, SystemClock, ThreadEntropy, Policy::DEFAULT);
    made(count, || keys.try_generate_key())
}

/// Makes keys as `UUID_SHORT()` does, that rise.
#[must_use]
pub fn uuid_shorts<K: KeyType<Raw = u64, Scheme = UuidShort>>(count: usize) -> Vec<K> {
    // The server's number is in front: these keys are above all that a sign leaves room for.
    let keys = UuidShortGenerator::with_node(200, SystemClock, ThreadEntropy, Policy::DEFAULT);
    made(count, || keys.try_generate_key())
}

fn made<K>(count: usize, make: impl Fn() -> Result<K, ordid::Error>) -> Vec<K> {
    let keys = (0..count).map(|_| make().expect("the clock runs"));
    keys.collect()
}
