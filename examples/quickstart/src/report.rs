//! What the program prints.

use std::{
    fmt::{self, Display, Formatter},
    time::Duration,
};

use ordid::KeyType;
use ordid_sqlx::Flushed;

use crate::{
    data::Orphans,
    database::{Size, TABLES},
};

/// What a run found.
pub(crate) struct Report {
    /// Product, version, and where it is.
    pub(crate) database: String,
    pub(crate) flushed: Flushed,
    /// From the first `CREATE TABLE` to the answer to `COMMIT`.
    pub(crate) elapsed: Duration,
    pub(crate) orphans: Orphans,
    pub(crate) first_keys: Vec<FirstKey>,
    /// Rows whose order was checked.
    pub(crate) checked: usize,
    pub(crate) ordered: Size,
    pub(crate) random: Size,
}

/// One of the first keys of a table, as the database returned it.
pub(crate) struct FirstKey {
    table: &'static str,
    key: String,
    time: String,
}

impl FirstKey {
    pub(crate) fn new<K: KeyType + Display>(table: &'static str, key: K) -> Self {
        let time = key
            .timestamp()
            .and_then(|time| i64::try_from(time.as_unix_millis()).ok())
            .and_then(|millis| jiff::Timestamp::from_millisecond(millis).ok())
            .map_or_else(|| "no time".to_owned(), |time| format!("{time:.3}"));
        Self {
            table,
            key: key.to_string(),
            time,
        }
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "database  {}", self.database)?;
        self.write_tables(f)?;
        self.write_orphans(f)?;
        writeln!(f, "\nfirst keys, and the time in them")?;
        for FirstKey { table, key, time } in &self.first_keys {
            writeln!(f, "  {table:<9} {key}  {time}")?;
        }
        writeln!(
            f,
            "\nORDER BY id equals insertion order: yes ({} rows)",
            grouped(self.checked as u64)
        )?;
        self.write_sizes(f)
    }
}

impl Report {
    fn write_tables(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\ntable          rows  statements     seconds      rows/s"
        )?;
        let mut line = |name: &str, rows: usize, statements: usize, elapsed: Duration| {
            let seconds = elapsed.as_secs_f64();
            let rate = if seconds > 0.0 {
                rows as f64 / seconds
            } else {
                0.0
            };
            writeln!(
                f,
                "{name:<9} {:>9} {statements:>11} {seconds:>11.3} {:>11}",
                grouped(rows as u64),
                grouped_f64(rate)
            )
        };
        let tables = &self.flushed.tables;
        for name in TABLES {
            // A flush does not mention tables that had no rows.
            match tables.iter().find(|table| table.table == name) {
                Some(table) => line(name, table.rows, table.statements, table.elapsed)?,
                None => line(name, 0, 0, Duration::ZERO)?,
            }
        }
        let statements = tables.iter().map(|table| table.statements).sum();
        line("all", self.flushed.rows(), statements, self.elapsed)?;
        writeln!(
            f,
            "(all: from CREATE TABLE to COMMIT, the rows in one transaction)"
        )
    }

    fn write_orphans(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Orphans {
            no_tailnum,
            plane,
            origin,
            dest,
        } = &self.orphans;
        writeln!(
            f,
            "\nflights without a parent, loaded with a NULL reference"
        )?;
        for (count, what) in [
            (no_tailnum, "name no plane"),
            (plane, "name a plane that is not in planes"),
            (origin, "leave from an airport that is not in airports"),
            (dest, "go to an airport that is not in airports"),
        ] {
            writeln!(f, "  {:>7} {what}", grouped(*count as u64))?;
        }
        Ok(())
    }

    fn write_sizes(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\nflights             size, indexes too     tree of keys   page fill"
        )?;
        for (keys, size) in [("uuid_v7", &self.ordered), ("random v4", &self.random)] {
            let fill = 100.0 * size.tree_filled as f64 / (size.tree_bytes.max(1)) as f64;
            writeln!(
                f,
                "{:<18} {:>18} {:>16} {:>9.1} %",
                format!("{keys} keys"),
                mebibytes(size.bytes),
                mebibytes(size.tree_bytes),
                fill
            )?;
        }
        writeln!(
            f,
            "(the same rows and parents, as many rows a statement, in the order of the file;"
        )?;
        writeln!(f, "the tree is {})", self.ordered.tree)
    }
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.2} MiB", bytes as f64 / 1_048_576.0)
}

fn grouped_f64(number: f64) -> String {
    let text = format!("{number:.0}");
    text.parse().map_or(text, grouped)
}

/// Writes 336776 as `336,776`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn digits_stand_in_groups_of_three() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (341_572, "341,572"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(grouped(number), text);
        }
    }
}
