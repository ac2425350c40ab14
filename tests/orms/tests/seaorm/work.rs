//! The unit of work: graphs of models, updates, deletes, and what fails.

use std::time::Duration;

use ordid::{
    KeyType as _,
    clock::SystemClock,
    entropy::ThreadEntropy,
    generator::{OrderedGenerator, Policy},
    scheme::snowflake::SnowflakeNode,
    uuid::Uuid,
};
use ordid_seaorm::{Retry, UnitOfWork, flushes_table};
use ordid_tests::{flushed::tables, trials::Outcome};
use sea_orm::{
    ActiveValue::{NotSet, Set},
    ConnectionTrait as _, DatabaseConnection, DbBackend, EntityTrait as _, PaginatorTrait as _,
    QueryOrder as _, SqlxMySqlConnector, SqlxPostgresConnector, SqlxSqliteConnector, Statement,
    TransactionTrait as _,
};
use sqlx::{mysql::MySqlPoolOptions, postgres::PgPoolOptions, sqlite::SqlitePoolOptions};

use crate::{
    Databases, create,
    models::{AuthorId, BookId, PersonId, TeamId, album, author, book, person, song, team},
};

pub fn add(to: &mut Databases<'_>) {
    all!(to.on_all, "work::";
        a_graph_is_written_parents_first,
        what_is_not_set_is_the_database_s,
        a_circle_is_cut_and_mended,
        raw_keys_find_their_parent_by_its_name,
        changes_and_deletes,
        a_missing_row_leaves_nothing_written,
        a_refused_row_is_named,
        a_transaction_of_the_user_s_goes_on,
        a_lock_that_does_not_come_is_waited_for_again,
        changes_need_their_table,
        new_rows_are_recorded_if_it_is_asked_for,
    );
    all!(to.on_postgres, "work::"; a_transaction_that_has_failed_is_over);
    all!(to.on_sqlite, "work::"; a_transaction_that_sqlite_has_ended_is_not_there);
    all!(to.on_mariadb, "work::"; a_transaction_that_a_statement_has_committed_is_not_there);
}

fn author(name: impl ToString, mentor: Option<AuthorId>) -> author::Model {
    author::Model {
        id: AuthorId::generate(),
        name: name.to_string(),
        position: 1,
        mentor,
    }
}

fn book(title: impl ToString, author_id: AuthorId) -> book::ActiveModel {
    book::ActiveModel {
        id: NotSet,
        title: Set(title.to_string()),
        author_id: Set(author_id),
    }
}

async fn library(db: &DatabaseConnection) -> Outcome {
    create(db, author::Entity).await?;
    create(db, book::Entity).await?;
    db.execute(&flushes_table()).await?;
    Ok(())
}

/// 3,000 books of 100 authors, children added first, and authors before their mentors.
async fn a_graph_is_written_parents_first(db: DatabaseConnection) -> Outcome {
    library(&db).await?;
    let mut authors: Vec<_> = (0..100).map(|number| author(number, None)).collect();
    // A later key is the parent of an earlier one.
    for number in 0..99 {
        authors[number].mentor = Some(authors[number + 1].id);
    }
    let mut work = UnitOfWork::new();
    let mut keys = Vec::new();
    for number in 0..3_000 {
        keys.push(work.add(book(number, authors[number % 100].id)));
    }
    for author in &authors {
        assert_eq!(work.add(author.clone()), author.id);
    }
    assert_eq!(
        (work.len(), work.get::<book::ActiveModel>().len()),
        (3_100, 3_000)
    );
    let (sender, receiver) = std::sync::mpsc::channel();
    work.observe(move |progress| {
        let _ = sender.send((progress.table, progress.rows, progress.done));
    });
    let flushed = work.flush(&db).await?;
    assert_eq!((flushed.rows(), flushed.retries, work.len()), (3_100, 0, 0));
    let told: Vec<_> = receiver.try_iter().collect();
    assert_eq!(told.last(), Some(&("book", 1_000, 3_100)));
    assert_eq!(tables(&flushed), [("author", 100, 1), ("book", 3_000, 3)]);
    let stored = author::Entity::find()
        .order_by_asc(author::Column::Id)
        .all(&db)
        .await?;
    assert_eq!(stored, authors);
    let stored = book::Entity::find()
        .order_by_asc(book::Column::Id)
        .all(&db)
        .await?;
    assert_eq!(stored.iter().map(|it| it.id).collect::<Vec<BookId>>(), keys);
    // It can be filled again.
    work.add(author("once more", None));
    assert_eq!(work.flush(&db).await?.rows(), 1);
    Ok(())
}

