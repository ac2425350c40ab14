//! PostgreSQL as it comes, whose shared buffers are 128 MB.

use std::time::Duration;

use ordid_core::{
    scheme::{Ulid, UuidV6, UuidV7, UuidV7Spread},
    storage::{
        column::{BigInt, Bytea, Char22, Char26, Text, Uuid},
        dialect::Postgres as Dialect,
    },
};
use sqlx::{Connection as _, PgConnection, Postgres};

use super::{Engine, More, Result, execute, statement};
use crate::{
    BATCH, Row,
    gate::{Bound, Gate},
    key::{BOTH, Case},
};

const INDEX_MB: &str = "index MB";
const DENSITY: &str = "leaf density";
const WAL: &str = "WAL bytes a row";

/// How many rows are inserted after the checkpoint, to see what they log.
const AFTER_CHECKPOINT: u32 = 100_000;

impl Engine for Postgres {
    const SERVER: &'static str = "postgres";
    const FIGURES: [&'static str; 3] = [INDEX_MB, DENSITY, WAL];
    const GATES: &'static [Gate] = &[
        to_bigserial("v7 uuid, 1 in 6 ms", INDEX_MB, 1.45),
        to_bigserial("v7 uuid, 50 a ms", INDEX_MB, 1.45),
        dense("v7 uuid, 1 in 6 ms"),
        dense("v7 uuid, 50 a ms"),
        to_bigserial("v7 uuid, 1 in 6 ms", WAL, 1.15),
        to_bigserial("v7 uuid, 50 a ms", WAL, 1.15),
    ];

    type Open = (ordid_harness::Access, PgConnection);

    fn cases() -> Vec<Case> {
        vec![
            Case::automatic("auto-increment", "bigserial"),
            Case::snowflake::<BigInt, Dialect>(),
            Case::snowflake_spread::<BigInt, Dialect>(),
            Case::of::<UuidV7, Uuid, Dialect>("v7", BOTH),
            Case::of::<UuidV7Spread<16>, Uuid, Dialect>("v7 over 16 buckets,", BOTH),
            Case::of::<UuidV6, Uuid, Dialect>("v6", BOTH),
            Case::of::<UuidV7, Bytea, Dialect>("v7", BOTH),
            Case::of::<UuidV7, Char22, Dialect>("v7 of 22 characters,", BOTH),
            Case::of::<Ulid, Char26, Dialect>("ULID", BOTH),
            Case::of::<UuidV7, Text, Dialect>("v7 of 36 characters,", BOTH),
            Case::random_tail::<Uuid, Dialect>(BOTH, false),
            Case::random::<Uuid, Dialect>(),
        ]
    }

    async fn open() -> Result<std::result::Result<Self::Open, String>> {
        let access = match ordid_harness::access(Self::SERVER)? {
            ordid_harness::Access::Skip(reason) => return Ok(Err(reason)),
            access => access,
        };
        let url = access.url().expect("not skipped");
        let mut connection = PgConnection::connect(&url).await?;
        let buffers: String = sqlx::query_scalar("SHOW shared_buffers")
            .fetch_one(&mut connection)
            .await?;
        if buffers != "128MB" {
            return Err(format!("the shared buffers are {buffers}, not 128 MB").into());
        }
        // Of the server's own package; looks into the pages of an index.
        run(
            &mut connection,
            "CREATE EXTENSION IF NOT EXISTS pgstattuple",
        )
        .await?;
        run(&mut connection, "DROP TABLE IF EXISTS loaded").await?;
        Ok(Ok((access, connection)))
    }

    async fn version((_, connection): &mut Self::Open) -> Result<String> {
        let sql = "SELECT 'PostgreSQL ' || current_setting('server_version') || \
            ', shared buffers ' || current_setting('shared_buffers') || \
            ', full_page_writes ' || current_setting('full_page_writes')";
        Ok(sqlx::query_scalar(sql).fetch_one(connection).await?)
    }

    async fn create((_, connection): &mut Self::Open, case: &Case) -> Result<()> {
        // The statement's text is that of the table before, whose key was of another type.
        connection.clear_cached_statements().await?;
        let sql = format!(
            "CREATE TABLE loaded (id {} NOT NULL PRIMARY KEY, k int NOT NULL, \
             payload text NOT NULL)",
            case.declared
        );
        run(connection, &sql).await
    }

    async fn before(_: &mut Self::Open) -> Result<f64> {
        // What is logged is counted after the load, from a checkpoint on.
        Ok(0.0)
    }

    async fn insert(
        (_, connection): &mut Self::Open,
        case: &Case,
        rows: &[Row],
    ) -> Result<Duration> {
        Ok(execute!(connection, statement(case, rows, true), rows))
    }

    async fn figures(
        open: &mut Self::Open,
        case: &Case,
        _: u32,
        _: f64,
        more: More<'_>,
    ) -> Result<[f64; 3]> {
        let sql = "SELECT index_size::float8 / 1048576, avg_leaf_density \
            FROM pgstatindex('loaded_pkey')";
        let (index, density): (f64, f64) = sqlx::query_as(sql).fetch_one(&mut open.1).await?;
        run(&mut open.1, "CHECKPOINT").await?;
        let start = logged(&mut open.1).await?;
        for _ in 0..AFTER_CHECKPOINT / BATCH {
            Self::insert(open, case, &more()).await?;
        }
        let wal = logged(&mut open.1).await? - start;
        Ok([index, density, wal / f64::from(AFTER_CHECKPOINT)])
    }

    async fn drop((_, connection): &mut Self::Open) -> Result<()> {
        run(connection, "DROP TABLE loaded").await
    }

    async fn close((_access, connection): Self::Open) -> Result<()> {
        Ok(connection.close().await?)
    }
}

const fn to_bigserial(case: &'static str, figure: &'static str, most: f64) -> Gate {
    Gate {
        case,
        figure,
        to: Some("auto-increment bigserial"),
        bound: Bound::AtMost(most),
    }
}

const fn dense(case: &'static str) -> Gate {
    Gate {
        case,
        figure: DENSITY,
        to: None,
        bound: Bound::AtLeast(88.0),
    }
}

async fn run(connection: &mut PgConnection, sql: &str) -> Result<()> {
    sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned()))
        .execute(connection)
        .await?;
    Ok(())
}

/// Returns how many bytes the write-ahead log has had so far.
async fn logged(connection: &mut PgConnection) -> Result<f64> {
    let sql = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8";
    Ok(sqlx::query_scalar(sql).fetch_one(connection).await?)
}
