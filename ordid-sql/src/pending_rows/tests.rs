use ordid_core::uuid::Uuid;

use super::*;
use crate::{Action, ColumnMask, Take};
use ordid_core::{
    entity::{Parent, Sink},
    key::KeyBytes,
};

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
    mask: ColumnMask,
}

impl Sink<Uuid> for Text {
    fn put(&mut self, value: &Uuid) {
        self.put(&value.as_u128().to_string());
    }
}

impl Sink<String> for Text {
    fn put(&mut self, value: &String) {
        self.failed |= self.refused.as_ref() == Some(value);
        match self.mask.take() {
            Take::Value => self.row.push_str(value),
            Take::Null => self.row.push_str("NULL"),
            Take::Skip => return,
        }
        self.row.push(';');
    }
}

impl RowSink for Text {
    type Entity = ();

    fn begin_row(&mut self, columns: Columns<'_>) {
        self.mask.begin(columns);
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

            fn parents(&self, _: &mut dyn FnMut(usize, KeyBytes)) {}
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

    fn write_key(key: Uuid, sink: &mut S) {
        sink.put(&key);
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

    fn write_key(key: Uuid, sink: &mut S) {
        sink.put(&key);
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
fn some() -> PendingRows<Text> {
    let mut pending_rows = PendingRows::new();
    pending_rows.rows_mut().push(customer(3));
    pending_rows.rows_mut().push(tag(9));
    pending_rows.rows_mut().extend([customer(1), customer(2)]);
    pending_rows
}

#[test]
fn rows_of_each_type_are_kept_apart_and_as_they_were_added() {
    let mut pending_rows = some();
    assert_eq!(
        pending_rows.get::<Customer>(),
        [customer(3), customer(1), customer(2)]
    );
    assert_eq!(pending_rows.get::<Tag>(), [tag(9)]);
    assert_eq!((pending_rows.len(), pending_rows.is_empty()), (4, false));
    assert_eq!(
        format!("{pending_rows:?}"),
        r#"{"customers": 3, "tags": 1}"#
    );
    let tables: Vec<_> = pending_rows
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
    pending_rows.clear();
    assert_eq!((pending_rows.len(), pending_rows.is_empty()), (0, true));
    assert_eq!(pending_rows.get::<Customer>(), []);
    assert!(pending_rows.tables().is_empty());
}

/// Inserts of a table.
fn inserts(table: usize, rows: Range<usize>) -> Chunk {
    Chunk {
        action: Action::Insert,
        table,
        number: 0,
        rows,
    }
}

#[test]
fn rows_are_written_in_the_order_of_their_keys() {
    let mut pending_rows = some();
    let mut text = Text::default();
    for chunk in pending_rows.plan(&EngineProfile::SQLITE).unwrap().chunks() {
        let end = pending_rows.write(&chunk, chunk.rows.clone(), &mut text);
        assert_eq!(end, chunk.rows.end);
    }
    text.rows.sort();
    assert_eq!(text.rows, ["1;n1;", "2;n2;", "3;n3;", "9;"]);

    let customers = inserts(0, 0..3);
    let mut text = Text::default();
    assert_eq!(pending_rows.write(&customers, 1..3, &mut text), 3);
    assert_eq!(text.rows, ["2;n2;", "3;n3;"]);
    assert_eq!(
        pending_rows.key_text(&customers, 2),
        "00000000-0000-0000-0000-000000000003"
    );
    // Planning anew takes in what was added since.
    pending_rows.rows_mut().push(customer(0));
    pending_rows.plan(&EngineProfile::SQLITE).unwrap();
    assert_eq!(pending_rows.write(&customers, 0..1, &mut text), 1);
    assert_eq!(text.rows.last().unwrap(), "0;n0;");
}

#[test]
fn a_sink_stops_before_a_row_or_after_it() {
    let mut pending_rows = some();
    pending_rows.plan(&EngineProfile::SQLITE).unwrap();
    let customers = inserts(0, 0..3);
    let mut full = Text {
        room: Some(2),
        ..Text::default()
    };
    assert_eq!(pending_rows.write(&customers, 0..3, &mut full), 2);
    assert_eq!(full.rows, ["1;n1;", "2;n2;"]);
    let mut refusing = Text {
        refused: Some("n2".to_owned()),
        ..Text::default()
    };
    assert_eq!(pending_rows.write(&customers, 0..3, &mut refusing), 1);
    assert_eq!(refusing.rows, ["1;n1;"]);
    assert_eq!(pending_rows.write(&customers, 1..1, &mut refusing), 1);
}

#[test]
fn rows_can_be_sent_in_the_order_of_the_stored_form() {
    let mut pending_rows = PendingRows::<Text>::new();
    pending_rows
        .rows_mut_as(|| Registration {
            compare: |left: &Uuid, right: &Uuid| right.cmp(left),
            entity: (),
        })
        .extend([customer(1), customer(3)]);
    // The comparison stays when it is not given again, and another is not asked for.
    pending_rows.rows_mut().push(customer(2));
    let _: &mut Vec<Customer> = pending_rows.rows_mut_as(|| panic!("it is known"));
    (5..=6)
        .for_each(|id| pending_rows.update(customer(id), Registration::in_key_order::<Customer>));
    (7..=8)
        .for_each(|id| pending_rows.delete(&customer(id), Registration::in_key_order::<Customer>));
    let mut text = Text::default();
    for chunk in pending_rows.plan(&EngineProfile::SQLITE).unwrap().chunks() {
        pending_rows.write(&chunk, chunk.rows.clone(), &mut text);
    }
    assert_eq!(
        text.rows,
        ["3;n3;", "2;n2;", "1;n1;", "6;n6;", "5;n5;", "8;", "7;"]
    );
}

#[test]
fn only_an_unordered_column_has_an_order_of_its_own() {
    use ordid_core::storage::column::{self, Unordered};

    fn sorted<C: Stores<Uuid>>() -> [u128; 3] {
        let compare = Registration::<Text, Uuid>::in_column::<Uuid, C>(()).compare;
        // SQL Server compares the last six bytes first.
        let mut keys = [3 << 48, (2 << 48) | 1, 1 << 100].map(Uuid::from_u128);
        keys.sort_by(compare);
        keys.map(|key| key.as_u128())
    }

    let by_key = [(2 << 48) | 1, 3 << 48, 1 << 100];
    assert_eq!(sorted::<column::Binary16>(), by_key);
    assert_eq!(sorted::<Unordered<column::Binary16>>(), by_key);
    assert_eq!(
        sorted::<Unordered<column::UniqueIdentifier>>(),
        [1 << 100, 3 << 48, (2 << 48) | 1]
    );
    assert_eq!(sorted::<column::UniqueIdentifier>(), by_key);
}

#[test]
fn what_is_updated_and_deleted_is_counted_and_written_for_itself() {
    let mut pending_rows = some();
    pending_rows.update(customer(5), Registration::in_key_order::<Customer>);
    pending_rows.delete(&tag(8), Registration::in_key_order::<Tag>);
    pending_rows.delete(&tag(7), Registration::in_key_order::<Tag>);
    assert_eq!(pending_rows.len(), 7);
    assert_eq!(pending_rows.get::<Customer>().len(), 3);
    let [customers, tags] = &pending_rows.tables()[..] else {
        panic!("two tables");
    };
    assert_eq!((customers.rows(), customers.updates()), (3, 1));
    assert_eq!((tags.rows(), tags.deletes()), (1, 2));
    let plan = pending_rows.plan(&EngineProfile::SQLITE).unwrap();
    let changes = plan.chunks().filter(|chunk| chunk.action != Action::Insert);
    let changes: Vec<_> = changes.collect();
    let [update, delete] = &changes[..] else {
        panic!("two statements: {changes:?}");
    };
    assert_eq!((update.action, update.table), (Action::Update, 0));
    assert_eq!((delete.action, delete.table), (Action::Delete, 1));
    let mut text = Text::default();
    pending_rows.write(update, 0..1, &mut text);
    pending_rows.write(delete, 0..2, &mut text);
    assert_eq!(text.rows, ["5;n5;", "7;", "8;"]);
    assert!(pending_rows.key_text(delete, 1).ends_with('8'));
    assert!(!plan.only_inserts());
    pending_rows.clear();
    assert!(pending_rows.is_empty());
}
