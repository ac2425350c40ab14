//! Keys whose scheme is known only at run time, for tools.

use alloc::{boxed::Box, format, string::String, sync::Arc, vec::Vec};
use core::{cmp::Ordering, fmt, hash, marker::PhantomData, ops::Range};

#[cfg(feature = "named")]
use uuid::Uuid;

use super::{super::*, CATALOGUE, Entry};
use crate::{
    clock::{Clock, Timestamp},
    entropy::ThreadEntropy,
    error::Error,
    generator::{Generator as _, OrderedGenerator, Policy, Slotted},
    key::{BinaryForm, RawKey, Scheme, StaticScheme},
    layout::Orders,
    storage::column::any::AnyColumn,
};

/// The longest raw key.
const MAX_LENGTH: usize = 24;

/// Returns the scheme with this name. `-` may stand for `_`.
///
/// # Example: a key of a scheme that a user has named
///
/// ```
/// use ordid_core::{clock::Timestamp, scheme::catalogue};
///
/// let scheme = catalogue::find("uuid-v7").expect("there is such a scheme");
/// let key = scheme.parse(None, "017f22e2-79b0-7cc3-98c4-dc0c0c07398f")?;
/// assert_eq!(key.timestamp(), Some(Timestamp::from_unix_millis(0x017f_22e2_79b0)?));
///
/// let columns = scheme.columns();
/// let column = columns.iter().find(|it| (it.dialect, it.name) == ("PostgreSQL", "uuid"));
/// let column = column.expect("PostgreSQL has that column");
/// assert!(scheme.orders().contains(column.comparison));
/// assert_eq!(column.literal(&key)?, "'017f22e2-79b0-7cc3-98c4-dc0c0c07398f'::uuid");
/// # Ok::<(), ordid_core::Error>(())
/// ```
pub fn find(name: &str) -> Option<&'static Entry> {
    let name = name.replace('-', "_");
    CATALOGUE.iter().find(|entry| entry.name == name)
}

impl Entry {
    /// Returns the comparison rules under which keys rise.
    pub fn orders(&self) -> Orders {
        self.scheme.orders()
    }

    /// Returns the type of the raw keys.
    pub fn raw(&self) -> RawForm {
        self.scheme.raw()
    }

    /// Reads a key's canonical text.
    ///
    /// # Errors
    /// Any other text gives an error that [`is_parse`](Error::is_parse). The text of a key of another scheme gives
    /// one that [`is_layout`](Error::is_layout).
    /// [`is_layout`](Error::is_layout).
    pub fn parse(&'static self, prefix: Option<&str>, text: &str) -> Result<AnyKey, Error> {
        self.scheme.parse(prefix, text).map(|raw| self.of(raw))
    }

    /// Reads the bytes of a raw key, most significant first.
    ///
    /// # Errors
    ///
    /// A wrong number of bytes gives an error that [`is_parse`](Error::is_parse). A key of another scheme gives one
    /// that [`is_layout`](Error::is_layout).
    pub fn key_of(&'static self, bytes: &[u8]) -> Result<AnyKey, Error> {
        self.scheme.checked(bytes).map(|raw| self.of(raw))
    }

    /// Computes the key of a name in a namespace; `None` if the scheme does not compute keys from names.
    #[cfg(feature = "named")]
    pub fn key_of_name(&'static self, namespace: &Uuid, name: &[u8]) -> Option<AnyKey> {
        let named = self.named?;
        Some(self.of(raw_of(named(namespace, name))))
    }

    /// Returns a generator with this node, if the scheme has nodes, and with this clock, if its keys have a time.
    ///
    /// Without a node number, a scheme whose node may be random gets a random one.
    ///
    /// # Errors
    ///
    /// Returns an error that [`is_unsupported`](Error::is_unsupported) if only a store, a name or another system
    /// makes such keys, if a node is given and the scheme has none, or if the scheme needs one and none is given.
    /// Returns an error that [`is_layout`](Error::is_layout) if the number is too large.
    pub fn generator(
        &'static self,
        node: Option<u64>,
        clock: Arc<dyn Clock>,
    ) -> Result<AnyGenerator, Error> {
        let generator = self.generator.map_err(|maker| {
            Error::unsupported(format!(
                "keys of {} are not made by a generator: {maker}",
                self.name
            ))
        })?;
        let make = generator(node, clock)?;
        Ok(AnyGenerator { entry: self, make })
    }

