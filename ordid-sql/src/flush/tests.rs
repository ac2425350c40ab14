use proptest::prelude::*;

use super::{
    Failure::{Duplicate, Lost, Refused, Transient},
    *,
};
use crate::Action;

/// A plan of so many chunks, each of one row.
fn plan(chunks: usize) -> Plan {
    match chunks {
        0 => Plan::default(),
        _ => Plan::of_rows(&[(Action::Insert, 0, chunks)], 1),
    }
}

/// As [`plan`], of rows that are updated.
fn updates(chunks: usize) -> Plan {
    Plan::of_rows(&[(Action::Update, 0, chunks)], 1)
}

const RETRY: Retry = Retry::DEFAULT.with_attempts(3).with_jitter(false);

/// What an adapter reports.
#[derive(Debug, Clone, Copy)]
enum Report {
    Succeeded,
    Failed(Failure),
    Probed(bool),
}

use Report::{Failed, Probed, Succeeded};

impl Report {
    fn to(self, flush: &mut Flush) {
        match self {
            Succeeded => flush.succeeded(),
            Failed(failure) => flush.failed(failure),
            Probed(found) => flush.probed(found),
        }
    }
}

/// Steps in short: a letter each, and for the end a word.
fn letter(step: &Step) -> &'static str {
    match step {
        Step::Begin => "B",
        Step::Record => "I",
        Step::Send(_) => "s",
        Step::Read => "r",
        Step::Commit => "C",
        Step::Rollback => "R",
        Step::Probe => "P",
        Step::Sleep(_) => "z",
        Step::Done { outcome } => match outcome {
            Outcome::Committed => "committed",
            Outcome::Nothing => "nothing",
            Outcome::Unknown => "unknown",
        },
    }
}

/// Runs a flush to its end: reports these, each at the step of its number, and success elsewhere.
fn run(mut flush: Flush, reports: &[(usize, Report)]) -> String {
    let mut steps = Vec::new();
    loop {
        let step = flush.step();
        assert_eq!(flush.step(), step, "asking changes nothing");
        let report = reports.iter().find(|(number, _)| *number == steps.len());
        steps.push(letter(&step));
        if let Step::Done { .. } = step {
            for report in [Succeeded, Failed(Lost), Probed(true)] {
                report.to(&mut flush);
                assert_eq!(flush.step(), step, "over is over");
            }
            return steps.join(" ");
        }
        report
            .map_or(Succeeded, |(_, report)| *report)
            .to(&mut flush);
        assert!(steps.len() < 100, "{steps:?}");
    }
}

#[test]
fn the_machine_walks_all_chunks_and_commits() {
    let plan = plan(3);
    let expected: Vec<_> = plan.chunks().collect();
    let mut flush = Flush::new(plan);
    assert_eq!((flush.step(), flush.upcoming()), (Step::Begin, None));
    flush.succeeded();
    for (position, chunk) in expected.iter().enumerate() {
        assert_eq!(flush.step(), Step::Send(chunk.clone()));
        assert_eq!(flush.upcoming().as_ref(), expected.get(position + 1));
        flush.succeeded();
    }
    assert_eq!(flush.step(), Step::Commit);
    assert_eq!(run(flush, &[]), "C committed");
}

#[test]
fn without_rows_there_is_nothing_to_do() {
    assert_eq!(run(Flush::new(plan(0)), &[]), "committed");
    assert_eq!(run(Flush::resumed(plan(0)), &[]), "committed");
}

#[test]
fn rows_are_read_between_the_last_of_them_and_the_commit() {
    for (failure, expected) in [
        (None, "B s s r C committed"),
        (Some(Refused), "B s s r R nothing"),
        (Some(Transient), "B s s r R z B s s r C committed"),
        (Some(Lost), "B s s r R z B s s r C committed"),
    ] {
        let flush = Flush::new(plan(2)).with_reading().with_retry(RETRY);
        let failed = failure.map(|it| (3, Failed(it)));
        let reports: Vec<_> = failed.into_iter().collect();
        assert_eq!(run(flush, &reports), expected);
    }
    let flush = Flush::in_transaction(plan(1)).with_reading();
    assert_eq!(run(flush, &[]), "B s r C committed");
}

