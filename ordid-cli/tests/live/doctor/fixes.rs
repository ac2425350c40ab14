//! Fixes of SQLite tables: they lose no row, they agree, and they keep what a table declares.

use libtest_mimic::Trial;
use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection as _, MySqlConnection, Row as _, SqliteConnection};

use super::{
    by_table, examine, in_file,
    keys::{insert, native, swapped, text, v7},
    run,
    wrong::Engine,
};
use crate::place::{Result, Servers, block_on, printed};

/// Adds the tests.
pub(super) fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    for server in ["postgres", "mariadb", "mysql"] {
        trials.push(servers.trial(
            server,
            "doctor::a_reference_waits_for_the_new_type_of_its_key",
            one_type,
        ));
    }
    trials.push(servers.trial(
        "mysql",
        "doctor::the_other_columns_of_an_index_are_kept",
        other_columns_are_kept,
    ));
    for server in ["mariadb", "mysql"] {
        for (name, test) in [
            (
                "texts_are_kept_when_a_statement_of_the_fix_fails",
                texts_are_kept as fn(&str) -> Result,
            ),
            (
                "a_key_that_was_not_sampled_is_not_cut_by_a_fix",
                longer_keys_are_kept,
            ),
        ] {
            trials.push(servers.trial(server, &format!("doctor::{name}"), test));
        }
    }
    let mut add = |name: &str, test: fn(&str) -> Result| {
        trials.push(Trial::test(format!("doctor::{name} [sqlite]"), move || {
            in_file(test)
        }));
    };
    add(
        "a_fix_whose_copy_fails_changes_nothing_even_if_the_client_goes_on",
        failing_fixes,
    );
    add("a_fix_that_is_run_again_changes_nothing", again);
    add("findings_of_one_table_share_one_rebuild", shared);
    add(
        "references_are_rebuilt_with_the_key_that_they_refer_to",
        references,
    );
    add(
        "references_follow_keys_whose_bytes_are_put_in_order",
        swapped_references,
    );
    add("a_rebuilt_table_keeps_what_it_declares", kept);
    add(
        "a_table_whose_triggers_use_its_rowid_keeps_its_rowids",
        rowids,
    );
    add(
        "rows_that_refer_to_nothing_are_found_whatever_the_tables_are_named",
        dangling_names,
    );
    add(
        "one_wrong_foreign_key_does_not_hide_the_rows_of_another",
        dangling_beside_wrong_keys,
    );
    add("old_sqlite_can_run_a_rebuild_of_blobs", without_unhex);
    add("messages_are_sentences_and_lines_end_without_blanks", words);
    add(
        "tables_of_moves_and_benches_are_not_examined",
        ordids_own_work,
    );
}

fn demand(right: bool, what: impl FnOnce() -> String) -> Result {
    if right { Ok(()) } else { Err(what().into()) }
}

/// Sends each statement by itself, and goes on after errors, as the shell `sqlite3` does.
fn run_on(path: &str, script: &str) -> Result<Vec<String>> {
    block_on(async {
        let mut connection = SqliteConnection::connect(path).await?;
        let mut errors = Vec::new();
        for statement in script.split(";\n") {
            let sent = sqlx::raw_sql(AssertSqlSafe(statement.to_owned()))
                .execute(&mut connection)
                .await;
            errors.extend(sent.err().map(|error| format!("{statement}: {error}")));
        }
        connection.close().await?;
        Ok(errors)
    })
}

/// The same for MySQL and MariaDB, whose sessions are as lax as they can be.
fn run_on_server(url: &str, script: &str) -> Result {
    block_on(async {
        let url = url.replacen("mariadb:", "mysql:", 1);
        let mut connection = MySqlConnection::connect(&url).await?;
        let lax = "SET SESSION sql_mode = ''";
        for statement in std::iter::once(lax).chain(script.split(";\n")) {
            // What fails is gone over.
            let _ = sqlx::raw_sql(AssertSqlSafe(statement.to_owned()))
                .execute(&mut connection)
                .await;
        }
        connection.close().await
    })
}

/// Returns a number that a server's query has as its only answer.
fn number(url: &str, query: &str) -> Result<i64> {
    block_on(async {
        let url = url.replacen("mariadb:", "mysql:", 1);
        let mut connection = MySqlConnection::connect(&url).await?;
        let number = sqlx::query_scalar(AssertSqlSafe(query.to_owned()))
            .fetch_one(&mut connection)
            .await?;
        connection.close().await?;
        Ok(number)
    })
}

