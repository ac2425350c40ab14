//! A server's process, its folder, and the watchdog that owns both.

use std::fmt;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::Error;
use crate::find;
use crate::server::Identity;

/// How many lines of the end of the log an error quotes, and how many errors from before it.
const TAIL: usize = 20;
/// A socket's path must stay under 108 bytes (104 on some systems), its folder well under that.
const LONGEST_BASE: usize = 60;
/// How long to wait for the watchdog. It gives the server 20 s before it kills it.
const STOP: Duration = Duration::from_secs(40);

/// The commands of a server, each a program with its arguments.
pub(crate) struct Launch {
    /// Run one after the other; each must succeed.
    pub(crate) prepare: Vec<Vec<String>>,
    /// The server itself, in the foreground.
    pub(crate) serve: Vec<String>,
    /// The signal for an orderly stop, without `SIG`.
    pub(crate) stop: &'static str,
}

impl Launch {
    /// The identity of a server that SIGTERM stops.
    pub(crate) fn of(prepare: Vec<Vec<String>>, serve: Vec<String>) -> Self {
        let stop = "TERM";
        Self {
            prepare,
            serve,
            stop,
        }
    }

    pub(crate) fn stopped_by(self, stop: &'static str) -> Self {
        Self { stop, ..self }
    }

    /// Serves with one more option the first time. That begins a cluster; a node that is started again joins what is
    /// left of it.
    pub(crate) fn begin_with(&mut self, folder: &str, option: &str) {
        let script = r#"option=$1 begun=$2; shift 2; mkdir "$begun" 2>/dev/null && set -- "$@" "$option"; exec "$@""#;
        let begun = format!("{folder}/begun");
        let words = ["sh", "-c", script, "sh", option, &begun];
        self.serve.splice(0..0, words.map(str::to_owned));
    }
}

/// The command that writes lines into a file.
pub(crate) fn write(file: String, lines: Vec<String>) -> Vec<String> {
    let script = r#"file=$1; shift; printf '%s\n' "$@" >"$file""#;
    let mut words = ["sh", "-c", script, "sh"].map(str::to_owned).to_vec();
    words.push(file);
    words.extend(lines);
    words
}

/// The account that runs a server for root.
struct Account {
    uid: u32,
    gid: u32,
}

/// A new folder, owned by the account which will run the server.
pub(crate) struct Folder {
    dir: TempDir,
    text: String,
    account: Option<Account>,
}

impl Folder {
    pub(crate) fn create(identity: &Identity) -> Result<Self, Error> {
        let Identity {
            name,
            user,
            package,
        } = *identity;
        let account = match id(&["-u"]) {
            Some(0) => Some(account(user, package)?),
            _ => None,
        };
        let base = base(account.is_some());
        let cannot = |error| {
            Error::io(
                format!("cannot create a folder in {}", base.display()),
                error,
            )
        };
        let dir = tempfile::Builder::new()
            .prefix(&format!("ordid-{name}-"))
            .tempdir_in(&base)
            .map_err(cannot)?;
        // Not through the builder, which leaves the last word to the umask.
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).map_err(cannot)?;
        if let Some(Account { uid, gid }) = account {
            chown(dir.path(), Some(uid), Some(gid)).map_err(cannot)?;
        }
        let text = dir.path().to_string_lossy().into_owned();
        Ok(Self { dir, text, account })
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// A command line for the shell, run by the folder's owner.
    fn command(&self, arguments: &[String]) -> String {
        let mut words = Vec::new();
        if let Some(Account { uid, gid }) = self.account {
            // Not runuser(1): it stays in between as a process that takes our signals.
            words.push(format!(
                "setpriv --reuid={uid} --regid={gid} --init-groups --"
            ));
        }
        words.extend(arguments.iter().map(|argument| quote(argument)));
        words.join(" ")
    }
}

/// The folder for temporary folders: the system's, unless the server could not use it.
fn base(shared: bool) -> PathBuf {
    let base = std::env::temp_dir();
    let short = base.to_str().is_some_and(|text| text.len() <= LONGEST_BASE);
    if base.is_absolute() && short && (!shared || is_open(&base)) {
        base
    } else {
        PathBuf::from("/tmp")
    }
}

