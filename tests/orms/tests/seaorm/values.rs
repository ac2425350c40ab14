//! Values that a database does not have.

use ordid::{KeyType as _, uuid::Uuid};
use ordid_seaorm::UnitOfWork;
use ordid_tests::trials::Outcome;
use sea_orm::{ActiveValue::Set, DatabaseConnection, EntityTrait as _};

use crate::{Databases, create, is_mysql};

mod total {
    use ordid::OrderedKey;
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel, OrderedKey)]
    #[sea_orm(table_name = "total")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: ordid::uuid::Uuid,
        pub number: u64,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

pub fn add(to: &mut Databases<'_>) {
    all!(to.on_all, "values::";
        an_integer_that_the_database_does_not_have_is_an_error_with_its_row,
    );
}

async fn an_integer_that_the_database_does_not_have_is_an_error_with_its_row(
    db: DatabaseConnection,
) -> Outcome {
    create(&db, total::Entity).await?;
    let ids = [Uuid::generate(), Uuid::generate()];
    let mut work = UnitOfWork::new();
    for (id, number) in ids.into_iter().zip([1, u64::MAX]) {
        work.add(total::ActiveModel {
            id: Set(id),
            number: Set(number),
        });
    }
    let flushed = work.flush(&db).await;
    let found = total::Entity::find().all(&db).await?;
    if is_mysql(&db) {
        assert_eq!(flushed?.rows(), 2);
        assert_eq!(found[1].number, u64::MAX);
        return Ok(());
    }
    let error = flushed.unwrap_err();
    assert_eq!(error.key(), Some(&*ids[1].to_string()), "{error}");
    let text = error.to_string();
    assert!(text.contains("18446744073709551615 is above"), "{text}");
    assert!(text.contains("nothing was written"), "{text}");
    assert_eq!(found, []);
    Ok(())
}
