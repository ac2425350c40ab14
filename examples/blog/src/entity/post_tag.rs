//! Which posts have which tags.

use ordid::{KeyType, OrderedKey, uuid::Uuid};
use sea_orm::entity::prelude::*;

use super::{post::PostId, tag::TagId};

/// `link_...`
#[derive(KeyType)]
#[ordid(scheme = uuid_v7, prefix = "link", sea_orm)]
pub struct PostTagId(Uuid);

/// A post has a tag. It has a key of its own, by which a unit of work knows each row; that a pair is
/// there once is a constraint.
#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, Eq, OrderedKey, DeriveEntityModel)]
#[sea_orm(table_name = "post_tag")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: PostTagId,
    #[sea_orm(unique_key = "pair")]
    #[ordid(parent)]
    pub post_id: PostId,
    #[sea_orm(unique_key = "pair")]
    #[ordid(parent)]
    pub tag_id: TagId,
    #[sea_orm(belongs_to, from = "post_id", to = "id")]
    pub post: BelongsTo<super::post::Entity>,
    #[sea_orm(belongs_to, from = "tag_id", to = "id")]
    pub tag: BelongsTo<super::tag::Entity>,
}

ordid_seaorm::assign_before_save!(ActiveModel);
