//! Followers of tables: their decisions and queries on H2 in its Oracle mode, which is an emulation and takes scripts
//! alone, so literals stand for the parameters; and all of it on Oracle itself.

use std::time::{Duration, SystemTime};

use libtest_mimic::Trial;
use oracle::{Connection, RowValue};
use ordid::{
    KeyType as _, OrderedKey,
    clock::Timestamp,
    storage::{ColumnOn, column, dialect::Oracle},
    uuid::Uuid,
};
use ordid_oracle::{Follower, Position, UnitOfWork};
use ordid_sql::{
    DriverError, Failure,
    follower::{self, FollowerDriver},
    table_driver::{Blocking, Sent, TableDriver},
};
use ordid_tests::{login, servers::Servers};

use crate::{Outcome, h2::run, h2_trials, keys::NetworkId, server_trial};

const HOUR: Duration = Duration::from_hours(1);
const COLUMNS: &str = "\"id\" RAW(16) NOT NULL PRIMARY KEY, \"number\" NUMBER(19) NOT NULL";

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    h2_trials(trials, servers)("settled_rows_are_delivered_once", on_h2);
    let mut add = |name: &str, test: fn(&str) -> Outcome| {
        let name = format!("oracle::{name}");
        server_trial(trials, servers, "oracle", &name, test);
    };
    add("settled_rows_are_delivered_once", on_oracle);
    add("a_follower_waits_for_no_transaction", open_transactions);
}

#[derive(OrderedKey, RowValue, Debug)]
#[ordid(table = "ordid followed")]
struct Event {
    id: NetworkId,
    number: i64,
}

/// Another table, since tests run at the same time.
#[derive(OrderedKey, RowValue, Debug)]
#[ordid(table = "ordid followed late")]
struct LateEvent {
    id: NetworkId,
    number: i64,
}

fn id(hours_ago: u32) -> Result<NetworkId, ordid::Error> {
    let time = Timestamp::try_from(SystemTime::now() - HOUR * hours_ago)?;
    NetworkId::generate_at(time)
}

/// Events by how many hours ago their keys were made, neither rising nor falling.
fn events() -> Result<Vec<Event>, ordid::Error> {
    let events = [(1, 4), (4, 1), (2, 3), (5, 0), (3, 2)].map(|(hours, number)| {
        let id = id(hours)?;
        Ok(Event { id, number })
    });
    events.into_iter().collect()
}

/// Reads all events with the followers of a driver: those that are older than two hours and a half in pages of two, then the others.
macro_rules! delivered_once {
    ($over:expr, $driver:ty) => {{
        let numbers = |rows: &[Event]| rows.iter().map(|it| it.number).collect::<Vec<_>>();
        let old = follower::Follower::<$driver, Event>::settled_after(HOUR * 5 / 2);
        let mut position = Position::START;
        for expected in [&[0, 1][..], &[2], &[]] {
            let batch = old.next($over, &position, 2)?;
            assert_eq!(numbers(&batch.rows), expected);
            assert_eq!(batch.is_complete, expected.len() < 2);
            position = batch.position.to_string().parse()?;
        }
        let now = old.now($over)?;
        let all = follower::Follower::<$driver, Event>::settled_after(HOUR / 2);
        for begin in [position, now] {
            let batch = all.next($over, &begin, 9)?;
            assert_eq!(numbers(&batch.rows), [3, 4]);
        }
    }};
}

/// H2, as the database that is followed, by its URL.
struct H2;

fn refused(error: ordid_harness::Error) -> DriverError<ordid_harness::Error> {
    DriverError::new(error, Failure::Refused)
}

impl TableDriver for H2 {
    type Error = ordid_harness::Error;
    type Source<'c> = &'c str;
    type Kind = Blocking;

    fn texts<'a>(url: &'a mut &str, sql: String) -> Sent<'a, Self, Vec<String>> {
        Box::pin(async move { run(url, &sql).map_err(refused) })
    }

    fn run<'a>(url: &'a mut &str, sql: String) -> Sent<'a, Self, ()> {
        Box::pin(async move { run(url, &sql).map(drop).map_err(refused) })
    }
}

