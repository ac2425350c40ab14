//! A unit of work over the wire: what `ordid-tiberius` sends through the real tiberius, and what it
//! makes of the answers. The peer is a recorder, no SQL engine.

use super::{
    ASK, RECORD,
    entities::{
        Customer, CustomerId, Event, Order, OrderId, Tree, TreeId, connect, customers, orders,
        orders_of, readings, recorded, sent_in, texts,
    },
};
use std::sync::{Arc, Mutex};

use ordid::{KeyType, OrderedKey, uuid::Uuid};
use ordid_core::layout::guid;
use ordid_recorders::tds::{Answer, BABELFISH, Column, Recorder, Request, Type};
use ordid_tiberius::{NotBulk, UnitOfWork};

#[tokio::test]
async fn a_graph_goes_parents_first_in_one_transaction() {
    let (recorder, mut client) = recorded().await;
    let mut work = UnitOfWork::new();
    let customer = CustomerId::generate();
    let first = work.add(Order::of(customer, 1250));
    let second = work.add(Order::of(customer, 990));
    work.add(Customer {
        id: customer,
        name: "Ada".to_owned(),
        note: None,
    });
    let flushed = work.flush(&mut client).await.unwrap();
    assert!(work.is_empty());

    let tables: Vec<_> = flushed
        .tables
        .iter()
        .map(|table| (table.table, table.rows, table.bulk, table.statements))
        .collect();
    assert_eq!(tables, [("customers", 1, 0, 1), ("my]orders", 2, 0, 1)]);

    let log = recorder.take();
    assert_eq!(
        texts(&log),
        [
            ASK,
            "BEGIN",
            "INSERT INTO [customers] ([id], [name], [note]) VALUES (@P1, @P2, @P3); SELECT @@ROWCOUNT",
            "INSERT INTO [shop].[my]]orders] ([id], [customer], [total]) \
             VALUES (@P1, @P2, @P3), (@P4, @P5, @P6); SELECT @@ROWCOUNT",
            "COMMIT",
        ]
    );
    assert_eq!(sent_in(&log), [0, 0, 1, 1, 1]);

    // The parameters, to the byte: a key is a `uniqueidentifier` in the wire's order.
    let customers = log[2].request.arguments();
    let wire = CustomerId::to_raw(customer).to_bytes_le();
    assert_eq!(customers[0].raw, [&[0x24, 16, 16], &wire[..]].concat());
    assert_eq!(customers[1].value.as_deref(), Some(&b"A\0d\0a\0"[..]));
    assert_eq!(customers[2].value, None);
    assert_eq!(
        log[2].request.declaration().as_deref(),
        Some("@P1 uniqueidentifier,@P2 nvarchar(4000),@P3 nvarchar(4000)")
    );
    // A version 7, permuted: its bytes rise where the server looks first.
    let orders = log[3].request.arguments();
    for (order, argument) in [(first, &orders[0]), (second, &orders[3])] {
        let bytes = OrderId::to_raw(order).into_bytes();
        let permuted = guid::from_sql_server_sort_key(&bytes);
        assert_eq!(argument.value.as_deref(), Some(&guid::swap(&permuted)[..]));
        // Its time comes in the last six bytes on the wire.
        assert_eq!(argument.value.as_ref().unwrap()[10..], bytes[..6]);
    }
    assert_eq!(orders[1].value.as_deref(), Some(&wire[..]));
    assert_eq!(
        orders[2].value.as_deref(),
        Some(&1250_i64.to_le_bytes()[..])
    );
}

#[tokio::test]
async fn rows_are_sent_in_the_order_of_the_stored_keys() {
    let (recorder, mut client) = recorded().await;
    let mut work = UnitOfWork::new();
    let mut keys: Vec<_> = (0..500).map(|_| CustomerId::generate()).collect();
    // Any order of adding.
    keys.rotate_left(137);
    keys.swap(3, 77);
    for id in &keys {
        work.add(Customer {
            id: *id,
            name: String::new(),
            note: None,
        });
    }
    work.flush(&mut client).await.unwrap();
    let log = recorder.take();
    let sent: Vec<[u8; 16]> = log[2]
        .request
        .arguments()
        .chunks(3)
        .map(|row| row[0].value.as_deref().unwrap().try_into().unwrap())
        .collect();
    assert_eq!(sent.len(), 500);
    // SqlGuid.CompareTo, over the wire's bytes.
    let rank = |wire: &[u8; 16]| {
        [10, 11, 12, 13, 14, 15, 8, 9, 6, 7, 4, 5, 0, 1, 2, 3].map(|at: usize| wire[at])
    };
    assert!(sent.is_sorted_by(|left, right| rank(left) < rank(right)));
}

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, tiberius(sql_server = unordered(unique_identifier)))]
struct ScatteredId(Uuid);

