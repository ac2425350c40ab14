//! Decides which type a key column should have. SQLite's remedy for a wrong type is to build the table again.
//!
//! [`Context::target`] decides for all rules, so that no fix contradicts another. The findings of a table, and of tables
//! that refer to a column whose values change, share one rebuild ([`share`]).
//!
//! The shell `sqlite3` goes on after a failed statement. So a rebuild is one transaction, whose last statement before the
//! COMMIT is a check that rolls back: after any error the file is as it was. The old table stays under another name.

use super::{
    findings::{FOREIGN_KEY_TYPE, Finding, NOT_THE_ROWID},
    model::{Column, Compares, Definition, Kind, Storage, Table, TableName},
    profile::Spelling,
    rules::{Context, Key, is_random, plain},
    sqlite,
};
use crate::{
    engine::Engine,
    migration::sqlite_ddl::{redeclared, without_collation, without_rowid},
};

/// References are followed no further: they may form a circle.
const DEEPEST: usize = 8;

/// The type that a column should have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// The type, as it is declared.
    pub(crate) declared: String,
    /// Whether its UUIDs become 16 bytes.
    has_bytes: bool,
    /// Whether its collation becomes the binary one.
    is_binary: bool,
}

impl Target {
    fn of(declared: &str) -> Self {
        Self {
            declared: declared.to_owned(),
            has_bytes: false,
            is_binary: false,
        }
    }

    fn bytes() -> Self {
        Self {
            has_bytes: true,
            ..Self::of("BLOB")
        }
    }
}

