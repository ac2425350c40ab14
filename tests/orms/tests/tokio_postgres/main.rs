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
    servers::{Client as _, Servers},
    trials::{Outcome, on_scratch, run_all},
};
use ordid_tokio_postgres::{Entity, UnitOfWork};
use sqlx::Postgres;

fn main() {
    run_all(&["postgres", "pgbouncer"], |servers, trials| {
        keys::trials(servers, trials);
        fields::trials(servers, trials);
        copy::trials(servers, trials);
        drops::trials(servers, trials);
        pools::trials(servers, trials);
        shards::trials(servers, trials);
        journal::trials(servers, trials);
        pgbouncer::trials(servers, trials);
        blocking::trials(servers, trials);
    });
}

/// Adds a test with an empty database, whose address it gets.
fn on_server<F: Future<Output = Outcome>>(
    trials: &mut Vec<libtest_mimic::Trial>,
    servers: &Servers,
    server: &'static str,
    name: &str,
    test: impl FnOnce(String) -> F + Send + 'static,
) {
    on_scratch::<Postgres, _, _>(trials, servers, server, name, async |pool| {
        let url = Postgres::client_url(&pool.connect_options());
        pool.close().await;
        test(url).await
    });
}

/// Adds functions as tests, whose names begin with that of their module.
macro_rules! add {
    ($trials:ident, $servers:ident, $server:literal, $module:literal; $($test:ident),+ $(,)?) => {$(
        crate::on_server(
            $trials, $servers, $server, concat!($module, "::", stringify!($test)), $test,
        );
    )+};
}

use add;

/// A unit of work of these rows.
fn work<E>(rows: impl IntoIterator<Item = E>) -> UnitOfWork
where
    E: Entity + OrderedKey<Field: EnsuredKey>,
{
    let mut work = UnitOfWork::new();
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
