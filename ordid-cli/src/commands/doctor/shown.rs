//! Shows the doctor's answer as text and as JSON.

use serde::Serialize;

use super::{
    Arguments, Report,
    findings::{Finding, Severity},
    rules::{self, Context, Key},
    sarif::place,
    session::Rows,
};
use crate::{
    failure::Failure,
    output::{Output, Style},
};

/// The columns of the table of keys.
pub(crate) const HEADER: [&str; 7] = [
    "key",
    "type",
    "rows",
    "values",
    "oldest",
    "newest",
    "steps down",
];

/// The most rows of an answer that are shown.
const ANSWER_ROWS: usize = 8;

/// A table, as it is shown.
#[derive(Debug, Serialize)]
pub(crate) struct Table {
    pub(crate) table: String,
    pub(crate) rows: Option<u64>,
    pub(crate) rows_are_counted: bool,
    pub(crate) bytes: Option<u64>,
    pub(crate) sampled_rows: usize,
    pub(crate) sampled_how: String,
    /// The column or address that says in which order rows were inserted; null if nothing does.
    pub(crate) inserted_by: Option<String>,
    pub(crate) keys: Vec<KeyRow>,
}

/// A column of a key, as it is shown.
#[derive(Debug, Serialize)]
pub(crate) struct KeyRow {
    pub(crate) column: String,
    #[serde(rename = "type")]
    pub(crate) declared: String,
    pub(crate) collation: Option<String>,
    pub(crate) roles: Vec<&'static str>,
    pub(crate) values: usize,
    pub(crate) nulls: usize,
    pub(crate) spellings: Vec<SpellingRow>,
    pub(crate) schemes: Vec<SchemeRow>,
    pub(crate) may_also_be: Vec<&'static str>,
    pub(crate) steps_down: Option<usize>,
    pub(crate) steps: Option<usize>,
    pub(crate) index_bytes: Option<u64>,
    pub(crate) leaf_fill: Option<f64>,
    pub(crate) ordered_leaf_fill: Option<f64>,
}

/// A form of writing values, as it is shown.
#[derive(Debug, Serialize)]
pub(crate) struct SpellingRow {
    pub(crate) spelling: String,
    pub(crate) count: usize,
}

/// A scheme, as it is shown.
#[derive(Debug, Serialize)]
pub(crate) struct SchemeRow {
    pub(crate) scheme: &'static str,
    pub(crate) count: usize,
    pub(crate) oldest: Option<String>,
    pub(crate) newest: Option<String>,
}

#[derive(Serialize)]
struct Document<'a> {
    database: DatabaseRow<'a>,
    limits: Limits,
    tables: &'a [Table],
    findings: Vec<FindingRow<'a>>,
    counts: Counts,
}

#[derive(Serialize)]
struct DatabaseRow<'a> {
    engine: crate::engine::Engine,
    version: &'a str,
}

#[derive(Serialize)]
struct Limits {
    sample_rows: u64,
    timeout_seconds: f64,
}

#[derive(Serialize)]
struct FindingRow<'a> {
    rule: &'static str,
    severity: Severity,
    table: Option<String>,
    column: Option<&'a str>,
    message: &'a str,
    evidence: &'a super::findings::Evidence,
    cost: &'a str,
    fix: &'a str,
}

/// How many findings there are of each severity.
#[derive(Serialize)]
pub(crate) struct Counts {
    error: usize,
    warning: usize,
    note: usize,
}

impl Counts {
    /// Counts them.
    pub(crate) fn of(findings: &[Finding]) -> Self {
        let count = |severity| {
            findings
                .iter()
                .filter(|finding| finding.severity == severity)
                .count()
        };
        Self {
            error: count(Severity::Error),
            warning: count(Severity::Warning),
            note: count(Severity::Note),
        }
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let plural = |count: usize, word: &str| match count {
            1 => format!("1 {word}"),
            count => format!("{count} {word}s"),
        };
        let Self {
            error,
            warning,
            note,
        } = self;
        write!(
            f,
            "{}, {}, {}",
            plural(*error, "error"),
            plural(*warning, "warning"),
            plural(*note, "note")
        )
    }
}

