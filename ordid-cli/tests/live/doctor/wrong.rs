//! Tables that are wrong on purpose, each in one way, and clean ones.

use super::{
    keys::{
        BEGIN, baidu, insert, native, noise, ordered_texts, snowflake, swapped, text, v1, v4, v6,
        v7, v7_at,
    },
    run,
};
use crate::place::Result;

/// The engines that are examined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Engine {
    Postgres,
    Mariadb,
    Mysql,
    Sqlite,
}

use Engine::{Mariadb, Mysql, Postgres, Sqlite};

impl Engine {
    /// Returns the engine of a server's address.
    pub(super) fn of(url: &str) -> Self {
        if url.starts_with("postgres") {
            return Postgres;
        }
        let version = crate::place::block_on(async {
            use sqlx::Connection as _;
            let mut connection = sqlx::MySqlConnection::connect(url).await?;
            let version: String = sqlx::query_scalar("SELECT version()")
                .fetch_one(&mut connection)
                .await?;
            connection.close().await?;
            Ok(version)
        });
        match version.is_ok_and(|version| version.contains("MariaDB")) {
            true => Mariadb,
            false => Mysql,
        }
    }

    /// The column for 128 bits.
    fn uuid(self) -> &'static str {
        match self {
            Postgres => "uuid",
            Sqlite => "BLOB",
            Mariadb | Mysql => "BINARY(16)",
        }
    }

    /// A table of 16 bytes that nothing is to be said against.
    fn table(self, name: &str, more: &str) -> String {
        let tail = if self == Sqlite { " WITHOUT ROWID" } else { "" };
        format!(
            "CREATE TABLE {name} (id {} NOT NULL PRIMARY KEY{more}){tail};\n",
            self.uuid()
        )
    }

    /// A table of integers.
    fn integers(self, name: &str, more: &str) -> String {
        let integer = if self == Sqlite { "INTEGER" } else { "BIGINT" };
        format!("CREATE TABLE {name} (id {integer} NOT NULL PRIMARY KEY{more});\n")
    }

    fn timestamp(self) -> &'static str {
        match self {
            Postgres => "timestamptz",
            Sqlite => "TEXT",
            Mariadb | Mysql => "DATETIME(3)",
        }
    }
}

/// A table that is wrong in one way.
pub(super) struct Case {
    pub(super) table: &'static str,
    pub(super) engines: &'static [Engine],
    /// Severity, rule and column.
    pub(super) finding: &'static str,
    /// Makes the table.
    pub(super) script: fn(Engine) -> String,
    /// Whether the SQL of the fix is run, and the table then clean.
    pub(super) is_fixed: bool,
}

const ALL: &[Engine] = &[Postgres, Mariadb, Mysql, Sqlite];
const INNODB: &[Engine] = &[Mariadb, Mysql];

/// A moment as SQL.
fn moment(row: u64) -> String {
    let seconds = row % 60;
    let (minutes, hours) = (row / 60 % 60, row / 3_600 % 24);
    format!(
        "'2026-01-{:02} {hours:02}:{minutes:02}:{seconds:02}'",
        1 + row / 86_400
    )
}

