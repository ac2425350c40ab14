//! Diesel, synchronous.

macro_rules! on_diesel {
    (
        $module:ident, $engine:ident, $connection:ty, $key:ty,
        $(begin: $begin:literal,)?
        also: $also:expr,
        copy: |$copying:ident, $copied:ident| $copy:expr
    ) => {
        pub(super) mod $module {
            use std::time::{Duration, Instant};

            use diesel::prelude::*;
            use ordid::OrderedKey;
            use ordid_diesel::UnitOfWork;

            use crate::{
                Result,
                library::{Case, Library, cases},
                orders::{CustomerId, Line, OrderId},
                place::{Engine, Place},
            };

            type Key = $key;

            diesel::table! {
                use diesel::sql_types::*;
                use super::Key;

                orders (id) {
                    id -> Key,
                    customer_id -> Key,
                    product -> Text,
                    quantity -> Integer,
                    total -> BigInt,
                    note -> Nullable<Text>,
                }
            }

            #[derive(Insertable, OrderedKey)]
            #[diesel(table_name = orders, treat_none_as_default_value = false)]
            #[ordid(diesel)]
            struct Order {
                #[ordid(key)]
                id: OrderId,
                // Its table is filled without a unit of work.
                customer_id: CustomerId,
                product: String,
                quantity: i32,
                total: i64,
                note: Option<String>,
            }

            impl From<Line> for Order {
                fn from(line: Line) -> Self {
                    Self {
                        id: line.id,
                        customer_id: line.customer_id,
                        product: line.product,
                        quantity: line.quantity,
                        total: line.total,
                        note: line.note,
                    }
                }
            }

            pub(in crate::library) struct OnDiesel;

            impl Library for OnDiesel {
                fn name(&self) -> &'static str {
                    "Diesel"
                }

                fn cases(&self) -> Vec<Case> {
                    let mut cases = cases(Engine::$engine);
                    let also: &[Case] = &$also;
                    cases.extend(also);
                    cases
                }

                fn title(&self, case: Case) -> String {
                    match case {
                        Case::Flush => "ordid flush".to_owned(),
                        Case::Many(rows) => format!("insert_into values, {rows} rows"),
                        Case::Copy => "copy_from from_insertable".to_owned(),
                        Case::One => "insert_into values, one row".to_owned(),
                    }
                }

                fn run(&self, place: &Place, lines: &[Line], case: Case) -> Result<Duration> {
                    let mut connection = <$connection>::establish(place.url())?;
                    $(diesel::connection::SimpleConnection::batch_execute(&mut connection, $begin)?;)?
                    let rows: Vec<Order> = lines.iter().cloned().map(Order::from).collect();
                    if case == Case::Flush {
                        let mut work = UnitOfWork::new();
                        work.reserve::<Order>(rows.len());
                        for row in rows {
                            work.try_add(row)?;
                        }
                        let started = Instant::now();
                        work.flush(&mut connection)?;
                        return Ok(started.elapsed());
                    }
                    let started = Instant::now();
                    connection.transaction(|connection| {
                        match case {
                            Case::Many(many) => {
                                for rows in rows.chunks(many) {
                                    diesel::insert_into(orders::table)
                                        .values(rows)
                                        .execute(connection)?;
                                }
                            }
                            Case::Copy => {
                                let ($copying, $copied) = (&mut *connection, &rows);
                                $copy
                            }
                            Case::One => {
                                for row in &rows {
                                    diesel::insert_into(orders::table)
                                        .values(row)
                                        .execute(connection)?;
                                }
                            }
                            Case::Flush => unreachable!("above"),
                        }
                        diesel::QueryResult::Ok(())
                    })?;
                    Ok(started.elapsed())
                }
            }
        }
    };
}

on_diesel! {
    sqlite, Sqlite, diesel::SqliteConnection, diesel::sql_types::Binary,
    begin: "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON",
    also: [],
    copy: |_connection, _rows| unreachable!("SQLite has no COPY")
}

on_diesel! {
    postgres, Postgres, diesel::PgConnection, diesel::sql_types::Uuid,
    also: [Case::Copy],
    copy: |connection, rows| {
        diesel::copy_from(orders::table)
            .from_insertable(rows)
            .execute(connection)?;
    }
}

on_diesel! {
    mariadb, Mariadb, diesel::MysqlConnection, diesel::sql_types::Binary,
    also: [],
    copy: |_connection, _rows| unreachable!("MariaDB has no COPY")
}
