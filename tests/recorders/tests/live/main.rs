//! What only a server can tell, on the server that `ORDID_TEST_MSSQL_URL` names by an ADO.NET
//! connection string: without it, each test is counted as ignored, with the reason.
//!
//! It may be SQL Server or Babelfish. Babelfish proves nothing of SQL Server's order: there, that order
//! is proven through an `ORDER BY` over slices of the bytes, which is valid on SQL Server too, and on
//! SQL Server is compared with its own.

mod changes;
#[allow(dead_code, reason = "what only the recorder's tests need")]
#[path = "../recorders/sql_server/entities.rs"]
mod entities;
mod followed;
mod guide;

use std::{future::Future, panic::AssertUnwindSafe};

use entities::{CustomerId, Order, OrderId, Reading, Tcp, Tree, TreeId, orders_of};
use libtest_mimic::{Arguments, Failed, Trial};
use ordid::{KeyType, OrderedKey, uuid::Uuid};
use ordid_harness::Access;
use ordid_tests::login::{TdsDatabase, batch, tds};
use ordid_tiberius::{Flavour, Stored, UnitOfWork, column, is_babelfish};

type Outcome = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// SQL Server's comparison of a `uniqueidentifier`, said in bytes: of the wire's, 10 to 15, then 8 and
/// 9, 6 and 7, 4 and 5, 0 to 3.
const BY_SLICES: &str = "SUBSTRING(CAST(id AS binary(16)), 11, 6), SUBSTRING(CAST(id AS binary(16)), 9, 2), \
                         SUBSTRING(CAST(id AS binary(16)), 7, 2), SUBSTRING(CAST(id AS binary(16)), 5, 2), \
                         SUBSTRING(CAST(id AS binary(16)), 1, 4)";

fn main() {
    let arguments = Arguments::from_args();
    let access = if arguments.list {
        Ok(Access::Skip("only listed".to_owned()))
    } else {
        ordid_harness::access("mssql")
    };
    let access = match access {
        Ok(access) => access,
        Err(error) => exit(&error.to_string()),
    };
    let url = access.url().ok_or_else(|| match &access {
        Access::Skip(reason) => reason.clone(),
        _ => "no address".to_owned(),
    });
    let babelfish = match &url {
        Ok(url) => flavour(url).unwrap_or_else(|error| exit(&error)),
        Err(_) => false,
    };
    let for_loads = match (&url, babelfish) {
        (Ok(_), true) => Err("Babelfish is sent no bulk loads".to_owned()),
        _ => url.clone(),
    };
    let mut trials = Vec::new();
    trial(&mut trials, &url, "keys_are_sorted_as_they_rise", sorted);
    trial(&mut trials, &url, "values_come_back", values_come_back);
    trial(&mut trials, &url, "a_graph_is_written_or_not", graph);
    trial(
        &mut trials,
        &url,
        "the_sql_of_the_guide_runs",
        guide::sql_runs,
    );
    trial(
        &mut trials,
        &for_loads,
        "a_load_is_an_insert",
        load_is_insert,
    );
    trial(&mut trials, &url, "a_savepoint_keeps_the_rest", savepoint);
    trial(
        &mut trials,
        &url,
        "rows_change_or_none_does",
        changes::changes,
    );
    trial(
        &mut trials,
        &url,
        "settled_rows_are_delivered_once",
        followed::settled,
    );
    let for_waits = match (&url, babelfish) {
        (Ok(_), true) => Err("Babelfish reads without locks".to_owned()),
        _ => url.clone(),
    };
    trial(
        &mut trials,
        &for_waits,
        "a_follower_waits_for_rows_that_are_not_committed",
        followed::waits,
    );
    let for_kills = match (&url, babelfish) {
        (Ok(_), true) => Err("Babelfish's KILL is another".to_owned()),
        _ => url.clone(),
    };
    trial(
        &mut trials,
        &for_kills,
        "a_connection_that_is_killed_is_made_anew",
        changes::killed,
    );
    libtest_mimic::run(&arguments, trials).exit();
}

/// Asks the server what it is.
fn flavour(url: &str) -> Result<bool, String> {
    let runtime = runtime().map_err(|error| error.to_string())?;
    runtime
        .block_on(async { is_babelfish(&mut tds(url).await?).await })
        .map_err(|error| error.to_string())
}

#[allow(clippy::print_stderr, reason = "there is no test to fail yet")]
fn exit(message: &str) -> ! {
    eprintln!("live tests of SQL Server: {message}");
    std::process::exit(101)
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}

