//! PostgreSQL: a server of its own unless `ORDID_TEST_POSTGRES_URL` names one.

use sqlx::{
    Connection as _, Encode, Postgres, Type,
    encode::IsNull,
    error::BoxDynError,
    postgres::{PgArgumentBuffer, PgConnectOptions as Options},
};

use super::Engine;
use crate::form::{FormOn, Types, Values};

impl Engine for Postgres {
    const SERVER: &'static str = "postgres";
    const MAX_PARAMETERS: usize = 65_535;
    const COPY: bool = true;
    const TYPES: Types = Types {
        key: "uuid",
        code: "text",
        text: "text",
    };
    const VERSION: &'static str =
        "SELECT split_part(version(), ' on ', 1) || ', fsync ' || current_setting('fsync')";

    fn settle(_: &[&str]) -> String {
        "VACUUM ANALYZE".to_owned()
    }

    fn placeholder(number: usize) -> String {
        format!("${number}")
    }

    async fn copy<R: FormOn<Self>>(
        connection: &mut Self::Connection,
        rows: &[R],
    ) -> Result<(), sqlx::Error> {
        let sql = format!(
            "COPY {} ({}) FROM STDIN (FORMAT binary)",
            R::TABLE,
            R::COLUMNS.join(", ")
        );
        let columns = i16::try_from(R::COLUMNS.len()).expect("few");
        let mut copy = connection.copy_in_raw(&sql).await?;
        let mut data = CopyData(PgArgumentBuffer::default());
        data.0
            .extend_from_slice(b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0");
        for row in rows {
            data.0.extend_from_slice(&columns.to_be_bytes());
            row.bind(&mut data).map_err(sqlx::Error::Encode)?;
            if data.0.len() >= 1 << 16 {
                copy.send(&data.0[..]).await?;
                data.0.clear();
            }
        }
        data.0.extend_from_slice(&(-1_i16).to_be_bytes());
        copy.send(&data.0[..]).await?;
        copy.finish().await.map(drop)
    }

    super::through_server!();
    super::through_sqlx!();
}

/// Fields of `COPY`'s binary format: the length of a value, then its bytes.
struct CopyData(PgArgumentBuffer);

impl Values<Postgres> for CopyData {
    fn put<'q, T: Encode<'q, Postgres> + Type<Postgres>>(
        &mut self,
        value: T,
    ) -> Result<(), BoxDynError> {
        let start = self.0.len();
        self.0.extend_from_slice(&(-1_i32).to_be_bytes());
        if let IsNull::No = value.encode_by_ref(&mut self.0)? {
            let length = i32::try_from(self.0.len() - start - 4)?;
            self.0[start..start + 4].copy_from_slice(&length.to_be_bytes());
        }
        Ok(())
    }
}
