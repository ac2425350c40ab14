//! Node ids that are leased from a table of a cluster. A server of the cluster knows only its own locks, and the
//! servers compare at COMMIT what each of them has written. A server that is behind would show old rows.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use ordid_core::{
    clock::{Clock as _, SystemClock, Timestamp},
    coordination::{AsyncNodeAllocator as _, CoordinationFailure, Grant, LeaseTerms},
};
use ordid_sqlx::SqlLease;
use sqlx::{Connection as _, Executor as _};

use super::{MySql, Nodes, Options, Outcome, below, kill_at_once, times};

/// The numbers of node ids and of their holders.
const LEASED: u64 = 3;
const HOLDERS: u64 = 6;

fn terms() -> Outcome<LeaseTerms> {
    Ok(LeaseTerms::new(0..LEASED)?
        .with_window(Duration::from_millis(150))?
        .with_ttl(Duration::from_millis(400))?)
}

/// A grant: the range of embedded time that its holder may have used.
#[derive(Debug, Clone, Copy)]
struct Held {
    node: u64,
    epoch: u64,
    floor: Timestamp,
    end: Timestamp,
}

/// The grants and failures of a holder.
#[derive(Debug, Default)]
struct Seen {
    held: Vec<Held>,
    /// The number of times that a random server was chosen for a renewal.
    moved: u32,
    /// The failed calls, counted by their kind.
    failures: BTreeMap<String, u32>,
}

impl Seen {
    /// Nothing is lost, so no ceiling goes back: a server that is behind waits for the others before it answers.
    fn failed(&mut self, what: &str, error: &ordid_core::Error) -> Outcome<CoordinationFailure> {
        let Some(
            failure @ (CoordinationFailure::Unavailable
            | CoordinationFailure::NoFreeNode
            | CoordinationFailure::Fenced),
        ) = error.coordination_failure()
        else {
            return Err(format!("{what}: {error}").into());
        };
        *self
            .failures
            .entry(format!("{what}: {failure:?}"))
            .or_default() += 1;
        Ok(failure)
    }
}

/// Leases node ids over random servers of the cluster, renews them, and then releases them or abandons them.
async fn hold(sites: &[Options<MySql>; 3], number: u64, is_over: &AtomicBool) -> Outcome<Seen> {
    let terms = terms()?;
    let stores = sites.each_ref().map(|site| {
        let store = SqlLease::<MySql>::new(site.clone(), terms.clone());
        store.with_timeout(Duration::from_secs(2))
    });
    let mut seed = 18 + number;
    let mut chance = |end| below(&mut seed, end);
    let mut seen = Seen::default();
    let mut last = None;
    while !is_over.load(Ordering::Relaxed) {
        let mut at = usize::try_from(chance(3))?;
        let grant = match stores[at].acquire(SystemClock.now(), last).await {
            Ok(grant) => grant,
            Err(error) => {
                seen.failed("acquire", &error)?;
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            }
        };
        let mut held = of(&grant);
        let mut grant = grant;
        for _ in 0..chance(8) {
            tokio::time::sleep(Duration::from_millis(10 + chance(60))).await;
            // Most calls go over the same server, as with a pool.
            if chance(4) == 0 {
                at = usize::try_from(chance(3))?;
                seen.moved += 1;
            }
            match stores[at].renew(&grant, SystemClock.now()).await {
                Ok(renewed) => {
                    assert_eq!((renewed.node(), renewed.epoch()), (held.node, held.epoch));
                    assert!(
                        renewed.ceiling() >= held.end,
                        "{renewed} is shorter than {held:?}"
                    );
                    held.end = renewed.ceiling();
                    grant = renewed;
                }
                // The holder may make keys until its ceiling.
                Err(error) => match seen.failed("renew", &error)? {
                    CoordinationFailure::Unavailable => {}
                    _ => break,
                },
            }
        }
        if chance(2) == 0 {
            // The holder has used half of its range.
            let half = held
                .floor
                .as_unix_millis()
                .midpoint(held.end.as_unix_millis());
            let used = Timestamp::saturating_from_unix_millis(half);
            match stores[at].release(&grant, Some(used)).await {
                Ok(()) => held.end = Timestamp::saturating_from_unix_millis(half + 1),
                Err(error) => drop(seen.failed("release", &error)?),
            }
        }
        last = Some(held.end);
        seen.held.push(held);
    }
    Ok(seen)
}

