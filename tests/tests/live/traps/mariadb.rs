//! MariaDB. What is shown here of InnoDB and of collations is said of MySQL by its manual; it was
//! run on MariaDB.

use libtest_mimic::Trial;
use ordid::{
    KeyType,
    entropy::{Entropy, SeededEntropy},
    layout::mariadb_uuid_is_refused,
    storage::{ColumnOn, Stores, column, dialect::MariaDb},
    uuid::{NoContext, Timestamp, Uuid},
};
use ordid_tests::{scratch_tests, servers::Servers};
use sqlx::{MySql, Pool, query, query_scalar};

use crate::{
    Outcome,
    database::one,
    keys::{Long, Native, PACES, at_pace},
};

use super::{is, put, refused, run};

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    scratch_tests!(trials, servers, MySql: "mariadb", "";
        trap_m3_sequential_guids_as_string_lose_order_in_uuid,
        trap_m4_random_nodes_of_version_1_have_no_order,
        trap_m5_version_1_as_bytes_wraps,
        trap_m8_one_uuid_in_two_cases_is_two_keys,
        trap_m9_short_values_are_padded_when_stored,
        trap_m10_m11_text_in_binary16,
        trap_m12_trailing_blanks_are_equal,
        trap_m13_a_number_finds_texts,
        trap_m14_what_an_index_entry_counts_as,
        trap_m15_columns_of_a_foreign_key_must_agree,
        trap_m17_functions_of_other_databases,
        trap_m18_seconds_shifted_by_32_leave_bigint,
        trap_m19_an_explicit_id_moves_auto_increment,
    );
}

/// How many adjacent rows of `v (id, position)` are out of order.
async fn inversions(pool: &Pool<MySql>, declared: &str, keys: &[Uuid]) -> Outcome<usize> {
    let sql = format!("CREATE OR REPLACE TABLE v (id {declared} PRIMARY KEY, position INT)");
    run(pool, &sql).await?;
    let mut builder = sqlx::QueryBuilder::<MySql>::new("INSERT INTO v (id, position) ");
    builder.push_values(keys.iter().zip(0_i32..), |mut row, (key, position)| {
        row.push_bind(&key.as_bytes()[..]).push_bind(position);
    });
    builder.build().execute(pool).await?;
    let positions: Vec<i32> = query_scalar("SELECT position FROM v ORDER BY id")
        .fetch_all(pool)
        .await?;
    Ok(positions
        .windows(2)
        .filter(|pair| pair[0] > pair[1])
        .count())
}

/// A version 1 key each second-and-a-bit, so that its low time, a 429th of an hour, comes round.
fn version_1(node: impl Fn() -> [u8; 6]) -> Vec<Uuid> {
    (0..2_000_u64)
        .map(|i| {
            let millis = 1_700_000_000_000 + i * 1_200;
            let (seconds, nanos) = (
                millis / 1_000,
                u32::try_from(millis % 1_000).unwrap() * 1_000_000,
            );
            Uuid::new_v1(Timestamp::from_unix(NoContext, seconds, nanos), &node())
        })
        .collect()
}

/// What .NET's SequentialGuid makes as AsString, six bytes of milliseconds and ten random ones, rises
/// as text and as bytes. `UUID` takes any byte for a version: it refuses a quarter of the keys, and
/// sorts the others by two rules.
async fn trap_m3_sequential_guids_as_string_lose_order_in_uuid(pool: Pool<MySql>) -> Outcome {
    let entropy = SeededEntropy::new(1);
    // No two keys of a millisecond, whose order is chance.
    for micros in PACES.into_iter().filter(|micros| *micros >= 1_000) {
        let mut keys = Vec::new();
        for number in 0..2_000 {
            let millis = 1_700_000_000_000 + number * micros / 1_000;
            let (high, low) = (entropy.next_u64()?, entropy.next_u64()?);
            keys.push(Uuid::from_u64_pair(millis << 16 | high >> 48, low));
        }
        assert_eq!(inversions(&pool, "BINARY(16)", &keys).await?, 0);
        let (refused_keys, taken): (Vec<Uuid>, Vec<Uuid>) = keys
            .iter()
            .partition(|key| mariadb_uuid_is_refused(key.as_bytes()));
        assert!(refused_keys.len() > 300, "{}", refused_keys.len());
        let lost = inversions(&pool, "UUID", &taken).await?;
        assert!(lost > 100, "{lost} of keys each {micros} µs");
        for key in refused_keys.iter().take(20) {
            let insert = format!("INSERT INTO v (id) VALUES ('{key}')");
            let message = refused(&pool, &insert).await?;
            assert!(message.contains("Incorrect uuid value"), "{message}");
        }
    }
    Ok(())
}

/// The node is what MariaDB's `UUID` compares first.
async fn trap_m4_random_nodes_of_version_1_have_no_order(pool: Pool<MySql>) -> Outcome {
    let random = || Uuid::new_v4().as_bytes()[10..].try_into().unwrap();
    assert!(inversions(&pool, "UUID", &version_1(random)).await? > 500);
    assert_eq!(inversions(&pool, "UUID", &version_1(|| [1; 6])).await?, 0);
    Ok(())
}

