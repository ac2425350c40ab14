//! Asks the database how a table is partitioned, by which column, and which scheme its keys are of.

use std::collections::BTreeMap;

use ordid_core::{
    clock::Timestamp,
    scheme::{
        Certainty,
        catalogue::{self, AnyColumn, CATALOGUE, Entry, Unknown, detect},
    },
    storage::{Dialect as _, Found, dialect::Postgres},
};
use sqlx::{AssertSqlSafe, PgConnection};

use crate::{engine::Engine, failure::Failure, migration::subject::named, scheme::ordered_column};

/// How many keys are looked at from each end of the table.
const SAMPLE: u32 = 500;

/// A table.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) schema: String,
    pub(super) name: String,
    /// Whether it is partitioned.
    pub(super) is_partitioned: bool,
    /// The column of the key: that of its partitions, or the primary key.
    pub(super) key: String,
    /// Its type.
    key_type: String,
    version: i32,
    has_default: bool,
    /// Partitions whose DETACH was interrupted.
    pub(super) pending: Vec<(String, String)>,
}

/// A row of what is asked: the names, the kind, the strategy, the number of columns in the partition key, the column (of the
/// primary key, if there are no partitions), its type and collation, the version, and whether there is a default partition.
type Row = (
    String,
    String,
    String,
    Option<String>,
    Option<i32>,
    Option<String>,
    Option<String>,
    Option<String>,
    i32,
    Option<bool>,
);

const TABLE: &str = "SELECT n.nspname::text, c.relname::text, c.relkind::text, p.partstrat::text, p.partnatts::int4,
    a.attname::text, format_type(a.atttypid, NULL), l.collname::text, current_setting('server_version_num')::int4,
    p.partdefid <> 0
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN pg_partitioned_table p ON p.partrelid = c.oid
    LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = coalesce(p.partattrs[0],
        (SELECT i.indkey[0] FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary AND i.indnkeyatts = 1))
    LEFT JOIN pg_collation l ON l.oid = coalesce(p.partcollation[0], a.attcollation)
    WHERE c.oid = to_regclass($1)";

const PENDING: &str = "SELECT n.nspname::text, c.relname::text FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE i.inhparent = to_regclass($1) AND to_jsonb(i) ->> 'inhdetachpending' = 'true'";

impl Table {
    /// Finds a table that is partitioned by the range of one column.
    pub(super) async fn find(connection: &mut PgConnection, name: &str) -> Result<Self, Failure> {
        let quoted = quoted(name)?;
        let row: Option<Row> = sqlx::query_as(TABLE)
            .bind(&quoted)
            .fetch_optional(&mut *connection)
            .await?;
        let Some((
            schema,
            table,
            kind,
            strategy,
            count,
            column,
            key_type,
            collation,
            version,
            has_default,
        )) = row
        else {
            return Err(Failure::wrong(format_args!(
                "there is no table {quoted}; one that is not on the search path needs its schema: --table app.orders"
            )));
        };
        let is_partitioned = kind == "p";
        let key = match (strategy.as_deref(), count, column, key_type) {
            (Some("r"), Some(1), Some(column), Some(key_type)) => (column, key_type),
            (None, None, Some(column), Some(key_type)) if kind == "r" => (column, key_type),
            _ if is_partitioned => {
                return Err(Failure::could_not(format_args!(
                    "{schema}.{table} is partitioned otherwise: PARTITION BY RANGE of the key alone is what can be pruned by \
                     the time in it"
                )));
            }
            _ => {
                return Err(Failure::could_not(format_args!(
                    "{schema}.{table} is not partitioned, and cannot be: only a table whose primary key is one column can be \
                     partitioned by the time in it"
                )));
            }
        };
        let is_text = ["text", "character varying", "character"].contains(&key.1.as_str());
        let is_binary = matches!(collation.as_deref(), Some("C" | "POSIX" | "ucs_basic"));
        if is_text && !is_binary {
            return Err(Failure::could_not(format_args!(
                "the key {} of {schema}.{table} has the collation {}, under which keys lose their order: it needs \
                 COLLATE \"C\"",
                key.0,
                collation.as_deref().unwrap_or("default")
            )));
        }
        let pending = sqlx::query_as(PENDING).bind(&quoted);
        Ok(Self {
            schema,
            name: table,
            is_partitioned,
            key: key.0,
            key_type: key.1,
            version,
            has_default: has_default.unwrap_or(false),
            pending: pending.fetch_all(connection).await?,
        })
    }

