//! Nested models of SeaORM's entity-first form: parents, children and many-to-many rows in one `save`.

use ordid::{KeyType, OrderedKey as _, uuid::Uuid};
use ordid_seaorm::UnitOfWork;
use ordid_tests::trials::Outcome;
use sea_orm::{
    ActiveValue::{NotSet, Set},
    ConnectionTrait as _, DatabaseConnection, EntityTrait as _, ModelTrait as _,
    PaginatorTrait as _, QueryOrder as _, Schema,
};

use crate::{Databases, create, models::album, models::song};

#[derive(KeyType)]
#[ordid(sea_orm)]
pub struct PostId(Uuid);

#[derive(KeyType)]
#[ordid(sea_orm(char22))]
pub struct TagId(Uuid);

#[derive(KeyType)]
#[ordid(sea_orm(bytea))]
pub struct LinkId(Uuid);

mod post {
    use ordid::OrderedKey;
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel, OrderedKey)]
    #[sea_orm(table_name = "post")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: super::PostId,
        pub title: String,
        #[sea_orm(has_many, via = "post_tag")]
        pub tags: HasMany<super::tag::Entity>,
        #[sea_orm(has_many, via = "post_topic")]
        pub topics: HasMany<super::topic::Entity>,
    }

    ordid_seaorm::assign_before_save!(ActiveModel);
}

mod tag {
    use ordid::OrderedKey;
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel, OrderedKey)]
    #[sea_orm(table_name = "tag")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: super::TagId,
        #[sea_orm(unique)]
        pub name: String,
        #[sea_orm(has_many, via = "post_tag")]
        pub posts: HasMany<super::post::Entity>,
    }

    ordid_seaorm::assign_before_save!(ActiveModel);
}

/// A junction with a key of its own.
mod post_tag {
    use ordid::OrderedKey;
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel, OrderedKey)]
    #[sea_orm(table_name = "post_tag")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: super::LinkId,
        #[ordid(parent)]
        #[sea_orm(unique_key = "once")]
        pub post_id: super::PostId,
        #[ordid(parent)]
        #[sea_orm(unique_key = "once")]
        pub tag_id: super::TagId,
        #[sea_orm(belongs_to, from = "post_id", to = "id")]
        pub post: BelongsTo<super::post::Entity>,
        #[sea_orm(belongs_to, from = "tag_id", to = "id")]
        pub tag: BelongsTo<super::tag::Entity>,
    }

    ordid_seaorm::assign_before_save!(ActiveModel);
}

mod topic {
    use ordid::OrderedKey;
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel, OrderedKey)]
    #[sea_orm(table_name = "topic")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: super::LinkId,
        pub name: String,
        #[sea_orm(has_many, via = "post_topic")]
        pub posts: HasMany<super::post::Entity>,
    }

    ordid_seaorm::assign_before_save!(ActiveModel);
}

/// A junction whose key is what it joins: there is nothing to assign.
mod post_topic {
    use sea_orm::entity::prelude::*;

    #[sea_orm::model]
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "post_topic")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub post_id: super::PostId,
        #[sea_orm(primary_key, auto_increment = false)]
        pub topic_id: super::LinkId,
        #[sea_orm(belongs_to, from = "post_id", to = "id")]
        pub post: BelongsTo<super::post::Entity>,
        #[sea_orm(belongs_to, from = "topic_id", to = "id")]
        pub topic: BelongsTo<super::topic::Entity>,
    }

    impl ActiveModelBehavior for ActiveModel {}
}

pub fn add(to: &mut Databases<'_>) {
    all!(to.on_all, "nested::";
        junction_rows_get_keys_of_their_own,
        junction_rows_whose_key_is_what_they_join,
        a_parent_is_written_before_the_child_that_names_it,
        a_nested_key_that_is_set_is_an_update_to_save,
        junction_rows_in_a_unit_of_work,
    );
}

async fn blog(db: &DatabaseConnection) -> Outcome {
    create(db, post::Entity).await?;
    create(db, tag::Entity).await?;
    create(db, post_tag::Entity).await?;
    create(db, topic::Entity).await?;
    create(db, post_topic::Entity).await
}

/// SeaORM inserts them by `insert_many`, and calls their hooks before.
async fn junction_rows_get_keys_of_their_own(db: DatabaseConnection) -> Outcome {
    blog(&db).await?;
    let saved = post::ActiveModel::builder()
        .set_title("Keys")
        .add_tag(tag::ActiveModel::builder().set_name("rust"))
        .add_tag(tag::ActiveModel::builder().set_name("sql"))
        .save(&db)
        .await?;
    let links = post_tag::Entity::find()
        .order_by_asc(post_tag::Column::Id)
        .all(&db)
        .await?;
    assert_eq!(links.len(), 2);
    let keys = links.iter().map(|link| Some(link.post_id));
    assert!(keys.eq([saved.id.try_as_ref().copied(); 2]));
    assert!(links[0].id < links[1].id);
    // Another post takes one of the tags, and a new one.
    let rust = tag::Entity::find()
        .order_by_asc(tag::Column::Id)
        .one(&db)
        .await?
        .ok_or("no tag")?;
    let other = post::ActiveModel::builder()
        .set_title("More keys")
        .add_tag(rust.clone().into_ex())
        .add_tag(tag::ActiveModel::builder().set_name("orm"))
        .save(&db)
        .await?;
    assert_eq!(tag::Entity::find().count(&db).await?, 3);
    assert_eq!(post_tag::Entity::find().count(&db).await?, 4);
    let posts = rust.find_related(post::Entity);
    let posts = posts.order_by_asc(post::Column::Id).all(&db).await?;
    assert_eq!([&*posts[0].title, &*posts[1].title], ["Keys", "More keys"]);
    // Saved again, nothing is written twice.
    other.save(&db).await?;
    assert_eq!(post_tag::Entity::find().count(&db).await?, 4);
    Ok(())
}

