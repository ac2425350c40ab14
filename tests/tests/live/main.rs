//! Every claim about a database, on that database: PostgreSQL, MariaDB and MySQL on private servers,
//! SQLite in files.

/// Adds functions as tests on SQLite, under their own names.
macro_rules! sqlite_tests {
    ($trials:ident; $($name:ident),+ $(,)?) => {$(
        crate::sqlite::add($trials, stringify!($name), $name);
    )+};
}

mod changes;
mod coexistence;
mod copy;
mod database;
mod dsql;
mod engine;
mod flush;
mod follower;
mod guide;
mod instagram;
mod journal;
mod keys;
mod mariadb;
mod mysql;
mod native;
mod own;
mod pages;
mod partitions;
mod pgbouncer;
mod postgres;
mod retry;
mod settings;
mod shards;
mod spread;
mod sqlite;
mod staged;
mod tenants;
mod traps;
mod upserts;
mod versions;

use ordid_sqlx::UnitOfWork;
use ordid_tests::{
    graphs,
    trials::{Outcome, ignored, on_scratch, run, run_all},
};
use sqlx::{MySql, Postgres, Sqlite};

fn main() {
    journal::run_if_told();
    shards::run_if_told();
    run_all(
        &["postgres", "pgbouncer", "mariadb", "mysql"],
        |servers, trials| {
            sqlite::trials(trials);
            postgres::trials(servers, trials);
            copy::trials(servers, trials);
            graphs::trials::<UnitOfWork<Sqlite>, UnitOfWork<Postgres>, UnitOfWork<MySql>>(
                servers, trials,
            );
            graphs::trials_of_checks(servers, trials);
            dsql::trials(servers, trials);
            follower::trials(servers, trials);
            instagram::trials(servers, trials);
            journal::trials(servers, trials);
            mariadb::trials(servers, trials);
            mysql::trials(servers, trials);
            native::trials(servers, trials);
            pages::trials(servers, trials);
            partitions::trials(servers, trials);
            pgbouncer::trials(servers, trials);
            retry::trials(servers, trials);
            settings::trials(servers, trials);
            spread::trials(servers, trials);
            staged::trials(servers, trials);
            coexistence::trials(servers, trials);
            guide::trials(servers, trials);
            tenants::trials(servers, trials);
            traps::trials(servers, trials);
            upserts::trials(servers, trials);
            versions::trials(servers, trials);
            shards::trials(servers, trials);
        },
    );
}
