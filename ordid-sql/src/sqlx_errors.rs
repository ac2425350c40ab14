//! Classifies the errors of SQLx, for adapters of libraries that are built on it. This crate does not know SQLx, so
//! each of them writes these functions by a macro.

/// Writes `own`, `kind` and `column`, with the path of SQLx in the adapter.
#[doc(hidden)]
#[macro_export]
macro_rules! sqlx_errors {
    ($($sqlx:ident)::+) => {
        /// Returns what an error of SQLx itself means.
        ///
        /// A pool that made or found no connection in the time that it is given has tried again itself.
        fn own(error: &$($sqlx)::+::Error, is_commit: bool) -> $crate::Failure {
            use $($sqlx)::+::Error::{BeginFailed, Io, Protocol, Tls, WorkerCrashed};
            match error {
                _ if is_commit => $crate::Failure::Lost,
                Io(_) | Tls(_) | Protocol(_) | WorkerCrashed | BeginFailed => $crate::Failure::Lost,
                _ => $crate::Failure::Refused,
            }
        }

        /// Returns the error of a savepoint that could not be made. `sqlx` finds SQLx's error in the library's.
        fn no_savepoint<D>(
            error: $crate::DriverError<D>,
            sqlx: impl FnOnce(&D) -> Option<&$($sqlx)::+::Error>,
        ) -> $crate::FlushError<D> {
            use $($sqlx)::+::Error::{BeginFailed, Database};
            match sqlx(&error.error) {
                // A statement of the user's has ended the transaction, such as DDL on MySQL: SQLx sees none behind the savepoint.
                Some(BeginFailed) => $crate::FlushError::no_transaction("connection"),
                // SQLx has rolled the transaction back, too. PostgreSQL makes no savepoint where an earlier statement has
                // failed.
                Some(Database(_)) => $crate::FlushError::begin(error).with_transaction_over(),
                _ => $crate::FlushError::begin(error),
            }
        }

        /// Returns which kind of error SQLx takes one of a database for.
        fn kind(kind: $($sqlx)::+::error::ErrorKind) -> Option<$crate::classify::ErrorKind> {
            use $($sqlx)::+::error::ErrorKind::{
                CheckViolation, ForeignKeyViolation, NotNullViolation, Other, UniqueViolation,
            };
            match kind {
                Other => None,
                UniqueViolation => Some($crate::classify::ErrorKind::Unique),
                ForeignKeyViolation => Some($crate::classify::ErrorKind::ForeignKey),
                NotNullViolation => Some($crate::classify::ErrorKind::NotNull),
                CheckViolation => Some($crate::classify::ErrorKind::Check),
                _ => Some($crate::classify::ErrorKind::Constraint),
            }
        }

        /// Returns the column that PostgreSQL says an error is about.
        #[cfg(feature = "postgres")]
        fn column<'e>(error: &'e (dyn $($sqlx)::+::error::DatabaseError + 'static)) -> Option<&'e str> {
            error
                .try_downcast_ref::<$($sqlx)::+::postgres::PgDatabaseError>()?
                .column()
        }

        #[cfg(not(feature = "postgres"))]
        fn column<'e>(_: &'e (dyn $($sqlx)::+::error::DatabaseError + 'static)) -> Option<&'e str> {
            None
        }

        /// Returns whether PostgreSQL ends the session with an error, or the whole server.
        #[cfg(feature = "postgres")]
        fn is_fatal(error: &(dyn $($sqlx)::+::error::DatabaseError + 'static)) -> bool {
            use $($sqlx)::+::postgres::{PgDatabaseError, PgSeverity};
            let error = error.try_downcast_ref::<PgDatabaseError>();
            error.is_some_and(|it| matches!(it.severity(), PgSeverity::Fatal | PgSeverity::Panic))
        }

        #[cfg(not(feature = "postgres"))]
        fn is_fatal(_: &(dyn $($sqlx)::+::error::DatabaseError + 'static)) -> bool {
            false
        }

        /// Returns the text of an error without what SQLx adds to PostgreSQL's: a line of the server's source, which looks
        /// like one of the statement.
        #[cfg(feature = "postgres")]
        fn text(
            found: &(dyn $($sqlx)::+::error::DatabaseError + 'static),
            whole: &impl ::std::fmt::Display,
        ) -> Option<String> {
            let line = found
                .try_downcast_ref::<$($sqlx)::+::postgres::PgDatabaseError>()?
                .line()?;
            let whole = whole.to_string();
            let without = whole.strip_suffix(&format!(" at line {line}"))?;
            Some(without.to_owned())
        }

        #[cfg(not(feature = "postgres"))]
        fn text(
            _: &(dyn $($sqlx)::+::error::DatabaseError + 'static),
            _: &impl ::std::fmt::Display,
        ) -> Option<String> {
            None
        }
    };
}
