//! Tables that hold what no mapping table should.

use ordid_sql::mapping::uuid_hash;
use ordid_sqlx::{MappingError, MappingTable};
use ordid_tests::trials::Outcome;
use sqlx::Pool;

use super::{Engine, uuids};

/// A table without any constraint, as somebody may have made it.
async fn loose<E: Engine>(pool: &Pool<E>, table: &str) -> Result<(), sqlx::Error> {
    let [id, uuid] = match E::SCHEMA {
        "public" => ["bigint", "uuid"],
        "main" => ["INTEGER", "BLOB"],
        _ => ["BIGINT", "VARBINARY(99)"],
    };
    let sql = format!("CREATE TABLE {table} (id {id}, uuid {uuid}, uuid_hash BIGINT)");
    E::run(pool, &sql).await
}

pub async fn what_no_mapping_table_has_is_told<E: Engine>(pool: Pool<E>) -> Outcome {
    loose(&pool, "loose").await?;
    let table = MappingTable::<E>::new("loose")?;
    let uuid = uuids(1, 1)[0];
    let (literal, hash) = (E::literal(uuid), uuid_hash(uuid));
    let mut rows = vec![
        format!("1, NULL, {hash}"),
        format!("3, {literal}, NULL"),
        format!("4, {literal}, {hash}"),
        format!("5, {literal}, -1"),
        format!("6, {literal}, {hash}"),
    ];
    let mut expected = vec![
        (
            1,
            "row 1 has no UUID: declare the column NOT NULL".to_owned(),
        ),
        (
            3,
            "row 3 has no uuid_hash: declare the column NOT NULL".to_owned(),
        ),
        (
            5,
            format!("row 5 has the uuid_hash -1, but the CRC-32 of its UUID {uuid} is {hash}"),
        ),
    ];
    // PostgreSQL's type has no other length.
    if E::SCHEMA != "public" {
        rows.push(format!("2, x'73686f7274', {hash}"));
        let short = "row 2 has a UUID of 5 bytes, \"short\", not of 16: declare BINARY(16), uuid or \
                     BLOB";
        expected.push((2, short.to_owned()));
    }
    for row in rows {
        E::run(&pool, &format!("INSERT INTO loose VALUES ({row})")).await?;
    }
    let place = if E::SCHEMA == "mapped" {
        "`loose`"
    } else {
        "\"loose\""
    };
    for (id, expected) in expected {
        let error = table.key(&pool, id).await.expect_err("an unexpected row");
        assert!(error.is_unexpected_row() && error.driver().is_none());
        assert_eq!(
            error.to_string(),
            format!("mapping table {place}: {expected}")
        );
    }
    assert_eq!(table.key(&pool, 4).await?, Some(uuid));
    // Two rows of one UUID are found by any look-up of it.
    let twice = [(4, 6), (6, 4)].map(|(a, b)| {
        format!(
            "mapping table {place}: the UUID {uuid} has two rows, {a} and {b}: the table needs \
             UNIQUE (uuid_hash, uuid)"
        )
    });
    for outcome in [
        table.get(&pool, uuid).await.map(drop),
        table.insert_or_get(&pool, uuid).await.map(drop),
        table.insert_many(&pool, &[uuid]).await.map(drop),
    ] {
        let error = outcome.expect_err("two rows");
        assert!(twice.contains(&error.to_string()), "{error}");
    }
    // Without a column that counts, or without the table, the database says so.
    let elsewhere = MappingTable::<E>::new("nowhere")?;
    for error in [
        elsewhere
            .get(&pool, uuid)
            .await
            .map(drop)
            .expect_err("no table"),
        elsewhere
            .insert(&pool, uuid)
            .await
            .map(drop)
            .expect_err("no table"),
        elsewhere
            .keys(&pool, &[1, 2])
            .await
            .map(drop)
            .expect_err("no table"),
    ] {
        assert!(is_refused(&error), "{error}");
        assert!(error.to_string().contains("nowhere"), "{error}");
    }
    Ok(())
}

/// The database's own refusal, and nothing that another time would change.
fn is_refused(error: &MappingError) -> bool {
    let again = error.is_transient() || error.is_connection_lost();
    error.driver().is_some() && !again && !error.is_unexpected_row()
}

pub async fn our_table_refuses_it<E: Engine>(pool: Pool<E>) -> Outcome {
    let table = MappingTable::<E>::new("strict")?;
    table.create(&pool).await?;
    let uuid = uuids(1, 1)[0];
    let id = table.insert_or_get(&pool, uuid).await?;
    let (bytes, hash) = (E::literal(uuid), uuid_hash(uuid));
    let other = u32::from(hash == 0);
    let mut refused = vec![
        format!("NULL, {hash}"),
        format!("{bytes}, NULL"),
        format!("{bytes}, -1"),
        format!("{bytes}, 4294967296"),
        format!("{bytes}, {hash}"),
    ];
    match E::SCHEMA {
        // The engine has the function, and checks by it.
        "mapped" => refused.push(format!("{bytes}, {other}")),
        "main" => refused.extend([
            format!("x'00', {hash}"),
            format!("'{uuid}', {hash}"),
            format!("'1234567890123456', {hash}"),
        ]),
        _ => refused.push(format!("'1234', {hash}")),
    }
    for row in refused {
        let sql = format!("INSERT INTO strict (uuid, uuid_hash) VALUES ({row})");
        assert!(E::run(&pool, &sql).await.is_err(), "{row}");
    }
    assert_eq!(E::number(&pool, "SELECT COUNT(*) FROM strict").await?, 1);
    assert_eq!(table.key(&pool, id).await?, Some(uuid));
    Ok(())
}

pub async fn used_up_ids_are_an_error<E: Engine>(pool: Pool<E>) -> Outcome {
    let table = MappingTable::<E>::new("full")?;
    table.create(&pool).await?;
    let uuids = uuids(1, 4);
    let last = i64::MAX - 1;
    E::run(
        &pool,
        &match E::SCHEMA {
            "public" => format!("ALTER TABLE \"full\" ALTER id RESTART WITH {last}"),
            "main" => format!(
                "INSERT INTO \"full\" VALUES ({last}, {}, {})",
                E::literal(uuids[0]),
                uuid_hash(uuids[0])
            ),
            _ => format!("ALTER TABLE `full` AUTO_INCREMENT = {last}"),
        },
    )
    .await?;
    let first = table.insert_or_get(&pool, uuids[0]).await?;
    assert_eq!(first, last);
    // Whether the very last one is given differs; then there is none, and no other row's is taken for it.
    let next = table.insert_or_get(&pool, uuids[1]).await;
    assert!(
        next.as_ref().is_ok_and(|id| *id == i64::MAX) || next.is_err(),
        "{next:?}"
    );
    for error in [
        table
            .insert(&pool, uuids[2])
            .await
            .map(drop)
            .expect_err("no id"),
        table
            .insert_or_get(&pool, uuids[2])
            .await
            .map(drop)
            .expect_err("no id"),
        table
            .insert_or_get_many(&pool, &uuids[2..])
            .await
            .map(drop)
            .expect_err("no id"),
        table
            .insert_many(&pool, &uuids[2..])
            .await
            .map(drop)
            .expect_err("no id"),
    ] {
        assert!(
            !error.is_transient() && !error.is_unexpected_row(),
            "{error}"
        );
    }
    assert_eq!(table.get(&pool, uuids[2]).await?, None);
    assert_eq!(table.insert_or_get(&pool, uuids[0]).await?, last);
    Ok(())
}
