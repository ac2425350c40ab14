//! `insert_all` and `insert_or_skip`.

use ordid::{KeyType as _, OrderedKey as _};
use ordid_tests::trials::Outcome;
use sea_orm::{
    ActiveValue::{NotSet, Set},
    DatabaseConnection, EntityTrait as _, PaginatorTrait as _, TransactionTrait as _,
};

use crate::{
    Databases, create, is_mysql,
    models::{AuthorId, author, book},
};

pub fn add(to: &mut Databases<'_>) {
    all!(to.on_all, "bulk::";
        more_rows_than_a_statement_takes_are_inserted,
        duplicates_are_told_as_they_are,
        what_is_no_duplicate_is_an_error,
    );
}

fn named(name: impl ToString) -> author::ActiveModel {
    author::ActiveModel {
        id: NotSet,
        name: Set(name.to_string()),
        position: NotSet,
        mentor: NotSet,
    }
}

async fn more_rows_than_a_statement_takes_are_inserted(db: DatabaseConnection) -> Outcome {
    create(&db, author::Entity).await?;
    // Four parameters a row: above each engine's limit.
    let models = (0..20_000).map(|number| author::ActiveModel {
        position: Set(number),
        mentor: Set(None),
        ..named(number)
    });
    let too_many = author::Entity::insert_many(models.clone().map(|mut model| {
        model.ensure_key();
        model
    }));
    assert!(too_many.exec_without_returning(&db).await.is_err());
    let keys = ordid_seaorm::insert_all(&db, models).await?;
    assert_eq!(author::Entity::find().count(&db).await?, 20_000);
    assert!(keys.is_sorted_by(|left, right| left < right));
    let one = author::Entity::find_by_id(keys[12_345]).one(&db).await?;
    assert_eq!(one.ok_or("not there")?.position, 12_345);

    // In a transaction of the user's, and what is not set is the database's default.
    let transaction = db.begin().await?;
    let key = ordid_seaorm::insert_all(&transaction, [named("default")]).await?[0];
    let one = author::Entity::find_by_id(key).one(&transaction).await?;
    assert_eq!(one.ok_or("not there")?.position, 7);
    transaction.rollback().await?;
    assert_eq!(author::Entity::find().count(&db).await?, 20_000);
    Ok(())
}

async fn duplicates_are_told_as_they_are(db: DatabaseConnection) -> Outcome {
    create(&db, author::Entity).await?;
    let ada = ordid_seaorm::insert_all(&db, [named("Ada")]).await?[0];

    // SeaORM's own word, which on MySQL is not what happened.
    let mut again = named("Ada");
    again.id = Set(ada);
    let told = author::Entity::insert(again.clone())
        .on_conflict_do_nothing()
        .exec(&db)
        .await?;
    let says_inserted = matches!(told, sea_orm::TryInsertResult::Inserted(_));
    assert_eq!(says_inserted, is_mysql(&db), "{told:?}");

    // By another unique column, by the key, twice in one call, and by other columns.
    let mut models = vec![
        named("Grace"),
        named("Ada"),
        again,
        named("Edsger"),
        named("Grace"),
    ];
    models.push(author::ActiveModel {
        position: Set(3),
        ..named("Barbara")
    });
    models.push(author::ActiveModel {
        position: Set(3),
        ..named("Ada")
    });
    let inserted = ordid_seaorm::insert_or_skip(&db, &mut models).await?;
    assert_eq!(inserted, [true, false, false, true, false, true, false]);
    let all = author::Entity::find().all(&db).await?;
    assert_eq!(all.len(), 4);
    for (model, inserted) in models.iter().zip(inserted) {
        let key = model.key().ok_or("no key")?;
        let is_there = all.iter().any(|it| it.id == key);
        assert_eq!(is_there, inserted || key == ada);
    }
    // None is a duplicate: one statement takes them.
    let mut fresh: Vec<_> = (0..3_000).map(named).collect();
    let inserted = ordid_seaorm::insert_or_skip(&db, &mut fresh).await?;
    assert_eq!(inserted, vec![true; 3_000]);
    // All are.
    let inserted = ordid_seaorm::insert_or_skip(&db, &mut fresh[..10]).await?;
    assert_eq!(inserted, [false; 10]);
    Ok(())
}

/// A row without its parent is no duplicate, and nothing beside it stays.
async fn what_is_no_duplicate_is_an_error(db: DatabaseConnection) -> Outcome {
    create(&db, author::Entity).await?;
    create(&db, book::Entity).await?;
    let ada = ordid_seaorm::insert_all(&db, [named("Ada")]).await?[0];
    let titled = |title: &str, author| book::ActiveModel {
        id: NotSet,
        title: Set(title.to_owned()),
        author_id: Set(author),
    };
    let mut books = [titled("Notes", ada), titled("Lost", AuthorId::generate())];
    let error = ordid_seaorm::insert_or_skip(&db, &mut books)
        .await
        .unwrap_err();
    assert!(error.is_foreign_key_violation(), "{error}");
    assert_eq!(error.table(), Some("book"));
    assert_eq!(book::Entity::find().count(&db).await?, 0);
    assert_eq!(
        ordid_seaorm::insert_or_skip(&db, &mut books[..1]).await?,
        [true]
    );
    Ok(())
}
