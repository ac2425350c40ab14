//! Pictures as SVG. Colours are classes of the page's style; a line is told by its colour, its marks and its name.

use std::fmt::Write as _;

use super::{Picture, html::escape};

/// For which page a picture is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    /// For a screen or a sheet of paper.
    Wide,
    /// For a phone.
    Narrow,
}

impl Size {
    const fn class(self) -> &'static str {
        match self {
            Self::Wide => "wide",
            Self::Narrow => "narrow",
        }
    }

    const fn width(self) -> f64 {
        match self {
            Self::Wide => 760.0,
            Self::Narrow => 328.0,
        }
    }
}

/// How many colours the style has.
const COLORS: usize = 8;
/// How wide a character of 12 pixels is taken to be.
const CHARACTER: f64 = 6.6;
/// The height of a line of text.
const LINE: f64 = 18.0;

/// A line's name, and those of its points that are numbers.
type Line<'a> = (&'a str, Vec<(f64, f64)>);

/// Writes a picture; `number` tells it from the others of the page.
pub(super) fn draw(svg: &mut String, picture: &Picture, size: Size, number: usize) {
    match picture {
        Picture::Lines { title, x, y, lines } => {
            let lines: Vec<Line<'_>> = lines
                .iter()
                .map(|(name, points)| {
                    let mut points = points.clone();
                    points.retain(|(x, y)| x.is_finite() && y.is_finite());
                    (name.as_str(), points)
                })
                .collect();
            draw_lines(svg, size, number, title, x, y, &lines);
        }
        Picture::Bars { title, unit, bars } => draw_bars(svg, size, number, title, unit, bars),
    }
}

/// Begins a picture, with what it says to those who do not see it.
fn begin(svg: &mut String, size: Size, number: usize, height: f64, title: &str, description: &str) {
    let (class, width) = (size.class(), size.width());
    let _ = write!(
        svg,
        "<svg class=\"{class}\" viewBox=\"0 0 {width} {height:.0}\" role=\"img\" aria-labelledby=\"{class}-{number}-title \
         {class}-{number}-text\" xmlns=\"http://www.w3.org/2000/svg\">\n<title id=\"{class}-{number}-title\">{}</title>\n\
         <desc id=\"{class}-{number}-text\">{}</desc>\n",
        escape(title),
        escape(description)
    );
}

