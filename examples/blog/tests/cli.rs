//! Runs the program as a user does: the same steps on SQLite, PostgreSQL, MariaDB and MySQL.
//!
//! Servers are those of `ordid_harness`: private ones, those that `ORDID_TEST_POSTGRES_URL`,
//! `ORDID_TEST_MARIADB_URL` and `ORDID_TEST_MYSQL_URL` name, or none; then the test counts as
//! ignored.

use std::{
    fs,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    process::{Command, Output},
};

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use sqlx::{AssertSqlSafe, Connection, MySqlConnection, PgConnection, SqliteConnection};
use tempfile::TempDir;

type Result<T = ()> = std::result::Result<T, Failed>;

fn main() {
    let arguments = Arguments::from_args();
    let trials = vec![
        Trial::test("sqlite::a_blog_is_seeded_read_and_tagged", in_default_file),
        Trial::test("sqlite::folders_of_posts_are_read", folders),
        Trial::test("sqlite::what_cannot_be_is_one_line", refused),
        on_server("postgres"),
        on_server("mariadb"),
        on_server("mysql"),
    ];
    libtest_mimic::run(&arguments, trials).exit();
}

/// A folder for one test, which is also the program's folder for temporary files.
struct Place(TempDir, Option<String>);

impl Place {
    fn new(database: Option<String>) -> Result<Self> {
        Ok(Self(tempfile::tempdir()?, database))
    }

    fn run(&self, arguments: &[&str]) -> Result<Output> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_blog"));
        command
            .args(arguments)
            .env("TMPDIR", self.0.path())
            .env_remove("DATABASE_URL")
            .current_dir(self.0.path());
        if let Some(database) = &self.1 {
            command.env("DATABASE_URL", database);
        }
        Ok(command.output()?)
    }

    /// Runs the program and returns what it prints.
    fn succeed(&self, arguments: &[&str]) -> Result<String> {
        let output = self.run(arguments)?;
        let stderr = String::from_utf8(output.stderr)?;
        assert!(
            output.status.success() && stderr.is_empty(),
            "{arguments:?}: {stderr}"
        );
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Runs the program and returns the one line that it fails with.
    fn fail(&self, arguments: &[&str]) -> Result<String> {
        let output = self.run(arguments)?;
        let stderr = String::from_utf8(output.stderr)?;
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {stderr}");
        assert!(output.stdout.is_empty());
        assert!(
            stderr.starts_with("blog: ") && stderr.matches('\n').count() == 1,
            "{stderr}"
        );
        Ok(stderr)
    }
}

/// What the posts that come with the program look like in the list, newest first.
const LISTED: [&str; 5] = [
    "2026-10-25  The clock that went back, by Jonas Weyl #clocks #order",
    "2026-04-14  Two shelves, one book, by Ilse Brandt #forms #indexes #paper",
    "2025-09-03  Write at the end, by Ilse Brandt #indexes #order",
    "2025-01-20  Four fields of a form, by Marta Holm #forms #paper",
    "2024-02-11  A ledger has no gaps, by Marta Holm #order #paper",
];

/// Returns the ids of a list, and the rest of its lines.
fn lines(list: &str) -> (Vec<&str>, Vec<&str>) {
    list.lines()
        .filter_map(|line| line.split_once("  "))
        .unzip()
}

fn steps(place: &Place) -> Result {
    assert_eq!(
        place.succeed(&["seed"])?,
        "0 of 5 posts were there\n\
         author        3 rows in 1 statements\n\
         post          5 rows in 1 statements\n\
         tag           5 rows in 1 statements\n\
         post_tag     11 rows in 1 statements\n"
    );
    assert_eq!(place.succeed(&["seed"])?, "5 of 5 posts were there\n");

    let list = place.succeed(&["list"])?;
    let (ids, shown) = lines(&list);
    assert_eq!(shown, LISTED);
    assert!(ids.iter().all(|id| id.starts_with("post_")), "{ids:?}");
    let page = place.succeed(&["list", "--limit", "2"])?;
    assert_eq!(lines(&page).1, LISTED[..2]);
    let page = place.succeed(&["list", "--limit", "2", "--before", ids[1]])?;
    assert_eq!(lines(&page), (ids[2..4].to_vec(), LISTED[2..4].to_vec()));
    let page = place.succeed(&["list", "--before", ids[4]])?;
    assert_eq!(page, "");
    let tagged = place.succeed(&["list", "--tag", "indexes"])?;
    assert_eq!(lines(&tagged).1, [LISTED[1], LISTED[2]]);

    let by_name = place.succeed(&["show", "the-clock"])?;
    let head = format!(
        "The clock that went back\nby Jonas Weyl, 2026-10-25 #clocks #order\n{}\n\nOn the last ",
        ids[0]
    );
    assert!(by_name.starts_with(&head), "{by_name}");
    assert_eq!(place.succeed(&["show", ids[0]])?, by_name);

    assert_eq!(
        place.succeed(&["tag", "the-clock", "order", "winter", "paper", "winter"])?,
        "the-clock has 2 tags more, of which 1 are new\n"
    );
    assert_eq!(
        place.succeed(&["tag", ids[0], "winter"])?,
        "the-clock has 0 tags more, of which 0 are new\n"
    );
    let tagged = place.succeed(&["list", "--tag", "winter"])?;
    assert_eq!(
        lines(&tagged).1,
        ["2026-10-25  The clock that went back, by Jonas Weyl #clocks #order #paper #winter"]
    );

    for (arguments, reason) in [
        (["show", "nothing"], "no post nothing"),
        (
            ["show", "post_01h455vb4pex5vsknk084sn02q"],
            "no post post_01h455vb4pex5vsknk084sn02q",
        ),
        (["show", "post_1"], "no id post_1: expected 26 characters"),
    ] {
        let line = place.fail(&arguments)?;
        assert!(line.contains(reason), "{line}");
    }
    Ok(())
}

