//! Instagram's keys: 41 bits of milliseconds, 13 of shard, 10 of sequence.
//!
//! ```text
//!  63                                         22          9         0
//! +------------------------------------------+-----------+----------+
//! |        41 bits: ms since the epoch       | shard: 13 | seq.: 10 |
//! +------------------------------------------+-----------+----------+
//! ```
//!
//! The epoch is 2011-08-24T21:07:01.721Z. These are all 64 bits of a signed `bigint`. So the original's keys turn
//! negative on 2046-06-27T17:00:49.497Z, and sort below all that were made before. This scheme is the [`Snowflake`]
//! of the lower 63 bits: until then its keys are the same, and from then on every call is an error. Keys compare as
//! numbers.
//!
//! The original is a function in PostgreSQL, one in each shard's schema, and its sequence is `nextval % 1024`. Within
//! a millisecond its keys fall wherever the sequence passes a multiple of 1,024, and they repeat after 1,024 keys. A
//! generator of ordid counts from zero in each millisecond. Its keys never fall, and when the sequence is used up it
//! goes on in the next millisecond. The rules of [`snowflake`](super::snowflake) about nodes, restarts and forks
//! apply to shards, too.
//!
//! [`create_function_sql`] writes the original's function, and [`create_rising_function_sql`] one without its faults.
//! [`Shards`] writes a migration for many shards. A function and a generator must not share a shard, because neither
//! knows the other's keys. Whoever knows one key can predict the next one.
//!
//! # References
//!
//! Instagram Engineering, "Sharding & IDs at Instagram", 2012 (clip
//! `jaytaylor.com/notes/node/1552493411000`); Database Administrators 193287 (the sample).

mod shards;

use alloc::{format, string::String};

pub use self::shards::Shards;
use crate::{
    error::Error,
    generator::OrderedGenerator,
    key::text::excerpt,
    scheme::{
        Snowflake,
        snowflake::{SnowflakeLayout, SnowflakeNode},
    },
};

/// Instagram's layout, without the sign bit.
#[derive(Debug)]
pub enum InstagramLayout {}

impl SnowflakeLayout for InstagramLayout {
    const NAME: &'static str = "instagram";
    const EPOCH_UNIX_MILLIS: i64 = 1_314_220_021_721;
    const TIME_BITS: u32 = 40;
    const NODE_BITS: u32 = 13;
    const SEQUENCE_BITS: u32 = 10;
}

const EPOCH: i64 = InstagramLayout::EPOCH_UNIX_MILLIS;
const TIME_BITS: u32 = InstagramLayout::TIME_BITS;
const NODE_SHIFT: u32 = InstagramLayout::SEQUENCE_BITS;
const TIME_SHIFT: u32 = InstagramLayout::NODE_BITS + NODE_SHIFT;

/// The scheme `instagram`.
///
/// # Example: a key that was observed
///
/// ```
/// use ordid_core::scheme::{Instagram, Layout};
///
/// let inspection = Instagram::inspect(&1_671_372_309_237_077_023)?;
/// assert_eq!((inspection.node, inspection.counter), (Some(5), Some(31)));
/// let moment = inspection.moment.unwrap();
/// assert_eq!(moment.timestamp().unwrap().as_unix_millis(), 1_513_463_127_280);
/// # Ok::<(), ordid_core::Error>(())
/// ```
pub type Instagram = Snowflake<InstagramLayout>;

/// A shard's number, below 8,192.
pub type Shard = SnowflakeNode<InstagramLayout>;

generator_alias! {
    /// Makes Instagram's keys for one shard ([`with_node`](OrderedGenerator::with_node)), strictly rising over all
    /// threads that share it.
    InstagramGenerator<C, E> = OrderedGenerator<Instagram, C, E>
}

