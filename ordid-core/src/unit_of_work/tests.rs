use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::key::KeyField;

/// A row of a tree: its key and its parent's.
struct Node {
    id: Option<Uuid>,
    parent: Option<Uuid>,
}

impl OrderedKey for Node {
    type Field = Option<Uuid>;
    const SCHEMA: Option<&'static str> = None;
    const TABLE: &'static str = "nodes";
    const KEY_COLUMN: &'static str = "id";
    const COLUMNS: &'static [&'static str] = &["id", "parent"];
    const PARENTS: &'static [Parent] = &[Parent::by_entity::<Option<Uuid>, Self>("parent")];

    fn key(&self) -> Option<Uuid> {
        self.id.get()
    }

    fn assign_key(&mut self, key: Uuid) {
        self.id.set(key);
    }

    fn self_parents(&self, visit: &mut dyn FnMut(Uuid)) {
        self.parent.into_iter().for_each(visit);
    }
}

fn id(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

fn node(key: u128, parent: Option<u128>) -> Node {
    Node {
        id: Some(id(key)),
        parent: parent.map(id),
    }
}

/// A table of its own entity type, told by a marker, that refers to others.
fn table(name: &'static str, entity: TypeId, parents: &'static [Parent], rows: usize) -> Table {
    Table {
        entity,
        key: TypeId::of::<Uuid>(),
        schema: None,
        name,
        key_column: "id",
        columns: &["id", "a", "b", "c"],
        rows,
        parents,
    }
}

struct A;
struct B;
struct C;

const TO_A: Parent = Parent::by_entity::<Uuid, A>("a");
const TO_B: Parent = Parent::by_entity::<Uuid, B>("b");
const TO_C: Parent = Parent::by_entity::<Option<Uuid>, C>("c");

#[test]
fn parents_come_first_whatever_the_number_of_their_own_parents() {
    // C refers to A and B, A refers to B and to itself: by the number of foreign keys alone this
    // could not be told from the reverse.
    let tables = [
        table("c", TypeId::of::<C>(), &[TO_A, TO_B], 1),
        table("a", TypeId::of::<A>(), &[TO_B, TO_A], 1),
        table("b", TypeId::of::<B>(), &[], 1),
    ];
    let plan = Plan::new(&tables, 100).unwrap();
    assert_eq!(plan.tables().collect::<Vec<_>>(), [2, 1, 0]);
}

#[test]
fn a_parent_that_is_not_there_is_in_the_database() {
    let tables = [table("c", TypeId::of::<C>(), &[TO_A], 1)];
    assert_eq!(Plan::new(&tables, 100).unwrap().tables().count(), 1);
}

#[test]
fn a_circle_of_tables_is_an_error_that_names_them() {
    let tables = [
        table("a", TypeId::of::<A>(), &[TO_C], 1),
        table("b", TypeId::of::<B>(), &[], 1),
        table("c", TypeId::of::<C>(), &[TO_A], 1),
    ];
    let error = Plan::new(&tables, 100).unwrap_err();
    assert!(error.is_plan());
    assert_eq!(
        error.to_string(),
        "the tables a, c refer to each other in a circle: none can be inserted first; take \
         `#[ordid(parent)]` off one reference and set it after the flush"
    );
}

#[test]
fn chunks_keep_to_the_parameters_and_to_the_rows() {
    let plan = Plan::new(&[table("a", TypeId::of::<A>(), &[], 25)], 43).unwrap();
    let rows: Vec<_> = plan.chunks().map(|chunk| chunk.rows).collect();
    assert_eq!(rows, [0..10, 10..20, 20..25]);
    let plan = Plan::new(&[table("a", TypeId::of::<A>(), &[], 2001)], 65_535).unwrap();
    let rows: Vec<_> = plan.chunks().map(|chunk| chunk.rows).collect();
    assert_eq!(rows, [0..1000, 1000..2000, 2000..2001]);
    let error = Plan::new(&[table("a", TypeId::of::<A>(), &[], 1)], 3).unwrap_err();
    assert_eq!(
        error.to_string(),
        "table a has 4 columns, more than the 3 parameters of a statement"
    );
}

/// An entity type per number.
struct Numbered<const N: usize>;

macro_rules! numbered {
    ($($number:literal)*) => {
        const NUMBERED: [(fn() -> TypeId, Parent); 50] = [
            $((TypeId::of::<Numbered<$number>>, Parent::by_entity::<Uuid, Numbered<$number>>("up"))),*
        ];
    };
}

numbered! {
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24
    25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49
}

/// Makes the tables of a graph; each edge goes from a child to its parent.
fn graph(count: usize, edges: &[(usize, usize)]) -> Vec<Table> {
    (0..count)
        .map(|number| {
            let parents = edges.iter().filter(|(child, _)| *child == number);
            let parents: Vec<Parent> = parents.map(|(_, parent)| NUMBERED[*parent].1).collect();
            let name: &str = format!("t{number}").leak();
            table(name, NUMBERED[number].0(), parents.leak(), number % 3)
        })
        .collect()
}

proptest! {
    /// Any graph of up to 50 tables without a circle: each comes once, after all its parents.
    /// With one edge turned round, it is a circle, and an error that names both of its tables.
    #[test]
    fn any_graph_of_tables_is_ordered(
        (count, edges, numbers) in (1_usize..=50).prop_flat_map(|count| (
            Just(count),
            proptest::collection::vec((0..count, 0..count), 0..150),
            Just((0..count).collect::<Vec<_>>()).prop_shuffle(),
        )),
    ) {
        // From the higher to the lower, so there is no circle; tables are numbered otherwise. An
        // edge from a table to itself is no circle of tables.
        let mut edges: Vec<_> = edges
            .into_iter()
            .map(|(a, b)| (numbers[a.max(b)], numbers[a.min(b)]))
            .collect();
        let plan = Plan::new(&graph(count, &edges), 1000).unwrap();
        let order: Vec<usize> = plan.tables().collect();
        let mut sorted = order.clone();
        sorted.sort_unstable();
        prop_assert!(sorted.into_iter().eq(0..count));
        let place = |table| order.iter().position(|it| *it == table);
        for (child, parent) in &edges {
            prop_assert!(child == parent || place(*parent) < place(*child));
        }
        if let Some((child, parent)) = edges.iter().copied().find(|(child, parent)| child != parent) {
            edges.push((parent, child));
            let error = Plan::new(&graph(count, &edges), 1000).unwrap_err().to_string();
            let named = error.split(' ').map(|word| word.trim_end_matches(','));
            let named: Vec<_> = named.collect();
            for table in [child, parent] {
                prop_assert!(named.contains(&&*format!("t{table}")), "{}", error);
            }
        }
    }
}

#[test]
fn rows_in_order_are_left_alone() {
    let rows = [
        node(1, None),
        node(2, Some(1)),
        node(3, Some(99)),
        node(4, Some(4)),
    ];
    assert_eq!(row_order(&rows).unwrap(), None);
    assert_eq!(row_order::<Node>(&[]).unwrap(), None);
}

#[test]
fn rows_are_sorted_by_key() {
    let rows = [node(3, None), node(1, None), node(2, None)];
    assert_eq!(row_order(&rows).unwrap(), Some(vec![1, 2, 0]));
}

#[test]
fn rows_go_in_the_order_of_the_stored_form() {
    // As in a column that compares the last byte first.
    let stored = |left: &Uuid, right: &Uuid| {
        let reversed = |key: &Uuid| key.as_u128().swap_bytes();
        reversed(left).cmp(&reversed(right))
    };
    let rows = [
        node(0x0102, None),
        node(0x0201, None),
        node(0x0301, Some(0x0102)),
    ];
    assert_eq!(row_order(&rows).unwrap(), None);
    assert_eq!(row_order_by(&rows, stored).unwrap(), Some(vec![1, 0, 2]));
    let rows = [node(0x0201, None), node(0x0102, Some(0x0201))];
    assert_eq!(row_order_by(&rows, stored).unwrap(), None);
    // In order, but for a parent.
    let rows = [node(0x0201, Some(0x0102)), node(0x0102, None)];
    assert_eq!(row_order_by(&rows, stored).unwrap(), Some(vec![1, 0]));
}

#[test]
fn a_key_twice_is_an_error_that_names_it() {
    for rows in [
        [node(1, None), node(7, None), node(7, None)],
        [node(7, None), node(1, None), node(7, None)],
        // At other depths.
        [node(7, Some(9)), node(9, None), node(7, None)],
    ] {
        let error = row_order(&rows).unwrap_err();
        assert!(error.is_plan());
        assert_eq!(
            error.to_string(),
            "two rows of nodes have the key 00000000-0000-0000-0000-000000000007; was an entity \
             added twice?"
        );
    }
}

#[test]
fn parents_precede_children_even_with_a_higher_key() {
    let rows = [
        node(1, Some(9)),
        node(2, None),
        node(9, Some(2)),
        node(10, None),
    ];
    assert_eq!(row_order(&rows).unwrap(), Some(vec![1, 3, 2, 0]));
}

#[test]
fn rows_in_a_circle_and_rows_without_key_are_errors() {
    let rows = [node(1, Some(2)), node(2, Some(1))];
    let error = row_order(&rows).unwrap_err();
    assert!(error.is_plan());
    assert!(
        error
            .to_string()
            .starts_with("2 rows of nodes refer to each other in a circle: ")
    );
    let error = row_order(&[Node {
        id: None,
        parent: None,
    }])
    .unwrap_err();
    assert_eq!(error.to_string(), "a row of nodes has no key");
}

proptest! {
    /// Any forest, in any order of adding: every row comes after its parent, and keys rise among
    /// rows of one depth.
    #[test]
    fn any_forest_is_ordered(
        parents in proptest::collection::vec(proptest::option::of(0_usize..60), 1..60),
        keys in Just((0_u128..60).collect::<Vec<_>>()).prop_shuffle(),
    ) {
        // Row i refers to an earlier row, so there is no circle; keys are shuffled over the rows.
        let rows: Vec<Node> = parents
            .iter()
            .enumerate()
            .map(|(row, parent)| {
                let parent = parent.filter(|parent| *parent < row);
                node(keys[row], parent.map(|parent| keys[parent]))
            })
            .collect();
        let order = row_order(&rows).unwrap().unwrap_or_else(|| (0..rows.len()).collect());
        let mut seen = std::collections::HashSet::new();
        for row in order {
            if let Some(parent) = rows[row].parent {
                prop_assert!(seen.contains(&parent));
            }
            seen.insert(rows[row].id.unwrap());
        }
        prop_assert_eq!(seen.len(), rows.len());
    }
}