    /// Returns the range of keys for a range of time, or one range for each bucket if the scheme spreads its keys. A
    /// range is the lowest key at its start and the lowest key at its end, which is excluded. Returns `None` if the
    /// scheme's keys are not ordered by a time in them.
    ///
    /// # Errors
    ///
    /// An end that does not fit the layout gives an error that [`is_clock`](Error::is_clock).
    pub fn ranges(
        &'static self,
        times: Range<Timestamp>,
    ) -> Option<Result<Vec<Range<AnyKey>>, Error>> {
        let ranges = (self.ranges?)(times);
        let keys = |range: Range<Raw>| self.of(range.start)..self.of(range.end);
        Some(ranges.map(|ranges| ranges.into_iter().map(keys).collect()))
    }

    /// Returns whether the scheme's keys are ordered by a time in them, so that [`ranges`](Self::ranges) returns
    /// some.
    pub fn has_ranges(&self) -> bool {
        self.ranges.is_some()
    }

    /// Returns the highest key of a millisecond in each bucket; `None` in the cases of [`ranges`](Self::ranges).
    ///
    /// # Errors
    ///
    /// As [`ranges`](Self::ranges).
    pub fn highest_at(&'static self, time: Timestamp) -> Option<Result<Vec<AnyKey>, Error>> {
        let highest = (self.highest?)(time);
        Some(highest.map(|keys| keys.into_iter().map(|raw| self.of(raw)).collect()))
    }

    /// Returns the columns of all dialects that store the scheme's keys.
    pub fn columns(&self) -> Vec<AnyColumn> {
        let raw = self.scheme.raw();
        let mut columns = AnyColumn::all();
        columns.retain(|column| column.raw == raw);
        columns
    }

    pub(super) fn of(&'static self, raw: Raw) -> AnyKey {
        AnyKey { entry: self, raw }
    }
}

/// The type of a raw key. The names are not those of the types: the compiler's messages would then write these with their paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RawForm {
    /// 16 bytes: a UUID.
    Bytes16,
    /// A signed integer.
    I64,
    /// An unsigned integer.
    U64,
    /// 12 bytes: an ObjectId.
    Bytes12,
    /// 15 bytes: a push id.
    Bytes15,
    /// 24 bytes.
    Bytes24,
}

impl RawForm {
    pub(crate) const fn of<R: RawKey>() -> Self {
        match (R::BINARY, size_of::<R::Bytes>()) {
            (BinaryForm::I64, _) => Self::I64,
            (BinaryForm::U64, _) => Self::U64,
            (BinaryForm::Bytes, 12) => Self::Bytes12,
            (BinaryForm::Bytes, 15) => Self::Bytes15,
            (BinaryForm::Bytes, 16) => Self::Bytes16,
            (BinaryForm::Bytes, _) => Self::Bytes24,
        }
    }
}

/// The bytes of a raw key.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Raw {
    bytes: [u8; MAX_LENGTH],
    length: u8,
}

impl Raw {
    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

pub(super) fn raw_of<R: RawKey>(raw: R) -> Raw {
    let key = raw.to_bytes();
    let mut bytes = [0; MAX_LENGTH];
    let length = key.as_ref().len();
    bytes[..length].copy_from_slice(key.as_ref());
    Raw {
        bytes,
        length: u8::try_from(length).expect("a key is short"),
    }
}

/// Reads bytes as a raw key; `None` if there are too many or too few.
pub(crate) fn raw_key<R: RawKey>(found: &[u8]) -> Option<R> {
    let mut bytes = R::Bytes::default();
    if bytes.as_ref().len() != found.len() {
        return None;
    }
    bytes.as_mut().copy_from_slice(found);
    Some(R::from_bytes(bytes))
}

/// A key of a scheme that is known only at run time.
#[derive(Clone, Copy)]
pub struct AnyKey {
    entry: &'static Entry,
    raw: Raw,
}

impl AnyKey {
    /// Returns the scheme of the key.
    pub fn entry(&self) -> &'static Entry {
        self.entry
    }

