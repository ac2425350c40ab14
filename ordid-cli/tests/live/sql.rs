//! The functions of `ordid sql`, held against the library: installed by its script, on thousands of keys of each scheme.

use std::io::Write as _;

use libtest_mimic::{Failed, Trial};
use ordid_core::{
    clock::Timestamp,
    layout::mariadb_uuid_is_refused,
    scheme::catalogue::{self, AnyColumn, AnyKey, CATALOGUE, Entry, RawForm},
};
use serde_json::Value;
use sqlx::{
    AssertSqlSafe, Connection as _, MySqlConnection, PgConnection, Row as _, SqliteConnection,
};

use crate::place::{Result, Servers, block_on, ordid, printed};

pub(crate) fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    const AGREES: &str = "functions_of_keys_and_times_agree_with_the_library";
    trials.push(servers.trial("postgres", AGREES, |url| {
        agree(Live::postgres(url)?, "postgres")
    }));
    trials.push(servers.trial("mariadb", AGREES, |url| agree(Live::mysql(url)?, "mariadb")));
    trials.push(servers.trial("mysql", AGREES, |url| agree(Live::mysql(url)?, "mysql")));
    trials.push(Trial::test(format!("{AGREES} [sqlite]"), || {
        agree(Live::sqlite()?, "sqlite")
    }));
    const STRAYS: &str = "what_is_no_key_of_the_column_has_no_time";
    trials.push(servers.trial("postgres", STRAYS, |url| {
        strays(Live::postgres(url)?, "postgres")
    }));
    trials.push(servers.trial("mariadb", STRAYS, |url| {
        strays(Live::mysql(url)?, "mariadb")
    }));
    trials.push(servers.trial("mysql", STRAYS, |url| strays(Live::mysql(url)?, "mysql")));
    trials.push(Trial::test(format!("{STRAYS} [sqlite]"), || {
        strays(Live::sqlite()?, "sqlite")
    }));
    trials.push(servers.trial(
        "postgres",
        "the_time_of_a_text_does_not_depend_on_its_collation",
        collations,
    ));
    const BETWEEN: &str = "a_time_between_two_milliseconds_is_in_the_first";
    trials.push(servers.trial("postgres", BETWEEN, |url| {
        between(Live::postgres(url)?, "postgres")
    }));
    trials.push(servers.trial("mariadb", BETWEEN, |url| {
        between(Live::mysql(url)?, "mariadb")
    }));
    trials.push(servers.trial("mysql", BETWEEN, |url| between(Live::mysql(url)?, "mysql")));
    trials.push(Trial::test(format!("{BETWEEN} [sqlite]"), || {
        between(Live::sqlite()?, "sqlite")
    }));
    trials.push(servers.trial(
        "postgres",
        "a_script_of_functions_is_installed_twice_and_dropped_by_psql",
        |url| scripts(url, "psql", "postgres"),
    ));
    trials.push(servers.trial(
        "mariadb",
        "a_script_of_functions_is_installed_twice_and_dropped_by_its_client",
        |url| scripts(url, "mariadb", "mariadb"),
    ));
    trials.push(servers.trial(
        "mysql",
        "a_script_of_functions_is_installed_twice_and_dropped_by_its_client",
        |url| scripts(url, "mariadb", "mysql"),
    ));
    trials.push(servers.trial(
        "postgres",
        "a_query_by_the_lowest_keys_uses_the_index_and_prunes_partitions",
        explains,
    ));
    trials.push(servers.trial(
        "mariadb",
        "a_query_by_the_lowest_keys_uses_the_index",
        |url| uses_index(url, "mariadb"),
    ));
    trials.push(servers.trial(
        "mysql",
        "a_query_by_variables_uses_the_index_and_one_by_functions_does_not",
        |url| uses_index(url, "mysql"),
    ));
    trials.push(servers.trial(
        "postgres",
        "functions_serve_an_index_whatever_the_search_path",
        indexes,
    ));
}

/// Keys of each scheme, and times of each lowest and highest key.
const KEYS: usize = 1_000;
const TIMES: usize = 200;

/// How many times as many the long form of the tests takes.
fn scale() -> usize {
    match std::env::var("ORDID_TEST_SOAK").as_deref() {
        Ok("1") => 10,
        _ => 1,
    }
}

/// A connection.
pub(crate) enum Live {
    Postgres(tokio::runtime::Runtime, PgConnection),
    MySql(tokio::runtime::Runtime, MySqlConnection, bool),
    Sqlite(tokio::runtime::Runtime, SqliteConnection),
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    Ok(runtime.enable_all().build()?)
}

impl Live {
    pub(crate) fn postgres(url: &str) -> Result<Self> {
        let runtime = runtime()?;
        let connection = runtime.block_on(PgConnection::connect(url))?;
        Ok(Self::Postgres(runtime, connection))
    }

    pub(crate) fn mysql(url: &str) -> Result<Self> {
        let runtime = runtime()?;
        let mut connection = runtime.block_on(MySqlConnection::connect(url))?;
        let version = "SELECT version() LIKE '%MariaDB%'";
        let version = sqlx::query_scalar(version).fetch_one(&mut connection);
        let is_mariadb: i64 = runtime.block_on(version)?;
        Ok(Self::MySql(runtime, connection, is_mariadb == 1))
    }

