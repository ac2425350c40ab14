//! Updates, deletes and circles over the wire: the text of the statements, their parameters, and what
//! becomes of what the server says that it changed. The peer is a recorder, no SQL engine: it says what it
//! was told to.

use super::{
    ASK, RECORD,
    entities::{
        Customer, CustomerId, Order, OrderId, Tree, TreeId, connect, orders, orders_of, readings,
        recorded, sent_in, texts,
    },
};
use ordid::{Assigned, KeyType, OrderedKey};
use ordid_core::layout::guid;
use ordid_recorders::tds::{Answer, BABELFISH, Column, Recorder, Request, Type};
use ordid_sql::Action;
use ordid_tiberius::{Entity, Flavour, OnConflict, Retry, UnitOfWork, Upserted};

const COUNT: &str = "; SELECT @@ROWCOUNT";

fn update(values: &str) -> String {
    format!(
        "UPDATE ordid_target SET [customer] = ordid_rows.[customer], [total] = ordid_rows.[total] \
         FROM [shop].[my]]orders] AS ordid_target JOIN (VALUES {values}) AS ordid_rows \
         ([id], [customer], [total]) ON ordid_target.[id] = ordid_rows.[id]{COUNT}"
    )
}

fn delete(keys: &str) -> String {
    let keys = match keys.contains(',') {
        true => format!("IN ({keys})"),
        false => format!("= {keys}"),
    };
    format!("DELETE FROM [shop].[my]]orders] WHERE [id] {keys}{COUNT}")
}

/// An order's key as it is stored, on the wire.
fn stored(key: OrderId) -> Vec<u8> {
    guid::swap(&guid::from_sql_server_sort_key(&key.to_raw().into_bytes())).to_vec()
}

#[tokio::test]
async fn changes_come_behind_inserts_and_the_flush_is_recorded() {
    let (recorder, mut client) = recorded().await;
    recorder.always("UPDATE", Answer::Done(2));
    recorder.always("DELETE", Answer::Done(1));
    let mut work = UnitOfWork::new();
    let customer = CustomerId::generate();
    let mut changed = [Order::of(customer, 1250), Order::of(customer, 990)];
    changed.reverse();
    let [last, first] = [changed[0].id, changed[1].id];
    assert!(first < last);
    let gone = Order::of(customer, 0);
    work.delete(&gone);
    for order in changed {
        work.update(order);
    }
    work.add(Customer {
        id: customer,
        name: "Ada".to_owned(),
        note: None,
    });
    assert_eq!(work.len(), 4);
    let flushed = work.flush(&mut client).await.unwrap();
    assert_eq!(
        (flushed.rows(), flushed.updated(), flushed.deleted()),
        (1, 2, 1)
    );
    assert_eq!(flushed.tables[1].statements, 2);
    assert!(work.is_empty());

    let log = recorder.take();
    let expected = [
        ASK,
        "BEGIN",
        RECORD,
        "INSERT INTO [customers] ([id], [name], [note]) VALUES (@P1, @P2, @P3); SELECT @@ROWCOUNT",
        &update("(@P1, @P2, @P3), (@P4, @P5, @P6)"),
        &delete("@P1"),
        "COMMIT",
    ];
    assert_eq!(texts(&log), expected);
    assert_eq!(sent_in(&log), [0, 0, 1, 1, 1, 1, 1]);

    // The record: a version 7 as bytes, in a `binary(16)`.
    let id = log[2].request.arguments()[0].value.clone().unwrap();
    let id = ordid::uuid::Uuid::from_slice(&id).unwrap();
    assert_eq!(id.get_version_num(), 7);
    let declared = log[2].request.declaration();
    assert_eq!(declared.as_deref(), Some("@P1 varbinary(8000)"));
    // Updates go in the order of the stored keys, whatever the order of adding.
    let rows = log[4].request.arguments();
    assert_eq!(rows[0].value, Some(stored(first)));
    assert_eq!(rows[3].value, Some(stored(last)));
    assert_eq!(
        rows[1].value.as_deref(),
        Some(&customer.to_raw().to_bytes_le()[..])
    );
    assert_eq!(rows[2].value.as_deref(), Some(&1250_i64.to_le_bytes()[..]));
    assert_eq!(
        log[4].request.declaration().as_deref(),
        Some(
            "@P1 uniqueidentifier,@P2 uniqueidentifier,@P3 bigint,@P4 uniqueidentifier,@P5 \
             uniqueidentifier,@P6 bigint"
        )
    );
    assert_eq!(
        log[5].request.arguments()[0].value,
        Some(stored(gone.id)),
        "the key alone"
    );
}

