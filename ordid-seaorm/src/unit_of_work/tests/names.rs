//! The names of columns are SeaORM's, whatever makes them.

use ordid::OrderedKey;
use sea_orm::{DbBackend, IdenStatic, Iterable, entity::prelude::*};

use super::StaffId;
use crate::{Assigned, UnitOfWork};

/// Makes a model, whose columns have attributes.
macro_rules! model {
    ($name:ident, $(#[$of_table:meta])* $([$(#[$of_key:meta])*])? $key:ident) => {
        mod $name {
            use super::*;

            #[derive(Clone, Debug, PartialEq, DeriveEntityModel, OrderedKey)]
            #[sea_orm(table_name = "notes")]
            $(#[$of_table])*
            pub(super) struct Model {
                #[sea_orm(primary_key, auto_increment = false)]
                $($(#[$of_key])*)?
                pub(super) $key: StaffId,
                #[ordid(version)]
                pub(super) row_version: i64,
                #[ordid(returning)]
                pub(super) sum_2: Assigned<i64>,
                pub(super) r#type: String,
            }

            #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
            pub(super) enum Relation {}

            impl ActiveModelBehavior for ActiveModel {}

            /// Returns the names of the columns.
            pub(super) fn check() -> Vec<String> {
                let names: Vec<_> = Column::iter().map(|it| it.as_str().to_owned()).collect();
                assert_eq!(ActiveModel::COLUMNS, names);
                assert_eq!(ActiveModel::KEY_COLUMNS, [&*names[0]]);
                assert_eq!(ActiveModel::RETURNING, [&*names[2]]);
                let note = Model {
                    $key: super::super::id(1),
                    row_version: 1,
                    sum_2: Assigned::new(),
                    r#type: "a".into(),
                };
                let mut work = UnitOfWork::new();
                work.update(note.clone());
                work.delete(Model { $key: super::super::id(2), ..note.clone() });
                work.add(Model { $key: super::super::id(3), ..note });
                let plan = work.plan(DbBackend::Sqlite).expect("a plan");
                let statements = plan.tables.iter().flat_map(|it| &it.statements);
                let sql: Vec<_> = statements.map(|it| it.sql.to_string()).collect();
                let [key, version, sum, kind] = [0, 1, 2, 3].map(|it| format!("\"{}\"", names[it]));
                assert_eq!(
                    sql,
                    [
                        format!("INSERT INTO \"notes\" ({key}, {version}, {kind}) VALUES (?, ?, ?)"),
                        format!("UPDATE \"notes\" SET {version} = ?, {kind} = ? WHERE {key} = ? AND {version} = ?"),
                        format!("DELETE FROM \"notes\" WHERE {key} = ? AND {version} = ?"),
                    ]
                );
                let names = crate::entity::EntityNames::of::<ActiveModel>();
                let names = names.on(&ordid_sql::EngineProfile::SQLITE);
                assert_eq!((names.keys, names.returning), (vec![0], vec![sum]));
                ActiveModel::COLUMNS.iter().map(|it| (*it).to_owned()).collect()
            }
        }
    };
}

macro_rules! cases {
    ($($name:ident $case:literal: $columns:literal,)+) => {
        $(model! { $name, #[sea_orm(rename_all = $case)] order_id })+

        #[test]
        fn every_case_of_sea_orm_names_columns() {
            $(assert_eq!($name::check().join(","), $columns, "{}", $case);)+
        }
    };
}

cases! {
    pascal "PascalCase": "OrderId,RowVersion,Sum2,Type",
    pascal_2 "camel_case": "OrderId,RowVersion,Sum2,Type",
    camel "camelCase": "orderId,rowVersion,sum2,type",
    mixed "mixed_case": "orderId,rowVersion,sum2,type",
    snake "snake_case": "order_id,row_version,sum2,type",
    snek "snek_case": "order_id,row_version,sum2,type",
    kebab "kebab-case": "order-id,row-version,sum2,type",
    kebab_2 "kebab_case": "order-id,row-version,sum2,type",
    screaming_kebab "SCREAMING-KEBAB-CASE": "ORDER-ID,ROW-VERSION,SUM2,TYPE",
    screaming "SCREAMING_SNAKE_CASE": "ORDER_ID,ROW_VERSION,SUM2,TYPE",
    shouty "shouty_snake_case": "ORDER_ID,ROW_VERSION,SUM2,TYPE",
    shouty_2 "shouty_snek_case": "ORDER_ID,ROW_VERSION,SUM2,TYPE",
    title "title_case": "Order Id,Row Version,Sum2,Type",
    lower "lowercase": "orderid,rowversion,sum2,type",
    upper "UPPERCASE": "ORDERID,ROWVERSION,SUM2,TYPE",
}

model! { underscore_before, _id }
model! { underscore_behind, id_ }
model! { of_number, line_2 }
model! { of_enum, [#[sea_orm(enum_name = "NoteKey")]] id }
model! { of_enum_and_number, [#[sea_orm(enum_name = "NoteKey")]] line_2 }
model! { of_name, [#[sea_orm(column_name = "Note id", enum_name = "NoteKey")]] id }
model! { of_case_and_enum, #[sea_orm(rename_all = "camelCase")] [#[sea_orm(enum_name = "NoteKey")]] row_id }

#[test]
fn names_that_sea_orm_makes_of_fields_and_variants_are_the_columns() {
    let key = |columns: Vec<String>| columns[0].clone();
    assert_eq!(key(underscore_before::check()), "id");
    assert_eq!(key(underscore_behind::check()), "id");
    assert_eq!(key(of_number::check()), "line_2");
    assert_eq!(key(of_enum::check()), "note_key");
    assert_eq!(key(of_enum_and_number::check()), "line_2");
    assert_eq!(key(of_name::check()), "Note id");
    assert_eq!(key(of_case_and_enum::check()), "rowId");
}

/// An entity whose `Column` is written by hand, in another order than the fields.
mod by_hand {
    use super::*;

    #[derive(Copy, Clone, Default, Debug, DeriveEntity)]
    pub(super) struct Entity;

    impl EntityName for Entity {
        fn table_name(&self) -> &'static str {
            "notes"
        }
    }

    #[derive(Clone, Debug, PartialEq, DeriveModel, DeriveActiveModel, OrderedKey)]
    #[sea_orm(table_name = "notes")]
    pub(super) struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub(super) id: StaffId,
        pub(super) owner: StaffId,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveColumn)]
    pub(super) enum Column {
        Owner,
        Id,
    }

    impl ColumnTrait for Column {
        type EntityName = Entity;

        fn def(&self) -> ColumnDef {
            ColumnType::Uuid.def()
        }
    }

    #[derive(Copy, Clone, Debug, EnumIter, DerivePrimaryKey)]
    pub(super) enum PrimaryKey {
        Id,
    }

    impl PrimaryKeyTrait for PrimaryKey {
        type ValueType = StaffId;

        fn auto_increment() -> bool {
            false
        }
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub(super) enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// By its position, the key would be the owner.
#[cfg(feature = "sqlite")]
#[tokio::test]
async fn columns_in_another_order_are_refused() -> Result<(), DbErr> {
    use sea_orm::{ConnectionTrait as _, Database};

    use crate::{Follower, Position, dialect::Sqlite, insert_or_skip};

    let db = Database::connect("sqlite::memory:").await?;
    db.execute_unprepared("CREATE TABLE notes (id BLOB PRIMARY KEY, owner BLOB NOT NULL)")
        .await?;
    let [first, second] = [1, 2].map(|number| by_hand::Model {
        id: super::id(number),
        owner: super::id(3 - number),
    });
    for note in [&first, &second] {
        by_hand::Entity::insert(by_hand::ActiveModel::from(note.clone()).reset_all())
            .exec_without_returning(&db)
            .await?;
    }
    let says = "the model of table notes has the columns id, owner, and SeaORM's `Column` owner, id: declare the same \
                columns in the same order, under the same names (`#[sea_orm(column_name = \"..\")]` at the field)";
    let refused = |error: String| assert!(error.contains(says), "{error}");
    let changes: [fn(&mut UnitOfWork, by_hand::Model); 3] = [
        |work, note| {
            work.add(note);
        },
        |work, note| work.update(note),
        |work, note| work.delete(note),
    ];
    for change in changes {
        let mut work = UnitOfWork::new().without_record();
        change(&mut work, first.clone());
        refused(work.flush(&db).await.unwrap_err().to_string());
    }
    let mut models = [by_hand::ActiveModel::from(first.clone())];
    refused(
        insert_or_skip(&db, &mut models)
            .await
            .unwrap_err()
            .to_string(),
    );
    let follower =
        Follower::<Sqlite, by_hand::ActiveModel>::settled_after(std::time::Duration::ZERO);
    let followed = follower.next(&db, &Position::START, 2).await;
    refused(followed.unwrap_err().to_string());
    assert_eq!(by_hand::Entity::find().all(&db).await?, [first, second]);
    Ok(())
}

/// Another row of the same version stays as it is.
#[cfg(feature = "sqlite")]
#[tokio::test]
async fn an_update_finds_its_row_by_a_key_whose_name_sea_orm_made() -> Result<(), DbErr> {
    use sea_orm::{ConnectionTrait as _, Database};

    use title::{ActiveModel, Entity, Model};

    let db = Database::connect("sqlite::memory:").await?;
    db.execute_unprepared(
        r#"CREATE TABLE notes ("Order Id" BLOB PRIMARY KEY, "Row Version" INTEGER, "Sum2" INTEGER DEFAULT 7, "Type" TEXT)"#,
    )
    .await?;
    let note = |number, kind: &str| Model {
        order_id: super::id(number),
        row_version: 1,
        sum_2: Assigned::new(),
        r#type: kind.to_owned(),
    };
    let mut work = UnitOfWork::new();
    let first = note(1, "a");
    let sum = first.sum_2.clone();
    work.add(first);
    work.add(note(2, "b"));
    work.flush(&db).await.expect("rows that fit");
    assert_eq!(sum.get(), Some(7));

    let mut work = UnitOfWork::new().without_record();
    work.update(note(2, "c"));
    work.flush(&db).await.expect("rows that fit");
    let mut work = UnitOfWork::new().without_record();
    work.delete(ActiveModel::from(note(1, "a")));
    work.flush(&db).await.expect("rows that fit");
    let left = Entity::find().all(&db).await?;
    let left: Vec<_> = left.iter().map(|it| (it.order_id, &*it.r#type)).collect();
    assert_eq!(left, [(super::id(2), "c")]);
    Ok(())
}
