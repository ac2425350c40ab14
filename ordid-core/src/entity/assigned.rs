//! The values of columns that the database fills, and the cells that take them.

use alloc::boxed::Box;
use core::{any::Any, fmt};

/// A value that was read from a column. Its type is the one that the column's [`Cell`] takes.
pub type AnyValue = Box<dyn Any + Send + Sync>;

/// Takes the value of one column of one row.
pub trait Cell {
    /// Prepares to take a value. Returns `None` if the value is not of the cell's type. The cell does not change until
    /// [`Filling::fill`] is called.
    fn prepare(&self, value: AnyValue) -> Option<Filling>;
}

/// A value together with the [`Cell`] that will take it. A unit of work keeps them until COMMIT is known to have
/// succeeded.
pub struct Filling(Box<dyn FnOnce() + Send + Sync>);

impl Filling {
    /// Makes it from the function that puts the value into its cell.
    pub fn new(fill: impl FnOnce() + Send + Sync + 'static) -> Self {
        Self(Box::new(fill))
    }

    /// Puts the value into its cell.
    pub fn fill(self) {
        (self.0)();
    }
}

impl fmt::Debug for Filling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filling").finish_non_exhaustive()
    }
}

/// A field under `#[ordid(returning)]`: an `Assigned<T>`, or an adapter's own type around one.
#[diagnostic::on_unimplemented(
    message = "a field under `#[ordid(returning)]` is an `Assigned<..>`, not `{Self}`",
    label = "this type cannot take a value after the flush",
    note = "write `ordid::Assigned<{Self}>`, and in a model of SeaORM `ordid_seaorm::Assigned<{Self}>`"
)]
pub trait AssignedField {
    /// The type of the value.
    type Value: Send + Sync + 'static;

    /// Returns the cell that takes the value.
    fn cell(&self) -> &dyn Cell;
}

/// Reads values of one type, for columns that the database fills. An adapter implements it, besides
/// [`Sink`](super::Sink), for the type that binds values in its database library.
#[diagnostic::on_unimplemented(
    message = "a value of type `{T}` cannot be read back from this database",
    label = "a unit of work of this library does not read `{T}` back",
    note = "a field under `#[ordid(returning)]` has a type that the library itself reads from a row"
)]
pub trait Reads<T: ?Sized> {
    /// Declares that the next column that is read has values of this type.
    fn expect(&mut self);
}

#[cfg(feature = "std")]
mod shared {
    use std::{
        cmp::Ordering,
        fmt,
        sync::{Arc, Mutex, MutexGuard, PoisonError},
    };

    use super::{AnyValue, AssignedField, Cell, Filling};

    /// The value of a column that the database fills, such as a time under `DEFAULT now()` or a generated column: empty
    /// until the flush that wrote the row is committed.
    ///
    /// A clone shares the value, so the program keeps a clone when it adds the row to a unit of work:
    ///
    /// ```text
    /// let created_at = order.created_at.clone();
    /// work.add(order);
    /// work.flush(&pool).await?;
    /// created_at.get()
    /// ```
    ///
    /// - Only a flush whose COMMIT is known to have succeeded fills it. It does not change if the flush failed, nor
    ///   in a flush inside the user's own transaction, which the user commits.
    /// - A flush that updates the row replaces the value.
    /// - If the row no longer existed when it was read, for example because a trigger deleted it, the value does not
    ///   change.
    /// - With serde it is an `Option` of the value.
    ///
    /// Two of them are equal if their values are equal.
    ///
    /// # Example
    ///
    /// ```
    /// use ordid_core::Assigned;
    ///
    /// // #[derive(OrderedKey)]
    /// struct Order {
    ///     // #[ordid(returning)]
    ///     number: Assigned<i64>,
    /// }
    ///
    /// let order = Order { number: Assigned::new() };
    /// let number = order.number.clone();
    /// assert_eq!(number.get(), None);
    ///
    /// // A row that was read has its value.
    /// let read = Order { number: Assigned::from(7) };
    /// assert_eq!(read.number.get(), Some(7));
    /// ```
    pub struct Assigned<T>(Arc<Mutex<Option<T>>>);

    impl<T> Assigned<T> {
        /// Makes one without a value.
        pub fn new() -> Self {
            Self(Arc::default())
        }

        /// Returns a copy of the value, if there is one.
        pub fn get(&self) -> Option<T>
        where
            T: Clone,
        {
            self.value().clone()
        }

