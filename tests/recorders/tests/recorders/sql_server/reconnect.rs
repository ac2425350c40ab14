//! What follows when a connection is lost, before the commit and in the midst of it. The peer is a
//! recorder, no SQL engine: whether the rows are there is what the test says.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use super::{
    ASK, RECORD,
    entities::{Customer, CustomerId, Order, Tcp, connect, log_is_not_available, orders, texts},
};
use ordid::KeyType;
use ordid_recorders::tds::{Answer, Received, Recorder, Request};
use ordid_tiberius::{Error, Flushed, Retry, UnitOfWork};

use crate::lost_commits::{Event, Kind, Peer, Step, lost_commits};

const INSERT: &str = "INSERT INTO [customers] ([id], [name], [note]) VALUES (@P1, @P2, @P3), (@P4, @P5, \
                      @P6); SELECT @@ROWCOUNT";
const PROBE: &str = "SELECT 1 FROM [customers] WITH (READCOMMITTEDLOCK) WHERE [id] = @P1";
const PROBE_RECORD: &str = "SELECT 1 FROM ordid_flushes WITH (READCOMMITTEDLOCK) WHERE id = @P1";
/// What a connection sends that finds the rows: a probe is a transaction of its own.
const ASKED: [&str; 5] = [ASK, "BEGIN", WAITS, PROBE, "ROLLBACK"];
/// What asks how long the session waits for locks.
const WAITS: &str = "SELECT CAST(@@LOCK_TIMEOUT AS nvarchar(20))";
const DELETE: &str = "DELETE FROM [customers] WHERE [id] = @P1; SELECT @@ROWCOUNT";

fn customer(name: &str) -> Customer {
    Customer {
        id: CustomerId::generate(),
        name: name.to_owned(),
        note: None,
    }
}

/// A unit of work that does not wait for long.
fn work() -> UnitOfWork {
    let delay = Duration::from_millis(1);
    UnitOfWork::new().with_retry(Retry::DEFAULT.with_attempts(4).with_delays(delay, delay))
}

fn two() -> UnitOfWork {
    let mut work = work();
    work.add(customer("Ada"));
    work.add(customer("Grace"));
    work
}

async fn flush(work: &mut UnitOfWork, recorder: &Recorder) -> Result<Flushed, Error> {
    let mut client = connect(recorder).await;
    flush_over(work, &mut client, recorder).await
}

async fn flush_over(
    work: &mut UnitOfWork,
    client: &mut Tcp,
    recorder: &Recorder,
) -> Result<Flushed, Error> {
    work.flush_with(client, || async { Ok(connect(recorder).await) })
        .await
}

/// A recorder whose connections meet some events.
struct Server {
    kind: Kind,
    recorder: Recorder,
    events: Vec<Event>,
}

impl Peer for Server {
    const WAYS: usize = 2;
    const CONNECT: &'static str = ASK;
    const REFUSED: Option<&'static str> = None;

    fn start(kind: Kind, events: &[Event], way: usize) -> Self {
        let recorder = Recorder::start().expect("a free port");
        recorder.always(DELETE, Answer::Done(1));
        let texts = [Step::AskInVain, Step::Write].map(|step| Self::texts(kind, step));
        let [is_there, write] = texts.map(|texts| *texts.last().expect("one"));
        let lost = || [Answer::HangUp, Answer::HalfAnswer][way].clone();
        for event in events {
            match event {
                Event::LosesWrite => recorder.once(write, lost()),
                Event::LosesCommit => recorder.once("COMMIT", lost()),
                Event::LosesQuestion => recorder.once(is_there, lost()),
                Event::IsRefused => {}
                Event::Finds => recorder.once(is_there, Answer::int(1)),
                Event::FindsNothing => recorder.once(is_there, Answer::rows([], [])),
                Event::FindsLate => {
                    recorder.once(is_there, Answer::rows([], []));
                    recorder.once(is_there, Answer::int(1));
                    // The first goes through.
                    let (key, rows) = match kind {
                        Kind::Inserts => (write, 2),
                        Kind::Recorded | Kind::Change => (RECORD, 1),
                    };
                    recorder.once(key, Answer::Done(rows));
                    recorder.once(key, Answer::failure(2627, "Violation of PRIMARY KEY"));
                }
            }
        }
        Self {
            kind,
            recorder,
            events: events.to_vec(),
        }
    }

