//! The statements that support an advice, each with its source.

use ordid_core::scheme::catalogue::{AnyColumn, Entry};
use ordid_sql::EngineProfile;
use serde::Serialize;

use super::{Machines, Question, Target};
use crate::engine::Engine;

/// A statement, and the page that says so.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Fact {
    pub(super) text: String,
    pub(super) source: &'static str,
}

/// The document with the measurements.
const PLATFORM: &str = "https://github.com/ordid/ordid/blob/main/PLATFORM.md";
/// The traps of engines, which tests show.
const POSTGRES_TRAPS: &str =
    "https://github.com/ordid/ordid/blob/main/docs/src/engines/postgresql.md#traps";
const MARIADB_TRAPS: &str =
    "https://github.com/ordid/ordid/blob/main/docs/src/engines/mariadb.md#traps";
const UNIT_OF_WORK: &str = "https://github.com/ordid/ordid/blob/main/docs/src/unit-of-work.md";
const SPREAD_KEYS: &str = "https://github.com/ordid/ordid/blob/main/docs/src/beyond-one-machine.md#spread-keys-over-machines";
const RFC_SORTING: &str = "https://www.rfc-editor.org/rfc/rfc9562.html#section-6.11";
const RFC_UNGUESSABLE: &str = "https://www.rfc-editor.org/rfc/rfc9562.html#section-6.9";
const RFC_SECURITY: &str = "https://www.rfc-editor.org/rfc/rfc9562.html#section-8";

fn fact(text: impl Into<String>, source: &'static str) -> Fact {
    Fact {
        text: text.into(),
        source,
    }
}

/// Returns the statements of an advice.
pub(super) fn facts(question: Question, scheme: &'static Entry, column: &AnyColumn) -> Vec<Fact> {
    let mut facts = vec![
        fact(
            format!(
                "the keys are ordered by {}; what breaks that order: {}",
                scheme.ordered_by, scheme.broken_by
            ),
            of_scheme(scheme.name),
        ),
        fact(
            format!(
                "a column {} of {} {}: {}",
                column.name,
                column.dialect,
                match question.is_64 {
                    true => "compares the numbers",
                    false => column.comparison.describe(),
                },
                column.source
            ),
            of_column(question.server.engine(), column.name),
        ),
    ];
    facts.extend(of_server(question));
    if !question.server.has_ranges() {
        // The others have the engine's language, and other trees.
        facts.extend(of_engine(question));
    }
    if question.is_64 {
        facts.extend(of_64_bits(question));
    }
    facts.push(of_secrecy(question, scheme));
    facts
}

/// The page about a scheme.
fn of_scheme(name: &str) -> &'static str {
    match name {
        "snowflake" => "https://github.com/twitter-archive/snowflake/tree/snowflake-2010",
        "uuid_v7_spread" | "snowflake_spread" => SPREAD_KEYS,
        "uuid_v8_sql_server" => "https://www.rfc-editor.org/rfc/rfc9562.html#section-5.8",
        _ => "https://www.rfc-editor.org/rfc/rfc9562.html#section-5.7",
    }
}

/// The page about how an engine compares a column.
fn of_column(engine: Engine, column: &str) -> &'static str {
    match (engine, column) {
        (Engine::Postgres, "bigint") => {
            "https://github.com/postgres/postgres/blob/master/src/backend/access/nbtree/nbtcompare.c"
        }
        (Engine::Postgres, _) => {
            "https://github.com/postgres/postgres/blob/master/src/backend/utils/adt/uuid.c"
        }
        (Engine::Mysql, "bigint") => "https://dev.mysql.com/doc/refman/8.4/en/integer-types.html",
        (Engine::Mysql, _) => "https://dev.mysql.com/doc/refman/8.4/en/binary-varbinary.html",
        (Engine::Mariadb, "bigint") => "https://mariadb.com/kb/en/bigint/",
        (Engine::Mariadb, _) => "https://mariadb.com/kb/en/binary/",
        (Engine::Sqlite, _) => "https://www.sqlite.org/datatype3.html",
        (Engine::SqlServer, "bigint") => {
            "https://learn.microsoft.com/en-us/sql/t-sql/data-types/int-bigint-smallint-and-tinyint-transact-sql"
        }
        (Engine::SqlServer, _) => {
            "https://learn.microsoft.com/en-us/sql/connect/ado-net/sql/compare-guid-uniqueidentifier-values"
        }
        (Engine::Oracle, _) => {
            "https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/Data-Type-Comparison-Rules.html"
        }
    }
}

