//! Keys behind a bucket.

use ordid_core::{
    key::{
        Key192, ObjectId, PushId,
        scatter::{Scatter, Scatterable},
    },
    uuid::Uuid,
};

use crate::text::refused;

/// All that one or two bytes of bucket can be.
const RULES: [Scatter; 9] = [
    Scatter::by_hash(1),
    Scatter::by_hash(16),
    Scatter::by_hash(256),
    Scatter::by_hash(257),
    Scatter::by_hash(u16::MAX),
    Scatter::by_reversed_bits(8, 0),
    Scatter::by_reversed_bits(256, 80),
    Scatter::by_reversed_bits(1 << 15, 3),
    Scatter::by_reversed_bits(2, u32::MAX),
];

/// Takes the input for a bucket and a key, and for a key.
pub fn scatter(data: &[u8]) {
    for rule in RULES {
        of::<Uuid>(rule, data);
        of::<ObjectId>(rule, data);
        of::<PushId>(rule, data);
        of::<Key192>(rule, data);
        of::<u64>(rule, data);
        of::<i64>(rule, data);
        of::<String>(rule, data);
    }
}

fn of<K: Scatterable + Clone + std::fmt::Debug>(rule: Scatter, data: &[u8]) {
    match rule.read::<K>(data) {
        Ok(scattered) => assert_eq!(scattered.to_bytes(), data),
        Err(error) => refused(&error),
    }
    if let Ok(key) = K::from_bytes(data) {
        comes_back(rule, key);
    }

    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    match rule.parse::<K>(text) {
        Ok(scattered) => assert_eq!(scattered.to_string(), text),
        Err(error) => refused(&error),
    }
    match K::parse_text(text) {
        Ok(key) => comes_back(rule, key),
        Err(error) => refused(&error),
    }
}

fn comes_back<K: Scatterable + Clone + std::fmt::Debug>(rule: Scatter, key: K) {
    let scattered = rule.scatter(key.clone());
    assert!(scattered.bucket() < rule.buckets());
    let read = rule.read::<K>(&scattered.to_bytes());
    assert_eq!(read.expect("what was written is read").key(), &key);
    let parsed = rule.parse::<K>(&scattered.to_string());
    assert_eq!(parsed.expect("what was written is read"), scattered);
}