impl<'a> Context<'a> {
    fn key(&self, table: &Table, column: &Column) -> Option<&Key<'a>> {
        self.keys
            .iter()
            .find(|key| key.table.name == table.name && key.column.name == column.name)
    }

    /// Returns the table of this name.
    pub(crate) fn table(&self, name: &TableName) -> Option<&'a Table> {
        // SQLite and some servers take names in any case.
        let same = |table: &&Table| {
            table.name.schema == name.schema && table.name.name.eq_ignore_ascii_case(&name.name)
        };
        let mut tables = self.examined.tables.iter();
        let exact = tables.clone().find(|table| table.name == *name);
        exact.or_else(|| tables.find(same))
    }

    /// Returns the type that a column should have: of a reference, the type of what it refers to.
    pub(crate) fn target(&self, table: &Table, column: &Column) -> Target {
        self.target_within(table, column, DEEPEST)
    }

    fn target_within(&self, table: &Table, column: &Column, depth: usize) -> Target {
        if let Some((parent, key)) = self.parent(table, column)
            && depth > 0
            // Only its declaration says what a parent should be that was not read.
            && (self.sql.0 == Engine::Sqlite || self.key(parent, key).is_some())
        {
            return self.target_within(parent, key, depth - 1);
        }
        match self.sql.0 {
            Engine::Sqlite => self.sqlite_target(table, column),
            engine => {
                let has_uuids = self.key(table, column).is_some_and(|key| {
                    key.is_own()
                        && matches!(column.kind, Kind::Text { .. })
                        && key.profile.is_uuid_text()
                });
                Target::of(match (has_uuids, engine) {
                    (false, _) => &column.declared,
                    (true, Engine::Postgres) => "uuid",
                    (true, Engine::Mariadb) => "UUID",
                    (true, _) => "BINARY(16)",
                })
            }
        }
    }

    /// Returns what a column refers to.
    fn parent(&self, table: &Table, column: &Column) -> Option<(&'a Table, &'a Column)> {
        let mut pairs = table.references.iter().flat_map(|reference| {
            let pairs = reference.columns.iter().zip(&reference.parent_columns);
            pairs.map(move |(child, key)| (reference, child, key))
        });
        let (reference, _, key) = pairs.find(|(_, child, _)| **child == column.name)?;
        let parent = self.table(&reference.parent)?;
        let key = parent.column(key)?;
        let is_itself = parent.name == table.name && key.name == column.name;
        (!is_itself).then_some((parent, key))
    }

    /// Returns the columns that refer to a key by foreign keys.
    pub(super) fn children(&self, table: &Table, column: &Column) -> Vec<(&'a Table, &'a Column)> {
        let all = self.examined.tables.iter();
        let all = all.flat_map(|child| child.columns.iter().map(move |it| (child, it)));
        all.filter(|(child, it)| {
            let parent = self.parent(child, it);
            parent.is_some_and(|it| it.0.name == table.name && it.1.name == column.name)
        })
        .collect()
    }

    fn sqlite_target(&self, table: &Table, column: &Column) -> Target {
        let declared = column.declared.to_ascii_uppercase();
        let is_meant = |names: &[&str]| names.iter().any(|name| declared.contains(name));
        let same = || Target::of(&self.sql.declared(&column.declared));
        let by_name = || match column.kind {
            Kind::Numeric if is_meant(&["UUID", "GUID", "BINARY"]) => Target::bytes(),
            Kind::Numeric if is_meant(&["STRING"]) => Target::of("TEXT"),
            _ => same(),
        };
        if is_almost_the_rowid(table, column) {
            return Target::of("INTEGER");
        }
        let Some(key) = self.key(table, column) else {
            return by_name();
        };
        let profile = &key.profile;
        let count = |fits: fn(&Spelling) -> bool| {
            let fitting = profile
                .spellings
                .iter()
                .filter(|(spelling, _)| fits(spelling));
            fitting.map(|(_, count)| count).sum::<usize>()
        };
        let uuids = count(|spelling| spelling.is_uuid_text());
        let blobs = count(|spelling| matches!(spelling, Spelling::Bytes(_)));
        let texts = uuids
            + count(|spelling| {
                matches!(
                    spelling,
                    Spelling::Text | Spelling::MixedCase(_) | Spelling::OneCase(_)
                )
            });
        let is_text = matches!(column.kind, Kind::Text { .. });
        let is_folded = column
            .collation
            .as_ref()
            .is_some_and(|collation| collation.compares != Compares::Bytes)
            && profile.mixed_case_length().is_some();
        match column.kind {
            Kind::Integer { .. } => same(),
            _ if profile.values == 0 => by_name(),
            _ if texts > 0 && blobs > 0 => Target::bytes(),
            Kind::Numeric if blobs > 0 => Target::bytes(),
            Kind::Numeric if uuids > 0 && profile.is_known() => Target::bytes(),
            _ if profile.is_uuid_text() => Target::bytes(),
            Kind::Numeric if texts > 0 => Target::of("TEXT"),
            _ if is_text && is_folded => Target {
                is_binary: true,
                ..Target::of("TEXT")
            },
            _ => same(),
        }
    }

    /// Whether a rebuild changes the type or the values of a column.
    fn changes(&self, table: &Table, column: &Column) -> bool {
        let target = self.target(table, column);
        let is_bytes = matches!(column.kind, Kind::Bytes { .. });
        let has_texts = self.key(table, column).map_or(!is_bytes, has_uuid_texts);
        let is_kind = std::mem::discriminant(&sqlite::affinity(&target.declared))
            == std::mem::discriminant(&column.kind);
        !is_kind
            || is_almost_the_rowid(table, column)
            || (target.has_bytes && has_texts)
            || (target.is_binary
                && column
                    .collation
                    .as_ref()
                    .is_some_and(|collation| collation.compares != Compares::Bytes))
    }

    /// Returns the key columns that a rebuild changes.
    fn changed(&self, table: &'a Table) -> Vec<&'a Column> {
        let names = table.key_columns();
        let columns = table
            .columns
            .iter()
            .filter(|column| names.contains(&column.name));
        columns
            .filter(|column| self.changes(table, column))
            .collect()
    }

    /// Returns a table and all those that have to be rebuilt with it, as they share columns whose values change.
    fn together(&self, first: &'a Table) -> Vec<&'a Table> {
        let mut found = vec![first];
        let mut at = 0;
        while let Some(table) = found.get(at).copied() {
            let changed = self.changed(table);
            let parents = changed
                .iter()
                .filter_map(|column| self.parent(table, column))
                .filter(|(parent, key)| self.changes(parent, key))
                .map(|(parent, _)| parent);
            let children = self.examined.tables.iter().filter(|child| {
                let mut columns = child.columns.iter();
                columns.any(|column| {
                    self.parent(child, column).is_some_and(|(parent, key)| {
                        parent.name == table.name && changed.contains(&key)
                    }) && self.changes(child, column)
                })
            });
            for other in parents.chain(children) {
                if !found.iter().any(|known| known.name == other.name) {
                    found.push(other);
                }
            }
            at += 1;
        }
        found
    }
}

fn has_uuid_texts(key: &Key<'_>) -> bool {
    let mut spellings = key.profile.spellings.keys();
    spellings.any(|spelling| spelling.is_uuid_text())
}

/// Whether a column would be the rowid if its type were INTEGER.
fn is_almost_the_rowid(table: &Table, column: &Column) -> bool {
    let is_key = table
        .primary()
        .is_some_and(|primary| primary.columns == [column.name.clone()]);
    is_key
        && table.storage == Storage::Rowid
        && !column.is_rowid
        && matches!(column.kind, Kind::Integer { .. })
}

/// Gives each group of tables one rebuild: the first finding has it, and the others say so.
pub(crate) fn share(context: &Context<'_>, findings: &mut [Finding]) {
    let mut done = vec![false; findings.len()];
    for at in 0..findings.len() {
        if done[at] || !findings[at].is_rebuild {
            continue;
        }
        let Some(first) = first(context, &findings[at]) else {
            continue;
        };
        let tables = context.together(first);
        let names: Vec<&TableName> = tables.iter().map(|table| &table.name).collect();
        let group: Vec<usize> = (at..findings.len())
            .filter(|other| {
                let finding = &findings[*other];
                finding.is_rebuild
                    && (*other == at
                        || self::first(context, finding)
                            .is_some_and(|table| names.contains(&&table.name)))
            })
            .collect();
        let members: Vec<&Finding> = group.iter().map(|other| &findings[*other]).collect();
        let mut lines: Vec<String> = Vec::new();
        for member in &members {
            if !member.fix.is_empty() && !lines.contains(&member.fix) {
                lines.push(member.fix.clone());
            }
        }
        lines.push(script(context, &tables, &members));
        let pointer = format!(
            "-- see the fix of {}, {}: one rebuild ends both",
            findings[at].rule.id,
            plain(&super::sarif::place(&findings[at]))
        );
        for other in group {
            done[other] = true;
            findings[other].fix = match other == at {
                true => lines.join("\n"),
                false => pointer.clone(),
            };
        }
    }
}

/// Returns the table that a finding wants to be rebuilt. A reference that is right already waits for its parent.
fn first<'a>(context: &Context<'a>, finding: &Finding) -> Option<&'a Table> {
    let table = context.table(finding.table.as_ref()?)?;
    let column = finding
        .column
        .as_ref()
        .and_then(|column| table.column(column));
    match column {
        Some(column) if finding.rule == &FOREIGN_KEY_TYPE && !context.changes(table, column) => {
            context.parent(table, column).map(|(parent, _)| parent)
        }
        _ => Some(table),
    }
}

