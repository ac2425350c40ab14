//! Key types as columns: what is bound comes back, finds its row, and sorts as the keys do.

use ordid::{
    KeyType, Scheme as _,
    clock::SystemClock,
    entropy::ThreadEntropy,
    generator::{Generator as _, OrderedGenerator, Policy},
    key::{Key192, ObjectId, PushId},
    scheme::snowflake::SnowflakeNode,
    uuid::Uuid,
};
use ordid_tests::trials::Outcome;
use sea_orm::{
    ActiveModelTrait as _, ActiveValue::Set, ColumnTrait as _, ConnectionTrait as _,
    DatabaseConnection, EntityTrait as _, QueryFilter as _, QueryOrder as _, Statement, Value,
    sea_query::ValueType,
};

use crate::{Databases, create, is_mysql};

/// Makes a key type, an entity of it, and the test of both.
macro_rules! column {
    ($module:ident: $raw:ty, $scheme:ident, sea_orm($($column:tt)+)) => {
        mod $module {
            use super::*;

            #[derive(KeyType)]
            #[ordid(scheme = $scheme, sea_orm($($column)+))]
            pub struct Id($raw);

            pub mod entity {
                use ordid::OrderedKey;
                use sea_orm::entity::prelude::*;

                use super::Id;

                #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel, OrderedKey)]
                #[sea_orm(table_name = "keys")]
                pub struct Model {
                    #[sea_orm(primary_key, auto_increment = false)]
                    pub id: Id,
                    pub other: Option<Id>,
                    pub position: i32,
                }

                #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
                pub enum Relation {}

                impl ActiveModelBehavior for ActiveModel {}
            }

            pub async fn comes_back(db: DatabaseConnection, rising: Vec<Id>) -> Outcome {
                use entity::{ActiveModel, Column, Entity, Model};

                assert!(rising.is_sorted_by(|left, right| left < right));
                create(&db, Entity).await?;
                let first = Model { id: rising[0], other: None, position: 0 };
                let second = Model { id: rising[1], other: Some(rising[0]), position: 1 };
                for model in [&second, &first] {
                    // All unchanged, which SeaORM inserts too.
                    let inserted = ActiveModel::from(model.clone()).insert(&db).await?;
                    assert_eq!(inserted, *model);
                }
                for model in [&first, &second] {
                    assert_eq!(Entity::find_by_id(model.id).one(&db).await?.as_ref(), Some(model));
                }
                assert_eq!(
                    Entity::find().filter(Column::Other.eq(rising[0])).all(&db).await?,
                    std::slice::from_ref(&second)
                );
                assert_eq!(
                    Entity::find().filter(Column::Other.is_null()).all(&db).await?,
                    std::slice::from_ref(&first)
                );
                // As a value, and back.
                assert_eq!(<Id as ValueType>::try_from(Value::from(rising[0])).ok(), Some(rising[0]));
                assert_eq!(<Option<Id> as ValueType>::try_from(Value::from(None::<Id>)).ok(), Some(None));

                // In another order than that of the keys.
                let mut rest: Vec<(i32, Id)> = (2..).zip(rising[2..].iter().copied()).collect();
                rest.sort_by_key(|(position, _)| position % 7);
                let rest = rest.iter().map(|(position, id)| ActiveModel {
                    id: Set(*id),
                    other: Set(None),
                    position: Set(*position),
                });
                Entity::insert_many(rest).exec_without_returning(&db).await?;
                let sorted = Entity::find().order_by_asc(Column::Id).all(&db).await?;
                let ids: Vec<_> = sorted.iter().map(|model| model.id).collect();
                assert_eq!(ids, rising);
                assert!(sorted.is_sorted_by_key(|model| model.position));
                let among = Entity::find()
                    .filter(Column::Id.is_in([rising[7], rising[3]]))
                    .order_by_asc(Column::Id)
                    .all(&db)
                    .await?;
                assert_eq!(among.len(), 2);
                assert_eq!((among[0].id, among[1].id), (rising[3], rising[7]));
                Ok(())
            }
        }
    };
}

column!(uuid: Uuid, uuid_v7, sea_orm(uuid));
column!(bytes: Uuid, uuid_v7, sea_orm(bytea));
column!(text: Uuid, uuid_v7, sea_orm(text));
column!(char22: Uuid, ordered_text_22, sea_orm(char22));
column!(char26: Uuid, ulid, sea_orm(char26));
column!(object: ObjectId, object_id, sea_orm(bytea));
column!(push: PushId, push_id, sea_orm(char20));
column!(wide: Key192, ordered_text_32, sea_orm(bytea));
column!(wide_text: Key192, ordered_text_32, sea_orm(char32));
column!(number: i64, snowflake, sea_orm(bigint));
column!(unsigned: u64, uuid_short, sea_orm(bigint_unsigned));
column!(native: Uuid, comb_nhibernate, sea_orm(mariadb_uuid));

fn generated<K: KeyType<Scheme: ordid::StaticScheme>>() -> Vec<K> {
    (0..2_000).map(|_| K::generate()).collect()
}

