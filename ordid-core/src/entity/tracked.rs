//! A row that remembers the values that it was read with.

use alloc::{boxed::Box, format, sync::Arc, vec::Vec};
use core::{
    any::Any,
    fmt,
    ops::{Deref, DerefMut},
};

use super::{ColumnOf, Fields, OrderedKey, Reads, Sink};
use crate::error::Error;

/// A row with a copy of each value that was read. It knows which columns have changed since, and `update_changed` of
/// a unit of work writes only these.
///
/// The types of its fields have to be `Clone` and `PartialEq`.
///
/// # Example
///
/// ```
/// use ordid_core::Tracked;
/// # use ordid_core::{Fields, KeyOf, OrderedKey, Sink, entity::Parent, key::KeyBytes, uuid::Uuid};
/// # struct Issue { id: Uuid, title: &'static str, votes: i64 }
/// # impl OrderedKey for Issue {
/// #     type Field = Uuid;
/// #     const SCHEMA: Option<&'static str> = None;
/// #     const TABLE: &'static str = "issues";
/// #     const KEY_COLUMN: &'static str = "id";
/// #     const COLUMNS: &'static [&'static str] = &["id", "title", "votes"];
/// #     const PARENTS: &'static [Parent] = &[];
/// #     fn key(&self) -> Option<KeyOf<Self>> { Some(self.id) }
/// #     fn assign_key(&mut self, key: KeyOf<Self>) { self.id = key; }
/// #     fn parents(&self, _: &mut dyn FnMut(usize, KeyBytes)) {}
/// # }
/// # impl<S: Sink<Uuid> + Sink<&'static str> + Sink<i64>> Fields<S> for Issue {
/// #     fn write(&self, sink: &mut S) {
/// #         sink.put(&self.id);
/// #         sink.put(&self.title);
/// #         sink.put(&self.votes);
/// #     }
/// #     fn write_key(key: Uuid, sink: &mut S) { sink.put(&key); }
/// # }
///
/// // #[derive(OrderedKey)]
/// // #[ordid(table = "issues")]
/// // struct Issue { #[ordid(key)] id: IssueId, title: &'static str, votes: i64 }
/// # let read = Issue { id: Uuid::from_u128(1), title: "slow", votes: 3 };
/// let mut issue = Tracked::new(read);
/// assert!(Tracked::changed(&issue).is_empty());
/// issue.votes += 1;
/// assert_eq!(Tracked::changed(&issue), ["votes"]);
/// ```
pub struct Tracked<E> {
    row: E,
    read: Arc<Vec<AnyCopy>>,
}

/// A copy of a value.
type AnyCopy = Box<dyn Any + Send + Sync>;

/// Takes a copy of each value of a row, or compares the values of a row with copies.
#[doc(hidden)]
#[derive(Default)]
pub struct Values {
    copies: Vec<AnyCopy>,
    compared: Option<Compared>,
}

struct Compared {
    with: Arc<Vec<AnyCopy>>,
    /// The position of the next value.
    position: usize,
    /// The positions of values that were others.
    changed: Vec<usize>,
}

impl<T: Clone + PartialEq + Send + Sync + 'static> Sink<T> for Values {
    fn put(&mut self, value: &T) {
        let Some(compared) = &mut self.compared else {
            self.copies.push(Box::new(value.clone()));
            return;
        };
        let before = compared.with.get(compared.position);
        let before = before.and_then(|before| before.downcast_ref::<T>());
        if before != Some(value) {
            compared.changed.push(compared.position);
        }
        compared.position += 1;
    }
}

/// Reads nothing, since the program does not change columns that the database fills.
impl<T> Reads<T> for Values {
    fn expect(&mut self) {}
}

/// These are functions and not methods, so that they do not hide methods of the row.
impl<E: OrderedKey + Fields<Values>> Tracked<E> {
    /// Takes a row as it was read.
    pub fn new(row: E) -> Self {
        let mut values = Values::default();
        row.write(&mut values);
        Self {
            row,
            read: Arc::new(values.copies),
        }
    }

