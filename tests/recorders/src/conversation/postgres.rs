//! PostgreSQL's protocol, version 3, from the server's side: no TLS, no password.
//!
//! # References
//!
//! - [Message formats](https://www.postgresql.org/docs/current/protocol-message-formats.html)

use std::{
    collections::HashMap,
    io::{self, Read, Write},
    net::TcpStream,
    sync::Mutex,
};

use super::{
    BIGINT, Column, Conversation, Refusal, TEXT, UUID, codes,
    session::{Reply, Session, Transaction, Value, first_word, key_of, table_and_columns},
};

const OID: u32 = 26;
const TEXT_ARRAY: u32 = 1009;

/// A prepared statement.
#[derive(Debug, Clone, Default)]
struct Prepared {
    sql: String,
    types: Vec<u32>,
}

/// A statement with its values, and whether it answers in the binary format.
#[derive(Debug, Default)]
struct Portal {
    prepared: Prepared,
    values: Vec<Option<Vec<u8>>>,
    is_binary: bool,
}

/// What is sent next, in one piece.
#[derive(Debug, Default)]
struct Out(Vec<u8>);

impl Out {
    fn message(&mut self, kind: u8, body: &[u8]) {
        self.0.push(kind);
        let length = u32::try_from(body.len() + 4).unwrap_or(u32::MAX);
        self.0.extend_from_slice(&length.to_be_bytes());
        self.0.extend_from_slice(body);
    }

    fn refuse(&mut self, refusal: Refusal) {
        let mut body = Vec::new();
        for (field, text) in [
            (b'S', "ERROR"),
            (b'V', "ERROR"),
            (b'C', refusal.sqlstate),
            (b'M', refusal.message),
        ] {
            body.push(field);
            body.extend_from_slice(text.as_bytes());
            body.push(0);
        }
        body.push(0);
        self.message(b'E', &body);
    }

    fn ready(&mut self, session: &Session<'_>) {
        let status = match session.transaction {
            Transaction::None => b'I',
            Transaction::Open => b'T',
            Transaction::Failed => b'E',
        };
        self.message(b'Z', &[status]);
    }

    fn done(&mut self, sql: &str, rows: u64) {
        let word = first_word(sql);
        let tag = match word {
            "INSERT" => format!("INSERT 0 {rows}\0"),
            "UPDATE" | "DELETE" | "SELECT" | "COPY" => format!("{word} {rows}\0"),
            word => format!("{word}\0"),
        };
        self.message(b'C', tag.as_bytes());
    }

    fn describe(&mut self, sql: &str, is_binary: bool) {
        let columns = columns_of(sql);
        if columns.is_empty() {
            return self.message(b'n', &[]);
        }
        let mut body = count(columns.len()).to_vec();
        for (name, oid) in columns {
            body.extend_from_slice(name.as_bytes());
            body.push(0);
            body.extend_from_slice(&[0; 6]);
            body.extend_from_slice(&oid.to_be_bytes());
            body.extend_from_slice(&(-1_i16).to_be_bytes());
            body.extend_from_slice(&(-1_i32).to_be_bytes());
            body.extend_from_slice(&u16::from(is_binary).to_be_bytes());
        }
        self.message(b'T', &body);
    }

    fn rows(&mut self, sql: &str, rows: &[Vec<Value>], is_binary: bool) {
        for row in rows {
            let mut body = count(row.len()).to_vec();
            for value in row {
                let bytes = match (value, is_binary) {
                    (Value::Null, _) => None,
                    (Value::Text(text), _) => Some(text.clone().into_bytes()),
                    (Value::Number(number), true) => Some(number.to_be_bytes().to_vec()),
                    (Value::Number(number), false) => Some(number.to_string().into_bytes()),
                    (Value::Bigint(number), true) => Some(number.to_be_bytes().to_vec()),
                    (Value::Bigint(number), false) => Some(number.to_string().into_bytes()),
                };
                let length = bytes
                    .as_ref()
                    .map_or(-1, |it| i32::try_from(it.len()).unwrap_or(0));
                body.extend_from_slice(&length.to_be_bytes());
                body.extend(bytes.unwrap_or_default());
            }
            self.message(b'D', &body);
        }
        self.done(sql, rows.len() as u64);
    }
}

fn count(of: usize) -> [u8; 2] {
    u16::try_from(of).unwrap_or(u16::MAX).to_be_bytes()
}

/// The catalogue's questions of ordid, by what stands in them alone.
const COPY_COLUMNS: &str = "WITH ORDINALITY AS wanted (name, position)";
const TYPES: &str = "WITH ORDINALITY AS asked (name, number)";

/// Returns the columns of an answer. Only the first answer has names by which somebody looks for them: Diesel.
fn columns_of(sql: &str) -> Vec<Column> {
    let unnamed = |oid| ("?column?", oid);
    match sql {
        _ if sql.contains(COPY_COLUMNS) => vec![("reason", TEXT), ("type", OID)],
        _ if sql.contains(TYPES) => [BIGINT, TEXT, OID, TEXT].map(unnamed).to_vec(),
        _ if sql.starts_with("SELECT") || sql.starts_with("(SELECT") => vec![unnamed(TEXT)],
        _ => Vec::new(),
    }
}

