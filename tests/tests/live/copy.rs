//! `COPY` on PostgreSQL: rows end up as an `INSERT` would have left them, by another way where
//! `COPY` would not do that, and a flush that is cut off leaves a pool that works.

use std::time::Duration;

use libtest_mimic::Trial;
use ordid::{KeyType as _, OrderedKey};
use ordid_sqlx::{EngineProfile, Entity, Flushed, NotBulk, UnitOfWork, flushes_table};
use ordid_tests::{
    copy::{DROP, SMALL, setups, with_tenant},
    flushed::copied,
    servers::Servers,
    trials,
};
use sqlx::{
    Encode, Pool, Postgres, Type,
    encode::IsNull,
    error::BoxDynError,
    pool::PoolOptions,
    postgres::{PgArgumentBuffer, PgTypeInfo, types::Oid},
};

use crate::{
    Outcome,
    database::{Live as _, one},
    flush::{Customer, CustomerId, Order, customer, order},
    keys::{self, Keys as _, Long, Native, Object, Push, Short},
    on_scratch,
};

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    macro_rules! add {
        ($($name:ident),* $(,)?) => {
            $(on_scratch::<Postgres, _, _>(
                trials, servers, "postgres", concat!("copy::", stringify!($name)), $name,
            );)*
        };
    }
    add!(
        rows_are_what_an_insert_writes,
        few_rows_and_open_transactions_are_inserted,
        an_enum_that_is_stored_as_text_is_copied,
        what_a_copy_would_do_otherwise_is_inserted,
        row_level_security_is_kept,
        triggers_run_and_may_talk,
        a_check_that_talks_does_not_stop_the_flush,
        refused_statements_give_the_same_error,
        columns_left_out_are_filled_in,
        a_row_that_needs_a_cast_ends_the_copy,
        many_rows_that_are_upserted_or_updated_are_copied,
        a_row_that_cannot_be_encoded_is_named,
        a_value_too_long_is_named,
        a_missing_parent_is_named_among_many,
        a_flush_cut_off_at_any_poll_leaves_a_working_pool,
        a_flush_cut_off_at_any_time_leaves_a_working_pool,
        many_rows_take_several_commands,
        tables_in_a_circle_are_copied_again,
    );
}

async fn execute(pool: &Pool<Postgres>, sql: &str) -> Result<(), sqlx::Error> {
    Postgres::script(pool, sql).await
}

/// How long to wait for what should be there at once: long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// The same database over one connection, so that every use of the pool meets what the last left.
async fn single(pool: &Pool<Postgres>) -> Result<Pool<Postgres>, sqlx::Error> {
    let options = PoolOptions::new()
        .max_connections(1)
        .acquire_timeout(PATIENCE);
    options
        .connect_with((*pool.connect_options()).clone())
        .await
}

fn work<E: Entity<Postgres>>(rows: impl IntoIterator<Item = E>) -> UnitOfWork<Postgres>
where
    E::Field: ordid::EnsuredKey,
{
    let mut work = UnitOfWork::new();
    for row in rows {
        work.add(row);
    }
    work
}

/// A value in PostgreSQL's own encoding, under the number of its type.
#[derive(Clone, Debug)]
struct Raw<const TYPE: u32>(Vec<u8>);

impl<const TYPE: u32> Type<Postgres> for Raw<TYPE> {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(Oid(TYPE))
    }
}

impl<const TYPE: u32> Encode<'_, Postgres> for Raw<TYPE> {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        buffer.extend_from_slice(&self.0);
        Ok(IsNull::No)
    }
}

/// A column of every type that may be copied, and of those that fit a value to their length.
#[derive(OrderedKey, Clone)]
#[ordid(table = "wide")]
struct Wide {
    #[ordid(key)]
    id: Option<Native>,
    other: Option<Native>,
    long: Long,
    short: Option<Short>,
    number: keys::Number,
    object: Option<Object>,
    push: Push,
    yes: bool,
    bytes: Option<Vec<u8>>,
    i2: i16,
    i4: Option<i32>,
    i8: i64,
    f4: f32,
    f8: Option<f64>,
    words: String,
    varchar5: Option<String>,
    char5: String,
    bpchar: String,
    date: Raw<1082>,
    time: Raw<1083>,
    time0: Raw<1083>,
    timetz1: Raw<1266>,
    timestamp: Raw<1114>,
    timestamp0: Option<Raw<1114>>,
    timestamptz3: Raw<1184>,
    interval0: Raw<1186>,
    numeric: Raw<1700>,
    numeric2: Raw<1700>,
    money: Raw<790>,
    inet: Raw<869>,
    cidr: Raw<650>,
    macaddr: Raw<829>,
    jsonb: Option<Raw<3802>>,
}

