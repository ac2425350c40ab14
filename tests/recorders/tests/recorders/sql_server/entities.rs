//! Entities, a client, and what a log says.

use std::net::SocketAddr;

use ordid::{KeyType, OrderedKey, uuid::Uuid};
use ordid_recorders::tds::{Answer, Column, Failure, Received, Recorder, Type};
use ordid_tiberius::UnitOfWork;
use tiberius::{AuthMethod, Client, Config, EncryptionLevel};
use tokio::net::TcpStream;
use tokio_util::compat::{Compat, TokioAsyncWriteCompatExt};

pub(crate) type Tcp = Client<Compat<TcpStream>>;

/// Rises in a `uniqueidentifier` by nature.
#[derive(KeyType)]
#[ordid(scheme = uuid_v8_sql_server, tiberius)]
pub(crate) struct CustomerId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, prefix = "ord", tiberius(sql_server = unique_identifier_permuted))]
pub(crate) struct OrderId(Uuid);

/// Of both flavours, each in its column.
#[derive(KeyType)]
#[ordid(
    scheme = uuid_v7,
    tiberius(
        sql_server = unique_identifier_permuted,
        babelfish = babelfish_unique_identifier
    )
)]
pub(crate) struct TreeId(Uuid);

#[derive(OrderedKey, Debug)]
#[ordid(table = "customers")]
pub(crate) struct Customer {
    #[ordid(key)]
    pub(crate) id: CustomerId,
    pub(crate) name: String,
    pub(crate) note: Option<String>,
}

#[derive(OrderedKey, Debug)]
#[ordid(schema = "shop", table = "my]orders", columns)]
pub(crate) struct Order {
    #[ordid(key)]
    pub(crate) id: OrderId,
    #[ordid(parent)]
    pub(crate) customer: CustomerId,
    pub(crate) total: i64,
}

impl Order {
    pub(crate) fn of(customer: CustomerId, total: i64) -> Self {
        Self {
            id: OrderId::generate(),
            customer,
            total,
        }
    }
}

#[derive(OrderedKey, Debug)]
#[ordid(table = "trees")]
pub(crate) struct Tree {
    #[ordid(key)]
    pub(crate) id: TreeId,
    #[ordid(parent)]
    pub(crate) parent: Option<TreeId>,
}

#[derive(OrderedKey)]
#[ordid(table = "events")]
pub(crate) struct Event {
    #[ordid(key)]
    pub(crate) id: TreeId,
}

/// A field of each type.
#[derive(OrderedKey)]
#[ordid(table = "readings")]
pub(crate) struct Reading {
    #[ordid(key)]
    id: OrderId,
    flag: bool,
    tiny: u8,
    small: i16,
    medium: i32,
    large: u32,
    real: f32,
    double: f64,
    text: &'static str,
    nothing: Option<String>,
    bytes: Vec<u8>,
    digest: [u8; 4],
    other: Uuid,
    maybe: Option<i64>,
    amount: tiberius::numeric::Decimal,
    day: chrono_date::Date,
    at: chrono_date::At,
    when: chrono_date::When,
}

/// The types of both libraries of time.
mod chrono_date {
    pub(crate) type Date = chrono::NaiveDate;
    pub(crate) type At = chrono::DateTime<chrono::Utc>;
    pub(crate) type When = time::PrimitiveDateTime;
}

impl Reading {
    pub(crate) fn new(number: u8) -> Self {
        let at = chrono::DateTime::from_timestamp(1_700_000_000 + i64::from(number), 123_456_700);
        let at = at.expect("a moment that chrono has");
        let day =
            time::Date::from_ordinal_date(2024, 1 + u16::from(number)).expect("a day of 2024");
        Self {
            id: OrderId::generate(),
            flag: true,
            tiny: number,
            small: -i16::from(number),
            medium: i32::from(number),
            large: 4_000_000_000,
            real: 1.5,
            double: -2.25,
            text: "ä\u{1f600}",
            nothing: None,
            bytes: vec![number; 3],
            digest: [1, 2, 3, number],
            other: Uuid::from_u128(number.into()),
            maybe: Some(-1),
            amount: tiberius::numeric::Decimal::new(i64::from(number) * 10 + 5, 1),
            day: at.date_naive(),
            at,
            when: time::PrimitiveDateTime::new(day, time::Time::MIDNIGHT),
        }
    }
}

/// As many orders of a customer, of rising totals.
pub(crate) fn orders_of(customer: CustomerId, number: i64) -> UnitOfWork {
    let mut work = UnitOfWork::new();
    for total in 0..number {
        work.add(Order::of(customer, total));
    }
    work
}

pub(crate) fn orders() -> Vec<Column> {
    vec![
        Column::new("id", Type::uniqueidentifier()),
        Column::new("customer", Type::uniqueidentifier()),
        Column::new("total", Type::bigint_not_null()),
    ]
}

pub(crate) fn customers() -> Vec<Column> {
    vec![
        Column::new("id", Type::uniqueidentifier()),
        Column::new("name", Type::nvarchar(100)),
        Column::new("note", Type::nvarchar_max()),
    ]
}

pub(crate) fn readings() -> Vec<Column> {
    vec![
        Column::new("id", Type::uniqueidentifier()),
        Column::new("flag", Type::bit()),
        Column::new("tiny", Type::int(1)),
        Column::new("small", Type::int(2)),
        Column::new("medium", Type::int(4)),
        Column::new("large", Type::int(8)),
        Column::new("real", Type::float(4)),
        Column::new("double", Type::float(8)),
        Column::new("text", Type::nvarchar(20)),
        Column::new("nothing", Type::varchar(20)),
        Column::new("bytes", Type::varbinary(8)),
        Column::new("digest", Type::binary(4)),
        Column::new("other", Type::uniqueidentifier()),
        Column::new("maybe", Type::int(8)),
        Column::new("amount", Type::decimal(18, 4)),
        Column::new("day", Type::date()),
        Column::new("at", Type::datetime2(7)),
        Column::new("when", Type::datetime2(7)),
    ]
}

pub(crate) async fn connect(recorder: &Recorder) -> Tcp {
    let client = connect_to(recorder.address()).await;
    client.expect("the recorder listens, and takes every login")
}

/// Starts a recorder, and connects a client to it.
pub(crate) async fn recorded() -> (Recorder, Tcp) {
    let recorder = Recorder::start().expect("a port for the recorder");
    let client = connect(&recorder).await;
    (recorder, client)
}

/// Connects to a recorder that has this address.
pub(crate) async fn connect_to(address: SocketAddr) -> tiberius::Result<Tcp> {
    let mut config = Config::new();
    config.authentication(AuthMethod::sql_server("ada", "secret"));
    config.encryption(EncryptionLevel::NotSupported);
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Client::connect(config, stream.compat_write()).await
}

pub(crate) fn texts(log: &[Received]) -> Vec<String> {
    log.iter().map(|received| received.request.text()).collect()
}

/// The transaction of each request; a bulk load has none of its own.
pub(crate) fn sent_in(log: &[Received]) -> Vec<u64> {
    log.iter().map(|received| received.transaction).collect()
}

/// An error after which the server hangs up.
pub(crate) fn log_is_not_available() -> Answer {
    Answer::Failure(Failure {
        number: 9001,
        class: 21,
        message: "The log is not available".to_owned(),
        rolls_back: false,
    })
}
