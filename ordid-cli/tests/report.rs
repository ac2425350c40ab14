//! Opens reports in a real browser, as their readers do: light and dark, on a phone, on a screen and on paper.
//!
//! Without Chromium and its driver the tests are counted as ignored, with the reason.

// What the reports of the program are made of; the program is no library.
#[allow(dead_code, unused_imports, reason = "the program uses the rest")]
#[path = "../src/failure.rs"]
mod failure;
#[allow(dead_code, unused_imports, reason = "the program uses the rest")]
#[path = "../src/report.rs"]
mod report;

use std::path::Path;

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use ordid_harness::browser::{Browser, Installed, installed};
use report::{Figures, Picture, Report, Section};
use serde_json::{Value, json};
use sqlx::{Connection as _, SqliteConnection, sqlite::SqliteConnectOptions};

type Result<T = ()> = std::result::Result<T, Failed>;

/// Returns each text of the page whose contrast to what is behind it is below 4.5 (WCAG 2.2, 1.4.3), and how many texts
/// it has looked at.
const CONTRAST: &str = r#"
const channels = color => color.match(/[\d.]+/g).map(Number);
const luminance = ([r, g, b]) => {
  const [R, G, B] = [r, g, b].map(c => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return 0.2126 * R + 0.7152 * G + 0.0722 * B;
};
const behind = element => {
  for (let e = element; e; e = e.parentElement) {
    const color = channels(getComputedStyle(e).backgroundColor);
    if (color.length < 4 || color[3] === 1) return color;
    if (color[3] !== 0) throw new Error('half transparent');
  }
  return [255, 255, 255];
};
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
let seen = 0; const bad = [];
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  if (!walker.currentNode.data.trim() || !element.checkVisibility() || element.closest('title, desc')) continue;
  seen += 1;
  const style = getComputedStyle(element);
  const color = channels(element.closest('svg') ? style.fill : style.color);
  const [a, b] = [luminance(color), luminance(behind(element))];
  const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (contrast < 4.5) bad.push(contrast.toFixed(2) + ' ' + walker.currentNode.data);
}
// Lines and bars need 3 (1.4.11).
for (const shape of document.querySelectorAll('svg .curve, svg .mark, svg .bar')) {
  if (!shape.checkVisibility()) continue;
  seen += 1;
  const [a, b] = [luminance(channels(getComputedStyle(shape).color)), luminance(behind(shape))];
  if ((Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 3) bad.push('shape ' + shape.outerHTML);
}
return { seen, bad, page: getComputedStyle(document.body).backgroundColor };
"#;

/// Returns how much wider than the window the page is, and each element that sticks out and does not scroll by itself.
const OVERFLOW: &str = r#"
const width = document.documentElement.clientWidth;
const out = [];
for (const element of document.body.querySelectorAll('*')) {
  const box = element.getBoundingClientRect();
  const scrolls = element.parentElement.closest('.scroll, pre');
  if (!scrolls && box.width > 0 && (box.right > width + 0.5 || box.left < -0.5)) out.push(element.outerHTML.slice(0, 200));
}
// A text of a picture must not leave it either.
for (const text of document.querySelectorAll('svg text')) {
  const svg = text.closest('svg');
  if (!svg.checkVisibility()) continue;
  const [inner, outer] = [text.getBoundingClientRect(), svg.getBoundingClientRect()];
  if (inner.right > outer.right + 1 || inner.left < outer.left - 1 || inner.bottom > outer.bottom + 1) {
    out.push('leaves its picture: ' + text.textContent);
  }
}
return { more: document.documentElement.scrollWidth - width, out, width: window.innerWidth };
"#;

/// Returns each two texts of a picture that overlap.
const COLLISIONS: &str = r#"
const bad = [];
for (const svg of document.querySelectorAll('svg')) {
  if (!svg.checkVisibility()) continue;
  const texts = [...svg.querySelectorAll('text')].map(text => [text.textContent, text.getBoundingClientRect()]);
  texts.forEach(([a, p], i) => texts.slice(i + 1).forEach(([b, q]) => {
    const wide = Math.min(p.right, q.right) - Math.max(p.left, q.left);
    const high = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
    if (wide > 1 && high > 3) bad.push(`${a} | ${b}`);
  }));
}
return bad;
"#;

fn main() {
    let arguments = Arguments::from_args();
    let on_chromium = |name: &str, test: fn(&Installed) -> Result| {
        Trial::ignorable_test(name, move || match installed() {
            Ok(installed) => test(&installed).map(|()| Completion::Completed),
            Err(reason) => Ok(Completion::ignored_with(reason)),
        })
    };
    let trials = vec![
        on_chromium(
            "a_report_of_hostile_names_is_read_in_every_way",
            |installed| {
                let folder = tempfile::tempdir()?;
                let file = folder.path().join("report.html");
                let report = hostile();
                if let Some(copy) = std::env::var_os("ORDID_TEST_REPORT") {
                    // To look at it.
                    report
                        .write(copy.as_ref())
                        .map_err(|failure| format!("{failure:?}"))?;
                }
                report
                    .write(&file)
                    .map_err(|failure| format!("{failure:?}"))?;
                is_read_in_every_way(installed, &file)
            },
        ),
        on_chromium("an_empty_report_is_a_page_too", |installed| {
            let folder = tempfile::tempdir()?;
            let file = folder.path().join("report.html");
            let report = Report {
                title: "Nothing".to_owned(),
                ..Report::default()
            };
            report
                .write(&file)
                .map_err(|failure| format!("{failure:?}"))?;
            is_read_in_every_way(installed, &file)
        }),
        on_chromium("the_report_of_a_bench_is_read_in_every_way", |installed| {
            let folder = tempfile::tempdir()?;
            let file = folder.path().join("bench.html");
            let output = std::process::Command::new(env!("CARGO_BIN_EXE_ordid"))
                .args(["bench", "--rows", "2000", "--rounds", "1", "--html"])
                .arg(&file)
                .output()?;
            assert!(output.status.success(), "{output:?}");
            is_read_in_every_way(installed, &file)
        }),
        on_chromium(
            "the_reports_of_doctor_and_plan_are_read_in_every_way",
            doctor_and_plan,
        ),
        on_chromium("the_checks_find_what_is_wrong_with_a_page", wrong_page),
    ];
    libtest_mimic::run(&arguments, trials).exit();
}

/// Checks a report in both colour schemes, on two screens and on paper.
fn is_read_in_every_way(installed: &Installed, file: &Path) -> Result {
    let browser = Browser::open(installed, (1440, 900))?;
    browser.go_to("about:blank")?;
    let address = format!("file://{}", file.display());
    for (width, height) in [(1440, 900), (360, 740)] {
        let screen = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500 });
        browser.devtools("Emulation.setDeviceMetricsOverride", &screen)?;
        for (scheme, page) in [("light", "rgb(255, 255, 255)"), ("dark", "rgb(20, 23, 28)")] {
            let media = json!({ "media": "screen", "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
            browser.devtools("Emulation.setEmulatedMedia", &media)?;
            browser.requests()?;
            browser.go_to(&address)?;
            let at = format!("{scheme}, {width} pixels");
            assert_eq!(browser.requests()?, [address.as_str()], "{at}");
            let found = browser.run(CONTRAST, &json!([]))?;
            assert_eq!(found["page"], page, "{at}");
            assert_eq!(found["bad"], json!([]), "{at}: too little contrast");
            assert!(found["seen"].as_u64() > Some(0), "{at}: nothing to see");
            let overflow = browser.run(OVERFLOW, &json!([]))?;
            assert_eq!(
                overflow,
                json!({ "more": 0, "out": [], "width": width }),
                "{at}"
            );
            assert_eq!(
                browser.run(COLLISIONS, &json!([]))?,
                json!([]),
                "{at}: texts overlap"
            );
        }
    }
    // Whatever the screen's scheme is, paper is white.
    let paper = json!({ "media": "print", "features": [{ "name": "prefers-color-scheme", "value": "dark" }] });
    browser.devtools("Emulation.setEmulatedMedia", &paper)?;
    let sheet = json!({ "width": 680, "height": 960, "deviceScaleFactor": 1, "mobile": false });
    browser.devtools("Emulation.setDeviceMetricsOverride", &sheet)?;
    let found = browser.run(CONTRAST, &json!([]))?;
    assert_eq!(
        (&found["page"], &found["bad"]),
        (&json!("rgb(255, 255, 255)"), &json!([])),
        "on paper"
    );

    let scripts = browser.run(
        "return document.scripts.length + document.images.length",
        &json!([]),
    )?;
    assert_eq!(scripts, Value::from(0), "a script or an image");
    let unnamed = "return [...document.querySelectorAll('svg')].filter(svg => !svg.querySelector('title, desc')).length \
                   + document.querySelectorAll('[id]').length - new Set([...document.querySelectorAll('[id]')].map(e => e.id)).size";
    assert_eq!(
        browser.run(unnamed, &json!([]))?,
        Value::from(0),
        "a picture without a title, or an id twice"
    );
    let errors = browser.errors()?;
    assert!(errors.is_empty(), "{errors:#?}");
    Ok(())
}

/// Examines a database of SQLite that is wrong in some ways, and plans a move in it.
fn doctor_and_plan(installed: &Installed) -> Result {
    const SHOP: &str = "
        CREATE TABLE customers (id TEXT NOT NULL PRIMARY KEY, name TEXT);
        CREATE TABLE orders (id INTEGER PRIMARY KEY AUTOINCREMENT, created_at TEXT, customer TEXT REFERENCES customers);
        CREATE TABLE lines (id INTEGER PRIMARY KEY, \"order\" INTEGER REFERENCES orders, what TEXT);
        WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
        INSERT INTO customers SELECT lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4'
            || substr(hex(randomblob(2)), 2) || '-a' || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6))), i FROM n;
        INSERT INTO orders (created_at, customer)
            SELECT datetime('2026-01-01', '+' || rowid || ' minutes'), id FROM customers;
        INSERT INTO lines (\"order\", what) SELECT id, 'a thing' FROM orders;";

    let folder = tempfile::tempdir()?;
    let shop = folder.path().join("shop.sqlite");
    let options = SqliteConnectOptions::new()
        .filename(&shop)
        .create_if_missing(true);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut connection = SqliteConnection::connect_with(&options).await?;
        sqlx::raw_sql(SHOP).execute(&mut connection).await?;
        connection.close().await
    })?;
    let moves = ["--table", "orders", "--to", "uuid_v7", "-o", "-"];
    for (command, more, code) in [("doctor", &[][..], 1), ("plan", &moves, 0)] {
        let file = folder.path().join(format!("{command}.html"));
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_ordid"))
            .arg(command)
            .arg(&shop)
            .args(more)
            .arg("--html")
            .arg(&file)
            .output()?;
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        is_read_in_every_way(installed, &file)?;
    }
    Ok(())
}

