//! tokio-postgres.

use ::sqlx::{Pool, Postgres};
use ordid::{Assigned, KeyType as _, OrderedKey, Tracked, uuid::Uuid};
use ordid_tests::{
    everyday::{Change, EverydayWork, Filled, Mark, Note, Person, Take},
    faults::Failed,
    servers::Client as _,
};
use ordid_tokio_postgres::{Flushed, OnConflict, UnitOfWork, Upserted};

use crate::{
    NoteId,
    tokio::{PREFIX, connect},
};

#[derive(OrderedKey)]
#[ordid(table = "notes", columns)]
struct Row {
    id: NoteId,
    title: String,
    #[ordid(version)]
    version: i64,
    stars: i64,
}

#[derive(OrderedKey)]
#[ordid(table = "marks", columns)]
struct MarkRow {
    #[ordid(key, parent)]
    note: NoteId,
    #[ordid(key)]
    number: i32,
    title: String,
    stars: i64,
}

#[derive(OrderedKey)]
#[ordid(table = "people", columns)]
struct PersonRow {
    id: NoteId,
    mail: Option<String>,
    name: String,
    visits: i64,
}

#[derive(OrderedKey)]
#[ordid(table = "receipts", columns)]
struct ReceiptRow {
    id: NoteId,
    #[ordid(returning)]
    luck: Assigned<i64>,
    stars: i64,
    #[ordid(returning, column = "doubled")]
    twice: Assigned<i64>,
    #[ordid(returning)]
    remark: Assigned<Option<String>>,
}

/// The unit of work.
pub struct Work(UnitOfWork);

impl EverydayWork for Work {
    type Database = Postgres;

    const PREFIX: &'static str = PREFIX;

    fn begin() -> Self {
        Self(UnitOfWork::new())
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
            Take::NameByMail => {
                let by_mail = OnConflict::of(PersonRow::mail).set(PersonRow::name);
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

    async fn flush(&mut self, pool: &Pool<Postgres>) -> Result<Flushed, Failed> {
        let url = Postgres::client_url(&pool.connect_options());
        let outcome = self.0.flush_with(|| connect(&url)).await;
        outcome.map_err(|error| Failed::from(&error))
    }
}