/// Each failure at each step of a flush of two chunks.
#[test]
fn each_failure_at_each_step_has_its_expected_outcome() {
    for (step, failure, expected) in [
        // Begin.
        (0, Refused, "B nothing"),
        (0, Duplicate, "B nothing"),
        (0, Transient, "B z B s s C committed"),
        (0, Lost, "B z B s s C committed"),
        // The first chunk.
        (1, Refused, "B s R nothing"),
        (1, Duplicate, "B s R nothing"),
        (1, Transient, "B s R z B s s C committed"),
        (1, Lost, "B s R z B s s C committed"),
        // The second.
        (2, Refused, "B s s R nothing"),
        (2, Duplicate, "B s s R nothing"),
        (2, Transient, "B s s R z B s s C committed"),
        (2, Lost, "B s s R z B s s C committed"),
        // COMMIT: an answer tells that nothing was written. After a lost one, nothing was found.
        (3, Refused, "B s s C R nothing"),
        (3, Duplicate, "B s s C R nothing"),
        (3, Transient, "B s s C R z B s s C committed"),
        (3, Lost, "B s s C z P B s s C committed"),
    ] {
        let flush = Flush::new(plan(2)).with_retry(RETRY);
        assert_eq!(
            run(flush, &[(step, Failed(failure))]),
            expected,
            "{failure:?} at {step}"
        );
        // At one attempt.
        let once = match (step, failure) {
            (3, Lost) => "B s s C P unknown".to_owned(),
            (0, _) => "B nothing".to_owned(),
            _ => format!("B {}R nothing", ["s ", "s s ", "s s C "][step - 1]),
        };
        let flush = Flush::new(plan(2));
        assert_eq!(run(flush, &[(step, Failed(failure))]), once);
        // In the user's transaction.
        let inside = match step {
            0 => "B nothing".to_owned(),
            _ => format!("B {}R nothing", ["s ", "s s ", "s s C "][step - 1]),
        };
        let flush = Flush::in_transaction(plan(2)).with_retry(RETRY);
        assert_eq!(run(flush, &[(step, Failed(failure))]), inside);
        // On one connection.
        let single = match (step, failure) {
            (3, Lost) => "B s s C unknown",
            (_, Lost) => &inside,
            _ => expected,
        };
        let flush = Flush::new(plan(2)).with_retry(RETRY).on_one_connection();
        assert_eq!(run(flush, &[(step, Failed(failure))]), single);
    }
}

#[test]
fn a_failed_rollback_counts_as_a_rollback() {
    for failure in [Refused, Duplicate, Transient, Lost] {
        let flush = Flush::new(plan(1)).with_retry(RETRY);
        let reports = [(1, Failed(Refused)), (2, Failed(failure))];
        assert_eq!(run(flush, &reports), "B s R nothing");
        let flush = Flush::new(plan(1)).with_retry(RETRY);
        let reports = [(1, Failed(Transient)), (2, Failed(failure))];
        assert_eq!(run(flush, &reports), "B s R z B s C committed");
    }
}

#[test]
fn attempts_come_to_an_end() {
    let flush = || Flush::new(plan(1)).with_retry(RETRY);
    let reports = [
        (1, Failed(Transient)),
        (5, Failed(Lost)),
        (9, Failed(Transient)),
    ];
    assert_eq!(run(flush(), &reports), "B s R z B s R z B s R nothing");
    // The last COMMIT is probed, but no attempt is left.
    let reports = [
        (1, Failed(Transient)),
        (5, Failed(Lost)),
        (10, Failed(Lost)),
    ];
    let ended = "B s R z B s R z B s C P ";
    assert_eq!(run(flush(), &reports), format!("{ended}unknown"));
    let found = [&reports[..], &[(11, Probed(true))]].concat();
    assert_eq!(run(flush(), &found), format!("{ended}committed"));
    // Probes that fail count.
    let reports = [(2, Failed(Lost)), (4, Failed(Lost)), (6, Failed(Transient))];
    assert_eq!(run(flush(), &reports), "B s C z P z P unknown");
    let reports = [(2, Failed(Lost)), (4, Failed(Refused))];
    assert_eq!(run(flush(), &reports), "B s C z P unknown");
}

