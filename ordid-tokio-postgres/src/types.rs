//! The types of columns. tokio-postgres encodes a value for the type of its column, so they are asked for before a row is
//! bound.
//!
//! The server could be asked for the types of a statement's parameters, but a list of rows in an `UPDATE` takes its types
//! from the parameters. And a parameter that was declared as the Rust type suggests would be cast to its column: a key
//! would be stored as text, in another order.

use std::{collections::HashMap, fmt::Write as _, sync::Arc};

use ordid_sql::EngineProfile;
use tokio_postgres::{
    Error, Row,
    types::{Kind, ToSql, Type},
};

use crate::{binder::Parameter, calls::Calls};

/// What is known of a table to the compiler.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct TableOf {
    pub(crate) schema: Option<&'static str>,
    pub(crate) name: &'static str,
    pub(crate) columns: &'static [&'static str],
    pub(crate) version: Option<usize>,
}

impl TableOf {
    /// Returns the name of a column. Behind the columns is the version with which the row was read.
    pub(crate) fn column(&self, at: usize) -> Option<&'static str> {
        let at = match at == self.columns.len() {
            true => self.version?,
            false => at,
        };
        self.columns.get(at).copied()
    }

    pub(crate) fn quoted(&self) -> String {
        EngineProfile::POSTGRES.quote_table(self.schema, self.name)
    }
}

/// The type of each column, and behind them that of the version; `None` of a column that is not there.
pub(crate) type Types = Arc<[Option<Type>]>;

/// Returns for each column of these tables the number of the table, the name and the type, with its name if PostgreSQL
/// does not have that type itself. As an `INSERT` does, it finds a table over the search path.
const COLUMNS: &str = "\
SELECT asked.number, a.attname::text, a.atttypid, \
CASE WHEN a.atttypid >= 16384 THEN pg_catalog.format_type(a.atttypid, NULL) END \
FROM pg_catalog.unnest($1::text[]) WITH ORDINALITY AS asked (name, number) \
JOIN pg_catalog.pg_attribute AS a \
ON a.attrelid = pg_catalog.to_regclass(asked.name) AND a.attnum > 0 AND NOT a.attisdropped";

/// The types of tables.
type Found = Vec<(&'static TableOf, Types)>;

/// Asks for the types of tables. Nothing is prepared by name, unless a type is the user's: then tokio-postgres asks what
/// it is.
pub(crate) async fn ask(
    client: &mut impl Calls,
    tables: &[&'static TableOf],
) -> Result<Found, Error> {
    let names = names(tables);
    let parameters: [Parameter<'_>; 1] = [(&names, Type::TEXT_ARRAY)];
    let rows = client.query_typed(COLUMNS, &parameters).await?;
    found(client, tables, rows).await
}

/// Sends this, and asks for the types of tables, if there are any, together with it.
pub(crate) async fn begin_and_ask(
    client: &mut impl Calls,
    sql: &str,
    tables: &[&'static TableOf],
) -> Result<Found, Error> {
    if tables.is_empty() {
        client.batch(sql).await?;
        return Ok(Vec::new());
    }
    let names = names(tables);
    let parameters: [Parameter<'_>; 1] = [(&names, Type::TEXT_ARRAY)];
    let asked = client.batch_and_query(sql, COLUMNS, &parameters);
    let (begun, rows) = asked.await;
    begun?;
    found(client, tables, rows?).await
}

fn names(tables: &[&TableOf]) -> Vec<String> {
    tables.iter().map(|table| table.quoted()).collect()
}

async fn found(
    client: &mut impl Calls,
    tables: &[&'static TableOf],
    rows: Vec<Row>,
) -> Result<Found, Error> {
    let mut found = HashMap::new();
    let mut others = Vec::new();
    for row in &rows {
        let (number, column): (i64, String) = (row.try_get(0)?, row.try_get(1)?);
        match row.try_get::<_, Option<String>>(3)? {
            Some(name) => others.push(((number, column), name)),
            None => {
                let ty = Type::from_oid(row.try_get(2)?);
                found.extend(ty.map(|ty| ((number, column), ty)));
            }
        }
    }
    let wanted = |(number, column): &(i64, String)| {
        let table = usize::try_from(number - 1)
            .ok()
            .and_then(|at| tables.get(at));
        table.is_some_and(|table| table.columns.contains(&column.as_str()))
    };
    others.retain(|(column, _)| wanted(column));
    found.extend(ask_others(client, others).await?);
    let types = (1..).zip(tables).map(|(number, table)| {
        let version = table.version.map(|at| &table.columns[at]);
        let columns = table.columns.iter().chain(version);
        let types = columns.map(|column| found.get(&(number, (*column).to_owned())).cloned());
        (*table, types.collect())
    });
    Ok(types.collect())
}

/// Asks tokio-postgres for types that are not PostgreSQL's own, by an empty array of each: a `NULL` may be none of a
/// domain.
async fn ask_others<C>(
    client: &mut impl Calls,
    columns: Vec<(C, String)>,
) -> Result<Vec<(C, Type)>, Error> {
    if columns.is_empty() {
        return Ok(Vec::new());
    }
    let mut sql = String::from("SELECT");
    for (number, (_, name)) in columns.iter().enumerate() {
        let separator = if number > 0 { "," } else { "" };
        let array = if name.ends_with("[]") { "" } else { "[]" };
        let _ = write!(sql, "{separator} '{{}}'::{name}{array}");
    }
    let rows = client.query_typed(&sql, &[]).await?;
    let types = rows.first().map(|row| row.columns()).unwrap_or_default();
    let types = types.iter().map(|it| it.type_().clone());
    let found = columns.into_iter().zip(types);
    let found = found.map(|((column, name), array)| match array.kind() {
        Kind::Array(member) if !name.ends_with("[]") => (column, member.clone()),
        _ => (column, array),
    });
    Ok(found.collect())
}

/// Returns the type that a value of type `T` is encoded as for a column: the column's, or that under a domain.
pub(crate) fn encoded_as<T: ToSql>(column: &Type) -> &Type {
    match column.kind() {
        Kind::Domain(base) if !T::accepts(column) => encoded_as::<T>(base),
        _ => column,
    }
}

macro_rules! types {
    ($($name:ident)+) => {
        [$(Type::$name),+]
    };
}

/// Types of PostgreSQL's own, of which a Rust type accepts the first that fits it if its column is not known.
static USUAL: [Type; 34] = types![
    TEXT UUID INT8 INT4 INT2 BOOL BYTEA FLOAT8 FLOAT4 TIMESTAMPTZ TIMESTAMP DATE TIME NUMERIC JSON INET
    MACADDR INTERVAL OID CHAR VARBIT POINT BOX PATH TEXT_ARRAY UUID_ARRAY INT8_ARRAY INT4_ARRAY INT2_ARRAY
    BOOL_ARRAY BYTEA_ARRAY FLOAT8_ARRAY TIMESTAMPTZ_ARRAY JSON_ARRAY
];

/// Returns the type that values of type `T` usually have.
pub(crate) fn usual<T: ToSql>() -> Option<&'static Type> {
    USUAL.iter().find(|ty| T::accepts(ty))
}
