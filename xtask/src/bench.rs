//! `cargo xtask bench`.

use std::process::{Command, ExitCode};

use crate::check::BENCH;
use crate::run::{self, Result};
use crate::servers::Servers;

/// The benches.
#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
pub(crate) enum Name {
    /// Making keys
    Generate,
    /// Every scheme and text form, beside the crates that make the same
    Schemes,
    /// Encoding and decoding columns in bulk
    Columns,
    /// Planning a unit of work: time and memory
    Plan,
    /// Inserting rows, on the database servers
    Flush,
    /// Inserting rows through Diesel and SeaORM, on the database servers
    Orms,
    /// Mapping UUIDs to integers, on the database servers
    Mapping,
    /// Reserving segments of a count, on every store
    Segments,
    /// Building a crate of 50 entities, without ordid and with it; long
    Compile,
    /// What each key costs in tables that outgrow the cache; long
    Engines,
    /// What others measured of keys, measured again; long
    Sources,
}

impl Name {
    fn program(self) -> &'static str {
        match self {
            Self::Generate => "bench-generate",
            Self::Schemes => "bench-schemes",
            Self::Columns => "bench-columns",
            Self::Plan => "bench-plan",
            Self::Flush => "bench-flush",
            Self::Orms => "bench-orms",
            Self::Mapping => "bench-mapping",
            Self::Segments => "bench-segments",
            Self::Compile => "bench-compile",
            Self::Engines | Self::Sources => "bench-engines",
        }
    }

    /// What the program does, where it does more than one thing.
    fn subcommand(self) -> Option<&'static str> {
        match self {
            Self::Generate
            | Self::Schemes
            | Self::Columns
            | Self::Plan
            | Self::Flush
            | Self::Orms
            | Self::Mapping
            | Self::Segments
            | Self::Compile => None,
            Self::Engines => Some("engines"),
            Self::Sources => Some("sources"),
        }
    }

    /// The servers that the bench uses.
    fn servers(self) -> &'static [&'static str] {
        match self {
            Self::Flush | Self::Orms | Self::Mapping | Self::Engines | Self::Sources => {
                &["postgres", "mariadb"]
            }
            Self::Segments => &["postgres", "mariadb", "redis", "zookeeper"],
            Self::Generate | Self::Schemes | Self::Columns | Self::Plan | Self::Compile => &[],
        }
    }

    /// The programs that the bench runs itself. Each is built by a call of its own: within one
    /// call, Cargo would give all of them the features that any of them asks for.
    fn rounds(self) -> &'static [&'static str] {
        match self {
            Self::Generate => &[
                "round-ordid",
                "round-peers",
                "round-uuid-default",
                "round-uuid-fast-rng",
            ],
            Self::Schemes => &[
                "round-schemes-ordid",
                "round-schemes-peers",
                "round-schemes-text",
                "round-schemes-uuid",
            ],
            Self::Columns
            | Self::Plan
            | Self::Flush
            | Self::Orms
            | Self::Mapping
            | Self::Segments
            | Self::Compile
            | Self::Engines
            | Self::Sources => &[],
        }
    }
}

/// Runs one bench, or in turn all that take minutes.
pub(crate) fn bench(name: Option<Name>, extra: &[String]) -> Result<ExitCode> {
    if !run::root().join(BENCH).exists() {
        return Err(format!("there is no {BENCH}: this checkout has no benches"));
    }
    let names = name.map_or(
        vec![
            Name::Generate,
            Name::Schemes,
            Name::Columns,
            Name::Plan,
            Name::Flush,
            Name::Orms,
            Name::Mapping,
            Name::Segments,
        ],
        |name| vec![name],
    );
    for name in names {
        for package in name.rounds() {
            run::succeed(&mut cargo("build", package))?;
        }
        // Before the servers start: they wait for no compiler.
        run::succeed(&mut cargo("build", name.program()))?;

        let mut command = cargo("run", name.program());
        command.arg("--").args(name.subcommand()).args(extra);
        // No server runs next to a bench that does not use it.
        let servers = match name.servers() {
            [] => None,
            names => Some(Servers::start(names)?),
        };
        if let Some(servers) = &servers {
            servers.export(&mut command);
        }
        let status = run::status(&mut command)?;
        if !status.success() {
            return Ok(run::code(status));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn cargo(verb: &str, package: &str) -> Command {
    let mut command = run::cargo(&[verb, "--release", "--locked", "--quiet"]);
    command.args(["--manifest-path", BENCH, "--package", package]);
    command
}
