//! A private etcd server, a cluster of its own or a member of one.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use crate::Error;
use crate::find;
use crate::process::Launch;
use crate::server::{Found, Identity, Recipe, connect, logged};

/// The binary of etcd, and its place in a cluster.
pub(crate) struct Etcd {
    program: PathBuf,
    /// Which member it is.
    id: usize,
    /// Where each of them talks to the others.
    peers: Vec<String>,
}

impl Etcd {
    /// Finds `etcd` in `PATH`.
    pub(crate) fn find() -> Result<Found<Self>, Error> {
        let alone = |program| Self {
            program,
            id: 0,
            // Nobody else is in the cluster, so any port will do.
            peers: vec!["http://127.0.0.1:0".to_owned()],
        };
        find::alone("etcd", Self::IDENTITY.package, alone)
    }

    /// Takes a member's place: one of these ports is its own.
    pub(crate) fn member(self, id: usize, ports: &[u16]) -> Self {
        let peer = |port| format!("http://127.0.0.1:{port}");
        let peers = ports.iter().map(peer).collect();
        Self { id, peers, ..self }
    }

    fn names(&self) -> impl Iterator<Item = String> {
        (0..self.peers.len()).map(|id| format!("member{id}"))
    }
}

impl Recipe for Etcd {
    const IDENTITY: Identity = Identity::of("etcd", "etcd", "etcd-server");
    const URL: &'static str = "http://127.0.0.1:{port}/";

    fn launch(&self, folder: &str, port: u16) -> Launch {
        let clients = format!("http://127.0.0.1:{port}");
        let own = &self.peers[self.id];
        let members = self.names().zip(&self.peers);
        let members: Vec<String> = members
            .map(|(name, peer)| format!("{name}={peer}"))
            .collect();
        // On one machine the members wait for each other's disk, and a leader must not be taken for dead meanwhile.
        let (heartbeat, election) = match self.peers.len() {
            1 => ("20", "200"),
            _ => ("60", "600"),
        };
        let options = [
            ("--name", &*format!("member{}", self.id)),
            ("--data-dir", &format!("{folder}/data")),
            ("--listen-client-urls", &clients),
            ("--advertise-client-urls", &clients),
            ("--listen-peer-urls", own),
            ("--initial-advertise-peer-urls", own),
            ("--initial-cluster", &members.join(",")),
            // A lease lives for one and a half elections at least, in whole seconds.
            ("--heartbeat-interval", heartbeat),
            ("--election-timeout", election),
        ];
        let mut serve = vec![self.program.to_string_lossy().into_owned()];
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
