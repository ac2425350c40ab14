//! A private Redis server: alone, a replica of another, a node of a cluster, or a Sentinel.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::Error;
use crate::find;
use crate::process::{Launch, write};
use crate::server::{Found, Identity, Recipe, connect, logged};

/// The binary of Redis, and what kind of server it runs as.
pub(crate) struct Redis {
    program: PathBuf,
    kind: Kind,
}

enum Kind {
    Alone,
    /// Of the server on this port.
    Replica(u16),
    /// Of a cluster, in which it has no slots yet. Nodes talk to each other on this port, and take one that is silent for
    /// so long to have failed.
    Node(u16, Duration),
    /// One of three that watch over the server on this port and its replicas.
    Sentinel(u16),
}

/// What Sentinels call the servers that they watch over.
pub(crate) const SERVICE: &str = "ordid";

impl Redis {
    /// Finds `redis-server` in `PATH`.
    pub(crate) fn find() -> Result<Found<Self>, Error> {
        let alone = |program| Self {
            program,
            kind: Kind::Alone,
        };
        find::alone("redis-server", Self::IDENTITY.package, alone)
    }

    pub(crate) fn replica_of(self, port: u16) -> Self {
        let kind = Kind::Replica(port);
        Self { kind, ..self }
    }

    pub(crate) fn node(self, peers: u16, silent: Duration) -> Self {
        let kind = Kind::Node(peers, silent);
        Self { kind, ..self }
    }

    pub(crate) fn sentinel_of(self, port: u16) -> Self {
        let kind = Kind::Sentinel(port);
        Self { kind, ..self }
    }

    /// A Sentinel keeps what it learns in the file of its settings.
    fn watch(&self, folder: &str, port: u16, of: u16) -> Launch {
        let file = format!("{folder}/sentinel.conf");
        let settings = [
            "bind 127.0.0.1".to_owned(),
            format!("port {port}"),
            format!("dir {folder}"),
            format!("sentinel monitor {SERVICE} 127.0.0.1 {of} 2"),
            format!("sentinel down-after-milliseconds {SERVICE} 700"),
            // Within half of it a vote that failed is not repeated.
            format!("sentinel failover-timeout {SERVICE} 4000"),
        ];
        let program = self.program.to_string_lossy().into_owned();
        Launch::of(
            vec![write(file.clone(), settings.to_vec())],
            vec![program, file, "--sentinel".to_owned()],
        )
    }
}

/// How long a node may take to join a cluster.
const JOIN: Duration = Duration::from_secs(60);

/// Joins six servers to a cluster: three primaries, each with a replica.
pub(crate) fn join(ports: [u16; 6]) -> Result<(), Error> {
    let nodes = ports.map(|port| format!("127.0.0.1:{port}"));
    let mut create = Command::new("redis-cli");
    create.args(["--cluster", "create"]).args(nodes);
    create.args(["--cluster-replicas", "1", "--cluster-yes"]);
    let cannot = |error| Error::io("cannot run `redis-cli`", error);
    let made = create.output().map_err(cannot)?;
    if !made.status.success() {
        return Err(Error::new(format!(
            "redis-cli makes no cluster ({}): {}{}",
            made.status,
            String::from_utf8_lossy(&made.stdout),
            String::from_utf8_lossy(&made.stderr)
        )));
    }
    // The first three are the primaries. Each waits for its replica, and all until they agree that all are there.
    for (n, port) in ports.iter().enumerate() {
        let ask = |words: &[&str]| {
            let mut ask = Command::new("redis-cli");
            find::output(ask.args(["-p", &port.to_string()]).args(words))
        };
        let deadline = Instant::now() + JOIN;
        let is_joined = || {
            ask(&["cluster", "info"]).as_deref() == Some("cluster_state:ok")
                && (n >= 3 || ask(&["wait", "1", "1000"]).as_deref() == Some("1"))
        };
        while !is_joined() {
            if Instant::now() > deadline {
                return Err(Error::new(format!(
                    "the node on port {port} does not join the cluster"
                )));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    Ok(())
}

impl Recipe for Redis {
    const IDENTITY: Identity = Identity::of("redis", "redis", "redis-server");
    const URL: &'static str = "redis://127.0.0.1:{port}/";

    fn launch(&self, folder: &str, port: u16) -> Launch {
        let mut more = Vec::new();
        match self.kind {
            Kind::Alone => {}
            Kind::Replica(of) => {
                more.extend([
                    "--replicaof".to_owned(),
                    "127.0.0.1".to_owned(),
                    of.to_string(),
                ]);
            }
            Kind::Node(peers, silent) => {
                more.extend(
                    ["--cluster-enabled", "yes", "--cluster-node-timeout"].map(str::to_owned),
                );
                more.push(silent.as_millis().to_string());
                more.extend(["--cluster-port".to_owned(), peers.to_string()]);
            }
            Kind::Sentinel(of) => return self.watch(folder, port, of),
        }
        let data = format!("{folder}/data");
        let port = port.to_string();
        let options = [
            ("--bind", "127.0.0.1"),
            ("--port", &port),
            ("--dir", &data),
            ("--daemonize", "no"),
            // Of the two ways to keep data only the log loses nothing.
            ("--save", ""),
            ("--appendonly", "yes"),
            ("--appendfsync", "always"),
            ("--maxmemory-policy", "noeviction"),
            // A replica gets what there is at once.
            ("--repl-diskless-sync-delay", "0"),
        ];
        let mut serve = vec![self.program.to_string_lossy().into_owned()];
        serve.extend(
            options
                .iter()
                .flat_map(|(name, value)| [name, value].map(|it| it.to_string())),
        );
        serve.extend(more);
        Launch::of(vec![vec!["mkdir".to_owned(), data]], serve)
    }

    fn ready(&self, folder: &Path, port: u16) -> bool {
        let answers = || pong(port).unwrap_or(false);
        match self.kind {
            Kind::Alone | Kind::Node(..) => {
                logged(folder, "Ready to accept connections") && answers()
            }
            Kind::Replica(of) => {
                logged(folder, "sync: Finished with success")
                    && answers()
                    && has_replica(of, port).unwrap_or(false)
            }
            Kind::Sentinel(_) => logged(folder, "+monitor master") && answers(),
        }
    }
}

/// Whether a server answers to `PING`; while it still loads its data it says so instead.
fn pong(port: u16) -> std::io::Result<bool> {
    let mut stream = connect(port)?;
    stream.write_all(b"PING\r\n")?;
    let mut answer = [0; 7];
    stream.read_exact(&mut answer)?;
    Ok(answer == *b"+PONG\r\n")
}

/// Whether a master knows that its replica on this port has all that it has.
fn has_replica(master: u16, port: u16) -> std::io::Result<bool> {
    let mut stream = connect(master)?;
    stream.write_all(b"INFO replication\r\nQUIT\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer.contains(&format!("port={port},state=online")))
}
