//! Eight flushes at once that lock each other out, and eight that find a file locked.

use std::{
    sync::{Arc, Barrier},
    thread,
    time::Duration,
};

use libtest_mimic::Trial;
use ordid_sqlx::Retry;
use sqlx::Sqlite;

use super::{
    Flusher, Found, Graph, Library, PATIENCE, Shape, Site, on_both, on_file, on_server, times,
};
use crate::{
    servers::{Options, Servers},
    trials::Outcome,
};

const WRITERS: u32 = 8;

/// Inserting a row adds to the tally of its bucket, which stays locked until the end. A deadlock is looked
/// for after a second by default.
const POSTGRES: &str = "\
    CREATE TABLE tallies (bucket bigint PRIMARY KEY, tally bigint NOT NULL); \
    INSERT INTO tallies SELECT bucket, 0 FROM generate_series(0, 7) AS bucket; \
    CREATE FUNCTION tally(own bigint) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN \
    UPDATE tallies SET tally = tally + 1 WHERE bucket = own; RETURN true; END$$; \
    ALTER TABLE customers ADD CHECK (tally(bucket)); \
    ALTER TABLE orders ADD CHECK (tally(bucket)); \
    DO $$BEGIN EXECUTE format('ALTER DATABASE %I SET deadlock_timeout = ''20ms''', \
    current_database()); END$$";

const MYSQL: &str = "\
    CREATE TABLE tallies (bucket BIGINT PRIMARY KEY, tally BIGINT NOT NULL) ENGINE=InnoDB; \
    INSERT INTO tallies VALUES (0, 0), (1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (6, 0), (7, 0); \
    CREATE TRIGGER customers_tally AFTER INSERT ON customers FOR EACH ROW \
    UPDATE tallies SET tally = tally + 1 WHERE bucket = NEW.bucket; \
    CREATE TRIGGER orders_tally AFTER INSERT ON orders FOR EACH ROW \
    UPDATE tallies SET tally = tally + 1 WHERE bucket = NEW.bucket";

/// Adds the tests of a library.
pub fn trials<L: Library>(servers: &Servers, trials: &mut Vec<Trial>) {
    const ONCE: &str = "eight_writers_in_a_ring_leave_all_rows_or_none";
    const RETRYING: &str = "eight_writers_in_a_ring_all_write";
    // Rows that lock are sent by `COPY` where there are many of them.
    for (name, retry, shape) in [
        (ONCE, Retry::NONE, Shape::SMALL),
        (RETRYING, Retry::DEFAULT, Shape::CHUNKS),
    ] {
        on_server::<L::Postgres, _, _>(trials, servers, "postgres", name, async move |site| {
            site.execute(POSTGRES).await?;
            ring::<L::Postgres>(site, retry, shape).await
        });
        on_both(trials, |trials, server| {
            on_server::<L::MySql, _, _>(trials, servers, server, name, async move |site| {
                site.execute(MYSQL).await?;
                ring::<L::MySql>(site, retry, shape).await
            });
        });
    }
    on_files::<L::Sqlite>(trials);
}

/// Adds those of SQLite.
pub fn on_files<W: Flusher<Database = Sqlite>>(trials: &mut Vec<Trial>) {
    on_file::<W, _, _>(
        trials,
        "eight_writers_of_a_file_leave_all_rows_or_none",
        |site| busy::<W>(site, Retry::NONE),
    );
    on_file::<W, _, _>(trials, "eight_writers_of_a_file_all_write", |site| {
        let delays = (Duration::from_millis(5), Duration::from_millis(50));
        busy::<W>(
            site,
            Retry::DEFAULT
                .with_attempts(1_000)
                .with_delays(delays.0, delays.1),
        )
    });
}

