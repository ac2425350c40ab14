//! Parents whose key has several columns. Rows are inserted after them, also in trees and circles.

use ordid::{KeyType, OrderedKey, key::CompositeKey, uuid::Uuid};
use ordid_sqlx::UnitOfWork;
use sqlx::{Sqlite, SqlitePool, pool::PoolOptions};

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[derive(KeyType)]
#[ordid(sqlx)]
struct TenantId(Uuid);

#[derive(KeyType)]
#[ordid(sqlx)]
struct FolderId(Uuid);

#[derive(KeyType)]
#[ordid(sqlx)]
struct FileId(Uuid);

/// A folder in another folder of the same tenant, with a file that is shown first.
#[derive(OrderedKey, Clone)]
#[ordid(table = "folders")]
struct Folder {
    #[ordid(key)]
    tenant: TenantId,
    #[ordid(key)]
    id: FolderId,
    #[ordid(parent = Self(tenant, within))]
    within: Option<FolderId>,
    #[ordid(parent = File(tenant, first))]
    first: Option<FileId>,
}

#[derive(OrderedKey)]
#[ordid(table = "files")]
struct File {
    #[ordid(key, parent = Folder(tenant, folder))]
    tenant: TenantId,
    #[ordid(key)]
    id: FileId,
    folder: FolderId,
}

const TABLES: &str = "
    PRAGMA foreign_keys = ON;
    CREATE TABLE folders (tenant BLOB, id BLOB, within BLOB, first BLOB, PRIMARY KEY (tenant, id),
        FOREIGN KEY (tenant, within) REFERENCES folders (tenant, id),
        FOREIGN KEY (tenant, first) REFERENCES files (tenant, id));
    CREATE TABLE files (tenant BLOB, id BLOB, folder BLOB NOT NULL, PRIMARY KEY (tenant, id),
        FOREIGN KEY (tenant, folder) REFERENCES folders (tenant, id));
    -- The triggers check row by row, as MySQL does, and not at the end of the statement.
    CREATE TRIGGER behind BEFORE INSERT ON folders WHEN NEW.within IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM folders WHERE (tenant, id) = (NEW.tenant, NEW.within))
        BEGIN SELECT RAISE(ABORT, 'the folder around it is missing'); END;
    CREATE TRIGGER empty BEFORE DELETE ON folders
        WHEN EXISTS (SELECT 1 FROM folders WHERE (tenant, within) = (OLD.tenant, OLD.id))
        BEGIN SELECT RAISE(ABORT, 'a folder in it is left'); END";

async fn database() -> Result<SqlitePool, sqlx::Error> {
    let one = PoolOptions::new().max_connections(1);
    let pool = one.connect("sqlite::memory:").await?;
    sqlx::raw_sql(TABLES).execute(&pool).await?;
    ordid_sqlx::create_flushes_table(&pool).await?;
    Ok(pool)
}

async fn count(pool: &SqlitePool, table: &'static str) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar(table).fetch_one(pool).await
}

/// Makes folders, each of which is in the folder with the next larger key. So the order of their keys is the wrong one.
fn folders(tenant: TenantId) -> Vec<Folder> {
    let mut ids: Vec<_> = (0..50).map(|_| FolderId::generate()).collect();
    ids.reverse();
    let around = [None].into_iter().chain(ids.iter().copied().map(Some));
    let folder = |(id, within): (&FolderId, _)| Folder {
        tenant,
        id: *id,
        within,
        first: None,
    };
    ids.iter().zip(around).map(folder).collect()
}

#[tokio::test]
async fn a_tree_of_such_keys_goes_in_root_first_and_out_leaves_first() -> Outcome {
    let pool = database().await?;
    // The same ids of another tenant are other folders.
    let one = folders(TenantId::generate());
    let tenant = TenantId::generate();
    let other: Vec<_> = one
        .iter()
        .map(|folder| Folder {
            tenant,
            ..folder.clone()
        })
        .collect();
    let mut work = UnitOfWork::<Sqlite>::new();
    for folder in one.iter().chain(&other) {
        work.add(folder.clone());
    }
    let flushed = work.flush(&pool).await?;
    assert_eq!((flushed.rows(), flushed.updated()), (100, 0));
    assert_eq!(
        count(&pool, "SELECT count(*) FROM folders WHERE within IS NULL").await?,
        2
    );
    for folder in one.iter().chain(&other) {
        work.delete(folder);
    }
    assert_eq!(work.flush(&pool).await?.deleted(), 100);
    Ok(())
}

#[tokio::test]
async fn a_circle_of_such_keys_is_cut_at_the_column_that_can_be_null() -> Outcome {
    let pool = database().await?;
    let tenant = TenantId::generate();
    let (id, file) = (FolderId::generate(), FileId::generate());
    let folder = Folder {
        tenant,
        id,
        within: None,
        first: Some(file),
    };
    let mut work = UnitOfWork::<Sqlite>::new();
    let key = work.add(File {
        tenant,
        id: file,
        folder: id,
    });
    assert_eq!(key, CompositeKey((tenant, file)));
    work.add(folder.clone());
    work.flush(&pool).await?;
    let found = "SELECT count(*) FROM folders JOIN files ON (files.tenant, files.id) = (folders.tenant, folders.first)";
    assert_eq!(count(&pool, found).await?, 1);
    work.delete(&folder);
    work.delete(&File {
        tenant,
        id: file,
        folder: id,
    });
    assert_eq!(work.flush(&pool).await?.deleted(), 2);
    Ok(())
}

#[test]
fn a_row_without_one_of_the_values_has_no_parent() {
    let (tenant, id) = (TenantId::generate(), FolderId::generate());
    let parents = |folder: &Folder| {
        let mut found = Vec::new();
        OrderedKey::parents(folder, &mut |parent, key| {
            found.push((Folder::PARENTS[parent].column(), key.to_key()));
        });
        found
    };
    let folder = Folder {
        tenant,
        id,
        within: None,
        first: None,
    };
    assert_eq!(parents(&folder), []);
    let within = Folder {
        within: Some(id),
        ..folder
    };
    assert_eq!(
        parents(&within),
        [("within", Some(CompositeKey((tenant, id))))]
    );
    assert!(Folder::PARENTS.iter().all(|parent| parent.is_nullable()));
    assert!(!File::PARENTS[0].is_nullable());
}
