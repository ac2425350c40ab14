//! A picture as SVG text: boxes, lines and words, in colours that a palette names.
//!
//! All pictures are 400 units wide, so that a phone shows their words at a size that can be read.

use std::fmt::Write as _;

/// The width of every picture.
pub const WIDTH: f64 = 400.0;
/// The width of a page at which words have the size of the text around them.
const SHOWN: f64 = 520.0;
/// The distance of everything from the edges.
pub const MARGIN: f64 = 12.0;
/// The size of ordinary words.
pub const SIZE: f64 = 12.0;

/// What a colour stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// Words and edges.
    Ink,
    /// Words that only explain, and lines between things.
    Faint,
    /// Time, and what is as it should be.
    Blue,
    /// Counts, and what is done.
    Green,
    /// Nodes, and what is waited for.
    Yellow,
    /// Bits that are always the same, and what went wrong.
    Red,
    /// Buckets, and what is not known yet.
    Purple,
    /// Random bits, and all else.
    Grey,
}

/// The colours of a theme.
#[derive(Debug)]
pub struct Palette {
    paper: &'static str,
    ink: &'static str,
    faint: &'static str,
    blue: &'static str,
    green: &'static str,
    yellow: &'static str,
    red: &'static str,
    purple: &'static str,
    grey: &'static str,
}

/// Dark words on white.
pub const LIGHT: Palette = Palette {
    paper: "#ffffff",
    ink: "#1f2328",
    faint: "#59636e",
    blue: "#b6dcff",
    green: "#b4e8bf",
    yellow: "#ffe08a",
    red: "#ffc2bd",
    purple: "#e0c8ff",
    grey: "#e4e7eb",
};

/// Light words on black.
pub const DARK: Palette = Palette {
    paper: "#161b22",
    ink: "#f0f3f6",
    faint: "#a7b0ba",
    blue: "#0f4c8a",
    green: "#14632c",
    yellow: "#745300",
    red: "#8e2823",
    purple: "#57308f",
    grey: "#3a424d",
};

impl Palette {
    fn of(&self, colour: Colour) -> &'static str {
        match colour {
            Colour::Ink => self.ink,
            Colour::Faint => self.faint,
            Colour::Blue => self.blue,
            Colour::Green => self.green,
            Colour::Yellow => self.yellow,
            Colour::Red => self.red,
            Colour::Purple => self.purple,
            Colour::Grey => self.grey,
        }
    }
}

/// Where words stand at their point.
#[derive(Debug, Clone, Copy)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

#[derive(Debug)]
enum Shape {
    Rect([f64; 4], Colour),
    Line(Vec<(f64, f64)>, Colour, Ends),
    Text((f64, f64), String, Style),
}

/// What a line ends in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    Plain,
    Arrow,
    DashedArrow,
}

/// How words are written.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    pub size: f64,
    pub colour: Colour,
    pub anchor: Anchor,
    pub bold: bool,
}

impl Style {
    /// Ordinary words that begin at their point.
    pub const PLAIN: Self = Self {
        size: SIZE,
        colour: Colour::Ink,
        anchor: Anchor::Start,
        bold: false,
    };
    /// Words that explain.
    pub const FAINT: Self = Self {
        colour: Colour::Faint,
        ..Self::PLAIN
    };
    /// A heading.
    pub const BOLD: Self = Self {
        bold: true,
        ..Self::PLAIN
    };
    /// Words in the middle of a box.
    pub const MIDDLE: Self = Self {
        anchor: Anchor::Middle,
        ..Self::PLAIN
    };
}

/// A picture.
#[derive(Debug)]
pub struct Svg {
    title: &'static str,
    height: f64,
    shapes: Vec<Shape>,
}

impl Svg {
    /// Begins a picture. The title says what it shows to those who cannot see it.
    pub fn new(title: &'static str) -> Self {
        Self {
            title,
            height: 0.0,
            shapes: Vec::new(),
        }
    }

