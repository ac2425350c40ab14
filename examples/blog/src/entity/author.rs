//! Who writes.

use ordid::{KeyType, OrderedKey, uuid::Uuid};
use sea_orm::entity::prelude::*;

/// `author_...`
#[derive(KeyType)]
#[ordid(scheme = uuid_v7, prefix = "author", sea_orm)]
pub struct AuthorId(Uuid);

/// An author.
#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, OrderedKey, DeriveEntityModel)]
#[sea_orm(table_name = "author")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: AuthorId,
    #[sea_orm(unique)]
    pub name: String,
    #[sea_orm(has_many)]
    pub posts: HasMany<super::post::Entity>,
}

ordid_seaorm::assign_before_save!(ActiveModel);
