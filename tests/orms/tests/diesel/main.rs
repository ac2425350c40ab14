//! Every claim about Diesel, on the databases: PostgreSQL and MariaDB on private servers, over the C
//! clients, and SQLite in files.

mod engine;
mod keys;
mod mariadb;
mod migrations;
mod postgres;
mod scratch;
mod sqlite;
mod work;

use ordid_tests::trials::{Outcome, run_all};

fn main() {
    run_all(&["postgres", "mariadb"], |servers, trials| {
        postgres::trials(servers, trials);
        mariadb::trials(servers, trials);
        sqlite::trials(trials);
    });
}