    /// Returns the bytes of the raw key, most significant first.
    pub fn as_bytes(&self) -> &[u8] {
        self.raw.as_bytes()
    }

    /// Returns the canonical text of the key.
    pub fn text(&self, prefix: Option<&str>) -> String {
        let scheme = self.entry.scheme;
        format!(
            "{}",
            Text {
                scheme,
                key: self,
                prefix
            }
        )
    }

    /// Returns the information in the key; `None` if the scheme hides it.
    pub fn inspect(&self) -> Option<Inspection> {
        self.entry.scheme.inspect(self.as_bytes())
    }

    /// Returns the time in the key, if it has one.
    pub fn timestamp(&self) -> Option<Timestamp> {
        self.entry.scheme.timestamp(self.as_bytes())
    }

    /// Returns the bucket of the key: 0, unless its scheme spreads keys.
    pub fn bucket(&self) -> u16 {
        self.entry.scheme.bucket(self.as_bytes())
    }
}

/// Two keys are equal if their schemes and values are equal.
impl PartialEq for AnyKey {
    fn eq(&self, other: &Self) -> bool {
        self.entry.name == other.entry.name && self.raw == other.raw
    }
}

impl Eq for AnyKey {}

impl hash::Hash for AnyKey {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        self.raw.hash(state);
    }
}

/// Keys of one scheme compare in its order. Keys of different schemes compare by the schemes' names.
impl Ord for AnyKey {
    fn cmp(&self, other: &Self) -> Ordering {
        let schemes = self.entry.name.cmp(other.entry.name);
        schemes.then_with(|| {
            let scheme = self.entry.scheme;
            scheme.compare(self.as_bytes(), other.as_bytes())
        })
    }
}

impl PartialOrd for AnyKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The canonical text without a prefix.
impl fmt::Display for AnyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.entry.scheme.write(self.as_bytes(), None, f)
    }
}

impl fmt::Debug for AnyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({self})", self.entry.name)
    }
}

struct Text<'a> {
    scheme: &'static dyn AnyScheme,
    key: &'a AnyKey,
    prefix: Option<&'a str>,
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.scheme.write(self.key.as_bytes(), self.prefix, f)
    }
}

/// Makes a key: the next one, or one for a time.
type Make = Box<dyn Fn(Option<Timestamp>) -> Result<Raw, Error> + Send + Sync>;

/// Makes a generator of a node and a clock.
pub(super) type MakeGenerator = fn(Option<u64>, Arc<dyn Clock>) -> Result<Make, Error>;

/// The ranges of a time.
pub(super) type MakeRanges = fn(Range<Timestamp>) -> Result<Vec<Range<Raw>>, Error>;

/// The highest keys of a time.
pub(super) type MakeHighest = fn(Timestamp) -> Result<Vec<Raw>, Error>;

/// Makes keys of a scheme that is known only at run time.
pub struct AnyGenerator {
    entry: &'static Entry,
    make: Make,
}

impl AnyGenerator {
    /// Makes the next key.
    ///
    /// # Errors
    ///
    /// As [`Generator::try_generate`](crate::generator::Generator::try_generate).
    pub fn generate(&self) -> Result<AnyKey, Error> {
        (self.make)(None).map(|raw| self.entry.of(raw))
    }

    /// Makes a key for a given time.
    ///
    /// # Errors
    ///
    /// As [`Generator::generate_at`](crate::generator::Generator::generate_at).
    pub fn generate_at(&self, time: Timestamp) -> Result<AnyKey, Error> {
        (self.make)(Some(time)).map(|raw| self.entry.of(raw))
    }
}

