//! A connection to Redis, asynchronous or not, as the parts of this crate use it.

use core::{
    fmt,
    future::Future,
    num::NonZeroU32,
    pin::pin,
    task::{Context, Poll, Waker},
    time::Duration,
};
use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
};

use ordid_core::{
    __private::{Process, process},
    Error,
    coordination::CoordinationFailure,
};
use redis::{
    Arg, Client, Cmd, ErrorKind, FromRedisValue, Pipeline, RedisError, RedisResult,
    ScriptInvocation, ServerErrorKind, Value, aio::ConnectionLike, from_redis_value,
};

use crate::error::failed;

/// What the parts of this crate speak over: each asynchronous connection of the library
/// (`ConnectionManager`, which connects anew, is the one to choose for one server, `ClusterConnection` for a
/// cluster), [`Reconnecting`](crate::Reconnecting) for Sentinel, and [`Blocking`].
pub trait Connection: sealed::Sealed + Send + Sync {}

pub(crate) mod sealed {
    use super::{Future, Pipeline, RedisResult, ScriptInvocation, Value};

    pub trait Sealed {
        /// Runs a script, and loads it if the server does not know it yet.
        fn run(
            &self,
            script: &ScriptInvocation<'_>,
        ) -> impl Future<Output = RedisResult<Value>> + Send;

        /// Runs a pipeline of which this script is a part, as [`run`](Self::run) does. Returns all answers.
        fn run_all(
            &self,
            script: &ScriptInvocation<'_>,
            calls: &Pipeline,
        ) -> impl Future<Output = RedisResult<Vec<Value>>> + Send;
    }
}

impl<C: ConnectionLike + Clone + Send + Sync> sealed::Sealed for C {
    async fn run(&self, script: &ScriptInvocation<'_>) -> RedisResult<Value> {
        script.invoke_async(&mut self.clone()).await
    }

    async fn run_all(
        &self,
        script: &ScriptInvocation<'_>,
        calls: &Pipeline,
    ) -> RedisResult<Vec<Value>> {
        let mut connection = self.clone();
        let answers = connection.req_packed_commands(calls, 0, calls.len()).await;
        match succeeded(answers) {
            Err(error) if is_unknown_script(&error) => {
                script.load_async(&mut connection).await?;
                succeeded(connection.req_packed_commands(calls, 0, calls.len()).await)
            }
            answers => answers,
        }
    }
}

/// The answers to a pipeline, unless one of them is an error.
fn succeeded(answers: RedisResult<Vec<Value>>) -> RedisResult<Vec<Value>> {
    answers?.into_iter().map(Value::extract_error).collect()
}

fn is_unknown_script(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}

/// Whether another connection may lead to a server that does what this one does not: this one is broken, or the
/// server does not take writes.
pub(crate) fn is_for_another(error: &RedisError) -> bool {
    error.is_io_error()
        || error.kind() == ErrorKind::Server(ServerErrorKind::MasterDown)
        || is_write_refused(error)
}

/// Whether the server is a replica now, or a master with fewer replicas than `min-replicas-to-write`, without memory, or
/// without a disk to save to. Redis 5 and 6 put the code of an error that a script met into the text of another one. A
/// replica has no code for what it says to `WAIT`.
fn is_write_refused(error: &RedisError) -> bool {
    let says = |text: &str| error.detail().is_some_and(|it| it.contains(text));
    let refuses = |code: &str| error.code() == Some(code) || says(&format!(": -{code} "));
    ["READONLY", "NOREPLICAS", "MISCONF", "OOM"]
        .into_iter()
        .any(refuses)
        || says("WAIT cannot be used with replica")
}

/// Whether fewer replicas have confirmed than this `WAIT` asks for. The replicas of a master that is cut off may
/// follow another one by now, and nothing else tells its clients.
pub(crate) fn is_unconfirmed(call: &Cmd, answer: &Value) -> bool {
    let mut words = call.args_iter();
    let (Some(Arg::Simple(b"WAIT")), Some(Arg::Simple(count))) = (words.next(), words.next())
    else {
        return false;
    };
    let count = str::from_utf8(count)
        .ok()
        .and_then(|it| it.parse::<i64>().ok());
    matches!((count, answer), (Some(count), Value::Int(confirmed)) if *confirmed < count)
}

