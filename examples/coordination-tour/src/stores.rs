//! The private servers of the tour.

use anyhow::{Context as _, Result};
use ordid_harness::Server;
use tempfile::TempDir;

/// What the methods stand on. Servers stop when this is dropped.
pub(crate) struct Stores {
    folder: TempDir,
    servers: Vec<(&'static str, Result<Server, String>)>,
}

impl Stores {
    /// Starts the servers that are installed.
    ///
    /// # Errors
    ///
    /// If one that is installed does not start.
    pub(crate) fn start() -> Result<Self> {
        let mut servers = Vec::new();
        for name in ["redis", "zookeeper", "postgres"] {
            servers.push((name, start(name, || ordid_harness::start(name))?));
        }
        for (name, offset) in [("mariadb", 1), ("mariadb_2", 2)] {
            let offset = format!("--auto-increment-offset={offset}");
            let options = ["--auto-increment-increment=2", &offset];
            let server = start(name, || ordid_harness::mariadb_with(&options))?;
            servers.push((name, server));
        }
        Ok(Self {
            folder: TempDir::new().context("a temporary folder")?,
            servers,
        })
    }

    /// A line for each server.
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        self.servers.iter().map(|(name, server)| match server {
            Ok(server) => format!("{name}: {}, private", server.version()),
            Err(reason) => format!("{name}: left out: {reason}"),
        })
    }

    /// A server's address, where it is there.
    pub(crate) fn url(&self, name: &str) -> Option<String> {
        let (_, server) = self.servers.iter().find(|(known, _)| *known == name)?;
        server.as_ref().ok().map(Server::url)
    }

    /// A place for files.
    pub(crate) fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }
}

fn start(
    name: &str,
    start: impl FnOnce() -> Result<Server, ordid_harness::Error>,
) -> Result<Result<Server, String>> {
    match ordid_harness::installed(name) {
        Ok(_) => Ok(Ok(start()?)),
        Err(error) => Ok(Err(error.to_string())),
    }
}
