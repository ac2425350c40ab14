//! Describes the machine that a report was made on.

use std::{env, fs, thread};

/// Returns the processor, memory, system and this program's version, by name, as far as the system tells them.
pub(crate) fn facts() -> Vec<(String, String)> {
    let cores = thread::available_parallelism().map_or_else(|_| "?".to_owned(), |n| n.to_string());
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let processor = field(&cpus, "model name", ':').unwrap_or_else(|| env::consts::ARCH.to_owned());
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let system = field(&release, "PRETTY_NAME", '=').unwrap_or_else(|| env::consts::OS.to_owned());
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut facts = vec![
        (
            "processor".to_owned(),
            format!("{processor}, {cores} logical cores"),
        ),
        (
            "system".to_owned(),
            format!("{} {}", system.trim_matches('"'), kernel.trim())
                .trim_end()
                .to_owned(),
        ),
    ];
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    if let Some(kibibytes) = field(&memory, "MemTotal", ':')
        && let Some(Ok(kibibytes)) = kibibytes.split(' ').next().map(str::parse::<u64>)
    {
        facts.insert(
            1,
            ("memory".to_owned(), format!("{} MiB", kibibytes / 1024)),
        );
    }
    let build = if cfg!(debug_assertions) {
        ", built without optimisation"
    } else {
        ""
    };
    facts.push((
        "ordid".to_owned(),
        format!("{}{build}", env!("CARGO_PKG_VERSION")),
    ));
    facts
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
    fn facts_name_the_processor_and_this_version() {
        let facts = facts();
        assert_eq!(facts[0].0, "processor");
        let (name, version) = &facts[facts.len() - 1];
        assert!(
            name == "ordid" && version.starts_with(env!("CARGO_PKG_VERSION")),
            "{facts:?}"
        );
    }
}