    fn flush(&self) -> Flushed {
        let mut work = match self.kind {
            Kind::Inserts => two(),
            Kind::Recorded => two().with_record(),
            Kind::Change => {
                let mut work = work();
                work.delete(&customer("Ada"));
                work
            }
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let flush = async {
            let mut client = connect(&self.recorder).await;
            let mut events = self.events.iter().skip(1);
            let another = || {
                let event = events.next();
                async move {
                    match event {
                        Some(Event::IsRefused) => Err(refused()),
                        _ => Ok(connect(&self.recorder).await),
                    }
                }
            };
            work.flush_with(&mut client, another).await
        };
        let flushed = runtime.expect("a runtime").block_on(flush);
        assert!(work.is_empty());
        flushed.expect("flushed")
    }

    fn texts(kind: Kind, step: Step) -> Vec<&'static str> {
        let probe = match kind {
            Kind::Inserts => PROBE,
            Kind::Recorded | Kind::Change => PROBE_RECORD,
        };
        match step {
            Step::Begin => vec!["BEGIN"],
            Step::Record => vec![RECORD],
            Step::Write if kind == Kind::Change => vec![DELETE],
            Step::Write => vec![INSERT],
            Step::Commit => vec!["COMMIT"],
            Step::Rollback => vec!["ROLLBACK"],
            Step::Ask => vec!["BEGIN", probe, "ROLLBACK"],
            Step::AskInVain => vec!["BEGIN", probe],
        }
    }

    fn sent(&self) -> Vec<String> {
        let mut sent = texts(&requests(&self.recorder));
        // See `waits_for_locks_are_bounded_in_doubt`.
        sent.retain(|text| text != WAITS && !text.starts_with("SET LOCK_TIMEOUT"));
        sent
    }

    fn keys(&self, text: &str) -> Vec<Vec<u8>> {
        keys(&requests(&self.recorder), text)
    }
}

lost_commits! { Server }

/// All requests so far; they are not taken.
fn requests(recorder: &Recorder) -> Vec<Received> {
    let mut log = recorder.log();
    log.retain(|received| !matches!(received.request, Request::Login { .. }));
    log
}

fn refused() -> tiberius::error::Error {
    std::io::Error::from(std::io::ErrorKind::ConnectionRefused).into()
}

/// The requests of each connection that sent some.
fn by_connection(log: &[Received]) -> Vec<Vec<String>> {
    let mut connections = Vec::<(usize, Vec<String>)>::new();
    for received in log {
        let text = received.request.text();
        match connections.last_mut() {
            Some((number, texts)) if *number == received.connection => texts.push(text),
            _ => connections.push((received.connection, vec![text])),
        }
    }
    connections.into_iter().map(|(_, texts)| texts).collect()
}

/// The keys of the rows of the requests with this text.
fn keys(log: &[Received], text: &str) -> Vec<Vec<u8>> {
    let of_text = |received: &&Received| received.request.text() == text;
    let first = |received: &Received| received.request.arguments()[0].value.clone();
    log.iter().filter(of_text).filter_map(first).collect()
}

#[tokio::test]
async fn a_connection_lost_before_the_commit_is_made_anew_and_all_is_sent_once_more() {
    for (at, sent) in [
        (ASK, &[ASK][..]),
        ("BEGIN", &[ASK, "BEGIN"]),
        ("INSERT", &[ASK, "BEGIN", INSERT]),
    ] {
        for answer in [Answer::HangUp, Answer::HalfAnswer] {
            let recorder = Recorder::start().unwrap();
            recorder.once(at, answer);
            let mut work = two();
            let mut client = connect(&recorder).await;
            let flushed = flush_over(&mut work, &mut client, &recorder).await.unwrap();
            assert_eq!((flushed.rows(), flushed.retries), (2, 1), "{at}");
            assert!(work.is_empty());
            let log = recorder.take();
            let whole = [ASK, "BEGIN", INSERT, "COMMIT"];
            assert_eq!(by_connection(&log), [sent, &whole[..]], "{at}");
            let keys = keys(&log, INSERT);
            assert!(keys.windows(2).all(|pair| pair[0] == pair[1]), "the same");
            // The client is the new one.
            work.add(customer("Alan"));
            work.flush(&mut client).await.unwrap();
            assert_eq!(recorder.take()[0].connection, 1);
        }
    }
}

#[tokio::test]
async fn a_load_that_is_cut_off_is_begun_anew_on_another_connection() {
    let recorder = Recorder::start().unwrap();
    recorder.table("[shop].[my]]orders]", orders());
    recorder.once("BULK$", Answer::HangUp);
    let mut work = work();
    for total in 0..3_000 {
        work.add(Order::of(CustomerId::generate(), total));
    }
    let flushed = flush(&mut work, &recorder).await.unwrap();
    assert_eq!((flushed.tables[0].bulk, flushed.retries), (3_000, 1));
}

