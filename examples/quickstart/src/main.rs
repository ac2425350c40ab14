//! Loads real data with ordered keys and real foreign keys, and shows what the order is worth.
//!
//! ```text
//! cargo run --release -p quickstart
//! cargo run --release -p quickstart --features servers -- --data nycflights13 --database postgres://user@host/database
//! ```
//!
//! [`data`] reads and checks everything and gives every row its key; [`load`] flushes the rows by a
//! unit of work, the same for three databases, and checks and measures what came of it; [`database`]
//! has what differs. [`entities`] is what an application would write.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use clap::Parser;

mod cli;
mod csv_table;
mod data;
mod database;
mod entities;
mod error;
mod load;
mod random_keys;
mod report;

use cli::Cli;
use data::{Data, Source};
use error::{Context, Error};
use report::Report;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run(Cli::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Where stderr is closed there is nobody to tell.
            let _ = writeln!(io::stderr(), "quickstart: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(cli: Cli) -> Result<(), Error> {
    let source = cli.data.map_or(Source::Slice, Source::Folder);
    let data = source.read()?;
    let report = match (cli.database, cli.file) {
        (Some(url), _) => load_by_url(&url, data).await?,
        (None, Some(path)) => load::load(&database::file(path), data).await?,
        (None, None) => load::load(&database::default_file()?, data).await?,
    };
    match write!(io::stdout(), "data      nycflights13, {source}\n{report}") {
        // Whoever reads may stop reading: `| head`.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error).context("stdout"),
        _ => Ok(()),
    }
}

#[cfg(feature = "servers")]
async fn load_by_url(url: &str, data: Data) -> Result<Report, Error> {
    use database::Target;
    use sqlx::{MySql, Postgres};

    // Only the scheme goes into messages: there may be a password in the rest.
    match url.split_once(':').map_or("", |(scheme, _)| scheme) {
        "postgres" | "postgresql" => load::load(&Target::<Postgres>::from_url(url)?, data).await,
        "mysql" | "mariadb" => load::load(&Target::<MySql>::from_url(url)?, data).await,
        "sqlite" => Err(Error::new(
            "--database is for servers; for SQLite write --file PATH",
        )),
        _ => Err(Error::new(
            "the URL of --database must begin with postgres:// or mysql://",
        )),
    }
}

#[cfg(not(feature = "servers"))]
async fn load_by_url(_: &str, _: Data) -> Result<Report, Error> {
    Err(Error::new(
        "this build is for SQLite alone: write --file PATH, or for a server \
         `cargo run --release -p quickstart --features servers -- --database URL`",
    ))
}
