//! What Aurora DSQL refuses and `PostgreSQL` takes, in front of a real `PostgreSQL`.
//!
//! ```text
//! client ── messages ──> Dsql ──> PostgreSQL     COPY, SAVEPOINT, a temporary table, COLLATE,
//!                                                a script that creates a table and more       0A000
//!                                                COMMIT of more rows or bytes than a
//!                                                transaction takes                             54000
//!                                                each so many COMMITs: a conflict              40001 (OC000)
//!                                                after so many COMMITs the connection ends
//! ```
//!
//! A message that would be refused becomes one that fails in the server with DSQL's code, so that the protocol stays
//! the server's own. Nothing was measured on DSQL: the limits and codes are those of its documentation
//! (<https://docs.aws.amazon.com/aurora-dsql/latest/userguide/CHAP_quotas.html>, and "Concurrency control").

use std::{
    io::{self, Read, Write},
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

/// The most rows that a transaction changes.
pub const MAX_ROWS: usize = 3_000;

/// The most bytes that a transaction changes. Here they are those of the values that are bound.
pub const MAX_BYTES: usize = 10 << 20;

/// The statement that creates what the emulator needs in the database.
pub const SCHEMA: &str = "
    CREATE FUNCTION dsql_refuse(code text, what text) RETURNS void LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION '%', what USING ERRCODE = code; END $$";

/// How often it refuses what it takes at other times.
#[derive(Debug, Clone, Copy)]
pub struct Weather {
    /// Each so many COMMITs meet a conflict; 0 for never.
    pub conflicts: usize,
    /// A connection ends after so many COMMITs; 0 for never.
    pub lives: usize,
}

impl Weather {
    /// It refuses only what it always refuses.
    pub const FAIR: Self = Self {
        conflicts: 0,
        lives: 0,
    };
}

/// A running emulator. Its threads end with the process.
#[derive(Debug)]
pub struct Dsql {
    port: u16,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    commits: AtomicUsize,
    unsupported: AtomicUsize,
    largest: AtomicUsize,
    largest_bytes: AtomicUsize,
}

impl Dsql {
    /// Listens on a free port of 127.0.0.1 for connections to a server.
    ///
    /// # Errors
    ///
    /// If there is no such port.
    pub fn start(server: SocketAddr, weather: Weather) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let counts = Arc::<Counts>::default();
        let shared = Arc::clone(&counts);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let counts = Arc::clone(&shared);
                // A side that breaks by itself is the client being killed.
                thread::spawn(move || serve(client, server, weather, counts));
            }
        });
        Ok(Self { port, counts })
    }

    /// Returns the port to connect to.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns how many COMMITs it has seen.
    pub fn commits(&self) -> usize {
        self.counts.commits.load(Ordering::Relaxed)
    }

    /// Returns how many statements it has refused since DSQL does not have them.
    pub fn unsupported(&self) -> usize {
        self.counts.unsupported.load(Ordering::Relaxed)
    }

    /// Returns how many rows the largest transaction changed that sent its COMMIT.
    pub fn largest(&self) -> usize {
        self.counts.largest.load(Ordering::Relaxed)
    }

    /// Returns how many bytes of values the largest transaction had that sent its COMMIT.
    pub fn largest_bytes(&self) -> usize {
        self.counts.largest_bytes.load(Ordering::Relaxed)
    }
}

fn serve(
    mut client: TcpStream,
    server: SocketAddr,
    weather: Weather,
    counts: Arc<Counts>,
) -> io::Result<()> {
    let mut server = TcpStream::connect(server)?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    // The first message has no kind. A request for TLS is one, and is declined.
    loop {
        let first = read_body(&mut client)?;
        if first.len() == 4 {
            client.write_all(b"N")?;
            continue;
        }
        server.write_all(&message(None, &first))?;
        break;
    }
    let rows = Arc::<AtomicUsize>::default();
    let down = {
        let (rows, client, server) = (Arc::clone(&rows), client.try_clone()?, server.try_clone()?);
        thread::spawn(move || answers(server, client, &rows))
    };
    let _ = requests(&mut client, &mut server, &rows, weather, &counts);
    let _ = client.shutdown(Shutdown::Both);
    let _ = server.shutdown(Shutdown::Both);
    drop(down.join());
    Ok(())
}

