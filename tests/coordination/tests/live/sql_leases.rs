//! Nodes leased from a table: PostgreSQL, MariaDB, MySQL, SQLite, SQL Server, Oracle. Which database it is, says
//! `table`; what can fail between it and its holders is in `network`.

use std::{collections::HashSet, sync::Arc, time::Duration};

use libtest_mimic::Trial;
use ordid_core::{
    clock::Timestamp,
    coordination::{AsyncNodeAllocator, CoordinationFailure, Grant, LeaseTerms},
};
use ordid_sqlx::{Backend, ConnectOptions, SqlDisposableNode};
use ordid_tests::{servers::Servers, trials::Outcome};

use crate::{
    segments::failure,
    sql::on_each,
    stores::{
        ENDLESS, fails, long, now_by, starters_get_distinct_nodes, the_first_copy_to_renew_goes_on,
    },
};

mod network;
pub(crate) mod table;

use table::{Sqlx, Table, on_tables};

/// After which a silent holder's node is free, where a test waits for it.
const TTL: Duration = Duration::from_millis(1_200);

pub(crate) fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    on_tables!(
        "sql_leases",
        servers,
        trials,
        sixteen_that_start_at_once_get_sixteen_nodes,
        one_too_many_is_told_and_gets_a_node_when_it_is_free,
        a_clock_far_off_burns_no_time,
        a_restart_with_an_older_clock_begins_at_the_ceiling,
        of_two_copies_the_first_to_renew_goes_on,
        a_holder_that_slept_too_long_is_fenced,
        a_ceiling_that_went_back_is_told_and_written_back,
        state_that_is_gone_is_an_error,
        a_release_keeps_what_was_used,
    );
    on_each!(
        "sql_leases",
        servers,
        trials,
        every_start_gets_a_number_of_its_own,
    );
    network::trials(servers, trials);
}

/// The same, where it must not be free before the test has found it held.
const LONGER_TTL: Duration = Duration::from_secs(5);

fn terms(nodes: std::ops::Range<u64>) -> LeaseTerms {
    terms_with(nodes, TTL)
}

fn terms_with(nodes: std::ops::Range<u64>, ttl: Duration) -> LeaseTerms {
    let terms = LeaseTerms::new(nodes).and_then(|terms| terms.with_window(TTL));
    terms.and_then(|terms| terms.with_ttl(ttl)).expect("terms")
}

async fn created<T: Table>(table: &T, nodes: std::ops::Range<u64>) -> Outcome<T::Leases> {
    created_with(table, terms(nodes)).await
}

async fn created_with<T: Table>(table: &T, terms: LeaseTerms) -> Outcome<T::Leases> {
    let leases = table.leases(terms);
    T::create(&leases).await?;
    // It takes nothing away from a table that is in use.
    T::create(&leases).await?;
    Ok(leases)
}

async fn sixteen_that_start_at_once_get_sixteen_nodes<T: Table>(table: T) -> Outcome {
    created(&table, 0..16).await?;
    starters_get_distinct_nodes(move || {
        let leases = T::with_timeout(table.leases(long(16)), ENDLESS);
        std::future::ready(leases)
    })
    .await;
    Ok(())
}

/// F11.
async fn one_too_many_is_told_and_gets_a_node_when_it_is_free<T: Table>(table: T) -> Outcome {
    let leases = created_with(&table, terms_with(5..8, LONGER_TTL)).await?;
    let mut grants = Vec::new();
    for _ in 0..3 {
        grants.push(leases.acquire(now_by(0), None).await?);
    }
    let nodes: HashSet<u64> = grants.iter().map(Grant::node).collect();
    assert_eq!(nodes, HashSet::from([5, 6, 7]));
    fails(
        leases.acquire(now_by(0), None).await,
        CoordinationFailure::NoFreeNode,
        "has 3 nodes, and all are held",
    );

    tokio::time::sleep(LONGER_TTL + Duration::from_millis(100)).await;
    let next = leases.acquire(now_by(-60_000), None).await?;
    let before = grants
        .iter()
        .find(|grant| grant.node() == next.node())
        .expect("one of them");
    assert_eq!((next.epoch(), next.floor()), (2, before.ceiling()));
    Ok(())
}

