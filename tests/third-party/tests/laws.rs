//! The laws of a unit of work, over an adapter that ordid does not know.
//!
//! All rows are in the store exactly once, or none is. If the flush returned `Ok`, all are there. If it returned an
//! error, none is there, unless the error says that this cannot be known, and flushing again finds it out.

use ordid::{KeyType, OrderedKey, uuid::Uuid};
use ordid_sql::{Action, Upserted};
use recorder::{
    Fault, FlushError, Retry, ShardedUnitOfWork, Sharding, Store, ToValue, UnitOfWork, Value,
};

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, adapter = recorder(memory = blob))]
struct NodeId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = snowflake, adapter = recorder)]
struct LeafId(i64);

/// Rises from its last bytes, but a `blob` compares from the first.
#[derive(KeyType)]
#[ordid(scheme = comb_nhibernate, adapter = recorder(memory = unordered(blob)))]
struct CombId(Uuid);

#[derive(OrderedKey, Clone)]
#[ordid(table = "nodes")]
struct Node {
    #[ordid(key)]
    id: NodeId,
    #[ordid(parent)]
    up: Option<NodeId>,
    name: String,
}

#[derive(OrderedKey, Clone)]
#[ordid(table = "leaves")]
struct Leaf {
    #[ordid(key)]
    id: LeafId,
    #[ordid(parent)]
    node: NodeId,
}

#[derive(OrderedKey)]
#[ordid(table = "combs")]
struct Comb {
    #[ordid(key)]
    id: CombId,
}

#[derive(OrderedKey, Clone)]
#[ordid(table = "notes")]
struct Note {
    #[ordid(key)]
    id: NodeId,
    #[ordid(version)]
    version: i64,
}

fn store() -> Store {
    let store = Store::default();
    store.create_table("notes", &[]);
    store.create_table("nodes", &[(1, "nodes")]);
    store.create_table("leaves", &[(1, "nodes")]);
    store.create_table("combs", &[]);
    recorder::flushes_table(&store);
    store
}

fn node(name: &str, up: Option<NodeId>) -> Node {
    let (id, name) = (NodeId::generate(), name.into());
    Node { id, up, name }
}

fn leaf(id: i64, node: NodeId) -> Leaf {
    let id = LeafId::try_from(id).expect("it is an id");
    Leaf { id, node }
}

fn work(nodes: &[Node]) -> UnitOfWork {
    let mut work = UnitOfWork::default();
    for node in nodes {
        work.add(node.clone());
    }
    work
}

fn row(node: &Node) -> Vec<Value> {
    vec![node.id.to_value(), node.up.to_value(), node.name.to_value()]
}

fn rows(nodes: &[Node]) -> Vec<Vec<Value>> {
    let mut rows: Vec<_> = nodes.iter().map(row).collect();
    rows.sort();
    rows
}

#[track_caller]
fn failed<T: std::fmt::Debug>(outcome: Result<T, FlushError>) -> FlushError {
    outcome.expect_err("the flush fails")
}

/// A generator of test data (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end as u64).expect("it is below a `usize`")
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        (1..items.len()).for_each(|last| items.swap(last, self.below(last + 1)));
    }
}

/// The store refuses a row whose parent is not there. In every second forest a root refers to any node, which makes a
/// circle.
#[test]
fn parents_go_first_and_every_row_is_written_once_and_deleted() {
    let has = |work: &mut UnitOfWork, is: fn(&Action) -> bool| {
        usize::from(work.plan().unwrap().tables.iter().any(|it| is(&it.action)))
    };
    let (mut fixed_up, mut unlinked) = (0, 0);
    for seed in 1..=200 {
        let (store, mut random) = (store(), Random(seed));
        let mut nodes: Vec<Node> = Vec::new();
        for number in 0..1 + random.below(40) {
            let up = nodes.get(random.below(number + 1)).map(|it| it.id);
            nodes.push(node(&number.to_string(), up));
        }
        if seed % 2 == 0 {
            nodes[0].up = Some(nodes[random.below(nodes.len())].id);
        }
        let of = |id| leaf(id, nodes[random.below(nodes.len())].id);
        let mut leaves: Vec<Leaf> = (0..30).map(of).collect();
        random.shuffle(&mut nodes);
        random.shuffle(&mut leaves);

        let mut work = work(&nodes);
        for leaf in &leaves {
            work.add(leaf.clone());
        }
        fixed_up += has(&mut work, |it| matches!(it, Action::FixUp { .. }));
        let flushed = work.flush(&store).unwrap();
        assert_eq!(flushed.rows(), nodes.len() + 30, "seed {seed}");
        assert_eq!(store.rows("nodes"), rows(&nodes), "seed {seed}");
        assert_eq!((store.rows("leaves").len(), work.len()), (30, 0));

        nodes.iter().for_each(|it| work.delete(it));
        leaves.iter().for_each(|it| work.delete(it));
        unlinked += has(&mut work, |it| matches!(it, Action::Unlink { .. }));
        let flushed = work.flush(&store).unwrap();
        assert_eq!(flushed.deleted(), nodes.len() + 30, "seed {seed}");
        assert!(store.rows("nodes").is_empty() && store.rows("leaves").is_empty());
    }
    assert!(fixed_up > 20 && unlinked > 20, "{fixed_up}, {unlinked}");
}

