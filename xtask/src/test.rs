//! `cargo xtask test` and `cargo xtask soak`.

use std::env;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus, Stdio};

use ordid_harness::Policy;

use crate::check::{BENCH, ETCD, check};
use crate::lanes;
use crate::machines::MACHINES;
use crate::packages;
use crate::run::{self, Result};
use crate::servers::{self, Servers};
use crate::summary::Summary;

/// Asks the tests for their long forms, and for the servers that only these have.
const SOAK: &str = "ORDID_TEST_SOAK";

/// Runs every test of the workspace and those of ordid-etcd, in two lanes; or, as `cargo test` would, those that are asked
/// for.
pub(crate) fn test(extra: &[String]) -> Result<ExitCode> {
    let mut summary = Summary::default();
    let ended = if extra.is_empty() {
        everything(&mut summary)?
    } else {
        vec![run_tests(&mut run::cargo(&["test"]), extra, &mut summary)?]
    };
    Ok(conclude(&ended, &summary))
}

fn everything(summary: &mut Summary) -> Result<Vec<ExitStatus>> {
    let servers = Servers::start_all()?;
    // All of it before the first test, as both lanes need it.
    run::succeed(workspace(&mut run::cargo(&["test"])).arg("--no-run"))?;
    let tests = |selection: Vec<String>| {
        let mut command = run::cargo(&["test"]);
        // One failure must not hide the others, nor leave them out of the count.
        workspace(&mut command)
            .arg("--no-fail-fast")
            .args(selection);
        servers.export(&mut command);
        command
    };
    let [waiting, others] = lanes::selections()?;
    let mut computing = vec![tests(others), tests(vec!["--doc".to_owned()])];
    computing.extend(etcd(false, summary)?);
    lanes::run([vec![tests(waiting)], computing], summary)
}

/// The workspace's packages, with these features.
fn workspace(command: &mut Command) -> &mut Command {
    // The quickstart is built without its servers' drivers unless they are asked for.
    command.args([
        "--locked",
        "--workspace",
        "--features",
        "quickstart/servers",
    ])
}

/// The tests of the benches, a workspace of its own, where the checkout has it. They need no server.
fn benches() -> Result<Option<Command>> {
    if !run::root().join(BENCH).exists() {
        return Ok(None);
    }
    let mut command = run::cargo(&["test", "--locked", "--no-fail-fast"]);
    command.args(["--manifest-path", BENCH]);
    // Much of what they are built of is there already.
    command.args(["--target-dir", "target"]);
    // The others would be built with all the libraries that they are measured against, for nothing.
    for package in benches_with_tests()? {
        command.args(["-p", &package]);
    }
    Ok(Some(command))
}

/// Returns the packages of the benches that have tests.
fn benches_with_tests() -> Result<Vec<String>> {
    let cannot = |error| format!("cannot look for the tests of the benches: {error}");
    let benches = run::root().join(BENCH);
    let folder = benches.parent().ok_or("the benches are in no folder")?;
    let mut packages = Vec::new();
    for entry in folder.read_dir().map_err(cannot)? {
        let entry = entry.map_err(cannot)?;
        let sources = entry.path().join("src");
        if sources.is_dir() && has_tests(&sources).map_err(cannot)? {
            packages.push(format!("bench-{}", entry.file_name().to_string_lossy()));
        }
    }
    packages.sort();
    Ok(packages)
}

