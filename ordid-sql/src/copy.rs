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
//! fills columns that an `INSERT` may not touch. [`COLUMN_TYPES`] asks the catalog whether any of
//! this makes a difference. What is left is the same on both ways: a value goes through its type's
//! receive function and is fitted to `varchar(n)`, `char(n)`, `numeric(p, s)` or `timestamp(p)`;
//! defaults are filled in, constraints and foreign keys checked.
//!
//! # References
//!
//! - [COPY](https://www.postgresql.org/docs/current/sql-copy.html), "Binary Format"
//! - [The protocol's COPY operations](https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-COPY)

/// Returns the type of each column of a table, in order; fewer rows than columns where `COPY` is
/// not what an `INSERT` would be. Its parameters are the table's name, quoted, and the columns' names.
///
/// - `to_regclass` finds the table as the `INSERT` does, over the search path.
/// - Rules rewrite an `INSERT` only. Row-level security refuses `COPY`.
/// - An `INSERT` must not give a value for a generated column, `COPY` may for `GENERATED ALWAYS AS
///   IDENTITY`.
/// - A domain may be `NOT NULL`, which `COPY` does not check where the column is left out.
/// - Triggers are fired by both, but may tell notices while rows are sent, and a client that does not
///   read meanwhile waits for ever. A partition has its own.
pub const COLUMN_TYPES: &str = "\
WITH target AS (
    SELECT class.oid, class.relkind = 'p' AS partitioned
    FROM pg_catalog.pg_class class
    WHERE class.oid = pg_catalog.to_regclass($1)
    AND class.relkind IN ('r', 'p')
    AND NOT class.relhasrules
    AND NOT pg_catalog.row_security_active(class.oid)
)
SELECT attribute.atttypid
FROM target
CROSS JOIN pg_catalog.unnest($2::text[]) WITH ORDINALITY AS wanted (name, position)
JOIN pg_catalog.pg_attribute attribute
    ON attribute.attrelid = target.oid AND attribute.attname::text = wanted.name
WHERE attribute.attnum > 0 AND NOT attribute.attisdropped
AND attribute.attgenerated = '' AND attribute.attidentity <> 'a'
AND NOT EXISTS (
    SELECT FROM pg_catalog.pg_trigger
    WHERE NOT tgisinternal AND tgtype & 4 <> 0
    AND (tgrelid = target.oid OR target.partitioned
        AND tgrelid IN (SELECT relid FROM pg_catalog.pg_partition_tree(target.oid)))
)
AND NOT EXISTS (
    SELECT FROM pg_catalog.pg_attribute left_out
    JOIN pg_catalog.pg_type ON pg_type.oid = left_out.atttypid
    WHERE left_out.attrelid = target.oid AND left_out.attnum > 0 AND NOT left_out.attisdropped
    AND pg_type.typtype = 'd'
)
ORDER BY wanted.position";

/// From so many rows of a table on it was faster on a fresh connection, which has the question to
/// prepare as well.
pub const MIN_ROWS: usize = 1000;

/// The most chunks of one command. The server checks the foreign keys of a command at its end, and
/// until then keeps a note for each of them and for each row.
pub const MAX_CHUNKS: usize = 100;

/// The size from which a piece is sent: so large that a system call does not count, so small that
/// the server works on it while the next one is encoded.
pub const PIECE: usize = 1 << 16;

const TEXT: u32 = 25;
const BPCHAR: u32 = 1042;
const VARCHAR: u32 = 1043;

/// The types whose values drivers encode to the end by themselves. Others may hold the number of
/// another type, which is only known of a statement.
const SCALARS: [u32; 23] = [
    TEXT, BPCHAR, VARCHAR, 16,   // bool
    17,   // bytea
    20,   // int8
    21,   // int2
    23,   // int4
    650,  // cidr
    700,  // float4
    701,  // float8
    790,  // money
    829,  // macaddr
    869,  // inet
    1082, // date
    1083, // time
    1114, // timestamp
    1184, // timestamptz
    1186, // interval
    1266, // timetz
    1700, // numeric
    2950, // uuid
    3802, // jsonb
];

const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// The columns that rows are copied into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    types: Vec<u32>,
    /// How many they are, as rows begin with it.
    count: i16,
}

impl Target {
    /// Takes what [`COLUMN_TYPES`] answered for so many columns. `None` where the rows have to be
    /// inserted.
    pub fn new(columns: usize, types: Vec<u32>) -> Option<Self> {
        let known = types.iter().all(|it| SCALARS.contains(it));
        if types.len() != columns || !known {
            return None;
        }
        Some(Self {
            count: i16::try_from(columns).ok()?,
            types,
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

    #[test]
    fn only_columns_of_known_types_are_copied() {
        assert!(Target::new(2, vec![2950, 25]).is_some());
        assert_eq!(Target::new(3, vec![2950, 25]), None, "one was left out");
        assert_eq!(Target::new(1, vec![3904]), None, "a range");
    }

    #[test]
    fn text_goes_where_nothing_is_converted() {
        let target = Target::new(3, vec![TEXT, BPCHAR, 23]).unwrap();
        assert!(target.takes(0, TEXT) && target.takes(0, VARCHAR));
        assert!(target.takes(1, TEXT) && target.takes(1, BPCHAR));
        assert!(!target.takes(0, BPCHAR), "its blanks would be lost");
        assert!(target.takes(2, 23) && !target.takes(2, 20));
        assert!(!target.takes(3, TEXT), "there is no fourth");
    }

    /// The bytes of PostgreSQL's manual: two columns, a number and NULL.
    #[test]
    fn rows_are_framed_as_the_server_reads_them() {
        let target = Target::new(2, vec![23, TEXT]).unwrap();
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
