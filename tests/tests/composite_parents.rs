//! Parents whose key has several columns. Rows are inserted after them, also in trees and circles, and in chunks that keep
//! tenants together.

use std::collections::BTreeMap;

use ordid::{KeyType, OrderedKey, key::CompositeKey, uuid::Uuid};
use ordid_file::FlushJournal;
use ordid_sqlx::{ChunkLimits, Journaled, UnitOfWork};
use serde::{Deserialize, Serialize};
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
#[derive(OrderedKey, Clone, Serialize, Deserialize)]
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

#[derive(OrderedKey, Clone, Serialize, Deserialize)]
#[ordid(table = "files")]
struct File {
    #[ordid(key, parent = Folder(tenant, folder))]
    tenant: TenantId,
    #[ordid(key)]
    id: FileId,
    folder: FolderId,
}

/// The table of the tenants themselves, where a test has one.
#[derive(OrderedKey, Clone, Serialize, Deserialize)]
#[ordid(table = "tenants")]
struct Tenant {
    #[ordid(key)]
    id: TenantId,
    plan: PlanId,
}

#[derive(KeyType)]
#[ordid(sqlx)]
struct PlanId(Uuid);

/// What tenants have in common.
#[derive(OrderedKey, Clone, Serialize, Deserialize)]
#[ordid(table = "plans")]
struct Plan {
    #[ordid(key)]
    id: PlanId,
}

/// A note of a tenant, whose key does not say so.
#[derive(OrderedKey)]
#[ordid(table = "notes")]
struct Note {
    #[ordid(key)]
    id: Option<FileId>,
    tenant: TenantId,
    #[ordid(parent = Folder(tenant, folder))]
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

/// Writes down by which chunk a row came or went: its marker row is written first.
const CHUNKS: &str = "
    CREATE TABLE plans (id BLOB PRIMARY KEY);
    CREATE TABLE tenants (id BLOB PRIMARY KEY, plan BLOB NOT NULL REFERENCES plans (id));
    CREATE TABLE written (tenant BLOB, chunk INTEGER);
    CREATE TRIGGER plan AFTER INSERT ON plans
        BEGIN INSERT INTO written SELECT NULL, count(*) FROM ordid_flushes; END;
    CREATE TRIGGER tenant AFTER INSERT ON tenants
        BEGIN INSERT INTO written SELECT NEW.id, count(*) FROM ordid_flushes; END;
    CREATE TRIGGER folder AFTER INSERT ON folders
        BEGIN INSERT INTO written SELECT NEW.tenant, count(*) FROM ordid_flushes; END;
    CREATE TRIGGER fixed AFTER UPDATE ON folders
        BEGIN INSERT INTO written SELECT NEW.tenant, count(*) FROM ordid_flushes; END;
    CREATE TRIGGER file AFTER INSERT ON files
        BEGIN INSERT INTO written SELECT NEW.tenant, count(*) FROM ordid_flushes; END;
    CREATE TRIGGER gone AFTER DELETE ON folders
        BEGIN INSERT INTO written SELECT OLD.tenant, count(*) FROM ordid_flushes; END;
    CREATE TRIGGER file_gone AFTER DELETE ON files
        BEGIN INSERT INTO written SELECT OLD.tenant, count(*) FROM ordid_flushes; END;
    CREATE TRIGGER tenant_gone AFTER DELETE ON tenants
        BEGIN INSERT INTO written SELECT OLD.id, count(*) FROM ordid_flushes; END;
    CREATE TRIGGER plan_gone AFTER DELETE ON plans
        BEGIN INSERT INTO written SELECT NULL, count(*) FROM ordid_flushes; END";

/// Rows of tenants of many sizes.
#[derive(Default)]
struct Rows {
    plans: Vec<Plan>,
    tenants: Vec<Tenant>,
    folders: Vec<Folder>,
    files: Vec<File>,
}

impl Rows {
    /// So many folders, and a file in each, of each tenant. Some folders show their file first, which closes circles.
    fn of(sizes: &[usize]) -> Self {
        let mut rows = Self::default();
        let plan = PlanId::generate();
        rows.plans.push(Plan { id: plan });
        for size in sizes {
            let tenant = TenantId::generate();
            rows.tenants.push(Tenant { id: tenant, plan });
            let mut around = None;
            for number in 0..*size {
                let (id, file) = (FolderId::generate(), FileId::generate());
                rows.folders.push(Folder {
                    tenant,
                    id,
                    within: around,
                    first: (number % 3 == 0).then_some(file),
                });
                rows.files.push(File {
                    tenant,
                    id: file,
                    folder: id,
                });
                around = Some(id);
            }
        }
        // As they come, and not tenant by tenant.
        rows.folders
            .sort_by_key(|it| it.id.to_string().into_bytes().pop());
        rows.files.reverse();
        rows
    }