/// Each writer holds the bucket of its number and then wants its neighbour's.
async fn ring<W: Flusher>(site: Site<W::Database>, retry: Retry, shape: Shape) -> Outcome {
    let rounds = times(1, 20);
    let mut victims = Victims::default();
    for round in 0..rounds {
        let barrier = Arc::new(Barrier::new(WRITERS as usize));
        let writers = (0..WRITERS).map(|writer| {
            let mut graph = Graph::new(round * WRITERS + writer, shape);
            for customer in &mut graph.customers {
                customer.bucket = writer.into();
            }
            for order in &mut graph.orders {
                order.bucket = ((writer + 1) % WRITERS).into();
            }
            Writer::<W> {
                site: Site::open(site.options().clone()),
                options: site.options().clone(),
                graph,
                barrier: Some(Arc::clone(&barrier)),
                retry,
            }
        });
        victims.add(together(writers)?);
    }
    victims.check::<W>(rounds, retry)
}

/// Who finds the file locked waits for nobody.
async fn busy<W>(site: Site<Sqlite>, retry: Retry) -> Outcome
where
    W: Flusher<Database = Sqlite>,
{
    let rounds = times(1, 20);
    let mut victims = Victims::default();
    for round in 0..rounds {
        let writers = (0..WRITERS).map(|writer| Writer::<W> {
            site: Site::open(site.options().clone()),
            options: site.options().clone().busy_timeout(Duration::ZERO),
            graph: Graph::new(round * WRITERS + writer, Shape::CHUNKS),
            barrier: None,
            retry,
        });
        victims.add(together(writers)?);
    }
    victims.check::<W>(rounds, retry)
}

/// How often flushes failed, and how often one was begun anew.
#[derive(Debug, Default)]
struct Victims {
    failures: u32,
    retries: u32,
}

impl Victims {
    fn add(&mut self, other: Self) {
        self.failures += other.failures;
        self.retries += other.retries;
    }

    /// Each round has at least one, or there was nothing to see; and retries spare the caller all of
    /// them.
    fn check<W>(self, rounds: u32, retry: Retry) -> Outcome {
        let of = std::any::type_name::<W>();
        let flushes = rounds * WRITERS;
        eprintln!("{of}: {flushes} flushes of eight writers at once: {self:?}");
        let seen = if retry == Retry::NONE {
            self.failures
        } else {
            assert_eq!(self.failures, 0);
            self.retries
        };
        assert!(seen >= rounds, "nobody was in another's way");
        Ok(())
    }
}

struct Writer<W: Flusher> {
    site: Site<W::Database>,
    options: Options<W::Database>,
    graph: Graph,
    /// Where all wait for each other, once, after their customers are written.
    barrier: Option<Arc<Barrier>>,
    retry: Retry,
}

/// Lets each write on a thread of its own.
fn together<W: Flusher>(writers: impl Iterator<Item = Writer<W>>) -> Outcome<Victims> {
    let threads: Vec<_> = writers
        .map(|writer| {
            thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()?;
                runtime.block_on(writer.write())
            })
        })
        .collect();
    let mut victims = Victims::default();
    for thread in threads {
        victims.add(thread.join().map_err(|_| "a writer panicked")??);
    }
    Ok(victims)
}

impl<W: Flusher> Writer<W> {
    /// Flushes until all rows are written, and holds each outcome against the database.
    async fn write(self) -> Outcome<Victims> {
        let Self {
            site,
            options,
            graph,
            mut barrier,
            retry,
        } = self;
        let mut work = W::of(&graph, retry);
        let customers = graph.customers.len();
        work.tell(move |progress| {
            // Their bucket is locked.
            if progress.done == customers
                && let Some(barrier) = barrier.take()
            {
                barrier.wait();
            }
        });
        let mut victims = Victims::default();
        loop {
            let outcome = work.flush_to(&options, PATIENCE).await;
            let found = site.look(&graph).await?;
            match outcome {
                Ok(flushed) if found == Found::All => {
                    victims.retries += flushed.retries;
                    break;
                }
                Err(error)
                    if found == Found::None
                        && work.held() == graph.len()
                        && error.is_transient
                        && victims.failures < 10_000 =>
                {
                    victims.failures += 1;
                }
                outcome => return Err(format!("{found:?} and {outcome:?}").into()),
            }
        }
        Ok(victims)
    }
}