/// All cases.
pub(super) fn cases() -> Vec<Case> {
    let case = |table, engines, finding, script, is_fixed| Case {
        table,
        engines,
        finding,
        script,
        is_fixed,
    };
    vec![
        case(
            "clustered_v4",
            &[Mariadb, Mysql, Sqlite],
            "warning clustered-v4 id",
            |engine| {
                engine.table("clustered_v4", "")
                    + &insert("clustered_v4", (0..200).map(|row| native(engine, v4(row))))
            },
            false,
        ),
        case(
            "random_index",
            &[Postgres],
            "note random-index id",
            |engine| {
                engine.table("random_index", "")
                    + &insert("random_index", (0..200).map(|row| native(engine, v4(row))))
            },
            false,
        ),
        case(
            "random_in_rowid",
            &[Sqlite],
            "note random-index id",
            |engine| {
                "CREATE TABLE random_in_rowid (id BLOB NOT NULL PRIMARY KEY);".to_owned()
                    + &insert(
                        "random_in_rowid",
                        (0..200).map(|row| native(engine, v4(row))),
                    )
            },
            false,
        ),
        case(
            "swapped",
            &[Mariadb, Mysql, Sqlite],
            "warning swapped-bytes id",
            |engine| {
                engine.table("swapped", "")
                    + &insert(
                        "swapped",
                        (0..200).map(|row| native(engine, swapped(v7(row)))),
                    )
            },
            true,
        ),
        case(
            "swapped_bytea",
            &[Postgres],
            "warning swapped-bytes id",
            |_| {
                let rows = (0..200).map(|row| format!("'\\x{:032x}'", swapped(v7(row))));
                "CREATE TABLE swapped_bytea (id bytea PRIMARY KEY);".to_owned()
                    + &insert("swapped_bytea", rows)
            },
            true,
        ),
        case(
            "first_version",
            ALL,
            "warning order-lost id",
            |engine| {
                engine.table("first_version", "")
                    + &insert("first_version", (0..200).map(|row| native(engine, v1(row))))
            },
            false,
        ),
        case(
            "mariadb_uuid",
            &[Mariadb],
            "warning mariadb-uuid-swap id",
            |_| {
                let rows = (0..200)
                    .map(|row| format!("'{}'", text(if row < 100 { v1(row) } else { v7(row) })));
                "CREATE TABLE mariadb_uuid (id UUID NOT NULL PRIMARY KEY);".to_owned()
                    + &insert("mariadb_uuid", rows)
            },
            false,
        ),
        case(
            "backwards",
            ALL,
            "warning out-of-order id",
            |engine| {
                let created = format!(", created_at {} NOT NULL", engine.timestamp());
                let rows = (0..200)
                    .map(|row| format!("{}, {}", native(engine, v7(1_000 - row)), moment(row)));
                engine.table("backwards", &created) + &insert("backwards", rows)
            },
            false,
        ),
        case(
            "numbered_backwards",
            INNODB,
            "warning out-of-order id",
            |engine| {
                let rows = (0..200).map(|row| format!("{}, NULL", native(engine, v7(1_000 - row))));
                engine.table(
                    "numbered_backwards",
                    ", number INT NOT NULL AUTO_INCREMENT, KEY (number)",
                ) + &insert("numbered_backwards", rows)
            },
            false,
        ),
        case(
            "mixed",
            ALL,
            "note mixed-schemes id",
            |engine| {
                let rows =
                    (0..200).map(|row| native(engine, if row < 100 { v6(row) } else { v7(row) }));
                engine.table("mixed", "") + &insert("mixed", rows)
            },
            false,
        ),
        case(
            "two_spellings",
            ALL,
            "error two-spellings id",
            |engine| {
                let rows = (0..100).map(v7).flat_map(|key| {
                    [
                        format!("'{}'", text(key)),
                        format!("'{}'", text(key).to_uppercase()),
                    ]
                });
                texts(engine, "two_spellings") + &insert("two_spellings", rows.take(101))
            },
            false,
        ),
        case(
            "mixed_spellings",
            ALL,
            "warning mixed-spellings id",
            |engine| {
                let rows = (0..100).map(|row| match row % 2 {
                    0 => format!("'{}'", text(v7(row))),
                    _ => format!("'{:032x}'", v7(row)),
                });
                texts(engine, "mixed_spellings") + &insert("mixed_spellings", rows)
            },
            true,
        ),
        case(
            "uuid_text",
            &[Postgres, Mariadb, Mysql],
            "warning uuid-as-text id",
            |_| {
                "CREATE TABLE uuid_text (id VARCHAR(255) NOT NULL PRIMARY KEY);".to_owned()
                    + &insert(
                        "uuid_text",
                        (0..100).map(|row| format!("'{}'", text(v7(row)))),
                    )
            },
            true,
        ),
        case(
            "uuid_text_kept",
            ALL,
            "note uuid-as-text id",
            |engine| {
                texts(engine, "uuid_text_kept")
                    + &insert(
                        "uuid_text_kept",
                        (0..100).map(|row| format!("'{}'", text(v7(row)))),
                    )
            },
            true,
        ),
        case(
            "folded",
            &[Mariadb, Mysql, Sqlite],
            "error text-key-collation id",
            |engine| {
                let column = if engine == Sqlite {
                    "TEXT COLLATE NOCASE"
                } else {
                    "CHAR(22) CHARACTER SET utf8mb4"
                };
                let tail = if engine == Sqlite {
                    " WITHOUT ROWID"
                } else {
                    ""
                };
                format!("CREATE TABLE folded (id {column} NOT NULL PRIMARY KEY){tail};\n")
                    + &insert(
                        "folded",
                        ordered_texts(100).into_iter().map(|key| format!("'{key}'")),
                    )
            },
            true,
        ),
        case(
            "collated",
            &[Postgres],
            "warning text-key-collation id",
            |_| {
                "CREATE TABLE collated (id text COLLATE \"en-x-icu\" PRIMARY KEY);".to_owned()
                    + &insert(
                        "collated",
                        ordered_texts(100).into_iter().map(|key| format!("'{key}'")),
                    )
            },
            true,
        ),
        case(
            "char_n",
            &[Postgres],
            "warning char-n-key id",
            |_| {
                "CREATE TABLE char_n (id char(36) PRIMARY KEY);".to_owned()
                    + &insert("char_n", (0..100).map(|row| format!("'{}'", text(v7(row)))))
            },
            true,
        ),
        case(
            "affinity",
            &[Sqlite],
            "error numeric-affinity id",
            |_| {
                let rows = (0..100)
                    .map(|row| format!("'{:032x}'", v7(row) | 0xabcd))
                    .chain(["'12345678901234567890123456789012'".to_owned()]);
                "CREATE TABLE affinity (id UUID NOT NULL PRIMARY KEY) WITHOUT ROWID;".to_owned()
                    + &insert("affinity", rows)
            },
            false,
        ),
        case(
            "classes",
            &[Sqlite],
            "error mixed-storage id",
            |engine| {
                let rows = (0..100).map(|row| match row % 2 {
                    0 => native(engine, v7(row)),
                    _ => format!("'{}'", text(v7(row))),
                });
                engine.table("classes", "") + &insert("classes", rows)
            },
            true,
        ),
        case(
            "cut",
            INNODB,
            "error truncated-text id",
            |engine| {
                let rows = (0..100).map(|row| format!("'{}'", &text(v4(row))[..16]));
                engine.table("cut", "") + &insert("cut", rows)
            },
            false,
        ),
        case(
            "padded",
            INNODB,
            "warning padded-key id",
            |engine| {
                let rows = (0..100)
                    .map(|row| format!("X'{:08x}0123456789{:06x}'", BEGIN / 1_000 + row, row + 1));
                engine.table("padded", "") + &insert("padded", rows)
            },
            true,
        ),
        case(
            "nil",
            ALL,
            "warning nil-key id",
            |engine| {
                engine.table("nil", "")
                    + &insert(
                        "nil",
                        (0..100).map(|row| native(engine, if row == 0 { 0 } else { v7(row) })),
                    )
            },
            false,
        ),
        case(
            "future",
            ALL,
            "error future-key id",
            |engine| {
                let late = v7_at(4_102_444_800_000, 1);
                engine.table("future", "")
                    + &insert(
                        "future",
                        (0..100).map(|row| native(engine, if row == 99 { late } else { v7(row) })),
                    )
            },
            false,
        ),
        case(
            "takes_null",
            &[Sqlite],
            "warning nullable-key id",
            |_| {
                // A key of two columns, so that nothing else is to be said.
                "CREATE TABLE takes_null (id BLOB, other TEXT NOT NULL, PRIMARY KEY (id, other));"
                    .to_owned()
                    + &insert(
                        "takes_null",
                        (0..10).map(|row| format!("X'{:032x}', 'a'", v7(row))),
                    )
            },
            true,
        ),
        case(
            "not_the_rowid",
            &[Sqlite],
            "warning not-the-rowid id",
            |_| {
                "CREATE TABLE not_the_rowid (id BIGINT NOT NULL PRIMARY KEY);".to_owned()
                    + &insert("not_the_rowid", (1..50).map(|row| row.to_string()))
            },
            true,
        ),
        case(
            "second_tree",
            &[Sqlite],
            "note second-tree id",
            |engine| {
                "CREATE TABLE second_tree (id BLOB NOT NULL PRIMARY KEY);".to_owned()
                    + &insert("second_tree", (0..50).map(|row| native(engine, v7(row))))
            },
            true,
        ),
        case("sparse", ALL, "warning sparse-pages id", sparse, true),
        case(
            "orders_lines",
            &[Postgres, Sqlite],
            "warning unindexed-foreign-key parent",
            |engine| {
                engine.table("clean_parents", "")
                    + &engine.table(
                        "orders_lines",
                        &format!(", parent {} REFERENCES clean_parents (id)", engine.uuid()),
                    )
            },
            true,
        ),
        case(
            "narrow",
            &[Postgres],
            "error foreign-key-type parent",
            |_| {
                "CREATE TABLE numbered_parents (id bigserial PRIMARY KEY); CREATE TABLE narrow (id uuid PRIMARY KEY, parent integer REFERENCES numbered_parents (id)); \
             CREATE INDEX ON narrow (parent);"
                .to_owned()
            },
            true,
        ),
        case(
            "other_kind",
            &[Sqlite],
            "error foreign-key-type parent",
            |engine| {
                engine.table("other_kind", ", parent TEXT REFERENCES clean_parents (id)")
                    + "CREATE INDEX other_kind_parent ON other_kind (parent);"
            },
            false,
        ),
        case(
            "other_length",
            INNODB,
            "warning foreign-key-type parent",
            |engine| {
                "CREATE TABLE named_parents (name VARCHAR(20) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY);".to_owned()
                + &engine.table("other_length", ", parent VARCHAR(30) CHARACTER SET ascii COLLATE ascii_bin, \
                    FOREIGN KEY (parent) REFERENCES named_parents (name)")
            },
            true,
        ),
        case(
            "narrowing",
            &[Postgres],
            "error key-space-end id",
            |_| {
                "CREATE TABLE narrowing (id smallserial PRIMARY KEY); SELECT setval('narrowing_id_seq', 31000);".to_owned()
            },
            true,
        ),
        case(
            "narrowing",
            INNODB,
            "error key-space-end id",
            |_| {
                "CREATE TABLE narrowing (id SMALLINT NOT NULL AUTO_INCREMENT PRIMARY KEY) AUTO_INCREMENT = 31000; \
             INSERT INTO narrowing VALUES (NULL), (NULL);"
                .to_owned()
            },
            true,
        ),
        case(
            "narrowing",
            &[Sqlite],
            "error key-space-end id",
            |_| {
                "CREATE TABLE narrowing (id INTEGER PRIMARY KEY); INSERT INTO narrowing VALUES (1), (9223372036854775807);".to_owned()
            },
            false,
        ),
        case(
            "at_a_rate",
            &[Postgres, Mariadb, Mysql],
            "warning key-space-end id",
            |engine| {
                // 6 million a day: 40 % are used after 140 days, and the rest in 210 days.
                let rows = (0..100_u64).map(|row| {
                    format!(
                        "{}, {}",
                        1 + row * 6_000_000 / 86_400 * 8_640,
                        moment(row * 8_640)
                    )
                });
                format!(
                    "CREATE TABLE at_a_rate (id INTEGER NOT NULL PRIMARY KEY, created_at {} NOT NULL);\n",
                    engine.timestamp()
                ) + &insert("at_a_rate", rows)
            },
            false,
        ),
        case(
            "epoch",
            ALL,
            "error epoch-end id",
            |engine| {
                engine.integers("epoch", "")
                    + &insert("epoch", (0..100).map(|row| baidu(row * 3).to_string()))
            },
            false,
        ),
        case(
            "shared_node",
            ALL,
            "warning shared-node id",
            |engine| {
                let rows = (0..40_u64).flat_map(|tick| {
                    let at = BEGIN + tick * 10;
                    [
                        snowflake(at, 1, 0),
                        snowflake(at, 1, 1),
                        snowflake(at, 1, 2_000),
                        snowflake(at, 1, 2_001),
                    ]
                });
                engine.integers("shared_node", "")
                    + &insert("shared_node", rows.map(|key| key.to_string()))
            },
            false,
        ),
        case(
            "doubled_node",
            ALL,
            "error shared-node id",
            |engine| {
                let rows = (0..80_u64)
                    .map(|row| format!("{}, {}", snowflake(BEGIN + row / 2, 7, 0), row % 2));
                let integer = if engine == Sqlite {
                    "INTEGER"
                } else {
                    "BIGINT"
                };
                let tail = if engine == Sqlite {
                    " WITHOUT ROWID"
                } else {
                    ""
                };
                format!(
                    "CREATE TABLE doubled_node (id {integer} NOT NULL, shard INT NOT NULL, PRIMARY KEY (id, shard)){tail};\n"
                ) + &insert("doubled_node", rows)
            },
            false,
        ),
        case(
            "counter_moved",
            INNODB,
            "warning counter-moved id",
            |_| {
                "CREATE TABLE counter_moved (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY);"
                    .to_owned()
                    + &insert(
                        "counter_moved",
                        (0..100).map(|row| snowflake(BEGIN + row * 1_000, 1, 0).to_string()),
                    )
            },
            true,
        ),
        case(
            "counter_moved",
            &[Sqlite],
            "warning counter-moved id",
            |_| {
                let keys = (0..100).map(|row| snowflake(BEGIN + row * 1_000, 1, 0).to_string());
                "CREATE TABLE counter_moved (id INTEGER PRIMARY KEY AUTOINCREMENT);".to_owned()
                    + &insert(
                        "counter_moved",
                        (1..20).map(|row| row.to_string()).chain(keys),
                    )
            },
            false,
        ),
        case(
            "counter_moved",
            &[Postgres],
            "warning counter-moved id",
            |_| {
                let keys = (0..100).map(|row| snowflake(BEGIN + row * 1_000, 1, 0).to_string());
                "CREATE TABLE counter_moved (id bigserial PRIMARY KEY);".to_owned()
                    + &insert("counter_moved", keys)
                    + "SELECT setval('counter_moved_id_seq', max(id)) FROM counter_moved;"
            },
            true,
        ),
        case(
            "counted_identity",
            &[Postgres],
            "warning counter-moved id",
            |_| {
                let keys = (0..100).map(|row| snowflake(BEGIN + row * 1_000, 1, 0).to_string());
                "CREATE TABLE counted_identity (id bigint PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY);".to_owned()
                    + &insert("counted_identity", keys)
                    + "SELECT setval('counted_identity_id_seq', max(id)) FROM counted_identity;"
            },
            true,
        ),
        case(
            "partitioned_counter",
            &[Postgres],
            "warning counter-moved id",
            |_| {
                let keys = (0..100).map(|row| snowflake(BEGIN + row * 1_000, 1, 0).to_string());
                in_two("partitioned_counter", "(id bigserial PRIMARY KEY)")
                    + &insert("partitioned_counter", keys)
                    + "SELECT setval('partitioned_counter_id_seq', max(id)) FROM partitioned_counter;"
            },
            true,
        ),
        case(
            "numbered_beside",
            &[Postgres, Mariadb, Mysql],
            "error key-space-end number",
            |engine| {
                if engine == Postgres {
                    return "CREATE TABLE numbered_beside (id uuid PRIMARY KEY, number smallserial UNIQUE); \
                            SELECT setval('numbered_beside_number_seq', 31000);"
                        .to_owned();
                }
                let rows = (0..5).map(|row| format!("{}, NULL", native(engine, v7(row))));
                "CREATE TABLE numbered_beside (id BINARY(16) NOT NULL PRIMARY KEY, \
                 number SMALLINT NOT NULL AUTO_INCREMENT UNIQUE) AUTO_INCREMENT = 31000;"
                    .to_owned()
                    + &insert("numbered_beside", rows)
            },
            true,
        ),
        case(
            "numbered_without_index",
            &[Postgres],
            "error key-space-end number",
            |_| {
                "CREATE TABLE numbered_without_index (id uuid PRIMARY KEY, number smallserial); \
                 SELECT setval('numbered_without_index_number_seq', 31000);"
                    .to_owned()
            },
            true,
        ),
        case(
            "unique_snowflakes",
            ALL,
            "warning shared-node number",
            |engine| {
                let rows = (0..160_u64).map(|row| {
                    let (tick, place) = (row / 4, row % 4);
                    let sequence =
                        [0, 1, 2_000, 2_001][usize::try_from(place).expect("it is below 4")];
                    format!(
                        "{}, {}",
                        native(engine, v7(row)),
                        snowflake(BEGIN + tick * 10, 1, sequence)
                    )
                });
                engine.table("unique_snowflakes", ", number BIGINT UNIQUE")
                    + &insert("unique_snowflakes", rows)
            },
            false,
        ),
        case(
            "unique_epoch",
            ALL,
            "error epoch-end number",
            |engine| {
                let rows =
                    (0..100).map(|row| format!("{}, {}", native(engine, v7(row)), baidu(row * 3)));
                engine.table("unique_epoch", ", number BIGINT UNIQUE")
                    + &insert("unique_epoch", rows)
            },
            false,
        ),
        case(
            "null_keys",
            &[Sqlite],
            "error nullable-key id",
            |_| {
                let rows = (0..10).map(|row| match row {
                    0 => "NULL, 'a'".to_owned(),
                    row => format!("X'{:032x}', 'a'", v7(row)),
                });
                "CREATE TABLE null_keys (id BLOB, other TEXT NOT NULL, PRIMARY KEY (id, other));"
                    .to_owned()
                    + &insert("null_keys", rows)
            },
            false,
        ),
        case(
            "dangling",
            &[Sqlite],
            "error dangling-reference parent",
            |engine| {
                let rows = (0..20)
                    .map(|row| format!("{}, {}", native(engine, v7(row)), native(engine, v7(99))));
                engine.table("dangling", ", parent BLOB REFERENCES clean_parents (id)")
                    + "CREATE INDEX dangling_parent ON dangling (parent);"
                    + &insert("dangling", rows)
            },
            true,
        ),
        case(
            "dangling_for_good",
            &[Sqlite],
            "error dangling-reference parent",
            |engine| {
                let rows = (0..20)
                    .map(|row| format!("{}, {}", native(engine, v7(row)), native(engine, v7(99))));
                engine.table(
                    "dangling_for_good",
                    ", parent BLOB NOT NULL REFERENCES clean_parents",
                ) + "CREATE INDEX dangling_for_good_parent ON dangling_for_good (parent);"
                    + &insert("dangling_for_good", rows)
            },
            true,
        ),
        case(
            "dangling_without_parent",
            &[Sqlite],
            "error dangling-reference parent",
            |engine| {
                engine.table(
                    "dangling_without_parent",
                    ", parent BLOB REFERENCES nowhere",
                ) + "CREATE INDEX dangling_without_parent_parent ON dangling_without_parent (parent);"
            },
            false,
        ),
        case(
            "unlogged",
            &[Postgres],
            "warning not-durable ",
            |engine| {
                "CREATE UNLOGGED TABLE unlogged (id uuid PRIMARY KEY);".to_owned()
                    + &insert("unlogged", (0..20).map(|row| native(engine, v7(row))))
            },
            true,
        ),
        case(
            "no_transactions",
            INNODB,
            "error no-transactions ",
            |engine| {
                "CREATE TABLE no_transactions (id BINARY(16) NOT NULL PRIMARY KEY) ENGINE = MyISAM;"
                    .to_owned()
                    + &insert(
                        "no_transactions",
                        (0..20).map(|row| native(engine, v7(row))),
                    )
            },
            true,
        ),
        case(
            "ordid_flushes",
            ALL,
            "note old-markers ",
            |engine| {
                format!("{};\n", flushes(engine))
                    + &insert(
                        "ordid_flushes (id)",
                        (0..20).map(|row| native(engine, v7(row))),
                    )
            },
            true,
        ),
        case(
            "partitioned_v4",
            INNODB,
            "warning clustered-v4 id",
            |engine| {
                "CREATE TABLE partitioned_v4 (id BINARY(16) NOT NULL PRIMARY KEY) PARTITION BY KEY (id) PARTITIONS 4;"
                    .to_owned()
                    + &insert("partitioned_v4", (0..200).map(|row| native(engine, v4(row))))
            },
            false,
        ),
        case(
            "partitioned_v4",
            &[Postgres],
            "note random-index id",
            |engine| {
                in_two("partitioned_v4", "(id uuid PRIMARY KEY)")
                    + &insert(
                        "partitioned_v4",
                        (0..200).map(|row| native(engine, v4(row))),
                    )
            },
            false,
        ),
        case(
            "partitioned_sparse",
            &[Postgres, Mariadb, Mysql],
            "warning sparse-pages id",
            |engine| {
                let script = sparse(engine).replace("sparse", "partitioned_sparse");
                let (table, rest) = script.split_once(";\n").expect("a statement");
                match engine {
                    Postgres => {
                        let columns = table.trim_start_matches("CREATE TABLE partitioned_sparse ");
                        in_two("partitioned_sparse", columns) + rest
                    }
                    _ => format!("{table} PARTITION BY KEY (id) PARTITIONS 2;\n{rest}"),
                }
            },
            true,
        ),
        case(
            "partitioned_lines",
            &[Postgres],
            "warning unindexed-foreign-key parent",
            |_| {
                in_two(
                    "partitioned_lines",
                    "(id uuid PRIMARY KEY, parent uuid REFERENCES clean_parents (id))",
                )
            },
            true,
        ),
        case(
            "partitioned_text",
            &[Postgres],
            "note uuid-as-text id",
            |_| {
                in_two("partitioned_text", "(id text COLLATE \"C\" PRIMARY KEY)")
                    + &insert(
                        "partitioned_text",
                        (0..100).map(|row| format!("'{}'", text(v7(row)))),
                    )
            },
            false,
        ),
    ]
}

