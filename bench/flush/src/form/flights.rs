//! The rows: 100,000 flights in the shape of a year of departures, and their parents.
//!
//! They are computed, the same in every run but for the keys.

use ordid::{KeyType, OrderedKey, uuid::Uuid};

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
    pub(crate) time_hour: String,
}

/// The types of columns that are not called the same everywhere.
#[derive(Debug)]
pub(crate) struct Types {
    pub(crate) key: &'static str,
    pub(crate) code: &'static str,
    pub(crate) text: &'static str,
}

const FOREIGN_KEYS: &str = ",
    FOREIGN KEY (airline_id) REFERENCES airlines (id),
    FOREIGN KEY (plane_id) REFERENCES planes (id),
    FOREIGN KEY (origin_id) REFERENCES airports (id),
    FOREIGN KEY (dest_id) REFERENCES airports (id)";

/// Returns the statements that create the four tables.
pub(crate) fn create_tables(Types { key, code, text }: &Types, foreign_keys: bool) -> String {
    let references = if foreign_keys { FOREIGN_KEYS } else { "" };
    let parent = |table, column| {
        format!("CREATE TABLE {table} (id {key} NOT NULL PRIMARY KEY, {column} {code} NOT NULL);\n")
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

/// What is inserted: the parents outside the timed part.
pub(crate) struct Rows {
    pub(crate) airlines: Vec<Airline>,
    pub(crate) airports: Vec<Airport>,
    pub(crate) planes: Vec<Plane>,
    pub(crate) flights: Vec<Flight>,
}

/// What the database must say of the flights afterwards: how many there are, with a plane, that
/// departed, and that flew far.
pub(crate) type Summary = (i64, i64, i64, i64);

pub(crate) const SUMMARY: &str = "SELECT COUNT(*), COUNT(plane_id), COUNT(dep_time), \
    COUNT(CASE WHEN distance > 1000 THEN 1 END) FROM flights";

impl Rows {
    /// Computes this many flights, in the order of their keys.
    pub(crate) fn new(count: usize) -> Self {
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

    pub(crate) fn summary(&self) -> Summary {
        let count = |test: fn(&Flight) -> bool| {
            let found = self.flights.iter().filter(|flight| test(flight)).count();
            i64::try_from(found).expect("few")
        };
        (
            count(|_| true),
            count(|flight| flight.plane_id.is_some()),
            count(|flight| flight.dep_time.is_some()),
            count(|flight| flight.distance > 1000),
        )
    }
}

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

/// Knuth's MMIX generator: arbitrary numbers, always the same.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u16) -> u16 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        u16::try_from(((self.0 >> 48) * u64::from(end)) >> 16).expect("less than the end")
    }

    fn signed(&mut self, end: u16) -> i16 {
        i16::try_from(self.below(end)).expect("ends are small")
    }
}