const WIDE: &str = r#"CREATE TABLE wide (
    id uuid PRIMARY KEY, other uuid, long text COLLATE "C" NOT NULL, short text COLLATE "C",
    number bigint NOT NULL, object bytea, push text COLLATE "C" NOT NULL,
    yes boolean NOT NULL, bytes bytea, i2 smallint NOT NULL, i4 integer, i8 bigint NOT NULL,
    f4 real NOT NULL, f8 double precision, words text NOT NULL, varchar5 varchar(5),
    char5 char(5) NOT NULL, bpchar bpchar NOT NULL, date date NOT NULL, time time NOT NULL,
    time0 time(0) NOT NULL, timetz1 timetz(1) NOT NULL, timestamp timestamp NOT NULL,
    timestamp0 timestamp(0), timestamptz3 timestamptz(3) NOT NULL, interval0 interval(0) NOT NULL,
    numeric numeric NOT NULL, numeric2 numeric(10, 2) NOT NULL, money money NOT NULL,
    inet inet NOT NULL, cidr cidr NOT NULL, macaddr macaddr NOT NULL, jsonb jsonb
)"#;

fn wide(n: i16) -> Wide {
    fn bytes(parts: &[&[u8]]) -> Vec<u8> {
        parts.concat()
    }
    let (n32, n64) = (i32::from(n), i64::from(n));
    let every = |number: i16| n % number != 0;
    let micros = n64 * 71_234_567;
    // Two digits of base 10,000: 1234.5678, and so on.
    let numeric = [
        2_i16,
        0,
        if n % 2 == 0 { 0 } else { 0x4000 },
        4,
        n,
        5678 - n,
    ]
    .map(i16::to_be_bytes)
    .concat();
    let words = ["", "a\tb\\.\n\"", "ß 🦀", "\\N", "  "];
    let short = ["", "ab", "abcde", "ab   ", "abcde   "];
    let word = |words: [&str; 5]| words[usize::try_from(n % 5).unwrap()].to_owned();
    let low = n.to_be_bytes()[1];
    Wide {
        id: None,
        other: every(3).then(Native::generate),
        long: Long::generate(),
        short: every(4).then(Short::generate),
        number: keys::Number::rising(1)[0],
        object: every(5).then(Object::generate),
        push: Push::generate(),
        yes: n % 2 == 0,
        bytes: every(5).then(|| vec![low; usize::try_from(n % 300).unwrap()]),
        i2: -n,
        i4: every(6).then_some(n32 * -60_000),
        i8: n64 * i64::from(i32::MAX) * 1000,
        f4: [f32::NAN, -0.0, f32::INFINITY, 1.1, f32::MIN_POSITIVE]
            [usize::try_from(n % 5).unwrap()],
        f8: every(7).then_some(f64::from(n) / 7.0),
        words: word(words),
        varchar5: every(8).then(|| word(short)),
        char5: word(short),
        bpchar: word(short),
        date: Raw(n32.to_be_bytes().into()),
        time: Raw(micros.to_be_bytes().into()),
        time0: Raw(micros.to_be_bytes().into()),
        timetz1: Raw(bytes(&[&micros.to_be_bytes(), &(-3600_i32).to_be_bytes()])),
        timestamp: Raw((-micros).to_be_bytes().into()),
        timestamp0: every(9).then(|| Raw(micros.to_be_bytes().into())),
        timestamptz3: Raw((micros * 1000).to_be_bytes().into()),
        interval0: Raw(bytes(&[
            &micros.to_be_bytes(),
            &n32.to_be_bytes(),
            &(-n32).to_be_bytes(),
        ])),
        numeric: Raw(numeric.clone()),
        numeric2: Raw(numeric),
        money: Raw(n64.to_be_bytes().into()),
        inet: Raw(vec![2, 24, 0, 4, 10, 1, low, 7]),
        cidr: Raw(vec![2, 24, 1, 4, 10, 1, low, 0]),
        macaddr: Raw(vec![8, 0, 43, 1, 2, low]),
        jsonb: every(4).then(|| Raw(format!("\u{1}{{\"n\": [{n}, null]}}").into_bytes())),
    }
}

