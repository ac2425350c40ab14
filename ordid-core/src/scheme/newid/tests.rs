use std::collections::HashSet;

use super::*;
use crate::{generator::Generator, scheme::testing::*};

const WORKER: [u8; 6] = [0x02, 0x42, 0xac, 0x11, 0x00, 0x02];

#[test]
fn keys_are_those_of_the_original() {
    for vector in vectors_of_kind("newid_nextguid", 13) {
        let Vector { dotnet_ticks, .. } = vector;
        let parts = Parts {
            ticks: dotnet_ticks,
            worker: vector.random(0),
            sequence: u16::from_be_bytes(vector.random(8)),
        };
        meets::<NewId>(&vector, parts);
    }
}

#[test]
fn a_batch_has_its_own_time_and_repeats_nothing() {
    // The original's takes the time of the call before it, and counts from 0 again.
    let generator = scripted_at::<NewId>(WORKER, START);
    let mut keys = vec![next(&generator)];
    for step in 1..50 {
        generator.clock().set_unix_millis(START + step);
        let batch = many(&generator, 100);
        let begin = DOTNET_TICKS_AT_1970 + (START + step) * 10_000;
        assert_eq!(NewId::unpack(&batch[0]).unwrap().ticks, begin);
        keys.extend(batch);
        keys.push(next(&generator));
    }
    assert_eq!(descents(Comparison::SqlServer, &keys), 0);
    assert_eq!(keys.iter().collect::<HashSet<_>>().len(), keys.len());

    let fresh = scripted_at::<NewId>(WORKER, START);
    let batch = many(&fresh, 2);
    assert!(NewId::unpack(&batch[0]).unwrap().ticks > DOTNET_TICKS_AT_1970);
}

#[test]
fn more_keys_than_a_sequence_has_rise() {
    let keys = many(&scripted_at::<NewId>(WORKER, START), 200_000);
    assert_eq!(descents(Comparison::SqlServer, &keys), 0);
}

#[test]
fn workers_make_different_keys() {
    let keys: HashSet<_> = (0..4)
        .flat_map(|worker| {
            let mut bytes = WORKER;
            bytes[5] = worker;
            many(&scripted_at::<NewId>(bytes, START), 1_000)
        })
        .collect();
    assert_eq!(keys.len(), 4_000);
    for key in keys {
        let inspection = NewId::inspect(&key).unwrap();
        let node = inspection.node.unwrap();
        assert!((0x0242_ac11_0000..=0x0242_ac11_0003).contains(&node));
    }
}

#[test]
fn a_key_for_a_given_time_is_refused() {
    let generator = scripted_at::<NewId>(WORKER, START);
    let at = Timestamp::from_unix_millis(START).unwrap();
    assert!(generator.generate_at(at).unwrap_err().is_unsupported());
}
