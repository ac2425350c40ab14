//! The entities of the tests.

use ordid::{KeyType, uuid::Uuid};
use ordid_seaorm::{Retry, UnitOfWork};
use ordid_tests::trials::Outcome;
use sea_orm::{
    ActiveValue::{NotSet, Set},
    DatabaseConnection, EntityTrait as _, PaginatorTrait as _,
};

#[derive(KeyType)]
#[ordid(sea_orm)]
pub struct AuthorId(Uuid);

#[derive(KeyType)]
#[ordid(sea_orm(char22), prefix = "book")]
pub struct BookId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = snowflake, sea_orm)]
pub struct TeamId(i64);

#[derive(KeyType)]
#[ordid(sea_orm(bytea))]
pub struct PersonId(Uuid);

/// In SeaORM's compact form, with a hook.
pub mod author {
    use ordid::OrderedKey;
    use sea_orm::entity::prelude::*;

    use super::AuthorId;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel, OrderedKey)]
    #[sea_orm(table_name = "author")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: AuthorId,
        #[sea_orm(unique)]
        pub name: String,
        #[sea_orm(column_name = "order", default_value = 7)]
        pub position: i32,
        /// Of the same table.
        #[ordid(parent)]
        pub mentor: Option<AuthorId>,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {
        #[sea_orm(has_many = "super::book::Entity")]
        Book,
        #[sea_orm(belongs_to = "Entity", from = "Column::Mentor", to = "Column::Id")]
        Mentor,
    }

    impl Related<super::book::Entity> for Entity {
        fn to() -> RelationDef {
            Relation::Book.def()
        }
    }

    ordid_seaorm::assign_before_save!(ActiveModel);
}

/// A child, whose key is text.
pub mod book {
    use ordid::OrderedKey;
    use sea_orm::entity::prelude::*;

    use super::{AuthorId, BookId};

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel, OrderedKey)]
    #[sea_orm(table_name = "book")]
    pub struct Model {
        /// Before the key.
        pub title: String,
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: BookId,
        #[ordid(parent)]
        pub author_id: AuthorId,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {
        #[sea_orm(
            belongs_to = "super::author::Entity",
            from = "Column::AuthorId",
            to = "super::author::Column::Id"
        )]
        Author,
    }

    impl Related<super::author::Entity> for Entity {
        fn to() -> RelationDef {
            Relation::Author.def()
        }
    }

    ordid_seaorm::assign_before_save!(ActiveModel);
}

/// A team and its people refer to each other. Its keys are made by a node of one's own.
pub mod team {
    use ordid::OrderedKey;
    use sea_orm::entity::prelude::*;

    use super::{PersonId, TeamId};

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel, OrderedKey)]
    #[sea_orm(table_name = "team")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        #[ordid(key)]
        pub id: TeamId,
        #[ordid(parent)]
        pub lead: Option<PersonId>,
        #[sea_orm(ignore)]
        pub seen: bool,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

pub mod person {
    use ordid::OrderedKey;
    use sea_orm::entity::prelude::*;

    use super::{PersonId, TeamId};

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel, OrderedKey)]
    #[sea_orm(table_name = "person")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: PersonId,
        #[ordid(parent)]
        pub team: TeamId,
        pub age: i32,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {
        #[sea_orm(
            belongs_to = "super::team::Entity",
            from = "Column::Team",
            to = "super::team::Column::Id"
        )]
        Team,
    }

    ordid_seaorm::assign_before_save!(ActiveModel);
}

/// In SeaORM's entity-first form, with raw keys and a parent by name.
pub mod album {
    use ordid::{OrderedKey, uuid::Uuid};
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel, OrderedKey)]
    #[sea_orm(table_name = "album")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        #[ordid(key)]
        pub id: Uuid,
        pub name: String,
        #[sea_orm(has_many)]
        pub songs: HasMany<super::song::Entity>,
    }

    ordid_seaorm::assign_before_save!(ActiveModel);
}

pub mod song {
    use ordid::{OrderedKey, uuid::Uuid};
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel, OrderedKey)]
    #[sea_orm(table_name = "song")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        #[ordid(parent = super::album::ActiveModel)]
        pub album_id: Uuid,
        pub title: String,
        #[sea_orm(belongs_to, from = "album_id", to = "id")]
        pub album: HasOne<super::album::Entity>,
    }

    ordid_seaorm::assign_before_save!(ActiveModel);
}

/// Five authors with so many books each.
pub fn written(retry: Retry, books: usize) -> UnitOfWork {
    let mut work = UnitOfWork::new().with_retry(retry);
    for number in 0..5 {
        let author = work.add(author::Model {
            id: AuthorId::generate(),
            name: number.to_string(),
            position: number,
            mentor: None,
        });
        for title in 0..books {
            work.add(book::ActiveModel {
                id: NotSet,
                title: Set(title.to_string()),
                author_id: Set(author),
            });
        }
    }
    work
}

/// Counts authors and books.
pub async fn count(db: &DatabaseConnection) -> Outcome<usize> {
    let books = book::Entity::find().count(db).await?;
    let authors = author::Entity::find().count(db).await?;
    Ok(usize::try_from(authors + books)?)
}

/// Deletes them.
pub async fn empty(db: &DatabaseConnection) -> Outcome {
    book::Entity::delete_many().exec(db).await?;
    author::Entity::delete_many().exec(db).await?;
    Ok(())
}
