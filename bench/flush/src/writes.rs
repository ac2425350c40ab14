//! Rows that are there, all or every second one: `upsert` and `update_columns` of a unit of work against the SQL that one
//! writes for it. An upsert of the unit of work says which rows were inserted, unless it need not (`unreported`). What is
//! written by hand does so only where it asks first, and is not safe against others that write the same rows.

use std::time::{Duration, Instant};

use bench_common::rates::{Gate, Rates, Role};
use ordid::{KeyType as _, OrderedKey as _};
use ordid_sqlx::{OnConflict, UnitOfWork};
use sqlx::{AssertSqlSafe, MySql, Pool, Postgres, SqlSafeStr as _, Sqlite, error::BoxDynError};

use crate::{
    Arguments, Name, Write,
    engine::{Engine, Result},
    form::{Form, FormOn, Values as _, orders::Order},
    handwritten::{Bound, Case, insert, insert_all, placeholders},
};

/// The SQL of an engine that one would write.
trait ByHand: Engine {
    /// The clause that makes an `INSERT` of orders an upsert.
    const ON_CONFLICT: &'static str;
    /// The text before and behind the placeholders of `(id, total)` that sets the totals of many rows; `None` where one
    /// writes a statement for each.
    const SET_TOTALS: Option<[&'static str; 2]>;

    /// Binds key and total, in the order of the statement.
    fn bind_total(order: &Order, values: &mut Bound<Self>) -> Outcome<BoxDynError>;

    /// Binds the key.
    fn bind_key(order: &Order, values: &mut Bound<Self>) -> Outcome<BoxDynError>;
}

type Outcome<E> = std::result::Result<(), E>;

macro_rules! by_hand {
    ($database:ty, $on_conflict:expr, $set_totals:expr, |$order:ident| [$($value:expr),+]) => {
        impl ByHand for $database {
            const ON_CONFLICT: &'static str = $on_conflict;
            const SET_TOTALS: Option<[&'static str; 2]> = $set_totals;

            fn bind_total($order: &Order, values: &mut Bound<Self>) -> Outcome<BoxDynError> {
                $(values.put($value)?;)+
                Ok(())
            }

            fn bind_key(order: &Order, values: &mut Bound<Self>) -> Outcome<BoxDynError> {
                values.put(order.id.to_raw())
            }
        }
    };
}

const EXCLUDED: &str = "ON CONFLICT (id) DO UPDATE SET customer_id = excluded.customer_id, \
    product = excluded.product, quantity = excluded.quantity, total = excluded.total, note = excluded.note";

by_hand!(
    Postgres,
    EXCLUDED,
    Some([
        "UPDATE orders SET total = new.total FROM (VALUES ",
        ") AS new (id, total) WHERE orders.id = new.id",
    ]),
    |order| [order.id.to_raw(), order.total]
);
by_hand!(
    Sqlite,
    EXCLUDED,
    Some([
        "WITH new (id, total) AS (VALUES ",
        ") UPDATE orders SET total = new.total FROM new WHERE orders.id = new.id",
    ]),
    |order| [order.id.to_raw(), order.total]
);
by_hand!(
    MySql,
    "ON DUPLICATE KEY UPDATE customer_id = VALUES(customer_id), product = VALUES(product), \
     quantity = VALUES(quantity), total = VALUES(total), note = VALUES(note)",
    None,
    |order| [order.total, order.id.to_raw()]
);

#[derive(Debug, Clone, Copy)]
enum Way {
    /// By the unit of work.
    Flush {
        /// Whether it says what became of each upserted row.
        reports: bool,
    },
    /// By hand.
    ByHand(ByHandWay),
}

#[derive(Debug, Clone, Copy)]
struct ByHandWay {
    /// How many rows a statement has.
    rows: usize,
    /// Whether it first asks which rows are there.
    asks: bool,
}

pub(crate) async fn engines(arguments: &Arguments, write: Write) -> Result<()> {
    println!(
        "\norders, {}",
        match write {
            Write::Upsert => "upserted: every second row is there",
            _ => "of which one column is updated",
        }
    );
    let data = Order::data(usize::try_from(arguments.rows)?);
    for name in &arguments.engine {
        match name {
            Name::Sqlite => engine::<Sqlite>(arguments, write, &data).await,
            Name::Postgres => engine::<Postgres>(arguments, write, &data).await,
            Name::Mariadb => engine::<MySql>(arguments, write, &data).await,
            Name::SqlServer => Ok(()),
        }?;
    }
    Ok(())
}

async fn engine<DB: ByHand>(
    arguments: &Arguments,
    write: Write,
    data: &<Order as Form>::Data,
) -> Result<()>
where
    Order: FormOn<DB>,
{
    println!();
    let place = match DB::place()? {
        Ok(place) => place,
        Err(reason) => {
            println!("{}: skipped: {reason}", DB::SERVER);
            return Ok(());
        }
    };
    let result = rounds::<DB>(arguments, write, data, &place).await;
    DB::remove(&place).await?;
    result
}

async fn rounds<DB: ByHand>(
    arguments: &Arguments,
    write: Write,
    data: &<Order as Form>::Data,
    place: &DB::Place,
) -> Result<()>
where
    Order: FormOn<DB>,
{
    let by_hand: &[usize] = match write {
        Write::Column if DB::SET_TOTALS.is_none() => &[1],
        _ => &[100, 500, 1_000],
    };
    let asked: &[usize] = match write {
        Write::Upsert => &[1_000],
        _ => &[],
    };
    let by_hand = by_hand.iter().map(|rows| (*rows, false));
    let asked = asked.iter().map(|rows| (*rows, true));
    let by_hand = by_hand.chain(asked);
    // The flush that does not say which rows existed is compared with statements that do not ask for it.
    let flushes: &[bool] = match write {
        Write::Upsert => &[false, true],
        _ => &[false],
    };
    let flushes = flushes
        .iter()
        .map(|reports| Way::Flush { reports: *reports });
    let ways: Vec<Way> = flushes
        .chain(by_hand.map(|(rows, asks)| Way::ByHand(ByHandWay { rows, asks })))
        .collect();
    let shown = ways.iter().map(|way| match way {
        Way::Flush { reports: true } => ("ordid flush, reported".to_owned(), Role::Other),
        Way::Flush { .. } => ("ordid flush".to_owned(), Role::Flush),
        Way::ByHand(ByHandWay { rows, asks: true }) => {
            (format!("by hand, asked, {rows} rows"), Role::Peer)
        }
        Way::ByHand(ByHandWay { rows, .. }) => (format!("by hand, {rows} rows"), Role::Peer),
    });
    let gate = Gate {
        best: Some(0.95),
        row_by_row: None,
    };
    let mut rates = Rates::new(shown.collect(), gate);
    let mut version = String::new();
    for round in 0..arguments.rounds {
        for turn in 0..ways.len() {
            let index = (usize::try_from(round)? + turn) % ways.len();
            let pool = DB::create(place).await?;
            version = DB::version(&pool).await?;
            let time = run::<DB>(&pool, arguments, write, data, ways[index]).await?;
            pool.close().await;
            rates.add(index, f64::from(arguments.rows) / time.as_secs_f64());
        }
    }
    println!("{}: {version}", DB::SERVER);
    print!("{rates}");
    Ok(())
}

/// Runs a way once and returns how long it took.
async fn run<DB: ByHand>(
    pool: &Pool<DB>,
    arguments: &Arguments,
    write: Write,
    data: &<Order as Form>::Data,
    way: Way,
) -> Result<Duration>
where
    Order: FormOn<DB>,
{
    let tables = Order::create_tables(&DB::TYPES, !arguments.no_foreign_keys);
    DB::run(pool, tables).await?;
    DB::run(pool, ordid_sqlx::flushes_table::<DB>().to_owned()).await?;
    let mut parents = UnitOfWork::new();
    Order::add_parents(data, &mut parents);
    parents.flush(pool).await?;
    let rows = Order::rows(data);
    // The existing rows have other totals.
    let there = rows
        .iter()
        .step_by(if write == Write::Upsert { 2 } else { 1 });
    let there: Vec<Order> = there
        .map(|order| Order {
            total: 0,
            ..order.clone()
        })
        .collect();
    insert_all::<DB, Order>(pool, &there, Case::Prebuilt(500)).await?;
    let settled = [Order::PARENT_TABLES, &[Order::TABLE]].concat();
    DB::run(pool, DB::settle(&settled)).await?;

    let time = match way {
        Way::Flush { reports } => {
            let on_conflict = || match reports {
                true => OnConflict::key(),
                false => OnConflict::key().unreported(),
            };
            let mut work = UnitOfWork::<DB>::new();
            for order in rows {
                match write {
                    Write::Upsert => {
                        work.try_upsert(order.clone(), on_conflict())?;
                    }
                    _ => work.update_columns(order.clone(), Order::total),
                }
            }
            let started = Instant::now();
            work.flush(pool).await?;
            started.elapsed()
        }
        Way::ByHand(way) => {
            let started = Instant::now();
            by_hand::<DB>(pool, write, rows, way).await?;
            started.elapsed()
        }
    };
    let (found, expected) = (
        DB::summary(pool, Order::SUMMARY).await?,
        Order::summary(data),
    );
    if found != expected {
        return Err(format!("{way:?} left {found:?} in {}, not {expected:?}", DB::SERVER).into());
    }
    Ok(time)
}

async fn by_hand<DB: ByHand>(
    pool: &Pool<DB>,
    write: Write,
    rows: &[Order],
    ByHandWay { rows: size, asks }: ByHandWay,
) -> Outcome<sqlx::Error>
where
    Order: FormOn<DB>,
{
    let columns = Order::COLUMNS.len();
    let text = |rows: usize| {
        let sql = match (write, DB::SET_TOTALS) {
            (Write::Upsert, _) => {
                let values = placeholders::<DB>(rows, columns);
                format!("{}VALUES {values} {}", insert::<Order>(), DB::ON_CONFLICT)
            }
            (_, Some([before, behind])) => {
                format!("{before}{}{behind}", placeholders::<DB>(rows, 2))
            }
            (_, None) => "UPDATE orders SET total = ? WHERE id = ?".to_owned(),
        };
        AssertSqlSafe(sql).into_sql_str()
    };
    let asking = |rows: usize| {
        let keys: Vec<_> = (1..=rows).map(DB::placeholder).collect();
        let sql = format!("SELECT id FROM orders WHERE id IN ({})", keys.join(", "));
        AssertSqlSafe(sql).into_sql_str()
    };
    let (full, question) = (text(size), asking(size));
    let mut transaction = pool.begin().await?;
    for chunk in rows.chunks(size) {
        let sql = if chunk.len() == size {
            full.clone()
        } else {
            text(chunk.len())
        };
        if asks {
            let sql = match chunk.len() == size {
                true => question.clone(),
                false => asking(chunk.len()),
            };
            DB::bound(&mut transaction, sql, chunk, 1, DB::bind_key).await?;
        }
        match write {
            Write::Upsert => DB::insert(&mut transaction, sql, chunk).await?,
            _ => DB::bound(&mut transaction, sql, chunk, 2, DB::bind_total).await?,
        }
    }
    transaction.commit().await
}
