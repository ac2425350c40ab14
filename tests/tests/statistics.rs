//! The bits that are said to be random look random: by position, from key to key, by bytes.
//!
//! This finds a source that is broken, or bits in the wrong place, not a weak cipher.
//!
//! # False alarms
//!
//! The thresholds are fixed, and a run over good bits fails with a probability below 10^-9:
//!
//! - A count of `n` fair bits is off its mean by `z` standard deviations (`sqrt(n) / 2`) with a
//!   probability of at most `2 exp(-z^2 / 2)` (Hoeffding, exact for every `n`). `z = 8` gives
//!   2.6e-14. Counts are made of 32 positions, twice (ones, changes): 64 per stream.
//! - Chi-square of 256 byte values has 255 degrees of freedom. It exceeds `255 + 2 sqrt(255 x) + 2 x`,
//!   or stays below `255 - 2 sqrt(255 x)`, each with a probability of at most `exp(-x)` (Laurent and
//!   Massart 2000). 600 is beyond `x = 50`, 60 beyond `x = 37`: 1e-16 at most, which leaves room for
//!   chi-square being the limit of what is counted here (780 expected per value). Values of 4 bytes,
//!   twice (words, neighbours): 8 per stream.
//!
//! A stream fails with `64 * 2.6e-14 + 8 * 1e-16 < 2e-12`; there are 14, which makes 2.8e-11.

use ordid::{
    KeyType,
    clock::{ManualClock, SystemClock},
    entropy::ThreadEntropy,
    generator::{Generator, Policy},
    key::{Generated, Scheme},
    scheme::{
        uuid_v7::UuidV7Generator, uuid_v7_sub_millis::UuidV7SubMillisGenerator,
        uuid_v7_unguessable::UuidV7UnguessableGenerator,
    },
    uuid::Uuid,
};

const KEYS: usize = 200_000;

type Test = fn(&[u32]) -> Result<(), String>;

const TESTS: [(&str, Test); 4] = [
    ("ones", ones),
    ("changes", changes),
    ("bytes", bytes),
    ("neighbours", neighbours),
];

/// Returns the names of the tests that reject the words.
fn rejected_by(words: &[u32]) -> Vec<&'static str> {
    let rejecting = TESTS.iter().filter(|(_, test)| test(words).is_err());
    rejecting.map(|(name, _)| *name).collect()
}

fn assert_random(words: &[u32]) {
    for (name, test) in TESTS {
        if let Err(reason) = test(words) {
            panic!("{name}: {reason}");
        }
    }
}

/// Each bit is set as often as not.
fn ones(words: &[u32]) -> Result<(), String> {
    for bit in 0..u32::BITS {
        let count = words.iter().filter(|word| *word >> bit & 1 == 1).count();
        fair(count, words.len()).map_err(|off| format!("bit {bit} is set {off}"))?;
    }
    Ok(())
}

/// Each bit changes from one word to the next as often as not: the number of its runs.
fn changes(words: &[u32]) -> Result<(), String> {
    ones(&differences(words)).map_err(|reason| format!("of the differences, {reason}"))
}

/// The values of each byte are evenly spread, and not too evenly.
fn bytes(words: &[u32]) -> Result<(), String> {
    for position in 0..4 {
        let mut counts = [0_u32; 256];
        for word in words {
            counts[usize::from(word.to_be_bytes()[position])] += 1;
        }
        let expected = words.len() as f64 / 256.0;
        let chi_square: f64 = counts
            .iter()
            .map(|&count| (f64::from(count) - expected).powi(2) / expected)
            .sum();
        if !(60.0..=600.0).contains(&chi_square) {
            return Err(format!(
                "byte {position} has a chi-square of {chi_square:.0}"
            ));
        }
    }
    Ok(())
}

/// The bytes by which a word differs from the next are evenly spread too.
fn neighbours(words: &[u32]) -> Result<(), String> {
    bytes(&differences(words)).map_err(|reason| format!("of the differences, {reason}"))
}

fn differences(words: &[u32]) -> Vec<u32> {
    words.windows(2).map(|pair| pair[0] ^ pair[1]).collect()
}

fn fair(count: usize, of: usize) -> Result<(), String> {
    let deviations = (count as f64 - of as f64 / 2.0) / (of as f64).sqrt() * 2.0;
    if deviations.abs() < 8.0 {
        return Ok(());
    }
    Err(format!(
        "{count} times in {of}, {deviations:.0} standard deviations off"
    ))
}

/// The last 32 bits of a key.
fn random_part(key: &Uuid) -> u32 {
    let [.., a, b, c, d] = key.into_bytes();
    u32::from_be_bytes([a, b, c, d])
}

/// The 42 bits between version and variant, and between variant and the random part.
fn counter(key: &Uuid) -> u64 {
    let (high, low) = key.as_u64_pair();
    (high & 0xfff) << 30 | low >> 32 & 0x3fff_ffff
}

#[test]
fn the_random_part_of_keys_made_one_by_one_is_random() {
    let words: Vec<u32> = (0..KEYS).map(|_| random_part(&Uuid::generate())).collect();
    assert_random(&words);
}

#[test]
fn the_random_part_of_keys_made_together_is_random() {
    let mut keys = vec![Uuid::nil(); KEYS];
    Uuid::fill(&mut keys);
    let words: Vec<u32> = keys.iter().map(random_part).collect();
    assert_random(&words);
}

