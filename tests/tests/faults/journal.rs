//! A client that is killed at a random time of a flush with a journal, and its next run.

use libtest_mimic::Trial;
use ordid_sqlx::UnitOfWork;
use ordid_tests::{
    faults::{
        Engine, Found, Site, Tally,
        kill::{Changes, Process, kill_at_random, usual},
        on_file, on_server, times,
    },
    servers::Servers,
    trials::Outcome,
};
use sqlx::{ConnectOptions as _, MySql, Postgres, Sqlite};

use crate::program;

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    const NAME: &str = "changes_of_a_killed_client_are_resumed_from_its_journal";
    on_server::<UnitOfWork<Postgres>, _, _>(trials, servers, "postgres", NAME, resumed);
    on_server::<UnitOfWork<MySql>, _, _>(trials, servers, "mariadb", NAME, resumed);
    on_file::<UnitOfWork<Sqlite>, _, _>(trials, NAME, resumed);
}

/// Changes with a journal: the next run of the program goes on, and is killed now and then, too.
async fn resumed<DB: Engine>(site: Site<DB>) -> Outcome {
    let url = site.options().to_url_lossy().to_string();
    let folder = tempfile::tempdir()?;
    let journal = folder.path().join("changes.journal");
    let file = journal.to_str().ok_or("a folder with another name")?;
    let change = |old: u32| Process::start(program(), &[&url, "change", &old.to_string(), file]);
    let resume = || Process::start(program(), &[&url, "resume", file]);
    let usual = usual::<UnitOfWork<DB>>(&site, change).await?;
    let (mut resumed, mut there, mut not_begun, mut killed_again) = (0, 0, 0, 0);
    let mut tally = Tally::NONE;
    let mut rows = 0;
    let runs = times(8, 300);
    for number in 3..3 + runs {
        let changes = Changes::prepare::<UnitOfWork<DB>>(&site, number).await?;
        let mut last = kill_at_random(&mut change(2 * number)?, usual)?;
        let mut found = changes.look(&site).await?;
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
        changes.make_anew::<UnitOfWork<DB>>(&site, after).await?;
        rows = changes.rows() * usize::try_from(number + 1)?;
    }
    eprintln!(
        "{} killed {runs} times in {usual:?} of journaled changes, {killed_again} of them once more: \
         {resumed} resumed, {there} were there, {not_begun} had not begun",
        std::any::type_name::<DB>()
    );
    assert!(resumed >= runs / 10, "the kills came too early or too late");
    // The old rows, what the next run resumed, and what went on.
    tally.flushed(2 * (3 + runs) + resumed);
    tally.close(&site, rows).await
}
