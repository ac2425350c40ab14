//! A database of its own for each test, and a proxy in front of its server.

use std::{
    net::ToSocketAddrs as _,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::atomic::{AtomicU32, Ordering},
};

use diesel::Connection;
use libtest_mimic::Trial;
use ordid_tests::{proxy::Proxy, servers::Servers, trials::ignored};
use tokio::runtime::{self, Runtime};

use crate::Outcome;

/// Adds a test with an empty database on a server, whose address it gets: ignored, with the reason in
/// its name, where there is no server.
pub fn on_server<C: Connection>(
    trials: &mut Vec<Trial>,
    servers: &Servers,
    server: &'static str,
    name: &str,
    drop: &'static str,
    test: fn(&str) -> Outcome,
) {
    static COUNT: AtomicU32 = AtomicU32::new(0);

    let name = format!("{server}::{name}");
    trials.push(match servers.url(server) {
        Err(reason) => ignored(name, reason),
        Ok(url) => Trial::test(name, move || {
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let database = format!("ordid_diesel_{}_{number}", std::process::id());
            let mut admin = C::establish(&url)?;
            admin.batch_execute(&format!("CREATE DATABASE {database}"))?;
            let (server, _) = url.rsplit_once('/').expect("an address names a database");
            let place = format!("{server}/{database}");
            let outcome = catch_unwind(AssertUnwindSafe(|| test(&place)));
            admin.batch_execute(&format!("DROP DATABASE {database}{drop}"))?;
            Ok(outcome.unwrap_or_else(|panic| resume_unwind(panic))?)
        }),
    });
}

/// Adds a test with an empty file, whose name it gets.
pub fn in_file(trials: &mut Vec<Trial>, name: &str, test: fn(&str) -> Outcome) {
    trials.push(Trial::test(format!("sqlite::{name}"), move || {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("ordid.db");
        Ok(test(&file.to_string_lossy())?)
    }));
}

/// A proxy in front of the server, and the address through it.
pub fn proxied(url: &str) -> Outcome<(Runtime, Proxy, String)> {
    let runtime = runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let (user, place) = url.rsplit_once('@').ok_or("an address has a user")?;
    let (server, database) = place.split_once('/').ok_or("and a database")?;
    let server = server.to_socket_addrs()?.next().ok_or("and a server")?;
    let proxy = runtime.block_on(Proxy::start(server))?;
    let through = format!("{user}@127.0.0.1:{}/{database}", proxy.port());
    Ok((runtime, proxy, through))
}
