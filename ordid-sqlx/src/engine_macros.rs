//! One macro per engine. Each looks the column's name up and calls the engine's action, which
//! exists twice: with the engine's feature it implements SQLx's traits for the user's key type,
//! without it only checks the order. (A `cfg` inside a macro's body would ask for the features of
//! the user's crate.)
//!
//! `how` is `ordered`, or `unordered` where the user wrote `unordered(column)`.

/// A bare `sqlx`: each engine's native form of the raw key.
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
    ($how:ident $key:ty, $database:ident, $column:ident) => {
        #[automatically_derived]
        impl $crate::__private::StoredAs<$crate::__private::sqlx::$database> for $key {
            type Column = $crate::__column_type!($how $column);
        }

        #[automatically_derived]
        impl $crate::__private::sqlx::Type<$crate::__private::sqlx::$database> for $key {
            fn type_info()
            -> <$crate::__private::sqlx::$database as $crate::__private::sqlx::Database>::TypeInfo
            {
                $crate::__private::type_info::<$crate::__private::sqlx::$database, Self>()
            }

            fn compatible(
                ty: &<$crate::__private::sqlx::$database as $crate::__private::sqlx::Database>::TypeInfo,
            ) -> $crate::__private::bool {
                $crate::__private::compatible::<$crate::__private::sqlx::$database, Self>(ty)
            }
        }

        #[automatically_derived]
        impl $crate::__private::sqlx::Encode<'_, $crate::__private::sqlx::$database> for $key {
            fn encode_by_ref(
                &self,
                buffer: &mut <$crate::__private::sqlx::$database as $crate::__private::sqlx::Database>::ArgumentBuffer,
            ) -> $crate::__private::Result<
                $crate::__private::sqlx::encode::IsNull,
                $crate::__private::sqlx::error::BoxDynError,
            > {
                $crate::__private::encode::<$crate::__private::sqlx::$database, Self>(*self, buffer)
            }
        }

        #[automatically_derived]
        impl<'r> $crate::__private::sqlx::Decode<'r, $crate::__private::sqlx::$database> for $key {
            fn decode(
                value: <$crate::__private::sqlx::$database as $crate::__private::sqlx::Database>::ValueRef<'r>,
            ) -> $crate::__private::Result<Self, $crate::__private::sqlx::error::BoxDynError> {
                $crate::__private::decode::<$crate::__private::sqlx::$database, Self>(value)
            }
        }
    };
}