/// Written twice, by `COPY` and by `INSERT`: the server's own texts of the rows are the same.
async fn rows_are_what_an_insert_writes(pool: Pool<Postgres>) -> Outcome {
    execute(&pool, WIDE).await?;
    let mut rows: Vec<Wide> = (0..1_200).map(wide).collect();
    rows.iter_mut().for_each(|row| _ = row.ensure_key());

    let flushed = work(rows.clone()).flush(&pool).await?;
    assert_eq!(copied(&flushed), (1_200, 1_200));
    let sql = "CREATE TABLE copied AS SELECT wide::text AS row FROM wide; TRUNCATE wide";
    execute(&pool, sql).await?;

    let mut transaction = pool.begin().await?;
    let flushed = work(rows).flush_in(&mut transaction).await?;
    assert_eq!(copied(&flushed), (1_200, 0));
    transaction.commit().await?;
    let same = "SELECT count(*) FROM wide JOIN copied ON copied.row = wide::text";
    assert_eq!(one::<i64>(&pool, same).await?, 1_200);
    let fitted = "SELECT count(*) FROM wide WHERE numeric2 <> numeric AND time0 <> time";
    assert!(one::<i64>(&pool, fitted).await? > 1_000);
    Ok(())
}

#[derive(OrderedKey, Clone)]
#[ordid(table = "small")]
struct Small {
    #[ordid(key)]
    id: Native,
    number: i32,
    word: Option<String>,
}

fn small(rows: i32) -> impl Iterator<Item = Small> {
    (0..rows).map(|number| Small {
        id: Native::generate(),
        number,
        word: (number % 2 == 0).then(|| "abc".to_owned()),
    })
}

async fn few_rows_and_open_transactions_are_inserted(pool: Pool<Postgres>) -> Outcome {
    execute(&pool, SMALL).await?;
    let not_bulk = |flushed: &Flushed| flushed.tables[0].not_bulk;
    let mut few = work(small(999));
    let few_rows = Some(NotBulk::FewRows);
    assert_eq!(few.plan()?.tables[0].not_bulk, few_rows);
    let flushed = few.flush(&pool).await?;
    assert_eq!((copied(&flushed), not_bulk(&flushed)), ((999, 0), few_rows));
    let mut many = work(small(5_000));
    assert_eq!(many.plan()?.tables[0].not_bulk, None);
    let flushed = many.flush(&pool).await?;
    assert_eq!(copied(&flushed), (5_000, 5_000));
    assert_eq!(not_bulk(&flushed), None);
    let mut transaction = pool.begin().await?;
    let flushed = work(small(5_000)).flush_in(&mut transaction).await?;
    assert_eq!(copied(&flushed), (5_000, 0));
    assert_eq!(not_bulk(&flushed), Some(NotBulk::Savepoint));
    transaction.rollback().await?;
    let mut connection = pool.acquire().await?;
    let flushed = work(small(1_000)).flush_on(&mut connection).await?;
    assert_eq!(not_bulk(&flushed), Some(NotBulk::BorrowedConnection));
    let mut pooled = work(small(1_000)).with_engine(EngineProfile::PGBOUNCER);
    let flushed = pooled.flush(&pool).await?;
    assert_eq!(not_bulk(&flushed), Some(NotBulk::SwitchedOff));
    Ok(())
}

/// An enum of Rust, whose column is a text.
#[derive(Clone, Copy, Type)]
#[sqlx(type_name = "text", rename_all = "lowercase")]
enum Mood {
    Calm,
    Merry,
}

/// An enum of the database.
#[derive(Clone, Copy, Type)]
#[sqlx(type_name = "mood", rename_all = "lowercase")]
enum OwnMood {
    Calm,
}

#[derive(OrderedKey)]
#[ordid(table = "moods")]
struct Mooded<M> {
    #[ordid(key)]
    id: Native,
    mood: M,
    other: Option<M>,
}

