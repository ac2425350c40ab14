//! What a call sends, statement by statement, so that it goes on where it failed.

use std::{collections::HashMap, ops::Range};

use ordid_core::{clock::Delay, uuid::Uuid};
use ordid_sql::{
    Failure, Retry,
    mapping::{Batch, Entry, uuid_of_row},
};

use super::{
    backend::{IdAndUuid, Inserted, MappingBackend},
    error::Failed,
};
use crate::{
    MappingError,
    backend::{Backend, BoxFuture},
    connection::SqlxConnection,
    over::Lane,
};

/// Statements of which each is done or not: there is no transaction around them but the user's.
pub(super) trait Job<DB: Backend>: Send {
    /// Sends what is not sent yet.
    fn go<'a>(
        &'a mut self,
        connection: &'a mut DB::Connection,
        table: &'a str,
    ) -> BoxFuture<'a, Result<(), Failed>>;

    /// Whether a statement whose answer was lost can be sent once more.
    fn is_repeatable(&self) -> bool;
}

/// Carries a job out. Over a pool it is tried again; over a connection it is not, as a transaction of the
/// user's would be gone.
pub(super) async fn run<DB: Backend>(
    lane: Lane<'_, DB>,
    table: &str,
    retry: Retry,
    job: &mut impl Job<DB>,
) -> Result<(), MappingError> {
    let pool = match lane {
        Lane::Connection(connection) => {
            let done = job.go(connection, table).await;
            return done.map_err(|failed| failed.of(table, 0));
        }
        Lane::Pool(pool) => pool,
    };
    let (mut failures, mut was_lost) = (0, false);
    loop {
        let done = over_pool(pool, table, was_lost, job).await;
        let Err(failed) = done else {
            return Ok(());
        };
        was_lost = failed.failure() == Failure::Lost;
        let goes_on = match failed.failure() {
            Failure::Transient => true,
            Failure::Lost => job.is_repeatable(),
            Failure::Refused | Failure::Duplicate => false,
        };
        let delay = retry.delay(failures + 1).filter(|_| goes_on);
        let Some(delay) = delay else {
            return Err(failed.of(table, failures));
        };
        failures += 1;
        Delay::new(delay).await;
    }
}

async fn over_pool<DB: Backend>(
    pool: &sqlx::Pool<DB>,
    table: &str,
    was_lost: bool,
    job: &mut impl Job<DB>,
) -> Result<(), Failed> {
    let mut open = match was_lost {
        true => SqlxConnection::from_pool_after_loss(pool).await?,
        false => SqlxConnection::from_pool(pool).await?,
    };
    let (connection, state) = open.connection();
    state.set_busy(true);
    let done = job.go(connection, table).await;
    state.set_busy(false);
    if let Err(failed) = &done
        && failed.failure() == Failure::Lost
    {
        open.lose();
    }
    done
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
}

/// How often in a row an insert may come to nothing: another deletes what it was to be in the way of.
const FRUITLESS: u32 = 5;

impl Mapper {
    pub(super) fn new<DB: MappingBackend>(task: Task, uuids: impl Iterator<Item = Uuid>) -> Self {
        let batch = Batch::new(uuids);
        let mut chunks: Vec<_> = batch.chunks(DB::INSERT_ROWS).collect();
        chunks.reverse();
        Self {
            task,
            batch,
            chunks,
            unread: Vec::new(),
        }
    }

    pub(super) fn into_batch(self) -> Batch {
        self.batch
    }

    /// Takes rows in.
    fn set(&mut self, rows: Vec<IdAndUuid>, is_new: bool) -> Result<(), Failed> {
        for (id, bytes) in rows {
            let uuid = Uuid::from_slice(&bytes);
            // What was looked for has 16.
            let uuid = uuid.map_err(|error| sqlx::Error::Decode(error.into()))?;
            self.batch.set(uuid, id, is_new)?;
        }
        Ok(())
    }

    async fn find<DB: MappingBackend>(
        &mut self,
        connection: &mut DB::Connection,
        table: &str,
        entries: &[Entry],
        found: Found,
    ) -> Result<(), Failed> {
        for entries in entries.chunks(DB::FIND_ROWS) {
            let latest = found == Found::Latest;
            let rows = DB::find(connection, table, entries, latest).await?;
            self.set(rows, found == Found::New)?;
        }
        Ok(())
    }

    /// Looks for rows that this job inserted.
    async fn read_unread<DB: MappingBackend>(
        &mut self,
        connection: &mut DB::Connection,
        table: &str,
    ) -> Result<(), Failed> {
        let unread = self.unread.clone();
        self.find::<DB>(connection, table, &unread, Found::New)
            .await?;
        self.unread.clear();
        Ok(())
    }

    async fn insert<DB: MappingBackend>(
        &mut self,
        connection: &mut DB::Connection,
        table: &str,
        range: Range<usize>,
        exact: bool,
    ) -> Result<(), Failed> {
        let mut most = DB::INSERT_ROWS;
        let mut fruitless = 0;
        loop {
            let missing = self.batch.missing(range.clone());
            let part = &missing[..missing.len().min(most)];
            let Some(first) = part.first() else {
                return Ok(());
            };
            match DB::insert(connection, table, part, exact).await? {
                Inserted::These(rows) => {
                    let are_all = rows.len() == part.len();
                    self.set(rows, true)?;
                    if !are_all {
                        self.find::<DB>(connection, table, part, Found::Latest)
                            .await?;
                    }
                }
                Inserted::All => {
                    self.unread = part.to_vec();
                    self.read_unread::<DB>(connection, table).await?;
                }
                Inserted::Unclear => {
                    self.find::<DB>(connection, table, part, Found::Latest)
                        .await?;
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

impl<DB: MappingBackend> Job<DB> for Mapper {
    fn go<'a>(
        &'a mut self,
        connection: &'a mut DB::Connection,
        table: &'a str,
    ) -> BoxFuture<'a, Result<(), Failed>> {
        Box::pin(async move {
            self.read_unread::<DB>(connection, table).await?;
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
                    self.find::<DB>(connection, table, &missing, Found::Old)
                        .await?;
                }
                if let Task::Insert { exact, .. } = self.task {
                    self.insert::<DB>(connection, table, range, exact).await?;
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

impl<DB: MappingBackend> Job<DB> for Reader<'_> {
    fn go<'a>(
        &'a mut self,
        connection: &'a mut DB::Connection,
        table: &'a str,
    ) -> BoxFuture<'a, Result<(), Failed>> {
        Box::pin(async move {
            for ids in self.ids.chunks(DB::FIND_ROWS) {
                for (id, uuid, hash) in DB::rows(connection, table, ids).await? {
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
