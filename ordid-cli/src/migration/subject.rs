//! The tables of a move, as the files of the engines share them.

use ordid_core::clock::Timestamp;
use sha2::{Digest as _, Sha256};

use super::{
    model::{Action, Check, Guard, Step},
    request::Refusals,
};

/// The longest name that every engine takes: PostgreSQL's.
const LONGEST: usize = 63;

/// A table whose columns are moved: the first one is the table of the plan, the others refer to it.
#[derive(Debug, Clone)]
pub(crate) struct Moved {
    /// Its schema.
    pub(crate) schema: String,
    /// Its name.
    pub(crate) name: String,
    /// The columns that are moved: the key first, where it is the table itself.
    pub(crate) columns: Vec<Column>,
    /// The indexes that have one of these columns.
    pub(crate) indexes: Vec<Index>,
}

impl Moved {
    /// The table of the plan, with its key: name, type and comment.
    pub(crate) fn main(
        [schema, name]: [&str; 2],
        [key, sql_type]: [&str; 2],
        comment: Option<&String>,
    ) -> Self {
        Self {
            schema: schema.to_owned(),
            name: name.to_owned(),
            columns: vec![Column {
                name: key.to_owned(),
                sql_type: sql_type.to_owned(),
                not_null: true,
                comment: comment.cloned(),
                reference: None,
            }],
            indexes: Vec::new(),
        }
    }
}

/// A column that is moved.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    /// Its name.
    pub(crate) name: String,
    /// Its type, with what belongs to it.
    pub(crate) sql_type: String,
    /// Whether it is `NOT NULL`.
    pub(crate) not_null: bool,
    /// Its comment.
    pub(crate) comment: Option<String>,
    /// Its foreign key; the key itself has none here.
    pub(crate) reference: Option<ForeignKey>,
}

/// A foreign key that refers to the table.
#[derive(Debug, Clone)]
pub(crate) struct ForeignKey {
    /// Its name.
    pub(crate) name: String,
    /// The text behind the columns: `ON DELETE CASCADE`.
    pub(crate) actions: String,
    /// Its definition.
    pub(crate) definition: String,
    /// Its comment, where foreign keys have one.
    pub(crate) comment: Option<String>,
}

/// An index.
#[derive(Debug, Clone)]
pub(crate) struct Index {
    /// Its name.
    pub(crate) name: String,
    /// Whether it is the primary key.
    pub(crate) is_primary: bool,
    /// Whether it is unique.
    pub(crate) is_unique: bool,
    /// Whether it is a constraint.
    pub(crate) is_constraint: bool,
    /// The statement that creates it, in the engine's form.
    pub(crate) definition: String,
    /// Its comment.
    pub(crate) comment: Option<String>,
    /// The comment of its constraint, where that has one of its own.
    pub(crate) constraint_comment: Option<String>,
    /// Whether no query uses it.
    pub(crate) is_hidden: bool,
    /// Whether the table is clustered on it.
    pub(crate) is_clustered: bool,
}

impl Moved {
    /// A table of which only the name is known.
    pub(crate) fn bare(schema: String, name: String) -> Self {
        Self {
            schema,
            name,
            columns: Vec::new(),
            indexes: Vec::new(),
        }
    }

    /// Returns the name behind the schema, for people.
    pub(crate) fn title(&self) -> String {
        format!("{}.{}", self.schema, self.name)
    }

    /// Returns the columns that refer to the table.
    pub(crate) fn references(&self) -> impl Iterator<Item = (&Column, &ForeignKey)> {
        self.columns
            .iter()
            .filter_map(|column| column.reference.as_ref().map(|it| (column, it)))
    }
}

impl Column {
    /// Returns the name of the new column before the switch.
    pub(crate) fn new_name(&self) -> String {
        named("ordid_new_", &self.name, "")
    }

