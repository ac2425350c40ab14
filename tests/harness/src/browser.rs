//! Drives a headless browser over WebDriver, which is HTTP with JSON. This module uses the standard library's sockets.
//!
//! `chromedriver` and all processes that it starts have the path of a folder in their environment. A watchdog holds the
//! end of a pipe, which is closed when the test ends, in whatever way. Then it kills all processes with this path, and
//! removes the folder.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

/// Any error: a test only reports it.
pub type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// The longest time that a page may take for an action.
const PATIENCE: Duration = Duration::from_secs(30);

/// The JSON key of an element's id, from W3C WebDriver, section 12.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

const WATCHDOG: &str = r#"
trap '' INT TERM HUP
ORDID_BROWSER="$1" HOME="$1" TMPDIR="$1" XDG_CONFIG_HOME="$1" XDG_CACHE_HOME="$1" "$2" --port=0 </dev/null &
cat >/dev/null
tries=0
while [ $tries -lt 200 ]; do
    # One grep reads all files, since a machine may have thousands. The pattern does not match its own command line.
    alive=$(
        grep -lzsxF "ORDID_BROWSER=$1" /proc/[0-9]*/environ
        grep -lzs -e "[-]-user-data-dir=$1/" /proc/[0-9]*/cmdline
    )
    [ -z "$alive" ] && break
    for file in $alive; do
        process=${file#/proc/}
        kill -KILL "${process%%/*}" 2>/dev/null
    done
    sleep 0.05
    tries=$((tries + 1))
done
wait
rm -rf "$1"
"#;

/// The paths of Chromium and its driver.
#[derive(Debug)]
pub struct Installed {
    browser: PathBuf,
    driver: PathBuf,
}

/// Finds Chromium and its driver, or returns the reason why tests of pages are ignored.
///
/// # Errors
///
/// The reason.
pub fn installed() -> std::result::Result<Installed, String> {
    if let Ok(reason) = std::env::var("ORDID_TEST_CHROMIUM_SKIP")
        && !reason.trim().is_empty()
    {
        return Err(reason);
    }
    if !cfg!(target_os = "linux") {
        return Err("processes of a browser are watched on Linux alone".to_owned());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let find = |name: &str| {
        let mut files = std::env::split_paths(&path).map(|folder| folder.join(name));
        files.find(|file| file.is_file())
    };
    match (find("chromium"), find("chromedriver")) {
        (Some(browser), Some(driver)) => Ok(Installed { browser, driver }),
        _ => Err(
            "chromium and chromedriver are not installed: apt-get install chromium chromium-driver"
                .to_owned(),
        ),
    }
}

/// An open browser with one page. Every method fails if the browser refuses or does not answer.
#[derive(Debug)]
pub struct Browser {
    address: String,
    session: String,
    folder: PathBuf,
    watchdog: Child,
    pipe: Option<ChildStdin>,
}

impl Browser {
    /// Opens a window of this width and height.
    ///
    /// # Errors
    ///
    /// The browser does not start.
    pub fn open(installed: &Installed, (width, height): (u32, u32)) -> Result<Self> {
        use std::os::unix::process::CommandExt as _;

        let folder = tempfile::tempdir()?.keep();
        let mut watchdog = Command::new("sh")
            .args(["-c", WATCHDOG, "watchdog"])
            .args([&folder, &installed.driver])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // Ctrl-C in the terminal of the tests must not end the watchdog.
            .process_group(0)
            .spawn()?;
        let pipe = watchdog.stdin.take();
        let stdout = watchdog.stdout.take().ok_or("no stdout")?;
        // From here on, dropping this value ends the browser.
        let mut browser = Self {
            address: String::new(),
            session: String::new(),
            folder,
            watchdog,
            pipe,
        };
        let mut lines = BufReader::new(stdout).lines();
        let port = lines.find_map(|line| {
            let line = line.ok()?;
            line.split_once("started successfully on port ")
                .map(|(_, port)| port.trim_end_matches('.').to_owned())
        });
        browser.address = format!("127.0.0.1:{}", port.ok_or("chromedriver names no port")?);
        // The driver may print more, and must not block because nobody reads it.
        std::thread::spawn(move || lines.for_each(drop));
        let profile = browser.folder.join("profile");
        let capabilities = json!({ "capabilities": { "alwaysMatch": {
            "goog:loggingPrefs": { "browser": "ALL", "performance": "ALL" },
            "goog:chromeOptions": { "binary": installed.browser, "args": [
                "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
                "--disable-background-networking", "--disable-component-update", "--disable-sync",
                "--disable-dev-shm-usage", format!("--window-size={width},{height}"),
                format!("--user-data-dir={}", profile.display()),
            ] },
        } } });
        let mut begun = browser.send("POST", "/session", &capabilities)?;
        browser.session = begun["sessionId"]
            .take()
            .as_str()
            .ok_or("no session")?
            .to_owned();
        Ok(browser)
    }

    /// Sends a command over a new connection.
    fn send(&self, method: &str, path: &str, body: &Value) -> Result<Value> {
        let body = if method == "GET" {
            String::new()
        } else {
            body.to_string()
        };
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(PATIENCE * 2))?;
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{body}",
            self.address,
            body.len()
        )?;
        let mut answer = BufReader::new(stream);
        let mut length = None;
        loop {
            let mut line = String::new();
            answer.read_line(&mut line)?;
            match line.trim_end().split_once(':') {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = Some(value.trim().parse::<usize>()?);
                }
                None if line.trim_end().is_empty() => break,
                _ => (),
            }
        }
        let mut text = vec![0; length.ok_or("an answer of no length")?];
        answer.read_exact(&mut text)?;
        let mut answer: Value = serde_json::from_slice(&text)?;
        let value = answer["value"].take();
        match value["error"].as_str() {
            Some(error) => Err(format!("{method} {path}: {error}: {}", value["message"]).into()),
            None => Ok(value),
        }
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Result<Value> {
        self.send(method, &format!("/session/{}/{path}", self.session), body)
    }

    /// Sends a command of the Chrome DevTools Protocol, such as `Emulation.setEmulatedMedia`.
    ///
    /// # Errors
    ///
    /// Chromium refuses it.
    pub fn devtools(&self, command: &str, parameters: &Value) -> Result<Value> {
        self.ask(
            "POST",
            "goog/cdp/execute",
            &json!({ "cmd": command, "params": parameters }),
        )
    }

    /// Opens a page and waits until it is loaded.
    pub fn go_to(&self, url: &str) -> Result {
        self.ask("POST", "url", &json!({ "url": url })).map(drop)
    }

    /// Opens a tab beside those that are open, and returns its handle. The tab of before stays the current one.
    pub fn open_tab(&self) -> Result<String> {
        let tab = self.ask("POST", "window/new", &json!({ "type": "tab" }))?;
        Ok(tab["handle"].as_str().ok_or("no handle")?.to_owned())
    }

    /// Returns the handle of the current tab.
    pub fn tab(&self) -> Result<String> {
        let tab = self.ask("GET", "window", &Value::Null)?;
        Ok(tab.as_str().ok_or("no handle")?.to_owned())
    }

    /// Makes the tab of this handle the current one, in which all other methods act.
    pub fn switch_to(&self, tab: &str) -> Result {
        self.ask("POST", "window", &json!({ "handle": tab }))
            .map(drop)
    }

    /// Returns the address of the page.
    pub fn url(&self) -> Result<String> {
        let url = self.ask("GET", "url", &Value::Null)?;
        Ok(url.as_str().unwrap_or_default().to_owned())
    }

    /// Runs a function's body in the page, and returns what it returns.
    pub fn run(&self, script: &str, arguments: &Value) -> Result<Value> {
        self.ask(
            "POST",
            "execute/sync",
            &json!({ "script": script, "args": arguments }),
        )
    }

    fn element(&self, selector: &str) -> Result<String> {
        let found = self.ask(
            "POST",
            "element",
            &json!({ "using": "css selector", "value": selector }),
        )?;
        Ok(found[ELEMENT].as_str().ok_or("no element")?.to_owned())
    }

    /// Clicks on an element.
    pub fn click(&self, selector: &str) -> Result {
        let element = self.element(selector)?;
        self.ask("POST", &format!("element/{element}/click"), &json!({}))
            .map(drop)
    }

    /// Replaces the text of a field by typing.
    pub fn fill(&self, selector: &str, text: &str) -> Result {
        let element = self.element(selector)?;
        self.ask("POST", &format!("element/{element}/clear"), &json!({}))?;
        self.type_in(selector, text)
    }

    /// Types into a field.
    pub fn type_in(&self, selector: &str, text: &str) -> Result {
        let element = self.element(selector)?;
        self.ask(
            "POST",
            &format!("element/{element}/value"),
            &json!({ "text": text }),
        )
        .map(drop)
    }

    /// Returns the visible text of an element.
    pub fn text(&self, selector: &str) -> Result<String> {
        let element = self.element(selector)?;
        let text = self.ask("GET", &format!("element/{element}/text"), &Value::Null)?;
        Ok(text.as_str().unwrap_or_default().to_owned())
    }

    /// Waits until the visible text of an element contains a text.
    pub fn wait_for(&self, selector: &str, expected: &str) -> Result<String> {
        let end = Instant::now() + PATIENCE;
        loop {
            let text = self.text(selector).unwrap_or_default();
            if text.contains(expected) {
                return Ok(text);
            }
            if Instant::now() > end {
                let page = self.text("body")?;
                return Err(format!(
                    "{expected:?} is not in {selector}, {text:?}, of the page {page:?}"
                )
                .into());
            }
            sleep(Duration::from_millis(50));
        }
    }

    /// Waits until an element is visible, or until it is not.
    pub fn wait_seen(&self, selector: &str, is_seen: bool) -> Result {
        let script = "const it = document.querySelector(arguments[0]); return Boolean(it && it.checkVisibility());";
        let end = Instant::now() + PATIENCE;
        while self.run(script, &json!([selector]))? != is_seen {
            if Instant::now() > end {
                let not = if is_seen { "not " } else { "" };
                return Err(format!("{selector} is {not}seen in {:?}", self.text("body")?).into());
            }
            sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Returns the errors of the page's console.
    pub fn errors(&self) -> Result<Vec<String>> {
        let log = self.ask("POST", "se/log", &json!({ "type": "browser" }))?;
        let entries = log.as_array().ok_or("no log")?.iter();
        let severe = entries.filter(|entry| entry["level"] == "SEVERE");
        Ok(severe.map(|entry| entry["message"].to_string()).collect())
    }

    /// Returns the addresses that pages have requested since the last call, but for those of the browser's own pages.
    pub fn requests(&self) -> Result<Vec<String>> {
        let log = self.ask("POST", "se/log", &json!({ "type": "performance" }))?;
        let mut addresses = Vec::new();
        for entry in log.as_array().ok_or("no log")? {
            let message = entry["message"].as_str().ok_or("an entry of no message")?;
            let event: Value = serde_json::from_str(message)?;
            if event["message"]["method"] == "Network.requestWillBeSent" {
                let url = &event["message"]["params"]["request"]["url"];
                let url = url.as_str().ok_or("a request without an address")?;
                if !url.starts_with("chrome") {
                    addresses.push(url.to_owned());
                }
            }
        }
        Ok(addresses)
    }

    /// Returns the folder of everything that the browser writes.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        drop(self.pipe.take());
        // The watchdog ends when all other processes have ended.
        let _ = self.watchdog.wait();
    }
}

/// Returns the processes that are left of a browser with this folder.
pub fn processes_of(folder: &Path) -> Result<Vec<String>> {
    let folder = folder.to_string_lossy();
    let mut found = Vec::new();
    for process in std::fs::read_dir("/proc")? {
        let process = process?.path();
        // A process that has ended has no such files, and those of other users cannot be read.
        let [environment, command] = ["environ", "cmdline"]
            .map(|name| std::fs::read(process.join(name)).unwrap_or_default());
        let has = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains(&*folder);
        if has(&environment) || has(&command) {
            found.push(format!(
                "{}: {}",
                process.display(),
                String::from_utf8_lossy(&command)
            ));
        }
    }
    Ok(found)
}
