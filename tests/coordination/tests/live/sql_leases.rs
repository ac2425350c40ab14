//! Nodes leased from a table: PostgreSQL, MariaDB, MySQL, SQLite, and what can fail between them and their
//! holders.

use std::{collections::HashSet, net::SocketAddr, sync::Arc, time::Duration};

use libtest_mimic::Trial;
use ordid_core::{
    Error,
    clock::{Clock as _, SystemClock, Timestamp},
    coordination::{AsyncNodeAllocator, CoordinationFailure, Grant, LeaseTerms},
    entropy::ThreadEntropy,
    generator::{AtCeiling, Generator as _, LeaseKeeper, Policy},
    scheme::Snowflake,
};
use ordid_sqlx::{Backend, ConnectOptions, SqlDisposableNode, SqlLease};
use ordid_tests::{
    process::{fork, fork_writing},
    proxy::{At, Fault, Proxy},
    servers::Servers,
    trials::{Outcome, on_scratch, run},
};
use sqlx::{MySql, Postgres, Sqlite, mysql::MySqlConnectOptions, postgres::PgConnectOptions};

use crate::sql::{in_file, on_own_server, outside_of_the_runtime, own_runtime, sql};

/// After which a silent holder's node is free, where a test waits for it.
const TTL: Duration = Duration::from_millis(1_200);

pub(crate) fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    macro_rules! on_each {
        ($($test:ident),+ $(,)?) => {
            $(
                let name = concat!("sql_leases::", stringify!($test));
                for server in ["mariadb", "mysql"] {
                    on_scratch::<MySql, _, _>(trials, servers, server, name, |pool| async move {
                        $test::<MySql>((*pool.connect_options()).clone()).await
                    });
                }
                on_scratch::<Postgres, _, _>(trials, servers, "postgres", name, |pool| async move {
                    $test::<Postgres>((*pool.connect_options()).clone()).await
                });
                trials.push(in_file(name, $test::<Sqlite>));
            )+
        };
    }
    on_each!(
        sixteen_that_start_at_once_get_sixteen_nodes,
        one_too_many_is_told_and_gets_a_node_when_it_is_free,
        a_clock_far_off_burns_no_time,
        a_restart_with_an_older_clock_begins_at_the_ceiling,
        of_two_copies_the_first_to_renew_goes_on,
        a_holder_that_slept_too_long_is_fenced,
        a_ceiling_that_went_back_is_told_and_written_back,
        state_that_is_gone_is_an_error,
        a_release_keeps_what_was_used,
        every_start_gets_a_number_of_its_own,
    );
    macro_rules! over_a_network {
        ($($test:ident),+ $(,)?) => {
            $(
                let name = concat!("sql_leases::", stringify!($test));
                for server in ["mariadb", "mysql"] {
                    on_scratch::<MySql, _, _>(trials, servers, server, name, |pool| async move {
                        $test::<MySql>((*pool.connect_options()).clone()).await
                    });
                }
                on_scratch::<Postgres, _, _>(trials, servers, "postgres", name, |pool| async move {
                    $test::<Postgres>((*pool.connect_options()).clone()).await
                });
            )+
        };
    }
    over_a_network!(
        // Not on SQLite: its locks of the process do not survive a fork.
        a_killed_holder_leaves_a_gap,
        a_fork_and_its_parent_are_told_apart,
        a_store_out_of_reach_gives_no_node,
        an_answer_that_is_lost_loses_time_only,
        a_renewal_that_comes_late_changes_nothing,
    );
    trials.push(Trial::test(
        "sqlite::sql_leases::a_store_out_of_reach_gives_no_node",
        || {
            run(async || {
                let folder = tempfile::tempdir()?;
                let path = folder.path().join("missing").join("db.sqlite");
                let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
                let leases = SqlLease::<Sqlite>::new(options, LeaseTerms::new(0..4)?);
                assert_eq!(
                    failure(leases.acquire(now(0), None).await),
                    Some(CoordinationFailure::Unavailable)
                );
                Ok(())
            })
        },
    ));
    on_own_server(
        trials,
        servers,
        "postgres",
        "sql_leases::a_server_that_falls_keeps_its_ceilings",
        falls::<Postgres>,
    );
    on_own_server(
        trials,
        servers,
        "mariadb",
        "sql_leases::a_server_that_falls_keeps_its_ceilings",
        falls::<MySql>,
    );
    let name = "sql_leases::keys_end_at_the_ceiling";
    on_own_server(
        trials,
        servers,
        "postgres",
        name,
        keys_end_at_the_ceiling::<Postgres>,
    );
    on_own_server(
        trials,
        servers,
        "mariadb",
        name,
        keys_end_at_the_ceiling::<MySql>,
    );
}

