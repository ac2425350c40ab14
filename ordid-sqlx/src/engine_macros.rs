//! What `#[derive(KeyType)]` calls: `engine!`, once for a key type, and then for each engine, with the column's type.
//! It checks the order, and implements SQLx's traits for the user's key type, if the engine's feature is on.

#[doc(hidden)]
#[macro_export]
macro_rules! __engine {
    (key: $key:ty, $scheme:ty) => {};
    (all: $key:ty, $scheme:ty, $raw:ident) => {
        $crate::__private::native_columns! { { $crate::engine } $key, $scheme, $raw }
    };
    (postgres: $key:ty, $scheme:ty, $column:ty) => {
        $crate::__private::on_postgres! { $scheme, $column =>
            $crate::__implement! { $key, Postgres, $column }
            $crate::__implement_arrays! { $key }
        }
    };
    (mysql: $key:ty, $scheme:ty, $column:ty) => {
        $crate::__private::on_mysql! { $scheme, $column => $crate::__implement! { $key, MySql, $column } }
    };
    (sqlite: $key:ty, $scheme:ty, $column:ty) => {
        $crate::__private::on_sqlite! { $scheme, $column => $crate::__implement! { $key, Sqlite, $column } }
    };
    ($engine:tt: $($key:tt)*) => {
        $crate::__private::unknown_engine! { $engine: "postgres = uuid, mysql = binary16, sqlite = blob" }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __implement {
    ($key:ty, $database:ident, $column:ty) => {
        #[automatically_derived]
        impl $crate::__private::StoredAs<$crate::__private::sqlx::$database> for $key {
            type Column = <$column as $crate::__private::NamedColumn>::Column;
        }

        #[automatically_derived]
        impl $crate::__private::sqlx::Type<$crate::__private::sqlx::$database> for $key {
            fn type_info()
            -> <$crate::__private::sqlx::$database as $crate::__private::sqlx::Database>::TypeInfo
            {
                $crate::__private::type_info::<$crate::__private::sqlx::$database, Self>()
            }

            fn compatible(
                __ty: &<$crate::__private::sqlx::$database as $crate::__private::sqlx::Database>::TypeInfo,
            ) -> $crate::__private::bool {
                $crate::__private::compatible::<$crate::__private::sqlx::$database, Self>(__ty)
            }
        }

        #[automatically_derived]
        impl $crate::__private::sqlx::Encode<'_, $crate::__private::sqlx::$database> for $key {
            fn encode_by_ref(
                &self,
                __buffer: &mut <$crate::__private::sqlx::$database as $crate::__private::sqlx::Database>::ArgumentBuffer,
            ) -> $crate::__private::Result<
                $crate::__private::sqlx::encode::IsNull,
                $crate::__private::sqlx::error::BoxDynError,
            > {
                $crate::__private::encode::<$crate::__private::sqlx::$database, Self>(*self, __buffer)
            }
        }

        #[automatically_derived]
        impl<'r> $crate::__private::sqlx::Decode<'r, $crate::__private::sqlx::$database> for $key {
            fn decode(
                __value: <$crate::__private::sqlx::$database as $crate::__private::sqlx::Database>::ValueRef<'r>,
            ) -> $crate::__private::Result<Self, $crate::__private::sqlx::error::BoxDynError> {
                $crate::__private::decode::<$crate::__private::sqlx::$database, Self>(__value)
            }
        }
    };
}

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
                __ty: &$crate::__private::sqlx::postgres::PgTypeInfo,
            ) -> $crate::__private::bool {
                $crate::__private::array_compatible::<Self>(__ty)
            }
        }
    };
}