#[derive(OrderedKey)]
#[ordid(table = "scattered")]
struct Scattered {
    #[ordid(key)]
    id: ScatteredId,
}

/// A version 7 as it is does not rise in SQL Server. Its rows are sent as they are stored all the same,
/// so that the hint holds and each load goes through the index once.
#[tokio::test]
async fn keys_without_order_are_sent_in_the_servers() {
    let (recorder, mut client) = recorded().await;
    recorder.table(
        "[scattered]",
        vec![Column::new("id", Type::uniqueidentifier())],
    );
    let mut work = UnitOfWork::new();
    // Of version 7: what the server compares first falls while the time rises.
    let key = |number: u128| {
        let raw = (number << 80) | (0x7 << 76) | (0x8 << 60) | (4_100 - number);
        ScatteredId::from_raw(Uuid::from_u128(raw)).expect("a version 7")
    };
    let mut keys: Vec<_> = (0..4_100).map(key).collect();
    assert!(keys.is_sorted());
    for id in &keys {
        work.add(Scattered { id: *id });
    }
    let chunks = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&chunks);
    work.observe(move |progress| seen.lock().unwrap().push((progress.table, progress.rows)));
    work.flush(&mut client).await.unwrap();
    let log = recorder.take();
    assert!(
        texts(&log)[5].ends_with("ORDER([id] ASC))"),
        "{}",
        texts(&log)[5]
    );
    let Request::Bulk(bulk) = &log[6].request else {
        panic!("no rows")
    };
    keys.sort_by_key(|key| guid::sql_server_sort_key(key.to_raw().as_bytes()));
    assert!(!keys.is_sorted());
    let sent: Vec<_> = bulk
        .rows
        .iter()
        .map(|row| row[0].clone().unwrap())
        .collect();
    let keys: Vec<_> = keys
        .iter()
        .map(|key| key.to_raw().to_bytes_le().to_vec())
        .collect();
    assert_eq!(sent, keys);
    // Each chunk is reported, also of a load.
    let chunks = chunks.lock().unwrap();
    assert_eq!(chunks[..4], [("scattered", 1_000); 4]);
    assert_eq!(chunks[4..], [("scattered", 100)]);
}

/// 2,098 parameters are 699 rows of three columns, and 1,000 rows are the most of one `VALUES`.
#[tokio::test]
async fn statements_keep_to_the_limits() {
    let (recorder, mut client) = recorded().await;
    let customer = CustomerId::generate();
    let mut work = orders_of(customer, 1_500);
    for _ in 0..2_100 {
        work.add(Event {
            id: TreeId::generate(),
        });
    }
    let flushed = work.flush(&mut client).await.unwrap();
    assert_eq!(flushed.rows(), 3_600);
    let log = recorder.take();
    let parameters: Vec<_> = log
        .iter()
        .map(|received| received.request.arguments().len())
        .filter(|parameters| *parameters > 0)
        .collect();
    // Tables that do not refer to each other go by name.
    assert_eq!(parameters, [1_000, 1_000, 100, 2_097, 2_097, 306]);
}

/// A statement ends at a megabyte of values, so that neither side holds hundreds of them at once. Text is UTF-16.
#[tokio::test]
async fn statements_end_at_so_many_bytes() {
    let (recorder, mut client) = recorded().await;
    let mut work = UnitOfWork::new();
    for _ in 0..5 {
        work.add(Customer {
            id: CustomerId::generate(),
            name: "a".repeat(300_000),
            note: None,
        });
    }
    let flushed = work.flush(&mut client).await.unwrap();
    assert_eq!((flushed.rows(), flushed.tables[0].statements), (5, 3));
    let log = recorder.take();
    let rows = log.iter().map(|it| it.request.arguments().len() / 3);
    assert_eq!(rows.filter(|rows| *rows > 0).collect::<Vec<_>>(), [2, 2, 1]);
}