/// A plan says beforehand what the recorder then sees.
#[tokio::test]
async fn what_is_planned_is_sent() {
    let (recorder, mut client) = recorded().await;
    let customer = CustomerId::generate();
    let mut work = orders_of(customer, 1_500);
    for total in 0..800 {
        work.update(Order::of(customer, total));
    }
    for _ in 0..1_001 {
        work.delete(&Order::of(customer, 0));
    }
    let plan = work.plan().unwrap();
    let actions: Vec<_> = plan
        .tables
        .iter()
        .map(|table| (table.table, table.action, table.rows))
        .collect();
    assert_eq!(
        actions,
        [
            ("my]orders", Action::Insert, 1_500),
            ("my]orders", Action::Update, 800),
            ("my]orders", Action::Delete, 1_001),
        ]
    );
    assert_eq!((plan.rows(), plan.defers), (1_500, None));
    let planned = plan.tables.iter().flat_map(|table| &table.statements);
    let planned: Vec<_> = planned.collect();
    for statement in &planned {
        let rows = statement.rows.len();
        recorder.once(&format!("{}$", statement.sql), Answer::Done(rows as u64));
    }
    work.flush(&mut client).await.unwrap();
    let log = recorder.take();
    let sent: Vec<_> = log
        .iter()
        .map(|received| (received.request.text(), received.request.arguments().len()))
        .filter(|(text, parameters)| *parameters > 0 && text != RECORD)
        .collect();
    let texts: Vec<_> = planned.iter().map(|it| it.sql.to_string()).collect();
    assert_eq!(
        sent.iter().map(|it| it.0.clone()).collect::<Vec<_>>(),
        texts
    );
    // 2,098 parameters are 699 rows of three columns; a thousand keys are the most of one `IN`.
    let parameters: Vec<_> = sent.iter().map(|it| it.1).collect();
    assert_eq!(parameters, [2_097, 2_097, 306, 2_097, 303, 1_000, 1]);
    let rows: Vec<_> = planned.iter().map(|it| it.rows.clone()).collect();
    assert_eq!(
        rows,
        [
            0..699,
            699..1_398,
            1_398..1_500,
            0..699,
            699..800,
            0..1_000,
            1_000..1_001
        ]
    );
}

/// The server found one row less, in the midst of a chunk: nothing is written, and the key is told.
#[tokio::test]
async fn a_row_that_is_not_there_is_found_and_nothing_is_written() {
    for deletes in [false, true] {
        let (recorder, mut client) = recorded().await;
        let mut work = UnitOfWork::new();
        let customer = CustomerId::generate();
        let mut keys = Vec::new();
        for total in 0..3 {
            let order = Order::of(customer, total);
            keys.push(order.id);
            match deletes {
                true => work.delete(&order),
                false => work.update(order),
            }
        }
        let (whole, single, action) = match deletes {
            true => (delete("@P1, @P2, @P3"), delete("@P1"), Action::Delete),
            false => (
                update("(@P1, @P2, @P3), (@P4, @P5, @P6), (@P7, @P8, @P9)"),
                update("(@P1, @P2, @P3)"),
                Action::Update,
            ),
        };
        recorder.once(&format!("{whole}$"), Answer::Done(2));
        recorder.once(&format!("{single}$"), Answer::Done(1));
        recorder.once(&format!("{single}$"), Answer::Done(0));
        let error = work.flush(&mut client).await.unwrap_err();
        assert!(error.is_missing_row(), "{error}");
        assert!(!error.is_transient() && !error.is_connection_lost());
        assert_eq!(error.action(), Some(action));
        assert_eq!(error.table(), Some("my]orders"));
        assert_eq!((error.chunk(), error.rows()), (Some(0), Some(0..3)));
        assert_eq!(error.key(), Some(&keys[1].to_string()[..]));
        assert_eq!(error.code(), None);
        let cannot = if deletes { "delete from" } else { "update" };
        assert_eq!(
            error.to_string(),
            format!(
                "cannot {cannot} my]orders (rows 0 to 2), key {}, nothing was written: there \
                 is no such row",
                keys[1]
            )
        );
        let log = recorder.take();
        assert_eq!(
            texts(&log),
            [
                ASK, "BEGIN", RECORD, &whole, "ROLLBACK", "BEGIN", &single, &single, "ROLLBACK"
            ]
        );
        // Nothing is lost, and the next time all are there.
        assert_eq!(work.len(), 3);
        recorder.once(&format!("{whole}$"), Answer::Done(3));
        work.flush(&mut client).await.unwrap();
        assert_eq!(
            texts(&recorder.take()),
            [ASK, "BEGIN", RECORD, &whole, "COMMIT"]
        );
    }
}

/// More rows than keys: the key's column is not unique.
#[tokio::test]
async fn too_many_rows_are_refused() {
    let (recorder, mut client) = recorded().await;
    recorder.always("DELETE", Answer::Done(2));
    let mut work = UnitOfWork::new();
    work.delete(&Order::of(CustomerId::generate(), 1));
    let error = work.flush(&mut client).await.unwrap_err();
    assert!(!error.is_missing_row());
    assert!(
        error.to_string().ends_with(": 2 rows have this key"),
        "{error}"
    );
    assert!(!texts(&recorder.take()).contains(&"COMMIT".to_owned()));
}

