//! SQLite, in a file per test, with foreign keys on.

use libtest_mimic::Trial;
use ordid::{KeyType, OrderedKey, uuid::Uuid};
use ordid_sqlx::UnitOfWork;
use ordid_tests::trials::{over_sqlite, sqlite_file};
use sqlx::{Connection as _, Pool, Sqlite, SqliteConnection, query, query_scalar, raw_sql};

use crate::{
    Outcome,
    changes::{finds::keys_find_their_rows, twins::an_update_leaves_what_an_insert_would},
    engine::{char_columns, columns, finds, of_work},
    keys::{
        Base32, Long, Native, NoOrder, Number, Object, ObjectText, Push, PushBytes, PushText,
        Short, Wide, WideChar, WideText,
    },
    run,
};

type Columns = crate::engine::Columns<Sqlite, ordid::storage::dialect::Sqlite>;

mod twins {
    use ordid::uuid::Uuid as AnyUuid;

    crate::changes::twins::twins! {
        // Tells 1 from 1.0, '1' and x'31'.
        Sqlite, "quote(wanted.?) <> quote(changed.?)";
        flag: bool = "BOOLEAN NOT NULL", |n| n % 2 == 0;
        tiny: i8 = "INTEGER", |n| i8::try_from(n % 100).unwrap();
        byte: u8 = "INTEGER", |n| u8::try_from(n % 256).unwrap();
        small: Option<i16> = "INTEGER", |n| (n % 3 > 0).then_some(-7);
        number: i32 = "INTEGER", |n| i32::try_from(n).unwrap();
        large: i64 = "INTEGER", |n| i64::MIN + i64::try_from(n).unwrap();
        half: f32 = "REAL", |n| f32::from(u16::try_from(n).unwrap()) / 3.0;
        whole: Option<f64> = "REAL", |n| (n % 3 > 0).then_some(f64::from(u32::try_from(n).unwrap()) / 7.0);
        name: String = "TEXT NOT NULL", |n| format!("Ødegård {n}");
        note: Option<String> = "VARCHAR(20)", |n| (n % 3 > 0).then(|| format!("{n}"));
        picture: Vec<u8> = "BLOB", |n| vec![0, 0xff, u8::try_from(n % 256).unwrap()];
        thumb: Option<Vec<u8>> = "BLOB", |n| (n % 3 > 0).then(|| n.to_be_bytes().to_vec());
        uuid: AnyUuid = "BLOB", |n| AnyUuid::from_u128(n as u128);
        // Columns of another affinity.
        digits: String = "INTEGER", |n| format!("{n}");
        words: String = "INTEGER", |n| format!("{n} x");
        fraction: f64 = "INTEGER", |n| f64::from(u32::try_from(n).unwrap()) / 2.0;
        whole_text: i64 = "TEXT", |n| i64::try_from(n).unwrap();
        real_text: f64 = "TEXT", |n| f64::from(u32::try_from(n).unwrap()) / 2.0;
        whole_real: i64 = "REAL", |n| i64::try_from(n).unwrap();
        numeric: String = "NUMERIC(20, 2)", |n| format!("{n}.50");
        date: Option<String> = "DATETIME", |n| (n % 3 > 0).then(|| format!("2026-01-01 00:{:02}", n % 60));
        bytes_text: Vec<u8> = "TEXT", |n| n.to_string().into_bytes();
        no_affinity: String = "", |n| format!("{n}");
        no_affinity_whole: Option<i64> = "", |n| (n % 3 > 0).then_some(i64::try_from(n).unwrap());
    }
}

