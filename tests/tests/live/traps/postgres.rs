//! PostgreSQL.

use libtest_mimic::Trial;
use ordid::{
    KeyType,
    clock::Timestamp,
    storage::{ColumnOn, Stores, column, dialect::Postgres as Dialect},
    uuid::Uuid,
};
use ordid_tests::{scratch_tests, servers::Servers};
use sqlx::{Pool, Postgres, pool::PoolOptions, query_scalar};

use crate::{
    Outcome,
    database::one,
    keys::{Native, PACES, Short, at_pace, short_texts},
};

use super::{is, refused, run};

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    scratch_tests!(trials, servers, Postgres: "postgres", "";
        trap_p1_the_databases_own_collation_loses_order,
        trap_p2_base64url_is_out_of_order,
        trap_p3_which_texts_no_collation_hurts,
        trap_p4_a_collation_costs_space,
        trap_p5_a_prefix_finds_its_index,
        trap_p6_char_ignores_trailing_blanks,
        trap_p7_what_uuid_cannot_do,
        trap_p8_numbers_past_bigint,
    );
}

/// How many adjacent texts are out of order under a collation.
async fn inversions(pool: &Pool<Postgres>, collation: &str, texts: &[String]) -> Outcome<usize> {
    let sql = format!(
        "SELECT position FROM UNNEST($1::text[]) WITH ORDINALITY AS t (id, position) \
         ORDER BY id COLLATE \"{collation}\""
    );
    let positions: Vec<i64> = query_scalar(sqlx::AssertSqlSafe(sql))
        .bind(texts)
        .fetch_all(pool)
        .await?;
    Ok(out_of_order(&positions))
}

fn out_of_order(positions: &[i64]) -> usize {
    let pairs = positions.windows(2);
    pairs.filter(|pair| pair[0] > pair[1]).count()
}

/// Keys of 40 minutes, so that characters in the midst of them go through the alphabet.
fn keys() -> Vec<Uuid> {
    let times = (0..2_000).map(|i| Timestamp::from_unix_millis(1_700_000_000_000 + 1_200 * i));
    times
        .map(|time| Uuid::generate_at(time.unwrap()).unwrap())
        .collect()
}

/// A column that names no collation has the database's, which most installations take from a
/// language.
async fn trap_p1_the_databases_own_collation_loses_order(pool: Pool<Postgres>) -> Outcome {
    let name: String = one(&pool, "SELECT current_database() || '_own'").await?;
    run(
        &pool,
        &format!(
            "CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C' \
             LOCALE_PROVIDER icu ICU_LOCALE 'en-US'"
        ),
    )
    .await?;
    let options = (*pool.connect_options()).clone().database(&name);
    let own = PoolOptions::new().connect_with(options).await?;
    let outcome = own_collation_in(&own).await;
    own.close().await;
    run(&pool, &format!("DROP DATABASE {name} WITH (FORCE)")).await?;
    outcome
}

async fn own_collation_in(pool: &Pool<Postgres>) -> Outcome {
    let declared = <column::Char22 as ColumnOn<Dialect>>::TYPE;
    for (declared, keeps_order) in [(declared, true), ("text", false), ("varchar(22)", false)] {
        for micros in PACES {
            run(
                pool,
                &format!(
                    "DROP TABLE IF EXISTS d; \
                     CREATE TABLE d (id {declared} PRIMARY KEY, position bigint)"
                ),
            )
            .await?;
            let sql = "INSERT INTO d SELECT * FROM UNNEST($1::text[]) WITH ORDINALITY";
            sqlx::query(sql)
                .bind(short_texts(micros))
                .execute(pool)
                .await?;
            let positions = query_scalar("SELECT position FROM d ORDER BY id");
            let lost = out_of_order(&positions.fetch_all(pool).await?);
            assert!(
                if keeps_order { lost == 0 } else { lost > 100 },
                "{declared}: {lost} of keys each {micros} µs"
            );
        }
    }
    Ok(())
}

/// The alphabet of RFC 4648 is not in the order of ASCII; ordid's is.
async fn trap_p2_base64url_is_out_of_order(pool: Pool<Postgres>) -> Outcome {
    use data_encoding::BASE64URL_NOPAD;
    let keys = keys();
    let standard: Vec<String> = keys
        .iter()
        .map(|key| BASE64URL_NOPAD.encode(key.as_bytes()))
        .collect();
    assert!(inversions(&pool, "C", &standard).await? > 100);
    let ours: Vec<String> = keys
        .iter()
        .map(|key| String::from_utf8(column::Char22::encode(*key).to_vec()))
        .collect::<Result<_, _>>()?;
    assert_eq!(inversions(&pool, "C", &ours).await?, 0);
    assert!(inversions(&pool, "en-x-icu", &ours).await? > 100);
    Ok(())
}

