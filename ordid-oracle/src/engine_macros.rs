//! One macro per engine, of which there is one: it looks the column's name up, checks the order, and
//! implements the `oracle` crate's traits for the user's key type.

/// A bare `oracle`: the raw key's own column.
#[doc(hidden)]
#[macro_export]
macro_rules! __engine_all {
    ($key:ty, $scheme:ty) => {
        $crate::__implement! {
            $key, $scheme,
            <<$key as $crate::__private::KeyType>::Raw as $crate::__private::OwnColumn>::Column
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __engine_oracle {
    ($key:ty, $scheme:ty, raw16) => {
        $crate::__implement! { $key, $scheme, $crate::__private::column::Raw16 }
    };
    ($key:ty, $scheme:ty, raw16_dotnet) => {
        $crate::__implement! { $key, $scheme, $crate::__private::column::Raw16DotNet }
    };
    ($key:ty, $scheme:ty, raw12) => {
        $crate::__implement! { $key, $scheme, $crate::__private::column::Raw12 }
    };
    ($key:ty, $scheme:ty, raw24) => {
        $crate::__implement! { $key, $scheme, $crate::__private::column::Raw24 }
    };
    ($key:ty, $scheme:ty, number19) => {
        $crate::__implement! { $key, $scheme, $crate::__private::column::Number19 }
    };
    ($key:ty, $scheme:ty, number20) => {
        $crate::__implement! { $key, $scheme, $crate::__private::column::Number20 }
    };
    ($key:ty, $scheme:ty, $column:ident) => {
        ::core::compile_error! {
            "unknown Oracle column; columns: raw16, raw16_dotnet, raw12, raw24, number19, number20"
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __implement {
    ($key:ty, $scheme:ty, $column:ty) => {
        const _: () = $crate::__private::assert_keeps_order::<$scheme, $column>();

        #[automatically_derived]
        impl $crate::__private::StoredAs for $key {
            type Column = $column;
        }

        #[automatically_derived]
        impl $crate::__private::oracle::sql_type::ToSql for $key {
            fn oratype(
                &self,
                _: &$crate::__private::oracle::Connection,
            ) -> $crate::__private::Result<
                $crate::__private::oracle::sql_type::OracleType,
                $crate::__private::oracle::Error,
            > {
                $crate::__private::Result::Ok($crate::__private::value_type::<Self, $column>())
            }

            fn to_sql(
                &self,
                value: &mut $crate::__private::oracle::SqlValue<'_>,
            ) -> $crate::__private::Result<(), $crate::__private::oracle::Error> {
                $crate::__private::set::<Self, $column>(self, value)
            }
        }

        #[automatically_derived]
        impl $crate::__private::oracle::sql_type::ToSqlNull for $key {
            fn oratype_for_null(
                _: &$crate::__private::oracle::Connection,
            ) -> $crate::__private::Result<
                $crate::__private::oracle::sql_type::OracleType,
                $crate::__private::oracle::Error,
            > {
                $crate::__private::Result::Ok($crate::__private::value_type::<Self, $column>())
            }
        }

        #[automatically_derived]
        impl $crate::__private::oracle::sql_type::FromSql for $key {
            fn from_sql(
                value: &$crate::__private::oracle::SqlValue<'_>,
            ) -> $crate::__private::Result<Self, $crate::__private::oracle::Error> {
                $crate::__private::read::<Self, $column>(value)
            }
        }
    };
}
