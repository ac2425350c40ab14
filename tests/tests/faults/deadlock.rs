//! Eight flushes at once that lock each other out, and eight that find a file locked.

use std::{
    sync::{Arc, Barrier},
    thread,
    time::Duration,
};

use libtest_mimic::Trial;
use ordid_tests::{
    faults::{Engine, Found, Graph, Options, Outcome, Shape, Site, pool},
    servers::Servers,
};
use sqlx::{MySql, Pool, Postgres, Sqlite};

use crate::{on_file, on_server, times};

const WRITERS: u32 = 8;

/// Inserting a row adds to the tally of its bucket, which stays locked until the end.
const POSTGRES: &str = "\
    CREATE TABLE tallies (bucket bigint PRIMARY KEY, tally bigint NOT NULL); \
    INSERT INTO tallies SELECT bucket, 0 FROM generate_series(0, 7) AS bucket; \
    CREATE FUNCTION tally(own bigint) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN \
    UPDATE tallies SET tally = tally + 1 WHERE bucket = own; RETURN true; END$$; \
    ALTER TABLE customers ADD CHECK (tally(bucket)); \
    ALTER TABLE orders ADD CHECK (tally(bucket))";

const MARIADB: &str = "\
    CREATE TABLE tallies (bucket BIGINT PRIMARY KEY, tally BIGINT NOT NULL) ENGINE=InnoDB; \
    INSERT INTO tallies SELECT seq, 0 FROM seq_0_to_7; \
    CREATE TRIGGER customers_tally AFTER INSERT ON customers FOR EACH ROW \
    UPDATE tallies SET tally = tally + 1 WHERE bucket = NEW.bucket; \
    CREATE TRIGGER orders_tally AFTER INSERT ON orders FOR EACH ROW \
    UPDATE tallies SET tally = tally + 1 WHERE bucket = NEW.bucket";

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    const NAME: &str = "eight_writers_in_a_ring_leave_all_rows_or_none";
    on_server::<Postgres, _, _>(trials, servers, "postgres", NAME, async |site| {
        site.execute(POSTGRES).await?;
        // One second by default.
        let name = site
            .options()
            .get_database()
            .unwrap_or("postgres")
            .to_owned();
        site.execute(&format!(
            "ALTER DATABASE {name} SET deadlock_timeout = '20ms'"
        ))
        .await?;
        ring(site, Shape::SMALL).await
    });
    // With `COPY`: the rows that lock are sent by it.
    on_server::<Postgres, _, _>(
        trials,
        servers,
        "postgres",
        "eight_writers_in_a_ring_that_copy_leave_all_rows_or_none",
        async |site| {
            site.execute(POSTGRES).await?;
            let name = site
                .options()
                .get_database()
                .unwrap_or("postgres")
                .to_owned();
            site.execute(&format!(
                "ALTER DATABASE {name} SET deadlock_timeout = '20ms'"
            ))
            .await?;
            ring(site, Shape::CHUNKS).await
        },
    );
    on_server::<MySql, _, _>(trials, servers, "mariadb", NAME, async |site| {
        site.execute(MARIADB).await?;
        ring(site, Shape::SMALL).await
    });
    on_file(
        trials,
        "eight_writers_of_a_file_leave_all_rows_or_none",
        busy,
    );
}

/// Each writer holds the bucket of its number and then wants its neighbour's.
async fn ring<DB: Engine>(site: Site<DB>, shape: Shape) -> Outcome {
    let mut failed = 0;
    let rounds = times(1, 20);
    for round in 0..rounds {
        let barrier = Arc::new(Barrier::new(WRITERS as usize));
        let written = together(
            &site,
            site.options(),
            round,
            |graph, writer| {
                for customer in &mut graph.customers {
                    customer.bucket = writer.into();
                }
                for order in &mut graph.orders {
                    order.bucket = ((writer + 1) % WRITERS).into();
                }
                Some(Arc::clone(&barrier))
            },
            shape,
        )?;
        failed += written.iter().sum::<u32>();
        check(&site, round, shape).await?;
    }
    // Each round is a ring, and a ring is opened by a victim.
    assert!(failed >= rounds, "no deadlock in {rounds} rounds");
    eprintln!(
        "{}: {} flushes, and {failed} more that were victims of a deadlock",
        std::any::type_name::<DB>(),
        rounds * WRITERS
    );
    Ok(())
}

/// Who wants to write waits for nobody.
async fn busy(site: Site<Sqlite>) -> Outcome {
    let options = site.options().clone().busy_timeout(Duration::ZERO);
    let rounds = times(1, 20);
    let mut failed = 0;
    for round in 0..rounds {
        let written = together(&site, &options, round, |_, _| None, Shape::CHUNKS)?;
        failed += written.iter().sum::<u32>();
        check(&site, round, Shape::CHUNKS).await?;
    }
    assert!(failed > 0, "nobody found the file locked");
    eprintln!(
        "SQLite: {} flushes, and {failed} more that found the file locked",
        rounds * WRITERS
    );
    Ok(())
}

async fn check<DB: Engine>(site: &Site<DB>, round: u32, shape: Shape) -> Outcome {
    for writer in 0..WRITERS {
        let graph = Graph::new(round * WRITERS + writer, shape);
        assert_eq!(site.look(&graph).await?, Found::All);
    }
    Ok(())
}

/// Flushes units of work of a thread each until all are written, holds each outcome against the
/// database, and returns how many failed.
fn together<DB: Engine>(
    site: &Site<DB>,
    options: &Options<DB>,
    round: u32,
    prepare: impl Fn(&mut Graph, u32) -> Option<Arc<Barrier>>,
    shape: Shape,
) -> Outcome<Vec<u32>> {
    let threads: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let mut graph = Graph::new(round * WRITERS + writer, shape);
            let barrier = prepare(&mut graph, writer);
            let pool = pool::<DB>(options.clone());
            let site = Site::<DB>::open(site.options().clone());
            thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()?;
                runtime.block_on(write(&site, &pool, &graph, barrier))
            })
        })
        .collect();
    threads
        .into_iter()
        .map(|thread| thread.join().map_err(|_| "a writer panicked")?)
        .collect()
}

async fn write<DB: Engine>(
    site: &Site<DB>,
    pool: &Pool<DB>,
    graph: &Graph,
    mut barrier: Option<Arc<Barrier>>,
) -> Outcome<u32> {
    let mut work = site.work(graph);
    let mut left = graph.customers.len();
    work.observe(move |progress| {
        left = left.saturating_sub(progress.rows);
        // All customers are written, and their bucket is locked.
        if left == 0
            && let Some(barrier) = barrier.take()
        {
            barrier.wait();
        }
    });
    let mut failed = 0;
    loop {
        let outcome = work.flush(pool).await;
        let found = site.look(graph).await?;
        match outcome {
            Ok(_) if found == Found::All => break,
            Err(error)
                if found == Found::None
                    && work.len() == graph.len()
                    && !error.is_commit_unknown()
                    && failed < 1_000 =>
            {
                failed += 1;
            }
            outcome => return Err(format!("{found:?} and {outcome:?}").into()),
        }
    }
    pool.close().await;
    Ok(failed)
}
