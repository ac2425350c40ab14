//! The crate's one error type.

use alloc::{boxed::Box, string::String};
use core::fmt;

use crate::{clock::Timestamp, coordination::CoordinationFailure};

/// An error of this crate.
///
/// The type is opaque. The `is_` methods tell what went wrong; `Display` tells people. The message names the value
/// that was found, the value that was expected, and the fix if there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error(Box<ErrorKind>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ErrorKind {
    /// A text or a stored value is not of the expected form.
    Parse(String),
    /// A raw value is not of the key type's scheme.
    Layout {
        key_type: &'static str,
        scheme: &'static str,
        expected: &'static str,
        found: String,
    },
    /// A part does not fit its field.
    Field {
        scheme: &'static str,
        field: &'static str,
        value: u128,
        bits: u32,
    },
    /// A raw value cannot be turned into another form.
    Conversion(String),
    /// The scheme cannot do what was asked.
    Unsupported(String),
    /// The generator's node belongs to the process that was forked.
    Forked { scheme: &'static str },
    /// The clock went back further than the policy allows.
    Rollback { behind_millis: u64, max_millis: u64 },
    /// A time does not fit the layout.
    TimestampRange { millis: u64, max_millis: u64 },
    /// The clock reads a time before the layout's first.
    BeforeScale { millis: u64, epoch_millis: i64 },
    /// A time before 1970.
    #[cfg(feature = "std")]
    BeforeEpoch,
    /// The counter of the millisecond is used up, and the policy does not allow to go on.
    CounterOverflow { timestamp: Timestamp },
    /// A key has no successor: say which bits are used up.
    NoSuccessor(String),
    /// More keys were asked for than may be ahead of the clock.
    ReservationTooLarge { asked: u64, max: u64 },
    /// A source gave no random bits.
    Entropy(String),
    /// A high-water mark cannot be read or made durable.
    HighWater(String),
    /// The store that a lease or a count depends on, or what it keeps, stood in the way.
    Coordination {
        failure: CoordinationFailure,
        message: String,
    },
    /// A unit of work cannot be planned.
    Plan(String),
    /// The journal of a unit of work cannot be read, written or understood.
    Journal(String),
}

impl Error {
    pub(crate) fn new(kind: ErrorKind) -> Self {
        Self(Box::new(kind))
    }

    /// A part of a key that has more bits than its field.
    pub(crate) fn field(
        scheme: &'static str,
        field: &'static str,
        value: impl Into<u128>,
        bits: u32,
    ) -> Self {
        Self::new(ErrorKind::Field {
            scheme,
            field,
            value: value.into(),
            bits,
        })
    }

