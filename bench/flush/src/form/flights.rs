//! 100,000 flights in the shape of a year of departures, and their parents.
//!
//! They are computed, the same in every run but for the keys.

use ordid::{KeyType, OrderedKey, uuid::Uuid};
use sqlx::AssertSqlSafe;

use super::{Form, Random, Summary, Types, count, on_engines};

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

#[derive(Clone, OrderedKey)]
#[ordid(table = "airlines")]
pub(crate) struct Airline {
    #[ordid(key)]
    id: AirlineId,
    carrier: String,
}

#[derive(Clone, OrderedKey)]
#[ordid(table = "airports")]
pub(crate) struct Airport {
    #[ordid(key)]
    id: AirportId,
    faa: String,
}

#[derive(Clone, OrderedKey)]
#[ordid(table = "planes")]
pub(crate) struct Plane {
    #[ordid(key)]
    id: PlaneId,
    tailnum: String,
}

#[derive(Clone, OrderedKey)]
#[ordid(table = "flights")]
pub(crate) struct Flight {
    #[ordid(key)]
    id: FlightId,
    #[ordid(parent)]
    airline_id: AirlineId,
    #[ordid(parent)]
    plane_id: Option<PlaneId>,
    #[ordid(parent)]
    origin_id: Option<AirportId>,
    #[ordid(parent)]
    dest_id: Option<AirportId>,
    year: i16,
    month: i16,
    day: i16,
    dep_time: Option<i16>,
    sched_dep_time: i16,
    dep_delay: Option<i16>,
    arr_time: Option<i16>,
    sched_arr_time: i16,
    arr_delay: Option<i16>,
    carrier: String,
    flight: i16,
    tailnum: Option<String>,
    origin: String,
    dest: String,
    air_time: Option<i16>,
    distance: i16,
    hour: i16,
    minute: i16,
    time_hour: String,
}

const FOREIGN_KEYS: &str = ",
    FOREIGN KEY (airline_id) REFERENCES airlines (id),
    FOREIGN KEY (plane_id) REFERENCES planes (id),
    FOREIGN KEY (origin_id) REFERENCES airports (id),
    FOREIGN KEY (dest_id) REFERENCES airports (id)";

/// What is inserted: the parents outside the timed part.
pub(crate) struct Flights {
    airlines: Vec<Airline>,
    airports: Vec<Airport>,
    planes: Vec<Plane>,
    flights: Vec<Flight>,
}

impl Flights {
    fn new(count: usize) -> Self {
        let airlines = (0..16).map(|n| Airline {
            id: AirlineId::generate(),
            carrier: code(n, 2),
        });
        let airports = (0..1458).map(|n| Airport {
            id: AirportId::generate(),
            faa: code(n, 3),
        });
        let planes = (0..3322).map(|n| Plane {
            id: PlaneId::generate(),
            tailnum: format!("N{}{}", 100 + n % 900, code(n, 2)),
        });
        let mut rows = Self {
            airlines: airlines.collect(),
            airports: airports.collect(),
            planes: planes.collect(),
            flights: Vec::new(),
        };
        let mut random = Random(1);
        rows.flights = (0..count)
            .map(|n| rows.flight(n, count, &mut random))
            .collect();
        rows
    }

    fn flight(&self, n: usize, count: usize, random: &mut Random) -> Flight {
        let airline = &self.airlines[usize::from(random.below(16))];
        let plane = (random.below(100) < 85).then(|| &self.planes[usize::from(random.below(3322))]);
        let origin = &self.airports[usize::from(random.below(3))];
        let dest = &self.airports[usize::from(random.below(105))];
        let day_of_year = i16::try_from(n * 365 / count).expect("fewer than 365");
        let (month, day) = (day_of_year / 31 + 1, day_of_year % 31 + 1);
        let (hour, minute) = (5 + random.signed(19), random.signed(60));
        let air_time = 30 + random.signed(330);
        let departed = random.below(1000) < 975;
        let late = |random: &mut Random| departed.then(|| random.signed(60) - 20);
        Flight {
            id: FlightId::generate(),
            airline_id: airline.id,
            plane_id: plane.map(|plane| plane.id),
            origin_id: Some(origin.id),
            dest_id: (random.below(100) < 98).then_some(dest.id),
            year: 2013,
            month,
            day,
            dep_time: departed.then_some(hour * 100 + minute),
            sched_dep_time: hour * 100 + minute,
            dep_delay: late(random),
            arr_time: departed.then_some(1 + random.signed(2400)),
            sched_arr_time: 1 + random.signed(2359),
            arr_delay: late(random),
            carrier: airline.carrier.clone(),
            flight: 1 + random.signed(8500),
            tailnum: plane.map(|plane| plane.tailnum.clone()),
            origin: origin.faa.clone(),
            dest: dest.faa.clone(),
            air_time: departed.then_some(air_time),
            distance: air_time * 7 - 120,
            hour,
            minute,
            time_hour: format!("2013-{month:02}-{day:02}T{hour:02}:00:00Z"),
        }
    }
}