fn one_type(url: &str) -> Result {
    let engine = Engine::of(url);
    let (key, wanted) = match engine {
        Engine::Postgres => ("uuid", "uuid"),
        Engine::Mariadb => ("BINARY(16)", "UUID"),
        _ => ("BINARY(16)", "BINARY(16)"),
    };
    let index = match engine {
        Engine::Postgres => "CREATE INDEX ON visits (place);\n",
        _ => "",
    };
    run(
        url,
        &("CREATE TABLE places (id VARCHAR(36) NOT NULL PRIMARY KEY);\n".to_owned()
            + &insert("places", (0..50).map(|row| format!("'{}'", text(v7(row)))))
            + &format!(
                "CREATE TABLE visits (id {key} NOT NULL PRIMARY KEY, place VARCHAR(40), \
                 FOREIGN KEY (place) REFERENCES places (id));\n{index}"
            )),
    )?;
    let report = examine(url, &[], 1)?;
    let findings = report["findings"].as_array().into_iter().flatten();
    let fixes: Vec<&str> = findings
        .filter(|finding| finding["rule"] == "foreign-key-type")
        .filter_map(|finding| finding["fix"].as_str())
        .collect();
    let [fix] = fixes[..] else {
        return Err(format!("{report:#}").into());
    };
    let says = format!("places.id is to become {wanted}: make this column the same");
    demand(!fix.contains("ALTER") && fix.contains(&says), || {
        fix.to_owned()
    })
}

fn texts_are_kept(url: &str) -> Result {
    let keys = (0..50).map(|row| format!("'{}', '{}'", text(v7(row)), text(v7(row))));
    let create = "CREATE TABLE places (id VARCHAR(40) NOT NULL PRIMARY KEY, other VARCHAR(40) NOT NULL, UNIQUE (other));\n";
    run(url, &(create.to_owned() + &insert("places", keys.clone())))?;
    let report = examine(url, &["--table", "places"], 1)?;
    let fixes = statements(&report);
    demand(fixes.len() == 2, || format!("{fixes:#?}"))?;
    for (_, fix) in &fixes {
        let statements: Vec<&str> = fix.split(";\n").collect();
        // Also with no statement that fails by itself.
        for (broken, others) in (0..=statements.len()).flat_map(|at| [(at, true), (at, false)]) {
            run(
                url,
                &("DROP TABLE places;\n".to_owned() + create + &insert("places", keys.clone())),
            )?;
            // A value that is no UUID is in the way, too.
            run(url, "INSERT INTO places VALUES ('no uuid', 'none')")?;
            if !others {
                run(url, "DELETE FROM places WHERE id <> 'no uuid'")?;
            }
            let mut script = statements.clone();
            if let Some(statement) = script.get_mut(broken) {
                *statement = "FAIL";
            }
            run_on_server(url, &script.join(";\n"))?;
            for (name, odd) in [("id", "no uuid"), ("other", "none")] {
                let is_there = number(
                    url,
                    &format!(
                        "SELECT COUNT(*) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() \
                         AND TABLE_NAME = 'places' AND COLUMN_NAME = '{name}_old'"
                    ),
                )?;
                let place = match is_there {
                    1 => format!("{name}_old"),
                    _ => name.to_owned(),
                };
                let kept = number(
                    url,
                    &format!("SELECT COUNT(*) FROM places WHERE CAST({place} AS CHAR) = '{odd}'"),
                )?;
                demand(kept == 1, || {
                    format!("{odd} is lost without {:?}: {fix}", statements.get(broken))
                })?;
            }
        }
    }
    Ok(())
}

fn other_columns_are_kept(url: &str) -> Result {
    let rows = (0..50).map(|row| format!("{row}, '{}'", text(v7(row))));
    let create = "CREATE TABLE stays (tenant INT NOT NULL, id CHAR(36) NOT NULL, PRIMARY KEY (id, tenant), KEY by_both (tenant, id));\n";
    run(url, &(create.to_owned() + &insert("stays", rows)))?;
    let report = examine(url, &["--table", "stays"], 1)?;
    let fixes = statements(&report);
    demand(fixes.len() == 1, || format!("{fixes:#?}"))?;
    let fix = &fixes[0].1;
    for words in ["have to be made again: by_both", "a default and a comment"] {
        demand(fix.contains(words), || fix.clone())?;
    }
    run(url, fix)?;
    let is_whole = "SELECT GROUP_CONCAT(COLUMN_NAME ORDER BY SEQ_IN_INDEX) = 'id,tenant' FROM information_schema.STATISTICS WHERE \
                    TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'stays' AND INDEX_NAME = 'PRIMARY'";
    demand(number(url, is_whole)? == 1, || {
        "the key has other columns".to_owned()
    })
}