async fn an_enum_that_is_stored_as_text_is_copied(pool: Pool<Postgres>) -> Outcome {
    let sql = "CREATE TABLE moods (id uuid PRIMARY KEY, mood text NOT NULL, other varchar(9))";
    execute(&pool, sql).await?;
    let rows = (0..1_200).map(|n| Mooded {
        id: Native::generate(),
        mood: if n % 3 == 0 { Mood::Merry } else { Mood::Calm },
        other: (n % 2 == 0).then_some(Mood::Calm),
    });
    let flushed = work(rows).flush(&pool).await?;
    assert_eq!(copied(&flushed), (1_200, 1_200), "{flushed:?}");
    let merry = "SELECT count(*) FROM moods WHERE mood = 'merry'";
    assert_eq!(one::<i64>(&pool, merry).await?, 400);
    let calm = "SELECT count(other) FROM moods WHERE other = 'calm'";
    assert_eq!(one::<i64>(&pool, calm).await?, 600);

    execute(
        &pool,
        "DROP TABLE moods; CREATE TYPE mood AS ENUM ('calm'); \
         CREATE TABLE moods (id uuid PRIMARY KEY, mood mood NOT NULL, other mood)",
    )
    .await?;
    let rows = (0..1_200).map(|_| Mooded {
        id: Native::generate(),
        mood: OwnMood::Calm,
        other: None,
    });
    let flushed = work(rows).flush(&pool).await?;
    assert_eq!(copied(&flushed), (1_200, 0));
    let reason = Some(NotBulk::ColumnType("mood"));
    assert_eq!(flushed.tables[0].not_bulk, reason);
    Ok(())
}

async fn what_a_copy_would_do_otherwise_is_inserted(pool: Pool<Postgres>) -> Outcome {
    for (setup, not_bulk, is_so) in setups() {
        execute(&pool, &setup).await?;
        let flushed = work(small(1_200)).flush(&pool).await?;
        let expected = if not_bulk.is_some() { 0 } else { 1_200 };
        assert_eq!(copied(&flushed), (1_200, expected), "{setup}");
        assert_eq!(flushed.tables[0].not_bulk, not_bulk, "{setup}");
        let is_so = format!("SELECT {is_so}");
        assert!(one::<bool>(&pool, &is_so).await?, "{setup}");
        execute(&pool, DROP).await?;
    }
    Ok(())
}

async fn row_level_security_is_kept(pool: Pool<Postgres>) -> Outcome {
    let role: String = one(&pool, "SELECT current_database() || '_app'").await?;
    execute(&pool, &with_tenant(&role)).await?;
    let tenant = single(&pool).await?;
    execute(&tenant, &format!("SET ROLE {role}")).await?;
    let flushed = work(small(1_200)).flush(&tenant).await?;
    let refused = work(small(1_400)).flush(&tenant).await;
    tenant.close().await;
    let owner = work(small(1_200)).flush(&pool).await?;
    execute(&pool, &format!("DROP OWNED BY {role}; DROP ROLE {role}")).await?;

    assert_eq!(copied(&flushed), (1_200, 0));
    assert_eq!(flushed.tables[0].not_bulk, Some(NotBulk::RowSecurity));
    let message = refused.unwrap_err().to_string();
    assert!(message.contains("row-level security policy"), "{message}");
    assert_eq!(
        copied(&owner),
        (1_200, 1_200),
        "it is not active for the owner"
    );
    Ok(())
}

/// As [`small`], but more than the sockets on the way hold.
fn large() -> impl Iterator<Item = Small> {
    small(20_000).map(|row| Small {
        word: Some("x".repeat(2_000)),
        ..row
    })
}

/// Notices for all rows are more than a socket holds: while nobody reads them the server waits, and
/// whoever only sends waits for the server.
async fn triggers_run_and_may_talk(pool: Pool<Postgres>) -> Outcome {
    execute(
        &pool,
        &format!(
            "{SMALL}; CREATE FUNCTION talk() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN \
             RAISE NOTICE '%', repeat('row ', 100); NEW.number := NEW.number + 1; RETURN NEW; \
             END$$; CREATE TRIGGER talk BEFORE INSERT ON small FOR EACH ROW EXECUTE FUNCTION \
             talk()"
        ),
    )
    .await?;
    let mut work = work(large());
    let flushed = tokio::time::timeout(PATIENCE, work.flush(&pool)).await??;
    assert_eq!(copied(&flushed), (20_000, 0));
    assert_eq!(flushed.tables[0].not_bulk, Some(NotBulk::Trigger));
    assert_eq!(
        one::<i32>(&pool, "SELECT max(number) FROM small").await?,
        20_000
    );
    Ok(())
}

