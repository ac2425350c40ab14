//! Writes the rows of an entity type to a journal, and reads them back.

use serde_core::de::DeserializeOwned;

use super::{
    super::{
        ColumnSet, Columns, PendingRows, Registration, Row, RowSink, Upsert, list::key_of_raw,
        upsert::Set,
    },
    ColumnValues, JournalRow,
    record::{self, Deleted, List, RowRecords},
};
use ordid_core::{
    Error,
    entity::{Fields, KeyOf, RawKeyOf},
    key::{KeyBytes, KeyType},
};

/// Takes a record.
pub(super) type Append<'a> = &'a mut dyn FnMut(&[u8]) -> Result<(), Error>;

/// Writes the rows of a list, which the journal knows as those of the table of this number.
pub(super) fn write_rows<S: RowSink + 'static, E: Row<S> + JournalRow>(
    pending_rows: &PendingRows<S>,
    table: usize,
    list: List,
    append: Append<'_>,
) -> Result<(), Error> {
    let found = pending_rows.find::<E>().zip(pending_rows.entity_of::<E>());
    let Some(((entities, [inserts, updates]), entity)) = found else {
        return Ok(());
    };
    let mut records = RowRecords::new(table, list, append)?;
    let cannot = |key: Option<KeyOf<E>>, problem: &str| {
        let key = key.map_or_else(|| "none".to_owned(), |key| key.to_string());
        Error::journal(format!(
            "the journal cannot keep the row of {} with the key {key}: {problem}",
            E::TABLE
        ))
    };
    let (mut before, mut after) = (ColumnValues::default(), ColumnValues::default());
    let written = match list {
        List::Inserts => inserts,
        List::Updates | List::Columns | List::Upserts => updates,
        List::Deletes => &[],
    };
    for (place, row) in written.iter().enumerate() {
        let columns = match list {
            List::Inserts | List::Deletes => None,
            List::Updates | List::Columns | List::Upserts => entities.updated_columns(place),
        };
        let its_list = match columns {
            Some(ColumnSet {
                found_by: Some(_), ..
            }) => List::Upserts,
            Some(_) => List::Columns,
            None if list == List::Inserts => list,
            None => List::Updates,
        };
        if list != its_list {
            continue;
        }
        let names =
            |columns: &[usize]| -> Vec<&str> { columns.iter().map(|it| E::COLUMNS[*it]).collect() };
        let read = match columns {
            None => records.add(row).and_then(|bytes| read_back::<E>(bytes)),
            Some(ColumnSet {
                columns,
                found_by: None,
                ..
            }) => {
                let bytes = records.add(&(names(columns), row));
                bytes.and_then(|bytes| read_back::<OfColumns<E>>(bytes).map(|(_, row)| row))
            }
            Some(ColumnSet {
                columns,
                found_by: Some(found_by),
                is_unreported,
                ..
            }) => {
                let bytes = records.add(&(names(found_by), names(columns), is_unreported, row));
                bytes.and_then(|bytes| read_back::<Upserted<E>>(bytes).map(|(.., row)| row))
            }
        };
        check::<S, E>(row, read, entity, &mut before, &mut after)
            .map_err(|problem| cannot(row.key(), &problem))?;
        records.end_row()?;
    }
    if list == List::Deletes {
        for (raw, version, links) in entities.deletes() {
            let links = links.iter().map(|(parent, bytes)| {
                let column = E::PARENTS[usize::from(*parent)].column();
                (column.to_owned(), bytes.as_bytes().to_vec())
            });
            let key = KeyBytes::of_raw(raw).as_bytes().to_vec();
            let deleted: Deleted = (key, links.collect(), version);
            let added = records.add(&deleted).map(drop);
            added.map_err(|problem| cannot(Some(key_of_raw::<E>(raw)), &problem))?;
            records.end_row()?;
        }
    }
    records.end()
}

fn read_back<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    record::decode(bytes).map_err(|error| format!("it cannot be read back: {error}"))
}

/// A row to update in some columns: their names, and the row.
type OfColumns<E> = (Vec<String>, E);

/// A row to upsert: the columns by which it is found, those that are written, whether it is unreported, and the row.
type Upserted<E> = (Vec<String>, Vec<String>, bool, E);

/// Reads a row to upsert. One of version 1 does not say whether it is unreported.
fn upserted<E: DeserializeOwned>(bytes: &[u8]) -> Result<Upserted<E>, String> {
    record::decode(bytes).or_else(|error| match record::decode(bytes) {
        Ok((found_by, set, row)) => Ok((found_by, set, false, row)),
        Err(_) => Err(error),
    })
}