/// Returns what is to be shown of the keys of the tables that are wanted.
pub(crate) fn tables(context: &Context<'_>, wants: impl Fn(&super::Table) -> bool) -> Vec<Table> {
    let wanted = context.examined.tables.iter().filter(|table| wants(table));
    wanted
        .map(|table| Table {
            table: table.name.to_string(),
            rows: table.rows,
            rows_are_counted: table.is_counted,
            bytes: table.bytes,
            sampled_rows: table.sample.rows.len(),
            sampled_how: match table.sample.columns.is_empty() {
                true => "none: the table has no key".to_owned(),
                false => table.sample.how.clone(),
            },
            inserted_by: table
                .insertion
                .as_ref()
                .ok()
                .map(|insertion| insertion.by.clone()),
            keys: context
                .keys
                .iter()
                .filter(|key| key.table.name == table.name)
                .map(key_row)
                .collect(),
        })
        .collect()
}

fn key_row(key: &Key<'_>) -> KeyRow {
    let index = key.table.index_of(&key.column.name);
    let leaves = index.and_then(|index| index.leaves.as_ref());
    // References and names come in any order.
    let is_ordered = key.is_own() && key.profile.is_known() && index.is_some();
    let steps = key.profile.steps_down.filter(|_| is_ordered);
    let rounded = |fill: f64| (fill * 1_000.0).round() / 1_000.0;
    let roles = [
        (key.is_primary, "primary"),
        (key.is_unique && !key.is_primary, "unique"),
        (key.is_reference, "foreign"),
        (key.column.counter.is_some(), "numbered"),
    ];
    KeyRow {
        column: key.column.name.clone(),
        declared: key.column.declared.clone(),
        collation: key
            .column
            .collation
            .as_ref()
            .map(|collation| collation.name.clone()),
        roles: roles
            .into_iter()
            .filter(|(has, _)| *has)
            .map(|(_, role)| role)
            .collect(),
        values: key.profile.values,
        nulls: key.profile.nulls,
        spellings: key
            .profile
            .spellings
            .iter()
            .map(|(spelling, count)| SpellingRow {
                spelling: spelling.name(),
                count: *count,
            })
            .collect(),
        schemes: key
            .profile
            .schemes
            .iter()
            .map(|share| SchemeRow {
                scheme: share.scheme,
                count: share.count,
                oldest: share.times.map(|(oldest, _)| rfc3339(oldest)),
                newest: share.times.map(|(_, newest)| rfc3339(newest)),
            })
            .collect(),
        may_also_be: key.profile.also.clone(),
        steps_down: steps.map(|(down, _)| down),
        steps: steps.map(|(_, steps)| steps),
        index_bytes: index.and_then(|index| index.bytes),
        leaf_fill: leaves.map(|leaves| rounded(leaves.fill)),
        ordered_leaf_fill: leaves.map(|leaves| rounded(leaves.ordered_fill)),
    }
}

fn rfc3339(millis: i64) -> String {
    match jiff::Timestamp::from_millisecond(millis) {
        Ok(time) => time.to_string(),
        Err(_) => format!("{millis} ms since 1970"),
    }
}

/// Writes the answer to a query in a line.
pub(crate) fn answer(rows: &Rows) -> String {
    if rows.is_empty() {
        return "no rows".to_owned();
    }
    let line = |row: &Vec<Option<String>>| {
        let cells = row
            .iter()
            .map(|cell| cell.as_deref().unwrap_or("NULL").trim());
        cells.collect::<Vec<_>>().join(" | ")
    };
    let mut lines: Vec<String> = rows.iter().take(ANSWER_ROWS).map(line).collect();
    if rows.len() > ANSWER_ROWS {
        let more = u64::try_from(rows.len() - ANSWER_ROWS).unwrap_or(u64::MAX);
        lines.push(match more {
            1 => "and 1 more row".to_owned(),
            more => format!("and {} more rows", rules::grouped(more)),
        });
    }
    lines.join("; ")
}

/// Writes the report as the user wants it.
///
/// # Errors
///
/// The output cannot be written.
pub(crate) fn write(
    arguments: &Arguments,
    report: &Report,
    output: &mut Output,
) -> Result<(), Failure> {
    match output.is_json() {
        true => json(arguments, report, output),
        false => text(arguments, report, output),
    }
}

fn json(arguments: &Arguments, report: &Report, output: &mut Output) -> Result<(), Failure> {
    let findings = report.findings.iter().map(|finding| FindingRow {
        rule: finding.rule.id,
        severity: finding.severity,
        table: finding.table.as_ref().map(ToString::to_string),
        column: finding.column.as_deref(),
        message: &finding.message,
        evidence: &finding.evidence,
        cost: &finding.cost,
        fix: &finding.fix,
    });
    output.json(&Document {
        database: DatabaseRow {
            engine: report.examined.engine,
            version: &report.examined.version,
        },
        limits: Limits {
            sample_rows: arguments.sample,
            timeout_seconds: arguments.timeout.as_secs_f64(),
        },
        tables: &report.tables,
        findings: findings.collect(),
        counts: Counts::of(&report.findings),
    })
}

