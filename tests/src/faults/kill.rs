//! A client that is killed (`kill -9`) at a random time of its flush.

use std::{
    io::{self, BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
    str::FromStr,
    time::{Duration, Instant},
};

use libtest_mimic::Trial;
use ordid::uuid::Uuid;
use ordid_sqlx::{Flushed, Retry};
use sqlx::{ConnectOptions as _, Sqlite};

use super::{
    Engine, Failed, Flusher, Found, Graph, Library, PATIENCE, Shape, Site, Tally, memory, on_both,
    on_file, on_server, times,
};
use crate::{
    servers::{Options, Servers},
    trials::Outcome,
};

const NAME: &str = "a_killed_client_leaves_all_rows_or_none";
const CHANGES: &str = "a_killed_client_leaves_all_changes_or_none";

macro_rules! add {
    ($program:ident; $add:ident::<$work:ty>($($argument:expr),*)) => {
        $add::<$work, _, _>($($argument,)* NAME, move |site| killed::<$work>(site, $program));
        $add::<$work, _, _>($($argument,)* CHANGES, move |site| {
            killed_changing::<$work>(site, $program)
        });
    };
}

/// Adds the tests of a library, whose program does as [`run`] does.
pub fn trials<L: Library>(servers: &Servers, trials: &mut Vec<Trial>, program: Program) {
    add!(program; on_server::<L::Postgres>(trials, servers, "postgres"));
    on_both(trials, |trials, server| {
        add!(program; on_server::<L::MySql>(trials, servers, server));
    });
    on_files::<L::Sqlite>(trials, program);
}

/// Adds those of SQLite.
pub fn on_files<W: Flusher<Database = Sqlite>>(trials: &mut Vec<Trial>, program: Program) {
    add!(program; on_file::<W>(trials));
    on_file::<W, _, _>(
        trials,
        "a_killed_client_leaves_a_log_that_is_read",
        async move |site| {
            site.execute("PRAGMA journal_mode = WAL").await?;
            killed::<W>(site, program).await
        },
    );
}

/// Makes a command that ends with the program's name.
pub type Program = fn() -> Command;

/// Flushes when it is told to, and says how that ended: what a program does that is to be killed.
///
/// ```text
/// URL new UNIT               inserts a graph
/// URL change OLD [JOURNAL]   inserts the graph after OLD, updates OLD's customers and deletes its items; with a
///                            journal in a file
/// URL resume JOURNAL         flushes what is in the journal
/// URL large                  inserts large rows, and says how much memory it took
/// ```
///
/// # Errors
///
/// Arguments that it does not know, and no input or output.
pub async fn run<W: Flusher>(url: &str, what: &[&str]) -> Outcome
where
    Options<W::Database>: FromStr<Err = sqlx::Error>,
{
    let options = url.parse()?;
    if what == ["large"] {
        return memory::run::<W>(&options).await;
    }
    let mut work = W::begin(Retry::NONE);
    match what {
        ["new", unit] => work.add_graph(&Graph::new(unit.parse()?, Shape::CHUNKS)),
        ["resume", journal] => {
            work = work.with_journal_in(Path::new(journal))?;
            work.resume()?;
        }
        ["change", old, journal @ ..] => {
            for journal in journal {
                work = work.with_journal_in(Path::new(journal))?;
            }
            let old = old.parse()?;
            work.add_graph(&Graph::new(old + 1, Shape::SMALL));
            work.change_graph(&Graph::new(old, Shape::OLD));
        }
        _ => return Err(format!("what is {what:?}?").into()),
    }
    say("ready")?;
    io::stdin().read_line(&mut String::new())?;
    if work.held() == 0 {
        return Ok(say("nothing")?);
    }
    let outcome = work.flush_to(&options, PATIENCE).await;
    Ok(say(&ended(&outcome))?)
}

/// What a program says when its flush is over.
pub(super) fn ended(outcome: &Result<Flushed, Failed>) -> String {
    match outcome {
        Ok(_) => "committed".to_owned(),
        Err(error) if error.is_commit_unknown => format!("unknown: {error}"),
        Err(error) => format!("refused: {error}"),
    }
}

/// Says something to who has started this program.
pub(super) fn say(what: &str) -> io::Result<()> {
    let mut stdout = io::stdout();
    writeln!(stdout, "{what}")?;
    stdout.flush()
}

/// A program that is about to flush. Dropping it kills it.
#[derive(Debug)]
pub struct Process {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Process {
    /// Starts a command that ends with the program's name, with these arguments, and waits until it is
    /// ready.
    ///
    /// # Errors
    ///
    /// The system's, and if it says something else.
    pub fn start(mut command: Command, arguments: &[&str]) -> Outcome<Self> {
        let mut child = command
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let output = BufReader::new(child.stdout.take().ok_or("no output")?);
        let mut process = Self { child, output };
        match &*process.hear()? {
            "ready" => Ok(process),
            other => Err(format!("the program says {other:?}").into()),
        }
    }

    /// Returns the next line that it says, nothing once it is dead.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn hear(&mut self) -> Outcome<String> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }

    /// Lets it flush.
    ///
    /// # Errors
    ///
    /// If it is not there any more.
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

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

/// Lets a program flush, kills it at a random time of what that usually takes, and returns what it said
/// meanwhile.
///
/// # Errors
///
/// The system's.
pub fn kill_at_random(process: &mut Process, usual: Duration) -> Outcome<String> {
    let delay = at_random(usual);
    process.go()?;
    std::thread::sleep(delay);
    process.kill()?;
    process.hear()
}

/// A random time of what usually takes so long, or soon after it.
pub(super) fn at_random(usual: Duration) -> Duration {
    usual.mul_f64(0.1 + 1.2 * random())
}

/// The next guess of what usually takes so long, after a kill that found this: a machine that has other things to do is
/// faster or slower than it was when the first guess was made.
pub(super) fn guessed_again(usual: Duration, found: Found) -> Duration {
    match found {
        Found::None => usual + usual / 3,
        Found::All => usual - usual / 5,
    }
}

/// Whether to kill once more: as often as is asked for; then until a tenth of these kills came when they had to, which each
/// [better guess](guessed_again) makes likelier; and not for ever.
pub(super) fn goes_on(kills: u32, runs: u32, in_time: u32) -> bool {
    kills < runs || (in_time < runs.div_ceil(10) && kills < 10 * runs)
}

/// A number from 0 to 1.
fn random() -> f64 {
    f64::from(u32::from_be_bytes(
        Uuid::new_v4().as_bytes()[..4].try_into().expect("four"),
    )) / f64::from(u32::MAX)
}

async fn killed<W: Flusher>(site: Site<W::Database>, program: Program) -> Outcome {
    let url = site.options().to_url_lossy().to_string();
    // How long a flush takes that is left alone.
    let mut times_taken = Vec::new();
    for unit in 0..3 {
        let mut process = Process::start(program(), &[&url, "new", &unit.to_string()])?;
        let started = Instant::now();
        process.go()?;
        assert_eq!(process.hear()?, "committed");
        times_taken.push(started.elapsed());
        let graph = Graph::new(unit, Shape::CHUNKS);
        assert_eq!(site.look(&graph).await?, Found::All);
    }
    times_taken.sort();
    let mut usual = times_taken[1];

    let (mut none, mut all, mut said) = (0, 0, 0);
    let mut tally = Tally::NONE;
    let runs = times(10, 300);
    let mut kills = 0;
    while goes_on(kills, runs, none) {
        let unit = 3 + kills;
        let graph = Graph::new(unit, Shape::CHUNKS);
        let mut process = Process::start(program(), &[&url, "new", &unit.to_string()])?;
        let last = kill_at_random(&mut process, usual)?;
        site.settle().await?;
        let found = site.look(&graph).await;
        let found = found.map_err(|error| format!("unit {unit}: {error}"))?;
        match (&*last, found) {
            ("", Found::None) => none += 1,
            ("", Found::All) => all += 1,
            ("committed", Found::All) => said += 1,
            _ => return Err(format!("unit {unit}: {last:?}, {found:?}").into()),
        }
        kills += 1;
        usual = guessed_again(usual, found);
        tally.client(&last, found);
        // As a program does that finds the unit of work in its journal: with the same keys.
        site.flush_anew::<W>(&graph, found).await?;
    }
    eprintln!(
        "{} killed {kills} times in {usual:?}: {none} before and {all} after the commit, {said} \
         after it was told",
        std::any::type_name::<W>()
    );
    assert!(none >= runs.div_ceil(10), "the kills came too late");
    tally.flushed(3 + kills);
    let rows = Graph::new(0, Shape::CHUNKS).len();
    tally.close(&site, rows * usize::try_from(3 + kills)?).await
}

/// Rows to be changed, and those that are inserted by the same unit of work.
#[derive(Debug)]
pub struct Changes {
    old: Graph,
    new: Graph,
}

impl Changes {
    /// Writes the old rows.
    ///
    /// # Errors
    ///
    /// The database's.
    pub async fn prepare<W: Flusher>(site: &Site<W::Database>, number: u32) -> Outcome<Self> {
        let old = Graph::new(2 * number, Shape::OLD);
        let mut work = W::of(&old, Retry::NONE);
        work.flush_to(site.options(), PATIENCE).await?;
        let new = Graph::new(2 * number + 1, Shape::SMALL);
        Ok(Self { old, new })
    }

    /// Returns a unit of work that makes them.
    pub fn work<W: Flusher>(&self, retry: Retry) -> W {
        let mut work = W::of(&self.new, retry);
        work.change_graph(&self.old);
        work
    }

    /// Returns the number of the old rows' unit of work.
    pub fn old_unit(&self) -> i64 {
        self.old.unit
    }

    /// Returns how many rows are left once they are made.
    pub fn rows(&self) -> usize {
        self.old.len() - self.old.items.len() + self.new.len()
    }

    /// Looks for them when all who could still change them are gone.
    ///
    /// # Errors
    ///
    /// The law is broken.
    pub async fn look<DB: Engine>(&self, site: &Site<DB>) -> Outcome<Found> {
        site.settle().await?;
        let found = site.look_for_changes(&self.new, &self.old).await;
        found.map_err(|error| format!("unit {}: {error}", self.new.unit).into())
    }

    /// The same changes by a program that knows nothing of the first one: they are refused where they are
    /// there, and not made twice.
    ///
    /// # Errors
    ///
    /// The law is broken.
    pub async fn make_anew<W: Flusher>(&self, site: &Site<W::Database>, found: Found) -> Outcome {
        let mut work: W = self.work(Retry::NONE);
        let outcome = work.flush_to(site.options(), PATIENCE).await;
        match (&outcome, found) {
            (Ok(_), Found::None) => {}
            (Err(error), Found::All) if error.is_unique_violation => {}
            _ => return Err(format!("{found:?}, then {outcome:?}").into()),
        }
        match self.look(site).await? {
            Found::All => Ok(()),
            Found::None => Err("made anew, and nothing is changed".into()),
        }
    }
}

/// How long changes take that are left alone: those of the numbers 0 to 2, by a program that is started for
/// each.
///
/// # Errors
///
/// The law is broken.
pub async fn usual<W: Flusher>(
    site: &Site<W::Database>,
    start: impl Fn(u32) -> Outcome<Process>,
) -> Outcome<Duration> {
    let mut times_taken = Vec::new();
    for number in 0..3 {
        let changes = Changes::prepare::<W>(site, number).await?;
        let mut process = start(2 * number)?;
        let started = Instant::now();
        process.go()?;
        let said = process.hear()?;
        times_taken.push(started.elapsed());
        let found = changes.look(site).await?;
        if (&*said, found) != ("committed", Found::All) {
            return Err(format!("left alone: {said:?}, {found:?}").into());
        }
    }
    times_taken.sort();
    Ok(times_taken[1])
}

/// Inserts, updates and deletes.
async fn killed_changing<W: Flusher>(site: Site<W::Database>, program: Program) -> Outcome {
    let url = site.options().to_url_lossy().to_string();
    let start = |old: u32| Process::start(program(), &[&url, "change", &old.to_string()]);
    let mut usual = usual::<W>(&site, start).await?;
    let (mut none, mut all, mut said) = (0, 0, 0);
    let mut tally = Tally::NONE;
    let mut rows = 0;
    let runs = times(8, 300);
    let mut kills = 0;
    while goes_on(kills, runs, none) {
        let number = 3 + kills;
        let changes = Changes::prepare::<W>(&site, number).await?;
        let last = kill_at_random(&mut start(2 * number)?, usual)?;
        let found = changes.look(&site).await?;
        match (&*last, found) {
            ("", Found::None) => none += 1,
            ("", Found::All) => all += 1,
            ("committed", Found::All) => said += 1,
            _ => return Err(format!("changes {number}: {last:?}, {found:?}").into()),
        }
        kills += 1;
        usual = guessed_again(usual, found);
        tally.client(&last, found);
        changes.make_anew::<W>(&site, found).await?;
        rows = changes.rows() * usize::try_from(number + 1)?;
    }
    eprintln!(
        "{} killed {kills} times in {usual:?} of changes: {none} before and {all} after the commit, \
         {said} after it was told",
        std::any::type_name::<W>()
    );
    assert!(none >= runs.div_ceil(10), "the kills came too late");
    // The old rows, and what went on.
    tally.flushed(2 * (3 + kills));
    tally.close(&site, rows).await
}
