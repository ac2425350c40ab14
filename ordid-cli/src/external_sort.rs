//! How many of more keys than fit into memory come twice: sorted runs in temporary files, merged.
//!
//! The crates that sort outside of memory take items of any type, and bring a build script or a pool of threads for it.
//! Keys of one scheme have one length in a column, so that a run is an array of bytes.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    fs::File,
    io::{self, BufReader, BufWriter, Read, Seek as _, Write as _},
};

use crate::failure::Failure;

/// So many files become one, so that any number of keys needs few files and their buffers.
const MERGED: usize = 64;

/// The bytes of a file that are in memory while it is merged.
const BUFFER: usize = 1 << 16;

/// Keys of one length.
pub(crate) struct ExternalSort {
    /// Bytes of memory.
    memory: usize,
    length: usize,
    run: Vec<u8>,
    /// Files of sorted keys: of runs, of `MERGED` runs, and so on.
    levels: Vec<Vec<File>>,
    /// The runs before the first key that did not rise, one after the other.
    rising: Option<BufWriter<File>>,
    last: Vec<u8>,
    /// Whether no key was below or equal to the one before in this run.
    rises: bool,
    /// The same of all runs.
    all_rise: bool,
}

impl ExternalSort {
    /// Takes so many bytes of memory.
    pub(crate) fn new(memory: usize) -> Self {
        Self {
            memory,
            length: 0,
            run: Vec::new(),
            levels: Vec::new(),
            rising: None,
            last: Vec::new(),
            rises: true,
            all_rise: true,
        }
    }

    /// Adds a key, which is as long as the others.
    ///
    /// # Errors
    ///
    /// The temporary file cannot be written.
    pub(crate) fn add(&mut self, key: &[u8]) -> Result<(), Failure> {
        self.length = key.len();
        // Sorting takes a reference and a copy of each key.
        let keys = self.memory / (2 * key.len() + size_of::<&[u8]>());
        let room = keys.max(1) * key.len();
        if self.run.len() + key.len() > room {
            self.spill()?;
        }
        if self.run.len() + key.len() > self.run.capacity() {
            // Twice as much, but no more than a run has.
            let capacity = (2 * self.run.capacity()).clamp(room.min(BUFFER), room);
            self.run.reserve_exact(capacity - self.run.len());
        }
        let rises = self.last.as_slice() < key || self.last.is_empty();
        self.rises &= rises;
        self.all_rise &= rises;
        self.last.clear();
        self.last.extend_from_slice(key);
        self.run.extend_from_slice(key);
        Ok(())
    }

    /// Sorts the run in memory.
    fn sort(&mut self) {
        if self.rises || self.length == 0 {
            return;
        }
        let mut keys: Vec<&[u8]> = self.run.chunks_exact(self.length).collect();
        keys.sort_unstable();
        self.run = keys.concat();
    }

    /// Writes the run into a file.
    fn spill(&mut self) -> Result<(), Failure> {
        if self.all_rise {
            let file = match self.rising.take() {
                Some(file) => Ok(file),
                None => tempfile::tempfile().map(|file| BufWriter::with_capacity(BUFFER, file)),
            };
            let file = self.rising.insert(file.map_err(cannot)?);
            file.write_all(&self.run).map_err(cannot)?;
            self.run.clear();
            return Ok(());
        }
        self.sort();
        self.rises = true;
        let written = written(|file| file.write_all(&self.run)).map_err(cannot)?;
        self.run.clear();
        self.keep(written, 0)
    }

    /// Keeps a file of a level; a level that is full becomes one file of the next.
    fn keep(&mut self, mut file: File, mut level: usize) -> Result<(), Failure> {
        loop {
            if self.levels.len() == level {
                self.levels.push(Vec::new());
            }
            let files = &mut self.levels[level];
            files.push(file);
            if files.len() < MERGED {
                return Ok(());
            }
            let readers = files.drain(..).map(buffered).collect();
            let mut merge = Merge::new(readers, self.length).map_err(cannot)?;
            file = written(|file| {
                while let Some(key) = merge.next()? {
                    file.write_all(&key)?;
                }
                Ok(())
            })
            .map_err(cannot)?;
            level += 1;
        }
    }

