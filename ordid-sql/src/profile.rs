//! What an engine can do and how it behaves.
//!
//! A [`Dialect`](ordid_core::storage::Dialect) says how a statement is written; a profile says what may be
//! asked of the server that answers. Engines that share a dialect differ in their profiles.

use ordid_core::storage::{
    Dialect,
    dialect::{Babelfish, MySql, Oracle, Postgres, SqlServer, Sqlite},
};

use crate::{
    DriverError, Failure, LockWaits, MAX_ROWS, Splits, StatementDialect, TwoPhase, catalog,
    classify::{self, Classify},
    text::TableNames,
};

/// What an engine can do, and how it behaves: limits of a statement, transactions, how rows are updated and
/// counted.
///
/// A flush takes the profile of the library's engine. Give another with `with_engine` of a unit of work where a
/// pooler or a proxy hides what is behind it, or for an engine that speaks the protocol of one of these.
///
/// # Example: an engine without `COPY` and with small statements
///
/// ```
/// use ordid_sql::EngineProfile;
///
/// let mut engine = EngineProfile::POSTGRES;
/// engine.bulk = false;
/// engine.max_rows = 100;
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct EngineProfile {
    /// The vendor's name, for messages.
    pub name: &'static str,
    /// The page of the guide about the engine, which messages name.
    pub guide: &'static str,
    /// The most rows of one statement. Larger chunks than [`MAX_ROWS`] were not faster on any database
    /// measured.
    pub max_rows: usize,
    /// The most parameters of one statement.
    pub max_parameters: usize,
    /// The size of a statement's values, in bytes, from which the statement takes no more rows. A row that would make
    /// the statement more than twice as large is sent alone. A chunk with more bytes is sent by several statements.
    pub max_bytes: usize,
    /// How large a message to the server may be. A row that has more bytes than [`max_bytes`](Self::max_bytes) is held
    /// against it before it is sent, where the library tells its size.
    pub max_message: MessageLimit,
    /// The most rows that a transaction may change, its marker row included; `None` without such a limit. A flush with
    /// more has to go [in chunks](crate::ChunkLimits).
    pub max_transaction_rows: Option<usize>,
    /// The most bytes that the rows of a chunk may have. Only a flush in chunks looks at it, and some profiles give half of what
    /// the engine's documentation says, as the engine counts more than the rows.
    pub max_transaction_bytes: Option<usize>,
    /// Whether the command beside `INSERT` that takes rows in bulk may be used: `COPY`, `INSERT BULK`. If a server says
    /// that it does not have `COPY`, the flush rolls back and begins anew with statements. Each flush tries again, so set
    /// this to `false` for such a server.
    pub bulk: bool,
    /// The statement that opens a transaction which will write, if the library's own statement is not the right one.
    /// The `oracle` crate begins transactions in its own way, so this setting changes nothing for it.
    pub begin: Option<&'static str>,
    /// The statement after which constraints that are declared `DEFERRABLE` are checked at COMMIT; `None`
    /// where the engine has no such constraints.
    pub defer: Option<&'static str>,
    /// Whether a row that refers to itself can be deleted as it is.
    pub deletes_rows_of_themselves: bool,
    /// How rows of a table that refers to itself are deleted.
    pub tree_deletes: TreeDeletes,
    /// How rows are updated by their keys.
    pub updates: Updates,
    /// Whether many rows that are updated or upserted may go through a temporary table of the connection: they are
    /// inserted there, and one statement takes them over. A flush in its own transaction does so from 100 rows on where it
    /// would otherwise update row by row, as on MySQL, and from more than [`MAX_ROWS`] on elsewhere, if the server lets
    /// it. If that fails, the flush begins anew with the statements for the table itself. Switch it off for a pooler or a
    /// proxy that does not keep such a table for the length of a transaction.
    pub temporary_tables: bool,
    /// Whether a statement may be prepared by name and kept for the connection. A pooler that gives each transaction
    /// another connection to the server knows nothing of such names, or has another statement under them.
    pub prepares: bool,
    /// How the flush limits the time that the statements of a transaction wait for locks. While a COMMIT is unresolved,
    /// the limit is 10 s at most, since the older transaction may hold the keys for hours, behind a network that drops
    /// packets. Through a library whose calls block, the wait is also limited to the time until the flush's deadline.
    pub bounds_waits: LockWaits,
    /// Whether the server says how many rows an `INSERT` took, so that a row that a trigger, a rule or a view left out
    /// is seen. On SQL Server it is seen that an index with `IGNORE_DUP_KEY` left a row out of a statement, but not out of a
    /// bulk load; what an `INSTEAD OF` trigger left out is in the count all the same.
    ///
    /// If it does not say so, every flush that only inserts writes a marker row: a row that is there may have been there
    /// before.
    pub counts_inserts: bool,
    /// Whether a lock that one server gives does not hold on all others that take writes, as in a Galera cluster: then
    /// a marker row that could be inserted does not resolve an unresolved COMMIT. It is asked only after the answer to a
    /// COMMIT was lost.
    pub local_locks: ServerFact,
    /// Whether the definition of a text column may name a collation, as in `COLLATE "C"`. Where it may not, text is compared
    /// byte by byte without it, and `SqlCounter::create` leaves the clause out.
    pub collations: bool,
    /// Whether there are savepoints. Without them a flush cannot write into the user's transaction, and is refused before it
    /// sends anything.
    pub savepoints: bool,
    /// Whether rows are on several machines, so that COMMIT is a call to others. An error within the server then does not
    /// say that the transaction was rolled back. Only of engines that speak PostgreSQL's protocol: over MySQL's, such an error
    /// of COMMIT counts as lost on every engine.
    pub is_distributed: bool,
    /// Whether the engine splits a table by ranges of its keys over several machines, so that one of them takes all inserts
    /// of keys that rise. The first flush of such keys into a table says so by `tracing`.
    pub splits_by_key: bool,
    /// How the engine is told where such ranges begin.
    pub splits: Splits,
    /// How transactions are prepared for a two-phase commit over several databases.
    pub two_phase: TwoPhase,
    /// A query that is sent right before a savepoint, where the server refuses it if it has ended the user's transaction,
    /// but not the savepoint. It must not fix which rows later reads of the transaction see.
    pub(crate) ask_before_savepoint: Option<&'static str>,
    /// The words of the engine's dialect.
    pub(crate) words: Words,
    /// What the engine's errors mean.
    pub(crate) classify: Classify,
}

