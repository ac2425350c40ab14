//! A standby that lags behind its primary. After a lost COMMIT a router sends the client there, where rows that are
//! committed are not seen yet, and nothing can be written; or it sends only its queries there, as Pgpool-II does.

use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use ordid_harness::{Policy, Server};
use ordid_sqlx::Retry;
use sqlx::Postgres;

use super::{
    Changes, Flusher, Found, Graph, Library, PATIENCE, Remote as _, Shape, Site, cut::EAGER,
    on_own_server, times,
};
use crate::{
    proxy::{At, Fault, Proxy},
    servers::{Options, Servers},
    trials::{Outcome, ignored, run},
};

/// All of the packet of a COMMIT: the primary has it, and its answer does not arrive.
const ANSWER: Fault = Fault::Cut(At::Commit(12));
/// The primary does not get it, and rolls back.
const COMMIT: Fault = Fault::Cut(At::Commit(0));

/// Adds the tests of a library.
pub fn trials<L: Library>(servers: &Servers, trials: &mut Vec<Trial>) {
    on_own_server::<L::Postgres, _, _>(
        trials,
        servers,
        "postgres",
        "standby::a_lost_commit_that_a_standby_does_not_show_is_unknown",
        lags::<L::Postgres>,
    );
    let name = format!(
        "postgres::{}standby::a_router_that_reads_from_a_standby_hides_no_lost_commit",
        L::Postgres::PREFIX
    );
    let reason = match ordid_harness::policy("pgpool") {
        Ok(Policy::Skip(reason)) => Some(reason),
        _ => servers.url("postgres").err().or_else(|| {
            let missing = ordid_harness::installed("pgpool").err();
            missing.map(|error| error.to_string())
        }),
    };
    trials.push(match reason {
        Some(reason) => ignored(name, reason),
        None => Trial::test(name, || {
            run(async || reads_elsewhere::<L::Postgres>(ordid_harness::start("postgres")?).await)
        }),
    });
}

/// A primary, and a standby that repeats only what it is told to.
struct Pair {
    primary: Site<Postgres>,
    standby: Site<Postgres>,
    /// Stops it when it is dropped.
    server: Server,
}

impl Pair {
    async fn start(primary: &Server) -> Outcome<Self> {
        let site = Site::<Postgres>::create(primary.url().parse()?).await?;
        let standby = ordid_harness::postgres_standby(primary)?;
        Ok(Self {
            primary: site,
            standby: Site::open(standby.url().parse()?),
            server: standby,
        })
    }

    /// A proxy whose first connection goes to the primary, and all others to the standby.
    async fn proxy(&self, fault: Fault) -> Outcome<Proxy> {
        let [primary, standby] = [&self.primary, &self.standby];
        let mut addresses = vec![Postgres::address(standby.options())?; 64];
        addresses[0] = Postgres::address(primary.options())?;
        let proxy = Proxy::over(addresses).await?;
        proxy.plan([fault]);
        Ok(proxy)
    }

    /// The standby shows all that is committed now, and nothing that will be.
    async fn pause(&self) -> Outcome {
        self.catch_up().await?;
        self.standby.execute("SELECT pg_wal_replay_pause()").await?;
        let paused = "SELECT (pg_get_wal_replay_pause_state() = 'paused')::int::int8";
        wait(&self.standby, paused).await
    }

    async fn catch_up(&self) -> Outcome {
        let resume = "SELECT pg_wal_replay_resume() WHERE pg_is_wal_replay_paused()";
        self.standby.execute(resume).await?;
        let end = "SELECT (pg_current_wal_lsn() - '0/0')::int8";
        let end = self.primary.numbers(end).await?[0];
        let reached = format!("SELECT (pg_last_wal_replay_lsn() - '0/0' >= {end})::int::int8");
        wait(&self.standby, &reached).await
    }
}

