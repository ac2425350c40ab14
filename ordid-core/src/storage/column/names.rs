//! The columns by the names that users write, as in `#[ordid(sqlx(postgres = uuid))]`: a list for each engine, which
//! the macros that derived code calls look them up in, whatever the adapter.
//!
//! They are macros, since the derives know no library, and no macro can read [`Column::NAME`](super::Column::NAME).

/// Looks a column up, checks that it keeps the scheme's order, and calls an adapter's macro with it.
///
/// `postgres Scheme, uuid => { $crate::__implement } { Key }` calls `$crate::__implement! { Key, Uuid, type }`, where
/// `type` is `column::Uuid`. Of `unordered(uuid)` nothing is checked, and it is `Unordered<column::Uuid>`.
#[doc(hidden)]
#[macro_export]
macro_rules! __named_column {
    ($engine:ident $scheme:ty, unordered($column:ident) => $($then:tt)*) => {
        $crate::__column_of! { $engine $column (unordered $scheme) $($then)* }
    };
    ($engine:ident $scheme:ty, $column:ident => $($then:tt)*) => {
        $crate::__column_of! { $engine $column (ordered $scheme) $($then)* }
    };
}

/// The lists. `any` is for an adapter whose key types have one column for all engines: most are checked as
/// PostgreSQL's, since what they are elsewhere compares alike.
#[doc(hidden)]
#[macro_export]
macro_rules! __column_of {
    (postgres uuid $($rest:tt)*) => { $crate::__found_column! { Uuid Postgres $($rest)* } };
    (postgres bytea $($rest:tt)*) => { $crate::__found_column! { Bytea Postgres $($rest)* } };
    (postgres text $($rest:tt)*) => { $crate::__found_column! { Text Postgres $($rest)* } };
    (postgres char32 $($rest:tt)*) => { $crate::__found_column! { Char32 Postgres $($rest)* } };
    (postgres char26 $($rest:tt)*) => { $crate::__found_column! { Char26 Postgres $($rest)* } };
    (postgres char22 $($rest:tt)*) => { $crate::__found_column! { Char22 Postgres $($rest)* } };
    (postgres char20 $($rest:tt)*) => { $crate::__found_column! { Char20 Postgres $($rest)* } };
    (postgres bigint $($rest:tt)*) => { $crate::__found_column! { BigInt Postgres $($rest)* } };
    (postgres $column:ident $($rest:tt)*) => {
        ::core::compile_error! { "unknown PostgreSQL column; columns: uuid, bytea, text, char32, char26, char22, char20, bigint" }
    };

    (mysql binary16 $($rest:tt)*) => { $crate::__found_column! { Binary16 MySql $($rest)* } };
    (mysql binary12 $($rest:tt)*) => { $crate::__found_column! { Binary12 MySql $($rest)* } };
    (mysql binary24 $($rest:tt)*) => { $crate::__found_column! { Binary24 MySql $($rest)* } };
    (mysql binary16_swapped $($rest:tt)*) => { $crate::__found_column! { Binary16Swapped MySql $($rest)* } };
    (mysql binary16_dotnet $($rest:tt)*) => { $crate::__found_column! { Binary16DotNet MySql $($rest)* } };
    (mysql char36 $($rest:tt)*) => { $crate::__found_column! { Char36 MySql $($rest)* } };
    (mysql char32 $($rest:tt)*) => { $crate::__found_column! { Char32 MySql $($rest)* } };
    (mysql char26 $($rest:tt)*) => { $crate::__found_column! { Char26 MySql $($rest)* } };
    (mysql char22 $($rest:tt)*) => { $crate::__found_column! { Char22 MySql $($rest)* } };
    (mysql char20 $($rest:tt)*) => { $crate::__found_column! { Char20 MySql $($rest)* } };
    (mysql bigint $($rest:tt)*) => { $crate::__found_column! { BigInt MySql $($rest)* } };
    (mysql bigint_unsigned $($rest:tt)*) => { $crate::__found_column! { BigIntUnsigned MySql $($rest)* } };
    (mysql mariadb_uuid $($rest:tt)*) => { $crate::__found_column! { MariaDbUuid MariaDb $($rest)* } };
    (mysql $column:ident $($rest:tt)*) => {
        ::core::compile_error! { "unknown MySQL column; columns: binary16, binary12, binary24, binary16_swapped, binary16_dotnet, char36, char32, char26, char22, char20, bigint, bigint_unsigned, and on MariaDB mariadb_uuid" }
    };

    (sqlite blob $($rest:tt)*) => { $crate::__found_column! { Blob Sqlite $($rest)* } };
    (sqlite text $($rest:tt)*) => { $crate::__found_column! { Text Sqlite $($rest)* } };
    (sqlite char32 $($rest:tt)*) => { $crate::__found_column! { Char32 Sqlite $($rest)* } };
    (sqlite char26 $($rest:tt)*) => { $crate::__found_column! { Char26 Sqlite $($rest)* } };
    (sqlite char22 $($rest:tt)*) => { $crate::__found_column! { Char22 Sqlite $($rest)* } };
    (sqlite char20 $($rest:tt)*) => { $crate::__found_column! { Char20 Sqlite $($rest)* } };
    (sqlite integer $($rest:tt)*) => { $crate::__found_column! { Integer Sqlite $($rest)* } };
    (sqlite $column:ident $($rest:tt)*) => {
        ::core::compile_error! { "unknown SQLite column; columns: blob, text, char32, char26, char22, char20, integer" }
    };

    (sql_server unique_identifier $($rest:tt)*) => { $crate::__found_column! { UniqueIdentifier SqlServer $($rest)* } };
    (sql_server unique_identifier_permuted $($rest:tt)*) => { $crate::__found_column! { UniqueIdentifierPermuted SqlServer $($rest)* } };
    (sql_server binary16 $($rest:tt)*) => { $crate::__found_column! { Binary16 SqlServer $($rest)* } };
    (sql_server binary12 $($rest:tt)*) => { $crate::__found_column! { Binary12 SqlServer $($rest)* } };
    (sql_server binary24 $($rest:tt)*) => { $crate::__found_column! { Binary24 SqlServer $($rest)* } };
    (sql_server bigint $($rest:tt)*) => { $crate::__found_column! { BigInt SqlServer $($rest)* } };
    (sql_server $column:ident $($rest:tt)*) => {
        ::core::compile_error! { "unknown SQL Server column; columns: unique_identifier, unique_identifier_permuted, binary16, binary12, binary24, bigint" }
    };

    (babelfish babelfish_unique_identifier $($rest:tt)*) => { $crate::__found_column! { BabelfishUniqueIdentifier Babelfish $($rest)* } };
    (babelfish binary16 $($rest:tt)*) => { $crate::__found_column! { Binary16 Babelfish $($rest)* } };
    (babelfish bigint $($rest:tt)*) => { $crate::__found_column! { BigInt Babelfish $($rest)* } };
    (babelfish $column:ident $($rest:tt)*) => {
        ::core::compile_error! { "unknown Babelfish column; columns: babelfish_unique_identifier, binary16, bigint" }
    };

    (oracle raw16 $($rest:tt)*) => { $crate::__found_column! { Raw16 Oracle $($rest)* } };
    (oracle raw16_dotnet $($rest:tt)*) => { $crate::__found_column! { Raw16DotNet Oracle $($rest)* } };
    (oracle raw12 $($rest:tt)*) => { $crate::__found_column! { Raw12 Oracle $($rest)* } };
    (oracle raw24 $($rest:tt)*) => { $crate::__found_column! { Raw24 Oracle $($rest)* } };
    (oracle number19 $($rest:tt)*) => { $crate::__found_column! { Number19 Oracle $($rest)* } };
    (oracle number20 $($rest:tt)*) => { $crate::__found_column! { Number20 Oracle $($rest)* } };
    (oracle $column:ident $($rest:tt)*) => {
        ::core::compile_error! { "unknown Oracle column; columns: raw16, raw16_dotnet, raw12, raw24, number19, number20" }
    };

    (any uuid $($rest:tt)*) => { $crate::__found_column! { Uuid Postgres $($rest)* } };
    (any bytea $($rest:tt)*) => { $crate::__found_column! { Bytea Postgres $($rest)* } };
    (any text $($rest:tt)*) => { $crate::__found_column! { Text Postgres $($rest)* } };
    (any char32 $($rest:tt)*) => { $crate::__found_column! { Char32 Postgres $($rest)* } };
    (any char26 $($rest:tt)*) => { $crate::__found_column! { Char26 Postgres $($rest)* } };
    (any char22 $($rest:tt)*) => { $crate::__found_column! { Char22 Postgres $($rest)* } };
    (any char20 $($rest:tt)*) => { $crate::__found_column! { Char20 Postgres $($rest)* } };
    (any bigint $($rest:tt)*) => { $crate::__found_column! { BigInt Postgres $($rest)* } };
    (any bigint_unsigned $($rest:tt)*) => { $crate::__found_column! { BigIntUnsigned MySql $($rest)* } };
    (any mariadb_uuid $($rest:tt)*) => { $crate::__found_column! { MariaDbUuid MariaDb $($rest)* } };
    (any $column:ident $($rest:tt)*) => {
        ::core::compile_error! { "unknown column; columns: uuid, bytea, text, char32, char26, char22, char20, bigint, on MySQL alone bigint_unsigned, and on MariaDB alone mariadb_uuid" }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __found_column {
    ($column:ident $dialect:ident (ordered $scheme:ty) { $($then:tt)* } { $($given:tt)* }) => {
        const _: () = $crate::storage::assert_keeps_order::<
            $scheme,
            $crate::storage::column::$column,
            $crate::storage::dialect::$dialect,
        >();
        $($then)*! { $($given)*, $column, $crate::storage::column::$column }
    };
    ($column:ident $dialect:ident (unordered $scheme:ty) { $($then:tt)* } { $($given:tt)* }) => {
        $($then)*! {
            $($given)*, $column, $crate::storage::column::Unordered<$crate::storage::column::$column>
        }
    };
}

/// Where only the adapter is named: the native forms, by the adapter's macros for the three engines, of the raw key,
/// whose name comes along where it is not `Uuid`.
#[doc(hidden)]
#[macro_export]
macro_rules! __native_columns {
    ({ $($engine:tt)* } $key:ty, $scheme:ty) => {
        $($engine)*::postgres! { $key, $scheme, uuid }
        $($engine)*::mysql! { $key, $scheme, binary16 }
        $($engine)*::sqlite! { $key, $scheme, blob }
    };
    ({ $($engine:tt)* } $key:ty, $scheme:ty, i64) => {
        $($engine)*::postgres! { $key, $scheme, bigint }
        $($engine)*::mysql! { $key, $scheme, bigint }
        $($engine)*::sqlite! { $key, $scheme, integer }
    };
    // PostgreSQL and SQLite have no integers without a sign.
    ({ $($engine:tt)* } $key:ty, $scheme:ty, u64) => {
        $($engine)*::mysql! { $key, $scheme, bigint_unsigned }
    };
    ({ $($engine:tt)* } $key:ty, $scheme:ty, ObjectId) => {
        $($engine)*::postgres! { $key, $scheme, bytea }
        $($engine)*::mysql! { $key, $scheme, binary12 }
        $($engine)*::sqlite! { $key, $scheme, blob }
    };
    ({ $($engine:tt)* } $key:ty, $scheme:ty, PushId) => {
        $($engine)*::postgres! { $key, $scheme, char20 }
        $($engine)*::mysql! { $key, $scheme, char20 }
        $($engine)*::sqlite! { $key, $scheme, char20 }
    };
    ({ $($engine:tt)* } $key:ty, $scheme:ty, Key192) => {
        $($engine)*::postgres! { $key, $scheme, bytea }
        $($engine)*::mysql! { $key, $scheme, binary24 }
        $($engine)*::sqlite! { $key, $scheme, blob }
    };
}

#[cfg(test)]
mod tests {
    use crate::storage::{Column, column};

    macro_rules! is_named {
        ($name:ident, $type:ident, $column:ty) => {
            assert_eq!(<column::$type as Column>::NAME, stringify!($name));
            assert_eq!(
                core::any::type_name::<$column>(),
                core::any::type_name::<column::Unordered<column::$type>>()
            );
        };
    }

    macro_rules! are_named {
        ($($engine:ident: $($name:ident)*;)*) => {$($(
            crate::__named_column! { $engine (), unordered($name) => { is_named } { $name } }
        )*)*};
    }

    #[test]
    fn a_name_leads_to_the_column_of_that_name() {
        are_named! {
            postgres: uuid bytea text char32 char26 char22 char20 bigint;
            mysql: binary16 binary12 binary24 binary16_swapped binary16_dotnet char36 char32 char26 char22 char20
                bigint bigint_unsigned mariadb_uuid;
            sqlite: blob text char32 char26 char22 char20 integer;
            sql_server: unique_identifier unique_identifier_permuted binary16 binary12 binary24 bigint;
            babelfish: babelfish_unique_identifier binary16 bigint;
            oracle: raw16 raw16_dotnet raw12 raw24 number19 number20;
            any: uuid bytea text char32 char26 char22 char20 bigint bigint_unsigned mariadb_uuid;
        }
    }
}
