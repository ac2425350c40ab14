//! `ordid schemes`: the catalogue.
//!
//! JSON, one document: an object for each scheme, with `scheme`, `system`, `ordered_by`, `broken_by`, `unknown_bits` (bits
//! of the next key that somebody does not know who has seen a key), `has_time_ranges` (whether `ordid range` takes it) and
//! `columns`, each with `engine`, `column`, `sql_type`, `keeps_order` and `source`.

use clap::Args;
use ordid_core::scheme::catalogue::{AnyColumn, CATALOGUE, Entry};
use serde::Serialize;

use crate::{
    failure::{Failure, Outcome},
    output::{self, Output, Style},
    scheme::Named,
};

/// Arguments of `ordid schemes`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Show only this one, with its columns
    #[arg(hide_possible_values = true)]
    scheme: Option<Named>,
}

/// A scheme, in JSON.
#[derive(Serialize)]
struct Row {
    scheme: &'static str,
    system: &'static str,
    ordered_by: &'static str,
    broken_by: &'static str,
    unknown_bits: u32,
    has_time_ranges: bool,
    columns: Vec<Column>,
}

/// A column, in JSON.
#[derive(Serialize)]
struct Column {
    engine: &'static str,
    column: &'static str,
    sql_type: &'static str,
    keeps_order: bool,
    source: &'static str,
}

impl Row {
    fn of(entry: &'static Entry) -> Self {
        let column = |column: AnyColumn| Column {
            engine: column.dialect,
            column: column.name,
            sql_type: column.sql_type,
            keeps_order: column.keeps_order_of(entry),
            source: column.source,
        };
        Self {
            scheme: entry.name,
            system: entry.system,
            ordered_by: entry.ordered_by,
            broken_by: entry.broken_by,
            unknown_bits: entry.unknown_bits,
            has_time_ranges: entry.has_ranges(),
            columns: entry.columns().into_iter().map(column).collect(),
        }
    }
}

impl Arguments {
    /// Prints the catalogue, or a scheme of it.
    ///
    /// # Errors
    ///
    /// The output cannot be written.
    pub(crate) fn run(self, output: &mut Output) -> Result<Outcome, Failure> {
        let rows = CATALOGUE.iter().filter(|entry| match self.scheme {
            Some(Named(wanted)) => entry.name == wanted.name,
            None => true,
        });
        let rows: Vec<Row> = rows.map(Row::of).collect();
        match &rows[..] {
            _ if output.is_json() => output.json(&rows)?,
            [row] => one(row, output)?,
            rows => {
                let mut table = output::table(&["scheme", "system", "ordered by", "broken by"]);
                for row in rows {
                    table.add_row([row.scheme, row.system, row.ordered_by, row.broken_by]);
                }
                output.table(&table)?;
            }
        }
        Ok(Outcome::Fine)
    }
}

fn one(row: &Row, output: &mut Output) -> Result<(), Failure> {
    output.line(&output.paint(Style::Bold, row.scheme))?;
    for (name, value) in [
        ("system", row.system),
        ("ordered by", row.ordered_by),
        ("broken by", row.broken_by),
    ] {
        output.line(&format!("  {name:<11}{value}"))?;
    }
    output.line(&format!(
        "  unknown    {} bits of the next key",
        row.unknown_bits
    ))?;
    let ranges = match row.has_time_ranges {
        true => "yes: `ordid range` gives the keys of some time",
        false => "no: its keys are not ordered by a time in them",
    };
    output.line(&format!("  by time    {ranges}"))?;
    let mut table = output::table(&["engine", "column", "type", "order"]);
    for column in &row.columns {
        let order = if column.keeps_order { "kept" } else { "lost" };
        table.add_row([column.engine, column.column, column.sql_type, order]);
    }
    output.table(&table)
}
