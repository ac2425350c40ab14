//! A disk without room for the rows of a flush: by SQLite's own limit, by one on the size of files, and of a
//! file system that is full.

use std::{
    io,
    path::Path,
    process::{Command, Output},
};

use libtest_mimic::Trial;
use ordid_sqlx::{Retry, UnitOfWork};
use ordid_tests::{
    faults::{Engine as _, Found, Graph, Shape, Site, kill::Process, on_file, times},
    trials::{Outcome, ignored, run},
};
use sqlx::{ConnectOptions, Sqlite, sqlite::SqliteConnectOptions};

use crate::program;

pub fn trials(trials: &mut Vec<Trial>) {
    on_file::<UnitOfWork<Sqlite>, _, _>(trials, "a_database_that_may_not_grow_leaves_no_row", full);
    on_file::<UnitOfWork<Sqlite>, _, _>(trials, "a_disk_without_room_leaves_no_row", |site| {
        no_room(site, false)
    });
    on_file::<UnitOfWork<Sqlite>, _, _>(
        trials,
        "a_disk_without_room_for_the_log_leaves_no_row",
        async |site| {
            site.execute("PRAGMA journal_mode = WAL").await?;
            no_room(site, true).await
        },
    );
    on_full_disk(trials, "a_file_system_that_is_full_leaves_no_row", "DELETE");
    on_full_disk(
        trials,
        "a_file_system_that_is_full_of_the_log_leaves_no_row",
        "WAL",
    );
}

/// `SQLITE_FULL`, at every stage of the flush.
async fn full(site: Site<Sqlite>) -> Outcome {
    let empty = site.numbers("PRAGMA page_count").await?[0];
    let graph = Graph::new(0, Shape::CHUNKS);
    let pool = site.pool();
    site.work(&graph, Retry::DEFAULT).flush(&pool).await?;
    pool.close().await;
    let pages = site.numbers("PRAGMA page_count").await?[0] - empty;
    assert!(pages > 50, "{pages}");
    let steps = i64::from(times(8, 100));
    for (unit, step) in (1..).zip(0..steps) {
        let graph = Graph::new(unit, Shape::CHUNKS);
        let mut work = site.work(&graph, Retry::DEFAULT);
        let now = site.numbers("PRAGMA page_count").await?[0];
        let most = now + step * pages / steps * 9 / 10;
        let options = site.options().clone();
        let narrow = options.pragma("max_page_count", most.to_string());
        let pool = Site::<Sqlite>::open(narrow).pool();
        let outcome = work.flush(&pool).await;
        pool.close().await;
        site.judge(&graph, &work, &outcome).await?;
        let error = outcome.expect_err("there is no room");
        assert!(error.to_string().contains("full"), "{step}: {error}");
        site.flush_again(&graph, &mut work).await?;
    }
    Ok(())
}

/// A limit on the size of files stands for a full disk: writes fail, those of COMMIT among them.
async fn no_room(site: Site<Sqlite>, is_log: bool) -> Outcome {
    let url = site.options().to_url_lossy().to_string();
    // What a unit of work adds, in blocks of 512 bytes.
    let before = blocks(&site).await?;
    site.flush_anew::<UnitOfWork<Sqlite>>(&Graph::new(0, Shape::CHUNKS), Found::None)
        .await?;
    let added = blocks(&site).await? - before;
    let (mut refused, mut committed) = (0, 0);
    let steps = times(12, 200);
    for (unit, step) in (1..).zip(0..steps) {
        let graph = Graph::new(unit, Shape::CHUNKS);
        // From nearly no room to room enough. The log's index alone takes 64.
        let most = if is_log {
            80 + i64::from(step) * 2 * added / i64::from(steps)
        } else {
            blocks(&site).await? + i64::from(step) * 2 * added / i64::from(steps)
        };
        // Without the trap the signal would end the program.
        let script = "trap '' XFSZ; ulimit -f $1; shift; exec \"$@\"";
        let program = program();
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh", &most.to_string()]);
        command.arg(program.get_program());
        let mut process = Process::start(command, &[&url, "new", &unit.to_string()])?;
        process.go()?;
        let said = process.hear()?;
        drop(process);
        let found = site.look(&graph).await?;
        match (said.split(':').next().unwrap_or_default(), found) {
            ("committed", Found::All) => committed += 1,
            ("refused", Found::None) => refused += 1,
            _ => return Err(format!("room for {most}: {found:?} and {said:?}").into()),
        }
        site.flush_anew::<UnitOfWork<Sqlite>>(&graph, found).await?;
    }
    eprintln!("SQLite without room: {refused} refused, {committed} committed");
    assert!(refused >= steps / 4 && committed > 0);
    Ok(())
}

