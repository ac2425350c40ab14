//! Describes the values of a column: their schemes, their spelling, and the order in which they came.

mod spelling;

use std::collections::{BTreeMap, BTreeSet};

use ordid_core::{
    clock::Timestamp,
    layout::{Comparison, bin_to_uuid, guid},
    scheme::catalogue::{Unknown, detect},
    scheme::{Certainty, Inspection},
};

use super::model::{Column, Compares, Kind, Row, Value};
use crate::engine::Engine;

pub(crate) use spelling::Spelling;

/// Integers below are counters: no layout with a time had reached them in its first days.
const LOWEST_LAYOUT: i128 = 1 << 44;

/// 1990: no key of an earlier time was made.
const EARLIEST: i64 = 631_152_000_000;

const DAY: i64 = 86_400_000;

/// Fewer values prove nothing about a column.
pub(crate) const FEW: usize = 8;

/// The description of a column's values.
#[derive(Debug, Default)]
pub(crate) struct Profile {
    /// How many values were read that are not NULL.
    pub(crate) values: usize,
    pub(crate) nulls: usize,
    /// How often each form of writing a value was seen.
    pub(crate) spellings: BTreeMap<Spelling, usize>,
    /// How the bytes of UUIDs are permuted.
    pub(crate) swap: Option<Comparison>,
    /// The schemes, the most frequent first.
    pub(crate) schemes: Vec<Share>,
    /// Other schemes that read a likely time in as many values.
    pub(crate) also: Vec<&'static str>,
    /// The reading of each value of a known row.
    pub(crate) parts: Vec<Part>,
    /// How many rows stand below the row that was inserted before them, and how many pairs were compared.
    pub(crate) steps_down: Option<(usize, usize)>,
}

/// The values of a scheme.
#[derive(Debug, Clone)]
pub(crate) struct Share {
    pub(crate) scheme: &'static str,
    pub(crate) count: usize,
    /// The earliest and the latest time in them: milliseconds since 1970.
    pub(crate) times: Option<(i64, i64)>,
}

/// The reading of a value.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    /// The row in the sample.
    pub(crate) row: usize,
    pub(crate) scheme: &'static str,
    /// Milliseconds since 1970.
    pub(crate) millis: Option<i64>,
    pub(crate) node: Option<u64>,
    pub(crate) counter: Option<u64>,
}

impl Profile {
    /// Looks at a column of a sample.
    pub(crate) fn of(
        engine: Engine,
        column: &Column,
        rows: &[Row],
        at: usize,
        now: Timestamp,
    ) -> Self {
        let mut profile = Self::default();
        let values = || rows.iter().map(|row| &row.values[at]);
        for value in values() {
            match Spelling::of(value) {
                Some(spelling) => {
                    profile.values += 1;
                    *profile.spellings.entry(spelling).or_default() += 1;
                }
                None => profile.nulls += 1,
            }
        }
        profile.swap = swap(values(), now);
        let integers = integers(values());
        let is_counted = integers == Integers::Counted;
        let read: Vec<(usize, Vec<Inspection>)> = values()
            .enumerate()
            .filter(|(_, value)| **value != Value::Null)
            .map(|(row, value)| (row, candidates(value, profile.swap, integers, now)))
            .collect();
        let created: Vec<Option<i64>> = rows.iter().map(|row| row.created).collect();
        profile.assign(&read, &created, is_counted);
        profile.steps_down = steps_down(engine, column, rows, at);
        profile
    }

    /// Returns the scheme of nearly all values.
    pub(crate) fn main(&self) -> Option<&Share> {
        self.schemes
            .first()
            .filter(|share| share.count * 10 >= self.values * 9)
    }

    /// Returns how many values are of the scheme.
    pub(crate) fn count_of(&self, scheme: &str) -> usize {
        let shares = self.schemes.iter().filter(|share| share.scheme == scheme);
        shares.map(|share| share.count).sum()
    }

    /// Whether the values are of schemes that are known.
    pub(crate) fn is_known(&self) -> bool {
        self.main().is_none_or(|main| main.scheme != "unknown")
    }

    /// Whether nearly all values are UUIDs as text. 32 hex digits that are of no version are a hash.
    pub(crate) fn is_uuid_text(&self) -> bool {
        let texts = self
            .spellings
            .iter()
            .filter(|(spelling, _)| match spelling {
                Spelling::Hex | Spelling::HexUpper => self.is_known(),
                spelling => spelling.is_uuid_text(),
            });
        let count: usize = texts.map(|(_, count)| count).sum();
        self.values > 0 && count * 10 >= self.values * 9
    }

