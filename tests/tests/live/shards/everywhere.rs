//! Rows that are on every shard, and the progress of all shards.

use ordid::{KeyType as _, OrderedKey, uuid::Uuid};
use ordid_sqlx::{Flushed, OnConflict, ShardedUnitOfWork, Sharding};
use sqlx::Pool;

use super::{Pools, Shards, create, create_by, fill, routed, tenants};
use crate::{
    Outcome,
    database::{Live, begin_sharded, read},
};

#[derive(OrderedKey, Clone, Debug, PartialEq, sqlx::FromRow)]
#[ordid(table = "airlines", columns)]
pub struct Airline {
    #[ordid(key)]
    pub id: Option<Uuid>,
    pub name: String,
}

#[derive(OrderedKey, Clone, Debug, PartialEq, sqlx::FromRow)]
#[ordid(table = "flights")]
pub struct Flight {
    #[ordid(key)]
    pub id: Uuid,
    #[ordid(parent = Airline)]
    pub airline: Uuid,
}

async fn create_airlines<DB: Live>(pools: &Pools<DB>) -> Result<(), sqlx::Error> {
    let key = DB::KEY;
    let sql = format!(
        "CREATE TABLE airlines (id {key} NOT NULL PRIMARY KEY, name TEXT NOT NULL UNIQUE);
         CREATE TABLE flights (id {key} NOT NULL PRIMARY KEY,
            airline {key} NOT NULL REFERENCES airlines (id))"
    );
    create_by(pools, &sql).await
}

async fn airlines<DB: Shards>(pool: &Pool<DB>) -> Result<Vec<Airline>, sqlx::Error> {
    read(pool, "SELECT * FROM airlines ORDER BY id").await
}

fn airline(name: &str) -> Airline {
    Airline {
        id: None,
        name: name.into(),
    }
}

/// Flights of all airlines are on both shards, and so is each airline, under its one key.
pub async fn what_is_everywhere_is_on_each_shard<DB: Shards>(pools: Pools<DB>) -> Outcome {
    create_airlines(&pools).await?;
    let sharding = Sharding::by_hash(2)?
        .everywhere::<Airline>()
        .route(|flight: &Flight| flight.id);
    let mut work = begin_sharded::<DB>(sharding.clone());
    // Where a shard has it and another one does not, its key would not be one.
    let mut upserts = ShardedUnitOfWork::<sqlx::Sqlite>::new(sharding.clone());
    let by_name = OnConflict::of(Airline::name);
    let error = upserts.try_upsert(airline("Ada Air"), by_name).unwrap_err();
    assert!(error.is_plan() && upserts.is_empty(), "{error}");
    for by_key in [OnConflict::key(), OnConflict::of(Airline::id)] {
        let row = Airline {
            id: Some(Uuid::generate()),
            ..airline("Ada Air")
        };
        upserts.try_upsert(row, by_key)?;
    }
    assert_eq!(upserts.len(), 4);
    let names = ["Ada Air", "Babbage Wings", "Curie Cargo"];
    let mut expected = Vec::new();
    for name in names {
        let id = work.add(airline(name))?;
        expected.push(Airline {
            id: Some(id),
            ..airline(name)
        });
    }
    assert_eq!(work.len(), 6, "one for each shard");
    let mut flights = Vec::new();
    for number in 0..100 {
        let airline = expected[number % 3].id.expect("assigned");
        let flight = Flight {
            id: Uuid::generate(),
            airline,
        };
        work.add(flight.clone())?;
        flights.push(flight);
    }
    let flushed = work.flush(&pools).await?;
    assert_eq!(flushed.iter().map(Flushed::rows).sum::<usize>(), 106);
    let mut found = Vec::new();
    for (shard, pool) in pools.iter().enumerate() {
        assert_eq!(airlines(pool).await?, expected);
        let here: Vec<Flight> = read(pool, "SELECT * FROM flights").await?;
        for flight in &here {
            assert_eq!(sharding.shard_of(flight)?, shard);
        }
        assert!(here.len() > 20, "{}", here.len());
        found.extend(here);
    }
    found.sort_by_key(|flight| flight.id);
    assert_eq!(found, flights);

    // Changed everywhere; and one that has no flights goes everywhere.
    let extra = work.add(airline("Dirac Direct"))?;
    work.flush(&pools).await?;
    expected[1].name.push_str(" Ltd");
    work.update(expected[1].clone())?;
    work.delete(&Airline {
        id: Some(extra),
        ..airline("")
    })?;
    let flushed = work.flush(&pools).await?;
    let changed: Vec<_> = flushed
        .iter()
        .map(|it| (it.updated(), it.deleted()))
        .collect();
    assert_eq!(changed, [(1, 1), (1, 1)]);
    for pool in &pools {
        assert_eq!(airlines(pool).await?, expected);
    }

    // One shard refuses: the copies differ until it does not.
    let taken = "INSERT INTO airlines (id, name) SELECT id, 'Euler Express' FROM flights";
    DB::script(&pools[1], &format!("{taken} LIMIT 1")).await?;
    let id = work.add(airline("Euler Express"))?;
    let error = work.flush(&pools).await.unwrap_err();
    let outcomes = error.shards().expect("sent");
    assert!(outcomes[0].is_ok());
    assert!(
        outcomes[1].as_ref().unwrap_err().is_unique_violation(),
        "{error}"
    );
    assert_eq!(work.len(), 1);
    expected.push(Airline {
        id: Some(id),
        ..airline("Euler Express")
    });
    assert_eq!(airlines(&pools[0]).await?, expected);
    DB::script(
        &pools[1],
        "DELETE FROM airlines WHERE name = 'Euler Express'",
    )
    .await?;
    work.flush(&pools).await?;
    for pool in &pools {
        assert_eq!(airlines(pool).await?, expected);
    }
    Ok(())
}

