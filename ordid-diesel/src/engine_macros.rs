//! What `#[derive(KeyType)]` calls: `key` once for a key type, and then one macro per engine.
//!
//! Each engine's macro looks the column's name up and calls the engine's action, which exists twice:
//! with the engine's feature it implements Diesel's traits for the user's key type, without it only
//! checks the order. (A `cfg` inside a macro's body would ask for the features of the user's crate.)
//!
//! `how` is `ordered`, or `unordered` where the user wrote `unordered(column)`.

/// What Diesel asks of a type once, whatever the backends: two of them may store keys under the same
/// SQL type.
///
/// As `#[derive(AsExpression, FromSqlRow)]` would write it, but for every SQL type of keys: which one is
/// right is told by `ToSql` and `FromSql`.
#[doc(hidden)]
#[macro_export]
macro_rules! __engine_key {
    ($key:ty, $scheme:ty) => {
        #[automatically_derived]
        impl<__ST, __DB> $crate::__private::diesel::deserialize::Queryable<__ST, __DB> for $key
        where
            __DB: $crate::__private::diesel::backend::Backend,
            __ST: $crate::__private::diesel::sql_types::SingleValue,
            Self: $crate::__private::diesel::deserialize::FromSql<__ST, __DB>,
        {
            type Row = Self;

            fn build(row: Self) -> $crate::__private::diesel::deserialize::Result<Self> {
                $crate::__private::Result::Ok(row)
            }
        }

        #[automatically_derived]
        impl<__ST, __DB>
            $crate::__private::diesel::serialize::ToSql<
                $crate::__private::diesel::sql_types::Nullable<__ST>,
                __DB,
            > for $key
        where
            __DB: $crate::__private::diesel::backend::Backend,
            __ST: $crate::__private::diesel::sql_types::SqlType<
                    IsNull = $crate::__private::diesel::sql_types::is_nullable::NotNull,
                >,
            Self: $crate::__private::diesel::serialize::ToSql<__ST, __DB>,
        {
            fn to_sql<'__b>(
                &'__b self,
                out: &mut $crate::__private::diesel::serialize::Output<'__b, '_, __DB>,
            ) -> $crate::__private::diesel::serialize::Result {
                $crate::__private::diesel::serialize::ToSql::<__ST, __DB>::to_sql(self, out)
            }
        }

        $crate::__expression! { $key }
        $crate::__expression! { &'__a $key, '__a }
        $crate::__expression! { &'__a &'__b $key, '__a, '__b }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __expression {
    ($key:ty $(, $lifetime:lifetime)*) => {
        #[automatically_derived]
        impl<$($lifetime,)* __ST> $crate::__private::diesel::expression::AsExpression<__ST> for $key
        where
            __ST: $crate::KeySqlType,
        {
            type Expression = $crate::__private::Bound<__ST, Self>;

            fn as_expression(self) -> $crate::__private::Bound<__ST, Self> {
                $crate::__private::Bound::new(self)
            }
        }
    };
}

/// A bare `diesel`: each engine's native form of the raw key.
#[doc(hidden)]
#[macro_export]
macro_rules! __engine_all {
    ($key:ty, $scheme:ty) => {
        $crate::engine::postgres! { $key, $scheme, uuid }
        $crate::engine::mysql! { $key, $scheme, binary16 }
        $crate::engine::sqlite! { $key, $scheme, blob }
    };
    ($key:ty, $scheme:ty, i64) => {
        $crate::engine::postgres! { $key, $scheme, bigint }
        $crate::engine::mysql! { $key, $scheme, bigint }
        $crate::engine::sqlite! { $key, $scheme, integer }
    };
    // PostgreSQL and SQLite have no integers without a sign.
    ($key:ty, $scheme:ty, u64) => {
        $crate::engine::mysql! { $key, $scheme, bigint_unsigned }
    };
    ($key:ty, $scheme:ty, ObjectId) => {
        $crate::engine::postgres! { $key, $scheme, bytea }
        $crate::engine::mysql! { $key, $scheme, binary12 }
        $crate::engine::sqlite! { $key, $scheme, blob }
    };
    ($key:ty, $scheme:ty, PushId) => {
        $crate::engine::postgres! { $key, $scheme, char20 }
        $crate::engine::mysql! { $key, $scheme, char20 }
        $crate::engine::sqlite! { $key, $scheme, char20 }
    };
    ($key:ty, $scheme:ty, Key192) => {
        $crate::engine::postgres! { $key, $scheme, bytea }
        $crate::engine::mysql! { $key, $scheme, binary24 }
        $crate::engine::sqlite! { $key, $scheme, blob }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __check_order {
    (ordered $scheme:ty, $column:ident, $dialect:ident) => {
        const _: () = $crate::__private::assert_keeps_order::<
            $scheme,
            $crate::__private::column::$column,
            $crate::__private::dialect::$dialect,
        >();
    };
    (unordered $scheme:ty, $column:ident, $dialect:ident) => {};
}

#[doc(hidden)]
#[macro_export]
macro_rules! __column_type {
    (ordered $column:ident) => {
        $crate::__private::column::$column
    };
    (unordered $column:ident) => {
        $crate::__private::column::Unordered<$crate::__private::column::$column>
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __implement {
    ($key:ty, $backend:ty, $column:ty, $sql_type:ty) => {
        #[automatically_derived]
        impl $crate::__private::StoredAs<$backend> for $key {
            type Column = $column;
        }

        #[automatically_derived]
        impl $crate::__private::diesel::serialize::ToSql<$sql_type, $backend> for $key {
            #[inline]
            fn to_sql<'__b>(
                &'__b self,
                out: &mut $crate::__private::diesel::serialize::Output<'__b, '_, $backend>,
            ) -> $crate::__private::diesel::serialize::Result {
                $crate::__private::to_sql::<$backend, Self>(*self, out)
            }
        }

        #[automatically_derived]
        impl $crate::__private::diesel::deserialize::FromSql<$sql_type, $backend> for $key {
            #[inline]
            fn from_sql(
                value: <$backend as $crate::__private::diesel::backend::Backend>::RawValue<'_>,
            ) -> $crate::__private::diesel::deserialize::Result<Self> {
                $crate::__private::from_sql::<$backend, Self>(value)
            }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __engine_postgres {
    ($key:ty, $scheme:ty, unordered($column:ident)) => {
        $crate::__column_postgres! { unordered $key, $scheme, $column }
    };
    ($key:ty, $scheme:ty, $column:ident) => {
        $crate::__column_postgres! { ordered $key, $scheme, $column }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __column_postgres {
    ($how:ident $key:ty, $scheme:ty, uuid) => {
        $crate::__action_postgres! { $how $key, $scheme, Uuid, Postgres, Uuid }
    };
    ($how:ident $key:ty, $scheme:ty, bytea) => {
        $crate::__action_postgres! { $how $key, $scheme, Bytea, Postgres, Binary }
    };
    ($how:ident $key:ty, $scheme:ty, text) => {
        $crate::__action_postgres! { $how $key, $scheme, Text, Postgres, Text }
    };
    ($how:ident $key:ty, $scheme:ty, char32) => {
        $crate::__action_postgres! { $how $key, $scheme, Char32, Postgres, Text }
    };
    ($how:ident $key:ty, $scheme:ty, char26) => {
        $crate::__action_postgres! { $how $key, $scheme, Char26, Postgres, Text }
    };
    ($how:ident $key:ty, $scheme:ty, char22) => {
        $crate::__action_postgres! { $how $key, $scheme, Char22, Postgres, Text }
    };
    ($how:ident $key:ty, $scheme:ty, char20) => {
        $crate::__action_postgres! { $how $key, $scheme, Char20, Postgres, Text }
    };
    ($how:ident $key:ty, $scheme:ty, bigint) => {
        $crate::__action_postgres! { $how $key, $scheme, BigInt, Postgres, BigInt }
    };
    ($how:ident $key:ty, $scheme:ty, $column:ident) => {
        ::core::compile_error! { "unknown PostgreSQL column; columns: uuid, bytea, text, char32, char26, char22, char20, bigint" }
    };
}

#[cfg(feature = "postgres")]
#[doc(hidden)]
#[macro_export]
macro_rules! __action_postgres {
    ($how:ident $key:ty, $scheme:ty, $column:ident, $dialect:ident, $sql_type:ident) => {
        $crate::__check_order! { $how $scheme, $column, $dialect }
        $crate::__implement! {
            $key, $crate::__private::diesel::pg::Pg, $crate::__column_type!($how $column), $crate::__private::sql_types::$sql_type
        }
    };
}

#[cfg(not(feature = "postgres"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __action_postgres {
    ($how:ident $key:ty, $scheme:ty, $column:ident, $dialect:ident, $sql_type:ident) => {
        $crate::__check_order! { $how $scheme, $column, $dialect }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __engine_mysql {
    ($key:ty, $scheme:ty, unordered($column:ident)) => {
        $crate::__column_mysql! { unordered $key, $scheme, $column }
    };
    ($key:ty, $scheme:ty, $column:ident) => {
        $crate::__column_mysql! { ordered $key, $scheme, $column }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __column_mysql {
    ($how:ident $key:ty, $scheme:ty, binary16) => {
        $crate::__action_mysql! { $how $key, $scheme, Binary16, MySql, Binary }
    };
    ($how:ident $key:ty, $scheme:ty, binary12) => {
        $crate::__action_mysql! { $how $key, $scheme, Binary12, MySql, Binary }
    };
    ($how:ident $key:ty, $scheme:ty, binary24) => {
        $crate::__action_mysql! { $how $key, $scheme, Binary24, MySql, Binary }
    };
    ($how:ident $key:ty, $scheme:ty, binary16_swapped) => {
        $crate::__action_mysql! { $how $key, $scheme, Binary16Swapped, MySql, Binary }
    };
    ($how:ident $key:ty, $scheme:ty, binary16_dotnet) => {
        $crate::__action_mysql! { $how $key, $scheme, Binary16DotNet, MySql, Binary }
    };
    ($how:ident $key:ty, $scheme:ty, char36) => {
        $crate::__action_mysql! { $how $key, $scheme, Char36, MySql, Text }
    };
    ($how:ident $key:ty, $scheme:ty, char32) => {
        $crate::__action_mysql! { $how $key, $scheme, Char32, MySql, Text }
    };
    ($how:ident $key:ty, $scheme:ty, char26) => {
        $crate::__action_mysql! { $how $key, $scheme, Char26, MySql, Text }
    };
    ($how:ident $key:ty, $scheme:ty, char22) => {
        $crate::__action_mysql! { $how $key, $scheme, Char22, MySql, Text }
    };
    ($how:ident $key:ty, $scheme:ty, char20) => {
        $crate::__action_mysql! { $how $key, $scheme, Char20, MySql, Text }
    };
    ($how:ident $key:ty, $scheme:ty, bigint) => {
        $crate::__action_mysql! { $how $key, $scheme, BigInt, MySql, BigInt }
    };
    ($how:ident $key:ty, $scheme:ty, bigint_unsigned) => {
        $crate::__action_mysql! { $how $key, $scheme, BigIntUnsigned, MySql, Unsigned }
    };
    ($how:ident $key:ty, $scheme:ty, mariadb_uuid) => {
        $crate::__action_mysql! { $how $key, $scheme, MariaDbUuid, MariaDb, Text }
    };
    ($how:ident $key:ty, $scheme:ty, $column:ident) => {
        ::core::compile_error! { "unknown MySQL column; columns: binary16, binary12, binary24, binary16_swapped, binary16_dotnet, char36, char32, char26, char22, char20, bigint, bigint_unsigned, and on MariaDB mariadb_uuid" }
    };
}

#[cfg(feature = "mysql")]
#[doc(hidden)]
#[macro_export]
macro_rules! __action_mysql {
    ($how:ident $key:ty, $scheme:ty, $column:ident, $dialect:ident, $sql_type:ident) => {
        $crate::__check_order! { $how $scheme, $column, $dialect }
        $crate::__implement! {
            $key, $crate::__private::diesel::mysql::Mysql, $crate::__column_type!($how $column), $crate::__private::sql_types::$sql_type
        }
    };
}

#[cfg(not(feature = "mysql"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __action_mysql {
    ($how:ident $key:ty, $scheme:ty, $column:ident, $dialect:ident, $sql_type:ident) => {
        $crate::__check_order! { $how $scheme, $column, $dialect }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __engine_sqlite {
    ($key:ty, $scheme:ty, unordered($column:ident)) => {
        $crate::__column_sqlite! { unordered $key, $scheme, $column }
    };
    ($key:ty, $scheme:ty, $column:ident) => {
        $crate::__column_sqlite! { ordered $key, $scheme, $column }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __column_sqlite {
    ($how:ident $key:ty, $scheme:ty, blob) => {
        $crate::__action_sqlite! { $how $key, $scheme, Blob, Sqlite, Binary }
    };
    ($how:ident $key:ty, $scheme:ty, text) => {
        $crate::__action_sqlite! { $how $key, $scheme, Text, Sqlite, Text }
    };
    ($how:ident $key:ty, $scheme:ty, char32) => {
        $crate::__action_sqlite! { $how $key, $scheme, Char32, Sqlite, Text }
    };
    ($how:ident $key:ty, $scheme:ty, char26) => {
        $crate::__action_sqlite! { $how $key, $scheme, Char26, Sqlite, Text }
    };
    ($how:ident $key:ty, $scheme:ty, char22) => {
        $crate::__action_sqlite! { $how $key, $scheme, Char22, Sqlite, Text }
    };
    ($how:ident $key:ty, $scheme:ty, char20) => {
        $crate::__action_sqlite! { $how $key, $scheme, Char20, Sqlite, Text }
    };
    ($how:ident $key:ty, $scheme:ty, integer) => {
        $crate::__action_sqlite! { $how $key, $scheme, Integer, Sqlite, BigInt }
    };
    ($how:ident $key:ty, $scheme:ty, $column:ident) => {
        ::core::compile_error! { "unknown SQLite column; columns: blob, text, char32, char26, char22, char20, integer" }
    };
}

#[cfg(feature = "sqlite")]
#[doc(hidden)]
#[macro_export]
macro_rules! __action_sqlite {
    ($how:ident $key:ty, $scheme:ty, $column:ident, $dialect:ident, $sql_type:ident) => {
        $crate::__check_order! { $how $scheme, $column, $dialect }
        $crate::__implement! {
            $key, $crate::__private::diesel::sqlite::Sqlite, $crate::__column_type!($how $column), $crate::__private::sql_types::$sql_type
        }
    };
}

#[cfg(not(feature = "sqlite"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __action_sqlite {
    ($how:ident $key:ty, $scheme:ty, $column:ident, $dialect:ident, $sql_type:ident) => {
        $crate::__check_order! { $how $scheme, $column, $dialect }
    };
}
