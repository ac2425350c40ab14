//! A plan, as a report for a browser.

use super::{duration, facts, title};
use crate::{
    migration::model::{Plan, Step},
    report::{Figures, Picture, Report, Section},
};

/// Returns the report.
pub(super) fn report(plan: &Plan) -> Report {
    let mut sections = vec![overview(plan)];
    if !plan.notes.is_empty() {
        sections.push(Section {
            heading: "What you should know first".to_owned(),
            paragraphs: plan.notes.iter().map(|note| sentence(note)).collect(),
            ..Section::default()
        });
    }
    for (heading, steps) in lists(plan) {
        for (number, step) in steps.iter().enumerate() {
            sections.push(section(heading, number + 1, step));
        }
    }
    Report {
        title: title(plan),
        lead: facts(plan).map(|fact| sentence(&fact)).join(" "),
        sections,
        facts: vec![
            (
                "Database".to_owned(),
                format!("{} {}", plan.engine, plan.server),
            ),
            ("Plan".to_owned(), plan.id.clone()),
            ("Journal".to_owned(), plan.journal.clone()),
            ("ordid".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        ],
    }
}

/// The lists of steps, each with what it is for.
fn lists(plan: &Plan) -> [(&'static str, &[Step]); 5] {
    [
        ("The move", &plan.steps),
        ("The way back before the switch", &plan.undo),
        ("The way back after the switch", &plan.back),
        ("The map of old and new keys", &plan.map),
        ("The end, after which there is no way back", &plan.finish),
    ]
}

fn overview(plan: &Plan) -> Section {
    let mut rows = Vec::new();
    for (list, steps) in lists(plan) {
        for (number, step) in steps.iter().enumerate() {
            rows.push(vec![
                format!("{list}, {}", number + 1),
                step.what.clone(),
                duration(step.seconds),
                step.locks.clone(),
            ]);
        }
    }
    let bars = plan.steps.iter().enumerate();
    let bars = bars.map(|(number, step)| (format!("{}. {}", number + 1, step.name), step.seconds));
    Section {
        heading: "All steps".to_owned(),
        pictures: vec![Picture::Bars {
            title: "How long the steps of the move take, about".to_owned(),
            unit: "seconds".to_owned(),
            bars: bars.collect(),
        }],
        tables: vec![Figures {
            caption: String::new(),
            header: ["step", "what it does", "about", "what it locks"]
                .map(str::to_owned)
                .to_vec(),
            rows,
        }],
        ..Section::default()
    }
}

fn section(list: &str, number: usize, step: &Step) -> Section {
    Section {
        heading: format!("{list}, {number}: {}", step.what),
        paragraphs: vec![format!(
            "It takes about {}. It locks {}.",
            duration(step.seconds),
            step.locks
        )],
        code: vec![step.action.sql().join(";\n")],
        ..Section::default()
    }
}

/// Makes a sentence of a line.
fn sentence(line: &str) -> String {
    let mut letters = line.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).chain(['.']).collect()
}
