//! Partitions of a table that is known at run time only, for tools. Nothing is sent from here.

use ordid_core::{
    Error,
    clock::Timestamp,
    scheme::catalogue::{AnyColumn, AnyKey, Entry},
    storage::Found,
    uuid::Uuid,
};

use super::{Partition, Period, read_row, text, text::Names};

/// The partitions of a table by the time in its keys, on PostgreSQL 12 or later, for tools: the table, its scheme and its
/// column are known at run time only. Programs take [`Partitions`](super::Partitions), whose statements are the same.
#[derive(Debug, Clone)]
pub struct AnyPartitions {
    schema: String,
    table: String,
    key: String,
    scheme: &'static Entry,
    column: AnyColumn,
    period: Period,
}

impl AnyPartitions {
    /// Takes a table, unquoted, and its key.
    ///
    /// # Errors
    ///
    /// If keys of the scheme are not ordered by time, are spread over buckets, or lose their order in the column: the
    /// error [`is_parse`](Error::is_parse).
    pub fn new(
        schema: impl Into<String>,
        table: impl Into<String>,
        key: impl Into<String>,
        scheme: &'static Entry,
        column: AnyColumn,
        period: Period,
    ) -> Result<Self, Error> {
        if !column.keeps_order_of(scheme) {
            return Err(Error::parse(format!(
                "keys of {} lose their order in a column {} of {}, so no range of it has the keys of a time",
                scheme.name, column.name, column.dialect
            )));
        }
        let partitions = Self {
            schema: schema.into(),
            table: table.into(),
            key: key.into(),
            scheme,
            column,
            period,
        };
        // A time that all layouts have.
        partitions
            .lowest(Timestamp::saturating_from_unix_millis(1_706_000_000_000))
            .map(|_| ())
            .or_else(|error| if error.is_clock() { Ok(()) } else { Err(error) })?;
        Ok(partitions)
    }

