//! Tables of entities: the types of text keys, which SeaORM declares alike in all databases.

use ordid_core::storage::{ColumnOn, column::Text, dialect::Postgres};
use sea_orm::{
    DbBackend, EntityTrait, Schema,
    sea_query::{Alias, ColumnType, IntoIden as _, Table, TableCreateStatement},
};

/// `char(22)` with the collation under which text compares as bytes, for whichever database reads it,
/// since SeaORM asks for one type for all of them. Each takes another part for a comment:
///
/// ```text
/// /* /* */ char(22) /*! CHARACTER SET ascii COLLATE ascii_bin */ -- */ text COLLATE "C"
/// /**/
/// ```
///
/// - Comments of PostgreSQL nest, so it reads what follows the last `*/`, up to the end of the line.
/// - MySQL and MariaDB read what is between the first two comments, and what is in `/*! */`; with `-- ` the
///   rest is a comment.
/// - SQLite reads the same but for `/*! */`. Its text compares as bytes unless told otherwise.
pub(crate) fn text(length: u8) -> ColumnType {
    let postgres = <Text as ColumnOn<Postgres>>::TYPE;
    let ty = format!("{BEGIN}char({length}){ON_MYSQL}{ON_POSTGRES}{postgres}{END}");
    ColumnType::Custom(Alias::new(ty).into_iden())
}

const BEGIN: &str = "/* /* */ ";
const ON_MYSQL: &str = " /*! CHARACTER SET ascii COLLATE ascii_bin */";
const ON_POSTGRES: &str = " -- */ ";
/// SQLite takes white space off the end of a column that is added, and a comment would go on.
const END: &str = "\n/**/";

/// Returns what one database reads of such a type.
fn plain(ty: &str, backend: DbBackend) -> Option<String> {
    let both = ty.strip_prefix(BEGIN)?.strip_suffix(END)?;
    let (other, postgres) = both.split_once(ON_POSTGRES)?;
    let sqlite = other.strip_suffix(ON_MYSQL)?;
    Some(match backend {
        DbBackend::Postgres => postgres.to_owned(),
        DbBackend::MySql => other.replace("/*! ", "").replace(" */", ""),
        _ => sqlite.to_owned(),
    })
}

/// Returns the `CREATE TABLE` of an entity as `Schema::create_table_from_entity` does, with the types of
/// text keys as people would write them for this database: for migrations that are read.
///
/// What SeaORM makes by itself, by [`Schema`], `SchemaBuilder::apply` or `sync` (`schema-sync`), declares the
/// same columns: a text key's type is then one text for all databases, in which each skips the others'
/// part as a comment.
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
/// #[derive(Clone, Debug, PartialEq, OrderedKey, DeriveEntityModel)]
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
/// let sql = |backend: DbBackend| backend.build(&ordid_seaorm::create_table(backend, Entity)).sql;
/// assert_eq!(
///     sql(DbBackend::Postgres),
///     r#"CREATE TABLE "tag" ( "id" text COLLATE "C" NOT NULL PRIMARY KEY, "name" varchar NOT NULL )"#
/// );
/// assert_eq!(
///     sql(DbBackend::MySql),
///     "CREATE TABLE `tag` ( `id` char(22) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY, \
///      `name` varchar(255) NOT NULL )"
/// );
/// assert_eq!(
///     sql(DbBackend::Sqlite),
///     r#"CREATE TABLE "tag" ( "id" char(22) NOT NULL PRIMARY KEY, "name" varchar NOT NULL )"#
/// );
/// # }
/// ```
pub fn create_table<E: EntityTrait>(backend: DbBackend, entity: E) -> TableCreateStatement {
    let made = Schema::new(backend).create_table_from_entity(entity);
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
            && let Some(plain) = plain(&name.to_string(), backend)
        {
            column.custom(Alias::new(plain));
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
