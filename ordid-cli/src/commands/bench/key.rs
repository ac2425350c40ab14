//! The keys that are compared: the database's counter, or a scheme in a column.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use ordid_core::{
    clock::{Clock, Timestamp},
    scheme::catalogue::{self, AnyColumn, AnyGenerator, Entry, RawForm},
};
use uuid::Uuid;

use crate::{engine::Engine, failure::Failure};

/// The word for the database's own counter.
const AUTO: &str = "auto";
/// 2026-01-01T00:00:00Z, when the simulated clock starts.
const START_MILLIS: u64 = 1_767_225_600_000;

/// A kind of key.
#[derive(Debug, Clone)]
pub(super) struct Key {
    /// `auto`, or the scheme and the column: `uuid_v7:blob`.
    pub(super) name: String,
    /// The column's type.
    pub(super) sql_type: String,
    /// Its scheme and column, unless the database counts.
    pub(super) made: Option<(&'static Entry, AnyColumn)>,
}

impl Key {
    /// Returns what is compared unless the user says something else.
    pub(super) fn defaults(engine: Engine) -> Result<Vec<Self>, Failure> {
        let names: &[&str] = match engine {
            Engine::Postgres => &[
                "auto",
                "snowflake",
                "uuid_v7:uuid",
                "uuid_v7:char22",
                "ulid:char26",
                "uuid_v7:text",
                "uuid_v4:uuid",
                "uuid_v4:text",
            ],
            Engine::Mariadb => &[
                "auto",
                "snowflake",
                "uuid_v7:binary16",
                "uuid_v7:mariadb_uuid",
                "uuid_v7:char22",
                "ulid:char26",
                "uuid_v7:char36",
                "uuid_v4:binary16",
                "uuid_v4:char36",
            ],
            Engine::Sqlite => &[
                "auto",
                "snowflake",
                "uuid_v7:blob",
                "uuid_v7:char22",
                "ulid:char26",
                "uuid_v7:text",
                "uuid_v4:blob",
                "uuid_v4:text",
            ],
            _ => &[
                "auto",
                "snowflake",
                "uuid_v7:binary16",
                "uuid_v7:char22",
                "ulid:char26",
                "uuid_v7:char36",
                "uuid_v4:binary16",
                "uuid_v4:char36",
            ],
        };
        names.iter().map(|name| Self::parse(name, engine)).collect()
    }

    /// Reads `auto`, `SCHEME` or `SCHEME:COLUMN`.
    ///
    /// # Errors
    ///
    /// There is no such scheme, the engine has no such column for it, or nothing makes such keys.
    pub(super) fn parse(name: &str, engine: Engine) -> Result<Self, Failure> {
        if name == AUTO {
            let sql_type = match engine {
                Engine::Sqlite => "INTEGER",
                _ => "bigint",
            };
            return Ok(Self {
                name: AUTO.to_owned(),
                sql_type: sql_type.to_owned(),
                made: None,
            });
        }
        let (scheme, wanted) = match name.split_once(':') {
            Some((scheme, column)) => (scheme, Some(column)),
            None => (name, None),
        };
        let scheme = catalogue::find(scheme).ok_or_else(|| {
            Failure::wrong(format_args!(
                "there is no scheme {scheme:?}: use auto, or a scheme that `ordid schemes` lists, such as uuid_v7"
            ))
        })?;
        let mut columns = scheme.columns();
        columns.retain(|column| column.dialect == engine.name());
        // The first one is the narrowest, unless the scheme rises in another one only.
        columns.sort_by_key(|column| !column.keeps_order_of(scheme));
        let column = match wanted {
            None => columns.first(),
            Some(wanted) => columns.iter().find(|column| column.name == wanted),
        };
        let Some(column) = column else {
            let names: Vec<_> = columns.iter().map(|column| column.name).collect();
            return Err(Failure::wrong(match names.as_slice() {
                [] => format!("{engine} has no column for keys of {}", scheme.name),
                _ => format!(
                    "{engine} has no column {:?} for keys of {}: use one of {}",
                    wanted.unwrap_or_default(),
                    scheme.name,
                    names.join(", ")
                ),
            }));
        };
        let key = Self {
            name: format!("{}:{}", scheme.name, column.name),
            sql_type: column.sql_type.to_owned(),
            made: Some((scheme, *column)),
        };
        // A scheme that only a store makes, or whose time is over, is refused before anything is begun.
        match key.source()?.next() {
            Ok(_) => Ok(key),
            Err(Failure::CouldNot(message)) => Err(Failure::wrong(format_args!(
                "keys of {} cannot be made for the time of the bench, 2026: {message}",
                scheme.name
            ))),
            Err(failure) => Err(failure),
        }
    }

    /// Returns the name of its table.
    pub(super) fn table(&self) -> String {
        let mut table = format!("{}{}", super::PREFIX, self.name.replace(':', "_"));
        // PostgreSQL would shorten it by itself, and MySQL would refuse it.
        table.truncate(63);
        table
    }

    /// Returns the declaration of the column `id`.
    pub(super) fn declaration(&self, engine: Engine) -> String {
        match (&self.made, engine) {
            (Some((_, column)), _) => column.primary_key("id"),
            (None, Engine::Postgres) => {
                "id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY".to_owned()
            }
            (None, Engine::Sqlite) => "id INTEGER PRIMARY KEY".to_owned(),
            (None, _) => "id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY".to_owned(),
        }
    }

