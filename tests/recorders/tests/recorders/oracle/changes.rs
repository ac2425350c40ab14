//! Updates, deletes, circles and deferred constraints.

use ordid::Assigned;
use ordid_oracle::EngineProfile;

use super::*;

pub(super) const RECORD: &str = "INSERT INTO ordid_flushes (id) VALUES (:1)";
pub(super) const UPDATE_CUSTOMERS: &str =
    r#"UPDATE "SHOP"."CUSTOMERS" SET "FULL_NAME" = :1, "CREDIT" = :2 WHERE "ID" = :3"#;
const DELETE_CUSTOMERS: &str = r#"DELETE FROM "SHOP"."CUSTOMERS" WHERE "ID" = :1"#;
const DELETE_ORDER: &str = r#"DELETE FROM "order" WHERE "id" = :1"#;

fn order(customer: CustomerId) -> Order {
    Order {
        id: OrderId::generate(),
        customer,
    }
}

#[test]
fn all_in_one_transaction_behind_the_row_that_records_it() {
    let recorder = Recorder::new("");
    let mut work = UnitOfWork::new();
    let new = work.add(customer(Some("new"), 1));
    let changed: Vec<_> = (0..2).map(|credit| customer(Some("Ä"), credit)).collect();
    let ids: Vec<_> = changed.iter().map(|it| it.id).collect();
    for customer in changed.into_iter().rev() {
        work.update(customer);
    }
    let (parent, child) = (customer(None, 0), order(ids[0]));
    work.delete(&parent);
    work.delete(&child);
    let flushed = work.flush(&recorder.connection).expect("flushed");
    assert!(work.is_empty());
    assert_eq!(
        (flushed.rows(), flushed.updated(), flushed.deleted()),
        (1, 2, 2)
    );
    assert_eq!(
        recorder.statements(),
        [
            RECORD,
            INTO_CUSTOMERS,
            UPDATE_CUSTOMERS,
            DELETE_ORDER,
            DELETE_CUSTOMERS,
            "COMMIT"
        ]
    );
    let rows = recorder.rows();
    assert_eq!(rows.len(), 6);
    assert_eq!(rows[0].len(), 1);
    assert_eq!(
        rows[0][0].len(),
        raw([0; 16]).len(),
        "16 bytes of the flush"
    );
    assert_eq!(rows[1][0], raw(new.to_raw().as_bytes()));
    for (row, (id, credit)) in rows[2..4].iter().zip(ids.iter().zip(0..)) {
        assert_eq!(row[0], format!("1:{}", hex("Ä".as_bytes())));
        assert_eq!(number(&row[1]), credit);
        assert_eq!(row[2], raw(id.to_raw().as_bytes()), "the key comes last");
    }
    assert_eq!(rows[4], [raw(child.id.to_raw().to_bytes_le())]);
    assert_eq!(rows[5], [raw(parent.id.to_raw().as_bytes())]);
}

/// Rows of the same columns share a statement, behind those of which all columns are updated.
#[test]
fn some_columns_are_updated() {
    let recorder = Recorder::new("");
    let mut work = UnitOfWork::new();
    for credit in 1..=3 {
        work.update_columns(customer(Some("not sent"), credit), Customer::credit);
    }
    work.update(customer(Some("sent"), 4));
    work.flush(&recorder.connection).expect("flushed");
    assert_eq!(
        recorder.statements(),
        [
            RECORD,
            UPDATE_CUSTOMERS,
            r#"UPDATE "SHOP"."CUSTOMERS" SET "CREDIT" = :1 WHERE "ID" = :2"#,
            "COMMIT"
        ]
    );
    let rows = recorder.rows();
    let columns: Vec<_> = rows.iter().map(Vec::len).collect();
    assert_eq!(columns, [1, 3, 2, 2, 2]);
    let credits: Vec<_> = rows[2..].iter().map(|row| number(&row[0])).collect();
    assert_eq!(credits, [1, 2, 3]);
}

/// Each row is asked for by itself, as an array is no list that a query could have.
#[test]
fn rows_that_may_be_there_are_asked_for() {
    let recorder = Recorder::new("");
    let mut work = UnitOfWork::new();
    let keys = [1, 2].map(|credit| work.upsert(customer(Some("new"), credit)));
    let flushed = work.flush(&recorder.connection).expect("flushed");
    let asked = r#"SELECT '0' FROM "SHOP"."CUSTOMERS" WHERE "ID" = :1"#;
    assert_eq!(
        recorder.statements(),
        [RECORD, asked, asked, INTO_CUSTOMERS, "COMMIT"]
    );
    let became = keys.map(|key| flushed.upserted::<Customer>(key));
    assert_eq!(became, [Some(Upserted::Inserted); 2]);
    let rows = recorder.rows();
    let key = |row: usize| raw(keys[row].to_raw().as_bytes());
    assert_eq!([&rows[1][0], &rows[2][0]], [&key(0), &key(1)]);
}

