//! Keys as text: their spelling, their collation, and what they take.

use std::collections::HashMap;

use super::{
    super::{
        findings::{
            CHAR_N_KEY, Finding, MIXED_SPELLINGS, Severity, TEXT_KEY_COLLATION, TWO_SPELLINGS,
            UUID_AS_TEXT,
        },
        model::{Compares, Kind, Value},
        profile::Spelling,
    },
    Context, Found, Key, SAY_AGAIN, STRICT, bytes_text, grouped, plain,
};
use crate::engine::Engine;

/// Returns the worst that is to be said about the text of a key: one remedy ends all of it.
pub(super) fn finding(context: &Context<'_>, key: &Key<'_>) -> Option<Finding> {
    if !key.is_own() || key.profile.values == 0 || !matches!(key.column.kind, Kind::Text { .. }) {
        return None;
    }
    let spelt = match key.profile.is_uuid_text() {
        true => two_spellings(context, key).or_else(|| mixed_spellings(context, key)),
        false => None,
    };
    spelt
        .or_else(|| char_n(context, key))
        .or_else(|| collation(context, key))
        .or_else(|| uuid_as_text(context, key))
}

/// Returns an expression that spells a UUID in one way only.
fn one_spelling(context: &Context<'_>, key: &Key<'_>) -> String {
    let column = context.sql.name(&key.column.name);
    format!("lower(replace({column}, '-', ''))")
}

fn two_spellings(context: &Context<'_>, key: &Key<'_>) -> Option<Finding> {
    let mut seen: HashMap<uuid::Uuid, &str> = HashMap::new();
    let (mut twice, mut example) = (0, None);
    for row in &key.table.sample.rows {
        if let Value::Text(text) = &row.values[key.at]
            && let Ok(uuid) = uuid::Uuid::parse_str(text)
            && let Some(other) = seen.insert(uuid, text)
            && other != text
        {
            twice += 1;
            example.get_or_insert((other, &**text));
        }
    }
    let (first, second) = example?;
    let (table, spelling) = (
        context.sql.table(&key.table.name),
        one_spelling(context, key),
    );
    Some(key.finding(&TWO_SPELLINGS, Found {
        message: format!("UUIDs that are in two rows: {}, such as {first} and {second}", grouped(twice)),
        query: format!(
            "SELECT {spelling} AS uuid, count(*) FROM {} GROUP BY 1 HAVING count(*) > 1 ORDER BY 1 LIMIT 5",
            context.sql.sampled(key.table)
        ),
        cost: format!("{} of {} sampled rows are one too many", grouped(twice), grouped(key.profile.values)),
        fix: format!(
            "-- join the rows that are one, such as those of\n\
             SELECT * FROM {table} WHERE {spelling} IN (SELECT {spelling} FROM {table} GROUP BY {spelling} HAVING count(*) > 1);\n{}",
            native(context, key)
        ).trim_end().to_owned(),
        is_rebuild: context.sql.0 == Engine::Sqlite,
        ..Found::default()
    }))
}

fn mixed_spellings(context: &Context<'_>, key: &Key<'_>) -> Option<Finding> {
    let spellings: Vec<String> = key
        .profile
        .spellings
        .iter()
        .filter(|(spelling, _)| spelling.is_uuid_text())
        .map(|(spelling, count)| format!("{} of {}", grouped(count), spelling.name()))
        .collect();
    if spellings.len() < 2 {
        return None;
    }
    let column = context.sql.name(&key.column.name);
    Some(key.finding(&MIXED_SPELLINGS, Found {
        message: format!("UUIDs are spelt in several ways: {}; another writer may add one again", spellings.join(", ")),
        query: format!(
            "SELECT length({column}) AS characters, {column} = lower({column}){} AS is_lower, count(*) FROM {} \
             GROUP BY 1, 2",
            match context.sql.0 {
                Engine::Sqlite => " COLLATE BINARY",
                _ => "",
            },
            context.sql.sampled(key.table)
        ),
        cost: key.size(),
        fix: native(context, key),
        is_rebuild: context.sql.0 == Engine::Sqlite,
        ..Found::default()
    }))
}

