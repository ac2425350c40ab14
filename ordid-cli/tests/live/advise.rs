//! `ordid advise`: its tables are made on live databases, and its derives compile.

use std::sync::Arc;

use libtest_mimic::{Failed, Trial};
use ordid::{KeyType, uuid::Uuid};
use ordid_core::{
    clock::SystemClock,
    scheme::catalogue::{self, AnyColumn},
};
use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection as _, SqliteConnection};

use crate::place::{Result, Servers, block_on, execute, printed, refused};

pub(crate) fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    const NAME: &str = "the_advised_tables_are_made_and_keep_keys_in_order";
    trials.push(servers.trial("postgres", NAME, |url| {
        on_server(
            url,
            "PostgreSQL",
            &["postgres", "cockroachdb", "citus", "dsql"],
        )
    }));
    trials.push(servers.trial("mysql", NAME, |url| {
        on_server(url, "MySQL", &["mysql", "tidb", "vitess"])
    }));
    trials.push(servers.trial("mariadb", NAME, |url| {
        on_server(url, "MariaDB", &["mariadb", "galera"])
    }));
    trials.push(Trial::test(format!("{NAME} [sqlite]"), || on_sqlite()));
    trials.push(Trial::test("the_advised_derives_compile", derives));
    trials.push(Trial::test(
        "a_library_that_does_not_speak_to_the_engine_is_one_line",
        || {
            let line = refused(&["advise", "oracle", "--library", "sqlx"], 2)?;
            assert!(line.contains("does not speak to Oracle"), "{line}");
            let text = printed(&["advise", "tidb"], 0)?;
            assert!(
                text.contains("SPLIT TABLE `orders` BY")
                    && text.contains("https://docs.pingcap.com"),
                "{text}"
            );
            Ok(())
        },
    ));
}

fn advice(engine: &str, options: &[&str]) -> Result<Value> {
    let arguments = [&["advise", engine, "--json"][..], options].concat();
    Ok(serde_json::from_str(&printed(&arguments, 0)?)?)
}

/// Makes keys of the advised scheme, and returns them as SQL, in an order that is not theirs.
fn literals(advice: &Value, dialect: &str) -> Result<Vec<String>> {
    let scheme =
        catalogue::find(advice["scheme"].as_str().unwrap_or_default()).ok_or("a scheme")?;
    let is = |column: &AnyColumn| column.dialect == dialect && advice["column"] == column.name;
    let column = scheme.columns().into_iter().find(is).ok_or("a column")?;
    let node = scheme.name.starts_with("snowflake").then_some(1);
    let keys = scheme.generator(node, Arc::new(SystemClock))?;
    let mut keys = (0..100)
        .map(|_| keys.generate())
        .collect::<std::result::Result<Vec<_>, _>>()?;
    keys.reverse();
    Ok(keys
        .iter()
        .map(|key| column.literal(key))
        .collect::<std::result::Result<_, _>>()?)
}

const OPTIONS: [&[&str]; 3] = [&[], &["--64-bit"], &["--public", "--machines", "one"]];

/// The statements that the engine whose columns these are knows, too.
fn statements(advice: &Value, dialect: &str) -> Result<Vec<String>> {
    let create = advice["ddl"][0].as_str().ok_or("a statement")?.to_owned();
    let mut all = vec![create.clone()];
    for literal in literals(advice, dialect)? {
        all.push(match create.contains("tenant_id") {
            true => format!("INSERT INTO orders VALUES ({literal}, {literal})"),
            false => format!("INSERT INTO orders VALUES ({literal})"),
        });
    }
    Ok(all)
}

fn on_server(url: &str, dialect: &str, engines: &[&str]) -> Result {
    for engine in engines {
        for options in OPTIONS {
            let advice = advice(engine, options)?;
            let all = statements(&advice, dialect)?;
            execute(url, &all.join(";"))
                .map_err(|error| Failed::from(format!("{engine}: {}: {error:?}", all[0])))?;
            execute(url, "DROP TABLE orders")?;
        }
    }
    Ok(())
}

fn on_sqlite() -> Result {
    for options in OPTIONS {
        let advice = advice("sqlite", options)?;
        let all = statements(&advice, "SQLite")?.join(";");
        let rows: i64 = block_on(async {
            let mut connection = SqliteConnection::connect("sqlite::memory:").await?;
            sqlx::raw_sql(AssertSqlSafe(all))
                .execute(&mut connection)
                .await?;
            sqlx::query_scalar("SELECT count(*) FROM orders")
                .fetch_one(&mut connection)
                .await
        })?;
        assert_eq!(rows, 100);
    }
    Ok(())
}

/// Compiles derives, and returns their lines.
macro_rules! derived {
    ($(($name:ident, $raw:ty, $($options:tt)+))+) => {{
        $(
            #[derive(KeyType)]
            #[ordid($($options)+)]
            #[allow(dead_code)]
            struct $name($raw);
        )+
        [$(stringify!($($options)+)),+]
    }};
}

fn derives() -> Result {
    let compiled = derived! {
        (A, Uuid, scheme = uuid_v7, sqlx(postgres = uuid))
        (B, Uuid, scheme = uuid_v7_unguessable, sqlx(postgres = uuid))
        (C, i64, scheme = snowflake, sqlx(postgres = bigint))
        (D, Uuid, scheme = uuid_v7_spread(buckets = 16), sqlx(postgres = uuid))
        (E, i64, scheme = snowflake_spread(buckets = 16), sqlx(postgres = bigint))
        (F, Uuid, scheme = uuid_v7, sqlx(mysql = binary16))
        (G, Uuid, scheme = uuid_v7_unguessable, sqlx(mysql = binary16))
        (H, i64, scheme = snowflake, sqlx(mysql = bigint))
        (I, Uuid, scheme = uuid_v7_spread(buckets = 16), sqlx(mysql = binary16))
        (J, i64, scheme = snowflake_spread(buckets = 16), sqlx(mysql = bigint))
        (K, Uuid, scheme = uuid_v7, sqlx(sqlite = blob))
        (L, Uuid, scheme = uuid_v7_unguessable, sqlx(sqlite = blob))
        (M, i64, scheme = snowflake, sqlx(sqlite = integer))
    };
    let plain = |text: &str| text.split_whitespace().collect::<String>();
    let compiled: Vec<String> = compiled
        .map(|it| plain(&format!("#[ordid({it})]")))
        .to_vec();
    let mut seen = std::collections::HashSet::new();
    for engine in [
        "postgres",
        "mysql",
        "mariadb",
        "sqlite",
        "cockroachdb",
        "yugabytedb",
        "tidb",
        "citus",
        "vitess",
        "dsql",
        "galera",
    ] {
        for options in OPTIONS {
            let advice = advice(engine, options)?;
            let line = plain(advice["derive"].as_str().unwrap_or_default());
            assert!(compiled.contains(&line), "{line}");
            seen.insert(line);
        }
    }
    assert_eq!(seen.len(), compiled.len());
    Ok(())
}
