//! Tables that map UUIDs to integers: the queries, and their order. An adapter implements [`MappingDriver`]
//! and re-exports [`MappingTable`] under its own name.
//!
//! ```text
//! id         an integer that the database counts: the primary key
//! uuid       16 bytes
//! uuid_hash  CRC-32 of these bytes, 0 to 2^32 - 1
//!            UNIQUE (uuid_hash, uuid)
//! ```
//!
//! The hash is that of zlib and of MySQL's `CRC32()`, over the bytes in network order. It is computed
//! here because not every engine has the function. It is the first column of the index, so that a row is
//! found by four bytes, whatever the UUID's version. Some UUIDs share a hash of 32 bits, so the UUID is in
//! the index, too.
//!
//! Rows are read and inserted in the order of that index. Transactions that insert the same UUIDs at the
//! same time then wait for each other in one direction, and never in a circle.

use std::ops::Range;

use ordid_core::uuid::Uuid;

use ordid_core::{Error, spi::excerpt, storage::Dialect};

mod dialects;
mod driver;
mod error;
mod job;
mod table;

pub use crate::answer::Answer;
pub use driver::{MappingDialect, MappingDriver, MappingRow, Values};
pub use error::MappingError;
pub use table::{Mapping, MappingTable};

/// Returns the hash of a UUID: the CRC-32 of its bytes in network order, as zlib's and MySQL's `CRC32()`.
///
/// # Example
///
/// ```
/// use ordid_core::uuid::Uuid;
/// use ordid_sql::mapping::uuid_hash;
///
/// // SELECT CRC32(x'00000000000000000000000000000000')
/// assert_eq!(uuid_hash(Uuid::nil()), 3_971_697_493);
/// ```
pub fn uuid_hash(uuid: Uuid) -> u32 {
    crc32fast::hash(uuid.as_bytes())
}

/// A UUID with its hash, in the order of the table's index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    hash: u32,
    uuid: Uuid,
}

impl Entry {
    /// Computes the hash of a UUID.
    pub fn new(uuid: Uuid) -> Self {
        let hash = uuid_hash(uuid);
        Self { hash, uuid }
    }

    /// Returns the hash.
    pub fn hash(&self) -> u32 {
        self.hash
    }

    /// Returns the UUID.
    pub fn uuid(&self) -> Uuid {
        self.uuid
    }
}

/// The UUIDs to map, each once, in the order of the table's index, with the ids that are known so far.
#[derive(Debug)]
pub struct Batch {
    entries: Vec<Entry>,
    /// The index of each UUID's entry, in the caller's order.
    places: Vec<usize>,
    ids: Vec<Option<i64>>,
    /// Whether this batch inserted the entry.
    is_new: Vec<bool>,
}

impl Batch {
    /// Takes the UUIDs in the caller's order. It may contain duplicates.
    pub fn new(uuids: impl IntoIterator<Item = Uuid>) -> Self {
        let given = uuids.into_iter().enumerate();
        let mut given: Vec<_> = given.map(|(at, uuid)| (Entry::new(uuid), at)).collect();
        given.sort_unstable();
        let mut entries: Vec<Entry> = Vec::with_capacity(given.len());
        let mut places = vec![0; given.len()];
        for (entry, at) in given {
            if entries.last() != Some(&entry) {
                entries.push(entry);
            }
            places[at] = entries.len() - 1;
        }
        let ids = vec![None; entries.len()];
        let is_new = vec![false; entries.len()];
        Self {
            entries,
            places,
            ids,
            is_new,
        }
    }

    /// Returns the ranges of entries of at most so many each.
    ///
    /// # Panics
    ///
    /// If `most` is 0.
    pub fn chunks(&self, most: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let all = self.entries.len();
        let starts = (0..all).step_by(most);
        starts.map(move |start| start..all.min(start + most))
    }

    /// Returns those entries of a range that have no id yet.
    pub fn missing(&self, range: Range<usize>) -> Vec<Entry> {
        let entries = self.entries[range.clone()].iter().zip(&self.ids[range]);
        let missing = entries.filter(|(_, id)| id.is_none());
        missing.map(|(entry, _)| *entry).collect()
    }

