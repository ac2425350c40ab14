//! The records of a journal.
//!
//! ```text
//! 1  unit      MessagePack: version, [id, [[schema, table, [column, ..], [inserts, updates, deletes]], ..]]
//! 2  rows      table: u32 | list: u8 | length: u32 | row | length | row ..  numbers: little-endian
//! 3  attempt   from here on the rows may be in the database
//! 4  settled   from here on they are known not to be, until the next attempt
//! 5  asking    an attempt that has sent nothing yet: a record 3 or 6 follows before it sends rows
//! 6  marked    the same as 3, for an attempt that also writes a marker row
//! 7  chunk     number: u64 | start: u64 | end: u64 | outline: u64 | begun: u64
//!              the same as 6, for the rows from `start` to `end` of the plan: those before are committed.
//!              `begun`, in ms since 1970, is the time of its marker row; without it, that of the unit
//! 8  dropped   the unit behind the one that is pending was not sent, and never will be
//! ```
//!
//! A unit of work is one unit record, its rows in records of about 64 KiB, and at least one attempt (3, 5, 6 or 7). It is
//! pending from the first attempt on. A unit without an attempt was not sent and is ignored. A second unit replaces the
//! first, unless the first one is resumed: then the second one is dropped, and the attempts behind that are of the first.
//! Lists are 0 for the rows to insert, 1 to update, 2 to delete, 3 to update in some columns, 4 to upsert.
//!
//! A row is MessagePack as serde writes it, a struct with the names of its fields. It is what an
//! entity was *and* how serde wrote it, so fields may be added and left out as serde allows. Of the
//! self-describing formats this one preserves the most: `null` in JSON, each bit of a NaN, 128-bit
//! integers, bytes. For a row to delete the record has the key, as the raw key's bytes, the foreign
//! keys, each with its column, and the number of its version, if it has one. A row to update in some
//! columns stands behind an array of their names. One to upsert stands behind the names of the columns
//! by which it is found, those of the columns that are written where it is, and whether nobody wants to know what became
//! of it.

use serde_core::{Deserialize, Serialize, de::DeserializeOwned};

use super::super::{Table, in_chunks::PlanChunk};
use ordid_core::{Error, key::KeyBytes};

/// The form described above. In version 1, an upsert did not say whether it is unreported.
const VERSION: u32 = 2;

const UNIT: u8 = 1;
const ROWS: u8 = 2;
pub(super) const ATTEMPT: [u8; 1] = [3];
pub(super) const SETTLED: [u8; 1] = [4];
pub(super) const ASKING: [u8; 1] = [5];
pub(super) const MARKED: [u8; 1] = [6];
const CHUNK: u8 = 7;
pub(super) const DROPPED: [u8; 1] = [8];

/// A record of rows that has this many bytes takes no further row.
const FULL: usize = 64 * 1024;

/// Appends a value.
pub(super) fn encode<T: Serialize + ?Sized>(value: &T, to: &mut Vec<u8>) -> Result<(), String> {
    rmp_serde::encode::write_named(to, value).map_err(|error| error.to_string())
}

pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    rmp_serde::from_slice(bytes).map_err(|error| error.to_string())
}

/// What a flush does with a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum List {
    Inserts = 0,
    Updates = 1,
    Deletes = 2,
    /// Those of the updates that are of some columns.
    Columns = 3,
    /// Those of the updates that are upserts.
    Upserts = 4,
}

impl List {
    pub(super) const ALL: [Self; 5] = [
        Self::Inserts,
        Self::Updates,
        Self::Deletes,
        Self::Columns,
        Self::Upserts,
    ];
}

/// A row to delete: its key, its foreign keys by their columns, and its version.
pub(super) type Deleted = (Vec<u8>, Vec<(String, Vec<u8>)>, Option<i128>);

pub(super) fn key_bytes(bytes: &[u8]) -> Result<KeyBytes, Error> {
    KeyBytes::from_slice(bytes).ok_or_else(|| unknown("a key"))
}

/// A unit of work without its rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unit {
    pub(super) id: u128,
    pub(super) tables: Vec<UnitTable>,
}

/// A table of a unit of work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UnitTable {
    pub(super) schema: Option<String>,
    pub(super) name: String,
    pub(super) columns: Vec<String>,
    /// The rows to insert, to update, to delete.
    pub(super) rows: [usize; 3],
}