async fn a_check_that_talks_does_not_stop_the_flush(pool: Pool<Postgres>) -> Outcome {
    execute(
        &pool,
        "CREATE FUNCTION talk(integer) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN \
         RAISE WARNING '%', repeat('row ', 100); RETURN true; END$$; \
         CREATE TABLE small (id uuid PRIMARY KEY, number integer CHECK (talk(number)), word text)",
    )
    .await?;
    let pool = single(&pool).await?;
    let before: String = one(&pool, "SHOW client_min_messages").await?;
    let mut work = work(large());
    let flushed = tokio::time::timeout(PATIENCE, work.flush(&pool)).await??;
    assert_eq!(copied(&flushed), (20_000, 20_000));
    let after: String = one(&pool, "SHOW client_min_messages").await?;
    assert_eq!(before, after, "the session's own setting is back");
    Ok(())
}

/// What an `INSERT` refuses and `COPY` would take, or refuse in other words.
async fn refused_statements_give_the_same_error(pool: Pool<Postgres>) -> Outcome {
    for (setup, code) in [
        ("SELECT", "42P01"),
        ("CREATE TABLE small (id uuid, number integer)", "42703"),
        (
            "CREATE TABLE small (id uuid, number integer, word text GENERATED ALWAYS AS ('x') \
             STORED)",
            "428C9",
        ),
        (
            "CREATE TABLE small (id uuid, number integer GENERATED ALWAYS AS IDENTITY, word text)",
            "428C9",
        ),
        (
            "CREATE TYPE mood AS ENUM ('abc'); \
             CREATE TABLE small (id uuid, number integer, word mood)",
            "42804",
        ),
        (
            "CREATE DOMAIN given AS integer NOT NULL; \
             CREATE TABLE small (id uuid, number integer, word text, more given)",
            "23502",
        ),
    ] {
        execute(&pool, setup).await?;
        let mut work = work(small(1_200));
        let flushed = work.flush(&pool).await.unwrap_err();
        let mut transaction = pool.begin().await?;
        let inserted = work.flush_in(&mut transaction).await.unwrap_err();
        transaction.rollback().await?;
        assert_eq!(flushed.to_string(), inserted.to_string());
        let database = flushed.driver().and_then(sqlx::Error::as_database_error);
        assert_eq!(database.unwrap().code().as_deref(), Some(code), "{setup}");
        let own = "DROP SCHEMA public CASCADE; CREATE SCHEMA public";
        execute(&pool, own).await?;
    }
    Ok(())
}

async fn columns_left_out_are_filled_in(pool: Pool<Postgres>) -> Outcome {
    execute(
        &pool,
        "CREATE TABLE small (serial bigserial, twice integer GENERATED ALWAYS AS (number * 2) \
         STORED, state text NOT NULL DEFAULT 'new', word text DEFAULT 'unused', id uuid PRIMARY \
         KEY, own bigint GENERATED ALWAYS AS IDENTITY, number integer, nothing text)",
    )
    .await?;
    let flushed = work(small(1_200)).flush(&pool).await?;
    assert_eq!(copied(&flushed), (1_200, 1_200));
    let right = "SELECT count(*) FROM small WHERE serial = number + 1 AND own = serial AND twice = \
                 2 * number AND state = 'new' AND nothing IS NULL AND word IS DISTINCT FROM \
                 'unused'";
    assert_eq!(one::<i64>(&pool, right).await?, 1_200);
    Ok(())
}

/// A number that says of itself which type it has.
#[derive(Clone, Copy)]
enum Number {
    Eight(i64),
    Four(i32),
    None,
}

impl Type<Postgres> for Number {
    fn type_info() -> PgTypeInfo {
        <i64 as Type<Postgres>>::type_info()
    }
}

