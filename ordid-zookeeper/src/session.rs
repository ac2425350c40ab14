//! A session with ZooKeeper, as the parts of this crate share it.

use core::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use ordid_core::{
    __private::{Process, process},
    Error,
    coordination::CoordinationFailure,
};
use zookeeper_client::{Acls, Client, Connector, CreateMode, CreateOptions};

use crate::error::failed;

/// A session with ZooKeeper: begun when it is first used, and anew after one that has expired.
///
/// Clones share the session. It lives as long as the last of them, and so do the leases
/// that were taken in it. Tokio's runtime, in which it was begun, has to live as long.
///
/// The child of a process that has had one can have none: each call is an
/// [`Unavailable`](CoordinationFailure::Unavailable) there. Fork first, or start the child as a program of
/// its own.
#[derive(Clone)]
pub struct Session(Arc<Inner>);

/// The process that was the first here to have a session.
static OWNER: OnceLock<Process> = OnceLock::new();

/// Refuses the child of a process that has had a session, where calls would not end, on whatever runtime. The
/// library waits for its sockets and its timers by `async-io`: one reactor a process, whose thread is not in
/// the child, and had its lock when it was forked, so that nobody there can wait in its place.
fn check_process() -> Result<(), Error> {
    let (owner, this) = (OWNER.get_or_init(process), process());
    if *owner == this {
        return Ok(());
    }
    Err(Error::coordination(
        CoordinationFailure::Unavailable,
        format!(
            "ZooKeeper: process {owner} has had a session, and this is its fork {this}, where there can be none: \
             fork first, or start the child as a program of its own"
        ),
    ))
}

struct Inner {
    connector: Connector,
    cluster: String,
    acls: Acls<'static>,
    client: Mutex<Option<Client>>,
}

impl Session {
    /// Makes a session with the servers that the library's connection string names, such as
    /// `one:2181,two:2181,three:2181/app`. It connects when it is first used.
    ///
    /// The connector says how long the session outlives its connection, and how to authenticate. What
    /// is created may be changed by everyone, unless [`with_acls`](Self::with_acls) says otherwise.
    pub fn new(connector: Connector, cluster: impl Into<String>) -> Self {
        Self::of(connector, cluster.into(), Acls::anyone_all())
    }

    /// Returns a session with these ACLs: only they may read and change what it creates.
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
    /// [`Unavailable`](CoordinationFailure::Unavailable) if no server answers within the time of a
    /// session.
    pub async fn client(&self) -> Result<Client, Error> {
        check_process()?;
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
}

/// In the child of a fork the client is the parent's: to drop it would wake a task of the parent's runtime,
/// whose locks a fork may have left locked.
impl Drop for Inner {
    fn drop(&mut self) {
        // Without an owner there is no client.
        if OWNER.get().is_some_and(|owner| *owner != process()) {
            let client = self.client.get_mut();
            std::mem::forget(client.unwrap_or_else(PoisonError::into_inner).take());
        }
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
