//! Forked children and their parent do not share keys.
//!
//! Peers that keep their random state over a fork repeat up to 14,000 of these 16,000 keys.

use std::{
    collections::HashSet,
    io::Read as _,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};

use libtest_mimic::{Arguments, Trial};

use ordid::{
    Error, KeyType,
    clock::{Clock, CoarseClock, Delay, ManualClock, SystemClock, Timestamp, TscClock},
    coordination::{CoordinationFailure, Grant},
    entropy::ThreadEntropy,
    generator::{
        AtCeiling, Generator, GrantedGenerator, OrderedGenerator, Policy, Rollback, Slotted,
        WithHighWaterMark,
    },
    high_water::HighWaterMark,
    key::{ObjectId, Scheme, StaticScheme},
    scheme::{
        CombNHibernate, Instagram, Layout, NewId, ObjectIdScheme, OrderedText22, Percona64,
        Snowflake, Ulid, UuidNode, UuidShort, UuidV6, UuidV7,
        instagram::Shard,
        snowflake::{SnowflakeNode, Sonyflake},
        uuid_v6::UuidV6Generator,
        uuid_v7::UuidV7Generator,
        uuid_v7_sub_millis::UuidV7SubMillisGenerator,
        uuid_v7_unguessable::UuidV7UnguessableGenerator,
    },
    uuid::Uuid,
};
use ordid_file::MarkFile;
use ordid_tests::{
    merge::{self, Merged},
    process::{Child, begin_process_namespace, fork},
};

fn main() {
    let mut arguments = Arguments::from_args();
    // One after the other, on the main thread: a child should be a copy of this test alone.
    arguments.test_threads = Some(1);
    let tests: [(&str, fn()); 27] = [
        ("eight_children_of_2000_keys_share_none", eight_children),
        (
            "sixty_four_children_of_100000_keys_share_none",
            sixty_four_children,
        ),
        (
            "children_of_a_parent_that_made_no_key_share_none",
            children_of_an_untouched_parent,
        ),
        ("a_fork_of_a_fork_shares_none", fork_of_a_fork),
        (
            "children_that_start_new_threads_share_none",
            children_with_threads,
        ),
        (
            "forks_while_other_threads_generate_share_none",
            forks_under_load,
        ),
        ("a_reservation_open_over_a_fork_is_the_parents", reservation),
        ("a_mark_file_open_over_a_fork_is_the_parents", mark_file),
        ("blocks_open_over_a_fork_belong_to_the_parent", blocks),
        ("children_share_no_unguessable_key", unguessable),
        ("children_share_no_key_of_fractions", sub_millis),
        ("children_of_a_counter_clock_share_none", counter_clock),
        ("a_snowflake_node_is_the_parents", || {
            node::<Snowflake>(SnowflakeNode::new(7).unwrap());
            node::<Snowflake<Sonyflake>>(SnowflakeNode::new(7).unwrap());
        }),
        ("an_instagram_shard_is_the_parents", || {
            node::<Instagram>(Shard::new(5).unwrap());
        }),
        ("a_uuid_short_server_is_the_parents", || {
            node::<UuidShort>(7);
        }),
        ("a_percona_64_node_is_the_parents", || {
            node::<Percona64>(0x361f);
        }),
        ("a_newid_worker_is_the_parents", || {
            node::<NewId>([0x02, 0x42, 0xac, 0x11, 0x00, 0x02]);
        }),
        ("children_share_no_object_id", object_id),
        ("children_share_no_key_of_version_6", uuid_v6),
        (
            "children_share_no_key_of_a_fixed_node",
            uuid_v6_of_a_fixed_node,
        ),
        ("children_share_no_ulid", || {
            assert_eq!(children_of::<Ulid>().len(), CHILDREN_MADE);
        }),
        ("children_share_no_comb", || {
            assert_eq!(children_of::<CombNHibernate>().len(), CHILDREN_MADE);
        }),
        ("children_share_no_ordered_text", || {
            assert_eq!(children_of::<OrderedText22>().len(), CHILDREN_MADE);
        }),
        (
            "a_child_with_the_number_of_its_parent_is_a_child",
            child_with_its_parents_number,
        ),
        ("a_child_can_wait", a_child_can_wait),
        (
            "a_child_does_not_wait_for_the_lock_of_a_renewal",
            child_during_a_renewal,
        ),
        (
            "a_killed_process_with_an_older_clock_goes_on_above_its_keys",
            killed_and_restarted,
        ),
    ];
    let no_counter = TscClock::new().is_none();
    // One in another.
    let may_begin = || vec![begin_process_namespace().into()];
    let may_nest = fork(|| match begin_process_namespace() {
        true => fork(may_begin).join(),
        false => vec![0],
    });
    let no_namespace = may_nest.join() == [0];
    let trials = tests
        .map(|(name, test)| {
            let missing = [
                (no_counter, "counter_clock", "no counter of the processor"),
                (
                    no_namespace,
                    "number_of_its_parent",
                    "no namespaces for this user",
                ),
            ];
            let missing = missing.iter().find(|it| it.0 && name.contains(it.1));
            Trial::test(name, move || {
                test();
                Ok(())
            })
            .with_kind(missing.map_or("", |it| it.2))
            .with_ignored_flag(missing.is_some())
        })
        .into();
    libtest_mimic::run(&arguments, trials).exit();
}

