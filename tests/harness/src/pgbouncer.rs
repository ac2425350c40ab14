//! A private PgBouncer before a private PostgreSQL, which it gives to each transaction anew.

use std::path::{Path, PathBuf};

use crate::Error;
use crate::debian::{Packages, broken};
use crate::find;
use crate::postgres::{Postgres, authenticated};
use crate::process::Launch;
use crate::server::{Found, Identity, Recipe, Server, logged};

const NEWER: Packages = Packages {
    name: "pgbouncer",
    suite: "sid",
    packages: &["pgbouncer"],
    foreign: &[],
    programs: &["usr/sbin/pgbouncer"],
    user: PgBouncer::IDENTITY.user,
};

/// The binary of PgBouncer, and the server behind it.
pub(crate) struct PgBouncer {
    program: PathBuf,
    server: Server,
    /// The last lines of its settings. The last one of a name holds.
    settings: Vec<String>,
}

/// Finds `pgbouncer` in `PATH`.
pub(crate) fn find() -> Result<Found<PathBuf>, Error> {
    find::alone("pgbouncer", PgBouncer::IDENTITY.package, |path| path)
}

/// Finds that of Debian's next suite, which is unpacked if it has to be.
pub(crate) fn find_newer() -> Result<Found<PathBuf>, Error> {
    let recipe = PathBuf::from(NEWER.unpack()?.path("usr/sbin/pgbouncer"));
    let version = find::version(&recipe).ok_or_else(|| broken(&recipe))?;
    Ok(Found { recipe, version })
}

impl PgBouncer {
    /// Starts the PostgreSQL that is behind it.
    pub(crate) fn with_server() -> Result<Found<Self>, Error> {
        Self::before_a_server(find()?)
    }

    /// As [`with_server`](Self::with_server), the newer one, with its default for prepared statements since 1.24.
    pub(crate) fn newer() -> Result<Found<Self>, Error> {
        let found = Self::before_a_server(find_newer()?)?;
        Ok(found.map(|recipe| recipe.set(&["max_prepared_statements = 200"])))
    }

    fn before_a_server(found: Found<PathBuf>) -> Result<Found<Self>, Error> {
        let Found { recipe, version } = found;
        let recipe = Self {
            program: recipe,
            server: Server::start(Postgres::find()?)?,
            settings: Vec::new(),
        };
        Ok(Found { recipe, version })
    }

    /// Adds settings, such as `pool_mode = session`.
    pub(crate) fn set(self, settings: &[&str]) -> Self {
        Self {
            settings: settings.iter().map(|&line| line.to_owned()).collect(),
            ..self
        }
    }
}

impl Recipe for PgBouncer {
    // It refuses to run as root. Of its own account it has no need, and the package has none.
    const IDENTITY: Identity = Identity::of("pgbouncer", "postgres", "pgbouncer");
    const URL: &'static str = "postgres://postgres@127.0.0.1:{port}/postgres";

    fn launch(&self, folder: &str, port: u16) -> Launch {
        let settings = [
            "[databases]".to_owned(),
            // Any database, as this user whatever the client calls itself.
            format!(
                "* = host=127.0.0.1 port={} user=postgres",
                self.server.port()
            ),
            "[pgbouncer]".to_owned(),
            "listen_addr = 127.0.0.1".to_owned(),
            format!("listen_port = {port}"),
            "unix_socket_dir =".to_owned(),
            "auth_type = any".to_owned(),
            "pool_mode = transaction".to_owned(),
            // Fewer than the clients, so that a client's transactions go over several, and several clients' over one.
            "default_pool_size = 3".to_owned(),
            "max_client_conn = 500".to_owned(),
            // The oldest connection is not always taken again: all of them are used in turn.
            "server_round_robin = 1".to_owned(),
            // libpq and SQLx send it when they connect; the manual says to ignore it.
            "ignore_startup_parameters = extra_float_digits".to_owned(),
        ];
        let file = format!("{folder}/pgbouncer.ini");
        let script = r#"file=$1; shift; printf '%s\n' "$@" >"$file""#;
        let mut write = ["sh", "-c", script, "sh", &file]
            .map(str::to_owned)
            .to_vec();
        write.extend(settings);
        write.extend(self.settings.iter().cloned());
        let program = self.program.to_string_lossy().into_owned();
        Launch::of(vec![write], vec![program, file])
    }

    fn ready(&self, folder: &Path, port: u16) -> bool {
        logged(folder, "process up") && authenticated(port).unwrap_or(false)
    }
}
