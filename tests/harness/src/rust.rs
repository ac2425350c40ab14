//! Compilers for other machines than this one.
//!
//! Where the toolchain that runs the tests has the standard library of the target, it is used. `rustup target add`
//! brings it. Otherwise Debian's toolchain of the next suite is unpacked, as MySQL is.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Error;
use crate::debian::{Packages, broken};
use crate::find;

const PROGRAMS: &[&str] = &[
    "usr/bin/cargo",
    "usr/bin/rustc",
    "usr/bin/rustdoc",
    "usr/bin/wasm-ld",
];

const FOR_WASM: Packages = Packages {
    name: "rust-wasm",
    suite: "sid",
    packages: &["rustc", "cargo", "lld", "libstd-rust-dev-wasm32"],
    foreign: &[],
    programs: PROGRAMS,
    // Only root unpacks, and root alone is sure to have access to the cache.
    user: "root",
};

/// By itself, since a mirror may lack these architectures, or their packages may be older for some days.
const FOR_MACHINES: Packages = Packages {
    name: "rust-machines",
    packages: &["rustc", "cargo", "lld"],
    foreign: &["libstd-rust-dev:s390x", "libstd-rust-dev:arm64"],
    ..FOR_WASM
};

/// A machine that code is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// WebAssembly in a page: `wasm32-unknown-unknown`.
    Wasm,
    /// A big-endian machine with Linux: `s390x-unknown-linux-gnu`.
    S390x,
    /// A machine with weakly ordered memory, and Linux: `aarch64-unknown-linux-gnu`.
    Aarch64,
}

impl Target {
    /// Returns its name, as `cargo --target` takes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Wasm => "wasm32-unknown-unknown",
            Self::S390x => "s390x-unknown-linux-gnu",
            Self::Aarch64 => "aarch64-unknown-linux-gnu",
        }
    }
}

/// A cargo with a compiler for a target.
pub struct Toolchain {
    cargo: OsString,
    /// Variables that make this cargo use the compiler and linker of its own folder.
    variables: Vec<(String, PathBuf)>,
}

impl Toolchain {
    /// Finds a toolchain for a target, and unpacks one where there is none.
    ///
    /// # Errors
    ///
    /// There is none, and this machine cannot get one ([`Error::is_unavailable`]).
    pub fn find(target: Target) -> Result<Self, Error> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let sysroot = find::output(Command::new("rustc").args(["--print", "sysroot"]));
        let has_target = |sysroot: &str| {
            let libraries = Path::new(sysroot).join("lib/rustlib");
            libraries.join(target.name()).join("lib").exists()
        };
        if sysroot.as_deref().is_some_and(has_target) {
            return Ok(Self {
                cargo,
                variables: Vec::new(),
            });
        }
        let packages = match target {
            Target::Wasm => FOR_WASM,
            Target::S390x | Target::Aarch64 => FOR_MACHINES,
        };
        let unpacked = packages.unpack().map_err(|error| {
            if error.is_unavailable() {
                let target = target.name();
                Error::unavailable(format!(
                    "no standard library for {target}: rustup target add {target} ({error})"
                ))
            } else {
                error
            }
        })?;
        let inside = |program: &str| PathBuf::from(unpacked.path(&format!("usr/bin/{program}")));
        let cargo = inside("cargo");
        let programs = [&inside("rustc"), &cargo];
        let runs = programs
            .iter()
            .all(|program| find::version(program).is_some());
        if !runs || !has_target(&unpacked.path("usr")) {
            return Err(broken(&cargo));
        }
        Ok(Self {
            cargo: cargo.into_os_string(),
            variables: vec![
                ("RUSTC".to_owned(), inside("rustc")),
                ("RUSTDOC".to_owned(), inside("rustdoc")),
                (
                    "CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER".to_owned(),
                    inside("wasm-ld"),
                ),
            ],
        })
    }

    /// Returns the command `cargo`, which uses this toolchain. Give it a `--target-dir` of its own: its version may be
    /// another than that of the cargo that waits for it.
    #[must_use]
    pub fn cargo(&self) -> Command {
        let mut cargo = Command::new(&self.cargo);
        cargo.envs(self.variables.iter().map(|(name, value)| (name, value)));
        // What is set for this machine's builds need not suit the other one.
        for name in [
            "RUSTFLAGS",
            "CARGO_ENCODED_RUSTFLAGS",
            "CARGO_BUILD_TARGET",
            "CARGO_TARGET_DIR",
        ] {
            cargo.env_remove(name);
        }
        cargo
    }
}
