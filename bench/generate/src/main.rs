//! Making keys: ordid against `uuid`, as ratios.
//!
//! The two builds of `uuid` differ by a feature, so each peer is a program of its own. A round
//! runs each program once per case, in rotating order; a ratio compares two programs of one round.

use std::{
    env,
    error::Error,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
};

use bench_common::{machine, round::Case, spread::Spread, table::Table};
use clap::Parser;

/// The programs of a round, and what each one is.
const PROGRAMS: [(&str, &str); 3] = [
    ("round-ordid", "ordid"),
    ("round-uuid-fast-rng", "uuid now_v7, fast-rng"),
    ("round-uuid-default", "uuid now_v7, default"),
];
const ORDID: usize = 0;
/// The peer that ratios refer to.
const PEER: usize = 1;

/// Time the making of keys, as ratios to `uuid`'s `now_v7` with `fast-rng`.
#[derive(Parser)]
#[command(name = "bench-generate")]
struct Arguments {
    /// How many times each program runs each case
    #[arg(long, default_value = "15", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match bench(arguments.rounds) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn bench(rounds: u32) -> Result<(), Box<dyn Error>> {
    let program = env::current_exe()?;
    let folder = program.parent().unwrap_or(Path::new("."));
    let programs =
        PROGRAMS.map(|(name, _)| folder.join(format!("{name}{}", env::consts::EXE_SUFFIX)));

    println!("generate: ns a key, median [min..max] of {rounds} alternating rounds");
    println!("{}", machine::describe(&["ordid-core", "uuid", "rand"]));
    println!(
        "timed     single keys: 11 x 100,000 a round and thread; fill: 5 x 1,000,000; the median\n"
    );
    let mut table = Table::new(["case", "program", "ns a key", "ratio to fast-rng", "target"]);
    for case in Case::ALL {
        let times = measure(&programs, case, rounds)?;
        for (index, (_, title)) in PROGRAMS.iter().enumerate() {
            let ratios = times.iter().map(|round| round[index] / round[PEER]);
            table.row([
                case.name().to_owned(),
                (*title).to_owned(),
                format!("{:.1}", Spread::of(times.iter().map(|round| round[index]))),
                if index == PEER {
                    "1".to_owned()
                } else {
                    format!("{:.3}", Spread::of(ratios))
                },
                target(case)
                    .filter(|_| index == ORDID)
                    .unwrap_or_default()
                    .to_owned(),
            ]);
        }
    }
    print!("{table}");
    Ok(())
}

const fn target(case: Case) -> Option<&'static str> {
    match case {
        Case::Single => Some("at most 0.60"),
        Case::Fill => Some("at most 0.06"),
        Case::TwoThreads => None,
    }
}

/// Returns each round's nanoseconds a key, by program.
fn measure(
    programs: &[PathBuf; 3],
    case: Case,
    rounds: u32,
) -> Result<Vec<[f64; 3]>, Box<dyn Error>> {
    let mut times = Vec::new();
    for round in 0..rounds as usize {
        let mut nanos = [0.0; 3];
        for turn in 0..programs.len() {
            let index = (round + turn) % programs.len();
            nanos[index] = time(&programs[index], case)?;
        }
        times.push(nanos);
    }
    Ok(times)
}

fn time(program: &Path, case: Case) -> Result<f64, Box<dyn Error>> {
    let name = program.file_name().unwrap_or_default().display();
    let output = Command::new(program)
        .arg(case.name())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cannot run {name}, which `cargo xtask bench` builds: {error}"))?;
    if !output.status.success() {
        return Err(format!("{name} {} failed ({})", case.name(), output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?.trim().parse()?)
}