pub fn trials(trials: &mut Vec<Trial>) {
    macro_rules! add {
        ($name:expr, $test:expr) => {
            add(trials, $name, $test);
        };
    }
    columns! {
        add;
        Native = "blob", "hex(id)";
        Object = "blob_of_object_ids", "hex(id)";
        PushBytes = "blob_of_push_ids", "hex(id)";
        Wide = "blob_of_192_bits", "hex(id)";
        Long = "text", "id";
        ObjectText = "text_of_object_ids", "id";
        PushText = "text_of_push_ids", "id";
        WideText = "text_of_192_bits", "id";
        Number = "integer", "CAST(id AS TEXT)";
    }
    char_columns!(add);
    add(trials, "unordered_comes_back", |pool| {
        Columns::round_trip::<NoOrder>(pool, "hex(id)")
    });
    add(
        trials,
        "integers_compare_with_their_sign",
        Columns::signed_order,
    );
    sqlite_tests!(trials;
        char22_under_nocase_loses_order,
        a_wrong_column_is_named,
    );
    for (name, test) in of_work() {
        add(trials, &name, test);
    }
    sqlite_tests!(trials;
        unordered_keys_go_in_stored_order,
        rows_are_found_by_the_index_of_their_key,
        a_transaction_that_sqlite_has_ended_is_not_there,
    );
    add(
        trials,
        "changes_an_update_leaves_what_an_insert_would",
        an_update_leaves_what_an_insert_would,
    );
    finds!(
        add; Native, Long, Short, Base32, Number, Object, Push, Wide, NoOrder
    );
}

pub fn add<F: Future<Output = Outcome>>(
    trials: &mut Vec<Trial>,
    name: &str,
    test: impl FnOnce(Pool<Sqlite>) -> F + Send + 'static,
) {
    trials.push(Trial::test(format!("sqlite::{name}"), move || {
        run(async || {
            let (_folder, options) = sqlite_file()?;
            over_sqlite(options, 2, test).await
        })
    }));
}

/// SQLx does not know that it is over. The savepoint of the flush would begin another one, and its release would commit that.
async fn a_transaction_that_sqlite_has_ended_is_not_there(pool: Pool<Sqlite>) -> Outcome {
    #[derive(OrderedKey, Clone)]
    #[ordid(table = "notes")]
    struct Note {
        id: Native,
    }

    let tables = "CREATE TABLE marks (n INTEGER UNIQUE ON CONFLICT ROLLBACK); INSERT INTO marks VALUES (1); \
                  CREATE TABLE notes (id BLOB NOT NULL PRIMARY KEY) WITHOUT ROWID";
    raw_sql(tables).execute(&pool).await?;
    let mut transaction = pool.begin().await?;
    let marked = raw_sql("INSERT INTO marks VALUES (1)");
    assert!(marked.execute(&mut *transaction).await.is_err());
    let mut work = UnitOfWork::<Sqlite>::new();
    work.add(Note {
        id: Native::generate(),
    });
    let error = work.flush_in(&mut transaction).await.unwrap_err();
    assert!(
        error.to_string().contains("no transaction is open"),
        "{error}"
    );
    drop(transaction);
    let notes: i64 = query_scalar("SELECT count(*) FROM notes")
        .fetch_one(&pool)
        .await?;
    assert_eq!((notes, work.len()), (0, 1));

    // A connection whose transaction SQLx did not begin. That of the pool still counts the one that is over.
    let options = pool.connect_options();
    let mut connection = SqliteConnection::connect_with(&options).await?;
    raw_sql("BEGIN").execute(&mut connection).await?;
    let error = work.flush_on(&mut connection).await.unwrap_err();
    assert!(error.is_connection_state(), "{error}");
    raw_sql("ROLLBACK").execute(&mut connection).await?;
    assert_eq!(work.flush_on(&mut connection).await?.rows(), 1);
    Ok(())
}

