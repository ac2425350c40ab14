//! A group of MySQL with one primary: the others refuse to write, and another one becomes the primary.

use std::time::{Duration, Instant};

use sqlx::{Connection as _, MySql, mysql::MySqlConnection, query_scalar};

use super::{EAGER, Flusher, Found, Graph, Nodes, Options, Outcome, PATIENCE, Shape, times};

/// Flushes go to a member that is no primary, and to one that is no longer the primary after the second chunk. They go on with
/// the primary.
pub(super) async fn changes<W: Flusher<Database = MySql>>(nodes: Nodes<'_>) -> Outcome {
    let outcome = match single(&nodes).await {
        Ok(()) => with_one::<W>(&nodes).await,
        Err(error) => Err(error),
    };
    // Other tests need each of them as a primary.
    let sql = "SELECT group_replication_switch_to_multi_primary_mode()";
    nodes.sites[0].execute(sql).await?;
    for node in 0..3 {
        nodes.wait_for_members(node, 3).await?;
    }
    outcome
}

async fn single(nodes: &Nodes<'_>) -> Outcome {
    let first = uuid(nodes, 0).await?;
    let sql = format!("SELECT group_replication_switch_to_single_primary_mode('{first}')");
    nodes.sites[0].execute(&sql).await?;
    for node in 0..3 {
        writes(nodes.sites[node].options(), node == 0).await?;
    }
    Ok(())
}

async fn with_one<W: Flusher<Database = MySql>>(nodes: &Nodes<'_>) -> Outcome {
    let mut primary = 0;
    for unit in 0..times(3, 30) {
        let next = (primary + 1) % 3;
        let graph = Graph::new(unit, Shape::SMALL);
        let mut work: W = super::work(nodes.kind, &graph, EAGER.with_attempts(20), unit % 2 == 1);
        let is_refused = unit % 3 == 0;
        let order = match is_refused {
            true => [next, primary, primary],
            false => [primary, next, next],
        };
        let proxy = nodes.proxy(&order).await?;
        if !is_refused {
            let mut left = 2;
            let there = nodes.sites[next].options().clone();
            let uuid = uuid(nodes, next).await?;
            work.tell(move |_| {
                left -= i32::from(left > 0);
                if left == 0 {
                    left = -1;
                    let (there, uuid) = (there.clone(), uuid.clone());
                    let electing = std::thread::spawn(move || elect(&there, &uuid));
                    if let Err(error) = electing.join().expect("not panicked") {
                        eprintln!("unit {unit}: {error}");
                    }
                }
            });
            primary = next;
        }
        let outcome = work.flush_to(&nodes.through(&proxy), PATIENCE).await;
        let found = nodes.judge(&graph, &work, &outcome).await?;
        match outcome {
            Ok(flushed) if found == Found::All && flushed.retries > 0 => {}
            outcome => return Err(format!("unit {unit}: {found:?}, {outcome:?}").into()),
        }
    }
    Ok(())
}

/// Makes a member the primary, and waits until it writes.
fn elect(there: &Options<MySql>, uuid: &str) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut connection = MySqlConnection::connect_with(there).await?;
        // A transaction that is not at its COMMIT after a second is ended.
        let sql = format!("SELECT group_replication_set_as_primary('{uuid}', 1)");
        let answer = sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut connection);
        answer.await?;
        connection.close().await?;
        writes(there, true).await
    })
}

/// Waits until a member writes, or until it does not.
async fn writes(member: &Options<MySql>, is_primary: bool) -> Outcome {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut connection = MySqlConnection::connect_with(member).await?;
        let question = query_scalar("SELECT CAST(@@super_read_only = 0 AS SIGNED)");
        let found: i64 = question.fetch_one(&mut connection).await?;
        connection.close().await?;
        if (found == 1) == is_primary {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(format!("a member writes: {found}").into());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn uuid(nodes: &Nodes<'_>, node: usize) -> Outcome<String> {
    let mut connection = nodes.connect(node).await?;
    let uuid = query_scalar("SELECT @@server_uuid").fetch_one(&mut connection);
    let uuid = uuid.await?;
    connection.close().await?;
    Ok(uuid)
}
