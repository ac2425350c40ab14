//! SQLite, in a file per test, with foreign keys on.

use libtest_mimic::Trial;
use ordid::KeyType;
use sqlx::{
    Pool, Sqlite, query, query_scalar,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions},
};

use self::columns::*;
use crate::{
    Outcome,
    keys::{Long, Native, Short, short_texts},
    run,
};

mod columns {
    crate::engine::engine!(Sqlite, ordid::storage::dialect::Sqlite);
}

mod flush {
    crate::flush::flush!(
        Sqlite,
        ordid::storage::dialect::Sqlite,
        Blob,
        "WITHOUT ROWID",
        copies: false
    );
}

pub fn trials(trials: &mut Vec<Trial>) {
    add(trials, "blob_comes_back", |pool| {
        round_trip::<Native>(pool, BLOB_AS_UUID)
    });
    add(trials, "text_comes_back", |pool| {
        round_trip::<Long>(pool, "id")
    });
    add(trials, "char22_comes_back", |pool| {
        round_trip::<Short>(pool, "id")
    });
    add(trials, "blob_keeps_order", order::<Native>);
    add(trials, "text_keeps_order", order::<Long>);
    add(trials, "char22_keeps_order", order::<Short>);
    add(trials, "char22_under_nocase_loses_order", wrong_collation);
    add(
        trials,
        "declared_uuid_turns_text_into_numbers",
        numeric_affinity,
    );
    add(trials, "a_wrong_column_is_named", wrong_column);
    add(
        trials,
        "parents_first_in_chunks",
        flush::parents_first_in_chunks,
    );
    add(
        trials,
        "failure_names_the_row",
        flush::failure_names_the_row_and_leaves_nothing,
    );
    add(
        trials,
        "missing_parent",
        flush::a_missing_parent_and_a_failed_check_are_told,
    );
    add(
        trials,
        "open_transaction",
        flush::an_open_transaction_is_respected,
    );
    add(trials, "retry", flush::a_retry_carries_the_same_keys);
    add(
        trials,
        "tree",
        flush::a_tree_in_one_table_goes_in_root_first,
    );
    add(trials, "cancelled", flush::a_cancelled_flush_leaves_nothing);
}

/// The hyphenated text of a blob.
const BLOB_AS_UUID: &str = "substr(hex(id), 1, 8) || '-' || substr(hex(id), 9, 4) || '-' || \
                            substr(hex(id), 13, 4) || '-' || substr(hex(id), 17, 4) || '-' || \
                            substr(hex(id), 21)";

pub fn add<F: Future<Output = Outcome>>(
    trials: &mut Vec<Trial>,
    name: &str,
    test: impl FnOnce(Pool<Sqlite>) -> F + Send + 'static,
) {
    trials.push(Trial::test(format!("sqlite::{name}"), move || {
        run(async || {
            let folder = tempfile::tempdir()?;
            let options = SqliteConnectOptions::new()
                .filename(folder.path().join("test.sqlite"))
                .create_if_missing(true)
                .journal_mode(SqliteJournalMode::Wal)
                .foreign_keys(true);
            let pool = SqlitePoolOptions::new()
                .max_connections(2)
                .connect_with(options)
                .await?;
            let outcome = test(pool.clone()).await;
            pool.close().await;
            outcome
        })
    }));
}

async fn wrong_collation(pool: Pool<Sqlite>) -> Outcome {
    let keys = short_texts();
    assert_eq!(
        inversions(&pool, "good", "TEXT COLLATE BINARY", &keys).await?,
        0
    );
    assert!(inversions(&pool, "bad", "TEXT COLLATE NOCASE", &keys).await? > 100);
    Ok(())
}

/// Why `text` is never declared `UUID`: hex digits without a letter become a number.
async fn numeric_affinity(pool: Pool<Sqlite>) -> Outcome {
    execute(&pool, "CREATE TABLE trap (id UUID PRIMARY KEY)").await?;
    query("INSERT INTO trap VALUES ('12345678901234567890123456789012')")
        .execute(&pool)
        .await?;
    let second = query("INSERT INTO trap VALUES ('12345678901234567890123456789013')");
    assert!(
        second.execute(&pool).await.is_err(),
        "two keys are one number"
    );
    let kind: String = query_scalar("SELECT typeof(id) FROM trap")
        .fetch_one(&pool)
        .await?;
    assert_eq!(kind, "real");
    Ok(())
}

async fn wrong_column(pool: Pool<Sqlite>) -> Outcome {
    create::<Native>(&pool, "keys").await?;
    insert(&pool, "keys", &[(0, Native::generate())]).await?;
    let error = query_scalar::<_, Long>("SELECT id FROM keys")
        .fetch_one(&pool)
        .await
        .unwrap_err();
    let message = error.to_string();
    assert!(message.contains("a `text` column holds a UUID as 36 characters, found 16 bytes"));
    assert!(
        message.contains("declare `binary16`, or `blob` on SQLite"),
        "{message}"
    );
    query("UPDATE keys SET id = x'919108f752d143209bacf847db4148a8'")
        .execute(&pool)
        .await?;
    let error = query_scalar::<_, Native>("SELECT id FROM keys")
        .fetch_one(&pool)
        .await
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("not a `Native`: scheme uuid_v7 expects version 7")
    );
    Ok(())
}
