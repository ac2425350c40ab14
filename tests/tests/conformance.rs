//! The order law over the whole matrix, in its short form; `cargo xtask conformance` is the long one.

use libtest_mimic::{Arguments, Failed, Trial};
use ordid_tests::{
    conformance::{Engine, cells, is_written, live, tables, vectors},
    servers::Servers,
};

/// Enough for a day's leap of the clock and what wraps in between.
const KEYS: usize = 2_100;

fn main() {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(2);
    let servers = match Servers::start(&["postgres", "mysql", "mariadb", "h2"], !arguments.list) {
        Ok(servers) => servers,
        Err(error) => {
            eprintln!("conformance tests: {error}");
            std::process::exit(101);
        }
    };
    let mut trials = vec![
        Trial::test("what_is_declared_holds_in_arithmetic", arithmetic),
        Trial::test("sql_guid_compares_alike", || {
            let pairs = vectors::hold()?;
            assert_eq!(pairs, 2_000);
            Ok(())
        }),
        Trial::test("the_document_has_this_matrix", document),
    ];
    let servers = std::sync::Arc::new(servers);
    for engine in [
        Engine::Sqlite,
        Engine::Postgres,
        Engine::MariaDb,
        Engine::MySql,
        // H2, which emulates it.
        Engine::Oracle,
    ] {
        let name = format!("{}_sorts_every_ordered_cell", engine.name().to_lowercase());
        let reason = engine.server().and_then(|server| servers.url(server).err());
        let servers = servers.clone();
        let trial = Trial::test(name, move || sorts(engine, &servers));
        trials.push(match reason {
            None => trial,
            Some(reason) => trial.with_kind(reason).with_ignored_flag(true),
        });
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    // `exit` runs no destructors: stop the servers first.
    drop(servers);
    conclusion.exit();
}

fn arithmetic() -> Result<(), Failed> {
    let broken: Vec<String> = cells()
        .iter()
        .filter_map(|cell| cell.holds_in_arithmetic(KEYS).err())
        .collect();
    if broken.is_empty() {
        Ok(())
    } else {
        Err(broken.join("\n").into())
    }
}

fn sorts(engine: Engine, servers: &Servers) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let cells = cells();
    let held = runtime.block_on(live::hold(engine, servers, &cells, KEYS));
    let sorted = held?.map_err(|error| error.to_string())?;
    let least = match engine {
        // It has columns of bytes and of numbers only.
        Engine::Oracle => 25,
        _ => 40,
    };
    assert!(sorted > least, "{sorted} cells");
    Ok(())
}

fn document() -> Result<(), Failed> {
    let tables = tables(&cells(), |engine| Engine::PRIVATE.contains(&engine));
    Ok(is_written(&tables, "cargo xtask conformance")?)
}
