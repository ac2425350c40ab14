//! `ordid bench`.

use std::{
    path::Path,
    process::{Command, Output, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use libtest_mimic::Trial;
use serde_json::Value;
use sqlx::{
    AssertSqlSafe, Connection as _, MySqlConnection, PgConnection, Row as _, SqliteConnection,
};

use crate::place::{Result, Servers, block_on};

/// Adds the tests.
pub(crate) fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    type Test = fn(&str) -> Result;

    let on_each: [(&str, Test); 4] = [
        ("bench_measures_every_key_and_leaves_no_table", measures),
        ("bench_is_interrupted_and_leaves_no_table", interrupted),
        ("bench_touches_no_table_that_exists", existing),
        (
            "bench_refuses_keys_that_the_engine_does_not_have",
            unknown_keys,
        ),
    ];
    for (name, test) in on_each {
        for server in ["postgres", "mariadb", "mysql"] {
            trials.push(servers.trial(server, name, test));
        }
        trials.push(Trial::test(format!("{name} [sqlite]"), move || {
            let folder = tempfile::tempdir()?;
            let file = folder.path().join("mine.sqlite");
            std::fs::File::create(&file)?;
            test(file.to_str().ok_or("the path is UTF-8")?)
        }));
    }
    trials.push(servers.trial(
        "postgres",
        "bench_tells_page_fill_with_pgstattuple",
        page_fill,
    ));
    trials.push(Trial::test("bench_without_a_url_leaves_no_file", private));
    trials.push(Trial::test(
        "bench_of_wider_rows_makes_larger_tables",
        width,
    ));
    trials.push(Trial::test(
        "bench_refuses_what_cannot_be_before_it_begins",
        impossible,
    ));
}

/// The place of a test's database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Sqlite,
    Postgres,
    Mariadb,
    Mysql,
}

impl Place {
    fn of(url: &str) -> Result<Self> {
        Ok(match url.split_once("://").map(|(scheme, _)| scheme) {
            None => Self::Sqlite,
            Some("postgres") => Self::Postgres,
            Some(_)
                if query(url, "SELECT CAST(version() AS CHAR)")?
                    .concat()
                    .contains("MariaDB") =>
            {
                Self::Mariadb
            }
            Some(_) => Self::Mysql,
        })
    }
}

/// Returns the program, whose folder for temporary files this one is.
fn ordid(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ordid"));
    command
        .args(arguments)
        .env_remove("DATABASE_URL")
        .env("TMPDIR", folder)
        .stdin(Stdio::null());
    command
}

/// Runs the program with `bench`, this database, and more arguments.
fn bench(url: &str, arguments: &[&str]) -> Result<Output> {
    Ok(ordid(&std::env::temp_dir(), &["bench", url])
        .args(arguments)
        .output()?)
}

/// Returns what the program has printed, if it was content and has said nothing else.
fn printed(output: &Output) -> Result<String> {
    let stderr = String::from_utf8_lossy(&output.stderr);
    if output.status.code() != Some(0) || !stderr.is_empty() {
        return Err(format!("{}: {stderr}", output.status).into());
    }
    Ok(String::from_utf8(output.stdout.clone())?)
}

/// Returns the one line with which the program has refused with this exit code.
fn refused(output: &Output, code: i32) -> Result<String> {
    let stderr = String::from_utf8(output.stderr.clone())?;
    let line = stderr.strip_suffix('\n').unwrap_or(&stderr);
    if output.status.code() != Some(code) || !line.starts_with("ordid: ") || line.contains('\n') {
        return Err(format!("{}, not {code} and a line: {stderr}", output.status).into());
    }
    if !output.stdout.is_empty() {
        return Err(format!("on stdout: {}", String::from_utf8_lossy(&output.stdout)).into());
    }
    Ok(line.to_owned())
}

/// Executes a statement, and returns the first column of what it returns, as texts.
fn query(url: &str, sql: &str) -> Result<Vec<String>> {
    macro_rules! texts {
        ($connection:ty, $url:expr) => {{
            let mut connection = <$connection>::connect($url).await?;
            let rows = sqlx::query(AssertSqlSafe(sql))
                .fetch_all(&mut connection)
                .await?;
            let texts = rows
                .iter()
                .map(|row| row.try_get(0))
                .collect::<std::result::Result<_, _>>()?;
            connection.close().await?;
            Ok(texts)
        }};
    }
    block_on(async {
        match url.split_once("://").map(|(scheme, _)| scheme) {
            Some("postgres") => texts!(PgConnection, url),
            Some(_) => texts!(MySqlConnection, url),
            None => texts!(SqliteConnection, &format!("sqlite:{url}")),
        }
    })
}

