//! Flickr's ticket servers, on several MariaDB servers at once.

use std::{collections::HashSet, sync::Arc, time::Duration};

use libtest_mimic::Trial;
use ordid_core::coordination::{AsyncSegmentSource as _, CoordinationFailure};
use ordid_harness::Server;
use ordid_sqlx::{TicketChoice, TicketForm, Tickets64};
use ordid_tests::{servers::Servers, trials::Outcome};
use sqlx::{
    Connection as _, MySql,
    mysql::{MySqlConnectOptions, MySqlConnection},
};

use crate::{
    segments::{count, failure, reserved},
    sql::{on_private_mariadb, sql},
};

pub(crate) fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    macro_rules! tests {
        ($($test:ident($increment:literal, $number:literal)),+ $(,)?) => {
            $(trials.push(on_servers(
                servers,
                concat!("tickets::", stringify!($test)),
                $increment,
                $number,
                $test,
            ));)+
        };
    }
    tests!(
        no_number_comes_twice(2, 2),
        a_server_that_falls_is_passed_over(16, 2),
        servers_are_added(2, 3),
    );
}

/// A test on private servers of its own, with this increment and the offsets from 1 on.
fn on_servers<F: Future<Output = Outcome>>(
    servers: &Servers,
    name: &str,
    increment: u32,
    number: u32,
    test: impl FnOnce(Vec<Server>) -> F + Send + 'static,
) -> Trial {
    let of_one = |offset| {
        vec![
            format!("--auto-increment-increment={increment}"),
            format!("--auto-increment-offset={offset}"),
        ]
    };
    on_private_mariadb(servers, name, (1..=number).map(of_one).collect(), test)
}

fn options(servers: &[Server]) -> Outcome<Vec<MySqlConnectOptions>> {
    let urls = servers
        .iter()
        .map(|server| server.url().parse::<MySqlConnectOptions>());
    Ok(urls.collect::<Result<_, _>>()?)
}

/// Both forms from eight clients, sticky and at random; and servers that count otherwise are refused.
async fn no_number_comes_twice(servers: Vec<Server>) -> Outcome {
    let options = options(&servers)?;
    let patience = Duration::from_secs(60);
    for form in [TicketForm::LastInsertId, TicketForm::Replace] {
        let new = |increment| Tickets64::new(options.clone(), form, increment);
        new(2)?.create().await?;
        let mut numbers = Vec::new();
        for choice in [TicketChoice::Random, TicketChoice::Sticky] {
            let tickets = Arc::new(new(2)?.with_choice(choice).with_timeout(patience));
            let sticky = choice == TicketChoice::Sticky;
            let these = reserved(&tickets, 8, 12, sticky).await?;
            let odd = these.iter().filter(|&number| number % 2 == 1).count();
            let shared = if sticky {
                odd == these.len()
            } else {
                0 < odd && odd < these.len()
            };
            assert!(shared, "{form:?}, {choice:?}: {odd} odd of {}", these.len());
            numbers.extend(these);
        }
        let distinct: HashSet<i64> = numbers.iter().copied().collect();
        assert_eq!(distinct.len(), numbers.len(), "{form:?}");

        let error = new(3)?
            .reserve(count(1))
            .await
            .expect_err("they count by 2");
        assert_eq!(
            error.coordination_failure(),
            Some(CoordinationFailure::Mismatch)
        );
        assert!(
            error.to_string().contains(
                "auto_increment_increment 2 and auto_increment_offset 1, expected 3 and 1"
            ),
            "{error}"
        );
        let swapped = Tickets64::new([options[1].clone(), options[0].clone()], form, 2)?;
        assert_eq!(
            failure(swapped.reserve(count(1)).await),
            Some(CoordinationFailure::Mismatch)
        );
    }
    // One table for both forms would give numbers twice.
    let mixed =
        Tickets64::new(options.clone(), TicketForm::LastInsertId, 2)?.with_table("Tickets64")?;
    assert_eq!(
        failure(mixed.reserve(count(1)).await),
        Some(CoordinationFailure::Mismatch)
    );
    let mixed =
        Tickets64::new(options.clone(), TicketForm::Replace, 2)?.with_table("ordid_tickets")?;
    assert_eq!(
        failure(mixed.reserve(count(1)).await),
        Some(CoordinationFailure::Mismatch)
    );
    assert_eq!(
        failure(Tickets64::new([], TicketForm::Replace, 2)),
        Some(CoordinationFailure::Mismatch)
    );
    assert_eq!(
        failure(Tickets64::new(options.clone(), TicketForm::Replace, 1)),
        Some(CoordinationFailure::Mismatch)
    );

    rows_of_one_replace_are_in_a_row(&options[0]).await?;
    ends(&options).await
}

