//! tokio-postgres and the crate `postgres`.

use ::sqlx::{Pool, Postgres};
use ordid::{Assigned, KeyType as _, Tracked, uuid::Uuid};
use ordid_tests::{
    everyday::{Change, EverydayWork, Filled, Mark, Note, Person, Take},
    faults::Failed,
    servers::Client as _,
};
use ordid_tokio_postgres::{ChunkLimits, Flushed, OnConflict, UnitOfWork, Upserted};

use crate::{
    NoteId,
    plain::{MarkRow, PersonRow, ReceiptRow, Row, add_rows},
    tokio::{BLOCKING, PREFIX, connect, flush_blocking},
};

/// Defines a unit of work, and how it is flushed.
macro_rules! work {
    ($(#[$documentation:meta])* $work:ident, $prefix:ident, $flush:expr) => {
        $(#[$documentation])*
        pub struct $work(UnitOfWork);

        impl EverydayWork for $work {
            type Database = Postgres;

            const PREFIX: &'static str = $prefix;

            fn begin() -> Self {
                Self(UnitOfWork::new())
            }

            fn in_chunks(mut self, limits: ChunkLimits) -> Self {
                self.0 = self.0.in_chunks(limits);
                self
            }

            add_rows!();

            async fn flush(&mut self, pool: &Pool<Postgres>) -> Result<Flushed, Failed> {
                let url = Postgres::client_url(&pool.connect_options());
                let flush = $flush;
                let outcome = flush(&mut self.0, url).await;
                outcome.map_err(|error| Failed::from(&error))
            }
        }
    };
}

work! {
    /// The unit of work.
    Work, PREFIX, async |work: &mut UnitOfWork, url: String| work.flush_with(|| connect(&url)).await
}
work! {
    /// The same, over clients of the crate `postgres`.
    BlockingWork, BLOCKING, flush_blocking
}
