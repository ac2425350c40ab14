//! Leases and counts on etcd: what is promised on any store, and what can go wrong on this one. The numbers F1
//! to F18 are those of `tests/coordination`.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use etcd_client::Client;
use ordid_core::{
    clock::Timestamp,
    coordination::{
        AsyncNodeAllocator, AsyncSegmentSource, CoordinationFailure, Grant, LeaseTerms,
    },
};
use ordid_etcd::{EtcdCounter, EtcdLease};
use ordid_harness::Server;
use ordid_tests::{
    duel::{contend, count_on, is_won_during, repeats, terms, told},
    process::fork,
    proxy::{Fault, Proxy},
    stores::{
        Adder, ENDLESS, Holder, a_count_ends, a_killed_holder_leaves_a_gap,
        a_paused_holder_is_fenced, clocks_cannot_bring_a_time_back, earlier, fails, failure, hold,
        keys_end_at_the_ceiling, lasting, later, long, nodes_run_out, now, numbers_come_once,
        on_own_servers, own_name, says, seconds, short, starters_get_distinct_nodes,
        the_first_copy_to_renew_goes_on, to_hold,
    },
    trials::{Outcome, run, run_all},
};

fn main() {
    if let Some([_, url, key]) = to_hold() {
        let held = run(async || hold(&lease(&url, &key, short(1)).await?).await);
        return held.expect("it holds a node");
    }
    if let Some(told) = told() {
        let contender = async {
            let lease = lease(&told.url, &told.name, terms()).await;
            lease.expect("a client").with_timeout(SOON)
        };
        contend(contender, told.clock)
    }
    run_all(&["etcd"], |servers, trials| {
        let (cluster, name) = (ordid_harness::etcd_cluster, "duel_without_a_leader");
        on_own_servers(trials, servers, "etcd", name, cluster, without_a_leader);
        add(&mut Adder {
            trials,
            servers,
            server: "etcd",
        });
    });
}

fn add(on_etcd: &mut Adder<'_>) {
    on_etcd.on("starters_get_distinct_nodes", starters);
    on_etcd.on("nodes_run_out", run_out);
    on_etcd.on("more_nodes_than_a_page_has", pages);
    on_etcd.on("clocks_cannot_bring_a_time_back", clocks);
    on_etcd.on("a_paused_holder_is_fenced", paused);
    on_etcd.on("a_killed_holder_leaves_a_gap", killed);
    on_etcd.on("a_lease_that_expired_is_fenced", expired);
    on_etcd.on("a_lease_that_was_revoked_is_fenced", revoked);
    on_etcd.on("the_first_copy_to_renew_goes_on", copies);
    on_etcd.on("what_was_not_created_is_lost", not_created);
    on_etcd.on("a_record_that_went_back_is_noticed", went_back);
    on_etcd.on("what_somebody_else_wrote_is_refused", damaged);
    on_etcd.on("a_lost_answer_is_a_gap", lost_answer);
    on_etcd.on("a_lost_renewal_is_fenced", lost_renewal);
    on_etcd.on("a_lost_grant_is_a_gap", lost_grant);
    on_etcd.on("a_silent_server_is_not_waited_for", silent);
    on_etcd.on("a_child_has_a_client_of_its_own_or_none", forked);
    on_etcd.on("numbers_come_once", numbers);
    on_etcd.on("a_count_ends", count_ends);
    on_etcd.on_own("a_server_that_is_away_ends_nothing", away);
    on_etcd.on_own("keys_end_at_the_ceiling", keys_end);
}

/// How long an answer may take where a server may be gone.
const SOON: Duration = Duration::from_secs(1);

/// Connects to all servers whose addresses these are, with commas in between.
async fn connect(urls: &str) -> Outcome<Client> {
    let urls: Vec<&str> = urls
        .split(',')
        .map(|url| url.trim_end_matches('/'))
        .collect();
    Ok(Client::connect(urls, None).await?)
}

