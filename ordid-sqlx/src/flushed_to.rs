//! Whether the database of a pool or a transaction is that of a unit of work.

use sqlx::{Database, Pool, Transaction};

use crate::Backend;

/// The database of a pool or a transaction, which has to be the one that a unit of work is for.
///
/// A unit of work may know its database by its entities already: if a single feature is on, their keys have a column in
/// one database only. This trait says then which feature is missing.
#[diagnostic::on_unimplemented(
    message = "rows for `{DB}` cannot be flushed to `{Self}` by ordid-sqlx",
    label = "not the database of the unit of work",
    note = "each database has a feature, and `{Self}` may not be on: `cargo add ordid-sqlx --features postgres`, or \
            `mysql`, `sqlite`",
    note = "or the key types have no column in it: `#[ordid(sqlx)]` gives them one in each"
)]
pub trait FlushedTo<DB: Backend>: Database {
    /// Takes a pool for what it is.
    #[doc(hidden)]
    fn pool(pool: &Pool<Self>) -> &Pool<DB>;

    /// Takes a transaction for what it is.
    #[doc(hidden)]
    fn connection<'c>(transaction: &'c mut Transaction<'_, Self>) -> &'c mut DB::Connection;
}

#[diagnostic::do_not_recommend]
impl<DB: Backend> FlushedTo<DB> for DB {
    fn pool(pool: &Pool<DB>) -> &Pool<DB> {
        pool
    }

    fn connection<'c>(transaction: &'c mut Transaction<'_, DB>) -> &'c mut DB::Connection {
        transaction
    }
}
