//! Many rows that are updated or upserted through a temporary table: that they arrive as by other statements, and
//! that nothing of it is left.

mod servers;

use std::collections::BTreeMap;

use libtest_mimic::Trial;
use ordid::{KeyType, OrderedKey, uuid::Uuid};
use ordid_sqlx::{Backend, Entity, OnConflict, UnitOfWork, Upserted, flushes_table};
use ordid_tests::{
    proxy::{At, Fault},
    servers::Servers,
};
use sqlx::{MySql, Pool, Postgres, SqlSafeStr as _, query_scalar};

use crate::{
    Outcome,
    database::Live,
    on_scratch,
    retry::{PAUSE, Remote, proxy},
};

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, sqlx)]
struct ItemId(Uuid);

/// Most columns have another type in the database than their fields.
#[derive(OrderedKey, Clone, Debug)]
#[ordid(table = "items", columns)]
struct Item {
    id: ItemId,
    code: String,
    price: f64,
    ratio: f32,
    small: i16,
    large: i64,
    flag: bool,
    note: Option<String>,
    blob: Vec<u8>,
    maybe: Option<i32>,
}

/// What a test needs to know of a database.
trait Staged: Live
where
    Item: Entity<Self>,
{
    const ITEMS: &'static str;

    /// Gives the columns the types of their fields, so that `COPY` takes them.
    const AS_FIELDS: Option<&'static str>;

    /// All values of all rows as text, as the database writes them.
    const CONTENTS: &'static str;

    async fn contents(pool: &Pool<Self>) -> Outcome<Vec<String>>;
}

macro_rules! staged {
    ($database:ty, $items:literal, $as_fields:expr, $contents:literal) => {
        impl Staged for $database {
            const ITEMS: &'static str = $items;
            const AS_FIELDS: Option<&'static str> = $as_fields;
            const CONTENTS: &'static str = $contents;

            async fn contents(pool: &Pool<Self>) -> Outcome<Vec<String>> {
                Ok(query_scalar(Self::CONTENTS).fetch_all(pool).await?)
            }
        }
    };
}

staged!(
    Postgres,
    "CREATE TABLE items (id uuid PRIMARY KEY, code char(12) NOT NULL, price numeric(10, 2) NOT NULL, \
     ratio double precision NOT NULL, small bigint NOT NULL, large numeric(20, 0) NOT NULL, flag boolean NOT NULL, \
     note varchar(300), blob bytea NOT NULL, maybe smallint CHECK (maybe < 30000), UNIQUE (code))",
    Some(
        "ALTER TABLE items ALTER price TYPE double precision, ALTER ratio TYPE real, ALTER small TYPE smallint, \
     ALTER large TYPE bigint, ALTER maybe TYPE integer"
    ),
    "SELECT concat_ws('|', code, price, ratio, small, large, flag, coalesce(note, 'NULL'), blob, \
     coalesce(maybe::text, 'NULL')) FROM items ORDER BY id"
);
staged!(
    MySql,
    "CREATE TABLE items (id BINARY(16) PRIMARY KEY, code CHAR(12) CHARACTER SET latin1 NOT NULL, \
     price DECIMAL(10, 2) NOT NULL, ratio DOUBLE NOT NULL, small BIGINT NOT NULL, large DECIMAL(20, 0) NOT NULL, \
     flag BIT(1) NOT NULL, note VARCHAR(300) COLLATE utf8mb4_bin, `blob` MEDIUMBLOB NOT NULL, \
     maybe SMALLINT CHECK (maybe < 30000), UNIQUE (code))",
    None,
    "SELECT CONCAT_WS('|', code, price, ratio, small, large, flag + 0, COALESCE(note, 'NULL'), HEX(`blob`), \
     COALESCE(maybe, 'NULL')) FROM items ORDER BY id"
);

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    macro_rules! each {
        ($($test:ident)+) => {
            $(
                let name = concat!("staged::", stringify!($test));
                on_scratch::<Postgres, _, _>(trials, servers, "postgres", name, $test::<Postgres>);
                on_scratch::<MySql, _, _>(trials, servers, "mariadb", name, $test::<MySql>);
                on_scratch::<MySql, _, _>(trials, servers, "mysql", name, $test::<MySql>);
            )+
        };
    }
    each! {
        values_arrive_as_by_other_statements
        what_is_planned_is_sent
        a_refused_flush_leaves_nothing
        what_fails_there_is_sent_by_other_statements
        a_row_that_is_there_twice_is_refused
        each_row_is_inserted_by_one_of_two
        rows_are_written_once_wherever_the_connection_is_cut
        rows_larger_than_a_statement_go_in_more_of_them
    }
    servers::add(servers, trials);
}

