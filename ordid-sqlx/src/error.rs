//! The crate's one error type.

use std::{fmt, ops::Range};

use ordid_core::unit_of_work::Chunk;
use sqlx::error::{BoxDynError, DatabaseError};

use crate::unit_of_work::Flushed;

/// Why a unit of work was not flushed. Nothing of it is in the database, unless
/// [`is_commit_unknown`](Self::is_commit_unknown) says that this cannot be known, or
/// [`shards`](Self::shards) that it is in some of several.
///
/// It is opaque: ask it where and why, print it for people. [`source`](std::error::Error::source)
/// is SQLx's error.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: Kind,
    place: Option<Place>,
}

#[derive(Debug)]
enum Kind {
    Plan(ordid_core::Error),
    Begin(sqlx::Error),
    Bind(BoxDynError),
    Insert(sqlx::Error),
    Commit(sqlx::Error),
    Release(sqlx::Error),
    /// What became of each shard, of which one failed at least.
    Shards(Vec<Result<Flushed, Error>>),
}

/// Where in the flush it happened.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) table: &'static str,
    pub(crate) chunk: usize,
    pub(crate) rows: Range<usize>,
    pub(crate) key: Option<String>,
}

impl Error {
    pub(crate) fn begin(source: sqlx::Error) -> Self {
        Self(Box::new(Inner {
            kind: Kind::Begin(source),
            place: None,
        }))
    }

    pub(crate) fn commit(source: sqlx::Error) -> Self {
        Self(Box::new(Inner {
            kind: Kind::Commit(source),
            place: None,
        }))
    }

    /// The savepoint of a flush inside the user's transaction, which is not committed yet.
    pub(crate) fn release(source: sqlx::Error) -> Self {
        Self(Box::new(Inner {
            kind: Kind::Release(source),
            place: None,
        }))
    }

    /// What became of each shard, of which one failed at least.
    pub(crate) fn of_shards(outcomes: Vec<Result<Flushed, Self>>) -> Self {
        Self(Box::new(Inner {
            kind: Kind::Shards(outcomes),
            place: None,
        }))
    }

    pub(crate) fn insert(source: sqlx::Error, place: Place) -> Self {
        Self(Box::new(Inner {
            kind: Kind::Insert(source),
            place: Some(place),
        }))
    }

    pub(crate) fn bind(source: BoxDynError, place: Place) -> Self {
        Self(Box::new(Inner {
            kind: Kind::Bind(source),
            place: Some(place),
        }))
    }

    /// Whether the database refused a value, so that the same rows would be refused again and the
    /// row can be found.
    pub(crate) fn refuses_a_row(&self) -> bool {
        match &self.0.kind {
            Kind::Insert(error) => error.as_database_error().is_some_and(is_about_a_row),
            _ => false,
        }
    }

    /// Narrows the place down to a row's chunk and its key.
    pub(crate) fn set_row(&mut self, chunk: Chunk, key: String) {
        if let Some(place) = &mut self.0.place {
            place.chunk = chunk.number;
            place.rows = chunk.rows;
            place.key = Some(key);
        }
    }

    /// Returns the table whose insert failed.
    pub fn table(&self) -> Option<&str> {
        self.0.place.as_ref().map(|place| place.table)
    }

    /// Returns which chunk of the table failed, from 0.
    pub fn chunk(&self) -> Option<usize> {
        self.0.place.as_ref().map(|place| place.chunk)
    }

    /// Returns which rows of the table, counted from 0 in the order of their keys, the failed chunk
    /// held.
    pub fn rows(&self) -> Option<Range<usize>> {
        self.0.place.as_ref().map(|place| place.rows.clone())
    }

    /// Returns the key of the row that failed, as text, where it could be found.
    pub fn key(&self) -> Option<&str> {
        self.0.place.as_ref()?.key.as_deref()
    }

    /// Returns whether the unit of work could not be planned; nothing was sent.
    pub fn is_plan(&self) -> bool {
        matches!(self.0.kind, Kind::Plan(_))
    }

    /// Returns whether the answer to COMMIT was lost or an error that leaves its outcome open: the
    /// rows are all there, or none is. Looking for any one of the keys tells. Flushing again is safe: it
    /// carries the same keys, so a row that is there is refused, never written twice.
    ///
    /// It is about [`flush`](crate::UnitOfWork::flush). An error of
    /// [`flush_in`](crate::UnitOfWork::flush_in) never has it: no COMMIT was sent, so what it wrote is
    /// gone with the connection, or with the savepoint. Of your own COMMIT after it, SQLx's error says
    /// the same: one without
    /// [`as_database_error`](sqlx::Error::as_database_error) leaves the outcome open.
    pub fn is_commit_unknown(&self) -> bool {
        // A database that answers has rolled back: deferred constraints, serialization.
        matches!(&self.0.kind, Kind::Commit(error) if error.as_database_error().is_none())
    }

    /// Returns whether a primary or unique key was already taken.
    pub fn is_unique_violation(&self) -> bool {
        self.as_database_error()
            .is_some_and(DatabaseError::is_unique_violation)
    }

