//! Bars beside each other, with their names and lengths.

use std::fmt::Write as _;

use super::{
    Size, begin,
    scale::{bar_text, share},
    text, width_of,
};

pub(super) fn draw_bars(
    svg: &mut String,
    size: Size,
    number: usize,
    title: &str,
    unit: &str,
    bars: &[(String, f64)],
) {
    let lengths = bars.iter().map(|(_, length)| *length);
    let most = lengths
        .clone()
        .filter(|length| length.is_finite())
        .fold(0.0, f64::max);
    let names = bars
        .iter()
        .map(|(name, _)| width_of(name))
        .fold(0.0, f64::max);
    let values: Vec<String> = lengths.map(|length| bar_text(length, most)).collect();
    let value_room = values
        .iter()
        .map(|value| width_of(value))
        .fold(0.0, f64::max)
        + 12.0;
    let (row, left) = match size {
        Size::Wide => (28.0, (names + 14.0).min(280.0)),
        // The name stands above its bar.
        Size::Narrow => (40.0, 0.0),
    };
    let top = 24.0;
    let room = (size.width() - left - value_room).max(20.0);
    let height = top + row * bars.len() as f64 + 2.0;
    begin(
        svg,
        size,
        number,
        height,
        title,
        &describe_bars(unit, bars, &values),
    );
    text(svg, left, 13.0, "soft", "start", unit, size.width() - left);
    for (index, ((name, length), value)) in bars.iter().zip(&values).enumerate() {
        let begun = top + row * index as f64;
        let (name_x, name_y, anchor, bar_y) = match size {
            Size::Wide => (left - 8.0, begun + 17.0, "end", begun + 4.0),
            Size::Narrow => (0.0, begun + 12.0, "start", begun + 18.0),
        };
        let name_room = if size == Size::Wide {
            left - 8.0
        } else {
            size.width()
        };
        text(svg, name_x, name_y, "", anchor, name, name_room);
        let long = if length.is_finite() {
            share(length.max(0.0), 0.0, most) * room
        } else {
            0.0
        };
        let _ = writeln!(
            svg,
            "<rect class=\"bar k0\" x=\"{left:.1}\" y=\"{bar_y:.1}\" width=\"{:.1}\" height=\"18\" rx=\"2\"/>",
            long.max(1.0)
        );
        text(
            svg,
            left + long + 6.0,
            bar_y + 13.0,
            "",
            "start",
            value,
            value_room,
        );
    }
    svg.push_str("</svg>\n");
}

fn describe_bars(unit: &str, bars: &[(String, f64)], values: &[String]) -> String {
    let mut description = format!("Bars, in {unit}.");
    for ((name, _), value) in bars.iter().zip(values) {
        let _ = write!(description, " {name}: {value}.");
    }
    description
}
