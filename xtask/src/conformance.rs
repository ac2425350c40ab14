//! `cargo xtask conformance`.

use std::process::ExitCode;

use crate::run::{self, Result};
use crate::servers::Servers;

/// Runs the whole matrix of schemes, columns and engines, and fails where a cell breaks.
pub(crate) fn conformance() -> Result<ExitCode> {
    let package = [
        "--release",
        "--locked",
        "--package",
        "ordid-tests",
        "--bin",
        "conformance",
    ];
    // Before the servers start: they wait for no compiler.
    run::succeed(run::cargo(&["build"]).args(package))?;
    let servers = Servers::start_all()?;
    let mut command = run::cargo(&["run", "--quiet"]);
    servers.export(command.args(package));
    Ok(run::code(run::status(&mut command)?))
}