/// Opens a page on which each check finds something.
fn wrong_page(installed: &Installed) -> Result {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("wrong.html");
    let page = "<!DOCTYPE html><p style='color: #888; width: 3000px'>grey</p><img src='http://127.0.0.1:1/x.png'>\
                <svg viewBox='0 0 100 20' width='100'><text y='9'>one</text><text y='9'>two</text>\
                <text x='99' y='9'>out</text></svg>";
    std::fs::write(&file, page)?;
    let browser = Browser::open(installed, (800, 600))?;
    browser.go_to("about:blank")?;
    browser.requests()?;
    browser.go_to(&format!("file://{}", file.display()))?;
    assert!(
        browser
            .requests()?
            .contains(&"http://127.0.0.1:1/x.png".to_owned())
    );
    assert_eq!(
        browser.run(CONTRAST, &json!([]))?["bad"],
        json!(["3.54 grey"])
    );
    let overflow = browser.run(OVERFLOW, &json!([]))?;
    assert!(overflow["more"].as_i64() > Some(1000), "{overflow}");
    assert_eq!(
        overflow["out"].as_array().map(Vec::len),
        Some(2),
        "{overflow}"
    );
    assert_eq!(browser.run(COLLISIONS, &json!([]))?, json!(["one | two"]));
    assert!(!browser.errors()?.is_empty(), "the image cannot be loaded");
    Ok(())
}

