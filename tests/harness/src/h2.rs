//! A private H2 server, and its own tool that runs scripts.
//!
//! H2 also answers PostgreSQL's protocol, but there it fixes its mode to PostgreSQL's. The mode is
//! part of a JDBC URL, so tests speak through `RunScript`, which takes one: a process per script.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Error;
use crate::find;
use crate::process::Launch;
use crate::server::{Recipe, connect};

/// Where Debian's package puts the library.
const DEBIAN: &str = "/usr/share/java/h2.jar";

/// How every JVM here is run: it starts fast and leaves nothing outside its folder.
const JVM: [&str; 3] = [
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
];

/// The Java runtime and the library.
pub(crate) struct H2 {
    java: PathBuf,
    jar: PathBuf,
    version: String,
}

impl H2 {
    /// Finds `java` in `PATH`, and the library in `CLASSPATH` or where Debian puts it.
    pub(crate) fn find() -> Result<Self, Error> {
        let java = find::binary(&["java"])
            .and_then(|path| Some((find::version(&path)?, path)))
            .map(|(version, path)| (path, version));
        let jar = jar(std::env::var_os("CLASSPATH").as_deref());
        let ((java, runtime), jar) = match (java, jar) {
            (Some(java), Some(jar)) => (java, jar),
            (Some(_), None) => return Err(Error::missing("h2.jar", Self::PACKAGE)),
            (None, Some(_)) => return Err(Error::missing("java", "default-jre-headless")),
            (None, None) => {
                let packages = "libh2-java default-jre-headless";
                return Err(Error::missing("java` with `h2.jar", packages));
            }
        };
        // Debian's is a link to the file whose name says the version.
        let file = jar.canonicalize().unwrap_or_else(|_| jar.clone());
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        let version = format!("H2 ({name}) on {runtime}");
        Ok(Self { java, jar, version })
    }

    /// Returns the start of a command line: the runtime, its options, one of H2's tools.
    fn tool(&self, options: &[String], tool: &str) -> Vec<String> {
        let mut words = vec![self.java.to_string_lossy().into_owned()];
        words.extend(JVM.map(str::to_owned));
        words.extend_from_slice(options);
        words.extend([
            "-cp".to_owned(),
            self.jar.to_string_lossy().into_owned(),
            format!("org.h2.tools.{tool}"),
        ]);
        words
    }

    /// Runs a script and returns the rows of its queries.
    pub(crate) fn script(&self, url: &str, script: &str) -> Result<Vec<String>, Error> {
        let cannot = |error| Error::io("cannot run H2's `RunScript`", error);
        let folder = tempfile::tempdir().map_err(cannot)?;
        let file = folder.path().join("script.sql");
        std::fs::write(&file, script).map_err(cannot)?;
        let words = self.tool(&[], "RunScript");
        let output = Command::new(&words[0])
            .args(&words[1..])
            .args(["-url", url, "-user", "sa", "-showResults", "-script"])
            .arg(&file)
            .stdin(Stdio::null())
            .output()
            .map_err(cannot)?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            // The rest is where in H2 it happened.
            let message: Vec<&str> = said
                .lines()
                .take_while(|line| !line.starts_with("\tat "))
                .collect();
            return Err(Error::new(format!("H2: {}", message.join(" "))));
        }
        // It repeats the statements, and writes each row behind an arrow.
        let text = String::from_utf8_lossy(&output.stdout);
        let rows = text.lines().filter_map(|line| line.strip_prefix("--> "));
        Ok(rows.map(str::to_owned).collect())
    }
}

/// The first library of H2 that the class path names and that is there, else Debian's.
fn jar(class_path: Option<&std::ffi::OsStr>) -> Option<PathBuf> {
    let named = class_path.into_iter().flat_map(std::env::split_paths);
    named
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("h2") && name.ends_with(".jar")
        })
        .chain([PathBuf::from(DEBIAN)])
        .find(|path| path.is_file())
}

impl Recipe for H2 {
    const NAME: &'static str = "h2";
    // The package creates no account.
    const USER: &'static str = "nobody";
    const PACKAGE: &'static str = "libh2-java";

    fn version(&self) -> &str {
        &self.version
    }

    fn url(&self, port: u16) -> String {
        format!("jdbc:h2:tcp://127.0.0.1:{port}/./ordid")
    }

    fn launch(&self, folder: &str, port: u16) -> Launch {
        let options = [
            "-Dh2.bindAddress=127.0.0.1".to_owned(),
            format!("-Djava.io.tmpdir={folder}"),
        ];
        let mut serve = self.tool(&options, "Server");
        serve.extend([
            "-tcp".to_owned(),
            "-tcpPort".to_owned(),
            port.to_string(),
            "-baseDir".to_owned(),
            folder.to_owned(),
            "-ifNotExists".to_owned(),
        ]);
        Launch {
            prepare: Vec::new(),
            serve,
            stop: "TERM",
        }
    }

    fn ready(&self, folder: &Path, port: u16) -> bool {
        // The server says so once it has bound its port, so what answers is no stranger.
        let log = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
        log.contains("TCP server running at") && connect(port).is_ok()
    }
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
            folder.path().join("h2-missing.jar"),
            file("h2-9.9.9.jar"),
            file("h2-1.0.0.jar"),
        ];
        let class_path = std::env::join_paths(&paths).expect("a path");
        assert_eq!(jar(Some(&class_path)), Some(paths[2].clone()));
        let debian = PathBuf::from(DEBIAN);
        assert_eq!(jar(None), debian.is_file().then_some(debian));
    }
}