/// Returns the statement that creates the original's function `next_id()` in a shard's schema of PostgreSQL, with a
/// sequence of that schema.
///
/// The schema has to exist when the statement runs, and the sequence when the function is *called*. Names are quoted,
/// so capital letters are kept. The function is the original's, with its faults, except for one: it raises an error
/// if the key would be negative, from 2046 on or before 2011.
///
/// # Errors
///
/// A name that is empty, longer than the 63 bytes that PostgreSQL keeps, or contains a NUL, a backslash, or the text
/// `$ordid$`, gives an error that [`is_parse`](Error::is_parse).
///
/// # Example
///
/// ```
/// use ordid_core::scheme::instagram::{Shard, create_function_sql};
///
/// let sql = create_function_sql("insta5", "table_id_seq", Shard::new(5)?)?;
/// assert!(sql.starts_with("CREATE OR REPLACE FUNCTION \"insta5\".next_id(OUT result bigint)"));
/// assert!(sql.contains("nextval('\"insta5\".\"table_id_seq\"') % 1024"));
/// # Ok::<(), ordid_core::Error>(())
/// ```
pub fn create_function_sql(schema: &str, sequence: &str, shard: Shard) -> Result<String, Error> {
    let schema = quoted("schema", schema)?;
    let sequence = quoted("sequence", sequence)?;
    let regclass = regclass(&schema, &sequence);
    let sequences = 1 << NODE_SHIFT;
    let shard = shard.get();
    Ok(function(
        &schema,
        &format!(
            "DECLARE
    our_epoch bigint := {EPOCH};
    seq_id bigint;
    now_millis bigint;
    shard_id int := {shard};
BEGIN
    SELECT nextval('{regclass}') % {sequences} INTO seq_id;
    SELECT FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000) INTO now_millis;
    IF (now_millis - our_epoch) >> {TIME_BITS} <> 0 THEN
        RAISE EXCEPTION 'time % does not fit: the layout has {TIME_BITS} bits of milliseconds \
         since %', now_millis, our_epoch;
    END IF;
    result := (now_millis - our_epoch) << {TIME_SHIFT};
    result := result | (shard_id << {NODE_SHIFT});
    result := result | (seq_id);
"
        ),
    ))
}

/// Returns the statement that creates a function `next_id()` as [`create_function_sql`] does, but with keys that rise
/// strictly over all sessions of the database, and never repeat.
///
/// The function needs a sequence that nothing else uses. The sequence does not count keys. It keeps the newest key,
/// without its shard. A call raises it by one, or to the first key of the clock's millisecond, whichever is higher.
/// So after 1,024 keys in a millisecond the function goes on in the next one, and when the clock steps back, keys go
/// on from the newest. Calls take turns by an advisory lock, which each call releases at its end and not at the end
/// of the transaction. As with every sequence, keys may be committed in another order than they were made.
///
/// # Errors
///
/// As [`create_function_sql`].
///
/// # Example
///
/// ```
/// use ordid_core::scheme::instagram::{Shard, create_rising_function_sql};
///
/// let sql = create_rising_function_sql("insta5", "newest_id", Shard::new(5)?)?;
/// assert!(sql.starts_with("CREATE OR REPLACE FUNCTION \"insta5\".next_id(OUT result bigint)"));
/// assert!(sql.contains("FROM \"insta5\".\"newest_id\""));
/// # Ok::<(), ordid_core::Error>(())
/// ```
pub fn create_rising_function_sql(
    schema: &str,
    sequence: &str,
    shard: Shard,
) -> Result<String, Error> {
    let schema = quoted("schema", schema)?;
    let sequence = quoted("sequence", sequence)?;
    let regclass = regclass(&schema, &sequence);
    let slot_bits = TIME_BITS + NODE_SHIFT;
    let last_sequence = (1 << NODE_SHIFT) - 1;
    let shard = shard.get();
    // A handler for everything, and for `query_canceled`, which `OTHERS` leaves out: a session's
    // advisory lock outlives the error, and every other session would wait. The lock is taken and given back inside of
    // the block, since a cancellation may come right behind either. Where the lock is not held then, to give it back is
    // a warning.
    Ok(function(
        &schema,
        &format!(
            "DECLARE
    our_epoch CONSTANT bigint := {EPOCH};
    shard_id CONSTANT bigint := {shard};
    newest CONSTANT regclass := '{regclass}';
    now_millis bigint;
    slot bigint;
BEGIN
    BEGIN
        PERFORM pg_advisory_lock('pg_class'::regclass::oid::int, newest::oid::int);
        now_millis := FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000);
        SELECT GREATEST(last_value + 1, (now_millis - our_epoch) << {NODE_SHIFT})
            FROM {schema}.{sequence} INTO slot;
        IF slot >> {slot_bits} <> 0 THEN
            RAISE EXCEPTION 'time % does not fit: the layout has {TIME_BITS} bits of milliseconds \
         since %', now_millis, our_epoch;
        END IF;
        PERFORM setval(newest, slot);
        PERFORM pg_advisory_unlock('pg_class'::regclass::oid::int, newest::oid::int);
    EXCEPTION WHEN OTHERS OR query_canceled THEN
        PERFORM pg_advisory_unlock('pg_class'::regclass::oid::int, newest::oid::int);
        RAISE;
    END;
    result := ((slot >> {NODE_SHIFT}) << {TIME_SHIFT}) | (shard_id << {NODE_SHIFT}) \
         | (slot & {last_sequence});
"
        ),
    ))
}

