//! An ensemble of three servers.

use std::{
    io::{Read, Write},
    net::TcpStream,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use ordid_core::{
    clock::{SystemClock, Timestamp},
    coordination::{AsyncNodeAllocator, AsyncSegmentSource, CoordinationFailure},
    entropy::ThreadEntropy,
    generator::{AtCeiling, Generator as _, LeaseKeeper, Policy},
    scheme::Snowflake,
};
use ordid_harness::Server;
use ordid_tests::trials::Outcome;
use ordid_zookeeper::ZooKeeperCounter;

use super::{lease_of, session};
use crate::stores::{ENDLESS, earlier, now, seconds};

/// F12: the leader is killed, and another elected; then there is no majority, and then there is again. Each
/// key and number comes once and above those before, whoever leads.
pub(super) async fn changes_its_leader(mut servers: [Server; 3]) -> Outcome {
    let cluster = servers
        .each_ref()
        .map(|it| format!("127.0.0.1:{}", it.port()));
    let own = session(&cluster.join(","));
    let leases = Arc::new(lease_of(own.clone(), "/lease", seconds(2)));
    leases.create(Timestamp::MIN).await?;
    let count = ZooKeeperCounter::new(own, "/count")?;
    count.create(1).await?;

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
    let is_over = Arc::new(AtomicBool::new(false));
    let making = tokio::task::spawn_blocking({
        let (generator, is_over) = (Arc::clone(&generator), Arc::clone(&is_over));
        move || {
            let mut keys = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                match generator.try_generate() {
                    Ok(key) => keys.push(key.into_raw()),
                    Err(error) => {
                        let failure = error.coordination_failure();
                        assert_eq!(failure, Some(CoordinationFailure::Expired), "{error}");
                    }
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            keys
        }
    });
    let counting = tokio::spawn({
        let (count, is_over) = (count.clone(), Arc::clone(&is_over));
        async move {
            let mut numbers = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                match count.reserve(10.try_into().expect("some")).await {
                    Ok(segment) => numbers.extend(segment.values()),
                    Err(error) => {
                        let failure = error.coordination_failure();
                        assert_eq!(failure, Some(CoordinationFailure::Unavailable), "{error}");
                    }
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            numbers
        }
    });

    // The others elect another, and all goes on.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let first = leader(&servers).ok_or("no leader")?;
    servers[first].kill()?;
    let second = until(|| leader(&servers)).await;
    assert_ne!(second, first);
    let held = generator.grant().ceiling();
    until(|| (generator.grant().ceiling() > held).then_some(())).await;
    count.reserve(1.try_into()?).await?;

    // One alone does not serve: the grant ends, and so do keys.
    servers[second].kill()?;
    until(|| generator.try_generate().is_err().then_some(())).await;
    let mut servers = tokio::task::spawn_blocking(move || {
        // At once, since none answers alone; the third is there.
        let [one, two] = servers.get_disjoint_mut([first, second]).expect("two");
        std::thread::scope(|scope| {
            let one = scope.spawn(|| one.restart());
            two.restart()?;
            one.join().expect("no panic")
        })?;
        Ok::<_, ordid_harness::Error>(servers)
    })
    .await??;
    until(|| generator.try_generate().ok()).await;
    let start = Instant::now();
    while let Err(error) = count.reserve(1.try_into()?).await {
        assert!(start.elapsed() < ENDLESS, "{error}");
    }

    is_over.store(true, Ordering::Relaxed);
    let (keys, numbers) = (making.await?, counting.await?);
    assert!(keys.len() > 1_000, "{}", keys.len());
    assert!(keys.is_sorted_by(|one, next| one < next));
    assert!(numbers.len() > 100, "{}", numbers.len());
    assert!(numbers.is_sorted_by(|one, next| one < next));
    // What was used is kept: on whichever node, whoever comes next begins above.
    let newest = generator.newest().ok_or("no key")?;
    let node = generator.grant().node();
    generator.close();
    running.await??;
    let mut next = leases.acquire(earlier(now(), 60_000), None).await?;
    if next.node() != node {
        next = leases.acquire(earlier(now(), 60_000), None).await?;
    }
    assert_eq!(next.node(), node);
    assert!(next.floor() > newest);
    servers.iter_mut().try_for_each(Server::kill)?;
    Ok(())
}

/// What comes of it in the end.
async fn until<T>(mut found: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(start.elapsed() < ENDLESS, "it does not come");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Which server says that it leads.
fn leader(servers: &[Server; 3]) -> Option<usize> {
    servers.iter().position(|server| {
        mode(server.port()).is_ok_and(|answer| answer.contains("\nMode: leader"))
    })
}

fn mode(port: u16) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    stream.write_all(b"srvr")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
