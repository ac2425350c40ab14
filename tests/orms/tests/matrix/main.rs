//! The same rows through `SQLx`, Diesel, diesel-async, `SeaORM` and, on PostgreSQL,
//! tokio-postgres: what one of them writes into a table,
//! another reads, orders, follows, changes and deletes. A test's name says the database, the column of the
//! keys, who writes, and who reads and changes.
//!
//! A library more is one more implementation of [`library::Library`], a name in [`library::NAMES`], and what
//! `test` in `engine.rs` makes of that name.

/// Adds rows to a unit of work, whose methods are named alike: children first, and deletes parents first.
macro_rules! fill {
    ($work:ident, $rows:ident) => {
        let Work {
            new,
            changed,
            deleted,
        } = $rows;
        for book in new.books.iter().cloned() {
            $work.add(book);
        }
        for person in new.people.iter().cloned() {
            $work.add(person);
        }
        for book in changed.books.iter().cloned() {
            $work.update(book);
        }
        for person in changed.people.iter().cloned() {
            $work.update(person);
        }
        for person in &deleted.people {
            $work.delete(person);
        }
        for book in &deleted.books {
            $work.delete(book);
        }
    };
}

mod column;
#[path = "../shared/connect.rs"]
mod connect;
mod engine;
#[path = "../shared/establish.rs"]
mod establish;
mod library;
#[path = "../shared/tokio.rs"]
mod tokio;

use ordid_tests::trials::run_all;

fn main() {
    run_all(&["postgres", "mariadb"], |servers, trials| {
        engine::postgres::trials(servers, trials);
        engine::mariadb::trials(servers, trials);
        engine::sqlite::trials(trials);
    });
}
