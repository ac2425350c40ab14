//! The lists that are made of the catalogue of schemes or of the list of columns are what they say.

use std::{
    fs,
    path::{Path, PathBuf},
};

use ordid_core::{
    generator::Slotted,
    key::{Key192, ObjectId, PushId, RawKey},
    scheme::UuidV7Spread,
    storage::{column, dialect},
    uuid::Uuid,
};
use ordid_sql::EngineProfile;
use ordid_tests::lists::{lists, missing};

#[path = "lists/commands.rs"]
mod commands;

/// The folder of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[test]
fn lists_that_are_written_from_the_catalogue_say_what_it_says() {
    for list in lists() {
        let found = list.found().unwrap();
        let missing: Vec<_> = list
            .text
            .lines()
            .filter(|line| !found.lines().any(|other| other == *line))
            .collect();
        assert!(
            found == list.text,
            "run `cargo xtask lists`: {} does not have {missing:#?}",
            list.path
        );
    }
}

#[test]
fn the_pictures_of_the_guide_show_what_the_code_says() {
    let pictures = ordid_tests::pictures::pictures();
    for picture in &pictures {
        assert!(
            picture.found().unwrap() == picture.text,
            "run `cargo xtask docs`: {} is another picture now",
            picture.path
        );
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folder = folder.join(ordid_tests::pictures::FOLDER);
    for file in fs::read_dir(folder).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        assert!(
            pictures.iter().any(|picture| picture.path.ends_with(&name)),
            "nothing makes the picture {name}"
        );
        assert!(
            chapters().iter().any(|(_, text)| text.contains(&name)),
            "no chapter shows the picture {name}"
        );
    }
}

#[test]
fn the_guide_names_every_scheme() {
    let chapter = include_str!("../../docs/src/choose-a-key.md");
    let missing = missing(chapter);
    assert!(
        missing.is_empty(),
        "the table of docs/src/choose-a-key.md does not have {missing:?}: run `cargo xtask lists`"
    );
}

#[test]
fn security_counts_the_unknown_bits_of_each_scheme_as_the_catalogue_does() {
    let text = include_str!("../../SECURITY.md");
    let rows = text.lines().filter_map(|line| {
        let (bits, schemes) = line.strip_prefix("| ")?.split_once(" | ")?;
        Some((bits.parse::<u32>().ok()?, schemes))
    });
    let mut said: Vec<(&str, u32)> = rows
        .flat_map(|(bits, schemes)| {
            schemes
                .split('`')
                .skip(1)
                .step_by(2)
                .map(move |name| (name, bits))
        })
        .collect();
    let entries = ordid::scheme::catalogue::CATALOGUE.iter();
    let mut known: Vec<(&str, u32)> = entries.map(|it| (it.name, it.unknown_bits)).collect();
    said.sort_unstable();
    known.sort_unstable();
    assert_eq!(said, known);

    // The tables have the bits of the default number of buckets.
    let sentence = format!(
        "`uuid_v7_spread` has {} unknown bits with 16 buckets. Each doubling of the buckets takes one bit: \
         {} are left with 64 buckets, and {} with 256.",
        <UuidV7Spread<16> as Slotted>::RANDOM_BITS,
        <UuidV7Spread<64> as Slotted>::RANDOM_BITS,
        <UuidV7Spread<256> as Slotted>::RANDOM_BITS
    );
    for text in [text, include_str!("../../docs/src/choose-a-key.md")] {
        let words: Vec<&str> = text.split_whitespace().collect();
        assert!(words.join(" ").contains(&sentence), "{sentence}");
    }
}

