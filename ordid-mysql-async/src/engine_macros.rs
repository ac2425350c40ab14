//! What `#[derive(KeyType)]` calls: `engine!`, with the column's type. It checks the order, and implements mysql_async's
//! traits for the user's key type.

#[doc(hidden)]
#[macro_export]
macro_rules! __engine {
    (mysql: $key:ty, $scheme:ty, $column:ty) => {
        $crate::__private::keeps_order! { $scheme, $column }
        $crate::__implement! { $key, $column }
    };
    ($($other:tt)*) => {
        $crate::__private::engine_otherwise! {
            { $crate::engine } "mysql_async", mysql: MySql, "mysql = binary16"; $($other)*
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
        impl $crate::__private::From<$key> for $crate::__private::Value {
            fn from(__key: $key) -> Self {
                $crate::__private::StoredAs::__value(__key)
            }
        }

        #[automatically_derived]
        impl $crate::__private::From<$crate::__private::Parsed<$key>> for $key {
            fn from(__parsed: $crate::__private::Parsed<$key>) -> Self {
                __parsed.key
            }
        }

        #[automatically_derived]
        impl $crate::__private::FromValue for $key {
            type Intermediate = $crate::__private::Parsed<$key>;

            fn from_value(__value: $crate::__private::Value) -> Self {
                $crate::__private::StoredAs::__from_value(__value)
            }
        }
    };
}
