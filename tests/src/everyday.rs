//! What applications do every day beside inserts, over every library, on PostgreSQL, MariaDB and SQLite: rows that have
//! changed since they were read, keys of several columns, and rows that may be there already.

mod chunks;
mod returned;
mod upserts;

use std::{future::Future, time::Duration};

use libtest_mimic::Trial;
use ordid::{Assigned, KeyType as _, uuid::Uuid};
use ordid_sqlx::{Backend, ChunkLimits, Flushed, Upserted, flushes_table};
use sqlx::{AssertSqlSafe, MySql, Pool, Postgres, Sqlite, query_as, query_scalar, raw_sql};

use crate::{
    faults::{Failed, Remote},
    proxy::{At, Fault, Proxy},
    servers::{Client, Scratch, Servers},
    trials::{Outcome, on_scratch, over_sqlite, run, sqlite_file},
};

/// A row that has a version.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Note {
    /// The key.
    pub id: Uuid,
    /// The text.
    pub title: String,
    /// How often it was changed.
    pub version: i64,
    /// A number.
    pub stars: i64,
}

/// A row whose key has two columns, one of which is another row's key.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Mark {
    /// The note that it is on.
    pub note: Uuid,
    /// Its number on that note.
    pub number: i32,
    /// The text.
    pub title: String,
    /// A number.
    pub stars: i64,
}

/// A row that may be there already, by its key or by its mail address.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Person {
    /// The key.
    pub id: Uuid,
    /// The mail address, of which each is there once.
    pub mail: Option<String>,
    /// The name.
    pub name: String,
    /// A number.
    pub visits: i64,
}

/// A row with columns that the database fills.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Receipt {
    /// The key.
    pub id: Uuid,
    /// A number.
    pub stars: i64,
    /// A number that the database chooses.
    pub luck: i64,
    /// Twice the stars.
    pub doubled: i64,
    /// Something about many stars.
    pub remark: Option<String>,
}

/// The values of a receipt that a flush fills.
#[derive(Debug, Clone)]
pub struct Filled {
    /// A number that the database chooses.
    pub luck: Assigned<i64>,
    /// Twice the stars.
    pub doubled: Assigned<i64>,
    /// Something about many stars.
    pub remark: Assigned<Option<String>>,
}

/// What is done with a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Take {
    /// The person is inserted, or all columns are written where the key is there.
    Upsert,
    /// The person is inserted, or left alone where the key is there.
    Ignore,
    /// The person is inserted, or the name is written where the mail address is there.
    NameByMail,
    /// The person is inserted, or the name and the mail address are written where the mail address is there.
    NameAndMailByMail,
    /// The person is inserted, or left alone where the mail address is there.
    IgnoreByMail,
    /// As [`Upsert`](Self::Upsert), and the flush need not say which.
    UpsertUnreported,
    /// As [`Ignore`](Self::Ignore), and the flush need not say which.
    IgnoreUnreported,
}

/// What is done with a row.
#[derive(Debug, Clone, Copy)]
pub enum Change {
    /// It is inserted.
    Add,
    /// All columns are updated.
    Update,
    /// Its stars are updated.
    UpdateStars,
    /// It was read with one star less, and what has changed since is updated.
    UpdateChanged,
    /// It is deleted.
    Delete,
    /// It is inserted, or updated if it is there.
    Upsert,
    /// It is inserted, or left alone if it is there.
    Ignore,
}

/// A database that the rows are in.
pub trait Engine: Backend + Client + Sized {
    /// The column type of a key.
    const KEY: &'static str;

    /// Writes a key in SQL.
    fn literal(key: Uuid) -> String;

    /// Executes SQL without parameters.
    fn execute_sql(pool: &Pool<Self>, sql: String) -> impl Future<Output = Outcome> + Send;

    /// The SQL of a default that is a random number for each row.
    const RANDOM: &'static str;

    /// Reads all receipts.
    fn receipts(pool: &Pool<Self>) -> impl Future<Output = Outcome<Vec<Receipt>>> + Send;

    /// Reads all notes.
    fn notes(pool: &Pool<Self>) -> impl Future<Output = Outcome<Vec<Note>>> + Send;

    /// Reads all people.
    fn people(pool: &Pool<Self>) -> impl Future<Output = Outcome<Vec<Person>>> + Send;

