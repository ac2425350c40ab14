//! Pools of mysql_async.

use mysql_async::{Opts, OptsBuilder, Pool, UrlError};
use ordid_mysql_async::{Error, Flushed, UnitOfWork};

/// What the names of its tests begin with.
#[allow(dead_code, reason = "what the matrix does not need")]
pub const PREFIX: &str = "mysql_async::";

/// Returns how to connect over TCP: mysql_async would look for the socket of a server on this machine, and go past a proxy.
pub fn options(url: &str) -> Result<OptsBuilder, UrlError> {
    let options = OptsBuilder::from_opts(Opts::from_url(url)?);
    Ok(options.prefer_socket(false))
}

/// Makes a pool, which connects when it is used.
#[allow(dead_code, reason = "what some tests do themselves")]
pub fn pool(url: &str) -> Pool {
    Pool::new(options(url).expect("it is the address of a server"))
}

/// Flushes over a pool of its own.
#[allow(dead_code, reason = "what some tests do themselves")]
pub async fn flush(work: &mut UnitOfWork, url: String) -> Result<Flushed, Error> {
    let pool = pool(&url);
    let outcome = work.flush(&pool).await;
    // Only a pool that nobody uses closes its connections.
    let _ = pool.disconnect().await;
    outcome
}
