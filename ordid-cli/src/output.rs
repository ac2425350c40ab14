//! Writes to stdout: text, or JSON.

use std::io::{self, BufWriter, IsTerminal as _, StdoutLock, Write};

use clap::ValueEnum;
use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;

use crate::failure::Failure;

/// Whether text is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// How a piece of text stands out on a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// A heading.
    Bold,
    /// A text that matters less.
    Dim,
    /// Good news.
    Good,
    /// A text that deserves a look.
    Warning,
    /// Bad news.
    Bad,
}

impl Style {
    const fn code(self) -> &'static str {
        match self {
            Self::Bold => "1",
            Self::Dim => "2",
            Self::Good => "32",
            Self::Warning => "33",
            Self::Bad => "31",
        }
    }
}

/// The standard output, buffered.
pub(crate) struct Output {
    is_json: bool,
    is_colored: bool,
    out: BufWriter<StdoutLock<'static>>,
}

impl Output {
    /// Opens it.
    pub(crate) fn new(is_json: bool, color: Color) -> Self {
        let stdout = io::stdout();
        let asks_for_none = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let is_colored = match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => stdout.is_terminal() && !asks_for_none,
        };
        Self {
            is_json,
            is_colored: is_colored && !is_json,
            out: BufWriter::with_capacity(1 << 16, stdout.lock()),
        }
    }

    /// Whether the user wants JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.is_json
    }

    /// Returns the text in a style, if text is coloured.
    pub(crate) fn paint(&self, style: Style, text: &str) -> String {
        match self.is_colored {
            true => format!("\x1b[{}m{text}\x1b[0m", style.code()),
            false => text.to_owned(),
        }
    }

    /// Writes a line of text.
    pub(crate) fn line(&mut self, line: &str) -> Result<(), Failure> {
        self.out.write_all(line.as_bytes())?;
        Ok(self.out.write_all(b"\n")?)
    }

    /// Writes a table, without space at the ends of its lines.
    pub(crate) fn table(&mut self, table: &Table) -> Result<(), Failure> {
        table
            .lines()
            .try_for_each(|line| self.line(line.trim_end()))
    }

    /// Writes a text as it is.
    pub(crate) fn text(&mut self, text: &str) -> Result<(), Failure> {
        Ok(self.out.write_all(text.as_bytes())?)
    }

    /// Writes bytes of a text as they are.
    pub(crate) fn bytes(&mut self, text: &[u8]) -> Result<(), Failure> {
        Ok(self.out.write_all(text)?)
    }

    /// Writes a document of JSON, on several lines.
    pub(crate) fn json(&mut self, document: &impl Serialize) -> Result<(), Failure> {
        serde_json::to_writer_pretty(&mut self.out, document).map_err(io::Error::from)?;
        Ok(self.out.write_all(b"\n")?)
    }

    /// Writes a document of JSON on one line: JSON Lines, for lists.
    pub(crate) fn json_line(&mut self, document: &impl Serialize) -> Result<(), Failure> {
        serde_json::to_writer(&mut self.out, document).map_err(io::Error::from)?;
        Ok(self.out.write_all(b"\n")?)
    }

    /// Writes what is buffered, before a pause or a question.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        Ok(self.out.flush()?)
    }

    /// Writes what is buffered, at the end.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        self.flush()
    }
}

/// Returns a text as a word of a shell's command.
pub(crate) fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+:@%".contains(c);
    match text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// Returns an empty table of the terminal's width, without lines.
pub(crate) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(header);
    if let Some(width) = terminal_width() {
        table.set_width(width);
    }
    table
}

/// Returns the columns of the terminal that is told by `COLUMNS`; none if stdout is no terminal, so that what is piped
/// does not depend on it.
fn terminal_width() -> Option<u16> {
    let width = std::env::var("COLUMNS").ok()?.parse().ok()?;
    io::stdout().is_terminal().then_some(width)
}
