//! MariaDB: InnoDB as it comes, whose buffer pool is 128 MB.

use std::time::Duration;

use ordid_core::{
    scheme::{Ulid, UuidV1, UuidV6, UuidV7, UuidV7Spread},
    storage::{
        column::{BigInt, Binary16, Char22, Char26, Char36, MariaDbUuid},
        dialect::MariaDb,
    },
};
use sqlx::{Connection as _, MySql, MySqlConnection};

use super::{Engine, More, Result, execute, statement};
use crate::{
    Row,
    gate::{Bound, Gate},
    key::{Arrival, BOTH, Case},
};

const ROWS_A_LEAF: &str = "rows a leaf";
const DATA_MB: &str = "data MB";
const READS: &str = "pages read";

/// Which rates the gates of version 7 are on.
const ALL: &[Arrival] = &[Arrival::Steady, Arrival::Burst, Arrival::Flood];

impl Engine for MySql {
    const SERVER: &'static str = "mariadb";
    const FIGURES: [&'static str; 3] = [ROWS_A_LEAF, DATA_MB, READS];
    const GATES: &'static [Gate] = &[
        leaf("v7 BINARY(16), 1 in 6 ms"),
        leaf("v7 BINARY(16), 50 a ms"),
        leaf("v7 BINARY(16), 1000 a ms"),
        size("v7 BINARY(16), 1 in 6 ms", 1.10),
        size("v7 BINARY(16), 50 a ms", 1.10),
        size("v7 BINARY(16), 1000 a ms", 1.10),
        reads("v7 BINARY(16), 1 in 6 ms"),
        reads("v7 BINARY(16), 50 a ms"),
        reads("v7 BINARY(16), 1000 a ms"),
        size("v7 CHAR(22), 1 in 6 ms", 1.15),
        size("v7 CHAR(22), 50 a ms", 1.15),
        size("v7 CHAR(36), 1 in 6 ms", 1.25),
        size("v7 CHAR(36), 50 a ms", 1.25),
    ];

    type Open = (ordid_harness::Access, MySqlConnection);

    fn cases() -> Vec<Case> {
        vec![
            Case::automatic("auto-increment", "BIGINT AUTO_INCREMENT"),
            Case::snowflake::<BigInt, MariaDb>(),
            Case::snowflake_spread::<BigInt, MariaDb>(),
            Case::of::<UuidV7, Binary16, MariaDb>("v7", ALL),
            Case::of::<UuidV7Spread<16>, Binary16, MariaDb>("v7 over 16 buckets,", BOTH),
            Case::of::<UuidV7, MariaDbUuid, MariaDb>("v7", BOTH),
            Case::of::<UuidV7, Char22, MariaDb>("v7", BOTH),
            Case::of::<UuidV7, Char36, MariaDb>("v7", BOTH),
            Case::of::<Ulid, Char26, MariaDb>("ULID", BOTH),
            Case::of::<UuidV6, Binary16, MariaDb>("v6", BOTH),
            Case::of::<UuidV1, MariaDbUuid, MariaDb>("v1", BOTH),
            Case::random_tail::<Binary16, MariaDb>(BOTH, false),
            Case::random_tail::<Binary16, MariaDb>(BOTH, true),
            Case::random::<Binary16, MariaDb>(),
        ]
    }

    async fn open() -> Result<std::result::Result<Self::Open, String>> {
        let access = match ordid_harness::access(Self::SERVER)? {
            ordid_harness::Access::Skip(reason) => return Ok(Err(reason)),
            access => access,
        };
        let url = access.url().expect("not skipped");
        let mut connection = MySqlConnection::connect(&url).await?;
        run(
            &mut connection,
            "CREATE OR REPLACE DATABASE ordid_bench_engines",
        )
        .await?;
        run(&mut connection, "USE ordid_bench_engines").await?;
        let pool: u64 = sqlx::query_scalar("SELECT @@innodb_buffer_pool_size")
            .fetch_one(&mut connection)
            .await?;
        if pool != 128 << 20 {
            return Err(format!("the buffer pool is {pool} bytes, not 128 MB").into());
        }
        Ok(Ok((access, connection)))
    }

