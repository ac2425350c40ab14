//! `ordid range`: the keys of some time.
//!
//! Where the scheme counts time in steps longer than a millisecond, the range has the keys of each step that is in it in
//! part: such a key may have been made in that part.
//!
//! JSON, one document: `scheme`, `from`, `to` (RFC 3339), `engine` and `column` or null, `ranges` with `lowest`, `highest`
//! and `end` (the first key that is not in the range; null if the scheme has none, as its times end there), `where` or null.

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
    #[arg(long, requires = "engine", default_value = "id")]
    name: String,
}

/// A range, in JSON.
#[derive(Serialize)]
struct Keys {
    lowest: String,
    highest: String,
    end: Option<String>,
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
            let keys = ranges.into_iter().map(|range| Keys {
                lowest: range.lowest.to_string(),
                highest: range.highest.to_string(),
                end: range.end.map(|end| end.to_string()),
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
        for (number, range) in ranges.iter().enumerate() {
            if ranges.len() > 1 {
                output.line(&format!("bucket  {number}"))?;
            }
            output.line(&format!("lowest  {}", range.lowest))?;
            output.line(&format!("highest {}", range.highest))?;
            output.line(&match &range.end {
                Some(end) => format!("end     {end} (not in it)"),
                None => "end     none: the scheme has no later time".to_owned(),
            })?;
        }
        if let Some(condition) = condition {
            output.line(&format!("WHERE {condition}"))?;
        } else if !scheme.columns().iter().any(|it| it.keeps_order_of(scheme)) {
            output.line("note    no column of any engine compares these keys by their time")?;
        }
        Ok(Outcome::Fine)
    }
}

/// The keys of some time.
struct KeyRange {
    lowest: AnyKey,
    highest: AnyKey,
    /// The first key of the next time; none if the scheme's times end.
    end: Option<AnyKey>,
}

/// Returns the ranges, one for each bucket.
fn ranges(scheme: &'static Entry, times: Range<Timestamp>) -> Result<Vec<KeyRange>, Failure> {
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
    let lowest_at = |time| scheme.ranges(time..time).ok_or_else(without);
    let lowest = lowest_at(times.start)?.map_err(does_not_fit)?;
    let highest = scheme
        .highest_at(last)
        .ok_or_else(without)?
        .map_err(does_not_fit)?;
    let next = match next_step(&highest, times.end) {
        Some(next) => lowest_at(next)?.ok(),
        None => None,
    };
    let of = |(number, (lowest, highest)): (usize, (Range<AnyKey>, AnyKey))| KeyRange {
        lowest: lowest.start,
        highest,
        end: next.as_ref().map(|next| next[number].start),
    };
    Ok(lowest
        .into_iter()
        .zip(highest)
        .enumerate()
        .map(of)
        .collect())
}

/// Returns the first millisecond behind the step of the highest keys: the end, or later if the step is longer than that.
fn next_step(highest: &[AnyKey], end: Timestamp) -> Option<Timestamp> {
    let moment = highest.first()?.inspect()?.moment?;
    let nanos = moment.unix_nanos + i128::from(moment.tick_nanos);
    let millis = u64::try_from((nanos + 999_999).div_euclid(1_000_000)).ok()?;
    Timestamp::from_unix_millis(millis.max(end.as_unix_millis())).ok()
}

fn condition(column: &AnyColumn, name: &str, ranges: &[KeyRange]) -> Result<String, Failure> {
    let name = column.quote(name);
    let literal = |key: &AnyKey| column.literal(key).map_err(Failure::wrong);
    let mut conditions = Vec::with_capacity(ranges.len());
    for range in ranges {
        let end = match &range.end {
            Some(end) => format!("< {}", literal(end)?),
            None => format!("<= {}", literal(&range.highest)?),
        };
        conditions.push(format!(
            "{name} >= {} AND {name} {end}",
            literal(&range.lowest)?
        ));
    }
    Ok(match &conditions[..] {
        [only] => only.clone(),
        several => format!("({})", several.join(") OR (")),
    })
}

#[cfg(test)]
mod tests {
    use ordid_core::scheme::catalogue::CATALOGUE;

    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_unix_millis(millis).unwrap()
    }

    #[test]
    fn the_range_has_each_key_of_its_times_and_ends_where_the_next_step_begins() {
        // All layouts have these times; Baidu's ends in 2024, and the second one of Sonyflake begins in 2025.
        let times = [1_706_000_000_000, 1_760_000_000_000];
        let mut checked = 0;
        for scheme in CATALOGUE.iter().filter(|entry| entry.has_ranges()) {
            let lowest = |millis| scheme.ranges(at(millis)..at(millis)).unwrap().unwrap();
            let begin = times
                .into_iter()
                .find(|begin| scheme.ranges(at(*begin)..at(*begin)).unwrap().is_ok());
            let begin = begin.unwrap();
            for (from, length) in [(0, 1), (1, 1), (3, 2), (499, 3), (995, 9), (1_007, 1_400)] {
                let (from, to) = (begin + from, begin + from + length);
                for (number, range) in ranges(scheme, at(from)..at(to))
                    .unwrap_or_else(|failure| panic!("{}: {failure:?}", scheme.name))
                    .into_iter()
                    .enumerate()
                {
                    checked += 1;
                    let is_below = |left: &AnyKey, right: &AnyKey| left < right;
                    let end = range.end.expect("a time that is not the last");
                    for millis in from..to {
                        let highest = scheme.highest_at(at(millis)).unwrap().unwrap()[number];
                        assert!(!is_below(&lowest(millis)[number].start, &range.lowest));
                        assert!(is_below(&highest, &end), "{}", scheme.name);
                    }
                    assert!(is_below(&range.highest, &end));
                    assert_eq!(range.lowest, lowest(from)[number].start);
                    // The first later step: nothing lies between the highest key of the last one and its begin.
                    let last = lowest(to - 1)[number].start;
                    let next = (to..).map(|millis| lowest(millis)[number].start);
                    assert_eq!(Some(end), next.into_iter().find(|key| *key != last));
                }
            }
        }
        assert!(checked > 200, "{checked}");
    }

    #[test]
    fn the_last_time_of_a_layout_has_no_end() {
        let scheme = ordid_core::scheme::catalogue::find("object_id").unwrap();
        let end = 4_294_967_296_000;
        let ranges = ranges(scheme, at(end - 1_500)..at(end)).unwrap();
        assert!(ranges[0].end.is_none());
        assert_eq!(ranges[0].lowest.to_string(), "fffffffe0000000000000000");
        let columns = scheme.columns();
        let column = columns.iter().find(|it| it.name == "binary12").unwrap();
        assert!(condition(column, "id", &ranges).unwrap().contains(" <= "));
    }
}