    pub(crate) fn sqlite() -> Result<Self> {
        let runtime = runtime()?;
        let connection = runtime.block_on(SqliteConnection::connect("sqlite::memory:"))?;
        Ok(Self::Sqlite(runtime, connection))
    }

    pub(crate) fn execute(&mut self, sql: &str) -> Result {
        let sql = AssertSqlSafe(sql);
        match self {
            Self::Postgres(runtime, it) => {
                runtime.block_on(sqlx::raw_sql(sql).execute(it))?;
            }
            Self::MySql(runtime, it, _) => {
                runtime.block_on(sqlx::raw_sql(sql).execute(it))?;
            }
            Self::Sqlite(runtime, it) => {
                runtime.block_on(sqlx::raw_sql(sql).execute(it))?;
            }
        }
        Ok(())
    }

    /// Returns the integers of a column that may be NULL.
    pub(crate) fn integers(&mut self, sql: &str) -> Result<Vec<Option<i64>>> {
        let sql = AssertSqlSafe(sql);
        Ok(match self {
            Self::Postgres(runtime, it) => {
                runtime.block_on(sqlx::query_scalar(sql).fetch_all(it))?
            }
            // As text: MySQL wants some prepared statements to be prepared again.
            Self::MySql(runtime, it, _) => {
                let rows = runtime.block_on(sqlx::raw_sql(sql).fetch_all(it))?;
                let first = rows.iter().map(|row| row.try_get(0));
                first.collect::<std::result::Result<_, _>>()?
            }
            Self::Sqlite(runtime, it) => runtime.block_on(sqlx::query_scalar(sql).fetch_all(it))?,
        })
    }

    /// Returns a table of rows, in front of a query of it.
    fn given(&self, columns: &str, rows: &[String]) -> String {
        let row = match self {
            Self::MySql(_, _, false) => "ROW",
            _ => "",
        };
        let rows: Vec<String> = rows.iter().map(|it| format!("{row}{it}")).collect();
        format!("WITH given ({columns}) AS (VALUES {})", rows.join(", "))
    }

    fn dialect(&self, engine: &str) -> &'static str {
        match (self, engine) {
            (Self::Postgres(..), _) => "PostgreSQL",
            (Self::MySql(..), "mariadb") => "MariaDB",
            (Self::MySql(..), _) => "MySQL",
            (Self::Sqlite(..), _) => "SQLite",
        }
    }

    /// Returns the times of values, in microseconds since 1970, as an expression.
    fn micros(&self, time: &str) -> String {
        match self {
            Self::Postgres(..) => format!("(extract(epoch FROM {time}) * 1000000)::bigint"),
            Self::MySql(..) => {
                format!("TIMESTAMPDIFF(MICROSECOND, TIMESTAMP '1970-01-01 00:00:00', {time})")
            }
            Self::Sqlite(..) => format!(
                "(SELECT (CAST(strftime('%s', t) AS INTEGER) * 1000 + substr(t, 21, 3)) * 1000 FROM (SELECT {time} AS t))"
            ),
        }
    }

    /// Returns a time as it is written in SQL; it has a year of four digits, unless this is PostgreSQL.
    fn time(&self, millis: u64) -> String {
        let text = Timestamp::from_unix_millis(millis)
            .expect("a time")
            .to_string();
        let text = text.trim_start_matches('+');
        match self {
            Self::Postgres(..) => format!("'{text}'::timestamptz"),
            Self::MySql(..) => {
                let text = text.replace('T', " ").replace('Z', "");
                format!("TIMESTAMP '{text}'")
            }
            Self::Sqlite(..) => format!("'{}'", text.replace('T', " ").replace('Z', "")),
        }
    }

    /// The unit of the times that it returns, in microseconds, of a scheme with parts of a millisecond.
    fn fine(&self) -> i128 {
        match self {
            Self::Sqlite(..) => 1_000,
            _ => 1,
        }
    }

    fn last_micros(&self) -> i128 {
        match self {
            Self::Postgres(..) => i128::from(Timestamp::MAX.as_unix_millis()) * 1_000 + 999,
            _ => 253_402_300_799_999_999,
        }
    }
}

/// A generator of numbers, as random as these tests need.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// Returns the first and the last millisecond of which a scheme has keys, if it has ranges.
fn ends(entry: &'static Entry) -> Option<(u64, u64)> {
    let has = |millis: u64| {
        let time = Timestamp::from_unix_millis(millis).ok()?;
        Some(entry.ranges(time..time)?.is_ok())
    };
    // All have one in 2024, before the end of Baidu's in November.
    let inside = 1_706_000_000_000;
    let inside = match entry.name {
        "sonyflake_v2" => 1_800_000_000_000,
        _ => inside,
    };
    has(inside)?;
    let (mut first, mut low) = (inside, 0);
    while low < first {
        let middle = low + (first - low) / 2;
        match has(middle) {
            Some(true) => first = middle,
            _ => low = middle + 1,
        }
    }
    let (mut last, mut high) = (inside, 1 << 48);
    while last + 1 < high {
        let middle = last + (high - last) / 2;
        match has(middle) {
            Some(true) => last = middle,
            _ => high = middle,
        }
    }
    Some((first, last))
}

