//! Rows that are updated together: by one statement where the database takes that, and as one by one.

use ordid::{KeyType, uuid::Uuid};
use ordid_seaorm::{UnitOfWork, flushes_table};
use ordid_tests::trials::Outcome;
use sea_orm::{
    ActiveValue::{NotSet, Set},
    ConnectionTrait as _, DatabaseConnection, DbBackend, EntityTrait as _, QueryOrder as _, Schema,
};

use crate::{Databases, create, is_mysql};

#[derive(KeyType)]
#[ordid(sea_orm(char22))]
pub struct MouseId(Uuid);

/// Columns of many types, with and without NULL, and one that PostgreSQL has to be told the type of.
mod mouse {
    use ordid::OrderedKey;
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq, EnumIter, DeriveActiveEnum)]
    #[sea_orm(rs_type = "String", db_type = "Enum", enum_name = "mood")]
    pub enum Mood {
        #[sea_orm(string_value = "glad")]
        Glad,
        #[sea_orm(string_value = "sad")]
        Sad,
    }

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel, OrderedKey)]
    #[sea_orm(table_name = "mouse")]
    pub struct Model {
        pub mood: Option<Mood>,
        pub weight: Option<f64>,
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: super::MouseId,
        #[sea_orm(column_name = "order")]
        pub position: i64,
        pub picture: Option<Vec<u8>>,
        pub is_awake: bool,
        #[sea_orm(column_type = "Text", nullable)]
        pub name: Option<String>,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    ordid_seaorm::assign_before_save!(ActiveModel);
}

use mouse::Mood;

pub fn add(to: &mut Databases<'_>) {
    all!(to.on_all, "updates::";
        many_rows_are_updated_at_once,
        large_rows_without_some_values_are_updated_among_many,
        each_row_sets_what_was_changed_in_it,
        a_row_that_is_not_there_is_named_among_many,
    );
}

async fn mice(db: &DatabaseConnection, count: i64) -> Outcome<Vec<mouse::Model>> {
    let schema = Schema::new(db.get_database_backend());
    for mood in schema.create_enum_from_entity(mouse::Entity) {
        db.execute(&mood).await?;
    }
    create(db, mouse::Entity).await?;
    db.execute(&flushes_table()).await?;
    let mice: Vec<_> = (0..count)
        .map(|position| mouse::Model {
            id: MouseId::generate(),
            mood: (position % 3 == 0).then_some(Mood::Sad),
            weight: None,
            position,
            picture: None,
            is_awake: false,
            name: Some(position.to_string()),
        })
        .collect();
    ordid_seaorm::insert_all(db, mice.clone()).await?;
    Ok(mice)
}

async fn stored(db: &DatabaseConnection) -> Outcome<Vec<mouse::Model>> {
    let stored = mouse::Entity::find().order_by_asc(mouse::Column::Id);
    Ok(stored.all(db).await?)
}

async fn many_rows_are_updated_at_once(db: DatabaseConnection) -> Outcome {
    let mut mice = mice(&db, 1_500).await?;
    let mut work = UnitOfWork::new();
    for mouse in &mut mice {
        // From and to NULL, in the first row and in others.
        let number = mouse.position;
        mouse.mood = (number % 2 == 0).then_some(Mood::Glad);
        mouse.weight = (number % 5 != 0).then_some(20.5);
        mouse.position = number + (1 << 40);
        mouse.picture = (number % 7 == 3).then(|| vec![0, 159, 146, 150]);
        mouse.is_awake = true;
        mouse.name = (number % 11 != 0).then(|| format!("{number}'s \"name\" \\ ?$1"));
        work.update(mouse.clone());
    }
    let flushed = work.flush(&db).await?;
    assert_eq!(flushed.updated(), 1_500);
    // Two for the rows. Others make a temporary table, take the rows from there, and remove it; MySQL may have an old one.
    let statements = match db.get_database_backend() {
        DbBackend::Sqlite => 2,
        DbBackend::Postgres => 5,
        _ => 6,
    };
    assert_eq!(flushed.tables[0].statements, statements);
    assert_eq!(stored(&db).await?, mice);
    // All as they are: MySQL and MariaDB count them too.
    for mouse in &mice {
        work.update(mouse.clone());
    }
    assert_eq!(work.flush(&db).await?.updated(), 1_500);
    assert_eq!(stored(&db).await?, mice);
    Ok(())
}

