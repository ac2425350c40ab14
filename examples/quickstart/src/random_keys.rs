//! The comparison: the same flights under random keys.
//!
//! [`Sink`] is what an entity hands its columns to. `ordid-sqlx` has one that binds them as they
//! are; this one puts a random UUID where the flight's own key belongs, and everything else through
//! to a plain `sqlx::QueryBuilder`.

use ordid::{Fields, OrderedKey, Sink, storage::Dialect};
use ordid_sqlx::Backend;
use sqlx::{Database, Encode, QueryBuilder, Type};
use uuid::Uuid;

use crate::entities::{AirlineId, AirportId, Flight, FlightId, PlaneId};

/// Returns one statement that inserts these flights as they come: nothing can order random keys by
/// the time of their rows, so an application sends them unordered.
pub(crate) fn insert<DB: Backend>(table: &str, flights: &[Flight]) -> QueryBuilder<DB>
where
    Flight: Fields<RandomKeys<DB>>,
{
    let columns: Vec<_> = Flight::COLUMNS
        .iter()
        .map(|name| DB::Dialect::quote(name))
        .collect();
    let (table, columns) = (DB::Dialect::quote(table), columns.join(", "));
    let query = QueryBuilder::new(format!("INSERT INTO {table} ({columns}) VALUES "));
    let mut sink = RandomKeys {
        query,
        separator: "",
    };
    for (number, flight) in flights.iter().enumerate() {
        sink.query.push(if number == 0 { "(" } else { ", (" });
        sink.separator = "";
        flight.write(&mut sink);
        sink.query.push(")");
    }
    sink.query
}

/// Binds a flight with another key than its own.
pub(crate) struct RandomKeys<DB: Database> {
    query: QueryBuilder<DB>,
    separator: &'static str,
}

impl<DB: Database> RandomKeys<DB> {
    fn bind<'t, T: Encode<'t, DB> + Type<DB>>(&mut self, value: T) {
        self.query.push(self.separator).push_bind(value);
        self.separator = ", ";
    }
}

impl<DB: Database> Sink<FlightId> for RandomKeys<DB>
where
    Uuid: for<'q> Encode<'q, DB> + Type<DB>,
{
    fn put(&mut self, _: &FlightId) {
        self.bind(Uuid::new_v4());
    }
}

macro_rules! as_it_is {
    ($($type:ty),+) => {
        $(impl<DB: Database> Sink<$type> for RandomKeys<DB>
        where
            $type: for<'q> Encode<'q, DB> + Type<DB>,
        {
            fn put(&mut self, value: &$type) {
                self.bind(value);
            }
        })+
    };
}

as_it_is!(AirlineId, Option<PlaneId>, Option<AirportId>);
as_it_is!(i16, Option<i16>, String, Option<String>);
