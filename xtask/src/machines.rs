//! The tests of keys on machines of other kinds than this one, emulated by QEMU: a part of `cargo xtask soak`.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use ordid_harness::{Target, Toolchain};

use crate::{packages, run};

/// What is tested there: keys, and what the derives make.
const TESTED: [&[&str]; 2] = [
    &["-p", "ordid-core", "--tests"],
    &["-p", "ordid-tests", "--test", "derive"],
];

/// A machine of another kind.
#[derive(Clone, Copy)]
pub(crate) struct Machine {
    target: Target,
    /// What GNU calls it.
    gnu: &'static str,
    emulator: &'static str,
    /// The compiler of C and its library, and the emulator, as Debian calls them.
    packages: &'static [&'static str],
}

/// The first is big-endian; the second has weakly ordered memory, which QEMU does not show on a machine without.
pub(crate) const MACHINES: [Machine; 2] = [
    Machine {
        target: Target::S390x,
        gnu: "s390x-linux-gnu",
        emulator: "qemu-s390x-static",
        packages: &[
            "gcc-s390x-linux-gnu",
            "libc6-dev-s390x-cross",
            "qemu-user-static",
        ],
    },
    Machine {
        target: Target::Aarch64,
        gnu: "aarch64-linux-gnu",
        emulator: "qemu-aarch64-static",
        packages: &[
            "gcc-aarch64-linux-gnu",
            "libc6-dev-arm64-cross",
            "qemu-user-static",
        ],
    },
];

impl Machine {
    /// Returns its name, as `cargo --target` takes it.
    pub(crate) fn name(self) -> &'static str {
        self.target.name()
    }

    /// Returns the commands that test it, or the reason why this machine cannot emulate it. A compiler that is there and does
    /// not run is an error.
    pub(crate) fn tests(self) -> run::Result<std::result::Result<Vec<Command>, String>> {
        if env::consts::OS != "linux" {
            return Ok(Err(
                "QEMU emulates programs of Linux on Linux alone".to_owned()
            ));
        }
        let installed = packages::install(|| {
            let compiler = format!("{}-gcc", self.gnu);
            let programs = [compiler.as_str(), self.emulator];
            let has_all = programs
                .iter()
                .all(|it| packages::works(it, &["--version"]))
                && self.library().join("lib/libc.so.6").exists();
            Ok(if has_all {
                Vec::new()
            } else {
                self.packages.to_vec()
            })
        });
        if let Err(reason) = installed {
            return Ok(Err(reason));
        }
        match Toolchain::find(self.target) {
            Ok(toolchain) => Ok(Ok(TESTED
                .map(|tested| self.command(&toolchain, tested))
                .into())),
            Err(error) if error.is_unavailable() => Ok(Err(error.to_string())),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The folder of its libraries of C.
    fn library(self) -> PathBuf {
        Path::new("/usr").join(self.gnu)
    }

    fn command(self, toolchain: &Toolchain, tested: &[&str]) -> Command {
        let mut command = toolchain.cargo();
        command
            .current_dir(run::root())
            .args(["test", "--locked", "--no-fail-fast"])
            .args(tested)
            .args(["--target", self.name(), "--target-dir"])
            .arg(run::target().join("machines"));
        let variable = self.name().to_uppercase().replace('-', "_");
        command
            .env(
                format!("CARGO_TARGET_{variable}_LINKER"),
                format!("{}-gcc", self.gnu),
            )
            .env(format!("CARGO_TARGET_{variable}_RUNNER"), self.emulator)
            // A test that starts itself once more needs it, too.
            .env("ORDID_TEST_EMULATOR", self.emulator)
            // The libraries of C are those that it is linked with.
            .env("QEMU_LD_PREFIX", self.library());
        command
    }
}
