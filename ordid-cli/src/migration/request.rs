//! The request to `plan`, and the answer of an engine's file.

use super::model::{Step, Table};
use crate::failure::Failure;

/// The request to `plan`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'a> {
    /// The table, behind its schema if it is written.
    pub(crate) table: &'a str,
    /// The scheme, and the column behind a colon.
    pub(crate) to: &'a str,
    /// The column that says when a row was made.
    pub(crate) created: Option<&'a str>,
}

impl Request<'_> {
    /// Returns what the table's name may mean: schema and name, each of which may have dots in it.
    pub(crate) fn readings(&self) -> Vec<(Option<&str>, &str)> {
        let dots = self.table.match_indices('.');
        let parts = dots.map(|(at, _)| (Some(&self.table[..at]), &self.table[at + 1..]));
        parts.chain([(None, self.table)]).collect()
    }

    /// The table is not there.
    pub(crate) fn unknown_table(&self, suggestion: String) -> Failure {
        Failure::wrong(format_args!("there is no table {}{suggestion}", self.table))
    }

    /// Schemas and names have dots so that the name fits two tables.
    pub(crate) fn ambiguous(&self) -> Failure {
        Failure::wrong(format_args!(
            "several tables are {}, as their names or schemas have dots in them: rename one of them",
            self.table
        ))
    }

    /// The table cannot be moved, and there is nothing more to find out.
    pub(crate) fn refuse(&self, reason: &str) -> Failure {
        Failure::wrong(format_args!("{} cannot be moved: {reason}", self.table))
    }
}

/// The reasons for which a table is not moved.
#[derive(Debug, Default)]
pub(crate) struct Refusals(Vec<String>);

impl Refusals {
    /// Adds a reason.
    pub(crate) fn add(&mut self, reason: String) {
        if !self.0.contains(&reason) {
            self.0.push(reason);
        }
    }

    /// Refuses the request, if there is a reason.
    pub(crate) fn check(&self, request: &Request<'_>) -> Result<(), Failure> {
        match self.0.is_empty() {
            true => Ok(()),
            false => Err(request.refuse(&self.0.join("; "))),
        }
    }
}

/// The parts of a plan that an engine's file writes.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) schema: Option<String>,
    pub(crate) name: String,
    pub(crate) key: String,
    pub(crate) key_type: String,
    pub(crate) created: Option<String>,
    pub(crate) rows: i64,
    pub(crate) bytes: i64,
    pub(crate) journal: String,
    pub(crate) steps: Vec<Step>,
    pub(crate) undo: Vec<Step>,
    pub(crate) back: Vec<Step>,
    pub(crate) map: Vec<Step>,
    pub(crate) finish: Vec<Step>,
    pub(crate) catalog: Vec<Table>,
    pub(crate) notes: Vec<String>,
    pub(crate) refusals: Refusals,
}
