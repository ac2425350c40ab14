//! The attribute has the database make the key.
//!
//! Imports, the key type and the relation, which several cases have in common, stand in
//! `shared/author.rs`.

include!("shared/author.rs");

#[derive(Clone, Debug, PartialEq, DeriveEntityModel, OrderedKey)]
#[sea_orm(table_name = "author")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = true)]
    pub id: AuthorId,
    pub name: String,
}

fn main() {}