impl Form for Flight {
    const PARENT_TABLES: &'static [&'static str] = &["airlines", "airports", "planes"];
    const SUMMARY: &'static str = "SELECT COUNT(*), COUNT(plane_id), COUNT(dep_time), \
        COUNT(CASE WHEN distance > 1000 THEN 1 END) FROM flights";
    type Data = Flights;

    fn data(count: usize) -> Flights {
        Flights::new(count)
    }

    fn rows(data: &Flights) -> &[Self] {
        &data.flights
    }

    fn summary(data: &Flights) -> Summary {
        (
            count(&data.flights, |_| true),
            count(&data.flights, |flight| flight.plane_id.is_some()),
            count(&data.flights, |flight| flight.dep_time.is_some()),
            count(&data.flights, |flight| flight.distance > 1000),
        )
    }

    fn create_tables(Types { key, code, text }: &Types, foreign_keys: bool) -> String {
        let references = if foreign_keys { FOREIGN_KEYS } else { "" };
        let parent = |table, column| {
            format!(
                "CREATE TABLE {table} (id {key} NOT NULL PRIMARY KEY, {column} {code} NOT NULL);\n"
            )
        };
        parent("airlines", "carrier")
            + &parent("airports", "faa")
            + &parent("planes", "tailnum")
            + &format!(
                "CREATE TABLE flights (
                    id {key} NOT NULL PRIMARY KEY,
                    airline_id {key} NOT NULL,
                    plane_id {key}, origin_id {key}, dest_id {key},
                    year SMALLINT NOT NULL, month SMALLINT NOT NULL, day SMALLINT NOT NULL,
                    dep_time SMALLINT, sched_dep_time SMALLINT NOT NULL, dep_delay SMALLINT,
                    arr_time SMALLINT, sched_arr_time SMALLINT NOT NULL, arr_delay SMALLINT,
                    carrier {code} NOT NULL, flight SMALLINT NOT NULL, tailnum {code},
                    origin {code} NOT NULL, dest {code} NOT NULL,
                    air_time SMALLINT, distance SMALLINT NOT NULL,
                    hour SMALLINT NOT NULL, minute SMALLINT NOT NULL, time_hour {text} NOT NULL
                    {references}
                );"
            )
    }
}

/// The types of the arrays of [`FormOn::unnest`](super::FormOn::unnest).
const ARRAYS: [&str; 24] = [
    "uuid", "uuid", "uuid", "uuid", "uuid", "int2", "int2", "int2", "int2", "int2", "int2", "int2",
    "int2", "int2", "text", "int2", "text", "text", "text", "int2", "int2", "int2", "int2", "text",
];

on_engines!(
    Flight,
    parents: |data, work| {
        for row in &data.airlines {
            work.add(row.clone());
        }
        for row in &data.airports {
            work.add(row.clone());
        }
        for row in &data.planes {
            work.add(row.clone());
        }
    },
    values: |flight| [
        flight.id.to_raw(),
        flight.airline_id.to_raw(),
        flight.plane_id.map(KeyType::to_raw),
        flight.origin_id.map(KeyType::to_raw),
        flight.dest_id.map(KeyType::to_raw),
        flight.year,
        flight.month,
        flight.day,
        flight.dep_time,
        flight.sched_dep_time,
        flight.dep_delay,
        flight.arr_time,
        flight.sched_arr_time,
        flight.arr_delay,
        flight.carrier.as_str(),
        flight.flight,
        flight.tailnum.as_deref(),
        flight.origin.as_str(),
        flight.dest.as_str(),
        flight.air_time,
        flight.distance,
        flight.hour,
        flight.minute,
        flight.time_hour.as_str(),
    ],
    on PostgreSQL: {
        const UNNEST: bool = true;

    async fn unnest(
        connection: &mut sqlx::PgConnection,
        flights: &[Self],
    ) -> Result<(), sqlx::Error> {
        macro_rules! array {
            (|$flight:ident| $value:expr) => {
                flights.iter().map(|$flight| $value).collect::<Vec<_>>()
            };
        }
        let arrays: Vec<_> = ARRAYS
            .iter()
            .zip(1..)
            .map(|(ty, number)| format!("${number}::{ty}[]"))
            .collect();
        let sql = format!(
            "INSERT INTO flights ({}) SELECT * FROM UNNEST({})",
            Self::COLUMNS.join(", "),
            arrays.join(", ")
        );
        let query = sqlx::query(AssertSqlSafe(sql))
            .bind(array!(|flight| flight.id.to_raw()))
            .bind(array!(|flight| flight.airline_id.to_raw()))
            .bind(array!(|flight| flight.plane_id.map(|id| id.to_raw())))
            .bind(array!(|flight| flight.origin_id.map(|id| id.to_raw())))
            .bind(array!(|flight| flight.dest_id.map(|id| id.to_raw())))
            .bind(array!(|flight| flight.year))
            .bind(array!(|flight| flight.month))
            .bind(array!(|flight| flight.day))
            .bind(array!(|flight| flight.dep_time))
            .bind(array!(|flight| flight.sched_dep_time))
            .bind(array!(|flight| flight.dep_delay))
            .bind(array!(|flight| flight.arr_time))
            .bind(array!(|flight| flight.sched_arr_time))
            .bind(array!(|flight| flight.arr_delay))
            .bind(array!(|flight| flight.carrier.as_str()))
            .bind(array!(|flight| flight.flight))
            .bind(array!(|flight| flight.tailnum.as_deref()))
            .bind(array!(|flight| flight.origin.as_str()))
            .bind(array!(|flight| flight.dest.as_str()))
            .bind(array!(|flight| flight.air_time))
            .bind(array!(|flight| flight.distance))
            .bind(array!(|flight| flight.hour))
            .bind(array!(|flight| flight.minute))
            .bind(array!(|flight| flight.time_hour.as_str()));
        query.execute(connection).await.map(drop)
    }
    }
);

/// A code of so many letters, `AAA` to `ZZZ`.
fn code(mut number: u32, letters: usize) -> String {
    let mut text = String::new();
    for _ in 0..letters {
        text.insert(
            0,
            char::from_u32('A' as u32 + number % 26).expect("a letter"),
        );
        number /= 26;
    }
    text
}
