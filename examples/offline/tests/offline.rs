//! Tests the notes as their pages use them: the routes in this process, and the page in Chromium, whose keys are compiled
//! to WebAssembly first.
//!
//! Without Chromium, or without a compiler for WebAssembly, the tests of the page are ignored.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::LazyLock,
    thread::sleep,
    time::Duration,
};

use libtest_mimic::{Arguments, Completion, Trial};
use offline::{App, router};
use ordid_harness::{
    Target, Toolchain,
    browser::{Browser, Installed, installed},
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, runtime::Runtime, sync::oneshot, task::JoinHandle};

type Result<T = ()> = std::result::Result<T, libtest_mimic::Failed>;

fn main() -> ExitCode {
    let on_chromium = |name: &str, test: fn(&Page) -> Result| {
        Trial::ignorable_test(name, move || match Page::get() {
            Ok(page) => test(page).map(|()| Completion::Completed),
            Err(NoPage::Ignored(reason)) => Ok(Completion::ignored_with(reason)),
            Err(NoPage::Failed(why)) => Err(why.into()),
        })
    };
    let trials = vec![
        Trial::test("api::notes_that_are_sent_again_are_left_alone", sent_again),
        Trial::test("api::what_cannot_be_stored_is_told", refused),
        Trial::test(
            "readme::the_version_of_wasm_bindgen_is_that_of_the_lock_file",
            version,
        ),
        on_chromium(
            "browser::notes_of_two_tabs_without_a_server_are_stored_once_among_its_own",
            two_tabs,
        ),
        on_chromium(
            "browser::the_page_opens_without_a_server_and_has_its_notes",
            reopened,
        ),
        on_chromium(
            "browser::a_clock_that_is_wrong_is_set_right_by_the_server",
            wrong_clock,
        ),
        on_chromium("browser::refused_notes_are_kept_and_told", told),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn version() -> Result {
    let readme = include_str!("../README.md");
    let named = readme.split_once("wasm-bindgen-cli --version ");
    let named = named.and_then(|(_, rest)| rest.split_whitespace().next());
    let lock = include_str!("../../../Cargo.lock");
    let locked = lock.split_once("name = \"wasm-bindgen\"\nversion = \"");
    let locked = locked.and_then(|(_, rest)| rest.split('"').next());
    assert!(named.is_some() && named == locked, "{named:?}, {locked:?}");
    Ok(())
}

/// A browser to open the page in, and the folder of the page's keys.
struct Page {
    installed: Installed,
    keys: PathBuf,
}

/// Why there is no page to test.
#[derive(Clone)]
enum NoPage {
    Ignored(String),
    Failed(String),
}

impl Page {
    /// Compiles the keys at the first call.
    fn get() -> std::result::Result<&'static Self, NoPage> {
        static PAGE: LazyLock<std::result::Result<Page, NoPage>> = LazyLock::new(|| {
            let installed = installed().map_err(NoPage::Ignored)?;
            let toolchain = Toolchain::find(Target::Wasm).map_err(|error| {
                let why = error.to_string();
                if error.is_unavailable() {
                    NoPage::Ignored(why)
                } else {
                    NoPage::Failed(why)
                }
            })?;
            let keys = compile(&toolchain).map_err(|error| NoPage::Failed(error.to_string()))?;
            Ok(Page { installed, keys })
        });
        PAGE.as_ref().map_err(NoPage::clone)
    }

    fn open(&self) -> Result<Browser> {
        Ok(Browser::open(&self.installed, (800, 900))?)
    }
}

/// Compiles the page's keys, and returns the folder with what a page loads. These are the two commands of the README.
fn compile(
    toolchain: &Toolchain,
) -> std::result::Result<PathBuf, Box<dyn std::error::Error + Send + Sync>> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("offline");
    let mut cargo = toolchain.cargo();
    cargo
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/page"))
        .args(["build", "--release", "--locked"])
        .args(["--target", Target::Wasm.name(), "--target-dir"])
        .arg(&folder);
    let output = cargo.output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{cargo:?} failed: {said}").into());
    }
    let release = folder.join(Target::Wasm.name()).join("release");
    let keys = folder.join("keys");
    wasm_bindgen_cli_support::Bindgen::new()
        .input_path(release.join("offline_page.wasm"))
        .web(true)?
        .omit_default_module_path(false)
        .typescript(false)
        .generate(&keys)?;
    Ok(keys)
}