    /// Returns the length of ids with letters of both cases, if nearly all values are such ids. Names differ in length.
    pub(crate) fn mixed_case_length(&self) -> Option<usize> {
        self.spellings
            .iter()
            .find_map(|(spelling, count)| match spelling {
                Spelling::MixedCase(length) if count * 10 >= self.values * 9 => Some(*length),
                _ => None,
            })
    }

    /// Whether the values look like keys that programs make.
    pub(crate) fn is_of_keys(&self) -> bool {
        self.values == 0
            || self.is_known()
            || self.is_uuid_text()
            || self.mixed_case_length().is_some()
    }

    /// Whether nearly all values are of a layout with a time, and of a few nodes only.
    pub(crate) fn has_few_nodes(&self) -> bool {
        /// The nodes of random numbers are many.
        const FEW_NODES: usize = 64;

        let Some(main) = self.main().filter(|main| main.times.is_some()) else {
            return false;
        };
        let parts = self.parts.iter().filter(|part| part.scheme == main.scheme);
        let nodes: Option<BTreeSet<u64>> = parts.map(|part| part.node).collect();
        nodes.is_some_and(|nodes| nodes.len() <= FEW_NODES && nodes.len() * 2 <= self.values)
    }

    fn assign(
        &mut self,
        read: &[(usize, Vec<Inspection>)],
        created: &[Option<i64>],
        is_counted: bool,
    ) {
        let stated = |candidates: &[Inspection]| {
            candidates
                .iter()
                .find(|candidate| candidate.certainty == Certainty::Stated)
                .copied()
        };
        let is_random = |candidates: &[Inspection]| {
            stated(candidates).is_some_and(|stated| stated.scheme == "uuid_v4")
        };
        let random: Vec<_> = read
            .iter()
            .filter(|(_, candidates)| is_random(candidates))
            .collect();
        // COMBs are of version 4, and only the times in many of them show it.
        let comb = guess(
            random
                .iter()
                .map(|(row, candidates)| (*row, &candidates[..])),
            created,
            |candidate| candidate.certainty == Certainty::Likely && candidate.moment.is_some(),
        );
        let open = read
            .iter()
            .filter(|(_, candidates)| stated(candidates).is_none());
        let open: Vec<_> = open
            .map(|(row, candidates)| (*row, &candidates[..]))
            .collect();
        let guessed = guess(open.iter().copied(), created, |candidate| {
            candidate.certainty == Certainty::Likely
        });
        self.also = guessed
            .as_ref()
            .map(|guess| guess.also.clone())
            .unwrap_or_default();
        for (row, candidates) in read {
            let by_name = |name: Option<&'static str>| {
                candidates
                    .iter()
                    .find(|candidate| Some(candidate.scheme) == name)
                    .copied()
            };
            let chosen = match stated(candidates) {
                Some(stated) if stated.scheme == "uuid_v4" => {
                    Some(by_name(comb.as_ref().map(|comb| comb.scheme)).unwrap_or(stated))
                }
                Some(stated) => Some(stated),
                None => by_name(guessed.as_ref().map(|guess| guess.scheme)),
            };
            let unknown = if is_counted { "sequence" } else { "unknown" };
            self.parts.push(Part {
                row: *row,
                scheme: chosen.map_or(unknown, |chosen| chosen.scheme),
                millis: chosen.and_then(|chosen| millis(&chosen)),
                node: chosen.and_then(|chosen| chosen.node),
                counter: chosen.and_then(|chosen| chosen.counter),
            });
        }
        // Hashes and names look like keys now and then.
        let unknown = self
            .parts
            .iter()
            .filter(|part| part.scheme == "unknown")
            .count();
        if unknown * 2 > self.parts.len() {
            for part in &mut self.parts {
                *part = Part {
                    row: part.row,
                    scheme: "unknown",
                    millis: None,
                    node: None,
                    counter: None,
                };
            }
        }
        let mut shares: BTreeMap<&'static str, Share> = BTreeMap::new();
        for part in &self.parts {
            let share = shares.entry(part.scheme).or_insert(Share {
                scheme: part.scheme,
                count: 0,
                times: None,
            });
            share.count += 1;
            share.times = match (share.times, part.millis) {
                (Some((low, high)), Some(time)) => Some((low.min(time), high.max(time))),
                (None, Some(time)) => Some((time, time)),
                (times, None) => times,
            };
        }
        self.schemes = shares.into_values().collect();
        self.schemes
            .sort_by_key(|share| std::cmp::Reverse(share.count));
    }
}

