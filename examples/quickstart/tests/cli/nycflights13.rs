//! What is in the tables is what is in the files: the sums of the columns, and `ORDER BY id` in the
//! order of the lines. Of the slice, and of all of it where `ORDID_TEST_NYCFLIGHTS13` says where it is.

use std::{
    env, fs,
    io::Read,
    path::{Path, PathBuf},
};

use libtest_mimic::{Completion, Trial};

use crate::{
    Place, Result, check, contains, query_mysql, query_postgres, scratch, sibling, sqlite,
};

const FOLDER: &str = "ORDID_TEST_NYCFLIGHTS13";

/// The columns that are numbers.
const TABLES: [(&str, &str); 4] = [
    ("airlines", ""),
    ("airports", "alt tz"),
    ("planes", "year engines seats speed"),
    (
        "flights",
        "year month day dep_time sched_dep_time dep_delay arr_time sched_arr_time arr_delay \
         flight air_time distance hour minute",
    ),
];

/// What `ORDER BY id` must give in the order of the lines.
const ORDERED: [(&str, &str); 3] = [
    ("airports", "alt"),
    ("planes", "seats"),
    ("flights", "flight"),
];

pub(crate) fn trials(trials: &mut Vec<Trial>) {
    trials.push(all_of_it("sqlite", |folder, _| {
        let place = Place::new()?;
        load(&place, folder, &["--file", "all.sqlite"])?;
        let file = place.path().join("all.sqlite");
        agrees(folder, "INTEGER", |sql| sqlite(&file, sql))
    }));
    trials.push(all_of_it("postgres", |folder, admin| {
        let name = scratch();
        query_postgres(admin, &format!("CREATE DATABASE {name}"))?;
        let url = sibling(admin, None, &name);
        let loaded = load(&Place::new()?, folder, &["--database", &url]);
        let tested =
            loaded.and_then(|()| agrees(folder, "BIGINT", |sql| query_postgres(&url, sql)));
        query_postgres(admin, &format!("DROP DATABASE {name} WITH (FORCE)"))?;
        tested
    }));
    for server in ["mariadb", "mysql"] {
        trials.push(all_of_it(server, |folder, admin| {
            let name = scratch();
            query_mysql(admin, &format!("CREATE DATABASE {name}"))?;
            let url = sibling(admin, None, &name);
            let loaded = load(&Place::new()?, folder, &["--database", &url]);
            let tested =
                loaded.and_then(|()| agrees(folder, "SIGNED", |sql| query_mysql(&url, sql)));
            query_mysql(admin, &format!("DROP DATABASE {name}"))?;
            tested
        }));
    }
}

/// A test of minutes: ignored, with the reason, unless it is asked for.
fn all_of_it(name: &'static str, test: fn(&Path, &str) -> Result) -> Trial {
    let trial = Trial::ignorable_test(format!("{name}_gets_all_of_nycflights13"), move || {
        if env::var_os("ORDID_TEST_SOAK").is_none_or(|value| value != "1") {
            return Ok(Completion::ignored_with("`cargo xtask soak` runs it"));
        }
        let Some(folder) = env::var_os(FOLDER) else {
            let reason = format!("set {FOLDER} to the folder of the data to run");
            return Ok(Completion::ignored_with(reason));
        };
        let folder = PathBuf::from(folder);
        if name == "sqlite" {
            test(&folder, "")?;
            return Ok(Completion::Completed);
        }
        let access = ordid_harness::access(name)?;
        if let ordid_harness::Access::Skip(reason) = &access {
            return Ok(Completion::ignored_with(reason));
        }
        test(&folder, &access.url().unwrap_or_default())?;
        Ok(Completion::Completed)
    });
    trial.with_kind("long")
}

/// Runs the program on all of it.
fn load(place: &Place, folder: &Path, target: &[&str]) -> Result {
    let folder = fs::canonicalize(folder)?;
    let folder = folder.to_str().ok_or("a folder whose name is no text")?;
    let report = place.succeed(&[&["--data", folder], target].concat())?;
    contains(
        &report,
        &[
            "\nflights     336,776 ",
            "\nall         341,572 ",
            "\nORDER BY id equals insertion order: yes (341,572 rows)\n",
        ],
    )
}

/// Holds the tables against the files, whose numbers are read anew here. `integer` is what a number is
/// cast to, so that all columns and sums have one type.
pub(crate) fn agrees(
    folder: &Path,
    integer: &str,
    query: impl Fn(&str) -> Result<Vec<i64>>,
) -> Result {
    for (table, columns) in TABLES {
        let file = Lines::read(folder, table)?;
        let count = i64::try_from(file.lines.len())?;
        assert_eq!(query(&format!("SELECT COUNT(*) FROM {table}"))?, [count]);
        for column in columns.split_whitespace() {
            let numbers: Vec<i64> = file.numbers(column)?.into_iter().flatten().collect();
            let expected = [numbers.iter().sum(), i64::try_from(numbers.len())?];
            let sum = query(&format!(
                "SELECT CAST(SUM({column}) AS {integer}) FROM {table}"
            ))?;
            let there = query(&format!("SELECT COUNT({column}) FROM {table}"))?;
            check([sum[0], there[0]] == expected, || {
                format!("{table}.{column}: sum {sum:?} of {there:?}, expected {expected:?}")
            })?;
        }
        for (_, column) in ORDERED.iter().filter(|(it, _)| *it == table) {
            let sql = format!("SELECT CAST({column} AS {integer}) FROM {table} ORDER BY id");
            let expected: Vec<i64> = file.numbers(column)?.into_iter().flatten().collect();
            check(query(&sql)? == expected, || {
                format!("{table} ORDER BY id is not the order of the lines")
            })?;
        }
    }
    Ok(())
}

/// A file of the data.
struct Lines {
    header: csv::StringRecord,
    lines: Vec<csv::StringRecord>,
}

impl Lines {
    fn read(folder: &Path, table: &str) -> Result<Self> {
        let path = folder.join(format!("{table}.csv"));
        let mut text = String::new();
        if path.exists() {
            text = fs::read_to_string(path)?;
        } else {
            let archive = fs::File::open(folder.join(format!("{table}.csv.zip")))?;
            let mut archive = zip::ZipArchive::new(archive)?;
            archive.by_index(0)?.read_to_string(&mut text)?;
        }
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        Ok(Self {
            header: reader.headers()?.clone(),
            lines: reader.records().collect::<std::result::Result<_, _>>()?,
        })
    }

    /// Returns a column, in which `NA` is nothing.
    fn numbers(&self, column: &str) -> Result<Vec<Option<i64>>> {
        let position = self.header.iter().position(|it| it == column);
        let position = position.ok_or_else(|| format!("no column {column}"))?;
        let cells = self.lines.iter().map(|line| match &line[position] {
            "" | "NA" => Ok(None),
            number => Ok(Some(number.parse()?)),
        });
        cells.collect()
    }
}
