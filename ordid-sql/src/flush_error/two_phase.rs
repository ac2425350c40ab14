//! Errors of two-phase commits.

use super::{Decision, DriverError, FlushError, Flushed, Kind, Rest, Source, failed};
use crate::{Failure, TwoPhase};

/// What MySQL says (1295) where a statement is prepared that it only takes as text.
const UNPREPARED: &str = "not supported in the prepared statement protocol";

impl<D> FlushError<D> {
    /// What became of each shard of a two-phase commit, of which one failed at least.
    pub(crate) fn of_two_phase(outcomes: Vec<Result<Flushed, Self>>, decision: Decision) -> Self {
        let is_unknown = failed(&outcomes).any(|(_, error)| error.is_commit_unknown());
        let mut error = Self::new(Kind::Shards(outcomes, Some(decision)), Source::None);
        error.0.is_unknown = is_unknown;
        error
    }

    /// The transaction could not be prepared.
    pub(crate) fn prepare(source: DriverError<D>) -> Self {
        Self::new(Kind::Prepare, Source::Driver(source))
    }

    /// The prepared transactions could not be listed. Where everybody may not do that, the server's own text does not say so.
    pub(crate) fn not_listed(two_phase: TwoPhase, source: DriverError<D>) -> Self
    where
        D: std::fmt::Display,
    {
        match two_phase.privilege() {
            Some(_) if source.error.to_string().contains(UNPREPARED) => Self::database(
                "MySQL does not list prepared transactions (`XA RECOVER`) to a prepared statement, and this library sends \
                 every query as one",
                "use SQLx (`ordid-sqlx`) or mysql_async (`ordid-mysql-async`) on MySQL, or use MariaDB 10.6 or later, or \
                 leave `two_phase_commit` out",
            ),
            Some(privilege) if source.failure == Failure::Refused => {
                Self::new(Kind::NotListed(privilege), Source::Driver(source))
            }
            _ => Self::begin(source),
        }
    }

    /// The flush was not committed because of another shard.
    pub(crate) fn rolled_back() -> Self {
        Self::new(Kind::RolledBack, Source::None)
    }

    /// The transaction is prepared, and nobody knows whether the flush is committed.
    pub(crate) fn undecided() -> Self {
        Self::new(Kind::Undecided, Source::None).into_unknown()
    }

    /// The flush is committed, and somebody has rolled back what was prepared.
    pub(crate) fn prepared_vanished(gid: &str) -> Self {
        Self::new(Kind::Vanished(gid.to_owned()), Source::None).into_unknown()
    }

    /// Somebody has rolled back what the other shards had prepared, so that the flush cannot be committed.
    pub(crate) fn recovered() -> Self {
        Self::new(Kind::Recovered, Source::None)
    }

    /// The flush began so long ago that its marker rows would be removed before a recovery could find them.
    pub(crate) fn too_late() -> Self {
        Self::new(Kind::TooLate, Source::None)
    }

    /// This is why what is prepared could not be committed, although the flush is decided.
    #[must_use]
    pub(crate) fn into_unfinished(mut self, gid: &str) -> Self {
        self.0.kind = Kind::Unfinished(gid.to_owned());
        self.into_unknown()
    }

    /// What may be prepared will not be committed, as the flush is not.
    #[must_use]
    pub(crate) fn into_not_prepared(mut self) -> Self {
        self.0.is_unknown = false;
        self.0.stays_unknown = None;
        self
    }

    /// A prepared transaction is left, which will not be committed.
    #[must_use]
    pub(crate) fn with_prepared_left(mut self) -> Self {
        self.0.rest = Rest::Prepared;
        self
    }
}