/// As many rows as any engine sends through a temporary table.
const MANY: usize = 1_200;

fn items(count: usize) -> Vec<Item> {
    let item = |number: usize| Item {
        id: ItemId::generate(),
        code: format!("code {number}"),
        price: 0.0,
        ratio: 0.0,
        small: 0,
        large: 0,
        flag: false,
        note: None,
        blob: Vec::new(),
        maybe: None,
    };
    (0..count).map(item).collect()
}

/// Gives each row values of its own, among them the outermost ones.
fn change(items: &mut [Item]) {
    for (number, item) in items.iter_mut().enumerate() {
        let small = i16::try_from(number % 500).unwrap_or_default();
        item.price = f64::from(small) + 0.125;
        item.ratio = [0.1, -3.5e30, 1.25e-20, f32::MAX][number % 4];
        item.small = [i16::MIN, i16::MAX, small][number % 3];
        item.large = [i64::MIN, i64::MAX, i64::from(small)][number % 3];
        item.flag = number % 2 == 0;
        item.note = (number % 5 > 0).then(|| "Grüße 🦀 \\ ' \" ".repeat(number % 20));
        item.blob = [0, 255, b'\\', b'\'', 10].repeat(number % 30);
        item.maybe = (number % 7 > 0).then_some(i32::from(small));
    }
}

async fn create<DB: Staged>(pool: &Pool<DB>) -> Outcome
where
    Item: Entity<DB>,
{
    DB::script(pool, &format!("{}; {}", DB::ITEMS, flushes_table::<DB>())).await?;
    Ok(())
}

async fn insert<DB: Staged>(pool: &Pool<DB>, items: &[Item]) -> Outcome
where
    Item: Entity<DB>,
{
    let mut work = UnitOfWork::new();
    for item in items {
        work.add(item.clone());
    }
    work.flush(pool).await?;
    Ok(())
}

/// A unit of work that sends no rows through a temporary table, and one that does.
fn works<DB: Backend>() -> [UnitOfWork<DB>; 2] {
    let mut without = DB::PROFILE;
    without.temporary_tables = false;
    [UnitOfWork::new().with_engine(without), UnitOfWork::new()]
}

async fn values_arrive_as_by_other_statements<DB: Staged>(pool: Pool<DB>) -> Outcome
where
    Item: Entity<DB>,
{
    create(&pool).await?;
    let at_first = items(MANY);
    let mut changed = at_first.clone();
    change(&mut changed);
    for as_fields in [None, DB::AS_FIELDS] {
        if let Some(script) = as_fields {
            DB::script(&pool, script).await?;
        }
        let mut contents = Vec::new();
        for mut work in works::<DB>() {
            let mut of_each = Vec::new();
            for way in 0..4 {
                DB::script(&pool, "DELETE FROM items").await?;
                let there = match way {
                    0 | 1 => &at_first[..],
                    _ => &at_first[..MANY / 2],
                };
                insert(&pool, there).await?;
                for item in &changed {
                    let item = item.clone();
                    match way {
                        0 => work.update(item),
                        1 => work.update_columns(
                            item,
                            (Item::price, Item::note, Item::large, Item::blob),
                        ),
                        2 => drop(work.upsert(item)),
                        // Half of them are found by their codes, and keep their keys.
                        _ => drop(work.upsert_with(
                            Item {
                                id: ItemId::generate(),
                                ..item
                            },
                            OnConflict::of(Item::code),
                        )),
                    }
                }
                let flushed = work.flush(&pool).await?;
                let updated = if way < 2 { MANY } else { MANY / 2 };
                assert_eq!(
                    [flushed.updated(), flushed.rows()],
                    [updated, MANY - updated],
                    "{way}"
                );
                of_each.push(DB::contents(&pool).await?);
            }
            contents.push(of_each);
        }
        assert_eq!(contents[0], contents[1]);
        assert_eq!(contents[0][0], contents[0][2]);
        assert!(contents[0][0][3].contains("Grüße"), "{}", contents[0][0][3]);
    }
    Ok(())
}