    /// Returns the names of the columns that have changed.
    pub fn changed(this: &Self) -> Vec<&'static str> {
        let columns = this.columns().into_iter();
        columns.map(ColumnOf::name).collect()
    }

    fn columns(&self) -> Vec<ColumnOf<E>> {
        let mut values = Values {
            copies: Vec::new(),
            compared: Some(Compared {
                with: Arc::clone(&self.read),
                position: 0,
                changed: Vec::new(),
            }),
        };
        self.row.write(&mut values);
        let changed = values.compared.map(|it| it.changed).unwrap_or_default();
        changed.into_iter().map(ColumnOf::at).collect()
    }

    /// Returns the row, and the columns that have changed.
    ///
    /// # Errors
    ///
    /// An error that [`is_plan`](Error::is_plan) if the key has changed. A row keeps its key.
    pub fn into_changed(this: Self) -> Result<(E, Vec<ColumnOf<E>>), Error> {
        let changed = this.columns();
        let mut names = changed.iter().map(|column| column.name());
        match names.find(|name| E::KEY_COLUMNS.contains(name)) {
            None => Ok((this.row, changed)),
            Some(column) => Err(Error::plan(format!(
                "the column {column} of a row of {} has changed, which is of its key: a row keeps its key; delete the \
                 row, and add one with the other key",
                E::TABLE
            ))),
        }
    }

    /// Returns the row as it is now.
    pub fn into_inner(this: Self) -> E {
        this.row
    }
}

impl<E> Deref for Tracked<E> {
    type Target = E;

    fn deref(&self) -> &E {
        &self.row
    }
}

impl<E> DerefMut for Tracked<E> {
    fn deref_mut(&mut self) -> &mut E {
        &mut self.row
    }
}

impl<E: fmt::Debug> fmt::Debug for Tracked<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tracked").field(&self.row).finish()
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use super::*;
    use crate::{entity::Parent, key::KeyBytes};
    use uuid::Uuid;

    #[derive(Debug)]
    struct Part {
        id: Uuid,
        name: String,
        weight: Option<f64>,
    }

    impl OrderedKey for Part {
        type Field = Uuid;
        const SCHEMA: Option<&'static str> = None;
        const TABLE: &'static str = "parts";
        const KEY_COLUMN: &'static str = "id";
        const COLUMNS: &'static [&'static str] = &["id", "name", "weight"];
        const PARENTS: &'static [Parent] = &[];

        fn key(&self) -> Option<Uuid> {
            Some(self.id)
        }

        fn assign_key(&mut self, key: Uuid) {
            self.id = key;
        }

        fn parents(&self, _: &mut dyn FnMut(usize, KeyBytes)) {}
    }

    impl<S: Sink<Uuid> + Sink<String> + Sink<Option<f64>>> Fields<S> for Part {
        fn write(&self, sink: &mut S) {
            sink.put(&self.id);
            sink.put(&self.name);
            sink.put(&self.weight);
        }

        fn write_key(key: Uuid, sink: &mut S) {
            sink.put(&key);
        }
    }

    fn part() -> Tracked<Part> {
        Tracked::new(Part {
            id: Uuid::from_u128(1),
            name: "bolt".into(),
            weight: None,
        })
    }

    #[test]
    fn the_columns_that_have_changed_are_known() {
        let mut part = part();
        assert!(Tracked::changed(&part).is_empty());
        part.name.push('s');
        part.weight = Some(0.5);
        assert_eq!(Tracked::changed(&part), ["name", "weight"]);
        part.name.pop();
        assert_eq!(Tracked::changed(&part), ["weight"]);
        let (row, changed) = Tracked::into_changed(part).unwrap();
        assert_eq!((row.weight, changed), (Some(0.5), [ColumnOf::at(2)].into()));
    }

    #[test]
    fn a_row_keeps_its_key() {
        let mut part = part();
        part.id = Uuid::from_u128(2);
        let error = Tracked::into_changed(part).unwrap_err();
        assert!(error.is_plan(), "{error}");
        assert!(
            format!("{error}").contains("column id of a row of parts"),
            "{error}"
        );
    }
}
