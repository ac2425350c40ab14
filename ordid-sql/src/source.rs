//! Sources of connections that more than one library has.

use crate::{
    EngineProfile, FlushError,
    spi::{Connected, ConnectionSource, ErrorOf, FlushConnection},
};

/// The only connection of a flush: the user's own.
#[derive(Debug)]
pub struct OneConnection<C> {
    connection: C,
    engine: EngineProfile,
}

impl<C: FlushConnection> OneConnection<C> {
    /// Takes the connection, and the profile of its engine.
    pub const fn new(connection: C, engine: EngineProfile) -> Self {
        Self { connection, engine }
    }
}

impl<C: FlushConnection> ConnectionSource for OneConnection<C> {
    type Connection = C;

    fn engine(&self) -> EngineProfile {
        self.engine
    }

    async fn get(&mut self, _: bool) -> Connected<'_, C> {
        Ok((&mut self.connection, false))
    }

    fn may_reconnect(&self) -> bool {
        false
    }
}

/// Connections that a function makes, or a pool lends, one after the other. Each is kept until it is lost.
#[derive(Debug)]
pub struct MadeConnections<C, F> {
    connect: F,
    open: Option<C>,
    engine: EngineProfile,
}

impl<C: FlushConnection, F> MadeConnections<C, F> {
    /// Takes the function, and the profile of the engine of its connections.
    pub const fn new(connect: F, engine: EngineProfile) -> Self {
        Self {
            connect,
            open: None,
            engine,
        }
    }
}

impl<C, F, W> ConnectionSource for MadeConnections<C, F>
where
    C: FlushConnection,
    F: FnMut() -> W + Send,
    W: Future<Output = Result<C, FlushError<ErrorOf<C>>>> + Send,
{
    type Connection = C;

    fn engine(&self) -> EngineProfile {
        self.engine
    }

    async fn get(&mut self, _: bool) -> Connected<'_, C> {
        match &mut self.open {
            Some(open) => Ok((open, false)),
            empty => {
                let made = (self.connect)().await?;
                Ok((empty.insert(made), true))
            }
        }
    }

    fn discard(&mut self) {
        if let Some(lost) = self.open.take() {
            lost.close();
        }
    }

    fn may_reconnect(&self) -> bool {
        true
    }
}