/// Rows of which some leave a column as it is, beyond the values that a statement takes.
async fn large_rows_without_some_values_are_updated_among_many(db: DatabaseConnection) -> Outcome {
    let mut mice = mice(&db, 1_500).await?;
    let mut work = UnitOfWork::new();
    for (number, mouse) in mice.iter_mut().enumerate() {
        let picture = mouse.picture.clone();
        mouse.picture = Some(vec![7; 20]);
        mouse.is_awake = true;
        mouse.name = Some("large".repeat(400));
        let leaves_picture = number % 900 == 899;
        work.update(mouse::ActiveModel {
            id: Set(mouse.id),
            mood: Set(mouse.mood.clone()),
            weight: Set(mouse.weight),
            position: Set(mouse.position),
            picture: match leaves_picture {
                true => NotSet,
                false => Set(mouse.picture.clone()),
            },
            is_awake: Set(true),
            name: Set(mouse.name.clone()),
        });
        if leaves_picture {
            mouse.picture = picture;
        }
    }
    let flushed = work.flush(&db).await?;
    assert_eq!((flushed.updated(), flushed.retries), (1_500, 0));
    assert_eq!(stored(&db).await?, mice);
    Ok(())
}

async fn each_row_sets_what_was_changed_in_it(db: DatabaseConnection) -> Outcome {
    let mut mice = mice(&db, 40).await?;
    let mut work = UnitOfWork::new();
    let unchanged = |id| mouse::ActiveModel {
        id: Set(id),
        mood: NotSet,
        weight: NotSet,
        position: NotSet,
        picture: NotSet,
        is_awake: NotSet,
        name: NotSet,
    };
    for (number, mouse) in mice.iter_mut().enumerate() {
        let mut change = unchanged(mouse.id);
        // Ten of each kind, one after the other.
        match number / 10 {
            0 => {
                mouse.mood = Some(Mood::Glad);
                change.mood = Set(mouse.mood.clone());
            }
            1 => {
                mouse.name = None;
                change.name = Set(None);
            }
            // Nothing: they have to be there all the same.
            2 => {}
            _ => {
                mouse.weight = Some(1.25);
                mouse.is_awake = true;
                change.weight = Set(mouse.weight);
                change.is_awake = Set(true);
            }
        }
        work.update(change);
    }
    let planned = work.plan(db.get_database_backend())?;
    let flushed = work.flush(&db).await?;
    let statements = if is_mysql(&db) { 40 } else { 4 };
    assert_eq!(
        (flushed.updated(), flushed.tables[0].statements),
        (40, statements)
    );
    assert_eq!(planned.tables[0].statements.len(), statements);
    assert_eq!(stored(&db).await?, mice);
    Ok(())
}

async fn a_row_that_is_not_there_is_named_among_many(db: DatabaseConnection) -> Outcome {
    let mice = mice(&db, 30).await?;
    let mut work = UnitOfWork::new();
    let mut gone = mice[3].clone();
    gone.id = MouseId::generate();
    for mouse in mice.iter().chain([&gone]) {
        work.update(mouse::Model {
            is_awake: true,
            ..mouse.clone()
        });
    }
    let error = work.flush(&db).await.unwrap_err();
    assert!(error.is_missing_row(), "{error}");
    assert_eq!(error.key(), Some(&*gone.id.to_string()));
    assert_eq!(stored(&db).await?, mice);
    assert_eq!(work.len(), 31);
    // A value that the column refuses is found as well. SQLite's take anything.
    if db.get_database_backend() == DbBackend::Postgres {
        work.clear();
        for (number, mouse) in mice.iter().enumerate() {
            work.update(mouse::Model {
                // PostgreSQL's text has no such character.
                name: Some(if number == 17 { "\0" } else { "x" }.to_owned()),
                ..mouse.clone()
            });
        }
        let error = work.flush(&db).await.unwrap_err();
        assert_eq!(error.key(), Some(&*mice[17].id.to_string()), "{error}");
        assert_eq!(stored(&db).await?, mice);
    }
    Ok(())
}
