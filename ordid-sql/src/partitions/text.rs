//! The statements about partitions.

use std::any::TypeId;

use ordid_core::{
    Error, RawKey,
    spi::excerpt,
    storage::{ColumnOn, Dialect as _, Stores, Written, dialect::Postgres},
    uuid::Uuid,
};

/// A table, by its names.
#[derive(Debug, Clone, Copy)]
pub(super) struct Names<'a> {
    pub(super) schema: Option<&'a str>,
    pub(super) table: &'a str,
    pub(super) key: &'a str,
}

/// Returns a text as an SQL literal.
fn text(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}

impl Names<'_> {
    pub(super) fn table(&self) -> String {
        Postgres::quote_table(self.schema, self.table)
    }

    /// Returns the name of the partition for a period of this name.
    pub(super) fn partition(&self, period: &str) -> Result<String, Error> {
        let name = format!("{}_{period}", self.table);
        if name.len() <= 63 {
            return Ok(name);
        }
        Err(Error::parse(format!(
            "a partition would be called {name}, and PostgreSQL keeps the first 63 bytes of a name: rename the table"
        )))
    }

    pub(super) fn partition_by(&self) -> String {
        format!("PARTITION BY RANGE ({})", Postgres::quote(self.key))
    }

    /// Returns one statement, which therefore is one transaction. It takes the same lock as ATTACH, which conflicts with
    /// itself, so a session that has waited for the lock finds the partition. `CREATE TABLE .. PARTITION OF` would block
    /// everybody. If there is a partition of this name, its bounds are compared as `pg_get_expr` writes them.
    pub(super) fn create(&self, name: &str, [from, to]: &[Option<String>; 2]) -> String {
        // A bound, and an expression for the text of it that `pg_get_expr` writes.
        let bound = |key: &Option<String>, open: &str| match key {
            Some(key) => (
                key.clone(),
                format!("'(''' || CAST({key} AS text) || ''')'"),
            ),
            None => (open.to_owned(), format!("'({open})'")),
        };
        let ((from, from_text), (to, to_text)) = (bound(from, "MINVALUE"), bound(to, "MAXVALUE"));
        let table = self.table();
        let partition = Postgres::quote_table(self.schema, name);
        let (table_text, partition_text) = (text(&table), text(&partition));
        // No name ends the text: it has no tag that is in one of them.
        let mut tag = "$ordid$".to_owned();
        while table.contains(&tag) || partition.contains(&tag) {
            tag.insert(1, '_');
        }
        format!(
            "DO {tag} DECLARE
    expected text;
    bounds text;
BEGIN
    PERFORM set_config('bytea_output', 'hex', true);
    expected := 'FOR VALUES FROM ' || {from_text} || ' TO ' || {to_text};
    LOCK TABLE ONLY {table} IN SHARE UPDATE EXCLUSIVE MODE;
    SELECT pg_get_expr(c.relpartbound, c.oid) INTO bounds FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
        WHERE i.inhrelid = to_regclass({partition_text}) AND i.inhparent = {table_text}::regclass;
    IF NOT FOUND THEN
        CREATE TABLE {partition}
            (LIKE {table} INCLUDING DEFAULTS INCLUDING GENERATED INCLUDING STORAGE INCLUDING CONSTRAINTS);
        ALTER TABLE {table} ATTACH PARTITION {partition} FOR VALUES FROM ({from}) TO ({to});
    ELSIF bounds IS DISTINCT FROM expected THEN
        RAISE EXCEPTION 'the partition % has the bounds %, expected %', {partition_text}, bounds, expected;
    END IF;
END {tag}"
        )
    }

    pub(super) fn detach(&self, schema: &str, name: &str) -> String {
        let partition = Postgres::quote_table(Some(schema), name);
        format!(
            "ALTER TABLE {} DETACH PARTITION {partition} CONCURRENTLY",
            self.table()
        )
    }

    /// Returns the query for the schema, the name and the bounds of each partition, as one text. Bytes in bounds are
    /// written as hex digits, whatever the session has. It leaves out a
    /// partition that is being detached, for which PostgreSQL has a column from version 14 on.
    pub(super) fn list(&self) -> String {
        let table = text(&self.table());
        format!(
            "WITH output AS MATERIALIZED (SELECT set_config('bytea_output', 'hex', true)) \
             SELECT n.nspname || E'\\n' || c.relname || E'\\n' || pg_get_expr(c.relpartbound, c.oid) \
             FROM output CROSS JOIN pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_namespace n ON n.oid = c.relnamespace \
             WHERE i.inhparent = {table}::regclass AND c.relpartbound IS NOT NULL \
             AND to_jsonb(i) ->> 'inhdetachpending' IS DISTINCT FROM 'true'"
        )
    }
}

/// Returns the lowest keys at the beginning and the end of a period; `None` for one of them where the layout has no such time.
///
/// # Errors
///
/// Returns the error if the layout has neither.
pub(super) fn within<K>(
    from: Result<K, Error>,
    to: Result<K, Error>,
) -> Result<[Option<K>; 2], Error> {
    match (from, to) {
        (Err(error), Ok(to)) if error.is_clock() => Ok([None, Some(to)]),
        (Ok(from), Err(error)) if error.is_clock() => Ok([Some(from), None]),
        (from, to) => Ok([Some(from?), Some(to?)]),
    }
}