/// Whether that holds for any call of a pipeline. `answers` has one for each call.
pub(crate) fn any_unconfirmed(calls: &Pipeline, answers: &[Value]) -> bool {
    let mut both = calls.cmd_iter().zip(answers);
    both.any(|(call, answer)| is_unconfirmed(call, answer))
}

impl<C: ConnectionLike + Clone + Send + Sync> Connection for C {}

/// A connection for threads: it is made when it is first used, and made anew after one that failed, whose server
/// takes no writes, or whose replicas did not confirm.
///
/// One call at a time; others wait. Clones share the connection. In the child of a fork each call is an
/// error: make another there.
#[derive(Clone)]
pub struct Blocking(Arc<Inner>);

struct Inner {
    connect: Box<dyn Fn() -> RedisResult<Open> + Send + Sync>,
    process: Process,
    open: Mutex<Option<Open>>,
}

type Open = Box<dyn redis::ConnectionLike + Send>;

/// Refuses a connection of the process that was forked: parent and child would hear each other's answers,
/// and the one that asked for ten numbers take the answer to a thousand.
fn check_process(owner: Process) -> io::Result<()> {
    let this = process();
    if this == owner {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "the connection is of process {owner}, and this is its fork {this}: make another in the child"
    )))
}

impl Blocking {
    /// Makes a connection of this client. `timeout` is the limit for connecting, and for each answer.
    pub fn new(client: Client, timeout: Duration) -> Self {
        Self::connecting(move || {
            let connection = client.get_connection_with_timeout(timeout)?;
            connection.set_read_timeout(Some(timeout))?;
            connection.set_write_timeout(Some(timeout))?;
            Ok(connection)
        })
    }

    /// Makes a connection that this function opens each time: to the master that Sentinel names, or to a cluster.
    ///
    /// All other calls wait while the function connects, and while an answer is awaited. Limit each step of it, or one
    /// server that stands still stops them all, also a Sentinel. The library's `Sentinel` has no time-outs towards
    /// the Sentinels when it is asked by threads, so this example asks them itself:
    ///
    /// ```
    /// use std::{io, time::Duration};
    /// use ordid_redis::Blocking;
    /// use redis::{Client, Connection, RedisResult, cmd};
    ///
    /// const SENTINELS: [&str; 3] = ["redis://one:26379", "redis://two:26379", "redis://three:26379"];
    ///
    /// fn connect(url: &str) -> RedisResult<Connection> {
    ///     let second = Duration::from_secs(1);
    ///     let connection = Client::open(url)?.get_connection_with_timeout(second)?;
    ///     connection.set_read_timeout(Some(second))?;
    ///     connection.set_write_timeout(Some(second))?;
    ///     Ok(connection)
    /// }
    ///
    /// fn master(sentinel: &str) -> RedisResult<(String, u16)> {
    ///     let mut question = cmd("SENTINEL");
    ///     question.arg("GET-MASTER-ADDR-BY-NAME").arg("shop");
    ///     question.query(&mut connect(sentinel)?)
    /// }
    ///
    /// let connection = Blocking::connecting(|| {
    ///     let answer = SENTINELS.iter().find_map(|sentinel| master(sentinel).ok());
    ///     let (host, port) = answer.ok_or_else(|| io::Error::other("no Sentinel names the master"))?;
    ///     connect(&format!("redis://{host}:{port}/"))
    /// });
    /// ```
    pub fn connecting<C, F>(connect: F) -> Self
    where
        C: redis::ConnectionLike + Send + 'static,
        F: Fn() -> RedisResult<C> + Send + Sync + 'static,
    {
        Self(Arc::new(Inner {
            connect: Box::new(move || Ok(Box::new(connect()?))),
            process: process(),
            open: Mutex::new(None),
        }))
    }

