use std::collections::HashSet;

use super::*;

/// Every question.
fn questions() -> Vec<Question> {
    let mut all = Vec::new();
    for server in Target::value_variants() {
        for machines in Machines::value_variants() {
            for is_public in [false, true] {
                for is_64 in [false, true] {
                    all.push(Question {
                        server: *server,
                        machines: *machines,
                        is_public,
                        is_64,
                    });
                }
            }
        }
    }
    all
}

#[test]
fn each_advised_scheme_keeps_its_order_in_the_advised_column() {
    for question in questions() {
        let engine = question.server.engine();
        let scheme = catalogue::find(question.scheme()).unwrap();
        let column = ordered_column(scheme, engine, None).unwrap();
        assert!(column.keeps_order_of(scheme), "{question:?}");
        assert_eq!(column.dialect, engine.name());
        // Engines that cut tables into ranges get keys that are spread over them, and no other does.
        let now = ordid_core::clock::Timestamp::from_unix_millis(1_790_000_000_000).unwrap();
        let ranges = scheme.ranges(now..now).unwrap().unwrap();
        let is_spread = ranges.len() == 16;
        assert_eq!(is_spread, question.server.has_ranges(), "{question:?}");
    }
}

#[test]
fn each_statement_has_a_source_and_none_is_said_twice() {
    for question in questions() {
        let advice = advise(question, Library::of(question.server.engine())).unwrap();
        assert!(advice.statements.len() >= 4, "{question:?}");
        let mut texts = HashSet::new();
        for Fact { text, source } in &advice.statements {
            assert!(
                source.starts_with("https://") && !source.contains(' '),
                "{source}"
            );
            assert!(!text.is_empty() && !text.ends_with('.'), "{text}");
            assert!(texts.insert(text), "{question:?}: {text}");
        }
    }
}

#[test]
fn the_declaration_is_that_of_the_column() {
    for question in questions() {
        let advice = advise(question, Library::of(question.server.engine())).unwrap();
        let scheme = catalogue::find(advice.scheme).unwrap();
        let column = ordered_column(scheme, question.server.engine(), None).unwrap();
        let declared = column.primary_key("id").replace(" PRIMARY KEY", "");
        let declared = declared.split(" CLUSTERED").next().unwrap();
        let ddl = advice.ddl[0].replace(" PRIMARY KEY", "");
        assert!(ddl.contains(declared), "{ddl}");
    }
}

#[test]
fn buckets_get_ranges_by_the_statement_of_the_engine() {
    let ddl = |server, is_64| {
        let question = Question {
            server,
            machines: Machines::Many,
            is_public: false,
            is_64,
        };
        advise(question, Library::Sqlx).unwrap().ddl
    };
    let cockroach = ddl(Target::Cockroachdb, false);
    assert!(
        cockroach[1]
            .starts_with("ALTER TABLE \"orders\" SPLIT AT VALUES ('10000000-0000-8000-a000-"),
        "{cockroach:?}"
    );
    assert_eq!(cockroach[1].matches("::uuid").count(), 15);
    let yugabyte = ddl(Target::Yugabytedb, true);
    assert!(
        yugabyte.len() == 1
            && yugabyte[0].contains("PRIMARY KEY (\"id\" ASC)\n) SPLIT AT VALUES (("),
        "{yugabyte:?}"
    );
    let tidb = ddl(Target::Tidb, false);
    assert!(
        tidb[1].starts_with("SPLIT TABLE `orders` BY (X'1000"),
        "{tidb:?}"
    );
    assert_eq!(ddl(Target::Dsql, false).len(), 1, "it splits by itself");
}

#[test]
fn a_library_that_does_not_speak_to_the_engine_is_refused() {
    for (library, engine) in [
        (Library::Sqlx, Engine::Oracle),
        (Library::Rusqlite, Engine::Postgres),
        (Library::Tiberius, Engine::Mysql),
        (Library::TokioPostgres, Engine::Sqlite),
        (Library::MysqlAsync, Engine::Postgres),
    ] {
        assert!(!library.speaks_to(engine));
    }
}

#[test]
fn mysql_async_is_advised_for_mysql_and_mariadb() {
    for server in [Target::Mysql, Target::Mariadb, Target::Tidb] {
        assert!(Library::MysqlAsync.speaks_to(server.engine()));
        let question = Question {
            server,
            machines: Machines::Many,
            is_public: false,
            is_64: true,
        };
        let derive = advise(question, Library::MysqlAsync).unwrap().derive;
        assert!(
            derive.ends_with(", mysql_async(mysql = bigint))]"),
            "{derive}"
        );
    }
}
