// What the cases have in common: imports, the key type of authors, and their relation.

use ordid::{KeyType, OrderedKey, uuid::Uuid};
use sea_orm::entity::prelude::*;

#[derive(KeyType)]
#[ordid(sea_orm)]
pub struct AuthorId(Uuid);

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
