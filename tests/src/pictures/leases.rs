//! A node that three holders have one after the other. A store in memory grants it, under clocks that are set by hand.

use std::time::Duration;

use ordid::{
    clock::{Clock as _, ManualClock, Timestamp},
    coordination::{Grant, LeaseTerms, MemoryNodes, NodeAllocator as _},
};

use super::svg::{Anchor, Colour, Ends, MARGIN, Style, Svg, WIDTH};

/// Some second, in milliseconds.
const START: u64 = 1_900_000_000_000;

/// What happens at a second.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    second: u64,
    words: &'static str,
    holder: usize,
    /// The seconds from floor to ceiling that keys may carry afterwards.
    range: Option<(u64, u64)>,
}

fn at(second: u64) -> Timestamp {
    Timestamp::saturating_from_unix_millis(START + second * 1_000)
}

fn seconds(grant: &Grant) -> Option<(u64, u64)> {
    let second = |time: Timestamp| (time.as_unix_millis() - START) / 1_000;
    Some((second(grant.floor()), second(grant.ceiling())))
}

/// Returns what a store of one node says.
pub fn events() -> Vec<Event> {
    let terms = LeaseTerms::new(7..8)
        .and_then(|terms| terms.with_window(Duration::from_secs(3)))
        .and_then(|terms| terms.with_ttl(Duration::from_secs(4)))
        .expect("terms that a store takes");
    let store = MemoryNodes::new(terms, ManualClock::at_unix_millis(START));
    let mut events = Vec::new();
    let mut note = |words, holder, range| {
        let second = (store.clock().now().as_unix_millis() - START) / 1_000;
        events.push(Event {
            second,
            words,
            holder,
            range,
        });
    };
    let set = |second| store.clock().set_unix_millis(at(second).as_unix_millis());

    let mut first = store.acquire(at(0), None).expect("the node is free");
    note("A takes the node", 0, seconds(&first));
    for second in [1, 2] {
        set(second);
        first = store.renew(&first, at(second)).expect("it is A's");
        note("A renews", 0, seconds(&first));
    }
    set(3);
    note("A stops: its machine sleeps", 0, None);
    set(6);
    // The second holder's clock is five seconds behind.
    let second = store
        .acquire(at(1), None)
        .expect("A was silent for its time");
    note("B takes it; its clock says 1 s", 1, seconds(&second));
    set(7);
    let refused = store.renew(&first, at(7));
    assert!(refused.is_err(), "the store grants A's node to B");
    note("A wakes, and is refused", 0, None);
    store.release(&second, Some(at(6))).expect("it is B's");
    note("B gives the rest back", 1, None);
    set(9);
    let third = store.acquire(at(9), None).expect("B gave it back");
    note("C takes it", 2, seconds(&third));
    events
}

pub fn draw() -> Svg {
    let mut svg = Svg::new("Leases of a node: holders never have a time of keys in common");
    let events = events();
    let last = events.iter().filter_map(|event| event.range);
    let last = last.map(|(_, ceiling)| ceiling).max().expect("some grant");
    let number = |value: u64| f64::from(u32::try_from(value).expect("a few seconds"));
    let left = 42.0;
    let unit = (WIDTH - MARGIN - left) / number(last);
    let x = |second: u64| left + number(second) * unit;
    let mut y = 24.0;
    svg.text(
        MARGIN,
        y,
        "Which times the keys of node 7 may carry",
        Style::BOLD,
    );
    y += 20.0;
    svg.text(MARGIN, y, "at", Style::FAINT);
    svg.text(
        left,
        y,
        "what happens, and which times are granted",
        Style::FAINT,
    );
    y += 6.0;
    let colours = [Colour::Blue, Colour::Green, Colour::Yellow];
    for event in &events {
        y += 16.0;
        svg.text(MARGIN, y, format!("{} s", event.second), Style::PLAIN);
        svg.text(left, y, event.words, Style::PLAIN);
        y += 5.0;
        if let Some((floor, ceiling)) = event.range {
            let width = x(ceiling) - x(floor);
            let words = format!("{floor} to {ceiling} s");
            svg.labelled((x(floor), y), (width, 20.0), &words, colours[event.holder]);
            y += 22.0;
        }
    }
    y += 8.0;
    for second in 0..=last {
        svg.line(
            &[(x(second), y), (x(second), y + 5.0)],
            Colour::Faint,
            Ends::Plain,
        );
        let anchor = match second {
            0 => Anchor::Start,
            _ if second == last => Anchor::End,
            _ => Anchor::Middle,
        };
        let style = Style {
            anchor,
            size: 10.0,
            ..Style::FAINT
        };
        svg.text(x(second), y + 16.0, second.to_string(), style);
    }
    svg.line(&[(left, y), (x(last), y)], Colour::Faint, Ends::Plain);
    y += 32.0;
    svg.text(left, y, "time in the keys, in seconds", Style::FAINT);
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_holders_of_the_picture_have_a_time_in_common() {
        let events = events();
        let of = |holder| {
            let ranges = events.iter().filter(move |event| event.holder == holder);
            let ranges: Vec<_> = ranges.filter_map(|event| event.range).collect();
            (ranges.first().unwrap().0, ranges.last().unwrap().1)
        };
        assert!(of(0).1 <= of(1).0 && of(1).1 <= of(2).0, "{events:?}");
        // The slow clock alone would have given times that A's keys may carry.
        assert_eq!(of(1).0, of(0).1);
    }
}
