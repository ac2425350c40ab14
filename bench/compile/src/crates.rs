//! The crates that are built.

use std::{fmt::Write as _, fs, path::Path};

use clap::ValueEnum;

use crate::Result;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Library {
    Diesel,
    SeaOrm,
}

impl Library {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Diesel => "Diesel",
            Self::SeaOrm => "SeaORM",
        }
    }

    /// As an application names it that uses PostgreSQL.
    fn dependency(self) -> &'static str {
        match self {
            Self::Diesel => {
                "diesel = { version = \"2.3.14\", default-features = false, features = \
                 [\"32-column-tables\", \"postgres\", \"uuid\"] }\n\
                 uuid = { version = \"1\", features = [\"v4\"] }"
            }
            Self::SeaOrm => {
                "sea-orm = { version = \"2.0.4\", default-features = false, features = \
                 [\"macros\", \"runtime-tokio\", \"sqlx-postgres\", \"with-uuid\"] }"
            }
        }
    }

    fn adapter(self) -> &'static str {
        match self {
            Self::Diesel => "ordid-diesel",
            Self::SeaOrm => "ordid-seaorm",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variant {
    /// The keys are plain `Uuid`s.
    Alone,
    /// Each entity has a key type and is one of a unit of work.
    WithOrdid,
}

impl Variant {
    pub(crate) const ALL: [Self; 2] = [Self::Alone, Self::WithOrdid];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::WithOrdid => "with-ordid",
        }
    }
}

/// Writes a crate into a folder of its own.
pub(crate) fn write(
    folder: &Path,
    library: Library,
    variant: Variant,
    entities: u32,
) -> Result<()> {
    let project = folder.join(variant.name());
    fs::create_dir_all(project.join("src"))?;
    fs::write(project.join("Cargo.toml"), manifest(library, variant))?;
    // The versions of the bench itself.
    let bench = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.lock");
    fs::copy(bench, project.join("Cargo.lock"))?;
    let mut source = "//! Entities.\n\n#![allow(missing_docs)]\n".to_owned();
    for number in 0..entities {
        match library {
            Library::Diesel => diesel(&mut source, number, variant)?,
            Library::SeaOrm => sea_orm(&mut source, number, variant)?,
        }
    }
    if variant == Variant::WithOrdid {
        // Generic code costs where it is used: every entity is flushed.
        work(&mut source, library, entities)?;
    }
    fs::write(project.join("src/lib.rs"), source)?;
    Ok(())
}

fn manifest(library: Library, variant: Variant) -> String {
    let dependency = library.dependency();
    let own = match variant {
        Variant::Alone => String::new(),
        Variant::WithOrdid => {
            let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
            let adapter = library.adapter();
            format!(
                "ordid = {{ path = {:?} }}\n{adapter} = {{ path = {:?}, features = \
                 [\"postgres\"] }}\n",
                root.join("ordid"),
                root.join(adapter)
            )
        }
    };
    format!(
        "[package]\nname = \"entities\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
         [dependencies]\n{dependency}\n{own}\n[workspace]\n"
    )
}

fn diesel(source: &mut String, number: u32, variant: Variant) -> Result<()> {
    let parent = number.saturating_sub(1);
    let (key, derive, attributes, own, uses) = match variant {
        Variant::Alone => ("uuid::Uuid".to_owned(), "", "", String::new(), ""),
        Variant::WithOrdid => (
            format!("Id{number}"),
            "OrderedKey, ",
            "#[ordid(diesel)]\n        ",
            format!(
                "#[derive(KeyType)]\n    #[ordid(scheme = uuid_v7, diesel)]\n    pub struct \
                 Id{number}(ordid::uuid::Uuid);\n\n    "
            ),
            "use ordid::{KeyType, OrderedKey};\n    ",
        ),
    };
    let (parent_key, is_parent) = match variant {
        Variant::Alone => ("uuid::Uuid".to_owned(), ""),
        Variant::WithOrdid => (
            format!("super::entity{parent}::Id{parent}"),
            "#[ordid(parent)]\n        ",
        ),
    };
    write!(
        source,
        "
pub mod entity{number} {{
    use diesel::prelude::*;
    {uses}
    diesel::table! {{
        table{number} (id) {{
            id -> Uuid,
            parent_id -> Nullable<Uuid>,
            name -> Text,
            note -> Nullable<Text>,
            amount -> BigInt,
            count -> Integer,
            is_open -> Bool,
            rate -> Double,
        }}
    }}

    {own}#[derive({derive}Queryable, Selectable, Insertable, Identifiable, AsChangeset, Debug, Clone)]
    #[diesel(table_name = table{number}, treat_none_as_default_value = false)]
    {attributes}pub struct Entity{number} {{
        pub id: {key},
        {is_parent}pub parent_id: Option<{parent_key}>,
        pub name: String,
        pub note: Option<String>,
        pub amount: i64,
        pub count: i32,
        pub is_open: bool,
        pub rate: f64,
    }}
}}
"
    )?;
    Ok(())
}

