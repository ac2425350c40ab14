//! The mark of a generator, in a file of [two slots](crate::slots).

use std::{
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use ordid_core::{
    __private::{Process, process},
    Error,
    clock::Timestamp,
    high_water::HighWaterMark,
};

use crate::{locked, slots::Slots};

/// A high-water mark in a file of its own.
///
/// The file is locked while this value lives. Opening it a second time, in this process or another, is an error.
/// Using this value in a forked child is an error, too, because the child would write over its parent's marks. If
/// this process is killed, such a child keeps the lock as long as it lives.
///
/// Do not move or delete the file while it is open. It has 4,120 bytes at most.
#[derive(Debug)]
pub struct MarkFile {
    path: PathBuf,
    process: Process,
    state: Mutex<Slots<Timestamp>>,
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
        let state = locked::open(path, "MarkFile")
            .and_then(Slots::read)
            .map_err(|problem| mark_error(path, &problem))?;
        Ok(Self {
            path: path.to_owned(),
            process: process(),
            state: Mutex::new(state),
        })
    }

    /// Returns the path that it was opened with.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn state(&self) -> Result<MutexGuard<'_, Slots<Timestamp>>, Error> {
        locked::check_process(self.process).map_err(|problem| mark_error(&self.path, &problem))?;
        // The state changes by single assignments: a panic leaves none half done.
        Ok(self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl HighWaterMark for MarkFile {
    fn load(&self) -> Result<Option<Timestamp>, Error> {
        Ok(self.state()?.newest)
    }

    fn raise(&self, mark: Timestamp) -> Result<(), Error> {
        let mut state = self.state()?;
        if let Some(present) = state.newest
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

fn mark_error(path: &Path, problem: &str) -> Error {
    Error::high_water(format!("the high-water mark {} {problem}", path.display()))
}

#[cfg(test)]
mod tests;
