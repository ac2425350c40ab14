//! Making keys: ordid's modes and the fastest peers, as ratios to `uuid` with `fast-rng`.
//!
//! Builds of one crate with other features cannot be in one program, so a round is made of several.
//! It runs each generator of a case once, in rotating order; a ratio compares two generators of one
//! round.

#[path = "../../arguments.rs"]
mod arguments;
mod generators;
mod report;

use std::{error::Error, process::ExitCode};

use bench_common::{
    machine,
    programs::{Place, Programs},
    round::{Case, METHOD},
};
use clap::Parser;

use crate::{
    arguments::Asked,
    generators::{CASES, GENERATORS, Generator, REFERENCE},
    report::CaseTimes,
};

/// Time the making of keys, as ratios to `uuid`'s `now_v7` with `fast-rng`.
#[derive(Parser)]
#[command(name = "bench-generate")]
#[command(mut_arg("case", |it| it.help(
    "Only the generators with this text in `CASE: NAME`, such as `fill` or `one-thread: ordid`"
)))]
struct Arguments {
    #[command(flatten)]
    asked: Asked<15>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    bench_common::conclude(bench(arguments.asked.rounds, &arguments.asked.case))
}

fn bench(rounds: u32, filter: &str) -> Result<(), Box<dyn Error>> {
    let programs = Programs::find(GENERATORS.iter().map(|it| it.program))?;
    let crates = [
        "ordid-core",
        "uuid",
        "rand",
        "uuid7",
        "scru128",
        "ulid",
        "ferroid",
        "fast-uuid-v7",
    ];
    println!("generate: ns a key, median [min..max] of {rounds} alternating rounds");
    println!("{}", machine::describe(&crates));
    println!("timed     {METHOD}; the median of a round");
    println!("ratio     to {REFERENCE}, same case and round; a target is met by the median\n");

    let (mut shown, mut left_out): (Vec<&Generator>, Vec<&str>) = Default::default();
    let mut failures: Vec<String> = Vec::new();
    for case in CASES {
        let (generators, absent): (Vec<_>, Vec<_>) = select(case, filter)
            .into_iter()
            .partition(|generator| programs.offer(place(generator)));
        left_out.extend(absent.iter().map(|it| it.title));
        if generators.iter().all(|it| !matches(it, case, filter)) {
            continue;
        }
        let places: Vec<_> = generators.iter().map(|it| place(it)).collect();
        let times = programs.measure(&places, case, rounds);
        failures.extend(times.failures().map(str::to_owned));
        println!("{}", CaseTimes::new(case, generators.clone(), times));
        for generator in generators {
            if shown.iter().all(|it| it.title != generator.title) {
                shown.push(generator);
            }
        }
    }
    if !shown.is_empty() {
        println!("{}", report::promises(&shown));
        println!(
            "Promises are from the sources and documentation of these versions, not measured here."
        );
    }
    if !left_out.is_empty() {
        let left_out = left_out.join("; ");
        println!("Left out, since their programs do not offer them here: {left_out}.");
    }
    if shown.is_empty() {
        return Err(format!("nothing that runs here has `{filter}` in `CASE: NAME`").into());
    }
    if failures.is_empty() {
        return Ok(());
    }
    Err(failures.join("; ").into())
}

fn matches(generator: &Generator, case: Case, filter: &str) -> bool {
    format!("{}: {}", case.name(), generator.title).contains(filter)
}

/// Returns the generators of a case that the filter lets through, and the reference with them.
fn select(case: Case, filter: &str) -> Vec<&'static Generator> {
    let wanted = |it: &&Generator| it.title == REFERENCE || matches(it, case, filter);
    let in_case = GENERATORS.iter().filter(|it| it.target(case).is_some());
    in_case.filter(wanted).collect()
}

fn place(generator: &Generator) -> Place {
    Place {
        program: generator.program,
        maker: generator.maker,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_keeps_the_reference() {
        let titles = |filter| -> Vec<_> {
            let selected = select(Case::Fill, filter);
            selected.into_iter().map(|it| it.title).collect()
        };
        assert_eq!(
            titles("fill: ordid"),
            ["ordid strict, system clock", REFERENCE]
        );
        assert_eq!(titles("one-thread"), [REFERENCE]);
        assert!(titles("").len() > 2);
    }

    #[test]
    fn arguments_are_consistent() {
        <Arguments as clap::CommandFactory>::command().debug_assert();
    }
}
