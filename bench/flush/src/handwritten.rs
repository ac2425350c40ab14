//! What is written without ordid: the same rows into the same table, in one transaction.
//!
//! All of it keeps its prepared statements, as SQLx does unless told otherwise: a statement that
//! is not kept is parsed and planned again for every chunk.

use sqlx::{AssertSqlSafe, Pool, SqlSafeStr, SqlStr};

use crate::{engine::Engine, rows::Flight};

/// A way of inserting the flights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Case {
    /// `UnitOfWork::flush`.
    Flush,
    /// `QueryBuilder::push_values`, so many rows a statement: what SQLx documents.
    PushValues(usize),
    /// The statement's text built once, its parameters bound directly.
    Prebuilt(usize),
    /// `INSERT .. SELECT * FROM UNNEST(..)`, one array a column: PostgreSQL only.
    Unnest(usize),
    /// `COPY .. FROM STDIN (FORMAT binary)`, so many rows a command: PostgreSQL only.
    Copy(usize),
    /// One row a statement.
    RowByRow,
    /// The rows are in another table of the database already: what the server takes for them with
    /// no client in the way.
    ServerAlone,
}

impl Case {
    /// Returns the cases of an engine, in the order of the report.
    pub(crate) fn all<DB: Engine>() -> Vec<Self> {
        let most = DB::MAX_PARAMETERS / COLUMNS.len();
        let mut cases = vec![Self::Flush];
        cases.extend([100, 500, 1000, most].map(Self::PushValues));
        cases.extend([100, 500, 1000, most].map(Self::Prebuilt));
        if DB::UNNEST_AND_COPY {
            cases.extend([1000, 10_000].map(Self::Unnest));
            cases.extend([1000, 10_000, 100_000].map(Self::Copy));
        }
        cases.extend([Self::RowByRow, Self::ServerAlone]);
        cases
    }

    pub(crate) fn name(self) -> String {
        match self {
            Self::Flush => "ordid flush".to_owned(),
            Self::PushValues(rows) => format!("push_values, {rows} rows"),
            Self::Prebuilt(rows) => format!("prebuilt text, {rows} rows"),
            Self::Unnest(rows) => format!("unnest, {rows} rows"),
            Self::Copy(rows) => format!("copy, {rows} rows"),
            Self::RowByRow => "row by row".to_owned(),
            Self::ServerAlone => "server alone, no client".to_owned(),
        }
    }

    /// Whether this is multi-row code that `flush` is compared with.
    pub(crate) fn is_peer(self) -> bool {
        matches!(
            self,
            Self::PushValues(_) | Self::Prebuilt(_) | Self::Unnest(_)
        )
    }
}

pub(crate) const COLUMNS: [&str; 24] = [
    "id",
    "airline_id",
    "plane_id",
    "origin_id",
    "dest_id",
    "year",
    "month",
    "day",
    "dep_time",
    "sched_dep_time",
    "dep_delay",
    "arr_time",
    "sched_arr_time",
    "arr_delay",
    "carrier",
    "flight",
    "tailnum",
    "origin",
    "dest",
    "air_time",
    "distance",
    "hour",
    "minute",
    "time_hour",
];

/// Returns `INSERT INTO flights (id, ..) `.
pub(crate) fn insert() -> String {
    format!("INSERT INTO flights ({}) ", COLUMNS.join(", "))
}

/// Inserts the flights as a case says that is not [`Case::Flush`].
pub(crate) async fn insert_all<DB: Engine>(
    pool: &Pool<DB>,
    flights: &[Flight],
    case: Case,
) -> Result<(), sqlx::Error> {
    let mut transaction = pool.begin().await?;
    match case {
        Case::PushValues(rows) => {
            for chunk in flights.chunks(rows) {
                DB::push_values(&mut transaction, chunk).await?;
            }
        }
        Case::Unnest(rows) => {
            for chunk in flights.chunks(rows) {
                DB::unnest(&mut transaction, chunk).await?;
            }
        }
        Case::Copy(rows) => {
            for chunk in flights.chunks(rows) {
                DB::copy(&mut transaction, chunk).await?;
            }
        }
        Case::Prebuilt(rows) => prebuilt::<DB>(&mut transaction, flights, rows).await?,
        Case::RowByRow => prebuilt::<DB>(&mut transaction, flights, 1).await?,
        Case::ServerAlone => {
            let sql = format!("{}SELECT * FROM {STAGED}", insert());
            DB::execute_raw(&mut transaction, sql).await?;
        }
        Case::Flush => unreachable!("not written by hand"),
    }
    transaction.commit().await
}

/// The table that [`Case::ServerAlone`] copies from.
const STAGED: &str = "staged_flights";

/// Puts the flights into [`STAGED`], in order.
pub(crate) async fn stage<DB: Engine>(
    pool: &Pool<DB>,
    flights: &[Flight],
) -> Result<(), sqlx::Error> {
    let mut transaction = pool.begin().await?;
    let sql = format!("CREATE TABLE {STAGED} AS SELECT * FROM flights");
    DB::execute_raw(&mut transaction, sql).await?;
    for chunk in flights.chunks(500) {
        let sql = statement::<DB>(chunk.len())
            .as_str()
            .replacen("flights", STAGED, 1);
        DB::insert(&mut transaction, AssertSqlSafe(sql).into_sql_str(), chunk).await?;
    }
    transaction.commit().await
}

async fn prebuilt<DB: Engine>(
    connection: &mut DB::Connection,
    flights: &[Flight],
    rows: usize,
) -> Result<(), sqlx::Error> {
    let full = statement::<DB>(rows);
    for chunk in flights.chunks(rows) {
        let sql = if chunk.len() == rows {
            full.clone()
        } else {
            statement::<DB>(chunk.len())
        };
        DB::insert(connection, sql, chunk).await?;
    }
    Ok(())
}

fn statement<DB: Engine>(rows: usize) -> SqlStr {
    let mut sql = insert() + "VALUES ";
    for row in 0..rows {
        sql += if row == 0 { "(" } else { ", (" };
        for column in 0..COLUMNS.len() {
            if column > 0 {
                sql += ", ";
            }
            sql += &DB::placeholder(row * COLUMNS.len() + column + 1);
        }
        sql += ")";
    }
    AssertSqlSafe(sql).into_sql_str()
}

/// Runs an expression for each value of a row, in the order of the columns. Keys go as the `Uuid`s
/// that hand-written code holds, texts by reference.
macro_rules! for_each_value {
    ($flight:ident, $value:ident => $bind:expr) => {
        crate::handwritten::for_each_value!(
            [$value => $bind]
            ::ordid::KeyType::to_raw($flight.id), ::ordid::KeyType::to_raw($flight.airline_id),
            $flight.plane_id.map(::ordid::KeyType::to_raw), $flight.origin_id.map(::ordid::KeyType::to_raw),
            $flight.dest_id.map(::ordid::KeyType::to_raw),
            $flight.year, $flight.month, $flight.day,
            $flight.dep_time, $flight.sched_dep_time, $flight.dep_delay,
            $flight.arr_time, $flight.sched_arr_time, $flight.arr_delay,
            $flight.carrier.as_str(), $flight.flight, $flight.tailnum.as_deref(),
            $flight.origin.as_str(), $flight.dest.as_str(),
            $flight.air_time, $flight.distance, $flight.hour, $flight.minute,
            $flight.time_hour.as_str()
        )
    };
    ([$name:ident => $bind:expr] $($value:expr),*) => {
        $({
            let $name = $value;
            $bind;
        })*
    };
}

pub(crate) use for_each_value;
