//! A private Redis server.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use crate::Error;
use crate::find;
use crate::process::Launch;
use crate::server::{Recipe, connect};

/// The binary of Redis.
pub(crate) struct Redis {
    server: PathBuf,
    version: String,
}

impl Redis {
    /// Finds `redis-server` in `PATH`.
    pub(crate) fn find() -> Result<Self, Error> {
        find::binary(&["redis-server"])
            .and_then(|server| {
                let version = find::version(&server)?;
                Some(Self { server, version })
            })
            .ok_or_else(|| Error::missing("redis-server", Self::PACKAGE))
    }
}

impl Recipe for Redis {
    const NAME: &'static str = "redis";
    const USER: &'static str = "redis";
    const PACKAGE: &'static str = "redis-server";

    fn version(&self) -> &str {
        &self.version
    }

    fn url(&self, port: u16) -> String {
        format!("redis://127.0.0.1:{port}/")
    }

    fn launch(&self, folder: &str, port: u16) -> Launch {
        let data = format!("{folder}/data");
        let port = port.to_string();
        let mut serve = vec![self.server.to_string_lossy().into_owned()];
        for (name, value) in [
            ("--bind", "127.0.0.1"),
            ("--port", &port),
            ("--dir", &data),
            ("--daemonize", "no"),
            // Of the two ways to keep data only the log loses nothing.
            ("--save", ""),
            ("--appendonly", "yes"),
            ("--appendfsync", "always"),
            ("--maxmemory-policy", "noeviction"),
        ] {
            serve.extend([name.to_owned(), value.to_owned()]);
        }
        Launch {
            prepare: vec![vec!["mkdir".to_owned(), data]],
            serve,
            stop: "TERM",
        }
    }

    fn ready(&self, folder: &Path, port: u16) -> bool {
        // The server says so once it has bound its port, so what answers is no stranger.
        let log = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
        log.contains("Ready to accept connections") && pong(port).unwrap_or(false)
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
