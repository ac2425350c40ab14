//! What a call sends, statement by statement, so that it goes on where it failed.

use std::{
    collections::HashMap,
    ops::Range,
    sync::{Arc, OnceLock},
};

use ordid_core::{clock::Delay, uuid::Uuid};

use super::{
    Answer, Batch, Entry, MappingDialect as _, MappingDriver, MappingError, MappingRow, Values,
    error::Failed, uuid_of_bytes, uuid_of_row,
};
use crate::{DriverError, Failure, Retry, spi::BoxFuture};

/// Sends a statement, which `write` writes for a table: over a pool's connection in a transaction of its own, if the
/// dialect wants one.
async fn send<S: MappingDriver>(
    source: &mut S::Source<'_>,
    table: &str,
    values: Values<'_>,
    is_kept: bool,
    write: &(dyn Fn(&str) -> String + Sync),
) -> Result<Answer<MappingRow>, DriverError<S::Error>> {
    let script = S::may_reconnect(source)
        .then(|| S::Dialect::script(write, table, values))
        .flatten();
    match script {
        Some(script) => S::run(source, script).await,
        None => S::ask(source, write(table), values, is_kept).await,
    }
}

/// Statements of which each is done or not: there is no transaction around them but the user's.
pub(super) trait Job<S: MappingDriver>: Send {
    /// Sends what is not sent yet, after so many failures.
    fn go<'a>(
        &'a mut self,
        source: &'a mut S::Source<'_>,
        table: &'a str,
        failures: u32,
    ) -> BoxFuture<'a, Result<(), Failed<S::Error>>>;

    /// Whether a statement whose answer was lost can be sent once more.
    fn is_repeatable(&self) -> bool;
}

/// Carries a job out. Over a pool it is tried again; over a connection it is not, as a transaction of the
/// user's would be gone.
pub(super) async fn run<S: MappingDriver>(
    mut source: S::Source<'_>,
    table: &str,
    retry: Retry,
    prepares: bool,
    job: &mut impl Job<S>,
) -> Result<(), MappingError<S::Error>> {
    if !prepares {
        S::isolate(&mut source);
    }
    let mut failures = 0;
    loop {
        let Err(failed) = job.go(&mut source, table, failures).await else {
            return Ok(());
        };
        let failure = failed.failure();
        S::release(&mut source, failure == Failure::Lost);
        let goes_on = match failure {
            Failure::Transient => true,
            Failure::Lost => job.is_repeatable(),
            Failure::Refused | Failure::Duplicate => false,
        } && S::may_reconnect(&source);
        let delay = retry.delay(failures + 1).filter(|_| goes_on);
        let Some(delay) = delay else {
            return Err(failed.of(table, failures));
        };
        failures += 1;
        Delay::new(delay).await;
    }
}

/// A statement without parameters.
pub(super) struct Create(pub(super) String);

impl<S: MappingDriver> Job<S> for Create {
    fn go<'a>(
        &'a mut self,
        source: &'a mut S::Source<'_>,
        _: &'a str,
        _: u32,
    ) -> BoxFuture<'a, Result<(), Failed<S::Error>>> {
        Box::pin(async move {
            S::ask(source, self.0.clone(), Values::None, false).await?;
            Ok(())
        })
    }

    fn is_repeatable(&self) -> bool {
        true
    }
}

/// What is done with UUIDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Task {
    Find,
    Insert {
        /// Whether most of them are expected to be there, or an id must not be lost for one that is.
        looks_first: bool,
        /// Whether it matters which are new.
        exact: bool,
    },
}

impl Task {
    pub(super) const INSERT_OR_GET: Self = Self::Insert {
        looks_first: true,
        exact: false,
    };
}

/// UUIDs whose ids are wanted.
pub(super) struct Mapper {
    task: Task,
    batch: Batch,
    /// What is not done yet, the last first.
    chunks: Vec<Range<usize>>,
    /// Inserted, and not read back.
    unread: Vec<Entry>,
    /// Whether the servers compare which ids each has given, once one was asked.
    compares: Arc<OnceLock<bool>>,
}

/// How often in a row an insert may come to nothing: another deletes what it was to be in the way of.
const FRUITLESS: u32 = 5;

