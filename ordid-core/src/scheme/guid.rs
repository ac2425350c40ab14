//! What the schemes for GUID columns share.

use core::cmp::Ordering;

use uuid::Uuid;

use crate::{clock::Moment, layout::Comparison, scheme::anatomy::Certainty};

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