pub fn add(to: &mut Databases<'_>) {
    macro_rules! generated {
        ($on:ident: $($module:ident),+) => {$(
            let name = concat!("keys::", stringify!($module), "_comes_back_in_order");
            to.$on(name, |db| $module::comes_back(db, generated()));
        )+};
    }
    generated!(on_all: uuid, bytes, text, char22, char26, object, push, wide, wide_text);
    generated!(on_mariadb: native);
    all!(to.on_all, "keys::"; number_comes_back_in_order, another_form_is_named);
    all!(to.on_mariadb, "keys::"; unsigned_comes_back_in_order);
    all!(to.on_postgres, "keys::"; arrays_come_back, columns_of_other_databases_are_refused);
}

async fn number_comes_back_in_order(db: DatabaseConnection) -> Outcome {
    let node = SnowflakeNode::new(7)?;
    let keys = OrderedGenerator::with_node(node, SystemClock, ThreadEntropy, Policy::DEFAULT);
    let rising = (0..2_000).map(|_| keys.try_generate_key());
    number::comes_back(db, rising.collect::<Result<_, _>>()?).await
}

/// The keys are in the upper half of the range. A signed column would treat them as negative numbers.
async fn unsigned_comes_back_in_order(db: DatabaseConnection) -> Outcome {
    let numbers = (0..2_000_u64).map(|number| u64::MAX - 5_000 + number);
    let rising = numbers.map(|raw| unsigned::Id::from_raw(ordid::scheme::UuidShort::coerce(raw)));
    unsigned::comes_back(db, rising.collect::<Result<_, _>>()?).await
}

/// `= ANY($1)` and an array column, of bytes and of text.
async fn arrays_come_back(db: DatabaseConnection) -> Outcome {
    async fn one<K>(db: &DatabaseConnection, ty: &str) -> Outcome
    where
        K: KeyType<Scheme: ordid::StaticScheme> + sea_orm::TryGetableArray,
        Vec<K>: Into<Value>,
    {
        let keys: Vec<K> = (0..3).map(|_| K::generate()).collect();
        let sql = format!("SELECT $1::{ty}[] AS keys, ($1::{ty}[])[2] = ANY($2) AS is_among");
        let values = [keys.clone().into(), keys[..2].to_vec().into()];
        let query = Statement::from_sql_and_values(db.get_database_backend(), sql, values);
        let row = db.query_one_raw(query).await?.ok_or("no row")?;
        assert_eq!(row.try_get::<Vec<K>>("", "keys")?, keys);
        assert!(row.try_get::<bool>("", "is_among")?);
        Ok(())
    }
    one::<uuid::Id>(&db, "uuid").await?;
    one::<char22::Id>(&db, "text").await?;
    one::<bytes::Id>(&db, "bytea").await
}

/// PostgreSQL makes no table for numbers without a sign, and takes no text for a `uuid`.
async fn columns_of_other_databases_are_refused(db: DatabaseConnection) -> Outcome {
    let refused = create(&db, unsigned::entity::Entity).await.unwrap_err();
    assert!(refused.to_string().contains("UNSIGNED"), "{refused}");
    create(&db, native::entity::Entity).await?;
    let key = native::entity::ActiveModel {
        id: Set(native::Id::generate()),
        other: Set(None),
        position: Set(0),
    };
    let refused = key.insert(&db).await.unwrap_err().to_string();
    assert!(refused.contains("of type uuid"), "{refused}");
    Ok(())
}

/// A column of another form: the error says what it found, for which key type, and what to declare.
async fn another_form_is_named(db: DatabaseConnection) -> Outcome {
    let id = uuid::Id::generate();
    let select = |sql: &str| Statement::from_string(db.get_database_backend(), sql);
    let message = async |sql: String| -> Outcome<String> {
        let row = db.query_one_raw(select(&sql)).await?.ok_or("no row")?;
        Ok(row.try_get::<uuid::Id>("", "id").unwrap_err().to_string())
    };
    let hyphenated = message(format!("SELECT '{}' AS id", id.to_raw())).await?;
    assert!(hyphenated.contains("into `Id`"), "{hyphenated}");
    assert!(hyphenated.contains("36 bytes"), "{hyphenated}");
    assert!(hyphenated.contains("declare"), "{hyphenated}");
    // MariaDB may return 24 bytes for a key's 16 bytes in a text of latin1. They are no key.
    let foreign = message("SELECT 'éééééééééééé' AS id".to_owned()).await?;
    assert!(foreign.contains("24 bytes"), "{foreign}");
    assert!(
        foreign.contains("another type than the key type declares"),
        "{foreign}"
    );
    let number = message("SELECT 7 AS id".to_owned()).await?;
    // PostgreSQL's 7 is an `integer`, which SeaORM does not read as `i64`.
    if is_mysql(&db) || db.get_database_backend() == sea_orm::DbBackend::Sqlite {
        assert!(number.contains("the integer 7"), "{number}");
    }
    // A UUID, but none of version 7.
    let row = select("SELECT '00000000-0000-4000-8000-000000000000' AS id");
    let row = db.query_one_raw(row).await?.ok_or("no row")?;
    let error = row.try_get::<text::Id>("", "id").unwrap_err().to_string();
    assert!(error.contains("version"), "{error}");
    Ok(())
}
