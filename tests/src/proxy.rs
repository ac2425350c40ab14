//! A proxy in front of a database server, whose connections break at a byte that the test chooses.
//!
//! ```text
//! client ──up──> proxy ──> server        Cut      both ends close
//!        <─down─       <──               Swallow  no more answers, though the server hears all
//!                                        Hold     the client is gone, and what it sent last comes late
//!                                        Silence  nothing passes any more, and nobody is told
//! ```
//!
//! Bytes are counted from the beginning of a connection, in each direction. A conversation that is
//! repeated has the same bytes at the same places, so what [`Proxy::traffic`] has counted once says
//! where to break the next one.

use std::{
    collections::VecDeque,
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
    task::JoinHandle,
};

/// How long both sides are silent before a connection that swallows answers is closed, once an answer was swallowed:
/// the server has then done what it was last told.
const SILENCE: Duration = Duration::from_millis(250);

/// How long both sides are silent before it is closed although nothing was swallowed: nobody waits for ever.
const NO_ANSWER: Duration = Duration::from_secs(30);

/// What becomes of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// So many bytes arrive, and then both ends are closed.
    Cut(At),
    /// So many bytes of answers arrive at the client, and no more; the server gets all that the
    /// client sends. When it has answered that, and both have become silent, both ends are closed.
    Swallow(u64),
    /// So many bytes of the client arrive. What it sends next is held back, and its end closed. The
    /// server knows of nothing until [`Proxy::release`] lets it have the rest.
    Hold(u64),
    /// The same of COMMIT and what follows, wherever that comes.
    HoldCommit,
    /// From COMMIT on nothing passes in either direction, and nothing is closed, as where a network drops all packets.
    SilenceAtCommit,
    /// The same, but the server gets the COMMIT.
    SilenceAfterCommit,
}

/// A place in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// After so many bytes of the client.
    Up(u64),
    /// After so many bytes of the server.
    Down(u64),
    /// After so many bytes of the client's COMMIT, wherever that comes: what is said before it may be
    /// longer or shorter than it was, by the names of statements.
    Commit(u64),
}

/// What has passed over a connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes of the client.
    pub up: u64,
    /// Bytes of the server.
    pub down: u64,
    /// Where the client's last COMMIT began: the bytes in both directions before it.
    pub commit: Option<(u64, u64)>,
    /// Where it ended, or what has passed of it.
    pub commit_end: u64,
    /// Whether all of it has passed.
    pub commits: bool,
}

/// Returns where COMMIT begins in a packet. What comes with it stands before it, and both protocols have
/// five bytes before the text: PostgreSQL `Q` and the length, MySQL the length, a number and `\x03`.
///
/// Another text may be looked for in its place: see [`Proxy::look_for`].
fn commit_in(packet: &[u8], text: &str) -> Option<usize> {
    let text = packet
        .windows(text.len())
        .position(|word| word == text.as_bytes())?;
    Some(text.saturating_sub(5))
}

/// A running proxy. Dropping it closes all its connections.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
    released: watch::Sender<bool>,
    accepting: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    /// Each connection goes to the next one.
    servers: Vec<SocketAddr>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    faults: VecDeque<Fault>,
    /// What becomes of connections for which no fault was planned.
    always: Option<Fault>,
    traffic: Vec<Traffic>,
    /// What is looked for in the place of COMMIT.
    text: Option<&'static str>,
}

