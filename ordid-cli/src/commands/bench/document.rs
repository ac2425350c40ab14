//! The results of a bench, as JSON and as tables of text.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer, ser::SerializeMap as _};

use super::{
    figures,
    forms::Form,
    key::Key,
    measure::{Load, Plan},
    spread::{Spread, number},
};
use crate::{
    engine::Engine,
    failure::Failure,
    output::{self, Output, Style},
};

/// All that was measured.
#[derive(Debug, Serialize)]
pub(super) struct Document {
    pub(super) engine: Engine,
    pub(super) rows: u32,
    pub(super) width: u32,
    pub(super) batch: u32,
    pub(super) rounds: u32,
    pub(super) cache_bytes: Option<f64>,
    pub(super) written_to: &'static str,
    pub(super) keys: Vec<Measured>,
    pub(super) forms: Vec<Form>,
    #[serde(serialize_with = "map")]
    pub(super) facts: Vec<(String, String)>,
}

/// The measurements of a kind of key.
#[derive(Debug, Serialize)]
pub(super) struct Measured {
    pub(super) key: String,
    pub(super) sql_type: String,
    /// Whether keys rise in the order in which rows are inserted.
    pub(super) is_ordered: bool,
    pub(super) rows_per_second: Spread,
    pub(super) growth: Vec<Point>,
    pub(super) bytes: f64,
    pub(super) index_bytes: Option<f64>,
    pub(super) bytes_per_row: f64,
    pub(super) page_fill_percent: Option<f64>,
    pub(super) written_bytes_per_row: Option<Spread>,
    pub(super) reads: Option<Reads>,
}

/// How fast rows went into a part of a table.
#[derive(Debug, Serialize)]
pub(super) struct Point {
    /// How many rows the table had at the end of the part.
    pub(super) rows: u32,
    pub(super) rows_per_second: Spread,
}

/// How fast rows were read.
#[derive(Debug, Serialize)]
pub(super) struct Reads {
    /// By key, anywhere.
    pub(super) random_per_second: Spread,
    /// By key, of the newest hundredth.
    pub(super) newest_per_second: Spread,
    /// 100 rows that were inserted one after the other.
    pub(super) spans_per_second: Spread,
}

/// Facts are an object in JSON, in their order.
fn map<S: Serializer>(facts: &[(String, String)], serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(facts.len()))?;
    for (name, value) in facts {
        map.serialize_entry(name, value)?;
    }
    map.end()
}

impl Document {
    pub(super) fn new(
        engine: Engine,
        plan: Plan,
        cache_bytes: Option<f64>,
        keys: &[Key],
        loads: &[Vec<Load>],
        forms: Vec<Form>,
        facts: Vec<(String, String)>,
    ) -> Self {
        Self {
            engine,
            rows: plan.rows,
            width: plan.width,
            batch: plan.batch,
            rounds: plan.rounds,
            cache_bytes,
            written_to: figures::what_is_written(engine),
            keys: keys
                .iter()
                .zip(loads)
                .map(|(key, loads)| Measured::new(key, loads, plan.rows))
                .collect(),
            forms,
            facts,
        }
    }

    /// Returns the header and the rows of the table of loads.
    pub(super) fn loads(&self) -> (Vec<&'static str>, Vec<Vec<String>>) {
        let header = vec![
            "key",
            "rows a second",
            "last tenth",
            "MB",
            "bytes a row",
            "page fill %",
            "written a row",
        ];
        let rows = self.keys.iter().map(|it| {
            vec![
                it.key.clone(),
                it.rows_per_second.to_string(),
                it.growth
                    .last()
                    .map_or_else(dash, |last| number(last.rows_per_second.median, 0)),
                number(it.bytes / 1e6, 1),
                number(it.bytes_per_row, 0),
                it.page_fill_percent
                    .map_or_else(dash, |fill| number(fill, 0)),
                it.written_bytes_per_row
                    .map_or_else(dash, |spread| spread.to_string()),
            ]
        });
        (header, rows.collect())
    }

    /// Returns the header and the rows of the table of reads.
    pub(super) fn reads(&self) -> (Vec<&'static str>, Vec<Vec<String>>) {
        let header = vec![
            "key",
            "any row a second",
            "newest rows a second",
            "spans of 100 rows a second",
            "span is read by",
        ];
        let rows = self.keys.iter().map(|it| {
            let cell = |of: fn(&Reads) -> Spread| {
                it.reads
                    .as_ref()
                    .map_or_else(dash, |reads| of(reads).to_string())
            };
            vec![
                it.key.clone(),
                cell(|reads| reads.random_per_second),
                cell(|reads| reads.newest_per_second),
                cell(|reads| reads.spans_per_second),
                if it.is_ordered {
                    "a range"
                } else {
                    "its 100 keys"
                }
                .to_owned(),
            ]
        });
        (header, rows.collect())
    }

    /// Says whether the tables were larger than what the engine keeps in memory, on which everything depends.
    pub(super) fn cache_note(&self) -> Option<String> {
        let cache = self.cache_bytes?;
        let largest = self.keys.iter().map(|it| it.bytes).fold(0.0, f64::max);
        let [shown, cache_shown] = [largest, cache].map(|bytes| number(bytes / 1e6, 1));
        Some(match largest <= cache {
            true => format!(
                "The largest table has {shown} MB and the engine's cache {cache_shown} MB, so nothing had to be read from \
                 disk. Random keys cost more once a table outgrows the cache: try --rows {}.",
                self.rows_beyond(cache, largest)
            ),
            false => format!(
                "The largest table has {shown} MB and the engine's cache {cache_shown} MB: it does not fit."
            ),
        })
    }

