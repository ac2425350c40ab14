//! Entities of the libraries that ask nothing of an entity beside its derive: `SQLx`, rusqlite, tokio-postgres and mysql_async.

use ::sqlx::Pool;
use ordid::{Assigned, KeyType as _, OrderedKey, Tracked, uuid::Uuid};
use ordid_sqlx::{ChunkLimits, Entity, Flushed, OnConflict, Upserted};
use ordid_tests::{
    everyday::{Change, Engine, EverydayWork, Filled, Mark, Note, Person, Take},
    faults::Failed,
    servers::Client as _,
};

use crate::{
    NoteId,
    works::{MysqlAsync, Plain, PostgresCrate, Rusqlite, TokioPostgres},
};

#[derive(OrderedKey)]
#[ordid(table = "notes", columns)]
pub struct Row {
    pub id: NoteId,
    pub title: String,
    #[ordid(version)]
    pub version: i64,
    pub stars: i64,
}

#[derive(OrderedKey)]
#[ordid(table = "marks", columns)]
pub struct MarkRow {
    #[ordid(key, parent)]
    pub note: NoteId,
    #[ordid(key)]
    pub number: i32,
    pub title: String,
    pub stars: i64,
}

#[derive(OrderedKey)]
#[ordid(table = "people", columns)]
pub struct PersonRow {
    pub id: NoteId,
    pub mail: Option<String>,
    pub name: String,
    pub visits: i64,
}

#[derive(OrderedKey)]
#[ordid(table = "receipts", columns)]
pub struct ReceiptRow {
    pub id: NoteId,
    #[ordid(returning)]
    pub luck: Assigned<i64>,
    pub stars: i64,
    #[ordid(returning, column = "doubled")]
    pub twice: Assigned<i64>,
    #[ordid(returning)]
    pub remark: Assigned<Option<String>>,
}

/// Writes the functions of `EverydayWork` that change the unit of work in the field `0`. `OnConflict` is the same type in
/// all libraries.
macro_rules! changes {
    () => {
            fn in_chunks(mut self, limits: ChunkLimits) -> Self {
                self.0 = self.0.in_chunks(limits);
                self
            }

            fn note(&mut self, change: Change, note: &Note) {
                let row = Row {
                    id: NoteId::from_raw(note.id).expect("it is of the scheme"),
                    title: note.title.clone(),
                    version: note.version,
                    stars: note.stars,
                };
                add_change!(self.0, change, row: Row)
            }

            fn mark(&mut self, change: Change, mark: &Mark) {
                let row = MarkRow {
                    note: NoteId::from_raw(mark.note).expect("it is of the scheme"),
                    number: mark.number,
                    title: mark.title.clone(),
                    stars: mark.stars,
                };
                add_change!(self.0, change, row: MarkRow)
            }

            fn receipt(&mut self, change: Change, id: Uuid, stars: i64) -> Filled {
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
                add_change!(self.0, change, row: ReceiptRow);
                filled
            }

            fn person(&mut self, take: Take, person: &Person) {
                let row = PersonRow {
                    id: NoteId::from_raw(person.id).expect("it is of the scheme"),
                    mail: person.mail.clone(),
                    name: person.name.clone(),
                    visits: person.visits,
                };
                match take {
                    Take::Upsert => self.0.upsert(row),
                    Take::Ignore => self.0.insert_or_ignore(row),
                    Take::UpsertUnreported => self.0.upsert_with(row, OnConflict::key().unreported()),
                    Take::IgnoreUnreported => {
                        self.0.upsert_with(row, OnConflict::key().ignore().unreported())
                    }
                    Take::NameByMail => {
                        let by_mail = OnConflict::of(PersonRow::mail).set(PersonRow::name);
                        self.0.upsert_with(row, by_mail)
                    }
                    Take::NameAndMailByMail => {
                        let by_mail = OnConflict::of(PersonRow::mail).set((PersonRow::name, PersonRow::mail));
                        self.0.upsert_with(row, by_mail)
                    }
                    Take::IgnoreByMail => {
                        let by_mail = OnConflict::of(PersonRow::mail).ignore();
                        self.0.upsert_with(row, by_mail)
                    }
                };
            }

            fn became(flushed: &Flushed, person: Uuid) -> Option<Upserted> {
                flushed.upserted::<PersonRow>(NoteId::from_raw(person).expect("it is of the scheme"))
            }
    };
}

macro_rules! everyday_work {
    ($($work:ident)+) => {$(
        impl EverydayWork for $work {
            type Database = <Self as Plain>::Database;

            const PREFIX: &'static str = <Self as Plain>::PREFIX;

            fn begin() -> Self {
                Self::default()
            }

            changes!();

            async fn flush(&mut self, pool: &Pool<Self::Database>) -> Result<Flushed, Failed> {
                let url = Self::Database::client_url(&pool.connect_options());
                self.flush_to(url).await
            }
        }
    )+};
}

everyday_work! { Rusqlite MysqlAsync TokioPostgres PostgresCrate }

/// The unit of work of `SQLx`.
pub struct Sqlx<DB: Engine>(ordid_sqlx::UnitOfWork<DB>);

impl<DB: Engine> EverydayWork for Sqlx<DB>
where
    Row: Entity<DB>,
    MarkRow: Entity<DB>,
    PersonRow: Entity<DB>,
    ReceiptRow: Entity<DB>,
{
    type Database = DB;

    const PREFIX: &'static str = "";

    fn begin() -> Self {
        Self(ordid_sqlx::UnitOfWork::new())
    }

    changes!();

    async fn flush(&mut self, pool: &Pool<DB>) -> Result<Flushed, Failed> {
        let outcome = self.0.flush(pool).await;
        outcome.map_err(|error| Failed::from(&error))
    }
}
