//! `COPY`: rows end up as an `INSERT` would have left them, by another way where `COPY` would not do that.

use std::{
    net::IpAddr,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use ::tokio_postgres::{
    Client,
    types::{Format, IsNull, Json, ToSql, Type, to_sql_checked},
};
use bytes::BytesMut;
use libtest_mimic::Trial;
use ordid::{KeyType as _, OrderedKey};
use ordid_tests::{
    copy::{DROP, SMALL, setups, with_tenant},
    flushed::copied,
    keys::Keys as _,
    servers::Servers,
    trials::Outcome,
};
use ordid_tokio_postgres::{NotBulk, UnitOfWork};

use sqlx::Postgres;

use crate::{
    is_so,
    keys::{Long, Native, Number, Object, Short},
    tokio::{connect, on_thread},
    work,
};

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    ordid_tests::address_tests!(
        trials, servers, Postgres: "postgres", "copy::";
        rows_are_what_an_insert_writes,
        few_rows_and_open_transactions_are_inserted,
        what_a_copy_would_do_otherwise_is_inserted,
        values_that_are_sent_as_text_are_inserted,
        row_level_security_is_kept,
        a_server_may_talk_while_rows_are_copied,
        a_command_that_is_refused_leaves_the_connection,
        a_connection_that_is_out_of_step_is_closed,
        a_refused_row_is_named_among_many,
        many_rows_take_several_commands,
        upserts_are_copied_into_a_temporary_table,
    );
}

/// A column of many of the types that may be copied, and of those that fit a value to their length.
#[derive(OrderedKey, Clone)]
#[ordid(table = "wide")]
struct Wide {
    id: Native,
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
    at: SystemTime,
    local0: Option<SystemTime>,
    address: IpAddr,
    document: Json<serde_json::Value>,
}

const WIDE: &str = r#"CREATE TABLE wide (
    id uuid PRIMARY KEY, other uuid, long text COLLATE "C" NOT NULL, short text COLLATE "C", number bigint NOT NULL,
    object bytea, yes boolean NOT NULL, bytes bytea, i2 smallint NOT NULL, i4 integer, f4 real NOT NULL,
    f8 double precision, words text NOT NULL, varchar5 varchar(5), char5 char(5) NOT NULL, at timestamptz NOT NULL,
    local0 timestamp(0), address inet NOT NULL, document jsonb NOT NULL
)"#;

fn wide(n: i16) -> Wide {
    let every = |number: i16| n % number != 0;
    let fifth = usize::try_from(n % 5).expect("it is small");
    let at =
        UNIX_EPOCH + Duration::from_micros(u64::try_from(n).expect("it is small") * 71_234_567);
    let short = ["", "ab", "abcde", "ab   ", "abcde   "][fifth];
    Wide {
        id: Native::generate(),
        other: every(3).then(Native::generate),
        long: Long::generate(),
        short: every(4).then(Short::generate),
        number: Number::rising(1)[0],
        object: every(5).then(Object::generate),
        yes: n % 2 == 0,
        bytes: every(5).then(|| vec![7; fifth]),
        i2: -n,
        i4: every(6).then_some(i32::from(n) * -60_000),
        f4: [f32::NAN, -0.0, f32::INFINITY, 1.1, f32::MIN_POSITIVE][fifth],
        f8: every(7).then_some(f64::from(n) / 7.0),
        words: ["", "a\tb\\.\n\"", "ß 🦀", "\\N", "  "][fifth].to_owned(),
        varchar5: every(8).then(|| short.to_owned()),
        char5: short,
        at,
        local0: every(9).then_some(at),
        address: IpAddr::from([
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            u16::try_from(fifth).expect("it is small"),
        ]),
        document: Json(serde_json::json!({ "b": n, "a": [null, "ß"] })),
    }
}

/// Written twice, by `COPY` and by `INSERT`: the server's own texts of the rows are the same.
async fn rows_are_what_an_insert_writes(url: String) -> Outcome {
    let mut client = connect(&url).await?;
    client.batch_execute(WIDE).await?;
    let rows: Vec<Wide> = (0..1_200).map(wide).collect();
    let flushed = work(rows.clone()).flush(&mut client).await?;
    assert_eq!(copied(&flushed), (1_200, 1_200));
    client
        .batch_execute("CREATE TABLE copied AS SELECT wide::text AS row FROM wide; TRUNCATE wide")
        .await?;
    let mut transaction = client.transaction().await?;
    let flushed = work(rows).flush_in(&mut transaction).await?;
    assert_eq!(copied(&flushed), (1_200, 0));
    transaction.commit().await?;
    let same = "(SELECT count(*) FROM wide JOIN copied ON copied.row = wide::text) = 1200";
    assert!(is_so(&client, same).await?);
    Ok(())
}