    /// Counts the rows of a table.
    fn count(pool: &Pool<Self>, table: &str) -> impl Future<Output = Outcome<i64>> + Send;

    /// Reads all marks.
    fn marks(pool: &Pool<Self>) -> impl Future<Output = Outcome<Vec<Mark>>> + Send;
}

macro_rules! engine {
    ($database:ty, $key:literal, $before:literal, $behind:literal, $random:literal) => {
        impl Engine for $database {
            const KEY: &'static str = $key;
            const RANDOM: &'static str = $random;

            fn literal(key: Uuid) -> String {
                format!(concat!($before, "{}", $behind), key.simple())
            }

            async fn execute_sql(pool: &Pool<Self>, sql: String) -> Outcome {
                raw_sql(AssertSqlSafe(sql)).execute(pool).await?;
                Ok(())
            }

            async fn receipts(pool: &Pool<Self>) -> Outcome<Vec<Receipt>> {
                let receipts =
                    query_as("SELECT id, stars, luck, doubled, remark FROM receipts ORDER BY id");
                Ok(receipts.fetch_all(pool).await?)
            }

            async fn notes(pool: &Pool<Self>) -> Outcome<Vec<Note>> {
                let notes = query_as("SELECT id, title, version, stars FROM notes ORDER BY id");
                Ok(notes.fetch_all(pool).await?)
            }

            async fn people(pool: &Pool<Self>) -> Outcome<Vec<Person>> {
                let people = query_as("SELECT id, mail, name, visits FROM people ORDER BY id");
                Ok(people.fetch_all(pool).await?)
            }

            async fn count(pool: &Pool<Self>, table: &str) -> Outcome<i64> {
                let count = AssertSqlSafe(format!("SELECT COUNT(*) FROM {table}"));
                Ok(query_scalar(count).fetch_one(pool).await?)
            }

            async fn marks(pool: &Pool<Self>) -> Outcome<Vec<Mark>> {
                let marks =
                    query_as("SELECT note, number, title, stars FROM marks ORDER BY note, number");
                Ok(marks.fetch_all(pool).await?)
            }
        }
    };
}

engine!(
    Postgres,
    "UUID",
    "'",
    "'",
    "(floor(random() * 1000000000)::bigint)"
);
engine!(
    MySql,
    "BINARY(16)",
    "X'",
    "'",
    "(FLOOR(RAND() * 1000000000))"
);
engine!(Sqlite, "BLOB", "X'", "'", "(abs(random()) % 1000000000)");

/// A library's unit of work.
pub trait EverydayWork: Sized + 'static {
    /// The database, as it is looked into.
    type Database: Engine;

    /// What the names of its tests begin with.
    const PREFIX: &'static str;

    /// Makes an empty one.
    fn begin() -> Self;

    /// Makes it write its rows in chunks.
    #[must_use]
    fn in_chunks(self, limits: ChunkLimits) -> Self;

    /// Adds a change of a note.
    fn note(&mut self, change: Change, note: &Note);

    /// Adds a change of a mark.
    fn mark(&mut self, change: Change, mark: &Mark);

    /// Adds a change of a receipt, and returns the values that the flush will fill.
    fn receipt(&mut self, change: Change, id: Uuid, stars: i64) -> Filled;

    /// Adds a person.
    fn person(&mut self, take: Take, person: &Person);

    /// Returns what became of a person, by the key that it was given.
    fn became(flushed: &Flushed, person: Uuid) -> Option<Upserted>;

    /// Flushes to the database that this pool is of.
    fn flush(
        &mut self,
        pool: &Pool<Self::Database>,
    ) -> impl Future<Output = Result<Flushed, Failed>>;

    /// Flushes changes of notes.
    fn flushed<'n>(
        changes: impl IntoIterator<Item = (Change, &'n Note)>,
        pool: &Pool<Self::Database>,
    ) -> impl Future<Output = Result<Flushed, Failed>> {
        let mut work = Self::begin();
        for (change, note) in changes {
            work.note(change, note);
        }
        async move { work.flush(pool).await }
    }

    /// Flushes people.
    fn taken<'p>(
        take: Take,
        people: impl IntoIterator<Item = &'p Person>,
        pool: &Pool<Self::Database>,
    ) -> impl Future<Output = Result<Flushed, Failed>> {
        let mut work = Self::begin();
        for person in people {
            work.person(take, person);
        }
        async move { work.flush(pool).await }
    }

    /// Flushes changes of marks.
    fn marked<'m>(
        changes: impl IntoIterator<Item = (Change, &'m Mark)>,
        pool: &Pool<Self::Database>,
    ) -> impl Future<Output = Result<Flushed, Failed>> {
        let mut work = Self::begin();
        for (change, mark) in changes {
            work.mark(change, mark);
        }
        async move { work.flush(pool).await }
    }
}

