//! What `#[derive(KeyType)]` calls: `engine!`, with the column's type. It checks the order, and implements the `oracle`
//! crate's traits for the user's key type.

#[doc(hidden)]
#[macro_export]
macro_rules! __engine {
    (key: $key:ty, $scheme:ty) => {};
    (all: $key:ty, $scheme:ty, PushId) => {
        $crate::__private::no_column! { "oracle", PushId }
    };
    (all: $key:ty, $scheme:ty, $raw:ident) => {
        $crate::engine! {
            oracle: $key, $scheme, $crate::__private::Native<$scheme, $crate::__private::dialect::Oracle>
        }
    };
    (oracle: $key:ty, $scheme:ty, $column:ty) => {
        $crate::__private::keeps_order! { $scheme, $column }
        $crate::__implement! { $key, $column }
    };
    ($engine:tt: $($key:tt)*) => {
        $crate::__private::unknown_engine! { $engine: "oracle = raw16" }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __implement {
    ($key:ty, $column:ty) => {
        #[automatically_derived]
        impl $crate::__private::StoredAs for $key {
            type Column = <$column as $crate::__private::NamedColumn>::Column;
        }

        #[automatically_derived]
        impl $crate::__private::ToSql for $key {
            fn oratype(&self, _: &$crate::__private::Connection) -> $crate::__private::TypeResult {
                <Self as $crate::__private::StoredAs>::__value_type()
            }

            fn to_sql(
                &self,
                value: &mut $crate::__private::SqlValue<'_>,
            ) -> $crate::__private::Result<()> {
                <Self as $crate::__private::StoredAs>::__set(self, value)
            }
        }

        #[automatically_derived]
        impl $crate::__private::ToSqlNull for $key {
            fn oratype_for_null(
                _: &$crate::__private::Connection,
            ) -> $crate::__private::TypeResult {
                <Self as $crate::__private::StoredAs>::__value_type()
            }
        }

        #[automatically_derived]
        impl $crate::__private::FromSql for $key {
            fn from_sql(
                value: &$crate::__private::SqlValue<'_>,
            ) -> $crate::__private::Result<Self> {
                <Self as $crate::__private::StoredAs>::__read(value)
            }
        }
    };
}