    /// Says how a table that is not partitioned becomes the first partition of one that is, for the keys below a bound.
    pub(super) fn first_partition(&self, partition_by: &str, bound: &str) -> Failure {
        let Self { schema, name, .. } = self;
        let in_schema = |name: &str| Postgres::quote_table(Some(schema), name);
        let (old, new) = (
            named("", name, "_until_now"),
            named("", name, "_partitioned"),
        );
        let whole = in_schema(name);
        let (first, partitioned, key) =
            (in_schema(&old), in_schema(&new), Postgres::quote(&self.key));
        // Rows are read while others write, and not under the lock of ATTACH.
        let statements = [
            format!(
                "CREATE TABLE {partitioned} (LIKE {whole} INCLUDING ALL EXCLUDING IDENTITY) {partition_by}"
            ),
            format!(
                "ALTER TABLE {whole} ADD CONSTRAINT ordid_until_now CHECK ({key} < {bound}) NOT VALID"
            ),
            format!("ALTER TABLE {whole} VALIDATE CONSTRAINT ordid_until_now"),
            "BEGIN".to_owned(),
            format!("ALTER TABLE {whole} RENAME TO {}", Postgres::quote(&old)),
            format!(
                "ALTER TABLE {partitioned} RENAME TO {}",
                Postgres::quote(name)
            ),
            format!(
                "ALTER TABLE {whole} ATTACH PARTITION {first} FOR VALUES FROM (MINVALUE) TO ({bound})"
            ),
            format!("ALTER TABLE {first} DROP CONSTRAINT ordid_until_now"),
            "COMMIT".to_owned(),
        ];
        Failure::could_not(format_args!(
            "{schema}.{name} is not partitioned; these statements make it the first partition of a table that is, with its rows: {}; \
             then run this command again; foreign keys, triggers, privileges, policies, publications, the owner, identity columns and \
             what views show stay with {schema}.{old}, so create or alter them for {schema}.{name}, too",
            statements.join("; ")
        ))
    }

    /// Whether this server detaches its partitions without a lock that blocks everybody.
    pub(super) const fn can_detach_concurrently(&self) -> bool {
        self.version >= 140_000 && !self.has_default
    }

    /// Returns the statement that ends a DETACH that was interrupted.
    pub(super) fn finalize_sql(&self, schema: &str, name: &str) -> String {
        format!(
            "ALTER TABLE {} DETACH PARTITION {} FINALIZE",
            Postgres::quote_table(Some(&self.schema), &self.name),
            Postgres::quote_table(Some(schema), name)
        )
    }

    /// Returns the scheme that was named, or that of the rows, and the column that the key is in.
    pub(super) async fn scheme_and_column(
        &self,
        connection: &mut PgConnection,
        scheme: Option<&'static Entry>,
        now: Timestamp,
    ) -> Result<(&'static Entry, AnyColumn), Failure> {
        let texts = self.sample(connection).await?;
        if let Some(scheme) = scheme {
            let name = self.column_of(texts.first(), scheme)?;
            let column = ordered_column(scheme, Engine::Postgres, Some(name))?;
            if let Some(text) = texts
                .iter()
                .find(|text| read(scheme, &column, text).is_none())
            {
                return Err(Failure::wrong(format_args!(
                    "{}.{} has the key {text}, which is none of {}",
                    self.schema, self.name, scheme.name
                )));
            }
            return Ok((scheme, column));
        }
        if texts.is_empty() {
            return Err(Failure::wrong(format_args!(
                "{}.{} has no rows that tell of which scheme its keys are: name it with --scheme",
                self.schema, self.name
            )));
        }
        self.detected(&texts, now)
    }

