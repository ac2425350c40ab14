//! As `derived_own_names.rs` of `ordid-tests`, for the other adapters. Diesel's `table!` makes a unit struct of each column,
//! and `use schema::settings::dsl::*` brings them into scope. Derived code has parameters of the same names.

#![allow(
    dead_code,
    unused_imports,
    non_camel_case_types,
    non_upper_case_globals
)]

// Not `value`, which is a parameter in the macro of async-graphql, too.
diesel::table! {
    settings (key) {
        key -> Binary,
        binder -> Text,
        buffer -> Text,
        index -> Text,
        insert -> Text,
        number -> BigInt,
        out -> Text,
        parsed -> Text,
        raw -> Text,
        row -> Text,
        ty -> Text,
    }
}

mod names {
    pub struct Option;
    pub struct Result;
    pub struct String;
    pub struct Vec;
    pub struct From;
    pub struct Value;
    pub mod core {}
    pub mod diesel {}
    pub mod mysql_async {}
    pub mod ordid {}
    pub mod ordid_diesel {}
    pub mod ordid_seaorm {}
    pub mod rusqlite {}
    pub mod sea_orm {}
    pub mod sqlx {}
    pub mod std {}
    pub mod tokio_postgres {}
}

mod keys {
    use super::{names::*, settings::dsl::*};

    #[derive(::ordid::KeyType)]
    #[ordid(diesel, mysql_async, rusqlite, sea_orm, sqlx, tokio_postgres)]
    pub struct SettingId(::ordid::uuid::Uuid);
}

/// Of another table, whose name is one of the columns'.
mod entities {
    use super::{
        keys::SettingId,
        settings::{dsl::*, table},
    };

    diesel::table! {
        others (id) {
            id -> Binary,
            number -> BigInt,
        }
    }

    #[derive(::ordid::OrderedKey)]
    #[ordid(diesel)]
    #[diesel(table_name = others)]
    pub struct Other {
        pub id: SettingId,
        pub number: i64,
    }

    // Not all columns are in scope here: SeaORM's own derives have variables `key` and `row`.
    pub mod model {
        use super::{SettingId, binder, index, number, out};
        use sea_orm::entity::prelude::*;

        #[derive(Clone, Debug, PartialEq, Eq, ::ordid::OrderedKey, DeriveEntityModel)]
        #[sea_orm(table_name = "others")]
        pub struct Model {
            #[sea_orm(primary_key, auto_increment = false)]
            pub id: SettingId,
            #[ordid(version)]
            pub version: i64,
        }

        #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
        pub enum Relation {}

        ::ordid_seaorm::assign_before_save!(ActiveModel);
    }

    pub mod line {
        use super::{SettingId, binder, index, number, out};
        use sea_orm::entity::prelude::*;

        #[derive(Clone, Debug, PartialEq, Eq, ::ordid::OrderedKey, DeriveEntityModel)]
        #[sea_orm(table_name = "lines")]
        pub struct Model {
            #[sea_orm(primary_key, auto_increment = false)]
            pub setting: SettingId,
            #[sea_orm(primary_key, auto_increment = false)]
            pub place: i32,
        }

        #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
        pub enum Relation {}

        impl ActiveModelBehavior for ActiveModel {}
    }
}

/// Nothing is in scope, not even the prelude.
#[no_implicit_prelude]
mod nothing {
    #[derive(::ordid::KeyType)]
    #[ordid(diesel, mysql_async, rusqlite, sea_orm, sqlx, tokio_postgres)]
    pub struct SettingId(::ordid::uuid::Uuid);
}

#[test]
fn it_compiles_and_runs() {
    use ordid::{KeyType as _, OrderedKey as _};
    use sea_orm::ActiveValue::{NotSet, Set};

    let id = keys::SettingId::generate();
    let other = entities::Other { id, number: 1 };
    assert_eq!(other.key(), Some(id));
    let mut model = entities::model::ActiveModel {
        id: NotSet,
        version: Set(1),
    };
    assert_eq!(Set(model.ensure_key()), model.id);
    let line = entities::line::ActiveModel {
        setting: Set(id),
        place: Set(7),
    };
    assert_eq!(line.key().map(|key| key.0), Some((id, 7)));
    assert!(nothing::SettingId::generate() < nothing::SettingId::generate());
}
