//! MariaDB: what it has in common with MySQL, and its native `UUID`.

use libtest_mimic::Trial;
use ordid::{
    KeyType,
    layout::mariadb_uuid_is_refused,
    storage::{ColumnOn, Stores, column::MariaDbUuid, dialect::MariaDb},
    uuid::{NoContext, Timestamp, Uuid},
};
use ordid_sqlx::{Stored, column};
use ordid_tests::{scratch_tests, servers::Servers};
use sqlx::{MySql, Pool, mysql::MySqlDatabaseError, query, query_scalar};

use crate::{
    Outcome,
    changes::finds::keys_find_their_rows,
    database::one,
    engine::{columns, finds},
    keys::{Comb, Long, Maria, Native, PACES, Short, short_texts},
    mysql, on_scratch,
};

type Columns = crate::engine::Columns<MySql, ordid::storage::dialect::MariaDb>;

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    mysql::common(servers, "mariadb", trials);
    macro_rules! add {
        ($name:expr, $test:expr) => {
            on_scratch::<MySql, _, _>(trials, servers, "mariadb", $name, $test);
        };
    }
    columns! { add; Maria = "uuid", "CAST(id AS CHAR)"; }
    add!("uuid_keeps_the_order_of_combs", Columns::order::<Comb>);
    scratch_tests!(trials, servers, MySql: "mariadb", "";
        uuid_sorts_as_its_sort_key,
        uuid_refuses_what_it_could_not_tell_apart,
        char22_under_other_collations_loses_keys_and_order,
        a_wrong_column_is_named,
        uuid_finds_its_index,
    );
    finds!(add; Maria, Comb);
}

/// `sort_key` is the database's order, for each version, and for all of them in one column.
async fn uuid_sorts_as_its_sort_key(pool: Pool<MySql>) -> Outcome {
    Columns::execute(&pool, "CREATE TABLE native (id UUID PRIMARY KEY)").await?;
    let then = |i: u64| Timestamp::from_unix(NoContext, 1_700_000_000 + 97 * i, 7);
    let node = [1, 2, 3, 4, 5, 6];
    let mut of_versions: Vec<(&str, Vec<Uuid>)> = vec![
        (
            "v1",
            (0..1_000).map(|i| Uuid::new_v1(then(i), &node)).collect(),
        ),
        ("v4", (0..1_000).map(|_| Uuid::new_v4()).collect()),
        (
            "v6",
            (0..1_000).map(|i| Uuid::new_v6(then(i), &node)).collect(),
        ),
        ("v7", (0..1_000).map(|_| Uuid::generate()).collect()),
        (
            "v8",
            (0..1_000)
                .map(|_| {
                    let mut bytes = Uuid::new_v4().into_bytes();
                    bytes[6] = 0x80 | bytes[6] & 0x0f;
                    Uuid::from_bytes(bytes)
                })
                .filter(|key| !mariadb_uuid_is_refused(key.as_bytes()))
                .collect(),
        ),
    ];
    let all = of_versions.iter().flat_map(|(_, keys)| keys.clone());
    of_versions.push(("all together", all.collect()));
    for (version, mut keys) in of_versions {
        query("DELETE FROM native").execute(&pool).await?;
        for chunk in keys.chunks(500) {
            let mut builder = sqlx::QueryBuilder::<MySql>::new("INSERT INTO native (id) ");
            builder.push_values(chunk, |mut row, key| {
                row.push_bind(&key.as_bytes()[..]);
            });
            builder.build().execute(&pool).await?;
        }
        keys.sort_by_key(|key| MariaDbUuid::sort_key(*key));
        let read: Vec<String> = query_scalar("SELECT CAST(id AS CHAR) FROM native ORDER BY id")
            .fetch_all(&pool)
            .await?;
        let expected: Vec<String> = keys.iter().map(Uuid::to_string).collect();
        assert!(read == expected, "version {version}");
    }
    Ok(())
}

/// Two values that are valid elsewhere, the second of version 8, and the borders around them: they
/// are refused as text, which is how keys are bound. As bytes another value would be stored.
async fn uuid_refuses_what_it_could_not_tell_apart(pool: Pool<MySql>) -> Outcome {
    type Key = Stored<Uuid, column::Unordered<MariaDbUuid>>;
    Columns::execute(&pool, "CREATE TABLE picky (id UUID)").await?;
    for (text, is_refused) in [
        ("019aa4d9-cac0-8393-80dc-dc64a6e9c808", true),
        ("00000000-0000-8000-8000-000000000002", true),
        ("00000000-0000-8000-8100-000000000002", false),
        ("00000000-0000-7f00-8000-000000000002", false),
        ("00000000-0000-ff00-0100-000000000002", true),
        ("00000000-0000-ff00-0000-000000000002", false),
    ] {
        let key: Uuid = text.parse()?;
        assert_eq!(
            mariadb_uuid_is_refused(key.as_bytes()),
            is_refused,
            "{text}"
        );
        Columns::execute(&pool, "DELETE FROM picky").await?;
        let insert = query("INSERT INTO picky VALUES (?)").bind(Key::new(key));
        match insert.execute(&pool).await {
            Ok(_) => {
                let read: Key = one(&pool, "SELECT id FROM picky").await?;
                assert_eq!(read.into_key(), key);
                assert!(!is_refused, "{text}");
            }
            Err(error) => {
                let error = error.as_database_error().expect("an answer");
                let number = error.downcast_ref::<MySqlDatabaseError>().number();
                assert!(is_refused && number == 1292, "{text}: {error}");
            }
        }
        Columns::execute(&pool, "DELETE FROM picky").await?;
        query("INSERT INTO picky VALUES (?)")
            .bind(key.as_bytes().to_vec())
            .execute(&pool)
            .await?;
        let read: String = one(&pool, "SELECT id FROM picky").await?;
        assert_eq!(read == text, !is_refused, "{text} is read as {read}");
    }
    Ok(())
}

