//! A client that is killed at a random time of a flush with a journal, and its next run.

use std::time::Duration;

use libtest_mimic::Trial;
use ordid_sqlx::Retry;
use sqlx::{ConnectOptions as _, Postgres, Sqlite};

use super::{
    Flusher, Found, Graph, Library, PATIENCE, Remote as _, Shape, Site, Tally,
    cut::{EAGER, through},
    kill::{Changes, Process, Program, goes_on, guessed_again, kill_at_random, usual},
    on_both, on_file, on_server, times, truth,
};
use crate::{
    proxy::{Fault, Proxy},
    servers::Servers,
    trials::Outcome,
};

const NAME: &str = "changes_of_a_killed_client_are_resumed_from_its_journal";
const MARKED: &str =
    "the_next_run_looks_for_the_marker_row_of_rows_that_the_database_would_take_twice";

/// Adds the tests of a library, whose program does as [`kill::run`](super::kill::run) does.
pub fn trials<L: Library>(servers: &Servers, trials: &mut Vec<Trial>, program: Program) {
    let name = "postgres";
    on_server::<L::Postgres, _, _>(trials, servers, name, NAME, move |site| {
        resumed::<L::Postgres>(site, program)
    });
    on_both(trials, |trials, server| {
        on_server::<L::MySql, _, _>(trials, servers, server, NAME, move |site| {
            resumed::<L::MySql>(site, program)
        });
    });
    on_files::<L::Sqlite>(trials, program);
    on_server::<L::Postgres, _, _>(trials, servers, name, MARKED, marked::<L::Postgres>);
}

/// Adds those of SQLite.
pub fn on_files<W: Flusher<Database = Sqlite>>(trials: &mut Vec<Trial>, program: Program) {
    on_file::<W, _, _>(trials, NAME, move |site| resumed::<W>(site, program));
}

/// The COMMIT of a run that has ended takes effect while the next run waits for it, or never.
async fn marked<W: Flusher<Database = Postgres>>(site: Site<Postgres>) -> Outcome {
    truth::postgres_not_unique(&site).await?;
    let folder = tempfile::tempdir()?;
    let journal = folder.path().join("rows.journal");
    for (unit, lands) in [(1, true), (2, false)] {
        let graph = Graph::new(unit, Shape::SMALL);
        let begin = |retry| W::begin(retry).with_new_memory().with_journal_in(&journal);
        let mut first = begin(Retry::NONE)?;
        first.add_graph(&graph);
        let proxy = Proxy::start(Postgres::address(site.options())?).await?;
        proxy.plan([Fault::HoldCommit]);
        let through = through(&site, &proxy);
        let error = first.flush_to(through.options(), PATIENCE).await;
        let error = error.expect_err("the COMMIT is held back");
        assert!(error.is_commit_unknown, "{error}");
        drop(first);
        let mut next = begin(EAGER)?;
        assert_eq!(
            next.resume()?,
            graph.customers.len() + graph.orders.len() + graph.items.len()
        );
        let proxy = lands.then_some(proxy);
        let landing = async {
            if let Some(proxy) = &proxy {
                tokio::time::sleep(Duration::from_millis(300)).await;
                proxy.release();
            }
        };
        let (outcome, ()) = tokio::join!(next.flush_to(site.options(), PATIENCE), landing);
        assert_eq!(
            site.judge(&graph, &next, &outcome).await?,
            Found::All,
            "{lands}"
        );
        outcome?;
        assert_eq!(
            site.numbers("SELECT count(*) FROM ordid_flushes").await?,
            [i64::from(unit)]
        );
    }
    Ok(())
}

/// Changes with a journal: the next run of the program goes on, and is killed now and then, too.
async fn resumed<W: Flusher>(site: Site<W::Database>, program: Program) -> Outcome {
    let url = site.options().to_url_lossy().to_string();
    let folder = tempfile::tempdir()?;
    let journal = folder.path().join("changes.journal");
    let file = journal.to_str().ok_or("a folder with another name")?;
    let change = |old: u32| Process::start(program(), &[&url, "change", &old.to_string(), file]);
    let resume = || Process::start(program(), &[&url, "resume", file]);
    let mut usual = usual::<W>(&site, change).await?;
    let (mut resumed, mut there, mut not_begun, mut killed_again) = (0, 0, 0, 0);
    let mut tally = Tally::NONE;
    let mut rows = 0;
    let runs = times(8, 300);
    let mut kills = 0;
    // A journal that nobody writes is never resumed.
    while goes_on(kills, runs, resumed) {
        let number = 3 + kills;
        kills += 1;
        let changes = Changes::prepare::<W>(&site, number).await?;
        let mut last = kill_at_random(&mut change(2 * number)?, usual)?;
        let mut found = changes.look(&site).await?;
        usual = guessed_again(usual, found);
        tally.client(&last, found);
        if number % 3 == 0 && last.is_empty() {
            last = kill_at_random(&mut resume()?, usual)?;
            let then = changes.look(&site).await?;
            if (found, then) == (Found::All, Found::None) {
                return Err(format!("changes {number} were there, and are not").into());
            }
            found = then;
            tally.client(&last, found);
            killed_again += 1;
        }
        let what = format!("changes {number}: {last:?}, {found:?}");
        if last == "committed" && found == Found::None {
            return Err(what.into());
        }
        let mut process = resume()?;
        process.go()?;
        let ended = process.hear()?;
        let after = changes.look(&site).await?;
        match (&*ended, found, after) {
            ("committed", _, Found::All) => resumed += 1,
            ("nothing", Found::All, Found::All) => there += 1,
            // It was killed before the journal had it.
            ("nothing", Found::None, Found::None) => not_begun += 1,
            _ => return Err(format!("{what}, then {ended:?}, {after:?}").into()),
        }
        drop(process);
        assert_eq!(std::fs::metadata(&journal)?.len(), 0, "{what}: pending");
        changes.make_anew::<W>(&site, after).await?;
        rows = changes.rows() * usize::try_from(number + 1)?;
    }
    eprintln!(
        "{} killed {kills} times in {usual:?} of journaled changes, {killed_again} of them once more: \
         {resumed} resumed, {there} were there, {not_begun} had not begun",
        std::any::type_name::<W>()
    );
    assert!(
        resumed >= runs.div_ceil(10),
        "the kills came too early or too late, or there is no journal"
    );
    // The old rows, what the next run resumed, and what went on.
    tally.flushed(2 * (3 + kills) + resumed);
    tally.close(&site, rows).await
}
