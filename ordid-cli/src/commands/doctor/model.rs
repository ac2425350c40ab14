//! The catalogs of all engines in one form, which is all that the rules know of a database.

use std::{collections::BTreeMap, fmt};

use crate::engine::Engine;

/// A database, as far as it was seen.
#[derive(Debug)]
pub(crate) struct Examined {
    /// The engine.
    pub(crate) engine: Engine,
    /// The server's own words.
    pub(crate) version: String,
    /// The settings that rules look at, by the server's names of them.
    pub(crate) settings: BTreeMap<String, String>,
    /// Prepared transactions of ordid's flushes: their ids, and how many seconds ago they were prepared.
    pub(crate) prepared: Vec<(String, i64)>,
    /// The tables.
    pub(crate) tables: Vec<Table>,
    /// The parts that could not be seen.
    pub(crate) unseen: Vec<Unseen>,
}

/// Something that could not be seen.
#[derive(Debug, Clone)]
pub(crate) struct Unseen {
    /// The table.
    pub(crate) table: TableName,
    /// The part that was not seen.
    pub(crate) what: &'static str,
    /// Why.
    pub(crate) why: String,
    /// The query that was refused.
    pub(crate) query: String,
}

/// A table's name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TableName {
    /// Its schema, where the engine has schemas.
    pub(crate) schema: Option<String>,
    /// Its name there.
    pub(crate) name: String,
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.schema {
            Some(schema) => write!(f, "{schema}.{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// The place where a table keeps its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Storage {
    /// In the order in which they came, with all keys in indexes: PostgreSQL.
    Heap,
    /// In the tree of the primary key: InnoDB, and SQLite's `WITHOUT ROWID`.
    Clustered,
    /// In a tree of numbers that is not the key's: SQLite.
    Rowid,
    /// Somewhere else, such as in another storage engine.
    Other,
}

/// How a table keeps its rows through failures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Durability {
    /// Transactions are kept as the server's settings say.
    Transactions,
    /// PostgreSQL's `UNLOGGED`: after a crash it is empty.
    Unlogged,
    /// The storage engine of this name knows no transactions.
    NoTransactions(String),
}

/// Rows that refer to rows which are not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dangling {
    /// The foreign key's place among the references of its table.
    pub(crate) reference: usize,
    /// How many rows.
    pub(crate) rows: u64,
    /// The condition that finds them.
    pub(crate) condition: String,
    /// Whether the database has a table of the parent's name.
    pub(crate) has_parent: bool,
}

/// How the rows of a table came, one after the other.
#[derive(Debug, Clone)]
pub(crate) struct Insertion {
    /// The expression that rises with it, as SQL.
    pub(crate) sql: String,
    /// A name of it, for people.
    pub(crate) by: String,
}

/// A table.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) name: TableName,
    /// How many rows it has, if somebody knows.
    pub(crate) rows: Option<u64>,
    /// Whether they were counted, and not estimated.
    pub(crate) is_counted: bool,
    /// The bytes of its rows; of its primary key's tree where that has them.
    pub(crate) bytes: Option<u64>,
    pub(crate) storage: Storage,
    pub(crate) durability: Durability,
    /// The columns that choose a row's partition; none if the table has no partitions, an empty name is an expression.
    pub(crate) partitioned_by: Option<Vec<String>>,
    pub(crate) columns: Vec<Column>,
    pub(crate) indexes: Vec<Index>,
    pub(crate) references: Vec<Reference>,
    pub(crate) dangling: Vec<Dangling>,
    /// The order of insertion, or why it is unknown.
    pub(crate) insertion: Result<Insertion, String>,
    /// The column that says when a row was made.
    pub(crate) created: Option<String>,
    /// Its own words, where the engine keeps them: SQLite.
    pub(crate) definition: Option<Definition>,
    pub(crate) sample: Sample,
}

/// How a table of SQLite was made.
#[derive(Debug)]
pub(crate) struct Definition {
    /// Its CREATE TABLE.
    pub(crate) create: String,
    /// The columns that an INSERT may name: those that are not computed.
    pub(crate) columns: Vec<String>,
    /// Its indexes and triggers: kind, name, statement.
    pub(crate) others: Vec<(String, String, String)>,
    /// Whether it never gives a number twice.
    pub(crate) is_autoincrement: bool,
    /// The names of all tables, views and indexes of the file.
    pub(crate) taken: std::sync::Arc<[String]>,
    /// A view or trigger of the file that uses a rowid, perhaps this table's.
    pub(crate) rowid_user: Option<String>,
    /// A name of its rowid that no column has.
    pub(crate) rowid: Option<&'static str>,
}

impl Table {
    /// Returns the column of this name.
    pub(crate) fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// Returns the primary key's index.
    pub(crate) fn primary(&self) -> Option<&Index> {
        self.indexes.iter().find(|index| index.is_primary)
    }

    /// Returns the columns that rules look into: those of primary and foreign keys, unique ones that may hold UUIDs or
    /// numbers, and those that the database numbers.
    pub(crate) fn key_columns(&self) -> Vec<String> {
        let mut names: Vec<&String> = Vec::new();
        if let Some(primary) = self.primary() {
            names.extend(&primary.columns);
        }
        let unique = self
            .indexes
            .iter()
            .filter(|index| index.is_unique && index.columns.len() == 1);
        names.extend(unique.flat_map(|index| &index.columns).filter(|name| {
            self.column(name).is_some_and(|column| {
                column.kind.may_hold_uuids() || matches!(column.kind, Kind::Integer { .. })
            })
        }));
        let counted = self.columns.iter();
        names.extend(
            counted
                .filter(|column| column.counter.is_some())
                .map(|column| &column.name),
        );
        names.extend(
            self.references
                .iter()
                .flat_map(|reference| &reference.columns),
        );
        let mut distinct: Vec<String> = Vec::new();
        for name in names {
            if self.column(name).is_some() && !distinct.contains(name) {
                distinct.push(name.clone());
            }
        }
        distinct
    }