/// The machine's clock, so many milliseconds off.
fn now(by: i64) -> Timestamp {
    let now = SystemClock.now().as_unix_millis();
    Timestamp::saturating_from_unix_millis(now.saturating_add_signed(by))
}

fn failure<T: std::fmt::Debug>(result: Result<T, Error>) -> Option<CoordinationFailure> {
    result
        .expect_err("it cannot be done")
        .coordination_failure()
}

fn terms(nodes: std::ops::Range<u64>) -> LeaseTerms {
    let terms = LeaseTerms::new(nodes).and_then(|terms| terms.with_window(TTL));
    terms.and_then(|terms| terms.with_ttl(TTL)).expect("terms")
}

async fn created<DB: Backend>(
    options: &ConnectOptions<DB>,
    nodes: std::ops::Range<u64>,
) -> Outcome<SqlLease<DB>> {
    let leases = SqlLease::new(options.clone(), terms(nodes));
    leases.create().await?;
    // It takes nothing away from a table that is in use.
    leases.create().await?;
    Ok(leases)
}

/// F10, and what Leaf gets wrong: two that start on an empty store both take node 0.
async fn sixteen_that_start_at_once_get_sixteen_nodes<DB: Backend>(
    options: ConnectOptions<DB>,
) -> Outcome {
    created::<DB>(&options, 0..16).await?;
    let start = Arc::new(tokio::sync::Barrier::new(16));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let (options, start) = (options.clone(), Arc::clone(&start));
        tasks.spawn(async move {
            let patience = Duration::from_secs(60);
            let leases = SqlLease::<DB>::new(options, terms(0..16).with_ttl(patience)?)
                .with_timeout(patience);
            start.wait().await;
            leases.acquire(now(0), None).await
        });
    }
    let mut nodes = HashSet::new();
    while let Some(grant) = tasks.join_next().await {
        let grant = grant??;
        assert!(nodes.insert(grant.node()), "node {} twice", grant.node());
        assert_eq!(grant.epoch(), 1);
    }
    assert_eq!(nodes.len(), 16);
    Ok(())
}

/// F11.
async fn one_too_many_is_told_and_gets_a_node_when_it_is_free<DB: Backend>(
    options: ConnectOptions<DB>,
) -> Outcome {
    let leases = created::<DB>(&options, 5..8).await?;
    let mut grants = Vec::new();
    for _ in 0..3 {
        grants.push(leases.acquire(now(0), None).await?);
    }
    let nodes: HashSet<u64> = grants.iter().map(Grant::node).collect();
    assert_eq!(nodes, HashSet::from([5, 6, 7]));
    let error = leases
        .acquire(now(0), None)
        .await
        .expect_err("all are held");
    assert_eq!(
        error.coordination_failure(),
        Some(CoordinationFailure::NoFreeNode)
    );
    assert!(
        error.to_string().contains("has 3 nodes, and all are held"),
        "{error}"
    );

    tokio::time::sleep(TTL + Duration::from_millis(100)).await;
    let next = leases.acquire(now(-60_000), None).await?;
    let before = grants
        .iter()
        .find(|grant| grant.node() == next.node())
        .expect("one of them");
    assert_eq!((next.epoch(), next.floor()), (2, before.ceiling()));
    Ok(())
}

/// F5.
async fn a_clock_far_off_burns_no_time<DB: Backend>(options: ConnectOptions<DB>) -> Outcome {
    const HOUR: i64 = 3_600_000;
    let leases = created::<DB>(&options, 0..1).await?;
    let too_far = Some(CoordinationFailure::TooFarAhead);
    assert_eq!(failure(leases.acquire(now(HOUR), None).await), too_far);
    assert_eq!(
        failure(leases.acquire(now(0), Some(now(HOUR))).await),
        too_far
    );
    let grant = leases.acquire(now(-8 * HOUR), None).await?;
    assert!(grant.ceiling() < now(-7 * HOUR), "its own clock counts");
    assert_eq!(failure(leases.renew(&grant, now(HOUR)).await), too_far);
    let renewed = leases.renew(&grant, now(0)).await?;
    assert!(renewed.ceiling() > now(0) && renewed.ceiling() < now(HOUR / 2));
    // What a clock that went back takes from the ceiling: nothing.
    assert_eq!(leases.renew(&renewed, now(-2_000)).await?, renewed);
    Ok(())
}

