//! A CSV file whose columns are known by name, and errors that name file, line and column.

use std::{borrow::Cow, collections::HashMap, fmt::Display, hash::Hash, str::FromStr};

use csv::{ErrorKind, Reader, StringRecord};

use crate::error::{Context, Error};

/// A CSV file in memory.
pub(crate) struct CsvTable {
    name: String,
    reader: Reader<std::io::Cursor<Cow<'static, [u8]>>>,
    columns: Vec<&'static str>,
    /// Where each of `columns` is in the file.
    positions: Vec<usize>,
    record: StringRecord,
}

impl CsvTable {
    /// Reads the header. The columns have a space between them here; in the file they may come in any order,
    /// and others may stand between them.
    pub(crate) fn new(
        name: String,
        content: Cow<'static, [u8]>,
        columns: &'static str,
    ) -> Result<Self, Error> {
        let mut reader = Reader::from_reader(std::io::Cursor::new(content));
        let headers = reader.headers().map_err(|error| csv_error(&name, &error))?;
        let columns: Vec<_> = columns.split(' ').collect();
        let positions = columns
            .iter()
            .map(|column| {
                headers
                    .iter()
                    .position(|header| header == *column)
                    .ok_or(column)
            })
            .collect::<Result<_, _>>()
            .map_err(|column| Error::new(format_args!("{name}: no column \"{column}\"")))?;
        Ok(Self {
            name,
            reader,
            columns,
            positions,
            record: StringRecord::new(),
        })
    }

    /// Returns the next row.
    pub(crate) fn next(&mut self) -> Result<Option<Row<'_>>, Error> {
        match self.reader.read_record(&mut self.record) {
            Ok(true) => Ok(Some(Row {
                table: self,
                cell: 0,
            })),
            Ok(false) => Ok(None),
            Err(error) => Err(csv_error(&self.name, &error)),
        }
    }
}

fn csv_error(name: &str, error: &csv::Error) -> Error {
    let line = error
        .position()
        .map_or(String::new(), |at| format!(" line {}", at.line()));
    match error.kind() {
        ErrorKind::UnequalLengths {
            expected_len, len, ..
        } => Error::new(format_args!(
            "{name}{line}: {len} fields, expected {expected_len}"
        )),
        ErrorKind::Utf8 { err, .. } => Error::new(format_args!("{name}{line}: {err}")),
        _ => Error::new(format_args!("{name}: {error}")),
    }
}

/// A row, whose cells are taken one after the other in the order of the table's columns.
pub(crate) struct Row<'a> {
    table: &'a CsvTable,
    cell: usize,
}

impl<'a> Row<'a> {
    fn take(&mut self) -> &'a str {
        let position = self.table.positions.get(self.cell);
        self.cell += 1;
        position
            .and_then(|position| self.table.record.get(*position))
            .unwrap_or_default()
    }

    /// Returns an error that names the file and the line.
    pub(crate) fn error(&self, why: impl Display) -> Error {
        let line = self.table.record.position().map_or(0, csv::Position::line);
        Error::new(format_args!("{} line {line}: {why}", self.table.name))
    }

    /// Names also the cell that was taken last.
    fn cell_error(&self, found: &str, expected: impl Display) -> Error {
        let column = self.table.columns.get(self.cell - 1).unwrap_or(&"?");
        self.error(format_args!("{column} is {found:?}, expected {expected}"))
    }

    /// Takes a text.
    pub(crate) fn text(&mut self) -> Result<String, Error> {
        let found = self.take();
        // PostgreSQL's text holds every character but this one.
        if found.is_empty() || found.contains('\0') {
            return Err(self.cell_error(found, "a text"));
        }
        Ok(found.to_owned())
    }

    /// Takes a code by which rows refer to each other.
    pub(crate) fn code(&mut self) -> Result<&'a str, Error> {
        let found = self.take();
        if !(1..=16).contains(&found.len()) || !found.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(self.cell_error(found, "a code of 1 to 16 ASCII characters"));
        }
        Ok(found)
    }

    /// Takes a whole number.
    pub(crate) fn number(&mut self) -> Result<i16, Error> {
        let found = self.take();
        found
            .parse()
            .map_err(|_| self.cell_error(found, "a whole number from -32768 to 32767"))
    }

    /// Takes a number of degrees.
    pub(crate) fn degrees(&mut self) -> Result<f64, Error> {
        let found = self.take();
        // `NaN` and `inf` are numbers to Rust, but not to every database.
        match f64::from_str(found) {
            Ok(degrees) if degrees.abs() <= 180.0 => Ok(degrees),
            _ => Err(self.cell_error(found, "a number from -180 to 180")),
        }
    }

    /// Takes a point in time, and returns it as text of one form.
    pub(crate) fn time(&mut self) -> Result<String, Error> {
        let found = self.take();
        match found.parse::<jiff::Timestamp>() {
            Ok(time) => Ok(time.to_string()),
            Err(_) => Err(self.cell_error(found, "a time such as 2013-01-01T10:00:00Z")),
        }
    }

    /// Takes what may be missing: `NA`, or nothing at all.
    pub(crate) fn optional<T>(
        &mut self,
        take: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        let cell = self.cell;
        if matches!(self.take(), "" | "NA") {
            return Ok(None);
        }
        self.cell = cell;
        take(self).map(Some)
    }
}

/// The keys of a table's rows by their natural code.
pub(crate) struct Codes<K> {
    keys: HashMap<String, K>,
}

impl<K: Copy + Eq + Hash> Codes<K> {
    pub(crate) fn new() -> Self {
        Self {
            keys: HashMap::new(),
        }
    }

    /// Remembers the key of a row.
    pub(crate) fn insert(&mut self, row: &Row<'_>, code: &str, key: K) -> Result<(), Error> {
        match self.keys.insert(code.to_owned(), key) {
            None => Ok(()),
            Some(_) => Err(row.error(format_args!("a second row for {code:?}"))),
        }
    }

    pub(crate) fn get(&self, code: &str) -> Option<K> {
        self.keys.get(code).copied()
    }
}

/// Takes one file out of a ZIP archive.
pub(crate) fn unzip(archive: &[u8], member: &str, name: &str) -> Result<Vec<u8>, Error> {
    let what = format_args!("cannot read {member} in {name}");
    let mut archive = zip::ZipArchive::new(std::io::Cursor::new(archive)).context(what)?;
    let mut file = archive.by_name(member).context(what)?;
    let mut content = Vec::new();
    std::io::Read::read_to_end(&mut file, &mut content).context(what)?;
    Ok(content)
}