/// What `reserve` of the form Replace builds on: the numbers of one statement follow each other, however many
/// clients there are. The server itself says which they are.
async fn rows_of_one_replace_are_in_a_row(options: &MySqlConnectOptions) -> Outcome {
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..6 {
        let options = options.clone();
        running.spawn(async move {
            let mut connection = MySqlConnection::connect_with(&options).await?;
            let mut seen = 0;
            while seen < 25 {
                let replaced = sqlx::query_scalar::<_, u64>(
                    "REPLACE INTO Tickets64 (stub) VALUES ('a'), ('a'), ('a'), ('a') RETURNING id",
                )
                .fetch_all(&mut connection)
                .await;
                // A deadlock.
                let Ok(ids) = replaced else { continue };
                assert!(ids.windows(2).all(|pair| pair[1] == pair[0] + 2), "{ids:?}");
                seen += 1;
            }
            connection.close().await
        });
    }
    while let Some(done) = running.join_next().await {
        done??;
    }
    Ok(())
}

/// F15 and F18 of each form.
async fn ends(options: &[MySqlConnectOptions]) -> Outcome {
    let exhausted = Some(CoordinationFailure::CounterExhausted);
    let tickets = Tickets64::new(options.to_vec(), TicketForm::LastInsertId, 2)?;
    tickets.reserve(count(10)).await?;
    sql::<MySql>(&options[0], "UPDATE ordid_tickets SET id = 1").await?;
    let regressed = Some(CoordinationFailure::CeilingRegressed);
    // However often it is asked, it comes no nearer to the numbers that others have.
    for _ in 0..20 {
        assert_eq!(failure(tickets.reserve(count(1)).await), regressed);
    }
    let end = format!("UPDATE ordid_tickets SET id = {}", i64::MAX - 4);
    sql::<MySql>(&options[0], &end).await?;
    let segment = tickets.reserve(count(2)).await?;
    assert!(segment.values().eq([i64::MAX - 2, i64::MAX]));
    assert_eq!(failure(tickets.reserve(count(1)).await), exhausted);
    sql::<MySql>(&options[0], "DELETE FROM ordid_tickets").await?;
    assert_eq!(
        failure(tickets.reserve(count(1)).await),
        Some(CoordinationFailure::StateLost)
    );

    let tickets = Tickets64::new(options.to_vec(), TicketForm::Replace, 2)?;
    let end = format!("ALTER TABLE Tickets64 AUTO_INCREMENT = {}", i64::MAX);
    sql::<MySql>(&options[0], &end).await?;
    assert_eq!(tickets.reserve(count(1)).await?.first(), Some(i64::MAX));
    assert_eq!(failure(tickets.reserve(count(1)).await), exhausted);

    // A copy that lacks the last numbers.
    sql::<MySql>(&options[0], "TRUNCATE TABLE Tickets64").await?;
    for _ in 0..3 {
        assert_eq!(failure(tickets.reserve(count(1)).await), regressed);
    }
    // The first of them was given when it was found out.
    let own = Tickets64::new(options.to_vec(), TicketForm::Replace, 2)?;
    assert_eq!(own.reserve(count(1)).await?.first(), Some(3));
    Ok(())
}

/// Killed in the midst, and back.
async fn a_server_that_falls_is_passed_over(mut servers: Vec<Server>) -> Outcome {
    let tickets = Tickets64::new(options(&servers)?, TicketForm::LastInsertId, 16)?;
    tickets.create().await?;
    let tickets = Arc::new(tickets.with_timeout(Duration::from_secs(30)));
    let mut numbers = reserved(&tickets, 4, 5, true).await?;
    assert!(
        numbers.iter().all(|number| number % 16 == 1),
        "the first server"
    );
    servers[0].kill()?;
    numbers.extend(reserved(&tickets, 4, 5, false).await?);
    let next = tickets.reserve(count(3)).await?;
    assert_eq!(next.first().map(|first| first % 16), Some(2), "the second");
    numbers.extend(next.values());
    servers[1].kill()?;
    let error = tickets.reserve(count(1)).await.expect_err("none is left");
    assert_eq!(
        error.coordination_failure(),
        Some(CoordinationFailure::Unavailable)
    );
    assert!(
        error.to_string().contains("none of 2 ticket servers"),
        "{error}"
    );
    let mut servers = tokio::task::spawn_blocking(move || {
        servers
            .iter_mut()
            .try_for_each(Server::restart)
            .map(|()| servers)
    })
    .await??;
    numbers.extend(reserved(&tickets, 4, 5, false).await?);
    // Those who never heard of the fall have the same numbers before them.
    let fresh = Tickets64::new(options(&servers)?, TicketForm::LastInsertId, 16)?;
    let fresh = Arc::new(fresh.with_choice(TicketChoice::Random));
    numbers.extend(reserved(&fresh, 4, 5, false).await?);
    let distinct: HashSet<i64> = numbers.iter().copied().collect();
    assert_eq!(distinct.len(), numbers.len());
    servers.clear();
    Ok(())
}

