//! Connections of tokio-postgres and of the crate `postgres`.

use ::tokio_postgres::{Client, Error, NoTls};
use ordid_tokio_postgres::{Flushed, UnitOfWork};

/// What the names of its tests begin with.
#[allow(dead_code, reason = "what the matrix does not need")]
pub const PREFIX: &str = "tokio_postgres::";

/// The names of the tests over the crate `postgres` begin with this.
#[allow(dead_code, reason = "what the matrix does not need")]
pub const BLOCKING: &str = "postgres_crate::";

/// Connects. A task reads what the server sends until the client is dropped.
pub async fn connect(url: &str) -> Result<Client, Error> {
    let (client, connection) = ::tokio_postgres::connect(url, NoTls).await?;
    ::tokio::spawn(connection);
    Ok(client)
}

/// Flushes over clients of its own.
#[allow(dead_code, reason = "what some tests do themselves")]
pub async fn flush(
    work: &mut UnitOfWork,
    url: String,
) -> Result<Flushed, ordid_tokio_postgres::Error> {
    work.flush_with(|| connect(&url)).await
}

/// Flushes over clients of the crate `postgres`, on a thread that may block.
#[allow(dead_code, reason = "what the matrix does not need")]
pub async fn flush_blocking(
    work: &mut UnitOfWork,
    url: String,
) -> Result<Flushed, ordid_tokio_postgres::Error> {
    on_thread(work, move |work| {
        work.flush_with_blocking(|| postgres::Client::connect(&url, NoTls).map(Box::new))
    })
    .await
}

/// Calls a function with this value on a thread that may block.
#[allow(dead_code, reason = "what the matrix does not need")]
pub async fn on_thread<W, T>(work: &mut W, call: impl FnOnce(&mut W) -> T + Send + 'static) -> T
where
    W: Default + Send + 'static,
    T: Send + 'static,
{
    let mut own = std::mem::take(work);
    let called = ::tokio::task::spawn_blocking(move || {
        let answer = call(&mut own);
        (own, answer)
    });
    let (own, answer) = called.await.expect("it does not panic");
    *work = own;
    answer
}
