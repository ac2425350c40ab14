//! Which server a live test uses.

use std::env;

use crate::{Error, Server};

/// The servers that live tests know: the name, what it stands for, and when this crate starts one itself.
const SERVERS: [(&str, &str, Start); 16] = [
    ("postgres", "PostgreSQL", Start::Always),
    ("postgres_2", "a second PostgreSQL", Start::Always),
    ("mariadb", "MariaDB", Start::Always),
    ("mariadb_2", "a second MariaDB", Start::Always),
    ("galera", "a Galera cluster", Start::Always),
    ("pgbouncer", "PgBouncer", Start::Always),
    ("pgbouncer_2", "a newer PgBouncer", Start::Always),
    ("pgpool", "Pgpool-II", Start::Always),
    ("h2", "H2", Start::Always),
    ("redis", "Redis", Start::Always),
    ("zookeeper", "ZooKeeper", Start::Always),
    ("mysql", "MySQL", Start::Always),
    ("group_replication", "a group of MySQL", Start::Always),
    ("mssql", "SQL Server", Start::Never),
    ("oracle", "Oracle", Start::Never),
    ("etcd", "etcd", Start::InSoak),
];

/// When a private server is started.
#[derive(Clone, Copy)]
enum Start {
    Always,
    /// By `cargo xtask soak`: its tests are built with what not everybody has.
    InSoak,
    Never,
}

const SOAK: &str = "ORDID_TEST_SOAK";
const SKIP: &str = "ORDID_TEST_SKIP";

/// What a live test does about its server.
///
/// The environment decides, the first match wins:
///
/// | variable                        | outcome                                      |
/// |---------------------------------|----------------------------------------------|
/// | `ORDID_TEST_SKIP=mariadb,mysql` | the named servers are skipped                |
/// | `ORDID_TEST_MYSQL_SKIP=reason`  | that server is skipped, for this reason      |
/// | `ORDID_TEST_POSTGRES_URL=...`   | that server is used, nothing is started      |
/// | neither                         | PostgreSQL, MariaDB, Galera, MySQL, a group of MySQL, PgBouncer, Pgpool-II, H2, Redis and ZooKeeper are started privately, and etcd where `ORDID_TEST_SOAK=1`; other servers are skipped |
///
/// A variable that is set to nothing counts as not set. `ORDID_TEST_NEWER_SERVERS=1` makes private servers of
/// PostgreSQL and MariaDB, also the one behind PgBouncer, of packages of newer Debian suites: 18 and 11.8.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Use the server at this URL.
    Use(String),
    /// Start a private server.
    StartPrivate,
    /// Leave out the tests of this server, for this reason.
    Skip(String),
}

/// Tells whether private servers of PostgreSQL and MariaDB are to be newer ones than the system's: version 18 and 11.8.
///
/// `ORDID_TEST_NEWER_SERVERS=1` asks for them.
pub(crate) fn newer_servers() -> bool {
    env::var("ORDID_TEST_NEWER_SERVERS").is_ok_and(|value| value.trim() == "1")
}

/// Returns the policy for the server of this name, from the environment of this process.
///
/// # Errors
///
/// When the name, or a name in `ORDID_TEST_SKIP`, is not a server's.
pub fn policy(name: &str) -> Result<Policy, Error> {
    policy_from(name, |variable| env::var(variable).ok())
}

/// Returns the policy for the server of this name, from the given environment.
///
/// # Errors
///
/// As [`policy`].
pub fn policy_from(name: &str, get: impl Fn(&str) -> Option<String>) -> Result<Policy, Error> {
    let get = |variable: &str| get(variable).filter(|value| !value.trim().is_empty());
    let skipped = get(SKIP).unwrap_or_default();
    let skipped: Vec<&str> = skipped
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .collect();
    for name in &skipped {
        if !SERVERS.iter().any(|(known, ..)| known == name) {
            return Err(unknown(&format!(
                "{SKIP} names the unknown server `{name}`"
            )));
        }
    }
    let Some((_, title, start)) = SERVERS.iter().find(|(known, ..)| *known == name) else {
        return Err(unknown(&format!("unknown server `{name}`")));
    };

    if skipped.contains(&name) {
        return Ok(Policy::Skip(format!("named in {SKIP}")));
    }
    if let Some(reason) = get(&variable(name, "SKIP")) {
        return Ok(Policy::Skip(reason));
    }
    let variable = variable(name, "URL");
    if let Some(url) = get(&variable) {
        return Ok(Policy::Use(url));
    }
    let is_soak = get(SOAK).is_some_and(|value| value.trim() == "1");
    Ok(match start {
        Start::Always => Policy::StartPrivate,
        Start::InSoak if is_soak => Policy::StartPrivate,
        Start::InSoak => Policy::Skip(format!(
            "cargo xtask soak starts {title}; or set {variable} to run"
        )),
        Start::Never => Policy::Skip(format!(
            "set {variable} to run: {title} is not started privately"
        )),
    })
}

fn variable(name: &str, what: &str) -> String {
    format!("ORDID_TEST_{}_{what}", name.to_uppercase())
}

fn unknown(message: &str) -> Error {
    let names: Vec<&str> = SERVERS.iter().map(|(name, ..)| *name).collect();
    Error::new(format!("{message}: use one of {}", names.join(", ")))
}

/// A server that a live test may use, or the reason why there is none.
#[derive(Debug)]
pub enum Access {
    /// Someone else's server, at this URL.
    Url(String),
    /// A private server, stopped when this value is dropped.
    Private(Server),
    /// No server, for this reason.
    Skip(String),
}

