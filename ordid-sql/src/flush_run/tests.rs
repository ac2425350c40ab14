use std::io;

use super::*;
use crate::{Action, DriverError, Place};

type Run = FlushRun<io::Error>;

const RETRY: Retry = Retry::DEFAULT.with_attempts(2).with_jitter(false);

fn plan(action: Action) -> Plan {
    Plan::of_rows(&[(action, 0, 2)], 1)
}

fn inserts(retry: Retry, unresolved: Option<&UnresolvedCommit>) -> Run {
    Run::new(plan(Action::Insert), retry, Markers::Changes, unresolved)
}

fn driver(text: &'static str, failure: Failure) -> DriverError<io::Error> {
    DriverError::new(io::Error::other(text), failure)
}

fn lost() -> FlushError<io::Error> {
    FlushError::commit(driver("cut off", Failure::Lost))
}

fn duplicate(chunk: &Chunk) -> FlushError<io::Error> {
    let mut source = driver("taken", Failure::Duplicate);
    source.refuses_a_row = true;
    let place = Place::new(chunk.action, "orders", chunk.number, chunk.rows.clone());
    FlushError::statement(source, place)
}

/// Carries the steps out up to COMMIT, which is not sent.
fn send_all(run: &mut Run) {
    assert_eq!(run.step(), Step::Begin);
    run.restart();
    loop {
        match run.step() {
            Step::Send(chunk) => {
                run.count_all("orders", &chunk, 1, Duration::ZERO);
                run.report("orders", &chunk, &mut None);
            }
            Step::Commit => return,
            Step::Begin | Step::Record => {}
            other => panic!("{other:?}"),
        }
        run.succeeded();
    }
}

fn end(
    run: Run,
    unresolved: &mut Option<UnresolvedCommit>,
) -> Result<Flushed, FlushFailure<io::Error>> {
    let Step::Done { outcome } = run.step() else {
        panic!("{:?}", run.step());
    };
    run.ended(outcome, unresolved)
}

/// Waits, which must come next.
fn wait(run: &mut Run) {
    let Step::Sleep(delay) = run.step() else {
        panic!("{:?}", run.step());
    };
    run.waits(delay);
    run.succeeded();
}

/// A flush whose COMMIT is under way.
fn committing() -> (Run, Option<UnresolvedCommit>) {
    let mut unresolved = None;
    let mut run = inserts(RETRY, None);
    send_all(&mut run);
    run.commits(&mut unresolved);
    (run, unresolved)
}