fn longer_keys_are_kept(url: &str) -> Result {
    let rows =
        (0..100).map(|row| format!("X'{:08x}0123456789{:06x}'", 1_767_225_600 + row, row + 1));
    run(
        url,
        &("CREATE TABLE padded (id BINARY(16) NOT NULL PRIMARY KEY);\n".to_owned()
            + &insert("padded", rows)),
    )?;
    let report = examine(url, &[], 1)?;
    let (_, fix) = statements(&report).pop().ok_or("no fix")?;
    run(
        url,
        "INSERT INTO padded VALUES (X'ffffffffffffffffffffffffffffffff')",
    )?;
    run_on_server(url, &fix)?;
    let kept = number(
        url,
        "SELECT COUNT(*) FROM padded WHERE HEX(id) = 'FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF'",
    )?;
    let cut = number(url, "SELECT COUNT(*) FROM padded WHERE LENGTH(id) = 12")?;
    demand(kept == 1 && cut == 100, || format!("{kept}, {cut}: {fix}"))
}

/// Reads the first column of a query.
fn column(path: &str, query: &str) -> Result<Vec<String>> {
    block_on(async {
        let mut connection = SqliteConnection::connect(path).await?;
        let rows = sqlx::raw_sql(AssertSqlSafe(query.to_owned()))
            .fetch_all(&mut connection)
            .await?;
        connection.close().await?;
        rows.iter()
            .map(|row| row.try_get_unchecked::<String, _>(0))
            .collect()
    })
}

/// Each table's definition, its indexes and triggers, and how many rows it has.
fn state(path: &str) -> Result<Vec<String>> {
    let mut state = column(
        path,
        "SELECT type || ' ' || name || ' ' || coalesce(sql, '') FROM sqlite_schema ORDER BY 1",
    )?;
    for table in column(
        path,
        "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY 1",
    )? {
        state.extend(column(
            path,
            &format!("SELECT '{table}: ' || count(*) FROM \"{table}\""),
        )?);
    }
    Ok(state)
}

/// The remedies of a report that are SQL and not a comment only.
fn statements(report: &Value) -> Vec<(String, String)> {
    let findings = report["findings"].as_array().into_iter().flatten();
    findings
        .map(|finding| {
            let text = |name: &str| finding[name].as_str().unwrap_or_default().to_owned();
            (format!("{} {}", text("rule"), text("table")), text("fix"))
        })
        .filter(|(_, fix)| fix.lines().any(|line| !line.starts_with("--")))
        .collect()
}

fn failing_tables(path: &str) -> Result {
    let sqlite = Engine::Sqlite;
    let blobs = |from: u64| (from..from + 60).map(move |row| native(sqlite, v7(row)));
    let texts = |from: u64| (from..from + 60).map(move |row| format!("'{}'", text(v7(row))));
    let twice = (0..60)
        .map(|row| format!("'{}'", text(v7(row))))
        .chain([format!("'{:032X}'", v7(7))]);
    run(
        path,
        &("CREATE TABLE nulls (id UUID PRIMARY KEY);\n".to_owned()
            + &insert("nulls", blobs(0).chain(vec!["NULL".to_owned(); 3]))
            + "CREATE TABLE classes (id UUID PRIMARY KEY);\n"
            + &insert("classes", blobs(0).chain(texts(60)))
            + "CREATE TABLE spellings (id TEXT PRIMARY KEY);\n"
            + &insert("spellings", twice)
            + "CREATE TABLE trees (id BLOB NOT NULL PRIMARY KEY);\n"
            + &insert("trees", blobs(0))
            + "CREATE TABLE integers (id BIGINT NOT NULL PRIMARY KEY);\n"
            + &insert("integers", (1..60).map(|row| row.to_string()))
            + "CREATE TABLE children (id INTEGER PRIMARY KEY, parent TEXT REFERENCES trees (id));\n\
               CREATE INDEX children_parent ON children (parent);\n"
            + &insert(
                "children",
                blobs(0).enumerate().map(|(at, key)| format!("{at}, {key}")),
            )),
    )
}