impl FollowerDriver<Event> for H2 {
    type Dialect = Oracle;
    type Row = Event;

    const KEEPS_ORDER: bool = true;

    fn rows<'a>(
        url: &'a mut &str,
        sql: String,
        keys: Vec<NetworkId>,
    ) -> Sent<'a, Self, Vec<Event>> {
        Box::pin(async move {
            // H2's tool prints bytes as they are.
            let mut script = sql.replacen("\"id\"", "RAWTOHEX(\"id\")", 1) + ";";
            for (number, key) in (1..).zip(keys) {
                let literal = <column::Raw16 as ColumnOn<Oracle>>::literal(key.to_raw());
                script = script.replace(&format!(":{number}"), &literal);
            }
            let rows = run(url, &script).map_err(refused)?;
            Ok(rows.iter().map(|row| event(row)).collect())
        })
    }

    fn key(row: &Event) -> Option<NetworkId> {
        Some(row.id)
    }
}

/// A row: its bytes in hex, and the number.
fn event(row: &str) -> Event {
    let (id, number) = row.split_once(' ').expect("two columns");
    let id = Uuid::parse_str(id).expect("16 bytes");
    Event {
        id: NetworkId::from_raw(id).expect("a key"),
        number: number.parse().expect("a number"),
    }
}

fn on_h2(url: &str) -> Outcome {
    let mut script = format!("CREATE TABLE \"ordid followed\" ({COLUMNS});\n");
    for event in events()? {
        let literal = <column::Raw16 as ColumnOn<Oracle>>::literal(event.id.to_raw());
        script += &format!(
            "INSERT INTO \"ordid followed\" (\"id\", \"number\") VALUES ({literal}, {});\n",
            event.number
        );
    }
    run(url, &script)?;
    delivered_once!(url, H2);
    Ok(())
}

/// A table that is dropped at the end.
struct Table<'c>(&'c Connection, &'static str);

impl<'c> Table<'c> {
    fn create(connection: &'c Connection, name: &'static str) -> Result<Self, oracle::Error> {
        let table = Self(connection, name);
        // Left over from a run that was killed.
        table.remove();
        connection.execute(&format!("CREATE TABLE \"{name}\" ({COLUMNS})"), &[])?;
        Ok(table)
    }

    fn remove(&self) {
        let _ = self.0.rollback();
        let _ = self
            .0
            .execute(&format!("DROP TABLE \"{}\" PURGE", self.1), &[]);
    }
}

impl Drop for Table<'_> {
    fn drop(&mut self) {
        self.remove();
    }
}

fn on_oracle(url: &str) -> Outcome {
    let connection = login::oracle(url)??;
    let _table = Table::create(&connection, "ordid followed")?;
    let mut work = UnitOfWork::new();
    for event in events()? {
        work.add(event);
    }
    work.flush(&connection)?;
    delivered_once!(&connection, ordid_oracle::OracleDriver);
    Ok(())
}

/// A query sees what was committed when it began, and of a serializable transaction, when the transaction began.
fn open_transactions(url: &str) -> Outcome {
    let (reader, writer) = (login::oracle(url)??, login::oracle(url)??);
    let _table = Table::create(&reader, "ordid followed late")?;
    let follower = Follower::<LateEvent>::settled_after(HOUR);
    let numbers = || -> Outcome<Vec<i64>> {
        let batch = follower.next(&reader, &Position::START, 9)?;
        Ok(batch.rows.iter().map(|it| it.number).collect())
    };
    let add = |number| -> Outcome {
        let mut work = UnitOfWork::new();
        let id = id(2)?;
        work.add(LateEvent { id, number });
        work.flush_in(&writer)?;
        Ok(())
    };
    add(0)?;
    assert_eq!(numbers()?, [0; 0]);
    writer.commit()?;
    assert_eq!(numbers()?, [0]);

    reader.execute("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", &[])?;
    assert_eq!(numbers()?, [0]);
    add(1)?;
    writer.commit()?;
    assert_eq!(numbers()?, [0]);
    reader.commit()?;
    assert_eq!(numbers()?.len(), 2);
    Ok(())
}