fn char_n(context: &Context<'_>, key: &Key<'_>) -> Option<Finding> {
    let is_char_n = context.sql.0 == Engine::Postgres
        && matches!(
            key.column.kind,
            Kind::Text {
                is_padded: true,
                ..
            }
        );
    if !is_char_n || !key.profile.is_of_keys() {
        return None;
    }
    let (table, column) = (
        context.sql.table(&key.table.name),
        context.sql.name(&key.column.name),
    );
    let value = key
        .table
        .sample
        .rows
        .iter()
        .map(|row| &row.values[key.at])
        .find(|value| **value != Value::Null)?;
    let literal = context.sql.literal(value);
    Some(key.finding(&CHAR_N_KEY, Found {
        message: format!(
            "the key is {}: a parameter of type text does not find its index, and trailing blanks do not count",
            key.column.declared
        ),
        query: format!("EXPLAIN (COSTS OFF) SELECT 1 FROM {table} WHERE {column} = {literal}::text"),
        cost: format!("{}; each look-up with a text parameter reads all of it", key.size()),
        fix: match key.profile.is_uuid_text() {
            true => native(context, key),
            false => context.retype(key.table, key.column, as_bytes(&table, &column)),
        },
        ..Found::default()
    }))
}

fn collation(context: &Context<'_>, key: &Key<'_>) -> Option<Finding> {
    let collation = key.column.collation.as_ref()?;
    let length = key.profile.mixed_case_length()?;
    if collation.compares == Compares::Bytes {
        return None;
    }
    let (severity, what) = match collation.compares {
        Compares::IgnoringCase => (
            Severity::Error,
            "takes two keys that differ in case for one",
        ),
        _ => (
            Severity::Warning,
            "puts letters of both cases beside each other",
        ),
    };
    let (sql, column) = (context.sql, context.sql.name(&key.column.name));
    let table = sql.table(&key.table.name);
    let binary = |name: &str| match sql.0 {
        Engine::Postgres => format!("{name} COLLATE \"C\""),
        Engine::Sqlite => format!("{name} COLLATE BINARY"),
        _ => format!("CAST({name} AS BINARY)"),
    };
    Some(key.finding(&TEXT_KEY_COLLATION, Found {
        severity: Some(severity),
        message: format!(
            "{length} characters of both cases under {}, which {what}; the order of the keys is lost",
            collation.name
        ),
        query: format!(
            "SELECT count(*) FROM (SELECT {column} AS k, lag({column}) OVER (ORDER BY {column}) AS previous FROM {}) AS pairs \
             WHERE {} < {}",
            sql.sampled(key.table),
            binary("k"),
            binary("previous")
        ),
        cost: key.size(),
        fix: match sql.0 {
            Engine::Postgres => context.retype(key.table, key.column, as_bytes(&table, &column)),
            Engine::Sqlite => String::new(),
            _ => format!(
                "{SAY_AGAIN}{STRICT}ALTER TABLE {table} MODIFY {column} CHAR({length}) CHARACTER SET ascii COLLATE ascii_bin NOT NULL;"
            ),
        },
        is_rebuild: sql.0 == Engine::Sqlite,
    }))
}

fn uuid_as_text(context: &Context<'_>, key: &Key<'_>) -> Option<Finding> {
    if !key.profile.is_uuid_text() {
        return None;
    }
    let collation = key.column.collation.as_ref()?;
    let (wide, sql) = (collation.bytes_a_character, context.sql);
    let is_binary = collation.compares == Compares::Bytes;
    let characters = match key.profile.spellings.first_key_value() {
        Some((Spelling::Hex | Spelling::HexUpper, _)) => 32_u64,
        _ => 36,
    };
    let mut traps = Vec::new();
    if !is_binary {
        traps.push(format!("the collation {} is not binary", collation.name));
    }
    if wide > 1 {
        traps.push(format!(
            "a character may take {wide} bytes, so that an entry of an index is reckoned with {}",
            characters * u64::from(wide)
        ));
    }
    if matches!(key.column.kind, Kind::Text { length: Some(length), .. } if u64::from(length) > characters)
    {
        traps.push(format!("{} takes other texts, too", key.column.declared));
    }
    // Every copy of a key: the table, the indexes, and the tables that refer to it.
    let own = match context.sql.is_mysql() {
        true => key.table.indexes.len().max(1),
        false => {
            1 + key
                .table
                .indexes
                .iter()
                .filter(|index| index.columns.contains(&key.column.name))
                .count()
        }
    };
    let own = u64::try_from(own).unwrap_or(1) * key.rows();
    let others = context.examined.tables.iter().flat_map(|table| {
        let refers = table.references.iter().filter(|reference| {
            reference.parent == key.table.name
                && reference.parent_columns.contains(&key.column.name)
        });
        refers.map(|_| table.rows.unwrap_or_default())
    });
    let copies = own + others.sum::<u64>();
    let bytes = copies * (characters - 16);
    let what = if traps.is_empty() {
        String::new()
    } else {
        format!("; {}", traps.join("; "))
    };
    Some(key.finding(
        &UUID_AS_TEXT,
        Found {
            severity: Some(if traps.is_empty() {
                Severity::Note
            } else {
                Severity::Warning
            }),
            message: format!(
                "UUIDs are stored as {characters} characters in {}, where 16 bytes would do{what}",
                key.column.declared
            ),
            query: format!(
                "SELECT length({0}) AS characters, count(*) FROM {1} GROUP BY 1",
                sql.name(&key.column.name),
                sql.sampled(key.table)
            ),
            cost: format!(
                "{}: {} more than as 16 bytes, in {} copies of keys",
                key.size(),
                bytes_text(bytes),
                grouped(copies)
            ),
            fix: native(context, key),
            is_rebuild: sql.0 == Engine::Sqlite,
        },
    ))
}

