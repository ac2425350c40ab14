//! Diesel and diesel-async behind PgBouncer, which gives each transaction another connection to the server.

use diesel::{PgConnection, pg::Pg, prelude::*, sql_types::Integer};
use diesel_async::AsyncConnection as _;
use libtest_mimic::Trial;
use ordid_diesel::EngineProfile;
use ordid_tests::servers::Servers;
use tokio::runtime;

use crate::{
    Outcome,
    scratch::on_server,
    tables::{Order, Tables, Work, connect, create, customer, order},
};

/// Clients at a time, more than the server's connections.
const CLIENTS: usize = 8;
/// Orders of a flush: some chunks of the same text, which is what Diesel would keep prepared.
const ORDERS: usize = 2_500;

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    on_server::<PgConnection>(
        trials,
        servers,
        "pgbouncer",
        "flushes_at_once_write_each_row_once",
        " WITH (FORCE)",
        |url| flushes_at_once::<Pg>(url, one_client::<Pg>),
    );
    // diesel-async prepares each statement by name, whatever the size of its cache.
    on_server::<PgConnection>(
        trials,
        servers,
        "pgbouncer_2",
        "async_flushes_at_once_write_each_row_once",
        " WITH (FORCE)",
        |url| {
            flushes_at_once::<Pg>(url, |url| {
                let runtime = runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()?;
                runtime.block_on(one_async_client::<Pg>(url))
            })
        },
    );
}

#[derive(QueryableByName)]
struct Port {
    #[diesel(sql_type = Integer)]
    port: i32,
}

/// Returns the address of the server behind PgBouncer.
fn around(url: &str) -> Outcome<String> {
    let port = diesel::sql_query("SELECT inet_server_port() AS port");
    let port: Port = port.get_result(&mut PgConnection::establish(url)?)?;
    let (server, database) = url.rsplit_once('/').ok_or("an address names a database")?;
    let (host, _) = server.rsplit_once(':').ok_or("and a port")?;
    Ok(format!("{host}:{}/{database}", port.port))
}

fn unit<DB: Tables>() -> Work<DB> {
    Work::new().with_engine(EngineProfile::PGBOUNCER)
}

fn flushes_at_once<DB: Tables>(url: &str, client: fn(&str) -> Outcome) -> Outcome {
    let direct = around(url)?;
    let mut looks = create::<DB>(&direct)?;
    let failed: Vec<String> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| scope.spawn(|| client(url).err().map(|it| it.to_string())))
            .collect();
        let ended = clients.into_iter().map(|client| client.join());
        ended
            .filter_map(|ended| ended.unwrap_or_else(|_| Some("it panicked".to_owned())))
            .collect()
    });
    assert!(failed.is_empty(), "{failed:#?}");
    let (customers, orders) = (i64::try_from(CLIENTS)?, i64::try_from(CLIENTS * ORDERS)?);
    assert_eq!(DB::counts(&mut looks)?, [customers, orders, 0]);
    let kinds = DB::orders(&mut looks)?.into_iter().map(|it| it.kind);
    assert_eq!(kinds.filter(|kind| *kind == 2).count(), CLIENTS * ORDERS);
    Ok(())
}

/// Inserts the orders of a customer, and changes them.
fn one_client<DB: Tables>(url: &str) -> Outcome {
    let mut connection = connect::<DB>(url)?;
    let (mut inserts, mut updates) = units::<DB>();
    inserts.flush(&mut connection)?;
    updates.flush(&mut connection)?;
    Ok(())
}

/// As [`one_client`].
async fn one_async_client<DB: Tables>(url: &str) -> Outcome {
    let mut connection = DB::Async::establish(url).await?;
    let (mut inserts, mut updates) = units::<DB>();
    inserts.flush_async(&mut connection).await?;
    updates.flush_async(&mut connection).await?;
    Ok(())
}

/// What a client flushes: the orders of a customer, and then changes of all of them.
fn units<DB: Tables>() -> (Work<DB>, Work<DB>) {
    let (mut inserts, mut updates) = (unit::<DB>(), unit::<DB>());
    let ada = inserts.add(customer("Ada"));
    for _ in 0..ORDERS {
        let row = order(ada, 1);
        inserts.add(row.clone());
        updates.update(Order { kind: 2, ..row });
    }
    (inserts, updates)
}