fn failing_fixes(path: &str) -> Result {
    failing_tables(path)?;
    let report = examine(path, &[], 1)?;
    let before = state(path)?;
    let rebuilds: Vec<_> = statements(&report)
        .into_iter()
        .filter(|(_, fix)| fix.contains("CREATE TABLE"))
        .collect();
    demand(rebuilds.len() >= 5, || format!("{rebuilds:#?}"))?;
    for (name, fix) in &rebuilds {
        let broken = [
            // A table that cannot be written, and an engine without the function.
            fix.replace("INSERT INTO \"", "INSERT INTO \"no such table "),
            fix.replace("unhex(", "no_such_function("),
        ];
        for script in broken.iter().filter(|script| *script != fix) {
            let errors = run_on(path, script)?;
            let after = state(path)?;
            demand(!errors.is_empty() && after == before, || {
                format!("{name}: {errors:#?}\n{before:#?}\n{after:#?}")
            })?;
        }
        each_statement_fails(path, name, fix)?;
    }
    // Rows without a key, and one key in two rows, end the copy by themselves.
    for table in ["nulls", "spellings"] {
        let own = rebuilds
            .iter()
            .find(|(name, _)| name.ends_with(&format!(" {table}")));
        let (_, fix) = own.ok_or(table)?;
        let errors = run_on(path, fix)?;
        let after = state(path)?;
        demand(!errors.is_empty() && after == before, || {
            format!("{table}: {errors:#?}\n{after:#?}")
        })?;
    }
    Ok(())
}

/// Lets each statement of a fix fail, one in each run: all rows are in the table, or in the old one, and either all has changed
/// or nothing.
fn each_statement_fails(path: &str, name: &str, fix: &str) -> Result {
    let tables = [
        "nulls",
        "classes",
        "spellings",
        "trees",
        "integers",
        "children",
    ];
    let statements: Vec<&str> = fix.split(";\n").collect();
    let whole = format!("{path}-whole");
    std::fs::copy(path, &whole)?;
    run_on(&whole, fix)?;
    let states = [state(path)?, state(&whole)?];
    std::fs::remove_file(&whole)?;
    for broken in 0..statements.len() {
        let copy = format!("{path}-{broken}");
        std::fs::copy(path, &copy)?;
        let mut script = statements.clone();
        script[broken] = "FAIL";
        run_on(&copy, &script.join(";\n"))?;
        // Those set something for the connection, check, or take no lock yet: nothing in the database makes them fail.
        let cannot_fail = ["PRAGMA", "ordid_check", "BEGIN"];
        if !cannot_fail.iter().any(|it| statements[broken].contains(it)) {
            let after = state(&copy)?;
            demand(states.contains(&after), || {
                format!(
                    "{name}: without {}\n{states:#?}\n{after:#?}",
                    statements[broken]
                )
            })?;
        }
        let there = column(&copy, "SELECT name FROM sqlite_schema WHERE type = 'table'")?;
        for table in tables {
            let count = format!("SELECT CAST(count(*) AS TEXT) FROM {table}");
            let rows = column(path, &count)?;
            let mut places = [table.to_owned(), format!("{table}_old")].into_iter();
            let is_kept = places.any(|place| {
                let count = format!("SELECT CAST(count(*) AS TEXT) FROM {place}");
                there.contains(&place) && column(&copy, &count).is_ok_and(|found| found == rows)
            });
            demand(is_kept, || {
                format!(
                    "{name}: rows of {table} are lost without {}",
                    statements[broken]
                )
            })?;
        }
        std::fs::remove_file(&copy)?;
    }
    Ok(())
}

fn swapped_references(path: &str) -> Result {
    let keys = || (0..120).map(|row| native(Engine::Sqlite, swapped(v7(row))));
    run(
        path,
        &("CREATE TABLE customers (id BLOB NOT NULL PRIMARY KEY);\n".to_owned()
            + &insert("customers", keys())
            + "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer BLOB REFERENCES customers (id));\n"
            + &insert(
                "orders",
                keys().enumerate().map(|(at, key)| format!("{at}, {key}")),
            )),
    )?;
    let report = examine(path, &[], 1)?;
    let mut fixes = statements(&report).into_iter();
    let fix = fixes.find(|(name, _)| name.starts_with("swapped-bytes"));
    let (_, fix) = fix.ok_or_else(|| format!("{report:#}"))?;
    let errors = run_on(path, &fix)?;
    demand(errors.is_empty(), || format!("{errors:#?}"))?;
    let joined = "SELECT CAST(count(*) AS TEXT) FROM orders JOIN customers ON customers.id = customer \
                  WHERE hex(customer) LIKE '0%'";
    let joined = column(path, joined)?;
    demand(joined == ["120"], || format!("{joined:?} after {fix}"))
}

