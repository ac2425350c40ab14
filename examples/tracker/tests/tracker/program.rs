//! Tests that run the program.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
};

use libtest_mimic::Trial;

use crate::Result;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("program::it_answers_until_it_is_asked_to_end", answers),
        Trial::test("program::another_mask_reads_other_tenants", masked),
        Trial::test("program::what_it_cannot_open_is_one_line", refused),
    ]
}

fn command(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tracker"));
    command
        .args(["--listen", "127.0.0.1:0"])
        .env("TMPDIR", folder)
        .env_remove("DATABASE_URL")
        .env_remove("TRACKER_MASK");
    command
}

/// A running program, which is killed when this is dropped.
struct Running(Child, String);

impl Running {
    fn start(command: &mut Command) -> Result<Self> {
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().ok_or("no stdout")?;
        let mut running = Self(child, String::new());
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let address = line
            .split_once("http://")
            .and_then(|(_, rest)| rest.split_once(','));
        running.1 = address
            .ok_or_else(|| format!("no address in {line:?}"))?
            .0
            .to_owned();
        Ok(running)
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> Result<String> {
        let mut stream = TcpStream::connect(&self.1)?;
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: tracker\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    /// Adds a tenant, and returns its id.
    fn tenant(&self) -> Result<String> {
        let made = self.ask("POST", "/api/tenants", r#"{"name":"Engines"}"#)?;
        assert!(made.starts_with("HTTP/1.1 201 Created\r\n"), "{made}");
        let (_, id) = made.split_once("{\"id\":\"").ok_or_else(|| made.clone())?;
        let (id, _) = id.split_once('"').ok_or_else(|| made.clone())?;
        Ok(id.to_owned())
    }

    fn end(mut self) -> Result {
        let asked = Command::new("kill")
            .args(["-TERM", &self.0.id().to_string()])
            .status()?;
        assert!(asked.success());
        let status = self.0.wait()?;
        assert!(status.success(), "{status}");
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The program may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn answers() -> Result {
    let folder = tempfile::tempdir()?;
    let tracker = Running::start(&mut command(folder.path()))?;
    let id = tracker.tenant()?;
    let page = tracker.ask("GET", "/", "")?;
    assert!(
        page.starts_with("HTTP/1.1 200 OK\r\n") && page.contains("<title>tracker</title>"),
        "{page}"
    );
    tracker.end()?;

    // The objects are in the file, and the next run opens it although the tables exist.
    assert!(folder.path().join("tracker.sqlite").exists());
    for database in [
        "tracker.sqlite",
        "sqlite:tracker.sqlite",
        "sqlite://tracker.sqlite",
    ] {
        let mut command = command(folder.path());
        command.args(["--database", database]);
        let tracker = Running::start(command.current_dir(&folder))?;
        let found = tracker.ask("GET", &format!("/api/tenants/{id}"), "")?;
        assert!(found.starts_with("HTTP/1.1 200 OK\r\n"), "{found}");
        assert!(found.contains("\"name\":\"Engines\""), "{found}");
        tracker.end()?;
    }
    Ok(())
}

fn masked() -> Result {
    let folder = tempfile::tempdir()?;
    let mask = "0123456789abcdeffedcba9876543210";
    let tracker = Running::start(command(folder.path()).env("TRACKER_MASK", mask))?;
    let id = tracker.tenant()?;
    tracker.end()?;
    for (mask, status) in [
        (mask, "200 OK"),
        ("0123456789abcdeffedcba9876543211", "404 Not Found"),
    ] {
        let tracker = Running::start(command(folder.path()).env("TRACKER_MASK", mask))?;
        let found = tracker.ask("GET", &format!("/api/tenants/{id}"), "")?;
        assert!(
            found.starts_with(&format!("HTTP/1.1 {status}\r\n")),
            "{found}"
        );
        tracker.end()?;
    }
    let output = command(folder.path())
        .env("TRACKER_MASK", "secret")
        .output()?;
    let stderr = String::from_utf8(output.stderr)?;
    assert!(
        stderr.starts_with("tracker: TRACKER_MASK is not 32 hexadecimal digits"),
        "{stderr}"
    );
    assert!(
        !stderr.contains("secret") && output.status.code() == Some(1),
        "{stderr}"
    );
    Ok(())
}

fn refused() -> Result {
    let folder = tempfile::tempdir()?;
    for database in ["no/such.sqlite", "postgres://me:secret@127.0.0.1:1/tracker"] {
        let output = command(folder.path())
            .args(["--database", database])
            .output()?;
        let stderr = String::from_utf8(output.stderr)?;
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(
            stderr.starts_with("tracker: cannot open the database: "),
            "{stderr}"
        );
        assert!(
            stderr.lines().count() == 1 && !stderr.contains("secret"),
            "{stderr}"
        );
        assert!(output.stdout.is_empty());
    }
    Ok(())
}
