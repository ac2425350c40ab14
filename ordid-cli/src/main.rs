//! The command `ordid`: makes and decodes ordered keys, examines live tables, and moves them to ordered keys.
//!
//! Each command is a file of [`commands`]. It parses its arguments, asks the library, and hands what it found to
//! [`output`], which writes text or JSON. [`failure`] has the exit codes. What a key, a scheme or a column is, `ordid-core`
//! decides; what is said to a database, `ordid-sql`.

#![forbid(unsafe_code)]

mod commands;
mod database;
mod engine;
mod external_sort;
mod failure;
mod input;
mod interrupt;
mod machine;
mod migration;
mod near;
mod output;
mod pooler;
mod progress;
mod report;
mod scheme;
mod spelling;
mod time;

use std::{
    borrow::Cow,
    io::{self, Write as _},
    process::ExitCode,
};

use clap::{
    Parser,
    error::{ContextKind, ContextValue, ErrorKind},
};

use commands::Command;
use failure::{COULD_NOT, Failure, WRONG_USE, without_password};
use output::{Color, Output};

/// Makes, decodes and converts ordered primary keys, examines live tables, and moves them to ordered keys.
#[derive(Parser)]
#[command(
    name = "ordid",
    version,
    after_help = "Exit codes: 0 fine, 1 there are findings, 2 wrong use, 3 it could not be done."
)]
struct Cli {
    /// Write JSON: one document, or one line for each key of a list
    #[arg(long, global = true)]
    json: bool,
    /// Whether text is coloured; `auto` asks the terminal and NO_COLOR
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    color: Color,
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let code = match error.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => 0,
                _ => WRONG_USE,
            };
            // If the stream is closed, there is nobody to tell.
            let text = error.render().to_string();
            let _ = match without_password(&text) {
                Cow::Borrowed(_) => error.print(),
                Cow::Owned(text) => write!(io::stderr(), "{text}"),
            };
            if let Some(hint) = hint(&error) {
                let _ = writeln!(io::stderr(), "\n{hint}");
            }
            return code.into();
        }
    };
    let mut output = Output::new(cli.json, cli.color);
    let outcome = cli.command.run(&mut output);
    match outcome.and_then(|outcome| output.finish().map(|()| outcome)) {
        Ok(outcome) => outcome.into(),
        Err(Failure::NoReader) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.tell();
            failure.code().into()
        }
    }
}

/// Returns what the message of clap leaves out.
fn hint(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let lacks_url = error.kind() == ErrorKind::MissingRequiredArgument
        && missing.iter().any(|it| it == "<URL>");
    lacks_url.then(|| {
        format!(
            "Name the database by its URL, or set {}.",
            database::VARIABLE
        )
    })
}

const _: () = assert!(WRONG_USE == 2 && COULD_NOT == 3, "clap's own code is 2");