fn next_chunk(run: &Run) -> Chunk {
    match run.step() {
        Step::Send(chunk) => chunk,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_committed_flush_reports_its_rows_and_leaves_nothing_unresolved() {
    let (mut run, mut unresolved) = committing();
    assert!(unresolved.is_some(), "whoever drops it here does not know");
    run.committed(Ok(()), &mut unresolved);
    let flushed = end(run, &mut unresolved).unwrap();
    assert_eq!((flushed.rows(), flushed.retries), (2, 0));
    assert_eq!(flushed.tables[0].statements, 2);
    assert!(unresolved.is_none());
}

#[test]
fn the_next_flush_probes_a_dropped_one() {
    let (run, mut unresolved) = committing();
    let id = run.id();
    drop(run);

    let mut run = inserts(RETRY, unresolved.as_ref());
    assert_eq!((run.step(), run.id()), (Step::Probe, id));
    run.probes();
    run.probed(Ok(true));
    // Nothing was sent by this one.
    assert_eq!(end(run, &mut unresolved).unwrap().rows(), 2);
    assert!(unresolved.is_none());
}

#[test]
fn a_refused_commit_leaves_nothing_unresolved() {
    let (mut run, mut unresolved) = committing();
    let refused = FlushError::commit(driver("deferred constraint", Failure::Refused));
    run.committed(Err(refused), &mut unresolved);
    assert!(unresolved.is_none());
    assert_eq!(run.step(), Step::Rollback);
    run.succeeded();
    let error = end(run, &mut unresolved).unwrap_err().error;
    assert!(!error.is_commit_unknown());
    assert_eq!(
        error.to_string(),
        "cannot commit, nothing was written: deferred constraint"
    );
}

#[test]
fn an_unknown_commit_reports_the_loss_that_caused_it() {
    let (mut run, mut unresolved) = committing();
    run.committed(Err(lost()), &mut unresolved);
    assert!(run.has_lost_connection());
    wait(&mut run);
    assert_eq!(run.step(), Step::Probe);
    run.probes();
    assert!(!run.has_lost_connection(), "this is another connection");
    run.probed(Err(FlushError::probe(driver(
        "no such table",
        Failure::Refused,
    ))));
    let failed = end(run, &mut unresolved).unwrap_err();
    assert!(failed.error.is_commit_unknown());
    assert!(failed.error.to_string().contains(": cut off"));
    assert!(unresolved.is_some(), "the next flush has to ask");
}

#[test]
fn a_commit_stays_unresolved_if_its_rows_are_refused_and_missing() {
    let (mut run, mut unresolved) = committing();
    run.committed(Err(lost()), &mut unresolved);
    wait(&mut run);
    run.probes();
    run.probed(Ok(false));
    assert_eq!(run.step(), Step::Begin);
    run.restart();
    run.succeeded();
    let chunk = next_chunk(&run);
    run.failed(duplicate(&chunk), Some(chunk.clone()));
    assert_eq!(run.step(), Step::Rollback);
    run.succeeded();
    assert_eq!(run.step(), Step::Probe, "the duplicate may be its own");
    run.probes();
    run.probed(Ok(false));
    let failed = end(run, &mut unresolved).unwrap_err();
    assert!(unresolved.is_some() && failed.error.is_commit_unknown());
    // Why they were refused is what helps; but nobody says that nothing was written.
    assert!(failed.rows.is_none());
    let text = failed.error.to_string();
    assert!(text.starts_with("the answer to COMMIT was lost"), "{text}");
    assert!(text.contains(": taken"), "{text}");
}

#[test]
fn a_refusal_is_reported_rather_than_the_failed_probe() {
    let mut unresolved = Some(UnresolvedCommit {
        id: Uuid::generate(),
        flushed: Flushed::default(),
        markers: Markers::Changes,
        has_changed: false,
    });
    let mut run = inserts(Retry::NONE, unresolved.as_ref());
    run.probes();
    run.probed(Ok(false));
    run.restart();
    run.succeeded();
    let chunk = next_chunk(&run);
    run.failed(duplicate(&chunk), Some(chunk));
    run.succeeded();
    run.probes();
    run.probed(Err(FlushError::probe(driver("cut off", Failure::Lost))));
    let failed = end(run, &mut unresolved).unwrap_err();
    assert!(failed.error.is_commit_unknown() && failed.rows.is_none());
    assert!(failed.error.to_string().contains(": taken"));
    assert!(unresolved.is_some());
}

#[test]
fn inside_a_transaction_nothing_is_unresolved() {
    let id = Uuid::generate();
    let mut unresolved = Some(UnresolvedCommit {
        id,
        flushed: Flushed::default(),
        markers: Markers::Changes,
        has_changed: false,
    });
    for outcome in [
        Ok(()),
        Err(FlushError::release(driver("cut off", Failure::Lost))),
    ] {
        let is_released = outcome.is_ok();
        let mut run = Run::inside(plan(Action::Update));
        assert!(!run.records() && !run.is_own());
        send_all(&mut run);
        run.commits(&mut unresolved);
        run.committed(outcome, &mut unresolved);
        if run.step() == Step::Rollback {
            run.succeeded();
        }
        match end(run, &mut unresolved) {
            Ok(flushed) => assert_eq!((flushed.updated(), is_released), (2, true)),
            Err(failed) => assert!(!failed.error.is_commit_unknown() && !is_released),
        }
        // What an earlier flush of its own left is not answered by this.
        assert_eq!(
            unresolved.as_ref().map(|unresolved| unresolved.id),
            Some(id)
        );
    }
}

#[test]
fn a_flush_with_a_journal_uses_its_attempt_id() {
    let attempt = Attempt {
        id: Uuid::generate(),
        in_doubt: false,
        is_marked: false,
    };
    let run = inserts(RETRY, None).with_attempt(&attempt);
    assert_eq!(run.id(), attempt.id);
    let earlier = UnresolvedCommit::of_earlier_run(&attempt, &Plan::default(), &[]);
    let later = Attempt {
        id: Uuid::generate(),
        in_doubt: true,
        is_marked: false,
    };
    let run = inserts(RETRY, Some(&earlier)).with_attempt(&later);
    assert_eq!(run.id(), earlier.id, "the older one is asked for");
}

#[test]
fn a_requested_marker_row_is_written() {
    for (action, expected) in [
        (Action::Insert, [false, false, true]),
        (Action::Update, [false, true, true]),
    ] {
        let markers = [Markers::None, Markers::Changes, Markers::All];
        let records = markers.map(|it| Run::new(plan(action), RETRY, it, None).records());
        assert_eq!(records, expected, "{action:?}");
    }
}

#[test]
fn a_lost_connection_ends_a_flush_that_has_only_one() {
    let mut run = inserts(RETRY, None).on_one_connection();
    run.restart();
    run.failed(FlushError::begin(driver("cut off", Failure::Lost)), None);
    let error = end(run, &mut None).unwrap_err().error;
    assert!(error.is_connection_lost() && !error.is_commit_unknown());
    assert_eq!(error.retries(), 0);
}

#[test]
fn giving_up_ends_the_flush() {
    let mut run = inserts(RETRY, None);
    run.restart();
    run.give_up();
    let error = end(run, &mut None).unwrap_err().error;
    assert_eq!(
        error.to_string(),
        "cannot begin the flush, nothing was written"
    );
}

#[test]
fn an_attempt_without_a_connection_fails() {
    let refused = || FlushError::connect(io::Error::other("refused"));
    let mut run = inserts(RETRY, None);
    run.unconnected(refused());
    wait(&mut run);
    assert_eq!(run.step(), Step::Begin);
    run.unconnected(refused());
    let error = end(run, &mut None).unwrap_err().error;
    assert!(error.is_connection_lost() && !error.is_commit_unknown());
    assert_eq!(error.retries(), 1);
    // What is to be asked for stays unknown.
    let (run, mut unresolved) = committing();
    drop(run);
    let mut run = inserts(Retry::NONE, unresolved.as_ref());
    assert_eq!(run.step(), Step::Probe);
    run.unconnected(refused());
    let error = end(run, &mut unresolved).unwrap_err().error;
    assert!(error.is_commit_unknown() && unresolved.is_some());
    // Nothing to write needs none.
    let mut run = Run::new(Plan::default(), Retry::NONE, Markers::Changes, None);
    run.unconnected(refused());
    assert_eq!(end(run, &mut None).unwrap().rows(), 0);
}
