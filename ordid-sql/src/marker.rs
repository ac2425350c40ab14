//! The row that a flush is known by after the answer to its COMMIT was lost.
//!
//! A flush with updates or deletes first inserts a row of its own into `ordid_flushes`, under one key for all
//! its attempts. If that row is there, the flush was committed. A flush that only inserts does without, as each
//! of its rows has a key that tells the same, unless it is asked to write one.

/// The table of marker rows.
pub(crate) const MARKER_TABLE: &str = "ordid_flushes";
