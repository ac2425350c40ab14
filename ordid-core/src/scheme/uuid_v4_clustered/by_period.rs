//! The period as a type, so that a key type can name it.

use core::num::NonZeroU32;

use super::{Clustered, Clusters, Period, sealed::Sealed};
#[cfg(all(feature = "std", not(loom)))]
use crate::{
    clock::Timestamp,
    error::Error,
    generator::{Generator as _, ordered::no_key, per_type::per_type},
    key::{Generated, StaticScheme},
    scheme::{
        random::{ProcessClock, ProcessEntropy},
        uuid_v4_clustered::ClusteredGenerator,
    },
};

/// The period of a key type's keys: `#[ordid(scheme = uuid_v4_clustered(period = Minute))]`.
///
/// # Example: Percona's weeks in India's time
///
/// ```
/// use ordid_core::{
///     key::StaticScheme,
///     scheme::{UuidV4Clustered, uuid_v4_clustered::{ByPeriod, Clustering, Clusters, Period}},
/// };
///
/// enum Kolkata {}
///
/// impl Clustering for Kolkata {
///     const CLUSTERS: Clusters = Clusters { period: Period::Week, utc_offset_minutes: 330 };
/// }
///
/// let key = ByPeriod::<UuidV4Clustered, Kolkata>::generate();
/// assert_eq!(key.into_raw().get_version_num(), 4);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a period of `uuid_v4_clustered` keys",
    label = "not a period",
    note = "take one of `ordid::scheme::uuid_v4_clustered`, `Week`, `Minute` or `Seconds<3600>`, or \
            implement `Clustering` for `{Self}`"
)]
pub trait Clustering: 'static {
    /// The period, and the offset of local time.
    const CLUSTERS: Clusters;

    /// Why it cannot be one: what does not compile then.
    #[doc(hidden)]
    const MISTAKE: Option<&'static str> = None;
}

macro_rules! periods {
    ($(
        $(#[$attribute:meta])*
        $name:ident $(<const $seconds:ident: u32>)? = $period:expr $(, $mistake:expr)?;
    )+) => {
        $(
            $(#[$attribute])*
            #[derive(Debug)]
            pub enum $name $(<const $seconds: u32>)? {}

            impl $(<const $seconds: u32>)? Clustering for $name $(<$seconds>)? {
                const CLUSTERS: Clusters = Clusters {
                    period: $period,
                    ..Clusters::DEFAULT
                };
                $(const MISTAKE: Option<&'static str> = $mistake;)?
            }
        )+
    };
}

periods! {
    /// [`Period::Week`] in UTC.
    Week = Period::Week;

    /// [`Period::MINUTE`] in UTC.
    Minute = Period::MINUTE;

    /// A number of seconds in UTC, at least one. Zero does not compile.
    Seconds<const SECONDS: u32> =
        Period::Seconds(NonZeroU32::new(SECONDS).expect(NO_SECOND)),
        if SECONDS == 0 { Some(NO_SECOND) } else { None };
}

const NO_SECOND: &str = "a period has at least a second: `Seconds<3600>`";

settled! {
    /// The scheme `S`, [`UuidV4Clustered`](super::UuidV4Clustered) or
    /// [`UuidV4ClusteredCompat`](super::UuidV4ClusteredCompat). Its process-wide keys share prefixes by the
    /// [`Clustering`] `P`.
    ///
    /// Pass the same value to a generator of your own: `ClusteredGenerator::new(clock, entropy, P::CLUSTERS)`.
    ByPeriod
}

impl<S: Clustered, P: Clustering> Clustered for ByPeriod<S, P> {}

impl<S: Clustered, P: Clustering> Sealed for ByPeriod<S, P> {
    fn below(bits: u128) -> uuid::Uuid {
        S::below(bits)
    }
}

#[cfg(all(feature = "std", not(loom)))]
impl<S: Clustered, P: Clustering> ByPeriod<S, P> {
    fn process_wide() -> &'static ClusteredGenerator<Self, ProcessClock, ProcessEntropy> {
        per_type(|| ClusteredGenerator::new(ProcessClock, ProcessEntropy, P::CLUSTERS))
    }
}

#[cfg(all(feature = "std", not(loom)))]
impl<S: Clustered, P: Clustering> StaticScheme for ByPeriod<S, P> {
    type Reserved = core::iter::Take<core::iter::RepeatWith<fn() -> Generated<Self>>>;

    fn generate() -> Generated<Self> {
        match Self::process_wide().try_generate() {
            Ok(key) => key,
            Err(error) => no_key(&error),
        }
    }

    fn generate_at(timestamp: Timestamp) -> Result<Generated<Self>, Error> {
        Self::process_wide().generate_at(timestamp)
    }

    fn fill_with(count: usize, put: impl FnMut(Generated<Self>)) {
        if let Err(error) = Self::process_wide().try_fill_with(count, put) {
            no_key(&error);
        }
    }

    fn reserve(count: usize) -> Result<Self::Reserved, Error> {
        Ok(core::iter::repeat_with(Self::generate as fn() -> _).take(count))
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::{
        key::Scheme,
        scheme::{Layout, UuidV4Clustered, UuidV4ClusteredCompat},
    };

    enum HoursWest {}

    impl Clustering for HoursWest {
        const CLUSTERS: Clusters = Clusters {
            period: Seconds::<3_600>::CLUSTERS.period,
            utc_offset_minutes: -120,
        };
    }

    const TIME: u64 = 1_709_251_259_999;

    fn prefix<S: StaticScheme + Clustered>() -> u16 {
        let time = Timestamp::from_unix_millis(TIME).unwrap();
        let raw = S::generate_at(time).unwrap().into_raw();
        assert!(S::check(&raw));
        S::unpack(&raw).unwrap().prefix
    }

    #[test]
    fn keys_of_the_process_share_the_prefix_of_their_period() {
        let time = Timestamp::from_unix_millis(TIME).unwrap();
        type By<P> = ByPeriod<UuidV4Clustered, P>;
        let week = Clusters::DEFAULT.prefix_at(time);
        assert_eq!(prefix::<By<Week>>(), week);
        assert_eq!(prefix::<ByPeriod<UuidV4ClusteredCompat, Week>>(), week);
        assert_eq!(prefix::<UuidV4Clustered>(), week);
        let [minute, hours] = [Minute::CLUSTERS, HoursWest::CLUSTERS].map(|it| it.prefix_at(time));
        assert_eq!(prefix::<By<Minute>>(), minute);
        assert_eq!(prefix::<By<Seconds<60>>>(), minute);
        assert_eq!(prefix::<By<HoursWest>>(), hours);
        assert!(week != minute && minute != hours && week != hours);
    }

    #[test]
    fn every_way_to_make_keys_has_the_prefix_of_now() {
        /// Longer than any test: all is one period.
        type Long = ByPeriod<UuidV4ClusteredCompat, Seconds<{ u32::MAX }>>;
        let mut keys = alloc::vec![Long::generate().into_raw()];
        Long::fill_with(100, |key| keys.push(key.into_raw()));
        keys.extend(Long::reserve(10).unwrap().map(Generated::into_raw));
        assert_eq!(keys.len(), 111);
        let prefixes = keys.iter().map(|key| Long::unpack(key).unwrap().prefix);
        assert_eq!(
            prefixes.collect::<std::collections::HashSet<_>>().len(),
            1,
            "{keys:?}"
        );
        assert_eq!(
            keys.iter().collect::<std::collections::HashSet<_>>().len(),
            111
        );
        assert!(keys.iter().any(|key| !UuidV4Clustered::check(key)));
    }
}
