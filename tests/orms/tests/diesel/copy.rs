//! `COPY` on PostgreSQL: rows end up as an `INSERT` would have left them, by another way where `COPY` would
//! not do that.

use diesel::{
    connection::SimpleConnection as _,
    data_types::{PgInterval, PgMoney, PgNumeric, PgTimestamp},
    deserialize::FromSqlRow,
    expression::AsExpression,
    pg::Pg,
    prelude::*,
    r2d2::{ConnectionManager, Pool},
    serialize::{self, IsNull, Output, ToSql},
    sql_types::{BigInt, Bool, Text},
};
use libtest_mimic::Trial;
use ordid::{KeyType as _, OrderedKey};
use ordid_diesel::{Entity, UnitOfWork};
use ordid_tests::{
    copy::{DROP, SMALL, setups, with_tenant},
    flushed::copied,
    servers::Servers,
};

use crate::{
    Outcome,
    keys::{Keys as _, Long, Native, Number, Object, Short},
    scratch::on_server,
};

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    macro_rules! add {
        ($($name:ident),* $(,)?) => {
            $(on_server::<PgConnection>(
                trials, servers, "postgres", concat!("copy::", stringify!($name)), " WITH (FORCE)",
                |url| $name(&mut PgConnection::establish(url)?, url),
            );)*
        };
    }
    add!(
        rows_are_what_an_insert_writes,
        few_rows_and_open_transactions_are_inserted,
        what_a_copy_would_do_otherwise_is_inserted,
        row_level_security_is_kept,
        a_trigger_may_talk,
        a_command_that_is_refused_is_told,
        a_refused_row_is_named_among_many,
        a_missing_parent_is_named_among_many,
        a_row_that_cannot_be_encoded_is_named,
        many_rows_take_several_commands,
        tables_in_a_circle_are_copied_again,
        a_pool_s_connections_copy,
    );
}

fn work<E: Entity<Pg>>(rows: impl IntoIterator<Item = E>) -> UnitOfWork<Pg>
where
    E::Field: ordid::EnsuredKey,
{
    let mut work = UnitOfWork::new();
    for row in rows {
        work.add(row);
    }
    work
}

fn is_so(connection: &mut PgConnection, sql: &str) -> QueryResult<bool> {
    diesel::select(diesel::dsl::sql::<Bool>(sql)).get_result(connection)
}

diesel::table! {
    wide (id) {
        id -> Uuid,
        other -> Nullable<Uuid>,
        long -> Text,
        short -> Nullable<Text>,
        number -> BigInt,
        object -> Nullable<Binary>,
        yes -> Bool,
        bytes -> Nullable<Binary>,
        i2 -> SmallInt,
        i4 -> Nullable<Integer>,
        f4 -> Float,
        f8 -> Nullable<Double>,
        words -> Text,
        varchar5 -> Nullable<Varchar>,
        char5 -> Text,
        timestamp -> Timestamp,
        timestamp0 -> Nullable<Timestamp>,
        interval0 -> Interval,
        numeric -> Numeric,
        numeric2 -> Numeric,
        money -> Money,
    }
}

/// A column of many of the types that may be copied, and of those that fit a value to their length.
#[derive(OrderedKey, Clone)]
#[diesel(table_name = wide)]
#[ordid(diesel)]
struct Wide {
    id: Option<Native>,
    other: Option<Native>,
    long: Long,
    short: Option<Short>,
    number: Number,
    object: Option<Object>,
    yes: bool,
    bytes: Option<Vec<u8>>,
    i2: i16,
    i4: Option<i32>,
    f4: f32,
    f8: Option<f64>,
    words: String,
    varchar5: Option<String>,
    char5: &'static str,
    timestamp: PgTimestamp,
    timestamp0: Option<PgTimestamp>,
    interval0: PgInterval,
    numeric: PgNumeric,
    numeric2: PgNumeric,
    money: PgMoney,
}

const WIDE: &str = r#"CREATE TABLE wide (
    id uuid PRIMARY KEY, other uuid, long text COLLATE "C" NOT NULL, short text COLLATE "C",
    number bigint NOT NULL, object bytea, yes boolean NOT NULL, bytes bytea, i2 smallint NOT NULL,
    i4 integer, f4 real NOT NULL, f8 double precision, words text NOT NULL, varchar5 varchar(5),
    char5 char(5) NOT NULL, timestamp timestamp NOT NULL, timestamp0 timestamp(0),
    interval0 interval(0) NOT NULL, numeric numeric NOT NULL, numeric2 numeric(10, 2) NOT NULL,
    money money NOT NULL
)"#;