/// F6.
async fn a_restart_with_an_older_clock_begins_at_the_ceiling<DB: Backend>(
    options: ConnectOptions<DB>,
) -> Outcome {
    let leases = created::<DB>(&options, 0..1).await?;
    let grant = leases.acquire(now(0), None).await?;
    // Ahead of the clock, as a generator under load is: what yitter forgets over a restart.
    let grant = leases.renew(&grant, now(2_000)).await?;
    drop(leases);
    tokio::time::sleep(TTL + Duration::from_millis(100)).await;
    let leases = SqlLease::<DB>::new(options, terms(0..1));
    let next = leases.acquire(now(-10_000), None).await?;
    assert_eq!((next.node(), next.epoch()), (0, 2));
    assert_eq!(next.floor(), grant.ceiling());
    // And a process whose own keys are further goes on above them.
    leases.release(&next, None).await?;
    let last = Timestamp::from_unix_millis(next.floor().as_unix_millis() + 700)?;
    let later = leases.acquire(now(-10_000), Some(last)).await?;
    assert_eq!(later.floor().as_unix_millis(), last.as_unix_millis() + 1);
    Ok(())
}

/// F7: a process of its own, which `kill -9` ends in the midst of its window.
async fn a_killed_holder_leaves_a_gap<DB: Backend>(options: ConnectOptions<DB>) -> Outcome {
    use std::io::{Read as _, Write as _};

    let leases = created::<DB>(&options, 0..1).await?;
    let of = options.clone();
    let mut child = outside_of_the_runtime(move || {
        fork_writing(move |pipe| {
            let grant = own_runtime(async {
                SqlLease::<DB>::new(of, terms(0..1))
                    .acquire(now(0), None)
                    .await
            });
            let ceiling = grant.expect("free").ceiling().as_unix_millis();
            pipe.write_all(&ceiling.to_le_bytes())?;
            std::thread::sleep(Duration::from_secs(600));
            Ok(())
        })
    })?;
    let ceiling = tokio::task::spawn_blocking(move || {
        let mut bytes = [0; 8];
        child
            .read_exact(&mut bytes)
            .map(|()| u64::from_le_bytes(bytes))
        // Killed here, as it is dropped.
    })
    .await??;
    assert_eq!(
        failure(leases.acquire(now(0), None).await),
        Some(CoordinationFailure::NoFreeNode)
    );
    tokio::time::sleep(TTL + Duration::from_millis(100)).await;
    let next = leases.acquire(now(-5_000), None).await?;
    assert_eq!((next.epoch(), next.floor().as_unix_millis()), (2, ceiling));
    Ok(())
}

/// F8: the child has the parent's allocator, with its open connection, and its grant.
async fn a_fork_and_its_parent_are_told_apart<DB: Backend>(options: ConnectOptions<DB>) -> Outcome {
    let leases = Arc::new(created::<DB>(&options, 0..2).await?);
    let grant = leases.acquire(now(0), None).await?;
    let of_child = Arc::clone(&leases);
    let child = outside_of_the_runtime(move || {
        fork(move || {
            let leases = of_child;
            let answer = own_runtime(async {
                let renewed = leases.renew(&grant, now(500)).await?;
                let other = leases.acquire(now(500), None).await?;
                Ok::<_, Error>(format!(
                    "{} {} {}",
                    renewed.node(),
                    renewed.epoch(),
                    other.node()
                ))
            });
            // The parent's connection must not be closed by the child.
            std::mem::forget(leases);
            answer
                .unwrap_or_else(|error| error.to_string())
                .into_bytes()
        })
    })?;
    let said = tokio::task::spawn_blocking(move || child.join()).await?;
    let other = 1 - grant.node();
    assert_eq!(
        String::from_utf8(said)?,
        format!("{} 1 {other}", grant.node())
    );
    // One of both goes on with the grant, whichever renews first; and the parent's connection still answers.
    assert_eq!(
        failure(leases.renew(&grant, now(0)).await),
        Some(CoordinationFailure::Fenced)
    );
    assert_eq!(
        failure(leases.acquire(now(0), None).await),
        Some(CoordinationFailure::NoFreeNode)
    );
    Ok(())
}

