//! Flushes over a pool without its feature of `ordid-tokio-postgres`.

use ordid_tokio_postgres::{Error, Flushed, UnitOfWork};

pub async fn flush(
    work: &mut UnitOfWork,
    pool: &deadpool_postgres::Pool,
) -> Result<Flushed, Error> {
    work.flush_with(|| pool.get()).await
}