/// The rows were not there, and then they were.
#[test]
fn a_duplicate_after_an_unknown_commit_is_probed() {
    let flush = || Flush::new(plan(2)).with_retry(RETRY);
    let lost = [(3, Failed(Lost)), (5, Probed(false))];
    let with = |more: &[_]| [&lost[..], more].concat();
    for at in [7, 8] {
        let sent = ["s", "s s"][at - 7];
        let begun = format!("B s s C z P B {sent} R P");
        let found = with(&[(at, Failed(Duplicate)), (at + 2, Probed(true))]);
        assert_eq!(run(flush(), &found), format!("{begun} committed"));
        // Nothing found contradicts the duplicate, and is asked again.
        let absent = with(&[(at, Failed(Duplicate)), (at + 4, Probed(true))]);
        assert_eq!(run(flush(), &absent), format!("{begun} z P committed"));
        let twice = with(&[(at, Failed(Duplicate)), (2 * at - 1, Failed(Duplicate))]);
        let ended = format!("{begun} z P B {sent} R P unknown");
        assert_eq!(run(flush(), &twice), ended);
        // What proves nothing of the older COMMIT leaves it open.
        let absent = with(&[(at, Failed(Refused)), (at + 2, Probed(false))]);
        assert_eq!(run(flush(), &absent), format!("{begun} unknown"));
        let found = with(&[(at, Failed(Refused)), (at + 2, Probed(true))]);
        assert_eq!(run(flush(), &found), format!("{begun} committed"));
        // A probe that fails is tried again, but nothing else.
        let again = with(&[(at, Failed(Duplicate)), (at + 2, Failed(Lost))]);
        assert_eq!(run(flush(), &again), format!("{begun} z P unknown"));
    }
    // The database took all rows once more, and then refused to commit them: the older COMMIT may be why.
    let refused = with(&[(9, Failed(Refused))]);
    assert_eq!(run(flush(), &refused), "B s s C z P B s s C R P unknown");
    let found = [&refused[..], &[(11, Probed(true))]].concat();
    assert_eq!(run(flush(), &found), "B s s C z P B s s C R P committed");
    let conflict = with(&[(9, Failed(Transient)), (12, Probed(true))]);
    assert_eq!(
        run(flush(), &conflict),
        "B s s C z P B s s C R z P committed"
    );
}

#[test]
fn a_flush_with_an_unresolved_commit_begins_with_a_probe() {
    let flush = || Flush::resumed(plan(1)).with_retry(RETRY);
    assert_eq!(run(flush(), &[(0, Probed(true))]), "P committed");
    assert_eq!(run(flush(), &[]), "P B s C committed");
    let reports = [(2, Failed(Duplicate)), (4, Probed(true))];
    assert_eq!(run(flush(), &reports), "P B s R P committed");
    let reports = [(2, Failed(Refused)), (4, Probed(false))];
    assert_eq!(run(flush(), &reports), "P B s R P unknown");
    assert_eq!(run(flush(), &[(0, Failed(Refused))]), "P unknown");
}

#[test]
fn a_flush_that_may_not_be_sent_twice_only_probes() {
    let flush = || {
        let mut flush = Flush::new(plan(1)).with_retry(RETRY);
        flush.cannot_repeat();
        flush
    };
    assert_eq!(
        run(flush(), &[(1, Failed(Transient))]),
        "B s R z B s C committed"
    );
    let lost = (2, Failed(Lost));
    assert_eq!(run(flush(), &[lost]), "B s C z P z P unknown");
    assert_eq!(
        run(flush(), &[lost, (6, Probed(true))]),
        "B s C z P z P committed"
    );
    // Its marker row may have been removed.
    let mut recorded = Flush::new(plan(1)).with_retry(RETRY).with_record();
    recorded.cannot_repeat();
    assert_eq!(
        run(recorded, &[(3, Failed(Lost))]),
        "B I s C z P z P unknown"
    );
}

#[test]
fn a_marker_row_resolves_nothing_where_locks_are_local() {
    let mut flush = Flush::new(updates(1)).with_retry(RETRY);
    flush.locks_are_local();
    let reports = [(3, Failed(Lost)), (8, Failed(Refused))];
    assert_eq!(
        run(flush.clone(), &reports),
        "B I s C z P B I s R P unknown"
    );
    let reports = [(3, Failed(Lost)), (9, Failed(Refused)), (11, Probed(true))];
    assert_eq!(run(flush, &reports), "B I s C z P B I s C R P committed");
}