/// Digits before letters, one case: the collations of languages agree.
async fn trap_p3_which_texts_no_collation_hurts(pool: Pool<Postgres>) -> Outcome {
    use data_encoding::{BASE32HEX_NOPAD, HEXLOWER};
    let keys = keys();
    let forms: [Vec<String>; 3] = [
        keys.iter().map(Uuid::to_string).collect(),
        keys.iter()
            .map(|key| HEXLOWER.encode(key.as_bytes()))
            .collect(),
        keys.iter()
            .map(|key| BASE32HEX_NOPAD.encode(key.as_bytes()))
            .collect(),
    ];
    for texts in &forms {
        for collation in ["C", "en-x-icu", "de-x-icu"] {
            assert_eq!(
                inversions(&pool, collation, texts).await?,
                0,
                "{collation} {}",
                texts[0]
            );
        }
    }
    Ok(())
}

/// Pages are counted, of the same keys on any machine. How many more a wrong collation takes is a
/// matter of the characters that go through the alphabet, and so of the pace.
async fn trap_p4_a_collation_costs_space(pool: Pool<Postgres>) -> Outcome {
    let declared = <column::Char22 as ColumnOn<Dialect>>::TYPE;
    let mut all = [0, 0];
    for micros in PACES {
        let keys: Vec<Short> = at_pace(50_000, micros)
            .into_iter()
            .map(Short::try_from)
            .collect::<Result<_, _>>()?;
        let mut pages = [0, 0];
        for (declared, pages) in [declared, "text COLLATE \"en-x-icu\""]
            .into_iter()
            .zip(&mut pages)
        {
            let sql = format!("DROP TABLE IF EXISTS s; CREATE TABLE s (id {declared} PRIMARY KEY)");
            run(&pool, &sql).await?;
            for keys in keys.chunks(1_000) {
                sqlx::query("INSERT INTO s SELECT * FROM UNNEST($1)")
                    .bind(keys)
                    .execute(&pool)
                    .await?;
            }
            *pages = one::<i64>(&pool, "SELECT pg_relation_size('s_pkey') / 8192").await?;
        }
        assert!(
            pages[1] * 20 > pages[0] * 21,
            "{pages:?} of keys each {micros} µs: a twentieth more at any pace"
        );
        all = [all[0] + pages[0], all[1] + pages[1]];
    }
    assert!(all[1] * 10 > all[0] * 12, "{all:?}: a fifth more in all");
    Ok(())
}

async fn trap_p5_a_prefix_finds_its_index(pool: Pool<Postgres>) -> Outcome {
    let declared = <column::Char22 as ColumnOn<Dialect>>::TYPE;
    for (declared, expected) in [
        (declared, "Index"),
        ("text COLLATE \"en-x-icu\"", "Seq Scan"),
    ] {
        run(
            &pool,
            &format!(
                "DROP TABLE IF EXISTS x; CREATE TABLE x (id {declared} PRIMARY KEY); \
                 INSERT INTO x SELECT lpad(g::text, 22, '0') FROM generate_series(1, 20000) g; \
                 ANALYZE x"
            ),
        )
        .await?;
        let sql = "EXPLAIN SELECT id FROM x WHERE id LIKE '000000000000000001234%'";
        let plan: Vec<String> = query_scalar(sql).fetch_all(&pool).await?;
        assert!(plan[0].starts_with(expected), "{declared}: {plan:?}");
    }
    Ok(())
}

async fn trap_p6_char_ignores_trailing_blanks(pool: Pool<Postgres>) -> Outcome {
    let sql = "CREATE TABLE c (id char(22)); INSERT INTO c VALUES ('abc')";
    run(&pool, sql).await?;
    is(&pool, "SELECT COUNT(*) FROM c WHERE id = 'abc '", 1).await?;
    is(&pool, "SELECT COUNT(*) FROM c WHERE id = 'abc '::text", 0).await?;
    let declared = <column::Char22 as ColumnOn<Dialect>>::TYPE;
    assert!(
        declared.starts_with("text "),
        "ordid declares no char(n): {declared}"
    );
    Ok(())
}

async fn trap_p7_what_uuid_cannot_do(pool: Pool<Postgres>) -> Outcome {
    run(&pool, "CREATE TABLE u (id uuid PRIMARY KEY)").await?;
    for sql in [
        "SELECT * FROM u WHERE id = '019ac000-0000-7000-8000-000000000001'::text",
        "SELECT '\\x019ac000000070008000000000000001'::bytea::uuid",
        "SELECT min(id) FROM u",
    ] {
        let message = refused(&pool, sql).await?;
        assert!(message.contains("uuid"), "{message}");
    }
    // What `min` is wanted for.
    let keys = [Native::generate(), Native::generate()];
    sqlx::query("INSERT INTO u SELECT * FROM UNNEST($1)")
        .bind(&keys[..])
        .execute(&pool)
        .await?;
    let newest: Native = one(&pool, "SELECT id FROM u ORDER BY id DESC LIMIT 1").await?;
    assert_eq!(newest, keys[1]);
    Ok(())
}

async fn trap_p8_numbers_past_bigint(pool: Pool<Postgres>) -> Outcome {
    let message = refused(&pool, "SELECT 18446744073709551615::bigint").await?;
    assert!(message.contains("out of range"), "{message}");
    // And a shift goes below zero without a word.
    let shifted: i64 = one(&pool, "SELECT 2147483648::bigint << 32").await?;
    assert_eq!(shifted, i64::MIN);
    Ok(())
}