fn again(path: &str) -> Result {
    run(
        path,
        &("CREATE TABLE trees (id BLOB NOT NULL PRIMARY KEY, n INT);\nCREATE INDEX trees_n ON trees (n);\n"
            .to_owned()
            + &insert("trees", (0..60).map(|row| format!("{}, {row}", native(Engine::Sqlite, v7(row)))))),
    )?;
    let report = examine(path, &[], 0)?;
    let (_, fix) = statements(&report).pop().ok_or("no fix")?;
    let errors = run_on(path, &fix)?;
    demand(errors.is_empty(), || format!("{errors:#?}"))?;
    run(path, "DELETE FROM trees WHERE n > 40")?;
    let before = state(path)?;
    let errors = run_on(path, &fix)?;
    let after = state(path)?;
    demand(!errors.is_empty() && after == before, || {
        format!("{errors:#?}\n{before:#?}\n{after:#?}")
    })
}

fn shared(path: &str) -> Result {
    let sqlite = Engine::Sqlite;
    let keys = (0..120).map(|row| match row % 2 {
        0 => format!("{}, {row}", native(sqlite, v7(row))),
        _ => format!("'{}', {row}", text(v7(row))),
    });
    run(
        path,
        &("CREATE TABLE customers (id UUID PRIMARY KEY, n INT);\n".to_owned()
            + &insert("customers", keys)
            + "CREATE TABLE orders (id BLOB NOT NULL PRIMARY KEY, customer BLOB REFERENCES customers (id)) WITHOUT ROWID;\n\
               CREATE INDEX orders_customer ON orders (customer);\n"
            + &insert(
                "orders",
                (0..120).map(|row| {
                    format!(
                        "{}, {}",
                        native(sqlite, v7(row)),
                        native(sqlite, v7(row / 4 * 2))
                    )
                }),
            )),
    )?;
    let report = examine(path, &[], 1)?;
    let found = by_table(&report);
    let expected = [
        "error numeric-affinity id",
        "error mixed-storage id",
        "warning nullable-key id",
        "note second-tree id",
    ];
    demand(
        expected.iter().all(|finding| {
            let (_, rule) = finding.split_once(' ').unwrap_or_default();
            found["customers"].iter().any(|found| found.ends_with(rule))
        }) && found["orders"] == ["error foreign-key-type customer"],
        || format!("{found:#?}"),
    )?;
    let fixes = statements(&report);
    demand(
        fixes.len() == 1 && !fixes[0].1.contains("UUID") && fixes[0].1.contains("\"customers\""),
        || format!("{fixes:#?}"),
    )?;
    let pointers = report["findings"].as_array().into_iter().flatten();
    let pointers = pointers.filter(|finding| {
        finding["fix"]
            .as_str()
            .is_some_and(|fix| fix.starts_with("-- see the fix of ") && fix.contains("customers"))
    });
    demand(pointers.count() == 4, || format!("{report:#}"))?;
    run(path, &fixes[0].1)?;
    run(path, "DROP TABLE customers_old")?;
    super::is_clean(path, 2)
}

fn references(path: &str) -> Result {
    let keys = |column: &str| {
        (0..100)
            .map(|row| format!("'{}', {column}", text(v7(row))))
            .collect::<Vec<_>>()
    };
    let orders = (0..100).map(|row| format!("'{}', '{}'", text(v7(row)), text(v7(row / 2))));
    // Names are as good in any case.
    run(
        path,
        &("CREATE TABLE Customers (ID TEXT NOT NULL PRIMARY KEY, name TEXT) WITHOUT ROWID;\n"
            .to_owned()
            + &insert("customers", keys("'somebody'"))
            + "CREATE TABLE orders (id TEXT NOT NULL PRIMARY KEY, customer TEXT NOT NULL REFERENCES customers (id)) WITHOUT ROWID;\n\
               CREATE INDEX orders_customer ON orders (customer);\n"
            + &insert("orders", orders)),
    )?;
    let report = examine(path, &[], 0)?;
    let fixes = statements(&report);
    demand(fixes.len() == 1, || format!("{fixes:#?}"))?;
    run(path, &fixes[0].1)?;
    run(path, "DROP TABLE customers_old; DROP TABLE orders_old")?;
    let lost = column(path, "SELECT \"table\" FROM pragma_foreign_key_check")?;
    demand(lost.is_empty(), || format!("{lost:?}"))?;
    super::is_clean(path, 2)
}