impl Encode<'_, Postgres> for Number {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        match self {
            Self::Eight(number) => <i64 as Encode<'_, Postgres>>::encode_by_ref(number, buffer),
            Self::Four(number) => <i32 as Encode<'_, Postgres>>::encode_by_ref(number, buffer),
            Self::None => Err("no number".into()),
        }
    }

    fn produces(&self) -> Option<PgTypeInfo> {
        match self {
            Self::Four(_) => Some(<i32 as Type<Postgres>>::type_info()),
            _ => None,
        }
    }
}

#[derive(OrderedKey, Clone)]
#[ordid(table = "numbers")]
struct Numbered {
    #[ordid(key)]
    id: Native,
    number: Number,
}

const NUMBERS: &str = "CREATE TABLE numbers (id uuid PRIMARY KEY, number bigint)";

fn numbered(special: i64, number: Number) -> Vec<Numbered> {
    let row = |n| Numbered {
        id: Native::generate(),
        number: if n == special {
            number
        } else {
            Number::Eight(n)
        },
    };
    (0..3_000).map(row).collect()
}

async fn a_row_that_needs_a_cast_ends_the_copy(pool: Pool<Postgres>) -> Outcome {
    execute(&pool, NUMBERS).await?;
    // SQLx takes a statement it has kept for one with the same types.
    let options = (*pool.connect_options())
        .clone()
        .statement_cache_capacity(0);
    let pool = PoolOptions::new().connect_with(options).await?;
    for (special, rows, statements) in [
        (0, 0, 3),
        (1_234, 1_234, 3),
        (2_000, 2_000, 2),
        (2_999, 2_999, 2),
        (3_000, 3_000, 1),
    ] {
        let rows_of = numbered(special, Number::Four(i32::try_from(special)?));
        let flushed = work(rows_of).flush(&pool).await?;
        let table = &flushed.tables[0];
        assert_eq!(
            (table.rows, table.bulk, table.statements),
            (3_000, rows, statements)
        );
        let number = Some(NotBulk::Value(Some("number")));
        assert_eq!(table.not_bulk, if rows == 3_000 { None } else { number });
        let sum: bool = one(
            &pool,
            "WITH gone AS (DELETE FROM numbers RETURNING number) \
             SELECT count(*) = 3000 AND sum(number) = 4498500 FROM gone",
        )
        .await?;
        assert!(sum, "{special}");
    }
    Ok(())
}

/// Into the temporary table, up to the row that needs a cast.
async fn many_rows_that_are_upserted_or_updated_are_copied(pool: Pool<Postgres>) -> Outcome {
    execute(&pool, NUMBERS).await?;
    execute(&pool, flushes_table::<Postgres>()).await?;
    let options = (*pool.connect_options())
        .clone()
        .statement_cache_capacity(0);
    let pool = PoolOptions::new().connect_with(options).await?;
    let there = "SELECT count(*) = 3000 AND sum(number) = 4498500 FROM numbers";
    for (special, filled) in [(0, 3), (1_234, 3), (2_000, 2), (2_999, 2), (3_000, 1)] {
        execute(&pool, "DELETE FROM numbers").await?;
        let four = Number::Four(i32::try_from(special)?);
        let rows = numbered(special, four);
        let before = rows.iter().step_by(2).map(|row| Numbered {
            id: row.id,
            number: Number::Eight(-1),
        });
        work(before).flush(&pool).await?;
        let mut work = UnitOfWork::<Postgres>::new();
        for row in &rows {
            work.upsert(row.clone());
        }
        let flushed = work.flush(&pool).await?;
        assert_eq!([flushed.updated(), flushed.rows()], [1_500, 1_500]);
        // Two that make the table, one that updates and inserts, and the end of the table.
        assert_eq!(flushed.tables[0].statements, 4 + filled, "{special}");
        assert!(one::<bool>(&pool, there).await?, "{special}");

        execute(&pool, "UPDATE numbers SET number = 0").await?;
        for row in &rows {
            work.update(row.clone());
        }
        let flushed = work.flush(&pool).await?;
        assert_eq!(flushed.tables[0].statements, 3 + filled, "{special}");
        assert!(one::<bool>(&pool, there).await?, "{special}");
    }
    let rows = numbered(1_777, Number::None);
    let key = rows[1_777].id;
    let mut work = UnitOfWork::<Postgres>::new();
    for row in rows {
        work.upsert(row);
    }
    let error = work.flush(&pool).await.unwrap_err();
    assert_eq!(error.key(), Some(&*key.to_string()), "{error}");
    assert!(one::<bool>(&pool, there).await?);
    Ok(())
}

