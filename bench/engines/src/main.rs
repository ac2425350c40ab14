//! What each key costs in a table: its pages, bytes and reads.
//!
//! A case is a key in a column. It loads rows of the key, an `INT` and 100 characters, 1,000 a
//! statement and a transaction, over one connection, into a new table of an engine whose cache is
//! 128 MB, which two million rows outgrow. Keys come from a simulated clock, at the rates of
//! [`Arrival`]: how full a page gets depends on them. What is timed is a statement from its bound
//! values to the commit; keys are made outside of it.
//!
//! The gates are on pages, bytes and reads, which come out alike on every machine. Rates are
//! reported, and judge nothing.
//!
//! [`sources`] repeats with the same tables what others have measured.

use std::{path::Path, process::ExitCode, time::Duration};

use bench_common::machine;
use clap::Parser;
use sqlx::{MySql, Postgres, Sqlite};

use crate::{
    engine::{Engine, Result},
    key::{Arrival, Case, Value},
    report::{Line, Report},
};

mod engine;
mod gate;
mod key;
mod report;
mod sources;

/// How many rows outgrow the cache on every engine.
const ROWS: u32 = 2_000_000;

/// The rows of a statement, which is a transaction.
const BATCH: u32 = 1000;

/// What keys cost in tables.
#[derive(Parser)]
#[command(name = "bench-engines")]
enum Command {
    Engines(Arguments),
    Sources(sources::Arguments),
}

/// Load tables by each kind of key, and count pages, bytes and reads.
#[derive(clap::Args)]
struct Arguments {
    /// How many rows; with fewer than the default the gates are shown, not judged, and nothing is
    /// written
    #[arg(long, default_value_t = ROWS, value_parser = clap::value_parser!(u32).range(i64::from(BATCH)..))]
    rows: u32,
    /// The engines
    #[arg(long, value_delimiter = ',', default_value = "sqlite,postgres,mariadb")]
    engine: Vec<Name>,
    /// Only the cases with this text in their names; may be repeated. Nothing is written
    #[arg(long, value_name = "TEXT")]
    case: Vec<String>,
    /// The document between whose marks the tables are written
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../../PLATFORM.md"))]
    document: std::path::PathBuf,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Name {
    Sqlite,
    Postgres,
    Mariadb,
}

fn main() -> ExitCode {
    let command = Command::parse();
    println!(
        "{}",
        machine::describe(&["ordid-core", "sqlx", "libsqlite3-sys"])
    );
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let done = runtime
        .map_err(Into::into)
        .and_then(|runtime| match command {
            Command::Engines(arguments) => runtime.block_on(engines(&arguments)),
            Command::Sources(arguments) => {
                runtime.block_on(sources::run(&arguments)).map(|()| true)
            }
        });
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns whether every gate that could be judged was passed.
async fn engines(arguments: &Arguments) -> Result<bool> {
    println!(
        "engines   {} rows, {BATCH} a transaction, cache 128 MB",
        arguments.rows
    );
    let mut passed = true;
    for name in &arguments.engine {
        println!();
        passed &= match name {
            Name::Sqlite => engine::<Sqlite>(arguments).await,
            Name::Postgres => engine::<Postgres>(arguments).await,
            Name::Mariadb => engine::<MySql>(arguments).await,
        }?;
    }
    Ok(passed)
}

async fn engine<DB: Engine>(arguments: &Arguments) -> Result<bool> {
    let mut database = match DB::open().await? {
        Ok(database) => database,
        Err(reason) => {
            println!("{}: skipped: {reason}", DB::SERVER);
            return Ok(true);
        }
    };
    let version = DB::version(&mut database).await?;
    println!("{}: {version}", DB::SERVER);
    let wanted = |name: &str| {
        let mut texts = arguments.case.iter();
        arguments.case.is_empty() || texts.any(|text| name.contains(text.as_str()))
    };
    let mut report = Report::new(DB::SERVER, version, DB::FIGURES);
    for case in DB::cases() {
        for &arrival in case.arrivals {
            let name = case.name(arrival);
            if wanted(&name) {
                let line = load::<DB>(&mut database, &case, arrival, arguments.rows).await?;
                println!("  {line}");
                report.push(line);
            }
        }
    }
    DB::close(database).await?;

    print!("\n{report}");
    let judged = arguments.rows >= ROWS;
    let passed = gate::print(&report, DB::GATES, judged);
    if judged && arguments.case.is_empty() {
        report.write(Path::new(&arguments.document))?;
    }
    Ok(passed)
}

/// Loads one table, and removes it.
async fn load<DB: Engine>(
    database: &mut DB::Open,
    case: &Case,
    arrival: Arrival,
    rows: u32,
) -> Result<Line> {
    DB::create(database, case).await?;
    let mut keys = case.keys(arrival);
    let mut next = 0;
    let mut batch = Vec::new();
    let mut times = Vec::new();
    let before = DB::before(database).await?;
    while next < rows {
        let size = BATCH.min(rows - next);
        fill(&mut batch, &mut keys, next, size, case.sorted);
        times.push((size, DB::insert(database, case, &batch).await?));
        next += size;
    }
    let mut more = || {
        fill(&mut batch, &mut keys, next, BATCH, case.sorted);
        next += BATCH;
        std::mem::take(&mut batch)
    };
    let figures = DB::figures(database, case, rows, before, &mut more).await?;
    DB::drop(database).await?;
    let tail = times.len() - times.len().div_ceil(10);
    Ok(Line {
        name: case.name(arrival),
        rate: rate(&times),
        last: rate(&times[tail..]),
        figures,
    })
}

/// Makes the rows of the next statement.
fn fill(batch: &mut Vec<Row>, keys: &mut dyn FnMut() -> Value, next: u32, size: u32, sorted: bool) {
    batch.clear();
    batch.extend((next..next + size).map(|number| Row {
        key: keys(),
        number: i32::try_from(number).expect("fewer than two thousand million"),
        text: format!("{number:0>100}"),
    }));
    if sorted {
        batch.sort_by(|a, b| a.key.cmp(&b.key));
    }
}

/// A row of the loaded table.
struct Row {
    key: Value,
    number: i32,
    text: String,
}

/// Returns rows a second.
fn rate(times: &[(u32, Duration)]) -> f64 {
    let rows: u32 = times.iter().map(|(rows, _)| rows).sum();
    let time: Duration = times.iter().map(|(_, time)| time).sum();
    f64::from(rows) / time.as_secs_f64()
}
