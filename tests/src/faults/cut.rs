//! A network that breaks: a proxy ends the conversation of a flush after N bytes, N swept through
//! all of it.

use std::time::Duration;

use libtest_mimic::Trial;
use ordid_sqlx::Retry;

use super::{
    Failed, Flusher, Found, Graph, Library, PATIENCE, Remote, Served, Shape, Site, on_both,
    on_server, times,
};
use crate::{
    proxy::{At, Fault, Proxy, Traffic},
    servers::Servers,
    trials::Outcome,
};

/// Adds the tests of a library.
pub fn trials<L: Library>(servers: &Servers, trials: &mut Vec<Trial>) {
    of::<L::Postgres>(servers, trials, "postgres");
    on_both(trials, |trials, server| {
        of::<L::MySql>(servers, trials, server)
    });
}

fn of<W: Flusher<Database: Served>>(
    servers: &Servers,
    trials: &mut Vec<Trial>,
    server: &'static str,
) {
    on_server::<W, _, _>(
        trials,
        servers,
        server,
        "a_connection_cut_anywhere_leaves_all_rows_or_none",
        once::<W>,
    );
    on_server::<W, _, _>(
        trials,
        servers,
        server,
        "a_connection_cut_anywhere_is_made_again",
        retrying::<W>,
    );
    on_server::<W, _, _>(
        trials,
        servers,
        server,
        "connections_that_are_always_cut_end_in_an_error",
        always::<W>,
    );
    on_server::<W, _, _>(
        trials,
        servers,
        server,
        "updates_and_deletes_that_are_cut_anywhere_are_made_once",
        changes::<W>,
    );
}

/// Retries that do not wait long.
pub const EAGER: Retry =
    Retry::DEFAULT.with_delays(Duration::from_millis(2), Duration::from_millis(50));

/// A flush over a proxy that does nothing, to learn what is said.
async fn learn<W: Flusher<Database: Served>>(
    site: &Site<W::Database>,
    proxy: &Proxy,
) -> Outcome<Conversation> {
    let graph = Graph::new(0, Shape::CHUNKS);
    let mut work = W::of(&graph, Retry::NONE);
    let through = through(site, proxy);
    let outcome = work.flush_to(through.options(), PATIENCE).await;
    site.judge(&graph, &work, &outcome).await?;
    let found: Vec<usize> = outcome?.tables.iter().map(|it| it.bulk).collect();
    if let Some(bulk) = W::BULK {
        assert_eq!(found, bulk);
    }
    Conversation::of(proxy.last_traffic())
}

/// The same database, over the proxy.
pub fn through<DB: Remote>(site: &Site<DB>, proxy: &Proxy) -> Site<DB> {
    Site::open(DB::through(site.options(), proxy.port()))
}

/// What is said in a flush, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Conversation {
    /// The client's, before COMMIT.
    pub before_commit: u64,
    /// COMMIT's.
    pub commit: u64,
    /// The server's, before COMMIT is sent.
    pub answered: u64,
    /// And with the answer to it, at least.
    pub down: u64,
}

impl Conversation {
    /// Reads it off what has passed.
    ///
    /// # Errors
    ///
    /// If there was no COMMIT.
    ///
    /// # Panics
    ///
    /// If there was no answer to it.
    pub fn of(traffic: Traffic) -> Outcome<Self> {
        let (before_commit, answered) = traffic.commit.ok_or("no COMMIT was seen")?;
        let conversation = Self {
            before_commit,
            commit: traffic.commit_end - before_commit,
            answered,
            down: traffic.down,
        };
        assert!(conversation.commit > 5 && conversation.down > answered);
        Ok(conversation)
    }

    /// Faults all over the conversation, and around the bytes of COMMIT and of its answer: around each
    /// byte where there are many.
    fn faults(&self, count: u32) -> Vec<Fault> {
        let step = if count > 50 { 1 } else { 4 };
        let spread = move |end: u64, count: u32| {
            (0..u64::from(count)).map(move |number| number * end / u64::from(count))
        };
        let (commit, down) = (self.commit, self.down);
        let around_answer = self.answered..=down;
        spread(self.before_commit, count)
            .map(At::Up)
            .chain((0..commit - 1).step_by(step).map(At::Commit))
            .chain([commit - 1, commit].map(At::Commit))
            .map(Fault::Cut)
            .chain(
                spread(down, count / 2)
                    .chain(around_answer.clone().step_by(step))
                    .map(|bytes| Fault::Cut(At::Down(bytes))),
            )
            .chain(
                spread(down, count / 8)
                    .chain(around_answer.step_by(5 * step))
                    .map(Fault::Swallow),
            )
            .collect()
    }
}