async fn what_is_planned_is_sent<DB: Staged>(pool: Pool<DB>) -> Outcome
where
    Item: Entity<DB>,
{
    create(&pool).await?;
    let all = items(MANY);
    insert(&pool, &all[..MANY / 2]).await?;
    let statements = async |add: fn(&mut UnitOfWork<DB>, Item)| {
        let mut work = UnitOfWork::<DB>::new();
        all.iter().for_each(|item| add(&mut work, item.clone()));
        let plan = work.plan()?;
        let [table] = &plan.tables[..] else {
            panic!("{plan:?}");
        };
        assert!(table.temporary_table, "{plan:?}");
        let flushed = work.flush_on(&mut *pool.acquire().await?).await?;
        assert_eq!(
            flushed.tables[0].statements,
            table.statements.len(),
            "{plan:?}"
        );
        Outcome::Ok(table.statements.len())
    };
    // Two chunks, at most two statements before and five behind.
    for sent in [
        statements(|work, item| {
            work.upsert(item);
        })
        .await?,
        statements(|work, item| work.update(item)).await?,
        statements(|work, item| work.update_columns(item, Item::note)).await?,
    ] {
        assert!((5..=9).contains(&sent), "{sent}");
    }
    // Fewer rows are not worth a table.
    let mut work = UnitOfWork::<DB>::new();
    work.update(all[0].clone());
    assert!(!work.plan()?.tables[0].temporary_table);
    Ok(())
}

/// The same connection is used again.
async fn a_refused_flush_leaves_nothing<DB: Staged>(pool: Pool<DB>) -> Outcome
where
    Item: Entity<DB>,
{
    create(&pool).await?;
    let all = items(MANY);
    insert(&pool, &all).await?;
    let before = DB::contents(&pool).await?;
    let mut connection = pool.acquire().await?;
    for round in 0..2 {
        let mut refused = all.clone();
        // Refused by the table, or already by the temporary one, which has the column's type.
        refused[1_100].maybe = Some([30_001, 70_000][round]);
        for upserts in [false, true] {
            let mut work = UnitOfWork::<DB>::new();
            for item in &refused {
                match upserts {
                    true => drop(work.upsert(item.clone())),
                    false => work.update(item.clone()),
                }
            }
            let error = work
                .flush_on(&mut connection)
                .await
                .expect_err("a row is refused");
            let text = error.to_string();
            assert!(
                !error.is_commit_unknown() && text.contains("nothing was written"),
                "{text}"
            );
            assert_eq!(error.key(), Some(&*refused[1_100].id.to_string()), "{text}");
            let asks = "SELECT 1 FROM ordid_rows".into_sql_str();
            let gone = DB::run_script(&mut connection, asks).await;
            assert!(gone.is_err(), "the temporary table is there");
            assert_eq!(DB::contents(&pool).await?, before);
            let mut gone = UnitOfWork::<DB>::new();
            gone.update(items(1).remove(0));
            all[1..].iter().for_each(|item| gone.update(item.clone()));
            let error = gone
                .flush_on(&mut connection)
                .await
                .expect_err("a row is not there");
            assert!(error.is_missing_row(), "{error}");
        }
    }
    let mut changed = all.clone();
    change(&mut changed);
    let mut work = UnitOfWork::<DB>::new();
    changed.into_iter().for_each(|item| work.update(item));
    work.flush_on(&mut connection).await?;
    assert_ne!(DB::contents(&pool).await?, before);
    // Nothing of it is left for the next user of the connection.
    let asks = "SELECT 1 FROM ordid_rows".into_sql_str();
    let gone = DB::run_script(&mut connection, asks).await;
    assert!(gone.is_err(), "the temporary table is there");
    Ok(())
}

/// What the temporary table refuses is not always what the table would refuse.
async fn what_fails_there_is_sent_by_other_statements<DB: Staged>(pool: Pool<DB>) -> Outcome
where
    Item: Entity<DB>,
{
    create(&pool).await?;
    let all = items(MANY);
    insert(&pool, &all).await?;
    // Values that are of use only if the row is inserted.
    let mut work = UnitOfWork::<DB>::new();
    for item in &all {
        let item = Item {
            note: Some("changed".to_owned()),
            maybe: Some(70_000),
            ..item.clone()
        };
        work.upsert_with(item, OnConflict::key().set(Item::note));
    }
    let flushed = work.flush(&pool).await?;
    assert_eq!((flushed.updated(), flushed.retries), (MANY, 0));
    let found = DB::contents(&pool).await?;
    assert!(
        found
            .iter()
            .all(|row| row.contains("changed") && row.ends_with("NULL"))
    );
    let refused = Item {
        maybe: Some(70_000),
        ..items(1).remove(0)
    };
    all.iter().chain([&refused]).for_each(|item| {
        let code = format!("{} new", item.code);
        let item = Item {
            code: code.chars().take(12).collect(),
            ..item.clone()
        };
        work.upsert_with(item, OnConflict::key().set(Item::note));
    });
    let error = work.flush(&pool).await.expect_err("a row is refused");
    assert_eq!(error.key(), Some(&*refused.id.to_string()), "{error}");
    assert_eq!(DB::contents(&pool).await?, found);
    Ok(())
}

