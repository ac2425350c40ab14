//! Diesel and diesel-async.

use ::sqlx::Pool;
use ordid::{Assigned, KeyType as _, OrderedKey, Tracked, uuid::Uuid};
use ordid_diesel::{ChunkLimits, Flushed, OnConflict, UnitOfWork, Upserted};
use ordid_tests::{
    everyday::{Change, Engine, EverydayWork, Filled, Mark, Note, Person, Take},
    faults::Failed,
    servers::Client as _,
};

use crate::{NoteId, establish::Known, over::Over};

/// A database that has the entities.
pub trait Rows: Known<Database: Engine> {
    /// What a new connection is told first.
    const SETUP: &'static str;

    /// Adds a change of a note.
    fn note(work: &mut UnitOfWork<Self>, change: Change, note: &Note);

    /// Adds a change of a mark.
    fn mark(work: &mut UnitOfWork<Self>, change: Change, mark: &Mark);

    /// Adds a change of a receipt.
    fn receipt(work: &mut UnitOfWork<Self>, change: Change, id: Uuid, stars: i64) -> Filled;

    /// Adds a person.
    fn person(work: &mut UnitOfWork<Self>, take: Take, person: &Person);

    /// Returns what became of a person.
    fn became(flushed: &Flushed, person: Uuid) -> Option<Upserted>;
}

/// Defines the entities for a database, whose key columns have this type in `table!`. A new connection is told this
/// first.
macro_rules! database {
    ($module:ident: $backend:ty, $key:ident, $setup:expr) => {
        mod $module {
            use super::*;

            type Key = diesel::sql_types::$key;

            diesel::table! {
                use diesel::sql_types::{BigInt, Text};
                use super::Key;

                notes (id) {
                    id -> Key,
                    title -> Text,
                    version -> BigInt,
                    stars -> BigInt,
                }
            }

            diesel::table! {
                use diesel::sql_types::{BigInt, Integer, Text};
                use super::Key;

                marks (note, number) {
                    note -> Key,
                    number -> Integer,
                    title -> Text,
                    stars -> BigInt,
                }
            }

            diesel::table! {
                use diesel::sql_types::{BigInt, Nullable, Text};
                use super::Key;

                people (id) {
                    id -> Key,
                    mail -> Nullable<Text>,
                    name -> Text,
                    visits -> BigInt,
                }
            }

            diesel::table! {
                use diesel::sql_types::{BigInt, Nullable, Text};
                use super::Key;

                receipts (id) {
                    id -> Key,
                    stars -> BigInt,
                    luck -> BigInt,
                    #[sql_name = "doubled"]
                    twice -> BigInt,
                    remark -> Nullable<Text>,
                }
            }

            #[derive(OrderedKey)]
            #[diesel(table_name = receipts)]
            #[ordid(diesel, columns)]
            struct ReceiptRow {
                id: NoteId,
                #[ordid(returning)]
                luck: Assigned<i64>,
                stars: i64,
                #[ordid(returning)]
                twice: Assigned<i64>,
                #[ordid(returning)]
                remark: Assigned<Option<String>>,
            }

            #[derive(OrderedKey)]
            #[diesel(table_name = people)]
            #[ordid(diesel, columns)]
            struct PersonRow {
                id: NoteId,
                mail: Option<String>,
                name: String,
                visits: i64,
            }

            #[derive(OrderedKey)]
            #[diesel(table_name = marks, primary_key(note, number))]
            #[ordid(diesel, columns)]
            struct MarkRow {
                #[ordid(parent)]
                note: NoteId,
                number: i32,
                title: String,
                stars: i64,
            }

            #[derive(OrderedKey)]
            #[diesel(table_name = notes)]
            #[ordid(diesel, columns)]
            struct Row {
                id: NoteId,
                title: String,
                #[ordid(version)]
                version: i64,
                stars: i64,
            }

            impl Rows for $backend {
                const SETUP: &'static str = $setup;

                fn note(work: &mut UnitOfWork<Self>, change: Change, note: &Note) {
                    let row = Row {
                        id: NoteId::from_raw(note.id).expect("it is of the scheme"),
                        title: note.title.clone(),
                        version: note.version,
                        stars: note.stars,
                    };
                    add_change!(work, change, row: Row)
                }

                fn receipt(
                    work: &mut UnitOfWork<Self>,
                    change: Change,
                    id: Uuid,
                    stars: i64,
                ) -> Filled {
                    let row = ReceiptRow {
                        id: NoteId::from_raw(id).expect("it is of the scheme"),
                        luck: Assigned::new(),
                        stars,
                        twice: Assigned::new(),
                        remark: Assigned::new(),
                    };
                    let filled = Filled {
                        luck: row.luck.clone(),
                        doubled: row.twice.clone(),
                        remark: row.remark.clone(),
                    };
                    add_change!(work, change, row: ReceiptRow);
                    filled
                }

                fn person(work: &mut UnitOfWork<Self>, take: Take, person: &Person) {
                    let row = PersonRow {
                        id: NoteId::from_raw(person.id).expect("it is of the scheme"),
                        mail: person.mail.clone(),
                        name: person.name.clone(),
                        visits: person.visits,
                    };
                    match take {
                        Take::Upsert => work.upsert(row),
                        Take::Ignore => work.insert_or_ignore(row),
                        Take::UpsertUnreported => work.upsert_with(row, OnConflict::key().unreported()),
                        Take::IgnoreUnreported => {
                            work.upsert_with(row, OnConflict::key().ignore().unreported())
                        }
                        Take::NameByMail => {
                            let by_mail = OnConflict::of(PersonRow::mail).set(PersonRow::name);
                            work.upsert_with(row, by_mail)
                        }
                        Take::NameAndMailByMail => {
                            let by_mail = OnConflict::of(PersonRow::mail).set((PersonRow::name, PersonRow::mail));
                            work.upsert_with(row, by_mail)
                        }
                        Take::IgnoreByMail => {
                            work.upsert_with(row, OnConflict::of(PersonRow::mail).ignore())
                        }
                    };
                }

                fn became(flushed: &Flushed, person: Uuid) -> Option<Upserted> {
                    let key = NoteId::from_raw(person).expect("it is of the scheme");
                    flushed.upserted::<PersonRow>(key)
                }

                fn mark(work: &mut UnitOfWork<Self>, change: Change, mark: &Mark) {
                    let row = MarkRow {
                        note: NoteId::from_raw(mark.note).expect("it is of the scheme"),
                        number: mark.number,
                        title: mark.title.clone(),
                        stars: mark.stars,
                    };
                    add_change!(work, change, row: MarkRow)
                }
            }
        }
    };
}