/// The rows of all shards, as they are sent; a flush after a failed one counts what is left.
pub async fn progress_is_that_of_all_shards<DB: Shards>(pools: Pools<DB>) -> Outcome {
    create(&pools).await?;
    let sharding = routed(Sharding::by_hash(2)?);
    let (mut work, added) = fill::<DB>(&sharding, 500)?;
    let parts: Vec<_> = work.shards().iter().map(|work| work.len()).collect();
    let (told, mut hears) = tokio::sync::mpsc::unbounded_channel();
    work.observe(move |shard, progress| _ = told.send((shard, progress)));
    work.flush(&pools).await?;
    let mut heard = Vec::new();
    while let Ok(told) = hears.try_recv() {
        heard.push(told);
    }
    let mut done = 0;
    let mut of_shards = [0; 2];
    for (shard, progress) in &heard {
        done += progress.rows;
        of_shards[*shard] += progress.rows;
        assert_eq!((progress.done, progress.total), (done, 3_500));
    }
    assert_eq!((done, &of_shards[..]), (3_500, &parts[..]));
    let tables = |shard| {
        let here = heard.iter().filter(move |(of, _)| *of == shard);
        let mut tables: Vec<_> = here.map(|(_, progress)| progress.table).collect();
        tables.dedup();
        tables
    };
    assert_eq!(tables(0), ["tenants", "orders", "lines"]);
    assert_eq!(tables(1), tables(0));

    // A row that is there already: its shard is told of at most up to it, the other one wholly.
    let again = added
        .iter()
        .find(|it| sharding.shard(it.id).ok() == Some(1));
    let again = again.expect("one of many").clone();
    let other = added
        .iter()
        .find(|it| sharding.shard(it.id).ok() == Some(0));
    let other = other.expect("one of many").clone();
    work.add(again.clone())?;
    work.update(other)?;
    work.flush(&pools).await.unwrap_err();
    let mut heard = Vec::new();
    while let Ok((shard, progress)) = hears.try_recv() {
        heard.push((shard, progress.done, progress.total));
    }
    assert_eq!(heard, [(0, 1, 2)]);
    assert_eq!(work.len(), 1);
    for table in ["lines", "orders", "tenants"] {
        DB::script(&pools[1], &format!("DELETE FROM {table}")).await?;
    }
    work.flush(&pools).await?;
    let (shard, progress) = hears.try_recv()?;
    assert_eq!((shard, progress.done, progress.total), (1, 1, 1));
    assert_eq!(tenants(&pools[1]).await?, [again]);
    Ok(())
}
