//! A client of etcd, and the key below which everything is.

use core::{fmt, future::Future, str::FromStr, time::Duration};
use std::sync::Arc;

use etcd_client::{Client, Compare, CompareOp, KeyValue, Txn, TxnOp, TxnOpResponse};
use ordid_core::{
    __private::{Process, process},
    Error,
    clock::Delay,
    coordination::CoordinationFailure,
};

use crate::error::failed;

/// How long etcd may take for an answer, unless said otherwise.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A key, and how to get there.
#[derive(Clone)]
pub(crate) struct Store {
    client: Arc<Own>,
    pub(crate) key: String,
    pub(crate) timeout: Duration,
}

/// A client, and the process whose it is.
struct Own {
    client: Option<Client>,
    process: Process,
}

/// In the child of a fork the client is the parent's: to drop it would wake the tasks of the parent's runtime,
/// whose locks a fork may have left locked.
impl Drop for Own {
    fn drop(&mut self) {
        if self.process != process() {
            std::mem::forget(self.client.take());
        }
    }
}

impl Store {
    /// Refuses a key that is empty, or ends where the keys below it begin.
    pub(crate) fn new(client: Client, key: String) -> Result<Self, Error> {
        if key.is_empty() || key.ends_with('/') || key.contains(char::is_control) {
            return Err(Error::coordination(
                CoordinationFailure::Mismatch,
                format!("`{key}` is no key for etcd: write it as app/orders"),
            ));
        }
        Ok(Self {
            client: Arc::new(Own {
                client: Some(client),
                process: process(),
            }),
            key,
            timeout: TIMEOUT,
        })
    }

    pub(crate) fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Asks within the time, and not in the child of a fork: the tasks that speak to the server are the
    /// parent's, and no answer would ever come.
    pub(crate) async fn ask<T, F>(&self, question: impl FnOnce(Client) -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, etcd_client::Error>>,
    {
        match self.try_ask(question).await? {
            Ok(answer) => Ok(answer),
            Err(error) => Err(failed(&self.key, &error)),
        }
    }

    /// As [`ask`](Self::ask), where what the library says has to be looked at.
    pub(crate) async fn try_ask<T, F>(
        &self,
        question: impl FnOnce(Client) -> F,
    ) -> Result<Result<T, etcd_client::Error>, Error>
    where
        F: Future<Output = Result<T, etcd_client::Error>>,
    {
        let (owner, this) = (self.client.process, process());
        let Some(client) = self.client.client.clone().filter(|_| owner == this) else {
            return Err(Error::coordination(
                CoordinationFailure::Unavailable,
                format!(
                    "etcd, {}: the client is of process {owner}, and this is its fork {this}: make \
                     another in the child, on a runtime of its own",
                    self.key
                ),
            ));
        };
        let answer = Delay::within(self.timeout, question(client)).await;
        answer.ok_or_else(|| {
            Error::coordination(
                CoordinationFailure::Unavailable,
                format!("etcd, {}: no answer within {:?}", self.key, self.timeout),
            )
        })
    }

    /// Makes the key with this value. Returns whether it was not there.
    pub(crate) async fn create(&self, value: String) -> Result<bool, Error> {
        let (_, made) = self
            .swap([is_absent(&self.key)], [put(&self.key, value)], [])
            .await?;
        Ok(made.is_none())
    }

    /// Reads keys, all in one moment.
    pub(crate) async fn read<const N: usize>(
        &self,
        keys: [&str; N],
    ) -> Result<[Option<KeyValue>; N], Error> {
        let txn = Txn::new().and_then(keys.map(|key| TxnOp::get(key, None)));
        let answer = self
            .ask(|client| async move { client.kv_client().txn(txn).await })
            .await?;
        let answers = answer.op_responses();
        Ok(core::array::from_fn(|step| found(&answers, step).cloned()))
    }

    /// Writes where nothing has changed, and reads otherwise. Returns the revision of the store, and what was
    /// read: `None` if it was written.
    pub(crate) async fn swap(
        &self,
        unchanged: impl Into<Vec<Compare>>,
        write: impl Into<Vec<TxnOp>>,
        otherwise: impl Into<Vec<TxnOp>>,
    ) -> Result<(i64, Option<Vec<TxnOpResponse>>), Error> {
        let txn = Txn::new()
            .when(unchanged)
            .and_then(write)
            .or_else(otherwise);
        let answer = self
            .ask(|client| async move { client.kv_client().txn(txn).await })
            .await?;
        let revision = answer.header().map_or(0, |header| header.revision());
        let read = (!answer.succeeded()).then(|| answer.op_responses());
        Ok((revision, read))
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the client: it may hold a password.
        f.debug_struct("Store")
            .field("key", &self.key)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

pub(crate) fn is_absent(key: &str) -> Compare {
    Compare::create_revision(key, CompareOp::Equal, 0)
}

/// Whether nobody has written it since; 0 is of a key that is not there.
pub(crate) fn is_of_revision(key: &str, revision: i64) -> Compare {
    Compare::mod_revision(key, CompareOp::Equal, revision)
}

pub(crate) fn put(key: &str, value: String) -> TxnOp {
    TxnOp::put(key, value, None)
}

/// What a step of a transaction has read: the only key that it asked for, if it is there.
pub(crate) fn found(answers: &[TxnOpResponse], step: usize) -> Option<&KeyValue> {
    match answers.get(step)? {
        TxnOpResponse::Get(answer) => answer.kvs().first(),
        _ => None,
    }
}

pub(crate) fn parse<T: FromStr>(value: &[u8]) -> Option<T> {
    core::str::from_utf8(value).ok()?.parse().ok()
}
