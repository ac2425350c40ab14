//! MySQL 8, where `ORDID_TEST_MYSQL_URL` names a server; MariaDB proves nothing about it.

use libtest_mimic::Trial;
use ordid_tests::servers::Servers;
use sqlx::{AssertSqlSafe, Encode, MySql, Pool, Row, Type, query};

use self::columns::*;
use crate::{
    Outcome,
    keys::{
        Base32, DotNet, Long, Native, NoOrder, Number, Object, Push, Short, Swapped, Unsigned,
        Wide, WideChar,
    },
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
        ($name:expr, $test:expr) => {
            server_trial::<MySql, _, _>(trials, servers, server, $name, $test);
        };
    }
    /// A column by its key type: what is bound comes back, and `ORDER BY` is the keys' order.
    macro_rules! columns {
        ($($key:ident = $name:literal, $own:literal;)+) => {$(
            add!(concat!($name, "_comes_back"), |pool| round_trip::<$key>(pool, $own));
            add!(concat!($name, "_keeps_order"), order::<$key>);
        )+};
    }
    columns! {
        Native = "binary16", "HEX(id)";
        Object = "binary12", "HEX(id)";
        Wide = "binary24", "HEX(id)";
        DotNet = "binary16_dotnet", "HEX(id)";
        Swapped = "binary16_swapped", "HEX(id)";
        Long = "char36", "id";
        WideChar = "char32", "id";
        Base32 = "char26", "id";
        Short = "char22", "id";
        Push = "char20", "id";
        Number = "bigint", "CAST(id AS CHAR)";
        Unsigned = "bigint_unsigned", "CAST(id AS CHAR)";
    }
    add!("unordered_comes_back", |pool| round_trip::<NoOrder>(
        pool, "HEX(id)"
    ));
    add!("bigint_compares_with_its_sign", signed_order);
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

/// A parameter of another type or collation than the column's would be compared row by row.
async fn keys_use_their_index(pool: Pool<MySql>) -> Outcome {
    async fn check<K: columns::Key>(pool: &Pool<MySql>) -> Outcome {
        let table = format!("indexed_{}", K::NAME).to_lowercase();
        create::<K>(pool, &table).await?;
        let rows: Vec<(usize, K)> = K::rising(2_000).into_iter().enumerate().collect();
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
    check::<Short>(&pool).await?;
    check::<Base32>(&pool).await?;
    check::<Push>(&pool).await?;
    check::<Object>(&pool).await?;
    check::<Number>(&pool).await?;
    check::<Unsigned>(&pool).await
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
