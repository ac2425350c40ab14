//! Behind a PgBouncer that gives each connection to the server the statements that its client has prepared: SeaORM
//! prepares each statement by name.

use std::time::Duration;

use ordid::KeyType as _;
use ordid_seaorm::{
    EngineProfile, Follower, Position, UnitOfWork, dialect::Postgres, flushes_table,
};
use ordid_tests::trials::Outcome;
use sea_orm::{
    ActiveValue::{NotSet, Set},
    ColumnTrait as _, ConnectionTrait as _, DatabaseConnection, EntityTrait as _,
    PaginatorTrait as _, QueryFilter as _,
};
use tokio::task::JoinSet;

use crate::{
    Databases, create,
    models::{AuthorId, author, book},
};

/// Clients at a time, more than the server's connections.
const CLIENTS: usize = 8;
/// Flushes of each.
const FLUSHES: usize = 3;
/// Books of a flush: some chunks of the same text, which is what is prepared and kept.
const BOOKS: usize = 2_500;

pub fn add(to: &mut Databases<'_>) {
    to.on_server::<sqlx::Postgres, _>(
        "pgbouncer_2",
        "pgbouncer::flushes_at_once_write_each_row_once",
        flushes_at_once,
    );
}

async fn flushes_at_once(db: DatabaseConnection) -> Outcome {
    create(&db, author::Entity).await?;
    create(&db, book::Entity).await?;
    db.execute(&flushes_table()).await?;
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let db = db.clone();
        clients.spawn(async move { one_client(&db, client).await.map_err(|it| it.to_string()) });
    }
    while let Some(ended) = clients.join_next().await {
        ended??;
    }
    let authors = author::Entity::find().filter(author::Column::Position.eq(2));
    assert_eq!(authors.count(&db).await?, u64::try_from(CLIENTS * FLUSHES)?);
    assert_eq!(followed(&db).await?, CLIENTS * FLUSHES * BOOKS);
    Ok(())
}

/// Returns how many books a follower delivers.
async fn followed(db: &DatabaseConnection) -> Outcome<usize> {
    let settled = Duration::from_millis(50);
    let follower = Follower::<Postgres, book::ActiveModel>::settled_after(settled);
    tokio::time::sleep(2 * settled).await;
    let (mut position, mut books) = (Position::START, 0);
    loop {
        let batch = follower.next(db, &position, 7_000).await?;
        books += batch.rows.len();
        position = batch.position;
        if batch.is_complete {
            return Ok(books);
        }
    }
}

/// Inserts an author with books, and changes the author.
async fn one_client(db: &DatabaseConnection, client: usize) -> Outcome {
    let unit = || UnitOfWork::new().with_engine(EngineProfile::PGBOUNCER);
    for flush in 0..FLUSHES {
        let author = author::Model {
            id: AuthorId::generate(),
            name: format!("{client} {flush}"),
            position: 1,
            mentor: None,
        };
        let mut work = unit();
        work.add(author.clone());
        for number in 0..BOOKS {
            work.add(book::ActiveModel {
                id: NotSet,
                title: Set(number.to_string()),
                author_id: Set(author.id),
            });
        }
        work.flush(db).await?;
        let mut work = unit();
        work.update(author::Model {
            position: 2,
            ..author
        });
        work.flush(db).await?;
    }
    Ok(())
}
