//! Rules about single values of a key: damage, padding, times that are still to come.

use super::{
    super::{
        findings::{
            FUTURE_KEY, Finding, MIXED_STORAGE, NIL_KEY, NULLABLE_KEY, NUMERIC_AFFINITY,
            PADDED_KEY, Severity, TRUNCATED_TEXT,
        },
        model::{Kind, Value},
        profile::{FEW, Spelling},
    },
    Context, Found, Key, SAY_AGAIN, STRICT, grouped, percent, plain, time,
};
use crate::engine::Engine;

/// How far clocks may differ, and generators may be ahead of them.
const TOLERANCE_MILLIS: i64 = 60_000;

/// Returns what values tell.
pub(super) fn findings(context: &Context<'_>, key: &Key<'_>) -> Vec<Finding> {
    if !key.is_own() {
        return Vec::new();
    }
    let sqlite = [nullable, affinity, mixed_storage];
    let mut found: Vec<Finding> = match context.sql.0 {
        Engine::Sqlite => sqlite
            .iter()
            .filter_map(|rule| rule(context, key))
            .collect(),
        _ => Vec::new(),
    };
    found.extend(truncated(context, key).or_else(|| padded(context, key)));
    found.extend(nil(context, key));
    found.extend(future(context, key));
    found
}

fn values<'a>(key: &'a Key<'_>) -> impl Iterator<Item = &'a Value> + Clone {
    key.table.sample.rows.iter().map(|row| &row.values[key.at])
}

/// Returns how often values have a spelling that fits.
fn spelt(key: &Key<'_>, fits: impl Fn(Spelling) -> bool) -> usize {
    key.profile
        .spellings
        .iter()
        .filter(|(spelling, _)| fits(**spelling))
        .map(|(_, count)| count)
        .sum()
}

fn is_text(spelling: Spelling) -> bool {
    spelling.is_uuid_text()
        || matches!(
            spelling,
            Spelling::Text | Spelling::MixedCase(_) | Spelling::OneCase(_)
        )
}

fn nullable(context: &Context<'_>, key: &Key<'_>) -> Option<Finding> {
    if !key.is_primary || !key.column.is_nullable {
        return None;
    }
    let nulls = key.profile.nulls;
    let (sql, column) = (context.sql, context.sql.name(&key.column.name));
    Some(key.finding(
        &NULLABLE_KEY,
        Found {
            severity: Some(if nulls > 0 {
                Severity::Error
            } else {
                Severity::Warning
            }),
            message: match nulls {
                0 => "the primary key may be NULL; no sampled row is".to_owned(),
                1 => "the primary key may be NULL, and 1 sampled row is".to_owned(),
                nulls => format!(
                    "the primary key may be NULL, and {} sampled rows are",
                    grouped(nulls)
                ),
            },
            query: format!(
                "SELECT count(*) FROM {} WHERE {column} IS NULL",
                sql.sampled(key.table)
            ),
            cost: format!(
                "{} of {} sampled rows have no key",
                grouped(nulls),
                grouped(nulls + key.profile.values)
            ),
            fix: match nulls {
                0 => String::new(),
                _ => format!(
                    "-- first give keys to the rows that have none: SELECT * FROM {} WHERE {} IS NULL",
                    plain(&sql.table(&key.table.name)),
                    plain(&column)
                ),
            },
            is_rebuild: true,
        },
    ))
}

fn affinity(context: &Context<'_>, key: &Key<'_>) -> Option<Finding> {
    let texts = spelt(key, is_text);
    let numbers = spelt(key, |spelling| {
        matches!(spelling, Spelling::Real | Spelling::Integer)
    });
    let declared = key.column.declared.to_ascii_uppercase();
    let is_meant = ["UUID", "GUID", "STRING", "BINARY"]
        .iter()
        .any(|name| declared.contains(name));
    let is_damaged = numbers > 0 && (texts > 0 || is_meant);
    let is_trap = texts > 0 || (key.profile.values == 0 && is_meant) || is_damaged;
    if key.column.kind != Kind::Numeric || !is_trap {
        return None;
    }
    let (sql, column) = (context.sql, context.sql.name(&key.column.name));
    Some(key.finding(&NUMERIC_AFFINITY, Found {
        severity: Some(if is_damaged { Severity::Error } else { Severity::Warning }),
        message: format!(
            "the type {} makes numbers of texts that look like them: {} values are texts, {} have become numbers",
            key.column.declared, grouped(texts), grouped(numbers)
        ),
        query: format!("SELECT typeof({column}), count(*) FROM {} GROUP BY 1", sql.sampled(key.table)),
        cost: format!("{} of {} sampled keys are lost", grouped(numbers), grouped(key.profile.values)),
        is_rebuild: true,
        ..Found::default()
    }))
}

fn mixed_storage(context: &Context<'_>, key: &Key<'_>) -> Option<Finding> {
    let texts = spelt(key, is_text);
    let blobs = spelt(key, |spelling| matches!(spelling, Spelling::Bytes(_)));
    if texts == 0 || blobs == 0 {
        return None;
    }
    let (sql, column) = (context.sql, context.sql.name(&key.column.name));
    Some(key.finding(&MIXED_STORAGE, Found {
        message: format!(
            "{} keys are texts and {} are blobs: SQLite never finds one by the other, and sorts all texts first",
            grouped(texts), grouped(blobs)
        ),
        query: format!("SELECT typeof({column}), count(*) FROM {} GROUP BY 1", sql.sampled(key.table)),
        cost: format!("{} of {} sampled rows are not found by the other form", grouped(texts.min(blobs)), grouped(key.profile.values)),
        is_rebuild: true,
        ..Found::default()
    }))
}