    /// Returns the lowest and the highest keys, as text.
    async fn sample(&self, connection: &mut PgConnection) -> Result<Vec<String>, Failure> {
        let table = Postgres::quote_table(Some(&self.schema), &self.name);
        let key = Postgres::quote(&self.key);
        let some = |order| {
            format!("(SELECT {key}::text AS k FROM {table} ORDER BY {key} {order} LIMIT {SAMPLE})")
        };
        let sql = format!("{} UNION ALL {}", some("ASC"), some("DESC"));
        let sql = format!("SELECT k FROM ({sql}) AS s WHERE k IS NOT NULL");
        let texts = sqlx::query_scalar(AssertSqlSafe(sql));
        Ok(texts.fetch_all(connection).await?)
    }

    /// Returns the name of the column's form.
    fn column_of(
        &self,
        text: Option<&String>,
        scheme: &'static Entry,
    ) -> Result<&'static str, Failure> {
        Ok(match (self.key_type.as_str(), text.map(String::len)) {
            ("uuid", _) => "uuid",
            ("bytea", _) => "bytea",
            ("bigint", _) => "bigint",
            ("text" | "character varying" | "character", length) => match (length, scheme.raw()) {
                (Some(20), catalogue::RawForm::Bytes15) | (None, catalogue::RawForm::Bytes15) => {
                    "char20"
                }
                (Some(22), _) => "char22",
                (Some(26), _) => "char26",
                (Some(32), _) | (None, catalogue::RawForm::Bytes24) => "char32",
                (None, _) if scheme.name == "ulid" => "char26",
                (None, _) if scheme.name.starts_with("ordered_text_22") => "char22",
                _ => "text",
            },
            (other, _) => {
                return Err(Failure::wrong(format_args!(
                    "the key {} of {}.{} is a {other}, expected uuid, bytea, text or bigint",
                    self.key, self.schema, self.name
                )));
            }
        })
    }

    /// Returns the scheme of which all of the keys are most surely.
    fn detected(
        &self,
        texts: &[String],
        now: Timestamp,
    ) -> Result<(&'static Entry, AnyColumn), Failure> {
        // How surely each scheme is that of all keys, and in which column.
        let mut all: Option<BTreeMap<&'static str, (Certainty, AnyColumn)>> = None;
        for text in texts {
            let mut of_this = BTreeMap::new();
            for entry in CATALOGUE {
                let Ok(name) = self.column_of(Some(text), entry) else {
                    continue;
                };
                let Ok(column) = ordered_column(entry, Engine::Postgres, Some(name)) else {
                    continue;
                };
                let Some(key) = read(entry, &column, text) else {
                    continue;
                };
                let has_ranges = entry.ranges(now..now).is_some_and(|ranges| {
                    ranges.map_or_else(|error| error.is_clock(), |ranges| ranges.len() == 1)
                });
                let found = detect(Unknown::Bytes(key.as_bytes()), now);
                let found = found.candidates.iter().find(|it| it.scheme == entry.name);
                if let (Some(found), true) = (found, has_ranges) {
                    of_this.insert(entry.name, (found.certainty, column));
                }
            }
            all = Some(match all {
                None => of_this,
                Some(all) => all
                    .into_iter()
                    .filter_map(|(name, (certainty, column))| {
                        let (of_this, _) = of_this.get(name)?;
                        Some((name, (certainty.min(*of_this), column)))
                    })
                    .collect(),
            });
        }
        let all = all.unwrap_or_default();
        let surest = all.values().map(|(certainty, _)| *certainty).max();
        let surest: Vec<_> = all
            .into_iter()
            .filter(|(_, (certainty, _))| Some(*certainty) == surest)
            .filter_map(|(name, (certainty, column))| {
                Some((catalogue::find(name)?, certainty, column))
            })
            .collect();
        // If there are several, a column of text has keys of the scheme whose own text it has.
        let is_own =
            |entry: &'static Entry| texts.iter().all(|text| entry.parse(None, text).is_ok());
        let own: Vec<_> = surest.iter().filter(|it| is_own(it.0)).copied().collect();
        let surest = if own.is_empty() { surest } else { own };
        let names = || {
            surest
                .iter()
                .map(|(entry, ..)| entry.name)
                .collect::<Vec<_>>()
                .join(", ")
        };
        let (table, column) = (&self.name, &self.key);
        match &surest[..] {
            [] => Err(Failure::wrong(format_args!(
                "the keys of {}.{table} are of no scheme that is ordered by time in a column {} ({column}): name it with \
                 --scheme if they are",
                self.schema, self.key_type
            ))),
            [(_, Certainty::Possible, _), ..] => Err(Failure::wrong(format_args!(
                "the keys of {}.{table} may be of {}, and their times do not speak for one: name it with --scheme",
                self.schema,
                names()
            ))),
            // Flavours of one scheme have the same bounds.
            [(first, _, column), others @ ..]
                if others.iter().all(|(it, ..)| is_same(first, it, now)) =>
            {
                Ok((first, *column))
            }
            _ => Err(Failure::wrong(format_args!(
                "the keys of {}.{table} may be of {}: name the scheme with --scheme",
                self.schema,
                names()
            ))),
        }
    }
}

