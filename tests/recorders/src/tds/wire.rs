//! Packets and connections: [MS-TDS] sections 2.2.3 and 3.3.

use std::{
    io::{self, Read, Write},
    net::TcpStream,
    sync::Mutex,
};

use super::{
    Shared,
    answer::{Answer, Column, Failure, Tokens, utf16 as to_utf16},
    lock,
    request::{self, Received, Request},
    types::Type,
};

const PACKET: usize = 4096;

/// Talks to one client until it goes.
pub(crate) fn serve(
    mut stream: TcpStream,
    connection: usize,
    shared: &Mutex<Shared>,
) -> io::Result<()> {
    let mut open = 0;
    let mut begun = 0;
    loop {
        let (number, message) = receive(&mut stream)?;
        if number == 0x12 {
            send(&mut stream, &prelogin())?;
            continue;
        }
        let (transaction, request) = request::read(number, &message)
            .unwrap_or_else(|error| (0, Request::Unknown(error.to_string())));
        let received = Received {
            connection,
            transaction,
            request,
        };
        let request = received.request.clone();
        let sent_in = received.transaction;
        let (answer, asks_catalog) = {
            let mut shared = lock(shared);
            let asks_catalog = shared.asking.contains(&connection);
            (shared.receive(received), asks_catalog)
        };
        let mut tokens = Tokens::default();
        match (answer, request) {
            (Some(Answer::HangUp), _) | (_, Request::Unknown(_)) => return Ok(()),
            (Some(Answer::HalfAnswer), _) => {
                tokens.rows(&[Column::new("half", Type::int(4))], &[]);
                tokens.0.truncate(tokens.0.len() / 2);
                return send(&mut stream, &tokens.0);
            }
            (Some(Answer::Silence), _) => continue,
            (Some(answer), _) => told(&mut tokens, &answer, &mut open),
            (None, Request::Login { .. }) => tokens.login(),
            (None, Request::Begin) => {
                begun += 1;
                open = begun;
                tokens.begun(open);
            }
            (None, Request::Commit) if open != 0 && open == sent_in => {
                tokens.committed(open);
                open = 0;
            }
            (None, Request::Rollback) if open != 0 && open == sent_in => {
                tokens.rolled_back(open);
                tokens.done(0, 0);
                if asks_catalog {
                    // The next transaction has its number.
                    begun -= 1;
                }
                open = 0;
            }
            (None, Request::Commit | Request::Rollback | Request::Save(_)) if open == 0 => {
                tokens.failure(&no_transaction());
                tokens.done(2, 0);
            }
            (None, Request::Batch(sql))
                if open == 0
                    && (sql.starts_with("SAVE TRAN") || sql.starts_with("ROLLBACK TRAN")) =>
            {
                tokens.failure(&no_transaction());
                tokens.done(2, 0);
            }
            (None, Request::Batch(sql)) if sql.contains("@@VERSION") => {
                version(&mut tokens, lock(shared).version.as_str(), open != 0);
            }
            (None, Request::Bulk(bulk)) => tokens.done(0x10, bulk.rows.len() as u64),
            (None, Request::Attention) => tokens.done(0x20, 0),
            (None, _) => tokens.done(0x10, 0),
        }
        send(&mut stream, &tokens.0)?;
    }
}

/// Writes what the recorder was told to answer.
fn told(tokens: &mut Tokens, answer: &Answer, open: &mut u64) {
    match answer {
        Answer::Failure(failure) => {
            if failure.rolls_back && *open != 0 {
                tokens.rolled_back(*open);
                *open = 0;
            }
            tokens.failure(failure);
            tokens.done(2, 0);
        }
        Answer::Rows { columns, rows } => tokens.rows(columns, rows),
        Answer::Done(rows) => tokens.done(0x10, *rows),
        Answer::Several(answers) => {
            for (number, answer) in answers.iter().enumerate() {
                if number > 0 {
                    tokens.more();
                }
                told(tokens, answer, open);
            }
        }
        Answer::Uncounted => tokens.done(0, 0),
        Answer::Silence | Answer::HangUp | Answer::HalfAnswer => {
            unreachable!("a connection's end is no part of an answer")
        }
    }
}

