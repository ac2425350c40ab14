//! The file of a journal.
//!
//! ```text
//! offset 0   ordidfjl | version | CRC-32 of these 12 bytes                   numbers: little-endian
//! offset 16  length | CRC-32 of the length | record | CRC-32 of the record | LF
//!            and so on, to the end of the file
//! ```
//!
//! An empty file has no record. A write that was cut off, by a kill or for want of space, leaves the
//! first part of a record at the end of the file; some file systems have zeros behind it after a
//! crash of the machine. That is a *torn tail*: what it should have been was never acknowledged, so it
//! is ignored, and the next record is written over it. Anything else that is not valid is damage, and
//! an error: the length has a checksum of its own, so that a spoilt one is not taken for a record cut
//! off, and a record ends with a byte that is not zero, so that it is known to be all there.

use std::{
    fmt,
    io::{self, BufReader, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use ordid_core::Error;
use ordid_sql::Journal;

use crate::locked::{self, LockedFile};

const MAGIC: [u8; 8] = *b"ordidfjl";
/// The form described above.
const VERSION: u32 = 1;
/// Bytes before the first record.
const START: u64 = 16;
/// Bytes before a record: its length and the length's checksum.
const HEAD: usize = 8;
/// Bytes behind a record: its checksum and the line feed.
const FOOT: usize = 5;
const END: u8 = b'\n';

/// The journal of units of work in a file of its own: what a killed process has left of a flush is
/// there when the next one opens it.
///
/// Records are durable when [`sync`](Journal::sync) returns (`fdatasync`). The file is empty whenever
/// nothing is pending; otherwise it has the rows as they are, in plain form, so on Unix a new file can
/// be read by its owner only.
///
/// The file is locked while this lives: a second one on the same file, in this process or another, is
/// an error. The use of this journal in a forked child is an error, too. If this process is killed, such a child keeps
/// the lock as long as it lives. A journal takes one unit of work at a time, so units of work that are flushed at the
/// same time need different files. Do not move or delete the file while it is open.
///
/// # Example: over a restart
///
/// ```
/// use ordid_file::FlushJournal;
/// use ordid_sql::Journal;
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("orders.journal");
/// let mut journal = FlushJournal::open(&path)?;
/// journal.append(b"rows")?;
/// journal.sync()?; // durable from here on
/// drop(journal);
///
/// let mut journal = FlushJournal::open(&path)?;
/// let mut pending = Vec::new();
/// journal.read(&mut |record| Ok(pending.push(record.to_vec())))?;
/// assert_eq!(pending, [b"rows"]);
/// journal.clear()?;
/// assert_eq!(std::fs::metadata(&path)?.len(), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct FlushJournal {
    path: PathBuf,
    file: LockedFile,
    /// Where the next record goes; 0 before the first.
    end: u64,
    /// Whether the file may be longer than that.
    torn: bool,
    /// Whether the system has failed to make records durable: asked again, it may say that all is
    /// well although it has given them up.
    lost: bool,
    frame: Vec<u8>,
}

impl FlushJournal {
    /// Opens or makes the file, locks it, and checks what is in it.
    ///
    /// # Errors
    ///
    /// If the file cannot be opened, is in use by another `FlushJournal`, is damaged, or is none:
    /// then it is left as it is. The error [`is_journal`](Error::is_journal) and names the path.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let file =
            locked::open(path, "FlushJournal").map_err(|problem| journal_error(path, &problem))?;
        let mut journal = Self {
            path: path.to_owned(),
            file,
            end: 0,
            torn: false,
            lost: false,
            frame: Vec::new(),
        };
        (journal.end, journal.torn) = journal.scan(&mut |_| Ok(()))?;
        Ok(journal)
    }

    /// Returns the path that it was opened with.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.end <= START
    }

    /// Shows all records, and returns where they end and whether there is more behind.
    fn scan(
        &mut self,
        visit: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<(u64, bool), Error> {
        let path = &self.path;
        let cannot = |error: io::Error| journal_error(path, &format!("cannot be read: {error}"));
        let length = self.file.metadata().map_err(cannot)?.len();
        self.file.seek(SeekFrom::Start(0)).map_err(cannot)?;
        let mut records = Records {
            // No further than it was long: nobody else writes, and a device has no end.
            file: BufReader::new((&mut *self.file).take(length)),
            position: 0,
            length,
        };
        let mut record = Vec::new();
        loop {
            match records.next(&mut record).map_err(cannot)? {
                Next::Record => visit(&record)?,
                Next::End => return Ok((records.position, false)),
                Next::Torn => return Ok((records.position, true)),
                Next::Other(problem) => return Err(journal_error(path, &problem)),
            }
        }
    }

    fn write(&mut self, record: &[u8]) -> io::Result<()> {
        let length = u32::try_from(record.len())
            .map_err(|_| io::Error::other("the record has more than 4 GiB"))?
            .to_le_bytes();
        let frame = &mut self.frame;
        frame.clear();
        if self.end == 0 {
            frame.extend(start());
        }
        frame.extend(length);
        frame.extend(crc32fast::hash(&length).to_le_bytes());
        frame.extend(record);
        frame.extend(crc32fast::hash(record).to_le_bytes());
        frame.push(END);
        if self.torn {
            self.file.set_len(self.end)?;
        }
        self.torn = true;
        self.file.seek(SeekFrom::Start(self.end))?;
        self.file.write_all(frame)?;
        self.torn = false;
        self.end += frame.len() as u64;
        Ok(())
    }

    fn check(&self) -> Result<(), Error> {
        self.file
            .check_process()
            .map_err(|problem| self.error(&problem))?;
        if self.lost {
            return Err(self.error(
                "may have lost what was to be made durable; open it anew to see what is there",
            ));
        }
        Ok(())
    }

    fn error(&self, problem: &str) -> Error {
        journal_error(&self.path, problem)
    }
}