/// Without a unique index, an upsert may find two rows by the same values.
async fn a_row_that_is_there_twice_is_refused<DB: Staged>(pool: Pool<DB>) -> Outcome
where
    Item: Entity<DB>,
{
    create(&pool).await?;
    let table = DB::ITEMS.replace(", UNIQUE (code)", "");
    DB::script(&pool, &format!("DROP TABLE items; {table}")).await?;
    let all = items(MANY);
    let twin = Item {
        id: ItemId::generate(),
        ..all[7].clone()
    };
    insert(&pool, &[&all[..MANY / 2], &[twin]].concat()).await?;
    let before = DB::contents(&pool).await?;
    let mut texts = Vec::new();
    let again: Vec<_> = all
        .into_iter()
        .map(|item| Item {
            id: ItemId::generate(),
            small: 7,
            ..item
        })
        .collect();
    for mut work in works::<DB>() {
        for item in &again {
            let by_code = OnConflict::of(Item::code).set(Item::small);
            work.upsert_with(item.clone(), by_code);
        }
        let error = work.flush(&pool).await.expect_err("a row is there twice");
        assert!(!error.is_commit_unknown(), "{error}");
        texts.push(error.to_string());
        assert_eq!(DB::contents(&pool).await?, before);
    }
    assert_eq!(texts[0], texts[1]);
    Ok(())
}

/// Another transaction has inserted a row that both flushes want, and is rolled back once both wait for it. So one of them
/// finds rows there that were missing when it asked, and begins anew.
async fn each_row_is_inserted_by_one_of_two<DB: Staged + Remote>(pool: Pool<DB>) -> Outcome
where
    Item: Entity<DB>,
{
    create(&pool).await?;
    let all = items(MANY + 400);
    for round in 0..4 {
        DB::script(&pool, "DELETE FROM items").await?;
        let by_code = round % 2 == 1;
        let mut open = pool.begin().await?;
        let mut first = UnitOfWork::<DB>::new();
        first.add(all[400].clone());
        first.flush_in(&mut open).await?;
        let released = async {
            // MySQL refuses to count while a transaction ends.
            while DB::count(&pool, DB::WAITING).await.unwrap_or(0) < 2 {
                tokio::time::sleep(PAUSE).await;
            }
            open.rollback().await
        };
        let (one, other, released) = tokio::join!(
            upserted(&pool, &all[..MANY], by_code),
            upserted(&pool, &all[400..], by_code),
            released
        );
        released?;
        let ((one, of_one), (other, of_other)) = (one?, other?);
        assert!(of_one || of_other, "nobody was late in round {round}");
        let mut inserted = [one, other].concat();
        inserted.sort();
        let mut codes: Vec<_> = all.iter().map(|item| item.code.clone()).collect();
        codes.sort();
        assert_eq!(inserted, codes, "round {round}");
    }
    Ok(())
}

/// Upserts items by their codes or their keys. Returns the codes of those that were inserted, and whether the flush was
/// late: it was tried again, or sent its rows without the temporary table.
async fn upserted<DB: Backend>(
    pool: &Pool<DB>,
    items: &[Item],
    by_code: bool,
) -> Outcome<(Vec<String>, bool)>
where
    Item: Entity<DB>,
{
    let mut work = UnitOfWork::<DB>::new();
    let mut given = BTreeMap::new();
    for item in items {
        let mut item = item.clone();
        if by_code {
            item.id = ItemId::generate();
        }
        given.insert(item.code.clone(), item.id);
        let on_conflict = match by_code {
            true => OnConflict::of(Item::code),
            false => OnConflict::key(),
        };
        work.upsert_with(item, on_conflict);
    }
    let planned = work.plan()?.tables[0].statements.len();
    let flushed = loop {
        match work.flush(pool).await {
            Err(error) if error.is_transient() => {}
            flushed => break flushed?,
        }
    };
    let inserted = given
        .into_iter()
        .filter(|(_, id)| match flushed.upserted::<Item>(*id) {
            Some(Upserted::Inserted) => true,
            Some(Upserted::Updated) => false,
            other => panic!("{other:?}"),
        });
    let inserted = inserted.map(|(code, _)| code).collect();
    // Another number of them: on MySQL one for each update.
    let sent = flushed.tables[0].statements;
    let is_other = match DB::PROFILE.name {
        "MySQL" => sent > 100,
        _ => sent != planned,
    };
    let was_late = flushed.retries > 0 || is_other;
    Ok((inserted, was_late))
}

