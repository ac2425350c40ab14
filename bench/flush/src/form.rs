//! The rows that are inserted: which tables, which columns, and how code by hand binds a row.

use ordid::OrderedKey;
use ordid_sqlx::{Entity, UnitOfWork};
use sqlx::{Database, Encode, Type, error::BoxDynError};

use crate::engine::Engine;

pub(crate) mod flights;
pub(crate) mod orders;

/// The types of columns that are not called the same everywhere.
#[derive(Debug)]
pub(crate) struct Types {
    pub(crate) key: &'static str,
    pub(crate) code: &'static str,
    pub(crate) text: &'static str,
}

/// What the database must say of the rows afterwards: how many there are, and three counts of some
/// of them.
pub(crate) type Summary = (i64, i64, i64, i64);

/// A row type under test; its table's parents are there before.
pub(crate) trait Form: OrderedKey + Clone + Send + Sync + 'static {
    /// The tables that it refers to.
    const PARENT_TABLES: &'static [&'static str];
    /// Asks for the [`Summary`].
    const SUMMARY: &'static str;
    /// The rows, and their parents.
    type Data;

    /// Computes this many rows, in the order of their keys.
    fn data(count: usize) -> Self::Data;

    fn rows(data: &Self::Data) -> &[Self];

    fn summary(data: &Self::Data) -> Summary;

    /// Returns the statements that create the tables.
    fn create_tables(types: &Types, foreign_keys: bool) -> String;
}

/// A row type on an engine.
pub(crate) trait FormOn<DB: Engine>: Form + Entity<DB> {
    /// Adds the parents.
    fn add_parents(data: &Self::Data, work: &mut UnitOfWork<DB>);

    /// Hands over each value of the row, in the order of the columns: keys as the `Uuid`s that code
    /// by hand holds, texts by reference.
    fn bind(&self, values: &mut impl Values<DB>) -> Result<(), BoxDynError>;

    /// Whether there is [`unnest`](Self::unnest).
    const UNNEST: bool = false;

    /// Inserts these rows by an array for each column.
    async fn unnest(_: &mut DB::Connection, _: &[Self]) -> Result<(), sqlx::Error> {
        unreachable!("UNNEST is false")
    }
}

/// Takes the values of a row.
pub(crate) trait Values<DB: Database> {
    fn put<'q, T: Encode<'q, DB> + Type<DB>>(&mut self, value: T) -> Result<(), BoxDynError>;
}

/// Implements [`FormOn`] for each engine.
macro_rules! on_engines {
    (
        $form:ty,
        parents: |$data:ident, $work:ident| $parents:expr,
        values: |$row:ident| [$($value:expr),+ $(,)?],
        on PostgreSQL: { $($postgres:item)* }
    ) => {
        $crate::form::on_engines!(
            @ sqlx::Postgres, $form, |$data, $work| $parents, |$row| [$($value),+], $($postgres)*
        );
        $crate::form::on_engines!(
            @ sqlx::MySql, $form, |$data, $work| $parents, |$row| [$($value),+],
        );
        $crate::form::on_engines!(
            @ sqlx::Sqlite, $form, |$data, $work| $parents, |$row| [$($value),+],
        );
    };
    (
        @ $database:ty, $form:ty, |$data:ident, $work:ident| $parents:expr,
        |$row:ident| [$($value:expr),+], $($own:item)*
    ) => {
        impl $crate::form::FormOn<$database> for $form {
            fn add_parents($data: &Self::Data, $work: &mut ordid_sqlx::UnitOfWork<$database>) {
                $parents
            }

            fn bind(
                &self,
                values: &mut impl $crate::form::Values<$database>,
            ) -> Result<(), sqlx::error::BoxDynError> {
                let $row = self;
                $(values.put($value)?;)+
                Ok(())
            }

            $($own)*
        }
    };
}

pub(crate) use on_engines;

/// Knuth's MMIX generator: arbitrary numbers, always the same.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: u16) -> u16 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        u16::try_from(((self.0 >> 48) * u64::from(end)) >> 16).expect("less than the end")
    }

    pub(crate) fn signed(&mut self, end: u16) -> i16 {
        i16::try_from(self.below(end)).expect("ends are small")
    }
}

/// Returns how many rows pass a test.
pub(crate) fn count<R>(rows: &[R], test: impl Fn(&R) -> bool) -> i64 {
    i64::try_from(rows.iter().filter(|row| test(row)).count()).expect("few")
}
