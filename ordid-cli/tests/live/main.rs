//! Runs the command `ordid` on live databases.
//!
//! Servers are those of `ordid_harness`: private ones, those that `ORDID_TEST_POSTGRES_URL`, `ORDID_TEST_MARIADB_URL` and
//! `ORDID_TEST_MYSQL_URL` name, or none; then the tests count as ignored, with the reason.

mod advise;
mod bench;
mod doctor;
mod r#move;
mod partition;
mod place;
mod sql;

use libtest_mimic::Arguments;
use place::Servers;

fn main() {
    let mut arguments = Arguments::from_args();
    // More than cores, as they wait for servers.
    arguments.test_threads.get_or_insert(4);
    let servers = Servers::find(!arguments.list);
    let mut trials = Vec::new();
    advise::trials(&servers, &mut trials);
    bench::trials(&servers, &mut trials);
    doctor::trials(&servers, &mut trials);
    r#move::trials(&servers, &mut trials);
    partition::trials(&servers, &mut trials);
    sql::trials(&servers, &mut trials);
    libtest_mimic::run(&arguments, trials).exit();
}