    fn reaches(&mut self, (x, y): (f64, f64)) {
        assert!(
            (0.0..=WIDTH).contains(&x) && y >= 0.0,
            "{}: ({x}, {y}) is outside of the picture",
            self.title
        );
        self.height = self.height.max(y + MARGIN);
    }

    /// Draws a filled box.
    pub fn rect(&mut self, x: f64, y: f64, (width, height): (f64, f64), colour: Colour) {
        self.reaches((x, y));
        self.reaches((x + width, y + height));
        self.shapes.push(Shape::Rect([x, y, width, height], colour));
    }

    /// Draws a line through points.
    pub fn line(&mut self, points: &[(f64, f64)], colour: Colour, ends: Ends) {
        for point in points {
            self.reaches(*point);
        }
        self.shapes.push(Shape::Line(points.to_vec(), colour, ends));
    }

    /// Writes words. The point is at their foot.
    pub fn text(&mut self, x: f64, y: f64, words: impl Into<String>, style: Style) {
        let words = words.into();
        let length = length(&words, style);
        let (left, right) = match style.anchor {
            Anchor::Start => (x, x + length),
            Anchor::Middle => (x - length / 2.0, x + length / 2.0),
            Anchor::End => (x - length, x),
        };
        assert!(
            left >= 0.0 && right <= WIDTH,
            "{}: `{words}` does not fit",
            self.title
        );
        self.reaches((x, y));
        self.shapes.push(Shape::Text((x, y), words, style));
    }

    /// Draws a box of the words' colour with words in its middle.
    pub fn labelled(
        &mut self,
        (x, y): (f64, f64),
        (width, height): (f64, f64),
        words: &str,
        colour: Colour,
    ) {
        self.rect(x, y, (width, height), colour);
        let style = Style::MIDDLE;
        assert!(
            length(words, style) <= width,
            "{}: `{words}` does not fit into its box",
            self.title
        );
        let foot = y + height / 2.0 + SIZE * 0.35;
        self.text(x + width / 2.0, foot, words, style);
    }

    /// Draws a row of colours with their meanings, and returns the height that it took.
    pub fn legend(&mut self, y: f64, meanings: &[(Colour, &str)]) -> f64 {
        let (mut x, mut row) = (MARGIN, y);
        for (colour, words) in meanings {
            let end = x + 16.0 + length(words, Style::FAINT);
            if end > WIDTH - MARGIN {
                (x, row) = (MARGIN, row + 18.0);
            }
            self.rect(x, row - 10.0, (12.0, 12.0), *colour);
            self.text(x + 16.0, row, *words, Style::FAINT);
            x += 16.0 + length(words, Style::FAINT) + 12.0;
        }
        row - y + 18.0
    }

    /// Returns the file's text.
    pub fn written(&self, palette: &Palette) -> String {
        let height = number(self.height);
        let shown = (number(SHOWN), number(self.height * SHOWN / WIDTH));
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {height}\" width=\"{}\" height=\"{}\" \
             role=\"img\" font-family=\"system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif\">\n\
             <title>{}</title>\n\
             <rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"{}\"/>\n",
            number(WIDTH),
            shown.0,
            shown.1,
            escaped(self.title),
            palette.paper,
        );
        for shape in &self.shapes {
            write_shape(&mut text, shape, palette);
        }
        text + "</svg>\n"
    }
}

