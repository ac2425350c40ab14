//! SeaORM's own ways to write: `insert`, `save`, `insert_many`, and nested models.

use ordid::{KeyType as _, OrderedKey as _};
use ordid_tests::trials::Outcome;
use sea_orm::{
    ActiveModelTrait as _,
    ActiveValue::{NotSet, Set},
    ConnectionTrait as _, DatabaseConnection, EntityTrait as _, ModelTrait as _,
    PaginatorTrait as _, QueryOrder as _,
};

use crate::{
    Databases, create,
    models::{AuthorId, album, author, book, song, team},
    schema::page,
};

pub fn add(to: &mut Databases<'_>) {
    all!(to.on_all, "saves::";
        a_new_model_is_saved_by_the_hook,
        a_key_that_is_set_is_an_update_to_save,
        insert_many_takes_assigned_keys,
        insert_many_tells_the_keys_that_it_was_given,
        a_model_without_the_hook_is_refused,
        nested_models_are_saved_by_the_hook,
    );
}

fn named(name: &str) -> author::ActiveModel {
    author::ActiveModel {
        name: Set(name.to_owned()),
        position: Set(1),
        mentor: Set(None),
        ..<author::ActiveModel as sea_orm::ActiveModelTrait>::default()
    }
}

async fn a_new_model_is_saved_by_the_hook(db: DatabaseConnection) -> Outcome {
    create(&db, author::Entity).await?;
    let before = AuthorId::generate();
    let saved = named("Ada").save(&db).await?;
    let key = saved.key().ok_or("no key")?;
    assert!(key > before);
    // Saved again it is an update, with the same key.
    let mut again = saved;
    again.name = Set("Ada Lovelace".to_owned());
    let again = again.save(&db).await?;
    assert_eq!(again.key(), Some(key));
    let all = author::Entity::find().all(&db).await?;
    assert_eq!(
        (all.len(), all[0].id, &*all[0].name),
        (1, key, "Ada Lovelace")
    );
    Ok(())
}

/// Which is why a key is assigned no earlier than in `before_save`.
async fn a_key_that_is_set_is_an_update_to_save(db: DatabaseConnection) -> Outcome {
    create(&db, author::Entity).await?;
    let mut early = named("Ada");
    let key = early.ensure_key();
    let error = early.clone().save(&db).await.unwrap_err();
    assert_eq!(error, sea_orm::DbErr::RecordNotUpdated);
    let inserted = early.insert(&db).await?;
    assert_eq!(inserted.id, key);
    Ok(())
}

async fn insert_many_takes_assigned_keys(db: DatabaseConnection) -> Outcome {
    create(&db, author::Entity).await?;
    // No hook is called.
    let unassigned = (0..2).map(|number| named(&number.to_string()));
    let refused = author::Entity::insert_many(unassigned);
    assert!(refused.exec_without_returning(&db).await.is_err());
    let mut authors: Vec<_> = (0..100).map(|number| named(&number.to_string())).collect();
    let given = AuthorId::generate();
    authors[50].id = Set(given);
    let keys = ordid_seaorm::assign_keys(&mut authors);
    assert_eq!(keys[50], given);
    assert_eq!(ordid_seaorm::assign_keys(&mut authors), keys);
    let inserted = author::Entity::insert_many(authors);
    assert_eq!(inserted.exec_without_returning(&db).await?, 100);
    let all = author::Entity::find()
        .order_by_asc(author::Column::Id)
        .all(&db)
        .await?;
    let mut sorted = keys;
    sorted.sort_unstable();
    assert_eq!(all.iter().map(|it| it.id).collect::<Vec<_>>(), sorted);
    Ok(())
}

/// What comes back of `insert_many`, where the database can tell.
async fn insert_many_tells_the_keys_that_it_was_given(db: DatabaseConnection) -> Outcome {
    create(&db, author::Entity).await?;
    let mut authors: Vec<_> = (0..6).map(|number| named(&number.to_string())).collect();
    let keys = ordid_seaorm::assign_keys(&mut authors);
    let mut rest = authors.split_off(2);
    // The last key, on each database.
    let told = author::Entity::insert_many(authors).exec(&db).await?;
    assert_eq!(told.last_insert_id, Some(keys[1]));
    let with_keys = author::Entity::insert_many(rest.drain(..2)).exec_with_returning_keys(&db);
    let with_models = author::Entity::insert_many(rest).exec_with_returning(&db);
    let (with_keys, with_models) = (with_keys.await, with_models.await);
    if db.support_returning() {
        assert_eq!(with_keys?, keys[2..4]);
        let models = with_models?;
        let told: Vec<_> = models.iter().map(|model| model.id).collect();
        assert_eq!(told, keys[4..]);
        assert_eq!(author::Entity::find().count(&db).await?, 6);
    } else {
        // MySQL, and MariaDB and SQLite without their features: nothing of it is written.
        assert!(with_keys.is_err() && with_models.is_err());
        assert_eq!(author::Entity::find().count(&db).await?, 2);
    }
    Ok(())
}

/// A model that `before_save` gives no key does not get a default one. A number of SQLite, though, is the
/// row's own, which SQLite makes: SeaORM says that it cannot be, after the row was written.
async fn a_model_without_the_hook_is_refused(db: DatabaseConnection) -> Outcome {
    create(&db, page::Entity).await?;
    let page = || page::ActiveModel {
        id: NotSet,
        position: Set(1),
        book: Set(None),
    };
    assert!(page().insert(&db).await.is_err());
    assert!(page().save(&db).await.is_err());
    assert_eq!(page::Entity::find().count(&db).await?, 0);
    create(&db, team::Entity).await?;
    let team = team::ActiveModel {
        id: NotSet,
        lead: Set(None),
    };
    let is_sqlite = db.get_database_backend() == sea_orm::DbBackend::Sqlite;
    // SQLite makes a number of its own, which SeaORM is told where it asks for the row.
    let is_told = is_sqlite && db.support_returning();
    assert_eq!(team.insert(&db).await.is_ok(), is_told);
    assert_eq!(team::Entity::find().count(&db).await?, u64::from(is_sqlite));
    Ok(())
}

async fn nested_models_are_saved_by_the_hook(db: DatabaseConnection) -> Outcome {
    create(&db, album::Entity).await?;
    create(&db, song::Entity).await?;
    let album = album::ActiveModel::builder()
        .set_name("Blue")
        .add_song(song::ActiveModel::builder().set_title("All I Want"))
        .add_song(song::ActiveModel::builder().set_title("My Old Man"));
    album.save(&db).await?;
    let albums = album::Entity::find().all(&db).await?;
    let songs = albums[0].find_related(song::Entity).all(&db).await?;
    assert_eq!((albums.len(), songs.len()), (1, 2));
    assert!(songs.iter().all(|song| song.album_id == albums[0].id));
    // In the compact form as well.
    create(&db, author::Entity).await?;
    create(&db, book::Entity).await?;
    let ada = named("Ada").insert(&db).await?;
    let notes = book::ActiveModel {
        id: NotSet,
        title: Set("Notes".to_owned()),
        author_id: Set(ada.id),
    };
    let notes = notes.insert(&db).await?;
    assert!(notes.id.to_string().starts_with("book_"));
    assert_eq!(ada.find_related(book::Entity).all(&db).await?, [notes]);
    Ok(())
}
