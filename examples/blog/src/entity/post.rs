//! What is written.

use ordid::{KeyType, OrderedKey, uuid::Uuid};
use sea_orm::entity::prelude::*;

use super::author::AuthorId;

/// `post_...`: its time is the one at which the post was published.
#[derive(KeyType)]
#[ordid(scheme = uuid_v7, prefix = "post", sea_orm)]
pub struct PostId(Uuid);

/// A post.
#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, OrderedKey, DeriveEntityModel)]
#[sea_orm(table_name = "post")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: PostId,
    #[ordid(parent)]
    pub author_id: AuthorId,
    /// Its name in addresses.
    #[sea_orm(unique)]
    pub slug: String,
    pub title: String,
    #[sea_orm(column_type = "Text")]
    pub body: String,
    #[sea_orm(belongs_to, from = "author_id", to = "id")]
    pub author: BelongsTo<super::author::Entity>,
    #[sea_orm(has_many, via = "post_tag")]
    pub tags: HasMany<super::tag::Entity>,
}

ordid_seaorm::assign_before_save!(ActiveModel);
