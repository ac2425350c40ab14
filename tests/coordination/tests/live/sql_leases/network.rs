//! What can fail between a database and the holders of its nodes: the network, the server, the holder.

use std::{io, path::Path, process::Command, time::Duration};

use libtest_mimic::Trial;
use ordid_core::coordination::{
    AsyncNodeAllocator, AsyncSegmentSource as _, CoordinationFailure, LeaseTerms,
};
use ordid_harness::Server;
use ordid_sqlx::{Backend, ConnectOptions, SqlCounter, SqlLease};
use ordid_tests::{
    process::fork_writing,
    proxy::{At, Fault, Proxy},
    servers::Servers,
    trials::{Outcome, run},
};
use sqlx::{MySql, Postgres, Sqlite};

use super::{LONGER_TTL, Sqlx, TTL, created, created_with, terms, terms_with};
use crate::{
    segments::{count, failure},
    sql::{Network, on_servers, outside_of_the_runtime, own_runtime, proxy_to},
    stores::{fails, keys_end_at_the_ceiling, lasting, now_by, on_own_server},
};

pub(super) fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    on_servers!(
        "sql_leases",
        servers,
        trials,
        a_killed_holder_leaves_a_gap,
        a_store_out_of_reach_gives_no_node,
        an_answer_that_is_lost_loses_time_only,
        a_renewal_that_comes_late_changes_nothing,
    );
    trials.push(Trial::test(
        "sqlite::sql_leases::a_store_out_of_reach_gives_no_node",
        || {
            run(async || {
                let folder = tempfile::tempdir()?;
                let path = folder.path().join("missing").join("db.sqlite");
                let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
                let leases = SqlLease::<Sqlite>::new(options, LeaseTerms::new(0..4)?);
                assert_eq!(
                    failure(leases.acquire(now_by(0), None).await),
                    Some(CoordinationFailure::Unavailable)
                );
                Ok(())
            })
        },
    ));
    let name = "sql_leases::a_server_that_falls_keeps_its_ceilings";
    on_own_server(trials, servers, "postgres", name, falls::<Postgres>);
    on_own_server(trials, servers, "mariadb", name, falls::<MySql>);
    let name = "sql_leases::a_copy_that_lags_behind_is_noticed";
    let test = a_copy_that_lags_behind_is_noticed::<Postgres>;
    on_own_server(trials, servers, "postgres", name, test);
    let test = a_copy_that_lags_behind_is_noticed::<MySql>;
    on_own_server(trials, servers, "mariadb", name, test);
    let name = "sql_leases::keys_end_at_the_ceiling";
    on_own_server(
        trials,
        servers,
        "postgres",
        name,
        keys_end_without_their_server::<Postgres>,
    );
    on_own_server(
        trials,
        servers,
        "mariadb",
        name,
        keys_end_without_their_server::<MySql>,
    );
}

/// A table that is reached directly, and through a proxy.
struct Proxied<DB: Backend> {
    options: ConnectOptions<DB>,
    direct: SqlLease<DB>,
    proxy: Proxy,
    terms: LeaseTerms,
}

impl<DB: Network> Proxied<DB> {
    async fn new(options: ConnectOptions<DB>, terms: LeaseTerms) -> Outcome<Self> {
        Ok(Self {
            direct: created_with(&Sqlx::<DB>(options.clone()), terms.clone()).await?,
            proxy: proxy_to::<DB>(&options).await?,
            options,
            terms,
        })
    }

    /// Through the proxy, on a connection of its own.
    fn over(&self) -> SqlLease<DB> {
        let options = DB::at(&self.options, self.proxy.port());
        SqlLease::new(options, self.terms.clone()).with_timeout(Duration::from_secs(3))
    }
}

/// F7: a process of its own, which `kill -9` ends in the midst of its window.
async fn a_killed_holder_leaves_a_gap<DB: Backend>(options: ConnectOptions<DB>) -> Outcome {
    use std::io::{Read as _, Write as _};

    let terms = || terms_with(0..1, LONGER_TTL);
    let leases = created_with(&Sqlx::<DB>(options.clone()), terms()).await?;
    let of = options.clone();
    let mut child = outside_of_the_runtime(move || {
        fork_writing(move |pipe| {
            let grant = own_runtime(async {
                SqlLease::<DB>::new(of, terms())
                    .acquire(now_by(0), None)
                    .await
            });
            let ceiling = grant.expect("free").ceiling().as_unix_millis();
            pipe.write_all(&ceiling.to_le_bytes())?;
            std::thread::sleep(Duration::from_secs(600));
            Ok(())
        })
    })?;
    let ceiling = tokio::task::spawn_blocking(move || {
        let mut bytes = [0; 8];
        child
            .read_exact(&mut bytes)
            .map(|()| u64::from_le_bytes(bytes))
        // Killed here, as it is dropped.
    })
    .await??;
    assert_eq!(
        failure(leases.acquire(now_by(0), None).await),
        Some(CoordinationFailure::NoFreeNode)
    );
    tokio::time::sleep(LONGER_TTL + Duration::from_millis(100)).await;
    let next = leases.acquire(now_by(-5_000), None).await?;
    assert_eq!((next.epoch(), next.floor().as_unix_millis()), (2, ceiling));
    Ok(())
}