/// Serves one client until it goes.
pub(super) fn serve(mut stream: TcpStream, shared: &Mutex<Conversation>) -> io::Result<()> {
    let mut session = Session::new(shared, true);
    // The first message has no kind. A request for TLS is one, and is declined.
    while read_body(&mut stream)?.len() == 4 {
        stream.write_all(b"N")?;
    }
    let mut out = Out::default();
    out.message(b'R', &[0; 4]);
    for (name, value) in [
        ("server_version", "15.2"),
        ("server_encoding", "UTF8"),
        ("client_encoding", "UTF8"),
        ("DateStyle", "ISO, MDY"),
        ("TimeZone", "UTC"),
        ("integer_datetimes", "on"),
        ("standard_conforming_strings", "on"),
    ] {
        out.message(b'S', format!("{name}\0{value}\0").as_bytes());
    }
    out.message(b'K', &[0; 8]);
    out.ready(&session);
    stream.write_all(&out.0)?;

    let mut statements = HashMap::<String, Prepared>::new();
    let mut portal = Portal::default();
    // After an error, all up to the next Sync is passed over.
    let mut skips = false;
    loop {
        let mut kind = [0];
        stream.read_exact(&mut kind)?;
        let body = read_body(&mut stream)?;
        let mut body = Body(&body);
        let mut out = Out::default();
        match kind[0] {
            b'X' => return Ok(()),
            b'Q' => {
                if !simple(&body.text(), &mut session, &mut out, &mut stream)? {
                    return Ok(());
                }
                out.ready(&session);
            }
            b'S' => {
                skips = false;
                out.ready(&session);
            }
            _ if skips => {}
            b'P' => {
                let (name, sql) = (body.text(), body.text());
                let types = (0..body.count()).map(|_| body.number()).collect();
                match session.refuses_to_prepare(&sql) {
                    Some(refusal) => {
                        skips = true;
                        out.refuse(refusal);
                    }
                    None => {
                        let types = parameters(&session, &sql, types);
                        statements.insert(name, Prepared { sql, types });
                        out.message(b'1', &[]);
                    }
                }
            }
            b'B' => {
                let _ = body.text();
                let prepared = statements.get(&body.text()).cloned().unwrap_or_default();
                let _formats: Vec<usize> = (0..body.count()).map(|_| body.count()).collect();
                let values = (0..body.count()).map(|_| body.value()).collect();
                let is_binary = (0..body.count()).map(|_| body.count()).any(|it| it == 1);
                portal = Portal {
                    prepared,
                    values,
                    is_binary,
                };
                out.message(b'2', &[]);
            }
            b'D' if body.byte() == b'S' => {
                let prepared = statements.get(&body.text()).cloned().unwrap_or_default();
                let mut described = count(prepared.types.len()).to_vec();
                let types = prepared.types.iter().flat_map(|it| it.to_be_bytes());
                described.extend(types);
                out.message(b't', &described);
                out.describe(&prepared.sql, true);
            }
            b'D' => out.describe(&portal.prepared.sql, portal.is_binary),
            b'E' => {
                let sql = &portal.prepared.sql;
                match receive(&mut session, sql, &portal.values) {
                    Reply::Done(rows) => out.done(sql, rows),
                    Reply::Rows(rows) => out.rows(sql, &rows, portal.is_binary),
                    Reply::Copy => {
                        copy(sql, &mut session, &mut out, &mut stream)?;
                    }
                    Reply::Refused(refusal) => {
                        skips = true;
                        out.refuse(refusal);
                    }
                    Reply::End => return Ok(()),
                }
            }
            b'C' => out.message(b'3', &[]),
            _ => {}
        }
        stream.write_all(&out.0)?;
    }
}

/// Carries out a script, whose statements are parted by `; `. Returns whether the connection goes on.
fn simple(
    script: &str,
    session: &mut Session<'_>,
    out: &mut Out,
    stream: &mut TcpStream,
) -> io::Result<bool> {
    if script.is_empty() {
        // A ping.
        out.message(b'I', &[]);
    }
    for sql in script.split("; ").filter(|it| !it.is_empty()) {
        match receive(session, sql, &[]) {
            Reply::Done(rows) => out.done(sql, rows),
            Reply::Rows(rows) => {
                out.describe(sql, false);
                out.rows(sql, &rows, false);
            }
            Reply::Copy => copy(sql, session, out, stream)?,
            Reply::Refused(refusal) => {
                out.refuse(refusal);
                break;
            }
            Reply::End => return Ok(false),
        }
    }
    Ok(true)
}

