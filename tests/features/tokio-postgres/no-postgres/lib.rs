//! Flushes over clients of the crate `postgres` without the feature of `ordid-tokio-postgres`.

use ordid_tokio_postgres::{Error, Flushed, UnitOfWork};
use postgres::{Client, NoTls, Transaction};

pub fn flush(work: &mut UnitOfWork, client: &mut Client) -> Result<Flushed, Error> {
    work.flush_blocking(client)
}

pub fn flush_in(
    work: &mut UnitOfWork,
    transaction: &mut Transaction<'_>,
) -> Result<Flushed, Error> {
    work.flush_in_blocking(transaction)
}

pub fn flush_with(work: &mut UnitOfWork, url: &str) -> Result<Flushed, Error> {
    work.flush_with_blocking(|| Client::connect(url, NoTls).map(Box::new))
}