    async fn version((_, connection): &mut Self::Open) -> Result<String> {
        let sql = "SELECT CONCAT('MariaDB ', VERSION(), ', buffer pool ', \
            @@innodb_buffer_pool_size DIV 1048576, ' MB, flush log at commit ', \
            @@innodb_flush_log_at_trx_commit)";
        Ok(sqlx::query_scalar(sql).fetch_one(connection).await?)
    }

    async fn create((_, connection): &mut Self::Open, case: &Case) -> Result<()> {
        let sql = format!(
            "CREATE TABLE loaded (id {} NOT NULL PRIMARY KEY, k INT NOT NULL, \
             payload CHAR(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL) ENGINE = InnoDB",
            case.declared
        );
        run(connection, &sql).await
    }

    async fn before((_, connection): &mut Self::Open) -> Result<f64> {
        pages_read(connection).await
    }

    async fn insert(
        (_, connection): &mut Self::Open,
        case: &Case,
        rows: &[Row],
    ) -> Result<Duration> {
        Ok(execute!(connection, statement(case, rows, false), rows))
    }

    async fn figures(
        (_, connection): &mut Self::Open,
        _: &Case,
        rows: u32,
        before: f64,
        _: More<'_>,
    ) -> Result<[f64; 3]> {
        let read = pages_read(connection).await? - before;
        run(connection, "ANALYZE TABLE loaded").await?;
        let sql = "SELECT CAST(stat_value AS DOUBLE) FROM mysql.innodb_index_stats \
            WHERE database_name = DATABASE() AND table_name = 'loaded' AND stat_name = ?";
        let leaves: f64 = sqlx::query_scalar(sql)
            .bind("n_leaf_pages")
            .fetch_one(&mut *connection)
            .await?;
        let pages: f64 = sqlx::query_scalar(sql)
            .bind("size")
            .fetch_one(&mut *connection)
            .await?;
        let page: u64 = sqlx::query_scalar("SELECT @@innodb_page_size")
            .fetch_one(&mut *connection)
            .await?;
        let page = f64::from(u32::try_from(page)?);
        Ok([
            f64::from(rows) / leaves,
            pages * page / f64::from(1 << 20),
            read,
        ])
    }

    async fn drop((_, connection): &mut Self::Open) -> Result<()> {
        run(connection, "DROP TABLE loaded").await
    }

    async fn close((_access, mut connection): Self::Open) -> Result<()> {
        run(&mut connection, "DROP DATABASE ordid_bench_engines").await?;
        Ok(connection.close().await?)
    }
}

const AUTO: &str = "auto-increment BIGINT";

const fn leaf(case: &'static str) -> Gate {
    Gate {
        case,
        figure: ROWS_A_LEAF,
        to: Some(AUTO),
        bound: Bound::AtLeast(0.93),
    }
}

const fn size(case: &'static str, most: f64) -> Gate {
    Gate {
        case,
        figure: DATA_MB,
        to: Some(AUTO),
        bound: Bound::AtMost(most),
    }
}

const fn reads(case: &'static str) -> Gate {
    Gate {
        case,
        figure: READS,
        to: None,
        bound: Bound::AtMost(1000.0),
    }
}

async fn run(connection: &mut MySqlConnection, sql: &str) -> Result<()> {
    sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned()))
        .execute(connection)
        .await?;
    Ok(())
}

/// Returns how many pages were read because they were not in the buffer pool.
async fn pages_read(connection: &mut MySqlConnection) -> Result<f64> {
    let sql = "SELECT CAST(VARIABLE_VALUE AS DOUBLE) FROM information_schema.GLOBAL_STATUS \
        WHERE VARIABLE_NAME = 'INNODB_BUFFER_POOL_READS'";
    Ok(sqlx::query_scalar(sql).fetch_one(connection).await?)
}
