//! One macro per engine. Core looks the column's name up, checks the order, and calls what implements SQLx's traits
//! for the user's key type, which exists twice: without the engine's feature it does nothing. (A `cfg` inside a
//! macro's body would ask for the features of the user's crate.)

/// A bare `sqlx`.
#[doc(hidden)]
#[macro_export]
macro_rules! __engine_all {
    ($($key:tt)*) => {
        $crate::__private::native_columns! { { $crate::engine } $($key)* }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __implement {
    ($key:ty, $database:ident, $column:ty) => {
        #[automatically_derived]
        impl $crate::__private::StoredAs<$crate::__private::sqlx::$database> for $key {
            type Column = $column;
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
    ($key:ty, $scheme:ty, $($column:tt)*) => {
        $crate::__private::named_column! {
            postgres $scheme, $($column)* => { $crate::__implement_postgres } { $key }
        }
    };
}

#[cfg(feature = "postgres")]
#[doc(hidden)]
#[macro_export]
macro_rules! __implement_postgres {
    ($key:ty, $name:ident, $column:ty) => {
        $crate::__implement! { $key, Postgres, $column }
        $crate::__implement_arrays! { $key }
    };
}

#[cfg(not(feature = "postgres"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __implement_postgres {
    ($key:ty, $name:ident, $column:ty) => {};
}

#[doc(hidden)]
#[macro_export]
macro_rules! __engine_mysql {
    ($key:ty, $scheme:ty, $($column:tt)*) => {
        $crate::__private::named_column! {
            mysql $scheme, $($column)* => { $crate::__implement_mysql } { $key }
        }
    };
}

#[cfg(feature = "mysql")]
#[doc(hidden)]
#[macro_export]
macro_rules! __implement_mysql {
    ($key:ty, $name:ident, $column:ty) => {
        $crate::__implement! { $key, MySql, $column }
    };
}

#[cfg(not(feature = "mysql"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __implement_mysql {
    ($key:ty, $name:ident, $column:ty) => {};
}

#[doc(hidden)]
#[macro_export]
macro_rules! __engine_sqlite {
    ($key:ty, $scheme:ty, $($column:tt)*) => {
        $crate::__private::named_column! {
            sqlite $scheme, $($column)* => { $crate::__implement_sqlite } { $key }
        }
    };
}

#[cfg(feature = "sqlite")]
#[doc(hidden)]
#[macro_export]
macro_rules! __implement_sqlite {
    ($key:ty, $name:ident, $column:ty) => {
        $crate::__implement! { $key, Sqlite, $column }
    };
}

#[cfg(not(feature = "sqlite"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __implement_sqlite {
    ($key:ty, $name:ident, $column:ty) => {};
}