    fn add_to(&self, work: &mut UnitOfWork<Sqlite>) {
        for file in &self.files {
            work.add(file.clone());
        }
        for folder in &self.folders {
            work.add(folder.clone());
        }
        for tenant in &self.tenants {
            work.add(tenant.clone());
        }
        for plan in &self.plans {
            work.add(plan.clone());
        }
    }

    fn delete_by(&self, work: &mut UnitOfWork<Sqlite>) {
        self.plans.iter().for_each(|it| work.delete(it));
        self.tenants.iter().for_each(|it| work.delete(it));
        self.folders.iter().for_each(|it| work.delete(it));
        self.files.iter().for_each(|it| work.delete(it));
    }

    const fn len(&self) -> usize {
        self.plans.len() + self.tenants.len() + self.folders.len() + self.files.len()
    }

    async fn are_all_there(&self, pool: &SqlitePool) -> Outcome {
        let sql = "SELECT (SELECT count(*) FROM plans) + (SELECT count(*) FROM tenants)
            + (SELECT count(*) FROM folders) + (SELECT count(*) FROM files)";
        assert_eq!(count(pool, sql).await?, i64::try_from(self.len())?);
        let first = "SELECT count(*) FROM folders JOIN files ON (files.tenant, files.id) = (folders.tenant, folders.first)";
        let shown = self.folders.iter().filter(|it| it.first.is_some());
        assert_eq!(count(pool, first).await?, i64::try_from(shown.count())?);
        Ok(())
    }
}

/// Forgets and returns how many rows of each tenant each chunk has written, by tenant and chunk.
async fn written(pool: &SqlitePool) -> Result<BTreeMap<Vec<u8>, Vec<(i64, i64)>>, sqlx::Error> {
    let sql = "DELETE FROM written RETURNING coalesce(tenant, x'') AS tenant, chunk";
    let rows: Vec<(Vec<u8>, i64)> = sqlx::query_as(sql).fetch_all(pool).await?;
    sqlx::query("DELETE FROM ordid_flushes")
        .execute(pool)
        .await?;
    let mut counts: BTreeMap<_, BTreeMap<i64, i64>> = BTreeMap::new();
    for (tenant, chunk) in rows {
        *counts.entry(tenant).or_default().entry(chunk).or_default() += 1;
    }
    let counts = counts.into_iter();
    Ok(counts
        .map(|(tenant, chunks)| (tenant, chunks.into_iter().collect()))
        .collect())
}

/// Checks that a chunk has no more rows than it takes, and that a tenant is cut only where it has more.
fn check(written: &BTreeMap<Vec<u8>, Vec<(i64, i64)>>, most: i64) {
    let mut of_chunks: BTreeMap<i64, i64> = BTreeMap::new();
    for (tenant, chunks) in written {
        for (chunk, rows) in chunks {
            *of_chunks.entry(*chunk).or_default() += rows;
        }
        let rows: i64 = chunks.iter().map(|(_, rows)| rows).sum();
        assert!(
            chunks.len() == 1 || rows > most || tenant.is_empty(),
            "a tenant of {rows} rows in chunks of {most}: {chunks:?}"
        );
    }
    assert!(
        of_chunks.values().all(|rows| *rows <= most),
        "{most}: {of_chunks:?}"
    );
}

#[tokio::test]
async fn chunks_keep_the_rows_of_a_tenant_together() -> Outcome {
    let pool = database().await?;
    sqlx::raw_sql(CHUNKS).execute(&pool).await?;
    let sizes = [3, 0, 1, 17, 2, 2, 5, 1, 1, 4, 9, 3];
    for most in [1, 2, 7, 10, 25, 40, 200] {
        let rows = Rows::of(&sizes);
        let limits = ChunkLimits::rows(most).with_tenants(usize::MAX);
        let mut work = UnitOfWork::<Sqlite>::new().in_chunks(limits);
        rows.add_to(&mut work);
        assert_eq!(work.flush(&pool).await?.rows(), rows.len());
        rows.are_all_there(&pool).await?;
        let inserted = written(&pool).await?;
        assert_eq!(inserted.len(), 1 + sizes.len());
        check(&inserted, i64::try_from(most)?);
        rows.delete_by(&mut work);
        assert_eq!(work.flush(&pool).await?.deleted(), rows.len());
        check(&written(&pool).await?, i64::try_from(most)?);
    }
    for tenants in [1, 3] {
        let rows = Rows::of(&sizes);
        let limits = ChunkLimits::rows(40).with_tenants(tenants);
        let mut work = UnitOfWork::<Sqlite>::new().in_chunks(limits);
        rows.add_to(&mut work);
        work.flush(&pool).await?;
        let inserted = written(&pool).await?;
        check(&inserted, 40);
        let mut of_chunks: BTreeMap<i64, usize> = BTreeMap::new();
        for (tenant, chunks) in inserted.iter().filter(|(tenant, _)| !tenant.is_empty()) {
            assert!(!chunks.is_empty(), "{tenant:?}");
            for (chunk, _) in chunks {
                *of_chunks.entry(*chunk).or_default() += 1;
            }
        }
        assert_eq!(of_chunks.values().max(), Some(&tenants));
        rows.delete_by(&mut work);
        work.flush(&pool).await?;
        written(&pool).await?;
    }
    // Without it they are not together.
    let rows = Rows::of(&sizes);
    let mut work = UnitOfWork::<Sqlite>::new().in_chunks(ChunkLimits::rows(25));
    rows.add_to(&mut work);
    work.flush(&pool).await?;
    let inserted = written(&pool).await?;
    assert!(inserted.values().filter(|chunks| chunks.len() > 1).count() > 6);
    Ok(())
}

/// The rows of a chunk go by as few statements as without tenants.
#[tokio::test]
async fn a_chunk_of_many_tenants_has_few_statements() -> Outcome {
    let pool = database().await?;
    sqlx::raw_sql(CHUNKS).execute(&pool).await?;
    let rows = Rows::of(&[1; 60]);
    let limits = ChunkLimits::rows(100).with_tenants(usize::MAX);
    let mut work = UnitOfWork::<Sqlite>::new().in_chunks(limits);
    rows.add_to(&mut work);
    let flushed = work.flush(&pool).await?;
    let statements: usize = flushed.tables.iter().map(|it| it.statements).sum();
    // Of each tenant one row of each table, and an update that closes the circle: 241 with the plan.
    assert!(
        (8..=16).contains(&statements),
        "{statements}: {:?}",
        flushed.tables
    );
    rows.are_all_there(&pool).await
}

#[tokio::test]
async fn chunks_of_tenants_go_on_where_one_failed_and_where_a_program_ended() -> Outcome {
    let pool = database().await?;
    sqlx::raw_sql(CHUNKS).execute(&pool).await?;
    for with_journal in [false, true] {
        let rows = Rows::of(&[3, 1, 17, 2, 5, 1, 4]);
        // In one of the last chunks.
        let refuse =
            "CREATE TRIGGER refuse BEFORE INSERT ON files WHEN (SELECT count(*) FROM files) >= 28
            BEGIN SELECT RAISE(ABORT, 'not now'); END";
        sqlx::raw_sql(refuse).execute(&pool).await?;
        let folder = tempfile::tempdir()?;
        let begin = |most: usize| -> Result<_, Box<dyn std::error::Error>> {
            let limits = ChunkLimits::rows(most).with_tenants(usize::MAX);
            let work = UnitOfWork::<Sqlite>::new().in_chunks(limits);
            Ok(match with_journal {
                true => {
                    let journal = FlushJournal::open(folder.path().join("journal"))?;
                    let journaled = Journaled::new(journal)
                        .row::<Tenant>()
                        .row::<Plan>()
                        .row::<Folder>()
                        .row::<File>();
                    work.with_journal(journaled)
                }
                false => work,
            })
        };
        let mut work = begin(12)?;
        rows.add_to(&mut work);
        let error = work.flush(&pool).await.unwrap_err();
        assert!(error.committed_chunks() > 1, "{error}");
        sqlx::raw_sql("DROP TRIGGER refuse").execute(&pool).await?;
        if with_journal {
            drop(work);
            // With other limits than before.
            work = begin(30)?;
            assert_eq!(work.resume()?, rows.len());
        }
        assert_eq!(work.flush(&pool).await?.rows(), rows.len());
        rows.are_all_there(&pool).await?;
        let mut work = UnitOfWork::<Sqlite>::new();
        rows.delete_by(&mut work);
        work.flush(&pool).await?;
    }
    Ok(())
}

#[tokio::test]
async fn rows_that_would_be_sent_before_their_parents_are_refused() -> Outcome {
    let pool = database().await?;
    sqlx::raw_sql(CHUNKS).execute(&pool).await?;
    let limits = ChunkLimits::rows(100).with_tenants(usize::MAX);
    let begin = || UnitOfWork::<Sqlite>::new().in_chunks(limits);
    let refused = async |mut work: UnitOfWork<Sqlite>, text: &str| {
        let error = work.flush(&pool).await.unwrap_err();
        assert!(error.is_plan(), "{error}");
        let told = error.to_string();
        assert!(
            told.contains(text) && told.contains("without `with_tenants`"),
            "{told}"
        );
    };
    let rows = Rows::of(&[1]);
    let folder = &rows.folders[0];
    let note = |tenant| Note {
        id: None,
        tenant,
        folder: folder.id,
    };
    let mut work = begin();
    rows.add_to(&mut work);
    work.add(note(folder.tenant));
    let text =
        "rows of notes have no tenant in their key, and refer to folders, whose rows have one";
    refused(work, text).await;

    // The foreign keys of files and folders are of one tenant. A table whose first column is another is not.
    #[derive(OrderedKey)]
    #[ordid(table = "shares")]
    struct Share {
        #[ordid(key)]
        with: TenantId,
        #[ordid(key, parent = Folder(owner, folder))]
        folder: FolderId,
        owner: TenantId,
    }
    let share = |with| Share {
        with,
        folder: folder.id,
        owner: folder.tenant,
    };
    let mut work = begin();
    rows.add_to(&mut work);
    work.add(share(TenantId::generate()));
    refused(
        work,
        "a row of shares refers to a row of folders of another tenant",
    )
    .await;
    assert_eq!(count(&pool, "SELECT count(*) FROM plans").await?, 0);

    // An update that refers to such a row, too.
    let mut work = begin();
    rows.add_to(&mut work);
    work.update(share(TenantId::generate()));
    refused(
        work,
        "a row of shares refers to a row of folders of another tenant",
    )
    .await;
    // What would be sent is not planned either.
    let mut work = begin();
    rows.add_to(&mut work);
    work.add(share(TenantId::generate()));
    assert!(work.plan().unwrap_err().is_plan());

    // What it refers to is there already, or of the same tenant.
    let shares = "CREATE TABLE shares (\"with\" BLOB, folder BLOB, owner BLOB, PRIMARY KEY (\"with\", folder),
        FOREIGN KEY (owner, folder) REFERENCES folders (tenant, id))";
    sqlx::raw_sql(shares).execute(&pool).await?;
    let mut work = begin();
    rows.add_to(&mut work);
    work.add(share(folder.tenant));
    work.flush(&pool).await?;
    work.add(share(TenantId::generate()));
    assert_eq!(work.flush(&pool).await?.rows(), 1);
    Ok(())
}