    /// Returns the name of the old column after the switch.
    pub(crate) fn old_name(&self) -> String {
        named("ordid_old_", &self.name, "")
    }
}

/// Adds a column that refers to the table: to its own table, which is named by schema and name.
pub(crate) fn refer(
    tables: &mut Vec<Moved>,
    (schema, name): (String, String),
    column: Column,
    refusals: &mut Refusals,
) {
    let known = tables
        .iter_mut()
        .find(|it| it.schema == schema && it.name == name);
    match known {
        Some(table) if table.columns.iter().any(|it| it.name == column.name) => {
            refusals.add(format!(
                "{}.{} has two foreign keys to the table",
                table.title(),
                column.name
            ));
        }
        Some(table) => table.columns.push(column),
        None => tables.push(Moved {
            schema,
            name,
            columns: vec![column],
            indexes: Vec::new(),
        }),
    }
}

/// How an engine writes what [`pairs`] asks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Words {
    /// Writes a name.
    pub(crate) quote: fn(&str) -> String,
    /// Writes the name of a table.
    pub(crate) table: fn(&Moved) -> String,
    /// Writes that two values differ, of which both or one may be NULL.
    pub(crate) differ: fn(&str, &str) -> String,
}

/// Returns the counts by which the other columns, which are going to have the names, are held against those that have
/// them. The first table is the one that is moved, and its first column the key.
pub(crate) fn pairs(
    tables: &[Moved],
    words: Words,
    word: &str,
    other: fn(&Column) -> String,
) -> Vec<Check> {
    let [moved, ..] = tables else {
        return Vec::new();
    };
    let [key, ..] = &moved.columns[..] else {
        return Vec::new();
    };
    let Words {
        quote,
        table: write,
        differ,
    } = words;
    let (main, other_key) = (write(moved), quote(&other(key)));
    let mut checks = vec![Check::new(
        format!(
            "rows of {} without a {word} key of their own",
            moved.title()
        ),
        format!("SELECT count(*) - count(DISTINCT {other_key}) FROM {main}"),
    )];
    for table in tables {
        for (column, _) in table.references() {
            let differ = differ(
                &format!("c.{}", quote(&column.name)),
                &format!("it.{}", quote(&key.name)),
            );
            checks.push(Check::new(
                format!("rows of {} whose {word} {} is another row's", table.title(), column.name),
                format!(
                    "SELECT count(*) FROM {} AS c LEFT JOIN {main} AS it ON it.{other_key} = c.{} WHERE {differ}",
                    write(table),
                    quote(&other(column))
                ),
            ));
        }
    }
    checks
}

/// Returns a name that is not too long, of a prefix, a name and a suffix. A name that is cut ends with a hash of all of it:
/// others may begin with the same words.
pub(crate) fn named(prefix: &str, name: &str, suffix: &str) -> String {
    let room = LONGEST - prefix.len() - suffix.len();
    if name.len() <= room {
        return format!("{prefix}{name}{suffix}");
    }
    let hash = hash(name);
    let mut end = room - hash.len();
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    format!("{prefix}{}{hash}{suffix}", &name[..end])
}

/// Returns the name of what a column of a table has. Names alone would leave open where the table's ends: `a_b_c`.
pub(crate) fn named_by_column(prefix: &str, table: &str, column: &str) -> String {
    let suffix = hash(&format!("{table}\0{column}"));
    named(prefix, &format!("{table}_{column}"), &suffix)
}

fn hash(text: &str) -> String {
    let [a, b, c, d, ..] = <[u8; 32]>::from(Sha256::digest(text.as_bytes()));
    format!("_{:08x}", u32::from_be_bytes([a, b, c, d]))
}

