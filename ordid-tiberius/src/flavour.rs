//! Which server it is: SQL Server, or Babelfish, which speaks its language and sorts as PostgreSQL.

use ordid_core::storage::dialect::{Babelfish, SqlServer};
use ordid_sql::{FlushDialect, follower::FollowDialect, leases::numbers::LeaseDialect};
use tiberius::{Client, ColumnData};

use crate::{lease::Stream, null};

mod sealed {
    pub trait Sealed {}

    impl Sealed for super::SqlServer {}
    impl Sealed for super::Babelfish {}
}

/// A flavour of server that tiberius can talk to: [`SqlServer`] or [`Babelfish`].
///
/// Both speak TDS, so to tiberius they are one. They sort `uniqueidentifier` in different orders, so
/// to ordid they are two: key types name a column for each, and a unit of work is for one of them.
pub trait Flavour:
    FlushDialect + FollowDialect + LeaseDialect + sealed::Sealed + Send + Sync
{
    /// Whether it is this flavour, by its answer to `@@VERSION`.
    #[doc(hidden)]
    fn is(version: &str) -> bool;

    /// A flush asks this before it begins. The answer is the number of open transactions, and the version. In a session with
    /// `IMPLICIT_TRANSACTIONS`, the number is negative: -1 - `@@TRANCOUNT`.
    #[doc(hidden)]
    const QUESTION: &'static str = Session::QUESTION;

    /// A value as the parameter of a statement of many rows.
    #[doc(hidden)]
    fn parameter(value: ColumnData<'_>) -> ColumnData<'_> {
        value
    }

    /// The type of a value that has to be a NULL in the statement's text, as the server refuses it as a parameter.
    #[doc(hidden)]
    fn null_in_text(value: &ColumnData<'_>) -> Option<&'static str> {
        let _ = value;
        None
    }
}

impl Flavour for SqlServer {
    const QUESTION: &'static str =
        "SELECT CASE @@OPTIONS & 2 WHEN 0 THEN @@TRANCOUNT ELSE -1 - @@TRANCOUNT END, @@VERSION";

    fn is(version: &str) -> bool {
        !Babelfish::is(version)
    }

    /// A column of `VALUES` has one type for all its rows, with at most 38 digits. tiberius declares a NULL as
    /// `numeric`, which takes 18 digits before the point, so a number in another row with more than 20 digits behind
    /// the point would be rounded. A NULL of type `bit` takes only one digit.
    fn parameter(value: ColumnData<'_>) -> ColumnData<'_> {
        match value {
            ColumnData::Numeric(None) => ColumnData::Bit(None),
            other => other,
        }
    }
}

impl Flavour for Babelfish {
    fn is(version: &str) -> bool {
        version.contains("Babelfish")
    }

    /// Error 8009. A NULL of another type would not do: beside a `bit`, Babelfish made 1.000 of 0.001 in the list of an
    /// `UPDATE`.
    fn null_in_text(value: &ColumnData<'_>) -> Option<&'static str> {
        null::untyped(value)
    }
}

/// Returns whether the server is Babelfish, by `@@VERSION`.
///
/// # Errors
///
/// As [`Client::simple_query`].
pub async fn is_babelfish<S: Stream>(client: &mut Client<S>) -> tiberius::Result<bool> {
    let session = Session::ask(client, Session::QUESTION).await?;
    Ok(Babelfish::is(&session.version))
}

/// What a flush must know before it begins.
#[derive(Debug)]
pub(crate) struct Session {
    /// The open transactions, one in another.
    pub(crate) transactions: i32,
    pub(crate) version: String,
}

impl Session {
    pub(crate) const QUESTION: &'static str = "SELECT @@TRANCOUNT, @@VERSION";

    /// The same question for a connection on which each statement must be a transaction of its own. It also switches
    /// off implicit transactions, which a server may switch on for all its logins.
    pub(crate) const QUESTION_OF_STATEMENTS: &'static str =
        "SET IMPLICIT_TRANSACTIONS OFF; SELECT @@TRANCOUNT, @@VERSION";

    pub(crate) async fn ask<S: Stream>(
        client: &mut Client<S>,
        question: &'static str,
    ) -> tiberius::Result<Self> {
        let row = client.simple_query(question).await?.into_row().await?;
        let answer = row.as_ref().and_then(|row| {
            let transactions = row.try_get(0).ok()??;
            let version: &str = row.try_get(1).ok()??;
            Some(Self {
                transactions,
                version: version.to_owned(),
            })
        });
        answer.ok_or_else(|| {
            tiberius::error::Error::Protocol("no answer to @@TRANCOUNT, @@VERSION".into())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_tell_the_flavour() {
        for (version, babelfish) in [
            ("Microsoft SQL Server 2022 (RTM) - 16.0.1000.6 (X64)", false),
            ("Microsoft SQL Azure (RTM) - 12.0.2000.8", false),
            (
                "Babelfish for PostgreSQL with SQL Server Compatibility - 12.0.2000.8",
                true,
            ),
        ] {
            assert_eq!(Babelfish::is(version), babelfish, "{version}");
            assert_eq!(SqlServer::is(version), !babelfish, "{version}");
        }
    }
}