#[derive(OrderedKey, Clone)]
#[ordid(table = "small")]
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

async fn few_rows_and_open_transactions_are_inserted(url: String) -> Outcome {
    let mut client = connect(&url).await?;
    client.batch_execute(SMALL).await?;
    let flushed = work(small(999)).flush(&mut client).await?;
    assert_eq!(copied(&flushed), (999, 0));
    let flushed = work(small(5_000)).flush(&mut client).await?;
    assert_eq!(copied(&flushed), (5_000, 5_000));
    let mut transaction = client.transaction().await?;
    let flushed = work(small(5_000)).flush_in(&mut transaction).await?;
    assert_eq!(copied(&flushed), (5_000, 0));
    transaction.commit().await?;
    assert!(is_so(&client, "(SELECT count(*) FROM small) = 10999").await?);
    Ok(())
}

/// A value of another type than its column's is an error, whichever way it goes.
async fn what_a_copy_would_do_otherwise_is_inserted(url: String) -> Outcome {
    let mut client = connect(&url).await?;
    for (setup, not_bulk, found) in setups() {
        client.batch_execute(&setup).await?;
        ordid_tokio_postgres::create_flushes_table(&client).await?;
        let flushed = work(small(1_200)).flush(&mut client).await;
        if let Some(NotBulk::Value(_)) = not_bulk {
            let error = flushed.expect_err("its value is of another type");
            assert!(
                error.to_string().contains("cannot convert"),
                "{setup}: {error}"
            );
        } else {
            let flushed = flushed?;
            let expected = if not_bulk.is_some() { 0 } else { 1_200 };
            assert_eq!(copied(&flushed), (1_200, expected), "{setup}");
            assert_eq!(flushed.tables[0].not_bulk, not_bulk, "{setup}");
            assert!(is_so(&client, found).await?, "{setup}");
        }
        client.batch_execute(DROP).await?;
    }
    Ok(())
}

/// A number that is sent as text from 2,000 on. As a binary integer, its four digits would be another number.
#[derive(Debug, Clone)]
struct Worded(i32);

impl ToSql for Worded {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self.encode_format(ty) {
            Format::Binary => self.0.to_sql(ty, out),
            Format::Text => self.0.to_string().as_str().to_sql(&Type::TEXT, out),
        }
    }

    fn accepts(ty: &Type) -> bool {
        <i32 as ToSql>::accepts(ty)
    }

    fn encode_format(&self, _: &Type) -> Format {
        match self.0 {
            ..2_000 => Format::Binary,
            _ => Format::Text,
        }
    }

    to_sql_checked!();
}

#[derive(OrderedKey, Clone)]
#[ordid(table = "worded")]
struct WordedRow {
    id: Native,
    number: Option<Worded>,
}

async fn values_that_are_sent_as_text_are_inserted(url: String) -> Outcome {
    let mut client = connect(&url).await?;
    client
        .batch_execute("CREATE TABLE worded (id uuid PRIMARY KEY, number integer)")
        .await?;
    for (first, copies) in [(0, true), (1_900, false), (2_000, false)] {
        let rows = (first..first + 1_200).map(|number| WordedRow {
            id: Native::generate(),
            number: (number % 3 != 0).then_some(Worded(number)),
        });
        let flushed = work(rows).flush(&mut client).await?;
        let (rows, bulk) = copied(&flushed);
        assert_eq!((rows, bulk == rows), (1_200, copies), "{first}");
        if !copies {
            let reason = Some(NotBulk::Value(Some("number")));
            assert_eq!(flushed.tables[0].not_bulk, reason, "{first}");
        }
        let last = first + 1_199;
        let written = format!(
            "(SELECT count(*) = 1200 AND count(number) = 800 AND min(number) >= {first} AND max(number) <= {last} FROM worded)"
        );
        assert!(is_so(&client, &written).await?, "{first}");
        client.batch_execute("TRUNCATE worded").await?;
    }
    Ok(())
}