/// Returns notes of rows whose times are none, such as infinite ones, or in the future.
pub(crate) fn notes_of_times(
    column: &str,
    rows: i64,
    (none, without): (&str, i64),
    future: i64,
) -> Vec<String> {
    let have = |count: i64| if count == 1 { "has" } else { "have" };
    let mut notes = Vec::new();
    if without > 0 {
        notes.push(format!(
            "{without} of {rows} rows {} {none} {column}: their keys get the time of the oldest row, and new rows with such a \
             time get that of now",
            have(without)
        ));
    }
    if future > 0 {
        notes.push(format!(
            "{future} of {rows} rows {} a {column} in the future: their keys are above those of new rows",
            have(future)
        ));
    }
    notes
}

/// The last microsecond since 1970 that a key can have. The clocks of all schemes have 48 bits of milliseconds.
pub(crate) const LAST_MICROS: u64 = Timestamp::MAX.as_unix_millis() * 1000 + 999;

/// The reason to refuse rows whose times no key can have, which a query shows.
pub(crate) fn too_late(column: &str, rows: i64, late: i64, query: &str) -> String {
    let have = if late == 1 { "has" } else { "have" };
    format!(
        "{late} of {rows} rows {have} a {column} after {}, the last time that a key can have: find them by `{query}`, and correct \
         them, or name another column by --created",
        Timestamp::MAX
    )
}

/// Returns a table's name behind its schema, for people.
pub(crate) fn title(schema: Option<&str>, name: &str) -> String {
    match schema {
        Some(schema) => format!("{schema}.{name}"),
        None => name.to_owned(),
    }
}

/// Returns the name of the table that keeps the old and new keys of a table, in the same schema.
pub(crate) fn map_name(table: &str) -> String {
    named("", table, "_ordid_map")
}

/// Returns the steps that keep old and new keys in a table: it must not be there, and `action` creates it.
pub(crate) fn map_steps(is_there: String, seconds: f64, action: Action) -> Vec<Step> {
    let step = |name: &str, what: &str, seconds, action| Step {
        name: name.to_owned(),
        on: None,
        what: what.to_owned(),
        locks: "no table".to_owned(),
        seconds,
        action,
    };
    let guard = Guard::new(
        "is there already, and the map of old and new keys would have its name",
        is_there,
        "rename it, or repeat --finish without --keep-map",
    );
    vec![
        step(
            "check",
            "With --keep-map: looks whether the name of the map is free",
            0.1,
            Action::Check {
                checks: Vec::new(),
                guards: vec![guard],
            },
        ),
        step(
            "map",
            "With --keep-map: copies old and new keys into a table that stays",
            seconds,
            action,
        ),
    ]
}

/// Returns a text as SQL writes it.
pub(crate) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Returns the article of a name.
pub(crate) fn article(name: &str) -> &'static str {
    match name.to_ascii_lowercase().starts_with(['a', 'e', 'i', 'o']) {
        true => "an",
        false => "a",
    }
}

/// The reason to refuse a referring column that has a default.
pub(crate) fn old_default(table: &str, column: &str, default: &str) -> String {
    format!(
        "{table}.{column} has a default ({default}), which is an old key: drop the default, and let the programs write the key"
    )
}

/// Replaces an identifier, quoted or not, outside of texts and longer names.
pub(crate) fn replace_identifier(sql: &str, name: &str, quoted: &str, new: &str) -> String {
    pieces(sql)
        .map(|(_, piece)| {
            if piece == name || piece == quoted {
                new
            } else {
                piece
            }
        })
        .collect()
}

/// Returns the place of a part of SQL that is in no text and in no quoted name. It begins with a space or a parenthesis.
pub(crate) fn find_outside(sql: &str, part: &str) -> Option<usize> {
    pieces(sql)
        .map(|(at, _)| at)
        .find(|at| sql[*at..].starts_with(part))
}

/// Takes SQL apart into words, quoted names, texts, and single other characters, each with its place. A quote inside of a
/// name or a text is doubled.
fn pieces(sql: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = &sql[at..];
        let first = rest.chars().next()?;
        let end = match first {
            '\'' | '"' | '`' => quoted_end(rest, first),
            _ if is_part(first) => rest.find(|c| !is_part(c)).unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        let piece = (at, &rest[..end]);
        at += end;
        Some(piece)
    })
}

