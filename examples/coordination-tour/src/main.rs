//! Every method of coordinated ids on private servers, side by side, and what each costs.
//!
//! ```text
//! cargo run --release -p coordination-tour
//! cargo run --release -p coordination-tour -- --seconds 3
//! ```
//!
//! It starts Redis, ZooKeeper, PostgreSQL and two MariaDB servers of its own where they are installed,
//! and removes them at the end. [`methods`] has one line for each method; [`mod@measure`] has clients
//! make ids with it and looks that none comes twice.

use std::{
    io::{self, Write},
    time::Duration,
};

use anyhow::{Context as _, Result};
use clap::Parser;
use comfy_table::{CellAlignment, Table, presets};

mod measure;
mod methods;
mod stores;

use measure::{Measured, measure};
use stores::Stores;

/// Makes ids by every method of coordination, and prints what each costs.
#[derive(Debug, Parser)]
struct Cli {
    /// How long each method is run, with one client and with eight.
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
}

#[tokio::main]
async fn main() -> Result<()> {
    let cli = Cli::parse();
    let time = Duration::try_from_secs_f64(cli.seconds).context("--seconds")?;
    let stores = Stores::start()?;
    for line in stores.lines() {
        out(&format!("{line}\n"))?;
    }
    out("\n")?;

    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header([
        "method",
        "an id",
        "1 client: ids/s",
        "slower by",
        "8 clients: ids/s",
        "slower by",
    ]);
    for column in 2..6 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    // The first method is the local one that the others are measured by.
    let mut local: Option<[f64; 2]> = None;
    for method in methods::all(&stores) {
        let method = method.await.context("a method's store")?;
        let mut measured = Vec::new();
        for clients in [1, 8] {
            let of = measure(&method, clients, time)
                .await
                .with_context(|| method.name.clone())?;
            measured.push(of);
        }
        let rates = [measured[0].rate(), measured[1].rate()];
        let local = *local.get_or_insert(rates);
        table.add_row(row(&method.name, &measured, rates, local));
        // A line for those who watch; the table comes last.
        writeln!(io::stderr(), "measured: {}", method.name)?;
    }
    out(&format!("{table}\n"))?;
    out("\nSlower by: how many ids the first line makes in the time. No id came twice.\n")
}

fn row(name: &str, measured: &[Measured], rates: [f64; 2], local: [f64; 2]) -> Vec<String> {
    let mut row = vec![name.to_owned(), measured[0].example.to_string()];
    for (rate, local) in rates.into_iter().zip(local) {
        row.push(format!("{rate:.0}"));
        row.push(match local / rate {
            factor if factor < 10.0 => format!("{factor:.2}"),
            factor => format!("{factor:.0}"),
        });
    }
    row
}

/// Prints; whoever reads may stop reading.
fn out(text: &str) -> Result<()> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}
