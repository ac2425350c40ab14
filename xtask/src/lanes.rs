//! Side by side: checks of features, and programs of tests, those that wait beside those that compute.

use std::{
    collections::BTreeSet,
    io::{self, BufRead, BufReader, PipeReader, Read as _},
    process::{Child, Command, ExitStatus},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use serde_json::Value;

use crate::{
    run::{self, Result},
    summary::Summary,
};

/// The programs that wait most of their time: for servers, locks and time-outs. Beside them the others compile.
const WAITING: [&str; 3] = ["coordination", "faults", "live"];

/// A check, and what is printed above what it prints.
pub(crate) struct Step {
    pub(crate) heading: String,
    pub(crate) command: Command,
}

impl Step {
    pub(crate) fn new(heading: impl Into<String>, command: Command) -> Self {
        Self {
            heading: heading.into(),
            command,
        }
    }
}

/// Runs each lane's checks one after the other, the lanes side by side, up to the first that fails. The output of each is
/// printed once it has ended.
pub(crate) fn succeed(lanes: [Vec<Step>; 2]) -> Result<()> {
    let has_failed = AtomicBool::new(false);
    let one = |steps: Vec<Step>| -> Result<()> {
        for mut step in steps {
            if has_failed.load(Ordering::Relaxed) {
                break;
            }
            if let Err(error) = succeed_quietly(&mut step) {
                has_failed.store(true, Ordering::Relaxed);
                return Err(error);
            }
        }
        Ok(())
    };
    let [first, second] = lanes;
    thread::scope(|scope| {
        let first = scope.spawn(|| one(first));
        let second = one(second);
        let first = first.join();
        first
            .map_err(|_| "a lane of checks panicked".to_owned())?
            .and(second)
    })
}

fn succeed_quietly(step: &mut Step) -> Result<()> {
    let (child, mut output) = spawn(&mut step.command)?;
    let mut printed = Vec::new();
    output.read_to_end(&mut printed).map_err(cannot_copy)?;
    let text = String::from_utf8_lossy(&printed);
    show(&format!("== {}\n{}", step.heading, text.trim_end()));
    let status = wait(child, &step.command)?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("`{}` failed ({status})", run::text(&step.command))),
    }
}

/// Starts a command with one pipe for all that it prints, so that the lines stand in their order.
fn spawn(command: &mut Command) -> Result<(Child, PipeReader)> {
    let (output, writer) = io::pipe().map_err(cannot_copy)?;
    command.stdout(writer.try_clone().map_err(cannot_copy)?);
    command.stderr(writer);
    let child = command.spawn();
    // The command has ends of the pipe of its own, without which the output would not end.
    command.stdout(io::stdout()).stderr(io::stderr());
    let child = child.map_err(|error| run::cannot_run(command, &error))?;
    Ok((child, output))
}

fn wait(mut child: Child, command: &Command) -> Result<ExitStatus> {
    let status = child.wait();
    status.map_err(|error| run::cannot_run(command, &error))
}

fn cannot_copy(error: io::Error) -> String {
    format!("cannot copy the output: {error}")
}

/// The arguments of `cargo test` that choose the programs of the one lane and of the other. Each integration
/// test is asked for by its name, since cargo leaves out those that nobody names and whose features are off.
pub(crate) fn selections() -> Result<[Vec<String>; 2]> {
    let mut names = test_names(&run::metadata(&[])?)
        .ok_or_else(|| "`cargo metadata` wrote an unknown form".to_owned())?;
    let waiting = WAITING.map(str::to_owned);
    for name in &waiting {
        if !names.remove(name) {
            return Err(format!("no package has a test program `{name}`"));
        }
    }
    let mut others = vec!["--lib".to_owned(), "--bins".to_owned()];
    others.extend(by_name(names));
    Ok([by_name(waiting), others])
}

fn by_name(names: impl IntoIterator<Item = String>) -> Vec<String> {
    let named = |name| ["--test".to_owned(), name];
    names.into_iter().flat_map(named).collect()
}

/// The names of the integration tests of the workspace. Packages share some of them.
fn test_names(metadata: &Value) -> Option<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for package in metadata.get("packages")?.as_array()? {
        for target in package.get("targets")?.as_array()? {
            let kinds = target.get("kind")?.as_array()?;
            if kinds.iter().any(|kind| kind == "test") {
                names.insert(target.get("name")?.as_str()?.to_owned());
            }
        }
    }
    Some(names)
}

/// Runs each lane's commands one after the other, the lanes side by side, and returns how they ended. The output
/// of a program is printed once it has ended, so that no other's stands in between.
pub(crate) fn run(lanes: [Vec<Command>; 2], summary: &mut Summary) -> Result<Vec<ExitStatus>> {
    let summary = Mutex::new(summary);
    let one = |commands: Vec<Command>| -> Result<Vec<ExitStatus>> {
        let counted = commands.into_iter().map(|mut command| {
            show(&format!("running `{}`", run::text(&command)));
            count(&mut command, &summary)
        });
        counted.collect()
    };
    let [first, second] = lanes;
    let (first, second) = thread::scope(|scope| {
        let first = scope.spawn(|| one(first));
        let second = one(second);
        (first.join(), second)
    });
    let mut ended = first.map_err(|_| "a lane of tests panicked".to_owned())??;
    ended.extend(second?);
    Ok(ended)
}