/// A key that no other test has.
fn own_key(test: &str) -> String {
    format!("ordid/{}", own_name(test))
}

async fn lease(url: &str, key: &str, terms: LeaseTerms) -> Outcome<EtcdLease> {
    Ok(EtcdLease::new(connect(url).await?, key, terms)?)
}

/// The same, of which nobody has heard before.
async fn created(url: &str, test: &str, terms: LeaseTerms) -> Outcome<(EtcdLease, String)> {
    let key = own_key(test);
    let lease = lease(url, &key, terms).await?;
    assert!(lease.create(Timestamp::MIN).await?);
    Ok((lease, key))
}

async fn counter(url: &str, key: &str) -> Outcome<EtcdCounter> {
    Ok(EtcdCounter::new(connect(url).await?, key)?)
}

/// F10.
async fn starters(url: String) -> Outcome {
    let key = own_key("starters");
    starters_get_distinct_nodes(move || {
        let (url, key) = (url.clone(), key.clone());
        async move {
            let lease = lease(&url, &key, long(16)).await.expect("a client");
            lease.create(Timestamp::MIN).await.expect("made");
            lease
        }
    })
    .await;
    Ok(())
}

/// F11.
async fn run_out(url: String) -> Outcome {
    let (first, key) = created(&url, "run-out", long(3)).await?;
    assert!(!first.create(now()).await?, "it is there");
    let others = [
        lease(&url, &key, long(3)).await?,
        lease(&url, &key, long(3)).await?,
        lease(&url, &key, long(3)).await?,
    ];
    let [second, third, fourth] = others;
    nodes_run_out(&[first, second, third, fourth]).await
}

/// Many nodes were granted: all are looked at, and the one whose ceiling is lowest is taken.
async fn pages(url: String) -> Outcome {
    const NODES: u64 = 12_000;
    let (lease, key) = created(&url, "pages", long(NODES)).await?;
    let client = connect(&url).await?;
    let nodes: Vec<u64> = (0..NODES).collect();
    for nodes in nodes.chunks(100) {
        let puts: Vec<_> = nodes
            .iter()
            .map(|node| {
                let ceiling = if *node == 9_876 { 1_000 } else { 2_000 };
                etcd_client::TxnOp::put(format!("{key}/{node}"), format!("3 {ceiling}"), None)
            })
            .collect();
        let txn = etcd_client::Txn::new().and_then(puts);
        client.kv_client().txn(txn).await?;
    }
    let grant = lease.acquire(now(), None).await?;
    assert_eq!((grant.node(), grant.epoch()), (9_876, 4));
    Ok(())
}

/// F5 and F6.
async fn clocks(url: String) -> Outcome {
    let (lease, _) = created(&url, "clocks", long(1)).await?;
    clocks_cannot_bring_a_time_back(&lease).await
}

/// F3 and F4.
async fn paused(url: String) -> Outcome {
    let (lease, key) = created(&url, "paused", short(1)).await?;
    let holder = Holder::start("etcd", &url, &key)?;
    a_paused_holder_is_fenced(holder, &lease).await;
    Ok(())
}

/// F7.
async fn killed(url: String) -> Outcome {
    let (lease, key) = created(&url, "killed", short(1)).await?;
    let holder = Holder::start("etcd", &url, &key)?;
    a_killed_holder_leaves_a_gap(holder, &lease).await;
    Ok(())
}

/// F12: nobody has renewed it in time, whether or not another has the node.
async fn expired(url: String) -> Outcome {
    let (one, key) = created(&url, "expired", short(1)).await?;
    let grant = one.acquire(now(), None).await?;
    let mut client = connect(&url).await?;
    let owner = format!("{key}/0/owner");
    while !client.get(owner.as_str(), None).await?.kvs().is_empty() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    fails(
        one.renew(&grant, now()).await,
        CoordinationFailure::Fenced,
        "its lease has expired, or was revoked",
    );
    let released = one.release(&grant, None).await;
    assert_eq!(failure(released), CoordinationFailure::Fenced);
    let other = lease(&url, &key, long(1)).await?;
    let next = other.acquire(earlier(now(), 60_000), None).await?;
    assert_eq!(next.floor(), grant.ceiling());
    fails(
        one.renew(&grant, now()).await,
        CoordinationFailure::Fenced,
        "the node was granted to another",
    );
    Ok(())
}

