//! A server that is killed while transactions are prepared on it.

use libtest_mimic::Trial;
use ordid_sqlx::{OrphanDecision, Retry, recover_prepared};
use ordid_tests::{
    proxy::{At, Fault},
    servers::Servers,
};

use super::{
    ANY_AGE, Pools, Prepares, ROWS, SHARDS, begin, check, databases, fill, orphans, rows, sum,
    tenants, through,
};
use crate::{Outcome, ignored, run};

/// The test has a server that no other test uses.
pub fn trial<DB: Prepares>(engine: &'static str, servers: &Servers) -> Trial {
    let name = "what_is_prepared_outlives_a_server_that_is_killed";
    let name = format!("{engine}::shards::two_phase::{name}");
    match servers.url(engine) {
        Err(reason) => ignored(name, reason),
        Ok(_) => Trial::test(name, move || run(async || restarted::<DB>(engine).await)),
    }
}

async fn restarted<DB: Prepares>(engine: &'static str) -> Outcome {
    let mut server = ordid_harness::start(engine)?;
    let url = server.url();
    let urls = [&*url; SHARDS];
    let (pools, _) = databases::<DB>(urls, DB::patiently).await?;
    let mut expected = 0;
    // Before the decision, and behind it.
    for is_decided in [false, true] {
        let text = if is_decided {
            DB::COMMIT_PREPARED
        } else {
            "COMMIT"
        };
        let shards: &[usize] = if is_decided { &[1, 2] } else { &[0] };
        let (mut behind, mut proxies) = (pools.clone(), Vec::new());
        for shard in shards {
            let (other, proxy) = through(&pools, *shard, text).await?;
            proxy.plan([Fault::Cut(At::Commit(0))]);
            proxy.after(Fault::Cut(At::Up(0)));
            behind[*shard] = other[*shard].clone();
            proxies.push(proxy);
        }
        let (work, _) = fill(&pools)?;
        let mut work = work.with_retry(Retry::NONE);
        let error = work.flush(&behind).await.unwrap_err();
        assert!(error.is_commit_unknown(), "{error}");
        server.kill()?;
        server.restart()?;
        drop(proxies);
        let decision = match is_decided {
            true => OrphanDecision::Committed,
            false => OrphanDecision::NotCommitted,
        };
        settle(&pools).await;
        assert_eq!(orphans(&pools).await?, [(1, decision), (2, decision)]);
        // What is prepared still holds its locks.
        if is_decided {
            assert_eq!(rows(&pools).await?, [expected + ROWS, expected, expected]);
        }
        let recovered = recover_prepared(&pools.name, &pools, ANY_AGE).await?;
        let ended = (recovered.committed.len(), recovered.rolled_back.len());
        assert_eq!(ended, if is_decided { (2, 0) } else { (0, 2) });
        expected += ROWS * usize::from(is_decided);
        check(&pools, expected).await?;
        // The server takes others.
        let mut work = begin(&pools)?;
        for tenant in tenants(ROWS)? {
            DB::place(&mut work, tenant)?;
        }
        assert_eq!(sum(&work.flush(&pools).await?), SHARDS * ROWS);
        expected += ROWS;
        check(&pools, expected).await?;
    }
    Ok(())
}

/// The connections of the pools are gone. A pool looks at each before it lends it, but not whether it is the one that a
/// query needs.
async fn settle<DB: Prepares>(pools: &Pools<DB>) {
    for pool in pools.iter() {
        while DB::count(pool, "tenants").await.is_err() {}
    }
}
