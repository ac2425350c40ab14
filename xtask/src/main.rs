//! The tasks of the ordid workspace. `cargo xtask help` lists them.

#![forbid(unsafe_code)]
// A command line tool talks to its user.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod bench;
mod check;
mod conformance;
mod docs;
mod lanes;
mod links;
mod lists;
mod machines;
mod packages;
mod published;
#[cfg(test)]
mod questions;
mod run;
mod servers;
mod summary;
mod test;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    about = "The tasks of the ordid workspace",
    after_help = "Database servers are private and temporary. ORDID_TEST_SKIP=postgres,mariadb \
                  leaves servers out;\nORDID_TEST_POSTGRES_URL, ORDID_TEST_MARIADB_URL and \
                  ORDID_TEST_MYSQL_URL name servers to use instead."
)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run every test of the workspace, with private servers
    Test {
        /// Passed on to `cargo test`
        #[arg(last = true, value_name = "ARGS")]
        extra: Vec<String>,
    },
    /// Check format, lints, docs, every feature by itself, and that the crates can be packaged
    Check {
        /// Leave out the API's documentation, the guide's pages, large workspaces, and most selections of features
        #[arg(long)]
        short: bool,
    },
    /// Run the benches, with private PostgreSQL and MariaDB servers
    Bench {
        /// The bench to run; all of them if left out
        name: Option<bench::Name>,
        /// Passed on to the bench
        #[arg(last = true, value_name = "ARGS")]
        extra: Vec<String>,
    },
    /// Let private databases sort every scheme's keys in every column, and write the matrix into
    /// PLATFORM.md
    Conformance {
        /// Instead, run each operation under each setting of a server, and write that table
        #[arg(long)]
        settings: bool,
    },
    /// Draw the pictures of the guide in docs, build it, and check the links of all documents
    Docs,
    /// Write the lists that are made of the catalogue of schemes
    Lists,
    /// Run the tests of keys on big-endian s390x and on aarch64, emulated by QEMU
    Machines,
    /// Run every check, then the long forms of the tests, optimised: ORDID_TEST_SOAK=1; then those of `machines`
    Soak {
        /// Passed on to `cargo test`
        #[arg(last = true, value_name = "ARGS")]
        extra: Vec<String>,
    },
}

fn main() -> ExitCode {
    // Ends with status 2 on a wrong command line.
    let arguments = Arguments::parse();
    let result = match arguments.task {
        Task::Test { extra } => test::test(&extra),
        Task::Check { short } => check::check(short),
        Task::Bench { name, extra } => bench::bench(name, &extra),
        Task::Conformance { settings: false } => conformance::conformance(),
        Task::Conformance { settings: true } => test::settings(),
        Task::Docs => docs::docs(),
        Task::Lists => lists::lists(),
        Task::Machines => test::machines(),
        Task::Soak { extra } => test::soak(&extra),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn a_second_separator_is_passed_on() {
        let words = ["xtask", "test", "--", "--lib", "--", "--nocapture"];
        let arguments = Arguments::try_parse_from(words).expect("valid");
        let Task::Test { extra } = arguments.task else {
            panic!("another task")
        };
        assert_eq!(extra, ["--lib", "--", "--nocapture"]);
    }
}
