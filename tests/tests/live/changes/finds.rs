//! Rows that are found by keys of every form.

use ordid::{KeyType, OrderedKey, key::KeyField};
use ordid_sqlx::{Entity, UnitOfWork};
use sqlx::Pool;

use crate::{
    Outcome,
    database::{Live, Reads, read},
    keys::Keys,
};

/// A row whose key is of any form.
#[derive(OrderedKey, Clone, Debug, PartialEq, sqlx::FromRow)]
#[ordid(table = "keyed")]
pub struct Keyed<K: KeyType> {
    pub id: K,
    pub other: Option<K>,
    pub position: i32,
}

/// Keys of this form are found, over several chunks, to update and to delete their rows.
/// `create` makes a table of keys.
pub async fn keys_find_their_rows<DB, K>(
    pool: Pool<DB>,
    create: impl AsyncFn(&Pool<DB>, &str) -> Result<(), sqlx::Error>,
) -> Outcome
where
    DB: Live + Reads<Keyed<K>>,
    K: Keys + KeyField<Key = K> + std::fmt::Debug,
    Keyed<K>: Entity<DB> + OrderedKey<Field = K>,
{
    create(&pool, "keyed").await?;
    let mut keys = K::rising(2_300);
    keys.extend(K::wild(50));
    keys.sort_unstable();
    keys.dedup();
    let row = |number: usize, other: usize, position: i32| Keyed {
        id: keys[number],
        other: number.is_multiple_of(3).then_some(keys[other]),
        position,
    };
    let mut work = UnitOfWork::<DB>::new();
    for number in 0..keys.len() {
        work.add(row(number, 0, 0));
    }
    work.flush(&pool).await?;
    let mut wanted = Vec::new();
    for number in (0..keys.len()).rev() {
        let row = row(number, keys.len() - number - 1, i32::try_from(number)? + 1);
        if number.is_multiple_of(2) {
            work.delete(&row);
        } else {
            work.update(row.clone());
            wanted.push(row);
        }
    }
    wanted.reverse();
    let mut transaction = pool.begin().await?;
    let flushed = work.flush_in(&mut transaction).await?;
    assert_eq!(flushed.updated(), wanted.len());
    assert_eq!(flushed.updated() + flushed.deleted(), keys.len());
    transaction.commit().await?;
    let mut read: Vec<Keyed<K>> = read(&pool, "SELECT id, other, position FROM keyed").await?;
    read.sort_by_key(|row| row.id);
    assert_eq!(read, wanted);
    Ok(())
}