fn keys(count: usize) -> Vec<u8> {
    let mut keys = vec![Uuid::nil(); count];
    // Half one by one, half as a batch: the two ways through the generator.
    let (single, batch) = keys.split_at_mut(count / 2);
    single.fill_with(Uuid::generate);
    Uuid::fill(batch);
    assert!(keys.is_sorted());
    keys.into_iter().flat_map(Uuid::into_bytes).collect()
}

/// Counts the keys of all answers, and fails if two are the same, or two counters.
fn distinct(answers: impl IntoIterator<Item = Vec<u8>>) -> usize {
    // The top 96 bits too: without the 32 random ones the counters must differ by themselves.
    distinct_in(answers, &[16, 12])
}

/// Counts the keys of all answers, and fails if two have the same first so many bytes.
fn distinct_in(answers: impl IntoIterator<Item = Vec<u8>>, lengths: &[usize]) -> usize {
    let mut keys: Vec<[u8; 16]> = Vec::new();
    for answer in answers {
        let (answer, rest) = answer.as_chunks();
        assert!(rest.is_empty());
        keys.extend(answer);
    }
    keys.sort_unstable();
    let repeated = |bytes: usize| {
        keys.windows(2)
            .filter(|pair| pair[0][..bytes] == pair[1][..bytes])
            .count()
    };
    for &length in lengths {
        let keys = keys.len();
        assert_eq!(
            repeated(length),
            0,
            "repeated {length} bytes of {keys} keys"
        );
    }
    keys.len()
}

fn eight_children() {
    for _ in 0..4 {
        let before = keys(2_000);
        let children: Vec<Child> = (0..8).map(|_| fork(|| keys(2_000))).collect();
        let after = keys(2_000);
        let answers = children.into_iter().map(Child::join);
        assert_eq!(distinct(answers.chain([before, after])), 20_000);
    }
}

fn sixty_four_children() {
    // Children that work in the same millisecond start their counters at unrelated places of 2^41:
    // that two of them touch in 6,400,000 keys is a matter of 1 in 100,000 runs.
    assert_eq!(
        merge::from_processes(64, 100_000),
        Ok(Merged {
            keys: 6_400_000,
            shared_counters: 0,
        })
    );
}

fn children_of_an_untouched_parent() {
    // A child that has made no key yet forks again: neither it nor its parent has any state.
    let middle = fork(|| {
        let children: Vec<Child> = (0..8).map(|_| fork(|| keys(2_000))).collect();
        children.into_iter().flat_map(Child::join).collect()
    });
    assert_eq!(distinct([middle.join()]), 16_000);
}

fn fork_of_a_fork() {
    let child = fork(|| {
        let mut all = keys(2_000);
        let grandchild = fork(|| {
            let mut all = keys(2_000);
            all.extend(fork(|| keys(2_000)).join());
            all
        });
        all.extend(keys(2_000));
        all.extend(grandchild.join());
        all
    });
    assert_eq!(distinct([keys(2_000), child.join()]), 10_000);
}

fn children_with_threads() {
    let before = keys(2_000);
    let work = || {
        // The forked thread itself makes no key: new threads must see the fork on their own.
        let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(|| keys(2_000))).collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    };
    let children: Vec<Child> = (0..4).map(|_| fork(work)).collect();
    let answers = children.into_iter().map(Child::join);
    assert_eq!(distinct(answers.chain([before])), 4 * 8_000 + 2_000);
}

