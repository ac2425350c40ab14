//! The order of stored keys, where it is not the order of the keys.
//!
//! Only a newtype under `unordered(column)` has such an order, and only its engine macro knows of it.
//! A unit of work knows a key by SQLx's traits alone, since keys that are SQLx's own, as `Uuid` or a
//! `#[sqlx(transparent)]` newtype, are as good. So it binds a key and listens: what a macro wrote as
//! the key's `Encode` [tells](tell) the order to whoever does.

use std::{
    any::Any,
    cell::{Cell, RefCell},
    cmp::Ordering,
};

use ordid_core::{KeyType, RawKey, Scheme, storage::Stores};
use sqlx::Database;

use super::{SqlxColumn, StoredAs};

/// How to compare two raw keys.
pub(crate) type Compare<R> = fn(&R, &R) -> Ordering;

thread_local! {
    static LISTENS: Cell<bool> = const { Cell::new(false) };
    static HEARD: RefCell<Option<Box<dyn Any>>> = const { RefCell::new(None) };
}

/// Returns how the database compares the stored keys: as the keys compare, or under
/// `unordered(column)` as the column does. `bind` encodes a key for that database.
pub(crate) fn stored_order<K: KeyType>(bind: impl FnOnce(K)) -> Compare<K::Raw> {
    let zero = K::Raw::from_bytes(<K::Raw as RawKey>::Bytes::default());
    let Ok(key) = K::from_raw(K::Scheme::coerce(zero)) else {
        return K::Scheme::cmp;
    };
    LISTENS.set(true);
    bind(key);
    LISTENS.set(false);
    // Of another type where the key is a transparent newtype of one with other raw keys.
    let heard = HEARD.take().and_then(|heard| heard.downcast().ok());
    heard.map_or(K::Scheme::cmp, |compare: Box<Compare<K::Raw>>| *compare)
}

/// Tells the order of a key's stored form to [`stored_order`], if that is who asks.
pub(super) fn tell<DB: Database, K: StoredAs<DB>>() {
    if <K::Column as SqlxColumn<DB, K::Raw>>::UNORDERED && LISTENS.get() {
        let compare: Compare<K::Raw> = <K::Column as Stores<K::Raw>>::compare;
        HEARD.set(Some(Box::new(compare)));
    }
}

#[cfg(all(test, feature = "mysql", feature = "sqlite"))]
mod tests {
    use ordid::{KeyType, OrderedKey, storage::column::Unordered};
    use sqlx::{MySql, Sqlite};
    use uuid::Uuid;

    use crate::{Backend, Entity};

    /// Rises from its end, which MariaDB's `UUID` compares first and a `BLOB` last.
    #[derive(KeyType)]
    #[ordid(scheme = comb_nhibernate)]
    struct Comb(Uuid);

    crate::engine! { mysql: Comb, <Comb as KeyType>::Scheme, crate::engine::mysql::mariadb_uuid }
    crate::engine! {
        sqlite: Comb, <Comb as KeyType>::Scheme, Unordered<crate::engine::sqlite::blob>
    }

    #[derive(KeyType, sqlx::Type)]
    #[sqlx(transparent)]
    #[ordid(scheme = uuid_v7)]
    struct Plain(Uuid);

    #[derive(OrderedKey)]
    struct Row<K: KeyType> {
        #[ordid(key)]
        id: Option<K>,
    }

    fn sort<DB: Backend, K: KeyType>(keys: &mut [K])
    where
        Row<K>: Entity<DB> + OrderedKey<Field = Option<K>>,
    {
        let compare = <Row<K> as Entity<DB>>::__register().compare;
        keys.sort_by(|left, right| compare(&left.to_raw(), &right.to_raw()));
    }

    #[test]
    fn only_an_unordered_column_has_an_order_of_its_own() {
        let mut keys: Vec<Comb> = (0..100).map(|_| Comb::generate()).collect();
        let bytes = |key: &Comb| key.to_raw().into_bytes();
        assert!(keys.is_sorted() && !keys.is_sorted_by_key(bytes));
        sort::<MySql, Comb>(&mut keys);
        assert!(keys.is_sorted());
        sort::<Sqlite, Comb>(&mut keys);
        assert!(keys.is_sorted_by_key(bytes));

        let mut keys: Vec<Plain> = (0..100).map(|_| Plain::generate()).rev().collect();
        sort::<Sqlite, Plain>(&mut keys);
        assert!(keys.is_sorted());
    }
}
