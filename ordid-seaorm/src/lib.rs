//! Ordered keys in PostgreSQL, MySQL, MariaDB and SQLite through [SeaORM](sea_orm) 2.
//!
//! ```text
//! $ cargo add ordid
//! $ cargo add ordid-seaorm --features postgres,runtime-tokio # or mysql, sqlite
//! $ cargo add sea-orm --features sqlx-postgres,runtime-tokio
//! ```
//!
#![doc = ordid_sql::documentation!(tasks)]
//! | insert without a unit of work | [`insert_all`], [`insert_or_skip`] |
//! | declare a table | [`create_table`] |
//!
//! The [guide](https://github.com/ordid/ordid/blob/main/docs/src/README.md) has a chapter for each task.
//!
//! SeaORM turns a key into a value without knowing the database, so a key type has one column for all of
//! them:
//!
//! | key type's `sea_orm(...)` | raw key | PostgreSQL | MySQL, MariaDB | SQLite | order kept |
//! |---|---|---|---|---|---|
//! | `uuid` | 128 bits | `uuid` | `BINARY(16)` | bytes in `uuid_text` | as bytes |
//! | `bytea` | 128 bits, `ObjectId`, `Key192` | `bytea` | `BINARY(n)` | `blob` | as bytes |
//! | `text` | 128 bits | `text COLLATE "C"` | `CHAR(36)`, ascii_bin | `char(36)` | as bytes |
//! | `char22`, `char26` | 128 bits | `text COLLATE "C"` | `CHAR(n)`, ascii_bin | `char(n)` | as bytes |
//! | `char20`, `char32` | `PushId`, `Key192` | `text COLLATE "C"` | `CHAR(n)`, ascii_bin | `char(n)` | as bytes |
//! | `bigint` | `i64` | `bigint` | `BIGINT` | `integer` | as numbers |
//! | `bigint_unsigned` | `u64` | | `BIGINT UNSIGNED` | | as numbers |
//! | `mariadb_uuid` | 128 bits | | MariaDB's `UUID` | | of versions 6 and 7, and of COMBs |
//!
//! A bare `sea_orm` means `uuid`; for `i64` `bigint`, for `u64` `bigint_unsigned`, for `ObjectId` and `Key192`
//! `bytea`, for `PushId` `char20`. A scheme that does not keep its order in the column does not compile;
//! where order does not matter, `sea_orm(unordered(uuid))` says so.
//!
//! Tables that SeaORM makes (`Schema::create_table_from_entity`, `schema-sync`) have these columns. The type of a
//! text key is then one text for all databases, of which each database reads its own part. [`create_table`]
//! writes the plain type for one database. A sync over existing tables logs that the type differs, and changes nothing.
//!
//! `uuid::Uuid` is a key type without a derive.
//!
//! # Example: a graph of rows in one transaction
//!
#![cfg_attr(feature = "sqlite", doc = "```")]
#![cfg_attr(not(feature = "sqlite"), doc = "```ignore")]
//! mod author {
//!     use ordid::{KeyType, OrderedKey, uuid::Uuid};
//!     use sea_orm::entity::prelude::*;
//!
//!     #[derive(KeyType)]
//!     #[ordid(sea_orm)]
//!     pub struct AuthorId(Uuid);
//!
//!     #[derive(Clone, Debug, PartialEq, OrderedKey, DeriveEntityModel)]
//!     #[sea_orm(table_name = "author")]
//!     pub struct Model {
//!         #[sea_orm(primary_key, auto_increment = false)]
//!         pub id: AuthorId,
//!         pub name: String,
//!     }
//!
//!     #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
//!     pub enum Relation {}
//!
//!     // For `insert` and `save`, which call hooks.
//!     ordid_seaorm::assign_before_save!(ActiveModel);
//! }
//!
//! mod book {
//!     use ordid::{KeyType, OrderedKey, uuid::Uuid};
//!     use sea_orm::entity::prelude::*;
//!
//!     #[derive(KeyType)]
//!     #[ordid(sea_orm)]
//!     pub struct BookId(Uuid);
//!
//!     #[derive(Clone, Debug, PartialEq, OrderedKey, DeriveEntityModel)]
//!     #[sea_orm(table_name = "book")]
//!     pub struct Model {
//!         #[sea_orm(primary_key, auto_increment = false)]
//!         pub id: BookId,
//!         #[ordid(parent)]
//!         pub author: super::author::AuthorId,
//!         pub title: String,
//!     }
//!
//!     #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
//!     pub enum Relation {
//!         #[sea_orm(belongs_to = "super::author::Entity", from = "Column::Author",
//!             to = "super::author::Column::Id")]
//!         Author,
//!     }
//!
//!     ordid_seaorm::assign_before_save!(ActiveModel);
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use ordid_seaorm::{UnitOfWork, create_table};
//! use sea_orm::{ActiveValue::{NotSet, Set}, ConnectionTrait, Database, EntityTrait, QueryOrder};
//!
//! let db = Database::connect("sqlite::memory:").await?;
//! db.execute(&create_table(db.get_database_backend(), author::Entity)).await?;
//! db.execute(&create_table(db.get_database_backend(), book::Entity)).await?;
//!
//! let mut work = UnitOfWork::new();
//! let ada = work.add(author::ActiveModel { id: NotSet, name: Set("Ada".into()) });
//! for title in ["Notes", "Letters"] {
//!     work.add(book::ActiveModel { id: NotSet, author: Set(ada), title: Set(title.into()) });
//! }
//! let flushed = work.flush(&db).await?;
//! assert_eq!(flushed.rows(), 3);
//!
//! let books = book::Entity::find().order_by_asc(book::Column::Id).all(&db).await?;
//! assert_eq!([&*books[0].title, &*books[1].title], ["Notes", "Letters"]);
//! # Ok(())
//! # }
//! ```
//!
//! Write `OrderedKey` before `DeriveEntityModel`: of several mistakes, the compiler then shows ordid's errors first.
//!
//! # Where keys come from
//!
//! | what is called | hooks | keys |
//! |---|---|---|
//! | `ActiveModel::insert`, `save`, and of nested models | yes | [`assign`] in `before_save`, or [`assign_before_save!`] |
//! | `Entity::insert`, `Entity::insert_many` | no | [`assign_keys`] |
//! | junction rows of nested models | yes | the same, where they have a key of their own |
//! | [`insert_all`], [`insert_or_skip`], [`UnitOfWork`], [`ShardedUnitOfWork`] | no | they assign |
//!
//! Leave the key of a new model `NotSet`: for `save`, a key that is set means "update this row". A model that nobody gives a key is refused by the database; but SQLite makes
//! one itself where the key is a number.
//!
//! # Minimum supported Rust version
//!
//! 1.94, as sea-orm 2.0.