/// Returns the chapters of the guide, each with its path below `docs/src`.
fn chapters() -> Vec<(String, String)> {
    fn below(folder: &Path, name: &str, found: &mut Vec<(String, String)>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = format!("{name}{}", path.file_name().unwrap().to_str().unwrap());
            if path.is_dir() {
                below(&path, &format!("{name}/"), found);
            } else if name.ends_with(".md") {
                found.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    let mut found = Vec::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src");
    below(&folder, "", &mut found);
    found
}

/// Returns what is written behind the marks that begin a block of code.
fn languages(text: &str) -> Vec<&str> {
    let marks = text
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("```"));
    marks.step_by(2).collect()
}

#[test]
fn every_rust_snippet_of_the_guide_is_a_doctest() {
    let lists = [
        include_str!("../src/lib.rs"),
        include_str!("../orms/src/lib.rs"),
    ];
    let mut snippets = 0;
    for (name, text) in chapters() {
        for language in languages(&text) {
            let is_rust = match language {
                "rust" | "rust,no_run" => true,
                // `tests/tests/toasty.rs` compares it with the code that it runs.
                "rs" if name == "start/toasty.md" => false,
                // `tests/tests/live/guide/snippets.rs` finds the SQL.
                "console" | "text" => false,
                "sql" | "sql,sql_server" | "sql,babelfish" | "sql,oracle" => false,
                other => panic!("{name}: a block of {other:?}: is it run?"),
            };
            let written = format!("docs/src/{name}\")]");
            assert!(
                !is_rust || lists.iter().any(|list| list.contains(&written)),
                "{name} has Rust: add it to `_documentation` in tests/src/lib.rs or tests/orms/src/lib.rs"
            );
            snippets += usize::from(is_rust);
        }
    }
    assert!(snippets > 40, "{snippets}");
}

#[test]
fn the_sessions_of_the_readme_are_those_of_the_command() {
    // A test of `ordid-cli` runs the sessions of its README.
    let (readme, command) = (
        include_str!("../../README.md"),
        include_str!("../../ordid-cli/README.md"),
    );
    let mut sessions = 0;
    for block in readme.split("```console\n").skip(1) {
        let block = block.split("```").next().unwrap();
        for session in block.split("$ ordid ").skip(1) {
            assert!(command.contains(&format!("$ ordid {session}")), "{session}");
            sessions += 1;
        }
    }
    assert!(sessions >= 2, "{sessions}");
}

/// The words that people search for in the documentation. A type of this name is found without an alias.
#[test]
fn search_words_lead_to_items() {
    fn sources(folder: &Path, found: &mut String) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                *found += &fs::read_to_string(path).unwrap();
            }
        }
    }
    let mut code = String::new();
    for package in ["ordid-core", "ordid-sql", "ordid-sqlx"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        sources(&folder.join(package).join("src"), &mut code);
    }
    for word in [
        "guid",
        "ulid",
        "snowflake",
        "sequential id",
        "comb",
        "bulk insert",
        "upsert",
        "sequence",
        "nextval",
        "autoincrement",
    ] {
        let is_found = code.lines().map(str::trim).any(|line| {
            let item = line.to_lowercase();
            let item = item
                .strip_prefix("pub enum ")
                .and_then(|it| it.strip_prefix(word));
            let has_name = item.is_some_and(|rest| !rest.starts_with(char::is_alphanumeric));
            has_name || line.starts_with("#[doc(alias") && line.contains(&format!("\"{word}\""))
        });
        assert!(is_found, "no item is found by the word {word:?}");
    }
}

/// Returns the code between two marks.
fn between<'a>(code: &'a str, begin: &str, end: &str) -> &'a str {
    let (_, code) = code.split_once(begin).expect(begin);
    code.split_once(end).expect(end).0
}

/// Returns the texts in a piece of code, with `..` for each value.
fn texts(code: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let code: Vec<_> = code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect();
    for (at, text) in code.join("\n").split('"').enumerate() {
        if at % 2 == 0 {
            continue;
        }
        let lines: Vec<_> = text.split("\\\n").map(str::trim_start).collect();
        let mut written = String::new();
        for (at, part) in lines.concat().split(['{', '}']).enumerate() {
            written += if at % 2 == 0 { part } else { ".." };
        }
        texts.push(written);
    }
    texts
}

/// The texts and functions are read from the source, so that a new error has to be in the index.
#[test]
fn the_index_of_errors_has_every_error() {
    let index = include_str!("../../docs/src/errors.md").replace('`', "");
    let flush = include_str!("../../ordid-sql/src/flush_error.rs");
    let core = include_str!("../../ordid-core/src/error.rs");
    let coordination = include_str!("../../ordid-core/src/coordination.rs");
    let mut expected = Vec::new();

    for source in [flush, core] {
        // What a user asks an error takes nothing else.
        let functions = source.split("pub fn ").skip(1);
        let functions = functions.filter_map(|it| it.split_once('('));
        let questions = functions.filter(|(_, rest)| rest.starts_with("&self) -> "));
        expected.extend(questions.map(|(name, _)| name.to_owned()));
    }
    let of_flush = between(
        include_str!("../../ordid-sql/src/flush_error/text.rs"),
        "fmt::Display for Kind<D> {",
        "\n}\n",
    );
    let of_core = between(core, "impl fmt::Display for Error {", "\n}\n");
    let of_leases = between(
        coordination,
        "impl fmt::Display for CoordinationFailure {",
        "\n}\n",
    );
    let failures = between(coordination, "pub enum CoordinationFailure {", "\n}\n");
    for text in [of_flush, of_core, of_leases].into_iter().flat_map(texts) {
        // A text is known by its beginning, and what is only put together of values has none.
        let begin: String = text.chars().take(40).collect();
        if begin.chars().filter(char::is_ascii_alphabetic).count() > 5 {
            expected.push(begin.replace('`', ""));
        }
    }
    let failures = failures.lines().map(str::trim);
    let failures = failures.filter(|line| !line.starts_with("///"));
    expected.extend(failures.filter_map(|line| line.strip_suffix(',').map(str::to_owned)));

    // Adapters ask these.
    let internal = ["failure", "refuses_a_row"];
    let missing: Vec<_> = expected
        .iter()
        .filter(|text| !internal.contains(&text.as_str()))
        .filter(|text| !index.contains(text.as_str()))
        .collect();
    assert!(expected.len() > 60, "{expected:?}");
    assert!(
        missing.is_empty(),
        "docs/src/errors.md does not have {missing:#?}"
    );
}