impl Mapper {
    pub(super) fn new<S: MappingDriver>(
        task: Task,
        uuids: impl Iterator<Item = Uuid>,
        compares: Arc<OnceLock<bool>>,
    ) -> Self {
        let batch = Batch::new(uuids);
        let mut chunks: Vec<_> = batch.chunks(S::Dialect::INSERT_ROWS).collect();
        chunks.reverse();
        Self {
            task,
            batch,
            chunks,
            unread: Vec::new(),
            compares,
        }
    }

    pub(super) fn into_batch(self) -> Batch {
        self.batch
    }

    /// Takes rows in.
    fn set<E>(&mut self, rows: Vec<MappingRow>, is_new: bool) -> Result<(), Failed<E>> {
        for (id, bytes, _) in rows {
            self.batch
                .set(uuid_of_bytes(id, bytes.as_deref())?, id, is_new)?;
        }
        Ok(())
    }

    async fn find<S: MappingDriver>(
        &mut self,
        source: &mut S::Source<'_>,
        table: &str,
        entries: &[Entry],
        found: Found,
    ) -> Result<(), Failed<S::Error>> {
        for entries in entries.chunks(S::Dialect::FIND_ROWS) {
            let (rows, latest) = (entries.len(), found == Found::Latest);
            let write = |table: &str| S::Dialect::find(table, rows, latest);
            let is_kept = S::Dialect::repeats(rows);
            let values = Values::Entries(entries);
            let found_rows = send::<S>(source, table, values, is_kept, &write).await?;
            self.set(found_rows.rows, found == Found::New)?;
        }
        Ok(())
    }

    /// Looks for rows that this job inserted.
    async fn read_unread<S: MappingDriver>(
        &mut self,
        source: &mut S::Source<'_>,
        table: &str,
    ) -> Result<(), Failed<S::Error>> {
        let unread = self.unread.clone();
        self.find::<S>(source, table, &unread, Found::New).await?;
        self.unread.clear();
        Ok(())
    }

    /// Asks whether the servers compare which ids each has given, where nobody has asked before.
    async fn compares<S: MappingDriver>(
        &self,
        source: &mut S::Source<'_>,
    ) -> Result<bool, Failed<S::Error>> {
        let known = self.compares.get().copied();
        let (None, Some(query)) = (known, S::Dialect::compares_ids()) else {
            return Ok(known.unwrap_or_default());
        };
        let answer = S::ask(source, query, Values::None, false).await?;
        Ok(*self.compares.get_or_init(|| !answer.rows.is_empty()))
    }

    async fn insert<S: MappingDriver>(
        &mut self,
        source: &mut S::Source<'_>,
        table: &str,
        range: Range<usize>,
        exact: bool,
        failures: u32,
    ) -> Result<(), Failed<S::Error>> {
        if self.batch.missing(range.clone()).is_empty() {
            return Ok(());
        }
        // Where two servers have given the same id, this one goes on with the steps that keep them apart.
        let may_count = failures == 0 && S::may_reconnect(source);
        let by_one = may_count && self.compares::<S>(source).await?;
        let mut most = S::Dialect::INSERT_ROWS;
        let mut fruitless = 0;
        loop {
            let missing = self.batch.missing(range.clone());
            let part = &missing[..missing.len().min(most)];
            let Some(first) = part.first() else {
                return Ok(());
            };
            match inserted::<S>(source, table, part, exact, by_one).await? {
                Inserted::These(rows) => {
                    let are_all = rows.len() == part.len();
                    self.set(rows, true)?;
                    if !are_all {
                        self.find::<S>(source, table, part, Found::Latest).await?;
                    }
                }
                Inserted::All => {
                    self.unread = part.to_vec();
                    self.read_unread::<S>(source, table).await?;
                }
                Inserted::Unclear => {
                    self.find::<S>(source, table, part, Found::Latest).await?;
                    // Fewer are in another's way the next time.
                    most = part.len().div_ceil(2);
                }
            }
            if self.batch.missing(range.clone()).len() < missing.len() {
                fruitless = 0;
            } else if fruitless == FRUITLESS && most == 1 {
                return Err(Failed::elusive(first.uuid()));
            } else {
                fruitless = FRUITLESS.min(fruitless + 1);
                most = most.div_ceil(2);
            }
        }
    }
}

