//! The nodes of the processes of one machine.
//!
//! ```text
//! folder/node-0.lease   locked by the process that has node 0
//! folder/node-1.lease   two slots, of which the newest has
//!                       number of writes | epoch | ceiling in ms | the file's inode | when it was made, in ns
//! ```
//!
//! Whoever locks a node's file has the node. The operating system removes the lock when the process ends, however
//! it ends. The ceiling is on the disk before the grant is returned, so the next process that locks the file begins
//! above it.

use std::{
    collections::HashMap,
    fmt,
    fs::{File, Metadata},
    io,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::UNIX_EPOCH,
};

use ordid_core::{
    __private::{Process, process},
    Error,
    clock::{Clock as _, SystemClock, Timestamp},
    coordination::{CoordinationFailure, Grant, LeaseTerms, NodeAllocator},
};

use crate::{locked, record::Record, slots::Slots};

/// Leases nodes to the processes of one machine, with a folder as the store: a
/// [`NodeAllocator`] that needs no server.
///
/// Give each machine nodes of its own (`64..128`): machines do not see each other's folders. A single node
/// (`7..8`) makes a second process fail, a range gives each process its own.
///
/// - **Durable**: a grant's ceiling is on the disk (`fdatasync`) before it is returned. A keeper renews it about three
///   times a window.
/// - **Whole**: two records are written in turn, each with a checksum. A file with no valid record is passed over; if no
///   other node can be taken, it is an error.
/// - **Alone**: a node's file is locked while its grant is held, and until this is dropped or the process ends,
///   `kill -9` included: no time to live is waited for. If the process is killed, a forked child of it keeps the lock as
///   long as it lives. Use in a forked child is an error; it has to open another.
/// - **Original**: a file that was copied, or was deleted and restored from a copy, is refused, since it does not
///   say what was used in between. It is known by its inode (on Unix) and by the time at which it was made (inodes
///   are reused). Three things cannot be noticed: a snapshot of the whole disk or machine, an older content that is
///   written into the file that is there (`cp` does so), and a copy whose file system has neither. Before you
///   restore a folder, delete its lease files, and do not restore them.
///
/// The machine's clock is the store's clock. A process whose own clock is more than
/// [`max_ahead`](LeaseTerms::max_ahead) ahead of it gets an error. If the machine's clock was set back by more than
/// that, calls fail, too, until another node is free or the clock has caught up.
///
/// Put the folder on a local disk: network file systems may grant the lock twice. Do not move or delete the
/// files; where this is noticed, it is an error ([`StateLost`](CoordinationFailure::StateLost)).
///
/// # Example: over a restart, on a clock that stepped back
///
/// ```
/// use std::time::Duration;
/// use ordid_core::{
///     clock::{Clock, SystemClock, Timestamp},
///     coordination::{LeaseTerms, NodeAllocator},
/// };
/// use ordid_file::FileLease;
///
/// # let folder = tempfile::tempdir()?;
/// # let folder = folder.path().join("nodes");
/// let leases = FileLease::open(&folder, LeaseTerms::new(7..8)?)?;
/// let now = SystemClock.now();
/// let grant = leases.acquire(now, None)?;
/// assert_eq!((grant.node(), grant.floor()), (7, now));
/// drop(leases); // or killed
///
/// let leases = FileLease::open(&folder, LeaseTerms::new(7..8)?)?;
/// let earlier = Timestamp::from_unix_millis(now.as_unix_millis() - 2_000)?;
/// assert_eq!(leases.acquire(earlier, None)?.floor(), grant.ceiling());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct FileLease {
    folder: PathBuf,
    terms: LeaseTerms,
    process: Process,
    held: Mutex<HashMap<u64, Slots<Lease>>>,
}

/// What is kept of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Lease {
    /// First: the newest record is the greatest.
    writes: u64,
    epoch: u64,
    ceiling: Timestamp,
    file: Identity,
}

/// Tells a file from a copy of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Identity {
    /// 0 where files have none.
    inode: u64,
    /// When the file was made, in nanoseconds since 1970. 0 where the file system does not keep it.
    born: u64,
}

impl Record for Lease {
    const MAGIC: [u8; 8] = *b"ordidlse";
    const NUMBERS: usize = 5;
    const ADVICE: &'static str =
        "remove it a minute after the last process that had the node has ended";