/// Rows with and without values for a column, one after the other.
async fn what_is_not_set_is_the_database_s(db: DatabaseConnection) -> Outcome {
    library(&db).await?;
    let mut work = UnitOfWork::new();
    for number in 0..6 {
        let mut model = author::ActiveModel::from(author(number, None));
        if number % 3 == 0 {
            model.position = NotSet;
        }
        if number == 5 {
            model.id = NotSet;
            model.mentor = NotSet;
        }
        work.add(model);
    }
    work.flush(&db).await?;
    let stored = author::Entity::find()
        .order_by_asc(author::Column::Name)
        .all(&db)
        .await?;
    let positions: Vec<_> = stored.iter().map(|it| it.position).collect();
    assert_eq!(positions, [7, 1, 1, 7, 1, 1]);
    Ok(())
}

/// A team whose lead is one of its people: the team is inserted without, and set right.
async fn a_circle_is_cut_and_mended(db: DatabaseConnection) -> Outcome {
    create(&db, team::Entity).await?;
    create(&db, person::Entity).await?;
    db.execute(&flushes_table()).await?;
    let node = SnowflakeNode::new(7)?;
    let generator = OrderedGenerator::with_node(node, SystemClock, ThreadEntropy, Policy::DEFAULT);
    let mut work = UnitOfWork::new();
    let unassigned = team::ActiveModel {
        id: NotSet,
        lead: NotSet,
    };
    let error = work.try_add(unassigned.clone()).unwrap_err();
    assert!(error.is_plan(), "{error}");
    let mut work = work.with_generator::<TeamId>(generator);
    let mut teams = Vec::new();
    for age in 0..5 {
        let lead = PersonId::generate();
        let team = work.try_add(team::ActiveModel {
            lead: Set(Some(lead)),
            ..unassigned.clone()
        })?;
        work.add(person::Model {
            id: lead,
            team,
            age,
        });
        teams.push((team, lead));
    }
    let flushed = work.flush(&db).await?;
    // The teams twice.
    let tables: Vec<_> = flushed
        .tables
        .iter()
        .map(|it| (it.table, it.rows))
        .collect();
    assert_eq!(tables, [("team", 5), ("person", 5)]);
    let stored = team::Entity::find()
        .order_by_asc(team::Column::Id)
        .all(&db)
        .await?;
    let leads: Vec<_> = stored.iter().map(|it| (it.id, it.lead)).collect();
    assert_eq!(
        leads,
        teams
            .iter()
            .map(|(team, lead)| (*team, Some(*lead)))
            .collect::<Vec<_>>()
    );

    // Deleted together they part the same way.
    for model in team::Entity::find().all(&db).await? {
        work.delete(model);
    }
    for model in person::Entity::find().all(&db).await? {
        work.delete(model);
    }
    assert_eq!(work.flush(&db).await?.deleted(), 10);
    assert_eq!(team::Entity::find().count(&db).await?, 0);
    Ok(())
}

async fn raw_keys_find_their_parent_by_its_name(db: DatabaseConnection) -> Outcome {
    create(&db, album::Entity).await?;
    create(&db, song::Entity).await?;
    let mut work = UnitOfWork::new();
    let id = Uuid::generate();
    for title in ["All I Want", "My Old Man"] {
        work.add(song::Model {
            id: Uuid::generate(),
            album_id: id,
            title: title.to_owned(),
        });
    }
    work.add(album::Model {
        id,
        name: "Blue".to_owned(),
    });
    assert_eq!(work.flush(&db).await?.rows(), 3);
    assert_eq!(song::Entity::find().count(&db).await?, 2);
    Ok(())
}