fn forks_under_load() {
    let over = AtomicBool::new(false);
    let total = std::thread::scope(|scope| {
        let busy: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut all = Vec::new();
                    while !over.load(Ordering::Relaxed) && all.len() < 16 * 200_000 {
                        all.extend(keys(100));
                    }
                    all
                })
            })
            .collect();
        let mut answers = Vec::new();
        let mut children = Vec::new();
        for _ in 0..32 {
            // The forking thread stops anywhere in its batch of random words, and the others
            // anywhere at all, perhaps half way through a renewal.
            let moment = Uuid::generate().as_u128() % 2_000;
            answers.push(keys(2 + usize::try_from(moment).unwrap()));
            children.push(fork(|| keys(2_000)));
        }
        answers.extend(children.into_iter().map(Child::join));
        over.store(true, Ordering::Relaxed);
        answers.extend(busy.into_iter().map(|thread| thread.join().unwrap()));
        distinct(answers)
    });
    assert!(total > 32 * 2_000);
}

fn reservation() {
    let mut reserved = Uuid::reserve(1_000).unwrap();
    let first = reserved.next().unwrap();
    let rest = |reserved: &mut dyn Iterator<Item = Uuid>| -> Vec<u8> {
        reserved.flat_map(Uuid::into_bytes).collect()
    };
    let child = fork(|| rest(&mut reserved));
    let parent = rest(&mut reserved);
    let answers = [first.into_bytes().to_vec(), parent, child.join()];
    assert_eq!(distinct(answers), 1 + 999 + 999);
}

fn mark_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.mark");
    let time = Timestamp::from_unix_millis(1_645_557_742_000).unwrap();
    let file = MarkFile::open(&path).unwrap();
    file.raise(time).unwrap();
    // The child has the lock too, and would write over the mark that the parent writes next.
    let child = fork(|| {
        let errors = [
            file.load().unwrap_err(),
            file.raise(Timestamp::MAX).unwrap_err(),
            MarkFile::open(&path).unwrap_err(),
        ];
        assert!(errors.iter().all(Error::is_high_water));
        errors.map(|error| error.to_string()).join("\n").into()
    });
    let child_pid = child.pid();
    let texts = String::from_utf8(child.join()).unwrap();
    let (texts, path) = (texts.lines().collect::<Vec<_>>(), path.display());
    let parent_pid = std::process::id();
    let forked = format!(
        "the high-water mark {path} was opened by process {parent_pid} and this is its fork \
         {child_pid}: open another file in the child"
    );
    assert_eq!(texts[..2], [forked.as_str(); 2]);
    assert!(texts[2].contains("is in use"), "{}", texts[2]);
    assert_eq!(file.load().unwrap(), Some(time));
}

fn made_by(generator: &impl Generator<Scheme: Scheme<Raw = Uuid>>, count: usize) -> Vec<u8> {
    let mut made = Vec::new();
    for _ in 0..count {
        made.extend(generator.try_generate().unwrap().into_raw().into_bytes());
    }
    assert!(made.as_chunks::<16>().0.is_sorted_by(|a, b| a < b));
    made
}

/// A local block of a shared generator and one of a thread's own generator, both in use.
fn blocks() {
    let shared = UuidV7Generator::new(SystemClock, ThreadEntropy, Policy::DEFAULT);
    let block = shared.local_block();
    let local = UuidV7Generator::new(CoarseClock, ThreadEntropy, Policy::DEFAULT).into_local();
    // The two of one process differ by their random bits alone, so each has its own count.
    for _ in 0..4 {
        let before = made_by(&block, 100);
        let children: Vec<Child> = (0..8).map(|_| fork(|| made_by(&block, 2_000))).collect();
        let after = made_by(&block, 2_000);
        let answers = children.into_iter().map(Child::join);
        assert_eq!(distinct(answers.chain([before, after])), 18_100);

        let before = made_by(&local, 100);
        let children: Vec<Child> = (0..8).map(|_| fork(|| made_by(&local, 2_000))).collect();
        let after = made_by(&local, 2_000);
        let answers = children.into_iter().map(Child::join);
        assert_eq!(distinct(answers.chain([before, after])), 18_100);
    }
}

