//! PostgreSQL.

use libtest_mimic::Trial;
use ordid::{KeyType, storage::dialect::Postgres as Dialect, uuid::Uuid};
use ordid_sqlx::{Stored, column};
use ordid_tests::{scratch_tests, servers::Servers};
use sqlx::{
    AssertSqlSafe, Decode, Encode, Pool, Postgres, Row as _, Type, postgres::PgHasArrayType, query,
    query_scalar, raw_sql,
};

use crate::{
    Outcome,
    changes::finds::keys_find_their_rows,
    database::one,
    engine::{Key, char_columns, columns, finds, of_work},
    flush::a_transaction_that_has_failed_is_over,
    keys::{
        Base32, InBytes, Keys, Long, Native, NoOrder, Number, Object, ObjectText, Push, PushBytes,
        PushText, Short, Wide, WideChar, WideText,
    },
    on_scratch,
};

type Columns = crate::engine::Columns<Postgres, Dialect>;

mod twins {
    use ordid::uuid::Uuid as AnyUuid;
    use sqlx::{
        Encode, Pool, Postgres, Type,
        encode::IsNull,
        error::BoxDynError,
        postgres::{
            PgArgumentBuffer, PgTypeInfo,
            types::{PgInterval, PgMoney, PgRange},
        },
    };

    use crate::{Outcome, changes::twins::an_update_leaves_what_an_insert_would};

    #[derive(sqlx::Type)]
    #[sqlx(type_name = "mood", rename_all = "lowercase")]
    enum Mood {
        Sad,
        Happy,
    }

    /// Of a domain.
    #[derive(sqlx::Type)]
    #[sqlx(type_name = "email")]
    struct Email(String);

    #[derive(sqlx::Type)]
    #[sqlx(type_name = "place")]
    struct Place {
        x: i32,
        y: Option<String>,
    }

    /// Bound as `jsonb`, as SQLx binds `Json`: its version, and its text.
    struct Json(String);

    impl Type<Postgres> for Json {
        fn type_info() -> PgTypeInfo {
            PgTypeInfo::with_name("jsonb")
        }
    }