    /// Takes a row that the database returned; `is_new` if this batch inserted it.
    ///
    /// # Errors
    ///
    /// If the row was not asked for, or is a second id for a UUID, which only a table without its unique
    /// index can have. The error [`is_parse`](Error::is_parse).
    pub fn set(&mut self, uuid: Uuid, id: i64, is_new: bool) -> Result<(), Error> {
        let Ok(at) = self.entries.binary_search(&Entry::new(uuid)) else {
            let what = format!("row {id} has the UUID {uuid}, which was not asked for");
            return Err(Error::parse(what));
        };
        match self.ids[at] {
            Some(before) if before != id => Err(Error::parse(format!(
                "the UUID {uuid} has two rows, {before} and {id}: the table needs \
                 UNIQUE (uuid_hash, uuid)"
            ))),
            Some(_) => Ok(()),
            None => {
                self.ids[at] = Some(id);
                self.is_new[at] = is_new;
                Ok(())
            }
        }
    }

    /// Returns the ids in the caller's order.
    pub fn into_ids(self) -> impl Iterator<Item = Option<i64>> {
        let Self { places, ids, .. } = self;
        places.into_iter().map(move |at| ids[at])
    }

    /// Returns the ids in the caller's order, and whether it was this batch that inserted it: of the same
    /// UUID given twice, the first.
    pub fn into_mappings(self) -> impl Iterator<Item = (Option<i64>, bool)> {
        let Self {
            places,
            ids,
            mut is_new,
            ..
        } = self;
        let places = places.into_iter();
        places.map(move |at| (ids[at], core::mem::take(&mut is_new[at])))
    }
}

/// Returns the UUID of a row, whose columns may hold anything.
///
/// # Errors
///
/// NULL, bytes of another length, and a hash that is not theirs, by which the row cannot be found, give
/// errors that [`is_parse`](Error::is_parse).
pub fn uuid_of_row(id: i64, uuid: Option<&[u8]>, hash: Option<i64>) -> Result<Uuid, Error> {
    let uuid = uuid_of_bytes(id, uuid)?;
    let expected = uuid_hash(uuid);
    match hash {
        Some(hash) if hash == i64::from(expected) => Ok(uuid),
        Some(hash) => refused(
            id,
            &format!("the uuid_hash {hash}, but the CRC-32 of its UUID {uuid} is {expected}"),
        ),
        None => refused(id, "no uuid_hash: declare the column NOT NULL"),
    }
}

fn uuid_of_bytes(id: i64, uuid: Option<&[u8]>) -> Result<Uuid, Error> {
    let Some(bytes) = uuid else {
        return refused(id, "no UUID: declare the column NOT NULL");
    };
    let Ok(uuid) = Uuid::from_slice(bytes) else {
        let (length, found) = (bytes.len(), excerpt(bytes));
        return refused(
            id,
            &format!(
                "a UUID of {length} bytes, {found}, not of 16: declare BINARY(16), uuid or BLOB"
            ),
        );
    };
    Ok(uuid)
}

fn refused(id: i64, what: &str) -> Result<Uuid, Error> {
    Err(Error::parse(format!("row {id} has {what}")))
}

