//! Streams of keys from threads and processes, merged: that no key comes twice and none comes out
//! of order, found in constant memory.
//!
//! ```text
//! thread or process 0: 1 4 5 9 ..  ─┐
//! thread or process 1: 2 3 8 ..    ─┼─ merge ─> 1 2 3 4 5 6 7 8 9 ..
//! thread or process 2: 6 7 ..      ─┘
//! ```
//!
//! Every stream rises by itself, so the merged one rises strictly exactly if no key is in two of
//! them. Nothing is kept but the first key of each stream and what its channel or pipe holds.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, binary_heap::PeekMut},
    io::{self, BufReader, BufWriter, Read, Write},
    sync::mpsc::sync_channel,
};

use ordid::{KeyType, uuid::Uuid};

use crate::process::{self, Child};

/// Keys that a stream makes and hands over at a time.
const BATCH: usize = 1_000;

/// What a merge has counted. No key came twice, and each stream rose.
#[derive(Debug, PartialEq, Eq)]
pub struct Merged {
    /// All keys.
    pub keys: u64,
    /// Keys that share all but the last 32 bits with the one before: nothing but fresh random bits
    /// keeps the two apart.
    pub shared_counters: u64,
}

/// Merges streams of keys.
///
/// # Errors
///
/// Names the first key that is not above the one before it in its stream, or is in two streams.
pub fn merge<I: Iterator<Item = u128>>(streams: &mut [I]) -> Result<Merged, String> {
    let mut heads: BinaryHeap<_> = streams
        .iter_mut()
        .enumerate()
        .filter_map(|(number, stream)| Some(Reverse((stream.next()?, number))))
        .collect();
    let mut merged = Merged {
        keys: 0,
        shared_counters: 0,
    };
    let mut last = None;
    while let Some(mut head) = heads.peek_mut() {
        let Reverse((key, number)) = *head;
        if let Some(last) = last {
            if key == last {
                return Err(format!("{} comes twice", text(key)));
            }
            merged.shared_counters += u64::from(key >> 32 == last >> 32);
        }
        merged.keys += 1;
        last = Some(key);
        match streams[number].next() {
            Some(next) if next > key => *head = Reverse((next, number)),
            Some(next) => {
                return Err(format!(
                    "stream {number} falls from {} to {}",
                    text(key),
                    text(next)
                ));
            }
            None => {
                PeekMut::pop(head);
            }
        }
    }
    Ok(merged)
}

fn text(key: u128) -> String {
    Uuid::from_u128(key).to_string()
}

/// Makes so many keys and hands them over in batches, made one by one and by `fill` in turn: the
/// two ways through the generator.
///
/// # Errors
///
/// The error of `put`, which ends the stream.
pub fn generate<E>(keys: u64, mut put: impl FnMut(&[Uuid]) -> Result<(), E>) -> Result<(), E> {
    let mut batch = [Uuid::nil(); BATCH];
    let mut left = keys;
    let mut singly = true;
    while left > 0 {
        let count = usize::try_from(left).map_or(BATCH, |left| left.min(BATCH));
        let batch = &mut batch[..count];
        if singly {
            batch.fill_with(Uuid::generate);
        } else {
            Uuid::fill(batch);
        }
        put(batch)?;
        left -= count as u64;
        singly = !singly;
    }
    Ok(())
}

/// Merges the keys of threads of this process.
///
/// # Errors
///
/// As [`merge`].
pub fn from_threads(threads: usize, keys_each: u64) -> Result<Merged, String> {
    std::thread::scope(|scope| {
        let mut streams: Vec<_> = (0..threads)
            .map(|_| {
                let (send, receive) = sync_channel::<Vec<u128>>(16);
                scope.spawn(move || {
                    // Sending fails when the merge has failed and nobody listens any more.
                    let _ = generate(keys_each, |batch| {
                        send.send(batch.iter().map(Uuid::as_u128).collect())
                    });
                });
                receive.into_iter().flatten()
            })
            .collect();
        merge(&mut streams)
    })
}

/// Merges the keys of forked processes.
///
/// # Errors
///
/// As [`merge`].
///
/// # Panics
///
/// If a process cannot be made, or fails.
pub fn from_processes(processes: usize, keys_each: u64) -> Result<Merged, String> {
    // State that a child could repeat: without it each would start afresh anyway.
    Uuid::generate();
    let mut streams: Vec<_> = (0..processes)
        .map(|_| {
            PipedKeys(BufReader::new(process::fork_writing(move |pipe| {
                write_keys(keys_each, pipe)
            })))
        })
        .collect();
    let merged = merge(&mut streams)?;
    for PipedKeys(stream) in streams {
        stream.into_inner().join();
    }
    Ok(merged)
}

fn write_keys(keys: u64, pipe: impl Write) -> io::Result<()> {
    let mut pipe = BufWriter::with_capacity(1 << 16, pipe);
    generate(keys, |batch| {
        batch
            .iter()
            .try_for_each(|key| pipe.write_all(key.as_bytes()))
    })?;
    pipe.flush()
}

/// The keys that a child writes to its pipe.
struct PipedKeys(BufReader<Child>);

impl Iterator for PipedKeys {
    type Item = u128;

    fn next(&mut self) -> Option<u128> {
        let mut key = [0; 16];
        match self.0.read_exact(&mut key) {
            Ok(()) => Some(u128::from_be_bytes(key)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => None,
            Err(error) => panic!("the pipe of the child: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(streams: &[&[u128]]) -> Result<Merged, String> {
        let mut streams: Vec<_> = streams.iter().map(|keys| keys.iter().copied()).collect();
        merge(&mut streams)
    }

    #[test]
    fn every_key_is_counted_once() {
        const STEP: u128 = 1 << 32;
        let keys = merged(&[&[STEP, 4 * STEP, 4 * STEP + 1], &[], &[2 * STEP, 3 * STEP]]);
        assert_eq!(
            keys,
            Ok(Merged {
                keys: 5,
                shared_counters: 1
            })
        );
    }

    #[test]
    fn a_key_of_two_streams_is_found() {
        for streams in [
            [&[1, 2, 3][..], &[3, 4]],
            [&[3, 4], &[1, 2, 3]],
            [&[1], &[1]],
            [&[1, 5, 6], &[2, 3, 6]],
        ] {
            let error = merged(&streams).unwrap_err();
            assert!(error.ends_with("comes twice"), "{error}");
        }
    }

    #[test]
    fn a_stream_that_stands_still_or_falls_is_found() {
        for stream in [[1, 2, 2], [1, 3, 2]] {
            let error = merged(&[&[7, 8], &stream]).unwrap_err();
            assert!(error.starts_with("stream 1 falls from"), "{error}");
        }
    }
}