    fn names(&self) -> Names<'_> {
        Names {
            schema: Some(&self.schema),
            table: &self.table,
            key: &self.key,
        }
    }

    fn lowest(&self, time: Timestamp) -> Result<AnyKey, Error> {
        let name = self.scheme.name;
        let ranges = self.scheme.ranges(time..time).ok_or_else(|| {
            Error::parse(format!("keys of {name} are not ordered by a time in them"))
        })??;
        match &ranges[..] {
            [range] => Ok(range.start),
            ranges => Err(Error::parse(format!(
                "keys of {name} are spread over {} buckets, so no range of them has the keys of a time",
                ranges.len()
            ))),
        }
    }

    /// Returns the clause that follows the columns in the `CREATE TABLE` of the whole table.
    pub fn partition_by_sql(&self) -> String {
        self.names().partition_by()
    }

    /// Returns the literal of the lowest key behind the partition of a time: its upper bound.
    ///
    /// # Errors
    ///
    /// A time that does not fit the scheme's layout gives an error that [`is_clock`](Error::is_clock).
    pub fn end_sql(&self, time: Timestamp) -> Result<String, Error> {
        let (_, to) = self.period.around(time);
        self.column.literal(&self.lowest(to)?)
    }

    /// Returns the query for the partitions, whose rows [`read`](Self::read) takes.
    pub fn list_sql(&self) -> String {
        self.names().list()
    }

    /// Reads the rows of [`list_sql`](Self::list_sql), and returns the partitions as
    /// [`Partitions::list`](super::Partitions::list) does.
    ///
    /// # Errors
    ///
    /// A bound that is no key of the scheme gives an error that [`is_parse`](Error::is_parse).
    pub fn read(&self, rows: &[String]) -> Result<Vec<Partition>, Error> {
        let time_of = |literal: &str| self.key(literal).ok()?.timestamp();
        let list = rows.iter().map(|row| read_row(row, time_of));
        let mut list = list.collect::<Result<Vec<_>, _>>()?;
        list.sort_by_key(|it| (it.is_default(), it.from, it.to));
        Ok(list)
    }

    /// Reads a key from PostgreSQL's text of it.
    ///
    /// # Errors
    ///
    /// Another text gives an error that [`is_parse`](Error::is_parse), another scheme's key one that
    /// [`is_layout`](Error::is_layout).
    pub fn key(&self, text: &str) -> Result<AnyKey, Error> {
        read_key(self.scheme, &self.column, text)
    }

    /// Returns the partitions of the time and of so many periods after it that are missing: their names, their bounds, and
    /// the script that creates each, as [`Partitions::create_sql`](super::Partitions::create_sql).
    ///
    /// # Errors
    ///
    /// A time that does not fit the scheme's layout gives an error that [`is_clock`](Error::is_clock), and a name that
    /// PostgreSQL would cut off one that [`is_parse`](Error::is_parse).
    pub fn missing(
        &self,
        there: &[Partition],
        now: Timestamp,
        ahead: u32,
    ) -> Result<Vec<(Partition, String)>, Error> {
        let mut missing = Vec::new();
        let mut time = now;
        for _ in 0..=ahead {
            let (from, to) = self.period.around(time);
            let keys = super::text::within(self.lowest(from), self.lowest(to))?;
            let [from_read, to_read] = keys.map(|key| key.and_then(|it| it.timestamp()));
            let read = [from_read.unwrap_or(from), to_read.unwrap_or(to)];
            if !there.iter().any(|it| it.covers(read)) {
                let name = self.names().partition(&self.period.name(from))?;
                let [from_key, to_key] = keys;
                let literal = |key: Option<AnyKey>| {
                    let literal = key.map(|key| self.column.literal(&key));
                    literal.transpose()
                };
                let sql = self
                    .names()
                    .create(&name, &[literal(from_key)?, literal(to_key)?]);
                let partition = Partition {
                    schema: self.schema.clone(),
                    name,
                    from: from_key.map(|_| from),
                    to: to_key.map(|_| to),
                };
                missing.push((partition, sql));
            }
            time = to;
        }
        Ok(missing)
    }

    /// Returns the partitions that end before the last `keep` periods that are over, the oldest first.
    pub fn old<'a>(&self, there: &'a [Partition], now: Timestamp, keep: u32) -> Vec<&'a Partition> {
        let (mut first, _) = self.period.around(now);
        for _ in 0..keep {
            let before = first.as_unix_millis().saturating_sub(1);
            (first, _) = self
                .period
                .around(Timestamp::saturating_from_unix_millis(before));
        }
        // A bound is the time of a key, which a layout of longer steps may have rounded down.
        let old = there.iter();
        old.filter(|it| it.to.is_some_and(|to| to <= first))
            .collect()
    }

    /// Returns the statement that detaches a partition, as [`Partitions::detach_sql`](super::Partitions::detach_sql).
    ///
    /// PostgreSQL before version 14, and any with a default partition, refuse one that `is_concurrent`. Others take an
    /// ACCESS EXCLUSIVE lock on the whole table.
    pub fn detach_sql(&self, partition: &Partition, is_concurrent: bool) -> String {
        let sql = self.names().detach(&partition.schema, &partition.name);
        match is_concurrent {
            true => sql,
            false => sql.trim_end_matches(" CONCURRENTLY").to_owned(),
        }
    }
}

/// Reads a key from PostgreSQL's text of it.
fn read_key(scheme: &'static Entry, column: &AnyColumn, text: &str) -> Result<AnyKey, Error> {
    let refused = || {
        Error::parse(format!(
            "expected a key in a column {}, found {text:?}",
            column.name
        ))
    };
    match column.name {
        "bigint" => column.read(scheme, Found::Integer(text.parse().map_err(|_| refused())?)),
        "uuid" => {
            let uuid = Uuid::try_parse(text).map_err(|_| refused())?;
            column.read(scheme, Found::Bytes(uuid.as_bytes()))
        }
        "bytea" => column.read(scheme, Found::Bytes(&text::hex(text).ok_or_else(refused)?)),
        _ => column.read(scheme, Found::Bytes(text.as_bytes())),
    }
}

#[cfg(test)]
mod tests {
    use ordid_core::scheme::catalogue;

    use super::*;

    fn partitions(scheme: &str, column: &str, period: Period) -> Result<AnyPartitions, Error> {
        let scheme = catalogue::find(scheme).unwrap();
        let columns = scheme.columns().into_iter();
        let mut own = columns.filter(|it| it.dialect == "PostgreSQL" && it.name == column);
        AnyPartitions::new("app", "orders", "id", scheme, own.next().unwrap(), period)
    }

