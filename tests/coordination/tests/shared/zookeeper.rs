//! Sessions of ZooKeeper, on a machine that has other things to do.

use std::time::{Duration, Instant};

use ordid_tests::{
    stores::{ENDLESS, own_name},
    trials::Outcome,
};
use ordid_zookeeper::Session;
use zookeeper_client::{Client, Connector};

/// How long a session outlives its connection.
pub(crate) const SESSION: Duration = Duration::from_secs(20);

pub(crate) fn connector(session: Duration) -> Connector {
    Client::connector().with_session_timeout(session)
}

pub(crate) fn session(url: &str) -> Session {
    Session::new(connector(SESSION), url)
}

/// A path that no other test has.
pub(crate) fn own_path(test: &str) -> String {
    format!("/ordid/{}", own_name(test))
}

/// Ends a session as a server does: connects with its id, and closes it.
pub(crate) async fn expire(url: &str, session: &Session) -> Outcome {
    let client = session.client().await?;
    let start = Instant::now();
    while !client.state().is_terminated() {
        assert!(start.elapsed() < ENDLESS, "the session does not end");
        let thief = connector(SESSION).with_session(client.session().clone());
        // The client connects anew when it is thrown out, and may throw out the thief before it has left.
        let connected = tokio::time::timeout(Duration::from_secs(1), thief.connect(url)).await;
        drop(connected);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}
