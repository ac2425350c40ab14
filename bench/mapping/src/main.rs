//! Mapping UUIDs to integers: `MappingTable` against the function that others published for MySQL, which
//! looks for one UUID and inserts it if it is not there, and against the same in PL/pgSQL.
//!
//! A round runs every case once, in rotating order, over one connection, each statement its own
//! transaction, on tables made anew. UUIDs are in no order.

mod engine;

use std::{process::ExitCode, time::Instant};

use bench_common::{Result, machine, spread::Spread, table::Table};
use clap::{Parser, ValueEnum};
use ordid::uuid::Uuid;
use ordid_harness::Access;
use sqlx::{Connection as _, MySql, Postgres};

use crate::engine::{Case, Engine};

/// Time the mapping of UUIDs to integers, as ratios to a function that maps one by one.
#[derive(Parser)]
#[command(name = "bench-mapping")]
struct Arguments {
    /// How many times each case runs
    #[arg(long, default_value = "5", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// How many UUIDs a batch has
    #[arg(long, default_value = "100000", value_parser = clap::value_parser!(u32).range(1..))]
    batch: u32,
    /// How many UUIDs are mapped one by one
    #[arg(long, default_value = "2000", value_parser = clap::value_parser!(u32).range(1..))]
    single: u32,
    /// The engines
    #[arg(long, value_delimiter = ',', default_value = "mariadb,postgres")]
    engine: Vec<Name>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Name {
    Mariadb,
    Postgres,
}

fn main() -> ExitCode {
    bench_common::conclude(bench(&Arguments::parse()))
}

fn bench(arguments: &Arguments) -> Result<()> {
    println!(
        "mapping: batches of {} UUIDs, {} one by one; {} alternating rounds",
        arguments.batch, arguments.single, arguments.rounds,
    );
    println!("{}", machine::describe(&["ordid-sqlx", "sqlx"]));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    for name in &arguments.engine {
        let access = match name {
            Name::Mariadb => ordid_harness::access("mariadb")?,
            Name::Postgres => ordid_harness::access("postgres")?,
        };
        if let Access::Skip(reason) = &access {
            println!("\n{name:?}: skipped: {reason}");
            continue;
        }
        let url = access.url().ok_or("a server without an address")?;
        match name {
            Name::Mariadb => runtime.block_on(rounds::<MySql>(arguments, &url)),
            Name::Postgres => runtime.block_on(rounds::<Postgres>(arguments, &url)),
        }?;
    }
    Ok(())
}

/// Which of the function's rates a case is held to, and how far above it has to be.
struct Target {
    case: Case,
    function: Case,
    at_least: f64,
}

const TARGETS: [Target; 4] = [
    Target {
        case: Case::Batch,
        function: Case::Function,
        at_least: 4.0,
    },
    Target {
        case: Case::BatchThatTells,
        function: Case::Function,
        at_least: 4.0,
    },
    Target {
        case: Case::Insert,
        function: Case::Function,
        at_least: 1.0,
    },
    Target {
        case: Case::GetAgain,
        function: Case::FunctionAgain,
        at_least: 1.0,
    },
];

async fn rounds<DB: Engine>(arguments: &Arguments, url: &str) -> Result<()> {
    let mut connection = DB::Connection::connect(url).await?;
    let version = DB::version(&mut connection).await?;
    let mut rates = vec![Vec::new(); Case::ALL.len()];
    let (batch, single) = (
        usize::try_from(arguments.batch)?,
        usize::try_from(arguments.single)?,
    );
    let uuids: Vec<Uuid> = (0..batch.max(single)).map(scattered).collect();
    for round in 0..Case::ALL.len() * usize::try_from(arguments.rounds)? {
        let (round, turn) = (round / Case::ALL.len(), round % Case::ALL.len());
        let at = (round + turn) % Case::ALL.len();
        let case = Case::ALL[at];
        let uuids = &uuids[..if case.is_batch() { batch } else { single }];
        DB::create(&mut connection).await?;
        if case.is_again() {
            DB::map(&mut connection, case.first(), uuids).await?;
        }
        let started = Instant::now();
        DB::map(&mut connection, case, uuids).await?;
        let seconds = started.elapsed().as_secs_f64();
        let rows = DB::count(&mut connection, case).await?;
        if rows != i64::try_from(uuids.len())? {
            return Err(format!("{} left {rows} rows of {}", case.title(), uuids.len()).into());
        }
        // A count of rows is far below what a float takes.
        rates[at].push(f64::from(u32::try_from(uuids.len())?) / seconds);
    }
    DB::remove(&mut connection).await?;
    connection.close().await?;

    println!("\n{version}");
    let mut table = Table::new(["case", "UUIDs a second"]);
    for (case, rates) in Case::ALL.iter().zip(&rates) {
        let rates = Spread::of(rates.iter().copied());
        table.row([case.title().to_owned(), format!("{rates:.0}")]);
    }
    print!("{table}");
    for target in TARGETS {
        let of = |case: Case| {
            let at = Case::ALL.iter().position(|other| *other == case);
            at.map_or(&[][..], |at| &rates[at])
        };
        let pairs = of(target.case).iter().zip(of(target.function));
        let ratio = Spread::of(pairs.map(|(ours, theirs)| ours / theirs));
        let verdict = if ratio.median >= target.at_least {
            "met"
        } else {
            "missed"
        };
        println!(
            "{} / {}: {ratio:.2}, target at least {}: {verdict}",
            target.case.title(),
            target.function.title(),
            target.at_least,
        );
    }
    Ok(())
}

/// Bits without order: a multiplication by an odd number takes each number to one of its own.
fn scattered(number: usize) -> Uuid {
    let number = number as u128;
    Uuid::from_u128(number.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835))
}
