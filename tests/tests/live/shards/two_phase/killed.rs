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
use sqlx::{MySql, Pool, Postgres};

use super::{
    ANY_AGE, Options, Pools, Prepares, ROWS, SHARDS, begin, check, rows, tenants, through,
};
use crate::Outcome;

/// The addresses of the databases; in the environment of the process that is killed.
const DATABASES: &str = "ORDID_TEST_TWO_PHASE_DATABASES";
/// At which poll it is killed.
const POLL: &str = "ORDID_TEST_TWO_PHASE_POLL";

/// The name of this set of databases.
const NAME: &str = "ORDID_TEST_TWO_PHASE_NAME";

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
    let outcome = match databases.starts_with("mysql") {
        true => runtime.block_on(flush::<MySql>(&databases, poll)),
        false => runtime.block_on(flush::<Postgres>(&databases, poll)),
    };
    let code = match outcome {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("{error}");
            2
        }
    };
    std::process::exit(code);
}

async fn flush<DB: Prepares>(databases: &str, last: usize) -> Outcome {
    let mut pools = Vec::new();
    for url in databases.split(' ') {
        let options: Options<DB> = url.parse()?;
        let pool = DB::patient(1);
        pools.push(pool.connect_with(DB::named(options)).await?);
    }
    let pools = Pools {
        name: env::var(NAME)?,
        pools,
    };
    let mut work = begin(&pools)?;
    for tenant in tenants(ROWS)? {
        DB::place(&mut work, tenant)?;
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
pub async fn a_process_killed_between_two_steps_leaves_all_rows_or_none<DB: Prepares>(
    pools: Pools<DB>,
) -> Outcome {
    allow(&pools).await?;
    let mut expected = 0;
    for (text, shard, wanted) in [
        (DB::PREPARE, 1, (1, 0)),
        (DB::PREPARE, 2, (1, 0)),
        ("COMMIT", 0, (2, 0)),
        (DB::COMMIT_PREPARED, 1, (1, 2)),
        (DB::COMMIT_PREPARED, 2, (1, 2)),
    ] {
        let (through, proxy) = through(&pools, shard, text).await?;
        // MariaDB's second phase goes over another connection.
        proxy.always(Fault::SilenceAtCommit);
        let mut process = command(&through, usize::MAX)?.spawn()?;
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
async fn left<DB: Prepares>(pools: &Pools<DB>, before: usize) -> Outcome<Left> {
    let orphans = prepared_orphans(&pools.name, pools).await?.len();
    let found = rows(pools).await?;
    Ok((
        orphans,
        found.iter().filter(|it| **it == before + ROWS).count(),
    ))
}

fn urls<DB: Prepares>(pools: &Pools<DB>) -> String {
    let urls = pools.iter();
    let urls = urls.map(|pool| DB::url(&pool.connect_options()));
    urls.collect::<Vec<_>>().join(" ")
}

/// Each poll in turn, until the process ends by itself, and from the beginning again until each state between two steps
/// was seen.
pub async fn a_process_killed_at_each_poll_leaves_all_rows_or_none<DB: Prepares>(
    pools: Pools<DB>,
) -> Outcome {
    let wanted: BTreeSet<Left> = [
        (0, 0), // nothing is prepared
        (2, 0), // before the decision
        (2, 1), // behind it
        (0, 3), // behind the last one
    ]
    .into();
    allow(&pools).await?;
    let (mut seen, mut expected, mut rounds) = (BTreeSet::new(), 0, 0);
    while !seen.is_superset(&wanted) {
        rounds += 1;
        assert!(rounds <= 12, "not seen: {:?}", &wanted - &seen);
        for poll in 0.. {
            let has_ended = run(&pools, poll)?;
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
fn run<DB: Prepares>(pools: &Pools<DB>, poll: usize) -> Outcome<bool> {
    let status = command(pools, poll)?.status()?;
    match status.code() {
        Some(0) => Ok(true),
        None => Ok(false),
        Some(code) => Err(format!("the process ended with {code}").into()),
    }
}

/// The process, which is killed at this poll.
fn command<DB: Prepares>(pools: &Pools<DB>, poll: usize) -> std::io::Result<Command> {
    let mut command = Command::new(env::current_exe()?);
    command
        .env(DATABASES, urls(pools))
        .env(NAME, &pools.name)
        .env(POLL, poll.to_string())
        .stdout(Stdio::null());
    Ok(command)
}

/// Returns what was left, and whether the rows are written once it is recovered.
async fn recover<DB: Prepares>(pools: &Pools<DB>, before: usize) -> Outcome<(Left, bool)> {
    for pool in pools.iter() {
        is_alone(pool).await;
    }
    let orphans = prepared_orphans(&pools.name, pools).await?;
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
    let recovered = recover_prepared(&pools.name, pools, ANY_AGE).await?;
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

/// Lets the process connect.
async fn allow<DB: Prepares>(pools: &Pools<DB>) -> Result<(), sqlx::Error> {
    for pool in pools.iter() {
        if let Some(sql) = DB::NAMED {
            DB::script(pool, sql).await?;
        }
    }
    Ok(())
}

/// Waits until the server has ended all sessions of the process. MySQL counts none while the text of a statement has bytes.
async fn is_alone<DB: Prepares>(pool: &Pool<DB>) {
    while !matches!(DB::count(pool, DB::COUNTS_NAMED).await, Ok(0)) {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