/// The lines that end the questions of the chapter "Choose a key".
#[allow(dead_code)]
mod decisions {
    use ordid::{KeyType, scheme::UuidMask, uuid::Uuid};

    static MASK: UuidMask = UuidMask::new(17, 4);

    macro_rules! lines {
        ($($name:ident: $raw:ident [$($option:tt)*];)+) => {
            pub(super) const COMPILED: &[&str] = &[$(stringify!($($option)*)),+];
            $(
                #[derive(KeyType)]
                #[ordid($($option)*)]
                struct $name($raw);
            )+
        };
    }

    lines! {
        AnyVersion: Uuid [accept = any_version, sqlx];
        Serial: i64 [scheme = snowflake, sqlx];
        SqlServer: Uuid [scheme = uuid_v8_sql_server, tiberius];
        Permuted: Uuid [scheme = uuid_v7, tiberius(sql_server = unique_identifier_permuted)];
        Bytes: Uuid [scheme = uuid_v7, tiberius(sql_server = binary16)];
        Spread: Uuid [scheme = uuid_v7_spread(buckets = 16), sqlx];
        SpreadNumber: i64 [scheme = snowflake_spread(buckets = 16), sqlx];
        Number: i64 [
            scheme = snowflake(epoch = "2026-01-01", years = 20, ids_per_second = 1_000), json = number, sqlx
        ];
        Counted: i64 [scheme = sequence, sqlx];
        Masked: Uuid [scheme = uuid_v7_unguessable, mask = MASK, sqlx];
        Unguessable: Uuid [scheme = uuid_v7_unguessable, sqlx];
        Random: Uuid [scheme = uuid_v4, sqlx(postgres = unordered(uuid))];
        Named: Uuid [scheme = uuid_v8_sha256, sqlx(postgres = unordered(uuid))];
        Default: Uuid [sqlx];
    }
}

#[test]
fn every_line_that_the_questions_end_in_compiles() {
    let chapter = include_str!("../../docs/src/choose-a-key.md");
    let questions = between(chapter, "## Six questions", "## Generators");
    let plain = |text: &str| text.split_whitespace().collect::<String>();
    let compiled: Vec<_> = decisions::COMPILED.iter().map(|it| plain(it)).collect();
    let written: Vec<_> = questions
        .split("`#[ordid(")
        .skip(1)
        .map(|it| plain(it.split(")]`").next().unwrap()))
        .collect();
    for line in &written {
        assert!(compiled.contains(line), "{line} is not compiled");
    }
    for line in &compiled {
        assert!(written.contains(line), "{line} is not in the chapter");
    }
}

/// What the table of engines beyond one machine says is what their profiles say.
#[test]
fn the_table_of_engines_has_what_their_profiles_have() {
    let text = include_str!("../../PLATFORM.md");
    let yes_or_no = |is_so| if is_so { "yes" } else { "no" };
    let own = |profile, engine: EngineProfile| (engine.name, profile, engine);
    for (title, name, engine) in [
        own("AURORA_DSQL", EngineProfile::AURORA_DSQL),
        own("COCKROACHDB", EngineProfile::COCKROACHDB),
        own("YUGABYTEDB", EngineProfile::YUGABYTEDB),
        own("CITUS", EngineProfile::CITUS),
        own("TIDB", EngineProfile::TIDB),
        own("VITESS", EngineProfile::VITESS),
        own("GALERA", EngineProfile::GALERA),
        own("GROUP_REPLICATION", EngineProfile::GROUP_REPLICATION),
        (
            "PostgreSQL behind Patroni; Aurora and RDS of PostgreSQL",
            "POSTGRES",
            EngineProfile::POSTGRES,
        ),
        (
            "Aurora and RDS of MySQL and MariaDB",
            "MYSQL",
            EngineProfile::MYSQL,
        ),
    ] {
        let takes = match (engine.max_transaction_rows, engine.max_transaction_bytes) {
            (Some(3_000), Some(0x50_0000)) => "3,000 rows, 5 MiB",
            (None, Some(50_000_000)) => "50 MB",
            (None, Some(75_000_000)) => "75 MB",
            (None, Some(0x4000_0000)) => "1 GiB",
            (None, None) => "any",
            other => panic!("{name}: how is {other:?} written?"),
        };
        let line = format!(
            "| {title} | `{name}` | {takes} | {} | {} | {} | {} | {} |",
            yes_or_no(engine.bulk),
            yes_or_no(engine.defer.is_some()),
            yes_or_no(engine.savepoints),
            yes_or_no(engine.temporary_tables),
            yes_or_no(engine.collations),
        );
        let found = text.lines().find(|it| it.starts_with(&line));
        let found = found.unwrap_or_else(|| panic!("PLATFORM.md does not have {line}"));
        let proof = found
            .strip_prefix(&line)
            .and_then(|it| it.split_once("]("))
            .expect(found);
        let page = proof.1.split_once("#proven)").expect(found).0;
        let page = fs::read_to_string(root().join(page)).expect(page);
        assert!(page.contains("\n## Proven\n"), "{found}");
    }
}