/// A table that is built again.
struct Rebuilt<'a> {
    table: &'a Table,
    definition: &'a Definition,
    old: TableName,
    new: TableName,
    create: String,
    columns: Vec<String>,
    values: Vec<String>,
}

/// Returns the statements of a rebuild, or what is to be done by hand.
fn script(context: &Context<'_>, tables: &[&Table], findings: &[&Finding]) -> String {
    let sql = context.sql;
    let mut rebuilt = Vec::new();
    for table in tables {
        match plan(context, table, findings) {
            Ok(plan) => rebuilt.push(plan),
            Err(reason) => {
                return format!(
                    "-- build {} again by hand, as https://sqlite.org/lang_altertable.html says: {}",
                    plain(&table.name.to_string()),
                    plain(&reason)
                );
            }
        }
    }
    let mut lines = Vec::new();
    let has_bytes = rebuilt
        .iter()
        .any(|it| it.values.iter().any(|value| value.contains("unhex(")));
    if has_bytes {
        lines.push("-- needs SQLite 3.41 or later, which has unhex".to_owned());
    }
    lines.push(
        "-- after any error all is as it was; one connection has to send all of it".to_owned(),
    );
    let mut send = |statement: String| lines.push(format!("{statement};"));
    send("PRAGMA foreign_keys = OFF".to_owned());
    send("PRAGMA legacy_alter_table = ON".to_owned());
    send("PRAGMA busy_timeout = 60000".to_owned());
    send(
        "CREATE TEMP TABLE IF NOT EXISTS ordid_check (differences INTEGER \
         CONSTRAINT \"all rows are copied\" CHECK (differences = 0))"
            .to_owned(),
    );
    // It takes no lock, so it cannot fail where another connection writes: what follows is in a transaction.
    send("BEGIN".to_owned());
    let mut differences = Vec::new();
    for it in &rebuilt {
        let (name, old, new) = (
            sql.table(&it.table.name),
            sql.table(&it.old),
            sql.table(&it.new),
        );
        for (kind, other, _) in &it.definition.others {
            send(format!("DROP {} {}", kind.to_uppercase(), sql.name(other)));
        }
        send(format!("ALTER TABLE {name} RENAME TO {old}"));
        send(it.create.clone());
        send(format!(
            "INSERT INTO {new} ({}) SELECT {} FROM {old}",
            it.columns.join(", "),
            it.values.join(", ")
        ));
        send(format!("ALTER TABLE {new} RENAME TO {name}"));
        for (_, _, create) in &it.definition.others {
            send(create.clone());
        }
        let (plain_name, old_name) = (sql.text(&it.table.name.name), sql.text(&it.old.name));
        if it.definition.is_autoincrement {
            send(format!(
                "DELETE FROM sqlite_sequence WHERE name = {plain_name}"
            ));
            send(format!(
                "INSERT INTO sqlite_sequence (name, seq) SELECT {plain_name}, seq FROM sqlite_sequence WHERE name = {old_name}"
            ));
        }
        differences.push(format!(
            "abs((SELECT count(*) FROM {old}) - (SELECT count(*) FROM {name})) + \
             (SELECT count(*) FROM sqlite_master WHERE name = {})",
            sql.text(&it.new.name)
        ));
        if !it.definition.others.is_empty() {
            differences.push(format!(
                "abs({} - (SELECT count(*) FROM sqlite_master WHERE tbl_name = {plain_name} \
                 AND type IN ('index', 'trigger') AND sql IS NOT NULL))",
                it.definition.others.len()
            ));
        }
    }
    // If one of the tables is missing, the next check is an error of its own, and rolls nothing back.
    let there = rebuilt.iter();
    let there = there.flat_map(|it| [&it.old.name, &it.table.name.name]);
    let there: Vec<String> = there.map(|name| sql.text(name)).collect();
    send(format!(
        "INSERT OR ROLLBACK INTO ordid_check SELECT {} - count(*) FROM sqlite_master WHERE type = 'table' AND name IN ({})",
        there.len(),
        there.join(", ")
    ));
    send(format!(
        "INSERT OR ROLLBACK INTO ordid_check SELECT {}",
        differences.join(" + ")
    ));
    send("COMMIT".to_owned());
    send("PRAGMA legacy_alter_table = OFF".to_owned());
    for it in &rebuilt {
        let (name, old) = (
            plain(&sql.table(&it.table.name)),
            plain(&sql.table(&it.old)),
        );
        let holds = match it.table.references.is_empty() {
            true => "",
            false => "; until then its foreign keys still count",
        };
        lines.push(format!(
            "-- compare SELECT (SELECT count(*) FROM {old}), (SELECT count(*) FROM {name}); if both are equal and programs work: DROP TABLE {old}{holds}"
        ));
    }
    lines.join("\n")
}