    impl Encode<'_, Postgres> for Json {
        fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
            buffer.push(1);
            buffer.extend_from_slice(self.0.as_bytes());
            Ok(IsNull::No)
        }
    }

    /// Microseconds since 2000, as SQLx binds its times.
    struct Moment(i64);

    impl Type<Postgres> for Moment {
        fn type_info() -> PgTypeInfo {
            PgTypeInfo::with_name("timestamptz")
        }
    }

    impl Encode<'_, Postgres> for Moment {
        fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
            buffer.extend_from_slice(&self.0.to_be_bytes());
            Ok(IsNull::No)
        }
    }

    fn integer(number: usize) -> i32 {
        i32::try_from(number).unwrap()
    }

    crate::changes::twins::twins! {
        Postgres, "wanted.?::text IS DISTINCT FROM changed.?::text";
        flag: bool = "boolean NOT NULL", |n| n % 2 == 0;
        tiny: i8 = "\"char\"", |n| i8::try_from(n % 100).unwrap() + 1;
        small: Option<i16> = "smallint", |n| (n % 3 > 0).then_some(-7);
        number: i32 = "bigint", integer;
        large: Option<i64> = "bigint", |n| (n % 3 > 0).then_some(i64::MIN + n as i64);
        exact: i64 = "numeric(20, 2)", |n| -(n as i64);
        half: f32 = "double precision", |n| n as f32 / 3.0;
        narrow: f64 = "real", |n| f64::from(integer(n)) / 7.0;
        name: String = "text NOT NULL", |n| format!("Ødegård {n}");
        note: Option<String> = "varchar(20)", |n| (n % 3 > 0).then(|| format!("{n}"));
        code: String = "char(6)", |n| format!("{n}");
        picture: Vec<u8> = "bytea", |n| vec![0, 0xff, u8::try_from(n % 256).unwrap()];
        thumb: Option<Vec<u8>> = "bytea", |n| (n % 3 > 0).then(|| n.to_be_bytes().to_vec());
        uuid: AnyUuid = "uuid", |n| AnyUuid::from_u128(n as u128);
        mood: Option<Mood> = "mood", |n| [None, Some(Mood::Sad), Some(Mood::Happy)].into_iter().nth(n % 3).unwrap();
        email: Email = "email", |n| Email(format!("{n}@example.org"));
        base: String = "email", |n| format!("{n}@example.org");
        place: Option<Place> = "place", |n| (n % 3 > 0).then(|| Place { x: integer(n), y: (n % 5 > 0).then(|| format!("{n}")) });
        list: Vec<i32> = "bigint[]", |n| (0..integer(n) % 4).collect();
        words: Option<Vec<String>> = "varchar(20)[]", |n| (n % 3 > 0).then(|| vec![format!("{n}"), String::new()]);
        span: PgInterval = "interval", |n| PgInterval { months: integer(n), days: -1, microseconds: 7 };
        range: Option<PgRange<i32>> = "int4range", |n| (n % 3 > 0).then(|| (0..integer(n)).into());
        money: PgMoney = "money", |n| PgMoney(n as i64);
        json: Option<Json> = "json", |n| (n % 3 > 0).then(|| Json(format!("{{\"n\": [{n}, null]}}")));
        jsonb: Json = "jsonb", |n| Json(format!("{{\"n\": [{n}, null]}}"));
        moment: Option<Moment> = "timestamptz", |n| (n % 3 > 0).then_some(Moment(n as i64));
        local: Moment = "timestamp(3)", |n| Moment(n as i64 * 777);
        day: Option<Moment> = "date", |n| (n % 3 > 0).then_some(Moment(n as i64 * 86_400_000_000));
    }

    pub async fn with_types(pool: Pool<Postgres>) -> Outcome {
        super::Columns::execute(
            &pool,
            "CREATE TYPE mood AS ENUM ('sad', 'happy'); \
             CREATE DOMAIN email AS varchar(30) CHECK (VALUE LIKE '%@%'); \
             CREATE TYPE place AS (x integer, y text)",
        )
        .await?;
        an_update_leaves_what_an_insert_would(pool).await
    }
}

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    macro_rules! add {
        ($name:expr, $test:expr) => {
            on_scratch::<Postgres, _, _>(trials, servers, "postgres", $name, $test);
        };
    }
    columns! {
        add;
        Native = "uuid", "id::text";
        InBytes = "bytea", "upper(encode(id, 'hex'))";
        Object = "bytea_of_object_ids", "upper(encode(id, 'hex'))";
        PushBytes = "bytea_of_push_ids", "upper(encode(id, 'hex'))";
        Wide = "bytea_of_192_bits", "upper(encode(id, 'hex'))";
        Long = "text", "id";
        ObjectText = "text_of_object_ids", "id";
        PushText = "text_of_push_ids", "id";
        WideText = "text_of_192_bits", "id";
        Number = "bigint", "id::text";
    }
    char_columns!(add);
    add!(
        "unordered_comes_back",
        |pool| Columns::round_trip::<NoOrder>(pool, "id::text")
    );
    add!("bigint_compares_with_its_sign", Columns::signed_order);
    scratch_tests!(trials, servers, Postgres: "postgres", "";
        char22_under_another_collation_loses_order,
        arrays_are_bound_and_read,
        wrappers_need_no_newtype,
        a_text_key_finds_its_index,
        a_lost_connection_is_told,
        changes_a_row_that_a_trigger_passes_over_is_missing,
        schemas_are_quoted,
        a_transaction_that_has_failed_is_over,
    );
    for (name, test) in of_work() {
        add!(&name, test);
    }
    add!(
        "changes_an_update_leaves_what_an_insert_would",
        twins::with_types
    );
    finds!(
        add; Native, InBytes, Long, Short, Base32, Number, Object, Push, Wide, NoOrder
    );
}

async fn char22_under_another_collation_loses_order(pool: Pool<Postgres>) -> Outcome {
    Columns::only_one_keeps_order(pool, "text COLLATE \"C\"", "text COLLATE \"en-x-icu\"").await
}

async fn arrays_are_bound_and_read(pool: Pool<Postgres>) -> Outcome {
    Columns::create::<Native>(&pool, "native").await?;
    Columns::create::<Short>(&pool, "short").await?;
    let native: Vec<(usize, Native)> = (0..5).map(|i| (i, Native::generate())).collect();
    let short: Vec<(usize, Short)> = (0..5).map(|i| (i, Short::generate())).collect();
    Columns::insert(&pool, "native", &native).await?;
    Columns::insert(&pool, "short", &short).await?;

    let wanted = vec![native[1].1, native[3].1];
    let found: Vec<Native> = query_scalar("SELECT id FROM native WHERE id = ANY($1) ORDER BY id")
        .bind(&wanted)
        .fetch_all(&pool)
        .await?;
    assert_eq!(found, wanted);
    let gathered: Vec<Native> = one(&pool, "SELECT array_agg(id ORDER BY id) FROM native").await?;
    assert_eq!(
        gathered,
        native.iter().map(|(_, key)| *key).collect::<Vec<_>>()
    );

    let wanted = [short[0].1, short[4].1];
    let found: Vec<Short> = query_scalar("SELECT id FROM short WHERE id = ANY($1) ORDER BY id")
        .bind(&wanted[..])
        .fetch_all(&pool)
        .await?;
    assert_eq!(found, wanted);
    let unnested: Vec<Short> = query_scalar("SELECT * FROM UNNEST($1)")
        .bind(&wanted[..])
        .fetch_all(&pool)
        .await?;
    assert_eq!(unnested, wanted);

    array_of::<InBytes>(&pool).await?;
    array_of::<Object>(&pool).await?;
    array_of::<PushBytes>(&pool).await?;
    array_of::<WideChar>(&pool).await?;
    array_of::<Base32>(&pool).await?;
    array_of::<Number>(&pool).await?;
    array_of::<NoOrder>(&pool).await
}

