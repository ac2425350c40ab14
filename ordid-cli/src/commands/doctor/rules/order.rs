//! The order of keys: whether they have one, the column keeps it, and rows came in it.

use ordid_core::{layout::Comparison, scheme::catalogue};

use super::{
    super::{
        findings::{
            CLUSTERED_V4, Finding, MARIADB_UUID_SWAP, MIXED_SCHEMES, ORDER_LOST, OUT_OF_ORDER,
            RANDOM_INDEX, SWAPPED_BYTES,
        },
        model::{Column, Kind, Table},
        profile::Spelling,
    },
    Context, Found, Key, SAY_AGAIN, bytes_text, day, grouped, is_random, percent, plain,
};
use crate::engine::Engine;

/// Fewer pairs of rows say nothing about their order.
const FEW_PAIRS: usize = 20;

/// Returns the worst that is to be said about the order of a key. The others follow from it.
pub(super) fn finding(context: &Context<'_>, key: &Key<'_>) -> Option<Finding> {
    // Only the first column of a key orders it.
    let leads = key.table.index_of(&key.column.name).is_some();
    if !key.is_own() || key.profile.values == 0 || !leads {
        return None;
    }
    random(context, key)
        .or_else(|| lost(context, key))
        .or_else(|| mixed(context, key))
        .or_else(|| out_of_order(context, key))
}

/// Says how many pages inserts change, where the size of the key's tree is known.
fn changed_pages(context: &Context<'_>, key: &Key<'_>) -> String {
    const INSERTS: f64 = 1_000.0;

    let page = match context.sql.0 {
        Engine::Postgres => 8_192,
        Engine::Sqlite => 4_096,
        _ => 16_384,
    };
    let index = key.table.index_of(&key.column.name);
    let pages = index.and_then(|index| {
        let leaves = index.leaves.as_ref().map(|leaves| leaves.pages);
        leaves.or(index.bytes.map(|bytes| bytes / page))
    });
    let Some(pages) = pages.filter(|pages| *pages >= 32 && key.rows() > 0) else {
        return String::new();
    };
    let count = pages as f64;
    let random = count * (1.0 - (1.0 - 1.0 / count).powf(INSERTS));
    let ordered = (INSERTS * count / key.rows() as f64).max(1.0);
    format!(
        "; 1,000 inserts change about {random:.0} of its {} leaves, where ordered keys change {ordered:.0}",
        grouped(pages)
    )
}

/// Says how full the key's tree is, where somebody knows.
fn fill(key: &Key<'_>) -> String {
    let index = key.table.index_of(&key.column.name);
    let Some(leaves) = index.and_then(|index| index.leaves.as_ref()) else {
        return String::new();
    };
    format!(
        "; its leaves are {:.0} % full, and ordered keys fill {:.0} %",
        leaves.fill * 100.0,
        leaves.ordered_fill * 100.0
    )
}

fn shares(key: &Key<'_>) -> String {
    let shares = key.profile.schemes.iter().map(|share| {
        let part = percent(share.count as f64, key.profile.values as f64);
        match share.times {
            Some((oldest, newest)) => {
                format!(
                    "{part} are {} ({} to {})",
                    share.scheme,
                    day(oldest),
                    day(newest)
                )
            }
            None => format!("{part} are {}", share.scheme),
        }
    });
    shares.collect::<Vec<_>>().join(", ")
}

fn random(context: &Context<'_>, key: &Key<'_>) -> Option<Finding> {
    let random = key
        .profile
        .schemes
        .iter()
        .filter(|share| is_random(share.scheme));
    let count: usize = random.map(|share| share.count).sum();
    let is_most = count * 10 >= key.profile.values * 9;
    let is_clustered = key.is_clustered();
    if count < 2 || count * 10 < key.profile.values || !(is_clustered || is_most) {
        return None;
    }
    let (table, column) = (
        context.sql.table(&key.table.name),
        context.sql.name(&key.column.name),
    );
    let size = key.size();
    let query = context.sql.versions(key.table, key.column);
    if is_clustered {
        let others = key
            .table
            .indexes
            .iter()
            .filter(|index| !index.is_primary)
            .count();
        let again = match others {
            0 => String::new(),
            1 => "; the other index repeats the key".to_owned(),
            others => format!("; the other {others} indexes repeat the key"),
        };
        return Some(key.finding(&CLUSTERED_V4, Found {
            message: format!(
                "random keys order the rows: {}; each insert hits another page of the table",
                shares(key)
            ),
            query,
            cost: format!("{size}{}{}{again}", fill(key), changed_pages(context, key)),
            fix: format!(
                "-- let programs make uuid_v7 for {}: new rows then go to the end, and old ones stay as they are\n{}",
                plain(&column),
                match context.sql.0 {
                    Engine::Sqlite => "VACUUM;".to_owned(),
                    _ => format!("OPTIMIZE TABLE {table};"),
                }
            ),
            ..Found::default()
        }));
    }
    let index = key.table.index_of(&key.column.name)?;
    let bytes = index
        .bytes
        .map(|bytes| format!(", the index has {}", bytes_text(bytes)))
        .unwrap_or_default();
    Some(key.finding(
        &RANDOM_INDEX,
        Found {
            message: format!(
                "random keys: {}; each insert hits another page of the index",
                shares(key)
            ),
            query,
            cost: format!("{size}{bytes}{}{}", fill(key), changed_pages(context, key)),
            fix: format!(
                "-- let programs make uuid_v7 for {}\n{}",
                plain(&column),
                match context.sql.0 {
                    Engine::Postgres => {
                        let index = super::super::model::TableName {
                            name: index.name.clone(),
                            ..key.table.name.clone()
                        };
                        format!("REINDEX INDEX CONCURRENTLY {};", context.sql.table(&index))
                    }
                    Engine::Sqlite => format!("REINDEX {table};"),
                    _ => format!("OPTIMIZE TABLE {table};"),
                }
            ),
            ..Found::default()
        },
    ))
}

