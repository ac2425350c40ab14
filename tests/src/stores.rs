//! What leases promise on any store: each test is of an allocator, whatever it stands on.

use std::{
    collections::BTreeMap,
    fmt::Display,
    io::{self, BufRead, BufReader, Write},
    num::NonZeroU32,
    process::{Child, ChildStdout, Command, Stdio},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use crate::{
    process::{self, Signal},
    servers::Servers,
    trials::{Outcome, ignored, run},
};
use libtest_mimic::Trial;
use ordid_core::{
    Error,
    clock::{Clock, SystemClock, Timestamp},
    coordination::{
        AsyncNodeAllocator, AsyncSegmentSource, CoordinationFailure, Grant, LeaseTerms,
        NodeAllocator, Segment, SegmentSource,
    },
    entropy::ThreadEntropy,
    generator::{AtCeiling, Generator as _, LeaseKeeper, Policy},
    scheme::Snowflake,
};
use ordid_harness::Server;
use tokio::{sync::Barrier, task::JoinSet};

/// After this a node is taken not to come free.
pub const ENDLESS: Duration = Duration::from_secs(60);

pub fn now() -> Timestamp {
    SystemClock.now()
}

/// The machine's clock, so many milliseconds off.
pub fn now_by(by: i64) -> Timestamp {
    let now = now().as_unix_millis();
    Timestamp::saturating_from_unix_millis(now.saturating_add_signed(by))
}

pub fn later(time: Timestamp, millis: u64) -> Timestamp {
    Timestamp::from_unix_millis(time.as_unix_millis() + millis).expect("a time")
}

pub fn earlier(time: Timestamp, millis: u64) -> Timestamp {
    Timestamp::from_unix_millis(time.as_unix_millis() - millis).expect("a time")
}

/// What an error is about; a success is none.
pub fn failure<T: std::fmt::Debug>(result: Result<T, Error>) -> CoordinationFailure {
    let error = result.expect_err("it cannot have succeeded");
    let failure = error.coordination_failure();
    failure.unwrap_or_else(|| panic!("not of coordination: {error}"))
}

/// Terms whose nodes come back soon.
pub fn short(nodes: u64) -> LeaseTerms {
    LeaseTerms::new(0..nodes)
        .and_then(|terms| terms.with_window(Duration::from_millis(300)))
        .and_then(|terms| terms.with_ttl(Duration::from_millis(600)))
        .expect("terms")
}

/// Terms whose grants last while a server is killed.
pub fn seconds(nodes: u64) -> LeaseTerms {
    LeaseTerms::new(0..nodes)
        .and_then(|terms| terms.with_window(Duration::from_millis(1_500)))
        .and_then(|terms| terms.with_ttl(Duration::from_secs(2)))
        .expect("terms")
}

/// Terms whose window is renewed, and then outlasts the server that is killed in the midst of it, also where the machine
/// has other things to do.
pub fn lasting(nodes: u64) -> LeaseTerms {
    LeaseTerms::new(0..nodes)
        .and_then(|terms| terms.with_window(Duration::from_secs(4)))
        .and_then(|terms| terms.with_ttl(Duration::from_secs(5)))
        .expect("terms")
}

/// Terms whose nodes do not come back during a test.
pub fn long(nodes: u64) -> LeaseTerms {
    LeaseTerms::new(0..nodes)
        .and_then(|terms| terms.with_ttl(Duration::from_hours(1)))
        .expect("terms")
}

/// A name that no other test, nor a run of the same, has.
pub fn own_name(test: &str) -> String {
    let id = std::process::id();
    format!("ordid-{test}-{id}-{}", now().as_unix_millis())
}

/// A test on a server of the run.
pub fn on_server<F: Future<Output = Outcome>>(
    trials: &mut Vec<Trial>,
    servers: &Servers,
    server: &'static str,
    name: &str,
    test: impl FnOnce(String) -> F + Send + 'static,
) {
    let name = format!("{server}::{name}");
    trials.push(match servers.url(server) {
        Err(reason) => ignored(name, reason),
        Ok(url) => Trial::test(name, move || run(async || test(url).await)),
    });
}

/// A test on a server of its own, which it may kill.
pub fn on_own_server<F: Future<Output = Outcome>>(
    trials: &mut Vec<Trial>,
    servers: &Servers,
    server: &'static str,
    name: &str,
    test: impl FnOnce(Server) -> F + Send + 'static,
) {
    let start = move || ordid_harness::start(server);
    on_own_servers(trials, servers, server, name, start, test);
}

/// A test on servers of its own, of this kind.
pub fn on_own_servers<S: Send + 'static, F: Future<Output = Outcome>>(
    trials: &mut Vec<Trial>,
    servers: &Servers,
    server: &'static str,
    name: &str,
    start: impl FnOnce() -> Result<S, ordid_harness::Error> + Send + 'static,
    test: impl FnOnce(S) -> F + Send + 'static,
) {
    let name = format!("{server}::{name}");
    // Where somebody else's server is used, a private one need not be installed.
    let reason = match ordid_harness::policy(server) {
        Ok(ordid_harness::Policy::Use(_)) => ordid_harness::installed(server).err(),
        _ => None,
    };
    let reason = reason.map(|error| error.to_string());
    trials.push(match servers.url(server).err().or(reason) {
        Some(reason) => ignored(name, reason),
        None => Trial::test(name, move || {
            run(async || test(tokio::task::spawn_blocking(start).await??).await)
        }),
    });
}