impl Journal for FlushJournal {
    fn append(&mut self, record: &[u8]) -> Result<(), Error> {
        self.check()?;
        self.write(record)
            .map_err(|error| self.error(&format!("cannot be written: {error}")))
    }

    fn sync(&mut self) -> Result<(), Error> {
        self.check()?;
        self.file.sync_data().map_err(|error| {
            self.lost = true;
            self.error(&format!("cannot be synced: {error}"))
        })
    }

    fn read(&mut self, visit: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        self.check()?;
        self.scan(visit).map(drop)
    }

    fn clear(&mut self) -> Result<(), Error> {
        self.check()?;
        if self.end == 0 && !self.torn {
            return Ok(());
        }
        let cut = self.file.set_len(0);
        cut.map_err(|error| self.error(&format!("cannot be emptied: {error}")))?;
        (self.end, self.torn) = (0, false);
        self.sync()
    }
}

impl fmt::Debug for FlushJournal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlushJournal")
            .field("path", &self.path)
            .field("bytes", &self.end)
            .finish_non_exhaustive()
    }
}

/// What comes next in a file.
enum Next {
    Record,
    End,
    /// What a write that was cut off leaves; it is ignored.
    Torn,
    /// Damage, or another file.
    Other(String),
}

/// The records of a file, one after the other.
struct Records<R> {
    file: R,
    /// The end of the last valid record.
    position: u64,
    length: u64,
}

impl<R: Read> Records<R> {
    fn next(&mut self, record: &mut Vec<u8>) -> io::Result<Next> {
        if self.position == 0 {
            match self.start()? {
                Next::Record => self.position = START,
                other => return Ok(other),
            }
        }
        let mut head = [0; HEAD];
        let read = self.fill(&mut head)?;
        if read == 0 {
            return Ok(Next::End);
        }
        let (length, sum) = head.split_at(4);
        if read < HEAD || sum != crc32fast::hash(length).to_le_bytes() {
            return self.torn_or_damaged(&head[..read], HEAD);
        }
        let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
        let length = usize::try_from(length).map_err(io::Error::other)?;
        // A length that is valid and yet wrong must not take all memory.
        let left = self.length - self.position;
        let read = u64::try_from(length + FOOT)
            .map_err(io::Error::other)?
            .min(left);
        record.clear();
        (&mut self.file).take(read).read_to_end(record)?;
        if let Some((bytes, foot)) = record.split_at_checked(length)
            && let [sum @ .., END] = foot
            && *sum == crc32fast::hash(bytes).to_le_bytes()
        {
            record.truncate(length);
            self.position += (HEAD + length + FOOT) as u64;
            return Ok(Next::Record);
        }
        let found = std::mem::take(record);
        self.torn_or_damaged(&found, length + FOOT)
    }

    /// Reads what is before the first record.
    fn start(&mut self) -> io::Result<Next> {
        const AT_START: usize = 16;
        let mut bytes = [0; AT_START];
        let read = self.fill(&mut bytes)?;
        let expected = start();
        if read == 0 {
            return Ok(Next::End);
        }
        if bytes == expected {
            return Ok(Next::Record);
        }
        let (version, sum) = bytes.split_at(12);
        if version.starts_with(&MAGIC) && sum == crc32fast::hash(version).to_le_bytes() {
            let version = u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]);
            return Ok(Next::Other(format!(
                "is of version {version}, expected {VERSION}: a later ordid-file wrote it"
            )));
        }
        if !expected.starts_with(without_zeros(&bytes[..read])) {
            return Ok(Next::Other(
                "is no flush journal; it is left as it is".to_owned(),
            ));
        }
        self.torn_or_damaged(&bytes[..read], AT_START)
    }

    /// Judges what is not valid: the bytes found, of so many that belong together, and the rest of
    /// the file.
    fn torn_or_damaged(&mut self, found: &[u8], expected: usize) -> io::Result<Next> {
        let torn = without_zeros(found).len() < expected && self.only_zeros_follow()?;
        Ok(if torn {
            Next::Torn
        } else {
            Next::Other(format!(
                "is damaged at byte {}: what was pending cannot be told; look in the database for \
                 what the last flush should have written, then remove the file",
                self.position
            ))
        })
    }

    fn only_zeros_follow(&mut self) -> io::Result<bool> {
        let mut bytes = [0; 4096];
        loop {
            let read = self.fill(&mut bytes)?;
            if bytes[..read].iter().any(|byte| *byte != 0) {
                return Ok(false);
            }
            if read < bytes.len() {
                return Ok(true);
            }
        }
    }

    /// Reads until the buffer is full or the file ends.
    fn fill(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.file.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }
}

fn without_zeros(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte != 0);
    end.map_or(&[], |end| &bytes[..=end])
}

/// What is before the first record.
fn start() -> [u8; 16] {
    let mut start = [0; 16];
    start[..8].copy_from_slice(&MAGIC);
    start[8..12].copy_from_slice(&VERSION.to_le_bytes());
    let sum = crc32fast::hash(&start[..12]);
    start[12..].copy_from_slice(&sum.to_le_bytes());
    start
}

fn journal_error(path: &Path, problem: &str) -> Error {
    Error::journal(format!("the flush journal {} {problem}", path.display()))
}

#[cfg(test)]
mod tests;
