//! What `#[derive(KeyType)]` calls: `engine!`, once for a key type, and then for each engine, with the column's type.
//! It checks the order, and implements Diesel's traits for the user's key type, if the engine's feature is on.

#[doc(hidden)]
#[macro_export]
macro_rules! __engine {
    (key: $key:ty, $scheme:ty) => {
        $crate::__implement_key! { $key }
    };
    (all: $key:ty, $scheme:ty, $raw:ident) => {
        $crate::__private::native_columns! { { $crate::engine } $key, $scheme, $raw }
    };
    (postgres: $key:ty, $scheme:ty, $column:ty) => {
        $crate::__private::on_postgres! { $scheme, $column =>
            $crate::__implement! { $key, $crate::__private::diesel::pg::Pg, $column }
        }
    };
    (mysql: $key:ty, $scheme:ty, $column:ty) => {
        $crate::__private::on_mysql! { $scheme, $column =>
            $crate::__implement! { $key, $crate::__private::diesel::mysql::Mysql, $column }
        }
    };
    (sqlite: $key:ty, $scheme:ty, $column:ty) => {
        $crate::__private::on_sqlite! { $scheme, $column =>
            $crate::__implement! { $key, $crate::__private::diesel::sqlite::Sqlite, $column }
        }
    };
    ($engine:tt: $($key:tt)*) => {
        $crate::__private::unknown_engine! { $engine: "postgres = uuid, mysql = binary16, sqlite = blob" }
    };
}

/// What Diesel asks of a type once, whatever the backends: two of them may store keys under the same
/// SQL type.
///
/// As `#[derive(AsExpression, FromSqlRow)]` would write it, but for every SQL type of keys: which one is
/// right is told by `ToSql` and `FromSql`.
#[doc(hidden)]
#[macro_export]
macro_rules! __implement_key {
    ($key:ty) => {
        #[automatically_derived]
        impl<__ST, __DB> $crate::__private::diesel::deserialize::Queryable<__ST, __DB> for $key
        where
            __DB: $crate::__private::diesel::backend::Backend,
            __ST: $crate::__private::diesel::sql_types::SingleValue,
            Self: $crate::__private::diesel::deserialize::FromSql<__ST, __DB>,
        {
            type Row = Self;

            fn build(__row: Self) -> $crate::__private::diesel::deserialize::Result<Self> {
                $crate::__private::Result::Ok(__row)
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
                __out: &mut $crate::__private::diesel::serialize::Output<'__b, '_, __DB>,
            ) -> $crate::__private::diesel::serialize::Result {
                $crate::__private::diesel::serialize::ToSql::<__ST, __DB>::to_sql(self, __out)
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

#[doc(hidden)]
#[macro_export]
macro_rules! __implement {
    ($key:ty, $backend:ty, $column:ty) => {
        #[automatically_derived]
        impl $crate::__private::StoredAs<$backend> for $key {
            type Column = <$column as $crate::__private::NamedColumn>::Column;
        }

        #[automatically_derived]
        impl<__ST: $crate::__private::SqlTypeOf<$key, $backend>>
            $crate::__private::diesel::serialize::ToSql<__ST, $backend> for $key
        {
            #[inline]
            fn to_sql<'__b>(
                &'__b self,
                __out: &mut $crate::__private::diesel::serialize::Output<'__b, '_, $backend>,
            ) -> $crate::__private::diesel::serialize::Result {
                $crate::__private::to_sql::<$backend, Self>(*self, __out)
            }
        }

        #[automatically_derived]
        impl<__ST: $crate::__private::SqlTypeOf<$key, $backend>>
            $crate::__private::diesel::deserialize::FromSql<__ST, $backend> for $key
        {
            #[inline]
            fn from_sql(
                __value: <$backend as $crate::__private::diesel::backend::Backend>::RawValue<'_>,
            ) -> $crate::__private::diesel::deserialize::Result<Self> {
                $crate::__private::from_sql::<$backend, Self>(__value)
            }
        }
    };
}
