//! Followers of tables: what a real tiberius sends for a call, and what becomes of the answers. The peer is a recorder,
//! no SQL engine: which rows there are is what the test says.

use std::time::{Duration, SystemTime};

use super::entities::{Customer, CustomerId, Order, OrderId, Tcp, Tree, TreeId, connect, orders};
use ordid::{
    KeyType, Scheme as _,
    clock::Timestamp,
    storage::{Stores as _, dialect::Babelfish},
    uuid::Uuid,
};
use ordid_recorders::tds::{Answer, BABELFISH, Column, Recorder, SQL_SERVER, Type};
use ordid_sql::table_driver::TableDriver as _;
use ordid_tiberius::{Follower, Over, Position, Stored, TiberiusDriver, column};
use tiberius::{FromSql, Row, ToSql, error::Error};

const MINUTE: Duration = Duration::from_secs(60);

fn null() -> Error {
    Error::Conversion("NULL".into())
}

impl TryFrom<&Row> for Order {
    type Error = Error;

    fn try_from(row: &Row) -> tiberius::Result<Self> {
        Ok(Self {
            id: row.try_get("id")?.ok_or_else(null)?,
            customer: row.try_get("customer")?.ok_or_else(null)?,
            total: row.try_get("total")?.ok_or_else(null)?,
        })
    }
}

impl TryFrom<&Row> for Customer {
    type Error = Error;

    fn try_from(row: &Row) -> tiberius::Result<Self> {
        let text = |column| Ok::<_, Error>(row.try_get::<&str, _>(column)?.map(str::to_owned));
        Ok(Self {
            id: row.try_get("id")?.ok_or_else(null)?,
            name: text("name")?.ok_or_else(null)?,
            note: text("note")?,
        })
    }
}

/// As Babelfish stores its keys.
impl TryFrom<&Row> for Tree {
    type Error = Error;

    fn try_from(row: &Row) -> tiberius::Result<Self> {
        let key = |column| {
            let key: Option<Stored<TreeId, column::BabelfishUniqueIdentifier>> =
                row.try_get(column)?;
            Ok::<_, Error>(key.map(Stored::into_key))
        };
        Ok(Self {
            id: key("id")?.ok_or_else(null)?,
            parent: key("parent")?,
        })
    }
}

/// The bytes of a `uniqueidentifier` on the wire.
fn wire(key: &dyn ToSql) -> Vec<u8> {
    match key.to_sql() {
        tiberius::ColumnData::Guid(Some(value)) => value.to_bytes_le().to_vec(),
        other => panic!("no uniqueidentifier: {other:?}"),
    }
}

/// The key of a `uniqueidentifier` on the wire.
fn key<K: for<'a> FromSql<'a>>(wire: &[u8]) -> K {
    let value = Uuid::from_slice_le(wire).expect("16 bytes");
    let data = tiberius::ColumnData::Guid(Some(value));
    let data: &'static _ = Box::leak(Box::new(data));
    K::from_sql(data).expect("a key").expect("no NULL")
}

fn row_of(order: &Order) -> Vec<Option<Vec<u8>>> {
    let total = order.total.to_le_bytes().to_vec();
    vec![
        Some(wire(&order.id)),
        Some(wire(&order.customer)),
        Some(total),
    ]
}

/// Returns the answer of a server of this version to a call.
fn answer(version: &str, answer: Answer) -> Answer {
    let version = version
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect::<Vec<u8>>();
    let column = Column::new("", Type::nvarchar(300));
    Answer::Several(vec![Answer::rows([column], [vec![Some(version)]]), answer])
}

async fn recorded(version: &str) -> (Recorder, Tcp) {
    let recorder = Recorder::start_as(version).expect("a port for the recorder");
    let client = connect(&recorder).await;
    (recorder, client)
}

fn minutes_ago(minutes: u32) -> Timestamp {
    Timestamp::try_from(SystemTime::now() - MINUTE * minutes).expect("a time")
}

