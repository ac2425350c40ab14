//! The macros that derived code calls. `engine!` gets the column's type, checks the order, and implements SeaORM's
//! traits for the user's key type.

#[doc(hidden)]
#[macro_export]
macro_rules! __engine {
    (key: $key:ty, $scheme:ty) => {};
    // Of PostgreSQL's rules, but for the raw key that it has no column for.
    (all: $key:ty, $scheme:ty, u64) => {
        $crate::engine! {
            _: $key, $scheme, $crate::__private::Native<$scheme, $crate::__private::dialect::MySql>
        }
    };
    (all: $key:ty, $scheme:ty, $raw:ident) => {
        $crate::engine! {
            _: $key, $scheme, $crate::__private::Native<$scheme, $crate::__private::dialect::Postgres>
        }
    };
    (_: $key:ty, $scheme:ty, $column:ty) => {
        $crate::__private::keeps_order! { $scheme, $column }
        $crate::__implement! { $key, $column }
    };
    ($engine:tt: $($key:tt)*) => {
        ::core::compile_error! { "SeaORM's key types have one column for all databases, as in `sea_orm(uuid)`" }
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
                $crate::__private::to_value(__key)
            }
        }

        #[automatically_derived]
        impl $crate::__private::sea_orm::TryGetable for $key {
            fn try_get_by<I: $crate::__private::sea_orm::ColIdx>(
                __row: &$crate::__private::sea_orm::QueryResult,
                __index: I,
            ) -> $crate::__private::Result<Self, $crate::__private::sea_orm::TryGetError> {
                $crate::__private::try_get(__row, __index)
            }
        }

        #[automatically_derived]
        impl $crate::__private::sea_query::ValueType for $key {
            fn try_from(
                __value: $crate::__private::Value,
            ) -> $crate::__private::Result<Self, $crate::__private::sea_query::ValueTypeErr> {
                $crate::__private::from_value(__value)
            }

            fn type_name() -> $crate::__private::String {
                $crate::__private::From::from(<Self as $crate::__private::KeyType>::NAME)
            }

            fn array_type() -> $crate::__private::sea_query::ArrayType {
                $crate::__private::array_type::<Self>()
            }

            fn column_type() -> $crate::__private::sea_query::ColumnType {
                $crate::__private::column_type::<Self>()
            }
        }

        #[automatically_derived]
        impl $crate::__private::sea_query::Nullable for $key {
            fn null() -> $crate::__private::Value {
                $crate::__private::null::<Self>()
            }
        }

        #[automatically_derived]
        impl $crate::__private::sea_orm::IntoActiveValue<$key> for $key {
            fn into_active_value(self) -> $crate::__private::sea_orm::ActiveValue<$key> {
                $crate::__private::sea_orm::ActiveValue::Set(self)
            }
        }

        #[automatically_derived]
        impl $crate::__private::sea_orm::TryFromU64 for $key {
            fn try_from_u64(
                __number: $crate::__private::u64,
            ) -> $crate::__private::Result<Self, $crate::__private::sea_orm::DbErr> {
                $crate::__private::try_from_u64(__number)
            }
        }

        $crate::__arrays! { $key }
    };
}

#[cfg(feature = "postgres")]
#[doc(hidden)]
#[macro_export]
macro_rules! __arrays {
    ($key:ty) => {
        #[automatically_derived]
        impl $crate::__private::sea_query::postgres_array::NotU8 for $key {}

        #[automatically_derived]
        impl $crate::__private::sea_orm::TryGetableArray for $key {
            fn try_get_by<I: $crate::__private::sea_orm::ColIdx>(
                __row: &$crate::__private::sea_orm::QueryResult,
                __index: I,
            ) -> $crate::__private::Result<
                $crate::__private::Vec<Self>,
                $crate::__private::sea_orm::TryGetError,
            > {
                $crate::__private::try_get_array(__row, __index)
            }
        }
    };
}

#[cfg(not(feature = "postgres"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __arrays {
    ($key:ty) => {};
}