/// The tables of the bench that a database has.
fn tables(url: &str) -> Result<Vec<String>> {
    let sql = match Place::of(url)? {
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
    };
    query(url, sql)
}

fn is_spread(value: &Value) -> bool {
    let [median, min, max] =
        ["median", "min", "max"].map(|name| value[name].as_f64().unwrap_or(-1.0));
    0.0 < min && min <= median && median <= max
}

fn measures(url: &str) -> Result {
    let place = Place::of(url)?;
    let output = bench(url, &["--json", "--rows", "2000", "--rounds", "2"])?;
    let document: Value = serde_json::from_str(&printed(&output)?)?;

    let (name, engine) = match place {
        Place::Sqlite => ("sqlite", "SQLite"),
        Place::Postgres => ("postgres", "PostgreSQL"),
        Place::Mariadb => ("mariadb", "MariaDB"),
        Place::Mysql => ("mysql", "MySQL"),
    };
    assert_eq!(document["engine"], name);
    assert_eq!(
        (&document["rows"], &document["rounds"]),
        (&2000.into(), &2.into())
    );
    assert_eq!(
        (&document["batch"], &document["width"]),
        (&200.into(), &100.into())
    );
    assert!(document["cache_bytes"].as_f64() > Some(1e6), "{document}");
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
        let has_index = place == Place::Postgres;
        assert_eq!(key["index_bytes"].is_number(), has_index, "{key}");
        match key["page_fill_percent"].as_f64() {
            Some(fill) => assert!((30.0..=100.0).contains(&fill), "{key}"),
            None => assert!(matches!(place, Place::Postgres | Place::Mariadb), "{key}"),
        }
    }
    let forms = document["forms"].as_array().ok_or("no forms")?;
    assert_eq!(forms.len(), 5);
    assert!(
        forms
            .iter()
            .all(|form| is_spread(&form["sort_ns"]) && is_spread(&form["compare_ns"]))
    );
    assert_eq!(tables(url)?, [""; 0]);
    Ok(())
}

fn interrupted(url: &str) -> Result {
    let mut child = ordid(&std::env::temp_dir(), &["bench", url, "--rows", "50000000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let end = Instant::now() + Duration::from_mins(1);
    while tables(url).unwrap_or_default().is_empty() {
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
    assert_eq!(tables(url)?, [""; 0]);
    Ok(())
}

fn existing(url: &str) -> Result {
    query(url, "CREATE TABLE ordid_bench_mine (id INT)")?;
    query(url, "INSERT INTO ordid_bench_mine VALUES (42)")?;
    let output = bench(url, &["--rows", "1000"])?;
    assert_eq!(
        refused(&output, 3)?,
        "ordid: the database has the table ordid_bench_mine, and names that begin with ordid_bench_ are the bench's own: if \
         a run was killed, remove what it has left by DROP TABLE ordid_bench_mine"
    );
    assert_eq!(tables(url)?, ["ordid_bench_mine"]);
    let kept = match Place::of(url)? {
        Place::Sqlite | Place::Postgres => "SELECT CAST(id AS TEXT) FROM ordid_bench_mine",
        _ => "SELECT CAST(id AS CHAR) FROM ordid_bench_mine",
    };
    assert_eq!(query(url, kept)?, ["42"]);
    Ok(())
}

fn unknown_keys(url: &str) -> Result {
    for (keys, words) in [
        ("guid", "there is no scheme `guid`"),
        (
            "uuid_v7:raw16",
            "has no column `raw16` for `uuid_v7` keys; it has ",
        ),
        (
            "auto,tickets",
            "keys of tickets are not made by a generator",
        ),
        ("auto,uuid_v7,uuid-v7", "is listed twice"),
    ] {
        let output = bench(url, &["--keys", keys])?;
        let line = refused(&output, 2)?;
        assert!(line.contains(words), "{line}");
    }
    assert_eq!(tables(url)?, [""; 0]);
    Ok(())
}

fn page_fill(url: &str) -> Result {
    query(url, "CREATE SCHEMA \"Odd one\"")?;
    query(url, "CREATE EXTENSION pgstattuple SCHEMA \"Odd one\"")?;
    let keys = "uuid_v7,uuid_v4";
    let output = bench(
        url,
        &["--json", "--keys", keys, "--rows", "20000", "--rounds", "1"],
    )?;
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