async fn changes_and_deletes(db: DatabaseConnection) -> Outcome {
    library(&db).await?;
    let mut work = UnitOfWork::new();
    let authors: Vec<_> = (0..20).map(|number| author(number, None)).collect();
    for author in &authors {
        work.add(author.clone());
        work.add(book(&author.name, author.id));
    }
    work.flush(&db).await?;
    let books = book::Entity::find()
        .order_by_asc(book::Column::Id)
        .all(&db)
        .await?;

    // A model: all its columns. An active model: what is set.
    let new = author("new", None);
    work.update(author::Model {
        position: 20,
        mentor: Some(new.id),
        ..authors[0].clone()
    });
    work.update(author::ActiveModel {
        id: Set(authors[1].id),
        name: NotSet,
        position: Set(21),
        mentor: NotSet,
    });
    // Nothing set: the row has to be there all the same.
    work.update(author::ActiveModel {
        id: Set(authors[2].id),
        name: NotSet,
        position: NotSet,
        mentor: NotSet,
    });
    work.add(new.clone());
    for (author, book) in authors.iter().zip(&books).skip(3) {
        // Parents first: they are deleted the other way round.
        work.delete(author.clone());
        work.delete(book.clone());
    }
    let flushed = work.flush(&db).await?;
    assert_eq!(
        (flushed.rows(), flushed.updated(), flushed.deleted()),
        (1, 3, 34)
    );
    let stored = author::Entity::find()
        .order_by_asc(author::Column::Id)
        .all(&db)
        .await?;
    let expected = [
        author::Model {
            position: 20,
            mentor: Some(new.id),
            ..authors[0].clone()
        },
        author::Model {
            position: 21,
            ..authors[1].clone()
        },
        authors[2].clone(),
        new,
    ];
    assert_eq!(stored, expected);
    assert_eq!(book::Entity::find().count(&db).await?, 3);
    Ok(())
}

async fn a_missing_row_leaves_nothing_written(db: DatabaseConnection) -> Outcome {
    library(&db).await?;
    let mut work = UnitOfWork::new();
    let there = author("there", None);
    work.add(there.clone());
    work.flush(&db).await?;
    let missing = author("missing", None);
    work.add(author("new", None));
    work.update(author::Model {
        position: 9,
        ..there.clone()
    });
    work.update(missing.clone());
    let error = work.flush(&db).await.unwrap_err();
    assert!(error.is_missing_row(), "{error}");
    assert_eq!(error.key(), Some(&*missing.id.to_string()), "{error}");
    assert_eq!(
        author::Entity::find().all(&db).await?,
        std::slice::from_ref(&there)
    );
    work.clear();
    work.delete(missing.clone());
    work.delete(there.clone());
    let error = work.flush(&db).await.unwrap_err();
    assert!(
        error.is_missing_row() && error.table() == Some("author"),
        "{error}"
    );
    assert_eq!(author::Entity::find().all(&db).await?, [there]);
    Ok(())
}

async fn a_refused_row_is_named(db: DatabaseConnection) -> Outcome {
    library(&db).await?;
    let mut work = UnitOfWork::new();
    work.add(author("twice", None));
    for number in 0..1_500 {
        work.add(author(number, None));
    }
    let twice = author("twice", None);
    let later = work.add(twice.clone());
    let error = work.flush(&db).await.unwrap_err();
    assert!(error.is_unique_violation(), "{error}");
    assert_eq!(error.key(), Some(&*later.to_string()), "{error}");
    assert_eq!((error.table(), error.chunk()), (Some("author"), Some(1)));
    assert!(error.to_string().contains("nothing was written"), "{error}");
    assert_eq!(author::Entity::find().count(&db).await?, 0);
    // All are still there, with their keys.
    assert_eq!(work.len(), 1_502);

    let mut work = UnitOfWork::new();
    let lost = book("lost", AuthorId::generate());
    let key = work.add(lost);
    let error = work.flush(&db).await.unwrap_err();
    assert!(error.is_foreign_key_violation(), "{error}");
    assert_eq!(error.key(), Some(&*key.to_string()));
    // A key that was added twice is found before anything is sent.
    let mut work = UnitOfWork::new();
    work.add(twice.clone());
    work.add(twice);
    assert!(work.flush(&db).await.unwrap_err().is_plan());
    Ok(())
}

