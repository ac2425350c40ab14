//! Tests of columns that the database fills.

use ordid::{KeyType as _, uuid::Uuid};
use sqlx::Pool;

use super::{Change, Engine, EverydayWork, Filled, Receipt};
use crate::trials::Outcome;

/// Checks that the filled values are those of the database, for rows in the order of their keys.
#[track_caller]
fn check(filled: &[Filled], stored: &[Receipt]) {
    assert_eq!(filled.len(), stored.len());
    for (filled, stored) in filled.iter().zip(stored) {
        assert_eq!(filled.luck.get(), Some(stored.luck), "{stored:?}");
        assert_eq!(filled.doubled.get(), Some(stored.doubled), "{stored:?}");
        assert_eq!(
            filled.remark.get(),
            Some(stored.remark.clone()),
            "{stored:?}"
        );
    }
}

fn is_empty(filled: &Filled) -> bool {
    filled.luck.is_empty() && filled.doubled.is_empty() && filled.remark.is_empty()
}

/// Makes ascending keys.
fn keys(count: usize) -> Vec<Uuid> {
    (0..count).map(|_| Uuid::generate()).collect()
}

pub(super) async fn what_the_database_fills_is_known_after_the_flush<W: EverydayWork>(
    pool: Pool<W::Database>,
) -> Outcome {
    let keys = keys(3);
    let mut work = W::begin();
    // The rows are added in another order than the one in which they are sent.
    let add = |(stars, id): (i64, &Uuid)| work.receipt(Change::Add, *id, stars);
    let mut filled: Vec<_> = [10, 5, 0]
        .into_iter()
        .zip(keys.iter().rev())
        .map(add)
        .collect();
    filled.reverse();
    assert!(filled.iter().all(is_empty));
    let flushed = work.flush(&pool).await?;
    assert_eq!(flushed.rows(), 3);
    let stored = W::Database::receipts(&pool).await?;
    check(&filled, &stored);
    let remarks = stored.iter().map(|it| it.remark.as_deref());
    assert_eq!(remarks.collect::<Vec<_>>(), [None, None, Some("many")]);
    let doubled = stored.iter().map(|it| it.doubled);
    assert_eq!(doubled.collect::<Vec<_>>(), [0, 10, 20]);

    // An update changes a generated column with the others, but not a column with a default.
    let mut work = W::begin();
    let changes = [Change::Update, Change::UpdateStars, Change::UpdateChanged];
    let changes = changes.into_iter().zip(&keys);
    let filled: Vec<_> = changes
        .map(|(change, id)| work.receipt(change, *id, 9))
        .collect();
    let flushed = work.flush(&pool).await?;
    assert_eq!(flushed.updated(), 3);
    let updated = W::Database::receipts(&pool).await?;
    check(&filled, &updated);
    for (before, after) in stored.iter().zip(&updated) {
        assert_eq!((after.luck, after.doubled), (before.luck, 18));
    }
    Ok(())
}

/// Writes more rows than a statement takes. There are enough for a `COPY`, which is not used for a table with a
/// generated column.
pub(super) async fn what_the_database_fills_in_many_rows_is_known<W: EverydayWork>(
    pool: Pool<W::Database>,
) -> Outcome {
    let keys = keys(2_300);
    for generated in [true, false] {
        if !generated {
            let (key, random) = (W::Database::KEY, W::Database::RANDOM);
            let sql = format!(
                "DROP TABLE receipts; CREATE TABLE receipts (id {key} PRIMARY KEY, stars BIGINT NOT NULL, \
                 luck BIGINT NOT NULL DEFAULT {random}, doubled BIGINT NOT NULL DEFAULT 4, remark VARCHAR(40))"
            );
            W::Database::execute_sql(&pool, sql).await?;
        }
        let mut work = W::begin();
        let add = |id: &Uuid| work.receipt(Change::Add, *id, 7);
        let filled: Vec<_> = keys.iter().map(add).collect();
        let flushed = work.flush(&pool).await?;
        assert_eq!(flushed.rows(), keys.len());
        let stored = W::Database::receipts(&pool).await?;
        check(&filled, &stored);
        let first = stored[0].luck;
        assert!(stored.iter().any(|it| it.luck != first));
    }
    Ok(())
}

pub(super) async fn what_the_database_fills_is_known_of_rows_that_are_there<W: EverydayWork>(
    pool: Pool<W::Database>,
) -> Outcome {
    let keys = keys(4);
    let mut work = W::begin();
    for id in keys.iter().step_by(2) {
        work.receipt(Change::Add, *id, 1);
    }
    work.flush(&pool).await?;
    for change in [Change::Upsert, Change::Ignore] {
        let mut work = W::begin();
        let filled = keys.iter().map(|id| work.receipt(change, *id, 8));
        let filled: Vec<_> = filled.collect();
        work.flush(&pool).await?;
        check(&filled, &W::Database::receipts(&pool).await?);
    }
    Ok(())
}

pub(super) async fn a_refused_flush_fills_nothing<W: EverydayWork>(
    pool: Pool<W::Database>,
) -> Outcome {
    let keys = keys(2);
    let mut work = W::begin();
    let filled = [
        work.receipt(Change::Add, keys[0], 1),
        work.receipt(Change::Add, keys[1], -1),
    ];
    let error = work.flush(&pool).await.unwrap_err();
    assert!(
        error.message.contains("nothing was written"),
        "{}",
        error.message
    );
    assert!(filled.iter().all(is_empty), "{filled:?}");
    assert!(W::Database::receipts(&pool).await?.is_empty());
    Ok(())
}
