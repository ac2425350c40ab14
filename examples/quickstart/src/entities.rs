//! The four tables as entities.
//!
//! Each has an ordered key of a type of its own in `id`, so that ids do not mix and a parent is
//! found by its type. Parents keep their natural code too; flights keep the columns of the file as
//! they are, codes without a parent included, and refer to their parents beside them.

use ordid::{KeyType, OrderedKey};
use uuid::Uuid;

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, sqlx)]
pub(crate) struct AirlineId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, sqlx)]
pub(crate) struct AirportId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, sqlx)]
pub(crate) struct PlaneId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, sqlx)]
pub(crate) struct FlightId(Uuid);

#[derive(OrderedKey)]
#[ordid(table = "airlines")]
pub(crate) struct Airline {
    #[ordid(key)]
    pub(crate) id: AirlineId,
    pub(crate) carrier: String,
    pub(crate) name: String,
}

#[derive(OrderedKey)]
#[ordid(table = "airports")]
pub(crate) struct Airport {
    #[ordid(key)]
    pub(crate) id: AirportId,
    pub(crate) faa: String,
    pub(crate) name: String,
    pub(crate) lat: f64,
    pub(crate) lon: f64,
    pub(crate) alt: i16,
    pub(crate) tz: i16,
    pub(crate) dst: String,
    pub(crate) tzone: Option<String>,
}

#[derive(OrderedKey)]
#[ordid(table = "planes")]
pub(crate) struct Plane {
    #[ordid(key)]
    pub(crate) id: PlaneId,
    pub(crate) tailnum: String,
    pub(crate) year: Option<i16>,
    #[ordid(column = "type")]
    pub(crate) kind: String,
    pub(crate) manufacturer: String,
    pub(crate) model: String,
    pub(crate) engines: i16,
    pub(crate) seats: i16,
    pub(crate) speed: Option<i16>,
    pub(crate) engine: String,
}

#[derive(OrderedKey)]
#[ordid(table = "flights")]
pub(crate) struct Flight {
    #[ordid(key)]
    pub(crate) id: FlightId,
    #[ordid(parent)]
    pub(crate) airline_id: AirlineId,
    #[ordid(parent)]
    pub(crate) plane_id: Option<PlaneId>,
    #[ordid(parent)]
    pub(crate) origin_id: Option<AirportId>,
    #[ordid(parent)]
    pub(crate) dest_id: Option<AirportId>,
    pub(crate) year: i16,
    pub(crate) month: i16,
    pub(crate) day: i16,
    pub(crate) dep_time: Option<i16>,
    pub(crate) sched_dep_time: i16,
    pub(crate) dep_delay: Option<i16>,
    pub(crate) arr_time: Option<i16>,
    pub(crate) sched_arr_time: i16,
    pub(crate) arr_delay: Option<i16>,
    pub(crate) carrier: String,
    pub(crate) flight: i16,
    pub(crate) tailnum: Option<String>,
    pub(crate) origin: String,
    pub(crate) dest: String,
    pub(crate) air_time: Option<i16>,
    pub(crate) distance: i16,
    pub(crate) hour: i16,
    pub(crate) minute: i16,
    /// The scheduled hour in UTC, `2013-01-01T10:00:00Z`: text that sorts as time does.
    pub(crate) time_hour: String,
}