/// A column by which a row is found is bound twice if it is also written.
#[test]
fn columns_by_which_rows_are_found_are_written() {
    let asked = r#"SELECT '0' FROM "SHOP"."CUSTOMERS" WHERE "FULL_NAME" = :1"#;
    let recorder = Recorder::new(&format!("rows 0 {asked}"));
    let mut work = UnitOfWork::new();
    let by_name = OnConflict::of(Customer::full_name).set((Customer::full_name, Customer::credit));
    let keys = ["a", "b"].map(|name| work.upsert_with(customer(Some(name), 7), by_name.clone()));
    let flushed = work.flush(&recorder.connection).expect("flushed");
    let update =
        r#"UPDATE "SHOP"."CUSTOMERS" SET "FULL_NAME" = :1, "CREDIT" = :2 WHERE "FULL_NAME" = :3"#;
    assert_eq!(
        recorder.statements(),
        [RECORD, asked, asked, update, "COMMIT"]
    );
    let became = keys.map(|key| flushed.upserted::<Customer>(key));
    assert_eq!(became, [Some(Upserted::Updated); 2]);
    let rows = recorder.rows();
    for (row, name) in rows[3..].iter().zip(["a", "b"]) {
        let name = format!("1:{}", hex(name.as_bytes()));
        assert_eq!((&row[0], &row[2]), (&name, &name));
        assert_eq!((row.len(), number(&row[1])), (3, 7));
    }
}

/// The columns that the database fills are read by key behind the last statement, row by row, and known after the COMMIT.
#[test]
fn what_the_database_fills_is_read_back() {
    #[derive(OrderedKey)]
    #[ordid(table = "receipts")]
    struct Receipt {
        id: CustomerId,
        stars: i64,
        #[ordid(returning)]
        luck: Assigned<i64>,
        #[ordid(returning)]
        doubled: Assigned<Option<i32>>,
    }

    let asked = r#"SELECT '0', "luck", "doubled" FROM "receipts" WHERE "id" = :1"#;
    let recorder = Recorder::new(&format!("rows 0,7,14 {asked}"));
    let mut work = UnitOfWork::new();
    let filled = [1, 2].map(|stars| {
        let (luck, doubled) = (Assigned::new(), Assigned::new());
        let id = CustomerId::generate();
        work.add(Receipt {
            id,
            stars,
            luck: luck.clone(),
            doubled: doubled.clone(),
        });
        (luck, doubled)
    });
    work.flush(&recorder.connection).expect("flushed");
    for (luck, doubled) in filled {
        assert_eq!((luck.get(), doubled.get()), (Some(7), Some(Some(14))));
    }
    let insert = r#"INSERT INTO "receipts" ("id", "stars") VALUES (:1, :2)"#;
    assert_eq!(recorder.statements(), [insert, asked, asked, "COMMIT"]);
}

/// The version that a row was read with is the last value.
#[test]
fn a_row_with_a_version_is_found_by_it() {
    #[derive(OrderedKey)]
    #[ordid(table = "notes", columns)]
    struct Note {
        id: CustomerId,
        #[ordid(version)]
        version: i32,
        stars: i64,
    }

    let mut ids = [(); 3].map(|()| CustomerId::generate());
    ids.sort();
    let note = |number: usize| Note {
        id: ids[number],
        version: 7,
        stars: 5,
    };
    let recorder = Recorder::new("");
    let mut work = UnitOfWork::new();
    work.update(note(0));
    work.update_columns(note(1), Note::stars);
    work.delete(&note(2));
    work.flush(&recorder.connection).expect("flushed");
    assert_eq!(
        recorder.statements()[1..4],
        [
            r#"UPDATE "notes" SET "version" = :1, "stars" = :2 WHERE "id" = :3 AND "version" = :4"#,
            r#"UPDATE "notes" SET "version" = :1, "stars" = :2 WHERE "id" = :3 AND "version" = :4"#,
            r#"DELETE FROM "notes" WHERE "id" = :1 AND "version" = :2"#,
        ]
    );
    let rows = recorder.rows();
    for (row, id) in rows[1..3].iter().zip(ids) {
        let numbers = [0, 1, 3].map(|column| number(&row[column]));
        assert_eq!(numbers, [8, 5, 7]);
        assert_eq!(row[2], raw(id.to_raw().as_bytes()));
    }
    assert_eq!(rows[3][0], raw(ids[2].to_raw().as_bytes()));
    assert_eq!(number(&rows[3][1]), 7);

    let script = format!("missing {} 1\n", hex(ids[0].to_raw().as_bytes()));
    let recorder = Recorder::new(&script);
    let mut work = UnitOfWork::new();
    work.update(note(0));
    let error = work.flush(&recorder.connection).unwrap_err();
    assert!(error.is_stale() && !error.is_commit_unknown(), "{error}");
    assert_eq!(error.read_version(), Some("7"));
    let asked = r#"SELECT TO_CHAR("version") FROM "notes" WHERE "id" = :1"#;
    assert!(
        recorder.statements().iter().any(|it| it == asked),
        "{:?}",
        recorder.statements()
    );
}