/// Forks while a generator is in use, by itself and in a local block, and returns all keys.
fn forked<S, C>(generator: &OrderedGenerator<S, C, ThreadEntropy>) -> Vec<Vec<u8>>
where
    S: Slotted + Scheme<Raw = Uuid>,
    C: Clock,
{
    let block = generator.local_block();
    let mut answers = Vec::new();
    for _ in 0..4 {
        answers.push(made_by(generator, 100));
        answers.push(made_by(&block, 100));
        let work = || [made_by(generator, 1_000), made_by(&block, 1_000)].concat();
        let children: Vec<Child> = (0..8).map(|_| fork(work)).collect();
        answers.push(work());
        answers.extend(children.into_iter().map(Child::join));
    }
    answers
}

/// As many keys as [`forked`] returns.
const FORKED: usize = 4 * (200 + 9 * 2_000);

// The counters of these two start at 17 random bits and at none, so children do meet in them. Their
// 56 and 54 random bits must differ by themselves.

fn unguessable() {
    let keys = UuidV7UnguessableGenerator::new(SystemClock, ThreadEntropy, Policy::DEFAULT);
    let answers = forked(&keys);
    assert_eq!(distinct_random_parts(&answers), FORKED);
    assert_eq!(distinct_in(answers, &[16]), FORKED);
}

fn sub_millis() {
    let keys = UuidV7SubMillisGenerator::new(SystemClock, ThreadEntropy, Policy::DEFAULT);
    let answers = forked(&keys);
    assert_eq!(distinct_random_parts(&answers), FORKED);
    assert_eq!(distinct_in(answers, &[16]), FORKED);
}

/// Counts the different last 6 bytes: of 72,800 random ones two are the same once in 100,000 runs.
fn distinct_random_parts(answers: &[Vec<u8>]) -> usize {
    let keys = answers.iter().flat_map(|answer| answer.as_chunks::<16>().0);
    let parts: HashSet<&[u8]> = keys.map(|key| &key[10..]).collect();
    parts.len()
}

/// What the parent knows of the counter's rate is the child's too, and does no harm.
fn counter_clock() {
    let clock = TscClock::new().expect("ignored where there is none");
    let keys = UuidV7Generator::new(clock, ThreadEntropy, Policy::DEFAULT);
    assert_eq!(distinct(forked(&keys)), FORKED);
}

type Shared<S> = OrderedGenerator<S, SystemClock, ThreadEntropy>;

/// Everything that a generator can be asked for a key, once.
fn asked<S: Slotted>(generator: &impl Generator<Scheme = S>) -> Vec<Result<S::Raw, Error>> {
    let mut filled = Vec::new();
    let fill = generator.try_fill_with(3, |key| filled.push(Ok(key.into_raw())));
    filled.extend(fill.err().map(Err));
    let reserved = match generator.reserve(3) {
        // Three, since an iterator that cannot go on gives its error for ever.
        Ok(reserved) => reserved
            .take(3)
            .map(|key| key.map(|key| key.into_raw()))
            .collect(),
        Err(error) => vec![Err(error)],
    };
    let single = generator.try_generate().map(|key| key.into_raw());
    [vec![single], filled, reserved].concat()
}

/// Each is the first process of a namespace.
fn child_with_its_parents_number() {
    let of_first = || {
        assert_eq!(std::process::id(), 1);
        let node = SnowflakeNode::new(7).unwrap();
        let keys =
            Shared::<Snowflake>::with_node(node, SystemClock, ThreadEntropy, Policy::DEFAULT);
        keys.try_generate().unwrap();
        let (floor, ceiling) = (SystemClock.now(), Timestamp::MAX);
        let grant = Grant::new(7, 1, floor, ceiling).unwrap();
        assert!(begin_process_namespace());
        let child = fork(|| {
            assert_eq!(std::process::id(), 1);
            assert!(
                asked(&keys)
                    .iter()
                    .all(|it| it.as_ref().is_err_and(Error::is_forked))
            );
            let granted = GrantedGenerator::<Snowflake, _, _>::new(
                grant,
                SystemClock,
                ThreadEntropy,
                Policy::DEFAULT,
                AtCeiling::Error,
            );
            let failure = granted.unwrap_err().coordination_failure();
            assert_eq!(failure, Some(CoordinationFailure::Fenced));
            b"refused".to_vec()
        });
        child.join()
    };
    let outside = fork(|| {
        assert!(begin_process_namespace());
        fork(of_first).join()
    });
    assert_eq!(outside.join(), b"refused");
}

