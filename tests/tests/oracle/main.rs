//! What ordid says of Oracle, where it can be tried: the declarations, literals and orders on H2's
//! emulation of Oracle, which proves nothing about Oracle itself; all of it, array binds and errors
//! included, on the Oracle database that `ORDID_TEST_ORACLE_URL` names.

mod h2;
mod keys;
mod live;

use libtest_mimic::{Arguments, Failed, Trial};
use ordid_tests::servers::Servers;

/// What a test returns.
type Outcome = Result<(), Box<dyn std::error::Error + Send + Sync>>;

fn main() {
    let mut arguments = Arguments::from_args();
    // The server and the tests share the machine.
    arguments.test_threads.get_or_insert(2);
    let servers = match Servers::start(&["h2", "oracle"], !arguments.list) {
        Ok(servers) => servers,
        Err(error) => {
            eprintln!("Oracle tests: {error}");
            std::process::exit(101);
        }
    };
    let mut trials = Vec::new();
    h2::trials(&servers, &mut trials);
    live::trials(&servers, &mut trials);
    let conclusion = libtest_mimic::run(&arguments, trials);
    // `exit` runs no destructors: stop the server first.
    drop(servers);
    conclusion.exit();
}

/// Adds a test for a server, which is given its URL: ignored, with the reason in its name, where
/// there is no server.
fn server_trial(
    trials: &mut Vec<Trial>,
    servers: &Servers,
    server: &'static str,
    name: &str,
    test: impl FnOnce(&str) -> Outcome + Send + 'static,
) {
    trials.push(match servers.url(server) {
        Ok(url) => Trial::test(name, move || {
            test(&url).map_err(|error| Failed::from(error.to_string()))
        }),
        Err(reason) => Trial::test(name, || Ok(()))
            .with_kind(reason)
            .with_ignored_flag(true),
    });
}