/// F9.
async fn of_two_copies_the_first_to_renew_goes_on<DB: Backend>(
    options: ConnectOptions<DB>,
) -> Outcome {
    let one = created::<DB>(&options, 0..4).await?;
    let grant = one.acquire(now(0), None).await?;
    let other = SqlLease::<DB>::new(options, terms(0..4));
    let renewed = other.renew(&grant, now(200)).await?;
    for _ in 0..2 {
        assert_eq!(
            failure(one.renew(&grant, now(300)).await),
            Some(CoordinationFailure::Fenced)
        );
    }
    assert_eq!(
        failure(one.release(&grant, None).await),
        Some(CoordinationFailure::Fenced)
    );
    other.renew(&renewed, now(400)).await?;
    // Both at once: the ceiling moves for one of them.
    for round in 0..20 {
        let grant = one.acquire(now(0), None).await?;
        let later = now(1_000 + round);
        let (a, b) = tokio::join!(one.renew(&grant, later), other.renew(&grant, later));
        assert_eq!(u8::from(a.is_ok()) + u8::from(b.is_ok()), 1, "{a:?} {b:?}");
        let renewed = a.or(b)?;
        one.release(&renewed, None).await?;
    }
    Ok(())
}

/// F3 and the eighth fault: a lease that ended while its holder was stopped.
async fn a_holder_that_slept_too_long_is_fenced<DB: Backend>(
    options: ConnectOptions<DB>,
) -> Outcome {
    let leases = created::<DB>(&options, 0..1).await?;
    let grant = leases.acquire(now(0), None).await?;
    tokio::time::sleep(TTL + Duration::from_millis(100)).await;
    // Nobody took it: the ceiling is still its own.
    let grant = leases.renew(&grant, now(0)).await?;
    tokio::time::sleep(TTL + Duration::from_millis(100)).await;
    let next = leases.acquire(now(-2_000), None).await?;
    assert!(next.floor() >= grant.ceiling());
    let error = leases
        .renew(&grant, now(0))
        .await
        .expect_err("another has it");
    assert_eq!(
        error.coordination_failure(),
        Some(CoordinationFailure::Fenced)
    );
    assert!(
        error
            .to_string()
            .contains("the node was granted to another"),
        "{error}"
    );
    Ok(())
}

/// F15.
async fn a_ceiling_that_went_back_is_told_and_written_back<DB: Backend>(
    options: ConnectOptions<DB>,
) -> Outcome {
    let leases = created::<DB>(&options, 0..1).await?;
    let regressed = Some(CoordinationFailure::CeilingRegressed);
    for copy in [
        "UPDATE ordid_nodes SET ceiling = ceiling - 1000",
        "UPDATE ordid_nodes SET epoch = 0, ceiling = 0, expires = 0",
    ] {
        let grant = leases.acquire(now(0), None).await?;
        sql::<DB>(&options, copy).await?;
        assert_eq!(
            failure(leases.renew(&grant, now(0)).await),
            regressed,
            "{copy}"
        );
        tokio::time::sleep(TTL + Duration::from_millis(100)).await;
        let next = leases.acquire(now(-60_000), None).await?;
        assert_eq!(
            (next.epoch(), next.floor()),
            (grant.epoch() + 1, grant.ceiling()),
            "{copy}"
        );
        leases.release(&next, None).await?;
        // Back to the clock, so that the next round is not too far ahead of it.
        tokio::time::sleep(TTL).await;
    }
    let grant = leases.acquire(now(0), None).await?;
    sql::<DB>(&options, "UPDATE ordid_nodes SET ceiling = ceiling - 1000").await?;
    assert_eq!(failure(leases.release(&grant, None).await), regressed);
    Ok(())
}

