//! Every scheme and text form of ordid, as ratios to the fastest crate that makes it and to `uuid`
//! with `fast-rng`.
//!
//! As `bench-generate`, it runs the makers of a case in alternating rounds of several programs, and
//! compares inside a round.

mod rows;

use std::{error::Error, process::ExitCode};

use bench_common::{
    machine,
    programs::{Place, Programs},
    round::{Case, METHOD},
    table::Table,
};
use clap::Parser;

use crate::rows::{GRANTED, GRANTED_LIMITED, LIMITED, RANDOM, REFERENCE, Row, SCHEMES, TEXTS};

const ALL: [&[Row]; 6] = [SCHEMES, RANDOM, GRANTED, LIMITED, GRANTED_LIMITED, TEXTS];

/// Rounds of what makes one key or text at a time.
const ROUNDS: u32 = 7;
/// Rounds of fills, each of which takes as long as ten of the others: all of them are to end within
/// two minutes.
const FILL_ROUNDS: u32 = 3;

/// Time every scheme and text form, as ratios to the fastest crate that makes it.
#[derive(Parser)]
#[command(name = "bench-schemes")]
struct Arguments {
    /// How many times each maker runs each case [default: 7, and 3 of fills]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
    /// Only what has this text in `CASE: NAME`, such as `fill` or `one-thread: ulid`
    #[arg(
        long,
        default_value = "",
        hide_default_value = true,
        value_name = "TEXT"
    )]
    case: String,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    bench_common::conclude(bench(arguments.rounds, &arguments.case))
}

fn bench(rounds: Option<u32>, filter: &str) -> Result<(), Box<dyn Error>> {
    let places = ALL.into_iter().flatten().flat_map(places_of);
    let programs = Programs::find(places.map(|it| it.program))?;
    let crates = [
        "ordid-core",
        "uuid",
        "ulid",
        "bson",
        "ferroid",
        "idgenerator",
        "snowflaked",
        "sonyflake",
        "uuid47",
        "data-encoding",
        "mti",
        "type-safe-id",
    ];
    println!("schemes: ns a key or text, median [min..max] of alternating rounds");
    println!("{}", machine::describe(&crates));
    println!("timed     {METHOD}; the median of a round");
    println!("ratios    of the same round; v7 is uuid's now_v7 with fast-rng\n");

    let mut found = false;
    let mut failures = Vec::new();
    for (case, rows) in [
        (Case::OneThread, [SCHEMES, RANDOM, GRANTED]),
        (Case::TwoThreads, [GRANTED, &[], &[]]),
        (Case::Bursts, [LIMITED, GRANTED_LIMITED, &[]]),
        (Case::Fill, [SCHEMES, RANDOM, GRANTED]),
        (Case::OneThread, [TEXTS, &[], &[]]),
    ] {
        let usual = if case == Case::Fill {
            FILL_ROUNDS
        } else {
            ROUNDS
        };
        let rows: Vec<&Row> = rows
            .into_iter()
            .flatten()
            .filter(|row| case != Case::Fill || row.fills)
            .filter(|row| format!("{}: {}", case.name(), row.own.maker).contains(filter))
            .collect();
        if !rows.is_empty() {
            found = true;
            println!(
                "{}",
                measure(
                    &programs,
                    &rows,
                    case,
                    rounds.unwrap_or(usual),
                    &mut failures
                )
            );
        }
    }
    if !found {
        return Err(format!("nothing has `{filter}` in `CASE: NAME`").into());
    }
    println!("What peers give up is from the sources of these versions, not measured here.");
    if failures.is_empty() {
        return Ok(());
    }
    Err(failures.join("; ").into())
}

/// What runs beside a row in its own case.
fn places_of(row: &Row) -> impl Iterator<Item = Place> {
    let peer = row.peer.map(|(place, _)| place);
    [Some(row.own), row.coarse, peer, Some(REFERENCE)]
        .into_iter()
        .flatten()
}

/// Row by row: what a ratio compares runs within a second or two.
fn measure(
    programs: &Programs,
    rows: &[&Row],
    case: Case,
    rounds: u32,
    failures: &mut Vec<String>,
) -> Table<7> {
    let mut table = Table::new([
        case.name(),
        "ns",
        "to v7",
        "coarse clock, to v7",
        "to peer",
        "peer",
        "which gives up",
    ]);
    for row in rows {
        let mut places: Vec<Place> = Vec::new();
        for place in places_of(row) {
            // A fill reads the clock once for many keys; and the reference may be the peer as well.
            let skipped = case == Case::Fill && Some(place) == row.coarse;
            if !skipped && !places.contains(&place) {
                places.push(place);
            }
        }
        let times = programs.measure(&places, case, rounds);
        failures.extend(times.failures().map(str::to_owned));
        let column = |place| places.iter().position(|it| *it == place);
        let ratio = |one: Option<Place>, to: Option<Place>| {
            let (one, to) = one.and_then(column).zip(to.and_then(column))?;
            times.ratios(one, to).map(|it| format!("{it:.3}"))
        };
        let peer = row.peer.map(|(place, _)| place);
        table.row([
            row.own.maker.to_owned(),
            times.cell(0),
            ratio(Some(row.own), Some(REFERENCE)).unwrap_or_default(),
            ratio(row.coarse, Some(REFERENCE)).unwrap_or_default(),
            ratio(Some(row.own), peer).unwrap_or_default(),
            row.peer.map_or("no crate", |(_, title)| title).to_owned(),
            row.gives_up.to_owned(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_row_stands_here_twice() {
        let rows: Vec<_> = ALL.into_iter().flatten().collect();
        let names: HashSet<_> = rows.iter().map(|row| row.own).collect();
        assert_eq!(names.len(), rows.len());
    }

    #[test]
    fn the_reference_is_measured_with_every_row_and_ordid_first() {
        for row in ALL.into_iter().flatten() {
            assert!(places_of(row).any(|place| place == REFERENCE));
            assert_eq!(places_of(row).next(), Some(row.own));
        }
    }

    #[test]
    fn arguments_are_consistent() {
        <Arguments as clap::CommandFactory>::command().debug_assert();
    }
}
