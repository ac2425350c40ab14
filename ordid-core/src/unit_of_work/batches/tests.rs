use uuid::Uuid;

use super::*;
use crate::{entity::Parent, entity::Sink, unit_of_work::Plan};

/// Writes rows as text, and stops by what it was told.
#[derive(Default)]
struct Text {
    rows: Vec<String>,
    row: String,
    /// How many rows fit.
    room: Option<usize>,
    /// A value that is not taken.
    refused: Option<String>,
    failed: bool,
}

impl Sink<Uuid> for Text {
    fn put(&mut self, value: &Uuid) {
        self.put(&value.as_u128().to_string());
    }
}

impl Sink<String> for Text {
    fn put(&mut self, value: &String) {
        self.failed |= self.refused.as_ref() == Some(value);
        self.row.push_str(value);
        self.row.push(';');
    }
}

impl RowSink for Text {
    fn begin_row(&mut self) {
        self.row.clear();
    }

    fn end_row(&mut self) -> RowEnd {
        if self.failed {
            return RowEnd::Refused;
        }
        self.rows.push(self.row.clone());
        if self.room == Some(self.rows.len()) {
            RowEnd::TakenLast
        } else {
            RowEnd::Taken
        }
    }
}

macro_rules! entity {
    ($entity:ident, $table:literal, $columns:expr) => {
        impl OrderedKey for $entity {
            type Field = Uuid;
            const SCHEMA: Option<&'static str> = Some("shop");
            const TABLE: &'static str = $table;
            const KEY_COLUMN: &'static str = "id";
            const COLUMNS: &'static [&'static str] = $columns;
            const PARENTS: &'static [Parent] = &[];

            fn key(&self) -> Option<Uuid> {
                Some(self.id)
            }

            fn assign_key(&mut self, key: Uuid) {
                self.id = key;
            }

            fn self_parents(&self, _: &mut dyn FnMut(Uuid)) {}
        }
    };
}

#[derive(Debug, PartialEq)]
struct Customer {
    id: Uuid,
    name: String,
}

entity!(Customer, "customers", &["id", "name"]);

impl<S: Sink<Uuid> + Sink<String>> Fields<S> for Customer {
    fn write(&self, sink: &mut S) {
        sink.put(&self.id);
        sink.put(&self.name);
    }
}

#[derive(Debug, PartialEq)]
struct Tag {
    id: Uuid,
}

entity!(Tag, "tags", &["id"]);

impl<S: Sink<Uuid>> Fields<S> for Tag {
    fn write(&self, sink: &mut S) {
        sink.put(&self.id);
    }
}

fn customer(id: u128) -> Customer {
    Customer {
        id: Uuid::from_u128(id),
        name: format!("n{id}"),
    }
}

fn tag(id: u128) -> Tag {
    Tag {
        id: Uuid::from_u128(id),
    }
}

/// Customers 3, 1, 2 and tag 9.
fn some() -> Batches<Text> {
    let mut batches = Batches::new();
    batches.rows_mut().push(customer(3));
    batches.rows_mut().push(tag(9));
    batches.rows_mut().extend([customer(1), customer(2)]);
    batches
}

#[test]
fn rows_of_each_type_are_kept_apart_and_as_they_were_added() {
    let mut batches = some();
    assert_eq!(
        batches.get::<Customer>(),
        [customer(3), customer(1), customer(2)]
    );
    assert_eq!(batches.get::<Tag>(), [tag(9)]);
    assert_eq!((batches.len(), batches.is_empty()), (4, false));
    assert_eq!(format!("{batches:?}"), r#"{"customers": 3, "tags": 1}"#);
    let tables: Vec<_> = batches
        .tables()
        .iter()
        .map(|it| (it.schema(), it.name(), it.columns(), it.rows()))
        .collect();
    assert_eq!(
        tables,
        [
            (Some("shop"), "customers", &["id", "name"][..], 3),
            (Some("shop"), "tags", &["id"][..], 1),
        ]
    );
    batches.clear();
    assert_eq!((batches.len(), batches.is_empty()), (0, true));
    assert_eq!(batches.get::<Customer>(), []);
    assert!(batches.tables().is_empty());
}

#[test]
fn rows_are_written_in_the_order_of_their_keys() {
    let mut batches = some();
    batches.sort().unwrap();
    let mut text = Text::default();
    for chunk in Plan::new(&batches.tables(), 4).unwrap().chunks() {
        let end = batches.write(chunk.table, chunk.rows.clone(), &mut text);
        assert_eq!(end, chunk.rows.end);
    }
    text.rows.sort();
    assert_eq!(text.rows, ["1;n1;", "2;n2;", "3;n3;", "9;"]);

    let mut text = Text::default();
    assert_eq!(batches.write(0, 1..3, &mut text), 3);
    assert_eq!(text.rows, ["2;n2;", "3;n3;"]);
    assert_eq!(
        batches.key_text(0, 2),
        "00000000-0000-0000-0000-000000000003"
    );
    // Sorting anew takes in what was added since.
    batches.rows_mut().push(customer(0));
    batches.sort().unwrap();
    assert_eq!(batches.write(0, 0..1, &mut text), 1);
    assert_eq!(text.rows.last().unwrap(), "0;n0;");
}

#[test]
fn a_sink_stops_before_a_row_or_after_it() {
    let mut batches = some();
    batches.sort().unwrap();
    let mut full = Text {
        room: Some(2),
        ..Text::default()
    };
    assert_eq!(batches.write(0, 0..3, &mut full), 2);
    assert_eq!(full.rows, ["1;n1;", "2;n2;"]);
    let mut refusing = Text {
        refused: Some("n2".to_owned()),
        ..Text::default()
    };
    assert_eq!(batches.write(0, 0..3, &mut refusing), 1);
    assert_eq!(refusing.rows, ["1;n1;"]);
    assert_eq!(batches.write(0, 1..1, &mut refusing), 1);
}

#[test]
fn rows_can_be_sent_in_the_order_of_the_stored_form() {
    let mut batches = Batches::<Text>::new();
    batches
        .rows_mut_by(|left: &Uuid, right: &Uuid| right.cmp(left))
        .extend([customer(1), customer(3)]);
    // The comparison stays when it is not given again.
    batches.rows_mut().push(customer(2));
    batches.sort().unwrap();
    let mut text = Text::default();
    batches.write(0, 0..3, &mut text);
    assert_eq!(text.rows, ["3;n3;", "2;n2;", "1;n1;"]);
}

#[test]
fn a_key_added_twice_is_an_error_of_sorting() {
    let mut batches = some();
    batches.rows_mut().push(customer(1));
    let error = batches.sort().unwrap_err();
    assert!(error.is_plan());
    assert_eq!(
        error.to_string(),
        "two rows of customers have the key \
         00000000-0000-0000-0000-000000000001; was an entity added twice?"
    );
}
