//! Upserts of rows that may exist already: with sessions that read uncommitted rows, and with NULL in the unique
//! columns.

use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use ordid::{Assigned, KeyType, OrderedKey, uuid::Uuid};
use ordid_sqlx::{Backend, Entity, OnConflict, UnitOfWork, Upserted, flushes_table};
use ordid_tests::servers::Servers;
use sqlx::{
    AssertSqlSafe, MySql, Pool, Postgres, SqlSafeStr as _, Sqlite, pool::PoolOptions, query,
    query_as, raw_sql,
};

use crate::{
    Outcome,
    database::Live as _,
    on_scratch,
    retry::{PAUSE, Remote as _},
    sqlite,
};

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, sqlx)]
struct GuestId(Uuid);

#[derive(OrderedKey)]
#[ordid(table = "guests", columns)]
struct Guest {
    id: GuestId,
    mail: String,
    name: String,
}

#[derive(OrderedKey)]
#[ordid(table = "visitors", columns)]
struct Visitor {
    id: GuestId,
    mail: Option<String>,
    #[ordid(returning)]
    visits: Assigned<i64>,
}

/// Found by a number that the column rounds.
#[derive(OrderedKey)]
#[ordid(table = "tariffs", columns)]
struct Tariff {
    id: GuestId,
    price: f64,
    name: String,
}

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, sqlx)]
struct TeamId(Uuid);

/// A team and its members refer to each other.
#[derive(OrderedKey, Clone)]
#[ordid(table = "teams")]
struct Team {
    id: TeamId,
    #[ordid(parent)]
    leader: Option<GuestId>,
}

#[derive(OrderedKey)]
#[ordid(table = "members")]
struct Member {
    id: GuestId,
    #[ordid(parent)]
    team: TeamId,
}

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, sqlx)]
struct PlaceId(Uuid);

/// A place that may be in another one.
#[derive(OrderedKey)]
#[ordid(table = "places")]
struct Place {
    id: PlaceId,
    #[ordid(parent)]
    above: Option<PlaceId>,
}

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    let name = "a_row_that_is_never_committed_is_not_left_alone";
    let null = "rows_with_null_where_they_are_looked_for_are_read_by_their_keys";
    let written = "upserts::columns_by_which_rows_are_found_are_written";
    let refused = "upserts::what_cannot_be_set_is_refused_before_it_is_sent";
    let rounded = "upserts::rows_are_found_by_values_as_their_columns_store_them";
    let twins = "upserts::two_rows_with_the_same_values_are_no_missing_row";
    let locked = "a_stale_row_that_another_transaction_has_locked_is_not_called_gone";
    let circle = "upserts::rows_in_a_circle_go_before_those_that_refer_to_them";
    for server in ["mariadb", "mysql"] {
        on_scratch::<MySql, _, _>(trials, servers, server, circle, |pool| {
            in_a_circle(pool, "BINARY(16)", LATER)
        });
        on_scratch::<MySql, _, _>(trials, servers, server, name, never_committed);
        on_scratch::<MySql, _, _>(trials, servers, server, locked, stale_and_locked);
        on_scratch::<MySql, _, _>(trials, servers, server, null, |pool| {
            with_null(pool, "BINARY(16)")
        });
        on_scratch::<MySql, _, _>(trials, servers, server, rounded, |pool| {
            stored_otherwise(pool, "BINARY(16)")
        });
        on_scratch::<MySql, _, _>(trials, servers, server, twins, |pool| {
            same_twice(pool, "BINARY(16)", true)
        });
        on_scratch::<MySql, _, _>(trials, servers, server, written, |pool| {
            spelt_anew(pool, "BINARY(16)", "VARCHAR(40) COLLATE utf8mb4_general_ci")
        });
    }
    on_scratch::<Postgres, _, _>(trials, servers, "postgres", circle, |pool| {
        in_a_circle(pool, "uuid", LATER)
    });
    // SQLite adds no foreign key to a table, and takes one to a table that is not there yet.
    sqlite::add(trials, circle, |pool: Pool<Sqlite>| {
        in_a_circle(pool, "BLOB REFERENCES members", "")
    });
    on_scratch::<Postgres, _, _>(trials, servers, "postgres", null, |pool| {
        with_null(pool, "uuid")
    });
    on_scratch::<Postgres, _, _>(trials, servers, "postgres", written, |pool| async move {
        let collation = "CREATE COLLATION no_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false)";
        raw_sql(collation).execute(&pool).await?;
        spelt_anew(pool, "uuid", "TEXT COLLATE no_case").await
    });
    on_scratch::<Postgres, _, _>(trials, servers, "postgres", rounded, |pool| {
        stored_otherwise(pool, "uuid")
    });
    on_scratch::<Postgres, _, _>(trials, servers, "postgres", twins, |pool| {
        same_twice(pool, "uuid", false)
    });
    sqlite::add(trials, twins, |pool: Pool<Sqlite>| {
        same_twice(pool, "BLOB", false)
    });
    let citext = "upserts::rows_are_found_in_citext";
    on_scratch::<Postgres, _, _>(trials, servers, "postgres", citext, |pool| async move {
        raw_sql("CREATE EXTENSION citext").execute(&pool).await?;
        spelt_anew(pool, "uuid", "citext").await
    });
    sqlite::add(trials, written, |pool: Pool<Sqlite>| {
        spelt_anew(pool, "BLOB", "TEXT COLLATE NOCASE")
    });
    sqlite::add(trials, refused, |pool: Pool<Sqlite>| not_settable(pool));
    sqlite::add(trials, null, |pool: Pool<Sqlite>| with_null(pool, "BLOB"));
}

