//! What a program sees where Oracle's client library is not installed. The library is looked for in
//! an empty folder alone, so that it is also missing where it is installed.

use std::error::Error as _;

#[test]
fn a_missing_client_is_told_with_how_to_install_it() {
    let empty = tempfile::tempdir().expect("a folder");
    let initialized = oracle::InitParams::new()
        .oracle_client_lib_dir(empty.path())
        .expect("a path")
        .init();
    let error = ordid_oracle::Error::from(initialized.expect_err("nothing to load"));
    assert!(error.is_client_missing(), "{error}");
    let message = error.to_string();
    for part in [
        "ordid-oracle needs Oracle's client library when it runs: download",
        "Oracle Instant Client, 12.1 or later",
        "https://www.oracle.com/database/technologies/instant-client/downloads.html",
        "LD_LIBRARY_PATH",
        // What the loader said.
        "DPI-1047: Cannot locate",
    ] {
        assert!(message.contains(part), "{message}");
    }
    assert!(error.source().is_none(), "the text has it all");
    assert!(!error.is_plan() && !error.is_connection_state() && !error.is_commit_unknown());
    assert_eq!((error.table(), error.key()), (None, None));
}