#[tokio::test]
async fn some_columns_are_updated() {
    let (recorder, mut client) = recorded().await;
    recorder.always("UPDATE", Answer::Done(2));
    let mut work = UnitOfWork::new();
    let customer = CustomerId::generate();
    for total in [1250, 990] {
        work.update_columns(Order::of(customer, total), Order::total);
    }
    work.flush(&mut client).await.unwrap();
    let log = recorder.take();
    assert_eq!(
        texts(&log)[3],
        "UPDATE ordid_target SET [total] = ordid_rows.[total] FROM [shop].[my]]orders] AS ordid_target \
         JOIN (VALUES (@P1, @P2), (@P3, @P4)) AS ordid_rows ([id], [total]) ON ordid_target.[id] = \
         ordid_rows.[id]; SELECT @@ROWCOUNT"
    );
    assert_eq!(log[3].request.arguments().len(), 4);
}

/// The version that a row was read with is the last value of its row, and the server is asked for the one that it has.
#[tokio::test]
async fn a_row_with_a_version_is_found_by_it() {
    #[derive(OrderedKey)]
    #[ordid(table = "notes")]
    struct Note {
        id: CustomerId,
        #[ordid(version)]
        version: i64,
        stars: i32,
    }

    let note = || Note {
        id: CustomerId::generate(),
        version: 7,
        stars: 5,
    };
    let (recorder, mut client) = recorded().await;
    recorder.always("UPDATE", Answer::Done(2));
    recorder.always("DELETE", Answer::Done(2));
    let mut work = UnitOfWork::new();
    for note in [note(), note()] {
        work.update(note);
    }
    for note in [note(), note()] {
        work.delete(&note);
    }
    work.flush(&mut client).await.unwrap();
    let log = recorder.take();
    assert_eq!(
        texts(&log)[3..5],
        [
            "UPDATE ordid_target SET [version] = ordid_rows.[version], [stars] = ordid_rows.[stars] \
             FROM [notes] AS ordid_target JOIN (VALUES (@P1, @P2, @P3, @P4), (@P5, @P6, @P7, @P8)) \
             AS ordid_rows ([id], [version], [stars], ordid_version) ON ordid_target.[id] = ordid_rows.[id] \
             AND ordid_target.[version] = ordid_rows.ordid_version; SELECT @@ROWCOUNT",
            "DELETE ordid_target FROM [notes] AS ordid_target JOIN (VALUES (@P1, @P2), (@P3, @P4)) \
             AS ordid_rows ([id], ordid_version) ON ordid_target.[id] = ordid_rows.[id] \
             AND ordid_target.[version] = ordid_rows.ordid_version; SELECT @@ROWCOUNT",
        ]
    );
    assert_eq!(log[3].request.arguments().len(), 8);

    let (recorder, mut client) = recorded().await;
    recorder.always("UPDATE", Answer::Done(0));
    recorder.always("SELECT CONVERT", Answer::text("9"));
    let mut work = UnitOfWork::new();
    work.update(note());
    let error = work.flush(&mut client).await.unwrap_err();
    assert!(error.is_stale() && !error.is_missing_row(), "{error}");
    let versions = [error.read_version(), error.found_version()];
    assert_eq!(versions, [Some("7"), Some("9")], "{error}");
    let asked = "SELECT CONVERT(nvarchar(64), [version], 121) FROM [notes] WITH (READCOMMITTEDLOCK) WHERE [id] = @P1";
    assert!(texts(&recorder.take()).iter().any(|it| it == asked));
}

/// The server says which rows are there: those are updated, and the others inserted.
#[tokio::test]
async fn rows_that_may_be_there_are_asked_for() {
    let (recorder, mut client) = recorded().await;
    recorder.always("SELECT ordid_number", Answer::text("1"));
    recorder.always("INSERT INTO [shop]", Answer::Done(2));
    recorder.always("UPDATE", Answer::Done(1));
    let customer = CustomerId::generate();
    let mut orders = [7, 8, 9].map(|total| Order::of(customer, total));
    orders.sort_by_key(|it| it.id);
    let keys = [0, 1, 2].map(|row: usize| orders[row].id);
    let mut work = UnitOfWork::new();
    for order in orders {
        work.upsert_with(order, OnConflict::key().set(Order::total));
    }
    let flushed = work.flush(&mut client).await.unwrap();
    let became = keys.map(|key| flushed.upserted::<Order>(key).unwrap());
    assert_eq!(
        became,
        [Upserted::Inserted, Upserted::Updated, Upserted::Inserted]
    );
    let log = recorder.take();
    assert_eq!(
        texts(&log)[3..],
        [
            "SELECT ordid_number FROM (VALUES (@P1, '0'), (@P2, '1'), (@P3, '2')) AS ordid_rows ([id], ordid_number) \
             WHERE EXISTS (SELECT 1 FROM [shop].[my]]orders] AS ordid_target WITH (READCOMMITTEDLOCK) WHERE \
             ordid_target.[id] = ordid_rows.[id])",
            "INSERT INTO [shop].[my]]orders] ([id], [customer], [total]) VALUES (@P1, @P2, @P3), (@P4, @P5, @P6); \
             SELECT @@ROWCOUNT",
            "UPDATE ordid_target SET [total] = ordid_rows.[total] FROM [shop].[my]]orders] AS ordid_target JOIN \
             (VALUES (@P1, @P2)) AS ordid_rows ([id], [total]) ON ordid_target.[id] = ordid_rows.[id]; \
             SELECT @@ROWCOUNT",
            "COMMIT",
        ]
    );
    let updated = log[5].request.arguments();
    assert_eq!(updated[0].value, Some(stored(keys[1])));
}

