use std::collections::HashSet;

use super::*;

const ENGINES: [Engine; 6] = [
    Engine::Postgres,
    Engine::MySql,
    Engine::MariaDb,
    Engine::Sqlite,
    Engine::SqlServer,
    Engine::Oracle,
];

#[test]
fn each_function_has_a_name_that_no_other_has_and_that_the_engine_keeps() {
    for engine in ENGINES {
        let mut names = HashSet::new();
        for function in Functions::new(engine).list() {
            // SQL Server and Oracle keep 128 characters, MySQL 64, PostgreSQL 63 bytes.
            let most = match engine {
                Engine::SqlServer | Engine::Oracle => 128,
                _ => 63,
            };
            assert!(function.name.len() <= most, "{}", function.name);
            let create = &function.create_sql;
            assert!(engine == Engine::Sqlite || create.contains(&function.name));
            let balance = create.matches('(').count() == create.matches(')').count();
            assert!(balance, "{create}");
            assert!(names.insert(function.name), "{engine:?}");
        }
        assert!(names.len() > 100, "{engine:?}: {}", names.len());
    }
}

#[test]
fn a_column_that_does_not_keep_the_order_has_but_the_time() {
    let words = |engine, scheme: &str, column: &str| -> Vec<&'static str> {
        let functions = Functions::new(engine).of_scheme(scheme).unwrap();
        let list = functions.of_column(column).unwrap().list();
        list.iter().map(|it| it.returns.word()).collect()
    };
    assert_eq!(words(Engine::Postgres, "uuid_v1", "uuid"), ["time"]);
    assert_eq!(
        words(Engine::SqlServer, "uuid_v7", "unique_identifier"),
        ["time"]
    );
    let all = ["time", "lowest", "highest"];
    assert_eq!(words(Engine::MySql, "uuid_v1", "binary16_swapped"), all);
    assert_eq!(
        words(Engine::SqlServer, "comb_rt_sql", "unique_identifier"),
        all
    );
    // By server, then by time.
    assert_eq!(
        words(Engine::MySql, "uuid_short", "bigint_unsigned"),
        ["time"]
    );
}

#[test]
fn names_are_refused_with_what_there_is() {
    let refused = |outcome: Result<Functions, Error>| outcome.unwrap_err().to_string();
    let postgres = || Functions::new(Engine::Postgres);
    assert_eq!(
        refused(postgres().of_scheme("uuid_v9")),
        "there is no scheme \"uuid_v9\"; `ordid schemes` lists them"
    );
    assert_eq!(
        refused(postgres().of_scheme("uuid_v4")),
        "keys of uuid_v4 tell no time, so there are no functions for them"
    );
    assert_eq!(
        refused(postgres().of_scheme("uuid_short")),
        "PostgreSQL has no column for keys of uuid_short"
    );
    assert_eq!(
        refused(postgres().of_scheme("snowflake").unwrap().of_column("uuid")),
        "PostgreSQL has no column \"uuid\" for these keys; it has bigint"
    );
}

#[test]
fn a_column_that_one_of_the_schemes_is_not_stored_in_is_refused() {
    let both = |engine| {
        let functions = Functions::new(engine).of_scheme("uuid_v7").unwrap();
        functions.of_scheme("snowflake").unwrap()
    };
    let expected = "PostgreSQL has no column \"uuid\" for keys of snowflake; it has bigint";
    let refused = both(Engine::Postgres).of_column("uuid").unwrap_err();
    assert_eq!(refused.to_string(), expected);
    let column = Functions::new(Engine::Postgres).of_column("uuid").unwrap();
    let refused = column.of_scheme("snowflake").unwrap_err();
    assert_eq!(refused.to_string(), expected);
}

/// T-SQL takes an integer above 32 bits for a `numeric`, and a quotient of such is not rounded.
#[test]
fn large_numbers_of_sql_server_are_integers() {
    let mut large = 0;
    for function in Functions::new(Engine::SqlServer).list() {
        let mut before = "";
        // Every second part is a text between quotes.
        for part in function.create_sql.split('\'').step_by(2) {
            let mut rest = part;
            while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
                let end = rest[start..].find(|c: char| !c.is_ascii_digit());
                let end = end.map_or(rest.len(), |end| start + end);
                before = &rest[..start];
                if rest[start..end].parse::<i128>().unwrap() > i32::MAX.into() {
                    large += 1;
                    let is_integer = before.ends_with("CONVERT(bigint, ");
                    assert!(is_integer, "{}", function.create_sql);
                }
                rest = &rest[end..];
            }
        }
        assert!(!before.is_empty());
    }
    assert!(large > 200, "{large}");
}

#[test]
fn a_schema_is_quoted() {
    let sql = |engine| {
        let functions = Functions::new(engine).in_schema("a\"b`c]");
        let functions = functions.of_scheme("snowflake").unwrap();
        functions.list()[0].drop_sql.clone()
    };
    assert_eq!(
        sql(Engine::Postgres),
        "DROP FUNCTION IF EXISTS \"a\"\"b`c]\".ordid_snowflake_time(bigint)"
    );
    assert_eq!(
        sql(Engine::MySql),
        "DROP FUNCTION IF EXISTS `a\"b``c]`.ordid_snowflake_time"
    );
    assert_eq!(
        sql(Engine::SqlServer),
        "DROP FUNCTION IF EXISTS [a\"b`c]]].ordid_snowflake_time"
    );
}

#[test]
fn several_schemes_can_be_named_and_each_counts_once() {
    let functions = Functions::new(Engine::Postgres);
    let functions = functions.of_scheme("snowflake").unwrap();
    let functions = functions.of_scheme("uuid_v7").unwrap();
    let functions = functions.of_scheme("snowflake").unwrap();
    let mut schemes: Vec<&str> = functions.list().iter().map(|it| it.scheme).collect();
    schemes.dedup();
    schemes.sort_unstable();
    assert_eq!(schemes, ["snowflake", "uuid_v7"]);
}
