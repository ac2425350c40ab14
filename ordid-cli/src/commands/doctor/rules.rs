//! The rules: each is written once, for all engines, on the common model.

mod integers;
mod order;
mod references;
mod server;
mod space;
mod tables;
mod texts;
mod values;

use ordid_core::{clock::Timestamp, scheme::catalogue};

use super::{
    findings::{
        Evidence, Finding, MIXED_SPELLINGS, MIXED_STORAGE, NUMERIC_AFFINITY, PADDED_KEY, Rule,
        Severity, TEXT_KEY_COLLATION, TRUNCATED_TEXT, TWO_SPELLINGS,
    },
    model::{Column, Examined, Kind, Storage, Table, Value},
    profile::Profile,
    sql::Sql,
};

/// The database as rules see it.
pub(crate) struct Context<'a> {
    pub(crate) examined: &'a Examined,
    pub(crate) sql: Sql,
    /// Milliseconds since 1970.
    pub(crate) now: i64,
    pub(crate) keys: Vec<Key<'a>>,
}

/// A column of a key, and what is in it.
pub(crate) struct Key<'a> {
    pub(crate) table: &'a Table,
    pub(crate) column: &'a Column,
    /// The column's place in the sample.
    pub(crate) at: usize,
    pub(crate) is_primary: bool,
    pub(crate) is_unique: bool,
    pub(crate) is_reference: bool,
    pub(crate) profile: Profile,
}

impl Key<'_> {
    /// Whether the column is a key of its own table, and not only a reference to another.
    pub(crate) fn is_own(&self) -> bool {
        self.is_primary || self.is_unique
    }

    /// Whether a program or the database makes its values. A unique column may hold addresses, names, or the numbers of
    /// something else, such as microseconds, which look like a layout with another node in each row.
    fn is_of_programs(&self) -> bool {
        match self.column.kind {
            Kind::Integer { .. } => {
                self.column.counter.is_some()
                    || (self.profile.has_few_nodes() && !self.is_spread_out())
            }
            _ => self.profile.is_of_keys(),
        }
    }

    /// Whether the numbers come from all over a range that begins near zero, as random ones do. No layout has keys of its
    /// first days and of these, but those whose epoch is the program's own.
    fn is_spread_out(&self) -> bool {
        let rows = self.table.sample.rows.iter();
        let numbers = rows.filter_map(|row| match row.values[self.at] {
            Value::Integer(number) => Some(number),
            _ => None,
        });
        let (low, high) = (numbers.clone().min(), numbers.max());
        low.zip(high)
            .is_some_and(|(low, high)| low.saturating_mul(16) < high)
    }

    /// Whether the column orders the rows of its table.
    pub(crate) fn is_clustered(&self) -> bool {
        self.table.storage == Storage::Clustered
            && self
                .table
                .primary()
                .and_then(|primary| primary.columns.first())
                .is_some_and(|first| *first == self.column.name)
    }

    /// Returns the rows of the table, or of the sample where nobody knows more.
    pub(crate) fn rows(&self) -> u64 {
        let read = u64::try_from(self.table.sample.rows.len()).unwrap_or(u64::MAX);
        self.table.rows.unwrap_or(read)
    }

    /// Says how large the table is.
    pub(crate) fn size(&self) -> String {
        let rows = rows(self.rows());
        match self.table.bytes {
            Some(bytes) => format!("{rows} in {}", bytes_text(bytes)),
            None => rows,
        }
    }

    /// Makes a finding of it.
    pub(crate) fn finding(&self, rule: &'static Rule, found: Found) -> Finding {
        Finding {
            rule,
            severity: found.severity.unwrap_or(rule.severity),
            table: Some(self.table.name.clone()),
            column: Some(self.column.name.clone()),
            message: found.message,
            evidence: Evidence {
                query: found.query,
                answer: None,
            },
            cost: found.cost,
            fix: found.fix,
            is_rebuild: found.is_rebuild,
        }
    }
}

/// The answer of a rule.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// If it is another one than the rule's.
    pub(crate) severity: Option<Severity>,
    pub(crate) message: String,
    pub(crate) query: String,
    pub(crate) cost: String,
    pub(crate) fix: String,
    /// As of a finding.
    pub(crate) is_rebuild: bool,
}

impl<'a> Context<'a> {
    /// Looks at the keys of all tables.
    pub(crate) fn of(examined: &'a Examined, now: Timestamp) -> Self {
        let mut keys = Vec::new();
        for table in &examined.tables {
            for (at, name) in table.sample.columns.iter().enumerate() {
                let Some(column) = table.column(name) else {
                    continue;
                };
                let is_in = |columns: &[String]| columns.contains(name);
                let key = Key {
                    table,
                    column,
                    at,
                    is_primary: table
                        .primary()
                        .is_some_and(|primary| is_in(&primary.columns)),
                    is_unique: table.indexes.iter().any(|index| {
                        index.is_unique && index.columns.len() == 1 && is_in(&index.columns)
                    }),
                    is_reference: table
                        .references
                        .iter()
                        .any(|reference| is_in(&reference.columns)),
                    profile: Profile::of(examined.engine, column, &table.sample.rows, at, now),
                };
                if key.is_primary || key.is_reference || key.is_of_programs() {
                    keys.push(key);
                }
            }
        }
        Self {
            examined,
            sql: Sql(examined.engine),
            now: i64::try_from(now.as_unix_millis()).unwrap_or(i64::MAX),
            keys,
        }
    }

