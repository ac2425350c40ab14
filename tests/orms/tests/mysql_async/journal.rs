//! Runs that do not come to their end, and the next one, which has their journal.

use std::{future::poll_fn, path::Path, pin::pin, task::Poll};

use libtest_mimic::Trial;
use ordid::{KeyType as _, OrderedKey};
use ordid_file::FlushJournal;
use ordid_mysql_async::{Journaled, UnitOfWork};
use ordid_tests::{servers::Servers, trials::Outcome};
use serde::{Deserialize, Serialize};

use sqlx::MySql;

use crate::{connect, execute, keys::Native, number};

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>, server: &'static str) {
    ordid_tests::address_tests!(
        trials, servers, MySql: server, "journal::";
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
    weight: f64,
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
            weight: 0.1,
        });
    }
    Ok(work)
}

const CREATE: &str = "CREATE TABLE orders (id BINARY(16) NOT NULL PRIMARY KEY, total BIGINT NOT NULL, note TEXT, \
     weight DOUBLE NOT NULL)";
const RIGHT: &str = "COUNT(*) = 1200 AND SUM(total) = 1200 * 1199 / 2 AND COUNT(note) = 600 AND MIN(weight) = 0.1 FROM orders";

async fn the_next_run_sends_what_was_not_sent(url: String) -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("journal");
    let mut conn = connect(&url).await?;
    let mut work = filled(&path)?;
    let error = work.flush_on(&mut conn).await.expect_err("no table yet");
    assert!(error.to_string().contains("orders"), "{error}");
    drop(work);
    execute(&mut conn, &[CREATE]).await?;
    let mut work = unit(&path)?;
    assert_eq!(work.resume()?, ORDERS);
    work.flush_on(&mut conn).await?;
    assert_eq!(number(&mut conn, RIGHT).await?, 1);
    assert_eq!(std::fs::metadata(&path)?.len(), 0, "nothing is pending");
    Ok(())
}

/// Cut off at each poll, also while it waits for the answer to COMMIT.
async fn the_next_run_writes_each_row_once_wherever_the_first_one_ended(url: String) -> Outcome {
    let folder = tempfile::tempdir()?;
    let mut conn = connect(&url).await?;
    execute(&mut conn, &[CREATE]).await?;
    // How often a flush waits depends on how the answers come in.
    let (mut polls, mut cut) = (0, 0);
    for round in 0..1_000 {
        polls += 1;
        let path = folder.path().join(round.to_string());
        let mut work = filled(&path)?;
        let mut first = connect(&url).await?;
        let has_ended = {
            let mut flush = pin!(work.flush_on(&mut first));
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
            if cut > 3 {
                return Ok(());
            }
            execute(&mut conn, &["DELETE FROM orders"]).await?;
            polls = 0;
            continue;
        }
        cut += 1;
        let mut work = unit(&path)?;
        assert_eq!(work.resume()?, ORDERS, "after {polls} polls");
        work.flush_on(&mut conn).await?;
        assert_eq!(number(&mut conn, RIGHT).await?, 1, "after {polls} polls");
        execute(&mut conn, &["DELETE FROM orders"]).await?;
    }
    Err("a flush never came to its end".into())
}
