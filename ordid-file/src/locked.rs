//! Files that one process has to itself.

use std::{
    fs::{File, TryLockError},
    io,
    ops::{Deref, DerefMut},
    path::Path,
};

use ordid_core::__private::{Process, process};

/// An open file that stays locked until this value is dropped.
#[derive(Debug)]
pub(crate) struct LockedFile {
    file: File,
    process: Process,
}

impl LockedFile {
    /// Returns an error in a fork of the process that opened the file, as [`check_process`] does.
    pub(crate) fn check_process(&self) -> Result<(), String> {
        check_process(self.process)
    }
}

impl Deref for LockedFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.file
    }
}

impl DerefMut for LockedFile {
    fn deref_mut(&mut self) -> &mut File {
        &mut self.file
    }
}

impl Drop for LockedFile {
    /// Unlocks the file. Closing it is not enough: a child process has the file open from its fork to its `exec`, so a
    /// program that starts another one would find the file locked for a moment. A fork does not unlock the file,
    /// because its parent still uses it.
    fn drop(&mut self) {
        if self.check_process().is_ok() {
            // If this fails, the lock ends when the last process that has the file open closes it.
            let _ = self.file.unlock();
        }
    }
}

/// Opens or creates the file, locks it, and makes its contents and its name durable. The message about a file that is in use names
/// the type `owner`. On Unix, only the file's owner can read and write a new file, whatever the process's umask. Others
/// must not read its rows, and could stop the program by locking it.
///
/// An error says what is wrong with the file. The caller puts the path in front of it.
pub(crate) fn open(path: &Path, owner: &str) -> Result<LockedFile, String> {
    try_open(path)?.ok_or_else(|| {
        format!(
            "is in use: another {owner}, here or in another process, has it open; give each a file \
             of its own"
        )
    })
}

/// Does the same as [`open`], but returns `None` if somebody else has locked the file.
pub(crate) fn try_open(path: &Path) -> Result<Option<LockedFile>, String> {
    let cannot = |what: &str, error: &io::Error| format!("cannot be {what}: {error}");
    let mut options = File::options();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(|error| cannot("opened", &error))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(cannot("locked", &error)),
    }
    let file = LockedFile {
        file,
        process: process(),
    };
    // A run that was killed may have left what is read here and yet not on the disk; to go on from
    // it would put at risk what is.
    file.sync_data()
        .and_then(|()| sync_folder_of(path))
        .map_err(|error| cannot("synced", &error))?;
    Ok(Some(file))
}

/// Refuses the use of a file that was open when the process was forked: the child would write over
/// what the parent writes.
pub(crate) fn check_process(opened_by: Process) -> Result<(), String> {
    let this = process();
    if this == opened_by {
        return Ok(());
    }
    Err(format!(
        "was opened by process {opened_by} and this is its fork {this}: open another file in the \
         child"
    ))
}

/// Makes a folder and those above it that are missing. Their names are durable, too: what is synced in a folder is lost with
/// the folder's name.
pub(crate) fn make_folder(folder: &Path) -> io::Result<()> {
    let is_missing = |it: &&Path| !it.as_os_str().is_empty() && !it.exists();
    let missing: Vec<&Path> = folder.ancestors().take_while(is_missing).collect();
    std::fs::create_dir_all(folder)?;
    missing.into_iter().try_for_each(sync_folder_of)
}

/// Makes the file's name durable, not only its contents.
#[cfg(unix)]
fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    File::open(folder)?.sync_all()
}

/// Elsewhere a folder cannot be opened as a file, and the file system's journal has to do.
#[cfg(not(unix))]
fn sync_folder_of(_: &Path) -> io::Result<()> {
    Ok(())
}
