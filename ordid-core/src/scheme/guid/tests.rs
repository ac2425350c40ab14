//! What the tests of the GUID schemes share.

use uuid::Uuid;

use crate::{
    clock::ManualClock,
    entropy::SeededEntropy,
    generator::{Generator, OrderedGenerator, Policy, Slotted},
    layout::Comparison,
    scheme::Layout,
};

/// 2022-02-22T19:22:22Z
pub(crate) const START: u64 = 1_645_557_742_000;

/// .NET's ticks at 1970-01-01.
pub(crate) const DOTNET_TICKS_AT_1970: u64 = 621_355_968_000_000_000;

pub(crate) type Scripted<S> = OrderedGenerator<S, ManualClock, SeededEntropy>;

pub(crate) fn scripted_at<S: Slotted>(node: S::Node, millis: u64) -> Scripted<S> {
    let clock = ManualClock::at_unix_millis(millis);
    OrderedGenerator::with_node(node, clock, SeededEntropy::new(7), Policy::DEFAULT)
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
pub(crate) fn vectors(kind: &str, count: usize) -> Vec<Vector> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/sqlserver.json");
    let json: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let keys = json["keys"].as_array().unwrap().iter();
    let of_kind = keys.filter(|key| key["kind"] == kind);
    let vectors: Vec<_> = of_kind
        .map(|key| {
            let text = |name: &str| key[name].as_str().unwrap();
            let dotnet_ticks = key["utc_ticks"].as_u64().unwrap();
            let guid: Uuid = text("guid").parse().unwrap();
            let wire: Uuid = text("wire").parse().unwrap();
            assert_eq!(guid.to_bytes_le(), wire.into_bytes());
            Vector {
                utc: text("utc").to_owned(),
                dotnet_ticks,
                unix_millis: dotnet_ticks
                    .checked_sub(DOTNET_TICKS_AT_1970)
                    .map(|ticks| ticks / 10_000),
                random: text("random16_wire").parse::<Uuid>().unwrap().into_bytes(),
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

/// Keys of many milliseconds, some with hundreds of keys, and of seconds.
pub(crate) fn keys_over_time<S: Slotted>(generator: &Scripted<S>) -> Vec<S::Raw> {
    let mut keys = Vec::new();
    for step in 0..1_000_u64 {
        generator
            .clock()
            .set_unix_millis(START + step * 7 + step / 100 * 60_000);
        for _ in 0..step % 20 {
            keys.push(next(generator));
        }
        if step % 250 == 0 {
            keys.extend(many(generator, 600));
        }
    }
    keys
}

/// Sorted by the rules that the scheme declares, the keys are in the order they were made; sorted
/// by any other they are not.
pub(crate) fn rises_exactly_where_declared<S: Slotted<Raw = Uuid>>(node: S::Node) {
    let keys = keys_over_time(&scripted_at::<S>(node, START));
    assert!(keys.is_sorted_by(|left, right| S::cmp(left, right).is_lt()));
    for rule in Comparison::ALL {
        let mut sorted = keys.clone();
        sorted.sort_by_key(|key| rule.sort_key(key.as_bytes()));
        assert_eq!(
            sorted == keys,
            S::ORDERS.contains(rule),
            "{} by {rule:?}",
            S::NAME
        );
    }
}

/// How many keys are not above the one before, by a rule.
pub(crate) fn descents(rule: Comparison, keys: &[Uuid]) -> usize {
    let key = |key: &Uuid| rule.sort_key(key.as_bytes());
    keys.windows(2)
        .filter(|pair| key(&pair[0]) >= key(&pair[1]))
        .count()
}

/// The bits that differ between keys.
pub(crate) fn varying_bits(keys: &[Uuid]) -> u128 {
    let first = keys[0].as_u128();
    keys.iter()
        .fold(0, |bits, key| bits | key.as_u128() ^ first)
}

#[test]
fn the_check_of_order_can_fail() {
    // UUIDNext's never did: it did not keep the key before.
    let keys = [3, 1, 2, 2].map(Uuid::from_u128);
    assert_eq!(descents(Comparison::Bytes, &keys), 2);
}
