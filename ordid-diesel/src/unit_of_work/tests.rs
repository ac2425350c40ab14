//! The texts of a unit of work's statements, of each engine.

use std::{ops::Range, sync::Arc};

use diesel::{mysql::Mysql, pg::Pg, sqlite::Sqlite};
use ordid::{KeyType, OrderedKey, uuid::Uuid};

use super::*;
use crate::{Action, FlushPlan};

#[derive(KeyType)]
#[ordid(diesel)]
struct StaffId(Uuid);

#[derive(KeyType)]
#[ordid(diesel)]
struct TagId(Uuid);

/// The entities for a backend, whose keys have this type in `table!`, and its plans.
macro_rules! plans {
    ($module:ident: $backend:ty, $key:ident) => {
        mod $module {
            use super::*;

            diesel::table! {
                staff (id) {
                    name -> Text,
                    boss -> Nullable<$key>,
                    id -> $key,
                }
            }

            diesel::table! {
                shop.tags (id) { id -> $key, }
            }

            /// Whose boss is one of them.
            #[derive(OrderedKey)]
            #[diesel(table_name = staff)]
            #[ordid(diesel)]
            struct Employee {
                name: &'static str,
                #[ordid(parent)]
                boss: Option<StaffId>,
                #[ordid(key)]
                id: StaffId,
            }

            #[derive(OrderedKey)]
            #[diesel(table_name = tags)]
            #[ordid(diesel)]
            pub(super) struct Tag {
                pub(super) id: TagId,
            }

            /// All that can be done with rows.
            pub(super) fn changes() -> UnitOfWork<$backend> {
                let mut work = UnitOfWork::new();
                let employee = |number, boss| Employee {
                    id: id(number),
                    name: "Ada -- binds: none",
                    boss: Some(id(boss)),
                };
                work.add(employee(1, 2));
                work.add(employee(2, 1));
                work.update(employee(3, 9));
                work.update(employee(4, 9));
                work.delete(&employee(5, 6));
                work.delete(&employee(6, 5));
                work.update(Tag { id: id(7) });
                work
            }

            pub(super) fn tags(count: u128) -> UnitOfWork<$backend> {
                let mut work = UnitOfWork::new();
                for number in 0..count {
                    work.add(Tag { id: id(number) });
                }
                work
            }
        }
    };
}

plans!(postgres: Pg, Uuid);
plans!(mysql: Mysql, Binary);
plans!(sqlite: Sqlite, Binary);

fn id<K: KeyType<Raw = Uuid>>(number: u128) -> K {
    // Of version 7.
    let raw = Uuid::from_u128(0x0189_0a5d_ac96_7000_8000_0000_0000_0000 + number);
    K::from_raw(raw).expect("a key")
}

/// The actions, each with the rows and the text of each of its statements.
fn told(plan: &FlushPlan) -> Vec<(Action, Range<usize>, &str)> {
    for table in &plan.tables {
        let rows: usize = table.statements.iter().map(|it| it.rows.len()).sum();
        assert_eq!(rows, table.rows);
    }
    let all = plan
        .tables
        .iter()
        .flat_map(|table| table.statements.iter().map(|it| (table.action, it)));
    all.map(|(action, it)| (action, it.rows.clone(), &*it.sql))
        .collect()
}

#[test]
fn a_plan_has_the_text_of_each_statement() {
    use Action::{Delete, FixUp, Insert, Unlink, Update};
    let mut work = postgres::changes();
    let plan = work.plan().unwrap();
    assert_eq!(
        told(&plan),
        [
            (
                Insert,
                0..2,
                r#"INSERT INTO "staff" ("name", "boss", "id") VALUES ($1, $2, $3), ($4, $5, $6)"#
            ),
            (
                FixUp { parent: 0 },
                0..1,
                r#"UPDATE "staff" AS ordid_target SET "boss" = ordid_rows."boss" FROM (VALUES ($1, $2)) AS ordid_rows ("boss", "id") WHERE ordid_target."id" = ordid_rows."id""#
            ),
            (
                Update,
                0..2,
                r#"UPDATE "staff" AS ordid_target SET "name" = ordid_rows."name", "boss" = ordid_rows."boss" FROM (VALUES ($1, $2, $3), ($4, $5, $6)) AS ordid_rows ("name", "boss", "id") WHERE ordid_target."id" = ordid_rows."id""#
            ),
            (
                Update,
                0..1,
                r#"UPDATE "shop"."tags" AS ordid_target SET "id" = ordid_target."id" FROM (VALUES ($1)) AS ordid_rows ("id") WHERE ordid_target."id" = ordid_rows."id""#
            ),
            (
                Unlink { parent: 0 },
                0..1,
                r#"UPDATE "staff" SET "boss" = NULL WHERE "id" = $1"#
            ),
            (
                Delete,
                0..2,
                r#"DELETE FROM "staff" WHERE "id" IN ($1, $2)"#
            ),
        ]
    );
    assert_eq!((plan.rows(), plan.defers), (2, None));
    assert_eq!(work.len(), 7, "nothing is taken out");
    assert_eq!(
        UnitOfWork::<Sqlite>::new().plan().unwrap(),
        FlushPlan::default()
    );
}

