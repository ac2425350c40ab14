//! A journal, and `ordid` does not have the feature `serde`.

include!("../../journaled.rs");
