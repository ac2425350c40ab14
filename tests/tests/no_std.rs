//! Keys without the standard library: builds the program in `tests/no-std` and runs it.

// Where a program's entry is the C runtime's `main`, and links as it does here.
#![cfg(target_os = "linux")]

use std::{fs, process::Command};

use ordid_tests::workspaces;

#[test]
fn keys_without_std_rise_and_the_check_can_fail() {
    let (_, target) = workspaces::cargo("build", "no-std");
    let program = target.join("debug").join("ordid-no-std");
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
