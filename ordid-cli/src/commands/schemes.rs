//! `ordid schemes`: the catalogue.

use clap::Args;
use ordid_core::scheme::catalogue::CATALOGUE;
use serde::Serialize;

use crate::{
    failure::{Failure, Outcome},
    output::{self, Output},
};

/// Arguments of `ordid schemes`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {}

/// A scheme, in JSON.
#[derive(Serialize)]
struct Row {
    scheme: &'static str,
    system: &'static str,
    ordered_by: &'static str,
    broken_by: &'static str,
    unknown_bits: u32,
}

impl Arguments {
    /// Prints the catalogue.
    ///
    /// # Errors
    ///
    /// The output cannot be written.
    pub(crate) fn run(self, output: &mut Output) -> Result<Outcome, Failure> {
        let rows = CATALOGUE.iter().map(|entry| Row {
            scheme: entry.name,
            system: entry.system,
            ordered_by: entry.ordered_by,
            broken_by: entry.broken_by,
            unknown_bits: entry.unknown_bits,
        });
        if output.is_json() {
            output.json(&rows.collect::<Vec<_>>())?;
            return Ok(Outcome::Fine);
        }
        let mut table = output::table(&["scheme", "system", "ordered by", "broken by"]);
        for row in rows {
            table.add_row([row.scheme, row.system, row.ordered_by, row.broken_by]);
        }
        output.line(&table.to_string())?;
        Ok(Outcome::Fine)
    }
}
