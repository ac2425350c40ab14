//! SQL Server's wire: `ordid-tiberius` beside tiberius' own bulk insert, against the same peer.
//!
//! There is no server. The peer is the recorder of `tests/recorders`, in this process, which reads every
//! value and keeps it until the round is checked: what is compared is what each of the two takes to
//! make and send the rows, with what the peer takes to read them on top of both.

use std::time::{Duration, Instant};

use bench_common::rates::{Gate, Rates, Role};
use ordid::{KeyType as _, OrderedKey as _};
use ordid_recorders::tds::{Column, Recorder, Request, Type};
use ordid_tiberius::UnitOfWork;
use tiberius::{AuthMethod, Client, Config, EncryptionLevel, IntoSql as _, TokenRow};
use tokio::net::TcpStream;
use tokio_util::compat::{Compat, TokioAsyncWriteCompatExt as _};

use crate::{Arguments, engine::Result, form::orders::Order};

#[derive(Clone, Copy)]
enum Case {
    Flush,
    BulkInsert,
}

const CASES: [(Case, &str, Role); 2] = [
    (Case::Flush, "ordid flush", Role::Flush),
    (Case::BulkInsert, "tiberius bulk_insert", Role::Peer),
];

const GATE: Gate = Gate {
    best: Some(0.95),
    row_by_row: None,
};

/// The table's name, as both quote it.
const TABLE: &str = "[orders]";

pub(crate) async fn rounds(arguments: &Arguments, orders: &[Order]) -> Result<()> {
    let wanted = |name: &str| {
        arguments.case.is_empty()
            || arguments
                .case
                .iter()
                .any(|text| name.contains(text.as_str()))
    };
    let cases: Vec<_> = CASES
        .into_iter()
        .filter(|(_, name, _)| wanted(name))
        .collect();
    let shown = cases
        .iter()
        .map(|(_, name, role)| ((*name).to_owned(), *role));
    let mut rates = Rates::new(shown.collect(), GATE);
    for round in 0..arguments.rounds {
        for turn in 0..cases.len() {
            let index = (usize::try_from(round)? + turn) % cases.len();
            let time = run(cases[index].0, orders).await?;
            rates.add(index, f64::from(arguments.rows) / time.as_secs_f64());
        }
    }
    println!("SQL Server's wire: tiberius and the recorder of tests/recorders, no server");
    print!("{rates}");
    Ok(())
}

/// Runs a case once, over a connection of its own, and returns how long it took.
async fn run(case: Case, orders: &[Order]) -> Result<Duration> {
    let recorder = Recorder::start()?;
    recorder.table(
        TABLE,
        vec![
            Column::new("id", Type::uniqueidentifier()),
            Column::new("customer_id", Type::uniqueidentifier()),
            Column::new("product", Type::nvarchar(20)),
            Column::new("quantity", Type::int(4)),
            Column::new("total", Type::int(8)),
            Column::new("note", Type::nvarchar(100)),
        ],
    );
    let mut client = connect(&recorder).await?;
    let orders = orders.to_vec();
    let expected = orders.len();
    let time = match case {
        Case::Flush => {
            let mut work = UnitOfWork::new();
            work.reserve::<Order>(orders.len());
            orders.into_iter().for_each(|order| _ = work.add(order));
            let started = Instant::now();
            let flushed = work.flush(&mut client).await?;
            let time = started.elapsed();
            let loaded: usize = flushed.tables.iter().map(|table| table.bulk).sum();
            if loaded != expected {
                return Err(format!("{loaded} of {expected} rows went by bulk load").into());
            }
            time
        }
        Case::BulkInsert => {
            let started = Instant::now();
            bulk_insert(&mut client, &orders).await?;
            started.elapsed()
        }
    };
    let received: usize = recorder
        .take()
        .iter()
        .map(|received| match &received.request {
            Request::Bulk(bulk) => bulk.rows.len(),
            _ => 0,
        })
        .sum();
    if received != expected {
        return Err(format!("{received} rows came, not {expected}").into());
    }
    Ok(time)
}

async fn connect(recorder: &Recorder) -> Result<Client<Compat<TcpStream>>> {
    let mut config = Config::new();
    config.authentication(AuthMethod::sql_server("ada", "secret"));
    config.encryption(EncryptionLevel::NotSupported);
    let stream = TcpStream::connect(recorder.address()).await?;
    stream.set_nodelay(true)?;
    Ok(Client::connect(config, stream.compat_write()).await?)
}

/// What is written without ordid: one bulk insert in one transaction.
async fn bulk_insert(
    client: &mut Client<Compat<TcpStream>>,
    orders: &[Order],
) -> tiberius::Result<()> {
    client.begin_transaction().await?;
    let mut request = client.bulk_insert_columns(TABLE, Order::COLUMNS).await?;
    for order in orders {
        let mut row = TokenRow::with_capacity(Order::COLUMNS.len());
        row.push(order.id.to_raw().into_sql());
        row.push(order.customer_id.to_raw().into_sql());
        row.push(order.product.as_str().into_sql());
        row.push(order.quantity.into_sql());
        row.push(order.total.into_sql());
        row.push(order.note.as_deref().into_sql());
        request.send(row).await?;
    }
    request.finalize().await?;
    client.commit_transaction().await
}