/// Returns when a query finds 1.
async fn wait(site: &Site<Postgres>, query: &str) -> Outcome {
    let deadline = Instant::now() + PATIENCE;
    while site.numbers(query).await? != [1] {
        if Instant::now() > deadline {
            return Err(format!("still not: {query}").into());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

async fn lags<W: Flusher<Database = Postgres>>(server: Server) -> Outcome {
    let pair = Pair::start(&server).await?;
    let unit_of_changes = 16;
    for unit in 0..times(8, unit_of_changes) {
        let is = |bit: u32| unit >> bit & 1 == 1;
        let case = Case {
            retry: if is(0) { EAGER } else { Retry::NONE },
            fault: if is(1) { COMMIT } else { ANSWER },
            catches_up: is(2),
            has_marker: is(0) ^ is(1) ^ is(3),
        };
        let outcome = inserts::<W>(&pair, unit, case).await;
        outcome.map_err(|error| format!("{case:?}: {error}"))?;
    }
    for (number, fault) in (unit_of_changes..).zip([ANSWER, COMMIT]) {
        let outcome = changes::<W>(&pair, number, fault).await;
        outcome.map_err(|error| format!("changes, {fault:?}: {error}"))?;
    }
    refuses::<W>(&pair).await
}

/// The router sends what only reads to the standby, so that no question after a lost COMMIT shows the rows; and what writes
/// to the primary, which refuses them a second time.
async fn reads_elsewhere<W: Flusher<Database = Postgres>>(server: Server) -> Outcome {
    let pair = Pair::start(&server).await?;
    let router = ordid_harness::pgpool(&server, &pair.server)?;
    let routed = Postgres::through(pair.primary.options(), router.port());
    let reads = "SELECT pg_is_in_recovery()::int::int8";
    assert_eq!(
        Site::<Postgres>::open(routed.clone())
            .numbers(reads)
            .await?,
        [1]
    );
    for unit in 0..times(4, 8) {
        let fault = if unit & 1 == 0 { ANSWER } else { COMMIT };
        let outcome = behind_router::<W>(&pair, &routed, unit, fault).await;
        outcome.map_err(|error| format!("{unit}, {fault:?}: {error}"))?;
    }
    Ok(())
}

async fn behind_router<W: Flusher<Database = Postgres>>(
    pair: &Pair,
    router: &Options<Postgres>,
    unit: u32,
    fault: Fault,
) -> Outcome {
    pair.pause().await?;
    let graph = Graph::new(unit, Shape::SMALL);
    let mut work = W::begin(EAGER);
    if unit & 2 == 0 {
        work = work.with_marker();
    }
    work.add_graph(&graph);
    let proxy = Proxy::start(Postgres::address(router)?).await?;
    proxy.plan([fault]);
    let through = Postgres::through(router, proxy.port());
    // In the flush that loses the COMMIT, and in the next one.
    for _ in 0..2 {
        let outcome = work.flush_to(&through, PATIENCE).await;
        pair.primary.judge(&graph, &work, &outcome).await?;
        match outcome {
            Ok(_) => return Ok(()),
            Err(error) if error.is_commit_unknown => {}
            Err(error) => return Err(format!("it is not unknown: {error}").into()),
        }
    }
    pair.catch_up().await?;
    pair.primary.flush_again(&graph, &mut work).await
}

#[derive(Debug, Clone, Copy)]
struct Case {
    retry: Retry,
    fault: Fault,
    /// Whether the standby shows the rows in the end.
    catches_up: bool,
    has_marker: bool,
}

async fn inserts<W: Flusher<Database = Postgres>>(pair: &Pair, unit: u32, case: Case) -> Outcome {
    pair.pause().await?;
    let graph = Graph::new(unit, Shape::SMALL);
    let mut work = W::begin(case.retry);
    if case.has_marker {
        work = work.with_marker();
    }
    work.add_graph(&graph);
    let proxy = pair.proxy(case.fault).await?;
    let routed = Postgres::through(pair.primary.options(), proxy.port());
    let written = match case.fault {
        ANSWER => Found::All,
        _ => Found::None,
    };
    // In the flush that loses the COMMIT, and in the next one.
    for _ in 0..2 {
        let outcome = work.flush_to(&routed, PATIENCE).await;
        assert_eq!(pair.primary.judge(&graph, &work, &outcome).await?, written);
        let error = outcome.expect_err("the standby does not show the rows, nor take them");
        if !error.is_commit_unknown {
            return Err(format!("what is {written:?} is not unknown: {error}").into());
        }
    }
    if case.catches_up {
        pair.catch_up().await?;
        let outcome = work.flush_to(&routed, PATIENCE).await;
        assert_eq!(pair.primary.judge(&graph, &work, &outcome).await?, written);
        if written == Found::All {
            outcome?;
            return Ok(());
        }
        let error = outcome.expect_err("the standby takes no rows");
        assert!(error.is_commit_unknown, "{error}");
    }
    // The router sends its clients to the primary again.
    pair.primary.flush_again(&graph, &mut work).await
}

async fn changes<W: Flusher<Database = Postgres>>(
    pair: &Pair,
    number: u32,
    fault: Fault,
) -> Outcome {
    let changes = Changes::prepare::<W>(&pair.primary, number).await?;
    pair.pause().await?;
    let mut work: W = changes.work(EAGER);
    let proxy = pair.proxy(fault).await?;
    let routed = Postgres::through(pair.primary.options(), proxy.port());
    for _ in 0..2 {
        let outcome = work.flush_to(&routed, PATIENCE).await;
        let error = outcome.expect_err("the standby does not show the changes, nor take them");
        if !error.is_commit_unknown {
            return Err(format!("it is not unknown: {error}").into());
        }
        changes.look(&pair.primary).await?;
    }
    work.flush_to(pair.primary.options(), PATIENCE).await?;
    match changes.look(&pair.primary).await? {
        Found::All => Ok(()),
        Found::None => Err("flushed again, and nothing is changed".into()),
    }
}

/// Where no COMMIT was lost, a standby leaves nothing in doubt.
async fn refuses<W: Flusher<Database = Postgres>>(pair: &Pair) -> Outcome {
    pair.catch_up().await?;
    let graph = Graph::new(100, Shape::SMALL);
    let mut work = W::of(&graph, EAGER);
    let outcome = work.flush_to(pair.standby.options(), PATIENCE).await;
    assert_eq!(
        pair.primary.judge(&graph, &work, &outcome).await?,
        Found::None
    );
    let error = outcome.expect_err("a standby takes no rows");
    assert!(!error.is_commit_unknown, "{error}");
    pair.primary.flush_again(&graph, &mut work).await
}
