//! A key type for each column, keys of it, and values at the edges of the column.

use ordid::{
    KeyType, StaticScheme,
    clock::SystemClock,
    entropy::ThreadEntropy,
    generator::{Generator, OrderedGenerator, Policy, Slotted},
    key::{Key192, ObjectId, RawKey},
    scheme::snowflake::SnowflakeNode,
    uuid::Uuid,
};

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, oracle)]
pub struct NetworkId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = sequential_guid_as_binary, oracle(oracle = raw16_dotnet))]
pub struct DotNetId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = object_id, oracle(oracle = raw12))]
pub struct DocumentId(ObjectId);

#[derive(KeyType)]
#[ordid(scheme = ordered_text_32, oracle(oracle = raw24))]
pub struct LongId(Key192);

#[derive(KeyType)]
#[ordid(scheme = snowflake, oracle(oracle = number19))]
pub struct SignedId(i64);

#[derive(KeyType)]
#[ordid(scheme = uuid_short, oracle(oracle = number20))]
pub struct UnsignedId(u64);

/// Makes keys of a scheme that needs no node.
pub fn generated<K: KeyType<Scheme: StaticScheme>>(count: usize) -> Vec<K> {
    (0..count).map(|_| K::generate()).collect()
}

/// Makes a generator of a scheme that needs a node.
pub fn with_node<S: Slotted>(node: S::Node) -> OrderedGenerator<S, SystemClock, ThreadEntropy> {
    OrderedGenerator::with_node(node, SystemClock, ThreadEntropy, Policy::DEFAULT)
}

pub fn signed(count: usize) -> Vec<SignedId> {
    let node = SnowflakeNode::new(1_023).expect("the last node");
    let generator = with_node(node);
    let key = || generator.try_generate_key().expect("a key");
    (0..count).map(|_| key()).collect()
}

/// Of a server whose keys do not fit 63 bits.
pub fn unsigned(count: usize) -> Vec<UnsignedId> {
    let generator = with_node(255);
    let key = || generator.try_generate_key().expect("a key");
    (0..count).map(|_| key()).collect()
}

/// How many keys of each column are sorted.
pub const KEYS: usize = 100_000;

/// Adds the test of each column's order: `order::<K>(server, keys)`, with keys in the order in which they were made.
macro_rules! each_column_keeps_order {
    ($add:ident, $order:ident) => {
        $crate::keys::each_column_keeps_order! { $add, $order,
            "raw16_keeps_order": NetworkId, generated;
            "raw16_dotnet_keeps_order": DotNetId, generated;
            "raw12_keeps_order": DocumentId, generated;
            "raw24_keeps_order": LongId, generated;
            "number19_keeps_order": SignedId, signed;
            "number20_keeps_order": UnsignedId, unsigned;
        }
    };
    ($add:ident, $order:ident, $($name:literal: $key:ident, $keys:ident;)+) => {
        $($add($name, |server| {
            $order::<$crate::keys::$key>(server, $crate::keys::$keys($crate::keys::KEYS))
        });)+
    };
}
pub(crate) use each_column_keeps_order;

/// All zeros, all ones, and each byte alone at and around its highest bit: what a comparison of
/// signed bytes, of another byte order or of text would put elsewhere.
pub fn edges<R: RawKey>() -> Vec<R> {
    let zeros = R::Bytes::default();
    let mut ones = zeros;
    ones.as_mut().fill(0xff);
    let mut edges = vec![R::from_bytes(zeros), R::from_bytes(ones)];
    for position in 0..zeros.as_ref().len() {
        for byte in [0x01, 0x7f, 0x80, 0xff] {
            let mut bytes = zeros;
            bytes.as_mut()[position] = byte;
            edges.push(R::from_bytes(bytes));
        }
    }
    edges
}