/// The columns that the database fills are read by key behind the last statement, and known after the COMMIT.
#[tokio::test]
async fn what_the_database_fills_is_read_back() {
    #[derive(OrderedKey)]
    #[ordid(table = "receipts")]
    struct Receipt {
        id: CustomerId,
        stars: i32,
        #[ordid(returning)]
        luck: Assigned<i64>,
        #[ordid(returning)]
        remark: Assigned<Option<String>>,
    }

    let utf16 =
        |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(u16::to_le_bytes).collect() };
    let answer = |luck: [Option<i64>; 2]| {
        let columns = [
            Column::new("ordid_number", Type::varchar(1)),
            Column::new("luck", Type::int(8)),
            Column::new("remark", Type::nvarchar(40)),
        ];
        // In another order than that of the question.
        let row = |number: usize, remark| {
            let luck = luck[number].map(|it| it.to_le_bytes().to_vec());
            vec![Some(number.to_string().into_bytes()), luck, remark]
        };
        Answer::rows(columns, [row(1, Some(utf16("many"))), row(0, None)])
    };
    let asked = "SELECT ordid_number, [luck], [remark] FROM (VALUES (@P1, '0'), (@P2, '1')) AS ordid_rows \
                 ([id], ordid_number) JOIN [receipts] AS ordid_target ON ordid_target.[id] = ordid_rows.[id]";
    for luck in [[Some(7), Some(8)], [Some(7), None]] {
        let (recorder, mut client) = recorded().await;
        recorder.always("SELECT ordid_number", answer(luck));
        recorder.always("INSERT", Answer::Done(2));
        let mut filled = Vec::new();
        let mut work = UnitOfWork::new();
        for stars in [1, 2] {
            let (luck, remark) = (Assigned::new(), Assigned::new());
            filled.push((luck.clone(), remark.clone()));
            let id = CustomerId::generate();
            work.add(Receipt {
                id,
                stars,
                luck,
                remark,
            });
        }
        let outcome = work.flush(&mut client).await;
        let read: Vec<_> = filled.iter().map(|it| (it.0.get(), it.1.get())).collect();
        let log = texts(&recorder.take());
        let insert = "INSERT INTO [receipts] ([id], [stars]) VALUES (@P1, @P2), (@P3, @P4); SELECT @@ROWCOUNT";
        assert_eq!(log[1..4], ["BEGIN", insert, asked]);
        match luck[1] {
            Some(_) => {
                outcome.unwrap();
                let second = (Some(8), Some(Some("many".to_owned())));
                assert_eq!(read, [(Some(7), Some(None)), second]);
                assert_eq!(log[4..], ["COMMIT"]);
            }
            None => {
                let error = outcome.unwrap_err().to_string();
                assert!(error.contains("nothing was written"), "{error}");
                assert!(error.contains("an `Assigned<Option<..>>`"), "{error}");
                assert_eq!(read, [(None, None), (None, None)]);
                assert_eq!(log[4..], ["ROLLBACK"]);
            }
        }
    }
}

/// An index with `IGNORE_DUP_KEY` leaves out a row that is there already, with a warning and no error.
#[tokio::test]
async fn a_row_that_is_left_out_fails_the_flush() {
    #[derive(OrderedKey)]
    #[ordid(table = "seen", uncounted)]
    struct Seen {
        #[ordid(key)]
        id: CustomerId,
    }

    let (recorder, mut client) = recorded().await;
    recorder.always("INSERT INTO [customers]", Answer::Done(1));
    let mut work = UnitOfWork::new();
    for name in ["Ada", "Grace"] {
        work.add(Customer {
            id: CustomerId::generate(),
            name: name.to_owned(),
            note: None,
        });
    }
    let error = work.flush(&mut client).await.unwrap_err();
    assert!(error.is_missing_row() && !error.is_commit_unknown());
    assert!(error.to_string().contains("uncounted"), "{error}");
    assert!(!texts(&recorder.take()).contains(&"COMMIT".to_owned()));

    recorder.always("INSERT INTO [seen]", Answer::Done(0));
    let mut work = UnitOfWork::new();
    work.add(Seen {
        id: CustomerId::generate(),
    });
    work.flush(&mut client).await.unwrap();
}

