//! One unit of work over two databases, of which the second is always a file of SQLite.

use ordid::KeyType as _;
use ordid_seaorm::{Flushed, OrphanDecision, Retry, ShardedUnitOfWork, Sharding};
use ordid_tests::{flushed::assert_first_alone, trials::Outcome};
use sea_orm::{
    ActiveValue::{NotSet, Set, Unchanged},
    ConnectionTrait as _, DatabaseConnection, DbBackend, EntityTrait, IntoActiveModel as _,
    QueryOrder as _, SqlxPostgresConnector, SqlxSqliteConnector, TransactionTrait as _,
};
use sqlx::{
    postgres::PgPoolOptions,
    sqlite::{SqliteConnectOptions, SqlitePoolOptions},
};

use crate::{
    Databases, create,
    models::{AuthorId, author, book},
};

const AUTHORS: i32 = 40;

pub fn add(to: &mut Databases<'_>) {
    to.on_postgres(
        "shards::two_phases_write_all_parts_or_none",
        two_phases_write_all_parts_or_none,
    );
    to.on_mariadb(
        "shards::two_phases_are_refused_where_xa_would_prepare_them",
        two_phases_are_refused,
    );
    all!(to.on_all, "shards::";
        a_part_that_fails_stays,
        nothing_is_sent_where_a_shard_cannot_be_planned,
    );
    all!(to.on_sqlite, "shards::";
        rows_are_changed_on_their_shard,
        a_row_that_is_everywhere_is_on_each_shard,
    );
}

/// Returns the database and a second one, which lasts as long as the folder.
async fn both(db: DatabaseConnection) -> Outcome<(tempfile::TempDir, [DatabaseConnection; 2])> {
    let folder = tempfile::tempdir()?;
    let options = SqliteConnectOptions::new()
        .filename(folder.path().join("other.db"))
        .create_if_missing(true)
        .foreign_keys(true);
    let pools = SqlitePoolOptions::new().max_connections(1);
    let pool = pools.connect_with(options).await?;
    let other = SqlxSqliteConnector::from_sqlx_sqlite_pool(pool);
    Ok((folder, [db, other]))
}

fn author(position: i32) -> author::ActiveModel {
    author::ActiveModel {
        id: NotSet,
        name: Set(position.to_string()),
        position: Set(position),
        mentor: Set(None),
    }
}

/// Authors have no parent but one of their own table, so they name what they are spread by. Books are where their
/// author is.
fn sharding() -> Outcome<Sharding> {
    let sharding = Sharding::by_hash(2)?
        .route(|author: &author::ActiveModel| author.id.try_as_ref().copied())
        .route(|book: &book::ActiveModel| book.author_id.try_as_ref().copied());
    Ok(sharding)
}

async fn positions(db: &DatabaseConnection) -> Outcome<Vec<i32>> {
    let authors = author::Entity::find().order_by_asc(author::Column::Id);
    let authors = authors.all(db).await?.into_iter();
    Ok(authors.map(|author| author.position).collect())
}

/// A shard that fails leaves the other one's rows committed, and its own to be flushed again.
async fn a_part_that_fails_stays(db: DatabaseConnection) -> Outcome {
    let (_folder, databases) = both(db).await?;
    create(&databases[0], author::Entity).await?;
    let mut work = ShardedUnitOfWork::new(sharding()?).with_retry(Retry::NONE);
    for position in 0..AUTHORS {
        work.add(author(position))?;
    }
    let lengths = [0, 1].map(|shard: usize| work.shards()[shard].len());
    assert!(lengths.iter().all(|length| *length > 0), "{lengths:?}");

    let too_few = work.flush(&databases[..1]).await.unwrap_err();
    assert!(too_few.is_plan() && too_few.shards().is_none(), "{too_few}");
    assert_eq!(work.len(), lengths[0] + lengths[1]);

    let error = work.flush(&databases).await.unwrap_err();
    let outcomes = error.shards().expect("one of them failed");
    assert_first_alone(outcomes, lengths[0]);
    assert_eq!(work.len(), lengths[1]);

    create(&databases[1], author::Entity).await?;
    let flushed = work.flush(&databases).await?;
    let rows: Vec<_> = flushed.iter().map(Flushed::rows).collect();
    assert_eq!(rows, [0, lengths[1]]);
    assert!(work.is_empty());
    let mut all = Vec::new();
    for (db, length) in databases.iter().zip(lengths) {
        let positions = positions(db).await?;
        assert_eq!(positions.len(), length);
        assert!(positions.is_sorted(), "keys rise as they were added");
        all.extend(positions);
    }
    all.sort_unstable();
    assert!(all.into_iter().eq(0..AUTHORS));
    Ok(())
}