/// Returns where a name or a text ends that begins with this quote.
fn quoted_end(sql: &str, quote: char) -> usize {
    let mut chars = sql.char_indices().skip(1).peekable();
    while let Some((at, it)) = chars.next() {
        if it == quote && chars.next_if(|(_, next)| *next == quote).is_none() {
            return at + 1;
        }
    }
    sql.len()
}

/// Returns the column that says when a row was made: one of the usual names, of a type of times.
pub(crate) fn creation_time<'a>(
    columns: impl IntoIterator<Item = &'a str> + Clone,
) -> Option<&'a str> {
    const NAMES: [&str; 12] = [
        "created_at",
        "created",
        "createdat",
        "created_on",
        "creation_time",
        "create_time",
        "created_time",
        "creation_date",
        "date_created",
        "inserted_at",
        "inserted",
        "insert_time",
    ];
    NAMES.iter().find_map(|name| {
        columns
            .clone()
            .into_iter()
            .find(|column| column.eq_ignore_ascii_case(name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_is_replaced_where_it_is_one() {
        let replace = |sql| replace_identifier(sql, "id", "\"id\"", "\"new\"");
        assert_eq!(
            replace("CREATE INDEX i ON public.t USING btree (id, idle, \"id\" DESC)"),
            "CREATE INDEX i ON public.t USING btree (\"new\", idle, \"new\" DESC)"
        );
        assert_eq!(replace("(a) WHERE (b = 'id')"), "(a) WHERE (b = 'id')");
        assert_eq!(replace("(\"my id\", id)"), "(\"my id\", \"new\")");
        // A quote inside of a name is doubled.
        for names in [
            "(\"a\"\"id\", kind)",
            "(\"id\"\"a\", kind)",
            "(\"\"\"id\"\"\", kind)",
        ] {
            assert_eq!(replace(names), names);
        }
    }

    #[test]
    fn a_part_of_sql_is_found_outside_of_quoted_names() {
        let sql = "CREATE INDEX \"a ON b\"\" ON c\" ON public.t USING btree (\"x WITH (\")";
        for (part, rest) in [
            (" ON ", " ON public.t USING btree (\"x WITH (\")"),
            (" USING ", " USING btree (\"x WITH (\")"),
            ("(", "(\"x WITH (\")"),
        ] {
            assert_eq!(find_outside(sql, part).map(|at| &sql[at..]), Some(rest));
        }
        assert_eq!(find_outside(sql, " WITH ("), None);
    }

    #[test]
    fn long_names_are_cut_between_characters() {
        let long = "ä".repeat(60);
        let name = named("ordid_new_", &long, "_i");
        let (cut, hash) = name.strip_suffix("_i").unwrap().rsplit_once('_').unwrap();
        assert!(name.len() <= 63 && cut.ends_with('ä'), "{name}");
        assert_eq!(hash.len(), 8, "{name}");
        assert_eq!(named("ordid_new_", "id", ""), "ordid_new_id");
    }

    #[test]
    fn names_that_are_cut_stay_distinct_and_others_stay_as_they_are() {
        let fits = "a".repeat(53);
        assert_eq!(named("ordid_new_", &fits, ""), format!("ordid_new_{fits}"));
        let [one, other] = ["1", "2"].map(|end| named("ordid_new_", &(fits.clone() + end), ""));
        assert_ne!(one, other);
        assert_eq!([one.len(), other.len()], [63, 63]);
    }

    #[test]
    fn the_creation_time_is_found_by_its_usual_names() {
        assert_eq!(
            creation_time(["id", "Created_At", "created"]),
            Some("Created_At")
        );
        assert_eq!(creation_time(["id", "updated_at"]), None);
    }
}
