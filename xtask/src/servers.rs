//! The servers and the tools that tests and benches need.

use std::path::Path;
use std::process::{Command, Stdio};

use ordid_harness::{Access, Policy};

use crate::run::{self, Result};

/// The servers that this workspace's tests know, in the order in which they are reported.
const NAMES: [&str; 5] = ["postgres", "mariadb", "h2", "mysql", "oracle"];

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
        install(&private)?;

        let mut servers = Vec::new();
        for name in NAMES {
            let access = ordid_harness::access(name).map_err(text)?;
            match &access {
                // Not the URL: it may hold a password.
                Access::Url(_) => println!("{name}: the server of {}", variable(name)),
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

    /// Tells a command where the servers are.
    pub(crate) fn export(&self, command: &mut Command) {
        for (name, access) in &self.0 {
            if let Some(url) = access.url() {
                command.env(variable(name), url);
            }
        }
    }
}

fn variable(name: &str) -> String {
    format!("ORDID_TEST_{}_URL", name.to_uppercase())
}

fn text(error: ordid_harness::Error) -> String {
    error.to_string()
}

/// Makes sure that a C compiler and these servers are installed.
fn install(servers: &[&str]) -> Result<()> {
    let missing = missing(servers)?;
    if missing.is_empty() {
        return Ok(());
    }
    let packages = missing.join(" ");
    let manual = format!("install the packages {packages} (or what your system calls them)");
    if !Path::new("/usr/bin/apt-get").exists() {
        return Err(manual);
    }
    if !is_root() {
        return Err(format!("{manual}: sudo apt-get install {packages}"));
    }

    println!("installing {packages}");
    apt_get(&["update"])?;
    let mut arguments = vec!["install", "-y", "--no-install-recommends"];
    arguments.extend(&missing);
    apt_get(&arguments)?;

    // The packages may be there and the binaries not, on a system that merely resembles Debian.
    let missing = self::missing(servers)?;
    if missing.is_empty() {
        Ok(())
    } else {
        Err(format!(
            "installing {} did not help: install it by hand",
            missing.join(" ")
        ))
    }
}

/// The Debian packages that are missing.
fn missing(servers: &[&str]) -> Result<Vec<&'static str>> {
    let mut packages = Vec::new();
    if !works("cc", "--version") {
        // SQLite is compiled from its C source.
        packages.extend(["gcc", "libc6-dev"]);
    }
    for name in servers {
        if let Err(error) = ordid_harness::installed(name) {
            let named = error.package().ok_or_else(|| error.to_string())?;
            packages.extend(named.split_ascii_whitespace());
        }
    }
    Ok(packages)
}

fn apt_get(arguments: &[&str]) -> Result<()> {
    let mut command = Command::new("apt-get");
    command
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null());
    // invoke-rc.d takes this for single-user mode and leaves the new services stopped.
    command.env("RUNLEVEL", "1");
    run::succeed(&mut command)
}

fn works(program: &str, argument: &str) -> bool {
    let mut command = Command::new(program);
    command
        .arg(argument)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}