    /// Returns what makes the keys, from the start of a simulated clock on.
    ///
    /// # Errors
    ///
    /// Nothing makes such keys here.
    pub(super) fn source(&self) -> Result<Source, Failure> {
        let clock = Arc::new(Steps(AtomicU64::new(START_MILLIS)));
        let Some((scheme, column)) = &self.made else {
            return Ok(Source {
                clock,
                made: None,
                last: Vec::new(),
                is_ordered: true,
            });
        };
        let new = |node| scheme.generator(node, clock.clone() as Arc<dyn Clock>);
        // Schemes with nodes want one; of the others a node would be wrong.
        let generator = new(None).or_else(|error| new(Some(1)).map_err(|_| error));
        let generator = generator.map_err(Failure::wrong)?;
        Ok(Source {
            clock,
            made: Some((generator, *column)),
            last: Vec::new(),
            is_ordered: true,
        })
    }
}

/// The key of a row, as it is bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    /// The database makes it.
    Auto,
    /// An integer.
    Integer(i64),
    /// An integer of MySQL beyond the signed ones.
    Unsigned(u64),
    /// A value of PostgreSQL's type.
    Uuid(Uuid),
    /// Bytes.
    Bytes(Vec<u8>),
    /// Characters.
    Text(String),
}

/// Makes the keys of a table.
pub(super) struct Source {
    clock: Arc<Steps>,
    made: Option<(AnyGenerator, AnyColumn)>,
    last: Vec<u8>,
    /// Whether each key so far is above the one before, by the database's order.
    pub(super) is_ordered: bool,
}

impl Source {
    /// Makes the next key, a millisecond after the last one.
    pub(super) fn next(&mut self) -> Result<Value, Failure> {
        let Some((generator, column)) = &self.made else {
            return Ok(Value::Auto);
        };
        self.clock.0.fetch_add(1, Ordering::Relaxed);
        let key = generator.generate().map_err(Failure::could_not)?;
        let sorted = column.sort_key(&key).map_err(Failure::could_not)?;
        self.is_ordered &= self.last < sorted;
        self.last = sorted;
        let stored = column.stored(&key).map_err(Failure::could_not)?;
        Ok(bound(column, stored))
    }
}

/// Returns what a column stores as a value to bind.
fn bound(column: &AnyColumn, stored: Vec<u8>) -> Value {
    let integer = |bytes: &[u8]| <[u8; 8]>::try_from(bytes).expect("an integer has 8 bytes");
    match column.raw {
        RawForm::I64 => Value::Integer(i64::from_be_bytes(integer(&stored))),
        RawForm::U64 => Value::Unsigned(u64::from_be_bytes(integer(&stored))),
        _ if column.name == "uuid" => {
            Value::Uuid(Uuid::from_slice(&stored).expect("a uuid column stores 16 bytes"))
        }
        _ => match String::from_utf8(stored) {
            Ok(text) if is_text(column.sql_type) => Value::Text(text),
            Ok(text) => Value::Bytes(text.into_bytes()),
            Err(error) => Value::Bytes(error.into_bytes()),
        },
    }
}

/// Whether a column of this type is given characters: MariaDB's `UUID` is, too.
fn is_text(sql_type: &str) -> bool {
    let sql_type = sql_type.to_ascii_uppercase();
    sql_type.contains("CHAR") || sql_type.contains("TEXT") || sql_type == "UUID"
}

/// A clock that a key moves on.
struct Steps(AtomicU64);

impl Clock for Steps {
    fn now(&self) -> Timestamp {
        Timestamp::saturating_from_unix_millis(self.0.load(Ordering::Relaxed))
    }

    fn pause(&self, duration: std::time::Duration) {
        let millis = u64::try_from(duration.as_millis())
            .unwrap_or(u64::MAX)
            .max(1);
        self.0.fetch_add(millis, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENGINES: [Engine; 4] = [
        Engine::Postgres,
        Engine::Mysql,
        Engine::Mariadb,
        Engine::Sqlite,
    ];

    #[test]
    fn what_is_compared_by_default_exists_on_every_engine() {
        for engine in ENGINES {
            for key in Key::defaults(engine).expect("they exist") {
                let mut source = key.source().expect("they are made");
                let values: Vec<_> = (0..1000).map(|_| source.next().expect("made")).collect();
                assert_eq!(
                    source.is_ordered,
                    !key.name.starts_with("uuid_v4"),
                    "{}",
                    key.name
                );
                assert!(key.table().len() <= 63);
                let is_text = matches!(values[0], Value::Text(_));
                let has_text = ["char", "text", "mariadb"]
                    .iter()
                    .any(|it| key.name.contains(it));
                assert_eq!(is_text, has_text, "{engine} {} {:?}", key.name, values[0]);
            }
        }
    }

    #[test]
    fn every_scheme_of_the_catalogue_is_benched_or_refused_in_a_line() {
        for engine in ENGINES {
            for entry in catalogue::CATALOGUE {
                match Key::parse(entry.name, engine) {
                    Ok(key) => drop(
                        key.source()
                            .and_then(|mut source| source.next())
                            .expect("made"),
                    ),
                    Err(failure) => assert_eq!(failure.code(), 2, "{}", entry.name),
                }
            }
        }
    }

    #[test]
    fn a_key_that_does_not_exist_says_which_do() {
        let refused = |name: &str| match Key::parse(name, Engine::Sqlite) {
            Err(Failure::WrongUse(message)) => message,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            refused("guid"),
            "there is no scheme \"guid\": use auto, or a scheme that `ordid schemes` lists, such as uuid_v7"
        );
        assert_eq!(
            refused("uuid_v7:binary16"),
            "SQLite has no column \"binary16\" for keys of uuid_v7: use one of blob, text, char22, char26"
        );
    }
}