#[tokio::test]
async fn a_duplicate_of_rows_that_are_not_found_leaves_the_commit_unknown() {
    let recorder = Recorder::start().unwrap();
    recorder.once("COMMIT", Answer::HangUp);
    recorder.always(PROBE, Answer::rows([], []));
    recorder.once(INSERT, Answer::Done(2));
    recorder.always(
        "INSERT",
        Answer::failure(2601, "Cannot insert duplicate key"),
    );
    let mut work = two();
    let error = flush(&mut work, &recorder).await.unwrap_err();
    // Nobody knows whose it is, as long as no probe finds the rows.
    assert!(error.is_unique_violation() && error.is_commit_unknown());
    assert_eq!((error.retries(), work.len()), (3, 2));
}

/// A session of SQL Server waits without end, and the old one may hold the keys behind a silent network. Its own value is
/// set back before the transaction ends: the client is the user's.
#[tokio::test]
async fn waits_for_locks_are_bounded_in_doubt() {
    for (own, bound) in [
        ("-1", true),
        ("60000", true),
        ("10000", false),
        ("0", false),
    ] {
        let recorder = Recorder::start().unwrap();
        recorder.once("COMMIT", Answer::HangUp);
        recorder.always(PROBE, Answer::rows([], []));
        recorder.always(WAITS, Answer::text(own));
        let flushed = flush(&mut two(), &recorder).await.unwrap();
        assert_eq!((flushed.rows(), flushed.retries), (2, 1));
        let log = recorder.take();
        let last = by_connection(&log).pop().unwrap();
        let back = format!("SET LOCK_TIMEOUT {own}");
        let within = |what: &[&str], end| {
            let mut sent = vec!["BEGIN".to_owned(), WAITS.to_owned()];
            sent.extend(bound.then(|| "SET LOCK_TIMEOUT 10000".to_owned()));
            sent.extend(what.iter().map(ToString::to_string));
            sent.extend(bound.then(|| back.clone()));
            sent.push(String::from(end));
            sent
        };
        let mut expected = vec![ASK.to_owned()];
        expected.extend(within(&[PROBE], "ROLLBACK"));
        expected.extend(within(&[INSERT], "COMMIT"));
        assert_eq!(last, expected, "{own}");
        // A batch: `sp_executesql` would take the setting back.
        let is_batch = |it: &&Received| matches!(it.request, Request::Batch(_));
        let set = log
            .iter()
            .filter(|it| it.request.text().starts_with("SET LOCK"));
        assert!(
            set.clone().count() == if bound { 4 } else { 0 } && set.clone().all(|it| is_batch(&it))
        );
    }
}

/// A commit that the server answered, if by an error, is not asked for.
#[tokio::test]
async fn a_refused_commit_is_not_in_doubt() {
    let recorder = Recorder::start().unwrap();
    let refused = Answer::failure(3902, "no corresponding BEGIN TRANSACTION");
    recorder.once("COMMIT", refused);
    let mut work = two();
    let error = flush(&mut work, &recorder).await.unwrap_err();
    assert!(!error.is_commit_unknown());
    assert!(!texts(&recorder.take()).contains(&PROBE.to_owned()));

    // One that ends the connection is.
    let recorder = Recorder::start().unwrap();
    recorder.once("COMMIT", log_is_not_available());
    recorder.once(PROBE, Answer::int(1));
    flush(&mut work, &recorder).await.unwrap();
    assert_eq!(by_connection(&recorder.take())[1], ASKED);
}

/// No connection can be made: what is in doubt stays so, what is not wrote nothing.
#[tokio::test]
async fn a_server_that_stays_away_ends_the_flush() {
    for (at, unknown) in [("INSERT", false), ("COMMIT", true)] {
        let recorder = Recorder::start().unwrap();
        recorder.once(at, Answer::HangUp);
        let mut work = two();
        let mut client = connect(&recorder).await;
        let tried = AtomicU32::new(0);
        let refused = || {
            tried.fetch_add(1, Ordering::Relaxed);
            async { Err(refused()) }
        };
        let error = work.flush_with(&mut client, refused).await.unwrap_err();
        assert!(error.is_connection_lost(), "{error}");
        assert_eq!(error.is_commit_unknown(), unknown, "{error}");
        let tried = tried.into_inner();
        assert_eq!(tried, 3, "of four attempts, the first had a client");
        assert_eq!(work.len(), 2);
        recorder.take();

        // The server is back, and the next flush begins where this one ended.
        recorder.once(PROBE, Answer::int(1));
        let flushed = flush(&mut work, &recorder).await.unwrap();
        assert_eq!(flushed.rows(), 2);
        let sent = by_connection(&recorder.take());
        assert_eq!(sent.len(), 1);
        assert_eq!(sent[0] == ASKED, unknown, "{sent:?}");
    }
}

