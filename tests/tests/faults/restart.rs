//! A server that is killed, or shut down, in the midst of a flush, and started again.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use libtest_mimic::Trial;
use ordid_harness::Server;
use ordid_sqlx::UnitOfWork;
use ordid_tests::{
    faults::{Engine, Found, Graph, Outcome, Shape, Site},
    servers::Servers,
};
use sqlx::{MySql, Postgres, postgres::PgConnectOptions};

use crate::{on_own_server, times};

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    const NAME: &str = "a_server_that_falls_leaves_all_rows_or_none";
    on_own_server(trials, servers, "postgres", NAME, falls::<Postgres>);
    on_own_server(trials, servers, "mariadb", NAME, falls::<MySql>);
    on_own_server(
        trials,
        servers,
        "postgres",
        "a_session_ended_while_it_commits_leaves_the_outcome_open",
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

/// Brings the server down after so many chunks.
fn falls_after<DB: Engine>(work: &mut UnitOfWork<DB>, own: &Own, chunks: u32, fall: Fall) {
    let (own, mut left) = (own.clone(), chunks);
    work.observe(move |_| {
        left = left.wrapping_sub(1);
        if left == 0 {
            own.fall(fall).expect("it was running");
        }
    });
}

async fn falls<DB: Engine>(server: Server) -> Outcome {
    let site = Site::<DB>::create(server.url().parse()?).await?;
    let own = Own(Arc::new(Mutex::new(server)));
    // Three chunks, two, and two; and one more for COMMIT, which is then the first to notice.
    let chunks = 7;
    let faults: Vec<(u32, Fall)> = (0..times(3, 50))
        .map(|run| {
            let chunk = if run == 0 {
                chunks
            } else {
                1 + run * 3 % chunks
            };
            (chunk, [Fall::Kill, Fall::Stop][(run % 2) as usize])
        })
        .collect();
    let mut unknown = 0;
    for (unit, (chunk, fall)) in (0..).zip(faults) {
        let graph = Graph::new(unit, Shape::CHUNKS);
        let mut work = site.work(&graph);
        falls_after(&mut work, &own, chunk, fall);
        let pool = site.pool();
        let outcome = work.flush(&pool).await;
        pool.close().await;
        own.with(Server::restart)?;
        let what = |error| format!("{fall:?} after chunk {chunk}: {error}");
        let found = site.judge(&graph, &work, &outcome).await.map_err(what)?;
        let error = outcome.expect_err("the server was down");
        assert_eq!(found, Found::None, "COMMIT never arrived: {error}");
        unknown += u32::from(error.is_commit_unknown());
        work.observe(|_| ());
        let again = site.flush_again(&graph, &mut work, found).await;
        again.map_err(what)?;
    }
    assert!(
        unknown > 0,
        "the server fell before COMMIT and nobody noticed"
    );
    Ok(())
}

/// COMMIT waits for a standby that never comes when an administrator ends the session. The server
/// says so by an error, though the rows are written: not every answer to COMMIT says what became of
/// it.
async fn ended_while_committing(server: Server) -> Outcome {
    let options: PgConnectOptions = server.url().parse()?;
    let site = Site::<Postgres>::create(options.clone()).await?;
    site.execute("ALTER SYSTEM SET synchronous_commit = local")
        .await?;
    site.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        .await?;
    site.execute("SELECT pg_reload_conf()").await?;
    let graph = Graph::new(0, Shape::SMALL);
    let mut work = site.work(&graph);
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
    eprintln!("{outcome:?}");
    assert!(outcome.is_err());
    assert_eq!(site.judge(&graph, &work, &outcome).await?, Found::All);
    site.flush_again(&graph, &mut work, Found::All).await
}
