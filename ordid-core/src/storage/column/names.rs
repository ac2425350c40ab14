//! The columns by the names that users write, in a module for each engine: `mysql::binary16`.
//!
//! `#[ordid(sqlx(mysql = binary16))]` becomes the path `engine::mysql::binary16` of the adapter, which re-exports the
//! modules of its engines. So the compiler resolves the name, and suggests the nearest one if it is misspelled. Every
//! module has the names of all columns, because the error for a missing name would not list the others. [`ColumnOn`]
//! and the adapter's own traits decide whether the engine has the column, and whether it stores the raw key.

#![allow(non_camel_case_types)]

use core::marker::PhantomData;

use super::{
    super::{Column, ColumnOn, Dialect, dialect},
    Unordered,
};
use crate::key::{Key192, ObjectId, PushId, Scheme};

/// A column as an engine names it: the column, and the dialect whose rules it is checked against.
pub struct Named<C, D>(PhantomData<fn() -> (C, D)>);

/// A name in `#[ordid(adapter(engine = column))]`: it stands for a column and a dialect.
pub trait NamedColumn {
    /// The column.
    type Column: Column;
    /// The dialect whose rules the column is checked against.
    type Dialect: Dialect;
}

impl<C: Column, D: Dialect> NamedColumn for Named<C, D> {
    type Column = C;
    type Dialect = D;
}

impl<N: NamedColumn> NamedColumn for Unordered<N> {
    type Column = Unordered<N::Column>;
    type Dialect = N::Dialect;
}

/// The names of all columns, for another macro.
macro_rules! names {
    ($then:ident $($arguments:tt)*) => {
        $then! {
            $($arguments)*
            babelfish_unique_identifier = BabelfishUniqueIdentifier
            bigint = BigInt
            bigint_unsigned = BigIntUnsigned
            binary12 = Binary12
            binary16 = Binary16
            binary16_dotnet = Binary16DotNet
            binary16_swapped = Binary16Swapped
            binary24 = Binary24
            blob = Blob
            bytea = Bytea
            char20 = Char20
            char22 = Char22
            char26 = Char26
            char32 = Char32
            char36 = Char36
            integer = Integer
            mariadb_uuid = MariaDbUuid
            number19 = Number19
            number20 = Number20
            raw12 = Raw12
            raw16 = Raw16
            raw16_dotnet = Raw16DotNet
            raw24 = Raw24
            text = Text
            unique_identifier = UniqueIdentifier
            unique_identifier_permuted = UniqueIdentifierPermuted
            uuid = Uuid
        }
    };
}

macro_rules! aliases {
    ($dialect:ident: $($name:ident = $column:ident)*) => {$(
        #[doc = concat!("[`", stringify!($column), "`](crate::storage::column::", stringify!($column), ")")]
        pub type $name = $crate::storage::column::names::Named<
            $crate::storage::column::$column,
            $crate::storage::dialect::$dialect,
        >;
    )*};
}

