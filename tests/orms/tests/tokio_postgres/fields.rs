//! Fields of types that PostgreSQL does not have itself, NULLs, and values of another type than their column's.

use std::{
    net::IpAddr,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use ::tokio_postgres::types::{FromSql, IsNull, Json, Kind, ToSql, Type, to_sql_checked};
use bytes::BytesMut;
use libtest_mimic::Trial;
use ordid::{Assigned, KeyType as _, OrderedKey};
use ordid_tests::{servers::Servers, trials::Outcome};
use ordid_tokio_postgres::{EngineProfile, OnConflict, UnitOfWork};

use sqlx::Postgres;

use crate::{is_so, keys::Native, tokio::connect, work};

type Written = Result<IsNull, Box<dyn std::error::Error + Send + Sync>>;

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    ordid_tests::address_tests!(
        trials, servers, Postgres: "postgres", "fields::";
        types_of_the_user_are_written_inserted_updated_and_upserted,
        a_value_of_another_type_is_an_error_with_the_row,
        a_value_that_cannot_be_written_is_named,
        a_table_or_a_column_that_is_missing_is_told_by_the_server,
        tables_are_found_over_the_search_path_and_in_schemas,
        what_the_database_fills_may_be_of_any_type,
        an_open_transaction_is_refused,
        a_column_that_a_row_is_found_by_is_written_row_by_row,
    );
}

/// An `ENUM`, which is written to a column of that name alone.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Mood {
    Sad,
    Ok,
}

impl ToSql for Mood {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Written {
        out.extend_from_slice(match self {
            Self::Sad => b"sad",
            Self::Ok => b"o'k",
        });
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        let labels = ["sad".to_owned(), "o'k".to_owned()];
        ty.name() == "Mood" && matches!(ty.kind(), Kind::Enum(of) if *of == labels)
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Mood {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        Ok(if raw == b"sad" { Self::Sad } else { Self::Ok })
    }

    fn accepts(ty: &Type) -> bool {
        <Self as ToSql>::accepts(ty)
    }
}

/// A domain that knows its name.
#[derive(Debug, Clone)]
struct Zip(String);

impl ToSql for Zip {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Written {
        out.extend_from_slice(self.0.as_bytes());
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        ty.name() == "zip" && matches!(ty.kind(), Kind::Domain(_))
    }