fn truncated(context: &Context<'_>, key: &Key<'_>) -> Option<Finding> {
    let is_cut = |value: &&Value| match value {
        Value::Bytes(bytes) if bytes.len() == 16 => {
            bytes.iter().enumerate().all(|(at, byte)| match at {
                8 | 13 => *byte == b'-',
                _ => byte.is_ascii_hexdigit(),
            })
        }
        _ => false,
    };
    let cut = values(key).filter(is_cut).count();
    if cut == 0 {
        return None;
    }
    let (sql, column) = (context.sql, context.sql.name(&key.column.name));
    let value = values(key).find(is_cut)?;
    Some(key.finding(&TRUNCATED_TEXT, Found {
        message: format!("{} of {} sampled keys are the first 16 characters of a UUID's text", grouped(cut), grouped(key.profile.values)),
        query: match sql.0 {
            Engine::Postgres => format!("SELECT encode({column}, 'escape') FROM {} WHERE {}", sql.table(&key.table.name), sql.finds(&key.column.name, value)),
            _ => format!("SELECT CAST({column} AS CHAR) FROM {} WHERE {}", sql.table(&key.table.name), sql.finds(&key.column.name, value)),
        },
        cost: format!("the other 64 bits of {} keys are lost; keys of a time become one", grouped(cut)),
        fix: "-- bind keys as bytes, and keep strict mode on\nSET GLOBAL sql_mode = CONCAT(@@GLOBAL.sql_mode, ',STRICT_TRANS_TABLES');".to_owned(),
        ..Found::default()
    }))
}

fn padded(context: &Context<'_>, key: &Key<'_>) -> Option<Finding> {
    let Kind::Bytes {
        fixed: Some(length),
    } = key.column.kind
    else {
        return None;
    };
    let lengths = values(key).filter_map(|value| match value {
        Value::Bytes(bytes) => Some(
            bytes
                .iter()
                .rposition(|byte| *byte != 0)
                .map_or(0, |last| last + 1),
        ),
        _ => None,
    });
    let longest = lengths.max()?;
    let length_of = usize::try_from(length).ok()?;
    if key.profile.values < FEW || longest + 2 > length_of || longest == 0 {
        return None;
    }
    let (table, column) = (
        context.sql.table(&key.table.name),
        context.sql.name(&key.column.name),
    );
    let short = values(key).find_map(|value| match value {
        Value::Bytes(bytes) => Some(Value::Bytes(bytes[..longest].to_vec())),
        _ => None,
    })?;
    Some(key.finding(&PADDED_KEY, Found {
        message: format!("all sampled keys have at most {longest} bytes, and {} pads them with zeros: a key's own bytes do not find it", key.column.declared),
        query: format!("SELECT count(*) FROM {table} WHERE {}", context.sql.finds(&key.column.name, &short)),
        cost: format!("{}, {} bytes of each key are padding", key.size(), length_of - longest),
        fix: format!(
            "{SAY_AGAIN}{STRICT}ALTER TABLE {table} MODIFY {column} VARBINARY({length}) NOT NULL;\n\
             UPDATE {table} SET {column} = LEFT({column}, {longest}) WHERE RIGHT({column}, {0}) = X'{1}';\n\
             ALTER TABLE {table} MODIFY {column} BINARY({longest}) NOT NULL;",
            length_of - longest,
            "00".repeat(length_of - longest)
        ),
        ..Found::default()
    }))
}

fn nil(context: &Context<'_>, key: &Key<'_>) -> Option<Finding> {
    let (nil, max) = (key.profile.count_of("nil"), key.profile.count_of("max"));
    if nil + max == 0 {
        return None;
    }
    let part = key
        .profile
        .parts
        .iter()
        .find(|part| matches!(part.scheme, "nil" | "max"))?;
    let value = &key.table.sample.rows[part.row].values[key.at];
    let (table, condition) = (
        context.sql.table(&key.table.name),
        context.sql.finds(&key.column.name, value),
    );
    Some(key.finding(&NIL_KEY, Found {
        message: format!("the {} UUID is a key: a program has stored what it had not set", part.scheme),
        query: format!("SELECT count(*) FROM {table} WHERE {condition}"),
        cost: format!("{} of {} sampled rows, and whatever refers to them", grouped(nil + max), grouped(key.profile.values)),
        fix: format!("-- give the row a key of its own, where it is one\nSELECT * FROM {table} WHERE {condition};"),
        ..Found::default()
    }))
}

fn future(context: &Context<'_>, key: &Key<'_>) -> Option<Finding> {
    let late = key.profile.parts.iter().filter_map(|part| {
        let millis = part
            .millis
            .filter(|millis| *millis > context.now + TOLERANCE_MILLIS)?;
        Some((millis, part))
    });
    let (millis, latest) = late.clone().max_by_key(|(millis, _)| *millis)?;
    let count = late.count();
    let value = &key.table.sample.rows[latest.row].values[key.at];
    let (table, condition) = (
        context.sql.table(&key.table.name),
        context.sql.finds(&key.column.name, value),
    );
    let column = context.sql.as_text(key.column);
    Some(key.finding(&FUTURE_KEY, Found {
        message: format!(
            "{} of {} sampled keys have a time that is still to come, the latest {}: a clock is ahead, or bytes are not \
             what they seem",
            grouped(count), grouped(key.profile.values), time(millis)
        ),
        query: format!("SELECT {column} FROM {table} WHERE {condition}"),
        cost: format!(
            "{} of the sampled keys: until then new rows stand before them, and queries by time do not find them",
            percent(count as f64, key.profile.values as f64)
        ),
        fix: format!("-- set the clock of the machine that made them, then look at\nSELECT * FROM {table} WHERE {condition};"),
        ..Found::default()
    }))
}