/// Compares the columns of a row with those that were read back, as serde writes them and as the library sends them.
fn check<S: RowSink, E: Row<S> + JournalRow>(
    row: &E,
    read: Result<E, String>,
    entity: S::Entity,
    before: &mut ColumnValues,
    after: &mut ColumnValues,
) -> Result<(), String> {
    let read = read?;
    before.clear();
    after.clear();
    Fields::<ColumnValues>::write(row, before);
    Fields::<ColumnValues>::write(&read, after);
    if let Some(error) = before.take_error().or_else(|| after.take_error()) {
        return Err(error);
    }
    let name = |column: usize| E::COLUMNS.get(column).copied().unwrap_or("?");
    if let Some(column) = before.first_difference(after) {
        return Err(format!(
            "serde does not bring back its column {} as it was; is it skipped, or written with less \
             precision?",
            name(column)
        ));
    }
    match first_sent_otherwise::<S, E>(row, &read, entity) {
        None => Ok(()),
        Some(column) => Err(format!(
            "the database would get another value of its column {}; does `Serialize` of its type leave \
             something out?",
            name(column)
        )),
    }
}

/// Returns the first column of which the library would send another value.
fn first_sent_otherwise<S: RowSink, E: Row<S>>(
    row: &E,
    read: &E,
    entity: S::Entity,
) -> Option<usize> {
    let sent = |row: &E, columns: Columns<'_>| {
        S::sent(entity, columns, &mut |sink| Fields::<S>::write(row, sink))
    };
    if sent(row, Columns::All)? == sent(read, Columns::All)? {
        return None;
    }
    // A map is sent in another order each time that it is built, so only what it is made of is compared.
    let parts = |row: &E, column: usize| {
        let mut bytes = sent(row, Columns::Only(&[column]))?.into_bytes();
        bytes.sort_unstable();
        Some(bytes)
    };
    (0..E::COLUMNS.len()).find(|&column| parts(row, column) != parts(read, column))
}

pub(super) fn read_rows<S: RowSink + 'static, E: Row<S> + JournalRow>(
    pending_rows: &mut PendingRows<S>,
    list: List,
    bytes: record::Rows<'_>,
    register: fn() -> Registration<S, RawKeyOf<E>>,
) -> Result<(), Error> {
    let cannot = |error: String| {
        Error::journal(format!(
            "a row of {} cannot be read from the journal: {error}",
            E::TABLE
        ))
    };
    let positions = |names: &[String]| {
        let position = |name: &String| {
            let position = E::COLUMNS.iter().position(|it| it == name);
            position.ok_or_else(|| cannot(format!("{name} is no column any more")))
        };
        names.iter().map(position).collect::<Result<Vec<_>, _>>()
    };
    pending_rows.rows_of::<E>(register);
    for row in bytes {
        let row = row?;
        match list {
            List::Inserts => {
                let row = record::decode(row).map_err(cannot)?;
                pending_rows.rows_mut_as::<E>(register).push(row);
            }
            List::Updates => {
                let row: E = record::decode(row).map_err(cannot)?;
                pending_rows.update(row, register);
            }
            List::Columns => {
                let (names, row): OfColumns<E> = record::decode(row).map_err(cannot)?;
                pending_rows.update_columns(row, positions(&names)?, register);
            }
            List::Upserts => {
                let (found_by, set, is_unreported, row) = upserted::<E>(row).map_err(cannot)?;
                let upsert = Upsert {
                    found_by: Some(positions(&found_by)?),
                    set: match set.is_empty() {
                        true => Set::Nothing,
                        false => Set::Only(positions(&set)?),
                    },
                    is_unreported,
                };
                pending_rows.upsert(row, upsert, register);
            }
            List::Deletes => {
                let (key, links, version): Deleted = record::decode(row).map_err(cannot)?;
                let key = record::key_bytes(&key)?.to_key::<KeyOf<E>>();
                let key = key.ok_or_else(|| cannot("it has no key of its type".to_owned()))?;
                let links = links
                    .into_iter()
                    .map(|(column, bytes)| {
                        let parent = E::PARENTS.iter().position(|it| it.column() == column);
                        let parent = parent.and_then(|parent| u16::try_from(parent).ok());
                        let parent = parent.ok_or_else(|| {
                            cannot(format!("{column} is no foreign key any more"))
                        })?;
                        Ok((parent, record::key_bytes(&bytes)?))
                    })
                    .collect::<Result<Vec<_>, Error>>()?;
                pending_rows
                    .of_type::<E>()
                    .delete_again(key.to_raw(), version, &links);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_to_upsert_of_both_versions_are_read() {
        let (found_by, set) = (vec!["id".to_owned()], vec!["name".to_owned()]);
        let bytes = |value: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = Vec::new();
            value(&mut bytes);
            bytes
        };
        let first = bytes(&|to| record::encode(&(&found_by, &set, 7_u32), to).unwrap());
        let second = bytes(&|to| record::encode(&(&found_by, &set, true, 7_u32), to).unwrap());
        for (bytes, is_unreported) in [(first, false), (second, true)] {
            let read = upserted::<u32>(&bytes).unwrap();
            assert_eq!(read, (found_by.clone(), set.clone(), is_unreported, 7));
        }
        assert!(upserted::<String>(&[0xc0]).is_err());
    }
}