/// Adds tests on one of the servers.
pub struct Adder<'a> {
    pub trials: &'a mut Vec<Trial>,
    pub servers: &'a Servers,
    pub server: &'static str,
}

/// A store of leases and counts.
pub trait Store: 'static {
    /// The name of its server.
    const SERVER: &'static str;
    /// How often each of those that reserve numbers at once does so.
    const NUMBERS: u32;

    type Lease: AsyncNodeAllocator + Send + Sync + 'static;
    type Counter: AsyncSegmentSource<Order: Send> + Send + Sync + 'static;

    /// A place that no other test has.
    fn place(test: &str) -> String {
        own_name(test)
    }

    fn lease(url: &str, place: &str, terms: LeaseTerms)
    -> impl Future<Output = Self::Lease> + Send;

    fn create(
        lease: &Self::Lease,
        floor: Timestamp,
    ) -> impl Future<Output = Result<bool, Error>> + Send;

    fn counter(url: &str, place: &str) -> impl Future<Output = Self::Counter> + Send;

    fn create_counter(
        counter: &Self::Counter,
        first: i64,
    ) -> impl Future<Output = Result<bool, Error>> + Send;
}

impl<'a> Adder<'a> {
    pub fn new(trials: &'a mut Vec<Trial>, servers: &'a Servers, server: &'static str) -> Self {
        Self {
            trials,
            servers,
            server,
        }
    }

    /// The tests of what is promised on any store.
    pub fn on_any_store<S: Store>(&mut self) {
        self.on("starters_get_distinct_nodes", starters::<S>);
        self.on("nodes_run_out", run_out::<S>);
        self.on("clocks_cannot_bring_a_time_back", clocks::<S>);
        self.on("a_paused_holder_is_fenced", paused::<S>);
        self.on("a_killed_holder_leaves_a_gap", killed::<S>);
        self.on("numbers_come_once", numbers::<S>);
        self.on("a_count_ends", count_ends::<S>);
    }

    /// A test on the run's server.
    pub fn on<F: Future<Output = Outcome> + 'static>(&mut self, name: &str, test: fn(String) -> F) {
        on_server(self.trials, self.servers, self.server, name, test);
    }

    /// A test on a server of its own.
    pub fn on_own<F: Future<Output = Outcome> + 'static>(
        &mut self,
        name: &str,
        test: fn(Server) -> F,
    ) {
        on_own_server(self.trials, self.servers, self.server, name, test);
    }
}

/// What is promised on any store, one after the other: for servers that are not worth starting for each.
///
/// # Errors
///
/// That of the first test that fails.
pub async fn promises<S: Store>(url: &str) -> Outcome {
    let url = || url.to_owned();
    starters::<S>(url()).await?;
    run_out::<S>(url()).await?;
    clocks::<S>(url()).await?;
    paused::<S>(url()).await?;
    killed::<S>(url()).await?;
    numbers::<S>(url()).await?;
    count_ends::<S>(url()).await
}

async fn starters<S: Store>(url: String) -> Outcome {
    let place = S::place("starters");
    starters_get_distinct_nodes(move || {
        let (url, place) = (url.clone(), place.clone());
        async move {
            let lease = S::lease(&url, &place, long(16)).await;
            S::create(&lease, Timestamp::MIN).await.expect("made");
            lease
        }
    })
    .await;
    Ok(())
}