    to_sql_checked!();
}

#[derive(OrderedKey, Clone)]
#[ordid(table = "people", columns)]
struct Person {
    id: Native,
    mood: Mood,
    other_mood: Option<Mood>,
    moods: Vec<Mood>,
    zip: Zip,
    mail: String,
    document: Json<serde_json::Value>,
    plain: Json<serde_json::Value>,
    born: SystemTime,
    local: Option<SystemTime>,
    address: IpAddr,
    friends: Vec<Native>,
    short: i16,
}

const PEOPLE: &str = r#"
    CREATE TYPE "Mood" AS ENUM ('sad', 'o''k');
    CREATE DOMAIN zip AS text NOT NULL CHECK (length(VALUE) = 5);
    CREATE DOMAIN mail AS varchar(40) CHECK (VALUE LIKE '%@%');
    CREATE TABLE people (id uuid PRIMARY KEY, mood "Mood" NOT NULL, other_mood "Mood", moods "Mood"[] NOT NULL,
        zip zip, mail mail, document jsonb NOT NULL, plain json NOT NULL, born timestamptz NOT NULL,
        local timestamp, address inet NOT NULL, friends uuid[] NOT NULL, short smallint NOT NULL)"#;

fn person(number: u64) -> Person {
    let born = UNIX_EPOCH + Duration::from_micros(number * 1_234_567);
    let document = serde_json::json!({ "b": number, "a": [null, "ß"] });
    Person {
        id: Native::generate(),
        mood: Mood::Ok,
        other_mood: number.is_multiple_of(2).then_some(Mood::Sad),
        moods: vec![Mood::Sad, Mood::Ok],
        zip: Zip("12345".to_owned()),
        mail: format!("{number}@example.org"),
        document: Json(document.clone()),
        plain: Json(document),
        born,
        local: number.is_multiple_of(3).then_some(born),
        address: IpAddr::from([10, 0, 0, 1]),
        friends: vec![Native::generate()],
        short: -7,
    }
}

async fn types_of_the_user_are_written_inserted_updated_and_upserted(url: String) -> Outcome {
    let mut client = connect(&url).await?;
    client.batch_execute(PEOPLE).await?;
    client.batch_execute("SET TimeZone = 'Asia/Tokyo'").await?;
    client
        .batch_execute(ordid_tokio_postgres::flushes_table())
        .await?;
    // By one statement, and by several of the same text, as a domain is not copied.
    for rows in [1_u64, 50, 3_500] {
        let people: Vec<Person> = (0..rows).map(person).collect();
        work(people.clone()).flush(&mut client).await?;
        let right = "(SELECT bool_and(mood = 'o''k' AND moods = '{sad,o''k}' AND document = plain::jsonb \
                     AND (local IS NULL OR local = born AT TIME ZONE 'UTC') AND friends[1] > id AND address = '10.0.0.1' \
                     AND (other_mood IS NULL) = (split_part(mail, '@', 1)::int % 2 = 1)) FROM people)";
        assert!(is_so(&client, right).await?);
        let mut changes = UnitOfWork::new();
        for (number, row) in people.iter().cloned().enumerate() {
            match number % 3 {
                0 => changes.update(Person {
                    mood: Mood::Sad,
                    ..row
                }),
                1 => changes.update_columns(
                    Person {
                        mood: Mood::Sad,
                        ..row
                    },
                    Person::mood,
                ),
                _ => {
                    changes.upsert(Person {
                        mood: Mood::Sad,
                        ..row
                    });
                }
            }
        }
        changes.upsert(Person {
            mood: Mood::Sad,
            ..person(7)
        });
        changes.flush(&mut client).await?;
        let right =
            format!("(SELECT count(*) = {rows} + 1 AND bool_and(mood = 'sad') FROM people)");
        assert!(is_so(&client, &right).await?);
        let row = client
            .query_one("SELECT mood FROM people LIMIT 1", &[])
            .await?;
        assert_eq!(row.try_get::<_, Mood>(0)?, Mood::Sad);
        let mut deletes = UnitOfWork::new();
        people.iter().for_each(|row| deletes.delete(row));
        deletes.flush(&mut client).await?;
        client.batch_execute("TRUNCATE people").await?;
    }
    // The domains check.
    let mut short = person(1);
    short.zip.0.pop();
    let error = work([person(2), short.clone()])
        .flush(&mut client)
        .await
        .unwrap_err();
    assert_eq!(error.key(), Some(&*short.id.to_string()), "{error}");
    Ok(())
}

#[derive(OrderedKey, Clone)]
#[ordid(table = "numbers")]
struct Numbered {
    id: Native,
    number: i32,
}

#[derive(OrderedKey)]
#[ordid(table = "numbers")]
struct Versioned {
    id: Native,
    #[ordid(version)]
    number: i32,
}

async fn a_value_of_another_type_is_an_error_with_the_row(url: String) -> Outcome {
    let mut client = connect(&url).await?;
    client
        .batch_execute("CREATE TABLE numbers (id uuid PRIMARY KEY, number bigint)")
        .await?;
    for rows in [1, 1_500] {
        let rows = (0..rows).map(|number| Numbered {
            id: Native::generate(),
            number,
        });
        let rows: Vec<Numbered> = rows.collect();
        let error = work(rows.clone()).flush(&mut client).await.unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("column number: cannot convert between the Rust type"),
            "{text}"
        );
        assert_eq!(error.column(), Some("number"));
        assert!(
            text.contains("numbers") && text.contains("nothing was written"),
            "{text}"
        );
        assert_eq!(error.key(), Some(&*rows[0].id.to_string()));
        assert!(!error.is_connection_lost() && error.retries() == 0);
    }
    assert!(is_so(&client, "(SELECT count(*) FROM numbers) = 0").await?);
    let mut work = UnitOfWork::new().without_record();
    work.delete(&Versioned {
        id: Native::generate(),
        number: 1,
    });
    let error = work.flush(&mut client).await.unwrap_err();
    assert_eq!(error.column(), Some("number"), "{error}");
    Ok(())
}

/// A number that is written but for one.
#[derive(Debug, Clone, Copy)]
struct Picky(i64);

impl ToSql for Picky {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Written {
        match self.0 {
            700 => Err("as the test asks".into()),
            number => number.to_sql(ty, out),
        }
    }

    fn accepts(ty: &Type) -> bool {
        <i64 as ToSql>::accepts(ty)
    }

    to_sql_checked!();
}

#[derive(OrderedKey, Clone)]
#[ordid(table = "numbers")]
struct PickyRow {
    id: Native,
    number: Picky,
}

async fn a_value_that_cannot_be_written_is_named(url: String) -> Outcome {
    let mut client = connect(&url).await?;
    client
        .batch_execute("CREATE TABLE numbers (id uuid PRIMARY KEY, number bigint)")
        .await?;
    for rows in [900, 2_500] {
        let rows = (0..rows).map(|number| PickyRow {
            id: Native::generate(),
            number: Picky(number),
        });
        let rows: Vec<PickyRow> = rows.collect();
        let error = work(rows.clone()).flush(&mut client).await.unwrap_err();
        assert!(error.to_string().contains("as the test asks"), "{error}");
        assert_eq!(error.key(), Some(&*rows[700].id.to_string()), "{error}");
        work(rows[..600].to_vec()).flush(&mut client).await?;
    }
    assert!(is_so(&client, "(SELECT count(*) FROM numbers) = 1200").await?);
    Ok(())
}