/// How large a message to a server may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MessageLimit {
    /// Larger than any row.
    None,
    /// So many bytes.
    Bytes(usize),
    /// The limit is the value of this system variable of the server, which a query can name.
    Setting(&'static str),
}

/// A fact that perhaps only the server knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerFact {
    /// It is known.
    Known(bool),
    /// This query has a row if it is so. The row has one column, of integers.
    Asked(&'static str),
}

/// How an engine updates many rows, each with values of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Updates {
    /// By one `UPDATE .. FROM (VALUES ..)`.
    FromValues,
    /// By one `WITH .. AS (VALUES ..) UPDATE .. FROM`: only a `WITH` can name the columns of the list.
    WithValues,
    /// By one `UPDATE .. FROM .. JOIN (VALUES ..)`.
    JoinValues,
    /// By an `UPDATE` for each row. A list of rows takes the types of its columns from the parameters, and
    /// MySQL and MariaDB differ in how; a parameter that is assigned to a column arrives as by an
    /// `INSERT`. Many rows go through a [temporary table](EngineProfile::temporary_tables).
    RowByRow,
    /// By the `UPDATE` of one row, each parameter of which takes the values of all rows. Inserts and deletes
    /// are sent in the same way.
    Arrays,
}

/// Says which rows of a table that refers to itself one statement may delete. They go children first in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TreeDeletes {
    /// No row and its parent: the database may delete the parent first, and check it or delete its children at once.
    OneDepth,
    /// Any rows: the database checks foreign keys after the statement, or deletes the rows in the order in which they
    /// are bound.
    Any,
    /// Any rows of which each has a greater key than its parent: the statement says `ORDER BY` key `DESC`, and the
    /// database deletes and checks row by row. A row that has not is cut off from its parent first if the tree is deep and
    /// the column can be NULL, by an `UPDATE` that triggers and checks see; otherwise a statement takes rows of one depth.
    ByKey,
}

