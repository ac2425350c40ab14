//! What `#[derive(KeyType)]` calls: `engine!`, with the column's type. It checks the order, and implements
//! tokio-postgres' traits for the user's key type.

#[doc(hidden)]
#[macro_export]
macro_rules! __engine {
    (key: $key:ty, $scheme:ty) => {};
    (all: $key:ty, $scheme:ty, u64) => {
        $crate::__private::no_column! { "tokio_postgres", u64 }
    };
    (all: $key:ty, $scheme:ty, $raw:ident) => {
        $crate::engine! {
            postgres: $key, $scheme, $crate::__private::Native<$scheme, $crate::__private::dialect::Postgres>
        }
    };
    (postgres: $key:ty, $scheme:ty, $column:ty) => {
        $crate::__private::keeps_order! { $scheme, $column }
        $crate::__implement! { $key, $column }
    };
    ($engine:tt: $($key:tt)*) => {
        $crate::__private::unknown_engine! { $engine: "postgres = uuid" }
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
                out: &mut $crate::__private::BytesMut,
            ) -> $crate::__private::TypeResult<$crate::__private::IsNull> {
                <Self as $crate::__private::StoredAs>::__write(self, out)
            }

            fn accepts(ty: &$crate::__private::Type) -> $crate::__private::bool {
                <Self as $crate::__private::StoredAs>::__accepts(ty)
            }

            fn to_sql_checked(
                &self,
                ty: &$crate::__private::Type,
                out: &mut $crate::__private::BytesMut,
            ) -> $crate::__private::TypeResult<$crate::__private::IsNull> {
                $crate::__private::write_checked(self, ty, out)
            }
        }

        #[automatically_derived]
        impl<'a> $crate::__private::FromSql<'a> for $key {
            fn from_sql(
                _: &$crate::__private::Type,
                raw: &'a [$crate::__private::u8],
            ) -> $crate::__private::TypeResult<Self> {
                <Self as $crate::__private::StoredAs>::__read(raw)
            }

            fn accepts(ty: &$crate::__private::Type) -> $crate::__private::bool {
                <Self as $crate::__private::StoredAs>::__accepts(ty)
            }
        }
    };
}