#[test]
fn statements_follow_the_profile_and_the_order_of_the_index() {
    let (store, first, second) = (store(), node("a", None), node("b", None));
    let sorted = vec![row(&first), row(&second)];
    work(&[second, first]).flush(&store).unwrap();
    let sql = r#"INSERT INTO "nodes" ("id", "up", "name") VALUES (?, ?, ?), (?, ?, ?)"#;
    assert_eq!(store.sent(), [(sql.to_owned(), sorted)]);

    let mut work = UnitOfWork::default();
    for _ in 0..7 {
        let id = CombId::generate();
        work.add(Comb { id });
    }
    work.flush(&store).unwrap();
    assert!(store.sent()[0].1.is_sorted());
}

#[test]
fn a_row_that_is_refused_is_located_and_nothing_is_written() {
    let (store, known) = (store(), [node("known", None)]);
    work(&known).flush(&store).unwrap();
    let mut again = work(&known);
    for _ in 0..20 {
        again.add(node("new", None));
    }
    let error = failed(again.flush(&store));
    assert!(error.is_unique_violation(), "{error}");
    assert_eq!(error.key(), Some(&*known[0].id.to_string()));

    let orphan = node("orphan", Some(NodeId::generate()));
    let error = failed(work(std::slice::from_ref(&orphan)).flush(&store));
    assert!(error.is_foreign_key_violation(), "{error}");
    assert_eq!(error.key(), Some(&*orphan.id.to_string()));
    assert_eq!((again.len(), store.rows("nodes")), (21, rows(&known)));
}

#[test]
fn updates_and_deletes_are_counted() {
    let (store, mut first, second) = (store(), node("first", None), node("second", None));
    let mut work = work(&[first.clone(), second.clone()]);
    work.flush(&store).unwrap();
    first.name = "changed".into();
    work.update(first.clone());
    work.delete(&second);
    let flushed = work.flush(&store).unwrap();
    assert_eq!((flushed.updated(), flushed.deleted()), (1, 1));
    assert_eq!(store.rows("nodes"), [row(&first)]);

    work.delete(&second);
    let error = failed(work.flush(&store));
    assert!(error.is_missing_row(), "{error}");
    assert_eq!(error.key(), Some(&*second.id.to_string()));
    assert_eq!(store.rows("ordid_flushes").len(), 1);
}

#[test]
fn rows_are_inserted_updated_or_left_alone() {
    let (store, mut there, new) = (store(), node("there", None), node("new", None));
    work(std::slice::from_ref(&there)).flush(&store).unwrap();
    let before = there.clone();
    there.name = "changed".into();
    let mut work = UnitOfWork::default();
    work.insert_or_ignore(there.clone());
    work.insert_or_ignore(new.clone());
    let flushed = work.flush(&store).unwrap();
    assert_eq!((flushed.rows(), flushed.left_alone()), (1, 1));
    assert_eq!(store.rows("nodes"), [row(&before), row(&new)]);

    work.upsert(there.clone());
    let flushed = work.flush(&store).unwrap();
    let became = flushed.upserted::<Node>(there.id);
    assert_eq!(became, Some(Upserted::Updated));
    assert_eq!(store.rows("nodes"), [row(&there), row(&new)]);
}

