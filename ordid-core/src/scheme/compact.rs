//! The shortest integer keys for a need: a layout that is computed from years, rate and nodes.
//!
//! ```text
//!  63              n                                                0
//! +----------------+------------------------+-----------+------------+
//! |       0        |          time          |   node    |  sequence  |
//! +----------------+------------------------+-----------+------------+
//! ```
//!
//! From a [`Need`] (how many years, how many ids a second at most, how many nodes), [`CompactLayout::for_need`] finds
//! the unit of time, between 1 ms and 2 s, with which keys have the fewest bits. Of several such units it takes the
//! finest. Twenty years of two ids a second need 31 bits, which fit a positive `INTEGER`. JavaScript and JSON readers
//! take up to 53 bits without loss.
//!
//! A [`Compact`] of your [`CompactNeed`] is the [`Snowflake`](super::Snowflake) of such a layout.
//! [`snowflake`](super::snowflake) describes keys, generators and ranges, and how to keep nodes and restarts apart.
//! Whoever knows one key can predict the next one.
//!
//! If more ids than [`Need::ids_per_second`] are made, they run ahead of the clock or wait, by the generator's
//! [`Policy`](crate::generator::Policy). After [`ends_at_unix_millis`](CompactLayout::ends_at_unix_millis) every call
//! is an error. A key of the next layout is one bit longer, and above all keys of this one if the epoch is the same.

use core::marker::PhantomData;

use crate::{error::Error, scheme::snowflake::SnowflakeLayout};

/// The longest unit of time, in milliseconds. An id a second still has a bit of sequence there.
const LONGEST_UNIT: u32 = 2_000;
/// The most bits of a sequence that generators use.
const MOST_SEQUENCE_BITS: u32 = 24;
/// The mean of the Gregorian calendar: 365.2425 days.
const YEAR_MILLIS: u128 = 31_556_952_000;

/// What a [`CompactLayout`] has to provide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    /// The time from which ids are made, in milliseconds since 1970-01-01T00:00:00Z.
    pub from_unix_millis: i64,
    /// The number of years, of 365.2425 days, for which ids are made.
    pub years: u32,
    /// The largest number of ids that one node makes in a second.
    pub ids_per_second: u32,
    /// The number of nodes that make ids at the same time.
    pub nodes: u32,
}

/// The shortest layout for a [`Need`].
///
/// # Example: a table of invoices
///
/// ```
/// use ordid_core::scheme::compact::{CompactLayout, Need};
///
/// const LAYOUT: CompactLayout = CompactLayout::for_need(Need {
///     from_unix_millis: 1_767_225_600_000, // 2026
///     years: 20,
///     ids_per_second: 2,
///     nodes: 1,
/// });
/// assert_eq!(LAYOUT.bits(), 31);
/// assert_eq!(LAYOUT.unit_millis(), 588);
/// assert_eq!(LAYOUT.ends_at_unix_millis(), 2_398_585_792_512); // 2046-01-03
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompactLayout {
    epoch_unix_millis: i64,
    unit_millis: u32,
    time_bits: u32,
    node_bits: u32,
    sequence_bits: u32,
}

impl CompactLayout {
    /// Finds the shortest layout.
    ///
    /// # Panics
    ///
    /// In the cases in which [`try_for_need`](Self::try_for_need) fails. In a `const` this is a compile error.
    pub const fn for_need(need: Need) -> Self {
        match Self::find(need) {
            Ok(layout) => layout,
            Err(why) => panic!("{}", why),
        }
    }

    /// As [`for_need`](Self::for_need), for a need that is only known at run time.
    ///
    /// # Errors
    ///
    /// If no layout of at most 63 bits meets the need, or if years, ids or nodes are zero; the error
    /// [`is_unsupported`](Error::is_unsupported).
    pub fn try_for_need(need: Need) -> Result<Self, Error> {
        Self::find(need).map_err(|why| Error::unsupported(alloc::format!("{why}: {need:?}")))
    }