    /// A conversion that would lose something: say what, and which one does not.
    pub(crate) fn conversion(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Conversion(message.into()))
    }

    /// A function that a scheme cannot have: say why, and what to use instead.
    pub(crate) fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported(message.into()))
    }

    /// Makes the error of a text or a stored value of another form: say what was found and what was expected.
    #[doc(hidden)]
    pub fn parse(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Parse(message.into()))
    }

    /// Makes the error of an [`Entropy`](crate::entropy::Entropy) that has no random bits. The message names the
    /// source and the reason.
    pub fn entropy(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Entropy(message.into()))
    }

    /// Makes the error of a [`HighWaterMark`](crate::high_water::HighWaterMark) that cannot be read or made durable.
    /// The message names the place, the value that was found, and the fix.
    ///
    /// # Example
    ///
    /// ```
    /// use ordid_core::Error;
    ///
    /// let error = Error::high_water("cannot write the high-water mark to row 7: read-only");
    /// assert!(error.is_high_water());
    /// assert_eq!(error.to_string(), "cannot write the high-water mark to row 7: read-only");
    /// ```
    pub fn high_water(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::HighWater(message.into()))
    }

    /// Makes the error of a [`NodeAllocator`](crate::coordination::NodeAllocator) or a
    /// [`SegmentSource`](crate::coordination::SegmentSource). The message names the store, the place in it, the value
    /// that was found, and the fix.
    ///
    /// # Example
    ///
    /// ```
    /// use ordid_core::{Error, coordination::CoordinationFailure};
    ///
    /// let error = Error::coordination(CoordinationFailure::NoFreeNode, "all 4 nodes of table node are held");
    /// assert_eq!(error.coordination_failure(), Some(CoordinationFailure::NoFreeNode));
    /// assert_eq!(error.to_string(), "no node is free: all 4 nodes of table node are held");
    /// ```
    pub fn coordination(failure: CoordinationFailure, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Coordination {
            failure,
            message: message.into(),
        })
    }

    /// Makes the error of a unit of work that cannot be planned: name the table and the key. For adapters.
    #[doc(hidden)]
    pub fn plan(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Plan(message.into()))
    }

    /// Makes the error of a journal of a unit of work that cannot be read or made durable. The message names the
    /// place, the value that was found, and the fix.
    ///
    /// # Example
    ///
    /// ```
    /// use ordid_core::Error;
    ///
    /// let error = Error::journal("the flush journal orders.journal cannot be written: no space");
    /// assert!(error.is_journal());
    /// ```
    pub fn journal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Journal(message.into()))
    }

    /// Returns whether a text or a stored value was not of the expected form.
    pub fn is_parse(&self) -> bool {
        matches!(*self.0, ErrorKind::Parse(_))
    }

    /// Returns whether a raw value was not of the key type's scheme (version or variant), or a part
    /// did not fit its field.
    pub fn is_layout(&self) -> bool {
        matches!(*self.0, ErrorKind::Layout { .. } | ErrorKind::Field { .. })
    }

    /// Returns whether a value could not be converted without loss.
    pub fn is_conversion(&self) -> bool {
        matches!(*self.0, ErrorKind::Conversion(_))
    }

    /// Returns whether a scheme cannot do what was asked of it.
    pub fn is_unsupported(&self) -> bool {
        matches!(*self.0, ErrorKind::Unsupported(_))
    }

    /// Returns whether a generator was used in the child of a fork although its node or its numbers belong to the
    /// parent.
    pub fn is_forked(&self) -> bool {
        matches!(*self.0, ErrorKind::Forked { .. })
    }

    /// Returns whether a time is the reason: the clock went back too far, or a time does not fit.
    pub fn is_clock(&self) -> bool {
        match *self.0 {
            ErrorKind::Rollback { .. }
            | ErrorKind::TimestampRange { .. }
            | ErrorKind::BeforeScale { .. } => true,
            #[cfg(feature = "std")]
            ErrorKind::BeforeEpoch => true,
            _ => false,
        }
    }

    /// Returns whether a counter was used up, a key has no successor, or a reservation was too
    /// large.
    pub fn is_overflow(&self) -> bool {
        matches!(
            *self.0,
            ErrorKind::CounterOverflow { .. }
                | ErrorKind::NoSuccessor(_)
                | ErrorKind::ReservationTooLarge { .. }
        )
    }

    /// Returns whether a source of random bits, usually the operating system, gave none.
    pub fn is_entropy(&self) -> bool {
        matches!(*self.0, ErrorKind::Entropy(_))
    }

    /// Returns whether a high-water mark could not be read or made durable.
    pub fn is_high_water(&self) -> bool {
        matches!(*self.0, ErrorKind::HighWater(_))
    }

    /// Returns the kind of failure, if the error comes from the store of a lease or a counter.
    pub fn coordination_failure(&self) -> Option<CoordinationFailure> {
        match *self.0 {
            ErrorKind::Coordination { failure, .. } => Some(failure),
            _ => None,
        }
    }

    /// Returns whether a unit of work could not be planned, such as tables that form a cycle.
    pub fn is_plan(&self) -> bool {
        matches!(*self.0, ErrorKind::Plan(_))
    }

    /// Returns whether the journal of a unit of work could not be read or made durable, or what is
    /// in it is not what was asked for.
    pub fn is_journal(&self) -> bool {
        matches!(*self.0, ErrorKind::Journal(_))
    }
}

