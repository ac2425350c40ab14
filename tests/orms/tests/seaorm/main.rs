//! `ordid-seaorm` on PostgreSQL and MariaDB on private servers, and on SQLite in files: the same tests on
//! each, since SeaORM's connection is one type for all.

/// Adds functions as tests, under their names behind this one.
macro_rules! all {
    ($to:ident.$add:ident, $module:literal; $($name:ident),+ $(,)?) => {$(
        $to.$add(concat!($module, stringify!($name)), $name);
    )+};
}

mod bulk;
#[path = "../shared/connect.rs"]
mod connect;
mod drops;
mod faults;
mod keys;
mod models;
mod nested;
mod observed;
mod parents;
mod pgbouncer;
mod saves;
mod schema;
mod shards;
mod updates;
mod values;
mod work;

use std::future::Future;

use libtest_mimic::Trial;
use ordid_tests::{
    servers::{Scratch, Servers},
    trials::{Outcome, on_scratch, over_sqlite, run, run_all, sqlite_file},
};
use sea_orm::{ConnectionTrait, DatabaseConnection, DbBackend, EntityTrait};
use sqlx::{MySql, Postgres, Sqlite};

use crate::connect::Connect;

fn main() {
    ordid_tests::told::listen();
    run_all(
        &["postgres", "mariadb", "pgbouncer_2"],
        |servers, trials| {
            let mut databases = Databases { servers, trials };
            for add in [
                keys::add,
                saves::add,
                nested::add,
                parents::add,
                bulk::add,
                work::add,
                updates::add,
                values::add,
                faults::add,
                drops::add,
                observed::add,
                schema::add,
                shards::add,
                pgbouncer::add,
            ] {
                add(&mut databases);
            }
        },
    );
}

/// Adds tests for the databases on which they run.
struct Databases<'a> {
    servers: &'a Servers,
    trials: &'a mut Vec<Trial>,
}

/// A test over a connection.
trait Test<F>: FnOnce(DatabaseConnection) -> F + Copy + Send + 'static {}

impl<F, T: FnOnce(DatabaseConnection) -> F + Copy + Send + 'static> Test<F> for T {}

impl Databases<'_> {
    fn on_server<DB: Scratch + Connect, F: Future<Output = Outcome>>(
        &mut self,
        server: &'static str,
        name: &str,
        test: impl Test<F>,
    ) {
        on_scratch::<DB, _, _>(self.trials, self.servers, server, name, move |pool| {
            test(DB::connect(pool))
        });
    }

    /// Adds a test for a private PostgreSQL.
    fn on_postgres<F: Future<Output = Outcome>>(&mut self, name: &str, test: impl Test<F>) {
        self.on_server::<Postgres, F>("postgres", name, test);
    }

    /// Adds a test for a private MariaDB.
    fn on_mariadb<F: Future<Output = Outcome>>(&mut self, name: &str, test: impl Test<F>) {
        self.on_server::<MySql, F>("mariadb", name, test);
    }

    /// Adds a test for SQLite, with a new file.
    fn on_sqlite<F: Future<Output = Outcome>>(&mut self, name: &str, test: impl Test<F>) {
        self.trials
            .push(Trial::test(format!("sqlite::{name}"), move || {
                run(async || {
                    let (_folder, options) = sqlite_file()?;
                    over_sqlite(options, 4, |pool| test(Sqlite::connect(pool))).await
                })
            }));
    }

    /// Adds a test for each server.
    fn on_servers<F: Future<Output = Outcome>>(&mut self, name: &str, test: impl Test<F>) {
        self.on_postgres(name, test);
        self.on_mariadb(name, test);
    }

    /// Adds a test for each database.
    fn on_all<F: Future<Output = Outcome>>(&mut self, name: &str, test: impl Test<F>) {
        self.on_servers(name, test);
        self.on_sqlite(name, test);
    }
}

/// Makes the table of an entity.
async fn create<E: EntityTrait>(db: &DatabaseConnection, entity: E) -> Outcome {
    let table = ordid_seaorm::create_table(db.get_database_backend(), entity);
    db.execute(&table).await?;
    Ok(())
}

fn is_mysql(db: &DatabaseConnection) -> bool {
    db.get_database_backend() == DbBackend::MySql
}
