use std::cmp::Ordering;

use ordid_core::uuid::Uuid;

use super::*;
use crate::{
    ColumnMask, EngineProfile, PendingRows, Plan, Registration, Take, entities::EntitiesOf,
    list::TypeOf, pending_rows::vec_mut,
};
use ordid_core::{
    entity::{Fields, OrderedKey, Parent, Sink},
    key::KeyField,
};

/// A row of a tree: its parent and its key, which is not the first column.
#[derive(Debug)]
struct Node {
    parent: Option<Uuid>,
    id: Option<Uuid>,
}

impl OrderedKey for Node {
    type Field = Option<Uuid>;
    const SCHEMA: Option<&'static str> = None;
    const TABLE: &'static str = "nodes";
    const KEY_COLUMN: &'static str = "id";
    const COLUMNS: &'static [&'static str] = &["parent", "id"];
    const PARENTS: &'static [Parent] = &[Parent::by_entity::<Option<Uuid>, Self>("parent")];

    fn key(&self) -> Option<Uuid> {
        self.id.get()
    }

    fn assign_key(&mut self, key: Uuid) {
        self.id.set(key);
    }

    fn parents(&self, visit: &mut dyn FnMut(usize, KeyBytes)) {
        if let Some(parent) = self.parent {
            visit(0, KeyBytes::of(parent));
        }
    }
}

impl<S: Sink<Option<Uuid>>> Fields<S> for Node {
    fn write(&self, sink: &mut S) {
        sink.put(&self.parent);
        sink.put(&self.id);
    }

    fn write_key(key: Uuid, sink: &mut S) {
        sink.put(&Some(key));
    }
}

/// What is sent, as text.
#[derive(Default)]
struct Text {
    sent: String,
    mask: ColumnMask,
}

impl Sink<Option<Uuid>> for Text {
    fn put(&mut self, value: &Option<Uuid>) {
        match (self.mask.take(), value) {
            (Take::Value, Some(value)) => self.sent += &format!(" {:x}", value.as_u128()),
            (Take::Value, None) | (Take::Null, _) => self.sent += " -",
            (Take::Skip, _) => {}
        }
    }
}

impl RowSink for Text {
    type Entity = ();

    fn begin_row(&mut self, columns: Columns<'_>) {
        self.mask.begin(columns);
    }

    fn end_row(&mut self) -> RowEnd {
        self.sent += ",";
        RowEnd::Taken
    }
}

fn node(key: u128, parent: u128) -> Node {
    let id = |number: u128| (number > 0).then(|| Uuid::from_u128(number));
    Node {
        id: id(key),
        parent: id(parent),
    }
}

fn inserts(nodes: impl IntoIterator<Item = (u128, u128)>) -> PendingRows<Text> {
    let mut pending_rows = PendingRows::new();
    let nodes = nodes.into_iter().map(|(key, parent)| node(key, parent));
    pending_rows.rows_mut().extend(nodes);
    pending_rows
}

fn text(pending_rows: &PendingRows<Text>, plan: &Plan) -> String {
    let mut text = Text::default();
    for chunk in plan.chunks() {
        text.sent += match chunk.action {
            Action::Insert => "insert",
            Action::FixUp { .. } => "fix up",
            Action::Update => "update",
            Action::UpdateColumns { .. } => "update columns",
            Action::Upsert { .. } => "upsert",
            Action::Unlink { .. } => "unlink",
            Action::Delete => "delete",
        };
        pending_rows.write(&chunk, chunk.rows.clone(), &mut text);
        text.sent += " ";
    }
    text.sent.trim_end().to_owned()
}

fn sent(pending_rows: &mut PendingRows<Text>) -> String {
    let plan = pending_rows.plan(&EngineProfile::MYSQL).unwrap();
    text(pending_rows, &plan)
}

