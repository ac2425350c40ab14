//! A private MariaDB server: of the installed package, or the newer one of another Debian suite.

use std::io::Read;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::debian::{Packages, broken};
use crate::find;
use crate::policy::newer_servers;
use crate::process::Launch;
use crate::server::{Found, Identity, Recipe, connect};

const NEWER: Packages = Packages {
    name: "mariadb-11.8",
    suite: "trixie",
    packages: &["mariadb-server-core", "mariadb-client-core"],
    foreign: &[],
    programs: &[
        "usr/sbin/mariadbd",
        "usr/bin/my_print_defaults",
        "usr/bin/resolveip",
    ],
    user: MariaDb::IDENTITY.user,
};

/// The binaries of MariaDB.
pub(crate) struct MariaDb {
    install: PathBuf,
    server: PathBuf,
    /// Where the server's other files are, if they are not where they would be installed.
    place: Vec<String>,
    /// What the server is started with besides what every private server is.
    options: Vec<String>,
}

impl MariaDb {
    /// Takes options of the server, such as `--auto-increment-increment=2`.
    pub(crate) fn with(mut self, options: &[&str]) -> Self {
        self.options = options.iter().map(|&option| option.to_owned()).collect();
        self
    }

    /// Finds what is installed, and unpacks the newer version where that is asked for.
    pub(crate) fn find() -> Result<Found<Self>, Error> {
        // Also then: the package makes the account.
        let installed = Self::installed()?;
        if !newer_servers() {
            return Ok(installed);
        }
        let unpacked = NEWER.unpack()?;
        let server = PathBuf::from(unpacked.path("usr/sbin/mariadbd"));
        let version = find::version(&server).ok_or_else(|| broken(&server))?;
        let recipe = Self {
            install: unpacked.path("usr/bin/mariadb-install-db").into(),
            server,
            place: vec![
                format!("--basedir={}", unpacked.path("usr")),
                format!("--lc-messages-dir={}", unpacked.path("usr/share/mysql")),
                format!(
                    "--character-sets-dir={}",
                    unpacked.path("usr/share/mysql/charsets")
                ),
                format!("--plugin-dir={}", unpacked.path("usr/lib/mysql/plugin")),
            ],
            options: Vec::new(),
        };
        Ok(Found { recipe, version })
    }

    /// Finds the binaries in `PATH` and the system's folders.
    pub(crate) fn installed() -> Result<Found<Self>, Error> {
        // `mysqld` is MariaDB's older name, but also the name of MySQL's server.
        let (server, version) = ["mariadbd", "mysqld"]
            .iter()
            .filter_map(|name| {
                let path = find::binary(&[name])?;
                let version = find::version(&path)?;
                version.contains("MariaDB").then_some((path, version))
            })
            .next()
            .ok_or_else(|| Error::missing("mariadbd", Self::IDENTITY.package))?;
        let install = find::binary(&["mariadb-install-db", "mysql_install_db"])
            .ok_or_else(|| Error::missing("mariadb-install-db", Self::IDENTITY.package))?;
        let recipe = Self {
            install,
            server,
            place: Vec::new(),
            options: Vec::new(),
        };
        Ok(Found { recipe, version })
    }
}

impl Recipe for MariaDb {
    const IDENTITY: Identity = Identity::of("mariadb", "mysql", "mariadb-server");
    const URL: &'static str = "mysql://root@127.0.0.1:{port}/mysql";

    fn launch(&self, folder: &str, port: u16) -> Launch {
        // `--no-defaults` must come first: the machine's own configuration is not ours.
        let mut install = vec![
            self.install.to_string_lossy().into_owned(),
            "--no-defaults".to_owned(),
            format!("--datadir={folder}/data"),
            // In a folder that they share, a server that starts removes the temporary tables of another.
            format!("--tmpdir={folder}"),
            "--auth-root-authentication-method=normal".to_owned(),
            "--skip-name-resolve".to_owned(),
            "--skip-test-db".to_owned(),
        ];
        install.extend_from_slice(&self.place);
        let mut serve = vec![
            self.server.to_string_lossy().into_owned(),
            "--no-defaults".to_owned(),
            format!("--datadir={folder}/data"),
            format!("--tmpdir={folder}"),
            format!("--socket={folder}/socket"),
            format!("--pid-file={folder}/mariadbd.pid"),
            format!("--port={port}"),
            "--bind-address=127.0.0.1".to_owned(),
            "--skip-name-resolve".to_owned(),
        ];
        serve.extend_from_slice(&self.place);
        serve.extend_from_slice(&self.options);
        Launch::of(vec![install], serve)
    }

    fn ready(&self, folder: &Path, port: u16) -> bool {
        // The server writes the file once it has bound its port, so the greeting is its own and
        // not that of a stranger that took the port first.
        folder.join("mariadbd.pid").exists() && greeted(port).unwrap_or(false)
    }
}

/// Tells whether the first packet on the port is a greeting of protocol version 10.
pub(crate) fn greeted(port: u16) -> std::io::Result<bool> {
    let mut packet = [0; 5];
    connect(port)?.read_exact(&mut packet)?;
    Ok(packet[4] == 10)
}
