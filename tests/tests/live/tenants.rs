//! Units of work that keep the rows of a tenant in one transaction: the guide, "Tenants on many machines".

use libtest_mimic::Trial;
use ordid::{KeyType, OrderedKey, uuid::Uuid};
use ordid_sqlx::{ChunkLimits, ShardedUnitOfWork, Sharding, UnitOfWork, create_flushes_table};
use ordid_tests::servers::Servers;
use sqlx::{Pool, Postgres, query_as, query_scalar, raw_sql};

use crate::{Outcome, on_scratch};

#[derive(KeyType)]
#[ordid(scheme = uuid_v4, sqlx(postgres = unordered(uuid)))]
struct TenantId(Uuid);

#[derive(KeyType)]
#[ordid(sqlx)]
struct IssueId(Uuid);

#[derive(OrderedKey)]
#[ordid(table = "tenants")]
struct Tenant {
    #[ordid(key)]
    id: TenantId,
}

#[derive(OrderedKey)]
#[ordid(table = "issues")]
struct Issue {
    #[ordid(key, parent)]
    tenant: TenantId,
    #[ordid(key)]
    id: IssueId,
}

#[derive(OrderedKey)]
#[ordid(table = "labels")]
struct Label {
    #[ordid(key, parent = Issue(tenant, issue))]
    tenant: TenantId,
    #[ordid(key)]
    issue: IssueId,
    #[ordid(key)]
    number: i32,
}

const TABLES: &str = "
    CREATE TABLE tenants (id UUID PRIMARY KEY);
    CREATE TABLE issues (tenant UUID NOT NULL REFERENCES tenants (id), id UUID NOT NULL, PRIMARY KEY (tenant, id));
    CREATE TABLE labels (tenant UUID NOT NULL, issue UUID NOT NULL, number INT NOT NULL,
        PRIMARY KEY (tenant, issue, number), FOREIGN KEY (tenant, issue) REFERENCES issues (tenant, id))";

const PARTS: usize = 4;
const TENANTS: i64 = 40;
const ISSUES: i64 = 5;

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    let together = "a_tenant_is_written_by_one_transaction";
    on_scratch::<Postgres, _, _>(trials, servers, "postgres", together, one_transaction);
    let chunks = "chunks_of_parts_have_all_rows_of_all_tenants_once";
    on_scratch::<Postgres, _, _>(trials, servers, "postgres", chunks, in_chunks);
    let together = "a_chunk_has_whole_tenants";
    on_scratch::<Postgres, _, _>(trials, servers, "postgres", together, whole_tenants);
    let gaps = "rows_of_other_tenants_are_not_copied";
    on_scratch::<Postgres, _, _>(trials, servers, "postgres", gaps, trees);
}

async fn work(
    pool: &Pool<Postgres>,
) -> Result<ShardedUnitOfWork<Postgres>, Box<dyn std::error::Error + Send + Sync>> {
    raw_sql(TABLES).execute(pool).await?;
    let sharding = Sharding::by_hash(PARTS)?
        .route(|issue: &Issue| issue.tenant)
        .route(|label: &Label| label.tenant);
    let mut work = ShardedUnitOfWork::new(sharding);
    for (tenant, issues, labels) in rows() {
        work.add(tenant)?;
        for (issue, label) in issues.into_iter().zip(labels) {
            work.add(issue)?;
            work.add(label)?;
        }
    }
    Ok(work)
}

/// Each tenant, with its issues and their labels.
fn rows() -> impl Iterator<Item = (Tenant, Vec<Issue>, Vec<Label>)> {
    (0..TENANTS).map(|_| {
        let tenant = TenantId::generate();
        let ids: Vec<_> = (0..ISSUES).map(|_| IssueId::generate()).collect();
        let issues = ids.iter().map(|&id| Issue { tenant, id });
        let label = |&issue: &IssueId| Label {
            tenant,
            issue,
            number: 7,
        };
        let labels = ids.iter().map(label).collect();
        (Tenant { id: tenant }, issues.collect(), labels)
    })
}

