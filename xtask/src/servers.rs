//! The servers and the tools that tests and benches need.

use std::process::Command;

use ordid_harness::{Access, Policy};

use crate::packages;
use crate::run::Result;

/// The servers that this workspace's tests know, in the order in which they are reported.
const NAMES: [&str; 9] = [
    "postgres",
    "pgbouncer",
    "mariadb",
    "h2",
    "redis",
    "zookeeper",
    "mysql",
    "mssql",
    "oracle",
];

/// The servers of one run; the private ones stop when this is dropped.
pub(crate) struct Servers(Vec<(&'static str, Access)>);

impl Servers {
    /// Installs what is missing, starts what is private, and says what it does.
    pub(crate) fn start() -> Result<Self> {
        let mut private = Vec::new();
        for name in NAMES {
            if ordid_harness::policy(name).map_err(text)? == Policy::StartPrivate {
                private.push(name);
            }
        }
        // The programs that need a cluster start it: the others need not wait for it.
        if ordid_harness::policy("galera").map_err(text)? == Policy::StartPrivate {
            private.push("galera");
        }
        packages::install(|| missing(&private))?;
        // A system derived from Debian may not have these packages, so this is no error.
        if let Err(error) = packages::install(|| Ok(packages::browser())) {
            println!("chromium: {error}");
        }

        let mut servers = Vec::new();
        for name in NAMES {
            let access = ordid_harness::access(name).map_err(text)?;
            match &access {
                // Not the URL: it may hold a password.
                Access::Url(_) => println!("{name}: the server of {}", access.variable(name).0),
                Access::Private(server) => {
                    println!(
                        "{name}: {}, private on port {}",
                        server.version(),
                        server.port()
                    );
                }
                Access::Skip(reason) => println!("{name}: skipped: {reason}"),
            }
            servers.push((name, access));
        }
        Ok(Self(servers))
    }

    /// Tells a command where the servers are, and why it has none.
    pub(crate) fn export(&self, command: &mut Command) {
        for (name, access) in &self.0 {
            let (variable, value) = access.variable(name);
            command.env(variable, value);
        }
    }
}

fn text(error: ordid_harness::Error) -> String {
    error.to_string()
}

/// The Debian packages that are missing: the C compiler's, the C clients', and these servers'.
fn missing(servers: &[&str]) -> Result<Vec<&'static str>> {
    let mut packages = packages::c_compiler().to_vec();
    packages.extend(packages::c_clients());
    for name in servers {
        // The tests of a server that this machine cannot get are ignored.
        if let Err(error) = ordid_harness::installed(name)
            && !error.is_unavailable()
        {
            let named = error.package().ok_or_else(|| error.to_string())?;
            packages.extend(named.split_ascii_whitespace());
        }
    }
    Ok(packages)
}
