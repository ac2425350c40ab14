//! A server of notes whose keys come from two places: those of its own notes it makes itself, and those of clients were
//! made by their pages, perhaps days ago and offline. All of them are in one order, that of the time in their keys.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use axum::{
    Json, Router,
    extract::{Path as UrlPath, State, rejection::JsonRejection},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use ordid::{
    KeyType, OrderedKey,
    clock::{Clock as _, SystemClock},
    uuid::Uuid,
};
use ordid_sqlx::UnitOfWork;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::{
    SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions},
};

/// SQLite compares a `BLOB` as bytes, so the rows are stored in the order of the times in their keys.
const SCHEMA: &str = "CREATE TABLE IF NOT EXISTS notes (id BLOB NOT NULL PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID";

/// How far the clock of a page may be ahead of the server's, in milliseconds. A key that is further ahead would stand
/// above all keys that the server makes until then.
const MOST_AHEAD: u64 = 10_000;
/// The largest number of notes in a request and in a list.
const MOST_NOTES: usize = 500;
/// The largest length of a note, in bytes of UTF-8.
const MOST_BYTES: usize = 2_000;

/// `note_...`
#[derive(KeyType)]
#[ordid(prefix = "note", sqlx)]
pub struct NoteId(Uuid);

/// A row of `notes`, and its JSON.
#[derive(OrderedKey, sqlx::FromRow, Serialize, Deserialize, Debug)]
#[ordid(table = "notes")]
pub struct Note {
    /// The key that the page has made, or the server.
    pub id: NoteId,
    /// Anything but nothing.
    pub text: String,
}

/// A note without a key, which the server makes.
#[derive(Deserialize)]
struct Said {
    text: String,
}

/// The server's state.
#[derive(Clone)]
pub struct App {
    pool: SqlitePool,
    /// The folder of what `wasm-bindgen` wrote.
    keys: Arc<Path>,
}

/// An answer that is not a success.
struct Refused {
    status: StatusCode,
    /// A sentence for people.
    error: String,
    /// The note that is the cause, if it is one. A page sets it aside and sends the others.
    id: Option<NoteId>,
}

type Result<T> = std::result::Result<T, Refused>;

impl App {
    /// Opens the database in a file, which it makes where it is missing. `keys` is the folder with the page's compiled
    /// keys, which the README makes.
    ///
    /// # Errors
    ///
    /// The file cannot be opened, or is no database.
    pub async fn open(file: &Path, keys: PathBuf) -> anyhow::Result<Self> {
        let options = SqliteConnectOptions::new()
            .filename(file)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .busy_timeout(Duration::from_secs(10));
        let pool = SqlitePoolOptions::new().max_connections(4);
        let pool = pool.connect_with(options).await?;
        sqlx::raw_sql(SCHEMA).execute(&pool).await?;
        // A flush that may find its rows there writes a marker row. If the answer to its COMMIT is lost, the marker
        // tells whether it succeeded.
        ordid_sqlx::create_flushes_table(&pool).await?;
        ordid_sqlx::remove_old_markers(&pool).await?;
        Ok(Self {
            pool,
            keys: keys.into(),
        })
    }

    /// Stores a note under a key that is made here.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub async fn say(&self, text: String) -> std::result::Result<NoteId, ordid_sqlx::Error> {
        let mut work = UnitOfWork::new();
        let id = work.add(Note {
            id: NoteId::generate(),
            text,
        });
        work.flush(&self.pool).await?;
        Ok(id)
    }

    /// Returns the newest notes, oldest first.
    ///
    /// # Errors
    ///
    /// They cannot be read.
    pub async fn notes(&self) -> sqlx::Result<Vec<Note>> {
        let newest = "SELECT id, text FROM notes ORDER BY id DESC LIMIT ?";
        let newest = sqlx::query_as(newest).bind(i64::try_from(MOST_NOTES).unwrap_or(i64::MAX));
        let mut notes: Vec<Note> = newest.fetch_all(&self.pool).await?;
        notes.reverse();
        Ok(notes)
    }

    /// Stores notes of a page, all or none. What is there already is left alone, so that a page that has got no answer
    /// sends its notes again.
    async fn take(&self, notes: Vec<Note>) -> Result<(usize, usize)> {
        if notes.len() > MOST_NOTES {
            let many = notes.len();
            return Err(refuse(
                None,
                format!("{many} notes at once; at most {MOST_NOTES}"),
            ));
        }
        let now = SystemClock.now().as_unix_millis();
        let mut seen = HashSet::new();
        for Note { id, text } in &notes {
            check_text(Some(*id), text)?;
            let ahead = id
                .timestamp()
                .map_or(0, |time| time.as_unix_millis().saturating_sub(now));
            if ahead > MOST_AHEAD {
                return Err(refuse(
                    Some(*id),
                    format!(
                        "the key is {ahead} ms ahead of the server's clock; at most {MOST_AHEAD} ms"
                    ),
                ));
            }
            if !seen.insert(*id) {
                return Err(refuse(None, format!("{id} is there twice")));
            }
        }
        let mut work = UnitOfWork::new();
        for note in notes {
            work.insert_or_ignore(note);
        }
        let flushed = work.flush(&self.pool).await?;
        Ok((flushed.rows(), flushed.left_alone()))
    }
}

