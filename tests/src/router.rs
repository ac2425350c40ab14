//! A router before a MySQL or MariaDB server and its standby, which sends what only reads to the standby.
//!
//! ProxySQL does that by the rules that its documentation shows, `^SELECT.*FOR UPDATE` to the writer and `^SELECT` to the
//! readers, for users whose `transaction_persistent` is 0: transactions are no exception. The session's settings are those of
//! both servers. Its statements are those of one of them, so their numbers are told apart by [`STANDBY`].

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// A bit that the servers set in no number of a prepared statement here: they count from 1.
const STANDBY: u32 = 1 << 31;

/// The length of a packet, three bytes, and its number.
const HEADER: usize = 4;
/// Behind a packet of this length comes its rest.
const FULL: usize = 0xff_ff_ff;

/// A running router. Dropping it closes all its connections.
#[derive(Debug)]
pub struct Router {
    port: u16,
    accepting: JoinHandle<()>,
}

impl Router {
    /// Listens on a free port of 127.0.0.1, for users without a password.
    ///
    /// # Errors
    ///
    /// If there is no such port.
    pub async fn start(primary: SocketAddr, standby: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        let accepting = tokio::spawn(async move {
            // Dropped with this task, and then it ends them.
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                connections.spawn(async move {
                    // Whoever closes first ends it.
                    let _ = route(client, primary, standby).await;
                });
                while connections.try_join_next().is_some() {}
            }
        });
        Ok(Self { port, accepting })
    }

    /// Returns the port to connect to.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Where a command goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Primary,
    Standby,
    /// The session is to be the same on both. The primary's answer is the client's.
    Both,
}

async fn route(client: TcpStream, primary: SocketAddr, standby: SocketAddr) -> io::Result<()> {
    let [mut client, mut primary, mut standby] = [
        Packets::of(client)?,
        Packets::of(TcpStream::connect(primary).await?)?,
        Packets::of(TcpStream::connect(standby).await?)?,
    ];
    let greeting = primary.next().await?;
    client.send(&greeting).await?;
    let login = client.next().await?;
    primary.send(&login).await?;
    loop {
        let answer = primary.next().await?;
        client.send(&answer).await?;
        match answer[HEADER] {
            0x00 => break,
            // `caching_sha2_password` says that it knows the user, and goes on by itself.
            0x01 => {}
            // Another method than the client's: it answers.
            0xfe => primary.send(&client.next().await?).await?,
            _ => return Ok(()),
        }
    }
    standby.next().await?;
    standby.send(&login).await?;
    loop {
        let answer = standby.next().await?;
        match answer[HEADER] {
            0x00 => break,
            0x01 => {}
            // Without a password the answer is empty under every method.
            0xfe => standby.send(&[0, 0, 0, answer[3] + 1]).await?,
            _ => return Ok(()),
        }
    }
    let mut is_preparing = false;
    loop {
        tokio::select! {
            command = client.next() => {
                let mut command = command?;
                match way(&mut command) {
                    Way::Primary => primary.send(&command).await?,
                    Way::Standby => {
                        is_preparing = command[HEADER] == 0x16;
                        standby.send(&command).await?;
                    }
                    Way::Both => {
                        standby.send(&command).await?;
                        // One packet answers each statement that sets something, and none a farewell.
                        while command[HEADER] != 0x01 && has_more(&standby.next().await?) {}
                        primary.send(&command).await?;
                    }
                }
            }
            answer = primary.next() => client.send(&answer?).await?,
            answer = standby.next() => {
                let mut answer = answer?;
                if std::mem::take(&mut is_preparing) && answer[HEADER] == 0x00 {
                    number(&mut answer, |number| number | STANDBY);
                }
                client.send(&answer).await?;
            }
        }
    }
}

/// Returns whether another packet answers the next statement of the same command: `SERVER_MORE_RESULTS_EXISTS` in the status of
/// an OK, behind two numbers of one byte.
fn has_more(answer: &[u8]) -> bool {
    matches!(answer.get(HEADER..), Some([0x00, _, _, status, ..]) if status & 0x08 != 0)
}

