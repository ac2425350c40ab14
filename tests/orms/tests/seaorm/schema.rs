//! What tables are made of: by `create_table`, and by SeaORM itself.

use libtest_mimic::Trial;
use ordid::KeyType;
use ordid_tests::{servers::Servers, trials::Outcome};
use sea_orm::{
    ActiveValue::Set, ConnectionTrait as _, DatabaseConnection, DbBackend, EntityTrait as _,
    QueryOrder as _, Schema, Statement,
};

use crate::{
    create,
    models::{BookId, author, book, person, team},
    on_all,
};

/// An entity with a text key.
macro_rules! tag {
    ($(#[$doc:meta])* $module:ident $(, $extra:literal)?) => {
        $(#[$doc])*
        pub mod $module {
            use ordid::OrderedKey;
            use sea_orm::entity::prelude::*;

            use super::BookId;

            #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel, OrderedKey)]
            #[sea_orm(table_name = "tag")]
            pub struct Model {
                #[sea_orm(primary_key, auto_increment = false $(, extra = $extra)?)]
                pub id: BookId,
                pub position: i32,
            }

            #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
            pub enum Relation {}

            impl ActiveModelBehavior for ActiveModel {}
        }
    };
}

tag!(tag);
tag!(
    /// PostgreSQL is told of it.
    tag_on_postgres,
    "COLLATE \"C\""
);

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    on_all(
        servers,
        trials,
        "schema::key_columns_compare_as_bytes",
        columns,
    );
    on_all(
        servers,
        trials,
        "schema::seaorm_s_own_tables_keep_order",
        own_tables,
    );
}

/// Returns type and collation of a column as the database tells them.
async fn column(
    db: &DatabaseConnection,
    table: &str,
    column: &str,
) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
    let sql = match db.get_database_backend() {
        DbBackend::Postgres => format!(
            "SELECT data_type || ' ' || coalesce(collation_name, '') AS it \
             FROM information_schema.columns WHERE table_name = '{table}' AND column_name = '{column}'"
        ),
        DbBackend::MySql => format!(
            "SELECT concat(column_type, ' ', coalesce(collation_name, '')) AS it \
             FROM information_schema.columns WHERE table_schema = database() \
             AND table_name = '{table}' AND column_name = '{column}'"
        ),
        _ => {
            format!("SELECT type AS it FROM pragma_table_info('{table}') WHERE name = '{column}'")
        }
    };
    let query = Statement::from_string(db.get_database_backend(), sql);
    let row = db.query_one_raw(query).await?.ok_or("no such column")?;
    // SQLite writes the types that it knows in capitals.
    Ok(row
        .try_get::<String>("", "it")?
        .trim()
        .replace("INTEGER", "integer"))
}

async fn columns(db: DatabaseConnection) -> Outcome {
    create(&db, author::Entity).await?;
    create(&db, book::Entity).await?;
    create(&db, team::Entity).await?;
    create(&db, person::Entity).await?;
    // The foreign key as the key that it refers to.
    let [uuid, text, number, bytes] = match db.get_database_backend() {
        DbBackend::Postgres => ["uuid", "text C", "bigint", "bytea"],
        DbBackend::MySql => [
            "binary(16)",
            "char(22) ascii_bin",
            "bigint(20)",
            "binary(16)",
        ],
        _ => ["uuid_text", "char(22)", "integer", "blob(16)"],
    };
    assert_eq!(column(&db, "author", "id").await?, uuid);
    assert_eq!(column(&db, "book", "author_id").await?, uuid);
    assert!(column(&db, "book", "id").await?.starts_with(text));
    assert_eq!(column(&db, "person", "team").await?, number);
    assert_eq!(column(&db, "person", "id").await?, bytes);
    assert_eq!(column(&db, "team", "lead").await?, bytes);
    Ok(())
}

/// Text that another collation would take for the same, or sort otherwise: in a table that SeaORM made,
/// with PostgreSQL told in the model.
async fn own_tables(db: DatabaseConnection) -> Outcome {
    let mut ids: Vec<_> = (0..200).map(|_| BookId::generate()).collect();
    // And some that differ in the case of a letter alone.
    let upper = ids[0].to_raw().as_u128();
    for bit in [0_u32, 6, 12, 18, 24] {
        for step in [1_u128, 26, 32] {
            let other = upper ^ (step << bit);
            ids.extend(BookId::try_from(ordid::uuid::Uuid::from_u128(other)));
        }
    }
    ids.sort_unstable();
    ids.dedup();
    let schema = Schema::new(db.get_database_backend());
    db.execute(&match db.get_database_backend() {
        DbBackend::Postgres => schema.create_table_from_entity(tag_on_postgres::Entity),
        _ => schema.create_table_from_entity(tag::Entity),
    })
    .await?;
    // Not in their order.
    let mut shuffled: Vec<_> = ids.iter().zip(0..).collect();
    shuffled.sort_by_key(|(_, position)| position % 7);
    let models = shuffled.into_iter().map(|(id, position)| tag::ActiveModel {
        id: Set(*id),
        position: Set(position),
    });
    tag::Entity::insert_many(models)
        .exec_without_returning(&db)
        .await?;
    let sorted = tag::Entity::find()
        .order_by_asc(tag::Column::Id)
        .all(&db)
        .await?;
    assert_eq!(sorted.iter().map(|it| it.id).collect::<Vec<_>>(), ids);
    Ok(())
}
