//! The table that others published for MySQL ("UUIDs are Popular, but Bad for Performance", 2019): its
//! faults, and what its hash and ours have in common.

use libtest_mimic::Trial;
use ordid::uuid::Uuid;
use ordid_sql::mapping::uuid_hash;
use ordid_sqlx::MappingTable;
use ordid_tests::{
    servers::Servers,
    trials::{Outcome, on_scratch},
};
use sqlx::{MySql, Pool, mysql::MySqlDatabaseError, query_scalar};

use super::{Engine, uuids};

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    on_scratch::<MySql, _, _>(
        trials,
        servers,
        "mariadb",
        "mapping_published_table_does_not_run",
        published_table_does_not_run,
    );
    for server in ["mariadb", "mysql"] {
        on_scratch::<MySql, _, _>(
            trials,
            servers,
            server,
            "mapping_published_function_maps_a_uuid_twice",
            published_function_maps_a_uuid_twice,
        );
        on_scratch::<MySql, _, _>(
            trials,
            servers,
            server,
            "mapping_hash_is_the_servers",
            hash_is_the_servers,
        );
    }
}

/// The table, as MariaDB takes it: with a `VARCHAR`, and without `NOT NULL` for what it computes.
const TABLE: &str = "CREATE TABLE uuid_to_id (
    id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
    uuid VARCHAR(36) CHARACTER SET ascii NOT NULL,
    uuid_hash INT UNSIGNED GENERATED ALWAYS AS (CRC32(uuid)) STORED,
    KEY (uuid_hash)
)";

/// The look-up and the insert of the function, one UUID a call. It is called deterministic because a server with a
/// binary log, which is MySQL's default, refuses the others (1418).
const FUNCTION: &str = "CREATE FUNCTION f_uuid_to_id(wanted VARCHAR(36) CHARACTER SET ascii)
RETURNS INT UNSIGNED DETERMINISTIC MODIFIES SQL DATA
BEGIN
    DECLARE found INT UNSIGNED;
    SELECT id INTO found FROM uuid_to_id WHERE uuid_hash = CRC32(wanted) AND uuid = wanted;
    IF found IS NULL THEN
        INSERT INTO uuid_to_id (uuid) VALUES (wanted);
        SET found = LAST_INSERT_ID();
    END IF;
    RETURN found;
END";

async fn published_table_does_not_run(pool: Pool<MySql>) -> Outcome {
    for (column, hash, number) in [
        ("VARCHAR(36)", "STORED NOT NULL", 1064),
        ("CHAR(36)", "STORED", 1901),
    ] {
        let sql = format!(
            "CREATE TABLE published (id INT AUTO_INCREMENT PRIMARY KEY, uuid {column} NOT NULL, \
             uuid_hash INT UNSIGNED GENERATED ALWAYS AS (CRC32(uuid)) {hash}, KEY (uuid_hash))"
        );
        let error = MySql::run(&pool, &sql).await.expect_err(hash);
        let error = error.into_database_error().ok_or("not the server's")?;
        assert_eq!(error.downcast::<MySqlDatabaseError>().number(), number);
    }
    MappingTable::<MySql>::new("ours")?.create(&pool).await?;
    Ok(())
}

async fn published_function_maps_a_uuid_twice(pool: Pool<MySql>) -> Outcome {
    MySql::run(&pool, TABLE).await?;
    MySql::run(&pool, FUNCTION).await?;
    let uuid = uuids(1, 1)[0].to_string();
    let call = "SELECT CAST(f_uuid_to_id(?) AS SIGNED)";
    let mut first = pool.begin().await?;
    let one: i64 = query_scalar(call)
        .bind(&uuid)
        .fetch_one(&mut *first)
        .await?;
    // Its row is not seen, and nothing is in the way of another.
    let two: i64 = query_scalar(call).bind(&uuid).fetch_one(&pool).await?;
    first.commit().await?;
    assert_ne!(one, two);
    assert_eq!(
        MySql::number(&pool, "SELECT COUNT(*) FROM uuid_to_id").await?,
        2
    );

    // The same with the unique index: the second waits for the first, and gets its id.
    let table = MappingTable::<MySql>::new("ours")?;
    table.create(&pool).await?;
    let uuid: Uuid = uuid.parse()?;
    let mut first = pool.begin().await?;
    let one = table.insert_or_get(&mut first, uuid).await?;
    let second = {
        let (pool, table) = (pool.clone(), table.clone());
        tokio::spawn(async move { table.insert_or_get(&pool, uuid).await })
    };
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    assert!(!second.is_finished());
    // Nobody waits for another UUID.
    table.insert(&pool, Uuid::max()).await?;
    first.commit().await?;
    assert_eq!(second.await??, one);
    assert_eq!(MySql::number(&pool, "SELECT COUNT(*) FROM ours").await?, 2);
    Ok(())
}

async fn hash_is_the_servers(pool: Pool<MySql>) -> Outcome {
    for uuid in uuids(0, 1_000).into_iter().chain([Uuid::max()]) {
        let hash: u64 = query_scalar("SELECT CAST(CRC32(?) AS UNSIGNED)")
            .bind(uuid)
            .fetch_one(&pool)
            .await?;
        assert_eq!(hash, u64::from(uuid_hash(uuid)), "{uuid}");
    }
    Ok(())
}
