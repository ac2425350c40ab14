//! An adapter that ordid does not know: what somebody else writes for a library of their own. It keeps tables in
//! memory, checks keys and foreign keys, records what is sent, and fails when a test asks for it.
//!
//! It depends on `ordid`, `ordid-core` and `ordid-sql`, as any adapter may: see the contract in `ordid_sql::spi`.
//!
//! The suites that ordid's own adapters share, `tests/src/faults` and `tests/src/graphs`, do not run over it. They look
//! into live databases through SQLx, and their traits name its databases. So `tests/laws.rs` states the same laws again.
//!
//! # Example: a column that would lose the order does not compile
//!
//! ```compile_fail,E0080
//! #[derive(ordid::KeyType)]
//! #[ordid(scheme = comb_nhibernate, adapter = recorder(memory = blob))]
//! struct OrderId(ordid::uuid::Uuid);
//! ```
//!
//! ```
//! #[derive(ordid::KeyType)]
//! #[ordid(scheme = comb_nhibernate, adapter = recorder(memory = unordered(blob)))]
//! struct OrderId(ordid::uuid::Uuid);
//! ```

mod adapter;
mod store;

use self::adapter::Source;
use ordid_sql::{
    EngineProfile, Flushed, Sharded, Work,
    spi::{TransactionScope, blocking},
};

pub use adapter::{Binder, Described, Entity, KeyColumn, ToValue};
pub use ordid_sql::{Retry, Sharding};
pub use store::{Fault, Sent, Store, Transaction, Value};

/// Why a unit of work was not flushed.
pub type FlushError = ordid_sql::FlushError<std::io::Error>;

/// The profile of the store's engine: SQLite's, with at most seven rows in a statement.
pub const ENGINE: EngineProfile = {
    let mut engine = EngineProfile::SQLITE;
    engine.name = "Recorder";
    engine.max_rows = 7;
    engine.begin = None;
    engine.defer = None;
    engine
};

/// What `#[derive(KeyType)]` calls.
#[doc(hidden)]
#[macro_export]
macro_rules! __engine {
    // Nothing is needed once for a key type.
    (key: $key:ty, $scheme:ty) => {};
    (all: $key:ty, $scheme:ty, $raw:ident) => {
        $crate::engine! {
            memory: $key, $scheme, $crate::__private::Native<$scheme, $crate::__private::Sqlite>
        }
    };
    (memory: $key:ty, $scheme:ty, $column:ty) => {
        const _: () = $crate::__private::assert_keeps_order::<
            $scheme,
            <$column as $crate::__private::NamedColumn>::Column,
            <$column as $crate::__private::NamedColumn>::Dialect,
        >();

        impl $crate::KeyColumn for $key {
            type Column = <$column as $crate::__private::NamedColumn>::Column;
        }
    };
    ($engine:tt: $($key:tt)*) => {
        ::core::compile_error! { "expected `memory = column`" }
    };
}

#[doc(hidden)]
pub use crate::__engine as engine;

/// The columns that `#[ordid(adapter = recorder(memory = column))]` names.
pub mod engine {
    pub use ordid::storage::column::names::sqlite as memory;
}

#[doc(hidden)]
pub mod __private {
    pub use ordid::storage::{
        assert_keeps_order,
        column::names::{NamedColumn, Native},
        dialect::Sqlite,
    };
}

const MARKERS: &str = "ordid_flushes";

/// Entities that are inserted, updated and deleted together.
pub struct UnitOfWork(Work<Binder>);

ordid_sql::work_settings! { impl[] UnitOfWork, Binder }
ordid_sql::work_entities! { impl[] UnitOfWork, Entity }
ordid_sql::work_plan! { impl[] UnitOfWork, ENGINE, FlushError }

impl UnitOfWork {
    /// Writes everything in one transaction of its own.
    ///
    /// # Errors
    ///
    /// The reason why nothing, or perhaps nothing, was written.
    pub fn flush(&mut self, store: &Store) -> Result<Flushed, FlushError> {
        blocking(
            self.0
                .flush(Source::of(store), TransactionScope::Transaction),
        )
    }

    /// Writes everything in a savepoint of an open transaction.
    ///
    /// # Errors
    ///
    /// The reason why nothing was written.
    pub fn flush_in(&mut self, transaction: &mut Transaction) -> Result<Flushed, FlushError> {
        let source = Source {
            store: transaction.store.clone(),
            is_open: true,
            may_reconnect: false,
        };
        blocking(self.0.flush(source, TransactionScope::Savepoint))
    }
}

/// A unit of work over several stores.
pub struct ShardedUnitOfWork(Sharded<UnitOfWork>);

ordid_sql::sharded_unit_of_work! { impl[] ShardedUnitOfWork, UnitOfWork, Entity, ENGINE, FlushError }

impl ShardedUnitOfWork {
    /// Flushes each shard into its own store.
    ///
    /// # Errors
    ///
    /// What became of each shard, if one of them failed.
    pub fn flush(&mut self, stores: &[Store]) -> Result<Vec<Flushed>, FlushError> {
        blocking(self.0.flush(stores.iter().map(Source::of)))
    }
}

/// Creates the table of marker rows: the documentation that the macros write refers to it.
pub fn flushes_table(store: &Store) {
    store.create_table(MARKERS, &[]);
}