#[tokio::test]
async fn a_call_is_one_query_for_the_rows_between_the_position_and_the_bound() {
    let (recorder, mut client) = recorded(SQL_SERVER).await;
    let sold: Vec<Order> = [3_u32, 2]
        .into_iter()
        .map(|minutes| Order {
            id: OrderId::generate_at(minutes_ago(minutes)).unwrap(),
            ..Order::of(CustomerId::generate(), minutes.into())
        })
        .collect();
    let follower = Follower::<Order>::settled_after(MINUTE);

    let rows = Answer::rows(orders(), sold.iter().map(row_of));
    recorder.once("SELECT TOP", answer(SQL_SERVER, rows));
    let before = minutes_ago(1);
    let batch = follower
        .next(&mut client, &Position::START, 2)
        .await
        .unwrap();
    let after = minutes_ago(1);
    let ids = |rows: &[Order]| rows.iter().map(|it| (it.id, it.total)).collect::<Vec<_>>();
    assert_eq!(ids(&batch.rows), ids(&sold));
    assert!(!batch.is_complete);
    let log = recorder.take();
    assert_eq!(log.len(), 1);
    assert_eq!(
        log[0].request.text(),
        "SELECT @@VERSION; SELECT TOP (2) [id], [customer], [total] FROM [shop].[my]]orders] WITH \
         (READCOMMITTEDLOCK) WHERE [id] < @P1 ORDER BY [id]"
    );
    let below = |bound: &[u8]| {
        let bound = key::<OrderId>(bound).to_raw().timestamp().unwrap();
        assert!(before.as_unix_millis() <= bound.as_unix_millis());
        bound.as_unix_millis()
    };
    let [Some(bound)] = &log[0].request.values()[..] else {
        panic!("one parameter: {:?}", log[0]);
    };
    assert!(below(bound) <= after.as_unix_millis());

    // The position goes through its text.
    let position: Position<OrderId> = batch.position.to_string().parse().unwrap();
    let none = Answer::rows(orders(), []);
    recorder.once("SELECT TOP", answer(SQL_SERVER, none));
    let batch = follower.next(&mut client, &position, 2).await.unwrap();
    assert_eq!((batch.rows.len(), batch.is_complete), (0, true));
    assert_eq!(batch.position, position);
    let log = recorder.take();
    assert_eq!(log.len(), 1);
    assert_eq!(
        log[0].request.text(),
        "SELECT @@VERSION; SELECT TOP (2) [id], [customer], [total] FROM [shop].[my]]orders] WITH \
         (READCOMMITTEDLOCK) WHERE [id] > @P1 AND [id] < @P2 ORDER BY [id]"
    );
    let [Some(above), Some(bound)] = &log[0].request.values()[..] else {
        panic!("two parameters: {:?}", log[0]);
    };
    assert_eq!(*above, wire(&sold[1].id));
    below(bound);
}

/// `now` asks nothing: the bound is by the clock of the program.
#[tokio::test]
async fn a_new_reader_begins_before_the_bound() {
    let (recorder, mut client) = recorded(SQL_SERVER).await;
    let follower = Follower::<Customer>::settled_after(MINUTE);
    let position = follower.now(&mut client).await.unwrap().to_string();
    assert!(recorder.take().is_empty());
    let key: Uuid = position.strip_prefix("above ").unwrap().parse().unwrap();
    let time = <CustomerId as KeyType>::Scheme::timestamp(&key).unwrap();
    assert!(time < minutes_ago(1), "{position}");
    assert!(minutes_ago(2) < time, "{position}");
}

/// The bound divides old keys from new ones as SQL Server compares them, which is from their last bytes on.
#[tokio::test]
async fn the_bound_is_one_in_the_order_of_the_server() {
    let (recorder, mut client) = recorded(SQL_SERVER).await;
    let follower = Follower::<Customer>::settled_after(MINUTE);
    let none = Answer::rows(super::entities::customers(), []);
    recorder.once("SELECT TOP", answer(SQL_SERVER, none));
    let batch = follower
        .next(&mut client, &Position::START, 1)
        .await
        .unwrap();
    assert!(batch.rows.is_empty());
    let values = recorder.take()[0].request.values();
    let bound: CustomerId = key(values[0].as_deref().unwrap());
    let time = <CustomerId as KeyType>::Scheme::timestamp(&bound.to_raw()).unwrap();
    let sorted = |key: CustomerId| column::UniqueIdentifier::sort_key(key.to_raw());
    let mut lower_as_bytes = 0;
    for _ in 0..200 {
        let at = |millis: u64| {
            let time = Timestamp::from_unix_millis(millis).unwrap();
            CustomerId::generate_at(time).unwrap()
        };
        let (older, newer) = (at(time.as_unix_millis() - 1), at(time.as_unix_millis()));
        assert!(sorted(older) < sorted(bound));
        assert!(sorted(bound) <= sorted(newer));
        lower_as_bytes += usize::from(older.to_raw().as_bytes() < bound.to_raw().as_bytes());
    }
    assert!(lower_as_bytes < 200, "the order of bytes is another");
}

#[tokio::test]
async fn babelfish_is_asked_without_a_hint_and_in_its_order() {
    let (recorder, mut client) = recorded(BABELFISH).await;
    let tree = TreeId::generate_at(minutes_ago(2)).unwrap();
    let columns = ["id", "parent"].map(|it| Column::new(it, Type::uniqueidentifier()));
    let row = vec![Some(tree.to_raw().to_bytes_le().to_vec()), None];
    let rows = Answer::rows(columns, [row]);
    recorder.once("SELECT TOP", answer(BABELFISH, rows));
    let follower = Follower::<Tree, Babelfish>::settled_after(MINUTE);
    let batch = follower
        .next(&mut client, &Position::START, 7)
        .await
        .unwrap();
    assert_eq!(batch.rows[0].id, tree);
    assert!(batch.is_complete && batch.rows[0].parent.is_none());
    let log = recorder.take();
    assert_eq!(
        log[0].request.text(),
        "SELECT @@VERSION; SELECT TOP (7) [id], [parent] FROM [trees] WHERE [id] < @P1 ORDER BY [id]"
    );
    let values = log[0].request.values();
    let bound = Uuid::from_slice_le(values[0].as_deref().unwrap()).unwrap();
    assert!(tree.to_raw() < bound, "as its value, not permuted");
    assert!(bound.timestamp().unwrap() <= minutes_ago(1));
}