/// F14: an operator has taken the lease away.
async fn revoked(url: String) -> Outcome {
    let (lease, key) = created(&url, "revoked", long(1)).await?;
    let grant = lease.acquire(now(), None).await?;
    let mut client = connect(&url).await?;
    let owner = client.get(format!("{key}/0/owner"), None).await?;
    let id = owner.kvs().first().ok_or("no owner")?.lease();
    client.lease_revoke(id).await?;
    let renewed = lease.renew(&grant, now()).await;
    assert_eq!(failure(renewed), CoordinationFailure::Fenced);
    let released = lease.release(&grant, None).await;
    assert_eq!(failure(released), CoordinationFailure::Fenced);
    let next = lease.acquire(earlier(now(), 60_000), None).await?;
    assert_eq!(next.floor(), grant.ceiling());
    Ok(())
}

/// F9.
async fn copies(url: String) -> Outcome {
    let (one, key) = created(&url, "copies", long(4)).await?;
    let other = lease(&url, &key, long(4)).await?;
    the_first_copy_to_renew_goes_on(&one, &other).await
}

/// F13, and F1: nothing begins by itself.
async fn not_created(url: String) -> Outcome {
    let one = lease(&url, &own_key("lost"), short(1)).await?;
    let error = one
        .acquire(now(), None)
        .await
        .expect_err("nothing is there");
    let lost = Some(CoordinationFailure::StateLost);
    assert_eq!(error.coordination_failure(), lost);
    says(&error, "etcd has no key ordid/ordid-lost-");
    says(&error, "call `EtcdLease::create` once");
    let (one, key) = created(&url, "lost-node", short(1)).await?;
    let grant = one.acquire(now(), None).await?;
    connect(&url)
        .await?
        .delete(format!("{key}/0"), None)
        .await?;
    assert_eq!(
        failure(one.renew(&grant, now()).await),
        CoordinationFailure::StateLost
    );
    let count = counter(&url, &own_key("lost-count")).await?;
    let reserved = count.reserve(1.try_into()?).await;
    assert_eq!(failure(reserved), CoordinationFailure::StateLost);

    // Nobody listens at port 1.
    let nobody = lease("http://127.0.0.1:1", "nobody", short(1)).await?;
    let acquired = nobody.acquire(now(), None).await;
    assert_eq!(failure(acquired), CoordinationFailure::Unavailable);

    let client = connect(&url).await?;
    for bad in ["", "a/", "/", "a\0"] {
        let refused = EtcdLease::new(client.clone(), bad, short(1));
        assert_eq!(failure(refused), CoordinationFailure::Mismatch, "{bad}");
        let refused = EtcdCounter::new(client.clone(), bad);
        assert_eq!(failure(refused), CoordinationFailure::Mismatch, "{bad}");
    }
    Ok(())
}

/// F15: restored from a copy.
async fn went_back(url: String) -> Outcome {
    let mut client = connect(&url).await?;
    let (lease, key) = created(&url, "went-back", long(1)).await?;
    let grant = lease.acquire(now(), None).await?;
    let node = format!("{key}/0");
    let copy = client.get(node.as_str(), None).await?;
    let copy = copy.kvs().first().ok_or("no node")?.value().to_vec();
    let renewed = lease.renew(&grant, later(grant.floor(), 10)).await?;
    client.put(node, copy, None).await?;
    let again = lease.renew(&renewed, now()).await;
    assert_eq!(failure(again), CoordinationFailure::CeilingRegressed);

    let key = own_key("count-back");
    let one = counter(&url, &key).await?;
    one.create(1).await?;
    one.reserve(100.try_into()?).await?;
    client.put(key.as_str(), "50", None).await?;
    for _ in 0..2 {
        let reserved = one.reserve(1.try_into()?).await;
        assert_eq!(failure(reserved), CoordinationFailure::CeilingRegressed);
    }
    // A count that has gone on elsewhere is taken up there.
    client.put(key, "500", None).await?;
    assert_eq!(one.reserve(1.try_into()?).await?.first(), Some(500));
    Ok(())
}