/// Says after both tables what the first one refers to.
const LATER: &str =
    "ALTER TABLE teams ADD CONSTRAINT led FOREIGN KEY (leader) REFERENCES members (id);";

/// A team that is new comes before its members; one that gets a new leader comes behind.
async fn in_a_circle<DB: Backend>(pool: Pool<DB>, leader: &str, later: &str) -> Outcome
where
    Team: Entity<DB>,
    Member: Entity<DB>,
    Place: Entity<DB>,
{
    let (key, _) = leader.split_once(' ').unwrap_or((leader, ""));
    let tables = format!(
        "CREATE TABLE teams (id {key} NOT NULL PRIMARY KEY, leader {leader}); \
         CREATE TABLE members (id {key} NOT NULL PRIMARY KEY, team {key} NOT NULL, FOREIGN KEY (team) REFERENCES teams (id)); \
         CREATE TABLE places (id {key} NOT NULL PRIMARY KEY, above {key}, FOREIGN KEY (above) REFERENCES places (id)); \
         {later} {}",
        flushes_table::<DB>()
    );
    let mut connection = pool.acquire().await?;
    DB::run_script(&mut connection, AssertSqlSafe(tables).into_sql_str()).await?;
    drop(connection);
    let member = |team| Member {
        id: GuestId::generate(),
        team,
    };
    let mut team = Team {
        id: TeamId::generate(),
        leader: None,
    };
    let mut work = UnitOfWork::new();
    let first = work.add(member(team.id));
    work.upsert(team.clone());
    let flushed = work.flush(&pool).await?;
    assert_eq!((flushed.rows(), flushed.updated()), (2, 0));

    team.leader = Some(first);
    work.upsert(team.clone());
    let flushed = work.flush(&pool).await?;
    assert_eq!((flushed.rows(), flushed.updated()), (0, 1));

    team.leader = Some(work.add(member(team.id)));
    work.upsert(team.clone());
    let flushed = work.flush(&pool).await?;
    assert_eq!((flushed.rows(), flushed.updated()), (1, 1));

    // The new team has an upserted leader, who is of an inserted team.
    let of_leader = Team {
        id: TeamId::generate(),
        leader: None,
    };
    let leader = member(work.add(of_leader));
    let led = Team {
        id: TeamId::generate(),
        leader: Some(leader.id),
    };
    work.upsert(leader);
    work.upsert(led);
    assert_eq!(work.flush(&pool).await?.rows(), 3);

    // None is inserted, and the parent's table has the later name.
    let team = Team {
        id: TeamId::generate(),
        leader: None,
    };
    work.upsert(member(team.id));
    work.upsert(team);
    assert_eq!(work.flush(&pool).await?.rows(), 2);

    // Each one has a lower key than the one above it.
    let ids: Vec<PlaceId> = (0..250).map(|_| PlaceId::generate()).collect();
    for (place, id) in ids.iter().enumerate() {
        work.upsert(Place {
            id: *id,
            above: ids.get(place + 1).copied(),
        });
    }
    assert_eq!(work.flush(&pool).await?.rows(), 250);
    Ok(())
}

