//! What the test binaries share: which servers there are, and real processes.

#![deny(unsafe_code)]

pub mod process;
pub mod servers;

/// The long documents, whose examples must compile.
#[cfg(doctest)]
pub mod _documentation {
    #[doc = include_str!("../../README.md")]
    pub mod readme {}
}
