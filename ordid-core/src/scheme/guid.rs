//! What the schemes for GUID columns share.

use core::cmp::Ordering;

use uuid::Uuid;

use crate::{
    clock::{Moment, TimeScale, Timestamp},
    error::Error,
    key::Scheme,
    layout::Comparison,
    scheme::anatomy::{Certainty, fits},
};

/// Keys of one unit of time: 1,048,576.
pub(super) const INDEX_BITS: u32 = 20;
/// Unpredictable bits of the count's start.
pub(super) const SEED_BITS: u32 = 21;
/// The count, with one bit more, which begins as zero.
pub(super) const COUNT_BITS: u32 = SEED_BITS + 1;

/// Compares by a rule.
pub(super) fn cmp(rule: Comparison, left: &Uuid, right: &Uuid) -> Ordering {
    rule.sort_key(left.as_bytes())
        .cmp(&rule.sort_key(right.as_bytes()))
}

/// The place of the six bytes of the time in a GUID that has ten other bytes. The other bytes are in
/// wire order in every case.
#[derive(Clone, Copy)]
pub(super) enum TimeAt {
    FirstInText,
    FirstOnWire,
    End,
}

impl TimeAt {
    /// Puts a GUID together.
    pub(super) fn pack(self, time: u64, rest: [u8; 10]) -> Uuid {
        let [_, _, time @ ..] = time.to_be_bytes();
        let mut wire = [0; 16];
        wire[..6].copy_from_slice(&time);
        wire[6..].copy_from_slice(&rest);
        match self {
            Self::FirstInText => reverse_groups(&mut wire),
            Self::FirstOnWire => {}
            Self::End => wire.rotate_left(6),
        }
        Uuid::from_bytes_le(wire)
    }

    /// The inverse of [`pack`](Self::pack).
    pub(super) fn unpack(self, raw: &Uuid) -> (u64, [u8; 10]) {
        let mut wire = raw.to_bytes_le();
        match self {
            Self::FirstInText => reverse_groups(&mut wire),
            Self::FirstOnWire => {}
            Self::End => wire.rotate_right(6),
        }
        let [t0, t1, t2, t3, t4, t5, rest @ ..] = wire;
        (u64::from_be_bytes([0, 0, t0, t1, t2, t3, t4, t5]), rest)
    }
}

/// Reverses the first two groups of the text, and not the third, as the originals do: its two random
/// bytes stay where .NET has them.
fn reverse_groups(wire: &mut [u8; 16]) {
    wire[..4].reverse();
    wire[4..6].reverse();
}

/// Returns the Unix milliseconds in the last six bytes.
pub(super) fn millis_at_end(raw: &Uuid) -> u64 {
    let (_, low) = raw.as_u64_pair();
    low & ((1 << 48) - 1)
}

/// Returns .NET's ticks of a time, if they fit 63 bits, which the field of this name has.
pub(super) fn dotnet_ticks<S: Scheme>(
    field: &'static str,
    timestamp: Timestamp,
    nanos: u32,
) -> Result<u64, Error> {
    let ticks = TimeScale::DOTNET_TICKS.ticks_at(timestamp.as_unix_millis(), nanos);
    // Timestamps end in the year 10889, 64 bits of ticks after it.
    let ticks = ticks.unwrap_or(u64::MAX);
    fits::<S>(field, ticks, 63).map(|()| ticks)
}

/// How surely a value is of a scheme that its time alone can tell. Of random values, about one in a
/// hundred has a time of this century in 48 bits of milliseconds.
pub(super) fn certainty(moment: Moment) -> Certainty {
    const BEGIN: u64 = 946_684_800_000; // 2000-01-01
    const END: u64 = 4_102_444_800_000; // 2100-01-01
    let is_likely = moment
        .timestamp()
        .is_some_and(|at| (BEGIN..END).contains(&at.as_unix_millis()));
    if is_likely {
        Certainty::Likely
    } else {
        Certainty::Possible
    }
}