async fn a_table_or_a_column_that_is_missing_is_told_by_the_server(url: String) -> Outcome {
    let mut client = connect(&url).await?;
    ordid_tokio_postgres::create_flushes_table(&client).await?;
    let rows = [Numbered {
        id: Native::generate(),
        number: 1,
    }];
    let error = work(rows.clone()).flush(&mut client).await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains(r#"relation "numbers" does not exist"#),
        "{error}"
    );
    client
        .batch_execute("CREATE TABLE numbers (id uuid PRIMARY KEY)")
        .await?;
    let error = work(rows.clone()).flush(&mut client).await.unwrap_err();
    let text = r#"column "number" of relation "numbers" does not exist"#;
    assert!(error.to_string().contains(text), "{error}");
    client
        .batch_execute("ALTER TABLE numbers ADD number integer")
        .await?;
    work(rows).flush(&mut client).await?;
    Ok(())
}

#[derive(OrderedKey, Clone)]
#[ordid(table = "num\"bers", schema = "a schema")]
struct InSchema {
    id: Native,
    #[ordid(column = "num ber")]
    number: i32,
}

async fn tables_are_found_over_the_search_path_and_in_schemas(url: String) -> Outcome {
    let mut client = connect(&url).await?;
    client
        .batch_execute(
            r#"CREATE SCHEMA "a schema"; CREATE SCHEMA b;
               CREATE TABLE "a schema"."num""bers" (id uuid PRIMARY KEY, "num ber" integer);
               CREATE TABLE numbers (id uuid PRIMARY KEY, number text);
               CREATE TABLE b.numbers (id uuid PRIMARY KEY, number integer);
               SET search_path = b, public"#,
        )
        .await?;
    let mut work = UnitOfWork::new();
    work.add(InSchema {
        id: Native::generate(),
        number: 1,
    });
    work.add(Numbered {
        id: Native::generate(),
        number: 2,
    });
    work.flush(&mut client).await?;
    let right = r#"(SELECT "num ber" = 1 FROM "a schema"."num""bers") AND (SELECT number = 2 FROM b.numbers)"#;
    assert!(is_so(&client, right).await?);
    Ok(())
}

async fn what_the_database_fills_may_be_of_any_type(url: String) -> Outcome {
    #[derive(OrderedKey)]
    #[ordid(table = "filled")]
    struct Filled {
        id: Native,
        #[ordid(returning)]
        at: Assigned<SystemTime>,
        #[ordid(returning)]
        mood: Assigned<Option<Mood>>,
        #[ordid(returning)]
        list: Assigned<Vec<i32>>,
    }

    let mut client = connect(&url).await?;
    client
        .batch_execute(
            r#"CREATE TYPE "Mood" AS ENUM ('sad', 'o''k');
               CREATE TABLE filled (id uuid PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(),
                   mood "Mood" DEFAULT 'sad', list int[] NOT NULL DEFAULT '{1,2}')"#,
        )
        .await?;
    let row = Filled {
        id: Native::generate(),
        at: Assigned::new(),
        mood: Assigned::new(),
        list: Assigned::new(),
    };
    let (at, mood, list) = (row.at.clone(), row.mood.clone(), row.list.clone());
    work([row]).flush(&mut client).await?;
    assert!(
        at.get()
            .is_some_and(|at| at.elapsed().is_ok_and(|it| it.as_secs() < 600))
    );
    assert_eq!(mood.get(), Some(Some(Mood::Sad)));
    assert_eq!(list.get(), Some(vec![1, 2]));
    Ok(())
}

async fn an_open_transaction_is_refused(url: String) -> Outcome {
    let mut client = connect(&url).await?;
    client
        .batch_execute("CREATE TABLE numbers (id uuid PRIMARY KEY, number integer)")
        .await?;
    let mut rows = work([Numbered {
        id: Native::generate(),
        number: 1,
    }]);
    client.batch_execute("BEGIN").await?;
    for spoil in ["SELECT 1", "SELECT 1 / 0"] {
        let _ = client.batch_execute(spoil).await;
        let error = rows.flush(&mut client).await.unwrap_err();
        assert!(error.is_connection_state(), "{error}");
    }
    client.batch_execute("ROLLBACK").await?;
    rows.flush(&mut client).await?;
    Ok(())
}

#[derive(OrderedKey)]
#[ordid(table = "found", columns)]
struct Found {
    id: Native,
    number: i32,
}

/// A statement then has this column twice.
async fn a_column_that_a_row_is_found_by_is_written_row_by_row(url: String) -> Outcome {
    let mut client = connect(&url).await?;
    client
        .batch_execute("CREATE TABLE found (id uuid PRIMARY KEY, number integer UNIQUE)")
        .await?;
    ordid_tokio_postgres::create_flushes_table(&client).await?;
    for updates in [
        EngineProfile::POSTGRES.updates,
        EngineProfile::MYSQL.updates,
    ] {
        let mut engine = EngineProfile::POSTGRES;
        engine.updates = updates;
        for _ in 0..2 {
            let mut upserts = UnitOfWork::new().with_engine(engine);
            for number in [1, 2] {
                let row = Found {
                    id: Native::generate(),
                    number,
                };
                let by_number = OnConflict::of(Found::number).set(Found::number);
                upserts.upsert_with(row, by_number);
            }
            let flushed = upserts.flush(&mut client).await?;
            assert_eq!(flushed.rows() + flushed.updated(), 2);
        }
    }
    assert!(is_so(&client, "count(*) = 2 AND sum(number) = 3 FROM found").await?);
    Ok(())
}
