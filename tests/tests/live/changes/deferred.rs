//! Circles that the database checks at COMMIT.

use ordid::{KeyType as _, OrderedKey};
use ordid_sqlx::flushes_table;
use sqlx::Pool;

use super::{PersonId, TeamId};
use crate::{
    Outcome,
    database::{Keeps, Live, Reads, begin, read},
};

/// An engineer's room and a room's owner: neither can be NULL, so one of them has to wait for COMMIT.
#[derive(OrderedKey, Clone, Debug, PartialEq, sqlx::FromRow)]
#[ordid(table = "room")]
pub struct Room {
    pub id: TeamId,
    #[ordid(parent, deferrable)]
    pub owner: PersonId,
}

#[derive(OrderedKey, Clone, Debug, PartialEq, sqlx::FromRow)]
#[ordid(table = "engineer")]
pub struct Engineer {
    pub id: PersonId,
    #[ordid(parent)]
    pub room: TeamId,
}

/// A circle that no update could mend, more rows than a statement takes, in a transaction of
/// its own and in the user's.
pub async fn deferred_circles_wait_for_commit<DB>(pool: Pool<DB>) -> Outcome
where
    DB: Live + Keeps<Room> + Keeps<Engineer> + Reads<Room>,
{
    let key = DB::KEY;
    let script = format!(
        "CREATE TABLE engineer (id {key} NOT NULL PRIMARY KEY, room {key} NOT NULL {}); \
         CREATE TABLE room (id {key} NOT NULL PRIMARY KEY, owner {key} NOT NULL \
         REFERENCES engineer (id) DEFERRABLE INITIALLY IMMEDIATE); {}; {}",
        DB::forward("room"),
        DB::backward("engineer", "room", "room"),
        flushes_table::<DB>()
    );
    DB::script(&pool, &script).await?;
    let pairs: Vec<_> = (0..1_500)
        .map(|_| {
            let (room, owner) = (TeamId::generate(), PersonId::generate());
            (Room { id: room, owner }, Engineer { id: owner, room })
        })
        .collect();
    let mut work = begin::<DB>();
    for (room, engineer) in &pairs {
        work.add(engineer.clone());
        work.add(room.clone());
    }
    let plan = work.plan()?;
    assert!(plan.defers.is_some());
    assert_eq!(plan.tables.len(), 2, "and nothing to mend");
    assert_eq!(work.flush(&pool).await?.rows(), 3_000);
    let rooms: Vec<Room> = read(&pool, "SELECT * FROM room ORDER BY id").await?;
    assert!(rooms.iter().eq(pairs.iter().map(|(room, _)| room)));

    // Nobody lives there: told at COMMIT, and nothing is written.
    let lost = Engineer {
        id: PersonId::generate(),
        room: TeamId::generate(),
    };
    work.add(Room {
        id: TeamId::generate(),
        owner: lost.id,
    });
    work.add(lost.clone());
    let error = work.flush(&pool).await.unwrap_err();
    assert!(
        error.is_foreign_key_violation() && !error.is_commit_unknown(),
        "{error}"
    );
    assert_eq!(DB::count(&pool, "room").await?, 1_500);
    work.clear();

    let mut transaction = pool.begin().await?;
    for (room, engineer) in &pairs {
        work.delete(room);
        work.delete(engineer);
    }
    assert_eq!(work.flush_in(&mut transaction).await?.deleted(), 3_000);
    transaction.commit().await?;
    assert_eq!(
        DB::count(&pool, "room").await? + DB::count(&pool, "engineer").await?,
        0
    );

    // What would be refused at once, were it not deferred.
    let (room, engineer) = &pairs[0];
    let early = format!(
        "INSERT INTO room (id, owner) VALUES ({}, {})",
        DB::literal(room.id.to_raw()),
        DB::literal(engineer.id.to_raw())
    );
    let refused = DB::script(&pool, &early).await.unwrap_err();
    assert!(
        refused
            .as_database_error()
            .unwrap()
            .is_foreign_key_violation(),
        "{refused}"
    );
    Ok(())
}
