//! A server that is killed, or shut down, in the midst of a flush, and started again.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use libtest_mimic::Trial;
use ordid_harness::Server;
use ordid_sqlx::{Retry, UnitOfWork};
use ordid_tests::{
    faults::{Engine, Found, Graph, Shape, Site, pool},
    servers::Servers,
    trials::Outcome,
};
use sqlx::{MySql, Postgres, postgres::PgConnectOptions};

use crate::{on_own_server, times};

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    const ONCE: &str = "a_server_that_falls_leaves_all_rows_or_none";
    on_own_server(trials, servers, "postgres", ONCE, once::<Postgres>);
    on_own_server(trials, servers, "mariadb", ONCE, once::<MySql>);
    const RETRYING: &str = "a_server_that_falls_is_waited_for";
    on_own_server(trials, servers, "postgres", RETRYING, retrying::<Postgres>);
    on_own_server(trials, servers, "mariadb", RETRYING, retrying::<MySql>);
    on_own_server(
        trials,
        servers,
        "postgres",
        "a_session_ended_while_it_commits_is_asked_about",
        ended_while_committing,
    );
}

/// How a server falls.
#[derive(Debug, Clone, Copy)]
enum Fall {
    /// Killed with all its processes.
    Kill,
    /// Told to shut down.
    Stop,
}

/// A server of a test's own, which its flush can bring down.
#[derive(Debug, Clone)]
struct Own(Arc<Mutex<Server>>);

impl Own {
    fn with<T>(&self, run: impl FnOnce(&mut Server) -> T) -> T {
        run(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn fall(&self, fall: Fall) -> Result<(), ordid_harness::Error> {
        self.with(|server| match fall {
            Fall::Kill => server.kill(),
            Fall::Stop => server.stop(),
        })
    }
}

/// Brings the server down after so many chunks, once; and up again at once, or not.
fn falls_after<DB: Engine>(
    work: &mut UnitOfWork<DB>,
    own: &Own,
    chunks: u32,
    fall: Fall,
    comes_back: bool,
) {
    let (own, mut left) = (own.clone(), chunks);
    work.observe(move |_| {
        if left == 0 {
            return;
        }
        left -= 1;
        if left > 0 {
            return;
        }
        own.fall(fall).expect("it was running");
        if comes_back {
            let own = own.clone();
            std::thread::spawn(move || own.with(Server::restart).expect("it comes back"));
        }
    });
}

/// After which chunk, and how. Three chunks, two, and two; after the last, COMMIT is the first to
/// notice.
fn falls_of(runs: u32) -> impl Iterator<Item = (u32, (u32, Fall))> {
    (0..runs).map(|run| {
        let chunk = if run == 0 { 7 } else { 1 + run * 3 % 7 };
        (run, (chunk, [Fall::Kill, Fall::Stop][(run % 2) as usize]))
    })
}

/// One attempt, and the server comes back when it is over.
async fn once<DB: Engine>(server: Server) -> Outcome {
    let site = Site::<DB>::create(server.url().parse()?).await?;
    let own = Own(Arc::new(Mutex::new(server)));
    let mut unknown = 0;
    for (unit, (chunk, fall)) in falls_of(times(3, 50)) {
        let graph = Graph::new(unit, Shape::CHUNKS);
        let mut work = site.work(&graph, Retry::NONE);
        falls_after(&mut work, &own, chunk, fall, false);
        // Nobody is there to be asked about a lost COMMIT.
        let pool = pool::<DB>(site.options().clone(), Duration::from_secs(5));
        let outcome = work.flush(&pool).await;
        pool.close().await;
        own.with(Server::restart)?;
        let what = |error| format!("{fall:?} after chunk {chunk}: {error}");
        let found = site.judge(&graph, &work, &outcome).await.map_err(what)?;
        let error = outcome.expect_err("the server was down");
        assert_eq!(found, Found::None, "COMMIT never arrived: {error}");
        unknown += u32::from(error.is_commit_unknown());
        work.observe(|_| ());
        site.flush_again(&graph, &mut work).await.map_err(what)?;
    }
    assert!(
        unknown > 0,
        "the server fell before COMMIT and nobody noticed"
    );
    Ok(())
}

/// The server comes back while the flush is tried again.
async fn retrying<DB: Engine>(server: Server) -> Outcome {
    let site = Site::<DB>::create(server.url().parse()?).await?;
    let own = Own(Arc::new(Mutex::new(server)));
    let patient = Retry::DEFAULT
        .with_attempts(100)
        .with_delays(Duration::from_millis(20), Duration::from_millis(500));
    let mut retries = 0;
    for (unit, (chunk, fall)) in falls_of(times(3, 50)) {
        let graph = Graph::new(unit, Shape::CHUNKS);
        let mut work = site.work(&graph, patient);
        falls_after(&mut work, &own, chunk, fall, true);
        let pool = site.pool();
        let outcome = work.flush(&pool).await;
        pool.close().await;
        let what = |error| format!("{fall:?} after chunk {chunk}: {error}");
        site.judge(&graph, &work, &outcome).await.map_err(what)?;
        let flushed = outcome.map_err(|error| what(error.into()))?;
        assert!(flushed.retries > 0, "{fall:?} after chunk {chunk}");
        retries += flushed.retries;
    }
    eprintln!("{}: {retries} retries", std::any::type_name::<DB>());
    Ok(())
}

/// COMMIT waits for a standby that never comes when an administrator ends the session: the rows are
/// written, and the client is not told. It asks, and is.
async fn ended_while_committing(server: Server) -> Outcome {
    let options: PgConnectOptions = server.url().parse()?;
    let site = Site::<Postgres>::create(options.clone()).await?;
    site.execute("ALTER SYSTEM SET synchronous_commit = local")
        .await?;
    site.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        .await?;
    site.execute("SELECT pg_reload_conf()").await?;
    let graph = Graph::new(0, Shape::SMALL);
    let mut work = site.work(&graph, Retry::NONE);
    let waiting = Site::<Postgres>::open(options.options([("synchronous_commit", "on")]));
    let pool = waiting.pool();
    let end = async {
        let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE wait_event \
                   = 'SyncRep'";
        while site.numbers(end).await? == [0] {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok::<(), sqlx::Error>(())
    };
    let (outcome, ended) = tokio::join!(work.flush(&pool), end);
    ended?;
    pool.close().await;
    assert_eq!(site.judge(&graph, &work, &outcome).await?, Found::All);
    outcome?;
    Ok(())
}
