//! A journal refuses rows that the next run would send otherwise.

use std::collections::HashMap;

use ordid::{KeyType, OrderedKey, uuid::Uuid};
use ordid_file::FlushJournal;
use ordid_sql::Journal;
use ordid_sqlx::{ChunkLimits, Journaled, UnitOfWork};
use serde::{Deserialize, Serialize, Serializer};
use sqlx::{Sqlite, SqlitePool, types::Json};

#[derive(KeyType)]
#[ordid(sqlx(sqlite = blob))]
struct UserId(Uuid);

/// Shows itself to the database alone.
#[derive(Debug, Clone, PartialEq, Deserialize, sqlx::Type)]
#[sqlx(transparent)]
struct Secret(String);

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str("[redacted]")
    }
}

#[derive(OrderedKey, Serialize, Deserialize)]
#[ordid(table = "users")]
struct User {
    #[ordid(key)]
    id: UserId,
    name: String,
    password: Secret,
}

/// Two maps of the same values have them in different orders.
#[derive(OrderedKey, Serialize, Deserialize)]
#[ordid(table = "notes")]
struct Note {
    #[ordid(key)]
    id: UserId,
    words: Json<HashMap<String, f64>>,
}

const TABLES: &str = "CREATE TABLE users (id BLOB PRIMARY KEY, name TEXT, password TEXT); \
                      CREATE TABLE notes (id BLOB PRIMARY KEY, words TEXT)";

async fn flushed(fill: impl FnOnce(&mut UnitOfWork<Sqlite>)) -> Result<usize, ordid_sqlx::Error> {
    flushed_as(|work| work, fill).await
}

async fn flushed_as(
    set: impl FnOnce(UnitOfWork<Sqlite>) -> UnitOfWork<Sqlite>,
    fill: impl FnOnce(&mut UnitOfWork<Sqlite>),
) -> Result<usize, ordid_sqlx::Error> {
    let folder = tempfile::tempdir().expect("a folder");
    let journal = FlushJournal::open(folder.path().join("journal")).expect("a journal");
    let pool = SqlitePool::connect("sqlite::memory:")
        .await
        .expect("a database");
    sqlx::raw_sql(TABLES).execute(&pool).await.expect("tables");
    let journaled = Journaled::new(journal).row::<User>().row::<Note>();
    let mut work = set(UnitOfWork::new().with_journal(journaled));
    fill(&mut work);
    let flushed = work.flush(&pool).await;
    flushed.map(|flushed| flushed.rows())
}

#[tokio::test]
async fn a_column_whose_serialize_hides_something_is_refused_before_anything_is_sent() {
    let id = UserId::generate();
    let error = flushed(|work| {
        work.add(User {
            id,
            name: "Ada".to_owned(),
            password: Secret("correct horse".to_owned()),
        });
    })
    .await
    .expect_err("the next run would write `[redacted]`");
    assert!(error.is_journal());
    assert_eq!(
        error.to_string(),
        format!(
            "cannot use the journal, nothing was sent: the journal cannot keep the row of users with the key \
             {id}: the database would get another value of its column password; does `Serialize` of its type \
             leave something out?"
        )
    );
}

#[tokio::test]
async fn a_secret_that_is_what_serialize_writes_comes_back_and_so_does_a_map_in_any_order() {
    let rows = flushed(|work| {
        work.add(User {
            id: UserId::generate(),
            name: "Ada".to_owned(),
            password: Secret("[redacted]".to_owned()),
        });
        for number in 0..20 {
            let words = (0..number).map(|word| (format!("word {word}"), f64::from(word) / 3.0));
            work.add(Note {
                id: UserId::generate(),
                words: Json(words.collect()),
            });
        }
    });
    assert_eq!(rows.await.expect("all come back"), 21);
}

/// After a kill at COMMIT, the next run could not tell whether an update was carried out.
#[tokio::test]
async fn changes_without_a_marker_row_are_refused_before_anything_is_sent() {
    let user = || User {
        id: UserId::generate(),
        name: "Ada".to_owned(),
        password: Secret("[redacted]".to_owned()),
    };
    let error = flushed_as(UnitOfWork::without_record, |work| work.update(user())).await;
    let error = error.expect_err("it has an update");
    assert!(error.is_journal(), "{error}");
    assert!(
        error.to_string().contains("leave `without_record` out"),
        "{error}"
    );
    let rows = flushed_as(UnitOfWork::without_record, |work| {
        work.add(user());
    });
    assert_eq!(rows.await.expect("rows are found by their keys"), 1);
}

#[derive(OrderedKey, Serialize, Deserialize)]
#[ordid(table = "steps")]
struct Step {
    #[ordid(key)]
    id: UserId,
    number: i64,
}

/// A table that refuses the row of this number, and a journal.
struct Steps {
    pool: SqlitePool,
    folder: tempfile::TempDir,
}

