//! Flushes while a node is cut off from the others. It refuses statements as soon as it knows.

use std::time::Duration;

use ordid_sqlx::Retry;
use sqlx::MySql;

use super::{
    EAGER, Fault, Flusher, Found, Graph, Kind, Nodes, Outcome, PATIENCE, Shape, Site, send, soak,
    times,
};

/// Cuts a node off in the midst of a flush. The flush is tried again there, and on another node.
pub(super) async fn in_its_midst<W: Flusher<Database = MySql>>(nodes: Nodes<'_>) -> Outcome {
    let (mut refused, kind) = (0, nodes.kind);
    for unit in 0..times(1, 40) {
        let graph = Graph::new(unit, Shape::SMALL);
        let stays = unit % 2 == 0;
        let retry = if stays {
            Retry::NONE
        } else {
            EAGER.with_attempts(8)
        };
        let mut work: W = super::work(nodes.kind, &graph, retry, unit % 4 > 1);
        let proxy = nodes.proxy(if stays { &[2] } else { &[2, 0, 1] }).await?;
        let mut left = [3, 1][unit as usize / 2 % 2];
        let there = nodes.sites[2].options().clone();
        work.tell(move |_| {
            left -= i32::from(left > 0);
            if left == 0 {
                left = -1;
                let there = there.clone();
                let other = std::thread::spawn(move || {
                    let runtime = tokio::runtime::Builder::new_current_thread()
                        .enable_all()
                        .build()?;
                    Outcome::Ok(
                        runtime.block_on(Site::<MySql>::open(there).execute(kind.cuts_off()))?,
                    )
                });
                other
                    .join()
                    .expect("not panicked")
                    .expect("the node answers");
            }
        });
        let options = nodes.through(&proxy);
        let outcome = work.flush_to(&options, PATIENCE).await;
        let what = |error| format!("unit {unit}: {error}");
        nodes.wait_for_members(0, 2).await?;
        // The part without a majority refuses statements.
        let late = Graph::new(10_000 + unit, Shape::SMALL);
        let mut refusing: W = super::work(nodes.kind, &late, Retry::NONE, false);
        nodes.wait_for_members(2, 0).await?;
        let error = refusing.flush_to(nodes.sites[2].options(), PATIENCE).await;
        let error = error.expect_err("the node is not ready");
        let (is_refused, is_gone) = (error.is_transient, error.is_connection_lost);
        // A member of a group takes no writes then, as a server that became a replica.
        let expected = (kind == Kind::Galera, kind == Kind::GroupReplication);
        assert_eq!((is_refused, is_gone), expected, "{error}");
        assert!(!error.is_commit_unknown, "{error}");
        nodes.rejoin(2).await?;
        nodes.wait_for_members(2, 3).await?;
        nodes.judge(&graph, &work, &outcome).await.map_err(what)?;
        if let Err(error) = &outcome {
            eprintln!("unit {unit}: {error}");
            refused += 1;
            work.tell(|_| ());
            nodes.again(2, &graph, &mut work).await.map_err(what)?;
        }
        nodes.again(1, &late, &mut refusing).await.map_err(what)?;
    }
    assert!(
        refused > 0,
        "each flush was over before the node was cut off"
    );
    Ok(())
}

/// Sends a COMMIT to a node that has just been cut off and does not know it yet, or cuts the node off at the same time.
/// The flush goes on with another node.
pub(super) async fn at_commit<W: Flusher<Database = MySql>>(nodes: Nodes<'_>) -> Outcome {
    let mut there = 0;
    let runs = times(4, 40);
    for unit in 0..runs {
        let graph = Graph::new(unit, Shape::SMALL);
        let retry = EAGER.with_attempts(20);
        let mut work: W = super::work(nodes.kind, &graph, retry, unit % 2 == 1);
        let proxy = nodes.proxy(&[2, 0, 1, 0, 1, 0, 1, 0, 1]).await?;
        proxy.plan([Fault::HoldCommit]);
        let isolating = async {
            while proxy.traffic().first().is_none_or(|it| it.commit.is_none()) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            let is_before = unit / 2 % 2 == 0;
            if !is_before {
                proxy.release();
            }
            nodes.cut_off(2).await?;
            proxy.release();
            Outcome::Ok(())
        };
        let options = nodes.through(&proxy);
        let (outcome, isolated) = tokio::join!(work.flush_to(&options, PATIENCE), isolating);
        isolated?;
        let what = |error| format!("unit {unit}: {error}");
        nodes.wait_for_members(0, 2).await?;
        nodes.wait_for_members(2, 0).await?;
        nodes.rejoin(2).await?;
        nodes.wait_for_members(2, 3).await?;
        let found = nodes.judge(&graph, &work, &outcome).await.map_err(what)?;
        there += u32::from(found == Found::All);
        if let Err(error) = &outcome {
            eprintln!("unit {unit}: {found:?}, {error}");
            nodes.again(2, &graph, &mut work).await.map_err(what)?;
        }
    }
    eprintln!("{there} of {runs} flushes were written before the node was back");
    assert!(
        !soak() || there > 0,
        "no flush went on with another node: each of them was given up"
    );
    Ok(())
}

/// A member of a group stops at a COMMIT, is given up by the others, and goes on. What it has sent to the others before
/// is committed there, though it answers that the transaction was rolled back.
pub(super) async fn silent_at_commit<W: Flusher<Database = MySql>>(nodes: Nodes<'_>) -> Outcome {
    let (mut there, mut unknown) = (0, 0);
    for unit in 0..times(2, 40) {
        let graph = Graph::new(unit, Shape::SMALL);
        let mut work: W = super::work(nodes.kind, &graph, Retry::NONE, unit % 2 == 1);
        let proxy = nodes.proxy(&[2, 0, 1]).await?;
        proxy.plan([Fault::HoldCommit]);
        let pid = nodes.servers.as_ref().ok_or("it runs")?[2].pid()?;
        let delay = Duration::from_micros(300 * u64::from(unit % 10));
        let stopping = async {
            while proxy.traffic().first().is_none_or(|it| it.commit.is_none()) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            proxy.release();
            tokio::time::sleep(delay).await;
            send("-STOP", pid)?;
            let given_up = nodes.wait_for_members(0, 2).await;
            send("-CONT", pid)?;
            given_up
        };
        let options = nodes.through(&proxy);
        let (outcome, stopped) = tokio::join!(work.flush_to(&options, PATIENCE), stopping);
        stopped?;
        // It may have joined the others by itself.
        if nodes
            .wait_for_members_within(2, 3, Duration::from_secs(8))
            .await
            .is_err()
        {
            nodes.cut_off(2).await?;
            nodes.rejoin(2).await?;
            nodes.wait_for_members(2, 3).await?;
        }
        let what = |error| format!("unit {unit}: {error}");
        let found = nodes.judge(&graph, &work, &outcome).await.map_err(what)?;
        there += u32::from(found == Found::All);
        if let Err(error) = &outcome {
            eprintln!("unit {unit}: {found:?}, {error}");
            // The answer of the member is lost, and another one shows the rows late, or never.
            assert!(error.is_commit_unknown, "unit {unit}: {error}");
            unknown += 1;
            nodes.again(2, &graph, &mut work).await.map_err(what)?;
        }
    }
    eprintln!("{there} flushes were written, {unknown} are unknown");
    assert!(
        !soak() || there > 0,
        "the member was stopped before it could send anything"
    );
    assert!(
        !soak() || unknown > 0,
        "each flush was seen before the member was stopped"
    );
    Ok(())
}
