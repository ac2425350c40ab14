//! Tests of flushes whose connection is lost before COMMIT or during it, the same for both engines.
//!
//! An engine implements [`Peer`]: how a connection fails there, and which statements a step is. The tests are written
//! for it by `lost_commits!`.

use ordid_sql::Flushed;

/// The unit of work that is flushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Two rows are inserted.
    Inserts,
    /// The same, `with_record`: rows may be gone by the time when they are asked for.
    Recorded,
    /// A row is changed. It was there before, so only the marker row tells.
    Change,
}

/// The script of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// It is lost at the statement that writes.
    LosesWrite,
    /// The answer to COMMIT is lost.
    LosesCommit,
    /// The question whether the flush was committed is lost.
    LosesQuestion,
    /// It cannot be made.
    IsRefused,
    /// The flush is found.
    Finds,
    /// The flush is not found.
    FindsNothing,
    /// The flush is not found, and then refused as a duplicate: the old COMMIT landed late. Now it is found.
    FindsLate,
}

/// The statements that are sent, without those that open the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Begin,
    Record,
    Write,
    Commit,
    Rollback,
    /// The question whether the flush was committed.
    Ask,
    /// The same, without an answer.
    AskInVain,
}

/// An engine's recorder.
pub(crate) trait Peer: Sized {
    /// In how many ways a connection is lost.
    const WAYS: usize;

    /// What a connection sends before it is used; `None` if nothing is sent over one that is refused.
    const CONNECT: &'static str;
    const REFUSED: Option<&'static str>;

    /// Starts a peer whose connections meet these events, one after the other.
    fn start(kind: Kind, events: &[Event], way: usize) -> Self;

    /// Flushes over as many connections as it takes.
    fn flush(&self) -> Flushed;

    /// Returns the statements of a step.
    fn texts(kind: Kind, step: Step) -> Vec<&'static str>;

    /// Returns what was sent.
    fn sent(&self) -> Vec<String>;

    /// Returns the first parameter, each time that this statement was sent.
    fn keys(&self, text: &str) -> Vec<Vec<u8>>;
}

/// Flushes over connections that meet these events, and checks what each of them sends.
pub(crate) fn check<P: Peer>(kind: Kind, retries: u32, connections: &[(Event, &[Step])]) {
    let events: Vec<_> = connections.iter().map(|(event, _)| *event).collect();
    for way in 0..P::WAYS {
        let peer = P::start(kind, &events, way);
        let flushed = peer.flush();
        let rows = (flushed.rows(), flushed.updated() + flushed.deleted());
        let expected = if kind == Kind::Change { (0, 1) } else { (2, 0) };
        assert_eq!((rows, flushed.retries), (expected, retries));
        assert_eq!(flushed.tables.len(), 1);

        let mut sent = Vec::new();
        for (event, steps) in connections {
            match event {
                Event::IsRefused => sent.extend(P::REFUSED),
                _ => sent.push(P::CONNECT),
            }
            sent.extend(steps.iter().flat_map(|step| P::texts(kind, *step)));
        }
        assert_eq!(peer.sent(), sent);

        // All attempts have the same keys, and the question is for the first of them.
        let key = match kind {
            Kind::Inserts => Step::Write,
            Kind::Recorded | Kind::Change => Step::Record,
        };
        let texts = [key, Step::AskInVain].map(|step| *P::texts(kind, step).last().expect("one"));
        let keys = texts.map(|text| peer.keys(text)).concat();
        assert!(keys.len() >= 2, "{keys:?}");
        assert!(keys.windows(2).all(|pair| pair[0] == pair[1]), "{keys:?}");
    }
}

/// Writes the tests of a [`Peer`].
macro_rules! lost_commits {
    ($peer:ty) => {
        mod lost_commits {
            use super::*;
            use crate::lost_commits::{
                Event::{
                    Finds, FindsLate, FindsNothing, IsRefused, LosesCommit, LosesQuestion,
                    LosesWrite,
                },
                Kind::{Change, Inserts, Recorded},
                Step::{Ask, AskInVain, Begin, Commit, Record, Rollback, Write},
                check,
            };

            #[test]
            fn what_a_lost_connection_took_is_sent_again() {
                let again = (FindsNothing, &[Begin, Write, Commit][..]);
                check::<$peer>(Inserts, 1, &[(LosesWrite, &[Begin, Write]), again]);
            }

            #[test]
            fn a_commit_that_was_carried_out_is_found_by_a_row() {
                let lost = (LosesCommit, &[Begin, Write, Commit][..]);
                check::<$peer>(Inserts, 0, &[lost, (Finds, &[Ask])]);
            }

            #[test]
            fn a_flush_with_a_record_is_found_by_its_marker_row() {
                let lost = (LosesCommit, &[Begin, Record, Write, Commit][..]);
                check::<$peer>(Recorded, 0, &[lost, (Finds, &[Ask])]);
            }

            #[test]
            fn a_change_is_found_by_its_marker_row() {
                let lost = (LosesCommit, &[Begin, Record, Write, Commit][..]);
                check::<$peer>(Change, 0, &[lost, (Finds, &[Ask])]);
            }

            #[test]
            fn a_commit_that_was_not_carried_out_is_done_again() {
                let lost = (LosesCommit, &[Begin, Write, Commit][..]);
                let again = (FindsNothing, &[Ask, Begin, Write, Commit][..]);
                check::<$peer>(Inserts, 1, &[lost, again]);
            }

            #[test]
            fn a_change_whose_marker_row_is_not_found_is_done_again() {
                let lost = (LosesCommit, &[Begin, Record, Write, Commit][..]);
                let again = (FindsNothing, &[Ask, Begin, Record, Write, Commit][..]);
                check::<$peer>(Change, 1, &[lost, again]);
            }

            /// The old COMMIT lands after the question: the rows that are sent again are refused, and there.
            #[test]
            fn a_commit_that_lands_late_is_found_by_its_duplicates() {
                let lost = (LosesCommit, &[Begin, Write, Commit][..]);
                let late = (FindsLate, &[Ask, Begin, Write, Rollback, Ask][..]);
                check::<$peer>(Inserts, 1, &[lost, late]);
            }

            /// The old transaction holds the marker row's key: it is over once that is refused, and then found.
            #[test]
            fn a_change_that_lands_late_is_found_by_its_marker_row() {
                let lost = (LosesCommit, &[Begin, Record, Write, Commit][..]);
                let late = (FindsLate, &[Ask, Begin, Record, Rollback, Ask][..]);
                check::<$peer>(Change, 1, &[lost, late]);
            }

            /// A question that is not answered is asked again, over another connection.
            #[test]
            fn a_question_that_is_lost_is_asked_again() {
                let lost = (LosesCommit, &[Begin, Write, Commit][..]);
                let asked = [(LosesQuestion, &[AskInVain][..]), (IsRefused, &[])];
                check::<$peer>(Inserts, 0, &[lost, asked[0], asked[1], (Finds, &[Ask])]);
            }
        }
    };
}

pub(crate) use lost_commits;
