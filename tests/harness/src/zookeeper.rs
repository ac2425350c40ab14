//! A private ZooKeeper server, standalone or of an ensemble.

use std::io::{Read, Write};
use std::path::Path;

use crate::Error;
use crate::find;
use crate::java::Java;
use crate::process::{Launch, write};
use crate::server::{Found, Identity, Recipe, connect, logged};

/// Where Debian's package puts the library; it names those that it needs.
const DEBIAN: &str = "/usr/share/java/zookeeper.jar";
/// Writes the log to standard error. The library only knows the facade of it, and without this one
/// a server that fails does not say why.
const LOGGER: &str = "/usr/share/java/slf4j-simple.jar";

/// The Java runtime and the library.
pub(crate) struct ZooKeeper {
    java: Java,
    member: Option<Member>,
}

/// Which server of an ensemble it is.
struct Member {
    /// From 1 on.
    id: usize,
    /// On which ports of 127.0.0.1 the servers follow their leader, and elect it.
    ports: Vec<[u16; 2]>,
}

impl Member {
    fn settings(&self) -> Vec<String> {
        let server = |(id, [follow, elect]): (usize, &[u16; 2])| {
            format!("server.{id}=127.0.0.1:{follow}:{elect}")
        };
        // In ticks: how long a follower may take to catch up at first, and later.
        let limits = ["initLimit=100", "syncLimit=20"].map(str::to_owned);
        (1..).zip(&self.ports).map(server).chain(limits).collect()
    }
}

impl ZooKeeper {
    /// Finds `java` in `PATH`, and the library in `CLASSPATH` or where Debian puts it.
    pub(crate) fn find() -> Result<Found<Self>, Error> {
        let packages = "zookeeper default-jre-headless";
        let java = Java::find(DEBIAN, Self::IDENTITY.package, packages)?;
        let words = java.command(&[], &[], "org.apache.zookeeper.version.VersionInfoMain");
        let says = find::output(std::process::Command::new(&words[0]).args(&words[1..]));
        let says = says.ok_or_else(|| {
            Error::new(format!("{} does not say its version", java.jar().display()))
        })?;
        let version = format!("{says} on {}", java.runtime_version());
        let recipe = Self { java, member: None };
        Ok(Found { recipe, version })
    }

    /// The server of this number, from 1 on, of an ensemble with these ports to follow and to elect.
    pub(crate) fn of_ensemble(self, id: usize, ports: Vec<[u16; 2]>) -> Self {
        Self {
            member: Some(Member { id, ports }),
            ..self
        }
    }
}

impl Recipe for ZooKeeper {
    const IDENTITY: Identity = Identity::of("zookeeper", "zookeeper", "zookeeper");
    const URL: &'static str = "tcp://127.0.0.1:{port}/";

    fn launch(&self, folder: &str, port: u16) -> Launch {
        let (data, file) = (format!("{folder}/data"), format!("{folder}/zoo.cfg"));
        // Only a file can name the address.
        let mut settings = vec![
            format!("dataDir={data}"),
            format!("clientPort={port}"),
            "clientPortAddress=127.0.0.1".to_owned(),
            "admin.enableServer=false".to_owned(),
            "4lw.commands.whitelist=srvr".to_owned(),
            "maxClientCnxns=0".to_owned(),
            // A session lives for two ticks at least, and its end is seen a tick later.
            "tickTime=100".to_owned(),
            "maxSessionTimeout=60000".to_owned(),
        ];
        let mut prepare = vec![vec!["mkdir".to_owned(), data.clone()]];
        if let Some(member) = &self.member {
            settings.extend(member.settings());
            prepare.push(write(format!("{data}/myid"), vec![member.id.to_string()]));
        }
        prepare.push(write(file.clone(), settings));
        let options = ["-Xmx256m".to_owned(), format!("-Djava.io.tmpdir={folder}")];
        let class = "org.apache.zookeeper.server.quorum.QuorumPeerMain";
        let mut serve = self.java.command(&options, &[Path::new(LOGGER)], class);
        serve.push(file);
        Launch::of(prepare, serve)
    }

    fn ready(&self, folder: &Path, port: u16) -> bool {
        let is_bound = match self.member {
            // It starts this thread once it has bound its port.
            None => logged(folder, "PrepRequestProcessor (sid:0) started"),
            // It binds the port before it looks for a leader.
            Some(_) => logged(folder, "LOOKING"),
        };
        is_bound && serves(port).unwrap_or(false)
    }
}

/// Whether a server describes itself; while it still loads its data it says so instead.
fn serves(port: u16) -> std::io::Result<bool> {
    let mut stream = connect(port)?;
    stream.write_all(b"srvr")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer.contains("\nMode: "))
}
