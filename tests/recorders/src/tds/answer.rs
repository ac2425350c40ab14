//! What the peer sends back: [MS-TDS] section 2.2.7.

use super::types::Type;

/// An answer to a request.
#[derive(Debug, Clone)]
pub enum Answer {
    /// It is done, with so many rows; they are also the answer to a `SELECT @@ROWCOUNT` behind the statement.
    Done(u64),
    /// It is done, and how many rows it were is not said, as under `SET NOCOUNT ON`.
    Uncounted,
    /// Rows.
    Rows {
        /// Their columns.
        columns: Vec<Column>,
        /// Their values; `None` is NULL.
        rows: Vec<Vec<Option<Vec<u8>>>>,
    },
    /// The server refuses.
    Failure(Failure),
    /// What several statements of one request answer.
    Several(Vec<Answer>),
    /// There is none, and the connection stays open.
    Silence,
    /// The connection is cut off without an answer.
    HangUp,
    /// The connection is cut off in the midst of an answer.
    HalfAnswer,
}

/// An error of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Its number, as in `sys.messages`.
    pub number: u32,
    /// Its severity.
    pub class: u8,
    /// Its text.
    pub message: String,
    /// Whether the server has rolled the whole transaction back, as for a deadlock's victim.
    pub rolls_back: bool,
}

/// A column of an answer.
#[derive(Debug, Clone)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// [MS-TDS] 2.2.7.4: 1 nullable, 4 updateable, 16 identity.
    pub flags: u16,
}

impl Column {
    /// A column that can be NULL and be written.
    pub fn new(name: &str, ty: Type) -> Self {
        Self {
            name: name.to_owned(),
            ty,
            flags: 1 | 8,
        }
    }

    /// An identity column: not to be written.
    pub fn identity(name: &str, ty: Type) -> Self {
        Self {
            flags: 16,
            ..Self::new(name, ty)
        }
    }
}

impl Answer {
    /// Rows of these columns.
    pub fn rows(
        columns: impl IntoIterator<Item = Column>,
        rows: impl IntoIterator<Item = Vec<Option<Vec<u8>>>>,
    ) -> Self {
        Self::Rows {
            columns: columns.into_iter().collect(),
            rows: rows.into_iter().collect(),
        }
    }

    /// An answer to `UPDATE ..; SELECT @@ROWCOUNT`, where so many rows were changed.
    pub(crate) fn changed(rows: u64) -> Self {
        let count = i32::try_from(rows).expect("few rows");
        Self::Several(vec![Self::Done(rows), Self::int(count)])
    }

    /// A row with one `int`.
    pub fn int(value: i32) -> Self {
        let value = value.to_le_bytes().to_vec();
        Self::rows([Column::new("", Type::int(4))], [vec![Some(value)]])
    }

    /// A row with one `nvarchar`.
    pub fn text(value: &str) -> Self {
        Self::texts([value])
    }

    /// Rows with one `nvarchar` each.
    pub fn texts<T: AsRef<str>>(values: impl IntoIterator<Item = T>) -> Self {
        let column = Column::new("", Type::nvarchar(64));
        let rows = values
            .into_iter()
            .map(|value| vec![Some(utf16(value.as_ref()))]);
        Self::rows([column], rows)
    }

    /// An error of severity 14 that leaves the transaction as it is, as constraints do.
    pub fn failure(number: u32, message: &str) -> Self {
        Self::Failure(Failure {
            number,
            class: 14,
            message: message.to_owned(),
            rolls_back: false,
        })
    }

    /// An error after which the transaction is rolled back.
    pub fn fatal(number: u32, message: &str) -> Self {
        Self::Failure(Failure {
            number,
            class: 13,
            message: message.to_owned(),
            rolls_back: true,
        })
    }
}

/// The length of DONE.
const DONE: usize = 13;

/// Tokens, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Tokens(pub(crate) Vec<u8>);

impl Tokens {
    pub(crate) fn login(&mut self) {
        self.env_change(4, &with_count("4096"), &with_count("4096"));
        // Mono's client does not work without a collation.
        self.env_change(7, &[5, 0x09, 0x04, 0xd0, 0x00, 0x34], &[0]);
        let mut ack = vec![1, 0x74, 0, 0, 4];
        ack.extend(with_count("Recorder"));
        ack.extend([16, 0, 0x03, 0xe8]);
        self.token(0xad, &ack);
        self.done(0, 0);
    }

    pub(crate) fn begun(&mut self, transaction: u64) {
        let mut new = vec![8];
        new.extend(transaction.to_le_bytes());
        self.env_change(8, &new, &[0]);
        self.done(0, 0);
    }

    pub(crate) fn committed(&mut self, transaction: u64) {
        self.ended(9, transaction);
        self.done(0, 0);
    }

    pub(crate) fn rolled_back(&mut self, transaction: u64) {
        self.ended(10, transaction);
    }

    fn ended(&mut self, kind: u8, transaction: u64) {
        let mut old = vec![8];
        old.extend(transaction.to_le_bytes());
        self.env_change(kind, &[0], &old);
    }

    pub(crate) fn failure(&mut self, failure: &Failure) {
        let mut body = failure.number.to_le_bytes().to_vec();
        body.extend([1, failure.class]);
        let message: Vec<u8> = utf16(&failure.message);
        let characters = u16::try_from(message.len() / 2).expect("a short message");
        body.extend(characters.to_le_bytes());
        body.extend(message);
        body.extend(with_count("recorder"));
        body.extend(with_count(""));
        body.extend(1_u32.to_le_bytes());
        self.token(0xaa, &body);
    }

    pub(crate) fn rows(&mut self, columns: &[Column], rows: &[Vec<Option<Vec<u8>>>]) {
        self.0.push(0x81);
        let count = u16::try_from(columns.len()).expect("few columns");
        self.0.extend(count.to_le_bytes());
        for column in columns {
            self.0.extend(0_u32.to_le_bytes());
            self.0.extend(column.flags.to_le_bytes());
            self.0.extend(&column.ty.bytes);
            self.0.extend(with_count(&column.name));
        }
        for row in rows {
            self.0.push(0xd1);
            for (value, column) in row.iter().zip(columns) {
                column.ty.write_value(value.as_deref(), &mut self.0);
            }
        }
        self.done(0x10, rows.len() as u64);
    }

    /// Says of the last DONE that another follows.
    pub(crate) fn more(&mut self) {
        let status = self.0.len() - DONE + 1;
        self.0[status] |= 1;
    }

    /// DONE; status 2 is an error, 16 says that the count holds.
    pub(crate) fn done(&mut self, status: u16, rows: u64) {
        self.0.push(0xfd);
        self.0.extend(status.to_le_bytes());
        self.0.extend([0, 0]);
        self.0.extend(rows.to_le_bytes());
    }

    fn env_change(&mut self, kind: u8, new: &[u8], old: &[u8]) {
        let mut body = vec![kind];
        body.extend(new);
        body.extend(old);
        self.token(0xe3, &body);
    }

    fn token(&mut self, number: u8, body: &[u8]) {
        self.0.push(number);
        let length = u16::try_from(body.len()).expect("a short token");
        self.0.extend(length.to_le_bytes());
        self.0.extend(body);
    }
}

/// A text behind its number of characters, in one byte.
fn with_count(text: &str) -> Vec<u8> {
    let text = utf16(text);
    let mut counted = vec![u8::try_from(text.len() / 2).expect("a short text")];
    counted.extend(text);
    counted
}

pub(crate) fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}