/// A table of PostgreSQL with two partitions.
fn in_two(name: &str, columns: &str) -> String {
    let partitions = (0..2).map(|part| {
        format!(
            "CREATE TABLE {name}_{part} PARTITION OF {name} FOR VALUES WITH (MODULUS 2, REMAINDER {part});\n"
        )
    });
    format!("CREATE TABLE {name} {columns} PARTITION BY HASH (id);\n")
        + &partitions.collect::<String>()
}

/// The table of marker rows.
fn flushes(engine: Engine) -> &'static str {
    match engine {
        Postgres => ordid_sqlx::flushes_table::<sqlx::Postgres>(),
        Sqlite => ordid_sqlx::flushes_table::<sqlx::Sqlite>(),
        _ => ordid_sqlx::flushes_table::<sqlx::MySql>(),
    }
}

/// A table of texts in ordid's own column.
fn texts(engine: Engine, name: &str) -> String {
    match engine {
        Postgres => format!("CREATE TABLE {name} (id text COLLATE \"C\" PRIMARY KEY);\n"),
        Sqlite => format!("CREATE TABLE {name} (id TEXT NOT NULL PRIMARY KEY) WITHOUT ROWID;\n"),
        _ => format!(
            "CREATE TABLE {name} (id VARCHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY);\n"
        ),
    }
}

