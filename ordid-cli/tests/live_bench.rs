//! Runs the program against live databases: a SQLite file, and the servers of `ordid_harness`, which are private or those
//! that `ORDID_TEST_POSTGRES_URL` and its like name. The tests of a server that there is not are counted as ignored, with
//! the reason.
//!
//! A command's tests are a module of [`live`](self); each test has a database of its own.

#[path = "live/bench.rs"]
mod bench;

use std::{
    path::Path,
    process::{Command, Output},
    sync::{
        Mutex, OnceLock,
        atomic::{AtomicU32, Ordering},
    },
};

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use sqlx::{
    AssertSqlSafe, Connection as _, MySqlConnection, PgConnection, Row as _, SqliteConnection,
};

type Result<T = ()> = std::result::Result<T, Failed>;

fn main() {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    trials.extend(bench::trials());
    libtest_mimic::run(&arguments, trials).exit();
}

/// A place where tests have databases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Sqlite,
    Postgres,
    Mariadb,
    Mysql,
}

/// All of them.
pub(crate) const PLACES: [Place; 4] =
    [Place::Sqlite, Place::Postgres, Place::Mariadb, Place::Mysql];

/// An empty database of a test.
pub(crate) struct Scratch {
    pub(crate) place: Place,
    pub(crate) url: String,
    /// The file's folder, and the program's folder for temporary files.
    pub(crate) folder: tempfile::TempDir,
}

impl Place {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
            Self::Mariadb => "mariadb",
            Self::Mysql => "mysql",
        }
    }

    /// Returns a test that runs in an empty database of this place.
    pub(crate) fn trial(self, name: &str, test: fn(&Scratch) -> Result) -> Trial {
        Trial::ignorable_test(format!("{}::{name}", self.name()), move || {
            let folder = tempfile::tempdir()?;
            let admin = match self {
                Self::Sqlite => {
                    let file = folder.path().join("mine.sqlite");
                    std::fs::File::create(&file)?;
                    let url = file.to_str().ok_or("the path is UTF-8")?.to_owned();
                    let scratch = Scratch {
                        place: self,
                        url,
                        folder,
                    };
                    return test(&scratch).map(|()| Completion::Completed);
                }
                _ => match server(self)? {
                    Ok(url) => url,
                    Err(reason) => return Ok(Completion::ignored_with(reason)),
                },
            };
            static COUNT: AtomicU32 = AtomicU32::new(0);
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let name = format!("ordid_cli_{}_{number}", std::process::id());
            query(&admin, &format!("CREATE DATABASE {name}"))?;
            let (server, _) = admin.rsplit_once('/').ok_or("the URL names a database")?;
            let scratch = Scratch {
                place: self,
                url: format!("{server}/{name}"),
                folder,
            };
            let outcome = std::panic::catch_unwind(|| test(&scratch));
            let force = if self == Self::Postgres {
                " WITH (FORCE)"
            } else {
                ""
            };
            query(&admin, &format!("DROP DATABASE {name}{force}"))?;
            match outcome {
                Ok(outcome) => outcome.map(|()| Completion::Completed),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }
}

impl Scratch {
    /// Returns the program with these arguments.
    pub(crate) fn ordid(&self, arguments: &[&str]) -> Command {
        ordid(self.folder.path(), arguments)
    }

    /// Returns the first column of what a statement returns, as texts.
    pub(crate) fn query(&self, sql: &str) -> Result<Vec<String>> {
        query(&self.url, sql)
    }
}

/// Returns the program with these arguments, whose folder for temporary files this one is.
pub(crate) fn ordid(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ordid"));
    command
        .args(arguments)
        .env_remove("DATABASE_URL")
        .env("TMPDIR", folder);
    command
}

/// Returns what the program has printed, if it was content and has said nothing else.
pub(crate) fn printed(output: &Output) -> Result<String> {
    let stderr = String::from_utf8_lossy(&output.stderr);
    if output.status.code() != Some(0) || !stderr.is_empty() {
        return Err(format!("{}: {stderr}", output.status).into());
    }
    Ok(String::from_utf8(output.stdout.clone())?)
}

/// Returns the one line with which the program has refused with this exit code.
pub(crate) fn refused(output: &Output, code: i32) -> Result<String> {
    let stderr = String::from_utf8(output.stderr.clone())?;
    let line = stderr.strip_suffix('\n').unwrap_or(&stderr);
    if output.status.code() != Some(code) || !line.starts_with("ordid: ") || line.contains('\n') {
        return Err(format!("{}, not {code} and a line: {stderr}", output.status).into());
    }
    if !output.stdout.is_empty() {
        return Err(format!("on stdout: {}", String::from_utf8_lossy(&output.stdout)).into());
    }
    Ok(line.to_owned())
}

/// Returns the administrator's URL of a server, which the first test that wants it starts, or why there is none.
fn server(place: Place) -> Result<std::result::Result<String, String>> {
    type Started = std::result::Result<ordid_harness::Access, String>;
    // The watchdogs of private servers stop them when this process has ended.
    static SERVERS: [OnceLock<Started>; 4] = [const { OnceLock::new() }; 4];
    static STARTING: Mutex<()> = Mutex::new(());

    let _turn = STARTING.lock();
    let index = PLACES
        .iter()
        .position(|it| *it == place)
        .ok_or("all places are listed")?;
    let started = SERVERS[index]
        .get_or_init(|| ordid_harness::access(place.name()).map_err(|error| error.to_string()));
    match started {
        Ok(ordid_harness::Access::Skip(reason)) => Ok(Err(reason.clone())),
        Ok(access) => Ok(Ok(access.url().ok_or("a server has a URL")?)),
        Err(error) => Err(error.as_str().into()),
    }
}

/// Executes a statement, and returns the first column of what it returns, as texts.
pub(crate) fn query(url: &str, sql: &str) -> Result<Vec<String>> {
    macro_rules! texts {
        ($connection:ty, $url:expr) => {{
            let mut connection = <$connection>::connect($url).await?;
            let rows = sqlx::query(AssertSqlSafe(sql))
                .fetch_all(&mut connection)
                .await?;
            let texts = rows
                .iter()
                .map(|row| row.try_get(0))
                .collect::<std::result::Result<_, _>>()?;
            connection.close().await?;
            Ok(texts)
        }};
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        match url.split_once(':').map(|(scheme, _)| scheme) {
            Some("postgres") => texts!(PgConnection, url),
            Some("mysql") => texts!(MySqlConnection, url),
            _ => texts!(SqliteConnection, &format!("sqlite:{url}")),
        }
    })
}
