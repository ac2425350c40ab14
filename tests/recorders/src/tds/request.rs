//! What a client sends: [MS-TDS] section 2.2.6.

use std::io;

use super::{
    types::Type,
    wire::{Reader, wrong},
};

/// A request, and the connection and the transaction that it was sent in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// Which connection, from 0 in the order in which they came.
    pub connection: usize,
    /// The transaction's descriptor, as the client gave it; zero is none.
    pub transaction: u64,
    /// The request.
    pub request: Request,
}

/// What a client can send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// LOGIN7.
    Login {
        /// The user's name.
        user: String,
        /// The database asked for.
        database: String,
    },
    /// A batch of SQL.
    Batch(String),
    /// A call of a stored procedure.
    Rpc {
        /// Its name, or its number for those that have one: 10 is `sp_executesql`.
        procedure: Result<String, u16>,
        /// Its parameters.
        parameters: Vec<Parameter>,
    },
    /// Transaction manager: begin.
    Begin,
    /// Transaction manager: commit.
    Commit,
    /// Transaction manager: roll back.
    Rollback,
    /// Transaction manager: save under a name.
    Save(String),
    /// The rows of an `INSERT BULK`.
    Bulk(Bulk),
    /// The client asks to stop.
    Attention,
    /// What the recorder does not understand, and why; it hangs up.
    Unknown(String),
}

/// A parameter of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// Its name, with `@`.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// Its value's bytes, without their length; `None` is NULL.
    pub value: Option<Vec<u8>>,
    /// Type and value as they were on the wire.
    pub raw: Vec<u8>,
}

/// The rows of an `INSERT BULK`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bulk {
    /// The columns.
    pub columns: Vec<BulkColumn>,
    /// The rows, a value for each column; `None` is NULL.
    pub rows: Vec<Vec<Option<Vec<u8>>>>,
    /// The rows as they were on the wire, each from its token 0xD1.
    pub raw: Vec<Vec<u8>>,
}

/// A column of a bulk load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BulkColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Type,
}

impl Request {
    /// Returns what answers are chosen by: the SQL of batches and of `sp_executesql`, `BEGIN`,
    /// `COMMIT`, `ROLLBACK`, `SAVE name`, `BULK`.
    pub fn text(&self) -> String {
        match self {
            Self::Login { .. } => "LOGIN".to_owned(),
            Self::Batch(sql) => sql.clone(),
            Self::Rpc { procedure, .. } => match (self.statement(), procedure) {
                (Some(sql), _) => sql,
                (None, Ok(name)) => name.clone(),
                (None, Err(number)) => number.to_string(),
            },
            Self::Begin => "BEGIN".to_owned(),
            Self::Commit => "COMMIT".to_owned(),
            Self::Rollback => "ROLLBACK".to_owned(),
            Self::Save(name) => format!("SAVE {name}"),
            Self::Bulk(_) => "BULK".to_owned(),
            Self::Attention => "ATTENTION".to_owned(),
            Self::Unknown(why) => format!("UNKNOWN {why}"),
        }
    }

    /// Returns the SQL of a call of `sp_executesql`.
    pub fn statement(&self) -> Option<String> {
        self.text_parameter(0)
    }

    /// Returns the declaration of parameters of a call of `sp_executesql`.
    pub fn declaration(&self) -> Option<String> {
        self.text_parameter(1)
    }

    /// Returns the parameters of the SQL of a call of `sp_executesql`.
    pub fn arguments(&self) -> &[Parameter] {
        match self {
            Self::Rpc {
                procedure: Err(10),
                parameters,
            } => parameters.get(2..).unwrap_or_default(),
            _ => &[],
        }
    }

    /// Returns the values of the arguments.
    pub fn values(&self) -> Vec<Option<Vec<u8>>> {
        let arguments = self.arguments().iter();
        arguments.map(|it| it.value.clone()).collect()
    }

    fn text_parameter(&self, position: usize) -> Option<String> {
        match self {
            Self::Rpc {
                procedure: Err(10),
                parameters,
            } => {
                let parameter = parameters.get(position)?;
                parameter.ty.text(parameter.value.as_deref()?)
            }
            _ => None,
        }
    }
}

