//! What was counted, as a table for a terminal and for a document.

use std::{fmt, fs, path::Path};

use bench_common::table::Table;

use crate::engine::Result;

/// What one case gave.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) name: String,
    /// Rows a second, over all rows and over the last tenth.
    pub(crate) rate: f64,
    pub(crate) last: f64,
    /// As many as the report has names for.
    pub(crate) figures: [f64; 3],
}

/// The cases of one engine.
pub(crate) struct Report {
    server: &'static str,
    version: String,
    names: [&'static str; 3],
    lines: Vec<Line>,
}

impl Report {
    pub(crate) fn new(server: &'static str, version: String, names: [&'static str; 3]) -> Self {
        Self {
            server,
            version,
            names,
            lines: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, line: Line) {
        self.lines.push(line);
    }

    /// Returns the figure of a case; `None` where it was not run.
    pub(crate) fn figure(&self, case: &str, figure: &str) -> Option<f64> {
        let position = self.names.iter().position(|name| *name == figure)?;
        let line = self.lines.iter().find(|line| line.name == case)?;
        Some(line.figures[position])
    }

    fn heading(&self) -> [&'static str; 6] {
        let [a, b, c] = self.names;
        ["key", a, b, c, "rows a second", "last tenth"]
    }

    /// Writes the table between the engine's marks in a document.
    pub(crate) fn write(&self, document: &Path) -> Result<()> {
        let text = fs::read_to_string(document)?;
        let (begin, end) = (
            format!("<!-- bench engines, {}: begin -->\n", self.server),
            format!("<!-- bench engines, {}: end -->", self.server),
        );
        let marks = text.split_once(&begin).and_then(|(before, rest)| {
            let (_, after) = rest.split_once(&end)?;
            Some((before, after))
        });
        let Some((before, after)) = marks else {
            let path = document.display();
            return Err(format!("{path} has no marks `{}`", begin.trim_end()).into());
        };
        let table = self.markdown();
        fs::write(document, format!("{before}{begin}{table}{end}{after}"))?;
        Ok(())
    }

    fn markdown(&self) -> String {
        let heading = self.heading();
        let mut text = format!("{}:\n\n", self.version);
        text += &format!("| {} |\n|---|{}\n", heading.join(" | "), "---|".repeat(5));
        for line in &self.lines {
            text += &format!("| {} |\n", line.cells().join(" | "));
        }
        text
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new(self.heading());
        for line in &self.lines {
            table.row(line.cells());
        }
        write!(f, "{table}")
    }
}

impl Line {
    fn cells(&self) -> [String; 6] {
        let [a, b, c] = self.figures.map(number);
        let (rate, last) = (number(self.rate), number(self.last));
        [self.name.clone(), a, b, c, rate, last]
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.cells().join("  "))
    }
}

/// Four digits or the whole number.
fn number(value: f64) -> String {
    if value < 1000.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_goes_between_its_marks() {
        let mut report = Report::new("sqlite", "SQLite 3".to_owned(), ["a", "b", "c"]);
        report.push(Line {
            name: "v7".to_owned(),
            rate: 123_456.7,
            last: 99.0,
            figures: [1.0, 2.0, 3.04],
        });
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("P.md");
        let (begin, end) = (
            "<!-- bench engines, sqlite: begin -->\n",
            "<!-- bench engines, sqlite: end -->",
        );
        fs::write(&path, format!("before\n{begin}old\n{end}\nafter\n")).expect("written");
        for _ in 0..2 {
            report.write(&path).expect("written");
            assert_eq!(
                fs::read_to_string(&path).expect("read"),
                format!(
                    "before\n{begin}SQLite 3:\n\n\
                     | key | a | b | c | rows a second | last tenth |\n\
                     |---|---|---|---|---|---|\n\
                     | v7 | 1.0 | 2.0 | 3.0 | 123457 | 99.0 |\n{end}\nafter\n"
                )
            );
        }
        assert_eq!(report.figure("v7", "c"), Some(3.04));
        assert_eq!(report.figure("v8", "c"), None);

        fs::write(&path, "no marks").expect("written");
        let error = report.write(&path).expect_err("no marks").to_string();
        assert!(error.contains("has no marks"), "{error}");
    }
}