#[tokio::test]
async fn a_large_table_is_loaded_in_the_order_of_its_key() {
    let (recorder, mut client) = recorded().await;
    recorder.table("[shop].[my]]orders]", orders());
    let mut work = UnitOfWork::new();
    let customer = CustomerId::generate();
    let mut keys: Vec<_> = (0..3_000)
        .map(|total| (OrderId::generate(), total))
        .collect();
    keys.reverse();
    for (id, total) in &keys {
        work.add(Order {
            id: *id,
            customer,
            total: *total,
        });
    }
    let flushed = work.flush(&mut client).await.unwrap();
    let table = &flushed.tables[0];
    assert_eq!(
        (table.rows, table.bulk, table.statements),
        (3_000, 3_000, 1)
    );

    let log = recorder.take();
    let left_out = "SELECT N'unknown' WHERE NOT EXISTS (SELECT 1 FROM sys.tables WHERE object_id = OBJECT_ID(N'[shop].[my]]orders]')) \
         UNION ALL SELECT N'trigger' FROM sys.triggers AS t WHERE t.parent_id = OBJECT_ID(N'[shop].[my]]orders]') \
         AND t.is_instead_of_trigger = 1 AND t.is_disabled = 0 AND EXISTS (SELECT 1 FROM sys.trigger_events AS e \
         WHERE e.object_id = t.object_id AND e.type = 1) \
         UNION ALL SELECT N'index' FROM sys.indexes WHERE object_id = OBJECT_ID(N'[shop].[my]]orders]') \
         AND ignore_dup_key = 1";
    let columns = "SELECT TOP 0 [id], [customer], [total] FROM [shop].[my]]orders]";
    assert_eq!(
        texts(&log),
        [
            ASK,
            // Both outside the transaction, since they may fail: to see whether rows may be left out, and whether they fit.
            left_out,
            columns,
            "BEGIN",
            // tiberius' own, for the types that it declares.
            columns,
            "INSERT BULK [shop].[my]]orders] ([id] uniqueidentifier, [customer] uniqueidentifier, \
             [total] bigint) WITH (CHECK_CONSTRAINTS, KEEP_NULLS, FIRE_TRIGGERS, ORDER([id] ASC))",
            "BULK",
            "COMMIT",
        ]
    );
    assert_eq!(sent_in(&log[..6]), [0, 0, 0, 0, 1, 1]);
    let Request::Bulk(bulk) = &log[6].request else {
        panic!("no rows")
    };
    assert_eq!(bulk.rows.len(), 3_000);
    // As the server compares them, from the wire's byte 10 on, they rise, and are the keys.
    keys.sort();
    for ((row, raw), (id, total)) in bulk.rows.iter().zip(&bulk.raw).zip(&keys) {
        let bytes = OrderId::to_raw(*id).into_bytes();
        let stored = row[0].as_deref().unwrap();
        assert_eq!(stored, guid::swap(&guid::from_sql_server_sort_key(&bytes)));
        let wire = CustomerId::to_raw(customer).to_bytes_le();
        let expected = [&[0xd1, 16], stored, &[16], &wire, &total.to_le_bytes()].concat();
        assert_eq!(*raw, expected);
    }
    assert!(keys.is_sorted());
}

#[tokio::test]
async fn a_table_that_refers_to_itself_gets_no_hint_where_parents_break_the_order() {
    let (recorder, mut client) = recorded().await;
    recorder.table(
        "[trees]",
        vec![
            Column::new("id", Type::uniqueidentifier()),
            Column::new("parent", Type::uniqueidentifier()),
        ],
    );
    for (parent_above, hint) in [
        (
            false,
            " WITH (CHECK_CONSTRAINTS, KEEP_NULLS, FIRE_TRIGGERS, ORDER([id] ASC))",
        ),
        (true, " WITH (CHECK_CONSTRAINTS, KEEP_NULLS, FIRE_TRIGGERS)"),
    ] {
        let mut work = UnitOfWork::new();
        let keys: Vec<_> = (0..4_100).map(|_| TreeId::generate()).collect();
        for (row, id) in keys.iter().enumerate() {
            let parent = (parent_above && row == 0).then_some(keys[4_099]);
            work.add(Tree { id: *id, parent });
        }
        let flushed = work.flush(&mut client).await.unwrap();
        assert_eq!(flushed.tables[0].bulk, 4_100);
        let log = recorder.take();
        assert!(texts(&log)[5].ends_with(hint), "{:?}", texts(&log)[5]);
        let Request::Bulk(bulk) = &log[6].request else {
            panic!("no rows")
        };
        let last = bulk.rows[4_099][1].is_some();
        assert_eq!(last, parent_above, "the child comes behind its parent");
    }
}