async fn run_out<S: Store>(url: String) -> Outcome {
    let place = S::place("run-out");
    let lease = || S::lease(&url, &place, long(3));
    let leases = [lease().await, lease().await, lease().await, lease().await];
    assert!(S::create(&leases[0], Timestamp::MIN).await?);
    assert!(!S::create(&leases[1], now()).await?, "it is there");
    nodes_run_out(&leases).await
}

async fn clocks<S: Store>(url: String) -> Outcome {
    let lease = S::lease(&url, &S::place("clocks"), long(1)).await;
    S::create(&lease, Timestamp::MIN).await?;
    clocks_cannot_bring_a_time_back(&lease).await
}

/// A process that holds the only node.
async fn holder<S: Store>(url: &str, test: &str) -> Outcome<(Holder, S::Lease)> {
    let place = S::place(test);
    let lease = S::lease(url, &place, short(1)).await;
    S::create(&lease, Timestamp::MIN).await?;
    let holder = Holder::start(S::SERVER, url, &place)?;
    Ok((holder, lease))
}

async fn paused<S: Store>(url: String) -> Outcome {
    let (holder, lease) = holder::<S>(&url, "paused").await?;
    a_paused_holder_is_fenced(holder, &lease).await;
    Ok(())
}

async fn killed<S: Store>(url: String) -> Outcome {
    let (holder, lease) = holder::<S>(&url, "killed").await?;
    a_killed_holder_leaves_a_gap(holder, &lease).await;
    Ok(())
}

async fn numbers<S: Store>(url: String) -> Outcome {
    let place = S::place("numbers");
    let counter = S::counter(&url, &place).await;
    assert!(S::create_counter(&counter, 7).await?);
    assert!(!S::create_counter(&counter, 1).await?, "it is there");
    let make = async || S::counter(&url, &place).await;
    numbers_come_once(make, 7, S::NUMBERS, &[1, 1_000, 3]).await
}

async fn count_ends<S: Store>(url: String) -> Outcome {
    let counter = S::counter(&url, &S::place("ends")).await;
    S::create_counter(&counter, i64::MAX - 5).await?;
    a_count_ends(&counter).await
}

/// The ranges of time that were granted, by node and grant.
#[derive(Debug, Default)]
pub struct Ledger(BTreeMap<(u64, u64), (Timestamp, Timestamp)>);

impl Ledger {
    /// A grant, or what became of it.
    pub fn note(&mut self, grant: &Grant) {
        let held = (grant.floor(), grant.ceiling());
        let range = self.0.entry((grant.node(), grant.epoch())).or_insert(held);
        assert_eq!(range.0, held.0, "{grant}: a floor moved");
        range.1 = range.1.max(held.1);
    }

    /// No time of a node was granted twice.
    pub fn check(&self) {
        for ((one, two), (range, next)) in self
            .0
            .keys()
            .zip(self.0.keys().skip(1))
            .zip(self.0.values().zip(self.0.values().skip(1)))
        {
            if one.0 == two.0 {
                assert!(
                    range.1 <= next.0,
                    "node {}: grant {} ends at {:?}, grant {} begins at {:?}",
                    one.0,
                    one.1,
                    range.1,
                    two.1,
                    next.0
                );
            }
        }
    }
}