/// Returns the lowest and the highest keys of a time, one of each for each bucket.
fn bounds(entry: &'static Entry, millis: u64) -> (Vec<AnyKey>, Vec<AnyKey>) {
    let time = Timestamp::from_unix_millis(millis).expect("a time");
    let lowest = entry.ranges(time..time).expect("it has ranges");
    let lowest = lowest.expect("a time of the layout").into_iter();
    let highest = entry.highest_at(time).expect("it has ranges");
    (
        lowest.map(|range| range.start).collect(),
        highest.expect("a time of the layout"),
    )
}

/// A raw key, and its key where it is one of the scheme.
type Candidate = (Vec<u8>, Option<AnyKey>);

/// Returns keys of all times, and values that may be of another scheme.
fn candidates(entry: &'static Entry, numbers: &mut Numbers, count: usize) -> Vec<Candidate> {
    let length = match entry.raw() {
        RawForm::I64 | RawForm::U64 => 8,
        RawForm::Bytes12 => 12,
        RawForm::Bytes15 => 15,
        RawForm::Bytes24 => 24,
        _ => 16,
    };
    let mut all: Vec<Vec<u8>> = vec![vec![0; length], vec![0xff; length]];
    let random = |numbers: &mut Numbers| -> Vec<u8> {
        let bytes = std::iter::repeat_with(|| numbers.next().to_be_bytes());
        bytes.flatten().take(length).collect()
    };
    let template = entry.make().and_then(std::result::Result::ok);
    let template = template.and_then(|made| entry.parse(None, &made.text).ok());
    let ends = ends(entry);
    while all.len() < count {
        let bits = random(numbers);
        match (ends, &template, numbers.next() % 4) {
            // Some bits of a fresh key turned round: most are of another scheme.
            (None, Some(key), _) | (_, Some(key), 0) => {
                let mask = random(numbers);
                let mask = mask.iter().zip(random(numbers)).zip(random(numbers));
                let mask = mask.map(|((a, b), c)| a & b & c);
                let bytes = key.as_bytes().iter().zip(mask);
                all.push(bytes.map(|(byte, mask)| byte ^ mask).collect());
            }
            // A key of a time: what is below the highest and above the lowest may be anything.
            (Some((first, last)), _, 1..=3) => {
                let span = last - first + 1;
                let millis = match numbers.next() % 8 {
                    0 => first + numbers.next() % 3,
                    1 => last - numbers.next() % 3,
                    2 => 1_790_000_000_000.clamp(first, last) - numbers.next() % 86_400_000,
                    _ => first + numbers.next() % span,
                };
                let (lowest, highest) = bounds(entry, millis.clamp(first, last));
                let number = usize::try_from(numbers.next()).unwrap_or(7) % lowest.len();
                let ends = lowest[number]
                    .as_bytes()
                    .iter()
                    .zip(highest[number].as_bytes());
                all.push(
                    ends.zip(bits)
                        .map(|((low, high), bits)| {
                            low & high | (low ^ high) & (bits & high | !bits & low)
                        })
                        .collect(),
                );
            }
            _ => all.push(bits),
        }
    }
    all.into_iter()
        .map(|bytes| {
            let key = entry.key_of(&bytes).ok();
            (bytes, key)
        })
        .collect()
}

/// Returns a scheme of the same raw key, of which each value is one.
fn any_value(raw: RawForm) -> &'static Entry {
    let name = match raw {
        RawForm::I64 => "sequence",
        RawForm::U64 => "uuid_short",
        RawForm::Bytes12 => "object_id",
        RawForm::Bytes15 => "push_id",
        RawForm::Bytes24 => "ordered_text_32",
        _ => "ulid",
    };
    catalogue::find(name).expect("a scheme")
}

/// Returns a value as the column's SQL has it; none that the column does not take.
fn literal(column: &AnyColumn, bytes: &[u8]) -> Option<String> {
    if column.name == "mariadb_uuid" && mariadb_uuid_is_refused(bytes.try_into().ok()?) {
        return None;
    }
    let key = any_value(column.raw).key_of(bytes).ok()?;
    column.literal(&key).ok()
}

fn text<'a>(function: &'a Value, name: &str) -> &'a str {
    function[name].as_str().unwrap_or_default()
}