fn in_default_file() -> Result {
    let place = Place::new(None)?;
    steps(&place)?;
    let file = place.0.path().join("blog.sqlite");
    // As SQLite has it: the pairs are unique, and refer to posts and tags.
    let url = format!("sqlite://{}", file.display());
    let refused = block_on(async {
        let mut connection = SqliteConnection::connect(&url).await?;
        let twice = "INSERT INTO post_tag SELECT randomblob(16), post_id, tag_id FROM post_tag";
        let orphan = "INSERT INTO post_tag VALUES (x'01', x'02', x'03')";
        let mut refused = Vec::new();
        for sql in [twice, orphan] {
            refused.push(sqlx::query(sql).execute(&mut connection).await.err());
        }
        Ok(refused)
    })?;
    let refused: Vec<String> = refused
        .into_iter()
        .flatten()
        .map(|it| it.to_string())
        .collect();
    assert!(
        refused[0].contains("UNIQUE") && refused[1].contains("FOREIGN KEY"),
        "{refused:?}"
    );
    Ok(())
}

fn folders() -> Result {
    let place = Place::new(None)?;
    let folder = place.0.path();
    fs::write(folder.join("notes.md"), "not a post")?;
    let line = place.fail(&["seed", "."])?;
    assert!(line.contains("no *.txt in ."), "{line}");
    let head = "title: Mine\nauthor: Me\ndate: 2020-01-01T00:00:00Z\ntags:\n";
    fs::write(folder.join("mine.txt"), format!("{head}\nText.\n"))?;
    let told = place.succeed(&["seed", "."])?;
    assert!(
        told.starts_with("0 of 1 posts were there\nauthor "),
        "{told}"
    );
    // Its key is as old as it is, so it comes last.
    place.succeed(&["seed"])?;
    let list = place.succeed(&["list"])?;
    assert_eq!(lines(&list).1[5], "2020-01-01  Mine, by Me");

    for (text, reason) in [
        (head.to_owned(), "mine.txt: no empty line"),
        (
            "title: Mine\n\nText".to_owned(),
            "mine.txt: no line `date:`",
        ),
        (head.replace("2020", "20") + "\nText", "mine.txt: date: "),
        (
            head.replace("2020", "1960") + "\nText",
            "mine.txt: date before 1970",
        ),
    ] {
        fs::write(folder.join("mine.txt"), text)?;
        let line = place.fail(&["seed", "."])?;
        assert!(line.contains(reason), "{line}");
    }
    let line = place.fail(&["seed", "nowhere"])?;
    assert!(line.contains("cannot read nowhere: No such file"), "{line}");
    Ok(())
}

fn refused() -> Result {
    for url in [
        "sqlite://no/such.sqlite",
        "postgres://me:secret@127.0.0.1:1/blog",
        "mysql://me:secret@127.0.0.1:1/blog",
    ] {
        let line = Place::new(Some(url.to_owned()))?.fail(&["list"])?;
        assert!(
            line.starts_with("blog: cannot open the database: "),
            "{line}"
        );
        assert!(!line.contains("secret"), "the password is shown: {line}");
    }
    let line = Place::new(Some("oracle://me:secret@host/blog".to_owned()))?.fail(&["list"])?;
    assert!(
        line.contains("must begin with postgres://") && !line.contains("secret"),
        "{line}"
    );
    let place = Place::new(None)?;
    for arguments in [
        &["list", "--before", "post_1"][..],
        &["tag", "the-clock"],
        &[],
    ] {
        let output = place.run(arguments)?;
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
    Ok(())
}

fn block_on<T>(future: impl Future<Output = std::result::Result<T, sqlx::Error>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    Ok(runtime.block_on(future)?)
}

fn execute(url: &str, sql: &str) -> Result {
    block_on(async {
        let sql = sqlx::raw_sql(AssertSqlSafe(sql));
        if url.starts_with("postgres") {
            sql.execute(&mut PgConnection::connect(url).await?).await?;
        } else {
            sql.execute(&mut MySqlConnection::connect(url).await?)
                .await?;
        }
        Ok(())
    })
}

/// The steps in a database of their own.
fn on_server(name: &'static str) -> Trial {
    let test = move || {
        let access = ordid_harness::access(name)?;
        if let ordid_harness::Access::Skip(reason) = &access {
            return Ok(Completion::ignored_with(reason));
        }
        let admin = access.url().unwrap_or_default();
        let database = format!("ordid_blog_{}", std::process::id());
        let (server, _) = admin
            .rsplit_once('/')
            .ok_or("an address names a database")?;
        let place = Place::new(Some(format!("{server}/{database}")))?;
        execute(&admin, &format!("CREATE DATABASE {database}"))?;
        let outcome = catch_unwind(AssertUnwindSafe(|| steps(&place)));
        execute(&admin, &format!("DROP DATABASE {database}"))?;
        match outcome {
            Ok(outcome) => outcome.map(|()| Completion::Completed),
            Err(panic) => resume_unwind(panic),
        }
    };
    Trial::ignorable_test(format!("{name}::a_blog_is_seeded_read_and_tagged"), test)
}
