//! Every claim about tokio-postgres, on PostgreSQL.

mod blocking;
mod copy;
mod drops;
mod fields;
mod journal;
mod keys;
mod pgbouncer;
mod pools;
mod shards;
#[path = "../shared/tokio.rs"]
mod tokio;

use ::tokio_postgres::Client;
use ordid::{OrderedKey, entity::EnsuredKey};
use ordid_tests::{
    next_run,
    trials::{Outcome, run_all},
};
use ordid_tokio_postgres::{Entity, UnitOfWork};

fn main() {
    run_all(&["postgres", "pgbouncer"], |servers, trials| {
        keys::trials(servers, trials);
        fields::trials(servers, trials);
        copy::trials(servers, trials);
        drops::trials(servers, trials);
        pools::trials(servers, trials);
        shards::trials(servers, trials);
        next_run::trials::<journal::Run>(servers, trials, "postgres");
        pgbouncer::trials(servers, trials);
        blocking::trials(servers, trials);
    });
}

/// A unit of work of these rows.
fn work<E>(rows: impl IntoIterator<Item = E>) -> UnitOfWork
where
    E: Entity + OrderedKey<Field: EnsuredKey>,
{
    let mut work = UnitOfWork::new().with_new_memory();
    for row in rows {
        work.add(row);
    }
    work
}

/// Returns whether an expression is true.
async fn is_so(client: &Client, sql: &str) -> Outcome<bool> {
    let row = client.query_one(&format!("SELECT {sql}"), &[]).await?;
    Ok(row.try_get(0)?)
}