fn sea_orm(source: &mut String, number: u32, variant: Variant) -> Result<()> {
    let parent = number.saturating_sub(1);
    let (key, derive, own, uses) = match variant {
        Variant::Alone => ("Uuid".to_owned(), "", String::new(), ""),
        Variant::WithOrdid => (
            format!("Id{number}"),
            ", OrderedKey",
            format!(
                "#[derive(KeyType)]\n    #[ordid(scheme = uuid_v7, sea_orm)]\n    pub struct \
                 Id{number}(ordid::uuid::Uuid);\n\n    "
            ),
            "use ordid::{KeyType, OrderedKey};\n    ",
        ),
    };
    let (parent_key, is_parent, behavior) = match variant {
        Variant::Alone => (
            "Uuid".to_owned(),
            "",
            "impl ActiveModelBehavior for ActiveModel {}",
        ),
        Variant::WithOrdid => (
            format!("super::entity{parent}::Id{parent}"),
            "#[ordid(parent)]\n        ",
            "ordid_seaorm::assign_before_save!(ActiveModel);",
        ),
    };
    write!(
        source,
        "
pub mod entity{number} {{
    {uses}use sea_orm::entity::prelude::*;

    {own}#[derive(Clone, Debug, PartialEq, DeriveEntityModel{derive})]
    #[sea_orm(table_name = \"table{number}\")]
    pub struct Model {{
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: {key},
        {is_parent}pub parent_id: Option<{parent_key}>,
        pub name: String,
        pub note: Option<String>,
        pub amount: i64,
        pub count: i32,
        pub is_open: bool,
        pub rate: f64,
    }}

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {{}}

    {behavior}
}}
"
    )?;
    Ok(())
}

/// A function that adds one of each and flushes them.
fn work(source: &mut String, library: Library, entities: u32) -> Result<()> {
    let (parameters, connection, error, flush) = match library {
        Library::Diesel => (
            "",
            "&mut diesel::PgConnection",
            "ordid_diesel::Error",
            "work.flush(connection)?;",
        ),
        Library::SeaOrm => (
            "async ",
            "&sea_orm::DatabaseConnection",
            "ordid_seaorm::Error",
            "work.flush(connection).await?;",
        ),
    };
    let (path, entity) = match library {
        Library::Diesel => ("ordid_diesel", "Entity"),
        Library::SeaOrm => ("ordid_seaorm", "Model"),
    };
    let names = (0..entities).map(|number| match library {
        Library::Diesel => (number, format!("{entity}{number}")),
        Library::SeaOrm => (number, entity.to_owned()),
    });
    let names: Vec<_> = names.collect();
    writeln!(source, "\npub struct All {{")?;
    for (number, name) in &names {
        writeln!(source, "    pub entity{number}: entity{number}::{name},")?;
    }
    writeln!(
        source,
        "}}\n\npub {parameters}fn insert(all: All, connection: {connection}) -> Result<(), {error}> {{\n    \
         let mut work = {path}::UnitOfWork::new();"
    )?;
    for (number, _) in &names {
        writeln!(source, "    work.add(all.entity{number});")?;
    }
    writeln!(source, "    {flush}\n    Ok(())\n}}")?;
    Ok(())
}
