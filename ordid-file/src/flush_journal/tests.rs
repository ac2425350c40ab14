use std::fs;

use tempfile::TempDir;

use super::*;

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("orders.journal");
    (folder, path)
}

fn read(journal: &mut FlushJournal) -> Vec<Vec<u8>> {
    let mut records = Vec::new();
    journal
        .read(&mut |record| {
            records.push(record.to_vec());
            Ok(())
        })
        .unwrap();
    records
}

/// Writes records, and returns the bytes of the file and where each record ends.
fn written(path: &Path, records: &[Vec<u8>]) -> (Vec<u8>, Vec<usize>) {
    let _ = fs::remove_file(path);
    let mut journal = FlushJournal::open(path).unwrap();
    let mut ends = Vec::new();
    for record in records {
        journal.append(record).unwrap();
        ends.push(usize::try_from(fs::metadata(path).unwrap().len()).unwrap());
    }
    journal.sync().unwrap();
    (fs::read(path).unwrap(), ends)
}

/// Records of a few bytes, of none, of zeros, and of more than the buffers of reader and writer.
fn records() -> Vec<Vec<u8>> {
    vec![
        b"first".to_vec(),
        Vec::new(),
        vec![0; 40],
        (0..=255).cycle().take(700).collect(),
        vec![1],
    ]
}

/// What a file of these bytes reads as: records, and whether there is a torn tail.
fn scan(bytes: &[u8]) -> Result<(Vec<Vec<u8>>, bool), String> {
    let mut records = Records {
        file: bytes,
        position: 0,
        length: bytes.len() as u64,
    };
    let (mut found, mut record) = (Vec::new(), Vec::new());
    loop {
        match records.next(&mut record).unwrap() {
            Next::Record => found.push(record.clone()),
            Next::End => return Ok((found, false)),
            Next::Torn => return Ok((found, true)),
            Next::Other(problem) => return Err(problem),
        }
    }
}

#[test]
fn records_are_there_after_a_restart_and_gone_once_cleared() {
    let (_folder, path) = folder();
    let mut journal = FlushJournal::open(&path).unwrap();
    assert_eq!(journal.path(), path);
    for round in 0..3 {
        assert_eq!(read(&mut journal), Vec::<Vec<u8>>::new(), "round {round}");
        let mut expected = Vec::new();
        for record in records() {
            journal.append(&record).unwrap();
            expected.push(record);
            assert_eq!(read(&mut journal), expected);
        }
        journal.sync().unwrap();
        drop(journal);
        journal = FlushJournal::open(&path).unwrap();
        assert_eq!(read(&mut journal), expected);
        // And goes on from there.
        journal.append(b"more").unwrap();
        expected.push(b"more".to_vec());
        drop(journal);
        journal = FlushJournal::open(&path).unwrap();
        assert_eq!(read(&mut journal), expected);
        journal.clear().unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len(), 0);
        journal.clear().unwrap();
    }
}

#[test]
fn a_large_record_comes_back() {
    let (_folder, path) = folder();
    let record: Vec<u8> = (0..=255).cycle().take(3_000_000).collect();
    let (bytes, _) = written(&path, std::slice::from_ref(&record));
    assert_eq!(scan(&bytes), Ok((vec![record], false)));
}

/// The form is not to change by accident: journals outlive the program that wrote them.
#[test]
fn a_file_has_these_bytes() {
    let (_folder, path) = folder();
    let (bytes, _) = written(&path, &[b"row".to_vec()]);
    // Checksums by Python's `zlib.crc32`.
    let expected = [
        &b"ordidfjl\x01\0\0\0"[..],
        &0x5e47_4b5a_u32.to_le_bytes(),
        b"\x03\0\0\0",
        &0x33f1_70f2_u32.to_le_bytes(),
        b"row",
        &0x8430_f6db_u32.to_le_bytes(),
        b"\n",
    ];
    assert_eq!(bytes, expected.concat());
}

#[test]
fn a_file_cut_at_any_byte_has_the_records_that_are_whole() {
    let (_folder, path) = folder();
    let records = records();
    let (bytes, ends) = written(&path, &records);
    for length in 0..=bytes.len() {
        let whole = ends.iter().filter(|end| **end <= length).count();
        let torn = length != 0 && length != 16 && !ends.contains(&length);
        let expected = Ok((records[..whole].to_vec(), torn));
        assert_eq!(scan(&bytes[..length]), expected, "{length} bytes");

        // The same where a crash of the machine left zeros behind.
        let mut longer = bytes[..length].to_vec();
        longer.resize(length + 5_000, 0);
        let expected = Ok((records[..whole].to_vec(), true));
        assert_eq!(scan(&longer), expected, "{length} bytes and zeros");
    }
}

#[test]
fn what_is_torn_is_written_over() {
    let (_folder, path) = folder();
    let records = records();
    let (bytes, ends) = written(&path, &records);
    for length in (0..=bytes.len()).step_by(13) {
        fs::write(&path, &bytes[..length]).unwrap();
        let mut expected = records.clone();
        expected.truncate(ends.iter().filter(|end| **end <= length).count());
        let mut journal = FlushJournal::open(&path).unwrap();
        // Shorter than what is torn, so that its end would stay behind.
        journal.append(b"").unwrap();
        expected.push(Vec::new());
        assert_eq!(read(&mut journal), expected);
        drop(journal);
        assert_eq!(scan(&fs::read(&path).unwrap()), Ok((expected, false)));
    }
}