impl Steps {
    async fn which_refuse(number: i64) -> Self {
        let options = sqlx::pool::PoolOptions::<Sqlite>::new().max_connections(1);
        let pool = options
            .connect("sqlite::memory:")
            .await
            .expect("a database");
        let tables = format!(
            "CREATE TABLE steps (id BLOB PRIMARY KEY, number INTEGER NOT NULL); \
             CREATE TRIGGER refused BEFORE INSERT ON steps WHEN new.number = {number} \
             BEGIN SELECT RAISE(ABORT, 'not this one'); END"
        );
        let tables = sqlx::AssertSqlSafe(tables);
        sqlx::raw_sql(tables).execute(&pool).await.expect("tables");
        ordid_sqlx::create_flushes_table(&pool)
            .await
            .expect("a table");
        let folder = tempfile::tempdir().expect("a folder");
        Self { pool, folder }
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    async fn refuse_nothing(&self) {
        let drop_trigger = "DROP TRIGGER refused";
        let dropped = sqlx::raw_sql(drop_trigger).execute(&self.pool).await;
        dropped.expect("no trigger");
    }

    async fn count(&self) -> i64 {
        let count = sqlx::query_scalar::<_, i64>("SELECT COUNT(DISTINCT number) FROM steps");
        count.fetch_one(&self.pool).await.expect("a number")
    }

    /// Begins a unit of work with this journal, in chunks of so many rows.
    fn work(journal: impl Journal + 'static, rows: Option<usize>) -> UnitOfWork<Sqlite> {
        let work = UnitOfWork::new().with_journal(Journaled::new(journal).row::<Step>());
        match rows {
            Some(rows) => work.in_chunks(ChunkLimits::rows(rows)),
            None => work,
        }
    }

    fn fill(work: &mut UnitOfWork<Sqlite>) {
        for number in 0..20 {
            let id = UserId::generate();
            work.add(Step { id, number });
        }
    }
}

/// Copies the file as it is when it was made durable for the time of this number.
struct Copied {
    journal: FlushJournal,
    file: std::path::PathBuf,
    to: std::path::PathBuf,
    copied_at: usize,
    syncs: usize,
}

impl Journal for Copied {
    fn append(&mut self, record: &[u8]) -> Result<(), ordid::Error> {
        self.journal.append(record)
    }

    fn sync(&mut self) -> Result<(), ordid::Error> {
        self.journal.sync()?;
        self.syncs += 1;
        if self.syncs == self.copied_at {
            std::fs::copy(&self.file, &self.to).expect("a copy");
        }
        Ok(())
    }

    fn read(
        &mut self,
        visit: &mut dyn FnMut(&[u8]) -> Result<(), ordid::Error>,
    ) -> Result<(), ordid::Error> {
        self.journal.read(visit)
    }

    fn clear(&mut self) -> Result<(), ordid::Error> {
        self.journal.clear()
    }
}

/// The second chunk has landed when the process is killed, and its marker row is there. The next run has other limits.
#[tokio::test]
async fn a_chunk_in_doubt_is_the_same_rows_in_the_next_run() {
    for limit in [2, 20] {
        let steps = Steps::which_refuse(12).await;
        let journal = Copied {
            journal: FlushJournal::open(steps.file("first")).expect("a journal"),
            file: steps.file("first"),
            to: steps.file("killed"),
            copied_at: 2,
            syncs: 0,
        };
        let mut work = Steps::work(journal, Some(5));
        Steps::fill(&mut work);
        let error = work.flush(&steps.pool).await.expect_err("the third chunk");
        assert_eq!((error.committed_chunks(), steps.count().await), (2, 10));
        drop(work);
        steps.refuse_nothing().await;

        // The rows cannot be told from others that were added.
        let killed = FlushJournal::open(steps.file("killed")).expect("a journal");
        let mut work = Steps::work(killed, Some(limit));
        assert_eq!(work.resume().expect("rows"), 20);
        let id = UserId::generate();
        work.add(Step { id, number: 20 });
        let error = work
            .flush(&steps.pool)
            .await
            .expect_err("it may have changed");
        assert!(error.is_plan() && error.committed_chunks() == 1, "{error}");
        work.clear();

        assert_eq!(work.resume().expect("rows"), 20);
        let flushed = work.flush(&steps.pool).await.expect("the rest");
        assert_eq!((flushed.rows(), steps.count().await), (20, 20));
    }
}

/// Its rows may have been too many for one transaction.
#[tokio::test]
async fn a_chunk_that_failed_is_cut_anew_by_the_next_run() {
    let steps = Steps::which_refuse(7).await;
    let (pool, file) = (&steps.pool, steps.file("journal"));
    let begin = |rows| Steps::work(FlushJournal::open(&file).expect("a journal"), rows);
    let mut work = begin(Some(5));
    Steps::fill(&mut work);
    let error = work.flush(pool).await.expect_err("a row is refused");
    assert_eq!(
        (error.committed_chunks(), steps.count().await),
        (1, 5),
        "{error}"
    );
    drop(work);

    let mut work = begin(Some(2));
    assert_eq!(work.resume().expect("rows"), 20);
    let error = work.flush(pool).await.expect_err("a row is refused");
    assert_eq!(
        (error.committed_chunks(), steps.count().await),
        (2, 7),
        "{error}"
    );
    assert_eq!(error.committed().expect("rows").rows(), 7);
    drop(work);

    // Not as a whole: the first rows would be sent twice.
    let mut work = begin(None);
    work.resume().expect("rows");
    let error = work.flush(pool).await.expect_err("some rows are there");
    assert!(
        error.is_plan() && error.to_string().contains("`in_chunks`"),
        "{error}"
    );
    drop(work);

    steps.refuse_nothing().await;
    let mut work = begin(Some(100));
    work.resume().expect("rows");
    let flushed = work.flush(pool).await.expect("the rest");
    assert_eq!((flushed.rows(), steps.count().await), (20, 20));
    assert_eq!(std::fs::metadata(&file).expect("a file").len(), 0);
}