fn of(grant: &Grant) -> Held {
    Held {
        node: grant.node(),
        epoch: grant.epoch(),
        floor: grant.floor(),
        end: grant.ceiling(),
    }
}

/// Holders call random servers of the cluster. Meanwhile each server is behind for a while, one is killed, and another
/// one is cut off. Both come back.
pub(super) async fn leases(mut nodes: Nodes<'_>) -> Outcome {
    let sites = nodes.sites.each_ref().map(|site| site.options().clone());
    SqlLease::<MySql>::new(sites[0].clone(), terms()?)
        .create()
        .await?;
    nodes.agree().await?;
    let is_over = Arc::new(AtomicBool::new(false));
    let holders: Vec<_> = (0..HOLDERS)
        .map(|number| {
            let (sites, is_over) = (sites.clone(), Arc::clone(&is_over));
            thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()
                    .map_err(|error| error.to_string())?;
                let held = runtime.block_on(hold(&sites, number, &is_over));
                held.map_err(|error| error.to_string())
            })
        })
        .collect();
    let faults = faults(&mut nodes).await;
    is_over.store(true, Ordering::Relaxed);
    let mut held = Vec::new();
    let (mut moved, mut failures) = (0, BTreeMap::<String, u32>::new());
    for holder in holders {
        let seen = holder.join().map_err(|_| "a holder panicked")??;
        held.extend(seen.held);
        moved += seen.moved;
        for (what, times) in seen.failures {
            *failures.entry(what).or_default() += times;
        }
    }
    faults?;
    eprintln!("{} grants, {moved} moves, {failures:?}", held.len());
    assert!(held.len() > 50 && moved > 10, "too little was tried");
    are_disjoint(held);
    // Each node id can be leased now.
    nodes.agree().await?;
    tokio::time::sleep(Duration::from_millis(500)).await;
    for (at, site) in sites.iter().enumerate() {
        let store = SqlLease::<MySql>::new(site.clone(), terms()?);
        let grant = store.acquire(SystemClock.now(), None).await;
        grant.map_err(|error| format!("node {at}: {error}"))?;
    }
    Ok(())
}

async fn faults(nodes: &mut Nodes<'_>) -> Outcome {
    for _ in 0..times(1, 20) {
        wait(700).await;
        for node in 0..3 {
            let mut holder = nodes.connect(node).await?;
            // The server applies no writes of the others until the lock is released, and shows old rows.
            holder.execute("FLUSH TABLES WITH READ LOCK").await?;
            wait(300).await;
            holder.close().await?;
            wait(300).await;
        }
        kill_at_once(nodes.servers.as_ref().ok_or("it runs")?[2].pid()?)?;
        wait(700).await;
        nodes.wait_for_members(0, 2).await?;
        wait(700).await;
        if let Some([.., third]) = &mut *nodes.servers {
            // The process has ended already. `kill` also waits for its end.
            let _ = third.kill();
            third.restart()?;
        }
        nodes.wait_for_members(2, 3).await?;
        wait(700).await;
        nodes.cut_off(1).await?;
        wait(700).await;
        nodes.wait_for_members(0, 2).await?;
        wait(700).await;
        nodes.rejoin(1).await?;
        nodes.wait_for_members(1, 3).await?;
    }
    wait(700).await;
    Ok(())
}

async fn wait(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

/// Checks that no two grants of a node id overlap in time, and that each has another epoch.
fn are_disjoint(mut held: Vec<Held>) {
    held.sort_by_key(|it| (it.node, it.epoch));
    for pair in held.windows(2) {
        let [one, next] = [pair[0], pair[1]];
        if one.node == next.node {
            assert!(one.epoch < next.epoch, "one node twice: {one:?}, {next:?}");
            assert!(one.end <= next.floor, "they overlap: {one:?}, {next:?}");
        }
    }
    assert!(
        held.iter().all(|it| it.floor < it.end),
        "a grant of no time"
    );
}
