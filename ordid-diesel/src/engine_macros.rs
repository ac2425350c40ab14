//! What `#[derive(KeyType)]` calls: `key` once for a key type, and then one macro per engine.
//!
//! For an engine core looks the column's name up, checks the order, and calls what implements Diesel's traits for the
//! user's key type, which exists twice: without the engine's feature it does nothing. (A `cfg` inside a macro's body
//! would ask for the features of the user's crate.)

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

/// A bare `diesel`.
#[doc(hidden)]
#[macro_export]
macro_rules! __engine_all {
    ($($key:tt)*) => {
        $crate::__private::native_columns! { { $crate::engine } $($key)* }
    };
}

/// The SQL type of a column.
#[doc(hidden)]
#[macro_export]
macro_rules! __sql_type {
    (Uuid) => {
        $crate::__private::sql_types::Uuid
    };
    (BigInt) => {
        $crate::__private::sql_types::BigInt
    };
    (Integer) => {
        $crate::__private::sql_types::BigInt
    };
    (BigIntUnsigned) => {
        $crate::__private::sql_types::Unsigned
    };
    (Text) => {
        $crate::__private::sql_types::Text
    };
    (Char36) => {
        $crate::__private::sql_types::Text
    };
    (Char32) => {
        $crate::__private::sql_types::Text
    };
    (Char26) => {
        $crate::__private::sql_types::Text
    };
    (Char22) => {
        $crate::__private::sql_types::Text
    };
    (Char20) => {
        $crate::__private::sql_types::Text
    };
    (MariaDbUuid) => {
        $crate::__private::sql_types::Text
    };
    ($bytes:ident) => {
        $crate::__private::sql_types::Binary
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
        $crate::__implement! {
            $key, $crate::__private::diesel::pg::Pg, $column, $crate::__sql_type!($name)
        }
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
        $crate::__implement! {
            $key, $crate::__private::diesel::mysql::Mysql, $column, $crate::__sql_type!($name)
        }
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
        $crate::__implement! {
            $key, $crate::__private::diesel::sqlite::Sqlite, $column, $crate::__sql_type!($name)
        }
    };
}

#[cfg(not(feature = "sqlite"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __implement_sqlite {
    ($key:ty, $name:ident, $column:ty) => {};
}