    /// Returns all findings, the worst first, and by table among equals.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        let mut findings = server::findings(self);
        for key in &self.keys {
            let mut damage = values::findings(self, key);
            damage.extend(texts::finding(self, key));
            // The order of values that are not what they should be means nothing.
            if !damage
                .iter()
                .any(|finding| WITHOUT_ORDER.contains(&finding.rule))
            {
                findings.extend(order::finding(self, key));
            }
            findings.extend(damage);
            findings.extend(integers::findings(self, key));
            findings.extend(space::findings(self, key));
        }
        for table in &self.examined.tables {
            findings.extend(references::findings(self, table));
            findings.extend(tables::findings(self, table));
        }
        findings.sort_by_key(|finding| finding.severity);
        findings
    }

    /// Returns statements that change the type of a column of PostgreSQL, which refuses them for a column that chooses
    /// partitions.
    pub(crate) fn retype(&self, table: &Table, column: &Column, statements: String) -> String {
        let chooses = table.partitioned_by.as_ref();
        match chooses.is_some_and(|columns| columns.contains(&column.name)) {
            true => format!(
                "-- {} chooses the partition of a row, so its type cannot be changed: make a table with the right type beside {}, \
                 copy the rows, and rename both",
                plain(&column.name),
                plain(&table.name.to_string())
            ),
            false => statements,
        }
    }
}

/// The reason why the order of a column's values means nothing.
static WITHOUT_ORDER: [&Rule; 7] = [
    &MIXED_SPELLINGS,
    &MIXED_STORAGE,
    &NUMERIC_AFFINITY,
    &PADDED_KEY,
    &TEXT_KEY_COLLATION,
    &TRUNCATED_TEXT,
    &TWO_SPELLINGS,
];

/// Makes MySQL and MariaDB refuse to cut or replace values, whatever the server's mode is.
pub(crate) const STRICT: &str =
    "SET SESSION sql_mode = CONCAT(@@SESSION.sql_mode, ',STRICT_ALL_TABLES');\n";

/// What `MODIFY` and `CHANGE` of MySQL and MariaDB do not keep by themselves.
pub(crate) const SAY_AGAIN: &str =
    "-- a default and a comment of the column have to stand behind its type, too\n";

/// Whether the keys of a scheme have no order at all.
pub(crate) fn is_random(scheme: &str) -> bool {
    let of_catalogue = catalogue::find(scheme).and_then(|entry| entry.orders);
    of_catalogue == Some(ordid_core::layout::Orders::NONE) || scheme == "uuid_v3"
}

/// Returns a text that stays on its line and does nothing to a terminal, whatever a database calls its tables.
pub(crate) fn plain(text: &str) -> String {
    text.replace(char::is_control, " ")
}

/// Writes a number of rows, with commas.
pub(crate) fn rows(count: u64) -> String {
    match count {
        1 => "1 row".to_owned(),
        count => format!("{} rows", grouped(count)),
    }
}

/// Writes a number with commas.
pub(crate) fn grouped(number: impl std::fmt::Display) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) && digit != '-' && !text.ends_with('-') {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Writes a number of bytes.
pub(crate) fn bytes_text(bytes: u64) -> String {
    let bytes = bytes as f64;
    match bytes {
        _ if bytes < 1e3 => format!("{bytes} bytes"),
        _ if bytes < 1e6 => format!("{:.1} kB", bytes / 1e3),
        _ if bytes < 1e9 => format!("{:.1} MB", bytes / 1e6),
        _ => format!("{:.2} GB", bytes / 1e9),
    }
}

/// Writes a part of a whole as per cent.
pub(crate) fn percent(part: f64, whole: f64) -> String {
    let percent = if whole > 0.0 {
        100.0 * part / whole
    } else {
        0.0
    };
    match percent {
        _ if percent > 0.0 && percent < 1.0 => format!("{percent:.2} %"),
        _ => format!("{percent:.0} %"),
    }
}

/// Writes a time.
pub(crate) fn time(millis: i64) -> String {
    match jiff::Timestamp::from_millisecond(millis) {
        Ok(time) => time.strftime("%Y-%m-%d %H:%M:%SZ").to_string(),
        Err(_) => format!("{millis} ms since 1970"),
    }
}

/// Writes the day of a time.
pub(crate) fn day(millis: i64) -> String {
    time(millis).chars().take(10).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_written_for_people() {
        assert_eq!(plain("a\nDROP TABLE b\x1b[0m"), "a DROP TABLE b [0m");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(-123_456), "-123,456");
        assert_eq!(grouped(999), "999");
        assert_eq!(rows(1), "1 row");
        assert_eq!(bytes_text(16_384), "16.4 kB");
        assert_eq!(percent(1.0, 3.0), "33 %");
        assert_eq!(percent(1.0, 1_000.0), "0.10 %");
        assert_eq!(time(1_767_225_600_000), "2026-01-01 00:00:00Z");
    }
}
