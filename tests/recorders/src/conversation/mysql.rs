//! MySQL's protocol from the server's side: no TLS, any password, rows of one text.
//!
//! # References
//!
//! - [Client/Server Protocol](https://dev.mysql.com/doc/dev/mysql-server/latest/PAGE_PROTOCOL.html)

use std::{
    collections::HashMap,
    io::{self, Read, Write},
    net::TcpStream,
    sync::Mutex,
};

use super::{
    Conversation, Refusal,
    session::{Reply, Session, Transaction, Value, first_word},
};

/// Capabilities: FOUND_ROWS, CONNECT_WITH_DB, PROTOCOL_41, TRANSACTIONS, SECURE_CONNECTION, MULTI_STATEMENTS,
/// MULTI_RESULTS, PLUGIN_AUTH. Without DEPRECATE_EOF, columns and rows end with EOF packets.
const CAPABILITIES: u32 = 0x2 | 0x8 | 0x200 | 0x2000 | 0x8000 | 0x1_0000 | 0x2_0000 | 0x8_0000;

const PLUGIN: &[u8] = b"mysql_native_password\0";

/// `utf8mb4_general_ci`.
const CHARSET: u8 = 45;

const VAR_STRING: u8 = 0xfd;

/// The packets of one answer.
struct Out {
    bytes: Vec<u8>,
    sequence: u8,
    status: u16,
}

impl Out {
    fn packet(&mut self, body: &[u8]) {
        let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
        self.bytes.extend_from_slice(&length.to_le_bytes()[..3]);
        self.bytes.push(self.sequence);
        self.bytes.extend_from_slice(body);
        self.sequence = self.sequence.wrapping_add(1);
    }

    fn ok(&mut self, rows: u64) {
        let mut body = vec![0];
        // Fewer than 251 in each test, or by eight bytes.
        match u8::try_from(rows) {
            Ok(rows) if rows < 0xfb => body.push(rows),
            _ => {
                body.push(0xfe);
                body.extend_from_slice(&rows.to_le_bytes());
            }
        }
        body.push(0);
        body.extend_from_slice(&self.status.to_le_bytes());
        body.extend_from_slice(&[0; 2]);
        self.packet(&body);
    }

    fn eof(&mut self) {
        let [low, high] = self.status.to_le_bytes();
        self.packet(&[0xfe, 0, 0, low, high]);
    }

    fn refuse(&mut self, refusal: Refusal) {
        let mut body = vec![0xff];
        body.extend_from_slice(&refusal.number.to_le_bytes());
        body.push(b'#');
        body.extend_from_slice(refusal.sqlstate.as_bytes());
        body.extend_from_slice(refusal.message.as_bytes());
        self.packet(&body);
    }

    fn column(&mut self) {
        let mut body = Vec::new();
        for text in ["def", "", "", "", "1", "1"] {
            body.extend(text_with_length(text));
        }
        body.extend_from_slice(&[0x0c, CHARSET, 0, 0xff, 0, 0, 0, VAR_STRING, 0, 0, 0, 0, 0]);
        self.packet(&body);
    }

    fn rows(&mut self, rows: &[Vec<Value>], is_binary: bool) {
        self.packet(&[1]);
        self.column();
        self.eof();
        for row in rows {
            let mut body = Vec::new();
            if is_binary {
                // No value is NULL.
                body.extend_from_slice(&[0, 0]);
            }
            if let Some(Value::Text(text)) = row.first() {
                body.extend(text_with_length(text));
            }
            self.packet(&body);
        }
        self.eof();
    }
}

fn text_with_length(text: &str) -> Vec<u8> {
    let length = u8::try_from(text.len()).unwrap_or(0);
    let mut bytes = vec![length];
    bytes.extend(text.bytes().take(usize::from(length)));
    bytes
}

/// `SERVER_MORE_RESULTS_EXISTS`: the answer to another statement of the script follows.
const MORE_RESULTS: u16 = 8;

impl Session<'_> {
    /// `SERVER_STATUS_AUTOCOMMIT`, and whether a transaction is open.
    const fn status(&self) -> u16 {
        match self.transaction {
            Transaction::None => 2,
            _ => 3,
        }
    }
}

