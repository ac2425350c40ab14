//! What ordid keeps over restarts, in files.
//!
//! ```text
//! $ cargo add ordid ordid-file
//! ```
//!
//! | you want to | use |
//! |---|---|
//! | let keys rise over restarts, although the clock was set back in between | [`MarkFile`] |
//! | give each process of one machine a node that no other has | [`FileLease`] |
//! | write what a killed process was flushing, once, with the same keys | `FlushJournal`, with the feature `journal` |
//!
//! # Example: a mark over a restart
//!
//! ```
//! use ordid::{clock::Timestamp, high_water::HighWaterMark};
//! use ordid_file::MarkFile;
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("orders.mark");
//! let time = Timestamp::from_unix_millis(1_645_557_742_000)?;
//! let mark = MarkFile::open(&path)?;
//! assert_eq!(mark.load()?, None);
//! mark.raise(time)?; // durable from here on
//! drop(mark);
//!
//! let mark = MarkFile::open(&path)?;
//! assert_eq!(mark.load()?, Some(time));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Example: one process, one file
//!
//! ```
//! use ordid_file::MarkFile;
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("orders.mark");
//! let mark = MarkFile::open(&path)?;
//! let error = MarkFile::open(&path).unwrap_err();
//! assert!(error.is_high_water());
//! assert!(error.to_string().contains("orders.mark is in use"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Minimum supported Rust version
//!
//! 1.89, for the standard library's file locks, and as `ordid-core`.

#![forbid(unsafe_code)]

#[cfg(feature = "journal")]
mod flush_journal;
mod lease;
mod locked;
mod mark_file;
mod record;
mod slots;

#[cfg(feature = "journal")]
pub use flush_journal::FlushJournal;
pub use lease::FileLease;
pub use mark_file::MarkFile;

/// The example of the README must compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub mod readme {}
