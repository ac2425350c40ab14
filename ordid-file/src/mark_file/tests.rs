use std::fs;

use tempfile::TempDir;

use super::*;
use crate::{
    record,
    slots::{SLOT_BYTES, newest},
};

const SLOT: usize = SLOT_BYTES as usize;

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.mark");
    (folder, path)
}

fn at(millis: u64) -> Timestamp {
    Timestamp::from_unix_millis(millis).unwrap()
}

fn raised(path: &Path, marks: &[u64]) -> Vec<u8> {
    let _ = fs::remove_file(path);
    let file = MarkFile::open(path).unwrap();
    for &mark in marks {
        file.raise(at(mark)).unwrap();
    }
    drop(file);
    fs::read(path).unwrap()
}

#[test]
#[cfg(unix)]
fn a_new_mark_and_a_new_lease_are_files_of_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;

    use ordid_core::coordination::{LeaseTerms, NodeAllocator as _};

    let (folder, path) = folder();
    MarkFile::open(&path).unwrap();
    let terms = LeaseTerms::new(3..4).unwrap();
    let leases = crate::FileLease::open(folder.path(), terms).unwrap();
    leases.acquire(Timestamp::MIN, None).unwrap();
    for path in [path, folder.path().join("node-3.lease")] {
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", path.display());
    }
}

/// Opens a file of these bytes.
fn load(path: &Path, bytes: &[u8]) -> Result<Option<u64>, Error> {
    fs::write(path, bytes).unwrap();
    let mark = MarkFile::open(path)?.load()?;
    Ok(mark.map(Timestamp::as_unix_millis))
}

#[test]
fn a_mark_is_there_after_each_restart() {
    let (_folder, path) = folder();
    let mut expected = None;
    for round in 0..5 {
        let file = MarkFile::open(&path).unwrap();
        assert_eq!(file.path(), path);
        assert_eq!(file.load().unwrap(), expected);
        for step in 0..round {
            let mark = at(1_645_557_742_000 + 10 * round + step);
            file.raise(mark).unwrap();
            expected = Some(mark);
            assert_eq!(file.load().unwrap(), expected);
        }
    }
    assert_eq!(fs::metadata(&path).unwrap().len(), 4_120);
}

#[test]
fn the_least_and_the_greatest_time_are_marks() {
    let (_folder, path) = folder();
    for mark in [Timestamp::MIN, Timestamp::MAX] {
        MarkFile::open(&path).unwrap().raise(mark).unwrap();
        assert_eq!(MarkFile::open(&path).unwrap().load().unwrap(), Some(mark));
    }
}

#[test]
fn a_lower_mark_is_refused_and_an_equal_one_is_not() {
    let (_folder, path) = folder();
    let file = MarkFile::open(&path).unwrap();
    file.raise(at(2_000)).unwrap();
    file.raise(at(2_000)).unwrap();
    let error = file.raise(at(1_999)).unwrap_err();
    assert!(error.is_high_water());
    assert_eq!(
        error.to_string(),
        format!(
            "the high-water mark {} is at 2000 ms and cannot go back to 1999 ms",
            path.display()
        )
    );
    drop(file);
    let file = MarkFile::open(&path).unwrap();
    assert_eq!(file.load().unwrap(), Some(at(2_000)));
    assert!(file.raise(at(1_999)).is_err(), "nor after a restart");
}

#[test]
fn a_write_torn_at_any_byte_leaves_the_old_mark_or_the_new() {
    let (_folder, path) = folder();
    // The second mark makes the file longer, the third and fourth go over an older record.
    for marks in [
        &[1_000, 2_000][..],
        &[1, 1_000, 2_000],
        &[1, 2, 1_000, 2_000],
    ] {
        let before = raised(&path, &marks[..marks.len() - 1]);
        let after = raised(&path, marks);
        let start = (marks.len() - 1) % 2 * SLOT;
        for written in 0..=record::LENGTH {
            let mut torn = before.clone();
            torn.resize(torn.len().max(start + written), 0);
            torn[start..start + written].copy_from_slice(&after[start..start + written]);
            let first_part = load(&path, &torn).unwrap();

            // The other way round: the later bytes arrive first.
            let mut torn = before.clone();
            torn.resize(after.len(), 0);
            let end = start + record::LENGTH;
            torn[end - written..end].copy_from_slice(&after[end - written..end]);
            let last_part = load(&path, &torn).unwrap();

            for mark in [first_part, last_part] {
                match written {
                    0 => assert_eq!(mark, Some(1_000)),
                    record::LENGTH => assert_eq!(mark, Some(2_000)),
                    _ => assert!(matches!(mark, Some(1_000 | 2_000)), "{written}: {mark:?}"),
                }
            }

            // And the file goes on from there.
            let file = MarkFile::open(&path).unwrap();
            file.raise(at(3_000)).unwrap();
            drop(file);
            let file = MarkFile::open(&path).unwrap();
            assert_eq!(file.load().unwrap(), Some(at(3_000)));
        }
    }
}