/// Passes on what the client sends, until the connection ends.
fn requests(
    client: &mut TcpStream,
    server: &mut TcpStream,
    rows: &AtomicUsize,
    weather: Weather,
    counts: &Counts,
) -> io::Result<()> {
    let (mut lived, mut bytes) = (0, 0);
    loop {
        let (kind, body) = read_message(client)?;
        if kind == b'B' {
            bytes += body.len();
        }
        let text = match kind {
            b'Q' => text(&body).to_owned(),
            // Behind the name of the statement.
            b'P' => text(&body[text(&body).len() + 1..]).to_owned(),
            _ => String::new(),
        };
        let is_commit = text.trim_end_matches(';').eq_ignore_ascii_case("commit");
        let refusal = match is_commit {
            true => {
                let commits = counts.commits.fetch_add(1, Ordering::Relaxed) + 1;
                let changed = rows.swap(0, Ordering::Relaxed);
                counts.largest.fetch_max(changed, Ordering::Relaxed);
                let changed_bytes = std::mem::take(&mut bytes);
                counts
                    .largest_bytes
                    .fetch_max(changed_bytes, Ordering::Relaxed);
                lived += 1;
                if changed > MAX_ROWS {
                    Some(("54000", "transaction row limit exceeded"))
                } else if changed_bytes > MAX_BYTES {
                    Some(("54000", "transaction size limit 10mb exceeded"))
                } else if weather.conflicts > 0 && commits.is_multiple_of(weather.conflicts) {
                    Some((
                        "40001",
                        "change conflicts with another transaction, please retry: (OC000)",
                    ))
                } else {
                    None
                }
            }
            false => unsupported(&text).map(|what| ("0A000", what)),
        };
        if text.to_ascii_uppercase().starts_with("BEGIN") || text.eq_ignore_ascii_case("rollback") {
            rows.store(0, Ordering::Relaxed);
            bytes = 0;
        }
        match refusal {
            None => server.write_all(&message(Some(kind), &body))?,
            Some((code, what)) => {
                let is_unsupported = usize::from(code == "0A000");
                counts
                    .unsupported
                    .fetch_add(is_unsupported, Ordering::Relaxed);
                let refuse = format!("SELECT dsql_refuse('{code}', '{what}')");
                let body = match kind {
                    b'Q' if is_commit => format!("ROLLBACK; {refuse}\0").into_bytes(),
                    // Without the description of a row, which would come before the error.
                    b'Q' => format!(
                        "DO $$ BEGIN PERFORM {}; END $$\0",
                        &refuse["SELECT ".len()..]
                    )
                    .into_bytes(),
                    _ => {
                        let name = self::text(&body).len() + 1;
                        let old = text.len() + 1;
                        let parts = [&body[..name], refuse.as_bytes(), b"\0", &body[name + old..]];
                        parts.concat()
                    }
                };
                server.write_all(&message(Some(kind), &body))?;
            }
        }
        if weather.lives > 0 && lived >= weather.lives && !is_commit {
            return Ok(());
        }
    }
}

/// Passes on what the server answers, and counts the rows that were changed.
fn answers(mut server: TcpStream, mut client: TcpStream, rows: &AtomicUsize) -> io::Result<()> {
    loop {
        let (kind, body) = read_message(&mut server)?;
        if kind == b'C' {
            let tag = text(&body);
            let is_change = ["INSERT", "UPDATE", "DELETE", "MERGE"]
                .iter()
                .any(|it| tag.starts_with(it));
            let changed = tag.rsplit(' ').next().and_then(|it| it.parse().ok());
            if let (true, Some(changed)) = (is_change, changed) {
                rows.fetch_add(changed, Ordering::Relaxed);
            }
        }
        client.write_all(&message(Some(kind), &body))?;
    }
}

/// Returns what DSQL would not take of a statement.
fn unsupported(sql: &str) -> Option<&'static str> {
    let sql = sql.to_ascii_uppercase();
    let begins = |word: &str| sql.trim_start().starts_with(word);
    if begins("COPY") {
        Some("unsupported statement: Copy")
    } else if begins("SAVEPOINT") || begins("RELEASE") || begins("ROLLBACK TO") {
        Some("unsupported statement: Savepoint")
    } else if sql.contains("CREATE TEMP") {
        Some("unsupported statement: temporary table")
    } else if sql.contains(" COLLATE ") {
        Some("unsupported: collation")
    } else if begins("CREATE") && sql.trim_end().trim_end_matches(';').contains(";\n") {
        Some("ddl and dml are not supported in the same transaction")
    } else {
        None
    }
}

/// Returns the text up to the first NUL.
fn text(body: &[u8]) -> &str {
    let end = body.iter().position(|it| *it == 0).unwrap_or(body.len());
    std::str::from_utf8(&body[..end]).unwrap_or_default()
}

fn message(kind: Option<u8>, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).expect("messages are shorter");
    let mut message: Vec<u8> = kind.into_iter().collect();
    message.extend(length.to_be_bytes());
    message.extend(body);
    message
}

fn read_message(from: &mut TcpStream) -> io::Result<(u8, Vec<u8>)> {
    let mut kind = [0];
    from.read_exact(&mut kind)?;
    Ok((kind[0], read_body(from)?))
}

fn read_body(from: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = usize::try_from(u32::from_be_bytes(length)).map_err(io::Error::other)?;
    let mut body = vec![0; length.saturating_sub(4)];
    from.read_exact(&mut body)?;
    Ok(body)
}