/// A trigger's statements have counts and answers of their own, and `SET NOCOUNT ON` leaves out all
/// counts: what holds is the last answer, that to `@@ROWCOUNT`.
#[tokio::test]
async fn triggers_and_nocount_do_not_change_the_count() {
    let noisy = Answer::Several(vec![
        Answer::Done(7),
        Answer::int(42),
        Answer::Done(1),
        Answer::int(1),
    ]);
    let silent = Answer::Several(vec![Answer::Uncounted, Answer::int(1)]);
    for (answer, missing) in [
        (noisy, false),
        (silent, false),
        // The trigger changed a row, and the statement none.
        (
            Answer::Several(vec![Answer::Done(1), Answer::Done(0), Answer::int(0)]),
            true,
        ),
    ] {
        let (recorder, mut client) = recorded().await;
        recorder.always("UPDATE", answer.clone());
        let mut work = UnitOfWork::new();
        work.update(Order::of(CustomerId::generate(), 1));
        let outcome = work.flush(&mut client).await;
        assert_eq!(
            outcome.err().is_some_and(|error| error.is_missing_row()),
            missing,
            "{answer:?}"
        );
    }
}

/// A statement that fails does not end the batch: `@@ROWCOUNT` is answered all the same, behind the error.
#[tokio::test]
async fn an_error_is_not_taken_for_a_missing_row() {
    let recorder = Recorder::start().unwrap();
    let refused = Answer::failure(
        547,
        "The DELETE statement conflicted with the REFERENCE constraint \"fk\".",
    );
    recorder.always("DELETE", Answer::Several(vec![refused, Answer::int(0)]));
    let mut client = connect(&recorder).await;
    let mut work = UnitOfWork::new();
    let order = Order::of(CustomerId::generate(), 1);
    work.delete(&order);
    let error = work.flush(&mut client).await.unwrap_err();
    assert!(error.is_foreign_key_violation() && !error.is_missing_row());
    assert_eq!(error.code(), Some(547));
    assert_eq!(error.key(), Some(&order.id.to_string()[..]));
}

#[tokio::test]
async fn without_the_table_of_flushes_nothing_else_is_sent() {
    let (recorder, mut client) = recorded().await;
    recorder.once(
        "ordid_flushes",
        Answer::failure(208, "Invalid object name 'ordid_flushes'."),
    );
    let mut work = UnitOfWork::new();
    work.update(Order::of(CustomerId::generate(), 1));
    let error = work.flush(&mut client).await.unwrap_err();
    assert_eq!((error.code(), error.table()), (Some(208), None));
    assert!(error.is_flushes_table_missing(), "{error}");
    let text = error.to_string();
    assert!(text.contains(ordid_tiberius::flushes_table()), "{text}");
    assert_eq!(texts(&recorder.take()), [ASK, "BEGIN", RECORD, "ROLLBACK"]);
}

#[tokio::test]
async fn the_table_of_flushes_is_made_and_cleaned() {
    let (recorder, mut client) = recorded().await;
    // Another session was faster.
    let exists = "There is already an object named 'ordid_flushes' in the database.";
    recorder.once("CREATE TABLE", Answer::failure(2714, exists));
    ordid_tiberius::create_flushes_table(&mut client)
        .await
        .unwrap();
    let create = ordid_tiberius::flushes_table();
    assert_eq!(texts(&recorder.take()), [create, create]);
    recorder.once("DELETE", Answer::Done(3));
    assert_eq!(
        ordid_tiberius::remove_old_markers(&mut client)
            .await
            .unwrap(),
        3
    );
    let delete = "DELETE TOP (1000) FROM ordid_flushes WHERE id < @P1; SELECT @@ROWCOUNT";
    assert_eq!(texts(&recorder.take()), [ASK, "BEGIN", delete, "COMMIT"]);
    // There may be more of them.
    recorder.once("DELETE", Answer::Done(1_000));
    recorder.once("DELETE", Answer::Done(1));
    let removed = ordid_tiberius::remove_old_markers(&mut client).await;
    assert_eq!(removed.unwrap(), 1_001);
    let sent = recorder.take();
    let deletes = texts(&sent).into_iter().filter(|it| *it == delete).count();
    assert_eq!(deletes, 2);
}

/// In the user's transaction there is no commit to be in doubt of.
#[tokio::test]
async fn inside_a_transaction_nothing_is_recorded() {
    let (recorder, mut client) = recorded().await;
    recorder.always("DELETE", Answer::Done(1));
    let mut work = UnitOfWork::new();
    work.delete(&Order::of(CustomerId::generate(), 1));
    client.begin_transaction().await.unwrap();
    assert_eq!(work.flush_in(&mut client).await.unwrap().deleted(), 1);
    client.commit_transaction().await.unwrap();
    assert_eq!(
        texts(&recorder.take()),
        [
            "BEGIN",
            ASK,
            "SAVE TRANSACTION [ordid_flush]",
            &delete("@P1"),
            "COMMIT"
        ]
    );
}

