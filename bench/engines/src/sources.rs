//! What others measured of keys, measured again: each claim with its figure, ours, and whether it
//! held.
//!
//! Figures of rates and times are this machine's, at this moment: run it with nothing beside it.

mod comparing;
mod inserting;
mod nodes;
mod ordered;
mod sorting;
mod throttle;

use bench_common::table::Table;
use clap::Args;

use crate::engine::Result;

/// Repeat what the sources of the key schemes measured.
#[derive(Args)]
pub(crate) struct Arguments {
    /// How many keys are sorted
    #[arg(long, default_value_t = 1_000_000)]
    keys: u32,
    /// How many rows are in a table before inserting into it is timed, and in the tables whose
    /// sizes are compared
    #[arg(long, default_value_t = 1_000_000)]
    rows: u32,
    /// How long inserting is timed, for each key
    #[arg(long, default_value_t = 45)]
    seconds: u32,
    /// How many comparisons MariaDB makes of each kind
    #[arg(long, default_value_t = 20_000_000)]
    comparisons: u32,
    /// Only the experiments with this text in their names; may be repeated
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
}

/// What came of a claim.
pub(crate) struct Finding {
    claim: &'static str,
    source: &'static str,
    ours: String,
    outcome: Outcome,
}

#[derive(Clone, Copy)]
pub(crate) enum Outcome {
    Held,
    DidNotHold,
    /// The conditions could not be made here, or the claim is about another engine.
    NotJudged(&'static str),
}

impl Outcome {
    const fn of(held: bool) -> Self {
        if held { Self::Held } else { Self::DidNotHold }
    }

    const fn text(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::DidNotHold => "did not hold",
            Self::NotJudged(why) => why,
        }
    }
}

/// Runs the experiments and prints what came of each claim.
pub(crate) async fn run(arguments: &Arguments) -> Result<()> {
    let wanted = |name: &str| {
        let mut texts = arguments.only.iter();
        arguments.only.is_empty() || texts.any(|text| name.contains(text.as_str()))
    };
    let mut findings = Vec::new();
    if wanted("sorting") {
        findings.extend(sorting::run(usize::try_from(arguments.keys)?));
    }
    if wanted("comparing") {
        findings.extend(comparing::run(arguments.comparisons).await?);
    }
    if wanted("ordered") {
        findings.extend(ordered::run(arguments.rows).await?);
    }
    if wanted("nodes") {
        findings.extend(nodes::run(arguments.rows).await?);
    }
    if wanted("inserting") {
        findings.extend(inserting::run(arguments.rows, arguments.seconds).await?);
    }
    let mut table = Table::new(["claim", "its source", "here", "outcome"]);
    for finding in findings {
        table.row([
            finding.claim.to_owned(),
            finding.source.to_owned(),
            finding.ours,
            finding.outcome.text().to_owned(),
        ]);
    }
    print!("\n{table}");
    Ok(())
}