        /// Returns whether there is no value yet.
        pub fn is_empty(&self) -> bool {
            self.value().is_none()
        }

        /// Locks the value. A value is replaced as a whole, so a panic elsewhere cannot have left half of one.
        fn value(&self) -> MutexGuard<'_, Option<T>> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }

    /// Makes one that has a value, for a row that was read.
    impl<T> From<T> for Assigned<T> {
        fn from(value: T) -> Self {
            Self(Arc::new(Mutex::new(Some(value))))
        }
    }

    impl<T: Send + Sync + 'static> Cell for Assigned<T> {
        fn prepare(&self, value: AnyValue) -> Option<Filling> {
            let value = value.downcast::<T>().ok()?;
            let cell = self.clone();
            Some(Filling::new(move || *cell.value() = Some(*value)))
        }
    }

    impl<T: Send + Sync + 'static> AssignedField for Assigned<T> {
        type Value = T;

        fn cell(&self) -> &dyn Cell {
            self
        }
    }

    /// The clone shares the value.
    impl<T> Clone for Assigned<T> {
        fn clone(&self) -> Self {
            Self(Arc::clone(&self.0))
        }
    }

    impl<T> Default for Assigned<T> {
        fn default() -> Self {
            Self::new()
        }
    }

    impl<T: PartialEq> PartialEq for Assigned<T> {
        fn eq(&self, other: &Self) -> bool {
            // If the two share the value, locking both would wait forever. Otherwise they are locked in one order,
            // since
            // another thread may compare the two the other way round.
            match Arc::as_ptr(&self.0).cmp(&Arc::as_ptr(&other.0)) {
                Ordering::Equal => true,
                Ordering::Less => {
                    let value = self.value();
                    *value == *other.value()
                }
                Ordering::Greater => {
                    let value = other.value();
                    *value == *self.value()
                }
            }
        }
    }

    impl<T: Eq> Eq for Assigned<T> {}

    impl<T: fmt::Debug> fmt::Debug for Assigned<T> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.debug_tuple("Assigned").field(&*self.value()).finish()
        }
    }

    /// Writes the value as an `Option`.
    #[cfg(feature = "serde")]
    impl<T: serde_core::Serialize> serde_core::Serialize for Assigned<T> {
        fn serialize<S: serde_core::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            self.value().as_ref().serialize(serializer)
        }
    }

    #[cfg(feature = "serde")]
    impl<'de, T: serde_core::Deserialize<'de>> serde_core::Deserialize<'de> for Assigned<T> {
        fn deserialize<D: serde_core::Deserializer<'de>>(
            deserializer: D,
        ) -> Result<Self, D::Error> {
            let value = Option::<T>::deserialize(deserializer)?;
            Ok(Self(Arc::new(Mutex::new(value))))
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_clone_sees_the_value_once_it_is_filled() {
            let cell = Assigned::<i64>::new();
            let kept = cell.clone();
            let filling = cell.prepare(Box::new(7_i64)).unwrap();
            assert!(kept.is_empty());
            filling.fill();
            assert_eq!(kept.get(), Some(7));
            cell.prepare(Box::new(8_i64)).unwrap().fill();
            assert_eq!(kept.get(), Some(8));
        }

        #[test]
        fn a_value_that_is_thrown_away_changes_nothing() {
            let cell = Assigned::from(1_i32);
            drop(cell.prepare(Box::new(2_i32)));
            assert_eq!(cell.get(), Some(1));
        }

        #[test]
        fn a_value_of_another_type_is_refused() {
            assert!(Assigned::<i64>::new().prepare(Box::new(7_i32)).is_none());
        }

        #[test]
        fn values_are_compared() {
            let cell = Assigned::from("a");
            assert_eq!(cell, cell.clone());
            assert_eq!(cell, Assigned::from("a"));
            assert_ne!(cell, Assigned::new());
            assert_eq!(format!("{cell:?}"), r#"Assigned(Some("a"))"#);
        }

        #[cfg(feature = "serde")]
        #[test]
        fn it_is_serialized_as_an_option() {
            let text = serde_json::to_string(&[Assigned::from(7), Assigned::new()]).unwrap();
            assert_eq!(text, "[7,null]");
            let read: Vec<Assigned<i32>> = serde_json::from_str(&text).unwrap();
            assert_eq!(read, [Assigned::from(7), Assigned::new()]);
        }
    }
}

#[cfg(feature = "std")]
pub use shared::Assigned;