/// Each attempt has the same record, so that a probe finds whichever was committed.
#[tokio::test]
async fn attempts_share_their_record() {
    let (recorder, mut client) = recorded().await;
    recorder.once("DELETE", Answer::fatal(1205, "Transaction was deadlocked"));
    recorder.always("DELETE", Answer::Done(1));
    let mut work = UnitOfWork::new();
    work.delete(&Order::of(CustomerId::generate(), 1));
    assert_eq!(work.flush(&mut client).await.unwrap().retries, 1);
    let log = recorder.take();
    let ids: Vec<_> = log
        .iter()
        .filter(|received| received.request.text() == RECORD)
        .map(|received| received.request.arguments()[0].value.clone())
        .collect();
    assert_eq!(ids.len(), 2);
    assert_eq!(ids[0], ids[1]);
    // The next flush is another one.
    work.delete(&Order::of(CustomerId::generate(), 1));
    work.flush(&mut client).await.unwrap();
    assert_ne!(recorder.take()[2].request.arguments()[0].value, ids[0]);
}

/// Two trees that are each other's parents: one is cut off before both go, the deepest of others first.
#[tokio::test]
async fn circles_are_fixed_up_and_unlinked() {
    const FIX_UP: &str = "UPDATE ordid_target SET [parent] = ordid_rows.[parent] FROM [trees] AS \
                          ordid_target JOIN (VALUES (@P1, @P2)) AS ordid_rows ([id], [parent]) ON \
                          ordid_target.[id] = ordid_rows.[id]; SELECT @@ROWCOUNT";
    const UNLINK: &str = "UPDATE [trees] SET [parent] = NULL WHERE [id] = @P1; SELECT @@ROWCOUNT";
    const INSERT: &str =
        "INSERT INTO [trees] ([id], [parent]) VALUES (@P1, @P2), (@P3, @P4); SELECT @@ROWCOUNT";
    const DELETE: &str = "DELETE FROM [trees] WHERE [id] IN (@P1, @P2); SELECT @@ROWCOUNT";

    let (recorder, mut client) = recorded().await;
    recorder.always("DELETE", Answer::Done(2));
    recorder.always("UPDATE", Answer::Done(1));
    let mut work = UnitOfWork::new();
    let circle = || {
        let [one, other] = [TreeId::generate(), TreeId::generate()];
        [(one, other), (other, one)].map(|(id, parent)| Tree {
            id,
            parent: Some(parent),
        })
    };
    for tree in circle() {
        work.add(tree);
    }
    let flushed = work.flush(&mut client).await.unwrap();
    assert_eq!((flushed.rows(), flushed.updated()), (2, 0));
    let log = recorder.take();
    assert_eq!(texts(&log), [ASK, "BEGIN", INSERT, FIX_UP, "COMMIT"]);
    let inserted = log[2].request.arguments();
    let fixed = log[3].request.arguments();
    let null = [&inserted[1], &inserted[3]]
        .into_iter()
        .position(|parent| parent.value.is_none())
        .expect("one is inserted with NULL");
    assert_eq!(fixed[0].value, inserted[2 * null].value, "its key");
    assert_eq!(fixed[1].value, inserted[2 * (1 - null)].value, "its parent");

    for tree in circle() {
        work.delete(&tree);
    }
    let flushed = work.flush(&mut client).await.unwrap();
    assert_eq!((flushed.deleted(), flushed.updated()), (2, 0));
    assert_eq!(
        texts(&recorder.take()),
        [ASK, "BEGIN", RECORD, UNLINK, DELETE, "COMMIT"]
    );
}

/// The rows that are new may go by bulk load, those that change never do.
#[tokio::test]
async fn a_load_and_changes_go_together() {
    let (recorder, mut client) = recorded().await;
    recorder.table("[shop].[my]]orders]", orders());
    recorder.always("DELETE", Answer::Done(1));
    let customer = CustomerId::generate();
    let mut work = orders_of(customer, 3_000);
    work.delete(&Order::of(customer, 1));
    let flushed = work.flush(&mut client).await.unwrap();
    let table = &flushed.tables[0];
    assert_eq!((table.bulk, table.deleted, table.statements), (3_000, 1, 2));
    let log = recorder.take();
    let texts = texts(&log);
    assert_eq!(texts[3..5], ["BEGIN", RECORD]);
    assert!(texts[6].starts_with("INSERT BULK"));
    assert!(matches!(log[7].request, Request::Bulk(_)));
    assert_eq!(texts[8..], [delete("@P1"), "COMMIT".to_owned()]);
}

/// What has no key, and what is done twice with one row, is told before anything is sent.
#[tokio::test]
async fn a_row_of_two_minds_is_not_sent() {
    let (recorder, mut client) = recorded().await;
    let mut work = UnitOfWork::new();
    let order = Order::of(CustomerId::generate(), 1);
    work.delete(&order);
    work.update(order);
    let error = work.flush(&mut client).await.unwrap_err();
    assert!(error.is_plan());
    assert!(recorder.take().is_empty());
}