/// Two texts that differ in one letter's case.
const TWINS: [&str; 2] = ["0NQ_LnK8m~Cv5uYuAOTzUG", "0NQ_LnK8M~Cv5uYuAOTzUG"];

/// Only binary collations keep the order, and one that does not see case takes two keys for one.
/// A column that names no collation has the database's.
async fn char22_under_other_collations_loses_keys_and_order(pool: Pool<MySql>) -> Outcome {
    let declared = <column::Char22 as ColumnOn<MariaDb>>::TYPE;
    for (declared, keeps_order, keeps_keys) in [
        (declared, true, true),
        ("BINARY(22)", true, true),
        (
            "CHAR(22) CHARACTER SET latin1 COLLATE latin1_bin",
            true,
            true,
        ),
        (
            "CHAR(22) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
            true,
            true,
        ),
        (
            "CHAR(22) CHARACTER SET latin1 COLLATE latin1_general_cs",
            false,
            true,
        ),
        (
            "CHAR(22) CHARACTER SET latin7 COLLATE latin7_general_cs",
            false,
            true,
        ),
        (
            "CHAR(22) CHARACTER SET utf8mb4 COLLATE utf8mb4_uca1400_as_cs",
            false,
            true,
        ),
        (
            "CHAR(22) CHARACTER SET utf8mb4 COLLATE utf8mb4_uca1400_german2_as_cs",
            false,
            true,
        ),
        (
            "CHAR(22) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
            false,
            false,
        ),
        (
            "CHAR(22) CHARACTER SET ascii COLLATE ascii_general_ci",
            false,
            false,
        ),
        ("CHAR(22)", false, false),
    ] {
        for micros in PACES {
            Columns::execute(&pool, "DROP TABLE IF EXISTS sorted").await?;
            let keys = short_texts(micros);
            let inversions = Columns::inversions(&pool, "sorted", declared, &keys).await?;
            assert!(
                if keeps_order {
                    inversions == 0
                } else {
                    inversions > 100
                },
                "{declared}: {inversions} of keys each {micros} µs"
            );
        }
        let sql = format!("CREATE OR REPLACE TABLE twins (id {declared} PRIMARY KEY)");
        Columns::execute(&pool, &sql).await?;
        let twins = query("INSERT INTO twins VALUES (?), (?)");
        match twins.bind(TWINS[0]).bind(TWINS[1]).execute(&pool).await {
            Ok(_) => assert!(keeps_keys, "{declared}"),
            Err(error) => {
                let error = error.as_database_error().expect("an answer");
                assert!(error.is_unique_violation() && !keeps_keys, "{error}");
            }
        }
    }
    Ok(())
}

async fn a_wrong_column_is_named(pool: Pool<MySql>) -> Outcome {
    mysql::Columns::create::<Long>(&pool, "keys").await?;
    mysql::Columns::insert(&pool, "keys", &[(0, Long::generate())]).await?;
    let message = |error: sqlx::Error| error.to_string();
    let read = query_scalar::<_, Native>("SELECT id FROM `keys`")
        .fetch_one(&pool)
        .await;
    let text = message(read.unwrap_err());
    assert!(
        text.contains("a `binary16` column holds 16 bytes, found 36 bytes"),
        "{text}"
    );
    assert!(
        text.contains("declare `char36` (`mariadb_uuid` for MariaDB's UUID)"),
        "{text}"
    );
    let read = query_scalar::<_, Short>("SELECT id FROM `keys`")
        .fetch_one(&pool)
        .await;
    assert!(message(read.unwrap_err()).contains("a `char22` column holds 22 characters"));
    Ok(())
}

async fn uuid_finds_its_index(pool: Pool<MySql>) -> Outcome {
    Columns::create::<Maria>(&pool, "indexed").await?;
    let rows: Vec<(usize, Maria)> = (0..2_000).map(|i| (i, Maria::generate())).collect();
    Columns::insert(&pool, "indexed", &rows).await?;
    assert_eq!(
        mysql::access_type(&pool, "indexed", rows[7].1).await?,
        "const"
    );
    Ok(())
}