fn kept(path: &str) -> Result {
    let rows = (0..50).map(|row| {
        format!(
            "{}, {row}, 'a-{row}', NULL, 2",
            native(Engine::Sqlite, v7(row))
        )
    });
    run(
        path,
        &("CREATE TABLE things (\n  id BLOB PRIMARY KEY, -- the key\n  n INTEGER NOT NULL DEFAULT 7 CHECK (n >= 0),\n  \
           name TEXT UNIQUE COLLATE NOCASE,\n  parent BLOB REFERENCES things (id) ON DELETE SET NULL,\n  part INT,\n  \
           twice INT GENERATED ALWAYS AS (n * 2) STORED,\n  CHECK (part < 10)\n);\n\
           CREATE INDEX things_parent ON things (parent);\nCREATE INDEX things_part ON things (part) WHERE part > 1;\n\
           CREATE TRIGGER things_end AFTER DELETE ON things BEGIN SELECT 1; END;\n\
           CREATE VIEW shown AS SELECT n, twice FROM things;\n\
           CREATE TABLE counted (id INTEGER PRIMARY KEY AUTOINCREMENT, thing TEXT REFERENCES things (id));\n\
           CREATE INDEX counted_thing ON counted (thing);\n"
            .to_owned()
            + &insert("things (id, n, name, parent, part)", rows)
            + &insert("counted (id, thing)", (0..50).map(|row| format!("{row}, {}", native(Engine::Sqlite, v7(row)))))
            + "DELETE FROM counted WHERE id > 40;\n"),
    )?;
    let report = examine(path, &[], 1)?;
    for (_, fix) in statements(&report) {
        let errors = run_on(path, &fix)?;
        demand(errors.is_empty(), || format!("{errors:#?}"))?;
    }
    run(path, "DROP TABLE things_old; DROP TABLE counted_old")?;
    let all = state(path)?.join("\n");
    for part in [
        "id BLOB NOT NULL PRIMARY KEY, -- the key",
        "n INTEGER NOT NULL DEFAULT 7 CHECK (n >= 0)",
        "name TEXT UNIQUE COLLATE NOCASE",
        "parent BLOB REFERENCES things (id) ON DELETE SET NULL",
        "GENERATED ALWAYS AS (n * 2) STORED",
        "CHECK (part < 10)",
        ") WITHOUT ROWID",
        "CREATE INDEX things_part ON things (part) WHERE part > 1",
        "CREATE TRIGGER things_end AFTER DELETE ON things BEGIN SELECT 1; END",
        "CREATE VIEW shown AS SELECT n, twice FROM things",
        "id INTEGER PRIMARY KEY AUTOINCREMENT, thing BLOB REFERENCES things (id)",
        "CREATE INDEX counted_thing ON counted (thing)",
        "things: 50",
        "counted: 41",
    ] {
        demand(all.contains(part), || format!("{part} is not in {all}"))?;
    }
    let next = column(
        path,
        "SELECT CAST(seq AS TEXT) FROM sqlite_sequence WHERE name = 'counted'",
    )?;
    demand(next == ["49"], || format!("{next:?}"))?;
    super::is_clean(path, 2)
}

