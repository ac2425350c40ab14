//! Tests of the page in a real browser.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use libtest_mimic::{Completion, Trial};
use serde_json::json;
use tokio::{net::TcpListener, runtime::Runtime};
use tracker::{Store, router};

use ordid_harness::browser::{Browser, Installed, installed, processes_of};

use crate::{Client, Result, text};

/// The variable that makes a run of this program open a browser and abort.
pub(crate) const ABORTS: &str = "TRACKER_TEST_ABORTS";

pub(crate) fn trials() -> Vec<Trial> {
    let on_chromium = |name: &str, test: fn(&Installed) -> Result| {
        Trial::ignorable_test(name, move || match installed() {
            Ok(installed) => test(&installed).map(|()| Completion::Completed),
            Err(reason) => Ok(Completion::ignored_with(reason)),
        })
    };
    vec![
        on_chromium(
            "browser::issues_are_listed_created_edited_and_conflicts_are_seen",
            page,
        ),
        on_chromium("browser::the_page_fits_a_phone", phone),
        on_chromium(
            "browser::no_process_of_it_outlives_a_test_that_aborts",
            aborted,
        ),
    ]
}

/// A running tracker, with its address.
struct Served {
    address: String,
    client: Client,
    runtime: Runtime,
    _folder: tempfile::TempDir,
}

impl Served {
    fn start() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?;
        let (address, router) = runtime.block_on(async {
            let store =
                Store::open(&folder.path().join("tracker.sqlite").to_string_lossy()).await?;
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            let address = listener.local_addr()?;
            let router = router(store);
            tokio::spawn(axum::serve(listener, router.clone()).into_future());
            Ok::<_, libtest_mimic::Failed>((format!("http://{address}"), router))
        })?;
        Ok(Self {
            address,
            client: Client::of(router),
            runtime,
            _folder: folder,
        })
    }
}

fn page(installed: &Installed) -> Result {
    let served = Served::start()?;
    let browser = Browser::open(installed, (1280, 900))?;
    let folder = browser.folder().to_owned();

    browser.go_to(&format!("{}/?new", served.address))?;
    browser.wait_seen("#start", true)?;
    browser.type_in("#start [name=tenant]", "Analytical Engines")?;
    browser.type_in("#start [name=project]", "Engine")?;
    browser.click("#start button")?;
    browser.wait_for("#place", "Analytical Engines / Engine")?;
    browser.wait_for("#empty", "No issues here.")?;

    // Create two issues.
    for title in ["Slow search", "Loud <b>bearings</b> & \"gears\""] {
        browser.type_in("#create [name=title]", title)?;
        browser.type_in("#create [name=body]", "Since Tuesday.")?;
        browser.click("#create button")?;
        browser.wait_for("#issues li:first-child", title)?;
    }

    // The list is sorted newest first, and is the same when the page is loaded again by its address.
    browser.go_to(&browser.url()?)?;
    let listed = browser.wait_for("#issues", "Slow search")?;
    assert!(
        listed.starts_with("Loud <b>bearings</b> & \"gears\"\n"),
        "{listed}"
    );
    assert!(listed.contains("version 1"), "{listed}");

    // Edit an issue.
    let issue = "#issues li:last-child button";
    browser.click(issue)?;
    browser.wait_seen("#editor", true)?;
    browser.fill("#edit [name=title]", "Slow search on phones")?;
    browser.click("#save")?;
    browser.wait_seen("#editor", false)?;
    browser.wait_for(issue, "Slow search on phones")?;
    browser.wait_for(issue, "version 2")?;

    // Another client changes the issue while it is open here.
    browser.click(issue)?;
    browser.wait_seen("#editor", true)?;
    let url = browser.url()?;
    let place = url
        .split_once("?tenant=")
        .and_then(|(_, rest)| rest.split_once("&project="));
    let (tenant, project) = place.ok_or("no place in the address")?;
    let id = browser.text("#edited")?;
    let path = format!("/api/tenants/{tenant}/projects/{project}/issues/{id}");
    let elsewhere = json!({ "version": 2, "title": "Slow search everywhere" });
    let (status, found) = served
        .runtime
        .block_on(served.client.ask("PATCH", &path, &elsewhere))?;
    assert_eq!(
        (status.as_u16(), &found["version"]),
        (200, &json!(3)),
        "{found}"
    );
    browser.fill("#edit [name=title]", "Slow search at night")?;
    assert!(!browser.text("#editor")?.contains("Somebody has changed"));
    browser.click("#save")?;
    let message = browser.wait_for(
        "#conflict",
        "Somebody has changed this issue since you opened it.",
    )?;
    assert!(
        message.contains("You read version 2, it has version 3 now. Nothing of yours was saved."),
        "{message}"
    );
    assert!(message.contains("Slow search everywhere"), "{message}");
    let (_, found) = served.runtime.block_on(served.client.get(&path))?;
    assert_eq!(
        (text(&found["title"]), &found["version"]),
        ("Slow search everywhere", &json!(3))
    );

    // The user decides to keep the text that he has typed.
    browser.click("#keep")?;
    browser.wait_seen("#editor", false)?;
    browser.wait_for(issue, "Slow search at night")?;
    let (_, found) = served.runtime.block_on(served.client.get(&path))?;
    assert_eq!(
        (text(&found["title"]), &found["version"]),
        ("Slow search at night", &json!(4))
    );

    // A closed issue moves to the other list.
    browser.click(issue)?;
    browser.wait_seen("#editor", true)?;
    browser.click("#edit [name=is_closed]")?;
    browser.click("#save")?;
    browser.wait_seen("#editor", false)?;
    assert!(!browser.text("#issues")?.contains("Slow search"));

    // Import a file.
    let file = folder.join("issues.csv");
    std::fs::write(
        &file,
        "name,parent,title,labels\n1,,From elsewhere,bug\n2,1,\"Below, it\",\n",
    )?;
    browser.type_in("#file", &file.to_string_lossy())?;
    browser.wait_for("#import", "2 issues imported, 0 were there already")?;
    browser.wait_for("#issues", "From elsewhere")?;
    browser.wait_for("#issues", "bug")?;

    // The page shows why a request is refused.
    browser.go_to(&format!(
        "{}/?tenant={tenant}&project=prj_1",
        served.address
    ))?;
    browser.wait_for("#failure", "not a `ProjectId`")?;

    let errors = browser.errors()?;
    let expected =
        |error: &String| error.contains("409 (Conflict)") || error.contains("400 (Bad Request)");
    assert!(errors.iter().all(expected), "{errors:#?}");

    drop(browser);
    assert_eq!(processes_of(&folder)?, [""; 0]);
    assert!(!folder.exists());
    Ok(())
}