/// Rows in order, of which some are deleted. InnoDB joins pages that are less than half full.
fn sparse(engine: Engine) -> String {
    let count = match engine {
        Postgres => 22_000,
        Sqlite => 5_000,
        Mariadb | Mysql => 12_000,
    };
    let padding = "x".repeat(100);
    let rows = (0..count).map(|row| match engine {
        Postgres => format!("{}, {row}", native(engine, v7(row))),
        _ => format!("{}, {row}, '{padding}'", native(engine, v7(row))),
    });
    let columns = if engine == Postgres {
        ", n int NOT NULL"
    } else {
        ", n int NOT NULL, padding CHAR(100) NOT NULL"
    };
    let columns = if matches!(engine, Mariadb | Mysql) {
        columns.replace("CHAR(100)", "VARCHAR(100) CHARACTER SET ascii")
    } else {
        columns.to_owned()
    };
    engine.table("sparse", &columns)
        + &insert("sparse", rows)
        + match engine {
            Sqlite => "DELETE FROM sparse WHERE n % 100 < 52;\n",
            _ => "DELETE FROM sparse WHERE n % 100 < 40;\n",
        }
}

/// Makes the statistics of the engines say what is there, and the parents that cases refer to.
pub(super) fn settle(engine: Engine, url: &str, cases: &[Case]) -> Result {
    match engine {
        Postgres => run(url, "VACUUM ANALYZE")?,
        Mariadb | Mysql => {
            for case in cases {
                run(url, &format!("ANALYZE TABLE {}", case.table))?;
            }
        }
        Sqlite => {}
    }
    Ok(())
}