fn agree(mut live: Live, engine: &str) -> Result {
    let functions: Vec<Value> = serde_json::from_str(&printed(&["sql", engine, "--json"], 0)?)?;
    let is_sqlite = engine == "sqlite";
    if !is_sqlite {
        for function in &functions {
            let sql = text(function, "create_sql");
            live.execute(sql)
                .map_err(|error| Failed::from(format!("{sql}: {error:?}")))?;
        }
    }
    // Each scheme in each column of the engine.
    let expected: usize = CATALOGUE
        .iter()
        .filter(|entry| functions.iter().any(|it| text(it, "scheme") == entry.name))
        .map(|entry| {
            let columns = entry.columns().into_iter();
            let own = columns.filter(|column| column.dialect == live.dialect(engine));
            let bounded =
                |column: &AnyColumn| column.keeps_order_of(entry) && ends(entry).is_some();
            own.map(|column| if bounded(&column) { 3 } else { 1 })
                .sum::<usize>()
        })
        .sum();
    assert_eq!(functions.len(), expected);
    let mut numbers = Numbers(23);
    let mut checked = 0;
    for entry in CATALOGUE {
        let own = || {
            functions
                .iter()
                .filter(|it| text(it, "scheme") == entry.name)
        };
        if own().next().is_none() {
            continue;
        }
        let candidates = candidates(entry, &mut numbers, KEYS * scale());
        let of_scheme = candidates.iter().filter(|(_, key)| key.is_some()).count();
        assert!(of_scheme > KEYS / 4, "{}: {of_scheme} keys", entry.name);
        for function in own() {
            let column = entry.columns().into_iter().find(|column| {
                column.dialect == live.dialect(engine) && column.name == text(function, "column")
            });
            let column = column.ok_or("a column of the engine")?;
            let outcome = match text(function, "returns") {
                "time" => times(&mut live, function, entry, &column, &candidates),
                _ => keys(&mut live, function, entry, &column, &mut numbers),
            };
            checked += outcome
                .map_err(|error| Failed::from(format!("{}: {error:?}", text(function, "name"))))?;
        }
    }
    assert!(checked > 50_000, "{checked}");
    Ok(())
}

/// Returns the call of a function, or its expression over columns of these names.
fn call(live: &Live, function: &Value) -> String {
    let name = text(function, "name");
    let moment = match (text(function, "returns"), function["has_bucket"] == true) {
        ("time", _) => "id",
        (_, false) => "moment",
        _ => "moment, bucket",
    };
    match live {
        Live::Sqlite(..) => text(function, "create_sql").to_owned(),
        _ => format!("{name}({moment})"),
    }
}

/// Holds the time of each value against the library's.
fn times(
    live: &mut Live,
    function: &Value,
    entry: &'static Entry,
    column: &AnyColumn,
    candidates: &[Candidate],
) -> Result<usize> {
    let rows: Vec<_> = candidates
        .iter()
        .filter_map(|(bytes, key)| Some((literal(column, bytes)?, bytes, key)))
        .collect();
    let mut expected = Vec::new();
    for (_, _, key) in &rows {
        let moment = key
            .as_ref()
            .and_then(AnyKey::inspect)
            .and_then(|it| it.moment);
        expected.push(moment.and_then(|moment| {
            let unit = if moment.tick_nanos < 1_000_000 || entry.name.starts_with("comb_") {
                live.fine()
            } else {
                1_000
            };
            let unit = if entry.name == "uuid_v7_sub_millis" {
                1_000
            } else {
                unit
            };
            let micros = moment.unix_nanos.div_euclid(1_000 * unit) * unit;
            let micros = (micros <= live.last_micros()).then_some(micros)?;
            i64::try_from(micros).ok()
        }));
    }
    let micros = live.micros(&call(live, function));
    let mut found = Vec::new();
    for part in rows.chunks(500) {
        let values: Vec<String> = part
            .iter()
            .enumerate()
            .map(|(number, (literal, ..))| format!("({number}, {literal})"))
            .collect();
        let given = live.given("n, id", &values);
        let sql = format!("{given} SELECT {micros} FROM given ORDER BY n");
        found.extend(live.integers(&sql)?);
    }
    for (((literal, _, _), found), expected) in rows.iter().zip(&found).zip(&expected) {
        if found != expected {
            return Err(format!("{literal}: {found:?}, expected {expected:?}").into());
        }
    }
    assert!(found.len() == expected.len() && found.iter().flatten().count() > KEYS / 6);
    let sql = format!("SELECT {micros} FROM (SELECT NULL AS id) AS given");
    assert_eq!(
        live.integers(&sql.replace("NULL AS id", &null(live, column)))?,
        [None]
    );
    Ok(found.len())
}

/// Returns NULL of the column's type.
fn null(live: &Live, column: &AnyColumn) -> String {
    match live {
        Live::Postgres(..) => {
            let sql_type = column.sql_type.split(' ').next().unwrap_or_default();
            format!("NULL::{sql_type} AS id")
        }
        _ => "NULL AS id".to_owned(),
    }
}

