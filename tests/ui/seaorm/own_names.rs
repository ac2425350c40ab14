use ordid::{KeyType, OrderedKey, uuid::Uuid};
use sea_orm::entity::prelude::*;

#[derive(KeyType)]
#[ordid(sea_orm)]
pub struct NoteId(Uuid);

#[derive(Clone, Debug, PartialEq, DeriveEntityModel, OrderedKey)]
#[sea_orm(table_name = "notes")]
#[ordid(schema = "shop")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    #[ordid(column = "note_id")]
    pub id: NoteId,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

fn main() {}
