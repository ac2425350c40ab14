//! Integer keys: when their numbers end, and who made them.

use std::collections::BTreeMap;

use ordid_core::{
    clock::Timestamp,
    scheme::catalogue::{Unknown, detect},
};

use super::{
    super::{
        findings::{COUNTER_MOVED, EPOCH_END, Finding, KEY_SPACE_END, SHARED_NODE, Severity},
        model::{Kind, Value},
        profile::Part,
    },
    Context, Found, Key, SAY_AGAIN, day, grouped, percent, plain,
};
use crate::engine::Engine;

const DAY: i64 = 86_400_000;

/// Sooner than this is an error.
const SOON: i64 = 180 * DAY;

/// Sooner than this is a warning.
const IN_SIGHT: i64 = 730 * DAY;

/// Counters are below, keys with a time above.
const LOWEST_LAYOUT: i128 = 1 << 44;

/// How far the sequences of one millisecond have to be apart to be two writers'.
const APART: u64 = 64;

/// How far the time of a node has to go back in the order of insertion to be another writer's.
const BACK_MILLIS: i64 = 1_000;

/// Returns what is to be said about integers, and other keys whose time ends.
pub(super) fn findings(context: &Context<'_>, key: &Key<'_>) -> Vec<Finding> {
    if !key.is_own() && key.column.counter.is_none() {
        return Vec::new();
    }
    let counter = moved(context, key).or_else(|| key_space(context, key));
    if !key.is_own() {
        return counter.into_iter().collect();
    }
    [counter, epoch(context, key), shared_node(context, key)]
        .into_iter()
        .flatten()
        .collect()
}

fn numbers<'a>(key: &'a Key<'_>) -> impl Iterator<Item = i128> + Clone + 'a {
    key.table
        .sample
        .rows
        .iter()
        .filter_map(|row| match row.values[key.at] {
            Value::Integer(number) => Some(number),
            _ => None,
        })
}