    /// Returns how many keys equal one before.
    ///
    /// # Errors
    ///
    /// The temporary files cannot be read.
    pub(crate) fn repeated(mut self) -> Result<u64, Failure> {
        if self.all_rise {
            return Ok(0);
        }
        self.sort();
        let in_memory: Box<dyn Read> = Box::new(io::Cursor::new(std::mem::take(&mut self.run)));
        let rising = self.rising.take().map(rewound).transpose();
        let files = self.levels.drain(..).flatten();
        let files = files.chain(rising.map_err(cannot)?).map(buffered);
        let readers = files.chain([in_memory]).collect();
        let mut merge = Merge::new(readers, self.length).map_err(cannot)?;
        let (mut repeated, mut before) = (0, Vec::new());
        while let Some(key) = merge.next().map_err(cannot)? {
            repeated += u64::from(key == before);
            before = key;
        }
        Ok(repeated)
    }
}

/// Writes a temporary file, and returns it at its begin.
fn written(write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<File> {
    let mut file = BufWriter::with_capacity(BUFFER, tempfile::tempfile()?);
    write(&mut file)?;
    rewound(file)
}

fn rewound(file: BufWriter<File>) -> io::Result<File> {
    let mut file = file.into_inner()?;
    file.rewind()?;
    Ok(file)
}

fn buffered(file: File) -> Box<dyn Read> {
    Box::new(BufReader::with_capacity(BUFFER, file))
}

/// The keys of several sorted readers, sorted.
struct Merge {
    readers: Vec<Box<dyn Read>>,
    length: usize,
    heap: BinaryHeap<Reverse<(Vec<u8>, usize)>>,
}

impl Merge {
    fn new(readers: Vec<Box<dyn Read>>, length: usize) -> io::Result<Self> {
        let mut merge = Self {
            heap: BinaryHeap::with_capacity(readers.len()),
            readers,
            length,
        };
        for number in 0..merge.readers.len() {
            merge.read(number)?;
        }
        Ok(merge)
    }

    fn read(&mut self, number: usize) -> io::Result<()> {
        let mut key = vec![0; self.length];
        match self.readers[number].read_exact(&mut key) {
            Ok(()) => self.heap.push(Reverse((key, number))),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        let Some(Reverse((key, number))) = self.heap.pop() else {
            return Ok(None);
        };
        self.read(number)?;
        Ok(Some(key))
    }
}

fn cannot(error: io::Error) -> Failure {
    Failure::could_not(format_args!("a temporary file cannot be used: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The memory that a key of eight bytes takes: twice its own, and a reference.
    const KEY: usize = 2 * 8 + 16;

    /// Counts repeated keys with room for three of them.
    fn repeated(keys: &[u64]) -> u64 {
        let mut sort = ExternalSort::new(3 * KEY);
        for key in keys {
            sort.add(&key.to_be_bytes()).unwrap();
        }
        sort.repeated().unwrap()
    }

    #[test]
    fn keys_that_come_twice_are_counted_over_all_runs() {
        assert_eq!(repeated(&[]), 0);
        assert_eq!(repeated(&[1, 2, 3, 4, 5, 6, 7, 8]), 0);
        assert_eq!(repeated(&[8, 7, 6, 5, 4, 3, 2, 1]), 0);
        assert_eq!(repeated(&[1, 1]), 1);
        assert_eq!(repeated(&[1, 2, 3, 4, 5, 6, 1]), 1);
        assert_eq!(repeated(&[0, 5, 9, 0, 5, 9, 0, 4, 5]), 5);
    }

    #[test]
    fn many_runs_need_few_files() {
        // 500 runs of three keys: rising, falling, and rising first.
        let rising: Vec<u64> = (0..1_500).collect();
        let falling: Vec<u64> = rising.iter().rev().copied().collect();
        let both: Vec<u64> = rising.iter().chain(&falling).copied().collect();
        for (keys, expected) in [(&rising, 0), (&falling, 0), (&both, 1_500)] {
            let mut sort = ExternalSort::new(3 * KEY);
            for key in keys {
                sort.add(&key.to_be_bytes()).unwrap();
                let files: usize = sort.levels.iter().map(Vec::len).sum();
                assert!(files < 2 * MERGED, "{files} files");
            }
            assert_eq!(sort.repeated().unwrap(), expected);
        }
    }

    #[test]
    fn any_keys_are_counted_as_a_set_counts_them() {
        let mut state = 7_u64;
        for length in 0..60 {
            let keys: Vec<u64> = (0..length)
                .map(|_| {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    state >> 59
                })
                .collect();
            let distinct: std::collections::HashSet<&u64> = keys.iter().collect();
            assert_eq!(
                repeated(&keys),
                (keys.len() - distinct.len()) as u64,
                "{keys:?}"
            );
        }
    }
}