/// Rows of the other flavour are in another order, and the position would pass some over.
#[tokio::test]
async fn the_other_flavour_of_server_is_refused_with_its_rows() {
    let columns = || ["id", "parent"].map(|it| Column::new(it, Type::uniqueidentifier()));
    let rows = Answer::rows(columns(), [vec![Some(vec![1; 16]), None]]);

    let (recorder, mut client) = recorded(BABELFISH).await;
    recorder.once("SELECT TOP", answer(BABELFISH, rows.clone()));
    let follower = Follower::<Tree>::settled_after(MINUTE);
    let error = follower.next(&mut client, &Position::START, 1).await;
    let error = error.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "follower of [trees]: this follower is for SQL Server, and the server is `{BABELFISH}`, which sorts \
             uniqueidentifier in another order: name the server's flavour, as in `Follower<Order, Babelfish>`"
        )
    );
    assert!(!error.is_transient() && !error.is_connection_lost());

    let (recorder, mut client) = recorded(SQL_SERVER).await;
    recorder.once("SELECT TOP", answer(SQL_SERVER, rows));
    let follower = Follower::<Tree, Babelfish>::settled_after(MINUTE);
    let error = follower.next(&mut client, &Position::START, 1).await;
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("for Babelfish, and the server is `Microsoft SQL Server 2022"),
        "{error}"
    );
}

#[tokio::test]
async fn what_the_server_refuses_has_a_kind() {
    // A deadlock, a lock that was not granted in time, no such table.
    for (code, is_transient) in [(1205, true), (1222, true), (208, false)] {
        let (recorder, mut client) = recorded(SQL_SERVER).await;
        recorder.once(
            "SELECT TOP",
            answer(SQL_SERVER, Answer::failure(code, "no")),
        );
        let follower = Follower::<Order>::settled_after(MINUTE);
        let error = follower.next(&mut client, &Position::START, 1).await;
        let error = error.unwrap_err();
        assert_eq!(error.is_transient(), is_transient, "{error}");
        assert!(!error.is_connection_lost());
        assert_eq!(error.driver().and_then(Error::code), Some(code));
        assert_eq!(recorder.take().len(), 1, "and not once more");
    }
    // An answer that does not fit both queries may belong to another request, so the connection is lost.
    let stale = Answer::int(7);
    for end in [Answer::HangUp, Answer::HalfAnswer, Answer::Done(1), stale] {
        let (recorder, mut client) = recorded(SQL_SERVER).await;
        recorder.once("SELECT TOP", end);
        let follower = Follower::<Order>::settled_after(MINUTE);
        let error = follower.next(&mut client, &Position::START, 1).await;
        assert!(error.unwrap_err().is_connection_lost());
    }
}

#[tokio::test]
async fn a_row_that_cannot_be_read_and_a_position_of_another_rule_are_errors() {
    let (recorder, mut client) = recorded(SQL_SERVER).await;
    let follower = Follower::<Order>::settled_after(MINUTE);
    let rows = Answer::rows(orders(), [vec![None, None, Some(vec![0; 8])]]);
    recorder.once("SELECT TOP", answer(SQL_SERVER, rows));
    let error = follower.next(&mut client, &Position::START, 1).await;
    assert_eq!(
        error.unwrap_err().to_string(),
        "follower of [shop].[my]]orders]: Conversion error: NULL"
    );
    recorder.take();
    let position = "seen 10:20:".parse().unwrap();
    let error = follower.next(&mut client, &position, 1).await.unwrap_err();
    assert!(error.is_other_position(), "{error}");
    assert!(recorder.take().is_empty());
}

#[tokio::test]
async fn a_driver_of_tables_reads_texts_and_runs_scripts() {
    let (recorder, mut client) = recorded(SQL_SERVER).await;
    recorder.once("SELECT name", Answer::text("dbo"));
    let mut over = Over::from(&mut client);
    let texts = TiberiusDriver::<Babelfish>::texts(&mut over, "SELECT name".into()).await;
    assert_eq!(texts.unwrap(), ["dbo"]);
    recorder.once(
        "second",
        Answer::Several(vec![Answer::Done(1), Answer::failure(208, "no")]),
    );
    let run = TiberiusDriver::<Babelfish>::run(&mut over, "first; second".into()).await;
    assert_eq!(run.unwrap_err().error.code(), Some(208));
}