fn trial<F: Future<Output = Outcome> + 'static>(
    trials: &mut Vec<Trial>,
    url: &Result<String, String>,
    name: &str,
    test: fn(Scratch) -> F,
) {
    match url {
        Ok(url) => {
            let url = url.clone();
            trials.push(Trial::test(format!("mssql::{name}"), move || {
                run(&url, test)
            }));
        }
        Err(reason) => trials.push(
            Trial::test(format!("mssql::{name}"), || Ok(()))
                .with_kind(reason)
                .with_ignored_flag(true),
        ),
    }
}

/// Runs a test in a database of its own, which is dropped whatever becomes of it.
fn run<F: Future<Output = Outcome>>(url: &str, test: fn(Scratch) -> F) -> Result<(), Failed> {
    let runtime = runtime().map_err(|error| Failed::from(error.to_string()))?;
    let ready = runtime.block_on(async {
        let database = TdsDatabase::create(url).await?;
        let scratch = Scratch {
            client: database.connect().await?,
            database: database.clone(),
        };
        Ok((database, scratch))
    });
    let ready: tiberius::Result<_> = ready;
    let (database, scratch) = ready.map_err(|error| Failed::from(error.to_string()))?;
    let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| runtime.block_on(test(scratch))));
    let dropped = runtime.block_on(database.drop());
    match outcome {
        Ok(Ok(())) => dropped.map_err(|error| Failed::from(error.to_string())),
        Ok(Err(error)) => Err(Failed::from(error.to_string())),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// A connection to an empty database.
struct Scratch {
    client: Tcp,
    database: TdsDatabase,
}

async fn rows(client: &mut Tcp, sql: &str) -> tiberius::Result<Vec<tiberius::Row>> {
    client.simple_query(sql).await?.into_first_result().await
}

async fn count(client: &mut Tcp, table: &str) -> tiberius::Result<Option<i32>> {
    let rows = rows(client, &format!("SELECT COUNT(*) FROM {table}")).await?;
    Ok(rows.first().and_then(|row| row.get(0)))
}

#[derive(OrderedKey)]
#[ordid(table = "risen")]
struct Risen {
    #[ordid(key)]
    id: CustomerId,
}

#[derive(OrderedKey)]
#[ordid(table = "permuted")]
struct Permuted {
    #[ordid(key)]
    id: OrderId,
}

/// On Babelfish a bare UUID is a key.
#[derive(OrderedKey)]
#[ordid(table = "plain")]
struct Plain {
    #[ordid(key)]
    id: Uuid,
}

/// What the columns' `sort_key` says is what the server does.
async fn sorted(scratch: Scratch) -> Outcome {
    let Scratch {
        mut client,
        database,
    } = scratch;
    for table in ["risen", "permuted", "plain"] {
        let sql = format!("CREATE TABLE {table} (id uniqueidentifier NOT NULL PRIMARY KEY)");
        batch(&mut client, &sql).await?;
    }
    let mut risen: Vec<_> = (0..6_000).map(|_| CustomerId::generate()).collect();
    let mut permuted: Vec<_> = (0..6_000).map(|_| OrderId::generate()).collect();
    // As made, they rise; as they are added, they do not.
    risen.reverse();
    permuted.reverse();
    let as_bytes = |sql: &str| sql.replace("BY_SLICES", BY_SLICES);
    if database.is_babelfish() {
        let mut work = UnitOfWork::for_babelfish();
        for id in &risen {
            work.add(Plain { id: id.to_raw() });
        }
        work.flush(&mut client).await?;
        risen.reverse();
        let found = rows(
            &mut client,
            &as_bytes("SELECT id FROM plain ORDER BY BY_SLICES"),
        )
        .await?;
        let found: Vec<Option<CustomerId>> = found.iter().map(|row| row.get(0)).collect();
        assert_eq!(found, risen.into_iter().map(Some).collect::<Vec<_>>());

        let found = rows(&mut client, "SELECT id FROM plain ORDER BY id").await?;
        let found: Vec<Option<Uuid>> = found.iter().map(|row| row.get(0)).collect();
        assert!(
            found.is_sorted(),
            "Babelfish compares the bytes of the value"
        );
        return Ok(());
    }
    let mut work = UnitOfWork::new();
    for (risen, permuted) in risen.iter().zip(&permuted) {
        work.add(Risen { id: *risen });
        work.add(Permuted { id: *permuted });
    }
    let flushed = work.flush(&mut client).await?;
    assert!(
        flushed.tables.iter().all(|table| table.bulk == 6_000),
        "{flushed:?}"
    );
    risen.reverse();
    permuted.reverse();
    for by in ["id", BY_SLICES] {
        let found = rows(&mut client, &format!("SELECT id FROM risen ORDER BY {by}")).await?;
        let found: Vec<Option<CustomerId>> = found.iter().map(|row| row.get(0)).collect();
        assert_eq!(
            found,
            risen.iter().copied().map(Some).collect::<Vec<_>>(),
            "{by}"
        );
        let found = rows(
            &mut client,
            &format!("SELECT id FROM permuted ORDER BY {by}"),
        )
        .await?;
        let found: Vec<Option<OrderId>> = found.iter().map(|row| row.get(0)).collect();
        assert_eq!(
            found,
            permuted.iter().copied().map(Some).collect::<Vec<_>>(),
            "{by}"
        );
    }
    Ok(())
}

/// The server's own text of a value is the UUID's.
async fn values_come_back(Scratch { mut client, .. }: Scratch) -> Outcome {
    type Value = Stored<TreeId, column::BabelfishUniqueIdentifier>;

    batch(
        &mut client,
        "CREATE TABLE trees (id uniqueidentifier NOT NULL PRIMARY KEY, parent uniqueidentifier)",
    )
    .await?;
    let key = TreeId::generate();
    let stored = Value::new(key);
    client
        .execute("INSERT INTO trees (id) VALUES (@P1)", &[&stored])
        .await?;
    let found = client
        .query(
            "SELECT id, LOWER(CONVERT(char(36), id)), parent FROM trees WHERE id = @P1",
            &[&stored],
        )
        .await?;
    let found = found.into_row().await?.ok_or("the row is not found")?;
    assert_eq!(found.get::<Value, _>(0), Some(stored));
    assert_eq!(found.get::<&str, _>(1), Some(&key.to_raw().to_string()[..]));
    assert_eq!(found.get::<Value, _>(2), None);
    Ok(())
}

async fn tables(client: &mut Tcp) -> tiberius::Result<()> {
    batch(client, "CREATE SCHEMA shop").await?;
    batch(
        client,
        "CREATE TABLE customers (id uniqueidentifier NOT NULL PRIMARY KEY,
            name nvarchar(100) NOT NULL, note nvarchar(max));
         CREATE TABLE shop.[my]]orders] (id uniqueidentifier NOT NULL PRIMARY KEY,
            customer uniqueidentifier NOT NULL REFERENCES customers (id),
            total bigint NOT NULL CHECK (total >= 0))",
    )
    .await
}

