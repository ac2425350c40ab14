//! Planning a unit of work: the graph of its tables and rows, the keys, the chunks.
//!
//! A round plans every case once, in rotating order, each time a unit of work made anew. Timed is
//! `PendingRows::plan` and a walk over all of its chunks; with *keys*, also `ensure_key` for each row, as
//! `UnitOfWork::add` calls it. Not timed are the making of rows and their adding. Small units of work
//! are planned many after each other, so that a sample is long enough for the clock.

#[path = "../../arguments.rs"]
mod arguments;
mod rows;

use std::{hint::black_box, process::ExitCode, time::Instant};

use bench_common::{machine, spread::Spread, table::Table};
use clap::Parser;
use ordid_sql::EngineProfile;

use crate::{
    arguments::Asked,
    rows::{Built, Keys, Shape, TABLES},
};

/// What planning a row may take.
const NS: f64 = 60.0;
/// How many times the memory of the entities there may be in all while they are planned.
const MEMORY: f64 = 1.3;
/// Rows of a sample at least, where units of work are smaller.
const SAMPLE: usize = 100_000;

/// Time the planning of units of work, and count its memory.
#[derive(Parser)]
#[command(name = "bench-plan")]
struct Arguments {
    #[command(flatten)]
    asked: Asked<9>,
    /// How many rows a unit of work has, over ten tables
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "1000,10000,100000,1000000",
        value_parser = clap::value_parser!(u32).range(10..)
    )]
    rows: Vec<u32>,
}

/// A shape with so many rows, and what was measured of it.
struct Case {
    shape: Shape,
    rows: usize,
    /// In nanoseconds a row, by round.
    plan: Vec<f64>,
    with_keys: Vec<f64>,
}

fn main() -> ExitCode {
    bench_common::conclude(bench(&Arguments::parse()))
}

fn bench(arguments: &Arguments) -> Result<(), Box<dyn std::error::Error>> {
    println!(
        "plan: ns a row, median [min..max] of {} alternating rounds; {TABLES} tables of six columns",
        arguments.asked.rounds
    );
    println!("{}", machine::describe(&["ordid-core", "petgraph"]));
    println!(
        "timed     the plan and its chunks; with keys, their making, too; a sample is of \
         {SAMPLE} rows or more\n\
         memory    the most that there is while keys are made and rows planned, rows and all, to that \
         of the rows; the allocator counts\n"
    );
    let mut cases = Vec::new();
    for shape in Shape::ALL {
        if shape.name().contains(&arguments.asked.case) {
            for rows in &arguments.rows {
                cases.push(Case {
                    shape,
                    rows: usize::try_from(*rows)? / TABLES * TABLES,
                    plan: Vec::new(),
                    with_keys: Vec::new(),
                });
            }
        }
    }
    for round in 0..usize::try_from(arguments.asked.rounds)? {
        for turn in 0..cases.len() {
            let index = (round + turn) % cases.len();
            let case = &mut cases[index];
            case.plan.push(sample(case.shape, case.rows, Keys::Given));
            case.with_keys
                .push(sample(case.shape, case.rows, Keys::ToBeMade));
        }
    }
    print!("{}", report(&cases));
    println!(
        "\nat most {NS} ns a row, keys made; at most {MEMORY} times the memory of the rows. Where keys \
         are to be made, rows refer to rows of earlier units of work"
    );
    Ok(())
}

fn report(cases: &[Case]) -> Table<8> {
    let mut table = Table::new([
        "shape",
        "rows",
        "plan",
        "to the fewest rows",
        "with keys",
        "",
        "memory",
        "",
    ]);
    for case in cases {
        let median = |case: &Case| Spread::of(case.plan.iter().copied()).median;
        let fewest = cases.iter().filter(|other| other.shape == case.shape);
        let fewest = fewest.min_by_key(|other| other.rows).unwrap_or(case);
        let with_keys = Spread::of(case.with_keys.iter().copied());
        let memory = memory(case.shape, case.rows);
        let verdict = |met| if met { "met" } else { "missed" }.to_owned();
        table.row([
            case.shape.name().to_owned(),
            case.rows.to_string(),
            format!("{:.1}", Spread::of(case.plan.iter().copied())),
            format!("{:.2}", median(case) / median(fewest)),
            format!("{with_keys:.1}"),
            verdict(with_keys.median <= NS),
            format!("{memory:.2}"),
            verdict(memory <= MEMORY),
        ]);
    }
    table
}

/// Plans units of work of this many rows, and returns the nanoseconds a row.
fn sample(shape: Shape, rows: usize, keys: Keys) -> f64 {
    let count = SAMPLE.div_ceil(rows);
    let mut built: Vec<Built> = (0..count).map(|_| shape.build(rows, keys)).collect();
    let started = Instant::now();
    for built in &mut built {
        if keys == Keys::ToBeMade {
            built.ensure_keys();
        }
        black_box(plan(built));
    }
    let all = u32::try_from(count * rows).expect("few million");
    started.elapsed().as_secs_f64() * 1e9 / f64::from(all)
}

/// Plans a unit of work and returns the number of its rows, from its chunks.
fn plan(built: &mut Built) -> usize {
    let plan = built.pending.plan(&EngineProfile::POSTGRES);
    let plan = plan.expect("all shapes can be planned");
    plan.chunks().map(|chunk| chunk.rows.len()).sum()
}

/// Returns the greatest memory of rows and plan by that of the rows alone.
fn memory(shape: Shape, rows: usize) -> f64 {
    let most = |keys| {
        let mut built = None;
        let entities = allocation_counter::measure(|| built = Some(shape.build(rows, keys)));
        let planned = allocation_counter::measure(|| {
            let built = built.as_mut().expect("built above");
            built.ensure_keys();
            black_box(plan(built));
        });
        let entities = bytes(entities.bytes_current.unsigned_abs());
        (entities + bytes(planned.bytes_max)) / entities
    };
    most(Keys::Given).max(most(Keys::ToBeMade))
}

fn bytes(count: u64) -> f64 {
    f64::from(u32::try_from(count).expect("less than four gigabytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_allocator_counts() {
        let counted = allocation_counter::measure(|| drop(black_box(vec![0_u8; 1_000])));
        assert_eq!((counted.bytes_max, counted.bytes_current), (1_000, 0));
    }

    #[test]
    fn arguments_are_consistent() {
        <Arguments as clap::CommandFactory>::command().debug_assert();
    }
}
