//! A row's columns as a journal stores them, so that they can be compared.

use rmpv::Value;
use serde_core::Serialize;

use super::record;
use ordid_core::entity::{Reads, Sink};

/// Collects the columns of a row through serde. [`Journaled`](super::Journaled) uses it to check
/// that a row would come back unchanged.
#[derive(Debug, Default)]
pub struct ColumnValues {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    error: Option<String>,
}

#[diagnostic::do_not_recommend]
impl<T: Serialize + ?Sized> Sink<T> for ColumnValues {
    fn put(&mut self, value: &T) {
        if let Err(error) = record::encode(value, &mut self.bytes) {
            self.error.get_or_insert(error);
        }
        self.ends.push(self.bytes.len());
    }
}

/// Reads nothing, since a journal only keeps values that the program writes.
#[diagnostic::do_not_recommend]
impl<T> Reads<T> for ColumnValues {
    fn expect(&mut self) {}
}

impl ColumnValues {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.error = None;
    }

    pub(super) fn take_error(&mut self) -> Option<String> {
        self.error.take()
    }

    /// Returns the position of the first column that differs.
    pub(super) fn first_difference(&self, other: &Self) -> Option<usize> {
        if self.bytes == other.bytes && self.ends == other.ends {
            return None;
        }
        (0..self.ends.len().max(other.ends.len()))
            .find(|&column| !same(self.column(column), other.column(column)))
    }

    fn column(&self, column: usize) -> &[u8] {
        let start = match column.checked_sub(1) {
            None => Some(&0),
            Some(before) => self.ends.get(before),
        };
        match (start, self.ends.get(column)) {
            (Some(start), Some(end)) => &self.bytes[*start..*end],
            _ => &[],
        }
    }
}

/// Compares two values. Maps may be in different orders, as a hash map is each time it is built.
fn same(left: &[u8], right: &[u8]) -> bool {
    let sorted = |mut bytes: &[u8]| {
        let mut value = rmpv::decode::read_value(&mut bytes).ok()?;
        sort_maps(&mut value);
        // Compare bytes, because a NaN does not equal itself.
        Some(to_bytes(&value))
    };
    left == right || sorted(left).is_some_and(|left| Some(left) == sorted(right))
}

fn sort_maps(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(sort_maps),
        Value::Map(entries) => {
            for (key, value) in &mut *entries {
                sort_maps(key);
                sort_maps(value);
            }
            entries.sort_by_cached_key(|(key, _)| to_bytes(key));
        }
        _ => {}
    }
}

fn to_bytes(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    rmpv::encode::write_value(&mut bytes, value).expect("a `Vec` takes what is written to it");
    bytes
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashMap};

    use super::*;

    fn values<T: Serialize>(column: &T) -> ColumnValues {
        let mut values = ColumnValues::default();
        values.put(&"before");
        values.put(column);
        values
    }

    #[test]
    fn the_first_column_that_differs_is_found() {
        let equal = values(&f64::NAN).first_difference(&values(&f64::NAN));
        assert_eq!(equal, None);
        for (left, right) in [(1, 2), (1, -1), (0, i64::MAX)] {
            assert_eq!(values(&left).first_difference(&values(&right)), Some(1));
        }
        let none = values(&None::<i32>);
        assert_eq!(values(&Some(1)).first_difference(&none), Some(1));
        assert_eq!(
            ColumnValues::default().first_difference(&values(&1)),
            Some(0)
        );
    }

    #[test]
    fn maps_are_equal_in_any_order() {
        let rising: BTreeMap<u32, Option<f32>> = (0..100).map(|i| (i, Some(f32::NAN))).collect();
        let hashed: HashMap<u32, Option<f32>> = rising.clone().into_iter().collect();
        assert_eq!(values(&hashed).first_difference(&values(&rising)), None);
        let nested = values(&(vec![rising.clone()], 1));
        assert_eq!(values(&(vec![hashed], 1)).first_difference(&nested), None);
        let mut other = rising.clone();
        other.insert(7, None);
        assert_eq!(values(&other).first_difference(&values(&rising)), Some(1));
    }
}