/// Receives a statement. A catalogue's question is answered by the tables that the test has named.
fn receive(session: &mut Session<'_>, sql: &str, values: &[Option<Vec<u8>>]) -> Reply {
    let reply = session.receive(sql, values);
    let text = |at: usize| values.get(at).cloned().flatten().unwrap_or_default();
    match reply {
        Reply::Rows(rows) if rows.is_empty() && sql.contains(COPY_COLUMNS) => {
            let table = String::from_utf8_lossy(&text(0)).into_owned();
            let rows = array(&text(1)).into_iter().map(|wanted| {
                let known = session.types(&table);
                let found = known.iter().find(|(name, _)| *name == wanted);
                let reason = if found.is_some() { "" } else { "column" };
                let number = found.map_or(0, |(_, number)| *number);
                vec![Value::Text(reason.to_owned()), Value::Number(number)]
            });
            Reply::Rows(rows.collect())
        }
        Reply::Rows(rows) if rows.is_empty() && sql.contains(TYPES) => {
            let tables = array(&text(0));
            let rows = (1..).zip(&tables).flat_map(|(number, table)| {
                let types = session.types(table).into_iter();
                types.map(move |(name, oid)| {
                    let name = Value::Text(name.to_owned());
                    vec![Value::Bigint(number), name, Value::Number(oid), Value::Null]
                })
            });
            Reply::Rows(rows.collect())
        }
        reply => reply,
    }
}

/// Takes the rows of a `COPY` in its binary format, of which it knows the first column.
fn copy(
    sql: &str,
    session: &mut Session<'_>,
    out: &mut Out,
    stream: &mut TcpStream,
) -> io::Result<()> {
    let (table, columns) = table_and_columns(sql).unwrap_or_default();
    let mut answer = vec![1];
    answer.extend_from_slice(&count(columns));
    answer.extend((0..columns).flat_map(|_| [0, 1]));
    out.message(b'G', &answer);
    stream.write_all(&std::mem::take(&mut out.0))?;
    let mut data = Vec::new();
    loop {
        let mut kind = [0];
        stream.read_exact(&mut kind)?;
        let body = read_body(stream)?;
        match kind[0] {
            b'd' => data.extend_from_slice(&body),
            b'c' => break,
            b'f' => {
                session.transaction = Transaction::Failed;
                out.refuse(codes::CANCELED);
                return Ok(());
            }
            _ => {}
        }
    }
    let mut body = Body(data.get(19..).unwrap_or_default());
    let mut keys = Vec::new();
    let key = session.keys(&table);
    while let columns @ 1..0x8000 = body.count() {
        let row: Vec<_> = (0..columns).map(|_| body.value()).collect();
        keys.extend(row.get(..key).and_then(key_of));
    }
    match session.insert_keys(table, keys) {
        Reply::Done(rows) => out.done("COPY", rows),
        Reply::Refused(refusal) => out.refuse(refusal),
        _ => {}
    }
    Ok(())
}

/// Returns the types of a statement's parameters, where the client does not declare them.
fn parameters(session: &Session<'_>, sql: &str, declared: Vec<u32>) -> Vec<u32> {
    let named = table_and_columns(sql).map(|(table, _)| session.types(&table));
    let named = named.filter(|_| sql.starts_with("INSERT"));
    let known: Vec<u32> = match named {
        Some(columns) if !columns.is_empty() => columns.into_iter().map(|(_, oid)| oid).collect(),
        _ if sql.contains(COPY_COLUMNS) => vec![TEXT, TEXT_ARRAY],
        _ => vec![UUID],
    };
    let placeholders = (1..)
        .take_while(|number| sql.contains(&format!("${number}")))
        .count();
    let types = known.into_iter().cycle().take(placeholders);
    let types = types.enumerate().map(|(at, known)| match declared.get(at) {
        Some(&declared) if declared != 0 => declared,
        _ => known,
    });
    types.collect()
}

/// Returns the texts of a `text[]` in the binary format.
fn array(bytes: &[u8]) -> Vec<String> {
    // Dimensions, a flag, the type, the length and where it begins.
    let mut body = Body(bytes.get(12..).unwrap_or_default());
    let length = body.number();
    let _ = body.number();
    let texts = (0..length).filter_map(|_| body.value());
    texts
        .map(|it| String::from_utf8_lossy(&it).into_owned())
        .collect()
}

/// Reads a message without its kind.
fn read_body(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
    let mut body = vec![0; length.saturating_sub(4)];
    stream.read_exact(&mut body)?;
    Ok(body)
}

/// The body of a message that is read from its beginning; zeros behind its end.
struct Body<'b>(&'b [u8]);

impl Body<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (taken, rest) = self.0.split_at(N.min(self.0.len()));
        self.0 = rest;
        taken.try_into().unwrap_or([0; N])
    }

    fn byte(&mut self) -> u8 {
        u8::from_be_bytes(self.take())
    }

    fn count(&mut self) -> usize {
        usize::from(u16::from_be_bytes(self.take()))
    }

    fn number(&mut self) -> u32 {
        u32::from_be_bytes(self.take())
    }

    fn text(&mut self) -> String {
        let end = self.0.iter().position(|it| *it == 0);
        let (text, rest) = self.0.split_at(end.unwrap_or(self.0.len()));
        self.0 = rest.get(1..).unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    }

    /// A value of a row, or of a parameter.
    fn value(&mut self) -> Option<Vec<u8>> {
        let length = i32::from_be_bytes(self.take());
        let length = usize::try_from(length).ok()?;
        let (value, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        Some(value.to_vec())
    }
}
