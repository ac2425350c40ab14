//! What is promised of the process-wide generator, without a database.

use ordid::{KeyType, uuid::Uuid};

/// Every key is above the last one of its thread, and none comes twice: merged in constant memory,
/// since each thread's keys are sorted.
fn threads_times_keys(threads: usize, keys: usize) {
    let streams: Vec<Vec<Uuid>> = std::thread::scope(|scope| {
        let spawned: Vec<_> = (0..threads)
            .map(|thread| {
                scope.spawn(move || {
                    let mut stream = vec![Uuid::nil(); keys];
                    if thread % 2 == 0 {
                        stream.fill_with(Uuid::generate);
                    } else {
                        for batch in stream.chunks_mut(1_000) {
                            Uuid::fill(batch);
                        }
                    }
                    stream
                })
            })
            .collect();
        spawned
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    for stream in &streams {
        assert!(
            stream.is_sorted_by(|a, b| a < b),
            "strictly increasing per thread"
        );
    }
    let mut heads: std::collections::BinaryHeap<_> = streams
        .iter()
        .enumerate()
        .map(|(stream, keys)| std::cmp::Reverse((keys[0], stream, 0)))
        .collect();
    let mut last = None;
    let mut merged = 0;
    while let Some(std::cmp::Reverse((key, stream, position))) = heads.pop() {
        assert!(last < Some(key), "unique over all threads");
        last = Some(key);
        merged += 1;
        if let Some(next) = streams[stream].get(position + 1) {
            heads.push(std::cmp::Reverse((*next, stream, position + 1)));
        }
    }
    assert_eq!(merged, threads * keys);
}

#[test]
fn eight_threads_of_a_million_keys_rise_and_share_none() {
    threads_times_keys(8, 1_000_000);
}

#[test]
fn many_short_threads_rise_and_share_none() {
    let mut all: Vec<Uuid> = Vec::new();
    for _ in 0..200 {
        let made = std::thread::spawn(|| [Uuid::generate(), Uuid::generate()])
            .join()
            .unwrap();
        // One after the other, so the order over all threads is the order in time.
        assert!(all.last().is_none_or(|last| *last < made[0]));
        all.extend(made);
    }
    assert!(all.is_sorted_by(|a, b| a < b));
}

#[test]
fn a_key_handed_to_another_thread_is_below_the_next_one_there() {
    let (send, receive) = std::sync::mpsc::channel::<Uuid>();
    let there = std::thread::spawn(move || receive.iter().all(|key| key < Uuid::generate()));
    for _ in 0..20_000 {
        send.send(Uuid::generate()).unwrap();
    }
    drop(send);
    assert!(
        there.join().unwrap(),
        "strict over all threads, not only per thread"
    );
}
