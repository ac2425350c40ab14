//! Hands on the compiler's version and the profile: reports name them.

use std::{env, process::Command};

fn main() {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output();
    let version = version.map_or_else(
        |_| "unknown".to_owned(),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    );
    println!("cargo::rustc-env=BENCH_RUSTC={version}");
    for (name, variable) in [("TARGET", "BENCH_TARGET"), ("PROFILE", "BENCH_PROFILE")] {
        println!(
            "cargo::rustc-env={variable}={}",
            env::var(name).unwrap_or_default()
        );
    }
}
