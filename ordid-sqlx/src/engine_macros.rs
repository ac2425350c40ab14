//! One macro per engine. Each looks the column's name up and calls the engine's action, which
//! exists twice: with the engine's feature it implements SQLx's traits for the user's key type,
//! without it only checks the order. (A `cfg` inside a macro's body would ask for the features of
//! the user's crate.)

/// A bare `sqlx`: each engine's native form.
#[doc(hidden)]
#[macro_export]
macro_rules! __engine_all {
    ($key:ty, $scheme:ty) => {
        $crate::engine::postgres! { $key, $scheme, uuid }
        $crate::engine::mysql! { $key, $scheme, binary16 }
        $crate::engine::sqlite! { $key, $scheme, blob }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __check_order {
    ($scheme:ty, $column:ident) => {
        const _: () =
            $crate::__private::assert_keeps_order::<$scheme, $crate::__private::column::$column>();
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __implement {
    ($key:ty, $database:ident, $column:ident) => {
        #[automatically_derived]
        impl $crate::__private::StoredAs<$crate::__private::sqlx::$database> for $key {
            type Column = $crate::__private::column::$column;
        }

        #[automatically_derived]
        impl $crate::__private::sqlx::Type<$crate::__private::sqlx::$database> for $key {
            fn type_info()
            -> <$crate::__private::sqlx::$database as $crate::__private::sqlx::Database>::TypeInfo
            {
                <$crate::__private::column::$column as $crate::__private::SqlxColumn<
                    $crate::__private::sqlx::$database,
                >>::type_info()
            }

            fn compatible(
                ty: &<$crate::__private::sqlx::$database as $crate::__private::sqlx::Database>::TypeInfo,
            ) -> $crate::__private::bool {
                <$crate::__private::column::$column as $crate::__private::SqlxColumn<
                    $crate::__private::sqlx::$database,
                >>::compatible(ty)
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
                <$crate::__private::column::$column as $crate::__private::SqlxColumn<
                    $crate::__private::sqlx::$database,
                >>::encode($crate::__private::KeyType::to_raw(*self), buffer)
            }
        }

        #[automatically_derived]
        impl<'r> $crate::__private::sqlx::Decode<'r, $crate::__private::sqlx::$database> for $key {
            fn decode(
                value: <$crate::__private::sqlx::$database as $crate::__private::sqlx::Database>::ValueRef<'r>,
            ) -> $crate::__private::Result<Self, $crate::__private::sqlx::error::BoxDynError> {
                <Self as $crate::__private::StoredAs<$crate::__private::sqlx::$database>>::__decode(
                    value,
                )
            }
        }
    };
}

#[cfg(feature = "postgres")]
#[doc(hidden)]
#[macro_export]
macro_rules! __implement_postgres {
    ($key:ty, $database:ident, $column:ident) => {
        $crate::__implement! { $key, $database, $column }

        #[automatically_derived]
        impl $crate::__private::sqlx::postgres::PgHasArrayType for $key {
            fn array_type_info() -> $crate::__private::sqlx::postgres::PgTypeInfo {
                <$crate::__private::column::$column as $crate::__private::PgColumn>::array_type_info()
            }

            fn array_compatible(ty: &$crate::__private::sqlx::postgres::PgTypeInfo) -> $crate::__private::bool {
                <$crate::__private::column::$column as $crate::__private::PgColumn>::array_compatible(
                    ty,
                )
            }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __engine_postgres {
    ($key:ty, $scheme:ty, uuid) => {
        $crate::__action_postgres! { $key, $scheme, Uuid }
    };
    ($key:ty, $scheme:ty, text) => {
        $crate::__action_postgres! { $key, $scheme, Text }
    };
    ($key:ty, $scheme:ty, char22) => {
        $crate::__action_postgres! { $key, $scheme, Char22 }
    };
    ($key:ty, $scheme:ty, $column:ident) => {
        ::core::compile_error! { "unknown PostgreSQL column; columns: uuid, text, char22" }
    };
}

#[cfg(feature = "postgres")]
#[doc(hidden)]
#[macro_export]
macro_rules! __action_postgres {
    ($key:ty, $scheme:ty, $column:ident) => {
        $crate::__check_order! { $scheme, $column }
        $crate::__implement_postgres! { $key, Postgres, $column }
    };
}

#[cfg(not(feature = "postgres"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __action_postgres {
    ($key:ty, $scheme:ty, $column:ident) => {
        $crate::__check_order! { $scheme, $column }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __engine_mysql {
    ($key:ty, $scheme:ty, binary16) => {
        $crate::__action_mysql! { $key, $scheme, Binary16 }
    };
    ($key:ty, $scheme:ty, char36) => {
        $crate::__action_mysql! { $key, $scheme, Char36 }
    };
    ($key:ty, $scheme:ty, char22) => {
        $crate::__action_mysql! { $key, $scheme, Char22 }
    };
    ($key:ty, $scheme:ty, mariadb_uuid) => {
        $crate::__action_mysql! { $key, $scheme, MariaDbUuid }
    };
    ($key:ty, $scheme:ty, $column:ident) => {
        ::core::compile_error! { "unknown MySQL column; columns: binary16, char36, char22, and on MariaDB mariadb_uuid" }
    };
}

#[cfg(feature = "mysql")]
#[doc(hidden)]
#[macro_export]
macro_rules! __action_mysql {
    ($key:ty, $scheme:ty, $column:ident) => {
        $crate::__check_order! { $scheme, $column }
        $crate::__implement! { $key, MySql, $column }
    };
}

#[cfg(not(feature = "mysql"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __action_mysql {
    ($key:ty, $scheme:ty, $column:ident) => {
        $crate::__check_order! { $scheme, $column }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __engine_sqlite {
    ($key:ty, $scheme:ty, blob) => {
        $crate::__action_sqlite! { $key, $scheme, Blob }
    };
    ($key:ty, $scheme:ty, text) => {
        $crate::__action_sqlite! { $key, $scheme, Text }
    };
    ($key:ty, $scheme:ty, char22) => {
        $crate::__action_sqlite! { $key, $scheme, Char22 }
    };
    ($key:ty, $scheme:ty, $column:ident) => {
        ::core::compile_error! { "unknown SQLite column; columns: blob, text, char22" }
    };
}

#[cfg(feature = "sqlite")]
#[doc(hidden)]
#[macro_export]
macro_rules! __action_sqlite {
    ($key:ty, $scheme:ty, $column:ident) => {
        $crate::__check_order! { $scheme, $column }
        $crate::__implement! { $key, Sqlite, $column }
    };
}

#[cfg(not(feature = "sqlite"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __action_sqlite {
    ($key:ty, $scheme:ty, $column:ident) => {
        $crate::__check_order! { $scheme, $column }
    };
}
