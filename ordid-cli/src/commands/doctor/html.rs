//! Makes a report for a browser of the doctor's answer.

use super::{
    Arguments,
    findings::{Finding, Severity},
    rules,
    sarif::place,
    shown::{self, Counts},
};
use crate::report::{Figures, Picture, Report, Section};

/// Returns the report.
pub(crate) fn report(arguments: &Arguments, examined: &super::Report) -> Report {
    let database = format!("{} {}", examined.examined.engine, examined.examined.version);
    let counts = Counts::of(&examined.findings);
    let lead = match examined.findings.is_empty() {
        true => "Nothing is to be said against the keys of these tables.".to_owned(),
        false => format!("{counts}. Each has a query that shows it, and the SQL that ends it."),
    };
    let mut sections = Vec::new();
    if !examined.findings.is_empty() {
        sections.push(overview(&examined.findings));
    }
    sections.push(keys(examined));
    sections.extend(examined.findings.iter().map(finding));
    Report {
        title: format!("Keys of a {} database", examined.examined.engine),
        lead,
        sections,
        facts: vec![
            ("Database".to_owned(), database),
            (
                "Rows read of a table".to_owned(),
                format!("at most {}", rules::grouped(arguments.sample)),
            ),
            (
                "Time limit of a query".to_owned(),
                format!("{} s", arguments.timeout.as_secs_f64()),
            ),
            ("ordid".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        ],
    }
}

/// Returns a table with a row for each finding, as a list to work through.
fn overview(findings: &[Finding]) -> Section {
    let row = |finding: &Finding| {
        vec![
            finding.rule.id.to_owned(),
            finding.severity.name().to_owned(),
            place(finding),
            finding.message.clone(),
        ]
    };
    Section {
        heading: "What was found".to_owned(),
        tables: vec![Figures {
            caption: String::new(),
            header: ["finding", "severity", "where", "here"]
                .map(str::to_owned)
                .to_vec(),
            rows: findings.iter().map(row).collect(),
        }],
        ..Section::default()
    }
}

fn keys(examined: &super::Report) -> Section {
    let (mut rows, mut samples, mut bars) = (Vec::new(), Vec::new(), Vec::new());
    for table in &examined.tables {
        for key in &table.keys {
            rows.push(shown::key_cells(table, key).to_vec());
            if let (Some(fill), Some(ordered)) = (key.leaf_fill, key.ordered_leaf_fill) {
                let name = format!("{}.{}", table.table, key.column);
                bars.push((name.clone(), fill * 100.0));
                bars.push((format!("{name}, if ordered"), ordered * 100.0));
            }
        }
        if !table.keys.is_empty() {
            samples.push(vec![
                table.table.clone(),
                rules::grouped(table.sampled_rows),
                table.sampled_how.clone(),
                table
                    .inserted_by
                    .clone()
                    .unwrap_or_else(|| "unknown".to_owned()),
            ]);
        }
    }
    let filled = bars
        .iter()
        .map(|(name, fill)| vec![name.clone(), format!("{fill:.1}")])
        .collect();
    let header = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let mut tables = vec![
        Figures {
            caption: "What is in the keys".to_owned(),
            header: header(&shown::HEADER),
            rows,
        },
        Figures {
            caption: "What was read".to_owned(),
            header: header(&["table", "rows read", "which", "order of insertion by"]),
            rows: samples,
        },
    ];
    let mut pictures = Vec::new();
    if !bars.is_empty() {
        tables.push(Figures {
            caption: "How full the leaves are".to_owned(),
            header: header(&["key", "per cent"]),
            rows: filled,
        });
        pictures.push(Picture::Bars {
            title: "How full the leaves of the trees are".to_owned(),
            unit: "per cent".to_owned(),
            bars,
        });
    }
    // A table without rows has nothing to show.
    tables.retain(|table| !table.rows.is_empty());
    Section {
        heading: "Keys".to_owned(),
        paragraphs: match tables.is_empty() {
            true => vec!["There is no table with a key.".to_owned()],
            false => Vec::new(),
        },
        pictures,
        tables,
        code: Vec::new(),
    }
}

fn finding(finding: &Finding) -> Section {
    let severity = match finding.severity {
        Severity::Error => "Error",
        Severity::Warning => "Warning",
        Severity::Note => "Note",
    };
    // It stands in a comment of SQL.
    let answer = rules::plain(finding.evidence.answer.as_deref().unwrap_or("not asked"));
    Section {
        heading: format!("{severity}: {}, {}", finding.rule.id, place(finding)),
        paragraphs: vec![
            finding.rule.summary.to_owned(),
            format!("Here: {}.", finding.message),
            format!("Cost: {}.", finding.cost),
        ],
        pictures: Vec::new(),
        tables: Vec::new(),
        code: vec![
            format!("{};\n-- {answer}", finding.evidence.query),
            finding.fix.clone(),
        ],
    }
}