/// Returns where a command goes, with the number of its statement there.
fn way(command: &mut [u8]) -> Way {
    // The rest of a long packet, or of a file: nothing of the kind is sent here.
    if command[3] != 0 || command.len() <= HEADER {
        return Way::Primary;
    }
    match command[HEADER] {
        // COM_QUIT, COM_INIT_DB, COM_CHANGE_USER, COM_RESET_CONNECTION.
        0x01 | 0x02 | 0x11 | 0x1f => Way::Both,
        // COM_QUERY, COM_STMT_PREPARE.
        0x03 | 0x16 => {
            // Behind the command a client may send how many attributes the query has.
            let text = String::from_utf8_lossy(&command[HEADER + 1..]);
            let text = text.trim_start_matches(|letter: char| !letter.is_ascii_alphabetic());
            let text = text.trim_end().to_ascii_uppercase();
            if text.starts_with("SET ") && command[HEADER] == 0x03 {
                Way::Both
            } else if text.starts_with("SELECT") && !text.ends_with("FOR UPDATE") {
                Way::Standby
            } else {
                Way::Primary
            }
        }
        // COM_STMT_EXECUTE, COM_STMT_SEND_LONG_DATA, COM_STMT_CLOSE, COM_STMT_RESET, COM_STMT_FETCH.
        0x17 | 0x18 | 0x19 | 0x1a | 0x1c => {
            let mut is_of_standby = false;
            number(command, |number| {
                is_of_standby = number & STANDBY != 0;
                number & !STANDBY
            });
            match is_of_standby {
                true => Way::Standby,
                false => Way::Primary,
            }
        }
        _ => Way::Primary,
    }
}

/// Changes the number of a prepared statement, four bytes behind the packet's first.
fn number(packet: &mut [u8], change: impl FnOnce(u32) -> u32) {
    let Some(place) = packet.get_mut(HEADER + 1..) else {
        return;
    };
    if let Some(place) = place.first_chunk_mut::<4>() {
        *place = change(u32::from_le_bytes(*place)).to_le_bytes();
    }
}

/// One side's packets.
struct Packets {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Packets {
    fn of(stream: TcpStream) -> io::Result<Self> {
        // Otherwise a small packet may wait for the answer to the one before it.
        stream.set_nodelay(true)?;
        let read = Vec::new();
        Ok(Self { stream, read })
    }

    /// Returns the next packet with its header, and with its rest if it is a long one. What was read when this is dropped
    /// stays for the next call.
    async fn next(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if let Some(length) = self.complete() {
                return Ok(self.read.drain(..length).collect());
            }
            if self.stream.read_buf(&mut self.read).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    fn complete(&self) -> Option<usize> {
        let mut end = 0;
        loop {
            let header = self.read.get(end..)?.first_chunk::<HEADER>()?;
            let length = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
            end += HEADER + length;
            if length < FULL {
                return (end <= self.read.len()).then_some(end);
            }
        }
    }

    async fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        self.stream.write_all(packet).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(kind: u8, body: &[u8]) -> Vec<u8> {
        let length = u8::try_from(body.len() + 1).expect("it is short");
        [&[length, 0, 0, 0, kind], body].concat()
    }

    #[test]
    fn what_only_reads_goes_to_the_standby() {
        for (text, expected) in [
            ("SELECT 1", Way::Standby),
            ("\0\x01SELECT 1", Way::Standby),
            ("select id from t lock in share mode", Way::Standby),
            ("SELECT id FROM t FOR UPDATE", Way::Primary),
            ("INSERT INTO t SELECT 1", Way::Primary),
            ("BEGIN", Way::Primary),
            ("SET time_zone = '+00:00'", Way::Both),
        ] {
            assert_eq!(way(&mut command(0x03, text.as_bytes())), expected, "{text}");
        }
    }

    #[test]
    fn each_statement_of_a_command_has_an_answer() {
        assert!(has_more(&command(0x00, &[0, 0, 0x0a, 0, 0, 0])));
        assert!(!has_more(&command(0x00, &[0, 0, 0x02, 0, 0, 0])));
        // An error ends the command.
        assert!(!has_more(&command(0xff, &[0x20, 0x04, 0x08])));
    }

    #[test]
    fn a_statement_of_the_standby_has_its_number_there() {
        let mut prepared = command(0x00, &7_u32.to_le_bytes());
        number(&mut prepared, |number| number | STANDBY);
        let told: [u8; 4] = prepared[5..9].try_into().expect("four bytes");
        let mut execute = command(0x17, &told);
        assert_eq!(way(&mut execute), Way::Standby);
        assert_eq!(execute[5..9], 7_u32.to_le_bytes());
        let mut of_primary = command(0x17, &7_u32.to_le_bytes());
        assert_eq!(way(&mut of_primary), Way::Primary);
        assert_eq!(of_primary[5..9], 7_u32.to_le_bytes());
    }
}
