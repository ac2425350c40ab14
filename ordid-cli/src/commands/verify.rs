//! `ordid verify`: whether keys rise by an engine's rule, and whether one comes twice, in constant memory.
//!
//! JSON, one document: `keys`, `scheme`, `engine` and `column` or null, `rising` (whether each key is above the one
//! before), `out_of_order` (keys below the highest before them), `repeated` (keys that came before, or null with
//! `--order-only`), `unreadable` (lines that are no key of the scheme), and `first`, the first findings, each with `line`,
//! `key` and `problem` (`out of order`, `unreadable`).

use std::{cmp::Ordering, fs, io::BufRead};

use clap::{Args, ValueHint};
use ordid_core::{
    clock::{Clock as _, SystemClock},
    layout::Orders,
    scheme::catalogue::{self, AnyColumn, AnyKey, Entry},
};
use serde::Serialize;

use crate::{
    engine::Engine,
    external_sort::ExternalSort,
    failure::{Failure, Outcome, without_password},
    input,
    output::{Output, Style},
    progress::Progress,
    scheme::{self, Known, Named, column_names},
    spelling,
};

/// Findings that are shown.
const SHOWN: usize = 10;

/// Arguments of `ordid verify`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A file with a key on each line, in the order of their making, or `-` for stdin
    #[arg(value_hint = ValueHint::FilePath)]
    file: String,
    /// The scheme of the keys; without it that of the first one
    #[arg(long, hide_possible_values = true)]
    scheme: Option<Named>,
    /// Compare as this engine does; without it, keys compare by their scheme
    #[arg(long)]
    engine: Option<Engine>,
    /// The column's type, as in `#[ordid(sqlx(mysql = binary16))]`; without it the first that keeps the order
    #[arg(long, requires = "engine", value_parser = Known(column_names), hide_possible_values = true)]
    column: Option<String>,
    /// Do not look for keys that come twice. That look takes as much temporary space as the keys, if they come from a pipe
    /// or do not rise
    #[arg(long)]
    order_only: bool,
    /// Megabytes of memory for that look
    #[arg(long, value_name = "MB", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    memory: u32,
}

/// A finding, in JSON.
#[derive(Serialize)]
struct Finding {
    line: u64,
    key: String,
    problem: &'static str,
}

/// The answer, in JSON.
#[derive(Serialize)]
struct Answer {
    keys: u64,
    scheme: &'static str,
    engine: Option<Engine>,
    column: Option<&'static str>,
    rising: bool,
    out_of_order: u64,
    repeated: Option<u64>,
    unreadable: u64,
    first: Vec<Finding>,
    #[serde(skip)]
    is_without_order: bool,
}

/// By which rule keys are compared.
struct Rule {
    scheme: &'static Entry,
    column: Option<AnyColumn>,
}

impl Rule {
    /// Reads a line, in each spelling in which the scheme is told by the first one: engines print keys in many.
    fn read(&self, line: &str) -> Option<AnyKey> {
        let canonical = self.scheme.parse(None, line).ok();
        let prefixed = || {
            let (prefix, _) = line.rsplit_once('_')?;
            self.scheme.parse(Some(prefix), line).ok()
        };
        let respelled = || spelling::read(line, SystemClock.now()).key_of(self.scheme.name);
        canonical.or_else(prefixed).or_else(respelled)
    }

    /// Returns what is compared byte by byte; of a scheme without a column, the key's own bytes.
    fn bytes(&self, key: &AnyKey) -> Result<Vec<u8>, Failure> {
        match self.column {
            Some(column) => column.sort_key(key).map_err(Failure::wrong),
            None => Ok(key.as_bytes().to_vec()),
        }
    }

    fn compare(&self, left: &(AnyKey, Vec<u8>), right: &(AnyKey, Vec<u8>)) -> Ordering {
        match self.column {
            Some(_) => left.1.cmp(&right.1),
            None => left.0.cmp(&right.0),
        }
    }
}

impl Arguments {
    /// Reads the keys and prints what it found.
    ///
    /// # Errors
    ///
    /// The keys cannot be read, are of no known scheme, or the engine has no such column.
    pub(crate) fn run(self, output: &mut Output) -> Result<Outcome, Failure> {
        let mut lines = input::lines(input::open(&self.file)?);
        let Some(first) = lines.read()?.map(str::to_owned) else {
            return Err(Failure::wrong("there are no keys"));
        };
        let rule = self.rule(&first)?;
        // A pipe cannot be read again, also one that has a name.
        let reads_again = fs::metadata(&self.file).is_ok_and(|it| it.is_file());
        let sort = (!reads_again && !self.order_only).then(|| self.sort());
        let mut answer = self.verify(&rule, first, &mut lines, sort)?;
        // A file is read again only where it has to be: if keys rise, none comes twice.
        if reads_again && !self.order_only && !answer.rising {
            answer.repeated = Some(self.repeated(&rule)?);
        }
        let findings = answer.out_of_order + answer.unreadable + answer.repeated.unwrap_or(0);
        match output.is_json() {
            true => output.json(&answer)?,
            false => print(&answer, output)?,
        }
        Ok(match findings {
            0 => Outcome::Fine,
            _ => Outcome::Findings,
        })
    }

