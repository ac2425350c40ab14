//! What `#[derive(KeyType)]` calls: `engine!`, with the column's type. It checks the order, and implements
//! tokio-postgres' traits for the user's key type.

#[doc(hidden)]
#[macro_export]
macro_rules! __engine {
    (postgres: $key:ty, $scheme:ty, $column:ty) => {
        $crate::__private::keeps_order! { $scheme, $column }
        $crate::__implement! { $key, $column }
    };
    ($($other:tt)*) => {
        $crate::__private::engine_otherwise! {
            { $crate::engine } "tokio_postgres", postgres: Postgres, "postgres = uuid"; $($other)*
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
            fn to_sql(
                &self,
                _: &$crate::__private::Type,
                __out: &mut $crate::__private::BytesMut,
            ) -> $crate::__private::TypeResult<$crate::__private::IsNull> {
                <Self as $crate::__private::StoredAs>::__write(self, __out)
            }

            fn accepts(__ty: &$crate::__private::Type) -> $crate::__private::bool {
                <Self as $crate::__private::StoredAs>::__accepts(__ty)
            }

            fn to_sql_checked(
                &self,
                __ty: &$crate::__private::Type,
                __out: &mut $crate::__private::BytesMut,
            ) -> $crate::__private::TypeResult<$crate::__private::IsNull> {
                $crate::__private::write_checked(self, __ty, __out)
            }
        }

        #[automatically_derived]
        impl<'a> $crate::__private::FromSql<'a> for $key {
            fn from_sql(
                _: &$crate::__private::Type,
                __raw: &'a [$crate::__private::u8],
            ) -> $crate::__private::TypeResult<Self> {
                <Self as $crate::__private::StoredAs>::__read(__raw)
            }

            fn accepts(__ty: &$crate::__private::Type) -> $crate::__private::bool {
                <Self as $crate::__private::StoredAs>::__accepts(__ty)
            }
        }
    };
}