/// Serves one client until it goes.
pub(super) fn serve(mut stream: TcpStream, shared: &Mutex<Conversation>) -> io::Result<()> {
    // A failed statement leaves the transaction open.
    let mut session = Session::new(shared, false);
    let mut out = Out {
        bytes: Vec::new(),
        sequence: 0,
        status: 2,
    };
    out.packet(&greeting(session.version()));
    stream.write_all(&out.bytes)?;
    let (_, sequence) = read_packet(&mut stream)?;
    let mut out = Out {
        bytes: Vec::new(),
        sequence: sequence.wrapping_add(1),
        status: 2,
    };
    out.ok(0);
    stream.write_all(&out.bytes)?;

    let mut statements = HashMap::<u32, String>::new();
    loop {
        let (packet, sequence) = read_packet(&mut stream)?;
        let (kind, body) = packet.split_first().unwrap_or((&0, &[]));
        let mut out = Out {
            bytes: Vec::new(),
            sequence: sequence.wrapping_add(1),
            status: 2,
        };
        let reply = match kind {
            // COM_QUIT
            1 => return Ok(()),
            // COM_QUERY: one statement or several, of which the first that fails is the last.
            3 => {
                let script = String::from_utf8_lossy(body);
                let mut statements = script.split("; ").peekable();
                loop {
                    let sql = statements.next().unwrap_or_default();
                    let reply = session.receive(sql, &[]);
                    let goes_on = statements.peek().is_some();
                    if !goes_on || !matches!(reply, Reply::Done(_) | Reply::Rows(_)) {
                        break Some((reply, false));
                    }
                    out.status = session.status() | MORE_RESULTS;
                    match reply {
                        Reply::Rows(rows) => out.rows(&rows, false),
                        _ => out.ok(0),
                    }
                }
            }
            // COM_PING
            0x0e => Some((Reply::Done(0), false)),
            // COM_STMT_PREPARE
            0x16 => {
                let sql = String::from_utf8_lossy(body).into_owned();
                let number = u32::try_from(statements.len() + 1).unwrap_or(u32::MAX);
                prepared(&mut out, &sql, number);
                statements.insert(number, sql);
                None
            }
            // COM_STMT_EXECUTE
            0x17 => {
                let number = body.first_chunk().map_or(0, |it| u32::from_le_bytes(*it));
                let sql = statements.get(&number).cloned().unwrap_or_default();
                let values = values(body.get(9..).unwrap_or_default(), placeholders(&sql));
                Some((session.receive(&sql, &values), true))
            }
            // COM_STMT_RESET
            0x1a => Some((Reply::Done(0), false)),
            // COM_SET_OPTION: multi-statements, or none.
            0x1b => {
                out.eof();
                None
            }
            // COM_RESET_CONNECTION
            0x1f => {
                session.end();
                statements.clear();
                Some((Reply::Done(0), false))
            }
            // COM_STMT_CLOSE, which has no answer
            _ => None,
        };
        out.status = session.status();
        match reply {
            Some((Reply::Done(rows), _)) => out.ok(rows),
            Some((Reply::Rows(rows), is_binary)) => out.rows(&rows, is_binary),
            Some((Reply::Refused(refusal), _)) => out.refuse(refusal),
            Some((Reply::End | Reply::Copy, _)) => return Ok(()),
            None => {}
        }
        stream.write_all(&out.bytes)?;
    }
}

fn greeting(version: &str) -> Vec<u8> {
    let [a, b, c, d] = CAPABILITIES.to_le_bytes();
    let mut body = vec![10];
    body.extend_from_slice(version.as_bytes());
    body.extend_from_slice(&[0, 1, 0, 0, 0]);
    body.extend_from_slice(b"01234567\0");
    body.extend_from_slice(&[a, b, CHARSET, 2, 0, c, d, 21]);
    body.extend_from_slice(&[0; 10]);
    body.extend_from_slice(b"0123456789ab\0");
    body.extend_from_slice(PLUGIN);
    body
}

/// Answers that a statement is prepared, with its parameters and the column of its answer.
fn prepared(out: &mut Out, sql: &str, number: u32) {
    let parameters = placeholders(sql);
    let columns = u16::from(first_word(sql) == "SELECT");
    let mut body = vec![0];
    body.extend_from_slice(&number.to_le_bytes());
    body.extend_from_slice(&columns.to_le_bytes());
    body.extend_from_slice(&u16::try_from(parameters).unwrap_or(u16::MAX).to_le_bytes());
    body.extend_from_slice(&[0; 3]);
    out.packet(&body);
    for count in [parameters, usize::from(columns)] {
        (0..count).for_each(|_| out.column());
        if count > 0 {
            out.eof();
        }
    }
}

fn placeholders(sql: &str) -> usize {
    sql.matches('?').count()
}

/// Returns the values of an execution: which are NULL, their types, and the others' bytes.
fn values(body: &[u8], count: usize) -> Vec<Option<Vec<u8>>> {
    let (nulls, rest) = body.split_at(count.div_ceil(8).min(body.len()));
    let types = rest.get(1..1 + 2 * count).unwrap_or_default();
    let mut rest = rest.get(1 + 2 * count..).unwrap_or_default();
    let values = types.chunks(2).enumerate().map(|(at, kind)| {
        if nulls[at / 8] & (1 << (at % 8)) != 0 {
            return None;
        }
        let (skipped, length) = match (kind[0], rest.first()?) {
            (1, _) => (0, 1),
            (2, _) => (0, 2),
            (3 | 4, _) => (0, 4),
            (5 | 8, _) => (0, 8),
            (_, 0xfc) => (
                3,
                usize::from(u16::from_le_bytes([*rest.get(1)?, *rest.get(2)?])),
            ),
            (_, length) => (1, usize::from(*length)),
        };
        let value = rest.get(skipped..skipped + length)?.to_vec();
        rest = &rest[skipped + length..];
        Some(value)
    });
    values.collect()
}

/// Reads a packet, and its number.
fn read_packet(stream: &mut TcpStream) -> io::Result<(Vec<u8>, u8)> {
    let mut head = [0; 4];
    stream.read_exact(&mut head)?;
    let [a, b, c, sequence] = head;
    let length = usize::try_from(u32::from_le_bytes([a, b, c, 0])).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok((body, sequence))
}