#[test]
fn a_missing_row_is_named_and_nothing_is_written() {
    let mut keys: Vec<_> = (0..1_200).map(|_| CustomerId::generate()).collect();
    keys.sort();
    let script = [1_007, 1_100].map(|row: usize| {
        let key = hex(keys[row].to_raw().as_bytes());
        format!("missing {key} 1\n")
    });
    let recorder = Recorder::new(&script.concat());
    let mut work = UnitOfWork::new();
    for id in &keys {
        work.update(Customer {
            id: *id,
            ..customer(None, 0)
        });
    }
    let error = work.flush(&recorder.connection).unwrap_err();
    assert!(error.is_missing_row() && !error.is_transient());
    assert_eq!(error.action(), Some(ordid_oracle::Action::Update));
    assert_eq!((error.chunk(), error.rows()), (Some(1), Some(1_000..1_200)));
    assert_eq!(error.key(), Some(&*keys[1_007].to_string()));
    assert_eq!(
        error.to_string(),
        format!(
            "cannot update CUSTOMERS (rows 1000 to 1199), key {}, nothing was written: \
             there is no such row (and 1 more of these rows)",
            keys[1_007]
        )
    );
    assert_eq!(
        recorder.statements(),
        [RECORD, UPDATE_CUSTOMERS, UPDATE_CUSTOMERS, "ROLLBACK"]
    );
    assert_eq!(work.len(), 1_200, "nothing is lost");

    // Deletes likewise, in the user's transaction, which goes on.
    let mut work = UnitOfWork::new();
    let gone = Customer {
        id: keys[1_007],
        ..customer(None, 0)
    };
    work.delete(&gone);
    let error = work.flush_in(&recorder.connection).unwrap_err();
    assert!(error.is_missing_row());
    assert!(
        error
            .to_string()
            .starts_with("cannot delete from CUSTOMERS (row 0)")
    );
    assert_eq!(
        recorder.statements()[4..],
        [
            "SAVEPOINT ordid_flush",
            DELETE_CUSTOMERS,
            "ROLLBACK TO SAVEPOINT ordid_flush"
        ],
        "what the user commits needs no record"
    );
}

#[derive(OrderedKey)]
#[ordid(table = "ORDERS_SEEN", uncounted)]
struct SeenOrder {
    #[ordid(key)]
    id: OrderId,
}

/// The database says that it is done, and has left a row out, as a trigger or a view may make it.
#[test]
fn a_row_that_is_left_out_fails_the_flush() {
    let rows: Vec<_> = (0..3).map(|_| customer(None, 0)).collect();
    let left_out = rows[1].id;
    let seen = OrderId::generate();
    let recorder = Recorder::new(&format!(
        "missing {} 1\nmissing {} 1\n",
        hex(left_out.to_raw().as_bytes()),
        hex(&seen.to_raw().to_bytes_le())
    ));
    let mut work = UnitOfWork::new();
    for row in rows {
        work.add(row);
    }
    let error = work.flush(&recorder.connection).unwrap_err();
    assert_eq!(error.key(), Some(&*left_out.to_string()));
    assert!(error.to_string().contains("uncounted"), "{error}");
    assert_eq!(recorder.statements(), [INTO_CUSTOMERS, "ROLLBACK"]);
    assert_eq!(work.len(), 3, "nothing is lost");

    let mut work = UnitOfWork::new();
    work.add(SeenOrder { id: seen });
    work.flush(&recorder.connection).expect("it is not counted");
}