/// Returns how the column compares its UUIDs.
fn comparison(context: &Context<'_>, key: &Key<'_>) -> Comparison {
    match (context.sql.0, key.column.kind) {
        (Engine::Mariadb, Kind::Uuid) => Comparison::MariaDbUuid,
        _ => key.profile.swap.unwrap_or(Comparison::Bytes),
    }
}

fn lost(context: &Context<'_>, key: &Key<'_>) -> Option<Finding> {
    let comparison = comparison(context, key);
    let (sql, column) = (context.sql, context.sql.name(&key.column.name));
    let table = sql.table(&key.table.name);
    let query = sql.steps_down(key.table, &key.column.name);
    let query = query.unwrap_or_else(|| sql.versions(key.table, key.column));
    let cost = format!("{}{}", key.size(), fill(key));
    if comparison == Comparison::MariaDbUuid {
        let old = |scheme: &str| {
            key.profile
                .parts
                .iter()
                .filter(|part| part.scheme == scheme)
                .count()
        };
        let swapped: usize = ["uuid_v1", "uuid_v2", "uuid_v3", "uuid_v4", "uuid_v5"]
            .iter()
            .map(|scheme| old(scheme))
            .sum();
        let first = old("uuid_v1");
        let is_mixed = swapped > 0 && swapped < key.profile.values;
        if first * 10 >= key.profile.values || (is_mixed && swapped * 100 >= key.profile.values) {
            return Some(key.finding(&MARIADB_UUID_SWAP, Found {
                message: format!(
                    "{} of {} sampled keys are of versions 1 to 5, which UUID compares from the last group, and the others \
                     from the first: {}",
                    grouped(swapped), grouped(key.profile.values), shares(key)
                ),
                query: sql.versions(key.table, key.column),
                cost,
                fix: format!(
                    "-- let programs make uuid_v7, or store version 1 in BINARY(16) by UUID_TO_BIN's order\n\
                     {SAY_AGAIN}ALTER TABLE {table} MODIFY {column} BINARY(16) NOT NULL;"
                ),
                ..Found::default()
            }));
        }
    }
    let main = key.profile.main()?;
    let orders = catalogue::find(main.scheme)?.orders?;
    if orders.contains(comparison) || is_random(main.scheme) {
        return None;
    }
    let how = comparison.describe();
    if key.profile.swap.is_some() && orders.contains(Comparison::Bytes) {
        let back = |column: &str| match (comparison, sql.0) {
            (Comparison::UuidToBin, Engine::Mysql) => {
                format!("UUID_TO_BIN(BIN_TO_UUID({column}, 1))")
            }
            (Comparison::UuidToBin, _) => parts(sql.0, column, &[(5, 4), (3, 2), (1, 2), (9, 8)]),
            _ => dotnet(sql.0, column),
        };
        let update = |table: &Table, column: &Column| {
            let (table, column) = (sql.table(&table.name), sql.name(&column.name));
            format!("UPDATE {table} SET {column} = {};\n", back(&column))
        };
        let own = update(key.table, key.column);
        // They have to refer to the same rows afterwards.
        let children = context.children(key.table, key.column);
        let children = children
            .into_iter()
            .map(|(table, column)| update(table, column));
        let children: String = children.collect();
        let changes = match (children.is_empty(), sql.0) {
            (true, _) => own,
            (false, Engine::Sqlite) => {
                format!("PRAGMA foreign_keys = OFF;\nBEGIN;\n{own}{children}COMMIT;\n")
            }
            (false, _) => format!(
                "-- drop the foreign keys that refer to it before this, and add them again after it\n{own}{children}"
            ),
        };
        return Some(key.finding(
            &SWAPPED_BYTES,
            Found {
                message: format!(
                    "{} keys are stored with their bytes in another order: the column {how}",
                    main.scheme
                ),
                query,
                cost,
                fix: format!("{changes}-- and let programs write the bytes as they are"),
                ..Found::default()
            },
        ));
    }
    Some(key.finding(
        &ORDER_LOST,
        Found {
            message: format!(
                "{} keys have their time where the column does not look first: it {how}",
                main.scheme
            ),
            query,
            cost,
            fix: format!(
                "-- let programs make {} for {}, which rises in this column\n{}",
                comparison.scheme(),
                plain(&column),
                match sql.is_mysql()
                    && main.scheme == "uuid_v1"
                    && matches!(key.column.kind, Kind::Bytes { .. })
                {
                    true => format!(
                        "UPDATE {table} SET {column} = {}; -- then declare binary16_swapped",
                        parts(sql.0, &column, &[(7, 2), (5, 2), (1, 4), (9, 8)])
                    ),
                    false => format!(
                        "-- old rows: ordid plan \"$DATABASE_URL\" --table {} --to uuid_v7",
                        plain(&key.table.name.to_string())
                    ),
                }
            ),
            ..Found::default()
        },
    ))
}

