//! `ordid bench`: what keys cost on the user's own engine.
//!
//! Each round loads a table for each kind of key, one after the other, reads from it and removes it. Rounds begin with
//! another key each, so that the order does not decide. Keys come from a simulated clock, one a millisecond.
//!
//! # JSON
//!
//! One document: `engine`, `rows`, `width` (bytes of a row beside its key), `batch` (rows a statement), `rounds`,
//! `cache_bytes`, `written_to`, `keys`, `forms`, `facts`. Each of `keys` has `key`, `sql_type`, `is_ordered`,
//! `rows_per_second`, `growth` (of `rows`, `rows_per_second`), `bytes`, `index_bytes`, `bytes_per_row`,
//! `page_fill_percent`, `written_bytes_per_row` and `reads` (`random_per_second`, `newest_per_second`,
//! `spans_per_second`). Each of `forms` has `form`, `sort_ns` and `compare_ns`. A measurement is an object of `median`,
//! `min` and `max` over the rounds; what the engine does not tell is `null`.

use std::path::PathBuf;

use clap::Args;

use crate::{
    database::{Access, Database},
    engine::Engine,
    failure::{Failure, Outcome},
    interrupt::{self, Interrupt},
    output::Output,
    progress::Progress,
    report::Report,
    scheme::{Known, bench_names},
};
use document::Document;
use key::Key;
use measure::{Load, Loader, Plan};
use session::Session;

mod document;
mod figures;
mod forms;
mod html;
mod key;
mod measure;
mod sample;
mod session;
mod spread;

/// The begin of the names of all tables.
const PREFIX: &str = "ordid_bench_";

/// How many keys are sorted and compared, at most.
const FORMS: u32 = 200_000;

/// Arguments of `ordid bench`.
#[derive(Debug, Args)]
#[command(after_help = "\
Tables are named ordid_bench_.. and exist one at a time. The command refuses to start if there is such a table, and \
removes its own at the end and after Ctrl-C. A run that was killed leaves one table, which DROP TABLE removes; without \
a URL it leaves a folder ordid-bench-.. in the folder for temporary files. DATABASE_URL is not read, so that nothing is \
loaded into a database by mistake.")]
pub(crate) struct Arguments {
    /// postgres://.., mysql://.., mariadb://.., sqlite://.. or the path of a SQLite file that exists; a private SQLite file if left out
    url: Option<String>,
    /// The rows of each table, from 1,000
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1000..=100_000_000))]
    rows: u32,
    /// The bytes of a row beside its key
    #[arg(long, value_name = "BYTES", default_value_t = 100, value_parser = clap::value_parser!(u32).range(0..=60_000))]
    width: u32,
    /// The keys, with commas between them: `auto`, `SCHEME` or `SCHEME:COLUMN`, such as auto,uuid_v7,uuid_v4:text
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = Known(bench_names), hide_possible_values = true)]
    keys: Vec<String>,
    /// How often each table is loaded
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Write a report into this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

impl Arguments {
    /// Runs the bench.
    ///
    /// # Errors
    ///
    /// A key is unknown, the database refuses, there are tables of the bench's names, or it was interrupted.
    pub(crate) fn run(self, output: &mut Output) -> Result<Outcome, Failure> {
        if let Some(path) = &self.html {
            Report::check_path(path)?;
        }
        let document = interrupt::run(|interrupt| self.measure(interrupt))?;
        match output.is_json() {
            true => output.json(&document)?,
            false => document.print(output)?,
        }
        if let Some(path) = &self.html {
            html::report(&document).write(path)?;
        }
        Ok(Outcome::Fine)
    }

    async fn measure(&self, interrupt: Interrupt) -> Result<Document, Failure> {
        // Removed at the end of this function, however it ends.
        let private = match &self.url {
            Some(_) => None,
            None => Some(private_file()?),
        };
        let url = match (&self.url, &private) {
            (Some(url), _) => url.as_str(),
            (None, Some((_, file))) => file.as_str(),
            (None, None) => unreachable!("without a URL there is a file"),
        };
        let database = Database::connect(url, Access::Write).await?;
        let mut session = Session::of(&database).await?;
        let keys = self.keys(session.engine())?;
        if private.is_some() {
            session
                .run("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL")
                .await?;
        }
        refuse_tables(&mut session).await?;

        let done = self.rounds(&mut session, &keys, &interrupt).await;
        let loads = match done {
            Ok(loads) => loads,
            Err((failure, None)) => return Err(failure),
            Err((failure, Some(table))) => {
                // The connection may be what has failed.
                let removed = match session.drop(&table).await {
                    Ok(()) => Ok(()),
                    Err(_) => match Session::of(&database).await {
                        Ok(mut session) => session.drop(&table).await.map_err(Failure::from),
                        Err(failure) => Err(failure),
                    },
                };
                return Err(ended(failure, &table, removed));
            }
        };
        let mut facts = vec![];
        if private.is_some() {
            let folder = std::env::temp_dir();
            facts.push((
                "database".to_owned(),
                format!("a private file in {}", folder.display()),
            ));
        }
        if session.engine() == Engine::Sqlite {
            let tables = match session::is_long_for_sqlite(self.width) {
                true => "with row ids and an index of the key, as rows are long",
                false => "WITHOUT ROWID, as rows are short",
            };
            facts.push(("tables".to_owned(), tables.to_owned()));
        }
        facts.extend(figures::settings(&mut session).await?);
        facts.extend(crate::machine::facts());
        facts.push((
            "measured".to_owned(),
            jiff::Zoned::now().strftime("%Y-%m-%d %H:%M %z").to_string(),
        ));
        let cache = figures::cache_bytes(&mut session).await;
        let engine = session.engine();
        drop(session);
        let plan = self.plan();
        let forms = usize::try_from(plan.rows.min(FORMS)).expect("32 bits fit");
        let forms = tokio::task::block_in_place(|| forms::measure(forms, &interrupt))?;
        Ok(Document::new(
            engine, plan, cache, &keys, &loads, forms, facts,
        ))
    }