/// Calls another macro with the tests that each database has.
macro_rules! each_test {
    ($then:ident) => {
        use chunks::*;
        use returned::*;
        use upserts::*;

        $then! {
            an_update_writes_the_next_version
            what_has_changed_is_written
            a_change_of_a_stale_row_writes_nothing
            a_change_of_a_row_that_is_gone_is_stale
            no_update_is_lost
            rows_of_a_key_of_two_columns_are_written
            a_row_of_a_key_of_two_columns_is_named
            rows_of_keys_that_others_may_write_need_the_table_of_marker_rows
            rows_are_inserted_updated_or_left_alone
            rows_are_found_by_unique_columns
            rows_are_written_without_a_report
            rows_of_all_shapes_are_upserted
            a_refused_upsert_writes_nothing
            each_row_is_inserted_by_one_of_many
            what_the_database_fills_is_known_after_the_flush
            what_the_database_fills_in_many_rows_is_known
            what_the_database_fills_is_known_of_rows_that_are_there
            a_refused_flush_fills_nothing
            a_unit_of_work_is_written_in_chunks
            a_refused_chunk_leaves_those_before_it
        }
    };
}

/// Adds the tests of a library: its units of work for SQLite, PostgreSQL, MariaDB and MySQL.
pub fn trials<S, P, M>(servers: &Servers, trials: &mut Vec<Trial>)
where
    S: EverydayWork<Database = Sqlite>,
    P: EverydayWork<Database = Postgres>,
    M: EverydayWork<Database = MySql>,
{
    on_files::<S>(trials);
    on_server::<P>(servers, trials, "postgres");
    on_server::<M>(servers, trials, "mariadb");
    on_server::<M>(servers, trials, "mysql");
}