async fn damaged(url: String) -> Outcome {
    let mut client = connect(&url).await?;
    let (lease, key) = created(&url, "damaged", long(1)).await?;
    let grant = lease.acquire(now(), None).await?;
    // What others keep below is theirs.
    client.put(format!("{key}/archive"), "x", None).await?;
    client.put(format!("{key}/0/remark"), "x", None).await?;
    let grant = lease.renew(&grant, now()).await?;
    client.put(format!("{key}/0"), "4", None).await?;
    fails(
        lease.renew(&grant, now()).await,
        CoordinationFailure::Mismatch,
        "/0: it holds `4`, which is not what ordid-etcd writes",
    );
    let acquired = lease.acquire(now(), None).await;
    assert_eq!(failure(acquired), CoordinationFailure::Mismatch);
    client.put(key.as_str(), "many", None).await?;
    let acquired = lease.acquire(now(), None).await;
    assert_eq!(failure(acquired), CoordinationFailure::Mismatch);
    let count = counter(&url, &key).await?;
    let reserved = count.reserve(1.try_into()?).await;
    assert_eq!(failure(reserved), CoordinationFailure::Mismatch);
    let negative = count.create(-1).await;
    assert_eq!(failure(negative), CoordinationFailure::Mismatch);
    Ok(())
}

/// Where to break a connection, from the end of what came down over one like it: which byte is in the last answer
/// differs with the numbers in it, and frames of the connection's own may follow it.
fn cuts(whole: u64) -> impl Iterator<Item = u64> {
    (4..100).step_by(8).map(move |bytes| whole - bytes)
}

/// A proxy before the server of this address, and the address that leads through it.
async fn through_proxy(url: &str) -> Outcome<(Proxy, String)> {
    let address = url.trim_start_matches("http://").trim_end_matches('/');
    let address: SocketAddr = address.parse()?;
    let proxy = Proxy::start(address).await?;
    let through = format!("http://127.0.0.1:{}", proxy.port());
    Ok((proxy, through))
}

/// Leases that are new, and over another client, whose connection goes through the proxy, the same.
async fn new_through(url: &str, through: &str, test: &str) -> Outcome<[EtcdLease; 2]> {
    let (direct, key) = created(url, test, long(1)).await?;
    Ok([direct, lease(through, &key, long(1)).await?])
}

/// What has come down when it is silent: the last frames come after the answer.
async fn settled(proxy: &Proxy) -> u64 {
    loop {
        let before = proxy.last_traffic().down;
        tokio::time::sleep(Duration::from_millis(100)).await;
        if proxy.last_traffic().down == before {
            return before;
        }
    }
}

/// F16: the numbers of an answer that nobody heard are never used.
async fn lost_answer(url: String) -> Outcome {
    let key = own_key("lost-answer");
    counter(&url, &key).await?.create(0).await?;
    let (proxy, through) = through_proxy(&url).await?;
    let one = counter(&through, &key).await?;
    let mut last = Some(0);
    for _ in 0..2 {
        last = one.reserve(10.try_into()?).await?.first();
    }
    let whole = settled(&proxy).await;
    let mut gaps = 0;
    for cut in cuts(whole) {
        proxy.plan([Fault::Swallow(cut)]);
        let one = counter(&through, &key).await?;
        let mut lost = false;
        for _ in 0..2 {
            match one.reserve(10.try_into()?).await {
                Ok(segment) => {
                    assert!(segment.first() > last);
                    last = segment.first();
                }
                error => {
                    assert_eq!(failure(error), CoordinationFailure::Unavailable);
                    lost = true;
                }
            }
        }
        // Over another connection, which is not there at once, it goes on behind what was heard and what
        // was not.
        let start = Instant::now();
        let next = loop {
            match one.reserve(10.try_into()?).await {
                Ok(segment) => break segment.first(),
                error => {
                    assert_eq!(failure(error), CoordinationFailure::Unavailable);
                    assert!(start.elapsed() < ENDLESS, "it does not connect");
                }
            }
        };
        assert!(next > last);
        if lost && next > last.map(|last| last + 10) {
            gaps += 1;
        }
        last = next;
    }
    assert!(gaps > 0, "no answer to a reservation was lost");
    Ok(())
}