/// The answer to a load has no count, so that nothing would show that rows are missing. Statements are counted.
#[tokio::test]
async fn a_table_that_may_leave_rows_out_is_not_loaded() {
    for (found, reason) in [
        ("unknown", NotBulk::Unanswered),
        ("trigger", NotBulk::Trigger),
        ("index", NotBulk::IgnoresDuplicates),
    ] {
        let (recorder, mut client) = recorded().await;
        recorder.table("[shop].[my]]orders]", orders());
        recorder.once("ignore_dup_key = 1", Answer::text(found));
        let mut work = orders_of(CustomerId::generate(), 3_000);
        let flushed = work.flush(&mut client).await.unwrap();
        let table = &flushed.tables[0];
        assert_eq!(
            (table.bulk, table.statements, table.not_bulk),
            (0, 5, Some(reason))
        );
        assert!(
            texts(&recorder.take())
                .iter()
                .all(|sql| !sql.contains("BULK"))
        );
    }
}

/// Each of these may be told by the columns alone, or by a value.
#[tokio::test]
async fn what_is_not_its_columns_own_type_goes_by_statements() {
    let narrow = |ty| {
        let mut columns = orders();
        columns[2] = Column::new("total", ty);
        Answer::rows(columns, [])
    };
    let identity = {
        let mut columns = orders();
        columns[2] = Column::identity("total", Type::int(8));
        Answer::rows(columns, [])
    };
    for columns in [
        narrow(Type::int(4)),
        narrow(Type::decimal(18, 0)),
        narrow(Type::nvarchar(20)),
        identity,
        Answer::failure(229, "The SELECT permission was denied"),
    ] {
        let (recorder, mut client) = recorded().await;
        recorder.always("SELECT TOP 0", columns.clone());
        let customer = CustomerId::generate();
        let mut work = orders_of(customer, 3_000);
        let flushed = work.flush(&mut client).await.unwrap();
        let table = &flushed.tables[0];
        assert_eq!(
            (table.rows, table.bulk, table.statements),
            (3_000, 0, 5),
            "{columns:?}"
        );
        let reason = table.not_bulk.expect("a reason").to_string();
        assert!(
            match columns {
                Answer::Rows { .. } => reason.contains("column"),
                _ => reason.starts_with("the server did not say"),
            },
            "{reason}"
        );
    }

    // One text of 3,000 is longer than its column.
    let (recorder, mut client) = recorded().await;
    recorder.table("[customers]", customers());
    let mut work = UnitOfWork::new();
    for row in 0..3_000 {
        work.add(Customer {
            id: CustomerId::generate(),
            name: if row == 2_999 {
                "x".repeat(101)
            } else {
                "x".repeat(100)
            },
            note: None,
        });
    }
    let flushed = work.flush(&mut client).await.unwrap();
    assert_eq!(flushed.tables[0].bulk, 0);
    let reason = Some(ordid_tiberius::NotBulk::Value(Some("name")));
    assert_eq!(flushed.tables[0].not_bulk, reason);
}

