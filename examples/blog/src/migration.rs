//! The tables, migration by migration.

use sea_orm_migration::{prelude::*, sea_orm::sea_query::ValueType};

use crate::entity::{author::AuthorId, post::PostId, post_tag::PostTagId, tag::TagId};

/// All migrations, in order.
pub(crate) struct Migrator;

impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![Box::new(Blog), Box::new(Flushes)]
    }
}

struct Blog;

impl MigrationName for Blog {
    fn name(&self) -> &'static str {
        "m20261101_000000_blog"
    }
}

/// A column of keys: the type is that in which the database keeps their order.
fn key<K: ValueType>(name: &'static str) -> ColumnDef {
    let mut column = ColumnDef::new_with_type(name, K::column_type());
    column.not_null();
    column
}

/// Names are short enough for every engine's unique index.
fn name(name: &'static str) -> ColumnDef {
    let mut column = ColumnDef::new(name);
    column.string_len(200).not_null();
    column
}

fn refers(
    table: &'static str,
    column: &'static str,
    to: &'static str,
) -> ForeignKeyCreateStatement {
    ForeignKey::create()
        .name(format!("{table}_{column}"))
        .from(table, column)
        .to(to, "id")
        .take()
}

#[async_trait::async_trait]
#[allow(
    elided_lifetimes_in_paths,
    reason = "the trait writes it so, and is matched to the letter"
)]
impl MigrationTrait for Blog {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let author = Table::create()
            .table("author")
            .col(key::<AuthorId>("id").primary_key())
            .col(name("name").unique_key())
            .take();
        let tag = Table::create()
            .table("tag")
            .col(key::<TagId>("id").primary_key())
            .col(name("name").unique_key())
            .take();
        let post = Table::create()
            .table("post")
            .col(key::<PostId>("id").primary_key())
            .col(key::<AuthorId>("author_id"))
            .col(name("slug").unique_key())
            .col(name("title"))
            .col(ColumnDef::new("body").text().not_null())
            .foreign_key(&mut refers("post", "author_id", "author"))
            .take();
        let post_tag = Table::create()
            .table("post_tag")
            .col(key::<PostTagId>("id").primary_key())
            .col(key::<PostId>("post_id"))
            .col(key::<TagId>("tag_id"))
            .foreign_key(&mut refers("post_tag", "post_id", "post"))
            .foreign_key(&mut refers("post_tag", "tag_id", "tag"))
            .take();
        for table in [author, tag, post, post_tag] {
            manager.create_table(table).await?;
        }
        let pairs = Index::create()
            .name("post_tag_pair")
            .table("post_tag")
            .col("post_id")
            .col("tag_id")
            .unique()
            .take();
        manager.create_index(pairs).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in ["post_tag", "post", "tag", "author"] {
            manager
                .drop_table(Table::drop().table(table).take())
                .await?;
        }
        Ok(())
    }
}

/// The table by which updates and deletes of a unit of work are known, if the answer to COMMIT is lost.
struct Flushes;

impl MigrationName for Flushes {
    fn name(&self) -> &'static str {
        "m20261101_000001_ordid_flushes"
    }
}

#[async_trait::async_trait]
#[allow(
    elided_lifetimes_in_paths,
    reason = "the trait writes it so, and is matched to the letter"
)]
impl MigrationTrait for Flushes {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.create_table(ordid_seaorm::flushes_table()).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let table = Table::drop().table("ordid_flushes").take();
        manager.drop_table(table).await
    }
}

#[cfg(test)]
mod tests {
    use ordid::KeyType as _;
    use ordid_seaorm::UnitOfWork;
    use sea_orm_migration::sea_orm::Database;

    use super::*;
    use crate::entity::tag;

    #[tokio::test]
    async fn after_the_migrations_a_unit_of_work_updates_and_deletes() {
        let db = Database::connect("sqlite::memory:").await.unwrap();
        Migrator::up(&db, None).await.unwrap();
        let tags = ["order", "keys"].map(|name| tag::Model {
            id: TagId::generate(),
            name: name.to_owned(),
        });
        let mut work = UnitOfWork::new();
        work.add(tags[0].clone());
        work.add(tags[1].clone());
        work.flush(&db).await.unwrap();
        let [mut renamed, gone] = tags;
        renamed.name = "orders".to_owned();
        work.update(renamed);
        work.delete(gone);
        let flushed = work.flush(&db).await.unwrap();
        assert_eq!((flushed.updated(), flushed.deleted()), (1, 1));
        assert_eq!(ordid_seaorm::remove_old_markers(&db).await.unwrap(), 0);
        Migrator::down(&db, Some(1)).await.unwrap();
        let missing = ordid_seaorm::remove_old_markers(&db).await.unwrap_err();
        assert!(missing.is_flushes_table_missing(), "{missing}");
    }
}
