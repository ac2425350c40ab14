//! A journal, and `ordid-diesel` does not have its feature.

include!("../../journaled.rs");