async fn a_row_that_cannot_be_encoded_is_named(pool: Pool<Postgres>) -> Outcome {
    execute(&pool, NUMBERS).await?;
    let pool = single(&pool).await?;
    let backend: i32 = one(&pool, "SELECT pg_backend_pid()").await?;
    for special in [0, 1_777] {
        let rows = numbered(special, Number::None);
        let key = rows[usize::try_from(special)?].id;
        let error = work(rows).flush(&pool).await.unwrap_err();
        assert_eq!(error.key(), Some(&*key.to_string()));
        let start = "cannot bind a row into numbers (rows ";
        assert!(error.to_string().starts_with(start), "{error}");
        assert_eq!(one::<i64>(&pool, "SELECT count(*) FROM numbers").await?, 0);
    }
    assert_eq!(backend, one::<i32>(&pool, "SELECT pg_backend_pid()").await?);
    Ok(())
}

async fn a_value_too_long_is_named(pool: Pool<Postgres>) -> Outcome {
    let sql = "CREATE TABLE small (id uuid PRIMARY KEY, number integer, word varchar(3))";
    execute(&pool, sql).await?;
    for word in ["abcd", "a\0"] {
        let mut rows: Vec<Small> = small(2_500).collect();
        rows[2_222].word = Some(word.to_owned());
        let key = rows[2_222].id;
        let error = work(rows).flush(&pool).await.unwrap_err();
        assert_eq!(error.key(), Some(&*key.to_string()), "{error}");
        assert_eq!((error.chunk(), error.rows()), (Some(2), Some(2_000..2_500)));
    }
    Ok(())
}

async fn shop(pool: &Pool<Postgres>) -> Result<(), sqlx::Error> {
    execute(
        pool,
        "CREATE TABLE customers (id uuid PRIMARY KEY, name text NOT NULL, credit bigint); \
         CREATE TABLE \"order\" (id uuid PRIMARY KEY, customer uuid NOT NULL REFERENCES customers, \
         \"group\" integer NOT NULL)",
    )
    .await
}

/// Foreign keys are checked when the command ends, and the error says nothing of the row.
async fn a_missing_parent_is_named_among_many(pool: Pool<Postgres>) -> Outcome {
    shop(&pool).await?;
    let pool = single(&pool).await?;
    let backend: i32 = one(&pool, "SELECT pg_backend_pid()").await?;
    let customers: Vec<Customer> = (0..600).map(|n| customer(&n.to_string())).collect();
    let mut orders: Vec<Order> = (0..5_000)
        .map(|n| order(customers[n % 600].id, 1))
        .collect();
    orders[3_456].customer = CustomerId::generate();
    let lost = orders[3_456].id;
    let mut work = work(orders);
    for customer in customers {
        work.add(customer);
    }
    let error = work.flush(&pool).await.unwrap_err();
    assert!(error.is_foreign_key_violation(), "{error}");
    assert_eq!(error.table(), Some("order"));
    assert_eq!((error.chunk(), error.rows()), (Some(3), Some(3_000..4_000)));
    assert_eq!(error.key(), Some(&*lost.to_string()));
    let rows = "SELECT (SELECT count(*) FROM customers) + (SELECT count(*) FROM \"order\")";
    assert_eq!(one::<i64>(&pool, rows).await?, 0);
    assert_eq!(backend, one::<i32>(&pool, "SELECT pg_backend_pid()").await?);
    Ok(())
}

