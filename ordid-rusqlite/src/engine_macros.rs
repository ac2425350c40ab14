//! What `#[derive(KeyType)]` calls: `engine!`, with the column's type. It checks the order, and implements rusqlite's
//! traits for the user's key type.

#[doc(hidden)]
#[macro_export]
macro_rules! __engine {
    (sqlite: $key:ty, $scheme:ty, $column:ty) => {
        $crate::__private::keeps_order! { $scheme, $column }
        $crate::__implement! { $key, $column }
    };
    ($($other:tt)*) => {
        $crate::__private::engine_otherwise! {
            { $crate::engine } "rusqlite", sqlite: Sqlite, "sqlite = blob"; $($other)*
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
            fn to_sql(&self) -> $crate::__private::Result<$crate::__private::ToSqlOutput<'_>> {
                <Self as $crate::__private::StoredAs>::__to_sql(self)
            }
        }

        #[automatically_derived]
        impl $crate::__private::FromSql for $key {
            fn column_result(
                __value: $crate::__private::ValueRef<'_>,
            ) -> $crate::__private::FromSqlResult<Self> {
                <Self as $crate::__private::StoredAs>::__column_result(__value)
            }
        }
    };
}