    fn numbers(&self) -> impl Iterator<Item = u64> {
        let ceiling = self.ceiling.as_unix_millis();
        let Identity { inode, born } = self.file;
        [self.writes, self.epoch, ceiling, inode, born].into_iter()
    }

    fn of(numbers: &[u64]) -> Option<Self> {
        let [writes, epoch, ceiling, inode, born] = <[u64; 5]>::try_from(numbers).ok()?;
        Some(Self {
            writes,
            epoch,
            ceiling: Timestamp::from_unix_millis(ceiling).ok()?,
            file: Identity { inode, born },
        })
    }
}

impl FileLease {
    /// Makes the folder, if it is missing, and takes the terms. Nothing is locked yet.
    ///
    /// # Errors
    ///
    /// If the folder cannot be made: [`Unavailable`](CoordinationFailure::Unavailable).
    pub fn open(folder: impl AsRef<Path>, terms: LeaseTerms) -> Result<Self, Error> {
        let folder = folder.as_ref().to_owned();
        locked::make_folder(&folder).map_err(|error| {
            Error::coordination(
                CoordinationFailure::Unavailable,
                format!("the folder {} cannot be made: {error}", folder.display()),
            )
        })?;
        Ok(Self {
            folder,
            terms,
            process: process(),
            held: Mutex::default(),
        })
    }

    /// Returns the folder that it was opened with.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn path(&self, node: u64) -> PathBuf {
        self.folder.join(format!("node-{node}.lease"))
    }

    fn held(&self) -> Result<MutexGuard<'_, HashMap<u64, Slots<Lease>>>, Error> {
        locked::check_process(self.process).map_err(|problem| {
            let message = format!("the leases of {} {problem}", self.folder.display());
            Error::coordination(CoordinationFailure::Fenced, message)
        })?;
        // Only whole files are put in and taken out.
        Ok(self.held.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Locks and reads a node's file.
    fn lock(&self, node: u64) -> Result<Found, Error> {
        let damaged = |problem: &str| self.error(CoordinationFailure::Mismatch, node, problem);
        let unavailable =
            |problem: String| self.error(CoordinationFailure::Unavailable, node, &problem);
        let path = self.path(node);
        let Some(file) = locked::try_open(&path).map_err(unavailable)? else {
            return Ok(Found::Taken);
        };
        let slots = match Slots::<Lease>::read(file) {
            Ok(slots) => slots,
            Err(problem) => return Ok(Found::Damaged(damaged(&problem))),
        };
        let found = Identity::of(&slots.file).map_err(|error| unavailable(error.to_string()))?;
        if let Some(lease) = slots.newest
            && lease.file != found
        {
            return Err(damaged(
                "is a copy of the file that was written: what was used since is not in it. Remove it when no \
                 process has the node, a minute after the last one had",
            ));
        }
        self.check_in_place(node, &slots.file)?;
        Ok(Found::Free(slots))
    }

    /// Whether the file that is locked is the one that others would lock.
    fn check_in_place(&self, node: u64, file: &File) -> Result<(), Error> {
        let path = self.path(node);
        let named = File::open(&path).and_then(|named| Identity::of(&named));
        match (named, Identity::of(file)) {
            (Ok(named), Ok(locked)) if named == locked => Ok(()),
            _ => Err(self.error(
                CoordinationFailure::StateLost,
                node,
                "was moved, deleted or replaced while it was in use: others may have the node",
            )),
        }
    }

    /// What is kept of a grant that this holds.
    fn kept<'a>(
        &self,
        held: &'a mut HashMap<u64, Slots<Lease>>,
        grant: &Grant,
    ) -> Result<(&'a mut Slots<Lease>, Lease), Error> {
        let node = grant.node();
        let not_held = || {
            let problem = format!("is not held here: {grant} was given back, or is another's");
            self.error(CoordinationFailure::Fenced, node, &problem)
        };
        let slots = held.get_mut(&node).ok_or_else(not_held)?;
        self.check_in_place(node, &slots.file)?;
        let lease = slots.newest.ok_or_else(not_held)?;
        Ok((slots, lease))
    }

    fn write(&self, node: u64, slots: &mut Slots<Lease>, lease: Lease) -> Result<(), Error> {
        slots.write(lease).map_err(|error| {
            let problem = format!("cannot be written: {error}");
            self.error(CoordinationFailure::Unavailable, node, &problem)
        })
    }

    fn error(&self, failure: CoordinationFailure, node: u64, problem: &str) -> Error {
        let path = self.path(node);
        Error::coordination(failure, format!("the lease {} {problem}", path.display()))
    }
}