/// Whether every account may go into a folder.
pub(crate) fn is_open(folder: &Path) -> bool {
    folder.ancestors().all(|folder| {
        std::fs::metadata(folder).is_ok_and(|meta| meta.permissions().mode() & 0o001 != 0)
    })
}

fn account(user: &'static str, package: &'static str) -> Result<Account, Error> {
    match (id(&["-u", user]), id(&["-g", user])) {
        (Some(uid), Some(gid)) => Ok(Account { uid, gid }),
        _ => Err(Error::new(format!(
            "root has no account `{user}` to run the server as: install the Debian package \
             `{package}`, or run as another user"
        ))),
    }
}

fn id(arguments: &[&str]) -> Option<u32> {
    find::output(Command::new("id").args(arguments))?
        .parse()
        .ok()
}

/// One word for the shell.
fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Sends a process a signal; one that has just ended is no error.
fn send(signal: &str, pid: u32) -> Result<(), Error> {
    let script = format!("kill -s {signal} {pid} 2>/dev/null || ! kill -0 {pid} 2>/dev/null");
    let cannot = |error| Error::io(format!("cannot send SIG{signal} to {pid}"), error);
    let status = Command::new("sh").args(["-c", &script]).status();
    match status.map_err(cannot)? {
        status if status.success() => Ok(()),
        status => Err(Error::new(format!(
            "cannot send SIG{signal} to {pid} ({status})"
        ))),
    }
}

/// The processes that a process has made.
fn children(of: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{of}/task"));
    tasks
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|text| {
            let pids: Vec<u32> = text
                .split_ascii_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .collect();
            pids
        })
        .collect()
}

/// Whether a process still has memory of its own: one that was killed keeps it until it is run again, and
/// that may take a while on a busy machine.
fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    // The state follows the name, which may hold anything, in brackets.
    stat.is_ok_and(|stat| {
        let state = stat.rsplit(')').next().map(str::trim_start);
        state.is_none_or(|state| !state.starts_with(['Z', 'X']))
    })
}

/// A server's process under its watchdog.
pub(crate) struct Process {
    name: &'static str,
    folder: PathBuf,
    watchdog: Child,
    /// Closed when this process ends in whatever way; then the watchdog stops the server.
    pipe: Option<ChildStdin>,
}

