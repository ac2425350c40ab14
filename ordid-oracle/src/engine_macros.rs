//! One macro per engine, of which there is one: core looks the column's name up, checks the order, and calls what
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
    ($key:ty, $scheme:ty, $($column:tt)*) => {
        $crate::__private::named_column! {
            oracle $scheme, $($column)* => { $crate::__implement } { $key }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __implement {
    ($key:ty, $name:ident, $column:ty) => {
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