/// The second fault: a store that says no is not answered with what is remembered.
async fn state_that_is_gone_is_an_error<DB: Backend>(options: ConnectOptions<DB>) -> Outcome {
    let lost = Some(CoordinationFailure::StateLost);
    let leases = SqlLease::<DB>::new(options.clone(), terms(0..2));
    assert_eq!(
        failure(leases.acquire(now(0), None).await),
        lost,
        "it was never made"
    );
    leases.create().await?;
    let grant = leases.acquire(now(0), None).await?;
    sql::<DB>(&options, "DELETE FROM ordid_nodes").await?;
    assert_eq!(failure(leases.renew(&grant, now(0)).await), lost);
    assert_eq!(failure(leases.acquire(now(0), None).await), lost);
    sql::<DB>(&options, "DROP TABLE ordid_nodes").await?;
    assert_eq!(failure(leases.renew(&grant, now(0)).await), lost);
    assert_eq!(failure(leases.acquire(now(0), None).await), lost);

    assert!(
        SqlLease::<DB>::new(options.clone(), terms(0..2))
            .with_table("a`b\"c")
            .is_err()
    );
    let many = SqlLease::<DB>::new(options, terms(0..100_000));
    assert_eq!(
        failure(many.create_sql()),
        Some(CoordinationFailure::Mismatch)
    );
    Ok(())
}

async fn a_release_keeps_what_was_used<DB: Backend>(options: ConnectOptions<DB>) -> Outcome {
    let leases = created::<DB>(&options, 0..1)
        .await?
        .with_table("other_nodes")?;
    leases.create().await?;
    let grant = leases.acquire(now(0), None).await?;
    let last = Timestamp::from_unix_millis(grant.floor().as_unix_millis() + 7)?;
    leases.release(&grant, Some(last)).await?;
    // At once: nothing is waited for.
    let next = leases.acquire(now(-1_000), None).await?;
    assert_eq!(next.floor().as_unix_millis(), last.as_unix_millis() + 1);
    assert_eq!(
        failure(leases.release(&grant, None).await),
        Some(CoordinationFailure::Fenced)
    );
    leases.renew(&next, now(0)).await?;
    Ok(())
}

/// Baidu's way: a row for each start, never used again.
async fn every_start_gets_a_number_of_its_own<DB: Backend>(options: ConnectOptions<DB>) -> Outcome {
    let nodes = SqlDisposableNode::<DB>::new(options.clone(), terms(0..11))
        .with_timeout(Duration::from_secs(60));
    assert_eq!(
        failure(nodes.acquire(now(0), None).await),
        Some(CoordinationFailure::StateLost)
    );
    nodes.create().await?;
    let nodes = Arc::new(nodes);
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..10 {
        let nodes = Arc::clone(&nodes);
        tasks.spawn(async move { nodes.acquire(now(0), None).await });
    }
    let mut grants = Vec::new();
    while let Some(grant) = tasks.join_next().await {
        grants.push(grant??);
    }
    let numbers: HashSet<u64> = grants.iter().map(Grant::node).collect();
    assert_eq!(numbers, (1..11).collect());
    for _ in 0..2 {
        let error = nodes.acquire(now(0), None).await.expect_err("used up");
        assert_eq!(
            error.coordination_failure(),
            Some(CoordinationFailure::NoFreeNode)
        );
        assert!(error.to_string().contains("all are used up"), "{error}");
    }
    // A copy of a running process is found out.
    let renewed = nodes.renew(&grants[0], now(500)).await?;
    assert_eq!(
        failure(nodes.renew(&grants[0], now(0)).await),
        Some(CoordinationFailure::Fenced)
    );
    nodes.release(&renewed, None).await?;
    assert_eq!(
        failure(nodes.acquire(now(0), None).await),
        Some(CoordinationFailure::NoFreeNode)
    );
    Ok(())
}

/// F1, F2: nobody listens; and the connection breaks while the node is held.
async fn a_store_out_of_reach_gives_no_node<DB: Backend + Network>(
    options: ConnectOptions<DB>,
) -> Outcome {
    let unavailable = Some(CoordinationFailure::Unavailable);
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await?
        .local_addr()?
        .port();
    let leases = SqlLease::<DB>::new(DB::at(&options, closed), terms(0..2));
    assert_eq!(failure(leases.acquire(now(0), None).await), unavailable);

    let direct = created::<DB>(&options, 0..2).await?;
    let proxy = proxy_to::<DB>(&options).await?;
    let over = SqlLease::<DB>::new(DB::at(&options, proxy.port()), terms(0..2))
        .with_timeout(Duration::from_secs(2));
    let grant = over.acquire(now(0), None).await?;
    proxy.always(Fault::Cut(At::Up(0)));
    drop(over);
    let over = SqlLease::<DB>::new(DB::at(&options, proxy.port()), terms(0..2));
    assert_eq!(failure(over.renew(&grant, now(0)).await), unavailable);
    assert_eq!(failure(over.release(&grant, None).await), unavailable);
    assert_eq!(failure(over.acquire(now(0), None).await), unavailable);
    // The grant is still good, and once the store is back it is renewed.
    proxy.always(Fault::None);
    let renewed = over.renew(&grant, now(0)).await?;
    assert!(renewed.ceiling() >= grant.ceiling());
    direct.release(&renewed, None).await?;
    Ok(())
}