    /// Asks over the connection. Keeps it, unless it has failed or `is_over` says of the answer that another
    /// connection may do better.
    fn ask<T>(
        &self,
        question: impl FnOnce(&mut dyn redis::ConnectionLike) -> RedisResult<T>,
        is_over: impl FnOnce(&T) -> bool,
    ) -> RedisResult<T> {
        // Before the lock: a fork may have left it locked.
        check_process(self.0.process)?;
        let mut open = self.0.open.lock().unwrap_or_else(PoisonError::into_inner);
        let mut connection = match open.take() {
            Some(connection) => connection,
            None => (self.0.connect)()?,
        };
        let result = question(&mut *connection);
        // An answer that comes late must not be read as the next one's, nor the rest of one that nobody understood.
        let is_over = match &result {
            Ok(answer) => is_over(answer),
            Err(error) => error.kind() == ErrorKind::Parse || is_for_another(error),
        };
        if !is_over {
            *open = Some(connection);
        }
        result
    }
}

impl fmt::Debug for Blocking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the client: it may hold a password.
        f.debug_struct("Blocking")
            .field("process", &self.0.process)
            .finish_non_exhaustive()
    }
}

impl sealed::Sealed for Blocking {
    async fn run(&self, script: &ScriptInvocation<'_>) -> RedisResult<Value> {
        self.ask(|connection| script.invoke(connection), |_| false)
    }

    async fn run_all(
        &self,
        script: &ScriptInvocation<'_>,
        calls: &Pipeline,
    ) -> RedisResult<Vec<Value>> {
        // Not by `Pipeline::query`, which a cluster's connection refuses: these are all for one key.
        let (packed, count) = (calls.get_packed_pipeline(), calls.len());
        self.ask(
            |connection| match succeeded(connection.req_packed_commands(&packed, 0, count)) {
                Err(error) if is_unknown_script(&error) => {
                    script.load(connection)?;
                    succeeded(connection.req_packed_commands(&packed, 0, count))
                }
                answers => answers,
            },
            |answers| any_unconfirmed(calls, answers),
        )
    }
}

impl Connection for Blocking {}

/// A key, and how to get there.
#[derive(Debug, Clone)]
pub(crate) struct Store<C> {
    connection: C,
    /// Most connections cannot tell: then whose this is stands for it.
    process: Process,
    pub(crate) key: String,
    replicas: Option<Replicas>,
}

/// How many replicas have to confirm what a call has written, and within which time.
#[derive(Debug, Clone, Copy)]
struct Replicas {
    count: NonZeroU32,
    within: Duration,
}

impl Replicas {
    /// The script, and on the same connection, which `WAIT` speaks of, the question who has what it wrote.
    fn pipeline(&self, script: &ScriptInvocation<'_>) -> Pipeline {
        // 0 would be for ever.
        let millis = u64::try_from(self.within.as_millis()).unwrap_or(u64::MAX);
        let mut calls = Pipeline::with_capacity(2);
        calls.invoke_script(script);
        let wait = calls.cmd("WAIT").arg(self.count.get());
        wait.arg(millis.max(1));
        calls
    }
}

impl<C: Connection> Store<C> {
    pub(crate) fn new(connection: C, key: String) -> Self {
        Self {
            connection,
            process: process(),
            key,
            replicas: None,
        }
    }

    pub(crate) fn with_replicas(self, count: NonZeroU32, within: Duration) -> Self {
        Self {
            replicas: Some(Replicas { count, within }),
            ..self
        }
    }

    /// Runs a script. Reads wait for the replicas, too: otherwise each attempt to renew would move the ceiling while
    /// there are too few of them.
    pub(crate) async fn ask<T: FromRedisValue>(
        &self,
        script: &ScriptInvocation<'_>,
    ) -> Result<T, Error> {
        let failed = |error| failed(&self.key, &error);
        check_process(self.process).map_err(|error| failed(error.into()))?;
        let value = match &self.replicas {
            None => self.connection.run(script).await.map_err(failed)?,
            Some(replicas) => {
                let calls = replicas.pipeline(script);
                let answers = self.connection.run_all(script, &calls).await;
                let mut answers = answers.map_err(failed)?;
                let confirmed = answers.pop().unwrap_or(Value::Nil);
                let confirmed =
                    from_redis_value(confirmed).map_err(|error| failed(error.into()))?;
                self.check_confirmed(confirmed, replicas)?;
                answers.pop().unwrap_or(Value::Nil)
            }
        };
        from_redis_value(value).map_err(|error| failed(error.into()))
    }

