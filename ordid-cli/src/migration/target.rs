//! The target of a move: the scheme, the column, and the SQL by which a trigger makes such a key.

use ordid_core::scheme::catalogue::{AnyColumn, Entry};

use super::backfill::bytes_of;
use crate::{engine::Engine, failure::Failure, scheme};

/// The scheme and the column of the new keys.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    /// The scheme.
    pub(crate) scheme: &'static Entry,
    /// The column.
    pub(crate) column: AnyColumn,
}

/// The schemes that have a key in SQL, and the character behind their time: the version of a UUID.
const SCHEMES: [(&str, &str); 4] = [
    ("uuid_v7", "7"),
    ("uuid_v7_unguessable", "7"),
    ("uuid_v7_sub_millis", "7"),
    ("ulid", ""),
];

/// The columns that have a key in SQL, of each engine. The first one in which the keys rise is taken if none is named.
const fn columns(engine: Engine) -> &'static [&'static str] {
    match engine {
        Engine::Postgres => &["uuid", "bytea", "text"],
        Engine::Mysql => &["binary16"],
        Engine::Mariadb => &["binary16", "mariadb_uuid"],
        Engine::Sqlite => &["blob", "text"],
        Engine::SqlServer | Engine::Oracle => &[],
    }
}

impl Target {
    /// Reads `SCHEME[:COLUMN]`.
    ///
    /// # Errors
    ///
    /// There is no such scheme or column, the scheme's keys lose their order in the column, or a trigger of the engine
    /// cannot make such keys.
    pub(crate) fn parse(engine: Engine, text: &str) -> Result<Self, Failure> {
        let (name, column) = match text.split_once(':') {
            Some((name, column)) => (name, Some(column)),
            None => (text, None),
        };
        let scheme = scheme::named(name).map_err(Failure::wrong)?;
        let preferred = || {
            let all = scheme::columns(scheme, engine);
            let mut known = columns(engine).iter();
            let ordered = |name: &&&str| {
                all.iter()
                    .any(|it| it.name == **name && it.keeps_order_of(scheme))
            };
            known.find(ordered).copied()
        };
        let column = scheme::ordered_column(scheme, engine, column.or_else(preferred))?;
        let target = Self { scheme, column };
        if target.hex("0", "0", "0").is_none() {
            let known: Vec<&str> = SCHEMES.iter().map(|(name, _)| *name).collect();
            return Err(Failure::wrong(format_args!(
                "a table cannot be moved to `{}` while others write it, as a trigger of the database cannot make such keys: \
                 move it to {}",
                scheme.name,
                known.join(", ")
            )));
        }
        if !columns(engine).contains(&column.name)
            || (column.name == "text" && target.version().is_empty())
        {
            return Err(Failure::wrong(format_args!(
                "a trigger of {engine} cannot make keys of `{}` for the column `{}`: name one of {}",
                scheme.name,
                column.name,
                columns(engine).join(", ")
            )));
        }
        Ok(target)
    }

    /// Whether these keys, in hexadecimal, are all of the scheme already, and there are some.
    pub(crate) fn are_keys(&self, sample: &[String]) -> bool {
        let is_key = |hex: &String| self.scheme.key_of(&bytes_of(hex)).is_ok();
        // Any 16 bytes are a ULID: a UUID of another version is not taken for one.
        let is_told =
            |hex: &String| !self.version().is_empty() || hex.as_bytes().get(12) != Some(&b'4');
        !sample.is_empty() && sample.iter().all(|hex| is_key(hex) && is_told(hex))
    }

    fn version(&self) -> &'static str {
        let found = SCHEMES.iter().find(|(name, _)| *name == self.scheme.name);
        found.map_or("", |(_, version)| version)
    }

    /// Returns an expression of the key's 32 hexadecimal digits, joined by `,`, of those of the millisecond (12), of
    /// its 1/4096 parts (3), and of random ones (17, or 16 behind a version, the first of which is of the variant).
    fn hex(&self, millis: &str, part: &str, random: &str) -> Option<String> {
        let (_, version) = SCHEMES.iter().find(|(name, _)| *name == self.scheme.name)?;
        Some(match *version {
            "" => format!("{millis},{part},{random}"),
            version => format!("{millis},'{version}',{part},{random}"),
        })
    }

    /// Returns an expression of a key of PostgreSQL, by the microseconds `m` and 32 random digits `r` whose 17th is a
    /// UUID's variant.
    pub(crate) fn postgres(&self) -> String {
        let random = match self.version() {
            "" => "substr(r,1,1),substr(r,17,16)",
            _ => "substr(r,17,16)",
        };
        let digits = self
            .hex(
                "lpad(to_hex(m/1000),12,'0')",
                "lpad(to_hex(m%1000*4096/1000),3,'0')",
                random,
            )
            .expect("the scheme was asked for it before");
        match self.column.name {
            "bytea" => format!("decode(concat({digits}),'hex')"),
            "text" => format!("concat({digits})::uuid::text"),
            _ => format!("concat({digits})::uuid"),
        }
    }

    /// Returns an expression of a key of MySQL and MariaDB, by an expression of microseconds, which it has twice.
    pub(crate) fn mysql(&self, micros: &str) -> String {
        let random = match self.version() {
            "" => "SUBSTR(HEX(RANDOM_BYTES(9)),2)",
            _ => "ELT(1+FLOOR(RAND()*4),'8','9','a','b'),SUBSTR(HEX(RANDOM_BYTES(8)),2)",
        };
        let digits = self
            .hex(
                &format!("LPAD(HEX({micros} DIV 1000),12,'0')"),
                &format!("LPAD(HEX({micros} MOD 1000*4096 DIV 1000),3,'0')"),
                random,
            )
            .expect("the scheme was asked for it before");
        match self.column.name {
            "mariadb_uuid" => format!("CONCAT({digits})"),
            _ => format!("UNHEX(CONCAT({digits}))"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(engine: Engine, text: &str) -> String {
        match Target::parse(engine, text) {
            Err(Failure::WrongUse(message)) => message,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn the_first_column_that_keeps_the_order_is_taken() {
        for (engine, text, column) in [
            (Engine::Postgres, "uuid_v7", "uuid"),
            (Engine::Postgres, "uuid-v7:bytea", "bytea"),
            (Engine::Mysql, "uuid_v7", "binary16"),
            (Engine::Mariadb, "uuid_v7:mariadb_uuid", "mariadb_uuid"),
            (Engine::Sqlite, "uuid_v7", "blob"),
        ] {
            let target = Target::parse(engine, text).expect("it is a target");
            assert_eq!(target.column.name, column, "{engine} {text}");
        }
    }

    #[test]
    fn a_target_of_no_use_is_refused_with_a_way_out() {
        let lost = message(Engine::Mariadb, "ulid:mariadb_uuid");
        assert!(
            lost.starts_with(
                "`ulid` keys lose their order in the column `mariadb_uuid` of MariaDB: it "
            ) && lost.contains("they keep it in binary16"),
            "{lost}"
        );
        assert!(message(Engine::Postgres, "uuid_v4").contains("lose their order"));
        assert!(message(Engine::Postgres, "uuid_v77").contains("did you mean `uuid_v7`?"));
        assert!(message(Engine::Postgres, "uuid_v7:binary16").contains("it has uuid, bytea"));
        assert!(message(Engine::Postgres, "snowflake").contains("cannot make such keys"));
    }
}