/// A full-text index finds its rows by the rowid.
fn rowids(path: &str) -> Result {
    run(
        path,
        &("CREATE TABLE docs (id BLOB PRIMARY KEY, rowid TEXT);\n\
           CREATE VIRTUAL TABLE words USING fts5 (title);\n\
           CREATE TRIGGER docs_in AFTER INSERT ON docs BEGIN INSERT INTO words (rowid, title) VALUES (new._rowid_, new.rowid); END;\n\
           CREATE TRIGGER docs_out AFTER DELETE ON docs BEGIN DELETE FROM words WHERE rowid = old._rowid_; END;\n"
            .to_owned()
            + &insert(
                "docs",
                (0..50).map(|row| format!("{}, 't{row}'", native(Engine::Sqlite, v7(row)))),
            )
            + "DELETE FROM docs WHERE _rowid_ % 3 = 1;\n"),
    )?;
    let found = || {
        column(
            path,
            "SELECT title || ' ' || d._rowid_ FROM docs d JOIN words w ON w.rowid = d._rowid_ AND w.title = d.rowid ORDER BY w.rowid",
        )
    };
    let before = found()?;
    demand(before.len() == 33, || format!("{before:?}"))?;
    let report = examine(path, &[], 1)?;
    let rules = &by_table(&report)["docs"];
    demand(
        rules.iter().any(|it| it == "warning nullable-key id")
            && rules.iter().any(|it| it == "note second-tree id"),
        || format!("{rules:?}"),
    )?;
    let fixes = statements(&report);
    demand(fixes.len() == 1, || format!("{fixes:#?}"))?;
    for (_, fix) in &fixes {
        let errors = run_on(path, fix)?;
        demand(errors.is_empty(), || format!("{errors:#?}"))?;
    }
    let after = found()?;
    demand(after == before, || format!("{before:?}\n{after:?}"))?;
    run(path, "DROP TABLE docs_old")?;
    let fresh = native(Engine::Sqlite, v7(60));
    run(
        path,
        &format!(
            "INSERT INTO docs VALUES ({fresh}, 'fresh'); DELETE FROM docs WHERE id <> {fresh}"
        ),
    )?;
    let after = found()?;
    demand(after == ["fresh 51"], || format!("{after:?}"))?;
    let words = column(path, "SELECT title FROM words")?;
    demand(words == ["fresh"], || format!("{words:?}"))?;
    // The other finding stays, and says what is to be done by hand.
    let report = examine(path, &[], 0)?;
    let all = report["findings"].as_array().into_iter().flatten();
    let fixes: Vec<&str> = all.filter_map(|it| it["fix"].as_str()).collect();
    demand(
        fixes
            == [
                "-- the table has to keep its rowid, which docs_in uses: let that use the key, and examine the file again",
            ],
        || format!("{report:#}"),
    )
}

/// Returns message and fix of the rows of a table that refer to nothing.
fn dangling(report: &Value, table: &str) -> Vec<(String, String)> {
    let findings = report["findings"].as_array().into_iter().flatten();
    findings
        .filter(|it| it["rule"] == "dangling-reference" && it["table"] == table)
        .map(|it| {
            let text = |name: &str| it[name].as_str().unwrap_or_default().to_owned();
            (text("message"), text("fix"))
        })
        .collect()
}

fn dangling_names(path: &str) -> Result {
    run(
        path,
        "CREATE TABLE keys (keyed INTEGER PRIMARY KEY); INSERT INTO keys VALUES (1), (2);",
    )?;
    // Names that an alias in the remedy might have. The columns have one name, so that it could take both for its own.
    let names = ["parent", "ordid_referred", "referred", "keys_referred"];
    for name in names {
        run(
            path,
            &format!(
                "CREATE TABLE {name} (id INTEGER PRIMARY KEY, keyed INTEGER NOT NULL REFERENCES keys);\n\
                 CREATE INDEX {name}_keyed ON {name} (keyed);\n\
                 INSERT INTO {name} VALUES (1, 1), (2, 2), (3, 3), (4, 1);"
            ),
        )?;
    }
    let report = examine(path, &[], 1)?;
    for name in names {
        let found = dangling(&report, name);
        demand(
            found.len() == 1 && found[0].0 == "1 row refers to rows of keys that are not there",
            || format!("{name}: {found:#?}"),
        )?;
        run(path, &found[0].1)?;
        let left = column(
            path,
            &format!("SELECT CAST(id AS TEXT) FROM {name} ORDER BY 1"),
        )?;
        demand(left == ["1", "2", "4"], || format!("{name}: {left:?}"))?;
    }
    super::is_clean(path, 5)
}