/// The flush begins anew, or finds that its COMMIT was carried out.
async fn rows_are_written_once_wherever_the_connection_is_cut<DB: Staged + Remote>(
    pool: Pool<DB>,
) -> Outcome
where
    Item: Entity<DB>,
{
    create(&pool).await?;
    let inserted = is_cut(&pool).await?;
    if let Some(script) = DB::AS_FIELDS {
        DB::script(&pool, script).await?;
        assert_eq!(
            is_cut(&pool).await?,
            inserted - 1,
            "one COPY for two inserts"
        );
    }
    Ok(())
}

/// Returns how many statements the flush takes if nothing is cut.
async fn is_cut<DB: Staged + Remote>(pool: &Pool<DB>) -> Outcome<usize>
where
    Item: Entity<DB>,
{
    let mut all = items(MANY);
    let proxy = proxy(pool).await?;
    let mut faults = vec![Fault::None];
    let mut expected = None;
    let (mut retries, mut statements) = (0, 0);
    while let Some(fault) = faults.pop() {
        DB::script(pool, "DELETE FROM items").await?;
        all.iter_mut().for_each(|item| item.small = 1);
        insert(pool, &all[..MANY / 2]).await?;
        let behind = DB::through(pool, &proxy).await?;
        proxy.plan([fault]);
        let mut work = UnitOfWork::<DB>::new();
        for item in &mut all {
            item.small = 2;
            work.upsert(item.clone());
        }
        let flushed = work.flush(&behind).await;
        let flushed = flushed.map_err(|error| format!("{fault:?}: {error}"))?;
        assert_eq!(
            [flushed.updated(), flushed.rows()],
            [MANY / 2; 2],
            "{fault:?}"
        );
        for (number, item) in all.iter().enumerate() {
            let became = match number < MANY / 2 {
                true => Upserted::Updated,
                false => Upserted::Inserted,
            };
            assert_eq!(flushed.upserted::<Item>(item.id), Some(became), "{fault:?}");
        }
        retries += flushed.retries;
        let found = DB::contents(pool).await?;
        assert_eq!(*expected.get_or_insert(found.clone()), found, "{fault:?}");
        behind.close().await;
        if fault == Fault::None {
            statements = flushed.tables[0].statements;
            let traffic = proxy.last_traffic();
            let (up, down) = traffic.commit.ok_or("no COMMIT passed")?;
            faults = (2..12)
                .map(|part| Fault::Cut(At::Up(up * part / 12)))
                .collect();
            faults.extend([0, 11].map(|bytes| Fault::Cut(At::Commit(bytes))));
            faults.extend([down / 2, down].map(Fault::Swallow));
        }
    }
    assert!(retries >= 10, "{retries}");
    Ok(statements)
}

/// The values of a chunk have more bytes than a statement takes.
async fn rows_larger_than_a_statement_go_in_more_of_them<DB: Staged>(pool: Pool<DB>) -> Outcome
where
    Item: Entity<DB>,
{
    create(&pool).await?;
    let mut all = items(MANY);
    insert(&pool, &all).await?;
    for (number, item) in all.iter_mut().enumerate() {
        item.blob = vec![7; 4_000 + number];
    }
    all[600].blob = vec![7; 3_000_000];
    let mut work = UnitOfWork::<DB>::new();
    all.iter().for_each(|item| work.update(item.clone()));
    let flushed = work.flush(&pool).await?;
    assert!(flushed.tables[0].statements > 5, "{flushed:?}");
    let found = DB::contents(&pool).await?;
    let lengths = found.iter().map(String::len);
    assert!(lengths.clone().min() > Some(8_000) && lengths.max() > Some(6_000_000));
    Ok(())
}
