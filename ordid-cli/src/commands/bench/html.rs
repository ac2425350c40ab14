//! The report of a bench.

use super::document::{Document, Measured, plural};
use crate::report::{Figures, Picture, Report, Section};

/// Returns the report.
pub(super) fn report(document: &Document) -> Report {
    Report {
        title: document.title(),
        lead: lead(document),
        sections: vec![
            loading(document),
            size(document),
            written(document),
            reading(document),
            forms(document),
            method(document),
        ],
        facts: document.facts.clone(),
    }
}

/// Says what a reader has to know who reads nothing else.
fn lead(document: &Document) -> String {
    let rate = |it: &&Measured| it.rows_per_second.median;
    let mut keys: Vec<&Measured> = document.keys.iter().collect();
    keys.sort_by(|a, b| rate(b).total_cmp(&rate(a)));
    let (Some(first), Some(last)) = (keys.first(), keys.last()) else {
        return String::new();
    };
    let largest = document
        .keys
        .iter()
        .max_by(|a, b| a.bytes.total_cmp(&b.bytes))
        .unwrap_or(first);
    let smallest = document
        .keys
        .iter()
        .min_by(|a, b| a.bytes.total_cmp(&b.bytes))
        .unwrap_or(first);
    let (fast, slow) = (first.rows_per_second, last.rows_per_second);
    let mut lead = match slow.max < fast.min {
        true => format!(
            "{} takes {:.1} times as long to load as {}.",
            last.key,
            fast.median / slow.median.max(1e-9),
            first.key
        ),
        // Whoever reads one sentence only has to know that.
        false => "No key loads faster than another one in every round.".to_owned(),
    };
    let ratio = largest.bytes / smallest.bytes.max(1.0);
    if ratio >= 1.005 {
        lead += &format!(
            " The table of {} takes {ratio:.2} times the bytes of that of {}.",
            largest.key, smallest.key
        );
    }
    if let Some(note) = document.cache_note() {
        lead += " ";
        lead += &note;
    }
    lead
}

fn table(caption: &str, (header, rows): (Vec<&str>, Vec<Vec<String>>)) -> Figures {
    Figures {
        caption: caption.to_owned(),
        header: header.into_iter().map(str::to_owned).collect(),
        rows,
    }
}

fn loading(document: &Document) -> Section {
    let lines = document.keys.iter().map(|it| {
        let points = it
            .growth
            .iter()
            .map(|point| (f64::from(point.rows), point.rows_per_second.median));
        (it.key.clone(), points.collect())
    });
    let growth = document.keys.iter().map(|it| {
        let cells = it
            .growth
            .iter()
            .map(|point| super::spread::number(point.rows_per_second.median, 0));
        std::iter::once(it.key.clone()).chain(cells).collect()
    });
    let points = document
        .keys
        .first()
        .map(|it| &it.growth[..])
        .unwrap_or_default();
    let header = std::iter::once("key".to_owned()).chain(
        points
            .iter()
            .map(|point| super::spread::number(f64::from(point.rows), 0)),
    );
    Section {
        heading: "Loading".to_owned(),
        paragraphs: vec![
            "How many rows a second went into a table while it grew. A line that falls is a key whose place in the index \
             is anywhere, so that ever more pages are touched."
                .to_owned(),
        ],
        pictures: vec![Picture::Lines {
            title: "Rows a second while the table grows".to_owned(),
            x: "rows in the table".to_owned(),
            y: "rows a second".to_owned(),
            lines: lines.collect(),
        }],
        tables: vec![
            table("Each key, over the whole load", document.loads()),
            Figures {
                caption: "Rows a second, by how many rows the table had then".to_owned(),
                header: header.collect(),
                rows: growth.collect(),
            },
        ],
        code: Vec::new(),
    }
}

