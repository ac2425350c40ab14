//! The program itself.

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
        Trial::test("program::what_it_cannot_open_is_one_line", refused),
    ]
}

/// Ends with the test.
struct Running(Child, String);

impl Running {
    fn start(folder: &Path) -> Result<Self> {
        let mut child = Command::new(env!("CARGO_BIN_EXE_web-shop"))
            .args(["--listen", "127.0.0.1:0"])
            .env("TMPDIR", folder)
            .env_remove("DATABASE_URL")
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child.stdout.take().ok_or("no stdout")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let mut running = Self(child, line);
        let address = running
            .1
            .split_once("http://")
            .and_then(|(_, rest)| rest.split_once(','));
        running.1 = address
            .ok_or_else(|| format!("no address in {:?}", running.1))?
            .0
            .to_owned();
        Ok(running)
    }

    fn ask(&self, request: &str) -> Result<String> {
        let mut stream = TcpStream::connect(&self.1)?;
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
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
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn answers() -> Result {
    let folder = tempfile::tempdir()?;
    let shop = Running::start(folder.path())?;
    let body = r#"{"sku":"tea","name":"Tea","price_cents":450}"#;
    let length = body.len();
    let made = shop.ask(&format!(
        "POST /products HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    ))?;
    assert!(made.starts_with("HTTP/1.1 201 Created\r\n"), "{made}");
    let (_, id) = made.split_once("{\"id\":\"").ok_or_else(|| made.clone())?;
    let (id, _) = id.split_once('"').ok_or_else(|| made.clone())?;
    shop.end()?;

    // What was made is in the file, which another run opens without making the tables again.
    assert!(folder.path().join("web-shop.sqlite").exists());
    let shop = Running::start(folder.path())?;
    let found = shop.ask(&format!(
        "GET /products/{id} HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n"
    ))?;
    assert!(found.starts_with("HTTP/1.1 200 OK\r\n"), "{found}");
    assert!(found.contains("\"sku\":\"tea\""), "{found}");
    shop.end()
}

fn refused() -> Result {
    for (database, reason) in [
        ("no/such.sqlite", "web-shop: cannot open the database: "),
        (
            "postgres://me:secret@127.0.0.1:1/shop",
            "web-shop: cannot open the database: ",
        ),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_web-shop"))
            .args(["--listen", "127.0.0.1:0"])
            .env("DATABASE_URL", database)
            .output()?;
        let stderr = String::from_utf8(output.stderr)?;
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.starts_with(reason), "{stderr}");
        assert!(!stderr.contains("secret"), "{stderr}");
        assert!(output.stdout.is_empty());
    }
    Ok(())
}
