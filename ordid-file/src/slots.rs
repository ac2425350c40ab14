//! A file with two slots.
//!
//! ```text
//! offset 0     slot 0: a record
//! offset 4096  slot 1: a record
//! ```
//!
//! The newest valid record is what the file keeps; the next one goes to the other slot. So a write that is
//! torn harms only a record that is older, or was never acknowledged. The slots are
//! in different pages, hence in different sectors too: a device writes those whole or not at all.
//!
//! An empty file is a new one. Nothing is written to it before the first record, so a crash in the
//! very first write can leave a file without a valid record. That is an error like any other damage,
//! since the two cannot be told apart.

use std::io::{self, Read, Seek, SeekFrom, Write};

use crate::{
    locked::LockedFile,
    record::{self, Record, Slot},
};

/// Bytes from slot to slot: a page.
pub(crate) const SLOT_BYTES: u16 = 4096;

/// An open file, and what it keeps.
#[derive(Debug)]
pub(crate) struct Slots<R> {
    pub(crate) file: LockedFile,
    pub(crate) newest: Option<R>,
    /// The slot that does not hold it.
    next: u16,
}

impl<R: Record> Slots<R> {
    /// Reads what the file keeps.
    ///
    /// An error says what is wrong with the file, to be put behind its path.
    pub(crate) fn read(mut file: LockedFile) -> Result<Self, String> {
        let mut bytes = Vec::new();
        // No further than the slots: it may be the wrong file, and large.
        (&mut *file)
            .take(u64::from(SLOT_BYTES) * 2)
            .read_to_end(&mut bytes)
            .map_err(|error| format!("cannot be read: {error}"))?;
        let (newest, next) = newest(&bytes)?;
        Ok(Self { file, newest, next })
    }

    /// Writes a record and waits for the disk. After a failure the next one goes to the same slot:
    /// the other is the only one that is known to be good.
    pub(crate) fn write(&mut self, record: R) -> io::Result<()> {
        let offset = u64::from(self.next) * u64::from(SLOT_BYTES);
        self.file.seek(SeekFrom::Start(offset))?;
        self.file.write_all(&record::encode(record))?;
        self.file.sync_data()?;
        self.next = 1 - self.next;
        self.newest = Some(record);
        Ok(())
    }
}

/// Returns the newest record in the bytes of a file, and the slot for the next one.
pub(crate) fn newest<R: Record>(bytes: &[u8]) -> Result<(Option<R>, u16), String> {
    if bytes.is_empty() {
        return Ok((None, 0));
    }
    let slot = |number: u16| {
        let start = usize::from(number) * usize::from(SLOT_BYTES);
        let rest = bytes.get(start..).unwrap_or_default();
        match record::decode(&rest[..rest.len().min(record::length::<R>())]) {
            Slot::Whole(record) => Ok(Some(record)),
            Slot::Invalid => Ok(None),
            Slot::OtherVersion(version) => Err(format!(
                "is of version {version}, expected {}: a later ordid-file wrote it",
                record::VERSION
            )),
        }
    };
    // `None` is less than any record.
    let (first, second) = (slot(0)?, slot(1)?);
    if first.max(second).is_none() {
        return Err(format!("is damaged: no valid record in it; {}", R::ADVICE));
    }
    Ok(if first > second {
        (first, 1)
    } else {
        (second, 0)
    })
}