#[tokio::test]
async fn values_of_all_types_are_loaded_as_they_are_bound() {
    let (recorder, mut client) = recorded().await;
    recorder.table("[readings]", readings());
    let mut work = UnitOfWork::new();
    for number in 0..2_000 {
        work.add(super::entities::Reading::new(
            u8::try_from(number % 250).unwrap(),
        ));
    }
    assert_eq!(work.flush(&mut client).await.unwrap().tables[0].bulk, 2_000);
    let log = recorder.take();
    let Request::Bulk(bulk) = &log[6].request else {
        panic!("no rows: {:?}", texts(&log))
    };
    let loaded = &bulk.rows[7];

    // The same rows by statements.
    let recorder = Recorder::start_as(ordid_recorders::tds::SQL_SERVER).unwrap();
    let mut client = connect(&recorder).await;
    let mut work = UnitOfWork::new();
    work.add(super::entities::Reading::new(7));
    work.flush(&mut client).await.unwrap();
    let log = recorder.take();
    let bound = log[2].request.values();
    assert_eq!(bound.len(), 18);
    // All but the key, which is another one, and the decimal, which a load widens to its column.
    for (column, (loaded, bound)) in loaded.iter().zip(&bound).enumerate().skip(1) {
        if column != 14 {
            assert_eq!(loaded, bound, "column {column}");
        }
    }
    // Sign, and the number: 7.5 at scale 1 is 75, at scale 4 it is 75,000.
    assert_eq!(bound[14].as_deref(), Some(&[1, 75, 0, 0, 0][..]));
    assert_eq!(loaded[14].as_ref().unwrap()[..5], [1, 0xf8, 0x24, 1, 0]);
}

#[tokio::test]
async fn in_the_users_transaction_a_flush_is_a_savepoint() {
    let (recorder, mut client) = recorded().await;
    recorder.table("[shop].[my]]orders]", orders());
    let mut work = orders_of(CustomerId::generate(), 3_000);
    client.begin_transaction().await.unwrap();
    let flushed = work.flush_in(&mut client).await.unwrap();
    assert_eq!((flushed.rows(), flushed.tables[0].bulk), (3_000, 0));
    assert_eq!(work.len(), 3_000);
    client.commit_transaction().await.unwrap();
    work.clear();
    let log = recorder.take();
    let texts = texts(&log);
    assert_eq!(texts[..3], ["BEGIN", ASK, "SAVE TRANSACTION [ordid_flush]"]);
    assert!(
        texts[3..8]
            .iter()
            .all(|text| text.starts_with("INSERT INTO [shop]."))
    );
    assert_eq!(texts[8..], ["COMMIT"]);
    assert_eq!(sent_in(&log)[1..], [1; 8]);
}

#[tokio::test]
async fn a_flush_and_an_open_transaction_do_not_mix() {
    let (recorder, mut client) = recorded().await;
    let mut work = UnitOfWork::new();
    work.add(Order::of(CustomerId::generate(), 1));
    let error = work.flush_in(&mut client).await.unwrap_err();
    assert!(error.is_connection_state());
    assert_eq!(
        error.to_string(),
        "no transaction is open on this client, nothing was sent: begin one, or use `flush`"
    );
    client.begin_transaction().await.unwrap();
    let error = work.flush(&mut client).await.unwrap_err();
    assert!(error.is_connection_state());
    assert_eq!(
        error.to_string(),
        "a transaction is open on this client, nothing was sent: flush inside it with `flush_in`, \
         or end it first"
    );
    assert_eq!(work.len(), 1);
    assert!(
        texts(&recorder.take())
            .iter()
            .all(|text| !text.contains("INSERT"))
    );
}

/// A COMMIT of SQL Server would end the inner transaction only.
#[tokio::test]
async fn a_session_whose_statements_open_transactions_is_refused() {
    let (recorder, mut client) = recorded().await;
    let mut work = UnitOfWork::new();
    work.add(Order::of(CustomerId::generate(), 1));
    let session = |transactions: i32| Answer::Rows {
        columns: vec![
            Column::new("", Type::int(4)),
            Column::new("", Type::nvarchar(300)),
        ],
        rows: vec![vec![
            Some(transactions.to_le_bytes().to_vec()),
            Some(
                "Microsoft"
                    .encode_utf16()
                    .flat_map(u16::to_le_bytes)
                    .collect(),
            ),
        ]],
    };
    for transactions in [-1, -2] {
        recorder.once("@@OPTIONS", session(transactions));
        let error = work.flush(&mut client).await.unwrap_err();
        assert!(error.is_connection_state(), "{error}");
        assert!(error.to_string().contains("SET IMPLICIT_TRANSACTIONS OFF"));
        assert_eq!(texts(&recorder.take()), [ASK]);
    }
    // Inside the user's transaction a savepoint is enough.
    recorder.once("@@OPTIONS", session(-1));
    let error = work.flush_in(&mut client).await.unwrap_err();
    assert!(
        error.to_string().contains("no transaction is open"),
        "{error}"
    );
    client.begin_transaction().await.unwrap();
    recorder.once("@@OPTIONS", session(-2));
    work.flush_in(&mut client).await.unwrap();
    client.commit_transaction().await.unwrap();
}

