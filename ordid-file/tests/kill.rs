//! A process that raises its mark without end is killed: what it had acknowledged is there.

use std::{
    env,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
};

use libtest_mimic::{Arguments, Failed, Trial};
use ordid_core::{clock::Timestamp, high_water::HighWaterMark};
use ordid_file::MarkFile;

/// Names the file in the environment of the process that is killed.
const RAISE: &str = "ORDID_FILE_RAISE";

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() {
    if let Some(path) = env::var_os(RAISE) {
        // Ends by being killed, or with an error.
        let error = raise_without_end(Path::new(&path)).map(|never| match never {});
        panic!("{error:?}");
    }
    let trials = [
        Trial::test("what_was_acknowledged_before_a_kill_is_there", || {
            killed_in_the_middle().map_err(|error| Failed::from(error.to_string()))
        }),
        Trial::test("a_file_open_in_another_process_is_refused", || {
            open_elsewhere().map_err(|error| Failed::from(error.to_string()))
        }),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials.into()).exit();
}

/// Raises by one, and says so on the standard output when it has returned.
fn raise_without_end(path: &Path) -> Result<std::convert::Infallible, Box<dyn std::error::Error>> {
    let file = MarkFile::open(path)?;
    let mut mark = file.load()?.map_or(0, Timestamp::as_unix_millis);
    let mut output = std::io::stdout().lock();
    loop {
        mark += 1;
        file.raise(Timestamp::from_unix_millis(mark)?)?;
        writeln!(output, "{mark}")?;
    }
}

fn start(path: &Path) -> std::io::Result<(Child, BufReader<ChildStdout>)> {
    let mut child = Command::new(env::current_exe()?)
        .env(RAISE, path)
        .stdout(Stdio::piped())
        .spawn()?;
    let output = child.stdout.take().ok_or(std::io::ErrorKind::BrokenPipe)?;
    Ok((child, BufReader::new(output)))
}

fn killed_in_the_middle() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("keys.mark");
    let mut found = 0;
    for round in 0..20 {
        let (mut child, output) = start(&path)?;
        let mut lines = output.lines();
        let mut acknowledged = 0;
        for _ in 0..=3 * round {
            acknowledged = lines.next().ok_or("the child ended by itself")??.parse()?;
        }
        // At any moment of a write: after the acknowledgement the next one begins at once.
        std::thread::sleep(std::time::Duration::from_micros(170 * round));
        child.kill()?;
        child.wait()?;
        for line in lines {
            acknowledged = line?.parse()?;
        }
        if acknowledged <= found {
            return Err(format!("{acknowledged} although {found} was found before").into());
        }
        let mark = MarkFile::open(&path)?.load()?.ok_or("no mark")?;
        found = mark.as_unix_millis();
        // The last one may have been written and not yet acknowledged.
        if found != acknowledged && found != acknowledged + 1 {
            return Err(format!("found {found} after {acknowledged} was acknowledged").into());
        }
    }
    Ok(())
}

fn open_elsewhere() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("keys.mark");
    let (mut child, mut output) = start(&path)?;
    output.read_line(&mut String::new())?;
    let refused = MarkFile::open(&path);
    child.kill()?;
    child.wait()?;
    match refused {
        Ok(_) => return Err("opened twice".into()),
        Err(error) if error.to_string().contains("is in use") => {}
        Err(error) => return Err(error.into()),
    }
    // The lock ends with the process, however it ends.
    MarkFile::open(&path)?;
    Ok(())
}