async fn trap_m5_version_1_as_bytes_wraps(pool: Pool<MySql>) -> Outcome {
    let keys = version_1(|| [1; 6]);
    assert!(inversions(&pool, "BINARY(16)", &keys).await? > 1);
    for micros in PACES {
        let keys = at_pace(2_000, micros);
        assert_eq!(inversions(&pool, "BINARY(16)", &keys).await?, 0);
    }
    Ok(())
}

/// ordid writes lower case, and refuses to read what is not.
async fn trap_m8_one_uuid_in_two_cases_is_two_keys(pool: Pool<MySql>) -> Outcome {
    let declared = <column::Char36 as ColumnOn<MariaDb>>::TYPE;
    let sql = format!("CREATE TABLE cases (id {declared} PRIMARY KEY)");
    run(&pool, &sql).await?;
    let key = Long::generate();
    put(&pool, "INSERT INTO cases VALUES (?)", key).await?;
    let upper = key.to_raw().to_string().to_uppercase();
    put(&pool, "INSERT INTO cases VALUES (?)", upper.clone()).await?;
    is(&pool, "SELECT COUNT(*) FROM cases", 2).await?;
    let read = query_scalar::<_, Long>("SELECT id FROM cases")
        .fetch_all(&pool)
        .await;
    let message = read.unwrap_err().to_string();
    assert!(
        message.contains("lower case") || message.contains("canonical"),
        "{message}"
    );
    Ok(())
}

async fn trap_m9_short_values_are_padded_when_stored(pool: Pool<MySql>) -> Outcome {
    let sql = "CREATE TABLE p (id BINARY(16) PRIMARY KEY); INSERT INTO p VALUES (x'0102')";
    run(&pool, sql).await?;
    is(&pool, "SELECT COUNT(*) FROM p WHERE id = x'0102'", 0).await?;
    let message = refused(&pool, "INSERT INTO p VALUES (x'010200')").await?;
    assert!(message.contains("Duplicate entry"), "{message}");
    // What ordid stores has 16 bytes, whatever they are.
    assert_eq!(
        <column::Binary16 as Stores<Uuid>>::encode(Uuid::nil()).len(),
        16
    );
    Ok(())
}

async fn trap_m10_m11_text_in_binary16(pool: Pool<MySql>) -> Outcome {
    run(&pool, "CREATE TABLE t (id BINARY(16) PRIMARY KEY)").await?;
    let key = Native::generate();
    put(&pool, "INSERT INTO t VALUES (?)", key).await?;
    let found = |sql: &'static str| query_scalar::<_, i64>(sql);
    let by_text = found("SELECT COUNT(*) FROM t WHERE id = ?").bind(key.to_raw().to_string());
    assert_eq!(
        by_text.fetch_one(&pool).await?,
        0,
        "found nothing, said nothing"
    );
    let by_key = found("SELECT COUNT(*) FROM t WHERE id = ?").bind(key);
    assert_eq!(by_key.fetch_one(&pool).await?, 1);

    // A strict server refuses the text; one that is not keeps its first 16 characters.
    let text = "INSERT INTO t VALUES ('019ac000-0000-7000-8000-000000000001')";
    let message = refused(&pool, text).await?;
    assert!(message.contains("too long"), "{message}");
    let mut lax = pool.acquire().await?;
    sqlx::raw_sql("SET SESSION sql_mode = ''")
        .execute(&mut *lax)
        .await?;
    sqlx::raw_sql(text).execute(&mut *lax).await?;
    let read = query_scalar::<_, Native>("SELECT id FROM t WHERE id = '019ac000-0000-70'")
        .fetch_one(&mut *lax)
        .await;
    let message = read.unwrap_err().to_string();
    assert!(message.contains("not a `Native`"), "{message}");
    lax.close().await?;
    Ok(())
}

async fn trap_m12_trailing_blanks_are_equal(pool: Pool<MySql>) -> Outcome {
    let equal = "SELECT 'a' = 'a ' COLLATE utf8mb4_bin";
    is(&pool, equal, 1).await?;
    let equal = "SELECT CAST('a' AS BINARY) = CAST('a ' AS BINARY)";
    is(&pool, equal, 0).await?;
    // No text of a key ends in a blank, and one that does is not read.
    let error = <column::Char22 as Stores<Uuid>>::decode(b"0NQ_LnK8m~Cv5uYuAOTzU ").unwrap_err();
    assert!(error.is_parse(), "{error}");
    Ok(())
}

