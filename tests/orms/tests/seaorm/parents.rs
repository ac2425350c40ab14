//! Parents whose key has several columns: rows go behind them, also in trees and circles.

use ordid::{KeyType, OrderedKey as _, key::CompositeKey, uuid::Uuid};
use ordid_seaorm::UnitOfWork;
use ordid_tests::trials::Outcome;
use sea_orm::{
    ActiveValue::{NotSet, Set},
    ColumnTrait as _, ConnectionTrait as _, DatabaseConnection, DbBackend, EntityTrait as _,
    PaginatorTrait as _, QueryFilter as _,
};

use crate::Databases;

#[derive(KeyType)]
#[ordid(sea_orm)]
pub struct TenantId(Uuid);

#[derive(KeyType)]
#[ordid(sea_orm)]
pub struct FolderId(Uuid);

#[derive(KeyType)]
#[ordid(sea_orm)]
pub struct FileId(Uuid);

/// A folder in another folder of the same tenant, with a file that is shown first. `box` is a keyword of Rust, and `visit` an
/// argument in what the derive makes.
mod folder {
    use ordid::OrderedKey;
    use sea_orm::entity::prelude::*;

    use super::{FileId, FolderId, TenantId, file};

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel, OrderedKey)]
    #[sea_orm(table_name = "folders")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub tenant: TenantId,
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: FolderId,
        #[ordid(parent = ActiveModel(tenant, r#box))]
        pub r#box: Option<FolderId>,
        #[ordid(parent = file::ActiveModel(tenant, visit))]
        pub visit: Option<FileId>,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

mod file {
    use ordid::OrderedKey;
    use sea_orm::entity::prelude::*;

    use super::{FileId, FolderId, TenantId, folder};

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel, OrderedKey)]
    #[sea_orm(table_name = "files")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        #[ordid(parent = folder::ActiveModel(tenant, folder))]
        pub tenant: TenantId,
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: FileId,
        pub folder: FolderId,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

pub fn add(to: &mut Databases<'_>) {
    all!(to.on_all, "parents::";
        a_tree_of_such_keys_goes_in_root_first_and_out_leaves_first,
        a_circle_of_such_keys_is_cut_at_the_column_that_can_be_null,
    );
}

/// SQLite checks at the end of the statement. The trigger makes it check row by row, as MySQL does.
const ON_SQLITE: &str = "CREATE TRIGGER behind BEFORE INSERT ON folders WHEN NEW.box IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM folders WHERE (tenant, id) = (NEW.tenant, NEW.box))
    BEGIN SELECT RAISE(ABORT, 'the folder around it is missing'); END";

async fn create(db: &DatabaseConnection) -> Outcome {
    let backend = db.get_database_backend();
    let id = match backend {
        DbBackend::Postgres => "uuid",
        DbBackend::MySql => "BINARY(16)",
        _ => "BLOB",
    };
    let shown = "FOREIGN KEY (tenant, visit) REFERENCES files (tenant, id)";
    let (inline, behind) = match backend {
        DbBackend::Sqlite => (format!(", {shown}"), ON_SQLITE.to_owned()),
        _ => (String::new(), format!("ALTER TABLE folders ADD {shown}")),
    };
    let statements = [
        format!(
            "CREATE TABLE folders (tenant {id}, id {id}, box {id}, visit {id}, PRIMARY KEY (tenant, id), \
             FOREIGN KEY (tenant, box) REFERENCES folders (tenant, id){inline})"
        ),
        format!(
            "CREATE TABLE files (tenant {id}, id {id}, folder {id} NOT NULL, PRIMARY KEY (tenant, id), \
             FOREIGN KEY (tenant, folder) REFERENCES folders (tenant, id))"
        ),
        behind,
    ];
    for statement in statements {
        db.execute_unprepared(&statement).await?;
    }
    ordid_seaorm::create_flushes_table(db).await?;
    Ok(())
}

/// Makes folders, each of which is in the folder with the next larger key. So the order of their keys is the wrong one.
fn folders(tenant: TenantId) -> Vec<folder::ActiveModel> {
    let mut ids: Vec<_> = (0..50).map(|_| FolderId::generate()).collect();
    ids.reverse();
    let around = [None].into_iter().chain(ids.iter().copied().map(Some));
    let folder = |(id, around): (&FolderId, Option<FolderId>)| folder::ActiveModel {
        tenant: Set(tenant),
        id: Set(*id),
        // The root has no value at all.
        r#box: around.map_or(NotSet, |around| Set(Some(around))),
        visit: NotSet,
    };
    ids.iter().zip(around).map(folder).collect()
}

async fn a_tree_of_such_keys_goes_in_root_first_and_out_leaves_first(
    db: DatabaseConnection,
) -> Outcome {
    create(&db).await?;
    // The same ids of another tenant are other folders.
    let one = folders(TenantId::generate());
    let tenant = TenantId::generate();
    let other = one.iter().map(|folder| folder::ActiveModel {
        tenant: Set(tenant),
        ..folder.clone()
    });
    let all: Vec<_> = one.iter().cloned().chain(other).collect();
    let mut work = UnitOfWork::new();
    for folder in &all {
        work.add(folder.clone());
    }
    let flushed = work.flush(&db).await?;
    assert_eq!((flushed.rows(), flushed.updated()), (100, 0));
    let roots = folder::Entity::find().filter(folder::Column::Box.is_null());
    assert_eq!(roots.count(&db).await?, 2);
    for folder in &all {
        work.delete(folder.clone());
    }
    assert_eq!(work.flush(&db).await?.deleted(), 100);
    Ok(())
}

async fn a_circle_of_such_keys_is_cut_at_the_column_that_can_be_null(
    db: DatabaseConnection,
) -> Outcome {
    create(&db).await?;
    let tenant = TenantId::generate();
    let (id, file) = (FolderId::generate(), FileId::generate());
    let folder = folder::ActiveModel {
        tenant: Set(tenant),
        id: Set(id),
        r#box: NotSet,
        visit: Set(Some(file)),
    };
    let within = file::ActiveModel {
        tenant: Set(tenant),
        id: Set(file),
        folder: Set(id),
    };
    let mut work = UnitOfWork::new();
    let key = work.add(within.clone());
    assert_eq!(key, CompositeKey((tenant, file)));
    work.add(folder.clone());
    work.flush(&db).await?;
    let shown = folder::Entity::find().filter(folder::Column::Visit.eq(file));
    assert_eq!(shown.count(&db).await?, 1);
    let nullable = |parents: &[ordid::entity::Parent]| -> Vec<_> {
        parents
            .iter()
            .map(|it| (it.column(), it.is_nullable()))
            .collect()
    };
    let parents = nullable(folder::ActiveModel::PARENTS);
    assert_eq!(parents, [("box", true), ("visit", true)]);
    assert_eq!(nullable(file::ActiveModel::PARENTS), [("tenant", false)]);
    work.delete(folder);
    work.delete(within);
    assert_eq!(work.flush(&db).await?.deleted(), 2);
    Ok(())
}