/// Returns an expression that puts the parts of a value together, each by its first byte and its length.
fn parts(engine: Engine, column: &str, parts: &[(u32, u32)]) -> String {
    let pieces: Vec<String> = parts
        .iter()
        .map(|(from, length)| format!("substr({column}, {from}, {length})"))
        .collect();
    match engine {
        Engine::Postgres => pieces.join(" || "),
        // SQLite makes texts of what it joins.
        Engine::Sqlite => format!("CAST({} AS BLOB)", pieces.join(" || ")),
        _ => format!("CONCAT({})", pieces.join(", ")),
    }
}

/// The first three groups, each backwards.
fn dotnet(engine: Engine, column: &str) -> String {
    let order = [
        (4, 1),
        (3, 1),
        (2, 1),
        (1, 1),
        (6, 1),
        (5, 1),
        (8, 1),
        (7, 1),
        (9, 8),
    ];
    parts(engine, column, &order)
}

fn mixed(context: &Context<'_>, key: &Key<'_>) -> Option<Finding> {
    let known = key.profile.schemes.iter().filter(|share| {
        !matches!(share.scheme, "nil" | "max" | "unknown")
            && share.count * 100 >= key.profile.values
    });
    if known.count() < 2 {
        return None;
    }
    // Text that is no UUID has no version to count.
    let is_uuid = key.profile.spellings.keys().all(|spelling| {
        spelling.is_uuid_text() || matches!(spelling, Spelling::Native | Spelling::Bytes(16))
    });
    let query = match is_uuid {
        true => context.sql.versions(key.table, key.column),
        false => format!("SELECT count(*) FROM {}", context.sql.sampled(key.table)),
    };
    Some(key.finding(
        &MIXED_SCHEMES,
        Found {
            message: format!("keys of several schemes are in one column: {}", shares(key)),
            query,
            cost: key.size(),
            fix: "-- nothing, if programs now make keys of the newest of them".to_owned(),
            ..Found::default()
        },
    ))
}

fn out_of_order(context: &Context<'_>, key: &Key<'_>) -> Option<Finding> {
    let (down, pairs) = key.profile.steps_down?;
    let main = key.profile.main()?;
    if pairs < FEW_PAIRS || down * 10 <= pairs || main.scheme == "unknown" {
        return None;
    }
    let insertion = key.table.insertion.as_ref().ok()?;
    Some(key.finding(&OUT_OF_ORDER, Found {
        message: format!(
            "{} of {} rows ({}) have a {} key below that of the row inserted before them, by {}",
            grouped(down),
            grouped(pairs),
            percent(down as f64, pairs as f64),
            main.scheme,
            insertion.by
        ),
        query: context.sql.steps_down(key.table, &key.column.name)?,
        cost: format!("{}{}", key.size(), fill(key)),
        fix: format!(
            "-- make keys by a generator that counts within the millisecond, and sort the rows of a statement by {}\n{}",
            plain(&context.sql.name(&key.column.name)),
            match context.sql.0 {
                Engine::Sqlite => "VACUUM;".to_owned(),
                Engine::Postgres => format!("REINDEX TABLE CONCURRENTLY {};", context.sql.table(&key.table.name)),
                _ => format!("OPTIMIZE TABLE {};", context.sql.table(&key.table.name)),
            }
        ),
        ..Found::default()
    }))
}
