use ordid::{KeyType, OrderedKey, uuid::Uuid};
use sea_orm::entity::prelude::*;

#[derive(KeyType)]
#[ordid(sea_orm)]
pub struct AuthorId(Uuid);

#[derive(OrderedKey)]
#[sea_orm::model]
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "author")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: AuthorId,
    pub name: String,
}

impl ActiveModelBehavior for ActiveModel {}

fn main() {}
