//! Uses a journal without the feature of `ordid-file`.

include!("../../journaled.rs");