/// A new author for each shard, with a book; then one is updated and one is deleted.
async fn rows_are_changed_on_their_shard(db: DatabaseConnection) -> Outcome {
    let (_folder, databases) = both(db).await?;
    for db in &databases {
        create(db, author::Entity).await?;
        create(db, book::Entity).await?;
        db.execute(&ordid_seaorm::flushes_table()).await?;
    }
    let mut work = ShardedUnitOfWork::new(sharding()?);
    let mut keys: [Option<AuthorId>; 2] = [None; 2];
    while let Some(shard) = keys.iter().position(Option::is_none) {
        let key = AuthorId::generate();
        if work.sharding().shard(key)? != shard {
            continue;
        }
        keys[shard] = Some(key);
        let position = i32::try_from(shard)?;
        // As a model, too.
        let added = work.add(author::Model {
            id: key,
            name: position.to_string(),
            position,
            mentor: None,
        })?;
        assert_eq!(added, key);
        work.add(book::ActiveModel {
            title: Set("Notes".to_owned()),
            id: NotSet,
            author_id: Set(key),
        })?;
    }
    work.flush(&databases).await?;
    let keys = keys.map(|key| key.expect("each shard has an author"));
    for (db, key) in databases.iter().zip(keys) {
        let book = book::Entity::find().one(db).await?;
        assert_eq!(book.map(|book| book.author_id), Some(key));
    }

    work.update(author::ActiveModel {
        id: Unchanged(keys[0]),
        position: Set(70),
        ..Default::default()
    })?;
    let book = book::Entity::find().one(&databases[1]).await?;
    work.delete(book.expect("it was inserted").into_active_model())?;
    let lengths = [0, 1].map(|shard: usize| work.shards()[shard].len());
    assert_eq!(lengths, [1, 1]);
    let flushed = work.flush(&databases).await?;
    assert_eq!((flushed[0].updated(), flushed[1].deleted()), (1, 1));
    assert_eq!(positions(&databases[0]).await?, [70]);
    assert_eq!(positions(&databases[1]).await?, [1]);
    assert_eq!(book::Entity::find().one(&databases[1]).await?, None);
    assert!(book::Entity::find().one(&databases[0]).await?.is_some());
    Ok(())
}

async fn a_row_that_is_everywhere_is_on_each_shard(db: DatabaseConnection) -> Outcome {
    let (_folder, databases) = both(db).await?;
    for db in &databases {
        create(db, author::Entity).await?;
    }
    let sharding = Sharding::by_hash(2)?.everywhere::<author::ActiveModel>();
    let mut work = ShardedUnitOfWork::new(sharding);
    let key = work.add(author(7))?;
    assert_eq!(work.len(), 2);
    work.flush(&databases).await?;
    for db in &databases {
        let author = author::Entity::find().one(db).await?;
        assert_eq!(
            author.map(|it| (it.id, it.position)),
            Some((key, 7)),
            "{db:?}"
        );
    }
    Ok(())
}

/// A key that one shard has twice is found before anything is sent to the other.
async fn nothing_is_sent_where_a_shard_cannot_be_planned(db: DatabaseConnection) -> Outcome {
    let (_folder, databases) = both(db).await?;
    create(&databases[0], author::Entity).await?;
    let mut work = ShardedUnitOfWork::new(sharding()?);
    let mut keys = std::iter::repeat_with(AuthorId::generate);
    let twice = keys.find(|key| matches!(work.sharding().shard(*key), Ok(1)));
    let twice = twice.expect("there is always another key");
    for position in 0..AUTHORS {
        work.add(author(position))?;
    }
    for _ in 0..2 {
        let mut author = author(AUTHORS);
        author.id = Set(twice);
        work.add(author)?;
    }
    let error = work.flush(&databases).await.unwrap_err();
    assert!(error.is_plan() && error.shards().is_none(), "{error}");
    assert!(positions(&databases[0]).await?.is_empty());

    let plans = work.plan(DbBackend::Sqlite);
    assert!(plans.unwrap_err().is_plan());
    Ok(())
}