#[test]
fn a_key_that_is_no_key_is_told() {
    let twice = customer(None, 0);
    let key = twice.id;
    let recorder = Recorder::new(&format!("twice {} 1\n", hex(key.to_raw().as_bytes())));
    let mut work = UnitOfWork::new();
    work.update(twice);
    let error = work.flush(&recorder.connection).unwrap_err();
    assert!(!error.is_missing_row());
    assert!(
        error.to_string().ends_with(": 2 rows have this key"),
        "{error}"
    );
    assert_eq!(
        recorder.statements().last().map(String::as_str),
        Some("ROLLBACK")
    );
}

/// The database refuses a row of an update, before any count is looked at.
#[test]
fn a_refused_update_is_named() {
    let (refused, missing) = (customer(None, 0), customer(None, 0));
    let key = refused.id;
    let recorder = Recorder::new(&format!(
        "refuse {} 2290\nmissing {} 1\n",
        hex(key.to_raw().as_bytes()),
        hex(missing.id.to_raw().as_bytes())
    ));
    let mut work = UnitOfWork::new();
    work.update(missing);
    work.update(refused);
    let error = work.flush(&recorder.connection).unwrap_err();
    assert_eq!(error.key(), Some(&*key.to_string()));
    assert!(!error.is_missing_row());
    assert!(error.to_string().contains(": ORA-02290: "), "{error}");
}

#[test]
fn without_the_table_of_flushes_nothing_is_sent() {
    let recorder = Recorder::new("statement 942 INSERT INTO ordid_flushes\n");
    let mut work = UnitOfWork::new();
    work.add(customer(None, 0));
    work.delete(&order(CustomerId::generate()));
    let error = work.flush(&recorder.connection).unwrap_err();
    assert!(error.is_flushes_table_missing(), "{error}");
    let text = error.to_string();
    assert!(text.contains(ordid_oracle::flushes_table()), "{text}");
    assert!(
        text.ends_with(": OCI Error: ORA-00942: as the test asked for"),
        "{text}"
    );
    assert_eq!(recorder.statements(), [RECORD, "ROLLBACK"]);
}

#[test]
fn the_table_of_flushes_is_made_and_cleaned() {
    let recorder = Recorder::new("statement 955 CREATE TABLE ordid_flushes\n");
    ordid_oracle::create_flushes_table(&recorder.connection).unwrap();
    assert_eq!(recorder.statements(), [ordid_oracle::flushes_table()]);
    let recorder = Recorder::new("");
    ordid_oracle::remove_old_markers(&recorder.connection).unwrap();
    let delete = "DELETE FROM ordid_flushes WHERE id < :1 AND ROWNUM <= 1000";
    assert_eq!(recorder.statements(), [delete, "COMMIT"]);
}

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, oracle)]
struct NodeId(Uuid);

/// The key stands before the column that a circle leaves open.
#[derive(OrderedKey)]
#[ordid(table = "NODES", rename_all = "SCREAMING_SNAKE_CASE")]
struct Node {
    id: NodeId,
    #[ordid(parent)]
    up: Option<NodeId>,
}

fn circle() -> [Node; 2] {
    let mut ids: [NodeId; 2] = std::array::from_fn(|_| NodeId::generate());
    ids.sort();
    let [first, second] = ids;
    [(first, second), (second, first)].map(|(id, up)| Node { id, up: Some(up) })
}

/// Oracle binds by the place of a parameter in the text: the foreign key first, the key last.
#[test]
fn a_circle_is_set_and_unset_by_its_key() {
    let recorder = Recorder::new("");
    let mut work = UnitOfWork::new();
    let nodes = circle();
    let [first, second] = nodes
        .each_ref()
        .map(|node| raw(node.id.to_raw().as_bytes()));
    for node in &nodes {
        work.delete(node);
    }
    work.flush_in(&recorder.connection).expect("flushed");
    work.clear();
    for node in nodes {
        work.add(node);
    }
    let flushed = work.flush_in(&recorder.connection).expect("flushed");
    assert_eq!((flushed.rows(), flushed.tables[0].statements), (2, 2));
    const SAVEPOINT: &str = "SAVEPOINT ordid_flush";
    const DELETE: &str = r#"DELETE FROM "NODES" WHERE "ID" = :1"#;
    assert_eq!(
        recorder.statements(),
        [
            SAVEPOINT,
            r#"UPDATE "NODES" SET "UP" = NULL WHERE "ID" = :1"#,
            DELETE,
            SAVEPOINT,
            r#"INSERT INTO "NODES" ("ID", "UP") VALUES (:1, :2)"#,
            r#"UPDATE "NODES" SET "UP" = :1 WHERE "ID" = :2"#,
        ]
    );
    let rows = recorder.rows();
    let [unlinked, one, other] = [0, 1, 2].map(|row| rows[row][0].clone());
    assert!([&first, &second].contains(&&unlinked));
    // What referred to the other no longer does, so it is the parent of the other.
    let child = if unlinked == first { &second } else { &first };
    assert_eq!([&one, &other], [child, &unlinked]);
    let null = "23:NULL".to_owned();
    let [inserted, of_other] = [&rows[3], &rows[4]];
    assert_eq!(*inserted, [first.clone(), null]);
    assert_eq!(*of_other, [second.clone(), first.clone()]);
    assert_eq!(rows[5], [second, first], "its parent, then itself");
}

