//! A client that is killed (`kill -9`) at a random time of its flush.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use libtest_mimic::Trial;
use ordid::uuid::Uuid;
use ordid_sqlx::Retry;
use ordid_tests::{
    faults::{Engine, Found, Graph, Shape, Site},
    servers::Servers,
    trials::Outcome,
};
use sqlx::{ConnectOptions, MySql, Postgres};

use crate::{on_file, on_server, times};

const PROGRAM: &str = env!("CARGO_BIN_EXE_flush_unit");

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    const NAME: &str = "a_killed_client_leaves_all_rows_or_none";
    on_server::<Postgres, _, _>(trials, servers, "postgres", NAME, killed);
    on_server::<MySql, _, _>(trials, servers, "mariadb", NAME, killed);
    on_file(trials, NAME, killed);
    const CHANGES: &str = "a_killed_client_leaves_all_changes_or_none";
    on_server::<Postgres, _, _>(trials, servers, "postgres", CHANGES, killed_changing);
    on_server::<MySql, _, _>(trials, servers, "mariadb", CHANGES, killed_changing);
    on_file(trials, CHANGES, killed_changing);
    const RESUMED: &str = "changes_of_a_killed_client_are_resumed_from_its_journal";
    on_server::<Postgres, _, _>(trials, servers, "postgres", RESUMED, resumed);
    on_server::<MySql, _, _>(trials, servers, "mariadb", RESUMED, resumed);
    on_file(trials, RESUMED, resumed);
    on_file(
        trials,
        "a_killed_client_leaves_a_log_that_is_read",
        async |site| {
            site.execute("PRAGMA journal_mode = WAL").await?;
            killed(site).await
        },
    );
}

/// A program that is about to flush. Dropping it kills it.
pub struct Flusher {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Flusher {
    /// Starts it by a command that ends with the program's name, to insert a unit of work, and waits until
    /// it is ready.
    pub fn start(mut command: Command, url: &str, unit: u32) -> Outcome<Self> {
        command.args([url, "new", &unit.to_string()]);
        Self::ready(command)
    }

    /// Starts it to change rows of a unit of work, with a journal if there is a file for it.
    fn change(url: &str, old: u32, journal: Option<&Path>) -> Outcome<Self> {
        let mut command = Command::new(PROGRAM);
        command
            .args([url, "change", &old.to_string()])
            .args(journal);
        Self::ready(command)
    }

    /// Starts it to go on with what its journal has.
    fn resume(url: &str, journal: &Path) -> Outcome<Self> {
        let mut command = Command::new(PROGRAM);
        command.args([url, "resume"]).arg(journal);
        Self::ready(command)
    }

    fn ready(mut command: Command) -> Outcome<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let output = BufReader::new(child.stdout.take().ok_or("no output")?);
        let mut flusher = Self { child, output };
        match &*flusher.hear()? {
            "ready" => Ok(flusher),
            other => Err(format!("the program says {other:?}").into()),
        }
    }