/// From two servers to three: with room in the increment, and without.
async fn servers_are_added(servers: Vec<Server>) -> Outcome {
    let options = options(&servers)?;
    let two = Tickets64::new(options[..2].to_vec(), TicketForm::LastInsertId, 2)?;
    two.create().await?;
    let two = Arc::new(two.with_choice(TicketChoice::Random));
    let mut numbers = reserved(&two, 4, 10, false).await?;

    // The increment has to grow. Sessions have the old one until they end, and the row stops them.
    let stripe = |increment: u32| {
        let options = &options;
        async move {
            for (offset, server) in (1..).zip(options) {
                let set = format!(
                    "SET GLOBAL auto_increment_increment = {increment}, GLOBAL auto_increment_offset = {offset}"
                );
                sql::<MySql>(server, &set).await?;
            }
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
        }
    };
    stripe(8).await?;
    let three = Tickets64::new(options.clone(), TicketForm::LastInsertId, 8)?;
    assert_eq!(
        failure(three.reserve(count(1)).await),
        Some(CoordinationFailure::Mismatch),
        "nobody has restriped"
    );
    numbers.extend(two.reserve(count(5)).await?.values());
    three.create().await?;
    // While the old ones still count.
    let counting = tokio::spawn({
        let two = Arc::clone(&two);
        async move {
            let mut numbers = Vec::new();
            loop {
                match two.reserve(count(3)).await {
                    Ok(segment) => numbers.extend(segment.values()),
                    Err(error) => return (numbers, error),
                }
            }
        }
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    three.restripe().await?;
    let (counted, error) = counting.await?;
    assert!(!counted.is_empty());
    numbers.extend(counted);
    assert_eq!(
        error.coordination_failure(),
        Some(CoordinationFailure::Mismatch),
        "{error}"
    );
    let highest = numbers.iter().copied().max().expect("some");
    let three = Arc::new(three.with_choice(TicketChoice::Random));
    let striped = reserved(&three, 4, 15, false).await?;
    assert!(striped.iter().all(|&number| number > highest));
    let shares: HashSet<i64> = striped.iter().map(|number| number % 8).collect();
    assert_eq!(shares, HashSet::from([1, 2, 3]));
    numbers.extend(striped);
    assert_eq!(
        failure(two.reserve(count(1)).await),
        Some(CoordinationFailure::Mismatch)
    );

    // The increment has room now: to know of two of them or of three is the same.
    let fewer = Tickets64::new(options[..2].to_vec(), TicketForm::LastInsertId, 8)?;
    let fewer = Arc::new(fewer.with_choice(TicketChoice::Random));
    let (a, b) = tokio::join!(
        reserved(&fewer, 3, 10, false),
        reserved(&three, 3, 10, false)
    );
    numbers.extend(a?);
    numbers.extend(b?);
    let distinct: HashSet<i64> = numbers.iter().copied().collect();
    assert_eq!(distinct.len(), numbers.len());

    // The form Replace, whose numbers the servers themselves make.
    stripe(2).await?;
    let two = Tickets64::new(options[..2].to_vec(), TicketForm::Replace, 2)?;
    two.create().await?;
    let mut numbers = reserved(
        &Arc::new(two.with_choice(TicketChoice::Random)),
        3,
        8,
        false,
    )
    .await?;
    let highest = numbers.iter().copied().max().expect("some");
    // A program that took its number long ago writes its row last.
    for server in &options[..2] {
        sql::<MySql>(server, "UPDATE Tickets64 SET id = 1").await?;
    }
    stripe(3).await?;
    let three = Tickets64::new(options.clone(), TicketForm::Replace, 3)?;
    three.create().await?;
    three.restripe().await?;
    let striped = reserved(
        &Arc::new(three.with_choice(TicketChoice::Random)),
        3,
        8,
        false,
    )
    .await?;
    assert!(striped.iter().all(|&number| number > highest));
    numbers.extend(striped);
    let distinct: HashSet<i64> = numbers.iter().copied().collect();
    assert_eq!(distinct.len(), numbers.len());
    Ok(())
}