async fn a_transaction_of_the_user_s_goes_on(db: DatabaseConnection) -> Outcome {
    library(&db).await?;
    let transaction = db.begin().await?;
    let mut work = UnitOfWork::new();
    let ada = work.add(author("Ada", None));
    work.flush_in(&transaction).await?;
    // They stay until the caller says that they are committed.
    assert_eq!(work.len(), 1);
    work.clear();
    work.add(author("Grace", None));
    work.add(author("Ada", None));
    let error = work.flush_in(&transaction).await.unwrap_err();
    assert!(error.is_unique_violation(), "{error}");
    assert!(!error.is_commit_unknown());
    // The savepoint is gone, what came before it is not.
    work.clear();
    work.add(book("Notes", ada));
    work.flush_in(&transaction).await?;
    transaction.commit().await?;
    let all = author::Entity::find().all(&db).await?;
    assert_eq!((all.len(), all[0].id), (1, ada));
    assert_eq!(book::Entity::find().count(&db).await?, 1);
    Ok(())
}

/// PostgreSQL makes no savepoint behind a statement that has failed, and SQLx gives the whole transaction up then.
async fn a_transaction_that_has_failed_is_over(db: DatabaseConnection) -> Outcome {
    library(&db).await?;
    let transaction = db.begin().await?;
    let failed = transaction.execute_unprepared("SELECT 1 / 0").await;
    assert!(failed.is_err());
    let mut work = UnitOfWork::new();
    work.add(author("Ada", None));
    let error = work.flush_in(&transaction).await.unwrap_err();
    assert!(
        error.is_transaction_over() && !error.is_connection_lost(),
        "{error}"
    );
    drop(transaction);
    assert_eq!(author::Entity::find().count(&db).await?, 0);
    Ok(())
}

/// SeaORM does not know that it is over. The savepoint of the flush would begin another one, and its release would commit that.
async fn a_transaction_that_sqlite_has_ended_is_not_there(db: DatabaseConnection) -> Outcome {
    library(&db).await?;
    db.execute_unprepared("CREATE TABLE marks (n INTEGER UNIQUE ON CONFLICT ROLLBACK)")
        .await?;
    let mark = "INSERT INTO marks VALUES (1)";
    db.execute_unprepared(mark).await?;
    let transaction = db.begin().await?;
    assert!(transaction.execute_unprepared(mark).await.is_err());
    let mut work = UnitOfWork::new();
    work.add(author("Ada", None));
    let error = work.flush_in(&transaction).await.unwrap_err();
    assert!(
        error.to_string().contains("no transaction is open"),
        "{error}"
    );
    drop(transaction);
    assert_eq!(author::Entity::find().count(&db).await?, 0);
    Ok(())
}

/// A statement that changes a table commits, and then there is none.
async fn a_transaction_that_a_statement_has_committed_is_not_there(
    db: DatabaseConnection,
) -> Outcome {
    library(&db).await?;
    let transaction = db.begin().await?;
    transaction
        .execute_unprepared("CREATE TABLE other (id INT)")
        .await?;
    let mut work = UnitOfWork::new();
    work.add(author("Ada", None));
    let error = work.flush_in(&transaction).await.unwrap_err();
    assert!(
        !error.is_transaction_over() && !error.is_connection_lost(),
        "{error}"
    );
    assert!(
        error.to_string().contains("no transaction is open"),
        "{error}"
    );
    assert_eq!(author::Entity::find().count(&db).await?, 0);
    Ok(())
}

