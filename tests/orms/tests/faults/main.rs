//! The faults that `ordid-sqlx` is held against, and the law that must hold after each of them, for the
//! units of work of Diesel, diesel-async, `SeaORM`, rusqlite, tokio-postgres and mysql_async: see [`ordid_tests::faults`].
//!
//! Each test has a short form; `cargo xtask soak` runs the long one in its place.

#[path = "../shared/connect.rs"]
mod connect;
mod diesel;
#[path = "../shared/establish.rs"]
mod establish;
mod keys;
#[path = "../shared/lite.rs"]
mod lite;
#[path = "../shared/mysql.rs"]
mod mysql;
#[path = "../shared/over.rs"]
mod over;
mod plain;
mod seaorm;
mod silence;
#[path = "../shared/tokio.rs"]
mod tokio;
#[path = "../shared/works.rs"]
mod works;
use std::{
    process::{Command, ExitCode},
    str::FromStr,
    time::Duration,
};

use libtest_mimic::Trial;
use ordid_tests::{
    faults::{
        Flusher, Library, cluster, commit, cut, deadlock, ended, journal, kill, language, limits,
        markers, memory, refused, restart, settings, standby, truth,
    },
    servers::{Options, Servers},
    trials::{Outcome, leave_mysql_to_the_soak, run_all},
};
use sqlx::Sqlite;

/// Says that this process is one to be killed, and of which library.
const FLUSH: &str = "ORDID_TEST_FLUSH";

/// How long rusqlite waits for a lock: not at all, as Diesel's connections, so that what a lock does to a
/// flush is seen at once.
const SQLITE_WAIT: Duration = Duration::ZERO;

fn main() -> ExitCode {
    let Some(library) = std::env::var_os(FLUSH) else {
        run_all(&["postgres", "mariadb", "mysql"], |servers, trials| {
            for kind in cluster::Kind::ALL {
                let cluster = cluster::Cluster::find(kind).expect("the names of servers are known");
                cluster::trials::<diesel::Diesel>(&cluster, trials);
                cluster::trials::<diesel::DieselAsync>(&cluster, trials);
                cluster::trials::<seaorm::SeaOrm>(&cluster, trials);
                cluster::trials::<works::MysqlAsync>(&cluster, trials);
            }
            silence::trials(servers, trials);
            with_journals::<diesel::Diesel>(servers, trials, || program("diesel"));
            with_journals::<diesel::DieselAsync>(servers, trials, || program("diesel_async"));
            of::<seaorm::SeaOrm>(servers, trials, || program("seaorm"));
            on_files::<works::Rusqlite>(trials, || program("rusqlite"));
            journal::on_files::<works::Rusqlite>(trials, || program("rusqlite"));
            let mut all = Vec::new();
            with_journals::<works::TokioPostgres>(servers, &mut all, || program("tokio_postgres"));
            with_journals::<works::PostgresCrate>(servers, &mut all, || program("postgres_crate"));
            with_journals::<works::MysqlAsync>(servers, &mut all, || program("mysql_async"));
            // The others are `SQLx`'s.
            let own = |trial: &Trial| {
                let prefixes = [tokio::PREFIX, tokio::BLOCKING, mysql::PREFIX];
                prefixes.iter().any(|prefix| trial.name().contains(prefix))
            };
            trials.extend(all.into_iter().filter(own));
            leave_mysql_to_the_soak(trials);
        });
    };
    let outcome = match &*library.to_string_lossy() {
        "diesel" => flush::<diesel::Diesel>(),
        "diesel_async" => flush::<diesel::DieselAsync>(),
        "mysql_async" => flush::<works::MysqlAsync>(),
        "rusqlite" => flush_to::<works::Rusqlite>(),
        "tokio_postgres" => flush::<works::TokioPostgres>(),
        "postgres_crate" => flush::<works::PostgresCrate>(),
        _ => flush::<seaorm::SeaOrm>(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn of<L: Library>(servers: &Servers, trials: &mut Vec<Trial>, program: kill::Program) {
    cut::trials::<L>(servers, trials);
    commit::trials::<L>(servers, trials);
    restart::trials::<L>(servers, trials);
    settings::trials::<L>(servers, trials);
    kill::trials::<L>(servers, trials, program);
    deadlock::trials::<L>(servers, trials);
    ended::trials::<L>(servers, trials);
    markers::trials::<L>(servers, trials);
    refused::trials::<L>(servers, trials);
    language::trials::<L>(servers, trials);
    limits::trials::<L>(servers, trials);
    memory::trials::<L>(servers, trials, program);
    truth::trials::<L>(servers, trials);
    standby::trials::<L>(servers, trials);
}

/// Adds the tests of a library that has journals.
fn with_journals<L: Library>(servers: &Servers, trials: &mut Vec<Trial>, program: kill::Program) {
    of::<L>(servers, trials, program);
    journal::trials::<L>(servers, trials, program);
}

/// Of a library that has SQLite alone.
fn on_files<W: Flusher<Database = Sqlite>>(trials: &mut Vec<Trial>, program: kill::Program) {
    kill::on_files::<W>(trials, program);
    deadlock::on_files::<W>(trials);
    markers::on_files::<W>(trials);
    memory::on_files::<W>(trials, program);
    refused::on_files::<W>(trials);
    truth::on_files::<W>(trials);
}

/// This program, to be killed.
fn program(library: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("it is running"));
    command.env(FLUSH, library);
    command
}

/// What it does then.
fn flush<L: Library>() -> Outcome {
    let url = std::env::args().nth(1).ok_or("no address")?;
    match url.split_once(':').map_or("", |(scheme, _)| scheme) {
        "postgres" => flush_to::<L::Postgres>(),
        "mysql" => flush_to::<L::MySql>(),
        _ => flush_to::<L::Sqlite>(),
    }
}

/// What it does for a database.
fn flush_to<W: Flusher>() -> Outcome
where
    Options<W::Database>: FromStr<Err = sqlx::Error>,
{
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (url, what) = arguments.split_first().ok_or("no address")?;
    let runtime = ::tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(kill::run::<W>(url, what))
}
