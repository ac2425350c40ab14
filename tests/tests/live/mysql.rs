//! MySQL; MariaDB proves nothing about it.

use libtest_mimic::Trial;
use ordid::storage::dialect::MySql as Dialect;
use ordid_tests::{scratch_tests, servers::Servers};
use sqlx::{AssertSqlSafe, Encode, MySql, Pool, Row, Type, query};

use crate::{
    Outcome,
    changes::{finds::keys_find_their_rows, twins::an_update_leaves_what_an_insert_would},
    engine::{Key, char_columns, columns, finds, of_work},
    flush::a_transaction_that_a_statement_has_committed_is_not_there,
    keys::{
        Base32, DotNet, Long, Native, NoOrder, Number, Object, Push, Short, Swapped, Unsigned,
        Wide, WideChar,
    },
    on_scratch,
};

pub type Columns = crate::engine::Columns<MySql, Dialect>;

mod twins {
    use ordid::uuid::Uuid as AnyUuid;

    crate::changes::twins::twins! {
        MySql, "NOT (CAST(wanted.? AS BINARY) <=> CAST(changed.? AS BINARY))";
        flag: bool = "BOOLEAN NOT NULL", |n| n % 2 == 0;
        tiny: i8 = "TINYINT", |n| i8::try_from(n % 100).unwrap() - 50;
        byte: u8 = "TINYINT UNSIGNED", |n| u8::try_from(n % 256).unwrap();
        small: Option<i16> = "SMALLINT", |n| (n % 3 > 0).then_some(-7);
        short: u16 = "BIGINT", |n| u16::try_from(n).unwrap();
        number: i32 = "BIGINT", |n| i32::try_from(n).unwrap();
        count: u32 = "INT UNSIGNED", |n| u32::MAX - u32::try_from(n).unwrap();
        large: i64 = "BIGINT", |n| i64::MIN + i64::try_from(n).unwrap();
        most: Option<u64> = "BIGINT UNSIGNED", |n| (n % 3 > 0).then_some(u64::MAX - n as u64);
        half: f32 = "DOUBLE", |n| f32::from(u16::try_from(n).unwrap()) / 3.0;
        whole: Option<f64> = "DOUBLE", |n| (n % 3 > 0).then_some(f64::from(u32::try_from(n).unwrap()) / 7.0);
        narrow: f64 = "FLOAT", |n| f64::from(u32::try_from(n).unwrap()) / 7.0;
        money: f64 = "DECIMAL(20, 4)", |n| f64::from(u32::try_from(n).unwrap()) / 8.0;
        name: String = "VARCHAR(40) CHARACTER SET latin1", |n| format!("Ødegård {n}");
        note: Option<String> = "TEXT CHARACTER SET utf8mb4", |n| (n % 3 > 0).then(|| format!("{n} 🦀"));
        code: String = "CHAR(5) CHARACTER SET ascii COLLATE ascii_bin", |n| format!("{n}");
        parity: String = "ENUM('even', 'odd')", |n| ["even", "odd"][n % 2].into();
        divides: Option<String> = "SET('two', 'three')", |n| (n % 5 > 0).then(|| ["two,three", "", "two", "three"][n % 4].into());
        exact: String = "DECIMAL(30, 10)", |n| format!("12345678901234567.{n:010}");
        moment: String = "DATETIME(3)", |n| format!("2026-01-02 03:04:05.{:03}", n % 1_000);
        day: Option<String> = "DATE", |n| (n % 3 > 0).then(|| format!("2026-01-{:02}", n % 28 + 1));
        json: String = "JSON", |n| format!("{{\"n\": [{n}, null]}}");
        picture: Vec<u8> = "BLOB", |n| vec![0, 0xff, u8::try_from(n % 256).unwrap()];
        thumb: Option<Vec<u8>> = "VARBINARY(20)", |n| (n % 3 > 0).then(|| n.to_be_bytes().to_vec());
        uuid: AnyUuid = "BINARY(16)", |n| AnyUuid::from_u128(n as u128);
        bits: Option<u64> = "BIT(13)", |n| (n % 3 > 0).then_some(n as u64 % 8_192);
    }
}

/// What MySQL and MariaDB have in common, run on either.
pub fn common(servers: &Servers, server: &'static str, trials: &mut Vec<Trial>) {
    macro_rules! add {
        ($name:expr, $test:expr) => {
            on_scratch::<MySql, _, _>(trials, servers, server, $name, $test);
        };
    }
    columns! {
        add;
        Native = "binary16", "HEX(id)";
        Object = "binary12", "HEX(id)";
        Wide = "binary24", "HEX(id)";
        DotNet = "binary16_dotnet", "HEX(id)";
        Swapped = "binary16_swapped", "HEX(id)";
        Long = "char36", "id";
        Number = "bigint", "CAST(id AS CHAR)";
        Unsigned = "bigint_unsigned", "CAST(id AS CHAR)";
    }
    char_columns!(add);
    add!(
        "unordered_comes_back",
        |pool| Columns::round_trip::<NoOrder>(pool, "HEX(id)")
    );
    add!("bigint_compares_with_its_sign", Columns::signed_order);
    scratch_tests!(
        trials, servers, MySql: server, "";
        keys_find_their_index, a_transaction_that_a_statement_has_committed_is_not_there
    );
    for (name, test) in of_work() {
        add!(&name, test);
    }
    add!(
        "changes_an_update_leaves_what_an_insert_would",
        an_update_leaves_what_an_insert_would
    );
    finds!(
        add; Native, Long, Short, Base32, DotNet, Swapped, Number, Unsigned, Object, Push, Wide, NoOrder
    );
}

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    common(servers, "mysql", trials);
}

/// A parameter of another type or collation than the column's would be compared row by row.
async fn keys_find_their_index(pool: Pool<MySql>) -> Outcome {
    async fn check<K>(pool: &Pool<MySql>) -> Outcome
    where
        K: Key<MySql, Dialect> + Type<MySql> + for<'q> Encode<'q, MySql>,
    {
        let table = format!("indexed_{}", K::NAME).to_lowercase();
        Columns::create::<K>(pool, &table).await?;
        let rows: Vec<(usize, K)> = K::rising(2_000).into_iter().enumerate().collect();
        Columns::insert(pool, &table, &rows).await?;
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
    // MySQL 9.7 answers with a tree unless it is told a format.
    let sql = format!("EXPLAIN FORMAT=TRADITIONAL SELECT position FROM {table} WHERE id = ?");
    query(AssertSqlSafe(sql))
        .bind(key)
        .fetch_one(pool)
        .await?
        .try_get("type")
}
