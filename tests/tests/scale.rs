//! Keys by the million, and by the thousand million under `cargo xtask soak`: none comes twice, and
//! each thread's rise. A fill takes no memory beside the keys, and a flush little beside its rows.

use libtest_mimic::{Arguments, Failed, Trial};
use ordid::{KeyType, OrderedKey, uuid::Uuid};
use ordid_sqlx::UnitOfWork;
use ordid_tests::{
    merge::{Merged, from_processes, from_threads},
    soak,
};

const MILLION: u64 = 1_000_000;

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, sqlx)]
struct RowId(Uuid);

#[derive(OrderedKey)]
#[ordid(table = "numbers")]
struct Numbered {
    id: RowId,
    number: i64,
}

fn main() {
    let mut arguments = Arguments::from_args();
    // One after the other, on the main thread: a fork should be a copy of this test alone.
    arguments.test_threads = Some(1);
    let mut trials = Vec::new();
    if cfg!(target_os = "linux") {
        trials.push(short(
            "a_fill_of_a_million_keys_takes_no_memory_beside_them",
            || fill_takes_no_memory(1_000_000),
        ));
        trials.push(long(
            "a_fill_of_100_million_keys_takes_no_memory_beside_them",
            || fill_takes_no_memory(100_000_000),
        ));
        trials.push(short(
            "a_flush_of_200000_rows_takes_little_memory_beside_them",
            || flush_takes_little_memory(200_000),
        ));
        trials.push(long(
            "a_flush_of_10_million_rows_takes_little_memory_beside_them",
            || flush_takes_little_memory(10_000_000),
        ));
    }
    trials.extend([
        short("four_processes_of_500000_keys_share_none", || {
            all(2 * MILLION, from_processes(4, MILLION / 2))
        }),
        long(
            "eight_threads_of_125_million_keys_rise_and_share_none",
            || all(1_000 * MILLION, from_threads(8, 125 * MILLION)),
        ),
        long("sixteen_processes_of_6250000_keys_share_none", || {
            all(100 * MILLION, from_processes(16, 6_250_000))
        }),
    ]);
    libtest_mimic::run(&arguments, trials).exit();
}

/// Fills a vector that is there already, and compares the process's peak of memory before and after.
fn fill_takes_no_memory(count: usize) -> Result<(), Failed> {
    const MOST_KILOBYTES: u64 = 1_024;
    let first = RowId::generate();
    let mut keys = vec![first; count];
    let before = peak_from_here()?;
    RowId::fill(&mut keys);
    let more = peak_kilobytes()?.saturating_sub(before);
    if more > MOST_KILOBYTES {
        return Err(format!("a fill of {count} keys took {more} KB beside them").into());
    }
    if first < keys[0] && keys.is_sorted_by(|a, b| a < b) {
        return Ok(());
    }
    Err("keys of a fill do not rise".into())
}

/// Writes rows by one flush into a file of SQLite, and compares the process's peak of memory before and after.
fn flush_takes_little_memory(rows: usize) -> Result<(), Failed> {
    // The cache of SQLite, two statements, and room for the allocator.
    const BESIDE_KILOBYTES: u64 = 32 * 1_024;
    let mut work = UnitOfWork::<sqlx::Sqlite>::new();
    for number in 0..rows {
        let (id, number) = (RowId::generate(), i64::try_from(number)?);
        work.add(Numbered { id, number });
    }
    let runtime = tokio::runtime::Runtime::new()?;
    let folder = tempfile::tempdir()?;
    let (found, before) = runtime.block_on(async {
        let options = sqlx::sqlite::SqliteConnectOptions::new()
            .filename(folder.path().join("numbers"))
            .create_if_missing(true);
        let pool = sqlx::SqlitePool::connect_with(options).await?;
        let table = "CREATE TABLE numbers (id BLOB PRIMARY KEY, number INTEGER) WITHOUT ROWID";
        sqlx::query(table).execute(&pool).await?;
        let before = peak_from_here()?;
        work.flush(&pool).await?;
        let count = "SELECT COUNT(*) FROM numbers";
        let found: i64 = sqlx::query_scalar(count).fetch_one(&pool).await?;
        pool.close().await;
        Ok::<_, Failed>((found, before))
    })?;
    let more = peak_kilobytes()?.saturating_sub(before);
    let of_rows = u64::try_from(rows * size_of::<Numbered>())? / 1_024;
    println!("{rows} rows of {of_rows} KB, {more} KB beside them");
    if more > of_rows * 3 / 10 + BESIDE_KILOBYTES {
        return Err(
            format!("a flush of {rows} rows of {of_rows} KB took {more} KB beside them").into(),
        );
    }
    match usize::try_from(found)? == rows {
        true => Ok(()),
        false => Err(format!("{found} rows of {rows}").into()),
    }
}

/// Lets the peak begin with the memory that the process has now, and returns that: what other tests took is not in it.
fn peak_from_here() -> Result<u64, Failed> {
    std::fs::write("/proc/self/clear_refs", "5")?;
    peak_kilobytes()
}

/// Returns the most memory that this process had since then, as Linux counts it.
fn peak_kilobytes() -> Result<u64, Failed> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let (_, peak) = status
        .split_once("VmHWM:")
        .ok_or("the system does not tell the peak of memory")?;
    let number = peak.split_whitespace().next().unwrap_or_default();
    Ok(number.parse()?)
}

fn all(expected: u64, merged: Result<Merged, String>) -> Result<(), Failed> {
    match merged?.keys {
        keys if keys == expected => Ok(()),
        keys => Err(format!("{keys} keys arrived of {expected}").into()),
    }
}

fn short(name: &str, test: impl FnOnce() -> Result<(), Failed> + Send + 'static) -> Trial {
    Trial::test(name, test)
}

/// A test of minutes: ignored, with the reason in its name, unless it is asked for.
fn long(name: &str, test: impl FnOnce() -> Result<(), Failed> + Send + 'static) -> Trial {
    let trial = Trial::test(name, test);
    if soak() {
        return trial;
    }
    trial
        .with_kind("long: `cargo xtask soak` runs it")
        .with_ignored_flag(true)
}
