//! What ordid adds to the time of a build: a crate of 50 entities with Diesel or SeaORM alone, and the
//! same crate with keys and units of work of ordid.
//!
//! A round builds each of them from nothing, dependencies included, then the crate alone once more.
//! Cargo has what it needs on this machine: `cargo fetch` before, `--offline` in what is timed.

mod crates;

use std::{
    path::Path,
    process::{Command, ExitCode},
    time::{Duration, Instant},
};

use bench_common::{Result, machine, spread::Spread, table::Table};
use clap::Parser;

use crate::crates::{Library, Variant};

/// The most that a clean build may take with ordid, by the same without.
const MOST: f64 = 1.10;

/// Time the building of a crate with an object-relational mapper, without ordid and with it.
#[derive(Parser)]
#[command(name = "bench-compile")]
struct Arguments {
    /// How many times each crate is built
    #[arg(long, default_value = "3", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// How many entities a crate has
    #[arg(long, default_value = "50", value_parser = clap::value_parser!(u32).range(1..))]
    entities: u32,
    /// The libraries
    #[arg(long, value_delimiter = ',', default_value = "diesel,sea-orm")]
    library: Vec<Library>,
}

fn main() -> ExitCode {
    bench_common::conclude(bench(&Arguments::parse()))
}

/// How long building took.
#[derive(Default)]
struct Times {
    clean: Vec<f64>,
    again: Vec<f64>,
}

fn bench(arguments: &Arguments) -> Result<()> {
    println!(
        "compile: {} entities, {} alternating rounds, profile dev, {} jobs\n{}",
        arguments.entities,
        arguments.rounds,
        std::thread::available_parallelism()?,
        machine::describe(&["ordid"])
    );
    let mut table = Table::new([
        "library",
        "crate",
        "clean build, s",
        "crate alone, s",
        "by alone",
    ]);
    let mut verdicts = Vec::new();
    for library in &arguments.library {
        let folder = tempfile::tempdir()?;
        for variant in Variant::ALL {
            crates::write(folder.path(), *library, variant, arguments.entities)?;
            let project = folder.path().join(variant.name());
            run(cargo(&project).arg("fetch"))?;
        }
        let mut times = [Times::default(), Times::default()];
        for round in 0..arguments.rounds {
            for turn in 0..2 {
                let index = (usize::try_from(round)? + turn) % 2;
                let project = folder.path().join(Variant::ALL[index].name());
                let (clean, again) = build(&project)?;
                times[index].clean.push(clean.as_secs_f64());
                times[index].again.push(again.as_secs_f64());
            }
        }
        let [alone, with] = &times;
        let ratio = |pick: fn(&Times) -> &Vec<f64>| {
            let pairs = pick(with).iter().zip(pick(alone));
            Spread::of(pairs.map(|(with, alone)| with / alone))
        };
        let (clean, again) = (ratio(|it| &it.clean), ratio(|it| &it.again));
        for (variant, times) in Variant::ALL.into_iter().zip(&times) {
            let by_alone = match variant {
                Variant::Alone => String::new(),
                Variant::WithOrdid => format!("{clean:.2}; crate alone {again:.2}"),
            };
            table.row([
                library.name().to_owned(),
                variant.name().to_owned(),
                format!("{:.1}", Spread::of(times.clean.iter().copied())),
                format!("{:.1}", Spread::of(times.again.iter().copied())),
                by_alone,
            ]);
        }
        let verdict = if clean.median <= MOST {
            "met"
        } else {
            "missed"
        };
        verdicts.push(format!(
            "{}: {clean:.2}, target at most {MOST}: {verdict}",
            library.name()
        ));
    }
    print!("\n{table}");
    verdicts.iter().for_each(|verdict| println!("{verdict}"));
    Ok(())
}

/// Builds a project from nothing, then only what it holds itself.
fn build(project: &Path) -> Result<(Duration, Duration)> {
    let target = project.join("target");
    if target.exists() {
        std::fs::remove_dir_all(&target)?;
    }
    let mut clean = cargo(project);
    let clean = run(clean.args(["build", "--offline"]))?;
    let source = project.join("src/lib.rs");
    let text = std::fs::read_to_string(&source)?;
    std::fs::write(&source, text)?;
    let again = run(cargo(project).args(["build", "--offline"]))?;
    Ok((clean, again))
}

fn cargo(project: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    // What this bench was built with must not lend the others its artifacts.
    command
        .env_remove("CARGO_TARGET_DIR")
        .env("CARGO_INCREMENTAL", "0");
    command.arg("--quiet").current_dir(project);
    command
}

fn run(command: &mut Command) -> Result<Duration> {
    let started = Instant::now();
    let status = command.status()?;
    if !status.success() {
        return Err(format!("{command:?}: {status}").into());
    }
    Ok(started.elapsed())
}
