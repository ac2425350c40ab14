//! The doctor's findings, and the list of its rules.

use serde::Serialize;

use super::model::TableName;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Severity {
    /// Keys are lost, refused or not found, or will be soon.
    Error,
    /// It costs space or time, or will be an error.
    Warning,
    /// Worth knowing.
    Note,
}

impl Severity {
    /// Returns its name, which is also SARIF's.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// A rule.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    /// Its stable name.
    pub(crate) id: &'static str,
    /// How bad its findings are, at most.
    pub(crate) severity: Severity,
    /// A sentence that says what the rule finds.
    pub(crate) summary: &'static str,
}

/// A query that shows a finding, and what the database answered.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Evidence {
    pub(crate) query: String,
    /// None before it was asked; or why there is no answer.
    pub(crate) answer: Option<String>,
}

/// A finding.
#[derive(Debug, Clone)]
pub(crate) struct Finding {
    pub(crate) rule: &'static Rule,
    pub(crate) severity: Severity,
    pub(crate) table: Option<TableName>,
    pub(crate) column: Option<String>,
    /// The message: what is wrong, and with how many values.
    pub(crate) message: String,
    pub(crate) evidence: Evidence,
    /// The cost for this table.
    pub(crate) cost: String,
    /// The remedy, as SQL.
    pub(crate) fix: String,
    /// Whether the remedy is to build the SQLite table again: until that is written, `fix` is what is to be done before.
    pub(crate) is_rebuild: bool,
}

/// Declares the rules, each by a name that the code uses.
macro_rules! rules {
    ($($name:ident = $id:literal, $severity:ident, $summary:literal;)+) => {
        $(
            #[doc = $summary]
            pub(crate) static $name: Rule = Rule {
                id: $id,
                severity: Severity::$severity,
                summary: $summary,
            };
        )+
        /// All rules, in the order of the documentation.
        pub(crate) static RULES: &[&Rule] = &[$(&$name),+];
    };
}

rules! {
    CLUSTERED_V4 = "clustered-v4", Warning,
        "Random keys, such as UUIDs of version 4, order the rows of a table, so that each insert hits another page.";
    RANDOM_INDEX = "random-index", Note,
        "Random keys are in an index beside the rows, so that each insert hits another page of the index.";
    SWAPPED_BYTES = "swapped-bytes", Warning,
        "The bytes of ordered UUIDs are stored in another order, in which they do not rise.";
    MARIADB_UUID_SWAP = "mariadb-uuid-swap", Warning,
        "MariaDB's UUID type compares versions 1 to 5 from their last group, and these keys do not rise so.";
    ORDER_LOST = "order-lost", Warning,
        "Keys have a time, but the column does not compare it first.";
    OUT_OF_ORDER = "out-of-order", Warning,
        "Rows were inserted in another order than that of their keys.";
    MIXED_SCHEMES = "mixed-schemes", Note,
        "Keys of several schemes are in one column.";
    TWO_SPELLINGS = "two-spellings", Error,
        "One UUID is in two rows, in two spellings.";
    MIXED_SPELLINGS = "mixed-spellings", Warning,
        "The UUIDs of a column of text are spelt in several ways, so that one of them can be two keys.";
    UUID_AS_TEXT = "uuid-as-text", Warning,
        "UUIDs are stored as text.";
    TEXT_KEY_COLLATION = "text-key-collation", Error,
        "Keys with letters of both cases are in a column whose collation is not binary.";
    CHAR_N_KEY = "char-n-key", Warning,
        "PostgreSQL's char(n) ignores trailing blanks, and a parameter of type text does not use its index.";
    NUMERIC_AFFINITY = "numeric-affinity", Error,
        "The declared type makes SQLite turn texts that look like numbers into numbers.";
    MIXED_STORAGE = "mixed-storage", Error,
        "A SQLite column has keys as text and as blobs, which never compare equal.";
    TRUNCATED_TEXT = "truncated-text", Error,
        "A binary column has the first 16 characters of UUIDs as text.";
    PADDED_KEY = "padded-key", Warning,
        "Keys are shorter than their binary column, which pads them with zeros and does not find them by their own bytes.";
    NIL_KEY = "nil-key", Warning,
        "The nil or the max UUID is a key.";
    FUTURE_KEY = "future-key", Error,
        "Keys have times that are still to come.";
    NULLABLE_KEY = "nullable-key", Error,
        "A SQLite primary key takes NULL.";
    NOT_THE_ROWID = "not-the-rowid", Warning,
        "An integer primary key of SQLite is not declared INTEGER, and so is a second index and not the rowid.";
    SECOND_TREE = "second-tree", Note,
        "A SQLite table without WITHOUT ROWID stores its primary key twice.";
    SPARSE_PAGES = "sparse-pages", Warning,
        "The pages of a key's tree are emptier than ordered keys leave them.";
    UNINDEXED_FOREIGN_KEY = "unindexed-foreign-key", Warning,
        "A foreign key has no index.";
    DANGLING_REFERENCE = "dangling-reference", Error,
        "Rows of a SQLite table refer to rows that are not there.";
    FOREIGN_KEY_TYPE = "foreign-key-type", Error,
        "A foreign key has another type or collation than the key that it refers to.";
    KEY_SPACE_END = "key-space-end", Error,
        "The numbers of a column or a sequence come to their end.";
    EPOCH_END = "epoch-end", Error,
        "The layout of the keys comes to the end of its time.";
    SHARED_NODE = "shared-node", Error,
        "Two writers seem to use one node of a Snowflake.";
    COUNTER_MOVED = "counter-moved", Warning,
        "Keys with a time are in a column that numbers its rows, and have moved its counter.";
    PREPARED_ORPHAN = "prepared-orphan", Error,
        "A prepared transaction of a flush waits for its end, and holds its locks.";
    READ_UNCOMMITTED = "read-uncommitted", Warning,
        "Sessions read what others have not committed, unless they say otherwise.";
    NOT_STRICT = "not-strict", Warning,
        "Without strict mode MySQL and MariaDB cut keys that are too long, with a warning only.";
    AUTOCOMMIT_OFF = "autocommit-off", Note,
        "Sessions begin a transaction with their first statement.";
    NO_TRANSACTIONS = "no-transactions", Error,
        "The table's storage engine has no transactions: a flush that fails leaves rows behind.";
    OLD_MARKERS = "old-markers", Note,
        "Marker rows of flushes are older than anybody needs them.";
    NOT_DURABLE = "not-durable", Warning,
        "A COMMIT is answered before it is on the disk, or a crash may damage or empty tables.";
    READ_ONLY = "read-only", Note,
        "Sessions refuse to write, unless they say otherwise.";
    PREPARED_LIMIT = "prepared-limit", Warning,
        "The server takes no more prepared transactions, while flushes over several databases use them.";
    NOT_EXAMINED = "not-examined", Warning,
        "A table could not be examined.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_rules_are_distinct_words_with_hyphens() {
        for (at, rule) in RULES.iter().enumerate() {
            assert!(
                RULES[at + 1..].iter().all(|other| other.id != rule.id),
                "{}",
                rule.id
            );
            let is_plain = |letter: char| {
                letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-'
            };
            assert!(rule.id.chars().all(is_plain), "{}", rule.id);
            assert!(rule.summary.ends_with('.'), "{}", rule.id);
        }
    }
}