#[test]
fn each_profile_names_a_page_of_the_guide() {
    for engine in [
        EngineProfile::POSTGRES,
        EngineProfile::PGBOUNCER,
        EngineProfile::AURORA_DSQL,
        EngineProfile::COCKROACHDB,
        EngineProfile::YUGABYTEDB,
        EngineProfile::CITUS,
        EngineProfile::MYSQL,
        EngineProfile::TIDB,
        EngineProfile::VITESS,
        EngineProfile::GALERA,
        EngineProfile::GROUP_REPLICATION,
        EngineProfile::SQLITE,
        EngineProfile::SQL_SERVER,
        EngineProfile::BABELFISH,
        EngineProfile::ORACLE,
    ] {
        let page = engine.guide.split_once("/blob/main/").expect(engine.name).1;
        let page = fs::read_to_string(root().join(page)).expect(page);
        let title = page.lines().next().unwrap();
        let title = title.replace("Group Replication", "MySQL Group Replication");
        assert!(title.contains(engine.name), "{}: {title}", engine.guide);
    }
}

macro_rules! columns {
    ($($name:ident $column:ident: [$($raw:ident)+] $($dialect:ident)+;)+) => {
        [$(stringify!($name)),+]
    };
}

#[test]
fn the_matrix_names_every_column() {
    let columns = ordid_core::__for_each_column! { columns };
    let text = include_str!("../../PLATFORM.md");
    let missing: Vec<_> = columns
        .iter()
        .filter(|name| !text.contains(&format!("`{name}`")))
        .collect();
    assert!(
        missing.is_empty(),
        "run `cargo xtask conformance`: PLATFORM.md does not have the columns {missing:?}"
    );
}

/// A library that has columns for raw keys on a dialect; without an implementation, the test does not compile.
struct Library<D>(std::marker::PhantomData<D>);

trait Has<C, R> {}

impl<C: ordid_sqlx::SqlxColumn<sqlx::Postgres, R>, R: RawKey> Has<C, R>
    for Library<dialect::Postgres>
{
}
impl<C: ordid_sqlx::SqlxColumn<sqlx::MySql, R>, R: RawKey> Has<C, R> for Library<dialect::MySql> {}
impl<C: ordid_sqlx::SqlxColumn<sqlx::MySql, R>, R: RawKey> Has<C, R> for Library<dialect::MariaDb> {}
impl<C: ordid_sqlx::SqlxColumn<sqlx::Sqlite, R>, R: RawKey> Has<C, R> for Library<dialect::Sqlite> {}
impl<C: ordid_tiberius::TiberiusColumn<R>, R: RawKey> Has<C, R> for Library<dialect::SqlServer> {}
impl<C: ordid_tiberius::TiberiusColumn<R>, R: RawKey> Has<C, R> for Library<dialect::Babelfish> {}
impl<C: ordid_oracle::OracleColumn<R>, R: RawKey> Has<C, R> for Library<dialect::Oracle> {}

macro_rules! implemented {
    ($($name:ident $column:ident: $raws:tt $($dialect:ident)+;)+) => {
        [$($((stringify!($name), implemented!(@ $dialect $column $raws))),+),+]
    };
    (@ $dialect:ident $column:ident [$($raw:ident)+]) => {
        [$(has::<Library<dialect::$dialect>, column::$column, $raw>()),+].len()
    };
}

fn has<L: Has<C, R>, C, R>() {}

#[test]
fn a_library_of_each_dialect_has_every_column_of_the_list() {
    let columns = ordid_core::__for_each_column! { implemented };
    assert!(columns.iter().all(|(_, raw_keys)| *raw_keys > 0));
}
