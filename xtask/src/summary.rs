//! The count over all test binaries of a `cargo test`.

use std::fmt;

/// What the lines of output added up to so far.
#[derive(Default)]
pub(crate) struct Summary {
    passed: u64,
    failed: u64,
    skipped: u64,
    /// The ignored tests, each with its reason if the line had one.
    ignored: Vec<(String, Option<String>)>,
    /// The output of the failed tests, which is printed again at the end of the run.
    failures: Vec<String>,
    /// Whether the last line was output of failed tests.
    in_failures: bool,
    /// The number of lines of the current failed test.
    lines: usize,
}

/// The number of lines that are kept of a failed test. A test that runs a compiler may print thousands of lines, and
/// the reason is in the first ones.
const LINES_OF_A_FAILURE: usize = 80;

impl Summary {
    pub(crate) fn failed(&self) -> u64 {
        self.failed
    }

    /// Counts what was not even built.
    pub(crate) fn skip(&mut self, name: &str, reason: &str) {
        self.skipped += 1;
        self.ignored
            .push((name.to_owned(), Some(reason.to_owned())));
    }

    /// Counts what failed without a test that says so.
    pub(crate) fn fail(&mut self, name: &str, reason: &str) {
        self.failed += 1;
        self.failures.push(format!("{name}: {reason}"));
    }

    /// Takes in one line of output.
    pub(crate) fn line(&mut self, line: &str) {
        let line = plain(line);
        let line = line.trim_end();
        self.failure(line);
        if let Some(result) = line.strip_prefix("test result: ") {
            self.passed += number(result, " passed");
            self.failed += number(result, " failed");
            self.skipped += number(result, " ignored");
        } else if let Some(test) = line.strip_prefix("test ")
            && let Some((name, outcome)) = test.rsplit_once(" ... ignored")
        {
            self.ignored.push((name.trim().to_owned(), reason(outcome)));
        }
    }

    /// Keeps the line if a failed test printed it. A harness writes `failures:` before the output of the failed tests,
    /// and again before their names.
    fn failure(&mut self, line: &str) {
        if line == "failures:" {
            self.in_failures = !self.in_failures;
        } else if line.starts_with("test result: ") {
            self.in_failures = false;
        } else if self.in_failures && !line.is_empty() {
            let begins = line.starts_with("---- ") && line.ends_with(" ----");
            self.lines = if begins { 0 } else { self.lines + 1 };
            if self.lines < LINES_OF_A_FAILURE {
                self.failures.push(line.to_owned());
            }
        }
    }
}

/// The number right before a word.
fn number(result: &str, word: &str) -> u64 {
    let before = result.split_once(word).map_or("", |(before, _)| before);
    before
        .rsplit(' ')
        .next()
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

/// `, reason` is the form of the standard test harness, ` (reason)` that of libtest-mimic.
fn reason(outcome: &str) -> Option<String> {
    let reason = match outcome.strip_prefix(", ") {
        Some(reason) => reason,
        None => outcome.strip_prefix(" (")?.strip_suffix(')')?,
    };
    Some(reason.to_owned())
}

/// The line without colours.
fn plain(line: &str) -> String {
    let mut plain = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("\x1b[") {
        plain.push_str(before);
        rest = after
            .split_once(|c: char| c.is_ascii_alphabetic())
            .map_or("", |(_, rest)| rest);
    }
    plain + rest
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.ignored.is_empty() {
            writeln!(f, "skipped:")?;
            for (name, reason) in &self.ignored {
                match reason {
                    Some(reason) => writeln!(f, "    {name}: {reason}")?,
                    None => writeln!(f, "    {name}")?,
                }
            }
            writeln!(f)?;
        }
        if !self.failures.is_empty() {
            writeln!(f, "failed:")?;
            for line in &self.failures {
                writeln!(f, "    {line}")?;
            }
            writeln!(f)?;
        }
        writeln!(
            f,
            "{} passed, {} failed, {} skipped",
            self.passed, self.failed, self.skipped
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(output: &str) -> String {
        let mut summary = Summary::default();
        output.lines().for_each(|line| summary.line(line));
        summary.to_string()
    }

    #[test]
    fn results_add_up() {
        let output = "\
running 2 tests
test parse::text ... ok
test parse::bytes ... FAILED

test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

running 20 tests
test result: ok. 20 passed; 0 failed; 0 ignored; 0 measured; 7 filtered out
";
        assert_eq!(summary(output), "21 passed, 1 failed, 0 skipped\n");
    }

    #[test]
    fn what_failed_tests_printed_is_repeated() {
        let long = "a line\n".repeat(1_000);
        let output = format!(
            "\
running 3 tests
test a ... FAILED
test b ... FAILED
test c ... ok

failures:

---- a stdout ----

thread 'a' panicked at src/lib.rs:1:2:
assertion failed

---- b stdout ----
{long}

failures:
    a
    b

test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out
   Doc-tests ordid
test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out
"
        );
        let kept = "    a line\n".repeat(LINES_OF_A_FAILURE - 1);
        assert_eq!(
            summary(&output),
            format!(
                "failed:
    ---- a stdout ----
    thread 'a' panicked at src/lib.rs:1:2:
    assertion failed
    ---- b stdout ----
{kept}
2 passed, 2 failed, 0 skipped
"
            )
        );
    }

    #[test]
    fn ignored_tests_are_listed_with_their_reasons() {
        let output = "\
test slow ... ignored
test live ... ignored, set ORDID_TEST_MYSQL_URL to run: MySQL 8
test [mysql] order    ... ignored (named in ORDID_TEST_SKIP)
test src/lib.rs - order (line 3) ... ignored
test result: ok. 5 passed; 0 failed; 4 ignored; 0 measured; 0 filtered out; finished in 1.00s
";
        assert_eq!(
            summary(output),
            "skipped:
    slow
    live: set ORDID_TEST_MYSQL_URL to run: MySQL 8
    [mysql] order: named in ORDID_TEST_SKIP
    src/lib.rs - order (line 3)

5 passed, 0 failed, 4 skipped
"
        );
    }

    #[test]
    fn colours_do_not_matter() {
        let output = "test a ... \u{1b}[33mignored\u{1b}[0m\n\
                      test result: \u{1b}[32mok\u{1b}[m. 3 passed; 0 failed; 1 ignored; 0 measured\n";
        assert_eq!(
            summary(output),
            "skipped:\n    a\n\n3 passed, 0 failed, 1 skipped\n"
        );
    }

    #[test]
    fn nothing_ran() {
        assert_eq!(
            summary("error: could not compile\n"),
            "0 passed, 0 failed, 0 skipped\n"
        );
    }
}