/// One connection cannot be asked about itself; the next flush, over another one, asks first.
#[tokio::test]
async fn a_flush_over_one_client_leaves_the_question_to_the_next() {
    for found in [true, false] {
        let recorder = Recorder::start().unwrap();
        recorder.once("COMMIT", Answer::HangUp);
        let mut work = two();
        let error = work.flush(&mut connect(&recorder).await).await.unwrap_err();
        assert!(error.is_commit_unknown() && error.is_connection_lost());
        assert_eq!((work.len(), error.retries()), (2, 0));
        recorder.take();

        let answer = if found {
            Answer::int(1)
        } else {
            Answer::rows([], [])
        };
        recorder.once(PROBE, answer);
        let flushed = work.flush(&mut connect(&recorder).await).await.unwrap();
        assert_eq!(flushed.rows(), 2);
        assert!(work.is_empty());
        let again = [&ASKED[..], &["BEGIN", WAITS, INSERT, "COMMIT"]].concat();
        let sent = if found { &ASKED[..] } else { &again[..] };
        assert_eq!(texts(&recorder.take()), sent);
        // It is over: the next flush asks for nothing.
        work.add(customer("Ada"));
        work.add(customer("Grace"));
        work.flush(&mut connect(&recorder).await).await.unwrap();
        assert_eq!(texts(&recorder.take()), [ASK, "BEGIN", INSERT, "COMMIT"]);
    }
}

/// The question itself is lost on one connection, and stays open.
#[tokio::test]
async fn a_question_that_is_lost_is_asked_again() {
    let recorder = Recorder::start().unwrap();
    recorder.once("COMMIT", Answer::HangUp);
    recorder.once(PROBE, Answer::HangUp);
    recorder.once(PROBE, Answer::int(1));
    let mut work = two();
    let flushed = flush(&mut work, &recorder).await.unwrap();
    assert_eq!(flushed.rows(), 2);
    let sent = by_connection(&recorder.take());
    assert_eq!(sent[1..], [&ASKED[..4], &ASKED]);

    let mut work = two();
    for at in ["COMMIT", PROBE] {
        recorder.once(at, Answer::HangUp);
        let error = work.flush(&mut connect(&recorder).await).await.unwrap_err();
        assert!(error.is_commit_unknown(), "{at}: {error}");
    }
    recorder.once(PROBE, Answer::int(1));
    work.flush(&mut connect(&recorder).await).await.unwrap();
}

/// A flush that is dropped at its commit is in doubt, too.
#[tokio::test]
async fn a_flush_dropped_at_its_commit_is_asked_for() {
    let recorder = Recorder::start().unwrap();
    let mut work = two();
    let mut client = connect(&recorder).await;
    {
        let flush = work.flush(&mut client);
        let committed = async {
            while !texts(&recorder.log()).contains(&"COMMIT".to_owned()) {
                tokio::task::yield_now().await;
            }
        };
        recorder.once("COMMIT", Answer::Silence);
        tokio::select! {
            biased;
            () = committed => {}
            _ = flush => panic!("there is no answer"),
        }
    }
    assert_eq!(work.len(), 2);
    recorder.take();
    recorder.once(PROBE, Answer::int(1));
    let flushed = work.flush(&mut connect(&recorder).await).await.unwrap();
    assert_eq!(flushed.rows(), 2);
    assert_eq!(texts(&recorder.take()), ASKED);
}

/// A transaction that is open on the client, or another server, ends no doubt.
#[tokio::test]
async fn a_client_that_cannot_be_asked_leaves_the_doubt() {
    let recorder = Recorder::start().unwrap();
    recorder.once("COMMIT", Answer::HangUp);
    let mut work = two();
    work.flush(&mut connect(&recorder).await).await.unwrap_err();
    let mut client = connect(&recorder).await;
    client.begin_transaction().await.unwrap();
    let error = work.flush(&mut client).await.unwrap_err();
    assert!(error.is_connection_state() && error.is_commit_unknown());
    client.rollback_transaction().await.unwrap();
    recorder.take();
    recorder.once(PROBE, Answer::int(1));
    work.flush(&mut client).await.unwrap();
    assert_eq!(texts(&recorder.take()), ASKED);
}

#[tokio::test]
async fn rows_that_are_added_after_an_unknown_commit_are_refused() {
    let recorder = Recorder::start().unwrap();
    recorder.once("COMMIT", Answer::HangUp);
    let mut work = work();
    work.add(customer("Ada"));
    work.flush(&mut connect(&recorder).await).await.unwrap_err();
    work.add(customer("Grace"));
    recorder.take();
    let error = work.flush(&mut connect(&recorder).await).await.unwrap_err();
    assert!(error.is_plan(), "{error}");
    assert_eq!(
        (recorder.take().len() <= 1, work.len()),
        (true, 2),
        "only the login"
    );
}
