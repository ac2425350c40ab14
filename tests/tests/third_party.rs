//! The set of adapters is open: tests an adapter that ordid does not know, in `tests/third-party`.

use std::{fs, path::Path};

use ordid_tests::workspaces;

#[test]
fn an_adapter_of_another_workspace_keeps_the_laws() {
    let (out, _) = workspaces::cargo("test", "third-party");
    // The laws, and the column that does not compile.
    for ran in ["test parents_go_first", "10 passed", "compile fail ... ok"] {
        assert!(out.contains(ran), "{ran}: {out}");
    }
}

#[test]
fn the_adapter_sees_no_other_adapter() {
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("third-party/Cargo.lock");
    let lock = fs::read_to_string(lock).unwrap();
    let names = lock.lines().filter_map(|line| line.strip_prefix("name = "));
    let own: Vec<_> = names.filter(|name| name.contains("ordid")).collect();
    let expected = [
        "ordid",
        "ordid-core",
        "ordid-derive",
        "ordid-sql",
        "ordid-third-party",
    ];
    assert_eq!(own, expected.map(|name| format!("\"{name}\"")));
}
