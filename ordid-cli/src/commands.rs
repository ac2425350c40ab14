//! The commands: a file for each.

use clap::Subcommand;

use crate::{
    failure::{Failure, Outcome},
    output::Output,
};

mod doctor;
mod schemes;

/// A command.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Examine the keys of a live database, and say what is wrong with them; nothing is changed
    Doctor(doctor::Arguments),
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
            Self::Doctor(arguments) => arguments.run(output),
            Self::Schemes(arguments) => arguments.run(output),
        }
    }
}