fn refused(pending_rows: &mut PendingRows<Text>) -> String {
    let error = pending_rows.plan(&EngineProfile::MYSQL).unwrap_err();
    assert!(error.is_plan());
    error.to_string()
}

#[test]
fn rows_that_are_sorted_are_not_moved() {
    let rows = [(1, 0), (2, 1), (3, 99), (4, 4)];
    let mut nodes = EntitiesOf::<Text, _>::new(const { &TypeOf::entity::<Node>() }, Ord::cmp);
    let [inserted, _] = nodes.rows_mut();
    vec_mut::<Node>(inserted).extend(rows.map(|(key, parent)| node(key, parent)));
    let mut rows_in_order = Rows::<Text>::new(Box::new(nodes));
    rows_in_order.sort().unwrap();
    assert!(rows_in_order.inserts.is_none() && rows_in_order.are_parents_first());
    assert_eq!(sent(&mut inserts(rows)), "insert - 1, 1 2, 63 3, 4 4,");
    assert_eq!(sent(&mut inserts([])), "");
}

#[test]
fn rows_are_sorted_by_key_after_their_parents() {
    assert_eq!(
        sent(&mut inserts([(3, 0), (1, 0), (2, 0)])),
        "insert - 1, - 2, - 3,"
    );
    // Sorted, no row refers to a later one.
    assert_eq!(
        sent(&mut inserts([(3, 2), (1, 0), (2, 1)])),
        "insert - 1, 1 2, 2 3,"
    );
    assert_eq!(
        sent(&mut inserts([(1, 9), (2, 0), (9, 2), (10, 0)])),
        "insert - 2, - a, 2 9, 9 1,"
    );
}

#[test]
fn rows_are_sorted_by_the_stored_form() {
    // As in a column that compares the last byte first.
    fn stored(left: &Uuid, right: &Uuid) -> Ordering {
        let reversed = |key: &Uuid| key.as_u128().swap_bytes();
        reversed(left).cmp(&reversed(right))
    }
    let mut pending_rows = PendingRows::<Text>::new();
    let register = || Registration {
        compare: stored,
        entity: (),
    };
    let rows: &mut Vec<Node> = pending_rows.rows_mut_as(register);
    rows.extend([node(0x0102, 0), node(0x0201, 0), node(0x0301, 0x0102)]);
    assert_eq!(sent(&mut pending_rows), "insert - 201, - 102, 102 301,");
    let rows: &mut Vec<Node> = pending_rows.rows_mut();
    rows.remove(2);
    assert_eq!(sent(&mut pending_rows), "insert - 201, - 102,");
    // In order, but for a parent.
    let rows: &mut Vec<Node> = pending_rows.rows_mut();
    rows[1].parent = rows[0].id;
    rows.swap(0, 1);
    assert_eq!(sent(&mut pending_rows), "insert - 102, 102 201,");
}

#[test]
fn a_row_in_a_circle_is_inserted_with_null_and_fixed_up() {
    let mut pending_rows = inserts([(1, 3), (2, 1), (3, 2), (4, 0)]);
    let fixed = "insert - 1, - 4, 1 2, 2 3, fix up 3 1,";
    assert_eq!(sent(&mut pending_rows), fixed);
    let plan = pending_rows.plan(&EngineProfile::MYSQL).unwrap();
    let last = plan.chunks().last().unwrap();
    assert!(pending_rows.key_text(&last, 0).ends_with("01"));
    // Planning again finds the same, and what was added since.
    pending_rows.rows_mut().push(node(5, 2));
    assert_eq!(
        sent(&mut pending_rows),
        "insert - 1, - 4, 1 2, 2 3, 2 5, fix up 3 1,"
    );
    // Without the circle no NULL is left over.
    pending_rows.rows_mut::<Node>()[0].parent = None;
    assert_eq!(sent(&mut pending_rows), "insert - 1, 1 2, 2 3, - 4, 2 5,");
}