/// One attempt: an error, or rows that were found by the question that follows a lost COMMIT.
async fn once<W: Flusher<Database: Served>>(site: Site<W::Database>) -> Outcome {
    let proxy = Proxy::start(W::Database::address(site.options())?).await?;
    let conversation = learn::<W>(&site, &proxy).await?;
    let through = through(&site, &proxy);
    let (mut told, mut unknown, mut found_out) = (0, 0, 0);
    for (unit, fault) in (1..).zip(conversation.faults(times(6, 400))) {
        let graph = Graph::new(unit, Shape::CHUNKS);
        let mut work = W::of(&graph, Retry::NONE);
        let first = proxy.traffic().len();
        proxy.plan([fault]);
        let outcome = work.flush_to(through.options(), PATIENCE).await;
        let what = |error| format!("{fault:?} of {conversation:?}: {error}");
        let found = site.judge(&graph, &work, &outcome).await.map_err(what)?;
        // All rows must be there if the server has got COMMIT before the fault.
        if (found == Found::All) != proxy.traffic()[first].commits {
            return Err(what(format!("{found:?} after {outcome:?}").into()).into());
        }
        match &outcome {
            Ok(_) => {
                found_out += 1;
                continue;
            }
            Err(error) if error.is_commit_unknown => unknown += 1,
            Err(_) => told += 1,
        }
        site.flush_again(&graph, &mut work).await.map_err(what)?;
    }
    eprintln!(
        "{} cut: {told} before COMMIT, {unknown} in doubt, {found_out} written and found",
        std::any::type_name::<W>()
    );
    assert!(told > 5 && unknown > 1 && found_out > 1);
    Ok(())
}

/// The same faults, of the first connection or of the first two: all rows, once.
async fn retrying<W: Flusher<Database: Served>>(site: Site<W::Database>) -> Outcome {
    let proxy = Proxy::start(W::Database::address(site.options())?).await?;
    let conversation = learn::<W>(&site, &proxy).await?;
    let through = through(&site, &proxy);
    let (mut cut, mut retries) = (0, 0);
    for (unit, fault) in (1..).zip(conversation.faults(times(4, 400))) {
        let graph = Graph::new(unit, Shape::CHUNKS);
        let mut work = W::of(&graph, EAGER);
        let connections = 1 + unit as usize % 2;
        let first = proxy.traffic().len();
        proxy.plan(vec![fault; connections]);
        let outcome = work.flush_to(through.options(), PATIENCE).await;
        let what = |error| format!("{fault:?} of {connections}, {conversation:?}: {error}");
        site.judge(&graph, &work, &outcome).await.map_err(what)?;
        let flushed = outcome.map_err(|error| what(error.into()))?;
        cut += 1;
        retries += flushed.retries;
        if flushed.retries == 0 && !proxy.traffic()[first].commits {
            return Err(what("there was no retry".into()).into());
        }
    }
    eprintln!(
        "{}: {cut} flushes that were cut are written, by {retries} retries",
        std::any::type_name::<W>()
    );
    Ok(())
}

/// No connection comes through: an error in the end, which says what is known.
async fn always<W: Flusher<Database: Served>>(site: Site<W::Database>) -> Outcome {
    let proxy = Proxy::start(W::Database::address(site.options())?).await?;
    let conversation = learn::<W>(&site, &proxy).await?;
    let through = through(&site, &proxy);
    // While the connection is made, among the rows, before COMMIT.
    let (up, down) = (conversation.before_commit, conversation.answered);
    for (unit, fault) in (1..).zip([
        Fault::Cut(At::Up(0)),
        Fault::Cut(At::Down(20)),
        Fault::Cut(At::Up(up / 2)),
        Fault::Cut(At::Down(down / 2)),
        Fault::Cut(At::Commit(0)),
    ]) {
        let graph = Graph::new(unit, Shape::CHUNKS);
        let mut work = W::of(&graph, EAGER);
        proxy.always(fault);
        let outcome = work.flush_to(through.options(), PATIENCE).await;
        let what = |error| format!("{fault:?} of {conversation:?}: {error}");
        site.judge(&graph, &work, &outcome).await.map_err(what)?;
        let error = outcome.expect_err("no connection comes through");
        assert_eq!(error.retries, 4, "{error}");
        assert!(error.is_connection_lost, "{error}");
        assert!(error.to_string().ends_with("(tried 5 times)"), "{error}");
        site.flush_again(&graph, &mut work).await.map_err(what)?;
    }
    Ok(())
}