/// F5.
async fn a_clock_far_off_burns_no_time<T: Table>(table: T) -> Outcome {
    const HOUR: i64 = 3_600_000;
    let leases = created(&table, 0..1).await?;
    let too_far = Some(CoordinationFailure::TooFarAhead);
    assert_eq!(failure(leases.acquire(now_by(HOUR), None).await), too_far);
    assert_eq!(
        failure(leases.acquire(now_by(0), Some(now_by(HOUR))).await),
        too_far
    );
    let grant = leases.acquire(now_by(-8 * HOUR), None).await?;
    assert!(grant.ceiling() < now_by(-7 * HOUR), "its own clock counts");
    assert_eq!(failure(leases.renew(&grant, now_by(HOUR)).await), too_far);
    let renewed = leases.renew(&grant, now_by(0)).await?;
    assert!(renewed.ceiling() > now_by(0) && renewed.ceiling() < now_by(HOUR / 2));
    // What a clock that went back takes from the ceiling: nothing.
    assert_eq!(leases.renew(&renewed, now_by(-2_000)).await?, renewed);
    Ok(())
}

/// F6.
async fn a_restart_with_an_older_clock_begins_at_the_ceiling<T: Table>(table: T) -> Outcome {
    let leases = created(&table, 0..1).await?;
    let grant = leases.acquire(now_by(0), None).await?;
    // Ahead of the clock, as a generator under load is: what yitter forgets over a restart.
    let grant = leases.renew(&grant, now_by(2_000)).await?;
    drop(leases);
    tokio::time::sleep(TTL + Duration::from_millis(100)).await;
    let leases = table.leases(terms(0..1));
    let next = leases.acquire(now_by(-10_000), None).await?;
    assert_eq!((next.node(), next.epoch()), (0, 2));
    assert_eq!(next.floor(), grant.ceiling());
    // And a process whose own keys are further goes on above them.
    leases.release(&next, None).await?;
    let last = Timestamp::from_unix_millis(next.floor().as_unix_millis() + 700)?;
    let later = leases.acquire(now_by(-10_000), Some(last)).await?;
    assert_eq!(later.floor().as_unix_millis(), last.as_unix_millis() + 1);
    Ok(())
}

async fn of_two_copies_the_first_to_renew_goes_on<T: Table>(table: T) -> Outcome {
    let one = created(&table, 0..4).await?;
    let other = table.leases(terms(0..4));
    the_first_copy_to_renew_goes_on(&one, &other).await
}

/// F3 and the eighth fault: a lease that ended while its holder was stopped.
async fn a_holder_that_slept_too_long_is_fenced<T: Table>(table: T) -> Outcome {
    let leases = created(&table, 0..1).await?;
    let grant = leases.acquire(now_by(0), None).await?;
    tokio::time::sleep(TTL + Duration::from_millis(100)).await;
    // Nobody took it: the ceiling is still its own.
    let grant = leases.renew(&grant, now_by(0)).await?;
    tokio::time::sleep(TTL + Duration::from_millis(100)).await;
    let next = leases.acquire(now_by(-2_000), None).await?;
    assert!(next.floor() >= grant.ceiling());
    fails(
        leases.renew(&grant, now_by(0)).await,
        CoordinationFailure::Fenced,
        "the node was granted to another",
    );
    Ok(())
}

/// F15.
async fn a_ceiling_that_went_back_is_told_and_written_back<T: Table>(table: T) -> Outcome {
    let leases = created(&table, 0..1).await?;
    let regressed = Some(CoordinationFailure::CeilingRegressed);
    let name = table.name();
    for copy in [
        format!("UPDATE {name} SET ceiling = ceiling - 1000"),
        format!("UPDATE {name} SET epoch = 0, ceiling = 0, expires = 0"),
    ] {
        let grant = leases.acquire(now_by(0), None).await?;
        table.run(&copy).await?;
        assert_eq!(
            failure(leases.renew(&grant, now_by(0)).await),
            regressed,
            "{copy}"
        );
        tokio::time::sleep(TTL + Duration::from_millis(100)).await;
        let next = leases.acquire(now_by(-60_000), None).await?;
        assert_eq!(
            (next.epoch(), next.floor()),
            (grant.epoch() + 1, grant.ceiling()),
            "{copy}"
        );
        leases.release(&next, None).await?;
        // Its answer may be lost, so that it is asked for again.
        leases.release(&next, None).await?;
        // Back to the clock, so that the next round is not too far ahead of it.
        tokio::time::sleep(TTL).await;
    }
    let grant = leases.acquire(now_by(0), None).await?;
    let copy = format!("UPDATE {name} SET ceiling = ceiling - 1000");
    table.run(&copy).await?;
    assert_eq!(failure(leases.release(&grant, None).await), regressed);
    Ok(())
}