#[tokio::test]
async fn babelfish_takes_the_same_statements() {
    let recorder = Recorder::start_as(BABELFISH).unwrap();
    recorder.always("@@ROWCOUNT", Answer::Done(1));
    let mut client = connect(&recorder).await;
    let mut work = UnitOfWork::for_babelfish();
    let [changed, gone] = [TreeId::generate(), TreeId::generate()];
    work.update(Tree {
        id: changed,
        parent: None,
    });
    work.delete(&Tree {
        id: gone,
        parent: None,
    });
    work.flush(&mut client).await.unwrap();
    let log = recorder.take();
    assert_eq!(
        texts(&log)[2..],
        [
            RECORD,
            "UPDATE ordid_target SET [parent] = ordid_rows.[parent] FROM [trees] AS ordid_target JOIN \
             (VALUES (@P1, @P2)) AS ordid_rows ([id], [parent]) ON ordid_target.[id] = ordid_rows.[id]; \
             SELECT @@ROWCOUNT",
            "DELETE FROM [trees] WHERE [id] = @P1; SELECT @@ROWCOUNT",
            "COMMIT",
        ]
    );
    // As they are, not permuted; NULL has its column's type.
    let updated = log[3].request.arguments();
    assert_eq!(
        updated[0].value.as_deref(),
        Some(&changed.to_raw().to_bytes_le()[..])
    );
    assert_eq!(updated[1].value, None);
    assert_eq!(
        log[3].request.declaration().as_deref(),
        Some("@P1 uniqueidentifier,@P2 uniqueidentifier")
    );
}

#[derive(OrderedKey)]
#[ordid(table = "amounts")]
struct Amount {
    #[ordid(key)]
    id: TreeId,
    amount: Option<tiberius::numeric::Decimal>,
}

/// Returns how the values of two rows are declared where they are inserted, and where they are updated.
async fn declared<D: Flavour>(mut work: UnitOfWork<D>, version: &str) -> [String; 2]
where
    Amount: Entity<D>,
{
    let amounts = || {
        let amounts = [Some(tiberius::numeric::Decimal::new(15, 28)), None];
        amounts.map(|amount| Amount {
            id: TreeId::generate(),
            amount,
        })
    };
    for amount in amounts() {
        work.add(amount);
    }
    for amount in amounts() {
        work.update(amount);
    }
    let recorder = Recorder::start_as(version).expect("a free port");
    recorder.always("UPDATE", Answer::Done(2));
    let mut client = connect(&recorder).await;
    work.flush(&mut client).await.expect("it takes all rows");
    let log = recorder.take();
    [&log[3], &log[4]].map(|sent| sent.request.declaration().expect("a call of sp_executesql"))
}

/// Beside a NULL of 18 digits before the point, SQL Server's `VALUES` would round 28 behind it.
#[tokio::test]
async fn a_decimal_that_is_null_takes_no_digits_from_the_others() {
    let declaration =
        |null| format!("@P1 uniqueidentifier,@P2 numeric(29,28),@P3 uniqueidentifier,@P4 {null}");
    let of_sql_server = declared(UnitOfWork::new(), ordid_recorders::tds::SQL_SERVER).await;
    assert_eq!(of_sql_server, [declaration("bit"), declaration("bit")]);
    // Babelfish refuses a NULL without a type, so NULL stands in the text.
    let of_babelfish = declared(UnitOfWork::for_babelfish(), BABELFISH).await;
    let declaration = "@P1 uniqueidentifier,@P2 numeric(29,28),@P3 uniqueidentifier";
    assert_eq!(of_babelfish, [declaration, declaration]);
}

/// One field of each type whose NULL tiberius sends without a type.
#[derive(OrderedKey)]
#[ordid(table = "notes")]
struct Note {
    #[ordid(key)]
    id: TreeId,
    text: Option<String>,
    bytes: Option<Vec<u8>>,
    amount: Option<tiberius::numeric::Decimal>,
    day: Option<chrono::NaiveDate>,
    number: Option<i32>,
}

impl Note {
    fn of(text: Option<&str>) -> Self {
        Self {
            id: TreeId::generate(),
            text: text.map(str::to_owned),
            bytes: None,
            amount: None,
            day: None,
            number: None,
        }
    }
}

#[tokio::test]
async fn babelfish_takes_a_null_of_each_type() {
    let recorder = Recorder::start_as(BABELFISH).unwrap();
    recorder.always("UPDATE", Answer::Done(2));
    let mut client = connect(&recorder).await;
    let mut work = UnitOfWork::for_babelfish();
    work.add(Note::of(None));
    for text in [None, Some("@P9 [")] {
        work.update(Note::of(text));
    }
    work.flush(&mut client).await.unwrap();
    let log = recorder.take();
    let (insert, update) = (&log[3].request, &log[4].request);
    assert_eq!(
        insert.text(),
        "INSERT INTO [notes] ([id], [text], [bytes], [amount], [day], [number]) \
         VALUES (@P1, NULL, NULL, NULL, NULL, @P2); SELECT @@ROWCOUNT"
    );
    assert_eq!(
        insert.declaration().as_deref(),
        Some("@P1 uniqueidentifier,@P2 int")
    );
    // A column of `VALUES` that is NULL in all rows would be of type `text`; elsewhere NULL takes the type of the others.
    let nulls = "CAST(NULL AS varbinary(max)), CAST(NULL AS numeric(38, 10)), CAST(NULL AS date)";
    let text = update.text();
    let values = text.split_once("(VALUES ").unwrap().1;
    let values = values.split_once(") AS ordid_rows").unwrap().0;
    let either = [
        format!("(@P1, NULL, {nulls}, @P2), (@P3, @P4, {nulls}, @P5)"),
        format!("(@P1, @P2, {nulls}, @P3), (@P4, NULL, {nulls}, @P5)"),
    ];
    assert!(either.iter().any(|it| it == values), "{text}");
    assert_eq!(update.arguments().len(), 5);
}

