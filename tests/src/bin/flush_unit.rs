//! Flushes a unit of work when it is told to, and says how that ended: what fault tests kill, or
//! starve of disk.
//!
//! ```text
//! flush_unit URL new UNIT             inserts a graph
//! flush_unit URL change OLD [JOURNAL] inserts the graph after OLD, updates OLD's customers and deletes its
//!                                     items; with a journal in a file
//! flush_unit URL resume JOURNAL       what is in the journal
//! ```

use std::{error::Error, io, path::Path, process::ExitCode, str::FromStr};

use ordid_sqlx::{Retry, UnitOfWork};
use ordid_tests::{
    faults::{
        Engine, Flusher as _, Graph, PATIENCE, Shape,
        kill::{self, ended, say},
    },
    servers::Options,
};
use sqlx::{MySql, Postgres, Sqlite};

type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> ExitCode {
    ordid_harness::conclude(run())
}

fn run() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
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

async fn flush<DB: Engine>(url: &str, what: &[&str]) -> Outcome
where
    Options<DB>: FromStr<Err = sqlx::Error>,
{
    let work = match what {
        ["change", old, journal] => {
            let journal = DB::journaled(Path::new(journal))?;
            let mut work = UnitOfWork::<DB>::new().with_journal(journal);
            let old = old.parse()?;
            work.add_graph(&Graph::new(old + 1, Shape::SMALL));
            work.change_graph(&Graph::new(old, Shape::OLD));
            work
        }
        ["resume", journal] => {
            let journal = DB::journaled(Path::new(journal))?;
            let mut work = UnitOfWork::new().with_journal(journal);
            work.resume()?;
            work
        }
        _ => return kill::run::<UnitOfWork<DB>>(url, what).await,
    };
    let mut work = work.with_retry(Retry::NONE);
    say("ready")?;
    io::stdin().read_line(&mut String::new())?;
    if work.is_empty() {
        say("nothing")?;
    } else {
        let outcome = work.flush_to(&url.parse()?, PATIENCE).await;
        say(&ended(&outcome))?;
    }
    Ok(())
}