/// Returns what a column's declaration says of NULL.
fn not_null(key: &Key<'_>) -> &'static str {
    if key.column.is_nullable {
        ""
    } else {
        " NOT NULL"
    }
}

/// Whether the keys are of a layout with a time, and not of a counter.
fn has_times(key: &Key<'_>) -> bool {
    key.profile.main().is_some_and(|main| main.times.is_some())
}

fn moved(context: &Context<'_>, key: &Key<'_>) -> Option<Finding> {
    let counter = key.column.counter.as_ref()?;
    let small = numbers(key)
        .filter(|number| *number < LOWEST_LAYOUT)
        .count();
    let large = numbers(key)
        .filter(|number| *number >= LOWEST_LAYOUT)
        .count();
    let is_keyed = has_times(key) && context.sql.0 != Engine::Sqlite;
    let highest = numbers(key).max()?;
    // A counter of its own has given as many as there are rows, more or less.
    let is_mixed = small > 0 && large > 0 && Some(highest) != key.column.kind.highest();
    if large == 0
        || !(is_keyed || is_mixed)
        || counter.last.is_some_and(|last| last < LOWEST_LAYOUT)
    {
        return None;
    }
    let (table, column) = (
        context.sql.table(&key.table.name),
        context.sql.name(&key.column.name),
    );
    Some(key.finding(&COUNTER_MOVED, Found {
        message: format!(
            "{} of {} sampled keys are no numbers of {}: the next one that it gives follows {}",
            grouped(large), grouped(large + small), counter.name, grouped(highest)
        ),
        query: format!("SELECT min({column}), max({column}) FROM {table}"),
        cost: format!("{}; a row without a key gets a number that looks like a key of some time", key.size()),
        fix: match context.sql.0 {
            // A column is numbered as an identity or by a default.
            Engine::Postgres => format!(
                "ALTER TABLE {table} ALTER COLUMN {column} DROP IDENTITY IF EXISTS;\n\
                 ALTER TABLE {table} ALTER COLUMN {column} DROP DEFAULT;\n\
                 ALTER SEQUENCE IF EXISTS {} OWNED BY NONE;",
                counter.name
            ),
            Engine::Sqlite => format!("-- give each row a key: SQLite counts on from {highest}\nSELECT max({column}) FROM {table};"),
            _ => format!("{SAY_AGAIN}ALTER TABLE {table} MODIFY {column} {}{};", key.column.declared, not_null(key)),
        },
        ..Found::default()
    }))
}

/// Returns how many numbers a day were used, from the times of the rows.
fn rate(key: &Key<'_>) -> Option<f64> {
    let points = key
        .table
        .sample
        .rows
        .iter()
        .filter_map(|row| match row.values[key.at] {
            Value::Integer(number) => Some((row.created?, number)),
            _ => None,
        });
    let (first, last) = (points.clone().min()?, points.max()?);
    let days = (last.0 - first.0) as f64 / DAY as f64;
    let numbers = (last.1 - first.1) as f64;
    (days > 0.0 && numbers > 0.0).then(|| numbers / days)
}

fn key_space(context: &Context<'_>, key: &Key<'_>) -> Option<Finding> {
    let counter = key.column.counter.as_ref();
    let of_type = key.column.kind.highest()?;
    let highest = counter.map_or(of_type, |counter| counter.highest.min(of_type));
    let current = counter
        .and_then(|counter| counter.last)
        .max(numbers(key).max())?;
    // Hashes end nowhere. Any integer key of SQLite may be a counter's.
    let is_counted = (counter.is_some() && context.sql.0 != Engine::Sqlite)
        || key
            .profile
            .main()
            .is_some_and(|main| main.scheme == "sequence");
    if has_times(key) || current <= 0 || !is_counted {
        return None;
    }
    let used = current as f64 / highest as f64;
    let left = (highest - current) as f64;
    let rate = rate(key);
    let days = rate.map(|rate| left / rate);
    let severity = match days {
        _ if used >= 0.9 => Severity::Error,
        Some(days) if days < (SOON / DAY) as f64 => Severity::Error,
        Some(days) if days < (IN_SIGHT / DAY) as f64 => Severity::Warning,
        _ if used >= 0.5 => Severity::Warning,
        _ => return None,
    };
    let (table, column) = (
        context.sql.table(&key.table.name),
        context.sql.name(&key.column.name),
    );
    let until = match (rate, days) {
        (Some(rate), Some(days)) => {
            let whole = (0..40_000_i64)
                .take_while(|day| (*day as f64) < days)
                .count();
            let end = context
                .now
                .saturating_add(i64::try_from(whole).unwrap_or(i64::MAX).saturating_mul(DAY));
            format!(
                "at {rate:.0} numbers a day, as the rows' times show, it ends on {}",
                day(end)
            )
        }
        _ => "nobody knows when it ends: no column has the rows' times".to_owned(),
    };
    let what = match counter {
        Some(counter) if counter.highest < of_type => counter.name.clone(),
        _ => key.column.declared.clone(),
    };
    let is_random_next = context.sql.0 == Engine::Sqlite && current == i128::from(i64::MAX);
    let after = if is_random_next {
        "; SQLite now draws random ids"
    } else {
        ""
    };
    Some(key.finding(
        &KEY_SPACE_END,
        Found {
            severity: Some(severity),
            message: format!(
                "{} of {} numbers of {what} are used ({}){after}",
                grouped(current),
                grouped(highest),
                percent(used, 1.0)
            ),
            query: format!("SELECT max({column}) FROM {table}"),
            cost: format!("{} numbers are left; {until}", grouped(highest - current)),
            fix: match (context.sql.0, key.column.kind) {
                (_, Kind::Integer { bits: 64, .. }) if !key.is_primary => {
                    format!(
                        "-- let programs make snowflake for {}: its numbers do not end before 2080",
                        plain(&column)
                    )
                }
                (_, Kind::Integer { bits: 64, .. }) => {
                    format!(
                        "-- ordid plan \"$DATABASE_URL\" --table {} --to uuid_v7",
                        plain(&key.table.name.to_string())
                    )
                }
                (Engine::Postgres, _) => {
                    let sequence = counter.map(|counter| {
                        format!(
                            "\nALTER SEQUENCE {} AS bigint MAXVALUE {};",
                            counter.name,
                            i64::MAX
                        )
                    });
                    let statements = format!(
                        "ALTER TABLE {table} ALTER COLUMN {column} TYPE bigint;{}",
                        sequence.unwrap_or_default()
                    );
                    context.retype(key.table, key.column, statements)
                }
                (_, Kind::Integer { is_signed, .. }) => {
                    let unsigned = if is_signed { "" } else { " UNSIGNED" };
                    let auto = if counter.is_some() {
                        " AUTO_INCREMENT"
                    } else {
                        ""
                    };
                    format!(
                        "{SAY_AGAIN}ALTER TABLE {table} MODIFY {column} BIGINT{unsigned}{}{auto};",
                        not_null(key)
                    )
                }
                _ => String::new(),
            },
            ..Found::default()
        },
    ))
}

fn epoch(context: &Context<'_>, key: &Key<'_>) -> Option<Finding> {
    let main = key.profile.main()?;
    let (oldest, newest) = main.times?;
    let highest = match key.column.kind {
        Kind::Integer {
            bits: 64,
            is_signed: true,
        } => i64::MAX.to_be_bytes().to_vec(),
        Kind::Integer {
            bits: 64,
            is_signed: false,
        } => u64::MAX.to_be_bytes().to_vec(),
        Kind::Bytes { .. }
            if key
                .profile
                .spellings
                .contains_key(&super::super::profile::Spelling::Bytes(12)) =>
        {
            vec![0xff; 12]
        }
        _ => return None,
    };
    let end = end(&highest, main.scheme)?;
    let left = end - context.now;
    if left > IN_SIGHT {
        return None;
    }
    let (table, column) = (
        context.sql.table(&key.table.name),
        context.sql.name(&key.column.name),
    );
    let per_day = u64::try_from(key.profile.values).unwrap_or_default() as f64
        / ((newest - oldest).max(1) as f64 / DAY as f64);
    let of_column = key.column.declared.to_lowercase();
    Some(key.finding(&EPOCH_END, Found {
        severity: Some(if left < SOON { Severity::Error } else { Severity::Warning }),
        message: format!(
            "{} keys in {of_column} end on {}; the newest is of {}",
            main.scheme, day(end), day(newest)
        ),
        query: format!("SELECT max({}) FROM {table}", column),
        cost: format!("{}; {per_day:.0} sampled keys a day: after the end a generator fails or repeats keys", key.size()),
        fix: format!("-- ordid plan \"$DATABASE_URL\" --table {} --to uuid_v7, or give the layout a newer epoch in a new column", plain(&key.table.name.to_string())),
        ..Found::default()
    }))
}

/// Returns the last time that a layout has, in milliseconds since 1970.
fn end(highest: &[u8], scheme: &str) -> Option<i64> {
    let mut highest = highest.to_vec();
    // A layout may leave its top bits unused.
    for _ in 0..4 {
        let read = detect(
            Unknown::Bytes(&highest),
            Timestamp::saturating_from_unix_millis(0),
        );
        let of_scheme = read
            .candidates
            .iter()
            .find(|candidate| candidate.scheme == scheme);
        if let Some(moment) = of_scheme.and_then(|candidate| candidate.moment) {
            return i64::try_from(moment.unix_nanos / 1_000_000).ok();
        }
        let mut carry = 0;
        for byte in &mut highest {
            (*byte, carry) = (*byte >> 1 | carry << 7, *byte & 1);
        }
    }
    None
}

/// The signs of two writers with one node in the values.
#[derive(Default)]
struct Signs {
    /// Keys that are there twice.
    doubled: usize,
    /// Milliseconds of a node with several keys, and those in which the sequences are of two runs.
    ticks: usize,
    split: usize,
    /// How often the time of a node goes back in the order of insertion.
    back: usize,
    example: Option<(u64, i64)>,
}

fn shared_node(context: &Context<'_>, key: &Key<'_>) -> Option<Finding> {
    let main = key.profile.main()?;
    let is_integer = matches!(key.column.kind, Kind::Integer { bits: 64, .. });
    if !is_integer || main.times.is_none() {
        return None;
    }
    let parts = key
        .profile
        .parts
        .iter()
        .filter(|part| part.scheme == main.scheme);
    let signs = signs(key, parts);
    let is_split = key.table.sample.is_whole && signs.split >= 3 && signs.split * 5 >= signs.ticks;
    let is_back = signs.back >= 3;
    if signs.doubled == 0 && !is_split && !is_back {
        return None;
    }
    let (node, millis) = signs.example?;
    let mut seen = Vec::new();
    if signs.doubled > 0 {
        seen.push(format!("{} keys are there twice", grouped(signs.doubled)));
    }
    if is_split {
        seen.push(format!(
            "in {} of {} milliseconds with several keys of a node the sequences are two runs",
            grouped(signs.split),
            grouped(signs.ticks)
        ));
    }
    if is_back {
        seen.push(format!(
            "{} times the time of a node goes back by more than a second in the order of insertion",
            grouped(signs.back)
        ));
    }
    let (table, column) = (
        context.sql.table(&key.table.name),
        context.sql.name(&key.column.name),
    );
    let part = key
        .profile
        .parts
        .iter()
        .find(|part| part.node == Some(node) && part.millis == Some(millis))?;
    let Value::Integer(example) = key.table.sample.rows[part.row].values[key.at] else {
        return None;
    };
    let query = match signs.doubled {
        0 => format!(
            "SELECT {column} FROM {table} WHERE {column} BETWEEN {} AND {} ORDER BY 1 LIMIT 20",
            example - 4_096,
            example + 4_096
        ),
        _ => format!(
            "SELECT {column}, count(*) FROM {table} GROUP BY 1 HAVING count(*) > 1 ORDER BY 1 LIMIT 20"
        ),
    };
    Some(key.finding(&SHARED_NODE, Found {
        severity: Some(if signs.doubled > 0 { Severity::Error } else { Severity::Warning }),
        message: format!(
            "node {node} of {} seems to be two writers': {}. Values cannot prove it: a generator that serves several tables, \
             deleted rows and late transactions look alike",
            main.scheme, seen.join("; ")
        ),
        query,
        cost: format!("{}: two writers draw the same key whenever they make one in the same unit of time", key.size()),
        fix: "-- lease nodes, so that none has two holders: `SqlLease` of ordid-sqlx, or ordid-redis, ordid-zookeeper, ordid-etcd".to_owned(),
        ..Found::default()
    }))
}

fn signs<'a>(key: &Key<'_>, parts: impl Iterator<Item = &'a Part>) -> Signs {
    let mut signs = Signs::default();
    let mut ticks: BTreeMap<(u64, i64), Vec<u64>> = BTreeMap::new();
    let mut placed: Vec<(i128, u64, i64)> = Vec::new();
    for part in parts {
        let (Some(node), Some(millis), Some(counter)) = (part.node, part.millis, part.counter)
        else {
            continue;
        };
        ticks.entry((node, millis)).or_default().push(counter);
        if let Some(place) = key.table.sample.rows[part.row].place {
            placed.push((place, node, millis));
        }
    }
    for (tick, counters) in &mut ticks {
        counters.sort_unstable();
        let doubled = counters
            .windows(2)
            .filter(|pair| pair[0] == pair[1])
            .count();
        let is_split = counters.windows(2).any(|pair| pair[1] - pair[0] > APART);
        signs.doubled += doubled;
        signs.ticks += usize::from(counters.len() > 1);
        signs.split += usize::from(is_split);
        if doubled > 0 || is_split {
            signs.example.get_or_insert(*tick);
        }
    }
    placed.sort_unstable();
    let mut latest: BTreeMap<u64, i64> = BTreeMap::new();
    for (_, node, millis) in placed {
        let last = latest.entry(node).or_insert(millis);
        if millis + BACK_MILLIS < *last {
            signs.back += 1;
            signs.example.get_or_insert((node, millis));
        }
        *last = millis;
    }
    signs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_end_when_their_documentation_says() {
        let day_of = |bytes: &[u8], scheme| end(bytes, scheme).map(day).unwrap_or_default();
        let signed = i64::MAX.to_be_bytes();
        assert_eq!(day_of(&signed, "baidu_uid"), "2024-11-20");
        assert_eq!(day_of(&signed, "snowflake"), "2080-07-10");
        assert_eq!(day_of(&signed, "discord"), "2084-09-06");
        assert_eq!(day_of(&signed, "percona_64"), "2038-01-19");
        assert_eq!(day_of(&[0xff; 12], "object_id"), "2106-02-07");
        assert_eq!(day_of(&signed, "instagram"), "2046-06-27");
    }
}