/// Holds the lowest or the highest key of many times against the library's.
fn keys(
    live: &mut Live,
    function: &Value,
    entry: &'static Entry,
    column: &AnyColumn,
    numbers: &mut Numbers,
) -> Result<usize> {
    let is_highest = text(function, "returns") == "highest";
    let (first, last) = ends(entry).ok_or("a scheme with ranges")?;
    let end = u64::try_from(live.last_micros() / 1_000)?.min(last);
    let mut times = vec![first, first + 1, first + 9, end, end - 1, end - 9];
    times.extend((0..TIMES * scale()).map(|_| first + numbers.next() % (end - first + 1)));
    let has_bucket = function["has_bucket"] == true;
    let call = call(live, function);
    let mut rows = Vec::new();
    for millis in times {
        let (lowest, highest) = bounds(entry, millis);
        let keys = if is_highest { highest } else { lowest };
        assert_eq!(keys.len() > 1, has_bucket);
        let bucket = usize::try_from(numbers.next() % 16)? % keys.len();
        let Some(literal) = literal(column, keys[bucket].as_bytes()) else {
            continue;
        };
        rows.push(format!("({}, {bucket}, {literal})", live.time(millis)));
    }
    let differs = match live {
        Live::Postgres(..) => format!("{call} IS DISTINCT FROM expected"),
        Live::MySql(..) => format!("NOT ({call} <=> expected)"),
        Live::Sqlite(..) => format!("{call} IS NOT expected"),
    };
    for part in rows.chunks(500) {
        let mut count = |rows: &[String]| {
            let given = live.given("moment, bucket, expected", rows);
            let one = integer(live);
            live.integers(&format!(
                "{given} SELECT CAST(count(*) AS {one}) FROM given WHERE {differs}"
            ))
        };
        let wrong = count(part)?;
        for row in part.iter().take_while(|_| wrong != [Some(0)]) {
            if count(std::slice::from_ref(row))? != [Some(0)] {
                return Err(format!("{row}: {wrong:?} of {} differ", part.len()).into());
            }
        }
    }
    // NULL, the times just outside, and a bucket that there is not.
    let null = match live {
        Live::Postgres(..) => "SELECT NULL::timestamptz AS moment, 0 AS bucket",
        _ => "SELECT NULL AS moment, 0 AS bucket",
    };
    let one = format!(
        "CASE WHEN {call} IS NULL THEN CAST(1 AS {}) END",
        integer(live)
    );
    let sql = format!("SELECT {one} FROM ({null}) AS given");
    assert_eq!(live.integers(&sql)?, [Some(1)]);
    let mut outside = Vec::new();
    if first > 0 {
        outside.push(format!(
            "SELECT {} AS moment, 0 AS bucket",
            live.time(first - 1)
        ));
    } else {
        let before = live
            .time(0)
            .replace("1970-01-01", "1969-12-31")
            .replace("00:00:00.000", "23:59:59.999");
        outside.push(format!("SELECT {before} AS moment, 0 AS bucket"));
    }
    if end == last && last < Timestamp::MAX.as_unix_millis() {
        outside.push(format!(
            "SELECT {} AS moment, 0 AS bucket",
            live.time(last + 1)
        ));
    }
    if has_bucket {
        outside.push(format!("SELECT {} AS moment, 16 AS bucket", live.time(end)));
        outside.push(format!("SELECT {} AS moment, -1 AS bucket", live.time(end)));
    }
    for row in outside {
        let sql = format!("SELECT {one} FROM ({row}) AS given");
        match live.integers(&sql) {
            Ok(found) => return Err(format!("{row} gives {found:?}, expected an error").into()),
            Err(error) => {
                let text = error.message().unwrap_or_default();
                let is_ours = text.contains("does not fit")
                    || text.contains("the bucket is not 0 to 15")
                    || text.contains("integer overflow");
                if !is_ours {
                    return Err(format!("{row}: {text}").into());
                }
            }
        }
    }
    Ok(rows.len())
}

fn integer(live: &Live) -> &'static str {
    match live {
        Live::Postgres(..) => "bigint",
        Live::MySql(..) => "SIGNED",
        Live::Sqlite(..) => "INTEGER",
    }
}

/// Returns values that look like a literal of the column and are no key: another character, length or case.
fn strays_of(live: &Live, column: &AnyColumn, literal: &str) -> Vec<String> {
    let first = literal.find('\'').map_or(0, |at| at + 1);
    let last = literal.rfind('\'').unwrap_or(literal.len());
    let (before, key, behind) = (&literal[..first], &literal[first..last], &literal[last..]);
    let of = |key: &str| format!("{before}{key}{behind}");
    if !column.is_text() {
        let mut strays = vec![of(&key[..key.len() - 2]), of(&format!("{key}00"))];
        if !matches!(live, Live::Postgres(..)) {
            strays.push("X''".to_owned());
        }
        if matches!(live, Live::Sqlite(..)) {
            strays.extend(["'16 characters are'".to_owned(), "7".to_owned()]);
        }
        return strays;
    }
    let mut strays = vec![String::new(), key[1..].to_owned(), key.replace('-', "")];
    strays.retain(|stray| stray != key);
    for end in ["0", " ", "\n", "é"] {
        strays.push(format!("{key}{end}"));
    }
    strays.push(format!(" {key}"));
    for (at, character) in (0..key.len()).zip(["!", " ", "é", "%", "\n"].into_iter().cycle()) {
        strays.push(format!("{}{character}{}", &key[..at], &key[at + 1..]));
    }
    if matches!(column.name, "char26" | "char36") || key.len() == 36 || key.len() == 24 {
        for other in [key.to_lowercase(), key.to_uppercase()] {
            if other != key {
                strays.push(other);
            }
        }
    }
    let mut strays: Vec<String> = strays.iter().map(|key| of(key)).collect();
    if matches!(live, Live::Sqlite(..)) {
        strays.push(format!("CAST({literal} AS BLOB)"));
        strays.push(format!("{literal} || char(0) || 'more'"));
        strays.push("7".to_owned());
    }
    strays
}

