//! `COPY .. FROM STDIN (FORMAT binary)`, which takes the same values as an `INSERT` in the same
//! encoding, and spares the server a parameter and an expression for each.
//!
//! ```text
//! "PGCOPY\n\xff\r\n\0"  flags i32 = 0  extension i32 = 0     once
//! columns i16  (length i32, bytes)*                          a row; length -1 is NULL
//! -1 i16                                                     at the end
//! ```
//!
//! It is not an `INSERT`, though: it applies no casts, no rules and no row-level security, and it
//! fills columns that an `INSERT` may not touch. [`Copy::prepare`] asks the catalog whether any of
//! this makes a difference. What is left is the same on both ways: a value goes through its type's
//! receive function and is fitted to `varchar(n)`, `char(n)`, `numeric(p, s)` or `timestamp(p)`;
//! defaults are filled in, constraints and foreign keys checked.
//!
//! # Triggers
//!
//! `COPY` fires them, but SQLx does not read while it sends. A server whose messages nobody reads
//! stops, and then both sides wait for ever: a row trigger with `RAISE NOTICE` is enough, after a
//! few hundred rows. So tables with triggers of their own are not copied into; and as a function in
//! a default or a check could do the same, the transaction asks for errors only.
//!
//! # References
//!
//! - [COPY](https://www.postgresql.org/docs/current/sql-copy.html), "Binary Format"
//! - [The protocol's COPY operations](https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-COPY)

use std::mem;

use ordid_core::storage::Dialect;
use sqlx::{
    Encode, PgConnection, Postgres, Type,
    encode::IsNull,
    error::BoxDynError,
    postgres::{PgArgumentBuffer, PgCopyIn, PgTypeInfo, types::Oid},
};

use crate::{
    backend::{Backend, BoxFuture},
    bulk::Bulk,
};

/// Returns the type of each column of a table, in order; fewer rows than columns where `COPY` is
/// not what an `INSERT` would be.
///
/// - `to_regclass` finds the table as the `INSERT` does, over the search path.
/// - Rules rewrite an `INSERT` only. Row-level security refuses `COPY`.
/// - An `INSERT` must not give a value for a generated column, `COPY` may for `GENERATED ALWAYS AS
///   IDENTITY`.
/// - A domain may be `NOT NULL`, which `COPY` does not check where the column is left out.
/// - Triggers: see the module. A partition has its own.
const COLUMN_TYPES: &str = "\
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

const TEXT: Oid = Oid(25);
const BPCHAR: Oid = Oid(1042);
const VARCHAR: Oid = Oid(1043);

/// The types whose values SQLx encodes to the end at once. Others may hold the number of another
/// type, which SQLx fills in as the statement is executed.
const SCALARS: [Oid; 23] = [
    TEXT,
    BPCHAR,
    VARCHAR,
    Oid(16),   // bool
    Oid(17),   // bytea
    Oid(20),   // int8
    Oid(21),   // int2
    Oid(23),   // int4
    Oid(650),  // cidr
    Oid(700),  // float4
    Oid(701),  // float8
    Oid(790),  // money
    Oid(829),  // macaddr
    Oid(869),  // inet
    Oid(1082), // date
    Oid(1083), // time
    Oid(1114), // timestamp
    Oid(1184), // timestamptz
    Oid(1186), // interval
    Oid(1266), // timetz
    Oid(1700), // numeric
    Oid(2950), // uuid
    Oid(3802), // jsonb
];

const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// The size from which a piece is sent: so large that a system call does not count, so small that
/// the server works on it while the next one is encoded.
const PIECE: usize = 1 << 16;

/// The rows for one table, encoded for `COPY`.
#[derive(Debug)]
pub struct Copy {
    sql: String,
    types: Vec<Oid>,
    fields: i16,
    piece: PgArgumentBuffer,
    /// Where in the piece the last row begins.
    row: usize,
    /// Which column of the row is next.
    column: usize,
    /// How many columns are known to be given a Rust type that fits them.
    checked: usize,
    /// Whether the row has a value that needs a cast, or a type that is not known here.
    misfit: bool,
}

impl Copy {
    fn new(table: &str, columns: &[&str], types: Vec<Oid>) -> Option<Self> {
        let known = types.iter().all(|it| SCALARS.contains(it));
        if types.len() != columns.len() || !known {
            return None;
        }
        let names: Vec<_> = columns
            .iter()
            .map(|column| <Postgres as Backend>::Dialect::quote(column))
            .collect();
        let mut piece = PgArgumentBuffer::default();
        piece.extend_from_slice(SIGNATURE);
        Some(Self {
            sql: format!(
                "COPY {table} ({}) FROM STDIN (FORMAT binary)",
                names.join(", ")
            ),
            fields: i16::try_from(columns.len()).ok()?,
            types,
            piece,
            row: 0,
            column: 0,
            checked: 0,
            misfit: false,
        })
    }