#[test]
fn a_row_that_has_changed_since_it_was_read_is_not_written() {
    let store = store();
    let note = Note {
        id: NodeId::generate(),
        version: 7,
    };
    let mut work = UnitOfWork::default();
    work.add(note.clone());
    work.flush(&store).unwrap();
    work.update(note.clone());
    work.flush(&store).unwrap();
    assert_eq!(store.rows("notes"), [[note.id.to_value(), 8.to_value()]]);

    work.update(note.clone());
    let error = failed(work.flush(&store));
    assert!(error.is_stale(), "{error}");
    let versions = [error.read_version(), error.found_version()];
    assert_eq!(versions, [Some("7"), Some("8")]);
    let mut work = UnitOfWork::default();
    work.delete(&note);
    assert!(failed(work.flush(&store)).is_stale());
    let mut work = UnitOfWork::default();
    work.delete(&Note { version: 8, ..note });
    work.flush(&store).unwrap();
    assert!(store.rows("notes").is_empty());
}

/// If a flush only inserts, one of its rows is looked for, otherwise the marker row.
#[test]
fn a_lost_commit_is_resolved_whether_it_was_applied_or_not() {
    for (fault, retries) in [(Fault::AfterCommit, 0), (Fault::BeforeCommit, 1)] {
        let (store, mut node) = (store(), node("new", None));
        let mut work = work(std::slice::from_ref(&node));
        store.fail(fault);
        let flushed = work.flush(&store).unwrap();
        assert_eq!((flushed.rows(), flushed.retries), (1, retries));
        node.name = "changed".into();
        work.update(node.clone());
        store.fail(fault);
        let flushed = work.flush(&store).unwrap();
        assert_eq!((flushed.updated(), flushed.retries), (1, retries));
        assert_eq!(store.rows("nodes"), [row(&node)]);
    }
}

#[test]
fn a_commit_that_nobody_can_be_asked_about_is_unknown_until_the_next_flush() {
    for (fault, there) in [(Fault::AfterCommit, 1), (Fault::BeforeCommit, 0)] {
        let (store, nodes) = (store(), [node("new", None)]);
        let mut work = work(&nodes).with_retry(Retry::NONE);
        store.fail(fault);
        store.fail(Fault::Unreachable);
        let error = failed(work.flush(&store));
        assert!(error.is_commit_unknown(), "{error}");
        assert_eq!((work.len(), store.rows("nodes").len()), (1, there));
        assert_eq!(work.flush(&store).unwrap().rows(), 1);
        assert_eq!(store.rows("nodes"), rows(&nodes));
    }
}

#[test]
fn inside_a_transaction_a_flush_is_a_savepoint() {
    let (store, first, second) = (store(), node("first", None), node("second", None));
    let mut open = store.begin();
    let mut kept = work(std::slice::from_ref(&first));
    kept.flush_in(&mut open).unwrap();
    assert_eq!(kept.len(), 1, "only the caller knows when it is committed");
    let error = failed(work(&[second.clone(), first.clone()]).flush_in(&mut open));
    assert_eq!(error.key(), Some(&*first.id.to_string()));
    assert!(failed(kept.flush(&store)).is_connection_state());
    open.commit();
    let mut work = work(&[second]);
    work.flush_in(&mut store.begin()).unwrap();
    assert_eq!(store.rows("nodes"), [row(&first)]);
}

#[test]
fn shards_are_committed_each_for_itself() {
    let (stores, nodes) = ([store(), store()], [(); 40].map(|()| node("new", None)));
    let sharding = Sharding::by_hash(2).unwrap();
    let sharding = sharding.route(|it: &Node| it.id).route(|it: &Leaf| it.node);
    let mut work = ShardedUnitOfWork::new(sharding.clone()).with_retry(Retry::NONE);
    for (id, node) in (0..).zip(&nodes) {
        work.add(node.clone()).unwrap();
        work.add(leaf(id, node.id)).unwrap();
    }
    stores[1].fail(Fault::Unreachable);
    let error = failed(work.flush(&stores));
    let shards = error.shards().unwrap();
    assert!(shards[0].is_ok() && shards[1].is_err(), "{error}");
    assert_eq!(
        (work.len(), work.shards()[0].len()),
        (work.shards()[1].len(), 0)
    );
    assert!(!work.is_empty() && stores[1].rows("nodes").is_empty());
    work.flush(&stores).unwrap();
    for (number, store) in stores.iter().enumerate() {
        let own = nodes
            .iter()
            .filter(|it| sharding.shard(it.id).unwrap() == number);
        let own: Vec<Node> = own.cloned().collect();
        assert_eq!(store.rows("nodes"), rows(&own));
        assert_eq!(store.rows("leaves").len(), own.len());
    }
}
