//! A private H2 server, and its own tool that runs scripts.
//!
//! H2 also answers PostgreSQL's protocol, but there it fixes its mode to PostgreSQL's. The mode is
//! part of a JDBC URL, so tests speak through `RunScript`, which takes one: a process per script.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::Error;
use crate::java::Java;
use crate::process::Launch;
use crate::server::{Found, Identity, Recipe, connect, logged};

/// Where Debian's package puts the library.
const DEBIAN: &str = "/usr/share/java/h2.jar";

/// The Java runtime and the library.
pub(crate) struct H2 {
    java: Java,
}

impl H2 {
    /// Finds `java` in `PATH`, and the library in `CLASSPATH` or where Debian puts it.
    pub(crate) fn find() -> Result<Found<Self>, Error> {
        let packages = "libh2-java default-jre-headless";
        let java = Java::find(DEBIAN, Self::IDENTITY.package, packages)?;
        // Debian's is a link to the file whose name says the version.
        let file = java.jar().canonicalize();
        let file = file.unwrap_or_else(|_| java.jar().to_owned());
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        let version = format!("H2 ({name}) on {}", java.runtime_version());
        let recipe = Self { java };
        Ok(Found { recipe, version })
    }

    /// Returns the start of a command line: the runtime, its options, one of H2's tools.
    fn tool(&self, options: &[String], tool: &str) -> Vec<String> {
        let class = format!("org.h2.tools.{tool}");
        self.java.command(options, &[], &class)
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

impl Recipe for H2 {
    // The package creates no account.
    const IDENTITY: Identity = Identity::of("h2", "nobody", "libh2-java");
    const URL: &'static str = "jdbc:h2:tcp://127.0.0.1:{port}/./ordid";

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
        Launch::of(Vec::new(), serve)
    }

    fn ready(&self, folder: &Path, port: u16) -> bool {
        logged(folder, "TCP server running at") && connect(port).is_ok()
    }
}
