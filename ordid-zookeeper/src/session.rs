//! A session with ZooKeeper, as the parts of this crate share it.

use core::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use ordid_core::Error;
use zookeeper_client::{Acls, Client, Connector, CreateMode, CreateOptions};

use crate::error::failed;

/// A session with ZooKeeper: begun when it is first used, and anew after one that has expired.
///
/// Clones share the session. It lives as long as the last of them, and so do the leases and the locks
/// that were taken in it. Tokio's runtime, in which it was begun, has to live as long.
#[derive(Clone)]
pub struct Session(Arc<Inner>);

struct Inner {
    connector: Connector,
    cluster: String,
    acls: Acls<'static>,
    client: Mutex<Option<Client>>,
}

impl Session {
    /// With the servers that the library's connection string names, such as
    /// `one:2181,two:2181,three:2181/app`; it connects when it is first used.
    ///
    /// The connector says how long the session outlives its connection, and how to authenticate. What
    /// is created may be changed by everyone, unless [`with_acls`](Self::with_acls) says otherwise.
    pub fn new(connector: Connector, cluster: impl Into<String>) -> Self {
        Self::of(connector, cluster.into(), Acls::anyone_all())
    }

    /// The same, of which only these may read and change what it creates.
    #[must_use]
    pub fn with_acls(self, acls: Acls<'static>) -> Self {
        Self::of(self.0.connector.clone(), self.0.cluster.clone(), acls)
    }

    fn of(connector: Connector, cluster: String, acls: Acls<'static>) -> Self {
        Self(Arc::new(Inner {
            connector,
            cluster,
            acls,
            client: Mutex::new(None),
        }))
    }

    /// Returns the client of the session, which is begun where there is none or it has expired.
    ///
    /// # Errors
    ///
    /// [`Unavailable`](ordid_core::coordination::CoordinationFailure::Unavailable) if no server
    /// answers within the time of a session.
    pub async fn client(&self) -> Result<Client, Error> {
        if let Some(client) = self.present() {
            return Ok(client);
        }
        let connected = self.0.connector.clone().connect(&self.0.cluster).await;
        let connected = connected.map_err(|error| failed(&self.0.cluster, &error))?;
        // Somebody else may have been faster: then the session just begun ends here.
        let mut client = self.0.client.lock().unwrap_or_else(PoisonError::into_inner);
        let present = client
            .take()
            .filter(|client| !client.state().is_terminated());
        Ok(client.insert(present.unwrap_or(connected)).clone())
    }

    fn present(&self) -> Option<Client> {
        let client = self.0.client.lock().unwrap_or_else(PoisonError::into_inner);
        let client = client.as_ref();
        client
            .filter(|client| !client.state().is_terminated())
            .cloned()
    }

    pub(crate) fn create_options(&self, mode: CreateMode) -> CreateOptions<'static> {
        mode.with_acls(self.0.acls)
    }

    pub(crate) fn acls(&self) -> Acls<'static> {
        self.0.acls
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("cluster", &self.0.cluster)
            .field("client", &self.present())
            .finish_non_exhaustive()
    }
}