#[tokio::test]
async fn babelfish_is_a_flavour_of_its_own() {
    let recorder = Recorder::start_as(BABELFISH).unwrap();
    let mut client = connect(&recorder).await;
    assert!(ordid_tiberius::is_babelfish(&mut client).await.unwrap());
    let mut work = UnitOfWork::new();
    work.add(Order::of(CustomerId::generate(), 1));
    let error = work.flush(&mut client).await.unwrap_err();
    assert!(error.is_wrong_database());
    assert_eq!(
        error.to_string(),
        format!(
            "this unit of work is for SQL Server, nothing was sent: the server is `{BABELFISH}`, \
             which sorts uniqueidentifier in another order; use the UnitOfWork of its flavour, and \
             name a column for it in the key types"
        )
    );
    recorder.take();

    let mut work = UnitOfWork::for_babelfish();
    let mut keys: Vec<_> = (0..3_000).map(|_| TreeId::generate()).collect();
    keys.reverse();
    for id in &keys {
        work.add(Tree {
            id: *id,
            parent: None,
        });
    }
    work.flush(&mut client).await.unwrap();
    let log = recorder.take();
    assert_eq!(log.len(), 1 + 2 + 3, "{:?}", texts(&log));
    // As PostgreSQL compares a uuid: by the bytes of the value, which here is not permuted.
    let sent: Vec<Uuid> = log
        .iter()
        .flat_map(|received| received.request.arguments().chunks(2))
        .map(|row| Uuid::from_slice_le(row[0].value.as_deref().unwrap()).unwrap())
        .collect();
    keys.sort();
    let keys: Vec<Uuid> = keys.into_iter().map(TreeId::to_raw).collect();
    assert_eq!(sent, keys);
    assert!(keys.is_sorted());

    let (_recorder, mut client) = recorded().await;
    assert!(!ordid_tiberius::is_babelfish(&mut client).await.unwrap());
    work.add(Tree {
        id: TreeId::generate(),
        parent: None,
    });
    let error = work.flush(&mut client).await.unwrap_err();
    assert!(error.is_wrong_database());
}

#[derive(OrderedKey)]
#[ordid(schema = "it's", table = "by]month")]
struct Partitioned {
    #[ordid(key)]
    id: OrderId,
    total: i64,
}

fn partitioned() -> UnitOfWork {
    let mut work = UnitOfWork::new();
    work.add(Partitioned {
        id: OrderId::generate(),
        total: 1,
    });
    work
}

const INTO_PARTITIONED: &str =
    "INSERT INTO [it's].[by]]month] ([id], [total]) VALUES (@P1, @P2); SELECT @@ROWCOUNT";

/// A row of such a table would not be refused a second time, so only a marker row says whether a flush was committed. No
/// answer says that the table is protected, so each flush asks again.
#[tokio::test]
async fn a_table_that_is_not_protected_gets_a_marker_row() {
    let (recorder, mut client) = recorded().await;
    recorder.always("FROM sys.indexes AS i", Answer::texts::<&str>([]));
    for _ in 0..2 {
        partitioned().flush(&mut client).await.unwrap();
        let sent = [ASK, "BEGIN", RECORD, INTO_PARTITIONED, "COMMIT"];
        assert_eq!(texts(&recorder.take()), sent);
    }

    recorder.once(
        "ordid_flushes",
        Answer::failure(208, "Invalid object name 'ordid_flushes'."),
    );
    let error = partitioned().flush(&mut client).await.unwrap_err();
    assert!(error.is_flushes_table_missing(), "{error}");
}

/// A user who may not read the catalog flushes all the same.
#[tokio::test]
async fn a_catalog_that_cannot_be_asked_says_nothing() {
    let (recorder, mut client) = recorded().await;
    recorder.always(
        "FROM sys.indexes AS i",
        Answer::failure(229, "The SELECT permission was denied"),
    );
    partitioned().flush(&mut client).await.unwrap();
    let sent = [ASK, "BEGIN", INTO_PARTITIONED, "COMMIT"];
    assert_eq!(texts(&recorder.take()), sent);
}

