//! Followers of tables: what is sent for a call, and what becomes of the answers. No database takes part: which rows
//! there are is what the test says.

use std::time::{Duration, SystemTime};

use oracle::{Row, RowValue};
use ordid::{Scheme as _, generator::Generator as _};
use ordid_oracle::{Follower, OracleDriver, Over, Position};
use ordid_sql::{spi::blocking, table_driver::TableDriver as _};

use super::*;

const MINUTE: Duration = Duration::from_secs(60);

#[derive(KeyType)]
#[ordid(scheme = snowflake, oracle)]
struct EventId(i64);

#[derive(OrderedKey, Debug)]
#[ordid(schema = "SHOP", table = "EVENTS", rename_all = "SCREAMING_SNAKE_CASE")]
struct Event {
    #[ordid(key)]
    id: EventId,
    number: i64,
}

/// By position: the recorder's columns have no names.
impl RowValue for Event {
    fn get(row: &Row) -> oracle::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            number: row.get(1)?,
        })
    }
}

/// Network order.
#[derive(OrderedKey, Debug)]
#[ordid(table = "visits")]
struct Visit {
    id: CustomerId,
}

impl RowValue for Visit {
    fn get(row: &Row) -> oracle::Result<Self> {
        Ok(Self { id: row.get(0)? })
    }
}

/// .NET's order.
#[derive(OrderedKey, Debug)]
#[ordid(table = "bills")]
struct Bill {
    id: OrderId,
}

impl RowValue for Bill {
    fn get(row: &Row) -> oracle::Result<Self> {
        Ok(Self { id: row.get(0)? })
    }
}

fn minutes_ago(minutes: u32) -> Timestamp {
    Timestamp::try_from(SystemTime::now() - MINUTE * minutes).expect("a time")
}

/// The time of a Snowflake.
fn time(key: i128) -> Timestamp {
    let key = i64::try_from(key).expect("64 bits");
    let scheme = <EventId as KeyType>::Scheme::timestamp;
    scheme(&key).expect("a time")
}

#[test]
fn a_call_is_one_query_for_the_rows_between_the_position_and_the_bound() {
    let node = SnowflakeNode::new(7).expect("a node");
    let generator = OrderedGenerator::with_node(node, SystemClock, ThreadEntropy, Policy::DEFAULT);
    let ids: Vec<EventId> = (0..2)
        .map(|_| generator.try_generate_key().expect("a key"))
        .collect();
    let rows = format!("{},10;{},11", ids[0].to_raw(), ids[1].to_raw());
    let recorder = Recorder::new(&format!("rows {rows} SELECT\n"));
    let follower = Follower::<Event>::settled_after(MINUTE);
    let before = minutes_ago(1);
    let batch = follower.next(&recorder.connection, &Position::START, 2);
    let batch = batch.expect("rows");
    let after = minutes_ago(1);
    let read: Vec<_> = batch.rows.iter().map(|it| (it.id, it.number)).collect();
    assert_eq!(read, [(ids[0], 10), (ids[1], 11)]);
    assert!(!batch.is_complete);
    const QUERY: &str = r#"SELECT "ID", "NUMBER" FROM "SHOP"."EVENTS" WHERE "ID" < :1 ORDER BY "ID" FETCH FIRST 2 ROWS ONLY"#;
    assert_eq!(recorder.statements(), [QUERY]);
    let bound = time(number(&recorder.rows()[0][0])).as_unix_millis();
    assert!((before.as_unix_millis()..=after.as_unix_millis()).contains(&bound));

    // The position goes through its text.
    let position: Position<EventId> = batch.position.to_string().parse().expect("a position");
    recorder.script("rows - SELECT\n");
    let batch = follower.next(&recorder.connection, &position, 2);
    let batch = batch.expect("no rows");
    assert!(batch.rows.is_empty() && batch.is_complete);
    assert_eq!(batch.position, position);
    const NEXT: &str = r#"SELECT "ID", "NUMBER" FROM "SHOP"."EVENTS" WHERE "ID" > :1 AND "ID" < :2 ORDER BY "ID" FETCH FIRST 2 ROWS ONLY"#;
    assert_eq!(
        recorder.statements(),
        [QUERY, NEXT],
        "nothing is committed or rolled back"
    );
    let values = &recorder.rows()[1];
    assert_eq!(number(&values[0]), i128::from(ids[1].to_raw()));
    assert!(time(number(&values[1])) >= before);
}

