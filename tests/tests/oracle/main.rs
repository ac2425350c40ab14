//! What ordid says of Oracle, where it can be tried: the declarations, literals, orders and statements
//! on H2's emulation of Oracle, which proves nothing about Oracle itself; all of it, array binds and
//! errors included, on the Oracle database that `ORDID_TEST_ORACLE_URL` names.

mod followers;
mod h2;
mod keys;
mod leases;
mod live;
mod statements;

use libtest_mimic::{Failed, Trial};
use ordid_tests::{
    servers::Servers,
    trials::{Outcome, ignored, run_all},
};

fn main() {
    run_all(&["h2", "oracle"], |servers, trials| {
        h2::trials(servers, trials);
        statements::trials(servers, trials);
        leases::trials(servers, trials);
        followers::trials(servers, trials);
        live::trials(servers, trials);
    });
}

/// Adds tests for H2, in their module.
fn h2_trials<'a>(
    trials: &'a mut Vec<Trial>,
    servers: &'a Servers,
) -> impl FnMut(&str, fn(&str) -> Outcome) + 'a {
    |name, test| {
        let name = format!("h2_emulates_oracle::{name}");
        server_trial(trials, servers, "h2", &name, test);
    }
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
        Err(reason) => ignored(name, reason),
    });
}
