//! A process that is killed in the midst of a two-phase commit: at each poll of its flush, which is behind each message
//! that it has sent and behind each answer.

use std::{
    collections::BTreeSet,
    env,
    future::poll_fn,
    pin::pin,
    process::{Command, Stdio},
    time::Duration,
};

use ordid_sqlx::{OrphanDecision, prepared_orphans, recover_prepared};
use ordid_tests::proxy::Fault;
use sqlx::{ConnectOptions as _, Pool, Postgres, pool::PoolOptions, postgres::PgConnectOptions};

use super::{ANY_AGE, NAME, Pools, ROWS, SHARDS, begin, check, rows, tenants, through};
use crate::{Outcome, database::Live as _};

/// The addresses of the databases; in the environment of the process that is killed.
const DATABASES: &str = "ORDID_TEST_TWO_PHASE_DATABASES";
/// At which poll it is killed.
const POLL: &str = "ORDID_TEST_TWO_PHASE_POLL";

/// The name of the sessions of that process.
const APPLICATION: &str = "killed";

/// Runs as the process that is killed, if the environment says so, and does not return then.
pub fn run_if_told() {
    let Some(databases) = env::var(DATABASES).ok() else {
        return;
    };
    let poll = env::var(POLL).expect("a number").parse().expect("a number");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let outcome = runtime.block_on(flush(&databases, poll));
    let code = match outcome {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("{error}");
            2
        }
    };
    std::process::exit(code);
}

async fn flush(databases: &str, last: usize) -> Outcome {
    let mut pools = Vec::new();
    for url in databases.split(' ') {
        let options: PgConnectOptions = url.parse()?;
        let options = options.application_name(APPLICATION);
        let pool = PoolOptions::new().max_connections(1);
        pools.push(pool.connect_with(options).await?);
    }
    let mut work = begin()?;
    for tenant in tenants(ROWS)? {
        work.add(tenant)?;
    }
    let mut flush = pin!(work.flush(&pools));
    let mut polls = 0;
    poll_fn(|context| {
        if polls == last {
            // No destructor runs.
            std::process::abort();
        }
        polls += 1;
        flush.as_mut().poll(context)
    })
    .await?;
    Ok(())
}

/// What a killed process has left: how many transactions are prepared, and how many shards are committed.
type Left = (usize, usize);

/// Between two that are prepared, before the decision, and between two commits: a network that is silent holds the process
/// there.
pub async fn a_process_killed_between_two_steps_leaves_all_rows_or_none(pools: Pools) -> Outcome {
    let mut expected = 0;
    for (text, shard, wanted) in [
        ("PREPARE TRANSACTION", 1, (1, 0)),
        ("PREPARE TRANSACTION", 2, (1, 0)),
        ("COMMIT", 0, (2, 0)),
        ("COMMIT PREPARED", 1, (1, 2)),
        ("COMMIT PREPARED", 2, (1, 2)),
    ] {
        let (through, proxy) = through(&pools, shard, text).await?;
        proxy.plan([Fault::SilenceAtCommit]);
        let mut process = command(&urls(&through), usize::MAX)?.spawn()?;
        while left(&pools, expected).await? != wanted {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        process.kill()?;
        process.wait()?;
        drop(proxy);
        let (left, is_written) = recover(&pools, expected).await?;
        assert_eq!((left, is_written), (wanted, wanted.1 > 0));
        expected += ROWS * usize::from(is_written);
        check(&pools, expected).await?;
    }
    Ok(())
}

/// Returns how many transactions are prepared, and how many shards are committed.
async fn left(pools: &Pools, before: usize) -> Outcome<Left> {
    let orphans = prepared_orphans(NAME, pools).await?.len();
    let found = rows(pools).await?;
    Ok((
        orphans,
        found.iter().filter(|it| **it == before + ROWS).count(),
    ))
}

fn urls(pools: &Pools) -> String {
    let urls = pools.iter();
    let urls = urls.map(|pool| pool.connect_options().to_url_lossy().to_string());
    urls.collect::<Vec<_>>().join(" ")
}

/// Each poll in turn, until the process ends by itself, and from the beginning again until each state between two steps
/// was seen.
pub async fn a_process_killed_at_each_poll_leaves_all_rows_or_none(pools: Pools) -> Outcome {
    let wanted: BTreeSet<Left> = [
        (0, 0), // nothing is prepared
        (2, 0), // before the decision
        (2, 1), // behind it
        (0, 3), // behind the last one
    ]
    .into();
    let databases = urls(&pools);
    let (mut seen, mut expected, mut rounds) = (BTreeSet::new(), 0, 0);
    while !seen.is_superset(&wanted) {
        rounds += 1;
        assert!(rounds <= 12, "not seen: {:?}", &wanted - &seen);
        for poll in 0.. {
            let has_ended = run(&databases, poll)?;
            let (left, is_written) = recover(&pools, expected).await?;
            assert!(is_written || !has_ended, "it said that all is written");
            seen.insert(left);
            expected += ROWS * usize::from(is_written);
            check(&pools, expected).await?;
            if has_ended {
                break;
            }
        }
    }
    println!("killed processes left {seen:?}, in {rounds} rounds");
    Ok(())
}

/// Runs the process until it is killed. Returns whether it has ended by itself.
fn run(databases: &str, poll: usize) -> Outcome<bool> {
    let status = command(databases, poll)?.status()?;
    match status.code() {
        Some(0) => Ok(true),
        None => Ok(false),
        Some(code) => Err(format!("the process ended with {code}").into()),
    }
}

/// The process, which is killed at this poll.
fn command(databases: &str, poll: usize) -> std::io::Result<Command> {
    let mut command = Command::new(env::current_exe()?);
    command
        .env(DATABASES, databases)
        .env(POLL, poll.to_string())
        .stdout(Stdio::null());
    Ok(command)
}

/// Returns what was left, and whether the rows are written once it is recovered.
async fn recover(pools: &Pools, before: usize) -> Outcome<(Left, bool)> {
    for pool in pools {
        is_alone(pool).await?;
    }
    let orphans = prepared_orphans(NAME, pools).await?;
    let found = rows(pools).await?;
    let committed = found.iter().filter(|rows| **rows == before + ROWS).count();
    let is_decided = found[0] == before + ROWS;
    for orphan in &orphans {
        let expected = match is_decided {
            true => OrphanDecision::Committed,
            false => OrphanDecision::NotCommitted,
        };
        assert_eq!(orphan.decision, expected);
    }
    assert!(is_decided || committed == 0, "{found:?}");
    let recovered = recover_prepared(NAME, pools, ANY_AGE).await?;
    let ended = match is_decided {
        true => recovered.committed.len(),
        false => recovered.rolled_back.len(),
    };
    assert_eq!(ended, orphans.len());
    assert_eq!(
        rows(pools).await?,
        [before + ROWS * usize::from(is_decided); SHARDS]
    );
    Ok(((orphans.len(), committed), is_decided))
}

/// Waits until the server has ended all sessions of the process.
async fn is_alone(pool: &Pool<Postgres>) -> Result<(), sqlx::Error> {
    let others = format!(
        "pg_stat_activity WHERE datname = current_database() AND application_name = '{APPLICATION}'"
    );
    while Postgres::count(pool, &others).await? > 0 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Ok(())
}
