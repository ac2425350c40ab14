//! Inserting rows: `UnitOfWork::flush` against hand-written code of the same library.
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

use bench_common::{
    machine,
    rates::{Gate, Rates, Role},
};
use clap::Parser;
use ordid_sqlx::UnitOfWork;
use sqlx::{MySql, Pool, Postgres, Sqlite};

use crate::{
    engine::{Engine, Result},
    form::{Form, FormOn, flights::Flight, orders::Order},
    handwritten::Case,
};

mod engine;
mod form;
mod handwritten;
mod sql_server;
mod writes;

/// Time the inserting of rows, as ratios to hand-written code of the same library.
#[derive(Parser)]
#[command(name = "bench-flush")]
struct Arguments {
    /// How many times each case runs
    #[arg(long, default_value = "7", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// In how many of these rounds rows are inserted one by one, which is slow
    #[arg(long, default_value = "3", value_parser = clap::value_parser!(u32).range(1..))]
    row_by_row_rounds: u32,
    /// How many rows
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
    /// The tables: orders of six columns, flights of 24
    #[arg(long, value_delimiter = ',', default_value = "orders,flights")]
    table: Vec<Table>,
    /// The kind of writes: new rows, upserts of which every second row exists, or updates of one column. The last two
    /// write orders only
    #[arg(long, value_delimiter = ',', default_value = "insert,upsert,column")]
    write: Vec<Write>,
    /// The engines; of SQL Server it is the wire alone, and only orders
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "sqlite,postgres,mariadb,sql-server"
    )]
    engine: Vec<Name>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Table {
    Orders,
    Flights,
}

#[derive(Clone, Copy, Debug, PartialEq, clap::ValueEnum)]
enum Write {
    Insert,
    Upsert,
    Column,
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
    SqlServer,
}

fn main() -> ExitCode {
    bench_common::conclude(bench(&Arguments::parse()))
}

fn bench(arguments: &Arguments) -> Result<()> {
    println!(
        "flush: {} rows; {} alternating rounds, {} of them with row by row",
        arguments.rows,
        arguments.rounds,
        arguments.row_by_row_rounds.min(arguments.rounds),
    );
    println!(
        "{}",
        machine::describe(&[
            "ordid-sqlx",
            "sqlx",
            "libsqlite3-sys",
            "ordid-tiberius",
            "tiberius",
            "tokio"
        ])
    );
    println!(
        "timed     from rows in memory to the commit, prepared statements kept; flush with \
         dropping its entities\n\
         runtime   tokio, {:?}",
        arguments.runtime
    );
    let mut runtime = match arguments.runtime {
        Runtime::MultiThread => tokio::runtime::Builder::new_multi_thread(),
        Runtime::CurrentThread => tokio::runtime::Builder::new_current_thread(),
    };
    let runtime = runtime.enable_all().build()?;
    for table in &arguments.table {
        if !arguments.write.contains(&Write::Insert) {
            break;
        }
        runtime.block_on(async {
            match table {
                Table::Orders => engines::<Order>(arguments).await,
                Table::Flights => engines::<Flight>(arguments).await,
            }
        })?;
    }
    for write in arguments.write.iter().filter(|it| **it != Write::Insert) {
        runtime.block_on(writes::engines(arguments, *write))?;
    }
    Ok(())
}

/// A form that all engines have, and what is asked of it on each.
trait Benched: FormOn<Sqlite> + FormOn<Postgres> + FormOn<MySql> {
    fn gate(engine: Name) -> Gate;

    /// Whether code by hand is what `flush` is held to on an engine with `COPY`.
    fn is_peer(case: Case, copies: bool) -> bool;

    /// Times it over SQL Server's wire, where that is asked for.
    async fn over_the_wire(_: &Arguments, _: &Self::Data) -> Result<()> {
        Ok(())
    }
}

impl Benched for Order {
    fn gate(engine: Name) -> Gate {
        Gate {
            best: Some(0.95),
            row_by_row: match engine {
                Name::Postgres => Some(8.0),
                Name::Mariadb => Some(5.0),
                Name::Sqlite | Name::SqlServer => None,
            },
        }
    }

    fn is_peer(case: Case, copies: bool) -> bool {
        if copies {
            case.is_copy()
        } else {
            case.is_multi_row()
        }
    }

    async fn over_the_wire(arguments: &Arguments, data: &Self::Data) -> Result<()> {
        println!();
        sql_server::rounds(arguments, Self::rows(data)).await
    }
}

