//! What posts are about.

use ordid::{KeyType, OrderedKey, uuid::Uuid};
use sea_orm::entity::prelude::*;

/// `tag_...`
#[derive(KeyType)]
#[ordid(scheme = uuid_v7, prefix = "tag", sea_orm)]
pub struct TagId(Uuid);

/// A tag.
#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, OrderedKey, DeriveEntityModel)]
#[sea_orm(table_name = "tag")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: TagId,
    #[sea_orm(unique)]
    pub name: String,
    #[sea_orm(has_many, via = "post_tag")]
    pub posts: HasMany<super::post::Entity>,
}

ordid_seaorm::assign_before_save!(ActiveModel);