fn draw_lines(
    svg: &mut String,
    size: Size,
    number: usize,
    title: &str,
    x: &str,
    y: &str,
    lines: &[Line<'_>],
) {
    let points = || lines.iter().flat_map(|(_, points)| points);
    let (low_x, high_x) = bounds(points().map(|point| point.0));
    let (low_y, high_y) = bounds(points().map(|point| point.1).chain([0.0]));
    let mut ticks_y = ticks(low_y, high_y, 5);
    // The highest point is below a line that says how high it is.
    if let [.., before, last] = ticks_y[..]
        && last < high_y
    {
        ticks_y.push(last + (last - before));
    }
    let ticks_x = ticks(low_x, high_x, if size == Size::Wide { 6 } else { 4 });
    let ends =
        |ticks: &[f64], low: f64, high: f64| (low.min(ticks[0]), high.max(ticks[ticks.len() - 1]));
    let (low_x, high_x) = ends(&ticks_x, low_x, high_x);
    let (low_y, high_y) = ends(&ticks_y, low_y, high_y);

    let widest = ticks_y
        .iter()
        .map(|tick| width_of(&tick_text(*tick, &ticks_y)));
    let left = widest.fold(24.0, f64::max) + 10.0;
    let (plot_height, right) = match size {
        Size::Wide => (270.0, 190.0),
        Size::Narrow => (200.0, 14.0),
    };
    let (top, bottom) = (26.0, 44.0);
    let plot_width = size.width() - left - right;
    let legend = match size {
        // Beside the ends of the lines; with many lines the picture grows, so that each name has its place.
        Size::Wide => (lines.len() as f64 * LINE - plot_height).max(0.0),
        Size::Narrow => lines.len() as f64 * LINE + 8.0,
    };
    let plot_height = match size {
        Size::Wide => plot_height + legend,
        Size::Narrow => plot_height,
    };
    let height = match size {
        Size::Wide => top + plot_height + bottom,
        Size::Narrow => top + plot_height + bottom + legend,
    };
    let at_x = |value: f64| left + share(value, low_x, high_x) * plot_width;
    let at_y = |value: f64| top + plot_height - share(value, low_y, high_y) * plot_height;

    begin(
        svg,
        size,
        number,
        height,
        title,
        &describe_lines(x, y, lines),
    );
    text(svg, 0.0, 13.0, "soft", "start", y, size.width());
    for tick in &ticks_y {
        let place = at_y(*tick);
        let class = if *tick == 0.0 { "axis" } else { "grid" };
        let _ = writeln!(
            svg,
            "<line class=\"{class}\" x1=\"{left:.1}\" x2=\"{:.1}\" y1=\"{place:.1}\" y2=\"{place:.1}\"/>",
            left + plot_width
        );
        text(
            svg,
            left - 6.0,
            place + 4.0,
            "soft",
            "end",
            &tick_text(*tick, &ticks_y),
            left,
        );
    }
    for tick in &ticks_x {
        let place = at_x(*tick);
        let foot = top + plot_height;
        let _ = writeln!(
            svg,
            "<line class=\"axis\" x1=\"{place:.1}\" x2=\"{place:.1}\" y1=\"{foot:.1}\" y2=\"{:.1}\"/>",
            foot + 4.0
        );
        let name = tick_text(*tick, &ticks_x);
        let half = width_of(&name) / 2.0;
        let place = place.clamp(half, size.width() - half);
        text(svg, place, foot + 18.0, "soft", "middle", &name, plot_width);
    }
    text(
        svg,
        left + plot_width / 2.0,
        top + plot_height + 37.0,
        "soft",
        "middle",
        x,
        plot_width,
    );
    for (index, (_, points)) in lines.iter().enumerate() {
        let places: Vec<_> = points.iter().map(|(x, y)| (at_x(*x), at_y(*y))).collect();
        curve(svg, index, &places);
    }
    match size {
        Size::Wide => names_at_ends(
            svg,
            lines,
            left + plot_width,
            (top, top + plot_height),
            right,
            at_y,
        ),
        Size::Narrow => {
            for (index, (name, _)) in lines.iter().enumerate() {
                let place = top + plot_height + bottom + 8.0 + index as f64 * LINE;
                let _ = write!(svg, "<g class=\"k{}\">", index % COLORS);
                let _ = write!(
                    svg,
                    "<path class=\"curve\"{} d=\"M2 {place:.1}H26\"/>",
                    dashes(index)
                );
                mark(svg, index, 14.0, place);
                svg.push_str("</g>");
                text(
                    svg,
                    34.0,
                    place + 4.0,
                    "",
                    "start",
                    name,
                    size.width() - 34.0,
                );
            }
        }
    }
    svg.push_str("</svg>\n");
}

/// Writes each name as near to the end of its line as the other names let it.
fn names_at_ends(
    svg: &mut String,
    lines: &[Line<'_>],
    edge: f64,
    (top, bottom): (f64, f64),
    room: f64,
    at_y: impl Fn(f64) -> f64,
) {
    let mut places: Vec<(usize, f64, f64)> = lines
        .iter()
        .enumerate()
        .map(|(index, (_, points))| {
            let end = points.last().map_or(bottom, |(_, y)| at_y(*y));
            (index, end, end)
        })
        .collect();
    places.sort_by(|a, b| a.1.total_cmp(&b.1));
    spread_out(&mut places, top, bottom);
    for (index, end, place) in places {
        let color = index % COLORS;
        let _ = write!(
            svg,
            "<g class=\"k{color}\"><path class=\"lead-line\" d=\"M{:.1} {end:.1}L{:.1} {place:.1}\"/>",
            edge + 5.0,
            edge + 20.0
        );
        mark(svg, index, edge + 26.0, place);
        svg.push_str("</g>");
        text(
            svg,
            edge + 34.0,
            place + 4.0,
            "",
            "start",
            lines[index].0,
            room - 36.0,
        );
    }
}

/// Moves names that overlap apart, in the order in which they are, between the edges.
fn spread_out(places: &mut [(usize, f64, f64)], top: f64, bottom: f64) {
    let mut least = top;
    for (_, _, place) in places.iter_mut() {
        *place = place.max(least);
        least = *place + LINE;
    }
    let mut most = bottom;
    for (_, _, place) in places.iter_mut().rev() {
        *place = place.min(most);
        most = *place - LINE;
    }
}

fn curve(svg: &mut String, index: usize, places: &[(f64, f64)]) {
    /// With more points than that, marks would hide the line.
    const MARKED: usize = 24;

    let mut path = String::new();
    for (number, (x, y)) in places.iter().enumerate() {
        let _ = write!(path, "{}{x:.1} {y:.1}", if number == 0 { "M" } else { "L" });
    }
    let _ = write!(svg, "<g class=\"k{}\">", index % COLORS);
    if !path.is_empty() {
        let _ = write!(svg, "<path class=\"curve\"{} d=\"{path}\"/>", dashes(index));
    }
    if places.len() <= MARKED {
        for (x, y) in places {
            mark(svg, index, *x, *y);
        }
    }
    svg.push_str("</g>\n");
}

/// Lines beyond the number of colours are dashed.
fn dashes(index: usize) -> &'static str {
    match (index / COLORS) % 3 {
        0 => "",
        1 => " stroke-dasharray=\"7 4\"",
        _ => " stroke-dasharray=\"2 4\"",
    }
}

/// Writes the mark of a line, so that colours are not all that tells lines apart.
fn mark(svg: &mut String, index: usize, x: f64, y: f64) {
    let path = match index % 6 {
        0 => {
            let _ = write!(
                svg,
                "<circle class=\"mark\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\"/>"
            );
            return;
        }
        1 => "m-3.5-3.5h7v7h-7z",
        2 => "m0-4.5l4.5 8h-9z",
        3 => "m0-5l5 5l-5 5l-5-5z",
        4 => "m0 4.5l4.5-8h-9z",
        _ => "m-1.5-4.5h3v3h3v3h-3v3h-3v-3h-3v-3h3z",
    };
    let _ = write!(svg, "<path class=\"mark\" d=\"M{x:.1} {y:.1}{path}\"/>");
}

fn draw_bars(
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

/// Writes a text, shortened to the room that there is; all of it is in its title.
fn text(svg: &mut String, x: f64, y: f64, class: &str, anchor: &str, content: &str, room: f64) {
    let shown = shorten(content, room);
    let _ = write!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\"");
    if !class.is_empty() {
        let _ = write!(svg, " class=\"{class}\"");
    }
    if anchor != "start" {
        let _ = write!(svg, " text-anchor=\"{anchor}\"");
    }
    let _ = match shown == content {
        true => writeln!(svg, ">{}</text>", escape(&shown)),
        false => writeln!(
            svg,
            "><title>{}</title>{}</text>",
            escape(content),
            escape(&shown)
        ),
    };
}

fn shorten(text: &str, room: f64) -> String {
    if width_of(text) <= room {
        return text.to_owned();
    }
    let mut shown = String::new();
    let mut width = CHARACTER * 1.5;
    for character in text.chars() {
        width += width_of_character(character);
        if width > room {
            break;
        }
        shown.push(character);
    }
    shown.push('\u{2026}');
    shown
}

fn width_of(text: &str) -> f64 {
    text.chars().map(width_of_character).sum()
}

/// An estimate, rather too much than too little.
fn width_of_character(character: char) -> f64 {
    match character {
        // From the scripts of East Asia on, characters are square.
        '\u{2e80}'.. => 12.5,
        'M' | 'W' | 'm' | 'w' | '@' | '%' => 1.5 * CHARACTER,
        'A'..='Z' => 1.25 * CHARACTER,
        _ => CHARACTER,
    }
}

/// Returns the least and the greatest; 0 and 1 if there are none.
fn bounds(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    if low > high { (0.0, 1.0) } else { (low, high) }
}

/// Returns where a value stands between two others, from 0 to 1.
fn share(value: f64, low: f64, high: f64) -> f64 {
    if high > low {
        ((value - low) / (high - low)).clamp(0.0, 1.0)
    } else {
        0.0
    }
}

/// Returns about so many round numbers that cover the range from below; the last one covers it from above only if
/// there is nothing between.
fn ticks(low: f64, high: f64, wanted: u32) -> Vec<f64> {
    let span = if high > low {
        high - low
    } else {
        high.abs().max(1.0)
    };
    let rough = span / f64::from(wanted);
    let magnitude = 10_f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 2.5, 5.0, 10.0]
        .into_iter()
        .find(|factor| factor * magnitude >= rough * 0.999)
        .unwrap_or(10.0);
    let step = factor * magnitude;
    let mut ticks = Vec::new();
    let mut count = (low / step).ceil();
    while count * step <= high + step * 1e-6 && ticks.len() < 20 {
        // Not -0.
        ticks.push(count * step + 0.0);
        count += 1.0;
    }
    if ticks.len() < 2 {
        return vec![low, low + span];
    }
    ticks
}

