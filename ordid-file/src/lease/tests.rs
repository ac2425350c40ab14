use std::{fs, time::Duration};

use tempfile::TempDir;

use super::*;

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nodes");
    (folder, path)
}

fn open(folder: &Path, nodes: std::ops::Range<u64>) -> FileLease {
    FileLease::open(folder, LeaseTerms::new(nodes).unwrap()).unwrap()
}

/// The machine's clock, so many milliseconds off.
fn now(by: i64) -> Timestamp {
    let now = SystemClock.now().as_unix_millis();
    Timestamp::from_unix_millis(now.checked_add_signed(by).unwrap()).unwrap()
}

/// Asserts that the result is this failure, with these words in its text.
#[track_caller]
fn fails<T: fmt::Debug>(result: Result<T, Error>, failure: CoordinationFailure, words: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.coordination_failure(), Some(failure), "{error}");
    assert!(error.to_string().contains(words), "{error}");
}

#[test]
fn a_restart_begins_at_the_ceiling_whatever_its_clock() {
    let (_guard, folder) = folder();
    let mut ceiling = Timestamp::MIN;
    for (epoch, by) in (1..).zip([0, -2_000, 0, -5_000]) {
        let leases = open(&folder, 3..4);
        let grant = leases.acquire(now(by), None).unwrap();
        assert_eq!((grant.node(), grant.epoch()), (3, epoch));
        assert!(grant.floor() >= ceiling, "{by} ms");
        if epoch == 1 {
            ceiling = grant.ceiling();
            continue;
        }
        assert_eq!(grant.floor(), ceiling, "{by} ms");
        // Back to where it began, so that the next one is not too far ahead.
        leases.release(&grant, None).unwrap();
        ceiling = grant.floor();
    }
}

#[test]
fn what_was_used_is_kept_by_a_release_and_the_rest_is_not_lost() {
    let (_guard, folder) = folder();
    let leases = open(&folder, 0..1);
    let grant = leases.acquire(now(0), None).unwrap();
    let last = Timestamp::from_unix_millis(grant.floor().as_unix_millis() + 5).unwrap();
    leases.release(&grant, Some(last)).unwrap();
    let next = leases.acquire(now(-1_000), None).unwrap();
    assert_eq!(next.floor().as_unix_millis(), last.as_unix_millis() + 1);
    fails(
        leases.renew(&grant, now(0)),
        CoordinationFailure::Fenced,
        "",
    );
    fails(
        leases.release(&grant, None),
        CoordinationFailure::Fenced,
        "",
    );
}

#[test]
fn holders_have_different_nodes_and_one_too_many_is_told() {
    let (_guard, folder) = folder();
    let leases: Vec<FileLease> = (0..4).map(|_| open(&folder, 8..11)).collect();
    for (leases, node) in leases.iter().zip(8..11) {
        assert_eq!(leases.acquire(now(0), None).unwrap().node(), node);
    }
    let none = leases[3].acquire(now(0), None).unwrap_err();
    assert_eq!(
        none.coordination_failure(),
        Some(CoordinationFailure::NoFreeNode)
    );
    assert_eq!(
        none.to_string(),
        format!(
            "no node is free: processes of this machine, or their forked children, have all nodes 8..11 of {}",
            folder.display()
        )
    );
    // One allocator has several nodes, too.
    drop(leases);
    let leases = open(&folder, 8..11);
    let mut nodes: Vec<u64> = (0..3)
        .map(|_| leases.acquire(now(0), None).unwrap().node())
        .collect();
    nodes.sort_unstable();
    assert_eq!(nodes, [8, 9, 10]);
}

#[test]
fn a_copy_and_a_file_put_in_the_place_of_another_are_refused() {
    let (_guard, folder) = folder();
    let leases = open(&folder, 5..6);
    let grant = leases.acquire(now(0), None).unwrap();

    let other = folder.with_file_name("copy");
    fs::create_dir_all(&other).unwrap();
    fs::copy(folder.join("node-5.lease"), other.join("node-5.lease")).unwrap();
    fails(
        open(&other, 5..6).acquire(now(0), None),
        CoordinationFailure::Mismatch,
        "node-5.lease is a copy",
    );

    fs::rename(other.join("node-5.lease"), folder.join("node-5.lease")).unwrap();
    fails(
        leases.renew(&grant, now(0)),
        CoordinationFailure::StateLost,
        "",
    );
    fs::remove_file(folder.join("node-5.lease")).unwrap();
    fails(
        leases.renew(&grant, now(0)),
        CoordinationFailure::StateLost,
        "",
    );
}

