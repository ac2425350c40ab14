//! Pools whose connections go silent under flushes that are dropped then.

use std::time::Duration;

use diesel_async::{
    AsyncMysqlConnection, AsyncPgConnection,
    pooled_connection::{AsyncDieselConnectionManager, bb8, deadpool},
};
use libtest_mimic::Trial;
use ordid_diesel::Retry;
use ordid_tests::{
    faults::{
        Failed, Flusher, Found, Graph, Remote as _, Served, Shape, Site, cut::through, on_server,
    },
    proxy::{Fault, Proxy},
    servers::{Client as _, Servers},
    trials::Outcome,
};
use sqlx::{MySql, Postgres, pool::PoolOptions};

use crate::{connect::Connect, diesel, establish::Known, mysql, over::Awaited, seaorm, works};

/// How many connections a pool may have.
const CONNECTIONS: u32 = 4;

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    const NAME: &str =
        "silence::flushes_that_are_dropped_in_silence_leave_the_pool_its_connections";

    on_server::<seaorm::Work<Postgres>, _, _>(trials, servers, "postgres", NAME, of_seaorm);
    on_server::<seaorm::Work<MySql>, _, _>(trials, servers, "mariadb", NAME, of_seaorm);
    macro_rules! of_diesel {
        ($server:literal, $backend:ty, $connection:ty) => {
            on_server::<diesel::Work<Awaited<$connection>>, _, _>(
                trials,
                servers,
                $server,
                NAME,
                async |site| {
                    type Backend = $backend;
                    let proxy =
                        Proxy::start(<Backend as Known>::Database::address(site.options())?)
                            .await?;
                    let silent = through(&site, &proxy);
                    let url = <Backend as Known>::Database::client_url(silent.options());
                    let url = format!("{url}{}", <Backend as Known>::ASYNC);
                    let manager = || AsyncDieselConnectionManager::<$connection>::new(url.as_str());
                    let pool = bb8::Pool::builder()
                        .max_size(CONNECTIONS)
                        .build(manager())
                        .await?;
                    serves(
                        &site,
                        &proxy,
                        0,
                        async |work: &mut diesel::Work<Awaited<$connection>>| {
                            let outcome = work.0.flush_with_async(|| pool.get_owned()).await;
                            outcome.map_err(|error| Failed::from(&error))
                        },
                    )
                    .await?;
                    let pool = deadpool::Pool::builder(manager());
                    let pool = pool.max_size(usize::try_from(CONNECTIONS)?).build()?;
                    serves(
                        &site,
                        &proxy,
                        10,
                        async |work: &mut diesel::Work<Awaited<$connection>>| {
                            let outcome = work.0.flush_with_async(|| pool.get()).await;
                            outcome.map_err(|error| Failed::from(&error))
                        },
                    )
                    .await
                },
            );
        };
    }
    of_diesel!("postgres", ::diesel::pg::Pg, AsyncPgConnection);
    of_diesel!("mariadb", ::diesel::mysql::Mysql, AsyncMysqlConnection);
    on_server::<works::TokioPostgres, _, _>(trials, servers, "postgres", NAME, of_tokio_postgres);
    on_server::<works::MysqlAsync, _, _>(trials, servers, "mariadb", NAME, of_mysql_async);
}

async fn of_tokio_postgres(site: Site<Postgres>) -> Outcome {
    use ::tokio_postgres::{Config, NoTls};
    use bb8_postgres::{PostgresConnectionManager, bb8};

    let proxy = Proxy::start(Postgres::address(site.options())?).await?;
    let url = Postgres::client_url(through(&site, &proxy).options());
    let config: Config = url.parse()?;
    let manager = PostgresConnectionManager::new(config.clone(), NoTls);
    let pool = bb8::Pool::builder()
        .max_size(CONNECTIONS)
        .build(manager)
        .await?;
    serves(&site, &proxy, 0, async |work: &mut works::TokioPostgres| {
        let outcome = work.0.flush_with(|| pool.get()).await;
        outcome.map_err(|error| Failed::from(&error))
    })
    .await?;
    let manager = deadpool_postgres::Manager::new(config, NoTls);
    let pool = deadpool_postgres::Pool::builder(manager);
    let pool = pool.max_size(usize::try_from(CONNECTIONS)?).build()?;
    serves(
        &site,
        &proxy,
        10,
        async |work: &mut works::TokioPostgres| {
            let outcome = work.0.flush_with(|| pool.get()).await;
            outcome.map_err(|error| Failed::from(&error))
        },
    )
    .await
}

async fn of_mysql_async(site: Site<MySql>) -> Outcome {
    use ::mysql_async::{Pool, PoolConstraints, PoolOpts};

    let proxy = Proxy::start(MySql::address(site.options())?).await?;
    let url = MySql::client_url(through(&site, &proxy).options());
    let most = usize::try_from(CONNECTIONS)?;
    // A pool closes the connections above the least number as they come back.
    let most = PoolConstraints::new(most, most).ok_or("four are not too many")?;
    let options = PoolOpts::default().with_constraints(most);
    let pool = Pool::new(mysql::options(&url)?.pool_opts(options));
    serves(&site, &proxy, 0, async |work: &mut works::MysqlAsync| {
        let outcome = work.0.flush(&pool).await;
        outcome.map_err(|error| Failed::from(&error))
    })
    .await?;
    Ok(pool.disconnect().await?)
}

async fn of_seaorm<DB: Served + Connect>(site: Site<DB>) -> Outcome {
    let proxy = Proxy::start(DB::address(site.options())?).await?;
    let pool = PoolOptions::<DB>::new()
        .max_connections(CONNECTIONS)
        .acquire_timeout(Duration::from_secs(60))
        .connect_lazy_with(through(&site, &proxy).options().clone());
    let over = DB::connect(pool.clone());
    serves(&site, &proxy, 0, async |work: &mut seaorm::Work<DB>| {
        work.flush_over(&over).await
    })
    .await?;
    pool.close().await;
    Ok(())
}

/// The network goes silent at COMMIT, and the caller gives up as often as the pool has connections. Then it speaks
/// again for new ones.
async fn serves<W: Flusher<Database: Served>>(
    site: &Site<W::Database>,
    proxy: &Proxy,
    first: u32,
    flush: impl AsyncFn(&mut W) -> Result<ordid_diesel::Flushed, Failed>,
) -> Outcome {
    proxy.always(Fault::SilenceAtCommit);
    let before = proxy
        .traffic()
        .iter()
        .filter(|it| it.commit.is_some())
        .count();
    for number in 1..=CONNECTIONS {
        let mut work = W::of(&Graph::new(first + number, Shape::SMALL), Retry::NONE);
        let commits = before + usize::try_from(number)?;
        let is_silent = async {
            while proxy
                .traffic()
                .iter()
                .filter(|it| it.commit.is_some())
                .count()
                < commits
            {
                ::tokio::time::sleep(Duration::from_millis(10)).await;
            }
            ::tokio::time::sleep(Duration::from_millis(100)).await;
        };
        ::tokio::select! {
            outcome = flush(&mut work) => panic!("nobody answered: {outcome:?}"),
            () = is_silent => {}
        }
    }
    proxy.always(Fault::None);
    let graph = Graph::new(first, Shape::SMALL);
    let mut work = W::of(&graph, Retry::NONE);
    let flushed = ::tokio::time::timeout(Duration::from_secs(30), flush(&mut work)).await;
    flushed.map_err(|_| "the pool had no connection")??;
    assert_eq!(site.look(&graph).await?, Found::All);
    Ok(())
}
