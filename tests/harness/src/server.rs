//! A running private server, and what each kind of server has to say about itself.

use std::fmt;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::Error;
use crate::process::{Folder, Launch, Process};

/// How long a server may take from the first command to its first answer, where many are started side by side. One that
/// has ended is not waited for.
const START: Duration = Duration::from_secs(300);
/// How often a lost race for the port is run again.
const ATTEMPTS: u32 = 5;
/// How often a server is started again on its own port, which somebody else has, a second apart.
const RESTARTS: u32 = 60;

/// What a kind of server is called.
pub(crate) struct Identity {
    /// The name in error messages, folder names and environment variables.
    pub(crate) name: &'static str,
    /// The account that runs the server when this process belongs to root.
    pub(crate) user: &'static str,
    /// The Debian package, which also creates that account.
    pub(crate) package: &'static str,
}

impl Identity {
    pub(crate) const fn of(name: &'static str, user: &'static str, package: &'static str) -> Self {
        Self {
            name,
            user,
            package,
        }
    }
}

/// What is particular to one kind of server.
pub(crate) trait Recipe: Send + Sync + 'static {
    const IDENTITY: Identity;
    /// The administrator's URL, in which `{port}` stands for the port.
    const URL: &'static str;

    /// The commands which run the server in this folder, on this port of 127.0.0.1.
    fn launch(&self, folder: &str, port: u16) -> Launch;
    /// Tells whether the server takes connections. Asked again and again until it does.
    fn ready(&self, folder: &Path, port: u16) -> bool;
}

/// A server that is installed here.
pub(crate) struct Found<R> {
    pub(crate) recipe: R,
    /// What the server's binary says to `--version`.
    pub(crate) version: String,
}

impl<R> Found<R> {
    pub(crate) fn map<S>(self, change: impl FnOnce(R) -> S) -> Found<S> {
        Found {
            recipe: change(self.recipe),
            version: self.version,
        }
    }
}

/// Returns when the server answers.
type Wait = Box<dyn Fn(&mut Process) -> Result<(), Error> + Send + Sync>;

/// A private server. Dropping it stops the server and removes its folder.
#[must_use = "dropping the server stops it"]
pub struct Server {
    name: &'static str,
    url: String,
    port: u16,
    version: String,
    /// The signal for an orderly stop, without `SIG`.
    stop: &'static str,
    wait: Wait,
    process: Process,
}

