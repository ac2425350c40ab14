//! Starts and stops real servers.
//!
//! A server that `ORDID_TEST_SKIP` names is not started. One that a URL names still is, if it is
//! installed: private servers are what this file is about.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Completion, Trial};
use ordid_harness::Policy;

/// A kill has to be noticed, and the server to shut down, within this time.
const LIMIT: Duration = Duration::from_secs(60);

/// Tells a server's version.
type Version = fn(&str) -> bool;

fn main() {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    let servers: [(&str, Version, &str); 8] = [
        (
            "postgres",
            |it| it.contains("PostgreSQL"),
            "postgres://postgres@",
        ),
        ("mariadb", |it| it.contains("MariaDB"), "mysql://root@"),
        ("mysql", |it| it.starts_with("MySQL 9."), "mysql://root@"),
        (
            "pgbouncer",
            |it| it.starts_with("PgBouncer 1."),
            "postgres://postgres@",
        ),
        ("h2", |it| it.starts_with("H2 (h2"), "jdbc:h2:tcp://"),
        ("redis", |it| it.starts_with("Redis server v="), "redis://"),
        (
            "zookeeper",
            |it| it.starts_with("Apache ZooKeeper"),
            "tcp://",
        ),
        ("etcd", |it| it.starts_with("etcd Version: 3."), "http://"),
    ];
    for (name, is_version, url) in servers {
        let test = move || starts_and_stops(name, is_version, url);
        trials.push(trial(&format!("{name}_starts_and_stops"), name, test));
    }
    for name in ["h2", "zookeeper"] {
        let test = format!("{name}_without_java_names_the_package");
        trials.push(Trial::test(test, move || {
            without_java_names_the_package(name);
            Ok(())
        }));
    }
    for name in [
        "h2",
        "postgres",
        "pgbouncer",
        "mariadb",
        "mysql",
        "redis",
        "zookeeper",
    ] {
        let test = format!("{name}_goes_with_a_killed_owner");
        trials.push(trial(&test, name, || goes_with_a_killed_owner(name)));
    }
    for name in ["postgres", "mariadb", "mysql", "redis", "zookeeper"] {
        let test = format!("{name}_comes_back_after_a_kill");
        trials.push(trial(&test, name, || comes_back(name)));
    }
    let others: [(&str, &str, fn()); 5] = [
        ("mariadb_takes_options", "mariadb", mariadb_takes_options),
        ("h2_runs_scripts", "h2", h2_runs_scripts),
        (
            "a_panic_stops_the_server",
            "postgres",
            a_panic_stops_the_server,
        ),
        (
            "redis_keeps_what_it_answered_through_a_kill",
            "redis",
            redis_keeps_what_it_answered_through_a_kill,
        ),
        (
            "a_half_made_server_goes_with_its_owner",
            "mariadb",
            a_half_made_server_goes_with_its_owner,
        ),
    ];
    for (name, server, test) in others {
        trials.push(trial(name, server, test));
    }
    libtest_mimic::run(&arguments, trials).exit();
}

/// Killed with its children, and stopped in good order: the same data, port and folder, another
/// process; and it goes like any other.
fn comes_back(name: &str) {
    let mut server = ordid_harness::start(name).expect("a server");
    let (port, folder) = (server.port(), server.folder().to_owned());
    let error = server.restart().expect_err("it is running");
    assert_eq!(error.to_string(), format!("{name} is still running"));
    std::fs::write(folder.join("data/own"), "kept").expect("written");
    for kill in [true, false] {
        let pid = server.pid().expect("a process");
        let ended = if kill { server.kill() } else { server.stop() };
        ended.expect("it was running");
        assert!(!port_is_open(port) && !process_is_alive(pid));
        server.restart().expect("it comes back");
        assert_ne!(server.pid().expect("a process"), pid);
        assert_eq!(server.port(), port);
        assert!(port_is_open(port) && folder.join("data/own").exists());
    }
    // Also one that is down.
    server.kill().expect("it was running");
    drop(server);
    assert!(!folder.exists(), "the folder is removed");
}

/// A test that is reported as ignored, with the reason, where its server is not wanted.
fn trial(name: &str, server: &'static str, test: impl FnOnce() + Send + 'static) -> Trial {
    Trial::ignorable_test(name, move || {
        let reason = match ordid_harness::policy(server)? {
            Policy::StartPrivate => ordid_harness::installed(server)
                .err()
                .filter(ordid_harness::Error::is_unavailable)
                .map(|error| error.to_string()),
            Policy::Use(_) => ordid_harness::installed(server)
                .err()
                .map(|error| error.to_string()),
            Policy::Skip(reason) => Some(reason),
        };
        Ok(match reason {
            Some(reason) => Completion::ignored_with(reason),
            None => {
                test();
                Completion::Completed
            }
        })
    })
}

fn port_is_open(port: u16) -> bool {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
}

fn process_is_alive(pid: u32) -> bool {
    let script = format!("kill -0 {pid} 2>/dev/null");
    Command::new("sh")
        .args(["-c", &script])
        .status()
        .expect("sh runs")
        .success()
}

