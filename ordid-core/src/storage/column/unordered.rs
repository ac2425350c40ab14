//! A column for keys whose order is not wanted, or is lost anyway.

use core::marker::PhantomData;

use super::super::Dialect;
use super::*;

/// A column in which keys need not keep their order. Users write it as `unordered(binary16)`.
///
/// It stores keys as the column inside does. It takes keys of every scheme, even if the database does not sort them
/// in the order in which they were made: random keys, for example, or keys that keep their order on another database.
/// The price is more than `ORDER BY`: inserts go to scattered pages of the index.
///
/// # Example
///
/// ```
/// use ordid_core::{
///     storage::{KeepsOrder, column::{MariaDbUuid, Unordered}},
///     uuid::Uuid,
/// };
///
/// fn allowed<K: KeepsOrder<C>, C: ordid_core::storage::Column>() {}
/// allowed::<Uuid, Unordered<MariaDbUuid>>();
/// ```
pub struct Unordered<C>(PhantomData<fn() -> C>);

impl<C: Column> Column for Unordered<C> {
    const NAME: &'static str = C::NAME;
    const COMPARISON: Comparison = C::COMPARISON;
    const COMPARES: &'static str = C::COMPARES;
    const UNORDERED: bool = true;
}

impl<D: Dialect, C: ColumnOn<D>> ColumnOn<D> for Unordered<C> {
    const TYPE: &'static str = C::TYPE;
    const SOURCE: &'static str = C::SOURCE;
    const LITERAL: Literal = C::LITERAL;
}

impl<R: RawKey, C: Stores<R>> Stores<R> for Unordered<C> {
    type Stored = C::Stored;
    type SortKey = C::SortKey;

    #[inline]
    fn encode(raw: R) -> C::Stored {
        C::encode(raw)
    }

    fn decode<'a>(found: impl Into<Found<'a>>) -> Result<R, Error> {
        C::decode(found)
    }

    fn sort_key(raw: R) -> C::SortKey {
        C::sort_key(raw)
    }

    fn from_sort_key(key: C::SortKey) -> Result<R, Error> {
        C::from_sort_key(key)
    }
}
