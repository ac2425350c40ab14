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

#[derive(KeyType)]
#[ordid(scheme = uuid_v7_unguessable, prefix = "inv", sqlx)]
struct InvoiceId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v7_sub_millis, sqlx(mysql = mariadb_uuid))]
struct ReadingId(Uuid);

/// Each scheme has a process-wide generator of its own, strict over all threads.
fn rises_over_threads<K: KeyType<Scheme: ordid::StaticScheme>>() {
    let mut all: Vec<K> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut keys = vec![K::generate(); 50_000];
                    keys[..20_000].fill_with(K::generate);
                    K::fill(&mut keys[20_000..]);
                    assert!(keys.is_sorted_by(|a, b| a < b), "rising on each thread");
                    keys
                })
            })
            .collect();
        let joined = threads.into_iter().map(|thread| thread.join().unwrap());
        joined.flatten().collect()
    });
    let last = K::generate();
    assert!(all.iter().all(|key| *key < last), "below what comes after");
    all.sort_unstable();
    assert!(all.is_sorted_by(|a, b| a < b), "none twice");
    assert!(K::reserve(3).unwrap().is_sorted());
}

#[test]
fn unguessable_keys_rise_over_threads() {
    rises_over_threads::<InvoiceId>();
    let id = InvoiceId::generate();
    assert_eq!(id.to_string().parse::<InvoiceId>().unwrap(), id);
}

#[test]
fn sub_millisecond_keys_rise_over_threads() {
    rises_over_threads::<ReadingId>();
}
