//! A private ZooKeeper server, standalone.

use std::io::{Read, Write};
use std::path::Path;

use crate::Error;
use crate::find;
use crate::java::Java;
use crate::process::Launch;
use crate::server::{Recipe, connect};

/// Where Debian's package puts the library; it names those that it needs.
const DEBIAN: &str = "/usr/share/java/zookeeper.jar";
/// Writes the log to standard error. The library only knows the facade of it, and without this one
/// a server that fails does not say why.
const LOGGER: &str = "/usr/share/java/slf4j-simple.jar";

/// The Java runtime and the library.
pub(crate) struct ZooKeeper {
    java: Java,
    version: String,
}

impl ZooKeeper {
    /// Finds `java` in `PATH`, and the library in `CLASSPATH` or where Debian puts it.
    pub(crate) fn find() -> Result<Self, Error> {
        let packages = "zookeeper default-jre-headless";
        let java = Java::find(DEBIAN, Self::PACKAGE, packages)?;
        let words = java.command(&[], &[], "org.apache.zookeeper.version.VersionInfoMain");
        let says = find::output(std::process::Command::new(&words[0]).args(&words[1..]));
        let says = says.ok_or_else(|| {
            Error::new(format!("{} does not say its version", java.jar().display()))
        })?;
        let version = format!("{says} on {}", java.runtime_version());
        Ok(Self { java, version })
    }
}

impl Recipe for ZooKeeper {
    const NAME: &'static str = "zookeeper";
    const USER: &'static str = "zookeeper";
    const PACKAGE: &'static str = "zookeeper";

    fn version(&self) -> &str {
        &self.version
    }

    fn url(&self, port: u16) -> String {
        format!("tcp://127.0.0.1:{port}/")
    }

    fn launch(&self, folder: &str, port: u16) -> Launch {
        let (data, file) = (format!("{folder}/data"), format!("{folder}/zoo.cfg"));
        // Only a file can name the address.
        let settings = [
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
        let mut write = [
            "sh",
            "-c",
            r#"file=$1; shift; printf '%s\n' "$@" >"$file""#,
            "sh",
        ]
        .map(str::to_owned)
        .to_vec();
        write.push(file.clone());
        write.extend(settings);
        let options = ["-Xmx256m".to_owned(), format!("-Djava.io.tmpdir={folder}")];
        let class = "org.apache.zookeeper.server.quorum.QuorumPeerMain";
        let mut serve = self.java.command(&options, &[Path::new(LOGGER)], class);
        serve.push(file);
        Launch {
            prepare: vec![vec!["mkdir".to_owned(), data], write],
            serve,
            stop: "TERM",
        }
    }

    fn ready(&self, folder: &Path, port: u16) -> bool {
        // The server starts this thread once it has bound its port, so what answers is no stranger.
        let log = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
        log.contains("PrepRequestProcessor (sid:0) started") && serves(port).unwrap_or(false)
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