/// The notes in a new database, with a server that can be stopped and started again at the same address.
struct Served {
    runtime: Runtime,
    app: App,
    address: SocketAddr,
    serving: Option<(oneshot::Sender<()>, JoinHandle<std::io::Result<()>>)>,
    _folder: tempfile::TempDir,
}

impl Served {
    fn start(keys: &Path) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?;
        let file = folder.path().join("notes.sqlite");
        let app = runtime.block_on(App::open(&file, keys.to_owned()))?;
        let mut served = Self {
            runtime,
            app,
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            serving: None,
            _folder: folder,
        };
        served.go_on()?;
        Ok(served)
    }

    fn go_on(&mut self) -> Result {
        let listener = self.runtime.block_on(async {
            // A connection that the browser tries may have the port as its own for a moment.
            for _ in 0..100 {
                match TcpListener::bind(self.address).await {
                    Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                    bound => return bound,
                }
            }
            TcpListener::bind(self.address).await
        })?;
        self.address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel();
        let serving =
            axum::serve(listener, router(self.app.clone())).with_graceful_shutdown(async {
                // An error is the sender's end, which stops the server, too.
                let _ = stopped.await;
            });
        let serving = self.runtime.spawn(serving.into_future());
        self.serving = Some((stop, serving));
        Ok(())
    }

    /// Closes every connection, and returns when nobody answers any more.
    fn stop(&mut self) -> Result {
        if let Some((stop, serving)) = self.serving.take() {
            drop(stop);
            self.runtime.block_on(serving)??;
        }
        Ok(())
    }

    fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Stores a note of the server's own.
    fn say(&self, text: &str) -> Result {
        self.runtime.block_on(self.app.say(text.to_owned()))?;
        Ok(())
    }

    /// Returns the texts of all notes in the order of their keys.
    fn texts(&self) -> Result<Vec<String>> {
        let notes = self.runtime.block_on(self.app.notes())?;
        Ok(notes.into_iter().map(|note| note.text).collect())
    }

    /// Waits until there are this many notes, and returns their texts.
    fn wait_for(&self, many: usize) -> Result<Vec<String>> {
        for _ in 0..600 {
            if self.texts()?.len() >= many {
                break;
            }
            sleep(Duration::from_millis(50));
        }
        self.texts()
    }

    /// Posts a body, and returns the status and the answer.
    fn post(&self, body: &Value) -> Result<(u16, Value)> {
        self.runtime.block_on(post(self.address, body.to_string()))
    }
}