fn plan<'a>(
    context: &Context<'a>,
    table: &'a Table,
    findings: &[&Finding],
) -> Result<Rebuilt<'a>, String> {
    let sql = context.sql;
    let definition = table
        .definition
        .as_ref()
        .ok_or("its definition is not known")?;
    let (old, new) = (
        free(context, table, "_old", definition),
        free(context, table, "_new", definition),
    );
    let quoted = sql.table(&new);
    let mut create = redeclared(&definition.create, &quoted, &[], "")?;
    let primary = table
        .primary()
        .map(|primary| &primary.columns[..])
        .unwrap_or_default();
    let changed = context.changed(table);
    for column in &table.columns {
        let is_changed = changed.contains(&column);
        let is_key = primary.contains(&column.name) && !column.is_rowid;
        if !(is_changed || is_key && column.is_nullable) {
            continue;
        }
        let target = context.target(table, column);
        let declared = match is_changed {
            true => target.declared,
            false => sql.declared(&column.declared),
        };
        if target.is_binary || target.has_bytes {
            create = without_collation(&create, &column.name)?;
        }
        create = redeclared(
            &create,
            &quoted,
            &[(column.name.clone(), is_key)],
            &declared,
        )?;
    }
    let is_without_rowid = gets_own_tree(context, table, findings);
    if is_without_rowid {
        create = without_rowid(&create);
    }
    let mut columns: Vec<String> = definition.columns.iter().map(|it| sql.name(it)).collect();
    let values = definition.columns.iter().map(|name| {
        let quoted = sql.name(name);
        let Some(column) = changed.iter().find(|column| column.name == *name) else {
            return quoted;
        };
        let key = context.key(table, column);
        // No function is needed if all values were seen and none is a text.
        let has_texts = !table.sample.is_whole || key.is_none_or(has_uuid_texts);
        match context.target(table, column).has_bytes && has_texts {
            true => bytes(key, &quoted),
            false => quoted,
        }
    });
    let mut values: Vec<String> = values.collect();
    // Others may have notes of the rows by their rowids, such as a full-text index.
    let becomes_the_rowid = changed.iter().any(|it| is_almost_the_rowid(table, it));
    if let Some(rowid) = definition.rowid
        && table.storage == Storage::Rowid
        && !is_without_rowid
        && !becomes_the_rowid
    {
        columns.push(rowid.to_owned());
        values.push(rowid.to_owned());
    }
    Ok(Rebuilt {
        columns,
        values,
        table,
        definition,
        old,
        new,
        create,
    })
}

