//! Uses a journal without the feature `serde` of `ordid`.

include!("../../journaled.rs");