#[cfg(feature = "postgres")]
#[doc(hidden)]
#[macro_export]
macro_rules! __implement_arrays {
    ($key:ty) => {
        #[automatically_derived]
        impl $crate::__private::sqlx::postgres::PgHasArrayType for $key {
            fn array_type_info() -> $crate::__private::sqlx::postgres::PgTypeInfo {
                $crate::__private::array_type_info::<Self>()
            }

            fn array_compatible(
                ty: &$crate::__private::sqlx::postgres::PgTypeInfo,
            ) -> $crate::__private::bool {
                $crate::__private::array_compatible::<Self>(ty)
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
        $crate::__action_postgres! { $how $key, $scheme, Uuid, Postgres }
    };
    ($how:ident $key:ty, $scheme:ty, bytea) => {
        $crate::__action_postgres! { $how $key, $scheme, Bytea, Postgres }
    };
    ($how:ident $key:ty, $scheme:ty, text) => {
        $crate::__action_postgres! { $how $key, $scheme, Text, Postgres }
    };
    ($how:ident $key:ty, $scheme:ty, char32) => {
        $crate::__action_postgres! { $how $key, $scheme, Char32, Postgres }
    };
    ($how:ident $key:ty, $scheme:ty, char26) => {
        $crate::__action_postgres! { $how $key, $scheme, Char26, Postgres }
    };
    ($how:ident $key:ty, $scheme:ty, char22) => {
        $crate::__action_postgres! { $how $key, $scheme, Char22, Postgres }
    };
    ($how:ident $key:ty, $scheme:ty, char20) => {
        $crate::__action_postgres! { $how $key, $scheme, Char20, Postgres }
    };
    ($how:ident $key:ty, $scheme:ty, bigint) => {
        $crate::__action_postgres! { $how $key, $scheme, BigInt, Postgres }
    };
    ($how:ident $key:ty, $scheme:ty, $column:ident) => {
        ::core::compile_error! { "unknown PostgreSQL column; columns: uuid, bytea, text, char32, char26, char22, char20, bigint" }
    };
}

#[cfg(feature = "postgres")]
#[doc(hidden)]
#[macro_export]
macro_rules! __action_postgres {
    ($how:ident $key:ty, $scheme:ty, $column:ident, $dialect:ident) => {
        $crate::__check_order! { $how $scheme, $column, $dialect }
        $crate::__implement! { $how $key, Postgres, $column }
        $crate::__implement_arrays! { $key }
    };
}

#[cfg(not(feature = "postgres"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __action_postgres {
    ($how:ident $key:ty, $scheme:ty, $column:ident, $dialect:ident) => {
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
        $crate::__action_mysql! { $how $key, $scheme, Binary16, MySql }
    };
    ($how:ident $key:ty, $scheme:ty, binary12) => {
        $crate::__action_mysql! { $how $key, $scheme, Binary12, MySql }
    };
    ($how:ident $key:ty, $scheme:ty, binary24) => {
        $crate::__action_mysql! { $how $key, $scheme, Binary24, MySql }
    };
    ($how:ident $key:ty, $scheme:ty, binary16_swapped) => {
        $crate::__action_mysql! { $how $key, $scheme, Binary16Swapped, MySql }
    };
    ($how:ident $key:ty, $scheme:ty, binary16_dotnet) => {
        $crate::__action_mysql! { $how $key, $scheme, Binary16DotNet, MySql }
    };
    ($how:ident $key:ty, $scheme:ty, char36) => {
        $crate::__action_mysql! { $how $key, $scheme, Char36, MySql }
    };
    ($how:ident $key:ty, $scheme:ty, char32) => {
        $crate::__action_mysql! { $how $key, $scheme, Char32, MySql }
    };
    ($how:ident $key:ty, $scheme:ty, char26) => {
        $crate::__action_mysql! { $how $key, $scheme, Char26, MySql }
    };
    ($how:ident $key:ty, $scheme:ty, char22) => {
        $crate::__action_mysql! { $how $key, $scheme, Char22, MySql }
    };
    ($how:ident $key:ty, $scheme:ty, char20) => {
        $crate::__action_mysql! { $how $key, $scheme, Char20, MySql }
    };
    ($how:ident $key:ty, $scheme:ty, bigint) => {
        $crate::__action_mysql! { $how $key, $scheme, BigInt, MySql }
    };
    ($how:ident $key:ty, $scheme:ty, bigint_unsigned) => {
        $crate::__action_mysql! { $how $key, $scheme, BigIntUnsigned, MySql }
    };
    ($how:ident $key:ty, $scheme:ty, mariadb_uuid) => {
        $crate::__action_mysql! { $how $key, $scheme, MariaDbUuid, MariaDb }
    };
    ($how:ident $key:ty, $scheme:ty, $column:ident) => {
        ::core::compile_error! { "unknown MySQL column; columns: binary16, binary12, binary24, binary16_swapped, binary16_dotnet, char36, char32, char26, char22, char20, bigint, bigint_unsigned, and on MariaDB mariadb_uuid" }
    };
}

#[cfg(feature = "mysql")]
#[doc(hidden)]
#[macro_export]
macro_rules! __action_mysql {
    ($how:ident $key:ty, $scheme:ty, $column:ident, $dialect:ident) => {
        $crate::__check_order! { $how $scheme, $column, $dialect }
        $crate::__implement! { $how $key, MySql, $column }
    };
}

#[cfg(not(feature = "mysql"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __action_mysql {
    ($how:ident $key:ty, $scheme:ty, $column:ident, $dialect:ident) => {
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
        $crate::__action_sqlite! { $how $key, $scheme, Blob, Sqlite }
    };
    ($how:ident $key:ty, $scheme:ty, text) => {
        $crate::__action_sqlite! { $how $key, $scheme, Text, Sqlite }
    };
    ($how:ident $key:ty, $scheme:ty, char32) => {
        $crate::__action_sqlite! { $how $key, $scheme, Char32, Sqlite }
    };
    ($how:ident $key:ty, $scheme:ty, char26) => {
        $crate::__action_sqlite! { $how $key, $scheme, Char26, Sqlite }
    };
    ($how:ident $key:ty, $scheme:ty, char22) => {
        $crate::__action_sqlite! { $how $key, $scheme, Char22, Sqlite }
    };
    ($how:ident $key:ty, $scheme:ty, char20) => {
        $crate::__action_sqlite! { $how $key, $scheme, Char20, Sqlite }
    };
    ($how:ident $key:ty, $scheme:ty, integer) => {
        $crate::__action_sqlite! { $how $key, $scheme, Integer, Sqlite }
    };
    ($how:ident $key:ty, $scheme:ty, $column:ident) => {
        ::core::compile_error! { "unknown SQLite column; columns: blob, text, char32, char26, char22, char20, integer" }
    };
}

#[cfg(feature = "sqlite")]
#[doc(hidden)]
#[macro_export]
macro_rules! __action_sqlite {
    ($how:ident $key:ty, $scheme:ty, $column:ident, $dialect:ident) => {
        $crate::__check_order! { $how $scheme, $column, $dialect }
        $crate::__implement! { $how $key, Sqlite, $column }
    };
}

#[cfg(not(feature = "sqlite"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __action_sqlite {
    ($how:ident $key:ty, $scheme:ty, $column:ident, $dialect:ident) => {
        $crate::__check_order! { $how $scheme, $column, $dialect }
    };
}