/// The flush reads the values that the database fills from each row, whether it finds the row by its mail or not.
async fn with_null<DB: Backend>(pool: Pool<DB>, key: &str) -> Outcome
where
    Visitor: Entity<DB>,
{
    let tables = format!(
        "CREATE TABLE visitors (id {key} PRIMARY KEY, mail VARCHAR(40) UNIQUE, visits BIGINT NOT NULL DEFAULT 7); {}",
        flushes_table::<DB>()
    );
    let mut connection = pool.acquire().await?;
    DB::run_script(&mut connection, AssertSqlSafe(tables).into_sql_str()).await?;
    drop(connection);
    let mut work = UnitOfWork::new();
    let mut visits = Vec::new();
    for mail in [
        None,
        Some("ada@example.org"),
        None,
        None,
        Some("ada@example.org"),
    ] {
        let visitor = Visitor {
            id: GuestId::generate(),
            mail: mail.map(str::to_owned),
            visits: Assigned::new(),
        };
        visits.push(visitor.visits.clone());
        work.upsert_with(visitor, OnConflict::of(Visitor::mail).ignore());
        if visits.len() == 4 {
            work.flush(&pool).await?;
        }
    }
    work.flush(&pool).await?;
    let visits: Vec<_> = visits.iter().map(Assigned::get).collect();
    assert_eq!(visits, [Some(7); 5]);
    Ok(())
}

/// The database takes the old and the new spelling of a mail address for the same.
async fn spelt_anew<DB: Backend>(pool: Pool<DB>, key: &str, mail: &str) -> Outcome
where
    Guest: Entity<DB>,
    for<'r> (String, String): sqlx::FromRow<'r, DB::Row>,
    for<'a> <DB as sqlx::Database>::Arguments: sqlx::IntoArguments<DB>,
    for<'c> &'c Pool<DB>: sqlx::Executor<'c, Database = DB>,
{
    let tables = format!(
        "CREATE TABLE guests (id {key} PRIMARY KEY, mail {mail} UNIQUE, name VARCHAR(40)); {}",
        flushes_table::<DB>()
    );
    let mut connection = pool.acquire().await?;
    DB::run_script(&mut connection, AssertSqlSafe(tables).into_sql_str()).await?;
    drop(connection);
    let guests = |count: usize, name: &str, spell: fn(String) -> String| -> Vec<Guest> {
        let guest = |number| Guest {
            id: GuestId::generate(),
            mail: spell(format!("guest{number:04}@example.org")),
            name: name.to_owned(),
        };
        (0..count).map(guest).collect()
    };
    let spell_names = || OnConflict::of(Guest::mail).set((Guest::name, Guest::mail));
    let spell = || OnConflict::of(Guest::mail).set(Guest::mail);
    // One row, a few, and more than go by statements of their own.
    for count in [1, 3, 1_100] {
        let mut work = UnitOfWork::new();
        for guest in guests(count, "old", |it| it) {
            work.upsert_with(guest, OnConflict::of(Guest::mail));
        }
        work.flush(&pool).await?;
        let to_upper = |it: String| it.to_uppercase();
        let to_title = |it: String| it.replacen('g', "G", 1);
        for (on_conflict, spelling, name) in [
            (spell_names(), to_upper as fn(String) -> String, "new"),
            (spell(), to_title, "new"),
        ] {
            let sent = guests(count, "new", spelling);
            let wanted: Vec<_> = sent
                .iter()
                .map(|it| (it.mail.clone(), name.to_owned()))
                .collect();
            for guest in sent {
                work.upsert_with(guest, on_conflict.clone());
            }
            let flushed = work.flush(&pool).await?;
            assert_eq!([flushed.rows(), flushed.updated()], [0, count]);
            let found: Vec<(String, String)> =
                query_as("SELECT mail, name FROM guests ORDER BY mail")
                    .fetch_all(&pool)
                    .await?;
            assert_eq!(found, wanted);
        }
        let mut connection = pool.acquire().await?;
        let clear = AssertSqlSafe("DELETE FROM guests".to_owned());
        DB::run_script(&mut connection, clear.into_sql_str()).await?;
    }
    Ok(())
}

