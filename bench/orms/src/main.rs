//! Inserting rows through Diesel, SeaORM, tokio-postgres, mysql_async and rusqlite: `UnitOfWork::flush` against the library's own inserts.
//!
//! A round runs every case once, in rotating order, each on a database made anew, over a fresh
//! connection, in one transaction. Timed is from the library's structs in memory (SeaORM's are
//! `ActiveModel`s) to the commit. Then the database is asked for what it holds.

mod library;
mod orders;
mod place;

use std::process::ExitCode;

use bench_common::{
    Result, machine,
    rates::{Gate, Rates},
};
use clap::Parser;
// Diesel and SQLx share it, with SQLite's source in it.
use libsqlite3_sys as _;

use crate::{
    library::{Case, Library},
    orders::Orders,
    place::{Engine, Place},
};

/// What each flush has to reach.
const GATE: Gate = Gate {
    best: Some(0.95),
    row_by_row: None,
};

/// Time the inserting of rows through object-relational mappers and rusqlite, as ratios to their own inserts.
#[derive(Parser)]
#[command(name = "bench-orms")]
struct Arguments {
    /// How many times each case runs
    #[arg(long, default_value = "5", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// In how many of these rounds rows are inserted one by one, which is slow
    #[arg(long, default_value = "2", value_parser = clap::value_parser!(u32).range(1..))]
    row_by_row_rounds: u32,
    /// How many rows
    #[arg(long, default_value = "100000", value_parser = clap::value_parser!(u32).range(1..))]
    rows: u32,
    /// Only the cases with this text in their names; may be repeated
    #[arg(long, value_name = "TEXT")]
    case: Vec<String>,
    /// Only the libraries with this text in their names; may be repeated
    #[arg(long, value_name = "TEXT")]
    library: Vec<String>,
    /// The engines
    #[arg(long, value_delimiter = ',', default_value = "sqlite,postgres,mariadb")]
    engine: Vec<Engine>,
}

fn main() -> ExitCode {
    bench_common::conclude(bench(&Arguments::parse()))
}

fn bench(arguments: &Arguments) -> Result<()> {
    println!(
        "orms: {} rows of six columns with a foreign key; {} alternating rounds, {} of them with \
         row by row",
        arguments.rows,
        arguments.rounds,
        arguments.row_by_row_rounds.min(arguments.rounds),
    );
    let crates = [
        "ordid-diesel",
        "diesel",
        "mysql_async",
        "ordid-mysql-async",
        "ordid-rusqlite",
        "rusqlite",
        "ordid-seaorm",
        "ordid-tokio-postgres",
        "sea-orm",
        "sqlx",
        "tokio-postgres",
        "libsqlite3-sys",
    ];
    println!("{}", machine::describe(&crates));
    sqlx::any::install_default_drivers();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let orders = Orders::new(usize::try_from(arguments.rows)?);
    for engine in &arguments.engine {
        let place = match Place::find(*engine)? {
            Ok(place) => place,
            Err(reason) => {
                println!("\n{engine:?}: skipped: {reason}");
                continue;
            }
        };
        for library in library::all(*engine) {
            let mut texts = arguments.library.iter();
            if arguments.library.is_empty() || texts.any(|text| library.name().contains(text)) {
                rounds(arguments, &runtime, &place, &orders, library.as_ref())?;
            }
        }
        runtime.block_on(place.remove())?;
    }
    Ok(())
}

fn rounds(
    arguments: &Arguments,
    runtime: &tokio::runtime::Runtime,
    place: &Place,
    orders: &Orders,
    library: &dyn Library,
) -> Result<()> {
    let wanted = |case: &Case| {
        let title = library.title(*case);
        arguments.case.is_empty() || arguments.case.iter().any(|text| title.contains(text))
    };
    let cases: Vec<_> = library.cases().into_iter().filter(wanted).collect();
    let shown = cases.iter().map(|case| (library.title(*case), case.role()));
    let mut rates = Rates::new(shown.collect(), GATE);
    let mut version = String::new();
    for round in 0..arguments.rounds {
        for turn in 0..cases.len() {
            let index = (usize::try_from(round)? + turn) % cases.len();
            let case = cases[index];
            if case == Case::One && round >= arguments.row_by_row_rounds {
                continue;
            }
            version = runtime.block_on(place.create(orders))?;
            let guard = runtime.enter();
            let time = library.run(place, &orders.lines, case)?;
            drop(guard);
            let (found, expected) = (runtime.block_on(place.summary())?, orders.summary());
            if found != expected {
                let title = library.title(case);
                return Err(format!("{title} left {found:?}, not {expected:?}").into());
            }
            rates.add(index, f64::from(arguments.rows) / time.as_secs_f64());
        }
    }
    println!("\n{} on {version}", library.name());
    print!("{rates}");
    Ok(())
}
