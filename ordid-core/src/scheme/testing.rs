//! Helpers that the tests of the schemes share.

use std::fmt;

use uuid::Uuid;

use crate::{
    clock::ManualClock,
    entropy::SeededEntropy,
    error::Error,
    generator::{Generator, OrderedGenerator, Overflow, Policy, Rollback, Slotted},
    key::Scheme,
    layout::Comparison,
    scheme::{FromName, Layout, UuidNode},
};

/// 2022-02-22T19:22:22Z
pub(crate) const START: u64 = 1_645_557_742_000;

/// .NET's ticks at 1970-01-01.
pub(crate) const DOTNET_TICKS_AT_1970: u64 = 621_355_968_000_000_000;

/// Neither holds nor waits.
pub(crate) const STRICT: Policy = Policy {
    rollback: Rollback::ERROR,
    overflow: Overflow::Error,
};

pub(crate) type Scripted<S> = OrderedGenerator<S, ManualClock, SeededEntropy>;

/// A generator on a clock that stands at a time.
pub(crate) fn scripted_with<S: Slotted>(
    node: S::Node,
    millis: u64,
    seed: u64,
    policy: Policy,
) -> Scripted<S> {
    let clock = ManualClock::at_unix_millis(millis);
    OrderedGenerator::with_node(node, clock, SeededEntropy::new(seed), policy)
}

pub(crate) fn scripted_at<S: Slotted>(node: S::Node, millis: u64) -> Scripted<S> {
    scripted_with(node, millis, 7, Policy::DEFAULT)
}

pub(crate) fn scripted<S: Slotted<Node = ()>>() -> Scripted<S> {
    scripted_at((), START)
}

pub(crate) fn next<S: Slotted>(generator: &Scripted<S>) -> S::Raw {
    generator.try_generate().unwrap().into_raw()
}

pub(crate) fn many<S: Slotted>(generator: &Scripted<S>, count: usize) -> Vec<S::Raw> {
    let mut keys = Vec::new();
    generator
        .try_fill_with(count, |key| keys.push(key.into_raw()))
        .unwrap();
    keys
}

/// Runs a test on a thread of its own. A thread remembers the last seed by its secret, and the same
/// number makes the same secret for two schemes, which real entropy does not.
pub(crate) fn on_its_own_thread(test: impl FnOnce() + Send) {
    std::thread::scope(|scope| scope.spawn(test).join().unwrap());
}

/// A key as text, behind a prefix if there is one.
pub(crate) struct Text<S: Scheme>(pub(crate) S::Raw, pub(crate) Option<&'static str>);

impl<S: Scheme> fmt::Display for Text<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        S::write_text(self.0, self.1, f)
    }
}

pub(crate) fn text<S: Scheme>(raw: S::Raw) -> String {
    Text::<S>(raw, None).to_string()
}

pub(crate) fn parse<S: Scheme>(text: &str) -> Result<S::Raw, Error> {
    S::parse_text(None, text)
}

/// Each of the parts has a field that is too large: the error names the field, the value and the
/// bits there are.
pub(crate) fn does_not_fit<S: Layout, const N: usize>(wrong: [(S::Parts, &str, u32); N]) {
    for (parts, value, bits) in wrong {
        let error = S::pack(parts).unwrap_err();
        assert!(error.is_layout());
        let expected = format!(
            "{value} does not fit: scheme {} has {bits} bits for it",
            S::NAME
        );
        assert_eq!(error.to_string(), expected);
    }
}

/// The scheme makes the RFC's key of the RFC's name, whose parts are bits of the hash.
pub(crate) fn name_of_the_rfc<S: FromName + Layout>(
    vector: &serde_json::Value,
    hash: &str,
    fields: impl FnOnce(S::Parts) -> [u128; 3],
) {
    let name = vector["name"].as_str().unwrap();
    let key = S::from_name(&uuid(&vector["namespace"]), name.as_bytes());
    assert_eq!(key, uuid(&vector["uuid"]));
    let hash = u128::from_str_radix(&vector[hash].as_str().unwrap()[..32], 16).unwrap();
    let expected = [hash >> 80, hash >> 64 & 0xfff, hash & ((1 << 62) - 1)];
    assert_eq!(fields(S::unpack(&key).unwrap()), expected);
}

/// The last key is made in the millisecond `last`; after it there is an error.
pub(crate) fn ends_after<S: Slotted>(generator: &Scripted<S>, last: u64) -> S::Raw {
    generator.clock().set_unix_millis(last);
    let key = next(generator);
    generator.clock().set_unix_millis(last + 1);
    let error = generator.try_generate().unwrap_err();
    assert!(error.is_clock(), "{error}");
    key
}