fn count(command: &mut Command, summary: &Mutex<&mut Summary>) -> Result<ExitStatus> {
    let (child, output) = spawn(command)?;
    let mut program = Program::default();
    let mut output = BufReader::new(output);
    let mut line = Vec::new();
    while output.read_until(b'\n', &mut line).map_err(cannot_copy)? > 0 {
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end();
        if begins_a_program(text) {
            program.end(summary);
            show(text);
        }
        program.lines.push(text.to_owned());
        line.clear();
    }
    program.end(summary);

    let status = wait(child, command)?;
    if !status.success() {
        show(&format!("`{}` failed ({status})", run::text(command)));
    }
    Ok(status)
}

/// Returns whether cargo prints this line before it runs a program or the tests of a documentation.
fn begins_a_program(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("Running ") || line.starts_with("Doc-tests ")
}

/// What a program printed, and before it cargo.
#[derive(Default)]
struct Program {
    lines: Vec<String>,
}

impl Program {
    fn end(&mut self, summary: &Mutex<&mut Summary>) {
        let lines = std::mem::take(&mut self.lines);
        let mut summary = summary.lock().unwrap_or_else(PoisonError::into_inner);
        for line in &lines {
            summary.line(line);
        }
        if let Some(program) = has_no_test(&lines) {
            summary.fail(&program, "it has no test, with the features that are on");
        }
        show(&lines.join("\n"));
    }
}

/// Returns the name of an integration test without a single test: all of it is for a feature that is off.
fn has_no_test(lines: &[String]) -> Option<String> {
    let name = lines.first()?.trim_start().strip_prefix("Running tests/")?;
    let is_empty = lines.iter().any(|line| line == "running 0 tests");
    is_empty.then(|| format!("tests/{name}"))
}

/// Prints at once. Each call's text stands together.
#[expect(
    clippy::print_stdout,
    reason = "the output of tests is what one runs them for"
)]
fn show(text: &str) {
    println!("{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_integration_test_is_in_one_lane() {
        let [waiting, others] = selections().expect("the workspace has them");
        assert_eq!(
            waiting,
            [
                "--test",
                "coordination",
                "--test",
                "faults",
                "--test",
                "live"
            ]
        );
        assert!(others.starts_with(&["--lib".to_owned(), "--bins".to_owned()]));
        let all = test_names(&run::metadata(&[]).expect("runs")).expect("known");
        let named = |lane: &[String]| lane.iter().filter(|word| *word == "--test").count();
        assert_eq!(named(&waiting) + named(&others), all.len());
    }

    #[test]
    fn lanes_run_side_by_side_and_their_programs_stay_together() {
        // Each lane goes on when the other one has begun.
        let folder = std::env::temp_dir().join(format!("ordid-lanes-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let lane = |mine: &str, other: &str| {
            let mut command = Command::new("sh");
            command.current_dir(&folder).args([
                "-c",
                &format!(
                    "echo '   Running tests/{mine}.rs (x)' >&2; touch {mine}; \
                 until test -e {other}; do sleep 0.01; done; \
                 echo 'test result: ok. 2 passed; 0 failed; 1 ignored'"
                ),
            ]);
            vec![command]
        };
        let mut summary = Summary::default();
        let ended = run([lane("a", "b"), lane("b", "a")], &mut summary);
        std::fs::remove_dir_all(&folder).expect("the folder goes");
        assert!(ended.expect("both run").iter().all(ExitStatus::success));
        assert_eq!(summary.to_string(), "4 passed, 0 failed, 2 skipped\n");
    }

    #[test]
    fn the_first_check_that_fails_ends_both_lanes() {
        let step = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            Step::new(script, command)
        };
        let folder = std::env::temp_dir().join(format!("ordid-checks-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let late = folder.join("late");
        let never = format!("touch {}", late.display());
        // The first lane waits until the second one has failed.
        let first = vec![step("sleep 0.5"), step(&never)];
        let ended = succeed([first, vec![step("exit 3")]]);
        let has_run = late.exists();
        let passed = succeed([vec![step(&never)], vec![step("true")]]);
        let runs = late.exists();
        std::fs::remove_dir_all(&folder).expect("the folder goes");
        assert!(ended.is_err_and(|it| it.contains("exit 3")) && !has_run);
        assert!(passed.is_ok() && runs);
    }

    #[test]
    fn a_program_without_a_test_fails() {
        let mut summary = Summary::default();
        let mut command = Command::new("sh");
        command.args([
            "-c",
            "echo '   Running tests/a.rs (x)'; echo 'running 0 tests'; \
             echo '   Running unittests src/lib.rs (x)'; echo 'running 0 tests'",
        ]);
        let ended = run([vec![command], Vec::new()], &mut summary).expect("it runs");
        assert!(ended.iter().all(ExitStatus::success));
        assert_eq!(summary.failed(), 1);
    }
}