/// Returns the nearest time that a layout has, if the error says that a time does not fit it: the layout's beginning if
/// that is later, and its last millisecond if that is earlier.
pub fn nearest_time(error: &Error) -> Option<Timestamp> {
    let millis = match *error.0 {
        ErrorKind::TimestampRange { max_millis, .. } => max_millis,
        ErrorKind::BeforeScale { epoch_millis, .. } => u64::try_from(epoch_millis).ok()?,
        _ => return None,
    };
    Timestamp::from_unix_millis(millis).ok()
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            ErrorKind::Parse(message)
            | ErrorKind::HighWater(message)
            | ErrorKind::Conversion(message)
            | ErrorKind::NoSuccessor(message)
            | ErrorKind::Unsupported(message) => f.write_str(message),
            ErrorKind::Field {
                scheme,
                field,
                value,
                bits,
            } => write!(
                f,
                "{field} {value} does not fit: scheme {scheme} has {bits} bits for it"
            ),
            ErrorKind::Forked { scheme } => write!(
                f,
                "the process was forked: the node of this {scheme} generator is the parent's; make \
                 a generator with a node of the child's own"
            ),
            ErrorKind::Plan(message) | ErrorKind::Journal(message) => f.write_str(message),
            ErrorKind::Layout {
                key_type,
                scheme,
                expected,
                found,
            } => {
                write!(
                    f,
                    "not a `{key_type}`: scheme {scheme} expects {expected}, found {found}"
                )
            }
            ErrorKind::Rollback {
                behind_millis,
                max_millis,
            } => write!(
                f,
                "the clock is {behind_millis} ms behind the newest key, more than the {max_millis} \
                 ms that the rollback policy holds"
            ),
            ErrorKind::TimestampRange { millis, max_millis } => write!(
                f,
                "timestamp {millis} ms does not fit: the layout ends at {max_millis} ms since \
                 1970-01-01"
            ),
            ErrorKind::BeforeScale {
                millis,
                epoch_millis,
            } => write!(
                f,
                "timestamp {millis} ms does not fit: the layout begins at {epoch_millis} ms since \
                 1970-01-01"
            ),
            #[cfg(feature = "std")]
            ErrorKind::BeforeEpoch => {
                f.write_str("a time before 1970-01-01T00:00:00Z has no timestamp")
            }
            ErrorKind::CounterOverflow { timestamp } => write!(
                f,
                "the counter of millisecond {} is used up and the overflow policy does not go on",
                timestamp.as_unix_millis()
            ),
            ErrorKind::ReservationTooLarge { asked, max } => write!(
                f,
                "cannot reserve {asked} keys at once: at most {max} may be ahead of the clock; \
                 reserve in several calls"
            ),
            ErrorKind::Coordination { failure, message } => write!(f, "{failure}: {message}"),
            ErrorKind::Entropy(source) => {
                write!(f, "no entropy: {source}")
            }
        }
    }
}

impl core::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_value_and_the_fix() {
        let error = Error::new(ErrorKind::Rollback {
            behind_millis: 11_000,
            max_millis: 10_000,
        });
        assert!(error.is_clock() && !error.is_overflow());
        assert_eq!(
            error.to_string(),
            "the clock is 11000 ms behind the newest key, more than the 10000 ms that the rollback \
             policy holds"
        );
        let error = Error::new(ErrorKind::ReservationTooLarge { asked: 7, max: 5 });
        assert!(error.is_overflow());
        assert_eq!(
            error.to_string(),
            "cannot reserve 7 keys at once: at most 5 may be ahead of the clock; reserve in \
             several calls"
        );
        let error = Error::new(ErrorKind::Entropy("gone".into()));
        assert!(error.is_entropy());
        assert_eq!(error.to_string(), "no entropy: gone");
    }

    #[test]
    fn error_is_one_pointer() {
        assert_eq!(size_of::<Error>(), size_of::<usize>());
    }
}
