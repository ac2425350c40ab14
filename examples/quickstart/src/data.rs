//! Reads the data and makes entities of it, all of them before a database hears of any.

use std::{
    borrow::Cow,
    fmt, fs,
    path::{Path, PathBuf},
};

use ordid::KeyType;

use crate::{
    csv_table::{Codes, CsvTable, unzip},
    entities::{Airline, AirlineId, Airport, AirportId, Flight, FlightId, Plane, PlaneId},
    error::{Context, Error},
};

/// The rows of all tables, with their keys, in the order of the files.
pub(crate) struct Data {
    pub(crate) airlines: Vec<Airline>,
    pub(crate) airports: Vec<Airport>,
    pub(crate) planes: Vec<Plane>,
    pub(crate) flights: Vec<Flight>,
    pub(crate) orphans: Orphans,
}

/// How many flights have no parent to refer to.
#[derive(Debug, Default)]
pub(crate) struct Orphans {
    /// The flight names no tail number.
    pub(crate) no_tailnum: usize,
    /// It names one that no plane has.
    pub(crate) plane: usize,
    /// No airport has the origin's code.
    pub(crate) origin: usize,
    /// No airport has the destination's code.
    pub(crate) dest: usize,
}

/// Where the files are.
#[derive(Debug)]
pub(crate) enum Source {
    /// In the program: the files of `data/`.
    Slice,
    Folder(PathBuf),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Slice => f.write_str("a slice, 1 to 7 January 2013 (all of it: --data DIR)"),
            Self::Folder(folder) => folder.display().fmt(f),
        }
    }
}

// The columns that are read.
const AIRLINES: &str = "carrier name";
const AIRPORTS: &str = "faa name lat lon alt tz dst tzone";
const PLANES: &str = "tailnum year type manufacturer model engines seats speed engine";
const FLIGHTS: &str = "year month day dep_time sched_dep_time dep_delay arr_time sched_arr_time arr_delay carrier \
    flight tailnum origin dest air_time distance hour minute time_hour";

impl Source {
    /// Reads and checks everything.
    pub(crate) fn read(&self) -> Result<Data, Error> {
        let mut carriers = Codes::new();
        let mut airlines = Vec::new();
        let mut table = self.open("airlines.csv", AIRLINES)?;
        while let Some(mut row) = table.next()? {
            let (id, carrier) = (AirlineId::generate(), row.code()?);
            carriers.insert(&row, carrier, id)?;
            airlines.push(Airline {
                id,
                carrier: carrier.to_owned(),
                name: row.text()?,
            });
        }

        let mut faas = Codes::new();
        let mut airports = Vec::new();
        let mut table = self.open("airports.csv", AIRPORTS)?;
        while let Some(mut row) = table.next()? {
            let (id, faa) = (AirportId::generate(), row.code()?);
            faas.insert(&row, faa, id)?;
            airports.push(Airport {
                id,
                faa: faa.to_owned(),
                name: row.text()?,
                lat: row.degrees()?,
                lon: row.degrees()?,
                alt: row.number()?,
                tz: row.number()?,
                dst: row.text()?,
                tzone: row.optional(|row| row.text())?,
            });
        }

        let mut tailnums = Codes::new();
        let mut planes = Vec::new();
        let mut table = self.open("planes.csv", PLANES)?;
        while let Some(mut row) = table.next()? {
            let (id, tailnum) = (PlaneId::generate(), row.code()?);
            tailnums.insert(&row, tailnum, id)?;
            planes.push(Plane {
                id,
                tailnum: tailnum.to_owned(),
                year: row.optional(|row| row.number())?,
                kind: row.text()?,
                manufacturer: row.text()?,
                model: row.text()?,
                engines: row.number()?,
                seats: row.number()?,
                speed: row.optional(|row| row.number())?,
                engine: row.text()?,
            });
        }

        let mut orphans = Orphans::default();
        let mut flights = Vec::new();
        let mut table = self.open("flights.csv", FLIGHTS)?;
        while let Some(mut row) = table.next()? {
            let (year, month, day) = (row.number()?, row.number()?, row.number()?);
            let dep_time = row.optional(|row| row.number())?;
            let sched_dep_time = row.number()?;
            let dep_delay = row.optional(|row| row.number())?;
            let arr_time = row.optional(|row| row.number())?;
            let sched_arr_time = row.number()?;
            let arr_delay = row.optional(|row| row.number())?;
            let carrier = row.code()?;
            // Planes and airports may be unknown; that an airline is not would be news.
            let Some(airline_id) = carriers.get(carrier) else {
                return Err(row.error(format_args!("no airline has the carrier {carrier:?}")));
            };
            let flight = row.number()?;
            let tailnum = row.optional(|row| row.code())?;
            let (origin, dest) = (row.code()?, row.code()?);
            let plane_id = tailnum.and_then(|tailnum| tailnums.get(tailnum));
            let (origin_id, dest_id) = (faas.get(origin), faas.get(dest));
            orphans.no_tailnum += usize::from(tailnum.is_none());
            orphans.plane += usize::from(tailnum.is_some() && plane_id.is_none());
            orphans.origin += usize::from(origin_id.is_none());
            orphans.dest += usize::from(dest_id.is_none());
            flights.push(Flight {
                id: FlightId::generate(),
                airline_id,
                plane_id,
                origin_id,
                dest_id,
                year,
                month,
                day,
                dep_time,
                sched_dep_time,
                dep_delay,
                arr_time,
                sched_arr_time,
                arr_delay,
                carrier: carrier.to_owned(),
                flight,
                tailnum: tailnum.map(str::to_owned),
                origin: origin.to_owned(),
                dest: dest.to_owned(),
                air_time: row.optional(|row| row.number())?,
                distance: row.number()?,
                hour: row.number()?,
                minute: row.number()?,
                time_hour: row.time()?,
            });
        }
        Ok(Data {
            airlines,
            airports,
            planes,
            flights,
            orphans,
        })
    }

    fn open(&self, file: &'static str, columns: &'static str) -> Result<CsvTable, Error> {
        let (name, content) = match self {
            Self::Slice => (file.to_owned(), Cow::Borrowed(slice(file))),
            Self::Folder(folder) => {
                let (name, content) = read_file(folder, file)?;
                (name, Cow::Owned(content))
            }
        };
        CsvTable::new(name, content, columns)
    }
}

/// Part of the program, so that it runs from anywhere.
fn slice(file: &str) -> &'static [u8] {
    match file {
        "airlines.csv" => include_bytes!("../data/airlines.csv"),
        "airports.csv" => include_bytes!("../data/airports.csv"),
        "planes.csv" => include_bytes!("../data/planes.csv"),
        _ => include_bytes!("../data/flights.csv"),
    }
}

/// Reads a file; where there is only an archive of it, from that.
fn read_file(folder: &Path, file: &str) -> Result<(String, Vec<u8>), Error> {
    let plain = folder.join(file);
    let archive = folder.join(format!("{file}.zip"));
    let zipped = !plain.exists() && archive.exists();
    let path = if zipped { archive } else { plain };
    let name = path.display().to_string();
    let content = fs::read(&path).context(format_args!("cannot read {name}"))?;
    let content = if zipped {
        unzip(&content, file, &name)?
    } else {
        content
    };
    Ok((name, content))
}
