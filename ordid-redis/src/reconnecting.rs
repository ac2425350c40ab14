//! An asynchronous connection that connects anew, wherever its server is by then.

use core::{fmt, future::Future, slice};
use std::sync::{Arc, Mutex, PoisonError};

use redis::{Cmd, Pipeline, RedisError, RedisFuture, RedisResult, Value, aio::ConnectionLike};

use crate::connection::{any_unconfirmed, is_for_another, is_unconfirmed};

/// A connection that a function opens at the first use. The function opens it anew if the connection failed, its
/// server takes no writes, or its replicas did not confirm (`WAIT`). It is for Sentinel, whose master changes; the
/// library's `ConnectionManager` connects to one address.
///
/// Clones share the connection. Requests fail while the connection is away; none is sent twice.
///
/// ```
/// use ordid_redis::Reconnecting;
/// use redis::sentinel::Sentinel;
///
/// let connection = Reconnecting::new(|| async {
///     let sentinels = vec!["redis://one:26379", "redis://two:26379", "redis://three:26379"];
///     let client = Sentinel::build(sentinels)?.async_master_for("shop", None).await?;
///     client.get_multiplexed_async_connection().await
/// });
/// ```
#[derive(Clone)]
pub struct Reconnecting<C>(Arc<Inner<C>>);

struct Inner<C> {
    connect: Box<dyn Fn() -> RedisFuture<'static, C> + Send + Sync>,
    open: Mutex<Option<C>>,
}

impl<C: ConnectionLike + Clone + Send + Sync + 'static> Reconnecting<C> {
    /// Makes a connection that this function opens each time.
    pub fn new<F, Connecting>(connect: F) -> Self
    where
        F: Fn() -> Connecting + Send + Sync + 'static,
        Connecting: Future<Output = RedisResult<C>> + Send + 'static,
    {
        Self(Arc::new(Inner {
            connect: Box::new(move || Box::pin(connect())),
            open: Mutex::new(None),
        }))
    }
}

impl<C: Clone> Reconnecting<C> {
    async fn connection(&self) -> RedisResult<C> {
        let open = self.lock(|open| open.clone());
        if let Some(open) = open {
            return Ok(open);
        }
        // Several may connect at once; the last one's is kept.
        let made = (self.0.connect)().await?;
        self.lock(|open| *open = Some(made.clone()));
        Ok(made)
    }

    fn lock<T>(&self, work: impl FnOnce(&mut Option<C>) -> T) -> T {
        work(&mut self.0.open.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn give_up(&self) {
        self.lock(|open| *open = None);
    }
}

/// Whether these answers say that another connection may do better.
fn are_for_another(answers: Result<&[Value], &RedisError>) -> bool {
    match answers {
        Ok(answers) => answers.iter().any(|answer| {
            // An error that the library leaves to whoever asked.
            matches!(answer, Value::ServerError(_))
                && answer
                    .clone()
                    .extract_error()
                    .is_err_and(|error| is_for_another(&error))
        }),
        Err(error) => is_for_another(error),
    }
}

impl<C: ConnectionLike + Clone + Send + Sync + 'static> ConnectionLike for Reconnecting<C> {
    fn req_packed_command<'a>(&'a mut self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        Box::pin(async move {
            let answer = self.connection().await?.req_packed_command(cmd).await;
            let is_unconfirmed = |answer| is_unconfirmed(cmd, answer);
            if are_for_another(answer.as_ref().map(slice::from_ref))
                || answer.as_ref().is_ok_and(is_unconfirmed)
            {
                self.give_up();
            }
            answer
        })
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        Box::pin(async move {
            let mut connection = self.connection().await?;
            let answers = connection
                .req_packed_commands(pipeline, offset, count)
                .await;
            // A transaction has other answers than one for each command.
            let has_all = offset == 0 && count == pipeline.len();
            let is_unconfirmed = |answers: &Vec<_>| has_all && any_unconfirmed(pipeline, answers);
            if are_for_another(answers.as_deref()) || answers.as_ref().is_ok_and(is_unconfirmed) {
                self.give_up();
            }
            answers
        })
    }

    fn get_db(&self) -> i64 {
        self.lock(|open| open.as_ref().map_or(0, ConnectionLike::get_db))
    }
}

impl<C> fmt::Debug for Reconnecting<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not what it connects to: it may hold a password.
        f.debug_struct("Reconnecting").finish_non_exhaustive()
    }
}