/// Both shards are schemas of one database.
async fn two_phases_write_all_parts_or_none(db: DatabaseConnection) -> Outcome {
    db.execute_unprepared("CREATE SCHEMA a; CREATE SCHEMA b")
        .await?;
    let options = db.get_postgres_connection_pool().connect_options();
    let databases = ["a", "b"].map(|schema| {
        let options = (*options).clone().options([("search_path", schema)]);
        let pool = PgPoolOptions::new().max_connections(2);
        SqlxPostgresConnector::from_sqlx_postgres_pool(pool.connect_lazy_with(options))
    });
    for db in &databases {
        create(db, author::Entity).await?;
        ordid_seaorm::create_flushes_table(db).await?;
    }
    let mut work = ShardedUnitOfWork::new(sharding()?)
        .with_retry(Retry::NONE)
        .two_phase_commit("authors");
    for position in 0..AUTHORS {
        work.add(author(position))?;
    }
    for refuses in [0, 1] {
        let refused = r#"ALTER TABLE author ADD CONSTRAINT refused CHECK ("order" < 0)"#;
        databases[refuses].execute_unprepared(refused).await?;
        let error = work.flush(&databases).await.unwrap_err();
        let start = format!("nothing was written on any of 2 shards; shard {refuses}: ");
        assert!(error.to_string().starts_with(&start), "{error}");
        let allowed = "ALTER TABLE author DROP CONSTRAINT refused";
        databases[refuses].execute_unprepared(allowed).await?;
        for db in &databases {
            assert_eq!(positions(db).await?, [0; 0]);
        }
    }
    let flushed = work.flush(&databases).await?;
    assert_eq!(flushed.iter().map(Flushed::rows).sum::<usize>(), 40);
    let mut all = positions(&databases[0]).await?;
    all.extend(positions(&databases[1]).await?);
    all.sort_unstable();
    assert!(all.into_iter().eq(0..AUTHORS));

    // What a program has left that was killed before its decision.
    let unit: ordid::uuid::Uuid = ordid::KeyType::generate();
    let gid = format!("ordid:authors:{}:0:1", unit.simple());
    let left = databases[1].begin().await?;
    left.execute_unprepared("INSERT INTO author VALUES (gen_random_uuid(), 'left', -1)")
        .await?;
    left.execute_unprepared(&format!("PREPARE TRANSACTION '{gid}'"))
        .await?;
    left.commit().await?;
    let orphans = ordid_seaorm::prepared_orphans("authors", &databases).await?;
    let found = orphans.iter().map(|it| (it.shard, it.decision));
    assert!(found.eq([(1, OrphanDecision::NotCommitted)]));
    let any = std::time::Duration::ZERO;
    let recovered = ordid_seaorm::recover_prepared("authors", &databases, any).await?;
    assert_eq!(recovered.rolled_back, [gid]);
    let left = ordid_seaorm::prepared_orphans("authors", &databases).await?;
    assert_eq!(left, []);
    Ok(())
}

/// `SeaORM` begins each transaction itself, so nobody can begin one of XA.
async fn two_phases_are_refused(db: DatabaseConnection) -> Outcome {
    create(&db, author::Entity).await?;
    ordid_seaorm::create_flushes_table(&db).await?;
    let mut work = ShardedUnitOfWork::new(sharding()?).two_phase_commit("authors");
    for position in 0..AUTHORS {
        work.add(author(position))?;
    }
    let error = work.flush(&[db.clone(), db.clone()]).await.unwrap_err();
    let told = error.to_string();
    assert!(error.is_plan(), "{told}");
    assert!(told.contains("`XA START` cannot be sent"), "{told}");
    assert_eq!(positions(&db).await?, [0; 0]);
    Ok(())
}
