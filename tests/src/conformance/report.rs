//! The matrix as tables, one an engine.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use ordid::scheme::catalogue::CATALOGUE;

use super::{Cell, Engine};

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

/// Writes tables into `PLATFORM.md`, between marks of this name, and returns whether that changed it.
///
/// # Errors
///
/// If the document cannot be read or written, or has no such marks.
pub fn write(name: &str, tables: &str) -> io::Result<bool> {
    let [begin, end] = [
        format!("<!-- {name}: begin -->\n"),
        format!("<!-- {name}: end -->"),
    ];
    let document = document();
    let text = fs::read_to_string(&document)?;
    let parts = text.split_once(&begin).and_then(|(before, rest)| {
        let (old, after) = rest.split_once(&end)?;
        Some((before, old, after))
    });
    let Some((before, old, after)) = parts else {
        let path = document.display();
        return Err(io::Error::other(format!("{path} has no marks `{name}`")));
    };
    if old == tables {
        return Ok(false);
    }
    fs::write(&document, format!("{before}{begin}{tables}{end}{after}"))?;
    Ok(true)
}

/// Demands that `PLATFORM.md` has these tables; `remedy` is the command that writes them.
///
/// # Errors
///
/// If it has not, or cannot be read.
pub fn is_written(tables: &str, remedy: &str) -> Result<(), String> {
    let text = fs::read_to_string(document()).map_err(|error| error.to_string())?;
    match text.contains(tables) {
        true => Ok(()),
        false => Err(format!(
            "run `{remedy}`: PLATFORM.md does not have this:\n{tables}"
        )),
    }
}

fn document() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../PLATFORM.md")
}
