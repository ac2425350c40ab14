//! PostgreSQL's `COPY .. FROM STDIN (FORMAT binary)` without I/O, for adapters. It takes the same values
//! as an `INSERT` in the same encoding, and spares the server a parameter and an expression for each.
//!
//! ```text
//! "PGCOPY\n\xff\r\n\0"  flags i32 = 0  extension i32 = 0     once
//! columns i16  (length i32, bytes)*                          a row; length -1 is NULL
//! -1 i16                                                     at the end
//! ```
//!
//! It is not an `INSERT`, though: it applies no casts, no rules and no row-level security, and it
//! fills columns that an `INSERT` may not touch. [`COLUMNS`] asks the catalog whether any of
//! this makes a difference. What is left is the same on both ways: a value goes through its type's
//! receive function and is fitted to `varchar(n)`, `char(n)`, `numeric(p, s)` or `timestamp(p)`;
//! defaults are filled in, constraints and foreign keys checked.
//!
//! # References
//!
//! - [COPY](https://www.postgresql.org/docs/current/sql-copy.html), "Binary Format"
//! - [The protocol's COPY operations](https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-COPY)

use crate::NotBulk;

/// Returns for each column of a table, in order, why `COPY` is not what an `INSERT` would be, or an empty text, and its
/// type; no row if there is no such table. Its parameters are the table's name, quoted, and the columns' names.
///
/// - `to_regclass` finds the table as the `INSERT` does, over the search path.
/// - Rules rewrite an `INSERT` only. Row-level security refuses `COPY`.
/// - An `INSERT` must not give a value for a generated column, `COPY` may for `GENERATED ALWAYS AS
///   IDENTITY`.
/// - A domain may be `NOT NULL`, which `COPY` does not check where the column is left out.
/// - Triggers are fired by both, but may tell notices while rows are sent, and a client that does not
///   read meanwhile waits for ever. A partition has its own.
pub const COLUMNS: &str = "\
SELECT CASE
    WHEN class.relkind NOT IN ('r', 'p') THEN 'table'
    WHEN class.relhasrules THEN 'rule'
    WHEN pg_catalog.row_security_active(class.oid) THEN 'row security'
    WHEN EXISTS (
        SELECT FROM pg_catalog.pg_trigger
        WHERE NOT tgisinternal AND tgtype & 4 <> 0
        AND (tgrelid = class.oid OR class.relkind = 'p'
            AND tgrelid IN (SELECT relid FROM pg_catalog.pg_partition_tree(class.oid)))
    ) THEN 'trigger'
    WHEN EXISTS (
        SELECT FROM pg_catalog.pg_attribute of_table
        JOIN pg_catalog.pg_type ON pg_type.oid = of_table.atttypid
        WHERE of_table.attrelid = class.oid AND of_table.attnum > 0 AND NOT of_table.attisdropped
        AND pg_type.typtype = 'd'
    ) THEN 'domain'
    WHEN attribute.attname IS NULL OR attribute.attgenerated <> '' OR attribute.attidentity = 'a' THEN 'column'
    ELSE ''
    END AS reason, coalesce(attribute.atttypid, 0) AS type
FROM pg_catalog.pg_class class
CROSS JOIN pg_catalog.unnest($2::text[]) WITH ORDINALITY AS wanted (name, position)
LEFT JOIN pg_catalog.pg_attribute attribute
    ON attribute.attrelid = class.oid AND attribute.attname::text = wanted.name
    AND attribute.attnum > 0 AND NOT attribute.attisdropped
WHERE class.oid = pg_catalog.to_regclass($1)
ORDER BY wanted.position";

/// From so many rows of a table on it was faster on a fresh connection, which has the question to
/// prepare as well.
pub const MIN_ROWS: usize = 1000;

/// Says whether so many rows of a table are offered to `COPY`.
///
/// # Errors
///
/// If they are too few.
pub fn offers(rows: usize) -> Result<(), NotBulk> {
    match rows < MIN_ROWS {
        true => Err(NotBulk::FewRows),
        false => Ok(()),
    }
}

/// The most chunks of one command. The server checks the foreign keys of a command at its end, and
/// until then keeps a note for each of them and for each row.
pub const MAX_CHUNKS: usize = 100;

/// The size from which a piece is sent: so large that a system call does not count, so small that
/// the server works on it while the next one is encoded.
pub const PIECE: usize = 1 << 16;

const TEXT: u32 = 25;
const BPCHAR: u32 = 1042;
const VARCHAR: u32 = 1043;

/// The types whose values drivers encode to the end by themselves, and their names. Others may hold the number of
/// another type, which is only known of a statement.
const SCALARS: [(u32, &str); 23] = [
    (TEXT, "text"),
    (BPCHAR, "bpchar"),
    (VARCHAR, "varchar"),
    (16, "bool"),
    (17, "bytea"),
    (20, "int8"),
    (21, "int2"),
    (23, "int4"),
    (650, "cidr"),
    (700, "float4"),
    (701, "float8"),
    (790, "money"),
    (829, "macaddr"),
    (869, "inet"),
    (1082, "date"),
    (1083, "time"),
    (1114, "timestamp"),
    (1184, "timestamptz"),
    (1186, "interval"),
    (1266, "timetz"),
    (1700, "numeric"),
    (2950, "uuid"),
    (3802, "jsonb"),
];

/// Returns the number of a type of PostgreSQL's own by its name, for values whose library knows only that: an enum of
/// Rust that is stored as `text`.
pub fn type_number(name: &str) -> Option<u32> {
    let found = SCALARS
        .iter()
        .find(|(_, of)| of.eq_ignore_ascii_case(name))?;
    Some(found.0)
}

const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// The columns that rows are copied into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    types: Vec<u32>,
    /// How many they are, as rows begin with it.
    count: i16,
}

