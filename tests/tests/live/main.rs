//! Every claim about a database, on that database: PostgreSQL and MariaDB on private servers,
//! SQLite in files, MySQL 8 where `ORDID_TEST_MYSQL_URL` names one.

mod changes;
mod coexistence;
mod copy;
mod engine;
mod flush;
mod instagram;
mod journal;
mod keys;
mod mariadb;
mod mysql;
mod own;
mod postgres;
mod retry;
mod shards;
mod sqlite;
mod traps;

use libtest_mimic::Trial;
use ordid_sqlx::UnitOfWork;
use ordid_tests::{
    graphs,
    trials::{Outcome, ignored, on_scratch, run, run_all},
};
use sqlx::{Postgres, Sqlite};

fn main() {
    journal::run_if_told();
    run_all(&["postgres", "mariadb", "mysql"], |servers, trials| {
        sqlite::trials(trials);
        postgres::trials(servers, trials);
        copy::trials(servers, trials);
        graphs::trials::<UnitOfWork<Sqlite>, UnitOfWork<Postgres>>(servers, trials);
        trials.push(Trial::test(
            "sqlite::a_row_without_its_parent_is_refused",
            || run(graphs::a_row_without_its_parent_is_refused),
        ));
        instagram::trials(servers, trials);
        journal::trials(servers, trials);
        mariadb::trials(servers, trials);
        mysql::trials(servers, trials);
        retry::trials(servers, trials);
        coexistence::trials(servers, trials);
        traps::trials(servers, trials);
        shards::trials(servers, trials);
    });
}
