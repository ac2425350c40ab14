//! A journal, and `ordid-file` does not have its feature.

include!("../../journaled.rs");