    /// Returns the next line that it says, nothing once it is dead.
    pub fn hear(&mut self) -> Outcome<String> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }

    /// Lets it flush.
    pub fn go(&mut self) -> Outcome {
        let stdin = self.child.stdin.as_mut().ok_or("no input")?;
        Ok(stdin.write_all(b"\n")?)
    }

    fn kill(&mut self) -> Outcome {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Flusher {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

/// Lets a program flush, kills it at a random time of what that usually takes, and returns what it said
/// meanwhile.
fn kill_at_random(flusher: &mut Flusher, usual: Duration) -> Outcome<String> {
    let delay = usual.mul_f64(0.1 + 1.2 * random());
    flusher.go()?;
    std::thread::sleep(delay);
    flusher.kill()?;
    flusher.hear()
}

/// A number from 0 to 1.
fn random() -> f64 {
    f64::from(u32::from_be_bytes(
        Uuid::new_v4().as_bytes()[..4].try_into().expect("four"),
    )) / f64::from(u32::MAX)
}

async fn killed<DB: Engine>(site: Site<DB>) -> Outcome {
    let url = site.options().to_url_lossy().to_string();
    // How long a flush takes that is left alone.
    let mut times_taken = Vec::new();
    for unit in 0..3 {
        let mut flusher = Flusher::start(Command::new(PROGRAM), &url, unit)?;
        let started = Instant::now();
        flusher.go()?;
        assert_eq!(flusher.hear()?, "committed");
        times_taken.push(started.elapsed());
        let graph = Graph::new(unit, Shape::CHUNKS);
        assert_eq!(site.look(&graph).await?, Found::All);
    }
    times_taken.sort();
    let usual = times_taken[1];

    let (mut none, mut all, mut said) = (0, 0, 0);
    let runs = times(10, 300);
    for unit in 3..3 + runs {
        let graph = Graph::new(unit, Shape::CHUNKS);
        let mut flusher = Flusher::start(Command::new(PROGRAM), &url, unit)?;
        let last = kill_at_random(&mut flusher, usual)?;
        site.settle().await?;
        let found = site.look(&graph).await;
        let found = found.map_err(|error| format!("unit {unit}: {error}"))?;
        match (&*last, found) {
            ("", Found::None) => none += 1,
            ("", Found::All) => all += 1,
            ("committed", Found::All) => said += 1,
            _ => return Err(format!("unit {unit}: {last:?}, {found:?}").into()),
        }
        // As a program does that finds the unit of work in its journal: with the same keys.
        site.flush_anew(&graph, found).await?;
    }
    eprintln!(
        "{} killed {runs} times in {usual:?}: {none} before and {all} after the commit, {said} \
         after it was told",
        std::any::type_name::<DB>()
    );
    assert!(none >= runs / 10, "the kills came too late");
    Ok(())
}

/// Rows to be changed, and those that are inserted by the same unit of work.
struct Changes {
    old: Graph,
    new: Graph,
}

impl Changes {
    /// Writes the old rows.
    async fn prepare<DB: Engine>(site: &Site<DB>, number: u32) -> Outcome<Self> {
        let old = Graph::new(2 * number, Shape::OLD);
        let pool = site.pool();
        site.work(&old, Retry::NONE).flush(&pool).await?;
        pool.close().await;
        let new = Graph::new(2 * number + 1, Shape::SMALL);
        Ok(Self { old, new })
    }

    async fn look<DB: Engine>(&self, site: &Site<DB>) -> Outcome<Found> {
        site.settle().await?;
        let found = site.look_for_changes(&self.new, &self.old).await;
        found.map_err(|error| format!("unit {}: {error}", self.new.unit).into())
    }

    /// The same changes by a program that knows nothing of the first one: they are refused where they are
    /// there, and not made twice.
    async fn make_anew<DB: Engine>(&self, site: &Site<DB>, found: Found) -> Outcome {
        let mut work = site.work(&self.new, Retry::NONE);
        DB::change(&mut work, &self.old);
        let pool = site.pool();
        let outcome = work.flush(&pool).await;
        pool.close().await;
        match (&outcome, found) {
            (Ok(_), Found::None) => {}
            (Err(error), Found::All) if error.is_unique_violation() => {}
            _ => return Err(format!("{found:?}, then {outcome:?}").into()),
        }
        assert_eq!(self.look(site).await?, Found::All);
        Ok(())
    }
}

/// How long changes take that are left alone.
async fn usual<DB: Engine>(
    site: &Site<DB>,
    url: &str,
    journal: Option<&Path>,
) -> Outcome<Duration> {
    let mut times_taken = Vec::new();
    for number in 0..3 {
        let changes = Changes::prepare(site, number).await?;
        let mut flusher = Flusher::change(url, 2 * number, journal)?;
        let started = Instant::now();
        flusher.go()?;
        assert_eq!(flusher.hear()?, "committed");
        times_taken.push(started.elapsed());
        assert_eq!(changes.look(site).await?, Found::All);
    }
    times_taken.sort();
    Ok(times_taken[1])
}

/// Inserts, updates and deletes.
async fn killed_changing<DB: Engine>(site: Site<DB>) -> Outcome {
    let url = site.options().to_url_lossy().to_string();
    let usual = usual(&site, &url, None).await?;
    let (mut none, mut all, mut said) = (0, 0, 0);
    let runs = times(8, 300);
    for number in 3..3 + runs {
        let changes = Changes::prepare(&site, number).await?;
        let mut flusher = Flusher::change(&url, 2 * number, None)?;
        let last = kill_at_random(&mut flusher, usual)?;
        let found = changes.look(&site).await?;
        match (&*last, found) {
            ("", Found::None) => none += 1,
            ("", Found::All) => all += 1,
            ("committed", Found::All) => said += 1,
            _ => return Err(format!("changes {number}: {last:?}, {found:?}").into()),
        }
        changes.make_anew(&site, found).await?;
    }
    eprintln!(
        "{} killed {runs} times in {usual:?} of changes: {none} before and {all} after the commit, \
         {said} after it was told",
        std::any::type_name::<DB>()
    );
    assert!(none >= runs / 10, "the kills came too late");
    Ok(())
}

/// The same with a journal: the next run of the program goes on, and is killed now and then, too.
async fn resumed<DB: Engine>(site: Site<DB>) -> Outcome {
    let url = site.options().to_url_lossy().to_string();
    let folder = tempfile::tempdir()?;
    let journal = folder.path().join("changes.journal");
    let usual = usual(&site, &url, Some(&journal)).await?;
    let (mut resumed, mut there, mut not_begun, mut killed_again) = (0, 0, 0, 0);
    let runs = times(8, 300);
    for number in 3..3 + runs {
        let changes = Changes::prepare(&site, number).await?;
        let mut flusher = Flusher::change(&url, 2 * number, Some(&journal))?;
        let mut last = kill_at_random(&mut flusher, usual)?;
        let mut found = changes.look(&site).await?;
        if number % 3 == 0 && last.is_empty() {
            let mut flusher = Flusher::resume(&url, &journal)?;
            last = kill_at_random(&mut flusher, usual)?;
            let then = changes.look(&site).await?;
            if (found, then) == (Found::All, Found::None) {
                return Err(format!("changes {number} were there, and are not").into());
            }
            found = then;
            killed_again += 1;
        }
        let what = format!("changes {number}: {last:?}, {found:?}");
        if last == "committed" && found == Found::None {
            return Err(what.into());
        }
        let mut flusher = Flusher::resume(&url, &journal)?;
        flusher.go()?;
        let ended = flusher.hear()?;
        let after = changes.look(&site).await?;
        match (&*ended, found, after) {
            ("committed", _, Found::All) => resumed += 1,
            ("nothing", Found::All, Found::All) => there += 1,
            // It was killed before the journal had it.
            ("nothing", Found::None, Found::None) => not_begun += 1,
            _ => return Err(format!("{what}, then {ended:?}, {after:?}").into()),
        }
        drop(flusher);
        assert_eq!(std::fs::metadata(&journal)?.len(), 0, "{what}: pending");
        changes.make_anew(&site, after).await?;
    }
    eprintln!(
        "{} killed {runs} times in {usual:?} of journaled changes, {killed_again} of them once more: \
         {resumed} resumed, {there} were there, {not_begun} had not begun",
        std::any::type_name::<DB>()
    );
    assert!(resumed >= runs / 10, "the kills came too early or too late");
    Ok(())
}