#[cfg(test)]
extern crate self as ordid_seaorm;

mod assign;
mod assigned;
mod connection;
mod engine_macros;
mod entity;
mod failure;
mod flushes_table;
mod follower;
mod insert;
pub mod partitions;
mod schema;
mod sharded;
mod stored;
mod two_phase;
mod unit_of_work;

pub use assign::{assign, assign_keys};
pub use assigned::Assigned;
pub use connection::Begin;
pub use entity::{Binder, Entity};
pub use flushes_table::{create_flushes_table, flushes_table, remove_old_markers};
pub use follower::{FollowError, Follower, Over};
pub use insert::{insert_all, insert_or_skip};
pub use ordid_core::storage::{column, dialect};
#[doc(inline)]
pub use ordid_sql::for_applications::*;
pub use ordid_sql::{OrphanDecision, PreparedOrphan, Recovered};
pub use schema::create_table;
pub use sharded::ShardedUnitOfWork;
pub use stored::{SeaOrmColumn, StoredAs};
pub use two_phase::{prepared_orphans, recover_prepared};
pub use unit_of_work::{UnitOfWork, detect_engine};

/// Why rows were not written; its [`driver`](FlushError::driver) is SeaORM's error.
pub type Error = FlushError<sea_orm::DbErr>;

#[doc(hidden)]
pub use crate::__engine as engine;

/// The columns that `#[ordid(sea_orm(column))]` names.
///
/// `#[derive(KeyType)]` gives them to the macro of this name, which checks the order and implements the library's
/// traits for the key type.
pub mod engine {
    pub use crate::{
        __engine_entity as entity,
        assigned::cell,
        entity::{InModel, set, version_number},
    };
    pub use ordid_core::storage::column::names::any;
}

#[doc(hidden)]
pub mod __private {
    pub use ordid_core::{
        __private::{
            AssignedField, KeyField, KeyFields, KeyOf, NamedColumn, Native, Reads, keeps_order, str,
        },
        Fields, KeyType, OrderedKey,
        storage::dialect,
    };
    pub use sea_orm::{self, Value, prelude::async_trait, sea_query};

    pub use crate::entity::KeyedModel;
    #[cfg(feature = "postgres")]
    pub use crate::stored::try_get_array;
    pub use crate::stored::{
        StoredAs, array_type, column_type, from_value, null, to_value, try_from_u64, try_get,
    };
    pub use std::{
        convert::From,
        option::Option,
        primitive::{i128, u64},
        result::Result,
        string::String,
        vec::Vec,
    };
}
