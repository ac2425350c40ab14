//! Servers whose messages are German. What an error means must not follow from its words, which some libraries have
//! in the place of a code.

use std::{
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use libtest_mimic::Trial;
use ordid_sqlx::{Flushed, Retry};
use sqlx::{Connection as _, MySql, mysql::MySqlConnection};

use super::{
    Engine as _, Failed, Flusher, Found, Graph, Library, PATIENCE, Served, Shape, Site, cut::EAGER,
};
use crate::{
    servers::{Options, Scratch as _, Servers},
    trials::{Outcome, ignored, run},
};

const NAME: &str = "language::errors_in_german_mean_what_they_mean_in_english";

/// Where Debian has the messages of PostgreSQL.
const MESSAGES: &str = "/usr/share/locale/de/LC_MESSAGES";

/// The first rows that are sent are refused once. What counts is not rolled back.
const POSTGRES_REFUSES: &str = "\
    CREATE SEQUENCE tries; \
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN \
    IF nextval('tries') = 1 THEN RAISE 'kann Zugriff nicht serialisieren' USING ERRCODE = '40001'; END IF; \
    RETURN NULL; END$$; \
    CREATE TRIGGER refuse AFTER INSERT ON customers EXECUTE FUNCTION refuse()";

const MYSQL_REFUSES: [&str; 3] = [
    "CREATE TABLE tries (tries INT NOT NULL) ENGINE=MyISAM",
    "INSERT INTO tries VALUES (0)",
    "CREATE TRIGGER refuse BEFORE INSERT ON customers FOR EACH ROW BEGIN \
     UPDATE tries SET tries = tries + 1; \
     IF (SELECT tries FROM tries) = 1 THEN SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213, \
     MESSAGE_TEXT = 'Beim Versuch, eine Sperre anzufordern, ist ein Deadlock aufgetreten'; END IF; END",
];

/// The session ends itself at COMMIT.
const POSTGRES_ENDS: &str = "\
    CREATE FUNCTION ends() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN \
    PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END$$; \
    CREATE CONSTRAINT TRIGGER ends AFTER INSERT ON customers DEFERRABLE INITIALLY DEFERRED \
    FOR EACH ROW EXECUTE FUNCTION ends()";

/// Adds the tests of a library.
pub fn trials<L: Library>(servers: &Servers, trials: &mut Vec<Trial>) {
    let are_there = std::fs::read_dir(MESSAGES).is_ok_and(|files| {
        let names = files.flatten().map(|file| file.file_name());
        names
            .into_iter()
            .any(|name| name.to_string_lossy().starts_with("postgres-"))
    });
    if are_there {
        on_own_german::<L::Postgres, _, _>(trials, servers, "postgres", async |site| {
            taken::<L::Postgres>(&site).await?;
            site.execute(POSTGRES_REFUSES).await?;
            refused_once::<L::Postgres>(&site).await?;
            site.execute(POSTGRES_ENDS).await?;
            let graph = Graph::new(9, Shape::SMALL);
            let mut work = L::Postgres::of(&graph, Retry::NONE);
            let outcome = work.flush_to(site.options(), PATIENCE).await;
            site.execute("DROP TRIGGER ends ON customers").await?;
            interrupted(&site, &graph, work, outcome).await
        });
    } else {
        let name = format!("postgres::{}{NAME}", L::Postgres::PREFIX);
        trials.push(ignored(
            name,
            format!("no messages of PostgreSQL in {MESSAGES}"),
        ));
    }
    for server in ["mariadb", "mysql"] {
        on_own_german::<L::MySql, _, _>(trials, servers, server, async move |site| {
            taken::<L::MySql>(&site).await?;
            for sql in MYSQL_REFUSES {
                site.execute(sql).await?;
            }
            refused_once::<L::MySql>(&site).await?;
            killed::<L::MySql>(&site, server == "mysql").await
        });
    }
}

/// Adds a test with a German server of its own.
fn on_own_german<W, T, F>(trials: &mut Vec<Trial>, servers: &Servers, server: &'static str, test: T)
where
    W: Flusher<Database: Served>,
    T: FnOnce(Site<W::Database>) -> F + Send + 'static,
    F: Future<Output = Outcome>,
{
    let name = format!("{server}::{}{NAME}", W::PREFIX);
    trials.push(match servers.url(server) {
        Err(reason) => ignored(name, reason),
        Ok(_) => Trial::test(name, move || {
            run(async || {
                let german = ordid_harness::german(server)?;
                let (pool, _) = W::Database::scratch(&german.url()).await?;
                let options = (*pool.connect_options()).clone();
                // Its connections would count as sessions.
                pool.close().await;
                test(Site::create(options).await?).await
            })
        }),
    });
}

/// A label that is taken, by another row. The error names the key, and not the value.
async fn taken<W: Flusher>(site: &Site<W::Database>) -> Outcome {
    let mut earlier = Graph::new(0, Shape::SMALL);
    let graph = Graph::new(1, Shape::SMALL);
    earlier.orders[1].label.clone_from(&graph.orders[2].label);
    let mut work = W::of(&earlier, Retry::NONE);
    work.flush_to(site.options(), PATIENCE).await?;
    let mut work = W::of(&graph, EAGER);
    let outcome = work.flush_to(site.options(), PATIENCE).await;
    assert_eq!(site.judge(&graph, &work, &outcome).await?, Found::None);
    let error = outcome.expect_err("the label is taken");
    let says = |what: &str| error.message.contains(what);
    assert!(says("oppelter"), "it is not in German: {error}");
    assert!(error.is_unique_violation && error.retries == 0, "{error}");
    assert!(says("label") && !says(&graph.orders[2].label), "{error}");
    assert_eq!(error.table.as_deref(), Some("orders"));
    // Items follow, which refer to the orders.
    assert_eq!(error.row.key, Some(graph.orders[2].id.to_string()));
    Ok(())
}

/// A row is refused as not serializable, and not the next time.
async fn refused_once<W: Flusher>(site: &Site<W::Database>) -> Outcome {
    let graph = Graph::new(2, Shape::SMALL);
    let mut work = W::of(&graph, EAGER);
    let outcome = work.flush_to(site.options(), PATIENCE).await;
    assert_eq!(site.judge(&graph, &work, &outcome).await?, Found::All);
    assert_eq!(outcome?.retries, 1);
    Ok(())
}

/// The session is killed while its COMMIT waits for a lock. MySQL gives the COMMIT up.
async fn killed<W: Flusher<Database = MySql>>(site: &Site<MySql>, gives_up: bool) -> Outcome {
    let graph = Graph::new(3, Shape::SMALL);
    let mut work = W::of(&graph, Retry::NONE);
    let options = site.options().clone();
    let (is_over, over) = mpsc::channel();
    work.tell(move |progress| {
        if progress.done == progress.total {
            let (options, is_over) = (options.clone(), is_over.clone());
            let (is_locked, locked) = mpsc::channel();
            thread::spawn(move || is_over.send(lock_and_kill(options, gives_up, &is_locked)));
            let _ = locked.recv();
        }
    });
    let outcome = work.flush_to(site.options(), PATIENCE).await;
    over.recv()??;
    work.tell(|_| ());
    if outcome.is_ok() && !gives_up {
        // MariaDB carries the COMMIT out, and answers.
        assert_eq!(site.judge(&graph, &work, &outcome).await?, Found::All);
        return Ok(());
    }
    interrupted(site, &graph, work, outcome).await
}

/// Holds COMMITs back, and kills the first. If it is given up, that is waited for, as it could go on without the lock.
fn lock_and_kill(options: Options<MySql>, gives_up: bool, is_locked: &mpsc::Sender<()>) -> Outcome {
    const WAITING: &str =
        "SELECT CAST(id AS SIGNED) FROM information_schema.processlist WHERE info LIKE 'COMMIT%'";

    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let site = Site::<MySql>::open(options);
        let mut holder = MySqlConnection::connect_with(site.options()).await?;
        MySql::execute_sql(&mut holder, "SET SESSION lock_wait_timeout = 20").await?;
        MySql::execute_sql(&mut holder, "FLUSH TABLES WITH READ LOCK").await?;
        is_locked.send(())?;
        let deadline = Instant::now() + PATIENCE;
        let session = loop {
            if let [session, ..] = site.numbers(WAITING).await?[..] {
                break session;
            }
            if Instant::now() > deadline {
                return Err("no COMMIT waits".into());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        site.execute(&format!("KILL {session}")).await?;
        while gives_up && site.numbers(WAITING).await?.contains(&session) {
            if Instant::now() > deadline {
                return Err("the COMMIT that was killed waits on".into());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(holder.close().await?)
    })
}

/// Nobody knows what became of the COMMIT but the database, which is asked.
async fn interrupted<W: Flusher<Database: Served>>(
    site: &Site<W::Database>,
    graph: &Graph,
    mut work: W,
    outcome: Result<Flushed, Failed>,
) -> Outcome {
    site.settle().await?;
    site.judge(graph, &work, &outcome).await?;
    let error = outcome.expect_err("the session has ended");
    assert!(error.is_connection_lost, "{error}");
    site.flush_again(graph, &mut work).await
}