fn size(document: &Document) -> Section {
    let bars = |of: &dyn Fn(&Measured) -> Option<f64>| -> Vec<(String, f64)> {
        document
            .keys
            .iter()
            .filter_map(|it| Some((it.key.clone(), of(it)?)))
            .collect()
    };
    let mut pictures = vec![Picture::Bars {
        title: "Table with its index".to_owned(),
        unit: "bytes a row".to_owned(),
        bars: bars(&|it| Some(it.bytes_per_row)),
    }];
    let index = bars(&|it| Some(it.index_bytes? / f64::from(document.rows)));
    if !index.is_empty() {
        pictures.push(Picture::Bars {
            title: "The index of the key alone".to_owned(),
            unit: "bytes a row".to_owned(),
            bars: index,
        });
    }
    let fill = bars(&|it| it.page_fill_percent);
    if !fill.is_empty() {
        pictures.push(Picture::Bars {
            title: "How full the pages are".to_owned(),
            unit: "percent".to_owned(),
            bars: fill,
        });
    }
    let rows = document.keys.iter().map(|it| {
        let whole = |bytes: f64| super::spread::number(bytes, 0);
        vec![
            it.key.clone(),
            it.sql_type.clone(),
            whole(it.bytes),
            it.index_bytes.map_or_else(|| "-".to_owned(), whole),
            super::spread::number(it.bytes_per_row, 1),
            it.page_fill_percent
                .map_or_else(|| "-".to_owned(), |fill| super::spread::number(fill, 1)),
        ]
    });
    let header = vec![
        "key",
        "column",
        "bytes",
        "of which index",
        "bytes a row",
        "page fill %",
    ];
    let rule = "Keys that rise fill their pages; keys that are anywhere split them, and leave them partly empty.";
    let paragraphs = std::iter::once(rule)
        .chain(document.fill_note())
        .map(str::to_owned);
    Section {
        heading: "Size".to_owned(),
        paragraphs: paragraphs.collect(),
        pictures,
        tables: vec![table("Sizes after the load", (header, rows.collect()))],
        code: Vec::new(),
    }
}

fn written(document: &Document) -> Section {
    let bars: Vec<_> = document
        .keys
        .iter()
        .filter_map(|it| Some((it.key.clone(), it.written_bytes_per_row?.median)))
        .collect();
    let what = document.written_to;
    if bars.is_empty() {
        return Section {
            heading: "What was written".to_owned(),
            paragraphs: vec![format!(
                "The engine does not tell how much went to its {what}."
            )],
            ..Section::default()
        };
    }
    let rows = document.keys.iter().map(|it| {
        let cell = it
            .written_bytes_per_row
            .map_or_else(|| "-".to_owned(), |spread| spread.to_string());
        vec![it.key.clone(), cell]
    });
    Section {
        heading: "What was written".to_owned(),
        paragraphs: vec![format!(
            "Bytes of the {what} for each row. A server counts for all of its users, so others who wrote at the same time \
             are in it."
        )],
        pictures: vec![Picture::Bars {
            title: format!("Written to the {what}"),
            unit: "bytes a row".to_owned(),
            bars,
        }],
        tables: vec![table(
            "Bytes a row, with the least and the greatest of the rounds",
            (vec!["key", "bytes a row"], rows.collect()),
        )],
        code: Vec::new(),
    }
}

fn reading(document: &Document) -> Section {
    let bars = |of: fn(&super::document::Reads) -> f64| -> Vec<(String, f64)> {
        let keys = document.keys.iter();
        keys.filter_map(|it| Some((it.key.clone(), of(it.reads.as_ref()?))))
            .collect()
    };
    let picture = |title: &str, bars| Picture::Bars {
        title: title.to_owned(),
        unit: "a second".to_owned(),
        bars,
    };
    Section {
        heading: "Reading".to_owned(),
        paragraphs: vec![
            "One connection reads row after row by its key. A span is 100 rows that were inserted one after the other, as \
             a list of the newest or a range of time asks for them: keys that rise have them in one range, and of others \
             all 100 keys have to be known."
                .to_owned(),
        ],
        pictures: vec![
            picture("Rows by key, anywhere in the table", bars(|reads| reads.random_per_second.median)),
            picture("Rows by key, of the newest hundredth", bars(|reads| reads.newest_per_second.median)),
            picture("Spans of 100 rows", bars(|reads| reads.spans_per_second.median)),
        ],
        tables: vec![table("Reads, with the least and the greatest of the rounds", document.reads())],
        code: Vec::new(),
    }
}

