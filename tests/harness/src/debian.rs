//! Programs of another Debian suite, unpacked into a folder of the cache. Nothing is installed.
//!
//! `apt-get` gets a root of its own, with an empty list of installed packages, so that it downloads all that the
//! packages depend on. It uses the machine's mirror, proxy and keyring. The programs are newer than the system's
//! C library, so they run by the loader of their own folder. Programs that start one another know nothing of the
//! loader: a script that calls it takes the name of each, `postgres`, and the program becomes `postgres.elf`.
//!
//! ```text
//!   target/ordid-servers/
//!     mysql.lock       held while someone unpacks: others wait, and then find the folder
//!     mysql.partial/   what is being unpacked, or was when a run was killed
//!     mysql/           complete: the folder above, renamed
//! ```

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::Error;
use crate::find;
use crate::process::is_open;

const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// The folders that newer suites have merged into `usr`.
const MERGED: [&str; 4] = ["bin", "sbin", "lib", "lib64"];

/// What to unpack.
pub(crate) struct Packages {
    /// The folder's name in the cache.
    pub(crate) name: &'static str,
    /// A suite that the mirrors have, such as `sid`.
    pub(crate) suite: &'static str,
    pub(crate) packages: &'static [&'static str],
    /// Packages of other architectures, such as `libstd-rust-dev:s390x`, without what they depend on. They have the version
    /// of the first package above.
    pub(crate) foreign: &'static [&'static str],
    /// Those of their programs that others start by their names.
    pub(crate) programs: &'static [&'static str],
    /// The account that runs them when this process belongs to root.
    pub(crate) user: &'static str,
}

/// A folder with the packages and all that they depend on.
pub(crate) struct Unpacked(PathBuf);

impl Packages {
    /// Unpacks the packages, unless an earlier run has done so.
    ///
    /// # Errors
    ///
    /// When this machine cannot get them ([`Error::is_unavailable`]): it is no Debian, this process does not belong
    /// to root, the mirror does not answer, or the account that runs them has no access to the cache.
    pub(crate) fn unpack(&self) -> Result<Unpacked, Error> {
        let cache = cache();
        let is_root = || find::output(Command::new("id").arg("-u")).is_some_and(|id| id == "0");
        if !cache.join(self.name).exists() && !is_root() {
            return Err(Error::unavailable(
                "packages of another suite are unpacked for root on Debian only",
            ));
        }
        if self.user != "root" && is_root() {
            fs::create_dir_all(&cache).map_err(|error| cannot(&cache, error))?;
            if !is_open(&cache) {
                return Err(Error::unavailable(format!(
                    "the account `{}` has no access to {}: have the build folder elsewhere",
                    self.user,
                    cache.display()
                )));
            }
        }
        once(&cache, self.name, |folder| self.unpack_into(folder)).map(Unpacked)
    }

    fn unpack_into(&self, folder: &Path) -> Result<(), Error> {
        let mirror = mirror()?;
        let apt = folder.join("apt");
        for part in ["state/lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(apt.join(part)).map_err(|error| cannot(folder, error))?;
        }
        let source = format!("deb [signed-by={KEYRING}] {mirror} {} main\n", self.suite);
        for (file, text) in [("sources.list", source.as_str()), ("status", "")] {
            fs::write(apt.join(file), text).map_err(|error| cannot(folder, error))?;
        }
        let architectures = self.foreign.iter().filter_map(|it| it.rsplit_once(':'));
        let architectures: Vec<&str> = architectures.map(|(_, it)| it).collect();
        let apt_get = |arguments: &[&str]| apt_get(&apt, &architectures, arguments);
        apt_get(&["update"])?;
        apt_get(&[&["--download-only", "install"], self.packages].concat())?;
        if let (Some(first), false) = (self.packages.first(), self.foreign.is_empty()) {
            let version = version_of(first, &apt.join("cache/archives"))?;
            let foreign = self.foreign.iter().map(|name| format!("{name}={version}"));
            let foreign: Vec<String> = foreign.collect();
            let mut arguments = vec!["download"];
            arguments.extend(foreign.iter().map(String::as_str));
            apt_get(&arguments)?;
        }

        // A package of the old layout must not make a folder where one of the new layout needs a link.
        for merged in MERGED {
            let target = Path::new("usr").join(merged);
            fs::create_dir_all(folder.join(&target))
                .and_then(|()| std::os::unix::fs::symlink(&target, folder.join(merged)))
                .map_err(|error| cannot(folder, error))?;
        }
        let archives = apt.join("cache/archives");
        for archive in fs::read_dir(archives).map_err(|error| cannot(folder, error))? {
            let archive = archive.map_err(|error| cannot(folder, error))?.path();
            if archive.extension().is_some_and(|it| it == "deb") {
                extract(&archive, folder)?;
            }
        }
        for program in self.programs {
            wrap(folder, program)?;
        }
        fs::remove_dir_all(&apt).map_err(|error| cannot(folder, error))
    }
}

