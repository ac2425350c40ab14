//! A disk as slow as the source's, by the kernel's block I/O controller (version 1).

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

/// Holds a process to so many reads and writes a second, until it is dropped.
pub(super) struct Throttle {
    group: PathBuf,
    process: u32,
}

const ROOT: &str = "/sys/fs/cgroup/blkio";

impl Throttle {
    /// Throttles a process's access to the device that a folder is on.
    ///
    /// # Errors
    ///
    /// Where there is no such controller, or we may not use it.
    pub(super) fn new(process: u32, folder: &Path, per_second: u32) -> io::Result<Self> {
        let device = device_of(folder)?;
        let group = Path::new(ROOT).join(format!("ordid-bench-{}", std::process::id()));
        fs::create_dir(&group)?;
        let throttle = Self { group, process };
        let limit = format!("{device} {per_second}");
        for file in [
            "blkio.throttle.read_iops_device",
            "blkio.throttle.write_iops_device",
        ] {
            fs::write(throttle.group.join(file), &limit)?;
        }
        fs::write(throttle.group.join("cgroup.procs"), process.to_string())?;
        Ok(throttle)
    }
}

impl Drop for Throttle {
    fn drop(&mut self) {
        // A group can go when nobody is in it.
        let root = Path::new(ROOT).join("cgroup.procs");
        let left = fs::write(root, self.process.to_string());
        if let Err(error) = left.and_then(|()| fs::remove_dir(&self.group)) {
            eprintln!("{} stays: {error}", self.group.display());
        }
    }
}

/// Returns `major:minor` of the whole disk that a folder is on.
fn device_of(folder: &Path) -> io::Result<String> {
    let output = Command::new("findmnt")
        .args(["--noheadings", "--output", "MAJ:MIN", "--target"])
        .arg(folder)
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() && text.contains(':') {
        Ok(text)
    } else {
        Err(io::Error::other("findmnt does not know the disk"))
    }
}