/// A unit of work that inserts, updates and deletes, and has a row of its own to be known by.
async fn changes<W: Flusher<Database: Served>>(site: Site<W::Database>) -> Outcome {
    let proxy = Proxy::start(W::Database::address(site.options())?).await?;
    // The first one, to learn what is said.
    changes_once::<W>(&site, &proxy, 0, Fault::None).await?;
    let conversation = Conversation::of(proxy.last_traffic())?;
    let (mut told, mut unknown, mut found_out, mut retries) = (0, 0, 0, 0);
    for (number, fault) in (1..).zip(conversation.faults(times(4, 200))) {
        let what = |error| format!("{fault:?} of {conversation:?}: {error}");
        let once = changes_once::<W>(&site, &proxy, 4 * number, fault).await;
        match once.map_err(what)? {
            None => found_out += 1,
            Some(error) if error.is_commit_unknown => unknown += 1,
            Some(_) => told += 1,
        }
        let retrying = changes_retrying::<W>(&site, &proxy, 4 * number + 2, fault).await;
        retries += retrying.map_err(what)?;
    }
    eprintln!(
        "{}: {told} changes cut before COMMIT, {unknown} in doubt, {found_out} written and found; \
         and as many written by {retries} retries",
        std::any::type_name::<W>()
    );
    assert!(told > 5 && unknown > 1 && found_out > 1 && retries > told);
    Ok(())
}

/// Writes rows to be changed.
async fn old<W: Flusher>(site: &Site<W::Database>, unit: u32) -> Outcome<Graph> {
    let graph = Graph::new(unit, Shape::OLD);
    let mut work = W::of(&graph, Retry::NONE);
    work.flush_to(site.options(), PATIENCE).await?;
    Ok(graph)
}

/// One attempt; after an error, which it returns, another one without a fault.
async fn changes_once<W: Flusher<Database: Served>>(
    site: &Site<W::Database>,
    proxy: &Proxy,
    unit: u32,
    fault: Fault,
) -> Outcome<Option<Failed>> {
    let (old, new) = (
        old::<W>(site, unit).await?,
        Graph::new(unit + 1, Shape::SMALL),
    );
    let mut work = W::of(&new, Retry::NONE);
    work.change_graph(&old);
    let held = work.held();
    proxy.plan([fault]);
    let through = through(site, proxy);
    let outcome = work.flush_to(through.options(), PATIENCE).await;
    site.settle().await?;
    let found = site.look_for_changes(&new, &old).await?;
    match outcome {
        Ok(_) if found == Found::All && work.held() == 0 => Ok(None),
        Err(error) if work.held() == held && (error.is_commit_unknown || found == Found::None) => {
            work.flush_to(site.options(), PATIENCE).await?;
            match site.look_for_changes(&new, &old).await? {
                Found::All => Ok(Some(error)),
                Found::None => Err("flushed again, and nothing is changed".into()),
            }
        }
        outcome => Err(format!("{found:?} after {outcome:?}").into()),
    }
}

/// Inserts by as many attempts as it takes, of which it returns the number of those after the first.
pub(super) async fn inserts_retrying<W: Flusher<Database: Served>>(
    site: &Site<W::Database>,
    proxy: &Proxy,
    unit: u32,
    fault: Fault,
) -> Outcome<u32> {
    let graph = Graph::new(unit, Shape::SMALL);
    let mut work = W::of(&graph, EAGER);
    proxy.plan([fault]);
    let through = through(site, proxy);
    let outcome = work.flush_to(through.options(), PATIENCE).await;
    site.judge(&graph, &work, &outcome).await?;
    Ok(outcome?.retries)
}

/// Inserts, updates and deletes in the same way.
pub(super) async fn changes_retrying<W: Flusher<Database: Served>>(
    site: &Site<W::Database>,
    proxy: &Proxy,
    unit: u32,
    fault: Fault,
) -> Outcome<u32> {
    let (old, new) = (
        old::<W>(site, unit).await?,
        Graph::new(unit + 1, Shape::SMALL),
    );
    let mut work = W::of(&new, EAGER);
    work.change_graph(&old);
    proxy.plan([fault]);
    let through = through(site, proxy);
    let flushed = work.flush_to(through.options(), PATIENCE).await?;
    match site.look_for_changes(&new, &old).await? {
        Found::All => Ok(flushed.retries),
        Found::None => Err("flushed, and nothing is changed".into()),
    }
}