#[derive(OrderedKey)]
#[ordid(table = "PAIRS", rename_all = "SCREAMING_SNAKE_CASE")]
struct Pair {
    id: NodeId,
    #[ordid(parent = Pair, deferrable)]
    other: NodeId,
}

#[test]
fn what_is_declared_deferrable_is_deferred() {
    const DEFER: &str = "SET CONSTRAINTS ALL DEFERRED";
    const INTO_PAIRS: &str = r#"INSERT INTO "PAIRS" ("ID", "OTHER") VALUES (:1, :2)"#;
    let recorder = Recorder::new("");
    let mut work = UnitOfWork::new();
    for Node { id, up } in circle() {
        let other = up.expect("a circle");
        work.add(Pair { id, other });
    }
    work.flush_in(&recorder.connection).expect("flushed");
    recorder.connection.rollback().expect("rolled back");
    work.flush(&recorder.connection).expect("flushed");
    assert_eq!(
        recorder.statements(),
        [
            "SAVEPOINT ordid_flush",
            DEFER,
            INTO_PAIRS,
            "ROLLBACK",
            DEFER,
            INTO_PAIRS,
            "COMMIT"
        ]
    );
    // Where no row needs it, all is checked at once.
    let id = NodeId::generate();
    work.add(Pair { id, other: id });
    work.flush(&recorder.connection).expect("flushed");
    assert_eq!(recorder.statements()[7..], [INTO_PAIRS, "COMMIT"]);
}

#[derive(OrderedKey)]
#[ordid(schema = "SHOP", table = "BY_MONTH")]
struct Partitioned {
    #[ordid(key)]
    id: CustomerId,
}

/// A row of such a table would not be refused a second time, so only a marker row says whether a flush was committed. The
/// question names table, key and columns as text.
#[test]
fn a_table_that_is_not_protected_gets_a_marker_row() {
    const INTO: &str = r#"INSERT INTO "SHOP"."BY_MONTH" ("id") VALUES (:1)"#;
    let partitioned = || {
        let mut work = UnitOfWork::new();
        let id = CustomerId::generate();
        work.add(Partitioned { id });
        work
    };
    let asked = "SELECT TO_CHAR(0) FROM (SELECT MAX(o) KEEP (DENSE_RANK FIRST ORDER BY p) o, \
                 MAX(t) KEEP (DENSE_RANK FIRST ORDER BY p) t FROM (SELECT owner o, object_name t, 0 p \
                 FROM all_objects WHERE owner = 'SHOP' AND object_name = 'BY_MONTH' ";
    let recorder = Recorder::new(&format!("rows - {asked}\n"));
    for _ in 0..2 {
        let before = recorder.statements().len();
        partitioned().flush(&recorder.connection).expect("flushed");
        assert_eq!(recorder.statements()[before..], [RECORD, INTO, "COMMIT"]);
    }

    // A catalog that cannot be asked says nothing.
    let before = recorder.statements().len();
    recorder.script("statement 942 SELECT TO_CHAR(0) FROM (SELECT MAX(o) KEEP\n");
    partitioned().flush(&recorder.connection).expect("flushed");
    assert_eq!(recorder.statements()[before..], [INTO, "COMMIT"]);
}

/// So that neither side holds hundreds of megabytes at once.
#[test]
fn statements_end_at_so_many_bytes() {
    let mut work = UnitOfWork::new();
    let name = "a".repeat(200);
    for _ in 0..6_000 {
        work.add(customer(Some(&name), 0));
    }
    let recorder = Recorder::new("");
    let mut engine = EngineProfile::ORACLE;
    engine.max_bytes = 100_000;
    let flushed = work.with_engine(engine).flush(&recorder.connection);
    let flushed = flushed.expect("flushed");
    // 232 bytes a row: each chunk of a thousand rows goes by three statements.
    assert_eq!((flushed.rows(), flushed.tables[0].statements), (6_000, 18));
}