#[test]
fn updates_go_row_by_row_on_mysql_alone() {
    let updates = |plan: &FlushPlan| -> Vec<_> {
        let told = told(plan).into_iter();
        told.filter(|(action, ..)| *action == Action::Update)
            .map(|(_, rows, sql)| (rows, sql.to_owned()))
            .collect()
    };
    let of_staff = "UPDATE `staff` SET `name` = ?, `boss` = ? WHERE `id` = ?".to_owned();
    let of_tags = "UPDATE `shop`.`tags` SET `id` = `id` WHERE `id` = ?".to_owned();
    assert_eq!(
        updates(&mysql::changes().plan().unwrap()),
        [(0..1, of_staff.clone()), (1..2, of_staff), (0..1, of_tags)]
    );
    assert_eq!(
        updates(&sqlite::changes().plan().unwrap())[0],
        (
            0..2,
            "WITH ordid_rows (`name`, `boss`, `id`) AS (VALUES (?, ?, ?), (?, ?, ?)) UPDATE \
             `staff` AS ordid_target SET `name` = ordid_rows.`name`, `boss` = \
             ordid_rows.`boss` FROM ordid_rows WHERE ordid_target.`id` = +ordid_rows.`id`"
                .to_owned()
        )
    );
}

#[test]
fn chunks_of_as_many_rows_share_their_text() {
    let plan = sqlite::tags(2_001).plan().unwrap();
    let tags = &plan.tables[0].statements;
    let rows: Vec<_> = tags.iter().map(|it| it.rows.clone()).collect();
    assert_eq!(rows, [0..1_000, 1_000..2_000, 2_000..2_001]);
    assert!(Arc::ptr_eq(&tags[0].sql, &tags[1].sql));
    let placeholders = [0, 2].map(|it: usize| tags[it].sql.matches('?').count());
    assert_eq!(placeholders, [1_000, 1]);
    assert_eq!(postgres::tags(1).plan().unwrap().rows(), 1);
    assert_eq!(mysql::tags(1).plan().unwrap().rows(), 1);
}

#[test]
fn what_cannot_be_sent_is_an_error_without_a_database() {
    let mut work = postgres::tags(1);
    work.add(postgres::Tag { id: id(0) });
    let error = work.plan().unwrap_err();
    assert!(error.is_plan());
    assert_eq!(
        error.to_string(),
        format!(
            "cannot plan the flush, nothing was sent: two rows of tags have the key {}; was an \
             entity added twice?",
            id::<TagId>(0)
        )
    );
}

/// Asserts at compile time that a backend has a column for a raw key.
fn has<DB: crate::backend::Backend, C: crate::DieselColumn<DB, R>, R: ordid_core::RawKey>() {}

macro_rules! implemented {
    ($($name:ident $column:ident: $raws:tt $($dialect:ident)+;)+) => {
        $($(implemented!(@ $dialect $column $raws);)+)+
    };
    (@ Postgres $column:ident $raws:tt) => { implemented!(of Pg, $column $raws); };
    (@ MySql $column:ident $raws:tt) => { implemented!(of Mysql, $column $raws); };
    (@ MariaDb $column:ident $raws:tt) => { implemented!(of Mysql, $column $raws); };
    (@ Sqlite $column:ident $raws:tt) => { implemented!(of Sqlite, $column $raws); };
    (@ $other:ident $column:ident $raws:tt) => {};
    (of $backend:ident, $column:ident [$($raw:ident)+]) => {
        $(has::<$backend, ordid_core::storage::column::$column, $raw>();)+
    };
}

#[test]
fn diesel_has_every_column_of_the_list() {
    use ordid_core::key::{Key192, ObjectId, PushId};

    ordid_core::__for_each_column! { implemented }
}