async fn trap_m13_a_number_finds_texts(pool: Pool<MySql>) -> Outcome {
    let declared = <column::Char36 as ColumnOn<MariaDb>>::TYPE;
    run(
        &pool,
        &format!(
            "CREATE TABLE n (id {declared} PRIMARY KEY); \
             INSERT INTO n VALUES ('1e3abcde-0000-7000-8000-000000000001')"
        ),
    )
    .await?;
    is(&pool, "SELECT COUNT(*) FROM n WHERE id = 1000", 1).await?;
    // A key is bound as text, and finds what it is.
    let other: Long = "1e3abcde-0000-7000-8000-000000000002"
        .parse::<Uuid>()?
        .try_into()?;
    let found = query_scalar::<_, i64>("SELECT COUNT(*) FROM n WHERE id = ?").bind(other);
    assert_eq!(found.fetch_one(&pool).await?, 0);
    Ok(())
}

async fn trap_m14_what_an_index_entry_counts_as(pool: Pool<MySql>) -> Outcome {
    for (declared, value, length) in [
        (
            <column::Binary16 as ColumnOn<MariaDb>>::TYPE,
            "LEFT(MD5(seq), 16)",
            "16",
        ),
        (
            <column::MariaDbUuid as ColumnOn<MariaDb>>::TYPE,
            "UUID()",
            "16",
        ),
        (
            <column::Char22 as ColumnOn<MariaDb>>::TYPE,
            "LEFT(MD5(seq), 22)",
            "22",
        ),
        (<column::Char36 as ColumnOn<MariaDb>>::TYPE, "UUID()", "36"),
        ("CHAR(36) CHARACTER SET utf8mb4", "UUID()", "144"),
    ] {
        run(
            &pool,
            &format!(
                "CREATE OR REPLACE TABLE l (id {declared} PRIMARY KEY, k INT); \
                 INSERT INTO l (id, k) SELECT {value}, seq FROM seq_1_to_50"
            ),
        )
        .await?;
        let plan = query(sqlx::AssertSqlSafe(
            "EXPLAIN SELECT id FROM l FORCE INDEX (PRIMARY) ORDER BY id LIMIT 1",
        ))
        .fetch_one(&pool)
        .await?;
        let found: Option<String> = sqlx::Row::try_get(&plan, "key_len")?;
        assert_eq!(found.as_deref(), Some(length), "{declared}");
    }
    Ok(())
}

async fn trap_m15_columns_of_a_foreign_key_must_agree(pool: Pool<MySql>) -> Outcome {
    let char36 = <column::Char36 as ColumnOn<MariaDb>>::TYPE;
    run(
        &pool,
        &format!("CREATE TABLE parent (id {char36} PRIMARY KEY)"),
    )
    .await?;
    for other in ["CHAR(36) CHARACTER SET utf8mb4", "UUID"] {
        let sql =
            format!("CREATE TABLE child (id {other}, FOREIGN KEY (id) REFERENCES parent (id))");
        let message = refused(&pool, &sql).await?;
        assert!(message.contains("errno: 150"), "{message}");
    }
    run(
        &pool,
        &format!("CREATE TABLE child (id {char36}, FOREIGN KEY (id) REFERENCES parent (id))"),
    )
    .await?;
    Ok(())
}

async fn trap_m17_functions_of_other_databases(pool: Pool<MySql>) -> Outcome {
    // MariaDB has the first from version 11.7.
    let is_older = "SELECT VERSION() REGEXP '^(10|11[.][0-6])[.]'";
    let is_older = one::<i64>(&pool, is_older).await? == 1;
    let calls = ["UUID_v7()", "UUID_TO_BIN(UUID(), 1)"];
    for call in &calls[usize::from(!is_older)..] {
        let message = refused(&pool, &format!("SELECT {call}")).await?;
        assert!(message.contains("does not exist"), "{message}");
    }
    Ok(())
}

async fn trap_m18_seconds_shifted_by_32_leave_bigint(pool: Pool<MySql>) -> Outcome {
    // 2038-01-19T03:14:08Z in the upper half.
    let past = one::<i64>(&pool, "SELECT (2147483648 << 32) > 9223372036854775807").await?;
    assert_eq!(past, 1);
    run(&pool, "CREATE TABLE b (id BIGINT PRIMARY KEY)").await?;
    let message = refused(&pool, "INSERT INTO b VALUES (2147483648 << 32)").await?;
    assert!(message.contains("Out of range"), "{message}");
    Ok(())
}

async fn trap_m19_an_explicit_id_moves_auto_increment(pool: Pool<MySql>) -> Outcome {
    run(
        &pool,
        "CREATE TABLE a (id BIGINT AUTO_INCREMENT PRIMARY KEY, k INT); \
         INSERT INTO a VALUES (7575033822011981823, 1); INSERT INTO a (k) VALUES (2); \
         INSERT INTO a VALUES (0, 3)",
    )
    .await?;
    let ids: Vec<i64> = query_scalar("SELECT id FROM a ORDER BY k")
        .fetch_all(&pool)
        .await?;
    let first = 7_575_033_822_011_981_823;
    assert_eq!(ids, [first, first + 1, first + 2]);
    Ok(())
}
