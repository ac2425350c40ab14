//! Runs that do not come to their end, and the next one, which has their journal.

use std::path::Path;

use libtest_mimic::Trial;
use ordid_file::FlushJournal;

use crate::{
    servers::{Client, Scratch, Servers},
    trials::{Outcome, cut_off, on_address},
};

/// An order of the next run, beside its key.
#[derive(Debug)]
pub struct Order {
    /// The number of the order.
    pub total: i64,
    /// A text that every other order has.
    pub note: Option<String>,
    /// A number that not every format keeps.
    pub weight: f64,
}

/// A connection of a library, and its units of work with a journal.
pub trait NextRun: Sized {
    /// The database.
    type Database: Scratch + Client;
    /// The library's unit of work.
    type Work;

    /// Creates the table `orders`, with the columns of [`Order`].
    const CREATE: &'static str;

    /// Connects.
    fn connect(url: &str) -> impl Future<Output = Outcome<Self>>;

    /// Makes a unit of work with a journal of orders.
    fn begin(journal: FlushJournal) -> Self::Work;

    /// Adds an order.
    fn add(work: &mut Self::Work, order: Order);

    /// Brings back what an earlier run left.
    fn resume(work: &mut Self::Work) -> Outcome<usize>;

    /// Flushes, and returns the number of rows.
    fn flush(&mut self, work: &mut Self::Work) -> impl Future<Output = Outcome<usize>>;

    /// Executes a statement.
    fn execute(&mut self, sql: &str) -> impl Future<Output = Outcome>;

    /// Returns the number that an expression is.
    fn number(&mut self, sql: &str) -> impl Future<Output = Outcome<i64>>;
}

/// Adds the tests on a server.
pub fn trials<R: NextRun + 'static>(
    servers: &Servers,
    trials: &mut Vec<Trial>,
    server: &'static str,
) {
    on_address::<R::Database, _, _>(
        trials,
        servers,
        server,
        "journal::the_next_run_sends_what_was_not_sent",
        sends_what_was_not_sent::<R>,
    );
    on_address::<R::Database, _, _>(
        trials,
        servers,
        server,
        "journal::the_next_run_writes_each_row_once_wherever_the_first_one_ended",
        writes_each_row_once::<R>,
    );
}

const ORDERS: usize = 1_200;
const RIGHT: &str = "CASE WHEN COUNT(*) = 1200 AND SUM(total) = 1200 * 1199 / 2 AND COUNT(note) = 600 \
     AND MIN(weight) = 0.1 THEN 1 ELSE 0 END FROM orders";

fn unit<R: NextRun>(path: &Path) -> Outcome<R::Work> {
    Ok(R::begin(FlushJournal::open(path)?))
}

fn filled<R: NextRun>(path: &Path) -> Outcome<R::Work> {
    let mut work = unit::<R>(path)?;
    for number in 0..ORDERS {
        let order = Order {
            total: i64::try_from(number)?,
            note: number.is_multiple_of(2).then(|| "ß".to_owned()),
            weight: 0.1,
        };
        R::add(&mut work, order);
    }
    Ok(work)
}

async fn sends_what_was_not_sent<R: NextRun>(url: String) -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("journal");
    let mut connection = R::connect(&url).await?;
    let mut work = filled::<R>(&path)?;
    let outcome = connection.flush(&mut work).await;
    let error = outcome.expect_err("there is no table yet").to_string();
    assert!(error.contains("orders"), "{error}");
    drop(work);
    connection.execute(R::CREATE).await?;
    let mut work = unit::<R>(&path)?;
    assert_eq!(R::resume(&mut work)?, ORDERS);
    connection.flush(&mut work).await?;
    assert_eq!(connection.number(RIGHT).await?, 1);
    assert_eq!(std::fs::metadata(&path)?.len(), 0, "nothing is pending");
    Ok(())
}

/// Cut off at each poll, also while it waits for the answer to COMMIT.
async fn writes_each_row_once<R: NextRun>(url: String) -> Outcome {
    let folder = tempfile::tempdir()?;
    let mut connection = R::connect(&url).await?;
    connection.execute(R::CREATE).await?;
    // How often a flush waits depends on how the answers come in.
    let (mut polls, mut cut) = (0, 0);
    for round in 0..1_000 {
        polls += 1;
        let path = folder.path().join(round.to_string());
        let mut work = filled::<R>(&path)?;
        let mut first = R::connect(&url).await?;
        let outcome = cut_off(first.flush(&mut work), polls).await;
        drop((work, first));
        if let Some(rows) = outcome {
            assert_eq!(rows?, ORDERS);
            if cut > 3 {
                return Ok(());
            }
            connection.execute("DELETE FROM orders").await?;
            polls = 0;
            continue;
        }
        cut += 1;
        let mut work = unit::<R>(&path)?;
        assert_eq!(R::resume(&mut work)?, ORDERS, "after {polls} polls");
        connection.flush(&mut work).await?;
        assert_eq!(connection.number(RIGHT).await?, 1, "after {polls} polls");
        connection.execute("DELETE FROM orders").await?;
    }
    Err("a flush never came to its end".into())
}