    /// Whether values of this type go into the next column.
    fn takes(&self, ty: &PgTypeInfo) -> bool {
        let column = self.types.get(self.column);
        ty.oid()
            .zip(column)
            .is_some_and(|(ty, column)| fits(ty, *column))
    }

    /// Empties the piece but for these bytes. The buffer is a new one around the old memory, since
    /// it also remembers what SQLx would fill in later (for `jsonb`: nothing, as the column is
    /// `jsonb`).
    fn begin_piece(&mut self, with: &[u8]) {
        let mut memory = mem::take(&mut *self.piece);
        memory.clear();
        memory.extend_from_slice(with);
        let mut piece = PgArgumentBuffer::default();
        *piece = memory;
        self.piece = piece;
    }
}

/// Whether a value of one type goes into a column of another with nothing to convert. Not the other
/// way round: `char(n)` becomes `text` by losing its trailing blanks.
fn fits(value: Oid, column: Oid) -> bool {
    value == column || matches!(value, TEXT | VARCHAR) && matches!(column, TEXT | VARCHAR | BPCHAR)
}

impl Bulk<Postgres> for Copy {
    /// From here on it was faster on a fresh connection, which has the question to prepare as well.
    const MIN_ROWS: usize = 1000;

    /// See "Triggers" above.
    const BEGIN: Option<&'static str> = Some("BEGIN; SET LOCAL client_min_messages TO error");

    type Stream<'c> = PgCopyIn<&'c mut PgConnection>;

    fn prepare<'a>(
        connection: &'a mut PgConnection,
        table: &'a str,
        columns: &'static [&'static str],
    ) -> BoxFuture<'a, Option<Self>> {
        Box::pin(async move {
            let types: Vec<Oid> = sqlx::query_scalar(COLUMN_TYPES)
                .bind(table)
                .bind(columns)
                .fetch_all(connection)
                .await
                // A server before 12, or one that is only like PostgreSQL.
                .ok()?;
            Self::new(table, columns, types)
        })
    }

    fn begin_row(&mut self) {
        self.row = self.piece.len();
        self.column = 0;
        self.misfit = false;
        self.piece.extend_from_slice(&self.fields.to_be_bytes());
    }

    fn put<T>(&mut self, value: &T) -> Result<(), BoxDynError>
    where
        T: for<'q> Encode<'q, Postgres> + Type<Postgres>,
    {
        if self.misfit {
            return Ok(());
        }
        // As what SQLx would declare the parameter: by the value, or by its Rust type, which is the
        // same in every row.
        let fits = match value.produces() {
            Some(ty) => self.takes(&ty),
            None if self.column < self.checked => true,
            None => {
                let fits = self.takes(&T::type_info());
                if fits && self.column == self.checked {
                    self.checked += 1;
                }
                fits
            }
        };
        if !fits {
            self.misfit = true;
            return Ok(());
        }
        self.column += 1;
        let start = self.piece.len();
        self.piece.extend_from_slice(&(-1_i32).to_be_bytes());
        if let IsNull::No = value.encode_by_ref(&mut self.piece)? {
            let length = self.piece.len() - start - 4;
            let length = i32::try_from(length)
                .map_err(|_| format!("a value of {length} bytes is too large"))?;
            self.piece[start..start + 4].copy_from_slice(&length.to_be_bytes());
        }
        Ok(())
    }

    fn end_row(&mut self) -> bool {
        let fits = !self.misfit && self.column == self.types.len();
        if !fits {
            self.piece.truncate(self.row);
        }
        fits
    }

    fn is_full(&self) -> bool {
        self.piece.len() >= PIECE
    }

    fn open<'a, 'c: 'a>(
        &'a self,
        connection: &'c mut PgConnection,
    ) -> BoxFuture<'a, Result<Self::Stream<'c>, sqlx::Error>> {
        Box::pin(connection.copy_in_raw(&self.sql))
    }

    fn send<'a>(
        &'a mut self,
        stream: &'a mut Self::Stream<'_>,
    ) -> BoxFuture<'a, Result<(), sqlx::Error>> {
        Box::pin(async move {
            stream.send(&self.piece[..]).await?;
            self.begin_piece(&[]);
            Ok(())
        })
    }

    fn finish<'a, 'c: 'a>(
        &'a mut self,
        mut stream: Self::Stream<'c>,
    ) -> BoxFuture<'a, Result<(), sqlx::Error>> {
        Box::pin(async move {
            self.piece.extend_from_slice(&(-1_i16).to_be_bytes());
            stream.send(&self.piece[..]).await?;
            stream.finish().await?;
            self.begin_piece(SIGNATURE);
            Ok(())
        })
    }

    fn abort(stream: Self::Stream<'_>) -> BoxFuture<'_, Result<(), sqlx::Error>> {
        Box::pin(stream.abort("a row could not be encoded"))
    }
}