/// As a parameter and as a result, in the binary and in the text protocol.
async fn array_of<K>(pool: &Pool<Postgres>) -> Outcome
where
    K: Key<Postgres, Dialect> + PgHasArrayType + Type<Postgres>,
    K: for<'q> Encode<'q, Postgres> + for<'r> Decode<'r, Postgres>,
    K: Unpin,
{
    let table = format!("array_{}", K::NAME).to_lowercase();
    Columns::create::<K>(pool, &table).await?;
    let rows: Vec<(usize, K)> = K::rising(5).into_iter().enumerate().collect();
    Columns::insert(pool, &table, &rows).await?;
    let wanted = vec![rows[1].1, rows[3].1];
    let sql = format!("SELECT id FROM {table} WHERE id = ANY($1) ORDER BY position");
    let found: Vec<K> = query_scalar(AssertSqlSafe(sql))
        .bind(&wanted)
        .fetch_all(pool)
        .await?;
    assert_eq!(found, wanted);
    let sql = format!("SELECT array_agg(id ORDER BY position) FROM {table}");
    let all: Vec<K> = rows.iter().map(|(_, key)| *key).collect();
    let prepared: Vec<K> = query_scalar(AssertSqlSafe(sql.clone()))
        .fetch_one(pool)
        .await?;
    assert_eq!(prepared, all);
    let unprepared = raw_sql(AssertSqlSafe(sql)).fetch_one(pool).await?;
    assert_eq!(unprepared.try_get::<Vec<K>, _>(0)?, all);
    Ok(())
}

async fn wrappers_need_no_newtype(pool: Pool<Postgres>) -> Outcome {
    type Key = Stored<Uuid, column::Char22>;
    Columns::create::<Short>(&pool, "wrapped").await?;
    let keys: Vec<Key> = (0..3).map(|_| Uuid::generate().into()).collect();
    for (position, key) in keys.iter().enumerate() {
        query("INSERT INTO wrapped (id, position) VALUES ($1, $2)")
            .bind(key)
            .bind(i32::try_from(position)?)
            .execute(&pool)
            .await?;
    }
    let read: Vec<Key> = query_scalar("SELECT id FROM wrapped WHERE id = ANY($1) ORDER BY id")
        .bind(&keys)
        .fetch_all(&pool)
        .await?;
    assert_eq!(read, keys);
    let absent: Option<Key> = one(&pool, "SELECT other FROM wrapped LIMIT 1").await?;
    assert_eq!(absent, None);

    // Without order, and of another raw key.
    type Random = Stored<Uuid, column::Unordered<column::Bytea>>;
    type Count = Stored<Number, column::BigInt>;
    let (random, count) = (
        Random::new(Uuid::generate()),
        Count::new(Number::rising(1)[0]),
    );
    let read: (Random, Count, Vec<Count>) =
        sqlx::query_as("SELECT $1::bytea, $2::bigint, ARRAY[$2::bigint]")
            .bind(random)
            .bind(count)
            .fetch_one(&pool)
            .await?;
    assert_eq!(read, (random, count, vec![count]));
    Ok(())
}

/// A parameter of another type than the column's is compared without the index: why 22-character
/// keys are declared `text`, not `char(22)`.
async fn a_text_key_finds_its_index(pool: Pool<Postgres>) -> Outcome {
    let rows: Vec<(usize, Short)> = (0..5_000).map(|i| (i, Short::generate())).collect();
    Columns::create::<Short>(&pool, "indexed").await?;
    Columns::execute(
        &pool,
        "CREATE TABLE padded (id char(22) COLLATE \"C\" PRIMARY KEY, position integer NOT NULL)",
    )
    .await?;
    for (table, expected) in [
        ("indexed", "Index Scan using indexed_pkey"),
        ("padded", "Seq Scan on padded"),
    ] {
        Columns::insert(&pool, table, &rows).await?;
        Columns::execute(&pool, &format!("ANALYZE {table}")).await?;
        let sql = format!("EXPLAIN SELECT position FROM {table} WHERE id = $1");
        let plan: Vec<String> = query_scalar(AssertSqlSafe(sql))
            .bind(rows[7].1)
            .fetch_all(&pool)
            .await?;
        assert!(plan[0].starts_with(expected), "{plan:?}");
    }
    Ok(())
}