fn dangling_beside_wrong_keys(path: &str) -> Result {
    run(
        path,
        "CREATE TABLE keys (id INTEGER PRIMARY KEY, word TEXT UNIQUE, other INTEGER);\n\
         INSERT INTO keys VALUES (1, '1', 5), (2, '02', 6);\n\
         CREATE TABLE no_key (other INTEGER);\n\
         CREATE TABLE rows_of_all (id INTEGER PRIMARY KEY, keyed INTEGER REFERENCES keys, gone INTEGER REFERENCES gone,\n\
         unkeyed INTEGER REFERENCES no_key, unnamed INTEGER REFERENCES keys (nowhere), word INTEGER REFERENCES keys (word));\n\
         INSERT INTO rows_of_all VALUES (1, 1, 1, 1, 1, 1), (2, 3, NULL, NULL, NULL, NULL), (3, NULL, 7, NULL, NULL, NULL),\n\
         (4, NULL, NULL, NULL, NULL, 2);\n\
         ALTER TABLE rows_of_all ADD COLUMN loose INTEGER REFERENCES keys (other);\n\
         UPDATE rows_of_all SET loose = 9;",
    )?;
    let report = examine(path, &[], 1)?;
    let mut found = dangling(&report, "rows_of_all");
    found.sort();
    let messages: Vec<&str> = found.iter().map(|(message, _)| &**message).collect();
    // The integer 2 is the text '2' for a foreign key to a text, which '02' is not.
    demand(
        messages
            == [
                "1 row refers to rows of keys that are not there",
                "1 row refers to rows of keys that are not there",
                "2 rows refer to the table gone, which is not there",
            ],
        || format!("{report:#}"),
    )?;
    let unseen = report["findings"].to_string();
    for why in [
        "no such column",
        "as many columns as the primary key of no_key",
        "other of keys has no unique index",
    ] {
        demand(unseen.contains(why), || format!("{why}: {unseen}"))?;
    }
    for (_, fix) in &found {
        run(path, fix)?;
    }
    let left = column(
        path,
        "SELECT concat_ws(' ', id, keyed, gone, word) FROM rows_of_all ORDER BY id",
    )?;
    // Rows whose parent was perhaps renamed stay as they are.
    demand(left == ["1 1 1 1", "2", "3 7", "4"], || format!("{left:?}"))
}

fn without_unhex(path: &str) -> Result {
    let keys = (0..100).map(|row| native(Engine::Sqlite, v7(row)));
    run(
        path,
        &("CREATE TABLE blobs (id UUID PRIMARY KEY);\n".to_owned() + &insert("blobs", keys)),
    )?;
    let report = examine(path, &[], 1)?;
    let fixes = statements(&report);
    demand(
        fixes.len() == 1
            && !fixes[0].1.contains("unhex")
            && fixes[0].1.contains("id BLOB NOT NULL"),
        || format!("{fixes:#?}"),
    )
}

fn words(path: &str) -> Result {
    let keys = |count: u64| (0..count).map(|row| native(Engine::Sqlite, v7(row)));
    run(
        path,
        &("CREATE TABLE customers (id BLOB PRIMARY KEY);\n".to_owned()
            + &insert("customers", keys(50))
            + "CREATE TABLE orders (id BLOB PRIMARY KEY, customer TEXT REFERENCES customers (id));\n\
               CREATE INDEX orders_customer ON orders (customer);\n"
            + &insert("orders (id)", keys(50).chain(["NULL".to_owned()]))
            + "CREATE TABLE numbers (id INTEGER PRIMARY KEY);\n\
               INSERT INTO numbers VALUES (1), (9223372036854775807);"),
    )?;
    let text = printed(&["doctor", path], 1)?;
    for part in [
        "  the primary key may be NULL; no sampled row is\n",
        "  the primary key may be NULL, and 1 sampled row is\n",
        "  customer is TEXT with the collation BINARY and refers to customers.id, which is BLOB; a value of one kind never \
         equals one of the other\n",
        "-- ordid plan \"$DATABASE_URL\" --table numbers --to uuid_v7\n",
    ] {
        demand(text.contains(part), || format!("{part} is not in {text}"))?;
    }
    let blank = text.lines().find(|line| line.ends_with(' '));
    demand(blank.is_none(), || format!("{blank:?}"))
}

fn ordids_own_work(path: &str) -> Result {
    let names = [
        "ordid_map_orders",
        "ordid_move_orders",
        "ordid_new_orders",
        "ordid_work_orders",
        "ordid_bench_uuid_v4",
    ];
    for name in names {
        run(path, &format!("CREATE TABLE {name} (id UUID PRIMARY KEY)"))?;
    }
    super::is_clean(path, 0)
}