/// What became of an insert.
enum Inserted {
    /// These are new; any others were there.
    These(Vec<MappingRow>),
    /// All are new.
    All,
    /// At least one was there, and which of the others are new is not known.
    Unclear,
}

async fn inserted<S: MappingDriver>(
    source: &mut S::Source<'_>,
    table: &str,
    entries: &[Entry],
    exact: bool,
    by_one: bool,
) -> Result<Inserted, Failed<S::Error>> {
    let rows = entries.len();
    let write = |table: &str| S::Dialect::insert(table, rows, exact, by_one);
    let is_kept = S::Dialect::repeats(rows);
    let answer = send::<S>(source, table, Values::Entries(entries), is_kept, &write).await;
    if S::Dialect::RETURNS_ROWS {
        return Ok(Inserted::These(answer?.rows));
    }
    let answer = match answer {
        Err(refused) if refused.failure == Failure::Duplicate => return Ok(Inserted::Unclear),
        answer => answer?,
    };
    // 0 where the column does not count by itself.
    let id = i64::try_from(answer.last_id).unwrap_or_default();
    Ok(match entries {
        [entry] if id > 0 => {
            let bytes = entry.uuid().as_bytes().to_vec();
            Inserted::These(vec![(id, Some(bytes), None)])
        }
        _ if usize::try_from(answer.changed) == Ok(rows) => Inserted::All,
        _ => Inserted::Unclear,
    })
}

/// Which rows a look-up is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    /// Those that were there.
    Old,
    /// Those that were there, committed a moment ago.
    Latest,
    /// Those that this job inserted.
    New,
}

impl<S: MappingDriver> Job<S> for Mapper {
    fn go<'a>(
        &'a mut self,
        source: &'a mut S::Source<'_>,
        table: &'a str,
        failures: u32,
    ) -> BoxFuture<'a, Result<(), Failed<S::Error>>> {
        Box::pin(async move {
            self.read_unread::<S>(source, table).await?;
            while let Some(range) = self.chunks.last().cloned() {
                let looks = !matches!(
                    self.task,
                    Task::Insert {
                        looks_first: false,
                        ..
                    }
                );
                if looks {
                    let missing = self.batch.missing(range.clone());
                    self.find::<S>(source, table, &missing, Found::Old).await?;
                }
                if let Task::Insert { exact, .. } = self.task {
                    self.insert::<S>(source, table, range, exact, failures)
                        .await?;
                }
                self.chunks.pop();
            }
            Ok(())
        })
    }

    /// Sent once more, an insert finds its own rows and would take them for another's.
    fn is_repeatable(&self) -> bool {
        !matches!(self.task, Task::Insert { exact: true, .. })
    }
}

/// Ids whose UUIDs are wanted.
pub(super) struct Reader<'i> {
    ids: &'i [i64],
    found: HashMap<i64, Uuid>,
}

impl<'i> Reader<'i> {
    pub(super) fn new(ids: &'i [i64]) -> Self {
        let found = HashMap::with_capacity(ids.len());
        Self { ids, found }
    }

    /// Returns the UUIDs in the order of the ids.
    pub(super) fn into_uuids(self) -> impl Iterator<Item = Option<Uuid>> {
        let Self { ids, found } = self;
        ids.iter().map(move |id| found.get(id).copied())
    }
}

impl<S: MappingDriver> Job<S> for Reader<'_> {
    fn go<'a>(
        &'a mut self,
        source: &'a mut S::Source<'_>,
        table: &'a str,
        _: u32,
    ) -> BoxFuture<'a, Result<(), Failed<S::Error>>> {
        Box::pin(async move {
            for ids in self.ids.chunks(S::Dialect::FIND_ROWS) {
                let write = |table: &str| S::Dialect::rows(table, ids.len());
                let is_kept = S::Dialect::repeats(ids.len());
                let answer = send::<S>(source, table, Values::Ids(ids), is_kept, &write).await?;
                for (id, uuid, hash) in answer.rows {
                    let uuid = uuid_of_row(id, uuid.as_deref(), hash)?;
                    self.found.insert(id, uuid);
                }
            }
            Ok(())
        })
    }

    fn is_repeatable(&self) -> bool {
        true
    }
}
