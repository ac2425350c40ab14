//! Packages in this folder that are workspaces of their own.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

/// Returns the folder `target`, wherever the environment has put it.
pub fn target_folder() -> PathBuf {
    // The path of a test has the form `target/debug/deps/features-0123456789abcdef`.
    let test = env::current_exe().unwrap();
    test.ancestors().nth(3).unwrap().to_owned()
}

/// Runs a subcommand of `cargo` in the workspace of this name, and returns the output and the build folder, which later
/// runs use again.
///
/// # Panics
///
/// If the command fails.
pub fn cargo(subcommand: &str, name: &str) -> (String, PathBuf) {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    let target = target_folder().join(name);
    let output = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args([subcommand, "--locked", "--manifest-path"])
        .arg(package.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&target)
        // What the build around this one says may not suit the package, such as a program without `std`, which is known
        // by the paths in its debug information.
        .env_remove("CARGO_BUILD_TARGET")
        .env_remove("CARGO_PROFILE_DEV_DEBUG")
        .output()
        .unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
    assert!(output.status.success(), "{out}{err}");
    (out, target)
}