    fn plan(&self) -> Plan {
        Plan::new(self.rows, self.width, self.rounds)
    }

    fn keys(&self, engine: Engine) -> Result<Vec<Key>, Failure> {
        if self.keys.is_empty() {
            return Key::defaults(engine);
        }
        let mut keys: Vec<Key> = Vec::new();
        for name in &self.keys {
            let key = Key::parse(name.trim(), engine)?;
            if keys.iter().any(|known| known.name == key.name) {
                return Err(Failure::wrong(format_args!(
                    "the key {} is listed twice",
                    key.name
                )));
            }
            keys.push(key);
        }
        Ok(keys)
    }

    /// Returns the loads of each key. A failure comes with the table that may be left.
    async fn rounds(
        &self,
        session: &mut Session,
        keys: &[Key],
        interrupt: &Interrupt,
    ) -> Result<Vec<Vec<Load>>, (Failure, Option<String>)> {
        let loader = Loader::new(self.plan());
        let count = u64::try_from(keys.len()).unwrap_or(u64::MAX);
        let steps = u64::from(self.rows) * u64::from(self.rounds) * count;
        let mut progress = Progress::new("rows", steps);
        let mut loads = vec![Vec::new(); keys.len()];
        for round in 0..usize::try_from(self.rounds).expect("32 bits fit") {
            for turn in 0..keys.len() {
                let place = place(round, turn, keys.len());
                let key = &keys[place];
                if interrupt.is_set() {
                    return Err((Failure::could_not("interrupted"), None));
                }
                progress.say(&key.name);
                // A table that somebody else has made meanwhile is not ours to remove.
                session
                    .create(key, self.width)
                    .await
                    .map_err(|error| (error.into(), None))?;
                let left = |failure| (failure, Some(key.table()));
                let load = loader.load(session, key, interrupt, &mut progress).await;
                loads[place].push(load.map_err(left)?);
                session
                    .drop(&key.table())
                    .await
                    .map_err(|error| left(error.into()))?;
            }
        }
        progress.finish();
        Ok(loads)
    }
}

/// Returns which key has its turn: each round starts with another one, and every second one runs backwards, so that no
/// key always follows the same one.
fn place(round: usize, turn: usize, keys: usize) -> usize {
    let place = (turn + round / 2) % keys;
    match round % 2 {
        0 => place,
        _ => keys - 1 - place,
    }
}

/// Makes an empty file that only this run knows.
fn private_file() -> Result<(tempfile::TempDir, String), Failure> {
    let cannot = |error: std::io::Error| {
        Failure::could_not(format_args!(
            "cannot make a file for a private database: {error}"
        ))
    };
    let folder = tempfile::Builder::new()
        .prefix("ordid-bench-")
        .tempdir()
        .map_err(cannot)?;
    let file = folder.path().join("bench.sqlite");
    std::fs::File::create(&file).map_err(cannot)?;
    let file = file.to_str().ok_or_else(|| {
        Failure::could_not(
            "the folder for temporary files has a name that is not UTF-8: set TMPDIR",
        )
    })?;
    let file = file.to_owned();
    Ok((folder, file))
}

/// Refuses to run if a table has a name that the bench would use.
async fn refuse_tables(session: &mut Session) -> Result<(), Failure> {
    let tables = session.tables().await?;
    let Some(first) = tables.first() else {
        return Ok(());
    };
    Err(Failure::could_not(format_args!(
        "the database has the table {}, and names that begin with {PREFIX} are the bench's own: if a run was killed, remove \
         what it has left by DROP TABLE {first}",
        tables.join(", ")
    )))
}

/// Returns the failure with what has become of the table.
fn ended(failure: Failure, table: &str, removed: Result<(), Failure>) -> Failure {
    let (Failure::WrongUse(message) | Failure::CouldNot(message)) = &failure else {
        return failure;
    };
    match removed {
        Ok(()) => Failure::could_not(format_args!("{message}; the bench's table is removed")),
        Err(_) => Failure::could_not(format_args!(
            "{message}; the table {table} may be left: remove it by DROP TABLE {table}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_round_loads_every_key_once_and_starts_with_another_one() {
        for keys in 1..10 {
            let mut firsts = Vec::new();
            for round in 0..4 {
                let mut places: Vec<_> = (0..keys).map(|turn| place(round, turn, keys)).collect();
                firsts.push(places[0]);
                places.sort_unstable();
                assert_eq!(places, (0..keys).collect::<Vec<_>>());
            }
            assert!(keys == 1 || firsts[0] != firsts[1], "{firsts:?}");
        }
    }

    #[test]
    fn a_failure_says_what_has_become_of_the_table() {
        let message = |removed| match ended(
            Failure::could_not("interrupted"),
            "ordid_bench_auto",
            removed,
        ) {
            Failure::CouldNot(message) => message,
            other => panic!("{other:?}"),
        };
        assert_eq!(message(Ok(())), "interrupted; the bench's table is removed");
        assert_eq!(
            message(Err(Failure::could_not("gone"))),
            "interrupted; the table ordid_bench_auto may be left: remove it by DROP TABLE ordid_bench_auto"
        );
    }
}