impl State {
    fn text(&self) -> &'static str {
        self.text.unwrap_or("COMMIT")
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Proxy {
    /// Listens on a free port of 127.0.0.1 for connections to a server.
    ///
    /// # Errors
    ///
    /// If there is no such port.
    pub async fn start(server: SocketAddr) -> io::Result<Self> {
        Self::over(vec![server]).await
    }

    /// Does the same for the nodes of a cluster: the first connection goes to the first of them, the second to the
    /// second, and so on, from the first again after the last.
    ///
    /// # Errors
    ///
    /// If there is no such port.
    pub async fn over(servers: Vec<SocketAddr>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        let shared = Arc::new(Shared {
            servers,
            state: Mutex::default(),
        });
        let (released, release) = watch::channel(false);
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared), release));
        Ok(Self {
            port,
            shared,
            released,
            accepting,
        })
    }

    /// Returns the port to connect to.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Plans what becomes of the connections to come, one after the other; of those after them, what
    /// [`always`](Self::always) said.
    pub fn plan(&self, faults: impl IntoIterator<Item = Fault>) {
        let mut state = self.shared.state();
        state.faults = faults.into_iter().collect();
    }

    /// Plans what becomes of every connection to come.
    pub fn always(&self, fault: Fault) {
        let mut state = self.shared.state();
        state.always = Some(fault);
        state.faults.clear();
    }

    /// Plans what becomes of the connections behind those that are planned.
    pub fn after(&self, fault: Fault) {
        self.shared.state().always = Some(fault);
    }

    /// Looks for this text of the client, wherever faults and traffic speak of COMMIT.
    pub fn look_for(&self, text: &'static str) {
        self.shared.state().text = Some(text);
    }

    /// Lets the bytes through that were held back, and all that will be.
    pub fn release(&self) {
        self.released.send_replace(true);
    }

    /// Returns what has passed over each connection so far, in the order in which they were made.
    pub fn traffic(&self) -> Vec<Traffic> {
        self.shared.state().traffic.clone()
    }

    /// Returns what has passed over the connection made last.
    pub fn last_traffic(&self) -> Traffic {
        self.traffic().last().copied().unwrap_or_default()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>, release: watch::Receiver<bool>) {
    // Dropped with this task, and then it ends them.
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let (fault, number) = {
            let mut state = shared.state();
            let always = state.always.unwrap_or(Fault::None);
            let fault = state.faults.pop_front().unwrap_or(always);
            state.traffic.push(Traffic::default());
            (fault, state.traffic.len() - 1)
        };
        let connection = Connection {
            shared: Arc::clone(&shared),
            number,
            release: release.clone(),
        };
        connections.spawn(async move {
            // A side that breaks by itself is the server being killed, or the client.
            let _ = connection.run(client, fault).await;
        });
        while connections.try_join_next().is_some() {}
    }
}

/// Why bytes no longer go in a direction.
enum End {
    /// The side that they came from has closed.
    Closed,
    /// The limit; these bytes came behind it.
    Reached(Vec<u8>),
}

/// How far bytes go in a direction.
#[derive(Clone, Copy)]
enum Limit {
    None,
    /// Up to so many: it ends with the last of them.
    After(u64),
    /// Up to so many: it ends with the first one behind them.
    Before(u64),
    /// Up to COMMIT, and so many of it: it ends with the last of them.
    Commit(u64),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Up,
    Down,
}

struct Connection {
    shared: Arc<Shared>,
    number: usize,
    release: watch::Receiver<bool>,
}

impl Connection {
    async fn run(mut self, client: TcpStream, fault: Fault) -> io::Result<()> {
        let server =
            TcpStream::connect(self.shared.servers[self.number % self.shared.servers.len()])
                .await?;
        // Otherwise a small packet may wait for the answer to the one before it.
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let (mut from_client, mut to_client) = client.into_split();
        let (mut from_server, mut to_server) = server.into_split();
        match fault {
            Fault::None => {
                self.copy(
                    &mut from_client,
                    &mut to_server,
                    &mut from_server,
                    &mut to_client,
                )
                .await
            }
            Fault::Cut(at) => {
                let (up, down) = match at {
                    At::Up(bytes) => (Limit::After(bytes), Limit::None),
                    At::Down(bytes) => (Limit::None, Limit::After(bytes)),
                    At::Commit(bytes) => (Limit::Commit(bytes), Limit::None),
                };
                tokio::select! {
                    end = self.pump(Direction::Up, &mut from_client, &mut to_server, up) => end?,
                    end = self.pump(Direction::Down, &mut from_server, &mut to_client, down) => end?,
                };
                Ok(())
            }
            Fault::Swallow(bytes) => {
                let up = self.pump(Direction::Up, &mut from_client, &mut to_server, Limit::None);
                let swallowed = AtomicU64::new(0);
                let down = async {
                    let limit = Limit::After(bytes);
                    let end = self
                        .pump(Direction::Down, &mut from_server, &mut to_client, limit)
                        .await?;
                    let End::Reached(behind) = end else {
                        return io::Result::Ok(());
                    };
                    swallowed.fetch_add(behind.len() as u64, Ordering::Relaxed);
                    let mut buffer = vec![0; 1 << 14];
                    loop {
                        match from_server.read(&mut buffer).await? {
                            0 => return Ok(()),
                            read => swallowed.fetch_add(read as u64, Ordering::Relaxed),
                        };
                    }
                };
                tokio::select! {
                    end = up => drop(end?),
                    end = down => end?,
                    () = self.silence(bytes, &swallowed) => {}
                }
                Ok(())
            }
            Fault::Hold(_)
            | Fault::HoldCommit
            | Fault::SilenceAtCommit
            | Fault::SilenceAfterCommit => {
                let limit = match fault {
                    Fault::Hold(bytes) => Limit::Before(bytes),
                    _ => Limit::Commit(0),
                };
                let up = self.pump(Direction::Up, &mut from_client, &mut to_server, limit);
                let down = self.pump(
                    Direction::Down,
                    &mut from_server,
                    &mut to_client,
                    Limit::None,
                );
                let held = tokio::select! {
                    end = up => match end? {
                        End::Reached(held) => held,
                        End::Closed => return Ok(()),
                    },
                    _ = down => return Ok(()),
                };
                if fault == Fault::SilenceAfterCommit {
                    to_server.write_all(&held).await?;
                }
                if matches!(fault, Fault::SilenceAtCommit | Fault::SilenceAfterCommit) {
                    return std::future::pending().await;
                }
                drop((from_client, to_client));
                let released = self.release.wait_for(|released| *released).await;
                released.map_err(io::Error::other)?;
                to_server.write_all(&held).await?;
                to_server.shutdown().await?;
                // Until the server has taken all of it in and closes.
                tokio::io::copy(&mut from_server, &mut tokio::io::sink()).await?;
                Ok(())
            }
        }
    }