fn millis(inspection: &Inspection) -> Option<i64> {
    let moment = inspection.moment?;
    i64::try_from(moment.unix_nanos.div_euclid(1_000_000)).ok()
}

fn candidates(
    value: &Value,
    swap: Option<Comparison>,
    integers: Integers,
    now: Timestamp,
) -> Vec<Inspection> {
    let of_bytes = |bytes: &[u8]| detect(Unknown::Bytes(bytes), now).candidates;
    match value {
        Value::Uuid(bytes) => of_bytes(bytes),
        Value::Bytes(bytes) => match <&[u8; 16]>::try_from(&bytes[..]) {
            Ok(bytes) => of_bytes(&unswapped(bytes, swap)),
            Err(_) => of_bytes(bytes),
        },
        Value::Text(text) => match uuid::Uuid::parse_str(text) {
            Ok(uuid) => of_bytes(uuid.as_bytes()),
            // Digits would be read as an integer that nobody has declared.
            Err(_) if text.bytes().all(|byte| byte.is_ascii_digit()) => Vec::new(),
            Err(_) => detect(Unknown::Text(text), now).candidates,
        },
        Value::Integer(number) if integers == Integers::LaidOut => {
            match (i64::try_from(*number), u64::try_from(*number)) {
                (Ok(number), _) => of_bytes(&number.to_be_bytes()),
                (_, Ok(number)) => of_bytes(&number.to_be_bytes()),
                _ => Vec::new(),
            }
        }
        Value::Integer(_) | Value::Real(_) | Value::Null => Vec::new(),
    }
}

/// Returns the UUID whose bytes a column stores in another order.
pub(crate) fn unswapped(bytes: &[u8; 16], swap: Option<Comparison>) -> [u8; 16] {
    match swap {
        Some(Comparison::UuidToBin) => bin_to_uuid(bytes),
        Some(Comparison::DotNetBytes) => guid::swap(bytes),
        _ => *bytes,
    }
}

/// Finds out whether 16 bytes are a permuted UUID: its version then stands elsewhere, and is the same in all.
fn swap<'a>(values: impl Iterator<Item = &'a Value>, now: Timestamp) -> Option<Comparison> {
    let keys: Vec<[u8; 16]> = values
        .filter_map(|value| match value {
            Value::Bytes(bytes) => <[u8; 16]>::try_from(&bytes[..]).ok(),
            _ => None,
        })
        .collect();
    if keys.len() < FEW {
        return None;
    }
    let of_one_version = [
        None,
        Some(Comparison::UuidToBin),
        Some(Comparison::DotNetBytes),
    ]
    .into_iter()
    .filter(|swap| {
        let mut versions = keys.iter().map(|key| version(&unswapped(key, *swap)));
        let first = versions.next().flatten();
        first.is_some() && versions.all(|version| version == first)
    });
    // The bytes of a time may look like a version, as long as it does not go on: then the time behind it is odd.
    let has_likely_times = |swap: &Option<Comparison>| {
        keys.iter().all(|key| {
            let read = detect(Unknown::Bytes(&unswapped(key, *swap)), now);
            let stated = read
                .candidates
                .iter()
                .find(|candidate| candidate.certainty == Certainty::Stated);
            let time = stated.and_then(millis);
            let now = i64::try_from(now.as_unix_millis()).unwrap_or(i64::MAX);
            time.is_some_and(|time| (EARLIEST..=now.saturating_add(DAY)).contains(&time))
        })
    };
    of_one_version
        .clone()
        .find(has_likely_times)
        .or_else(|| of_one_version.clone().next())
        .flatten()
}

fn version(bytes: &[u8; 16]) -> Option<usize> {
    let uuid = uuid::Uuid::from_bytes(*bytes);
    let is_rfc = uuid.get_variant() == uuid::Variant::RFC4122;
    is_rfc
        .then(|| uuid.get_version_num())
        .filter(|version| (1..=8).contains(version))
}

/// The scheme that integers may be of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Integers {
    /// Small, or one after the other.
    Counted,
    /// Hashes or random numbers: all over the range.
    Scattered,
    /// Possibly of a layout; or there are none.
    LaidOut,
}

fn integers<'a>(values: impl Iterator<Item = &'a Value>) -> Integers {
    let numbers = values.filter_map(|value| match value {
        Value::Integer(number) => Some(*number),
        _ => None,
    });
    let mut numbers: Vec<i128> = numbers.collect();
    numbers.sort_unstable();
    let (Some(low), Some(high)) = (numbers.first().copied(), numbers.last().copied()) else {
        return Integers::LaidOut;
    };
    let count = i128::try_from(numbers.len()).unwrap_or(i128::MAX);
    // A layout takes decades to come so far, and a counter has nothing in between.
    let range = i128::from(i64::MAX);
    let middle = numbers[numbers.len() / 2] - low;
    let is_between = middle > (high - low) / 5 && middle < (high - low) / 5 * 4;
    if numbers.len() >= FEW && high - low > range / 10 * 8 && is_between {
        Integers::Scattered
    } else if low < LOWEST_LAYOUT || (count > 1 && high - low < count * 2) {
        Integers::Counted
    } else {
        Integers::LaidOut
    }
}