/// Returns the text of a tick, as precise as the others need it.
fn tick_text(tick: f64, ticks: &[f64]) -> String {
    let step = ticks.get(1).map_or(1.0, |next| (next - ticks[0]).abs());
    let most = ticks
        .iter()
        .fold(0.0, |most: f64, tick| most.max(tick.abs()));
    let (divisor, unit) = unit_of(most);
    grouped(tick / divisor, decimals_of(step / divisor), unit)
}

/// Returns the text of a bar's length: three digits at least.
fn bar_text(length: f64, most: f64) -> String {
    if !length.is_finite() {
        return "no figure".to_owned();
    }
    let decimals = match most.abs() {
        most if most >= 100.0 => 0,
        most if most >= 10.0 => 1,
        most if most >= 1.0 => 2,
        most if most > 0.0 => decimals_of(most / 100.0),
        _ => 0,
    };
    let (divisor, unit) = unit_of(length);
    match unit {
        "" => grouped(length, decimals, ""),
        _ => grouped(length / divisor, 1, unit),
    }
}

fn unit_of(most: f64) -> (f64, &'static str) {
    match most.abs() {
        most if most >= 1e15 => (1e15, " P"),
        most if most >= 1e12 => (1e12, " T"),
        most if most >= 1e10 => (1e9, " G"),
        most if most >= 1e7 => (1e6, " M"),
        _ => (1.0, ""),
    }
}

