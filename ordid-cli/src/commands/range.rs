//! `ordid range`: the keys of some time.
//!
//! JSON, one document: `scheme`, `from`, `to` (RFC 3339), `engine` and `column` or null, `ranges` with `lowest`, `highest`
//! and `end` (the first key that is not in the range; null if the times end there), `where` or null.

use std::ops::Range;

use clap::Args;
use ordid_core::{
    clock::Timestamp,
    scheme::catalogue::{AnyColumn, AnyKey, Entry},
};
use serde::Serialize;

use crate::{
    engine::Engine,
    failure::{Failure, Outcome},
    output::Output,
    scheme::{Known, Named, column_names, ordered_column},
    time,
};

/// Arguments of `ordid range`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The scheme of the keys; `ordid schemes` lists them
    #[arg(hide_possible_values = true)]
    scheme: Named,
    /// The first moment
    #[arg(value_parser = time::parse, allow_hyphen_values = true, long_help = time::help!("The first moment"))]
    from: Timestamp,
    /// The moment at which it ends, which is not in it
    #[arg(value_parser = time::parse, allow_hyphen_values = true, long_help = time::help!("The moment at which it ends, which is not in it"))]
    to: Timestamp,
    /// Write the condition of a query for this engine, too
    #[arg(long)]
    engine: Option<Engine>,
    /// The column's type, as in `#[ordid(sqlx(mysql = binary16))]`; without it the first that keeps the order
    #[arg(long, requires = "engine", value_parser = Known(column_names), hide_possible_values = true)]
    column: Option<String>,
    /// The name of the table's column
    #[arg(long, default_value = "id")]
    name: String,
}

/// A range, in JSON.
#[derive(Serialize)]
struct Keys {
    lowest: String,
    highest: String,
    end: String,
}

/// The answer, in JSON.
#[derive(Serialize)]
struct Answer {
    scheme: &'static str,
    from: String,
    to: String,
    engine: Option<Engine>,
    column: Option<&'static str>,
    ranges: Vec<Keys>,
    r#where: Option<String>,
}

impl Arguments {
    /// Prints the range.
    ///
    /// # Errors
    ///
    /// The scheme's keys are not ordered by time, the times do not fit, or the column loses the order.
    pub(crate) fn run(self, output: &mut Output) -> Result<Outcome, Failure> {
        let scheme = self.scheme.0;
        if self.from >= self.to {
            return Err(Failure::wrong(format_args!(
                "the range ends at {}, which is not after {}",
                self.to, self.from
            )));
        }
        let column = match self.engine {
            None => None,
            Some(engine) => Some(ordered_column(scheme, engine, self.column.as_deref())?),
        };
        let ranges = ranges(scheme, self.from..self.to)?;
        let condition = column
            .map(|column| condition(&column, &self.name, &ranges))
            .transpose()?;
        if output.is_json() {
            let keys = ranges.into_iter().map(|(range, highest)| Keys {
                lowest: range.start.to_string(),
                highest: highest.to_string(),
                end: range.end.to_string(),
            });
            output.json(&Answer {
                scheme: scheme.name,
                from: self.from.to_string(),
                to: self.to.to_string(),
                engine: self.engine,
                column: column.map(|column| column.name),
                ranges: keys.collect(),
                r#where: condition,
            })?;
            return Ok(Outcome::Fine);
        }
        for (number, (range, highest)) in ranges.iter().enumerate() {
            if ranges.len() > 1 {
                output.line(&format!("bucket  {number}"))?;
            }
            output.line(&format!("lowest  {}", range.start))?;
            output.line(&format!("highest {highest}"))?;
            output.line(&format!("end     {} (not in it)", range.end))?;
        }
        if let Some(condition) = condition {
            output.line(&format!("WHERE {condition}"))?;
        } else if !scheme.columns().iter().any(|it| it.keeps_order_of(scheme)) {
            output.line("note    no column of any engine compares these keys by their time")?;
        }
        Ok(Outcome::Fine)
    }
}

/// Returns the ranges, each with its highest key.
fn ranges(
    scheme: &'static Entry,
    times: Range<Timestamp>,
) -> Result<Vec<(Range<AnyKey>, AnyKey)>, Failure> {
    let without = || {
        Failure::wrong(format_args!(
            "keys of {} are not ordered by a time in them; the table needs a column with the time",
            scheme.name
        ))
    };
    // The last millisecond: the end's is not in it.
    let last = Timestamp::from_unix_millis(times.end.as_unix_millis() - 1);
    let last = last.map_err(Failure::wrong)?;
    let ends = format!("{} to {}", times.start, times.end);
    let does_not_fit = |error| {
        Failure::wrong(format_args!(
            "the time from {ends} does not fit keys of {}: {error}",
            scheme.name
        ))
    };
    let ranges = scheme
        .ranges(times)
        .ok_or_else(without)?
        .map_err(does_not_fit)?;
    let highest = scheme
        .highest_at(last)
        .ok_or_else(without)?
        .map_err(Failure::wrong)?;
    Ok(ranges.into_iter().zip(highest).collect())
}

fn condition(
    column: &AnyColumn,
    name: &str,
    ranges: &[(Range<AnyKey>, AnyKey)],
) -> Result<String, Failure> {
    let name = column.quote(name);
    let mut conditions = Vec::with_capacity(ranges.len());
    for (range, _) in ranges {
        let start = column.literal(&range.start).map_err(Failure::wrong)?;
        let end = column.literal(&range.end).map_err(Failure::wrong)?;
        conditions.push(format!("{name} >= {start} AND {name} < {end}"));
    }
    Ok(match &conditions[..] {
        [only] => only.clone(),
        several => format!("({})", several.join(") OR (")),
    })
}