/// The scheme that most likely made values which do not say so.
struct Guess {
    scheme: &'static str,
    also: Vec<&'static str>,
}

fn guess<'a>(
    values: impl Iterator<Item = (usize, &'a [Inspection])> + Clone,
    created: &[Option<i64>],
    counts: impl Fn(&Inspection) -> bool,
) -> Option<Guess> {
    /// Votes, the latest time, and how far times are from the rows' own, in all.
    struct Votes {
        scheme: &'static str,
        count: usize,
        newest: i64,
        distance: i128,
        compared: usize,
    }
    let total = values.clone().count();
    let mut votes: Vec<Votes> = Vec::new();
    for (row, candidates) in values {
        for candidate in candidates.iter().filter(|candidate| counts(candidate)) {
            let position = votes
                .iter()
                .position(|vote| vote.scheme == candidate.scheme);
            let position = position.unwrap_or_else(|| {
                votes.push(Votes {
                    scheme: candidate.scheme,
                    count: 0,
                    newest: i64::MIN,
                    distance: 0,
                    compared: 0,
                });
                votes.len() - 1
            });
            let vote = &mut votes[position];
            vote.count += 1;
            if let Some(time) = millis(candidate) {
                vote.newest = vote.newest.max(time);
                if let Some(created) = created.get(row).copied().flatten() {
                    vote.distance += (i128::from(time) - i128::from(created)).abs();
                    vote.compared += 1;
                }
            }
        }
    }
    let day = i128::from(DAY);
    let fits = |vote: &&Votes| total >= FEW.min(2) && vote.count * 10 >= total * 9;
    let near = |vote: &&Votes| {
        let compared = i128::try_from(vote.compared).unwrap_or(i128::MAX);
        vote.compared > 0 && vote.distance / compared < day
    };
    let fitting: Vec<&Votes> = votes.iter().filter(fits).collect();
    let nearest = fitting
        .iter()
        .copied()
        .filter(near)
        .min_by_key(|vote| vote.distance / day);
    // The first of equals, which is the catalogue's order. A table in use has keys of lately.
    let newest = || {
        let newest = fitting.iter().map(|vote| vote.newest / 1_000).max()?;
        fitting
            .iter()
            .copied()
            .find(|vote| vote.newest / 1_000 == newest)
    };
    let chosen = nearest.or_else(newest)?;
    Some(Guess {
        scheme: chosen.scheme,
        also: fitting
            .iter()
            .map(|vote| vote.scheme)
            .filter(|scheme| *scheme != chosen.scheme)
            .collect(),
    })
}

/// A value as its column compares it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Compared<'a> {
    Value(&'a Value),
    Bytes([u8; 16]),
    Folded(String),
}

fn compared<'a>(engine: Engine, column: &Column, value: &'a Value) -> Compared<'a> {
    let ignores_case = column
        .collation
        .as_ref()
        .is_some_and(|collation| collation.compares != Compares::Bytes);
    match value {
        Value::Uuid(bytes) if engine == Engine::Mariadb => {
            Compared::Bytes(Comparison::MariaDbUuid.sort_key(bytes))
        }
        Value::Text(text) if ignores_case => Compared::Folded(text.to_lowercase()),
        value => Compared::Value(value),
    }
}

/// Counts the rows that stand below the row before them, in the order of insertion. Of rows with the same place nobody
/// knows which came first.
fn steps_down(engine: Engine, column: &Column, rows: &[Row], at: usize) -> Option<(usize, usize)> {
    if matches!(column.kind, Kind::Time | Kind::Other) {
        return None;
    }
    let mut placed: Vec<(i128, Compared<'_>)> = rows
        .iter()
        .filter(|row| row.values[at] != Value::Null)
        .filter_map(|row| Some((row.place?, compared(engine, column, &row.values[at]))))
        .collect();
    if placed.len() < 2 {
        return None;
    }
    placed.sort();
    let down = placed
        .windows(2)
        .filter(|pair| pair[1].1 < pair[0].1)
        .count();
    Some((down, placed.len() - 1))
}

#[cfg(test)]
mod tests;
