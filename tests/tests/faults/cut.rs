//! A network that breaks: a proxy ends the conversation of a flush after N bytes, N swept through
//! all of it.

use libtest_mimic::Trial;
use ordid_tests::{
    faults::{Found, Graph, Outcome, Remote, Shape, Site},
    proxy::{At, Fault, Proxy, Traffic},
    servers::Servers,
};
use sqlx::{MySql, Postgres};

use crate::{on_server, times};

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    macro_rules! add {
        ($server:literal, $database:ty, copied: $copied:expr) => {
            on_server::<$database, _, _>(
                trials,
                servers,
                $server,
                "a_connection_cut_anywhere_leaves_all_rows_or_none",
                |site| anywhere(site, $copied),
            );
        };
    }
    add!("postgres", Postgres, copied: &[1_100, 2_050, 0]);
    add!("mariadb", MySql, copied: &[0, 0, 0]);
}

/// A flush over a proxy that does nothing, to learn what is said.
pub async fn learn<DB: Remote>(
    site: &Site<DB>,
    proxy: &Proxy,
    copied: &[usize],
) -> Outcome<Conversation> {
    let graph = Graph::new(0, Shape::CHUNKS);
    let pool = through(site, proxy).pool();
    let mut work = site.work(&graph);
    let outcome = work.flush(&pool).await;
    pool.close().await;
    site.judge(&graph, &work, &outcome).await?;
    let found: Vec<usize> = outcome?.tables.iter().map(|it| it.copied).collect();
    assert_eq!(found, copied);
    Conversation::of(proxy.last_traffic())
}

/// The same database, over the proxy.
pub fn through<DB: Remote>(site: &Site<DB>, proxy: &Proxy) -> Site<DB> {
    Site::open(DB::through(site.options(), proxy.port()))
}

/// What is said in a flush, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Conversation {
    /// The client's, before COMMIT.
    pub before_commit: u64,
    /// And with it.
    pub up: u64,
    /// The server's, before COMMIT is sent.
    pub answered: u64,
    /// And with the answer to it, at least.
    pub down: u64,
}

impl Conversation {
    fn of(traffic: Traffic) -> Outcome<Self> {
        let (before_commit, answered) = traffic.commit.ok_or("no COMMIT was seen")?;
        let conversation = Self {
            before_commit,
            up: traffic.commit_end,
            answered,
            down: traffic.down,
        };
        assert!(conversation.up > before_commit && conversation.down > answered);
        Ok(conversation)
    }

    /// Whether the server has got COMMIT before the fault, so that all rows must be there.
    fn is_committed(&self, fault: Fault) -> bool {
        match fault {
            Fault::None => true,
            Fault::Cut(At::Up(bytes)) => bytes >= self.up,
            Fault::Cut(At::Down(bytes)) => bytes > self.answered,
            Fault::Swallow(bytes) => bytes >= self.answered,
            // Later, perhaps.
            Fault::Hold(_) => false,
        }
    }

    /// Faults all over the conversation, and around each byte of COMMIT and of its answer.
    fn faults(&self, count: u32) -> Vec<Fault> {
        let spread = move |end: u64, count: u32| {
            (0..u64::from(count)).map(move |number| number * end / u64::from(count))
        };
        let (up, down) = (self.up, self.down);
        let around_commit = self.before_commit - 1..=up;
        let around_answer = self.answered - 1..=down;
        spread(up, count)
            .chain(around_commit)
            .map(|bytes| Fault::Cut(At::Up(bytes)))
            .chain(
                spread(down, count / 2)
                    .chain(around_answer.clone().step_by(3))
                    .map(|bytes| Fault::Cut(At::Down(bytes))),
            )
            .chain(
                spread(down, count / 8)
                    .chain(around_answer.step_by(8))
                    .map(Fault::Swallow),
            )
            .collect()
    }
}

async fn anywhere<DB: Remote>(site: Site<DB>, copied: &[usize]) -> Outcome {
    let proxy = Proxy::start(DB::address(site.options())?).await?;
    let conversation = learn(&site, &proxy, copied).await?;
    let through = through(&site, &proxy);
    let (mut told, mut unknown, mut committed) = (0, 0, 0);
    for (unit, fault) in (1..).zip(conversation.faults(times(16, 400))) {
        let graph = Graph::new(unit, Shape::CHUNKS);
        let mut work = site.work(&graph);
        proxy.plan([fault]);
        let pool = through.pool();
        let outcome = work.flush(&pool).await;
        pool.close().await;
        let what = |error| format!("{fault:?} of {conversation:?}: {error}");
        let found = site.judge(&graph, &work, &outcome).await.map_err(what)?;
        let expected = conversation.is_committed(fault);
        if (found == Found::All) != expected {
            return Err(what(format!("{found:?} after {outcome:?}").into()).into());
        }
        match &outcome {
            Ok(_) => continue,
            Err(error) if error.is_commit_unknown() => unknown += 1,
            Err(_) => told += 1,
        }
        committed += u32::from(found == Found::All);
        let again = site.flush_again(&graph, &mut work, found).await;
        again.map_err(what)?;
    }
    eprintln!(
        "{} cut: {told} before COMMIT, {unknown} in doubt, of which {committed} had been committed",
        std::any::type_name::<DB>()
    );
    assert!(told > 20 && unknown > committed && committed > 3);
    Ok(())
}
