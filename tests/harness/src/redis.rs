//! A private Redis server.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use crate::Error;
use crate::find;
use crate::process::Launch;
use crate::server::{Found, Identity, Recipe, connect, logged};

/// The binary of Redis.
pub(crate) struct Redis(PathBuf);

impl Redis {
    /// Finds `redis-server` in `PATH`.
    pub(crate) fn find() -> Result<Found<Self>, Error> {
        find::alone("redis-server", Self::IDENTITY.package, Self)
    }
}

impl Recipe for Redis {
    const IDENTITY: Identity = Identity::of("redis", "redis", "redis-server");
    const URL: &'static str = "redis://127.0.0.1:{port}/";

    fn launch(&self, folder: &str, port: u16) -> Launch {
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
        ];
        let mut serve = vec![self.0.to_string_lossy().into_owned()];
        serve.extend(
            options
                .iter()
                .flat_map(|(name, value)| [name, value].map(|it| it.to_string())),
        );
        Launch::of(vec![vec!["mkdir".to_owned(), data]], serve)
    }

    fn ready(&self, folder: &Path, port: u16) -> bool {
        logged(folder, "Ready to accept connections") && pong(port).unwrap_or(false)
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
