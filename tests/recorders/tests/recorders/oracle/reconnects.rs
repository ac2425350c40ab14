//! Connections that are lost, before COMMIT and in the midst of it, and others in their place.

use std::{sync::Mutex, time::Duration};

use super::*;

const CONNECT: &str = "CONNECT";
const IS_THERE: &str = r#"SELECT 1 FROM "SHOP"."CUSTOMERS" WHERE "ID" = :1"#;
const RECORD: &str = "INSERT INTO ordid_flushes (id) VALUES (:1)";
const IS_RECORDED: &str = "SELECT 1 FROM ordid_flushes WHERE id = :1";

/// A database as the scripts say: one for each connection that is asked for.
struct Server<'s> {
    log: Log,
    scripts: Mutex<std::slice::Iter<'s, String>>,
}

impl<'s> Server<'s> {
    fn new(scripts: &'s [String]) -> Self {
        Self {
            log: Log::new(),
            scripts: Mutex::new(scripts.iter()),
        }
    }

    fn connect(&self) -> Result<Connection, Error> {
        self.note(CONNECT);
        let script = self.scripts.lock().expect("no panic").next();
        self.log
            .connect(script.expect("no more connections than scripts"))
    }

    fn note(&self, line: &str) {
        let lines = [self.log.lines(), vec![line.to_owned()]].concat();
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(&self.log.path, text).expect("written");
    }
}

