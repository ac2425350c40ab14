//! The high-water mark: the time that a generator has to remember over a restart.
//!
//! If the clock stepped back while the process was down, a new run would repeat the times of the one before, and its
//! keys would sort below the older ones. A mark that is kept outside the process tells the new run where to go on.
//! This crate defines the trait; `ordid-file` keeps a mark in a file.

use crate::{clock::Timestamp, error::Error};

/// Stores the newest time that keys may carry, so that it outlives the process.
///
/// One mark serves one generator. If two generators share it, one of them may be refused keys until its clock is above the
/// mark that the other one has set.
///
/// A mark is in whole milliseconds since 1970-01-01T00:00:00Z. It may be ahead of the clock, so that not every
/// millisecond needs a write.
///
/// # Example: a keeper for tests
///
/// ```
/// use std::sync::Mutex;
/// use ordid_core::{Error, clock::Timestamp, high_water::HighWaterMark};
///
/// #[derive(Default)]
/// struct InMemory(Mutex<Option<Timestamp>>);
///
/// impl HighWaterMark for InMemory {
///     fn load(&self) -> Result<Option<Timestamp>, Error> {
///         self.0.lock().map(|mark| *mark).map_err(|_| Error::high_water("a thread panicked"))
///     }
///
///     fn raise(&self, mark: Timestamp) -> Result<(), Error> {
///         let mut present = self.0.lock().map_err(|_| Error::high_water("a thread panicked"))?;
///         if *present > Some(mark) {
///             return Err(Error::high_water("the mark cannot go back"));
///         }
///         *present = Some(mark);
///         Ok(())
///     }
/// }
///
/// let keeper = InMemory::default();
/// assert_eq!(keeper.load()?, None);
/// keeper.raise(Timestamp::from_unix_millis(1_645_557_742_000)?)?;
/// assert_eq!(keeper.load()?, Some(Timestamp::from_unix_millis(1_645_557_742_000)?));
/// assert!(keeper.raise(Timestamp::MIN).unwrap_err().is_high_water());
/// # Ok::<(), Error>(())
/// ```
pub trait HighWaterMark: Send + Sync {
    /// Returns the mark that an earlier run left, if there was one.
    ///
    /// # Errors
    ///
    /// Returns an error, and never `None`, if the mark cannot be read or is damaged. Make the error with
    /// [`Error::high_water`].
    fn load(&self) -> Result<Option<Timestamp>, Error>;

    /// Makes the mark durable. The mark is at or above every earlier one. When this returns, a crash of the process
    /// or the machine does not undo it.
    ///
    /// # Errors
    ///
    /// If the mark cannot be made durable, or is below an earlier one. After an error the mark that
    /// [`load`](Self::load) finds is the old or the new one. Make the error with
    /// [`Error::high_water`].
    fn raise(&self, mark: Timestamp) -> Result<(), Error>;
}

impl<M: HighWaterMark + ?Sized> HighWaterMark for &M {
    fn load(&self) -> Result<Option<Timestamp>, Error> {
        (**self).load()
    }

    fn raise(&self, mark: Timestamp) -> Result<(), Error> {
        (**self).raise(mark)
    }
}
