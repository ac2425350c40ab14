//! Which bits of a key mean what. Each bit of a key is turned over, and the scheme says what has changed.

use std::sync::Arc;

use ordid::{
    clock::ManualClock,
    scheme::catalogue::{Entry, find},
};

use super::svg::{Anchor, Colour, MARGIN, Style, Svg, WIDTH, length};

/// The schemes that are shown. Of each one, `inspect` tells all bits apart, see [`fields`].
const SHOWN: [&str; 8] = [
    "uuid_v7",
    "uuid_v7_unguessable",
    "uuid_v7_sub_millis",
    "uuid_v7_spread",
    "uuid_v6",
    "object_id",
    "snowflake",
    "sonyflake",
];

/// What a bit is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    Time,
    Counter,
    Node,
    Bucket,
    Random,
    /// Another value would be a key of another scheme, or none.
    Fixed,
}

impl Field {
    const ALL: [(Self, &str); 6] = [
        (Self::Time, "time"),
        (Self::Counter, "counter"),
        (Self::Random, "random"),
        (Self::Node, "node"),
        (Self::Bucket, "bucket"),
        (Self::Fixed, "always the same"),
    ];

    const fn colour(self) -> Colour {
        match self {
            Self::Time => Colour::Blue,
            Self::Counter => Colour::Green,
            Self::Node => Colour::Yellow,
            Self::Bucket => Colour::Purple,
            Self::Random => Colour::Grey,
            Self::Fixed => Colour::Red,
        }
    }
}

/// Returns the fields of a scheme's keys from the first bit on, each with its number of bits.
///
/// # Panics
///
/// If the random bits are not as many as the catalogue counts unknown ones: then `inspect` does not tell all fields.
pub fn fields(entry: &'static Entry) -> Vec<(Field, u32)> {
    // A time in the middle of every layout's range, so that one bit does not lead out of it.
    let clock = Arc::new(ManualClock::at_unix_millis(1_900_000_000_123));
    let node = [None, Some(1)];
    let generator = node
        .into_iter()
        .find_map(|node| entry.generator(node, clock.clone()).ok())
        .expect("the scheme has a generator");
    let key = generator.generate().expect("the layout has time left");
    let bytes = key.as_bytes();
    let told = |bytes: &[u8]| {
        let key = entry.key_of(bytes).ok()?;
        Some((key.inspect()?, key.bucket()))
    };
    let (before, bucket) = told(bytes).expect("it is a key of the scheme");
    let mut fields: Vec<(Field, u32)> = Vec::new();
    for bit in 0..bytes.len() * 8 {
        let mut turned = bytes.to_vec();
        turned[bit / 8] ^= 0x80 >> (bit % 8);
        let field = match told(&turned) {
            None => Field::Fixed,
            Some((after, _)) if after.moment != before.moment => Field::Time,
            Some((after, _)) if after.counter != before.counter => Field::Counter,
            Some((after, _)) if after.node != before.node => Field::Node,
            Some((_, after)) if after != bucket => Field::Bucket,
            Some(_) => Field::Random,
        };
        match fields.last_mut() {
            Some((last, bits)) if *last == field => *bits += 1,
            _ => fields.push((field, 1)),
        }
    }
    let random = fields.iter().filter(|(field, _)| *field == Field::Random);
    assert_eq!(
        random.map(|(_, bits)| bits).sum::<u32>(),
        entry.unknown_bits,
        "{}: {fields:?}",
        entry.name
    );
    fields
}

pub fn draw() -> Svg {
    let mut svg = Svg::new("The bits of keys: time first, then counters, nodes and random bits");
    let mut y = 24.0;
    y += svg.legend(y, &Field::ALL.map(|(field, words)| (field.colour(), words)));
    // The longest keys fill the width, so that others are as long as they are in a column.
    let unit = (WIDTH - 2.0 * MARGIN) / 128.0;
    for name in SHOWN {
        let entry = find(name).expect("the catalogue has the scheme");
        let fields = fields(entry);
        y += 18.0;
        svg.text(MARGIN, y, name, Style::BOLD);
        let all: u32 = fields.iter().map(|(_, bits)| bits).sum();
        let style = Style {
            anchor: Anchor::End,
            ..Style::FAINT
        };
        svg.text(WIDTH - MARGIN, y, format!("{all} bits"), style);
        y += 6.0;
        let mut x = MARGIN;
        for (field, bits) in fields {
            let width = f64::from(bits) * unit;
            let words = Field::ALL.iter().find(|(it, _)| *it == field);
            let (_, words) = words.expect("all are in the list");
            let full = format!("{words} {bits}");
            let short = bits.to_string();
            let fitting = [full, short]
                .into_iter()
                .find(|words| length(words, Style::MIDDLE) <= width - 2.0)
                .unwrap_or_default();
            svg.labelled((x, y), (width, 24.0), &fitting, field.colour());
            x += width;
        }
        y += 26.0;
    }
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_version_7_are_those_of_its_documentation() {
        use Field::{Counter, Fixed, Random, Time};
        assert_eq!(
            fields(find("uuid_v7").unwrap()),
            [
                (Time, 48),
                (Fixed, 4),
                (Counter, 12),
                (Fixed, 2),
                (Counter, 30),
                (Random, 32)
            ]
        );
    }

    #[test]
    fn the_fields_of_a_snowflake_are_those_of_twitter() {
        use Field::{Counter, Fixed, Node, Time};
        assert_eq!(
            fields(find("snowflake").unwrap()),
            [(Fixed, 1), (Time, 41), (Node, 10), (Counter, 12)]
        );
    }
}