/// Parents first; duplicates, missing parents and failed checks leave nothing, by load or statement.
async fn graph(scratch: Scratch) -> Outcome {
    let Scratch {
        mut client,
        database,
    } = scratch;
    if database.is_babelfish() {
        return trees_on_babelfish(client).await;
    }
    tables(&mut client).await?;
    for number in [10, 3_000] {
        let customer = entities::Customer {
            id: CustomerId::generate(),
            name: "Ada".to_owned(),
            note: None,
        };
        let mut work = orders_of(customer.id, number);
        let error = work
            .flush(&mut client)
            .await
            .err()
            .ok_or("there is no parent")?;
        assert!(error.is_foreign_key_violation(), "{error}");
        assert!(error.key().is_some(), "{error}");
        assert_eq!(count(&mut client, "shop.[my]]orders]").await?, Some(0));

        let mut bad = Order::of(customer.id, -1);
        bad.id = OrderId::generate();
        let key = bad.id;
        work.add(customer);
        work.add(bad);
        let error = work
            .flush(&mut client)
            .await
            .err()
            .ok_or("a total below zero")?;
        assert_eq!(error.code(), Some(547), "{error}");
        assert_eq!(error.key(), Some(&key.to_string()[..]), "{error}");
        assert_eq!(count(&mut client, "customers").await?, Some(0));

        batch(
            &mut client,
            "ALTER TABLE shop.[my]]orders] NOCHECK CONSTRAINT ALL",
        )
        .await?;
        let flushed = work.flush(&mut client).await?;
        let loaded = if number == 10 { 0 } else { 3_001 };
        assert_eq!(flushed.tables[1].bulk, loaded);
        assert_eq!(
            count(&mut client, "shop.[my]]orders]").await?,
            i32::try_from(number).ok().map(|n| n + 1)
        );
        batch(
            &mut client,
            "DELETE FROM shop.[my]]orders]; DELETE FROM customers;
             ALTER TABLE shop.[my]]orders] CHECK CONSTRAINT ALL",
        )
        .await?;
    }
    Ok(())
}