fn wide(n: i16) -> Wide {
    let every = |number: i16| n % number != 0;
    let fifth = usize::try_from(n % 5).unwrap();
    let micros = i64::from(n) * 71_234_567;
    let numeric = PgNumeric::Positive {
        weight: 0,
        scale: 4,
        digits: vec![n, 5_678 - n],
    };
    let short = ["", "ab", "abcde", "ab   ", "abcde   "][fifth];
    Wide {
        id: None,
        other: every(3).then(Native::generate),
        long: Long::generate(),
        short: every(4).then(Short::generate),
        number: Number::rising(1)[0],
        object: every(5).then(Object::generate),
        yes: n % 2 == 0,
        bytes: every(5).then(|| vec![7; usize::try_from(n % 300).unwrap()]),
        i2: -n,
        i4: every(6).then_some(i32::from(n) * -60_000),
        f4: [f32::NAN, -0.0, f32::INFINITY, 1.1, f32::MIN_POSITIVE][fifth],
        f8: every(7).then_some(f64::from(n) / 7.0),
        words: ["", "a\tb\\.\n\"", "ß 🦀", "\\N", "  "][fifth].to_owned(),
        varchar5: every(8).then(|| short.to_owned()),
        char5: short,
        timestamp: PgTimestamp(-micros),
        timestamp0: every(9).then_some(PgTimestamp(micros)),
        interval0: PgInterval::new(micros, i32::from(n), -i32::from(n)),
        numeric: numeric.clone(),
        numeric2: numeric,
        money: PgMoney(i64::from(n)),
    }
}

/// Written twice, by `COPY` and by `INSERT`: the server's own texts of the rows are the same.
fn rows_are_what_an_insert_writes(connection: &mut PgConnection, _: &str) -> Outcome {
    connection.batch_execute(WIDE)?;
    let mut rows: Vec<Wide> = (0..1_200).map(wide).collect();
    rows.iter_mut().for_each(|row| _ = row.ensure_key());

    let flushed = work(rows.clone()).flush(connection)?;
    assert_eq!(copied(&flushed), (1_200, 1_200));
    connection.batch_execute(
        "CREATE TABLE copied AS SELECT wide::text AS row FROM wide; TRUNCATE wide",
    )?;
    connection.transaction::<_, diesel::result::Error, _>(|connection| {
        let flushed = work(rows).flush_in(connection).unwrap();
        assert_eq!(copied(&flushed), (1_200, 0));
        Ok(())
    })?;
    let same = "(SELECT count(*) FROM wide JOIN copied ON copied.row = wide::text) = 1200";
    assert!(is_so(connection, same)?);
    let fitted = "(SELECT count(*) FROM wide WHERE numeric2 <> numeric) > 1000";
    assert!(is_so(connection, fitted)?);
    Ok(())
}

diesel::table! {
    small (id) {
        id -> Uuid,
        number -> Integer,
        word -> Nullable<Text>,
    }
}

