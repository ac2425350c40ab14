//! The lists that are made of the catalogue of schemes or of the list of columns are what they say.

use ordid_core::{
    key::{Key192, ObjectId, PushId, RawKey},
    storage::{column, dialect},
    uuid::Uuid,
};
use ordid_sql::EngineProfile;
use ordid_tests::lists::{lists, missing};

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
fn the_readme_names_every_scheme() {
    let readme = include_str!("../../README.md");
    let missing = missing(readme);
    assert!(
        missing.is_empty(),
        "the table \"Pick your key\" of README.md does not have {missing:?}: \
         `cargo run -p catalogue -- --markdown` prints it"
    );
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
            (Some(3_000), Some(0xa0_0000)) => "3,000 rows, 10 MiB",
            (None, Some(100_000_000)) => "100 MB",
            (None, Some(75_000_000)) => "75 MB",
            (None, Some(0x4000_0000)) => "1 GiB",
            (None, None) => "any",
            other => panic!("{name}: how is {other:?} written?"),
        };
        let line = format!(
            "| {title} | `{name}` | {takes} | {} | {} | {} |",
            yes_or_no(engine.bulk),
            yes_or_no(engine.defer.is_some()),
            yes_or_no(engine.temporary_tables),
        );
        assert!(
            text.lines().any(|it| it.starts_with(&line)),
            "PLATFORM.md does not have {line}"
        );
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
