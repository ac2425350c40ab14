mod random;

use std::{any::TypeId, collections::HashSet};

use ordid_core::uuid::Uuid;

use super::*;
use crate::{Chunk, ColumnSet, EngineProfile, FlushDialect, Plan, rows::FindRow};
use ordid_core::{
    entity::Parent,
    key::KeyBytes,
    storage::dialect::{MySql, Postgres, Sqlite},
};

/// An entity type for each table.
struct Numbered<const N: usize>;

type Entity = (fn() -> TypeId, [fn(&'static str) -> Parent; 2]);

macro_rules! numbered {
    ($($number:literal)*) => {
        /// The type of each entity, and what refers to it: without NULL, and with it.
        const NUMBERED: [Entity; 50] = [
            $((TypeId::of::<Numbered<$number>>, [
                Parent::by_entity::<Uuid, Numbered<$number>>,
                Parent::by_entity::<Option<Uuid>, Numbered<$number>>,
            ])),*
        ];
    };
}

numbered! {
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24
    25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49
}

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const COLUMNS: [&str; 5] = ["id", "a", "b", "c", "d"];

/// A foreign key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Link {
    target: usize,
    nullable: bool,
    deferrable: bool,
}

/// A row: its key, and what it refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) key: u128,
    pub(crate) up: Vec<Option<u128>>,
}

/// The rows of a table, in the place of `Rows<E>`, whose foreign keys are constants.
#[derive(Debug, Clone)]
pub(crate) struct Given {
    pub(crate) table: Table,
    pub(crate) inserts: Vec<Row>,
    fix_ups: Cuts,
    pub(crate) updates: Vec<Row>,
    pub(crate) deletes: Vec<Row>,
    unlinks: Cuts,
}

impl Given {
    fn list(&self, list: List) -> &[Row] {
        match list {
            List::Inserts => &self.inserts,
            List::Deletes => &self.deletes,
        }
    }
}

struct Keys(Vec<KeyBytes>);

impl FindRow for Keys {
    fn find(&self, key: &KeyBytes, _: &mut usize) -> Option<usize> {
        self.0.iter().position(|it| it == key)
    }
}

impl TypelessRows for Given {
    fn table(&self) -> Table {
        Table {
            rows: self.inserts.len(),
            updates: self.updates.len(),
            deletes: self.deletes.len(),
            ..self.table.clone()
        }
    }

    fn sort(&mut self) -> Result<(), Error> {
        for rows in [&mut self.inserts, &mut self.updates, &mut self.deletes] {
            rows.sort_by_key(|row| row.key);
        }
        self.fix_ups.clear();
        self.unlinks.clear();
        Ok(())
    }

    fn are_parents_first(&self) -> bool {
        // So that the graph is asked.
        false
    }

    fn keys(&self, list: List) -> Box<dyn FindRow> {
        let keys = self.list(list).iter().map(|row| Uuid::from_u128(row.key));
        Box::new(Keys(keys.map(KeyBytes::of).collect()))
    }

    fn parents(&self, list: List, visit: &mut dyn FnMut(usize, usize, KeyBytes)) {
        for (position, row) in self.list(list).iter().enumerate() {
            for (parent, up) in row.up.iter().enumerate() {
                if let Some(up) = up {
                    visit(position, parent, KeyBytes::of(Uuid::from_u128(*up)));
                }
            }
        }
    }

    fn upserted_keys(&self) -> HashSet<KeyBytes> {
        let keys = self.updates.iter().map(|row| Uuid::from_u128(row.key));
        keys.map(KeyBytes::of).collect()
    }

    fn upserted_parents(&self, visit: &mut dyn FnMut(usize, KeyBytes)) {
        for row in &self.updates {
            for (parent, up) in row.up.iter().enumerate() {
                if let Some(up) = up {
                    visit(parent, KeyBytes::of(Uuid::from_u128(*up)));
                }
            }
        }
    }

    fn arrange(&mut self, list: List, order: &[usize]) {
        let rows = match list {
            List::Inserts => &mut self.inserts,
            List::Deletes => &mut self.deletes,
        };
        *rows = order.iter().map(|row| rows[*row].clone()).collect();
    }

    fn cut(&mut self, list: List, cuts: Cuts) {
        match list {
            List::Inserts => self.fix_ups = cuts,
            List::Deletes => self.unlinks = cuts,
        }
    }

    fn key_text(&self, action: Action, row: usize) -> String {
        let rows = match action {
            Action::Delete => &self.deletes,
            _ => &self.inserts,
        };
        rows[row].key.to_string()
    }
}

pub(crate) fn schema(links: &[Vec<Link>]) -> Vec<Given> {
    links
        .iter()
        .enumerate()
        .map(|(number, links)| {
            let parent = |(column, link): (usize, &Link)| {
                let parent = NUMBERED[link.target].1[usize::from(link.nullable)](NAMES[column]);
                if link.deferrable {
                    parent.deferrable()
                } else {
                    parent
                }
            };
            let parents: Vec<Parent> = links.iter().enumerate().map(parent).collect();
            Given {
                table: Table {
                    entity: NUMBERED[number].0(),
                    key: TypeId::of::<Uuid>(),
                    schema: None,
                    name: format!("t{number}").leak(),
                    key_columns: &["id"],
                    leading: TypeId::of::<Uuid>(),
                    is_raw: true,
                    leading_bytes: 16,
                    columns: &COLUMNS[..=links.len()],
                    parents: parents.leak(),
                    version: None,
                    returning: &[],
                    counts_inserts: true,
                    is_named: false,
                    rises: true,
                    rows: 0,
                    updates: 0,
                    column_sets: std::sync::Arc::default(),
                    deletes: 0,
                },
                inserts: Vec::new(),
                fix_ups: Cuts::new(),
                updates: Vec::new(),
                deletes: Vec::new(),
                unlinks: Cuts::new(),
            }
        })
        .collect()
}

pub(crate) fn planned<D: FlushDialect>(given: &mut [Given]) -> Result<Plan, Error> {
    let mut rows: Vec<&mut dyn TypelessRows> = Vec::new();
    for given in given {
        given.sort()?;
        rows.push(given);
    }
    Plan::of(&mut rows, &D::PROFILE, crate::plan::Orders::ByAllTables)
}

/// A foreign key that can be NULL, and is checked at once.
pub(crate) const fn to(target: usize) -> Link {
    Link {
        target,
        nullable: true,
        deferrable: false,
    }
}

const fn not_null(target: usize) -> Link {
    Link {
        nullable: false,
        ..to(target)
    }
}

const fn deferrable(link: Link) -> Link {
    Link {
        deferrable: true,
        ..link
    }
}

pub(crate) fn row(key: u128, up: &[u128]) -> Row {
    // No row has the key 0: it is NULL here.
    let up = up.iter().map(|up| (*up != 0).then_some(*up)).collect();
    Row { key, up }
}

fn sent(plan: &Plan) -> Vec<(Action, usize, Range<usize>)> {
    plan.chunks()
        .map(|chunk: Chunk| (chunk.action, chunk.table, chunk.rows))
        .collect()
}

fn keys(rows: &[Row]) -> Vec<u128> {
    rows.iter().map(|row| row.key).collect()
}

fn fix_up(parent: usize) -> Action {
    Action::FixUp { parent }
}

/// Employees and their departments' managers.
fn company(department: Link, manager: Link) -> Vec<Given> {
    let mut given = schema(&[vec![manager], vec![department]]);
    given[0].inserts = vec![row(1, &[11]), row(2, &[14])];
    given[1].inserts = vec![row(11, &[1]), row(12, &[1]), row(13, &[1]), row(14, &[2])];
    given
}

#[test]
fn rows_of_a_tree_are_sorted_by_depth_and_then_by_key() {
    let mut given = schema(&[vec![to(0)]]);
    given[0].inserts = vec![row(1, &[9]), row(2, &[]), row(9, &[2]), row(10, &[77])];
    let plan = planned::<MySql>(&mut given).unwrap();
    // The parent that is not here is in the database.
    assert_eq!(keys(&given[0].inserts), [2, 10, 9, 1]);
    assert_eq!(sent(&plan), [(Action::Insert, 0, 0..4)]);
    assert!(!plan.defers() && plan.only_inserts());
}

#[test]
fn tables_in_a_circle_alternate_if_their_rows_form_no_circle() {
    let mut given = schema(&[vec![not_null(1)], vec![not_null(0)]]);
    given[0].inserts = vec![row(1, &[99]), row(2, &[12]), row(3, &[11])];
    given[1].inserts = vec![row(11, &[1]), row(12, &[98])];
    let plan = planned::<MySql>(&mut given).unwrap();
    assert_eq!(
        sent(&plan),
        [
            (Action::Insert, 0, 0..1),
            (Action::Insert, 1, 0..1),
            (Action::Insert, 0, 1..2),
            (Action::Insert, 1, 1..2),
            (Action::Insert, 0, 2..3),
        ]
    );
    assert_eq!(keys(&given[0].inserts), [1, 2, 3]);
    assert_eq!(keys(&given[1].inserts), [12, 11]);
    let numbers: Vec<_> = plan.chunks().map(|chunk| chunk.number).collect();
    assert_eq!(numbers, [0, 0, 1, 1, 2]);
}

/// Threads and comments, which answer comments, are such tables. A statement inserts rows in their order.
#[test]
fn a_chain_of_one_of_two_tables_in_a_circle_goes_by_whole_statements() {
    let mut given = schema(&[vec![to(1)], vec![not_null(0), to(1)]]);
    given[0].inserts = vec![row(1, &[99_999])];
    let answer = |key| row(key, &[1, if key == 10 { 0 } else { key - 1 }]);
    given[1].inserts = (10..2_510).map(answer).collect();
    let plan = planned::<MySql>(&mut given).unwrap();
    assert_eq!(
        sent(&plan),
        [
            (Action::Insert, 0, 0..1),
            (Action::Insert, 1, 0..1_000),
            (Action::Insert, 1, 1_000..2_000),
            (Action::Insert, 1, 2_000..2_500),
        ]
    );
}

/// Teams with a leader, and their members, are such tables. The rows decide which of them go first.
#[test]
fn rows_that_are_upserted_in_a_circle_go_before_those_that_may_refer_to_them() {
    let upserts = |rows| ColumnSet {
        found_by: Some(vec![0]),
        rows,
        ..ColumnSet::default()
    };
    let find = Action::Upsert {
        set: 0,
        step: crate::UpsertStep::Find,
    };
    let mut given = schema(&[vec![to(1)], vec![not_null(0)]]);
    given[0].updates = vec![row(1, &[77])];
    given[0].table.column_sets = vec![upserts(1)].into();
    given[1].inserts = vec![row(11, &[1])];
    let plan = planned::<MySql>(&mut given).unwrap();
    assert_eq!(sent(&plan), [(find, 0, 0..1), (Action::Insert, 1, 0..1)]);

    // The leader is new: the team can only come behind.
    given[0].updates = vec![row(1, &[11])];
    given[1].inserts = vec![row(11, &[2])];
    let plan = planned::<MySql>(&mut given).unwrap();
    assert_eq!(sent(&plan), [(Action::Insert, 1, 0..1), (find, 0, 0..1)]);

    // And so does a team whose leader is behind another one.
    given[0].inserts = vec![row(2, &[])];
    given[0].updates = vec![row(1, &[12])];
    given[1].inserts = Vec::new();
    given[1].updates = vec![row(12, &[2])];
    given[1].table.column_sets = vec![upserts(1)].into();
    let plan = planned::<MySql>(&mut given).unwrap();
    assert_eq!(
        sent(&plan),
        [(Action::Insert, 0, 0..1), (find, 1, 0..1), (find, 0, 0..1)]
    );

    // All of them are upserted, and the later table by name has the parent.
    let mut given = schema(&[vec![not_null(1)], vec![to(0)]]);
    given[0].updates = vec![row(11, &[1])];
    given[1].updates = vec![row(1, &[77])];
    for table in &mut given {
        table.table.column_sets = vec![upserts(1)].into();
    }
    let plan = planned::<MySql>(&mut given).unwrap();
    assert_eq!(sent(&plan), [(find, 1, 0..1), (find, 0, 0..1)]);

    // The same in one table.
    for (up, is_first) in [(0, true), (12, false)] {
        let mut given = schema(&[vec![to(0)]]);
        given[0].updates = vec![row(1, &[up])];
        given[0].table.column_sets = vec![upserts(1)].into();
        given[0].inserts = vec![row(12, &[])];
        let plan = planned::<MySql>(&mut given).unwrap();
        assert_eq!(sent(&plan)[0].0 == find, is_first);
    }
}

#[test]
fn a_circle_is_broken_at_a_column_that_can_be_null_and_has_the_fewest_references() {
    let fixed_up = |department, manager| {
        let mut given = company(department, manager);
        let mut sent = sent(&planned::<MySql>(&mut given).unwrap());
        sent.retain(|(action, ..)| *action != Action::Insert);
        sent
    };
    // In circles are the departments 1 and 2 with the employees 11 and 14, and no others. Of columns
    // with as many references, the first is taken.
    assert_eq!(fixed_up(to(0), to(1)), [(fix_up(0), 0, 0..2)]);
    assert_eq!(fixed_up(not_null(0), to(1)), [(fix_up(0), 0, 0..2)]);
    assert_eq!(fixed_up(to(0), not_null(1)), [(fix_up(0), 1, 0..2)]);

    // 11 -> 2 -> 1 -> 11 and 2 -> 11: one reference is in both circles.
    let mut given = schema(&[vec![to(1), to(0)], vec![to(0)]]);
    given[0].inserts = vec![row(1, &[11, 0]), row(2, &[11, 1])];
    given[1].inserts = vec![row(11, &[2])];
    let plan = planned::<MySql>(&mut given).unwrap();
    assert_eq!(
        sent(&plan),
        [
            (Action::Insert, 1, 0..1),
            (Action::Insert, 0, 0..2),
            (fix_up(0), 1, 0..1),
        ]
    );
}

#[test]
fn a_ring_is_cut_once() {
    let mut given = schema(&[vec![to(0)]]);
    given[0].inserts = (1..=5).map(|key| row(key, &[key % 5 + 1])).collect();
    let plan = planned::<MySql>(&mut given).unwrap();
    assert_eq!(
        sent(&plan),
        [(Action::Insert, 0, 0..5), (fix_up(0), 0, 0..1)]
    );
    assert_eq!(keys(&given[0].inserts), [1, 5, 4, 3, 2]);
    assert_eq!(given[0].fix_ups, Cuts::from([(0, vec![0])]));
}

#[test]
fn a_circle_without_null_is_an_error_that_names_columns_and_keys() {
    let mut given = company(not_null(0), not_null(1));
    let refused = |error: Error| {
        assert!(error.is_plan());
        error.to_string()
    };
    assert_eq!(
        refused(planned::<MySql>(&mut given).unwrap_err()),
        "2 rows refer to each other in a circle, and none of these foreign keys can be NULL: t0.a \
         of 1, t1.a of 11; make one of the columns nullable (`Option`)"
    );
    assert_eq!(
        refused(planned::<Postgres>(&mut given).unwrap_err()),
        "2 rows refer to each other in a circle, and none of these foreign keys can be NULL: t0.a \
         of 1, t1.a of 11; make one of the columns nullable (`Option`), or its constraint \
         deferrable (`#[ordid(parent, deferrable)]`)"
    );
    let mut ring = schema(&[vec![not_null(0)]]);
    ring[0].deletes = (1..=5).map(|key| row(key, &[key % 5 + 1])).collect();
    assert_eq!(
        refused(planned::<MySql>(&mut ring).unwrap_err()),
        "5 rows refer to each other in a circle, and none of these foreign keys can be NULL: t0.a \
         of 1, t0.a of 2, t0.a of 3, t0.a of 4, ...; make one of the columns nullable (`Option`)"
    );
}

/// A profile has the key of its user, so the owner of a photo may be either of them.
#[test]
fn a_circle_through_a_shared_key_type_is_an_error_that_says_to_name_the_entity() {
    let mut given = schema(&[vec![], vec![not_null(0)], vec![not_null(0), not_null(1)]]);
    given[1].table.key = TypeId::of::<Numbered<1>>();
    given[0].inserts = vec![row(1, &[])];
    given[1].inserts = vec![row(11, &[1])];
    given[2].inserts = vec![row(1, &[1, 11])];
    let named = planned::<Sqlite>(&mut given).unwrap();
    assert_eq!(named.chunks().count(), 3);
    given[1].table.parents = const { &[Parent::by_key::<Uuid>("a")] };
    assert_eq!(
        planned::<MySql>(&mut given).unwrap_err().to_string(),
        "2 rows refer to each other in a circle, and none of these foreign keys can be NULL: t1.a of 11, t2.b of 1; make one \
         of the columns nullable (`Option`), or, as t0 and t2 have the same key type, name the entity that t1.a refers to \
         (`#[ordid(parent = Customer)]`)"
    );
    // One entity has the key type of the others, so there is nothing to name.
    given[0].table.key = TypeId::of::<Numbered<0>>();
    let error = planned::<MySql>(&mut given).unwrap_err().to_string();
    assert!(
        error.ends_with("make one of the columns nullable (`Option`)"),
        "{error}"
    );
}

#[test]
fn constraints_are_deferred_only_if_nothing_else_breaks_a_circle() {
    let mut given = company(not_null(0), deferrable(not_null(1)));
    let plan = planned::<Postgres>(&mut given).unwrap();
    assert!(plan.defers());
    assert_eq!(
        sent(&plan),
        [(Action::Insert, 0, 0..2), (Action::Insert, 1, 0..4)]
    );
    assert!(planned::<MySql>(&mut given).unwrap_err().is_plan());
    // It costs no statement, so it goes before NULL; where it cannot be, NULL does it.
    let mut given = company(to(0), deferrable(to(1)));
    let plan = planned::<Postgres>(&mut given).unwrap();
    assert!(plan.defers() && plan.chunks().count() == 2);
    let plan = planned::<MySql>(&mut given).unwrap();
    assert!(!plan.defers() && plan.chunks().count() == 3);
    // Without a circle, the database checks at once.
    for given in &mut given {
        given.inserts.truncate(1);
        given.inserts[0].up[0] = Some(99);
    }
    assert!(!planned::<Postgres>(&mut given).unwrap().defers());
}

#[test]
fn a_row_that_refers_to_itself_is_unlinked_only_if_it_cannot_be_deleted() {
    let mut given = schema(&[vec![to(0)]]);
    given[0].inserts = vec![row(1, &[1]), row(2, &[1])];
    given[0].deletes = vec![row(7, &[7]), row(8, &[7])];
    let plan = planned::<MySql>(&mut given).unwrap();
    assert_eq!(
        sent(&plan),
        [
            (Action::Insert, 0, 0..2),
            (Action::Unlink { parent: 0 }, 0, 0..1),
            (Action::Delete, 0, 0..2),
        ]
    );
    assert_eq!(keys(&given[0].deletes), [8, 7]);
    assert_eq!(given[0].unlinks, Cuts::from([(0, vec![1])]));
    let plan = planned::<Postgres>(&mut given).unwrap();
    assert_eq!(plan.chunks().count(), 2);

    let mut given = schema(&[vec![not_null(0)]]);
    given[0].deletes = vec![row(7, &[7])];
    assert_eq!(
        planned::<MySql>(&mut given).unwrap_err().to_string(),
        "the row of t0 with the key 7 refers to itself by a, and MySQL deletes no such row; make \
         the column nullable"
    );
    assert!(planned::<Postgres>(&mut given).is_ok());
}

/// Each engine takes a chain in as few statements as it can check.
#[test]
fn a_chain_is_deleted_children_first_in_few_statements() {
    fn deleted<D: FlushDialect>(parent_of: fn(u128) -> u128) -> (usize, Vec<u128>) {
        let mut given = schema(&[vec![to(0)]]);
        given[0].deletes = (1..=5).map(|key| row(key, &[parent_of(key)])).collect();
        let plan = planned::<D>(&mut given).unwrap();
        (plan.len(), keys(&given[0].deletes))
    }
    let rising: fn(u128) -> u128 = |key| key - 1;
    let falling: fn(u128) -> u128 = |key| key + 1;
    let (last_first, first_first) = (vec![5, 4, 3, 2, 1], vec![1, 2, 3, 4, 5]);
    assert_eq!(deleted::<Postgres>(rising), (1, last_first.clone()));
    assert_eq!(deleted::<Postgres>(falling), (1, first_first.clone()));
    assert_eq!(deleted::<MySql>(rising), (1, last_first.clone()));
    // A parent has the greater key.
    assert_eq!(deleted::<MySql>(falling), (5, first_first));
    assert_eq!(deleted::<Sqlite>(rising), (5, last_first));
}

/// A statement for each depth would take far longer.
#[test]
fn rows_of_a_deep_tree_are_cut_off_from_parents_with_greater_keys() {
    fn deleted(link: Link, rows: impl Iterator<Item = Row>) -> Vec<(Action, usize, Range<usize>)> {
        let mut given = schema(&[vec![link]]);
        given[0].deletes = rows.collect();
        sent(&planned::<MySql>(&mut given).unwrap())
    }
    let falling = |length: u128| (1..=length).map(move |key| row(key, &[(key + 1) % (length + 1)]));
    let unlink = |rows| (Action::Unlink { parent: 0 }, 0, 0..rows);
    let delete = |rows| (Action::Delete, 0, 0..rows);
    assert_eq!(deleted(to(0), falling(150)), [unlink(149), delete(150)]);
    assert_eq!(deleted(to(0), falling(90)).len(), 90);
    // It cannot be NULL but in the first row of all, which has no parent.
    assert_eq!(deleted(not_null(0), falling(150)).len(), 150);
    // One row has moved to another place.
    let moved = (1..=150).map(|key| {
        row(
            key,
            &[if key == 2 {
                0
            } else if key == 1 {
                2
            } else {
                key - 1
            }],
        )
    });
    assert_eq!(deleted(to(0), moved), [unlink(1), delete(150)]);
}

#[test]
fn rows_are_deleted_children_first_and_on_sqlite_one_depth_a_statement() {
    let mut given = schema(&[vec![], vec![not_null(0), to(1)], vec![to(1)]]);
    given[0].deletes = vec![row(1, &[]), row(2, &[])];
    given[1].deletes = vec![
        row(11, &[1, 0]),
        row(12, &[1, 11]),
        row(13, &[2, 12]),
        row(14, &[2, 11]),
    ];
    given[2].deletes = vec![row(21, &[11])];
    let plan = planned::<Sqlite>(&mut given).unwrap();
    assert_eq!(
        sent(&plan),
        [
            (Action::Delete, 2, 0..1),
            (Action::Delete, 1, 0..1),
            (Action::Delete, 1, 1..3),
            (Action::Delete, 1, 3..4),
            (Action::Delete, 0, 0..2),
        ]
    );
    assert_eq!(keys(&given[1].deletes), [13, 12, 14, 11]);
    let plan = planned::<MySql>(&mut given).unwrap();
    assert_eq!(plan.chunks().count(), 3);
    assert_eq!(keys(&given[1].deletes), [14, 13, 12, 11]);
}

#[test]
fn a_key_in_an_option_is_no_foreign_key_that_can_be_null() {
    let mut given = schema(&[vec![to(1)], vec![to(0)]]);
    given[0].table.key_columns = &["a"];
    given[0].inserts = vec![row(1, &[1])];
    given[1].inserts = vec![row(1, &[1])];
    let plan = planned::<MySql>(&mut given).unwrap();
    assert_eq!(sent(&plan)[2], (fix_up(0), 1, 0..1));
    given[1].table.key_columns = &["a"];
    assert!(planned::<MySql>(&mut given).unwrap_err().is_plan());
}

#[test]
fn entities_that_share_a_key_type_are_both_parents() {
    let mut given = schema(&[vec![], vec![], vec![to(0)]]);
    given[2].table.parents = const { &[Parent::by_key::<Option<Uuid>>("a")] };
    given[0].inserts = vec![row(7, &[])];
    given[1].inserts = vec![row(5, &[])];
    given[2].inserts = vec![row(1, &[5]), row(2, &[7]), row(3, &[9])];
    let plan = planned::<MySql>(&mut given).unwrap();
    assert_eq!(
        sent(&plan),
        [
            (Action::Insert, 0, 0..1),
            (Action::Insert, 1, 0..1),
            (Action::Insert, 2, 0..3),
        ]
    );
}

/// Both by a graph that calls itself for no row.
#[test]
fn chains_and_rings_of_50_000_rows_do_not_overflow_the_stack() {
    const ROWS: u128 = 50_000;
    let mut given = schema(&[vec![to(0)]]);
    given[0].inserts = (1..=ROWS).map(|key| row(key, &[key + 1])).collect();
    let plan = planned::<MySql>(&mut given).unwrap();
    assert!(keys(&given[0].inserts).into_iter().eq((1..=ROWS).rev()));
    assert!(plan.chunks().all(|chunk| chunk.action == Action::Insert));
    given[0].inserts[0].up[0] = Some(1);
    let plan = planned::<MySql>(&mut given).unwrap();
    assert_eq!(plan.chunks().last().unwrap().rows, 0..1);
    assert!(
        !plan
            .chunks()
            .any(|chunk| chunk.action == fix_up(0) && chunk.number > 0)
    );
}
