//! Imports of many issues at once: the files, and the progress of an import.

use std::{
    collections::{BTreeSet, HashMap},
    mem::take,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use ordid::KeyType as _;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    error::Error,
    model::{ImportId, Place},
    store::{Store, checked_body, checked_label, checked_title},
};

/// A function that gets the number of rows that are sent, and the number of rows to send.
pub(crate) type Observer = Box<dyn Fn(usize, usize) + Send>;

/// The number of imports of a project that are remembered after their end.
const REMEMBERED: usize = 100;
/// The largest number of issues in an import.
pub(crate) const LINES: usize = 100_000;

/// An issue of a file.
#[derive(Deserialize, ToSchema, Debug, Clone, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Line {
    /// The name of the issue at its source.
    pub(crate) name: String,
    /// The name of the issue above it, in this file or in one that was imported before.
    pub(crate) parent: Option<String>,
    pub(crate) title: String,
    #[serde(default)]
    pub(crate) body: String,
    #[serde(default)]
    pub(crate) labels: Vec<String>,
}

/// A row of CSV. The labels are in one column, with spaces between them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CsvLine {
    name: String,
    #[serde(default)]
    parent: Option<String>,
    title: String,
    #[serde(default)]
    body: String,
    #[serde(default)]
    labels: String,
}

impl From<CsvLine> for Line {
    fn from(line: CsvLine) -> Self {
        Self {
            name: line.name,
            parent: line.parent.filter(|name| !name.is_empty()),
            title: line.title,
            body: line.body,
            labels: line.labels.split_whitespace().map(str::to_owned).collect(),
        }
    }
}

/// Reads a CSV file with a line of headers.
pub(crate) fn read_csv(bytes: &[u8]) -> Result<Vec<Line>, csv::Error> {
    let mut reader = csv::Reader::from_reader(bytes);
    let lines = reader.deserialize::<CsvLine>();
    lines.map(|line| line.map(Line::from)).collect()
}

/// Checks everything that does not need the database, and removes labels that a line has twice.
pub(crate) fn check(lines: &mut [Line]) -> Result<(), Error> {
    let refused =
        |line: &Line, why: &str| Err(Error::refused(format_args!("{:?}: {why}", line.name)));
    if lines.len() > LINES {
        return Err(Error::refused(format_args!(
            "an import has {LINES} issues at most"
        )));
    }
    let mut parents: HashMap<String, Option<String>> = HashMap::new();
    for line in &mut *lines {
        if line.name.is_empty() || line.name.len() > 200 {
            return refused(line, "a name has from 1 to 200 bytes");
        }
        let name = &line.name;
        let here = |error: Error| error.context(format_args!("{name:?}"));
        line.title = checked_title(take(&mut line.title)).map_err(here)?;
        line.body = checked_body(take(&mut line.body)).map_err(here)?;
        let labels = take(&mut line.labels).into_iter().map(checked_label);
        let labels: BTreeSet<_> = labels.collect::<Result<_, _>>().map_err(here)?;
        line.labels.extend(labels);
        if parents
            .insert(line.name.clone(), line.parent.clone())
            .is_some()
        {
            return refused(line, "two lines have this name");
        }
    }
    // The database would accept a circle, because its foreign keys are not violated.
    let mut is_rooted: HashMap<&str, bool> = HashMap::new();
    for line in &*lines {
        let mut path = Vec::new();
        let mut next = Some(&*line.name);
        while let Some(name) = next {
            match is_rooted.insert(name, false) {
                None => path.push(name),
                Some(true) => {
                    is_rooted.insert(name, true);
                    break;
                }
                Some(false) => return refused(line, "it is its own ancestor"),
            }
            next = parents.get(name).and_then(Option::as_deref);
        }
        is_rooted.extend(path.into_iter().map(|name| (name, true)));
    }
    Ok(())
}

/// The outcome of an import.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Imported {
    pub(crate) added: usize,
    /// Lines that had been imported before.
    pub(crate) known: usize,
}

/// The progress and the outcome of an import.
#[derive(Serialize, ToSchema, Debug, Clone)]
pub(crate) struct ImportStatus {
    pub(crate) id: ImportId,
    pub(crate) state: ImportState,
    /// The number of rows that were sent: issues, labels, and labels of issues.
    pub(crate) rows_sent: usize,
    /// The number of rows to send. It is 0 until the first rows are sent.
    pub(crate) rows_to_send: usize,
    pub(crate) added: Option<usize>,
    /// Issues that had been imported before.
    pub(crate) known: Option<usize>,
    pub(crate) error: Option<String>,
}

#[derive(Serialize, ToSchema, Debug, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ImportState {
    Running,
    Done,
    Failed,
}

/// The imports of this process: those that are running, and the newest of each project that have ended.
#[derive(Clone, Default)]
pub(crate) struct Imports(Arc<Mutex<Vec<Arc<Import>>>>);

