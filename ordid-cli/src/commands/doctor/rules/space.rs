//! Rules about the space that keys take: emptier pages, a second tree.

use super::{
    super::{
        findings::{Finding, NOT_THE_ROWID, SECOND_TREE, SPARSE_PAGES},
        model::{Kind, Storage},
    },
    Context, Found, Key, bytes_text, grouped, is_random, plain,
};
use crate::engine::Engine;

/// How much emptier than ordered keys leave them pages have to be.
const SPARSE: f64 = 0.8;

/// Returns what a key takes too much.
pub(super) fn findings(context: &Context<'_>, key: &Key<'_>) -> Vec<Finding> {
    if !key.is_own() {
        return Vec::new();
    }
    let is_random = key
        .profile
        .main()
        .is_some_and(|main| is_random(main.scheme));
    // Why random keys have empty pages is said where they are found, and so is that they have a second tree.
    // Names come in no order.
    let found = match is_random || !key.profile.is_known() {
        true => [None, None],
        false => [sparse(context, key), second_tree(context, key)],
    };
    found.into_iter().flatten().collect()
}

fn sparse(context: &Context<'_>, key: &Key<'_>) -> Option<Finding> {
    let index = key.table.index_of(&key.column.name)?;
    let (leaves, bytes) = (index.leaves.as_ref()?, index.bytes?);
    if leaves.fill >= leaves.ordered_fill * SPARSE {
        return None;
    }
    let wasted = 1.0 - leaves.fill / leaves.ordered_fill;
    let (sql, table) = (context.sql, context.sql.table(&key.table.name));
    let thousandths = (0..1_000_u64)
        .take_while(|part| *part as f64 / 1_000.0 < wasted)
        .count();
    let wasted_bytes = bytes / 1_000 * u64::try_from(thousandths).unwrap_or_default();
    Some(key.finding(
        &SPARSE_PAGES,
        Found {
            message: format!(
                "the {} leaves of {} are {:.0} % full, where ordered keys fill {:.0} % ({})",
                grouped(leaves.pages),
                index.name,
                leaves.fill * 100.0,
                leaves.ordered_fill * 100.0,
                leaves.source
            ),
            query: leaves.query.clone(),
            cost: format!(
                "{} of {} are empty for no use, in memory, too",
                bytes_text(wasted_bytes),
                bytes_text(bytes)
            ),
            fix: match sql.0 {
                Engine::Postgres => {
                    let name = super::super::model::TableName {
                        name: index.name.clone(),
                        ..key.table.name.clone()
                    };
                    format!("REINDEX INDEX CONCURRENTLY {};", sql.table(&name))
                }
                Engine::Sqlite => "VACUUM;".to_owned(),
                _ => format!("OPTIMIZE TABLE {table};"),
            },
            ..Found::default()
        },
    ))
}

fn second_tree(context: &Context<'_>, key: &Key<'_>) -> Option<Finding> {
    let primary = key.table.primary()?;
    if key.table.storage != Storage::Rowid || !key.is_primary || primary.columns.len() != 1 {
        return None;
    }
    let sql = context.sql;
    let bytes = primary.bytes.map_or("a second tree".to_owned(), |bytes| {
        format!("a second tree of {}", bytes_text(bytes))
    });
    let is_integer = matches!(key.column.kind, Kind::Integer { .. });
    let query = format!(
        "SELECT name, sum(pgsize) FROM dbstat WHERE name IN ({}, {}) GROUP BY 1",
        sql.text(&key.table.name.name),
        sql.text(&primary.name)
    );
    let cost = format!("{}, and {bytes}", key.size());
    if is_integer {
        return Some(key.finding(&NOT_THE_ROWID, Found {
            message: format!("the key is declared {} and not INTEGER: it is not the rowid, and has an index of its own", key.column.declared),
            query,
            cost,
            is_rebuild: true,
            ..Found::default()
        }));
    }
    let user = key.table.definition.as_ref();
    let user = user.and_then(|it| it.rowid_user.as_deref());
    Some(key.finding(&SECOND_TREE, Found {
        message: "the rows are ordered by rowid, and the key has a tree of its own: WITHOUT ROWID needs one".to_owned(),
        query,
        cost,
        fix: user.map_or_else(String::new, |user| {
            format!(
                "-- the table has to keep its rowid, which {} uses: let that use the key, and examine the file again",
                plain(user)
            )
        }),
        is_rebuild: user.is_none(),
        ..Found::default()
    }))
}
