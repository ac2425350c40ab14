//! Where and with what a bench ran.

use std::{env, fs, thread};

/// The benches' own lock file: exactly the versions that were built.
const LOCK: &str = include_str!("../../Cargo.lock");

/// Returns the lines that say on what machine and with which versions of these crates a bench ran.
pub fn describe(crates: &[&str]) -> String {
    let crates: Vec<_> = crates
        .iter()
        .map(|name| format!("{name} {}", version(name).unwrap_or("?")))
        .collect();
    let cores = thread::available_parallelism().map_or_else(|_| "?".to_owned(), |n| n.to_string());
    format!(
        "machine   {}, {cores} logical cores, {} AES\n\
         system    {}\n\
         compiler  {}, {}, profile {}\n\
         crates    {}",
        processor().unwrap_or_else(|| env::consts::ARCH.to_owned()),
        if has_aes() { "with" } else { "without" },
        system(),
        env!("BENCH_RUSTC"),
        env!("BENCH_TARGET"),
        env!("BENCH_PROFILE"),
        crates.join(", "),
    )
}

/// Returns the version of a crate in the lock file.
fn version(name: &str) -> Option<&'static str> {
    let package = format!("name = \"{name}\"\nversion = \"");
    let (_, rest) = LOCK.split_once(&package)?;
    rest.split('"').next()
}

/// Returns whether the processor has AES instructions.
pub fn has_aes() -> bool {
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    return std::arch::is_x86_feature_detected!("aes");
    #[cfg(target_arch = "aarch64")]
    return std::arch::is_aarch64_feature_detected!("aes");
    #[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
    return false;
}

fn processor() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    field(&text, "model name", ':')
}

fn system() -> String {
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = field(&release, "PRETTY_NAME", '=').unwrap_or_else(|| env::consts::OS.to_owned());
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{}, kernel {}", name.trim_matches('"'), kernel.trim())
}

/// Returns the value of the first line of this name.
fn field(text: &str, name: &str, separator: char) -> Option<String> {
    text.lines()
        .filter_map(|line| line.split_once(separator))
        .find(|(key, _)| key.trim() == name)
        .map(|(_, value)| value.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_come_from_the_lock_file() {
        let version = version("bench-common").expect("its own package is in it");
        assert_eq!(version, env!("CARGO_PKG_VERSION"));
    }

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "model\t\t: 85\nmodel name\t: A: B\n";
        assert_eq!(field(text, "model name", ':').as_deref(), Some("A: B"));
        assert_eq!(field(text, "name", ':'), None);
    }
}