/// Returns the statements about an engine beyond one machine. Only those about Galera were tried on a server.
fn of_server(question: Question) -> Vec<Fact> {
    let spread = fact(
        "a spread key begins with one of 16 buckets and rises in each, so 16 ranges take the inserts; a query by time asks \
         each bucket, and another number of buckets later would not find older rows by time",
        SPREAD_KEYS,
    );
    match question.server {
        Target::Cockroachdb => vec![
            fact(
                "keys that rise put all inserts on the last range, which load-based splitting cannot relieve",
                "https://www.cockroachlabs.com/docs/stable/hash-sharded-indexes",
            ),
            spread,
            fact(
                "another way: keys that rise under PRIMARY KEY (id) USING HASH, whose bucket is in a hidden column",
                "https://www.cockroachlabs.com/docs/stable/hash-sharded-indexes",
            ),
            fact(
                "a COMMIT that ends with 40003 is in doubt, and 40001 is to be tried again: a flush does both with \
                 EngineProfile::COCKROACHDB",
                EngineProfile::COCKROACHDB.guide,
            ),
        ],
        Target::Yugabytedb => vec![
            fact(
                "a primary key without ASC is sharded by its hash: no rows stand in the order of the key, and a query by \
                 range asks all tablets",
                "https://docs.yugabyte.com/stable/explore/going-beyond-sql/data-sharding",
            ),
            fact(
                "a rising key in front of a range-sharded primary key is a hot shard",
                "https://docs.yugabyte.com/preview/develop/data-modeling/hot-shards-ysql/",
            ),
            spread,
        ],
        Target::Tidb => vec![
            match question.is_64 {
                false => fact(
                    "UUIDs go into BINARY(16) under a CLUSTERED primary key, without the swap_flag of UUID_TO_BIN, which \
                     puts the time in front and makes a hotspot",
                    "https://docs.pingcap.com/tidb/v7.5/uuid",
                ),
                true => fact(
                    "AUTO_INCREMENT puts all inserts on one range; AUTO_RANDOM spreads them as the buckets do, but the \
                     program has the key only after the INSERT",
                    "https://docs.pingcap.com/tidb/v5.3/auto-random",
                ),
            },
            spread,
            fact(
                "before TiDB 6.5 a transaction may have 100 MB, since then the session's memory is the limit; conflicts come at \
                 COMMIT (8002, 8022, 8028, 9007) and are tried again with EngineProfile::TIDB",
                EngineProfile::TIDB.guide,
            ),
        ],
        Target::Dsql => vec![
            fact(
                "the table is stored in the order of its primary key and split by it: rising keys send all inserts to one \
                 partition. It cannot be changed later",
                "https://docs.aws.amazon.com/aurora-dsql/latest/userguide/working-with-primary-keys.html",
            ),
            spread,
            fact(
                "a transaction may write 3,000 rows and 10 MiB: larger units of work go by `in_chunks`, with \
                 EngineProfile::AURORA_DSQL",
                EngineProfile::AURORA_DSQL.guide,
            ),
        ],
        Target::Citus => vec![
            fact(
                "a primary key has to contain the distribution column, so the key is of two columns: the tenant, and the id",
                "https://docs.citusdata.com/en/v11.3/develop/migration_mt_query.html",
            ),
            fact(
                "rows are placed by the hash of the tenant, so ids that rise are as good as on one machine",
                EngineProfile::CITUS.guide,
            ),
        ],
        Target::Vitess => vec![
            fact(
                "each sharded table has a primary vindex, which says on which shard a row is: a hash of the tenant keeps the \
                 rows of one together",
                "https://vitess.io/docs/reference/features/vindexes/",
            ),
            fact(
                "the table of marker rows needs a vindex, too: ALTER VSCHEMA ON ordid_flushes ADD VINDEX xxhash(id) USING xxhash",
                "https://vitess.io/docs/reference/features/vindexes/",
            ),
            fact(
                "AUTO_INCREMENT makes the same keys on each shard; keys that the program makes need no sequence table",
                "https://planetscale.com/docs/sharding/pre-sharding-checklist",
            ),
        ],
        Target::Galera => vec![
            fact(
                "each table needs a primary key",
                "https://mariadb.com/docs/galera-cluster/reference/mariadb-galera-cluster-known-limitations",
            ),
            fact(
                "AUTO_INCREMENT goes in steps of the number of nodes, and its values are neither dense nor in the order of \
                 the inserts",
                "https://mariadb.com/kb/en/5758/",
            ),
            fact(
                "another node aborts a transaction at COMMIT or before with 1213; a flush is tried again with \
                 EngineProfile::GALERA, on three nodes in the tests of ordid",
                EngineProfile::GALERA.guide,
            ),
        ],
        _ => Vec::new(),
    }
}