#[derive(OrderedKey)]
#[ordid(table = "times")]
struct Times {
    #[ordid(key)]
    id: TreeId,
    day: chrono::NaiveDate,
    date: time::Date,
    at: Option<time::OffsetDateTime>,
    amount: Option<tiberius::numeric::BigDecimal>,
}

/// tiberius would panic, or take the connection for lost.
#[tokio::test]
async fn a_value_that_the_server_does_not_have_is_an_error_of_its_row() {
    let (recorder, mut client) = recorded().await;
    let good = || Times {
        id: TreeId::generate(),
        day: chrono::NaiveDate::default(),
        date: time::Date::from_ordinal_date(9_999, 1).expect("a day"),
        at: None,
        amount: "1.5".parse().ok(),
    };
    let years = "the years 1 to 9999";
    let digits = "more digits than the 38";
    let long = |text: &str| {
        Some(
            text.parse::<tiberius::numeric::BigDecimal>()
                .expect("a number"),
        )
    };
    let early = time::Date::from_ordinal_date(0, 1).expect("a day");
    for (bad, words) in [
        (
            Times {
                day: chrono::NaiveDate::MIN,
                ..good()
            },
            years,
        ),
        (
            Times {
                day: chrono::NaiveDate::MAX,
                ..good()
            },
            years,
        ),
        (
            Times {
                date: early,
                ..good()
            },
            years,
        ),
        (
            Times {
                at: Some(early.midnight().assume_utc()),
                ..good()
            },
            years,
        ),
        (
            Times {
                amount: long("0.000000000000000000000000000000000000001"),
                ..good()
            },
            digits,
        ),
        (
            Times {
                amount: long("1e40"),
                ..good()
            },
            digits,
        ),
    ] {
        let key = bad.id.to_string();
        let mut work = UnitOfWork::new();
        work.add(good());
        work.add(bad);
        let error = work.flush(&mut client).await.unwrap_err();
        let text = error.to_string();
        assert!(text.contains(words), "{text}");
        assert_eq!(error.key(), Some(&*key), "{text}");
        assert_eq!(texts(&recorder.take()), [ASK, "BEGIN", "ROLLBACK"]);
    }
    let mut work = UnitOfWork::new();
    work.add(good());
    work.flush(&mut client).await.unwrap();
}

#[derive(OrderedKey)]
#[ordid(table = "odd]name")]
struct Odd {
    #[ordid(key)]
    id: TreeId,
}

/// Babelfish does not parse a doubled bracket.
#[tokio::test]
async fn a_bracket_in_a_name_is_refused_on_babelfish() {
    let recorder = Recorder::start_as(BABELFISH).unwrap();
    let mut client = connect(&recorder).await;
    let mut work = UnitOfWork::for_babelfish();
    work.add(Odd {
        id: TreeId::generate(),
    });
    let error = work.flush(&mut client).await.unwrap_err();
    assert!(error.is_plan(), "{error}");
    assert!(
        error
            .to_string()
            .contains("`odd]name`: Babelfish takes no `]` in a name, even a quoted one"),
        "{error}"
    );
    assert!(recorder.take().is_empty());
}

/// What another time may succeed is tried again, also of an update, and given up in the end.
#[tokio::test]
async fn a_busy_update_is_given_up_with_its_place() {
    let (recorder, mut client) = recorded().await;
    recorder.table("[readings]", readings());
    recorder.always(
        "UPDATE",
        Answer::failure(1222, "Lock request time out period exceeded."),
    );
    let delay = std::time::Duration::from_millis(1);
    let retry = Retry::DEFAULT.with_attempts(2).with_delays(delay, delay);
    let mut work = UnitOfWork::new().with_retry(retry);
    work.update(super::entities::Reading::new(1));
    let error = work.flush(&mut client).await.unwrap_err();
    assert!(error.is_transient());
    assert_eq!((error.retries(), error.table()), (1, Some("readings")));
    assert_eq!((error.action(), error.key()), (Some(Action::Update), None));
    let updates = texts(&recorder.take());
    let updates = updates.iter().filter(|text| text.starts_with("UPDATE"));
    assert_eq!(updates.count(), 2);
}
