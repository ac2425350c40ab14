//! Connections that are lost, before COMMIT and in the midst of it, and others in their place.

use std::{sync::Mutex, time::Duration};

use ordid_oracle::Flushed;

use super::{
    changes::{RECORD, UPDATE_CUSTOMERS},
    *,
};
use crate::lost_commits::{Event, Kind, Peer, Step, lost_commits};

const CONNECT: &str = "CONNECT";
const IS_THERE: &str = r#"SELECT 1 FROM "SHOP"."CUSTOMERS" WHERE "ID" = :1"#;
const IS_RECORDED: &str = "SELECT 1 FROM ordid_flushes WHERE id = :1";

/// A database as the scripts say: one for each connection that is asked for. `{key}` stands for the first value of
/// the first row that was sent before.
struct Server {
    kind: Kind,
    log: Log,
    scripts: Mutex<std::vec::IntoIter<String>>,
}

impl Server {
    fn new<const N: usize>(scripts: [&str; N]) -> Self {
        Self::of(Kind::Inserts, scripts.map(str::to_owned).into())
    }

    fn of(kind: Kind, scripts: Vec<String>) -> Self {
        Self {
            kind,
            log: Log::new(),
            scripts: Mutex::new(scripts.into_iter()),
        }
    }

    fn connect(&self) -> Result<Connection, Error> {
        self.note(CONNECT);
        let script = self.scripts.lock().expect("no panic").next();
        let script = script.expect("no more connections than scripts");
        let rows = self.log.rows();
        let key = rows.first().map_or("", |row| &row[0][3..]);
        self.log
            .connect(&format!("{}\n", script.replace("{key}", key)))
    }

    fn note(&self, line: &str) {
        let lines = [self.log.lines(), vec![line.to_owned()]].concat();
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(&self.log.path, text).expect("written");
    }
}

impl Peer for Server {
    const WAYS: usize = 2;
    const CONNECT: &'static str = CONNECT;
    const REFUSED: Option<&'static str> = Some(CONNECT);

    fn start(kind: Kind, events: &[Event], way: usize) -> Self {
        let code = [3113, 3135][way];
        let script = |event: &Event| match event {
            Event::LosesWrite => format!("execute {code}"),
            Event::LosesCommit => format!("commit {code}"),
            Event::LosesQuestion => format!("statement {code} SELECT"),
            Event::IsRefused => "attach 12541".to_owned(),
            Event::Finds => "found {key} 1".to_owned(),
            Event::FindsNothing => String::new(),
            Event::FindsLate => "refuse {key} 1\nfound {key} 1 0 1".to_owned(),
        };
        Self::of(kind, events.iter().map(script).collect())
    }

    fn flush(&self) -> Flushed {
        let mut work = match self.kind {
            Kind::Inserts => inserts().0,
            Kind::Recorded => inserts().0.with_record(),
            Kind::Change => {
                let mut work = UnitOfWork::new().with_retry(quick());
                work.update(customer(None, 7));
                work
            }
        };
        let flushed = work.flush_with(|| self.connect()).expect("flushed");
        assert!(work.is_empty());
        flushed
    }

    fn texts(kind: Kind, step: Step) -> Vec<&'static str> {
        let is_there = match kind {
            Kind::Inserts => IS_THERE,
            Kind::Recorded | Kind::Change => IS_RECORDED,
        };
        match step {
            // With the first statement.
            Step::Begin => vec![],
            Step::Record => vec![RECORD],
            Step::Write if kind == Kind::Change => vec![UPDATE_CUSTOMERS],
            Step::Write => vec![INTO_CUSTOMERS],
            Step::Commit => vec!["COMMIT"],
            Step::Rollback => vec!["ROLLBACK"],
            Step::Ask => vec![is_there, "ROLLBACK"],
            Step::AskInVain => vec![is_there],
        }
    }

    fn sent(&self) -> Vec<String> {
        self.log.statements()
    }

    fn keys(&self, text: &str) -> Vec<Vec<u8>> {
        let lines = self.log.lines();
        // A statement that the script refuses has no rows behind it.
        let sent = lines
            .windows(2)
            .filter(|pair| pair[0] == text && pair[1].starts_with(' '));
        let keys = sent.filter_map(|pair| pair[1].split_whitespace().next());
        keys.map(|key| key.as_bytes().to_vec()).collect()
    }
}

lost_commits! { Server }

pub(super) fn quick() -> Retry {
    let delay = Duration::from_millis(1);
    Retry::DEFAULT.with_delays(delay, delay)
}

