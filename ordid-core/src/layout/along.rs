//! Time, count and random bits laid out along a comparison rule.
//!
//! ```text
//! compared first                                                      compared last
//! | time_bits: time | count_bits: count | the rest, but for fixed bits: random bits |
//! ```
//!
//! Some bits belong to no field, since the layout fixes them: version, variant, or a bit on which
//! two rules would disagree. The fields go around them.

use uuid::Uuid;

use super::Comparison;

/// The most runs of free bits that there are between fixed ones.
const MAX_RUNS: usize = 4;

/// Bits that are the same in all values of a layout, in network order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fixed {
    pub(crate) mask: u128,
    pub(crate) value: u128,
}

impl Fixed {
    pub(crate) const NONE: Self = Self { mask: 0, value: 0 };

    /// The version, 0 to 15, and nothing else.
    pub(crate) const fn version(version: u8) -> Self {
        Self {
            mask: 0xf << 76,
            value: (version as u128 & 0xf) << 76,
        }
    }

    /// The version and RFC 9562's variant.
    pub(crate) const fn rfc(version: u8) -> Self {
        let version = Self::version(version);
        Self {
            mask: version.mask | 0b11 << 62,
            value: version.value | 0b10 << 62,
        }
    }

    /// Fixes the bits of `mask` as zero too.
    pub(crate) const fn and_zero(self, mask: u128) -> Self {
        Self {
            mask: self.mask | mask,
            value: self.value & !mask,
        }
    }
}

/// Adjoining free bits of the sort key, and how far right of them they are in the laid out number.
#[derive(Debug, Clone, Copy)]
struct Run {
    mask: u128,
    shift: u32,
}

/// A layout whose fields follow a comparison rule from the bit it compares first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Along {
    comparison: Comparison,
    /// The fixed bits' value, as a sort key.
    fixed: u128,
    runs: [Run; MAX_RUNS],
    /// Free bits below the time.
    below_time: u32,
    /// Free bits below the count.
    random_bits: u32,
}

impl Along {
    /// Lays out a time and a count of so many bits; all free bits after them are random.
    ///
    /// # Panics
    ///
    /// If the fields do not fit, or the rule is MariaDB's, which compares only some values by
    /// segments. In a `const` this is a compile error.
    pub(crate) const fn new(
        comparison: Comparison,
        fixed: Fixed,
        time_bits: u32,
        count_bits: u32,
    ) -> Self {
        let mask = sort_key(comparison, fixed.mask);
        let mut runs = [Run { mask: 0, shift: 0 }; MAX_RUNS];
        let (mut bit, mut found, mut shift) = (0, 0, 0);
        // From the lowest bit, so that the fixed bits passed are those to step over.
        while bit < 128 {
            if mask >> bit & 1 == 1 {
                shift += 1;
                if runs[found].mask != 0 {
                    found += 1;
                }
            } else {
                runs[found].mask |= 1 << bit;
                runs[found].shift = shift;
            }
            bit += 1;
        }
        let free = 128 - mask.count_ones();
        assert!(time_bits <= 64 && time_bits + count_bits <= free);
        let random_bits = free - time_bits - count_bits;
        assert!(random_bits <= 64, "the engine draws at most 64 bits a key");
        Self {
            comparison,
            fixed: sort_key(comparison, fixed.value),
            runs,
            below_time: free - time_bits,
            random_bits,
        }
    }

    /// Returns how many random bits a value has.
    pub(crate) const fn random_bits(&self) -> u32 {
        self.random_bits
    }

    /// Lays the fields out. None may have more bits than its field.
    #[inline]
    pub(crate) const fn lay(&self, time: u64, count: u64, random: u64) -> [u8; 16] {
        debug_assert!(
            count as u128 >> (self.below_time - self.random_bits) == 0
                && random as u128 >> self.random_bits == 0
        );
        let below = (count as u128) << self.random_bits | random as u128;
        self.put((time as u128) << self.below_time | below)
    }

    /// Returns the lowest and the highest value of a span of time, both ends included.
    pub(crate) const fn ends(&self, first: u64, last: u64) -> (Uuid, Uuid) {
        let lowest = self.put((first as u128) << self.below_time);
        let all = (1 << self.below_time) - 1;
        let highest = self.put((last as u128) << self.below_time | all);
        (Uuid::from_bytes(lowest), Uuid::from_bytes(highest))
    }

    /// Puts a number into the free bits, its highest bit where the rule compares first.
    #[inline]
    const fn put(&self, number: u128) -> [u8; 16] {
        let mut key = self.fixed;
        let mut i = 0;
        while i < MAX_RUNS {
            key |= number << self.runs[i].shift & self.runs[i].mask;
            i += 1;
        }
        of_sort_key(self.comparison, key)
    }
}