/// The question is a transaction of its own. A table that is protected is asked about once.
#[tokio::test]
async fn the_catalog_is_asked_in_a_transaction_of_its_own() {
    #[derive(OrderedKey)]
    #[ordid(table = "asked once")]
    struct AskedOnce {
        #[ordid(key)]
        id: OrderId,
    }

    let (recorder, mut client) = recorded().await;
    recorder.shows_catalog();
    let mut flush = async || {
        let mut work = UnitOfWork::new();
        work.add(AskedOnce {
            id: OrderId::generate(),
        });
        work.flush(&mut client).await.unwrap();
        recorder.take()
    };
    let log = flush().await;
    let question = "SELECT CONVERT(nvarchar(64), 0, 121) FROM sys.indexes AS i \
                    WHERE i.object_id = OBJECT_ID(N'[asked once]') AND i.is_unique = 1 AND i.is_disabled = 0 \
                    AND i.is_hypothetical = 0 AND EXISTS (SELECT 1 FROM sys.index_columns AS x \
                    LEFT JOIN sys.columns AS c ON c.object_id = x.object_id AND c.column_id = x.column_id \
                    WHERE x.object_id = i.object_id AND x.index_id = i.index_id AND x.key_ordinal > 0 \
                    AND x.is_included_column = 0) AND NOT EXISTS (SELECT 1 FROM sys.index_columns AS x \
                    LEFT JOIN sys.columns AS c ON c.object_id = x.object_id AND c.column_id = x.column_id \
                    WHERE x.object_id = i.object_id AND x.index_id = i.index_id AND x.key_ordinal > 0 \
                    AND x.is_included_column = 0 AND (c.column_id IS NULL OR c.name NOT IN (N'id') \
                    OR (c.is_nullable = 1 AND c.name NOT IN (N'id')))) AND i.has_filter = 0 \
                    AND i.ignore_dup_key = 0 AND NOT EXISTS (SELECT 1 FROM sys.triggers AS t \
                    WHERE t.parent_id = i.object_id AND t.is_instead_of_trigger = 1 AND t.is_disabled = 0 \
                    AND EXISTS (SELECT 1 FROM sys.trigger_events AS e WHERE e.object_id = t.object_id AND e.type = 1))";
    let insert = "INSERT INTO [asked once] ([id]) VALUES (@P1); SELECT @@ROWCOUNT";
    let sent = [
        ASK, "BEGIN", question, "ROLLBACK", "BEGIN", insert, "COMMIT",
    ];
    assert_eq!(texts(&log), sent);
    assert_eq!(sent_in(&log), [0, 0, 1, 1, 0, 2, 2]);
    assert_eq!(texts(&flush().await), [ASK, "BEGIN", insert, "COMMIT"]);
}

/// Their names stand in the question as text.
#[tokio::test]
async fn the_catalog_is_asked_about_table_key_and_columns() {
    for part in [
        "OBJECT_ID(N'[it''s].[by]]month]') AND i.is_unique = 1 ",
        "c.name NOT IN (N'id', N'total') OR (c.is_nullable = 1 AND c.name NOT IN (N'id'))",
    ] {
        let (recorder, mut client) = recorded().await;
        recorder.always(part, Answer::texts::<&str>([]));
        partitioned().flush(&mut client).await.unwrap();
        assert_eq!(texts(&recorder.take())[2], RECORD, "{part}");
    }
}

#[tokio::test]
async fn babelfish_is_asked_in_the_same_way() {
    #[derive(OrderedKey)]
    #[ordid(table = "leaves")]
    struct Leaf {
        #[ordid(key)]
        id: TreeId,
    }

    let recorder = Recorder::start_as(BABELFISH).unwrap();
    let mut client = connect(&recorder).await;
    let question = "c.name NOT IN (N'id')))) AND i.is_padded = 0 AND NOT EXISTS (SELECT 1 FROM sys.triggers AS t \
                    WHERE t.parent_id = i.object_id AND t.is_instead_of_trigger = 1 AND t.is_disabled = 0)";
    recorder.always(question, Answer::texts::<&str>([]));
    let mut work = UnitOfWork::for_babelfish();
    work.add(Leaf {
        id: TreeId::generate(),
    });
    work.flush(&mut client).await.unwrap();
    assert_eq!(texts(&recorder.take())[2], RECORD);
}