type UnitForm = (u128, Vec<(Option<String>, String, Vec<String>, [usize; 3])>);

/// Returns the rows to insert, to update, to delete.
pub(super) fn rows_of(table: &Table) -> [usize; 3] {
    [table.rows(), table.updates(), table.deletes()]
}

impl UnitTable {
    pub(super) fn of(table: &Table) -> Self {
        Self {
            schema: table.schema().map(str::to_owned),
            name: table.name().to_owned(),
            columns: table
                .columns()
                .iter()
                .map(|&name| name.to_owned())
                .collect(),
            rows: rows_of(table),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.rows.iter().sum()
    }

    pub(super) fn is(&self, table: &Table) -> bool {
        self.schema.as_deref() == table.schema() && self.name == table.name()
    }

    /// Returns whether the columns are the same, in any order: rows have the names of their fields.
    pub(super) fn has_columns_of(&self, table: &Table) -> bool {
        let mut recorded: Vec<&str> = self.columns.iter().map(String::as_str).collect();
        let mut present = table.columns().to_vec();
        recorded.sort_unstable();
        present.sort_unstable();
        recorded == present
    }
}

impl Unit {
    pub(super) fn len(&self) -> usize {
        self.tables.iter().map(UnitTable::len).sum()
    }

    pub(super) fn to_record(&self) -> Result<Vec<u8>, Error> {
        let tables = self.tables.iter().map(|table| {
            let UnitTable {
                schema,
                name,
                columns,
                rows,
            } = table.clone();
            (schema, name, columns, rows)
        });
        let form: UnitForm = (self.id, tables.collect());
        let mut record = vec![UNIT];
        let written = encode(&VERSION, &mut record).and_then(|()| encode(&form, &mut record));
        written.map_err(|error| {
            Error::journal(format!(
                "a unit of work cannot be written to the journal: {error}"
            ))
        })?;
        Ok(record)
    }
}

/// A record that was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Record<'a> {
    Unit(Unit),
    Rows(usize, List, Rows<'a>),
    Attempt,
    Settled,
    Asking,
    Marked,
    Chunk(PlanChunk),
    Dropped,
}

/// Writes the record of an attempt to send a chunk.
pub(super) fn chunk_record(chunk: &PlanChunk) -> Vec<u8> {
    let number = |it: usize| u64::try_from(it).expect("a number of rows has at most 64 bits");
    let PlanChunk { rows, .. } = chunk;
    let numbers = [
        chunk.number,
        number(rows.start),
        number(rows.end),
        chunk.outline,
    ];
    let mut record = vec![CHUNK];
    let numbers = numbers.into_iter().chain(chunk.begun);
    record.extend(numbers.flat_map(u64::to_le_bytes));
    record
}

fn parse_chunk(bytes: &[u8]) -> Option<PlanChunk> {
    let (numbers, rest) = bytes.as_chunks();
    let [number, start, end, outline, begun @ ..] = numbers else {
        return None;
    };
    let begun = match begun {
        [] => None,
        [begun] => Some(u64::from_le_bytes(*begun)),
        _ => return None,
    };
    let row = |bytes: &[u8; 8]| usize::try_from(u64::from_le_bytes(*bytes)).ok();
    let rows = row(start)?..row(end)?;
    (rest.is_empty() && !rows.is_empty()).then(|| PlanChunk {
        number: u64::from_le_bytes(*number),
        rows,
        outline: u64::from_le_bytes(*outline),
        begun,
    })
}

impl<'a> Record<'a> {
    pub(super) fn parse(record: &'a [u8]) -> Result<Self, Error> {
        let parsed = match record {
            [UNIT, unit @ ..] => Self::parse_unit(unit),
            [ROWS, rows @ ..] => rows.split_first_chunk().and_then(|(table, rows)| {
                let table = usize::try_from(u32::from_le_bytes(*table)).ok()?;
                let (list, rows) = rows.split_first()?;
                let list = List::ALL.into_iter().find(|it| *it as u8 == *list)?;
                Some(Self::Rows(table, list, Rows(rows)))
            }),
            [CHUNK, chunk @ ..] => parse_chunk(chunk).map(Self::Chunk),
            _ if record == ATTEMPT => Some(Self::Attempt),
            _ if record == SETTLED => Some(Self::Settled),
            _ if record == ASKING => Some(Self::Asking),
            _ if record == MARKED => Some(Self::Marked),
            _ if record == DROPPED => Some(Self::Dropped),
            _ => None,
        };
        parsed.ok_or_else(|| unknown("a record"))
    }