impl Target {
    /// Takes what [`COLUMNS`] answered for these columns.
    ///
    /// # Errors
    ///
    /// Why the rows have to be inserted.
    pub fn new(columns: &[&'static str], answer: Vec<(String, u32)>) -> Result<Self, NotBulk> {
        let count = i16::try_from(columns.len()).map_err(|_| NotBulk::NoTable)?;
        if answer.len() != columns.len() {
            return Err(NotBulk::NoTable);
        }
        for (column, (reason, number)) in columns.iter().zip(&answer) {
            return Err(match reason.as_str() {
                "" if SCALARS.iter().any(|(of, _)| of == number) => continue,
                "" => NotBulk::ColumnType(column),
                "rule" => NotBulk::Rule,
                "row security" => NotBulk::RowSecurity,
                "trigger" => NotBulk::Trigger,
                "domain" => NotBulk::Domain,
                "column" => NotBulk::ServerColumn(column),
                _ => NotBulk::NoTable,
            });
        }
        Ok(Self {
            count,
            types: answer.into_iter().map(|(_, number)| number).collect(),
        })
    }

    /// Returns the number of columns.
    pub fn columns(&self) -> usize {
        self.types.len()
    }

    /// Whether a value of this type goes into a column with nothing to convert. Not the other way
    /// round: `char(n)` becomes `text` by losing its trailing blanks.
    pub fn takes(&self, column: usize, value: u32) -> bool {
        self.types.get(column).is_some_and(|&column| {
            value == column
                || matches!(value, TEXT | VARCHAR) && matches!(column, TEXT | VARCHAR | BPCHAR)
        })
    }

    /// Begins a row.
    pub fn begin_row(&self, piece: &mut Vec<u8>) {
        piece.extend_from_slice(&self.count.to_be_bytes());
    }
}

/// Begins a command.
pub fn begin(piece: &mut Vec<u8>) {
    piece.extend_from_slice(SIGNATURE);
}

/// Begins a value, and returns where: it is NULL unless [`end_value`] is told of its bytes.
pub fn begin_value(piece: &mut Vec<u8>) -> usize {
    let start = piece.len();
    piece.extend_from_slice(&(-1_i32).to_be_bytes());
    start
}

/// Ends a value whose bytes were written behind what [`begin_value`] wrote.
///
/// # Errors
///
/// If it is larger than PostgreSQL's values are.
pub fn end_value(piece: &mut [u8], start: usize) -> Result<(), TooLarge> {
    let bytes = start + 4;
    let length = piece.len() - bytes;
    let length = i32::try_from(length).map_err(|_| TooLarge(length))?;
    piece[start..bytes].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

/// Ends a command.
pub fn end(piece: &mut Vec<u8>) {
    piece.extend_from_slice(&(-1_i16).to_be_bytes());
}

/// A value that is larger than PostgreSQL's are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLarge(usize);

impl std::fmt::Display for TooLarge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a value of {} bytes is too large", self.0)
    }
}

impl std::error::Error for TooLarge {}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(types: &[u32]) -> Target {
        let columns = ["a", "b", "c"];
        let answer = types.iter().map(|number| (String::new(), *number));
        Target::new(&columns[..types.len()], answer.collect()).unwrap()
    }

    #[test]
    fn only_columns_of_known_types_are_copied() {
        let new = |columns, answer: &[(&str, u32)]| {
            let answer = answer
                .iter()
                .map(|(text, number)| ((*text).to_owned(), *number));
            Target::new(columns, answer.collect()).map(drop)
        };
        assert_eq!(new(&["id", "name"], &[("", 2950), ("", 25)]), Ok(()));
        assert_eq!(new(&["id"], &[]), Err(NotBulk::NoTable));
        let range = &[("", 2950), ("", 3904)];
        assert_eq!(new(&["id", "at"], range), Err(NotBulk::ColumnType("at")));
        let generated = &[("", 2950), ("column", 23)];
        assert_eq!(
            new(&["id", "n"], generated),
            Err(NotBulk::ServerColumn("n"))
        );
        assert_eq!(new(&["id"], &[("trigger", 2950)]), Err(NotBulk::Trigger));
        assert_eq!(new(&["id"], &[("table", 2950)]), Err(NotBulk::NoTable));
        assert_eq!((type_number("TEXT"), type_number("mood")), (Some(25), None));
    }

    #[test]
    fn text_goes_where_nothing_is_converted() {
        let target = target(&[TEXT, BPCHAR, 23]);
        assert!(target.takes(0, TEXT) && target.takes(0, VARCHAR));
        assert!(target.takes(1, TEXT) && target.takes(1, BPCHAR));
        assert!(!target.takes(0, BPCHAR), "its blanks would be lost");
        assert!(target.takes(2, 23) && !target.takes(2, 20));
        assert!(!target.takes(3, TEXT), "there is no fourth");
    }

    /// The bytes of PostgreSQL's manual: two columns, a number and NULL.
    #[test]
    fn rows_are_framed_as_the_server_reads_them() {
        let target = target(&[23, TEXT]);
        let mut piece = Vec::new();
        begin(&mut piece);
        target.begin_row(&mut piece);
        let start = begin_value(&mut piece);
        piece.extend_from_slice(&7_i32.to_be_bytes());
        end_value(&mut piece, start).unwrap();
        begin_value(&mut piece);
        end(&mut piece);
        let expected = [
            b"PGCOPY\n\xff\r\n\0".as_slice(),
            &[0; 8],
            &[0, 2],
            &[0, 0, 0, 4, 0, 0, 0, 7],
            &[0xff; 4],
            &[0xff; 2],
        ];
        assert_eq!(piece, expected.concat());
    }
}
