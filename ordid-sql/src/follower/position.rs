//! The position of a follower, which its user stores as text.

use std::{fmt, str::FromStr};

use ordid_core::{Error, KeyType, RawKey, spi::excerpt};

/// The transactions that had ended at some time: PostgreSQL's `pg_snapshot`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Snapshot {
    /// All transactions with a lower number had ended.
    xmin: u64,
    /// All transactions with this number or a higher one had not begun, or were open.
    xmax: u64,
    /// The transactions between `xmin` and `xmax` that were open, in rising order.
    open: Vec<u64>,
}

impl Snapshot {
    /// A snapshot in which no transaction has ended. Transaction numbers begin at 3.
    pub(super) const NOTHING: Self = Self {
        xmin: 1,
        xmax: 1,
        open: Vec::new(),
    };

    pub(super) fn xmin(&self) -> u64 {
        self.xmin
    }

    pub(super) fn xmax(&self) -> u64 {
        self.xmax
    }

    /// Returns whether this transaction had ended.
    pub fn has_ended(&self, transaction: u64) -> bool {
        transaction < self.xmin
            || (transaction < self.xmax && self.open.binary_search(&transaction).is_err())
    }

    /// Adds a transaction that is open. A snapshot does not list the transaction that it was made in, so rows which
    /// that transaction inserts later would count as seen.
    pub(super) fn with_open(mut self, transaction: u64) -> Self {
        if self.has_ended(transaction) {
            let at = self.open.partition_point(|open| *open < transaction);
            self.open.insert(at, transaction);
            self.xmin = self.xmin.min(transaction);
        }
        self
    }

    /// Returns whether all transactions that had ended at the time of another snapshot have ended in this one.
    pub(super) fn covers(&self, other: &Self) -> bool {
        let is_open_in_both = |open: &u64| !other.has_ended(*open);
        self.xmax >= other.xmax && self.open.iter().all(is_open_in_both)
    }
}

/// Writes the snapshot in the same form as PostgreSQL.
impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:", self.xmin, self.xmax)?;
        for (index, open) in self.open.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{open}")?;
        }
        Ok(())
    }
}

impl FromStr for Snapshot {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::read(text).ok_or_else(|| {
            let found = excerpt(text.as_bytes());
            Error::parse(format!(
                "expected a snapshot such as 10:20:10,14, found {found}"
            ))
        })
    }
}

impl Snapshot {
    fn read(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let (xmin, xmax, open) = (parts.next()?, parts.next()?, parts.next()?);
        let (xmin, xmax) = (number(xmin)?, number(xmax)?);
        let open: Vec<u64> = match open {
            "" => Vec::new(),
            list => list.split(',').map(number).collect::<Option<_>>()?,
        };
        let is_within = open.iter().all(|open| (xmin..xmax).contains(open));
        let is_snapshot = parts.next().is_none()
            && 0 < xmin
            && xmin <= xmax
            && is_within
            && open.is_sorted_by(|left, right| left < right);
        is_snapshot.then_some(Self { xmin, xmax, open })
    }
}

/// Reads a number. Each number has only one valid text.
fn number(text: &str) -> Option<u64> {
    let number: u64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

/// The position up to which a follower has delivered rows.
///
/// Its text is short and stable: `start`, `above KEY`, `seen SNAPSHOT`, and `seen SNAPSHOT until SNAPSHOT above KEY` in
/// the middle of many rows. Its only secrets are keys as they are stored, without a mask. It grows with the number of
/// transactions that are open at the same time.
///
/// # Example
///
/// ```
/// use ordid_core::uuid::Uuid;
/// use ordid_sql::follower::Position;
///
/// let start: Position<Uuid> = Position::START;
/// assert_eq!(start.to_string(), "start");
/// let stored = "above 0192a0b1-0000-7000-8000-000000000001";
/// assert_eq!(stored.parse::<Position<Uuid>>()?.to_string(), stored);
/// # Ok::<(), ordid_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Position<K>(pub(super) State<K>);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum State<K> {
    Start,
    /// All settled rows up to this key were delivered.
    Above(K),
    /// All rows of the transactions that had ended in `seen` were delivered. Of the transactions that ended later, but
    /// before the window was opened, the rows up to the window's key were delivered.
    Seen {
        seen: Snapshot,
        window: Option<Window<K>>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Window<K> {
    pub(super) until: Snapshot,
    pub(super) above: Option<K>,
}

impl<K> Position<K> {
    /// The position before the first row.
    pub const START: Self = Self(State::Start);

    pub(super) fn above(key: K) -> Self {
        Self(State::Above(key))
    }

    pub(super) fn seen(seen: Snapshot) -> Self {
        Self(State::Seen { seen, window: None })
    }

    pub(super) fn within(seen: Snapshot, until: Snapshot, above: Option<K>) -> Self {
        let window = Some(Window { until, above });
        Self(State::Seen { seen, window })
    }
}

impl<K> Default for Position<K> {
    /// Returns [`START`](Self::START).
    fn default() -> Self {
        Self::START
    }
}

/// Writes the raw key, since a key type's own text may be masked.
struct Raw<K>(K);

impl<K: KeyType> fmt::Display for Raw<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.to_raw().write_text(None, f)
    }
}

fn key<K: KeyType>(text: &str) -> Result<K, Error> {
    K::from_raw(K::Raw::parse_text(None, text)?)
}

impl<K: KeyType> fmt::Display for Position<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            State::Start => f.write_str("start"),
            State::Above(key) => write!(f, "above {}", Raw(*key)),
            State::Seen { seen, window } => {
                write!(f, "seen {seen}")?;
                let Some(Window { until, above }) = window else {
                    return Ok(());
                };
                write!(f, " until {until}")?;
                match above {
                    Some(key) => write!(f, " above {}", Raw(*key)),
                    None => Ok(()),
                }
            }
        }
    }
}

/// # Errors
///
/// Returns an error that [`is_parse`](Error::is_parse) or [`is_layout`](Error::is_layout) if the text is not a
/// position, or if its key is not one of the key type.
impl<K: KeyType> FromStr for Position<K> {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let words: Vec<&str> = text.split(' ').collect();
        Ok(match words[..] {
            ["start"] => Self::START,
            ["above", above] => Self::above(key(above)?),
            ["seen", seen] => Self::seen(seen.parse()?),
            ["seen", seen, "until", until] => Self::within(seen.parse()?, until.parse()?, None),
            ["seen", seen, "until", until, "above", above] => {
                Self::within(seen.parse()?, until.parse()?, Some(key(above)?))
            }
            _ => {
                let found = excerpt(text.as_bytes());
                return Err(Error::parse(format!(
                    "expected the position of a follower, such as `start` or `above KEY`, found {found}"
                )));
            }
        })
    }
}
