//! The primary key has two columns, one of which SeaORM would have the database make.
//!
//! Imports, the key type and the relation, which several cases have in common, stand in
//! `shared/author.rs`.

include!("shared/author.rs");

#[derive(Clone, Debug, PartialEq, DeriveEntityModel, OrderedKey)]
#[sea_orm(table_name = "author")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: AuthorId,
    #[sea_orm(primary_key)]
    pub year: i32,
}

fn main() {}
