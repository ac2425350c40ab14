//! A private Pgpool-II before a private PostgreSQL and a standby of it: it writes to the one, and reads from the other.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Error;
use crate::debian::{Packages, broken};
use crate::find;
use crate::postgres::authenticated;
use crate::process::Launch;
use crate::server::{Found, Identity, Recipe};

const PACKAGES: Packages = Packages {
    name: "pgpool",
    suite: "sid",
    packages: &["pgpool2"],
    foreign: &[],
    programs: &["usr/sbin/pgpool"],
    user: Pgpool::IDENTITY.user,
};

/// The binary of Pgpool-II, and the ports of the servers behind it.
pub(crate) struct Pgpool {
    program: PathBuf,
    primary: u16,
    standby: u16,
}

/// Finds that of Debian's next suite, which is unpacked if it has to be.
pub(crate) fn find() -> Result<Found<PathBuf>, Error> {
    let recipe = PathBuf::from(PACKAGES.unpack()?.path("usr/sbin/pgpool"));
    // It says its version to standard error.
    let mut asked = Command::new("sh");
    asked.args(["-c", r#""$0" --version 2>&1"#]).arg(&recipe);
    let version = find::output(&mut asked).ok_or_else(|| broken(&recipe))?;
    Ok(Found { recipe, version })
}

impl Pgpool {
    pub(crate) fn before(primary: u16, standby: u16) -> Result<Found<Self>, Error> {
        Ok(find()?.map(|program| Self {
            program,
            primary,
            standby,
        }))
    }
}

impl Recipe for Pgpool {
    const IDENTITY: Identity = Identity::of("pgpool", "postgres", "pgpool2");
    const URL: &'static str = "postgres://postgres@127.0.0.1:{port}/postgres";

    fn launch(&self, folder: &str, port: u16) -> Launch {
        let backend = |number: usize, port: u16, weight: u8| {
            [
                format!("backend_hostname{number} = '127.0.0.1'"),
                format!("backend_port{number} = {port}"),
                format!("backend_weight{number} = {weight}"),
                format!("backend_flag{number} = 'DISALLOW_TO_FAILOVER'"),
            ]
        };
        let mut settings = vec![
            "backend_clustering_mode = 'streaming_replication'".to_owned(),
            "listen_addresses = '127.0.0.1'".to_owned(),
            format!("port = {port}"),
            format!("unix_socket_directories = '{folder}'"),
            "pcp_listen_addresses = ''".to_owned(),
            format!("pcp_socket_dir = '{folder}'"),
            format!("pid_file_name = '{folder}/pgpool.pid'"),
            format!("logdir = '{folder}'"),
            "num_init_children = 32".to_owned(),
            "max_pool = 1".to_owned(),
            "connection_cache = off".to_owned(),
            // All queries that only read go to the standby, however much it lags.
            "load_balance_mode = on".to_owned(),
            "statement_level_load_balance = on".to_owned(),
            // Otherwise a function whose volatility is not `stable` makes a transaction one that writes.
            "read_only_function_list = '.*'".to_owned(),
            "delay_threshold = 0".to_owned(),
            // It finds out which server is the primary as this user.
            "sr_check_period = 0".to_owned(),
            "sr_check_user = 'postgres'".to_owned(),
            "sr_check_database = 'postgres'".to_owned(),
            "health_check_period = 0".to_owned(),
            "failover_on_backend_error = off".to_owned(),
        ];
        settings.extend(backend(0, self.primary, 0));
        settings.extend(backend(1, self.standby, 1));
        let file = format!("{folder}/pgpool.conf");
        let script = r#"file=$1; shift; printf '%s\n' "$@" >"$file"; : >"$file.pcp""#;
        let mut write = ["sh", "-c", script, "sh", &file]
            .map(str::to_owned)
            .to_vec();
        write.extend(settings);
        let program = self.program.to_string_lossy().into_owned();
        let arguments = ["-n", "-f", &file, "-F", &format!("{file}.pcp")].map(str::to_owned);
        let launch = Launch::of(vec![write], [vec![program], arguments.to_vec()].concat());
        // SIGTERM waits for the clients.
        launch.stopped_by("INT")
    }

    fn ready(&self, _: &Path, port: u16) -> bool {
        authenticated(port).unwrap_or(false)
    }
}