/// Posts to `/api/notes` over a connection of its own.
async fn post(address: SocketAddr, body: String) -> Result<(u16, Value)> {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    let mut stream = tokio::net::TcpStream::connect(address).await?;
    let request = format!(
        "POST /api/notes HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("no body")?;
    let status = head.split(' ').nth(1).ok_or("no status")?.parse()?;
    Ok((status, serde_json::from_str(body)?))
}

/// Returns a note as a page would send it, whose key has a time this far ahead of now.
fn note(ahead_millis: i64, last_byte: u8, text: &str) -> Value {
    use ordid::clock::{Clock as _, SystemClock};

    let now = SystemClock.now().as_unix_millis();
    let time = now.saturating_add_signed(ahead_millis);
    let mut bytes = [last_byte; 10];
    bytes[0] = 0x70;
    bytes[2] = 0x80;
    let tail = bytes.map(|byte| format!("{byte:02x}")).concat();
    let hex = format!("{time:012x}{tail}");
    let raw = ordid::uuid::Uuid::parse_str(&hex).expect("32 digits");
    let id = <offline::NoteId as ordid::KeyType>::from_raw(raw).expect("version 7");
    json!({ "id": id, "text": text })
}

fn sent_again() -> Result {
    let served = Served::start(Path::new("no keys"))?;
    let notes = json!([note(-86_400_000, 1, "yesterday"), note(-1, 2, "now")]);
    let stored =
        |stored: u32, left_alone: u32| (200, json!({ "stored": stored, "leftAlone": left_alone }));
    assert_eq!(served.post(&notes)?, stored(2, 0));
    assert_eq!(served.post(&notes)?, stored(0, 2));
    // A stored note is not overwritten.
    let mut changed = notes[0].clone();
    changed["text"] = json!("changed");
    assert_eq!(
        served.post(&json!([changed, note(-1, 3, "later")]))?,
        stored(1, 1)
    );
    assert_eq!(served.texts()?, ["yesterday", "now", "later"]);
    Ok(())
}

fn refused() -> Result {
    let served = Served::start(Path::new("no keys"))?;
    let good = note(-1, 1, "good");
    let mut of_version_4 = good.clone();
    // The same text as version 4 has.
    of_version_4["id"] = json!("note_4444444444444sw44444444444");
    let cases = [
        (
            json!([good, note(60_000, 2, "ahead")]),
            422,
            "ms ahead of the server's clock; at most 10000 ms",
        ),
        (json!([good, good]), 422, "is there twice"),
        (json!([good, note(-1, 3, "")]), 422, "the note is empty"),
        (
            json!([note(-1, 3, &"x".repeat(2_001))]),
            422,
            "the note has 2001 bytes; at most 2000",
        ),
        (
            json!(vec![good.clone(); 501]),
            422,
            "501 notes at once; at most 500",
        ),
        (json!([{ "id": "note_", "text": "short" }]), 422, "NoteId"),
        (json!([of_version_4]), 422, "version"),
        (
            json!([{ "id": "user_01h455vb4pex5vsknk084sn02q", "text": "of another type" }]),
            422,
            "NoteId",
        ),
        (json!({ "id": 1 }), 422, "sequence"),
    ];
    for (body, status, expected) in cases {
        let (found, answer) = served.post(&body)?;
        let error = answer["error"].as_str().unwrap_or_default();
        assert!(
            found == status && error.contains(expected),
            "{found} {answer}"
        );
    }
    // All or nothing.
    assert_eq!(served.texts()?, [""; 0]);
    Ok(())
}

/// Writes a note by the form.
fn write(browser: &Browser, text: &str) -> Result {
    browser.type_in("#write input", text)?;
    browser.click("#write button")?;
    Ok(())
}

/// Opens the page and waits until it works, and until its worker is installed, which keeps the files: a server that stops
/// before would leave a page that cannot be opened again.
fn go_to(browser: &Browser, url: &str) -> Result {
    browser.go_to(url)?;
    let ready = browser.wait_seen("html[data-ready=yes]", true);
    ready.map_err(|error| format!("{error}; the console: {:?}", browser.errors()))?;
    let installed = "return navigator.serviceWorker.ready.then(() => true);";
    assert_eq!(browser.run(installed, &json!([]))?, json!(true));
    Ok(())
}

/// Lets the clock move on, so that what is written before and after is in different milliseconds.
fn later() {
    sleep(Duration::from_millis(5));
}

fn two_tabs(page: &Page) -> Result {
    const BURST: usize = 200;

    let mut served = Served::start(&page.keys)?;
    let browser = page.open()?;
    let tabs = [browser.tab()?, browser.open_tab()?];
    for tab in &tabs {
        browser.switch_to(tab)?;
        go_to(&browser, &served.url())?;
    }
    served.stop()?;

    let mut expected = Vec::new();
    for round in 0..4 {
        for (tab, handle) in tabs.iter().enumerate() {
            let texts = [
                format!("server before tab {tab}, round {round}"),
                format!("tab {tab}, round {round}"),
            ];
            served.say(&texts[0])?;
            later();
            browser.switch_to(handle)?;
            write(&browser, &texts[1])?;
            later();
            expected.extend(texts);
        }
    }
    // Many in a millisecond keep the order in which their tab made them.
    let burst = "const [count] = arguments;
        return import('/page.js').then(({ write }) => {
            for (let at = 0; at < count; at += 1) write(`burst ${at}`);
            return Object.keys(localStorage).filter((key) => key.startsWith('note_')).length;
        });";
    let waiting = browser.run(burst, &json!([BURST]))?;
    expected.extend((0..BURST).map(|at| format!("burst {at}")));
    assert_eq!(waiting, json!(8 + BURST));
    browser.wait_for("#state", "No server.")?;
    assert_eq!(served.texts()?.len(), 8, "the server's own alone");

    // Both tabs find the server, and send what both of them know.
    served.go_on()?;
    assert_eq!(served.wait_for(expected.len())?, expected);
    for tab in &tabs {
        browser.switch_to(tab)?;
        browser.wait_for("#state", "The server answers.")?;
        browser.wait_for("#stored", &format!("burst {}", BURST - 1))?;
        assert_eq!(browser.text("#waiting")?, "");
        assert_eq!(browser.text("#refused")?, "");
    }
    assert_eq!(served.texts()?, expected, "each of them once");
    Ok(())
}

fn reopened(page: &Page) -> Result {
    let mut served = Served::start(&page.keys)?;
    let browser = page.open()?;
    go_to(&browser, &served.url())?;
    served.stop()?;
    write(&browser, "before")?;
    browser.wait_for("#waiting", "before")?;
    let first = browser.text("#waiting small")?;

    go_to(&browser, &served.url())?;
    browser.wait_for("#state", "No server.")?;
    assert_eq!(browser.text("#waiting small")?, first, "the key stays");
    later();
    write(&browser, "after")?;
    browser.wait_for("#waiting", "after")?;
    served.go_on()?;
    assert_eq!(served.wait_for(2)?, ["before", "after"]);
    Ok(())
}

fn wrong_clock(page: &Page) -> Result {
    let mut served = Served::start(&page.keys)?;
    let browser = page.open()?;
    // An hour ahead, from before the page's first script.
    let source = "const now = Date.now; Date.now = () => now() + 3_600_000;";
    browser.devtools(
        "Page.addScriptToEvaluateOnNewDocument",
        &json!({ "source": source }),
    )?;
    go_to(&browser, &served.url())?;
    // The page asks for the server's time every two seconds. The quicker the answer, the more exact is what it knows.
    let trip =
        "const asked = Date.now(); return fetch('/api/time').then(() => Date.now() - asked);";
    let quick = |millis: Value| millis.as_f64().is_some_and(|millis| millis < 300.0);
    let mut in_a_row = 0;
    while in_a_row < 4 {
        let is_quick = quick(browser.run(trip, &json!([]))?);
        in_a_row = if is_quick { in_a_row + 1 } else { 0 };
        sleep(Duration::from_secs(1));
    }
    served.stop()?;
    let pause = || sleep(Duration::from_secs(1));
    served.say("first")?;
    pause();
    write(&browser, "second")?;
    pause();
    served.say("third")?;
    // It is known to a page that is opened without a server, too.
    go_to(&browser, &served.url())?;
    pause();
    write(&browser, "fourth")?;
    pause();
    served.say("fifth")?;
    served.go_on()?;
    let expected = ["first", "second", "third", "fourth", "fifth"];
    assert_eq!(served.wait_for(5)?, expected);
    Ok(())
}

fn told(page: &Page) -> Result {
    let mut served = Served::start(&page.keys)?;
    let browser = page.open()?;
    go_to(&browser, &served.url())?;
    served.stop()?;
    write(&browser, "before")?;
    later();
    // Beyond what the form takes.
    let long =
        "return import('/page.js').then(({ write }) => { write('x'.repeat(2001)); return true; });";
    assert_eq!(browser.run(long, &json!([]))?, json!(true));
    later();
    write(&browser, "after")?;
    served.go_on()?;
    browser.wait_for(
        "#refused",
        "The server refuses it: the note has 2001 bytes; at most 2000.",
    )?;
    browser.wait_for("#refused", "xxx")?;
    assert_eq!(served.wait_for(2)?, ["before", "after"]);
    browser.wait_for("#stored", "after")?;
    assert_eq!(browser.text("#waiting")?, "");
    // Another tab that has sent it at the same moment gets the same answer.
    let (tab, other) = (browser.tab()?, browser.open_tab()?);
    served.stop()?;
    browser.switch_to(&other)?;
    browser.go_to(&served.url())?;
    browser.wait_for("#state", "No server.")?;
    browser.run(&long.replace('x', "y"), &json!([]))?;
    served.go_on()?;
    for tab in [&other, &tab] {
        browser.switch_to(tab)?;
        browser.wait_for("#refused", "yyy")?;
        browser.wait_for("#refused", "xxx")?;
    }
    // It is not lost when the page is opened again.
    go_to(&browser, &served.url())?;
    browser.wait_for("#refused", "2001 bytes")?;
    Ok(())
}
