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
pub mod next_run;
pub mod pictures;
pub mod process;
pub mod proxy;
pub mod router;
pub mod servers;
pub mod settings;
pub mod snippets;
pub mod stores;
pub mod told;
pub mod trials;
pub mod workspaces;

/// Returns whether the long forms of the tests are asked for, as `cargo xtask soak` does.
pub fn soak() -> bool {
    std::env::var_os("ORDID_TEST_SOAK").is_some_and(|value| value == "1")
}

/// README.md and the chapters of the guide, whose examples must compile and run. A test of `tests/lists.rs` compares
/// this list with `docs/src`. The chapters that need other libraries than SQLx are in `tests/orms`.
#[cfg(doctest)]
pub mod _documentation {
    #[doc = include_str!("../../README.md")]
    pub mod readme {}
    #[doc = include_str!("../../docs/src/beyond-one-machine.md")]
    pub mod beyond_one_machine {}
    #[doc = include_str!("../../docs/src/choose-a-key.md")]
    pub mod choose_a_key {}
    #[doc = include_str!("../../docs/src/coordinated-ids.md")]
    pub mod coordinated_ids {}
    #[doc = include_str!("../../docs/src/engines/babelfish.md")]
    pub mod engines_babelfish {}
    #[doc = include_str!("../../docs/src/engines/postgresql.md")]
    pub mod engines_postgresql {}
    #[doc = include_str!("../../docs/src/entities.md")]
    pub mod entities {}
    #[doc = include_str!("../../docs/src/migrate.md")]
    pub mod migrate {}
    #[doc = include_str!("../../docs/src/pages.md")]
    pub mod pages {}
    #[doc = include_str!("../../docs/src/public-ids.md")]
    pub mod public_ids {}
    #[doc = include_str!("../../docs/src/retries.md")]
    pub mod retries {}
    #[doc = include_str!("../../docs/src/start/oracle.md")]
    pub mod start_oracle {}
    #[doc = include_str!("../../docs/src/start/sqlx.md")]
    pub mod start_sqlx {}
    #[doc = include_str!("../../docs/src/start/tiberius.md")]
    pub mod start_tiberius {}
    #[doc = include_str!("../../docs/src/testing.md")]
    pub mod testing {}
    #[doc = include_str!("../../docs/src/unit-of-work.md")]
    pub mod unit_of_work {}
}