/// Whether the primary key is to order the rows. Random keys had better not, and a table whose rowid is used must not.
fn gets_own_tree(context: &Context<'_>, table: &Table, findings: &[&Finding]) -> bool {
    let Some(primary) = table.primary() else {
        return false;
    };
    let is_about_the_key = |finding: &&Finding| {
        finding.table.as_ref() == Some(&table.name)
            && finding.rule != &FOREIGN_KEY_TYPE
            && finding.rule != &NOT_THE_ROWID
            && finding
                .column
                .as_ref()
                .is_some_and(|column| primary.columns.contains(column))
    };
    let is_random = primary.columns.iter().any(|name| {
        let column = table.column(name);
        let key = column.and_then(|column| context.key(table, column));
        let main = key.and_then(|key| key.profile.main());
        main.is_some_and(|main| is_random(main.scheme))
    });
    let is_integer = primary.columns.iter().any(|name| {
        table
            .column(name)
            .is_some_and(|column| is_almost_the_rowid(table, column))
    });
    let is_rowid_used = (table.definition.as_ref()).is_some_and(|it| it.rowid_user.is_some());
    table.storage == Storage::Rowid
        && !is_rowid_used
        && !is_integer
        && !is_random
        && findings.iter().any(is_about_the_key)
}

/// Returns a name that no table or index has.
fn free(context: &Context<'_>, table: &Table, suffix: &str, definition: &Definition) -> TableName {
    let is_taken = |name: &str| {
        let same = |other: &str| other.eq_ignore_ascii_case(name);
        context
            .examined
            .tables
            .iter()
            .any(|table| same(&table.name.name))
            || definition.taken.iter().any(|other| same(other))
    };
    let mut name = format!("{}{suffix}", table.name.name);
    while is_taken(&name) {
        name.push('_');
    }
    TableName {
        name,
        ..table.name.clone()
    }
}

/// Returns an expression for the 16 bytes of a UUID, and for any other value itself.
fn bytes(key: Option<&Key<'_>>, column: &str) -> String {
    let has_braces = key.is_none_or(|key| key.profile.spellings.contains_key(&Spelling::OtherUuid));
    let digits = match has_braces {
        true => format!(
            "replace(replace(replace(replace(lower({column}), 'urn:uuid:', ''), '{{', ''), '}}', ''), '-', '')"
        ),
        false => format!("replace({column}, '-', '')"),
    };
    format!(
        "CASE WHEN typeof({column}) = 'text' AND length({digits}) = 32 THEN coalesce(unhex({digits}), {column}) ELSE {column} END"
    )
}
