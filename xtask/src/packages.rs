//! What tasks need of the system: root on Debian gets it installed, others are told what to install.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::run::{self, Result};

const APT_GET: &str = "/usr/bin/apt-get";

// Where they are missing, the functions below return these.
const C_COMPILER: &[&str] = &["gcc", "libc6-dev"];
const CPP_COMPILER: &[&str] = &["g++"];
const OPENSSL: &[&str] = &["libssl-dev", "pkg-config"];
const C_CLIENTS: [&str; 3] = ["libpq-dev", "libmariadb-dev", "pkg-config"];
const PROTOC: &[&str] = &["protobuf-compiler", "libprotobuf-dev"];

/// Makes sure that nothing is missing. `missing` names Debian's packages, and is asked again after
/// they were installed.
pub(crate) fn install(missing: impl Fn() -> Result<Vec<&'static str>>) -> Result<()> {
    let packages = missing()?;
    if packages.is_empty() {
        return Ok(());
    }
    if !Path::new(APT_GET).exists() || !is_root() {
        return Err(by_hand(&packages, Path::new(APT_GET).exists()));
    }

    println!("installing {}", packages.join(" "));
    apt_get(&["update"])?;
    let mut arguments = vec!["install", "-y", "--no-install-recommends"];
    arguments.extend(&packages);
    apt_get(&arguments)?;

    // The packages may be there and the binaries not, on a system that merely resembles Debian.
    let packages = missing()?;
    if packages.is_empty() {
        Ok(())
    } else {
        Err(format!(
            "installing {} did not help: install it by hand",
            packages.join(" ")
        ))
    }
}

/// What to tell those who have to install the packages themselves.
fn by_hand(packages: &[&str], is_debian: bool) -> String {
    let packages = packages.join(" ");
    let line = format!("install the packages {packages} (or what your system calls them)");
    if is_debian {
        format!("{line}: sudo apt-get install {packages}")
    } else {
        line
    }
}

/// The compiler of C, if it is missing: SQLite is compiled from its source.
pub(crate) fn c_compiler() -> &'static [&'static str] {
    if works("cc", &["--version"]) {
        &[]
    } else {
        C_COMPILER
    }
}

/// The compiler of C++, if it is missing: libFuzzer is compiled from its source.
pub(crate) fn cpp_compiler() -> &'static [&'static str] {
    if works("c++", &["--version"]) {
        &[]
    } else {
        CPP_COMPILER
    }
}

/// The headers of OpenSSL, if they are missing: the feature `native-tls` of ordid-tiberius is built
/// with them where the system has no TLS of its own.
pub(crate) fn openssl() -> &'static [&'static str] {
    let has_other_tls = cfg!(any(windows, target_vendor = "apple"));
    // As `openssl-sys` looks for them.
    let is_named = ["OPENSSL_DIR", "OPENSSL_INCLUDE_DIR"]
        .iter()
        .any(|name| env::var_os(name).is_some());
    if has_other_tls || is_named || works("pkg-config", &["--exists", "openssl"]) {
        &[]
    } else {
        OPENSSL
    }
}

/// The C clients of PostgreSQL and MariaDB, of those that are missing: the tests of ordid-diesel are
/// linked with them. Where the system has the clients elsewhere, the variables of `pq-sys` and
/// `mysqlclient-sys` name them.
pub(crate) fn c_clients() -> Vec<&'static str> {
    let is_there = |variable: &str, libraries: &[&str]| {
        let is_found = |library: &&str| works("pkg-config", &["--exists", library]);
        env::var_os(variable).is_some() || libraries.iter().any(is_found)
    };
    let [libpq, libmariadb, pkg_config] = C_CLIENTS;
    let mut missing = Vec::new();
    if !is_there("PQ_LIB_DIR", &["libpq"]) {
        missing.push(libpq);
    }
    if !is_there("MYSQLCLIENT_LIB_DIR", &["libmariadb", "mysqlclient"]) {
        missing.push(libmariadb);
    }
    // It is asked, and so have the builds to find the clients.
    if !works("pkg-config", &["--version"]) {
        missing.push(pkg_config);
    }
    missing
}

/// The compiler of protocol buffers, if it is missing: etcd-client is built with it.
pub(crate) fn protoc() -> &'static [&'static str] {
    if env::var_os("PROTOC").is_some() || works("protoc", &["--version"]) {
        &[]
    } else {
        PROTOC
    }
}

/// Returns the packages of Chromium and its driver that are missing and can be installed here. Without them, the tests
/// of pages are ignored.
pub(crate) fn browser() -> Vec<&'static str> {
    let is_unwanted =
        env::var("ORDID_TEST_CHROMIUM_SKIP").is_ok_and(|reason| !reason.trim().is_empty());
    if is_unwanted || !Path::new(APT_GET).exists() || !is_root() {
        return Vec::new();
    }
    let programs = [
        ("chromium", "chromium"),
        ("chromedriver", "chromium-driver"),
    ];
    let missing = programs
        .iter()
        .filter(|(program, _)| !works(program, &["--version"]));
    missing.map(|(_, package)| *package).collect()
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

/// Returns whether a program is there and succeeds with these arguments.
pub(crate) fn works(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers;

    /// The packages of a server that the tests start, as `ordid_harness` names them where it is missing.
    fn of_server(name: &str) -> &'static [&'static str] {
        match name {
            "postgres" => &["postgresql"],
            "pgbouncer" => &["pgbouncer"],
            "mariadb" => &["mariadb-server"],
            "galera" => &["galera-4", "rsync"],
            "h2" => &["libh2-java", "default-jre-headless"],
            "redis" => &["redis-server"],
            "zookeeper" => &["zookeeper", "default-jre-headless"],
            // MySQL is unpacked from another suite, by root on Debian only. The others are never private.
            "mysql" | "mssql" | "oracle" => &[],
            other => panic!("which packages does {other} need?"),
        }
    }

    /// As another user than root, the workflow can install nothing later. Chromium is not missed: its tests are ignored.
    #[test]
    fn the_workflow_installs_all_that_tests_need() {
        let file = run::root().join(".github/workflows/ci.yml");
        let workflow = std::fs::read_to_string(file).expect("it can be read");
        let (_, step) = workflow
            .split_once("apt-get install")
            .expect("it installs something");
        let installed = step.split("- name:").next().unwrap_or_default();
        let installed: Vec<&str> = installed.split_ascii_whitespace().collect();
        let servers = servers::ALL.into_iter().chain(["galera"]).map(of_server);
        let lists = [C_COMPILER, CPP_COMPILER, OPENSSL, &C_CLIENTS, PROTOC];
        for package in servers.chain(lists).flatten() {
            assert!(installed.contains(package), "{package} is not in ci.yml");
        }
    }

    #[test]
    fn what_is_missing_is_told_in_a_line() {
        let packages = ["libssl-dev", "pkg-config"];
        assert_eq!(
            by_hand(&packages, true),
            "install the packages libssl-dev pkg-config (or what your system calls them): sudo \
             apt-get install libssl-dev pkg-config"
        );
        assert_eq!(
            by_hand(&packages, false),
            "install the packages libssl-dev pkg-config (or what your system calls them)"
        );
    }

    #[test]
    fn nothing_is_installed_where_nothing_is_missing() {
        assert_eq!(install(|| Ok(Vec::new())), Ok(()));
        assert_eq!(
            install(|| Err("no such server".to_owned())),
            Err("no such server".to_owned())
        );
    }
}