fn quick() -> Retry {
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

fn scripts<const N: usize>(scripts: [&str; N]) -> [String; N] {
    scripts.map(|script| format!("{script}\n"))
}

#[test]
fn what_a_lost_connection_took_is_sent_again() {
    let scripts = scripts(["execute 3113", ""]);
    let server = Server::new(&scripts);
    let (mut work, _) = inserts();
    let flushed = work.flush_with(|| server.connect()).expect("flushed");
    assert!(work.is_empty());
    assert_eq!((flushed.rows(), flushed.retries), (2, 1));
    assert_eq!(
        server.log.statements(),
        [CONNECT, INTO_CUSTOMERS, CONNECT, INTO_CUSTOMERS, "COMMIT"]
    );
    let rows = server.log.rows();
    assert_eq!(rows[..2], rows[2..], "the same keys");
}

/// What may succeed on the same connection is tried there.
#[test]
fn a_deadlock_needs_no_other_connection() {
    let scripts = scripts(["execute 60 1"]);
    let server = Server::new(&scripts);
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
    let scripts = scripts(["attach 12541", "attach 12514", ""]);
    let server = Server::new(&scripts);
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
    let scripts = scripts(["attach 1017"]);
    let server = Server::new(&scripts);
    let (mut work, _) = inserts();
    let error = work.flush_with(|| server.connect()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot begin the flush, nothing was written: OCI Error: ORA-01017: as the test asked for"
    );
    assert_eq!((error.retries(), work.len()), (0, 2));
    assert_eq!(server.log.statements(), [CONNECT]);
}

#[test]
fn a_commit_that_was_carried_out_is_found() {
    let (mut work, first) = inserts();
    let found = format!("found {first} 1");
    let scripts = scripts(["commit 3113", &found]);
    let server = Server::new(&scripts);
    let flushed = work.flush_with(|| server.connect()).expect("flushed");
    assert!(work.is_empty());
    assert_eq!((flushed.rows(), flushed.retries), (2, 0));
    assert_eq!(
        server.log.statements(),
        [
            CONNECT,
            INTO_CUSTOMERS,
            "COMMIT",
            CONNECT,
            IS_THERE,
            "ROLLBACK"
        ]
    );
    let rows = server.log.rows();
    assert_eq!(rows[2], [format!("23:{first}")], "the first row's key");
}

#[test]
fn a_commit_that_was_not_is_done_again() {
    let (mut work, _) = inserts();
    let scripts = scripts(["commit 3135", ""]);
    let server = Server::new(&scripts);
    let flushed = work.flush_with(|| server.connect()).expect("flushed");
    assert_eq!((flushed.rows(), flushed.retries), (2, 1));
    assert_eq!(
        server.log.statements(),
        [
            CONNECT,
            INTO_CUSTOMERS,
            "COMMIT",
            CONNECT,
            IS_THERE,
            "ROLLBACK",
            INTO_CUSTOMERS,
            "COMMIT"
        ]
    );
}

/// The old COMMIT lands after the question: the rows that are sent again are refused, and there.
#[test]
fn a_commit_that_lands_late_is_found_by_its_duplicates() {
    let (mut work, first) = inserts();
    let late = format!("refuse {first} 1\nfound {first} 1 0 1");
    let scripts = scripts(["commit 3113", &late]);
    let server = Server::new(&scripts);
    let flushed = work.flush_with(|| server.connect()).expect("flushed");
    assert!(work.is_empty());
    assert_eq!(flushed.rows(), 2);
    assert_eq!(
        server.log.statements(),
        [
            CONNECT,
            INTO_CUSTOMERS,
            "COMMIT",
            CONNECT,
            IS_THERE,
            "ROLLBACK",
            INTO_CUSTOMERS,
            "ROLLBACK",
            IS_THERE,
            "ROLLBACK"
        ]
    );
}

/// A question that is not answered is asked again, over another connection.
#[test]
fn a_question_that_is_lost_is_asked_again() {
    let (mut work, first) = inserts();
    let found = format!("found {first} 1");
    let scripts = scripts([
        "commit 3113",
        "statement 3113 SELECT",
        "attach 12541",
        &found,
    ]);
    let server = Server::new(&scripts);
    work.flush_with(|| server.connect()).expect("flushed");
    assert_eq!(
        server.log.statements(),
        [
            CONNECT,
            INTO_CUSTOMERS,
            "COMMIT",
            CONNECT,
            IS_THERE,
            CONNECT,
            CONNECT,
            IS_THERE,
            "ROLLBACK"
        ]
    );
}

/// Where nobody answers it is said that it is not known, and the next flush asks first.
#[test]
fn what_cannot_be_found_out_is_unknown() {
    let (work, first) = inserts();
    let mut work = work.with_retry(Retry::NONE);
    let found = format!("found {first} 1");
    let scripts = scripts(["commit 3113", "attach 12541", &found]);
    let server = Server::new(&scripts);
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

/// Rows that are changed were there before: the flush's own row tells.
#[test]
fn changes_are_found_by_the_row_that_records_them() {
    for found in [true, false] {
        let log = Log::new();
        let mut work = UnitOfWork::new().with_retry(quick());
        let changed = customer(None, 7);
        work.update(changed);
        let mut connections = 0;
        let flushed = work.flush_with(|| {
            connections += 1;
            if connections == 1 {
                return log.connect("commit 3113\n");
            }
            let id = log.rows()[0][0].replace("23:", "");
            log.connect(&if found {
                format!("found {id} 1\n")
            } else {
                String::new()
            })
        });
        let flushed = flushed.expect("flushed");
        assert_eq!(flushed.updated(), 1);
        let update =
            r#"UPDATE "SHOP"."CUSTOMERS" SET "FULL_NAME" = :1, "CREDIT" = :2 WHERE "ID" = :3"#;
        let once = [RECORD, update, "COMMIT"];
        let asked = [IS_RECORDED, "ROLLBACK"];
        let expected = if found {
            [&once[..], &asked].concat()
        } else {
            [&once[..], &asked, &once].concat()
        };
        assert_eq!(log.statements(), expected);
        let rows = log.rows();
        assert_eq!(rows[2], rows[0], "it is asked for by its key");
        if !found {
            assert_eq!(rows[3..], rows[..2], "all attempts have the same");
        }
    }
}

/// Its rows may be gone by the time when it is asked.
#[test]
fn a_flush_with_a_record_is_not_found_by_its_rows() {
    let log = Log::new();
    let (work, _) = inserts();
    let mut work = work.with_record();
    let mut connections = 0;
    let flushed = work.flush_with(|| {
        connections += 1;
        if connections == 1 {
            return log.connect("commit 3113\n");
        }
        let id = log.rows()[0][0].replace("23:", "");
        log.connect(&format!("found {id} 1\n"))
    });
    assert_eq!(flushed.expect("flushed").rows(), 2);
    assert_eq!(
        log.statements(),
        [RECORD, INTO_CUSTOMERS, "COMMIT", IS_RECORDED, "ROLLBACK"]
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