async fn whole_tenants(pool: Pool<Postgres>) -> Outcome {
    for (limits, transactions) in [
        // Three tenants of eleven rows.
        (
            ChunkLimits::rows(40).with_tenants(usize::MAX),
            (TENANTS + 2) / 3,
        ),
        (ChunkLimits::rows(40).with_tenants(2), TENANTS / 2),
        (ChunkLimits::OF_ENGINE.with_tenants(1), TENANTS),
    ] {
        raw_sql("DROP TABLE IF EXISTS labels, issues, tenants")
            .execute(&pool)
            .await?;
        raw_sql(TABLES).execute(&pool).await?;
        create_flushes_table(&pool).await?;
        let mut work = UnitOfWork::new().in_chunks(limits);
        for (tenant, issues, labels) in rows() {
            labels.into_iter().for_each(|it| _ = work.add(it));
            issues.into_iter().for_each(|it| _ = work.add(it));
            work.add(tenant);
        }
        work.flush(&pool).await?;
        assert_eq!(written(&pool).await?, (ROWS, transactions, 1));
    }
    Ok(())
}

#[derive(OrderedKey)]
#[ordid(table = "folders")]
struct Folder {
    #[ordid(key)]
    tenant: TenantId,
    #[ordid(key)]
    id: IssueId,
    #[ordid(parent = Self(tenant, within))]
    within: Option<IssueId>,
}

/// Rows of trees go by depth, so those of a chunk's tenants have rows of another tenant in between.
async fn trees(pool: Pool<Postgres>) -> Outcome {
    const DEPTHS: usize = 3;
    const OF_A_DEPTH: usize = 600;
    let table = "CREATE TABLE folders (tenant UUID NOT NULL, id UUID NOT NULL, within UUID, PRIMARY KEY (tenant, id),
        FOREIGN KEY (tenant, within) REFERENCES folders (tenant, id))";
    raw_sql(table).execute(&pool).await?;
    create_flushes_table(&pool).await?;
    // Two tenants fit into a chunk.
    let limits = ChunkLimits::rows(2 * DEPTHS * OF_A_DEPTH + 100).with_tenants(usize::MAX);
    let mut work = UnitOfWork::new().in_chunks(limits);
    for _ in 0..3 {
        let tenant = TenantId::generate();
        // The order of the keys is not that of the tree.
        let mut ids: Vec<_> = (0..DEPTHS * OF_A_DEPTH)
            .map(|_| IssueId::generate())
            .collect();
        ids.reverse();
        for (number, &id) in ids.iter().enumerate() {
            let within = number.checked_sub(OF_A_DEPTH).map(|number| ids[number]);
            work.add(Folder { tenant, id, within });
        }
    }
    let flushed = work.flush(&pool).await?;
    assert_eq!(flushed.rows(), 3 * DEPTHS * OF_A_DEPTH);
    let sql = "SELECT count(*), count(DISTINCT xmin::text), count(DISTINCT (tenant, xmin::text)) FROM folders";
    let found: (i64, i64, i64) = query_as(sql).fetch_one(&pool).await?;
    assert_eq!(found, (i64::try_from(3 * DEPTHS * OF_A_DEPTH)?, 2, 3));
    Ok(())
}

/// How many rows there are, and how many transactions wrote them: of all tenants, and the most of one.
async fn written(pool: &Pool<Postgres>) -> Result<(i64, i64, i64), sqlx::Error> {
    let rows = "(SELECT id AS tenant, xmin::text AS by FROM tenants
        UNION ALL SELECT tenant, xmin::text FROM issues UNION ALL SELECT tenant, xmin::text FROM labels) AS written";
    let sql = format!("SELECT count(*), count(DISTINCT by) FROM {rows}");
    let (count, transactions) = query_as(sqlx::AssertSqlSafe(sql)).fetch_one(pool).await?;
    let sql = format!(
        "SELECT max(many) FROM (SELECT count(DISTINCT by) AS many FROM {rows} GROUP BY tenant) AS of_tenant"
    );
    let most = query_scalar(sqlx::AssertSqlSafe(sql))
        .fetch_one(pool)
        .await?;
    Ok((count, transactions, most))
}

const ROWS: i64 = TENANTS * (1 + 2 * ISSUES);

async fn one_transaction(pool: Pool<Postgres>) -> Outcome {
    let mut work = work(&pool).await?;
    work.flush(&vec![pool.clone(); PARTS]).await?;
    let parts = i64::try_from(PARTS)?;
    assert_eq!(written(&pool).await?, (ROWS, parts, 1));
    Ok(())
}

async fn in_chunks(pool: Pool<Postgres>) -> Outcome {
    create_flushes_table(&pool).await?;
    let mut work = work(&pool).await?.in_chunks(ChunkLimits::rows(30));
    work.flush(&vec![pool.clone(); PARTS]).await?;
    let (count, transactions, _) = written(&pool).await?;
    assert_eq!(count, ROWS);
    assert!(transactions >= ROWS / 30, "{transactions}");
    Ok(())
}
