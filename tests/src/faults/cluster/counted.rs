//! Numbers that the nodes count. Each node counts by the number of nodes, from a place of its own, and says so in the
//! session's variables before each statement.

use std::{collections::BTreeSet, num::NonZeroU32};

use ordid_core::{
    clock::{Clock as _, SystemClock},
    coordination::{AsyncNodeAllocator as _, AsyncSegmentSource, LeaseTerms},
    uuid::Uuid,
};
use ordid_sqlx::{
    MappingTable, SqlCounter, SqlDisposableNode, TicketChoice, TicketForm, Tickets64,
};
use sqlx::MySqlPool;

use super::{MySql, Nodes, Outcome, times};

/// One after the other over the nodes, then all at once.
pub(super) async fn disposable_nodes(nodes: Nodes<'_>) -> Outcome {
    let terms = LeaseTerms::new(0..1 << 16)?;
    let stores = nodes
        .sites
        .each_ref()
        .map(|site| SqlDisposableNode::<MySql>::new(site.options().clone(), terms.clone()));
    stores[0].create().await?;
    nodes.agree().await?;
    let mut numbers = Vec::new();
    for node in [0, 0, 0, 1, 1, 1, 2, 0, 2] {
        let grant = stores[node].acquire(SystemClock.now(), None).await?;
        numbers.push(grant.node());
    }
    assert!(numbers.iter().copied().eq(1..10), "{numbers:?}");

    let each = times(20, 500);
    let acquire = async |node: usize| {
        let mut numbers = Vec::new();
        for _ in 0..each {
            let grant = stores[node].acquire(SystemClock.now(), None).await?;
            numbers.push(grant.node());
        }
        Outcome::Ok(numbers)
    };
    let (zero, one, two) = tokio::join!(acquire(0), acquire(1), acquire(2));
    for more in [zero?, one?, two?] {
        numbers.extend(more);
    }
    nodes.agree().await?;
    let rows = "SELECT node FROM ordid_disposable_nodes ORDER BY node";
    let rows = nodes.sites[1].numbers(rows).await?;
    let unique: BTreeSet<u64> = numbers.iter().copied().collect();
    assert_eq!(unique.len(), numbers.len(), "{numbers:?}");
    // Rows stay for ever.
    let rows: BTreeSet<u64> = rows.iter().map(|row| row.unsigned_abs()).collect();
    assert_eq!(rows, unique, "a row is nobody's, or is missing");
    // Attempts that failed have used some up.
    let last = numbers.iter().copied().max().unwrap_or_default();
    eprintln!("{} nodes up to number {last}", numbers.len());
    assert!(last <= 2 * u64::try_from(numbers.len())?, "{numbers:?}");
    Ok(())
}

/// As [`disposable_nodes`], for integers of UUIDs.
pub(super) async fn mappings(nodes: Nodes<'_>) -> Outcome {
    let table = MappingTable::<MySql>::new("ids")?;
    let pools = nodes
        .sites
        .each_ref()
        .map(|site| MySqlPool::connect_lazy_with(site.options().clone()));
    table.create(&pools[0]).await?;
    nodes.agree().await?;
    let uuids = |count: usize| (0..count).map(|_| Uuid::now_v7()).collect::<Vec<_>>();
    let mut found = Vec::new();
    for turn in 0..6 {
        let some = uuids([1, 500][turn % 2]);
        let ids = table.insert_or_get_many(&pools[turn % 3], &some).await?;
        found.extend(some.into_iter().zip(ids));
        nodes.agree().await?;
    }
    let mut ids: Vec<i64> = found.iter().map(|(_, id)| *id).collect();
    ids.sort_unstable();
    assert!(ids.into_iter().eq(1..1504), "{found:?}");

    // Half of what a node inserts, another inserts, too.
    let all = uuids(usize::try_from(times(8_000, 80_000))?);
    let insert = async |node: usize| {
        let quarter = all.len() / 4;
        let mine = &all[node * quarter..(node + 2) * quarter];
        let started = std::time::Instant::now();
        let ids = table.insert_or_get_many(&pools[node], mine).await?;
        eprintln!("node {node}: {} in {:?}", mine.len(), started.elapsed());
        Outcome::Ok(mine.iter().copied().zip(ids).collect::<Vec<_>>())
    };
    let (zero, one, two) = tokio::join!(insert(0), insert(1), insert(2));
    for more in [zero?, one?, two?] {
        found.extend(more);
    }
    nodes.agree().await?;
    for (uuid, id) in &found[..1_503] {
        assert_eq!(table.get(&pools[2], *uuid).await?, Some(*id));
    }
    let keys: Vec<Uuid> = found.iter().map(|(uuid, _)| *uuid).collect();
    let again = table.get_many(&pools[2], &keys).await?;
    let ids = found.iter().map(|(_, id)| Some(*id));
    assert!(again.into_iter().eq(ids), "an id has changed");
    let last = found.iter().map(|(_, id)| *id).max().unwrap_or_default();
    eprintln!("{} UUIDs up to id {last}", 1503 + all.len());
    Ok(())
}