/// The database compares the rounded value with the one that is sent.
async fn stored_otherwise<DB: Backend>(pool: Pool<DB>, key: &str) -> Outcome
where
    Tariff: Entity<DB>,
    for<'r> (String,): sqlx::FromRow<'r, DB::Row>,
    for<'a> <DB as sqlx::Database>::Arguments: sqlx::IntoArguments<DB>,
    for<'c> &'c Pool<DB>: sqlx::Executor<'c, Database = DB>,
{
    let tables = format!(
        "CREATE TABLE tariffs (id {key} PRIMARY KEY, price DECIMAL(10, 2) UNIQUE, name VARCHAR(40)); {}",
        flushes_table::<DB>()
    );
    let mut connection = pool.acquire().await?;
    DB::run_script(&mut connection, AssertSqlSafe(tables).into_sql_str()).await?;
    drop(connection);
    for (name, on_conflict, became) in [
        ("old", OnConflict::of(Tariff::price), Upserted::Inserted),
        ("new", OnConflict::of(Tariff::price), Upserted::Updated),
        (
            "ignored",
            OnConflict::of(Tariff::price).ignore(),
            Upserted::LeftAlone,
        ),
    ] {
        let mut work = UnitOfWork::new();
        let ids = [1.234, 5.678].map(|price| {
            let id = GuestId::generate();
            let name = name.to_owned();
            work.upsert_with(Tariff { id, price, name }, on_conflict.clone());
            id
        });
        let flushed = work.flush(&pool).await?;
        assert_eq!(
            ids.map(|id| flushed.upserted::<Tariff>(id)),
            [Some(became); 2],
            "{name}"
        );
    }
    let names: Vec<(String,)> = query_as("SELECT name FROM tariffs")
        .fetch_all(&pool)
        .await?;
    assert_eq!(names, [("new".to_owned(),), ("new".to_owned(),)]);
    Ok(())
}

/// Two rows of a flush are found by the same mail address: the later one wins, or both are refused.
async fn same_twice<DB: Backend>(pool: Pool<DB>, key: &str, wins: bool) -> Outcome
where
    Guest: Entity<DB>,
    for<'r> (String,): sqlx::FromRow<'r, DB::Row>,
    for<'a> <DB as sqlx::Database>::Arguments: sqlx::IntoArguments<DB>,
    for<'c> &'c Pool<DB>: sqlx::Executor<'c, Database = DB>,
{
    let tables = format!(
        "CREATE TABLE guests (id {key} PRIMARY KEY, mail VARCHAR(40) UNIQUE, name VARCHAR(40)); {}",
        flushes_table::<DB>()
    );
    let mut connection = pool.acquire().await?;
    DB::run_script(&mut connection, AssertSqlSafe(tables).into_sql_str()).await?;
    drop(connection);
    let mut work = UnitOfWork::new();
    let upsert = |work: &mut UnitOfWork<DB>, name: &str| {
        let guest = Guest {
            id: GuestId::generate(),
            mail: "ada@example.org".to_owned(),
            name: name.to_owned(),
        };
        work.upsert_with(guest, OnConflict::of(Guest::mail).set(Guest::name));
    };
    upsert(&mut work, "old");
    work.flush(&pool).await?;
    upsert(&mut work, "first");
    upsert(&mut work, "second");
    match work.flush(&pool).await {
        Ok(flushed) => assert!(wins && flushed.updated() == 2),
        Err(error) => {
            let text = error.to_string();
            assert!(!wins && !error.is_missing_row(), "{text}");
            let cause = "1 rows were changed by 2 that are there: two of these have the same values in the columns by \
                         which rows are found";
            assert!(text.contains(cause), "{text}");
        }
    }
    let names: Vec<(String,)> = query_as("SELECT name FROM guests").fetch_all(&pool).await?;
    let name = if wins { "second" } else { "old" };
    assert_eq!(names, [(name.to_owned(),)]);
    Ok(())
}

async fn not_settable(pool: Pool<Sqlite>) -> Outcome {
    for (on_conflict, expected) in [
        (
            OnConflict::of(Guest::mail).set((Guest::id, Guest::name)),
            "`OnConflict::set` names the key of guests, but a row that is there keeps its key: leave the key out",
        ),
        (
            OnConflict::of(Guest::mail).set([]),
            "`OnConflict::set` names no column of guests: use `ignore` to leave a row alone that is there",
        ),
        (
            OnConflict::of([]),
            "`OnConflict::of` names no column of guests: use `OnConflict::key` to find a row by its key",
        ),
    ] {
        let mut work = UnitOfWork::new();
        let guest = Guest {
            id: GuestId::generate(),
            mail: "ada@example.org".to_owned(),
            name: "Ada".to_owned(),
        };
        work.upsert_with(guest, on_conflict);
        // There is no table: nothing is sent.
        let error = work
            .flush(&pool)
            .await
            .expect_err("the columns cannot be set");
        let source = std::error::Error::source(&error).map(ToString::to_string);
        let text = source.unwrap_or_default();
        assert!(error.is_plan() && text.contains(expected), "{text}");
    }
    Ok(())
}

