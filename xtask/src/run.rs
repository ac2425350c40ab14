//! Running commands in the root of the workspace.

use std::env;
use std::path::PathBuf;
use std::process::{Command, ExitCode, ExitStatus, Stdio};

use serde_json::Value;

/// An error is one line for the user.
pub(crate) type Result<T> = std::result::Result<T, String>;

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    let manifest = env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    manifest.parent().map_or(manifest.clone(), PathBuf::from)
}

/// The build folder.
pub(crate) fn target() -> PathBuf {
    let target = env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    root().join(target)
}

/// The cargo that runs this task, in the root of the workspace.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).args(arguments);
    command
}

/// Runs a command to its end.
pub(crate) fn status(command: &mut Command) -> Result<ExitStatus> {
    command
        .status()
        .map_err(|error| cannot_run(command, &error))
}

/// Runs a command that must succeed.
pub(crate) fn succeed(command: &mut Command) -> Result<()> {
    let status = status(command)?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("`{}` failed ({status})", text(command)))
    }
}

/// The status that this program ends with to pass on another's.
pub(crate) fn code(status: ExitStatus) -> ExitCode {
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    code.map_or(ExitCode::FAILURE, ExitCode::from)
}

/// What `cargo metadata` says of the workspace, or of that of the manifest in these flags.
pub(crate) fn metadata(flags: &[&str]) -> Result<Value> {
    let mut command = cargo(&["metadata", "--no-deps", "--format-version", "1", "--locked"]);
    command.args(flags).stderr(Stdio::inherit());
    let output = command
        .output()
        .map_err(|error| cannot_run(&command, &error))?;
    if !output.status.success() {
        return Err(format!("`{}` failed ({})", text(&command), output.status));
    }
    serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("cannot read what `cargo metadata` wrote: {error}"))
}

pub(crate) fn cannot_run(command: &Command, error: &std::io::Error) -> String {
    format!("cannot run `{}`: {error}", text(command))
}

/// The command as one would type it; the program without its folder.
pub(crate) fn text(command: &Command) -> String {
    let program = PathBuf::from(command.get_program());
    let program = program.file_name().unwrap_or(command.get_program());
    let mut text = program.to_string_lossy().into_owned();
    for argument in command.get_args() {
        text.push(' ');
        text.push_str(&argument.to_string_lossy());
    }
    text
}