impl Process {
    pub(crate) fn start(
        name: &'static str,
        folder: Folder,
        launch: &Launch,
    ) -> Result<Self, Error> {
        let script = script(&folder, launch);
        let mut watchdog = Command::new("sh")
            .args(["-c", &script])
            .env("LC_ALL", "C")
            .env("HOME", folder.text())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // A terminal's Ctrl-C goes to the group of this process, not to the server's.
            .process_group(0)
            .spawn()
            .map_err(|error| Error::io("cannot run `sh`, which watches over the server", error))?;
        let pipe = watchdog.stdin.take();
        // From here on the folder is the watchdog's to remove.
        Ok(Self {
            name,
            folder: folder.dir.keep(),
            watchdog,
            pipe,
        })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn pid(&self) -> Result<u32, Error> {
        let path = self.folder.join("pid");
        let text = std::fs::read_to_string(&path)
            .map_err(|error| Error::io(format!("cannot read {}", path.display()), error))?;
        text.trim()
            .parse()
            .map_err(|_| Error::new(format!("{} holds no number", path.display())))
    }

    /// Sends the running command a signal, and returns when it has ended.
    pub(crate) fn end(&mut self, signal: &str) -> Result<(), Error> {
        send(signal, self.pid()?)?;
        let deadline = Instant::now() + STOP;
        while !self.folder.join("exited").exists() {
            if Instant::now() > deadline {
                return Err(self.error(&format!("{} does not heed SIG{signal}", self.name)));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Sends the running command and its children a signal.
    pub(crate) fn signal(&self, signal: &str) -> Result<(), Error> {
        let pid = self.pid()?;
        children(pid)
            .into_iter()
            .chain([pid])
            .try_for_each(|pid| send(signal, pid))
    }

    /// Ends the running command and its children, all at once and with no chance to clean up.
    pub(crate) fn kill(&mut self) -> Result<(), Error> {
        let pid = self.pid()?;
        // Stopped, it makes no more of them.
        send("STOP", pid)?;
        let children = children(pid);
        for &child in &children {
            send("KILL", child)?;
        }
        self.end("KILL")?;
        // PostgreSQL does not start again while one of them still shares its memory.
        let deadline = Instant::now() + STOP;
        while children.iter().any(|&child| is_alive(child)) {
            if Instant::now() > deadline {
                return Err(self.error(&format!("a child of {} does not end", self.name)));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Runs the last command again, after it has ended.
    pub(crate) fn run_again(&mut self) -> Result<(), Error> {
        let cannot = |error| Error::io("cannot tell the watchdog to serve again", error);
        let (again, exited) = (self.folder.join("again"), self.folder.join("exited"));
        if !exited.exists() {
            return Err(Error::new(format!("{} is still running", self.name)));
        }
        std::fs::write(&again, "").map_err(cannot)?;
        let deadline = Instant::now() + STOP;
        while again.exists() || exited.exists() {
            if Instant::now() > deadline {
                return Err(self.error(&format!("the watchdog of {} does not answer", self.name)));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    pub(crate) fn log(&self) -> String {
        let bytes = std::fs::read(self.folder.join("log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// An error that quotes the end of the log.
    pub(crate) fn error(&self, message: &str) -> Error {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        let (before, tail) = lines.split_at(lines.len().saturating_sub(TAIL));
        if tail.is_empty() {
            return Error::new(format!("{message}; its log is empty"));
        }
        let (tail, mut errors) = (tail.join("\n  "), String::new());
        // A server that ends itself may say why long before it has ended.
        for line in before
            .iter()
            .filter(|line| line.contains("[ERROR]"))
            .take(TAIL)
        {
            errors.extend(["\n  ", line]);
        }
        let errors = match errors.is_empty() {
            true => errors,
            false => format!("its log has{errors}\nand "),
        };
        Error::new(format!("{message}; {errors}its log ends with:\n  {tail}"))
    }

    /// Fails when the server has ended.
    pub(crate) fn check(&mut self) -> Result<(), Error> {
        if let Ok(status) = std::fs::read_to_string(self.folder.join("exited")) {
            let message = format!("{} did not start (status {})", self.name, status.trim());
            return Err(self.error(&message));
        }
        match self.watchdog.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => {
                Err(self.error(&format!("the watchdog of {} ended ({status})", self.name)))
            }
            Err(error) => Err(Error::io(
                format!("cannot watch the watchdog of {}", self.name),
                error,
            )),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.pipe.take());
        let deadline = Instant::now() + STOP;
        while matches!(self.watchdog.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        // The watchdog has done it, unless someone killed the watchdog.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process")
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

/// The watchdog.
///
/// The foreground runs the commands; `pid` names the one that runs, `exited` holds the status of
/// the last one. The background waits for the pipe (file 3) to close, and then asks the running
/// command to stop, again every 2 s and in the end with SIGKILL. Only when both are through is
/// the folder removed, so that an error can still quote the log of a server that died.
///
/// A server that has ended is served again where `again` says so. `stopping` is made before the
/// background looks for `exited`, and looked for after `exited` is removed: either the background
/// waits for the new server, or there is none.
///
/// The last signal goes to the rest of the watchdog's own process group: a `prepare` command that
/// was cut short may have left children.
fn script(folder: &Folder, launch: &Launch) -> String {
    let steps: Vec<String> = launch
        .prepare
        .iter()
        .map(|arguments| format!("step {}", folder.command(arguments)))
        .chain(["serve".to_owned()])
        .collect();
    format!(
        r#"exec 3<&0 </dev/null
umask 022
cd {folder} || exit 1
: >log

{{
    while read -r _ <&3; do :; done
    : >stopping
    n=0
    while [ ! -e exited ]; do
        if [ "$n" -ge 200 ]; then
            kill -s KILL "$(cat pid)"
        elif [ "$((n % 20))" -eq 0 ]; then
            kill -s {stop} "$(cat pid)"
        fi
        sleep 0.1
        n=$((n + 1))
    done
}} &
watcher=$!

step() {{
    [ ! -e stopping ] || return 1
    "$@" >>log 2>&1 3<&- &
    echo "$!" >pid.new
    mv pid.new pid
    wait "$!"
}}

serve() {{
    step {serve}
}}

exited() {{
    echo "$1" >exited.new
    mv exited.new exited
}}

{steps}
exited "$?"
while [ ! -e stopping ]; do
    if [ -e again ]; then
        rm -f again exited
        serve
        exited "$?"
    else
        sleep 0.02
    fi
done
wait "$watcher"

trap : TERM
kill -s TERM 0
cd /
n=0
while [ -e {folder} ] && [ "$n" -lt 50 ]; do
    rm -rf {folder}
    [ ! -e {folder} ] || sleep 0.1
    n=$((n + 1))
done
"#,
        folder = quote(folder.text()),
        stop = launch.stop,
        serve = folder.command(&launch.serve),
        steps = steps.join(" &&\n"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(prepare: &[&str], serve: &[&str]) -> Process {
        // The tests' commands need no account of their own: they run as whoever runs the tests.
        let dir = tempfile::tempdir_in("/tmp").expect("a folder");
        let text = dir.path().to_str().expect("UTF-8").to_owned();
        let folder = Folder {
            dir,
            text,
            account: None,
        };
        let words = |list: &[&str]| list.iter().map(|&word| word.to_owned()).collect();
        let launch = Launch {
            prepare: vec![words(prepare)],
            serve: words(serve),
            stop: "TERM",
        };
        Process::start("thing", folder, &launch).expect("started")
    }

    fn wait(process: &mut Process) -> Error {
        for _ in 0..500 {
            if let Err(error) = process.check() {
                return error;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the command is still running");
    }

    #[test]
    fn a_failed_start_quotes_the_log() {
        let mut process = process(
            &["echo", "it's prepared"],
            &["sh", "-c", "echo broken; exit 3"],
        );
        let error = wait(&mut process);
        assert_eq!(
            error.to_string(),
            "thing did not start (status 3); its log ends with:\n  it's prepared\n  broken"
        );
        let folder = process.folder().to_owned();
        assert!(folder.exists());
        drop(process);
        assert!(!folder.exists());
    }

    #[test]
    fn an_error_that_is_long_past_is_quoted() {
        let script = "echo fine; echo '3 [ERROR] no room'; seq 19; echo over; exit 3";
        let mut process = process(&["true"], &["sh", "-c", script]);
        let error = wait(&mut process).to_string();
        let begin = "thing did not start (status 3); its log has\n  3 [ERROR] no room\nand its log ends with:\n  1\n";
        assert!(error.starts_with(begin), "{error}");
        assert!(error.ends_with("\n  19\n  over"), "{error}");
    }

    #[test]
    fn a_failed_preparation_ends_the_start() {
        let mut process = process(&["sh", "-c", "exit 4"], &["echo", "served"]);
        let error = wait(&mut process);
        assert_eq!(
            error.to_string(),
            "thing did not start (status 4); its log is empty"
        );
    }

    #[test]
    fn a_stop_during_preparation_ends_at_once() {
        let process = process(&["sleep", "60"], &["sleep", "60"]);
        let folder = process.folder().to_owned();
        let started = Instant::now();
        drop(process);
        assert!(!folder.exists());
        assert!(started.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn a_log_is_quoted_by_its_end() {
        let mut process = process(&["true"], &["seq", "1", "100"]);
        let error = wait(&mut process).to_string();
        assert!(error.contains("ends with:\n  81\n  82\n"), "{error}");
        assert!(error.ends_with("\n  100"), "{error}");
    }
}