/// Somebody else has inserted the row, which the question sees, and rolls back.
async fn never_committed(pool: Pool<MySql>) -> Outcome {
    let flushes = flushes_table::<MySql>();
    let tables = format!(
        "CREATE TABLE guests (id BINARY(16) PRIMARY KEY, mail VARCHAR(40) UNIQUE, name VARCHAR(40)); {flushes}"
    );
    raw_sql(AssertSqlSafe(tables)).execute(&pool).await?;
    let dirty = PoolOptions::<MySql>::new()
        .after_connect(|connection, _| {
            Box::pin(async move {
                let sql = "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED";
                raw_sql(sql).execute(connection).await.map(drop)
            })
        })
        .connect_with((*pool.connect_options()).clone())
        .await?;
    for on_conflict in [
        OnConflict::key().ignore(),
        OnConflict::of(Guest::mail).ignore(),
        OnConflict::of(Guest::mail).set(Guest::name),
    ] {
        let id = GuestId::generate();
        let mut theirs = pool.begin().await?;
        query("INSERT INTO guests VALUES (?, 'ada@example.org', 'theirs')")
            .bind(id)
            .execute(&mut *theirs)
            .await?;
        let seen = query("SELECT 1 FROM guests").fetch_all(&dirty).await?;
        assert_eq!(seen.len(), 1, "the session reads what is not committed");
        let mut work = UnitOfWork::new();
        let guest = Guest {
            id,
            mail: "ada@example.org".to_owned(),
            name: "ours".to_owned(),
        };
        work.upsert_with(guest, on_conflict);
        let rolls_back = async {
            // Until the flush waits for the row; if it does not wait, it is done by now.
            tokio::time::sleep(Duration::from_millis(300)).await;
            theirs.rollback().await
        };
        let (flushed, rolled_back) = tokio::join!(work.flush(&dirty), rolls_back);
        rolled_back?;
        let became = flushed?.upserted::<Guest>(id);
        assert_eq!(became, Some(Upserted::Inserted));
        let names: Vec<(String,)> = query_as("SELECT name FROM guests").fetch_all(&pool).await?;
        assert_eq!(names, [("ours".to_owned(),)]);
        raw_sql("DELETE FROM guests").execute(&pool).await?;
    }
    dirty.close().await;
    Ok(())
}

#[derive(OrderedKey, Clone)]
#[ordid(table = "pages")]
struct Page {
    id: GuestId,
    #[ordid(version)]
    version: i64,
}

/// Waits until at least so many wait for a lock in this database.
async fn until_so_many_wait(pool: &Pool<MySql>, least: i64) -> Outcome {
    let begun = Instant::now();
    // MySQL refuses to count while a transaction ends.
    while MySql::count(pool, MySql::WAITING).await.unwrap_or(0) < least {
        if begun.elapsed() > Duration::from_secs(40) {
            return Err(format!("no {least} wait for a lock").into());
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}

/// Two transactions wait for the row while a third one writes its next version: first the flush, and then one that has
/// locked the row when the flush asks which version it has.
async fn stale_and_locked(pool: Pool<MySql>) -> Outcome {
    let flushes = flushes_table::<MySql>();
    let tables = format!(
        "CREATE TABLE pages (id BINARY(16) PRIMARY KEY, version BIGINT NOT NULL); {flushes}"
    );
    raw_sql(AssertSqlSafe(tables)).execute(&pool).await?;
    let page = Page {
        id: GuestId::generate(),
        version: 1,
    };
    let mut work = UnitOfWork::new();
    work.add(page.clone());
    work.flush(&pool).await?;
    let mut writes = pool.begin().await?;
    query("UPDATE pages SET version = 2")
        .execute(&mut *writes)
        .await?;
    let (ended, end) = tokio::sync::oneshot::channel::<()>();
    let flushes = async {
        work.update(page);
        let outcome = work.flush(&pool).await;
        // Nobody waits for it if the other transaction has failed.
        let _ = ended.send(());
        outcome
    };
    let locks = async {
        // The flush is the first.
        until_so_many_wait(&pool, 1).await?;
        let mut locks = pool.begin().await?;
        query("SELECT 1 FROM pages FOR UPDATE")
            .execute(&mut *locks)
            .await?;
        let _ = end.await;
        Outcome::Ok(locks.rollback().await?)
    };
    let commits = async {
        until_so_many_wait(&pool, 2).await?;
        Outcome::Ok(writes.commit().await?)
    };
    let (flushed, locked, committed) = tokio::join!(flushes, locks, commits);
    locked.and(committed)?;
    let error = flushed.expect_err("the row is stale");
    let text = error.to_string();
    assert!(error.is_stale() && !error.is_missing_row(), "{text}");
    assert_eq!(error.found_version(), None, "{text}");
    Ok(())
}
