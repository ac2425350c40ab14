//! The servers and the tools that tests and benches need.

use std::process::Command;

use ordid_harness::{Access, Policy};

use crate::packages;
use crate::run::Result;

/// The servers that this workspace's tests know, in the order in which they are reported.
pub(crate) const ALL: [&str; 9] = [
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
    /// Installs what the tests need, starts all private servers, and says what it does.
    pub(crate) fn start_all() -> Result<Self> {
        // The programs that need a cluster start it: the others need not wait for it.
        let mut installed = ALL.to_vec();
        installed.push("galera");
        install(&installed)?;
        // A system derived from Debian may not have these packages, so this is no error.
        if let Err(error) = packages::install(|| Ok(packages::browser())) {
            println!("chromium: {error}");
        }
        Self::start_installed(&ALL)
    }

    /// As [`start_all`](Self::start_all), with these servers alone.
    pub(crate) fn start(names: &[&'static str]) -> Result<Self> {
        install(names)?;
        Self::start_installed(names)
    }

    fn start_installed(names: &[&'static str]) -> Result<Self> {
        let mut servers = Vec::new();
        for &name in names {
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

/// Installs what is missing of those servers that are private.
fn install(names: &[&'static str]) -> Result<()> {
    let mut private = Vec::new();
    for &name in names {
        if ordid_harness::policy(name).map_err(text)? == Policy::StartPrivate {
            private.push(name);
        }
    }
    packages::install(|| missing(&private))
}

/// The Debian packages that are missing: the C compiler's, the C clients', and these servers'.
pub(crate) fn missing(servers: &[&str]) -> Result<Vec<&'static str>> {
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
