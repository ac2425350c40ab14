//! tokio-postgres, against its own `COPY` and its own prepared statement.

use std::{
    pin::pin,
    time::{Duration, Instant},
};

use ordid::OrderedKey;
use ordid_tokio_postgres::UnitOfWork;
use tokio_postgres::{
    NoTls,
    binary_copy::BinaryCopyInWriter,
    types::{ToSql, Type},
};

use super::{Case, Library, cases};
use crate::{
    Result,
    orders::{CustomerId, Line, OrderId},
    place::{Engine, Place},
};

#[derive(Clone, OrderedKey)]
#[ordid(table = "orders")]
struct Order {
    id: OrderId,
    customer_id: CustomerId,
    product: String,
    quantity: i32,
    total: i64,
    note: Option<String>,
}

impl Order {
    fn values(&self) -> [&(dyn ToSql + Sync); 6] {
        [
            &self.id,
            &self.customer_id,
            &self.product,
            &self.quantity,
            &self.total,
            &self.note,
        ]
    }
}

const COLUMNS: &str = "orders (id, customer_id, product, quantity, total, note)";

pub(super) struct OnTokioPostgres;

impl Library for OnTokioPostgres {
    fn name(&self) -> &'static str {
        "tokio-postgres"
    }

    fn cases(&self) -> Vec<Case> {
        let mut cases = cases(Engine::Postgres);
        cases.push(Case::Copy);
        cases
    }

    fn title(&self, case: Case) -> String {
        match case {
            Case::Flush => "ordid flush".to_owned(),
            Case::Many(rows) => format!("a prepared INSERT, {rows} rows"),
            Case::Copy => "BinaryCopyInWriter".to_owned(),
            Case::One => "a prepared INSERT of one row".to_owned(),
        }
    }

    fn run(&self, place: &Place, lines: &[Line], case: Case) -> Result<Duration> {
        let orders = lines.iter().cloned().map(|line| Order {
            id: line.id,
            customer_id: line.customer_id,
            product: line.product,
            quantity: line.quantity,
            total: line.total,
            note: line.note,
        });
        let orders: Vec<Order> = orders.collect();
        tokio::runtime::Handle::current().block_on(insert(place, orders, case))
    }
}

async fn insert(place: &Place, orders: Vec<Order>, case: Case) -> Result<Duration> {
    let (mut client, connection) = tokio_postgres::connect(place.url(), NoTls).await?;
    tokio::spawn(connection);
    let started;
    match case {
        Case::Flush => {
            let mut work = UnitOfWork::new();
            for order in orders {
                work.add(order);
            }
            started = Instant::now();
            let flushed = work.flush(&mut client).await?;
            let elapsed = started.elapsed();
            let not_copied = flushed.tables.iter().find_map(|table| table.not_bulk);
            return match not_copied.filter(|_| flushed.rows() >= 1_000) {
                None => Ok(elapsed),
                Some(reason) => Err(format!("rows were not copied: {reason}").into()),
            };
        }
        Case::Copy => {
            let types = [
                Type::UUID,
                Type::UUID,
                Type::TEXT,
                Type::INT4,
                Type::INT8,
                Type::TEXT,
            ];
            started = Instant::now();
            let transaction = client.transaction().await?;
            let sql = format!("COPY {COLUMNS} FROM STDIN (FORMAT binary)");
            let sink = transaction.copy_in(&sql).await?;
            let mut writer = pin!(BinaryCopyInWriter::new(sink, &types));
            for order in &orders {
                writer.as_mut().write(&order.values()).await?;
            }
            writer.finish().await?;
            transaction.commit().await?;
        }
        Case::Many(_) | Case::One => {
            let many = if let Case::Many(many) = case { many } else { 1 };
            let sql = |rows: usize| {
                let places = (0..rows).map(|row| {
                    let places: Vec<_> = (1..=6).map(|it| format!("${}", row * 6 + it)).collect();
                    format!("({})", places.join(", "))
                });
                let places: Vec<_> = places.collect();
                format!("INSERT INTO {COLUMNS} VALUES {}", places.join(", "))
            };
            started = Instant::now();
            let transaction = client.transaction().await?;
            let prepared = transaction.prepare(&sql(many)).await?;
            for rows in orders.chunks(many) {
                let values: Vec<_> = rows.iter().flat_map(Order::values).collect();
                match rows.len() == many {
                    true => transaction.execute(&prepared, &values).await?,
                    false => transaction.execute(&sql(rows.len()), &values).await?,
                };
            }
            transaction.commit().await?;
        }
    }
    Ok(started.elapsed())
}