/// A table with one row for each tenant, and one whose key is by chance of the type of another key's first column.
#[tokio::test]
async fn what_belongs_to_a_tenant_is_told_by_keys_and_foreign_keys() -> Outcome {
    #[derive(OrderedKey)]
    #[ordid(table = "settings")]
    struct Setting {
        #[ordid(key, parent = Tenant)]
        tenant: TenantId,
    }

    #[derive(OrderedKey)]
    #[ordid(table = "audits")]
    struct Audit {
        #[ordid(key)]
        id: Option<Uuid>,
    }

    #[derive(OrderedKey)]
    #[ordid(table = "lines")]
    struct Line {
        #[ordid(key)]
        entry: Uuid,
        #[ordid(key)]
        number: i32,
    }

    let pool = database().await?;
    sqlx::raw_sql(CHUNKS).execute(&pool).await?;
    let tables = "
        CREATE TABLE settings (tenant BLOB PRIMARY KEY REFERENCES tenants (id));
        CREATE TRIGGER setting AFTER INSERT ON settings
            BEGIN INSERT INTO written SELECT NEW.tenant, count(*) FROM ordid_flushes; END;
        CREATE TABLE audits (id BLOB PRIMARY KEY);
        CREATE TABLE lines (entry BLOB, number INTEGER, PRIMARY KEY (entry, number))";
    sqlx::raw_sql(tables).execute(&pool).await?;
    let begin = |tenants| {
        UnitOfWork::<Sqlite>::new().in_chunks(ChunkLimits::rows(100).with_tenants(tenants))
    };
    // Room for rows that never come changes nothing.
    let mut work = begin(1);
    work.reserve::<Note>(10);
    let rows = Rows::of(&[1, 2, 1]);
    rows.add_to(&mut work);
    for tenant in &rows.tenants {
        work.add(Setting { tenant: tenant.id });
    }
    work.flush(&pool).await?;
    let chunks = written(&pool).await?;
    assert_eq!(chunks.len(), 4);
    assert!(chunks.values().all(|it| it.len() == 1), "{chunks:?}");

    let mut work = begin(1);
    for _ in 0..50 {
        work.add(Audit { id: None });
    }
    for number in 0..20 {
        work.add(Line {
            entry: Uuid::from_u128(7),
            number,
        });
    }
    work.flush(&pool).await?;
    assert_eq!(count(&pool, "SELECT count(*) FROM ordid_flushes").await?, 1);
    Ok(())
}