/// The traps of the engine whose columns these are.
fn of_engine(question: Question) -> Vec<Fact> {
    match (question.server.engine(), question.is_64) {
        (Engine::Postgres, false) => vec![
            fact(
                "UUIDs as text take more than twice the index, and lose their order as base 64 under any collation but \
                 \"C\"; in `uuid` there is no collation",
                "https://www.postgresql.org/docs/current/collation.html",
            ),
            fact(
                "random keys (gen_random_uuid) fill each page of the index to about 70 % and write a full page after each \
                 checkpoint for almost every row",
                PLATFORM,
            ),
            fact(
                "`uuid = text` and min(uuid) are errors on PostgreSQL 15: key types bind `uuid`, and ORDER BY id LIMIT 1 gives \
                 the least",
                POSTGRES_TRAPS,
            ),
        ],
        (Engine::Mysql | Engine::Mariadb, false) => vec![
            fact(
                "InnoDB keeps rows in the order of the primary key, and each secondary index repeats it: random keys hit \
                 another page with each insert, and CHAR(36) makes each index wider than BINARY(16)",
                "https://dev.mysql.com/doc/refman/8.4/en/innodb-index-types.html",
            ),
            fact(
                "text compared with BINARY(16) finds nothing and says nothing; without strict mode the first 16 characters \
                 of a text are stored: key types bind bytes",
                MARIADB_TRAPS,
            ),
        ]
        .into_iter()
        .chain((question.server.engine() == Engine::Mariadb).then(|| {
            fact(
                "MariaDB's own UUID type serves as well (`mysql = mariadb_uuid`) from 10.10.6 and 10.11.5 on; it compares \
                 versions 1 to 5 from their last segment",
                "https://mariadb.com/kb/en/uuid-data-type",
            )
        }))
        .collect(),
        (Engine::Mysql | Engine::Mariadb, true) => vec![fact(
            "InnoDB keeps rows in the order of the primary key, and each secondary index repeats its 8 bytes",
            "https://dev.mysql.com/doc/refman/8.4/en/innodb-index-types.html",
        )],
        (Engine::Sqlite, false) => vec![
            fact(
                "a column declared UUID, GUID or BINARY(16) has the affinity NUMERIC, which makes numbers of texts: \
                 declare BLOB",
                "https://www.sqlite.org/datatype3.html",
            ),
            fact(
                "WITHOUT ROWID keeps rows in the order of the key and saves the second index of a rowid table",
                "https://www.sqlite.org/withoutrowid.html",
            ),
            fact(
                "a PRIMARY KEY of a rowid table takes NULL unless it is NOT NULL",
                "https://www.sqlite.org/quirks.html",
            ),
        ],
        (Engine::Sqlite, true) => vec![fact(
            "INTEGER PRIMARY KEY is the rowid itself; BIGINT PRIMARY KEY is a second index",
            "https://www.sqlite.org/lang_createtable.html",
        )],
        (Engine::SqlServer, false) => vec![
            fact(
                "uniqueidentifier compares bytes 10 to 15 first: version 7 is out of order there, and NEWID() with each \
                 insert",
                "https://learn.microsoft.com/en-us/sql/connect/ado-net/sql/compare-guid-uniqueidentifier-values",
            ),
            fact(
                "NEWSEQUENTIALID() rises from a start of its own after each restart of Windows, and others can guess the \
                 next value",
                "https://learn.microsoft.com/en-us/sql/t-sql/functions/newsequentialid-transact-sql",
            ),
        ],
        (Engine::SqlServer, true) => vec![fact(
            "IDENTITY is not needed: the program has the key before the INSERT",
            "https://learn.microsoft.com/en-us/sql/t-sql/data-types/int-bigint-smallint-and-tinyint-transact-sql",
        )],
        (Engine::Oracle, false) => vec![fact(
            "RAW(16) is compared byte by byte; SYS_GUID() has no documented order, and ODP.NET writes a Guid in .NET's byte \
             order (`oracle = raw16_dotnet`)",
            "https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/Data-Type-Comparison-Rules.html",
        )],
        (Engine::Oracle | Engine::Postgres, true) => vec![fact(
            "no sequence is asked: the program has the key before the INSERT, and a batch goes in one round trip",
            UNIT_OF_WORK,
        )],
    }
}