    fn at(text: &str) -> Timestamp {
        let days: u64 = match text {
            "2026-11-25" => 20_782,
            "2026-11-01" => 20_758,
            "2025-01-01" => 20_089,
            _ => unreachable!(),
        };
        Timestamp::from_unix_millis(days * 86_400_000).unwrap()
    }

    /// Snowflakes begin on 4 November 2010.
    #[test]
    fn the_period_in_which_a_layout_begins_has_no_lower_bound() {
        let months = partitions("snowflake", "bigint", Period::Month).unwrap();
        let day = |day: u64| Timestamp::from_unix_millis(day * 86_400_000).unwrap();
        for now in [14_914, 14_920] {
            let missing = months.missing(&[], day(now), 1).unwrap();
            let [(first, sql), (second, _)] = &missing[..] else {
                panic!("two months");
            };
            assert_eq!(first.name, "orders_201011");
            assert_eq!((first.from, first.to), (None, second.from));
            assert!(sql.contains("FOR VALUES FROM (MINVALUE) TO ("), "{sql}");
            assert_eq!(
                months
                    .missing(std::slice::from_ref(first), day(now), 0)
                    .unwrap(),
                []
            );
        }
        assert!(months.missing(&[], day(14_800), 0).unwrap_err().is_clock());
    }

    #[test]
    fn missing_partitions_meet_and_are_read_back_as_there() {
        for (scheme, column) in [
            ("uuid_v7", "uuid"),
            ("snowflake", "bigint"),
            ("ulid", "char26"),
        ] {
            let months = partitions(scheme, column, Period::Month).unwrap();
            let now = at("2026-11-25");
            let missing = months.missing(&[], now, 2).unwrap();
            let names: Vec<&str> = missing.iter().map(|(it, _)| &*it.name).collect();
            assert_eq!(names, ["orders_202611", "orders_202612", "orders_202701"]);
            assert!(
                missing
                    .windows(2)
                    .all(|pair| pair[0].0.to == pair[1].0.from)
            );
            let rows: Vec<String> = missing
                .iter()
                .map(|(partition, sql)| {
                    let bounds = sql.rsplit_once("FOR VALUES ").unwrap().1;
                    let bounds = bounds.split_once(";\n").unwrap().0;
                    let bounds = bounds.replace("::uuid", "").replace("::bigint", "");
                    format!("app\n{}\nFOR VALUES {bounds}", partition.name)
                })
                .collect();
            let there = months.read(&rows).unwrap();
            assert_eq!(there[0].from, Some(at("2026-11-01")));
            assert_eq!(months.missing(&there, now, 2).unwrap(), []);
            assert_eq!(months.missing(&there, now, 3).unwrap().len(), 1);
        }
    }

    #[test]
    fn the_newest_periods_that_are_over_are_kept() {
        let years = partitions("uuid_v7", "uuid", Period::Year).unwrap();
        let there: Vec<Partition> = years
            .missing(&[], at("2025-01-01"), 4)
            .unwrap()
            .into_iter()
            .map(|(partition, _)| partition)
            .collect();
        let old = |keep| -> Vec<&str> {
            let now = Timestamp::from_unix_millis(1_861_920_000_000).unwrap(); // 2029-01-01
            years
                .old(&there, now, keep)
                .iter()
                .map(|it| &*it.name)
                .collect()
        };
        assert_eq!(old(2), ["orders_2025", "orders_2026"]);
        assert_eq!(old(4), [""; 0]);
        assert_eq!(old(0).len(), 4);
    }

    #[test]
    fn schemes_and_columns_without_ranges_of_time_are_refused() {
        let refused = |scheme, column| {
            let error = partitions(scheme, column, Period::Day).unwrap_err();
            assert!(error.is_parse());
            error.to_string()
        };
        assert!(refused("uuid_v1", "uuid").contains("lose their order in a column uuid"));
        assert!(refused("uuid_v7_spread", "uuid").contains("spread over 16 buckets"));
        assert!(refused("sequence", "bigint").contains("are not ordered by a time"));
    }
}
