//! A group of MySQL with one primary: the others refuse to write, and another one becomes the primary.

use sqlx::{Connection as _, MySql, query_scalar};

use super::{EAGER, Flusher, Found, Graph, Nodes, Outcome, PATIENCE, Shape, Site, times};

/// Flushes go to a member that is no primary, and to one that is no longer the primary after the next chunk. They go on with
/// the primary.
pub(super) async fn changes<W: Flusher<Database = MySql>>(nodes: Nodes<'_>) -> Outcome {
    let first = format!("'{}'", uuid(&nodes, 0).await?);
    switch(&nodes, "single_primary_mode", &first).await?;
    let outcome = with_one::<W>(&nodes).await;
    // Other tests need each of them as a primary.
    switch(&nodes, "multi_primary_mode", "").await?;
    nodes.wait_for_members(2, 3).await?;
    outcome
}

async fn with_one<W: Flusher<Database = MySql>>(nodes: &Nodes<'_>) -> Outcome {
    let (mut primary, mut ended) = (0, 0);
    for unit in 0..times(3, 30) {
        let next = (primary + 1) % 3;
        let graph = Graph::new(unit, Shape::SMALL);
        let mut work: W = super::work(&graph, EAGER.with_attempts(20), unit % 2 == 1);
        let is_refused = unit % 3 == 0;
        let order = match is_refused {
            true => [next, primary, primary],
            false => [primary, next, next],
        };
        let proxy = nodes.proxy(&order).await?;
        if !is_refused {
            let mut left = 2;
            let there = nodes.sites[next].options().clone();
            // A transaction that is not at its COMMIT after a second is ended.
            let sql = format!(
                "SELECT group_replication_set_as_primary('{}', 1)",
                uuid(nodes, next).await?
            );
            work.tell(move |_| {
                left -= i32::from(left > 0);
                if left != 0 {
                    return;
                }
                left = -1;
                let (there, sql) = (there.clone(), sql.clone());
                let electing = std::thread::spawn(move || {
                    let runtime = tokio::runtime::Builder::new_current_thread()
                        .enable_all()
                        .build()?;
                    Outcome::Ok(runtime.block_on(Site::<MySql>::open(there).execute(&sql))?)
                });
                let elected = electing.join().expect("not panicked");
                elected.expect("the group has another primary");
            });
            primary = next;
        }
        let outcome = work.flush_to(&nodes.through(&proxy), PATIENCE).await;
        let what = format!("unit {unit}: {outcome:?}");
        let found = nodes.judge(&graph, &work, &outcome).await?;
        assert_eq!(found, Found::All, "{what}");
        ended += outcome.map_err(|_| what)?.retries;
    }
    assert!(ended > 2, "no transaction was refused or ended");
    Ok(())
}

async fn uuid(nodes: &Nodes<'_>, node: usize) -> Outcome<String> {
    let mut connection = nodes.connect(node).await?;
    let uuid = query_scalar("SELECT @@server_uuid")
        .fetch_one(&mut connection)
        .await?;
    connection.close().await?;
    Ok(uuid)
}

async fn switch(nodes: &Nodes<'_>, to: &str, primary: &str) -> Outcome {
    let sql = format!("SELECT group_replication_switch_to_{to}({primary})");
    Ok(nodes.sites[0].execute(&sql).await?)
}