/// F16 of a renewal: whoever asked cannot know, and is refused if the ceiling has moved.
async fn lost_renewal(url: String) -> Outcome {
    let (proxy, through) = through_proxy(&url).await?;
    let [_, one] = new_through(&url, &through, "lost-renewal").await?;
    let grant = one.acquire(now(), None).await?;
    one.renew(&grant, later(grant.floor(), 500)).await?;
    let whole = settled(&proxy).await;

    let mut refused = 0;
    for cut in cuts(whole) {
        proxy.plan([Fault::Swallow(cut)]);
        let [direct, one] = new_through(&url, &through, &format!("lost-renewal-{cut}")).await?;
        let grant = one.acquire(now(), None).await?;
        let at = later(grant.floor(), 500);
        let held = match one.renew(&grant, at).await {
            Ok(renewed) => Some(renewed),
            error => {
                assert_eq!(failure(error), CoordinationFailure::Unavailable);
                again(&one, &grant, at).await
            }
        };
        refused += u32::from(held.is_none());
        // Whoever comes next begins behind it, heard or not.
        let owner = format!("{}/0/owner", key_of(&one));
        connect(&url).await?.delete(owner, None).await?;
        let next = direct.acquire(grant.floor(), None).await?;
        assert_eq!(next.floor(), later(at, 3_000));
    }
    assert!(refused > 0, "no answer to a renewal was lost");
    Ok(())
}

/// Renews over another connection, which is not there at once. `None`: the first time moved the ceiling.
async fn again(lease: &EtcdLease, grant: &Grant, at: Timestamp) -> Option<Grant> {
    let start = Instant::now();
    loop {
        match lease.renew(grant, at).await {
            Ok(renewed) => return Some(renewed),
            Err(error) => match error.coordination_failure() {
                Some(CoordinationFailure::Unavailable) if start.elapsed() < ENDLESS => {}
                _ => {
                    says(&error, "a renewal whose answer was lost");
                    return None;
                }
            },
        }
    }
}

/// The key of leases, from what they say of themselves.
fn key_of(lease: &EtcdLease) -> String {
    let text = format!("{lease:?}");
    let (_, key) = text.split_once("key: \"").expect("a key");
    key.split_once('"').expect("its end").0.to_owned()
}

/// F16 of an acquisition: nobody makes keys of the time that was granted unheard, and the node is free again.
async fn lost_grant(url: String) -> Outcome {
    let (proxy, through) = through_proxy(&url).await?;
    let [_, one] = new_through(&url, &through, "lost-grant").await?;
    one.acquire(now(), None).await?;
    let whole = settled(&proxy).await;
    let mut gaps = 0;
    for cut in cuts(whole) {
        proxy.plan([Fault::Swallow(cut)]);
        let [direct, one] = new_through(&url, &through, &format!("lost-grant-{cut}")).await?;
        let at = now();
        let acquired = one.acquire(at, None).await;
        let Err(error) = acquired else {
            continue;
        };
        let unavailable = Some(CoordinationFailure::Unavailable);
        assert_eq!(error.coordination_failure(), unavailable);
        let next = direct.acquire(earlier(at, 5_000), None).await?;
        if next.epoch() == 2 {
            assert_eq!(next.floor(), later(at, 3_000));
            gaps += 1;
        }
    }
    assert!(gaps > 0, "no answer to an acquisition was lost");
    Ok(())
}

