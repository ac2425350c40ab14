//! `#[derive(KeyType)]` is missing. SeaORM's derives, too, report errors, and ours comes first, as `OrderedKey` stands before
//! `DeriveEntityModel`.

use ordid::{OrderedKey, uuid::Uuid};
use sea_orm::entity::prelude::*;

pub struct AuthorId(Uuid);

#[derive(Clone, Debug, PartialEq, OrderedKey, DeriveEntityModel)]
#[sea_orm(table_name = "author")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: AuthorId,
    pub name: String,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

fn main() {}