#[test]
fn a_spoilt_byte_of_the_newest_record_leaves_the_old_mark() {
    let (_folder, path) = folder();
    for marks in [&[1_000, 2_000][..], &[1, 1_000, 2_000]] {
        let whole = raised(&path, marks);
        let start = (marks.len() - 1) % 2 * SLOT;
        for position in start..start + record::LENGTH {
            for spoil in [0x01, 0x80, 0xff] {
                let mut spoilt = whole.clone();
                spoilt[position] ^= spoil;
                assert_eq!(
                    load(&path, &spoilt).unwrap(),
                    Some(1_000),
                    "byte {position}"
                );
            }
        }
    }
}

#[test]
fn a_file_cut_anywhere_has_an_older_mark_or_is_damaged() {
    let (_folder, path) = folder();
    let whole = raised(&path, &[1_000, 2_000]);
    for length in 1..whole.len() {
        let found = newest::<Timestamp>(&whole[..length]);
        if length < record::LENGTH {
            assert!(found.is_err(), "{length} bytes");
        } else {
            assert_eq!(found, Ok((Some(at(1_000)), 1)), "{length} bytes");
        }
    }
    let error = load(&path, &whole[..record::LENGTH - 1]).unwrap_err();
    assert!(error.is_high_water());
    assert_eq!(
        error.to_string(),
        format!(
            "the high-water mark {} is damaged: no valid record in it; make a new one and raise it \
             above the newest key",
            path.display()
        )
    );
    assert_eq!(
        load(&path, &[]).unwrap(),
        None,
        "an empty file is a new one"
    );
}

#[test]
fn what_is_no_mark_is_left_as_it_is() {
    let (_folder, path) = folder();
    for bytes in [
        &b"\0"[..],
        &[0; 24],
        &[0; 5_000],
        b"SQLite format 3\0and more of it",
    ] {
        assert!(load(&path, bytes).unwrap_err().is_high_water());
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }
}

#[test]
fn a_record_of_a_later_version_is_refused_in_either_slot() {
    let (_folder, path) = folder();
    let whole = raised(&path, &[1_000, 2_000]);
    for start in [0, SLOT] {
        let mut later = whole.clone();
        later[start + 8] = 2;
        let checksum = crc32fast::hash(&later[start..start + 20]);
        later[start + 20..start + 24].copy_from_slice(&checksum.to_le_bytes());
        let error = load(&path, &later).unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("is of version 2, expected 1: a later ordid-file wrote it"),
            "{error}"
        );
    }
}

#[test]
fn a_second_open_is_refused_until_the_first_is_dropped() {
    let (_folder, path) = folder();
    let first = MarkFile::open(&path).unwrap();
    let error = MarkFile::open(&path).unwrap_err();
    assert!(error.is_high_water());
    assert_eq!(
        error.to_string(),
        format!(
            "the high-water mark {} is in use: another MarkFile, here or in another process, has it \
             open; give each a file of its own",
            path.display()
        )
    );
    first.raise(at(1_000)).unwrap();
    drop(first);
    let second = MarkFile::open(&path).unwrap();
    assert_eq!(second.load().unwrap(), Some(at(1_000)));
}

#[test]
fn a_path_that_cannot_be_opened_is_named() {
    let (folder, path) = folder();
    fs::write(&path, "").unwrap();
    for wrong in [
        folder.path().join("missing/keys.mark"),
        path.join("below a file"),
        folder.path().to_owned(),
    ] {
        let error = MarkFile::open(&wrong).unwrap_err();
        assert!(error.is_high_water());
        let start = format!("the high-water mark {} cannot be opened: ", wrong.display());
        assert!(error.to_string().starts_with(&start), "{error}");
    }
}

#[test]
fn threads_raise_one_after_the_other() {
    let (_folder, path) = folder();
    let file = MarkFile::open(&path).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let file = &file;
            scope.spawn(move || {
                for step in 0..50 {
                    // Another thread may be ahead already: that is the one reason to refuse.
                    if file.raise(at(4 * step + thread)).is_err() {
                        assert!(file.load().unwrap() > Some(at(4 * step + thread)));
                    }
                }
            });
        }
    });
    drop(file);
    assert_eq!(
        MarkFile::open(&path).unwrap().load().unwrap(),
        Some(at(199))
    );
}
