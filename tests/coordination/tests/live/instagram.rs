//! Instagram's shards in PostgreSQL, made by a migration of ours. What a function does inside a millisecond
//! and at its end is tested where the function is alone: `tests/tests/live/instagram.rs`.

use libtest_mimic::Trial;
use ordid::{
    KeyType,
    clock::{Clock as _, SystemClock},
    scheme::{
        Instagram, Layout as _,
        instagram::{Shard, Shards},
    },
};
use ordid_sqlx::instagram::{create_shards, next_id, next_ids};
use ordid_tests::{
    servers::Servers,
    trials::{Outcome, on_scratch},
};
use sqlx::{Pool, Postgres, query, query_scalar};

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    on_scratch::<Postgres, _, _>(
        trials,
        servers,
        "postgres",
        "instagram_shards_are_created_once",
        shards_are_created_once,
    );
    on_scratch::<Postgres, _, _>(
        trials,
        servers,
        "postgres",
        "instagram_keys_of_a_shard_rise_wherever_they_are_made",
        keys_of_a_shard_rise,
    );
}

#[derive(KeyType)]
#[ordid(scheme = instagram, sqlx(postgres = bigint))]
struct PhotoId(i64);

const SCHEMAS: &str = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'Insta''%'";

async fn shards_are_created_once(pool: Pool<Postgres>) -> Outcome {
    let shards = Shards::new("Insta'", 0..=15)?;
    // Four at once, as where every process of a service migrates when it starts.
    let calls: Vec<_> = (0..4)
        .map(|_| {
            let (pool, shards) = (pool.clone(), shards.clone());
            tokio::spawn(async move { create_shards(&pool, &shards).await })
        })
        .collect();
    for call in calls {
        call.await??;
    }
    assert_eq!(query_scalar::<_, i64>(SCHEMAS).fetch_one(&pool).await?, 16);
    let shard = Shard::new(15)?;
    let before: Vec<PhotoId> = next_ids(&pool, &shards, shard, 100).await?;
    // With more shards: what is there goes on where it was.
    let more = Shards::new("Insta'", 0..=17)?;
    let mut transaction = pool.begin().await?;
    create_shards(&mut transaction, &more).await?;
    transaction.commit().await?;
    assert_eq!(query_scalar::<_, i64>(SCHEMAS).fetch_one(&pool).await?, 18);
    let after: PhotoId = next_id(&pool, &more, shard).await?;
    assert!(before.is_sorted_by(|a, b| a < b) && after > before[99]);
    // Rolled back, nothing of it is there.
    let mut transaction = pool.begin().await?;
    create_shards(&mut transaction, &Shards::new("Insta'", 18..=20)?).await?;
    transaction.rollback().await?;
    assert_eq!(query_scalar::<_, i64>(SCHEMAS).fetch_one(&pool).await?, 18);

    let error = next_id::<PhotoId>(&pool, &shards, Shard::new(17)?).await;
    let error = error.expect_err("not one of these").to_string();
    assert!(
        error.contains("expected a shard from 0 to 15, found 17"),
        "{error}"
    );
    Ok(())
}

async fn keys_of_a_shard_rise(pool: Pool<Postgres>) -> Outcome {
    let shards = Shards::new("insta", 5..=7)?;
    create_shards(&pool, &shards).await?;
    let since = SystemClock.now().as_unix_millis();
    let mut made: Vec<PhotoId> = Vec::new();
    for number in shards.numbers() {
        let shard = Shard::new(number)?;
        let default = shards.next_id_sql(shard)?;
        let table = format!(
            "CREATE TABLE photos{number} (id bigint PRIMARY KEY DEFAULT {default}, position int)"
        );
        query(sqlx::AssertSqlSafe(table)).execute(&pool).await?;
        let first = made.len();
        for position in 0..20 {
            // By Rust, and as a column's default, in turn.
            made.push(next_id(&pool, &shards, shard).await?);
            let insert = format!("INSERT INTO photos{number} (position) VALUES ($1) RETURNING id");
            let insert = query_scalar(sqlx::AssertSqlSafe(insert)).bind(position);
            made.push(insert.fetch_one(&pool).await?);
            made.extend(next_ids::<PhotoId>(&pool, &shards, shard, 50).await?);
        }
        assert!(made[first..].is_sorted_by(|a, b| a < b));
        // Read by the scheme of the client: the same layout.
        for key in &made[first..] {
            let inspection = Instagram::inspect(&key.to_raw())?;
            assert_eq!(inspection.node, Some(number));
            let time = inspection.moment.and_then(|moment| moment.timestamp());
            let millis = time.ok_or("a time")?.as_unix_millis();
            assert!(
                millis + 1_000 >= since && millis <= SystemClock.now().as_unix_millis() + 1_000
            );
        }
    }
    made.sort_unstable();
    made.dedup();
    assert_eq!(made.len(), 3 * 20 * 52);
    Ok(())
}
