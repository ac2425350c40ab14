//! Flushes a unit of work when it is told to, and says how that ended: what fault tests kill, or
//! starve of disk.
//!
//! ```text
//! flush_unit URL new UNIT             inserts a graph
//! flush_unit URL change OLD [JOURNAL] inserts the graph after OLD, updates OLD's customers and deletes its
//!                                     items; with a journal in a file
//! flush_unit URL resume JOURNAL       what is in the journal
//! ```

use std::{
    error::Error,
    io::{self, Write},
    path::Path,
    process::ExitCode,
};

use ordid_sqlx::{Retry, UnitOfWork};
use ordid_tests::faults::{Engine, Graph, Shape, Site};
use sqlx::{Connection, MySql, Postgres, Sqlite};

type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((url, what)) = arguments.split_first() else {
        return Err("usage: flush_unit URL new|change|resume ..".into());
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    match url.split_once(':').map_or("", |(scheme, _)| scheme) {
        "postgres" => runtime.block_on(flush::<Postgres>(url, what)),
        "mysql" => runtime.block_on(flush::<MySql>(url, what)),
        "sqlite" => runtime.block_on(flush::<Sqlite>(url, what)),
        _ => Err(format!("no database that is known: {url}").into()),
    }
}

async fn flush<DB: Engine>(url: &str, what: &[String]) -> Outcome {
    let site = Site::<DB>::open(url.parse()?);
    let what: Vec<&str> = what.iter().map(String::as_str).collect();
    let mut work = match &what[..] {
        ["new", unit] => site.work(&Graph::new(unit.parse()?, Shape::CHUNKS), Retry::NONE),
        ["change", old] => changes(UnitOfWork::<DB>::new(), old.parse()?),
        ["change", old, journal] => {
            let journal = DB::journaled(Path::new(journal))?;
            changes(UnitOfWork::new().with_journal(journal), old.parse()?)
        }
        ["resume", journal] => {
            let journal = DB::journaled(Path::new(journal))?;
            let mut work = UnitOfWork::new().with_journal(journal);
            work.resume()?;
            work
        }
        _ => return Err(format!("what is {what:?}?").into()),
    }
    .with_retry(Retry::NONE);
    let pool = site.pool();
    pool.acquire().await?.ping().await?;
    say("ready")?;
    io::stdin().read_line(&mut String::new())?;
    if work.is_empty() {
        say("nothing")?;
    } else {
        match work.flush(&pool).await {
            Ok(_) => say("committed")?,
            Err(error) if error.is_commit_unknown() => say(&format!("unknown: {error}"))?,
            Err(error) => say(&format!("refused: {error}"))?,
        }
    }
    pool.close().await;
    Ok(())
}

fn changes<DB: Engine>(mut work: UnitOfWork<DB>, old: u32) -> UnitOfWork<DB> {
    DB::add(&mut work, &Graph::new(old + 1, Shape::SMALL));
    DB::change(&mut work, &Graph::new(old, Shape::OLD));
    work
}

fn say(what: &str) -> io::Result<()> {
    let mut stdout = io::stdout();
    writeln!(stdout, "{what}")?;
    stdout.flush()
}
