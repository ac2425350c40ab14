//! Servers, databases of a test's own, and runs of the command.

use std::{
    process::{Command, Output, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use libtest_mimic::{Completion, Failed, Trial};
use ordid_harness::Access;
use sqlx::{AssertSqlSafe, Connection as _, MySqlConnection, PgConnection};

pub(crate) type Result<T = ()> = std::result::Result<T, Failed>;

/// The servers of the tests.
#[derive(Clone)]
pub(crate) struct Servers(Option<Arc<[(&'static str, Access); 3]>>);

impl Servers {
    /// Finds or starts them, unless the tests are only listed.
    pub(crate) fn find(wanted: bool) -> Self {
        let find = |name| (name, ordid_harness::access(name).expect("a server"));
        Self(wanted.then(|| Arc::new(["postgres", "mariadb", "mysql"].map(find))))
    }

    /// Returns a server's address, or why its tests are ignored.
    pub(crate) fn url(&self, name: &str) -> std::result::Result<String, String> {
        let all = self.0.as_deref().ok_or("only listed")?;
        match all.iter().find(|(known, _)| *known == name) {
            Some((_, Access::Skip(reason))) => Err(reason.clone()),
            Some((_, access)) => access.url().ok_or_else(|| "no address".to_owned()),
            None => Err(format!("no server is called {name}")),
        }
    }

    /// Returns a test on a database of its own, which gets the address of it.
    pub(crate) fn trial(
        &self,
        server: &'static str,
        name: &str,
        test: fn(&str) -> Result,
    ) -> Trial {
        let url = self.url(server);
        Trial::ignorable_test(format!("{name} [{server}]"), move || {
            let url = match url {
                Ok(url) => url,
                Err(reason) => return Ok(Completion::ignored_with(reason)),
            };
            let scratch = Scratch::new(&url)?;
            let outcome = test(&scratch.url);
            scratch.drop()?;
            outcome.map(|()| Completion::Completed)
        })
    }
}

/// A database of a test's own.
struct Scratch {
    admin: String,
    name: String,
    url: String,
}

impl Scratch {
    fn new(admin: &str) -> Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("ordid_cli_{}_{number}", std::process::id());
        execute(admin, &format!("CREATE DATABASE {name}"))?;
        let (server, parameters) = admin.split_once('?').unwrap_or((admin, ""));
        let (server, _) = server
            .rsplit_once('/')
            .ok_or("an address without a database")?;
        let question = if parameters.is_empty() { "" } else { "?" };
        Ok(Self {
            admin: admin.to_owned(),
            url: format!("{server}/{name}{question}{parameters}"),
            name,
        })
    }

    fn drop(self) -> Result {
        let force = match self.admin.starts_with("postgres") {
            true => " WITH (FORCE)",
            false => "",
        };
        execute(&self.admin, &format!("DROP DATABASE {}{force}", self.name))
    }
}

/// Waits for a future.
pub(crate) fn block_on<T>(
    future: impl Future<Output = std::result::Result<T, sqlx::Error>>,
) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    Ok(runtime.block_on(future)?)
}

/// Sends a script to PostgreSQL, MySQL or MariaDB.
pub(crate) fn execute(url: &str, sql: &str) -> Result {
    block_on(async {
        if url.starts_with("postgres") {
            let mut connection = PgConnection::connect(url).await?;
            sqlx::raw_sql(AssertSqlSafe(sql))
                .execute(&mut connection)
                .await?;
            connection.close().await
        } else {
            let mut connection = MySqlConnection::connect(url).await?;
            sqlx::raw_sql(AssertSqlSafe(sql))
                .execute(&mut connection)
                .await?;
            connection.close().await
        }
    })
}

/// Runs the command.
pub(crate) fn ordid(arguments: &[&str]) -> Result<Output> {
    Ok(Command::new(env!("CARGO_BIN_EXE_ordid"))
        .args(arguments)
        .env_remove("DATABASE_URL")
        .stdin(Stdio::null())
        .output()?)
}

/// Runs the command and returns what it prints; its exit code has to be this one.
pub(crate) fn printed(arguments: &[&str], code: i32) -> Result<String> {
    let output = ordid(arguments)?;
    let stderr = String::from_utf8(output.stderr)?;
    if output.status.code() != Some(code) {
        let stdout = String::from_utf8(output.stdout)?;
        return Err(format!("{}: {stderr}{stdout}", output.status).into());
    }
    if !stderr.is_empty() {
        return Err(format!("on stderr: {stderr}").into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Runs the command, which has to fail with this exit code, and returns its one line on stderr.
pub(crate) fn refused(arguments: &[&str], code: i32) -> Result<String> {
    let output = ordid(arguments)?;
    let stderr = String::from_utf8(output.stderr)?;
    let line = stderr.strip_suffix('\n').unwrap_or(&stderr);
    let stdout = String::from_utf8(output.stdout)?;
    // `apply` has a line for each step that is done before it fails.
    let is_printed = match arguments.first() {
        Some(&"apply") => stdout.lines().all(is_step),
        _ => stdout.is_empty(),
    };
    let is_right = output.status.code() == Some(code)
        && is_printed
        && line.starts_with("ordid: ")
        && !line.contains('\n');
    match is_right {
        true => Ok(line.to_owned()),
        false => Err(format!("{}: {stderr}", output.status).into()),
    }
}

/// Whether a line is that of a step that is done: a name, seconds, and perhaps a column.
pub(crate) fn is_step(line: &str) -> bool {
    let mut words = line.split_whitespace().skip(1);
    let seconds = words.next().and_then(|it| it.parse::<f64>().ok());
    seconds.is_some() && words.next() == Some("s")
}
