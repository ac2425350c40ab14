//! The error of a follower.

use std::{error::Error as StdError, fmt};

use super::text;
use crate::{DriverError, cause::Cause};

/// The reason why a [`Follower`](super::Follower) delivered no rows.
///
/// It is opaque: ask it with the `is_` predicates, print it for people. `E` is the error of the database library that
/// the adapter is for.
#[derive(Debug)]
pub struct FollowError<E>(Box<Inner<E>>);

#[derive(Debug)]
struct Inner<E> {
    /// The quoted name of the table.
    table: String,
    /// The column that has the transactions, if the follower's rule needs one. Unquoted.
    column: Option<String>,
    kind: Kind<E>,
}

#[derive(Debug)]
pub(super) enum Kind<E> {
    /// An error of core says that the scheme cannot hold a time, or that a snapshot cannot be read.
    Cause(Cause<E>),
    Ahead {
        position: String,
        database: String,
    },
    OtherPosition {
        wants: &'static str,
    },
    Standby,
    ManyNodes {
        on: &'static str,
    },
    Uncommitted,
    NoKey,
}

impl<E> From<DriverError<E>> for Kind<E> {
    fn from(error: DriverError<E>) -> Self {
        Self::Cause(error.into())
    }
}

impl<E> From<ordid_core::Error> for Kind<E> {
    fn from(error: ordid_core::Error) -> Self {
        Self::Cause(error.into())
    }
}

impl<E: StdError + 'static> Kind<E> {
    /// Returns the meaning of an error of a query for rows. Such a query refuses some sessions by an error whose text has a
    /// word of the query.
    pub(super) fn of_rows(error: DriverError<E>) -> Self {
        let says = |word: &str| {
            let mut next: Option<&(dyn StdError + 'static)> = Some(&error.error);
            while let Some(cause) = next {
                if cause.to_string().contains(word) {
                    return true;
                }
                next = cause.source();
            }
            false
        };
        if says(text::STANDBY) {
            Self::Standby
        } else if says(text::UNCOMMITTED) {
            Self::Uncommitted
        } else {
            error.into()
        }
    }
}

impl<E> Kind<E> {
    pub(super) fn is_lost(&self) -> bool {
        matches!(self, Self::Cause(cause) if cause.is_lost())
    }
}

impl<E> FollowError<E> {
    pub(super) fn new(table: String, column: Option<String>, kind: Kind<E>) -> Self {
        Self(Box::new(Inner {
            table,
            column,
            kind,
        }))
    }

    /// Returns whether the same call may succeed another time. For example, a lock was not granted in time, the
    /// database was busy, or the pool had no free connection.
    pub fn is_transient(&self) -> bool {
        matches!(&self.0.kind, Kind::Cause(cause) if cause.is_transient())
    }

    /// Returns whether the connection was lost or could not be made.
    pub fn is_connection_lost(&self) -> bool {
        self.0.kind.is_lost()
    }

    /// Returns whether the position has seen transactions that the database does not know. This is so if the position
    /// belongs to another database, or is newer than the backup or the standby from which the database was made. It is
    /// also so if the call was made in a transaction whose snapshot is older than the position; then a call in another
    /// transaction succeeds.
    pub fn is_position_ahead(&self) -> bool {
        matches!(self.0.kind, Kind::Ahead { .. })
    }

    /// Returns whether the position was returned by a follower with another rule.
    pub fn is_other_position(&self) -> bool {
        matches!(self.0.kind, Kind::OtherPosition { .. })
    }

    /// Returns whether the database is a standby, which does not show the transactions that are open.
    pub fn is_standby(&self) -> bool {
        matches!(self.0.kind, Kind::Standby)
    }

    /// Returns the error of the database library, if this was caused by one.
    pub fn driver(&self) -> Option<&E> {
        match &self.0.kind {
            Kind::Cause(cause) => cause.driver(),
            _ => None,
        }
    }
}

/// Returns whether a text has a name that is not a part of a longer name.
fn has_word(text: &str, name: &str) -> bool {
    let is_part = |it: char| it.is_alphanumeric() || it == '_';
    text.match_indices(name).any(|(at, _)| {
        let (before, behind) = (&text[..at], &text[at + name.len()..]);
        !before.ends_with(is_part) && !behind.starts_with(is_part)
    })
}

impl<E: fmt::Display> fmt::Display for FollowError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "follower of {}: ", self.0.table)?;
        match &self.0.kind {
            Kind::Cause(cause) => {
                cause.fmt(f)?;
                // The message is in the server's language, and has the name in each.
                let column = self.0.column.as_deref();
                if column.is_some_and(|column| has_word(&cause.to_string(), column)) {
                    write!(
                        f,
                        "; a follower `by_transaction` needs this column: the statements that add it are in \
                         `Follower::create_sql`"
                    )?;
                }
                Ok(())
            }
            Kind::Ahead { position, database } => write!(
                f,
                "the position has seen {position}, but the database is at {database}: it is another database or was \
                 made of an older one, or the snapshot of this transaction is older than the position"
            ),
            Kind::OtherPosition { wants } => write!(
                f,
                "the position is of a follower by another rule, expected `{wants}` or `start`"
            ),
            Kind::Standby => f.write_str(
                "a standby does not tell which transactions are open: follow on the primary, or by `settled_after`",
            ),
            Kind::ManyNodes { on } => write!(
                f,
                "each node of {on} has transaction numbers of its own: follow by `settled_after`"
            ),
            Kind::Uncommitted => f.write_str(
                "the session is at READ UNCOMMITTED and may read rows that are rolled back later: set READ COMMITTED or \
                 REPEATABLE READ",
            ),
            Kind::NoKey => f.write_str("a row was read without its key"),
        }
    }
}

impl<E: StdError + 'static> StdError for FollowError<E> {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match &self.0.kind {
            Kind::Cause(cause) => cause.source(),
            _ => None,
        }
    }
}
