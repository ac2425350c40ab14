//! The commands: a file for each.

use clap::Subcommand;

use crate::{
    failure::{Failure, Outcome},
    output::Output,
};

mod bench;
mod schemes;

/// A command.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Measure what keys cost: load tables of each kind of key, and read from them
    Bench(bench::Arguments),
    /// List every scheme: what orders its keys, and what breaks that order
    Schemes(schemes::Arguments),
}

impl Command {
    /// Runs it.
    ///
    /// # Errors
    ///
    /// Why it could not do its work.
    pub(crate) fn run(self, output: &mut Output) -> Result<Outcome, Failure> {
        match self {
            Self::Bench(arguments) => arguments.run(output),
            Self::Schemes(arguments) => arguments.run(output),
        }
    }
}