impl Unpacked {
    /// Returns the path of a file or folder, as text for a command line.
    pub(crate) fn path(&self, inside: &str) -> String {
        self.0.join(inside).to_string_lossy().into_owned()
    }

    /// Returns the start of a command line that runs a program of this folder with the folder's libraries.
    ///
    /// # Errors
    ///
    /// When the folder has no loader.
    pub(crate) fn command(&self, program: &str) -> Result<Vec<String>, Error> {
        let (loader, libraries) = loader(&self.0)?;
        Ok(vec![
            loader.to_string_lossy().into_owned(),
            "--library-path".to_owned(),
            libraries.to_string_lossy().into_owned(),
            self.path(program),
        ])
    }
}

/// Returns a folder's loader, and the libraries beside it.
fn loader(folder: &Path) -> Result<(PathBuf, PathBuf), Error> {
    // Debian names the folder after the architecture, and the loader in it, too.
    let libraries = entry(&folder.join("usr/lib"), |name| name.ends_with("-linux-gnu"));
    let is_loader = |name: &str| name.starts_with("ld-linux");
    let loader = libraries.and_then(|folder| Some((entry(&folder, is_loader)?, folder)));
    loader.ok_or_else(|| {
        let folder = folder.display();
        Error::new(format!(
            "{folder} has no loader: remove the folder, and the next run unpacks it again"
        ))
    })
}

/// The error of an unpacked program that cannot say its version.
pub(crate) fn broken(program: &Path) -> Error {
    let program = program.display();
    Error::new(format!(
        "`{program} --version` fails: remove the folder, and the next run unpacks it again"
    ))
}

/// Has a script run a program by the folder's loader, under the program's name, by which it finds its files.
fn wrap(folder: &Path, program: &str) -> Result<(), Error> {
    let (loader, libraries) = loader(folder)?;
    // The folder is going to be renamed.
    let inside = |path: PathBuf| {
        let path = path.strip_prefix(folder).map(Path::to_path_buf);
        path.map(|path| format!("\"${{0%/usr/*}}/{}\"", path.display()))
    };
    let (Ok(loader), Ok(libraries)) = (inside(loader), inside(libraries)) else {
        return Err(Error::new("the loader is elsewhere".to_owned()));
    };
    let script = format!(
        "#!/bin/sh\nexec {loader} --library-path {libraries} --argv0 \"$0\" \"$0.elf\" \"$@\"\n"
    );
    let path = folder.join(program);
    fs::rename(&path, folder.join(format!("{program}.elf")))
        .and_then(|()| fs::write(&path, script))
        .and_then(|()| fs::set_permissions(&path, PermissionsExt::from_mode(0o755)))
        .map_err(|error| cannot(&path, error))
}

/// The first entry of a folder with such a name.
fn entry(folder: &Path, is_it: impl Fn(&str) -> bool) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?.flatten();
    let named = entries.filter(|entry| entry.file_name().to_str().is_some_and(&is_it));
    named.map(|entry| entry.path()).min()
}

/// The workspace's build folder, which `cargo clean` empties.
fn cache() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let cache = workspace.join(target).join("ordid-servers");
    // The server's messages quote the path.
    cache.canonicalize().unwrap_or(cache)
}