    /// Returns whether a row's parent does not exist.
    pub fn is_foreign_key_violation(&self) -> bool {
        self.as_database_error()
            .is_some_and(DatabaseError::is_foreign_key_violation)
    }

    /// Returns what became of each shard of a
    /// [`ShardedUnitOfWork`](crate::ShardedUnitOfWork) of which some failed: what was written where it
    /// succeeded, and the error where it did not. Each answers for itself, also whether its
    /// [commit is unknown](Self::is_commit_unknown): this error has no table and no key of its own.
    pub fn shards(&self) -> Option<&[Result<Flushed, Self>]> {
        match &self.0.kind {
            Kind::Shards(outcomes) => Some(outcomes),
            _ => None,
        }
    }

    /// Returns SQLx's error, where it is one.
    pub fn as_sqlx(&self) -> Option<&sqlx::Error> {
        match &self.0.kind {
            Kind::Begin(error)
            | Kind::Insert(error)
            | Kind::Commit(error)
            | Kind::Release(error) => Some(error),
            Kind::Plan(_) | Kind::Bind(_) | Kind::Shards(_) => None,
        }
    }

    fn as_database_error(&self) -> Option<&(dyn DatabaseError + 'static)> {
        self.as_sqlx()?.as_database_error()
    }
}

/// The shards that failed, and why.
fn failed(outcomes: &[Result<Flushed, Error>]) -> impl Iterator<Item = (usize, &Error)> {
    let errors = outcomes.iter().map(|outcome| outcome.as_ref().err());
    errors
        .enumerate()
        .filter_map(|(shard, error)| Some((shard, error?)))
}

fn is_about_a_row(error: &(dyn DatabaseError + 'static)) -> bool {
    // SQLSTATE classes 22 (data exception) and 23 (integrity constraint violation); SQLite has
    // codes of its own, which SQLx sorts into kinds.
    let class = error
        .code()
        .is_some_and(|code| code.len() == 5 && (code.starts_with("22") || code.starts_with("23")));
    class || !matches!(error.kind(), sqlx::error::ErrorKind::Other)
}

impl From<ordid_core::Error> for Error {
    fn from(error: ordid_core::Error) -> Self {
        Self(Box::new(Inner {
            kind: Kind::Plan(error),
            place: None,
        }))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.kind {
            Kind::Plan(error) => write!(f, "cannot plan the flush, nothing was sent: {error}"),
            Kind::Begin(error) => write!(f, "cannot begin the flush, nothing was sent: {error}"),
            Kind::Bind(_) => f.write_str("cannot bind a row"),
            Kind::Insert(_) => f.write_str("cannot insert"),
            Kind::Commit(error) if self.is_commit_unknown() => write!(
                f,
                "the answer to COMMIT was lost, so either all rows are written or none is; look \
                 for one of the keys: {error}"
            ),
            Kind::Commit(error) => write!(f, "cannot commit, nothing was written: {error}"),
            Kind::Release(error) => write!(
                f,
                "cannot release the savepoint of the flush, nothing was written: {error}"
            ),
            Kind::Shards(outcomes) => {
                write!(
                    f,
                    "{} of {} shards failed, and the rows of the others are written",
                    failed(outcomes).count(),
                    outcomes.len()
                )?;
                failed(outcomes)
                    .try_for_each(|(shard, error)| write!(f, "; shard {shard}: {error}"))
            }
        }?;
        if let Some(place) = &self.0.place {
            let Place {
                table,
                chunk,
                rows,
                key,
            } = place;
            write!(
                f,
                " into {table}, chunk {chunk} (rows {} to {})",
                rows.start,
                rows.end - 1
            )?;
            if let Some(key) = key {
                write!(f, ", key {key}")?;
            }
            f.write_str(", nothing was written")?;
        }
        match &self.0.kind {
            Kind::Bind(error) => write!(f, ": {error}"),
            Kind::Insert(error) => write!(f, ": {error}"),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0.kind {
            Kind::Plan(error) => Some(error),
            Kind::Begin(error)
            | Kind::Insert(error)
            | Kind::Commit(error)
            | Kind::Release(error) => Some(error),
            Kind::Bind(error) => Some(error.as_ref()),
            Kind::Shards(outcomes) => failed(outcomes).next().map(|(_, error)| error as _),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_lost_answer_to_commit_leaves_the_outcome_open() {
        let error = Error::commit(sqlx::Error::WorkerCrashed);
        assert!(error.is_commit_unknown());
        assert!(error.to_string().starts_with(
            "the answer to COMMIT was lost, so either all rows are written or none is; look for one \
             of the keys: "
        ));
        // A savepoint's rows are not committed, whatever became of it.
        let error = Error::release(sqlx::Error::WorkerCrashed);
        assert!(!error.is_commit_unknown());
        assert!(error.as_sqlx().is_some());
        assert!(
            error
                .to_string()
                .starts_with("cannot release the savepoint of the flush, nothing was written: ")
        );
    }
}
