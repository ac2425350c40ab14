//! `arbitrary`: keys of the fuzzer's bytes, all of them valid.

use arbitrary::{Error, Result, Unstructured};

use super::{key_of_bits, length_of};
use crate::KeyType;

/// Body of a key type's `arbitrary`.
///
/// # Errors
///
/// Where a scheme refuses what its `coerce` made.
pub fn arbitrary<K: KeyType>(source: &mut Unstructured<'_>) -> Result<K> {
    let mut filled = Ok(());
    let key = key_of_bits(|bytes| filled = source.fill_buffer(bytes));
    filled?;
    key.ok_or(Error::IncorrectFormat)
}

/// Body of a key type's `size_hint`.
pub fn size_hint<K: KeyType>() -> (usize, Option<usize>) {
    let length = length_of::<K>();
    (length, Some(length))
}