/// Reads a message of the client and the descriptor of its transaction; the number is its packets' type.
pub(crate) fn read(number: u8, message: &[u8]) -> io::Result<(u64, Request)> {
    let mut reader = Reader::new(message);
    let mut transaction = 0;
    if matches!(number, 0x01 | 0x03 | 0x0e) {
        transaction = all_headers(&mut reader)?;
    }
    let request = match number {
        0x01 => Request::Batch(reader.rest_utf16()),
        0x03 => rpc(&mut reader)?,
        0x06 => Request::Attention,
        0x07 => Request::Bulk(bulk(&mut reader)?),
        0x0e => transaction_manager(&mut reader)?,
        0x10 => login(message)?,
        _ => return Err(wrong(format!("unknown packet type {number:#04x}"))),
    };
    Ok((transaction, request))
}

/// Reads ALL_HEADERS and returns the transaction's descriptor.
fn all_headers(reader: &mut Reader<'_>) -> io::Result<u64> {
    let end = reader.position() + reader.u32()? as usize;
    let mut transaction = 0;
    while reader.position() < end {
        let next = reader.position() + reader.u32()? as usize;
        if reader.u16()? == 2 {
            transaction = reader.u64()?;
        }
        reader.seek(next)?;
    }
    reader.seek(end)?;
    Ok(transaction)
}

fn rpc(reader: &mut Reader<'_>) -> io::Result<Request> {
    let procedure = match reader.u16()? {
        u16::MAX => Err(reader.u16()?),
        characters => Ok(reader.utf16(characters.into())?),
    };
    reader.skip(2)?;
    let mut parameters = Vec::new();
    while !reader.is_empty() {
        let characters = reader.u8()?;
        let name = reader.utf16(characters.into())?;
        reader.skip(1)?;
        let start = reader.position();
        let ty = Type::read(reader)?;
        let value = ty.read_value(reader)?;
        parameters.push(Parameter {
            name,
            ty,
            value,
            raw: reader.since(start).to_vec(),
        });
    }
    Ok(Request::Rpc {
        procedure,
        parameters,
    })
}

fn transaction_manager(reader: &mut Reader<'_>) -> io::Result<Request> {
    Ok(match reader.u16()? {
        5 => Request::Begin,
        7 => Request::Commit,
        8 => Request::Rollback,
        9 => {
            // A name and its length: in bytes by MS-TDS, in characters by tiberius 0.13.
            reader.skip(1)?;
            Request::Save(reader.rest_utf16())
        }
        other => return Err(wrong(format!("transaction manager request {other}"))),
    })
}

fn bulk(reader: &mut Reader<'_>) -> io::Result<Bulk> {
    let mut bulk = Bulk {
        columns: Vec::new(),
        rows: Vec::new(),
        raw: Vec::new(),
    };
    if reader.u8()? != 0x81 {
        return Err(wrong("a bulk load without columns"));
    }
    for _ in 0..reader.u16()? {
        reader.skip(4 + 2)?;
        let ty = Type::read(reader)?;
        let characters = reader.u8()?;
        let name = reader.utf16(characters.into())?;
        bulk.columns.push(BulkColumn { name, ty });
    }
    loop {
        let start = reader.position();
        match reader.u8()? {
            0xd1 => {
                let values = bulk.columns.iter();
                let row = values.map(|column| column.ty.read_value(reader));
                bulk.rows.push(row.collect::<io::Result<_>>()?);
                bulk.raw.push(reader.since(start).to_vec());
            }
            0xfd => return Ok(bulk),
            other => return Err(wrong(format!("token {other:#04x} in a bulk load"))),
        }
    }
}

/// Reads LOGIN7: offsets and lengths of texts, counted from its beginning.
fn login(message: &[u8]) -> io::Result<Request> {
    let text = |at: usize| {
        let mut reader = Reader::new(message);
        reader.seek(at)?;
        let (offset, characters) = (reader.u16()?, reader.u16()?);
        reader.seek(offset.into())?;
        reader.utf16(characters.into())
    };
    Ok(Request::Login {
        user: text(40)?,
        database: text(68)?,
    })
}
