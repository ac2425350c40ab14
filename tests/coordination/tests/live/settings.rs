//! Servers that are not set as they come: what we say is granted, counted or mapped is committed all the same.

use std::{collections::HashSet, sync::Arc, time::Duration};

use libtest_mimic::Trial;
use ordid::uuid::Uuid;
use ordid_core::coordination::{AsyncNodeAllocator, AsyncSegmentSource as _, LeaseTerms};
use ordid_harness::Server;
use ordid_sqlx::{
    MappingTable, Retry, SqlCounter, SqlDisposableNode, SqlLease, TicketForm, Tickets64,
};
use ordid_tests::{servers::Servers, stores::now, trials::Outcome};
use sqlx::{MySql, MySqlPool, mysql::MySqlConnectOptions};

use crate::{segments::count, sql::on_private_mariadb};

pub(crate) fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    macro_rules! tests {
        ($option:literal: $($test:ident),+ $(,)?) => {$(
            trials.push(on_private_mariadb(
                servers,
                concat!("settings::", stringify!($test)),
                vec![vec![$option.to_owned()]],
                |servers| async move { $test(&url_of(&servers)?).await },
            ));
        )+};
    }
    tests!("--autocommit=0":
        nodes_and_numbers_are_committed_without_autocommit,
        mappings_are_committed_without_autocommit,
    );
    tests!("--transaction-isolation=READ-UNCOMMITTED":
        mappings_are_of_committed_rows_under_read_uncommitted,
        nodes_and_numbers_are_distinct_under_read_uncommitted,
    );
}

fn url_of(servers: &[Server]) -> Outcome<String> {
    Ok(servers.first().ok_or("no server")?.url().to_owned())
}

async fn nodes_and_numbers_are_committed_without_autocommit(url: &str) -> Outcome {
    nodes_and_numbers_are_distinct(url).await
}

async fn nodes_and_numbers_are_distinct_under_read_uncommitted(url: &str) -> Outcome {
    nodes_and_numbers_are_distinct(url).await
}

/// Two processes: what one has, the other does not get.
async fn nodes_and_numbers_are_distinct(url: &str) -> Outcome {
    let options: MySqlConnectOptions = url.parse()?;

    let counters = [(); 2].map(|()| SqlCounter::<MySql>::new(options.clone(), "orders"));
    let mut numbers = HashSet::new();
    for (at, counter) in counters.into_iter().enumerate() {
        let counter = counter?;
        if at == 0 {
            counter.create(1).await?;
        }
        for _ in 0..2 {
            let segment = counter.reserve(count(5)).await?;
            assert!(segment.values().all(|number| numbers.insert(number)));
        }
    }
    assert_eq!(numbers, (1..21).collect());

    let terms = LeaseTerms::new(0..8)?;
    let leases = [(); 2].map(|()| SqlLease::<MySql>::new(options.clone(), terms.clone()));
    leases[0].create().await?;
    are_distinct(&leases).await?;
    let terms = LeaseTerms::new(0..1 << 10)?;
    let disposable =
        [(); 2].map(|()| SqlDisposableNode::<MySql>::new(options.clone(), terms.clone()));
    disposable[0].create().await?;
    are_distinct(&disposable).await?;

    for form in [TicketForm::LastInsertId, TicketForm::Replace] {
        let mut numbers = HashSet::new();
        for at in 0..2 {
            let tickets = Tickets64::new([options.clone()], form, 1)?;
            if at == 0 {
                tickets.create().await?;
            }
            for _ in 0..2 {
                let segment = tickets.reserve(count(5)).await?;
                assert!(
                    segment.values().all(|number| numbers.insert(number)),
                    "{form:?}"
                );
            }
        }
    }
    Ok(())
}

async fn are_distinct(leases: &[impl AsyncNodeAllocator; 2]) -> Outcome {
    let [one, other] = leases;
    let first = one.acquire(now(), None).await?;
    let second = other.acquire(now(), None).await?;
    assert_ne!(first.node(), second.node());
    // The second sees what the first has written, and a node that is given back is free.
    one.renew(&first, now()).await?;
    other.release(&second, None).await?;
    Ok(())
}

fn uuids(number: usize) -> Vec<Uuid> {
    (0..number).map(|_| Uuid::now_v7()).collect()
}

async fn mappings_are_committed_without_autocommit(url: &str) -> Outcome {
    let ours = MySqlPool::connect(url).await?;
    let others = MySqlPool::connect(url).await?;
    let table = MappingTable::<MySql>::new("ids")?;
    table.create(&ours).await?;
    // Whoever looks before there is anything looks again later.
    let all = uuids(2_500);
    assert!(
        table
            .get_many(&others, &all)
            .await?
            .iter()
            .all(Option::is_none)
    );

    let ids = table.insert_or_get_many(&ours, &all).await?;
    let found = table.get_many(&others, &all).await?;
    let expected: Vec<_> = ids.iter().copied().map(Some).collect();
    assert!(found == expected, "others find other rows");
    let again = table.insert_or_get_many(&others, &all).await?;
    assert!(again == ids, "others have other ids");
    let again = table.insert_many(&others, &all[..5]).await?;
    assert!(again.iter().all(|mapping| !mapping.is_new));

    let [one, new] = [Uuid::now_v7(), Uuid::now_v7()];
    let id = table.insert_or_get(&ours, one).await?;
    assert_eq!(table.key(&others, id).await?, Some(one));
    let mapping = table.insert(&ours, new).await?;
    assert!(mapping.is_new);
    assert_eq!(table.get(&others, new).await?, Some(mapping.id));
    let refused = table.insert(&others, new).await?;
    assert_eq!((refused.id, refused.is_new), (mapping.id, false));

    // No transaction of ours stays open.
    ours.close().await;
    let rows: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM ids")
        .fetch_one(&others)
        .await?;
    assert_eq!(rows, 2_502);
    let open: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM information_schema.innodb_trx")
        .fetch_one(&others)
        .await?;
    assert!(open <= 1, "{open} transactions are open");
    Ok(())
}

/// A transaction inserts rows and rolls them back. Meanwhile nobody is told of them, and then they have other ids.
async fn mappings_are_of_committed_rows_under_read_uncommitted(url: &str) -> Outcome {
    let pool = MySqlPool::connect(url).await?;
    let table = Arc::new(MappingTable::<MySql>::new("ids")?.with_retry(Retry::NONE));
    table.create(&pool).await?;
    let known = table.insert_or_get(&pool, Uuid::now_v7()).await?;

    for number in [1, 500] {
        let all = uuids(number);
        let mut dying = pool.begin().await?;
        let dirty = table.insert_or_get_many(&mut dying, &all).await?;
        assert!(
            table
                .get_many(&pool, &all)
                .await?
                .iter()
                .all(Option::is_none)
        );
        let keys = table.keys(&pool, &dirty).await?;
        assert!(keys.iter().all(Option::is_none));
        assert!(table.key(&pool, known).await?.is_some());

        let waiting = tokio::spawn({
            let (table, pool, all) = (Arc::clone(&table), pool.clone(), all.clone());
            async move { table.insert_or_get_many(&pool, &all).await }
        });
        tokio::time::sleep(Duration::from_millis(300)).await;
        dying.rollback().await?;
        let ids = waiting.await??;
        let found = table.keys(&pool, &ids).await?;
        let expected: Vec<_> = all.iter().copied().map(Some).collect();
        assert!(found == expected, "ids of rows that are not there");
    }
    Ok(())
}