async fn row_level_security_is_kept(url: String) -> Outcome {
    let mut client = connect(&url).await?;
    let role = client
        .query_one("SELECT current_database() || '_app'", &[])
        .await?;
    let role: String = role.try_get(0)?;
    client.batch_execute(&with_tenant(&role)).await?;
    let mut tenant = connect(&url).await?;
    tenant.batch_execute(&format!("SET ROLE {role}")).await?;
    let flushed = work(small(1_200)).flush(&mut tenant).await;
    let refused = work(small(1_400)).flush(&mut tenant).await;
    drop(tenant);
    let owner = work(small(1_200)).flush(&mut client).await;
    let sql = format!("DROP OWNED BY {role}; DROP ROLE {role}");
    client.batch_execute(&sql).await?;

    assert_eq!(copied(&flushed?), (1_200, 0));
    let message = refused.unwrap_err().to_string();
    assert!(message.contains("row-level security policy"), "{message}");
    let active = "it is not active for the owner";
    assert_eq!(copied(&owner?), (1_200, 1_200), "{active}");
    Ok(())
}

/// A notice for each row, of a constraint and of a default. The client reads them while it sends.
async fn a_server_may_talk_while_rows_are_copied(url: String) -> Outcome {
    let mut client = connect(&url).await?;
    client
        .batch_execute(
            "CREATE FUNCTION talks(value integer) RETURNS boolean LANGUAGE plpgsql AS
                 'BEGIN RAISE INFO ''%'', repeat(''number '', 1000); RETURN true; END';
             CREATE TABLE small (id uuid PRIMARY KEY, number integer CHECK (talks(number)), word text)",
        )
        .await?;
    let flushed = work(small(5_000)).flush(&mut client).await?;
    assert_eq!(copied(&flushed), (5_000, 5_000));
    Ok(())
}

/// Before a row of it was sent, or at the first rows. The client is used on.
async fn a_command_that_is_refused_leaves_the_connection(url: String) -> Outcome {
    let mut client = connect(&url).await?;
    client.batch_execute(SMALL).await?;
    let characteristics = "SET SESSION CHARACTERISTICS AS TRANSACTION READ";
    let mut refused = work(small(5_000));
    client
        .batch_execute(&format!("{characteristics} ONLY"))
        .await?;
    let error = refused.flush(&mut client).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot insert into small (rows 0 to 999), nothing was written: cannot execute INSERT \
         in a read-only transaction"
    );
    client
        .batch_execute(&format!("{characteristics} WRITE"))
        .await?;
    let role = client
        .query_one("SELECT current_database() || '_app'", &[])
        .await?;
    let role: String = role.try_get(0)?;
    client
        .batch_execute(&format!(
            "CREATE ROLE {role}; GRANT SELECT ON small TO {role}; SET ROLE {role}"
        ))
        .await?;
    let error = refused.flush(&mut client).await.unwrap_err();
    client
        .batch_execute(&format!(
            "RESET ROLE; DROP OWNED BY {role}; DROP ROLE {role}"
        ))
        .await?;
    assert!(error.to_string().contains("permission denied"), "{error}");
    assert_eq!(copied(&refused.flush(&mut client).await?), (5_000, 5_000));
    Ok(())
}