#[test]
fn a_record_names_its_file_by_the_inode_and_the_time_it_was_made() {
    let file = Identity { inode: 7, born: 3 };
    let lease = Lease {
        writes: 1,
        epoch: 2,
        ceiling: now(0),
        file,
    };
    let read = crate::record::decode::<Lease>(&crate::record::encode(lease));
    assert_eq!(read, crate::record::Slot::Whole(lease));
    // The same inode, given to a file that was made later, or on a file system that does not say when.
    for born in [4, 0] {
        assert_ne!(file, Identity { born, ..file });
    }
    let (_guard, folder) = folder();
    fs::create_dir_all(&folder).unwrap();
    let file = File::create(folder.join("a")).unwrap();
    let same = File::open(folder.join("a")).unwrap();
    assert_eq!(Identity::of(&file).unwrap(), Identity::of(&same).unwrap());
}

/// ext4 gives the next file the inode of the one that was deleted.
#[test]
fn a_file_that_was_deleted_and_restored_is_refused_whatever_its_inode() {
    let (_guard, folder) = folder();
    let path = folder.join("node-5.lease");
    open(&folder, 5..6).acquire(now(0), None).unwrap();
    let backup = fs::read(&path).unwrap();
    for _ in 0..20 {
        fs::remove_file(&path).unwrap();
        fs::write(&path, &backup).unwrap();
        fails(
            open(&folder, 5..6).acquire(now(0), None),
            CoordinationFailure::Mismatch,
            "node-5.lease is a copy",
        );
    }
}

#[test]
fn a_clock_far_off_burns_no_time() {
    let (_guard, folder) = folder();
    let hour = 3_600_000;
    let leases = open(&folder, 0..2);
    fails(
        leases.acquire(now(hour), None),
        CoordinationFailure::TooFarAhead,
        "",
    );
    let grant = leases.acquire(now(0), None).unwrap();
    assert!(grant.floor() <= now(0));
    fails(
        leases.renew(&grant, now(hour)),
        CoordinationFailure::TooFarAhead,
        "",
    );
    // A clock that went back takes nothing back.
    assert_eq!(leases.renew(&grant, now(-8 * hour)).unwrap(), grant);
}

#[test]
fn a_node_whose_ceiling_is_far_ahead_is_passed_over() {
    let (_guard, folder) = folder();
    let terms = LeaseTerms::new(0..2).unwrap();
    let far = terms
        .clone()
        .with_max_ahead(Duration::from_secs(7_200))
        .unwrap();
    let ahead = FileLease::open(&folder, far).unwrap();
    ahead.acquire(now(3_600_000), None).unwrap();
    drop(ahead);
    let leases = FileLease::open(&folder, terms).unwrap();
    assert_eq!(leases.acquire(now(0), None).unwrap().node(), 1);
    fails(
        leases.acquire(now(0), None),
        CoordinationFailure::TooFarAhead,
        "",
    );
}

#[test]
fn a_spoilt_file_is_told_and_a_torn_write_leaves_what_was_acknowledged() {
    let (_guard, folder) = folder();
    let path = folder.join("node-0.lease");
    let leases = open(&folder, 0..1);
    let first = leases.acquire(now(0), None).unwrap();
    let second = leases.renew(&first, now(1_000)).unwrap();
    drop(leases);
    let whole = fs::read(&path).unwrap();
    assert_eq!(whole.len(), 4_096 + 56);
    // Each length of the second record but the whole.
    for length in 4_096..whole.len() {
        let file = File::options().write(true).open(&path).unwrap();
        file.set_len(length as u64).unwrap();
        let leases = open(&folder, 0..1);
        let next = leases.acquire(now(-60_000), None).unwrap();
        assert_eq!(
            (next.epoch(), next.floor()),
            (2, first.ceiling()),
            "{length} bytes"
        );
        drop(leases);
        fs::write(&path, &whole).unwrap();
    }
    let leases = open(&folder, 0..1);
    let next = leases.acquire(now(-60_000), None).unwrap();
    assert_eq!(next.floor(), second.ceiling());
    drop(leases);

    fs::write(&path, b"something else").unwrap();
    fails(
        open(&folder, 0..1).acquire(now(0), None),
        CoordinationFailure::Mismatch,
        "node-0.lease is damaged",
    );
    // Other nodes are granted all the same.
    let leases = open(&folder, 0..3);
    let others = [1, 2].map(|_| leases.acquire(now(0), None).unwrap().node());
    assert_eq!(others, [1, 2]);
    fails(
        leases.acquire(now(0), None),
        CoordinationFailure::Mismatch,
        "node-0.lease is damaged",
    );
}

#[test]
fn a_folder_that_cannot_be_made_is_unavailable() {
    let (_guard, folder) = folder();
    fs::write(&folder, b"a file").unwrap();
    let opened = FileLease::open(&folder, LeaseTerms::new(0..1).unwrap());
    fails(opened, CoordinationFailure::Unavailable, "");
}
