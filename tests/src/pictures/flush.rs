//! The flush as a state machine. A walk reports every possible result of every step to [`Flush`], and notes what
//! follows; the picture has an arrow for each of these transitions, and for no other.
//!
//! It does not show what is no result of a step: a flush is ended by its deadline, or begins anew without `COPY` or a
//! temporary table.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    time::Duration,
};

use ordid::{OrderedKey, uuid::Uuid};
use ordid_core::Sink;
use ordid_sql::{
    Columns, EngineProfile, Failure, Flush, Outcome, PendingRows, Plan, Retry, RowEnd, RowSink,
    Step,
};

use super::svg::{Colour, Ends, MARGIN, SIZE, Style, Svg};

const LINE: f64 = 28.0;

/// A step, or an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Node {
    Begin,
    Record,
    Send,
    Read,
    Commit,
    Rollback,
    Sleep,
    Probe,
    Committed,
    Nothing,
    Unknown,
}

use Node::{
    Begin, Commit, Committed, Nothing, Probe, Read, Record, Rollback, Send, Sleep, Unknown,
};

impl Node {
    fn of(step: &Step) -> Self {
        match step {
            Step::Begin => Begin,
            Step::Record => Record,
            Step::Send(_) => Send,
            Step::Read => Read,
            Step::Commit => Commit,
            Step::Rollback => Rollback,
            Step::Sleep(_) => Sleep,
            Step::Probe => Probe,
            Step::Done {
                outcome: Outcome::Committed,
            } => Committed,
            Step::Done {
                outcome: Outcome::Nothing,
            } => Nothing,
            Step::Done {
                outcome: Outcome::Unknown,
            } => Unknown,
            other => panic!("the picture does not have the step {other:?}"),
        }
    }
}

/// What the box "Again?" stands between.
const BEFORE_AGAIN: [Node; 3] = [Begin, Commit, Rollback];
const BEHIND_AGAIN: [Node; 4] = [Sleep, Probe, Nothing, Unknown];

#[derive(OrderedKey)]
#[ordid(table = "cities")]
struct City {
    #[ordid(key)]
    id: Uuid,
}

#[derive(OrderedKey)]
#[ordid(table = "streets")]
struct Street {
    #[ordid(key)]
    id: Uuid,
}

/// Takes rows and keeps nothing.
struct Ids;

impl Sink<Uuid> for Ids {
    fn put(&mut self, _: &Uuid) {}
}

impl RowSink for Ids {
    type Entity = ();

