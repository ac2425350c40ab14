//! One macro per flavour: core looks the column's name up, checks the order, and calls what goes with it for the
//! user's key type.
//!
//! tiberius' own traits say nothing of the server, so they can be implemented once: by the pair for
//! SQL Server.

/// A bare `tiberius`: SQL Server's column for the raw key, whose name comes along where it is not
/// `Uuid`.
#[doc(hidden)]
#[macro_export]
macro_rules! __engine_all {
    ($key:ty, $scheme:ty $(, $raw:ident)?) => {
        const _: () = $crate::__private::assert_keeps_order::<
            $scheme,
            <<$scheme as $crate::__private::Scheme>::Raw as $crate::__private::Native>::Column,
            $crate::__private::dialect::SqlServer,
        >();
        $crate::__implement_sql_server! {
            $key,
            Native,
            <<$scheme as $crate::__private::Scheme>::Raw as $crate::__private::Native>::Column
        }
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
    ($key:ty, $name:ident, $column:ty) => {
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
macro_rules! __implement_babelfish {
    ($key:ty, $name:ident, $column:ty) => {
        $crate::__implement_stored_as! { $key, $column, Babelfish }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __engine_sql_server {
    ($key:ty, $scheme:ty, $($column:tt)*) => {
        $crate::__private::named_column! {
            sql_server $scheme, $($column)* => { $crate::__implement_sql_server } { $key }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __engine_babelfish {
    ($key:ty, $scheme:ty, $($column:tt)*) => {
        $crate::__private::named_column! {
            babelfish $scheme, $($column)* => { $crate::__implement_babelfish } { $key }
        }
    };
}
