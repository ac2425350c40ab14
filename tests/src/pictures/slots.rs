//! Which slots the calls of several threads get. A generator is asked, under a clock that is set by hand.

use std::sync::Arc;

use ordid::{
    clock::ManualClock,
    generator::Slotted,
    scheme::{UuidV7, catalogue::find},
};

use super::svg::{Colour, MARGIN, Style, Svg, WIDTH};

/// A call: the thread, what the clock says in the second's milliseconds, and how many keys it makes.
const CALLS: [(&str, u64, usize); 6] = [
    ("A", 100, 3),
    ("B", 100, 2),
    ("C", 101, 1),
    ("B", 99, 2),
    ("A", 101, 1),
    ("C", 102, 1),
];

/// Some second, in milliseconds.
const SECOND: u64 = 1_900_000_000_000;

/// The time and the index of a slot.
type Slot = (u64, u64);

/// Returns the slots that each call gets, as its keys show.
pub fn slots() -> Vec<Vec<Slot>> {
    let clock = Arc::new(ManualClock::at_unix_millis(SECOND));
    let scheme = find("uuid_v7").expect("the catalogue has the scheme");
    let generator = scheme
        .generator(None, clock.clone())
        .expect("it has no node");
    // The counter of the newest millisecond's first key.
    let mut start = (0, 0);
    let mut slot = || {
        let key = generator
            .generate()
            .expect("the default policy never fails");
        let time = key.timestamp().expect("it has a time").as_unix_millis();
        let counter = key.inspect().and_then(|it| it.counter).expect("it counts");
        if start.0 != time {
            start = (time, counter);
        }
        (time - SECOND, counter - start.1)
    };
    CALLS
        .into_iter()
        .map(|(_, now, keys)| {
            clock.set_unix_millis(SECOND + now);
            (0..keys).map(|_| slot()).collect()
        })
        .collect()
}

pub fn draw() -> Svg {
    let mut svg =
        Svg::new("Slots: threads take them from one word, and they rise whatever the clock does");
    let mut y = 24.0;
    svg.text(
        MARGIN,
        y,
        "The next free slot: one word of 64 bits",
        Style::BOLD,
    );
    y += 8.0;
    let index = UuidV7::INDEX_BITS;
    let unit = (WIDTH - 2.0 * MARGIN) / 64.0;
    let width = f64::from(64 - index) * unit;
    let words = format!("milliseconds since 1970: {} bits", 64 - index);
    svg.labelled((MARGIN, y), (width, 26.0), &words, Colour::Blue);
    let words = format!("index: {index} bits");
    let rest = f64::from(index) * unit;
    svg.labelled((MARGIN + width, y), (rest, 26.0), &words, Colour::Green);
    y += 50.0;
    svg.text(MARGIN, y, "Six calls, one after the other", Style::BOLD);
    y += 20.0;
    svg.text(MARGIN, y, "thread", Style::FAINT);
    svg.text(58.0, y, "its clock", Style::FAINT);
    let calls = slots();
    let mut columns = Vec::new();
    for slot in calls.iter().flatten() {
        columns.push(*slot);
    }
    columns.sort_unstable();
    let at = |slot: Slot| {
        let position = columns.iter().position(|it| *it == slot);
        let position = position.expect("the slot has a column");
        let gaps = columns[..=position].windows(2);
        let gaps = gaps.filter(|pair| pair[0].0 != pair[1].0).count();
        let number = |value: usize| f64::from(u32::try_from(value).expect("a few"));
        128.0 + 22.0 * number(position) + 8.0 * number(gaps)
    };
    for slot in columns.iter().filter(|slot| slot.1 == 0) {
        svg.text(at(*slot), y, format!("{} ms", slot.0), Style::FAINT);
    }
    y += 8.0;
    for ((thread, now, _), slots) in CALLS.into_iter().zip(&calls) {
        let colour = match thread {
            "A" => Colour::Yellow,
            "B" => Colour::Purple,
            _ => Colour::Grey,
        };
        svg.labelled((MARGIN, y), (24.0, 22.0), thread, colour);
        svg.text(58.0, y + 15.0, format!("{now} ms"), Style::PLAIN);
        for slot in slots {
            svg.labelled((at(*slot), y), (22.0, 22.0), &slot.1.to_string(), colour);
        }
        y += 26.0;
    }
    y += 12.0;
    for words in [
        "Each call adds to the word, so no slot is taken twice.",
        "The clock of the fourth call has stepped back.",
        "Its keys still rise.",
    ] {
        svg.text(MARGIN, y, words, Style::FAINT);
        y += 16.0;
    }
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slots_of_the_picture_rise_although_its_clock_steps_back() {
        let slots: Vec<Slot> = slots().into_iter().flatten().collect();
        assert!(slots.is_sorted_by(|one, next| one < next), "{slots:?}");
        assert!(CALLS.windows(2).any(|calls| calls[1].1 < calls[0].1));
        assert_eq!(slots.last(), Some(&(102, 0)));
    }
}
