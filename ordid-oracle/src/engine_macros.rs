//! What `#[derive(KeyType)]` calls: `engine!`, with the column's type. It checks the order, and implements the `oracle`
//! crate's traits for the user's key type.

#[doc(hidden)]
#[macro_export]
macro_rules! __engine {
    (oracle: $key:ty, $scheme:ty, $column:ty) => {
        $crate::__private::keeps_order! { $scheme, $column }
        $crate::__implement! { $key, $column }
    };
    ($($other:tt)*) => {
        $crate::__private::engine_otherwise! {
            { $crate::engine } "oracle", oracle: Oracle, "oracle = raw16"; $($other)*
        }
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
                __value: &mut $crate::__private::SqlValue<'_>,
            ) -> $crate::__private::Result<()> {
                <Self as $crate::__private::StoredAs>::__set(self, __value)
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
                __value: &$crate::__private::SqlValue<'_>,
            ) -> $crate::__private::Result<Self> {
                <Self as $crate::__private::StoredAs>::__read(__value)
            }
        }
    };
}