/// Acquires as soon as a node is free.
pub async fn acquire_when_free(lease: &impl AsyncNodeAllocator, now: Timestamp) -> Grant {
    let start = Instant::now();
    loop {
        match lease.acquire(now, None).await {
            Ok(grant) => return grant,
            Err(error) => {
                let failure = error.coordination_failure();
                assert_eq!(failure, Some(CoordinationFailure::NoFreeNode), "{error}");
                assert!(start.elapsed() < ENDLESS, "no node comes free");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

/// F10, and Leaf's worker 0: all start at once on a store where there is nothing.
pub async fn starters_get_distinct_nodes<A, F>(make: impl Fn() -> F + Clone + Send + 'static)
where
    A: AsyncNodeAllocator + 'static,
    F: Future<Output = A> + Send,
{
    const STARTERS: u64 = 16;
    let barrier = Arc::new(Barrier::new(usize::try_from(STARTERS).expect("few")));
    let mut tasks = JoinSet::new();
    for _ in 0..STARTERS {
        let (make, barrier) = (make.clone(), Arc::clone(&barrier));
        tasks.spawn(async move {
            let lease = make().await;
            barrier.wait().await;
            let grant = lease.acquire(now(), None).await;
            // Held until all have one.
            barrier.wait().await;
            grant
        });
    }
    let mut nodes = Vec::new();
    while let Some(grant) = tasks.join_next().await {
        nodes.push(grant.expect("a task").expect("a grant").node());
    }
    nodes.sort_unstable();
    assert_eq!(nodes, (0..STARTERS).collect::<Vec<_>>());
}

/// F11: one more than there are nodes; and one that is given back is free at once.
pub async fn nodes_run_out(leases: &[impl AsyncNodeAllocator; 4]) -> Outcome {
    let mut grants = Vec::new();
    for lease in &leases[..3] {
        grants.push(lease.acquire(now(), None).await?);
    }
    assert_eq!(
        failure(leases[3].acquire(now(), None).await),
        CoordinationFailure::NoFreeNode
    );
    let last = later(grants[1].floor(), 5);
    leases[1].release(&grants[1], Some(last)).await?;
    let next = leases[3].acquire(earlier(now(), 60_000), None).await?;
    assert_eq!((next.node(), next.floor()), (1, later(last, 1)));
    assert_eq!(next.epoch(), grants[1].epoch() + 1);
    // What was given back is no longer its holder's.
    let renewed = leases[1].renew(&grants[1], now()).await;
    assert_eq!(failure(renewed), CoordinationFailure::Fenced);
    Ok(())
}

/// F5, F6 and an advance that a restart must not forget: clocks that are wrong, and the store's word.
pub async fn clocks_cannot_bring_a_time_back(lease: &impl AsyncNodeAllocator) -> Outcome {
    let spike = lease.acquire(later(now(), 3_600_000), None).await;
    assert_eq!(failure(spike), CoordinationFailure::TooFarAhead);
    let last = later(now(), 3_600_000);
    let ahead = lease.acquire(now(), Some(last)).await;
    assert_eq!(failure(ahead), CoordinationFailure::TooFarAhead);

    let start = now();
    let first = lease.acquire(start, None).await?;
    // Nothing of the hour was used up.
    assert_eq!(first.floor(), start);
    let spike = lease.renew(&first, later(now(), 3_600_000)).await;
    assert_eq!(failure(spike), CoordinationFailure::TooFarAhead);
    let renewed = lease.renew(&first, earlier(start, 7_200_000)).await?;
    assert_eq!(renewed, first, "a clock that steps back takes nothing back");
    let renewed = lease.renew(&first, later(start, 2_000)).await?;
    assert!(renewed.ceiling() > first.ceiling());
    // It ran two seconds ahead, and starts again two hours before.
    let last = earlier(renewed.ceiling(), 1);
    lease.release(&renewed, Some(last)).await?;
    let again = lease.acquire(earlier(now(), 7_200_000), None).await?;
    assert_eq!(again.node(), first.node());
    assert_eq!(again.floor(), renewed.ceiling());
    // Its own keys go on rising, also on another node with a lower ceiling.
    lease.release(&again, None).await?;
    let last = later(again.floor(), 1_000);
    let after = lease.acquire(earlier(now(), 7_200_000), Some(last)).await?;
    assert_eq!(after.floor(), later(last, 1));
    Ok(())
}

/// What is asked synchronously, as what a generic test takes.
pub struct Threads<T>(pub T);

impl<A: NodeAllocator> AsyncNodeAllocator for Threads<A> {
    async fn acquire(&self, now: Timestamp, last: Option<Timestamp>) -> Result<Grant, Error> {
        self.0.acquire(now, last)
    }

    async fn renew(&self, grant: &Grant, now: Timestamp) -> Result<Grant, Error> {
        self.0.renew(grant, now)
    }

    async fn release(&self, grant: &Grant, last: Option<Timestamp>) -> Result<(), Error> {
        self.0.release(grant, last)
    }

    fn terms(&self) -> &LeaseTerms {
        self.0.terms()
    }
}

impl<S: SegmentSource> AsyncSegmentSource for Threads<S> {
    type Order = S::Order;

    async fn reserve(&self, count: NonZeroU32) -> Result<Segment<S::Order>, Error> {
        self.0.reserve(count)
    }

    fn most(&self) -> Option<NonZeroU32> {
        self.0.most()
    }
}

/// F9: two that have the same grant, and a store each.
pub async fn the_first_copy_to_renew_goes_on(
    one: &impl AsyncNodeAllocator,
    other: &impl AsyncNodeAllocator,
) -> Outcome {
    let grant = one.acquire(now(), None).await?;
    let renewed = other.renew(&grant, now_by(200)).await?;
    for _ in 0..2 {
        assert_eq!(
            failure(one.renew(&grant, now_by(300)).await),
            CoordinationFailure::Fenced
        );
    }
    assert_eq!(
        failure(one.release(&grant, None).await),
        CoordinationFailure::Fenced
    );
    other.renew(&renewed, now_by(400)).await?;
    // Both at once: the ceiling moves for one of them.
    for round in 0..20 {
        let grant = one.acquire(now(), None).await?;
        let later = now_by(1_000 + round);
        let (a, b) = tokio::join!(one.renew(&grant, later), other.renew(&grant, later));
        assert_eq!(u8::from(a.is_ok()) + u8::from(b.is_ok()), 1, "{a:?} {b:?}");
        let renewed = a.or(b)?;
        one.release(&renewed, None).await?;
    }
    Ok(())
}

/// F2 in the keys: they go on while the server is down, up to the ceiling; then there are none until it is back.
pub async fn keys_end_at_the_ceiling<A>(leases: A, mut server: Server) -> Outcome
where
    A: AsyncNodeAllocator + 'static,
{
    let window = leases.terms().window();
    let leases = Arc::new(leases);
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
    // It blocks its thread, so the test's own time-out does not end it.
    let deadline = Instant::now() + Duration::from_secs(120);
    let mut make = |until: &dyn Fn(&Result<i64, Error>) -> bool| loop {
        assert!(Instant::now() < deadline, "it waits for what does not come");
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
        thread::sleep(Duration::from_millis(1));
    };
    // Renewed a few times.
    let end = Instant::now() + 3 * window;
    let (before, failed) = make(&|key| key.is_err() || Instant::now() > end);
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

/// A grant as a line of a pipe.
fn line(grant: &Grant) -> String {
    let [floor, ceiling] = [grant.floor(), grant.ceiling()].map(Timestamp::as_unix_millis);
    format!("{} {} {floor} {ceiling}", grant.node(), grant.epoch())
}

fn parse(line: &str) -> Option<Grant> {
    let numbers: Vec<u64> = line
        .split(' ')
        .map(str::parse)
        .collect::<Result<_, _>>()
        .ok()?;
    let [node, epoch, floor, ceiling] = numbers.try_into().ok()?;
    let time = |millis| Timestamp::from_unix_millis(millis).expect("a time");
    Grant::new(node, epoch, time(floor), time(ceiling)).ok()
}

/// Where a process that is to hold a node finds what to hold: the store, its URL, and the place in it.
const HOLD: &str = "ORDID_TEST_HOLD";

/// Returns what this process is to hold, if it is a [`Holder`].
pub fn to_hold() -> Option<[String; 3]> {
    let words = std::env::var(HOLD).ok()?;
    let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
    words.try_into().ok()
}

/// What such a process does: it writes down each grant, and each error.
pub async fn hold(lease: &impl AsyncNodeAllocator) -> Outcome {
    let mut out = io::stdout();
    let mut grant = None;
    loop {
        let result = match &grant {
            None => lease.acquire(now(), None).await,
            Some(grant) => lease.renew(grant, now()).await,
        };
        match result {
            Ok(held) => {
                writeln!(out, "{}", line(&held))?;
                grant = Some(held);
            }
            Err(error) => {
                writeln!(out, "error: {error}")?;
                // Only then is it another's for good.
                if error.coordination_failure() == Some(CoordinationFailure::Fenced) {
                    return Ok(());
                }
            }
        }
        tokio::time::sleep(lease.terms().window() / 3).await;
    }
}

/// A process that holds a node. It is not forked: a client of ZooKeeper has threads, which a forked
/// child has not.
pub struct Holder {
    process: Child,
    lines: io::Lines<BufReader<ChildStdout>>,
    pub ledger: Ledger,
}

impl Holder {
    /// Starts one on this store.
    pub fn start(store: &str, url: &str, place: &str) -> io::Result<Self> {
        let mut process = Command::new(std::env::current_exe()?)
            .env(HOLD, format!("{store} {url} {place}"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let out = process.stdout.take().expect("its output");
        Ok(Self {
            process,
            lines: BufReader::new(out).lines(),
            ledger: Ledger::default(),
        })
    }

    /// Its next word: a grant, which is noted, or an error.
    pub fn next_word(&mut self) -> Option<Result<Grant, String>> {
        let line = self.lines.next()?.expect("the pipe of the child");
        let Some(grant) = parse(&line) else {
            return Some(Err(line));
        };
        self.ledger.note(&grant);
        Some(Ok(grant))
    }

    fn signal(&mut self, signal: Signal) {
        process::signal(&mut self.process, signal);
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// F3 and F4: paused for longer than its lease, and then it goes on.
pub async fn a_paused_holder_is_fenced(mut holder: Holder, lease: &impl AsyncNodeAllocator) {
    holder.next_word().expect("a word").expect("a grant");
    holder.next_word().expect("a word").expect("a renewal");
    holder.signal(Signal::Stop);
    let next = acquire_when_free(lease, earlier(now(), 5_000)).await;
    holder.signal(Signal::Continue);
    let mut errors = Vec::new();
    while let Some(word) = holder.next_word() {
        if let Err(error) = word {
            errors.push(error);
        }
    }
    let fenced = errors.last().expect("an error, and not silence");
    assert!(
        fenced.starts_with("error: the lease is another's"),
        "{errors:?}"
    );
    holder.ledger.note(&next);
    let renewed = lease.renew(&next, now()).await.expect("its own");
    holder.ledger.note(&renewed);
    holder.ledger.check();
}

/// F7: killed in the middle of a window.
pub async fn a_killed_holder_leaves_a_gap(mut holder: Holder, lease: &impl AsyncNodeAllocator) {
    holder.next_word().expect("a word").expect("a grant");
    let held = holder.next_word().expect("a word").expect("a renewal");
    holder.signal(Signal::Kill);
    let next = acquire_when_free(lease, earlier(now(), 5_000)).await;
    assert!(next.floor() >= held.ceiling() && next.epoch() > held.epoch());
    holder.ledger.note(&next);
    holder.ledger.check();
}

/// Many that reserve at once get each number once, and all of them.
pub async fn numbers_come_once<S, F>(
    make: impl Fn() -> F,
    first: i64,
    each: u32,
    counts: &[u32],
) -> Outcome
where
    S: AsyncSegmentSource + 'static,
    S::Order: Send,
    F: Future<Output = S>,
{
    let mut tasks = JoinSet::new();
    for _ in 0..8 {
        let source = make().await;
        let counts = counts.to_vec();
        tasks.spawn(async move {
            let mut numbers: Vec<i64> = Vec::new();
            for turn in 0..each {
                let count = counts[turn as usize % counts.len()];
                let segment: Segment<S::Order> =
                    source.reserve(count.try_into().expect("some")).await?;
                assert_eq!(segment.len(), count);
                assert!(numbers.last().copied() < segment.first(), "they rise");
                numbers.extend(segment.values());
            }
            Ok::<_, Error>(numbers)
        });
    }
    let mut numbers = Vec::new();
    while let Some(made) = tasks.join_next().await {
        numbers.extend(made??);
    }
    numbers.sort_unstable();
    let end = first + i64::try_from(numbers.len())?;
    assert!(numbers.into_iter().eq(first..end), "each once, and no gap");
    Ok(())
}

/// F18: the end of the count is an error, again and again.
pub async fn a_count_ends(source: &impl AsyncSegmentSource) -> Outcome {
    let some = |count: u32| count.try_into().expect("some");
    for _ in 0..2 {
        let over = source.reserve(some(6)).await;
        assert_eq!(failure(over), CoordinationFailure::CounterExhausted);
    }
    let segment = source.reserve(some(5)).await?;
    assert_eq!(segment.first(), Some(i64::MAX - 5));
    for _ in 0..2 {
        let over = source.reserve(some(1)).await;
        assert_eq!(failure(over), CoordinationFailure::CounterExhausted);
    }
    Ok(())
}

/// A failure of this kind, in these words.
pub fn fails<T: std::fmt::Debug>(result: Result<T, Error>, kind: CoordinationFailure, words: &str) {
    let error = result.expect_err("it cannot have succeeded");
    assert_eq!(error.coordination_failure(), Some(kind), "{error}");
    says(&error, words);
}

/// Says what a text was expected to say.
pub fn says(error: &impl Display, words: &str) {
    let text = error.to_string();
    assert!(text.contains(words), "`{text}` does not say `{words}`");
}
