//! The calls that a flush makes over a client. Those of tokio-postgres are awaited, those of the crate `postgres` block.

use std::pin::{Pin, pin};

use bytes::Bytes;
use futures_util::{SinkExt, future::join};
use tokio_postgres::{
    Client, CopyInSink, Error, Row, SimpleQueryMessage, Statement,
    types::{ToSql, Type},
};

use crate::{binder::Parameter, connection::AsClient};

/// A client, or what keeps or borrows one. If its calls block, the futures are ready.
pub(crate) trait Calls: Send {
    /// A `COPY` that takes rows. Dropped, it is aborted.
    type CopyIn<'c>: CopyIn
    where
        Self: 'c;

    /// Whether the calls block.
    const BLOCKS: bool;

    fn batch(&mut self, sql: &str) -> impl Future<Output = Result<(), Error>> + Send;

    fn simple(
        &mut self,
        sql: &str,
    ) -> impl Future<Output = Result<Vec<SimpleQueryMessage>, Error>> + Send;

    fn query_typed(
        &mut self,
        sql: &str,
        parameters: &[Parameter<'_>],
    ) -> impl Future<Output = Result<Vec<Row>, Error>> + Send;

    /// Sends both at once, if the client can.
    fn batch_and_query(
        &mut self,
        sql: &str,
        query: &str,
        parameters: &[Parameter<'_>],
    ) -> impl Future<Output = (Result<(), Error>, Result<Vec<Row>, Error>)> + Send;

    fn execute_typed(
        &mut self,
        sql: &str,
        parameters: &[Parameter<'_>],
    ) -> impl Future<Output = Result<u64, Error>> + Send;

    fn prepare(
        &mut self,
        sql: &str,
        types: &[Type],
    ) -> impl Future<Output = Result<Statement, Error>> + Send;

    fn query(
        &mut self,
        prepared: &Statement,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> impl Future<Output = Result<Vec<Row>, Error>> + Send;

    fn execute(
        &mut self,
        prepared: &Statement,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> impl Future<Output = Result<u64, Error>> + Send;

    fn copy_in(
        &mut self,
        prepared: &Statement,
    ) -> impl Future<Output = Result<Self::CopyIn<'_>, Error>> + Send;

    /// Sends a request, and does not wait for its answer if the client can go on without it.
    fn hand_over(&mut self, sql: &str);

    /// Closes the connection, which may be closed already.
    fn close(self);
}

/// A `COPY` that takes rows.
pub(crate) trait CopyIn: Send {
    fn feed(&mut self, piece: Bytes) -> impl Future<Output = Result<(), Error>> + Send;
    fn finish(self) -> impl Future<Output = Result<u64, Error>> + Send;
}

/// A client of tokio-postgres.
pub(crate) struct Awaited<C>(pub(crate) C);

impl<C: AsClient> Awaited<C> {
    fn client(&self) -> &Client {
        self.0.as_client()
    }
}

impl<C: AsClient> Calls for Awaited<C> {
    type CopyIn<'c>
        = Pin<Box<CopyInSink<Bytes>>>
    where
        Self: 'c;

    const BLOCKS: bool = false;

    async fn batch(&mut self, sql: &str) -> Result<(), Error> {
        self.client().batch_execute(sql).await
    }

    async fn simple(&mut self, sql: &str) -> Result<Vec<SimpleQueryMessage>, Error> {
        self.client().simple_query(sql).await
    }

    async fn query_typed(
        &mut self,
        sql: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, Error> {
        self.client().query_typed(sql, parameters).await
    }

    async fn batch_and_query(
        &mut self,
        sql: &str,
        query: &str,
        parameters: &[Parameter<'_>],
    ) -> (Result<(), Error>, Result<Vec<Row>, Error>) {
        let client = self.client();
        join(
            client.batch_execute(sql),
            client.query_typed(query, parameters),
        )
        .await
    }

    async fn execute_typed(
        &mut self,
        sql: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<u64, Error> {
        self.client().execute_typed(sql, parameters).await
    }

    async fn prepare(&mut self, sql: &str, types: &[Type]) -> Result<Statement, Error> {
        self.client().prepare_typed(sql, types).await
    }

    async fn query(
        &mut self,
        prepared: &Statement,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Error> {
        self.client().query(prepared, parameters).await
    }

    async fn execute(
        &mut self,
        prepared: &Statement,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<u64, Error> {
        self.client().execute(prepared, parameters).await
    }

    async fn copy_in(
        &mut self,
        prepared: &Statement,
    ) -> Result<Pin<Box<CopyInSink<Bytes>>>, Error> {
        self.client().copy_in(prepared).await.map(Box::pin)
    }

    fn hand_over(&mut self, sql: &str) {
        let request = pin!(self.client().batch_execute(sql));
        let _ = request.poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
    }

    fn close(self) {
        self.0.close();
    }
}

impl CopyIn for Pin<Box<CopyInSink<Bytes>>> {
    async fn feed(&mut self, piece: Bytes) -> Result<(), Error> {
        SinkExt::feed(self, piece).await
    }

    async fn finish(mut self) -> Result<u64, Error> {
        self.as_mut().finish().await
    }
}

#[cfg(feature = "postgres")]
pub(crate) use blocking::Blocking;

#[cfg(feature = "postgres")]
mod blocking {
    use std::{io::Write as _, ops::DerefMut, time::Duration};

    use bytes::Bytes;
    use postgres::{CopyInWriter, GenericClient};
    use tokio_postgres::{
        Error, Row, SimpleQueryMessage, Statement,
        types::{ToSql, Type},
    };

    /// How often a closing client asks whether the server has closed the connection. Each answer is late by one or two.
    const ATTEMPTS: u32 = 16;

    use super::{Calls, CopyIn};
    use crate::binder::Parameter;

    /// A client, a client that a pool lends, or a transaction of the crate `postgres`.
    pub(crate) struct Blocking<C>(pub(crate) C);

    impl<C: DerefMut<Target: GenericClient + Send> + Send> Calls for Blocking<C> {
        type CopyIn<'c>
            = CopyInWriter<'c>
        where
            Self: 'c;

        const BLOCKS: bool = true;

        async fn batch(&mut self, sql: &str) -> Result<(), Error> {
            self.0.batch_execute(sql)
        }

        async fn simple(&mut self, sql: &str) -> Result<Vec<SimpleQueryMessage>, Error> {
            self.0.simple_query(sql)
        }

        async fn query_typed(
            &mut self,
            sql: &str,
            parameters: &[Parameter<'_>],
        ) -> Result<Vec<Row>, Error> {
            self.0.query_typed(sql, parameters)
        }

        async fn batch_and_query(
            &mut self,
            sql: &str,
            query: &str,
            parameters: &[Parameter<'_>],
        ) -> (Result<(), Error>, Result<Vec<Row>, Error>) {
            match self.0.batch_execute(sql) {
                Ok(()) => (Ok(()), self.0.query_typed(query, parameters)),
                Err(error) => (Err(error), Ok(Vec::new())),
            }
        }

        async fn execute_typed(
            &mut self,
            sql: &str,
            parameters: &[Parameter<'_>],
        ) -> Result<u64, Error> {
            self.0.execute_typed(sql, parameters)
        }

        async fn prepare(&mut self, sql: &str, types: &[Type]) -> Result<Statement, Error> {
            self.0.prepare_typed(sql, types)
        }

        async fn query(
            &mut self,
            prepared: &Statement,
            parameters: &[&(dyn ToSql + Sync)],
        ) -> Result<Vec<Row>, Error> {
            self.0.query(prepared, parameters)
        }

        async fn execute(
            &mut self,
            prepared: &Statement,
            parameters: &[&(dyn ToSql + Sync)],
        ) -> Result<u64, Error> {
            self.0.execute(prepared, parameters)
        }

        async fn copy_in(&mut self, prepared: &Statement) -> Result<CopyInWriter<'_>, Error> {
            self.0.copy_in(prepared)
        }

        fn hand_over(&mut self, sql: &str) {
            let _ = self.0.batch_execute(sql);
        }

        /// Neither a pool's client nor the user's can be closed here, so the server ends the session, unless it has ended.
        fn close(mut self) {
            // A role that was set may not end its own session by `pg_terminate_backend`, where the user who has logged in is a
            // superuser. This asks for no privilege.
            let ends = "ROLLBACK; SET idle_in_transaction_session_timeout = 1; BEGIN";
            if self
                .0
                .batch_execute(ends)
                .is_err_and(|error| error.is_closed())
            {
                return;
            }
            // The answer to it may come for a later request. So there are some, until the end is noticed: a client that seems
            // to be open would be lent again.
            for attempt in 1..=ATTEMPTS {
                std::thread::sleep(Duration::from_millis(5) * attempt);
                if self
                    .0
                    .batch_execute("")
                    .is_err_and(|error| error.is_closed())
                {
                    break;
                }
            }
        }
    }

    impl CopyIn for CopyInWriter<'_> {
        async fn feed(&mut self, piece: Bytes) -> Result<(), Error> {
            self.write_all(&piece).map_err(|error| {
                let error = error.downcast();
                error.expect("a writer fails with the client's error")
            })
        }

        async fn finish(self) -> Result<u64, Error> {
            CopyInWriter::finish(self)
        }
    }
}
