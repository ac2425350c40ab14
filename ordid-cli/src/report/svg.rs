//! Pictures as SVG. Colours are classes of the page's style; a line is told by its colour, its marks and its name.

use std::fmt::Write as _;

use super::{Picture, html::escape};

// The tests of the browser include these files from their own folder, as they do those of `report.rs`.
#[path = "svg/bars.rs"]
mod bars;
#[path = "svg/lines.rs"]
mod lines;
#[path = "svg/scale.rs"]
mod scale;

use bars::draw_bars;
use lines::draw_lines;

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

#[cfg(test)]
mod tests {
    use super::*;

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
