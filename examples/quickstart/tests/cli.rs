//! Runs the program as a user does.
//!
//! Servers are those of `ordid_harness`: private ones, those that `ORDID_TEST_POSTGRES_URL`,
//! `ORDID_TEST_MARIADB_URL` and `ORDID_TEST_MYSQL_URL` name, or none; then the test counts as
//! ignored.

#[path = "cli/nycflights13.rs"]
mod nycflights13;

use std::{
    fs::{self, File},
    io::Write,
    path::Path,
    process::{Command, Output},
    sync::atomic::{AtomicU32, Ordering},
};

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use sqlx::{
    AssertSqlSafe, Connection, MySqlConnection, PgConnection, SqliteConnection,
    sqlite::SqliteConnectOptions,
};
use tempfile::TempDir;

type Result<T = ()> = std::result::Result<T, Failed>;

const PROGRAM: &str = env!("CARGO_BIN_EXE_quickstart");
const SLICE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data");
const TABLES: [(&str, i64); 4] = [
    ("airlines", 16),
    ("airports", 1_458),
    ("planes", 3_322),
    ("flights", 6_099),
];

fn main() {
    let arguments = Arguments::from_args();
    let mut trials = vec![
        Trial::test(
            "without_options_the_slice_is_loaded_into_a_fresh_file",
            fresh_file,
        ),
        Trial::test("a_file_is_kept_and_not_loaded_twice", kept_file),
        Trial::test(
            "a_file_that_has_one_of_the_tables_is_left_alone",
            file_with_a_table,
        ),
        Trial::test("a_full_disk_leaves_no_file", full_disk),
        Trial::test("a_folder_with_an_archive_is_loaded", folder_with_archive),
        Trial::test("columns_may_stand_in_another_order", other_columns),
        Trial::test("files_without_rows_are_tables_without_rows", no_rows),
        Trial::test("data_that_cannot_be_read_is_one_line", unreadable_data),
        Trial::test(
            "a_malformed_row_is_named_and_nothing_loaded",
            malformed_rows,
        ),
        Trial::test("a_server_that_is_not_there_is_one_line", unreachable_server),
        Trial::test("a_url_of_no_use_is_one_line", useless_urls),
        Trial::test("file_and_database_exclude_each_other", file_and_database),
        on_server("postgres", postgres),
        on_server("mariadb", mysql),
        on_server("mysql", mysql),
    ];
    nycflights13::trials(&mut trials);
    libtest_mimic::run(&arguments, trials).exit();
}

/// A folder for one test, which is also the program's folder for temporary files.
struct Place(TempDir);