fn text(arguments: &Arguments, report: &Report, output: &mut Output) -> Result<(), Failure> {
    let title = format!("{} {}", report.examined.engine, report.examined.version);
    let title = output.paint(Style::Bold, &title);
    output.line(&format!(
        "{title}: {}, read-only, at most {} rows of each and {} s a query",
        match report.tables.len() {
            1 => "1 table".to_owned(),
            tables => format!("{tables} tables"),
        },
        rules::grouped(arguments.sample),
        arguments.timeout.as_secs_f64()
    ))?;
    let mut table = crate::output::table(&HEADER);
    let mut has_keys = false;
    for shown in &report.tables {
        for key in &shown.keys {
            has_keys = true;
            table.add_row(key_cells(shown, key).map(|cell| rules::plain(&cell)));
        }
    }
    if has_keys {
        output.line("")?;
        output.table(&table)?;
    }
    let partial = report
        .tables
        .iter()
        .filter(|table| !table.keys.is_empty() && table.sampled_how != "all rows");
    for table in partial {
        let line = format!(
            "of {} were read: {} ({} rows)",
            rules::plain(&table.table),
            rules::plain(&table.sampled_how),
            rules::grouped(table.sampled_rows)
        );
        let line = output.paint(Style::Dim, &line);
        output.line(&line)?;
    }
    for finding in &report.findings {
        output.line("")?;
        let style = match finding.severity {
            Severity::Error => Style::Bad,
            Severity::Warning => Style::Warning,
            Severity::Note => Style::Dim,
        };
        let severity = output.paint(style, finding.severity.name());
        let name = output.paint(Style::Bold, finding.rule.id);
        output.line(&format!(
            "{severity} {name} {}",
            rules::plain(&place(finding))
        ))?;
        output.line(&format!("  {}", rules::plain(&finding.message)))?;
        output.line(&format!("  cost:     {}", rules::plain(&finding.cost)))?;
        output.line(&format!(
            "  evidence: {}",
            harmless(&finding.evidence.query)
        ))?;
        output.line(&format!(
            "            => {}",
            rules::plain(finding.evidence.answer.as_deref().unwrap_or("not asked"))
        ))?;
        output.line(&format!(
            "  fix:      {}",
            harmless(&finding.fix).replace('\n', "\n            ")
        ))?;
    }
    output.line("")?;
    match report.findings.is_empty() {
        true => {
            let fine = output.paint(Style::Good, "nothing to complain about");
            output.line(&fine)
        }
        false => output.line(&Counts::of(&report.findings).to_string()),
    }
}

/// Returns SQL without what does something to a terminal.
fn harmless(sql: &str) -> String {
    sql.replace(|letter: char| letter.is_control() && letter != '\n', " ")
}

/// Returns the cells of a key in the table of the text.
pub(crate) fn key_cells(table: &Table, key: &KeyRow) -> [String; 7] {
    let rows = match (table.rows, table.rows_are_counted) {
        (None, _) => "unknown".to_owned(),
        (Some(rows), true) => rules::grouped(rows),
        (Some(rows), false) => format!("about {}", rules::grouped(rows)),
    };
    let schemes = key.schemes.iter().map(|scheme| match key.schemes.len() {
        1 => scheme.scheme.to_owned(),
        _ => format!(
            "{} {}",
            scheme.scheme,
            rules::percent(scheme.count as f64, key.values as f64)
        ),
    });
    let schemes = schemes.collect::<Vec<_>>().join(", ");
    let day =
        |time: Option<&String>| time.map_or("-".to_owned(), |time| time.chars().take(10).collect());
    let oldest = key
        .schemes
        .iter()
        .filter_map(|scheme| scheme.oldest.as_ref())
        .min();
    let newest = key
        .schemes
        .iter()
        .filter_map(|scheme| scheme.newest.as_ref())
        .max();
    [
        format!("{}.{}", table.table, key.column),
        match &key.collation {
            Some(collation) => format!("{}, {collation}", key.declared),
            None => key.declared.clone(),
        },
        rows,
        if schemes.is_empty() {
            "-".to_owned()
        } else {
            schemes
        },
        day(oldest),
        day(newest),
        match (key.steps_down, key.steps) {
            (Some(down), Some(steps)) => {
                format!("{} of {}", rules::grouped(down), rules::grouped(steps))
            }
            _ if key.roles == ["foreign"] => "-".to_owned(),
            _ => "unknown".to_owned(),
        },
    ]
}
