//! What a statement of leases, counters and mapping tables returns.

/// What a statement has returned, in rows of integers unless said otherwise.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Answer<R = Vec<i64>> {
    /// The rows of a query; of a change in a dialect that says how many rows that were, its one number.
    pub rows: Vec<R>,
    /// How many rows were changed.
    pub changed: u64,
    /// MySQL's `LAST_INSERT_ID`.
    pub last_id: u64,
}