/// The size of the file.
async fn blocks(site: &Site<Sqlite>) -> Outcome<i64> {
    let pages = site.numbers("PRAGMA page_count").await?[0];
    Ok(pages * site.numbers("PRAGMA page_size").await?[0] / 512)
}

/// Adds a test with a file system of its own, in memory: ignored where none may be mounted.
fn on_full_disk(trials: &mut Vec<Trial>, name: &str, journal: &'static str) {
    let name = format!("sqlite::{name}");
    let mounted = FileSystem::mount().map(drop);
    trials.push(match mounted {
        Err(error) => ignored(name, format!("no tmpfs can be mounted: {error}")),
        Ok(()) => Trial::test(name, move || {
            run(async || full_disk(FileSystem::mount()?, journal).await)
        }),
    });
}

/// A tmpfs in a folder of its own. Dropping it unmounts it.
struct FileSystem {
    folder: tempfile::TempDir,
}

impl FileSystem {
    fn mount() -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        check(
            Command::new("mount")
                .args(["-t", "tmpfs", "-o", "size=64m,mode=700", "tmpfs"])
                .arg(folder.path())
                .output()?,
        )?;
        Ok(Self { folder })
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Leaves room for so many bytes more than there are; more than there were at first, if `None`.
    fn leave(&self, room: Option<u64>) -> Outcome {
        let size = match room {
            Some(room) => self.used()? + room,
            None => 64 << 20,
        };
        let output = Command::new("mount")
            .args(["-o", &format!("remount,size={size}")])
            .arg(self.path())
            .output()?;
        Ok(check(output)?)
    }

    fn used(&self) -> Outcome<u64> {
        let output = Command::new("df")
            .args(["--output=used", "--block-size=1"])
            .arg(self.path())
            .output()?;
        let text = String::from_utf8(output.stdout)?;
        Ok(text
            .lines()
            .last()
            .ok_or("df says nothing")?
            .trim()
            .parse()?)
    }
}

impl Drop for FileSystem {
    fn drop(&mut self) {
        let unmount = |how: &[&str]| {
            let output = Command::new("umount").args(how).arg(self.path()).output();
            output.and_then(check)
        };
        // Whatever still has a file open there.
        if unmount(&[]).is_err() {
            let _ = unmount(&["--lazy"]);
        }
    }
}

fn check(output: Output) -> io::Result<()> {
    if output.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(why.trim().to_owned()))
}

/// `ENOSPC`, at every stage of the flush.
async fn full_disk(disk: FileSystem, journal: &str) -> Outcome {
    let options = SqliteConnectOptions::new().filename(disk.path().join("faults.sqlite"));
    let site = Site::<Sqlite>::create(options.create_if_missing(true)).await?;
    site.execute(&format!("PRAGMA journal_mode = {journal}"))
        .await?;
    let before = disk.used()?;
    site.flush_anew::<UnitOfWork<Sqlite>>(&Graph::new(0, Shape::CHUNKS), Found::None)
        .await?;
    let added = disk.used()? - before;
    assert!(added > 200_000, "{added}");
    let (mut refused, mut committed) = (0, 0);
    let steps = times(12, 200);
    for (unit, step) in (1..).zip(0..steps) {
        let graph = Graph::new(unit, Shape::CHUNKS);
        let mut work = site.work(&graph, Retry::DEFAULT);
        // From no room to room for the rows and, twice, for the journal.
        let room = u64::from(step) * 3 * added / u64::from(steps);
        let pool = site.pool();
        // The log has an index, for which there has to be room before. A reader makes it.
        Sqlite::numbers(
            &mut *pool.acquire().await?,
            "SELECT COUNT(*) FROM customers",
        )
        .await?;
        disk.leave(Some(room))?;
        let outcome = work.flush(&pool).await;
        disk.leave(None)?;
        pool.close().await;
        let found = site.judge(&graph, &work, &outcome).await;
        let found = found.map_err(|error| format!("room for {room}: {error}"))?;
        match found {
            Found::All => committed += 1,
            Found::None => {
                let error = outcome.expect_err("nothing is there").to_string();
                assert!(error.contains("disk is full"), "room for {room}: {error}");
                refused += 1;
                site.flush_again(&graph, &mut work).await?;
            }
        }
    }
    eprintln!("SQLite on a full disk ({journal}): {refused} refused, {committed} committed");
    assert!(refused >= steps / 4 && committed > 0);
    Ok(())
}
