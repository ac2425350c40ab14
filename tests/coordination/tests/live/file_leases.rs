//! Nodes leased from a folder, by real processes.

use std::{
    collections::HashSet,
    fs,
    io::{self, Read as _, Write as _},
    path::Path,
    time::Duration,
};

use libtest_mimic::Trial;
use ordid_core::{
    clock::Timestamp,
    coordination::{CoordinationFailure, Grant, LeaseTerms, NodeAllocator as _},
};
use ordid_file::FileLease;
use ordid_tests::{
    process::{Child, Signal, fork, fork_writing},
    trials::{Outcome, run},
};

use crate::stores::now_by;

pub(crate) fn trials(trials: &mut Vec<Trial>) {
    macro_rules! tests {
        ($($test:ident),+ $(,)?) => {
            $(
                let name = concat!("file::file_leases::", stringify!($test));
                trials.push(Trial::test(name, || run(async || {
                    // Forks, and waits for its children.
                    tokio::task::spawn_blocking($test).await?
                })));
            )+
        };
    }
    tests!(
        sixteen_processes_that_start_at_once_get_sixteen_nodes,
        a_killed_process_leaves_a_gap_and_its_node_is_free_at_once,
        a_fork_is_refused_and_takes_a_node_of_its_own,
        kills_at_any_moment_lose_no_ceiling,
    );
}

fn open(folder: &Path, nodes: std::ops::Range<u64>) -> FileLease {
    let terms = LeaseTerms::new(nodes).expect("terms");
    FileLease::open(folder, terms).expect("a folder")
}

/// A process that acquires when `go` is there, says what it got, and waits to be killed.
fn holder(folder: &Path, nodes: std::ops::Range<u64>) -> Child {
    let folder = folder.to_owned();
    fork_writing(move |pipe| {
        while !folder.join("go").exists() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let leases = open(&folder, nodes);
        let grant = leases.acquire(now_by(0), None).map_err(io::Error::other)?;
        say(pipe, &grant)?;
        std::thread::sleep(Duration::from_secs(600));
        Ok(())
    })
}

fn say(pipe: &mut io::PipeWriter, grant: &Grant) -> io::Result<()> {
    for number in [grant.node(), grant.ceiling().as_unix_millis()] {
        pipe.write_all(&number.to_le_bytes())?;
    }
    Ok(())
}

/// Node and ceiling.
fn hear(child: &mut Child) -> io::Result<(u64, u64)> {
    let mut number = || {
        let mut bytes = [0; 8];
        child
            .read_exact(&mut bytes)
            .map(|()| u64::from_le_bytes(bytes))
    };
    Ok((number()?, number()?))
}

/// F10 and F11.
fn sixteen_processes_that_start_at_once_get_sixteen_nodes() -> Outcome {
    let folder = tempfile::tempdir()?;
    let mut children: Vec<Child> = (0..16).map(|_| holder(folder.path(), 0..16)).collect();
    fs::write(folder.path().join("go"), [])?;
    let mut nodes = HashSet::new();
    for child in &mut children {
        let (node, _) = hear(child)?;
        assert!(nodes.insert(node), "node {node} twice");
    }
    let error = open(folder.path(), 0..16)
        .acquire(now_by(0), None)
        .expect_err("all are held");
    assert_eq!(
        error.coordination_failure(),
        Some(CoordinationFailure::NoFreeNode)
    );
    Ok(())
}

/// F7.
fn a_killed_process_leaves_a_gap_and_its_node_is_free_at_once() -> Outcome {
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("go"), [])?;
    let mut child = holder(folder.path(), 4..5);
    let (node, ceiling) = hear(&mut child)?;
    let leases = open(folder.path(), 4..5);
    assert!(leases.acquire(now_by(0), None).is_err(), "it is held");
    drop(child);
    let next = leases.acquire(now_by(-5_000), None)?;
    assert_eq!((next.node(), next.epoch()), (node, 2));
    assert_eq!(next.floor().as_unix_millis(), ceiling);
    Ok(())
}

/// F8.
fn a_fork_is_refused_and_takes_a_node_of_its_own() -> Outcome {
    let folder = tempfile::tempdir()?;
    let leases = open(folder.path(), 0..2);
    let grant = leases.acquire(now_by(0), None)?;
    // Borrowed: the parent still has its node while the child asks for one.
    let child = fork(|| {
        let fenced = Some(CoordinationFailure::Fenced);
        let refused = [
            leases.acquire(now_by(0), None).map(drop),
            leases.renew(&grant, now_by(0)).map(drop),
            leases.release(&grant, None),
        ];
        assert!(
            refused
                .iter()
                .all(|refused| refused.as_ref().is_err_and(|error| {
                    error.coordination_failure() == fenced
                        && error.to_string().contains("this is its fork")
                }))
        );
        let own = open(folder.path(), 0..2)
            .acquire(now_by(0), None)
            .expect("free");
        own.node().to_le_bytes().to_vec()
    });
    assert_eq!(child.join(), 1_u64.to_le_bytes());
    Ok(())
}

/// A process that renews as fast as it can, killed again and again: what it has said it was granted is kept.
fn kills_at_any_moment_lose_no_ceiling() -> Outcome {
    const WINDOW: Duration = Duration::from_millis(100);

    let folder = tempfile::tempdir()?;
    let mut ceiling = 0;
    let mut renewals = 0;
    for round in 0..30_u64 {
        let path = folder.path().to_owned();
        let mut child = fork_writing(move |pipe| {
            // Short: each start adds a window to the ceiling, and it must not get far ahead.
            let terms = LeaseTerms::new(0..1).and_then(|terms| terms.with_window(WINDOW));
            let leases = terms.and_then(|terms| FileLease::open(&path, terms));
            let leases = leases.map_err(io::Error::other)?;
            let mut grant = leases
                .acquire(now_by(-60_000), None)
                .map_err(io::Error::other)?;
            pipe.write_all(&grant.floor().as_unix_millis().to_le_bytes())?;
            // Ceilings that rise by a millisecond at each, however fast.
            for millis in grant.ceiling().as_unix_millis().. {
                say(pipe, &grant)?;
                let later = Timestamp::saturating_from_unix_millis(millis - 99);
                grant = leases.renew(&grant, later).map_err(io::Error::other)?;
            }
            Ok(())
        });
        let mut bytes = [0; 8];
        child.read_exact(&mut bytes)?;
        assert!(
            u64::from_le_bytes(bytes) >= ceiling,
            "round {round} begins below {ceiling}"
        );
        for _ in 0..round % 7 + 1 {
            (_, ceiling) = hear(&mut child)?;
            renewals += 1;
        }
        std::thread::sleep(Duration::from_micros(300 * (round % 5)));
        // What it had said before is still in the pipe.
        child.signal(Signal::Kill);
        while let Ok((_, said)) = hear(&mut child) {
            ceiling = said;
            renewals += 1;
        }
    }
    assert!(renewals > 60, "{renewals} renewals only");
    Ok(())
}
