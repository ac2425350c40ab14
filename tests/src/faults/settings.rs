//! Servers as people set them: inserts and changes of every library, also with a COMMIT that is cut or whose answer is lost.

use libtest_mimic::Trial;
use sqlx::MySql;

use super::{
    Flusher, Library, Remote as _, Served, Site,
    cut::{Conversation, changes_retrying, inserts_retrying},
    on_both, on_own_server, on_server,
};
use crate::{
    proxy::{At, Fault, Proxy},
    servers::{Scratch as _, Servers},
    settings::{Setting, mysql, postgres},
    trials::Outcome,
};

const POSTGRES: &[Setting] = &[
    postgres::SERIALIZABLE,
    postgres::STATEMENT_TIMEOUT,
    postgres::IDLE_TIMEOUT,
    postgres::ASYNCHRONOUS,
];

const MYSQL: &[Setting] = &[
    mysql::NO_AUTOCOMMIT,
    mysql::READ_UNCOMMITTED,
    mysql::SERIALIZABLE,
    mysql::NOT_STRICT,
];

/// Adds the tests of a library.
pub fn trials<L: Library>(servers: &Servers, trials: &mut Vec<Trial>) {
    on_server::<L::Postgres, _, _>(
        trials,
        servers,
        "postgres",
        "settings::each_of_them_leaves_a_flush_as_it_is",
        async |site| all::<L::Postgres>(&site, POSTGRES).await,
    );
    on_both(trials, |trials, server| {
        on_own_server::<L::MySql, _, _>(
            trials,
            servers,
            server,
            "settings::each_of_them_leaves_a_flush_as_it_is",
            async |server| {
                let (pool, _) = MySql::scratch(&server.url()).await?;
                let options = (*pool.connect_options()).clone();
                // Its connections would count as sessions.
                pool.close().await;
                all::<L::MySql>(&Site::create(options).await?, MYSQL).await
            },
        );
    });
}

async fn all<W: Flusher<Database: Served>>(
    site: &Site<W::Database>,
    settings: &[Setting],
) -> Outcome {
    // Each unit of work has a number of its own.
    let mut units = (0..).step_by(4);
    for setting in settings {
        site.execute(setting.set).await?;
        let what = |error| format!("{}: {error}", setting.name);
        under::<W>(site, &mut units).await.map_err(what)?;
        site.execute(setting.reset).await?;
    }
    Ok(())
}

async fn under<W: Flusher<Database: Served>>(
    site: &Site<W::Database>,
    units: &mut impl Iterator<Item = u32>,
) -> Outcome {
    let proxy = Proxy::start(W::Database::address(site.options())?).await?;
    let mut unit = || units.next().ok_or("too many units");

    inserts_retrying::<W>(site, &proxy, unit()?, Fault::None).await?;
    for fault in faults(&proxy)? {
        let what = |error| format!("inserts, {fault:?}: {error}");
        let retries = inserts_retrying::<W>(site, &proxy, unit()?, fault).await;
        check(fault, retries.map_err(what)?);
    }

    changes_retrying::<W>(site, &proxy, unit()?, Fault::None).await?;
    for fault in faults(&proxy)? {
        let what = |error| format!("changes, {fault:?}: {error}");
        let retries = changes_retrying::<W>(site, &proxy, unit()?, fault).await;
        check(fault, retries.map_err(what)?);
    }
    Ok(())
}

/// Returns faults that meet the COMMIT of a flush which is as long as the last one: the server gets only a part of the COMMIT,
/// or gets it and the client hears no answer.
fn faults(proxy: &Proxy) -> Outcome<[Fault; 3]> {
    let conversation = Conversation::of(proxy.last_traffic())?;
    Ok([
        Fault::Cut(At::Commit(conversation.commit - 1)),
        Fault::Cut(At::Down(conversation.answered)),
        Fault::Swallow(conversation.answered),
    ])
}

/// A COMMIT that the server never got is done again.
fn check(fault: Fault, retries: u32) {
    if matches!(fault, Fault::Cut(At::Commit(_))) {
        assert!(retries > 0, "the fault met nothing");
    }
}
