//! What the test binaries share: which servers there are, real processes, streams of keys,
//! faults, graphs of rows.

#![deny(unsafe_code)]

pub mod conformance;
pub mod copy;
pub mod dotnet;
pub mod dsql;
pub mod duel;
pub mod everyday;
pub mod faults;
pub mod flushed;
pub mod followed;
pub mod graphs;
pub mod keys;
pub mod lists;
pub mod login;
pub mod merge;
pub mod process;
pub mod proxy;
pub mod servers;
pub mod stores;
pub mod told;
pub mod trials;
pub mod workspaces;

/// Returns whether the long forms of the tests are asked for, as `cargo xtask soak` does.
pub fn soak() -> bool {
    std::env::var_os("ORDID_TEST_SOAK").is_some_and(|value| value == "1")
}

/// The long documents, whose examples must compile.
#[cfg(doctest)]
pub mod _documentation {
    #[doc = include_str!("../../README.md")]
    pub mod readme {}
    #[doc = include_str!("../../COOKBOOK.md")]
    pub mod cookbook {}
}