/// Returns PostgreSQL's statement that makes texts compare as their bytes.
fn as_bytes(table: &str, column: &str) -> String {
    format!("ALTER TABLE {table} ALTER COLUMN {column} TYPE text COLLATE \"C\";")
}

/// Returns the statements that store UUIDs as the engine does best.
fn native(context: &Context<'_>, key: &Key<'_>) -> String {
    let (sql, name) = (context.sql, &key.column.name);
    let (table, column) = (sql.table(&key.table.name), sql.name(name));
    let drop = "-- first drop the foreign keys that refer to it, and change their columns alike\n";
    let target = context.target(key.table, key.column).declared;
    match sql.0 {
        Engine::Postgres => context.retype(
            key.table,
            key.column,
            format!(
                "{drop}ALTER TABLE {table} ALTER COLUMN {column} TYPE {target} USING {column}::{target};"
            ),
        ),
        Engine::Mariadb => {
            let null = if key.column.is_nullable { "" } else { " NOT NULL" };
            // In one statement: a client that goes on after an error would change texts into UUIDs of zeros.
            format!(
                "{drop}{SAY_AGAIN}SET STATEMENT sql_mode = CONCAT(@@SESSION.sql_mode, ',STRICT_ALL_TABLES') FOR ALTER TABLE {table} MODIFY {column} \
                 {target}{null};"
            )
        }
        // The table is built again.
        Engine::Sqlite => String::new(),
        _ => {
            let (new, old) = (
                sql.name(&format!("{name}_new")),
                sql.name(&format!("{name}_old")),
            );
            let index = match key.is_primary {
                true => key.table.primary(),
                false => key.table.index_of(name),
            };
            let (drop_key, add_key) = match index {
                Some(index) if index.is_primary => {
                    ("DROP PRIMARY KEY, ".to_owned(), "ADD PRIMARY KEY".to_owned())
                }
                Some(index) => {
                    let index = sql.name(&index.name);
                    (
                        format!("DROP INDEX {index}, "),
                        format!("ADD UNIQUE {index}"),
                    )
                }
                None => (String::new(), "ADD UNIQUE".to_owned()),
            };
            let columns = index.map_or_else(|| vec![name.clone()], |it| it.columns.clone());
            if columns.iter().any(String::is_empty) {
                let index = index.map_or_else(String::new, |it| plain(&it.name));
                return format!(
                    "{drop}-- the index {index} has a part of a column or an expression: give {} a new column, and make the index again",
                    plain(&table)
                );
            }
            let others: Vec<&str> = (key.table.indexes.iter())
                .filter(|it| it.columns.contains(name) && index.is_none_or(|of| of.name != it.name))
                .map(|it| it.name.as_str())
                .collect();
            let again = match others.is_empty() {
                true => String::new(),
                false => format!(
                    "-- these indexes have the old column then, and have to be made again: {}\n",
                    others.join(", ")
                ),
            };
            // The texts stay: without strict mode, and with a client that goes on after a failed UPDATE, they would be lost.
            format!(
                "{drop}{SAY_AGAIN}{again}{STRICT}ALTER TABLE {table} ADD COLUMN {new} {target};\n\
                 UPDATE {table} SET {new} = UNHEX(REPLACE({column}, '-', ''));\n\
                 ALTER TABLE {table} {drop_key}CHANGE {column} {old} {} NULL, CHANGE {new} {column} {target} NOT NULL, \
                 {add_key} ({});\n\
                 -- once all programs work: ALTER TABLE {} DROP COLUMN {}",
                key.column.declared,
                sql.names(&columns),
                plain(&table),
                plain(&old)
            )
        }
    }
}
