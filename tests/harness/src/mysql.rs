//! A private MySQL server.
//!
//! Debian's stable suite has MariaDB only, and an installed MySQL would take MariaDB's place. The binaries of the
//! next suite are unpacked into the cache instead.

use std::path::Path;
use std::process::Command;

use crate::Error;
use crate::debian::{Packages, Unpacked, broken};
use crate::find;
use crate::mariadb::greeted;
use crate::process::Launch;
use crate::server::{Found, Identity, Recipe};

const PACKAGES: Packages = Packages {
    name: "mysql",
    suite: "sid",
    packages: &["mysql-server-core", "mysql-client-core"],
    foreign: &[],
    programs: &[],
    // Only root unpacks, and root alone is sure to have access to the cache.
    user: "root",
};

/// The binaries of MySQL.
pub(crate) struct MySql {
    unpacked: Unpacked,
    /// The loader with the server's path.
    server: Vec<String>,
    /// What the server is started with besides what every private server is.
    options: Vec<String>,
}

impl MySql {
    /// Takes options of the server, such as `--lower-case-table-names=1`.
    pub(crate) fn with(mut self, options: &[&str]) -> Self {
        self.options = options.iter().map(|&option| option.to_owned()).collect();
        self
    }

    /// Unpacks the binaries, unless an earlier run has done so.
    pub(crate) fn find() -> Result<Found<Self>, Error> {
        let unpacked = PACKAGES.unpack()?;
        let server = unpacked.command("usr/sbin/mysqld")?;
        let version = find::output(Command::new(&server[0]).args(&server[1..]).arg("--version"));
        let version =
            version.ok_or_else(|| broken(Path::new(&unpacked.path("usr/sbin/mysqld"))))?;
        // It quotes the path before the version.
        let version = version
            .split_once("Ver ")
            .map_or(version.clone(), |(_, rest)| format!("MySQL {rest}"));
        let recipe = Self {
            unpacked,
            server,
            options: Vec::new(),
        };
        Ok(Found { recipe, version })
    }
}

impl Recipe for MySql {
    const IDENTITY: Identity = Identity::of("mysql", PACKAGES.user, "mysql-server-core");
    const URL: &'static str = "mysql://root@127.0.0.1:{port}/mysql";

    fn launch(&self, folder: &str, port: u16) -> Launch {
        let inside = |path| self.unpacked.path(path);
        let mut common = self.server.clone();
        common.extend([
            // It must come first: the machine's own configuration is not ours.
            "--no-defaults".to_owned(),
            "--user=root".to_owned(),
            format!("--datadir={folder}/data"),
            format!("--tmpdir={folder}"),
            format!("--basedir={}", inside("usr")),
            format!("--lc-messages-dir={}", inside("usr/share/mysql")),
            format!(
                "--character-sets-dir={}",
                inside("usr/share/mysql/charsets")
            ),
            format!("--plugin-dir={}", inside("usr/lib/mysql/plugin")),
            // Statements have no access to files: the server belongs to root.
            "--secure-file-priv=NULL".to_owned(),
            // As MariaDB's default. With a log, users without SUPER may define no triggers and functions.
            "--disable-log-bin".to_owned(),
        ]);
        common.extend_from_slice(&self.options);
        let mut install = common.clone();
        install.push("--initialize-insecure".to_owned());
        let mut serve = common;
        serve.extend([
            format!("--socket={folder}/socket"),
            format!("--pid-file={folder}/mysqld.pid"),
            format!("--port={port}"),
            "--bind-address=127.0.0.1".to_owned(),
            // The protocol of documents would take a port that is everyone's.
            "--mysqlx=OFF".to_owned(),
        ]);
        Launch::of(vec![install], serve)
    }

    fn ready(&self, folder: &Path, port: u16) -> bool {
        // As MariaDB's.
        folder.join("mysqld.pid").exists() && greeted(port).unwrap_or(false)
    }
}
