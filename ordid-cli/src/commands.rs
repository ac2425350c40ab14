//! The commands: a file for each.

use clap::Subcommand;

use crate::{
    failure::{Failure, Outcome},
    output::Output,
};

mod schemes;
mod sql;

/// A command.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// List every scheme: what orders its keys, and what breaks that order
    Schemes(schemes::Arguments),
    /// Print SQL functions: the time of a key, the lowest and the highest key of a time
    Sql(sql::Arguments),
}

impl Command {
    /// Runs it.
    ///
    /// # Errors
    ///
    /// Why it could not do its work.
    pub(crate) fn run(self, output: &mut Output) -> Result<Outcome, Failure> {
        match self {
            Self::Schemes(arguments) => arguments.run(output),
            Self::Sql(arguments) => arguments.run(output),
        }
    }
}