#[test]
fn a_spoilt_bit_anywhere_is_an_error() {
    let (_folder, path) = folder();
    let (bytes, _) = written(&path, &records());
    for bit in 0..8 * bytes.len() {
        let mut spoilt = bytes.clone();
        spoilt[bit / 8] ^= 1 << (bit % 8);
        assert!(scan(&spoilt).is_err(), "bit {bit}");
    }
    for byte in 0..bytes.len() - 1 {
        let mut spoilt = bytes.clone();
        spoilt.remove(byte);
        // One of several equal bytes can be any of them; what matters is that none goes unnoticed.
        assert!(
            scan(&spoilt).is_err() || scan(&spoilt).unwrap().1,
            "byte {byte}"
        );
    }
    let mut spoilt = bytes;
    spoilt[30] ^= 1;
    fs::write(&path, &spoilt).unwrap();
    let error = FlushJournal::open(&path).unwrap_err();
    assert!(error.is_journal());
    assert_eq!(
        error.to_string(),
        format!(
            "the flush journal {} is damaged at byte 16: what was pending cannot be told; look in the \
             database for what the last flush should have written, then remove the file",
            path.display()
        )
    );
    assert_eq!(fs::read(&path).unwrap(), spoilt, "left as it is");
}

#[test]
fn a_length_that_is_valid_and_wrong_takes_no_memory() {
    let mut bytes = start().to_vec();
    let length = u32::MAX.to_le_bytes();
    bytes.extend(length);
    bytes.extend(crc32fast::hash(&length).to_le_bytes());
    bytes.extend([7; 100]);
    assert_eq!(scan(&bytes), Ok((Vec::new(), true)));
}

#[test]
fn what_is_no_journal_is_left_as_it_is() {
    let (_folder, path) = folder();
    for bytes in [
        &b"x"[..],
        b"ordidfj\0\0\0\0\0\0\0\0\0\0\0\0\0x",
        b"ordidhwm\x01\0\0\0\xb0\x79\xe2\x22\x7f\x01\0\0\0\0\0\0",
        b"SQLite format 3\0and more of it",
    ] {
        fs::write(&path, bytes).unwrap();
        assert!(FlushJournal::open(&path).unwrap_err().is_journal());
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }
    let mut later = start();
    later[8] = 2;
    let sum = crc32fast::hash(&later[..12]);
    later[12..].copy_from_slice(&sum.to_le_bytes());
    fs::write(&path, later).unwrap();
    let error = FlushJournal::open(&path).unwrap_err().to_string();
    let expected = "is of version 2, expected 1: a later ordid-file wrote it";
    assert!(error.ends_with(expected), "{error}");
}

#[test]
fn a_second_open_is_refused_until_the_first_is_dropped() {
    let (_folder, path) = folder();
    let first = FlushJournal::open(&path).unwrap();
    let error = FlushJournal::open(&path).unwrap_err();
    assert!(error.is_journal());
    assert_eq!(
        error.to_string(),
        format!(
            "the flush journal {} is in use: another FlushJournal, here or in another process, has \
             it open; give each a file of its own",
            path.display()
        )
    );
    // A program that another thread starts has the file open for a moment.
    let _started = first.file.try_clone().unwrap();
    drop(first);
    FlushJournal::open(&path).unwrap();
}

#[test]
fn the_error_of_a_visitor_ends_the_reading() {
    let (_folder, path) = folder();
    written(&path, &records());
    let mut journal = FlushJournal::open(&path).unwrap();
    let mut visits = 0;
    let error = journal
        .read(&mut |_| {
            visits += 1;
            Err(Error::journal("enough"))
        })
        .unwrap_err();
    assert_eq!((visits, error.to_string()), (1, "enough".to_owned()));
    assert_eq!(read(&mut journal), records());
}

/// A full disk: `/dev/full` refuses every write.
#[cfg(target_os = "linux")]
#[test]
fn what_cannot_be_written_is_told() {
    let (_folder, path) = folder();
    let mut journal = FlushJournal::open(&path).unwrap();
    journal.append(b"before").unwrap();
    let file = fs::File::options().read(true).write(true).open("/dev/full");
    let file = std::mem::replace(&mut *journal.file, file.unwrap());
    let error = journal.append(b"lost").unwrap_err();
    assert!(error.is_journal());
    assert!(error.to_string().contains("cannot be written: "), "{error}");
    // With room again it goes on, over what the failed write may have left.
    *journal.file = file;
    journal.file.seek(SeekFrom::End(0)).unwrap();
    journal.file.write_all(b"half a record").unwrap();
    journal.append(b"after").unwrap();
    drop(journal);
    let mut journal = FlushJournal::open(&path).unwrap();
    assert_eq!(read(&mut journal), [&b"before"[..], b"after"]);
}

#[cfg(unix)]
#[test]
fn only_the_owner_can_read_a_new_file() {
    use std::os::unix::fs::PermissionsExt;

    let (_folder, path) = folder();
    drop(FlushJournal::open(&path).unwrap());
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}