/// Asks for the times of values that are no keys.
fn strays(mut live: Live, engine: &str) -> Result {
    let functions: Vec<Value> = serde_json::from_str(&printed(&["sql", engine, "--json"], 0)?)?;
    let mut checked = 0;
    let mut wrong = Vec::new();
    for function in functions.iter().filter(|it| text(it, "returns") == "time") {
        let scheme = text(function, "scheme");
        let entry = catalogue::find(scheme).ok_or("a scheme")?;
        let column = entry.columns().into_iter().find(|column| {
            column.dialect == live.dialect(engine) && column.name == text(function, "column")
        });
        let column = column.ok_or("a column of the engine")?;
        // A key of a time that the engine has, if the scheme has ranges.
        let bytes = match ends(entry) {
            Some((first, last)) => {
                let millis = 1_760_000_000_000.clamp(first, last);
                bounds(entry, millis).1[0].as_bytes().to_vec()
            }
            None => match entry.make() {
                Some(Ok(made)) => entry.parse(None, &made.text)?.as_bytes().to_vec(),
                _ => continue,
            },
        };
        let Some(key) = literal(&column, &bytes) else {
            continue;
        };
        let is_number = matches!(column.raw, RawForm::I64 | RawForm::U64);
        let strays = match (&live, is_number) {
            (Live::Sqlite(..), true) => vec!["'abc'".to_owned(), format!("CAST({key} AS TEXT)")],
            (_, true) => continue,
            // A type of the engine's own takes nothing but UUIDs.
            _ if !key.contains('\'') || column.name.contains("uuid") => continue,
            _ => strays_of(&live, &column, &key),
        };
        if !matches!(live, Live::Sqlite(..)) {
            live.execute(text(function, "create_sql"))?;
        }
        let call = call(&live, function);
        let one = integer(&live);
        let mut has_time = |value: &str| -> Result<bool> {
            let sql = format!(
                "SELECT CAST(CASE WHEN {call} IS NULL THEN 0 ELSE 1 END AS {one}) FROM (SELECT {value} AS id) AS given"
            );
            let found = live.integers(&sql);
            let found = found.map_err(|error| Failed::from(format!("{value}: {error:?}")))?;
            Ok(found == [Some(1)])
        };
        assert!(has_time(&key)?, "{}: {key}", text(function, "name"));
        for stray in strays {
            checked += 1;
            match has_time(&stray) {
                Ok(false) => {}
                Ok(true) => wrong.push(format!(
                    "{} gives a time for {stray}",
                    text(function, "name")
                )),
                Err(error) => wrong.push(format!("{}: {error:?}", text(function, "name"))),
            }
        }
    }
    assert!(checked > 200, "{checked}");
    wrong.is_empty().then_some(()).ok_or_else(|| {
        let shown: Vec<&str> = wrong
            .iter()
            .step_by(wrong.len().div_ceil(12))
            .map(String::as_str)
            .collect();
        format!("{} of {checked}:\n{}", wrong.len(), shown.join("\n")).into()
    })
}

/// Asks for the time of texts whose collation takes capital letters for small ones.
fn collations(url: &str) -> Result {
    let script = printed(
        &["sql", "postgres", "--scheme", "ulid", "--column", "char26"],
        0,
    )?;
    crate::place::execute(url, &script)?;
    crate::place::execute(
        url,
        "CREATE COLLATION any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
         CREATE TABLE keys (id text COLLATE any_case);
         INSERT INTO keys VALUES ('01FWHE4YDGFK1SHH6W1G60EECF'), ('01fwhe4ydgfk1shh6w1g60eecf')",
    )?;
    let mut live = Live::postgres(url)?;
    let sql = "SELECT count(ordid_ulid_time_char26(id)) FROM keys";
    assert_eq!(live.integers(sql)?, [Some(1)]);
    Ok(())
}

