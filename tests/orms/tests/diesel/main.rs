//! Every claim about Diesel, on the databases: PostgreSQL and MariaDB (MySQL for what differs there) on private servers,
//! over the C clients, and SQLite in files.

mod async_work;
mod copy;
mod engine;
mod keys;
mod mariadb;
mod migrations;
mod observed;
mod pgbouncer;
mod postgres;
mod print_schema;
mod retries;
mod scratch;
mod shards;
mod sqlite;
mod tables;
mod two_phase;
mod upserts;
mod work;

use ordid_tests::trials::{Outcome, run_all};

/// Connects as a test expects it.
fn establish<C: diesel::Connection>(url: &str) -> diesel::ConnectionResult<C> {
    C::establish(url)
}

/// A test on an empty database, whose address it gets.
type Test = fn(&str) -> Outcome;

fn main() {
    ordid_tests::told::listen();
    run_all(
        &["postgres", "pgbouncer", "pgbouncer_2", "mariadb", "mysql"],
        |servers, trials| {
            postgres::trials(servers, trials);
            pgbouncer::trials(servers, trials);
            copy::trials(servers, trials);
            mariadb::trials(servers, trials);
            sqlite::trials(trials);
            observed::trials(trials);
            shards::trials(trials);
            two_phase::trials(servers, trials);
        },
    );
}