/// F16: the last bytes of an answer never come, for an acquisition and for a renewal.
async fn an_answer_that_is_lost_loses_time_only<DB: Backend + Network>(
    options: ConnectOptions<DB>,
) -> Outcome {
    let direct = created::<DB>(&options, 0..2).await?;
    let proxy = proxy_to::<DB>(&options).await?;
    let over = || {
        SqlLease::<DB>::new(DB::at(&options, proxy.port()), terms(0..2))
            .with_timeout(Duration::from_secs(3))
    };
    // What an acquisition and a renewal take, on connections of their own.
    let grant = over().acquire(now(0), None).await?;
    let acquisition = proxy.last_traffic().down;
    let grant = over().renew(&grant, now(100)).await?;
    let renewal = proxy.last_traffic().down;
    direct.release(&grant, None).await?;

    let mut carried_out = 0;
    for _ in 0..3 {
        let before = direct.acquire(now(0), None).await?;
        direct.release(&before, None).await?;
        proxy.plan([Fault::Swallow(acquisition - 1)]);
        let lost = over().acquire(now(0), None).await;
        assert_eq!(failure(lost), Some(CoordinationFailure::Unavailable));
        // It was carried out: one of the two nodes has a holder that does not know of it.
        let one = direct.acquire(now(0), None).await?;
        let none = direct.acquire(now(0), None).await;
        carried_out += u8::from(none.is_err());
        direct.release(&one, None).await?;
        if let Ok(other) = none {
            direct.release(&other, None).await?;
        }
        tokio::time::sleep(TTL + Duration::from_millis(100)).await;
    }
    assert!(carried_out > 0, "the answers were lost too early");

    let grant = direct.acquire(now(0), None).await?;
    proxy.plan([Fault::Swallow(renewal - 1)]);
    let lost = over().renew(&grant, now(900)).await;
    assert_eq!(failure(lost), Some(CoordinationFailure::Unavailable));
    let error = direct
        .renew(&grant, now(900))
        .await
        .expect_err("the ceiling has moved");
    assert_eq!(
        error.coordination_failure(),
        Some(CoordinationFailure::Fenced)
    );
    assert!(
        error
            .to_string()
            .contains("a renewal whose answer was lost"),
        "{error}"
    );
    Ok(())
}

/// A renewal that the network holds back until somebody else has the node.
async fn a_renewal_that_comes_late_changes_nothing<DB: Backend + Network>(
    options: ConnectOptions<DB>,
) -> Outcome {
    let direct = created::<DB>(&options, 0..1).await?;
    let proxy = proxy_to::<DB>(&options).await?;
    let over = || {
        SqlLease::<DB>::new(DB::at(&options, proxy.port()), terms(0..1))
            .with_timeout(Duration::from_secs(2))
    };
    let old = direct.acquire(now(0), None).await?;
    let grant = direct.renew(&old, now(100)).await?;
    // One that is not even tried ends before the UPDATE, which is what is held back.
    assert_eq!(
        failure(over().renew(&old, now(100)).await),
        Some(CoordinationFailure::Fenced)
    );
    proxy.plan([Fault::Hold(proxy.last_traffic().up)]);
    let held = over().renew(&grant, now(1_500)).await;
    assert_eq!(failure(held), Some(CoordinationFailure::Unavailable));
    tokio::time::sleep(TTL + Duration::from_millis(100)).await;
    let next = direct.acquire(now(0), None).await?;
    proxy.release();
    tokio::time::sleep(Duration::from_millis(500)).await;
    // Epoch and ceiling are those of the new holder.
    direct.renew(&next, now(100)).await?;
    Ok(())
}