/// Asks for the lowest keys of times that have more digits than milliseconds.
fn between(mut live: Live, engine: &str) -> Result {
    let functions: Vec<Value> = serde_json::from_str(&printed(
        &[
            "sql", engine, "--scheme", "ulid", "--column", "char26", "--json",
        ],
        0,
    )?)?;
    let lowest = functions.iter().find(|it| text(it, "returns") == "lowest");
    let lowest = lowest.ok_or("a function")?;
    let is_sqlite = matches!(live, Live::Sqlite(..));
    if !is_sqlite {
        live.execute(text(lowest, "create_sql"))?;
    }
    let call = call(&live, lowest);
    let one = integer(&live);
    let mut times = vec![
        ("00:00:00.0004", "00:00:00.000"),
        ("00:00:00.9996", "00:00:00.999"),
        ("12:59:59.999999", "12:59:59.999"),
        ("23:59:59.9999", "23:59:59.999"),
        ("08:15:04.0354", "08:15:04.035"),
        ("08:15:04.0350", "08:15:04.035"),
        ("08:15:04.5", "08:15:04.500"),
        ("08:15:04", "08:15:04.000"),
    ];
    if is_sqlite {
        times.extend([
            ("23:59:59.9999Z", "23:59:59.999"),
            ("08:15:04.99999+01:00", "07:15:04.999"),
            ("08:15:04.9 +01:00", "07:15:04.900"),
            ("08:15", "08:15:00.000"),
        ]);
    } else {
        // SQLite itself keeps the nearest millisecond of a second.
        times.push(("08:15:04.0355", "08:15:04.035"));
    }
    for (time, millis) in times {
        let moment = |time: &str| match live {
            Live::Postgres(..) => format!("timestamptz '2026-03-01 {time}Z'"),
            Live::MySql(..) => format!("TIMESTAMP '2026-03-01 {time}'"),
            Live::Sqlite(..) => format!("'2026-03-01 {time}'"),
        };
        let millis = format!("2026-03-01T{millis}Z").parse::<jiff::Timestamp>()?;
        let millis = u64::try_from(millis.as_millisecond())?;
        let (lowest, _) = bounds(catalogue::find("ulid").ok_or("a scheme")?, millis);
        let sql = format!(
            "SELECT CAST(CASE WHEN {call} = '{}' THEN 1 ELSE 0 END AS {one}) FROM (SELECT {} AS moment) AS given",
            lowest[0],
            moment(time)
        );
        assert_eq!(live.integers(&sql)?, [Some(1)], "{time}");
    }
    Ok(())
}

/// Pipes the scripts into the engine's own client, into a schema whose name has to be quoted.
fn scripts(url: &str, client: &str, engine: &str) -> Result {
    let (address, database) = url.rsplit_once('/').ok_or("an address")?;
    let is_postgres = engine == "postgres";
    let schema = if is_postgres { "My \"app\"" } else { database };
    if is_postgres {
        crate::place::execute(url, "CREATE SCHEMA \"My \"\"app\"\"\"")?;
    }
    let run = |script: &str| -> Result {
        let mut command = std::process::Command::new(client);
        if is_postgres {
            command.args(["-q", "-X", "-v", "ON_ERROR_STOP=1", url]);
        } else {
            let port = address.rsplit_once(':').ok_or("an address")?.1;
            command.args([
                "--no-defaults",
                "-h",
                "127.0.0.1",
                "-u",
                "root",
                "-P",
                port,
                database,
            ]);
        }
        let mut child = command
            .stdin(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()?;
        let mut stdin = child.stdin.take().ok_or("stdin")?;
        stdin.write_all(script.as_bytes())?;
        drop(stdin);
        let output = child.wait_with_output()?;
        match output.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8(output.stderr)?.into()),
        }
    };
    let count = || -> Result<i64> {
        let sql = match is_postgres {
            true => {
                "SELECT count(*) FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace \
                     WHERE nspname = 'My \"app\"'"
            }
            false => {
                "SELECT count(*) FROM information_schema.routines WHERE routine_schema = database()"
            }
        };
        let mut live = match is_postgres {
            true => Live::postgres(url)?,
            false => Live::mysql(url)?,
        };
        Ok(live.integers(sql)?[0].unwrap_or_default())
    };
    let arguments = ["sql", engine, "--all", "--schema", schema];
    let script = printed(&arguments, 0)?;
    run(&script)?;
    let all = count()?;
    assert!(all > 100, "{all}");
    run(&script)?;
    assert_eq!(count()?, all);
    run(&printed(&[&arguments[..], &["--drop"]].concat(), 0)?)?;
    assert_eq!(count()?, 0);
    Ok(())
}

/// The plan of a query, as text.
fn plan(url: &str, query: &str) -> Result<String> {
    let lines: Vec<String> = block_on(async {
        let mut connection = PgConnection::connect(url).await?;
        let sql = format!("EXPLAIN (COSTS OFF) {query}");
        sqlx::query_scalar(AssertSqlSafe(sql))
            .fetch_all(&mut connection)
            .await
    })?;
    Ok(lines.join("\n"))
}