/// One end of a partition.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Bound<'a> {
    Open,
    /// The bound is the text between the quotes.
    At(&'a str),
}

/// Reads the bounds that `pg_get_expr` has written. Returns `Some(None)` for the default partition, and `None` if the
/// text is not one of bounds.
pub(super) fn bounds(text: &str) -> Option<Option<[Bound<'_>; 2]>> {
    if text == "DEFAULT" {
        return Some(None);
    }
    let text = text.strip_prefix("FOR VALUES FROM (")?.strip_suffix(')')?;
    let (from, to) = text.split_once(") TO (")?;
    Some(Some([bound(from)?, bound(to)?]))
}

fn bound(text: &str) -> Option<Bound<'_>> {
    match text {
        "MINVALUE" | "MAXVALUE" => Some(Bound::Open),
        _ => {
            let literal = text.strip_prefix('\'')?.strip_suffix('\'')?;
            // No key's text has a quote.
            (!literal.contains('\'')).then_some(Bound::At(literal))
        }
    }
}

/// Reads a stored key from PostgreSQL's text of it.
pub(super) fn stored<C: ColumnOn<Postgres> + Stores<R>, R: RawKey>(text: &str) -> Result<R, Error> {
    let is_number = TypeId::of::<C::Stored>() == TypeId::of::<i64>();
    let refused = || {
        let (column, found) = (C::NAME, excerpt(text.as_bytes()));
        Error::parse(format!(
            "expected a key in a column {column}, found {found}"
        ))
    };
    match <C as ColumnOn<Postgres>>::LITERAL.written {
        Written::Plain if is_number => {
            let number: i64 = text.parse().map_err(|_| refused())?;
            C::decode(number)
        }
        Written::Hyphenated => {
            let uuid = Uuid::try_parse(text).map_err(|_| refused())?;
            C::decode(uuid.as_bytes())
        }
        Written::Hex => {
            let bytes = hex(text).ok_or_else(refused)?;
            C::decode(&*bytes)
        }
        _ => C::decode(text),
    }
}

/// Reads the text of a `bytea`.
pub(super) fn hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("\\x")?.as_bytes();
    let pairs = digits.chunks(2).map(|pair| {
        let [high, low] = *pair else { return None };
        let digit = |character: u8| char::from(character).to_digit(16);
        u8::try_from(digit(high)? << 4 | digit(low)?).ok()
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use ordid_core::storage::column::{BigInt, Bytea, Char22, Text, Uuid as UuidColumn};

    use super::*;

    fn round<C: ColumnOn<Postgres> + Stores<R>, R: RawKey>(raw: R, text: &str) {
        assert_eq!(stored::<C, R>(text).unwrap(), raw);
        assert!(stored::<C, R>("\\x0").is_err() && stored::<C, R>("").is_err());
    }

    #[test]
    fn keys_are_read_as_the_server_writes_them() {
        let key = Uuid::from_u128(0x019a_c000_0000_7000_8000_0000_0000_00ff);
        round::<UuidColumn, _>(key, "019ac000-0000-7000-8000-0000000000ff");
        round::<Bytea, _>(key, "\\x019ac0000000700080000000000000ff");
        round::<Text, _>(key, "019ac000-0000-7000-8000-0000000000ff");
        round::<BigInt, _>(-7_i64, "-7");
        let text = <Char22 as ColumnOn<Postgres>>::literal(key);
        round::<Char22, _>(key, text.trim_matches('\''));
    }

    #[test]
    fn a_name_that_postgres_would_cut_off_is_refused() {
        let longest = "t".repeat(54);
        let name = |table| {
            let names = Names {
                schema: None,
                table,
                key: "id",
            };
            names.partition("20261125")
        };
        assert_eq!(name(&longest).unwrap().len(), 63);
        let error = name(&format!("{longest}t")).unwrap_err();
        assert!(error.is_parse());
        assert!(error.to_string().contains("first 63 bytes"), "{error}");
    }

    #[test]
    fn bounds_are_read_as_the_server_writes_them() {
        assert_eq!(
            bounds("FOR VALUES FROM ('0192') TO ('\\x0193')"),
            Some(Some([Bound::At("0192"), Bound::At("\\x0193")]))
        );
        assert_eq!(
            bounds("FOR VALUES FROM (MINVALUE) TO (MAXVALUE)"),
            Some(Some([Bound::Open, Bound::Open]))
        );
        assert_eq!(bounds("DEFAULT"), Some(None));
        for other in [
            "",
            "FOR VALUES IN ('a')",
            "FOR VALUES WITH (modulus 2, remainder 0)",
            "FOR VALUES FROM ('a', 'b') TO ('c', 'd')",
            "FOR VALUES FROM (1) TO (2)",
        ] {
            assert_eq!(bounds(other), None, "{other}");
        }
    }
}