/// Row-level security becomes active after it was asked for, and the server refuses `COPY` alone: tokio-postgres then takes
/// the answer to one request for that to another.
async fn a_connection_that_is_out_of_step_is_closed(url: String) -> Outcome {
    let owner = connect(&url).await?;
    let role = owner
        .query_one("SELECT current_database() || '_app'", &[])
        .await?;
    let role: String = role.try_get(0)?;
    let sql = format!("{SMALL}; CREATE ROLE {role}; GRANT ALL ON small TO {role}");
    owner.batch_execute(&sql).await?;
    let tenant = async || -> Result<Client, ::tokio_postgres::Error> {
        let client = connect(&url).await?;
        client.batch_execute(&format!("SET ROLE {role}")).await?;
        Ok(client)
    };
    // It waits for the table when everything else was asked.
    let secure = async || -> Outcome {
        let waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND database = (SELECT oid FROM pg_database \
                     WHERE datname = current_database())";
        while owner.query_one(waits, &[]).await?.try_get::<_, i64>(0)? == 0 {
            ::tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let sql = "ALTER TABLE small ENABLE ROW LEVEL SECURITY; COMMIT";
        Ok(owner.batch_execute(sql).await?)
    };
    let lock = async || -> Outcome {
        let open = "ALTER TABLE small DISABLE ROW LEVEL SECURITY; DROP POLICY IF EXISTS every ON small; \
                    CREATE POLICY every ON small USING (true)";
        owner.batch_execute(open).await?;
        Ok(owner.batch_execute("BEGIN; LOCK TABLE small").await?)
    };

    lock().await?;
    let mut client = tenant().await?;
    let mut rows = work(small(1_200));
    let (outcome, secured) = ::tokio::join!(rows.flush(&mut client), secure());
    secured?;
    let error = outcome.unwrap_err();
    assert!(
        error.is_connection_lost() && error.to_string().contains("row-level security"),
        "{error}"
    );
    assert!(client.is_closed() && client.batch_execute("SELECT 1").await.is_err());
    assert!(is_so(&owner, "(SELECT count(*) FROM small) = 0").await?);

    // Another connection asks again.
    lock().await?;
    let (outcome, secured) = ::tokio::join!(rows.flush_with(&tenant), secure());
    secured?;
    let flushed = outcome?;
    assert_eq!((copied(&flushed), flushed.retries), ((1_200, 0), 1));
    assert!(is_so(&owner, "(SELECT count(*) FROM small) = 1200").await?);

    // The server closes the connection of a client whose calls block, as nothing else could.
    lock().await?;
    let (url, set_role) = (url.clone(), format!("SET ROLE {role}"));
    let mut rows = work(small(1_200));
    let blocking = on_thread(&mut rows, move |rows| {
        let mut client = postgres::Client::connect(&url, postgres::NoTls)?;
        client.batch_execute(&set_role)?;
        let error = rows.flush_blocking(&mut client).unwrap_err();
        let is_closed = client.batch_execute("SELECT 1").is_err() && client.is_closed();
        Ok::<_, postgres::Error>((error, is_closed))
    });
    let (outcome, secured) = ::tokio::join!(blocking, secure());
    secured?;
    let (error, is_closed) = outcome?;
    assert!(
        error.is_connection_lost() && is_closed,
        "{error}, {is_closed}"
    );
    assert!(is_so(&owner, "(SELECT count(*) FROM small) = 1200").await?);
    owner
        .batch_execute(&format!("DROP OWNED BY {role}; DROP ROLE {role}"))
        .await?;
    Ok(())
}

async fn a_refused_row_is_named_among_many(url: String) -> Outcome {
    let mut client = connect(&url).await?;
    client
        .batch_execute("CREATE TABLE small (id uuid PRIMARY KEY, number integer CHECK (number <> 3700), word text)")
        .await?;
    let rows: Vec<Small> = small(5_000).collect();
    let mut refused = work(rows.clone());
    let error = refused.flush(&mut client).await.unwrap_err();
    let key = rows[3_700].id.to_string();
    let found = (error.key(), error.chunk());
    assert_eq!(found, (Some(key.as_str()), Some(3)), "{error}");
    assert!(is_so(&client, "(SELECT count(*) FROM small) = 0").await?);
    assert_eq!(refused.len(), 5_000);

    // The connection is as before; a key that is there is told as one.
    work(small(1_200)).flush(&mut client).await?;
    work(rows[10..11].to_vec()).flush(&mut client).await?;
    let mut taken = work(rows[..2_000].to_vec());
    let error = taken.flush(&mut client).await.unwrap_err();
    assert!(error.is_unique_violation(), "{error}");
    assert_eq!(error.constraint(), Some("small_pkey"));
    assert_eq!(error.key(), Some(rows[10].id.to_string().as_str()));
    assert!(is_so(&client, "(SELECT count(*) FROM small) = 1201").await?);
    Ok(())
}

async fn many_rows_take_several_commands(url: String) -> Outcome {
    let mut client = connect(&url).await?;
    client.batch_execute(SMALL).await?;
    let flushed = work(small(150_000)).flush(&mut client).await?;
    assert_eq!(copied(&flushed), (150_000, 150_000));
    assert_eq!(flushed.tables[0].statements, 2);
    assert!(is_so(&client, "(SELECT count(*) FROM small) = 150000").await?);
    Ok(())
}

async fn upserts_are_copied_into_a_temporary_table(url: String) -> Outcome {
    let mut client = connect(&url).await?;
    client.batch_execute(SMALL).await?;
    client
        .batch_execute(ordid_tokio_postgres::flushes_table())
        .await?;
    let rows: Vec<Small> = small(6_000).collect();
    work(rows[..3_000].to_vec()).flush(&mut client).await?;
    client
        .batch_execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        .await
        .ok();
    let mut upserts = UnitOfWork::new();
    for row in rows {
        upserts.upsert(Small {
            number: row.number + 1,
            ..row
        });
    }
    let flushed = upserts.flush(&mut client).await?;
    // Of each chunk it takes one statement less than by statements of 1,000 rows.
    assert!(flushed.tables[0].statements < 12, "{flushed:?}");
    let right = "(SELECT count(*) = 6000 AND sum(number) = 6000 * 6001 / 2 FROM small)";
    assert!(is_so(&client, right).await?);
    Ok(())
}
