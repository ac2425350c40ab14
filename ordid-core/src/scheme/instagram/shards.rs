//! The schemas of a range of shards.

use alloc::{format, string::String};
use core::{fmt::Write as _, ops::RangeInclusive};

use super::{Shard, create_rising_function_sql, quoted};
use crate::error::Error;

/// The shards of a PostgreSQL database. Each has a schema, named by a prefix and the shard's number, with the
/// function of [`create_rising_function_sql`] and its sequence.
///
/// A shard's number must be unique over all databases and all prefixes: two functions with one number repeat each
/// other's keys.
///
/// # Example
///
/// ```
/// use ordid_core::scheme::instagram::{Shard, Shards};
///
/// let shards = Shards::new("insta", 5..=6)?;
/// let migration = shards.create_sql();
/// assert!(migration.contains("CREATE SCHEMA IF NOT EXISTS \"insta5\";"));
/// assert!(migration.contains("FUNCTION \"insta6\".next_id("));
/// // A table's column: id bigint PRIMARY KEY DEFAULT "insta5".next_id()
/// assert_eq!(shards.next_id_sql(Shard::new(5)?)?, "\"insta5\".next_id()");
/// assert!(shards.next_id_sql(Shard::new(7)?).is_err());
/// # Ok::<(), ordid_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shards {
    prefix: String,
    numbers: RangeInclusive<u64>,
    /// One for each.
    functions: String,
}

/// The sequence in each schema.
const SEQUENCE: &str = "newest_id";

impl Shards {
    /// Makes the shards with these numbers.
    ///
    /// # Errors
    ///
    /// A number above 8,191 gives an error that [`is_layout`](Error::is_layout). An empty range, and a name that
    /// [`create_rising_function_sql`] refuses, give an error that [`is_parse`](Error::is_parse).
    pub fn new(prefix: &str, numbers: RangeInclusive<u64>) -> Result<Self, Error> {
        if numbers.is_empty() {
            return Err(Error::parse(format!(
                "expected the numbers of shards, found {} to {}: there is none in it",
                numbers.start(),
                numbers.end()
            )));
        }
        // Before a range that no layout has is gone through.
        Shard::new(*numbers.end())?;
        let mut functions = String::new();
        for number in numbers.clone() {
            let name = format!("{prefix}{number}");
            let schema = quoted("schema", &name)?;
            let sequence = quoted("sequence", SEQUENCE)?;
            let function = create_rising_function_sql(&name, SEQUENCE, Shard::new(number)?)?;
            // Writing to a String succeeds.
            let _ = write!(
                functions,
                "CREATE SCHEMA IF NOT EXISTS {schema};\n\
                 CREATE SEQUENCE IF NOT EXISTS {schema}.{sequence};\n{function}"
            );
        }
        Ok(Self {
            prefix: prefix.into(),
            numbers,
            functions,
        })
    }

    /// Returns the numbers of the shards.
    pub fn numbers(&self) -> RangeInclusive<u64> {
        self.numbers.clone()
    }

    /// Returns the statements that create the schemas, sequences and functions, for migrations. Existing schemas and
    /// sequences stay, and functions are replaced, so the statements can be run again, and with a wider range.
    ///
    /// Run them in one transaction, for example by a single call without parameters. The first statement makes
    /// concurrent runs wait for each other.
    pub fn create_sql(&self) -> String {
        // The class of the lock is that of the schemas' own catalog.
        format!(
            "SELECT pg_advisory_xact_lock('pg_namespace'::regclass::oid::int, \
             hashtext('ordid shards'));\n{}",
            self.functions
        )
    }

    /// Returns the SQL call that makes a shard's next key, for a column's `DEFAULT` or a `SELECT`.
    ///
    /// # Errors
    ///
    /// A shard that is not one of these gives an error that [`is_parse`](Error::is_parse).
    pub fn next_id_sql(&self, shard: Shard) -> Result<String, Error> {
        let number = shard.get();
        if !self.numbers.contains(&number) {
            return Err(Error::parse(format!(
                "expected a shard from {} to {}, found {number}",
                self.numbers.start(),
                self.numbers.end()
            )));
        }
        let schema = quoted("schema", &format!("{}{number}", self.prefix))?;
        Ok(format!("{schema}.next_id()"))
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    #[test]
    fn each_shard_has_a_schema_a_sequence_and_a_function() {
        let sql = Shards::new("Shard ", 9..=10).unwrap().create_sql();
        for shard in [9, 10] {
            let function = create_rising_function_sql(
                &format!("Shard {shard}"),
                SEQUENCE,
                Shard::new(shard).unwrap(),
            );
            let expected = format!(
                "CREATE SCHEMA IF NOT EXISTS \"Shard {shard}\";\n\
                 CREATE SEQUENCE IF NOT EXISTS \"Shard {shard}\".\"newest_id\";\n{}",
                function.unwrap()
            );
            assert!(sql.contains(&expected), "{sql}");
        }
        assert_eq!(sql.matches("CREATE SCHEMA").count(), 2);
        assert!(sql.starts_with("SELECT pg_advisory_xact_lock("));
    }

    #[test]
    fn what_is_no_range_of_shards_is_refused() {
        assert!(Shards::new("a", 0..=8_191).is_ok());
        assert!(Shards::new("a", 0..=8_192).unwrap_err().is_layout());
        assert!(Shards::new("a", 0..=u64::MAX).unwrap_err().is_layout());
        let none = Shards::new("a", RangeInclusive::new(5, 4)).unwrap_err();
        assert_eq!(
            none.to_string(),
            "expected the numbers of shards, found 5 to 4: there is none in it"
        );
        assert!(Shards::new(&"a".repeat(63), 1..=1).unwrap_err().is_parse());
        let shards = Shards::new("a", 1..=2).unwrap();
        assert_eq!(
            shards
                .next_id_sql(Shard::new(3).unwrap())
                .unwrap_err()
                .to_string(),
            "expected a shard from 1 to 2, found 3"
        );
    }
}
