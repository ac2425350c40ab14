//! Flushes a unit of work when it is told to, and says how that ended: what fault tests kill, or
//! starve of disk.
//!
//! `flush_unit URL ..` is what [`kill::run`] says.

use std::process::ExitCode;

use ordid_sqlx::UnitOfWork;
use ordid_tests::{faults::kill, trials::Outcome};
use sqlx::{MySql, Postgres, Sqlite};

fn main() -> ExitCode {
    ordid_harness::conclude(run())
}

fn run() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let Some((url, what)) = arguments.split_first() else {
        return Err("usage: flush_unit URL new|change|resume ..".into());
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    match url.split_once(':').map_or("", |(scheme, _)| scheme) {
        "postgres" => runtime.block_on(kill::run::<UnitOfWork<Postgres>>(url, what)),
        "mysql" => runtime.block_on(kill::run::<UnitOfWork<MySql>>(url, what)),
        "sqlite" => runtime.block_on(kill::run::<UnitOfWork<Sqlite>>(url, what)),
        _ => Err(format!("no database that is known: {url}").into()),
    }
}
