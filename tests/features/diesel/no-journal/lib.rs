//! Uses a journal without the feature of `ordid-diesel`.

include!("../../journaled.rs");