/// Updates are known by a row of the flush's own, which comes first.
#[test]
fn a_flush_with_updates_writes_a_marker_row() {
    let flush = || Flush::new(updates(2)).with_retry(RETRY);
    assert!(flush().records() && !Flush::new(plan(2)).records());
    assert_eq!(run(flush(), &[]), "B I s s C committed");
    // No table for it, for one.
    assert_eq!(run(flush(), &[(1, Failed(Refused))]), "B I R nothing");
    let deadlock = [(2, Failed(Transient))];
    assert_eq!(run(flush(), &deadlock), "B I s R z B I s s C committed");
    // The older COMMIT landed while the next attempt was on its way.
    let lost = [(4, Failed(Lost)), (6, Probed(false))];
    let taken = [&lost[..], &[(8, Failed(Duplicate)), (10, Probed(true))]].concat();
    assert_eq!(run(flush(), &taken), "B I s s C z P B I R P committed");
    // Its key was free: nothing is left of the older COMMIT.
    let refused = [&lost[..], &[(9, Failed(Refused))]].concat();
    assert_eq!(run(flush(), &refused), "B I s s C z P B I s R nothing");
    // Not in the user's transaction, which nobody looks for.
    assert_eq!(
        run(Flush::in_transaction(updates(1)), &[]),
        "B s C committed"
    );
    let rest = Plan::of_rows(&[(Action::Insert, 0, 1), (Action::Delete, 0, 1)], 1);
    assert!(Flush::new(rest).records());
    let fixed = Plan::of_rows(
        &[(Action::Insert, 0, 1), (Action::FixUp { parent: 0 }, 0, 1)],
        1,
    );
    assert!(!Flush::new(fixed.clone()).records());
    // Unless it is asked to; but not in the user's transaction.
    let asked = Flush::new(fixed.clone()).with_record();
    assert_eq!(run(asked, &[]), "B I s s C committed");
    let inside = Flush::in_transaction(fixed).with_record();
    assert_eq!(run(inside, &[]), "B s s C committed");
}

/// Nothing can be asked for, so nothing is sent again.
#[test]
fn a_flush_of_updates_without_a_marker_row_ends_where_its_commit_is_lost() {
    let flush = || Flush::new(updates(1)).with_retry(RETRY).without_record();
    assert!(!flush().records() && !flush().can_probe());
    assert_eq!(run(flush(), &[]), "B s C committed");
    assert_eq!(run(flush(), &[(2, Failed(Lost))]), "B s C unknown");
    // Before that, and where the database says that it has rolled back, it is as any.
    for (step, failure) in [(1, Transient), (2, Transient)] {
        assert!(run(flush(), &[(step, Failed(failure))]).ends_with("R z B s C committed"));
    }
    assert_eq!(
        run(flush(), &[(1, Failed(Lost))]),
        "B s R z B s C committed"
    );
    let resumed = Flush::resumed(updates(1))
        .with_retry(RETRY)
        .without_record();
    assert_eq!(run(resumed, &[]), "unknown");
    // A key of its own rows tells of a flush that only inserts.
    let inserts = Flush::new(plan(1)).with_retry(RETRY).without_record();
    assert!(inserts.can_probe());
    let lost = [(2, Failed(Lost)), (4, Probed(true))];
    assert_eq!(run(inserts, &lost), "B s C z P committed");
}

/// What is left of an earlier flush is asked for over the one connection that there is, and over no other.
#[test]
fn an_unknown_commit_ends_the_flush_if_the_connection_cannot_be_replaced() {
    let flush = || {
        let flush = Flush::resumed(plan(1)).with_retry(RETRY);
        flush.on_one_connection()
    };
    assert_eq!(run(flush(), &[(0, Probed(true))]), "P committed");
    assert_eq!(run(flush(), &[(0, Failed(Lost))]), "P unknown");
    assert_eq!(
        run(flush(), &[(0, Failed(Transient))]),
        "P z P B s C committed"
    );
    for (step, expected) in [
        (1, "P B unknown"),
        (2, "P B s R unknown"),
        (3, "P B s C unknown"),
    ] {
        assert_eq!(run(flush(), &[(step, Failed(Lost))]), expected);
    }
    let taken = [(2, Failed(Duplicate)), (4, Probed(true))];
    assert_eq!(run(flush(), &taken), "P B s R P committed");
}

#[test]
fn delays_grow_and_attempts_are_counted() {
    let mut flush = Flush::new(plan(1)).with_retry(RETRY);
    let mut delays = Vec::new();
    while !matches!(flush.step(), Step::Done { .. }) {
        if let Step::Sleep(delay) = flush.step() {
            delays.push(delay.as_millis());
            flush.succeeded();
        } else {
            flush.failed(Transient);
        }
    }
    assert_eq!((delays, flush.retries()), (vec![50, 100], 2));
}

/// A database that loses answers, fails, and commits late.
#[derive(Debug, Default)]
struct World {
    /// Whether the rows are there.
    rows: bool,
    /// A COMMIT that was not read yet, and whether it will be carried out.
    pending: Option<bool>,
    /// How many times rows came to be there.
    commits: u32,
    begins: u32,
    lost_commits: u32,
    /// Whether a COMMIT was refused, and whether the marker row was taken after that, which contradicts it.
    is_refused: bool,
    is_contradicted: bool,
}

