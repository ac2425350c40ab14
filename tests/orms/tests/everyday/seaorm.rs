//! `SeaORM`.

use std::marker::PhantomData;

use ::sqlx::Pool;
use ordid::{KeyType as _, uuid::Uuid};
use ordid_seaorm::{Assigned, ChunkLimits, Flushed, OnConflict, UnitOfWork, Upserted};
use ordid_tests::{
    everyday::{Change, Engine, EverydayWork, Filled, Mark, Note, Person, Take},
    faults::Failed,
};
use sea_orm::{ActiveValue::Set, IntoActiveModel as _};

use crate::{NoteId, connect::Connect};

/// Does the same as `add_change!` for an `ActiveModel`, which knows which of its columns have changed.
macro_rules! add_model_change {
    ($work:expr, $change:expr, $row:ident: $columns:expr) => {
        add_change!(
            $work,
            $change,
            $row,
            $columns,
            {
                let stars = Set($row.stars);
                let mut row = $row.into_active_model();
                row.stars = stars;
                $work.update(row);
            },
            $row
        )
    };
}

mod note {
    use ordid::OrderedKey;
    use sea_orm::entity::prelude::*;

    use crate::NoteId;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel, OrderedKey)]
    #[sea_orm(table_name = "notes")]
    #[ordid(columns)]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: NoteId,
        pub title: String,
        #[ordid(version)]
        pub version: i64,
        pub stars: i64,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

mod mark {
    use ordid::OrderedKey;
    use sea_orm::entity::prelude::*;

    use crate::NoteId;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel, OrderedKey)]
    #[sea_orm(table_name = "marks")]
    #[ordid(columns)]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        #[ordid(parent)]
        pub note: NoteId,
        #[sea_orm(primary_key, auto_increment = false)]
        pub number: i32,
        pub title: String,
        pub stars: i64,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

mod person {
    use ordid::OrderedKey;
    use sea_orm::entity::prelude::*;

    use crate::NoteId;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel, OrderedKey)]
    #[sea_orm(table_name = "people")]
    #[ordid(columns)]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: NoteId,
        pub mail: Option<String>,
        pub name: String,
        pub visits: i64,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

mod receipt {
    use ordid::OrderedKey;
    use ordid_seaorm::Assigned;
    use sea_orm::entity::prelude::*;

    use crate::NoteId;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel, OrderedKey)]
    #[sea_orm(table_name = "receipts")]
    #[ordid(columns)]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: NoteId,
        #[ordid(returning)]
        pub luck: Assigned<i64>,
        pub stars: i64,
        #[ordid(returning)]
        #[sea_orm(column_name = "doubled")]
        pub twice: Assigned<i64>,
        #[ordid(returning)]
        pub remark: Assigned<Option<String>>,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// The unit of work, for a database.
pub struct Work<DB> {
    work: UnitOfWork,
    database: PhantomData<fn() -> DB>,
}

impl<DB: Connect + Engine> EverydayWork for Work<DB> {
    type Database = DB;

    const PREFIX: &'static str = "seaorm::";

    fn begin() -> Self {
        Self {
            work: UnitOfWork::new(),
            database: PhantomData,
        }
    }

    fn in_chunks(mut self, limits: ChunkLimits) -> Self {
        self.work = self.work.in_chunks(limits);
        self
    }

    fn note(&mut self, change: Change, note: &Note) {
        let row = note::Model {
            id: NoteId::from_raw(note.id).expect("it is of the scheme"),
            title: note.title.clone(),
            version: note.version,
            stars: note.stars,
        };
        add_model_change!(self.work, change, row: note::Model::stars)
    }

    fn mark(&mut self, change: Change, mark: &Mark) {
        let row = mark::Model {
            note: NoteId::from_raw(mark.note).expect("it is of the scheme"),
            number: mark.number,
            title: mark.title.clone(),
            stars: mark.stars,
        };
        add_model_change!(self.work, change, row: mark::Model::stars)
    }

    fn receipt(&mut self, change: Change, id: Uuid, stars: i64) -> Filled {
        let row = receipt::Model {
            id: NoteId::from_raw(id).expect("it is of the scheme"),
            luck: Assigned::new(),
            stars,
            twice: Assigned::new(),
            remark: Assigned::new(),
        };
        // The fields dereference to `ordid::Assigned`.
        let filled = Filled {
            luck: (*row.luck).clone(),
            doubled: (*row.twice).clone(),
            remark: (*row.remark).clone(),
        };
        add_model_change!(self.work, change, row: receipt::Model::stars);
        filled
    }

    fn person(&mut self, take: Take, person: &Person) {
        let row = person::Model {
            id: NoteId::from_raw(person.id).expect("it is of the scheme"),
            mail: person.mail.clone(),
            name: person.name.clone(),
            visits: person.visits,
        };
        match take {
            Take::Upsert => self.work.upsert(row),
            Take::Ignore => self.work.insert_or_ignore(row),
            Take::UpsertUnreported => self.work.upsert_with(row, OnConflict::key().unreported()),
            Take::IgnoreUnreported => self
                .work
                .upsert_with(row, OnConflict::key().ignore().unreported()),
            Take::NameByMail => {
                let by_mail = OnConflict::of(person::Model::mail).set(person::Model::name);
                self.work.upsert_with(row, by_mail)
            }
            Take::NameAndMailByMail => {
                let by_mail = OnConflict::of(person::Model::mail)
                    .set((person::Model::name, person::Model::mail));
                self.work.upsert_with(row, by_mail)
            }
            Take::IgnoreByMail => {
                let by_mail = OnConflict::of(person::Model::mail).ignore();
                self.work.upsert_with(row, by_mail)
            }
        };
    }

    fn became(flushed: &Flushed, person: Uuid) -> Option<Upserted> {
        let key = NoteId::from_raw(person).expect("it is of the scheme");
        flushed.upserted::<person::ActiveModel>(key)
    }

    async fn flush(&mut self, pool: &Pool<DB>) -> Result<Flushed, Failed> {
        let outcome = self.work.flush(&DB::connect(pool.clone())).await;
        outcome.map_err(|error| Failed::from(&error))
    }
}
