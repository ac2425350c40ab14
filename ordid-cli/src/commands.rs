//! The commands: a file for each.

use clap::Subcommand;

use crate::{
    failure::{Failure, Outcome},
    output::Output,
};

mod apply;
mod plan;
mod schemes;

/// A command.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// List every scheme: what orders its keys, and what breaks that order
    Schemes(schemes::Arguments),
    /// Plan the move of a live table, and of all that refer to it, to ordered keys
    Plan(plan::Arguments),
    /// Carry out the plan of a move: begin, resume, roll back or finish it
    Apply(apply::Arguments),
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
            Self::Plan(arguments) => arguments.run(output),
            Self::Apply(arguments) => arguments.run(output),
        }
    }
}
