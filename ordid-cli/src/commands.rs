//! The commands: a file for each.

use clap::Subcommand;

use crate::{
    failure::{Failure, Outcome},
    output::Output,
};

mod advise;
mod apply;
mod bench;
mod convert;
mod doctor;
mod inspect;
mod new;
mod partition;
mod plan;
mod range;
mod schemes;
mod shell;
mod sql;
mod verify;

/// A command.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Make keys
    New(new::Arguments),
    /// Say which schemes a key may be of, what it tells, and what each engine stores
    Inspect(inspect::Arguments),
    /// Write a key in another form
    Convert(convert::Arguments),
    /// Give the lowest and the highest key of some time, and the condition of a query
    Range(range::Arguments),
    /// Check that keys rise by an engine's rule and that none comes twice
    Verify(verify::Arguments),
    /// List every scheme: what orders its keys, and what breaks that order
    Schemes(schemes::Arguments),
    /// Say which scheme, column and DDL suit an engine, and why
    Advise(advise::Arguments),
    /// Print SQL functions: the time of a key, the lowest and the highest key of a time
    Sql(sql::Arguments),
    /// Examine the keys of a live database, and say what is wrong with them; nothing is changed
    Doctor(doctor::Arguments),
    /// Plan the move of a live table, and of all that refer to it, to ordered keys
    Plan(plan::Arguments),
    /// Carry out the plan of a move: begin, resume, roll back or finish it
    Apply(apply::Arguments),
    /// Make range partitions by the time in the key ahead, and detach old ones (PostgreSQL)
    Partition(partition::Arguments),
    /// Measure what keys cost: load tables of each kind of key, and read from them
    Bench(bench::Arguments),
    /// Print a completion script for a shell
    Completions(shell::Completions),
    /// Write the manual's pages
    Man(shell::Man),
}

impl Command {
    /// Runs it.
    ///
    /// # Errors
    ///
    /// Why it could not do its work.
    pub(crate) fn run(self, output: &mut Output) -> Result<Outcome, Failure> {
        match self {
            Self::New(arguments) => arguments.run(output),
            Self::Inspect(arguments) => arguments.run(output),
            Self::Convert(arguments) => arguments.run(output),
            Self::Range(arguments) => arguments.run(output),
            Self::Verify(arguments) => arguments.run(output),
            Self::Schemes(arguments) => arguments.run(output),
            Self::Advise(arguments) => arguments.run(output),
            Self::Sql(arguments) => arguments.run(output),
            Self::Doctor(arguments) => arguments.run(output),
            Self::Plan(arguments) => arguments.run(output),
            Self::Apply(arguments) => arguments.run(output),
            Self::Partition(arguments) => arguments.run(output),
            Self::Bench(arguments) => arguments.run(output),
            Self::Completions(arguments) => arguments.run(output),
            Self::Man(arguments) => arguments.run(output),
        }
    }
}
