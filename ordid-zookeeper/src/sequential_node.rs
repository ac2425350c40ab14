//! A sequential node for each id.

use ordid_core::{Error, coordination::CoordinationFailure};
use zookeeper_client::{Client, CreateMode};

use crate::{
    Session,
    error::{failed, failed_or_lost},
    tree::{self, Number},
};

/// Ids from the numbers that ZooKeeper gives to sequential nodes: one node is made for each.
///
/// ```text
/// /app/orders                   "1000"    what the first id is
/// /app/orders/id-0000000007     is made, is id 1007, and is deleted again
/// ```
///
/// Each id takes one write of the servers, and a second one that deletes the node, for which nobody waits.
/// [`ZooKeeperCounter`](crate::ZooKeeperCounter) reserves a thousand ids with one write. The numbers end at 2^31 -
/// 1, where ZooKeeper's own count turns negative; that is an error here.
#[derive(Debug, Clone)]
pub struct SequentialNode {
    session: Session,
    path: String,
}

impl SequentialNode {
    /// Ids from nodes below this one.
    ///
    /// # Errors
    ///
    /// [`Mismatch`](CoordinationFailure::Mismatch) if it is no path.
    pub fn new(session: Session, path: impl Into<String>) -> Result<Self, Error> {
        Ok(Self {
            session,
            path: tree::checked(path.into())?,
        })
    }

    /// Says what the first id is: until then there is none, and each call is a
    /// [`StateLost`](CoordinationFailure::StateLost). This is part of a deployment, not of a
    /// program's start, which would take servers that have lost their data for new ones.
    ///
    /// After a loss `first` is an id that was never made.
    ///
    /// Returns whether there was none; if there is one, it stays as it is.
    ///
    /// # Errors
    ///
    /// [`Unavailable`](CoordinationFailure::Unavailable), and
    /// [`Mismatch`](CoordinationFailure::Mismatch) if the number is negative.
    pub async fn create(&self, first: i64) -> Result<bool, Error> {
        if first < 0 {
            return Err(Error::coordination(
                CoordinationFailure::Mismatch,
                format!("the first id {first} is negative"),
            ));
        }
        tree::create(&self.session, &self.path, &first.to_string()).await
    }

    /// Makes an id.
    ///
    /// # Errors
    ///
    /// [`Unavailable`](CoordinationFailure::Unavailable): then a number may be left out, and its node
    /// stay behind. [`StateLost`](CoordinationFailure::StateLost), and
    /// [`CounterExhausted`](CoordinationFailure::CounterExhausted).
    pub async fn next_id(&self) -> Result<i64, Error> {
        let client = self.session.client().await?;
        let prefix = format!("{}/id-", self.path);
        let options = self
            .session
            .create_options(CreateMode::PersistentSequential);
        let (node, sequence) = client
            .create(&prefix, b"", &options)
            .await
            .map_err(|error| failed_or_lost(&self.path, "SequentialNode::create", &error))?;
        let number = sequence.into_i64();
        let made = format!("{prefix}{sequence}");
        let first = self.first_of(&client, node.czxid).await;
        // It is sent, and nobody waits for it.
        drop(client.delete(&made, None));
        id(&self.path, first?, number)
    }

    /// What the first id is of the node below which one was just made. Read afterwards: if somebody
    /// has deleted it and made it anew in between, the number was another's.
    async fn first_of(&self, client: &Client, made: i64) -> Result<i64, Error> {
        let read = tree::number(client, &self.path).await;
        let (first, stat) = read.map_err(|it: Number| {
            it.or(|cause| failed_or_lost(&self.path, "SequentialNode::create", cause))
        })?;
        if stat.czxid > made {
            return Err(failed(&self.path, &zookeeper_client::Error::NoNode));
        }
        Ok(first)
    }
}

fn id(path: &str, first: i64, number: i64) -> Result<i64, Error> {
    let number = u32::try_from(number).ok().filter(|it| *it < 1 << 31);
    number
        .and_then(|number| first.checked_add(i64::from(number)))
        .ok_or_else(|| {
            Error::coordination(
                CoordinationFailure::CounterExhausted,
                format!("ZooKeeper, {path}: the numbers of its sequential nodes are used up"),
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_of_the_servers_ends_and_does_not_wrap() {
        let last = i64::from(i32::MAX);
        assert_eq!(id("/a", 7, last), Ok(last + 7));
        for (first, number) in [(7, -last - 1), (7, -1), (7, last + 1), (i64::MAX, 1)] {
            let error = id("/a", first, number).unwrap_err();
            assert_eq!(
                error.coordination_failure(),
                Some(CoordinationFailure::CounterExhausted)
            );
        }
    }
}
