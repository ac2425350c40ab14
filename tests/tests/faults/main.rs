//! Faults of the world, on real servers and with real processes, and the law that must hold after
//! each of them: see [`ordid_tests::faults`]. Here are those of `ordid-sqlx`: the scripts that run over
//! every library's unit of work, and those of what the others do not have.
//!
//! Each test has a short form; `cargo xtask soak` runs the long one in its place.

mod connection;
mod disk;

use std::process::Command;

use ordid_tests::{
    faults::{
        Sqlx, cluster, commit, cut, deadlock, ended, journal, kill, language, limits, markers,
        memory, refused, restart, standby, truth,
    },
    trials::run_all,
};

fn main() {
    run_all(&["postgres", "mariadb", "mysql"], |servers, trials| {
        cut::trials::<Sqlx>(servers, trials);
        commit::trials::<Sqlx>(servers, trials);
        connection::trials(servers, trials);
        restart::trials::<Sqlx>(servers, trials);
        kill::trials::<Sqlx>(servers, trials, program);
        journal::trials::<Sqlx>(servers, trials, program);
        deadlock::trials::<Sqlx>(servers, trials);
        ended::trials::<Sqlx>(servers, trials);
        markers::trials::<Sqlx>(servers, trials);
        refused::trials::<Sqlx>(servers, trials);
        language::trials::<Sqlx>(servers, trials);
        limits::trials::<Sqlx>(servers, trials);
        memory::trials::<Sqlx>(servers, trials, program);
        truth::trials::<Sqlx>(servers, trials);
        standby::trials::<Sqlx>(servers, trials);
        for kind in cluster::Kind::ALL {
            let cluster = cluster::Cluster::find(kind).expect("the names of servers are known");
            cluster::trials::<Sqlx>(&cluster, trials);
        }
        disk::trials(trials);
    });
}

/// What is killed, or starved of disk.
fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_flush_unit"))
}
