//! Prints every scheme with a fresh key, what the key says, what orders it and what breaks it.
//!
//! ```text
//! cargo run --release -p catalogue                  the table
//! cargo run --release -p catalogue -- --markdown    the table of the chapter "Choose a key"
//! cargo run --release -p catalogue -- --write FILE  the same, into this file
//! ```

use std::{fs, path::Path, process::ExitCode};

use comfy_table::{ColumnConstraint, ContentArrangement, Table, Width, presets};
use jiff::Timestamp as Instant;
use ordid::{
    Error, KeyType as _,
    key::scatter::Scatter,
    layout::{Comparison, Orders},
    scheme::{
        Inspection, UuidMask,
        catalogue::{CATALOGUE, Entry},
    },
    uuid::Uuid,
};

/// Who compares by a rule. The names are those of the guide's table.
const ENGINES: [(Comparison, &str); 4] = [
    (
        Comparison::Bytes,
        "PostgreSQL, MySQL, MariaDB, SQLite, Oracle",
    ),
    (Comparison::MariaDbUuid, "MariaDB UUID"),
    (Comparison::SqlServer, "SQL Server"),
    (Comparison::DotNetBytes, "Oracle and MySQL through .NET"),
];

/// Columns of the screen: what a wide terminal has.
const WIDTH: u16 = 160;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done: Result<(), Box<dyn std::error::Error>> = match &arguments[..] {
        [] => table().map_err(Into::into),
        [only] if only == "--markdown" => {
            out(&markdown());
            Ok(())
        }
        [only, file] if only == "--write" => write(Path::new(file)),
        _ => Err("the options are --markdown and --write FILE; `ordid inspect` reads keys".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = std::io::Write::write_fmt(
                &mut std::io::stderr(),
                format_args!("catalogue: {error}\n"),
            );
            ExitCode::FAILURE
        }
    }
}

/// Prints, and does not mind a reader who has seen enough.
fn out(text: &str) {
    let _ = std::io::Write::write_all(&mut std::io::stdout(), text.as_bytes());
}

/// Where keys of the scheme rise.
fn engines(orders: Option<Orders>) -> String {
    let Some(orders) = orders else {
        return "all, in a column of its type".to_owned();
    };
    let kept: Vec<&str> = ENGINES
        .iter()
        .filter(|(rule, _)| orders.contains(*rule))
        .map(|(_, name)| *name)
        .collect();
    if kept.is_empty() {
        "none".to_owned()
    } else {
        kept.join(", ")
    }
}

/// `2026-11-21T11:22:33.456Z, node 1, count 7`.
fn parts(inspection: &Inspection) -> String {
    let mut parts = Vec::new();
    if let Some(moment) = inspection.moment {
        parts.push(
            Instant::from_nanosecond(moment.unix_nanos)
                .map_or_else(|_| "a time out of range".to_owned(), |at| at.to_string()),
        );
    }
    if let Some(node) = inspection.node {
        parts.push(format!("node {node:x}"));
    }
    if let Some(counter) = inspection.counter {
        parts.push(format!("count {counter}"));
    }
    if let Some(version) = inspection.version {
        parts.push(format!("version {version}"));
    }
    if parts.is_empty() {
        "nothing".to_owned()
    } else {
        parts.join(", ")
    }
}

/// A fresh key and what it says, or why there is none.
fn fresh(entry: &'static Entry) -> (String, String) {
    match entry.make() {
        None => ("(only read)".to_owned(), String::new()),
        Some(Err(error)) => ("(none)".to_owned(), error.to_string()),
        Some(Ok(specimen)) => {
            let says = specimen.inspection.as_ref().map_or_else(String::new, parts);
            (specimen.text, says)
        }
    }
}

fn table() -> Result<(), Error> {
    let mut table = Table::new();
    table
        .load_style(presets::UTF8_HORIZONTAL_ONLY)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(WIDTH)
        .set_header([
            "scheme",
            "a fresh key, and what it says",
            "ordered by",
            "broken by",
            "keeps its order on",
            "unknown bits",
        ]);
    for entry in CATALOGUE {
        let (key, says) = fresh(entry);
        table.add_row([
            format!("{}\n{}", entry.name, entry.system),
            format!("{key}\n{says}"),
            entry.ordered_by.to_owned(),
            entry.broken_by.to_owned(),
            engines(entry.orders),
            entry.unknown_bits.to_string(),
        ]);
    }
    // A key is not broken over lines.
    let whole = ColumnConstraint::LowerBoundary(Width::Fixed(38));
    if let Some(keys) = table.column_mut(1) {
        keys.set_constraint(whole);
    }
    out(&format!("{table}\n\n"));
    around_a_key()
}

/// What can be put around a key of version 7.
fn around_a_key() -> Result<(), Error> {
    let key = Uuid::generate();
    let mask = UuidMask::new(0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210);
    let masked = mask.mask(&key)?;
    let scattered = Scatter::by_hash(16).scatter(key);
    let prefixed = TicketId::from_generated(ordid::key::Generated::check(key, "TicketId")?);
    out(&format!(
        "Around a key of version 7, {key}:\n  \
         TypeID      {prefixed}\n  \
         masked      {masked} (version 4 outside; back: {})\n  \
         scattered   {scattered} (bucket {} of 16, by hash)\n",
        mask.unmask(&masked)?,
        scattered.bucket()
    ));
    Ok(())
}

#[derive(ordid::KeyType)]
#[ordid(prefix = "ticket")]
struct TicketId(Uuid);

/// Puts the guide's table where a file has it.
fn write(file: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let text = fs::read_to_string(file)?;
    let begin = text.find(HEADING).ok_or("the file has no such table")?;
    let after = text[begin..].find("\n\n").map(|end| begin + end + 1);
    let after = &text[after.unwrap_or(text.len())..];
    fs::write(file, format!("{}{}{after}", &text[..begin], markdown()))?;
    Ok(())
}

/// The first line of the guide's table.
const HEADING: &str =
    "| scheme | system | ordered by | broken by | keeps its order on | unknown bits |\n";

/// The guide's table: what does not change from run to run.
fn markdown() -> String {
    let mut text = format!("{HEADING}|---|---|---|---|---|--:|\n");
    for entry in CATALOGUE {
        text += &format!(
            "| `{}` | {} | {} | {} | {} | {} |\n",
            entry.name,
            entry.system,
            entry.ordered_by,
            entry.broken_by,
            engines(entry.orders),
            entry.unknown_bits
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guide_has_the_table_that_this_prints() {
        let chapter = include_str!("../../../docs/src/choose-a-key.md");
        assert!(
            chapter.contains(&markdown()),
            "run `cargo xtask lists`: docs/src/choose-a-key.md does not have the table that the catalogue prints"
        );
    }
}