    /// Both directions, until both are closed.
    async fn copy(
        &self,
        from_client: &mut OwnedReadHalf,
        to_server: &mut OwnedWriteHalf,
        from_server: &mut OwnedReadHalf,
        to_client: &mut OwnedWriteHalf,
    ) -> io::Result<()> {
        tokio::try_join!(
            self.pump(Direction::Up, from_client, to_server, Limit::None),
            self.pump(Direction::Down, from_server, to_client, Limit::None),
        )?;
        Ok(())
    }

    /// Copies and counts up to the limit.
    async fn pump(
        &self,
        direction: Direction,
        from: &mut OwnedReadHalf,
        to: &mut OwnedWriteHalf,
        limit: Limit,
    ) -> io::Result<End> {
        let (mut left, eager) = match limit {
            Limit::None => (u64::MAX, false),
            Limit::Commit(_) => (u64::MAX, true),
            Limit::After(bytes) => (bytes, true),
            Limit::Before(bytes) => (bytes, false),
        };
        let mut buffer = vec![0; 1 << 14];
        loop {
            if left == 0 && eager {
                return Ok(End::Reached(Vec::new()));
            }
            let read = from.read(&mut buffer).await?;
            if read == 0 {
                to.shutdown().await?;
                return Ok(End::Closed);
            }
            let text = self.shared.state().text();
            if let Limit::Commit(bytes) = limit
                && let Some(begin) = commit_in(&buffer[..read], text)
            {
                left = begin as u64 + bytes;
            }
            let passing = usize::try_from(left).map_or(read, |left| left.min(read));
            self.count(direction, &buffer[..read], passing as u64);
            to.write_all(&buffer[..passing]).await?;
            if passing < read {
                return Ok(End::Reached(buffer[passing..read].to_vec()));
            }
            left -= passing as u64;
        }
    }

    fn count(&self, direction: Direction, packet: &[u8], passing: u64) {
        let mut state = self.shared.state();
        let text = state.text();
        let traffic = &mut state.traffic[self.number];
        match direction {
            Direction::Down => traffic.down += passing,
            Direction::Up => {
                let commit = commit_in(packet, text);
                if let Some(begin) = commit {
                    traffic.commit = Some((traffic.up + begin as u64, traffic.down));
                    traffic.commits = passing == packet.len() as u64;
                }
                traffic.up += passing;
                if commit.is_some() {
                    traffic.commit_end = traffic.up;
                }
            }
        }
    }

    /// Returns when so many bytes of answers have come, another one was swallowed, and then no more were counted for a
    /// while. A COMMIT may take longer than that while: its answer is what tells that the server has done it.
    async fn silence(&self, answers: u64, swallowed: &AtomicU64) {
        let mut before = None;
        let mut since = Instant::now();
        loop {
            let now = self.shared.state().traffic[self.number];
            let gone = swallowed.load(Ordering::Relaxed);
            if before.replace((now, gone)) != Some((now, gone)) {
                since = Instant::now();
            } else if now.down >= answers && (gone > 0 || since.elapsed() >= NO_ANSWER) {
                return;
            }
            tokio::time::sleep(SILENCE).await;
        }
    }
}