/// What `#[derive(OrderedKey)]` makes of a model, for the `ActiveModel` beside it. The bounds are located at the fields of
/// the key: a field that does not meet them is reported there, and nowhere inside of the impls.
#[doc(hidden)]
#[macro_export]
macro_rules! __engine_entity {
    (
        { $($names:tt)* }
        { $($version:tt)* }
        keys $($key:ident: $key_type:ty = $column:literal at $place:tt),+ where { $($bound:tt)* };
        $($rest:tt)*
    ) => {
        $crate::__engine_entity! {
            @ { $($bound)* }
            {
                type Field = $crate::__private::KeyFields<
                    ($($crate::__private::Option<$key_type>),+)
                >;

                $($names)*
                const KEY_COLUMNS: &'static [&'static $crate::__private::str] = &[$($column),+];

                fn key(&self) -> $crate::__private::Option<$crate::__private::KeyOf<Self>> {
                    $crate::__private::KeyField::get(&$crate::__private::KeyFields(
                        ($($crate::__private::sea_orm::ActiveValue::try_as_ref(&self.$key).copied()),+)
                    ))
                }

                fn assign_key(&mut self, __key: $crate::__private::KeyOf<Self>) {
                    $(self.$key = $crate::__private::sea_orm::ActiveValue::Set(__key.0.$place);)+
                }

                fn key_fields(&self) -> $crate::__private::Option<Self::Field> {
                    $crate::__private::Option::Some($crate::__private::KeyFields(
                        ($($crate::__private::sea_orm::ActiveValue::try_as_ref(&self.$key).copied()),+)
                    ))
                }

                $($version)*
            }
            {
                fn write_key(__key: $crate::__private::KeyOf<Self>, __binder: &mut $crate::Binder) {
                    $(__binder.put_part(__key.0.$place);)+
                }
            }
            $($rest)*
        }
    };
    (
        { $($names:tt)* }
        { $($version:tt)* }
        $key:ident: $key_type:ty where { $($bound:tt)* };
        $($rest:tt)*
    ) => {
        #[automatically_derived]
        impl $crate::__private::KeyedModel for ActiveModel {
            type Key = $key_type;
        }

        $crate::__engine_entity! {
            @ { $($bound)* }
            {
                type Field = $crate::__private::Option<$key_type>;

                $($names)*

                fn key(&self) -> $crate::__private::Option<$crate::__private::KeyOf<Self>> {
                    $crate::__private::sea_orm::ActiveValue::try_as_ref(&self.$key).copied()
                }

                fn assign_key(&mut self, __key: $crate::__private::KeyOf<Self>) {
                    self.$key = $crate::__private::sea_orm::ActiveValue::Set(__key);
                }

                $($version)*
            }
            {
                fn write_key(__key: $key_type, __binder: &mut $crate::Binder) {
                    __binder.put_key::<Self>(__key);
                }
            }
            $($rest)*
        }
    };
    (
        @ { $($bound:tt)* }
        { $($key:tt)* }
        { $($write_key:tt)* }
        $(version $at:literal $version_field:ident: $version_type:ty;)?
        $(returning $($returned:ty),+;)?
    ) => {
        #[allow(trivial_bounds)]
        #[automatically_derived]
        impl $crate::__private::OrderedKey for ActiveModel where $($bound)* {
            $($key)*
        }

        #[allow(trivial_bounds)]
        #[automatically_derived]
        impl $crate::__private::Fields<$crate::Binder> for ActiveModel where $($bound)* {
            fn write(&self, __binder: &mut $crate::Binder) {
                __binder.put_all(self);
            }

            $($write_key)*

            $(
                fn write_update(&self, __binder: &mut $crate::Binder) {
                    __binder.put_update::<Self, $version_type>(self, $at, &self.$version_field);
                }

                fn write_version(
                    __number: $crate::__private::i128,
                    __binder: &mut $crate::Binder,
                ) {
                    __binder.put_version::<$version_type>(__number);
                }
            )?

            $(
                fn expect_returned(__binder: &mut $crate::Binder) {
                    $(
                        $crate::__private::Reads::<
                            <$returned as $crate::__private::AssignedField>::Value,
                        >::expect(__binder);
                    )+
                }
            )?
        }
    };
}
