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

/// Keys of one length.
pub(crate) struct ExternalSort {
    /// Bytes of a run in memory.
    memory: usize,
    length: usize,
    run: Vec<u8>,
    runs: Vec<File>,
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
            // Sorting takes a reference and a copy of each key.
            memory: memory / 3,
            length: 0,
            run: Vec::new(),
            runs: Vec::new(),
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
        if self.run.len() + key.len() > self.memory {
            self.spill()?;
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
        self.sort();
        self.rises = true;
        let written = || -> io::Result<File> {
            let mut file = BufWriter::new(tempfile::tempfile()?);
            file.write_all(&self.run)?;
            let mut file = file.into_inner()?;
            file.rewind()?;
            Ok(file)
        };
        self.runs.push(written().map_err(cannot)?);
        self.run.clear();
        Ok(())
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
        let files = self.runs.drain(..);
        let files =
            files.map(|file| Box::new(BufReader::with_capacity(1 << 16, file)) as Box<dyn Read>);
        let mut readers: Vec<Box<dyn Read>> = files.chain([in_memory]).collect();
        let mut heap = BinaryHeap::new();
        for (number, reader) in readers.iter_mut().enumerate() {
            if let Some(key) = read(reader, self.length)? {
                heap.push(Reverse((key, number)));
            }
        }
        let (mut repeated, mut before) = (0, Vec::new());
        while let Some(Reverse((key, number))) = heap.pop() {
            repeated += u64::from(key == before);
            if let Some(next) = read(&mut readers[number], self.length)? {
                heap.push(Reverse((next, number)));
            }
            before = key;
        }
        Ok(repeated)
    }
}

fn read(reader: &mut impl Read, length: usize) -> Result<Option<Vec<u8>>, Failure> {
    let mut key = vec![0; length];
    match reader.read_exact(&mut key) {
        Ok(()) => Ok(Some(key)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(cannot(error)),
    }
}

fn cannot(error: io::Error) -> Failure {
    Failure::could_not(format_args!("a temporary file cannot be used: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts repeated keys with room for three of them.
    fn repeated(keys: &[u64]) -> u64 {
        let mut sort = ExternalSort::new(3 * 3 * 8);
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