/// Returns the folder of this name in the cache, which `make` fills if no run has done so yet. It is there when it
/// is complete, and made once where several processes ask for it at the same time.
fn once(
    cache: &Path,
    name: &str,
    make: impl FnOnce(&Path) -> Result<(), Error>,
) -> Result<PathBuf, Error> {
    let folder = cache.join(name);
    if folder.exists() {
        return Ok(folder);
    }
    fs::create_dir_all(cache).map_err(|error| cannot(cache, error))?;
    // The system releases the lock when this process ends, however it ends.
    let lock = fs::File::create(cache.join(format!("{name}.lock")));
    let lock = lock.map_err(|error| cannot(cache, error))?;
    lock.lock().map_err(|error| cannot(cache, error))?;
    if folder.exists() {
        return Ok(folder);
    }
    let partial = cache.join(format!("{name}.partial"));
    if partial.exists() {
        fs::remove_dir_all(&partial).map_err(|error| cannot(&partial, error))?;
    }
    fs::create_dir(&partial).map_err(|error| cannot(&partial, error))?;
    let made = make(&partial)
        .and_then(|()| fs::rename(&partial, &folder).map_err(|error| cannot(&folder, error)));
    if made.is_err() {
        // The error that led here is the one to report; the next run removes what is left.
        let _ = fs::remove_dir_all(&partial);
    }
    made.map(|()| folder)
}

/// The mirror that this machine gets Debian's packages from.
fn mirror() -> Result<String, Error> {
    let mut command = Command::new("apt-get");
    command.args(["indextargets", "--format", "$(REPO_URI)"]);
    let output = run(command.arg("Created-By: Packages"))?;
    let uris = String::from_utf8_lossy(&output.stdout).into_owned();
    let is_debian = |uri: &&str| uri.trim_end_matches('/').ends_with("/debian");
    let uri = uris.lines().find(is_debian).map(str::to_owned);
    uri.ok_or_else(|| Error::unavailable("apt's sources name no mirror of Debian"))
}

/// Returns the version of a package that was downloaded, by the name of its file: `rustc_1.97.1+dfsg1-1_amd64.deb`.
fn version_of(package: &str, archives: &Path) -> Result<String, Error> {
    let archive = entry(archives, |name| name.starts_with(&format!("{package}_")));
    let name = archive.as_deref().and_then(Path::file_name);
    let name = name.map(|name| name.to_string_lossy().into_owned());
    let version = name.as_deref().and_then(|name| name.split('_').nth(1));
    // Only a colon is written otherwise.
    let version = version.map(|version| version.replace("%3a", ":"));
    version.ok_or_else(|| Error::new(format!("`apt-get` has not downloaded {package}")))
}

/// Runs `apt-get` in this root, which also knows packages of these architectures. It downloads into the archives.
fn apt_get(apt: &Path, architectures: &[&str], arguments: &[&str]) -> Result<(), Error> {
    let mut command = Command::new("apt-get");
    command.current_dir(apt.join("cache/archives"));
    let apt = apt.display();
    for architecture in architectures {
        // Beside this machine's own.
        command.args(["-o", &format!("APT::Architectures::={architecture}")]);
    }
    for option in [
        format!("Dir::Etc::sourcelist={apt}/sources.list"),
        "Dir::Etc::sourceparts=/dev/null".to_owned(),
        // A preference of the machine's would choose among versions of other suites.
        "Dir::Etc::preferences=/dev/null".to_owned(),
        "Dir::Etc::preferencesparts=/dev/null".to_owned(),
        format!("Dir::State={apt}/state"),
        format!("Dir::State::status={apt}/status"),
        format!("Dir::Cache={apt}/cache"),
        "APT::Install-Recommends=false".to_owned(),
        // The account `_apt` may have no access to the folder.
        "APT::Sandbox::User=root".to_owned(),
        // Without it an update that gets nothing succeeds.
        "APT::Update::Error-Mode=any".to_owned(),
        "Acquire::Languages=none".to_owned(),
        "Acquire::Retries=2".to_owned(),
        "Acquire::http::Timeout=20".to_owned(),
        "Acquire::https::Timeout=20".to_owned(),
    ] {
        command.args(["-o", &option]);
    }
    run(command.args(["-q", "-y"]).args(arguments)).map(drop)
}

/// Unpacks a package. The links of the merged folders stay.
fn extract(archive: &Path, folder: &Path) -> Result<(), Error> {
    let script = r#"dpkg-deb --fsys-tarfile "$1" | tar -x --keep-directory-symlink -C "$2""#;
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh"]).args([archive, folder]);
    run(&mut command).map(drop)
}

