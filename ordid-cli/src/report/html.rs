//! The HTML of a report.

use std::fmt::Write as _;

use super::{Figures, Picture, Report, Section, svg};

const STYLE: &str = include_str!("style.css");

/// Browsers load nothing, run nothing and send nothing; the style is inside, and the empty icon keeps them from asking
/// a server for one.
const HEAD: &str = r#"<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<meta name="generator" content="ordid"#;

/// Returns the whole document.
pub(super) fn document(report: &Report) -> String {
    let mut html = String::with_capacity(1 << 16);
    html.push_str(HEAD);
    let title = escape(&report.title);
    let _ = write!(
        html,
        " {}\">\n<link rel=\"icon\" href=\"data:,\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <header>\n<h1>{title}</h1>\n",
        env!("CARGO_PKG_VERSION")
    );
    if !report.lead.is_empty() {
        let _ = writeln!(html, "<p class=\"lead\">{}</p>", escape(&report.lead));
    }
    html.push_str("</header>\n");
    if report.sections.len() > 2 {
        contents(&mut html, report);
    }
    let mut pictures = 0;
    for (number, part) in report.sections.iter().enumerate() {
        section(&mut html, number, part, &mut pictures);
    }
    facts(&mut html, report);
    html.push_str("</main>\n</body>\n</html>\n");
    html
}

fn contents(html: &mut String, report: &Report) {
    html.push_str("<nav aria-label=\"Contents\">\n<ol>\n");
    for (number, section) in report.sections.iter().enumerate() {
        let heading = escape(&section.heading);
        let _ = writeln!(html, "<li><a href=\"#part-{number}\">{heading}</a></li>");
    }
    html.push_str("</ol>\n</nav>\n");
}

fn section(html: &mut String, number: usize, section: &Section, pictures: &mut usize) {
    let heading = escape(&section.heading);
    let _ = writeln!(
        html,
        "<section aria-labelledby=\"part-{number}\">\n<h2 id=\"part-{number}\">{heading}</h2>"
    );
    for paragraph in &section.paragraphs {
        let _ = writeln!(html, "<p>{}</p>", escape(paragraph));
    }
    for picture in &section.pictures {
        let (Picture::Lines { title, .. } | Picture::Bars { title, .. }) = picture;
        let _ = write!(
            html,
            "<figure>\n<figcaption>{}</figcaption>\n",
            escape(title)
        );
        // The text of a picture has to be readable on a phone, so it is not scaled: there is a picture for each width.
        for size in [svg::Size::Wide, svg::Size::Narrow] {
            svg::draw(html, picture, size, *pictures);
        }
        html.push_str("</figure>\n");
        *pictures += 1;
    }
    for figures in &section.tables {
        table(html, figures, &heading);
    }
    for code in &section.code {
        let _ = writeln!(
            html,
            "<pre tabindex=\"0\"><code>{}</code></pre>",
            escape(code)
        );
    }
    html.push_str("</section>\n");
}