/// How a dialect writes names and parameters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Words {
    pub(crate) dialect: &'static str,
    pub(crate) quote: fn(&str) -> String,
    pub(crate) quote_table: fn(Option<&str>, &str) -> String,
    pub(crate) placeholder: fn(&mut String, usize),
    /// What stands behind a change so that the server answers with the number of rows; empty where the
    /// protocol counts them.
    pub(crate) counted: &'static str,
    /// The [`DELETE`](StatementDialect::DELETE_FIRST) of some of the rows that a condition names.
    pub(crate) delete_first: &'static str,
    /// Two texts that make a query read committed rows only, at any isolation level: one stands behind the table's name,
    /// the other at the end.
    pub(crate) reads_committed: [&'static str; 2],
    /// Whether no query of a transaction sees rows that were committed after it began.
    pub(crate) reads_snapshots: bool,
    /// The text that makes a query wait until the rows that it finds are committed or gone. It is for engines on which
    /// a query without this text may find other rows, and a query with it would also lock the places of rows that it
    /// does not find.
    pub(crate) confirms: Option<&'static str>,
    /// What stands before and behind a column to make text of it.
    pub(crate) as_text: [&'static str; 2],
    /// What stands before and behind a text to make one text of those of all rows, with commas in between. There is none
    /// where the server would cut it off.
    pub(crate) joins_texts: Option<[&'static str; 2]>,
    /// Returns the text that follows the select list of a query. The query returns a row if a unique index would refuse
    /// the same row a second time. The function takes the positions of the columns that are sent. If an engine has no
    /// such query, its keys are assumed to be unique.
    pub(crate) is_protected: Option<fn(&TableNames, &[usize]) -> String>,
    /// Returns a query that has a row if rows of a table can go through a temporary table. There is no such query where the
    /// engine does not need one to be fast.
    pub(crate) can_stage: Option<fn(&TableNames) -> String>,
    /// Returns a query that has a row if the engine's own statement for upserts does what is asked of one that finds rows by
    /// these columns: no other unique index can be in its way, and no trigger comes first. There is no such query where the
    /// statement is not used.
    pub(crate) can_write: Option<fn(&TableNames, &[usize]) -> String>,
    /// The query whose text shows which engine answers, if its version does not: others speak the same protocol. There is no
    /// such query for a protocol of one engine.
    pub(crate) engine: Option<&'static str>,
    /// The character that no name may have, even a quoted one.
    pub(crate) never_in_names: Option<char>,
    /// Creates the table of marker rows.
    pub(crate) flushes_table: &'static str,
}

/// A dialect that units of work are flushed to.
pub trait FlushDialect: StatementDialect {
    /// How its engine behaves.
    const PROFILE: EngineProfile;

    /// Creates the table of marker rows, `ordid_flushes`.
    const FLUSHES_TABLE: &'static str;
}

/// The page of the guide about an engine.
macro_rules! page {
    ($name:literal) => {
        concat!(
            "https://github.com/ordid/ordid/blob/main/docs/src/engines/",
            $name,
            ".md"
        )
    };
}

impl EngineProfile {
    /// PostgreSQL.
    pub const POSTGRES: Self = Self {
        guide: page!("postgresql"),
        bulk: true,
        // `PQ_LARGE_MESSAGE_LIMIT` of `src/include/libpq/libpq.h`, which is `MaxAllocSize`.
        max_message: MessageLimit::Bytes(0x3fff_ffff),
        defer: Some("SET CONSTRAINTS ALL DEFERRED"),
        updates: Updates::FromValues,
        bounds_waits: LockWaits::LockTimeout,
        two_phase: TwoPhase::PrepareTransaction,
        ..Self::of::<Postgres>(classify::postgres::classify)
    }
    .with_words(["", ""], Some(catalog::postgres))
    .which_is_shown_by(catalog::POSTGRES_ENGINE)
    .which_stages(catalog::postgres_can_stage)
    .which_joins_texts(["string_agg(", ", ',')"]);

    /// PostgreSQL behind a pooler that gives a connection to each transaction, as PgBouncer does in its mode
    /// `transaction`. No statement is prepared by name. `COPY` is not used: the flush would have to ask before the
    /// transaction whether `COPY` does what an `INSERT` would.
    pub const PGBOUNCER: Self = Self {
        bulk: false,
        prepares: false,
        ..Self::POSTGRES
    };

    /// Aurora DSQL, by its documentation; it was tried with an emulator. A transaction changes at most 3,000 rows of 10 MiB,
    /// so a larger unit of work goes [in chunks](crate::ChunkLimits), of half as many bytes: what indexes and keys add is
    /// known to the server only. It has no `COPY`, no savepoint (and so no
    /// `flush_in`) and no temporary table. Transactions never wait for each other: the later COMMIT is refused, and the
    /// flush tries again.
    pub const AURORA_DSQL: Self = Self {
        name: "Aurora DSQL",
        guide: page!("aurora-dsql"),
        two_phase: TwoPhase::None,
        splits_by_key: true,
        max_transaction_rows: Some(3_000),
        max_transaction_bytes: Some(5 << 20),
        bulk: false,
        temporary_tables: false,
        collations: false,
        savepoints: false,
        is_distributed: true,
        bounds_waits: LockWaits::AsSet,
        // Two transactions may insert the same key, until one is committed.
        local_locks: ServerFact::Known(true),
        ..Self::POSTGRES
    };

    /// CockroachDB, by its documentation. Only admins may `COPY`, so rows go by `INSERT`; constraints cannot be deferred;
    /// temporary tables are an experiment. It retries nothing that has more than one statement, so the flush does. Keys
    /// that rise put all inserts on one range, unless their index is `USING HASH`.
    pub const COCKROACHDB: Self = Self {
        name: "CockroachDB",
        guide: page!("cockroachdb"),
        two_phase: TwoPhase::None,
        splits_by_key: true,
        splits: Splits::AlterTable,
        bulk: false,
        temporary_tables: false,
        collations: false,
        defer: None,
        is_distributed: true,
        ..Self::POSTGRES
    };

    /// YugabyteDB, by its documentation. Its `COPY` commits in parts where it is not told otherwise, so rows go by
    /// `INSERT`. Primary keys are spread by a hash, and then have no order, unless they are declared `ASC`.
    pub const YUGABYTEDB: Self = Self {
        name: "YugabyteDB",
        guide: page!("yugabytedb"),
        splits: Splits::CreateTable,
        two_phase: TwoPhase::None,
        bulk: false,
        temporary_tables: false,
        is_distributed: true,
        ..Self::POSTGRES
    };

    /// Citus, by its documentation: the primary key of a distributed table has its distribution column, as in a key of
    /// `(tenant, id)`. Rows go by `COPY`; temporary tables were not tried beside distributed ones. `SET CONSTRAINTS` does not
    /// reach its workers, so declare constraints that are to be checked at COMMIT `INITIALLY DEFERRED`.
    pub const CITUS: Self = Self {
        name: "Citus",
        guide: page!("citus"),
        two_phase: TwoPhase::None,
        is_distributed: true,
        temporary_tables: false,
        ..Self::POSTGRES
    };

    /// MySQL and MariaDB.
    pub const MYSQL: Self = Self {
        guide: page!("mysql"),
        // A statement then has 512 kB or one row, also where a server takes packets of 1 MB, as MySQL's did by default
        // before 5.6.
        max_bytes: 1 << 18,
        max_message: MessageLimit::Setting("@@max_allowed_packet"),
        bounds_waits: LockWaits::InnodbLockWaitTimeout,
        tree_deletes: TreeDeletes::ByKey,
        updates: Updates::RowByRow,
        local_locks: ServerFact::Asked(catalog::MYSQL_CLUSTER),
        two_phase: TwoPhase::Xa,
        ask_before_savepoint: Some(catalog::MYSQL_ASK),
        ..Self::of::<MySql>(classify::mysql::classify)
    }
    .with_words(["", catalog::MYSQL_COMMITTED], Some(catalog::mysql))
    .which_is_shown_by(catalog::MYSQL_ENGINE)
    .which_confirms(catalog::MYSQL_WAITS)
    .which_stages(catalog::mysql_can_stage)
    .which_writes(catalog::mysql_can_write);

    /// TiDB, by its documentation: a transaction has at most 100 MB, of which a chunk takes half, as the server counts indexes
    /// and keys, too; a row has at most 6 MiB. Reads see a snapshot of committed rows, and it has no `FOR SHARE`. Keys that rise put all inserts on one region: it has `AUTO_RANDOM` for its own keys.
    pub const TIDB: Self = Self {
        name: "TiDB",
        guide: page!("tidb"),
        bounds_waits: LockWaits::AsSet,
        two_phase: TwoPhase::None,
        splits_by_key: true,
        splits: Splits::SplitTable,
        max_transaction_bytes: Some(50_000_000),
        tree_deletes: TreeDeletes::OneDepth,
        temporary_tables: false,
        ask_before_savepoint: None,
        // It may compare keys only at COMMIT (`tidb_txn_mode`).
        local_locks: ServerFact::Known(true),
        ..Self::MYSQL
    }
    .which_reads_snapshots()
    // `UTC_TIMESTAMP` is not among the functions that may be a default there.
    .which_records_in(
        "CREATE TABLE IF NOT EXISTS ordid_flushes (id BINARY(16) NOT NULL PRIMARY KEY, \
         flushed_at DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3))",
    );

    /// Vitess and PlanetScale, by their documentation. Rows of one unit of work may be in several shards: then each of them
    /// commits by itself, unless Vitess is told to commit in two phases. A lost COMMIT of such rows is resolved by one shard
    /// only, so let the rows of a unit of work be in one shard. A marker row has no tenant, and may be in another one.
    pub const VITESS: Self = Self {
        name: "Vitess",
        guide: page!("vitess"),
        bounds_waits: LockWaits::AsSet,
        two_phase: TwoPhase::None,
        tree_deletes: TreeDeletes::OneDepth,
        temporary_tables: false,
        local_locks: ServerFact::Known(false),
        ask_before_savepoint: None,
        ..Self::MYSQL
    }
    .which_reads_snapshots();

    /// A Galera cluster, of MariaDB or MySQL; its version does not say so. A lock is visible on its own node only. A write set
    /// has at most 2 GiB by default (`wsrep_max_ws_size`), and a row that is updated is in it before and after, so a
    /// transaction takes half. [`MYSQL`](Self::MYSQL) does the same there without this limit, and asks the server whether it
    /// is in a cluster when the answer to a COMMIT was lost.
    pub const GALERA: Self = Self {
        name: "Galera",
        guide: page!("galera"),
        // It has no XA: `XA START` is refused (1235).
        two_phase: TwoPhase::None,
        max_transaction_bytes: Some(1 << 30),
        local_locks: ServerFact::Known(true),
        // It refuses the savepoint itself.
        ask_before_savepoint: None,
        ..Self::MYSQL
    };

    /// A replication group of MySQL, by its documentation; its version does not say so. It is as [`GALERA`](Self::GALERA), but
    /// a transaction has at most 150 MB by default (`group_replication_transaction_size_limit`), of which it takes half. Two-phase
    /// commits over it were not tried, so they are refused.
    pub const GROUP_REPLICATION: Self = Self {
        name: "MySQL Group Replication",
        guide: page!("group-replication"),
        max_transaction_bytes: Some(75_000_000),
        ask_before_savepoint: Some(catalog::MYSQL_ASK),
        ..Self::GALERA
    };

    /// SQLite.
    pub const SQLITE: Self = Self {
        guide: page!("sqlite"),
        // A deferred transaction that reads first and writes later can fail with SQLITE_BUSY at once,
        // however long the busy timeout; one that means to write says so.
        begin: Some("BEGIN IMMEDIATE"),
        defer: Some("PRAGMA defer_foreign_keys = ON"),
        // `ON DELETE CASCADE` takes the children of a row at once, and the statement does not count them.
        tree_deletes: TreeDeletes::OneDepth,
        updates: Updates::WithValues,
        ..Self::of::<Sqlite>(classify::sqlite::classify)
    }
    .which_joins_texts(["group_concat(", ")"])
    .which_writes(catalog::sqlite_can_write);

    /// SQL Server.
    pub const SQL_SERVER: Self = Self {
        guide: page!("sql-server"),
        bulk: true,
        bounds_waits: LockWaits::LockTimeoutOfSession,
        updates: Updates::JoinValues,
        ..Self::of::<SqlServer>(classify::sql_server::classify)
    }
    .with_words([" WITH (READCOMMITTEDLOCK)", ""], Some(catalog::sql_server));

    /// Babelfish. The options that make a bulk load an `INSERT` were not tried there, so it gets none. It does not parse
    /// a `]` that is doubled in a quoted name. `LOCK_TIMEOUT` was not tried there either, so nothing bounds its waits but the
    /// flush's deadline.
    pub const BABELFISH: Self = Self {
        guide: page!("babelfish"),
        updates: Updates::JoinValues,
        ..Self::of::<Babelfish>(classify::sql_server::classify)
    }
    .with_words(["", ""], Some(catalog::babelfish))
    .without_in_names(']');

    /// Oracle.
    pub const ORACLE: Self = Self {
        guide: page!("oracle"),
        defer: Some("SET CONSTRAINTS ALL DEFERRED"),
        updates: Updates::Arrays,
        ..Self::of::<Oracle>(classify::oracle::classify)
    }
    .with_words(["", ""], Some(catalog::oracle))
    .without_in_names('"');

    /// Returns the profile of the engine that answers `SELECT version()` with this text; `None` if the library's own is
    /// right, or the text says nothing, as those of Aurora DSQL, of Citus, and of clusters of MySQL and MariaDB.
    ///
    /// # Example
    ///
    /// ```
    /// use ordid_sql::EngineProfile;
    ///
    /// let version = "8.0.11-TiDB-v8.5.0"; // SELECT version()
    /// let engine = EngineProfile::of_version(version);
    /// assert_eq!(engine.map(|it| it.name), Some("TiDB"));
    /// // if let Some(engine) = engine { work = work.with_engine(engine); }
    /// ```
    pub fn of_version(version: &str) -> Option<Self> {
        const ENGINES: [(&str, EngineProfile); 4] = [
            ("CockroachDB", EngineProfile::COCKROACHDB),
            ("-YB-", EngineProfile::YUGABYTEDB),
            ("-TiDB-", EngineProfile::TIDB),
            ("-Vitess", EngineProfile::VITESS),
        ];
        // Vitess has written its name in both ways.
        let version = version.to_lowercase();
        let is_in = |part: &str| version.contains(&part.to_lowercase());
        let found = ENGINES.iter().find(|(part, _)| is_in(part));
        found.map(|(_, engine)| *engine)
    }

    const fn of<D: FlushDialect>(classify: Classify) -> Self {
        Self {
            name: D::NAME,
            guide: "",
            max_rows: MAX_ROWS,
            max_parameters: D::MAX_PARAMETERS,
            max_bytes: 1 << 20,
            max_message: MessageLimit::None,
            max_transaction_rows: None,
            max_transaction_bytes: None,
            bulk: false,
            temporary_tables: true,
            prepares: true,
            begin: None,
            defer: None,
            deletes_rows_of_themselves: D::DELETES_ROWS_OF_THEMSELVES,
            tree_deletes: TreeDeletes::Any,
            updates: Updates::RowByRow,
            bounds_waits: LockWaits::AsSet,
            counts_inserts: true,
            local_locks: ServerFact::Known(false),
            collations: true,
            savepoints: true,
            is_distributed: false,
            splits_by_key: false,
            splits: Splits::ByItself,
            two_phase: TwoPhase::None,
            ask_before_savepoint: None,
            words: Words {
                dialect: D::NAME,
                quote: <D as Dialect>::quote,
                quote_table: <D as Dialect>::quote_table,
                placeholder: D::push_placeholder,
                counted: D::COUNTED,
                delete_first: D::DELETE_FIRST,
                reads_committed: ["", ""],
                reads_snapshots: false,
                confirms: None,
                as_text: D::AS_TEXT,
                joins_texts: None,
                is_protected: None,
                can_stage: None,
                can_write: None,
                engine: None,
                never_in_names: None,
                flushes_table: D::FLUSHES_TABLE,
            },
            classify,
        }
    }

    const fn with_words(
        mut self,
        reads_committed: [&'static str; 2],
        is_protected: Option<fn(&TableNames, &[usize]) -> String>,
    ) -> Self {
        self.words.reads_committed = reads_committed;
        self.words.is_protected = is_protected;
        self
    }

    const fn which_confirms(mut self, waits: &'static str) -> Self {
        self.words.confirms = Some(waits);
        self
    }

    /// Every read sees a snapshot of committed rows, and there is no lock for reading.
    const fn which_reads_snapshots(mut self) -> Self {
        self.words.reads_committed = ["", ""];
        self.words.reads_snapshots = true;
        self.words.confirms = None;
        self
    }

    const fn which_is_shown_by(mut self, question: &'static str) -> Self {
        self.words.engine = Some(question);
        self
    }

    const fn which_records_in(mut self, table: &'static str) -> Self {
        self.words.flushes_table = table;
        self
    }

    const fn which_stages(mut self, question: fn(&TableNames) -> String) -> Self {
        self.words.can_stage = Some(question);
        self
    }

    const fn which_writes(mut self, question: fn(&TableNames, &[usize]) -> String) -> Self {
        self.words.can_write = Some(question);
        self
    }

    const fn which_joins_texts(mut self, words: [&'static str; 2]) -> Self {
        self.words.joins_texts = Some(words);
        self
    }

    const fn without_in_names(mut self, character: char) -> Self {
        self.words.never_in_names = Some(character);
        self
    }

    /// Returns whether a parameter takes the values of all rows of a statement, and not one value.
    pub(crate) fn binds_arrays(&self) -> bool {
        self.updates == Updates::Arrays
    }

    /// Returns from how many rows on updates go through a temporary table; `None` if they never do.
    pub(crate) fn stages_from(&self) -> Option<usize> {
        let least = match self.updates {
            Updates::RowByRow => 100,
            // That many go by one statement.
            _ => MAX_ROWS + 1,
        };
        let may_stage = self.temporary_tables && self.words.can_stage.is_some();
        may_stage.then_some(least)
    }

    /// Returns from how many rows on the engine's own statement for upserts is worth the question whether it does what is
    /// asked for; `None` if it is not used.
    pub(crate) fn writes_from(&self) -> Option<usize> {
        self.words.can_write.map(|_| 100)
    }

    /// Says what an error of the engine means.
    pub fn classify(&self, report: &classify::Report<'_>) -> classify::Classified {
        (self.classify)(report)
    }

    /// Returns an error of COMMIT with what it means on this engine: a library knows only whose protocol it speaks.
    pub(crate) fn of_commit<D>(&self, mut error: DriverError<D>) -> DriverError<D> {
        if self.is_distributed && error.is_of_server && error.failure == Failure::Refused {
            error.failure = Failure::Lost;
        }
        error
    }

    /// Returns the [name](Dialect::NAME) of the dialect that the engine's statements are written in.
    pub const fn dialect(&self) -> &'static str {
        self.words.dialect
    }

    /// Returns the statement that creates the table of marker rows.
    pub(crate) const fn flushes_table(&self) -> &'static str {
        self.words.flushes_table
    }

    /// Returns a name as the engine's dialect quotes it.
    pub fn quote(&self, name: &str) -> String {
        (self.words.quote)(name)
    }

    /// Returns a table's name, quoted, behind its schema where there is one.
    pub fn quote_table(&self, schema: Option<&str>, table: &str) -> String {
        (self.words.quote_table)(schema, table)
    }
}

/// The DDL of each dialect's table of marker rows.
macro_rules! flush_dialects {
    ($($dialect:ty: $profile:ident, $table:expr;)+) => {
        $(impl FlushDialect for $dialect {
            const PROFILE: EngineProfile = EngineProfile::$profile;
            const FLUSHES_TABLE: &'static str = $table;
        })+
    };
}

const TRANSACT_SQL: &str = "\
    IF OBJECT_ID(N'ordid_flushes') IS NULL CREATE TABLE [ordid_flushes] ([id] BINARY(16) NOT NULL \
    PRIMARY KEY, [flushed_at] DATETIME2(3) NOT NULL DEFAULT SYSUTCDATETIME())";

flush_dialects! {
    Postgres: POSTGRES, "CREATE TABLE IF NOT EXISTS ordid_flushes (id uuid NOT NULL PRIMARY KEY, \
        flushed_at timestamptz NOT NULL DEFAULT now())";
    // A `TIMESTAMP` ends in 2038. The default is of MySQL 8.0.13 and MariaDB 10.2.
    MySql: MYSQL, "CREATE TABLE IF NOT EXISTS ordid_flushes (id BINARY(16) NOT NULL PRIMARY KEY, \
        flushed_at DATETIME(3) NOT NULL DEFAULT (UTC_TIMESTAMP(3))) ENGINE=InnoDB";
    Sqlite: SQLITE, "CREATE TABLE IF NOT EXISTS ordid_flushes (id BLOB NOT NULL PRIMARY KEY, \
        flushed_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP) WITHOUT ROWID";
    SqlServer: SQL_SERVER, TRANSACT_SQL;
    Babelfish: BABELFISH, TRANSACT_SQL;
    // Oracle knows `IF NOT EXISTS` only from 23ai on.
    Oracle: ORACLE, "CREATE TABLE ordid_flushes (id RAW(16) NOT NULL PRIMARY KEY, \
        flushed_at TIMESTAMP WITH TIME ZONE DEFAULT SYSTIMESTAMP NOT NULL)";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behind_a_pooler_of_transactions_nothing_is_prepared_by_name() {
        let engine = EngineProfile::PGBOUNCER;
        assert!(!engine.prepares && !engine.bulk);
        assert_eq!(engine.name, EngineProfile::POSTGRES.name);
        assert!(ALL.iter().all(|it| it.prepares));
    }

    const ALL: [EngineProfile; 6] = [
        EngineProfile::POSTGRES,
        EngineProfile::MYSQL,
        EngineProfile::SQLITE,
        EngineProfile::SQL_SERVER,
        EngineProfile::BABELFISH,
        EngineProfile::ORACLE,
    ];

    const CLUSTERS: [EngineProfile; 8] = [
        EngineProfile::AURORA_DSQL,
        EngineProfile::COCKROACHDB,
        EngineProfile::YUGABYTEDB,
        EngineProfile::CITUS,
        EngineProfile::TIDB,
        EngineProfile::VITESS,
        EngineProfile::GALERA,
        EngineProfile::GROUP_REPLICATION,
    ];

    #[test]
    fn engines_of_several_machines_are_marked() {
        let names = |has: fn(&EngineProfile) -> bool| {
            let marked = CLUSTERS.iter().filter(|it| has(it));
            marked.map(|it| it.name).collect::<Vec<_>>()
        };
        assert_eq!(
            names(|it| it.splits_by_key),
            ["Aurora DSQL", "CockroachDB", "TiDB"]
        );
        assert_eq!(
            names(|it| it.is_distributed),
            ["Aurora DSQL", "CockroachDB", "YugabyteDB", "Citus"]
        );
        assert_eq!(names(|it| !it.savepoints), ["Aurora DSQL"]);
    }

    /// The texts of their documentation, and of the servers that run here.
    #[test]
    fn the_version_tells_engines_that_speak_anothers_protocol() {
        for (version, expected) in [
            (
                "CockroachDB CCL v23.1.11 (x86_64-pc-linux-gnu, built 2023/09/27 01:53:43, go1.19.10)",
                Some("CockroachDB"),
            ),
            (
                "PostgreSQL 15.2-YB-2.25.0.0-b0 on x86_64-pc-linux-gnu, compiled by clang version 17.0.6",
                Some("YugabyteDB"),
            ),
            ("8.0.11-TiDB-v8.5.0", Some("TiDB")),
            ("8.0.30-Vitess", Some("Vitess")),
            ("8.0.31-vitess-15.0.2", Some("Vitess")),
            (
                "PostgreSQL 15.18 (Debian 15.18-0+deb12u1) on x86_64-pc-linux-gnu",
                None,
            ),
            ("10.11.19-MariaDB-0+deb12u1", None),
            ("9.7.4", None),
        ] {
            let found = EngineProfile::of_version(version).map(|it| it.name);
            assert_eq!(found, expected, "{version}");
        }
    }

    /// What these engines do not have.
    #[test]
    fn engines_beyond_one_machine_are_asked_for_nothing_that_they_refuse() {
        for engine in [
            EngineProfile::AURORA_DSQL,
            EngineProfile::COCKROACHDB,
            EngineProfile::YUGABYTEDB,
            EngineProfile::CITUS,
            EngineProfile::TIDB,
            EngineProfile::VITESS,
        ] {
            let name = engine.name;
            assert_eq!(engine.stages_from(), None, "{name}");
            assert_eq!(engine.bulk, name == "Citus", "{name}");
            let shares = engine.words.reads_committed.concat();
            assert!(
                !shares.contains("SHARE") && engine.words.confirms.is_none(),
                "{name}"
            );
        }
        for engine in CLUSTERS {
            assert_eq!(engine.two_phase, TwoPhase::None, "{}", engine.name);
        }
        assert_eq!(EngineProfile::COCKROACHDB.defer, None);
        assert_eq!(EngineProfile::AURORA_DSQL.bounds_waits, LockWaits::AsSet);
    }

    #[test]
    fn each_engine_behaves_in_its_way() {
        let of = |it: &EngineProfile| (it.max_parameters, it.bulk, it.updates, it.defer.is_some());
        let expected = [
            (65_535, true, Updates::FromValues, true),
            (65_535, false, Updates::RowByRow, false),
            (32_766, false, Updates::WithValues, true),
            (2_098, true, Updates::JoinValues, false),
            (2_098, false, Updates::JoinValues, false),
            (65_535, false, Updates::Arrays, true),
        ];
        for (engine, expected) in ALL.iter().zip(expected) {
            assert_eq!(of(engine), expected, "{}", engine.name);
            assert_eq!(engine.max_rows, MAX_ROWS);
            assert_eq!(engine.binds_arrays(), engine.updates == Updates::Arrays);
        }
        let begin = ALL.iter().filter_map(|it| it.begin);
        assert_eq!(begin.collect::<Vec<_>>(), ["BEGIN IMMEDIATE"]);
        let defer = ALL.iter().filter_map(|it| it.defer);
        assert_eq!(
            defer.collect::<Vec<_>>(),
            [
                "SET CONSTRAINTS ALL DEFERRED",
                "PRAGMA defer_foreign_keys = ON",
                "SET CONSTRAINTS ALL DEFERRED"
            ]
        );
    }

    #[test]
    fn names_and_errors_are_those_of_the_engine() {
        let quoted = ALL.iter().map(|it| it.quote_table(Some("s"), "t"));
        assert_eq!(
            quoted.collect::<Vec<_>>(),
            [
                r#""s"."t""#,
                "`s`.`t`",
                r#""s"."t""#,
                "[s].[t]",
                "[s].[t]",
                r#""s"."t""#
            ]
        );
        assert_eq!(EngineProfile::MYSQL.quote_table(None, "a`b"), "`a``b`");
        let deadlock = classify::Report {
            message: "deadlock detected",
            ..classify::Report::default()
        };
        let failure = |engine: &EngineProfile| engine.classify(&deadlock).failure;
        assert_eq!(failure(&EngineProfile::POSTGRES), crate::Failure::Transient);
        assert_eq!(failure(&EngineProfile::SQLITE), crate::Failure::Refused);
    }

    #[test]
    fn a_dialect_leads_to_its_engine_and_its_table_of_marker_rows() {
        fn of<D: FlushDialect>() -> (&'static str, bool) {
            let creates = D::FLUSHES_TABLE.contains("CREATE TABLE");
            (
                D::PROFILE.name,
                creates && D::FLUSHES_TABLE.contains(crate::MARKER_TABLE),
            )
        }
        let names = [
            of::<Postgres>(),
            of::<MySql>(),
            of::<Sqlite>(),
            of::<SqlServer>(),
            of::<Babelfish>(),
            of::<Oracle>(),
        ];
        assert_eq!(names, ALL.map(|engine| (engine.name, true)));
    }
}
