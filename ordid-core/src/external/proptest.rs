//! `proptest`: keys of random bytes, all of them valid, which shrink byte by byte towards zero: a
//! smaller time, then a smaller rest.

use alloc::vec::Vec;

use proptest::{
    collection::{VecStrategy, vec},
    num::u8::{ANY, Any},
    strategy::{FilterMap, Strategy as _},
};

use super::{key_of_bits, length_of};
use crate::KeyType;

/// Makes keys of a type.
pub type KeyStrategy<K> = FilterMap<VecStrategy<Any>, fn(Vec<u8>) -> Option<K>>;

/// Body of a key type's `arbitrary_with`.
pub fn strategy<K: KeyType>() -> KeyStrategy<K> {
    let to_key: fn(Vec<u8>) -> Option<K> =
        |random| key_of_bits(|bytes| bytes.copy_from_slice(&random));
    vec(ANY, length_of::<K>()).prop_filter_map("the scheme refuses these bits", to_key)
}
