//! A server that is killed, or shut down, in the midst of a flush, and started again.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use libtest_mimic::Trial;
use ordid_harness::Server;
use ordid_sqlx::Retry;
use sqlx::Postgres;

use super::{
    Flusher, Found, Graph, Library, PATIENCE, Served, Shape, Site, Tally,
    kill::{at_random, goes_on, guessed_again},
    on_both, on_own_server, times,
};
use crate::{servers::Servers, trials::Outcome};

/// Adds the tests of a library.
pub fn trials<L: Library>(servers: &Servers, trials: &mut Vec<Trial>) {
    of::<L::Postgres>(servers, trials, "postgres");
    on_both(trials, |trials, server| {
        of::<L::MySql>(servers, trials, server)
    });
    on_own_server::<L::Postgres, _, _>(
        trials,
        servers,
        "postgres",
        "a_session_ended_while_it_commits_is_asked_about",
        ended_while_committing::<L::Postgres>,
    );
}

fn of<W: Flusher<Database: Served>>(
    servers: &Servers,
    trials: &mut Vec<Trial>,
    server: &'static str,
) {
    const ONCE: &str = "a_server_that_falls_leaves_all_rows_or_none";
    const RETRYING: &str = "a_server_that_falls_is_waited_for";
    const ANY_TIME: &str = "a_server_killed_at_any_time_leaves_all_rows_or_none";
    on_own_server::<W, _, _>(trials, servers, server, ANY_TIME, at_any_time::<W>);
    on_own_server::<W, _, _>(trials, servers, server, ONCE, once::<W>);
    on_own_server::<W, _, _>(trials, servers, server, RETRYING, retrying::<W>);
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
fn falls_after(work: &mut impl Flusher, own: &Own, chunks: u32, fall: Fall, comes_back: bool) {
    let (own, mut left) = (own.clone(), chunks);
    work.tell(move |_| {
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
async fn once<W: Flusher<Database: Served>>(server: Server) -> Outcome {
    let site = Site::<W::Database>::create(server.url().parse()?).await?;
    let own = Own(Arc::new(Mutex::new(server)));
    let mut unknown = 0;
    for (unit, (chunk, fall)) in falls_of(times(3, 50)) {
        let graph = Graph::new(unit, Shape::CHUNKS);
        let mut work = W::of(&graph, Retry::NONE);
        falls_after(&mut work, &own, chunk, fall, false);
        // Nobody is there to be asked about a lost COMMIT.
        let outcome = work.flush_to(site.options(), Duration::from_secs(5)).await;
        own.with(Server::restart)?;
        let what = |error| format!("{fall:?} after chunk {chunk}: {error}");
        let found = site.judge(&graph, &work, &outcome).await.map_err(what)?;
        let error = outcome.expect_err("the server was down");
        assert_eq!(found, Found::None, "COMMIT never arrived: {error}");
        unknown += u32::from(error.is_commit_unknown);
        work.tell(|_| ());
        site.flush_again(&graph, &mut work).await.map_err(what)?;
    }
    assert!(
        unknown > 0,
        "the server fell before COMMIT and nobody noticed"
    );
    Ok(())
}

/// How long a flush takes that is left alone: those of the units 0 to 2.
async fn left_alone<W: Flusher>(site: &Site<W::Database>) -> Outcome<Duration> {
    let mut times_taken = Vec::new();
    for unit in 0..3 {
        let mut work = W::of(&Graph::new(unit, Shape::CHUNKS), Retry::NONE);
        let started = Instant::now();
        work.flush_to(site.options(), PATIENCE).await?;
        times_taken.push(started.elapsed());
    }
    times_taken.sort();
    Ok(times_taken[1])
}

/// One attempt, and the server comes back at once, so that the flush can ask it about a lost COMMIT.
async fn at_any_time<W: Flusher<Database: Served>>(server: Server) -> Outcome {
    let site = Site::<W::Database>::create(server.url().parse()?).await?;
    let own = Own(Arc::new(Mutex::new(server)));
    let mut usual = left_alone::<W>(&site).await?;
    let mut tally = Tally::NONE;
    let runs = times(4, 90);
    let (mut kills, mut none) = (0, 0);
    while goes_on(kills, runs, none) {
        let unit = 3 + kills;
        let graph = Graph::new(unit, Shape::CHUNKS);
        let mut work = W::of(&graph, Retry::NONE);
        let delay = at_random(usual);
        let killed = own.clone();
        let killing = std::thread::spawn(move || {
            std::thread::sleep(delay);
            killed.fall(Fall::Kill)?;
            killed.with(Server::restart)
        });
        let outcome = work.flush_to(site.options(), PATIENCE).await;
        killing.join().map_err(|_| "the kill panicked")??;
        let what = |error| format!("unit {unit}, killed after {delay:?}: {error}");
        let found = site.judge(&graph, &work, &outcome).await.map_err(what)?;
        kills += 1;
        none += u32::from(found == Found::None);
        usual = guessed_again(usual, found);
        tally.server(&outcome, found);
        if outcome.is_err() {
            tally.flushed(1);
            site.flush_again(&graph, &mut work).await.map_err(what)?;
        }
    }
    // The others are no proof: the flush may have been over, or have found the server back.
    assert!(none >= runs.div_ceil(10), "no kill came before a COMMIT");
    tally.flushed(3);
    let rows = Graph::new(0, Shape::CHUNKS).len();
    tally.close(&site, rows * usize::try_from(3 + kills)?).await
}

/// The server comes back while the flush is tried again.
async fn retrying<W: Flusher<Database: Served>>(server: Server) -> Outcome {
    let site = Site::<W::Database>::create(server.url().parse()?).await?;
    let own = Own(Arc::new(Mutex::new(server)));
    let patient = Retry::DEFAULT
        .with_attempts(100)
        .with_delays(Duration::from_millis(20), Duration::from_millis(500));
    let mut retries = 0;
    for (unit, (chunk, fall)) in falls_of(times(3, 50)) {
        let graph = Graph::new(unit, Shape::CHUNKS);
        let mut work = W::of(&graph, patient);
        falls_after(&mut work, &own, chunk, fall, true);
        let outcome = work.flush_to(site.options(), PATIENCE).await;
        let what = |error| format!("{fall:?} after chunk {chunk}: {error}");
        site.judge(&graph, &work, &outcome).await.map_err(what)?;
        let flushed = outcome.map_err(|error| what(error.into()))?;
        assert!(flushed.retries > 0, "{fall:?} after chunk {chunk}");
        retries += flushed.retries;
    }
    eprintln!("{}: {retries} retries", std::any::type_name::<W>());
    Ok(())
}

/// COMMIT waits for a standby that never comes when an administrator ends the session: the rows are
/// written, and the client is not told. It asks, and is.
async fn ended_while_committing<W>(server: Server) -> Outcome
where
    W: Flusher<Database = Postgres>,
{
    let site = Site::<Postgres>::open(server.url().parse()?);
    site.execute("ALTER SYSTEM SET synchronous_commit = local")
        .await?;
    site.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        .await?;
    site.execute("SELECT pg_reload_conf()").await?;
    site.execute("CREATE DATABASE waiting").await?;
    let site = Site::<Postgres>::create(site.options().clone().database("waiting")).await?;
    // Nobody but the flush commits from now on.
    site.execute("ALTER DATABASE waiting SET synchronous_commit = on")
        .await?;
    let graph = Graph::new(0, Shape::SMALL);
    let mut work = W::of(&graph, Retry::NONE);
    let end = async {
        let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE wait_event \
                   = 'SyncRep'";
        while site.numbers(end).await? == [0] {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok::<(), sqlx::Error>(())
    };
    let (outcome, ended) = tokio::join!(work.flush_to(site.options(), PATIENCE), end);
    ended?;
    assert_eq!(site.judge(&graph, &work, &outcome).await?, Found::All);
    outcome?;
    Ok(())
}