/// Returns the quoted name of a mapping table, behind its schema where there is one.
///
/// # Errors
///
/// A name that is empty, longer than the 63 bytes that PostgreSQL keeps, or has a NUL, gives an error that
/// [`is_parse`](Error::is_parse).
pub fn quoted_table<D: Dialect>(schema: Option<&str>, table: &str) -> Result<String, Error> {
    /// The least of PostgreSQL's 63 bytes and MySQL's 64 characters, so that a name serves everywhere.
    const MOST: usize = 63;
    for (what, name) in [("schema", schema), ("table", Some(table))] {
        let refused = match name {
            Some("") => "it is empty",
            Some(name) if name.len() > MOST => "it has more than 63 bytes",
            Some(name) if name.contains('\0') => "it has a NUL",
            _ => continue,
        };
        return Err(Error::parse(format!(
            "expected the name of a {what}, found {}: {refused}",
            excerpt(name.unwrap_or_default().as_bytes())
        )));
    }
    Ok(D::quote_table(schema, table))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ordid_core::storage::dialect::{MySql, Postgres};

    const KEY: Uuid = Uuid::from_u128(0x017f_22e2_79b0_7cc3_98c4_dc0c_0c07_398f);
    /// The polynomial of CRC-32 in the order of its bits: added to a message, it leaves the sum as it is.
    const POLYNOMIAL: u128 = 0x41_06_71_db_01;

    #[test]
    fn the_hash_is_that_of_zlib() {
        // By Python's zlib.crc32.
        assert_eq!(uuid_hash(KEY), 566_113_600);
        assert_eq!(uuid_hash(Uuid::max()), 1_068_746_266);
    }

    #[test]
    fn uuids_of_one_hash_stay_apart() {
        let others = (0..12).map(|byte| Uuid::from_u128(KEY.as_u128() ^ POLYNOMIAL << (8 * byte)));
        let all: Vec<_> = [KEY].into_iter().chain(others).collect();
        assert!(all.iter().all(|uuid| uuid_hash(*uuid) == uuid_hash(KEY)));
        let mut batch = Batch::new(all.iter().copied());
        for (id, uuid) in (1..).zip(&all) {
            batch.set(*uuid, id, false).unwrap();
        }
        let ids: Vec<_> = batch.into_ids().collect();
        assert_eq!(ids, (1..=13).map(Some).collect::<Vec<_>>());
    }

    #[test]
    fn a_batch_is_sent_sorted_and_returned_as_it_was_given() {
        let uuids: Vec<_> = [3, 1, 3, 2, 1].map(Uuid::from_u128).into();
        let mut batch = Batch::new(uuids.iter().copied());
        let sent = batch.missing(0..3);
        assert!(sent.is_sorted() && sent.len() == 3);
        let ranges: Vec<_> = batch.chunks(2).collect();
        assert_eq!(ranges, [0..2, 2..3]);
        batch.set(uuids[1], 10, true).unwrap();
        batch.set(uuids[3], 20, false).unwrap();
        // The same row a second time changes nothing.
        batch.set(uuids[1], 10, false).unwrap();
        assert_eq!(batch.missing(0..3), [Entry::new(uuids[0])]);
        assert_eq!(
            batch.into_mappings().collect::<Vec<_>>(),
            [
                (None, false),
                (Some(10), true),
                (None, false),
                (Some(20), false),
                (Some(10), false)
            ]
        );
        assert_eq!(Batch::new([]).chunks(5).count(), 0);
    }

    #[test]
    fn rows_that_no_such_table_has_are_refused() {
        let mut batch = Batch::new([KEY]);
        let error = batch.set(Uuid::nil(), 7, false).unwrap_err();
        assert_eq!(
            error.to_string(),
            "row 7 has the UUID 00000000-0000-0000-0000-000000000000, which was not asked for"
        );
        batch.set(KEY, 1, true).unwrap();
        let error = batch.set(KEY, 2, false).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "the UUID {KEY} has two rows, 1 and 2: the table needs UNIQUE (uuid_hash, uuid)"
            )
        );
        let error = uuid_of_row(5, Some(b"017f22e2-79b0"), Some(0)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "row 5 has a UUID of 13 bytes, \"017f22e2-79b0\", not of 16: declare BINARY(16), uuid or \
             BLOB"
        );
        let error = uuid_of_row(5, Some(KEY.as_bytes()), Some(-1)).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("row 5 has the uuid_hash -1, but the CRC-32 of its UUID {KEY} is 566113600")
        );
        assert!(error.is_parse());
        let row = uuid_of_row(5, Some(KEY.as_bytes()), Some(566_113_600));
        assert_eq!(row, Ok(KEY));
        for (uuid, column) in [(None, "UUID"), (Some(&KEY.as_bytes()[..]), "uuid_hash")] {
            assert_eq!(
                uuid_of_row(5, uuid, None).unwrap_err().to_string(),
                format!("row 5 has no {column}: declare the column NOT NULL")
            );
        }
    }

    #[test]
    fn names_are_quoted_or_refused() {
        let quoted = quoted_table::<MySql>(Some("sa`les"), "ids; DROP TABLE x");
        assert_eq!(quoted.unwrap(), "`sa``les`.`ids; DROP TABLE x`");
        assert_eq!(quoted_table::<Postgres>(None, "a\"b").unwrap(), r#""a""b""#);
        let long = "t".repeat(64);
        for (schema, table) in [
            (None, ""),
            (None, "a\0"),
            (None, &*long),
            (Some(""), "t"),
            (Some(&*long), "t"),
        ] {
            let error = quoted_table::<Postgres>(schema, table).unwrap_err();
            assert!(error.is_parse(), "{error}");
        }
        assert_eq!(
            quoted_table::<Postgres>(Some(""), "t")
                .unwrap_err()
                .to_string(),
            "expected the name of a schema, found \"\": it is empty"
        );
    }
}
