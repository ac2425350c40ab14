//! Flushes that are dropped before their end, as by a timeout: what is left in the database, and what the next user of the
//! connection finds.

use ::tokio_postgres::Client;
use libtest_mimic::Trial;
use ordid::{KeyType as _, OrderedKey};
use ordid_tests::{
    servers::Servers,
    trials::{Outcome, cut_off},
};
use ordid_tokio_postgres::{EngineProfile, UnitOfWork};

use sqlx::Postgres;

use crate::{keys::Native, tokio::connect};

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    ordid_tests::address_tests!(
        trials, servers, Postgres: "postgres", "drops::";
        a_dropped_flush_leaves_nothing_open,
        a_dropped_flush_leaves_the_transaction_as_it_was,
    );
}

#[derive(OrderedKey, Clone)]
#[ordid(table = "authors")]
struct Author {
    id: Native,
    name: String,
}

#[derive(OrderedKey, Clone)]
#[ordid(table = "books")]
struct Book {
    id: Native,
    #[ordid(parent = Author)]
    author: Native,
}

const ROWS: usize = 1_505;

/// A hundred rows in a statement, so that a flush waits for many answers, also where several come at once.
const ENGINE: EngineProfile = {
    let mut engine = EngineProfile::POSTGRES;
    engine.max_rows = 100;
    engine
};

/// Five authors by a statement, and their books by `COPY`, or by fifteen statements in the user's transaction.
fn unit() -> UnitOfWork {
    let mut work = UnitOfWork::new().with_engine(ENGINE);
    for number in 0..5 {
        let author = work.add(Author {
            id: Native::generate(),
            name: number.to_string(),
        });
        for _ in 0..300 {
            work.add(Book {
                id: Native::generate(),
                author,
            });
        }
    }
    work
}

async fn create(client: &Client) -> Outcome {
    let sql = "CREATE TABLE authors (id uuid PRIMARY KEY, name text NOT NULL);
               CREATE TABLE books (id uuid PRIMARY KEY, author uuid NOT NULL REFERENCES authors);
               CREATE TABLE marks (n bigint)";
    Ok(client.batch_execute(sql).await?)
}

async fn count(client: &Client) -> Outcome<usize> {
    let sql = "SELECT (SELECT count(*) FROM authors) + (SELECT count(*) FROM books)";
    let count: i64 = client.query_one(sql, &[]).await?.try_get(0)?;
    Ok(usize::try_from(count)?)
}

/// The client is used at once, and what it writes is committed by itself.
async fn a_dropped_flush_leaves_nothing_open(url: String) -> Outcome {
    let (mut client, looks) = (connect(&url).await?, connect(&url).await?);
    create(&looks).await?;
    let (mut nothing, mut all, mut polls) = (0, 0, 0);
    // How often it waits depends on how the answers come in. The last time is at COMMIT.
    for _ in 0..1_000 {
        polls += 1;
        let mut work = unit();
        let outcome = cut_off(work.flush(&mut client), polls).await;
        client
            .execute("INSERT INTO marks VALUES ($1)", &[&1_i64])
            .await?;
        let marks = looks.execute("DELETE FROM marks", &[]).await?;
        assert_eq!(
            marks, 1,
            "others do not see what was written after {polls} polls"
        );
        let left = count(&looks).await?;
        if let Some(outcome) = outcome {
            assert_eq!((outcome?.rows(), left), (ROWS, ROWS));
            looks.batch_execute("TRUNCATE authors, books").await?;
            if all > 0 {
                break;
            }
            polls /= 2;
            continue;
        }
        assert_eq!(work.len(), ROWS, "nothing is lost");
        assert!(left == 0 || left == ROWS, "{left} rows after {polls} polls");
        nothing += usize::from(left == 0);
        all += usize::from(left == ROWS);
        // With the same keys; it asks first where it may have been committed.
        assert_eq!(work.flush(&mut client).await?.rows(), ROWS);
        assert_eq!(count(&looks).await?, ROWS);
        looks.batch_execute("TRUNCATE authors, books").await?;
    }
    assert!(
        nothing > 3 && all > 0,
        "{nothing} times nothing, {all} times all"
    );
    Ok(())
}

/// What was written before it in the transaction is committed, and all of the flush or nothing.
async fn a_dropped_flush_leaves_the_transaction_as_it_was(url: String) -> Outcome {
    let (mut client, looks) = (connect(&url).await?, connect(&url).await?);
    create(&looks).await?;
    let mut nothing = 0;
    for polls in 1.. {
        let mut work = unit();
        let mut transaction = client.transaction().await?;
        transaction
            .execute("INSERT INTO marks VALUES ($1)", &[&2_i64])
            .await?;
        let outcome = cut_off(work.flush_in(&mut transaction), polls).await;
        transaction
            .execute("INSERT INTO marks VALUES ($1)", &[&3_i64])
            .await?;
        transaction.commit().await?;
        assert_eq!(looks.execute("DELETE FROM marks", &[]).await?, 2);
        let left = count(&looks).await?;
        assert_eq!(work.len(), ROWS);
        if let Some(outcome) = outcome {
            assert_eq!((outcome?.rows(), left), (ROWS, ROWS));
            break;
        }
        assert!(left == 0 || left == ROWS, "{left} rows after {polls} polls");
        nothing += usize::from(left == 0);
        looks.batch_execute("TRUNCATE authors, books").await?;
    }
    assert!(nothing > 3, "{nothing} times nothing");
    Ok(())
}
