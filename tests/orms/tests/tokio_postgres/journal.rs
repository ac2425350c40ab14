//! Runs that do not come to their end, and the next one, which has their journal.

use std::{future::poll_fn, path::Path, pin::pin, task::Poll};

use libtest_mimic::Trial;
use ordid::{KeyType as _, OrderedKey};
use ordid_file::FlushJournal;
use ordid_tests::{servers::Servers, trials::Outcome};
use ordid_tokio_postgres::{Journaled, UnitOfWork};
use serde::{Deserialize, Serialize};

use sqlx::Postgres;

use crate::{is_so, keys::Native, tokio::connect};

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    ordid_tests::address_tests!(
        trials, servers, Postgres: "postgres", "journal::";
        the_next_run_sends_what_was_not_sent,
        the_next_run_writes_each_row_once_wherever_the_first_one_ended,
    );
}

#[derive(OrderedKey, Serialize, Deserialize)]
#[ordid(table = "orders")]
struct Order {
    id: Native,
    total: i64,
    note: Option<String>,
}

fn unit(path: &Path) -> Outcome<UnitOfWork> {
    let journal = FlushJournal::open(path)?;
    Ok(UnitOfWork::new().with_journal(Journaled::new(journal).row::<Order>()))
}

const ORDERS: usize = 1_200;

fn filled(path: &Path) -> Outcome<UnitOfWork> {
    let mut work = unit(path)?;
    for number in 0..ORDERS {
        work.add(Order {
            id: Native::generate(),
            total: i64::try_from(number)?,
            note: number.is_multiple_of(2).then(|| "ß".to_owned()),
        });
    }
    Ok(work)
}

const CREATE: &str = "CREATE TABLE orders (id uuid PRIMARY KEY, total bigint NOT NULL, note text)";
const RIGHT: &str =
    "(SELECT count(*) = 1200 AND sum(total) = 1200 * 1199 / 2 AND count(note) = 600 FROM orders)";

async fn the_next_run_sends_what_was_not_sent(url: String) -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("journal");
    let mut client = connect(&url).await?;
    let mut work = filled(&path)?;
    work.flush(&mut client)
        .await
        .expect_err("there is no table yet");
    drop(work);
    client.batch_execute(CREATE).await?;
    let mut work = unit(&path)?;
    assert_eq!(work.resume()?, ORDERS);
    work.flush(&mut client).await?;
    assert!(is_so(&client, RIGHT).await?);
    assert_eq!(std::fs::metadata(&path)?.len(), 0, "nothing is pending");
    Ok(())
}

/// Cut off at each poll, also while it waits for the answer to COMMIT.
async fn the_next_run_writes_each_row_once_wherever_the_first_one_ended(url: String) -> Outcome {
    let folder = tempfile::tempdir()?;
    let mut client = connect(&url).await?;
    client.batch_execute(CREATE).await?;
    for polls in 1.. {
        let path = folder.path().join(polls.to_string());
        let mut work = filled(&path)?;
        let mut first = connect(&url).await?;
        let has_ended = {
            let mut flush = pin!(work.flush(&mut first));
            let mut left = polls;
            poll_fn(|context| {
                left -= 1;
                match flush.as_mut().poll(context) {
                    Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
                    Poll::Pending if left > 0 => Poll::Pending,
                    Poll::Pending => Poll::Ready(None),
                }
            })
            .await
        };
        drop((work, first));
        if let Some(outcome) = has_ended {
            assert_eq!(outcome?.rows(), ORDERS);
            assert!(polls > 3);
            return Ok(());
        }
        let mut work = unit(&path)?;
        assert_eq!(work.resume()?, ORDERS, "after {polls} polls");
        work.flush(&mut client).await?;
        assert!(is_so(&client, RIGHT).await?, "after {polls} polls");
        client.batch_execute("TRUNCATE orders").await?;
    }
    Ok(())
}
