//! PostgreSQL: a server of its own unless `ORDID_TEST_POSTGRES_URL` names one.

use ordid::KeyType as _;
use sqlx::{
    AssertSqlSafe, Connection as _, Encode, Postgres,
    encode::IsNull,
    postgres::{PgArgumentBuffer, PgConnectOptions as Options},
};

use super::Engine;
use crate::{
    handwritten,
    rows::{Flight, Types},
};

/// The types of the arrays of [`Engine::unnest`].
const ARRAYS: [&str; 24] = [
    "uuid", "uuid", "uuid", "uuid", "uuid", "int2", "int2", "int2", "int2", "int2", "int2", "int2",
    "int2", "int2", "text", "int2", "text", "text", "text", "int2", "int2", "int2", "int2", "text",
];

impl Engine for Postgres {
    const SERVER: &'static str = "postgres";
    const MAX_PARAMETERS: usize = 65_535;
    const UNNEST_AND_COPY: bool = true;
    const TYPES: Types = Types {
        key: "uuid",
        code: "text",
        text: "text",
    };
    const SETTLE: &'static str = "VACUUM ANALYZE";
    const VERSION: &'static str =
        "SELECT split_part(version(), ' on ', 1) || ', fsync ' || current_setting('fsync')";

    fn placeholder(number: usize) -> String {
        format!("${number}")
    }

    async fn unnest(
        connection: &mut Self::Connection,
        flights: &[Flight],
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
            "{}SELECT * FROM UNNEST({})",
            handwritten::insert(),
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

    async fn copy(
        connection: &mut Self::Connection,
        flights: &[Flight],
    ) -> Result<(), sqlx::Error> {
        let sql = format!(
            "COPY flights ({}) FROM STDIN (FORMAT binary)",
            handwritten::COLUMNS.join(", ")
        );
        let columns = i16::try_from(handwritten::COLUMNS.len()).expect("few");
        let mut copy = connection.copy_in_raw(&sql).await?;
        let mut data = PgArgumentBuffer::default();
        data.extend_from_slice(b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0");
        for flight in flights {
            data.extend_from_slice(&columns.to_be_bytes());
            handwritten::for_each_value!(flight, value => copy_value(&mut data, &value)?);
            if data.len() >= 1 << 16 {
                copy.send(&data[..]).await?;
                data.clear();
            }
        }
        data.extend_from_slice(&(-1_i16).to_be_bytes());
        copy.send(&data[..]).await?;
        copy.finish().await.map(drop)
    }

    super::through_server!();
    super::through_sqlx!();
}

/// Writes a value as a field of `COPY`'s binary format: its length, then its bytes.
fn copy_value<'q>(
    data: &mut PgArgumentBuffer,
    value: &impl Encode<'q, Postgres>,
) -> Result<(), sqlx::Error> {
    let start = data.len();
    data.extend_from_slice(&(-1_i32).to_be_bytes());
    if let IsNull::No = value.encode_by_ref(data).map_err(sqlx::Error::Encode)? {
        let length = i32::try_from(data.len() - start - 4).expect("values are small");
        data[start..start + 4].copy_from_slice(&length.to_be_bytes());
    }
    Ok(())
}