/// What was asked before there was `COPY` in a flush.
impl Benched for Flight {
    fn gate(engine: Name) -> Gate {
        Gate {
            best: match engine {
                Name::Sqlite | Name::Postgres => Some(0.9),
                Name::Mariadb | Name::SqlServer => None,
            },
            row_by_row: match engine {
                Name::Postgres => Some(3.0),
                Name::Sqlite | Name::Mariadb | Name::SqlServer => None,
            },
        }
    }

    fn is_peer(case: Case, _: bool) -> bool {
        case.is_multi_row()
    }
}

async fn engines<R: Benched>(arguments: &Arguments) -> Result<()> {
    println!(
        "\n{}: {} columns, foreign keys: {}",
        R::TABLE,
        R::COLUMNS.len(),
        if arguments.no_foreign_keys {
            0
        } else {
            R::PARENTS.len()
        },
    );
    let data = R::data(usize::try_from(arguments.rows)?);
    for name in &arguments.engine {
        match name {
            Name::Sqlite => engine::<Sqlite, R>(arguments, *name, &data).await,
            Name::Postgres => engine::<Postgres, R>(arguments, *name, &data).await,
            Name::Mariadb => engine::<MySql, R>(arguments, *name, &data).await,
            Name::SqlServer => R::over_the_wire(arguments, &data).await,
        }?;
    }
    Ok(())
}

async fn engine<DB: Engine, R: FormOn<DB> + Benched>(
    arguments: &Arguments,
    name: Name,
    data: &R::Data,
) -> Result<()> {
    println!();
    let place = match DB::place()? {
        Ok(place) => place,
        Err(reason) => {
            println!("{}: skipped: {reason}", DB::SERVER);
            return Ok(());
        }
    };
    let result = rounds::<DB, R>(arguments, R::gate(name), data, &place).await;
    DB::remove(&place).await?;
    result
}

async fn rounds<DB: Engine, R: FormOn<DB> + Benched>(
    arguments: &Arguments,
    gate: Gate,
    data: &R::Data,
    place: &DB::Place,
) -> Result<()> {
    let mut cases = Case::all::<DB, R>();
    let wanted = |case: &Case| arguments.case.iter().any(|text| case.name().contains(text));
    cases.retain(|case| arguments.case.is_empty() || wanted(case));
    let role = |case: &Case| match case {
        Case::Flush => Role::Flush,
        Case::RowByRow => Role::RowByRow,
        _ if R::is_peer(*case, DB::COPY) => Role::Peer,
        _ => Role::Other,
    };
    let shown = cases.iter().map(|case| (case.name(), role(case)));
    let mut rates = Rates::new(shown.collect(), gate);
    let mut version = String::new();
    for round in 0..arguments.rounds {
        for turn in 0..cases.len() {
            let index = (usize::try_from(round)? + turn) % cases.len();
            if cases[index] == Case::RowByRow && round >= arguments.row_by_row_rounds {
                continue;
            }
            let pool = DB::create(place).await?;
            version = DB::version(&pool).await?;
            let time = run::<DB, R>(&pool, arguments, data, cases[index]).await?;
            pool.close().await;
            rates.add(index, f64::from(arguments.rows) / time.as_secs_f64());
        }
    }
    println!("{}: {version}", DB::SERVER);
    print!("{rates}");
    Ok(())
}

/// Runs a case once and returns how long it took.
async fn run<DB: Engine, R: FormOn<DB>>(
    pool: &Pool<DB>,
    arguments: &Arguments,
    data: &R::Data,
    case: Case,
) -> Result<Duration> {
    let tables = R::create_tables(&DB::TYPES, !arguments.no_foreign_keys);
    DB::run(pool, tables).await?;
    let mut parents = UnitOfWork::new();
    R::add_parents(data, &mut parents);
    parents.flush(pool).await?;
    if case == Case::ServerAlone {
        handwritten::stage(pool, R::rows(data)).await?;
    }
    DB::run(pool, DB::settle(R::PARENT_TABLES)).await?;

    let rows = R::rows(data).to_vec();
    let time = if case == Case::Flush {
        let mut work = UnitOfWork::new();
        work.reserve::<R>(rows.len());
        for row in rows {
            work.try_add(row)?;
        }
        let started = Instant::now();
        work.flush(pool).await?;
        started.elapsed()
    } else {
        let started = Instant::now();
        handwritten::insert_all::<DB, R>(pool, &rows, case).await?;
        started.elapsed()
    };

    let (found, expected) = (DB::summary(pool, R::SUMMARY).await?, R::summary(data));
    if found != expected {
        let name = case.name();
        return Err(format!("{name} left {found:?} in {}, not {expected:?}", DB::SERVER).into());
    }
    Ok(time)
}