/// F2: a server that hears and does not answer.
async fn silent(url: String) -> Outcome {
    let (proxy, through) = through_proxy(&url).await?;
    let (_, key) = created(&url, "silent", long(1)).await?;
    proxy.plan([Fault::Swallow(0)]);
    let timeout = Duration::from_millis(100);
    let one = lease(&through, &key, long(1)).await?.with_timeout(timeout);
    let began = Instant::now();
    fails(
        one.acquire(now(), None).await,
        CoordinationFailure::Unavailable,
        "no answer within 100ms",
    );
    assert!(began.elapsed() < Duration::from_secs(2));
    Ok(())
}

/// F8. The child has the client's memory, and none of its tasks.
async fn forked(url: String) -> Outcome {
    let (one, key) = created(&url, "forked", long(8)).await?;
    let count_key = own_key("forked-count");
    let count = counter(&url, &count_key).await?;
    count.create(1).await?;
    count.reserve(10.try_into()?).await?;
    let grant = one.acquire(now(), None).await?;
    let in_child = {
        let (one, count) = (one.clone(), count.clone());
        move || {
            let made = run(async || {
                let (kind, words) = (CoordinationFailure::Unavailable, "and this is its fork");
                fails(one.acquire(now(), None).await, kind, words);
                fails(one.renew(&grant, now()).await, kind, words);
                fails(count.reserve(1.try_into()?).await, kind, words);
                drop((one, count));
                let own = lease(&url, &key, long(8)).await?;
                assert_eq!(
                    failure(own.renew(&grant, now()).await),
                    CoordinationFailure::Fenced
                );
                let other = own.acquire(now(), None).await?;
                assert_ne!(other.node(), grant.node());
                own.release(&other, None).await?;
                let numbers = counter(&url, &count_key).await?;
                assert_eq!(numbers.reserve(10.try_into()?).await?.first(), Some(11));
                Ok(())
            });
            match made {
                Ok(()) => b"done".to_vec(),
                Err(failed) => format!("{failed:?}").into_bytes(),
            }
        }
    };
    // From a thread that runs no tasks: the child can have a runtime of its own there.
    let answer = tokio::task::spawn_blocking(|| {
        thread::spawn(|| fork(in_child).join())
            .join()
            .expect("a child")
    });
    assert_eq!(String::from_utf8(answer.await?)?, "done");
    // The parent goes on.
    one.renew(&grant, now()).await?;
    assert_eq!(count.reserve(10.try_into()?).await?.first(), Some(21));
    Ok(())
}

async fn numbers(url: String) -> Outcome {
    let key = own_key("numbers");
    counter(&url, &key).await?.create(1_000).await?;
    let make = || async { counter(&url, &key).await.expect("a client") };
    numbers_come_once(make, 1_000, 100, &[1, 1_000, 7]).await?;
    // Clones share what they have seen.
    let key = own_key("clones");
    let one = counter(&url, &key).await?;
    one.create(0).await?;
    let make = || std::future::ready(one.clone());
    numbers_come_once(make, 0, 100, &[3]).await
}

/// F18.
async fn count_ends(url: String) -> Outcome {
    let count = counter(&url, &own_key("end")).await?;
    count.create(i64::MAX - 5).await?;
    a_count_ends(&count).await
}