/// A report with everything that a report may have, of names that break pages which do not escape them.
fn hostile() -> Report {
    let name = "orders</td><script>document.title = 'taken'</script><img src=http://127.0.0.1:1/x onerror=alert(1)>\u{202e}";
    let long = "Donaudampfschifffahrtsgesellschaft".repeat(6);
    let points = |factor: f64| {
        (0..20)
            .map(|x| (f64::from(x) * 5e4, factor * f64::from(x + 1)))
            .collect()
    };
    let series = |number: u32| {
        (
            format!("series {number}"),
            points(1000.0 + f64::from(number)),
        )
    };
    Report {
        title: format!("Keys of {name}"),
        lead: format!(
            "{long} in one word, and then some words. \u{5e9}\u{5dc}\u{5d5}\u{5dd}, \u{4e2d}\u{6587}."
        ),
        sections: vec![
            Section {
                heading: "Lines".to_owned(),
                paragraphs: vec!["Twelve lines, the first of which has a long name.".to_owned()],
                pictures: vec![Picture::Lines {
                    title: "Rows a second".to_owned(),
                    x: "rows in the table".to_owned(),
                    y: "rows a second".to_owned(),
                    lines: [
                        (name.to_owned(), points(9000.0)),
                        ("\u{4e2d}\u{6587}".repeat(30), points(40.0)),
                    ]
                    .into_iter()
                    .chain((0..10).map(series))
                    .collect(),
                }],
                tables: vec![Figures {
                    caption: format!("All of {name}"),
                    header: (0..14)
                        .map(|column| format!("column {column} of many"))
                        .collect(),
                    rows: (0..40)
                        .map(|row| {
                            (0..14)
                                .map(|column| (row * column * 12_345).to_string())
                                .collect()
                        })
                        .collect(),
                }],
                code: vec![format!(
                    "SELECT *\n\tFROM {name}\n WHERE {long} = '{long}';"
                )],
            },
            Section {
                heading: long.clone(),
                paragraphs: Vec::new(),
                pictures: vec![
                    Picture::Bars {
                        title: long.clone(),
                        unit: "MB".to_owned(),
                        bars: vec![
                            (name.to_owned(), 24_846.0),
                            (long.clone(), 481.2),
                            ("none".to_owned(), f64::NAN),
                        ],
                    },
                    Picture::Lines {
                        title: "Nothing was measured".to_owned(),
                        x: long.clone(),
                        y: long.clone(),
                        lines: vec![
                            ("empty".to_owned(), Vec::new()),
                            ("one".to_owned(), vec![(1.0, 1.0)]),
                        ],
                    },
                    Picture::Bars {
                        title: "No bars".to_owned(),
                        unit: long.clone(),
                        bars: Vec::new(),
                    },
                ],
                tables: vec![Figures {
                    caption: String::new(),
                    header: vec!["name".to_owned(), "value".to_owned()],
                    rows: vec![
                        vec![long.clone(), long.clone()],
                        vec![name.to_owned(), "1".to_owned()],
                    ],
                }],
                code: Vec::new(),
            },
            Section {
                heading: "Empty".to_owned(),
                ..Section::default()
            },
        ],
        facts: vec![
            (long.clone(), name.to_owned()),
            ("processor".to_owned(), long),
        ],
    }
}
