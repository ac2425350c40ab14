//! The first part of a key of several columns is a key type, in a model, too.

use ordid::OrderedKey;
use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, OrderedKey, DeriveEntityModel)]
#[sea_orm(table_name = "lines")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant: i64,
    #[sea_orm(primary_key, auto_increment = false)]
    pub number: i32,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

fn main() {}