    fn rule(&self, first: &str) -> Result<Rule, Failure> {
        let scheme = match self.scheme {
            Some(Named(scheme)) => scheme,
            None => {
                let reading = spelling::read(first, SystemClock.now());
                let candidates = reading.detection.candidates.iter();
                let known = candidates.filter_map(|found| catalogue::find(found.scheme));
                known.into_iter().next().ok_or_else(|| {
                    Failure::wrong(format_args!(
                        "the first line, {first:?}, is no key of a known scheme; name it by --scheme"
                    ))
                })?
            }
        };
        let column = match (self.engine, self.column.as_deref()) {
            (None, _) => None,
            (Some(engine), None) => Some(scheme::ordered_column(scheme, engine, None)?),
            // The user may ask how many keys lose their order in a column that does not keep it.
            (Some(engine), Some(name)) => {
                let columns = scheme::columns(scheme, engine);
                let named = columns.into_iter().find(|column| column.name == name);
                match named {
                    Some(column) => Some(column),
                    None => Some(scheme::ordered_column(scheme, engine, Some(name))?),
                }
            }
        };
        Ok(Rule { scheme, column })
    }

    fn verify<R: BufRead>(
        &self,
        rule: &Rule,
        first: String,
        lines: &mut input::Lines<R>,
        mut sort: Option<ExternalSort>,
    ) -> Result<Answer, Failure> {
        let mut answer = Answer {
            keys: 0,
            scheme: rule.scheme.name,
            engine: self.engine,
            column: rule.column.map(|column| column.name),
            rising: true,
            out_of_order: 0,
            repeated: Some(0).filter(|_| !self.order_only),
            unreadable: 0,
            first: Vec::new(),
            is_without_order: rule.scheme.orders() == Orders::NONE,
        };
        let mut progress = Progress::new("keys", 0);
        let mut highest: Option<(AnyKey, Vec<u8>)> = None;
        let mut next = Some(first);
        while let Some(line) = next {
            progress.add(1);
            let note = |problem, line: &str, answer: &mut Answer| {
                if answer.first.len() < SHOWN {
                    answer.first.push(Finding {
                        line: lines.number(),
                        key: without_password(line).into_owned(),
                        problem,
                    });
                }
            };
            match rule.read(&line) {
                None => {
                    answer.unreadable += 1;
                    note("unreadable", &line, &mut answer);
                }
                Some(key) => {
                    answer.keys += 1;
                    let key = (key, rule.bytes(&key)?);
                    if let Some(sort) = &mut sort {
                        sort.add(&key.1)?;
                    }
                    let compared = highest.as_ref().map(|highest| rule.compare(&key, highest));
                    match compared {
                        None | Some(Ordering::Greater) => highest = Some(key),
                        Some(Ordering::Equal) => answer.rising = false,
                        Some(Ordering::Less) => {
                            answer.rising = false;
                            answer.out_of_order += 1;
                            note("out of order", &line, &mut answer);
                        }
                    }
                }
            }
            next = lines.read()?.map(str::to_owned);
        }
        progress.finish();
        if let Some(sort) = sort {
            answer.repeated = Some(sort.repeated()?);
        }
        Ok(answer)
    }

    fn sort(&self) -> ExternalSort {
        let megabytes = usize::try_from(self.memory).expect("a number of megabytes fits");
        ExternalSort::new(megabytes << 20)
    }

    /// Reads the file again, and returns how many of its keys came before.
    fn repeated(&self, rule: &Rule) -> Result<u64, Failure> {
        let mut lines = input::lines(input::open(&self.file)?);
        let mut sort = self.sort();
        let mut progress = Progress::new("keys that may come twice", 0);
        while let Some(line) = lines.read()? {
            if let Some(key) = rule.read(line) {
                sort.add(&rule.bytes(&key)?)?;
            }
            progress.add(1);
        }
        progress.finish();
        sort.repeated()
    }
}

fn print(answer: &Answer, output: &mut Output) -> Result<(), Failure> {
    let rule = match (answer.engine, answer.column) {
        (Some(engine), Some(column)) => format!("in a {column} column of {engine}"),
        _ => "by their scheme".to_owned(),
    };
    output.line(&format!(
        "{} keys of {}, compared {rule}",
        answer.keys, answer.scheme
    ))?;
    let findings = [
        (answer.out_of_order, "out of order: below a key before"),
        (answer.repeated.unwrap_or(0), "repeated: came before"),
        (answer.unreadable, "unreadable: no key of the scheme"),
    ];
    if findings.iter().all(|(count, _)| *count == 0) {
        let fine = match answer.repeated {
            Some(_) => "each is above the one before, and none comes twice",
            None => "none is below a key before it; nobody looked for keys that come twice",
        };
        return output.line(&output.paint(Style::Good, fine));
    }
    for (count, what) in findings {
        if count > 0 {
            output.line(&output.paint(Style::Bad, &format!("{count} {what}")))?;
        }
    }
    for finding in &answer.first {
        output.line(&format!(
            "  line {}: {}, {}",
            finding.line, finding.key, finding.problem
        ))?;
    }
    let shown = u64::try_from(answer.first.len()).expect("they are few");
    let more = answer.out_of_order + answer.unreadable - shown;
    if more > 0 {
        output.line(&format!("  and {more} more"))?;
    }
    if answer.is_without_order {
        let why = format!(
            "keys of {} have no order: random keys are nearly all out of order",
            answer.scheme
        );
        output.line(&output.paint(Style::Dim, &why))?;
    }
    Ok(())
}