async fn a_lost_connection_is_told(pool: Pool<Postgres>) -> Outcome {
    use crate::flush::{customer, until_sent};
    let sql = "CREATE TABLE customers (id uuid PRIMARY KEY, name text, credit bigint)";
    Columns::execute(&pool, sql).await?;
    // A `COPY` takes 100 chunks, and reports them when it has ended. With 10 rows in a chunk there are three `COPY`s,
    // so the first one reports its rows while the others are not yet sent.
    const ENGINE: ordid_sqlx::EngineProfile = {
        let mut engine = ordid_sqlx::EngineProfile::POSTGRES;
        engine.max_rows = 10;
        engine
    };
    let mut work = ordid_sqlx::UnitOfWork::new()
        .with_retry(ordid_sqlx::Retry::NONE)
        .with_engine(ENGINE);
    // This is more than sockets buffer, so the rest is not yet sent when the first rows are reported.
    let name = "x".repeat(8_192);
    for _ in 0..3_000 {
        work.add(customer(&name));
    }
    // The server ends every other connection to this database when the first rows are in.
    let killer = pool.clone();
    let mut spare = killer.acquire().await?;
    let (report, first_sent) = std::sync::mpsc::channel();
    work.observe(move |progress| {
        let _ = report.send(progress);
    });
    let mut flush = Box::pin(work.flush(&pool));
    until_sent(flush.as_mut(), &first_sent).await;
    query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
         WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )
    .execute(&mut *spare)
    .await?;
    let error = flush.as_mut().await.unwrap_err();
    drop(flush);
    assert_eq!(error.table(), Some("customers"));
    assert!(
        error.key().is_none() && error.is_connection_lost() && !error.is_commit_unknown(),
        "{error}"
    );
    let count: i64 = query_scalar("SELECT COUNT(*) FROM customers")
        .fetch_one(&mut *spare)
        .await?;
    assert_eq!(count, 0);
    drop(spare);
    assert_eq!(
        work.flush(&pool).await?.rows(),
        3_000,
        "the same work, once more"
    );
    Ok(())
}

#[derive(ordid::OrderedKey)]
#[ordid(schema = "my \"shop\"", table = "select")]
struct Hostile {
    #[ordid(key, column = "the key")]
    id: Native,
    #[ordid(column = "1\"; DROP TABLE x; --")]
    value: i32,
}

async fn schemas_are_quoted(pool: Pool<Postgres>) -> Outcome {
    Columns::execute(
        &pool,
        "CREATE SCHEMA \"my \"\"shop\"\"\"; CREATE TABLE \"my \"\"shop\"\"\".\"select\" \
         (\"the key\" uuid PRIMARY KEY, \"1\"\"; DROP TABLE x; --\" integer)",
    )
    .await?;
    let mut work = ordid_sqlx::UnitOfWork::new();
    let key = work.add(Hostile {
        id: Native::generate(),
        value: 9,
    });
    work.flush(&pool).await?;
    let read: (Native, i32) = sqlx::query_as("SELECT * FROM \"my \"\"shop\"\"\".\"select\"")
        .fetch_one(&pool)
        .await?;
    assert_eq!(read, (key, 9));
    Ok(())
}

#[derive(ordid::OrderedKey)]
#[ordid(table = "guarded")]
struct Guarded {
    id: Native,
    value: i32,
}

/// The server says of a row that a trigger keeps as it was what it says of one that is not there.
async fn changes_a_row_that_a_trigger_passes_over_is_missing(pool: Pool<Postgres>) -> Outcome {
    Columns::execute(
        &pool,
        "CREATE TABLE guarded (id uuid PRIMARY KEY, value integer NOT NULL); \
         CREATE FUNCTION keeps() RETURNS trigger LANGUAGE plpgsql AS \
         'BEGIN IF OLD.value = 7 THEN RETURN NULL; END IF; RETURN NEW; END'; \
         CREATE TRIGGER keeps BEFORE UPDATE ON guarded FOR EACH ROW EXECUTE FUNCTION keeps()",
    )
    .await?;
    let mut work = ordid_sqlx::UnitOfWork::new();
    let ids: Vec<Native> = (5..10)
        .map(|value| {
            let id = Native::generate();
            work.add(Guarded { id, value })
        })
        .collect();
    work.flush(&pool).await?;
    for id in &ids {
        work.update(Guarded { id: *id, value: 0 });
    }
    let error = work.flush_in(&mut pool.begin().await?).await.unwrap_err();
    assert!(error.is_missing_row(), "{error}");
    assert_eq!(error.key(), Some(&*ids[2].to_string()));
    let sum: i64 = one(&pool, "SELECT SUM(value) FROM guarded").await?;
    assert_eq!(sum, 5 + 6 + 7 + 8 + 9);
    Ok(())
}