/// F2: it is killed, and comes back.
async fn away(mut server: Server) -> Outcome {
    let url = server.url();
    let (one, _) = created(&url, "away", seconds(1)).await?;
    let key = own_key("away-count");
    let count = counter(&url, &key).await?;
    count.create(1).await?;
    let grant = one.acquire(now(), None).await?;
    server.kill()?;
    let asked = one.renew(&grant, now()).await;
    assert_eq!(failure(asked), CoordinationFailure::Unavailable);
    let asked = count.reserve(1.try_into()?).await;
    assert_eq!(failure(asked), CoordinationFailure::Unavailable);
    let server = tokio::task::spawn_blocking(move || server.restart().map(|()| server)).await??;
    // Leases are written down, and begin anew with the server. The client connects by itself, after a while.
    let start = Instant::now();
    loop {
        match one.renew(&grant, now()).await {
            Ok(_) => break,
            Err(error) => {
                let failure = error.coordination_failure();
                assert_eq!(failure, Some(CoordinationFailure::Unavailable), "{error}");
                assert!(start.elapsed() < ENDLESS, "{error}");
            }
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(count.reserve(1.try_into()?).await?.first(), Some(1));
    drop(server);
    Ok(())
}

async fn keys_end(server: Server) -> Outcome {
    let (one, _) = created(&server.url(), "keys-end", lasting(4)).await?;
    keys_end_at_the_ceiling(one, server).await
}

/// F12: the leader of three is killed, and the next one stands still and goes on. Nobody is held up for long, no node
/// has two holders, and no number comes twice.
#[expect(clippy::print_stdout, reason = "says what it measured")]
async fn without_a_leader(mut servers: [Server; 3]) -> Outcome {
    const KEY: &str = "ordid/duel";
    let urls = servers.each_ref().map(Server::url).join(",");
    lease(&urls, KEY, terms())
        .await?
        .create(Timestamp::MIN)
        .await?;
    let is_over = Arc::new(AtomicBool::new(false));
    let mut sources = Vec::new();
    for _ in 0..2 {
        let source = counter(&urls, "ordid/count").await?.with_timeout(SOON);
        source.create(1).await?;
        // A slow machine may not count so many before the duel is over.
        sources.push(tokio::spawn(count_on(source, 501, Arc::clone(&is_over))));
    }
    let (done, all) = std::sync::mpsc::channel();
    let fails = move || {
        thread::sleep(Duration::from_secs(2));
        let first = wait_for_leader(&servers, None);
        servers[first].kill().expect("it was running");
        let killed = Instant::now();
        let second = wait_for_leader(&servers, Some(first));
        println!("killed: another leader after {:?}", killed.elapsed());
        servers[first].restart().expect("it comes back");
        thread::sleep(Duration::from_secs(1));
        servers[second].pause().expect("it is running");
        let paused = Instant::now();
        let third = wait_for_leader(&servers, Some(second));
        println!("paused: another leader after {:?}", paused.elapsed());
        thread::sleep(Duration::from_secs(1));
        servers[second].resume().expect("it is paused");
        assert_ne!(second, third);
        // They go on until all is counted.
        let _ = done.send(servers);
    };
    let told = format!("etcd|skewed|{KEY}|{urls}");
    let won = tokio::task::spawn_blocking(move || is_won_during(&told, fails)).await?;
    is_over.store(true, Ordering::Relaxed);
    let mut numbers = Vec::new();
    for source in sources {
        let made = tokio::time::timeout(ENDLESS, source).await??;
        println!("{made}");
        assert!(made.ended.is_none(), "{made}");
        numbers.extend(made.numbers);
    }
    assert!(numbers.len() > 1_000, "{}", numbers.len());
    assert_eq!(repeats(numbers), 0, "numbers came twice");
    drop(all);
    won
}

/// Which server leads, but for this one.
fn wait_for_leader(servers: &[Server; 3], but: Option<usize>) -> usize {
    let start = Instant::now();
    loop {
        let leads = |n: &usize| Some(*n) != but && leads(servers[*n].port()).unwrap_or(false);
        if let Some(leader) = (0..servers.len()).find(leads) {
            return leader;
        }
        assert!(start.elapsed() < ENDLESS, "no leader");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Whether a server says that it leads.
fn leads(port: u16) -> std::io::Result<bool> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(SOON))?;
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer.contains("\netcd_server_is_leader 1\n"))
}