    const fn find(need: Need) -> Result<Self, &'static str> {
        if need.years == 0 || need.ids_per_second == 0 || need.nodes == 0 {
            return Err("a compact layout needs at least one year, one id a second and one node");
        }
        let node_bits = bits_of(need.nodes as u128);
        let millis = need.years as u128 * YEAR_MILLIS;
        let mut best: Option<Self> = None;
        let mut unit_millis = 1;
        while unit_millis <= LONGEST_UNIT {
            let unit = unit_millis as u128;
            let ids = (need.ids_per_second as u128 * unit).div_ceil(1_000);
            let found = Self {
                epoch_unix_millis: need.from_unix_millis,
                unit_millis,
                time_bits: bits_of(millis.div_ceil(unit)),
                node_bits,
                sequence_bits: bits_of(ids),
            };
            // Without a sequence, a clock that steps back by a unit would look like a full one.
            let is_usable = found.sequence_bits >= 1 && found.sequence_bits <= MOST_SEQUENCE_BITS;
            let is_shorter = match &best {
                None => true,
                Some(best) => found.bits() < best.bits(),
            };
            if is_usable && is_shorter {
                best = Some(found);
            }
            unit_millis += 1;
        }
        match best {
            Some(best) if best.bits() <= 63 => Ok(best),
            _ => Err("a compact layout has at most 63 bits: need fewer years, ids or nodes"),
        }
    }

    /// Returns the number of bits of a key.
    pub const fn bits(self) -> u32 {
        self.time_bits + self.node_bits + self.sequence_bits
    }

    /// Returns the length of a tick in milliseconds.
    pub const fn unit_millis(self) -> u32 {
        self.unit_millis
    }

    /// Returns the number of bits of the time, in ticks.
    pub const fn time_bits(self) -> u32 {
        self.time_bits
    }

    /// Returns the number of bits of the node.
    pub const fn node_bits(self) -> u32 {
        self.node_bits
    }

    /// Returns the number of bits of the sequence.
    pub const fn sequence_bits(self) -> u32 {
        self.sequence_bits
    }

    /// Returns when the first tick begins, in milliseconds since 1970-01-01T00:00:00Z.
    pub const fn epoch_unix_millis(self) -> i64 {
        self.epoch_unix_millis
    }

    /// Returns when the last tick ends, in milliseconds since 1970-01-01T00:00:00Z. From then on no id can be made.
    /// At most `i64::MAX`.
    pub const fn ends_at_unix_millis(self) -> i64 {
        let ticks = 1_i64 << self.time_bits;
        self.epoch_unix_millis
            .saturating_add(ticks.saturating_mul(self.unit_millis as i64))
    }
}

/// How many bits tell so many apart.
const fn bits_of(count: u128) -> u32 {
    128 - count.saturating_sub(1).leading_zeros()
}

/// A named [`Need`], for which [`Compact`] is the layout.
pub trait CompactNeed: 'static {
    /// The scheme's name.
    const NAME: &'static str;
    /// The need that the layout has to meet.
    const NEED: Need;
}

/// A need given by numbers, so that a key type's attribute can state it:
/// `compact(from = "2026-01-01", years = 20, ids_per_second = 2, nodes = 1)`. Its scheme's name is `compact`.
///
/// # Example
///
/// ```
/// use ordid_core::scheme::{Compact, compact::Needs};
///
/// const LAYOUT: ordid_core::scheme::compact::CompactLayout =
///     Compact::<Needs<1_767_225_600_000, 20, 2, 1>>::LAYOUT;
/// assert_eq!(LAYOUT.bits(), 31);
/// assert_eq!(LAYOUT.ends_at_unix_millis(), 2_398_585_792_512); // 2046-01-03
/// ```
#[derive(Debug)]
pub enum Needs<
    const FROM_UNIX_MILLIS: i64,
    const YEARS: u32,
    const IDS_PER_SECOND: u32,
    const NODES: u32,
> {}

impl<const FROM: i64, const YEARS: u32, const IDS: u32, const NODES: u32> CompactNeed
    for Needs<FROM, YEARS, IDS, NODES>
{
    const NAME: &'static str = "compact";
    const NEED: Need = Need {
        from_unix_millis: FROM,
        years: YEARS,
        ids_per_second: IDS,
        nodes: NODES,
    };
}

/// The layout for a [`CompactNeed`]; [`Snowflake`](super::Snowflake) makes it a scheme.
///
/// # Example: the keys of a small table
///
/// ```
/// # #[cfg(feature = "test-util")] {
/// use ordid_core::{
///     clock::ManualClock, entropy::SeededEntropy, generator::{Generator, Policy},
///     scheme::{
///         Compact,
///         compact::{CompactNeed, Need},
///         snowflake::{SnowflakeGenerator, SnowflakeNode},
///     },
/// };
///
/// enum Invoices {}
///
/// impl CompactNeed for Invoices {
///     const NAME: &'static str = "invoices";
///     const NEED: Need = Need {
///         from_unix_millis: 1_767_225_600_000,
///         years: 20,
///         ids_per_second: 2,
///         nodes: 1,
///     };
/// }
///
/// let node = SnowflakeNode::<Compact<Invoices>>::new(0)?;
/// let clock = ManualClock::at_unix_millis(1_767_225_600_000 + 86_400_000);
/// let keys = SnowflakeGenerator::with_node(node, clock, SeededEntropy::new(1), Policy::DEFAULT);
/// assert_eq!(keys.try_generate()?.into_raw(), 293_876);
/// assert_eq!(keys.try_generate()?.into_raw(), 293_877);
/// # }
/// # Ok::<(), ordid_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Compact<N>(PhantomData<fn() -> N>);

