//! Lines over a number, each with its name at its end, or below on a phone.

use std::fmt::Write as _;

use super::{
    COLORS, LINE, Line, Size, begin,
    scale::{bar_text, bounds, share, tick_text, ticks},
    text, width_of,
};

pub(super) fn draw_lines(
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