/// The numbers that SQL Server has for each case differ; a client only sees an error.
fn no_transaction() -> Failure {
    Failure {
        number: 3902,
        class: 16,
        message: "there is no transaction".to_owned(),
        rolls_back: false,
    }
}

/// `SELECT @@TRANCOUNT, @@VERSION`.
fn version(tokens: &mut Tokens, version: &str, open: bool) {
    let columns = [
        Column::new("", Type::int(4)),
        Column::new("", Type::nvarchar(300)),
    ];
    let row = vec![
        Some(i32::from(open).to_le_bytes().to_vec()),
        Some(to_utf16(version)),
    ];
    tokens.rows(&columns, &[row]);
}

/// PRELOGIN: a version, and that there is no encryption.
fn prelogin() -> Vec<u8> {
    let mut message = vec![0, 0, 11, 0, 6, 1, 0, 17, 0, 1, 0xff];
    message.extend([16, 0, 0x03, 0xe8, 0, 0]);
    message.push(2);
    message
}

/// Returns the type and the content of the next message, of as many packets as it takes.
fn receive(stream: &mut TcpStream) -> io::Result<(u8, Vec<u8>)> {
    let mut message = Vec::new();
    loop {
        let mut header = [0; 8];
        stream.read_exact(&mut header)?;
        let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let start = message.len();
        let Some(length) = length.checked_sub(header.len()) else {
            return Err(wrong("a packet shorter than its header"));
        };
        message.resize(start + length, 0);
        stream.read_exact(&mut message[start..])?;
        if header[1] & 1 != 0 {
            return Ok((header[0], message));
        }
    }
}

fn send(stream: &mut TcpStream, message: &[u8]) -> io::Result<()> {
    let mut chunks = message.chunks(PACKET - 8).peekable();
    let mut number: u8 = 0;
    while let Some(chunk) = chunks.next() {
        let last = u8::from(chunks.peek().is_none());
        let length = u16::try_from(chunk.len() + 8).map_err(|_| wrong("a packet too long"))?;
        number = number.wrapping_add(1);
        let [high, low] = length.to_be_bytes();
        stream.write_all(&[4, last, high, low, 0, 0, number, 0])?;
        stream.write_all(chunk)?;
    }
    stream.flush()
}

pub(crate) fn wrong(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

pub(crate) fn utf16(bytes: &[u8]) -> String {
    let units = bytes.chunks_exact(2);
    let units: Vec<_> = units
        .map(|unit| u16::from_le_bytes([unit[0], unit[1]]))
        .collect();
    String::from_utf16_lossy(&units)
}

/// Reads a message from its beginning.
pub(crate) struct Reader<'a> {
    message: &'a [u8],
    position: usize,
}

macro_rules! number {
    ($type:ident) => {
        pub(crate) fn $type(&mut self) -> io::Result<$type> {
            let mut bytes = [0; size_of::<$type>()];
            bytes.copy_from_slice(self.bytes(size_of::<$type>())?);
            Ok($type::from_le_bytes(bytes))
        }
    };
}

impl<'a> Reader<'a> {
    pub(crate) const fn new(message: &'a [u8]) -> Self {
        Self {
            message,
            position: 0,
        }
    }

    number!(u8);
    number!(u16);
    number!(u32);
    number!(u64);

    pub(crate) const fn position(&self) -> usize {
        self.position
    }

    pub(crate) fn since(&self, start: usize) -> &'a [u8] {
        &self.message[start..self.position]
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.position == self.message.len()
    }

    pub(crate) fn seek(&mut self, position: usize) -> io::Result<()> {
        if position > self.message.len() {
            return Err(wrong("the message ends too soon"));
        }
        self.position = position;
        Ok(())
    }

    pub(crate) fn skip(&mut self, bytes: usize) -> io::Result<()> {
        self.bytes(bytes).map(drop)
    }

    pub(crate) fn bytes(&mut self, length: usize) -> io::Result<&'a [u8]> {
        let start = self.position;
        self.seek(start + length)?;
        Ok(&self.message[start..self.position])
    }

    pub(crate) fn utf16(&mut self, characters: usize) -> io::Result<String> {
        self.bytes(characters * 2).map(utf16)
    }

    pub(crate) fn rest_utf16(&mut self) -> String {
        let rest = &self.message[self.position..];
        self.position = self.message.len();
        utf16(rest)
    }
}