/// F2 on a real server, and its ceilings after `kill -9`.
async fn falls<DB: Backend>(mut server: ordid_harness::Server) -> Outcome
where
    ConnectOptions<DB>: std::str::FromStr<Err = sqlx::Error>,
{
    let options: ConnectOptions<DB> = server.url().parse()?;
    let leases = created::<DB>(&options, 0..1).await?;
    let grant = leases.acquire(now(0), None).await?;
    let mut grant = leases.renew(&grant, now(500)).await?;
    for _ in 0..2 {
        server.kill()?;
        let unavailable = Some(CoordinationFailure::Unavailable);
        assert_eq!(failure(leases.renew(&grant, now(0)).await), unavailable);
        assert_eq!(failure(leases.acquire(now(0), None).await), unavailable);
        server = tokio::task::spawn_blocking(move || server.restart().map(|()| server)).await??;
        tokio::time::sleep(TTL).await;
        // Its connections are gone, which it finds out by itself.
        let renewed = leases.renew(&grant, now(0)).await?;
        assert!(renewed.ceiling() >= grant.ceiling());
        tokio::time::sleep(TTL + Duration::from_millis(100)).await;
        let next = leases.acquire(now(-10_000), None).await?;
        assert_eq!(
            (next.epoch(), next.floor()),
            (grant.epoch() + 1, renewed.ceiling())
        );
        grant = next;
    }
    Ok(())
}

/// F2 in the keys: they go on while the server is down, up to the ceiling; then there are none until it is back.
async fn keys_end_at_the_ceiling<DB: Backend>(mut server: ordid_harness::Server) -> Outcome
where
    ConnectOptions<DB>: std::str::FromStr<Err = sqlx::Error>,
{
    let options: ConnectOptions<DB> = server.url().parse()?;
    let leases = Arc::new(created::<DB>(&options, 0..1).await?);
    let keeper = LeaseKeeper::<Snowflake, _, _>::acquire(
        &*leases,
        SystemClock,
        ThreadEntropy,
        Policy::DEFAULT,
        AtCeiling::Error,
    )
    .await?;
    let generator = keeper.generator();
    let running = tokio::spawn(keeper.run(Arc::clone(&leases), tokio::time::sleep));
    let mut keys = Vec::new();
    let mut make = |until: &dyn Fn(&Result<i64, Error>) -> bool| loop {
        let key = generator.try_generate().map(|key| key.into_raw());
        let is_last = until(&key);
        match key {
            Ok(key) => keys.push(key),
            Err(error) if is_last => return (keys.len(), Some(error)),
            Err(_) => {}
        }
        if is_last {
            return (keys.len(), None);
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    // Renewed a few times.
    let end = std::time::Instant::now() + 3 * TTL;
    let (before, failed) = make(&|key| key.is_err() || std::time::Instant::now() > end);
    assert_eq!(failed, None);
    server.kill()?;
    let (down, failed) = make(&Result::is_err);
    let failed = failed.and_then(|error| error.coordination_failure());
    assert_eq!(failed, Some(CoordinationFailure::Expired));
    assert!(down > before, "none was made without the server");
    let server = tokio::task::spawn_blocking(move || server.restart().map(|()| server)).await??;
    let (after, _) = make(&Result::is_ok);
    assert_eq!(after, down + 1);
    assert!(keys.is_sorted_by(|a, b| a < b), "each above all before");
    generator.close();
    running.await??;
    drop(server);
    Ok(())
}

/// A server that is reached by a port.
pub(crate) trait Network: Backend {
    fn at(options: &ConnectOptions<Self>, port: u16) -> ConnectOptions<Self>;
    fn port(options: &ConnectOptions<Self>) -> u16;
}

macro_rules! network {
    ($database:ty, $options:ty) => {
        impl Network for $database {
            fn at(options: &$options, port: u16) -> $options {
                options.clone().port(port)
            }

            fn port(options: &$options) -> u16 {
                options.get_port()
            }
        }
    };
}

network!(Postgres, PgConnectOptions);
network!(MySql, MySqlConnectOptions);

pub(crate) async fn proxy_to<DB: Network>(options: &ConnectOptions<DB>) -> std::io::Result<Proxy> {
    Proxy::start(SocketAddr::from(([127, 0, 0, 1], DB::port(options)))).await
}