fn forms(document: &Document) -> Section {
    let bars = |of: fn(&super::forms::Form) -> f64| {
        document
            .forms
            .iter()
            .map(|form| (form.name().to_owned(), of(form)))
            .collect()
    };
    Section {
        heading: "Sorting and comparing".to_owned(),
        paragraphs: vec![
            "The forms of a key in this program's memory: what an index, a sort or a join does without any database."
                .to_owned(),
        ],
        pictures: vec![
            Picture::Bars {
                title: "Sorting".to_owned(),
                unit: "nanoseconds a key".to_owned(),
                bars: bars(super::forms::Form::sort),
            },
            Picture::Bars {
                title: "Comparing two neighbours".to_owned(),
                unit: "nanoseconds".to_owned(),
                bars: bars(super::forms::Form::compare),
            },
        ],
        tables: vec![table(
            "Nanoseconds, with the least and the greatest of five rounds",
            (
                vec!["form", "a key, sorting", "a comparison"],
                document.forms.iter().map(|form| form.cells().to_vec()).collect(),
            ),
        )],
        code: Vec::new(),
    }
}

fn method(document: &Document) -> Section {
    let rows = super::spread::number(f64::from(document.rows), 0);
    Section {
        heading: "How it was measured".to_owned(),
        paragraphs: vec![
            format!(
                "Each of {} loaded one table for each key, {rows} rows of {} beside the key, {} a statement and \
                 transaction over one connection. Each round starts with another key, and every second one runs backwards, \
                 so that the order does not decide. Figures are medians of the rounds.",
                plural(document.rounds, "round"),
                plural(document.width, "byte"),
                plural(document.batch, "row"),
            ),
            "Keys come from a simulated clock, one a millisecond, so that a table looks like one that has grown for hours. \
             Only statements are timed, and not the making of keys. What is read is the same in each table."
                .to_owned(),
            "Sizes and pages come out alike on every machine; rates are of this machine and this hour.".to_owned(),
        ],
        ..Section::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{commands::bench::spread::Spread, engine::Engine};

    fn measured(key: &str, rates: [f64; 3], bytes: f64) -> Measured {
        Measured {
            key: key.to_owned(),
            sql_type: "BLOB".to_owned(),
            is_ordered: true,
            rows_per_second: Spread::of(rates),
            growth: Vec::new(),
            bytes,
            index_bytes: None,
            bytes_per_row: bytes / 1000.0,
            page_fill_percent: None,
            written_bytes_per_row: None,
            reads: None,
        }
    }

    fn document(keys: Vec<Measured>) -> Document {
        Document {
            engine: Engine::Sqlite,
            rows: 1000,
            width: 100,
            batch: 100,
            rounds: 3,
            cache_bytes: Some(2e6),
            written_to: "log",
            keys,
            forms: Vec::new(),
            facts: Vec::new(),
        }
    }

    #[test]
    fn a_key_is_called_faster_only_if_it_was_in_every_round() {
        let apart = vec![
            measured("auto", [4e5, 5e5, 6e5], 1e5),
            measured("v4", [1e5, 1e5, 1e5], 2e5),
        ];
        assert_eq!(
            lead(&document(apart)),
            "v4 takes 5.0 times as long to load as auto. The table of v4 takes 2.00 times the bytes of that of auto. The \
             largest table has 0.2 MB and the engine's cache 2.0 MB, so nothing had to be read from disk. Random keys cost \
             more once a table outgrows the cache: try --rows 40000."
        );
        let mixed = vec![
            measured("auto", [1e5, 5e5, 6e5], 1e5),
            measured("v4", [2e5, 1e5, 1e5], 1e5),
        ];
        let lead = lead(&document(mixed));
        assert!(
            lead.starts_with("No key loads faster than another one in every round. The largest"),
            "{lead}"
        );
    }

    #[test]
    fn what_an_engine_does_not_tell_is_no_picture() {
        let report = report(&document(vec![measured("auto", [1.0; 3], 1e5)]));
        let section = |heading: &str| report.sections.iter().find(|it| it.heading == heading);
        assert_eq!(
            section("What was written").map(|it| it.pictures.len()),
            Some(0)
        );
        assert_eq!(section("Size").map(|it| it.pictures.len()), Some(1));
    }
}
