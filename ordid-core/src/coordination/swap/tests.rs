use std::{
    pin::pin,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use super::*;

/// A store in memory, whose steps a test can have interrupted.
struct Steps {
    terms: LeaseTerms,
    kept: Mutex<Kept>,
}

/// Something that other processes do to the store.
type Others = Box<dyn FnOnce(&mut Kept) + Send>;

#[derive(Default)]
struct Kept {
    /// Record, whether it is held, version.
    nodes: BTreeMap<u64, (NodeRecord, bool, u64)>,
    /// Done by others just before the next swap.
    before_swap: Option<Others>,
    store_now: Option<Timestamp>,
    another_holds_first: bool,
    calls: Vec<String>,
}

impl Kept {
    fn set(&mut self, node: u64, epoch: u64, ceiling: Timestamp, is_held: bool) {
        let version = self.nodes.get(&node).map_or(1, |(.., version)| version + 1);
        let record = NodeRecord { epoch, ceiling };
        self.nodes.insert(node, (record, is_held, version));
    }

    fn stored(&self, node: u64) -> StoredNode<u64> {
        let never = (
            NodeRecord {
                epoch: 0,
                ceiling: at(0),
            },
            false,
            0,
        );
        let (record, is_held, version) = self.nodes.get(&node).copied().unwrap_or(never);
        StoredNode {
            record,
            is_held,
            store_now: self.store_now,
            version,
        }
    }
}

impl Steps {
    fn new(nodes: u64) -> Self {
        Self {
            terms: LeaseTerms::new(0..nodes).unwrap(),
            kept: Mutex::default(),
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.kept().calls)
    }
}

impl SwapStore for Steps {
    type Version = u64;

    fn place(&self) -> String {
        "memory".to_owned()
    }

    fn terms(&self) -> &LeaseTerms {
        &self.terms
    }

    async fn read_all(&self) -> Result<StoredNodes<u64>, Error> {
        let kept = self.kept();
        Ok(StoredNodes {
            never_granted: kept.stored(u64::MAX),
            granted: kept.nodes.keys().map(|&it| (it, kept.stored(it))).collect(),
        })
    }

    async fn read(&self, node: u64) -> Result<StoredNode<u64>, Error> {
        let mut kept = self.kept();
        kept.calls.push(format!("read {node}"));
        Ok(kept.stored(node))
    }

    async fn hold(
        &self,
        node: u64,
        found: StoredNode<u64>,
    ) -> Result<Option<StoredNode<u64>>, Error> {
        let mut kept = self.kept();
        kept.calls.push(format!("hold {node}"));
        if std::mem::take(&mut kept.another_holds_first) {
            kept.set(node, 1, at(9_000), true);
            return Ok(None);
        }
        Ok(Some(found))
    }

    async fn abandon(&self, node: u64) {
        self.kept().calls.push(format!("abandon {node}"));
    }

    async fn swap(
        &self,
        node: u64,
        read: &StoredNode<u64>,
        record: NodeRecord,
        change: Change,
    ) -> Result<bool, Error> {
        let mut kept = self.kept();
        if let Some(others) = kept.before_swap.take() {
            others(&mut kept);
        }
        let is_unchanged = kept.stored(node).version == read.version;
        kept.calls
            .push(format!("{change:?} {node}: {is_unchanged}"));
        if is_unchanged {
            let is_held = change != Change::Release;
            kept.set(node, record.epoch, record.ceiling, is_held);
        }
        Ok(is_unchanged)
    }
}

fn at(millis: u64) -> Timestamp {
    Timestamp::from_unix_millis(1_800_000_000_000 + millis).unwrap()
}

/// Nothing waits in these tests.
fn done<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => unreachable!("nothing waits"),
    }
}

fn failure<T: std::fmt::Debug>(result: Result<T, Error>) -> CoordinationFailure {
    result.unwrap_err().coordination_failure().unwrap()
}

#[test]
fn a_released_node_is_granted_again_above_its_old_ceiling() {
    let store = Steps::new(1);
    let first = done(acquire(&store, at(0), None)).unwrap();
    assert_eq!((first.node(), first.epoch()), (0, 1));
    assert_eq!(
        failure(done(acquire(&store, at(0), None))),
        CoordinationFailure::NoFreeNode
    );
    let renewed = done(renew(&store, &first, at(1_000))).unwrap();
    assert_eq!(renewed.ceiling(), at(4_000));
    done(release(&store, &renewed, Some(at(1_500)))).unwrap();
    let next = done(acquire(&store, at(0), None)).unwrap();
    assert_eq!((next.epoch(), next.floor()), (2, at(1_501)));
    assert_eq!(
        failure(done(renew(&store, &renewed, at(2_000)))),
        CoordinationFailure::Fenced
    );
    assert_eq!(
        failure(done(release(&store, &renewed, None))),
        CoordinationFailure::Fenced
    );
}

#[test]
fn acquire_takes_the_free_node_with_the_lowest_ceiling() {
    let store = Steps::new(4);
    for (node, ceiling, is_held) in [(0, 5_000, false), (1, 1_000, true), (2, 3_000, false)] {
        store.kept().set(node, 1, at(ceiling), is_held);
    }
    // This node belongs to other terms: it is neither free nor in the way.
    store.kept().set(9, 1, at(1), false);
    let nodes = done(store.read_all()).unwrap();
    assert_eq!(nodes.free(&store.terms), [3, 2, 0]);
    let wide = LeaseTerms::new(0..1_000_000).unwrap();
    let free = nodes.free(&wide);
    assert_eq!(
        free.len(),
        5 + 3,
        "one more than were granted, and the free ones"
    );
}