    fn begin_row(&mut self, _: Columns<'_>) {}

    fn end_row(&mut self) -> RowEnd {
        RowEnd::Taken
    }
}

/// A plan of two statements.
fn plan() -> Plan {
    let mut rows = PendingRows::<Ids>::new();
    let id = Uuid::from_u128(1);
    rows.rows_mut().push(City { id });
    rows.rows_mut().push(Street { id });
    let plan = rows.plan(&EngineProfile::SQLITE).expect("rows with keys");
    assert_eq!(plan.len(), 2);
    plan
}

/// Returns every transition from a step to another that some flush can make.
pub fn transitions() -> BTreeSet<(Node, Node)> {
    let retry = Retry::DEFAULT.with_attempts(3).with_jitter(false);
    let retry = retry.with_delays(Duration::from_millis(1), Duration::from_millis(1));
    let mut open = vec![Flush::in_transaction(plan())];
    for flush in [Flush::new(plan()), Flush::resumed(plan())] {
        for flush in [flush.clone(), flush.with_retry(retry)] {
            for flush in [flush.clone(), flush.with_record()] {
                for flush in [flush.clone(), flush.with_reading()] {
                    let mut once = flush.clone();
                    once.cannot_repeat();
                    let mut local = flush.clone();
                    local.locks_are_local();
                    let single = flush.clone().on_one_connection();
                    open.extend([flush, once, local, single]);
                }
            }
        }
    }
    let reports: [fn(&mut Flush); 7] = [
        Flush::succeeded,
        |flush| flush.failed(Failure::Refused),
        |flush| flush.failed(Failure::Duplicate),
        |flush| flush.failed(Failure::Transient),
        |flush| flush.failed(Failure::Lost),
        |flush| flush.probed(true),
        |flush| flush.probed(false),
    ];
    let mut seen = HashSet::new();
    let mut found = BTreeSet::new();
    while let Some(flush) = open.pop() {
        let from = Node::of(&flush.step());
        if !seen.insert(format!("{flush:?}")) || matches!(from, Committed | Nothing | Unknown) {
            continue;
        }
        for (at, report) in reports.into_iter().enumerate() {
            // Only a probe finds something or nothing.
            if at >= 5 && from != Probe {
                continue;
            }
            let mut next = flush.clone();
            report(&mut next);
            found.insert((from, Node::of(&next.step())));
            open.push(next);
        }
    }
    found
}

pub fn draw() -> Svg {
    let mut svg = Svg::new("A flush: steps, what follows a failure, and the three outcomes");
    let shown = arrows(&mut svg);
    let found = transitions().into_iter().map(|(from, to)| {
        let is_through_again = BEFORE_AGAIN.contains(&from) && BEHIND_AGAIN.contains(&to);
        ((from, to), 1 + usize::from(is_through_again))
    });
    assert_eq!(
        shown,
        found.collect(),
        "how many arrows each transition has in the picture, and has to have"
    );
    boxes(&mut svg);
    let mut y = 486.0;
    svg.line(
        &[(MARGIN, y - 4.0), (44.0, y - 4.0)],
        Colour::Faint,
        Ends::DashedArrow,
    );
    svg.text(
        50.0,
        y,
        "only while the outcome of a COMMIT is in doubt",
        Style::FAINT,
    );
    for words in [
        "Record: only if the flush writes a marker row.",
        "Read: only if the database fills columns.",
        "Again?: yes after a transient failure or a lost connection,",
        "as long as attempts are left.",
        "Not drawn: a deadline may end a flush at any step.",
    ] {
        y += 17.0;
        svg.text(MARGIN, y, words, Style::FAINT);
    }
    svg
}

fn boxes(svg: &mut Svg) {
    let step = (104.0, LINE);
    for (y, words) in [
        (36.0, "Begin"),
        (92.0, "Record"),
        (144.0, "Send"),
        (196.0, "Read"),
        (248.0, "Commit"),
    ] {
        svg.labelled((32.0, y), step, words, Colour::Blue);
    }
    svg.labelled((180.0, 144.0), (88.0, LINE), "Rollback", Colour::Red);
    svg.labelled((180.0, 248.0), (88.0, LINE), "Again?", Colour::Grey);
    svg.labelled((300.0, 196.0), (80.0, LINE), "Sleep", Colour::Yellow);
    svg.labelled((300.0, 330.0), (80.0, LINE), "Probe", Colour::Yellow);
    svg.labelled((32.0, 424.0), step, "all committed", Colour::Green);
    svg.labelled((164.0, 424.0), step, "nothing written", Colour::Grey);
    svg.labelled((296.0, 424.0), (92.0, LINE), "unknown", Colour::Purple);
}

/// Draws the arrows, and returns how many of them stand for each transition.
fn arrows(svg: &mut Svg) -> BTreeMap<(Node, Node), usize> {
    let mut shown = BTreeMap::new();
    let mut draw = |from: &[Node], to: &[Node], ends, points: &[(f64, f64)]| {
        for from in from {
            for to in to {
                *shown.entry((*from, *to)).or_default() += 1;
            }
        }
        svg.line(points, Colour::Faint, ends);
    };
    let mut arrow = |from: &[Node], to: &[Node], points: &[(f64, f64)]| {
        draw(from, to, Ends::Arrow, points);
    };
    // The way of success.
    for (from, to, top, bottom) in [
        (Begin, Record, 64.0, 92.0),
        (Record, Send, 120.0, 144.0),
        (Send, Read, 172.0, 196.0),
        (Read, Commit, 224.0, 248.0),
        (Commit, Committed, 276.0, 424.0),
    ] {
        arrow(&[from], &[to], &[(84.0, top), (84.0, bottom)]);
    }
    // Past Record, past Read, and the next chunk.
    let past = [(32.0, 58.0), (24.0, 58.0), (24.0, 152.0), (32.0, 152.0)];
    arrow(&[Begin], &[Send], &past);
    let past = [(32.0, 164.0), (24.0, 164.0), (24.0, 258.0), (32.0, 258.0)];
    arrow(&[Send], &[Commit], &past);
    let next = [
        (104.0, 144.0),
        (104.0, 134.0),
        (146.0, 134.0),
        (146.0, 150.0),
        (136.0, 150.0),
    ];
    arrow(&[Send], &[Send], &next);
    // Failures that are rolled back.
    arrow(&[Send], &[Rollback], &[(136.0, 162.0), (180.0, 162.0)]);
    for (from, y) in [(Record, 106.0), (Read, 210.0), (Commit, 256.0)] {
        let points = [(136.0, y), (158.0, y), (158.0, 162.0), (180.0, 162.0)];
        arrow(&[from], &[Rollback], &points);
    }
    // Nothing to roll back.
    let around = [
        (32.0, 44.0),
        (10.0, 44.0),
        (10.0, 306.0),
        (196.0, 306.0),
        (196.0, 276.0),
    ];
    arrow(&[Begin], &BEHIND_AGAIN, &around);
    let down = [(224.0, 172.0), (224.0, 248.0)];
    arrow(&[Rollback], &BEHIND_AGAIN, &down);
    let yes = [(252.0, 248.0), (252.0, 210.0), (300.0, 210.0)];
    arrow(&BEFORE_AGAIN, &[Sleep], &yes);
    // A COMMIT whose answer is lost leaves a doubt.
    let no = [(216.0, 276.0), (216.0, 424.0)];
    arrow(&[Begin, Rollback], &[Nothing], &no);
    // Begin anew.
    let anew = [(340.0, 196.0), (340.0, 58.0), (136.0, 58.0)];
    arrow(&[Sleep], &[Begin], &anew);

    let mut doubt = |from: &[Node], to: &[Node], points: &[(f64, f64)]| {
        draw(from, to, Ends::DashedArrow, points);
    };
    let lost = [(136.0, 268.0), (180.0, 268.0)];
    doubt(&[Commit], &[Sleep, Probe, Unknown], &lost);
    let asks = [(268.0, 262.0), (312.0, 262.0), (312.0, 330.0)];
    doubt(&BEFORE_AGAIN, &[Probe], &asks);
    let unknown = [
        (240.0, 276.0),
        (240.0, 392.0),
        (312.0, 392.0),
        (312.0, 424.0),
    ];
    doubt(&BEFORE_AGAIN, &[Unknown], &unknown);
    doubt(&[Sleep], &[Probe], &[(336.0, 224.0), (336.0, 330.0)]);
    doubt(&[Probe], &[Sleep], &[(364.0, 330.0), (364.0, 224.0)]);
    let finds = [(300.0, 348.0), (112.0, 348.0), (112.0, 424.0)];
    doubt(&[Probe], &[Committed], &finds);
    doubt(&[Probe], &[Unknown], &[(350.0, 358.0), (350.0, 424.0)]);
    let absent = [(380.0, 340.0), (392.0, 340.0), (392.0, 42.0), (136.0, 42.0)];
    doubt(&[Probe], &[Begin], &absent);

    let small = Style {
        size: SIZE - 1.5,
        ..Style::FAINT
    };
    for (x, y, words) in [
        (262.0, 36.0, "finds no row"),
        (238.0, 53.0, "nothing in doubt"),
        (162.0, 134.0, "it fails"),
        (14.0, 302.0, "it fails"),
        (139.0, 281.0, "is lost"),
        (257.0, 205.0, "yes"),
        (222.0, 412.0, "no; no doubt"),
        (250.0, 344.0, "finds it"),
    ] {
        svg.text(x, y, words, small);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_commit_is_never_taken_for_nothing_written() {
        let found = transitions();
        assert!(!found.contains(&(Commit, Nothing)));
        assert!(!found.contains(&(Probe, Nothing)));
    }
}