/// Returns how many digits after the point tell numbers of this step apart.
fn decimals_of(step: f64) -> usize {
    (0..=9)
        .find(|decimals| {
            let scaled = step * 10_f64.powi(*decimals);
            (scaled - scaled.round()).abs() < 1e-6 * scaled.max(1.0) && scaled >= 0.999
        })
        .map_or(2, |decimals| usize::try_from(decimals).unwrap_or(0))
}

/// Returns the number with commas between thousands.
fn grouped(number: f64, decimals: usize, unit: &str) -> String {
    let text = format!("{:.decimals$}", number.abs());
    let (whole, fraction) = text
        .split_once('.')
        .map_or((text.as_str(), ""), |parts| parts);
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if !fraction.is_empty() {
        grouped.push('.');
        grouped.push_str(fraction);
    }
    let sign = if number < 0.0 && text.bytes().any(|byte| (b'1'..=b'9').contains(&byte)) {
        "\u{2212}"
    } else {
        ""
    };
    format!("{sign}{grouped}{unit}")
}

fn describe_lines(x: &str, y: &str, lines: &[Line<'_>]) -> String {
    let mut description = format!("Lines of {y} over {x}.");
    for (name, points) in lines {
        let plain = |value: f64| bar_text(value, value.abs());
        let _ = match (points.first(), points.last()) {
            (Some((first_x, first)), Some((last_x, last))) => write!(
                description,
                " {name}: {} at {}, {} at {}.",
                plain(*first),
                plain(*first_x),
                plain(*last),
                plain(*last_x)
            ),
            _ => write!(description, " {name}: no figures."),
        };
    }
    description
}

fn describe_bars(unit: &str, bars: &[(String, f64)], values: &[String]) -> String {
    let mut description = format!("Bars, in {unit}.");
    for ((name, _), value) in bars.iter().zip(values) {
        let _ = write!(description, " {name}: {value}.");
    }
    description
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside_the_range() {
        assert_eq!(ticks(0.0, 100.0, 5), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(ticks(0.0, 0.7, 5), [0.0, 0.2, 0.4, 0.6000000000000001]);
        assert_eq!(ticks(3.0, 3.0, 5), [3.0, 6.0]);
        assert_eq!(ticks(-10.0, 10.0, 4), [-10.0, -5.0, 0.0, 5.0, 10.0]);
        for (low, high) in [(0.0, 1e300), (1e-9, 2e-9), (5.0, 1e12)] {
            let ticks = ticks(low, high, 5);
            assert!((2..=20).contains(&ticks.len()), "{ticks:?}");
        }
    }

    #[test]
    fn numbers_are_as_precise_as_their_neighbours_need() {
        let text = |tick, ticks: &[f64]| tick_text(tick, ticks);
        assert_eq!(text(20_000.0, &[0.0, 20_000.0]), "20,000");
        assert_eq!(text(2e7, &[0.0, 1e7, 2e7]), "20 M");
        assert_eq!(text(0.25, &[0.0, 0.25]), "0.25");
        assert_eq!(text(-5.0, &[-5.0, 0.0]), "\u{2212}5");
        assert_eq!(bar_text(12_345.6, 20_000.0), "12,346");
        assert_eq!(bar_text(1.234, 5.0), "1.23");
        assert_eq!(bar_text(0.0, 0.0), "0");
        assert_eq!(bar_text(f64::NAN, 1.0), "no figure");
    }

    #[test]
    fn names_at_the_ends_of_lines_do_not_overlap() {
        let mut places = vec![
            (0, 5.0, 5.0),
            (1, 6.0, 6.0),
            (2, 199.0, 199.0),
            (3, 200.0, 200.0),
        ];
        spread_out(&mut places, 0.0, 200.0);
        let gaps = places.windows(2).map(|pair| pair[1].2 - pair[0].2);
        assert!(gaps.into_iter().all(|gap| gap >= LINE - 1e-9), "{places:?}");
        assert!(places[3].2 <= 200.0 && places[0].2 >= 0.0, "{places:?}");
    }

    #[test]
    fn a_long_name_is_shortened_and_kept_as_a_title() {
        let mut svg = String::new();
        text(&mut svg, 0.0, 0.0, "", "start", &"x".repeat(100), 70.0);
        assert!(
            svg.contains(&format!("<title>{}</title>xx", "x".repeat(100))),
            "{svg}"
        );
        assert!(svg.contains("x\u{2026}</text>"), "{svg}");
    }
}