/// Runs a command that the machine may lack, or that may need a network.
fn run(command: &mut Command) -> Result<Output, Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    command
        .env("LC_ALL", "C")
        .env("DEBIAN_FRONTEND", "noninteractive");
    let output = command.stdin(Stdio::null()).output();
    let output =
        output.map_err(|error| Error::unavailable(format!("cannot run `{program}`: {error}")))?;
    if output.status.success() {
        return Ok(output);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let mut errors = said.lines().filter(|line| line.starts_with("E: "));
    // The first is the cause; the last one of apt says that something failed.
    let cause = errors.next().or(said.lines().last()).unwrap_or_default();
    let status = output.status;
    Err(Error::unavailable(format!(
        "`{program}` failed ({status}): {cause}"
    )))
}

fn cannot(path: &Path, error: std::io::Error) -> Error {
    Error::io(format!("cannot unpack into {}", path.display()), error)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use super::*;

    #[test]
    fn processes_that_race_make_the_folder_once() {
        let cache = tempfile::tempdir().expect("a folder");
        let made = AtomicU32::new(0);
        let make = |folder: &Path| {
            made.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(100));
            fs::write(folder.join("file"), "all of it").expect("written");
            Ok(())
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let folder = once(cache.path(), "thing", make).expect("made");
                    let text = fs::read_to_string(folder.join("file")).expect("complete");
                    assert_eq!(text, "all of it");
                });
            }
        });
        assert_eq!(made.into_inner(), 1);
    }

    #[test]
    fn a_folder_that_was_left_half_made_is_made_again() {
        let cache = tempfile::tempdir().expect("a folder");
        let partial = cache.path().join("thing.partial");
        fs::create_dir(&partial).expect("made");
        fs::write(partial.join("rest"), "of a killed run").expect("written");
        let folder = once(cache.path(), "thing", |_| Ok(())).expect("made");
        assert!(folder.exists() && !folder.join("rest").exists() && !partial.exists());
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_tried_again_by_the_next_run() {
        let cache = tempfile::tempdir().expect("a folder");
        let fail = |_: &Path| Err(Error::unavailable("no network"));
        let error = once(cache.path(), "thing", fail).expect_err("not made");
        assert!(error.is_unavailable());
        assert!(!cache.path().join("thing").exists());
        once(cache.path(), "thing", |_| Ok(())).expect("made");
    }

    #[test]
    fn a_wrapped_program_runs_by_the_loader_wherever_its_folder_is() {
        let cache = tempfile::tempdir().expect("a folder");
        let made = cache.path().join("partial");
        for folder in ["usr/bin", "usr/lib/some-linux-gnu"] {
            fs::create_dir_all(made.join(folder)).expect("made");
        }
        let loader = made.join("usr/lib/some-linux-gnu/ld-linux-some.so.2");
        std::os::unix::fs::symlink("/bin/echo", loader).expect("made");
        fs::write(made.join("usr/bin/thing"), "a program").expect("written");
        wrap(&made, "usr/bin/thing").expect("wrapped");
        let folder = cache.path().join("usr");
        fs::rename(&made, &folder).expect("renamed");
        // Not by itself: a file that was just written may be busy while other tests start programs.
        let mut thing = Command::new("sh");
        thing.arg(folder.join("usr/bin/thing")).args(["one", "two"]);
        let said = find::output(&mut thing);
        let (usr, elf) = (folder.join("usr"), "bin/thing.elf one two");
        let usr = usr.display();
        assert_eq!(
            said.expect("it runs"),
            format!("--library-path {usr}/lib/some-linux-gnu --argv0 {usr}/bin/thing {usr}/{elf}")
        );
    }

    #[test]
    fn a_command_that_is_missing_or_fails_makes_the_server_unavailable() {
        let error = run(&mut Command::new("ordid-no-such-program")).expect_err("missing");
        assert!(error.is_unavailable(), "{error}");
        let mut failing = Command::new("sh");
        failing.args([
            "-c",
            "echo noise >&2; echo E: no mirror >&2; echo E: failed >&2; exit 100",
        ]);
        let error = run(&mut failing).expect_err("it fails");
        assert!(error.is_unavailable());
        assert_eq!(
            error.to_string(),
            "`sh` failed (exit status: 100): E: no mirror"
        );
    }
}
