//! What tables are made of: by `create_table`, and by SeaORM itself.

use ordid::{KeyType, uuid::Uuid};
use ordid_seaorm::UnitOfWork;
use ordid_tests::trials::Outcome;
use sea_orm::{
    ConnectionTrait as _, DatabaseConnection, DbBackend, EntityTrait as _, QueryOrder as _, Schema,
    Statement,
};

use crate::{
    Databases, create,
    models::{BookId, author, book, person, team},
};

#[derive(KeyType)]
#[ordid(sea_orm(text))]
pub struct PageId(Uuid);

/// By the end of its name SeaORM knows that the database does not make it.
#[derive(KeyType)]
#[ordid(sea_orm(char26), scheme = ulid)]
pub struct NoteUuid(Uuid);

/// A table as it was.
pub mod page_before {
    use ordid::OrderedKey;
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel, OrderedKey)]
    #[sea_orm(table_name = "page")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: super::PageId,
        pub position: i32,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// And as it becomes: with a column more, that refers to a text key.
pub mod page {
    use ordid::OrderedKey;
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel, OrderedKey)]
    #[sea_orm(table_name = "page")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: super::PageId,
        pub position: i32,
        #[ordid(parent)]
        pub book: Option<super::BookId>,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

/// A child of a text key, with a text key.
pub mod note {
    use ordid::OrderedKey;
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel, OrderedKey)]
    #[sea_orm(table_name = "note")]
    pub struct Model {
        #[sea_orm(primary_key)]
        pub id: super::NoteUuid,
        pub position: i32,
        #[ordid(parent)]
        pub page_id: super::PageId,
        #[sea_orm(belongs_to, from = "page_id", to = "id")]
        pub page: BelongsTo<super::page::Entity>,
    }

    ordid_seaorm::assign_before_save!(ActiveModel);
}

pub fn add(to: &mut Databases<'_>) {
    all!(to.on_all, "schema::";
        key_columns_compare_as_bytes,
        seaorm_s_own_tables_keep_order,
        sync_makes_the_same_columns_and_leaves_them,
    );
}

/// Returns type and collation of a column as the database tells them.
async fn column(db: &DatabaseConnection, table: &str, column: &str) -> Outcome<String> {
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

/// What the columns of these tests are.
async fn check_columns(db: &DatabaseConnection) -> Outcome {
    // The foreign key as the key that it refers to.
    let [uuid, number, bytes] = match db.get_database_backend() {
        DbBackend::Postgres => ["uuid", "bigint", "bytea"],
        DbBackend::MySql => ["binary(16)", "bigint(20)", "binary(16)"],
        _ => ["uuid_text", "integer", "blob(16)"],
    };
    let text = |length: u8| match db.get_database_backend() {
        DbBackend::Postgres => "text C".to_owned(),
        DbBackend::MySql => format!("char({length}) ascii_bin"),
        _ => format!("char({length})"),
    };
    for (table, name, expected) in [
        ("author", "id", uuid.to_owned()),
        ("author", "mentor", uuid.to_owned()),
        ("book", "author_id", uuid.to_owned()),
        ("book", "id", text(22)),
        ("person", "team", number.to_owned()),
        ("person", "id", bytes.to_owned()),
        ("team", "lead", bytes.to_owned()),
        ("page", "id", text(36)),
        ("page", "book", text(22)),
        ("note", "id", text(26)),
        ("note", "page_id", text(36)),
    ] {
        assert_eq!(column(db, table, name).await?, expected, "{table}.{name}");
    }
    Ok(())
}

async fn key_columns_compare_as_bytes(db: DatabaseConnection) -> Outcome {
    create(&db, author::Entity).await?;
    create(&db, book::Entity).await?;
    create(&db, team::Entity).await?;
    create(&db, person::Entity).await?;
    create(&db, page::Entity).await?;
    create(&db, note::Entity).await?;
    check_columns(&db).await
}

/// Keys that another collation would take for the same, or sort otherwise, rising.
fn hard_to_tell_apart<K: KeyType<Raw = Uuid, Scheme: ordid::StaticScheme>>() -> Vec<K> {
    let mut ids: Vec<K> = (0..200).map(|_| K::generate()).collect();
    // And some that differ in the case of a letter alone.
    let upper = ids[0].to_raw().as_u128();
    for bit in [0_u32, 6, 12, 18, 24] {
        for step in [1_u128, 26, 32] {
            let other = upper ^ (step << bit);
            ids.extend(K::from_raw(Uuid::from_u128(other)));
        }
    }
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// Writes rows of two tables with text keys, not in their order, and reads them in it.
async fn check_order(db: &DatabaseConnection) -> Outcome {
    let ids: Vec<PageId> = hard_to_tell_apart();
    let notes: Vec<NoteUuid> = hard_to_tell_apart();
    let mut shuffled: Vec<_> = ids.iter().zip(&notes).zip(0..).collect();
    shuffled.sort_by_key(|(_, position)| position % 7);
    let mut work = UnitOfWork::new();
    for ((page_id, id), position) in shuffled {
        work.add(note::Model {
            id: *id,
            position,
            page_id: *page_id,
        });
        work.add(page::Model {
            id: *page_id,
            position,
            book: None,
        });
    }
    work.flush(db).await?;
    let sorted = page::Entity::find().order_by_asc(page::Column::Id);
    let sorted: Vec<_> = sorted.all(db).await?.iter().map(|it| it.id).collect();
    assert_eq!(sorted, ids);
    let sorted = note::Entity::find().order_by_asc(note::Column::Id);
    let sorted: Vec<_> = sorted.all(db).await?.iter().map(|it| it.id).collect();
    assert_eq!(sorted, notes);
    // In the foreign key's column, too.
    let by_page = note::Entity::find().order_by_asc(note::Column::PageId);
    let by_page: Vec<_> = by_page.all(db).await?.iter().map(|it| it.page_id).collect();
    assert_eq!(by_page, ids);
    Ok(())
}

async fn seaorm_s_own_tables_keep_order(db: DatabaseConnection) -> Outcome {
    let schema = Schema::new(db.get_database_backend());
    db.execute(&schema.create_table_from_entity(page::Entity))
        .await?;
    db.execute(&schema.create_table_from_entity(note::Entity))
        .await?;
    check_order(&db).await
}

/// SeaORM's `schema-sync`: the tables of all kinds of keys, then a column more, then nothing.
async fn sync_makes_the_same_columns_and_leaves_them(db: DatabaseConnection) -> Outcome {
    let before = db.get_schema_builder().register(page_before::Entity);
    before.sync(&db).await?;
    for _ in 0..3 {
        // Children first: it sorts them.
        let all = db
            .get_schema_builder()
            .register(note::Entity)
            .register(page::Entity)
            .register(book::Entity)
            .register(author::Entity)
            .register(person::Entity)
            .register(team::Entity);
        all.sync(&db).await?;
        check_columns(&db).await?;
    }
    check_order(&db).await
}
