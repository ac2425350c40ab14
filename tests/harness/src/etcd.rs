//! A private etcd server, a cluster of its own.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use crate::Error;
use crate::find;
use crate::process::Launch;
use crate::server::{Found, Identity, Recipe, connect, logged};

/// The binary of etcd.
pub(crate) struct Etcd(PathBuf);

impl Etcd {
    /// Finds `etcd` in `PATH`.
    pub(crate) fn find() -> Result<Found<Self>, Error> {
        find::alone("etcd", Self::IDENTITY.package, Self)
    }
}

impl Recipe for Etcd {
    const IDENTITY: Identity = Identity::of("etcd", "etcd", "etcd-server");
    const URL: &'static str = "http://127.0.0.1:{port}/";

    fn launch(&self, folder: &str, port: u16) -> Launch {
        let clients = format!("http://127.0.0.1:{port}");
        // Nobody else is in the cluster, so any port will do.
        let peers = "http://127.0.0.1:0";
        let options = [
            ("--name", "one"),
            ("--data-dir", &format!("{folder}/data")),
            ("--listen-client-urls", &clients),
            ("--advertise-client-urls", &clients),
            ("--listen-peer-urls", peers),
            ("--initial-advertise-peer-urls", peers),
            ("--initial-cluster", &format!("one={peers}")),
            // A lease lives for one and a half elections at least, in whole seconds.
            ("--heartbeat-interval", "20"),
            ("--election-timeout", "200"),
        ];
        let mut serve = vec![self.0.to_string_lossy().into_owned()];
        serve.extend(
            options
                .iter()
                .flat_map(|(name, value)| [name, value].map(|it| it.to_string())),
        );
        Launch::of(Vec::new(), serve)
    }

    fn ready(&self, folder: &Path, port: u16) -> bool {
        logged(folder, "ready to serve client requests") && healthy(port).unwrap_or(false)
    }
}

/// Whether a server says that it has a leader, which it has not at once.
fn healthy(port: u16) -> std::io::Result<bool> {
    let mut stream = connect(port)?;
    stream.write_all(b"GET /health HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer.contains(r#""health":"true""#))
}