impl Server {
    pub(crate) fn start<R: Recipe>(found: Found<R>) -> Result<Self, Error> {
        let Found { recipe, version } = found;
        let mut attempt = 1;
        loop {
            let port = free_port()?;
            let folder = Folder::create(&R::IDENTITY)?;
            let launch = recipe.launch(folder.text(), port);
            let mut process = Process::start(R::IDENTITY.name, folder, &launch)?;
            match wait(&recipe, &mut process, port) {
                Ok(()) => {
                    return Ok(Self {
                        name: R::IDENTITY.name,
                        url: R::URL.replace("{port}", &port.to_string()),
                        port,
                        version,
                        stop: launch.stop,
                        wait: Box::new(move |process| wait(&recipe, process, port)),
                        process,
                    });
                }
                Err(_) if attempt < ATTEMPTS && lost_port(&process.log()) => attempt += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the server's name, such as `postgres`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the administrator's URL, with the database that every server of this kind has.
    #[must_use]
    pub fn url(&self) -> String {
        self.url.clone()
    }

    /// Returns the port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns what the server's binary says to `--version`.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns the temporary folder with the server's data, sockets and log.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.process.folder()
    }

    /// Returns the id of the server's main process.
    ///
    /// # Errors
    ///
    /// When the folder no longer has the file that holds it.
    pub fn pid(&self) -> Result<u32, Error> {
        self.process.pid()
    }

    /// Returns everything the server has logged so far, as far as it can be read.
    #[must_use]
    pub fn log(&self) -> String {
        self.process.log()
    }

    /// Kills the server and every process that it has made (`kill -9`), as a power failure would,
    /// but for what the system still keeps in memory for the disk. The data folder stays.
    ///
    /// # Errors
    ///
    /// When the server is not running.
    pub fn kill(&mut self) -> Result<(), Error> {
        self.process.kill()
    }

    /// Makes the server stand still (`SIGSTOP`): its connections stay open, and nothing answers.
    ///
    /// # Errors
    ///
    /// When the server is not running.
    pub fn pause(&self) -> Result<(), Error> {
        self.process.signal("STOP")
    }

    /// Makes the server go on after [`pause`](Self::pause).
    ///
    /// # Errors
    ///
    /// When the server is not running.
    pub fn resume(&self) -> Result<(), Error> {
        self.process.signal("CONT")
    }

    /// Asks the server to shut down without waiting for its clients, and returns when it has. The
    /// data folder stays.
    ///
    /// # Errors
    ///
    /// When the server is not running, or does not stop within 40 s.
    pub fn stop(&mut self) -> Result<(), Error> {
        self.process.end(self.stop)
    }

    /// Starts the server again after [`kill`](Self::kill) or [`stop`](Self::stop), on the same data
    /// and the same port, and returns when it answers.
    ///
    /// # Errors
    ///
    /// When the server is running, or does not start; the error quotes the end of its log.
    pub fn restart(&mut self) -> Result<(), Error> {
        let mut attempt = 1;
        loop {
            let begin = forget_log(self.process.folder());
            begin.map_err(|error| {
                Error::io("cannot note where the log of the restart begins", error)
            })?;
            self.process.run_again()?;
            match (self.wait)(&mut self.process) {
                // A server of another test has the port for a while.
                Err(_) if attempt < RESTARTS && lost_port(&self.process.log()) => {
                    attempt += 1;
                    std::thread::sleep(Duration::from_secs(1));
                }
                restarted => return restarted,
            }
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("name", &self.name)
            .field("port", &self.port)
            .field("process", &self.process)
            .finish_non_exhaustive()
    }
}

fn wait<R: Recipe>(recipe: &R, process: &mut Process, port: u16) -> Result<(), Error> {
    let deadline = Instant::now() + START;
    while !recipe.ready(process.folder(), port) {
        process.check()?;
        if Instant::now() > deadline {
            return Err(process.error(&format!(
                "{} did not answer on port {port} within {} s",
                R::IDENTITY.name,
                START.as_secs()
            )));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// A port that is free now. Someone else may take it before the server does: see [`lost_port`].
pub(crate) fn free_port() -> Result<u16, Error> {
    let [port] = free_ports()?;
    Ok(port)
}

/// The lowest port that is taken for a server.
const LOWEST_PORT: u16 = 12_000;

/// Ports that are free now, each another one.
///
/// They are below those that the kernel gives to clients. A test makes thousands of connections, and one of them
/// would take the port of a server that begins to listen only seconds later, or that is stopped and started again.
pub(crate) fn free_ports<const N: usize>() -> Result<[u16; N], Error> {
    let first_of_clients = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range")
        .ok()
        .and_then(|range| range.split_whitespace().next()?.parse().ok())
        .unwrap_or(32_768);
    let find = || -> std::io::Result<[u16; N]> {
        // Held until all are found.
        let mut listeners = Vec::new();
        let mut ports = [0; N];
        for port in &mut ports {
            let listener = listener_below(first_of_clients)?;
            *port = listener.local_addr()?.port();
            listeners.push(listener);
        }
        Ok(ports)
    };
    find().map_err(|error| Error::io("cannot find a free port on 127.0.0.1", error))
}

/// Listens on a port below this one, or on any if the clients' ports begin too low.
fn listener_below(first_of_clients: u16) -> std::io::Result<TcpListener> {
    let count = u64::from(first_of_clients.saturating_sub(LOWEST_PORT));
    for _ in 0..100 {
        // Each state has another seed. Test programs that run side by side must not try the same ports in turn.
        let random = RandomState::new().build_hasher().finish();
        let Some(offset) = random.checked_rem(count) else {
            break;
        };
        let port = LOWEST_PORT + u16::try_from(offset).unwrap_or_default();
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            Err(error) if error.kind() == ErrorKind::AddrInUse => {}
            bound => return bound,
        }
    }
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
}

/// Tells whether a server that ended says that its port was taken. It speaks English: the
/// watchdog sets `LC_ALL=C`.
fn lost_port(log: &str) -> bool {
    log.contains("Address already in use")
}

/// Tells whether the server in this folder has logged this since it was started. What a server only says once it has bound
/// its port shows that what answers there is no stranger.
pub(crate) fn logged(folder: &Path, text: &str) -> bool {
    let log = std::fs::read(folder.join("log")).unwrap_or_default();
    let begin = std::fs::read_to_string(folder.join(BEGIN)).unwrap_or_default();
    let begin = begin.parse().unwrap_or(0);
    let of_this_run = log.get(begin..).unwrap_or_default();
    String::from_utf8_lossy(of_this_run).contains(text)
}

/// The file with how long the log was when the server was started again.
const BEGIN: &str = "log.begin";

/// Notes that what the server has logged is of an earlier run.
fn forget_log(folder: &Path) -> std::io::Result<()> {
    let length = match std::fs::metadata(folder.join("log")) {
        Ok(log) => log.len(),
        Err(error) if error.kind() == ErrorKind::NotFound => 0,
        Err(error) => return Err(error),
    };
    std::fs::write(folder.join(BEGIN), length.to_string())
}

/// Connects to a port of 127.0.0.1 that should answer at once.
pub(crate) fn connect(port: u16) -> std::io::Result<TcpStream> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let limit = Duration::from_secs(2);
    let stream = TcpStream::connect_timeout(&address, limit)?;
    stream.set_read_timeout(Some(limit))?;
    stream.set_write_timeout(Some(limit))?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// A server of which the first attempts lose their port.
    struct Unlucky {
        losses: AtomicU32,
    }

    impl Recipe for Unlucky {
        const IDENTITY: Identity = Identity::of("unlucky", "nobody", "base-passwd");
        const URL: &'static str = "unlucky://127.0.0.1:{port}/";

        fn launch(&self, _folder: &str, _port: u16) -> Launch {
            let script = match self.losses.load(Ordering::Relaxed) {
                0 => "touch ready; exec sleep 60",
                losses => {
                    self.losses.store(losses - 1, Ordering::Relaxed);
                    "echo Bind on TCP/IP port: Address already in use; exit 1"
                }
            };
            let serve = ["sh", "-c", script].map(str::to_owned).to_vec();
            Launch::of(Vec::new(), serve)
        }

        fn ready(&self, folder: &Path, _port: u16) -> bool {
            folder.join("ready").exists()
        }
    }

    fn unlucky(losses: u32) -> Found<Unlucky> {
        let losses = AtomicU32::new(losses);
        let recipe = Unlucky { losses };
        let version = "1".to_owned();
        Found { recipe, version }
    }

    #[test]
    fn ports_are_none_that_a_client_gets() {
        let client = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let lowest = client.local_addr().expect("its address").port().min(32_768);
        let ports = free_ports::<20>().expect("ports");
        for (n, port) in ports.iter().enumerate() {
            assert!((LOWEST_PORT..lowest).contains(port), "{ports:?}");
            assert!(!ports[..n].contains(port), "{ports:?}");
        }
        let low = listener_below(LOWEST_PORT).expect("a port of a client");
        assert!(low.local_addr().expect("its address").port() >= lowest);
    }

    #[test]
    fn a_lost_port_is_tried_again() {
        let server = Server::start(unlucky(4)).expect("the fifth attempt");
        assert_eq!(
            server.url(),
            format!("unlucky://127.0.0.1:{}/", server.port())
        );
        let error = Server::start(unlucky(5)).expect_err("no attempt");
        assert_eq!(
            error.to_string(),
            "unlucky did not start (status 1); its log ends with:\n  \
             Bind on TCP/IP port: Address already in use"
        );
    }
}
