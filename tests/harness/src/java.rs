//! The Java runtime, and the libraries of the servers that run on it.

use std::path::{Path, PathBuf};

use crate::Error;
use crate::find;

/// How every JVM here is run: it starts fast and leaves nothing outside its folder.
const OPTIONS: [&str; 3] = [
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
];

/// What a server that runs on Java consists of.
pub(crate) struct Java {
    runtime: PathBuf,
    runtime_version: String,
    jar: PathBuf,
}

impl Java {
    /// Finds `java` in `PATH`, and a library in `CLASSPATH` or where Debian's package puts it.
    /// `packages` names Java's as well, for who has neither.
    pub(crate) fn find(
        debian: &str,
        package: &'static str,
        packages: &'static str,
    ) -> Result<Self, Error> {
        let runtime = find::binary(&["java"]).and_then(|path| Some((find::version(&path)?, path)));
        let jar = jar(std::env::var_os("CLASSPATH").as_deref(), Path::new(debian));
        let name = Path::new(debian).file_name().unwrap_or_default();
        match (runtime, jar) {
            (Some((runtime_version, runtime)), Some(jar)) => Ok(Self {
                runtime,
                runtime_version,
                jar,
            }),
            (Some(_), None) => Err(Error::missing(&name.to_string_lossy(), package)),
            (None, Some(_)) => Err(Error::missing("java", "default-jre-headless")),
            (None, None) => {
                let both = format!("java` with `{}", name.to_string_lossy());
                Err(Error::missing(&both, packages))
            }
        }
    }

    /// What the runtime says to `--version`.
    pub(crate) fn runtime_version(&self) -> &str {
        &self.runtime_version
    }

    /// The library's file.
    pub(crate) fn jar(&self) -> &Path {
        &self.jar
    }

    /// Returns the start of a command line that runs a class of the library: the runtime, its
    /// options, the class path, to which `more` is added, and the class.
    pub(crate) fn command(&self, options: &[String], more: &[&Path], class: &str) -> Vec<String> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let mut class_path = vec![text(&self.jar)];
        class_path.extend(more.iter().map(|path| text(path)));
        let mut words = vec![text(&self.runtime)];
        words.extend(OPTIONS.map(str::to_owned));
        words.extend_from_slice(options);
        words.extend(["-cp".to_owned(), class_path.join(":"), class.to_owned()]);
        words
    }
}

/// The first file that the class path names, is there and called as Debian's, with or without a
/// version; else Debian's.
fn jar(class_path: Option<&std::ffi::OsStr>, debian: &Path) -> Option<PathBuf> {
    let named = class_path.into_iter().flat_map(std::env::split_paths);
    let stem = debian.file_stem().unwrap_or_default().to_string_lossy();
    named
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            // Not `zookeeper-jute.jar`.
            let rest = name
                .strip_prefix(&*stem)
                .and_then(|rest| rest.strip_suffix(".jar"));
            rest.is_some_and(|rest| {
                let version = rest.trim_start_matches('-');
                version.is_empty() || version.starts_with(|it: char| it.is_ascii_digit())
            })
        })
        .chain([debian.to_owned()])
        .find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_path_comes_before_debian_s_library() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, "").expect("written");
            path
        };
        let paths = [
            file("other.jar"),
            file("h2-jute.jar"),
            folder.path().join("h2-8.8.8.jar"),
            file("h2-9.9.9.jar"),
            file("h2-1.0.0.jar"),
        ];
        let class_path = std::env::join_paths(&paths).expect("a path");
        let debian = file("h2.jar");
        assert_eq!(jar(Some(&class_path), &debian).as_ref(), Some(&paths[3]));
        assert_eq!(jar(None, &debian), Some(debian));
        assert_eq!(jar(None, &folder.path().join("missing.jar")), None);
    }
}
