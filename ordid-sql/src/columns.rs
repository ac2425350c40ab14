//! Which of a row's columns a statement takes.

/// Which of the columns that [`Fields`](ordid_core::entity::Fields) hands over a row takes. Numbers are
/// positions in [`OrderedKey::COLUMNS`](ordid_core::entity::OrderedKey::COLUMNS), and rise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Columns<'a> {
    /// All of them.
    All,
    /// All of them, but NULL in these, whatever the value.
    Without(&'a [usize]),
    /// These, and the others are skipped.
    Only(&'a [usize]),
    /// These, whose values alone are handed over, in this order: the key, and perhaps the version that the row was read
    /// with, whose position is behind all columns.
    Given(&'a [usize]),
}

/// What a sink does with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Take {
    /// It takes it.
    Value,
    /// It takes NULL in its place.
    Null,
    /// It leaves it out.
    Skip,
}

/// What a sink keeps of [`Columns`] while it takes a row.
///
/// # Example
///
/// ```
/// use ordid_sql::{ColumnMask, Columns, Take};
///
/// let mut mask = ColumnMask::default();
/// mask.begin(Columns::Without(&[1]));
/// assert_eq!([mask.take(), mask.take()], [Take::Value, Take::Null]);
/// mask.begin(Columns::Only(&[1]));
/// assert_eq!([mask.take(), mask.take()], [Take::Skip, Take::Value]);
/// ```
#[derive(Debug, Clone, Default)]
pub struct ColumnMask {
    /// Empty where all columns are taken.
    listed: Vec<usize>,
    /// What becomes of a column that is listed, and of one that is not.
    takes: Option<(Take, Take)>,
    column: usize,
}

impl ColumnMask {
    /// Begins a row.
    #[inline]
    pub fn begin(&mut self, columns: Columns<'_>) {
        self.column = 0;
        let (listed, takes) = match columns {
            Columns::All | Columns::Given(_) => {
                self.takes = None;
                return;
            }
            Columns::Without(listed) => (listed, (Take::Null, Take::Value)),
            Columns::Only(listed) => (listed, (Take::Value, Take::Skip)),
        };
        self.takes = Some(takes);
        self.listed.clear();
        self.listed.extend_from_slice(listed);
    }

    /// Says what to do with the value of the row's next column.
    #[inline]
    pub fn take(&mut self) -> Take {
        let Some((listed, other)) = self.takes else {
            return Take::Value;
        };
        let is_listed = self.listed.contains(&self.column);
        self.column += 1;
        if is_listed { listed } else { other }
    }
}
