//! `#[derive(KeyType)]` calls the macro `engine!` with the column's type, once for each flavour of server. The macro
//! checks the order and implements the traits of that flavour for the user's key type.
//!
//! tiberius' own traits say nothing of the server, so they can be implemented once: by the pair for
//! SQL Server.

#[doc(hidden)]
#[macro_export]
macro_rules! __engine {
    (sql_server: $key:ty, $scheme:ty, $column:ty) => {
        $crate::__private::keeps_order! { $scheme, $column }
        $crate::__implement_stored_as! { $key, $column, SqlServer }
        $crate::__implement! { $key }
    };
    (babelfish: $key:ty, $scheme:ty, $column:ty) => {
        $crate::__private::keeps_order! { $scheme, $column }
        $crate::__implement_stored_as! { $key, $column, Babelfish }
    };
    ($($other:tt)*) => {
        $crate::__private::engine_otherwise! {
            { $crate::engine } "tiberius", sql_server: SqlServer,
            "sql_server = unique_identifier, babelfish = babelfish_unique_identifier"; $($other)*
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __implement_stored_as {
    ($key:ty, $column:ty, $dialect:ident) => {
        #[automatically_derived]
        impl $crate::__private::StoredAs<$crate::__private::dialect::$dialect> for $key {
            type Column = <$column as $crate::__private::NamedColumn>::Column;
        }

        #[automatically_derived]
        impl $crate::__private::Encode<$crate::__private::dialect::$dialect> for $key {
            fn encode(&self) -> $crate::__private::ColumnData<'_> {
                $crate::__private::encode::<$crate::__private::dialect::$dialect, _>(self)
            }

            fn null() -> $crate::__private::ColumnData<'static> {
                $crate::__private::null::<$crate::__private::dialect::$dialect, Self>()
            }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __implement {
    ($key:ty) => {
        #[automatically_derived]
        impl $crate::__private::ToSql for $key {
            fn to_sql(&self) -> $crate::__private::ColumnData<'_> {
                $crate::__private::encode::<$crate::__private::dialect::SqlServer, _>(self)
            }
        }

        #[automatically_derived]
        impl<'a> $crate::__private::IntoSql<'a> for $key {
            fn into_sql(self) -> $crate::__private::ColumnData<'a> {
                $crate::__private::encode::<$crate::__private::dialect::SqlServer, _>(&self)
            }
        }

        #[automatically_derived]
        impl<'a> $crate::__private::FromSql<'a> for $key {
            fn from_sql(
                __data: &'a $crate::__private::ColumnData<'static>,
            ) -> $crate::__private::Read<Self> {
                $crate::__private::decode(__data)
            }
        }

        #[automatically_derived]
        impl $crate::__private::Decode for $key {
            fn decode(
                __data: $crate::__private::ColumnData<'static>,
            ) -> $crate::__private::Result<Self> {
                $crate::__private::not_null(__data)
            }
        }

        #[automatically_derived]
        impl $crate::__private::FromSqlOwned for $key {
            fn from_sql_owned(
                __data: $crate::__private::ColumnData<'static>,
            ) -> $crate::__private::Read<Self> {
                $crate::__private::decode(&__data)
            }
        }
    };
}