/// Returns the routes: the page at `/`, and `/api`.
pub fn router(app: App) -> Router {
    const HTML: &str = "text/html; charset=utf-8";
    const SCRIPT: &str = "text/javascript; charset=utf-8";

    let file = |kind: &'static str, text: &'static str| {
        get(async move || ([(header::CONTENT_TYPE, kind)], text))
    };
    Router::new()
        .route("/", file(HTML, include_str!("../web/index.html")))
        .route("/page.js", file(SCRIPT, include_str!("../web/page.js")))
        .route("/worker.js", file(SCRIPT, include_str!("../web/worker.js")))
        .route("/keys/{file}", get(keys))
        .route("/api/time", get(time))
        .route("/api/notes", get(list).post(take))
        .route("/api/said", axum::routing::post(said))
        .with_state(app)
}

/// Sends a file of the page's keys.
async fn keys(State(app): State<App>, UrlPath(file): UrlPath<String>) -> Result<Response> {
    let kind = match file.as_str() {
        "offline_page.js" => "text/javascript; charset=utf-8",
        "offline_page_bg.wasm" => "application/wasm",
        _ => return Err(Refused::new(StatusCode::NOT_FOUND, "no such file")),
    };
    let path = app.keys.join(file);
    let bytes = std::fs::read(&path).map_err(|error| {
        let path = path.display();
        let message = format!("cannot read {path}: {error}; the README says how to make it");
        Refused::new(StatusCode::NOT_FOUND, message)
    })?;
    Ok(([(header::CONTENT_TYPE, kind)], bytes).into_response())
}

/// Answers with the server's time, by which pages set their clocks right.
async fn time() -> Json<serde_json::Value> {
    Json(json!({ "unixMillis": SystemClock.now().as_unix_millis() }))
}

async fn list(State(app): State<App>) -> Result<Json<Vec<Note>>> {
    Ok(Json(app.notes().await?))
}

async fn take(
    State(app): State<App>,
    notes: std::result::Result<Json<Vec<Note>>, JsonRejection>,
) -> Result<Json<serde_json::Value>> {
    let (stored, left_alone) = app.take(notes?.0).await?;
    Ok(Json(json!({ "stored": stored, "leftAlone": left_alone })))
}

async fn said(
    State(app): State<App>,
    said: std::result::Result<Json<Said>, JsonRejection>,
) -> Result<Json<serde_json::Value>> {
    let text = said?.0.text;
    check_text(None, &text)?;
    let id = app.say(text).await?;
    Ok(Json(json!({ "id": id })))
}

fn check_text(id: Option<NoteId>, text: &str) -> Result<()> {
    match text.len() {
        0 => Err(refuse(id, "the note is empty".to_owned())),
        1..=MOST_BYTES => Ok(()),
        many => Err(refuse(
            id,
            format!("the note has {many} bytes; at most {MOST_BYTES}"),
        )),
    }
}

fn refuse(id: Option<NoteId>, error: String) -> Refused {
    Refused {
        status: StatusCode::UNPROCESSABLE_ENTITY,
        error,
        id,
    }
}

impl Refused {
    fn new(status: StatusCode, error: impl ToString) -> Self {
        Self {
            status,
            error: error.to_string(),
            id: None,
        }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let body = json!({ "error": self.error, "id": self.id });
        (self.status, Json(body)).into_response()
    }
}

impl From<JsonRejection> for Refused {
    fn from(error: JsonRejection) -> Self {
        Self::new(error.status(), error.body_text())
    }
}

/// The page sends its notes again, whatever the reason.
impl From<ordid_sqlx::Error> for Refused {
    fn from(error: ordid_sqlx::Error) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, error)
    }
}

impl From<sqlx::Error> for Refused {
    fn from(error: sqlx::Error) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, error)
    }
}