/// Reads `tests/vectors/NAME.json`.
pub(crate) fn vectors(name: &str) -> serde_json::Value {
    let file = format!("{}/tests/vectors/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

pub(crate) fn uuid(value: &serde_json::Value) -> Uuid {
    value.as_str().unwrap().parse().unwrap()
}

pub(crate) fn hex(value: &serde_json::Value) -> u64 {
    let digits = value.as_str().unwrap();
    u64::from_str_radix(digits.trim_start_matches("0x"), 16).unwrap()
}

/// A key that the original made, or its formula.
#[derive(Debug)]
pub(crate) struct Vector {
    pub(crate) utc: String,
    pub(crate) dotnet_ticks: u64,
    /// `None` before 1970.
    pub(crate) unix_millis: Option<u64>,
    /// The random bytes that it was made from.
    pub(crate) random: [u8; 16],
    pub(crate) guid: Uuid,
}

impl Vector {
    /// The bytes of the random ones from `first` on.
    pub(crate) fn random<const N: usize>(&self, first: usize) -> [u8; N] {
        self.random[first..first + N].try_into().unwrap()
    }
}

/// The keys of one kind in `sqlserver.json`.
pub(crate) fn vectors_of_kind(kind: &str, count: usize) -> Vec<Vector> {
    let json = vectors("sqlserver");
    let keys = json["keys"].as_array().unwrap().iter();
    let of_kind = keys.filter(|key| key["kind"] == kind);
    let vectors: Vec<_> = of_kind
        .map(|key| {
            let text = |name: &str| key[name].as_str().unwrap();
            let dotnet_ticks = key["utc_ticks"].as_u64().unwrap();
            let guid = uuid(&key["guid"]);
            assert_eq!(guid.to_bytes_le(), uuid(&key["wire"]).into_bytes());
            Vector {
                utc: text("utc").to_owned(),
                dotnet_ticks,
                unix_millis: dotnet_ticks
                    .checked_sub(DOTNET_TICKS_AT_1970)
                    .map(|ticks| ticks / 10_000),
                random: uuid(&key["random16_wire"]).into_bytes(),
                guid,
            }
        })
        .collect();
    assert_eq!(vectors.len(), count, "{kind}");
    vectors
}

/// `pack` makes the original's key of the original's parts, and `unpack` gives these back where the
/// vector is of the scheme: its random bytes are no random UUID's, so often it is not.
pub(crate) fn meets<S: Layout<Raw = Uuid>>(vector: &Vector, parts: S::Parts) {
    assert_eq!(S::pack(parts).unwrap(), vector.guid, "{vector:?}");
    match S::unpack(&vector.guid) {
        Ok(found) => assert_eq!(found, parts, "{vector:?}"),
        Err(error) => assert!(error.is_layout() && !S::check(&vector.guid)),
    }
}

/// Keys of many milliseconds, some with hundreds of keys, of seconds, and of a day: the steps carry
/// over every byte of a time, the bursts over the lower bytes of the ticks.
pub(crate) fn keys_over_time<S: Slotted>(generator: &Scripted<S>, start: u64) -> Vec<S::Raw> {
    let mut keys = Vec::new();
    for step in 0..1_000_u64 {
        generator
            .clock()
            .set_unix_millis(start + step * 7 + step / 100 * 60_000);
        for _ in 0..step % 20 {
            keys.push(next(generator));
        }
        if step % 250 == 0 {
            keys.extend(many(generator, 600));
        }
    }
    for step in 2..200 {
        generator.clock().set_unix_millis(start + step * 432_000);
        keys.extend((0..30).map(|_| next(generator)));
    }
    keys
}

/// Keys of one generator over a day.
pub(crate) fn day<S: Slotted<Node = UuidNode>>(node: UuidNode) -> Vec<S::Raw> {
    let generator = scripted_with::<S>(node, START, 11, Policy::DEFAULT);
    let keys = keys_over_time(&generator, START);
    assert!(keys.is_sorted_by(|a, b| S::cmp(a, b).is_lt()));
    keys
}

/// The rules under which each key is above the one before.
pub(crate) fn rules_that_hold(keys: &[Uuid]) -> Vec<Comparison> {
    let rises = |rule: &Comparison| descents(*rule, keys) == 0;
    Comparison::ALL.into_iter().filter(rises).collect()
}

pub(crate) fn declared<S: Scheme>() -> Vec<Comparison> {
    let declared = |rule: &Comparison| S::ORDERS.contains(*rule);
    Comparison::ALL.into_iter().filter(declared).collect()
}

/// How many keys are not above the one before, by a rule.
pub(crate) fn descents(rule: Comparison, keys: &[Uuid]) -> usize {
    let key = |key: &Uuid| rule.sort_key(key.as_bytes());
    keys.windows(2)
        .filter(|pair| key(&pair[0]) >= key(&pair[1]))
        .count()
}

/// How often each bit of the numbers is one.
pub(crate) fn ones<const BITS: usize>(numbers: impl Iterator<Item = u128>) -> [u32; BITS] {
    let mut ones = [0; BITS];
    for number in numbers {
        for (bit, ones) in ones.iter_mut().enumerate() {
            *ones += u32::from(number >> bit & 1 == 1);
        }
    }
    ones
}

#[test]
fn a_key_that_does_not_rise_is_counted() {
    // UUIDNext's own test never counted one: it did not keep the key before.
    let keys = [3, 1, 2, 2].map(Uuid::from_u128);
    assert_eq!(descents(Comparison::Bytes, &keys), 2);
}
