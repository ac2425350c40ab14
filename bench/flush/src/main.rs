//! Inserting rows: `UnitOfWork::flush` against hand-written SQLx.
//!
//! A round runs every case once, in rotating order, each on a database made anew, over one fresh
//! connection. Timed is from rows in memory to the commit: statement text, binding, sending, and
//! for `flush` also what it does beyond that, down to dropping the entities. Not timed is what is
//! the same for all: cloning the rows, adding them to the unit of work, the parents, the tables.
//! Then the database is asked for what it holds.

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use bench_common::machine;
use clap::Parser;
use ordid_sqlx::{Entity, UnitOfWork};
use sqlx::{MySql, Pool, Postgres, Sqlite};

use crate::{
    engine::{Engine, Result},
    handwritten::Case,
    report::Times,
    rows::{Airline, Airport, Flight, Plane, Rows},
};

mod engine;
mod handwritten;
mod report;
mod rows;

/// Time the inserting of flights, as ratios to hand-written SQLx.
#[derive(Parser)]
#[command(name = "bench-flush")]
struct Arguments {
    /// How many times each case runs
    #[arg(long, default_value = "7", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// In how many of these rounds rows are inserted one by one, which is slow
    #[arg(long, default_value = "3", value_parser = clap::value_parser!(u32).range(1..))]
    row_by_row_rounds: u32,
    /// How many flights
    #[arg(long, default_value = "100000", value_parser = clap::value_parser!(u32).range(1..))]
    rows: u32,
    /// Only the cases with this text in their names; may be repeated
    #[arg(long, value_name = "TEXT")]
    case: Vec<String>,
    /// Leave the foreign keys out, whose checks take most of a server's time, in all cases alike
    #[arg(long)]
    no_foreign_keys: bool,
    /// Tokio's runtime: that of `#[tokio::main]`, or the one with fewer hand-overs between threads
    /// for each answer of a server, which is for the better of row by row
    #[arg(long, default_value = "multi-thread")]
    runtime: Runtime,
    /// The engines
    #[arg(long, value_delimiter = ',', default_value = "sqlite,postgres,mariadb")]
    engine: Vec<Name>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Runtime {
    MultiThread,
    CurrentThread,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Name {
    Sqlite,
    Postgres,
    Mariadb,
}

fn main() -> ExitCode {
    match bench(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn bench(arguments: &Arguments) -> Result<()> {
    println!(
        "flush: {} flights of {} columns, {} foreign keys; {} alternating rounds, {} of them with \
         row by row",
        arguments.rows,
        handwritten::COLUMNS.len(),
        if arguments.no_foreign_keys { "no" } else { "4" },
        arguments.rounds,
        arguments.row_by_row_rounds.min(arguments.rounds),
    );
    println!(
        "{}",
        machine::describe(&["ordid-sqlx", "sqlx", "libsqlite3-sys", "tokio"])
    );
    println!(
        "timed     from rows in memory to the commit, prepared statements kept; flush with \
         dropping its entities\n\
         runtime   tokio, {:?}",
        arguments.runtime
    );
    let rows = Rows::new(usize::try_from(arguments.rows)?);
    let mut runtime = match arguments.runtime {
        Runtime::MultiThread => tokio::runtime::Builder::new_multi_thread(),
        Runtime::CurrentThread => tokio::runtime::Builder::new_current_thread(),
    };
    let runtime = runtime.enable_all().build()?;
    for name in &arguments.engine {
        println!();
        runtime.block_on(async {
            match name {
                Name::Sqlite => engine::<Sqlite>(arguments, &rows).await,
                Name::Postgres => engine::<Postgres>(arguments, &rows).await,
                Name::Mariadb => engine::<MySql>(arguments, &rows).await,
            }
        })?;
    }
    Ok(())
}

async fn engine<DB: Engine>(arguments: &Arguments, rows: &Rows) -> Result<()>
where
    Airline: Entity<DB>,
    Airport: Entity<DB>,
    Plane: Entity<DB>,
    Flight: Entity<DB>,
{
    let place = match DB::place()? {
        Ok(place) => place,
        Err(reason) => {
            println!("{}: skipped: {reason}", DB::SERVER);
            return Ok(());
        }
    };
    let result = rounds::<DB>(arguments, rows, &place).await;
    DB::remove(&place).await?;
    result
}

async fn rounds<DB: Engine>(arguments: &Arguments, rows: &Rows, place: &DB::Place) -> Result<()>
where
    Airline: Entity<DB>,
    Airport: Entity<DB>,
    Plane: Entity<DB>,
    Flight: Entity<DB>,
{
    let mut cases = Case::all::<DB>();
    let wanted = |case: &Case| arguments.case.iter().any(|text| case.name().contains(text));
    cases.retain(|case| arguments.case.is_empty() || wanted(case));
    let mut times = Times::new(&cases);
    let mut version = String::new();
    for round in 0..arguments.rounds {
        for turn in 0..cases.len() {
            let index = (usize::try_from(round)? + turn) % cases.len();
            if cases[index] == Case::RowByRow && round >= arguments.row_by_row_rounds {
                continue;
            }
            let pool = DB::create(place).await?;
            version = DB::version(&pool).await?;
            let time = run(&pool, arguments, rows, cases[index]).await?;
            pool.close().await;
            times.add(index, f64::from(arguments.rows) / time.as_secs_f64());
        }
    }
    println!("{}: {version}", DB::SERVER);
    print!("{times}");
    Ok(())
}

/// Runs a case once and returns how long it took.
async fn run<DB: Engine>(
    pool: &Pool<DB>,
    arguments: &Arguments,
    rows: &Rows,
    case: Case,
) -> Result<Duration>
where
    Airline: Entity<DB>,
    Airport: Entity<DB>,
    Plane: Entity<DB>,
    Flight: Entity<DB>,
{
    let tables = rows::create_tables(&DB::TYPES, !arguments.no_foreign_keys);
    DB::run(pool, tables).await?;
    let mut parents = UnitOfWork::new();
    for row in &rows.airlines {
        parents.add(row.clone());
    }
    for row in &rows.airports {
        parents.add(row.clone());
    }
    for row in &rows.planes {
        parents.add(row.clone());
    }
    parents.flush(pool).await?;
    if case == Case::ServerAlone {
        handwritten::stage(pool, &rows.flights).await?;
    }
    DB::run(pool, DB::SETTLE.to_owned()).await?;

    let flights = rows.flights.clone();
    let time = if case == Case::Flush {
        let mut work = UnitOfWork::new();
        work.reserve::<Flight>(flights.len());
        flights.into_iter().for_each(|flight| _ = work.add(flight));
        let started = Instant::now();
        work.flush(pool).await?;
        started.elapsed()
    } else {
        let started = Instant::now();
        handwritten::insert_all::<DB>(pool, &flights, case).await?;
        started.elapsed()
    };

    let (found, expected) = (DB::summary(pool).await?, rows.summary());
    if found != expected {
        let name = case.name();
        return Err(format!("{name} left {found:?} in {}, not {expected:?}", DB::SERVER).into());
    }
    Ok(time)
}
