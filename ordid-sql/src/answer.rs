//! The answer to a statement of leases, counters and mapping tables.

/// The answer to a statement; its rows have integers unless another type is named.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Answer<R = Vec<i64>> {
    /// The rows of a query; of a change in a dialect that says how many rows that were, its one number.
    pub rows: Vec<R>,
    /// How many rows were changed.
    pub changed: u64,
    /// MySQL's `LAST_INSERT_ID`.
    pub last_id: u64,
}
