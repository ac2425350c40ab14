//! A user's transaction that another node ends between two statements, and a flush inside of it.

use std::{thread, time::Duration};

use ordid_sqlx::Retry;
use sqlx::{Connection as _, Executor as _, MySql};

use super::{Kind, Nodes, conflict};
use crate::{
    faults::{Found, Graph, Shape, Site, ended::FlushesWithin},
    trials::Outcome,
};

const BUCKETS: &str = "SELECT CAST(SUM(bucket) AS SIGNED) FROM customers";

/// Writes the rows that both change, and returns those that the flush will write.
async fn prepared(nodes: &Nodes<'_>) -> Outcome<Graph> {
    let [old, new] = [0, 1].map(|unit| Graph::new(unit, Shape::SMALL));
    let site = &nodes.sites[0];
    site.work(&old, Retry::NONE).flush(&site.pool()).await?;
    nodes.agree().await?;
    Ok(new)
}

/// Another node commits an update of the rows. It returns once this node has ended the user's transaction.
async fn another_is_faster(nodes: &Nodes<'_>) -> Outcome {
    let [there, here] = [1, 0].map(|node| nodes.sites[node].options().clone());
    let kind = nodes.kind;
    let (told, hears) = tokio::sync::oneshot::channel();
    thread::spawn(move || {
        let outcome = conflict(kind, &there, &here, 0);
        let _ = told.send(outcome.map_err(|error| error.to_string()));
    });
    Ok(hears.await??)
}

pub(super) async fn aborted_on_galera(nodes: Nodes<'_>) -> Outcome {
    let new = prepared(&nodes).await?;
    let before = nodes.sites[0].numbers(BUCKETS).await?;
    let mut connection = nodes.connect(0).await?;
    let mut transaction = connection.begin().await?;
    transaction
        .execute("UPDATE customers SET bucket = bucket + 1")
        .await?;
    another_is_faster(&nodes).await?;
    let mut work = nodes.sites[0].work(&new, Retry::NONE);
    let error = work.flush_in(&mut transaction).await;
    let error = error.expect_err("the transaction is over");
    assert!(error.is_transaction_over(), "{error}");
    assert!(!error.is_commit_unknown(), "{error}");
    assert_eq!(work.len(), new.len(), "nothing is lost");
    transaction.rollback().await?;
    connection.close().await?;
    nothing_is_written(&nodes, &new, &before).await
}

/// The statements of the user, before the flush. The last one waits until another member was faster. It touches no table, so
/// the server does not tell by it that the transaction has ended.
const BEFORE: &[&str] = &[
    "UPDATE customers SET bucket = bucket + 1",
    "DO GET_LOCK('ordid_aborted', 60)",
];

const WAITS: &str = "SELECT COUNT(*) FROM performance_schema.metadata_locks WHERE \
                     object_type = 'USER LEVEL LOCK' AND lock_status = 'PENDING'";

/// A savepoint alone would make the member forget the end.
pub(super) async fn aborted_in_a_group<W: FlushesWithin<Database = MySql>>(
    nodes: Nodes<'_>,
) -> Outcome {
    assert_eq!(nodes.kind, Kind::GroupReplication);
    let new = prepared(&nodes).await?;
    let site: &Site<MySql> = &nodes.sites[0];
    let before = site.numbers(BUCKETS).await?;
    let mut holder = nodes.connect(0).await?;
    holder.execute("DO GET_LOCK('ordid_aborted', 60)").await?;
    let mut work = W::of(&new, Retry::NONE);
    let flushing = work.flush_within(site.options(), BEFORE);
    let is_faster = async {
        while site.numbers(WAITS).await? == [0] {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        another_is_faster(&nodes).await?;
        holder.execute("DO RELEASE_LOCK('ordid_aborted')").await?;
        Outcome::Ok(())
    };
    let (outcome, was_faster) = tokio::join!(flushing, is_faster);
    was_faster?;
    let error = outcome.expect_err("the transaction is over");
    assert!(error.is_transaction_over, "{error}");
    assert!(!error.is_commit_unknown && error.is_transient, "{error}");
    assert_eq!(work.held(), new.len(), "nothing is lost");
    holder.close().await?;
    nothing_is_written(&nodes, &new, &before).await
}

async fn nothing_is_written(nodes: &Nodes<'_>, new: &Graph, buckets: &[i64]) -> Outcome {
    nodes.agree().await?;
    assert_eq!(nodes.sites[0].look(new).await?, Found::None);
    assert_eq!(nodes.sites[0].numbers(BUCKETS).await?, buckets);
    Ok(())
}