/// Cuts flushes off where `cut` says, until one comes to its end. After each, the only connection
/// of the pool must answer, and find no row or all of them.
async fn cut_off<F>(pool: Pool<Postgres>, mut cut: impl FnMut(u32) -> F) -> Outcome
where
    F: AsyncFnOnce(&mut UnitOfWork<Postgres>, &Pool<Postgres>) -> bool,
{
    shop(&pool).await?;
    let pool = single(&pool).await?;
    let mut work = UnitOfWork::new();
    // More than the sockets on the way hold, so that it takes many polls.
    let name = "x".repeat(3_000);
    let customers: Vec<Customer> = (0..4_000).map(|_| customer(&name)).collect();
    for customer in customers {
        for kind in 0..2 {
            work.add(order(customer.id, kind));
        }
        work.add(customer);
    }
    let backend = "SELECT pg_backend_pid()";
    let mut before: i32 = one(&pool, backend).await?;
    let mut closed = 0;
    for round in 1.. {
        let over = cut(round)(&mut work, &pool).await;
        let after = tokio::time::timeout(PATIENCE, one::<i32>(&pool, backend));
        let after = after.await.map_err(|_| format!("hangs after {round}"))??;
        closed += i32::from(after != before);
        before = after;
        let rows = "SELECT (SELECT count(*) FROM customers) + (SELECT count(*) FROM \"order\")";
        let rows: i64 = one(&pool, rows).await?;
        // One cut off at COMMIT may have been committed.
        assert!(rows == 12_000 || rows == 0 && !over, "{rows} after {round}");
        execute(&pool, "TRUNCATE customers, \"order\"").await?;
        if over {
            assert!(work.is_empty());
            break;
        }
        assert_eq!(work.len(), 12_000);
    }
    assert!(
        closed > 3,
        "{closed} flushes were cut off while they copied"
    );
    Ok(())
}

async fn a_flush_cut_off_at_any_poll_leaves_a_working_pool(pool: Pool<Postgres>) -> Outcome {
    cut_off(pool, |polls| {
        async move |work: &mut UnitOfWork<Postgres>, pool: &Pool<Postgres>| {
            let polls = usize::try_from(polls).unwrap();
            let outcome = trials::cut_off(work.flush(pool), polls).await;
            outcome.transpose().unwrap().is_some()
        }
    })
    .await
}

async fn a_flush_cut_off_at_any_time_leaves_a_working_pool(pool: Pool<Postgres>) -> Outcome {
    cut_off(pool, |round| {
        async move |work: &mut UnitOfWork<Postgres>, pool: &Pool<Postgres>| {
            // Each time is a part of the whole, however long a flush takes here.
            let time = Duration::from_millis(2).mul_f64(1.15_f64.powf(round.into()));
            match tokio::time::timeout(time, work.flush(pool)).await {
                Ok(outcome) => outcome.map(|_| true).unwrap(),
                Err(_) => false,
            }
        }
    })
    .await
}

async fn many_rows_take_several_commands(pool: Pool<Postgres>) -> Outcome {
    execute(&pool, SMALL).await?;
    let flushed = work(small(250_000)).flush(&pool).await?;
    assert_eq!(copied(&flushed), (250_000, 250_000));
    assert_eq!(flushed.tables[0].statements, 3);
    let right = "SELECT count(*) = 250000 AND max(number) = 249999 FROM small";
    assert!(one::<bool>(&pool, right).await?);
    Ok(())
}

#[derive(OrderedKey)]
#[ordid(table = "teams")]
struct Team {
    #[ordid(key)]
    id: Native,
    #[ordid(parent = Person)]
    lead: Option<Native>,
}

#[derive(OrderedKey)]
#[ordid(table = "people")]
struct Person {
    #[ordid(key)]
    id: Native,
    #[ordid(parent = Team)]
    team: Native,
}

/// Teams without a lead, their people, and teams that these lead.
async fn tables_in_a_circle_are_copied_again(pool: Pool<Postgres>) -> Outcome {
    execute(
        &pool,
        "CREATE TABLE teams (id uuid PRIMARY KEY, lead uuid);
         CREATE TABLE people (id uuid PRIMARY KEY, team uuid NOT NULL REFERENCES teams);
         ALTER TABLE teams ADD FOREIGN KEY (lead) REFERENCES people",
    )
    .await?;
    let mut work = UnitOfWork::<Postgres>::new();
    let team = |lead| Team {
        id: Native::generate(),
        lead,
    };
    for _ in 0..1_500 {
        let first = work.add(team(None));
        let lead = work.add(Person {
            id: Native::generate(),
            team: first,
        });
        work.add(team(Some(lead)));
    }
    let flushed = work.flush(&pool).await?;
    for table in &flushed.tables {
        assert_eq!(table.bulk, table.rows, "{flushed:?}");
    }
    assert_eq!(flushed.rows(), 4_500);
    let right = "SELECT count(lead) = 1500 AND count(*) = 3000 FROM teams";
    assert!(one::<bool>(&pool, right).await?);
    Ok(())
}