/// Two rows to insert, and the first one's key in hex.
fn inserts() -> (UnitOfWork, String) {
    let mut work = UnitOfWork::new().with_retry(quick());
    let mut keys = [0, 1].map(|credit| work.add(customer(None, credit)));
    keys.sort();
    (work, hex(keys[0].to_raw().as_bytes()))
}

/// A failure that may pass is tried again on the same connection.
#[test]
fn a_deadlock_needs_no_other_connection() {
    let server = Server::new(["execute 60 1"]);
    let (mut work, _) = inserts();
    let flushed = work.flush_with(|| server.connect()).expect("flushed");
    assert_eq!(flushed.retries, 1);
    assert_eq!(
        server.log.statements(),
        [
            CONNECT,
            INTO_CUSTOMERS,
            "ROLLBACK",
            INTO_CUSTOMERS,
            "COMMIT"
        ]
    );
}

#[test]
fn a_listener_that_comes_late_is_waited_for() {
    let server = Server::new(["attach 12541", "attach 12514", ""]);
    let (mut work, _) = inserts();
    let flushed = work.flush_with(|| server.connect()).expect("flushed");
    assert_eq!(flushed.retries, 2);
    assert_eq!(
        server.log.statements(),
        [CONNECT, CONNECT, CONNECT, INTO_CUSTOMERS, "COMMIT"]
    );
}

#[test]
fn a_connection_that_is_refused_is_not_asked_for_again() {
    let server = Server::new(["attach 1017"]);
    let (mut work, _) = inserts();
    let error = work.flush_with(|| server.connect()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot begin the flush, nothing was written: OCI Error: ORA-01017: as the test asked for"
    );
    assert_eq!((error.retries(), work.len()), (0, 2));
    assert_eq!(server.log.statements(), [CONNECT]);
}

/// Where nobody answers it is said that it is not known, and the next flush asks first.
#[test]
fn what_cannot_be_found_out_is_unknown() {
    let (work, first) = inserts();
    let mut work = work.with_retry(Retry::NONE);
    let found = format!("found {first} 1");
    let server = Server::new(["commit 3113", "attach 12541", &found]);
    let error = work.flush_with(|| server.connect()).unwrap_err();
    assert!(error.is_commit_unknown() && error.is_connection_lost());
    let text = "the answer to COMMIT was lost, so either all rows are written or none is; flush again \
                over a connection that works to find out: DPI Error: DPI-1080: connection was closed by \
                ORA";
    assert!(error.to_string().starts_with(text), "{error}");
    assert_eq!(work.len(), 2, "nothing is lost");
    let flushed = work.flush_with(|| server.connect()).expect("flushed");
    assert_eq!(flushed.rows(), 2);
    assert_eq!(
        server.log.statements(),
        [
            CONNECT,
            INTO_CUSTOMERS,
            "COMMIT",
            CONNECT,
            CONNECT,
            IS_THERE,
            "ROLLBACK"
        ]
    );
}

/// A session that is lost is not given back to be lent again, also where the client library holds it for
/// alive; one that is not is given back.
#[test]
fn a_pool_gets_back_what_is_not_lost() {
    let log = Log::new();
    log.script("execute 25408 1\n");
    let path = log.path.to_str().expect("UTF-8");
    let pool = oracle::pool::PoolBuilder::new("scott", "tiger", path).build();
    let pool = pool.expect("a pool");
    let (mut work, _) = inserts();
    let mut lent = 0;
    let flushed = work.flush_with(|| {
        lent += 1;
        if lent > 1 {
            log.script("");
        }
        pool.get()
    });
    assert_eq!(flushed.expect("flushed").retries, 1);
    assert_eq!(
        log.statements(),
        [
            "GET",
            INTO_CUSTOMERS,
            "ROLLBACK",
            "RELEASE AND DROP",
            "GET",
            INTO_CUSTOMERS,
            "COMMIT",
            "RELEASE"
        ]
    );
}

/// The transaction may still be open there, and another one would commit it.
#[test]
fn a_connection_that_could_not_be_rolled_back_is_not_used_again() {
    let server = Server::new(["execute 60\nrollback 1013", ""]);
    let (mut work, _) = inserts();
    let flushed = work.flush_with(|| server.connect()).expect("flushed");
    assert!(work.is_empty());
    assert_eq!((flushed.rows(), flushed.retries), (2, 1));
    assert_eq!(
        server.log.statements(),
        [
            CONNECT,
            INTO_CUSTOMERS,
            "ROLLBACK",
            // The client library's own, as the connection is closed.
            "ROLLBACK",
            CONNECT,
            INTO_CUSTOMERS,
            "COMMIT"
        ]
    );
    let rows = server.log.rows();
    assert_eq!(rows[..2], rows[2..], "the same keys");
}
