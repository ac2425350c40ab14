//! Flushes a unit of work when it is told to, and says how that ended: what fault tests kill, or
//! starve of disk.
//!
//! ```text
//! flush_unit URL UNIT
//! ```

use std::{
    error::Error,
    io::{self, Write},
    process::ExitCode,
};

use ordid_sqlx::Retry;
use ordid_tests::faults::{Engine, Graph, Shape, Site};
use sqlx::{Connection, MySql, Postgres, Sqlite};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, unit] = &arguments[..] else {
        return Err("usage: flush_unit URL UNIT".into());
    };
    let graph = Graph::new(unit.parse()?, Shape::CHUNKS);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    match url.split_once(':').map_or("", |(scheme, _)| scheme) {
        "postgres" => runtime.block_on(flush::<Postgres>(url, &graph)),
        "mysql" => runtime.block_on(flush::<MySql>(url, &graph)),
        "sqlite" => runtime.block_on(flush::<Sqlite>(url, &graph)),
        _ => Err(format!("no database that is known: {url}").into()),
    }
}

async fn flush<DB: Engine>(url: &str, graph: &Graph) -> Result<(), Box<dyn Error>> {
    let site = Site::<DB>::open(url.parse()?);
    let mut work = site.work(graph, Retry::NONE);
    let pool = site.pool();
    pool.acquire().await?.ping().await?;
    say("ready")?;
    io::stdin().read_line(&mut String::new())?;
    match work.flush(&pool).await {
        Ok(_) => say("committed")?,
        Err(error) if error.is_commit_unknown() => say(&format!("unknown: {error}"))?,
        Err(error) => say(&format!("refused: {error}"))?,
    }
    pool.close().await;
    Ok(())
}

fn say(what: &str) -> io::Result<()> {
    let mut stdout = io::stdout();
    writeln!(stdout, "{what}")?;
    stdout.flush()
}
