//! The command line.

use std::path::PathBuf;

use clap::Parser;

/// Loads nycflights13 with ordered keys: airlines, airports, planes and flights, parents first, in
/// one transaction, and shows what the order of the keys is worth.
///
/// Without options it loads a slice that is part of the program into a fresh SQLite file.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Cli {
    /// Folder with airlines.csv, airports.csv, planes.csv, and flights.csv or flights.csv.zip;
    /// without it, a week of flights that is part of the program
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,

    /// Database to load into: postgres://user@host/database or mysql://user@host/database
    /// (MariaDB too), in a build with `--features servers`; it must not have these tables yet
    #[arg(long, value_name = "URL", conflicts_with = "file")]
    pub(crate) database: Option<String>,

    /// SQLite file to load into, and to keep; without it, quickstart.sqlite in the folder for
    /// temporary files, made anew by each run
    #[arg(long, value_name = "PATH")]
    pub(crate) file: Option<PathBuf>,
}
