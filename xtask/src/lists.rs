//! `cargo xtask lists`.

use std::process::ExitCode;

use crate::run::{self, Result};

/// Writes what is made of the catalogue of schemes in a moment: the derive's list and the guide's table.
pub(crate) fn lists() -> Result<ExitCode> {
    let bin = ["run", "--quiet", "--locked", "-p", "ordid-tests", "--bin"];
    run::succeed(run::cargo(&bin).arg("lists"))?;
    let table = ["run", "--quiet", "--locked", "-p", "catalogue", "--"];
    run::succeed(run::cargo(&table).args(["--write", "docs/src/choose-a-key.md"]))?;
    println!(
        "PLATFORM.md's matrix: cargo xtask conformance\n\
         compile errors that name the schemes or columns: TRYBUILD=overwrite cargo test -p \
         ordid-ui-tests, then read the difference"
    );
    Ok(ExitCode::SUCCESS)
}