fn write_shape(text: &mut String, shape: &Shape, palette: &Palette) {
    let written = match shape {
        Shape::Rect([x, y, width, height], colour) => writeln!(
            text,
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"2\" fill=\"{}\" stroke=\"{}\" \
             stroke-width=\"0.6\"/>",
            number(*x),
            number(*y),
            number(*width),
            number(*height),
            palette.of(*colour),
            palette.faint
        ),
        Shape::Line(points, colour, ends) => {
            let points: Vec<_> = points
                .iter()
                .map(|(x, y)| format!("{},{}", number(*x), number(*y)))
                .collect();
            let dashes = match ends {
                Ends::DashedArrow => " stroke-dasharray=\"4 3\"",
                Ends::Plain | Ends::Arrow => "",
            };
            writeln!(
                text,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.2\"{dashes}/>",
                points.join(" "),
                palette.of(*colour)
            )
        }
        Shape::Text((x, y), words, style) => {
            let anchor = match style.anchor {
                Anchor::Start => "",
                Anchor::Middle => " text-anchor=\"middle\"",
                Anchor::End => " text-anchor=\"end\"",
            };
            let weight = if style.bold {
                " font-weight=\"600\""
            } else {
                ""
            };
            writeln!(
                text,
                "<text x=\"{}\" y=\"{}\" font-size=\"{}\" fill=\"{}\"{anchor}{weight}>{}</text>",
                number(*x),
                number(*y),
                number(style.size),
                palette.of(style.colour),
                escaped(words)
            )
        }
    };
    written.expect("a String takes all text");
    if let Shape::Line(points, colour, Ends::Arrow | Ends::DashedArrow) = shape {
        write_head(text, points, palette.of(*colour));
    }
}

/// Draws the head of an arrow at the last point.
fn write_head(text: &mut String, points: &[(f64, f64)], colour: &str) {
    let [.., (from_x, from_y), (x, y)] = points else {
        return;
    };
    let (dx, dy) = (x - from_x, y - from_y);
    let length = dx.hypot(dy);
    let (dx, dy) = (dx / length * 7.0, dy / length * 7.0);
    let corners = [
        (*x, *y),
        (x - dx - dy * 0.5, y - dy + dx * 0.5),
        (x - dx + dy * 0.5, y - dy - dx * 0.5),
    ];
    let corners = corners.map(|(x, y)| format!("{},{}", number(x), number(y)));
    *text += &format!(
        "<polygon points=\"{}\" fill=\"{colour}\"/>\n",
        corners.join(" ")
    );
}

/// Returns about how long words are. Fonts differ, so this is the length in a wide one.
pub fn length(words: &str, style: Style) -> f64 {
    let letters: f64 = words
        .chars()
        .map(|letter| match letter {
            'i' | 'j' | 'l' | '.' | ',' | ':' | '\'' | '|' | '(' | ')' | ' ' => 0.35,
            'm' | 'w' | 'M' | 'W' | '@' => 0.95,
            'A'..='Z' => 0.7,
            _ => 0.58,
        })
        .sum();
    letters * style.size * if style.bold { 1.08 } else { 1.0 }
}

fn number(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The relative luminance of WCAG 2, of a colour such as `#1f2328`.
    fn luminance(colour: &str) -> f64 {
        let part = |at: usize| {
            let part = u8::from_str_radix(&colour[at..at + 2], 16).unwrap();
            let part = f64::from(part) / 255.0;
            if part <= 0.040_45 {
                part / 12.92
            } else {
                ((part + 0.055) / 1.055).powf(2.4)
            }
        };
        0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
    }

    fn contrast(one: &str, other: &str) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    /// 4.5 is what WCAG 2 asks of words at level AA.
    #[test]
    fn words_can_be_read_on_every_colour_of_both_themes() {
        for palette in [&LIGHT, &DARK] {
            use Colour::{Blue, Green, Grey, Purple, Red, Yellow};
            for colour in [Blue, Green, Grey, Purple, Red, Yellow] {
                let found = contrast(palette.ink, palette.of(colour));
                assert!(found >= 4.5, "{palette:?}, {colour:?}: {found}");
            }
            assert!(contrast(palette.faint, palette.paper) >= 4.5);
        }
    }

    #[test]
    #[should_panic(expected = "does not fit")]
    fn words_that_leave_the_picture_are_refused() {
        Svg::new("a picture").text(380.0, 20.0, "twenty letters or so", Style::PLAIN);
    }
}
