//! Finding binaries, and what they say about themselves.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Error;
use crate::server::Found;

/// Where servers are installed; often not in the `PATH` of an ordinary user.
const SYSTEM: [&str; 3] = ["/usr/sbin", "/usr/local/sbin", "/usr/local/bin"];

/// The folders of `PATH`, then those of the system.
pub(crate) fn folders() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(SYSTEM.iter().map(PathBuf::from))
        .collect()
}

/// The first of the names that is a file in a folder of the search path.
pub(crate) fn binary(names: &[&str]) -> Option<PathBuf> {
    let folders = folders();
    names
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
        .find(|path| path.is_file())
}

/// The first line that `binary --version` prints.
pub(crate) fn version(binary: &Path) -> Option<String> {
    output(Command::new(binary).arg("--version"))
}

/// A server that is one binary, and its version.
pub(crate) fn alone<R>(
    name: &str,
    package: &'static str,
    recipe: impl FnOnce(PathBuf) -> R,
) -> Result<Found<R>, Error> {
    let found = binary(&[name]).and_then(|path| Some((version(&path)?, path)));
    let (version, path) = found.ok_or_else(|| Error::missing(name, package))?;
    let recipe = recipe(path);
    Ok(Found { recipe, version })
}

/// The first line that a command prints, if it succeeds.
pub(crate) fn output(command: &mut Command) -> Option<String> {
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    if !output.status.success() {
        return None;
    }
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().next().map(|line| line.trim().to_owned())
}