/// F1, F2: nobody listens; and the connection breaks while the node is held.
async fn a_store_out_of_reach_gives_no_node<DB: Network>(options: ConnectOptions<DB>) -> Outcome {
    let unavailable = Some(CoordinationFailure::Unavailable);
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await?
        .local_addr()?
        .port();
    let leases = SqlLease::<DB>::new(DB::at(&options, closed), terms(0..2));
    assert_eq!(failure(leases.acquire(now_by(0), None).await), unavailable);

    let proxied = Proxied::<DB>::new(options, terms(0..2)).await?;
    let grant = proxied.over().acquire(now_by(0), None).await?;
    proxied.proxy.always(Fault::Cut(At::Up(0)));
    let over = proxied.over();
    assert_eq!(failure(over.renew(&grant, now_by(0)).await), unavailable);
    assert_eq!(failure(over.release(&grant, None).await), unavailable);
    assert_eq!(failure(over.acquire(now_by(0), None).await), unavailable);
    // The grant is still good, and once the store is back it is renewed.
    proxied.proxy.always(Fault::None);
    let renewed = over.renew(&grant, now_by(0)).await?;
    assert!(renewed.ceiling() >= grant.ceiling());
    proxied.direct.release(&renewed, None).await?;
    Ok(())
}

/// F16: the last bytes of an answer never come, for an acquisition and for a renewal.
async fn an_answer_that_is_lost_loses_time_only<DB: Network>(
    options: ConnectOptions<DB>,
) -> Outcome {
    let terms = terms_with(0..2, LONGER_TTL);
    let proxied = Proxied::<DB>::new(options, terms).await?;
    let (direct, proxy) = (&proxied.direct, &proxied.proxy);
    // Each is measured right before its answer is lost: a server that has to check a password anew says more. One that says
    // less than it did has its answer through, and is asked again.
    let mut carried_out = 0;
    for _ in 0..5 {
        let before = proxied.over().acquire(now_by(0), None).await?;
        let acquisition = proxy.last_traffic().down;
        direct.release(&before, None).await?;
        proxy.plan([Fault::Swallow(acquisition - 1)]);
        match proxied.over().acquire(now_by(0), None).await {
            Ok(grant) => {
                direct.release(&grant, None).await?;
                continue;
            }
            lost => assert_eq!(failure(lost), Some(CoordinationFailure::Unavailable)),
        }
        // It was carried out: one of the two nodes has a holder that does not know of it.
        let one = direct.acquire(now_by(0), None).await?;
        let none = direct.acquire(now_by(0), None).await;
        carried_out += u8::from(none.is_err());
        direct.release(&one, None).await?;
        if let Ok(other) = none {
            direct.release(&other, None).await?;
        }
        tokio::time::sleep(LONGER_TTL + Duration::from_millis(100)).await;
        if carried_out == 2 {
            break;
        }
    }
    assert!(carried_out > 0, "the answers were lost too early");

    for _ in 0..5 {
        let grant = proxied.over().acquire(now_by(0), None).await?;
        let grant = proxied.over().renew(&grant, now_by(100)).await?;
        proxy.plan([Fault::Swallow(proxy.last_traffic().down - 1)]);
        match proxied.over().renew(&grant, now_by(900)).await {
            Ok(grant) => direct.release(&grant, None).await?,
            lost => {
                assert_eq!(failure(lost), Some(CoordinationFailure::Unavailable));
                fails(
                    direct.renew(&grant, now_by(900)).await,
                    CoordinationFailure::Fenced,
                    "a renewal whose answer was lost",
                );
                return Ok(());
            }
        }
    }
    panic!("no answer to a renewal was lost");
}

/// A renewal that the network holds back until somebody else has the node.
async fn a_renewal_that_comes_late_changes_nothing<DB: Network>(
    options: ConnectOptions<DB>,
) -> Outcome {
    let proxied = Proxied::<DB>::new(options, terms(0..1)).await?;
    let (direct, proxy) = (&proxied.direct, &proxied.proxy);
    let old = direct.acquire(now_by(0), None).await?;
    let grant = direct.renew(&old, now_by(100)).await?;
    // One that is not even tried ends before the UPDATE, which is what is held back.
    assert_eq!(
        failure(proxied.over().renew(&old, now_by(100)).await),
        Some(CoordinationFailure::Fenced)
    );
    proxy.plan([Fault::Hold(proxy.last_traffic().up)]);
    let held = proxied.over().renew(&grant, now_by(1_500)).await;
    assert_eq!(failure(held), Some(CoordinationFailure::Unavailable));
    tokio::time::sleep(TTL + Duration::from_millis(100)).await;
    let next = direct.acquire(now_by(0), None).await?;
    proxy.release();
    tokio::time::sleep(Duration::from_millis(500)).await;
    // Epoch and ceiling are those of the new holder.
    direct.renew(&next, now_by(100)).await?;
    Ok(())
}

