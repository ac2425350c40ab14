use ordid::{KeyType, OrderedKey, uuid::Uuid};
use ordid_sql::{Action, FlushPlan, PlannedTable};
use sea_orm::{
    ActiveValue::{NotSet, Set},
    entity::prelude::*,
};

use super::*;

mod names;

#[derive(KeyType)]
#[ordid(sea_orm)]
struct StaffId(Uuid);

#[derive(Clone, Debug, PartialEq, Eq, EnumIter, DeriveActiveEnum)]
#[sea_orm(rs_type = "String", db_type = "Enum", enum_name = "mood")]
enum Mood {
    #[sea_orm(string_value = "glad")]
    Glad,
}

/// Employees whose boss is one of them.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel, OrderedKey)]
#[sea_orm(table_name = "staff", schema_name = "shop")]
struct Model {
    mood: Mood,
    #[sea_orm(primary_key, auto_increment = false)]
    id: StaffId,
    #[ordid(parent)]
    boss: Option<StaffId>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

fn told(plan: &FlushPlan) -> Vec<String> {
    let statements = |table: &PlannedTable| table.statements.clone();
    for table in &plan.tables {
        let rows: usize = statements(table).iter().map(|it| it.rows.len()).sum();
        assert_eq!(rows, table.rows);
    }
    let all = plan.tables.iter().flat_map(statements);
    all.map(|it| format!("{:?} {}", it.rows, it.sql)).collect()
}

fn id(number: u128) -> StaffId {
    // Of version 7.
    let raw = Uuid::from_u128(0x0189_0a5d_ac96_7000_8000_0000_0000_0000 + number);
    StaffId::from_raw(raw).expect("a key")
}

/// All that can be done with rows.
fn changes() -> UnitOfWork {
    let mut work = UnitOfWork::new();
    let employee = |number, boss| Model {
        id: id(number),
        mood: Mood::Glad,
        boss: Some(id(boss)),
    };
    work.add(employee(1, 2));
    work.add(employee(2, 1));
    // Two that change all, one its boss, one nothing.
    work.update(employee(3, 9));
    work.update(employee(4, 9));
    for (number, boss) in [(5, Set(None)), (6, NotSet)] {
        work.update(ActiveModel {
            id: Set(id(number)),
            mood: NotSet,
            boss,
        });
    }
    work.delete(employee(7, 8));
    work.delete(employee(8, 7));
    work
}

#[test]
fn a_plan_has_the_text_of_each_statement() {
    let mut work = changes();
    let plan = work.plan(DbBackend::Postgres).unwrap();
    assert_eq!(
        told(&plan),
        [
            r#"0..2 INSERT INTO "shop"."staff" ("mood", "id", "boss") VALUES (CAST($1 AS "mood"), $2, $3), (CAST($4 AS "mood"), $5, $6)"#,
            r#"0..1 UPDATE "shop"."staff" SET "boss" = $1 WHERE "id" = $2"#,
            r#"0..2 UPDATE "shop"."staff" AS ordid_target SET "mood" = ordid_rows."mood", "boss" = ordid_rows."boss" FROM (VALUES (CAST($1 AS "mood"), $2, $3), (CAST($4 AS "mood"), $5, $6)) AS ordid_rows ("mood", "id", "boss") WHERE ordid_target."id" = ordid_rows."id""#,
            r#"2..3 UPDATE "shop"."staff" SET "boss" = $1 WHERE "id" = $2"#,
            r#"3..4 UPDATE "shop"."staff" SET "id" = "id" WHERE "id" = $1"#,
            r#"0..1 UPDATE "shop"."staff" SET "boss" = NULL WHERE "id" = $1"#,
            r#"0..2 DELETE FROM "shop"."staff" WHERE "id" IN ($1, $2)"#,
        ]
    );
    let actions: Vec<_> = plan.tables.iter().map(|it| it.action).collect();
    assert_eq!(
        actions,
        [
            Action::Insert,
            Action::FixUp { parent: 0 },
            Action::Update,
            Action::Unlink { parent: 0 },
            Action::Delete
        ]
    );
    assert_eq!((plan.rows(), plan.defers), (2, None));
    assert_eq!(work.len(), 8, "nothing is taken out");
    assert_eq!(
        UnitOfWork::new().plan(DbBackend::Sqlite).unwrap(),
        FlushPlan::default()
    );
}

#[test]
fn updates_go_row_by_row_on_mysql_alone() {
    let updates = |backend| {
        let plan = changes().plan(backend).unwrap();
        let updates = plan
            .tables
            .into_iter()
            .filter(|it| it.action == Action::Update);
        let statements: Vec<_> = updates.flat_map(|table| table.statements).collect();
        statements
    };
    let mysql = updates(DbBackend::MySql);
    assert_eq!(mysql.len(), 4);
    assert_eq!(
        &*mysql[1].sql,
        "UPDATE `shop`.`staff` SET `mood` = ?, `boss` = ? WHERE `id` = ?"
    );
    let sqlite = updates(DbBackend::Sqlite);
    assert_eq!(sqlite.len(), 3);
    assert_eq!(
        &*sqlite[0].sql,
        r#"WITH ordid_rows ("mood", "id", "boss") AS (VALUES (?, ?, ?), (?, ?, ?)) UPDATE "shop"."staff" AS ordid_target SET "mood" = ordid_rows."mood", "boss" = ordid_rows."boss" FROM ordid_rows WHERE ordid_target."id" = +ordid_rows."id""#
    );
}

/// SeaORM's own `update` sends nothing for it.
#[test]
fn an_active_model_with_nothing_set_leaves_the_columns() {
    let model = || Model {
        id: id(1),
        mood: Mood::Glad,
        boss: Some(id(2)),
    };
    let sql = |change: &dyn Fn(&mut UnitOfWork)| {
        let mut work = UnitOfWork::new();
        change(&mut work);
        let plan = work.plan(DbBackend::Sqlite).expect("a plan");
        told(&plan)
    };
    let nothing = r#"0..1 UPDATE "shop"."staff" SET "id" = "id" WHERE "id" = ?"#;
    let unset = || ActiveModel::from(model());
    assert_eq!(sql(&|work| work.update(unset())), [nothing]);
    // As `update_columns` of no column.
    assert_eq!(sql(&|work| work.update_columns(unset(), [])), [nothing]);
    let all = r#"0..1 UPDATE "shop"."staff" SET "mood" = ?, "boss" = ? WHERE "id" = ?"#;
    assert_eq!(sql(&|work| work.update(model())), [all]);
    assert_eq!(sql(&|work| work.update(unset().reset_all())), [all]);
}

#[test]
fn a_key_that_was_added_twice_is_found_before() {
    let mut work = UnitOfWork::new();
    for _ in 0..2 {
        work.add(Model {
            id: id(1),
            mood: Mood::Glad,
            boss: None,
        });
    }
    assert!(work.plan(DbBackend::Sqlite).unwrap_err().is_plan());
}

#[test]
fn a_flush_may_move_between_threads() {
    fn assert_send<T: Send>(_: &T) {}
    // Only their types matter: they are never polled.
    async fn all(db: sea_orm::DatabaseConnection, open: sea_orm::DatabaseTransaction) {
        let mut work = UnitOfWork::new();
        let _ = work.flush(&db).await;
        let _ = work.flush_in(&open).await;
        let _ = crate::insert_all(&db, Vec::<Model>::new()).await;
        let _ = crate::insert_or_skip::<ActiveModel, _>(&open, &mut []).await;
    }
    let _ = |db, open| assert_send(&all(db, open));
}