    fn check_confirmed(&self, confirmed: u32, replicas: &Replicas) -> Result<(), Error> {
        let Replicas { count, within } = replicas;
        if confirmed >= count.get() {
            return Ok(());
        }
        Err(Error::coordination(
            CoordinationFailure::Unavailable,
            format!(
                "Redis, key {}: {confirmed} of {count} replicas confirmed within {within:?}; what was \
                 written may be lost at a fail-over, so it does not count",
                self.key
            ),
        ))
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

#[cfg(test)]
mod tests {
    use redis::parse_redis_value;

    use super::*;
    use crate::error::failed;

    fn error(line: &str) -> RedisError {
        let answer = parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap();
        answer.extract_error().unwrap_err()
    }

    /// Of Redis 6.2.14 and 7.0.15, for scripts that `call`, and that return what `pcall` met.
    const REFUSALS: [&str; 13] = [
        "ERR Error running script (call to f_f9c61d0627fd72ae3b6c8ac58ef3237fdc620c1c): @user_script:1: @user_script: \
         1: -READONLY You can't write against a read only replica. ",
        "@user_script: 1: -READONLY You can't write against a read only replica. ",
        "ERR Error running script (call to f_f9c61d0627fd72ae3b6c8ac58ef3237fdc620c1c): @user_script:1: @user_script: \
         1: -NOREPLICAS Not enough good replicas to write. ",
        "@user_script: 1: -NOREPLICAS Not enough good replicas to write. ",
        "READONLY You can't write against a read only replica. script: f9c61d0627fd72ae3b6c8ac58ef3237fdc620c1c, on \
         @user_script:1.",
        "READONLY You can't write against a read only replica.",
        "NOREPLICAS Not enough good replicas to write. script: f9c61d0627fd72ae3b6c8ac58ef3237fdc620c1c, on \
         @user_script:1.",
        "NOREPLICAS Not enough good replicas to write.",
        "ERR Error running script (call to f_f9c61d0627fd72ae3b6c8ac58ef3237fdc620c1c): @user_script:1: @user_script: \
         1: -MISCONF Redis is configured to save RDB snapshots, but it is currently not able to persist on disk. ",
        "MISCONF Errors writing to the AOF file: No space left on device",
        "ERR Error running script (call to f_f9c61d0627fd72ae3b6c8ac58ef3237fdc620c1c): @user_script:1: @user_script: \
         1: -OOM command not allowed when used memory > 'maxmemory'. ",
        "OOM command not allowed when used memory > 'maxmemory'.",
        "ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if a replica is \
         configured to be writable (which is not the default) writes to replicas are just local and are not propagated.",
    ];

    #[test]
    fn a_server_that_takes_no_writes_is_unavailable_and_left() {
        for line in REFUSALS {
            let error = error(line);
            assert!(is_for_another(&error), "{line}");
            let failure = failed("shop", &error).coordination_failure();
            assert_eq!(failure, Some(CoordinationFailure::Unavailable), "{line}");
        }
    }

    #[test]
    fn an_error_that_another_server_would_answer_too_is_no_reason_to_leave() {
        for line in [
            "ERR Error running script (call to f_f9c61d0627fd72ae3b6c8ac58ef3237fdc620c1c): @user_script:1: ERR value \
             is not an integer or out of range",
            "ERR unknown command `EVALSHA`",
            "WRONGTYPE Operation against a key holding the wrong kind of value",
        ] {
            let error = error(line);
            assert!(!is_for_another(&error), "{line}");
            let failure = failed("shop", &error).coordination_failure();
            assert_eq!(failure, Some(CoordinationFailure::Mismatch), "{line}");
        }
    }

    #[test]
    fn only_a_wait_that_too_few_answered_is_unconfirmed() {
        let mut calls = Pipeline::new();
        calls.cmd("GET").arg(2);
        calls.cmd("WAIT").arg(2).arg(200);
        let unconfirmed = |confirmed| any_unconfirmed(&calls, &[Value::Int(0), confirmed]);
        assert!(unconfirmed(Value::Int(1)));
        assert!(!unconfirmed(Value::Int(2)) && !unconfirmed(Value::Int(3)));
        assert!(!unconfirmed(Value::Nil));
    }
}
