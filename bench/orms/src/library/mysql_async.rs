//! mysql_async, against its own prepared statement of many rows.

use std::time::{Duration, Instant};

use mysql_async::{Conn, Opts, Params, TxOpts, Value, prelude::Queryable as _};
use ordid::OrderedKey;
use ordid_mysql_async::UnitOfWork;

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
    fn values(self) -> [Value; 6] {
        [
            self.id.into(),
            self.customer_id.into(),
            self.product.into(),
            self.quantity.into(),
            self.total.into(),
            self.note.into(),
        ]
    }
}

pub(super) struct OnMysqlAsync;

impl Library for OnMysqlAsync {
    fn name(&self) -> &'static str {
        "mysql_async"
    }

    fn cases(&self) -> Vec<Case> {
        cases(Engine::Mariadb)
    }

    fn title(&self, case: Case) -> String {
        match case {
            Case::Flush => "ordid flush".to_owned(),
            Case::Many(rows) => format!("exec_drop, {rows} rows"),
            Case::One => "exec_drop of one row".to_owned(),
            Case::Copy => unreachable!("MySQL has no COPY"),
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
        tokio::runtime::Handle::current().block_on(insert(place.url(), orders, case))
    }
}

async fn insert(url: &str, orders: Vec<Order>, case: Case) -> Result<Duration> {
    let mut conn = Conn::new(Opts::from_url(url)?).await?;
    let started;
    match case {
        Case::Flush => {
            let mut work = UnitOfWork::new();
            for order in orders {
                work.add(order);
            }
            started = Instant::now();
            work.flush_on(&mut conn).await?;
        }
        Case::Many(_) | Case::One | Case::Copy => {
            let many = if let Case::Many(many) = case { many } else { 1 };
            let sql = |rows: usize| {
                let rows = vec!["(?, ?, ?, ?, ?, ?)"; rows].join(", ");
                format!(
                    "INSERT INTO orders (id, customer_id, product, quantity, total, note) VALUES {rows}"
                )
            };
            started = Instant::now();
            let mut transaction = conn.start_transaction(TxOpts::default()).await?;
            let prepared = transaction.prep(sql(many)).await?;
            let mut orders = orders.into_iter();
            while orders.len() > 0 {
                let rows = orders.len().min(many);
                let mut values = Vec::with_capacity(rows * 6);
                orders
                    .by_ref()
                    .take(rows)
                    .for_each(|order| values.extend(order.values()));
                let values = Params::Positional(values);
                match rows == many {
                    true => transaction.exec_drop(&prepared, values).await?,
                    false => transaction.exec_drop(sql(rows), values).await?,
                }
            }
            transaction.commit().await?;
        }
    }
    let elapsed = started.elapsed();
    conn.disconnect().await?;
    Ok(elapsed)
}
