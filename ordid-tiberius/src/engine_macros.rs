//! One macro per flavour: each looks the column's name up, checks the order, and implements what
//! goes with it for the user's key type.
//!
//! tiberius' own traits say nothing of the server, so they can be implemented once: by the pair for
//! SQL Server.

/// A bare `tiberius`: SQL Server's column for the raw key, whose name comes along where it is not
/// `Uuid`.
#[doc(hidden)]
#[macro_export]
macro_rules! __engine_all {
    ($key:ty, $scheme:ty $(, $raw:ident)?) => {
        $crate::__check_order! {
            $scheme,
            <<$scheme as $crate::__private::Scheme>::Raw as $crate::__private::Native>::Column,
            SqlServer
        }
        $crate::__implement_sql_server! {
            $key,
            <<$scheme as $crate::__private::Scheme>::Raw as $crate::__private::Native>::Column
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __check_order {
    ($scheme:ty, $column:ty, $dialect:ident) => {
        const _: () = $crate::__private::assert_keeps_order::<
            $scheme,
            $column,
            $crate::__private::dialect::$dialect,
        >();
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __implement_stored_as {
    ($key:ty, $column:ty, $dialect:ident) => {
        #[automatically_derived]
        impl $crate::__private::StoredAs<$crate::__private::dialect::$dialect> for $key {
            type Column = $column;
        }

        #[automatically_derived]
        impl $crate::__private::Encode<$crate::__private::dialect::$dialect> for $key {
            fn encode(&self) -> $crate::__private::tiberius::ColumnData<'_> {
                <Self as $crate::__private::StoredAs<
                                                            $crate::__private::dialect::$dialect,
                                                        >>::__encode(*self)
            }

            fn null() -> $crate::__private::tiberius::ColumnData<'static> {
                <Self as $crate::__private::StoredAs<$crate::__private::dialect::$dialect>>::__null(
                )
            }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __implement_sql_server {
    ($key:ty, $column:ty) => {
        $crate::__implement_stored_as! { $key, $column, SqlServer }

        #[automatically_derived]
        impl $crate::__private::tiberius::ToSql for $key {
            fn to_sql(&self) -> $crate::__private::tiberius::ColumnData<'_> {
                <Self as $crate::__private::StoredAs<
                                                            $crate::__private::dialect::SqlServer,
                                                        >>::__encode(*self)
            }
        }

        #[automatically_derived]
        impl<'a> $crate::__private::tiberius::IntoSql<'a> for $key {
            fn into_sql(self) -> $crate::__private::tiberius::ColumnData<'a> {
                <Self as $crate::__private::StoredAs<
                                                            $crate::__private::dialect::SqlServer,
                                                        >>::__encode(self)
            }
        }

        #[automatically_derived]
        impl<'a> $crate::__private::tiberius::FromSql<'a> for $key {
            fn from_sql(
                data: &'a $crate::__private::tiberius::ColumnData<'static>,
            ) -> $crate::__private::tiberius::Result<$crate::__private::Option<Self>> {
                <Self as $crate::__private::StoredAs<
                                                            $crate::__private::dialect::SqlServer,
                                                        >>::__decode(data)
            }
        }

        #[automatically_derived]
        impl $crate::__private::tiberius::FromSqlOwned for $key {
            fn from_sql_owned(
                data: $crate::__private::tiberius::ColumnData<'static>,
            ) -> $crate::__private::tiberius::Result<$crate::__private::Option<Self>> {
                <Self as $crate::__private::StoredAs<
                                                            $crate::__private::dialect::SqlServer,
                                                        >>::__decode(&data)
            }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __engine_sql_server {
    ($key:ty, $scheme:ty, unordered($column:ident)) => {
        $crate::__column_sql_server! { __unordered_sql_server, $key, $scheme, $column }
    };
    ($key:ty, $scheme:ty, $column:ident) => {
        $crate::__column_sql_server! { __ordered_sql_server, $key, $scheme, $column }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __column_sql_server {
    ($action:ident, $key:ty, $scheme:ty, unique_identifier) => {
        $crate::$action! { $key, $scheme, UniqueIdentifier }
    };
    ($action:ident, $key:ty, $scheme:ty, unique_identifier_permuted) => {
        $crate::$action! { $key, $scheme, UniqueIdentifierPermuted }
    };
    ($action:ident, $key:ty, $scheme:ty, binary16) => {
        $crate::$action! { $key, $scheme, Binary16 }
    };
    ($action:ident, $key:ty, $scheme:ty, binary12) => {
        $crate::$action! { $key, $scheme, Binary12 }
    };
    ($action:ident, $key:ty, $scheme:ty, binary24) => {
        $crate::$action! { $key, $scheme, Binary24 }
    };
    ($action:ident, $key:ty, $scheme:ty, bigint) => {
        $crate::$action! { $key, $scheme, BigInt }
    };
    ($action:ident, $key:ty, $scheme:ty, $column:ident) => {
        ::core::compile_error! {
            "unknown SQL Server column; columns: unique_identifier, unique_identifier_permuted, \
binary16, binary12, binary24, bigint"
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __ordered_sql_server {
    ($key:ty, $scheme:ty, $column:ident) => {
        $crate::__check_order! { $scheme, $crate::__private::column::$column, SqlServer }
        $crate::__implement_sql_server! { $key, $crate::__private::column::$column }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __unordered_sql_server {
    ($key:ty, $scheme:ty, $column:ident) => {
        $crate::__implement_sql_server! {
            $key, $crate::__private::column::Unordered<$crate::__private::column::$column>
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __engine_babelfish {
    ($key:ty, $scheme:ty, unordered($column:ident)) => {
        $crate::__column_babelfish! { __unordered_babelfish, $key, $scheme, $column }
    };
    ($key:ty, $scheme:ty, $column:ident) => {
        $crate::__column_babelfish! { __ordered_babelfish, $key, $scheme, $column }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __column_babelfish {
    ($action:ident, $key:ty, $scheme:ty, babelfish_unique_identifier) => {
        $crate::$action! { $key, $scheme, BabelfishUniqueIdentifier }
    };
    ($action:ident, $key:ty, $scheme:ty, binary16) => {
        $crate::$action! { $key, $scheme, Binary16 }
    };
    ($action:ident, $key:ty, $scheme:ty, bigint) => {
        $crate::$action! { $key, $scheme, BigInt }
    };
    ($action:ident, $key:ty, $scheme:ty, $column:ident) => {
        ::core::compile_error! {
            "unknown Babelfish column; columns: babelfish_unique_identifier, binary16, bigint"
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __ordered_babelfish {
    ($key:ty, $scheme:ty, $column:ident) => {
        $crate::__check_order! { $scheme, $crate::__private::column::$column, Babelfish }
        $crate::__implement_stored_as! { $key, $crate::__private::column::$column, Babelfish }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __unordered_babelfish {
    ($key:ty, $scheme:ty, $column:ident) => {
        $crate::__implement_stored_as! {
            $key,
            $crate::__private::column::Unordered<$crate::__private::column::$column>,
            Babelfish
        }
    };
}