    /// Says why the fill of pages is unknown.
    pub(super) fn fill_note(&self) -> Option<&'static str> {
        let is_unknown = self.keys.iter().all(|it| it.page_fill_percent.is_none());
        (is_unknown && self.engine == Engine::Postgres).then_some(
            "How full the pages are is not known: PostgreSQL tells it where the extension pgstattuple is installed, to those \
             who have the role pg_stat_scan_tables.",
        )
    }

    /// Returns a round number of rows that make a table of four times the cache.
    fn rows_beyond(&self, cache: f64, largest: f64) -> String {
        let wanted = 4.0 * cache / largest.max(1.0) * f64::from(self.rows);
        let magnitude = 10_f64.powf(wanted.log10().floor());
        let rows = (wanted / magnitude).ceil() * magnitude;
        format!("{:.0}", rows.min(1e8))
    }

    /// Writes it as text.
    pub(super) fn print(&self, output: &mut Output) -> Result<(), Failure> {
        let title = self.title();
        output.line(&output.paint(Style::Bold, &title))?;
        output.line("")?;
        print_table(output, self.loads())?;
        output.line("")?;
        print_table(output, self.reads())?;
        output.line("")?;
        let rows = self
            .forms
            .iter()
            .map(|form| form.cells().to_vec())
            .collect();
        print_table(
            output,
            (
                vec!["form in memory", "ns a key, sorting", "ns a comparison"],
                rows,
            ),
        )?;
        output.line("")?;
        if let Some(note) = self.cache_note() {
            output.line(&note)?;
        }
        if let Some(note) = self.fill_note() {
            output.line(note)?;
        }
        output.line(&format!(
            "{} a statement and transaction; medians of {}, with the least and the greatest; written: bytes of the {}.",
            plural(self.batch, "row"),
            plural(self.rounds, "round"),
            self.written_to
        ))?;
        output.line("")?;
        for (name, value) in &self.facts {
            output.line(&format!(
                "{} {value}",
                output.paint(Style::Dim, &format!("{name}:"))
            ))?;
        }
        Ok(())
    }

    /// Returns what was measured, in a line.
    pub(super) fn title(&self) -> String {
        format!(
            "What keys cost on {}: {} rows of {} and a key",
            self.engine,
            number(f64::from(self.rows), 0),
            plural(self.width, "byte")
        )
    }
}

/// Returns the number with its noun.
pub(super) fn plural(count: u32, noun: &str) -> String {
    let mark = if count == 1 { "" } else { "s" };
    format!("{} {noun}{mark}", number(f64::from(count), 0))
}

fn dash() -> String {
    "-".to_owned()
}

fn print_table(
    output: &mut Output,
    (header, rows): (Vec<&str>, Vec<Vec<String>>),
) -> Result<(), Failure> {
    let mut table = output::table(&header);
    for column in 1..header.len() {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(comfy_table::CellAlignment::Right);
        }
    }
    table.add_rows(rows);
    for line in table.to_string().lines() {
        output.line(line.trim_end())?;
    }
    Ok(())
}

impl Measured {
    fn new(key: &Key, loads: &[Load], rows: u32) -> Self {
        let rate = |parts: &[(u32, std::time::Duration)]| {
            let rows: u32 = parts.iter().map(|(rows, _)| rows).sum();
            let time: std::time::Duration = parts.iter().map(|(_, time)| *time).sum();
            f64::from(rows) / time.as_secs_f64().max(1e-9)
        };
        let median = |of: fn(&Load) -> f64| Spread::of(loads.iter().map(of)).median;
        let some = |of: fn(&Load) -> Option<f64>| {
            let values: Option<Vec<f64>> = loads.iter().map(of).collect();
            values.map(Spread::of)
        };
        let mut parts: BTreeMap<usize, Vec<(u32, f64)>> = BTreeMap::new();
        for load in loads {
            for (index, part) in load.parts.iter().enumerate() {
                parts
                    .entry(index)
                    .or_default()
                    .push((part.0, rate(&[*part])));
            }
        }
        let mut so_far = 0;
        let growth = parts.into_values().map(|part| {
            so_far += part.first().map_or(0, |(rows, _)| *rows);
            Point {
                rows: so_far,
                rows_per_second: Spread::of(part.into_iter().map(|(_, rate)| rate)),
            }
        });
        let growth = growth.collect();
        let bytes = median(|load| load.figures.bytes);
        let reads: Option<Vec<[f64; 3]>> = loads.iter().map(|load| load.reads).collect();
        Self {
            key: key.name.clone(),
            sql_type: key.sql_type.clone(),
            is_ordered: loads.iter().all(|load| load.is_ordered),
            rows_per_second: Spread::of(loads.iter().map(|load| rate(&load.parts))),
            growth,
            bytes,
            index_bytes: some(|load| load.figures.index_bytes).map(|spread| spread.median),
            bytes_per_row: bytes / f64::from(rows),
            page_fill_percent: some(|load| load.figures.page_fill).map(|spread| spread.median),
            written_bytes_per_row: some(|load| load.figures.written).map(|spread| {
                let [median, min, max] =
                    [spread.median, spread.min, spread.max].map(|bytes| bytes / f64::from(rows));
                Spread { median, min, max }
            }),
            reads: reads.map(|reads| {
                let of = |index: usize| Spread::of(reads.iter().map(|rates| rates[index]));
                Reads {
                    random_per_second: of(0),
                    newest_per_second: of(1),
                    spans_per_second: of(2),
                }
            }),
        }
    }
}
