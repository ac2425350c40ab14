//! MySQL 8, where `ORDID_TEST_MYSQL_URL` names a server; MariaDB proves nothing about it.

use libtest_mimic::Trial;
use ordid_tests::servers::Servers;
use sqlx::{AssertSqlSafe, Encode, MySql, Pool, Row, Type, query};

use self::columns::*;
use crate::{
    Outcome,
    keys::{Long, Native, Short},
    server_trial,
};

pub mod columns {
    crate::engine::engine!(MySql, ordid::storage::dialect::MySql);
}

pub mod flush {
    crate::flush::flush!(
        MySql,
        ordid::storage::dialect::MySql,
        Binary16,
        "ENGINE = InnoDB",
        copies: false
    );
}

/// What MySQL and MariaDB have in common, run on either.
pub fn common(servers: &Servers, server: &'static str, trials: &mut Vec<Trial>) {
    macro_rules! add {
        ($name:literal, $test:expr) => {
            server_trial::<MySql, _, _>(trials, servers, server, $name, $test);
        };
    }
    add!("binary16_comes_back", |pool| round_trip::<Native>(
        pool,
        BINARY_AS_UUID
    ));
    add!("char36_comes_back", |pool| round_trip::<Long>(pool, "id"));
    add!("char22_comes_back", |pool| round_trip::<Short>(pool, "id"));
    add!("binary16_keeps_order", order::<Native>);
    add!("char36_keeps_order", order::<Long>);
    add!("char22_keeps_order", order::<Short>);
    add!("keys_find_their_index", keys_use_their_index);
    add!("parents_first_in_chunks", flush::parents_first_in_chunks);
    add!(
        "failure_names_the_row",
        flush::failure_names_the_row_and_leaves_nothing
    );
    add!(
        "missing_parent",
        flush::a_missing_parent_and_a_failed_check_are_told
    );
    add!("open_transaction", flush::an_open_transaction_is_respected);
    add!("retry", flush::a_retry_carries_the_same_keys);
    add!("given_generator", flush::keys_of_a_given_generator);
    add!("tree", flush::a_tree_in_one_table_goes_in_root_first);
    add!("cancelled", flush::a_cancelled_flush_leaves_nothing);
}

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    common(servers, "mysql", trials);
}

/// The hyphenated text of sixteen bytes.
const BINARY_AS_UUID: &str = "INSERT(INSERT(INSERT(INSERT(HEX(id), 9, 0, '-'), 14, 0, '-'), 19, 0, \
                              '-'), 24, 0, '-')";

/// A parameter of another type or collation than the column's would be compared row by row.
async fn keys_use_their_index(pool: Pool<MySql>) -> Outcome {
    async fn check<K: columns::Key>(pool: &Pool<MySql>) -> Outcome {
        let table = format!("indexed_{}", K::NAME).to_lowercase();
        create::<K>(pool, &table).await?;
        let rows: Vec<(usize, K)> = (0..2_000).map(|i| (i, K::generate())).collect();
        insert(pool, &table, &rows).await?;
        assert_eq!(
            access_type(pool, &table, rows[7].1).await?,
            "const",
            "{}",
            K::NAME
        );
        Ok(())
    }
    check::<Native>(&pool).await?;
    check::<Long>(&pool).await?;
    check::<Short>(&pool).await
}

/// How the server means to find a key: `const` is by its unique index.
pub async fn access_type<K>(pool: &Pool<MySql>, table: &str, key: K) -> Result<String, sqlx::Error>
where
    K: for<'q> Encode<'q, MySql> + Type<MySql> + Send,
{
    let sql = format!("EXPLAIN SELECT position FROM {table} WHERE id = ?");
    query(AssertSqlSafe(sql))
        .bind(key)
        .fetch_one(pool)
        .await?
        .try_get("type")
}