/// Keys that are told apart by their generator's node: a child has none, whatever it asks.
fn node<S: Slotted>(node: S::Node)
where
    Shared<S>: Sync,
{
    let with_node = || Shared::<S>::with_node(node, SystemClock, ThreadEntropy, Policy::DEFAULT);
    let used = with_node();
    let block = used.local_block();
    let local = with_node().into_local();
    let untouched = with_node();
    let untouched_block = untouched.local_block();
    let untouched_local = with_node().into_local();
    // The highest key so far, to start above it.
    let newest = with_node().try_generate().unwrap().into_raw();
    let forked_in = |text: &str| text.matches("the process was forked: the node of").count();

    let mut made = vec![
        used.try_generate().unwrap().into_raw(),
        block.try_generate().unwrap().into_raw(),
    ];
    let of_local = local.try_generate().unwrap().into_raw();
    let mut reserved = used.reserve(10).unwrap();
    made.push(reserved.next().unwrap().unwrap().into_raw());

    for round in 1..=3 {
        let child = fork(|| {
            let started = [
                &used,
                local.generator(),
                &untouched,
                untouched_local.generator(),
            ]
            .map(|generator| generator.start_above(&newest).map(|()| newest));
            let all = [
                started.to_vec(),
                asked(&used),
                asked(&block),
                asked(&local),
                asked(&untouched),
                asked(&untouched_block),
                asked(&untouched_local),
                // What was claimed before the fork is the parent's too.
                reserved
                    .by_ref()
                    .take(3)
                    .map(|key| key.map(|key| key.into_raw()))
                    .collect(),
                // Asking again changes nothing, nor does another thread.
                asked(&used),
                std::thread::scope(|scope| scope.spawn(|| asked(&used)).join().unwrap()),
            ]
            .concat();
            let errors: Vec<Error> = all.into_iter().map(Result::unwrap_err).collect();
            assert!(errors.iter().all(Error::is_forked), "{errors:?}");
            // With a generator of its own the child goes on.
            let own = asked(&with_node());
            assert!(own.iter().all(Result::is_ok) && own.len() == 7, "{own:?}");
            let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
            texts.join("\n").into()
        });
        let texts = String::from_utf8(child.join()).unwrap();
        // Four starts; eight times a key, a fill and a reservation; and three of the open one.
        assert_eq!(forked_in(&texts), 4 + 8 * 3 + 3, "{texts}");
        assert!(texts.contains(S::NAME), "{texts}");

        // The parent does not notice.
        made.push(reserved.next().unwrap().unwrap().into_raw());
        for key in asked(&used).into_iter().chain(asked(&block)) {
            made.push(key.unwrap());
        }
        assert_eq!(made.len(), 3 + round * 15);
    }
    let distinct: HashSet<S::Raw> = made.iter().copied().collect();
    assert_eq!(distinct.len(), made.len());
    let next = local.try_generate().unwrap().into_raw();
    assert!(S::cmp(&of_local, &next).is_lt());
    for generator in [&untouched, untouched_local.generator()] {
        assert!(asked(generator).iter().all(Result::is_ok));
    }
}

/// Keys of the process-wide generators of schemes that go on in a child.
const CHILDREN_MADE: usize = 2_000 + 9 * 2_000;

/// Has eight children and their parent make 2,000 keys each, and returns all, none of them twice.
fn children_of<S>() -> HashSet<S::Raw>
where
    S: StaticScheme<Raw: AsBytes>,
{
    let keys = || {
        let mut keys: Vec<S::Raw> = (0..1_000).map(|_| S::generate().into_raw()).collect();
        S::fill_with(1_000, |key| keys.push(key.into_raw()));
        assert!(keys.is_sorted_by(|a, b| S::cmp(a, b).is_lt()));
        keys.iter()
            .flat_map(|key| key.to_vec())
            .collect::<Vec<u8>>()
    };
    let before = keys();
    let children: Vec<Child> = (0..8).map(|_| fork(keys)).collect();
    let after = keys();
    let answers = children.into_iter().map(Child::join);
    let all: Vec<S::Raw> = answers
        .chain([before, after])
        .flat_map(|answer| {
            let keys = answer.chunks_exact(S::Raw::LENGTH).map(S::Raw::from_slice);
            keys.collect::<Vec<_>>()
        })
        .collect();
    let distinct: HashSet<S::Raw> = all.iter().copied().collect();
    assert_eq!(distinct.len(), all.len(), "repeated keys of {}", S::NAME);
    distinct
}

