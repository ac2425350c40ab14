//! The file.
//!
//! ```text
//! offset 0     slot 0: a record
//! offset 4096  slot 1: a record
//! ```
//!
//! The newest valid record is the mark; the next one goes to the other slot. So a write that is
//! torn harms only a record that is older than the mark, or was never acknowledged. The slots are
//! in different pages, hence in different sectors too: a device writes those whole or not at all.
//!
//! An empty file is a new one. Nothing is written to it before the first mark, so a crash in the
//! very first write can leave a file without a valid record. That is an error like any other damage,
//! since the two cannot be told apart.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use ordid_core::{Error, clock::Timestamp, high_water::HighWaterMark};

use crate::{
    locked,
    record::{self, Slot},
};

/// Bytes from slot to slot: a page.
const SLOT_BYTES: u16 = 4096;

/// A high-water mark in a file of its own.
///
/// The file is locked while this lives: a second one on the same file, in this process or another,
/// is an error. So is the use of this one in a forked child, which would write over its parent's
/// marks; as long as such a child lives, it holds on to the lock.
///
/// Do not move or delete the file while it is open. It has 4,120 bytes at most.
#[derive(Debug)]
pub struct MarkFile {
    path: PathBuf,
    process: u32,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: File,
    mark: Option<Timestamp>,
    /// The slot that does not hold the mark.
    next_slot: u16,
}

impl MarkFile {
    /// Opens or makes the file, locks it, and reads the mark.
    ///
    /// # Errors
    ///
    /// If the file cannot be opened, is in use by another `MarkFile`, or is damaged: it is not
    /// empty, and none of its records is valid. The error
    /// [`is_high_water`](Error::is_high_water) and names the path.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let mut file = locked::open(path, "MarkFile", &mut File::options())
            .map_err(|problem| mark_error(path, &problem))?;
        let mut bytes = Vec::new();
        // No further than the slots: it may be the wrong file, and large.
        (&mut file)
            .take(u64::from(SLOT_BYTES) * 2)
            .read_to_end(&mut bytes)
            .map_err(|error| mark_error(path, &format!("cannot be read: {error}")))?;
        let (mark, next_slot) = newest(&bytes).map_err(|problem| mark_error(path, &problem))?;
        Ok(Self {
            path: path.to_owned(),
            process: std::process::id(),
            state: Mutex::new(State {
                file,
                mark,
                next_slot,
            }),
        })
    }

    /// Returns the path that it was opened with.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn state(&self) -> Result<MutexGuard<'_, State>, Error> {
        locked::check_process(self.process).map_err(|problem| mark_error(&self.path, &problem))?;
        // The state changes by single assignments: a panic leaves none half done.
        Ok(self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl HighWaterMark for MarkFile {
    fn load(&self) -> Result<Option<Timestamp>, Error> {
        Ok(self.state()?.mark)
    }

    fn raise(&self, mark: Timestamp) -> Result<(), Error> {
        let mut state = self.state()?;
        if let Some(present) = state.mark
            && mark < present
        {
            let (present, mark) = (present.as_unix_millis(), mark.as_unix_millis());
            let problem = format!("is at {present} ms and cannot go back to {mark} ms");
            return Err(mark_error(&self.path, &problem));
        }
        state
            .write(mark)
            .map_err(|error| mark_error(&self.path, &format!("cannot be written: {error}")))
    }
}

impl State {
    /// Writes the mark and waits for the disk. After a failure the next mark goes to the same slot:
    /// the other is the only one that is known to be good.
    fn write(&mut self, mark: Timestamp) -> io::Result<()> {
        let offset = u64::from(self.next_slot) * u64::from(SLOT_BYTES);
        self.file.seek(SeekFrom::Start(offset))?;
        self.file.write_all(&record::encode(mark))?;
        self.file.sync_data()?;
        self.next_slot = 1 - self.next_slot;
        self.mark = Some(mark);
        Ok(())
    }
}

/// Returns the newest mark in the bytes of a file, and the slot for the next one.
fn newest(bytes: &[u8]) -> Result<(Option<Timestamp>, u16), String> {
    if bytes.is_empty() {
        return Ok((None, 0));
    }
    let slot = |number: u16| {
        let start = usize::from(number) * usize::from(SLOT_BYTES);
        let rest = bytes.get(start..).unwrap_or_default();
        match record::decode(&rest[..rest.len().min(record::LENGTH)]) {
            Slot::Mark(mark) => Ok(Some(mark)),
            Slot::Invalid => Ok(None),
            Slot::OtherVersion(version) => Err(format!(
                "is of version {version}, expected {}: a later ordid-file wrote it",
                record::VERSION
            )),
        }
    };
    // `None` is less than any mark.
    let (first, second) = (slot(0)?, slot(1)?);
    if first.max(second).is_none() {
        return Err(
            "is damaged: no valid record in it; make a new one and raise it above the newest key"
                .to_owned(),
        );
    }
    Ok(if first > second {
        (first, 1)
    } else {
        (second, 0)
    })
}

fn mark_error(path: &Path, problem: &str) -> Error {
    Error::high_water(format!("the high-water mark {} {problem}", path.display()))
}

#[cfg(test)]
mod tests;
