//! The set of adapters is open: tests an adapter that ordid does not know, in `tests/third-party`.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

fn package() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("third-party")
}

/// `target`, wherever the environment has put it.
fn target_folder() -> PathBuf {
    // Of the form `target/debug/deps/third_party-0123456789abcdef`.
    let test = env::current_exe().unwrap();
    test.ancestors().nth(3).unwrap().to_owned()
}

#[test]
fn an_adapter_of_another_workspace_keeps_the_laws() {
    let output = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["test", "--locked", "--manifest-path"])
        .arg(package().join("Cargo.toml"))
        // In a folder that later runs find again.
        .arg("--target-dir")
        .arg(target_folder().join("third-party"))
        .env_remove("CARGO_BUILD_TARGET")
        .output()
        .unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
    assert!(output.status.success(), "{out}{err}");
    // The laws, and the column that does not compile.
    for ran in ["test parents_go_first", "10 passed", "compile fail ... ok"] {
        assert!(out.contains(ran), "{ran}: {out}");
    }
}

#[test]
fn the_adapter_sees_no_other_adapter() {
    let lock = fs::read_to_string(package().join("Cargo.lock")).unwrap();
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
