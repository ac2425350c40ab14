//! SQLite.

use libtest_mimic::Trial;
use ordid::{
    KeyType,
    storage::{ColumnOn, Stores, column, dialect::Sqlite as Dialect},
    uuid::Uuid,
};
use sqlx::{Pool, Sqlite, query_scalar};

use crate::{
    Outcome,
    database::one,
    keys::{Long, Native},
};

use super::{is, put, refused, run};

pub fn trials(trials: &mut Vec<Trial>) {
    sqlite_tests!(trials;
        trap_s1_declared_types_turn_text_into_numbers,
        trap_s2_a_primary_key_takes_null,
        trap_s3_bigint_is_not_the_rowid,
        trap_s4_blob_and_text_are_never_equal,
        trap_s5_two_forms_in_a_column,
        trap_s7_after_the_highest_id,
        trap_s8_nan_is_stored_as_null,
    );
}

/// A type whose name has none of `CHAR`, `CLOB`, `TEXT` and `BLOB` makes numbers of texts that look
/// like one, as hex without hyphens does if it has no letter, or an `e` alone.
async fn trap_s1_declared_types_turn_text_into_numbers(pool: Pool<Sqlite>) -> Outcome {
    const LOOK_ALIKE: [[&str; 2]; 2] = [
        [
            "12345678901234567890123456789012",
            "12345678901234567890123456789013",
        ],
        // Of version 7, and beyond all numbers.
        [
            "019000000e0070008000000000000001",
            "019000000e0070008000000000000002",
        ],
    ];
    for declared in [
        "UUID",
        "BINARY(16)",
        "STRING",
        "GUID",
        "UNIQUEIDENTIFIER",
        "RAW(16)",
        "NUMERIC",
        "INTEGER",
        "REAL",
    ] {
        let table = format!("CREATE TABLE trap (id {declared}, UNIQUE (id))");
        for [first, second] in LOOK_ALIKE {
            run(&pool, &format!("DROP TABLE IF EXISTS trap; {table}")).await?;
            run(&pool, &format!("INSERT INTO trap (id) VALUES ('{first}')")).await?;
            assert_eq!(
                one::<String>(&pool, "SELECT typeof(id) FROM trap").await?,
                "real",
                "{declared} {first}"
            );
            let again = format!("INSERT INTO trap (id) VALUES ('{second}')");
            let message = refused(&pool, &again).await?;
            assert!(message.contains("UNIQUE"), "{declared} {second}: {message}");
        }
    }
    // What ordid declares, and what other programs may have.
    for declared in [
        <column::Text as ColumnOn<Dialect>>::TYPE,
        <column::Blob as ColumnOn<Dialect>>::TYPE,
        "CHAR(32)",
        "UUID_TEXT",
        "",
    ] {
        for keys in LOOK_ALIKE {
            let sql = format!("DROP TABLE IF EXISTS trap; CREATE TABLE trap (id {declared})");
            run(&pool, &sql).await?;
            for key in keys {
                run(&pool, &format!("INSERT INTO trap VALUES ('{key}')")).await?;
            }
            let read: Vec<String> = query_scalar("SELECT id FROM trap ORDER BY id")
                .fetch_all(&pool)
                .await?;
            assert_eq!(read, keys, "{declared}");
        }
    }
    Ok(())
}

async fn trap_s2_a_primary_key_takes_null(pool: Pool<Sqlite>) -> Outcome {
    run(
        &pool,
        "CREATE TABLE r (id BLOB PRIMARY KEY); INSERT INTO r VALUES (NULL), (NULL); \
         CREATE TABLE w (id BLOB NOT NULL PRIMARY KEY) WITHOUT ROWID",
    )
    .await?;
    is(&pool, "SELECT COUNT(*) FROM r WHERE id IS NULL", 2).await?;
    let message = refused(&pool, "INSERT INTO w VALUES (NULL)").await?;
    assert!(message.contains("NOT NULL"), "{message}");
    Ok(())
}

async fn trap_s3_bigint_is_not_the_rowid(pool: Pool<Sqlite>) -> Outcome {
    run(
        &pool,
        "CREATE TABLE b (id BIGINT PRIMARY KEY); INSERT INTO b VALUES (NULL); \
         CREATE TABLE i (id INTEGER PRIMARY KEY); INSERT INTO i VALUES (NULL)",
    )
    .await?;
    is(&pool, "SELECT COUNT(*) FROM b WHERE id IS NULL", 1).await?;
    is(&pool, "SELECT id FROM i", 1).await?; // the rowid
    let indexes = "SELECT COUNT(*) FROM sqlite_schema WHERE type = 'index' AND tbl_name = ";
    is(&pool, &format!("{indexes}'b'"), 1).await?;
    is(&pool, &format!("{indexes}'i'"), 0).await?;
    Ok(())
}

async fn trap_s4_blob_and_text_are_never_equal(pool: Pool<Sqlite>) -> Outcome {
    let sql = "CREATE TABLE k (id BLOB NOT NULL PRIMARY KEY) WITHOUT ROWID";
    run(&pool, sql).await?;
    let key = Native::generate();
    put(&pool, "INSERT INTO k VALUES (?)", key).await?;
    let count = || query_scalar::<_, i64>("SELECT COUNT(*) FROM k WHERE id = ?");
    assert_eq!(
        count()
            .bind(key.to_raw().to_string())
            .fetch_one(&pool)
            .await?,
        0
    );
    assert_eq!(count().bind(key).fetch_one(&pool).await?, 1);
    Ok(())
}

/// ordid writes one form, and refuses to read another.
async fn trap_s5_two_forms_in_a_column(pool: Pool<Sqlite>) -> Outcome {
    let sql = "CREATE TABLE f (id TEXT NOT NULL PRIMARY KEY) WITHOUT ROWID";
    run(&pool, sql).await?;
    let key = Long::generate();
    let raw = key.to_raw();
    put(&pool, "INSERT INTO f VALUES (?)", key).await?;
    for text in [raw.simple().to_string(), raw.to_string().to_uppercase()] {
        put(&pool, "INSERT INTO f VALUES (?)", text.clone()).await?;
        let read = query_scalar::<_, Long>("SELECT id FROM f WHERE id = ?").bind(&text);
        let message = read.fetch_one(&pool).await.unwrap_err().to_string();
        assert!(
            message.contains("a `text` column") || message.contains("not canonical"),
            "{message}"
        );
    }
    is(&pool, "SELECT COUNT(*) FROM f", 3).await?; // three rows of one key
    let stored = <column::Text as Stores<Uuid>>::encode(raw);
    assert_eq!(&stored[..], raw.to_string().as_bytes());
    Ok(())
}

async fn trap_s7_after_the_highest_id(pool: Pool<Sqlite>) -> Outcome {
    run(
        &pool,
        "CREATE TABLE h (id INTEGER PRIMARY KEY); INSERT INTO h VALUES (9223372036854775807); \
         INSERT INTO h VALUES (NULL)",
    )
    .await?;
    let random: i64 = one(&pool, "SELECT MIN(id) FROM h").await?;
    assert!(random < i64::MAX, "not one more: {random}");
    Ok(())
}

async fn trap_s8_nan_is_stored_as_null(pool: Pool<Sqlite>) -> Outcome {
    run(&pool, "CREATE TABLE h (number REAL)").await?;
    let insert = sqlx::query("INSERT INTO h VALUES (?)").bind(f64::NAN);
    insert.execute(&pool).await?;
    is(&pool, "SELECT COUNT(*) FROM h WHERE number IS NULL", 1).await?;
    Ok(())
}