database!(postgres: diesel::pg::Pg, Uuid, "");
database!(mysql: diesel::mysql::Mysql, Binary, "");
// Diesel's own connections wait for no lock; these wait as long as `SQLITE_WAIT`.
database!(sqlite: diesel::sqlite::Sqlite, Binary, "PRAGMA busy_timeout = 30000");

/// The unit of work, flushed over connections of a kind.
pub struct Work<O: Over>(UnitOfWork<O::Backend>);

impl<O: Over<Backend: Rows>> EverydayWork for Work<O> {
    type Database = <O::Backend as Known>::Database;

    const PREFIX: &'static str = O::PREFIX;

    fn begin() -> Self {
        Self(UnitOfWork::new())
    }

    fn in_chunks(mut self, limits: ChunkLimits) -> Self {
        self.0 = self.0.in_chunks(limits);
        self
    }

    fn note(&mut self, change: Change, note: &Note) {
        O::Backend::note(&mut self.0, change, note);
    }

    fn mark(&mut self, change: Change, mark: &Mark) {
        O::Backend::mark(&mut self.0, change, mark);
    }

    fn receipt(&mut self, change: Change, id: Uuid, stars: i64) -> Filled {
        O::Backend::receipt(&mut self.0, change, id, stars)
    }

    fn person(&mut self, take: Take, person: &Person) {
        O::Backend::person(&mut self.0, take, person);
    }

    fn became(flushed: &Flushed, person: Uuid) -> Option<Upserted> {
        O::Backend::became(flushed, person)
    }

    async fn flush(&mut self, pool: &Pool<Self::Database>) -> Result<Flushed, Failed> {
        let url = Self::Database::client_url(&pool.connect_options());
        let outcome = O::flush(&mut self.0, url, O::Backend::SETUP).await;
        outcome.map_err(|error| Failed::from(&error))
    }
}