#[test]
fn updates_come_after_inserts_and_deletes_come_last() {
    let mut pending_rows = inserts([(1, 0)]);
    for (key, parent) in [(12, 1), (11, 0)] {
        pending_rows.update(node(key, parent), Registration::in_key_order::<Node>);
    }
    for (key, parent) in [(21, 0), (22, 21), (23, 22), (24, 99), (25, 25)] {
        pending_rows.delete(&node(key, parent), Registration::in_key_order::<Node>);
    }
    assert_eq!(
        sent(&mut pending_rows),
        "insert - 1, update - b, 1 c, unlink 19, delete 19, 18, 17, 16, 15,"
    );
    let plan = pending_rows.plan(&EngineProfile::POSTGRES).unwrap();
    assert!(text(&pending_rows, &plan).ends_with("1 c, delete 17, 16, 15, 18, 19,"));
    assert_eq!(pending_rows.len(), 8);
}

#[test]
fn rows_of_which_the_same_columns_are_updated_go_together() {
    let mut pending_rows = PendingRows::new();
    let register = Registration::in_key_order::<Node>;
    let (parent, id) = (0, 1);
    pending_rows.update_columns(node(5, 1), vec![parent], register);
    pending_rows.update(node(4, 2), register);
    pending_rows.update_columns(node(3, 3), vec![], register);
    pending_rows.update_columns(node(2, 4), vec![id, parent, parent], register);
    pending_rows.update(node(1, 5), register);
    assert_eq!(
        sent(&mut pending_rows),
        "update 5 1, 2 4, update columns 4 2, 1 5, update columns 3,"
    );
    let table = &pending_rows.tables()[0];
    let sets: Vec<_> = table
        .column_sets()
        .iter()
        .map(|it| (&*it.columns, it.rows))
        .collect();
    assert_eq!(
        (table.updates(), sets),
        (5, vec![(&[0][..], 2), (&[][..], 1)])
    );
    let plan = pending_rows.plan(&EngineProfile::MYSQL).unwrap();
    let rows: Vec<_> = plan.chunks().map(|chunk| chunk.rows).collect();
    assert_eq!(rows, [0..2, 0..2, 0..1], "each action counts from 0");
    let keys = plan.chunks().map(|chunk| pending_rows.key_text(&chunk, 0));
    let keys: String = keys.map(|key| key[35..].to_owned()).collect();
    assert_eq!(keys, "123");

    pending_rows.update(node(2, 1), register);
    assert!(refused(&mut pending_rows).contains("two updates of nodes"));
}

#[test]
fn rows_in_a_circle_are_unlinked_before_they_are_deleted() {
    let mut pending_rows = PendingRows::new();
    for (key, parent) in [(1, 2), (2, 3), (3, 1)] {
        pending_rows.delete(&node(key, parent), Registration::in_key_order::<Node>);
    }
    let plan = pending_rows.plan(&EngineProfile::MYSQL).unwrap();
    assert_eq!(
        text(&pending_rows, &plan),
        "unlink 1, delete 2, delete 3, delete 1,"
    );
    let keys = plan
        .chunks()
        .map(|chunk| pending_rows.key_text(&chunk, chunk.rows.start));
    let keys: String = keys.map(|key| key[35..].to_owned()).collect();
    assert_eq!(keys, "1231");
}

#[test]
fn a_duplicate_key_is_an_error_that_names_it() {
    const KEY: &str = "00000000-0000-0000-0000-000000000007";
    for rows in [
        [(1, 0), (7, 0), (7, 0)],
        [(7, 0), (1, 0), (7, 0)],
        // At other depths.
        [(7, 9), (9, 0), (7, 0)],
    ] {
        assert_eq!(
            refused(&mut inserts(rows)),
            format!("two rows of nodes have the key {KEY}; was an entity added twice?")
        );
    }
    let mut pending_rows = PendingRows::new();
    pending_rows.update(node(7, 1), Registration::in_key_order::<Node>);
    pending_rows.update(node(7, 2), Registration::in_key_order::<Node>);
    assert_eq!(
        refused(&mut pending_rows),
        format!("two updates of nodes have the key {KEY}; was an entity added twice?")
    );
    let mut pending_rows = PendingRows::new();
    pending_rows.delete(&node(7, 1), Registration::in_key_order::<Node>);
    pending_rows.delete(&node(7, 1), Registration::in_key_order::<Node>);
    assert_eq!(
        refused(&mut pending_rows),
        format!("two deletes of nodes have the key {KEY}; was an entity added twice?")
    );
}

