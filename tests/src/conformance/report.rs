//! The matrix as tables, one an engine.

use std::{fs, io, path::Path};

use ordid::scheme::catalogue::CATALOGUE;

use super::{Cell, Engine};

const BEGIN: &str = "<!-- conformance: begin -->\n";
const END: &str = "<!-- conformance: end -->";

/// Returns the matrix in Markdown, in the catalogue's order: schemes that fare alike share a row.
pub fn tables(cells: &[Cell], is_asked: impl Fn(Engine) -> bool) -> String {
    let mut text = String::new();
    for engine in Engine::ALL {
        let cells: Vec<_> = cells.iter().filter(|cell| cell.engine == engine).collect();
        let mut columns: Vec<&str> = Vec::new();
        let mut schemes: Vec<&str> = Vec::new();
        for cell in &cells {
            if !columns.contains(&cell.column) {
                columns.push(cell.column);
            }
            if !schemes.contains(&cell.scheme) {
                schemes.push(cell.scheme);
            }
        }
        let place = |scheme: &&str| CATALOGUE.iter().position(|entry| entry.name == *scheme);
        schemes.sort_by_key(place);
        let entry = |scheme: &str, column: &str| {
            let mut cells = cells.iter();
            let cell = cells.find(|cell| cell.scheme == scheme && cell.column == column);
            match cell {
                None => "",
                Some(cell) if cell.is_ordered => cell.proof(is_asked(engine)).text(),
                Some(_) => "refused",
            }
        };
        let mut rows: Vec<(Vec<&str>, Vec<&str>)> = Vec::new();
        for scheme in schemes {
            let entries: Vec<_> = columns.iter().map(|column| entry(scheme, column)).collect();
            match rows.iter_mut().find(|(_, other)| *other == entries) {
                Some((alike, _)) => alike.push(scheme),
                None => rows.push((vec![scheme], entries)),
            }
        }
        text += &format!("\n### {}\n\n| scheme |", engine.name());
        for column in &columns {
            text += &format!(" `{column}` |");
        }
        text += &format!("\n|---|{}\n", "---|".repeat(columns.len()));
        for (schemes, entries) in rows {
            let schemes: Vec<_> = schemes.iter().map(|name| format!("`{name}`")).collect();
            text += &format!("| {} | {} |\n", schemes.join(", "), entries.join(" | "));
        }
    }
    text
}

/// Returns what stands between the marks of a document, and what is around it.
fn parts(document: &str) -> Option<[&str; 3]> {
    let (before, rest) = document.split_once(BEGIN)?;
    let (table, after) = rest.split_once(END)?;
    Some([before, table, after])
}

/// Writes the tables between the marks of a document, and returns whether that changed it.
///
/// # Errors
///
/// If the document cannot be read or written, or has no marks.
pub fn write(document: &Path, tables: &str) -> io::Result<bool> {
    let text = fs::read_to_string(document)?;
    let Some([before, old, after]) = parts(&text) else {
        let path = document.display();
        return Err(io::Error::other(format!(
            "{path} has no marks `{}`",
            BEGIN.trim_end()
        )));
    };
    if old == tables {
        return Ok(false);
    }
    fs::write(document, format!("{before}{BEGIN}{tables}{END}{after}"))?;
    Ok(true)
}
