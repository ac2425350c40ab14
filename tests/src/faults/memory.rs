//! How much memory a flush takes: its rows are there, and no second copy of them.

use std::{fs, str::FromStr};

use libtest_mimic::Trial;
use ordid_sqlx::Retry;
use sqlx::{ConnectOptions as _, Sqlite};

use super::{
    Engine, Flusher, Library, PATIENCE, Site,
    kill::{Process, Program, ended, say},
    limits, on_file, on_server,
};
use crate::{
    servers::{Options, Servers},
    trials::{self, Outcome},
};

const NAME: &str = "memory::a_flush_holds_its_rows_and_two_chunks";
const MB: u64 = 1 << 20;
/// Of 400 kB each. With fewer, the buffers that `mysql_async` keeps, 40 MB and no more, would count.
const GRAPHS: u32 = 500;
/// How long the labels of a graph's orders are.
const LABELS: [usize; 20] = [20_000; 20];
/// A chunk ends behind the row that makes it longer than 1 MB.
const TWO_CHUNKS: u64 = 4 * MB;

/// Adds the tests of a library, whose program does as [`kill::run`](super::kill::run) does.
pub fn trials<L: Library>(servers: &Servers, trials: &mut Vec<Trial>, program: Program) {
    if !cfg!(target_os = "linux") {
        let reason = "how much memory a process had is asked of Linux only".to_owned();
        trials.push(trials::ignored(NAME, reason));
        return;
    }
    on_server::<L::Postgres, _, _>(trials, servers, "postgres", NAME, async move |site| {
        site.execute("ALTER TABLE orders DROP CONSTRAINT orders_label_key, ALTER label TYPE text")
            .await?;
        measured(&site, program)
    });
    for server in ["mariadb", "mysql"] {
        on_server::<L::MySql, _, _>(trials, servers, server, NAME, async move |site| {
            site.execute("ALTER TABLE orders DROP INDEX label, MODIFY label LONGTEXT NOT NULL")
                .await?;
            measured(&site, program)
        });
    }
    on_files::<L::Sqlite>(trials, program);
}

/// Adds that of SQLite, where the database itself is in the process.
pub fn on_files<W: Flusher<Database = Sqlite>>(trials: &mut Vec<Trial>, program: Program) {
    if cfg!(target_os = "linux") {
        on_file::<W, _, _>(trials, NAME, async move |site| {
            // Without the index of the labels.
            let [_, orders, items, _] = Sqlite::tables();
            let orders = orders.replace("UNIQUE", "");
            site.execute(&format!(
                "DROP TABLE items; DROP TABLE orders; {orders}; {items}"
            ))
            .await?;
            measured(&site, program)
        });
    }
}

/// A process of its own has no memory but its own.
fn measured<DB: Engine>(site: &Site<DB>, program: Program) -> Outcome {
    let url = site.options().to_url_lossy().to_string();
    let mut process = Process::start(program(), &[&url, "large"])?;
    process.go()?;
    assert_eq!(process.hear()?, "committed");
    let taken: u64 = process.hear()?.parse()?;
    let rows = u64::from(GRAPHS) * LABELS.iter().sum::<usize>() as u64;
    eprintln!("{taken} bytes for rows of {rows}");
    // Less would say that it was not measured.
    assert!(taken > rows, "{taken} bytes");
    assert!(taken < rows * 13 / 10 + TWO_CHUNKS, "{taken} bytes");
    Ok(())
}

/// Flushes many large rows when it is told to, and says how much memory rows and flush took at most.
pub(super) async fn run<W: Flusher>(options: &Options<W::Database>) -> Outcome
where
    Options<W::Database>: FromStr<Err = sqlx::Error>,
{
    let before = memory("VmRSS:")?;
    let mut work = W::begin(Retry::NONE);
    // The unit of work takes copies, so each graph is small.
    for unit in 0..GRAPHS {
        work.add_graph(&limits::with_labels(unit, &LABELS));
    }
    say("ready")?;
    std::io::stdin().read_line(&mut String::new())?;
    let outcome = work.flush_to(options, PATIENCE).await;
    say(&ended(&outcome))?;
    Ok(say(&(memory("VmHWM:")? - before).to_string())?)
}

/// Reads a number of bytes that Linux says of this process.
fn memory(name: &str) -> Outcome<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|it| it.split_whitespace().next());
    Ok(number.ok_or("Linux says no memory")?.parse::<u64>()? * 1024)
}