/// Adds those of a server.
pub fn on_server<W>(servers: &Servers, trials: &mut Vec<Trial>, server: &'static str)
where
    W: EverydayWork<Database: Scratch + Remote>,
{
    macro_rules! add {
        ($($test:ident)+) => {
            $(add::<W, _, _>(servers, trials, server, stringify!($test), $test::<W>);)+
        };
    }
    each_test! { add }
    add::<W, _, _>(
        servers,
        trials,
        server,
        "a_lost_commit_of_a_chunk_is_told_by_its_marker_row",
        chunks::lost_commit_of_a_chunk::<W>,
    );
    add::<W, _, _>(
        servers,
        trials,
        server,
        "a_lost_commit_of_rows_that_others_may_write_is_told_by_the_marker_row",
        lost_commit_of_shared_keys::<W>,
    );
}

/// Adds those of SQLite.
pub fn on_files<W: EverydayWork<Database = Sqlite>>(trials: &mut Vec<Trial>) {
    macro_rules! add {
        ($($test:ident)+) => {$(
            let name = format!("sqlite::{}{}", W::PREFIX, stringify!($test));
            trials.push(Trial::test(name, || {
                run(async || {
                    let (_folder, options) = sqlite_file()?;
                    over_sqlite(options, 1, async |pool| {
                        create(&pool).await?;
                        $test::<W>(pool).await
                    })
                    .await
                })
            }));
        )+};
    }
    each_test! { add }
}

fn add<W, T, F>(
    servers: &Servers,
    trials: &mut Vec<Trial>,
    server: &'static str,
    name: &str,
    test: T,
) where
    W: EverydayWork<Database: Scratch>,
    T: FnOnce(Pool<W::Database>) -> F + Send + 'static,
    F: Future<Output = Outcome>,
{
    let name = format!("{}{name}", W::PREFIX);
    on_scratch::<W::Database, _, _>(trials, servers, server, &name, async |pool| {
        create(&pool).await?;
        test(pool).await
    });
}

async fn create<DB: Engine>(pool: &Pool<DB>) -> Outcome {
    let (key, flushes) = (DB::KEY, flushes_table::<DB>());
    let sql = format!(
        "CREATE TABLE notes (id {key} PRIMARY KEY, title VARCHAR(40) NOT NULL, version BIGINT NOT NULL, \
         stars BIGINT NOT NULL CHECK (stars >= 0)); \
         CREATE TABLE marks (note {key} NOT NULL REFERENCES notes (id), number INTEGER NOT NULL, \
         title VARCHAR(40) NOT NULL, stars BIGINT NOT NULL CHECK (stars >= 0), PRIMARY KEY (note, number)); \
         CREATE TABLE people (id {key} PRIMARY KEY, mail VARCHAR(40) UNIQUE, name VARCHAR(40) NOT NULL, \
         visits BIGINT NOT NULL CHECK (visits >= 0)); \
         CREATE TABLE receipts (id {key} PRIMARY KEY, stars BIGINT NOT NULL CHECK (stars >= 0), \
         luck BIGINT NOT NULL DEFAULT {random}, doubled BIGINT GENERATED ALWAYS AS (stars * 2) STORED, \
         remark VARCHAR(40) GENERATED ALWAYS AS (CASE WHEN stars > 5 THEN 'many' END) STORED); \
         {flushes}",
        random = DB::RANDOM,
    );
    DB::execute_sql(pool, sql).await
}

fn notes(count: usize) -> Vec<Note> {
    let note = |number| Note {
        id: Uuid::generate(),
        title: format!("note {number}"),
        version: 1,
        stars: 0,
    };
    (0..count).map(note).collect()
}

/// Somebody else changes a note.
async fn changed_elsewhere<DB: Engine>(pool: &Pool<DB>, note: &Note, version: i64) -> Outcome {
    let id = DB::literal(note.id);
    let sql = format!("UPDATE notes SET title = 'theirs', version = {version} WHERE id = {id}");
    DB::execute_sql(pool, sql).await
}

async fn an_update_writes_the_next_version<W: EverydayWork>(pool: Pool<W::Database>) -> Outcome {
    // More than a statement takes.
    let mut notes = notes(2_300);
    W::flushed(notes.iter().map(|it| (Change::Add, it)), &pool).await?;
    for note in &mut notes {
        note.stars = 7;
    }
    let flushed = W::flushed(notes.iter().map(|it| (Change::Update, it)), &pool).await?;
    assert_eq!(flushed.updated(), 2_300);
    notes.iter_mut().for_each(|it| it.version += 1);
    assert_eq!(W::Database::notes(&pool).await?, notes);

    // Of some rows one column, one row by itself, all columns, deletes: in one flush.
    let changes = notes.iter().enumerate().map(|(number, note)| {
        let change = match number % 4 {
            0 => Change::UpdateStars,
            1 => Change::Update,
            _ => Change::Delete,
        };
        let title = "changed".to_owned();
        (
            change,
            Note {
                stars: 8,
                title,
                ..note.clone()
            },
        )
    });
    let changes: Vec<_> = changes.collect();
    let flushed = W::flushed(changes.iter().map(|(change, it)| (*change, it)), &pool).await?;
    assert_eq!((flushed.updated(), flushed.deleted()), (1_150, 1_150));
    let expected = changes
        .into_iter()
        .zip(&notes)
        .filter_map(|((change, mut note), before)| {
            match change {
                Change::Add | Change::Upsert | Change::Ignore | Change::Delete => return None,
                Change::Update => {}
                Change::UpdateStars | Change::UpdateChanged => {
                    note.title.clone_from(&before.title);
                }
            }
            note.version += 1;
            Some(note)
        });
    assert_eq!(
        W::Database::notes(&pool).await?,
        expected.collect::<Vec<_>>()
    );
    Ok(())
}

/// What somebody else has written to other columns stays.
async fn what_has_changed_is_written<W: EverydayWork>(pool: Pool<W::Database>) -> Outcome {
    let mut notes = notes(1_200);
    let mut marks = marks(&notes[..2], 2);
    W::flushed(notes.iter().map(|it| (Change::Add, it)), &pool).await?;
    W::marked(marks.iter().map(|it| (Change::Add, it)), &pool).await?;
    let theirs = "UPDATE notes SET title = 'theirs'; UPDATE marks SET title = 'theirs'".to_owned();
    W::Database::execute_sql(&pool, theirs).await?;
    let mut work = W::begin();
    for note in &mut notes {
        note.stars += 1;
        work.note(Change::UpdateChanged, note);
        (note.title, note.version) = ("theirs".to_owned(), 2);
    }
    for mark in &mut marks {
        mark.stars += 1;
        work.mark(Change::UpdateChanged, mark);
        mark.title = "theirs".to_owned();
    }
    let flushed = work.flush(&pool).await?;
    assert_eq!(flushed.updated(), 1_204);
    assert_eq!(W::Database::notes(&pool).await?, notes);
    assert_eq!(W::Database::marks(&pool).await?, marks);
    Ok(())
}

async fn a_change_of_a_stale_row_writes_nothing<W: EverydayWork>(
    pool: Pool<W::Database>,
) -> Outcome {
    let notes = notes(1_200);
    W::flushed(notes.iter().map(|it| (Change::Add, it)), &pool).await?;
    changed_elsewhere(&pool, &notes[1_100], 5).await?;
    let before = W::Database::notes(&pool).await?;
    for change in [Change::Update, Change::UpdateStars, Change::Delete] {
        // Among others, and alone.
        for changed in [&notes[..], &notes[1_100..=1_100]] {
            let changed = changed.iter().map(|it| (change, it));
            let error = W::flushed(changed, &pool).await.unwrap_err();
            let text = &error.message;
            assert!(
                error.is_stale && !error.is_commit_unknown,
                "{change:?}: {text}"
            );
            let versions = [
                error.row.read_version.as_deref(),
                error.row.found_version.as_deref(),
            ];
            assert_eq!(versions, [Some("1"), Some("5")], "{change:?}: {text}");
            assert_eq!(error.row.key, Some(notes[1_100].id.to_string()));
            assert!(
                text.contains("was read with version 1 and has version 5"),
                "{text}"
            );
            assert!(text.contains("nothing was written"), "{text}");
            assert!(!error.is_missing_row, "{text}");
            assert_eq!(W::Database::notes(&pool).await?, before);
        }
    }
    // What was read again can be changed.
    W::flushed([(Change::Update, &before[1_100])], &pool).await?;
    assert_eq!(W::Database::notes(&pool).await?[1_100].version, 6);
    Ok(())
}

async fn a_change_of_a_row_that_is_gone_is_stale<W: EverydayWork>(
    pool: Pool<W::Database>,
) -> Outcome {
    let notes = notes(3);
    let [first, gone, _] = &notes[..] else {
        unreachable!("there are three");
    };
    W::flushed([(Change::Add, first)], &pool).await?;
    for change in [Change::Update, Change::UpdateStars, Change::Delete] {
        let changes = [(change, first), (change, gone)];
        let error = W::flushed(changes, &pool).await.unwrap_err();
        assert!(error.is_stale && error.is_missing_row, "{}", error.message);
        assert_eq!(error.row.key, Some(gone.id.to_string()));
        assert_eq!(
            (error.row.read_version.as_deref(), error.row.found_version),
            (Some("1"), None)
        );
        let text = "there is no such row any more, which was read with version 1";
        assert!(error.message.contains(text), "{}", error.message);
        assert_eq!(
            W::Database::notes(&pool).await?,
            std::slice::from_ref(first)
        );
    }
    Ok(())
}

/// Several tasks read a row, count one star more, and write it; who is late reads it again.
async fn no_update_is_lost<W: EverydayWork>(pool: Pool<W::Database>) -> Outcome {
    const TASKS: usize = 4;
    const STARS: usize = 8;
    let note = &notes(1)[0];
    W::flushed([(Change::Add, note)], &pool).await?;
    let count = async || {
        let mut stale = 0;
        for _ in 0..STARS {
            loop {
                let mut note = W::Database::notes(&pool).await?.remove(0);
                note.stars += 1;
                // Another may read the same row before this one is written.
                tokio::task::yield_now().await;
                match W::flushed([(Change::Update, &note)], &pool).await {
                    Ok(_) => break,
                    Err(error) if error.is_stale => stale += 1,
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Outcome::Ok(stale)
    };
    let counts = tokio::try_join!(count(), count(), count(), count())?;
    let stale = counts.0 + counts.1 + counts.2 + counts.3;
    let found = W::Database::notes(&pool).await?;
    let stars = i64::try_from(TASKS * STARS)?;
    assert_eq!((found[0].stars, found[0].version), (stars, stars + 1));
    assert!(stale > 0, "nobody was late");
    Ok(())
}

/// Marks on notes, so many on each, in the order of their keys.
fn marks(notes: &[Note], of_each: i32) -> Vec<Mark> {
    let marks = notes.iter().flat_map(|note| {
        (0..of_each).map(|number| Mark {
            note: note.id,
            // Also below zero.
            number: number - 3,
            title: format!("mark {number}"),
            stars: 1,
        })
    });
    marks.collect()
}

/// A row with a key of the program's own in the same flush is enough.
async fn rows_of_keys_that_others_may_write_need_the_table_of_marker_rows<W: EverydayWork>(
    pool: Pool<W::Database>,
) -> Outcome {
    W::Database::execute_sql(&pool, "DROP TABLE ordid_flushes".to_owned()).await?;
    let notes = notes(2);
    let marks = marks(&notes, 3);
    W::flushed([(Change::Add, &notes[0])], &pool).await?;
    let of_the_first = marks[..3].iter().map(|it| (Change::Add, it));
    let error = W::marked(of_the_first.clone(), &pool).await.unwrap_err();
    let text = &error.message;
    assert!(
        error.is_flushes_table_missing && !error.is_commit_unknown,
        "{text}"
    );
    for part in [
        "the rows of marks need",
        "others may write the same keys",
        "CREATE TABLE",
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(W::Database::marks(&pool).await?, []);
    let mut work = W::begin();
    work.note(Change::Add, &notes[1]);
    for mark in &marks[3..] {
        work.mark(Change::Add, mark);
    }
    work.flush(&pool).await?;
    W::Database::execute_sql(&pool, flushes_table::<W::Database>().to_owned()).await?;
    W::marked(of_the_first, &pool).await?;
    assert_eq!(W::Database::marks(&pool).await?.len(), marks.len());
    Ok(())
}

/// The COMMIT lands, or it does not, or it does not and somebody else writes a row of the same key before the flush asks.
async fn lost_commit_of_shared_keys<W>(pool: Pool<W::Database>) -> Outcome
where
    W: EverydayWork<Database: Remote>,
{
    let notes = notes(1);
    W::flushed([(Change::Add, &notes[0])], &pool).await?;
    let marks = marks(&notes, 3);
    let theirs = Mark {
        title: "theirs".to_owned(),
        ..marks[0].clone()
    };
    // As long as the packet of a COMMIT is.
    let packet = if W::Database::KEY == "UUID" { 12 } else { 11 };
    for (lands, is_written) in [(true, false), (false, false), (false, true)] {
        W::Database::execute_sql(&pool, "DELETE FROM marks".to_owned()).await?;
        let options = pool.connect_options();
        let proxy = Proxy::start(W::Database::address(&options)?).await?;
        let through = W::Database::through(&options, proxy.port());
        let through = Pool::<W::Database>::connect_lazy_with(through);
        // No other connection passes until somebody else has written the row.
        proxy.always(Fault::Cut(At::Up(0)));
        proxy.plan([Fault::Cut(At::Commit(if lands { packet } else { 0 }))]);
        let flushes = W::marked(marks.iter().map(|it| (Change::Add, it)), &through);
        let writes = async {
            while !proxy.traffic().iter().any(|it| it.commit.is_some()) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            if is_written {
                // It waits for the end of the transaction that was cut off.
                W::marked([(Change::Add, &theirs)], &pool).await?;
            }
            proxy.always(Fault::None);
            Outcome::Ok(())
        };
        let (flushed, written) = tokio::join!(flushes, writes);
        written?;
        through.close().await;
        let found = W::Database::marks(&pool).await?;
        match flushed {
            Ok(_) => assert_eq!((found, is_written), (marks.clone(), false)),
            Err(error) => {
                let text = &error.message;
                assert!(is_written && !error.is_transient, "{text}");
                assert_eq!(found, std::slice::from_ref(&theirs), "{text}");
            }
        }
    }
    Ok(())
}

async fn rows_of_a_key_of_two_columns_are_written<W: EverydayWork>(
    pool: Pool<W::Database>,
) -> Outcome {
    let notes = notes(230);
    let mut marks = marks(&notes, 10);
    let mut work = W::begin();
    // Children first, and not in the order of their keys.
    for mark in marks.iter().rev() {
        work.mark(Change::Add, mark);
    }
    for note in &notes {
        work.note(Change::Add, note);
    }
    let flushed = work.flush(&pool).await?;
    assert_eq!(flushed.rows(), 2_530);
    assert_eq!(W::Database::marks(&pool).await?, marks);

    for mark in &mut marks {
        mark.title = "changed".to_owned();
        mark.stars += 1;
    }
    let flushed = W::marked(marks.iter().map(|it| (Change::Update, it)), &pool).await?;
    assert_eq!(flushed.updated(), 2_300);
    assert_eq!(W::Database::marks(&pool).await?, marks);

    // Of some rows one column, deletes, one row by itself; and notes behind the last of their marks.
    let changes = marks.iter().enumerate().map(|(number, mark)| {
        let change = match number % 3 {
            0 => Change::UpdateStars,
            _ => Change::Delete,
        };
        let title = "not written".to_owned();
        (
            change,
            Mark {
                stars: 9,
                title,
                ..mark.clone()
            },
        )
    });
    let changes: Vec<_> = changes.collect();
    let flushed = W::marked(changes.iter().map(|(change, it)| (*change, it)), &pool).await?;
    assert_eq!((flushed.updated(), flushed.deleted()), (767, 1_533));
    marks = marks.into_iter().step_by(3).collect();
    marks.iter_mut().for_each(|it| it.stars = 9);
    assert_eq!(W::Database::marks(&pool).await?, marks);
    let mut work = W::begin();
    for note in &notes {
        work.note(Change::Delete, note);
    }
    for mark in &marks {
        work.mark(Change::Delete, mark);
    }
    work.flush(&pool).await?;
    assert!(W::Database::marks(&pool).await?.is_empty());
    assert!(W::Database::notes(&pool).await?.is_empty());
    Ok(())
}

async fn a_row_of_a_key_of_two_columns_is_named<W: EverydayWork>(
    pool: Pool<W::Database>,
) -> Outcome {
    let notes = notes(2);
    let mut work = W::begin();
    let marks = marks(&notes, 600);
    notes.iter().for_each(|it| work.note(Change::Add, it));
    marks.iter().for_each(|it| work.mark(Change::Add, it));
    work.flush(&pool).await?;
    let named = |note: &Note, number: i32| Some(format!("({}, {number})", note.id));

    // A row that is refused, and one that is taken.
    let mut changed = marks.clone();
    changed[700].stars = -1;
    let error = W::marked(changed.iter().map(|it| (Change::Update, it)), &pool)
        .await
        .unwrap_err();
    assert_eq!(error.row.key, named(&notes[1], 97), "{}", error.message);
    let mut more = marks.clone();
    more.iter_mut().for_each(|it| it.number += 600);
    more[1_100].number = 5;
    let error = W::marked(more.iter().map(|it| (Change::Add, it)), &pool)
        .await
        .unwrap_err();
    assert!(error.is_unique_violation, "{}", error.message);
    // SQLx adds a line of PostgreSQL's own source.
    assert!(!error.message.contains(" at line "), "{}", error.message);
    assert_eq!(error.row.key, named(&notes[1], 5), "{}", error.message);

    // A row that is not there, though each of its columns is.
    let gone = Mark {
        number: 900,
        ..marks[3].clone()
    };
    for change in [Change::Update, Change::UpdateStars, Change::Delete] {
        for others in [&marks[..], &[]] {
            let changes = others.iter().chain([&gone]).map(|it| (change, it));
            let error = W::marked(changes, &pool).await.unwrap_err();
            assert!(error.is_missing_row && !error.is_stale, "{}", error.message);
            assert_eq!(error.row.key, named(&notes[0], 900), "{}", error.message);
        }
    }

    // The same row twice, and rows that have one of the two columns in common.
    let twice = [(Change::Update, &marks[0]), (Change::Update, &marks[0])];
    let error = W::marked(twice, &pool).await.unwrap_err();
    assert!(error.is_plan, "{}", error.message);
    assert!(
        error
            .message
            .contains(&named(&notes[0], -3).unwrap_or_default()),
        "{}",
        error.message
    );
    assert_eq!(
        W::Database::marks(&pool).await?,
        marks,
        "nothing was written"
    );
    Ok(())
}