/// Somebody holds the row's place for a while, and gives it up.
async fn a_lock_that_does_not_come_is_waited_for_again(db: DatabaseConnection) -> Outcome {
    library(&db).await?;
    let name = author("Ada", None);
    let other = db.begin().await?;
    let mut held = UnitOfWork::new();
    held.add(name.clone());
    held.flush_in(&other).await?;
    let retry = Retry::DEFAULT
        .with_attempts(100)
        .with_delays(Duration::from_millis(10), Duration::from_millis(100));
    let mut work = UnitOfWork::new().with_retry(retry);
    work.add(name.clone());
    let impatient = impatient(&db).await?;
    let release = async {
        // Longer than any of them waits for a lock.
        tokio::time::sleep(Duration::from_secs(3)).await;
        other.rollback().await
    };
    let (flushed, released) = tokio::join!(work.flush(&impatient), release);
    released?;
    let flushed = flushed?;
    assert!(flushed.retries > 0, "{flushed:?}");
    assert_eq!(author::Entity::find().all(&db).await?, [name]);
    impatient.close().await?;
    Ok(())
}

/// The same database, over connections that wait for a lock for no longer than a second.
async fn impatient(db: &DatabaseConnection) -> Outcome<DatabaseConnection> {
    Ok(match db.get_database_backend() {
        DbBackend::Postgres => {
            let options = db.get_postgres_connection_pool().connect_options();
            let options = options
                .as_ref()
                .clone()
                .options([("lock_timeout", "200ms")]);
            let pool = PgPoolOptions::new().connect_with(options).await?;
            SqlxPostgresConnector::from_sqlx_postgres_pool(pool)
        }
        DbBackend::MySql => {
            let options = db.get_mysql_connection_pool().connect_options();
            let pool = MySqlPoolOptions::new().after_connect(|connection, _| {
                Box::pin(async move {
                    let short = sqlx::raw_sql("SET SESSION innodb_lock_wait_timeout = 1");
                    short.execute(connection).await.map(drop)
                })
            });
            let pool = pool.connect_with(options.as_ref().clone()).await?;
            SqlxMySqlConnector::from_sqlx_mysql_pool(pool)
        }
        _ => {
            let options = db.get_sqlite_connection_pool().connect_options();
            let options = options
                .as_ref()
                .clone()
                .busy_timeout(Duration::from_millis(100));
            let pool = SqlitePoolOptions::new().connect_with(options).await?;
            SqlxSqliteConnector::from_sqlx_sqlite_pool(pool)
        }
    })
}

async fn changes_need_their_table(db: DatabaseConnection) -> Outcome {
    create(&db, author::Entity).await?;
    let mut work = UnitOfWork::new();
    let ada = author("Ada", None);
    work.add(ada.clone());
    work.flush(&db).await?;
    work.delete(ada);
    let error = work.flush(&db).await.unwrap_err();
    assert!(
        error.to_string().contains("ordid_seaorm::flushes_table"),
        "{error}"
    );
    db.execute(&flushes_table()).await?;
    assert_eq!(work.flush(&db).await?.deleted(), 1);
    Ok(())
}

async fn new_rows_are_recorded_if_it_is_asked_for(db: DatabaseConnection) -> Outcome {
    create(&db, author::Entity).await?;
    let mut work = UnitOfWork::new().with_record();
    work.add(author("Ada", None));
    let error = work.flush(&db).await.unwrap_err();
    assert!(
        error.to_string().contains("ordid_seaorm::flushes_table"),
        "{error}"
    );
    db.execute(&flushes_table()).await?;
    let recorded = async || -> Outcome<usize> {
        let query =
            Statement::from_string(db.get_database_backend(), "SELECT id FROM ordid_flushes");
        Ok(db.query_all_raw(query).await?.len())
    };
    work.flush(&db).await?;
    assert_eq!(recorded().await?, 1);
    let mut work = UnitOfWork::new();
    work.add(author("Grace", None));
    work.flush(&db).await?;
    assert_eq!(recorded().await?, 1);
    assert_eq!(author::Entity::find().count(&db).await?, 2);
    Ok(())
}