#[derive(OrderedKey, Clone)]
#[diesel(table_name = small)]
#[ordid(diesel)]
struct Small {
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

fn few_rows_and_open_transactions_are_inserted(connection: &mut PgConnection, _: &str) -> Outcome {
    connection.batch_execute(SMALL)?;
    assert_eq!(copied(&work(small(999)).flush(connection)?), (999, 0));
    assert_eq!(
        copied(&work(small(5_000)).flush(connection)?),
        (5_000, 5_000)
    );
    connection.transaction::<_, diesel::result::Error, _>(|connection| {
        let flushed = work(small(5_000)).flush_in(connection).unwrap();
        assert_eq!(copied(&flushed), (5_000, 0));
        Ok(())
    })?;
    assert!(is_so(connection, "(SELECT count(*) FROM small) = 10999")?);
    Ok(())
}

fn what_a_copy_would_do_otherwise_is_inserted(connection: &mut PgConnection, _: &str) -> Outcome {
    for (setup, not_bulk, found) in setups() {
        connection.batch_execute(&setup)?;
        let flushed = work(small(1_200)).flush(connection)?;
        let expected = if not_bulk.is_some() { 0 } else { 1_200 };
        assert_eq!(copied(&flushed), (1_200, expected), "{setup}");
        assert_eq!(flushed.tables[0].not_bulk, not_bulk, "{setup}");
        assert!(is_so(connection, found)?, "{setup}");
        connection.batch_execute(DROP)?;
    }
    Ok(())
}

fn row_level_security_is_kept(connection: &mut PgConnection, url: &str) -> Outcome {
    let role: String = diesel::select(diesel::dsl::sql::<Text>("current_database() || '_app'"))
        .get_result(connection)?;
    connection.batch_execute(&with_tenant(&role))?;
    let mut tenant = PgConnection::establish(url)?;
    tenant.batch_execute(&format!("SET ROLE {role}"))?;
    let flushed = work(small(1_200)).flush(&mut tenant)?;
    let refused = work(small(1_400)).flush(&mut tenant);
    drop(tenant);
    let owner = work(small(1_200)).flush(connection)?;
    connection.batch_execute(&format!("DROP OWNED BY {role}; DROP ROLE {role}"))?;

    assert_eq!(copied(&flushed), (1_200, 0));
    let message = refused.unwrap_err().to_string();
    assert!(message.contains("row-level security policy"), "{message}");
    let active = "it is not active for the owner";
    assert_eq!(copied(&owner), (1_200, 1_200), "{active}");
    Ok(())
}

/// A trigger that tells a notice for each row is run by an `INSERT`.
fn a_trigger_may_talk(connection: &mut PgConnection, _: &str) -> Outcome {
    connection.batch_execute(&format!(
        "SET client_min_messages TO error; {SMALL}; \
         CREATE FUNCTION tens() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE NOTICE ''ten''; \
         NEW.number := NEW.number * 10; RETURN NEW; END'; \
         CREATE TRIGGER tens BEFORE INSERT ON small FOR EACH ROW EXECUTE FUNCTION tens()"
    ))?;
    let flushed = work(small(1_200)).flush(connection)?;
    assert_eq!(copied(&flushed), (1_200, 0));
    assert!(is_so(
        connection,
        "(SELECT sum(number) = 7194000 FROM small)"
    )?);
    Ok(())
}

/// Before a row of it was sent.
fn a_command_that_is_refused_is_told(connection: &mut PgConnection, _: &str) -> Outcome {
    connection.batch_execute(SMALL)?;
    connection.batch_execute("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")?;
    let mut refused = work(small(5_000));
    let error = refused.flush(connection).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot insert into small (rows 0 to 999), nothing was written: cannot execute COPY \
         FROM in a read-only transaction"
    );
    connection.batch_execute("SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE")?;
    assert_eq!(copied(&refused.flush(connection)?), (5_000, 5_000));
    Ok(())
}

fn a_refused_row_is_named_among_many(connection: &mut PgConnection, _: &str) -> Outcome {
    connection.batch_execute(
        "CREATE TABLE small (id uuid PRIMARY KEY, number integer CHECK (number <> 3700), word text)",
    )?;
    let rows: Vec<Small> = small(5_000).collect();
    let mut refused = work(rows.clone());
    let error = refused.flush(connection).unwrap_err();
    let key = rows[3_700].id.to_string();
    assert_eq!(
        (error.key(), error.chunk()),
        (Some(key.as_str()), Some(3)),
        "{error}"
    );
    assert!(is_so(connection, "(SELECT count(*) FROM small) = 0")?);
    assert_eq!(refused.len(), 5_000);

    // The connection is as before; a key that is there is told as one.
    work(small(1_200)).flush(connection)?;
    work(rows[10..11].to_vec()).flush(connection)?;
    let error = work(rows[..2_000].to_vec()).flush(connection).unwrap_err();
    assert!(error.is_unique_violation(), "{error}");
    assert_eq!(error.key(), Some(rows[10].id.to_string().as_str()));
    assert!(is_so(connection, "(SELECT count(*) FROM small) = 1201")?);
    Ok(())
}

fn a_missing_parent_is_named_among_many(connection: &mut PgConnection, _: &str) -> Outcome {
    diesel::table! {
        nodes (id) { id -> Uuid, above -> Nullable<Uuid>, }
    }

    #[derive(OrderedKey, Clone)]
    #[diesel(table_name = nodes)]
    #[ordid(diesel)]
    struct Node {
        id: Native,
        #[ordid(parent)]
        above: Option<Native>,
    }

    connection.batch_execute(
        "CREATE TABLE nodes (id uuid PRIMARY KEY, above uuid REFERENCES nodes (id))",
    )?;
    let mut rows: Vec<Node> = Vec::new();
    for number in 0..3_000_usize {
        rows.push(Node {
            id: Native::generate(),
            above: number.checked_sub(1).map(|above| rows[above / 2].id),
        });
    }
    let flushed = work(rows.iter().rev().cloned()).flush(connection)?;
    assert_eq!(copied(&flushed), (3_000, 3_000));
    connection.batch_execute("TRUNCATE nodes")?;
    rows[2_500].above = Some(Native::generate());
    let error = work(rows.clone()).flush(connection).unwrap_err();
    assert!(error.is_foreign_key_violation(), "{error}");
    assert_eq!(error.key(), Some(rows[2_500].id.to_string().as_str()));
    Ok(())
}

