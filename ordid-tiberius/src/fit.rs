//! Whether rows can go by `INSERT BULK` and be what an `INSERT` would make of them.
//!
//! An `INSERT` converts; a bulk load does not, or not in the same way. So each value must be of its
//! column's own type. Where a value is not, the table goes by statements.

use std::mem;

use ordid_core::layout::guid;
use ordid_sql::NotBulk;
use tiberius::{ColumnData, FixedLenType, MetaDataColumn, TypeInfo, VarLenType, numeric::Numeric};

/// The columns that rows must fit, and whether the rows rise.
#[derive(Debug)]
pub(crate) struct Fit {
    columns: Vec<(TypeInfo, bool)>,
    key: usize,
    last: Option<SortKey>,
    rises: bool,
    /// How many values of this row were looked at, and whether they fit.
    taken: usize,
    fits: bool,
    /// The column of the first value that did not fit.
    misfit: Option<usize>,
}

/// The longest key.
const LONGEST: usize = 24;

/// A key as the server compares it.
#[derive(Debug, PartialEq, PartialOrd)]
enum SortKey {
    Guid([u8; 16]),
    /// Of one column, so all as long.
    Binary([u8; LONGEST]),
    Integer(i64),
}

impl Fit {
    /// Returns a check for rows of these columns. Returns an error if no row can fit, because the table has other
    /// columns or the server fills one of them by itself.
    pub(crate) fn new(
        columns: &[MetaDataColumn<'_>],
        names: &[&'static str],
        key_column: &str,
    ) -> Result<Self, NotBulk> {
        // As they were asked for; a view may call them otherwise.
        if columns.len() != names.len() {
            return Err(NotBulk::NoTable);
        }
        let is_writable = |column: &MetaDataColumn<'_>| {
            let base = column.base();
            base.is_updateable() && !base.is_identity()
        };
        let mut of_server = columns.iter().zip(names).filter(|(it, _)| !is_writable(it));
        if let Some((_, name)) = of_server.next() {
            return Err(NotBulk::ServerColumn(name));
        }
        Ok(Self {
            columns: columns
                .iter()
                .map(|column| (column.base().ty().clone(), column.base().is_nullable()))
                .collect(),
            key: names
                .iter()
                .position(|name| *name == key_column)
                .ok_or(NotBulk::NoTable)?,
            last: None,
            rises: true,
            taken: 0,
            fits: true,
            misfit: None,
        })
    }

    /// Looks at the next value of a row.
    pub(crate) fn take(&mut self, value: &ColumnData<'_>) {
        let column = self.columns.get(self.taken);
        if !column.is_some_and(|(ty, nullable)| fits(value, ty, *nullable)) {
            self.fits = false;
            self.misfit.get_or_insert(self.taken);
        }
        if self.taken == self.key {
            let key = SortKey::of(value);
            self.rises &= key.is_some() && self.last < key;
            self.last = key;
        }
        self.taken += 1;
    }

    /// Takes a value that the server does not have.
    pub(crate) fn refuse(&mut self) {
        self.fits = false;
        self.misfit.get_or_insert(self.taken);
        self.taken += 1;
    }

    /// Ends a row, and returns whether it fits.
    pub(crate) fn ends_row(&mut self) -> bool {
        let taken = mem::take(&mut self.taken);
        mem::replace(&mut self.fits, true) && taken == self.columns.len()
    }

    /// Returns the column of the first value that did not fit.
    pub(crate) const fn misfit(&self) -> Option<usize> {
        self.misfit
    }

    /// Returns whether the keys of the rows taken so far rise strictly as the server compares them.
    pub(crate) const fn rises(&self) -> bool {
        self.rises
    }
}

impl SortKey {
    fn of(value: &ColumnData<'_>) -> Option<Self> {
        match value {
            ColumnData::Guid(Some(value)) => {
                Some(Self::Guid(guid::sql_server_sort_key(value.as_bytes())))
            }
            ColumnData::Binary(Some(value)) => {
                let mut key = [0; LONGEST];
                key.get_mut(..value.len())?.copy_from_slice(value);
                Some(Self::Binary(key))
            }
            ColumnData::I64(Some(value)) => Some(Self::Integer(*value)),
            _ => None,
        }
    }
}

/// What tiberius takes for `max` as a length.
const MAX: usize = 0xffff;

fn fits(value: &ColumnData<'_>, ty: &TypeInfo, nullable: bool) -> bool {
    use FixedLenType as Fixed;
    use TypeInfo::{FixedLen, VarLenSized, VarLenSizedPrecision};
    use VarLenType as Var;

    // The server has an error of its own for a NULL that may not be, by statement.
    let some = |present: bool| present || nullable;
    match (value, ty) {
        (ColumnData::Bit(Some(_)), FixedLen(Fixed::Bit))
        | (ColumnData::U8(Some(_)), FixedLen(Fixed::Int1))
        | (ColumnData::I16(Some(_)), FixedLen(Fixed::Int2))
        | (ColumnData::I32(Some(_)), FixedLen(Fixed::Int4))
        | (ColumnData::I64(Some(_)), FixedLen(Fixed::Int8))
        | (ColumnData::F32(Some(_)), FixedLen(Fixed::Float4))
        | (ColumnData::F64(Some(_)), FixedLen(Fixed::Float8)) => true,
        (value, VarLenSized(column)) => {
            let length = column.len();
            match (value, column.r#type()) {
                (ColumnData::Bit(value), Var::Bitn) => some(value.is_some()),
                (ColumnData::U8(value), Var::Intn) => length == 1 && some(value.is_some()),
                (ColumnData::I16(value), Var::Intn) => length == 2 && some(value.is_some()),
                (ColumnData::I32(value), Var::Intn) => length == 4 && some(value.is_some()),
                (ColumnData::I64(value), Var::Intn) => length == 8 && some(value.is_some()),
                (ColumnData::F32(value), Var::Floatn) => length == 4 && some(value.is_some()),
                (ColumnData::F64(value), Var::Floatn) => length == 8 && some(value.is_some()),
                (ColumnData::Guid(value), Var::Guid) => some(value.is_some()),
                (ColumnData::String(value), Var::NVarchar) => {
                    // tiberius 0.13 declares `nvarchar(n)` with its length in bytes. Above 4,000 bytes it declares
                    // `max`, but does not send the value in the form of `max`. Into a `max` column it sends at most as
                    // many bytes as the number that stands for the length `max`.
                    (length == MAX || length <= 4_000)
                        && value.as_ref().map_or(nullable, |text| {
                            // Never more units than bytes of UTF-8.
                            text.len() * 2 <= length || text.encode_utf16().count() * 2 <= length
                        })
                }
                // ASCII is the same in every code page; the rest an `INSERT` converts.
                (ColumnData::String(value), Var::BigVarChar) => value
                    .as_ref()
                    .map_or(nullable, |text| text.is_ascii() && text.len() <= length),
                (ColumnData::Binary(value), Var::BigVarBin) => value
                    .as_ref()
                    .map_or(nullable, |bytes| bytes.len() <= length),
                (ColumnData::Binary(value), Var::BigBinary) => value
                    .as_ref()
                    .map_or(nullable, |bytes| bytes.len() == length),
                (ColumnData::Date(value), Var::Daten) => some(value.is_some()),
                // The text that tiberius declares these by has no scale: 7, as its values have.
                (ColumnData::Time(value), Var::Timen) => {
                    length == 7 && value.map_or(nullable, |value| value.scale() == 7)
                }
                (ColumnData::DateTimeOffset(value), Var::DatetimeOffsetn) => {
                    length == 7
                        && value.map_or(nullable, |value| value.datetime2().time().scale() == 7)
                }
                // An `INSERT` rounds to the column's scale; tiberius would cut off.
                (ColumnData::DateTime2(value), Var::Datetime2) => value.map_or(nullable, |value| {
                    usize::from(value.time().scale()) == length
                }),
                _ => false,
            }
        }
        (
            ColumnData::Numeric(value),
            VarLenSizedPrecision {
                precision, scale, ..
            },
        ) => value.map_or(nullable, |value| is_within(value, *precision, *scale)),
        _ => false,
    }
}

/// Returns whether `decimal(precision, scale)` holds the number without rounding.
fn is_within(number: Numeric, precision: u8, scale: u8) -> bool {
    let Some(zeros) = scale.checked_sub(number.scale()) else {
        return false;
    };
    let widened = 10_i128
        .checked_pow(zeros.into())
        .and_then(|factor| number.value().checked_mul(factor));
    let limit = 10_i128.checked_pow(precision.into());
    matches!((widened, limit), (Some(widened), Some(limit)) if widened.abs() < limit)
}

#[cfg(test)]
mod tests;
