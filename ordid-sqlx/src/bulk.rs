//! The command that takes rows in bulk, where an engine has one beside `INSERT`: PostgreSQL's
//! `COPY`.

use std::{
    convert::Infallible,
    fmt::Debug,
    future::ready,
    sync::atomic::{AtomicBool, Ordering},
};

use sqlx::{Connection as _, Encode, Pool, Type, error::BoxDynError, pool::PoolConnection};

use crate::backend::{Backend, BoxFuture};

/// The rows of a table on their way into an engine's bulk command: encodes them into a piece, and
/// sends piece after piece.
///
/// An engine without such a command takes [`Infallible`]: there is no value of it, so nothing is
/// left of all this.
#[doc(hidden)]
pub trait Bulk<DB: Backend>: Sized + Debug + Send + Sync {
    /// With fewer rows of a table the command costs more than it saves.
    const MIN_ROWS: usize;

    /// How to open a transaction in which the command may be used.
    const BEGIN: Option<&'static str>;

    /// The command under way.
    type Stream<'c>: Send;

    /// Asks the database whether the command does with these columns of the table, whose name is
    /// quoted, what an `INSERT` does. `None` where it does not, or where this cannot be known.
    ///
    /// Called outside of a transaction, since a question that the server refuses would spoil it.
    fn prepare<'a>(
        connection: &'a mut DB::Connection,
        table: &'a str,
        columns: &'static [&'static str],
    ) -> BoxFuture<'a, Option<Self>>;

    /// Begins a row.
    fn begin_row(&mut self);

    /// Encodes the value of the row's next column.
    fn put<T>(&mut self, value: &T) -> Result<(), BoxDynError>
    where
        T: for<'q> Encode<'q, DB> + Type<DB>;

    /// Ends a row. `false` if one of its values is not for this command: the row is taken out of
    /// the piece again.
    fn end_row(&mut self) -> bool;

    /// Whether the piece is large enough to be sent.
    fn is_full(&self) -> bool;

    /// Begins the command.
    fn open<'a, 'c: 'a>(
        &'a self,
        connection: &'c mut DB::Connection,
    ) -> BoxFuture<'a, Result<Self::Stream<'c>, sqlx::Error>>;

    /// Sends the piece and begins the next one.
    fn send<'a>(
        &'a mut self,
        stream: &'a mut Self::Stream<'_>,
    ) -> BoxFuture<'a, Result<(), sqlx::Error>>;

    /// Sends the piece and ends the command: its rows are in the table. Another one may follow.
    fn finish<'a, 'c: 'a>(
        &'a mut self,
        stream: Self::Stream<'c>,
    ) -> BoxFuture<'a, Result<(), sqlx::Error>>;

    /// Gives the command up.
    fn abort(stream: Self::Stream<'_>) -> BoxFuture<'_, Result<(), sqlx::Error>>;
}

impl<DB: Backend> Bulk<DB> for Infallible {
    const MIN_ROWS: usize = usize::MAX;
    const BEGIN: Option<&'static str> = None;

    type Stream<'c> = Self;

    fn prepare<'a>(
        _: &'a mut DB::Connection,
        _: &'a str,
        _: &'static [&'static str],
    ) -> BoxFuture<'a, Option<Self>> {
        Box::pin(ready(None))
    }

    fn begin_row(&mut self) {
        match *self {}
    }

    fn put<T>(&mut self, _: &T) -> Result<(), BoxDynError>
    where
        T: for<'q> Encode<'q, DB> + Type<DB>,
    {
        match *self {}
    }

    fn end_row(&mut self) -> bool {
        match *self {}
    }

    fn is_full(&self) -> bool {
        match *self {}
    }

    fn open<'a, 'c: 'a>(
        &'a self,
        _: &'c mut DB::Connection,
    ) -> BoxFuture<'a, Result<Self::Stream<'c>, sqlx::Error>> {
        match *self {}
    }

    fn send<'a>(
        &'a mut self,
        _: &'a mut Self::Stream<'_>,
    ) -> BoxFuture<'a, Result<(), sqlx::Error>> {
        match *self {}
    }

    fn finish<'a, 'c: 'a>(
        &'a mut self,
        _: Self::Stream<'c>,
    ) -> BoxFuture<'a, Result<(), sqlx::Error>> {
        match *self {}
    }

    fn abort(stream: Self::Stream<'_>) -> BoxFuture<'_, Result<(), sqlx::Error>> {
        match stream {}
    }
}

/// Whether client and server still agree on what comes next over a connection.
///
/// They do not while a bulk command is under way: SQLx does not count the answer that it waits for,
/// so whoever uses the connection after a future was dropped there takes that answer for its own.
#[derive(Debug, Default)]
pub(crate) struct InStep(AtomicBool);

impl InStep {
    /// A bulk command begins, or the connection failed.
    pub(crate) fn lose(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// The server has said how it ended.
    pub(crate) fn regain(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Whether a command was cut off.
    pub(crate) fn is_lost(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A pool's connection for the time of an attempt. It goes back to the pool only in step: otherwise it
/// is closed, as it is when the flush is dropped in the midst of a bulk command.
#[derive(Debug)]
pub(crate) struct Lent<DB: Backend> {
    pub(crate) connection: PoolConnection<DB>,
    pub(crate) in_step: InStep,
    /// Whether it is being used by an engine whose connections do not survive a dropped future.
    pub(crate) is_busy: bool,
}

impl<DB: Backend> Lent<DB> {
    pub(crate) async fn from(pool: &Pool<DB>) -> Result<Self, sqlx::Error> {
        let acquire: BoxFuture<'_, _> = Box::pin(pool.acquire());
        Ok(Self {
            connection: acquire.await?,
            in_step: InStep::default(),
            is_busy: false,
        })
    }

    /// As [`from`](Self::from), after another connection was lost: closes those that do not answer,
    /// which perhaps went with it.
    pub(crate) async fn tested(pool: &Pool<DB>) -> Result<Self, sqlx::Error> {
        for _ in 0..pool.options().get_max_connections() {
            let mut lent = Self::from(pool).await?;
            let ping: BoxFuture<'_, _> = Box::pin(lent.connection.ping());
            if ping.await.is_ok() {
                return Ok(lent);
            }
            lent.in_step.lose();
        }
        Self::from(pool).await
    }
}

impl<DB: Backend> Drop for Lent<DB> {
    fn drop(&mut self) {
        if self.in_step.is_lost() || self.is_busy {
            self.connection.close_on_drop();
        }
    }
}