/// Also where a version or a second column is compared.
async fn rows_are_found_by_the_index_of_their_key(pool: Pool<Sqlite>) -> Outcome {
    #[derive(OrderedKey, Clone)]
    #[ordid(table = "notes")]
    struct Note {
        id: Native,
        #[ordid(version)]
        version: i64,
    }

    #[derive(OrderedKey, Clone)]
    #[ordid(table = "marks")]
    struct Mark {
        #[ordid(key)]
        note: Native,
        #[ordid(key)]
        number: i32,
        stars: i64,
    }

    for table in [
        "CREATE TABLE notes (id BLOB PRIMARY KEY, version INTEGER NOT NULL)",
        "CREATE TABLE marks (note BLOB, number INTEGER, stars INTEGER, PRIMARY KEY (note, number))",
    ] {
        query(table).execute(&pool).await?;
    }
    let note = || Note {
        id: Native::generate(),
        version: 1,
    };
    let mark = || Mark {
        note: Native::generate(),
        number: 1,
        stars: 1,
    };
    let mut work = UnitOfWork::<Sqlite>::new();
    // As many as a statement takes: SQLite plans for the number of values.
    for _ in 0..1_000 {
        work.update(note());
        work.delete(&note());
        work.update(mark());
        work.delete(&mark());
    }
    let mut seen = 0;
    for planned in work.plan()?.tables.iter().flat_map(|it| &it.statements) {
        let sql = format!("EXPLAIN QUERY PLAN {}", planned.sql);
        let steps: Vec<(i64, i64, i64, String)> = sqlx::query_as(sqlx::AssertSqlSafe(sql))
            .fetch_all(&pool)
            .await?;
        // An automatic index is one of the list, in which each row of the table is looked for.
        let is_searched = |step: &str| {
            step.starts_with("SEARCH") && step.contains("INDEX") && !step.contains("AUTOMATIC")
        };
        let searches = steps.iter().filter(|step| is_searched(&step.3));
        assert_eq!(searches.count(), 1, "{}: {steps:?}", planned.sql);
        seen += 1;
    }
    assert_eq!(seen, 4);
    Ok(())
}

async fn char22_under_nocase_loses_order(pool: Pool<Sqlite>) -> Outcome {
    Columns::only_one_keeps_order(pool, "TEXT COLLATE BINARY", "TEXT COLLATE NOCASE").await
}

async fn a_wrong_column_is_named(pool: Pool<Sqlite>) -> Outcome {
    Columns::create::<Native>(&pool, "keys").await?;
    Columns::insert(&pool, "keys", &[(0, Native::generate())]).await?;
    let error = query_scalar::<_, Long>("SELECT id FROM keys")
        .fetch_one(&pool)
        .await
        .unwrap_err();
    let message = error.to_string();
    assert!(message.contains("a `text` column holds a UUID as 36 characters, found 16 bytes"));
    assert!(message.contains("or `blob` on SQLite"), "{message}");
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

/// A COMB rises from its end, a `BLOB` compares from its beginning.
#[derive(KeyType)]
#[ordid(scheme = comb_nhibernate, sqlx(sqlite = unordered(blob)))]
struct CombId(Uuid);

#[derive(OrderedKey)]
#[ordid(table = "combs")]
struct Comb {
    id: CombId,
}

/// An insert appends to the index of an unordered column as well: the rows' own numbers tell in which
/// order they came.
async fn unordered_keys_go_in_stored_order(pool: Pool<Sqlite>) -> Outcome {
    Columns::execute(&pool, "CREATE TABLE combs (id BLOB NOT NULL PRIMARY KEY)").await?;
    let mut work = UnitOfWork::new();
    for _ in 0..2_500 {
        work.add(Comb {
            id: CombId::generate(),
        });
    }
    work.flush(&pool).await?;
    let read = async |sql| query_scalar::<_, CombId>(sql).fetch_all(&pool).await;
    let arrived = read("SELECT id FROM combs ORDER BY rowid").await?;
    assert_eq!(arrived, read("SELECT id FROM combs ORDER BY id").await?);
    assert_eq!(arrived.len(), 2_500);
    assert!(!arrived.is_sorted(), "the keys' own order is another");
    Ok(())
}