/// A node's file.
enum Found {
    Free(Slots<Lease>),
    /// Another process has it.
    Taken,
    /// It was never written whole. A copy is something else: it shows that the folder is one, in which other files may be
    /// missing.
    Damaged(Error),
}

impl NodeAllocator for FileLease {
    fn acquire(&self, now: Timestamp, last: Option<Timestamp>) -> Result<Grant, Error> {
        let mut held = self.held()?;
        let mut unusable = None;
        for node in self.terms.nodes() {
            if held.contains_key(&node) {
                continue;
            }
            let mut slots = match self.lock(node)? {
                Found::Free(slots) => slots,
                Found::Taken => continue,
                // Other nodes have files of their own.
                Found::Damaged(error) => {
                    unusable.get_or_insert(error);
                    continue;
                }
            };
            let kept = slots.newest;
            let ceiling = kept.map(|lease| lease.ceiling);
            let range = self
                .terms
                .range(ceiling, now, last, Some(SystemClock.now()));
            let (floor, ceiling) = match range {
                Ok(range) => range,
                // The next one may have a lower ceiling.
                Err(error) if kept.is_some() => {
                    unusable = Some(error);
                    continue;
                }
                Err(error) => return Err(error),
            };
            let file = Identity::of(&slots.file).map_err(|error| {
                self.error(CoordinationFailure::Unavailable, node, &error.to_string())
            })?;
            let lease = Lease {
                writes: kept.map_or(0, |lease| lease.writes) + 1,
                epoch: kept.map_or(0, |lease| lease.epoch) + 1,
                ceiling,
                file,
            };
            self.write(node, &mut slots, lease)?;
            held.insert(node, slots);
            return Grant::new(node, lease.epoch, floor, ceiling);
        }
        Err(unusable.unwrap_or_else(|| {
            let (folder, nodes) = (self.folder.display(), self.terms.nodes());
            Error::coordination(
                CoordinationFailure::NoFreeNode,
                format!(
                    "processes of this machine, or their forked children, have all nodes {nodes:?} of {folder}"
                ),
            )
        }))
    }

    fn renew(&self, grant: &Grant, now: Timestamp) -> Result<Grant, Error> {
        let mut held = self.held()?;
        let (slots, lease) = self.kept(&mut held, grant)?;
        let store_now = Some(SystemClock.now());
        let ceiling = self
            .terms
            .renewed(grant, lease.epoch, lease.ceiling, now, store_now)?;
        let lease = Lease {
            writes: lease.writes + 1,
            ceiling,
            ..lease
        };
        self.write(grant.node(), slots, lease)?;
        Grant::new(grant.node(), grant.epoch(), grant.floor(), ceiling)
    }

    fn release(&self, grant: &Grant, last: Option<Timestamp>) -> Result<(), Error> {
        let mut held = self.held()?;
        let (slots, lease) = self.kept(&mut held, grant)?;
        let ceiling = self
            .terms
            .released(grant, lease.epoch, lease.ceiling, last)?;
        let lease = Lease {
            writes: lease.writes + 1,
            ceiling,
            ..lease
        };
        self.write(grant.node(), slots, lease)?;
        // Dropping the file unlocks it.
        held.remove(&grant.node());
        Ok(())
    }

    fn terms(&self) -> &LeaseTerms {
        &self.terms
    }
}

impl fmt::Debug for FileLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileLease")
            .field("folder", &self.folder)
            .field("terms", &self.terms)
            .finish_non_exhaustive()
    }
}

impl Identity {
    fn of(file: &File) -> io::Result<Self> {
        let found = file.metadata()?;
        let born = found.created().ok();
        let born = born.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        Ok(Self {
            inode: inode_of(&found),
            born: born.map_or(0, |since| {
                u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
            }),
        })
    }
}

#[cfg(unix)]
fn inode_of(found: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(found)
}

#[cfg(not(unix))]
fn inode_of(_: &Metadata) -> u64 {
    0
}

#[cfg(test)]
mod tests;