/// Checks that nothing is wider than the screen of a phone.
fn phone(installed: &Installed) -> Result {
    let served = Served::start()?;
    let place = served.runtime.block_on(served.client.place("Engines"))?;
    let long = "Incomprehensibilities".repeat(9);
    let new = json!({ "title": long, "body": long });
    served.runtime.block_on(
        served
            .client
            .made(&format!("{}/issues", place.path()), &new),
    )?;
    let browser = Browser::open(installed, (500, 900))?;
    browser.go_to(&format!(
        "{}/?tenant={}&project={}",
        served.address, place.tenant, place.project
    ))?;
    browser.wait_for("#issues", &long)?;
    let overflow =
        "return document.documentElement.scrollWidth - document.documentElement.clientWidth;";
    assert_eq!(browser.run(overflow, &json!([]))?, json!(0));
    browser.click("#issues button")?;
    browser.wait_seen("#editor", true)?;
    let dialog =
        "const it = document.querySelector('#editor'); return it.scrollWidth - it.clientWidth;";
    assert_eq!(browser.run(dialog, &json!([]))?, json!(0));
    Ok(())
}

/// Opens a browser and aborts, for the test [`aborted`].
pub(crate) fn abort() -> ! {
    let installed = installed().map_err(Into::into);
    match installed.and_then(|installed| Browser::open(&installed, (800, 600))) {
        Ok(browser) => {
            use std::io::Write as _;
            let _ = writeln!(std::io::stdout(), "{}", browser.folder().display());
            std::process::abort()
        }
        Err(_) => std::process::exit(1),
    }
}

fn aborted(_: &Installed) -> Result {
    let output = Command::new(std::env::current_exe()?)
        .env(ABORTS, "1")
        .stdin(Stdio::null())
        .output()?;
    let folder = PathBuf::from(String::from_utf8(output.stdout)?.trim_end());
    assert!(
        !output.status.success() && folder.is_absolute(),
        "{folder:?}"
    );
    let end = Instant::now() + Duration::from_mins(1);
    loop {
        let left = processes_of(&folder)?;
        if left.is_empty() && !folder.exists() {
            return Ok(());
        }
        assert!(Instant::now() < end, "{left:#?}");
        sleep(Duration::from_millis(50));
    }
}
