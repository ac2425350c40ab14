//! Tables of entities, with the collation that text keys need.

use ordid_core::storage::{ColumnOn, column::Text, dialect::Postgres};
use sea_orm::{
    DbBackend, EntityTrait, Schema,
    sea_query::{Alias, ColumnType, Table, TableCreateStatement},
};

use crate::stored::COLLATION;

/// Returns the `CREATE TABLE` of an entity as `Schema::create_table_from_entity` does, but for text keys
/// on PostgreSQL, which are declared `text COLLATE "C"`: under another collation they lose their order.
///
/// Where SeaORM makes the tables itself (`schema-sync`), say so in the model:
/// `#[sea_orm(primary_key, auto_increment = false, extra = "COLLATE \"C\"")]`, for PostgreSQL alone. All
/// other keys, and text keys on MySQL, MariaDB and SQLite, need nothing.
///
/// # Example
///
/// ```
/// # use ordid::{KeyType, OrderedKey, uuid::Uuid};
/// # use sea_orm::{DbBackend, entity::prelude::*};
/// #[derive(KeyType)]
/// #[ordid(sea_orm(char22))]
/// pub struct TagId(Uuid);
///
/// #[derive(Clone, Debug, PartialEq, DeriveEntityModel, OrderedKey)]
/// #[sea_orm(table_name = "tag")]
/// pub struct Model {
///     #[sea_orm(primary_key, auto_increment = false)]
///     pub id: TagId,
///     pub name: String,
/// }
/// # #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
/// # pub enum Relation {}
/// # impl ActiveModelBehavior for ActiveModel {}
///
/// # fn main() {
/// let table = ordid_seaorm::create_table(DbBackend::Postgres, Entity);
/// assert_eq!(
///     DbBackend::Postgres.build(&table).sql,
///     r#"CREATE TABLE "tag" ( "id" text COLLATE "C" NOT NULL PRIMARY KEY, "name" varchar NOT NULL )"#
/// );
/// # }
/// ```
pub fn create_table<E: EntityTrait>(backend: DbBackend, entity: E) -> TableCreateStatement {
    let made = Schema::new(backend).create_table_from_entity(entity);
    if backend != DbBackend::Postgres {
        return made;
    }
    // Its columns cannot be changed in place.
    let mut table = Table::create();
    if let Some(name) = made.get_table_name() {
        table.table(name.clone());
    }
    if let Some(comment) = made.get_comment() {
        table.comment(comment);
    }
    for column in made.get_columns() {
        let mut column = column.clone();
        if let Some(ColumnType::Custom(name)) = column.get_column_type()
            && name.to_string().ends_with(COLLATION)
        {
            column.custom(Alias::new(<Text as ColumnOn<Postgres>>::TYPE));
        }
        table.col(column);
    }
    for index in made.get_indexes() {
        table.primary_key(&mut index.clone());
    }
    for foreign_key in made.get_foreign_key_create_stmts() {
        table.foreign_key(&mut foreign_key.clone());
    }
    table
}
