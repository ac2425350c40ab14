//! Statements that give each bucket of spread keys a range of its own.

use ordid_core::{
    scheme::SpreadKey,
    storage::{ColumnOn, Dialect, Stores},
};

use crate::EngineProfile;

/// How an engine is told where the ranges of a table begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Splits {
    /// The engine splits by itself, or has no ranges.
    ByItself,
    /// By `ALTER TABLE .. SPLIT AT VALUES (..), (..)`.
    AlterTable,
    /// By `SPLIT AT VALUES ((..), (..))` at the end of `CREATE TABLE`, whose primary key is declared `ASC`.
    CreateTable,
    /// By `SPLIT TABLE .. BY (..), (..)`.
    SplitTable,
}

impl EngineProfile {
    /// Returns the SQL by which a table is split where the buckets of its keys begin: a statement after `CREATE TABLE`; on
    /// YugabyteDB the clause that ends `CREATE TABLE`. `None` where the engine [splits by itself](Splits::ByItself).
    ///
    /// `table` is written as it is given, quoted. The primary key is the column of `K` alone; on CockroachDB it may also
    /// begin with it. On TiDB it has to be `CLUSTERED`: otherwise rows stand in the order of a hidden row id, and all
    /// inserts go to one range whatever the key is. CockroachDB moves the new ranges to other machines in time, or at once
    /// by `ALTER TABLE .. SCATTER`; TiDB does so by itself.
    ///
    /// # References
    ///
    /// CockroachDB, `SPLIT AT`; YugabyteDB, `CREATE TABLE`, "SPLIT AT VALUES", and its grammar, which takes no casts there;
    /// TiDB, "Split Region".
    ///
    /// # Example
    ///
    /// ```
    /// use ordid_core::{key::Generated, scheme::SnowflakeSpread, storage::{column, dialect::MySql}, KeyType};
    /// use ordid_sql::EngineProfile;
    ///
    /// // #[derive(KeyType)]
    /// // #[ordid(scheme = snowflake_spread(buckets = 4))]
    /// // struct EventId(i64);
    /// # #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    /// # struct EventId(i64);
    /// # impl std::fmt::Display for EventId {
    /// #     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { self.0.fmt(f) }
    /// # }
    /// # impl KeyType for EventId {
    /// #     type Raw = i64;
    /// #     type Scheme = SnowflakeSpread<4>;
    /// #     const NAME: &'static str = "EventId";
    /// #     const PREFIX: Option<&'static str> = None;
    /// #     fn from_generated(key: Generated<Self::Scheme>) -> Self { Self(key.into_raw()) }
    /// #     fn to_raw(self) -> i64 { self.0 }
    /// #     fn from_raw(raw: i64) -> Result<Self, ordid_core::Error> {
    /// #         Generated::check(raw, "EventId").map(Self::from_generated)
    /// #     }
    /// # }
    /// let split = EngineProfile::TIDB.split_by_bucket::<EventId, column::BigInt, MySql>("events");
    /// assert_eq!(
    ///     split.unwrap(),
    ///     "SPLIT TABLE `events` BY (576460752303423488), (1152921504606846976), (1729382256910270464)"
    /// );
    /// ```
    pub fn split_by_bucket<K, C, D>(&self, table: &str) -> Option<String>
    where
        K: SpreadKey,
        C: ColumnOn<D> + Stores<K::Raw>,
        D: Dialect,
    {
        let values = K::splits().into_iter();
        let values = values.map(|key| {
            let literal = <C as ColumnOn<D>>::literal(key.to_raw());
            match (self.splits, literal.split_once("::")) {
                (Splits::CreateTable, Some((value, _))) => format!("({value})"),
                _ => format!("({literal})"),
            }
        });
        let values = values.collect::<Vec<_>>().join(", ");
        let table = D::quote_table(None, table);
        match self.splits {
            Splits::ByItself => None,
            Splits::AlterTable => Some(format!("ALTER TABLE {table} SPLIT AT VALUES {values}")),
            Splits::CreateTable => Some(format!("SPLIT AT VALUES ({values})")),
            Splits::SplitTable => Some(format!("SPLIT TABLE {table} BY {values}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use ordid_core::{
        KeyType,
        key::Generated,
        scheme::UuidV7Spread,
        storage::{
            column,
            dialect::{MySql, Postgres},
        },
        uuid::Uuid,
    };

    use super::*;

    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    struct EventId(Uuid);

    impl std::fmt::Display for EventId {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            self.0.fmt(f)
        }
    }

    impl KeyType for EventId {
        type Raw = Uuid;
        type Scheme = UuidV7Spread<2>;

        const NAME: &'static str = "EventId";
        const PREFIX: Option<&'static str> = None;

        fn from_generated(key: Generated<Self::Scheme>) -> Self {
            Self(key.into_raw())
        }

        fn to_raw(self) -> Uuid {
            self.0
        }

        fn from_raw(raw: Uuid) -> Result<Self, ordid_core::Error> {
            Generated::check(raw, Self::NAME).map(Self::from_generated)
        }
    }

    #[test]
    fn each_engine_is_told_in_its_own_words() {
        let postgres = |engine: EngineProfile| {
            engine.split_by_bucket::<EventId, column::Uuid, Postgres>("my events")
        };
        let value = "('80000000-0000-8000-a000-000000000000'::uuid)";
        assert_eq!(
            postgres(EngineProfile::COCKROACHDB),
            Some(format!("ALTER TABLE \"my events\" SPLIT AT VALUES {value}"))
        );
        assert_eq!(
            postgres(EngineProfile::YUGABYTEDB),
            Some("SPLIT AT VALUES (('80000000-0000-8000-a000-000000000000'))".to_owned())
        );
        for by_itself in [
            EngineProfile::AURORA_DSQL,
            EngineProfile::CITUS,
            EngineProfile::POSTGRES,
        ] {
            assert_eq!(postgres(by_itself), None);
        }
        let mysql = |engine: EngineProfile| {
            engine.split_by_bucket::<EventId, column::Binary16, MySql>("events")
        };
        let value = "(X'8000000000008000A000000000000000')";
        assert_eq!(
            mysql(EngineProfile::TIDB),
            Some(format!("SPLIT TABLE `events` BY {value}"))
        );
        assert_eq!(mysql(EngineProfile::VITESS), None);
    }
}
