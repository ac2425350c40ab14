//! One macro per engine, of which there is one: it looks the column's name up, checks the order, and
//! implements the `oracle` crate's traits for the user's key type.

/// A bare `oracle`: the raw key's own column.
#[doc(hidden)]
#[macro_export]
macro_rules! __engine_all {
    ($key:ty, $scheme:ty) => {
        $crate::engine::oracle! { $key, $scheme, raw16 }
    };
    ($key:ty, $scheme:ty, i64) => {
        $crate::engine::oracle! { $key, $scheme, number19 }
    };
    ($key:ty, $scheme:ty, u64) => {
        $crate::engine::oracle! { $key, $scheme, number20 }
    };
    ($key:ty, $scheme:ty, ObjectId) => {
        $crate::engine::oracle! { $key, $scheme, raw12 }
    };
    ($key:ty, $scheme:ty, Key192) => {
        $crate::engine::oracle! { $key, $scheme, raw24 }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __engine_oracle {
    ($key:ty, $scheme:ty, unordered($column:ident)) => {
        $crate::__column_oracle! { unordered $key, $scheme, $column }
    };
    ($key:ty, $scheme:ty, $column:ident) => {
        $crate::__column_oracle! { ordered $key, $scheme, $column }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __column_oracle {
    ($how:ident $key:ty, $scheme:ty, raw16) => {
        $crate::__implement! { $how $key, $scheme, Raw16 }
    };
    ($how:ident $key:ty, $scheme:ty, raw16_dotnet) => {
        $crate::__implement! { $how $key, $scheme, Raw16DotNet }
    };
    ($how:ident $key:ty, $scheme:ty, raw12) => {
        $crate::__implement! { $how $key, $scheme, Raw12 }
    };
    ($how:ident $key:ty, $scheme:ty, raw24) => {
        $crate::__implement! { $how $key, $scheme, Raw24 }
    };
    ($how:ident $key:ty, $scheme:ty, number19) => {
        $crate::__implement! { $how $key, $scheme, Number19 }
    };
    ($how:ident $key:ty, $scheme:ty, number20) => {
        $crate::__implement! { $how $key, $scheme, Number20 }
    };
    ($how:ident $key:ty, $scheme:ty, $column:ident) => {
        ::core::compile_error! {
            "unknown Oracle column; columns: raw16, raw16_dotnet, raw12, raw24, number19, number20"
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __implement {
    (ordered $key:ty, $scheme:ty, $column:ident) => {
        const _: () = $crate::__private::assert_keeps_order::<
            $scheme,
            $crate::__private::column::$column,
            $crate::__private::dialect::Oracle,
        >();
        $crate::__implement! { $key, $crate::__private::column::$column }
    };
    (unordered $key:ty, $scheme:ty, $column:ident) => {
        $crate::__implement! {
            $key, $crate::__private::column::Unordered<$crate::__private::column::$column>
        }
    };
    ($key:ty, $column:ty) => {
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