/// Raw keys that go through a pipe as their bytes.
trait AsBytes {
    const LENGTH: usize;
    fn to_vec(&self) -> Vec<u8>;
    fn from_slice(bytes: &[u8]) -> Self;
}

impl AsBytes for Uuid {
    const LENGTH: usize = 16;

    fn to_vec(&self) -> Vec<u8> {
        self.as_bytes().to_vec()
    }

    fn from_slice(bytes: &[u8]) -> Self {
        Uuid::from_slice(bytes).unwrap()
    }
}

impl AsBytes for ObjectId {
    const LENGTH: usize = 12;

    fn to_vec(&self) -> Vec<u8> {
        self.as_bytes().to_vec()
    }

    fn from_slice(bytes: &[u8]) -> Self {
        ObjectId::from_bytes(bytes.try_into().unwrap())
    }
}

/// The five random bytes are what tells processes apart: drawn anew in each child.
fn object_id() {
    let keys = children_of::<ObjectIdScheme>();
    assert_eq!(keys.len(), CHILDREN_MADE);
    let random: HashSet<u64> = keys
        .iter()
        .map(|key| ObjectIdScheme::unpack(key).unwrap().random)
        .collect();
    assert_eq!(random.len(), 9, "one for each process");
}

fn uuid_v6() {
    let keys = children_of::<UuidV6>();
    assert_eq!(keys.len(), CHILDREN_MADE);
    let parts = keys.iter().map(|key| UuidV6::unpack(key).unwrap());
    let (nodes, clock_seqs): (HashSet<_>, HashSet<_>) =
        parts.map(|parts| (parts.node, parts.clock_seq)).unzip();
    assert_eq!(nodes.len(), 9, "one for each process");
    // 14 bits: that there are fewer than seven of nine is a matter of 1 in 2,000,000 runs.
    assert!(clock_seqs.len() >= 7, "{clock_seqs:?}");
}

/// Where the node stays, the 14 bits of the clock sequence are all that a child draws.
fn uuid_v6_of_a_fixed_node() {
    let mac = [0x92, 0x36, 0x1f, 0x00, 0x26, 0x71];
    let node = UuidNode::danger_exact(mac);
    let keys = UuidV6Generator::with_node(node, SystemClock, ThreadEntropy, Policy::DEFAULT);
    let clock_seqs = |answer: Vec<u8>| -> HashSet<u16> {
        let keys = answer.as_chunks::<16>().0.iter();
        let parts = keys.map(|key| UuidV6::unpack(&Uuid::from_bytes(*key)).unwrap());
        parts
            .inspect(|parts| assert_eq!(parts.node, mac))
            .map(|parts| parts.clock_seq)
            .collect()
    };
    let mut all = clock_seqs(made_by(&keys, 100));
    assert_eq!(all.len(), 1);
    let children: Vec<Child> = (0..8).map(|_| fork(|| made_by(&keys, 100))).collect();
    assert_eq!(
        clock_seqs(made_by(&keys, 100)),
        all,
        "the parent keeps its own"
    );
    all.extend(
        children
            .into_iter()
            .flat_map(|child| clock_seqs(child.join())),
    );
    assert!(all.len() >= 7, "{all:?}");
}

/// A clock that stands still when it is read, if it is told to.
struct Halting {
    clock: ManualClock,
    halts: AtomicBool,
    is_read: mpsc::Sender<()>,
    goes_on: Mutex<mpsc::Receiver<()>>,
}

impl Clock for Halting {
    fn now(&self) -> Timestamp {
        if self.halts.swap(false, Ordering::Relaxed) {
            self.is_read.send(()).unwrap();
            self.goes_on.lock().unwrap().recv().unwrap();
        }
        self.clock.now()
    }
}