const fn sort_key(comparison: Comparison, value: u128) -> u128 {
    assert!(!matches!(comparison, Comparison::MariaDbUuid));
    u128::from_be_bytes(comparison.sort_key(&value.to_be_bytes()))
}

/// The inverse of [`sort_key`].
#[inline]
const fn of_sort_key(comparison: Comparison, key: u128) -> [u8; 16] {
    comparison.from_sort_key(&key.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RULES: [Comparison; 3] = [
        Comparison::Bytes,
        Comparison::SqlServer,
        Comparison::DotNetBytes,
    ];
    const FIXED: [Fixed; 4] = [
        Fixed::NONE,
        Fixed::version(4),
        Fixed::rfc(8),
        Fixed::rfc(4).and_zero(0xf << 72),
    ];

    /// Bit by bit: what `put` does in runs.
    fn put_slowly(comparison: Comparison, fixed: Fixed, number: u128) -> [u8; 16] {
        let mask = sort_key(comparison, fixed.mask);
        let mut key = sort_key(comparison, fixed.value);
        let mut taken = 0;
        for bit in 0..128 {
            if mask >> bit & 1 == 0 {
                key |= (number >> taken & 1) << bit;
                taken += 1;
            }
        }
        of_sort_key(comparison, key)
    }

    proptest! {
        #[test]
        fn fields_follow_the_rule_around_the_fixed_bits(
            (time, count, random) in any::<(u64, u64, u64)>(),
        ) {
            for comparison in RULES {
                for fixed in FIXED {
                    let along = Along::new(comparison, fixed, 48, 22);
                    let (time, count) = (time >> 16, count >> 42);
                    let random = random >> (64 - along.random_bits());
                    let number = u128::from(time) << along.below_time
                        | u128::from(count) << along.random_bits()
                        | u128::from(random);
                    let bytes = along.lay(time, count, random);
                    prop_assert_eq!(bytes, put_slowly(comparison, fixed, number));
                    prop_assert_eq!(u128::from_be_bytes(bytes) & fixed.mask, fixed.value);
                    let (lowest, highest) = along.ends(time, time);
                    let key = |bytes| comparison.sort_key(bytes);
                    prop_assert!(key(lowest.as_bytes()) <= key(&bytes));
                    prop_assert!(key(&bytes) <= key(highest.as_bytes()));
                }
            }
        }

        #[test]
        fn values_rise_under_the_rule_as_their_fields_do(
            left in any::<(u64, u16, u32)>(), right in any::<(u64, u16, u32)>(),
        ) {
            for comparison in RULES {
                for fixed in FIXED {
                    let along = Along::new(comparison, fixed, 48, 16);
                    let fields = |(time, count, random): (u64, u16, u32)| {
                        (time >> 16, u64::from(count), u64::from(random))
                    };
                    let key = |(time, count, random)| {
                        comparison.sort_key(&along.lay(time, count, random))
                    };
                    let (left, right) = (fields(left), fields(right));
                    prop_assert_eq!(key(left).cmp(&key(right)), left.cmp(&right));
                }
            }
        }
    }

    #[test]
    fn sql_servers_free_bits_of_version_8_are_where_its_table_says() {
        let along = Along::new(Comparison::SqlServer, Fixed::rfc(8), 48, 22);
        let text = |time, count, random| {
            uuid::Uuid::from_bytes(along.lay(time, count, random)).to_string()
        };
        assert_eq!(along.random_bits(), 52);
        assert_eq!(
            text((1 << 48) - 1, 0, 0),
            "00000000-0000-8000-8000-ffffffffffff"
        );
        // 14 bits beside the variant, then the byte after the version's.
        assert_eq!(
            text(0, 0x3f_ff00, 0),
            "00000000-0000-8000-bfff-000000000000"
        );
        assert_eq!(text(0, 0xff, 0), "00000000-0000-80ff-8000-000000000000");
        assert_eq!(
            text(0, 0, 0xf << 48),
            "00000000-0000-8f00-8000-000000000000"
        );
        assert_eq!(
            text(0, 0, 0xff << 40),
            "00000000-00ff-8000-8000-000000000000"
        );
        assert_eq!(text(0, 0, 0xff), "ff000000-0000-8000-8000-000000000000");
    }

    #[test]
    #[should_panic(expected = "at most 64 bits")]
    fn more_random_bits_than_the_engine_draws_are_refused() {
        let _ = Along::new(Comparison::Bytes, Fixed::NONE, 48, 15);
    }
}
