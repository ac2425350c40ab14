//! A connection to Redis, asynchronous or not, as the parts of this crate use it.

use core::{
    fmt,
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
    time::Duration,
};
use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
};

use ordid_core::Error;
use redis::{
    Client, FromRedisValue, RedisError, RedisResult, ScriptInvocation, Value, aio::ConnectionLike,
    from_redis_value,
};

use crate::error::failed;

/// What the parts of this crate speak over: each asynchronous connection of the library
/// (`ConnectionManager`, which connects anew, is the one to choose; `MultiplexedConnection`,
/// `ClusterConnection`), and [`Blocking`].
pub trait Connection: sealed::Sealed + Send + Sync {}

pub(crate) mod sealed {
    use super::{Future, RedisResult, ScriptInvocation, Value};

    pub trait Sealed {
        /// Runs a script, and loads it if the server does not know it yet.
        fn run(
            &self,
            script: &ScriptInvocation<'_>,
        ) -> impl Future<Output = RedisResult<Value>> + Send;
    }
}

impl<C: ConnectionLike + Clone + Send + Sync> sealed::Sealed for C {
    async fn run(&self, script: &ScriptInvocation<'_>) -> RedisResult<Value> {
        script.invoke_async(&mut self.clone()).await
    }
}

impl<C: ConnectionLike + Clone + Send + Sync> Connection for C {}

/// A connection for threads: it is made when it is first used, and made anew after one that failed.
///
/// One call at a time; others wait. Clones share the connection. In the child of a fork each call is an
/// error: make another there.
#[derive(Clone)]
pub struct Blocking(Arc<Inner>);

struct Inner {
    client: Client,
    timeout: Duration,
    process: u32,
    open: Mutex<Option<redis::Connection>>,
}

/// Refuses a connection of the process that was forked: parent and child would hear each other's answers,
/// and the one that asked for ten numbers take the answer to a thousand.
fn check_process(owner: u32) -> io::Result<()> {
    let process = std::process::id();
    if process == owner {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "the connection is of process {owner}, and this is its fork {process}: make another in the child"
    )))
}

impl Blocking {
    /// Of this client, with this long to connect, and as long for each answer.
    pub fn new(client: Client, timeout: Duration) -> Self {
        Self(Arc::new(Inner {
            client,
            timeout,
            process: std::process::id(),
            open: Mutex::new(None),
        }))
    }
}

impl Inner {
    fn connect(&self) -> RedisResult<redis::Connection> {
        let connection = self.client.get_connection_with_timeout(self.timeout)?;
        connection.set_read_timeout(Some(self.timeout))?;
        connection.set_write_timeout(Some(self.timeout))?;
        Ok(connection)
    }
}

impl fmt::Debug for Blocking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the client: it may hold a password.
        f.debug_struct("Blocking")
            .field("timeout", &self.0.timeout)
            .finish_non_exhaustive()
    }
}

impl sealed::Sealed for Blocking {
    async fn run(&self, script: &ScriptInvocation<'_>) -> RedisResult<Value> {
        // Before the lock: a fork may have left it locked.
        check_process(self.0.process)?;
        let mut open = self.0.open.lock().unwrap_or_else(PoisonError::into_inner);
        let mut connection = match open.take() {
            Some(connection) => connection,
            None => self.0.connect()?,
        };
        let result = script.invoke(&mut connection);
        // An answer that comes late must not be read as the next one's.
        if !result.as_ref().is_err_and(RedisError::is_io_error) {
            *open = Some(connection);
        }
        result
    }
}

impl Connection for Blocking {}

/// A key, and how to get there.
#[derive(Debug, Clone)]
pub(crate) struct Store<C> {
    connection: C,
    /// Most connections cannot tell: then whose this is stands for it.
    process: u32,
    pub(crate) key: String,
}

impl<C: Connection> Store<C> {
    pub(crate) fn new(connection: C, key: String) -> Self {
        Self {
            connection,
            process: std::process::id(),
            key,
        }
    }

    pub(crate) async fn ask<T: FromRedisValue>(
        &self,
        script: &ScriptInvocation<'_>,
    ) -> Result<T, Error> {
        let failed = |error| failed(&self.key, &error);
        check_process(self.process).map_err(|error| failed(error.into()))?;
        let value: Value = self.connection.run(script).await.map_err(failed)?;
        from_redis_value(value).map_err(|error| failed(error.into()))
    }
}

/// Runs what waits inside its calls, as [`Blocking`] does, and so is never pending.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    match future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    {
        Poll::Ready(value) => value,
        Poll::Pending => unreachable!("a blocking connection is never pending"),
    }
}