/// Returns the statements about keys of 64 bits.
fn of_64_bits(question: Question) -> Vec<Fact> {
    let nodes = match question.machines {
        Machines::One => {
            "each generator needs a node number of its own, also on one machine: two processes with one number repeat each \
             other's keys"
        }
        Machines::Many => {
            "each machine needs a node number that no other has at the same time: take a lease of ordid (tables, Redis, \
             ZooKeeper, etcd), since two with one number repeat each other's keys"
        }
    };
    vec![
        fact(
            nodes,
            "https://github.com/twitter-archive/snowflake/tree/snowflake-2010",
        ),
        fact(
            "JavaScript reads integers above 2^53 wrongly: send them as text",
            "https://developer.mozilla.org/en-US/docs/Web/JavaScript/Reference/Global_Objects/Number/MAX_SAFE_INTEGER",
        ),
    ]
}

/// Returns the statements about what a key shows to strangers.
fn of_secrecy(question: Question, scheme: &Entry) -> Fact {
    let bits = scheme.unknown_bits;
    match (question.is_public, bits) {
        (true, 0) => fact(
            "whoever sees a key knows the next ones: check the right to each row, and take 128 bits where an id has to be hard \
             to guess",
            RFC_UNGUESSABLE,
        ),
        (true, bits) => {
            // The derive takes a mask for these alone.
            let hides = match scheme.name {
                "uuid_v7" | "uuid_v7_unguessable" => "`mask = MASK` in the derive hides the time",
                _ => "a random id beside it would not tell",
            };
            fact(
                format!(
                    "whoever sees a key does not know {bits} bits of the next one, but knows when it was made; {hides}. A key \
                     is no password: check the right to each row"
                ),
                RFC_SECURITY,
            )
        }
        (false, 0) => fact(
            "whoever sees a key knows the next ones: --public if people outside see them",
            RFC_UNGUESSABLE,
        ),
        (false, _) => fact(
            match question.machines {
                Machines::One => format!(
                    "keys rise strictly over all threads of the process; whoever sees one does not know {bits} bits of the \
                     next"
                ),
                Machines::Many => format!(
                    "keys rise strictly within a process, and over several as their clocks do; whoever sees one does not \
                     know {bits} bits of the next"
                ),
            },
            RFC_SORTING,
        ),
    }
}