struct Import {
    id: ImportId,
    place: Place,
    sent: AtomicUsize,
    to_send: AtomicUsize,
    outcome: Mutex<Option<Result<Imported, String>>>,
}

impl Imports {
    /// Begins an import, which goes on in the background.
    pub(crate) fn begin(&self, store: Store, place: Place, lines: Vec<Line>) -> ImportStatus {
        let import = Arc::new(Import {
            id: ImportId::generate(),
            place,
            sent: AtomicUsize::new(0),
            to_send: AtomicUsize::new(0),
            outcome: Mutex::new(None),
        });
        {
            let mut imports = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            imports.push(Arc::clone(&import));
            let is_over = |it: &Import| it.is_of(place) && it.has_ended();
            let mut ended = imports.iter().filter(|it| is_over(it)).count();
            imports.retain(|it| {
                let is_forgotten = ended > REMEMBERED && is_over(it);
                ended -= usize::from(is_forgotten);
                !is_forgotten
            });
        }
        let status = import.status();
        tokio::spawn(async move {
            let observed = Arc::clone(&import);
            let observer = move |sent, to_send| {
                observed.to_send.store(to_send, Ordering::Relaxed);
                observed.sent.store(sent, Ordering::Relaxed);
            };
            let outcome = store.import(place, lines, Box::new(observer)).await;
            let outcome = outcome.map_err(|error| error.for_client());
            *import
                .outcome
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = Some(outcome);
        });
        status
    }

    pub(crate) fn status(&self, place: Place, id: ImportId) -> Result<ImportStatus, Error> {
        let imports = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |it: &&Arc<Import>| it.id == id && it.is_of(place);
        let found = imports.iter().find(is_it);
        found
            .map(|import| import.status())
            .ok_or_else(|| Error::not_found(id))
    }
}

impl Import {
    fn is_of(&self, place: Place) -> bool {
        self.place.tenant == place.tenant && self.place.project == place.project
    }

    fn has_ended(&self) -> bool {
        let outcome = self.outcome.lock();
        outcome.unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn status(&self) -> ImportStatus {
        let outcome = self
            .outcome
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let imported = outcome.as_ref().and_then(|outcome| outcome.as_ref().ok());
        ImportStatus {
            id: self.id,
            state: match outcome {
                None => ImportState::Running,
                Some(Ok(_)) => ImportState::Done,
                Some(Err(_)) => ImportState::Failed,
            },
            rows_sent: self.sent.load(Ordering::Relaxed),
            rows_to_send: self.to_send.load(Ordering::Relaxed),
            added: imported.map(|it| it.added),
            known: imported.map(|it| it.known),
            error: outcome.and_then(Result::err),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str, parent: Option<&str>) -> Line {
        Line {
            name: name.into(),
            parent: parent.map(str::to_owned),
            title: "Slow".into(),
            body: String::new(),
            labels: vec!["ui".into(), "bug".into(), "ui".into()],
        }
    }

    #[test]
    fn a_file_is_json_or_csv() {
        let csv = "name,parent,title,labels\n1,,Slow,bug ui\n2,1,\"Slow, too\",\n";
        let lines = read_csv(csv.as_bytes()).expect("two lines");
        assert_eq!(lines[0].labels, ["bug", "ui"]);
        assert_eq!(
            (lines[0].parent.as_deref(), lines[1].parent.as_deref()),
            (None, Some("1"))
        );
        assert_eq!(lines[1].title, "Slow, too");
        let json = r#"[{"name":"1","title":"Slow","labels":["bug","ui"]},{"name":"2","parent":"1","title":"Slow, too"}]"#;
        assert_eq!(
            serde_json::from_str::<Vec<Line>>(json).expect("two lines"),
            lines
        );
        for wrong in [
            "name\n1\n",
            "name,title,sprint\n1,2,3\n",
            "name,title\n1\n",
            "name,title\n\u{fffd},\n1,2,3",
        ] {
            assert!(read_csv(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_tree_may_stand_in_any_order_but_in_no_circle() {
        let mut lines = [
            line("c", Some("b")),
            line("a", None),
            line("b", Some("a")),
            line("d", Some("b")),
        ];
        check(&mut lines).expect("a tree");
        assert_eq!(lines[0].labels, ["bug", "ui"]);
        for parents in [&["a"][..], &["b", "a"], &["b", "c", "a"], &["b", "c", "b"]] {
            let names = ["a", "b", "c"].into_iter().zip(parents);
            let mut lines: Vec<_> = names
                .map(|(name, parent)| line(name, Some(parent)))
                .collect();
            let error = check(&mut lines).expect_err("a circle").to_string();
            assert!(error.ends_with("it is its own ancestor"), "{error}");
        }
        let error = check(&mut [line("a", None), line("a", None)]).expect_err("twice");
        assert!(error.to_string().contains("two lines have this name"));
    }
}