/// F2 on a real server, and its ceilings after `kill -9`.
async fn falls<DB: Backend>(mut server: Server) -> Outcome
where
    ConnectOptions<DB>: std::str::FromStr<Err = sqlx::Error>,
{
    let options: ConnectOptions<DB> = server.url().parse()?;
    let leases = created(&Sqlx::<DB>(options.clone()), 0..1).await?;
    let grant = leases.acquire(now_by(0), None).await?;
    let mut grant = leases.renew(&grant, now_by(500)).await?;
    for _ in 0..2 {
        server.kill()?;
        let unavailable = Some(CoordinationFailure::Unavailable);
        assert_eq!(failure(leases.renew(&grant, now_by(0)).await), unavailable);
        assert_eq!(failure(leases.acquire(now_by(0), None).await), unavailable);
        server = tokio::task::spawn_blocking(move || server.restart().map(|()| server)).await??;
        tokio::time::sleep(TTL).await;
        // Its connections are gone, which it finds out by itself.
        let renewed = leases.renew(&grant, now_by(0)).await?;
        assert!(renewed.ceiling() >= grant.ceiling());
        tokio::time::sleep(TTL + Duration::from_millis(100)).await;
        let next = leases.acquire(now_by(-10_000), None).await?;
        assert_eq!(
            (next.epoch(), next.floor()),
            (grant.epoch() + 1, renewed.ceiling())
        );
        grant = next;
    }
    Ok(())
}

/// Kills the server and starts it again, with something done to its folder meanwhile.
async fn restarted(
    mut server: Server,
    meanwhile: impl FnOnce(&Path) -> io::Result<()> + Send + 'static,
) -> Outcome<Server> {
    tokio::task::spawn_blocking(move || {
        server.kill()?;
        meanwhile(server.folder())?;
        server.restart()?;
        Ok(server)
    })
    .await?
}

/// F15 on a real server: one that has not heard of what was granted last takes its place.
async fn a_copy_that_lags_behind_is_noticed<DB: Backend>(server: Server) -> Outcome
where
    ConnectOptions<DB>: std::str::FromStr<Err = sqlx::Error>,
{
    let options: ConnectOptions<DB> = server.url().parse()?;
    let leases = created(&Sqlx::<DB>(options.clone()), 0..2).await?;
    let counter = SqlCounter::<DB>::new(options, "orders")?;
    counter.create(1).await?;
    let known = leases.acquire(now_by(0), None).await?;
    assert_eq!(counter.reserve(count(10)).await?.first(), Some(1));
    let server = restarted(server, |folder| {
        let mut copy = Command::new("cp");
        copy.arg("-a").args(["data", "copy"]).current_dir(folder);
        assert!(copy.status()?.success(), "{copy:?}");
        Ok(())
    })
    .await?;

    let renewed = leases.renew(&known, now_by(1_000)).await?;
    let unknown = leases.acquire(now_by(0), None).await?;
    assert_ne!(unknown.node(), known.node());
    assert_eq!(counter.reserve(count(10)).await?.first(), Some(11));
    let server = restarted(server, |folder| {
        std::fs::remove_dir_all(folder.join("data"))?;
        std::fs::rename(folder.join("copy"), folder.join("data"))
    })
    .await?;

    let regressed = Some(CoordinationFailure::CeilingRegressed);
    let held = [renewed, unknown];
    for grant in held {
        assert_eq!(failure(leases.renew(&grant, now_by(0)).await), regressed);
    }
    assert_eq!(failure(counter.reserve(count(1)).await), regressed);
    // It has been told: whoever comes next begins behind.
    tokio::time::sleep(TTL + Duration::from_millis(100)).await;
    for _ in held {
        let next = leases.acquire(now_by(-5_000), None).await?;
        let before = held.iter().find(|grant| grant.node() == next.node());
        let before = before.expect("one of them");
        assert_eq!(
            (next.epoch(), next.floor()),
            (before.epoch() + 1, before.ceiling())
        );
    }
    drop(server);
    Ok(())
}

/// F2 in the keys, with a store that comes back on the same port.
async fn keys_end_without_their_server<DB: Backend>(server: Server) -> Outcome
where
    ConnectOptions<DB>: std::str::FromStr<Err = sqlx::Error>,
{
    let leases = created_with(&Sqlx::<DB>(server.url().parse()?), lasting(1)).await?;
    keys_end_at_the_ceiling(leases, server).await
}