    fn parse_unit(bytes: &[u8]) -> Option<Self> {
        let mut reader = rmp_serde::Deserializer::from_read_ref(bytes);
        let version = u32::deserialize(&mut reader).ok()?;
        if !(1..=VERSION).contains(&version) {
            return None;
        }
        let (id, tables) = UnitForm::deserialize(&mut reader).ok()?;
        let tables = tables
            .into_iter()
            .map(|(schema, name, columns, rows)| UnitTable {
                schema,
                name,
                columns,
                rows,
            });
        Some(Self::Unit(Unit {
            id,
            tables: tables.collect(),
        }))
    }
}

/// The error for contents that this version does not write.
pub(super) fn unknown(what: &str) -> Error {
    Error::journal(format!(
        "{what} in the journal has an unknown form: another version of ordid wrote it, or it is no \
         journal of units of work"
    ))
}

/// The rows of a record, as bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rows<'a>(&'a [u8]);

impl<'a> Iterator for Rows<'a> {
    type Item = Result<&'a [u8], Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let row = self.0.split_first_chunk().and_then(|(length, rest)| {
            let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
            rest.split_at_checked(length)
        });
        Some(match row {
            Some((row, rest)) => {
                self.0 = rest;
                Ok(row)
            }
            None => {
                self.0 = &[];
                Err(unknown("a row"))
            }
        })
    }
}

/// Puts the rows of a list of a table into records.
pub(super) struct RowRecords<'a> {
    append: &'a mut dyn FnMut(&[u8]) -> Result<(), Error>,
    record: Vec<u8>,
    /// The bytes before the first row.
    head: usize,
}

impl<'a> RowRecords<'a> {
    pub(super) fn new(
        table: usize,
        list: List,
        append: &'a mut dyn FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let table = u32::try_from(table).map_err(|_| unknown("a table's number"))?;
        let mut record = vec![ROWS];
        record.extend(table.to_le_bytes());
        record.push(list as u8);
        Ok(Self {
            append,
            head: record.len(),
            record,
        })
    }

    /// Adds a row, and returns it as it was written.
    pub(super) fn add<T: Serialize>(&mut self, row: &T) -> Result<&[u8], String> {
        let start = self.record.len();
        let begin = start + size_of::<u32>();
        self.record.resize(begin, 0);
        encode(row, &mut self.record)?;
        let length = u32::try_from(self.record.len() - begin)
            .map_err(|_| "it has more than 4 GiB".to_owned())?;
        self.record[start..begin].copy_from_slice(&length.to_le_bytes());
        Ok(&self.record[begin..])
    }

    /// Must be called after each row: returns the record if it is full.
    pub(super) fn end_row(&mut self) -> Result<(), Error> {
        if self.record.len() >= FULL {
            self.hand_over()?;
        }
        Ok(())
    }

    pub(super) fn end(mut self) -> Result<(), Error> {
        if self.record.len() > self.head {
            self.hand_over()?;
        }
        Ok(())
    }

    fn hand_over(&mut self) -> Result<(), Error> {
        (self.append)(&self.record)?;
        self.record.truncate(self.head);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_record_of_a_chunk_is_read_as_it_was_written_with_a_time_or_without() {
        for begun in [Some(1_763_000_000_000), None] {
            let chunk = PlanChunk {
                number: 7,
                rows: 3_000..6_000,
                outline: u64::MAX,
                begun,
            };
            let record = chunk_record(&chunk);
            let length = if begun.is_some() { 41 } else { 33 };
            assert_eq!(record.len(), length);
            let cut = &record[..record.len() - 1];
            assert!(Record::parse(cut).is_err());
            assert!(Record::parse(&[&record[..], &[0; 16]].concat()).is_err());
            assert_eq!(Record::parse(&record), Ok(Record::Chunk(chunk)));
        }
    }
}