impl<N: CompactNeed> Compact<N> {
    /// The computed layout.
    pub const LAYOUT: CompactLayout = CompactLayout::for_need(N::NEED);
}

impl<N: CompactNeed> SnowflakeLayout for Compact<N> {
    const NAME: &'static str = N::NAME;
    const EPOCH_UNIX_MILLIS: i64 = Self::LAYOUT.epoch_unix_millis;
    const UNIT_MILLIS: u32 = Self::LAYOUT.unit_millis;
    const TIME_BITS: u32 = Self::LAYOUT.time_bits;
    const NODE_BITS: u32 = Self::LAYOUT.node_bits;
    const SEQUENCE_BITS: u32 = Self::LAYOUT.sequence_bits;
}

#[cfg(test)]
#[cfg(not(loom))]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::scheme::{
        Snowflake,
        snowflake::SnowflakeNode,
        testing::{ends_after, scripted_at},
    };

    /// What the laws are tried on.
    pub(in crate::scheme) enum Orders {}

    impl CompactNeed for Orders {
        const NAME: &'static str = "compact_orders";
        const NEED: Need = Need {
            from_unix_millis: 1_640_995_200_000,
            years: 30,
            ids_per_second: 10_000,
            nodes: 3,
        };
    }

    fn need(years: u32, ids_per_second: u32, nodes: u32) -> Need {
        Need {
            from_unix_millis: 1_767_225_600_000,
            years,
            ids_per_second,
            nodes,
        }
    }

    #[test]
    fn more_than_63_bits_and_nothing_at_all_are_refused() {
        for need in [
            need(u32::MAX, u32::MAX, u32::MAX),
            need(1_000, 1_000_000, 1_000_000),
            need(0, 1, 1),
            need(1, 0, 1),
            need(1, 1, 0),
        ] {
            let error = CompactLayout::try_for_need(need).unwrap_err();
            assert!(error.is_unsupported(), "{error}");
        }
        let error = CompactLayout::try_for_need(need(1, 1, 0)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a compact layout needs at least one year, one id a second and one node: Need { \
             from_unix_millis: 1767225600000, years: 1, ids_per_second: 1, nodes: 0 }"
        );
    }

    #[test]
    fn compact_ids_end_with_an_error() {
        let layout = Compact::<Orders>::LAYOUT;
        let end = u64::try_from(layout.ends_at_unix_millis()).unwrap();
        let node = SnowflakeNode::<Compact<Orders>>::new(3).unwrap();
        let generator = scripted_at::<Snowflake<Compact<Orders>>>(node, end - 1);
        let last = ends_after(&generator, end - 1);
        assert_eq!(last >> (layout.bits() - 1), 1, "all bits are used");
        assert!(SnowflakeNode::<Compact<Orders>>::new(4).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_layout_meets_its_need_and_no_bit_more(
            years in 1..200_u32,
            ids_per_second in 1..2_000_000_u32,
            nodes in 1..5_000_u32,
        ) {
            let need = need(years, ids_per_second, nodes);
            let Ok(layout) = CompactLayout::try_for_need(need) else {
                return Err(TestCaseError::reject("more than 63 bits"));
            };
            let asked = u128::from(years) * YEAR_MILLIS;
            let lasts = layout.ends_at_unix_millis() - need.from_unix_millis;
            prop_assert!(u128::try_from(lasts).unwrap() >= asked);
            let a_unit = 1_u128 << layout.sequence_bits();
            let a_second = a_unit * 1_000 / u128::from(layout.unit_millis());
            prop_assert!(a_second >= u128::from(ids_per_second));
            prop_assert!(1_u64 << layout.node_bits() >= u64::from(nodes));
            prop_assert!(layout.bits() <= 63 && layout.sequence_bits() >= 1);
            // As many ids as are asked for do not fit one bit less, but for the rounding of each.
            let ids = asked * u128::from(ids_per_second) / 1_000;
            prop_assert!(1_u128 << (layout.bits() - layout.node_bits()) <= ids * 2 * 2);
        }
    }
}