/// Each of a pair refers to the other, and neither can do without.
#[tokio::test]
async fn circles_that_are_checked_at_commit_go_tenant_by_tenant() -> Outcome {
    #[derive(OrderedKey)]
    #[ordid(table = "posts")]
    struct Post {
        #[ordid(key)]
        tenant: TenantId,
        #[ordid(key)]
        id: FolderId,
        #[ordid(parent = Comment(tenant, latest), deferrable)]
        latest: FileId,
    }

    #[derive(OrderedKey)]
    #[ordid(table = "comments")]
    struct Comment {
        #[ordid(key, parent = Post(tenant, post), deferrable)]
        tenant: TenantId,
        #[ordid(key)]
        id: FileId,
        post: FolderId,
    }

    let pool = database().await?;
    let tables = "
        CREATE TABLE posts (tenant BLOB, id BLOB, latest BLOB NOT NULL, PRIMARY KEY (tenant, id),
            FOREIGN KEY (tenant, latest) REFERENCES comments (tenant, id) DEFERRABLE);
        CREATE TABLE comments (tenant BLOB, id BLOB, post BLOB NOT NULL, PRIMARY KEY (tenant, id),
            FOREIGN KEY (tenant, post) REFERENCES posts (tenant, id) DEFERRABLE)";
    sqlx::raw_sql(tables).execute(&pool).await?;
    let begin = |most: usize, sizes: &[usize]| {
        let limits = ChunkLimits::rows(most).with_tenants(usize::MAX);
        let mut work = UnitOfWork::<Sqlite>::new().in_chunks(limits);
        for size in sizes {
            let tenant = TenantId::generate();
            for _ in 0..*size {
                let (post, latest) = (FolderId::generate(), FileId::generate());
                work.add(Post {
                    tenant,
                    id: post,
                    latest,
                });
                work.add(Comment {
                    tenant,
                    id: latest,
                    post,
                });
            }
        }
        work
    };
    assert_eq!(begin(8, &[1, 3, 2, 4, 1]).flush(&pool).await?.rows(), 22);
    let chunks = count(&pool, "SELECT count(*) FROM ordid_flushes").await?;
    // Of 8, 4, 8 and 2 rows.
    assert_eq!(chunks, 4);
    let error = begin(8, &[1, 5]).flush(&pool).await.unwrap_err();
    let text = "the 10 rows of comments and posts refer to each other in a circle";
    assert!(
        error.is_plan() && error.to_string().contains(text),
        "{error}"
    );
    Ok(())
}