impl World {
    fn commit(&mut self) {
        assert!(!self.rows, "the keys are taken");
        self.rows = true;
        self.commits += 1;
    }

    fn settle(&mut self) {
        if self.pending.take() == Some(true) {
            self.commit();
        }
    }

    /// Carries a step out, as a number of the script decides.
    fn answer(&mut self, step: &Step, is_last: bool, records: bool, script: u8) -> Report {
        if script & 0x80 != 0 {
            self.settle();
        }
        let failure = [Transient, Lost, Refused][usize::from(script % 3)];
        let fails = script & 0x40 != 0;
        match step {
            Step::Begin => {
                self.begins += 1;
                if fails { Failed(failure) } else { Succeeded }
            }
            Step::Send(_) | Step::Record if fails && script & 0x20 == 0 => Failed(failure),
            // An update is of no new key, but may want a value that is taken.
            Step::Send(_) if records && fails => Failed(Duplicate),
            Step::Send(_) if records => Succeeded,
            Step::Send(_) | Step::Record => {
                // Before the last of them, rows on their way may not have been answered yet.
                if !is_last && *step != Step::Record && script & 0x10 != 0 {
                    return Succeeded;
                }
                self.settle();
                if self.rows || fails {
                    self.is_contradicted |= *step == Step::Record && self.is_refused;
                    Failed(Duplicate)
                } else {
                    Succeeded
                }
            }
            Step::Commit => {
                assert!(self.pending.is_none());
                match (fails, script % 8) {
                    (false, _) => {
                        self.commit();
                        Succeeded
                    }
                    (true, way @ 0..3) => {
                        self.is_refused = true;
                        Failed(if way == 2 { Refused } else { Transient })
                    }
                    (true, way) => {
                        self.lost_commits += 1;
                        match way {
                            3 => self.commit(),
                            4 => {}
                            _ => self.pending = Some(way == 7),
                        }
                        Failed(Lost)
                    }
                }
            }
            Step::Probe if fails => Failed(failure),
            Step::Probe => Probed(self.rows),
            Step::Rollback if fails => Failed(failure),
            Step::Read if fails => Failed(failure),
            Step::Read | Step::Rollback | Step::Sleep(_) => Succeeded,
            Step::Done { .. } => unreachable!("it is over"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    /// Whatever fails, is lost or comes late: the rows are there once or never, and what the flush says
    /// of it is true, then and later.
    #[test]
    fn the_outcome_of_a_flush_matches_the_database(
        script in proptest::collection::vec(any::<u8>(), 0..60),
        chunks in 1_usize..4,
        attempts in 1_u32..6,
        resumed in proptest::option::of(0_u8..4),
        changes: bool,
        asked: bool,
        one_connection: bool,
        reads: bool,
    ) {
        let plan = if changes { updates } else { plan };
        let retry = RETRY.with_attempts(attempts);
        let mut world = World::default();
        let flush = match resumed {
            None => Flush::new(plan(chunks)),
            Some(way) => {
                // An earlier flush left a COMMIT behind.
                match way {
                    0 => world.commit(),
                    1 => {}
                    _ => world.pending = Some(way == 2),
                }
                world.lost_commits = 1;
                Flush::resumed(plan(chunks))
            }
        };
        let mut flush = flush.with_retry(retry);
        if asked {
            flush = flush.with_record();
        }
        if one_connection {
            flush = flush.on_one_connection();
        }
        if reads {
            flush = flush.with_reading();
        }
        let records = flush.records();
        let mut script = script.into_iter().chain(std::iter::repeat(0));
        let outcome = loop {
            let step = flush.step();
            if let Step::Done { outcome } = step {
                break outcome;
            }
            let is_last = flush.upcoming().is_none();
            let number = script.next().unwrap_or_default();
            world.answer(&step, is_last, records, number).to(&mut flush);
            prop_assert!(world.begins <= attempts + u32::from(resumed.is_some()));
        };
        prop_assert_eq!(flush.is_unresolved(), outcome == Outcome::Unknown);
        match outcome {
            Outcome::Committed => prop_assert!(world.rows && world.pending.is_none()),
            // Nor will they be there later.
            Outcome::Nothing => prop_assert!(!world.rows && world.pending.is_none()),
            Outcome::Unknown => prop_assert!(world.lost_commits > 0 || world.is_contradicted),
        }
        world.settle();
        prop_assert!(world.commits <= 1);
    }
}
