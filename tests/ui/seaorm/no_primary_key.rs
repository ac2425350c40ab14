//! No field is the primary key.
//!
//! Imports, the key type and the relation, which several cases have in common, stand in
//! `shared/author.rs`.

include!("shared/author.rs");

#[derive(Clone, Debug, PartialEq, DeriveEntityModel, OrderedKey)]
#[sea_orm(table_name = "author")]
pub struct Model {
    pub id: AuthorId,
    pub name: String,
}

fn main() {}