/// Whether two schemes have the same keys at the ends of a time.
fn is_same(one: &'static Entry, other: &'static Entry, now: Timestamp) -> bool {
    let start = |entry: &'static Entry| {
        let ranges = entry.ranges(now..now)?.ok()?;
        ranges.first().map(|range| range.start.as_bytes().to_vec())
    };
    start(one) == start(other)
}

/// Reads a key from PostgreSQL's text of it.
fn read(entry: &'static Entry, column: &AnyColumn, text: &str) -> Option<catalogue::AnyKey> {
    match column.name {
        "bigint" => column.read(entry, Found::Integer(text.parse().ok()?)),
        "uuid" => column.read(
            entry,
            Found::Bytes(uuid::Uuid::try_parse(text).ok()?.as_bytes()),
        ),
        "bytea" => {
            let digits = text.strip_prefix("\\x")?.as_bytes();
            let bytes = digits.chunks(2).map(|pair| {
                let pair = std::str::from_utf8(pair).ok()?;
                u8::from_str_radix(pair, 16).ok()
            });
            column.read(entry, Found::Bytes(&bytes.collect::<Option<Vec<u8>>>()?))
        }
        _ => column.read(entry, Found::Bytes(text.as_bytes())),
    }
    .ok()
}

/// Returns the name of a table as PostgreSQL reads it: each part quoted, unless the user has quoted it.
fn quoted(name: &str) -> Result<String, Failure> {
    let mut parts = vec![String::new()];
    let mut is_quoted = false;
    let mut characters = name.chars().peekable();
    while let Some(character) = characters.next() {
        let part = parts.last_mut().expect("there is one from the beginning");
        match character {
            '"' if is_quoted && characters.peek() == Some(&'"') => {
                characters.next();
                part.push('"');
            }
            '"' => is_quoted = !is_quoted,
            '.' if !is_quoted => parts.push(String::new()),
            '\0' => return Err(Failure::wrong("the name of the table has a NUL")),
            character => part.push(character),
        }
    }
    if is_quoted || parts.len() > 2 || parts.iter().any(String::is_empty) {
        return Err(Failure::wrong(format_args!(
            "{name:?} is no table's name, expected `orders`, `app.orders` or `\"My schema\".orders`"
        )));
    }
    let parts: Vec<String> = parts.iter().map(|part| Postgres::quote(part)).collect();
    Ok(parts.join("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tables_are_quoted_part_by_part() {
        for (name, expected) in [
            ("orders", "\"orders\""),
            ("app.Orders", "\"app\".\"Orders\""),
            ("\"my.app\".orders", "\"my.app\".\"orders\""),
            ("\"a\"\"b\"", "\"a\"\"b\""),
        ] {
            assert_eq!(quoted(name).unwrap(), expected);
        }
        for name in ["", ".", "a.", "a.b.c", "\"a", "a\0"] {
            assert!(quoted(name).is_err(), "{name}");
        }
    }
}