impl Place {
    fn new() -> Result<Self> {
        Ok(Self(tempfile::tempdir()?))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn run(&self, arguments: &[&str]) -> Result<Output> {
        Ok(Command::new(PROGRAM)
            .args(arguments)
            .env("TMPDIR", self.path())
            .current_dir(self.path())
            .output()?)
    }

    /// Runs the program and returns what it prints.
    fn succeed(&self, arguments: &[&str]) -> Result<String> {
        let output = self.run(arguments)?;
        let stderr = String::from_utf8(output.stderr)?;
        check(output.status.success(), || format!("failed: {stderr}"))?;
        check(stderr.is_empty(), || {
            format!("no terminal, and yet on stderr: {stderr}")
        })?;
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Runs the program and returns the one line that it fails with.
    fn fail(&self, arguments: &[&str]) -> Result<String> {
        refused(self.run(arguments)?)
    }

    /// Copies the slice, to be changed.
    fn copy_slice(&self) -> Result<&str> {
        for (table, _) in TABLES {
            fs::copy(
                format!("{SLICE}/{table}.csv"),
                self.path().join(format!("{table}.csv")),
            )?;
        }
        Ok(".")
    }
}

fn refused(output: Output) -> Result<String> {
    let (stdout, stderr) = (
        String::from_utf8(output.stdout)?,
        String::from_utf8(output.stderr)?,
    );
    check(output.status.code() == Some(1), || {
        format!("{}: {stderr}", output.status)
    })?;
    check(stdout.is_empty(), || format!("on stdout: {stdout}"))?;
    let line = stderr.strip_suffix('\n').unwrap_or(&stderr);
    check(
        line.starts_with("quickstart: ") && !line.contains('\n'),
        || format!("not a line: {line}"),
    )?;
    Ok(line.to_owned())
}

fn check(right: bool, what: impl FnOnce() -> String) -> Result {
    if right { Ok(()) } else { Err(what().into()) }
}

/// Demands these texts in this order.
fn contains(text: &str, parts: &[&str]) -> Result {
    let mut rest = text;
    for part in parts {
        match rest.split_once(part) {
            Some((_, behind)) => rest = behind,
            None => return Err(format!("no {part:?} where expected in:\n{text}").into()),
        }
    }
    Ok(())
}

fn block_on<T>(future: impl Future<Output = std::result::Result<T, sqlx::Error>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    Ok(runtime.block_on(future)?)
}

/// Returns the numbers that a query gives.
fn sqlite(file: &Path, sql: &str) -> Result<Vec<i64>> {
    let options = SqliteConnectOptions::new().filename(file);
    block_on(async {
        let mut connection = SqliteConnection::connect_with(&options).await?;
        sqlx::query_scalar(AssertSqlSafe(sql))
            .fetch_all(&mut connection)
            .await
    })
}

const REPORT: &[&str] = &[
    "\nairlines         16           1 ",
    "\nairports      1,458           2 ",
    "\nplanes        3,322           4 ",
    "\nflights       6,099           7 ",
    "\nall          10,895          14 ",
    "        8 name no plane\n",
    "      979 name a plane that is not in planes\n",
    "        0 leave from an airport",
    "      181 go to an airport",
    "\nfirst keys, and the time in them\n  airlines  ",
    "-7",
    "Z\n",
    "  flights   ",
    "\nORDER BY id equals insertion order: yes (10,895 rows)\n",
    "\nuuid_v7 keys ",
    " %\n",
    "random v4 keys ",
    " %\n",
];

fn fresh_file() -> Result {
    let place = Place::new()?;
    let file = place.path().join("quickstart.sqlite");
    let report = place.succeed(&[])?;
    contains(
        &report,
        &[
            "a slice",
            "SQLite 3.",
            "foreign_keys=ON",
            "quickstart.sqlite",
        ],
    )?;
    contains(&report, REPORT)?;
    for (table, rows) in TABLES {
        assert_eq!(
            sqlite(&file, &format!("SELECT count(*) FROM {table}"))?,
            [rows]
        );
    }
    assert_eq!(
        sqlite(&file, "SELECT count(*) FROM pragma_foreign_key_check")?,
        [0]
    );
    assert_eq!(
        sqlite(
            &file,
            "SELECT count(*) FROM pragma_foreign_key_list('flights')"
        )?,
        [4]
    );
    let nulls = "SELECT sum(plane_id IS NULL) FROM flights UNION ALL
                 SELECT sum(dest_id IS NULL) FROM flights UNION ALL
                 SELECT sum(origin_id IS NULL) FROM flights";
    assert_eq!(sqlite(&file, nulls)?, [8 + 979, 181, 0]);
    nycflights13::agrees(Path::new(SLICE), "INTEGER", |sql| sqlite(&file, sql))?;
    let (tables, bytes) = (
        sqlite(
            &file,
            "SELECT count(*) FROM sqlite_schema WHERE type = 'table'",
        )?,
        fs::metadata(&file)?.len(),
    );
    assert_eq!(tables, [4], "nothing of the comparison stays");

    // A second run starts anew, also beside a journal that somebody left.
    fs::write(place.path().join("quickstart.sqlite-wal"), "left")?;
    place.succeed(&[])?;
    assert_eq!(sqlite(&file, "SELECT count(*) FROM flights")?, [6_099]);
    assert_eq!(fs::metadata(&file)?.len(), bytes);
    Ok(())
}

fn kept_file() -> Result {
    let place = Place::new()?;
    let file = place.path().join("kept.sqlite");
    place.succeed(&["--file", "kept.sqlite"])?;
    let before = fs::read(&file)?;
    let line = place.fail(&["--file", "kept.sqlite"])?;
    contains(
        &line,
        &["kept.sqlite already has a table airlines: nothing was loaded"],
    )?;
    check(fs::read(&file)? == before, || {
        "the file has changed".to_owned()
    })?;
    check(!place.path().join("quickstart.sqlite").exists(), || {
        "a second file".to_owned()
    })
}

fn file_with_a_table() -> Result {
    let place = Place::new()?;
    let file = place.path().join("mine.sqlite");
    File::create(&file)?;
    // Whatever the case: SQLite would not create it beside this one.
    sqlite(&file, "CREATE TABLE Planes (mine)")?;
    let line = place.fail(&["--file", "mine.sqlite"])?;
    contains(
        &line,
        &["mine.sqlite already has a table planes: nothing was loaded"],
    )?;
    assert_eq!(sqlite(&file, "SELECT count(*) FROM sqlite_schema")?, [1]);

    fs::write(&file, "This is not a database. ".repeat(100))?;
    contains(
        &place.fail(&["--file", "mine.sqlite"])?,
        &["mine.sqlite: ", "not a database"],
    )?;
    contains(
        &place.fail(&["--file", "no/such.sqlite"])?,
        &["cannot connect to no/such.sqlite: "],
    )
}

fn full_disk() -> Result {
    let place = Place::new()?;
    // 100 KiB a file. Without the trap the signal would end the program.
    let script = format!("trap '' XFSZ; ulimit -f 200; exec '{PROGRAM}' --file full.sqlite");
    let mut command = Command::new("sh");
    command.args(["-c", &script]).current_dir(place.path());
    let line = refused(command.output()?)?;
    contains(&line, &["cannot load into full.sqlite: "])?;
    assert_eq!(fs::read_dir(place.path())?.count(), 0, "{line}");
    Ok(())
}

fn folder_with_archive() -> Result {
    let place = Place::new()?;
    place.copy_slice()?;
    let flights = place.path().join("flights.csv");
    let archive = place.path().join("flights.csv.zip");
    let mut writer = zip::ZipWriter::new(File::create(&archive)?);
    writer.start_file("flights.csv", zip::write::SimpleFileOptions::default())?;
    writer.write_all(&fs::read(&flights)?)?;
    writer.finish()?;
    fs::remove_file(&flights)?;
    contains(&place.succeed(&["--data", "."])?, REPORT)?;

    let mut damaged = fs::read(&archive)?;
    damaged
        .iter_mut()
        .skip(1000)
        .take(1000)
        .for_each(|byte| *byte ^= 0x55);
    fs::write(&archive, damaged)?;
    let line = place.fail(&["--data", ".", "--file", "new.sqlite"])?;
    contains(&line, &["cannot read flights.csv in ./flights.csv.zip: "])?;
    fs::write(&archive, "no archive")?;
    let line = place.fail(&["--data", ".", "--file", "new.sqlite"])?;
    contains(&line, &["cannot read flights.csv in ./flights.csv.zip: "])?;
    check(!place.path().join("new.sqlite").exists(), || {
        "a file of nothing".to_owned()
    })
}

fn other_columns() -> Result {
    let place = Place::new()?;
    place.copy_slice()?;
    let airlines = fs::read_to_string(place.path().join("airlines.csv"))?;
    let turned: String = airlines
        .lines()
        .filter_map(|line| line.split_once(','))
        .map(|(carrier, name)| format!("{name},0,{carrier}\n"))
        .collect();
    fs::write(place.path().join("airlines.csv"), turned)?;
    contains(&place.succeed(&["--data", "."])?, REPORT)
}

fn no_rows() -> Result {
    let place = Place::new()?;
    place.copy_slice()?;
    for table in ["planes", "flights"] {
        let path = place.path().join(format!("{table}.csv"));
        let header = fs::read_to_string(&path)?
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned();
        fs::write(&path, header)?;
        let report = place.succeed(&["--data", "."])?;
        contains(
            &report,
            &[&format!("\n{table:<9}         0           0 "), "yes ("],
        )?;
    }
    Ok(())
}

fn unreadable_data() -> Result {
    let place = Place::new()?;
    let line = place.fail(&["--data", "nowhere"])?;
    contains(&line, &["cannot read nowhere/airlines.csv: No such file"])?;
    place.copy_slice()?;
    fs::remove_file(place.path().join("flights.csv"))?;
    let line = place.fail(&["--data", "."])?;
    contains(&line, &["cannot read ./flights.csv: No such file"])?;
    fs::create_dir(place.path().join("flights.csv"))?;
    let line = place.fail(&["--data", "."])?;
    contains(&line, &["cannot read ./flights.csv: Is a directory"])?;
    check(!place.path().join("quickstart.sqlite").exists(), || {
        "a file of nothing".to_owned()
    })
}

fn malformed_rows() -> Result {
    let place = Place::new()?;
    for (table, from, to, expected) in [
        (
            "airlines",
            "carrier,name",
            "code,name",
            "./airlines.csv: no column \"carrier\"",
        ),
        (
            "airlines",
            "\nAA,",
            "\nAA,X,",
            "./airlines.csv line 3: 3 fields, expected 2",
        ),
        (
            "airlines",
            "\nAA,",
            "\n9E,",
            "./airlines.csv line 3: a second row for \"9E\"",
        ),
        (
            "airlines",
            "\nAA,",
            "\n,",
            "./airlines.csv line 3: carrier is \"\", expected a code of 1 to 16 ASCII characters",
        ),
        (
            "airports",
            ",41.1304722,",
            ",nan,",
            "./airports.csv line 2: lat is \"nan\", expected a number from -180 to 180",
        ),
        (
            "planes",
            "\nN10156,2004,",
            "\nN10156,MMIV,",
            "./planes.csv line 2: year is \"MMIV\", expected a whole number from -32768 to 32767",
        ),
        (
            "flights",
            "\n2013,1,1,542,",
            "\n2013,1,NA,542,",
            "./flights.csv line 4: day is \"NA\", expected a whole number from -32768 to 32767",
        ),
        (
            "flights",
            ",AA,1141,",
            ",ZZ,1141,",
            "./flights.csv line 4: no airline has the carrier \"ZZ\"",
        ),
        (
            "flights",
            "T10:00:00Z\n",
            " 10 o'clock\n",
            "./flights.csv line 2: time_hour is \"2013-01-01 10 o'clock\", expected a time such as \
             2013-01-01T10:00:00Z",
        ),
    ] {
        place.copy_slice()?;
        let path = place.path().join(format!("{table}.csv"));
        let content = fs::read_to_string(&path)?;
        check(content.contains(from), || format!("no {from:?} in {table}"))?;
        fs::write(&path, content.replacen(from, to, 1))?;
        assert_eq!(
            place.fail(&["--data", "."])?,
            format!("quickstart: {expected}")
        );
    }

    let path = place.path().join("airlines.csv");
    fs::write(&path, b"carrier,name\n9E,Endeavor\nAA,\xff\xfe\n")?;
    contains(
        &place.fail(&["--data", "."])?,
        &["./airlines.csv line 3: invalid utf-8"],
    )?;
    check(!place.path().join("quickstart.sqlite").exists(), || {
        "a file of nothing".to_owned()
    })
}

fn unreachable_server() -> Result {
    let place = Place::new()?;
    for scheme in ["postgres", "mysql"] {
        // Port 1 is nobody's.
        let line = place.fail(&[
            "--database",
            &format!("{scheme}://me:secret@127.0.0.1:1/shop"),
        ])?;
        contains(
            &line,
            &[
                &format!("cannot connect to {scheme}://127.0.0.1:1/shop: "),
                "refused",
            ],
        )?;
        check(!line.contains("secret"), || {
            format!("the password is shown: {line}")
        })?;
    }
    Ok(())
}

fn useless_urls() -> Result {
    let place = Place::new()?;
    for (url, expected) in [
        (
            "oracle://me:secret@host/shop",
            "must begin with postgres:// or mysql://",
        ),
        ("shop", "must begin with postgres:// or mysql://"),
        ("sqlite:shop.sqlite", "write --file PATH"),
        ("mysql://me:secret@host", "names no database"),
        (
            "postgres://me:secret@host:port/shop",
            "cannot read the URL of --database: ",
        ),
    ] {
        let line = place.fail(&["--database", url])?;
        contains(&line, &[expected])?;
        check(!line.contains("secret"), || {
            format!("the password is shown: {line}")
        })?;
    }
    Ok(())
}

fn file_and_database() -> Result {
    let place = Place::new()?;
    let output = place.run(&["--file", "x.sqlite", "--database", "postgres://host/shop"])?;
    assert_eq!(output.status.code(), Some(2));
    contains(&String::from_utf8(output.stderr)?, &["cannot be used with"])
}

/// A test that wants a server, and gets the administrator's URL.
fn on_server(name: &'static str, test: fn(&str) -> Result) -> Trial {
    let trial = Trial::ignorable_test(format!("{name}_is_loaded_once_and_whole"), move || {
        let access = ordid_harness::access(name)?;
        if let ordid_harness::Access::Skip(reason) = &access {
            return Ok(Completion::ignored_with(reason));
        }
        test(&access.url().unwrap_or_default())?;
        Ok(Completion::Completed)
    });
    trial.with_kind("live")
}

/// Returns the URL of another database, under another user where one is given.
fn sibling(url: &str, user: Option<&str>, database: &str) -> String {
    let (address, options) = url
        .split_once('?')
        .map_or((url, ""), |(url, options)| (url, options));
    let (scheme, rest) = address.split_once("://").unwrap_or(("", address));
    let authority = rest.split('/').next().unwrap_or(rest);
    let host = authority.rsplit('@').next().unwrap_or(authority);
    let authority = user.map_or(authority.to_owned(), |user| format!("{user}@{host}"));
    let mark = if options.is_empty() { "" } else { "?" };
    format!("{scheme}://{authority}/{database}{mark}{options}")
}

/// The name of a database, and of a user, that no other test has.
fn scratch() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("ordid_quickstart_{}_{number}", std::process::id())
}

fn query_postgres(url: &str, sql: &str) -> Result<Vec<i64>> {
    block_on(async {
        let mut connection = PgConnection::connect(url).await?;
        sqlx::query_scalar(AssertSqlSafe(sql))
            .fetch_all(&mut connection)
            .await
    })
}

fn query_mysql(url: &str, sql: &str) -> Result<Vec<i64>> {
    block_on(async {
        let mut connection = MySqlConnection::connect(url).await?;
        sqlx::query_scalar(AssertSqlSafe(sql))
            .fetch_all(&mut connection)
            .await
    })
}

/// Runs the same steps everywhere: `query` returns numbers from the scratch database, whose tables are in `schema`.
fn steps(
    url: &str,
    product: &str,
    schema: &str,
    integer: &str,
    query: impl Fn(&str) -> Result<Vec<i64>>,
) -> Result {
    let place = Place::new()?;
    let report = place.succeed(&["--database", url])?;
    contains(&report, &["a slice", product])?;
    contains(&report, REPORT)?;
    for (table, rows) in TABLES {
        assert_eq!(query(&format!("SELECT COUNT(*) FROM {table}"))?, [rows]);
    }
    let nulls = "SELECT COUNT(*) FROM flights WHERE plane_id IS NULL UNION ALL
                 SELECT COUNT(*) FROM flights WHERE dest_id IS NULL";
    assert_eq!(query(nulls)?, [8 + 979, 181]);
    // On MySQL and MariaDB these tables have what other databases of the server have, too.
    let tables = format!(
        "SELECT COUNT(*) FROM information_schema.tables WHERE table_name LIKE 'flights%'
         AND table_schema = '{schema}'"
    );
    assert_eq!(query(&tables)?, [1], "nothing of the comparison stays");
    let keys = format!(
        "SELECT COUNT(*) FROM information_schema.referential_constraints
         WHERE constraint_schema = '{schema}'"
    );
    assert_eq!(query(&keys)?, [4]);

    nycflights13::agrees(Path::new(SLICE), integer, &query)?;

    let line = place.fail(&["--database", url])?;
    contains(&line, &["already has a table airlines: nothing was loaded"])?;
    assert_eq!(query("SELECT COUNT(*) FROM flights")?, [6_099]);
    query("DROP TABLE flights, planes, airports, airlines")?;

    // The last of them is enough, and the others are not made.
    query("CREATE TABLE flights_v4 (mine INT)")?;
    let line = place.fail(&["--database", url])?;
    contains(
        &line,
        &["already has a table flights_v4: nothing was loaded"],
    )?;
    assert_eq!(query(&tables)?, [1]);
    query("DROP TABLE flights_v4")?;
    Ok(())
}

fn postgres(admin: &str) -> Result {
    let name = scratch();
    let run = query_postgres;
    run(admin, &format!("CREATE DATABASE {name}"))?;
    let url = sibling(admin, None, &name);
    let tested = steps(&url, "PostgreSQL ", "public", "BIGINT", |sql| {
        run(&url, sql)
    })
    .and_then(|()| {
        // May create tables, but not insert even into its own: the flush fails.
        run(&url, &format!("CREATE ROLE {name} LOGIN PASSWORD 'secret'"))?;
        run(&url, &format!("GRANT CREATE ON SCHEMA public TO {name}"))?;
        let revoke = "REVOKE INSERT ON TABLES FROM";
        run(
            &url,
            &format!("ALTER DEFAULT PRIVILEGES FOR ROLE {name} {revoke} {name}"),
        )?;
        let limited = sibling(&url, Some(&format!("{name}:secret")), &name);
        let line = Place::new()?.fail(&["--database", &limited])?;
        contains(
            &line,
            &[
                "cannot load into postgres://",
                "cannot insert into airlines",
                "denied",
            ],
        )?;
        let tables = "SELECT COUNT(*) FROM pg_tables WHERE schemaname = 'public'";
        assert_eq!(run(&url, tables)?, [0], "no empty tables stay");
        Ok(())
    });
    run(admin, &format!("DROP DATABASE {name} WITH (FORCE)"))?;
    run(admin, &format!("DROP ROLE IF EXISTS {name}"))?;
    tested
}

fn mysql(admin: &str) -> Result {
    let name = scratch();
    let run = query_mysql;
    run(admin, &format!("CREATE DATABASE {name}"))?;
    let url = sibling(admin, None, &name);
    let version = run(&url, "SELECT VERSION() LIKE '%MariaDB%'")?;
    let product = if version == [1] { "MariaDB " } else { "MySQL " };
    let tested = steps(&url, product, &name, "SIGNED", |sql| run(&url, sql)).and_then(|()| {
        // May create tables, but not insert: the flush fails after the tables were made.
        run(admin, &format!("CREATE USER {name} IDENTIFIED BY 'secret'"))?;
        let rights = "CREATE, DROP, SELECT, REFERENCES";
        run(admin, &format!("GRANT {rights} ON {name}.* TO {name}"))?;
        let limited = sibling(&url, Some(&format!("{name}:secret")), &name);
        let line = Place::new()?.fail(&["--database", &limited])?;
        contains(
            &line,
            &[
                "cannot load into mysql://",
                "cannot insert into airlines",
                "denied",
            ],
        )?;
        let tables =
            "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE()";
        assert_eq!(run(&url, tables)?, [0], "no empty tables stay");
        Ok(())
    });
    run(admin, &format!("DROP DATABASE {name}"))?;
    run(admin, &format!("DROP USER IF EXISTS {name}"))?;
    tested
}
