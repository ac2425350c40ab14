//! A private PostgreSQL server: of the installed package, or the newer one of Debian's next suite.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use crate::Error;
use crate::debian::{Packages, broken};
use crate::find;
use crate::policy::newer_servers;
use crate::process::Launch;
use crate::server::{Found, Identity, Recipe, connect};

/// Debian's layout: the server's binaries are not in `PATH`, and several versions may be there.
const DEBIAN: &str = "/usr/lib/postgresql";

const NEWER: Packages = Packages {
    name: "postgres-18",
    suite: "sid",
    packages: &["postgresql-18"],
    foreign: &[],
    programs: &[
        "usr/lib/postgresql/18/bin/initdb",
        "usr/lib/postgresql/18/bin/pg_basebackup",
        "usr/lib/postgresql/18/bin/postgres",
    ],
    user: Postgres::IDENTITY.user,
};

/// The binaries of PostgreSQL.
pub(crate) struct Postgres {
    folder: PathBuf,
    /// The port of the server that this one repeats.
    primary: Option<u16>,
    /// The language of its messages; they are in English if there is none.
    language: Option<&'static str>,
}

impl Postgres {
    /// Finds what is installed, and unpacks the newer version where that is asked for.
    pub(crate) fn find() -> Result<Found<Self>, Error> {
        // Also then: the package makes the account.
        let installed = Self::installed()?;
        if !newer_servers() {
            return Ok(installed);
        }
        let folder = PathBuf::from(NEWER.unpack()?.path("usr/lib/postgresql/18/bin"));
        let version = find::version(&folder.join("postgres"))
            .ok_or_else(|| broken(&folder.join("postgres")))?;
        let recipe = Self::of(folder);
        Ok(Found { recipe, version })
    }

    /// Finds the newest version in Debian's folder, else the one in `PATH`.
    fn installed() -> Result<Found<Self>, Error> {
        let mut versions: Vec<(Vec<u32>, PathBuf)> = std::fs::read_dir(DEBIAN)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| {
                let number = version_number(entry.file_name().to_str()?)?;
                Some((number, entry.path().join("bin")))
            })
            .collect();
        versions.sort();

        let debian = versions.into_iter().rev().map(|(_, folder)| folder);
        for folder in debian.chain(find::folders()) {
            let server = folder.join("postgres");
            if !server.is_file() || !folder.join("initdb").is_file() {
                continue;
            }
            if let Some(version) = find::version(&server) {
                let recipe = Self::of(folder);
                return Ok(Found { recipe, version });
            }
        }
        Err(Error::missing("initdb` with `postgres", "postgresql"))
    }

    fn of(folder: PathBuf) -> Self {
        Self {
            folder,
            primary: None,
            language: None,
        }
    }

    /// Makes it a standby of the private server on this port.
    pub(crate) fn standby_of(self, primary: u16) -> Self {
        let primary = Some(primary);
        Self { primary, ..self }
    }

    /// Has the messages in a language, as far as they are installed.
    pub(crate) fn speaking(self, language: &'static str) -> Self {
        let language = Some(language);
        Self { language, ..self }
    }

    fn path(&self, binary: &str) -> String {
        self.folder.join(binary).to_string_lossy().into_owned()
    }
}

fn version_number(name: &str) -> Option<Vec<u32>> {
    name.split('.').map(|part| part.parse().ok()).collect()
}

impl Recipe for Postgres {
    // PostgreSQL refuses to run as root.
    const IDENTITY: Identity = Identity::of("postgres", "postgres", "postgresql");
    const URL: &'static str = "postgres://postgres@127.0.0.1:{port}/postgres";

    fn launch(&self, folder: &str, port: u16) -> Launch {
        let data = format!("{folder}/data");
        let mut create = vec![
            self.path("initdb"),
            format!("--pgdata={data}"),
            "--username=postgres".to_owned(),
            // This is for the command only: the server itself keeps `fsync` on.
            "--no-sync".to_owned(),
        ];
        let more: &[&str] = if let Some(primary) = self.primary {
            create[0] = self.path("pg_basebackup");
            create.push(format!("--port={primary}"));
            &[
                "--host=127.0.0.1",
                "--checkpoint=fast",
                "--write-recovery-conf",
            ]
        } else {
            &[
                "--auth=trust",
                "--encoding=UTF8",
                "--locale=C.UTF-8",
                "--no-instructions",
            ]
        };
        create.extend(more.iter().map(|&option| option.to_owned()));
        let mut serve = Vec::new();
        if let Some(language) = self.language {
            // Of `C.UTF-8` gettext follows it, so that no other locale has to be there.
            serve.extend(["env".to_owned(), format!("LANGUAGE={language}")]);
        }
        serve.extend([
            self.path("postgres"),
            "-D".to_owned(),
            data,
            "-p".to_owned(),
            port.to_string(),
        ]);
        for setting in [
            "listen_addresses=127.0.0.1".to_owned(),
            format!("unix_socket_directories={folder}"),
            "max_connections=100".to_owned(),
            "max_prepared_transactions=64".to_owned(),
            "logging_collector=off".to_owned(),
            "log_destination=stderr".to_owned(),
        ] {
            serve.extend(["-c".to_owned(), setting]);
        }
        // SIGINT is the "fast" shutdown: it does not wait for clients to leave.
        let launch = Launch::of(vec![create], serve);
        launch.stopped_by("INT")
    }

    fn ready(&self, folder: &Path, port: u16) -> bool {
        // The eighth line of this file says `ready`. Unlike an answer on the port it cannot come
        // from a stranger that took the port first.
        let status = std::fs::read_to_string(folder.join("data/postmaster.pid"));
        let ready = status.is_ok_and(|text| {
            text.lines()
                .nth(7)
                .is_some_and(|line| line.starts_with("ready"))
        });
        ready && authenticated(port).unwrap_or(false)
    }
}

/// Sends a startup message and tells whether the answer is `AuthenticationOk`.
pub(crate) fn authenticated(port: u16) -> std::io::Result<bool> {
    let mut stream = connect(port)?;
    let parameters = b"user\0postgres\0database\0postgres\0\0";
    let length = u32::try_from(8 + parameters.len()).map_err(std::io::Error::other)?;
    let mut message = length.to_be_bytes().to_vec();
    message.extend(196_608_u32.to_be_bytes()); // protocol 3.0
    message.extend(parameters);
    stream.write_all(&message)?;

    let mut answer = [0; 9];
    stream.read_exact(&mut answer)?;
    stream.write_all(b"X\0\0\0\x04")?; // Terminate
    Ok(answer == *b"R\0\0\0\x08\0\0\0\0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_as_numbers() {
        assert!(version_number("15") > version_number("9.6"));
        assert_eq!(version_number("common"), None);
    }
}