fn has_tests(folder: &Path) -> io::Result<bool> {
    for entry in folder.read_dir()? {
        let path = entry?.path();
        let found = if path.is_dir() {
            has_tests(&path)?
        } else {
            fs::read_to_string(&path)?.contains("#[test]")
        };
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The tests of ordid-etcd, which is built with `protoc`, where there is a server for them.
fn etcd(is_soak: bool, summary: &mut Summary) -> Result<Option<Command>> {
    let mut command = run::cargo(&["test", "--locked", "--no-fail-fast"]);
    command.args(["--manifest-path", ETCD]);
    if is_soak {
        command.env(SOAK, "1");
    }
    let get = |variable: &str| match variable {
        SOAK if is_soak => Some("1".to_owned()),
        _ => env::var(variable).ok(),
    };
    let policy = ordid_harness::policy_from("etcd", get).map_err(|error| error.to_string())?;
    let private: &[&str] = match policy {
        Policy::Skip(reason) => {
            println!("ordid-etcd: skipped: {reason}");
            summary.skip("ordid-etcd, all of its tests", &reason);
            return Ok(None);
        }
        Policy::Use(_) => &[],
        Policy::StartPrivate => &["etcd"],
    };
    packages::install(|| {
        let mut missing = servers::missing(private)?;
        missing.extend(packages::protoc());
        Ok(missing)
    })?;
    Ok(Some(command))
}

/// Runs the long forms of the checks and the tests. `ORDID_TEST_SOAK` asks for the latter.
pub(crate) fn soak(extra: &[String]) -> Result<ExitCode> {
    if extra.is_empty() {
        check(false)?;
    }
    println!("soak: the long forms of the tests (ORDID_TEST_SOAK=1), in a release build");
    let mut summary = Summary::default();
    let mut long = run::cargo(&["test", "--release"]);
    long.env(SOAK, "1");
    let mut ended = vec![run_tests(&mut long, extra, &mut summary)?];
    if extra.is_empty() {
        ended.push(count(models().env(SOAK, "1"), &mut summary)?);
        if let Some(mut benches) = benches()? {
            ended.push(count(&mut benches, &mut summary)?);
        }
        if let Some(mut etcd) = etcd(true, &mut summary)? {
            println!("soak: the tests of etcd");
            ended.push(count(&mut etcd, &mut summary)?);
        }
        println!("soak: the tests of live servers again, on newer PostgreSQL and MariaDB");
        ended.push(count(&mut on_newer_servers(), &mut summary)?);
        ended.extend(on_machines(&mut summary)?);
    }
    Ok(conclude(&ended, &summary))
}

/// The short forms of the live tests, the faults over every library, the coordination and the command `ordid`, whose programs
/// then start newer servers.
fn on_newer_servers() -> Command {
    let mut command = run::cargo(&["test", "--release", "--locked", "--no-fail-fast"]);
    command.args(["-p", "ordid-tests", "-p", "ordid-orm-tests"]);
    command.args(["-p", "ordid-coordination-tests", "-p", "ordid-cli"]);
    command.args([
        "--test",
        "live",
        "--test",
        "faults",
        "--test",
        "coordination",
    ]);
    command.env("ORDID_TEST_NEWER_SERVERS", "1");
    command
}

/// Runs the tests of keys on machines of other kinds.
pub(crate) fn machines() -> Result<ExitCode> {
    let mut summary = Summary::default();
    let ended = on_machines(&mut summary)?;
    Ok(conclude(&ended, &summary))
}

/// Runs the tests of each machine that can be emulated here.
fn on_machines(summary: &mut Summary) -> Result<Vec<ExitStatus>> {
    let mut ended = Vec::new();
    for machine in MACHINES {
        let name = machine.name();
        match machine.tests()? {
            Ok(commands) => {
                println!("soak: the tests of keys on {name}");
                for mut command in commands {
                    ended.push(count(&mut command, summary)?);
                }
            }
            Err(reason) => {
                println!("{name}: skipped: {reason}");
                summary.skip(&format!("the tests of keys on {name}"), &reason);
            }
        }
    }
    Ok(ended)
}

/// Runs the tests of servers' settings, which then write their table into PLATFORM.md.
pub(crate) fn settings() -> Result<ExitCode> {
    let extra = ["-p", "ordid-tests", "--test", "live", "--", "settings::"].map(str::to_owned);
    let mut summary = Summary::default();
    let status = run_tests(
        run::cargo(&["test"]).env("ORDID_WRITE_SETTINGS", "1"),
        &extra,
        &mut summary,
    )?;
    Ok(conclude(&[status], &summary))
}

/// The engine of the generators under the model checker.
fn models() -> Command {
    let mut command = run::cargo(&["test", "-p", "ordid-core", "--lib", "--release", "--locked"]);
    command
        // The checker has to be fast. What else is built is for tests that do not run.
        .args(["--config", "profile.release.package.\"*\".opt-level=0"])
        .args(["--config", "profile.release.package.generator.opt-level=3"])
        .args(["--config", "profile.release.package.loom.opt-level=3"])
        // Other flags, other builds: without a folder of its own each run would build all anew.
        .args(["--target-dir", "target/loom", "generator::engine::model"])
        .env("RUSTFLAGS", "--cfg loom")
        // It would overrule RUSTFLAGS, and there would be no models to run.
        .env_remove("CARGO_ENCODED_RUSTFLAGS");
    command
}

fn run_tests(command: &mut Command, extra: &[String], summary: &mut Summary) -> Result<ExitStatus> {
    if names_a_package(extra) {
        command.arg("--locked");
    } else {
        workspace(command);
    }
    command.arg("--no-fail-fast").args(extra);

    let servers = Servers::start_all()?;
    servers.export(command);
    count(command, summary)
}

/// Runs one `cargo test`, shows its output, and adds it up.
fn count(command: &mut Command, summary: &mut Summary) -> Result<ExitStatus> {
    println!("running `{}`", run::text(command));
    let failed_before = summary.failed();
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| run::cannot_run(command, &error))?;
    if let Some(output) = child.stdout.take() {
        copy(output, summary).map_err(|error| format!("cannot copy the output: {error}"))?;
    }
    let status = child
        .wait()
        .map_err(|error| run::cannot_run(command, &error))?;
    if !status.success() && summary.failed() == failed_before {
        println!("\n`{}` failed ({status})", run::text(command));
    }
    Ok(status)
}

/// Prints the sums. The first failure is the one to pass on.
fn conclude(ended: &[ExitStatus], summary: &Summary) -> ExitCode {
    print!("\n{summary}");
    match ended.iter().find(|status| !status.success()) {
        Some(failed) => {
            if summary.failed() == 0 {
                println!("and some tests were not run: see what failed above");
            }
            run::code(*failed)
        }
        None if summary.failed() > 0 => ExitCode::FAILURE,
        None => ExitCode::SUCCESS,
    }
}

/// `--workspace` would overrule a `-p` before the second `--`.
fn names_a_package(extra: &[String]) -> bool {
    extra.iter().take_while(|word| *word != "--").any(|word| {
        word == "--package"
            || word.starts_with("--package=")
            || (word.starts_with("-p") && !word.starts_with("--"))
    })
}

/// Copies the output unchanged, byte for byte, and counts as it goes.
fn copy(output: impl io::Read, summary: &mut Summary) -> io::Result<()> {
    let mut output = BufReader::new(output);
    let mut stdout = io::stdout().lock();
    let mut line = Vec::new();
    while output.read_until(b'\n', &mut line)? > 0 {
        stdout.write_all(&line)?;
        stdout.flush()?;
        summary.line(&String::from_utf8_lossy(&line));
        line.clear();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_models_have_their_own_build_and_flags() {
        let models = models();
        assert_eq!(
            run::text(&models).split_once(' ').map(|(_, rest)| rest),
            Some(
                "test -p ordid-core --lib --release --locked \
                 --config profile.release.package.\"*\".opt-level=0 \
                 --config profile.release.package.generator.opt-level=3 \
                 --config profile.release.package.loom.opt-level=3 --target-dir target/loom \
                 generator::engine::model"
            )
        );
        let flags = models.get_envs().find(|(name, _)| *name == "RUSTFLAGS");
        assert_eq!(
            flags.and_then(|(_, flags)| flags),
            Some("--cfg loom".as_ref())
        );
    }

    #[test]
    fn benches_without_tests_are_not_built() {
        let packages = benches_with_tests().expect("readable");
        assert!(packages.contains(&"bench-common".to_owned()));
        assert!(packages.contains(&"bench-generate".to_owned()));
        assert!(!packages.contains(&"bench-orms".to_owned()));
    }

    #[test]
    fn a_package_replaces_the_workspace() {
        let named = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            names_a_package(&words)
        };
        assert!(named(&["-p", "ordid"]));
        assert!(named(&["-pordid"]));
        assert!(named(&["--lib", "--package=ordid"]));
        assert!(!named(&["--profile", "dev"]));
        assert!(!named(&["--", "-p"]));
        assert!(!named(&[]));
    }
}