#[test]
fn a_key_in_two_lists_is_an_error_that_names_it() {
    let says = |what: &str| {
        format!(
            "the row of nodes with the key 00000000-0000-0000-0000-000000000007 is to be {what} at \
             once; flush one before the other"
        )
    };
    let mut pending_rows = inserts([(9, 0), (7, 0), (1, 0)]);
    pending_rows.update(node(8, 0), Registration::in_key_order::<Node>);
    pending_rows.delete(&node(2, 0), Registration::in_key_order::<Node>);
    assert!(pending_rows.plan(&EngineProfile::MYSQL).is_ok());
    pending_rows.update(node(7, 0), Registration::in_key_order::<Node>);
    assert_eq!(
        refused(&mut pending_rows),
        says("inserted and updated") + ", or change the entity before you add it"
    );
    pending_rows.rows_mut::<Node>().remove(1);
    pending_rows.delete(&node(7, 0), Registration::in_key_order::<Node>);
    assert_eq!(refused(&mut pending_rows), says("updated and deleted"));
    let mut pending_rows = inserts([(7, 0), (1, 0)]);
    pending_rows.delete(&node(7, 0), Registration::in_key_order::<Node>);
    assert_eq!(refused(&mut pending_rows), says("inserted and deleted"));
}

#[test]
fn a_row_without_a_key_is_an_error() {
    assert_eq!(
        refused(&mut inserts([(1, 0), (0, 1)])),
        "a row of nodes has no key"
    );
    let mut pending_rows = PendingRows::new();
    pending_rows.update(node(0, 1), Registration::in_key_order::<Node>);
    assert_eq!(
        refused(&mut pending_rows),
        "a row of nodes that is to be updated has no key"
    );
    let mut pending_rows = PendingRows::new();
    pending_rows.delete(&node(0, 1), Registration::in_key_order::<Node>);
    assert_eq!(
        refused(&mut pending_rows),
        "a row of nodes that is to be deleted has no key"
    );
}

/// Whatever was found before, and however the rows were added.
#[test]
fn a_row_is_found_by_its_key() {
    const KEYS: [u128; 6] = [0x20, 0x21, 0x30, 0x40, 0x50, 0x60];
    let turned = [3, 0, 5, 2, 4, 1].map(|at| KEYS[at]);
    for added in [KEYS, turned] {
        let mut nodes = EntitiesOf::<Text, _>::new(const { &TypeOf::entity::<Node>() }, Ord::cmp);
        let [inserted, _] = nodes.rows_mut();
        vec_mut::<Node>(inserted).extend(added.map(|key| node(key, 0)));
        let mut rows = Rows::<Text>::new(Box::new(nodes));
        rows.sort().unwrap();
        let keys = rows.keys(List::Inserts);
        for near in 0..=KEYS.len() {
            for wanted in 0x10..0x70 {
                let mut found_at = near;
                let key = KeyBytes::of(Uuid::from_u128(wanted));
                let found = keys.find(&key, &mut found_at);
                let expected = KEYS.iter().position(|key| *key == wanted);
                assert_eq!(found, expected, "{wanted:x} near {near}");
                assert_eq!(found_at, expected.unwrap_or(near));
            }
        }
        let of_another_length = KeyBytes::of_raw(0x20_i64);
        assert_eq!(keys.find(&of_another_length, &mut 0), None);
    }
}
