//! Private database servers for the tests and benches of ordid.
//!
//! [`postgres`], [`mariadb`] and [`h2`] each start a fresh server from the binaries of the installed
//! package: on a free port of 127.0.0.1, with its data in a new temporary folder, and with
//! nothing shared with a server that the machine may already run. The [`Server`] they return
//! stops the server and removes the folder when it is dropped.
//!
//! The server also goes when nothing gets dropped - a panic that aborts, Ctrl-C, `kill -9`:
//!
//! ```text
//!   test process ──pipe──> watchdog (sh, a process group of its own)
//!                            ├─ first: the commands that create the data folder
//!                            └─ then:  the server
//! ```
//!
//! The watchdog holds the reading end of a pipe. The other end belongs to this process alone, so
//! the kernel closes it when this process ends, however it ends; the watchdog then stops the
//! server (politely first) and removes the folder.
//!
//! [`access`] adds the policy that live tests follow: which server is used, started or skipped,
//! according to the environment (see [`Policy`]).
//!
//! # Adding a server
//!
//! One file per server. It implements `Recipe`: where the binaries are, the commands which
//! prepare and serve, and how to tell that the server answers. Everything else is shared.

#![forbid(unsafe_code)]

mod error;
mod find;
mod h2;
mod mariadb;
mod policy;
mod postgres;
mod process;
mod server;

pub use error::Error;
pub use policy::{Access, Policy, access, policy, policy_from};
pub use server::Server;

use server::Recipe;

/// Starts a private PostgreSQL server.
///
/// The URL names the superuser `postgres` and the database `postgres`, with no password. The
/// encoding is UTF-8, the default collation is `C.UTF-8`, and `fsync` is on.
///
/// # Errors
///
/// When PostgreSQL is not installed ([`Error::package`] then names the package), or does not
/// start; the error quotes the end of the server's log.
pub fn postgres() -> Result<Server, Error> {
    Server::start(postgres::Postgres::find()?)
}

/// Starts a private MariaDB server.
///
/// The URL names the user `root` and the database `mysql`, with no password. InnoDB has its
/// default, durable settings.
///
/// # Errors
///
/// When MariaDB is not installed ([`Error::package`] then names the package), or does not start;
/// the error quotes the end of the server's log.
pub fn mariadb() -> Result<Server, Error> {
    Server::start(mariadb::MariaDb::find()?)
}

/// Starts a private H2 server, which emulates other databases: append `;MODE=Oracle` to the URL.
///
/// The URL is JDBC's, for the user `sa` with no password; [`h2_script`] takes it. Any database in
/// the place of `ordid` is created when it is first named.
///
/// # Errors
///
/// When Java or H2 is not installed ([`Error::package`] then names the packages), or the server
/// does not start; the error quotes the end of the server's log.
pub fn h2() -> Result<Server, Error> {
    Server::start(h2::H2::find()?)
}

/// Runs a script in H2 and returns the rows of its queries, each as one line with a space between
/// the values. Select what has no spaces and no line ends.
///
/// # Errors
///
/// When Java or H2 is not installed, and at the first statement that fails, in H2's words.
pub fn h2_script(url: &str, script: &str) -> Result<Vec<String>, Error> {
    h2::H2::find()?.script(url, script)
}

/// Starts the private server of this name: `postgres`, `mariadb` or `h2`, or `postgres_2`, which is
/// one more PostgreSQL, for what takes two of them.
///
/// # Errors
///
/// As [`postgres`], [`mariadb`] and [`h2`], and when servers of this name are not started privately.
pub fn start(name: &str) -> Result<Server, Error> {
    match name {
        "postgres" | "postgres_2" => postgres(),
        "mariadb" => mariadb(),
        "h2" => h2(),
        _ => Err(not_private(name)),
    }
}

/// Returns the version text of the installed server of this name, without starting it.
///
/// # Errors
///
/// When the server is not installed; [`Error::package`] then names what to install.
pub fn installed(name: &str) -> Result<String, Error> {
    match name {
        "postgres" | "postgres_2" => {
            postgres::Postgres::find().map(|found| found.version().to_owned())
        }
        "mariadb" => mariadb::MariaDb::find().map(|found| found.version().to_owned()),
        "h2" => h2::H2::find().map(|found| found.version().to_owned()),
        _ => Err(not_private(name)),
    }
}

fn not_private(name: &str) -> Error {
    Error::new(format!(
        "no private server is called `{name}`: use `postgres`, `postgres_2`, `mariadb` or `h2`"
    ))
}