/// A counter's row is one for all nodes.
pub(super) async fn counters(nodes: Nodes<'_>) -> Outcome {
    let mut counters = Vec::new();
    for site in &nodes.sites {
        counters.push(SqlCounter::<MySql>::new(site.options().clone(), "orders")?);
    }
    counters[0].create(1).await?;
    nodes.agree().await?;
    let reserve = async |node: usize| numbers(&counters[node], times(20, 500)).await;
    let (zero, one, two) = tokio::join!(reserve(0), reserve(1), reserve(2));
    are_unique([zero?, one?, two?].concat());
    Ok(())
}

/// Nodes as ticket servers share a table, which the form `Replace` allows. When a node joins or leaves, all of them
/// count by other steps, in sessions that are open, too.
pub(super) async fn tickets(nodes: Nodes<'_>) -> Outcome {
    let mut servers = Vec::new();
    for site in &nodes.sites {
        // As in a Galera cluster of three. Each member of a group counts by 7, but for what its users set.
        site.execute("SET GLOBAL auto_increment_increment = 3")
            .await?;
        let offset = site
            .numbers("SELECT CAST(@@auto_increment_offset AS SIGNED)")
            .await?;
        servers.push((offset, site.options().clone()));
    }
    servers.sort_by(|(one, _), (other, _)| one.cmp(other));
    let servers: Vec<_> = servers.into_iter().map(|(_, options)| options).collect();
    let mut all = Vec::new();
    for choice in [TicketChoice::Sticky, TicketChoice::Random] {
        let tickets = Tickets64::new(servers.clone(), TicketForm::Replace, 3)?.with_choice(choice);
        tickets.create().await?;
        nodes.agree().await?;
        let reserve = async || numbers(&tickets, times(6, 100)).await;
        let (zero, one, two) = tokio::join!(reserve(), reserve(), reserve());
        all.extend([zero?, one?, two?].concat());
        for steps in [2, 3] {
            for site in &nodes.sites {
                let steps = format!("SET GLOBAL auto_increment_increment = {steps}");
                site.execute(&steps).await?;
            }
            let (zero, one, two) = tokio::join!(reserve(), reserve(), reserve());
            for some in [zero, one, two] {
                match some {
                    Ok(some) => all.extend(some),
                    // A new connection sees that the steps are others.
                    Err(error) => assert!(error.to_string().contains("expected 3"), "{error}"),
                }
            }
        }
    }
    are_unique(all);

    // The form `LastInsertId` has one row, which belongs to one share.
    let tickets = Tickets64::new(servers.clone(), TicketForm::LastInsertId, 3)?;
    tickets.create().await?;
    nodes.agree().await?;
    are_unique(numbers(&tickets, 3).await?);
    let [_, second, third] = <[_; 3]>::try_from(servers).map_err(|_| "three")?;
    let others = Tickets64::new([second.clone(), second, third], TicketForm::LastInsertId, 3)?;
    let error = numbers(&others, 1).await.expect_err("not its share");
    assert!(error.to_string().contains("expected 3 and 1"), "{error}");
    Ok(())
}

/// Reserves three numbers so many times.
async fn numbers(source: &impl AsyncSegmentSource, times: u32) -> Outcome<Vec<i64>> {
    let three = NonZeroU32::new(3).ok_or("not 0")?;
    let mut numbers = Vec::new();
    for _ in 0..times {
        numbers.extend(source.reserve(three).await?.values());
    }
    Ok(numbers)
}

fn are_unique(mut numbers: Vec<i64>) {
    let count = numbers.len();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), count, "{numbers:?}");
}