/// The second fault: a store that says no is not answered with what is remembered.
async fn state_that_is_gone_is_an_error<T: Table>(table: T) -> Outcome {
    let lost = Some(CoordinationFailure::StateLost);
    let leases = table.leases(terms(0..2));
    assert_eq!(
        failure(leases.acquire(now_by(0), None).await),
        lost,
        "it was never made"
    );
    T::create(&leases).await?;
    let grant = leases.acquire(now_by(0), None).await?;
    table.run(&format!("DELETE FROM {}", table.name())).await?;
    assert_eq!(failure(leases.renew(&grant, now_by(0)).await), lost);
    assert_eq!(failure(leases.acquire(now_by(0), None).await), lost);
    table.run(&format!("DROP TABLE {}", table.name())).await?;
    assert_eq!(failure(leases.renew(&grant, now_by(0)).await), lost);
    assert_eq!(failure(leases.acquire(now_by(0), None).await), lost);

    let mismatch = Some(CoordinationFailure::Mismatch);
    let named = T::with_table(table.leases(terms(0..2)), "a`b\"c");
    assert_eq!(
        named.err().and_then(|error| error.coordination_failure()),
        mismatch
    );
    let many = table.leases(terms(0..100_000));
    let created = T::create(&many).await;
    assert_eq!(failure(created), mismatch);
    Ok(())
}

async fn a_release_keeps_what_was_used<T: Table>(table: T) -> Outcome {
    let leases = T::with_table(created(&table, 0..1).await?, &table.other())?;
    T::create(&leases).await?;
    let grant = leases.acquire(now_by(0), None).await?;
    let last = Timestamp::from_unix_millis(grant.floor().as_unix_millis() + 7)?;
    leases.release(&grant, Some(last)).await?;
    // At once: nothing is waited for.
    let next = leases.acquire(now_by(-1_000), None).await?;
    assert_eq!(next.floor().as_unix_millis(), last.as_unix_millis() + 1);
    assert_eq!(
        failure(leases.release(&grant, None).await),
        Some(CoordinationFailure::Fenced)
    );
    leases.renew(&next, now_by(0)).await?;
    Ok(())
}

/// Baidu's way: a row for each start, never used again.
async fn every_start_gets_a_number_of_its_own<DB: Backend>(options: ConnectOptions<DB>) -> Outcome {
    let nodes = SqlDisposableNode::<DB>::new(options.clone(), terms(0..11))
        .with_timeout(Duration::from_secs(60));
    assert_eq!(
        failure(nodes.acquire(now_by(0), None).await),
        Some(CoordinationFailure::StateLost)
    );
    nodes.create().await?;
    let nodes = Arc::new(nodes);
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..10 {
        let nodes = Arc::clone(&nodes);
        tasks.spawn(async move { nodes.acquire(now_by(0), None).await });
    }
    let mut grants = Vec::new();
    while let Some(grant) = tasks.join_next().await {
        grants.push(grant??);
    }
    let numbers: HashSet<u64> = grants.iter().map(Grant::node).collect();
    assert_eq!(numbers, (1..11).collect());
    for _ in 0..2 {
        fails(
            nodes.acquire(now_by(0), None).await,
            CoordinationFailure::NoFreeNode,
            "all are used up",
        );
    }
    // A copy of a running process is found out.
    let renewed = nodes.renew(&grants[0], now_by(500)).await?;
    assert_eq!(
        failure(nodes.renew(&grants[0], now_by(0)).await),
        Some(CoordinationFailure::Fenced)
    );
    nodes.release(&renewed, None).await?;
    assert_eq!(
        failure(nodes.acquire(now_by(0), None).await),
        Some(CoordinationFailure::NoFreeNode)
    );
    Ok(())
}