/// A number that is written but for one.
#[derive(Debug, Clone, Copy, AsExpression, FromSqlRow)]
#[diesel(sql_type = BigInt)]
struct Picky(i64);

impl ToSql<BigInt, Pg> for Picky {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
        if self.0 == 1_700 {
            return Err("as the test asks".into());
        }
        std::io::Write::write_all(out, &self.0.to_be_bytes())?;
        Ok(IsNull::No)
    }
}

fn a_row_that_cannot_be_encoded_is_named(connection: &mut PgConnection, _: &str) -> Outcome {
    diesel::table! {
        picky (id) { id -> Uuid, number -> BigInt, }
    }

    #[derive(OrderedKey, Clone)]
    #[diesel(table_name = picky)]
    #[ordid(diesel)]
    struct Row {
        id: Native,
        number: Picky,
    }

    connection.batch_execute("CREATE TABLE picky (id uuid PRIMARY KEY, number bigint NOT NULL)")?;
    let rows: Vec<Row> = (0..2_000)
        .map(|number| Row {
            id: Native::generate(),
            number: Picky(number),
        })
        .collect();
    let error = work(rows.clone()).flush(connection).unwrap_err();
    assert!(error.to_string().contains("as the test asks"), "{error}");
    assert_eq!(error.key(), Some(rows[1_700].id.to_string().as_str()));
    let flushed = work(rows[..1_500].to_vec()).flush(connection)?;
    assert_eq!(
        copied(&flushed),
        (1_500, 1_500),
        "the connection is as before"
    );
    Ok(())
}

fn many_rows_take_several_commands(connection: &mut PgConnection, _: &str) -> Outcome {
    connection.batch_execute(SMALL)?;
    let flushed = work(small(150_000)).flush(connection)?;
    assert_eq!(copied(&flushed), (150_000, 150_000));
    assert_eq!(flushed.tables[0].statements, 2);
    assert!(is_so(connection, "(SELECT count(*) FROM small) = 150000")?);
    Ok(())
}

diesel::table! {
    teams (id) { id -> Uuid, lead -> Nullable<Uuid>, }
}

diesel::table! {
    people (id) { id -> Uuid, team -> Uuid, }
}

#[derive(OrderedKey)]
#[diesel(table_name = teams)]
#[ordid(diesel)]
struct Team {
    id: Native,
    #[ordid(parent = Person)]
    lead: Option<Native>,
}

#[derive(OrderedKey)]
#[diesel(table_name = people)]
#[ordid(diesel)]
struct Person {
    id: Native,
    #[ordid(parent = Team)]
    team: Native,
}

/// Teams without a lead, their people, teams that these lead, and two people there: too few for a command.
fn tables_in_a_circle_are_copied_again(connection: &mut PgConnection, _: &str) -> Outcome {
    connection.batch_execute(
        "CREATE TABLE teams (id uuid PRIMARY KEY, lead uuid);
         CREATE TABLE people (id uuid PRIMARY KEY, team uuid NOT NULL REFERENCES teams);
         ALTER TABLE teams ADD FOREIGN KEY (lead) REFERENCES people",
    )?;
    let mut work = UnitOfWork::<Pg>::new();
    let team = |lead| Team {
        id: Native::generate(),
        lead,
    };
    let person = |team| Person {
        id: Native::generate(),
        team,
    };
    for number in 0..1_500 {
        let first = work.add(team(None));
        let lead = work.add(person(first));
        let second = work.add(team(Some(lead)));
        if number < 2 {
            work.add(person(second));
        }
    }
    let flushed = work.flush(connection)?;
    let counts = flushed.tables.iter();
    let mut counts: Vec<_> = counts.map(|it| (it.table, it.rows, it.bulk)).collect();
    counts.sort_unstable();
    assert_eq!(
        counts,
        [("people", 1_502, 1_500), ("teams", 3_000, 3_000)],
        "{flushed:?}"
    );
    let right = "(SELECT count(lead) = 1500 AND count(*) = 3000 FROM teams)";
    assert!(is_so(connection, right)?);
    Ok(())
}

fn a_pool_s_connections_copy(connection: &mut PgConnection, url: &str) -> Outcome {
    connection.batch_execute(SMALL)?;
    let manager = ConnectionManager::<PgConnection>::new(url);
    let pool = Pool::builder().max_size(1).build(manager)?;
    let flushed = work(small(2_000)).flush(&mut pool.get()?)?;
    assert_eq!(copied(&flushed), (2_000, 2_000));
    let flushed = work(small(2_000)).flush_with(|| pool.get())?;
    assert_eq!(copied(&flushed), (2_000, 2_000));
    Ok(())
}
