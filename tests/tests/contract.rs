//! What is promised of the process-wide generator, without a database.

use ordid::{KeyType, uuid::Uuid};
use ordid_tests::merge::{self, Merged};

#[test]
fn eight_threads_of_a_million_keys_rise_and_share_none() {
    let merged = merge::from_threads(8, 1_000_000);
    assert_eq!(
        merged,
        Ok(Merged {
            keys: 8_000_000,
            // One counter for all threads: no two keys may share it.
            shared_counters: 0,
        })
    );
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
