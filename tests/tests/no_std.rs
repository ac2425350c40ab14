//! Keys without the standard library: builds the program in `tests/no-std` and runs it.

// Where a program's entry is the C runtime's `main`, and links as it does here.
#![cfg(target_os = "linux")]

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Builds the program, in a folder that later runs find again.
fn build() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("no-std");
    let target = target_folder().join("no-std");
    let output = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--locked", "--manifest-path"])
        .arg(package.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&target)
        // A flag of the build around this one may not suit a program without `std`.
        .env_remove("CARGO_BUILD_TARGET")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    target.join("debug").join("ordid-no-std")
}

/// `target`, wherever the environment has put it.
fn target_folder() -> PathBuf {
    // Of the form `target/debug/deps/no_std-0123456789abcdef`.
    let test = env::current_exe().unwrap();
    test.ancestors().nth(3).unwrap().to_owned()
}

#[test]
fn keys_without_std_rise_and_the_check_can_fail() {
    let program = build();
    assert_eq!(Command::new(&program).status().unwrap().code(), Some(0));

    // With an argument it takes the keys for falling: its second check, of the first 10,000.
    let wrong = Command::new(&program).arg("wrong").status().unwrap();
    assert_eq!(wrong.code(), Some(2));

    // It would prove nothing if it linked the standard library after all.
    let bytes = fs::read(&program).unwrap();
    let holds = |text: &[u8]| bytes.windows(text.len()).any(|window| window == text);
    assert!(holds(b"library/core/src/"));
    assert!(!holds(b"library/std/src/"));
}
