//! `cargo xtask conformance`: the whole matrix, scheme by column by engine, and how each cell was
//! proven. It fails where a cell breaks.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "it talks to people"
)]

use std::{process::ExitCode, time::Instant};

use ordid_tests::{
    conformance::{Engine, cells, live, tables, vectors, write},
    servers::Servers,
};

/// The keys of a cell, and of one that H2 sorts, which takes its time.
const KEYS: usize = 100_000;
const EMULATED_KEYS: usize = 10_000;

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<bool, Box<dyn std::error::Error>> {
    let servers = Servers::start(&["postgres", "mysql", "mariadb", "h2"], true)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let cells = cells();
    let mut broken = Vec::new();

    let started = Instant::now();
    for cell in &cells {
        broken.extend(cell.holds_in_arithmetic(EMULATED_KEYS).err());
    }
    let ordered = cells.iter().filter(|cell| cell.is_ordered).count();
    println!(
        "arithmetic: {} cells, {ordered} ordered, {} refused, {EMULATED_KEYS} keys each; {:.0?}",
        cells.len(),
        cells.len() - ordered,
        started.elapsed()
    );
    match vectors::hold() {
        Ok(pairs) => println!("SqlGuid: {pairs} pairs compare as Microsoft's answered"),
        Err(error) => broken.push(error),
    }
    let mut asked = Vec::new();
    for engine in Engine::ALL {
        let keys = if engine == Engine::Oracle {
            EMULATED_KEYS
        } else {
            KEYS
        };
        let started = Instant::now();
        let held = runtime.block_on(live::hold(engine, &servers, &cells, keys));
        match held {
            Err(reason) => println!("{}: not asked: {reason}", engine.name()),
            Ok(Ok(sorted)) => {
                asked.push(engine);
                println!(
                    "{}{}: {sorted} cells sorted as they were made, {keys} keys each; {:.0?}",
                    engine.name(),
                    if engine == Engine::Oracle {
                        ", emulated by H2"
                    } else {
                        ""
                    },
                    started.elapsed()
                );
            }
            Ok(Err(error)) => broken.push(format!("{}: {error}", engine.name())),
        }
    }

    let tables = tables(&cells, |engine| asked.contains(&engine));
    println!("{tables}");
    for broken in &broken {
        println!("BROKEN: {broken}");
    }
    if !broken.is_empty() {
        return Ok(false);
    }
    // What is asked everywhere is what the document says.
    if asked == Engine::PRIVATE {
        let changed = write("conformance", &tables)?;
        println!(
            "PLATFORM.md {}",
            if changed {
                "rewritten"
            } else {
                "says the same"
            }
        );
    }
    Ok(true)
}
