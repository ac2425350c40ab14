//! A client that is killed (`kill -9`) at a random time of its flush.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, Command, Stdio},
    time::Instant,
};

use libtest_mimic::Trial;
use ordid::uuid::Uuid;
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
    /// Starts it by a command that ends with the program's name, and waits until it is ready.
    pub fn start(mut command: Command, url: &str, unit: u32) -> Outcome<Self> {
        let mut child = command
            .args([url, &unit.to_string()])
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
        let delay = usual.mul_f64(0.1 + 1.2 * random());
        flusher.go()?;
        std::thread::sleep(delay);
        flusher.kill()?;
        let last = flusher.hear()?;
        site.settle().await?;
        let found = site.look(&graph).await;
        let found = found.map_err(|error| format!("unit {unit} after {delay:?}: {error}"))?;
        match (&*last, found) {
            ("", Found::None) => none += 1,
            ("", Found::All) => all += 1,
            ("committed", Found::All) => said += 1,
            _ => return Err(format!("unit {unit} after {delay:?}: {last:?}, {found:?}").into()),
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
