//! The duel: five processes want three nodes, are stopped at random for longer than a lease lives, or
//! killed and replaced, and have clocks that differ and step by up to two seconds. No key may come twice, whatever
//! happens to the store meanwhile.
//!
//! A test binary gives each process its part: see [`told`].

use std::{
    collections::HashMap,
    env, fmt,
    io::{Read, Write},
    process::{Child, Command, Stdio, exit},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use ordid_core::{
    Error,
    clock::{Clock, SystemClock, Timestamp},
    coordination::{
        AsyncNodeAllocator, AsyncSegmentSource, CoordinationFailure, LeaseTerms, NodeAllocator,
    },
    entropy::{Entropy, ThreadEntropy},
    generator::{AtCeiling, Generator, GrantedGenerator, LeaseKeeper, Policy},
    scheme::Snowflake,
};

use crate::{
    process::{Signal, signal},
    trials::Outcome,
};

const PROCESSES: u64 = 5;
pub const NODES: u64 = 3;
/// How many there are at once: with one more, a node has changed hands.
const HOLDERS: usize = 3;
/// After which silence a node is free.
pub const TTL: Duration = Duration::from_millis(400);
const WINDOW: Duration = Duration::from_millis(200);
/// Keys in a row, then a pause of a millisecond.
const BURST: usize = 64;
/// Keys that a run has to make at least, and how long it may take.
const LEAST: usize = 200_000;
const LONGEST: Duration = Duration::from_mins(2);

/// What a process is told: the method, what its clock is like, the name of what it shares, the address.
const TOLD: &str = "ORDID_DUEL";

/// The part of this process in a duel.
pub struct Told {
    /// The method by which it leases a node.
    pub method: String,
    /// Its clock.
    pub clock: Arc<Skewed>,
    /// The name of what all share.
    pub name: String,
    /// The address of the store.
    pub url: String,
}

/// Returns this process's part, if it has one.
///
/// # Panics
///
/// If what it is told is no part.
pub fn told() -> Option<Told> {
    let told = env::var(TOLD).ok()?;
    let parts: Vec<&str> = told.splitn(4, '|').collect();
    let [method, is_skewed, name, url] = parts[..] else {
        panic!("{TOLD} is `{told}`");
    };
    let is_skewed = is_skewed == "skewed";
    let clock = Arc::new(Skewed {
        millis: AtomicI64::new(if is_skewed { skew() } else { 0 }),
    });
    if is_skewed {
        let clock = Arc::clone(&clock);
        thread::spawn(move || {
            loop {
                let millis = ThreadEntropy.next_u32().expect("entropy") % 1_000;
                thread::sleep(Duration::from_millis(u64::from(millis)));
                clock.millis.store(skew(), Ordering::Relaxed);
            }
        });
    }
    Some(Told {
        method: method.to_owned(),
        clock,
        name: name.to_owned(),
        url: url.to_owned(),
    })
}

/// A clock that is wrong, and wrong in another way every now and then.
pub struct Skewed {
    millis: AtomicI64,
}

impl Clock for Skewed {
    fn now(&self) -> Timestamp {
        let now = SystemClock.now().as_unix_millis();
        let millis = now.saturating_add_signed(self.millis.load(Ordering::Relaxed));
        Timestamp::saturating_from_unix_millis(millis)
    }
}

/// Steps up to two seconds in either direction.
fn skew() -> i64 {
    i64::from(ThreadEntropy.next_u32().expect("entropy") % 4_001) - 2_000
}

/// The terms of the leases.
///
/// # Panics
///
/// Never: they are possible.
pub fn terms() -> LeaseTerms {
    LeaseTerms::new(0..NODES)
        .and_then(|terms| terms.with_window(WINDOW))
        .and_then(|terms| terms.with_ttl(TTL))
        .expect("terms")
}

/// Makes keys until the process is ended, each of them above the one before.
pub fn produce(mut make: impl FnMut() -> Option<i64>) -> ! {
    let mut out = std::io::stdout().lock();
    let mut last = -1;
    loop {
        let burst: Vec<i64> = std::iter::from_fn(&mut make).take(BURST).collect();
        for key in &burst {
            assert!(*key > last, "{key} is not above {last}");
            last = *key;
        }
        let bytes: Vec<u8> = burst.iter().flat_map(|key| key.to_le_bytes()).collect();
        // The parent has seen enough.
        if out.write_all(&bytes).and_then(|()| out.flush()).is_err() {
            exit(0);
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Takes part over an allocator, which is made on the runtime that it is asked on.
///
/// # Panics
///
/// If a lease fails in another way than it may.
pub fn contend<A>(allocator: impl Future<Output = A>, clock: Arc<Skewed>) -> !
where
    A: AsyncNodeAllocator + 'static,
{
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let allocator = Arc::new(runtime.block_on(allocator));
    let keeper = once_free(clock, |clock| {
        let (policy, at_ceiling) = (Policy::DEFAULT, AtCeiling::Error);
        runtime.block_on(LeaseKeeper::acquire(
            &*allocator,
            clock,
            ThreadEntropy,
            policy,
            at_ceiling,
        ))
    });
    let keys = keeper.generator();
    let kept = runtime.spawn(async move { keeper.run(allocator, tokio::time::sleep).await });
    produce_under(&keys, || {
        assert!(!kept.is_finished(), "the keeper gave up");
    })
}

/// As [`contend`], on threads.
///
/// # Panics
///
/// If a lease fails in another way than it may.
pub fn contend_sync<A: NodeAllocator + 'static>(allocator: A, clock: Arc<Skewed>) -> ! {
    let keeper = once_free(clock, |clock| {
        let (policy, at_ceiling) = (Policy::DEFAULT, AtCeiling::Error);
        LeaseKeeper::acquire_sync(&allocator, clock, ThreadEntropy, policy, at_ceiling)
    });
    let kept = keeper.start(allocator).expect("a thread");
    // What becomes of the thread is said when it is dropped, which is never.
    produce_under(&kept.generator(), || ())
}

type Keeper = LeaseKeeper<Snowflake, Arc<Skewed>, ThreadEntropy>;

/// Asks for a node, and again after a while, until there is one.
fn once_free(clock: Arc<Skewed>, acquire: impl Fn(Arc<Skewed>) -> Result<Keeper, Error>) -> Keeper {
    loop {
        match acquire(Arc::clone(&clock)) {
            Ok(keeper) => return keeper,
            Err(error) => assert!(
                matches!(
                    error.coordination_failure(),
                    Some(CoordinationFailure::NoFreeNode | CoordinationFailure::Unavailable)
                ),
                "{error}"
            ),
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// Makes keys where there are some; where the grant is over, `check` looks whether somebody renews it.
fn produce_under(
    keys: &GrantedGenerator<Snowflake, Arc<Skewed>, ThreadEntropy>,
    check: impl Fn(),
) -> ! {
    produce(|| match keys.try_generate() {
        Ok(key) => Some(key.into_raw()),
        Err(error) => {
            let failure = error.coordination_failure();
            assert_eq!(failure, Some(CoordinationFailure::Expired), "{error}");
            check();
            None
        }
    })
}

/// A process that takes part, and what it made.
struct Contender {
    child: Child,
    reader: Option<thread::JoinHandle<Vec<i64>>>,
    made: Arc<AtomicUsize>,
}

impl Contender {
    fn start(told: &str) -> Self {
        let mut child = Command::new(env::current_exe().expect("this program"))
            .env(TOLD, told)
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let mut out = child.stdout.take().expect("its output");
        let made = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&made);
        let reader = thread::spawn(move || {
            let mut keys = Vec::new();
            let mut key = [0; 8];
            // What a kill cut off in the middle was not given out.
            while out.read_exact(&mut key).is_ok() {
                keys.push(i64::from_le_bytes(key));
                counted.fetch_add(1, Ordering::Relaxed);
            }
            keys
        });
        Self {
            child,
            reader: Some(reader),
            made,
        }
    }

    /// Ends it and returns its keys. It must still have been running: one that has ended has failed.
    fn end(mut self) -> Vec<i64> {
        let ended = self.child.try_wait().expect("its state");
        assert!(ended.is_none(), "a contender has failed: {ended:?}");
        self.child.kill().expect("a running process");
        self.child.wait().expect("its end");
        let reader = self.reader.take().expect("read once");
        reader.join().expect("its keys")
    }
}

/// A failed test leaves nobody behind.
impl Drop for Contender {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What came of a duel.
pub struct Counted {
    /// How many keys were made.
    pub keys: usize,
    /// How many of them came again.
    pub twice: usize,
    /// How often a process was stopped.
    pub stops: usize,
    kills: usize,
    /// Processes that made keys.
    holders: usize,
}

/// Has them contend, stops or kills some of them at random, and counts what came twice.
///
/// # Panics
///
/// If one of them fails.
pub fn duel(told: &str) -> Counted {
    duel_during(told, || ())
}

/// As [`duel`], while this happens to the store. It goes on until keys are made again afterwards.
///
/// # Panics
///
/// As [`duel`], or if what happens panics.
pub fn duel_during(told: &str, happens: impl FnOnce() + Send) -> Counted {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let happening = scope.spawn(|| {
            happens();
            is_over.store(true, Ordering::Release);
        });
        let is_over = || {
            // What panics is over, too.
            is_over.load(Ordering::Acquire) || happening.is_finished()
        };
        contend_until(told, is_over)
    })
}

fn contend_until(told: &str, is_over: impl Fn() -> bool) -> Counted {
    let mut contenders: Vec<Contender> = (0..PROCESSES).map(|_| Contender::start(told)).collect();
    let begun = Instant::now();
    let shortest = Duration::from_secs(if crate::soak() { 60 } else { 5 });
    let (mut stops, mut kills) = (0, 0);
    let mut made: Vec<Vec<i64>> = Vec::new();
    let mut enough = false;
    let mut before = None;
    while (begun.elapsed() < shortest || !enough) && begun.elapsed() < LONGEST {
        let chance = ThreadEntropy.next_u64().expect("entropy");
        let chosen = usize::try_from(chance % PROCESSES).expect("few");
        if (chance / 5).is_multiple_of(4) {
            let killed = std::mem::replace(&mut contenders[chosen], Contender::start(told));
            made.push(killed.end());
            kills += 1;
        } else {
            signal(&mut contenders[chosen].child, Signal::Stop);
            thread::sleep(Duration::from_millis(chance / 7 % 1_500));
            signal(&mut contenders[chosen].child, Signal::Continue);
            stops += 1;
        }
        thread::sleep(Duration::from_millis(chance / 11 % 200));
        // Of each, ended or not.
        let each = || {
            let present = contenders.iter().map(|it| it.made.load(Ordering::Relaxed));
            made.iter().map(Vec::len).chain(present)
        };
        let holders = each().filter(|made| *made > 0).count();
        let keys = each().sum::<usize>();
        if before.is_none() && is_over() {
            before = Some(keys);
        }
        let goes_on = before.is_some_and(|before| keys >= before + LEAST / 10);
        enough = keys >= LEAST && holders > HOLDERS && goes_on;
    }
    made.extend(contenders.into_iter().map(Contender::end));
    let mut seen: HashMap<i64, u32> = HashMap::new();
    for key in made.iter().flatten() {
        *seen.entry(*key).or_default() += 1;
    }
    assert!(enough, "not enough keys, or none after what happened");
    let keys = made.iter().map(Vec::len).sum();
    Counted {
        keys,
        twice: keys - seen.len(),
        stops,
        kills,
        holders: made.iter().filter(|made| !made.is_empty()).count(),
    }
}

/// A duel in which nothing comes twice.
///
/// # Errors
///
/// None: it panics.
///
/// # Panics
///
/// If a key comes twice, or too few are made to tell.
pub fn is_won(told: &str) -> Outcome {
    is_won_during(told, || ())
}

/// As [`is_won`], while this happens to the store.
///
/// # Errors
///
/// None: it panics.
///
/// # Panics
///
/// As [`is_won`].
pub fn is_won_during(told: &str, happens: impl FnOnce() + Send) -> Outcome {
    let counted = duel_during(told, happens);
    // Not the address: it may hold a password.
    let what: Vec<&str> = told.splitn(3, '|').take(2).collect();
    println!(
        "{what:?}: {} keys of {} processes, {} twice, {} stops, {} kills",
        counted.keys, counted.holders, counted.twice, counted.stops, counted.kills
    );
    assert_eq!(counted.twice, 0, "keys came twice");
    assert!(
        counted.keys >= LEAST,
        "too few keys to tell: {}",
        counted.keys
    );
    assert!(counted.holders > HOLDERS, "no node changed hands");
    Ok(())
}

/// What a source of numbers gave.
pub struct Numbers {
    /// Them, in the order in which they came.
    pub numbers: Vec<i64>,
    /// How often the store was unavailable.
    pub unavailable: usize,
    /// The error after which there were no more.
    pub ended: Option<Error>,
}

impl fmt::Display for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (numbers, times) = (self.numbers.len(), self.unavailable);
        write!(f, "{numbers} numbers, {times} times unavailable")?;
        match &self.ended {
            Some(error) => write!(f, ", then {error}"),
            None => Ok(()),
        }
    }
}

/// Reserves at least so many numbers, and more until it is over, or fails in another way than that the store is
/// unavailable.
///
/// # Panics
///
/// Never: ten is not zero.
pub async fn count_on(
    source: impl AsyncSegmentSource,
    least: usize,
    is_over: Arc<AtomicBool>,
) -> Numbers {
    let ten = 10.try_into().expect("not zero");
    let mut made = Numbers {
        numbers: Vec::new(),
        unavailable: 0,
        ended: None,
    };
    while made.numbers.len() < least || !is_over.load(Ordering::Relaxed) {
        match source.reserve(ten).await {
            Ok(segment) => made.numbers.extend(segment.values()),
            Err(error) => match error.coordination_failure() {
                Some(CoordinationFailure::Unavailable) => made.unavailable += 1,
                _ => {
                    made.ended = Some(error);
                    break;
                }
            },
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    made
}

/// How many of these numbers came before.
pub fn repeats(numbers: impl IntoIterator<Item = i64>) -> usize {
    let mut seen = std::collections::HashSet::new();
    numbers
        .into_iter()
        .filter(|number| !seen.insert(*number))
        .count()
}