impl fmt::Debug for AnyGenerator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AnyGenerator({})", self.entry.name)
    }
}

/// A scheme without its type. All functions take the bytes of a raw key of the scheme.
pub(super) trait AnyScheme: fmt::Debug + Sync {
    fn orders(&self) -> Orders;
    fn raw(&self) -> RawForm;
    fn parse(&self, prefix: Option<&str>, text: &str) -> Result<Raw, Error>;
    fn checked(&self, bytes: &[u8]) -> Result<Raw, Error>;
    fn write(&self, bytes: &[u8], prefix: Option<&str>, f: &mut fmt::Formatter<'_>) -> fmt::Result;
    fn inspect(&self, bytes: &[u8]) -> Option<Inspection>;
    fn timestamp(&self, bytes: &[u8]) -> Option<Timestamp>;
    fn bucket(&self, bytes: &[u8]) -> u16;
    fn compare(&self, left: &[u8], right: &[u8]) -> Ordering;
}

/// A scheme, as a value.
pub(super) struct Of<S>(pub(super) PhantomData<fn() -> S>);

impl<S: Scheme> fmt::Debug for Of<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(S::NAME)
    }
}

fn own<S: Scheme>(bytes: &[u8]) -> S::Raw {
    raw_key(bytes).expect("the bytes are those of a key of the scheme")
}

impl<S: Layout> AnyScheme for Of<S> {
    fn orders(&self) -> Orders {
        S::ORDERS
    }

    fn raw(&self) -> RawForm {
        RawForm::of::<S::Raw>()
    }

    fn parse(&self, prefix: Option<&str>, text: &str) -> Result<Raw, Error> {
        let raw = S::parse_text(prefix, text)?;
        anatomy::check::<S>(&raw).map(|()| raw_of(raw))
    }

    fn checked(&self, bytes: &[u8]) -> Result<Raw, Error> {
        let Some(raw) = raw_key::<S::Raw>(bytes) else {
            return Err(Error::parse(format!(
                "a key of {} has {} bytes, found {}",
                S::NAME,
                size_of::<<S::Raw as RawKey>::Bytes>(),
                bytes.len()
            )));
        };
        anatomy::check::<S>(&raw).map(|()| raw_of(raw))
    }

    fn write(&self, bytes: &[u8], prefix: Option<&str>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        S::write_text(own::<S>(bytes), prefix, f)
    }

    fn inspect(&self, bytes: &[u8]) -> Option<Inspection> {
        S::inspect(&own::<S>(bytes)).ok()
    }

    fn timestamp(&self, bytes: &[u8]) -> Option<Timestamp> {
        S::timestamp(&own::<S>(bytes))
    }

    fn bucket(&self, bytes: &[u8]) -> u16 {
        S::bucket(&own::<S>(bytes))
    }

    fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
        S::cmp(&own::<S>(left), &own::<S>(right))
    }
}

/// Whether a scheme is ordered by time is asked of its type. A constant of the type itself goes before that of a trait,
/// so this one is what is left for all other schemes.
pub(super) trait WithoutTime {
    const RANGES: Option<MakeRanges> = None;
    const HIGHEST: Option<MakeHighest> = None;
}

impl<S> WithoutTime for Of<S> {}

impl<S: TimeOrdered> Of<S> {
    pub(super) const RANGES: Option<MakeRanges> = Some(|times| {
        let lowest = |time| S::bounds_at(time).map(|(lowest, _)| raw_of(lowest));
        Ok(alloc::vec![lowest(times.start)?..lowest(times.end)?])
    });

    pub(super) const HIGHEST: Option<MakeHighest> = Some(|time| {
        let (_, highest) = S::bounds_at(time)?;
        Ok(alloc::vec![raw_of(highest)])
    });
}

/// The same of a scheme that spreads its keys.
pub(super) fn ranges_of_buckets<S: Spread>(
    times: Range<Timestamp>,
) -> Result<Vec<Range<Raw>>, Error> {
    let lowest = |bucket, time| S::bounds_in(bucket, time).map(|(lowest, _)| raw_of(lowest));
    let range = |bucket| Ok(lowest(bucket, times.start)?..lowest(bucket, times.end)?);
    (0..S::BUCKETS).map(range).collect()
}