#[test]
fn acquire_takes_another_node_after_a_lost_race_and_leaves_no_record() {
    // Between read and swap another takes node 0.
    let store = Steps::new(2);
    store.kept().before_swap = Some(Box::new(|kept| kept.set(0, 1, at(3_000), true)));
    let grant = done(acquire(&store, at(0), None)).unwrap();
    assert_eq!(grant.node(), 1);
    assert_eq!(
        store.calls(),
        [
            "hold 0",
            "Acquire 0: false",
            "abandon 0",
            "hold 1",
            "Acquire 1: true"
        ]
    );
    // Between read and hold another takes it: there is nothing to abandon.
    let store = Steps::new(2);
    store.kept().another_holds_first = true;
    assert_eq!(done(acquire(&store, at(0), None)).unwrap().node(), 1);
    assert_eq!(store.calls(), ["hold 0", "hold 1", "Acquire 1: true"]);
}

#[test]
fn a_grant_too_far_ahead_of_the_clock_is_abandoned() {
    let store = Steps::new(1);
    store.kept().store_now = Some(at(0));
    let acquired = done(acquire(&store, at(60_000), None));
    assert_eq!(failure(acquired), CoordinationFailure::TooFarAhead);
    assert_eq!(store.calls(), ["hold 0", "abandon 0"]);
}

/// After a lost race a node is chosen by chance, which may have a higher ceiling than another one.
#[test]
fn a_node_too_far_ahead_does_not_end_the_search_after_a_lost_race() {
    for _ in 0..64 {
        let store = Steps::new(2);
        store.kept().store_now = Some(at(0));
        store.kept().set(0, 1, at(500), false);
        store.kept().set(1, 1, at(60_000), false);
        store.kept().before_swap = Some(Box::new(|kept| kept.set(0, 2, at(1_000), false)));
        let grant = done(acquire(&store, at(0), None)).unwrap();
        assert_eq!((grant.node(), grant.floor()), (0, at(1_000)));
        // A held node leaves the one that is too far ahead.
        let acquired = done(acquire(&store, at(0), None));
        assert_eq!(failure(acquired), CoordinationFailure::TooFarAhead);
    }
}

#[test]
fn a_record_that_changes_before_the_swap_is_read_again() {
    for change in [Change::Renew, Change::Release] {
        let store = Steps::new(1);
        let grant = done(acquire(&store, at(0), None)).unwrap();
        let again = move |store: &Steps| match change {
            Change::Renew => done(renew(store, &grant, at(1_000))).map(drop),
            _ => done(release(store, &grant, None)),
        };
        store.calls();
        // Written anew by somebody, and the same: the second attempt succeeds.
        let ceiling = grant.ceiling();
        store.kept().before_swap = Some(Box::new(move |kept| kept.set(0, 1, ceiling, true)));
        again(&store).unwrap();
        let swapped = |is: bool| format!("{change:?} 0: {is}");
        let read = || "read 0".to_owned();
        assert_eq!(
            store.calls(),
            [read(), swapped(false), read(), swapped(true)]
        );

        // Granted to another meanwhile: that is what the second attempt says.
        let store = Steps::new(1);
        let grant = done(acquire(&store, at(0), None)).unwrap();
        assert_eq!(grant.epoch(), 1);
        store.kept().before_swap = Some(Box::new(|kept| kept.set(0, 2, at(6_000), true)));
        assert_eq!(failure(again(&store)), CoordinationFailure::Fenced);
        assert_eq!(
            store.kept().stored(0).record.epoch,
            2,
            "nothing was written"
        );
    }
}

#[test]
fn a_release_that_is_asked_for_again_is_done() {
    let store = Steps::new(1);
    let grant = done(acquire(&store, at(0), None)).unwrap();
    done(release(&store, &grant, Some(at(500)))).unwrap();
    done(release(&store, &grant, Some(at(500)))).unwrap();
    // Another ceiling is that of another release, or of a copy from before the grant.
    assert_eq!(
        failure(done(release(&store, &grant, Some(at(600))))),
        CoordinationFailure::CeilingRegressed
    );
    let next = done(acquire(&store, at(0), None)).unwrap();
    assert_eq!((next.epoch(), next.floor()), (2, at(501)));
    assert_eq!(
        failure(done(release(&store, &grant, Some(at(500))))),
        CoordinationFailure::Fenced
    );
}

#[test]
fn a_record_of_the_last_epoch_is_no_panic() {
    let store = Steps::new(1);
    store.kept().set(0, u64::MAX, at(0), false);
    let acquired = done(acquire(&store, at(1_000), None));
    assert_eq!(failure(acquired), CoordinationFailure::Mismatch);
    assert_eq!(store.calls(), ["hold 0", "abandon 0"]);
}

#[test]
fn only_a_number_as_it_is_written_names_a_node() {
    let terms = LeaseTerms::new(0..8).unwrap();
    assert_eq!(node_of("7", &terms), Some(7));
    for name in ["007", "+7", "8", "-1", "", "7 ", "owner"] {
        assert_eq!(node_of(name, &terms), None, "{name}");
    }
}