/// Tables as ordid declares them, with rows in order.
pub(super) fn clean(engine: Engine) -> String {
    let reference = match engine {
        Postgres | Sqlite => format!(
            ", customer {} NOT NULL REFERENCES customers (id)",
            engine.uuid()
        ),
        _ => ", customer BINARY(16) NOT NULL, FOREIGN KEY (customer) REFERENCES customers (id)"
            .to_owned(),
    };
    let index = "CREATE INDEX orders_customer ON orders (customer);\n";
    let mut script = engine.table("customers", ", name VARCHAR(20)");
    script += &insert(
        "customers",
        (0..100).map(|row| format!("{}, 'somebody'", native(engine, v7(row)))),
    );
    script += &engine.table("orders", &reference);
    if matches!(engine, Postgres | Sqlite) {
        script += index;
    }
    script += &insert(
        "orders",
        (0..2_000).map(|row| {
            format!(
                "{}, {}",
                native(engine, v7(row)),
                native(engine, v7(row % 100))
            )
        }),
    );
    script += &engine.integers("events", &format!(", created_at {}", engine.timestamp()));
    let events = (0..1_000_u64).map(|row| {
        let key = snowflake(BEGIN + row / 4 * 1_000, 1, row % 4);
        format!("{key}, {}", moment(row / 4))
    });
    script += &insert("events", events);
    // Keys that no generator has made: names, hashes, addresses, random numbers.
    let integer = if engine == Sqlite {
        "INTEGER"
    } else {
        "BIGINT"
    };
    script +=
        "CREATE TABLE countries (code CHAR(2) NOT NULL PRIMARY KEY, name VARCHAR(20) UNIQUE);\n";
    script += &insert(
        "countries",
        ["de", "fr", "at", "ch"].map(|code| format!("'{code}', 'the land of {code}'")),
    );
    script += &format!(
        "CREATE TABLE pages (id {integer} NOT NULL PRIMARY KEY, slug VARCHAR(100) UNIQUE, hash CHAR(32) UNIQUE, address VARCHAR(100) UNIQUE, \
         place INT UNIQUE, phone BIGINT UNIQUE, seconds BIGINT UNIQUE, millis BIGINT UNIQUE, micros BIGINT UNIQUE, nanos BIGINT UNIQUE, draw BIGINT UNIQUE);\n"
    );
    script += &insert(
        "pages",
        (0..2_000).map(|row| {
            let hash = noise(row);
            // Numbers that are no keys: places, telephones, times, lots.
            let seconds = BEGIN / 1_000 + row * 61;
            let micros = seconds * 1_000_000 + u64::try_from(hash >> 112).expect("16 bits fit");
            format!(
                "{}, 'A-Page-Of-The-Site-{row}', '{hash:032x}', 'somebody{}@example.com', \
                 {row}, {}, {seconds}, {}, {micros}, {}, {}",
                hash >> 65,
                hash >> 100,
                49_301_000_000 + row * 7_919,
                micros / 1_000,
                micros * 1_000 + row % 1_000,
                hash >> 70,
            )
        }),
    );
    // Ordered keys in partitions.
    let rows = (0..1_000).map(|row| native(engine, v7(row)));
    match engine {
        Sqlite => {}
        Postgres => {
            script += &format!(
                "CREATE TABLE measurements (id uuid PRIMARY KEY, number serial) PARTITION BY RANGE (id);\n\
                 CREATE TABLE measurements_1 PARTITION OF measurements FOR VALUES FROM (MINVALUE) TO ('{0}');\n\
                 CREATE TABLE measurements_2 PARTITION OF measurements FOR VALUES FROM ('{0}') TO (MAXVALUE);\n",
                text(v7(500))
            );
            script += &insert("measurements (id)", rows);
        }
        Mariadb | Mysql => {
            script += "CREATE TABLE measurements (id BINARY(16) NOT NULL PRIMARY KEY) PARTITION BY KEY (id) PARTITIONS 3;\n";
            script += &insert("measurements", rows);
        }
    }
    script + flushes(engine)
}