/// Writes a table in a box that scrolls by itself; `heading` is escaped already.
fn table(html: &mut String, figures: &Figures, heading: &str) {
    let caption = escape(&figures.caption);
    let label = if caption.is_empty() {
        heading
    } else {
        &caption
    };
    let _ = write!(
        html,
        "<div class=\"scroll\" role=\"region\" aria-label=\"{label}\" tabindex=\"0\">\n<table>\n"
    );
    if !caption.is_empty() {
        let _ = writeln!(html, "<caption>{caption}</caption>");
    }
    let is_number: Vec<bool> = (0..figures.header.len())
        .map(|column| {
            let mut cells = figures.rows.iter().filter_map(|row| row.get(column));
            cells.clone().any(|cell| is_number(cell))
                && cells.all(|cell| is_number(cell) || cell.is_empty() || cell == "-")
        })
        .collect();
    let class = |column: usize| match is_number.get(column) {
        Some(true) => " class=\"number\"",
        _ => "",
    };
    html.push_str("<thead>\n<tr>");
    for (column, name) in figures.header.iter().enumerate() {
        let _ = write!(
            html,
            "<th scope=\"col\"{}>{}</th>",
            class(column),
            escape(name)
        );
    }
    html.push_str("</tr>\n</thead>\n<tbody>\n");
    for row in &figures.rows {
        html.push_str("<tr>");
        for (column, cell) in row.iter().enumerate() {
            let class = class(column);
            let cell = escape(cell);
            let _ = match column {
                0 => write!(html, "<th scope=\"row\"{class}>{cell}</th>"),
                _ => write!(html, "<td{class}>{cell}</td>"),
            };
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody>\n</table>\n</div>\n");
}

fn facts(html: &mut String, report: &Report) {
    if report.facts.is_empty() {
        return;
    }
    html.push_str(
        "<section class=\"facts\" aria-labelledby=\"facts\">\n<h2 id=\"facts\">Machine and versions</h2>\n<dl>\n",
    );
    for (name, value) in &report.facts {
        let _ = writeln!(
            html,
            "<div><dt>{}</dt><dd>{}</dd></div>",
            escape(name),
            escape(value)
        );
    }
    html.push_str("</dl>\n</section>\n");
}

/// Whether a cell is a number, with a unit of up to three letters or with what is around it in brackets.
fn is_number(cell: &str) -> bool {
    let digits = cell.trim_start_matches(['-', '+', '<', '>', '~', '\u{2212}', ' ']);
    if !digits.starts_with(|first: char| first.is_ascii_digit()) {
        return false;
    }
    let number = digits.trim_end_matches(|last: char| last.is_alphabetic() || last == '%');
    digits.len() - number.len() <= 4
        && number
            .chars()
            .all(|c| c.is_ascii_digit() || " .,[]-+\u{2013}\u{d7}\u{202f}".contains(c))
}

/// Returns the text as it stands between tags, or in an attribute with quotes. Control characters, and those that turn
/// the direction of a whole line, become visible.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\t' => escaped.push(character),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}' => {
                escaped.push('\u{fffd}')
            }
            // Not characters of XML, which SVG may be read as.
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            _ if character.is_control() => escaped.push('\u{fffd}'),
            _ => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_controls_and_turned_lines_are_escaped() {
        assert_eq!(
            escape("<a href=\"x\" id='y'>&amp;\0\u{1b}[31m\u{202e}\u{85}\n"),
            "&lt;a href=&quot;x&quot; id=&#39;y&#39;&gt;&amp;amp;\u{fffd}\u{fffd}[31m\u{fffd}\u{fffd}\n"
        );
    }

    #[test]
    fn numbers_are_told_from_names() {
        for number in [
            "1",
            "-1.5",
            "12,345",
            "1.2 [1.1..1.3]",
            "72.4 %",
            "13 ms",
            "1.5×",
            "< 0.1",
        ] {
            assert!(is_number(number), "{number}");
        }
        for name in [
            "",
            "-",
            "v7",
            "017f22e2-79b0-7cc3-98c4-dc0c0c07398f",
            "1 in 6 rows",
            "2 tables",
        ] {
            assert!(!is_number(name), "{name}");
        }
    }

    #[test]
    fn a_hostile_name_stays_text_wherever_it_stands() {
        let hostile = "</title></style></svg><script>alert(1)</script><img src=x onerror='y'>\"";
        let text = || hostile.to_owned();
        let report = Report {
            title: text(),
            lead: text(),
            sections: vec![Section {
                heading: text(),
                paragraphs: vec![text()],
                pictures: vec![
                    Picture::Lines {
                        title: text(),
                        x: text(),
                        y: text(),
                        lines: vec![(text(), vec![(0.0, 1.0), (1.0, f64::NAN)])],
                    },
                    Picture::Bars {
                        title: text(),
                        unit: text(),
                        bars: vec![(text(), 1.0)],
                    },
                ],
                tables: vec![Figures {
                    caption: text(),
                    header: vec![text()],
                    rows: vec![vec![text()]],
                }],
                code: vec![text()],
            }],
            facts: vec![(text(), text())],
        };
        let html = report.html();
        assert!(
            !html.contains("<script") && !html.contains("<img"),
            "{html}"
        );
        assert!(!html.contains("</style></svg>"), "{html}");
        assert!(!html.contains("NaN"), "{html}");
    }
}
