//! SeaORM's own ways to write: `insert`, `save`, `insert_many`, and nested models.

use libtest_mimic::Trial;
use ordid::{KeyType as _, OrderedKey as _};
use ordid_tests::{servers::Servers, trials::Outcome};
use sea_orm::{
    ActiveModelTrait as _,
    ActiveValue::{NotSet, Set},
    DatabaseConnection, EntityTrait as _, ModelTrait as _, QueryOrder as _,
};

use crate::{
    create,
    models::{AuthorId, album, author, book, song},
    on_all,
};

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    macro_rules! all {
        ($($name:ident),+ $(,)?) => {$(
            on_all(servers, trials, concat!("saves::", stringify!($name)), $name);
        )+};
    }
    all!(
        a_new_model_is_saved_by_the_hook,
        a_key_that_is_set_is_an_update_to_save,
        insert_many_takes_assigned_keys,
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