/// The last so many bits of keys, in two words that overlap: the lowest 32 and the highest 32.
fn random_words(keys: &[Uuid], bits: u32) -> [Vec<u32>; 2] {
    let words = |shift: u32| {
        let words = keys.iter().map(|key| word(key.as_u64_pair().1 >> shift));
        words.collect()
    };
    [words(0), words(bits - 32)]
}

/// Keys made one by one, and together.
fn keys_of<S: Scheme<Raw = Uuid>>(generator: &impl Generator<Scheme = S>) -> [Vec<Uuid>; 2] {
    let single = (0..KEYS).map(|_| generator.try_generate().unwrap().into_raw());
    let single = single.collect();
    let mut together = Vec::new();
    let put = |key: Generated<S>| together.push(key.into_raw());
    generator.try_fill_with(KEYS, put).unwrap();
    [single, together]
}

#[test]
fn the_56_random_bits_of_unguessable_keys_are_random() {
    let keys = UuidV7UnguessableGenerator::new(SystemClock, ThreadEntropy, Policy::DEFAULT);
    for keys in keys_of(&keys) {
        for words in random_words(&keys, 56) {
            assert_random(&words);
        }
    }
}

#[test]
fn the_54_random_bits_of_keys_with_fractions_are_random() {
    let keys = UuidV7SubMillisGenerator::new(SystemClock, ThreadEntropy, Policy::DEFAULT);
    for keys in keys_of(&keys) {
        for words in random_words(&keys, 54) {
            assert_random(&words);
        }
    }
}

/// The lower half.
fn word(bits: u64) -> u32 {
    u32::try_from(bits & u64::from(u32::MAX)).unwrap()
}

/// The counter of the first key in each of many milliseconds.
fn starts() -> Vec<u64> {
    let first = 1_645_557_742_000;
    let clock = ManualClock::at_unix_millis(first);
    let keys = UuidV7Generator::new(&clock, ThreadEntropy, Policy::DEFAULT);
    let start = |millis| {
        clock.set_unix_millis(millis);
        let key = keys.try_generate().unwrap().into_raw();
        assert_eq!(
            key.as_u64_pair().0 >> 16,
            millis,
            "the first of its millisecond"
        );
        counter(&key)
    };
    (first..).take(KEYS).map(start).collect()
}

#[test]
fn the_counter_starts_each_millisecond_at_41_random_bits_below_a_zero() {
    let starts = starts();
    assert!(starts.iter().all(|start| start >> 41 == 0));
    let lower: Vec<u32> = starts.iter().map(|start| word(*start)).collect();
    let upper: Vec<u32> = starts.iter().map(|start| word(start >> 9)).collect();
    assert_random(&lower);
    assert_random(&upper);

    // Nor does another generator start at a related place in the same millisecond.
    let both = starts.iter().zip(self::starts());
    let (lower, upper): (Vec<u32>, Vec<u32>) = both
        .map(|(a, b)| a ^ b)
        .map(|difference| (word(difference), word(difference >> 9)))
        .unzip();
    assert_random(&lower);
    assert_random(&upper);
}

/// Words that pass every test, for spoiling: an increment through a strong mixer (SplitMix64).
fn good() -> impl Iterator<Item = u32> {
    (1_u64..).map(|number| {
        let mut mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word(mixed >> 32)
    })
}

#[test]
fn good_words_pass() {
    assert_random(&good().take(KEYS).collect::<Vec<u32>>());
}

#[test]
fn bad_words_are_rejected_by_the_test_for_them() {
    let even_parity = |word: u32| (word & !1) | ((word >> 1).count_ones() & 1);
    let mut flips = good().skip(KEYS);
    let streams: [(&str, Vec<u32>, &[&str]); 8] = [
        (
            "constant",
            vec![0x5a5a_5a5a; KEYS],
            &["ones", "changes", "bytes", "neighbours"],
        ),
        (
            "a counter",
            (0..).take(KEYS).collect(),
            &["ones", "changes", "bytes", "neighbours"],
        ),
        (
            // Numerical Recipes' x -> 1664525 x + 1013904223; its lowest bit alternates.
            "a linear congruential generator",
            std::iter::successors(Some(1_u32), |last| {
                Some(last.wrapping_mul(1_664_525).wrapping_add(1_013_904_223))
            })
            .take(KEYS)
            .collect(),
            &["changes", "bytes", "neighbours"],
        ),
        (
            "one bit set in 17 of 32",
            good()
                .map(|word| word | u32::from(word >> 28 == 0))
                .take(KEYS)
                .collect(),
            &["ones", "bytes"],
        ),
        (
            "one bit that tends to stay",
            good()
                .scan(0, |last: &mut u32, word| {
                    let stays = word >> 25 < 3;
                    *last = if stays { *last & 1 | word & !1 } else { word };
                    Some(*last)
                })
                .take(KEYS)
                .collect(),
            &["changes"],
        ),
        (
            "each word twice",
            good().flat_map(|word| [word, word]).take(KEYS).collect(),
            &["changes", "neighbours"],
        ),
        (
            "words of even parity",
            good()
                .map(|word| even_parity(word & 0xff) | word & !0xff)
                .take(KEYS)
                .collect(),
            &["bytes", "neighbours"],
        ),
        (
            "each second word of the parity of the one before",
            good()
                .step_by(2)
                .flat_map(|word| {
                    let flip = flips.next().unwrap_or(0);
                    [word, word ^ (even_parity(flip & 0xff) | flip & !0xff)]
                })
                .take(KEYS)
                .collect(),
            &["neighbours"],
        ),
    ];
    for (name, words, expected) in streams {
        assert_eq!(rejected_by(&words), expected, "{name}");
    }
}