async fn junction_rows_whose_key_is_what_they_join(db: DatabaseConnection) -> Outcome {
    blog(&db).await?;
    for title in ["one", "two"] {
        post::ActiveModel::builder()
            .set_title(title)
            .add_topic(topic::ActiveModel::builder().set_name("a"))
            .add_topic(topic::ActiveModel::builder().set_name("b"))
            .save(&db)
            .await?;
    }
    let posts = post::Entity::find()
        .order_by_asc(post::Column::Id)
        .all(&db)
        .await?;
    assert_eq!([&*posts[0].title, &*posts[1].title], ["one", "two"]);
    for post in &posts {
        let topics = post.find_related(topic::Entity);
        let topics = topics.order_by_asc(topic::Column::Id).all(&db).await?;
        assert_eq!([&*topics[0].name, &*topics[1].name], ["a", "b"]);
        for topic in topics {
            let link = post_topic::Entity::find_by_id((post.id, topic.id));
            assert!(link.one(&db).await?.is_some());
        }
    }
    assert_eq!(post_topic::Entity::find().count(&db).await?, 4);
    Ok(())
}

async fn a_parent_is_written_before_the_child_that_names_it(db: DatabaseConnection) -> Outcome {
    create(&db, album::Entity).await?;
    create(&db, song::Entity).await?;
    let album = album::ActiveModel::builder().set_name("Blue");
    song::ActiveModel::builder()
        .set_title("Carey")
        .set_album(album)
        .save(&db)
        .await?;
    let song = song::Entity::find().one(&db).await?.ok_or("no song")?;
    let album = album::Entity::find_by_id(song.album_id).one(&db).await?;
    assert_eq!(album.ok_or("no album")?.name, "Blue");
    Ok(())
}

/// Which is why keys are assigned in `before_save`: what was there is left as it was.
async fn a_nested_key_that_is_set_is_an_update_to_save(db: DatabaseConnection) -> Outcome {
    create(&db, album::Entity).await?;
    create(&db, song::Entity).await?;
    let early = album::ActiveModel::builder().set_name("Blue").add_song(
        song::ActiveModel::builder()
            .set_id(Uuid::generate())
            .set_title("Carey"),
    );
    let error = early.clone().save(&db).await.unwrap_err();
    assert_eq!(error, sea_orm::DbErr::RecordNotUpdated);
    assert_eq!(album::Entity::find().count(&db).await?, 0);
    // `insert` takes keys as they are.
    early.insert(&db).await?;
    assert_eq!(song::Entity::find().count(&db).await?, 1);
    Ok(())
}

/// Many of them, in statements of many rows.
async fn junction_rows_in_a_unit_of_work(db: DatabaseConnection) -> Outcome {
    blog(&db).await?;
    // `unique_key` is an index beside the table.
    let schema = Schema::new(db.get_database_backend());
    for index in schema.create_index_from_entity(post_tag::Entity) {
        db.execute(&index).await?;
    }
    let mut work = UnitOfWork::new();
    let posts: Vec<_> = (0..50)
        .map(|number| {
            work.add(post::ActiveModel {
                id: NotSet,
                title: Set(format!("post {number}")),
            })
        })
        .collect();
    let tags: Vec<_> = (0..20)
        .map(|number| {
            work.add(tag::ActiveModel {
                id: NotSet,
                name: Set(format!("tag {number}")),
            })
        })
        .collect();
    for post_id in &posts {
        for tag_id in &tags {
            work.add(post_tag::ActiveModel {
                id: NotSet,
                post_id: Set(*post_id),
                tag_id: Set(*tag_id),
            });
        }
    }
    let flushed = work.flush(&db).await?;
    let statements: usize = flushed.tables.iter().map(|table| table.statements).sum();
    assert_eq!((flushed.rows(), statements), (1_070, 3));
    let first = post::Entity::find_by_id(posts[0]).one(&db).await?;
    let found = first.ok_or("no post")?.find_related(tag::Entity);
    assert_eq!(found.count(&db).await?, 20);
    // The same pair once more, under another key.
    let key = work.add(post_tag::ActiveModel {
        id: NotSet,
        post_id: Set(posts[0]),
        tag_id: Set(tags[0]),
    });
    let error = work.flush(&db).await.unwrap_err();
    assert!(error.is_unique_violation(), "{error}");
    assert_eq!(error.key(), Some(&*key.to_string()));
    assert_eq!(work.get::<post_tag::ActiveModel>()[0].key(), Some(key));
    Ok(())
}