/// A renewal reads the clock while it has the generator's lock. The thread that renews is not in the child, so nobody gives
/// the lock back there.
fn child_during_a_renewal() {
    const START: u64 = 1_800_000_000_000;
    let at = |millis| Timestamp::from_unix_millis(START + millis).unwrap();
    let grant = |millis| Grant::new(7, 1, at(0), at(millis)).unwrap();
    let (is_read, read) = mpsc::channel();
    let (go_on, goes_on) = mpsc::channel();
    let clock = Halting {
        clock: ManualClock::at_unix_millis(START),
        halts: AtomicBool::new(false),
        is_read,
        goes_on: Mutex::new(goes_on),
    };
    let (policy, at_ceiling) = (Policy::DEFAULT, AtCeiling::Error);
    let keys = GrantedGenerator::<Snowflake, _, _>::new(
        grant(3_000),
        clock,
        ThreadEntropy,
        policy,
        at_ceiling,
    )
    .unwrap();
    keys.clock().halts.store(true, Ordering::Relaxed);
    std::thread::scope(|scope| {
        // Dropped by a failure, so that the renewal ends, too.
        let go_on = go_on;
        let renewing = scope.spawn(|| keys.renew(grant(4_000)));
        read.recv().unwrap();
        let child = fork(|| {
            let (is_done, done) = mpsc::channel();
            std::thread::scope(|scope| {
                scope.spawn(move || {
                    // Without an end, so would be the test.
                    if done.recv_timeout(Duration::from_secs(20)).is_err() {
                        std::process::abort();
                    }
                });
                let text = format!("{keys:?}");
                let asked = (keys.closed(), keys.grant().node(), keys.close().0.node());
                is_done.send(()).unwrap();
                assert!(text.contains("<locked>"), "{text}");
                assert_eq!(asked, (None, 7, 7));
            });
            assert!(keys.try_generate().unwrap_err().is_forked());
            b"asked".to_vec()
        });
        assert_eq!(child.join(), b"asked");
        go_on.send(()).unwrap();
        renewing.join().unwrap().unwrap();
    });
    assert_eq!(keys.grant(), grant(4_000));
}

/// Whoever wakes those who wait is a thread, which a child has not.
fn a_child_can_wait() {
    const MILLIS: u64 = 50;
    let wait = || {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let start = Instant::now();
        let delay = Delay::new(Duration::from_millis(MILLIS));
        runtime.unwrap().block_on(delay);
        u64::try_from(start.elapsed().as_millis()).unwrap()
    };
    assert!(wait() >= MILLIS);
    // Forked while others begin to wait, too.
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    wait();
                }
            });
        }
        for _ in 0..20 {
            let child = fork(|| {
                let grandchild = fork(|| wait().to_le_bytes().to_vec());
                let waited = wait();
                [grandchild.join(), waited.to_le_bytes().to_vec()].concat()
            });
            let waited = child.join();
            let (waited, _) = waited.as_chunks();
            assert_eq!(waited.len(), 2);
            assert!(waited.iter().all(|it| u64::from_le_bytes(*it) >= MILLIS));
        }
        over.store(true, Ordering::Relaxed);
    });
}

/// A generator whose mark is in a file, with a clock that the test sets.
fn marked(
    path: &std::path::Path,
    clock: &Arc<ManualClock>,
) -> impl Generator<Scheme = UuidV7> + use<> {
    let policy = Policy {
        rollback: Rollback::HoldThenError {
            max: Duration::from_secs(60),
        },
        ..Policy::DEFAULT
    };
    let generator = UuidV7Generator::new(Arc::clone(clock), ThreadEntropy, policy);
    let mark = MarkFile::open(path).unwrap();
    WithHighWaterMark::new(generator, mark, Duration::from_millis(200)).unwrap()
}

fn killed_and_restarted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.mark");
    let mut start = 1_645_557_742_000;
    let mut newest = Uuid::nil();
    for _ in 0..20 {
        let mut child = ordid_tests::process::fork_writing(|pipe| {
            use std::io::Write as _;
            let clock = Arc::new(ManualClock::at_unix_millis(start));
            let keys = marked(&path, &clock);
            for step in 0.. {
                clock.set_unix_millis(start + step);
                pipe.write_all(keys.try_generate().unwrap().into_raw().as_bytes())?;
            }
            Ok(())
        });
        let first_of_this_run = newest;
        for _ in 0..3_000 {
            let mut key = [0; 16];
            child.read_exact(&mut key).unwrap();
            let key = Uuid::from_bytes(key);
            assert!(key > newest, "{key} after {newest}");
            newest = key;
        }
        assert!(newest > first_of_this_run);
        // Killed while it makes keys. The next clock is five seconds older than its last key.
        drop(child);
        start = (newest.as_u64_pair().0 >> 16) - 5_000;
    }
}