/// The same of a scheme that spreads its keys.
pub(super) fn highest_of_buckets<S: Spread>(time: Timestamp) -> Result<Vec<Raw>, Error> {
    let highest = |bucket| S::bounds_in(bucket, time).map(|(_, highest)| raw_of(highest));
    (0..S::BUCKETS).map(highest).collect()
}

/// A node that a number says.
pub(super) trait NumberedNode: Sized {
    /// Reads the number of a node of the scheme with this name.
    fn of_number(scheme: &'static str, number: Option<u64>) -> Result<Self, Error>;
}

/// Refuses to make keys without a node.
fn needed(scheme: &str, number: Option<u64>) -> Result<u64, Error> {
    number.ok_or_else(|| {
        Error::unsupported(format!(
            "a generator of {scheme} needs the number of its node, which no other generator may have"
        ))
    })
}

impl NumberedNode for () {
    fn of_number(scheme: &'static str, number: Option<u64>) -> Result<Self, Error> {
        match number {
            None => Ok(()),
            Some(number) => Err(Error::unsupported(format!(
                "keys of {scheme} have no node, found node {number}"
            ))),
        }
    }
}

impl NumberedNode for UuidNode {
    fn of_number(scheme: &'static str, number: Option<u64>) -> Result<Self, Error> {
        match number {
            None => Ok(Self::RANDOM),
            Some(number) => <[u8; 6]>::of_number(scheme, Some(number)).map(Self::danger_exact),
        }
    }
}

impl<L: snowflake::SnowflakeLayout> NumberedNode for snowflake::SnowflakeNode<L> {
    fn of_number(scheme: &'static str, number: Option<u64>) -> Result<Self, Error> {
        Self::new(needed(scheme, number)?)
    }
}

impl NumberedNode for [u8; 6] {
    fn of_number(scheme: &'static str, number: Option<u64>) -> Result<Self, Error> {
        let number = needed(scheme, number)?;
        match number.to_be_bytes() {
            [0, 0, node @ ..] => Ok(node),
            _ => Err(Error::field(scheme, "node", number, 48)),
        }
    }
}

impl NumberedNode for u8 {
    fn of_number(scheme: &'static str, number: Option<u64>) -> Result<Self, Error> {
        let number = needed(scheme, number)?;
        Self::try_from(number).map_err(|_| Error::field(scheme, "node", number, Self::BITS))
    }
}

impl NumberedNode for u16 {
    fn of_number(scheme: &'static str, number: Option<u64>) -> Result<Self, Error> {
        let number = needed(scheme, number)?;
        Self::try_from(number).map_err(|_| Error::field(scheme, "node", number, Self::BITS))
    }
}

/// A generator that counts.
pub(super) fn counting<S>(node: Option<u64>, clock: Arc<dyn Clock>) -> Result<Make, Error>
where
    S: Slotted<Node: NumberedNode>,
{
    let node = S::Node::of_number(S::NAME, node)?;
    let keys = OrderedGenerator::<S, _, _>::with_node(node, clock, ThreadEntropy, Policy::DEFAULT);
    Ok(Box::new(move |time| {
        let key = match time {
            None => keys.try_generate()?,
            Some(time) => keys.generate_at(time)?,
        };
        Ok(raw_of(key.into_raw()))
    }))
}

/// A generator that draws: it has no clock but the system's.
pub(super) fn drawing<S: StaticScheme>(
    node: Option<u64>,
    _: Arc<dyn Clock>,
) -> Result<Make, Error> {
    <()>::of_number(S::NAME, node)?;
    Ok(Box::new(|time| {
        let key = match time {
            None => S::generate(),
            Some(time) => S::generate_at(time)?,
        };
        Ok(raw_of(key.into_raw()))
    }))
}

#[cfg(test)]
mod tests;
