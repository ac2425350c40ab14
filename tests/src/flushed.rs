//! Short forms of the report of a flush.

use std::fmt::Display;

use ordid_sql::Flushed;

/// Returns the tables in their order, with the number of rows and of statements of each.
pub fn tables(flushed: &Flushed) -> Vec<(&'static str, usize, usize)> {
    let tables = flushed.tables.iter();
    tables
        .map(|it| (it.table, it.rows, it.statements))
        .collect()
}

/// Returns the rows of the only table, and how many of them were copied.
pub fn copied(flushed: &Flushed) -> (usize, usize) {
    (flushed.tables[0].rows, flushed.tables[0].bulk)
}

/// Asserts that the first of two shards wrote this number of rows, and that the second one lacks the table.
///
/// # Panics
///
/// Panics if this is not so.
#[track_caller]
pub fn assert_first_alone(outcomes: &[Result<Flushed, impl Display>], rows: usize) {
    let [Ok(first), Err(second)] = outcomes else {
        panic!("one of two failed, the second");
    };
    assert_eq!(first.rows(), rows);
    assert!(second.to_string().contains("no such table"), "{second}");
}
