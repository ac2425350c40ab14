//! `cargo xtask test` and `cargo xtask soak`.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, ExitCode, Stdio};

use crate::run::{self, Result};
use crate::servers::Servers;
use crate::summary::Summary;

/// Runs every test of the workspace.
pub(crate) fn test(extra: &[String]) -> Result<ExitCode> {
    run_tests(&mut run::cargo(&["test"]), extra)
}

/// Runs the long forms of the tests. `ORDID_TEST_SOAK` is what asks for them.
pub(crate) fn soak(extra: &[String]) -> Result<ExitCode> {
    println!("soak: the long forms of the tests (ORDID_TEST_SOAK=1), in a release build");
    run_tests(
        run::cargo(&["test", "--release"]).env("ORDID_TEST_SOAK", "1"),
        extra,
    )
}

fn run_tests(command: &mut Command, extra: &[String]) -> Result<ExitCode> {
    // One failure must not hide the others, nor leave them out of the count.
    command.args(["--locked", "--no-fail-fast"]);
    if !names_a_package(extra) {
        command.arg("--workspace");
    }
    command.args(extra);

    let servers = Servers::start()?;
    servers.export(command);
    println!("running `{}`", run::text(command));

    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| run::cannot_run(command, &error))?;
    let mut summary = Summary::default();
    if let Some(output) = child.stdout.take() {
        copy(output, &mut summary).map_err(|error| format!("cannot copy the output: {error}"))?;
    }
    let status = child
        .wait()
        .map_err(|error| run::cannot_run(command, &error))?;
    drop(servers);

    if !status.success() && summary.failed() == 0 {
        println!("\nnot every test ran to its end: see above ({status})");
    }
    print!("\n{summary}");
    Ok(run::code(status))
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
