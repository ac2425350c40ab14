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
    /// The keys are plain `Uuid`s, and rows go in by the library's own inserts of many.
    Alone,
    /// Each entity has a key type, and rows go in by a unit of work.
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

/// Writes a crate into a folder of its own. Generic code costs where it is used: every entity is read by its
/// key, and inserted.
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
    insert(&mut source, library, variant, entities)?;
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

    pub fn find(id: {key}, connection: &mut PgConnection) -> QueryResult<Option<Entity{number}>> {{
        let found = table{number}::table.find(id).select(Entity{number}::as_select());
        found.first(connection).optional()
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

    pub async fn find(id: {key}, connection: &sea_orm::DatabaseConnection) -> Result<Option<Model>, DbErr> {{
        Entity::find_by_id(id).one(connection).await
    }}
}}
"
    )?;
    Ok(())
}

/// A function that inserts rows of all tables, in one transaction.
fn insert(source: &mut String, library: Library, variant: Variant, entities: u32) -> Result<()> {
    let entity = |number: u32| match library {
        Library::Diesel => format!("entity{number}::Entity{number}"),
        Library::SeaOrm => format!("entity{number}::Model"),
    };
    let (begin, each, end) = match (library, variant) {
        (Library::Diesel, Variant::Alone) => (
            "pub fn insert(all: &All, connection: &mut diesel::PgConnection) -> diesel::QueryResult<()> {
    use diesel::prelude::*;
    connection.transaction(|connection| {",
            "diesel::insert_into(entity{}::table{}::table).values(&all.entity{}).execute(connection)?;",
            "Ok(())
    })
}",
        ),
        (Library::SeaOrm, Variant::Alone) => (
            "pub async fn insert(all: All, connection: &sea_orm::DatabaseConnection) -> Result<(), sea_orm::DbErr> {
    use sea_orm::{EntityTrait, IntoActiveModel, TransactionTrait};
    let transaction = connection.begin().await?;",
            "let rows = all.entity{}.into_iter().map(IntoActiveModel::into_active_model);
    entity{}::Entity::insert_many(rows).exec_without_returning(&transaction).await?;",
            "transaction.commit().await
}",
        ),
        (Library::Diesel, Variant::WithOrdid) => (
            "pub fn insert(all: All, connection: &mut diesel::PgConnection) -> Result<(), ordid_diesel::Error> {
    let mut work = ordid_diesel::UnitOfWork::new();",
            ADD,
            "work.flush(connection)?;
    Ok(())
}",
        ),
        (Library::SeaOrm, Variant::WithOrdid) => (
            "pub async fn insert(all: All, connection: &sea_orm::DatabaseConnection) -> Result<(), ordid_seaorm::Error> {
    let mut work = ordid_seaorm::UnitOfWork::new();",
            ADD,
            "work.flush(connection).await?;
    Ok(())
}",
        ),
    };
    writeln!(source, "\npub struct All {{")?;
    for number in 0..entities {
        writeln!(source, "    pub entity{number}: Vec<{}>,", entity(number))?;
    }
    writeln!(source, "}}\n\n{begin}")?;
    for number in 0..entities {
        writeln!(source, "    {}", each.replace("{}", &number.to_string()))?;
    }
    writeln!(source, "    {end}")?;
    Ok(())
}

/// Adds the rows of an entity to a unit of work.
const ADD: &str = "for row in all.entity{} {
        work.add(row);
    }";