/// A module for each engine: its dialect, and the columns that another dialect's rules are for.
macro_rules! engines {
    ($($(#[$doc:meta])* $engine:ident: $dialect:ident $(, $name:ident = $column:ident of $other:ident)*;)+) => {$(
        $(#[$doc])*
        pub mod $engine {
            pub use names::*;

            // Not all can be reached: the columns of another dialect go before the names that the glob brings.
            #[allow(dead_code, unreachable_pub)]
            mod names {
                names! { aliases $dialect: }
            }

            $(aliases! { $other: $name = $column })*
        }
    )+};
}

engines! {
    /// PostgreSQL.
    postgres: Postgres;
    /// MySQL and MariaDB.
    mysql: MySql, mariadb_uuid = MariaDbUuid of MariaDb;
    /// SQLite.
    sqlite: Sqlite;
    /// SQL Server.
    sql_server: SqlServer;
    /// Babelfish.
    babelfish: Babelfish;
    /// Oracle.
    oracle: Oracle;
    /// For an adapter whose key types have one column for all engines. Most columns are checked as PostgreSQL's,
    /// because they compare alike on the other engines.
    any: Postgres, bigint_unsigned = BigIntUnsigned of MySql, mariadb_uuid = MariaDbUuid of MariaDb;
}

/// The native column of a scheme's raw key in a dialect. Adapters use it if the user names no column.
pub type Native<S, D> = Named<<<S as Scheme>::Raw as NativeOn<D>>::Column, D>;

/// A raw key with a native column in a dialect.
pub trait NativeOn<D: Dialect> {
    /// The column.
    type Column: ColumnOn<D>;
}

macro_rules! native {
    ($($dialect:ident: $($raw:ty = $column:ident),+;)+) => {
        $($(impl NativeOn<dialect::$dialect> for $raw {
            type Column = super::$column;
        })+)+
    };
}

native! {
    Postgres: uuid::Uuid = Uuid, i64 = BigInt, ObjectId = Bytea, PushId = Char20, Key192 = Bytea;
    MySql: uuid::Uuid = Binary16, i64 = BigInt, u64 = BigIntUnsigned, ObjectId = Binary12, PushId = Char20,
        Key192 = Binary24;
    Sqlite: uuid::Uuid = Blob, i64 = Integer, ObjectId = Blob, PushId = Char20, Key192 = Blob;
    SqlServer: uuid::Uuid = UniqueIdentifier, i64 = BigInt, ObjectId = Binary12, Key192 = Binary24;
    Oracle: uuid::Uuid = Raw16, i64 = Number19, u64 = Number20, ObjectId = Raw12, Key192 = Raw24;
}

/// Calls an adapter's `engine!` for the native columns of PostgreSQL, MySQL and SQLite.
#[doc(hidden)]
#[macro_export]
macro_rules! __native_columns {
    // PostgreSQL and SQLite have no integers without a sign.
    ({ $($engine:tt)* } $key:ty, $scheme:ty, u64) => {
        $($engine)*! { mysql: $key, $scheme, $crate::__private::Native<$scheme, $crate::storage::dialect::MySql> }
    };
    ({ $($engine:tt)* } $key:ty, $scheme:ty, $raw:ident) => {
        $($engine)*! { postgres: $key, $scheme, $crate::__private::Native<$scheme, $crate::storage::dialect::Postgres> }
        $($engine)*! { mysql: $key, $scheme, $crate::__private::Native<$scheme, $crate::storage::dialect::MySql> }
        $($engine)*! { sqlite: $key, $scheme, $crate::__private::Native<$scheme, $crate::storage::dialect::Sqlite> }
    };
}

/// Calls an adapter's `engine!` for the native column of a raw key in one dialect, if [`NativeOn`] has one.
#[doc(hidden)]
#[macro_export]
macro_rules! __native_column {
    (Postgres u64, $library:literal, $($rest:tt)*) => {
        $crate::__private::no_column! { $library, u64 }
    };
    (Sqlite u64, $library:literal, $($rest:tt)*) => {
        $crate::__private::no_column! { $library, u64 }
    };
    (SqlServer u64, $library:literal, $($rest:tt)*) => {
        $crate::__private::no_column! { $library, u64 }
    };
    (SqlServer PushId, $library:literal, $($rest:tt)*) => {
        $crate::__private::no_column! { $library, PushId }
    };
    (Oracle PushId, $library:literal, $($rest:tt)*) => {
        $crate::__private::no_column! { $library, PushId }
    };
    ($dialect:ident $raw:ident, $library:literal, { $($engine:tt)* } $name:ident: $key:ty, $scheme:ty) => {
        $($engine)*! {
            $name: $key, $scheme, $crate::__private::Native<$scheme, $crate::storage::dialect::$dialect>
        }
    };
}

/// Does for an adapter's `engine!` what is asked of it beside its engines. Its usual engine, whose native column a key
/// type has that names none, is given with its dialect.
#[doc(hidden)]
#[macro_export]
macro_rules! __engine_otherwise {
    ({ $($engine:tt)* } $library:literal, $name:ident: $dialect:ident, $usage:literal; key: $($key:tt)*) => {};
    (
        { $($engine:tt)* } $library:literal, $name:ident: $dialect:ident, $usage:literal;
        all: $key:ty, $scheme:ty, $raw:ident
    ) => {
        $crate::__native_column! { $dialect $raw, $library, { $($engine)* } $name: $key, $scheme }
    };
    (
        { $($engine:tt)* } $library:literal, $name:ident: $dialect:ident, $usage:literal;
        $unknown:tt: $($key:tt)*
    ) => {
        $crate::__private::unknown_engine! { $unknown: $usage }
    };
}

/// Where an adapter's feature for an engine is off: fails to compile where the engine does not have the column.
#[doc(hidden)]
#[macro_export]
macro_rules! __is_there {
    ($column:ty) => {
        const _: () = $crate::storage::column::names::assert_is_there::<$column>();
    };
}

#[doc(hidden)]
pub const fn assert_is_there<N: NamedColumn>()
where
    N::Column: ColumnOn<N::Dialect>,
{
}

/// Fails to compile where the scheme's keys lose their order in a [`NamedColumn`].
#[doc(hidden)]
#[macro_export]
macro_rules! __keeps_order {
    ($scheme:ty, $column:ty) => {
        const _: () = $crate::storage::assert_named_keeps_order::<
            $scheme,
            <$column as $crate::__private::NamedColumn>::Column,
            <$column as $crate::__private::NamedColumn>::Dialect,
        >();
    };
}

/// Gives [`__engine_on`] or [`__engine_off`] a name for each engine, by the features of the adapter whose module it is
/// called in. Which of them is meant has to be known then: a `cfg` in the body of what derived code calls would ask for
/// the features of the user's crate.
#[doc(hidden)]
#[macro_export]
macro_rules! __engines_by_feature {
    () => {
        #[cfg(not(feature = "mysql"))]
        pub use $crate::__engine_off as on_mysql;
        #[cfg(not(feature = "postgres"))]
        pub use $crate::__engine_off as on_postgres;
        #[cfg(not(feature = "sqlite"))]
        pub use $crate::__engine_off as on_sqlite;
        #[cfg(feature = "mysql")]
        pub use $crate::__engine_on as on_mysql;
        #[cfg(feature = "postgres")]
        pub use $crate::__engine_on as on_postgres;
        #[cfg(feature = "sqlite")]
        pub use $crate::__engine_on as on_sqlite;
    };
}

/// Checks the order and writes the impls, if the adapter's feature for the engine is on.
#[doc(hidden)]
#[macro_export]
macro_rules! __engine_on {
    ($scheme:ty, $column:ty => $($items:tt)*) => {
        $crate::__keeps_order! { $scheme, $column }
        $($items)*
    };
}

/// Checks only the order, and that the engine has the column, if the adapter's feature for the engine is off.
#[doc(hidden)]
#[macro_export]
macro_rules! __engine_off {
    ($scheme:ty, $column:ty => $($items:tt)*) => {
        $crate::__keeps_order! { $scheme, $column }
        $crate::__is_there! { $column }
    };
}

/// Says that an adapter has no columns for a raw key.
#[doc(hidden)]
#[macro_export]
macro_rules! __no_column {
    ($adapter:literal, $raw:ident) => {
        ::core::compile_error! {
            ::core::concat!(
                "`", $adapter, "` has no columns for `", ::core::stringify!($raw), "`: take `", $adapter,
                "` off, and store the raw key itself"
            )
        }
    };
}

/// Says what engines an adapter has.
#[doc(hidden)]
#[macro_export]
macro_rules! __unknown_engine {
    (_: $usage:literal) => {
        ::core::compile_error! { ::core::concat!("expected `engine = column`, as in `", $usage, "`") }
    };
    ($engine:ident: $usage:literal) => {
        ::core::compile_error! {
            ::core::concat!(
                "unknown engine `", ::core::stringify!($engine), "`; expected `engine = column`, as in `", $usage, "`"
            )
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::column;

    macro_rules! are_named {
        ($($name:ident = $column:ident)*) => {$(
            assert_eq!(<column::$column as Column>::NAME, stringify!($name));
        )*};
    }

    fn assert_named<N: NamedColumn, D: Dialect>(name: &str) {
        assert_eq!(<N::Column as Column>::NAME, name);
        assert_eq!(N::Dialect::NAME, D::NAME, "{name}");
        let is_unordered = <<Unordered<N> as NamedColumn>::Column as Column>::UNORDERED;
        assert!(is_unordered && !<N::Column as Column>::UNORDERED, "{name}");
    }

    macro_rules! engines_name {
        ($($engine:ident $dialect:ident: $($name:ident)*;)*) => {
            $($(assert_named::<$engine::$name, dialect::$dialect>(stringify!($name));)*)*
        };
    }

    #[test]
    fn a_name_resolves_to_the_column_of_that_name() {
        names! { are_named }
        engines_name! {
            postgres Postgres: uuid bytea text char32 char26 char22 char20 bigint;
            mysql MySql: binary16 binary12 binary24 binary16_swapped binary16_dotnet char36 char32 char26 char22 char20
                bigint bigint_unsigned;
            mysql MariaDb: mariadb_uuid;
            sqlite Sqlite: blob text char32 char26 char22 char20 integer;
            sql_server SqlServer: unique_identifier unique_identifier_permuted binary16 binary12 binary24 bigint;
            babelfish Babelfish: babelfish_unique_identifier binary16 bigint;
            oracle Oracle: raw16 raw16_dotnet raw12 raw24 number19 number20;
            any Postgres: uuid bytea text char32 char26 char22 char20 bigint;
            any MySql: bigint_unsigned;
            any MariaDb: mariadb_uuid;
        }
    }
}
