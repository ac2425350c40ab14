//! Reserving segments of a count: ordid's sources against the bare client of the same store, which makes
//! the same call and believes the answer.
//!
//! A round has both reserve for the same time, one call after another over one connection each, in
//! alternating order; a ratio compares the two of a round.

mod pairs;

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use bench_common::{Result, machine, spread::Spread, table::Table};
use clap::Parser;

/// What each source is held to, of the rate of the bare client.
const AT_LEAST: f64 = 0.8;

/// Time the reserving of segments, as ratios to the bare clients of the same stores.
#[derive(Parser)]
#[command(name = "bench-segments")]
struct Arguments {
    /// How many times each case runs
    #[arg(long, default_value = "9", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// For how long it runs each time, in milliseconds
    #[arg(long, default_value = "500", value_parser = clap::value_parser!(u64).range(1..))]
    millis: u64,
    /// Only the stores with this text in their names
    #[arg(
        long,
        default_value = "",
        hide_default_value = true,
        value_name = "TEXT"
    )]
    store: String,
}

fn main() -> ExitCode {
    bench_common::conclude(bench(&Arguments::parse()))
}

fn bench(arguments: &Arguments) -> Result<()> {
    println!(
        "segments: of {}, one call after another over one connection; {} alternating rounds of {} ms",
        pairs::COUNT,
        arguments.rounds,
        arguments.millis,
    );
    let crates = [
        "ordid-sqlx",
        "sqlx",
        "ordid-redis",
        "redis",
        "ordid-zookeeper",
        "zookeeper-client",
    ];
    println!("{}", machine::describe(&crates));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let mut rounds = Rounds {
        arguments,
        table: Table::new([
            "store",
            "source",
            "bare client",
            "source / client",
            "target",
        ]),
    };
    runtime.block_on(pairs::all(&mut rounds))?;
    println!("\nsegments a second:\n{}", rounds.table);
    Ok(())
}

/// What the stores are measured by.
struct Rounds<'a> {
    arguments: &'a Arguments,
    table: Table<5>,
}

impl Rounds<'_> {
    /// Whether a store of this name is asked for.
    fn want(&self, store: &str) -> bool {
        store.contains(&self.arguments.store)
    }

    /// Measures a source and the bare client, each of which returns the last number that it has reserved.
    async fn pair(
        &mut self,
        store: &str,
        mut source: impl AsyncFnMut() -> Result<i64>,
        mut client: impl AsyncFnMut() -> Result<i64>,
    ) -> Result<()> {
        let time = Duration::from_millis(self.arguments.millis);
        // What is prepared and connected once.
        rate(Duration::ZERO, &mut source).await?;
        rate(Duration::ZERO, &mut client).await?;
        let mut rates = Vec::new();
        for round in 0..self.arguments.rounds {
            rates.push(if round.is_multiple_of(2) {
                let source = rate(time, &mut source).await?;
                (source, rate(time, &mut client).await?)
            } else {
                let client = rate(time, &mut client).await?;
                (rate(time, &mut source).await?, client)
            });
        }
        let ratio = Spread::of(rates.iter().map(|(source, client)| source / client));
        let verdict = if ratio.median >= AT_LEAST {
            "met"
        } else {
            "missed"
        };
        self.table.row([
            store.to_owned(),
            format!("{:.0}", Spread::of(rates.iter().map(|(source, _)| *source))),
            format!("{:.0}", Spread::of(rates.iter().map(|(_, client)| *client))),
            format!("{ratio:.2}"),
            format!("at least {AT_LEAST}: {verdict}"),
        ]);
        Ok(())
    }
}

/// Calls for this time and returns the calls a second. Each must reserve above the one before.
async fn rate(time: Duration, reserve: &mut impl AsyncFnMut() -> Result<i64>) -> Result<f64> {
    let started = Instant::now();
    let (mut calls, mut last) = (0_u32, -1);
    loop {
        let reserved = reserve().await?;
        if reserved < last + i64::from(pairs::COUNT.get()) {
            return Err(format!("{reserved} after {last}: a number comes twice").into());
        }
        last = reserved;
        calls += 1;
        let elapsed = started.elapsed();
        if elapsed >= time {
            return Ok(f64::from(calls) / elapsed.as_secs_f64());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_consistent() {
        <Arguments as clap::CommandFactory>::command().debug_assert();
    }
}
