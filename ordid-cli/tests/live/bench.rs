//! `ordid bench`.

use std::{
    process::{Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use libtest_mimic::Trial;
use serde_json::Value;

use crate::{PLACES, Place, Result, Scratch, ordid, printed, refused};

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials: Vec<_> = PLACES
        .into_iter()
        .flat_map(|place| {
            [
                place.trial("bench_measures_every_key_and_leaves_no_table", measures),
                place.trial("bench_is_interrupted_and_leaves_no_table", interrupted),
                place.trial("bench_touches_no_table_that_exists", existing),
                place.trial(
                    "bench_refuses_keys_that_the_engine_does_not_have",
                    unknown_keys,
                ),
            ]
        })
        .collect();
    trials.push(Place::Postgres.trial("bench_tells_page_fill_with_pgstattuple", page_fill));
    trials.push(Trial::test("bench_without_a_url_leaves_no_file", private));
    trials.push(Trial::test(
        "bench_of_wider_rows_makes_larger_tables",
        width,
    ));
    trials.push(Trial::test(
        "bench_refuses_what_cannot_be_before_it_begins",
        impossible,
    ));
    trials
}

/// The tables of the bench that a database has.
fn tables(scratch: &Scratch) -> Result<Vec<String>> {
    scratch.query(match scratch.place {
        Place::Sqlite => {
            "SELECT name FROM sqlite_schema WHERE name LIKE 'ordid!_bench!_%' ESCAPE '!'"
        }
        Place::Postgres => {
            "SELECT relname::text FROM pg_class WHERE relname LIKE 'ordid!_bench!_%' ESCAPE '!'"
        }
        _ => {
            "SELECT CAST(table_name AS CHAR) FROM information_schema.tables
             WHERE table_schema = DATABASE() AND table_name LIKE 'ordid!_bench!_%' ESCAPE '!'"
        }
    })
}

fn is_spread(value: &Value) -> bool {
    let [median, min, max] =
        ["median", "min", "max"].map(|name| value[name].as_f64().unwrap_or(-1.0));
    0.0 < min && min <= median && median <= max
}

fn measures(scratch: &Scratch) -> Result {
    let arguments = [
        "--json",
        "bench",
        &scratch.url,
        "--rows",
        "2000",
        "--rounds",
        "2",
    ];
    let document: Value = serde_json::from_str(&printed(&scratch.ordid(&arguments).output()?)?)?;

    assert_eq!(document["engine"], scratch.place.name());
    assert_eq!(
        (&document["rows"], &document["rounds"]),
        (&2000.into(), &2.into())
    );
    assert_eq!(
        (&document["batch"], &document["width"]),
        (&200.into(), &100.into())
    );
    assert!(document["cache_bytes"].as_f64() > Some(1e6), "{document}");
    let engine = match scratch.place {
        Place::Sqlite => "SQLite",
        Place::Postgres => "PostgreSQL",
        Place::Mariadb => "MariaDB",
        Place::Mysql => "MySQL",
    };
    assert!(
        document["facts"][engine].is_string() && document["facts"]["processor"].is_string(),
        "{document}"
    );

    let keys = document["keys"].as_array().ok_or("no keys")?;
    let schemes: Vec<_> = keys
        .iter()
        .map(|key| {
            key["key"]
                .as_str()
                .unwrap_or_default()
                .split(':')
                .next()
                .unwrap_or_default()
        })
        .collect();
    for scheme in ["auto", "snowflake", "uuid_v7", "ulid", "uuid_v4"] {
        assert!(schemes.contains(&scheme), "{schemes:?}");
    }
    for (key, scheme) in keys.iter().zip(schemes) {
        assert_eq!(key["is_ordered"], scheme != "uuid_v4", "{key}");
        assert!(is_spread(&key["rows_per_second"]), "{key}");
        let growth = key["growth"].as_array().ok_or("no growth")?;
        let rows: Vec<_> = growth
            .iter()
            .filter_map(|point| point["rows"].as_u64())
            .collect();
        assert_eq!(
            rows,
            (1..=10).map(|part| part * 200).collect::<Vec<_>>(),
            "{key}"
        );
        assert!(
            growth
                .iter()
                .all(|point| is_spread(&point["rows_per_second"])),
            "{key}"
        );
        for reads in ["random_per_second", "newest_per_second", "spans_per_second"] {
            assert!(is_spread(&key["reads"][reads]), "{key}");
        }
        assert!(key["bytes_per_row"].as_f64() > Some(100.0), "{key}");
        assert!(is_spread(&key["written_bytes_per_row"]), "{key}");
        let written = key["written_bytes_per_row"]["median"].as_f64();
        assert!(
            written > Some(100.0),
            "the payload is written at least: {key}"
        );
        let has_index = scratch.place == Place::Postgres;
        assert_eq!(key["index_bytes"].is_number(), has_index, "{key}");
        match key["page_fill_percent"].as_f64() {
            Some(fill) => assert!((30.0..=100.0).contains(&fill), "{key}"),
            None => assert!(
                matches!(scratch.place, Place::Postgres | Place::Mariadb),
                "{key}"
            ),
        }
    }
    let forms = document["forms"].as_array().ok_or("no forms")?;
    assert_eq!(forms.len(), 5);
    assert!(
        forms
            .iter()
            .all(|form| is_spread(&form["sort_ns"]) && is_spread(&form["compare_ns"]))
    );
    assert_eq!(tables(scratch)?, [""; 0]);
    Ok(())
}

fn interrupted(scratch: &Scratch) -> Result {
    let mut child = scratch
        .ordid(&["bench", &scratch.url, "--rows", "50000000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let end = Instant::now() + Duration::from_mins(1);
    while tables(scratch).unwrap_or_default().is_empty() {
        assert!(Instant::now() < end, "no table is made");
        assert!(child.try_wait()?.is_none(), "it has ended");
        sleep(Duration::from_millis(20));
    }
    // So that it is in the midst of loading.
    sleep(Duration::from_millis(200));
    let killed = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()?;
    assert!(killed.success());
    let line = refused(&child.wait_with_output()?, 3)?;
    assert_eq!(line, "ordid: interrupted; the bench's table is removed");
    assert_eq!(tables(scratch)?, [""; 0]);
    Ok(())
}

fn existing(scratch: &Scratch) -> Result {
    scratch.query("CREATE TABLE ordid_bench_mine (id INT)")?;
    scratch.query("INSERT INTO ordid_bench_mine VALUES (42)")?;
    let output = scratch
        .ordid(&["bench", &scratch.url, "--rows", "1000"])
        .output()?;
    assert_eq!(
        refused(&output, 3)?,
        "ordid: the database has the table ordid_bench_mine, and names that begin with ordid_bench_ are the bench's own: if \
         a run was killed, remove what it has left by DROP TABLE ordid_bench_mine"
    );
    assert_eq!(tables(scratch)?, ["ordid_bench_mine"]);
    let kept = match scratch.place {
        Place::Sqlite | Place::Postgres => "SELECT CAST(id AS TEXT) FROM ordid_bench_mine",
        _ => "SELECT CAST(id AS CHAR) FROM ordid_bench_mine",
    };
    assert_eq!(scratch.query(kept)?, ["42"]);
    Ok(())
}

fn unknown_keys(scratch: &Scratch) -> Result {
    for (keys, words) in [
        ("guid", "there is no scheme \"guid\""),
        (
            "uuid_v7:raw16",
            "has no column \"raw16\" for keys of uuid_v7: use one of ",
        ),
        (
            "auto,tickets",
            "keys of tickets are not made by a generator",
        ),
        ("auto,uuid_v7,uuid-v7", "is listed twice"),
    ] {
        let output = scratch
            .ordid(&["bench", &scratch.url, "--keys", keys])
            .output()?;
        let line = refused(&output, 2)?;
        assert!(line.contains(words), "{line}");
    }
    assert_eq!(tables(scratch)?, [""; 0]);
    Ok(())
}

fn page_fill(scratch: &Scratch) -> Result {
    scratch.query("CREATE SCHEMA \"Odd one\"")?;
    scratch.query("CREATE EXTENSION pgstattuple SCHEMA \"Odd one\"")?;
    let keys = [
        "--keys",
        "uuid_v7,uuid_v4",
        "--rows",
        "20000",
        "--rounds",
        "1",
    ];
    let output = scratch
        .ordid(&["--json", "bench", &scratch.url])
        .args(keys)
        .output()?;
    let document: Value = serde_json::from_str(&printed(&output)?)?;
    let fill = |key: usize| document["keys"][key]["page_fill_percent"].as_f64();
    assert!(
        fill(0) > Some(85.0),
        "ordered keys fill their pages: {document}"
    );
    assert!(
        fill(1) > Some(50.0) && fill(1) < fill(0),
        "random ones do not: {document}"
    );
    Ok(())
}

fn private() -> Result {
    let folder = tempfile::tempdir()?;
    let left = || Ok::<_, libtest_mimic::Failed>(std::fs::read_dir(folder.path())?.count());
    let text =
        printed(&ordid(folder.path(), &["bench", "--rows", "1000", "--rounds", "1"]).output()?)?;
    assert!(
        text.starts_with("What keys cost on SQLite: 1,000 rows of 100 bytes and a key\n"),
        "{text}"
    );
    for words in [
        "\n auto ",
        "\n uuid_v4:blob ",
        "\n uuid_v7:blob ",
        "\nprocessor: ",
        "\nSQLite: 3.",
    ] {
        assert!(text.contains(words), "no {words:?} in {text}");
    }
    assert_eq!(left()?, 0);

    let child = ordid(folder.path(), &["bench", "--rows", "50000000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    while left()? == 0 {
        sleep(Duration::from_millis(20));
    }
    sleep(Duration::from_millis(200));
    Command::new("kill")
        .args(["-TERM", &child.id().to_string()])
        .status()?;
    let line = refused(&child.wait_with_output()?, 3)?;
    assert_eq!(line, "ordid: interrupted; the bench's table is removed");
    assert_eq!(left()?, 0);
    Ok(())
}

fn width() -> Result {
    let folder = tempfile::tempdir()?;
    let mut sizes = Vec::new();
    for width in ["0", "1000", "20000"] {
        let arguments = [
            "--json", "bench", "--rows", "1000", "--rounds", "1", "--keys", "uuid-v7", "--width",
            width,
        ];
        let document: Value =
            serde_json::from_str(&printed(&ordid(folder.path(), &arguments).output()?)?)?;
        let bytes = document["keys"][0]["bytes_per_row"]
            .as_f64()
            .ok_or("no size")?;
        let width: f64 = width.parse()?;
        assert!(
            bytes > width && bytes < 2.0 * width + 64.0,
            "{bytes} for {width}"
        );
        sizes.push(bytes);
    }
    assert!(sizes.is_sorted(), "{sizes:?}");
    Ok(())
}

fn impossible() -> Result {
    let folder = tempfile::tempdir()?;
    let run = |arguments: &[&str]| ordid(folder.path(), arguments).output();
    let line = refused(
        &run(&["bench", "--html", "/no/such/folder/report.html"])?,
        3,
    )?;
    assert_eq!(
        line,
        "ordid: cannot write the report to /no/such/folder/report.html: its folder does not exist"
    );
    let here = folder.path().to_string_lossy();
    let line = refused(&run(&["bench", "--html", &here])?, 3)?;
    assert_eq!(
        line,
        format!("ordid: cannot write the report to {here}: it is a folder")
    );
    for url in ["oracle://me:secret@host/shop", "me:secret@host"] {
        let line = refused(&run(&["bench", url])?, 2)?;
        assert!(
            line.contains("has to be a URL") && !line.contains("secret"),
            "{line}"
        );
    }
    // Port 1 is nobody's.
    let line = refused(
        &run(&["bench", "postgres://me:secret@127.0.0.1:1/shop"])?,
        3,
    )?;
    assert!(
        line.contains("cannot connect to the database") && !line.contains("secret"),
        "{line}"
    );
    for arguments in [
        ["--rows", "999"],
        ["--rows", "many"],
        ["--width", "60001"],
        ["--rounds", "0"],
    ] {
        let output = ordid(folder.path(), &["bench"]).args(arguments).output()?;
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
    Ok(())
}
