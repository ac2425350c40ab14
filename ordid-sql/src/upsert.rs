//! Rows that are inserted unless they are there.

use std::marker::PhantomData;

use ordid_core::{ColumnList, OrderedKey};

/// What is done with a row that may be there already: what `upsert_with` of a unit of work takes.
///
/// # Example
///
/// ```
/// use ordid_core::{ColumnOf, OrderedKey};
/// use ordid_sql::OnConflict;
///
/// /// One row for each mail address: its name is written anew, and its key stays.
/// fn by_mail<E: OrderedKey>(mail: ColumnOf<E>, name: ColumnOf<E>) -> OnConflict<E> {
///     OnConflict::of(mail).set(name)
/// }
/// ```
#[doc(alias("upsert", "merge", "on duplicate key"))]
#[derive(Debug)]
pub struct OnConflict<E> {
    upsert: Upsert,
    entity: PhantomData<fn(E)>,
}

/// As [`OnConflict`], of any type.
#[derive(Debug, Clone, Default)]
pub(crate) struct Upsert {
    /// The columns by which rows are found; `None` for the key's.
    pub(crate) found_by: Option<Vec<usize>>,
    /// The columns that are written where the row is there.
    pub(crate) set: Set,
    /// Whether nobody wants to know what became of the row.
    pub(crate) is_unreported: bool,
}

/// Says which columns are written if the row is there.
#[derive(Debug, Clone, Default)]
pub(crate) enum Set {
    /// All but the key's and those by which it was found.
    #[default]
    Others,
    /// These.
    Only(Vec<usize>),
    /// None.
    Nothing,
}

/// What became of a row that was upserted: what [`Flushed::upserted`](crate::Flushed::upserted) returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Upserted {
    /// It was not there, and was inserted.
    Inserted,
    /// It was there, and columns of it were written. They may have had the same values.
    Updated,
    /// It was there, and was left as it is.
    LeftAlone,
}

impl<E> OnConflict<E> {
    /// A row is there if its key is.
    pub fn key() -> Self {
        Self::new(None)
    }

    /// A row is there if another one has the same values in these columns: one column, or a tuple or an array of them.
    ///
    /// A row with NULL in one of them is never there, so it is always inserted. If the database takes NULL for a value
    /// that is there once, it refuses the second such row: an index of SQL Server without `WHERE .. IS NOT NULL`, and one
    /// of PostgreSQL that is `NULLS NOT DISTINCT`. Oracle takes an empty text for NULL, too.
    ///
    /// Two rows of one unit of work should not have the same values: some databases refuse them, others let the later
    /// one win.
    ///
    /// The columns have to be those of a unique index that holds all rows, not one with `WHERE`. Without one, the database takes the same values twice where two
    /// flushes write them at the same time, and a flush fails that finds them twice.
    ///
    /// The row in the database keeps its key: rows that refer to the new key are refused.
    pub fn of(columns: impl ColumnList<E>) -> Self {
        Self::new(Some(columns.positions()))
    }

    fn new(found_by: Option<Vec<usize>>) -> Self {
        Self {
            upsert: Upsert {
                found_by,
                set: Set::Others,
                is_unreported: false,
            },
            entity: PhantomData,
        }
    }

    /// Writes these columns alone where the row is there. Without this call, all are written but the key and those by
    /// which it was found.
    ///
    /// A column by which it was found may be among them: the values may differ although the database takes them for the
    /// same, such as by a collation that ignores case. The key's columns may not, and the list may not be empty: the
    /// flush then fails before it sends anything.
    #[must_use]
    pub fn set(mut self, columns: impl ColumnList<E>) -> Self {
        self.upsert.set = Set::Only(columns.positions());
        self
    }

    /// Leaves a row alone that is there: in a transaction that sees a snapshot, one that is there in the snapshot.
    #[must_use]
    pub fn ignore(mut self) -> Self {
        self.upsert.set = Set::Nothing;
        self
    }

    /// The flush need not say what became of the row. On MySQL, MariaDB and SQLite this saves statements if columns of existing
    /// rows are written. It changes nothing for rows that are to be [left alone](Self::ignore), and on other databases.
    ///
    /// A flush in its own transaction then writes 100 and more such rows by `INSERT .. ON DUPLICATE KEY UPDATE` or `INSERT .. ON
    /// CONFLICT`, without a question, if these do what is asked for: the columns by which rows are found are those of the
    /// table's only unique index, the row has values for all columns, and the table has no trigger before an insert (on
    /// SQLite, no trigger at all). Otherwise the rows are written as without this call. MySQL shows triggers only to users
    /// with the privilege `TRIGGER`: do not call this where such a trigger may be hidden.
    ///
    /// A row that is there has to be one that could be inserted: the database checks all of its values, not only those that
    /// are written. If two rows of a unit of work have the same values in these columns, the later one wins.
    ///
    /// [`Flushed::unreported`](crate::Flushed::unreported) counts the rows that were written in this way, and
    /// [`Flushed::upserted`](crate::Flushed::upserted) returns `None` for each of them.
    #[must_use]
    pub fn unreported(mut self) -> Self {
        self.upsert.is_unreported = true;
        self
    }

    /// Returns whether rows are found by other columns than the key's.
    pub(crate) fn finds_by_others(&self) -> bool
    where
        E: OrderedKey,
    {
        let is_of_key = |at: &usize| E::KEY_COLUMNS.contains(&E::COLUMNS[*at]);
        let found_by = self.upsert.found_by.as_ref();
        found_by.is_some_and(|it| it.len() != E::KEY_COLUMNS.len() || !it.iter().all(is_of_key))
    }

    pub(crate) fn into_upsert(self) -> Upsert {
        self.upsert
    }
}

/// Where there are several copies of a row, as in shards.
impl<E> Clone for OnConflict<E> {
    fn clone(&self) -> Self {
        Self {
            upsert: self.upsert.clone(),
            entity: PhantomData,
        }
    }
}