/// In the bytes of the column, so that Oracle compares them as the keys are ordered.
#[test]
fn the_bound_has_the_form_of_the_column() {
    let recorder = Recorder::new("rows - SELECT\n");
    let connection = &recorder.connection;
    let before = minutes_ago(1);
    let visits = Follower::<Visit>::settled_after(MINUTE);
    visits
        .next(connection, &Position::START, 1)
        .expect("no rows");
    let bills = Follower::<Bill>::settled_after(MINUTE);
    bills
        .next(connection, &Position::START, 1)
        .expect("no rows");
    let after = minutes_ago(1);
    let rows = recorder.rows();
    let lowest = |time| CustomerId::range(time..time).expect("keys").start;
    let [visit, bill] = [&rows[0][0], &rows[1][0]];
    assert!(raw(lowest(before).to_raw().as_bytes()) <= *visit);
    assert!(*visit <= raw(lowest(after).to_raw().as_bytes()));
    let lowest = |time| OrderId::range(time..time).expect("keys").start;
    assert!(raw(lowest(before).to_raw().to_bytes_le()) <= *bill);
    assert!(*bill <= raw(lowest(after).to_raw().to_bytes_le()));
}

/// `now` asks nothing: the bound is by the clock of the program.
#[test]
fn a_new_reader_begins_before_the_bound() {
    let recorder = Recorder::new("");
    let follower = Follower::<Visit>::settled_after(MINUTE);
    let position = follower.now(&recorder.connection).expect("a position");
    let position = position.to_string();
    assert!(recorder.lines().is_empty());
    let key: Uuid = position
        .strip_prefix("above ")
        .expect("a key")
        .parse()
        .expect("a key");
    let time = key.timestamp().expect("a time");
    assert!(minutes_ago(2) < time && time < minutes_ago(1), "{position}");
}

/// A call is a read in the user's transaction, which goes on.
#[test]
fn an_open_transaction_stays_open() {
    let recorder = Recorder::new("rows - SELECT\n");
    let connection = &recorder.connection;
    connection
        .execute("DELETE FROM shop", &[])
        .expect("deleted");
    let follower = Follower::<Visit>::settled_after(MINUTE);
    follower
        .next(connection, &Position::START, 1)
        .expect("no rows");
    connection.commit().expect("committed");
    let sent = recorder.statements();
    let [delete, query, commit] = &sent[..] else {
        panic!("{sent:?}");
    };
    assert!(query.starts_with("SELECT"), "{query}");
    assert_eq!([&**delete, &**commit], ["DELETE FROM shop", "COMMIT"]);
}

#[test]
fn what_the_database_refuses_has_a_kind() {
    // A deadlock, a table that is not there, a lost connection.
    for (code, is_transient, is_lost) in
        [(60, true, false), (942, false, false), (3113, false, true)]
    {
        let recorder = Recorder::new(&format!("statement {code} SELECT\n"));
        let follower = Follower::<Visit>::settled_after(MINUTE);
        let error = follower.next(&recorder.connection, &Position::START, 1);
        let error = error.expect_err("refused");
        assert_eq!(error.is_transient(), is_transient, "{error}");
        assert_eq!(error.is_connection_lost(), is_lost, "{error}");
        let text = error.to_string();
        assert!(text.starts_with("follower of \"visits\": "), "{text}");
        assert!(text.contains(&format!("ORA-{code:05}")), "{text}");
        assert_eq!(recorder.statements().len(), 1, "and not once more");
    }
}

#[test]
fn a_row_that_cannot_be_read_and_a_position_of_another_rule_are_errors() {
    // A number, where the key's column has bytes.
    let recorder = Recorder::new("rows 1 SELECT\n");
    let follower = Follower::<Visit>::settled_after(MINUTE);
    let error = follower.next(&recorder.connection, &Position::START, 1);
    let text = error.expect_err("no key").to_string();
    assert!(text.starts_with("follower of \"visits\": "), "{text}");
    assert!(text.contains("raw16"), "{text}");

    let sent = recorder.statements().len();
    let position = "seen 10:20:".parse().expect("a position");
    let error = follower.next(&recorder.connection, &position, 1);
    assert!(error.expect_err("refused").is_other_position());
    assert_eq!(recorder.statements().len(), sent);
}

#[test]
fn a_driver_of_tables_reads_texts_and_runs_scripts() {
    let recorder = Recorder::new("rows 7;8 SELECT\nstatement 955 CREATE\n");
    let mut over = Over::from(&recorder.connection);
    let texts = OracleDriver::texts(&mut over, "SELECT name".into());
    assert_eq!(blocking(texts).expect("texts"), ["7", "8"]);
    let run = OracleDriver::run(&mut over, "CREATE TABLE t".into());
    let error = blocking(run).expect_err("refused").error;
    assert_eq!(error.oci_code(), Some(955));
}