fn explains(url: &str) -> Result {
    let script = printed(
        &["sql", "postgres", "--scheme", "uuid-v7", "--column", "uuid"],
        0,
    )?;
    crate::place::execute(url, &script)?;
    crate::place::execute(
        url,
        "CREATE TABLE orders (id uuid PRIMARY KEY);
         INSERT INTO orders SELECT ordid_uuid_v7_lowest('2026-01-01Z'::timestamptz + n * interval '1 minute')
             FROM generate_series(1, 100000) n;
         ANALYZE orders;
         CREATE TABLE events (id uuid PRIMARY KEY) PARTITION BY RANGE (id);
         DO $$ BEGIN FOR month IN 1..11 LOOP
             EXECUTE format('CREATE TABLE events_%s PARTITION OF events FOR VALUES FROM (%L) TO (%L)', month,
                 ordid_uuid_v7_lowest(make_timestamptz(2026, month, 1, 0, 0, 0, 'UTC')),
                 ordid_uuid_v7_lowest(make_timestamptz(2026, month + 1, 1, 0, 0, 0, 'UTC')));
         END LOOP; END $$;",
    )?;
    let condition = |from: &str, to: &str| {
        format!("id >= ordid_uuid_v7_lowest({from}) AND id < ordid_uuid_v7_lowest({to})")
    };
    let day = condition("'2026-01-15Z'", "'2026-01-16Z'");
    let index = plan(url, &format!("SELECT * FROM orders WHERE {day}"))?;
    assert!(
        index.contains("Index Only Scan using orders_pkey")
            && index.contains("Index Cond: ((id >= '019bbef3-b000-7000-8000-"),
        "{index}"
    );
    let pruned = plan(
        url,
        &format!(
            "SELECT * FROM events WHERE {}",
            condition("'2026-03-05Z'", "'2026-04-02Z'")
        ),
    )?;
    let read = |plan: &str| -> Vec<String> {
        let scans = plan.split(" on ").skip(1);
        let tables = scans.filter_map(|scan| scan.split_whitespace().next());
        let tables = tables.filter(|table| !table.ends_with("_pkey"));
        tables.map(str::to_owned).collect()
    };
    assert_eq!(read(&pruned), ["events_3", "events_4"], "{pruned}");
    // A time that is known only when the query runs is pruned then.
    let stable = condition(
        "'2026-03-05Z'::timestamptz - (now() - now())",
        "'2026-04-02Z'::timestamptz - (now() - now())",
    );
    let pruned = plan(url, &format!("SELECT * FROM events WHERE {stable}"))?;
    assert!(pruned.contains("Subplans Removed: 9"), "{pruned}");
    // The time of a key is written into the query.
    let inlined = plan(
        url,
        "SELECT * FROM orders WHERE ordid_uuid_v7_time(id) IS NULL",
    )?;
    assert!(
        !inlined.contains("ordid_uuid_v7_time") && inlined.contains("make_interval"),
        "{inlined}"
    );
    Ok(())
}

fn indexes(url: &str) -> Result {
    let script = printed(
        &[
            "sql", "postgres", "--scheme", "uuid_v1", "--schema", "public",
        ],
        0,
    )?;
    crate::place::execute(url, &script)?;
    crate::place::execute(
        url,
        "CREATE TABLE old (id uuid PRIMARY KEY);
         INSERT INTO old SELECT ('00000000-' || lpad(to_hex(n), 4, '0') || '-11f0-8000-000000000001')::uuid
             FROM generate_series(1, 50000) n;
         SET search_path = '';
         CREATE INDEX by_time ON public.old (public.ordid_uuid_v1_time(id));
         ANALYZE public.old;",
    )?;
    let found = plan(
        url,
        "SELECT * FROM old WHERE ordid_uuid_v1_time(id) BETWEEN '2025-03-01Z' AND '2025-03-01 00:10Z'",
    )?;
    assert!(found.contains("by_time"), "{found}");
    let output = ordid(&[
        "sql", "postgres", "--scheme", "uuid_v1", "--column", "uuid", "--json",
    ])?;
    let list: Vec<Value> = serde_json::from_slice(&output.stdout)?;
    assert_eq!(
        list.len(),
        1,
        "version 1 does not rise in a uuid, so only its time is told"
    );
    Ok(())
}

fn uses_index(url: &str, engine: &str) -> Result {
    let list = printed(
        &[
            "sql", engine, "--scheme", "uuid_v7", "--column", "binary16", "--json",
        ],
        0,
    )?;
    let list: Vec<Value> = serde_json::from_str(&list)?;
    let mut live = Live::mysql(url)?;
    for function in &list {
        live.execute(text(function, "create_sql"))?;
    }
    live.execute(
        "CREATE TABLE orders (id BINARY(16) PRIMARY KEY);
         INSERT INTO orders WITH RECURSIVE s AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM s WHERE n < 1000)
             SELECT ordid_uuid_v7_lowest(TIMESTAMP '2026-01-01 00:00:00' + INTERVAL n MINUTE) FROM s;
         ANALYZE TABLE orders;
         SET @from = ordid_uuid_v7_lowest('2026-01-01 02:00:00'), @to = ordid_uuid_v7_lowest('2026-01-01 02:10:00')",
    )?;
    let mut range = |from: &str, to: &str| -> Result<bool> {
        let sql =
            format!("EXPLAIN FORMAT=JSON SELECT * FROM orders WHERE id >= {from} AND id < {to}");
        let Live::MySql(runtime, connection, _) = &mut live else {
            return Err("a connection to MySQL or MariaDB".into());
        };
        let row = runtime.block_on(sqlx::raw_sql(AssertSqlSafe(sql)).fetch_one(connection))?;
        let plan: String = row.try_get(0)?;
        Ok(plan.contains("\"range\"")
            || plan.contains("Index range scan")
            || plan.contains("index_range_scan"))
    };
    assert!(range("@from", "@to")?);
    let by_functions = range(
        "ordid_uuid_v7_lowest('2026-01-01 02:00:00')",
        "ordid_uuid_v7_lowest('2026-01-01 02:10:00')",
    )?;
    assert_eq!(by_functions, engine == "mariadb");
    Ok(())
}