fn starts_and_stops(name: &str, is_version: Version, url: &str) {
    let server = ordid_harness::start(name).expect("a server");
    assert_eq!(server.name(), name);
    assert!(is_version(server.version()), "{}", server.version());
    let (port, folder) = (server.port(), server.folder().to_owned());
    let pid = server.pid().expect("a process");
    let url = format!("{url}127.0.0.1:{port}/");
    assert!(server.url().starts_with(&url), "{}", server.url());
    assert!(port_is_open(port));
    assert!(process_is_alive(pid));
    assert!(folder.is_dir());
    drop(server);
    assert!(!port_is_open(port), "the port is closed");
    assert!(!process_is_alive(pid), "the process is gone");
    assert!(!folder.exists(), "the folder is removed");
}

fn mariadb_takes_options() {
    let error = ordid_harness::mariadb_with(&["--no-such-option"]).expect_err("unknown");
    let error = error.to_string();
    assert!(error.contains("no-such-option"), "{error}");
}

/// What the leases and the counters on it stand on: an answered write is in the log.
fn redis_keeps_what_it_answered_through_a_kill() {
    let mut server = ordid_harness::redis().expect("a server");
    let ask = |port: u16, command: &str| {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("a connection");
        stream.write_all(command.as_bytes()).expect("sent");
        let mut line = String::new();
        BufReader::new(stream)
            .read_line(&mut line)
            .expect("an answer");
        line.trim_end().to_owned()
    };
    for expected in 1..=3 {
        assert_eq!(ask(server.port(), "INCR n\r\n"), format!(":{expected}"));
        server.kill().expect("it was running");
        server.restart().expect("it comes back");
    }
}

fn h2_runs_scripts() {
    let server = ordid_harness::h2().expect("a server");
    let url = format!("{};MODE=Oracle", server.url());
    let made = ordid_harness::h2_script(
        &url,
        "CREATE TABLE t (id RAW(2) PRIMARY KEY, n NUMBER(3));
         INSERT INTO t SELECT HEXTORAW('FF00'), 1 FROM dual UNION ALL \
         SELECT HEXTORAW('00FF'), 2 FROM dual;",
    );
    assert!(made.expect("runs").is_empty());
    let rows = ordid_harness::h2_script(&url, "SELECT RAWTOHEX(id), n FROM t ORDER BY id;");
    assert_eq!(rows.expect("runs"), ["00ff 2", "ff00 1"]);
    let error = ordid_harness::h2_script(&url, "INSERT INTO t VALUES (HEXTORAW('00FF'), 3);")
        .expect_err("taken")
        .to_string();
    assert!(error.contains("primary key violation"), "{error}");
    assert!(!error.contains("\tat "), "{error}");
}

/// With a search path that leads to no Java.
fn without_java_names_the_package(server: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let output = Command::new(env!("CARGO_BIN_EXE_private-server"))
        .arg(server)
        .env("PATH", folder.path())
        .stdin(Stdio::null())
        .output()
        .expect("the helper runs");
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.starts_with("error: `java`"), "{said}");
    assert!(said.trim_end().ends_with("default-jre-headless`"), "{said}");
}

fn a_panic_stops_the_server() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        let server = ordid_harness::postgres().expect("a server");
        sender
            .send((server.port(), server.folder().to_owned()))
            .expect("a receiver");
        // Unwinds as a panic does, without the message in the tests' output.
        std::panic::resume_unwind(Box::new("on purpose"));
    });
    let (port, folder) = receiver.recv().expect("a server");
    assert!(thread.join().is_err());
    assert!(!port_is_open(port));
    assert!(!folder.exists());
}

/// The server must go when its owner is killed without a chance to clean up.
fn goes_with_a_killed_owner(name: &str) {
    let mut owner = Command::new(env!("CARGO_BIN_EXE_private-server"))
        .arg(name)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the helper runs");
    let mut lines = BufReader::new(owner.stdout.take().expect("its output")).lines();
    let mut line = || lines.next().expect("a line").expect("readable");
    let url = line();
    let folder = PathBuf::from(line());
    let pid: u32 = read(&folder.join("pid")).trim().parse().expect("a number");
    let port: u16 = url
        .split_once("127.0.0.1:")
        .and_then(|(_, rest)| rest.split('/').next())
        .and_then(|port| port.parse().ok())
        .expect("a port");
    assert!(process_is_alive(pid));
    assert!(port_is_open(port));

    owner.kill().expect("SIGKILL"); // the owner gets no chance to drop anything
    owner.wait().expect("it ends");
    let killed = Instant::now();
    while process_is_alive(pid) || folder.exists() {
        assert!(
            killed.elapsed() < LIMIT,
            "{name} ({pid}) or {} is left over",
            folder.display()
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!port_is_open(port));
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("readable")
}

/// The same while the data folder is still being created, when there is no server yet.
fn a_half_made_server_goes_with_its_owner() {
    let parent = tempfile::Builder::new()
        .prefix("ordid-half-")
        .tempdir_in("/tmp")
        .expect("a folder");
    std::fs::set_permissions(
        parent.path(),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .expect("permissions");
    let entries = || std::fs::read_dir(parent.path()).expect("a folder").count();
    let mut owner = Command::new(env!("CARGO_BIN_EXE_private-server"))
        .arg("mariadb")
        .env("TMPDIR", parent.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("the helper runs");
    while entries() == 0 {
        assert!(
            owner.try_wait().expect("a status").is_none(),
            "the helper failed"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(200));
    owner.kill().expect("SIGKILL");
    owner.wait().expect("it ends");
    let killed = Instant::now();
    while entries() != 0 {
        assert!(killed.elapsed() < LIMIT, "the folder is left over");
        std::thread::sleep(Duration::from_millis(20));
    }
}