/// Writes a function around its variables and what it does.
fn function(schema: &str, body: &str) -> String {
    format!(
        "CREATE OR REPLACE FUNCTION {schema}.next_id(OUT result bigint) AS $ordid$
{body}END;
$ordid$ LANGUAGE plpgsql;
"
    )
}

/// Returns the sequence's name as text inside an SQL text.
fn regclass(schema: &str, sequence: &str) -> String {
    format!("{schema}.{sequence}").replace('\'', "''")
}

/// Returns a name in double quotes.
fn quoted(what: &str, name: &str) -> Result<String, Error> {
    /// `NAMEDATALEN` less one: PostgreSQL cuts off what is longer.
    const MOST: usize = 63;
    let refused = if name.is_empty() {
        "it is empty"
    } else if name.len() > MOST {
        "it has more than 63 bytes"
    } else if name.contains(['\0', '\\']) {
        "it has a NUL or a backslash"
    } else if name.contains("$ordid$") {
        "it has the text `$ordid$`, which ends the function"
    } else {
        return Ok(format!("\"{}\"", name.replace('"', "\"\"")));
    };
    Err(Error::parse(format!(
        "expected the name of a {what}, found {}: {refused}",
        excerpt(name.as_bytes())
    )))
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::{
        generator::Generator,
        scheme::{Layout as _, snowflake::Parts, testing::*},
    };

    /// As a literal: the vectors are of it.
    const EPOCH: u64 = 1_314_220_021_721;

    #[test]
    fn instagram_meets_the_observed_key() {
        let observed = &vectors("instagram")["observed"];
        let number = |name: &str| observed[name].as_u64().unwrap();
        let parts = Parts {
            time: number("unix_ms") - EPOCH,
            node: number("shard"),
            sequence: number("seq"),
        };
        let key = observed["id"].as_i64().unwrap();
        assert_eq!(Instagram::pack(parts).unwrap(), key);
        assert_eq!(Instagram::unpack(&key).unwrap(), parts);
    }

    /// `nextval % 1024` goes from 1023 to 0 inside a millisecond, down, and repeats after that.
    #[test]
    fn more_than_1024_keys_of_a_millisecond_rise_without_a_repeat() {
        let generator = scripted_at::<Instagram>(Shard::new(5).unwrap(), EPOCH + 5);
        generator.clock().freeze();
        let mut last = -1;
        for number in 0..4 * 1_024 + 1 {
            let key = next(&generator);
            assert!(key > last);
            last = key;
            let expected = Parts {
                time: 5 + number / 1_024,
                node: 5,
                sequence: number % 1_024,
            };
            assert_eq!(Instagram::unpack(&key).unwrap(), expected);
        }
    }

    #[test]
    fn instagram_ends_in_2046_and_not_in_the_sign() {
        let last = EPOCH + (1 << 40) - 1;
        let generator = scripted_at::<Instagram>(Shard::new(8_191).unwrap(), last);
        assert_eq!(ends_after(&generator, last), i64::MAX - 1_023);
        let error = generator.try_generate().unwrap_err();
        assert_eq!(
            error.to_string(),
            "timestamp 2413731649497 ms does not fit: the layout ends at 2413731649496 ms since \
             1970-01-01"
        );
        assert!(Instagram::unpack(&-1).unwrap_err().is_layout());
    }

    /// Asserts that the SQL creates a function in the schema `insta5`.
    fn is_function(sql: &str, body: &str) {
        let begin = "CREATE OR REPLACE FUNCTION \"insta5\".next_id(OUT result bigint) AS $ordid$\n";
        let end = "END;\n$ordid$ LANGUAGE plpgsql;\n";
        assert_eq!(sql, [begin, body, end].concat());
    }

    #[test]
    fn the_function_is_the_one_of_the_article() {
        let sql = create_function_sql("insta5", "table_id_seq", Shard::new(5).unwrap()).unwrap();
        is_function(
            &sql,
            r#"DECLARE
    our_epoch bigint := 1314220021721;
    seq_id bigint;
    now_millis bigint;
    shard_id int := 5;
BEGIN
    SELECT nextval('"insta5"."table_id_seq"') % 1024 INTO seq_id;
    SELECT FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000) INTO now_millis;
    IF (now_millis - our_epoch) >> 40 <> 0 THEN
        RAISE EXCEPTION 'time % does not fit: the layout has 40 bits of milliseconds since %', now_millis, our_epoch;
    END IF;
    result := (now_millis - our_epoch) << 23;
    result := result | (shard_id << 10);
    result := result | (seq_id);
"#,
        );
    }

    #[test]
    fn the_rising_function_keeps_the_newest_slot_in_its_sequence() {
        let shard = Shard::new(5).unwrap();
        let sql = create_rising_function_sql("insta5", "it's", shard).unwrap();
        is_function(
            &sql,
            r#"DECLARE
    our_epoch CONSTANT bigint := 1314220021721;
    shard_id CONSTANT bigint := 5;
    newest CONSTANT regclass := '"insta5"."it''s"';
    now_millis bigint;
    slot bigint;
BEGIN
    BEGIN
        PERFORM pg_advisory_lock('pg_class'::regclass::oid::int, newest::oid::int);
        now_millis := FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000);
        SELECT GREATEST(last_value + 1, (now_millis - our_epoch) << 10)
            FROM "insta5"."it's" INTO slot;
        IF slot >> 50 <> 0 THEN
            RAISE EXCEPTION 'time % does not fit: the layout has 40 bits of milliseconds since %', now_millis, our_epoch;
        END IF;
        PERFORM setval(newest, slot);
        PERFORM pg_advisory_unlock('pg_class'::regclass::oid::int, newest::oid::int);
    EXCEPTION WHEN OTHERS OR query_canceled THEN
        PERFORM pg_advisory_unlock('pg_class'::regclass::oid::int, newest::oid::int);
        RAISE;
    END;
    result := ((slot >> 10) << 23) | (shard_id << 10) | (slot & 1023);
"#,
        );
    }

    #[test]
    fn names_are_quoted_twice_or_refused() {
        let shard = Shard::new(0).unwrap();
        let sql = create_function_sql("a\"b", "it's; DROP TABLE x", shard).unwrap();
        assert!(sql.contains(r#"FUNCTION "a""b".next_id("#), "{sql}");
        assert!(
            sql.contains(r#"nextval('"a""b"."it''s; DROP TABLE x"')"#),
            "{sql}"
        );
        let long = "s".repeat(64);
        for name in ["", "a\0", "a\\'", "a$ordid$b", &long] {
            for error in [
                create_function_sql(name, "seq", shard).unwrap_err(),
                create_function_sql("schema", name, shard).unwrap_err(),
                create_rising_function_sql(name, "seq", shard).unwrap_err(),
                create_rising_function_sql("schema", name, shard).unwrap_err(),
            ] {
                assert!(error.is_parse(), "{error}");
            }
        }
        assert!(create_function_sql(&long[1..], "seq", shard).is_ok());
        assert_eq!(
            create_function_sql("s", "", shard).unwrap_err().to_string(),
            "expected the name of a sequence, found \"\": it is empty"
        );
    }
}