impl Access {
    /// Returns the variable that tells another process the same of the server of this name, and its value: so no
    /// process tries again in vain to get a server.
    #[must_use]
    pub fn variable(&self, name: &str) -> (String, String) {
        match self {
            Self::Url(url) => (variable(name, "URL"), url.clone()),
            Self::Private(server) => (variable(name, "URL"), server.url()),
            Self::Skip(reason) => (variable(name, "SKIP"), reason.clone()),
        }
    }

    /// Returns the administrator's URL, unless the server is skipped.
    #[must_use]
    pub fn url(&self) -> Option<String> {
        match self {
            Self::Url(url) => Some(url.clone()),
            Self::Private(server) => Some(server.url()),
            Self::Skip(_) => None,
        }
    }
}

/// Follows the [`policy`] for the server of this name, starting a private one where it says so. One that this
/// machine cannot get is skipped.
///
/// # Errors
///
/// As [`policy`] and [`start`](crate::start).
pub fn access(name: &str) -> Result<Access, Error> {
    Ok(match policy(name)? {
        Policy::Use(url) => Access::Url(url),
        Policy::StartPrivate => match crate::start(name) {
            Err(error) if error.is_unavailable() => Access::Skip(error.to_string()),
            started => Access::Private(started?),
        },
        Policy::Skip(reason) => Access::Skip(reason),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decide(name: &str, variables: &[(&str, &str)]) -> Result<Policy, String> {
        policy_from(name, |wanted| {
            let found = variables.iter().find(|(variable, _)| *variable == wanted);
            found.map(|(_, value)| (*value).to_owned())
        })
        .map_err(|error| error.to_string())
    }

    #[test]
    fn private_servers_are_started() {
        assert_eq!(decide("postgres", &[]), Ok(Policy::StartPrivate));
        for name in ["mysql", "pgbouncer", "h2", "redis", "zookeeper"] {
            assert_eq!(decide(name, &[]), Ok(Policy::StartPrivate));
        }
        assert_eq!(
            decide("mariadb", &[("ORDID_TEST_SKIP", " ")]),
            Ok(Policy::StartPrivate)
        );
        assert_eq!(
            decide("mariadb", &[("ORDID_TEST_MARIADB_URL", "")]),
            Ok(Policy::StartPrivate),
            "a variable that is set to nothing counts as not set"
        );
    }

    #[test]
    fn other_servers_need_a_url() {
        assert_eq!(
            decide("mssql", &[("ORDID_TEST_ORACLE_URL", "//o/")]),
            Ok(Policy::Skip(
                "set ORDID_TEST_MSSQL_URL to run: SQL Server is not started privately".to_owned()
            ))
        );
        assert_eq!(
            decide("mysql", &[("ORDID_TEST_MYSQL_URL", "mysql://m/")]),
            Ok(Policy::Use("mysql://m/".to_owned()))
        );
    }

    #[test]
    fn the_soak_starts_more_servers() {
        assert_eq!(
            decide("etcd", &[]),
            Ok(Policy::Skip(
                "cargo xtask soak starts etcd; or set ORDID_TEST_ETCD_URL to run".to_owned()
            ))
        );
        let soak = ("ORDID_TEST_SOAK", "1");
        assert_eq!(decide("etcd", &[soak]), Ok(Policy::StartPrivate));
        assert_eq!(
            decide("etcd", &[soak, ("ORDID_TEST_ETCD_URL", "http://e/")]),
            Ok(Policy::Use("http://e/".to_owned()))
        );
    }

    #[test]
    fn other_processes_skip_a_server_for_the_same_reason() {
        let skipped = Access::Skip("no mirror".to_owned());
        let (variable, value) = skipped.variable("mysql");
        assert_eq!(variable, "ORDID_TEST_MYSQL_SKIP");
        assert_eq!(
            decide("mysql", &[(&variable, &value)]),
            Ok(Policy::Skip("no mirror".to_owned()))
        );
        let (variable, value) = Access::Url("mysql://m/".to_owned()).variable("mysql");
        assert_eq!(
            decide("mysql", &[(&variable, &value)]),
            Ok(Policy::Use("mysql://m/".to_owned()))
        );
    }

    #[test]
    fn skipping_wins_over_a_url() {
        let variables = [
            ("ORDID_TEST_SKIP", "mysql, postgres,"),
            ("ORDID_TEST_POSTGRES_URL", "postgres://p/"),
        ];
        let skip = Ok(Policy::Skip("named in ORDID_TEST_SKIP".to_owned()));
        assert_eq!(decide("postgres", &variables), skip);
        assert_eq!(decide("mysql", &variables), skip);
        assert_eq!(decide("mariadb", &variables), Ok(Policy::StartPrivate));
        assert_eq!(
            decide("postgres", &variables[1..]),
            Ok(Policy::Use("postgres://p/".to_owned()))
        );
    }

    #[test]
    fn unknown_names_are_errors() {
        assert_eq!(
            decide("postgres", &[("ORDID_TEST_SKIP", "postgresql")]),
            Err(
                "ORDID_TEST_SKIP names the unknown server `postgresql`: use one of postgres, \
                 postgres_2, mariadb, mariadb_2, galera, pgbouncer, pgbouncer_2, pgpool, h2, redis, zookeeper, \
                 mysql, group_replication, mssql, oracle, etcd"
                    .to_owned()
            )
        );
        assert_eq!(
            decide("maria", &[]),
            Err(
                "unknown server `maria`: use one of postgres, postgres_2, mariadb, mariadb_2, galera, pgbouncer, \
                 pgbouncer_2, pgpool, h2, \
                 redis, zookeeper, mysql, group_replication, mssql, oracle, etcd"
                    .to_owned()
            )
        );
    }
}