    /// Returns the unique index of this column alone, or the primary key that begins with it.
    pub(crate) fn index_of(&self, column: &str) -> Option<&Index> {
        let leads = |index: &&Index| index.columns.first().is_some_and(|first| first == column);
        let unique = self
            .indexes
            .iter()
            .filter(leads)
            .filter(|index| index.is_unique);
        unique.max_by_key(|index| (index.is_primary, index.columns.len() == 1))
    }
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// Its type, in the engine's words.
    pub(crate) declared: String,
    pub(crate) kind: Kind,
    /// The collation of a text.
    pub(crate) collation: Option<Collation>,
    pub(crate) is_nullable: bool,
    /// The way its rows are numbered.
    pub(crate) counter: Option<Counter>,
    /// Whether it is SQLite's rowid.
    pub(crate) is_rowid: bool,
}

/// The kind of values that a column's type holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Integers of so many bits.
    Integer { bits: u32, is_signed: bool },
    /// The engine's own type for UUIDs.
    Uuid,
    /// Bytes; of a fixed length, if one is given.
    Bytes { fixed: Option<u32> },
    /// Text.
    Text {
        length: Option<u32>,
        is_padded: bool,
    },
    /// SQLite's NUMERIC or REAL affinity: text that looks like a number becomes one.
    Numeric,
    /// A time.
    Time,
    /// Anything else.
    Other,
}

impl Kind {
    /// Whether a UUID fits in.
    pub(crate) fn may_hold_uuids(self) -> bool {
        match self {
            Self::Uuid | Self::Numeric => true,
            Self::Bytes { fixed } => fixed.is_none_or(|length| length == 16),
            Self::Text { length, .. } => length.is_none_or(|length| length >= 20),
            Self::Integer { .. } | Self::Time | Self::Other => false,
        }
    }

    /// Returns the highest number that fits in.
    pub(crate) fn highest(self) -> Option<i128> {
        match self {
            Self::Integer { bits, is_signed } => {
                Some((1_i128 << (bits - u32::from(is_signed))) - 1)
            }
            _ => None,
        }
    }
}

/// How a text compares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Collation {
    /// Its name.
    pub(crate) name: String,
    pub(crate) compares: Compares,
    /// How many bytes an index may need for a character.
    pub(crate) bytes_a_character: u32,
}

/// A collation: which texts it tells apart, and how it orders them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compares {
    /// By bytes or code points.
    Bytes,
    /// By a language: letters of two cases are told apart, and stand beside each other.
    Language,
    /// Letters of two cases are one.
    IgnoringCase,
}

/// The way a column's rows are numbered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Counter {
    /// Its name, such as a sequence's.
    pub(crate) name: String,
    /// The highest number that it has given, or will give next.
    pub(crate) last: Option<i128>,
    /// The highest that it may give.
    pub(crate) highest: i128,
}

/// An index.
#[derive(Debug, Clone, Default)]
pub(crate) struct Index {
    pub(crate) name: String,
    /// Its columns; an empty name is an expression, or a part of a column.
    pub(crate) columns: Vec<String>,
    pub(crate) is_unique: bool,
    pub(crate) is_primary: bool,
    /// Whether it has all rows.
    pub(crate) is_whole: bool,
    pub(crate) bytes: Option<u64>,
    pub(crate) leaves: Option<Leaves>,
}

/// How full the leaves of a tree are.
#[derive(Debug, Clone)]
pub(crate) struct Leaves {
    /// How many there are.
    pub(crate) pages: u64,
    /// How much of them is used, 0 to 1.
    pub(crate) fill: f64,
    /// How much of them ordered keys use.
    pub(crate) ordered_fill: f64,
    /// The query that says so.
    pub(crate) query: String,
    /// Who says so.
    pub(crate) source: &'static str,
}

/// A foreign key.
#[derive(Debug, Clone)]
pub(crate) struct Reference {
    pub(crate) name: String,
    pub(crate) columns: Vec<String>,
    pub(crate) parent: TableName,
    pub(crate) parent_columns: Vec<String>,
    /// The end of its declaration, such as ` ON DELETE CASCADE`. It is empty where no fix declares the key again.
    pub(crate) actions: String,
}

/// Rows that were read.
#[derive(Debug, Default)]
pub(crate) struct Sample {
    /// The columns that were read.
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Row>,
    /// Whether these are all rows.
    pub(crate) is_whole: bool,
    /// How they were chosen.
    pub(crate) how: String,
    /// The rows as a derived table, as SQL: what evidence reads.
    pub(crate) source: String,
}

/// A row that was read.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// The values of the sample's columns.
    pub(crate) values: Vec<Value>,
    /// Its place in the order of insertion.
    pub(crate) place: Option<i128>,
    /// When it was made: milliseconds since 1970.
    pub(crate) created: Option<i64>,
}

/// A value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Value {
    Null,
    Integer(i128),
    Uuid([u8; 16]),
    Bytes(Vec<u8>),
    Text(String),
    /// A number that is none of the integers: what NUMERIC makes of hex.
    Real(String),
}