async fn trees_on_babelfish(mut client: Tcp) -> Outcome {
    batch(
        &mut client,
        "CREATE TABLE trees (id uniqueidentifier NOT NULL PRIMARY KEY,
            parent uniqueidentifier REFERENCES trees (id))",
    )
    .await?;
    let mut work = UnitOfWork::for_babelfish();
    let root = TreeId::generate();
    let mut parent = root;
    for _ in 0..3_000 {
        parent = work.add(Tree {
            id: TreeId::generate(),
            parent: Some(parent),
        });
    }
    let error = work
        .flush(&mut client)
        .await
        .err()
        .ok_or("there is no root")?;
    assert!(error.key().is_some() || error.code().is_some(), "{error}");
    assert_eq!(count(&mut client, "trees").await?, Some(0));
    work.add(Tree {
        id: root,
        parent: None,
    });
    assert_eq!(work.flush(&mut client).await?.rows(), 3_001);
    assert_eq!(count(&mut client, "trees").await?, Some(3_001));
    Ok(())
}

/// The server's text of each value, whichever way it came.
async fn load_is_insert(Scratch { mut client, .. }: Scratch) -> Outcome {
    batch(
        &mut client,
        "CREATE TABLE readings (id uniqueidentifier NOT NULL PRIMARY KEY, flag bit, tiny tinyint,
            small smallint NOT NULL, medium int, large bigint, real real, [double] float,
            text nvarchar(20), nothing varchar(20) DEFAULT 'x', bytes varbinary(8), digest binary(4),
            other uniqueidentifier, maybe bigint, amount decimal(18, 4), day date, at datetime2(7),
            [when] datetime2(7))",
    )
    .await?;
    let text = "SELECT (SELECT flag, tiny, small, medium, large, real, [double], text, nothing, bytes, \
                digest, other, maybe, amount, day, at, [when] FOR JSON PATH, INCLUDE_NULL_VALUES) \
                FROM readings ORDER BY tiny";
    let mut ways = Vec::new();
    for copies in [1, 20] {
        // A load has to save statements, which here are of 116 rows.
        let mut work = UnitOfWork::new();
        for _ in 0..copies {
            for number in 0..100 {
                work.add(Reading::new(number));
            }
        }
        let flushed = work.flush(&mut client).await?;
        assert_eq!(flushed.tables[0].bulk, if copies == 1 { 0 } else { 2_000 });
        let found = rows(&mut client, text).await?;
        let mut found: Vec<Option<String>> = found
            .iter()
            .map(|row| row.get::<&str, _>(0).map(str::to_owned))
            .collect();
        found.dedup();
        ways.push(found);
        batch(&mut client, "DELETE FROM readings").await?;
    }
    assert_eq!(ways[0].len(), 100);
    assert_eq!(ways[0], ways[1]);
    Ok(())
}

async fn savepoint(scratch: Scratch) -> Outcome {
    let Scratch {
        mut client,
        database,
    } = scratch;
    if database.is_babelfish() {
        batch(
            &mut client,
            "CREATE TABLE plain (id uniqueidentifier NOT NULL PRIMARY KEY)",
        )
        .await?;
        let mut work = UnitOfWork::for_babelfish();
        let id = work.add(Plain {
            id: Uuid::generate(),
        });
        twice_in_a_transaction(&mut client, work, id.to_string()).await?;
        assert_eq!(count(&mut client, "plain").await?, Some(1));
        return Ok(());
    }
    tables(&mut client).await?;
    let mut work = UnitOfWork::new();
    let id = work.add(entities::Customer {
        id: CustomerId::generate(),
        name: "Ada".to_owned(),
        note: Some("ä".to_owned()),
    });
    let error = twice_in_a_transaction(&mut client, work, id.to_string()).await?;
    assert!(error.is_unique_violation(), "{error}");
    assert_eq!(count(&mut client, "customers").await?, Some(1));
    Ok(())
}

/// Flushes a row twice in one transaction: the second time it is refused, and the first one is committed.
async fn twice_in_a_transaction<D: Flavour>(
    client: &mut Tcp,
    mut work: UnitOfWork<D>,
    key: String,
) -> Result<ordid_tiberius::Error, Box<dyn std::error::Error + Send + Sync>> {
    client.begin_transaction().await?;
    work.flush_in(client).await?;
    let error = work.flush_in(client).await.err().ok_or("a key twice")?;
    assert_eq!(error.key(), Some(&key[..]), "{error}");
    client.commit_transaction().await?;
    Ok(error)
}
